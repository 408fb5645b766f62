/* SPDX-License-Identifier: Apache-2.0 */
/* bench_rows.c - plans, rows and keys for the micro-benchmarks.
 *
 * Plans come from SQL and rows from the scanner, so that cases work on what the engine itself would
 * give them.
 */
#include "micro.h"

#include "engine/base/random.h"
#include "engine/sql/compile.h"

enum { KEY_BYTES = 7, FIELD_LIMIT = 1 << 20 };

static const char tables_sql[] =
    "CREATE TABLE ratings (movieId INT NOT NULL, rating DECIMAL(6,3) NOT NULL)"
    " FROM 'ratings.csv';"
    "CREATE TABLE transactions (transaction_id TEXT NOT NULL, store_id INT NOT NULL,"
    " final_amount DECIMAL(18,3) NOT NULL, created_at TIMESTAMP NOT NULL, user_id INT)"
    " FROM 'transactions.csv';"
    "CREATE TABLE users (user_id INT NOT NULL, birthdate DATE NOT NULL) FROM 'users.csv';"
    "CREATE TABLE comments (permalink TEXT NOT NULL, body TEXT, sentiment DOUBLE)"
    " FROM 'comments.csv';"
    "CREATE TABLE keyed_int (k INT NOT NULL, amount DECIMAL(18,3) NOT NULL) FROM 'int.csv';"
    "CREATE TABLE keyed_text (k TEXT NOT NULL, amount DECIMAL(18,3) NOT NULL) FROM 'text.csv';";

/* What a file of `count` records needs at most. */
static size_t file_bytes(enum micro_file file, size_t count)
{
    static const size_t record_bytes[MICRO_FILES] = {
        [MICRO_RATINGS] = 32,
        [MICRO_TRANSACTIONS] = 120,
        [MICRO_USERS] = 64,
        [MICRO_COMMENTS] = 320,
    };
    return count * record_bytes[file] + MICRO_CHUNK_BYTES;
}

const struct plan *micro_compile(const char *sql, struct arena *arena)
{
    struct compile_query query = {.name = TEXT_LITERAL("bench"), .sql = text_of(sql)};
    struct compile_input input = {
        .tables_sql = text_of(tables_sql), .queries = &query, .query_count = 1};
    struct plan *plan;
    struct error err;
    micro_require(compile_queries(&input, arena, &plan, &err), &err);
    return plan;
}

/* Appends what the scan gives until there are enough rows. */
static void fill_builders(struct micro_rows *rows, struct chunk_scan *scan)
{
    struct error err;
    struct batch batch;
    struct selection selection;
    bool more = true;
    uint32_t at = 0;
    for (;;) {
        micro_require(chunk_scan_next(scan, &batch, &selection, &more, &err), &err);
        if (!more) return;
        for (uint32_t column = 0; column < batch.column_count; column++) {
            micro_require(chunk_scan_materialize(scan, column, selection, UINT32_MAX, &err), &err);
        }
        for (uint32_t i = 0; i < selection.count;) {
            while (at < rows->batch_count && rows->builders[at].row_count == rows->rows_each) {
                at++;
            }
            if (at == rows->batch_count) return;
            uint32_t picked[CHUNK_SCAN_ROWS];
            uint32_t count = 0;
            uint32_t room = rows->rows_each - rows->builders[at].row_count;
            for (; i < selection.count && count < room; i++) {
                picked[count++] = selection_row(selection, i);
            }
            builder_append(&rows->builders[at], &batch, (struct selection){picked, count});
        }
    }
}

