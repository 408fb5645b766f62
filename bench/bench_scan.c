/* SPDX-License-Identifier: Apache-2.0 */
/* bench_scan.c - the layers of a scan, from bytes to checked columns.
 *
 *     touch     every byte is loaded and nothing else: the roof over the layers below
 *     index     where fields and records end
 *     narrow    records without some columns, as a client sends them (indexed before)
 *     extract   positions to text views, quotes undone
 *     parse     fields of one column to values
 *     whole     chunk_scan: all of it, and the audit
 *
 * Touch, index and whole go through a file that is larger than the caches near a core. Narrow,
 * extract and parse go through one chunk again and again: in the engine their input was just
 * indexed and is still near. Times per row of the layers add up to about that of the whole.
 */
#include "micro.h"

#include <string.h>

#include "engine/data/csv_narrow.h"
#include "engine/data/csv_scan.h"
#include "engine/exec/scan/chunk_parse.h"

enum { CHUNK_PASSES = 64, FIELD_LIMIT = 1 << 20, TOUCH_BYTES = 128 };

/* touch, index */

struct file_detail {
    enum micro_file file;
    size_t size;
};

struct file_state {
    struct micro_data data;
    struct csv_index index;
    uint32_t passes;
};

/* Several independent sums, so that a compiler can use its widest loads. */
static uint64_t touch(const char *bytes, size_t size)
{
    enum { PRODUCERS = TOUCH_BYTES / sizeof(uint64_t) };
    uint64_t producers[PRODUCERS] = {0};
    size_t done = 0;
    for (; size - done >= TOUCH_BYTES; done += TOUCH_BYTES) {
        uint64_t words[PRODUCERS];
        memcpy(words, bytes + done, TOUCH_BYTES);
        for (uint32_t i = 0; i < PRODUCERS; i++) {
            producers[i] += words[i];
        }
    }
    uint64_t sum = 0;
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        sum += producers[i];
    }
    for (; done < size; done++) {
        sum += (unsigned char)bytes[done];
    }
    return sum;
}

static uint64_t run_touch(struct micro *micro)
{
    const struct file_state *state = micro->state;
    uint64_t sum = 0;
    for (uint32_t pass = 0; pass < state->passes; pass++) {
        for (uint32_t i = 0; i < state->data.chunk_count; i++) {
            sum += touch(state->data.chunks[i].bytes, state->data.chunks[i].size);
        }
    }
    return sum;
}

static void index_chunk(struct csv_index *index, struct csv_input input)
{
    struct error err;
    csv_index_begin(index, input.column_count);
    micro_require(csv_index_finish(index, input, &err), &err);
}

static uint64_t run_index(struct micro *micro)
{
    struct file_state *state = micro->state;
    uint64_t sum = 0;
    for (uint32_t pass = 0; pass < state->passes; pass++) {
        for (uint32_t i = 0; i < state->data.chunk_count; i++) {
            const struct chunk *chunk = &state->data.chunks[i];
            struct csv_input input = {chunk->bytes, chunk->size, chunk->file_columns};
            index_chunk(&state->index, input);
            sum += state->index.row_count + state->index.positions[state->index.row_count];
        }
    }
    return sum;
}

static void prepare_file(struct micro *micro)
{
    const struct file_detail *detail = micro->which->detail;
    struct file_state *state = micro_need(arena_new(&micro->arena, struct file_state));
    state->data = micro_data_make(detail->file, detail->size, &micro->arena);
    state->passes = (uint32_t)(MICRO_FILE_BYTES / detail->size);
    micro->state = state;
    micro->byte_count = (uint64_t)state->data.size * state->passes;
    for (uint32_t i = 0; i < state->data.chunk_count; i++) {
        const struct chunk *chunk = &state->data.chunks[i];
        struct csv_input input = {chunk->bytes, chunk->size, chunk->file_columns};
        index_chunk(&state->index, input);
        micro->row_count += (uint64_t)state->index.row_count * state->passes;
    }
}

