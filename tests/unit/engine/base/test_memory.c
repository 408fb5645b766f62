/* SPDX-License-Identifier: Apache-2.0 */
/* test_memory.c - budgets count to the byte, and the failure switch fails where it is told.
 *
 * Method: random allocations, resizes and frees against a budget; the model is one sum and its
 * maximum. Several threads share a budget at the end.
 */
#include "unit/test.h"

#include <pthread.h>
#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/random.h"

enum { BLOCKS = 32, STEPS = 20000 };

struct owned_block {
    unsigned char *bytes;
    size_t size;
};

static void fill(struct owned_block *block, size_t index)
{
    memset(block->bytes, (int)index, block->size);
}

static void check_filled(const struct owned_block *block, size_t index, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(block->bytes[i], index);
    }
}

static void budgets_count_what_is_held_and_the_most_ever_held(void **state)
{
    (void)state;
    struct budget budget = {.limit_bytes = 20000};
    struct owned_block blocks[BLOCKS] = {{0}};
    struct random random = {5};
    size_t used = 0;
    size_t peak = 0;
    uint32_t refused_count = 0;
    for (int step = 0; step < STEPS; step++) {
        size_t index = random_below(&random, BLOCKS);
        struct owned_block *block = &blocks[index];
        size_t size = 1 + random_below(&random, 3000);
        if (random_below(&random, 3) == 0) {
            memory_free(&budget, block->bytes, block->size);
            used -= block->size;
            *block = (struct owned_block){0};
        } else {
            /* While a block is moved, both of its sizes count. */
            bool fits = used + size <= budget.limit_bytes;
            unsigned char *bytes = memory_resize(&budget, block->bytes, block->size, size);
            assert_int_equal(bytes != NULL, fits);
            refused_count += !fits;
            if (fits) {
                if (used + size > peak) peak = used + size;
                used = used + size - block->size;
                size_t common = size < block->size ? size : block->size;
                *block = (struct owned_block){bytes, size};
                check_filled(block, index, common);
                fill(block, index);
            } else if (block->bytes != NULL) {
                check_filled(block, index, block->size);
            }
        }
        assert_int_equal(budget.used_bytes, used);
        assert_int_equal(budget.peak_bytes, peak);
    }
    assert_in_range(refused_count, 10, STEPS / 2);
    for (size_t i = 0; i < BLOCKS; i++) {
        memory_free(&budget, blocks[i].bytes, blocks[i].size);
    }
    assert_int_equal(budget.used_bytes, 0);
}

static void without_a_budget_or_limit_nothing_is_refused(void **state)
{
    (void)state;
    struct budget budget = {0};
    void *first = memory_alloc(&budget, 1 << 20);
    void *second = memory_alloc(NULL, 1 << 20);
    assert_non_null(first);
    assert_non_null(second);
    assert_int_equal(budget.used_bytes, 1 << 20);
    memory_free(&budget, first, 1 << 20);
    memory_free(NULL, second, 1 << 20);
    memory_free(&budget, NULL, 5);
    assert_int_equal(budget.used_bytes, 0);
    assert_int_equal(budget.peak_bytes, 1 << 20);
}

/* What a part holds counts in the whole too, and the whole's limit binds the part. */
static void a_budget_may_be_part_of_another(void **state)
{
    (void)state;
    struct budget whole = {.limit_bytes = 1000};
    struct budget parts[2] = {{.parent = &whole}, {.limit_bytes = 500, .parent = &whole}};
    assert_int_equal(budget_limit(NULL), 0);
    assert_true(budget_room(NULL) == SIZE_MAX);
    assert_int_equal(budget_limit(&parts[0]), 1000);
    assert_int_equal(budget_limit(&parts[1]), 500);
    void *first = memory_alloc(&parts[0], 700);
    assert_non_null(first);
    assert_int_equal(whole.used_bytes, 700);
    assert_int_equal(budget_room(&parts[0]), 300);
    assert_int_equal(budget_room(&parts[1]), 300);
    /* Refused by the whole, and nothing of it is left behind in the part. */
    assert_null(memory_alloc(&parts[1], 400));
    assert_int_equal(parts[1].used_bytes, 0);
    assert_int_equal(whole.used_bytes, 700);
    memory_free(&parts[0], first, 700);
    assert_null(memory_alloc(&parts[1], 501));
    void *second = memory_alloc(&parts[1], 200);
    assert_non_null(second);
    second = memory_resize(&parts[1], second, 200, 250);
    assert_non_null(second);
    assert_int_equal(parts[0].used_bytes, 0);
    assert_int_equal(parts[1].used_bytes, 250);
    assert_int_equal(whole.used_bytes, 250);
    assert_int_equal(whole.peak_bytes, 700);
    assert_int_equal(budget_room(&parts[1]), 250);
    memory_free(&parts[1], second, 250);
    assert_int_equal(whole.used_bytes, 0);
    memory_return(100, 1);
}

