/* SPDX-License-Identifier: Apache-2.0 */
/* test_pyliteral.c - lists of Python dictionaries give their strings, and anything else nothing.
 *
 * Method: tables of what parses and what does not, each also inside a dictionary; random lists
 * written by a generator that knows what they hold; every prefix of a list, which never parses.
 * Texts stand in blocks of exactly their size.
 */
#include "unit/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/memory.h"
#include "engine/base/random.h"
#include "engine/data/pyliteral.h"

/* Plucks "name" from an exact copy of the bytes; the copy must be freed. */
static enum pyliteral_result pluck(struct text literal, struct pyliteral_sink *sink, char **copy)
{
    *copy = memory_alloc(NULL, literal.size + 1u);
    assert_non_null(*copy);
    char *bytes = *copy + 1;
    if (literal.size > 0) memcpy(bytes, literal.bytes, literal.size);
    return pyliteral_pluck((struct text){bytes, literal.size}, TEXT_LITERAL("name"), sink);
}

/* The strings found, each followed by '|'; NULL: does not parse. */
static void check(struct text literal, const char *expected)
{
    struct arena arena;
    arena_init(&arena, NULL);
    struct pyliteral_sink sink = {.arena = &arena};
    char *copy;
    enum pyliteral_result result = pluck(literal, &sink, &copy);
    struct buf joined = {0};
    for (size_t i = 0; i < sink.count; i++) {
        buf_put_text(&joined, sink.items[i]);
        buf_put_u8(&joined, '|');
    }
    buf_put_u8(&joined, 0);
    assert_false(joined.failed);
    if (expected == NULL) {
        if (result != PYLITERAL_MALFORMED) fail_msg("parsed: %.*s", TEXT_ARGS(literal));
        assert_int_equal(sink.count, 0);
    } else {
        if (result != PYLITERAL_OK) fail_msg("did not parse: %.*s", TEXT_ARGS(literal));
        assert_string_equal((const char *)joined.bytes, expected);
    }
    buf_done(&joined);
    memory_free(NULL, copy, literal.size + 1u);
    arena_done(&arena);
}

static void check_string(const char *literal, const char *expected)
{
    check(text_of(literal), expected);
}

static void strings_under_the_key_are_found(void **state)
{
    (void)state;
    check_string("[]", "");
    check_string(" \t\r\n\f[ \n ] \n", "");
    check_string("[{'name': 'a'}]", "a|");
    check_string("[{'id': 1, 'name': 'Tom Hanks'}, {'id': 2, 'name': \"O'Neil\"}]",
                 "Tom Hanks|O'Neil|");
    check_string("[{\"name\":'a',},{'name':'b'},]", "a|b|");
    check_string("[{'name': ''}]", "|");
    check_string("[{'name': None}, {'name': 3}, {'name': ['x']}, {'name': ('x',)}, {}]", "");
    check_string("['name', 1, ['name'], ('name', 'x'), None, True, False]", "");
    check_string("[{'x': {'name': 'inner'}}, [{'name': 'inner'}], ({'name': 'inner'},)]", "");
    check_string("[{'names': 'a', 'nam': 'b', '': 'c', 'Name': 'd'}]", "");
    check_string("[{1: 'a', None: 'b', ('name',): 'c', (): 'd', 1.5: 'e'}]", "");
    check_string("[{'a': 'name', 'b': 'x'}]", "");
}

static void the_last_of_equal_keys_counts(void **state)
{
    (void)state;
    check_string("[{'name': 'a', 'name': 'b'}]", "b|");
    check_string("[{'name': 'a', 'name': None}]", "");
    check_string("[{'name': None, 'name': 'a'}]", "a|");
    check_string("[{'name': 'a', 'n\\x61me': 'b'}]", "b|");
    check_string("[{'name': 'a', 'name': {'name': 'b'}}]", "");
}

static void parentheses_without_comma_are_transparent(void **state)
{
    (void)state;
    check_string("[({'name': 'a'})]", "a|");
    check_string("[{('name'): (('a'))}]", "a|");
    check_string("[({'name': 'a'},)]", "");
    check_string("[{'name': ('a',)}]", "");
    check_string("[()]", "");
    check_string("[(,)]", NULL);
    check_string("([])", NULL);
}

