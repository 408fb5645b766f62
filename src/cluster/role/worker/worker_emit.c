/* SPDX-License-Identifier: Apache-2.0 */
/* worker_emit.c - what a finished shard sends: made once, kept, and sent again when asked for.
 *
 * Keeping the encoded messages instead of the rows costs about the same memory, and makes answering
 * a matter of copying. They are sent unasked up to a window; the receiver asks for the rest as it
 * applies them (credit-based flow control), so that a large fold can't fill the broker.
 */
#include "cluster/role/worker/worker_state.h"

#include <stdio.h>

#include "engine/base/assert.h"
#include "engine/data/batch_builder.h"
#include "engine/data/batch_codec.h"

enum { RESULT_HEADROOM = 4096 }; /* Of a message, beside the batch it carries. */

/* ---- making ---- */

/* What one batch of a finished shard becomes. */
struct emitter {
    struct fold_sink sink;
    struct worker_job *job;
    struct owned_shard *owned;
    const struct pipeline **pipelines; /* That begin at the fold, */
    struct pipeline_run **runs;        /* and at work. */
    uint32_t pipeline_count;
    struct pipeline_output *outputs; /* By shard, for one pipeline. */
    struct output_item *items;
    uint32_t *slots; /* Of items: the worker each is for; worker_count: the copy. */
    uint32_t item_count;
    struct arena arena; /* Of one batch. */
    bool is_copied;
    int32_t query; /* Whose result it is, or -1. */
};

static struct text arena_text(struct arena *arena, const struct buf *bytes)
{
    char *copy = arena_alloc(arena, bytes->size + 1, 8);
    if (copy == NULL) return (struct text){NULL, 0};
    if (bytes->size > 0) memcpy(copy, bytes->bytes, bytes->size);
    return (struct text){copy, (uint32_t)bytes->size};
}

static status encode_rows(struct schema schema, const struct batch *batch, struct buf *out,
                          struct error *err)
{
    struct batch_builder builder;
    if (!builder_init(&builder, schema, out->budget)) return error_memory(err);
    builder_append(&builder, batch, (struct selection){NULL, batch->row_count});
    bool fits = !builder.failed;
    if (fits) batch_encode(&builder, out);
    builder_done(&builder);
    return fits && !out->failed ? STATUS_OK : error_memory(err);
}

static status emit_pipeline(struct emitter *emitter, uint32_t index, uint64_t number,
                            const struct batch *batch, struct error *err)
{
    struct worker_job *job = emitter->job;
    const struct pipeline *pipeline = emitter->pipelines[index];
    struct pipeline_run *run = emitter->runs[index];
    struct column *columns = arena_array(&emitter->arena, struct column, batch->column_count + 1);
    if (columns == NULL) return error_memory(err);
    for (uint32_t first = 0; first < batch->row_count; first += PIPELINE_ROWS) {
        uint32_t count = batch->row_count - first;
        if (count > PIPELINE_ROWS) count = PIPELINE_ROWS;
        struct batch slice = batch_slice(batch, first, count, columns);
        TRY(pipeline_run_push(run, &slice, (struct selection){NULL, count}, NULL, err));
        worker_alive(job->worker);
    }
    TRY(pipeline_run_flush(run, emitter->outputs, err));
    for (uint32_t shard = 0; shard < job->map.layout->shard_counts[pipeline->target]; shard++) {
        struct pipeline_output *output = &emitter->outputs[shard];
        struct text text = arena_text(&emitter->arena, &output->bytes);
        if (text.bytes == NULL) return error_memory(err);
        struct batch_place place = {
            .producer = emitter->owned->shard, .shard = shard, .number = number};
        exchange_count_add(&job->counters.sent[pipeline->id], place, output->row_count, text);
        emitter->slots[emitter->item_count] =
            job_layout_owner(job->map.layout, pipeline->target, shard);
        emitter->items[emitter->item_count++] = (struct output_item){
            .kind = ITEM_BATCH, .index = pipeline->id, .shard = shard, .bytes = text};
        buf_reset(&output->bytes);
    }
    return STATUS_OK;
}

