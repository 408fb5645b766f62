/* SPDX-License-Identifier: Apache-2.0 */
/* test_row_sort.c - rows come in the order of their keys, whatever the types and directions.
 *
 * Method: random rows of every type, random lists of keys; the model sorts by comparing values as
 * the order is defined, then by row number. Small sets of values make ties, so that later keys
 * count.
 */
#include "unit/test.h"

#include "engine/exec/fold/row_sort.h"
#include "unit/engine/data/random_rows.h"
#include "unit/engine/exec/fold/naive_order.h"

enum { KEYS_MAX = 4 };

static uint32_t random_keys(struct random *random, uint32_t column_count, struct sort_key *keys)
{
    uint32_t count = random_below(random, KEYS_MAX + 1);
    for (uint32_t i = 0; i < count; i++) {
        keys[i] = (struct sort_key){.column = random_below(random, column_count),
                                    .descending = random_below(random, 2) == 0,
                                    .nulls_first = random_below(random, 2) == 0};
    }
    return count;
}

static void check_sort(const struct batch *batch, const struct sort_key *keys, uint32_t key_count,
                       struct random *random, struct arena *arena)
{
    uint32_t count = batch->row_count;
    uint32_t *rows = random_rows_shuffle(random, count, arena);
    uint32_t *expected = random_rows_need(arena_array(arena, uint32_t, (size_t)count + 1));
    if (count > 0) memcpy(expected, rows, count * sizeof *rows);
    /* Without keys the order stays as it is. */
    if (key_count > 0)
        naive_sort_rows((struct naive_sort){batch, keys, key_count}, expected, count);
    struct arena scratch = {0};
    assert_true(row_sort(batch, keys, key_count, rows, count, &scratch));
    assert_memory_equal(rows, expected, count * sizeof *rows);
    arena_done(&scratch);
}

static void rows_of_all_types_are_sorted_by_any_keys(void **state)
{
    (void)state;
    struct random random = {1};
    for (uint32_t round = 0; round < 1500; round++) {
        struct arena arena = {0};
        struct random_rows rows = {.random = &random,
                                   .arena = &arena,
                                   .domain = round % 3 == 0 ? 30 : 0,
                                   .null_percent = round % 4 * 10};
        struct batch batch =
            random_rows_batch(&rows, random_rows_every, random_below(&random, 100));
        struct sort_key keys[KEYS_MAX];
        uint32_t key_count = random_keys(&random, random_rows_every.count, keys);
        check_sort(&batch, keys, key_count, &random, &arena);
        arena_done(&arena);
    }
}

static void many_rows_are_sorted_by_each_type(void **state)
{
    (void)state;
    struct random random = {2};
    struct arena arena = {0};
    struct random_rows rows = {
        .random = &random, .arena = &arena, .domain = 2000, .null_percent = 5};
    struct batch batch = random_rows_batch(&rows, random_rows_every, 5000);
    for (uint32_t i = 0; i < random_rows_every.count; i++) {
        for (uint32_t direction = 0; direction < 4; direction++) {
            struct sort_key key = {i, (direction & 1) != 0, (direction & 2) != 0};
            check_sort(&batch, &key, 1, &random, &arena);
        }
    }
    arena_done(&arena);
}

static void comparisons_across_batches_agree_with_the_definition(void **state)
{
    (void)state;
    struct random random = {3};
    struct arena arena = {0};
    struct random_rows rows = {.random = &random, .arena = &arena, .null_percent = 20};
    struct batch batch = random_rows_batch(&rows, random_rows_every, 60);
    struct column columns[16];
    struct batch second = batch_slice(&batch, 30, 30, columns);
    for (uint32_t i = 0; i < random_rows_every.count * 4; i++) {
        struct sort_key key = {i / 4, (i & 1) != 0, (i & 2) != 0};
        for (uint32_t a = 0; a < 30; a++) {
            for (uint32_t b = 0; b < 30; b++) {
                int order = row_compare(&batch, a, &second, b, &key, 1);
                int expected = naive_row_order(&batch, a, 30 + b, &key, 1);
                assert_int_equal((order > 0) - (order < 0), (expected > 0) - (expected < 0));
            }
        }
    }
    arena_done(&arena);
}

static void a_failing_allocation_leaves_the_rows_alone(void **state)
{
    (void)state;
    struct random random = {4};
    struct arena arena = {0};
    struct arena scratch = {0};
    struct random_rows rows = {.random = &random, .arena = &arena};
    struct batch batch = random_rows_batch(&rows, random_rows_every, 50);
    uint32_t *order = random_rows_shuffle(&random, 50, &arena);
    uint32_t before[50];
    struct sort_key key = {.column = 1};
    memcpy(before, order, sizeof before);
    memory_fail_after(0);
    assert_false(row_sort(&batch, &key, 1, order, 50, &scratch));
    memory_fail_never();
    assert_memory_equal(order, before, sizeof before);
    arena_done(&scratch);
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_all_types_are_sorted_by_any_keys),
        cmocka_unit_test(many_rows_are_sorted_by_each_type),
        cmocka_unit_test(comparisons_across_batches_agree_with_the_definition),
        cmocka_unit_test(a_failing_allocation_leaves_the_rows_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