static void escapes_become_bytes(void **state)
{
    (void)state;
    check_string("[{'name': '\\\\ \\' \\\" \\n\\r\\t\\a\\b\\f\\v'}]", "\\ ' \" \n\r\t\a\b\f\v|");
    check_string("[{'name': '\\x41\\xe9\\u00e9\\u20ac\\U0001F600'}]",
                 "A\xc3\xa9\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80|");
    check_string("[{'name': '\\101\\1014\\7z\\18\\377\\777'}]", "AA4\7z\0018\xc3\xbf\xc7\xbf|");
    check_string("[{'name': '\\q\\8\\ \\{'}]", "\\q\\8\\ \\{|");
    check_string("[{'name': 'a\\\nb\\\r\nc\\\rd'}]", "abcd|");
    check_string("[{'name': '\\ud800 \\ud83d\\ude00'}]", "\xed\xa0\x80 \xed\xa0\xbd\xed\xb8\x80|");
    check_string("[{'name': '\\U0010ffff'}]", "\xf4\x8f\xbf\xbf|");
    check(TEXT_LITERAL("[{'name': '\xff\x80\xc3\xa9'}]"), "\xff\x80\xc3\xa9|");
    check_string("[{'na\\\nme': 'a'}, {'\\156ame': 'b'}, {'nam\\u0065': 'c'}]", "a|b|c|");
    check_string("[{'name\\x41': 'a'}, {'nam\\x41': 'b'}, {'na\\x6d': 'c'}]", "");
}

static void wrong_escapes_do_not_parse_even_where_not_wanted(void **state)
{
    (void)state;
    static const char *const escapes[] = {"\\x",       "\\x4",    "\\xg1",       "\\u123",
                                          "\\u12g4",   "\\U0011", "\\U00110000", "\\Uffffffff",
                                          "\\N{DASH}", "\\N",     "\\"};
    for (size_t i = 0; i < sizeof escapes / sizeof escapes[0]; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "[{'name': 'a'}, '%s']", escapes[i]);
        check_string(text, NULL);
        (void)snprintf(text, sizeof text, "[{'%s': 1, 'name': 'a'}]", escapes[i]);
        check_string(text, NULL);
    }
}

static void strings_come_in_all_quotes_and_prefixes(void **state)
{
    (void)state;
    check_string("[{'name': '''a'b''c\n\"d'''}]", "a'b''c\n\"d|");
    check_string("[{'name': \"\"\"a\\\"\"\"\"}]", "a\"|");
    check_string("[{'name': ''''''}]", "|");
    check_string("[{'name': '''a\r\nb\rc\\\r\nd'''}]", "a\nb\ncd|");
    check_string("[{'name': r'a\\n\\x\\N'}, {r'name': R\"b\\\"\"}]", "a\\n\\x\\N|b\\\"|");
    check_string("[{'name': r'a\\\r\nb'}]", "a\\\nb|");
    check_string("[{u'name': U'a\\n'}]", "a\n|");
    check_string("[{'name': 'tab\there'}]", "tab\there|");
    static const char *const wrong[] = {
        "b'a'",     "f'a'",      "rb'a'", "br'a'",  "ur'a'", "'a' 'b'", "'a''b'", "'a\nb'",
        "'a\rb'",   "'a",        "a'",    "'''a''", "\"a'",  "r'a\\'",  "r 'a'",  "r",
        "'''a''''", "'''a\\'''", "u",     "x'a'",   "'a'x",  "`a`"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "[{'name': %s}]", wrong[i]);
        check_string(text, NULL);
        (void)snprintf(text, sizeof text, "[%s]", wrong[i]);
        check_string(text, NULL);
    }
}