/* What is larger than the broker takes would be published again and again. */
static status check_size(const struct worker_job *job, size_t size, struct error *err)
{
    if (size <= job->worker->config.max_message) return STATUS_OK;
    return error_set(err, STATUS_LIMIT,
                     "its rows make a message of %zu bytes, more than max_message allows; raise it "
                     "in the cluster file, or select fewer columns",
                     size);
}

static status add_result(struct emitter *emitter, uint64_t number, const struct batch *batch,
                         struct error *err)
{
    struct exchange_count *given = &emitter->job->counters.given[emitter->query];
    const struct plan *plan = emitter->job->map.layout->plan;
    struct buf bytes = {.budget = &emitter->job->map.budget};
    status result = encode_rows(plan->queries[emitter->query].schema, batch, &bytes, err);
    if (result == STATUS_OK) {
        result = check_size(emitter->job, bytes.size + RESULT_HEADROOM, err);
    }
    if (result == STATUS_OK) {
        exchange_count_add_answer(given, number, &bytes);
        result = output_buffer_put(&emitter->owned->results, &bytes, err);
    }
    buf_done(&bytes);
    return result;
}

/* One message for each worker that gets something, and one with the copy, the same for all. */
static status pack_batch(struct emitter *emitter, uint64_t number, struct error *err)
{
    struct worker_job *job = emitter->job;
    struct owned_shard *owned = emitter->owned;
    struct emission *emission = &owned->emission;
    uint32_t slot_count = job->map.layout->manifest.worker_count + 1;
    struct output_item *own =
        arena_array(&emitter->arena, struct output_item, emitter->item_count + 1);
    if (own == NULL) return error_memory(err);
    emission->count++;
    for (uint32_t slot = 0; slot < slot_count; slot++) {
        struct message message = worker_message(job->worker, MESSAGE_OUTPUT, job);
        message.output = (struct message_output){
            .source_kind = slot == slot_count - 1 ? STREAM_COPY : STREAM_FOLD,
            .source = owned->fold,
            .producer = owned->shard,
            .number = number,
            .items = own};
        uint64_t checksum = 0;
        for (uint32_t i = 0; i < emitter->item_count; i++) {
            if (emitter->slots[i] != slot) continue;
            struct text bytes = emitter->items[i].bytes;
            own[message.output.item_count++] = emitter->items[i];
            checksum = hash_combine(checksum, hash_bytes(bytes.bytes, bytes.size));
        }
        struct buf bytes = {.budget = &job->map.budget};
        if (message.output.item_count > 0) {
            message.output.checksum = checksum;
            emission->sums[slot] += batch_hash(number, checksum);
            message_encode(&message, &bytes);
        }
        status result = bytes.failed ? error_memory(err) : check_size(job, bytes.size, err);
        if (result == STATUS_OK) result = output_buffer_put(&emission->messages, &bytes, err);
        buf_done(&bytes);
        TRY(result);
    }
    return STATUS_OK;
}

static status emit_batch(struct fold_sink *sink, uint64_t number, const struct batch *batch,
                         struct error *err)
{
    struct emitter *emitter = (struct emitter *)sink;
    arena_reset(&emitter->arena);
    emitter->item_count = 0;
    if (emitter->query >= 0) TRY(add_result(emitter, number, batch, err));
    for (uint32_t i = 0; i < emitter->pipeline_count; i++) {
        TRY(emit_pipeline(emitter, i, number, batch, err));
    }
    if (emitter->is_copied) {
        struct buf bytes = {.budget = &emitter->job->map.budget};
        const struct fold *fold = &emitter->job->map.layout->plan->folds[emitter->owned->fold];
        status result = encode_rows(fold->output, batch, &bytes, err);
        struct text text =
            result == STATUS_OK ? arena_text(&emitter->arena, &bytes) : (struct text){NULL, 0};
        buf_done(&bytes);
        TRY(result);
        if (text.bytes == NULL) return error_memory(err);
        emitter->slots[emitter->item_count] = emitter->job->map.layout->manifest.worker_count;
        emitter->items[emitter->item_count++] =
            (struct output_item){.kind = ITEM_COPY, .index = fold->id, .bytes = text};
    }
    TRY(pack_batch(emitter, number, err));
    worker_alive(emitter->job->worker);
    return STATUS_OK;
}