static void what_was_there_before_counts_up_to_a_quarter(void **state)
{
    (void)state;
    struct budget budget = {.limit_bytes = 1000};
    budget_start(&budget, 200);
    assert_int_equal(budget_room(&budget), 800);
    assert_int_equal(budget.peak_bytes, 200);
    assert_null(memory_alloc(&budget, 801));
    void *block = memory_alloc(&budget, 800);
    assert_non_null(block);
    assert_int_equal(budget.peak_bytes, 1000);
    memory_free(&budget, block, 800);
    assert_int_equal(budget.used_bytes, 200);
    struct budget small = {.limit_bytes = 1000};
    budget_start(&small, 5000);
    assert_int_equal(budget_room(&small), 750);
    struct budget unlimited = {0};
    budget_start(&unlimited, 5000);
    assert_int_equal(unlimited.used_bytes, 5000);
    /* A megabyte that is written to is seen by the system. */
    size_t before = memory_of_process();
    unsigned char *large = memory_alloc(NULL, 16 << 20);
    assert_non_null(large);
    memset(large, 1, 16 << 20);
    assert_true(before > 100000);
    assert_true(memory_of_process() > before + (8 << 20));
    memory_free(NULL, large, 16 << 20);
}

/* From bytes to several large pages, in every step from one kind of block to the other. */
static void zeroes_grow_and_keep_what_is_there(void **state)
{
    (void)state;
    static const size_t sizes[] = {1,       64,      4096,    1 << 20,       (2 << 20) - 1,
                                   2 << 20, 3000001, 6 << 20, (6 << 20) + 1, 20 << 20};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (size_t first = 0; first < SIZES; first++) {
        struct budget budget = {.limit_bytes = 48 << 20};
        size_t size = sizes[first];
        unsigned char *block = memory_alloc_zeroed(&budget, size);
        assert_non_null(block);
        assert_int_equal(block[0], 0);
        assert_int_equal(block[size - 1], 0);
        block[size - 1] = (unsigned char)(first + 1);
        for (size_t i = first + 1; i < SIZES; i++) {
            budget.peak_bytes = budget.used_bytes;
            unsigned char *grown = memory_grow_zeroed(&budget, block, size, sizes[i]);
            assert_non_null(grown);
            assert_int_equal(budget.peak_bytes, size + memory_grow_need(size, sizes[i]));
            block = grown;
            for (size_t at = 0; at < sizes[i]; at++) {
                if (at == sizes[i - 1] - 1 && at > 0) assert_int_equal(block[at], i);
                if (at >= size) assert_int_equal(block[at], 0);
            }
            size = sizes[i];
            block[size - 1] = (unsigned char)(i + 1);
            assert_int_equal(budget.used_bytes, size);
        }
        /* What does not fit, or is refused, changes nothing. */
        assert_null(memory_grow_zeroed(&budget, block, size, 64 << 20));
        memory_fail_after(0);
        assert_null(memory_grow_zeroed(&budget, block, size, size + 1));
        assert_null(memory_alloc_zeroed(&budget, 1));
        memory_fail_never();
        assert_int_equal(budget.used_bytes, size);
        assert_int_equal(block[size - 1], SIZES);
        memory_free_zeroed(&budget, block, size);
        assert_int_equal(budget.used_bytes, 0);
    }
    memory_free_zeroed(NULL, NULL, 4 << 20);
    memory_free_zeroed(NULL, NULL, 0);
}

static void the_switch_lets_exactly_so_many_through(void **state)
{
    (void)state;
    for (size_t allowed = 0; allowed < 20; allowed++) {
        struct budget budget = {0};
        void *blocks[30] = {0};
        memory_fail_after(allowed);
        assert_false(memory_was_refused());
        for (size_t i = 0; i < 30; i++) {
            blocks[i] = memory_alloc(&budget, 16);
            assert_int_equal(blocks[i] != NULL, i < allowed);
            assert_int_equal(memory_was_refused(), i >= allowed);
        }
        assert_int_equal(budget.used_bytes, allowed * 16);
        memory_fail_never();
        assert_true(memory_was_refused());
        for (size_t i = 0; i < 30; i++) {
            memory_free(&budget, blocks[i], 16);
        }
        void *block = memory_alloc(&budget, 16);
        assert_non_null(block);
        memory_free(&budget, block, 16);
        assert_int_equal(budget.used_bytes, 0);
    }
    memory_fail_after(5);
    memory_fail_never();
    assert_false(memory_was_refused());
}

static void *hammer(void *context)
{
    struct budget *budget = context;
    size_t failures = 0;
    for (int i = 0; i < 20000; i++) {
        void *block = memory_alloc(budget, 64);
        failures += block == NULL;
        memory_free(budget, block, 64);
    }
    return failures == 20000 ? context : NULL;
}

static void threads_share_a_budget_without_losing_a_byte(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    struct budget budget = {.limit_bytes = 64 * 2};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, &budget), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(budget.used_bytes, 0);
    assert_in_range(budget.peak_bytes, 64, budget.limit_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(budgets_count_what_is_held_and_the_most_ever_held),
        cmocka_unit_test(without_a_budget_or_limit_nothing_is_refused),
        cmocka_unit_test(a_budget_may_be_part_of_another),
        cmocka_unit_test(what_was_there_before_counts_up_to_a_quarter),
        cmocka_unit_test(zeroes_grow_and_keep_what_is_there),
        cmocka_unit_test(the_switch_lets_exactly_so_many_through),
        cmocka_unit_test(threads_share_a_budget_without_losing_a_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
