/* SPDX-License-Identifier: Apache-2.0 */
/* csv_scan.c - builds the index of a chunk, and repairs it when records differ in length.
 *
 * The kernel writes all separators one after the other, commas and line ends alike, without looking
 * at rows. Whether they make a table is then a question of three numbers and one byte per row:
 * there are as many record ends as rows, and each row's last separator is one of them, so no other
 * can be. The bytes are looked at run by run, while they are in the nearest cache. Only a chunk
 * that fails this is looked at separator by separator.
 */
#include "engine/data/csv_scan.h"

#include "engine/base/assert.h"

enum {
    /* What is scanned between two looks at the capacity. */
    RUN_BYTES = 256 * CSV_BLOCK_BYTES,
};

/* Room for at least `wanted` entries; what was there is kept. */
static bool positions_reserve(struct budget *budget, uint32_t **positions, size_t *capacity,
                              size_t wanted)
{
    if (wanted <= *capacity) return true;
    size_t grown = wanted + wanted / 2;
    uint32_t *resized = memory_resize(budget, *positions, *capacity * sizeof **positions,
                                      grown * sizeof **positions);
    if (resized == NULL) return false;
    *positions = resized;
    *capacity = grown;
    return true;
}

/* Looks at those that are there by now. */
static void row_ends_check(struct csv_row_ends *ends, const struct csv_scan *scan,
                           struct csv_input input)
{
    const uint32_t *positions = scan->positions;
    const size_t count = scan->count;
    const char *bytes = input.bytes;
    unsigned differs = 0;
    size_t next = ends->next;
    for (; next < count; next += input.column_count) {
        differs |= (unsigned char)bytes[positions[next]] ^ (unsigned)'\n';
    }
    ends->next = next;
    ends->differs |= differs;
}

/* Scans on up to `size` bytes; all but the last time, a multiple of the block size. */
static status scan_up_to(struct csv_index *index, struct csv_input input, size_t size,
                         struct error *err)
{
    const struct csv_kernel *kernel = csv_kernel_get();
    struct csv_scan *scan = &index->scan;
    while (index->scanned < size || scan->count == 0) {
        size_t left = size - index->scanned;
        struct csv_range range = {index->scanned, left < RUN_BYTES ? left : RUN_BYTES};
        /* One entry for the one before the first, one for the end of a record without LF. */
        size_t wanted = scan->count + range.size + CSV_SCAN_SLACK + 2;
        if (!positions_reserve(index->budget, &index->flat, &index->flat_capacity, wanted)) {
            return error_set(err, STATUS_MEMORY,
                             "csv: no memory for the positions of %zu separators", wanted);
        }
        scan->positions = index->flat;
        if (scan->count == 0) scan->positions[scan->count++] = UINT32_MAX;
        kernel->index(scan, input.bytes, range);
        row_ends_check(&index->row_ends, scan, input);
        index->scanned += range.size;
    }
    return STATUS_OK;
}

static status scan_all(struct csv_index *index, struct csv_input input, struct error *err)
{
    TRY(scan_up_to(index, input, input.size, err));
    struct csv_scan *scan = &index->scan;
    if (scan->cursor.inside != 0) {
        index->unclosed_offset = scan->positions[scan->count - 1] + 1;
        return error_set(err, STATUS_INPUT,
                         "csv: unclosed quote in the field that begins at byte %u of the chunk",
                         index->unclosed_offset);
    }
    /* The last record may end with the file. */
    uint32_t last_end = scan->positions[scan->count - 1];
    if (input.size > 0 && (last_end != input.size - 1 || input.bytes[last_end] != '\n')) {
        scan->positions[scan->count++] = (uint32_t)input.size;
        scan->record_count++;
    }
    return STATUS_OK;
}

static bool is_record_end(struct csv_input input, uint32_t position)
{
    return position == input.size || input.bytes[position] == '\n';
}

/* Whether every record has column_count fields. The last separator ends a record whatever it is. */
static bool scan_is_table(const struct csv_scan *scan, const struct csv_row_ends *ends,
                          struct csv_input input)
{
    size_t separator_count = scan->count - 1;
    return separator_count % input.column_count == 0 &&
           separator_count / input.column_count == scan->record_count && ends->differs == 0;
}

