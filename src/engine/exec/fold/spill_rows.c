/* SPDX-License-Identifier: Apache-2.0 */
/* spill_rows.c - pieces are cut by size, so that a merge of many runs can compute how much memory
 * its cursors take. */
#include "engine/exec/fold/spill_rows.h"

#include "engine/base/assert.h"
#include "engine/data/batch_codec.h"

enum { APPEND_ROWS = 32 }; /* So many rows may make a piece larger than it should be. */

void spill_place_done(struct spill_place *place)
{
    spill_close(place->file);
    place->file = NULL;
}

status spill_place_write(struct spill_place *place, const struct buf *bytes, uint32_t row_count,
                         struct spill_extent *out_extent, struct error *err)
{
    if (place->file == NULL) TRY(place->store->open(place->store, &place->file, err));
    return spill_write(place->file, bytes->bytes, bytes->size, row_count, out_extent, err);
}

/* ---- rows ---- */

status spill_rows_add(struct spill_rows *rows, struct spill_extent extent, struct error *err)
{
    struct spill_extent *added = array_add(&rows->extents, rows->place->budget);
    if (added == NULL) return error_memory(err);
    *added = extent;
    rows->row_count += extent.row_count;
    rows->byte_count += extent.size;
    return STATUS_OK;
}

void spill_rows_done(struct spill_rows *rows)
{
    if (rows->extents.items == NULL) return;
    array_done(&rows->extents, rows->place->budget);
    *rows = (struct spill_rows){.place = rows->place, .schema = rows->schema};
}

/* ---- writing ---- */

status spill_writer_open(struct spill_writer *writer, struct spill_rows *rows, struct error *err)
{
    struct budget *budget = rows->place->budget;
    *writer = (struct spill_writer){.rows = rows, .bytes = {.budget = budget}};
    return builder_init(&writer->builder, rows->schema, budget) ? STATUS_OK : error_memory(err);
}

static size_t held_bytes(const struct batch_builder *builder)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < builder->schema.count; i++) {
        const struct builder_column *column = &builder->columns[i];
        bytes +=
            column->values.size + column->nulls.size + column->bytes.size + column->elements.size;
    }
    return bytes;
}

status spill_writer_flush(struct spill_writer *writer, struct error *err)
{
    struct spill_extent extent;
    if (writer->builder.failed) return error_memory(err);
    if (writer->builder.row_count == 0) return STATUS_OK;
    buf_reset(&writer->bytes);
    batch_encode(&writer->builder, &writer->bytes);
    if (writer->bytes.failed) return error_memory(err);
    TRY(spill_place_write(writer->rows->place, &writer->bytes, writer->builder.row_count, &extent,
                          err));
    builder_reset(&writer->builder);
    return spill_rows_add(writer->rows, extent, err);
}

status spill_writer_append(struct spill_writer *writer, const struct batch *batch,
                           struct selection selection, struct error *err)
{
    uint32_t rows[APPEND_ROWS];
    for (uint32_t first = 0; first < selection.count; first += APPEND_ROWS) {
        uint32_t count = selection.count - first;
        if (count > APPEND_ROWS) count = APPEND_ROWS;
        for (uint32_t i = 0; i < count; i++) {
            rows[i] = selection_row(selection, first + i);
        }
        builder_append(&writer->builder, batch, (struct selection){rows, count});
        if (writer->builder.failed) return error_memory(err);
        if (held_bytes(&writer->builder) >= writer->rows->place->piece_bytes) {
            TRY(spill_writer_flush(writer, err));
        }
    }
    return STATUS_OK;
}

void spill_writer_done(struct spill_writer *writer)
{
    builder_done(&writer->builder);
    buf_done(&writer->bytes);
}

/* ---- reading ---- */

void spill_cursor_open(struct spill_cursor *cursor, const struct spill_rows *rows)
{
    *cursor = (struct spill_cursor){.rows = rows, .bytes = {.budget = rows->place->budget}};
    arena_init(&cursor->arena, rows->place->budget);
}

status spill_cursor_next(struct spill_cursor *cursor, struct error *err)
{
    const struct spill_rows *rows = cursor->rows;
    cursor->batch = (struct batch){0};
    if (cursor->next_extent == rows->extents.count) return STATUS_OK;
    struct spill_extent extent = rows->extents.items[cursor->next_extent++];
    arena_reset(&cursor->arena);
    TRY(spill_read(rows->place->file, extent, &cursor->bytes, err));
    TRY(batch_decode(cursor->bytes.bytes, cursor->bytes.size, rows->schema, &cursor->arena,
                     &cursor->batch, err));
    ASSERT(cursor->batch.row_count == extent.row_count);
    ASSERT(extent.row_count > 0);
    return STATUS_OK;
}

void spill_cursor_done(struct spill_cursor *cursor)
{
    buf_done(&cursor->bytes);
    arena_done(&cursor->arena);
}
