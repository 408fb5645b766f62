/* SPDX-License-Identifier: Apache-2.0 */
/* test_eval.c - every function gives what the naive model gives, on the selected rows alone.
 *
 * Method: batches of values at the exchanges, with and without NULLs, dense and selected. Rows
 * outside of the selection and NULL rows hold poison: pointers that cannot be followed, numbers
 * that overflow, so that a kernel which looks at them crashes or fails. Every function runs with
 * every argument in turn a column, a constant, a scalar sub-query and NULL; then random
 * expressions. Each value is compared with that of naive_eval.h, and BOOLs are filtered with too.
 */
#include "unit/test.h"

#include <stdio.h>

#include "engine/base/random.h"
#include "engine/exec/expr/eval.h"
#include "unit/engine/exec/expr/naive_eval.h"

enum { ROWS = 67, DENSE_ROWS = 50, MODES = 4, FORMS = 4, CONSTANT_TRIES = 3, SCALARS = 32 };

enum column_id {
    INT_A,
    INT_B,
    DECIMAL_A,
    DECIMAL_B,
    DOUBLE_A,
    DOUBLE_B,
    TEXT_A,
    TEXT_B,
    BOOL_A,
    BOOL_B,
    BOOL_C,
    DATE_A,
    DATE_B,
    TIME_A,
    LIST_TEXT_A,
    LIST_TEXT_B,
    LIST_INT_A,
    LIST_INT_B,
    COLUMNS
};

static const struct type decimal_type = {TYPE_DECIMAL, 18, 2};

static struct type column_type(enum column_id id)
{
    static const uint8_t kinds[COLUMNS] = {
        TYPE_INT,  TYPE_INT,       TYPE_DECIMAL,   TYPE_DECIMAL,   TYPE_DOUBLE,   TYPE_DOUBLE,
        TYPE_TEXT, TYPE_TEXT,      TYPE_BOOL,      TYPE_BOOL,      TYPE_BOOL,     TYPE_DATE,
        TYPE_DATE, TYPE_TIMESTAMP, TYPE_LIST_TEXT, TYPE_LIST_TEXT, TYPE_LIST_INT, TYPE_LIST_INT,
    };
    return kinds[id] == TYPE_DECIMAL ? decimal_type : (struct type){.kind = kinds[id]};
}

struct mode {
    struct batch batch;
    struct column columns[COLUMNS];
    struct selection selection;
    uint32_t rows[ROWS];
};

/* What all tests use; set up once. */
static struct arena data_arena;
static struct arena expr_arena;
static struct arena stage_arena;
static struct arena batch_arena;
static struct arena model_arena;
static struct mode modes[MODES];
static struct value scalars[SCALARS];
static struct random dice = {20240607};

#define TEXTS(...)                                                                                 \
    static const char *const pool[] = {__VA_ARGS__};                                               \
    return text_of(pool[random_below(&dice, sizeof pool / sizeof pool[0])])

static struct text some_text(void)
{
    /* An empty text need not be anywhere. */
    if (random_below(&dice, 30) == 0) return (struct text){0};
    TEXTS("", "a", "A", "abc", "ABC", "  abc ", "h\xc3\xa9llo", "\xe6\x97\xa5\xe6\x9c\xac",
          "\xff\xfe", "a\xc3", "abcabc", "%", "a_c", "aXc", "aa,bb,,cc", "a good movie",
          "not good at all", "x'y", "\xc3\xa9t\xc3\xa9", "\xf0\x9f\x98\x80 smile", "\xed\xa0\x80",
          "war and peace",
          "the quick brown fox jumps over the lazy dog and then over the lazy cat");
}

static struct text some_needle(void)
{
    TEXTS("", "a", "abc", "b", "%b%", "a%", "_", "%", "h_llo", "%c", "ABC", ",", "A_C%", "\xc3\xa9",
          "\xff", "__", "%_%", "%o%e%", "abcabc", "\xc3", "a%c", "lazy");
}

static int64_t some_int(void)
{
    static const int64_t pool[] = {0, 1, -1, 2, -2, 3, 4, -5, 7, -7, 10, 100, -100, 12345, -3};
    return pool[random_below(&dice, sizeof pool / sizeof pool[0])];
}

static double some_double(void)
{
    static const double pool[] = {0.0,   -0.0, 1.5,  -1.5,  2.5, 0.5,      -0.5,      3.25,
                                  1e300, 2.0,  1e-5, 0.125, NAN, INFINITY, -INFINITY, -1e-300};
    return pool[random_below(&dice, sizeof pool / sizeof pool[0])];
}

static int64_t some_date(void)
{
    return date_pack(1999 + random_below(&dice, 3), 1 + random_below(&dice, 3),
                     1 + random_below(&dice, 28));
}

static int64_t some_time(void)
{
    return timestamp_of_date(some_date()) | (int64_t)random_below(&dice, 24) << 32 |
           (int64_t)random_below(&dice, 60) << 26 | (int64_t)random_below(&dice, 60) << 20 |
           (int64_t)random_below(&dice, 2) * 500000;
}

static void put_list(struct column *column, uint32_t row, uint32_t *used)
{
    uint32_t count = random_below(&dice, 4);
    column->lists[row] = (struct list){*used, count};
    for (uint32_t i = 0; i < count; i++) {
        if (column->type.kind == TYPE_LIST_TEXT) {
            column->child->texts[(*used)++] = some_text();
        } else {
            column->child->ints[(*used)++] = some_int();
        }
    }
}

