/* SPDX-License-Identifier: Apache-2.0 */
/* answer_order.h - answers that come in any order are written in the order of the queries, or, on a
 * terminal, in the order in which they are done.
 *
 *     answer_order_open -> (answer_order_rows | answer_order_end)* -> answer_order_close
 *
 * In the order of the queries, the rows of the first query that is not done are written as they
 * come, and those of later queries are buffered. In the order of their ends, all rows of a query
 * are buffered until its end.
 *
 * Memory: owned. Threads: one owner.
 */
#ifndef CLI_CLUSTER_ANSWER_ORDER_H
#define CLI_CLUSTER_ANSWER_ORDER_H

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "cli/output.h"
#include "engine/data/batch_builder.h"

struct ordered_query;

struct answer_order {
    struct output *output; /* Borrowed. */
    const struct plan *plan;
    struct plan_query *shown;      /* NULL: in the order of the queries. */
    struct ordered_query *queries; /* By the plan's queries; NULL: not open. */
    uint32_t next;                 /* Whose turn it is. */
};

/* Memory from the arena; the output is open already. `shown` is NULL, or the queries of the
 * output's plan: they are put there in the order in which they end. */
MUST_USE status answer_order_open(struct answer_order *order, struct output *output,
                                  const struct plan *plan, struct plan_query *shown,
                                  struct arena *arena, struct error *err);
MUST_USE status answer_order_rows(struct answer_order *order, uint32_t query,
                                  const struct batch *batch, struct error *err);
/* All rows of the query have come. */
MUST_USE status answer_order_end(struct answer_order *order, uint32_t query, struct error *err);
/* Accepts a zeroed one. */
void answer_order_close(struct answer_order *order);

#endif
