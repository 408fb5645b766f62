/* SPDX-License-Identifier: Apache-2.0 */
/* test_expr.c - expressions compare, print and have costs; the table of functions is sound.
 *
 * Method: printed SQL is written down per expression. The table is walked whole: every function has
 * an entry, every entry has known letters, and signatures of one name follow each other.
 */
#include "unit/test.h"

#include <string.h>

#include "engine/base/calendar.h"
#include "engine/plan/expr.h"

static struct arena arena;

static int set_up(void **state)
{
    (void)state;
    arena_init(&arena, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}

static const struct expr *column(uint32_t number, uint8_t kind)
{
    return expr_column(&arena, number, (struct type){.kind = kind});
}

static const struct expr *integer(int64_t value)
{
    return expr_constant(&arena, (struct value){.integer = value}, TYPE(INT));
}

static const struct expr *text(const char *value)
{
    return expr_constant(&arena, (struct value){.text = text_of(value)}, TYPE(TEXT));
}

static const struct expr *call_one(enum function_id function, struct type type,
                                   const struct expr *a)
{
    return expr_call(&arena, function, type, &a, 1);
}

static const struct expr *call_two(enum function_id function, struct type type,
                                   const struct expr *a, const struct expr *b)
{
    const struct expr *args[] = {a, b};
    return expr_call(&arena, function, type, args, 2);
}

static const struct expr *call_three(enum function_id function, struct type type,
                                     const struct expr *a, const struct expr *b,
                                     const struct expr *c)
{
    const struct expr *args[] = {a, b, c};
    return expr_call(&arena, function, type, args, 3);
}

static void expect_sql(const struct expr *expr, const char *expected)
{
    const struct field fields[] = {{.name = TEXT_LITERAL("a")},
                                   {.name = TEXT_LITERAL("b")},
                                   {.name = TEXT_LITERAL("odd \"name\"")},
                                   {.name = TEXT_LITERAL("2nd")}};
    const struct schema input = {fields, 4};
    struct buf out = {0};
    expr_print(expr, &input, &out);
    buf_put_u8(&out, 0);
    assert_false(out.failed);
    assert_string_equal((const char *)out.bytes, expected);
    buf_done(&out);
}

static void operators_print_with_the_parentheses_they_need(void **state)
{
    (void)state;
    const struct expr *a = column(0, TYPE_INT);
    const struct expr *b = column(1, TYPE_INT);
    const struct type t = TYPE(INT);
    const struct expr *sum = call_two(FUNCTION_ADD, t, a, b);
    const struct expr *difference = call_two(FUNCTION_SUBTRACT, t, a, b);
    const struct expr *product = call_two(FUNCTION_MULTIPLY, t, a, b);
    expect_sql(sum, "a + b");
    expect_sql(call_two(FUNCTION_MULTIPLY, t, sum, b), "(a + b) * b");
    expect_sql(call_two(FUNCTION_ADD, t, product, b), "a * b + b");
    expect_sql(call_two(FUNCTION_SUBTRACT, t, difference, b), "a - b - b");
    expect_sql(call_two(FUNCTION_SUBTRACT, t, a, difference), "a - (a - b)");
    expect_sql(call_two(FUNCTION_SUBTRACT, t, a, integer(-1)), "a - -1");
    expect_sql(call_one(FUNCTION_NEGATE, t, integer(-1)), "-(-1)");
    expect_sql(call_one(FUNCTION_NEGATE, t, sum), "-(a + b)");
    expect_sql(call_two(FUNCTION_INTEGER_DIVIDE, t, a, integer(2)), "a // 2");
    expect_sql(call_two(FUNCTION_MODULO, t, a, integer(2)), "a % 2");

    const struct expr *less = call_two(FUNCTION_LESS, TYPE(BOOL), a, b);
    const struct expr *both = call_two(FUNCTION_AND, TYPE(BOOL), less, less);
    const struct expr *either = call_two(FUNCTION_OR, TYPE(BOOL), less, less);
    expect_sql(call_two(FUNCTION_EQUAL, TYPE(BOOL), less, less), "(a < b) = (a < b)");
    expect_sql(call_two(FUNCTION_AND, TYPE(BOOL), both, either),
               "a < b AND a < b AND (a < b OR a < b)");
    expect_sql(call_two(FUNCTION_OR, TYPE(BOOL), both, either),
               "a < b AND a < b OR (a < b OR a < b)");
    expect_sql(call_one(FUNCTION_NOT, TYPE(BOOL), both), "NOT (a < b AND a < b)");
    expect_sql(call_one(FUNCTION_NOT, TYPE(BOOL), less), "NOT a < b");
    expect_sql(call_one(FUNCTION_IS_NULL, TYPE(BOOL), less), "(a < b) IS NULL");
    expect_sql(call_one(FUNCTION_IS_NOT_NULL, TYPE(BOOL), sum), "a + b IS NOT NULL");
    expect_sql(call_three(FUNCTION_IN, TYPE(BOOL), sum, integer(1), less), "a + b IN (1, a < b)");
}

static void names_functions_and_constants_print_as_sql(void **state)
{
    (void)state;
    const struct expr *a = column(0, TYPE_TEXT);
    expect_sql(column(2, TYPE_TEXT), "\"odd \"\"name\"\"\"");
    expect_sql(column(3, TYPE_TEXT), "\"2nd\"");
    expect_sql(column(9, TYPE_TEXT), "#10");
    expect_sql(call_two(FUNCTION_LIKE, TYPE(BOOL), a, text("%it's%")), "a LIKE '%it''s%'");
    expect_sql(call_one(FUNCTION_LOWER, TYPE(TEXT), a), "lower(a)");
    expect_sql(call_three(FUNCTION_SUBSTRING, TYPE(TEXT), a, integer(1), integer(2)),
               "substring(a, 1, 2)");
    expect_sql(call_one(FUNCTION_CAST, (struct type){TYPE_DECIMAL, 10, 2}, a),
               "CAST(a AS DECIMAL(10,2))");
    expect_sql(call_three(FUNCTION_CASE, TYPE(TEXT), column(1, TYPE_BOOL), a, text("")),
               "CASE WHEN b THEN a ELSE '' END");
    expect_sql(call_two(FUNCTION_CASE, TYPE(TEXT), column(1, TYPE_BOOL), a),
               "CASE WHEN b THEN a END");
    expect_sql(call_two(FUNCTION_CONCAT, TYPE(TEXT), a, a), "a || a");
    struct expr scalar = {.kind = EXPR_SCALAR, .fold = 3};
    expect_sql(&scalar, "(fold #3)");

    const struct {
        struct value value;
        struct type type;
        const char *sql;
    } cases[] = {
        {{.is_null = true}, TYPE(TEXT), "NULL"},
        {{.truth = true}, TYPE(BOOL), "TRUE"},
        {{.truth = false}, TYPE(BOOL), "FALSE"},
        {{.integer = -5}, TYPE(INT), "-5"},
        {{.integer = 12345}, {TYPE_DECIMAL, 18, 3}, "12.345"},
        {{.number = 0.5}, TYPE(DOUBLE), "0.5"},
        {{.integer = date_pack(2000, 1, 31)}, TYPE(DATE), "DATE '2000-01-31'"},
        {{.integer = timestamp_of_date(date_pack(2000, 1, 31))},
         TYPE(TIMESTAMP),
         "TIMESTAMP '2000-01-31 00:00:00'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_sql(expr_constant(&arena, cases[i].value, cases[i].type), cases[i].sql);
    }
}

static void equality_looks_at_everything(void **state)
{
    (void)state;
    const struct expr *distinct[] = {
        column(0, TYPE_INT),
        column(1, TYPE_INT),
        column(0, TYPE_TEXT),
        integer(1),
        integer(2),
        text("1"),
        text("2"),
        expr_constant(&arena, (struct value){.is_null = true}, TYPE(INT)),
        expr_constant(&arena, (struct value){.number = 1.0}, TYPE(DOUBLE)),
        expr_constant(&arena, (struct value){.truth = true}, TYPE(BOOL)),
        call_two(FUNCTION_ADD, TYPE(INT), column(0, TYPE_INT), integer(1)),
        call_two(FUNCTION_ADD, TYPE(INT), column(0, TYPE_INT), integer(2)),
        call_two(FUNCTION_SUBTRACT, TYPE(INT), column(0, TYPE_INT), integer(1)),
        call_one(FUNCTION_NEGATE, TYPE(INT), column(0, TYPE_INT)),
        call_one(FUNCTION_CAST, (struct type){TYPE_DECIMAL, 10, 2}, column(0, TYPE_INT)),
        call_one(FUNCTION_CAST, (struct type){TYPE_DECIMAL, 11, 2}, column(0, TYPE_INT)),
    };
    enum { COUNT = sizeof distinct / sizeof distinct[0] };
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t j = 0; j < COUNT; j++) {
            assert_int_equal(expr_equal(distinct[i], distinct[j]), i == j);
        }
    }
    assert_true(expr_equal(call_two(FUNCTION_ADD, TYPE(INT), column(0, TYPE_INT), integer(1)),
                           distinct[10]));
}

