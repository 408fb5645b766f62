/* SPDX-License-Identifier: Apache-2.0 */
/* test_column.c - order, hash and gathering of values of every type.
 *
 * Method: for each type a column whose rows ascend by rank, some of them equal; every pair of rows
 * must compare as the ranks do, and hash alike when they are equal. Hashes of fixed values are
 * written down, as they decide which worker a row goes to.
 */
#include "unit/test.h"

#include <math.h>
#include <string.h>

#include "engine/base/memory.h"
#include "engine/data/column.h"

enum { ROWS_MAX = 10 };

struct ranked {
    struct column column;
    uint32_t count;
    int ranks[ROWS_MAX];
};

static void check_ranked(const struct ranked *ranked)
{
    for (uint32_t a = 0; a < ranked->count; a++) {
        for (uint32_t b = 0; b < ranked->count; b++) {
            int order = column_compare(&ranked->column, a, &ranked->column, b);
            int expected = ranked->ranks[a] - ranked->ranks[b];
            assert_int_equal((order > 0) - (order < 0), (expected > 0) - (expected < 0));
            bool same = column_hash(&ranked->column, a) == column_hash(&ranked->column, b);
            assert_int_equal(same, expected == 0);
        }
    }
}

static void numbers_order_and_hash_by_value(void **state)
{
    (void)state;
    int64_t ints[] = {INT64_MIN, -1, 0, 0, 7, INT64_MAX, 3, 3};
    uint8_t nulls[] = {0, 0, 0, 0, 0, 0, 1, 1};
    static const uint8_t kinds[] = {TYPE_INT, TYPE_DECIMAL, TYPE_DATE, TYPE_TIMESTAMP};
    for (size_t i = 0; i < sizeof kinds; i++) {
        struct ranked ranked = {
            {.type = {.kind = kinds[i], .scale = 2}, .ints = ints, .nulls = nulls},
            8,
            {0, 1, 2, 2, 3, 4, 5, 5}};
        check_ranked(&ranked);
    }
    uint8_t bools[] = {0, 0, 1, 1, 0};
    uint8_t bool_nulls[] = {0, 0, 0, 0, 1};
    struct ranked truths = {
        {.type = TYPE(BOOL), .bools = bools, .nulls = bool_nulls}, 5, {0, 0, 1, 1, 2}};
    check_ranked(&truths);
}

static void doubles_know_one_zero_and_one_nan(void **state)
{
    (void)state;
    uint64_t odd_nan_bits = 0xfff0000000000001u;
    double odd_nan;
    memcpy(&odd_nan, &odd_nan_bits, sizeof odd_nan);
    double doubles[] = {-INFINITY, -1.5, -0.0, 0.0, 5e-324, INFINITY, NAN, odd_nan, 1.0};
    uint8_t nulls[] = {0, 0, 0, 0, 0, 0, 0, 0, 1};
    struct ranked ranked = {
        {.type = TYPE(DOUBLE), .doubles = doubles, .nulls = nulls}, 9, {0, 1, 2, 2, 3, 4, 5, 5, 6}};
    check_ranked(&ranked);
}

