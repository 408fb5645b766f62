/* SPDX-License-Identifier: Apache-2.0 */
/* listing.h - the gateways' lists of jobs and nodes, as tables for people. */
#ifndef CLI_CLUSTER_LISTING_H
#define CLI_CLUSTER_LISTING_H

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "cli/terminal.h"
#include "cluster/wire/api.h"

void listing_nodes(const struct node_list *list, struct terminal terminal, struct arena *arena,
                   struct buf *out);
/* Of the broker, if the gateway has measured them. */
void listing_queues(const struct node_list *list, struct terminal terminal, struct arena *arena,
                    struct buf *out);
/* `views`: the progress of each job, or NULL; the array may be NULL. */
void listing_jobs(const struct job_list *list, const struct job_view *const *views,
                  struct terminal terminal, struct arena *arena, struct buf *out);
/* All details of one job. */
void listing_view(const struct job_view *view, struct terminal terminal, struct arena *arena,
                  struct buf *out);
/* `wall_ms`: the wall clock when it was received. */
void listing_timeline(const struct timeline *timeline, int64_t wall_ms, struct terminal terminal,
                      struct arena *arena, struct buf *out);

#endif
