/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.c - delivery, and the two independent counts.
 *
 * The producer's end hashes the bytes it made. The applied end hashes the bytes that arrived, just
 * before they are applied, and counts the rows the fold found in them. A batch that was lost,
 * doubled or altered in between makes the sums differ.
 */
#include "engine/local/exchange.h"

#include "engine/base/fault_injection.h"
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
    struct stored_batch *kept = array_add(&stream->pending, bytes->budget);
    if (kept == NULL) return error_memory(err);
    *kept = (struct stored_batch){.identity = identity, .bytes = *bytes};
    *bytes = (struct buf){.budget = bytes->budget};
    return STATUS_OK;
}

static status stream_apply(struct stream_out *stream, struct schema schema,
                           struct batch_identity identity, struct buf *bytes, struct error *err)
{
    if (identity.number != stream->next_number) return stream_keep(stream, identity, bytes, err);
    TRY(stream_rows(stream, schema, bytes, err));
    stream->next_number++;
    for (size_t i = 0; i < stream->pending.count;) {
        struct stored_batch *kept = &stream->pending.items[i];
        if (kept->identity.number != stream->next_number) {
            i++;
            continue;
        }
        status result = stream_rows(stream, schema, &kept->bytes, err);
        buf_done(&kept->bytes);
        *kept = stream->pending.items[--stream->pending.count];
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
    /* A thread works at it, and can spill it by itself. */
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
    for (uint32_t i = 0; i < exchanges->fold_count; i++) {
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

status exchange_apply(struct exchanges *exchanges, struct exchange_batch *batch, struct error *err)
{
    struct fold_run *run = &exchanges->folds[batch->pipeline->target];
    uint32_t shard = batch->shard;
    TRY(make_room(exchanges, err));
    pthread_mutex_lock(&run->locks[shard]);
    struct exchange_count *applied =
        &run->applied[batch->identity.input * run->shard_count + shard];
    struct exchange_count end = {0};
    uint64_t rows = 0;
    count(&end, shard, batch->identity, 0, &batch->bytes);
    status result;
    if (run->stream != NULL) {
        result = rows_in(run->fold->input, &batch->bytes, exchanges->budget, &rows, err);
        if (result == STATUS_OK) {
            result =
                stream_apply(run->stream, run->fold->input, batch->identity, &batch->bytes, err);
        }
    } else {
        result = fold_shard_apply(run->shards[shard], batch->identity, &batch->bytes, &rows, err);
    }
    if (result == STATUS_OK) {
        end.row_count = rows;
        exchange_count_merge(applied, &end);
    }
    pthread_mutex_unlock(&run->locks[shard]);
    return result;
}

status exchange_deliver(struct exchanges *exchanges, const struct pipeline *pipeline,
                        uint32_t shard, struct batch_identity identity,
                        struct pipeline_output *output, struct exchange_count *sent,
                        struct error *err)
{
    count(sent, shard, identity, output->row_count, &output->bytes);
    struct exchange_batch batch = {pipeline, shard, identity, output->bytes};
    struct exchange_fault *fault = exchanges->fault;
    status result = FAULT_INJECTION && fault != NULL
                        ? fault->carry(fault, exchanges, &batch, output->row_count, sent, err)
                        : exchange_apply(exchanges, &batch, err);
    output->bytes = batch.bytes;
    buf_reset(&output->bytes);
    return result;
}

status exchange_release(struct exchanges *exchanges, struct error *err)
{
    struct exchange_fault *fault = exchanges->fault;
    if (FAULT_INJECTION && fault != NULL) return fault->release(fault, exchanges, err);
    return STATUS_OK;
}