/* Copies the positions of a record if it has column_count fields. There must be so many, and more
 * behind it. */
static bool copy_record(uint32_t *out, const uint32_t *positions, struct csv_input input)
{
    bool has_line = false;
    out[0] = positions[0];
    for (uint32_t i = 1; i < input.column_count; i++) {
        has_line |= input.bytes[positions[i]] == '\n';
        out[i] = positions[i];
    }
    out[input.column_count] = positions[input.column_count];
    return !has_line && input.bytes[positions[input.column_count]] == '\n';
}

/* Copies the rows with column_count fields, and counts the others. */
static status index_repair(struct csv_index *index, const struct csv_scan *scan,
                           struct csv_input input, struct error *err)
{
    size_t field_count = scan->count - 1;
    size_t wanted = field_count + field_count / input.column_count + 1;
    if (!positions_reserve(index->budget, &index->repaired, &index->repaired_capacity, wanted)) {
        return error_set(err, STATUS_MEMORY, "csv: no memory for the positions of %zu separators",
                         wanted);
    }

    uint32_t *out = index->repaired;
    const uint32_t *start = scan->positions;
    const uint32_t *last = scan->positions + field_count;
    while (start < last) {
        /* Nearly all records are good, and those are quick. */
        if ((size_t)(last - start) > input.column_count && copy_record(out, start, input)) {
            start += input.column_count;
            out += input.column_count + 1;
            index->row_count++;
            continue;
        }
        const uint32_t *end = start + 1;
        while (!is_record_end(input, *end)) {
            end++;
        }
        if ((size_t)(end - start) == input.column_count) {
            for (const uint32_t *from = start; from <= end; from++) {
                *out++ = *from;
            }
            index->row_count++;
        } else if (index->left_out_count++ == 0) {
            index->left_out_offset = *start + 1;
        }
        start = end;
    }
    index->positions = index->repaired;
    index->stride = input.column_count + 1;
    return STATUS_OK;
}

void csv_index_begin(struct csv_index *index, uint32_t column_count)
{
    ASSERT(column_count > 0);
    ASSERT(column_count < UINT32_MAX);
    *index = (struct csv_index){
        .budget = index->budget,
        .flat = index->flat,
        .flat_capacity = index->flat_capacity,
        .repaired = index->repaired,
        .repaired_capacity = index->repaired_capacity,
        .column_count = column_count,
        .stride = column_count,
        .scan = {.cursor = {.may_quote = 1}},
        .row_ends = {.next = column_count},
    };
}

status csv_index_advance(struct csv_index *index, struct csv_input input, enum csv_state *out_state,
                         struct error *err)
{
    ASSERT(input.size <= CSV_CHUNK_LIMIT_BYTES);
    TRY(scan_up_to(index, input, input.size - input.size % CSV_BLOCK_BYTES, err));
    size_t scanned = index->scanned;
    enum csv_state state = CSV_RECORD_START;
    if (scanned > 0) state = csv_cursor_state(index->scan.cursor, input.bytes[scanned - 1]);
    *out_state = csv_advance(state, input.bytes + scanned, input.size - scanned);
    return STATUS_OK;
}

status csv_index_finish(struct csv_index *index, struct csv_input input, struct error *err)
{
    ASSERT(input.size <= CSV_CHUNK_LIMIT_BYTES);
    ASSERT(input.column_count == index->column_count);
    ASSERT(input.size >= index->scanned);
    TRY(scan_all(index, input, err));

    const struct csv_scan *scan = &index->scan;
    index->record_count = scan->record_count;
    index->line_count = scan->line_count;
    index->has_quotes = scan->has_quotes;
    if (!scan_is_table(scan, &index->row_ends, input)) return index_repair(index, scan, input, err);
    index->positions = scan->positions;
    index->row_count = (uint32_t)scan->record_count;
    return STATUS_OK;
}

void csv_index_done(struct csv_index *index)
{
    memory_free(index->budget, index->flat, index->flat_capacity * sizeof *index->flat);
    memory_free(index->budget, index->repaired, index->repaired_capacity * sizeof *index->repaired);
    *index = (struct csv_index){.budget = index->budget};
}
