/* SPDX-License-Identifier: Apache-2.0 */
/* plan_share.h - common subexpressions of several queries are computed once (multi-query
 * optimization: Sellis, ACM TODS 13(1), 1988).
 *
 * Called when the pipelines and folds of all queries are known and scans are not made yet. Folds
 * that are fed alike become one:
 *
 * - aggregates of the same rows by the same keys: the one that stays has the aggregates of both;
 * - any other fold only if it would hold the very same rows, and is the result of no query.
 *
 * Readers of the other one read the one that stays, through a projection of its columns. The rows
 * of a fold that stays, and their order, are what they were: aggregates emit in the order of their
 * keys' hashes, and the keys are the same.
 */
#ifndef ENGINE_SQL_PLAN_SHARE_H
#define ENGINE_SQL_PLAN_SHARE_H

#include "engine/sql/plan_builder.h"

MUST_USE status planner_share(struct planner *planner, struct plan_query *queries,
                              uint32_t query_count, struct error *err);

#endif
