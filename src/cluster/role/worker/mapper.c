/* SPDX-License-Identifier: Apache-2.0 */
/* mapper.c - runs the maps of one chunk and sorts what they make by destination.
 *
 * Preparing a scan (compiling patterns, making tables) costs more than mapping a small chunk, so a
 * mapper keeps what it prepared: one entry per job and scan. Of PREPARED_MAX entries the one that
 * was not used for longest gives way (LRU).
 */
#include "cluster/role/worker/mapper.h"

#include <stdio.h>

#include "engine/base/assert.h"
#include "engine/data/csv_split.h"
#include "engine/exec/fold/fold.h"
#include "engine/exec/scan_run.h"

enum { PREPARED_MAX = 16 };

struct prepared {
    struct map_job *job; /* Kept; NULL: the entry is free. */
    uint32_t scan;
    struct scan_run *run;
    struct pipeline_counts *counted; /* By pipeline of the scan: told already. */
    struct counters counters;        /* Of one chunk. */
    struct arena arena;
    uint64_t used; /* When it was last used, by the mapper's clock. */
};

struct mapper {
    struct prepared prepared[PREPARED_MAX];
    uint64_t clock;
    struct arena arena; /* Of one task. */
};

/* ---- jobs and tasks ---- */

struct map_job *map_job_keep(struct map_job *job)
{
    atomic_fetch_add(&job->uses, 1);
    return job;
}

void map_job_release(struct map_job *job)
{
    if (job != NULL && atomic_fetch_sub(&job->uses, 1) == 1) job->destroy(job);
}

void map_task_destroy(struct map_task *task)
{
    if (task == NULL) return;
    for (uint32_t i = 0; i < task->output_count; i++) {
        buf_done(&task->outputs[i]);
    }
    memory_free(NULL, task->outputs, task->output_count * sizeof *task->outputs);
    buf_done(&task->message);
    map_job_release(task->job);
    memory_free(NULL, task, sizeof *task);
}

/* ---- prepared scans ---- */

static void prepared_done(struct prepared *prepared)
{
    if (prepared->job == NULL) return;
    scan_run_destroy(prepared->run);
    arena_done(&prepared->arena);
    map_job_release(prepared->job);
    *prepared = (struct prepared){0};
}

static struct prepared *find_prepared(struct mapper *mapper, const struct map_task *task)
{
    struct prepared *oldest = &mapper->prepared[0];
    for (uint32_t i = 0; i < PREPARED_MAX; i++) {
        struct prepared *prepared = &mapper->prepared[i];
        if (prepared->job == task->job && prepared->scan == task->scan) return prepared;
        if (prepared->used < oldest->used) oldest = prepared;
    }
    prepared_done(oldest);
    return oldest;
}

/* "query q1: ..." */
static status blame(const struct map_task *task, uint32_t culprit, struct error *err)
{
    const struct plan *plan = task->job->layout->plan;
    const struct scan *scan = &plan->scans[task->scan];
    if (culprit == SCAN_RUN_ITSELF) {
        return error_prefix(err, "reading %.*s", TEXT_ARGS(plan->tables[scan->table].name));
    }
    const struct pipeline *pipeline = &plan->pipelines[scan->pipelines[culprit]];
    return error_prefix(err, "query %.*s", TEXT_ARGS(pipeline->queries));
}

static status prepare(struct prepared *prepared, struct map_task *task, struct error *err)
{
    struct map_job *job = task->job;
    const struct plan *plan = job->layout->plan;
    const struct scan *scan = &plan->scans[task->scan];
    *prepared = (struct prepared){.job = map_job_keep(job), .scan = task->scan};
    arena_init(&prepared->arena, &job->budget);
    prepared->counted =
        arena_array(&prepared->arena, struct pipeline_counts, scan->pipeline_count + 1);
    if (prepared->counted == NULL || !counters_init(&prepared->counters, plan, &prepared->arena)) {
        return error_memory(err);
    }
    struct scan_run_options options = {
        .plan = plan,
        .scan = scan,
        .finished = &job->finished,
        .shard_counts = job->layout->shard_counts,
        .field_limit = job->layout->manifest.field_limit,
        .budget = &job->budget,
    };
    uint32_t culprit;
    if (scan_run_create(&options, &prepared->run, &culprit, err) != STATUS_OK) {
        return blame(task, culprit, err);
    }
    return STATUS_OK;
}

/* ---- one chunk ---- */

/* The place of a failure of the reading itself, as one process would name it. */
static status scan_place(const struct map_task *task, const struct chunk_body *body,
                         uint32_t offset, struct error *err)
{
    const struct job_layout *layout = task->job->layout;
    const struct manifest_table *files =
        job_layout_files(layout, layout->plan->scans[task->scan].table);
    uint64_t line = body->first_line + csv_count_lines(body->bytes.bytes, offset);
    struct text name = TEXT_INIT("?");
    if (files != NULL && body->file < files->file_count) name = files->files[body->file].name;
    if (err->code == STATUS_INPUT) {
        status failed =
            error_set(err, STATUS_INPUT, "a quoted field begins here and is never closed");
        (void)failed; /* It gets its place. */
    }
    return error_prefix(err, "%.*s:%llu", TEXT_ARGS(name), (unsigned long long)line);
}

