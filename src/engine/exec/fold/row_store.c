/* row_store.c - bytes in, one batch out. */
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

static void sort_batches(struct row_store *kept)
{
    if (kept->count < 2) return;
    qsort(kept->batches, kept->count, sizeof *kept->batches, compare_identities);
}

static bool is_spilled(const struct stored_batch *batch)
{
    return batch->extent.size > 0;
}

static size_t batch_bytes(const struct stored_batch *batch)
{
    return is_spilled(batch) ? batch->extent.size : batch->bytes.capacity;
}

static void free_bytes(struct row_store *kept, struct stored_batch *batch)
{
    if (!is_spilled(batch)) kept->held_bytes -= batch->bytes.capacity;
    buf_done(&batch->bytes);
}

/* A batch with enough rows before it can't matter any more: what comes later only adds to them. */
static void forget_the_rest(struct row_store *kept)
{
    sort_batches(kept);
    uint64_t before = 0;
    size_t count = 0;
    for (size_t i = 0; i < kept->count; i++) {
        if (before >= kept->row_limit) {
            kept->byte_count -= batch_bytes(&kept->batches[i]);
            free_bytes(kept, &kept->batches[i]);
            continue;
        }
        before += kept->batches[i].row_count;
        kept->batches[count++] = kept->batches[i];
    }
    kept->count = count;
    kept->row_count = before;
}

status row_store_add(struct row_store *kept, struct batch_identity identity, struct buf *bytes,
                     uint64_t *out_rows, struct error *err)
{
    struct arena arena;
    struct batch batch;
    arena_init(&arena, kept->budget);
    status result = batch_decode(bytes->bytes, bytes->size, kept->schema, &arena, &batch, err);
    arena_done(&arena);
    TRY(result);
    *out_rows = batch.row_count;
    /* An empty batch says nothing: its number is counted by whoever counts. */
    if (batch.row_count == 0) return STATUS_OK;
    if (kept->count == kept->capacity) {
        size_t grown = kept->capacity == 0 ? 16 : kept->capacity * 2;
        struct stored_batch *batches = memory_resize(
            kept->budget, kept->batches, kept->capacity * sizeof *batches, grown * sizeof *batches);
        if (batches == NULL) return error_memory(err);
        kept->batches = batches;
        kept->capacity = grown;
    }
    kept->batches[kept->count++] =
        (struct stored_batch){.identity = identity, .row_count = batch.row_count, .bytes = *bytes};
    kept->row_count += batch.row_count;
    kept->byte_count += bytes->capacity;
    kept->held_bytes += bytes->capacity;
    *bytes = (struct buf){.budget = bytes->budget};
    if (kept->row_limit != 0 && kept->row_count > 2 * kept->row_limit) forget_the_rest(kept);
    return STATUS_OK;
}

status row_store_spill(struct row_store *kept, struct error *err)
{
    for (size_t i = 0; i < kept->count; i++) {
        struct stored_batch *batch = &kept->batches[i];
        if (is_spilled(batch)) continue;
        struct spill_extent extent;
        TRY(spill_place_write(kept->place, &batch->bytes, (uint32_t)batch->row_count, &extent,
                              err));
        kept->byte_count -= batch->bytes.capacity;
        kept->byte_count += extent.size;
        free_bytes(kept, batch);
        batch->extent = extent;
    }
    return STATUS_OK;
}

/* Moves the rows of the batches from `first` on into the builder. */
static status read_batches(struct row_store *kept, size_t first, struct batch *out_batch,
                           struct error *err)
{
    if (!kept->builder_ready) {
        kept->builder_ready = true;
        if (!builder_init(&kept->builder, kept->schema, kept->budget)) return error_memory(err);
    }
    struct arena arena;
    struct buf read = {.budget = kept->budget};
    arena_init(&arena, kept->budget);
    status result = STATUS_OK;
    for (size_t i = first; i < kept->count && result == STATUS_OK; i++) {
        struct stored_batch *from = &kept->batches[i];
        struct buf *bytes = is_spilled(from) ? &read : &from->bytes;
        struct batch batch;
        if (is_spilled(from)) result = spill_read(kept->place->file, from->extent, &read, err);
        if (result != STATUS_OK) break;
        result = batch_decode(bytes->bytes, bytes->size, kept->schema, &arena, &batch, err);
        if (result != STATUS_OK) break;
        builder_append(&kept->builder, &batch, (struct selection){NULL, batch.row_count});
        kept->byte_count -= batch_bytes(from);
        kept->row_count -= from->row_count;
        free_bytes(kept, from);
        *from = (struct stored_batch){0};
        arena_reset(&arena);
    }
    arena_done(&arena);
    buf_done(&read);
    TRY(result);
    kept->count = first;
    if (kept->builder.too_large) {
        return error_set(
            err, STATUS_LIMIT,
            "more than 4 GiB of text in one column, or 4 billion rows, are too many to "
            "collect; select less");
    }
    return builder_batch(&kept->builder, out_batch) ? STATUS_OK : error_memory(err);
}

