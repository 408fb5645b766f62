/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_scan.c - a chunk piece by piece; the index of a piece, cut into batches; columns parsed one
 * at a time.
 *
 * A batch is small enough for its columns to stay in the cache until the queries have seen them.
 * NOT NULL columns come first, in declared order, so that it is known which records are kept when
 * the nullable ones are counted. As long as nothing fails, a batch has no row flags, no row numbers
 * and no NULLs; each comes into being with the first row that needs it.
 *
 * TEXT is materialized late: emptiness can be told from the positions, and most rows are filtered
 * out before any expression reads their texts.
 */
#include "engine/exec/scan/chunk_scan.h"

#include <string.h>

#include "engine/base/assert.h"
#include "engine/data/csv_scan.h"
#include "engine/exec/scan/chunk_parse.h"

enum {
    /* When one row in so many is asked for, all rows that are kept are loaded. */
    LOAD_ALL_FRACTION = 4,
};

enum load_state { LOAD_NONE, LOAD_SOME, LOAD_ALL };

/* What the scan keeps for a column beside the batch's view of it. */
struct scan_column {
    enum load_state load_state; /* TEXT only. */
    uint8_t *loaded;            /* TEXT only, valid in LOAD_SOME: by row. */
    uint8_t *nulls;             /* Nullable only: lent to the column when some row is NULL. */
};

struct chunk_scan {
    const struct table *table;
    uint32_t column_count;
    uint32_t field_limit;
    bool *used;
    struct budget *budget;
    struct arena arena;       /* Lives as long as the scan. */
    struct arena batch_arena; /* Unquoted texts. */
    struct csv_index own_index;
    const struct csv_index *index; /* Of the current piece: that one, or one the chunk came with. */
    struct chunk chunk;
    size_t piece_bytes; /* As long as a piece should be. */
    size_t piece_start; /* Of the current one, in the chunk. */
    size_t piece_end;
    uint64_t lines_before; /* The current piece. */
    uint32_t error_offset;
    struct chunk_counters counters;

    struct column *columns; /* The current batch's, rows first_row .. first_row + row_count - 1. */
    struct scan_column *states;
    uint32_t first_row;
    uint32_t row_count;
    uint32_t kept_count;
    uint32_t *failed; /* Rows, scratch for one column. */
    uint32_t *rows;   /* Those kept, when some were dropped. */
    uint8_t *dropped; /* By row, when some were dropped. */
    bool has_dropped;
    bool memory_failed;
};

static status scan_fail_memory(const struct chunk_scan *scan, struct error *err)
{
    return error_set(err, STATUS_MEMORY, "table %.*s: no memory to read a chunk",
                     TEXT_ARGS(scan->table->name));
}

static const struct field *scan_field(const struct chunk_scan *scan, uint32_t column)
{
    return &scan->table->schema.fields[column];
}

static bool scan_alloc_column(struct chunk_scan *scan, uint32_t column)
{
    const struct field *field = scan_field(scan, column);
    ASSERT(field->type.kind != TYPE_NULL);
    ASSERT(!type_is_list(field->type));
    struct scan_column *state = &scan->states[column];
    bool is_text = field->type.kind == TYPE_TEXT;
    scan->columns[column] = (struct column){.type = field->type};
    if (is_text && !scan->used[column]) return true;

    if (!column_init(&scan->columns[column], field->type, CHUNK_SCAN_ROWS, &scan->arena)) {
        return false;
    }
    if (is_text) {
        state->loaded = arena_array(&scan->arena, uint8_t, CHUNK_SCAN_ROWS);
        if (state->loaded == NULL) return false;
    }
    if (!field->not_null) {
        state->nulls = arena_array(&scan->arena, uint8_t, CHUNK_SCAN_ROWS);
        if (state->nulls == NULL) return false;
    }
    return true;
}

