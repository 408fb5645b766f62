/* SPDX-License-Identifier: Apache-2.0 */
/* test_chunk_scan.c - batches and audit are those of a reader that takes one record at a time.
 *
 * Method: random tables with columns of all types, in chunks whose fields are mostly good and
 * sometimes empty, unreadable, quoted or too many; the file's columns are a shuffled superset of
 * the table's. The model follows the rules in chunk_scan.h record by record, with the grammar of
 * csv_model.h and the readers of base/. The chunk is in a block of exactly its size, and rows of
 * TEXT columns that were not loaded are never looked at, so that the sanitizers see a byte too
 * many.
 */
#include "unit/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/calendar.h"
#include "engine/base/number.h"
#include "engine/base/random.h"
#include "engine/exec/scan/chunk_scan.h"
#include "unit/engine/data/csv_model.h"

enum { COLUMNS_MAX = 9, FILE_COLUMNS_MAX = 12, CHUNK_MAX = 1 << 20, FIELD_MAX = 64 };

struct scan_example {
    struct field fields[COLUMNS_MAX];
    bool used[COLUMNS_MAX];
    uint32_t map[COLUMNS_MAX];
    struct table table;
    uint32_t file_columns;
    char *bytes;
    size_t size;
};

/* One record as the model reads it. */
struct scan_record {
    size_t start;
    uint32_t field_count;
    char values[FILE_COLUMNS_MAX + 2][FIELD_MAX];
    uint32_t sizes[FILE_COLUMNS_MAX + 2];
};

struct scan_model {
    size_t at;
    uint64_t record_count;
    uint64_t kept_count;
    struct drop_count wrong_fields;
    struct drop_count dropped[COLUMNS_MAX][DROP_REASON_COUNT];
    struct drop_count nulled[COLUMNS_MAX];
};

static struct error err;

static void count_drop(const struct scan_example *example, struct drop_count *drops, size_t offset)
{
    if (drops->count++ == 0) drops->first_line = csv_count_lines(example->bytes, offset);
}

static bool model_record(const struct scan_example *example, struct scan_model *model,
                         struct scan_record *record)
{
    if (model->at == example->size) return false;
    *record = (struct scan_record){.start = model->at};
    struct model_field field;
    do {
        char value[CHUNK_MAX / 256];
        size_t size;
        field = model_read_field(example->bytes, example->size, model->at, value, &size);
        model->at = field.next;
        if (record->field_count < FILE_COLUMNS_MAX + 2) {
            assert_true(size < FIELD_MAX);
            memcpy(record->values[record->field_count], value, size);
            record->sizes[record->field_count] = (uint32_t)size;
        }
        record->field_count++;
    } while (!field.ends_record);
    return true;
}

static bool model_bool(struct text text, int64_t *out)
{
    static const char *names[] = {"false", "f", "0", "true", "t", "1"};
    for (int i = 0; i < 6; i++) {
        if (!text_equal_ignoring_case(text, text_of(names[i]))) continue;
        *out = i >= 3;
        return true;
    }
    return false;
}

/* DOUBLEs as their bits. */
static bool model_parse(struct type type, struct text text, int64_t *out)
{
    double number;
    switch (type.kind) {
    case TYPE_BOOL:
        return model_bool(text, out);
    case TYPE_INT:
        return text.size > 0 && int_parse_slow(text, out);
    case TYPE_DECIMAL:
        return text.size > 0 && decimal_parse_slow(text, type.precision, type.scale, out);
    case TYPE_DOUBLE:
        if (text.size == 0 || !double_parse_slow(text, &number)) return false;
        memcpy(out, &number, sizeof number);
        return true;
    case TYPE_DATE:
        return date_parse(text, out);
    case TYPE_TIMESTAMP:
        return timestamp_parse(text, out);
    default:
        return true;
    }
}

static struct text record_text(const struct scan_example *example, const struct scan_record *record,
                               uint32_t column)
{
    uint32_t at = example->map[column];
    return (struct text){record->values[at], record->sizes[at]};
}