static void put_value(struct column *column, enum column_id id, uint32_t row, uint32_t *used)
{
    switch ((enum type_kind)column->type.kind) {
    case TYPE_BOOL:
        column->bools[row] = (uint8_t)random_below(&dice, 2);
        return;
    case TYPE_DOUBLE:
        column->doubles[row] = some_double();
        return;
    case TYPE_TEXT:
        column->texts[row] = id == TEXT_A ? some_text() : some_needle();
        return;
    case TYPE_DATE:
        column->ints[row] = some_date();
        return;
    case TYPE_TIMESTAMP:
        column->ints[row] = some_time();
        return;
    case TYPE_LIST_TEXT:
    case TYPE_LIST_INT:
        put_list(column, row, used);
        return;
    default:
        column->ints[row] = some_int();
        return;
    }
}

static void put_poison(struct column *column, uint32_t row)
{
    switch ((enum type_kind)column->type.kind) {
    case TYPE_BOOL:
        column->bools[row] = (uint8_t)random_below(&dice, 2);
        return;
    case TYPE_DOUBLE:
        column->doubles[row] = 1e308;
        return;
    case TYPE_TEXT:
        column->texts[row] = (struct text){(const char *)(uintptr_t)1, 100000};
        return;
    case TYPE_LIST_TEXT:
    case TYPE_LIST_INT:
        column->lists[row] = (struct list){4000000000u, 100000};
        return;
    default:
        column->ints[row] = random_below(&dice, 2) == 0 ? INT64_MIN : INT64_MAX;
        return;
    }
}

static void make_column(struct mode *mode, enum column_id id, bool with_nulls, const bool *selected)
{
    struct column *column = &mode->columns[id];
    uint32_t used = 0;
    assert_true(column_init(column, column_type(id), ROWS, &data_arena));
    if (type_is_list(column->type)) {
        column->child = arena_new(&data_arena, struct column);
        assert_true(column_init(column->child, type_element(column->type), ROWS * 4, &data_arena));
    }
    if (with_nulls) assert_true(column_need_nulls(column, ROWS, &data_arena));
    for (uint32_t row = 0; row < ROWS; row++) {
        bool is_null = with_nulls && random_below(&dice, 4) == 0;
        if (is_null) column->nulls[row] = 1;
        if (is_null || !selected[row]) {
            put_poison(column, row);
        } else {
            put_value(column, id, row, &used);
        }
    }
}

static void make_mode(struct mode *mode, bool with_nulls, bool dense)
{
    bool selected[ROWS] = {false};
    mode->selection.rows = dense ? NULL : mode->rows;
    for (uint32_t row = 0; row < ROWS; row++) {
        selected[row] = dense ? row < DENSE_ROWS : random_below(&dice, 2) == 0;
        if (selected[row]) mode->rows[mode->selection.count++] = row;
    }
    for (int id = 0; id < COLUMNS; id++) {
        make_column(mode, (enum column_id)id, with_nulls, selected);
    }
    mode->batch = (struct batch){ROWS, COLUMNS, mode->columns};
}

