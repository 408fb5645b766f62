/* SPDX-License-Identifier: Apache-2.0 */
/* test_eval_share.c - evals that share compute the same as ever, and what they share only once.
 *
 * Method: three expressions that have lower(t) and length(lower(t)) in common run in a random order
 * over random selections of the same rows, narrower and wider ones, batch after batch. Their values
 * are known from the rows; that something was shared is seen from its address.
 */
#include "unit/test.h"

#include <stdlib.h>

#include "engine/base/random.h"
#include "engine/exec/expr/eval.h"

enum { ROWS = 40, EXPRS = 3 };

static struct arena arena;
static struct arena batch_arena;
static struct random dice = {5};

static const struct expr *call(enum function_id function, struct type type,
                               const struct expr *first, const struct expr *second)
{
    const struct expr *args[] = {first, second};
    return expr_call(&arena, function, type, args, second == NULL ? 1 : 2);
}

static const struct expr *integer(int64_t value)
{
    return expr_constant(&arena, (struct value){.integer = value}, TYPE(INT));
}

/* length(lower(t)) > 3, length(lower(t)), lower(t) */
static void make_evals(struct eval *out[EXPRS])
{
    struct error err = {0};
    for (int i = 0; i < EXPRS; i++) {
        const struct expr *lower =
            call(FUNCTION_LOWER, TYPE(TEXT), expr_column(&arena, 0, TYPE(TEXT)), NULL);
        const struct expr *length = call(FUNCTION_LENGTH, TYPE(INT), lower, NULL);
        const struct expr *expr = i == 0   ? call(FUNCTION_GREATER, TYPE(BOOL), length, integer(3))
                                  : i == 1 ? length
                                           : lower;
        assert_int_equal(eval_create(expr, NULL, &arena, &out[i], &err), STATUS_OK);
    }
}

static void make_batch(struct batch *batch, struct column *column, char texts[ROWS][9])
{
    assert_true(column_init(column, TYPE(TEXT), ROWS, &batch_arena));
    for (uint32_t row = 0; row < ROWS; row++) {
        uint32_t size = random_below(&dice, 8);
        for (uint32_t i = 0; i < size; i++) {
            texts[row][i] = (char)('A' + random_below(&dice, 26));
        }
        column->texts[row] = (struct text){texts[row], size};
    }
    *batch = (struct batch){.row_count = ROWS, .column_count = 1, .columns = column};
}

static struct selection some_rows(uint32_t rows[ROWS])
{
    uint32_t part = random_below(&dice, 4);
    struct selection selection = {rows, 0};
    if (part == 0) return (struct selection){NULL, ROWS};
    for (uint32_t row = 0; row < ROWS; row++) {
        if (random_below(&dice, 4) < part) rows[selection.count++] = row;
    }
    return selection;
}

static void check(int number, const struct column *column, const struct column *source,
                  struct selection selection)
{
    for (uint32_t i = 0; i < selection.count; i++) {
        uint32_t row = selection_row(selection, i);
        struct text text = source->texts[row];
        if (number == 0) assert_int_equal(column->bools[row], text.size > 3);
        if (number == 1) assert_int_equal(column->ints[row], text.size);
        if (number == 2) {
            assert_int_equal(column->texts[row].size, text.size);
            assert_true(text_equal_ignoring_case(column->texts[row], text));
            if (text.size > 0) assert_int_equal(column->texts[row].bytes[0], text.bytes[0] | 0x20);
        }
    }
}

static void values_are_right_whichever_eval_computed_them(void **state)
{
    (void)state;
    struct eval *evals[EXPRS];
    struct error err = {0};
    make_evals(evals);
    assert_int_equal(eval_share(evals, EXPRS, &arena, &err), STATUS_OK);
    for (uint64_t stamp = 1; stamp < 2000; stamp++) {
        struct batch batch;
        struct column source;
        char texts[ROWS][9];
        arena_reset(&batch_arena);
        make_batch(&batch, &source, texts);
        struct eval_context context = {.arena = &batch_arena, .stamp = stamp % 7 == 0 ? 0 : stamp};
        for (int i = 0; i < 6; i++) {
            uint32_t rows[ROWS];
            struct selection selection = some_rows(rows);
            int number = (int)random_below(&dice, EXPRS);
            struct column out;
            assert_int_equal(eval_run(evals[number], &batch, selection, &context, &out, &err),
                             STATUS_OK);
            check(number, &out, &source, selection);
        }
    }
    for (int i = 0; i < EXPRS; i++) {
        eval_destroy(evals[i]);
    }
}