/* Whether the record is kept; counts it as the rules say. */
static bool model_keep(const struct scan_example *example, struct scan_model *model,
                       struct scan_record *record)
{
    model->record_count++;
    if (record->field_count != example->file_columns) {
        count_drop(example, &model->wrong_fields, record->start);
        return false;
    }
    int64_t value;
    for (uint32_t column = 0; column < example->table.schema.count; column++) {
        if (!example->fields[column].not_null) continue;
        struct text text = record_text(example, record, column);
        bool readable = model_parse(example->fields[column].type, text, &value);
        if (text.size > 0 && readable) continue;
        enum drop_reason reason = text.size == 0 ? DROP_EMPTY : DROP_UNREADABLE;
        count_drop(example, &model->dropped[column][reason], record->start);
        return false;
    }
    for (uint32_t column = 0; column < example->table.schema.count; column++) {
        if (example->fields[column].not_null) continue;
        struct text text = record_text(example, record, column);
        if (text.size > 0 && !model_parse(example->fields[column].type, text, &value)) {
            count_drop(example, &model->nulled[column], record->start);
        }
    }
    model->kept_count++;
    return true;
}

static void check_value(const struct scan_example *example, const struct scan_record *record,
                        const struct column *values, uint32_t column, uint32_t row)
{
    struct type type = example->fields[column].type;
    struct text text = record_text(example, record, column);
    int64_t expected = 0;
    bool is_null = text.size == 0 || !model_parse(type, text, &expected);
    assert_int_equal(values->type.kind, type.kind);
    assert_int_equal(column_is_null(values, row), is_null);
    if (is_null) return;
    if (type.kind == TYPE_TEXT) {
        assert_true(text_equal(values->texts[row], text));
    } else if (type.kind == TYPE_BOOL) {
        assert_int_equal(values->bools[row], expected);
    } else {
        assert_int_equal(values->ints[row], expected); /* The union shares a double's bits. */
    }
}

/* The same when only so many bytes count: whatever a longer text has become, it is longer. */
static void check_within(const struct scan_example *example, const struct scan_record *record,
                         const struct column *values, uint32_t column, uint32_t row,
                         uint32_t prefix)
{
    bool is_text = example->fields[column].type.kind == TYPE_TEXT;
    if (!is_text || record_text(example, record, column).size <= prefix) {
        check_value(example, record, values, column, row);
    } else {
        assert_false(column_is_null(values, row));
        assert_true(values->texts[row].size > prefix);
    }
}

static void put(struct scan_example *example, const char *bytes, size_t size)
{
    assert_true(example->size + size <= CHUNK_MAX);
    memcpy(example->bytes + example->size, bytes, size);
    example->size += size;
}

/* A text that the type reads, more or less: every form the readers know, and their near misses. */
static size_t good_text(struct random *random, struct type type, char *out)
{
    static const char *bools[] = {"true", "FALSE", "t", "F", "1", "0", "True", "fAlse"};
    int64_t number = (int64_t)(random_u64(random) >> random_below(random, 63));
    if (random_below(random, 4) == 0) number = -number;
    switch (type.kind) {
    case TYPE_BOOL:
        return (size_t)sprintf(out, "%s", bools[random_below(random, 8)]);
    case TYPE_INT:
        return (size_t)sprintf(out, "%lld%s", (long long)number,
                               random_below(random, 8) == 0 ? ".0" : "");
    case TYPE_DECIMAL:
    case TYPE_DOUBLE:
        return (size_t)sprintf(out, "%lld.%u", (long long)(number % 5000),
                               random_below(random, 200));
    case TYPE_DATE:
        return (size_t)sprintf(out, "%04u-%02u-%02u", random_below(random, 3000),
                               1 + random_below(random, 12), 1 + random_below(random, 31));
    case TYPE_TIMESTAMP:
        return (size_t)sprintf(out, "20%02u-%02u-%02u %02u:%02u:%02u%s", random_below(random, 99),
                               1 + random_below(random, 12), 1 + random_below(random, 28),
                               random_below(random, 24), random_below(random, 60),
                               random_below(random, 60), random_below(random, 9) ? "" : ".25");
    default:
        return (size_t)sprintf(out, "text %u", random_below(random, 1000000));
    }
}

