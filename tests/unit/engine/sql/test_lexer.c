/* SPDX-License-Identifier: Apache-2.0 */
/* test_lexer.c - bytes become the right tokens, and every byte is accounted for.
 *
 * Method: a table of texts with the tokens they hold; every keyword in both letter cases; and all
 * texts of up to two bytes plus all triples of interesting ones, for which tokens must stand in
 * order, not overlap, and leave out only blanks and comments.
 */
#include "unit/test.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "engine/sql/lexer.h"

/* The kinds of a text's tokens, one letter each. */
static const char *kinds_of(const char *sql, char out[64])
{
    static const char letters[] = {
        [TOKEN_END] = '.',           [TOKEN_BAD] = '!',           [TOKEN_NAME] = 'n',
        [TOKEN_INT] = 'i',           [TOKEN_NUMBER] = 'f',        [TOKEN_TEXT] = 's',
        [TOKEN_PARAMETER] = '$',     [TOKEN_PLUS] = '+',          [TOKEN_MINUS] = '-',
        [TOKEN_STAR] = '*',          [TOKEN_SLASH] = '/',         [TOKEN_SLASH_SLASH] = 'D',
        [TOKEN_PERCENT] = '%',       [TOKEN_CONCAT] = '|',        [TOKEN_EQUAL] = '=',
        [TOKEN_NOT_EQUAL] = '#',     [TOKEN_LESS] = '<',          [TOKEN_LESS_EQUAL] = 'l',
        [TOKEN_GREATER] = '>',       [TOKEN_GREATER_EQUAL] = 'g', [TOKEN_CAST] = ':',
        [TOKEN_DOT] = 'd',           [TOKEN_COMMA] = ',',         [TOKEN_SEMICOLON] = ';',
        [TOKEN_OPEN] = '(',          [TOKEN_CLOSE] = ')',         [TOKEN_OPEN_BRACKET] = '[',
        [TOKEN_CLOSE_BRACKET] = ']',
    };
    struct lexer lexer;
    size_t count = 0;
    lexer_init(&lexer, text_of(sql));
    for (;;) {
        struct token token = lexer_next(&lexer);
        assert_true(count < 63);
        if (token.kind == TOKEN_END) break;
        out[count++] = letters[token.kind];
    }
    out[count] = '\0';
    return out;
}

static void tokens_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *sql;
        const char *kinds;
    } cases[] = {
        {"", ""},
        {" \t\r\n\f\v", ""},
        {"-- all comment", ""},
        {"--\n1", "i"},
        {"/**/1/* * / */2", "ii"},
        {"/*/1*/2", "i"},
        {"/* open", "!"},
        {"/*/", "!"},
        {"1/*", "i!"},
        {"select _a b1 é", "nnnn"},
        {"1 1.5 .5 1e3 1E+3 1.5e-3 007", "ifffffi"},
        {"1. 1.x", "!!n"},
        {"1_000 1__ 1a 1e 1e+ 0x10 1.5.2", "!!!!!+!ff"},
        {"'' 'a' 'it''s' ''''", "ssss"},
        {"'open", "!"},
        {"'open''", "!"},
        {"\"a\" \"a\"\"b\" \"open", "nn!"},
        {"\"\"", "!"},
        {"E'a' b'1' DATE'2000-01-01'", "!s!sns"},
        {"$a $a1 $1 $", "$$!i!"},
        {"+ - * / // % || = == <> != < <= > >= :: . , ; ( ) [ ]", "+-*/D%|==##<l>g:d,;()[]"},
        {"a<=b<>c::d||e//f", "nln#n:n|nDn"},
        {"===", "=="},
        {"a.*", "nd*"},
        {"t.1", "nf"},
        {"! | : ? ~ ^ & @ # { } \\ `", "!!!!!!!!!!!!!"},
        {"\xef\xbb\xbfselect", "n"},
        {"\x01", "!"},
    };
    char out[64];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_string_equal(kinds_of(cases[i].sql, out), cases[i].kinds);
    }
}

