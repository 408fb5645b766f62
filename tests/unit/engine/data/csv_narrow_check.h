/* SPDX-License-Identifier: Apache-2.0 */
/* csv_narrow_check.h - holds narrow records against those they were made of; for unit test and
 * fuzzer.
 *
 * Both are indexed, and everything that a reader could see of the columns that are kept must be the
 * same. Whether it can be at all is found out field by field.
 */
#ifndef UNIT_DATA_CSV_NARROW_CHECK_H
#define UNIT_DATA_CSV_NARROW_CHECK_H

#include <string.h>

#include "engine/base/assert.h"
#include "engine/data/csv_field.h"
#include "engine/data/csv_narrow.h"
#include "unit/engine/data/csv_whole.h"

enum { CHECK_COLUMNS_MAX = 16 };

struct check_kept {
    uint32_t list[CHECK_COLUMNS_MAX];
    uint32_t count;
};

/* Those whose bits are set; the last one first, since the order must not matter. */
static inline struct check_kept check_kept_of(uint32_t bits, uint32_t column_count)
{
    struct check_kept kept = {.count = 0};
    for (uint32_t column = column_count; column-- > 0;) {
        if ((bits >> column & 1) != 0) kept.list[kept.count++] = column;
    }
    return kept;
}

/* Whether the records can be narrow, and how many bytes they have then. */
static inline bool check_can_be_narrow(const struct csv_index *index, struct csv_input input,
                                       uint32_t bits, struct check_kept kept, size_t *out_size)
{
    uint64_t growth = index->left_out_count * kept.count;
    size_t lost = 0;
    if (kept.count == 0 || input.bytes[input.size - 1] != '\n' || growth >= input.size)
        return false;
    for (uint32_t row = 0; row < index->row_count; row++) {
        const uint32_t *positions = index->positions + (size_t)row * index->stride;
        for (uint32_t column = 0; column < input.column_count; column++) {
            uint32_t start = positions[column] + 1;
            struct text field = {input.bytes + start, positions[column + 1] - start};
            bool is_kept = (bits >> column & 1) != 0;
            if (!is_kept && memchr(field.bytes, '\n', field.size) != NULL) return false;
            bool is_last = column == kept.list[0] && column + 1 < input.column_count;
            if (is_last && field.size > 0 && field.bytes[field.size - 1] == '\r') return false;
            if (!is_kept) lost += field.size + 1;
        }
    }
    *out_size = input.size + (size_t)growth - lost;
    return *out_size < input.size;
}

static inline void check_same_line(struct csv_input before, uint32_t offset_before,
                                   struct csv_input after, uint32_t offset_after)
{
    ASSERT(csv_count_lines(before.bytes, offset_before) ==
           csv_count_lines(after.bytes, offset_after));
}

static inline void check_same_rows(const struct csv_index *before, struct csv_input input_before,
                                   const struct csv_index *after, struct csv_input input_after,
                                   const uint32_t *columns_before, const uint32_t *columns_after)
{
    struct arena arena = {0};
    bool failed = false;
    ASSERT(before->row_count == after->row_count);
    for (uint32_t row = 0; row < before->row_count; row++) {
        check_same_line(input_before, csv_index_row_offset(before, row), input_after,
                        csv_index_row_offset(after, row));
        for (uint32_t i = 0; i < input_after.column_count; i++) {
            struct text was = csv_field_value(before, input_before.bytes, row, columns_before[i],
                                              &arena, &failed);
            struct text is =
                csv_field_value(after, input_after.bytes, row, columns_after[i], &arena, &failed);
            ASSERT(!failed);
            ASSERT(text_equal(was, is));
        }
    }
    arena_done(&arena);
}

/* Keeps the columns of these bits. Returns whether that was possible. The indexes are reused. */
static inline bool check_narrow(struct csv_index *before, struct csv_index *after,
                                struct csv_input input, uint32_t bits)
{
    static struct error err;
    struct arena arena = {0};
    struct buf out = {0};
    struct csv_narrow narrow;
    if (csv_index_build(before, input, &err) != STATUS_OK || input.size == 0) return false;
    struct check_kept kept = check_kept_of(bits, input.column_count);
    struct check_kept places = kept;
    ASSERT(csv_narrow_init(&narrow, input.column_count, places.list, places.count, &arena, &err) ==
           STATUS_OK);
    ASSERT(narrow.kept_count == kept.count);
    size_t size = 0;
    bool expected = check_can_be_narrow(before, input, bits, kept, &size);
    bool is_narrow = csv_narrow_append(&narrow, before, input, &out);
    ASSERT(!out.failed);
    ASSERT(is_narrow == expected);
    if (is_narrow) {
        ASSERT(out.size == size);
        struct csv_input shorter = {(const char *)out.bytes, out.size, kept.count};
        ASSERT(csv_index_build(after, shorter, &err) == STATUS_OK);
        ASSERT(after->record_count == before->record_count);
        ASSERT(after->line_count == before->line_count);
        ASSERT(after->left_out_count == before->left_out_count);
        if (before->left_out_count > 0) {
            check_same_line(input, before->left_out_offset, shorter, after->left_out_offset);
        }
        check_same_rows(before, input, after, shorter, kept.list, places.list);
    }
    buf_done(&out);
    arena_done(&arena);
    return is_narrow;
}

#endif