static int set_up(void **state)
{
    (void)state;
    arena_init(&data_arena, NULL);
    arena_init(&expr_arena, NULL);
    arena_init(&stage_arena, NULL);
    arena_init(&batch_arena, NULL);
    arena_init(&model_arena, NULL);
    for (int i = 0; i < MODES; i++) {
        make_mode(&modes[i], (i & 1) != 0, (i & 2) != 0);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_done(&data_arena);
    arena_done(&expr_arena);
    arena_done(&stage_arena);
    arena_done(&batch_arena);
    arena_done(&model_arena);
    return 0;
}

/* --- Comparing. --- */

static void fail_at(const struct expr *expr, uint32_t row, const char *what)
{
    struct buf sql = {0};
    expr_print(expr, NULL, &sql);
    fail_msg("row %u of %.*s: %s", row, (int)sql.size, (const char *)sql.bytes, what);
}

static void check_cell(const struct expr *expr, const struct column *column, uint32_t row,
                       struct naive_cell expected)
{
    struct naive_cell found = cell_at(column, row);
    if (found.is_null != expected.is_null) fail_at(expr, row, found.is_null ? "NULL" : "not NULL");
    if (found.is_null) return;
    if (cell_compare(expr->type, found, expected) != 0) fail_at(expr, row, "another value");
    if (expr->type.kind == TYPE_DOUBLE && expr->kind == EXPR_CALL &&
        expr->function >= FUNCTION_ADD && expr->function <= FUNCTION_SQRT) {
        if (found.number == 0.0 && signbit(found.number)) fail_at(expr, row, "negative zero");
    }
}

static void check_filter(struct eval *eval, const struct expr *expr, struct mode *mode,
                         struct eval_context *context, struct naive *naive, bool in_place)
{
    uint32_t rows[ROWS];
    uint32_t count = 999;
    struct error err;
    struct selection selection = mode->selection;
    if (in_place && selection.rows != NULL) {
        memcpy(rows, selection.rows, selection.count * sizeof rows[0]);
        selection.rows = rows;
    }
    assert_int_equal(eval_filter(eval, &mode->batch, selection, context, rows, &count, &err),
                     STATUS_OK);
    uint32_t expected = 0;
    for (uint32_t i = 0; i < mode->selection.count; i++) {
        uint32_t row = selection_row(mode->selection, i);
        struct naive_cell cell = naive_run(naive, expr, row);
        if (cell.is_null || !cell.truth) continue;
        if (expected >= count || rows[expected] != row) fail_at(expr, row, "not kept");
        expected++;
    }
    if (expected != count) fail_at(expr, 0, "kept too many");
}

static void check_in_mode(const struct expr *expr, struct mode *mode)
{
    struct eval *eval = NULL;
    struct error err = {0};
    struct column column;
    arena_reset(&batch_arena);
    arena_reset(&model_arena);
    arena_reset(&stage_arena);
    struct eval_context context = {.scalars = scalars, .arena = &batch_arena};
    struct naive naive = {&mode->batch, scalars, &model_arena, false};
    if (eval_create(expr, NULL, &stage_arena, &eval, &err) != STATUS_OK) fail_at(expr, 0, err.text);
    status code = eval_run(eval, &mode->batch, mode->selection, &context, &column, &err);
    for (uint32_t i = 0; i < mode->selection.count; i++) {
        uint32_t row = selection_row(mode->selection, i);
        struct naive_cell expected = naive_run(&naive, expr, row);
        if (code == STATUS_OK && !naive.failed) check_cell(expr, &column, row, expected);
    }
    if (naive.failed && code == STATUS_OK) fail_at(expr, 0, "does not fail");
    if (!naive.failed && code != STATUS_OK) fail_at(expr, 0, err.text);
    if (code == STATUS_OK && expr->type.kind == TYPE_BOOL) {
        check_filter(eval, expr, mode, &context, &naive, false);
        check_filter(eval, expr, mode, &context, &naive, true);
    }
    eval_destroy(eval);
}

static void check(const struct expr *expr)
{
    for (int i = 0; i < MODES; i++) {
        check_in_mode(expr, &modes[i]);
    }
}

/* --- Making expressions. --- */

static const struct expr *column_expr(enum column_id id)
{
    return expr_column(&expr_arena, id, column_type(id));
}

static struct value some_value(enum column_id id)
{
    struct value value = {0};
    switch ((enum type_kind)column_type(id).kind) {
    case TYPE_BOOL:
        value.truth = random_below(&dice, 2) == 0;
        break;
    case TYPE_DOUBLE:
        value.number = some_double();
        break;
    case TYPE_TEXT:
        value.text = id == TEXT_A ? some_text() : some_needle();
        break;
    case TYPE_DATE:
        value.integer = some_date();
        break;
    case TYPE_TIMESTAMP:
        value.integer = some_time();
        break;
    default:
        value.integer = some_int();
        break;
    }
    return value;
}

static const struct expr *scalar_expr(enum column_id id)
{
    static uint32_t next;
    uint32_t fold = next++ % SCALARS;
    struct expr *expr = arena_new(&expr_arena, struct expr);
    *expr = (struct expr){.kind = EXPR_SCALAR, .type = column_type(id), .fold = fold};
    scalars[fold] = some_value(id);
    scalars[fold].is_null = random_below(&dice, 4) == 0;
    return expr;
}

static const struct expr *null_expr(struct type type)
{
    return expr_constant(&expr_arena, (struct value){.is_null = true}, type);
}

/* A list can only be a column or NULL. */
static const struct expr *form_expr(enum column_id id, uint32_t form)
{
    struct type type = column_type(id);
    if (form == 1 && !type_is_list(type)) return expr_constant(&expr_arena, some_value(id), type);
    if (form == 2 && !type_is_list(type)) return scalar_expr(id);
    if (form == 3) return null_expr(random_below(&dice, 2) == 0 ? type : TYPE(NULL));
    return column_expr(id);
}

static const struct expr *call(enum function_id function, struct type type,
                               const struct expr *const *args, uint32_t count)
{
    const struct expr *expr = expr_call(&expr_arena, function, type, args, count);
    assert_non_null(expr);
    return expr;
}

struct signature {
    enum function_id function;
    struct type type;
    uint32_t count;
    enum column_id args[6];
};

/* Every argument in every form. */
static void check_forms(const struct signature *signature)
{
    uint32_t total = 1;
    for (uint32_t i = 0; i < signature->count; i++) {
        total *= FORMS;
    }
    for (uint32_t code = 0; code < total * CONSTANT_TRIES; code++) {
        arena_reset(&expr_arena);
        const struct expr *args[6];
        uint32_t rest = code / CONSTANT_TRIES;
        for (uint32_t i = 0; i < signature->count; i++) {
            args[i] = form_expr(signature->args[i], rest % FORMS);
            rest /= FORMS;
        }
        /* The binder gives a typed expression its type from an argument that has one. */
        check(call(signature->function, signature->type, args, signature->count));
    }
}

#define CHECK_ALL(...)                                                                             \
    do {                                                                                           \
        const struct signature signatures[] = {__VA_ARGS__};                                       \
        for (size_t s = 0; s < sizeof signatures / sizeof signatures[0]; s++) {                    \
            check_forms(&signatures[s]);                                                           \
        }                                                                                          \
    } while (0)

/* --- The tests. --- */

static void logic_is_three_valued(void **state)
{
    (void)state;
    CHECK_ALL(
        {FUNCTION_NOT, TYPE(BOOL), 1, {BOOL_A}}, {FUNCTION_AND, TYPE(BOOL), 2, {BOOL_A, BOOL_B}},
        {FUNCTION_OR, TYPE(BOOL), 2, {BOOL_A, BOOL_B}},
        {FUNCTION_AND, TYPE(BOOL), 3, {BOOL_A, BOOL_B, BOOL_C}},
        {FUNCTION_OR, TYPE(BOOL), 3, {BOOL_A, BOOL_B, BOOL_C}},
        {FUNCTION_IS_NULL, TYPE(BOOL), 1, {INT_A}}, {FUNCTION_IS_NOT_NULL, TYPE(BOOL), 1, {TEXT_A}},
        {FUNCTION_IS_NULL, TYPE(BOOL), 1, {LIST_TEXT_A}});
}

static void comparisons_order_every_type(void **state)
{
    (void)state;
    for (int function = FUNCTION_EQUAL; function <= FUNCTION_GREATER_EQUAL; function++) {
        enum function_id id = (enum function_id)function;
        CHECK_ALL({id, TYPE(BOOL), 2, {INT_A, INT_B}}, {id, TYPE(BOOL), 2, {DECIMAL_A, DECIMAL_B}},
                  {id, TYPE(BOOL), 2, {DOUBLE_A, DOUBLE_B}}, {id, TYPE(BOOL), 2, {TEXT_A, TEXT_B}},
                  {id, TYPE(BOOL), 2, {TEXT_B, TEXT_B}}, {id, TYPE(BOOL), 2, {BOOL_A, BOOL_B}},
                  {id, TYPE(BOOL), 2, {DATE_A, DATE_B}}, {id, TYPE(BOOL), 2, {TIME_A, TIME_A}},
                  {id, TYPE(BOOL), 2, {LIST_TEXT_A, LIST_TEXT_B}},
                  {id, TYPE(BOOL), 2, {LIST_INT_A, LIST_INT_B}});
    }
}

static void comparisons_hold_at_the_ends_of_the_integers(void **state)
{
    (void)state;
    static const int64_t ends[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
    enum { ENDS = sizeof ends / sizeof ends[0] };
    int64_t values[ENDS];
    memcpy(values, ends, sizeof values);
    struct column column = {.type = TYPE(INT), .ints = values};
    struct mode mode = {.batch = {ENDS, 1, &column}, .selection = {NULL, ENDS}};
    for (int function = FUNCTION_EQUAL; function <= FUNCTION_GREATER_EQUAL; function++) {
        for (size_t i = 0; i < ENDS; i++) {
            arena_reset(&expr_arena);
            const struct expr *args[] = {
                expr_column(&expr_arena, 0, TYPE(INT)),
                expr_constant(&expr_arena, (struct value){.integer = ends[i]}, TYPE(INT))};
            const struct expr *swapped[] = {args[1], args[0]};
            check_in_mode(call((enum function_id)function, TYPE(BOOL), args, 2), &mode);
            check_in_mode(call((enum function_id)function, TYPE(BOOL), swapped, 2), &mode);
        }
    }
}

static void in_finds_members_of_every_type(void **state)
{
    (void)state;
    CHECK_ALL({FUNCTION_IN, TYPE(BOOL), 2, {INT_A, INT_A}},
              {FUNCTION_IN, TYPE(BOOL), 4, {INT_A, INT_A, INT_B, INT_A}},
              {FUNCTION_IN, TYPE(BOOL), 4, {TEXT_A, TEXT_A, TEXT_B, TEXT_A}},
              {FUNCTION_IN, TYPE(BOOL), 3, {DOUBLE_A, DOUBLE_A, DOUBLE_B}},
              {FUNCTION_IN, TYPE(BOOL), 3, {BOOL_A, BOOL_B, BOOL_C}},
              {FUNCTION_IN, TYPE(BOOL), 3, {DATE_A, DATE_A, DATE_B}},
              {FUNCTION_IN, TYPE(BOOL), 3, {LIST_INT_A, LIST_INT_B, LIST_INT_B}});
    static const enum column_id ids[] = {INT_A, DOUBLE_A, TEXT_A, TEXT_B, DATE_A};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        for (uint32_t count = 2; count <= NAIVE_ARGS_MAX; count++) {
            arena_reset(&expr_arena);
            const struct expr *args[NAIVE_ARGS_MAX] = {column_expr(ids[i])};
            for (uint32_t j = 1; j < count; j++) {
                args[j] = form_expr(ids[i], random_below(&dice, 12) == 0 ? 3 : 1);
            }
            check(call(FUNCTION_IN, TYPE(BOOL), args, count));
        }
    }
}

static void arithmetic_agrees_on_every_number(void **state)
{
    (void)state;
    const struct type product = {TYPE_DECIMAL, 18, 4};
    CHECK_ALL(
        {FUNCTION_ADD, TYPE(INT), 2, {INT_A, INT_B}},
        {FUNCTION_SUBTRACT, TYPE(INT), 2, {INT_A, INT_B}},
        {FUNCTION_MULTIPLY, TYPE(INT), 2, {INT_A, INT_B}},
        {FUNCTION_ADD, decimal_type, 2, {DECIMAL_A, DECIMAL_B}},
        {FUNCTION_SUBTRACT, decimal_type, 2, {DECIMAL_A, DECIMAL_B}},
        {FUNCTION_MULTIPLY, product, 2, {DECIMAL_A, DECIMAL_B}},
        {FUNCTION_ADD, TYPE(DOUBLE), 2, {DOUBLE_A, DOUBLE_B}},
        {FUNCTION_SUBTRACT, TYPE(DOUBLE), 2, {DOUBLE_A, DOUBLE_B}},
        {FUNCTION_MULTIPLY, TYPE(DOUBLE), 2, {DOUBLE_A, DOUBLE_B}},
        {FUNCTION_DIVIDE, TYPE(DOUBLE), 2, {DOUBLE_A, DOUBLE_B}},
        {FUNCTION_INTEGER_DIVIDE, TYPE(INT), 2, {INT_A, INT_B}},
        {FUNCTION_MODULO, TYPE(INT), 2, {INT_A, INT_B}},
        {FUNCTION_MODULO, TYPE(DOUBLE), 2, {DOUBLE_A, DOUBLE_B}},
        {FUNCTION_NEGATE, TYPE(INT), 1, {INT_A}}, {FUNCTION_NEGATE, decimal_type, 1, {DECIMAL_A}},
        {FUNCTION_NEGATE, TYPE(DOUBLE), 1, {DOUBLE_A}}, {FUNCTION_ABS, TYPE(INT), 1, {INT_A}},
        {FUNCTION_ABS, decimal_type, 1, {DECIMAL_A}}, {FUNCTION_ABS, TYPE(DOUBLE), 1, {DOUBLE_A}},
        {FUNCTION_ROUND, TYPE(DOUBLE), 1, {DOUBLE_A}},
        {FUNCTION_FLOOR, TYPE(DOUBLE), 1, {DOUBLE_A}}, {FUNCTION_CEIL, TYPE(DOUBLE), 1, {DOUBLE_A}},
        {FUNCTION_SQRT, TYPE(DOUBLE), 1, {DOUBLE_A}});
}

static const struct expr *int_constant(int64_t integer)
{
    return expr_constant(&expr_arena, (struct value){.integer = integer}, TYPE(INT));
}

static const struct expr *text_constant(const char *string)
{
    return expr_constant(&expr_arena, (struct value){.text = text_of(string)}, TYPE(TEXT));
}

static void rounding_takes_digits_on_both_sides_of_the_point(void **state)
{
    (void)state;
    for (int64_t digits = -6; digits <= 15; digits++) {
        arena_reset(&expr_arena);
        const struct expr *args[] = {column_expr(DOUBLE_A), int_constant(digits)};
        check(call(FUNCTION_ROUND, TYPE(DOUBLE), args, 2));
    }
    arena_reset(&expr_arena);
    const struct expr *args[] = {column_expr(DOUBLE_A), column_expr(INT_A)};
    struct eval *eval;
    struct error err;
    struct column column;
    struct eval_context context = {.arena = &batch_arena};
    assert_int_equal(
        eval_create(call(FUNCTION_ROUND, TYPE(DOUBLE), args, 2), NULL, &stage_arena, &eval, &err),
        STATUS_OK);
    double numbers[] = {123.456, 123.456, 123.456, 1.5, 1.5, -0.4, INFINITY};
    int64_t digits[] = {INT64_MAX, INT64_MIN, 400, 25, -1, 0, -400};
    const double expected[] = {123.456, 0.0, 123.456, 1.5, 0.0, 0.0, INFINITY};
    struct column columns[COLUMNS];
    columns[DOUBLE_A] = (struct column){.type = TYPE(DOUBLE), .doubles = numbers};
    columns[INT_A] = (struct column){.type = TYPE(INT), .ints = digits};
    struct batch batch = {7, COLUMNS, columns};
    assert_int_equal(eval_run(eval, &batch, (struct selection){NULL, 7}, &context, &column, &err),
                     STATUS_OK);
    for (int i = 0; i < 7; i++) {
        assert_true(column.doubles[i] == expected[i]);
        assert_false(signbit(column.doubles[i]));
    }
    eval_destroy(eval);
}

static void choices_take_the_right_value(void **state)
{
    (void)state;
    CHECK_ALL(
        {FUNCTION_CASE, TYPE(INT), 3, {BOOL_A, INT_A, INT_B}},
        {FUNCTION_CASE, TYPE(INT), 2, {BOOL_A, INT_A}},
        {FUNCTION_CASE, TYPE(TEXT), 5, {BOOL_A, TEXT_A, BOOL_B, TEXT_B, TEXT_A}},
        {FUNCTION_CASE, TYPE(BOOL), 3, {BOOL_A, BOOL_B, BOOL_C}},
        {FUNCTION_CASE, TYPE(DOUBLE), 3, {BOOL_A, DOUBLE_A, DOUBLE_B}},
        {FUNCTION_CASE, TYPE(LIST_TEXT), 3, {BOOL_A, LIST_TEXT_A, LIST_TEXT_B}},
        {FUNCTION_CASE, TYPE(LIST_INT), 5, {BOOL_A, LIST_INT_A, BOOL_B, LIST_INT_B, LIST_INT_A}},
        {FUNCTION_COALESCE, TYPE(INT), 1, {INT_A}},
        {FUNCTION_COALESCE, TYPE(INT), 3, {INT_A, INT_B, INT_A}},
        {FUNCTION_COALESCE, TYPE(TEXT), 2, {TEXT_A, TEXT_B}},
        {FUNCTION_COALESCE, TYPE(LIST_TEXT), 2, {LIST_TEXT_A, LIST_TEXT_B}},
        {FUNCTION_NULLIF, TYPE(INT), 2, {INT_A, INT_B}},
        {FUNCTION_NULLIF, TYPE(TEXT), 2, {TEXT_A, TEXT_B}},
        {FUNCTION_NULLIF, TYPE(DOUBLE), 2, {DOUBLE_A, DOUBLE_B}},
        {FUNCTION_NULLIF, TYPE(LIST_INT), 2, {LIST_INT_A, LIST_INT_B}});
    for (int function = FUNCTION_LEAST; function <= FUNCTION_GREATEST; function++) {
        enum function_id id = (enum function_id)function;
        CHECK_ALL({id, TYPE(INT), 1, {INT_A}}, {id, TYPE(INT), 3, {INT_A, INT_B, INT_A}},
                  {id, TYPE(DOUBLE), 2, {DOUBLE_A, DOUBLE_B}},
                  {id, TYPE(TEXT), 2, {TEXT_A, TEXT_B}},
                  {id, TYPE(BOOL), 3, {BOOL_A, BOOL_B, BOOL_C}},
                  {id, TYPE(LIST_TEXT), 2, {LIST_TEXT_A, LIST_TEXT_B}});
    }
}

static void text_functions_agree(void **state)
{
    (void)state;
    CHECK_ALL({FUNCTION_CONCAT, TYPE(TEXT), 2, {TEXT_A, TEXT_B}},
              {FUNCTION_CONCAT, TYPE(TEXT), 4, {TEXT_A, TEXT_B, TEXT_A, TEXT_A}},
              {FUNCTION_LOWER, TYPE(TEXT), 1, {TEXT_A}}, {FUNCTION_UPPER, TYPE(TEXT), 1, {TEXT_A}},
              {FUNCTION_TRIM, TYPE(TEXT), 1, {TEXT_A}}, {FUNCTION_LENGTH, TYPE(INT), 1, {TEXT_A}},
              {FUNCTION_SUBSTRING, TYPE(TEXT), 2, {TEXT_A, INT_A}},
              {FUNCTION_SUBSTRING, TYPE(TEXT), 3, {TEXT_A, INT_A, INT_B}},
              {FUNCTION_CONTAINS, TYPE(BOOL), 2, {TEXT_A, TEXT_B}},
              {FUNCTION_STARTS_WITH, TYPE(BOOL), 2, {TEXT_A, TEXT_B}},
              {FUNCTION_ENDS_WITH, TYPE(BOOL), 2, {TEXT_A, TEXT_B}},
              {FUNCTION_REPLACE, TYPE(TEXT), 3, {TEXT_A, TEXT_B, TEXT_B}},
              {FUNCTION_REPLACE, TYPE(TEXT), 3, {TEXT_A, TEXT_B, TEXT_A}},
              {FUNCTION_SPLIT_PART, TYPE(TEXT), 3, {TEXT_A, TEXT_B, INT_A}},
              {FUNCTION_POLARITY, TYPE(DOUBLE), 1, {TEXT_A}},
              {FUNCTION_SENTIMENT, TYPE(TEXT), 1, {TEXT_A}},
              {FUNCTION_SENTIMENT, TYPE(TEXT), 2, {TEXT_A, DOUBLE_A}});
}

static void like_agrees_with_recursive_matching(void **state)
{
    (void)state;
    CHECK_ALL({FUNCTION_LIKE, TYPE(BOOL), 2, {TEXT_A, TEXT_B}},
              {FUNCTION_ILIKE, TYPE(BOOL), 2, {TEXT_A, TEXT_B}});
    /* All patterns of up to five of these, over texts of the same letters. */
    static const char letters[] = "ab%_";
    for (uint32_t code = 0; code < 4 * 4 * 4 * 4 * 4; code++) {
        char pattern[6] = "";
        uint32_t rest = code;
        for (int i = 0; i < 5; i++, rest /= 4) {
            pattern[i] = letters[rest % 4];
        }
        pattern[random_below(&dice, 6)] = '\0';
        arena_reset(&expr_arena);
        char *kept = arena_copy_string(&expr_arena, text_of(pattern));
        struct text texts[] = {TEXT_LITERAL(""),    TEXT_LITERAL("a"),    TEXT_LITERAL("b"),
                               TEXT_LITERAL("ab"),  TEXT_LITERAL("aab"),  TEXT_LITERAL("abab"),
                               TEXT_LITERAL("bba"), TEXT_LITERAL("aBAb"), TEXT_LITERAL("bbbbb")};
        struct column column = {.type = TYPE(TEXT), .texts = texts};
        struct mode mode = {.batch = {9, 1, &column}, .selection = {NULL, 9}};
        const struct expr *args[] = {expr_column(&expr_arena, 0, TYPE(TEXT)), text_constant(kept)};
        check_in_mode(call(FUNCTION_LIKE, TYPE(BOOL), args, 2), &mode);
        check_in_mode(call(FUNCTION_ILIKE, TYPE(BOOL), args, 2), &mode);
    }
}

static void like_takes_no_time_for_many_wildcards(void **state)
{
    (void)state;
    enum { SIZE = 20000 };
    arena_reset(&expr_arena);
    char *text = arena_alloc(&expr_arena, SIZE, 1);
    memset(text, 'a', SIZE);
    struct text texts[] = {{text, SIZE}};
    struct column column = {.type = TYPE(TEXT), .texts = texts};
    struct batch batch = {1, 1, &column};
    const struct expr *args[] = {expr_column(&expr_arena, 0, TYPE(TEXT)),
                                 text_constant("%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%ab")};
    struct eval *eval;
    struct error err;
    struct column out;
    struct eval_context context = {.arena = &batch_arena};
    assert_int_equal(
        eval_create(call(FUNCTION_LIKE, TYPE(BOOL), args, 2), NULL, &stage_arena, &eval, &err),
        STATUS_OK);
    assert_int_equal(eval_run(eval, &batch, (struct selection){NULL, 1}, &context, &out, &err),
                     STATUS_OK);
    assert_int_equal(out.bools[0], 0);
    eval_destroy(eval);
}

static void calendar_functions_agree(void **state)
{
    (void)state;
    CHECK_ALL({FUNCTION_YEAR, TYPE(INT), 1, {DATE_A}}, {FUNCTION_MONTH, TYPE(INT), 1, {DATE_A}},
              {FUNCTION_DAY, TYPE(INT), 1, {DATE_A}}, {FUNCTION_YEAR, TYPE(INT), 1, {TIME_A}},
              {FUNCTION_MONTH, TYPE(INT), 1, {TIME_A}}, {FUNCTION_DAY, TYPE(INT), 1, {TIME_A}},
              {FUNCTION_HOUR, TYPE(INT), 1, {TIME_A}}, {FUNCTION_MINUTE, TYPE(INT), 1, {TIME_A}},
              {FUNCTION_SECOND, TYPE(INT), 1, {TIME_A}});
    static const char *const formats[] = {"%Y-%m", "", "at %H:%M:%S.%f on day %j%%"};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        arena_reset(&expr_arena);
        const struct expr *date[] = {column_expr(DATE_A), text_constant(formats[i])};
        const struct expr *time[] = {column_expr(TIME_A), text_constant(formats[i])};
        check(call(FUNCTION_STRFTIME, TYPE(TEXT), date, 2));
        check(call(FUNCTION_STRFTIME, TYPE(TEXT), time, 2));
    }
    arena_reset(&expr_arena);
    const struct expr *args[] = {column_expr(DATE_A), null_expr(TYPE(TEXT))};
    check(call(FUNCTION_STRFTIME, TYPE(TEXT), args, 2));
}

