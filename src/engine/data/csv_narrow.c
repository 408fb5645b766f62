/* SPDX-License-Identifier: Apache-2.0 */
/* csv_narrow.c - copies spans of fields, and puts what is between rows behind commas. */
#include "engine/data/csv_narrow.h"

#include <string.h>

#include "engine/base/assert.h"

enum {
    /* Most spans are short: so many bytes are copied without asking how many there are. */
    SHORT_BYTES = 16,
};

status csv_narrow_init(struct csv_narrow *narrow, uint32_t column_count, uint32_t *list,
                       uint32_t list_count, struct arena *arena, struct error *err)
{
    uint32_t *places = arena_array(arena, uint32_t, column_count + (size_t)1);
    struct csv_span *spans = arena_array(arena, struct csv_span, list_count + (size_t)1);
    if (places == NULL || spans == NULL) return error_memory(err);
    for (uint32_t i = 0; i < list_count; i++) {
        ASSERT(list[i] < column_count);
        places[list[i]] = 1;
    }
    *narrow = (struct csv_narrow){.column_count = column_count, .spans = spans};
    bool is_span = false;
    for (uint32_t column = 0; column < column_count; column++) {
        bool is_kept = places[column] != 0;
        if (is_kept && !is_span) spans[narrow->span_count++].first = column;
        if (is_kept) spans[narrow->span_count - 1].last = column;
        is_span = is_kept;
        places[column] = narrow->kept_count;
        narrow->kept_count += is_kept;
    }
    for (uint32_t i = 0; i < list_count; i++) {
        list[i] = places[list[i]];
    }
    return STATUS_OK;
}

/* ---- rows ---- */

/* Has room for SHORT_BYTES more than the span. */
ALWAYS_INLINE unsigned char *put_span(unsigned char *out, struct csv_input input, uint32_t start,
                                      uint32_t end)
{
    size_t size = end - start;
    if (LIKELY(size <= SHORT_BYTES && input.size - start >= SHORT_BYTES)) {
        memcpy(out, input.bytes + start, SHORT_BYTES);
    } else {
        memcpy(out, input.bytes + start, size);
    }
    return out + size;
}

ALWAYS_INLINE unsigned char *put_row(unsigned char *out, const struct csv_span *spans,
                                     uint32_t span_count, const uint32_t *positions,
                                     struct csv_input input)
{
    for (uint32_t i = 0; i < span_count; i++) {
        out = put_span(out, input, positions[spans[i].first] + 1, positions[spans[i].last + 1]);
        *out++ = ',';
    }
    out[-1] = '\n';
    return out;
}

/* Records of which none is left out. */
static unsigned char *put_table(unsigned char *out, const struct csv_narrow *narrow,
                                const struct csv_index *index, struct csv_input input)
{
    const uint32_t *positions = index->positions;
    const uint32_t *end = positions + (size_t)index->row_count * index->stride;
    if (narrow->span_count == 1) {
        const struct csv_span only = narrow->spans[0];
        for (; positions < end; positions += index->stride) {
            out = put_row(out, &only, 1, positions, input);
        }
    } else {
        for (; positions < end; positions += index->stride) {
            out = put_row(out, narrow->spans, narrow->span_count, positions, input);
        }
    }
    return out;
}

/* ---- records with another number of fields ---- */

static unsigned char *put_left_out(unsigned char *out, const struct csv_narrow *narrow,
                                   const char *bytes, size_t size)
{
    while (size > 0) {
        enum csv_state state = CSV_RECORD_START;
        size_t record = csv_record_end(&state, bytes, size);
        memset(out, ',', narrow->kept_count);
        memcpy(out + narrow->kept_count, bytes, record);
        out += narrow->kept_count + record;
        bytes += record;
        size -= record;
    }
    return out;
}

/* What is between two rows is what was left out of the index. */
static unsigned char *put_mixed(unsigned char *out, const struct csv_narrow *narrow,
                                const struct csv_index *index, struct csv_input input)
{
    uint32_t done = 0;
    for (uint32_t row = 0; row < index->row_count; row++) {
        const uint32_t *positions = index->positions + (size_t)row * index->stride;
        uint32_t start = positions[0] + 1;
        out = put_left_out(out, narrow, input.bytes + done, start - done);
        out = put_row(out, narrow->spans, narrow->span_count, positions, input);
        done = positions[narrow->column_count] + 1;
    }
    return put_left_out(out, narrow, input.bytes + done, input.size - done);
}

/* ---- what would show ---- */

/* Before the LF a CR is no part of the field: the last one that is kept must not end with one. */
static bool ends_with_cr(const struct csv_narrow *narrow, const struct csv_index *index,
                         struct csv_input input)
{
    uint32_t last = narrow->spans[narrow->span_count - 1].last;
    for (uint32_t row = 0; row < index->row_count; row++) {
        const uint32_t *positions = index->positions + (size_t)row * index->stride;
        uint32_t end = positions[last + 1];
        if (end > positions[last] + 1 && input.bytes[end - 1] == '\r') return true;
    }
    return false;
}

static bool is_the_same(const struct csv_narrow *narrow, const struct csv_index *index,
                        struct csv_input input, const unsigned char *out, size_t size)
{
    /* Only quotes keep a line end within a field. */
    if (index->has_quotes && csv_count_lines((const char *)out, size) != index->line_count) {
        return false;
    }
    bool is_last_kept = narrow->spans[narrow->span_count - 1].last + 1 == narrow->column_count;
    if (is_last_kept || memchr(out, '\r', size) == NULL) return true;
    return !ends_with_cr(narrow, index, input);
}

bool csv_narrow_append(const struct csv_narrow *narrow, const struct csv_index *index,
                       struct csv_input input, struct buf *out)
{
    ASSERT(index->column_count == narrow->column_count);
    ASSERT(input.column_count == narrow->column_count);
    if (input.size == 0) return true;
    if (narrow->span_count == 0 || input.bytes[input.size - 1] != '\n') return false;
    /* Each of these may grow by so much. */
    uint64_t growth = index->left_out_count * narrow->kept_count;
    if (growth >= input.size) return false;
    if (!buf_reserve(out, input.size + (size_t)growth + SHORT_BYTES)) return false;

    unsigned char *start = out->bytes + out->size;
    unsigned char *end = index->left_out_count == 0 ? put_table(start, narrow, index, input)
                                                    : put_mixed(start, narrow, index, input);
    size_t size = (size_t)(end - start);
    if (size >= input.size || !is_the_same(narrow, index, input, start, size)) return false;
    out->size += size;
    return true;
}
