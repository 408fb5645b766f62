/* pipeline.c - operators push to the next one; rows stay in place until a join or unnest makes new
 * ones.
 *
 * Filters only shorten the selection, projections only name columns anew. An expansion (join,
 * unnest) gathers at most PIPELINE_ROWS new rows at a time and pushes these on before it makes
 * more, so that no multiplication of rows needs more memory than one batch.
 */
#include "engine/exec/pipeline.h"

#include "engine/base/assert.h"
#include "engine/data/batch_builder.h"
#include "engine/exec/early_filter.h"
#include "engine/exec/expr/eval.h"
#include "engine/exec/fold/fold.h"
#include "engine/exec/fold/group_table.h"
#include "engine/data/key_hash.h"
#include "engine/exec/fold/ranker.h"
#include "engine/data/batch_codec.h"

struct op_run {
    const struct op *op;
    struct eval **evals;
    struct late_columns *loads; /* By expression, while the source's columns are in sight. */
    struct group_table *groups;
    struct ranker *ranker;
};

struct pipeline_run {
    const struct pipeline *pipeline;
    const struct finished *finished;
    struct budget *budget;
    struct op_run *ops;
    bool *known; /* By condition of the first operator: it holds for all rows that are pushed. */
    struct early_filter *early;     /* NULL: none. */
    struct pipeline_common *common; /* NULL: shares with no other. */
    uint32_t shard_count;
    struct batch_builder *builders; /* One per shard. */
    uint32_t builder_count;         /* Initialised so far. */
    struct arena arena;             /* Of the run's incarnation. */
    struct arena batch_arena;       /* Of one push. */
    struct materializer *materializer;
    uint64_t stamp; /* How many batches were pushed. */
    struct pipeline_counts counts;
    struct pipeline_counts flushed; /* As they were at the last flush. */
};

/* ---- making ---- */

static status prepare_exprs(struct pipeline_run *run, struct op_run *op_run, bool at_source,
                            struct error *err)
{
    const struct op *op = op_run->op;
    op_run->evals = arena_array(&run->arena, struct eval *, op->expr_count + 1);
    op_run->loads = arena_array(&run->arena, struct late_columns, op->expr_count + 1);
    if (op_run->evals == NULL || op_run->loads == NULL) return error_memory(err);
    const struct schema *input = op == run->pipeline->ops ? &run->pipeline->input : &op[-1].output;
    for (uint32_t i = 0; i < op->expr_count; i++) {
        TRY(eval_create(op->exprs[i], input, &run->arena, &op_run->evals[i], err));
        if (!at_source) continue;
        TRY(late_columns_of(op->exprs[i], run->pipeline->input.count, &run->arena,
                            &op_run->loads[i], err));
    }
    return STATUS_OK;
}

/* Conditions, and what they are followed by, see rows of the source's batch. `out` may be NULL. */
static uint32_t list_evals(const struct pipeline_run *run, struct eval **out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < run->pipeline->op_count; i++) {
        const struct op *op = run->ops[i].op;
        for (uint32_t j = 0; out != NULL && j < op->expr_count; j++) {
            out[count + j] = run->ops[i].evals[j];
        }
        count += op->expr_count;
        if (op->kind != OP_FILTER) break;
    }
    return count;
}

static status share_evals(struct pipeline_run *const *runs, uint32_t count, struct arena *arena,
                          struct error *err)
{
    uint32_t eval_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        eval_count += list_evals(runs[i], NULL);
    }
    struct eval **evals = arena_array(arena, struct eval *, eval_count + 1);
    if (evals == NULL) return error_memory(err);
    eval_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        eval_count += list_evals(runs[i], evals + eval_count);
    }
    return eval_share(evals, eval_count, arena, err);
}

status pipeline_runs_share(struct pipeline_run *const *runs, uint32_t count,
                           struct pipeline_common *common, struct arena *arena, struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        runs[i]->common = common;
    }
    return share_evals(runs, count, arena, err);
}