void micro_rows_make(struct micro_rows *rows, struct arena *arena)
{
    const struct table *table = rows->table;
    bool *used = micro_need(arena_array(arena, bool, table->schema.count));
    uint32_t *map = micro_need(arena_array(arena, uint32_t, table->schema.count));
    for (uint32_t i = 0; i < table->schema.count; i++) {
        used[i] = true;
        map[i] = micro_file_column(rows->file, table->schema.fields[i].name);
    }
    rows->builders = micro_need(arena_array(arena, struct batch_builder, rows->batch_count));
    rows->batches = micro_need(arena_array(arena, struct batch, rows->batch_count));
    for (uint32_t i = 0; i < rows->batch_count; i++) {
        bool ready = builder_init(&rows->builders[i], table->schema, NULL);
        (void)micro_need(ready ? &rows->builders[i] : NULL);
    }
    struct arena file_arena = {0};
    size_t size = file_bytes(rows->file, (size_t)rows->batch_count * rows->rows_each);
    struct micro_data data = micro_data_make(rows->file, size, &file_arena);
    struct chunk_scan *scan;
    struct error err;
    micro_require(chunk_scan_create(table, used, FIELD_LIMIT, NULL, &scan, &err), &err);
    for (uint32_t i = 0; i < data.chunk_count; i++) {
        data.chunks[i].column_map = map;
        micro_require(chunk_scan_begin(scan, &data.chunks[i], &err), &err);
        fill_builders(rows, scan);
    }
    chunk_scan_destroy(scan);
    arena_done(&file_arena);
    for (uint32_t i = 0; i < rows->batch_count; i++) {
        bool full = rows->builders[i].row_count == rows->rows_each &&
                    builder_batch(&rows->builders[i], &rows->batches[i]);
        (void)micro_need(full ? rows->batches : NULL);
    }
}

void micro_rows_done(struct micro_rows *rows)
{
    for (uint32_t i = 0; i < rows->batch_count; i++) {
        builder_done(&rows->builders[i]);
    }
}

uint64_t micro_rows_bytes(const struct micro_rows *rows, uint32_t column)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < rows->batch_count; i++) {
        size += micro_column_bytes(&rows->batches[i].columns[column], rows->rows_each);
    }
    return size;
}

uint32_t *micro_ids(uint32_t count, uint32_t bound, struct arena *arena)
{
    uint32_t *ids = micro_need(arena_alloc(arena, (size_t)count * sizeof *ids, alignof(uint32_t)));
    struct random random = {7};
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = i < bound ? i : random_below(&random, bound);
    }
    /* So that new keys do not all come first. */
    for (uint32_t i = count; i > 1; i--) {
        uint32_t other = random_below(&random, i);
        uint32_t id = ids[i - 1];
        ids[i - 1] = ids[other];
        ids[other] = id;
    }
    return ids;
}

struct column micro_keys(struct type type, const uint32_t *ids, uint32_t count, struct arena *arena)
{
    /* A permutation of the numbers of six digits to the base 36: the factor has no divisor in
     * common with 36. */
    const uint64_t range = 2176782336u;
    const uint64_t factor = 1640531527u;
    struct column column;
    bool ready = column_init(&column, type, count, arena);
    (void)micro_need(ready ? &column : NULL);
    bool is_text = type.kind == TYPE_TEXT;
    char *bytes = is_text ? micro_need(arena_alloc(arena, (size_t)count * KEY_BYTES, 1)) : NULL;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t key = ids[i] * factor % range;
        if (!is_text) {
            column.ints[i] = (int64_t)key;
            continue;
        }
        column.texts[i] = (struct text){bytes, KEY_BYTES};
        for (uint32_t digit = 0; digit < KEY_BYTES; digit++) {
            *bytes++ = "0123456789abcdefghijklmnopqrstuvwxyz"[key % 36];
            key /= 36;
        }
    }
    return column;
}

uint64_t micro_column_bytes(const struct column *column, uint32_t row_count)
{
    if (column->type.kind != TYPE_TEXT) {
        return (uint64_t)row_count * type_width(column->type);
    }
    uint64_t size = 0;
    for (uint32_t row = 0; row < row_count; row++) {
        if (!column_is_null(column, row)) size += column->texts[row].size;
    }
    return size;
}
