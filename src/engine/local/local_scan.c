/* SPDX-License-Identifier: Apache-2.0 */
/* local_scan.c - the threads of a phase, from chunks of files to batches for the folds.
 *
 * Threads take chunk numbers from one counter, so that chunks begin in order and no thread waits
 * for the end (chunk_reader.h) of a chunk that none has taken (morsel-driven scheduling: Leis et
 * al., SIGMOD 2014). A chunk that was begun in the wrong place leaves no trace.
 */
#include "engine/local/local_run.h"

#include <stdio.h>

#include "engine/exec/scan_run.h"
#include "engine/file/clock.h"
#include "engine/local/chunk_reader.h"
#include "engine/local/table_files.h"

enum { PROGRESS_PER_SECOND = 10 };

/* One scan as one thread carries it out. */
struct scan_worker {
    struct scan_run *scan;
    struct exchange_count *sent; /* By pipeline of the scan. */
    struct table_counters table_counters;
    struct table_counters chunk_counters; /* Of the chunk in flight, */
    uint64_t chunk_lines;                 /* and the lines of it so far. */
    bool counts_counters;
};

struct phase_work {
    struct local_run *run;
    const struct scan **scans;
    uint64_t *first_items; /* Of each scan, among the phase's chunks. */
    uint32_t scan_count;
    uint64_t item_count;
    atomic_uint_fast64_t next_item;
};

static void scan_worker_done(struct local_run *run, const struct scan *scan,
                             struct scan_worker *worker)
{
    pthread_mutex_lock(&run->lock);
    if (worker->counts_counters)
        table_counters_merge(&run->counters.tables[scan->table], &worker->table_counters);
    for (uint32_t i = 0; i < scan->pipeline_count; i++) {
        const struct pipeline_counts *counts =
            pipeline_run_counts(scan_run_pipeline(worker->scan, i));
        struct stage_counts *stage = &run->counters.maps[scan->pipelines[i]];
        stage->rows_in += counts->rows_in;
        stage->rows_out += counts->rows_out;
        stage->malformed += counts->malformed;
        exchange_count_merge(&run->counters.sent[scan->pipelines[i]], &worker->sent[i]);
    }
    pthread_mutex_unlock(&run->lock);
    scan_run_destroy(worker->scan);
}

/* A table that is scanned twice is counted once. */
static bool is_first_scan(const struct plan *plan, const struct scan *scan)
{
    for (uint32_t i = 0; i < scan->id; i++) {
        if (plan->scans[i].table == scan->table) return false;
    }
    return true;
}

/* Memory that ran out for the reading itself, which no query alone is to blame for. */
static status scan_memory(const struct local_run *run, const struct scan *scan, struct error *err)
{
    if (err->code != STATUS_MEMORY) return err->code;
    char who[512];
    (void)snprintf(who, sizeof who, "reading %.*s",
                   TEXT_ARGS(run->plan->tables[scan->table].name)); /* Cut at the end. */
    return local_run_memory(run, who, err);
}

/* Says whose failure it is. */
static status scan_blame(const struct local_run *run, const struct scan *scan, uint32_t culprit,
                         struct error *err)
{
    if (culprit == SCAN_RUN_ITSELF) return scan_memory(run, scan, err);
    const struct pipeline *pipeline = &run->plan->pipelines[scan->pipelines[culprit]];
    return local_run_blame(run, pipeline->queries, local_run_place(run, pipeline), err);
}

static status scan_worker_init(struct local_run *run, const struct scan *scan,
                               struct scan_worker *worker, struct arena *arena, struct error *err)
{
    const struct table *table = &run->plan->tables[scan->table];
    struct scan_run_options options = {
        .plan = run->plan,
        .scan = scan,
        .finished = &run->finished,
        .shard_counts = run->shard_counts,
        .field_limit = run->options.field_limit,
        .budget = run->options.budget,
    };
    uint32_t culprit;
    worker->sent = arena_array(arena, struct exchange_count, scan->pipeline_count + 1);
    if (worker->sent == NULL ||
        !table_counters_init(&worker->table_counters, table->schema.count, arena) ||
        !table_counters_init(&worker->chunk_counters, table->schema.count, arena)) {
        err->code = STATUS_MEMORY;
        return scan_memory(run, scan, err);
    }
    worker->counts_counters = is_first_scan(run->plan, scan);
    if (scan_run_create(&options, &worker->scan, &culprit, err) != STATUS_OK) {
        return scan_blame(run, scan, culprit, err);
    }
    return STATUS_OK;
}

/* Shards grow at about the same time, and a thread that finds one growing waits. So that no thread
 * follows another from shard to shard, each number begins at another shard, the next one far away:
 * multiplicative hashing by the golden section (Knuth, TAOCP 3, 6.4). */
static uint32_t first_shard(uint64_t number, uint32_t shard_count)
{
    uint64_t golden = 0x9e3779b9; /* Of 2^32. */
    return (uint32_t)((number * golden & UINT32_MAX) * shard_count >> 32);
}