static void list_functions_agree(void **state)
{
    (void)state;
    CHECK_ALL({FUNCTION_LIST_LENGTH, TYPE(INT), 1, {LIST_TEXT_A}},
              {FUNCTION_LIST_LENGTH, TYPE(INT), 1, {LIST_INT_A}},
              {FUNCTION_LIST_CONTAINS, TYPE(BOOL), 2, {LIST_TEXT_A, TEXT_A}},
              {FUNCTION_LIST_CONTAINS, TYPE(BOOL), 2, {LIST_INT_A, INT_A}},
              {FUNCTION_LIST_ELEMENT, TYPE(TEXT), 2, {LIST_TEXT_A, INT_A}},
              {FUNCTION_LIST_ELEMENT, TYPE(INT), 2, {LIST_INT_A, INT_A}});
}

static void casts_agree(void **state)
{
    (void)state;
    const struct type wide = {TYPE_DECIMAL, 18, 6};
    const struct type whole = {TYPE_DECIMAL, 18, 0};
    const struct type narrow = {TYPE_DECIMAL, 4, 2};
    CHECK_ALL(
        {FUNCTION_CAST, TYPE(INT), 1, {INT_A}}, {FUNCTION_CAST, TYPE(DOUBLE), 1, {INT_A}},
        {FUNCTION_CAST, wide, 1, {INT_A}}, {FUNCTION_CAST, whole, 1, {INT_A}},
        {FUNCTION_CAST, narrow, 1, {INT_A}}, {FUNCTION_CAST, TYPE(TEXT), 1, {INT_A}},
        {FUNCTION_CAST, TYPE(BOOL), 1, {INT_A}}, {FUNCTION_CAST, TYPE(INT), 1, {DECIMAL_A}},
        {FUNCTION_CAST, wide, 1, {DECIMAL_A}}, {FUNCTION_CAST, whole, 1, {DECIMAL_A}},
        {FUNCTION_CAST, narrow, 1, {DECIMAL_A}}, {FUNCTION_CAST, TYPE(DOUBLE), 1, {DECIMAL_A}},
        {FUNCTION_CAST, TYPE(TEXT), 1, {DECIMAL_A}}, {FUNCTION_CAST, TYPE(BOOL), 1, {DECIMAL_A}},
        {FUNCTION_CAST, TYPE(TEXT), 1, {DOUBLE_A}}, {FUNCTION_CAST, TYPE(BOOL), 1, {DOUBLE_A}},
        {FUNCTION_CAST, TYPE(INT), 1, {DOUBLE_A}}, {FUNCTION_CAST, wide, 1, {DOUBLE_A}},
        {FUNCTION_CAST, TYPE(TEXT), 1, {TEXT_A}}, {FUNCTION_CAST, TYPE(INT), 1, {BOOL_A}},
        {FUNCTION_CAST, TYPE(DOUBLE), 1, {BOOL_A}}, {FUNCTION_CAST, wide, 1, {BOOL_A}},
        {FUNCTION_CAST, TYPE(TEXT), 1, {BOOL_A}}, {FUNCTION_CAST, TYPE(TIMESTAMP), 1, {DATE_A}},
        {FUNCTION_CAST, TYPE(TEXT), 1, {DATE_A}}, {FUNCTION_CAST, TYPE(DATE), 1, {TIME_A}},
        {FUNCTION_CAST, TYPE(TEXT), 1, {TIME_A}}, {FUNCTION_CAST, TYPE(TEXT), 1, {LIST_TEXT_A}},
        {FUNCTION_CAST, TYPE(TEXT), 1, {LIST_INT_A}});
}

