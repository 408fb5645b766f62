/* SPDX-License-Identifier: Apache-2.0 */
/* worker_job.c - a job on one worker: made from its layout, ended, failed.
 *
 * A worker holds a stream for each source that sends to it, and the shards and copies that are its
 * own by the layout. Nothing else about a job differs from worker to worker.
 */
#include "cluster/role/worker/worker_state.h"

#include <stdio.h>

#include "engine/base/assert.h"

/* ---- making a job ---- */

static void add_stream(struct worker_job *job, enum stream_source kind, uint32_t source,
                       uint32_t producer)
{
    const struct job_layout *layout = job->map.layout;
    if (job->self == layout->manifest.worker_count) {
        /* Not one of the job's owners: only copies come here. */
        if (kind != STREAM_COPY) return;
    } else if (!job_layout_feeds(layout, kind, source, job->self)) {
        return;
    }
    job->streams[job->stream_count++] = (struct input_stream){
        .kind = kind,
        .source = source,
        .producer = producer,
        .applied = {.budget = &job->map.budget},
        .number_limit = kind == STREAM_SCAN ? job_layout_chunk_limit(layout, source) : UINT32_MAX,
        .asked_to = job->worker->config.emit_window,
        .last_progress_ms = job->worker->now_ms,
    };
}

static status add_shard(struct worker_job *job, uint32_t fold, uint32_t shard, struct error *err)
{
    const struct plan *plan = job->map.layout->plan;
    struct owned_shard *owned = &job->shards[job->shard_count++];
    *owned = (struct owned_shard){.fold = fold, .shard = shard};
    for (uint32_t i = 0; i < plan->query_count; i++) {
        owned->is_result = owned->is_result || plan->queries[i].result_fold == fold;
    }
    return fold_shard_create(&plan->folds[fold], &job->map.budget, job->store, &owned->rows, err);
}

static status add_copy(struct worker_job *job, uint32_t fold, struct error *err)
{
    struct copy *copy = &job->copies[fold];
    const struct fold *original = &job->map.layout->plan->folds[fold];
    copy->fold = *original;
    copy->fold.kind = FOLD_COLLECT;
    copy->fold.input = original->output;
    copy->fold.offset = 0;
    copy->fold.limit = UINT64_MAX;
    return fold_shard_create(&copy->fold, &job->map.budget, job->store, &copy->rows, err);
}

static status job_init(struct worker_job *job, struct error *err)
{
    struct job_layout *layout = job->map.layout;
    const struct plan *plan = layout->plan;
    uint32_t stream_max = plan->scan_count;
    uint32_t shard_max = 0;
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        stream_max += layout->shard_counts[i] + 1;
        shard_max += layout->shard_counts[i];
    }
    job->streams = arena_array(&job->arena, struct input_stream, stream_max + 1);
    job->shards = arena_array(&job->arena, struct owned_shard, shard_max + 1);
    job->copies = arena_array(&job->arena, struct copy, plan->fold_count + 1);
    job->scalars = arena_array(&job->arena, struct value, plan->fold_count + 1);
    job->sides = arena_array(&job->arena, struct join_table, plan->fold_count + 1);
    if (job->streams == NULL || job->shards == NULL || job->copies == NULL ||
        job->scalars == NULL || job->sides == NULL ||
        !counters_init(&job->counters, plan, &job->arena)) {
        return error_memory(err);
    }
    job->map.finished = (struct finished){
        .scalars = job->scalars, .sides = job->sides, .sentiment = layout->sentiment};
    for (uint32_t i = 0; i < plan->scan_count; i++) {
        add_stream(job, STREAM_SCAN, i, 0);
    }
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        for (uint32_t shard = 0; shard < layout->shard_counts[i]; shard++) {
            add_stream(job, STREAM_FOLD, i, shard);
            if (job->self < layout->manifest.worker_count &&
                job_layout_owner(layout, i, shard) == job->self) {
                TRY(add_shard(job, i, shard, err));
            }
        }
        if (!layout->copied[i]) continue;
        add_stream(job, STREAM_COPY, i, 0);
        TRY(add_copy(job, i, err));
    }
    return STATUS_OK;
}