static void numbers_are_those_of_python(void **state)
{
    (void)state;
    static const char *const right[] = {
        "0",    "00",  "0_0",  "1",     "-1",    "+1",          "- 1",  "1_000", "1.5",
        ".5",   "5.",  "1e5",  "1E-5",  "1.e+5", "1_0.0_1e1_0", "0x1F", "0X_f",  "0b1_0",
        "0o17", "0O7", "01.5", "012e3", "0.0",   "-0x1",        "1e0",  "-.5e1"};
    static const char *const wrong[] = {
        "012", "0_7", "1_",  "_1",  "1__0", "1._5", "1e", "1e+",   "1e_5", "0x",  "0xg",
        "0b2", "0o8", "0b",  "--1", "+-1",  "-",    ".",  "1.5.",  "1 2",  "1+2", "1+2j",
        "1j",  "0x_", "inf", "nan", "1a",   "1e5x", "~1", "-True", "1_.5", "١"};
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "[%s, {'name': 'a', %s: %s}]", right[i], right[i],
                       right[i]);
        check_string(text, "a|");
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "[{'name': 'a'}, %s]", wrong[i]);
        check_string(text, NULL);
        (void)snprintf(text, sizeof text, "[{'name': 'a', 'x': %s}]", wrong[i]);
        check_string(text, NULL);
    }
}

static void nothing_else_parses(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        " ",
                                        "x",
                                        "{}",
                                        "()",
                                        "'a'",
                                        "None",
                                        "[",
                                        "]",
                                        "[]]",
                                        "[][]",
                                        "[] x",
                                        "[,]",
                                        "[1,,2]",
                                        "[1 2]",
                                        "[}",
                                        "[)",
                                        "[(]",
                                        "[{]",
                                        "[{1}]",
                                        "[{1, 2}]",
                                        "[{1: 2, 3}]",
                                        "[{:}]",
                                        "[{1:}]",
                                        "[{1:,}]",
                                        "[{:1}]",
                                        "[{,}]",
                                        "[{1 2}]",
                                        "[{1: 2 3}]",
                                        "[{1:: 2}]",
                                        "[1: 2]",
                                        "[(1: 2)]",
                                        "[*[]]",
                                        "[{**{}}]",
                                        "[set()]",
                                        "[none]",
                                        "[NoneX]",
                                        "[Truefalse]",
                                        "[true]",
                                        "[...]",
                                        "[a]",
                                        "[f()]",
                                        "[1] # x",
                                        "[1, # x\n2]",
                                        "[\\\n1]",
                                        "[{[]: 1}]",
                                        "[{{}: 1}]",
                                        "[{([],): 1}]",
                                        "[{([]): 1}]",
                                        "[\x01]",
                                        "[\v]",
                                        "\xef\xbb\xbf[]",
                                        "[\xc2\xa0]",
                                        "['a'\xc3\xa9]",
                                        "[{'name': 'a'}",
                                        "[{'name': 'a'},",
                                        "[{'name': 'a'}}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        check_string(wrong[i], NULL);
    }
    check(TEXT_LITERAL("[]\0"), NULL);
    check(TEXT_LITERAL("[\0]"), NULL);
    check((struct text){NULL, 0}, NULL);
}

static void depth_has_a_limit(void **state)
{
    (void)state;
    for (uint32_t depth = 1; depth <= PYLITERAL_DEPTH_MAX + 2; depth++) {
        for (int kind = 0; kind < 3; kind++) {
            struct buf text = {0};
            for (uint32_t i = 0; i < depth; i++) {
                buf_put_string(&text, i == 0 || kind == 0 ? "[" : kind == 1 ? "(" : "{1: ");
            }
            buf_put_string(&text, "1");
            for (uint32_t i = depth; i > 0; i--) {
                buf_put_string(&text, i == 1 || kind == 0 ? "]" : kind == 1 ? ")" : "}");
            }
            assert_false(text.failed);
            check((struct text){(const char *)text.bytes, (uint32_t)text.size},
                  depth <= PYLITERAL_DEPTH_MAX ? "" : NULL);
            buf_done(&text);
        }
    }
    /* A hundred thousand brackets need no stack. */
    struct buf text = {0};
    for (int i = 0; i < 100000; i++) {
        buf_put_string(&text, "[");
    }
    check((struct text){(const char *)text.bytes, (uint32_t)text.size}, NULL);
    buf_done(&text);
}

