/* SPDX-License-Identifier: Apache-2.0 */
/* test_regexp_needs.c - what is found in a pattern never hides a match, and is worth finding.
 *
 * Method: random patterns over random values, compared with the same pattern behind an empty
 * comment, which is not understood and so left to PCRE2 alone; and patterns of which it is known
 * what they need.
 */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/random.h"
#include "engine/exec/expr/regexp.h"
#include "engine/exec/expr/regexp_needs.h"

/* --- Random patterns. --- */

struct pattern_writer {
    struct random *dice;
    char *out;
    size_t size;
    size_t limit;
};

static void put(struct pattern_writer *writer, const char *piece)
{
    size_t size = strlen(piece);
    if (writer->size + size >= writer->limit) return;
    memcpy(writer->out + writer->size, piece, size + 1);
    writer->size += size;
}

#define PUT_ONE_OF(writer, pieces)                                                                 \
    put(writer, (pieces)[random_below((writer)->dice, sizeof(pieces) / sizeof *(pieces))])

static const char *const characters[] = {"a", "b", "k", "s", "K", "S", "0", " ", "-", "é", "\n"};

static void put_class(struct pattern_writer *writer)
{
    static const char *const elements[] = {"a",   "b",    "k",   "s",  "A-Z", "a-c", "0-9", "\\d",
                                           "\\w", "\\s",  "\\W", "é",  "a-é", "\\]", "\\-", "^",
                                           "[",   "\\w-", "+--", "k-", "-s",  "\\n", "?",   "$"};
    static const char *const openings[] = {"[", "[", "[", "[^", "[]", "[-", "[^]"};
    PUT_ONE_OF(writer, openings);
    for (uint32_t i = random_below(writer->dice, 3) + 1; i > 0; i--) {
        PUT_ONE_OF(writer, elements);
    }
    put(writer, "]");
}

static void put_pattern(struct pattern_writer *writer, uint32_t depth);

static void put_atom(struct pattern_writer *writer, uint32_t depth)
{
    static const char *const escapes[] = {"\\d", "\\w",   "\\s", "\\S", "\\W", "\\b",
                                          "\\B", "\\n",   ".",   "^",   "$",   "\\?",
                                          "\\.", "\\x6b", "\\1", "]",   "}",   "\\K"};
    static const char *const groups[] = {
        "(", "(", "(?:", "(?>", "(?=", "(?!", "(?<=", "(?i:", "(?|"};
    uint32_t kind = random_below(writer->dice, 10);
    if (kind < 5) {
        PUT_ONE_OF(writer, characters);
    } else if (kind < 6) {
        put_class(writer);
    } else if (kind < 8 || depth == 0) {
        PUT_ONE_OF(writer, escapes);
    } else {
        PUT_ONE_OF(writer, groups);
        put_pattern(writer, depth - 1);
        put(writer, ")");
    }
}

static void put_pattern(struct pattern_writer *writer, uint32_t depth)
{
    static const char *const quantifiers[] = {"*",     "+",     "?",  "{2}",  "{1,}",
                                              "{0,2}", "{2,3}", "+?", "*+",   "{0}",
                                              "{,2}",  "{2",    "??", "{3}+", "{1,1}"};
    for (uint32_t i = random_below(writer->dice, 5); i > 0; i--) {
        put_atom(writer, depth);
        if (random_below(writer->dice, 3) == 0) PUT_ONE_OF(writer, quantifiers);
        if (random_below(writer->dice, 8) == 0) put(writer, "|");
    }
}

static size_t make_value(struct random *dice, char *out, size_t limit)
{
    static const char *const others[] = {
        "\xc5\xbf", "\xe2\x84\xaa", "\xff", "\xc3", "\xa9", "É", "A", "?", "c", "."};
    struct pattern_writer writer = {.dice = dice, .out = out, .limit = limit};
    bool is_plain = random_below(dice, 2) == 0;
    for (uint32_t i = random_below(dice, 10); i > 0; i--) {
        if (is_plain || random_below(dice, 4) > 0) {
            PUT_ONE_OF(&writer, characters);
        } else {
            PUT_ONE_OF(&writer, others);
        }
    }
    return writer.size;
}

