/* SPDX-License-Identifier: Apache-2.0 */
/* csv_check.h - holds an index that a kernel built against the model; for unit tests and fuzzer.
 *
 * A difference is an ASSERT, which stops tests and fuzzers alike and names the line.
 */
#ifndef UNIT_DATA_CSV_CHECK_H
#define UNIT_DATA_CSV_CHECK_H

#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/assert.h"
#include "engine/data/csv_field.h"
#include "engine/data/csv_kernel.h"
#include "engine/data/csv_scan.h"
#include "engine/data/csv_split.h"
#include "unit/engine/data/csv_model.h"
#include "unit/engine/data/csv_whole.h"

/* What the model says of one record. */
struct check_record {
    uint32_t field_count;
    size_t end;
};

static inline struct check_record check_read_record(struct csv_input input, size_t start,
                                                    char *scratch)
{
    struct check_record record = {0};
    struct model_field field;
    do {
        size_t value_size;
        field = model_read_field(input.bytes, input.size, start, scratch, &value_size);
        record.field_count++;
        start = field.next;
    } while (!field.ends_record);
    record.end = start;
    return record;
}

/* The row's fields are the record's at `start`. */
static inline void check_row(const struct csv_index *index, struct csv_input input, uint32_t row,
                             size_t start, char *scratch)
{
    struct arena arena = {0};
    bool failed = false;
    ASSERT(csv_index_row_offset(index, row) == start);
    for (uint32_t column = 0; column < input.column_count; column++) {
        size_t value_size;
        struct model_field field =
            model_read_field(input.bytes, input.size, start, scratch, &value_size);
        struct text raw = csv_field_raw(index, input.bytes, row, column);
        ASSERT(raw.bytes == input.bytes + field.start);
        ASSERT(raw.size == field.end - field.start);
        struct text value = csv_field_value(index, input.bytes, row, column, &arena, &failed);
        ASSERT(!failed);
        ASSERT(value.size == value_size);
        ASSERT(value_size == 0 || memcmp(value.bytes, scratch, value_size) == 0);
        start = field.next;
    }
    arena_done(&arena);
}

/* Where the field whose quotes are never closed begins, or SIZE_MAX when there is none. */
static inline size_t check_find_unclosed(struct csv_input input, char *scratch)
{
    for (size_t start = 0; start < input.size;) {
        size_t value_size;
        struct model_field field =
            model_read_field(input.bytes, input.size, start, scratch, &value_size);
        if (field.unclosed) return start;
        start = field.next;
    }
    return SIZE_MAX;
}

static inline void check_totals(const struct csv_index *index, struct csv_input input)
{
    uint64_t line_count = 0;
    bool has_quotes = false;
    for (size_t i = 0; i < input.size; i++) {
        line_count += input.bytes[i] == '\n';
        has_quotes |= input.bytes[i] == '"';
    }
    ASSERT(index->line_count == line_count);
    ASSERT(index->has_quotes == has_quotes);
    ASSERT(index->column_count == input.column_count);
    ASSERT(index->stride == input.column_count + (index->left_out_count > 0 ? 1 : 0));
}

/* `scratch` has input.size bytes. */
static inline void check_index(const struct csv_index *index, status result, struct csv_input input,
                               char *scratch)
{
    size_t unclosed = check_find_unclosed(input, scratch);
    if (unclosed != SIZE_MAX) {
        ASSERT(result == STATUS_INPUT);
        ASSERT(index->row_count == 0);
        ASSERT(index->unclosed_offset == unclosed);
        return;
    }
    ASSERT(result == STATUS_OK);
    uint32_t row = 0;
    uint64_t record_count = 0;
    uint64_t left_out_count = 0;
    for (size_t start = 0; start < input.size;) {
        struct check_record record = check_read_record(input, start, scratch);
        record_count++;
        if (record.field_count == input.column_count) {
            ASSERT(row < index->row_count);
            check_row(index, input, row++, start, scratch);
        } else if (left_out_count++ == 0) {
            ASSERT(index->left_out_offset == start);
        }
        start = record.end;
    }
    ASSERT(index->row_count == row);
    ASSERT(index->record_count == record_count);
    ASSERT(index->left_out_count == left_out_count);
    check_totals(index, input);
}

/* Builds the index in two steps, of which the first ends at `cut`, and checks it. */
static inline void check_steps(struct csv_index *index, struct csv_input input, size_t cut,
                               char *scratch)
{
    static struct error err;
    enum csv_state state;
    struct csv_input beginning = {input.bytes, cut, input.column_count};
    csv_index_begin(index, input.column_count);
    ASSERT(csv_index_advance(index, beginning, &state, &err) == STATUS_OK);
    ASSERT(state == csv_advance(CSV_RECORD_START, input.bytes, cut));
    status result = csv_index_finish(index, input, &err);
    check_index(index, result, input, scratch);
}

/* Builds the index with every kernel and checks each. The index is reused. */
static inline void check_all_kernels(struct csv_index *index, struct csv_input input, char *scratch)
{
    static struct error err;
    size_t kernel_count;
    const struct csv_kernel *const *kernels = csv_kernel_list(&kernel_count);
    for (size_t i = 0; i < kernel_count; i++) {
        csv_kernel_use(kernels[i]);
        status result = csv_index_build(index, input, &err);
        check_index(index, result, input, scratch);
        check_steps(index, input, input.size / 2, scratch);
    }
    csv_kernel_use(NULL);
}

#endif
