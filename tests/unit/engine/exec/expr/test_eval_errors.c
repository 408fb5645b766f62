/* SPDX-License-Identifier: Apache-2.0 */
/* test_eval_errors.c - what fails, fails with the right words, and only for rows that are meant.
 *
 * Method: small batches written out by hand, one value of which cannot be computed; it is selected,
 * left out, NULL, or decided by an earlier argument.
 */
#include "unit/test.h"

#include <math.h>
#include <string.h>

#include "engine/exec/expr/eval.h"

static const struct type decimal_type = {TYPE_DECIMAL, 18, 2};

static struct arena expr_arena;
static struct arena stage_arena;
static struct arena batch_arena;

static int set_up(void **state)
{
    (void)state;
    arena_init(&expr_arena, NULL);
    arena_init(&stage_arena, NULL);
    arena_init(&batch_arena, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_done(&expr_arena);
    arena_done(&stage_arena);
    arena_done(&batch_arena);
    return 0;
}

static const struct expr *call(enum function_id function, struct type type,
                               const struct expr *const *args, uint32_t count)
{
    const struct expr *expr = expr_call(&expr_arena, function, type, args, count);
    assert_non_null(expr);
    return expr;
}

static const struct expr *int_constant(int64_t integer)
{
    return expr_constant(&expr_arena, (struct value){.integer = integer}, TYPE(INT));
}

static const struct expr *double_constant(double number)
{
    return expr_constant(&expr_arena, (struct value){.number = number}, TYPE(DOUBLE));
}

static const struct expr *text_constant(const char *string)
{
    return expr_constant(&expr_arena, (struct value){.text = text_of(string)}, TYPE(TEXT));
}

static const struct expr *bool_constant(bool truth)
{
    return expr_constant(&expr_arena, (struct value){.truth = truth}, TYPE(BOOL));
}

/* One row per value; the expected status and text of evaluating the expression on them. */
static void expect(const struct expr *expr, struct column *column, uint32_t rows,
                   struct selection selection, status expected, const char *text)
{
    struct eval *eval = NULL;
    struct error err = {0};
    struct column out;
    struct batch batch = {rows, 1, column};
    struct eval_context context = {.arena = &batch_arena};
    arena_reset(&batch_arena);
    arena_reset(&stage_arena);
    status code = eval_create(expr, NULL, &stage_arena, &eval, &err);
    if (code == STATUS_OK) code = eval_run(eval, &batch, selection, &context, &out, &err);
    assert_string_equal(err.text, text);
    assert_int_equal(code, expected);
    eval_destroy(eval);
}

static void overflow_is_an_error_of_the_selected_rows_that_are_not_null(void **state)
{
    (void)state;
    static const struct {
        enum function_id function;
        int64_t left;
        int64_t right;
        bool is_decimal;
        const char *text;
    } cases[] = {
        {FUNCTION_ADD, INT64_MAX, 1, false, "INT overflow in `#1 + 1`"},
        {FUNCTION_SUBTRACT, INT64_MIN, 1, false, "INT overflow in `#1 - 1`"},
        {FUNCTION_MULTIPLY, INT64_MAX / 2 + 1, 2, false, "INT overflow in `#1 * 2`"},
        {FUNCTION_INTEGER_DIVIDE, INT64_MIN, -1, false, "INT overflow in `#1 // -1`"},
        {FUNCTION_NEGATE, INT64_MIN, 0, false, "INT overflow in `-#1`"},
        {FUNCTION_ABS, INT64_MIN, 0, false, "INT overflow in `abs(#1)`"},
        {FUNCTION_ADD, 999999999999999999, 1, true, "DECIMAL(18,2) overflow in `#1 + 0.01`"},
        {FUNCTION_SUBTRACT, -999999999999999999, 1, true, "DECIMAL(18,2) overflow in `#1 - 0.01`"},
        {FUNCTION_MULTIPLY, 500000000000000000, 2, true, "DECIMAL(18,2) overflow in `#1 * 0.02`"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        arena_reset(&expr_arena);
        int64_t values[4] = {0, cases[i].left, 0, 0};
        uint8_t nulls[4] = {0, 1, 0, 0};
        struct type type = cases[i].is_decimal ? decimal_type : TYPE(INT);
        struct column column = {.type = type, .ints = values};
        const struct expr *args[] = {
            expr_column(&expr_arena, 0, type),
            expr_constant(&expr_arena, (struct value){.integer = cases[i].right}, type)};
        bool unary = cases[i].function == FUNCTION_NEGATE || cases[i].function == FUNCTION_ABS;
        const struct expr *expr = call(cases[i].function, type, args, unary ? 1 : 2);
        const uint32_t others[] = {0, 2, 3};
        struct selection all = {NULL, 4};
        expect(expr, &column, 4, all, STATUS_OVERFLOW, cases[i].text);
        expect(expr, &column, 4, (struct selection){others, 3}, STATUS_OK, "");
        column.nulls = nulls;
        expect(expr, &column, 4, all, STATUS_OK, "");
        nulls[0] = 1;
        nulls[1] = 0;
        expect(expr, &column, 4, all, STATUS_OVERFLOW, cases[i].text);
    }
}

static void casts_say_what_they_could_not_read(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        struct type to;
        const char *text;
    } cases[] = {
        {"abc", {.kind = TYPE_INT}, "cannot read 'abc' as INT in `CAST(#1 AS INT)`"},
        {"", {.kind = TYPE_INT}, "cannot read '' as INT in `CAST(#1 AS INT)`"},
        {"1x",
         {TYPE_DECIMAL, 18, 3},
         "cannot read '1x' as DECIMAL(18,3) in `CAST(#1 AS DECIMAL(18,3))`"},
        {"1..2", {.kind = TYPE_DOUBLE}, "cannot read '1..2' as DOUBLE in `CAST(#1 AS DOUBLE)`"},
        {"2001-02-29",
         {.kind = TYPE_DATE},
         "cannot read '2001-02-29' as DATE in `CAST(#1 AS DATE)`"},
        {"noon",
         {.kind = TYPE_TIMESTAMP},
         "cannot read 'noon' as TIMESTAMP in `CAST(#1 AS TIMESTAMP)`"},
        {"maybe", {.kind = TYPE_BOOL}, "cannot read 'maybe' as BOOL in `CAST(#1 AS BOOL)`"},
        {"0123456789012345678901234567890123456789012345678901234567890123456789",
         {.kind = TYPE_INT},
         "cannot read '012345678901234567890123456789012345678901234567890123456789...' as INT in "
         "`CAST(#1 AS INT)`"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        arena_reset(&expr_arena);
        struct text texts[] = {TEXT_LITERAL("1"), text_of(cases[i].value)};
        struct column column = {.type = TYPE(TEXT), .texts = texts};
        const struct expr *arg = expr_column(&expr_arena, 0, TYPE(TEXT));
        const struct expr *expr = call(FUNCTION_CAST, cases[i].to, &arg, 1);
        const uint32_t second[] = {1};
        expect(expr, &column, 2, (struct selection){second, 1}, STATUS_INPUT, cases[i].text);
    }
}

static void casts_refuse_numbers_that_do_not_fit(void **state)
{
    (void)state;
    const struct type small = {TYPE_DECIMAL, 3, 2};
    static const double doubles[] = {9223372036854775808.0, -9223372036854777856.0, NAN, INFINITY};
    for (size_t i = 0; i < sizeof doubles / sizeof doubles[0]; i++) {
        arena_reset(&expr_arena);
        double values[] = {doubles[i]};
        struct column column = {.type = TYPE(DOUBLE), .doubles = values};
        const struct expr *arg = expr_column(&expr_arena, 0, TYPE(DOUBLE));
        expect(call(FUNCTION_CAST, TYPE(INT), &arg, 1), &column, 1, (struct selection){NULL, 1},
               STATUS_OVERFLOW, "INT overflow in `CAST(#1 AS INT)`");
        expect(call(FUNCTION_CAST, small, &arg, 1), &column, 1, (struct selection){NULL, 1},
               STATUS_OVERFLOW, "DECIMAL(3,2) overflow in `CAST(#1 AS DECIMAL(3,2))`");
    }
    arena_reset(&expr_arena);
    int64_t ints[] = {10};
    struct column column = {.type = TYPE(INT), .ints = ints};
    const struct expr *arg = expr_column(&expr_arena, 0, TYPE(INT));
    expect(call(FUNCTION_CAST, small, &arg, 1), &column, 1, (struct selection){NULL, 1},
           STATUS_OVERFLOW, "DECIMAL(3,2) overflow in `CAST(#1 AS DECIMAL(3,2))`");
}

/* CAST('x' AS INT) = 1, for the rows where the guard lets it be computed. */
static const struct expr *failing(void)
{
    const struct expr *text = expr_column(&expr_arena, 0, TYPE(TEXT));
    const struct expr *args[] = {call(FUNCTION_CAST, TYPE(INT), &text, 1), int_constant(1)};
    return call(FUNCTION_EQUAL, TYPE(BOOL), args, 2);
}

static void decided_rows_cannot_fail_any_more(void **state)
{
    (void)state;
    arena_reset(&expr_arena);
    struct text texts[] = {TEXT_LITERAL("bad"), TEXT_LITERAL("1"), TEXT_LITERAL("2")};
    struct column column = {.type = TYPE(TEXT), .texts = texts};
    struct selection all = {NULL, 3};
    const struct expr *text = expr_column(&expr_arena, 0, TYPE(TEXT));
    const struct expr *pair[] = {text, text_constant("bad")};
    const struct expr *is_bad = call(FUNCTION_EQUAL, TYPE(BOOL), pair, 2);
    const struct expr *is_good = call(FUNCTION_NOT_EQUAL, TYPE(BOOL), pair, 2);
    const struct expr *null_if_bad = call(FUNCTION_NULLIF, TYPE(TEXT), pair, 2);
    const char *text_of_error = "cannot read 'bad' as INT in `CAST(#1 AS INT)`";

    const struct expr *and_guarded[] = {is_good, failing()};
    expect(call(FUNCTION_AND, TYPE(BOOL), and_guarded, 2), &column, 3, all, STATUS_OK, "");
    const struct expr *and_open[] = {failing(), is_good};
    expect(call(FUNCTION_AND, TYPE(BOOL), and_open, 2), &column, 3, all, STATUS_INPUT,
           text_of_error);
    const struct expr *or_guarded[] = {is_bad, failing()};
    expect(call(FUNCTION_OR, TYPE(BOOL), or_guarded, 2), &column, 3, all, STATUS_OK, "");
    const struct expr *case_guarded[] = {is_bad, bool_constant(false), failing()};
    expect(call(FUNCTION_CASE, TYPE(BOOL), case_guarded, 3), &column, 3, all, STATUS_OK, "");
    const struct expr *case_then[] = {is_good, failing(), bool_constant(false)};
    expect(call(FUNCTION_CASE, TYPE(BOOL), case_then, 3), &column, 3, all, STATUS_OK, "");
    const struct expr *case_open[] = {is_bad, failing(), bool_constant(false)};
    expect(call(FUNCTION_CASE, TYPE(BOOL), case_open, 3), &column, 3, all, STATUS_INPUT,
           text_of_error);

    /* 'bad' stays, the others become NULL; only those need the second argument. */
    const struct expr *only_bad[] = {is_bad, text};
    const struct expr *printed = failing();
    const struct expr *coalesce[] = {call(FUNCTION_CASE, TYPE(TEXT), only_bad, 2),
                                     call(FUNCTION_CAST, TYPE(TEXT), &printed, 1)};
    expect(call(FUNCTION_COALESCE, TYPE(TEXT), coalesce, 2), &column, 3, all, STATUS_OK, "");
    const struct expr *nullif_cast = call(FUNCTION_CAST, TYPE(INT), &null_if_bad, 1);
    expect(nullif_cast, &column, 3, all, STATUS_OK, "");
}

static void filters_narrow_conjunct_by_conjunct(void **state)
{
    (void)state;
    arena_reset(&expr_arena);
    struct text texts[] = {TEXT_LITERAL("bad"), TEXT_LITERAL("1"), TEXT_LITERAL("2"),
                           TEXT_LITERAL("1.0")};
    struct column column = {.type = TYPE(TEXT), .texts = texts};
    struct batch batch = {4, 1, &column};
    const struct expr *pair[] = {expr_column(&expr_arena, 0, TYPE(TEXT)), text_constant("bad")};
    const struct expr *args[] = {call(FUNCTION_NOT_EQUAL, TYPE(BOOL), pair, 2), failing()};
    struct eval *eval;
    struct error err;
    struct eval_context context = {.arena = &batch_arena};
    assert_int_equal(
        eval_create(call(FUNCTION_AND, TYPE(BOOL), args, 2), NULL, &stage_arena, &eval, &err),
        STATUS_OK);
    uint32_t rows[4];
    uint32_t count;
    assert_int_equal(
        eval_filter(eval, &batch, (struct selection){NULL, 4}, &context, rows, &count, &err),
        STATUS_OK);
    assert_int_equal(count, 2);
    assert_int_equal(rows[0], 1);
    assert_int_equal(rows[1], 3);
    assert_int_equal(
        eval_filter(eval, &batch, (struct selection){NULL, 0}, &context, rows, &count, &err),
        STATUS_OK);
    assert_int_equal(count, 0);
    eval_destroy(eval);
}

/* --- Constants, patterns, lists from texts. --- */

static void constant_errors_wait_for_a_row(void **state)
{
    (void)state;
    arena_reset(&expr_arena);
    const struct expr *args[] = {int_constant(INT64_MAX), int_constant(1)};
    const struct expr *expr = call(FUNCTION_ADD, TYPE(INT), args, 2);
    struct column unused = {.type = TYPE(INT)};
    expect(expr, &unused, 1, (struct selection){NULL, 1}, STATUS_OVERFLOW,
           "INT overflow in `9223372036854775807 + 1`");
    expect(expr, &unused, 1, (struct selection){NULL, 0}, STATUS_OK, "");
}

static void patterns_are_computed_from_constants(void **state)
{
    (void)state;
    arena_reset(&expr_arena);
    struct text texts[] = {TEXT_LITERAL("/r/x/comments/abc1/t"),
                           TEXT_LITERAL("none"),
                           {0},
                           TEXT_LITERAL("/comments//")};
    uint8_t nulls[] = {0, 0, 1, 0};
    texts[2] = (struct text){(const char *)(uintptr_t)1, 100};
    struct column column = {.type = TYPE(TEXT), .texts = texts, .nulls = nulls};
    struct batch batch = {4, 1, &column};
    const struct expr *parts[] = {text_constant("/COMMENTS/"), text_constant("([^/]*)/")};
    const struct expr *pattern = call(FUNCTION_CONCAT, TYPE(TEXT), parts, 2);
    const struct expr *lower = call(FUNCTION_LOWER, TYPE(TEXT), &pattern, 1);
    const struct expr *text = expr_column(&expr_arena, 0, TYPE(TEXT));
    const struct expr *extract_args[] = {text, lower, int_constant(1)};
    const struct expr *match_args[] = {text, pattern, text_constant("i")};
    struct eval *extract, *match;
    struct error err;
    struct column found, matched;
    struct eval_context context = {.arena = &batch_arena};
    assert_int_equal(eval_create(call(FUNCTION_REGEXP_EXTRACT, TYPE(TEXT), extract_args, 3), NULL,
                                 &stage_arena, &extract, &err),
                     STATUS_OK);
    assert_int_equal(eval_create(call(FUNCTION_REGEXP_MATCHES, TYPE(BOOL), match_args, 3), NULL,
                                 &stage_arena, &match, &err),
                     STATUS_OK);
    struct selection all = {NULL, 4};
    assert_int_equal(eval_run(extract, &batch, all, &context, &found, &err), STATUS_OK);
    assert_int_equal(eval_run(match, &batch, all, &context, &matched, &err), STATUS_OK);
    static const char *const expected[] = {"abc1", "", NULL, ""};
    static const uint8_t expected_match[] = {1, 0, 9, 1};
    for (uint32_t row = 0; row < 4; row++) {
        assert_int_equal(column_is_null(&found, row), expected[row] == NULL);
        assert_int_equal(column_is_null(&matched, row), expected[row] == NULL);
        if (expected[row] == NULL) continue;
        assert_true(text_equal(found.texts[row], text_of(expected[row])));
        assert_int_equal(matched.bools[row], expected_match[row]);
    }
    eval_destroy(extract);
    eval_destroy(match);
}

static void bad_constants_are_refused_before_any_row(void **state)
{
    (void)state;
    arena_reset(&expr_arena);
    struct column unused = {.type = TYPE(TEXT)};
    const struct expr *text = expr_column(&expr_arena, 0, TYPE(TEXT));
    const struct expr *date = expr_column(&expr_arena, 0, TYPE(DATE));
    struct selection none = {NULL, 0};
    const struct expr *bad_pattern[] = {text, text_constant("a(b")};
    expect(call(FUNCTION_REGEXP_MATCHES, TYPE(BOOL), bad_pattern, 2), &unused, 0, none, STATUS_SQL,
           "regular expression `a(b`: missing closing parenthesis at position 4");
    const struct expr *bad_option[] = {text, text_constant("a"), text_constant("q")};
    expect(call(FUNCTION_REGEXP_MATCHES, TYPE(BOOL), bad_option, 3), &unused, 0, none, STATUS_SQL,
           "regular expressions have the options i, c, s, m, n, p and l, not `q`");
    const struct expr *bad_group[] = {text, text_constant("a(b)"), int_constant(2)};
    expect(call(FUNCTION_REGEXP_EXTRACT, TYPE(TEXT), bad_group, 3), &unused, 0, none, STATUS_SQL,
           "regexp_extract: there is no group 2; the expression has 1");
    const struct expr *no_constant[] = {text, text};
    expect(call(FUNCTION_REGEXP_MATCHES, TYPE(BOOL), no_constant, 2), &unused, 0, none, STATUS_SQL,
           "a regular expression must be a constant");
    expect(call(FUNCTION_PLUCK, TYPE(LIST_TEXT), no_constant, 2), &unused, 0, none, STATUS_SQL,
           "the key of pluck must be a constant");
    const struct expr *bad_format[] = {date, text_constant("%Q")};
    expect(call(FUNCTION_STRFTIME, TYPE(TEXT), bad_format, 2), &unused, 0, none, STATUS_SQL,
           "strftime cannot read the format '%Q'");
    /* A failure in the second argument frees the expression compiled in the first. */
    const struct expr *good_pattern[] = {text, text_constant("a+")};
    const struct expr *both[] = {call(FUNCTION_REGEXP_MATCHES, TYPE(BOOL), good_pattern, 2),
                                 call(FUNCTION_REGEXP_MATCHES, TYPE(BOOL), bad_pattern, 2)};
    expect(call(FUNCTION_AND, TYPE(BOOL), both, 2), &unused, 0, none, STATUS_SQL,
           "regular expression `a(b`: missing closing parenthesis at position 4");
}

static void pluck_makes_lists_and_counts_what_it_cannot_read(void **state)
{
    (void)state;
    arena_reset(&expr_arena);
    struct text texts[] = {TEXT_LITERAL("[{'id': 1, 'name': 'Spain'}, {'name': \"It's\"}]"),
                           TEXT_LITERAL("[{'name'"),
                           {(const char *)(uintptr_t)1, 9},
                           TEXT_LITERAL("[]"),
                           TEXT_LITERAL("[{'name': 'x'}]")};
    uint8_t nulls[] = {0, 0, 1, 0, 0};
    struct column column = {.type = TYPE(TEXT), .texts = texts, .nulls = nulls};
    struct batch batch = {5, 1, &column};
    const struct expr *args[] = {expr_column(&expr_arena, 0, TYPE(TEXT)), text_constant("name")};
    const struct expr *list = call(FUNCTION_PLUCK, TYPE(LIST_TEXT), args, 2);
    const struct expr *printed = call(FUNCTION_CAST, TYPE(TEXT), &list, 1);
    struct eval *eval;
    struct error err;
    struct column out;
    uint64_t malformed = 10;
    struct eval_context context = {.arena = &batch_arena, .malformed = &malformed};
    assert_int_equal(eval_create(printed, NULL, &stage_arena, &eval, &err), STATUS_OK);
    assert_int_equal(eval_run(eval, &batch, (struct selection){NULL, 5}, &context, &out, &err),
                     STATUS_OK);
    static const char *const expected[] = {"[Spain, It's]", "[]", NULL, "[]", "[x]"};
    for (uint32_t row = 0; row < 5; row++) {
        assert_int_equal(column_is_null(&out, row), expected[row] == NULL);
        if (expected[row] != NULL) {
            assert_true(text_equal(out.texts[row], text_of(expected[row])));
        }
    }
    assert_int_equal(malformed, 11);
    eval_destroy(eval);
}

static void extreme_positions_are_harmless(void **state)
{
    (void)state;
    static const int64_t ends[] = {INT64_MIN, INT64_MIN + 1, INT64_MAX, INT64_MAX - 1};
    struct text texts[] = {TEXT_LITERAL("abc"), TEXT_LITERAL("\xc3\xa9t\xc3\xa9"),
                           TEXT_LITERAL("")};
    struct column column = {.type = TYPE(TEXT), .texts = texts};
    struct selection all = {NULL, 3};
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            arena_reset(&expr_arena);
            const struct expr *args[] = {expr_column(&expr_arena, 0, TYPE(TEXT)),
                                         int_constant(ends[i]), int_constant(ends[j])};
            expect(call(FUNCTION_SUBSTRING, TYPE(TEXT), args, 3), &column, 3, all, STATUS_OK, "");
            const struct expr *split[] = {args[0], text_constant("b"), int_constant(ends[i])};
            expect(call(FUNCTION_SPLIT_PART, TYPE(TEXT), split, 3), &column, 3, all, STATUS_OK, "");
        }
    }
}