static status prepare_ops(struct pipeline_run *run, struct error *err)
{
    const struct pipeline *pipeline = run->pipeline;
    bool at_source = pipeline->source_kind == SOURCE_SCAN;
    for (uint32_t i = 0; i < pipeline->op_count; i++) {
        struct op_run *op_run = &run->ops[i];
        const struct op *op = op_run->op = &pipeline->ops[i];
        TRY(prepare_exprs(run, op_run, at_source, err));
        if (op->kind != OP_FILTER) at_source = false;
        if (op->kind == OP_AGGREGATE) {
            TRY(group_table_create(op->grouping, run->budget, &op_run->groups, err));
        } else if (op->kind == OP_RANK) {
            TRY(ranker_create(op->ranking, op->output, run->budget, &op_run->ranker, err));
        }
        bool ends = op->kind == OP_AGGREGATE || op->kind == OP_RANK;
        ASSERT(!ends || i + 1 == pipeline->op_count);
    }
    TRY(early_filter_create(pipeline, &run->arena, &run->early, err));
    return share_evals(&run, 1, &run->arena, err);
}

status pipeline_run_create(const struct pipeline *pipeline, const struct finished *finished,
                           uint32_t shard_count, struct budget *budget,
                           struct pipeline_run **out_run, struct error *err)
{
    ASSERT(shard_count > 0);
    struct pipeline_run *run = memory_alloc(budget, sizeof *run);
    if (run == NULL) return error_memory(err);
    *run = (struct pipeline_run){
        .pipeline = pipeline, .finished = finished, .budget = budget, .shard_count = shard_count};
    arena_init(&run->arena, budget);
    arena_init(&run->batch_arena, budget);
    run->ops = arena_array(&run->arena, struct op_run, pipeline->op_count + 1);
    run->builders = arena_array(&run->arena, struct batch_builder, shard_count);
    run->known = arena_array(&run->arena, bool,
                             pipeline->op_count == 0 ? 1 : pipeline->ops[0].expr_count + 1);
    status result = STATUS_OK;
    if (run->ops == NULL || run->builders == NULL || run->known == NULL) result = error_memory(err);
    for (uint32_t i = 0; result == STATUS_OK && i < shard_count; i++) {
        run->builder_count++;
        if (!builder_init(&run->builders[i], pipeline->output, budget)) result = error_memory(err);
    }
    if (result == STATUS_OK) result = prepare_ops(run, err);
    if (result != STATUS_OK) {
        pipeline_run_destroy(run);
        return result;
    }
    *out_run = run;
    return STATUS_OK;
}

void pipeline_run_destroy(struct pipeline_run *run)
{
    if (run == NULL) return;
    for (uint32_t i = 0; run->ops != NULL && i < run->pipeline->op_count; i++) {
        struct op_run *op_run = &run->ops[i];
        for (uint32_t j = 0; op_run->evals != NULL && j < op_run->op->expr_count; j++) {
            eval_destroy(op_run->evals[j]);
        }
        group_table_destroy(op_run->groups);
        ranker_destroy(op_run->ranker);
    }
    for (uint32_t i = 0; i < run->builder_count; i++) {
        builder_done(&run->builders[i]);
    }
    arena_done(&run->arena);
    arena_done(&run->batch_arena);
    memory_free(run->budget, run, sizeof *run);
}

/* ---- pushing ---- */

static status push_to(struct pipeline_run *run, uint32_t index, const struct batch *batch,
                      struct selection selection, struct error *err);

static struct eval_context context_of(struct pipeline_run *run)
{
    return (struct eval_context){.scalars = run->finished->scalars,
                                 .arena = &run->batch_arena,
                                 .malformed = &run->counts.malformed,
                                 .sentiment = run->finished->sentiment,
                                 .stamp = run->common == NULL ? run->stamp : run->common->stamp,
                                 .shared = run->common == NULL ? NULL : &run->common->arena};
}

static status load_columns(struct pipeline_run *run, const struct op_run *op_run, uint32_t expr,
                           struct selection selection, struct error *err)
{
    return late_columns_run(&op_run->loads[expr], run->materializer, selection, err);
}

