/* SPDX-License-Identifier: Apache-2.0 */
/* test_print.c - answers are printed right, whatever bytes they hold.
 *
 * Method: for characters, a naive model of "maximal subparts" that tries every continuation is
 * compared over all short sequences of the bytes where anything changes. For CSV, a naive reader
 * takes back every short text over the bytes that matter. Tables are compared with drawings and,
 * for every number of rows and every limit, with the rows that must be there.
 */
#include "unit/test.h"

#include <math.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/calendar.h"
#include "engine/base/memory.h"
#include "engine/data/print_csv.h"
#include "engine/data/print_json.h"
#include "engine/data/print_table.h"
#include "engine/data/print_text.h"
#include "engine/data/print_value.h"

static struct text buf_text(const struct buf *buf)
{
    return (struct text){(const char *)buf->bytes, (uint32_t)buf->size};
}

static void assert_text(const struct buf *buf, const char *expected)
{
    assert_false(buf->failed);
    struct text got = buf_text(buf);
    if (got.size != strlen(expected) || memcmp(got.bytes, expected, got.size) != 0) {
        fail_msg("got:\n%.*s\nexpected:\n%s", (int)got.size, got.bytes, expected);
    }
}

/* --- Characters. --- */

/* The code of `size` bytes read as one sequence, or -1: decoded by pattern, then checked by
 * encoding the result again, so that overlong forms need no rule of their own. */
static int64_t model_decode(const uint8_t *bytes, size_t size)
{
    static const uint8_t marks[] = {0, 0, 0xC0, 0xE0, 0xF0};
    static const uint8_t masks[] = {0, 0x80, 0xE0, 0xF0, 0xF8};
    static const uint32_t lows[] = {0, 0, 0x80, 0x800, 0x10000};
    if ((bytes[0] & masks[size]) != marks[size]) return -1;
    uint32_t code = bytes[0] & (uint8_t)~masks[size];
    for (size_t i = 1; i < size; i++) {
        if ((bytes[i] & 0xC0) != 0x80) return -1;
        code = code << 6 | (bytes[i] & 0x3Fu);
    }
    bool is_valid = code >= lows[size] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    return is_valid ? (int64_t)code : -1;
}

/* Whether some continuation makes a character of these bytes. */
static bool model_can_continue(const uint8_t *bytes, size_t size)
{
    static const uint8_t next[] = {0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF};
    uint8_t tried[4];
    memcpy(tried, bytes, size);
    for (size_t length = size; length <= 4; length++) {
        size_t ways = 1;
        for (size_t i = size; i < length; i++) {
            ways *= sizeof next;
        }
        for (size_t way = 0; way < ways; way++) {
            size_t rest = way;
            for (size_t i = size; i < length; i++, rest /= sizeof next) {
                tried[i] = next[rest % sizeof next];
            }
            if (model_decode(tried, length) >= 0) return true;
        }
    }
    return false;
}

static struct print_character model_character(const uint8_t *bytes, size_t size)
{
    for (size_t length = 1; length <= 4 && length <= size; length++) {
        int64_t code = model_decode(bytes, length);
        if (code >= 0) return (struct print_character){(uint32_t)code, (uint32_t)length, false};
    }
    uint32_t longest = 1;
    for (size_t length = 2; length <= 3 && length <= size; length++) {
        if (model_can_continue(bytes, length)) longest = (uint32_t)length;
    }
    return (struct print_character){PRINT_REPLACEMENT, longest, true};
}

static const uint8_t extremes[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF,
                                   0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE,
                                   0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF};

