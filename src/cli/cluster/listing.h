/* listing.h - what gateways tell about jobs and nodes, as tables for people. */
#ifndef CLI_CLUSTER_LISTING_H
#define CLI_CLUSTER_LISTING_H

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "cli/terminal.h"
#include "cluster/wire/api.h"

void listing_nodes(const struct node_list *list, struct terminal terminal, struct arena *arena,
                   struct buf *out);
/* Of the broker, as far as the gateway has told. */
void listing_queues(const struct node_list *list, struct terminal terminal, struct arena *arena,
                    struct buf *out);
/* `views`: of each job how far it is, or NULL; all of it may be NULL. */
void listing_jobs(const struct job_list *list, const struct job_view *const *views,
                  struct terminal terminal, struct arena *arena, struct buf *out);
/* All that is known of one. */
void listing_view(const struct job_view *view, struct terminal terminal, struct arena *arena,
                  struct buf *out);
/* `wall_ms`: the time of day when it was told. */
void listing_timeline(const struct timeline *timeline, int64_t wall_ms, struct terminal terminal,
                      struct arena *arena, struct buf *out);

#endif
