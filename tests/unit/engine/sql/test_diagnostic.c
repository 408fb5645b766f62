/* SPDX-License-Identifier: Apache-2.0 */
/* test_diagnostic.c - a diagnostic names the right place and always fits.
 *
 * Method: whole texts are compared for chosen lines; for the bounds, every offset of hostile texts
 * is reported and the caret is checked to stand under the byte it means.
 */
#include "unit/test.h"

#include <stdio.h>
#include <string.h>

#include "engine/sql/diagnostic.h"

static void check_text(const char *sql, uint32_t offset, const char *expected)
{
    struct sql_source source = {.text = text_of(sql), .name = "q1.sql"};
    struct error err;
    assert_int_equal(sql_error(&err, &source, offset, "wrong"), STATUS_SQL);
    assert_int_equal(err.code, STATUS_SQL);
    assert_string_equal(err.text, expected);
}

static void message_line_and_caret_are_shown(void **state)
{
    (void)state;
    const char *sql = "-- films\n\nSELECT m.titel FROM movies m\nWHERE 1";
    struct sql_source source = {.text = text_of(sql), .name = "q1.sql"};
    struct error err;
    char suggestion[SQL_SUGGESTION_SIZE];
    const struct text columns[] = {TEXT_LITERAL("id"), TEXT_LITERAL("title")};
    assert_int_equal(
        sql_error(&err, &source, 19, "no column `%s` in movies%s", "titel",
                  sql_suggest(suggestion, sizeof suggestion, TEXT_LITERAL("titel"), columns, 2)),
        STATUS_SQL);
    assert_string_equal(err.text,
                        "q1.sql:3:10: no column `titel` in movies; did you mean `title`?\n"
                        "  3 | SELECT m.titel FROM movies m\n"
                        "    |          ^");
}

static void every_kind_of_line_is_located(void **state)
{
    (void)state;
    check_text("", 0, "q1.sql:1:1: wrong\n  1 | \n    | ^");
    check_text("a", 1, "q1.sql:1:2: wrong\n  1 | a\n    |  ^");
    check_text("a", 99, "q1.sql:1:2: wrong\n  1 | a\n    |  ^");
    check_text("a\n", 2, "q1.sql:2:1: wrong\n  2 | \n    | ^");
    check_text("a\n", 1, "q1.sql:1:2: wrong\n  1 | a\n    |  ^");
    check_text("a\r\nb c\r\n", 5, "q1.sql:2:3: wrong\n  2 | b c\n    |   ^");
    check_text("\tx\ty", 3, "q1.sql:1:4: wrong\n  1 | \tx\ty\n    | \t \t^");
    check_text("é日𝄞 x", 10, "q1.sql:1:5: wrong\n  1 | é日𝄞 x\n    |     ^");
    check_text("\xef\xbb\xbf"
               "ab",
               4, "q1.sql:1:2: wrong\n  1 | ab\n    |  ^");
    check_text("\n\n\n\n\n\n\n\n\n\nab", 11, "q1.sql:11:2: wrong\n  11 | ab\n     |  ^");
}

static void what_cannot_be_shown_is_a_question_mark(void **state)
{
    (void)state;
    check_text("a\x01"
               "b\x7f"
               "c",
               4, "q1.sql:1:5: wrong\n  1 | a?b?c\n    |     ^");
    /* A lone continuation, an overlong slash, a surrogate, a C1 control, a cut character. */
    check_text("\x80"
               "|\xc0\xaf|\xed\xa0\x80|\xc2\x85|\xe2\x82",
               12, "q1.sql:1:13: wrong\n  1 | ?|??|???|??|??\n    |             ^");

    struct sql_source source = {.text = TEXT_LITERAL("x"), .name = "a\nb"};
    struct error err;
    assert_int_equal(sql_error(&err, &source, 0, "no `%s`", "p\nq\xff"), STATUS_SQL);
    assert_string_equal(err.text, "a?b:1:1: no `p?q?`\n  1 | x\n    | ^");
    source.name = NULL;
    assert_int_equal(sql_error(&err, &source, 0, "x"), STATUS_SQL);
    assert_string_equal(err.text, "query:1:1: x\n  1 | x\n    | ^");
}

