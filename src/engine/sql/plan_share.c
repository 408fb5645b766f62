/* SPDX-License-Identifier: Apache-2.0 */
/* plan_share.c - finds folds that are fed alike, in one walk.
 *
 * Folds stand behind those they depend on. So when a fold's turn comes, whatever it reads has found
 * its place already, and it is enough to compare it with the folds before it: two chains of
 * operators are walked side by side, and a third one grows that does what both do. For each of the
 * two it is known where its columns stand in the common batch; expressions are the same if they are
 * equal in terms of the common batch. Columns that only one of the two carries are appended.
 *
 * A fold that gives way keeps its number until the end; then those that are left are numbered anew.
 */
#include "engine/sql/plan_share.h"

#include "engine/base/assert.h"
#include "engine/sql/bind_expr.h"

struct sharing {
    struct planner *planner;
    struct arena *arena;
    uint32_t *feeders;       /* By fold: the first of its pipelines; they follow each other. */
    uint32_t *folds;         /* By fold: the one that does its work; itself unless it gave way. */
    const uint32_t **places; /* By fold that gave way: where its columns stand in the other. */
    bool *is_result;
};

/* Two pipelines side by side, and the one that does the work of both. */
struct shared_chain {
    struct arena *arena;
    const struct pipeline *pipelines[2];
    uint32_t *places[2]; /* Where the columns of each stand in the common batch. */
    struct schema input;
    struct schema common; /* What the operators so far give. */
    struct op *ops;
    uint32_t op_count;
    uint32_t column_capacity;
    bool failed; /* There was no memory. */
};

static bool no_memory(struct shared_chain *chain)
{
    chain->failed = true;
    return false;
}

/* ---- columns ---- */

static const struct expr *common_expr(struct shared_chain *chain, uint32_t side,
                                      const struct expr *expr)
{
    const struct expr *common = expr_renumber(chain->arena, expr, chain->places[side], NULL);
    if (common == NULL) chain->failed = true;
    return common;
}

static bool same_columns(const struct shared_chain *chain, const uint32_t *first,
                         const uint32_t *second, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (chain->places[0][first[i]] != chain->places[1][second[i]]) return false;
    }
    return true;
}

static bool same_type(struct type a, struct type b)
{
    return type_equal(a, b) && a.precision == b.precision;
}

/* Room for the columns of both. */
static struct field *new_fields(struct shared_chain *chain)
{
    struct field *fields = arena_array(chain->arena, struct field, chain->column_capacity + 1);
    if (fields == NULL) chain->failed = true;
    return fields;
}

static void append_op(struct shared_chain *chain, struct op op)
{
    op.output = chain->common;
    chain->ops[chain->op_count++] = op;
}

/* ---- operators ---- */

static bool any_can_fail(const struct op *op)
{
    for (uint32_t i = 0; i < op->expr_count; i++) {
        if (expr_can_fail(op->exprs[i])) return true;
    }
    return false;
}

/* The same conditions; in the same order where one can fail. */
static bool share_filter(struct shared_chain *chain, const struct op *first,
                         const struct op *second)
{
    uint32_t count = first->expr_count;
    const struct expr **exprs = arena_array(chain->arena, const struct expr *, count + 1);
    bool *taken = arena_array(chain->arena, bool, count + 1);
    if (exprs == NULL || taken == NULL) chain->failed = true;
    if (chain->failed || second->expr_count != count) return false;
    for (uint32_t i = 0; i < count; i++) {
        exprs[i] = common_expr(chain, 0, first->exprs[i]);
        if (exprs[i] == NULL) return false;
    }
    bool in_order = any_can_fail(first);
    for (uint32_t i = 0; i < count; i++) {
        const struct expr *expr = common_expr(chain, 1, second->exprs[i]);
        if (expr == NULL) return false;
        uint32_t found = in_order ? i : 0;
        while (!in_order && found < count && (taken[found] || !expr_equal(exprs[found], expr))) {
            found++;
        }
        if (found == count || !expr_equal(exprs[found], expr)) return false;
        taken[found] = true;
    }
    append_op(chain, (struct op){.kind = OP_FILTER, .exprs = exprs, .expr_count = count});
    return true;
}