struct pattern_counts {
    uint32_t patterns;
    uint32_t found;
    uint32_t spared;
};

static void check_value(struct regexp *quick, struct regexp *slow, struct text value,
                        const char *pattern)
{
    struct error err = {0};
    bool expected = false;
    bool found = false;
    /* What needs too many steps may well be answered without any. */
    if (regexp_matches(slow, value, &expected, &err) != STATUS_OK) return;
    assert_int_equal(regexp_matches(quick, value, &found, &err), STATUS_OK);
    if (found != expected) {
        fail_msg("`%s` and `%.*s`: %d, not %d", pattern, TEXT_ARGS(value), found, expected);
    }
    struct text part, expected_part;
    assert_int_equal(regexp_extract(slow, value, 0, &expected_part, &err), STATUS_OK);
    assert_int_equal(regexp_extract(quick, value, 0, &part, &err), STATUS_OK);
    if (!text_equal(part, expected_part)) fail_msg("`%s`: %.*s", pattern, TEXT_ARGS(part));
}

static void check_pattern(const char *pattern, const char *options, struct random *dice,
                          struct pattern_counts *counts)
{
    enum { VALUES = 40, VALUE_SIZE = 40 };
    char commented[256];
    (void)snprintf(commented, sizeof commented, "(?#)%s", pattern);
    struct regexp *quick = NULL;
    struct regexp *slow = NULL;
    struct error err = {0};
    if (regexp_create(text_of(commented), text_of(options), &slow, &err) != STATUS_OK) return;
    assert_int_equal(regexp_create(text_of(pattern), text_of(options), &quick, &err), STATUS_OK);
    struct regexp_needs needs;
    regexp_needs_find(&needs, text_of(pattern), options[0] == 'i');
    for (int i = 0; i < VALUES; i++) {
        char made[VALUE_SIZE];
        uint32_t size = (uint32_t)make_value(dice, made, sizeof made);
        char *bytes = malloc(size + 1); /* A read beyond it is seen. */
        memcpy(bytes, made, size);
        struct text value = {bytes, size};
        check_value(quick, slow, value, pattern);
        uint32_t from = 0;
        bool found = false;
        counts->spared += !regexp_needs_met(&needs, value, &from);
        counts->found += regexp_matches(slow, value, &found, &err) == STATUS_OK && found;
        free(bytes);
    }
    counts->patterns++;
    regexp_destroy(quick);
    regexp_destroy(slow);
}

static void needs_never_hide_a_match(void **state)
{
    (void)state;
    struct random dice = {11};
    struct pattern_counts counts = {0};
    for (int i = 0; i < 20000; i++) {
        char pattern[200] = "";
        struct pattern_writer writer = {.dice = &dice, .out = pattern, .limit = sizeof pattern};
        if (random_below(&dice, 4) == 0) put(&writer, "^");
        put_pattern(&writer, 2);
        if (random_below(&dice, 2) == 0) put(&writer, "$");
        check_pattern(pattern, random_below(&dice, 2) == 0 ? "i" : "", &dice, &counts);
    }
    /* Both happen often, or nothing was compared. */
    assert_true(counts.patterns > 10000);
    assert_true(counts.found > 100000);
    assert_true(counts.spared > 100000);
}

/* --- What is found. --- */

static bool is_met(const char *pattern, const char *options, const char *value)
{
    struct regexp_needs needs;
    uint32_t from = 0;
    regexp_needs_find(&needs, text_of(pattern), options[0] == 'i');
    return regexp_needs_met(&needs, text_of(value), &from);
}

