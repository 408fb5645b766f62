/* SPDX-License-Identifier: Apache-2.0 */
/* local_finish.c - the folds of a phase, when its scans are read: fed by other folds, and finished.
 *
 * In waves: the folds of a wave do not need each other, so that what has one shard does not keep
 * all threads but one waiting. A fold's rows are given back as soon as nothing will read them any
 * more: with many queries, most are gone before the last phase.
 */
#include "engine/base/assert.h"
#include "engine/local/exchange.h"
#include "engine/local/local_run.h"

/* A shard that is read for the wave, or finished: by one thread. */
struct wave_item {
    struct fold_run *fold;
    uint32_t shard;
};

struct wave {
    struct fold_run **folds;
    uint32_t fold_count;
    struct wave_item *items;
    uint32_t item_count;
};

/* Whether a pipeline leads from a fold to one of the wave. */
static bool feeds(const struct wave *wave, const struct pipeline *pipeline)
{
    if (pipeline->source_kind != SOURCE_FOLD) return false;
    for (uint32_t i = 0; i < wave->fold_count; i++) {
        if (pipeline->target == wave->folds[i]->fold->id) return true;
    }
    return false;
}

/* ---- one shard ---- */

struct fold_feed {
    struct fold_sink sink;
    struct local_run *run;
    const struct pipeline *pipeline;
    struct pipeline_run *pipeline_run;
    struct pipeline_output *outputs;
    struct exchange_count sent;
    uint32_t producer;
    bool explained; /* A failure of the target's side: the error names it already. */
};

static status feed_push(struct fold_feed *feed, uint64_t number, const struct batch *batch,
                        struct error *err)
{
    struct arena arena;
    arena_init(&arena, feed->run->options.budget);
    struct column *columns = arena_array(&arena, struct column, batch->column_count + 1);
    status result = columns == NULL ? error_memory(err) : STATUS_OK;
    for (uint32_t first = 0; first < batch->row_count && result == STATUS_OK;
         first += PIPELINE_ROWS) {
        uint32_t count = batch->row_count - first;
        if (count > PIPELINE_ROWS) count = PIPELINE_ROWS;
        struct batch slice = batch_slice(batch, first, count, columns);
        result = pipeline_run_push(feed->pipeline_run, &slice, (struct selection){NULL, count},
                                   NULL, err);
    }
    arena_done(&arena);
    if (result != STATUS_OK) {
        return local_run_blame(feed->run, feed->pipeline->queries,
                               local_run_place(feed->run, feed->pipeline), err);
    }
    if (local_run_stops(feed->run)) return error_set(err, STATUS_CANCELLED, "interrupted");
    struct batch_identity identity = {
        .input = feed->pipeline->target_input, .producer = feed->producer, .number = number};
    return local_run_flush(feed->run, feed->pipeline, feed->pipeline_run, identity, feed->outputs,
                           &feed->sent, err);
}

static status feed_batch(struct fold_sink *sink, uint64_t number, const struct batch *batch,
                         struct error *err)
{
    struct fold_feed *feed = (struct fold_feed *)sink;
    status result = feed_push(feed, number, batch, err);
    feed->explained = result != STATUS_OK;
    return result;
}

static void feed_pipeline(struct local_run *run, const struct pipeline *pipeline,
                          const struct wave_item *from)
{
    const struct fold_run *source = from->fold;
    struct fold_feed feed = {
        .sink = {.accept = feed_batch}, .run = run, .pipeline = pipeline, .producer = from->shard};
    struct arena arena;
    struct error err;
    arena_init(&arena, run->options.budget);
    feed.outputs = local_outputs_new(run, &arena);
    status result = STATUS_OK;
    if (feed.outputs == NULL) result = error_memory(&err);
    if (result == STATUS_OK) {
        result =
            pipeline_run_create(pipeline, &run->finished, run->folds[pipeline->target].shard_count,
                                run->options.budget, &feed.pipeline_run, &err);
    }
    if (result == STATUS_OK)
        result = fold_shard_emit(source->shards[from->shard], &feed.sink, &err);
    if (result != STATUS_OK) {
        const char *place =
            feed.pipeline_run == NULL ? local_run_place(run, pipeline) : source->fold->label;
        if (!feed.explained) (void)local_run_blame(run, pipeline->queries, place, &err);
        local_run_fail(run, &err);
    }
    if (feed.pipeline_run != NULL) {
        const struct pipeline_counts *counts = pipeline_run_counts(feed.pipeline_run);
        pthread_mutex_lock(&run->lock);
        struct stage_counts *stage = &run->counters.maps[pipeline->id];
        stage->rows_in += counts->rows_in;
        stage->rows_out += counts->rows_out;
        stage->malformed += counts->malformed;
        exchange_count_merge(&run->counters.sent[pipeline->id], &feed.sent);
        pthread_mutex_unlock(&run->lock);
    }
    pipeline_run_destroy(feed.pipeline_run);
    local_outputs_done(run, feed.outputs);
    arena_done(&arena);
}