/* What both compute, each expression once. */
static bool share_project(struct shared_chain *chain, const struct op *first,
                          const struct op *second)
{
    const struct op *ops[2] = {first, second};
    uint32_t *places[2];
    uint32_t capacity = first->expr_count + second->expr_count;
    uint32_t count = 0;
    const struct expr **exprs = arena_array(chain->arena, const struct expr *, capacity + 1);
    struct field *fields = new_fields(chain);
    if (exprs == NULL || chain->failed) return no_memory(chain);
    for (uint32_t side = 0; side < 2; side++) {
        places[side] = arena_array(chain->arena, uint32_t, chain->column_capacity + 1);
        if (places[side] == NULL) return no_memory(chain);
        for (uint32_t i = 0; i < ops[side]->expr_count; i++) {
            const struct expr *expr = common_expr(chain, side, ops[side]->exprs[i]);
            if (expr == NULL) return false;
            uint32_t place = 0;
            while (place < count && !expr_equal(exprs[place], expr)) {
                place++;
            }
            places[side][i] = place;
            if (place < count) continue;
            fields[count] = ops[side]->output.fields[i];
            exprs[count++] = expr;
        }
    }
    chain->places[0] = places[0];
    chain->places[1] = places[1];
    chain->common = (struct schema){.fields = fields, .count = count};
    append_op(chain, (struct op){.kind = OP_PROJECT, .exprs = exprs, .expr_count = count});
    return true;
}