/* Leaves out rows that the join after filter and projection would leave out. */
static status filter_rows(struct pipeline_run *run, const struct batch *batch,
                          struct selection *in_out_selection, struct error *err)
{
    const struct op_run *project = &run->ops[EARLY_FILTER_PROJECT];
    const struct op *probe = run->ops[EARLY_FILTER_PROBE].op;
    struct selection selection = *in_out_selection;
    struct eval_context context = context_of(run);
    struct batch projected = {
        .row_count = batch->row_count,
        .column_count = project->op->expr_count,
        .columns = arena_array(&run->batch_arena, struct column, project->op->expr_count + 1)};
    struct build_probe *filtered =
        arena_alloc(&run->batch_arena, sizeof *filtered, alignof(struct build_probe));
    if (projected.columns == NULL || filtered == NULL) return error_memory(err);
    for (uint32_t i = 0; i < probe->key_count; i++) {
        uint32_t key = probe->key_columns[i];
        TRY(load_columns(run, project, key, selection, err));
        TRY(eval_run(project->evals[key], batch, selection, &context, &projected.columns[key],
                     err));
    }
    build_side_filter(&run->finished->sides[probe->side], &projected, probe->key_columns, selection,
                      filtered);
    early_filter_note(run->early, selection.count, filtered->count);
    *in_out_selection = (struct selection){filtered->rows, filtered->count};
    return STATUS_OK;
}

static status push_filter(struct pipeline_run *run, uint32_t index, const struct batch *batch,
                          struct selection selection, struct error *err)
{
    const struct op_run *op_run = &run->ops[index];
    uint32_t *rows = arena_alloc(&run->batch_arena, (size_t)selection.count * sizeof *rows + 4,
                                 alignof(uint32_t));
    if (rows == NULL) return error_memory(err);
    struct eval_context context = context_of(run);
    for (uint32_t i = 0; i < op_run->op->expr_count && selection.count > 0; i++) {
        uint32_t count;
        if (index == 0 && run->known[i]) continue;
        if (index == EARLY_FILTER_CONDITIONS && early_filter_is_due(run->early, i, run->known)) {
            TRY(filter_rows(run, batch, &selection, err));
        }
        TRY(load_columns(run, op_run, i, selection, err));
        TRY(eval_filter(op_run->evals[i], batch, selection, &context, rows, &count, err));
        selection = (struct selection){rows, count};
    }
    return push_to(run, index + 1, batch, selection, err);
}

static status push_project(struct pipeline_run *run, uint32_t index, const struct batch *batch,
                           struct selection selection, struct error *err)
{
    const struct op_run *op_run = &run->ops[index];
    uint32_t count = op_run->op->expr_count;
    struct column *columns = arena_array(&run->batch_arena, struct column, count + 1);
    if (columns == NULL) return error_memory(err);
    struct eval_context context = context_of(run);
    for (uint32_t i = 0; i < count; i++) {
        TRY(load_columns(run, op_run, i, selection, err));
        TRY(eval_run(op_run->evals[i], batch, selection, &context, &columns[i], err));
    }
    struct batch projected = {
        .row_count = batch->row_count, .column_count = count, .columns = columns};
    return push_to(run, index + 1, &projected, selection, err);
}

/* New rows under construction: row rows[i] of the batch with row others[i] of something else. */
struct pairs {
    uint32_t rows[PIPELINE_ROWS];
    uint32_t others[PIPELINE_ROWS];
    uint32_t count;
};

static bool is_set(const atomic_bool *flag)
{
    return flag != NULL && atomic_load(flag);
}

/* The numbers of the others, or of their first duplicates, as a column. */
static status number_others(struct pipeline_run *run, const struct op *op,
                            const struct pairs *pairs, struct column *out_column, struct error *err)
{
    const uint32_t *duplicates = run->finished->sides[op->side].duplicates[op->duplicate_set];
    ASSERT(!op->keep_unmatched); /* No row, no number. */
    if (!column_init(out_column, TYPE(INT), pairs->count, &run->batch_arena)) {
        return error_memory(err);
    }
    for (uint32_t i = 0; i < pairs->count; i++) {
        out_column->ints[i] = duplicates == NULL ? pairs->others[i] : duplicates[pairs->others[i]];
    }
    return STATUS_OK;
}

/* Gathers both halves and pushes them on. */
static status push_pairs(struct pipeline_run *run, uint32_t index, const struct batch *batch,
                         const struct batch *other, struct pairs *pairs, struct error *err)
{
    if (pairs->count == 0) return STATUS_OK;
    if (is_set(run->finished->stopped) || is_set(run->finished->cancelled)) {
        return error_set(err, STATUS_CANCELLED, "interrupted");
    }
    struct arena_mark mark = arena_mark(&run->batch_arena);
    const struct op *op = run->ops[index].op;
    bool numbers_only = op->kind == OP_PROBE && op->probe == PROBE_ROW;
    uint32_t count = batch->column_count + (numbers_only ? 0 : other->column_count);
    struct column *columns = arena_array(&run->batch_arena, struct column, count + 1);
    if (columns == NULL) return error_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        bool first = i < batch->column_count;
        const struct column *from =
            first ? &batch->columns[i] : &other->columns[i - batch->column_count];
        if (!column_gather(&columns[i], from, first ? pairs->rows : pairs->others, pairs->count,
                           &run->batch_arena)) {
            return error_memory(err);
        }
    }
    if (numbers_only) TRY(number_others(run, op, pairs, &columns[count++], err));
    struct batch joined = {.row_count = pairs->count, .column_count = count, .columns = columns};
    pairs->count = 0;
    TRY(push_to(run, index + 1, &joined, (struct selection){NULL, joined.row_count}, err));
    arena_release(&run->batch_arena, mark);
    return STATUS_OK;
}