static void finish_file(struct micro *micro)
{
    struct file_state *state = micro->state;
    csv_index_done(&state->index);
}

/* narrow */

enum { NARROW_COLUMNS = 3 };

struct narrow_detail {
    enum micro_file file;
    uint32_t columns[NARROW_COLUMNS]; /* Kept; some may be the same. */
};

struct narrow_state {
    struct micro_data data;
    struct csv_index index;
    struct csv_narrow narrow;
    struct buf out;
};

static uint64_t run_narrow(struct micro *micro)
{
    struct narrow_state *state = micro->state;
    const struct chunk *chunk = &state->data.chunks[0];
    struct csv_input input = {chunk->bytes, chunk->size, chunk->file_columns};
    uint64_t sum = 0;
    for (uint32_t pass = 0; pass < CHUNK_PASSES; pass++) {
        buf_reset(&state->out);
        sum += csv_narrow_append(&state->narrow, &state->index, input, &state->out);
        sum += state->out.size;
    }
    return sum;
}

static void prepare_narrow(struct micro *micro)
{
    const struct narrow_detail *detail = micro->which->detail;
    struct narrow_state *state = micro_need(arena_new(&micro->arena, struct narrow_state));
    state->data = micro_data_make(detail->file, MICRO_CHUNK_BYTES, &micro->arena);
    const struct chunk *chunk = &state->data.chunks[0];
    struct csv_input input = {chunk->bytes, chunk->size, chunk->file_columns};
    uint32_t columns[NARROW_COLUMNS];
    struct error err;
    memcpy(columns, detail->columns, sizeof columns);
    micro_require(csv_narrow_init(&state->narrow, chunk->file_columns, columns, NARROW_COLUMNS,
                                  &micro->arena, &err),
                  &err);
    index_chunk(&state->index, input);
    micro->state = state;
    micro->byte_count = (uint64_t)chunk->size * CHUNK_PASSES;
    micro->row_count = (uint64_t)state->index.row_count * CHUNK_PASSES;
}

static void finish_narrow(struct micro *micro)
{
    struct narrow_state *state = micro->state;
    csv_index_done(&state->index);
    buf_done(&state->out);
}

/* extract, parse */

struct column_detail {
    enum micro_file file;
    const char *column;
    struct type type;
};

struct column_state {
    struct micro_data data;
    struct csv_index index;
    uint32_t file_column;
    struct column values;
    uint32_t *failed;
    struct arena unquoted;
    bool memory_failed;
};

static struct chunk_fields fields_of(struct column_state *state, uint32_t first_row)
{
    uint32_t left = state->index.row_count - first_row;
    const struct csv_index *index = &state->index;
    return (struct chunk_fields){
        .bytes = state->data.chunks[0].bytes,
        .positions = index->positions + (size_t)first_row * index->stride + state->file_column,
        .stride = index->stride,
        .count = left < MICRO_SLICE_ROWS ? left : MICRO_SLICE_ROWS,
        .ends_record = state->file_column + 1 == index->column_count,
        .has_quotes = index->has_quotes,
        .arena = &state->unquoted,
        .memory_failed = &state->memory_failed,
    };
}

static uint64_t run_extract(struct micro *micro)
{
    struct column_state *state = micro->state;
    uint64_t sum = 0;
    for (uint32_t pass = 0; pass < CHUNK_PASSES; pass++) {
        for (uint32_t row = 0; row < state->index.row_count; row += MICRO_SLICE_ROWS) {
            struct chunk_fields fields = fields_of(state, row);
            for (uint32_t i = 0; i < fields.count; i++) {
                chunk_parse_text(&fields, &state->values, i);
                sum += state->values.texts[i].size;
            }
            arena_reset(&state->unquoted);
        }
    }
    return sum;
}