/* All that is read from a shard for the wave. */
static void feed_shard(struct local_run *run, uint64_t item, void *context)
{
    const struct wave *wave = context;
    const struct wave_item *from = &wave->items[item];
    for (uint32_t i = 0; i < run->plan->pipeline_count && !local_run_stops(run); i++) {
        const struct pipeline *pipeline = &run->plan->pipelines[i];
        if (!feeds(wave, pipeline) || pipeline->source != from->fold->fold->id) continue;
        feed_pipeline(run, pipeline, from);
    }
}

static void finish_shard(struct local_run *run, uint64_t item, void *context)
{
    const struct wave_item *which = &((const struct wave *)context)->items[item];
    const struct fold_run *fold_run = which->fold;
    struct error err;
    if (fold_shard_finish(fold_run->shards[which->shard], &err) != STATUS_OK) {
        (void)local_run_blame(run, fold_run->fold->queries, fold_run->fold->label, &err);
        local_run_fail(run, &err);
    }
}

void local_run_release(struct fold_run *fold_run)
{
    ASSERT(fold_run->uses_left > 0);
    if (--fold_run->uses_left > 0) return;
    for (uint32_t i = 0; i < fold_run->shard_count; i++) {
        fold_shard_destroy(fold_run->shards[i]);
        fold_run->shards[i] = NULL;
    }
}

/* ---- waves ---- */

/* The folds that a pipeline uses, by id. */
struct use_search {
    const struct fold_run *folds;
    uint32_t wanted; /* Whether this one is among them, */
    bool uses_wanted;
    bool are_finished; /* and whether all are finished. */
};

static void note_use(struct use_search *search, uint32_t fold)
{
    search->uses_wanted |= fold == search->wanted;
    search->are_finished &= search->folds[fold].finished;
}

static void note_scalar(const struct expr *expr, void *context)
{
    if (expr->kind == EXPR_SCALAR) note_use(context, expr->fold);
}

static struct use_search search_uses(const struct local_run *run, const struct pipeline *pipeline,
                                     uint32_t wanted)
{
    struct use_search search = {.folds = run->folds, .wanted = wanted, .are_finished = true};
    note_use(&search, pipeline->source);
    for (uint32_t i = 0; i < pipeline->op_count; i++) {
        const struct op *op = &pipeline->ops[i];
        if (op->kind == OP_PROBE) note_use(&search, op->side);
        for (uint32_t j = 0; j < op->expr_count; j++) {
            expr_visit(op->exprs[j], note_scalar, &search);
        }
    }
    return search;
}

/* Whether the fold needs no other one that is not finished. */
static bool is_ready(const struct local_run *run, const struct fold *fold)
{
    for (uint32_t i = 0; i < run->plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &run->plan->pipelines[i];
        if (pipeline->target != fold->id || pipeline->source_kind != SOURCE_FOLD) continue;
        if (!search_uses(run, pipeline, UINT32_MAX).are_finished) return false;
    }
    return true;
}

/* Whether another fold of the phase waits for it. */
static bool is_awaited(const struct local_run *run, const struct fold *fold)
{
    for (uint32_t i = 0; i < run->plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &run->plan->pipelines[i];
        if (pipeline->source_kind != SOURCE_FOLD) continue;
        if (run->plan->folds[pipeline->target].phase != fold->phase) continue;
        if (search_uses(run, pipeline, fold->id).uses_wanted) return true;
    }
    return false;
}