static size_t any_text(struct random *random, struct type type, uint32_t dirt, char *out)
{
    static const char *odd[] = {
        "",     " ",     "x",    "-",        ".",          "1e",  "+5",
        "12 ",  "1,2",   "a\nb", "he \"x\"", "\r",         "1\r", "9999999999999999999",
        "0.5",  "00001", "nan",  "1e3",      "2020-02-30", "yes", "\"",
        "\xff", "\"\"\""};
    if (random_below(random, 100) >= dirt) return good_text(random, type, out);
    return (size_t)sprintf(out, "%s", odd[random_below(random, sizeof odd / sizeof odd[0])]);
}

static void put_field(struct scan_example *example, struct random *random, struct type type,
                      uint32_t dirt, bool may_quote)
{
    char value[FIELD_MAX];
    size_t size = any_text(random, type, dirt, value);
    bool must_quote = memchr(value, ',', size) != NULL || memchr(value, '\n', size) != NULL ||
                      (size > 0 && value[0] == '"');
    if (must_quote && !may_quote) return;
    if (!must_quote && (!may_quote || random_below(random, 4) != 0)) {
        if (!may_quote && memchr(value, '"', size) != NULL) return;
        put(example, value, size);
        return;
    }
    put(example, "\"", 1);
    for (size_t i = 0; i < size; i++) {
        put(example, &value[i], 1);
        if (value[i] == '"') put(example, "\"", 1);
    }
    put(example, "\"", 1);
    if (random_below(random, 50) == 0) put(example, "z", 1);
}

static void make_table(struct scan_example *example, struct random *random)
{
    static const struct type types[] = {
        {.kind = TYPE_BOOL},
        {.kind = TYPE_INT},
        {.kind = TYPE_DECIMAL, .precision = 6, .scale = 3},
        {.kind = TYPE_TEXT},
        {.kind = TYPE_DATE},
        {.kind = TYPE_TIMESTAMP},
        {.kind = TYPE_TEXT},
        {.kind = TYPE_INT},
        {.kind = TYPE_DOUBLE},
    };
    uint32_t count = 1 + random_below(random, COLUMNS_MAX);
    example->file_columns = count + random_below(random, FILE_COLUMNS_MAX - COLUMNS_MAX + 1);
    uint32_t places[FILE_COLUMNS_MAX] = {0};
    for (uint32_t i = 0; i < example->file_columns; i++) {
        uint32_t at = random_below(random, i + 1);
        places[i] = places[at];
        places[at] = i;
    }
    for (uint32_t column = 0; column < count; column++) {
        example->fields[column] = (struct field){
            .name = TEXT_LITERAL("c"),
            .type = types[random_below(random, COLUMNS_MAX)],
            .not_null = random_below(random, 2) == 0,
        };
        example->used[column] = random_below(random, 4) != 0;
        example->map[column] = places[column];
    }
    example->table = (struct table){
        .name = TEXT_LITERAL("t"),
        .schema = {example->fields, count},
    };
}

static struct type file_column_type(const struct scan_example *example, uint32_t file_column)
{
    for (uint32_t column = 0; column < example->table.schema.count; column++) {
        if (example->map[column] == file_column) return example->fields[column].type;
    }
    return TYPE(TEXT);
}

static void make_chunk(struct scan_example *example, struct random *random)
{
    static const uint32_t dirts[] = {0, 1, 20, 100};
    static const uint32_t row_counts[] = {0, 1, 10, 3000, 5000};
    uint32_t dirt = dirts[random_below(random, 4)];
    bool may_quote = random_below(random, 2) == 0;
    bool ragged = random_below(random, 3) == 0;
    const char *line_end = random_below(random, 2) == 0 ? "\n" : "\r\n";
    uint32_t row_count = row_counts[random_below(random, 5)];
    example->size = 0;
    for (uint32_t row = 0; row < row_count; row++) {
        uint32_t count = example->file_columns;
        if (ragged && random_below(random, 50) == 0) count += 1 - random_below(random, 3);
        for (uint32_t at = 0; at < count; at++) {
            if (at > 0) put(example, ",", 1);
            put_field(example, random, file_column_type(example, at), dirt, may_quote);
        }
        if (row + 1 < row_count || random_below(random, 2) == 0) {
            put(example, line_end, strlen(line_end));
        }
    }
    /* A block of just this size. */
    char *exact = malloc(example->size == 0 ? 1 : example->size);
    assert_non_null(exact);
    memcpy(exact, example->bytes, example->size);
    free(example->bytes);
    example->bytes = exact;
}