static status push_unnest(struct pipeline_run *run, uint32_t index, const struct batch *batch,
                          struct selection selection, struct error *err)
{
    const struct op_run *op_run = &run->ops[index];
    struct eval_context context = context_of(run);
    struct column lists;
    struct pairs *pairs = arena_alloc(&run->batch_arena, sizeof *pairs, alignof(struct pairs));
    if (pairs == NULL) return error_memory(err);
    pairs->count = 0;
    TRY(eval_run(op_run->evals[0], batch, selection, &context, &lists, err));
    struct batch elements = {.column_count = 1, .columns = lists.child};
    for (uint32_t i = 0; i < selection.count; i++) {
        uint32_t row = selection_row(selection, i);
        if (column_is_null(&lists, row)) continue;
        struct list list = lists.lists[row];
        for (uint32_t j = 0; j < list.count; j++) {
            pairs->rows[pairs->count] = row;
            pairs->others[pairs->count++] = list.first + j;
            if (pairs->count == PIPELINE_ROWS) {
                TRY(push_pairs(run, index, batch, &elements, pairs, err));
            }
        }
    }
    return push_pairs(run, index, batch, &elements, pairs, err);
}

/* Each row with that of the build side whose number it has. */
static status push_fetch(struct pipeline_run *run, uint32_t index, const struct batch *batch,
                         struct selection selection, struct error *err)
{
    const struct op *op = run->ops[index].op;
    const struct build_side *side = &run->finished->sides[op->side];
    const struct column *numbers = &batch->columns[op->key_columns[0]];
    struct pairs *pairs = arena_alloc(&run->batch_arena, sizeof *pairs, alignof(struct pairs));
    if (pairs == NULL) return error_memory(err);
    pairs->count = selection.count;
    for (uint32_t i = 0; i < selection.count; i++) {
        uint32_t row = selection_row(selection, i);
        uint64_t number = (uint64_t)numbers->ints[row];
        /* From a message: a worker with another build side would not get here, a broken one might.
         */
        if (column_is_null(numbers, row) || number >= side->rows.row_count) {
            return error_set(err, STATUS_INTERNAL, "a row of a build side that has none of it");
        }
        pairs->rows[i] = row;
        pairs->others[i] = (uint32_t)number;
    }
    return push_pairs(run, index, batch, &side->rows, pairs, err);
}

static status push_probe(struct pipeline_run *run, uint32_t index, const struct batch *batch,
                         struct selection selection, struct error *err)
{
    const struct op *op = run->ops[index].op;
    const struct build_side *side = &run->finished->sides[op->side];
    if (op->probe == PROBE_FETCH) return push_fetch(run, index, batch, selection, err);
    struct build_probe *probe =
        arena_alloc(&run->batch_arena, sizeof *probe, alignof(struct build_probe));
    if (probe == NULL) return error_memory(err);
    if (op->keep_unmatched) {
        build_side_probe_all(side, batch, op->key_columns, selection, probe);
    } else {
        build_side_probe(side, batch, op->key_columns, selection, probe);
    }
    /* Rows that have a partner, each once: the selection shrinks and nothing is gathered. */
    if (op->probe == PROBE_SEMI) {
        return push_to(run, index + 1, batch, (struct selection){probe->rows, probe->count}, err);
    }
    struct pairs *pairs = arena_alloc(&run->batch_arena, sizeof *pairs, alignof(struct pairs));
    if (pairs == NULL) return error_memory(err);
    pairs->count = 0;
    for (uint32_t i = 0; i < probe->count; i++) {
        uint32_t found = probe->found[i];
        do {
            pairs->rows[pairs->count] = probe->rows[i];
            pairs->others[pairs->count++] = found;
            if (pairs->count == PIPELINE_ROWS) {
                TRY(push_pairs(run, index, batch, &side->rows, pairs, err));
            }
            if (found != ROW_NONE) found = side->next[found];
        } while (found != ROW_NONE);
    }
    return push_pairs(run, index, batch, &side->rows, pairs, err);
}

