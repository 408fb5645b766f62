/* worker_job.c - a job on one worker: each numbered message applied once, folds finished in turn.
 *
 * Progress is a fixed point: whenever something new has come in, every shard whose inputs are
 * complete is finished, every finished one whose maps have the copies they need is emitted, and
 * what it emits for this worker itself is applied at once, which may complete the next. What is
 * emitted for ourselves is not logged: a replay makes it again.
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
    job->streams[job->stream_count++] = (struct stream){
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
    job->streams = arena_array(&job->arena, struct stream, stream_max + 1);
    job->shards = arena_array(&job->arena, struct owned_shard, shard_max + 1);
    job->copies = arena_array(&job->arena, struct copy, plan->fold_count + 1);
    job->scalars = arena_array(&job->arena, struct value, plan->fold_count + 1);
    job->sides = arena_array(&job->arena, struct build_side, plan->fold_count + 1);
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

/* ---- applying ---- */

struct stream *worker_job_stream(struct worker_job *job, enum stream_source kind, uint32_t source,
                                 uint32_t producer)
{
    for (uint32_t i = 0; i < job->stream_count; i++) {
        struct stream *stream = &job->streams[i];
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

static status item_misfit(struct error *err)
{
    return error_set(err, STATUS_CORRUPT, "a message has an item that does not belong here");
}

/* The largest shard goes on in a file, also if nothing comes to it for a while. */
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

static void stream_check(struct worker_job *job, struct stream *stream, struct effects *effects)
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

/* What counts for the producer's sum. Of a scan it is the chunk's, which its mapper has checked;
 * what a fold emitted can be held against what is here. */
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

bool worker_job_output(struct worker_job *job, const struct message_output *output,
                       struct effects *effects)
{
    struct worker *worker = job->worker;
    if (job->failed) return false;
    struct stream *stream =
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

static bool stream_end(struct worker_job *job, struct stream *stream, uint64_t count, uint64_t sum,
                       struct effects *effects)
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

bool worker_job_end_of_scan(struct worker_job *job, const struct message_end *end,
                            struct effects *effects)
{
    return stream_end(job, worker_job_stream(job, STREAM_SCAN, end->scan, 0), end->count, end->sum,
                      effects);
}

bool worker_job_end_of_producer(struct worker_job *job, const struct message_producer_end *end,
                                struct effects *effects)
{
    return stream_end(job, worker_job_stream(job, end->kind, end->fold, end->shard), end->count,
                      end->sum, effects);
}

/* ---- the fixed point ---- */

static bool producers_complete(struct worker_job *job, const struct pipeline *pipeline)
{
    bool of_scan = pipeline->source_kind == SOURCE_SCAN;
    enum stream_source kind = of_scan ? STREAM_SCAN : STREAM_FOLD;
    uint32_t producers = of_scan ? 1 : job->map.layout->shard_counts[pipeline->source];
    for (uint32_t producer = 0; producer < producers; producer++) {
        const struct stream *stream = worker_job_stream(job, kind, pipeline->source, producer);
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
    if (copy->fold.is_build_side) job->sides[fold] = *fold_shard_build_side(copy->rows);
    if (copy->fold.is_scalar) TRY(fold_shard_scalar(copy->rows, &job->scalars[fold], err));
    copy->ready = true;
    worker_alive(job->worker);
    return STATUS_OK;
}

static bool advance_copy(struct worker_job *job, uint32_t fold, struct effects *effects)
{
    const struct stream *stream = worker_job_stream(job, STREAM_COPY, fold, 0);
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