static void what_can_fail_is_known(void **state)
{
    (void)state;
    const struct expr *i = column(0, TYPE_INT);
    const struct expr *d = column(0, TYPE_DOUBLE);
    const struct expr *t = column(0, TYPE_TEXT);
    const struct expr *m = expr_column(&arena, 0, (struct type){TYPE_DECIMAL, 10, 2});
    assert_false(expr_can_fail(i));
    assert_true(expr_can_fail(call_two(FUNCTION_ADD, TYPE(INT), i, i)));
    assert_false(expr_can_fail(call_two(FUNCTION_ADD, TYPE(DOUBLE), d, d)));
    assert_true(expr_can_fail(call_one(FUNCTION_ABS, TYPE(INT), i)));
    assert_false(expr_can_fail(call_one(FUNCTION_ABS, TYPE(DOUBLE), d)));
    assert_false(expr_can_fail(call_two(FUNCTION_DIVIDE, TYPE(DOUBLE), d, d)));
    assert_false(expr_can_fail(call_two(FUNCTION_LESS, TYPE(BOOL), i, i)));
    const struct expr *sum = call_two(FUNCTION_ADD, TYPE(INT), i, i);
    assert_true(expr_can_fail(call_two(FUNCTION_LESS, TYPE(BOOL), i, sum)));
    assert_true(expr_can_fail(call_one(FUNCTION_CAST, TYPE(INT), t)));
    assert_true(expr_can_fail(call_one(FUNCTION_CAST, TYPE(DOUBLE), t)));
    assert_true(expr_can_fail(call_one(FUNCTION_CAST, TYPE(BOOL), t)));
    assert_true(expr_can_fail(call_one(FUNCTION_CAST, TYPE(INT), d)));
    assert_false(expr_can_fail(call_one(FUNCTION_CAST, TYPE(TEXT), t)));
    assert_false(expr_can_fail(call_one(FUNCTION_CAST, TYPE(TEXT), i)));
    assert_false(expr_can_fail(call_one(FUNCTION_CAST, TYPE(DOUBLE), i)));
    assert_false(expr_can_fail(call_one(FUNCTION_CAST, TYPE(INT), m)));
    assert_true(expr_can_fail(call_one(FUNCTION_CAST, (struct type){TYPE_DECIMAL, 10, 2}, i)));
    assert_false(expr_can_fail(call_one(FUNCTION_CAST, (struct type){TYPE_DECIMAL, 12, 4}, m)));
    assert_true(expr_can_fail(call_one(FUNCTION_CAST, (struct type){TYPE_DECIMAL, 10, 4}, m)));
    /* 9.99 rounds to 10.0, which needs a digit more. */
    assert_true(expr_can_fail(call_one(FUNCTION_CAST, (struct type){TYPE_DECIMAL, 9, 1}, m)));
    const enum function_id matches = FUNCTION_REGEXP_MATCHES;
    assert_false(expr_can_fail(call_two(matches, TYPE(BOOL), t, text("college|student 2"))));
    assert_true(expr_can_fail(call_two(matches, TYPE(BOOL), t, text("(a+)+$"))));
}