/* Texts that can be read, printed from other columns, so that NULLs and selections take part. */
static void casts_read_what_casts_print(void **state)
{
    (void)state;
    static const struct {
        enum column_id from;
        enum type_kind to;
    } ways[] = {{INT_A, TYPE_INT},       {INT_A, TYPE_DECIMAL}, {DECIMAL_A, TYPE_DECIMAL},
                {INT_A, TYPE_DOUBLE},    {BOOL_A, TYPE_BOOL},   {DATE_A, TYPE_DATE},
                {TIME_A, TYPE_TIMESTAMP}};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        arena_reset(&expr_arena);
        struct type to = {.kind = (uint8_t)ways[i].to};
        if (to.kind == TYPE_DECIMAL) to = decimal_type;
        const struct expr *from = column_expr(ways[i].from);
        const struct expr *parts[] = {
            text_constant(" \t"), call(FUNCTION_CAST, TYPE(TEXT), &from, 1), text_constant("\n ")};
        const struct expr *text = call(FUNCTION_CONCAT, TYPE(TEXT), parts, 3);
        check(call(FUNCTION_CAST, to, &text, 1));
    }
}

static const struct expr *random_expr(enum type_kind kind, uint32_t depth);

static const struct expr *random_bool(uint32_t depth)
{
    const struct expr *args[3];
    enum type_kind kinds[] = {TYPE_INT, TYPE_TEXT, TYPE_DOUBLE, TYPE_BOOL};
    switch (random_below(&dice, 5)) {
    case 0:
    case 1: {
        uint32_t count = 2 + random_below(&dice, 2);
        for (uint32_t i = 0; i < count; i++) {
            args[i] = random_expr(TYPE_BOOL, depth - 1);
        }
        return call(random_below(&dice, 2) == 0 ? FUNCTION_AND : FUNCTION_OR, TYPE(BOOL), args,
                    count);
    }
    case 2:
        args[0] = random_expr(TYPE_BOOL, depth - 1);
        return call(FUNCTION_NOT, TYPE(BOOL), args, 1);
    case 3:
        args[0] = random_expr(kinds[random_below(&dice, 4)], depth - 1);
        return call(FUNCTION_IS_NULL, TYPE(BOOL), args, 1);
    default: {
        enum type_kind kind = kinds[random_below(&dice, 4)];
        args[0] = random_expr(kind, depth - 1);
        args[1] = random_expr(kind, depth - 1);
        return call((enum function_id)((uint32_t)FUNCTION_EQUAL + random_below(&dice, 6)),
                    TYPE(BOOL), args, 2);
    }
    }
}