/* Whether the batches can stay where they are: texts are long, and all other values short. */
static bool has_plain_texts(const struct row_store *kept)
{
    bool has_text = false;
    for (uint32_t i = 0; i < kept->schema.count; i++) {
        struct type type = kept->schema.fields[i].type;
        if (type_is_list(type)) return false;
        has_text = has_text || type.kind == TYPE_TEXT;
    }
    if (!has_text || kept->row_count >= ROW_NONE) return false;
    return kept->held_bytes == kept->byte_count;
}

/* Rows of one batch behind the `first` that are there. */
static status view_rows(struct row_store *kept, struct column *columns, const struct batch *batch,
                        uint32_t first, struct error *err)
{
    for (uint32_t i = 0; i < batch->column_count; i++) {
        const struct column *from = &batch->columns[i];
        size_t width = type_width(from->type);
        memcpy((unsigned char *)columns[i].data + first * width, from->data,
               batch->row_count * width);
        if (from->nulls == NULL) continue;
        if (!column_need_nulls(&columns[i], (uint32_t)kept->row_count, &kept->view)) {
            return error_memory(err);
        }
        memcpy(columns[i].nulls + first, from->nulls, batch->row_count);
    }
    return STATUS_OK;
}

static status view_batches(struct row_store *kept, struct batch *out_batch, struct error *err)
{
    uint32_t row_count = (uint32_t)kept->row_count;
    arena_init(&kept->view, kept->budget);
    struct column *columns = arena_array(&kept->view, struct column, kept->schema.count + 1);
    if (columns == NULL) return error_memory(err);
    for (uint32_t i = 0; i < kept->schema.count; i++) {
        if (!column_init(&columns[i], kept->schema.fields[i].type, row_count + 1, &kept->view)) {
            return error_memory(err);
        }
    }
    struct arena arena;
    arena_init(&arena, kept->budget);
    status result = STATUS_OK;
    uint32_t first = 0;
    for (size_t i = 0; i < kept->count && result == STATUS_OK; i++) {
        const struct buf *bytes = &kept->batches[i].bytes;
        struct batch batch;
        result = batch_decode(bytes->bytes, bytes->size, kept->schema, &arena, &batch, err);
        if (result == STATUS_OK) result = view_rows(kept, columns, &batch, first, err);
        if (result == STATUS_OK) first += batch.row_count;
        arena_reset(&arena);
    }
    arena_done(&arena);
    *out_batch =
        (struct batch){.row_count = first, .column_count = kept->schema.count, .columns = columns};
    return result;
}

status row_store_read(struct row_store *kept, struct batch *out_batch, struct error *err)
{
    sort_batches(kept);
    if (has_plain_texts(kept)) return view_batches(kept, out_batch, err);
    return read_batches(kept, 0, out_batch, err);
}

status row_store_take(struct row_store *kept, size_t byte_count, struct batch *out_batch,
                      struct error *err)
{
    size_t first = kept->count;
    for (size_t bytes = 0; first > 0 && bytes < byte_count; first--) {
        bytes += batch_bytes(&kept->batches[first - 1]);
    }
    if (kept->builder_ready) builder_reset(&kept->builder);
    return read_batches(kept, first, out_batch, err);
}

void row_store_trim(struct row_store *kept)
{
    if (kept->builder_ready) builder_done(&kept->builder);
    kept->builder_ready = false;
}

status row_store_list(struct row_store *kept, struct spill_rows *out, struct error *err)
{
    ASSERT(kept->held_bytes == 0);
    sort_batches(kept);
    for (size_t i = 0; i < kept->count; i++) {
        TRY(spill_rows_add(out, kept->batches[i].extent, err));
    }
    return STATUS_OK;
}

void row_store_done(struct row_store *kept)
{
    for (size_t i = 0; i < kept->count; i++) {
        buf_done(&kept->batches[i].bytes);
    }
    memory_free(kept->budget, kept->batches, kept->capacity * sizeof *kept->batches);
    if (kept->builder_ready) builder_done(&kept->builder);
    arena_done(&kept->view);
    *kept = (struct row_store){0};
}