static void what_keeps_its_place_is_known(void **state)
{
    (void)state;
    const struct expr *i = column(0, TYPE_INT);
    const struct expr *t = column(0, TYPE_TEXT);
    const struct expr *list = call_two(FUNCTION_PLUCK, TYPE(LIST_TEXT), t, text("name"));
    const struct expr *length = call_one(FUNCTION_LIST_LENGTH, TYPE(INT), list);
    const struct expr *sum = call_two(FUNCTION_ADD, TYPE(INT), i, i);
    assert_true(expr_counts(list) && expr_keeps_its_place(list));
    assert_true(expr_counts(length) && expr_keeps_its_place(length));
    assert_false(expr_counts(sum));
    assert_true(expr_keeps_its_place(sum));
    assert_false(expr_keeps_its_place(i));
    assert_false(expr_keeps_its_place(call_one(FUNCTION_LENGTH, TYPE(INT), t)));
}

static void costs_grow_with_the_work(void **state)
{
    (void)state;
    const struct expr *i = column(0, TYPE_INT);
    const struct expr *t = column(0, TYPE_TEXT);
    const struct expr *number = call_two(FUNCTION_LESS, TYPE(BOOL), i, integer(1));
    const struct expr *texts = call_two(FUNCTION_EQUAL, TYPE(BOOL), t, text("x"));
    const struct expr *like = call_two(FUNCTION_LIKE, TYPE(BOOL), t, text("%x%"));
    const struct expr *regexp = call_two(FUNCTION_REGEXP_MATCHES, TYPE(BOOL), t, text("x+"));
    assert_int_equal(expr_cost(i), 0);
    assert_int_equal(expr_cost(number), 1);
    assert_true(expr_cost(number) < expr_cost(texts));
    assert_true(expr_cost(texts) < expr_cost(like));
    assert_true(expr_cost(like) < expr_cost(regexp));
    assert_true(expr_cost(call_two(FUNCTION_AND, TYPE(BOOL), like, regexp)) > expr_cost(regexp));
}