static uint64_t run_parse(struct micro *micro)
{
    struct column_state *state = micro->state;
    uint64_t sum = 0;
    for (uint32_t pass = 0; pass < CHUNK_PASSES; pass++) {
        for (uint32_t row = 0; row < state->index.row_count; row += MICRO_SLICE_ROWS) {
            struct chunk_fields fields = fields_of(state, row);
            uint32_t failed_count = chunk_parse_values(&fields, &state->values, state->failed);
            sum += failed_count + (uint64_t)state->values.ints[fields.count / 2];
            arena_reset(&state->unquoted);
        }
    }
    return sum;
}

static void prepare_column(struct micro *micro)
{
    const struct column_detail *detail = micro->which->detail;
    struct column_state *state = micro_need(arena_new(&micro->arena, struct column_state));
    state->data = micro_data_make(detail->file, MICRO_CHUNK_BYTES, &micro->arena);
    state->file_column = micro_file_column(detail->file, text_of(detail->column));
    state->failed = micro_need(arena_array(&micro->arena, uint32_t, MICRO_SLICE_ROWS));
    bool ready = column_init(&state->values, detail->type, MICRO_SLICE_ROWS, &micro->arena);
    (void)micro_need(ready ? state : NULL);
    const struct chunk *chunk = &state->data.chunks[0];
    struct csv_input input = {chunk->bytes, chunk->size, chunk->file_columns};
    index_chunk(&state->index, input);
    micro->state = state;
    micro->row_count = (uint64_t)state->index.row_count * CHUNK_PASSES;
    for (uint32_t row = 0; row < state->index.row_count; row++) {
        struct text raw = csv_field_raw(&state->index, chunk->bytes, row, state->file_column);
        micro->byte_count += (uint64_t)raw.size * CHUNK_PASSES;
    }
}

static void finish_column(struct micro *micro)
{
    struct column_state *state = micro->state;
    csv_index_done(&state->index);
    arena_done(&state->unquoted);
}

/* whole */

struct whole_detail {
    enum micro_file file;
    const char *sql; /* Its columns are those that are read. */
};

struct whole_state {
    struct micro_data data;
    const bool *used;
    struct chunk_scan *scan;
};

static uint64_t run_whole(struct micro *micro)
{
    struct whole_state *state = micro->state;
    struct error err;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < state->data.chunk_count; i++) {
        struct batch batch;
        struct selection selection;
        bool more = true;
        micro_require(chunk_scan_begin(state->scan, &state->data.chunks[i], &err), &err);
        for (;;) {
            micro_require(chunk_scan_next(state->scan, &batch, &selection, &more, &err), &err);
            if (!more) break;
            for (uint32_t column = 0; column < batch.column_count; column++) {
                if (!state->used[column]) continue;
                micro_require(
                    chunk_scan_materialize(state->scan, column, selection, UINT32_MAX, &err), &err);
            }
            sum += selection.count;
        }
        sum += chunk_scan_counters(state->scan)->kept_count;
    }
    return sum;
}

static void prepare_whole(struct micro *micro)
{
    const struct whole_detail *detail = micro->which->detail;
    const struct plan *plan = micro_compile(detail->sql, &micro->arena);
    const struct table *table = &plan->tables[0];
    struct whole_state *state = micro_need(arena_new(&micro->arena, struct whole_state));
    uint32_t *map = micro_need(arena_array(&micro->arena, uint32_t, table->schema.count));
    for (uint32_t i = 0; i < table->schema.count; i++) {
        map[i] = micro_file_column(detail->file, table->schema.fields[i].name);
    }
    state->used = plan->scans[0].used;
    state->data = micro_data_make(detail->file, MICRO_FILE_BYTES, &micro->arena);
    struct error err;
    micro_require(chunk_scan_create(table, state->used, FIELD_LIMIT, NULL, &state->scan, &err),
                  &err);
    micro->state = state;
    micro->byte_count = state->data.size;
    for (uint32_t i = 0; i < state->data.chunk_count; i++) {
        state->data.chunks[i].column_map = map;
        micro_require(chunk_scan_begin(state->scan, &state->data.chunks[i], &err), &err);
        micro->row_count += chunk_scan_counters(state->scan)->record_count;
    }
}

