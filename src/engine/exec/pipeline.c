/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.c - operators push to the next one; rows stay in place until a join or UNNEST makes new
 * ones.
 *
 * A batch goes through all operators before the next one is read, so it stays in the processor's
 * cache (vectorized execution: Boncz, Zukowski, Nes: MonetDB/X100, 2005; pushed as in Neumann:
 * Efficiently compiling efficient query plans, 2011, though nothing is compiled here).
 */
#include "engine/exec/pipeline.h"

#include "engine/base/assert.h"
#include "engine/data/batch_codec.h"
#include "engine/data/key_hash.h"
#include "engine/exec/fold/fold.h"
#include "engine/exec/op.h"

static const struct op_class *const classes[] = {
    [OP_FILTER] = &op_filter, [OP_PROJECT] = &op_project,     [OP_UNNEST] = &op_unnest,
    [OP_PROBE] = &op_probe,   [OP_AGGREGATE] = &op_aggregate, [OP_RANK] = &op_rank,
};

/* ---- making ---- */

static status prepare_exprs(struct op_run *op, bool at_source, struct error *err)
{
    const struct pipeline *pipeline = op->run->pipeline;
    struct arena *arena = &op->run->arena;
    uint32_t count = op->op->expr_count;
    op->evals = arena_array(arena, struct eval *, count + 1);
    op->late = arena_array(arena, struct late_columns, count + 1);
    if (op->evals == NULL || op->late == NULL) return error_memory(err);
    const struct schema *input = op->op == pipeline->ops ? &pipeline->input : &op->op[-1].output;
    for (uint32_t i = 0; i < count; i++) {
        const struct expr *expr = op->op->exprs[i];
        TRY(eval_create(expr, input, arena, &op->evals[i], err));
        if (!at_source) continue;
        TRY(late_columns_of(expr, pipeline->input.count, arena, &op->late[i], err));
    }
    return STATUS_OK;
}

/* The evals that see rows of the source's batch: up to the first operator that changes its columns.
 * `out` may be NULL. */
static uint32_t list_evals(const struct pipeline_run *run, struct eval **out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < run->pipeline->op_count; i++) {
        const struct op_run *op = run->ops[i];
        for (uint32_t j = 0; out != NULL && j < op->op->expr_count; j++) {
            out[count + j] = op->evals[j];
        }
        count += op->op->expr_count;
        if (!op->class->keeps_rows) break;
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

/* Rows that have come through all operators. */
static status output_push(struct op_run *op, const struct batch *batch, struct selection selection,
                          struct error *err)
{
    struct pipeline_run *run = op->run;
    if (run->pipeline->row_limit != 0) {
        uint64_t room = run->pipeline->row_limit - run->builders[0].row_count;
        if (selection.count > room) selection.count = (uint32_t)room;
    }
    return pipeline_append(run, batch, selection, run->pipeline->shard_keys, err);
}

static const struct op_class op_output = {.run_bytes = sizeof(struct op_run), .push = output_push};

/* Each operator knows the one behind it, so the last is made first. */
static status make_ops(struct pipeline_run *run, struct error *err)
{
    const struct pipeline *pipeline = run->pipeline;
    run->ops = arena_array(&run->arena, struct op_run *, pipeline->op_count + 1);
    if (run->ops == NULL) return error_memory(err);
    struct op_run *next = NULL;
    for (uint32_t i = pipeline->op_count + 1; i > 0; i--) {
        bool is_output = i > pipeline->op_count;
        const struct op *plan = is_output ? NULL : &pipeline->ops[i - 1];
        const struct op_class *class = is_output ? &op_output : classes[plan->kind];
        struct op_run *op = arena_calloc(&run->arena, 1, class->run_bytes, alignof(max_align_t));
        if (op == NULL) return error_memory(err);
        *op = (struct op_run){.class = class, .op = plan, .run = run, .next = next};
        run->ops[i - 1] = next = op;
    }
    return STATUS_OK;
}

static status prepare_ops(struct pipeline_run *run, struct error *err)
{
    const struct pipeline *pipeline = run->pipeline;
    bool at_source = pipeline->source_kind == SOURCE_SCAN;
    TRY(make_ops(run, err));
    for (uint32_t i = 0; i < pipeline->op_count; i++) {
        struct op_run *op = run->ops[i];
        ASSERT(op->class->flush == NULL || i + 1 == pipeline->op_count);
        TRY(prepare_exprs(op, at_source, err));
        at_source = at_source && op->class->keeps_rows;
        if (op->class->init != NULL) TRY(op->class->init(op, err));
    }
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
    run->builders = arena_array(&run->arena, struct batch_builder, shard_count);
    run->known = arena_array(&run->arena, bool,
                             pipeline->op_count == 0 ? 1 : pipeline->ops[0].expr_count + 1);
    status result = STATUS_OK;
    if (run->builders == NULL || run->known == NULL) result = error_memory(err);
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
        struct op_run *op = run->ops[i];
        for (uint32_t j = 0; op != NULL && op->evals != NULL && j < op->op->expr_count; j++) {
            eval_destroy(op->evals[j]);
        }
        if (op != NULL && op->class->done != NULL) op->class->done(op);
    }
    for (uint32_t i = 0; i < run->builder_count; i++) {
        builder_done(&run->builders[i]);
    }
    arena_done(&run->arena);
    arena_done(&run->batch_arena);
    memory_free(run->budget, run, sizeof *run);
}

