/* SPDX-License-Identifier: Apache-2.0 */
/* row_store.c - bytes in, one batch out.
 *
 * A batch is decoded twice: when it is added, so that bytes that are not a batch fail there, and
 * when it is read. In between only its bytes are stored, which are smaller than values.
 */
#include "engine/exec/fold/row_store.h"

#include <stdlib.h>

#include "engine/base/assert.h"
#include "engine/data/batch_codec.h"

static int compare_identities(const void *a, const void *b)
{
    const struct batch_identity *left = &((const struct stored_batch *)a)->identity;
    const struct batch_identity *right = &((const struct stored_batch *)b)->identity;
    if (left->input != right->input) return left->input < right->input ? -1 : 1;
    if (left->producer != right->producer) return left->producer < right->producer ? -1 : 1;
    return (left->number > right->number) - (left->number < right->number);
}

static void sort_batches(struct row_store *store)
{
    if (store->batches.count < 2) return;
    qsort(store->batches.items, store->batches.count, sizeof *store->batches.items,
          compare_identities);
}

static bool is_spilled(const struct stored_batch *batch)
{
    return batch->extent.size > 0;
}

static size_t batch_bytes(const struct stored_batch *batch)
{
    return is_spilled(batch) ? batch->extent.size : batch->bytes.capacity;
}

static void free_bytes(struct row_store *store, struct stored_batch *batch)
{
    if (!is_spilled(batch)) store->held_bytes -= batch->bytes.capacity;
    buf_done(&batch->bytes);
}

/* Drops batches that have enough rows before them: batches to come only add to these. */
static void drop_beyond_limit(struct row_store *store)
{
    sort_batches(store);
    uint64_t before = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < store->batches.count; i++) {
        if (before >= store->row_limit) {
            store->byte_count -= batch_bytes(&store->batches.items[i]);
            free_bytes(store, &store->batches.items[i]);
            continue;
        }
        before += store->batches.items[i].row_count;
        store->batches.items[count++] = store->batches.items[i];
    }
    store->batches.count = count;
    store->row_count = before;
}

status row_store_add(struct row_store *store, struct batch_identity identity, struct buf *bytes,
                     uint64_t *out_rows, struct error *err)
{
    struct arena arena;
    struct batch batch;
    arena_init(&arena, store->budget);
    status result = batch_decode(bytes->bytes, bytes->size, store->schema, &arena, &batch, err);
    arena_done(&arena);
    TRY(result);
    *out_rows = batch.row_count;
    /* An empty batch has nothing to store; exchanges count its number. */
    if (batch.row_count == 0) return STATUS_OK;
    struct stored_batch *added = array_add(&store->batches, store->budget);
    if (added == NULL) return error_memory(err);
    *added =
        (struct stored_batch){.identity = identity, .row_count = batch.row_count, .bytes = *bytes};
    store->row_count += batch.row_count;
    store->byte_count += bytes->capacity;
    store->held_bytes += bytes->capacity;
    *bytes = (struct buf){.budget = bytes->budget};
    if (store->row_limit != 0 && store->row_count > 2 * store->row_limit) drop_beyond_limit(store);
    return STATUS_OK;
}

status row_store_spill(struct row_store *store, struct error *err)
{
    for (uint32_t i = 0; i < store->batches.count; i++) {
        struct stored_batch *batch = &store->batches.items[i];
        if (is_spilled(batch)) continue;
        struct spill_extent extent;
        TRY(spill_place_write(store->place, &batch->bytes, (uint32_t)batch->row_count, &extent,
                              err));
        store->byte_count -= batch->bytes.capacity;
        store->byte_count += extent.size;
        free_bytes(store, batch);
        batch->extent = extent;
    }
    return STATUS_OK;
}

/* Moves the rows of the batches from `first` on into the builder. */
static status read_batches(struct row_store *store, uint32_t first, struct batch *out_batch,
                           struct error *err)
{
    if (!store->builder_ready) {
        store->builder_ready = true;
        if (!builder_init(&store->builder, store->schema, store->budget)) return error_memory(err);
    }
    struct arena arena;
    struct buf read = {.budget = store->budget};
    arena_init(&arena, store->budget);
    status result = STATUS_OK;
    for (uint32_t i = first; i < store->batches.count && result == STATUS_OK; i++) {
        struct stored_batch *from = &store->batches.items[i];
        struct buf *bytes = is_spilled(from) ? &read : &from->bytes;
        struct batch batch;
        if (is_spilled(from)) result = spill_read(store->place->file, from->extent, &read, err);
        if (result != STATUS_OK) break;
        result = batch_decode(bytes->bytes, bytes->size, store->schema, &arena, &batch, err);
        if (result != STATUS_OK) break;
        builder_append(&store->builder, &batch, (struct selection){NULL, batch.row_count});
        store->byte_count -= batch_bytes(from);
        store->row_count -= from->row_count;
        free_bytes(store, from);
        *from = (struct stored_batch){0};
        arena_reset(&arena);
    }
    arena_done(&arena);
    buf_done(&read);
    TRY(result);
    store->batches.count = first;
    if (store->builder.too_large) {
        return error_set(
            err, STATUS_LIMIT,
            "more than 4 GiB of text in one column, or 4 billion rows, are too many to "
            "collect; select less");
    }
    return builder_batch(&store->builder, out_batch) ? STATUS_OK : error_memory(err);
}