/* Appends `count` columns to the common batch, which both have behind their own. */
static bool share_columns(struct shared_chain *chain, const struct op *first,
                          const struct op *second, uint32_t count)
{
    struct field *fields = new_fields(chain);
    if (fields == NULL) return false;
    uint32_t common = chain->common.count;
    uint32_t starts[2] = {first->output.count - count, second->output.count - count};
    for (uint32_t i = 0; i < common; i++) {
        fields[i] = chain->common.fields[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        fields[common + i] = first->output.fields[starts[0] + i];
        chain->places[0][starts[0] + i] = common + i;
        chain->places[1][starts[1] + i] = common + i;
    }
    chain->common = (struct schema){.fields = fields, .count = common + count};
    return true;
}

static bool share_unnest(struct shared_chain *chain, const struct op *first,
                         const struct op *second)
{
    const struct expr **exprs = arena_array(chain->arena, const struct expr *, 1);
    const struct expr *other = common_expr(chain, 1, second->exprs[0]);
    if (exprs == NULL || other == NULL) return no_memory(chain);
    exprs[0] = common_expr(chain, 0, first->exprs[0]);
    if (exprs[0] == NULL || !expr_equal(exprs[0], other)) return false;
    if (!share_columns(chain, first, second, 1)) return false;
    append_op(chain, (struct op){.kind = OP_UNNEST, .exprs = exprs, .expr_count = 1});
    return true;
}

static bool share_probe(struct shared_chain *chain, const struct op *first, const struct op *second,
                        uint32_t side_columns)
{
    if (first->side != second->side || first->key_count != second->key_count ||
        first->keep_unmatched != second->keep_unmatched || first->probe != second->probe ||
        !duplicate_set_equal(&first->duplicates, &second->duplicates) ||
        !same_columns(chain, first->key_columns, second->key_columns, first->key_count)) {
        return false;
    }
    uint32_t *keys = arena_array(chain->arena, uint32_t, first->key_count + 1);
    if (keys == NULL) return no_memory(chain);
    for (uint32_t i = 0; i < first->key_count; i++) {
        keys[i] = chain->places[0][first->key_columns[i]];
    }
    uint32_t more = first->probe == PROBE_SEMI ? 0 : side_columns;
    if (first->probe == PROBE_ROW) more = 1;
    if (!share_columns(chain, first, second, more)) return false;
    struct op op = *first;
    op.key_columns = keys;
    append_op(chain, op);
    return true;
}

static bool same_ranking(const struct shared_chain *chain, const struct ranking *first,
                         const struct ranking *second)
{
    if (first->limit != second->limit || first->key_count != second->key_count ||
        first->partition_count != second->partition_count) {
        return false;
    }
    for (uint32_t i = 0; i < first->key_count; i++) {
        const struct sort_key *a = &first->keys[i];
        const struct sort_key *b = &second->keys[i];
        if (a->descending != b->descending || a->nulls_first != b->nulls_first ||
            !same_columns(chain, &a->column, &b->column, 1)) {
            return false;
        }
    }
    return same_columns(chain, first->partition_columns, second->partition_columns,
                        first->partition_count);
}

/* Whether operator `index` can be one for both; if so it is appended. Aggregates are left to the
 * callers, and rankings are only compared. */
static bool share_op(struct shared_chain *chain, const struct sharing *sharing, uint32_t index)
{
    const struct op *first = &chain->pipelines[0]->ops[index];
    const struct op *second = &chain->pipelines[1]->ops[index];
    if (first->kind != second->kind) return false;
    switch (first->kind) {
    case OP_FILTER:
        return share_filter(chain, first, second);
    case OP_PROJECT:
        return share_project(chain, first, second);
    case OP_UNNEST:
        return share_unnest(chain, first, second);
    case OP_PROBE:
        return share_probe(chain, first, second,
                           sharing->planner->folds.items[first->side].output.count);
    case OP_RANK:
        return same_ranking(chain, first->ranking, second->ranking);
    case OP_AGGREGATE:
        break;
    }
    return false;
}

/* Begins where both read the same batches; false: they don't. */
static bool chain_begin(struct shared_chain *chain, const struct sharing *sharing,
                        const struct pipeline *first, const struct pipeline *second)
{
    if (first->source_kind != second->source_kind || first->source != second->source ||
        first->op_count != second->op_count || first->row_limit != second->row_limit ||
        first->shard_keys != second->shard_keys) {
        return false;
    }
    *chain =
        (struct shared_chain){.arena = sharing->arena,
                              .pipelines = {first, second},
                              .input = first->input,
                              .ops = arena_array(sharing->arena, struct op, first->op_count + 1)};
    /* A fold may have got more columns since the first one was made. */
    if (second->input.count > first->input.count) chain->input = second->input;
    chain->common = chain->input;
    chain->column_capacity = chain->common.count;
    for (uint32_t i = 0; i < first->op_count; i++) {
        uint32_t wanted = first->ops[i].output.count + second->ops[i].output.count;
        if (wanted > chain->column_capacity) chain->column_capacity = wanted;
    }
    for (uint32_t side = 0; side < 2; side++) {
        chain->places[side] = arena_array(sharing->arena, uint32_t, chain->column_capacity + 1);
        if (chain->places[side] == NULL) return no_memory(chain);
        for (uint32_t i = 0; i < chain->common.count; i++) {
            chain->places[side][i] = i;
        }
    }
    if (chain->ops == NULL) return no_memory(chain);
    return true;
}

/* ---- aggregates ---- */

static bool has_input(const struct aggregate *aggregate)
{
    return aggregate->kind != AGGREGATE_COUNT_ROWS;
}

static bool has_by(const struct aggregate *aggregate)
{
    return aggregate->kind == AGGREGATE_ARG_MIN || aggregate->kind == AGGREGATE_ARG_MAX;
}

static bool same_aggregate(const struct aggregate *a, const struct aggregate *b)
{
    return a->kind == b->kind && same_type(a->result_type, b->result_type) &&
           (!has_input(a) ||
            (same_type(a->input_type, b->input_type) && a->input_column == b->input_column)) &&
           (!has_by(a) || (same_type(a->by_type, b->by_type) && a->by_column == b->by_column));
}

struct grouping_union {
    struct aggregate *aggregates;
    uint32_t count;
    struct field *partial;
    uint32_t partial_count;
    struct field *result;
    uint32_t key_count;
};

/* Its number among all. */
static uint32_t union_add(struct grouping_union *all, const struct grouping *from, uint32_t index,
                          const uint32_t *places)
{
    struct aggregate aggregate = from->aggregates[index];
    if (has_input(&aggregate)) aggregate.input_column = places[aggregate.input_column];
    if (has_by(&aggregate)) aggregate.by_column = places[aggregate.by_column];
    uint32_t found = 0;
    while (found < all->count && !same_aggregate(&all->aggregates[found], &aggregate)) {
        found++;
    }
    if (found < all->count) return found;
    const struct field *state = &from->partial.fields[aggregate.state_column];
    aggregate.state_column = all->partial_count;
    for (uint32_t i = 0; i < aggregate.state_width; i++) {
        all->partial[all->partial_count++] = state[i];
    }
    all->result[all->key_count + found] = from->result.fields[from->key_count + index];
    all->aggregates[all->count++] = aggregate;
    return found;
}

/* The aggregates of both by their common keys, and the numbers that the second one's have then. */
static const struct grouping *share_grouping(struct shared_chain *chain,
                                             const struct grouping *first,
                                             const struct grouping *second, uint32_t **out_numbers)
{
    uint32_t keys = first->key_count;
    if (keys != second->key_count ||
        !same_columns(chain, first->key_columns, second->key_columns, keys)) {
        return NULL;
    }
    uint32_t count = first->aggregate_count + second->aggregate_count;
    uint32_t partial = first->partial.count + second->partial.count;
    struct grouping *grouping = arena_new(chain->arena, struct grouping);
    uint32_t *key_columns = arena_array(chain->arena, uint32_t, keys + 1);
    uint32_t *numbers = arena_array(chain->arena, uint32_t, second->aggregate_count + 1);
    struct grouping_union all = {
        .aggregates = arena_array(chain->arena, struct aggregate, count + 1),
        .partial = arena_array(chain->arena, struct field, partial + 1),
        .partial_count = keys,
        .result = arena_array(chain->arena, struct field, keys + count + 1),
        .key_count = keys,
    };
    if (grouping == NULL || key_columns == NULL || numbers == NULL || all.aggregates == NULL ||
        all.partial == NULL || all.result == NULL) {
        chain->failed = true;
        return NULL;
    }
    for (uint32_t i = 0; i < keys; i++) {
        key_columns[i] = chain->places[0][first->key_columns[i]];
        all.partial[i] = first->partial.fields[i];
        all.result[i] = first->result.fields[i];
    }
    for (uint32_t i = 0; i < first->aggregate_count; i++) {
        /* A reader of the first one finds every column where it was. */
        if (union_add(&all, first, i, chain->places[0]) != i) return NULL;
    }
    for (uint32_t i = 0; i < second->aggregate_count; i++) {
        numbers[i] = union_add(&all, second, i, chain->places[1]);
    }
    *grouping = (struct grouping){
        .key_columns = key_columns,
        .key_count = keys,
        .aggregates = all.aggregates,
        .aggregate_count = all.count,
        .partial = {.fields = all.partial, .count = all.partial_count},
        .result = {.fields = all.result, .count = keys + all.count},
    };
    *out_numbers = numbers;
    return grouping;
}

/* Where the columns of the fold that gives way stand in the other. */
static uint32_t *output_places(struct shared_chain *chain, const struct fold *second,
                               const struct grouping *all, const uint32_t *numbers)
{
    uint32_t *places = arena_array(chain->arena, uint32_t, second->output.count + 1);
    uint32_t keys = all->key_count;
    if (places == NULL) {
        chain->failed = true;
        return NULL;
    }
    for (uint32_t i = 0; i < keys; i++) {
        places[i] = i;
    }
    for (uint32_t i = 0; i < second->grouping->aggregate_count; i++) {
        places[keys + i] = keys + numbers[i];
    }
    return places;
}

/* Lets the first fold aggregate for the second too, if it can. */
static bool share_aggregate(struct sharing *sharing, struct shared_chain *chain, struct fold *first,
                            struct fold *second)
{
    struct pipeline *pipeline = &sharing->planner->pipelines.items[sharing->feeders[first->id]];
    const struct pipeline *other = &sharing->planner->pipelines.items[sharing->feeders[second->id]];
    if (!chain_begin(chain, sharing, pipeline, other)) return false;
    uint32_t last = pipeline->op_count - 1;
    for (uint32_t i = 0; i < last; i++) {
        if (!share_op(chain, sharing, i)) return false;
    }
    uint32_t *numbers = NULL;
    const struct grouping *grouping =
        share_grouping(chain, first->grouping, second->grouping, &numbers);
    if (grouping == NULL) return false;
    sharing->places[second->id] = output_places(chain, second, grouping, numbers);
    chain->common = grouping->partial;
    append_op(chain, (struct op){.kind = OP_AGGREGATE, .grouping = grouping});
    pipeline->ops = chain->ops;
    pipeline->input = chain->input;
    pipeline->output = grouping->partial;
    if (first->grouping->aggregate_count == 0) first->label = second->label;
    first->grouping = grouping;
    first->input = grouping->partial;
    first->output = grouping->result;
    return true;
}

/* ---- other folds ---- */

/* Whether both pipelines send the same rows; then the second one is not needed. */
static bool same_pipeline(const struct sharing *sharing, struct shared_chain *chain,
                          const struct pipeline *first, const struct pipeline *second)
{
    if (first->output.count != second->output.count) return false;
    if (!chain_begin(chain, sharing, first, second)) return false;
    for (uint32_t i = 0; i < first->op_count; i++) {
        if (!share_op(chain, sharing, i)) return false;
    }
    for (uint32_t i = 0; i < first->output.count; i++) {
        if (!same_columns(chain, &i, &i, 1)) return false;
    }
    return true;
}

/* Whether the same states come in at the same places, to be merged in the same way. */
static bool same_merge(const struct grouping *first, const struct grouping *second)
{
    if (first == NULL || second == NULL) return first == second;
    if (first->key_count != second->key_count ||
        first->aggregate_count != second->aggregate_count) {
        return false;
    }
    for (uint32_t i = 0; i < first->aggregate_count; i++) {
        struct aggregate a = first->aggregates[i];
        const struct aggregate *b = &second->aggregates[i];
        a.input_column = b->input_column; /* Of rows that have been aggregated before. */
        a.by_column = b->by_column;
        if (!same_aggregate(&a, b) || a.state_column != b->state_column) return false;
    }
    return true;
}

static bool same_fold(const struct sharing *sharing, struct shared_chain *chain,
                      const struct fold *first, const struct fold *second)
{
    if (!same_merge(first->grouping, second->grouping)) return false;
    if (first->input_count != second->input_count || first->key_count != second->key_count ||
        first->inner != second->inner || first->partitioned != second->partitioned ||
        first->offset != second->offset || first->limit != second->limit ||
        first->side_keys != second->side_keys || first->is_build_side != second->is_build_side ||
        first->is_bloom != second->is_bloom || first->is_scalar != second->is_scalar) {
        return false;
    }
    for (uint32_t i = 0; i < first->input_count; i++) {
        const struct pipeline *pipelines = sharing->planner->pipelines.items;
        if (!same_pipeline(sharing, chain, &pipelines[sharing->feeders[first->id] + i],
                           &pipelines[sharing->feeders[second->id] + i])) {
            return false;
        }
    }
    return first->ranking == NULL || same_ranking(chain, first->ranking, second->ranking);
}

/* ---- readers ---- */

/* Puts a projection in front: column i of what follows is column places[i] of the source. */
static status project_first(struct sharing *sharing, struct pipeline *pipeline,
                            const uint32_t *places, struct error *err)
{
    struct schema schema = pipeline->input;
    struct op *ops = arena_array(sharing->arena, struct op, pipeline->op_count + 1);
    const struct expr **exprs = arena_array(sharing->arena, const struct expr *, schema.count + 1);
    if (ops == NULL || exprs == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < schema.count; i++) {
        uint32_t place = places == NULL ? i : places[i];
        exprs[i] = expr_column(sharing->arena, place, schema.fields[i].type);
        if (exprs[i] == NULL) return binder_memory(err);
    }
    ops[0] = (struct op){
        .kind = OP_PROJECT, .output = schema, .exprs = exprs, .expr_count = schema.count};
    if (pipeline->op_count > 0) memcpy(ops + 1, pipeline->ops, pipeline->op_count * sizeof *ops);
    pipeline->ops = ops;
    pipeline->op_count++;
    return STATUS_OK;
}

/* Copies the operators with other numbers of folds, and of columns up to the first projection. */
static status renumber_ops(struct sharing *sharing, struct pipeline *pipeline,
                           const uint32_t *columns, const uint32_t *folds, struct error *err)
{
    struct op *ops = arena_array(sharing->arena, struct op, pipeline->op_count + 1);
    if (ops == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < pipeline->op_count; i++) {
        ops[i] = pipeline->ops[i];
        if (ops[i].kind == OP_PROBE) ops[i].side = folds[ops[i].side];
        if (ops[i].expr_count == 0) continue;
        const struct expr **exprs =
            arena_array(sharing->arena, const struct expr *, ops[i].expr_count);
        if (exprs == NULL) return binder_memory(err);
        for (uint32_t j = 0; j < ops[i].expr_count; j++) {
            exprs[j] =
                expr_renumber(sharing->arena, ops[i].exprs[j], i == 0 ? columns : NULL, folds);
            if (exprs[j] == NULL) return binder_memory(err);
        }
        ops[i].exprs = exprs;
    }
    pipeline->ops = ops;
    return STATUS_OK;
}

static bool are_in_place(const uint32_t *places, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (places[i] != i) return false;
    }
    return true;
}

