/* SPDX-License-Identifier: Apache-2.0 */
/* test_regexp.c - patterns match what PCRE2 matches, within limits, whichever way is taken.
 *
 * Method: plain literals with | between take a way of their own. On random texts made of pieces of
 * the literals, near misses, exotic letters and invalid bytes, it is compared with the same pattern
 * in a group, which PCRE2 matches, and with a search byte by byte.
 */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/random.h"
#include "engine/exec/expr/literals.h"
#include "engine/exec/expr/regexp.h"

static struct regexp *make(const char *pattern, const char *options)
{
    struct regexp *regexp = NULL;
    struct error err = {0};
    if (regexp_create(text_of(pattern), text_of(options), &regexp, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    return regexp;
}

static bool matches(struct regexp *regexp, struct text value)
{
    bool found = false;
    struct error err = {0};
    if (regexp_matches(regexp, value, &found, &err) != STATUS_OK) fail_msg("%s", err.text);
    return found;
}

static bool matches_once(const char *pattern, const char *options, const char *value)
{
    struct regexp *regexp = make(pattern, options);
    bool found = matches(regexp, text_of(value));
    regexp_destroy(regexp);
    return found;
}

static void patterns_are_searched_and_options_are_heard(void **state)
{
    (void)state;
    assert_true(matches_once("b+", "", "abbc"));
    assert_false(matches_once("^b+", "", "abbc"));
    assert_false(matches_once("B+", "", "abbc"));
    assert_true(matches_once("B+", "i", "abbc"));
    assert_false(matches_once("B+", "ic", "abbc"));
    assert_false(matches_once("a.c", "", "a\nc"));
    assert_true(matches_once("a.c", "s", "a\nc"));
    assert_false(matches_once("a.c", "sn", "a\nc"));
    assert_true(matches_once("a.c", "l", "xa.cx"));
    assert_false(matches_once("a.c", "l", "abc"));
    assert_true(matches_once("A.C", "li", "xa.cx"));
    assert_false(matches_once("a$", "", "a\n"));
    assert_true(matches_once("", "", ""));
    assert_true(matches_once("", "", "x"));
    assert_true(matches_once("^.$", "", "\xc3\xa9"));
    assert_true(matches_once("caf\xc3\x89", "i", "caf\xc3\xa9"));
    assert_true(matches_once("a|", "", "x"));
}

static void invalid_bytes_match_nothing_and_stop_nothing(void **state)
{
    (void)state;
    assert_true(matches_once("b+c", "",
                             "\xff\xfe"
                             "abbc\xc3"));
    assert_false(matches_once("a.b", "",
                              "a\xff"
                              "b"));
    assert_true(matches_once("b", "",
                             "\xff"
                             "b"));
}

/* In any version of the library, with machine code or without. */
static void characters_of_several_bytes_are_others_than_letters(void **state)
{
    (void)state;
    assert_true(matches_once("^\\D$", "", "\xe0\xab\xaa"));
    assert_true(matches_once("^\\W$", "", "\xc4\x84"));
    assert_true(matches_once("^\\W$", "i", "\xc4\x84"));
    assert_true(matches_once("\\W$", "", "\xe2\xaa\xc5\xaa"));
}

static void nothing_is_found_beyond_the_end_of_a_broken_character(void **state)
{
    (void)state;
    struct regexp *regexp = make("[^k]$", "i");
    static const char *const values[] = {"a\xc3", "\xe2", "k\xf0\x9f\x98", "\xe2\x84"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        uint32_t size = (uint32_t)strlen(values[i]);
        char *bytes = malloc(size);
        memcpy(bytes, values[i], size);
        assert_false(matches(regexp, (struct text){bytes, size}));
        free(bytes);
    }
    regexp_destroy(regexp);
}

static void empty_value_may_have_no_bytes(void **state)
{
    (void)state;
    struct regexp *regexp = make("^$", "");
    struct regexp *literal = make("abc", "");
    assert_true(matches(regexp, (struct text){0}));
    assert_false(matches(literal, (struct text){0}));
    regexp_destroy(regexp);
    regexp_destroy(literal);
    regexp_destroy(NULL);
}

static void extract(const char *pattern, const char *value, uint32_t group, const char *expected)
{
    struct regexp *regexp = make(pattern, "");
    struct error err = {0};
    struct text found;
    assert_int_equal(regexp_extract(regexp, text_of(value), group, &found, &err), STATUS_OK);
    if (!text_equal(found, text_of(expected))) fail_msg("%.*s", TEXT_ARGS(found));
    regexp_destroy(regexp);
}

static void groups_are_extracted_and_missing_ones_are_empty(void **state)
{
    (void)state;
    extract("/comments/([^/]*)/", "/r/x/comments/abc/title", 1, "abc");
    extract("/comments/([^/]*)/", "/r/x/comments/abc/title", 0, "/comments/abc/");
    extract("/comments/([^/]*)/", "/r/x", 1, "");
    extract("(a)|(b)", "b", 1, "");
    extract("(a)|(b)", "b", 2, "b");
    extract("abc|def", "xdefx", 0, "def");
    extract("x*", "abc", 0, "");
    struct regexp *regexp = make("(a)(b)(?:c)", "");
    assert_int_equal(regexp_group_count(regexp), 2);
    regexp_destroy(regexp);
}

static void bad_patterns_are_refused_with_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        const char *options;
        const char *text;
    } cases[] = {
        {"a(b", "", "regular expression `a(b`: missing closing parenthesis at position 4"},
        {"[z-a]", "",
         "regular expression `[z-a]`: range out of order in character class at position 4"},
        {"*", "",
         "regular expression `*`: quantifier does not follow a repeatable item at "
         "position 1"},
        {"\\C", "",
         "regular expression `\\C`: using \\C is disabled by the application at "
         "position 3"},
        {"a", "x", "regular expressions have the options i, c, s, m, n, p and l, not `x`"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct regexp *regexp = NULL;
        struct error err = {0};
        assert_int_equal(
            regexp_create(text_of(cases[i].pattern), text_of(cases[i].options), &regexp, &err),
            STATUS_SQL);
        assert_null(regexp);
        assert_string_equal(err.text, cases[i].text);
    }
}

static void explosions_end_in_an_error(void **state)
{
    (void)state;
    char value[64];
    memset(value, 'a', sizeof value);
    value[sizeof value - 1] = 'b';
    /* That it cannot match is not seen from its last byte. */
    struct regexp *regexp = make("(a+)+[^b]$", "");
    struct error err = {0};
    bool found = false;
    assert_int_equal(regexp_matches(regexp, (struct text){value, sizeof value}, &found, &err),
                     STATUS_LIMIT);
    assert_string_equal(err.text, "regular expression `(a+)+[^b]$` needs too many steps on a value "
                                  "of 64 bytes; simplify it");
    /* It can be used for other values. */
    assert_true(matches(regexp, TEXT_LITERAL("aaa")));
    regexp_destroy(regexp);
}

static void deep_recursion_ends_in_an_answer_or_an_error(void **state)
{
    (void)state;
    enum { SIZE = 200000 };
    char *value = memory_alloc(NULL, SIZE);
    memset(value, '(', SIZE);
    struct regexp *regexp = make("^(\\((?1)*\\))*$", "");
    struct error err = {0};
    bool found = false;
    status code = regexp_matches(regexp, (struct text){value, SIZE}, &found, &err);
    assert_true(code == STATUS_LIMIT || (code == STATUS_OK && !found));
    regexp_destroy(regexp);
    memory_free(NULL, value, SIZE);
}

/* --- Plain literals. --- */

static const char *const literal_patterns[] = {
    "university|college|student|teacher|professor",
    "a",
    "k",
    "ss|kk",
    "ab|abc|b",
    "Kiss|SMS|sky",
    "zz top|x-y_z|a:b",
    "s",
    "one|two|three|four|five|six|seven|eight",
    "ssssssss|kkkkkkkk|sk",
};

static void put(char *out, size_t *size, size_t limit, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count && *size < limit; i++) {
        out[(*size)++] = bytes[i];
    }
}

