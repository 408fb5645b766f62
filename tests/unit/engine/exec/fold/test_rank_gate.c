/* SPDX-License-Identifier: Apache-2.0 */
/* test_rank_gate.c - rows that may be among the best get in, and few others.
 *
 * Method: prefixes from narrow and wide domains, in all orders that are bad for it, are offered in
 * pieces of any size. At every moment the model has all of them sorted, and knows the one at the
 * limit.
 */
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/random.h"
#include "engine/exec/fold/rank_gate.h"

enum { ROWS = 30000 };

static uint64_t prefixes[ROWS];
static uint64_t sorted[ROWS];
static bool is_in[ROWS];

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* The largest prefix that is among the first `limit` of so many rows. */
static uint64_t highest_of(uint32_t count, uint32_t limit)
{
    memcpy(sorted, prefixes, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare);
    return count < limit ? UINT64_MAX : sorted[limit - 1];
}

static void check_piece(struct rank_gate *gate, uint32_t first, uint32_t count)
{
    static uint64_t offered[RANK_GATE_ROWS];
    static uint32_t rows[RANK_GATE_ROWS];
    for (uint32_t i = 0; i < count; i++) {
        offered[i] = prefixes[first + i];
        rows[i] = first + i;
        is_in[first + i] = false;
    }
    uint32_t passed = rank_gate_pass(gate, offered, rows, count);
    assert_true(passed <= count);
    for (uint32_t i = 0; i < passed; i++) {
        assert_int_equal(offered[i], prefixes[rows[i]]);
        assert_true(i == 0 || rows[i] > rows[i - 1]);
        assert_in_range(rows[i], first, first + count - 1);
        is_in[rows[i]] = true;
    }
}

static void check_gate(struct random *random, uint32_t limit, uint32_t row_count)
{
    struct budget budget = {0};
    struct rank_gate gate;
    assert_true(rank_gate_init(&gate, limit, &budget));
    for (int round = 0; round < 2; round++) {
        for (uint32_t first = 0; first < row_count;) {
            uint32_t count = 1 + random_below(random, RANK_GATE_ROWS);
            if (count > row_count - first) count = row_count - first;
            check_piece(&gate, first, count);
            first += count;
            uint64_t highest = highest_of(first, limit);
            assert_true(gate.highest >= highest);
            /* Not far behind: a little more than the limit gets in. */
            uint32_t most = limit + limit / 8 + 1;
            if (first > most) assert_true(gate.highest <= highest_of(first, most));
            for (uint32_t i = 0; i < first; i++) {
                assert_true(is_in[i] || prefixes[i] > highest);
            }
        }
        rank_gate_reset(&gate);
    }
    rank_gate_done(&gate);
    assert_int_equal(budget.used_bytes, 0);
}

static void the_best_get_in_whatever_the_order(void **state)
{
    (void)state;
    static const uint32_t limits[] = {1, 2, 7, 100, 1000, 9000, RANK_GATE_LIMIT};
    static const uint64_t domains[] = {1, 3, 1000, UINT64_C(1) << 40, UINT64_MAX};
    struct random random = {7};
    for (uint32_t round = 0; round < 35; round++) {
        uint64_t domain = domains[round / 7];
        for (uint32_t i = 0; i < ROWS; i++) {
            prefixes[i] = UINT64_MAX / 3 + random_u64(&random) % domain;
            if (i % 97 == 0) prefixes[i] = i % 2 == 0 ? 0 : UINT64_MAX;
        }
        if (round % 3 == 1) qsort(prefixes, ROWS, sizeof *prefixes, compare);
        for (uint32_t i = 0; round % 6 == 1 && i < ROWS / 2; i++) {
            uint64_t kept = prefixes[i];
            prefixes[i] = prefixes[ROWS - 1 - i];
            prefixes[ROWS - 1 - i] = kept;
        }
        check_gate(&random, limits[round % 7], random_below(&random, ROWS));
    }
}

static void what_has_grown_old_is_left_out(void **state)
{
    (void)state;
    struct rank_gate gate;
    uint64_t offered[] = {9, 8, 7, 6, 5};
    uint32_t rows[] = {0, 1, 2, 3, 4};
    assert_true(rank_gate_init(&gate, 2, NULL));
    /* All of them are looked at before any gets in. */
    assert_int_equal(rank_gate_pass(&gate, offered, rows, 5), 2);
    assert_int_equal(rows[0], 3);
    assert_int_equal(rows[1], 4);
    uint64_t old[] = {5, 7, 6, UINT64_MAX};
    uint32_t old_rows[] = {0, 1, 2, 3};
    assert_int_equal(rank_gate_left(&gate, old, old_rows, 4), 2);
    assert_int_equal(old_rows[0], 0);
    assert_int_equal(old_rows[1], 2);
    rank_gate_done(&gate);
}

static void without_memory_there_is_no_gate(void **state)
{
    (void)state;
    struct budget budget = {.limit_bytes = 1000};
    struct rank_gate gate;
    assert_false(rank_gate_init(&gate, 10, &budget));
    rank_gate_done(&gate);
    assert_int_equal(budget.used_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_get_in_whatever_the_order),
        cmocka_unit_test(what_has_grown_old_is_left_out),
        cmocka_unit_test(without_memory_there_is_no_gate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