/* Appends rows to the builders of the shards that their hashes choose, in one walk over the rows.
 */
static status scatter(struct pipeline_run *run, const struct batch *batch,
                      struct selection selection, const uint64_t *hashes, struct error *err)
{
    uint32_t shard_count = run->shard_count;
    uint32_t *ends = arena_array(&run->batch_arena, uint32_t, shard_count + 1);
    uint32_t *rows = arena_array(&run->batch_arena, uint32_t, selection.count + 1);
    uint32_t *shards = arena_array(&run->batch_arena, uint32_t, selection.count + 1);
    if (ends == NULL || rows == NULL || shards == NULL) return error_memory(err);
    for (uint32_t i = 0; i < selection.count; i++) {
        shards[i] = fold_shard_of(hashes[i], shard_count);
        ends[shards[i] + 1]++;
    }
    for (uint32_t shard = 0; shard < shard_count; shard++) {
        ends[shard + 1] += ends[shard];
    }
    for (uint32_t i = 0; i < selection.count; i++) {
        rows[ends[shards[i]]++] = selection_row(selection, i);
    }
    for (uint32_t shard = 0, first = 0; shard < shard_count; first = ends[shard++]) {
        struct selection chosen = {rows + first, ends[shard] - first};
        builder_append(&run->builders[shard], batch, chosen);
        if (run->builders[shard].failed) return error_memory(err);
    }
    return STATUS_OK;
}

/* Rows to the shards that the hash of their first columns chooses. */
static status append_rows(struct pipeline_run *run, const struct batch *batch,
                          struct selection selection, uint32_t key_count, struct error *err)
{
    if (run->shard_count == 1) {
        builder_append(&run->builders[0], batch, selection);
        return run->builders[0].failed ? error_memory(err) : STATUS_OK;
    }
    ASSERT(key_count > 0 && selection.count <= PIPELINE_ROWS);
    uint32_t *keys = arena_array(&run->batch_arena, uint32_t, key_count);
    uint64_t *hashes = arena_array(&run->batch_arena, uint64_t, selection.count);
    if (keys == NULL || hashes == NULL) return error_memory(err);
    for (uint32_t i = 0; i < key_count; i++) {
        keys[i] = i;
    }
    key_hash(batch, keys, key_count, selection, hashes);
    return scatter(run, batch, selection, hashes, err);
}

/* Rows that hardly share keys don't wait for others of theirs. */
static status push_groups(struct pipeline_run *run, struct group_table *groups,
                          const struct batch *batch, struct selection selection, uint32_t key_count,
                          struct error *err)
{
    struct selection rest;
    struct batch lifted;
    TRY(group_table_add_loosely(groups, batch, selection, &run->batch_arena, &rest, err));
    if (rest.count == 0) return STATUS_OK;
    TRY(group_table_lift(groups, batch, rest, &run->batch_arena, &lifted, err));
    return append_rows(run, &lifted, rest, key_count, err);
}

/* Rows that have come through all operators. */
static status push_out(struct pipeline_run *run, const struct batch *batch,
                       struct selection selection, struct error *err)
{
    if (run->pipeline->row_limit != 0) {
        uint64_t room = run->pipeline->row_limit - run->builders[0].row_count;
        if (selection.count > room) selection.count = (uint32_t)room;
    }
    return append_rows(run, batch, selection, run->pipeline->shard_keys, err);
}

/* Depth: the number of operators, which the parser bounds. */
static status push_to(struct pipeline_run *run, uint32_t index, const struct batch *batch,
                      struct selection selection, struct error *err)
{
    if (selection.count == 0) return STATUS_OK;
    if (index == run->pipeline->op_count) return push_out(run, batch, selection, err);
    const struct op_run *op_run = &run->ops[index];
    switch (op_run->op->kind) {
    case OP_FILTER:
        return push_filter(run, index, batch, selection, err);
    case OP_PROJECT:
        return push_project(run, index, batch, selection, err);
    case OP_UNNEST:
        return push_unnest(run, index, batch, selection, err);
    case OP_PROBE:
        return push_probe(run, index, batch, selection, err);
    case OP_AGGREGATE:
        return push_groups(run, op_run->groups, batch, selection, op_run->op->grouping->key_count,
                           err);
    case OP_RANK:
        break;
    }
    return ranker_add(op_run->ranker, batch, selection, err);
}