/* Checks a batch against the next records of the model. The TEXT columns are loaded for runs of
 * rows first, as far as a few bytes reach or whole, and then for all. */
static void check_batch(const struct scan_example *example, struct chunk_scan *scan,
                        struct random *random, const struct batch *batch,
                        struct selection selection, struct scan_model *model)
{
    assert_true(selection.count > 0);
    assert_true(selection.count <= batch->row_count);
    assert_int_equal(batch->column_count, example->table.schema.count);
    uint32_t *rows = malloc(selection.count * sizeof *rows);
    struct scan_record *records = malloc(selection.count * sizeof *records);
    assert_non_null(rows);
    assert_non_null(records);
    for (uint32_t i = 0; i < selection.count; i++) {
        rows[i] = selection_row(selection, i);
        if (i > 0) assert_true(rows[i] > rows[i - 1]);
        do {
            assert_true(model_record(example, model, &records[i]));
        } while (!model_keep(example, model, &records[i]));
    }
    for (int round = 0; round < 3; round++) {
        /* At last all, before some: few or many. */
        uint32_t first = round == 2 ? 0 : random_below(random, selection.count);
        uint32_t limit = random_below(random, 2) == 0 ? 5 : selection.count;
        uint32_t left = selection.count - first;
        uint32_t count = round == 2 || left < limit ? left : limit;
        bool is_whole = round == 2 || random_below(random, 3) == 0;
        uint32_t prefix = is_whole ? UINT32_MAX : random_below(random, 12);
        for (uint32_t column = 0; column < batch->column_count; column++) {
            bool is_text = example->fields[column].type.kind == TYPE_TEXT;
            if (is_text && !example->used[column]) continue;
            struct selection part = {rows + first, count};
            assert_int_equal(chunk_scan_materialize(scan, column, part, prefix, &err), STATUS_OK);
            for (uint32_t i = first; i < first + count; i++) {
                check_within(example, &records[i], &batch->columns[column], column, rows[i],
                             prefix);
            }
        }
    }
    free(records);
    free(rows);
}

static void check_count(struct drop_count actual, struct drop_count expected)
{
    assert_int_equal(actual.count, expected.count);
    if (expected.count > 0) assert_int_equal(actual.first_line, expected.first_line);
}

static void check_counters(const struct scan_example *example,
                           const struct chunk_counters *table_counters,
                           const struct scan_model *model)
{
    assert_int_equal(table_counters->record_count, model->record_count);
    assert_int_equal(table_counters->kept_count, model->kept_count);
    assert_int_equal(table_counters->line_count, csv_count_lines(example->bytes, example->size));
    check_count(table_counters->wrong_fields, model->wrong_fields);
    for (uint32_t column = 0; column < example->table.schema.count; column++) {
        check_count(table_counters->nulled[column], model->nulled[column]);
        for (int reason = 0; reason < DROP_REASON_COUNT; reason++) {
            check_count(table_counters->dropped[column][reason], model->dropped[column][reason]);
        }
    }
}

static void check_chunk(struct scan_example *example, struct chunk_scan *scan,
                        struct random *random)
{
    struct chunk chunk = {
        .bytes = example->bytes,
        .size = example->size,
        .file_columns = example->file_columns,
        .column_map = example->map,
    };
    struct scan_model model = {0};
    assert_int_equal(chunk_scan_begin(scan, &chunk, &err), STATUS_OK);
    for (;;) {
        struct batch batch;
        struct selection selection;
        bool more;
        assert_int_equal(chunk_scan_next(scan, &batch, &selection, &more, &err), STATUS_OK);
        if (!more) break;
        check_batch(example, scan, random, &batch, selection, &model);
    }
    struct scan_record record;
    while (model_record(example, &model, &record)) {
        assert_false(model_keep(example, &model, &record));
    }
    check_counters(example, chunk_scan_counters(scan), &model);
}