/* Writes a string of random bytes as Python would or might. */
static void write_string(struct random *random, struct buf *out, struct text string)
{
    char quote = random_below(random, 2) == 0 ? '\'' : '"';
    bool triple = random_below(random, 4) == 0;
    for (int i = 0; i < (triple ? 3 : 1); i++) {
        buf_put_u8(out, (uint8_t)quote);
    }
    for (uint32_t i = 0; i < string.size; i++) {
        unsigned char byte = (unsigned char)string.bytes[i];
        bool must = byte == (unsigned char)quote || byte == '\\' || byte == '\n' || byte == '\r';
        if (!must && (byte >= 0x80 || random_below(random, 20) > 0)) {
            buf_put_u8(out, byte);
        } else if (random_below(random, 2) == 0) {
            buf_format(out, "\\x%02x", byte);
        } else {
            buf_format(out, "\\%03o", byte);
        }
    }
    for (int i = 0; i < (triple ? 3 : 1); i++) {
        buf_put_u8(out, (uint8_t)quote);
    }
}

static struct text random_string(struct random *random, char *out)
{
    static const char interesting[] = "'\"\\\n\r{}[](),: ";
    uint32_t size = random_below(random, 40);
    for (uint32_t i = 0; i < size; i++) {
        uint32_t kind = random_below(random, 6);
        out[i] = kind == 0   ? interesting[random_below(random, sizeof interesting - 1)]
                 : kind == 1 ? (char)random_u64(random)
                             : (char)('a' + random_below(random, 26));
    }
    return (struct text){out, size};
}

static void write_value(struct random *random, struct buf *out, uint32_t depth)
{
    static const char *const scalars[] = {"None", "True", "-1.5e3", "0x1f", "12", "{}", "()", "[]"};
    char bytes[40];
    uint32_t kind = random_below(random, depth < 4 ? 5 : 2);
    if (kind == 0) {
        buf_put_string(out, scalars[random_below(random, 8)]);
    } else if (kind == 1) {
        write_string(random, out, random_string(random, bytes));
    } else {
        buf_put_string(out, kind == 2 ? "[" : kind == 3 ? "(" : "{'name': ");
        write_value(random, out, depth + 1);
        buf_put_string(out, kind == 2 ? ", ]" : kind == 3 ? ",)" : "}");
    }
}

/* A dictionary with the string under "name" among others. */
static void write_entry(struct random *random, struct buf *out, struct text string)
{
    uint32_t before = random_below(random, 3);
    uint32_t after = random_below(random, 3);
    buf_put_string(out, "{");
    for (uint32_t i = 0; i < before + 1 + after; i++) {
        if (i > 0) buf_put_string(out, random_below(random, 2) == 0 ? ", " : ",\n");
        if (i == before) {
            write_string(random, out, TEXT_LITERAL("name"));
            buf_put_string(out, random_below(random, 2) == 0 ? ": " : " :");
            write_string(random, out, string);
        } else {
            buf_format(out, "'key%u': ", i);
            write_value(random, out, 2);
        }
    }
    buf_put_string(out, "}");
}

static void what_is_written_is_found(void **state)
{
    (void)state;
    enum { ENTRIES = 12 };
    struct random random = {.state = 1};
    for (int round = 0; round < 3000; round++) {
        struct buf text = {0};
        char bytes[ENTRIES][40];
        struct text expected[ENTRIES];
        uint32_t count = 0;
        uint32_t entries = random_below(&random, ENTRIES);
        buf_put_string(&text, "[");
        for (uint32_t i = 0; i < entries; i++) {
            if (random_below(&random, 4) == 0) {
                buf_put_string(&text, "(");
                write_value(&random, &text, 1);
                buf_put_string(&text, ",)");
            } else {
                expected[count] = random_string(&random, bytes[count]);
                /* Above 0x7f, an escape is a code point and a byte is a byte: only bytes here. */
                write_entry(&random, &text, expected[count]);
                count++;
            }
            buf_put_string(&text, ", ");
        }
        buf_put_string(&text, "]");
        assert_false(text.failed);

        struct arena arena;
        arena_init(&arena, NULL);
        struct pyliteral_sink sink = {.arena = &arena};
        struct text literal = {(const char *)text.bytes, (uint32_t)text.size};
        char *copy;
        assert_int_equal(pluck(literal, &sink, &copy), PYLITERAL_OK);
        assert_int_equal(sink.count, count);
        for (uint32_t i = 0; i < count; i++) {
            assert_true(text_equal(sink.items[i], expected[i]));
        }
        memory_free(NULL, copy, literal.size + 1u);
        arena_done(&arena);
        buf_done(&text);
    }
}