/* ---- pushing ---- */

struct eval_context op_eval_context(struct pipeline_run *run)
{
    return (struct eval_context){.scalars = run->finished->scalars,
                                 .arena = &run->batch_arena,
                                 .malformed = &run->counts.malformed,
                                 .sentiment = run->finished->sentiment,
                                 .stamp = run->common == NULL ? run->stamp : run->common->stamp,
                                 .shared = run->common == NULL ? NULL : &run->common->arena};
}

status op_eval(struct op_run *op, uint32_t expr, const struct batch *batch,
               struct selection selection, struct column *out_column, struct error *err)
{
    struct eval_context context = op_eval_context(op->run);
    TRY(late_columns_run(&op->late[expr], op->run->materializer, selection, err));
    return eval_run(op->evals[expr], batch, selection, &context, out_column, err);
}

static status append_to_one(struct pipeline_run *run, const struct batch *batch,
                            struct selection selection, struct error *err)
{
    builder_append(&run->builders[0], batch, selection);
    return run->builders[0].failed ? error_memory(err) : STATUS_OK;
}

/* A counting sort of the rows by shard, so that each builder is appended to once. */
status pipeline_append_hashed(struct pipeline_run *run, const struct batch *batch,
                              struct selection selection, const uint64_t *hashes, struct error *err)
{
    if (run->shard_count == 1) return append_to_one(run, batch, selection, err);
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

status pipeline_append(struct pipeline_run *run, const struct batch *batch,
                       struct selection selection, uint32_t key_count, struct error *err)
{
    if (run->shard_count == 1) return append_to_one(run, batch, selection, err);
    ASSERT(key_count > 0 && selection.count <= PIPELINE_ROWS);
    uint32_t *keys = arena_array(&run->batch_arena, uint32_t, key_count);
    uint64_t *hashes = arena_array(&run->batch_arena, uint64_t, selection.count);
    if (keys == NULL || hashes == NULL) return error_memory(err);
    for (uint32_t i = 0; i < key_count; i++) {
        keys[i] = i;
    }
    key_hash(batch, keys, key_count, selection, hashes);
    return pipeline_append_hashed(run, batch, selection, hashes, err);
}

/* Depth: the number of operators, which the parser bounds. */
status pipeline_run_push_left(struct pipeline_run *run, const struct batch *batch,
                              struct selection left, uint32_t row_count,
                              struct materializer *materializer, struct error *err)
{
    ASSERT(left.count <= row_count && row_count <= PIPELINE_ROWS);
    run->counts.rows_in += row_count;
    run->stamp++;
    run->materializer = materializer;
    status result =
        left.count == 0 ? STATUS_OK : run->ops[0]->class->push(run->ops[0], batch, left, err);
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

status pipeline_run_flush(struct pipeline_run *run, struct pipeline_output *outputs,
                          struct error *err)
{
    for (uint32_t i = 0; i < run->pipeline->op_count; i++) {
        if (run->ops[i]->class->flush != NULL) TRY(run->ops[i]->class->flush(run->ops[i], err));
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
        if (run->ops[i]->class->reset != NULL) run->ops[i]->class->reset(run->ops[i]);
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
