/* SPDX-License-Identifier: Apache-2.0 */
/* plan_phases.c - the last step of planning: phases, scans, and the plan itself.
 *
 * A pipeline over a table runs one phase after the folds it uses as build sides or scalars. All
 * pipelines over one table in one phase share a scan. Folds were made in the order of their
 * dependencies, so one walk finds every phase.
 */
#include "engine/base/assert.h"
#include "engine/sql/bind_expr.h"
#include "engine/sql/plan_builder.h"

struct phase_search {
    const struct planner *planner;
    uint32_t after; /* One more than the latest phase of a fold in use. */
};

static void search_fold(struct phase_search *search, uint32_t fold)
{
    uint32_t phase = search->planner->folds.items[fold].phase + 1;
    if (phase > search->after) search->after = phase;
}

static void search_scalar(const struct expr *expr, void *context)
{
    if (expr->kind == EXPR_SCALAR) search_fold(context, expr->fold);
}

static uint32_t pipeline_phase(const struct planner *planner, const struct pipeline *pipeline)
{
    struct phase_search search = {.planner = planner};
    for (uint32_t i = 0; i < pipeline->op_count; i++) {
        const struct op *op = &pipeline->ops[i];
        if (op->kind == OP_PROBE) search_fold(&search, op->side);
        for (uint32_t j = 0; j < op->expr_count; j++) {
            expr_visit(op->exprs[j], search_scalar, &search);
        }
    }
    if (pipeline->source_kind == SOURCE_SCAN) return search.after;
    /* Between folds nothing is read: it can happen at the end of the same phase. */
    uint32_t phase = planner->folds.items[pipeline->source].phase;
    return search.after > phase + 1 ? search.after - 1 : phase;
}

static uint32_t find_phases(struct planner *planner)
{
    uint32_t phase_count = 1;
    for (uint32_t i = 0; i < planner->folds.count; i++) {
        struct fold *fold = &planner->folds.items[i];
        for (uint32_t j = 0; j < planner->pipelines.count; j++) {
            struct pipeline *pipeline = &planner->pipelines.items[j];
            if (pipeline->target != i) continue;
            pipeline->phase = pipeline_phase(planner, pipeline);
            if (pipeline->phase > fold->phase) fold->phase = pipeline->phase;
        }
        if (fold->phase + 1 > phase_count) phase_count = fold->phase + 1;
    }
    return phase_count;
}

static void mark_column(const struct expr *expr, void *context)
{
    if (expr->kind == EXPR_COLUMN) ((bool *)context)[expr->column] = true;
}

/* Up to its first projection a pipeline speaks of the table's columns. */
static void mark_used(const struct pipeline *pipeline, bool *used)
{
    for (uint32_t i = 0; i < pipeline->op_count; i++) {
        const struct op *op = &pipeline->ops[i];
        ASSERT(op->kind == OP_FILTER || op->kind == OP_PROJECT);
        for (uint32_t j = 0; j < op->expr_count; j++) {
            expr_visit(op->exprs[j], mark_column, used);
        }
        if (op->kind == OP_PROJECT) return;
    }
}

static status scan_for(struct planner *planner, struct plan *plan, struct pipeline *pipeline,
                       struct error *err)
{
    uint32_t table = pipeline->source;
    struct scan *scan = NULL;
    for (uint32_t i = 0; i < plan->scan_count; i++) {
        if (plan->scans[i].table == table && plan->scans[i].phase == pipeline->phase) {
            scan = &plan->scans[i];
        }
    }
    if (scan == NULL) {
        bool *used =
            arena_array(planner->arena, bool, planner->catalog->tables[table].schema.count + 1);
        uint32_t *pipelines = arena_array(planner->arena, uint32_t, planner->pipelines.count);
        if (used == NULL || pipelines == NULL) return binder_memory(err);
        scan = &plan->scans[plan->scan_count];
        *scan = (struct scan){.id = plan->scan_count++,
                              .table = table,
                              .phase = pipeline->phase,
                              .used = used,
                              .pipelines = pipelines};
    }
    /* Written here only; the plan is read-only from the moment it is handed out. */
    ((uint32_t *)(uintptr_t)scan->pipelines)[scan->pipeline_count++] = pipeline->id;
    mark_used(pipeline, (bool *)(uintptr_t)scan->used);
    pipeline->source = scan->id;
    return STATUS_OK;
}