static size_t random_value(struct random *dice, const char *pattern, char *out, size_t limit)
{
    static const char *const exotic[] = {"\xc5\xbf", "\xe2\x84\xaa", "\xff", "\xc5",
                                         "\xe2\x84", "\xc3\xa9",     "\xbf", " "};
    size_t size = 0;
    size_t wanted = random_below(dice, (uint32_t)limit + 1);
    size_t pattern_size = strlen(pattern);
    bool with_exotic = random_below(dice, 2) == 0;
    while (size < wanted) {
        uint32_t kind = random_below(dice, 8);
        if (kind == 0 && with_exotic) {
            const char *piece = exotic[random_below(dice, 8)];
            put(out, &size, wanted, piece, strlen(piece));
        } else if (kind < 4) {
            size_t start = random_below(dice, (uint32_t)pattern_size);
            put(out, &size, wanted, pattern + start,
                1 + random_below(dice, (uint32_t)(pattern_size - start)));
        } else {
            char letter = (char)('a' + random_below(dice, 26));
            put(out, &size, wanted, &letter, 1);
        }
    }
    for (size_t i = 0; i < size; i++) {
        if (out[i] == '|') out[i] = ' ';
        bool is_letter = (out[i] >= 'a' && out[i] <= 'z') || (out[i] >= 'A' && out[i] <= 'Z');
        if (is_letter && random_below(dice, 3) == 0) out[i] = (char)(out[i] ^ 0x20);
    }
    return size;
}