static void no_prefix_of_a_list_parses(void **state)
{
    (void)state;
    static const char text[] =
        "[{'id': 0x1f, u'name': 'a\\x41\\u00e9'}, (1.5e-3, None), {\"name\": \"\"\"b\n\"\"\"}, "
        "{'name': r'\\'', 'a long key, longer than sixteen bytes': -1_0}, [[], {}, ()], ]";
    check(TEXT_LITERAL(text), "aA\xc3\xa9|b\n|\\'|");
    for (uint32_t size = 0; size < sizeof text - 1; size++) {
        check((struct text){text, size}, NULL);
    }
}

static void results_are_appended_and_a_failure_takes_back_its_own(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, NULL);
    struct pyliteral_sink sink = {.arena = &arena};
    struct text key = TEXT_LITERAL("name");
    struct text literal = TEXT_LITERAL("[{'name': 'a'}, {'name': 'b'}]");
    assert_int_equal(pyliteral_pluck(literal, key, &sink), PYLITERAL_OK);
    assert_int_equal(pyliteral_pluck(TEXT_LITERAL("[{'name': 'c'}, x]"), key, &sink),
                     PYLITERAL_MALFORMED);
    assert_int_equal(sink.count, 2);
    assert_int_equal(pyliteral_pluck(TEXT_LITERAL("[{'': 'd'}]"), (struct text){NULL, 0}, &sink),
                     PYLITERAL_OK);
    assert_int_equal(sink.count, 3);
    assert_true(text_equal(sink.items[1], TEXT_LITERAL("b")));
    assert_true(text_equal(sink.items[2], TEXT_LITERAL("d")));
    assert_ptr_equal(sink.items[0].bytes, literal.bytes + 11); /* Borrowed, not copied. */
    arena_done(&arena);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct buf text = {0};
    buf_put_string(&text, "[");
    for (int i = 0; i < 400; i++) {
        buf_put_string(&text, "{'name': 'some text with an \\x65scape'},");
    }
    buf_put_string(&text, "]");
    assert_false(text.failed);
    for (size_t allowed = 0;; allowed++) {
        struct arena arena;
        arena_init(&arena, NULL);
        struct pyliteral_sink sink = {.arena = &arena};
        memory_fail_after(allowed);
        enum pyliteral_result result =
            pyliteral_pluck((struct text){(const char *)text.bytes, (uint32_t)text.size},
                            TEXT_LITERAL("name"), &sink);
        memory_fail_never();
        assert_int_equal(sink.count, result == PYLITERAL_OK ? 400 : 0);
        arena_done(&arena);
        if (result == PYLITERAL_OK) break;
        assert_int_equal(result, PYLITERAL_MEMORY);
    }
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_under_the_key_are_found),
        cmocka_unit_test(the_last_of_equal_keys_counts),
        cmocka_unit_test(parentheses_without_comma_are_transparent),
        cmocka_unit_test(escapes_become_bytes),
        cmocka_unit_test(wrong_escapes_do_not_parse_even_where_not_wanted),
        cmocka_unit_test(strings_come_in_all_quotes_and_prefixes),
        cmocka_unit_test(numbers_are_those_of_python),
        cmocka_unit_test(nothing_else_parses),
        cmocka_unit_test(depth_has_a_limit),
        cmocka_unit_test(what_is_written_is_found),
        cmocka_unit_test(no_prefix_of_a_list_parses),
        cmocka_unit_test(results_are_appended_and_a_failure_takes_back_its_own),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