static void expressions_reach_as_far_as_what_they_compare_with(void **state)
{
    (void)state;
    const struct type truth = TYPE(BOOL);
    const struct expr *t = column(0, TYPE_TEXT);
    const struct expr *other = column(1, TYPE_TEXT);
    const struct expr *null = expr_constant(&arena, (struct value){.is_null = true}, TYPE(TEXT));
    const struct expr *list[] = {t, text("ab"), text("abcde"), null};
    const struct expr *among = expr_call(&arena, FUNCTION_IN, truth, list, 4);
    const struct expr *equal = call_two(FUNCTION_EQUAL, truth, t, text("abc"));
    const struct expr *empty = call_two(FUNCTION_NOT_EQUAL, truth, t, text(""));
    const struct expr *same = call_two(FUNCTION_EQUAL, truth, t, other);
    const struct expr *lower = call_one(FUNCTION_LOWER, TYPE(TEXT), t);
    assert_int_equal(expr_prefix(t, 0), UINT32_MAX);
    assert_int_equal(expr_prefix(t, 1), 0);
    assert_int_equal(expr_prefix(equal, 0), 3);
    assert_int_equal(expr_prefix(equal, 1), 0);
    assert_int_equal(expr_prefix(empty, 0), 0);
    assert_int_equal(expr_prefix(among, 0), 5);
    assert_int_equal(expr_prefix(call_one(FUNCTION_IS_NULL, truth, t), 0), 0);
    assert_int_equal(expr_prefix(call_one(FUNCTION_NOT, truth, among), 0), 5);
    assert_int_equal(expr_prefix(call_two(FUNCTION_OR, truth, equal, among), 0), 5);
    /* Nothing that sees more than whether it is there. */
    assert_int_equal(expr_prefix(same, 0), UINT32_MAX);
    assert_int_equal(expr_prefix(same, 1), UINT32_MAX);
    assert_int_equal(expr_prefix(call_two(FUNCTION_EQUAL, truth, lower, text("abc")), 0),
                     UINT32_MAX);
    assert_int_equal(expr_prefix(call_two(FUNCTION_LESS, truth, t, text("abc")), 0), UINT32_MAX);
    assert_int_equal(expr_prefix(call_two(FUNCTION_AND, truth, equal, same), 0), UINT32_MAX);
    const struct expr *mixed[] = {t, text("ab"), other};
    assert_int_equal(expr_prefix(expr_call(&arena, FUNCTION_IN, truth, mixed, 3), 0), UINT32_MAX);
}

