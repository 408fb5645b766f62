/* SPDX-License-Identifier: Apache-2.0 */
/* planner.h - from relations to scans, pipelines, folds and phases. */
#ifndef ENGINE_SQL_PLANNER_H
#define ENGINE_SQL_PLANNER_H

#include "engine/base/error.h"
#include "engine/plan/plan.h"
#include "engine/sql/relation.h"

MUST_USE status plan_build(struct catalog *catalog, const struct bound_query *queries,
                           uint32_t query_count, struct plan **out_plan, struct error *err);

#endif