static status emitter_init(struct emitter *emitter, struct arena *arena, struct error *err)
{
    struct worker_job *job = emitter->job;
    const struct job_layout *layout = job->map.layout;
    const struct plan *plan = layout->plan;
    uint32_t most = 1;
    uint32_t item_max = 1;
    emitter->pipelines = arena_array(arena, const struct pipeline *, plan->pipeline_count + 1);
    emitter->runs = arena_array(arena, struct pipeline_run *, plan->pipeline_count + 1);
    if (emitter->pipelines == NULL || emitter->runs == NULL) return error_memory(err);
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &plan->pipelines[i];
        bool is_from =
            pipeline->source_kind == SOURCE_FOLD && pipeline->source == emitter->owned->fold;
        if (!is_from) continue;
        uint32_t shards = layout->shard_counts[pipeline->target];
        emitter->pipelines[emitter->pipeline_count] = pipeline;
        TRY(pipeline_run_create(pipeline, &job->map.finished, shards, &job->map.budget,
                                &emitter->runs[emitter->pipeline_count], err));
        emitter->pipeline_count++;
        item_max += shards;
        if (shards > most) most = shards;
    }
    emitter->outputs = arena_array(arena, struct pipeline_output, most);
    emitter->items = arena_array(arena, struct output_item, item_max);
    emitter->slots = arena_array(arena, uint32_t, item_max);
    emitter->owned->emission.sums =
        arena_array(&job->arena, uint64_t, layout->manifest.worker_count + 2);
    if (emitter->outputs == NULL || emitter->items == NULL || emitter->slots == NULL ||
        emitter->owned->emission.sums == NULL) {
        return error_memory(err);
    }
    for (uint32_t i = 0; i < most; i++) {
        emitter->outputs[i].bytes.budget = &job->map.budget;
    }
    emitter->query = -1;
    for (uint32_t i = 0; i < plan->query_count; i++) {
        if (plan->queries[i].result_fold == emitter->owned->fold) emitter->query = (int32_t)i;
    }
    emitter->is_copied = layout->copied[emitter->owned->fold];
    arena_init(&emitter->arena, &job->map.budget);
    return STATUS_OK;
}

static void emitter_done(struct emitter *emitter, uint32_t most_shards)
{
    const struct counters *counters = &emitter->job->counters;
    for (uint32_t i = 0; i < emitter->pipeline_count; i++) {
        const struct pipeline_counts *counts = pipeline_run_counts(emitter->runs[i]);
        struct stage_counts *stage = &counters->maps[emitter->pipelines[i]->id];
        stage->rows_in += counts->rows_in;
        stage->rows_out += counts->rows_out;
        stage->malformed += counts->malformed;
        pipeline_run_destroy(emitter->runs[i]);
    }
    for (uint32_t i = 0; emitter->outputs != NULL && i < most_shards; i++) {
        buf_done(&emitter->outputs[i].bytes);
    }
    arena_done(&emitter->arena);
}

static status make_emission(struct worker_job *job, struct owned_shard *owned, struct error *err)
{
    owned->results = (struct output_buffer){.budget = &job->map.budget, .store = job->store};
    owned->emission.messages = owned->results;
    struct emitter emitter = {.sink = {.accept = emit_batch}, .job = job, .owned = owned};
    struct arena arena;
    arena_init(&arena, &job->map.budget);
    status result = emitter_init(&emitter, &arena, err);
    if (result == STATUS_OK) result = fold_shard_emit(owned->rows, &emitter.sink, err);
    uint32_t most = 1;
    for (uint32_t i = 0; i < emitter.pipeline_count; i++) {
        uint32_t shards = job->map.layout->shard_counts[emitter.pipelines[i]->target];
        if (shards > most) most = shards;
    }
    emitter_done(&emitter, most);
    arena_done(&arena);
    return result;
}

/* ---- sending ---- */

/* Where messages of a stream that a shard emits are kept for a worker. */
static uint32_t emission_slot(const struct worker_job *job, enum stream_source kind,
                              uint32_t worker)
{
    return kind == STREAM_COPY ? job->map.layout->manifest.worker_count : worker;
}