static bool scan_alloc(struct chunk_scan *scan, const bool *used)
{
    struct arena *arena = &scan->arena;
    uint32_t count = scan->column_count;
    scan->used = arena_array(arena, bool, count);
    scan->columns = arena_array(arena, struct column, count);
    scan->states = arena_array(arena, struct scan_column, count);
    scan->counters.nulled = arena_array(arena, struct drop_count, count);
    scan->counters.dropped =
        arena_calloc(arena, count, sizeof *scan->counters.dropped, alignof(struct drop_count));
    scan->failed = arena_array(arena, uint32_t, CHUNK_SCAN_ROWS + 1);
    scan->rows = arena_array(arena, uint32_t, CHUNK_SCAN_ROWS);
    scan->dropped = arena_array(arena, uint8_t, CHUNK_SCAN_ROWS);
    if (scan->used == NULL || scan->columns == NULL || scan->states == NULL ||
        scan->counters.nulled == NULL || scan->counters.dropped == NULL || scan->failed == NULL ||
        scan->rows == NULL || scan->dropped == NULL) {
        return false;
    }
    for (uint32_t column = 0; column < count; column++) {
        scan->used[column] = used[column];
        if (!scan_alloc_column(scan, column)) return false;
    }
    return true;
}

status chunk_scan_create(const struct table *table, const bool *used, uint32_t field_limit,
                         struct budget *budget, struct chunk_scan **out, struct error *err)
{
    struct chunk_scan *scan = memory_alloc(budget, sizeof *scan);
    if (scan == NULL) {
        return error_set(err, STATUS_MEMORY, "table %.*s: no memory for its scan",
                         TEXT_ARGS(table->name));
    }
    *scan = (struct chunk_scan){
        .table = table,
        .column_count = table->schema.count,
        .field_limit = field_limit,
        .budget = budget,
        .own_index = {.budget = budget},
        .piece_bytes = CHUNK_PIECE_BYTES,
    };
    arena_init(&scan->arena, budget);
    arena_init(&scan->batch_arena, budget);
    if (!scan_alloc(scan, used)) {
        chunk_scan_destroy(scan);
        return error_set(err, STATUS_MEMORY, "table %.*s: no memory for its scan",
                         TEXT_ARGS(table->name));
    }
    *out = scan;
    return STATUS_OK;
}

void chunk_scan_destroy(struct chunk_scan *scan)
{
    if (scan == NULL) return;
    csv_index_done(&scan->own_index);
    arena_done(&scan->batch_arena);
    arena_done(&scan->arena);
    memory_free(scan->budget, scan, sizeof *scan);
}

#if FAULT_INJECTION
void chunk_scan_set_piece(struct chunk_scan *scan, size_t piece_bytes)
{
    ASSERT(piece_bytes > 0);
    scan->piece_bytes = piece_bytes;
}
#endif

/* The column's fields in rows first_row .. first_row + count - 1. */
static struct chunk_fields scan_fields(struct chunk_scan *scan, uint32_t column, uint32_t first_row,
                                       uint32_t count)
{
    uint32_t file_column = scan->chunk.column_map[column];
    const struct csv_index *index = scan->index;
    return (struct chunk_fields){
        .bytes = scan->chunk.bytes + scan->piece_start,
        .positions = index->positions + (size_t)first_row * index->stride + file_column,
        .stride = index->stride,
        .count = count,
        .ends_record = file_column + 1 == index->column_count,
        .has_quotes = index->has_quotes,
        .arena = &scan->batch_arena,
        .memory_failed = &scan->memory_failed,
    };
}

/* Fields can only be too long in a piece that is longer still, so hardly any piece gets here. */
static status scan_check_lengths(struct chunk_scan *scan, struct error *err)
{
    for (uint32_t column = 0; column < scan->column_count; column++) {
        const struct field *field = scan_field(scan, column);
        bool checked = field->not_null || field->type.kind != TYPE_TEXT;
        if (!checked && !scan->used[column]) continue;
        struct chunk_fields fields = scan_fields(scan, column, 0, scan->index->row_count);
        for (uint32_t row = 0; row < fields.count; row++) {
            struct text raw = chunk_field_raw(&fields, row);
            /* The quotes around a field are not part of it. */
            uint32_t quotes = raw.size >= 2 && raw.bytes[0] == '"' ? 2 : 0;
            uint32_t size = raw.size - quotes;
            if (size <= scan->field_limit) continue;
            scan->error_offset = (uint32_t)(raw.bytes - scan->chunk.bytes);
            return error_set(err, STATUS_LIMIT,
                             "a field has %u bytes; the limit is %u, see --field-limit", size,
                             scan->field_limit);
        }
    }
    return STATUS_OK;
}