static void batches_and_audit_are_those_of_the_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct random random = {seed};
        struct scan_example example = {0};
        make_table(&example, &random);
        struct chunk_scan *scan = NULL;
        assert_int_equal(
            chunk_scan_create(&example.table, example.used, CHUNK_MAX, NULL, &scan, &err),
            STATUS_OK);
        for (int round = 0; round < 5; round++) {
            example.bytes = malloc(CHUNK_MAX);
            assert_non_null(example.bytes);
            make_chunk(&example, &random);
            uint32_t most = random_below(&random, 2) == 0 ? 300 : 30000;
            chunk_scan_set_piece(scan, 1 + random_below(&random, most));
            check_chunk(&example, scan, &random);
            free(example.bytes);
        }
        chunk_scan_destroy(scan);
    }
}

/* Every text of up to four bytes over an alphabet of numbers, as first, middle and last field. */
static void short_numbers_read_alike_everywhere(void **state)
{
    (void)state;
    static const char alphabet[] = "0195-.+ ";
    static const struct type types[] = {{.kind = TYPE_INT},
                                        {.kind = TYPE_DECIMAL, .precision = 4, .scale = 2},
                                        {.kind = TYPE_DOUBLE}};
    for (size_t kind = 0; kind < 3; kind++) {
        struct scan_example example = {.file_columns = 3, .bytes = malloc(CHUNK_MAX)};
        assert_non_null(example.bytes);
        for (uint32_t column = 0; column < 3; column++) {
            example.fields[column] = (struct field){.type = types[kind]};
            example.map[column] = column;
        }
        example.table = (struct table){.name = TEXT_LITERAL("t"), .schema = {example.fields, 3}};
        for (uint32_t number = 0; number < 9 * 9 * 9 * 9; number++) {
            char value[8];
            size_t size = 0;
            for (uint32_t rest = number; rest > 0; rest /= 9) {
                if (rest % 9 > 0) value[size++] = alphabet[rest % 9 - 1];
            }
            for (int column = 0; column < 3; column++) {
                put(&example, value, size);
                put(&example, column < 2 ? "," : "\n", 1);
            }
        }
        struct chunk_scan *scan = NULL;
        struct random random = {1};
        assert_int_equal(
            chunk_scan_create(&example.table, example.used, CHUNK_MAX, NULL, &scan, &err),
            STATUS_OK);
        check_chunk(&example, scan, &random);
        chunk_scan_destroy(scan);
        free(example.bytes);
    }
}

static struct scan_example small_example(char *bytes, bool used)
{
    struct scan_example example = {
        .fields = {{TEXT_LITERAL("a"), TYPE(INT), true}, {TEXT_LITERAL("b"), TYPE(TEXT), false}},
        .used = {true, used},
        .map = {0, 1},
        .file_columns = 2,
        .bytes = bytes,
        .size = strlen(bytes),
    };
    return example;
}

static status begin_example(struct scan_example *example, uint32_t field_limit,
                            uint32_t *out_offset)
{
    example->table = (struct table){.name = TEXT_LITERAL("t"), .schema = {example->fields, 2}};
    struct chunk_scan *scan = NULL;
    assert_int_equal(
        chunk_scan_create(&example->table, example->used, field_limit, NULL, &scan, &err),
        STATUS_OK);
    struct chunk chunk = {.bytes = example->bytes,
                          .size = example->size,
                          .file_columns = example->file_columns,
                          .column_map = example->map};
    status result = chunk_scan_begin(scan, &chunk, &err);
    *out_offset = chunk_scan_error_offset(scan);
    chunk_scan_destroy(scan);
    return result;
}

static void an_unclosed_quote_is_placed(void **state)
{
    (void)state;
    char bytes[] = "1,x\n2,\"abc\n3,y\n";
    struct scan_example example = small_example(bytes, true);
    uint32_t offset = 0;
    assert_int_equal(begin_example(&example, 100, &offset), STATUS_INPUT);
    assert_int_equal(offset, 6);
}

