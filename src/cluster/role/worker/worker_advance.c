/* SPDX-License-Identifier: Apache-2.0 */
/* worker_advance.c - what a job can do next: folds finished in turn, copies made ready.
 *
 * Progress is a fixed point: when a stream has become complete, every shard whose inputs are
 * complete is finished, every finished one whose maps have the copies they need is emitted, and
 * what it emits for this worker itself is applied at once, which may complete the next. What is
 * emitted for ourselves is not logged: a replay makes it again.
 */
#include "cluster/role/worker/worker_state.h"

#include "engine/base/assert.h"

static bool producers_complete(struct worker_job *job, const struct pipeline *pipeline)
{
    bool of_scan = pipeline->source_kind == SOURCE_SCAN;
    enum stream_source kind = of_scan ? STREAM_SCAN : STREAM_FOLD;
    uint32_t producers = of_scan ? 1 : job->map.layout->shard_counts[pipeline->source];
    for (uint32_t producer = 0; producer < producers; producer++) {
        const struct input_stream *stream =
            worker_job_stream(job, kind, pipeline->source, producer);
        ASSERT(stream != NULL);
        if (!stream->complete) return false;
    }
    return true;
}

static bool inputs_complete(struct worker_job *job, const struct owned_shard *owned)
{
    const struct plan *plan = job->map.layout->plan;
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &plan->pipelines[i];
        if (pipeline->target == owned->fold && !producers_complete(job, pipeline)) return false;
    }
    return true;
}

static bool copies_ready(const struct worker_job *job, const bool *needs)
{
    for (uint32_t i = 0; i < job->map.layout->plan->fold_count; i++) {
        if (needs[i] && !job->copies[i].ready) return false;
    }
    return true;
}

static bool can_emit(const struct worker_job *job, const struct owned_shard *owned)
{
    const struct plan *plan = job->map.layout->plan;
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &plan->pipelines[i];
        if (pipeline->source_kind != SOURCE_FOLD || pipeline->source != owned->fold) continue;
        if (!copies_ready(job, job->map.layout->pipeline_needs + (size_t)i * plan->fold_count)) {
            return false;
        }
    }
    return true;
}

bool worker_job_can_map(const struct worker_job *job, uint32_t scan)
{
    const struct plan *plan = job->map.layout->plan;
    return copies_ready(job, job->map.layout->needs + (size_t)scan * plan->fold_count);
}

static bool advance_shard(struct worker_job *job, struct owned_shard *owned,
                          struct effects *effects)
{
    struct error err;
    if (owned->state == SHARD_OPEN && inputs_complete(job, owned)) {
        if (fold_shard_finish(owned->rows, &err) != STATUS_OK) {
            worker_job_fail_fold(job, owned->fold, &err, effects);
            return false;
        }
        const struct fold_counts *counts = fold_shard_counts(owned->rows);
        struct fold_counts *total = &job->counters.folds[owned->fold];
        total->rows_in += counts->rows_in;
        total->rows_out += counts->rows_out;
        total->batches_out += counts->batches_out;
        owned->state = SHARD_FINISHED;
        worker_alive(job->worker);
    }
    if (owned->state != SHARD_FINISHED || !can_emit(job, owned)) return false;
    worker_job_emit(job, owned, effects);
    return !job->failed;
}

static status finish_copy(struct worker_job *job, uint32_t fold, struct error *err)
{
    struct copy *copy = &job->copies[fold];
    TRY(fold_shard_finish(copy->rows, err));
    if (copy->fold.is_build_side) job->sides[fold] = *fold_shard_join_table(copy->rows);
    if (copy->fold.is_scalar) TRY(fold_shard_scalar(copy->rows, &job->scalars[fold], err));
    copy->ready = true;
    worker_alive(job->worker);
    return STATUS_OK;
}

static bool advance_copy(struct worker_job *job, uint32_t fold, struct effects *effects)
{
    const struct input_stream *stream = worker_job_stream(job, STREAM_COPY, fold, 0);
    bool is_half = IS_PLANTED(job->worker->config.mutation, WORKER_USES_HALF_COPY);
    if (!job->map.layout->copied[fold] || job->copies[fold].ready || stream == NULL ||
        !(stream->complete || is_half)) {
        return false;
    }
    struct error err;
    if (finish_copy(job, fold, &err) != STATUS_OK) {
        worker_job_fail_fold(job, fold, &err, effects);
        return false;
    }
    return true;
}

void worker_job_advance(struct worker_job *job, struct effects *effects)
{
    if (!job->moved) return;
    job->moved = false;
    for (bool moved = true; moved && !job->failed;) {
        moved = false;
        for (uint32_t i = 0; i < job->map.layout->plan->fold_count && !job->failed; i++) {
            moved = advance_copy(job, i, effects) || moved;
        }
        for (uint32_t i = 0; i < job->shard_count && !job->failed; i++) {
            moved = advance_shard(job, &job->shards[i], effects) || moved;
        }
    }
    if (job->failed || job->complete) return;
    for (uint32_t i = 0; i < job->stream_count; i++) {
        if (!job->streams[i].complete) return;
    }
    for (uint32_t i = 0; i < job->shard_count; i++) {
        if (job->shards[i].state != SHARD_EMITTED) return;
    }
    job->complete = true;
    worker_history_note(job, MILESTONE_COMPLETE, 0);
}

/* ---- messages of a job ---- */

void worker_apply_and_log(struct worker_job *job, const struct message *message, struct buf *bytes,
                          struct effects *effects)
{
    if (!worker_apply(job, message, effects)) return;
    worker_log(job->id, bytes, effects);
    worker_job_advance(job, effects);
}

void worker_receive(struct worker *worker, struct worker_job *job, struct buf *bytes,
                    struct effects *effects)
{
    struct text text = {(const char *)bytes->bytes, (uint32_t)bytes->size};
    struct message message;
    struct error err;
    if (message_decode(text, &worker->arena, &message, &err) != STATUS_OK) {
        worker_job_fail(job, &err, effects);
        return;
    }
    worker_apply_and_log(job, &message, bytes, effects);
}