struct output_list {
    struct output_item *items; /* Of all workers. */
    uint32_t *workers;         /* Whose each is. */
    uint32_t count;
};

static status flush_pipeline(struct prepared *prepared, const struct map_task *task, uint32_t index,
                             struct output_list *list, struct pipeline_output *outputs,
                             struct arena *arena, struct error *err)
{
    const struct job_layout *layout = task->job->layout;
    uint32_t id = layout->plan->scans[task->scan].pipelines[index];
    const struct pipeline *pipeline = &layout->plan->pipelines[id];
    uint32_t shard_count = layout->shard_counts[pipeline->target];
    struct pipeline_run *run = scan_run_pipeline(prepared->run, index);
    TRY(pipeline_run_flush(run, outputs, err));
    for (uint32_t shard = 0; shard < shard_count; shard++) {
        struct buf *bytes = &outputs[shard].bytes;
        char *copy = arena_alloc(arena, bytes->size + 1, 8);
        if (copy == NULL) return error_memory(err);
        memcpy(copy, bytes->bytes, bytes->size);
        struct text text = {copy, (uint32_t)bytes->size};
        struct batch_place place = {.shard = shard, .number = task->number};
        exchange_count_add(&prepared->counters.sent[id], place, outputs[shard].row_count, text);
        list->workers[list->count] = job_layout_owner(layout, pipeline->target, shard);
        list->items[list->count++] =
            (struct output_item){.kind = ITEM_BATCH, .index = id, .shard = shard, .bytes = text};
        buf_reset(bytes);
    }
    const struct pipeline_counts *counts = pipeline_run_counts(run);
    struct pipeline_counts *before = &prepared->counted[index];
    prepared->counters.maps[id] = (struct stage_counts){
        .rows_in = counts->rows_in - before->rows_in,
        .rows_out = counts->rows_out - before->rows_out,
        .malformed = counts->malformed - before->malformed,
    };
    *before = *counts;
    return STATUS_OK;
}

/* The rows of a table that is scanned twice are counted once. */
static bool is_first_scan(const struct plan *plan, const struct scan *scan)
{
    for (uint32_t i = 0; i < scan->id; i++) {
        if (plan->scans[i].table == scan->table) return false;
    }
    return true;
}

static status add_report(struct prepared *prepared, const struct map_task *task,
                         struct output_list *list, struct arena *arena, struct error *err)
{
    const struct job_layout *layout = task->job->layout;
    struct buf report = {.budget = &task->job->budget};
    counters_encode(&prepared->counters, layout->plan, &report);
    char *copy = report.failed ? NULL : arena_alloc(arena, report.size + 1, 8);
    if (copy != NULL && report.size > 0) memcpy(copy, report.bytes, report.size);
    list->workers[list->count] = job_layout_counter_owner(layout, task->scan);
    list->items[list->count++] =
        (struct output_item){.kind = ITEM_REPORT, .bytes = {copy, (uint32_t)report.size}};
    buf_done(&report);
    return copy == NULL ? error_memory(err) : STATUS_OK;
}

static status pack_outputs(struct map_task *task, const struct output_list *list,
                           struct arena *arena, struct error *err)
{
    struct job_layout *layout = task->job->layout;
    struct output_item *own = arena_array(arena, struct output_item, list->count + 1);
    if (own == NULL) return error_memory(err);
    for (uint32_t worker = 0; worker < task->output_count; worker++) {
        struct message message = {
            .kind = MESSAGE_OUTPUT,
            .job = layout->manifest.job,
            .manifest = layout->hash,
            .from = task->job->worker,
            .output = {.source_kind = STREAM_SCAN,
                       .source = task->scan,
                       .number = task->number,
                       .checksum = task->checksum,
                       .items = own},
        };
        for (uint32_t i = 0; i < list->count; i++) {
            if (list->workers[i] == worker) own[message.output.item_count++] = list->items[i];
        }
        if (message.output.item_count == 0) continue;
        message_encode(&message, &task->outputs[worker]);
        if (task->outputs[worker].failed) return error_memory(err);
    }
    return STATUS_OK;
}

