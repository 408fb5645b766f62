/* SPDX-License-Identifier: Apache-2.0 */
/* worker_apply.c - what comes to a job here: each numbered message is applied once.
 *
 * Delivery is at least once; the set of applied numbers of a stream makes it exactly once. At the
 * stream's end, count and sum of hashes are compared with the sender's, so that an answer that
 * rests on other batches than were sent is never given (end-to-end check: Saltzer, Reed and Clark,
 * 1984).
 */
#include "cluster/role/worker/worker_state.h"

static status item_misfit(struct error *err)
{
    return error_set(err, STATUS_CORRUPT, "a message has an item that does not belong here");
}

/* The largest shard spills, also if no batch comes to it for a while: it frees the most memory. */
static status make_room(struct worker_job *job, struct error *err)
{
    if (!fold_room_is_short(&job->map.budget)) return STATUS_OK;
    struct fold_shard *largest = NULL;
    size_t most = 0;
    for (uint32_t i = 0; i < job->shard_count; i++) {
        const struct owned_shard *owned = &job->shards[i];
        if (owned->rows == NULL || owned->state != SHARD_OPEN) continue;
        size_t bytes = fold_shard_spillable(owned->rows);
        if (bytes <= most) continue;
        most = bytes;
        largest = owned->rows;
    }
    return largest == NULL ? STATUS_OK : fold_shard_spill(largest, err);
}

static status apply_batch(struct worker_job *job, const struct message_output *output,
                          const struct output_item *item, uint32_t *out_fold, struct error *err)
{
    const struct plan *plan = job->map.layout->plan;
    if (item->index >= plan->pipeline_count) return item_misfit(err);
    const struct pipeline *pipeline = &plan->pipelines[item->index];
    struct owned_shard *owned = worker_job_shard(job, pipeline->target, item->shard);
    enum stream_source kind = pipeline->source_kind == SOURCE_SCAN ? STREAM_SCAN : STREAM_FOLD;
    if (owned == NULL || pipeline->source != output->source || kind != output->source_kind) {
        return item_misfit(err);
    }
    *out_fold = pipeline->target;
    /* Only a planted mistake applies to a shard that is finished. */
    if (owned->rows == NULL || owned->state != SHARD_OPEN) return STATUS_OK;
    struct batch_place place = {
        .producer = output->producer, .shard = item->shard, .number = output->number};
    struct batch_identity identity = {
        .input = pipeline->target_input, .producer = output->producer, .number = output->number};
    TRY(make_room(job, err));
    struct buf bytes = {.budget = &job->map.budget};
    uint64_t rows = 0;
    struct exchange_count end = {0};
    exchange_count_add(&end, place, 0, item->bytes);
    buf_put(&bytes, item->bytes.bytes, item->bytes.size);
    status result = bytes.failed ? error_memory(err)
                                 : fold_shard_apply(owned->rows, identity, &bytes, &rows, err);
    buf_done(&bytes);
    end.row_count = rows;
    exchange_count_merge(&job->counters.applied[pipeline->id], &end);
    return result;
}

static status apply_copy(struct worker_job *job, const struct message_output *output,
                         const struct output_item *item, uint32_t *out_fold, struct error *err)
{
    bool fits = output->source_kind == STREAM_COPY && item->index == output->source &&
                output->producer == 0 && item->index < job->map.layout->plan->fold_count &&
                job->map.layout->copied[item->index];
    if (!fits) return item_misfit(err);
    struct copy *copy = &job->copies[item->index];
    *out_fold = item->index;
    if (copy->ready) return STATUS_OK;
    struct batch_identity identity = {.number = output->number};
    TRY(make_room(job, err));
    struct buf bytes = {.budget = &job->map.budget};
    uint64_t rows = 0;
    buf_put(&bytes, item->bytes.bytes, item->bytes.size);
    status result = bytes.failed ? error_memory(err)
                                 : fold_shard_apply(copy->rows, identity, &bytes, &rows, err);
    buf_done(&bytes);
    return result;
}

static status apply_items(struct worker_job *job, const struct message_output *output,
                          uint32_t *out_fold, struct error *err)
{
    for (uint32_t i = 0; i < output->item_count; i++) {
        const struct output_item *item = &output->items[i];
        switch (item->kind) {
        case ITEM_BATCH:
            TRY(apply_batch(job, output, item, out_fold, err));
            break;
        case ITEM_COPY:
            TRY(apply_copy(job, output, item, out_fold, err));
            break;
        case ITEM_REPORT:
            TRY(counters_add(&job->counters, job->map.layout->plan, item->bytes, err));
            break;
        }
        worker_alive(job->worker);
    }
    return STATUS_OK;
}

