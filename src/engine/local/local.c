/* SPDX-License-Identifier: Apache-2.0 */
/* local.c - a run from its creation to its end: phases, threads, failures and audit.
 *
 * The first failure stops all; its text is the job's.
 */
#include "engine/local/local.h"

#include <stdio.h>

#include "engine/base/assert.h"
#include "engine/exec/fold/row_store.h"
#include "engine/local/exchange.h"
#include "engine/local/local_run.h"

/* The number of shards shows in the audit, so it does not depend on the threads: enough of them
 * that two threads seldom want the same one. */
enum { SHARD_COUNT = 8 };

/* ---- failure ---- */

void local_run_fail(struct local_run *run, const struct error *err)
{
    pthread_mutex_lock(&run->lock);
    /* Those who were only stopped have nothing to say. */
    if (!run->failed && err->code != STATUS_CANCELLED) {
        run->failed = true;
        run->error = *err;
    }
    pthread_mutex_unlock(&run->lock);
    atomic_store(&run->stopped, true);
    for (uint32_t i = 0; i < run->plan->table_count; i++) {
        table_files_stop(&run->options.files[i]);
    }
}

status local_run_status(struct local_run *run, struct error *err)
{
    if (run->failed) {
        *err = run->error;
        return err->code;
    }
    if (run->options.cancelled != NULL && atomic_load(run->options.cancelled)) {
        return error_set(err, STATUS_CANCELLED, "interrupted");
    }
    /* The receiver of the rows may also want no more of them. */
    if (atomic_load(&run->stopped)) return error_set(err, STATUS_CANCELLED, "interrupted");
    return STATUS_OK;
}

bool local_run_stops(struct local_run *run)
{
    if (run->options.cancelled != NULL && atomic_load(run->options.cancelled)) {
        struct error err = {.code = STATUS_CANCELLED};
        local_run_fail(run, &err);
    }
    return atomic_load(&run->stopped);
}

status local_run_memory(const struct local_run *run, const char *who, struct error *err)
{
    static const char *const units[] = {"bytes", "KiB", "MiB"};
    size_t limit = run->options.budget->limit_bytes;
    size_t unit = 0;
    for (; unit < 2 && limit % 1024 == 0; unit++) {
        limit /= 1024;
    }
    return error_set(
        err, STATUS_MEMORY,
        "%s: the memory limit of %zu %s is reached; raise --memory-limit, or ask fewer "
        "queries at once with --query",
        who, limit, units[unit]);
}

status local_run_blame(const struct local_run *run, struct text queries, const char *where,
                       struct error *err)
{
    if (err->code != STATUS_MEMORY) return error_prefix(err, "query %.*s", TEXT_ARGS(queries));
    char who[512];
    (void)snprintf(who, sizeof who, "query %.*s, %s", TEXT_ARGS(queries),
                   where); /* Cut at the end. */
    return local_run_memory(run, who, err);
}

const char *local_run_place(const struct local_run *run, const struct pipeline *pipeline)
{
    return run->plan->folds[pipeline->target].label;
}

/* ---- threads ---- */

struct item_queue {
    struct local_run *run;
    void (*work)(struct local_run *run, uint64_t item, void *context);
    void *context;
    uint64_t item_count;
    atomic_uint_fast64_t next_item;
};

static void *take_items(void *argument)
{
    struct item_queue *queue = argument;
    for (;;) {
        uint64_t item = atomic_fetch_add(&queue->next_item, 1);
        if (item >= queue->item_count || local_run_stops(queue->run)) return NULL;
        queue->work(queue->run, item, queue->context);
    }
}

void local_run_threads(uint32_t count, void *(*body)(void *), void *argument)
{
    pthread_t threads[JOB_THREADS_MAX];
    uint32_t started = 0;
    while (started + 1 < count && started < JOB_THREADS_MAX &&
           pthread_create(&threads[started], NULL, body, argument) == 0) {
        started++;
    }
    body(argument);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
}

void local_run_items(struct local_run *run, uint64_t count,
                     void (*work)(struct local_run *run, uint64_t item, void *context),
                     void *context)
{
    struct item_queue queue = {.run = run, .work = work, .context = context, .item_count = count};
    uint32_t threads = run->options.thread_count;
    local_run_threads(count < threads ? (uint32_t)count : threads, take_items, &queue);
}

/* ---- the audit ---- */

static struct audit_source audit_source(struct local_run *run)
{
    return (struct audit_source){
        .plan = run->plan,
        .counters = &run->counters,
        .files = run->options.files,
        .chunk_lines = run->chunk_lines,
        .shard_counts = run->shard_counts,
    };
}