static void values_that_lack_something_are_spared(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *options, *lacking, *having;
    } cases[] = {
        {"[a-z]{4,} [a-z]+\\?+$", "", "is this one so.", "is this one so?"},
        {"[a-z]{4,} [a-z]+\\?+$", "", "is THIS ONE so?", "is this one so?"},
        {"[a-z]{4,} [a-z]+\\?+$", "", "a b?", "abcd e?"},
        {"\\b(letters?|winter|memory)\\b", "i", "summer in a city", "a WINTER in a city"},
        {"\\b(letters?|winter|memory)\\b", "i", "a lette r", "a Letter"},
        {"(foo|bar)[0-9]*baz", "", "foo and bar", "bar1baz"},
        {"^(?:https?://)[^/]+/x", "", "ftp://a.b/x", "http://a.b/x"},
        {"gr[ae]y \\w+", "", "gruy cat", "grey cat"},
        {"(ab){3}", "", "ababa", "ababab"},
        {"(ab){3,}", "", "ababa", "ababab"},
        {"x*(?=abc)yes(?!no)", "", "abc", "yes"},
        {"gr\xc3\xbc\xc3\x9f[a-z]*", "", "gruss", "gr\xc3\xbc\xc3\x9f"},
        {"[0-9]{3}-?[0-9]{4}$", "", "555-123x", "555-1234"},
        {"(one|two)$", "", "one two three", "one"},
        {"(one|two)+?$", "", "one two three", "onetwo"},
        {"(?:a$)?bc", "", "a", "bcd"},
        {"(?:^a)?bc", "", "a", "dbc"},
        {"ka*ss", "", "kaas", "kaaass"},
        {"k(?:ab)+s", "", "kab", "kababs"},
        {"[\\w.]+@(gmail|mail)\\.com", "i", "me at mail.com", "me@Mail.com"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (is_met(cases[i].pattern, cases[i].options, cases[i].lacking)) {
            fail_msg("`%s` is not missed in `%s`", cases[i].pattern, cases[i].lacking);
        }
        if (!is_met(cases[i].pattern, cases[i].options, cases[i].having)) {
            fail_msg("`%s` is missed in `%s`", cases[i].pattern, cases[i].having);
        }
    }
}

static void what_is_not_understood_needs_nothing(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        "(?i)abc$",  "(?i:abc)$",  "abc(?#x)$",    "(a)bc\\1$", "\\Qabc\\E$", "(?<n>abc)$",
        "\\p{L}b$",  "a\\x62c$",   "[[:alpha:]]$", "abc\\z",    "a{,3}$",     "abc\\Kd$",
        "(?R)?abc$", "(*ANY)abc$", "ab{2}{2}c$",   "a\\Rb$",    "[\\Qa\\E]$", "(?(?=a)bc|d)$",
    };
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        if (!is_met(patterns[i], "", "")) fail_msg("`%s`", patterns[i]);
    }
    char deep[200] = "";
    memset(deep, '(', 60);
    strcat(deep, "abc");
    memset(deep + 63, ')', 60);
    assert_true(is_met(deep, "", ""));
}

static void a_match_at_the_end_is_looked_for_there(void **state)
{
    (void)state;
    struct regexp_needs needs;
    uint32_t from = 0;
    regexp_needs_find(&needs, text_of("[a-z]+ [a-z]+\\?$"), false);
    assert_true(regexp_needs_met(&needs, text_of("Well, is it so?"), &from));
    assert_int_equal(from, 5);
    /* Characters of several bytes may be anywhere. */
    regexp_needs_find(&needs, text_of("[^a] [a-z]+\\?$"), false);
    assert_true(regexp_needs_met(&needs, text_of("Well, is it so?"), &from));
    assert_int_equal(from, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needs_never_hide_a_match),
        cmocka_unit_test(values_that_lack_something_are_spared),
        cmocka_unit_test(what_is_not_understood_needs_nothing),
        cmocka_unit_test(a_match_at_the_end_is_looked_for_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