static void characters_are_those_of_the_model_for_all_short_sequences(void **state)
{
    (void)state;
    for (size_t length = 1; length <= 4; length++) {
        size_t ways = 1;
        for (size_t i = 0; i < length; i++) {
            ways *= sizeof extremes;
        }
        for (size_t way = 0; way < ways; way++) {
            uint8_t bytes[4];
            size_t rest = way;
            for (size_t i = 0; i < length; i++, rest /= sizeof extremes) {
                bytes[i] = extremes[rest % sizeof extremes];
            }
            struct text text = {(const char *)bytes, (uint32_t)length};
            struct print_character got = print_character_at(text, 0);
            struct print_character expected = model_character(bytes, length);
            if (got.code != expected.code || got.size != expected.size ||
                got.is_invalid != expected.is_invalid) {
                fail_msg("%02x %02x.. of %zu: U+%04x %u, expected U+%04x %u", bytes[0],
                         length > 1 ? bytes[1] : 0, length, (unsigned)got.code, (unsigned)got.size,
                         (unsigned)expected.code, (unsigned)expected.size);
            }
        }
    }
}

static void json_strings_escape_controls_and_replace_what_is_not_utf8(void **state)
{
    (void)state;
    static const struct {
        struct text text;
        const char *expected;
    } cases[] = {
        {{"", 0}, "\"\""},
        {{"plain", 5}, "\"plain\""},
        {{"\"\\/", 3}, "\"\\\"\\\\/\""},
        {{"\b\f\n\r\t\0\x1f\x7f", 8}, "\"\\b\\f\\n\\r\\t\\u0000\\u001f\x7f\""},
        {{"\xC3\xA9\xE6\x97\xA5\xF0\x9F\x98\x80", 9}, "\"\xC3\xA9\xE6\x97\xA5\xF0\x9F\x98\x80\""},
        {{"a\xFFz", 3}, "\"a\xEF\xBF\xBDz\""},
        {{"\xE6\x97", 2}, "\"\xEF\xBF\xBD\""},
        {{"\xED\xA0\x80", 3}, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {{"\xF0\x9F\x98\"", 4}, "\"\xEF\xBF\xBD\\\"\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buf out = {0};
        print_json_string(cases[i].text, &out);
        assert_text(&out, cases[i].expected);
        buf_done(&out);
    }
}

static void visible_text_fits_its_width_and_holds_no_control_character(void **state)
{
    (void)state;
    struct text hostile = TEXT_LITERAL("a\033[31m\n\t\xC2\x85\xE2\x80\xAE\xFF"
                                       "e\xCC\x81\xE6\x97\xA5z");
    struct buf out = {0};
    uint32_t width = print_visible(hostile, 1000, &out);
    assert_text(&out, "a\\x1b[31m\\n\\t\\u0085\\u202e\xEF\xBF\xBD"
                      "e\xCC\x81\xE6\x97\xA5z");
    assert_int_equal(width, 1 + 4 + 4 + 2 + 2 + 6 + 6 + 1 + 1 + 2 + 1);
    for (uint32_t limit = 0; limit < width; limit++) {
        buf_reset(&out);
        uint32_t used = print_visible(hostile, limit, &out);
        assert_true(used <= limit);
        if (limit > 0) assert_memory_equal(out.bytes + out.size - 3, "…", 3);
    }
    buf_reset(&out);
    assert_int_equal(print_visible(hostile, width, &out), width);
    buf_done(&out);
}

/* --- Values. --- */

enum { ALL_ROWS = 3, ALL_COLUMNS = 10 };

#define FIELD(title, of)                                                                           \
    {                                                                                              \
        .name = {(title), sizeof(title) - 1}, .type = {.kind = TYPE_##of }                         \
    }

static const struct field all_fields[ALL_COLUMNS] = {
    FIELD("n", NULL),       FIELD("b", BOOL),
    FIELD("i", INT),        {.name = {"d", 1}, .type = {TYPE_DECIMAL, 18, 3}},
    FIELD("f", DOUBLE),     FIELD("t", TEXT),
    FIELD("date", DATE),    FIELD("time", TIMESTAMP),
    FIELD("ts", LIST_TEXT), FIELD("is", LIST_INT),
};

static const struct schema all_schema = {all_fields, ALL_COLUMNS};

/* Row 0: plain values; row 1: all NULL; row 2: unusual ones. */
struct all_types {
    uint8_t nulls[ALL_ROWS];
    uint8_t bools[ALL_ROWS];
    int64_t ints[ALL_ROWS];
    int64_t decimals[ALL_ROWS];
    double doubles[ALL_ROWS];
    struct text texts[ALL_ROWS];
    int64_t dates[ALL_ROWS];
    int64_t timestamps[ALL_ROWS];
    struct list lists[ALL_ROWS];
    struct text elements[2];
    int64_t numbers[2];
    struct column text_child;
    struct column int_child;
    struct column columns[ALL_COLUMNS];
    struct batch batch;
};

static void all_types_init(struct all_types *all)
{
    *all = (struct all_types){
        .nulls = {0, 1, 0},
        .bools = {1, 0, 0},
        .ints = {42, 0, INT64_MIN},
        .decimals = {1500, 0, -1},
        .doubles = {0.1, 0, (double)INFINITY},
        .texts = {TEXT_LITERAL("word"), TEXT_LITERAL("x"), TEXT_LITERAL("")},
        .dates = {date_pack(2000, 2, 29), 0, date_pack(1, 1, 1)},
        .lists = {{0, 2}, {0, 0}, {0, 0}},
        .elements = {TEXT_LITERAL("a"), TEXT_LITERAL("b \"c\"")},
        .numbers = {-1, 2},
    };
    all->timestamps[0] = timestamp_of_date(all->dates[0]);
    all->timestamps[2] = timestamp_of_date(all->dates[2]) + 500000;
    all->text_child = (struct column){.type = TYPE(TEXT), .texts = all->elements};
    all->int_child = (struct column){.type = TYPE(INT), .ints = all->numbers};
    void *arrays[ALL_COLUMNS] = {
        all->bools, all->bools, all->ints,       all->decimals, all->doubles,
        all->texts, all->dates, all->timestamps, all->lists,    all->lists,
    };
    for (uint32_t i = 0; i < ALL_COLUMNS; i++) {
        all->columns[i] = (struct column){
            .type = all_fields[i].type,
            .nulls = all->nulls,
            .data = arrays[i],
        };
    }
    all->columns[8].child = &all->text_child;
    all->columns[9].child = &all->int_child;
    all->batch = (struct batch){ALL_ROWS, ALL_COLUMNS, all->columns};
}

static void csv_prints_every_type_and_tells_null_from_empty(void **state)
{
    (void)state;
    struct all_types all;
    struct buf out = {0};
    all_types_init(&all);
    print_csv_header(&all_schema, &out);
    print_csv_rows(&all_schema, &all.batch, &out);
    assert_text(&out, "n,b,i,d,f,t,date,time,ts,is\n"
                      ",true,42,1.500,0.1,word,2000-02-29,2000-02-29 00:00:00,"
                      "\"[a, b \"\"c\"\"]\",\"[-1, 2]\"\n"
                      ",,,,,,,,,\n"
                      ",false,-9223372036854775808,-0.001,inf,\"\",0001-01-01,"
                      "0001-01-01 00:00:00.5,[],[]\n");
    buf_done(&out);
}

static void json_prints_every_type(void **state)
{
    (void)state;
    struct all_types all;
    struct buf out = {0};
    all_types_init(&all);
    print_json_rows(&all_schema, &all.batch, 0, &out);
    assert_text(&out, "\n[null,true,42,1.500,0.1,\"word\",\"2000-02-29\",\"2000-02-29 00:00:00\","
                      "[\"a\",\"b \\\"c\\\"\"],[-1,2]],"
                      "\n[null,null,null,null,null,null,null,null,null,null],"
                      "\n[null,false,-9223372036854775808,-0.001,\"inf\",\"\",\"0001-01-01\","
                      "\"0001-01-01 00:00:00.5\",[],[]]");
    buf_reset(&out);
    print_json_columns(&all_schema, &out);
    assert_text(&out,
                "[{\"name\":\"n\",\"type\":\"NULL\"},{\"name\":\"b\",\"type\":\"BOOL\"},"
                "{\"name\":\"i\",\"type\":\"INT\"},{\"name\":\"d\",\"type\":\"DECIMAL(18,3)\"},"
                "{\"name\":\"f\",\"type\":\"DOUBLE\"},{\"name\":\"t\",\"type\":\"TEXT\"},"
                "{\"name\":\"date\",\"type\":\"DATE\"},"
                "{\"name\":\"time\",\"type\":\"TIMESTAMP\"},"
                "{\"name\":\"ts\",\"type\":\"TEXT[]\"},{\"name\":\"is\",\"type\":\"INT[]\"}]");
    buf_done(&out);
}

static void ndjson_puts_the_query_first(void **state)
{
    (void)state;
    struct all_types all;
    struct buf out = {0};
    struct schema first = {all_fields + 1, 2};
    all_types_init(&all);
    struct batch batch = {ALL_ROWS, 2, all.columns + 1};
    print_ndjson_rows(TEXT_LITERAL("q\"1"), &first, &batch, &out);
    assert_text(&out, "{\"query\":\"q\\\"1\",\"b\":true,\"i\":42}\n"
                      "{\"query\":\"q\\\"1\",\"b\":null,\"i\":null}\n"
                      "{\"query\":\"q\\\"1\",\"b\":false,\"i\":-9223372036854775808}\n");
    buf_done(&out);
}

static void csv_can_be_read_back_for_all_short_texts(void **state)
{
    (void)state;
    static const char letters[] = {',', '"', '\n', '\r', ' ', 'a', '\0'};
    static const struct field field = FIELD("t", TEXT);
    const struct schema schema = {&field, 1};
    struct buf out = {0};
    for (size_t length = 0; length <= 5; length++) {
        size_t ways = 1;
        for (size_t i = 0; i < length; i++) {
            ways *= sizeof letters;
        }
        for (size_t way = 0; way < ways; way++) {
            char bytes[5] = {0};
            bool is_special = length == 0;
            size_t rest = way;
            for (size_t i = 0; i < length; i++, rest /= sizeof letters) {
                bytes[i] = letters[rest % sizeof letters];
                is_special = is_special || rest % sizeof letters < 4;
            }
            struct text text = {bytes, (uint32_t)length};
            struct column column = {.type = TYPE(TEXT), .texts = &text};
            struct batch batch = {1, 1, &column};
            buf_reset(&out);
            print_csv_rows(&schema, &batch, &out);

            char back[16];
            size_t back_size = 0;
            bool is_quoted = out.bytes[0] == '"';
            size_t end = out.size - 1 - is_quoted;
            assert_int_equal(out.bytes[out.size - 1], '\n');
            assert_int_equal(is_quoted, is_special);
            for (size_t i = is_quoted; i < end; i++) {
                if (is_quoted && out.bytes[i] == '"') assert_int_equal(out.bytes[++i], '"');
                back[back_size++] = (char)out.bytes[i];
            }
            assert_int_equal(back_size, length);
            assert_memory_equal(back, bytes, length);
        }
    }
    buf_done(&out);
}

/* --- Tables. --- */

static const struct print_table_options wide = {
    .line_width = 200,
    .text_width = 40,
    .row_limit = PRINT_TABLE_ALL_ROWS,
};

static void a_table_shows_names_types_rows_and_their_number(void **state)
{
    (void)state;
    static const struct field fields[] = {FIELD("id", INT), FIELD("a title", TEXT)};
    const struct schema schema = {fields, 2};
    int64_t ids[] = {1, -20, 3};
    struct text titles[] = {TEXT_LITERAL("x\ny"), TEXT_LITERAL("\xE6\x97\xA5\xE6\x9C\xAC"),
                            TEXT_LITERAL("")};
    uint8_t nulls[] = {0, 0, 1};
    struct column columns[] = {{.type = TYPE(INT), .ints = ids},
                               {.type = TYPE(TEXT), .texts = titles, .nulls = nulls}};
    struct batch batch = {3, 2, columns};
    struct print_table table;
    struct buf out = {0};
    print_table_init(&table, &schema, wide);
    print_table_add(&table, &batch);
    print_table_finish(&table, TEXT_LITERAL("q1"), &out);
    print_table_done(&table);
    assert_text(&out, "q1\n"
                      "┌─────┬─────────┐\n"
                      "│  id │ a title │\n"
                      "│ INT │ TEXT    │\n"
                      "├─────┼─────────┤\n"
                      "│   1 │ x\\ny    │\n"
                      "│ -20 │ 日本    │\n"
                      "│   3 │ NULL    │\n"
                      "└─────┴─────────┘\n"
                      "3 rows\n");
    buf_done(&out);
}

static void a_table_without_rows_still_has_its_head(void **state)
{
    (void)state;
    static const struct field field = FIELD("only", BOOL);
    const struct schema schema = {&field, 1};
    struct print_table table;
    struct buf out = {0};
    print_table_init(&table, &schema, wide);
    print_table_finish(&table, TEXT_LITERAL(""), &out);
    print_table_done(&table);
    assert_text(&out, "┌──────┐\n│ only │\n│ BOOL │\n├──────┤\n└──────┘\n0 rows\n");
    buf_done(&out);
}

/* Adds rows 0..count-1 in batches of a given size and draws them. */
static void draw_numbers(uint32_t count, uint32_t batch_rows, uint64_t limit, struct buf *out)
{
    static const struct field field = FIELD("n", INT);
    const struct schema schema = {&field, 1};
    struct print_table_options options = wide;
    struct print_table table;
    int64_t numbers[512];
    options.row_limit = limit;
    options.cut_note = "more";
    for (uint32_t i = 0; i < count; i++) {
        numbers[i] = i;
    }
    print_table_init(&table, &schema, options);
    for (uint32_t first = 0; first < count; first += batch_rows) {
        struct column column = {.type = TYPE(INT), .ints = numbers + first};
        uint32_t left = count - first;
        struct batch batch = {left < batch_rows ? left : batch_rows, 1, &column};
        print_table_add(&table, &batch);
    }
    print_table_finish(&table, TEXT_LITERAL(""), out);
    print_table_done(&table);
}

static void check_cut(uint32_t count, uint32_t batch_rows, uint32_t limit)
{
    struct buf drawn = {0};
    struct buf expected = {0};
    draw_numbers(count, batch_rows, limit, &drawn);
    buf_put_string(&expected, "┌─────┐\n│   n │\n│ INT │\n├─────┤\n");
    uint32_t head = limit - limit / 2;
    uint32_t tail = limit / 2;
    for (uint32_t i = 0; i < count; i++) {
        if (count <= limit || i < head || i >= count - tail) {
            buf_format(&expected, "│ %3u │\n", i);
        } else if (i == head) {
            buf_put_string(&expected, "│   … │\n");
        }
    }
    buf_format(&expected, "└─────┘\n%u row%s", count, count == 1 ? "" : "s");
    if (count > limit) buf_format(&expected, " (%u shown; more)", limit);
    buf_put_string(&expected, "\n");
    buf_put_u8(&expected, '\0');
    assert_text(&drawn, (const char *)expected.bytes);
    buf_done(&drawn);
    buf_done(&expected);
}

static void a_limited_table_shows_the_first_and_the_last_rows(void **state)
{
    (void)state;
    static const uint32_t counts[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 40, 41, 150, 300, 511};
    static const uint32_t batches[] = {1, 2, 3, 7, 64, 512};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        for (size_t j = 0; j < sizeof batches / sizeof batches[0]; j++) {
            for (uint32_t limit = 0; limit <= 6; limit++) {
                check_cut(counts[i], batches[j], limit);
            }
            check_cut(counts[i], batches[j], 40);
        }
    }
}

static uint32_t line_width(struct text line)
{
    uint32_t width = 0;
    for (size_t at = 0; at < line.size;) {
        struct print_character c = print_character_at(line, at);
        width += print_character_width(c.code);
        at += c.size;
    }
    return width;
}

static void texts_are_cut_so_that_lines_fit_but_numbers_are_not(void **state)
{
    (void)state;
    static const struct field fields[] = {FIELD("n", INT), FIELD("long", TEXT), FIELD("s", TEXT)};
    const struct schema schema = {fields, 3};
    char long_bytes[600];
    memset(long_bytes, 'x', sizeof long_bytes);
    int64_t number = INT64_MIN;
    struct text texts[] = {{long_bytes, sizeof long_bytes}, TEXT_LITERAL("short")};
    struct column columns[] = {{.type = TYPE(INT), .ints = &number},
                               {.type = TYPE(TEXT), .texts = &texts[0]},
                               {.type = TYPE(TEXT), .texts = &texts[1]}};
    struct batch batch = {1, 3, columns};
    for (uint32_t width = 20; width < 200; width++) {
        struct print_table_options options = {
            .line_width = width, .text_width = 10, .row_limit = PRINT_TABLE_ALL_ROWS};
        struct print_table table;
        struct buf out = {0};
        print_table_init(&table, &schema, options);
        print_table_add(&table, &batch);
        print_table_finish(&table, TEXT_LITERAL(""), &out);
        print_table_done(&table);
        buf_put_u8(&out, '\0');
        struct text first = {(const char *)out.bytes,
                             (uint32_t)strcspn((const char *)out.bytes, "\n")};
        uint32_t least = 1 + 3 * 3 + 20 + 10 + 5;
        assert_int_equal(line_width(first), width > least ? width : least);
        assert_non_null(strstr((const char *)out.bytes, "-9223372036854775808"));
        assert_non_null(strstr((const char *)out.bytes, "x… │ short │"));
        buf_done(&out);
    }
}

static void counts_have_commas(void **state)
{
    (void)state;
    static const struct {
        uint64_t count;
        const char *expected;
    } cases[] = {{0, "0"},
                 {999, "999"},
                 {1000, "1,000"},
                 {104731, "104,731"},
                 {1234567, "1,234,567"},
                 {UINT64_MAX, "18,446,744,073,709,551,615"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buf out = {0};
        print_count(cases[i].count, &out);
        assert_text(&out, cases[i].expected);
        buf_done(&out);
    }
}

static void every_refused_allocation_is_told_and_leaks_nothing(void **state)
{
    (void)state;
    struct all_types all;
    all_types_init(&all);
    bool is_over = false;
    for (size_t allowed = 0; !is_over; allowed++) {
        struct buf out = {0};
        struct print_table table;
        struct print_table_options options = wide;
        options.row_limit = 2;
        memory_fail_after(allowed);
        print_table_init(&table, &all_schema, options);
        for (int i = 0; i < 200; i++) {
            print_table_add(&table, &all.batch);
        }
        print_table_finish(&table, TEXT_LITERAL("q"), &out);
        print_csv_rows(&all_schema, &all.batch, &out);
        print_json_rows(&all_schema, &all.batch, 0, &out);
        is_over = !memory_was_refused();
        memory_fail_never();
        assert_int_equal(out.failed, !is_over);
        print_table_done(&table);
        buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_are_those_of_the_model_for_all_short_sequences),
        cmocka_unit_test(json_strings_escape_controls_and_replace_what_is_not_utf8),
        cmocka_unit_test(visible_text_fits_its_width_and_holds_no_control_character),
        cmocka_unit_test(csv_prints_every_type_and_tells_null_from_empty),
        cmocka_unit_test(json_prints_every_type),
        cmocka_unit_test(ndjson_puts_the_query_first),
        cmocka_unit_test(csv_can_be_read_back_for_all_short_texts),
        cmocka_unit_test(a_table_shows_names_types_rows_and_their_number),
        cmocka_unit_test(a_table_without_rows_still_has_its_head),
        cmocka_unit_test(a_limited_table_shows_the_first_and_the_last_rows),
        cmocka_unit_test(texts_are_cut_so_that_lines_fit_but_numbers_are_not),
        cmocka_unit_test(counts_have_commas),
        cmocka_unit_test(every_refused_allocation_is_told_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