static void stream_check(struct worker_job *job, struct input_stream *stream,
                         struct effects *effects)
{
    if (stream->complete || !stream->ended || stream->applied.count < stream->end_count) return;
    if (stream->applied.contiguous != stream->end_count || stream->sum != stream->end_sum) {
        struct error err;
        (void)error_set(
            &err, STATUS_INTERNAL,
            "%s %u, producer %u: what was applied is not what was sent (%llu messages of "
            "%llu); there is no answer, please report this",
            stream->kind == STREAM_SCAN ? "scan" : "fold", stream->source, stream->producer,
            (unsigned long long)stream->applied.count, (unsigned long long)stream->end_count);
        worker_job_fail(job, &err, effects);
        return;
    }
    stream->complete = true;
    job->moved = true;
}

/* The checksum that enters the producer's sum. Of a scan it is the chunk's, which its mapper has
 * checked; of a fold it is computed from the bytes that came. */
static uint64_t output_checksum(const struct message_output *output)
{
    if (output->source_kind == STREAM_SCAN) return output->checksum;
    uint64_t checksum = 0;
    for (uint32_t i = 0; i < output->item_count; i++) {
        struct text bytes = output->items[i].bytes;
        checksum = hash_combine(checksum, hash_bytes(bytes.bytes, bytes.size));
    }
    return checksum;
}

static bool apply_output(struct worker_job *job, const struct message_output *output,
                         struct effects *effects)
{
    struct worker *worker = job->worker;
    if (job->failed) return false;
    struct input_stream *stream =
        worker_job_stream(job, output->source_kind, output->source, output->producer);
    if (stream == NULL || output->number >= stream->number_limit) {
        effects_say(effects, SAY_WARN, "event=message-ignored job=%s reason=not-for-us", job->id);
        return false;
    }
    bool is_far = stream->kind == STREAM_SCAN &&
                  output->number - stream->applied.contiguous >= WORKER_AHEAD_MAX &&
                  output->number >= stream->applied.contiguous;
    if (is_far) return false; /* No client with a window does that; repair brings it back. */
    bool is_known = number_set_has(&stream->applied, output->number);
    if (is_known && !IS_PLANTED(worker->config.mutation, WORKER_APPLIES_TWICE)) {
        job->duplicates++;
        return false;
    }
    struct error err;
    uint32_t fold = UINT32_MAX;
    status result = apply_items(job, output, &fold, &err);
    if (result == STATUS_OK && !number_set_add(&stream->applied, output->number)) {
        result = error_memory(&err);
    }
    if (result != STATUS_OK) {
        if (fold != UINT32_MAX) {
            worker_job_fail_fold(job, fold, &err, effects);
        } else {
            worker_job_fail(job, &err, effects);
        }
        return false;
    }
    if (output->source_kind == STREAM_SCAN) {
        worker_history_phase(job, job->map.layout->plan->scans[output->source].phase);
    }
    if (IS_PLANTED(worker->config.mutation, WORKER_USES_HALF_COPY)) job->moved = true;
    stream->sum += batch_hash(output->number, output_checksum(output));
    stream->last_progress_ms = worker->now_ms;
    stream->delay_ms = 0;
    stream_check(job, stream, effects);
    if (!worker->replaying) worker_ask_on(job, stream, effects);
    return true;
}

static bool stream_end(struct worker_job *job, struct input_stream *stream, uint64_t count,
                       uint64_t sum, struct effects *effects)
{
    if (stream == NULL || job->failed) return false;
    if (stream->ended) {
        if (stream->end_count != count || stream->end_sum != sum) {
            effects_say(effects, SAY_WARN, "event=end-ignored job=%s reason=differs", job->id);
        }
        return false;
    }
    if (count > stream->number_limit) {
        effects_say(effects, SAY_WARN, "event=end-ignored job=%s reason=out-of-range", job->id);
        return false;
    }
    stream->ended = true;
    stream->end_count = count;
    stream->end_sum = sum;
    stream->last_progress_ms = job->worker->now_ms;
    stream->delay_ms = 0;
    stream_check(job, stream, effects);
    if (!job->worker->replaying) worker_ask_on(job, stream, effects);
    return true;
}

static bool apply_end(struct worker_job *job, const struct message_end *end,
                      struct effects *effects)
{
    return stream_end(job, worker_job_stream(job, STREAM_SCAN, end->scan, 0), end->count, end->sum,
                      effects);
}

static bool apply_producer_end(struct worker_job *job, const struct message_producer_end *end,
                               struct effects *effects)
{
    return stream_end(job, worker_job_stream(job, end->kind, end->fold, end->shard), end->count,
                      end->sum, effects);
}

bool worker_apply(struct worker_job *job, const struct message *message, struct effects *effects)
{
    switch (message->kind) {
    case MESSAGE_OUTPUT:
        return apply_output(job, &message->output, effects);
    case MESSAGE_END:
        return apply_end(job, &message->end, effects);
    case MESSAGE_PRODUCER_END:
        return apply_producer_end(job, &message->producer_end, effects);
    default:
        return false;
    }
}