/* The applied ends are counted by shard, under its lock; here no thread applies any more. */
static void add_applied(struct local_run *run, const struct fold *fold)
{
    const struct fold_run *target = &run->folds[fold->id];
    for (uint32_t i = 0; i < run->plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &run->plan->pipelines[i];
        if (pipeline->target != fold->id) continue;
        struct exchange_count *end = &run->counters.applied[i];
        *end = (struct exchange_count){0};
        for (uint32_t shard = 0; shard < target->shard_count; shard++) {
            exchange_count_merge(
                end, &target->applied[pipeline->target_input * target->shard_count + shard]);
        }
    }
}

status local_run_check(struct local_run *run, const struct fold *fold, struct error *err)
{
    const struct stream_out *stream = run->folds[fold->id].stream;
    struct audit_source source = audit_source(run);
    add_applied(run, fold);
    TRY(audit_check_fold(&source, fold, err));
    if (stream == NULL || stream->pending.count == 0) return STATUS_OK;
    return error_set(err, STATUS_INTERNAL,
                     "the counts do not reconcile: query %.*s: %u batches wait for one that never "
                     "came; the rows printed are void, please report this",
                     TEXT_ARGS(fold->queries), stream->pending.count);
}

static status check_balance(struct local_run *run, struct error *err)
{
    struct audit_source source = audit_source(run);
    for (uint32_t i = 0; i < run->plan->fold_count; i++) {
        add_applied(run, &run->plan->folds[i]);
    }
    TRY(audit_check(&source, err));
    run->balanced = true;
    return STATUS_OK;
}

/* ---- opening and closing ---- */

static bool can_stream(const struct local_run *run, const struct fold *fold)
{
    int32_t query = run->options.events->stream_query;
    const struct plan *plan = run->plan;
    if (query < 0 || plan->queries[query].result_fold != fold->id || plan->queries[query].ordered) {
        return false;
    }
    if (fold->kind != FOLD_COLLECT || fold->input_count != 1 || fold->offset != 0 ||
        fold->limit != UINT64_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        if (plan->pipelines[i].target == fold->id) {
            return plan->pipelines[i].source_kind == SOURCE_SCAN;
        }
    }
    return false;
}

static status fold_run_init(struct local_run *run, const struct fold *fold, struct error *err)
{
    struct fold_run *fold_run = &run->folds[fold->id];
    uint32_t shard_count = fold_shard_count(fold, run->options.shard_count);
    fold_run->fold = fold;
    run->shard_counts[fold->id] = shard_count;
    fold_run->shards = arena_array(&run->arena, struct fold_shard *, shard_count);
    fold_run->locks = arena_array(&run->arena, pthread_mutex_t, shard_count);
    fold_run->applied = arena_array(&run->arena, struct exchange_count,
                                    (size_t)shard_count * (fold->input_count + 1));
    if (fold_run->shards == NULL || fold_run->locks == NULL || fold_run->applied == NULL) {
        return error_memory(err);
    }
    for (uint32_t i = 0; i < shard_count; i++) {
        pthread_mutex_init(&fold_run->locks[i], NULL);
        fold_run->shard_count = i + 1;
        TRY(fold_shard_create(fold, run->options.budget, run->options.store, &fold_run->shards[i],
                              err));
    }
    const struct plan *plan = run->plan;
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &plan->pipelines[i];
        fold_run->uses_left +=
            pipeline->source_kind == SOURCE_FOLD && pipeline->source == fold->id ? 1 : 0;
    }
    for (uint32_t i = 0; i < plan->query_count; i++) {
        fold_run->uses_left += plan->queries[i].result_fold == fold->id ? 1 : 0;
    }
    /* Build sides and scalars are read by maps until the end. */
    if (fold->is_build_side || fold->is_scalar) fold_run->uses_left++;
    if (can_stream(run, fold)) {
        fold_run->stream = &run->stream;
        run->stream.events = run->options.events;
        run->stream.query = (uint32_t)run->options.events->stream_query;
        arena_init(&run->stream.arena, run->options.budget);
    }
    return STATUS_OK;
}

