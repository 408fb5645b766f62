/* early_filter.c - when it is allowed, and when it pays.
 *
 * Both sides are prices per row as expr_cost gives them: what a row that is left out spares,
 * against what a row that is asked costs. From time to time rows are sifted all the same, and what
 * was long ago counts less and less: another part of the file may be different.
 */
#include "engine/exec/early_filter.h"

#include "engine/base/assert.h"

enum {
    SIEVE_COST = 6,     /* To hash a key and look at the sieve. */
    BATCHES_APART = 32, /* Between two tries while it does not pay. */
    ROWS_REMEMBERED = 1 << 16
};

struct early_sift {
    const uint32_t *costs; /* By condition. */
    uint32_t count;
    uint32_t first_free; /* From here on no condition keeps its place. */
    uint32_t cost;       /* Of sifting. */
    uint32_t batches_left;
    uint64_t asked_count;
    uint64_t left_count;
};

static bool is_sifting_probe(const struct op *op)
{
    return op->kind == OP_PROBE && op->probe != PROBE_FETCH && !op->keep_unmatched;
}

static bool begins_well(const struct pipeline *pipeline)
{
    return pipeline->op_count > EARLY_SIFT_PROBE &&
           pipeline->ops[EARLY_SIFT_FILTER].kind == OP_FILTER &&
           pipeline->ops[EARLY_SIFT_PROJECT].kind == OP_PROJECT &&
           is_sifting_probe(&pipeline->ops[EARLY_SIFT_PROBE]);
}

static uint32_t key_cost(const struct pipeline *pipeline)
{
    const struct op *probe = &pipeline->ops[EARLY_SIFT_PROBE];
    uint32_t cost = SIEVE_COST;
    for (uint32_t i = 0; i < probe->key_count; i++) {
        cost += expr_cost(pipeline->ops[EARLY_SIFT_PROJECT].exprs[probe->key_columns[i]]);
    }
    return cost;
}

status early_sift_create(const struct pipeline *pipeline, struct arena *arena,
                         struct early_sift **out_sift, struct error *err)
{
    *out_sift = NULL;
    if (!begins_well(pipeline)) return STATUS_OK;
    const struct op *filter = &pipeline->ops[EARLY_SIFT_FILTER];
    const struct op *project = &pipeline->ops[EARLY_SIFT_PROJECT];
    for (uint32_t i = 0; i < project->expr_count; i++) {
        if (expr_keeps_its_place(project->exprs[i])) return STATUS_OK;
    }
    struct early_sift *sift = arena_new(arena, struct early_sift);
    uint32_t *costs = arena_array(arena, uint32_t, filter->expr_count + 1);
    if (sift == NULL || costs == NULL) return error_memory(err);
    *sift = (struct early_sift){
        .costs = costs, .count = filter->expr_count, .cost = key_cost(pipeline)};
    for (uint32_t i = 0; i < filter->expr_count; i++) {
        costs[i] = expr_cost(filter->exprs[i]);
        if (expr_keeps_its_place(filter->exprs[i])) sift->first_free = i + 1;
    }
    *out_sift = sift;
    return STATUS_OK;
}

/* What the conditions from this one on cost. */
static uint64_t cost_from(const struct early_sift *sift, uint32_t condition, const bool *known)
{
    uint64_t cost = 0;
    for (uint32_t i = condition; i < sift->count; i++) {
        if (!known[i]) cost += sift->costs[i];
    }
    return cost;
}

/* Conditions that cost less than sifting come before it: they are the better sieve. */
bool early_sift_is_due(struct early_sift *sift, uint32_t condition, const bool *known)
{
    if (sift == NULL || condition < sift->first_free) return false;
    if (sift->costs[condition] <= sift->cost) return false;
    uint64_t spared = (sift->asked_count - sift->left_count) * cost_from(sift, condition, known);
    if (spared > sift->asked_count * sift->cost) return true;
    if (sift->batches_left == 0) {
        sift->batches_left = BATCHES_APART;
        return true;
    }
    sift->batches_left--;
    return false;
}

void early_sift_note(struct early_sift *sift, uint32_t asked_count, uint32_t left_count)
{
    ASSERT(left_count <= asked_count);
    if (sift->asked_count > ROWS_REMEMBERED) {
        sift->asked_count /= 2;
        sift->left_count /= 2;
    }
    sift->asked_count += asked_count;
    sift->left_count += left_count;
}