static const struct expr *random_expr(enum type_kind kind, uint32_t depth)
{
    struct type type = {.kind = (uint8_t)kind};
    enum column_id id = kind == TYPE_INT      ? INT_A
                        : kind == TYPE_TEXT   ? TEXT_A
                        : kind == TYPE_DOUBLE ? DOUBLE_A
                                              : BOOL_A;
    if (depth == 0) {
        return form_expr((enum column_id)((uint32_t)id + random_below(&dice, 2)),
                         random_below(&dice, 3) == 0 ? random_below(&dice, FORMS) : 0);
    }
    const struct expr *args[3];
    if (random_below(&dice, 3) == 0) {
        args[0] = random_expr(TYPE_BOOL, depth - 1);
        args[1] = random_expr(kind, depth - 1);
        args[2] = random_expr(kind, depth - 1);
        return call(FUNCTION_CASE, type, args, 3);
    }
    if (kind == TYPE_BOOL) return random_bool(depth);
    args[0] = random_expr(kind, depth - 1);
    args[1] = random_expr(kind, depth - 1);
    switch (random_below(&dice, 3)) {
    case 0:
        return call(FUNCTION_COALESCE, type, args, 2);
    case 1:
        return call(FUNCTION_GREATEST, type, args, 2);
    default:
        return call(kind == TYPE_TEXT ? FUNCTION_CONCAT : FUNCTION_ADD, type, args, 2);
    }
}