static status local_run_init(struct local_run *run, struct error *err)
{
    const struct plan *plan = run->plan;
    run->folds = arena_array(&run->arena, struct fold_run, plan->fold_count + 1);
    run->scalars = arena_array(&run->arena, struct value, plan->fold_count + 1);
    run->sides = arena_array(&run->arena, struct join_table, plan->fold_count + 1);
    run->chunk_lines = arena_array(&run->arena, uint32_t *, plan->table_count + 1);
    run->shard_counts = arena_array(&run->arena, uint32_t, plan->fold_count + 1);
    if (run->folds == NULL || run->scalars == NULL || run->sides == NULL ||
        run->chunk_lines == NULL || run->shard_counts == NULL ||
        !counters_init(&run->counters, plan, &run->arena)) {
        return local_run_memory(run, "preparing the job", err);
    }
    run->finished = (struct finished){.scalars = run->scalars,
                                      .sides = run->sides,
                                      .sentiment = run->options.sentiment,
                                      .stopped = &run->stopped,
                                      .cancelled = run->options.cancelled};
    run->exchanges = (struct exchanges){.folds = run->folds,
                                        .fold_count = plan->fold_count,
                                        .budget = run->options.budget,
                                        .fault = run->options.fault};
    for (uint32_t i = 0; i < plan->table_count; i++) {
        run->chunk_lines[i] =
            arena_array(&run->arena, uint32_t, run->options.files[i].chunk_count + 1);
        if (run->chunk_lines[i] == NULL) {
            return local_run_memory(run, "preparing the job", err);
        }
    }
    for (uint32_t i = 0; i < plan->scan_count; i++) {
        run->total_bytes += run->options.files[plan->scans[i].table].byte_count;
    }
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        if (fold_run_init(run, &plan->folds[i], err) != STATUS_OK) {
            return local_run_blame(run, plan->folds[i].queries, plan->folds[i].label, err);
        }
    }
    return STATUS_OK;
}

status local_run_create(const struct local_options *options, struct local_run **out_run,
                        struct error *err)
{
    /* Outside the budget: it has one size, and names the limit when that is too small for the rest.
     */
    struct local_run *run = memory_alloc(NULL, sizeof *run);
    if (run == NULL) return error_memory(err);
    *run = (struct local_run){.options = *options, .plan = options->plan};
    if (run->options.thread_count == 0) run->options.thread_count = 1;
    if (run->options.thread_count > JOB_THREADS_MAX) run->options.thread_count = JOB_THREADS_MAX;
    if (run->options.shard_count == 0) {
        run->options.shard_count = SHARD_COUNT;
    }
    pthread_mutex_init(&run->lock, NULL);
    arena_init(&run->arena, options->budget);
    status result = local_run_init(run, err);
    if (result != STATUS_OK) {
        local_run_destroy(run);
        return result;
    }
    *out_run = run;
    return STATUS_OK;
}

status local_run_execute(struct local_run *run, struct error *err)
{
    const struct plan *plan = run->plan;
    for (uint32_t phase = 0; phase < plan->phase_count; phase++) {
        TRY(local_run_scans(run, phase, err));
        TRY(exchange_release(&run->exchanges, err));
        TRY(local_run_finish(run, phase, err));
    }
    return check_balance(run, err);
}

status local_run_result(struct local_run *run, uint32_t query, struct fold_sink *sink,
                        struct error *err)
{
    ASSERT(run->balanced);
    struct fold_run *fold_run = &run->folds[run->plan->queries[query].result_fold];
    if (fold_run->stream != NULL) return STATUS_OK; /* Its rows are out already. */
    status result = fold_shard_emit(fold_run->shards[0], sink, err);
    if (result == STATUS_MEMORY) {
        result = local_run_blame(run, run->plan->queries[query].name, fold_run->fold->label, err);
    }
    local_run_release(fold_run);
    return result;
}

status local_run_audit(struct local_run *run, struct arena *arena, struct audit *out_audit,
                       struct error *err)
{
    struct audit_source source = audit_source(run);
    for (uint32_t i = 0; i < run->plan->fold_count; i++) {
        add_applied(run, &run->plan->folds[i]);
    }
    TRY(audit_make(&source, arena, out_audit, err));
    out_audit->balanced = run->balanced;
    out_audit->bytes_read = atomic_load(&run->done_bytes);
    return STATUS_OK;
}

void local_run_destroy(struct local_run *run)
{
    if (run == NULL) return;
    for (uint32_t i = 0; run->folds != NULL && i < run->plan->fold_count; i++) {
        struct fold_run *fold_run = &run->folds[i];
        for (uint32_t shard = 0; shard < fold_run->shard_count; shard++) {
            fold_shard_destroy(fold_run->shards[shard]);
            pthread_mutex_destroy(&fold_run->locks[shard]);
        }
    }
    for (size_t i = 0; i < run->stream.pending.count; i++) {
        buf_done(&run->stream.pending.items[i].bytes);
    }
    array_done(&run->stream.pending, run->options.budget);
    arena_done(&run->stream.arena);
    pthread_mutex_destroy(&run->lock);
    arena_done(&run->arena);
    memory_free(NULL, run, sizeof *run);
}
