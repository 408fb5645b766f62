/* SPDX-License-Identifier: Apache-2.0 */
/* batch_codec.c - the layout of a batch.
 *
 *     u32 magic, u32 column count, u64 row count, then each column:
 *     u8 kind, u8 scale, u8 has nulls, u8 zero, u32 zero
 *     [nulls: a byte per row, 0 or 1]
 *     BOOL: a byte per row            INT, DECIMAL, DOUBLE, DATE, TIMESTAMP: 8 bytes per row
 *     TEXT: u32 end offset per row, u64 size, bytes
 *     list: u32 end element per row, u64 element count, then the elements as a column without nulls
 *
 * Little-endian; every part is padded with zeros to 8 bytes, so that numbers are used in place.
 *
 * Nothing can be written in two ways: there are nulls only if some row is NULL, and a NULL's value
 * is zero or empty. A DECIMAL's precision is not written: columns of one scale hold the same.
 */
#include "engine/data/batch_codec.h"

#include "engine/base/assert.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "arrays are copied as they are");

static const uint32_t MAGIC = 0x3142524d; /* "MRB1" */

static void put_padded(struct buf *out, const void *bytes, size_t size)
{
    static const unsigned char zeros[8] = {0};
    buf_put(out, bytes, size);
    buf_put(out, zeros, (8 - size % 8) % 8);
}

static void put_sized(struct buf *out, const struct buf *bytes)
{
    buf_put_u64(out, bytes->size);
    put_padded(out, bytes->bytes, bytes->size);
}

static void encode_column(const struct builder_column *column, struct type type, struct buf *out)
{
    buf_put_u8(out, type.kind);
    buf_put_u8(out, type.kind == TYPE_DECIMAL ? type.scale : 0);
    buf_put_u8(out, column->nulls.size > 0);
    buf_put_u8(out, 0);
    buf_put_u32(out, 0);
    put_padded(out, column->nulls.bytes, column->nulls.size);
    put_padded(out, column->values.bytes, column->values.size);
    if (type.kind == TYPE_TEXT) {
        put_sized(out, &column->bytes);
    } else if (type.kind == TYPE_LIST_TEXT) {
        buf_put_u64(out, column->elements.size / sizeof(uint32_t));
        put_padded(out, column->elements.bytes, column->elements.size);
        put_sized(out, &column->bytes);
    } else if (type.kind == TYPE_LIST_INT) {
        buf_put_u64(out, column->elements.size / sizeof(int64_t));
        put_padded(out, column->elements.bytes, column->elements.size);
    }
}

/* At least what encode_column puts. */
static size_t column_room(const struct builder_column *column)
{
    enum { HEADS_AND_PADDING = 8 + 2 * 8 + 4 * 8 };
    return HEADS_AND_PADDING + column->nulls.size + column->values.size + column->bytes.size +
           column->elements.size;
}

void batch_encode(const struct batch_builder *rows, struct buf *out)
{
    ASSERT(!rows->failed);
    /* Batches are kept as they are, by the thousand: no more room than they need. */
    size_t room = 16;
    for (uint32_t i = 0; i < rows->schema.count; i++) {
        room += column_room(&rows->columns[i]);
    }
    if (!buf_reserve(out, room)) return;
    buf_put_u32(out, MAGIC);
    buf_put_u32(out, rows->schema.count);
    buf_put_u64(out, rows->row_count);
    for (uint32_t i = 0; i < rows->schema.count; i++) {
        encode_column(&rows->columns[i], rows->schema.fields[i].type, out);
    }
}

static status corrupt(struct error *err, const char *what)
{
    return error_set(err, STATUS_CORRUPT, "a batch is damaged: %s", what);
}

/* The next `size` bytes and their padding. */
static const void *get_padded(struct buf_reader *reader, uint64_t size)
{
    if (size > buf_left(reader)) {
        reader->failed = true;
        return NULL;
    }
    const void *bytes = buf_get(reader, size);
    const unsigned char *padding = buf_get(reader, (8 - size % 8) % 8);
    for (size_t i = 0; padding != NULL && i < (8 - size % 8) % 8; i++) {
        if (padding[i] != 0) reader->failed = true;
    }
    return bytes;
}

static bool ends_ascend(const uint32_t *ends, uint64_t count, uint64_t limit)
{
    uint32_t previous = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (ends[i] < previous) return false;
        previous = ends[i];
    }
    return previous == limit;
}

static status decode_texts(struct buf_reader *reader, const uint32_t *ends, uint64_t count,
                           struct arena *arena, struct text **out_texts, struct error *err)
{
    uint64_t size = buf_get_u64(reader);
    const char *bytes = get_padded(reader, size);
    if (reader->failed || !ends_ascend(ends, count, size)) return corrupt(err, "texts");
    struct text *texts = arena_alloc(arena, (count + 1) * sizeof *texts, alignof(struct text));
    if (texts == NULL) return error_memory(err);
    uint32_t start = 0;
    for (uint64_t i = 0; i < count; i++) {
        texts[i] = (struct text){bytes + start, ends[i] - start};
        start = ends[i];
    }
    *out_texts = texts;
    return STATUS_OK;
}