static void texts_order_by_bytes(void **state)
{
    (void)state;
    struct text texts[] = {{NULL, 0},           TEXT_LITERAL(""),         TEXT_LITERAL("B"),
                           TEXT_LITERAL("a"),   TEXT_LITERAL("a\0"),      TEXT_LITERAL("ab"),
                           TEXT_LITERAL("b"),   TEXT_LITERAL("\xc3\xa9"), TEXT_LITERAL("\xff"),
                           {(const char *)1, 9}};
    uint8_t nulls[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    struct ranked ranked = {
        {.type = TYPE(TEXT), .texts = texts, .nulls = nulls}, 10, {0, 0, 1, 2, 3, 4, 5, 6, 7, 8}};
    check_ranked(&ranked);
}

static void lists_order_as_words_do(void **state)
{
    (void)state;
    int64_t ints[] = {1, 2, 3, 1, 2};
    struct text texts[] = {TEXT_LITERAL("a"), TEXT_LITERAL("b"), TEXT_LITERAL("c"),
                           TEXT_LITERAL("a"), TEXT_LITERAL("b")};
    struct column int_child = {.type = TYPE(INT), .ints = ints};
    struct column text_child = {.type = TYPE(TEXT), .texts = texts};
    struct list lists[] = {{0, 0}, {4, 0}, {0, 1}, {0, 2}, {3, 2}, {0, 3}, {1, 1}, {1, 2}, {9, 99}};
    uint8_t nulls[] = {0, 0, 0, 0, 0, 0, 0, 0, 1};
    struct ranked ranked = {
        {.type = TYPE(LIST_INT), .lists = lists, .nulls = nulls, .child = &int_child},
        9,
        {0, 0, 1, 2, 2, 3, 4, 5, 6}};
    check_ranked(&ranked);
    ranked.column.type = TYPE(LIST_TEXT);
    ranked.column.child = &text_child;
    check_ranked(&ranked);
}

static void hashes_never_change(void **state)
{
    (void)state;
    int64_t ints[] = {0, 1, -1};
    double doubles[] = {0.0, 1.0, NAN};
    struct text texts[] = {TEXT_LITERAL(""), TEXT_LITERAL("a"), TEXT_LITERAL("Argentina")};
    uint8_t nulls[] = {1, 1, 1};
    struct column columns[] = {{.type = TYPE(INT), .ints = ints},
                               {.type = TYPE(DOUBLE), .doubles = doubles},
                               {.type = TYPE(TEXT), .texts = texts},
                               {.type = TYPE(TEXT), .texts = texts, .nulls = nulls}};
    static const uint64_t expected[4][3] = {
        {0x0000000000000000u, 0x4179b061e0c0e0d0u, 0x448e29ced4103459u},
        {0x0000000000000000u, 0xe1e0c94d49d9b6c1u, 0x7f45b3e5de93871eu},
        {0x2d06800538d394c2u, 0xe6c632b61e964e1fu, 0x143a04eef4a72d48u},
        {0xb43529db19ff358au, 0xb43529db19ff358au, 0xb43529db19ff358au},
    };
    for (int i = 0; i < 4; i++) {
        for (uint32_t row = 0; row < 3; row++) {
            assert_int_equal(column_hash(&columns[i], row), expected[i][row]);
        }
    }
    columns[3].type = TYPE(NULL);
    assert_int_equal(column_hash(&columns[3], 0), expected[3][0]);
}

static void check_gather(const struct column *in, const uint32_t *rows, uint32_t count,
                         struct arena *arena)
{
    struct column out;
    assert_true(column_gather(&out, in, rows, count, arena));
    assert_true(type_equal(out.type, in->type));
    for (uint32_t i = 0; i < count; i++) {
        bool expected_null = rows[i] == ROW_NONE || column_is_null(in, rows[i]);
        assert_int_equal(column_is_null(&out, i), expected_null);
        if (!expected_null) assert_int_equal(column_compare(&out, i, in, rows[i]), 0);
    }
}

static void gathering_takes_rows_in_any_order_and_none(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, NULL);
    int64_t ints[] = {1, 2, 3};
    double doubles[] = {1.5, NAN, 3.0};
    uint8_t bools[] = {0, 1, 0};
    struct text texts[] = {TEXT_LITERAL("x"), TEXT_LITERAL(""), TEXT_LITERAL("z")};
    struct list lists[] = {{0, 3}, {1, 1}, {0, 0}};
    uint8_t nulls[] = {0, 1, 0};
    struct column child = {.type = TYPE(TEXT), .texts = texts};
    struct column columns[] = {{.type = TYPE(INT), .ints = ints},
                               {.type = {TYPE_DECIMAL, 18, 2}, .ints = ints},
                               {.type = TYPE(DATE), .ints = ints},
                               {.type = TYPE(DOUBLE), .doubles = doubles},
                               {.type = TYPE(BOOL), .bools = bools},
                               {.type = TYPE(TEXT), .texts = texts},
                               {.type = TYPE(LIST_TEXT), .lists = lists, .child = &child}};
    static const uint32_t plain[] = {2, 0, 1, 1, 2};
    static const uint32_t with_none[] = {2, ROW_NONE, 1, 0, ROW_NONE};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        for (int round = 0; round < 2; round++) {
            columns[i].nulls = round == 0 ? NULL : nulls;
            check_gather(&columns[i], plain, 5, &arena);
            check_gather(&columns[i], with_none, 5, &arena);
            check_gather(&columns[i], plain, 0, &arena);
        }
    }
    arena_done(&arena);
}

static void no_memory_leaves_the_result_alone(void **state)
{
    (void)state;
    int64_t ints[] = {1, 2, 3};
    uint8_t nulls[] = {0, 1, 0};
    struct column in = {.type = TYPE(INT), .ints = ints, .nulls = nulls};
    static const uint32_t rows[] = {0, 1};
    struct budget budget = {.limit_bytes = 100};
    struct arena arena;
    arena_init(&arena, &budget);
    struct column out = {.type = TYPE(BOOL)};
    assert_false(column_init(&out, TYPE(INT), 3, &arena));
    assert_false(column_need_nulls(&out, 3, &arena));
    assert_false(column_gather(&out, &in, rows, 2, &arena));
    assert_int_equal(out.type.kind, TYPE_BOOL);
    assert_null(out.data);
    arena_done(&arena);
}

static void nulls_are_made_once_and_cleared(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, NULL);
    struct column column;
    assert_true(column_init(&column, TYPE(TEXT), 100, &arena));
    assert_null(column.nulls);
    assert_true(column_need_nulls(&column, 100, &arena));
    for (uint32_t row = 0; row < 100; row++) {
        assert_false(column_is_null(&column, row));
    }
    column.nulls[7] = 1;
    assert_true(column_need_nulls(&column, 100, &arena));
    assert_true(column_is_null(&column, 7));
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_order_and_hash_by_value),
        cmocka_unit_test(doubles_know_one_zero_and_one_nan),
        cmocka_unit_test(texts_order_by_bytes),
        cmocka_unit_test(lists_order_as_words_do),
        cmocka_unit_test(hashes_never_change),
        cmocka_unit_test(gathering_takes_rows_in_any_order_and_none),
        cmocka_unit_test(no_memory_leaves_the_result_alone),
        cmocka_unit_test(nulls_are_made_once_and_cleared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
