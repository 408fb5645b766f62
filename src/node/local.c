/* local.c - the life of a run: phases, threads, and the order in which folds are finished.
 *
 * The first failure stops all; its text is the job's. A fold's rows are given back as soon as
 * nothing will read them any more: with many queries, most are gone before the last phase.
 */
#include "node/local.h"

#include <stdio.h>

#include "base/assert.h"
#include "exec/kept_rows.h"
#include "node/edge.h"
#include "node/local_run.h"

/* The number of shards shows in the books, so it does not depend on the threads: enough of them
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
    /* Whoever takes the rows may also want no more of them. */
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

struct crew {
    struct local_run *run;
    void (*work)(struct local_run *run, uint64_t item, void *context);
    void *context;
    uint64_t item_count;
    atomic_uint_fast64_t next_item;
};

static void *crew_member(void *argument)
{
    struct crew *crew = argument;
    for (;;) {
        uint64_t item = atomic_fetch_add(&crew->next_item, 1);
        if (item >= crew->item_count || local_run_stops(crew->run)) return NULL;
        crew->work(crew->run, item, crew->context);
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

static void run_items(struct local_run *run, uint64_t count,
                      void (*work)(struct local_run *, uint64_t, void *), void *context)
{
    struct crew crew = {.run = run, .work = work, .context = context, .item_count = count};
    uint32_t threads = run->options.thread_count;
    local_run_threads(count < threads ? (uint32_t)count : threads, crew_member, &crew);
}

/* ---- from fold to fold ---- */

struct fold_feed {
    struct fold_sink sink;
    struct local_run *run;
    const struct pipeline *pipeline;
    struct pipeline_run *pipeline_run;
    struct pipeline_output *outputs;
    struct book_end sent;
    uint32_t lane;
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
        .input = feed->pipeline->target_input, .lane = feed->lane, .number = number};
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

static void feed_shard(struct local_run *run, uint64_t item, void *context)
{
    const struct pipeline *pipeline = context;
    struct fold_run *source = &run->folds[pipeline->source];
    struct fold_feed feed = {
        .sink = {.accept = feed_batch}, .run = run, .pipeline = pipeline, .lane = (uint32_t)item};
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
    if (result == STATUS_OK) result = fold_shard_emit(source->shards[item], &feed.sink, &err);
    if (result != STATUS_OK) {
        const char *place =
            feed.pipeline_run == NULL ? local_run_place(run, pipeline) : source->fold->label;
        if (!feed.explained) (void)local_run_blame(run, pipeline->queries, place, &err);
        local_run_fail(run, &err);
    }
    if (feed.pipeline_run != NULL) {
        const struct pipeline_counts *counts = pipeline_run_counts(feed.pipeline_run);
        pthread_mutex_lock(&run->lock);
        struct stage_counts *stage = &run->account.maps[pipeline->id];
        stage->rows_in += counts->rows_in;
        stage->rows_out += counts->rows_out;
        stage->malformed += counts->malformed;
        book_end_merge(&run->account.sent[pipeline->id], &feed.sent);
        pthread_mutex_unlock(&run->lock);
    }
    pipeline_run_destroy(feed.pipeline_run);
    local_outputs_done(run, feed.outputs);
    arena_done(&arena);
}

static void finish_shard(struct local_run *run, uint64_t item, void *context)
{
    struct fold_run *fold_run = context;
    struct error err;
    if (fold_shard_finish(fold_run->shards[item], &err) != STATUS_OK) {
        (void)local_run_blame(run, fold_run->fold->queries, fold_run->fold->label, &err);
        local_run_fail(run, &err);
    }
}

static void release_fold(struct fold_run *fold_run)
{
    ASSERT(fold_run->uses_left > 0);
    if (--fold_run->uses_left > 0) return;
    for (uint32_t i = 0; i < fold_run->shard_count; i++) {
        fold_shard_destroy(fold_run->shards[i]);
        fold_run->shards[i] = NULL;
    }
}

/* ---- the books ---- */

static struct books_source books_source(struct local_run *run)
{
    return (struct books_source){
        .plan = run->plan,
        .account = &run->account,
        .files = run->options.files,
        .chunk_lines = run->chunk_lines,
        .shard_counts = run->shard_counts,
    };
}

/* The applied ends are counted by shard, under its lock; here nobody applies any more. */
static void add_applied(struct local_run *run, const struct fold *fold)
{
    const struct fold_run *target = &run->folds[fold->id];
    for (uint32_t i = 0; i < run->plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &run->plan->pipelines[i];
        if (pipeline->target != fold->id) continue;
        struct book_end *end = &run->account.applied[i];
        *end = (struct book_end){0};
        for (uint32_t shard = 0; shard < target->shard_count; shard++) {
            book_end_merge(end,
                           &target->applied[pipeline->target_input * target->shard_count + shard]);
        }
    }
}

/* Compares both ends of the edges that feed a fold, before anybody trusts what it holds: a doubled
 * batch must not show as a mistake in the user's SQL. */
static status check_inputs(struct local_run *run, const struct fold *fold, struct error *err)
{
    const struct stream_out *stream = run->folds[fold->id].stream;
    struct books_source source = books_source(run);
    add_applied(run, fold);
    TRY(books_check_fold(&source, fold, err));
    if (stream == NULL || stream->pending_count == 0) return STATUS_OK;
    return error_set(err, STATUS_INTERNAL,
                     "the books don't balance: query %.*s: %zu batches wait for one that never "
                     "came; the rows printed are void, please report this",
                     TEXT_ARGS(fold->queries), stream->pending_count);
}

static status check_balance(struct local_run *run, struct error *err)
{
    struct books_source source = books_source(run);
    for (uint32_t i = 0; i < run->plan->fold_count; i++) {
        add_applied(run, &run->plan->folds[i]);
    }
    TRY(books_check(&source, err));
    run->balanced = true;
    return STATUS_OK;
}

static status finish_fold(struct local_run *run, struct fold_run *fold_run, struct error *err)
{
    const struct plan *plan = run->plan;
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &plan->pipelines[i];
        if (pipeline->target != fold_run->fold->id || pipeline->source_kind != SOURCE_FOLD)
            continue;
        struct fold_run *source = &run->folds[pipeline->source];
        ASSERT(source->finished);
        run_items(run, source->shard_count, feed_shard, (void *)(uintptr_t)pipeline);
        TRY(local_run_status(run, err));
        release_fold(source);
    }
    TRY(edge_release(&run->edges, err));
    TRY(check_inputs(run, fold_run->fold, err));
    run_items(run, fold_run->shard_count, finish_shard, fold_run);
    TRY(local_run_status(run, err));
    fold_run->finished = true;
    uint32_t id = fold_run->fold->id;
    for (uint32_t i = 0; i < fold_run->shard_count; i++) {
        const struct fold_counts *counts = fold_shard_counts(fold_run->shards[i]);
        run->account.folds[id].rows_in += counts->rows_in;
        run->account.folds[id].rows_out += counts->rows_out;
        run->account.folds[id].batches_out += counts->batches_out;
    }
    if (fold_run->fold->is_side) run->sides[id] = *fold_shard_side(fold_run->shards[0]);
    if (fold_run->fold->is_scalar) {
        status result = fold_shard_scalar(fold_run->shards[0], &run->scalars[id], err);
        if (result != STATUS_OK) {
            return local_run_blame(run, fold_run->fold->queries, fold_run->fold->label, err);
        }
    }
    return STATUS_OK;
}

/* ---- life ---- */

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
    fold_run->applied =
        arena_array(&run->arena, struct book_end, (size_t)shard_count * (fold->input_count + 1));
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
    /* Side tables and scalars are read by maps until the end. */
    if (fold->is_side || fold->is_scalar) fold_run->uses_left++;
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
    run->sides = arena_array(&run->arena, struct side_table, plan->fold_count + 1);
    run->chunk_lines = arena_array(&run->arena, uint32_t *, plan->table_count + 1);
    run->shard_counts = arena_array(&run->arena, uint32_t, plan->fold_count + 1);
    if (run->folds == NULL || run->scalars == NULL || run->sides == NULL ||
        run->chunk_lines == NULL || run->shard_counts == NULL ||
        !account_init(&run->account, plan, &run->arena)) {
        return local_run_memory(run, "preparing the job", err);
    }
    run->finished = (struct finished){.scalars = run->scalars,
                                      .sides = run->sides,
                                      .sentiment = run->options.sentiment,
                                      .stopped = &run->stopped,
                                      .cancelled = run->options.cancelled};
    run->edges.folds = run->folds;
    run->edges.budget = run->options.budget;
    run->edges.options = &run->options;
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
    pthread_mutex_init(&run->edges.waiting.lock, NULL);
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
        TRY(edge_release(&run->edges, err));
        for (uint32_t i = 0; i < plan->fold_count; i++) {
            if (plan->folds[i].phase == phase) TRY(finish_fold(run, &run->folds[i], err));
        }
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
    release_fold(fold_run);
    return result;
}

status local_run_books(struct local_run *run, struct arena *arena, struct books *out_books,
                       struct error *err)
{
    struct books_source source = books_source(run);
    for (uint32_t i = 0; i < run->plan->fold_count; i++) {
        add_applied(run, &run->plan->folds[i]);
    }
    TRY(books_make(&source, arena, out_books, err));
    out_books->balanced = run->balanced;
    out_books->bytes_read = atomic_load(&run->done_bytes);
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
    struct waiting_room *room = &run->edges.waiting;
    for (size_t i = 0; i < room->count; i++) {
        buf_done(&room->batches[i].bytes);
    }
    memory_free(run->options.budget, room->batches, room->capacity * sizeof *room->batches);
    for (size_t i = 0; i < run->stream.pending_count; i++) {
        buf_done(&run->stream.pending[i].bytes);
    }
    memory_free(run->options.budget, run->stream.pending,
                run->stream.pending_capacity * sizeof *run->stream.pending);
    arena_done(&run->stream.arena);
    pthread_mutex_destroy(&room->lock);
    pthread_mutex_destroy(&run->lock);
    arena_done(&run->arena);
    memory_free(NULL, run, sizeof *run);
}