status local_run_flush(struct local_run *run, const struct pipeline *pipeline,
                       struct pipeline_run *pipeline_run, struct batch_identity identity,
                       struct pipeline_output *outputs, struct exchange_count *sent,
                       struct error *err)
{
    uint32_t shard_count = run->folds[pipeline->target].shard_count;
    status result = pipeline_run_flush(pipeline_run, outputs, err);
    bool flushed = result == STATUS_OK;
    uint32_t first = first_shard(identity.number, shard_count);
    for (uint32_t i = 0; i < shard_count; i++) {
        uint32_t shard = (first + i) % shard_count;
        if (result == STATUS_OK) {
            result = exchange_deliver(&run->exchanges, pipeline, shard, identity, &outputs[shard],
                                      sent, err);
        }
        buf_reset(&outputs[shard].bytes);
    }
    /* What goes wrong behind the exchange may be the reader's of a stream: that is no query's
     * fault. */
    bool is_streamed = run->folds[pipeline->target].stream != NULL;
    if (!flushed || result == STATUS_MEMORY || (result == STATUS_IO && !is_streamed)) {
        return local_run_blame(run, pipeline->queries, local_run_place(run, pipeline), err);
    }
    return result;
}

static void report_progress(struct local_run *run, uint64_t more_bytes)
{
    uint64_t done = atomic_fetch_add(&run->done_bytes, more_bytes) + more_bytes;
    if (run->options.events->progress == NULL) return;
    if (pthread_mutex_trylock(&run->lock) != 0) return;
    double now = clock_seconds();
    if (now >= run->next_progress) {
        run->next_progress = now + 1.0 / PROGRESS_PER_SECOND;
        run->options.events->progress(run->options.events->context, done, run->total_bytes);
    }
    pthread_mutex_unlock(&run->lock);
}

/* Failures of the scan itself speak of a place in a file. */
static status scan_failure(struct local_run *run, const struct scan *scan,
                           const struct scan_worker *worker, const struct chunk *chunk,
                           uint32_t file, struct error *err)
{
    struct table_files *files = &run->options.files[scan->table];
    uint64_t offset = chunk->offset + scan_run_error_offset(worker->scan);
    if (err->code == STATUS_INPUT) return table_files_unclosed(files, file, offset, err);
    if (err->code == STATUS_LIMIT) return table_files_place(files, file, offset, err);
    return scan_memory(run, scan, err);
}

static status scan_piece(struct local_run *run, const struct scan *scan, struct scan_worker *worker,
                         uint64_t number, struct chunk *piece, uint32_t file, struct error *err)
{
    uint32_t culprit;
    piece->lines_before = worker->chunk_lines;
    if (scan_run_chunk(worker->scan, piece, &culprit, err) != STATUS_OK) {
        if (culprit == SCAN_RUN_ITSELF) return scan_failure(run, scan, worker, piece, file, err);
        return scan_blame(run, scan, culprit, err);
    }
    const struct chunk_counters *table_counters = scan_run_counters(worker->scan);
    table_counters_add(&worker->chunk_counters, number, table_counters);
    worker->chunk_lines += table_counters->line_count;
    return STATUS_OK;
}

static status scan_pieces(struct local_run *run, const struct scan *scan,
                          struct scan_worker *worker, uint64_t number, struct chunk_reader *reader,
                          struct error *err)
{
    for (;;) {
        struct chunk piece;
        bool more;
        if (local_run_stops(run)) return error_set(err, STATUS_CANCELLED, "interrupted");
        if (chunk_reader_next(reader, &piece, &more, err) != STATUS_OK) {
            return scan_memory(run, scan, err);
        }
        if (!more) return STATUS_OK;
        TRY(scan_piece(run, scan, worker, number, &piece, chunk_reader_file(reader), err));
    }
}

static void discard_chunk(const struct scan *scan, struct scan_worker *worker)
{
    table_counters_reset(&worker->chunk_counters);
    worker->chunk_lines = 0;
    for (uint32_t i = 0; i < scan->pipeline_count; i++) {
        pipeline_run_discard(scan_run_pipeline(worker->scan, i));
    }
}

/* All records of a chunk through all pipelines, from where it really begins. */
static status scan_chunk(struct local_run *run, const struct scan *scan, struct scan_worker *worker,
                         uint64_t number, struct chunk_reader *reader, struct error *err)
{
    uint32_t record_limit = table_files_record_limit(run->options.field_limit);
    struct table_files *files = &run->options.files[scan->table];
    status result = chunk_reader_begin(reader, files, number, record_limit, err);
    if (result != STATUS_OK) result = scan_memory(run, scan, err);
    for (bool again = true;;) {
        struct error end_error;
        if (result == STATUS_OK) result = scan_pieces(run, scan, worker, number, reader, err);
        if (chunk_reader_end(reader, &run->stopped, &again, &end_error) != STATUS_OK) {
            *err = end_error;
            return err->code;
        }
        if (!again) return result;
        discard_chunk(scan, worker);
        result = STATUS_OK;
    }
}