/* Whether the rows can be views of the encoded bytes: these are all in memory, there is text to be
 * spared a copy, and no lists, whose elements would have to be joined. */
static bool can_be_viewed(const struct row_store *store)
{
    bool has_text = false;
    for (uint32_t i = 0; i < store->schema.count; i++) {
        struct type type = store->schema.fields[i].type;
        if (type_is_list(type)) return false;
        has_text = has_text || type.kind == TYPE_TEXT;
    }
    if (!has_text || store->row_count >= ROW_NONE) return false;
    return store->held_bytes == store->byte_count;
}

/* Appends the rows of one batch behind the `first` ones. */
static status view_rows(struct row_store *store, struct column *columns, const struct batch *batch,
                        uint32_t first, struct error *err)
{
    for (uint32_t i = 0; i < batch->column_count; i++) {
        const struct column *from = &batch->columns[i];
        size_t width = type_width(from->type);
        memcpy((unsigned char *)columns[i].data + first * width, from->data,
               batch->row_count * width);
        if (from->nulls == NULL) continue;
        if (!column_need_nulls(&columns[i], (uint32_t)store->row_count, &store->view)) {
            return error_memory(err);
        }
        memcpy(columns[i].nulls + first, from->nulls, batch->row_count);
    }
    return STATUS_OK;
}

static status view_batches(struct row_store *store, struct batch *out_batch, struct error *err)
{
    uint32_t row_count = (uint32_t)store->row_count;
    arena_init(&store->view, store->budget);
    struct column *columns = arena_array(&store->view, struct column, store->schema.count + 1);
    if (columns == NULL) return error_memory(err);
    for (uint32_t i = 0; i < store->schema.count; i++) {
        if (!column_init(&columns[i], store->schema.fields[i].type, row_count + 1, &store->view)) {
            return error_memory(err);
        }
    }
    struct arena arena;
    arena_init(&arena, store->budget);
    status result = STATUS_OK;
    uint32_t first = 0;
    for (uint32_t i = 0; i < store->batches.count && result == STATUS_OK; i++) {
        const struct buf *bytes = &store->batches.items[i].bytes;
        struct batch batch;
        result = batch_decode(bytes->bytes, bytes->size, store->schema, &arena, &batch, err);
        if (result == STATUS_OK) result = view_rows(store, columns, &batch, first, err);
        if (result == STATUS_OK) first += batch.row_count;
        arena_reset(&arena);
    }
    arena_done(&arena);
    *out_batch =
        (struct batch){.row_count = first, .column_count = store->schema.count, .columns = columns};
    return result;
}

status row_store_read(struct row_store *store, struct batch *out_batch, struct error *err)
{
    sort_batches(store);
    if (can_be_viewed(store)) return view_batches(store, out_batch, err);
    return read_batches(store, 0, out_batch, err);
}

status row_store_take(struct row_store *store, size_t byte_count, struct batch *out_batch,
                      struct error *err)
{
    uint32_t first = store->batches.count;
    for (size_t bytes = 0; first > 0 && bytes < byte_count; first--) {
        bytes += batch_bytes(&store->batches.items[first - 1]);
    }
    if (store->builder_ready) builder_reset(&store->builder);
    return read_batches(store, first, out_batch, err);
}

void row_store_trim(struct row_store *store)
{
    if (store->builder_ready) builder_done(&store->builder);
    store->builder_ready = false;
}

status row_store_list(struct row_store *store, struct spill_rows *out, struct error *err)
{
    ASSERT(store->held_bytes == 0);
    sort_batches(store);
    for (uint32_t i = 0; i < store->batches.count; i++) {
        TRY(spill_rows_add(out, store->batches.items[i].extent, err));
    }
    return STATUS_OK;
}

void row_store_done(struct row_store *store)
{
    for (uint32_t i = 0; i < store->batches.count; i++) {
        buf_done(&store->batches.items[i].bytes);
    }
    array_done(&store->batches, store->budget);
    if (store->builder_ready) builder_done(&store->builder);
    arena_done(&store->view);
    *store = (struct row_store){0};
}
