/* SPDX-License-Identifier: Apache-2.0 */
/* csv_field.h - the values of an indexed chunk, and the names in a header.
 *
 * A value is a slice of the chunk wherever the bytes are already those of the value; only a quoted
 * field with quotes in it is copied.
 *
 * Memory: values are borrowed from the chunk's bytes or live in the given arena. Failure: `failed`
 * is set, and never cleared, when the arena is full.
 */
#ifndef ENGINE_DATA_CSV_FIELD_H
#define ENGINE_DATA_CSV_FIELD_H

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/data/csv_scan.h"

/* As written, quotes included, without the line end. `bytes` are those the index was built of. */
static inline struct text csv_field_raw(const struct csv_index *index, const char *bytes,
                                        uint32_t row, uint32_t column)
{
    const uint32_t *position = index->positions + (size_t)row * index->stride + column;
    uint32_t start = position[0] + 1;
    uint32_t end = position[1];
    /* A record's end is outside quotes, and so is the CR before it. */
    if (column + 1 == index->column_count && end > start && bytes[end - 1] == '\r') end--;
    return (struct text){bytes + start, end - start};
}

/* Of a raw field that begins with a quote. */
struct text csv_field_unquote_slow(struct text raw, struct arena *arena, bool *failed);

static inline struct text csv_field_unquote(struct text raw, struct arena *arena, bool *failed)
{
    if (raw.size == 0 || raw.bytes[0] != '"') return raw;
    return csv_field_unquote_slow(raw, arena, failed);
}

static inline struct text csv_field_value(const struct csv_index *index, const char *bytes,
                                          uint32_t row, uint32_t column, struct arena *arena,
                                          bool *failed)
{
    struct text raw = csv_field_raw(index, bytes, row, column);
    return index->has_quotes ? csv_field_unquote(raw, arena, failed) : raw;
}

/* Reads the first record, which ends at its LF or with the input; a UTF-8 byte order mark before it
 * is skipped. The names live in the arena or are borrowed from the bytes. */
MUST_USE status csv_header_parse(const char *bytes, size_t size, struct arena *arena,
                                 struct text **out_names, uint32_t *out_count,
                                 size_t *out_body_offset, struct error *err);

#endif