/* The shown line and the caret's line, behind their exchanges. */
static void split_text(char *text, const char **out_line, const char **out_caret)
{
    char *line = strchr(text, '\n');
    assert_non_null(line);
    char *caret = strchr(line + 1, '\n');
    assert_non_null(caret);
    assert_null(strchr(caret + 1, '\n'));
    *caret = '\0';
    *out_line = strstr(line, " | ") + 3;
    *out_caret = strstr(caret + 1, " | ") + 3;
}

static void long_lines_are_cut_around_the_caret(void **state)
{
    (void)state;
    char sql[1000];
    for (size_t i = 0; i < sizeof sql; i++) {
        sql[i] = (char)('!' + i % 90);
    }
    struct sql_source source = {.text = {sql, sizeof sql}, .name = "q"};
    for (uint32_t offset = 0; offset <= sizeof sql; offset++) {
        struct error err;
        const char *line;
        const char *caret;
        assert_int_equal(sql_error(&err, &source, offset, "x"), STATUS_SQL);
        split_text(err.text, &line, &caret);
        size_t column = strlen(caret) - 1;
        size_t skipped_bytes = strncmp(line, "…", strlen("…")) == 0 ? strlen("…") - 1 : 0;
        assert_true(column <= 100);
        if (offset < sizeof sql) assert_int_equal(line[column + skipped_bytes], sql[offset]);
        assert_true(strlen(line) <= 100 + 2 * (strlen("…") - 1));
        assert_int_equal(skipped_bytes > 0, offset > 50);
    }
}

static void everything_fits_whatever_is_long(void **state)
{
    (void)state;
    static char name[5000];
    static char sql[4000];
    memset(name, 'n', sizeof name - 1);
    for (size_t i = 0; i + 4 <= sizeof sql; i += 4) {
        memcpy(sql + i, "𝄞", 4);
    }
    struct sql_source source = {.text = {sql, sizeof sql}, .name = name};
    for (uint32_t offset = 0; offset <= sizeof sql; offset += 4) {
        struct error err;
        const char *line;
        const char *caret;
        assert_int_equal(sql_error(&err, &source, offset, "é%s", name), STATUS_SQL);
        assert_true(strlen(err.text) < sizeof err.text - 1);
        assert_int_equal(err.text[strlen(err.text) - 1], '^');
        split_text(err.text, &line, &caret);
        assert_null(strchr(line, '?'));
    }
}

static void suggestions_are_whole_or_absent(void **state)
{
    (void)state;
    const struct text names[] = {TEXT_LITERAL("budget"), TEXT_LITERAL("revenue")};
    const char *whole = "; did you mean `revenue`?";
    for (size_t size = 0; size <= strlen(whole) + 2; size++) {
        char out[64] = "untouched";
        const char *text = sql_suggest(out, size, TEXT_LITERAL("revenu"), names, 2);
        assert_ptr_equal(text, out);
        if (size > 0) assert_string_equal(out, size > strlen(whole) ? whole : "");
    }
    char out[64];
    assert_string_equal(sql_suggest(out, sizeof out, TEXT_LITERAL("genres"), names, 2), "");
    assert_string_equal(sql_suggest(out, sizeof out, TEXT_LITERAL("x"), NULL, 0), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(message_line_and_caret_are_shown),
        cmocka_unit_test(every_kind_of_line_is_located),
        cmocka_unit_test(what_cannot_be_shown_is_a_question_mark),
        cmocka_unit_test(long_lines_are_cut_around_the_caret),
        cmocka_unit_test(everything_fits_whatever_is_long),
        cmocka_unit_test(suggestions_are_whole_or_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
