/* SPDX-License-Identifier: Apache-2.0 */
/* early_filter.c - when it is allowed, and when it pays.
 *
 * Both sides of the comparison are costs per row as expr_cost gives them: what a row that is left
 * out saves, against what asking the filter costs for a row. While it does not pay, one batch in
 * BATCHES_APART is filtered all the same, and old counts are halved: another part of the file may
 * be different.
 */
#include "engine/exec/early_filter.h"

#include "engine/base/assert.h"

enum {
    FILTER_COST = 6,    /* To hash a key and ask the filter. */
    BATCHES_APART = 32, /* Between two trials while it does not pay. */
    ROWS_REMEMBERED = 1 << 16
};

struct early_filter {
    const uint32_t *costs; /* By condition. */
    uint32_t count;
    uint32_t first_free;   /* From here on no condition keeps its place. */
    uint32_t cost;         /* Of asking the filter. */
    uint32_t batches_left; /* Until the next trial. */
    uint64_t asked_count;  /* Rows so far, */
    uint64_t left_count;   /* and how many of them got through. */
};

static bool is_filtering_probe(const struct op *op)
{
    return op->kind == OP_PROBE && op->probe != PROBE_FETCH && !op->keep_unmatched;
}

static bool has_shape(const struct pipeline *pipeline)
{
    return pipeline->op_count > EARLY_FILTER_PROBE &&
           pipeline->ops[EARLY_FILTER_CONDITIONS].kind == OP_FILTER &&
           pipeline->ops[EARLY_FILTER_PROJECT].kind == OP_PROJECT &&
           is_filtering_probe(&pipeline->ops[EARLY_FILTER_PROBE]);
}

static uint32_t key_cost(const struct pipeline *pipeline)
{
    const struct op *probe = &pipeline->ops[EARLY_FILTER_PROBE];
    uint32_t cost = FILTER_COST;
    for (uint32_t i = 0; i < probe->key_count; i++) {
        cost += expr_cost(pipeline->ops[EARLY_FILTER_PROJECT].exprs[probe->key_columns[i]]);
    }
    return cost;
}

status early_filter_create(const struct pipeline *pipeline, struct arena *arena,
                           struct early_filter **out_filter, struct error *err)
{
    *out_filter = NULL;
    if (!has_shape(pipeline)) return STATUS_OK;
    const struct op *conditions = &pipeline->ops[EARLY_FILTER_CONDITIONS];
    const struct op *project = &pipeline->ops[EARLY_FILTER_PROJECT];
    for (uint32_t i = 0; i < project->expr_count; i++) {
        if (expr_keeps_its_place(project->exprs[i])) return STATUS_OK;
    }
    struct early_filter *filter = arena_new(arena, struct early_filter);
    uint32_t *costs = arena_array(arena, uint32_t, conditions->expr_count + 1);
    if (filter == NULL || costs == NULL) return error_memory(err);
    *filter = (struct early_filter){
        .costs = costs, .count = conditions->expr_count, .cost = key_cost(pipeline)};
    for (uint32_t i = 0; i < conditions->expr_count; i++) {
        costs[i] = expr_cost(conditions->exprs[i]);
        if (expr_keeps_its_place(conditions->exprs[i])) filter->first_free = i + 1;
    }
    *out_filter = filter;
    return STATUS_OK;
}

/* What the conditions from this one on cost. */
static uint64_t cost_from(const struct early_filter *filter, uint32_t condition, const bool *known)
{
    uint64_t cost = 0;
    for (uint32_t i = condition; i < filter->count; i++) {
        if (!known[i]) cost += filter->costs[i];
    }
    return cost;
}

/* Conditions that cost less than asking the filter come before it. */
bool early_filter_is_due(struct early_filter *filter, uint32_t condition, const bool *known)
{
    if (filter == NULL || condition < filter->first_free) return false;
    if (filter->costs[condition] <= filter->cost) return false;
    uint64_t saved =
        (filter->asked_count - filter->left_count) * cost_from(filter, condition, known);
    if (saved > filter->asked_count * filter->cost) return true;
    if (filter->batches_left == 0) {
        filter->batches_left = BATCHES_APART;
        return true;
    }
    filter->batches_left--;
    return false;
}

void early_filter_note(struct early_filter *filter, uint32_t asked_count, uint32_t left_count)
{
    ASSERT(left_count <= asked_count);
    if (filter->asked_count > ROWS_REMEMBERED) {
        filter->asked_count /= 2;
        filter->left_count /= 2;
    }
    filter->asked_count += asked_count;
    filter->left_count += left_count;
}