static void check_literals(const char *pattern, const char *options, struct random *dice)
{
    enum { VALUE_MAX = 200, TRIES = 3000 };
    char grouped[200];
    (void)snprintf(grouped, sizeof grouped, "(?:%s)", pattern);
    struct regexp *fast = make(pattern, options);
    struct regexp *slow = make(grouped, options);
    struct literals literals;
    assert_true(literals_parse(&literals, text_of(pattern), options[0] == 'i'));
    for (int i = 0; i < TRIES; i++) {
        char made[VALUE_MAX];
        size_t size = random_value(dice, pattern, made, i % 4 == 0 ? 12 : VALUE_MAX);
        /* At the end of its block, so that a read beyond it is seen. */
        char *value = malloc(size + 1);
        memcpy(value + 1, made, size);
        struct text text = {value + 1, (uint32_t)size};
        bool expected = matches(slow, text);
        assert_int_equal(matches(fast, text), expected);
        enum literals_answer answer = literals_search(&literals, text);
        assert_int_equal(answer, literals_search_plain(&literals, text));
        if (answer != LITERALS_UNSURE) assert_int_equal(answer == LITERALS_FOUND, expected);
        free(value);
    }
    regexp_destroy(fast);
    regexp_destroy(slow);
}

/* Longer than what is looked at in one go: every place of one literal in texts around these sizes.
 */
static void literals_are_found_anywhere_in_long_texts(void **state)
{
    (void)state;
    enum { LONGEST = 2300 };
    struct literals literals;
    assert_true(literals_parse(&literals, text_of("teacher|student"), true));
    static const char word[] = "tEacHer";
    for (uint32_t size = 480; size <= LONGEST; size += 37) {
        char *value = malloc(size);
        assert_non_null(value);
        memset(value, 't', size);
        struct text text = {value, size};
        assert_int_equal(literals_search(&literals, text), LITERALS_NONE);
        for (uint32_t at = 0; at + sizeof word - 1 <= size; at += 1 + at % 3) {
            memcpy(value + at, word, sizeof word - 1);
            assert_int_equal(literals_search(&literals, text), LITERALS_FOUND);
            value[at + 4] = (char)0xe9;
            assert_int_equal(literals_search(&literals, text), LITERALS_NONE);
            memcpy(value + at, "\xc5\xbftUd", 5);
            assert_int_equal(literals_search(&literals, text), LITERALS_UNSURE);
            memset(value + at, 't', sizeof word - 1);
        }
        free(value);
    }
}

static void literals_agree_with_pcre2(void **state)
{
    (void)state;
    struct random dice = {7};
    for (size_t i = 0; i < sizeof literal_patterns / sizeof literal_patterns[0]; i++) {
        check_literals(literal_patterns[i], "", &dice);
        check_literals(literal_patterns[i], "i", &dice);
    }
}

static void literals_are_found_at_every_place(void **state)
{
    (void)state;
    struct literals literals;
    assert_true(literals_parse(&literals, TEXT_LITERAL("stop|go|x"), true));
    static const char *const items[] = {"sToP", "GO", "X"};
    for (uint32_t size = 0; size < 80; size++) {
        for (uint32_t at = 0; at <= size; at++) {
            for (int item = 0; item < 3; item++) {
                size_t item_size = strlen(items[item]);
                char *value = malloc(size + 1u);
                memset(value, 's', size);
                bool whole = at + item_size <= size;
                memcpy(value + at, items[item], whole ? item_size : size - at);
                enum literals_answer answer =
                    literals_search(&literals, (struct text){value, size});
                assert_int_equal(answer, whole ? LITERALS_FOUND : LITERALS_NONE);
                free(value);
            }
        }
    }
}