static void finish_whole(struct micro *micro)
{
    struct whole_state *state = micro->state;
    chunk_scan_destroy(state->scan);
}

#define FILE_CASE(name_, run_, ...)                                                                \
    {                                                                                              \
        .name = "scan/" name_, .prepare = prepare_file, .run = run_, .finish = finish_file,        \
        .detail = MICRO_DETAIL(file_detail, __VA_ARGS__)                                           \
    }
#define NARROW_CASE(name_, ...)                                                                    \
    {                                                                                              \
        .name = "scan/narrow/" name_, .prepare = prepare_narrow, .run = run_narrow,                \
        .finish = finish_narrow, .detail = MICRO_DETAIL(narrow_detail, __VA_ARGS__)                \
    }
#define COLUMN_CASE(name_, run_, ...)                                                              \
    {                                                                                              \
        .name = "scan/" name_, .prepare = prepare_column, .run = run_, .finish = finish_column,    \
        .detail = MICRO_DETAIL(column_detail, __VA_ARGS__)                                         \
    }
#define WHOLE_CASE(name_, ...)                                                                     \
    {                                                                                              \
        .name = "scan/whole/" name_, .prepare = prepare_whole, .run = run_whole,                   \
        .finish = finish_whole, .detail = MICRO_DETAIL(whole_detail, __VA_ARGS__)                  \
    }

static const struct micro_case cases[] = {
    FILE_CASE("touch/file", run_touch, MICRO_RATINGS, MICRO_FILE_BYTES),
    FILE_CASE("touch/chunk", run_touch, MICRO_RATINGS, MICRO_CHUNK_BYTES),
    FILE_CASE("index/ratings", run_index, MICRO_RATINGS, MICRO_FILE_BYTES),
    FILE_CASE("index/transactions", run_index, MICRO_TRANSACTIONS, MICRO_FILE_BYTES),
    FILE_CASE("index/comments", run_index, MICRO_COMMENTS, MICRO_FILE_BYTES),
    NARROW_CASE("ratings", MICRO_RATINGS, {1, 2, 2}),
    NARROW_CASE("comments", MICRO_COMMENTS, {6, 7, 8}),
    COLUMN_CASE("extract/plain", run_extract, MICRO_TRANSACTIONS, "transaction_id",
                {.kind = TYPE_TEXT}),
    COLUMN_CASE("extract/quoted", run_extract, MICRO_COMMENTS, "body", {.kind = TYPE_TEXT}),
    COLUMN_CASE("parse/int", run_parse, MICRO_RATINGS, "movieId", {.kind = TYPE_INT}),
    COLUMN_CASE("parse/int-as-decimal", run_parse, MICRO_TRANSACTIONS, "user_id",
                {.kind = TYPE_INT}),
    COLUMN_CASE("parse/decimal", run_parse, MICRO_RATINGS, "rating", {TYPE_DECIMAL, 6, 3}),
    COLUMN_CASE("parse/double", run_parse, MICRO_RATINGS, "rating", {.kind = TYPE_DOUBLE}),
    COLUMN_CASE("parse/double-quoted", run_parse, MICRO_COMMENTS, "sentiment",
                {.kind = TYPE_DOUBLE}),
    COLUMN_CASE("parse/date", run_parse, MICRO_USERS, "birthdate", {.kind = TYPE_DATE}),
    COLUMN_CASE("parse/timestamp", run_parse, MICRO_TRANSACTIONS, "created_at",
                {.kind = TYPE_TIMESTAMP}),
    WHOLE_CASE("ratings", MICRO_RATINGS, "SELECT movieId, rating FROM ratings"),
    WHOLE_CASE("transactions", MICRO_TRANSACTIONS,
               "SELECT transaction_id, store_id, final_amount, created_at, user_id"
               " FROM transactions"),
    WHOLE_CASE("comments", MICRO_COMMENTS, "SELECT permalink, body, sentiment FROM comments"),
};

const struct micro_suite micro_scan = {cases, sizeof cases / sizeof cases[0]};