static bool projects_first(const struct pipeline *pipeline)
{
    return pipeline->op_count > 0 && pipeline->ops[0].kind == OP_PROJECT;
}

/* Lets a pipeline read the folds that do the work now. */
static status follow(struct sharing *sharing, struct pipeline *pipeline, struct error *err)
{
    const uint32_t *places = NULL;
    if (pipeline->source_kind == SOURCE_FOLD) {
        places = sharing->places[pipeline->source];
        pipeline->source = sharing->folds[pipeline->source];
        if (places != NULL && are_in_place(places, pipeline->input.count)) places = NULL;
        if (places != NULL && !projects_first(pipeline)) {
            TRY(project_first(sharing, pipeline, places, err));
            places = NULL;
        }
        /* What has no projection yet may need one at the end: see number_anew. */
        if (projects_first(pipeline)) {
            pipeline->input = sharing->planner->folds.items[pipeline->source].output;
        }
    }
    return renumber_ops(sharing, pipeline, places, sharing->folds, err);
}

/* ---- the walk ---- */

/* Whether rows are aggregated on the way to the fold: else partial states come from another one. */
static bool is_fed_rows(const struct sharing *sharing, const struct fold *fold)
{
    if (fold->kind != FOLD_AGGREGATE || fold->input_count != 1) return false;
    const struct pipeline *pipeline =
        &sharing->planner->pipelines.items[sharing->feeders[fold->id]];
    return pipeline->op_count > 0 && pipeline->ops[pipeline->op_count - 1].kind == OP_AGGREGATE;
}