static void memory_that_runs_out_is_reported_wherever_it_does(void **state)
{
    (void)state;
    struct arena arena;
    struct arena stage;
    arena_reset(&expr_arena);
    struct text texts[] = {TEXT_LITERAL("ABC"), TEXT_LITERAL("abc"), TEXT_LITERAL("x")};
    struct column text_column = {.type = TYPE(TEXT), .texts = texts};
    struct batch batch = {3, 1, &text_column};
    const struct expr *text = expr_column(&expr_arena, 0, TYPE(TEXT));
    const struct expr *match_args[] = {text, text_constant("(a|b)+c")};
    const struct expr *case_args[] = {call(FUNCTION_REGEXP_MATCHES, TYPE(BOOL), match_args, 2),
                                      call(FUNCTION_LOWER, TYPE(TEXT), &text, 1),
                                      double_constant(0.5)};
    case_args[2] = call(FUNCTION_CAST, TYPE(TEXT), &case_args[2], 1);
    const struct expr *in_args[] = {call(FUNCTION_CASE, TYPE(TEXT), case_args, 3),
                                    text_constant("a"), text_constant("b")};
    const struct expr *expr = call(FUNCTION_IN, TYPE(BOOL), in_args, 3);
    for (size_t allowed = 0;; allowed++) {
        assert_true(allowed < 1000);
        struct eval *eval = NULL;
        struct error err = {0};
        struct column column;
        arena_init(&arena, NULL);
        arena_init(&stage, NULL);
        struct eval_context context = {.arena = &arena};
        memory_fail_after(allowed);
        status code = eval_create(expr, NULL, &stage, &eval, &err);
        if (code == STATUS_OK) {
            code = eval_run(eval, &batch, (struct selection){NULL, 3}, &context, &column, &err);
        }
        bool refused = memory_was_refused();
        memory_fail_never();
        eval_destroy(eval);
        arena_done(&arena);
        arena_done(&stage);
        /* Folding and machine code are left out when there is no memory for them. */
        assert_true(code == STATUS_OK || code == STATUS_MEMORY);
        if (!refused) break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overflow_is_an_error_of_the_selected_rows_that_are_not_null),
        cmocka_unit_test(casts_say_what_they_could_not_read),
        cmocka_unit_test(casts_refuse_numbers_that_do_not_fit),
        cmocka_unit_test(decided_rows_cannot_fail_any_more),
        cmocka_unit_test(filters_narrow_conjunct_by_conjunct),
        cmocka_unit_test(constant_errors_wait_for_a_row),
        cmocka_unit_test(patterns_are_computed_from_constants),
        cmocka_unit_test(bad_constants_are_refused_before_any_row),
        cmocka_unit_test(pluck_makes_lists_and_counts_what_it_cannot_read),
        cmocka_unit_test(extreme_positions_are_harmless),
        cmocka_unit_test(memory_that_runs_out_is_reported_wherever_it_does),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