static void emission_done(struct owned_shard *owned)
{
    output_buffer_clear(&owned->emission.messages);
    output_buffer_clear(&owned->results);
    owned->emission.count = 0;
}

/* Gives back all that grows with the data. */
static void drop_data(struct worker_job *job)
{
    for (uint32_t i = 0; i < job->shard_count; i++) {
        fold_shard_destroy(job->shards[i].rows);
        job->shards[i].rows = NULL;
        emission_done(&job->shards[i]);
    }
    for (uint32_t i = 0; i < job->stream_count; i++) {
        number_set_done(&job->streams[i].applied);
    }
}

static void job_destroy(struct map_job *map)
{
    struct worker_job *job = (struct worker_job *)map;
    drop_data(job);
    for (uint32_t i = 0; job->copies != NULL && i < map->layout->plan->fold_count; i++) {
        fold_shard_destroy(job->copies[i].rows);
    }
    arena_done(&job->arena);
    job_layout_release(map->layout);
    memory_free(NULL, job, sizeof *job);
}

status worker_job_create(struct worker *worker, struct job_layout *layout, struct worker_job **out,
                         struct error *err)
{
    struct worker_job *job = memory_alloc(NULL, sizeof *job);
    if (job == NULL) return error_memory(err);
    *job = (struct worker_job){
        .map = {.layout = job_layout_keep(layout),
                .budget = {.limit_bytes = layout->manifest.memory_limit},
                .uses = 1,
                .destroy = job_destroy},
        .worker = worker,
        .store = worker->config.store,
        .moved = true,
        .self = job_layout_worker(layout, worker->config.name),
        .created_ms = worker->now_ms,
        .lease_ms = worker->config.client_timeout_ms,
    };
    (void)snprintf(job->id, sizeof job->id, "%.*s", TEXT_ARGS(layout->manifest.job));
    (void)snprintf(job->map.worker_name, sizeof job->map.worker_name, "%s", worker->name);
    job->map.worker = text_of(job->map.worker_name);
    arena_init(&job->arena, &job->map.budget);
    status result = job_init(job, err);
    if (result != STATUS_OK) {
        map_job_release(&job->map);
        return result;
    }
    *out = job;
    return STATUS_OK;
}

void worker_job_end(struct worker_job *job)
{
    atomic_store(&job->map.ended, true);
    job->worker = NULL;
    map_job_release(&job->map);
}

void worker_job_fail(struct worker_job *job, const struct error *err, struct effects *effects)
{
    if (job->failed) return;
    job->failed = true;
    job->error = *err;
    worker_history_note(job, MILESTONE_FAILED, 0);
    drop_data(job);
    effects_say(effects, SAY_WARN, "event=job-failed job=%s code=%s", job->id,
                status_name(err->code));
}

/* "query q1: ...", with advice when memory is out. */
void worker_job_fail_fold(struct worker_job *job, uint32_t fold, struct error *err,
                          struct effects *effects)
{
    const struct plan *plan = job->map.layout->plan;
    struct text query = plan->folds[fold].queries;
    struct error told;
    if (err->code == STATUS_MEMORY) {
        (void)error_set(&told, STATUS_MEMORY,
                        "query %.*s, %s: the memory limit of a job on worker %s is reached; raise "
                        "memory_limit in the cluster file, or add workers",
                        TEXT_ARGS(query), plan->folds[fold].label, job->worker->name);
    } else {
        (void)error_set(&told, err->code, "query %.*s: %.1900s", TEXT_ARGS(query), err->text);
    }
    worker_job_fail(job, &told, effects);
}

struct input_stream *worker_job_stream(struct worker_job *job, enum stream_source kind,
                                       uint32_t source, uint32_t producer)
{
    for (uint32_t i = 0; i < job->stream_count; i++) {
        struct input_stream *stream = &job->streams[i];
        if (stream->kind == kind && stream->source == source && stream->producer == producer) {
            return stream;
        }
    }
    return NULL;
}

struct owned_shard *worker_job_shard(struct worker_job *job, uint32_t fold, uint32_t shard)
{
    for (uint32_t i = 0; i < job->shard_count; i++) {
        if (job->shards[i].fold == fold && job->shards[i].shard == shard) return &job->shards[i];
    }
    return NULL;
}