static void count_node(const struct expr *expr, void *context)
{
    int *counts = context;
    counts[expr->kind]++;
}

static void visiting_reaches_every_node(void **state)
{
    (void)state;
    const struct expr *sum = call_two(FUNCTION_ADD, TYPE(INT), column(0, TYPE_INT), integer(1));
    int counts[4] = {0};
    expr_visit(call_two(FUNCTION_LESS, TYPE(BOOL), sum, sum), count_node, counts);
    assert_int_equal(counts[EXPR_CALL], 3);
    assert_int_equal(counts[EXPR_COLUMN], 2);
    assert_int_equal(counts[EXPR_CONSTANT], 2);
}

static void arguments_are_copied(void **state)
{
    (void)state;
    const struct expr *args[] = {integer(1), integer(2)};
    const struct expr *sum = expr_call(&arena, FUNCTION_ADD, TYPE(INT), args, 2);
    args[0] = NULL;
    assert_int_equal(sum->args[0]->constant.integer, 1);
}

static void full_arena_gives_no_expression(void **state)
{
    (void)state;
    struct budget budget = {.limit_bytes = 10};
    struct arena small;
    arena_init(&small, &budget);
    assert_null(expr_column(&small, 0, TYPE(INT)));
    assert_null(expr_constant(&small, (struct value){0}, TYPE(INT)));
    assert_null(expr_call(&small, FUNCTION_AND, TYPE(BOOL), NULL, 0));
    arena_done(&small);
}

/* --- The table. --- */

static void numbers_are_changed_everywhere_and_only_where_asked(void **state)
{
    (void)state;
    const uint32_t columns[] = {2, 0, 1};
    const uint32_t folds[] = {5, 6};
    const struct expr scalar = {.kind = EXPR_SCALAR, .type = TYPE(INT), .fold = 1};
    const struct expr other = {.kind = EXPR_SCALAR, .type = TYPE(INT), .fold = 6};
    const struct expr *sum = call_two(FUNCTION_ADD, TYPE(INT), column(0, TYPE_INT),
                                      call_two(FUNCTION_ADD, TYPE(INT), integer(7), &scalar));
    const struct expr *both = call_two(FUNCTION_ADD, TYPE(INT), column(2, TYPE_INT),
                                       call_two(FUNCTION_ADD, TYPE(INT), integer(7), &other));
    const struct expr *columns_only =
        call_two(FUNCTION_ADD, TYPE(INT), column(2, TYPE_INT),
                 call_two(FUNCTION_ADD, TYPE(INT), integer(7), &scalar));
    assert_true(expr_equal(expr_renumber(&arena, sum, columns, folds), both));
    assert_true(expr_equal(expr_renumber(&arena, sum, columns, NULL), columns_only));
    assert_true(expr_equal(expr_renumber(&arena, sum, NULL, NULL), sum));
    assert_int_equal(sum->args[0]->column, 0);
    const struct value zeros[] = {{.number = 0.0}, {.number = -0.0}};
    assert_false(expr_equal(expr_constant(&arena, zeros[0], TYPE(DOUBLE)),
                            expr_constant(&arena, zeros[1], TYPE(DOUBLE))));
}

