/* exchange.c - delivery, and the two independent counts.
 *
 * The producer's end hashes the bytes it made. The applied end hashes the bytes that arrived, just
 * before they are applied, and counts the rows the fold found in them. A batch that was lost,
 * doubled or altered in between makes the sums differ.
 */
#include "engine/local/exchange.h"

#include "engine/base/assert.h"
#include "engine/exec/fold/row_store.h"
#include "engine/data/batch_codec.h"

static void count(struct exchange_count *end, uint32_t shard, struct batch_identity identity,
                  uint64_t row_count, const struct buf *bytes)
{
    struct batch_place place = {
        .producer = identity.producer, .shard = shard, .number = identity.number};
    struct text text = {(const char *)bytes->bytes, (uint32_t)bytes->size};
    exchange_count_add(end, place, row_count, text);
}

/* ---- streaming ---- */

static status stream_rows(struct stream_out *stream, struct schema schema, const struct buf *bytes,
                          struct error *err)
{
    struct batch batch;
    arena_reset(&stream->arena);
    TRY(batch_decode(bytes->bytes, bytes->size, schema, &stream->arena, &batch, err));
    if (batch.row_count == 0) return STATUS_OK;
    return stream->events->rows(stream->events->context, stream->query, &batch, err);
}

static status stream_keep(struct stream_out *stream, struct batch_identity identity,
                          struct buf *bytes, struct error *err)
{
    if (stream->pending_count == stream->pending_capacity) {
        size_t grown = stream->pending_capacity == 0 ? 16 : stream->pending_capacity * 2;
        struct stored_batch *pending =
            memory_resize(bytes->budget, stream->pending,
                          stream->pending_capacity * sizeof *pending, grown * sizeof *pending);
        if (pending == NULL) return error_memory(err);
        stream->pending = pending;
        stream->pending_capacity = grown;
    }
    stream->pending[stream->pending_count++] =
        (struct stored_batch){.identity = identity, .bytes = *bytes};
    *bytes = (struct buf){.budget = bytes->budget};
    return STATUS_OK;
}

static status stream_apply(struct stream_out *stream, struct schema schema,
                           struct batch_identity identity, struct buf *bytes, struct error *err)
{
    if (identity.number != stream->next_number) return stream_keep(stream, identity, bytes, err);
    TRY(stream_rows(stream, schema, bytes, err));
    stream->next_number++;
    for (size_t i = 0; i < stream->pending_count;) {
        struct stored_batch *kept = &stream->pending[i];
        if (kept->identity.number != stream->next_number) {
            i++;
            continue;
        }
        status result = stream_rows(stream, schema, &kept->bytes, err);
        buf_done(&kept->bytes);
        *kept = stream->pending[--stream->pending_count];
        TRY(result);
        stream->next_number++;
        i = 0;
    }
    return STATUS_OK;
}

/* How many rows the bytes claim to hold, read independently of who made them. */
static status rows_in(struct schema schema, const struct buf *bytes, struct budget *budget,
                      uint64_t *out_rows, struct error *err)
{
    struct arena arena;
    struct batch batch;
    arena_init(&arena, budget);
    status result = batch_decode(bytes->bytes, bytes->size, schema, &arena, &batch, err);
    if (result == STATUS_OK) *out_rows = batch.row_count;
    arena_done(&arena);
    return result;
}

/* ---- room ---- */

static size_t spillable(struct fold_run *run, uint32_t shard)
{
    if (run->finished || run->stream != NULL) return 0;
    /* Somebody works at it: then it can do that by itself. */
    if (pthread_mutex_trylock(&run->locks[shard]) != 0) return 0;
    size_t bytes = fold_shard_spillable(run->shards[shard]);
    pthread_mutex_unlock(&run->locks[shard]);
    return bytes;
}

/* Nothing is locked by the caller. */
static status make_room(struct exchanges *exchanges, struct error *err)
{
    if (!fold_room_is_short(exchanges->budget)) return STATUS_OK;
    struct fold_run *largest = NULL;
    uint32_t largest_shard = 0;
    size_t most = 0;
    for (uint32_t i = 0; i < exchanges->options->plan->fold_count; i++) {
        for (uint32_t shard = 0; shard < exchanges->folds[i].shard_count; shard++) {
            size_t bytes = spillable(&exchanges->folds[i], shard);
            if (bytes <= most) continue;
            most = bytes;
            largest = &exchanges->folds[i];
            largest_shard = shard;
        }
    }
    if (largest == NULL) return STATUS_OK;
    status result = STATUS_OK;
    pthread_mutex_lock(&largest->locks[largest_shard]);
    /* Another thread may have been here. */
    if (fold_shard_spillable(largest->shards[largest_shard]) > 0) {
        result = fold_shard_spill(largest->shards[largest_shard], err);
    }
    pthread_mutex_unlock(&largest->locks[largest_shard]);
    return result;
}

/* ---- delivery ---- */