static void check_value(const char *sql, enum token_kind kind, const char *value, bool doubled)
{
    struct lexer lexer;
    lexer_init(&lexer, text_of(sql));
    struct token token = lexer_next(&lexer);
    assert_int_equal(token.kind, kind);
    assert_true(text_equal(token.value, text_of(value)));
    assert_int_equal(token.doubled, doubled);
    assert_int_equal(token.offset, 0);
    assert_int_equal(token.size, strlen(sql));
    assert_int_equal(token.keyword, KEYWORD_NONE);
}

static void values_come_without_their_marks(void **state)
{
    (void)state;
    check_value("title", TOKEN_NAME, "title", false);
    check_value("\"select\"", TOKEN_NAME, "select", false);
    check_value("\"a\"\"b\"", TOKEN_NAME, "a\"\"b", true);
    check_value("'a b'", TOKEN_TEXT, "a b", false);
    check_value("''", TOKEN_TEXT, "", false);
    check_value("''''", TOKEN_TEXT, "''", true);
    check_value("$from_year", TOKEN_PARAMETER, "from_year", false);
    check_value("1.50e2", TOKEN_NUMBER, "1.50e2", false);
}

static void keywords_are_found_in_any_letter_case(void **state)
{
    (void)state;
    for (int keyword = KEYWORD_NONE + 1; keyword < KEYWORD_COUNT; keyword++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%s", keyword_name((enum keyword)keyword));
        if (keyword > KEYWORD_NONE + 1) {
            assert_true(strcmp(keyword_name((enum keyword)(keyword - 1)), name) < 0);
        }
        for (int lowered = 0; lowered < 2; lowered++) {
            struct lexer lexer;
            lexer_init(&lexer, text_of(name));
            assert_int_equal(lexer_next(&lexer).keyword, keyword);
            for (char *c = name; *c != '\0'; c++) {
                *c = (char)tolower((unsigned char)*c);
            }
        }
        name[strlen(name) - 1] = '0'; /* No keyword any more. */
        struct lexer lexer;
        lexer_init(&lexer, text_of(name));
        assert_int_equal(lexer_next(&lexer).keyword, KEYWORD_NONE);
    }
}

static void the_end_is_where_the_last_token_ended(void **state)
{
    (void)state;
    struct lexer lexer;
    lexer_init(&lexer, TEXT_LITERAL("SELECT a  -- why\n\n"));
    for (int i = 0; i < 2; i++) {
        (void)lexer_next(&lexer);
    }
    for (int i = 0; i < 3; i++) {
        struct token end = lexer_next(&lexer);
        assert_int_equal(end.kind, TOKEN_END);
        assert_int_equal(end.offset, 8);
        assert_int_equal(end.size, 0);
    }
}

static void check_cover(const char *bytes, uint32_t size)
{
    struct lexer lexer;
    uint32_t covered = 0;
    lexer_init(&lexer, (struct text){bytes, size});
    for (;;) {
        struct token token = lexer_next(&lexer);
        if (token.kind == TOKEN_END) break;
        assert_true(token.size > 0);
        assert_true(token.offset >= covered);
        bool comment = token.offset > covered && (bytes[covered] == '-' || bytes[covered] == '/');
        for (uint32_t i = covered; i < token.offset && !comment; i++) {
            assert_true(isspace((unsigned char)bytes[i]) || bytes[i] == '-' || bytes[i] == '/');
        }
        covered = token.offset + token.size;
        assert_true(covered <= size);
    }
}

static void every_short_text_is_covered_by_tokens(void **state)
{
    (void)state;
    for (int a = 0; a < 256; a++) {
        for (int b = 0; b < 256; b++) {
            char bytes[2] = {(char)a, (char)b};
            check_cover(bytes, 1);
            check_cover(bytes, 2);
        }
    }
    static const char interesting[] = "a_E1.'\"$-/*|=<>!:;, \n\xc3";
    enum { COUNT = sizeof interesting - 1 };
    for (int i = 0; i < COUNT * COUNT * COUNT; i++) {
        char bytes[3] = {interesting[i % COUNT], interesting[i / COUNT % COUNT],
                         interesting[i / COUNT / COUNT]};
        check_cover(bytes, 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_told_apart),
        cmocka_unit_test(values_come_without_their_marks),
        cmocka_unit_test(keywords_are_found_in_any_letter_case),
        cmocka_unit_test(the_end_is_where_the_last_token_ended),
        cmocka_unit_test(every_short_text_is_covered_by_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