static void every_function_has_a_sound_entry(void **state)
{
    (void)state;
    for (int id = FUNCTION_NONE + 1; id < FUNCTION_COUNT; id++) {
        const struct function *function = function_by_id((enum function_id)id);
        assert_non_null(function);
        assert_int_equal(function->id, id);
        size_t letters = strlen(function->arguments);
        assert_true(letters > 0);
        assert_int_equal(strspn(function->arguments, "bidtnmplLa="), letters);
        assert_non_null(strchr("bidtL=1", function->result));
        assert_true(function->minimum_count >= 1);
        assert_true(function->variadic || function->minimum_count <= letters);
        assert_true(function->cost > 0);
    }
    assert_null(function_by_id(FUNCTION_NONE));
}

static void names_are_found_with_all_their_signatures(void **state)
{
    (void)state;
    struct text names[200];
    uint32_t count = function_names(names, 200);
    assert_in_range(count, 20, 199);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t signatures = 0;
        const struct function *function = function_find(names[i], &signatures);
        assert_non_null(function);
        assert_true(signatures >= 1);
        for (uint32_t j = 0; j < signatures; j++) {
            assert_true(text_equal(text_of(function[j].name), names[i]));
        }
        for (uint32_t j = 0; j < i; j++) {
            assert_false(text_equal(names[i], names[j]));
        }
    }
    uint32_t signatures;
    assert_ptr_equal(function_find(TEXT_LITERAL("LENGTH"), &signatures),
                     function_find(TEXT_LITERAL("length"), &signatures));
    assert_int_equal(signatures, 2);
    assert_null(function_find(TEXT_LITERAL("no such"), &signatures));
    assert_int_equal(signatures, 0);
    assert_null(function_find(TEXT_LITERAL("and"), &signatures));
    assert_int_equal(function_names(names, 3), 3);
}

static void aggregates_are_found_by_name(void **state)
{
    (void)state;
    enum aggregate_kind kind;
    for (int i = AGGREGATE_COUNT; i <= AGGREGATE_ARG_MAX; i++) {
        assert_true(aggregate_find(text_of(aggregate_name((enum aggregate_kind)i)), &kind));
        assert_int_equal(kind, i);
    }
    assert_true(aggregate_find(TEXT_LITERAL("AVG"), &kind));
    assert_int_equal(kind, AGGREGATE_AVG);
    assert_true(aggregate_find(TEXT_LITERAL("max_by"), &kind));
    assert_int_equal(kind, AGGREGATE_ARG_MAX);
    assert_false(aggregate_find(TEXT_LITERAL("count(*)"), &kind));
    assert_false(aggregate_find(TEXT_LITERAL("median"), &kind));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_print_with_the_parentheses_they_need),
        cmocka_unit_test(names_functions_and_constants_print_as_sql),
        cmocka_unit_test(equality_looks_at_everything),
        cmocka_unit_test(what_can_fail_is_known),
        cmocka_unit_test(what_keeps_its_place_is_known),
        cmocka_unit_test(costs_grow_with_the_work),
        cmocka_unit_test(expressions_reach_as_far_as_what_they_compare_with),
        cmocka_unit_test(visiting_reaches_every_node),
        cmocka_unit_test(arguments_are_copied),
        cmocka_unit_test(full_arena_gives_no_expression),
        cmocka_unit_test(numbers_are_changed_everywhere_and_only_where_asked),
        cmocka_unit_test(every_function_has_a_sound_entry),
        cmocka_unit_test(names_are_found_with_all_their_signatures),
        cmocka_unit_test(aggregates_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