static void send_producer_end(struct worker_job *job, const struct owned_shard *owned,
                              enum stream_source kind, uint32_t slot, struct text to,
                              struct effects *effects)
{
    struct worker *self = job->worker;
    if (IS_PLANTED(self->config.mutation, WORKER_FORGETS_END)) return;
    struct message message = worker_message(self, MESSAGE_PRODUCER_END, job);
    message.producer_end = (struct message_producer_end){.kind = kind,
                                                         .fold = owned->fold,
                                                         .shard = owned->shard,
                                                         .count = owned->emission.count,
                                                         .sum = owned->emission.sums[slot]};
    if (IS_PLANTED(self->config.mutation, WORKER_COUNTS_WRONG) && message.producer_end.count > 0) {
        message.producer_end.count--;
    }
    worker_send(effects, to, &message);
}

static void send_output(struct worker_job *job, const struct owned_shard *owned, uint64_t number,
                        uint32_t slot, struct text to, struct effects *effects)
{
    uint32_t slot_count = job->map.layout->manifest.worker_count + 1;
    uint64_t place = number * slot_count + slot;
    if (job->failed || output_buffer_size(&owned->emission.messages, place) == 0) return;
    struct buf bytes = {0};
    struct error err;
    if (output_buffer_get(&owned->emission.messages, place, &bytes, &err) == STATUS_OK) {
        struct effect *effect = effects_add(effects, EFFECT_SEND);
        (void)snprintf(effect->send.to, sizeof effect->send.to, "%.*s", TEXT_ARGS(to));
        effect->send.bytes = bytes;
    } else {
        buf_done(&bytes);
        worker_job_fail_fold(job, owned->fold, &err, effects);
    }
}

/* What a shard emits for its own worker takes the short way. */
static void deliver_own(struct worker_job *job, const struct owned_shard *owned,
                        enum stream_source kind, struct effects *effects)
{
    uint32_t slot_count = job->map.layout->manifest.worker_count + 1;
    uint32_t slot = emission_slot(job, kind, job->self);
    struct input_stream *stream = worker_job_stream(job, kind, owned->fold, owned->shard);
    if (stream == NULL) return;
    for (uint64_t i = 0; i < owned->emission.count && !job->failed; i++) {
        struct buf bytes = {0};
        struct message message;
        struct error err;
        struct arena arena = {0};
        status result =
            output_buffer_get(&owned->emission.messages, i * slot_count + slot, &bytes, &err);
        struct text text = {(const char *)bytes.bytes, (uint32_t)bytes.size};
        if (result == STATUS_OK) result = message_decode(text, &arena, &message, &err);
        if (result == STATUS_OK) {
            (void)worker_apply(job, &message, effects); /* Old or new, it is in. */
        } else {
            worker_job_fail(job, &err, effects);
        }
        arena_done(&arena);
        buf_done(&bytes);
    }
    if (job->failed) return;
    struct message end = {.kind = MESSAGE_PRODUCER_END,
                          .producer_end = {.kind = kind,
                                           .fold = owned->fold,
                                           .shard = owned->shard,
                                           .count = owned->emission.count,
                                           .sum = owned->emission.sums[slot]}};
    (void)worker_apply(job, &end, effects); /* Likewise. */
}

static void send_emission(struct worker_job *job, const struct owned_shard *owned,
                          enum stream_source kind, struct effects *effects)
{
    const struct manifest *manifest = &job->map.layout->manifest;
    uint32_t window = job->worker->config.emit_window;
    for (uint32_t worker = 0; worker < manifest->worker_count; worker++) {
        if (worker == job->self || !job_layout_feeds(job->map.layout, kind, owned->fold, worker))
            continue;
        uint32_t slot = emission_slot(job, kind, worker);
        struct text to = manifest->workers[worker].name;
        send_producer_end(job, owned, kind, slot, to, effects);
        for (uint64_t i = 0; i < owned->emission.count && i < window; i++) {
            send_output(job, owned, i, slot, to, effects);
        }
    }
}

void worker_job_emit(struct worker_job *job, struct owned_shard *owned, struct effects *effects)
{
    struct error err;
    if (make_emission(job, owned, &err) != STATUS_OK) {
        worker_job_fail_fold(job, owned->fold, &err, effects);
        return;
    }
    owned->state = SHARD_EMITTED;
    fold_shard_destroy(owned->rows);
    owned->rows = NULL;
    deliver_own(job, owned, STREAM_FOLD, effects);
    if (!job->failed) deliver_own(job, owned, STREAM_COPY, effects);
    if (job->failed || job->worker->replaying) return;
    send_emission(job, owned, STREAM_FOLD, effects);
    send_emission(job, owned, STREAM_COPY, effects);
}