static void what_is_there_is_not_computed_again(void **state)
{
    (void)state;
    struct eval *evals[EXPRS];
    struct error err = {0};
    struct batch batch;
    struct column source, first, second;
    char texts[ROWS][9];
    uint32_t rows[] = {1, 5, 30};
    uint32_t others[] = {1, 6};
    make_evals(evals);
    assert_int_equal(eval_share(evals, EXPRS, &arena, &err), STATUS_OK);
    arena_reset(&batch_arena);
    make_batch(&batch, &source, texts);
    struct eval_context context = {.arena = &batch_arena, .stamp = 1};
#define RUN(number, selection, out)                                                                \
    assert_int_equal(eval_run(evals[number], &batch, selection, &context, out, &err), STATUS_OK)
    RUN(1, ((struct selection){rows, 3}), &first);
    RUN(1, ((struct selection){rows + 1, 2}), &second);
    assert_ptr_equal(first.ints, second.ints);
    /* A row more, or another batch. */
    RUN(1, ((struct selection){others, 2}), &second);
    assert_ptr_not_equal(first.ints, second.ints);
    context.stamp = 2;
    RUN(1, ((struct selection){others, 1}), &first);
    assert_ptr_not_equal(first.ints, second.ints);
    /* All rows are enough for any, also for another eval. */
    RUN(0, ((struct selection){NULL, ROWS}), &first);
    RUN(1, ((struct selection){others, 2}), &first);
    RUN(1, ((struct selection){rows, 3}), &second);
    assert_ptr_equal(first.ints, second.ints);
#undef RUN
    for (int i = 0; i < EXPRS; i++) {
        eval_destroy(evals[i]);
    }
}

static int tear_down(void **state)
{
    (void)state;
    arena_done(&arena);
    arena_done(&batch_arena);
    return 0;
}

/* Evals of two owners, each with an arena of its own that is reset before the other's turn. */
static void what_is_shared_outlives_the_arena_of_who_computed_it(void **state)
{
    (void)state;
    struct eval *mine[EXPRS];
    struct eval *others[EXPRS];
    struct eval *all[2 * EXPRS];
    struct error err = {0};
    struct arena arenas[2] = {{0}};
    struct arena shared = {0};
    make_evals(mine);
    make_evals(others);
    assert_int_equal(eval_share(mine, EXPRS, &arena, &err), STATUS_OK);
    assert_int_equal(eval_share(others, EXPRS, &arena, &err), STATUS_OK);
    memcpy(all, mine, sizeof mine);
    memcpy(all + EXPRS, others, sizeof others);
    assert_int_equal(eval_share(all, 2 * EXPRS, &arena, &err), STATUS_OK);
    uint32_t spared = 0;
    for (uint64_t stamp = 1; stamp < 1000; stamp++) {
        struct batch batch;
        struct column source;
        char texts[ROWS][9];
        const void *last = NULL;
        arena_reset(&batch_arena);
        arena_reset(&shared);
        make_batch(&batch, &source, texts);
        for (int i = 0; i < 6; i++) {
            struct eval_context context = {
                .arena = &arenas[i % 2], .stamp = stamp, .shared = &shared};
            uint32_t rows[ROWS];
            struct selection selection = some_rows(rows);
            int number = 1 + (int)random_below(&dice, EXPRS - 1);
            struct column out;
            assert_int_equal(
                eval_run(all[i % 2 * EXPRS + number], &batch, selection, &context, &out, &err),
                STATUS_OK);
            assert_ptr_equal(context.arena, &arenas[i % 2]);
            check(number, &out, &source, selection);
            spared += selection.count > 0 && out.data == last;
            last = out.data;
            arena_reset(&arenas[i % 2]);
        }
    }
    assert_true(spared > 500);
    for (int i = 0; i < 2 * EXPRS; i++) {
        eval_destroy(all[i]);
    }
    arena_done(&arenas[0]);
    arena_done(&arenas[1]);
    arena_done(&shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_right_whichever_eval_computed_them),
        cmocka_unit_test(what_is_there_is_not_computed_again),
        cmocka_unit_test(what_is_shared_outlives_the_arena_of_who_computed_it),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