/* What became of a chunk goes into the audit and to the folds. */
static status deliver_chunk(struct local_run *run, const struct scan *scan,
                            struct scan_worker *worker, uint64_t number,
                            struct pipeline_output *outputs, struct error *err)
{
    table_counters_merge(&worker->table_counters, &worker->chunk_counters);
    table_counters_reset(&worker->chunk_counters);
    run->chunk_lines[scan->table][number] = (uint32_t)worker->chunk_lines;
    worker->chunk_lines = 0;
    for (uint32_t i = 0; i < scan->pipeline_count; i++) {
        const struct pipeline *pipeline = &run->plan->pipelines[scan->pipelines[i]];
        struct batch_identity identity = {.input = pipeline->target_input, .number = number};
        TRY(local_run_flush(run, pipeline, scan_run_pipeline(worker->scan, i), identity, outputs,
                            &worker->sent[i], err));
    }
    return STATUS_OK;
}

static uint32_t most_shards(const struct local_run *run)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < run->plan->fold_count; i++) {
        if (run->folds[i].shard_count > most) most = run->folds[i].shard_count;
    }
    return most;
}

struct pipeline_output *local_outputs_new(struct local_run *run, struct arena *arena)
{
    uint32_t count = most_shards(run);
    struct pipeline_output *outputs = arena_array(arena, struct pipeline_output, count);
    for (uint32_t i = 0; outputs != NULL && i < count; i++) {
        outputs[i].bytes.budget = run->options.budget;
    }
    return outputs;
}

void local_outputs_done(struct local_run *run, struct pipeline_output *outputs)
{
    for (uint32_t i = 0; outputs != NULL && i < most_shards(run); i++) {
        buf_done(&outputs[i].bytes);
    }
}

static status scan_items(struct phase_work *work, struct scan_worker *workers,
                         struct chunk_reader *reader, struct pipeline_output *outputs,
                         struct arena *arena, struct error *err)
{
    struct local_run *run = work->run;
    while (!local_run_stops(run)) {
        uint64_t item = atomic_fetch_add(&work->next_item, 1);
        if (item >= work->item_count) return STATUS_OK;
        uint32_t place = work->scan_count - 1;
        while (work->first_items[place] > item) {
            place--;
        }
        const struct scan *scan = work->scans[place];
        uint64_t number = item - work->first_items[place];
        struct scan_worker *worker = &workers[place];
        if (worker->scan == NULL) TRY(scan_worker_init(run, scan, worker, arena, err));
        TRY(scan_chunk(run, scan, worker, number, reader, err));
        TRY(deliver_chunk(run, scan, worker, number, outputs, err));
        report_progress(run, chunk_reader_bytes(reader));
    }
    return STATUS_OK;
}

static void *scan_thread(void *argument)
{
    struct phase_work *work = argument;
    struct local_run *run = work->run;
    struct arena arena;
    struct error err;
    arena_init(&arena, run->options.budget);
    struct chunk_reader *reader = NULL;
    struct scan_worker *workers = arena_array(&arena, struct scan_worker, work->scan_count);
    struct pipeline_output *outputs = local_outputs_new(run, &arena);
    status result = STATUS_OK;
    if (workers == NULL || outputs == NULL ||
        chunk_reader_create(run->options.budget, &reader, &err) != STATUS_OK) {
        result = local_run_memory(run, "reading files", &err);
    }
    if (result == STATUS_OK) result = scan_items(work, workers, reader, outputs, &arena, &err);
    if (result != STATUS_OK) local_run_fail(run, &err);
    for (uint32_t i = 0; workers != NULL && i < work->scan_count; i++) {
        if (workers[i].scan != NULL) scan_worker_done(run, work->scans[i], &workers[i]);
    }
    chunk_reader_destroy(reader);
    local_outputs_done(run, outputs);
    arena_done(&arena);
    return NULL;
}

status local_run_scans(struct local_run *run, uint32_t phase, struct error *err)
{
    const struct plan *plan = run->plan;
    struct phase_work work = {
        .run = run,
        .scans = arena_array(&run->arena, const struct scan *, plan->scan_count + 1),
        .first_items = arena_array(&run->arena, uint64_t, plan->scan_count + 1),
    };
    if (work.scans == NULL || work.first_items == NULL) {
        return error_memory(err);
    }
    for (uint32_t i = 0; i < plan->scan_count; i++) {
        const struct scan *scan = &plan->scans[i];
        uint64_t chunk_count = run->options.files[scan->table].chunk_count;
        if (scan->phase != phase || chunk_count == 0) continue;
        table_files_rewind(&run->options.files[scan->table]);
        work.scans[work.scan_count] = scan;
        work.first_items[work.scan_count++] = work.item_count;
        work.item_count += chunk_count;
    }
    if (work.item_count == 0) return STATUS_OK;
    uint32_t threads = run->options.thread_count;
    local_run_threads(work.item_count < threads ? (uint32_t)work.item_count : threads, scan_thread,
                      &work);
    return local_run_status(run, err);
}