/* ---- answering ---- */

void worker_job_ask(struct worker_job *job, struct text from, const struct message_ask *ask,
                    struct effects *effects)
{
    const struct job_layout *layout = job->map.layout;
    uint32_t asker = job_layout_worker(layout, from);
    struct owned_shard *owned = worker_job_shard(job, ask->fold, ask->shard);
    if (job->failed || owned == NULL || owned->state != SHARD_EMITTED) return; /* Not yet. */
    bool is_fed = ask->kind == STREAM_COPY
                      ? layout->copied[ask->fold]
                      : ask->kind == STREAM_FOLD && asker < layout->manifest.worker_count &&
                            job_layout_feeds(layout, STREAM_FOLD, ask->fold, asker);
    if (!is_fed) return;
    uint32_t slot = emission_slot(job, ask->kind, asker);
    uint32_t window = job->worker->config.emit_window;
    send_producer_end(job, owned, ask->kind, slot, from, effects);
    for (uint32_t i = 0; i < ask->number_count && i < window; i++) {
        if (ask->numbers[i] < owned->emission.count) {
            send_output(job, owned, ask->numbers[i], slot, from, effects);
        }
    }
}

static const struct owned_shard *find_result(struct worker_job *job, uint32_t query)
{
    const struct plan *plan = job->map.layout->plan;
    if (query >= plan->query_count) return NULL;
    return worker_job_shard(job, plan->queries[query].result_fold, 0);
}

static void answer_result(struct worker_job *job, const struct message_fetch *fetch,
                          struct message_result *result, struct effects *effects)
{
    const struct owned_shard *owned = find_result(job, fetch->query);
    if (job->failed || owned == NULL || owned->state != SHARD_EMITTED) return;
    const struct output_buffer *results = &owned->results;
    struct result_batch *batches =
        arena_array(&job->worker->arena, struct result_batch, results->count + 1);
    if (batches == NULL) return; /* As if it were not here: it will be asked for again. */
    result->ready = true;
    result->total = results->count;
    result->batches = batches;
    uint64_t size = 0;
    for (uint64_t i = fetch->from; i < results->count; i++) {
        size += output_buffer_size(results, i);
        if (result->batch_count > 0 && size > fetch->limit_bytes) break;
        struct buf bytes = {0};
        struct error err;
        status read = output_buffer_get(results, i, &bytes, &err);
        struct text text = {NULL, 0};
        if (read == STATUS_OK) text = arena_text(&job->worker->arena, &bytes);
        buf_done(&bytes);
        if (read != STATUS_OK) worker_job_fail_fold(job, owned->fold, &err, effects);
        if (text.bytes == NULL) break; /* Likewise, or the failure is told. */
        batches[result->batch_count++] = (struct result_batch){.number = i, .bytes = text};
    }
    if (result->batch_count == 0 && fetch->from < results->count) result->ready = false;
}

static void answer_audit(struct worker_job *job, const struct message_fetch *fetch,
                         struct buf *counters, struct message_result *result)
{
    if (job->failed || !job->complete) return;
    struct result_batch *batch = arena_new(&job->worker->arena, struct result_batch);
    counters_encode(&job->counters, job->map.layout->plan, counters);
    if (batch == NULL || counters->failed) return;
    *batch = (struct result_batch){
        .number = fetch->from, .bytes = {(const char *)counters->bytes, (uint32_t)counters->size}};
    result->ready = true;
    result->total = job->map.layout->manifest.worker_count;
    result->batches = batch;
    result->batch_count = 1;
}

void worker_job_fetch(struct worker_job *job, struct text from, const struct message_fetch *fetch,
                      struct effects *effects)
{
    struct message message = worker_message(job->worker, MESSAGE_RESULT, job);
    struct buf counters = {0};
    message.result = (struct message_result){.request = fetch->request};
    if (fetch->query == job->map.layout->plan->query_count) {
        answer_audit(job, fetch, &counters, &message.result);
    } else {
        answer_result(job, fetch, &message.result, effects);
    }
    worker_send(effects, from, &message);
    buf_done(&counters);
}