/* Leaves out tables that no scan reads and renumbers the scans' tables. */
static status keep_tables(struct planner *planner, struct plan *plan, struct error *err)
{
    struct catalog *catalog = planner->catalog;
    uint32_t *places = arena_array(planner->arena, uint32_t, catalog->table_count + 1);
    plan->tables = arena_array(planner->arena, struct table, catalog->table_count + 1);
    if (places == NULL || plan->tables == NULL) return binder_memory(err);
    for (uint32_t table = 0; table < catalog->table_count; table++) {
        bool used = false;
        for (uint32_t i = 0; i < plan->scan_count; i++) {
            used = used || plan->scans[i].table == table;
        }
        if (!used) continue;
        places[table] = plan->table_count;
        plan->tables[plan->table_count++] = catalog->tables[table];
    }
    for (uint32_t i = 0; i < plan->scan_count; i++) {
        plan->scans[i].table = places[plan->scans[i].table];
    }
    return STATUS_OK;
}

/* ---- for whom ---- */

static void mark_scalar(const struct expr *expr, void *context)
{
    if (expr->kind == EXPR_SCALAR) ((bool *)context)[expr->fold] = true;
}

void planner_mark_used(const struct op *ops, uint32_t op_count, bool *marked)
{
    for (uint32_t i = 0; i < op_count; i++) {
        const struct op *op = &ops[i];
        if (op->kind == OP_PROBE) marked[op->side] = true;
        for (uint32_t j = 0; j < op->expr_count; j++) {
            expr_visit(op->exprs[j], mark_scalar, marked);
        }
    }
}

/* Pipelines stand in the order of their targets. */
void planner_mark_folds(const struct planner *planner, uint32_t fold, bool *marked)
{
    marked[fold] = true;
    for (uint32_t i = planner->pipelines.count; i > 0; i--) {
        const struct pipeline *pipeline = &planner->pipelines.items[i - 1];
        ASSERT(i == planner->pipelines.count || pipeline->target <= pipeline[1].target);
        if (!marked[pipeline->target]) continue;
        if (pipeline->source_kind == SOURCE_FOLD) marked[pipeline->source] = true;
        planner_mark_used(pipeline->ops, pipeline->op_count, marked);
    }
}

static status name_add(struct planner *planner, struct text *names, struct text name,
                       struct error *err)
{
    if (names->size == 0) {
        *names = name;
        return STATUS_OK;
    }
    uint32_t size = names->size + 2 + name.size;
    char *bytes = arena_array(planner->arena, char, size);
    if (bytes == NULL) return binder_memory(err);
    memcpy(bytes, names->bytes, names->size);
    memcpy(bytes + names->size, ", ", 2);
    memcpy(bytes + names->size + 2, name.bytes, name.size);
    *names = (struct text){bytes, size};
    return STATUS_OK;
}

static status name_queries(struct planner *planner, const struct plan_query *queries,
                           uint32_t query_count, struct error *err)
{
    bool *marked = arena_array(planner->arena, bool, planner->folds.count + 1);
    if (marked == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < query_count; i++) {
        memset(marked, 0, planner->folds.count);
        planner_mark_folds(planner, queries[i].result_fold, marked);
        for (uint32_t j = 0; j < planner->folds.count; j++) {
            if (!marked[j]) continue;
            TRY(name_add(planner, &planner->folds.items[j].queries, queries[i].name, err));
        }
    }
    for (uint32_t i = 0; i < planner->pipelines.count; i++) {
        planner->pipelines.items[i].queries =
            planner->folds.items[planner->pipelines.items[i].target].queries;
    }
    return STATUS_OK;
}

status planner_finish(struct planner *planner, struct plan_query *queries, uint32_t query_count,
                      struct plan **out_plan, struct error *err)
{
    struct plan *plan = arena_new(planner->arena, struct plan);
    if (plan == NULL || planner->names_failed) return binder_memory(err);
    TRY(name_queries(planner, queries, query_count, err));
    plan->phase_count = find_phases(planner);
    plan->scans = arena_array(planner->arena, struct scan, planner->pipelines.count + 1);
    if (plan->scans == NULL) return binder_memory(err);
    for (uint32_t phase = 0; phase < plan->phase_count; phase++) {
        for (uint32_t i = 0; i < planner->pipelines.count; i++) {
            struct pipeline *pipeline = &planner->pipelines.items[i];
            if (pipeline->source_kind != SOURCE_SCAN || pipeline->phase != phase) continue;
            TRY(scan_for(planner, plan, pipeline, err));
        }
    }
    TRY(keep_tables(planner, plan, err));
    plan->pipelines = planner->pipelines.items;
    plan->pipeline_count = planner->pipelines.count;
    plan->folds = planner->folds.items;
    plan->fold_count = planner->folds.count;
    plan->queries = queries;
    plan->query_count = query_count;
    *out_plan = plan;
    return STATUS_OK;
}