status pipeline_run_push_left(struct pipeline_run *run, const struct batch *batch,
                              struct selection left, uint32_t row_count,
                              struct materializer *materializer, struct error *err)
{
    ASSERT(left.count <= row_count && row_count <= PIPELINE_ROWS);
    run->counts.rows_in += row_count;
    run->stamp++;
    run->materializer = materializer;
    status result = push_to(run, 0, batch, left, err);
    run->materializer = NULL;
    arena_reset(&run->batch_arena);
    return result;
}

status pipeline_run_push(struct pipeline_run *run, const struct batch *batch,
                         struct selection selection, struct materializer *materializer,
                         struct error *err)
{
    return pipeline_run_push_left(run, batch, selection, selection.count, materializer, err);
}

/* ---- flushing ---- */

static status flush_groups(struct pipeline_run *run, struct group_table *groups, struct error *err)
{
    uint32_t group_count = group_table_count(groups);
    for (uint32_t first = 0; first < group_count; first += PIPELINE_ROWS) {
        uint32_t count = group_count - first;
        if (count > PIPELINE_ROWS) count = PIPELINE_ROWS;
        struct batch partial;
        TRY(group_table_read(groups, GROUP_PARTIAL, first, count, &run->batch_arena, &partial,
                             err));
        struct selection all = {NULL, count};
        if (run->shard_count == 1) {
            builder_append(&run->builders[0], &partial, all);
        } else {
            uint64_t hashes[PIPELINE_ROWS];
            for (uint32_t i = 0; i < count; i++) {
                hashes[i] = group_table_hash(groups, first + i);
            }
            TRY(scatter(run, &partial, all, hashes, err));
        }
        arena_reset(&run->batch_arena);
    }
    group_table_reset(groups);
    return STATUS_OK;
}

static status flush_ranker(struct pipeline_run *run, struct ranker *ranker, struct error *err)
{
    struct batch best;
    TRY(ranker_finish(ranker, &best, err));
    builder_append(&run->builders[0], &best, (struct selection){NULL, best.row_count});
    ranker_reset(ranker);
    return STATUS_OK;
}

status pipeline_run_flush(struct pipeline_run *run, struct pipeline_output *outputs,
                          struct error *err)
{
    if (run->pipeline->op_count > 0) {
        struct op_run *last = &run->ops[run->pipeline->op_count - 1];
        if (last->groups != NULL) TRY(flush_groups(run, last->groups, err));
        if (last->ranker != NULL) TRY(flush_ranker(run, last->ranker, err));
    }
    for (uint32_t shard = 0; shard < run->shard_count; shard++) {
        struct batch_builder *builder = &run->builders[shard];
        if (builder->failed) return error_memory(err);
        outputs[shard].row_count = builder->row_count;
        run->counts.rows_out += builder->row_count;
        batch_encode(builder, &outputs[shard].bytes);
        if (outputs[shard].bytes.failed) return error_memory(err);
        builder_reset(builder);
    }
    run->flushed = run->counts;
    return STATUS_OK;
}

void pipeline_run_discard(struct pipeline_run *run)
{
    for (uint32_t i = 0; i < run->pipeline->op_count; i++) {
        if (run->ops[i].groups != NULL) group_table_reset(run->ops[i].groups);
        if (run->ops[i].ranker != NULL) ranker_reset(run->ops[i].ranker);
    }
    for (uint32_t shard = 0; shard < run->shard_count; shard++) {
        builder_reset(&run->builders[shard]);
    }
    arena_reset(&run->batch_arena);
    run->materializer = NULL;
    run->counts = run->flushed;
}

const struct pipeline *pipeline_run_plan(const struct pipeline_run *run)
{
    return run->pipeline;
}

bool *pipeline_run_known(struct pipeline_run *run)
{
    return run->known;
}

void pipeline_run_count_malformed(struct pipeline_run *run, uint64_t more)
{
    run->counts.malformed += more;
}

const struct pipeline_counts *pipeline_run_counts(const struct pipeline_run *run)
{
    return &run->counts;
}
