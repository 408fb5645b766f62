/* planner.h - from relations to scans, pipelines, folds and phases. */
#ifndef SQL_PLANNER_H
#define SQL_PLANNER_H

#include "base/error.h"
#include "plan/plan.h"
#include "sql/relation.h"

MUST_USE status plan_build(struct catalog *catalog, const struct bound_query *queries,
                           uint32_t query_count, struct plan **out_plan, struct error *err);

#endif