static void scan_reset(struct chunk_scan *scan)
{
    scan->piece_start = 0;
    scan->piece_end = 0;
    scan->kept_count = 0;
    scan->error_offset = 0;
    scan->memory_failed = false;
    struct chunk_counters *table_counters = &scan->counters;
    *table_counters = (struct chunk_counters){.dropped = table_counters->dropped,
                                              .nulled = table_counters->nulled};
    for (uint32_t column = 0; column < scan->column_count; column++) {
        table_counters->nulled[column] = (struct drop_count){0};
        for (int reason = 0; reason < DROP_REASON_COUNT; reason++) {
            table_counters->dropped[column][reason] = (struct drop_count){0};
        }
    }
}

/* Counts a record that begins there in the current piece. */
static void scan_count(const struct chunk_scan *scan, struct drop_count *drops, uint32_t offset)
{
    if (drops->count++ > 0) return;
    const char *piece = scan->chunk.bytes + scan->piece_start;
    drops->first_line = scan->lines_before + csv_count_lines(piece, offset);
}

/* Finds the fields of the piece that begins where the last one ended. */
static status scan_index_piece(struct chunk_scan *scan, struct error *err)
{
    const struct chunk *chunk = &scan->chunk;
    size_t start = scan->piece_start = scan->piece_end;
    struct csv_input input = {chunk->bytes + start, chunk->size - start, chunk->file_columns};
    struct csv_index *index = chunk->index;
    if (index == NULL) {
        index = &scan->own_index;
        csv_index_begin(index, input.column_count);
        if (input.size > scan->piece_bytes) {
            enum csv_state state;
            struct csv_input first = {input.bytes, scan->piece_bytes, input.column_count};
            TRY(csv_index_advance(index, first, &state, err));
            const char *rest = input.bytes + first.size;
            size_t more = input.size - first.size;
            if (state == CSV_RECORD_START) more = 0;
            input.size = first.size + csv_record_end(&state, rest, more);
        }
    }
    scan->index = index;
    scan->piece_end = start + input.size;
    status built = csv_index_finish(index, input, err);
    scan->error_offset = (uint32_t)start + index->unclosed_offset;
    return built;
}

static status scan_begin_piece(struct chunk_scan *scan, struct error *err)
{
    struct chunk_counters *table_counters = &scan->counters;
    scan->first_row = 0;
    scan->row_count = 0;
    scan->lines_before = scan->chunk.lines_before + table_counters->line_count;
    TRY(scan_index_piece(scan, err));

    const struct csv_index *index = scan->index;
    table_counters->record_count += index->record_count;
    table_counters->line_count += index->line_count;
    if (index->left_out_count > 0) {
        scan_count(scan, &table_counters->wrong_fields, index->left_out_offset);
        table_counters->wrong_fields.count += index->left_out_count - 1;
    }
    size_t size = scan->piece_end - scan->piece_start;
    return size > scan->field_limit ? scan_check_lengths(scan, err) : STATUS_OK;
}

status chunk_scan_begin(struct chunk_scan *scan, const struct chunk *chunk, struct error *err)
{
    scan_reset(scan);
    scan->chunk = *chunk;
    if (chunk->size == 0) scan->chunk.bytes = ""; /* There may be none to point to. */
    for (uint32_t column = 0; column < scan->column_count; column++) {
        ASSERT(chunk->column_map[column] < chunk->file_columns);
    }
    return scan_begin_piece(scan, err);
}

uint32_t chunk_scan_error_offset(const struct chunk_scan *scan)
{
    return scan->error_offset;
}

static void scan_count_row(const struct chunk_scan *scan, struct drop_count *drops, uint32_t row)
{
    scan_count(scan, drops, csv_index_row_offset(scan->index, scan->first_row + row));
}

static bool scan_is_dropped(const struct chunk_scan *scan, uint32_t row)
{
    return scan->has_dropped && scan->dropped[row] != 0;
}

