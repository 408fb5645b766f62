/* listing.h - what gateways tell about jobs and nodes, as tables for people. */
#ifndef CLI_LISTING_H
#define CLI_LISTING_H

#include "base/arena.h"
#include "base/buf.h"
#include "cli/terminal.h"
#include "wire/api.h"

void listing_nodes(const struct node_list *list, struct terminal terminal, struct arena *arena,
                   struct buf *out);
void listing_jobs(const struct job_list *list, struct terminal terminal, struct arena *arena,
                  struct buf *out);
/* All that is known of one. */
void listing_view(const struct job_view *view, struct terminal terminal, struct arena *arena,
                  struct buf *out);

#endif