static status apply(struct exchanges *exchanges, const struct pipeline *pipeline, uint32_t shard,
                    struct batch_identity identity, struct buf *bytes, struct error *err)
{
    struct fold_run *run = &exchanges->folds[pipeline->target];
    TRY(make_room(exchanges, err));
    pthread_mutex_lock(&run->locks[shard]);
    struct exchange_count *applied = &run->applied[identity.input * run->shard_count + shard];
    struct exchange_count end = {0};
    uint64_t rows = 0;
    count(&end, shard, identity, 0, bytes);
    status result;
    if (run->stream != NULL) {
        result = rows_in(run->fold->input, bytes, exchanges->budget, &rows, err);
        if (result == STATUS_OK) {
            result = stream_apply(run->stream, run->fold->input, identity, bytes, err);
        }
    } else {
        result = fold_shard_apply(run->shards[shard], identity, bytes, &rows, err);
    }
    if (result == STATUS_OK) {
        applied->batch_count += end.batch_count;
        applied->row_count += rows;
        applied->hash_sum += end.hash_sum;
    }
    pthread_mutex_unlock(&run->locks[shard]);
    return result;
}

static status wait_batch(struct exchanges *exchanges, const struct pipeline *pipeline,
                         uint32_t shard, struct batch_identity identity, struct buf *bytes,
                         struct error *err)
{
    struct waiting_room *room = &exchanges->waiting;
    status result = STATUS_OK;
    pthread_mutex_lock(&room->lock);
    if (room->count == room->capacity) {
        size_t grown = room->capacity == 0 ? 64 : room->capacity * 2;
        struct waiting_batch *batches =
            memory_resize(exchanges->budget, room->batches, room->capacity * sizeof *batches,
                          grown * sizeof *batches);
        if (batches == NULL) {
            result = error_memory(err);
        } else {
            room->batches = batches;
            room->capacity = grown;
        }
    }
    if (result == STATUS_OK) {
        room->batches[room->count++] = (struct waiting_batch){pipeline, shard, identity, *bytes};
        *bytes = (struct buf){.budget = bytes->budget};
    }
    pthread_mutex_unlock(&room->lock);
    return result;
}

static status pass_on(struct exchanges *exchanges, const struct pipeline *pipeline, uint32_t shard,
                      struct batch_identity identity, struct buf *bytes, struct error *err)
{
    if (exchanges->options->shuffle_seed != 0) {
        return wait_batch(exchanges, pipeline, shard, identity, bytes, err);
    }
    return apply(exchanges, pipeline, shard, identity, bytes, err);
}

static status deliver_twice(struct exchanges *exchanges, const struct pipeline *pipeline,
                            uint32_t shard, struct batch_identity identity, struct buf *bytes,
                            struct error *err)
{
    struct buf copy = {.budget = bytes->budget};
    buf_put(&copy, bytes->bytes, bytes->size);
    status result = pass_on(exchanges, pipeline, shard, identity, &copy, err);
    buf_done(&copy);
    TRY(result);
    return pass_on(exchanges, pipeline, shard, identity, bytes, err);
}

status exchange_deliver(struct exchanges *exchanges, const struct pipeline *pipeline,
                        uint32_t shard, struct batch_identity identity,
                        struct pipeline_output *output, struct exchange_count *sent,
                        struct error *err)
{
    enum tamper tamper = TAMPER_NONE;
    if (exchanges->options->tamper != NULL) {
        tamper = exchanges->options->tamper(pipeline->id, shard, identity.number);
    }
    if (tamper != TAMPER_FORGET) {
        count(sent, shard, identity, output->row_count, &output->bytes);
    }
    status result = STATUS_OK;
    switch (tamper) {
    case TAMPER_LOSE:
    case TAMPER_FORGET:
        break;
    case TAMPER_DOUBLE:
        result = deliver_twice(exchanges, pipeline, shard, identity, &output->bytes, err);
        break;
    case TAMPER_ALTER:
        /* The last byte of a value, not of the frame: it still decodes. */
        if (output->bytes.size > 0) output->bytes.bytes[output->bytes.size - 8] ^= 1;
        result = pass_on(exchanges, pipeline, shard, identity, &output->bytes, err);
        break;
    case TAMPER_NONE:
        result = pass_on(exchanges, pipeline, shard, identity, &output->bytes, err);
        break;
    }
    buf_reset(&output->bytes);
    return result;
}

status exchange_release(struct exchanges *exchanges, struct error *err)
{
    struct waiting_room *room = &exchanges->waiting;
    struct random random = {exchanges->options->shuffle_seed};
    status result = STATUS_OK;
    while (room->count > 0 && result == STATUS_OK) {
        size_t chosen = random_u64(&random) % room->count;
        struct waiting_batch batch = room->batches[chosen];
        room->batches[chosen] = room->batches[--room->count];
        result = apply(exchanges, batch.pipeline, batch.shard, batch.identity, &batch.bytes, err);
        buf_done(&batch.bytes);
    }
    return result;
}