/* Out of line, like scan_null_rows: what is rare must not be in the way of what is not. */
static __attribute__((noinline)) void scan_drop_rows(struct chunk_scan *scan, uint32_t column,
                                                     const struct chunk_fields *fields,
                                                     uint32_t failed_count)
{
    if (!scan->has_dropped) {
        memset(scan->dropped, 0, scan->row_count);
        scan->has_dropped = true;
    }
    for (uint32_t i = 0; i < failed_count; i++) {
        uint32_t row = scan->failed[i];
        if (scan->dropped[row] != 0) continue;
        bool is_empty = chunk_field_is_empty(chunk_field_raw(fields, row));
        enum drop_reason reason = is_empty ? DROP_EMPTY : DROP_UNREADABLE;
        scan_count_row(scan, &scan->counters.dropped[column][reason], row);
        scan->dropped[row] = 1;
        scan->kept_count--;
    }
}

/* Lends the column its array of NULLs, cleared. */
static void scan_need_nulls(struct chunk_scan *scan, uint32_t column)
{
    if (scan->columns[column].nulls != NULL) return;
    scan->columns[column].nulls = scan->states[column].nulls;
    memset(scan->columns[column].nulls, 0, scan->row_count);
}

static __attribute__((noinline)) void scan_null_rows(struct chunk_scan *scan, uint32_t column,
                                                     const struct chunk_fields *fields,
                                                     uint32_t failed_count)
{
    scan_need_nulls(scan, column);
    uint8_t *nulls = scan->columns[column].nulls;
    for (uint32_t i = 0; i < failed_count; i++) {
        uint32_t row = scan->failed[i];
        nulls[row] = 1;
        if (chunk_field_is_empty(chunk_field_raw(fields, row))) continue;
        if (!scan_is_dropped(scan, row)) scan_count_row(scan, &scan->counters.nulled[column], row);
    }
}

/* Parses and checks one column of the current batch, or only checks if it is TEXT. */
static status scan_read_column(struct chunk_scan *scan, uint32_t column, struct error *err)
{
    bool not_null = scan_field(scan, column)->not_null;
    struct column *values = &scan->columns[column];
    values->nulls = NULL;
    scan->states[column].load_state = LOAD_NONE;
    if (values->type.kind == TYPE_TEXT && !not_null) return STATUS_OK;

    struct chunk_fields fields = scan_fields(scan, column, scan->first_row, scan->row_count);
    uint32_t failed_count = values->type.kind == TYPE_TEXT
                                ? chunk_parse_empty(&fields, scan->failed)
                                : chunk_parse_values(&fields, values, scan->failed);
    if (scan->memory_failed) return scan_fail_memory(scan, err);
    if (LIKELY(failed_count == 0)) return STATUS_OK;
    if (not_null) {
        scan_drop_rows(scan, column, &fields, failed_count);
    } else {
        scan_null_rows(scan, column, &fields, failed_count);
    }
    return STATUS_OK;
}

/* Reads rows first_row .. first_row + row_count - 1. */
static status scan_read_batch(struct chunk_scan *scan, struct error *err)
{
    scan->kept_count = scan->row_count;
    scan->has_dropped = false;
    arena_reset(&scan->batch_arena);
    for (uint32_t column = 0; column < scan->column_count; column++) {
        if (scan_field(scan, column)->not_null) TRY(scan_read_column(scan, column, err));
    }
    if (scan->kept_count == 0) return STATUS_OK;
    for (uint32_t column = 0; column < scan->column_count; column++) {
        if (!scan_field(scan, column)->not_null) TRY(scan_read_column(scan, column, err));
    }
    scan->counters.kept_count += scan->kept_count;
    return STATUS_OK;
}

static struct selection scan_selection(struct chunk_scan *scan)
{
    if (!scan->has_dropped) return (struct selection){.count = scan->row_count};
    uint32_t count = 0;
    for (uint32_t row = 0; row < scan->row_count; row++) {
        scan->rows[count] = row;
        count += scan->dropped[row] == 0;
        if (count == scan->kept_count) break;
    }
    ASSERT(count == scan->kept_count);
    return (struct selection){.rows = scan->rows, .count = count};
}