static void a_field_beyond_the_limit_is_refused_if_it_is_read(void **state)
{
    (void)state;
    char bytes[] = "1,x\n2,abcdefgh\r\n3,y\n";
    uint32_t offset = 0;
    struct scan_example used = small_example(bytes, true);
    assert_int_equal(begin_example(&used, 7, &offset), STATUS_LIMIT);
    assert_int_equal(offset, 6);
    assert_string_equal(err.text, "a field has 8 bytes; the limit is 7, see --field-limit");
    assert_int_equal(begin_example(&used, 8, &offset), STATUS_OK);
    struct scan_example unused = small_example(bytes, false);
    assert_int_equal(begin_example(&unused, 7, &offset), STATUS_OK);
    char quoted_bytes[] = "1,x\n2,\"abc\nefgh\"\n";
    struct scan_example quoted = small_example(quoted_bytes, true);
    assert_int_equal(begin_example(&quoted, 8, &offset), STATUS_OK);
    assert_int_equal(begin_example(&quoted, 7, &offset), STATUS_LIMIT);
    char long_number[] = "1,x\n000000002,a\n";
    struct scan_example checked = small_example(long_number, false);
    checked.used[0] = false;
    assert_int_equal(begin_example(&checked, 7, &offset), STATUS_LIMIT);
    assert_int_equal(offset, 4);
}

static void like_chunks_allocate_nothing(void **state)
{
    (void)state;
    struct random random = {11};
    struct scan_example example = {.bytes = malloc(CHUNK_MAX)};
    assert_non_null(example.bytes);
    make_table(&example, &random);
    for (int i = 0; i < 3000; i++) {
        for (uint32_t at = 0; at < example.file_columns; at++) {
            put(&example, at > 0 ? ",\"a\"\"b\"" : "\"a\"\"b\"", at > 0 ? 7 : 6);
        }
        put(&example, "\n", 1);
    }
    struct chunk_scan *scan = NULL;
    assert_int_equal(chunk_scan_create(&example.table, example.used, CHUNK_MAX, NULL, &scan, &err),
                     STATUS_OK);
    check_chunk(&example, scan, &random);
    memory_fail_after(0);
    check_chunk(&example, scan, &random);
    assert_false(memory_was_refused());
    memory_fail_never();
    chunk_scan_destroy(scan);
    free(example.bytes);
}

/* Every allocation is made to fail once. */
static void a_scan_without_memory_fails_and_leaks_nothing(void **state)
{
    (void)state;
    char bytes[] = "1,\"a\"\"b\"\nx,\"c\"\"d\"\n2\n";
    for (size_t allowed = 0;; allowed++) {
        struct scan_example example = small_example(bytes, true);
        example.table = (struct table){.name = TEXT_LITERAL("t"), .schema = {example.fields, 2}};
        struct budget budget = {0};
        struct chunk_scan *scan = NULL;
        struct chunk chunk = {
            .bytes = bytes, .size = strlen(bytes), .file_columns = 2, .column_map = example.map};
        struct batch batch;
        struct selection selection;
        bool more;
        memory_fail_after(allowed);
        status result = chunk_scan_create(&example.table, example.used, 1000, &budget, &scan, &err);
        if (result == STATUS_OK) result = chunk_scan_begin(scan, &chunk, &err);
        if (result == STATUS_OK) result = chunk_scan_next(scan, &batch, &selection, &more, &err);
        if (result == STATUS_OK)
            result = chunk_scan_materialize(scan, 1, selection, UINT32_MAX, &err);
        bool refused = memory_was_refused();
        memory_fail_never();
        chunk_scan_destroy(scan);
        assert_int_equal(atomic_load(&budget.used_bytes), 0);
        assert_int_equal(result, refused ? STATUS_MEMORY : STATUS_OK);
        if (!refused) break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_and_audit_are_those_of_the_model),
        cmocka_unit_test(short_numbers_read_alike_everywhere),
        cmocka_unit_test(an_unclosed_quote_is_placed),
        cmocka_unit_test(a_field_beyond_the_limit_is_refused_if_it_is_read),
        cmocka_unit_test(like_chunks_allocate_nothing),
        cmocka_unit_test(a_scan_without_memory_fails_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
