/* SPDX-License-Identifier: Apache-2.0 */
/* ranker.h - the best rows of each partition, without sorting the rest.
 *
 * Used on both ends of an exchange, like group_table.h. The order is total over all columns, so the
 * outcome is a function of the set of rows offered.
 *
 * Memory: owned, charged to the budget. Threads: one owner.
 */
#ifndef ENGINE_EXEC_FOLD_RANKER_H
#define ENGINE_EXEC_FOLD_RANKER_H

#include "engine/base/error.h"
#include "engine/data/column.h"
#include "engine/data/schema.h"
#include "engine/plan/plan.h"

struct ranker;

MUST_USE status ranker_create(const struct ranking *ranking, struct schema schema,
                              struct budget *budget, struct ranker **out_ranker, struct error *err);
void ranker_destroy(struct ranker *ranker);
void ranker_reset(struct ranker *ranker);
MUST_USE status ranker_add(struct ranker *ranker, const struct batch *batch,
                           struct selection selection, struct error *err);
/* The best rows, by partition, then in their order; borrowed until the next add or reset. */
MUST_USE status ranker_finish(struct ranker *ranker, struct batch *out_batch, struct error *err);

/* How much ranker_finish may take for a while, beyond what is held. */
size_t ranker_need(const struct ranker *ranker);

#endif