status chunk_scan_next(struct chunk_scan *scan, struct batch *out_batch,
                       struct selection *out_selection, bool *out_more, struct error *err)
{
    do {
        scan->first_row += scan->row_count;
        uint32_t left = scan->index->row_count - scan->first_row;
        bool is_last = scan->piece_end == scan->chunk.size;
        if (left == 0 && is_last) {
            scan->row_count = 0;
            *out_more = false;
            return STATUS_OK;
        }
        scan->row_count = left < CHUNK_SCAN_ROWS ? left : CHUNK_SCAN_ROWS;
        scan->kept_count = 0;
        TRY(left == 0 ? scan_begin_piece(scan, err) : scan_read_batch(scan, err));
    } while (scan->kept_count == 0);

    *out_batch = (struct batch){
        .row_count = scan->row_count,
        .column_count = scan->column_count,
        .columns = scan->columns,
    };
    *out_selection = scan_selection(scan);
    *out_more = true;
    return STATUS_OK;
}

static void scan_load_row(struct chunk_scan *scan, uint32_t column,
                          const struct chunk_fields *fields, uint32_t row)
{
    struct column *values = &scan->columns[column];
    chunk_parse_text(fields, values, row);
    if (values->texts[row].size == 0 && scan->states[column].nulls != NULL) {
        scan_need_nulls(scan, column);
        values->nulls[row] = 1;
    }
}

static void scan_load_all(struct chunk_scan *scan, uint32_t column,
                          const struct chunk_fields *fields)
{
    const struct scan_column *state = &scan->states[column];
    for (uint32_t row = 0; row < scan->row_count; row++) {
        if (scan_is_dropped(scan, row)) continue;
        if (state->load_state == LOAD_SOME && state->loaded[row] != 0) continue;
        scan_load_row(scan, column, fields, row);
    }
}

/* Whether the value is longer than the prefix even if all bytes between its quotes are doubled
 * quotes, of which half are left. */
static bool is_beyond(struct text raw, uint32_t prefix)
{
    return raw.size > 2 && (raw.size - 2) / 2 > prefix;
}

static void scan_load_some(struct chunk_scan *scan, uint32_t column,
                           const struct chunk_fields *fields, struct selection selection,
                           uint32_t prefix)
{
    struct scan_column *state = &scan->states[column];
    if (state->load_state == LOAD_NONE) memset(state->loaded, 0, scan->row_count);
    for (uint32_t i = 0; i < selection.count; i++) {
        uint32_t row = selection_row(selection, i);
        ASSERT(row < scan->row_count);
        if (state->loaded[row] != 0) continue;
        struct text raw = chunk_field_raw(fields, row);
        if (is_beyond(raw, prefix)) {
            scan->columns[column].texts[row] = raw;
            continue;
        }
        scan_load_row(scan, column, fields, row);
        state->loaded[row] = 1;
    }
}

status chunk_scan_materialize(struct chunk_scan *scan, uint32_t column, struct selection selection,
                              uint32_t prefix, struct error *err)
{
    ASSERT(column < scan->column_count);
    struct scan_column *state = &scan->states[column];
    if (scan_field(scan, column)->type.kind != TYPE_TEXT || state->load_state == LOAD_ALL) {
        return STATUS_OK;
    }
    ASSERT(scan->used[column]);
    struct chunk_fields fields = scan_fields(scan, column, scan->first_row, scan->row_count);
    /* Without quotes a text is a view of the chunk: a prefix would save nothing. */
    bool is_whole = prefix == UINT32_MAX || !fields.has_quotes;
    if (is_whole && (uint64_t)selection.count * LOAD_ALL_FRACTION >= scan->row_count) {
        scan_load_all(scan, column, &fields);
        state->load_state = LOAD_ALL;
    } else {
        scan_load_some(scan, column, &fields, selection, prefix);
        state->load_state = LOAD_SOME;
    }
    if (scan->memory_failed) return scan_fail_memory(scan, err);
    return STATUS_OK;
}

const struct chunk_counters *chunk_scan_counters(const struct chunk_scan *scan)
{
    return &scan->counters;
}