/* The folds that come next: first those that others wait for, so that the last wave has many. */
static void choose_wave(const struct local_run *run, uint32_t phase, struct wave *wave)
{
    uint32_t awaited_count = 0;
    wave->fold_count = 0;
    for (uint32_t i = 0; i < run->plan->fold_count; i++) {
        const struct fold *fold = &run->plan->folds[i];
        if (fold->phase != phase || run->folds[i].finished || !is_ready(run, fold)) continue;
        bool awaited = is_awaited(run, fold);
        if (awaited && awaited_count++ == 0) wave->fold_count = 0;
        if (awaited || awaited_count == 0) wave->folds[wave->fold_count++] = &run->folds[i];
    }
}

static void add_items(struct wave *wave, struct fold_run *fold)
{
    for (uint32_t shard = 0; shard < fold->shard_count; shard++) {
        wave->items[wave->item_count++] = (struct wave_item){fold, shard};
    }
}

/* How many pipelines read a fold for the wave. */
static uint32_t count_uses(const struct plan *plan, const struct wave *wave, uint32_t fold)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &plan->pipelines[i];
        count += feeds(wave, pipeline) && pipeline->source == fold;
    }
    return count;
}

/* What other folds have for those of the wave. */
static status feed_wave(struct local_run *run, struct wave *wave, struct error *err)
{
    const struct plan *plan = run->plan;
    wave->item_count = 0;
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        if (count_uses(plan, wave, i) == 0) continue;
        ASSERT(run->folds[i].finished);
        add_items(wave, &run->folds[i]);
    }
    local_run_items(run, wave->item_count, feed_shard, wave);
    TRY(local_run_status(run, err));
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        for (uint32_t uses = count_uses(plan, wave, i); uses > 0; uses--) {
            local_run_release(&run->folds[i]);
        }
    }
    return exchange_release(&run->exchanges, err);
}

/* What the others need of a fold. */
static status take_result(struct local_run *run, struct fold_run *fold_run, struct error *err)
{
    uint32_t id = fold_run->fold->id;
    fold_run->finished = true;
    for (uint32_t i = 0; i < fold_run->shard_count; i++) {
        const struct fold_counts *counts = fold_shard_counts(fold_run->shards[i]);
        run->counters.folds[id].rows_in += counts->rows_in;
        run->counters.folds[id].rows_out += counts->rows_out;
        run->counters.folds[id].batches_out += counts->batches_out;
    }
    if (fold_run->fold->is_build_side) run->sides[id] = *fold_shard_join_table(fold_run->shards[0]);
    if (fold_run->fold->is_scalar) {
        status result = fold_shard_scalar(fold_run->shards[0], &run->scalars[id], err);
        if (result != STATUS_OK) {
            return local_run_blame(run, fold_run->fold->queries, fold_run->fold->label, err);
        }
    }
    return STATUS_OK;
}

static status finish_wave(struct local_run *run, struct wave *wave, struct error *err)
{
    TRY(feed_wave(run, wave, err));
    wave->item_count = 0;
    for (uint32_t i = 0; i < wave->fold_count; i++) {
        TRY(local_run_check(run, wave->folds[i]->fold, err));
        add_items(wave, wave->folds[i]);
    }
    local_run_items(run, wave->item_count, finish_shard, wave);
    TRY(local_run_status(run, err));
    for (uint32_t i = 0; i < wave->fold_count; i++) {
        TRY(take_result(run, wave->folds[i], err));
    }
    return STATUS_OK;
}

static size_t count_shards(const struct local_run *run)
{
    size_t count = 0;
    for (uint32_t i = 0; i < run->plan->fold_count; i++) {
        count += run->folds[i].shard_count;
    }
    return count;
}

status local_run_finish(struct local_run *run, uint32_t phase, struct error *err)
{
    struct wave wave = {
        .folds = arena_array(&run->arena, struct fold_run *, run->plan->fold_count + 1),
        .items = arena_array(&run->arena, struct wave_item, count_shards(run) + 1),
    };
    if (wave.folds == NULL || wave.items == NULL) {
        return local_run_memory(run, "finishing a phase", err);
    }
    for (choose_wave(run, phase, &wave); wave.fold_count > 0; choose_wave(run, phase, &wave)) {
        TRY(finish_wave(run, &wave, err));
    }
    return STATUS_OK;
}
