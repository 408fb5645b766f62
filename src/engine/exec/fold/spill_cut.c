/* SPDX-License-Identifier: Apache-2.0 */
/* spill_cut.c - the pieces of a batch are read, and their columns are put behind each other.
 *
 * A piece on a boundary is read for both batches: that is cheaper than keeping what is left of it.
 */
#include "engine/exec/fold/spill_cut.h"

#include "engine/base/assert.h"
#include "engine/data/batch_codec.h"

/* The pieces of one batch. */
struct pieces {
    struct buf *bytes;
    struct batch *batches; /* Only the rows that are meant. */
    uint32_t count;
    uint32_t row_count;
};

/* ---- concatenation ---- */

static bool join_nulls(struct column *out, const struct pieces *pieces, uint32_t index,
                       struct arena *arena)
{
    uint32_t row = 0;
    for (uint32_t i = 0; i < pieces->count; i++) {
        const struct column *in = &pieces->batches[i].columns[index];
        uint32_t count = pieces->batches[i].row_count;
        if (in->nulls != NULL) {
            if (!column_need_nulls(out, pieces->row_count, arena)) return false;
            memcpy(out->nulls + row, in->nulls, count);
        }
        row += count;
    }
    return true;
}

/* Elements that no list of the piece has are left behind. */
static bool join_lists(struct column *out, const struct pieces *pieces, uint32_t index,
                       struct arena *arena)
{
    uint64_t element_count = 0;
    for (uint32_t i = 0; i < pieces->count; i++) {
        const struct batch *batch = &pieces->batches[i];
        for (uint32_t row = 0; row < batch->row_count; row++) {
            element_count += batch->columns[index].lists[row].count;
        }
    }
    out->child = arena_new(arena, struct column);
    if (out->child == NULL || element_count >= UINT32_MAX ||
        !column_init(out->child, type_element(out->type), (uint32_t)element_count, arena)) {
        return false;
    }
    size_t width = type_width(out->child->type);
    uint32_t row = 0;
    uint32_t element = 0;
    for (uint32_t i = 0; i < pieces->count; i++) {
        const struct column *in = &pieces->batches[i].columns[index];
        for (uint32_t j = 0; j < pieces->batches[i].row_count; j++) {
            struct list list = in->lists[j];
            if (list.count > 0) {
                memcpy((char *)out->child->data + element * width,
                       (const char *)in->child->data + list.first * width, list.count * width);
            }
            out->lists[row++] = (struct list){element, list.count};
            element += list.count;
        }
    }
    return true;
}

static void join_values(struct column *out, const struct pieces *pieces, uint32_t index)
{
    size_t width = type_width(out->type);
    char *next = out->data;
    for (uint32_t i = 0; i < pieces->count; i++) {
        size_t size = pieces->batches[i].row_count * width;
        memcpy(next, pieces->batches[i].columns[index].data, size);
        next += size;
    }
}

static status join_pieces(const struct pieces *pieces, struct schema schema, struct arena *arena,
                          struct batch *out_batch, struct error *err)
{
    if (pieces->count == 1) {
        *out_batch = pieces->batches[0];
        return STATUS_OK;
    }
    struct column *columns = arena_array(arena, struct column, schema.count + 1);
    if (columns == NULL) return error_memory(err);
    for (uint32_t i = 0; i < schema.count; i++) {
        struct column *column = &columns[i];
        bool fits = column_init(column, schema.fields[i].type, pieces->row_count, arena) &&
                    join_nulls(column, pieces, i, arena);
        if (fits && type_is_list(column->type)) {
            fits = join_lists(column, pieces, i, arena);
        } else if (fits) {
            join_values(column, pieces, i);
        }
        if (!fits) return error_memory(err);
    }
    *out_batch = (struct batch){
        .row_count = pieces->row_count, .column_count = schema.count, .columns = columns};
    return STATUS_OK;
}

/* ---- reading ---- */

/* Where the next batch begins. */
struct cut_place {
    size_t extent;
    uint32_t row; /* Of the extent. */
};

static status read_piece(const struct spill_rows *rows, struct cut_place place, uint32_t count,
                         struct pieces *pieces, struct arena *arena, struct error *err)
{
    struct buf *bytes = &pieces->bytes[pieces->count];
    struct column *columns = arena_array(arena, struct column, rows->schema.count + 1);
    struct batch batch;
    if (columns == NULL) return error_memory(err);
    *bytes = (struct buf){.budget = rows->place->budget};
    struct batch *out = &pieces->batches[pieces->count++];
    TRY(spill_read(rows->place->file, rows->extents.items[place.extent], bytes, err));
    TRY(batch_decode(bytes->bytes, bytes->size, rows->schema, arena, &batch, err));
    ASSERT(place.row + count <= batch.row_count);
    *out = batch_slice(&batch, place.row, count, columns);
    pieces->row_count += count;
    return STATUS_OK;
}

static status read_pieces(const struct spill_rows *rows, struct cut_place *place,
                          uint32_t row_count, struct pieces *pieces, struct arena *arena,
                          struct error *err)
{
    uint32_t piece_count = 1;
    uint64_t there = rows->extents.items[place->extent].row_count - place->row;
    for (; there < row_count; piece_count++) {
        there += rows->extents.items[place->extent + piece_count].row_count;
    }
    pieces->bytes = arena_array(arena, struct buf, piece_count);
    pieces->batches = arena_array(arena, struct batch, piece_count);
    if (pieces->bytes == NULL || pieces->batches == NULL) return error_memory(err);
    while (row_count > 0) {
        uint32_t left = rows->extents.items[place->extent].row_count - place->row;
        uint32_t count = left < row_count ? left : row_count;
        TRY(read_piece(rows, *place, count, pieces, arena, err));
        row_count -= count;
        place->row += count;
        if (count == left) *place = (struct cut_place){.extent = place->extent + 1};
    }
    return STATUS_OK;
}

static status cut_batch(const struct spill_rows *rows, struct cut_place *place, uint32_t row_count,
                        uint64_t number, struct fold_sink *sink, struct arena *arena,
                        struct error *err)
{
    struct pieces pieces = {0};
    struct batch batch;
    status result = read_pieces(rows, place, row_count, &pieces, arena, err);
    if (result == STATUS_OK) result = join_pieces(&pieces, rows->schema, arena, &batch, err);
    if (result == STATUS_OK) result = sink->accept(sink, number, &batch, err);
    for (uint32_t i = 0; i < pieces.count; i++) {
        buf_done(&pieces.bytes[i]);
    }
    arena_reset(arena);
    return result;
}

status spill_cut(const struct spill_rows *rows, struct spill_window window, struct fold_sink *sink,
                 struct error *err)
{
    ASSERT(window.first <= rows->row_count);
    ASSERT(window.count <= rows->row_count - window.first);
    struct cut_place place = {0};
    /* Pieces before the window are not even read. */
    while (window.count > 0 && window.first >= rows->extents.items[place.extent].row_count) {
        window.first -= rows->extents.items[place.extent++].row_count;
    }
    place.row = (uint32_t)window.first;
    struct arena arena;
    arena_init(&arena, rows->place->budget);
    status result = STATUS_OK;
    for (uint64_t number = 0; window.count > 0 && result == STATUS_OK; number++) {
        uint32_t count = window.batch_rows;
        if (count > window.count) count = (uint32_t)window.count;
        result = cut_batch(rows, &place, count, number, sink, &arena, err);
        window.count -= count;
    }
    arena_done(&arena);
    return result;
}
