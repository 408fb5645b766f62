/* early_filter.c - when it is allowed, and when it pays.
 *
 * Both sides are prices per row as expr_cost gives them: what a row that is left out spares,
 * against what a row that is asked costs. From time to time rows are sifted all the same, and what
 * was long ago counts less and less: another part of the file may be different.
 */
#include "engine/exec/early_filter.h"

#include "engine/base/assert.h"

enum {
    BLOOM_COST = 6,     /* To hash a key and look at the Bloom filter. */
    BATCHES_APART = 32, /* Between two tries while it does not pay. */
    ROWS_REMEMBERED = 1 << 16
};

struct early_filter {
    const uint32_t *costs; /* By condition. */
    uint32_t count;
    uint32_t first_free; /* From here on no condition keeps its place. */
    uint32_t cost;       /* Of sifting. */
    uint32_t batches_left;
    uint64_t asked_count;
    uint64_t left_count;
};

static bool is_filtering_probe(const struct op *op)
{
    return op->kind == OP_PROBE && op->probe != PROBE_FETCH && !op->keep_unmatched;
}

static bool begins_well(const struct pipeline *pipeline)
{
    return pipeline->op_count > EARLY_FILTER_PROBE &&
           pipeline->ops[EARLY_FILTER_CONDITIONS].kind == OP_FILTER &&
           pipeline->ops[EARLY_FILTER_PROJECT].kind == OP_PROJECT &&
           is_filtering_probe(&pipeline->ops[EARLY_FILTER_PROBE]);
}

static uint32_t key_cost(const struct pipeline *pipeline)
{
    const struct op *probe = &pipeline->ops[EARLY_FILTER_PROBE];
    uint32_t cost = BLOOM_COST;
    for (uint32_t i = 0; i < probe->key_count; i++) {
        cost += expr_cost(pipeline->ops[EARLY_FILTER_PROJECT].exprs[probe->key_columns[i]]);
    }
    return cost;
}

status early_filter_create(const struct pipeline *pipeline, struct arena *arena,
                           struct early_filter **out_filter, struct error *err)
{
    *out_filter = NULL;
    if (!begins_well(pipeline)) return STATUS_OK;
    const struct op *filter = &pipeline->ops[EARLY_FILTER_CONDITIONS];
    const struct op *project = &pipeline->ops[EARLY_FILTER_PROJECT];
    for (uint32_t i = 0; i < project->expr_count; i++) {
        if (expr_keeps_its_place(project->exprs[i])) return STATUS_OK;
    }
    struct early_filter *early = arena_new(arena, struct early_filter);
    uint32_t *costs = arena_array(arena, uint32_t, filter->expr_count + 1);
    if (early == NULL || costs == NULL) return error_memory(err);
    *early = (struct early_filter){
        .costs = costs, .count = filter->expr_count, .cost = key_cost(pipeline)};
    for (uint32_t i = 0; i < filter->expr_count; i++) {
        costs[i] = expr_cost(filter->exprs[i]);
        if (expr_keeps_its_place(filter->exprs[i])) early->first_free = i + 1;
    }
    *out_filter = early;
    return STATUS_OK;
}

/* What the conditions from this one on cost. */
static uint64_t cost_from(const struct early_filter *early, uint32_t condition, const bool *known)
{
    uint64_t cost = 0;
    for (uint32_t i = condition; i < early->count; i++) {
        if (!known[i]) cost += early->costs[i];
    }
    return cost;
}

/* Conditions that cost less than sifting come before it: they are the better Bloom filter. */
bool early_filter_is_due(struct early_filter *early, uint32_t condition, const bool *known)
{
    if (early == NULL || condition < early->first_free) return false;
    if (early->costs[condition] <= early->cost) return false;
    uint64_t spared = (early->asked_count - early->left_count) * cost_from(early, condition, known);
    if (spared > early->asked_count * early->cost) return true;
    if (early->batches_left == 0) {
        early->batches_left = BATCHES_APART;
        return true;
    }
    early->batches_left--;
    return false;
}

void early_filter_note(struct early_filter *early, uint32_t asked_count, uint32_t left_count)
{
    ASSERT(left_count <= asked_count);
    if (early->asked_count > ROWS_REMEMBERED) {
        early->asked_count /= 2;
        early->left_count /= 2;
    }
    early->asked_count += asked_count;
    early->left_count += left_count;
}
