/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_parse.h - one column of fields to values: the loops that see every byte that counts.
 *
 * A column is read for many rows at once, so that its type and the chunk's habits are looked at
 * once per batch. Rows that do not parse are listed and left to the caller: there are hardly any.
 *
 * Memory: texts are borrowed from the chunk's bytes, or live in the arena if they had to be
 * unquoted. Threads: one owner.
 */
#ifndef ENGINE_EXEC_SCAN_CHUNK_PARSE_H
#define ENGINE_EXEC_SCAN_CHUNK_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/text.h"
#include "engine/data/column.h"
#include "engine/data/csv_field.h"

/* The fields of one column in some consecutive rows of an index. */
struct chunk_fields {
    const char *bytes;
    const uint32_t *positions; /* Field i is between those at i * stride and i * stride + 1. */
    uint32_t stride;
    uint32_t count;
    bool ends_record; /* The last column of its records: a CR may belong to the line end. */
    bool has_quotes;  /* Some field of the chunk has. */
    struct arena *arena;
    bool *memory_failed; /* Set, and never cleared, when the arena is full. */
};

/* As written, quotes included. */
static inline struct text chunk_field_raw(const struct chunk_fields *fields, uint32_t row)
{
    const uint32_t *position = fields->positions + (size_t)row * fields->stride;
    uint32_t start = position[0] + 1;
    uint32_t end = position[1];
    if (fields->ends_record && end > start && fields->bytes[end - 1] == '\r') end--;
    return (struct text){fields->bytes + start, end - start};
}

/* Whether the value of a raw field is the empty text. Two bytes that begin with a quote can only be
 * the quotes around nothing. */
static inline bool chunk_field_is_empty(struct text raw)
{
    return raw.size == 0 || (raw.size == 2 && raw.bytes[0] == '"');
}

/* Reads all fields into the column's array; not for TEXT. Writes the rows that are not of its type,
 * ascending, to `failed`, which has room for all, and returns how many; their values are 0. */
uint32_t chunk_parse_values(const struct chunk_fields *fields, struct column *column,
                            uint32_t *failed);

/* The same for a TEXT column, of which only emptiness is wanted. */
uint32_t chunk_parse_empty(const struct chunk_fields *fields, uint32_t *failed);

/* Reads one field into a TEXT column. */
static inline void chunk_parse_text(const struct chunk_fields *fields, struct column *column,
                                    uint32_t row)
{
    struct text raw = chunk_field_raw(fields, row);
    column->texts[row] =
        fields->has_quotes ? csv_field_unquote(raw, fields->arena, fields->memory_failed) : raw;
}

#endif