static status share_fold(struct sharing *sharing, struct fold *fold, struct error *err)
{
    for (uint32_t i = 0; i < fold->id; i++) {
        struct fold *first = &sharing->planner->folds.items[i];
        struct shared_chain chain = {0};
        struct arena_mark mark = arena_mark(sharing->arena);
        if (sharing->folds[i] != i || first->kind != fold->kind) continue;
        if (sharing->is_result[i] || sharing->is_result[fold->id]) continue;
        bool both_fed_rows = is_fed_rows(sharing, first) && is_fed_rows(sharing, fold);
        bool shared = both_fed_rows ? share_aggregate(sharing, &chain, first, fold)
                                    : same_fold(sharing, &chain, first, fold);
        if (chain.failed) return binder_memory(err);
        if (shared) {
            sharing->folds[fold->id] = i;
            return STATUS_OK;
        }
        arena_release(sharing->arena, mark); /* There may be many to compare with. */
    }
    return STATUS_OK;
}

static status sharing_init(struct sharing *sharing, const struct plan_query *queries,
                           uint32_t query_count, struct error *err)
{
    const struct planner *planner = sharing->planner;
    uint32_t count = planner->folds.count;
    sharing->feeders = arena_array(sharing->arena, uint32_t, count + 1);
    sharing->folds = arena_array(sharing->arena, uint32_t, count + 1);
    sharing->places = arena_array(sharing->arena, const uint32_t *, count + 1);
    sharing->is_result = arena_array(sharing->arena, bool, count + 1);
    if (sharing->feeders == NULL || sharing->folds == NULL || sharing->places == NULL ||
        sharing->is_result == NULL) {
        return binder_memory(err);
    }
    for (uint32_t i = 0; i < count; i++) {
        sharing->folds[i] = i;
    }
    for (uint32_t i = 0; i < planner->pipelines.count; i++) {
        const struct pipeline *pipeline = &planner->pipelines.items[i];
        if (pipeline->target_input == 0) sharing->feeders[pipeline->target] = i;
        ASSERT(sharing->feeders[pipeline->target] + pipeline->target_input == i);
    }
    for (uint32_t i = 0; i < query_count; i++) {
        sharing->is_result[queries[i].result_fold] = true;
    }
    return STATUS_OK;
}

