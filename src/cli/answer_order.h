/* answer_order.h - answers that come in any order go out in the order of the queries.
 *
 *     answer_order_open -> (answer_order_rows | answer_order_end)* -> answer_order_close
 *
 * The rows of the first query that is not done go out as they come; those of later ones are kept
 * until it is their turn.
 *
 * Memory: what is kept is owned. Threads: one owner.
 */
#ifndef CLI_ANSWER_ORDER_H
#define CLI_ANSWER_ORDER_H

#include "base/arena.h"
#include "base/error.h"
#include "cli/output.h"
#include "data/batch_builder.h"

struct ordered_query;

struct answer_order {
    struct output *output; /* Borrowed. */
    const struct plan *plan;
    struct ordered_query *queries; /* By the plan's queries; NULL: not open. */
    uint32_t next;                 /* Whose turn it is. */
};

/* Memory from the arena; the output is open already. */
MUST_USE status answer_order_open(struct answer_order *order, struct output *output,
                                  struct arena *arena, struct error *err);
MUST_USE status answer_order_rows(struct answer_order *order, uint32_t query,
                                  const struct batch *batch, struct error *err);
/* All rows of the query have come. */
MUST_USE status answer_order_end(struct answer_order *order, uint32_t query, struct error *err);
/* Accepts a zeroed one. */
void answer_order_close(struct answer_order *order);

#endif
