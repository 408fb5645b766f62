/* SPDX-License-Identifier: Apache-2.0 */
/* plan_simplify.h - the same answer for less work per row.
 *
 * Called when the pipelines and folds of all queries are known, before equal ones are shared:
 *
 * - year(x) >= 2024 and its like become comparisons of x itself;
 * - a group key that only writes a value as text (strftime, a CAST) is that value while rows are
 *   grouped, and written once per group.
 *
 * Both are exact: the same rows, the same groups. The order in which an aggregate emits its groups
 * follows the keys it has.
 */
#ifndef ENGINE_SQL_PLAN_SIMPLIFY_H
#define ENGINE_SQL_PLAN_SIMPLIFY_H

#include "engine/sql/plan_builder.h"

MUST_USE status planner_simplify(struct planner *planner, struct error *err);

#endif