static status map_chunk(struct mapper *mapper, struct map_task *task,
                        struct pipeline_output *outputs, struct error *err)
{
    struct job_layout *layout = task->job->layout;
    const struct scan *scan = &layout->plan->scans[task->scan];
    struct arena *arena = &mapper->arena;
    struct chunk_body body;
    TRY(chunk_body_decode(task->body, arena, &body, err));
    if (body.column_count != layout->plan->tables[scan->table].schema.count) {
        return error_set(err, STATUS_CORRUPT, "a chunk has another number of columns");
    }
    struct prepared *prepared = find_prepared(mapper, task);
    if (prepared->job == NULL) {
        status result = prepare(prepared, task, err);
        if (result != STATUS_OK) {
            prepared_done(prepared);
            return result;
        }
    }
    prepared->used = ++mapper->clock;
    counters_reset(&prepared->counters, layout->plan);
    struct chunk chunk = {.bytes = body.bytes.bytes,
                          .size = body.bytes.size,
                          .file_columns = body.file_columns,
                          .column_map = body.column_map,
                          .offset = body.offset};
    uint32_t culprit;
    if (scan_run_chunk(prepared->run, &chunk, &culprit, err) != STATUS_OK) {
        bool has_place = err->code == STATUS_INPUT || err->code == STATUS_LIMIT;
        status result = culprit == SCAN_RUN_ITSELF && has_place
                            ? scan_place(task, &body, scan_run_error_offset(prepared->run), err)
                            : blame(task, culprit, err);
        prepared_done(prepared); /* It stands in the middle of a chunk. */
        return result;
    }
    if (is_first_scan(layout->plan, scan)) {
        table_counters_add(&prepared->counters.tables[scan->table], task->number,
                           scan_run_counters(prepared->run));
    }
    uint32_t most = 1;
    for (uint32_t i = 0; i < scan->pipeline_count; i++) {
        most += layout->shard_counts[layout->plan->pipelines[scan->pipelines[i]].target];
    }
    struct output_list list = {.items = arena_array(arena, struct output_item, most),
                               .workers = arena_array(arena, uint32_t, most)};
    status result = list.items == NULL || list.workers == NULL ? error_memory(err) : STATUS_OK;
    for (uint32_t i = 0; i < scan->pipeline_count && result == STATUS_OK; i++) {
        result = flush_pipeline(prepared, task, i, &list, outputs, arena, err);
        if (result != STATUS_OK) result = blame(task, i, err);
    }
    if (result == STATUS_OK) result = add_report(prepared, task, &list, arena, err);
    if (result == STATUS_OK) result = pack_outputs(task, &list, arena, err);
    if (result != STATUS_OK) prepared_done(prepared);
    return result;
}

static uint32_t most_shards(const struct job_layout *layout)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < layout->plan->fold_count; i++) {
        if (layout->shard_counts[i] > most) most = layout->shard_counts[i];
    }
    return most;
}

void mapper_run(struct mapper *mapper, struct map_task *task)
{
    struct job_layout *layout = task->job->layout;
    uint32_t shard_count = most_shards(layout);
    ASSERT(task->outputs == NULL);
    arena_reset(&mapper->arena);
    uint32_t worker_count = layout->manifest.worker_count;
    task->outputs = memory_alloc(NULL, worker_count * sizeof *task->outputs);
    struct pipeline_output *outputs =
        arena_array(&mapper->arena, struct pipeline_output, shard_count);
    if (task->outputs != NULL) {
        task->output_count = worker_count;
        for (uint32_t i = 0; i < worker_count; i++) {
            task->outputs[i] = (struct buf){0};
        }
    }
    if (task->outputs == NULL || outputs == NULL) {
        task->result = error_memory(&task->error);
        return;
    }
    for (uint32_t i = 0; i < shard_count; i++) {
        outputs[i].bytes.budget = &task->job->budget;
    }
    /* All that comes of it is summed up under this checksum. */
    task->is_damaged = hash_bytes(task->body.bytes, task->body.size) != task->checksum;
    task->result = task->is_damaged ? STATUS_OK : map_chunk(mapper, task, outputs, &task->error);
    for (uint32_t i = 0; i < shard_count; i++) {
        buf_done(&outputs[i].bytes);
    }
}

/* ---- incarnation ---- */

status mapper_create(struct mapper **out, struct error *err)
{
    struct mapper *mapper = memory_alloc(NULL, sizeof *mapper);
    if (mapper == NULL) return error_memory(err);
    *mapper = (struct mapper){0};
    *out = mapper;
    return STATUS_OK;
}

void mapper_sweep(struct mapper *mapper)
{
    for (uint32_t i = 0; i < PREPARED_MAX; i++) {
        struct prepared *prepared = &mapper->prepared[i];
        if (prepared->job != NULL && atomic_load(&prepared->job->ended)) prepared_done(prepared);
    }
}

void mapper_destroy(struct mapper *mapper)
{
    if (mapper == NULL) return;
    for (uint32_t i = 0; i < PREPARED_MAX; i++) {
        prepared_done(&mapper->prepared[i]);
    }
    arena_done(&mapper->arena);
    memory_free(NULL, mapper, sizeof *mapper);
}