static void random_expressions_agree(void **state)
{
    (void)state;
    for (int i = 0; i < 3000; i++) {
        arena_reset(&expr_arena);
        check(random_expr(i % 3 == 0 ? TYPE_INT : TYPE_BOOL, 1 + random_below(&dice, 4)));
    }
}

static void columns_and_constants_pass_through(void **state)
{
    (void)state;
    arena_reset(&expr_arena);
    for (int id = 0; id < COLUMNS; id++) {
        for (uint32_t form = 0; form < FORMS; form++) {
            check(form_expr((enum column_id)id, form));
        }
    }
    struct eval *eval;
    struct error err;
    struct column out;
    struct eval_context context = {.arena = &batch_arena};
    assert_int_equal(eval_create(column_expr(INT_A), NULL, &stage_arena, &eval, &err), STATUS_OK);
    assert_int_equal(eval_run(eval, &modes[0].batch, modes[0].selection, &context, &out, &err),
                     STATUS_OK);
    assert_ptr_equal(out.ints, modes[0].columns[INT_A].ints);
    eval_destroy(eval);
    eval_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_and_constants_pass_through),
        cmocka_unit_test(logic_is_three_valued),
        cmocka_unit_test(comparisons_order_every_type),
        cmocka_unit_test(comparisons_hold_at_the_ends_of_the_integers),
        cmocka_unit_test(in_finds_members_of_every_type),
        cmocka_unit_test(arithmetic_agrees_on_every_number),
        cmocka_unit_test(rounding_takes_digits_on_both_sides_of_the_point),
        cmocka_unit_test(choices_take_the_right_value),
        cmocka_unit_test(text_functions_agree),
        cmocka_unit_test(like_agrees_with_recursive_matching),
        cmocka_unit_test(like_takes_no_time_for_many_wildcards),
        cmocka_unit_test(calendar_functions_agree),
        cmocka_unit_test(list_functions_agree),
        cmocka_unit_test(casts_agree),
        cmocka_unit_test(casts_read_what_casts_print),
        cmocka_unit_test(random_expressions_agree),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