/* Leaves out the folds that gave way and their pipelines; the others get new numbers. */
static status number_anew(struct sharing *sharing, struct plan_query *queries, uint32_t query_count,
                          struct error *err)
{
    struct planner *planner = sharing->planner;
    uint32_t *numbers = arena_array(sharing->arena, uint32_t, planner->folds.count + 1);
    if (numbers == NULL) return binder_memory(err);
    uint32_t fold_count = 0;
    for (uint32_t i = 0; i < planner->folds.count; i++) {
        if (sharing->folds[i] != i) continue;
        numbers[i] = fold_count;
        planner->folds.items[fold_count] = planner->folds.items[i];
        planner->folds.items[fold_count].id = fold_count;
        fold_count++;
    }
    planner->folds.count = fold_count;
    uint32_t pipeline_count = 0;
    for (uint32_t i = 0; i < planner->pipelines.count; i++) {
        struct pipeline pipeline = planner->pipelines.items[i];
        if (sharing->folds[pipeline.target] != pipeline.target) continue;
        TRY(renumber_ops(sharing, &pipeline, NULL, numbers, err));
        pipeline.id = pipeline_count;
        pipeline.target = numbers[pipeline.target];
        if (pipeline.source_kind == SOURCE_FOLD) {
            pipeline.source = numbers[pipeline.source];
            struct schema source = planner->folds.items[pipeline.source].output;
            if (!projects_first(&pipeline) && source.count > pipeline.input.count) {
                TRY(project_first(sharing, &pipeline, NULL, err));
            }
            pipeline.input = source;
        }
        planner->pipelines.items[pipeline_count++] = pipeline;
    }
    planner->pipelines.count = pipeline_count;
    for (uint32_t i = 0; i < query_count; i++) {
        queries[i].result_fold = numbers[queries[i].result_fold];
    }
    return STATUS_OK;
}

status planner_share(struct planner *planner, struct plan_query *queries, uint32_t query_count,
                     struct error *err)
{
    struct sharing sharing = {.planner = planner, .arena = planner->arena};
    TRY(sharing_init(&sharing, queries, query_count, err));
    bool any = false;
    for (uint32_t i = 0; i < planner->folds.count; i++) {
        struct fold *fold = &planner->folds.items[i];
        for (uint32_t j = 0; any && j < fold->input_count; j++) {
            TRY(follow(&sharing, &planner->pipelines.items[sharing.feeders[i] + j], err));
        }
        TRY(share_fold(&sharing, fold, err));
        any = any || sharing.folds[i] != i;
    }
    return any ? number_anew(&sharing, queries, query_count, err) : STATUS_OK;
}