/* Only those letters, and only where a literal could mean them. */
static void a_letter_beyond_ascii_leaves_the_answer_open(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *options, *value;
        enum literals_answer answer;
    } cases[] = {
        {"sky", "i", "some \xc5\xbfky there, and a long enough text", LITERALS_UNSURE},
        {"sky", "i", "some \xc5\xbfKY there, and a long enough text", LITERALS_UNSURE},
        {"sky", "i", "s\xe2\x84\xaay", LITERALS_UNSURE},
        {"sky", "i", "\xc5\xbf\xe2\x84\xaaY", LITERALS_UNSURE},
        {"ask", "i", "a\xc5\xbf\xe2\x84\xaa", LITERALS_UNSURE},
        {"sky", "i", "some \xc5\xbf there, and a long enough text", LITERALS_NONE},
        {"sky", "i", "some \xe2\x80\x94 there, and a long enough text", LITERALS_NONE},
        {"sky", "i", "\xc5\xbfky first, then a blue Sky in the same text", LITERALS_FOUND},
        {"sky", "", "some \xc5\xbfky there, and a long enough text", LITERALS_NONE},
        {"moon", "i", "some \xc5\xbf there, and a long enough text", LITERALS_NONE},
        {"one|two|three|four|five|six|seven|eight", "i",
         "not there, but \xc5\xbf"
         "even is",
         LITERALS_UNSURE},
        /* Too many of them: the letter alone is enough. */
        {"ssssssss|kkkkkkkk|sk", "i", "\xc5\xbf", LITERALS_UNSURE},
        {"ssssssss|kkkkkkkk|sk", "i", "\xe2\x84\xaa, and a long enough text", LITERALS_UNSURE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct literals literals;
        bool any_case = cases[i].options[0] == 'i';
        assert_true(literals_parse(&literals, text_of(cases[i].pattern), any_case));
        assert_int_equal(literals_search(&literals, text_of(cases[i].value)), cases[i].answer);
    }
}

static void only_plain_patterns_are_literals(void **state)
{
    (void)state;
    static const char *const others[] = {
        "",   "a|", "|a", "a||b", "a.b",  "a*", "(a)", "[a]",      "a\\",
        "^a", "a$", "a+", "a?",   "a{1}", "#",  "a\n", "\xc3\xa9", "1|2|3|4|5|6|7|8|9"};
    struct literals literals;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_false(literals_parse(&literals, text_of(others[i]), false));
    }
    char long_pattern[LITERALS_BYTES_MAX + 1];
    memset(long_pattern, 'a', sizeof long_pattern);
    assert_false(literals_parse(&literals, (struct text){long_pattern, sizeof long_pattern}, true));
    assert_true(
        literals_parse(&literals, (struct text){long_pattern, sizeof long_pattern - 1}, true));
}

static void memory_that_runs_out_is_reported(void **state)
{
    (void)state;
    for (size_t allowed = 0;; allowed++) {
        assert_true(allowed < 1000);
        struct regexp *regexp = NULL;
        struct error err = {0};
        bool found = false;
        memory_fail_after(allowed);
        status code = regexp_create(TEXT_LITERAL("(a|b)+c"), TEXT_LITERAL("i"), &regexp, &err);
        if (code == STATUS_OK)
            code = regexp_matches(regexp,
                                  TEXT_LITERAL("\xff"
                                               "xABc"),
                                  &found, &err);
        bool refused = memory_was_refused();
        memory_fail_never();
        regexp_destroy(regexp);
        assert_true(code == STATUS_MEMORY || (code == STATUS_OK && found));
        if (!refused) break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_are_searched_and_options_are_heard),
        cmocka_unit_test(invalid_bytes_match_nothing_and_stop_nothing),
        cmocka_unit_test(characters_of_several_bytes_are_others_than_letters),
        cmocka_unit_test(nothing_is_found_beyond_the_end_of_a_broken_character),
        cmocka_unit_test(empty_value_may_have_no_bytes),
        cmocka_unit_test(groups_are_extracted_and_missing_ones_are_empty),
        cmocka_unit_test(bad_patterns_are_refused_with_their_place),
        cmocka_unit_test(explosions_end_in_an_error),
        cmocka_unit_test(deep_recursion_ends_in_an_answer_or_an_error),
        cmocka_unit_test(literals_agree_with_pcre2),
        cmocka_unit_test(literals_are_found_anywhere_in_long_texts),
        cmocka_unit_test(literals_are_found_at_every_place),
        cmocka_unit_test(a_letter_beyond_ascii_leaves_the_answer_open),
        cmocka_unit_test(only_plain_patterns_are_literals),
        cmocka_unit_test(memory_that_runs_out_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