static status decode_lists(struct buf_reader *reader, const uint32_t *ends, uint32_t row_count,
                           struct arena *arena, struct column *column, struct error *err)
{
    uint64_t count = buf_get_u64(reader);
    size_t width = column->type.kind == TYPE_LIST_TEXT ? sizeof(uint32_t) : sizeof(int64_t);
    if (reader->failed || count > buf_left(reader) / width ||
        !ends_ascend(ends, row_count, count)) {
        return corrupt(err, "lists");
    }
    const void *elements = get_padded(reader, count * width);
    if (reader->failed) return corrupt(err, "lists");
    column->lists = arena_array(arena, struct list, (size_t)row_count + 1);
    column->child = arena_new(arena, struct column);
    if (column->lists == NULL || column->child == NULL) {
        return error_memory(err);
    }
    uint32_t start = 0;
    for (uint32_t i = 0; i < row_count; i++) {
        column->lists[i] = (struct list){start, ends[i] - start};
        start = ends[i];
    }
    column->child->type = type_element(column->type);
    if (column->type.kind == TYPE_LIST_INT) {
        column->child->ints = (int64_t *)(uintptr_t)elements;
        return STATUS_OK;
    }
    return decode_texts(reader, elements, count, arena, &column->child->texts, err);
}

static bool only_zeros_and_ones(const uint8_t *bytes, uint32_t count)
{
    uint8_t seen = 0;
    for (uint32_t i = 0; i < count; i++) {
        seen |= bytes[i];
    }
    return seen <= 1;
}

/* Whether some row is NULL, and all that are have no value. */
static bool nulls_are_empty(const uint8_t *nulls, const void *values, size_t width, uint32_t count)
{
    uint64_t any_null = 0;
    uint64_t any_value = 0;
    uint32_t previous = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t value;
        if (width == sizeof(uint32_t)) {
            uint32_t end = ((const uint32_t *)values)[i];
            value = end - previous;
            previous = end;
        } else {
            value = width == 1 ? ((const uint8_t *)values)[i] : ((const uint64_t *)values)[i];
        }
        any_null |= nulls[i];
        any_value |= nulls[i] != 0 ? value : 0;
    }
    return any_null != 0 && any_value == 0;
}

static status decode_column(struct buf_reader *reader, uint32_t row_count, struct type wanted,
                            struct arena *arena, struct column *column, struct error *err)
{
    uint8_t kind = buf_get_u8(reader);
    uint8_t scale = buf_get_u8(reader);
    uint8_t has_nulls = buf_get_u8(reader);
    uint8_t zero = buf_get_u8(reader);
    if (buf_get_u32(reader) != 0 || reader->failed || zero != 0 || has_nulls > 1 ||
        kind != wanted.kind || scale != (kind == TYPE_DECIMAL ? wanted.scale : 0)) {
        return corrupt(err, "a column is not of the type that was expected");
    }
    bool is_text = wanted.kind == TYPE_TEXT;
    bool is_list = type_is_list(wanted);
    size_t width = is_text || is_list ? sizeof(uint32_t) : type_width(wanted);
    const uint8_t *nulls = has_nulls ? get_padded(reader, row_count) : NULL;
    const void *values = get_padded(reader, (uint64_t)row_count * width);
    if (reader->failed) return corrupt(err, "it is too short");
    if (has_nulls && (!only_zeros_and_ones(nulls, row_count) ||
                      !nulls_are_empty(nulls, values, width, row_count))) {
        return corrupt(err, "NULLs");
    }
    if (width == 1 && !only_zeros_and_ones(values, row_count)) return corrupt(err, "truth values");
    /* Borrowed bytes: columns are only read. */
    *column = (struct column){.type = wanted, .nulls = (uint8_t *)(uintptr_t)nulls};
    if (is_text) return decode_texts(reader, values, row_count, arena, &column->texts, err);
    if (is_list) return decode_lists(reader, values, row_count, arena, column, err);
    column->data = (void *)(uintptr_t)values;
    return STATUS_OK;
}

status batch_decode(const unsigned char *bytes, size_t size, struct schema schema,
                    struct arena *arena, struct batch *out_batch, struct error *err)
{
    ASSERT((uintptr_t)bytes % 8 == 0);
    struct buf_reader reader = {.bytes = bytes, .size = size};
    uint32_t magic = buf_get_u32(&reader);
    uint32_t column_count = buf_get_u32(&reader);
    uint64_t row_count = buf_get_u64(&reader);
    if (reader.failed || magic != MAGIC || column_count != schema.count) {
        return corrupt(err, "it does not begin like one");
    }
    /* Without columns any number of rows is possible; with them, each row takes a byte or more. */
    if (row_count >= UINT32_MAX || (column_count > 0 && row_count > size)) {
        return corrupt(err, "too many rows");
    }
    struct column *columns = arena_array(arena, struct column, (size_t)column_count + 1);
    if (columns == NULL) return error_memory(err);
    for (uint32_t i = 0; i < column_count; i++) {
        TRY(decode_column(&reader, (uint32_t)row_count, schema.fields[i].type, arena, &columns[i],
                          err));
    }
    if (buf_left(&reader) != 0) return corrupt(err, "something follows it");
    *out_batch = (struct batch){
        .row_count = (uint32_t)row_count, .column_count = column_count, .columns = columns};
    return STATUS_OK;
}
