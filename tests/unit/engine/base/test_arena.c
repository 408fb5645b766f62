/* SPDX-License-Identifier: Apache-2.0 */
/* test_arena.c - what an arena gives is aligned, its own, and stays as it was written.
 *
 * Method: random allocations of all sizes and alignments are filled with a byte of their own;
 * marks, releases and resets come in between, and every live block is looked at each time. The
 * sanitizer watches the bounds of the blocks below.
 */
#include "unit/test.h"

#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/random.h"

enum { BLOCKS = 400, MARKS = 8 };

struct live {
    unsigned char *bytes;
    size_t size;
    unsigned char filling;
};

struct arena_history {
    struct arena arena;
    struct live live[BLOCKS];
    size_t live_count;
    struct arena_mark marks[MARKS];
    size_t marked_count[MARKS];
    size_t mark_count;
};

static void check_live(const struct arena_history *history)
{
    for (size_t i = 0; i < history->live_count; i++) {
        const struct live *live = &history->live[i];
        for (size_t j = 0; j < live->size; j++) {
            assert_int_equal(live->bytes[j], live->filling);
        }
    }
}

static void allocate(struct arena_history *history, struct random *random)
{
    if (history->live_count == BLOCKS) return;
    size_t align = (size_t)1 << random_below(random, 7);
    size_t size = random_below(random, random_below(random, 20) == 0 ? 20000 : 100);
    unsigned char *bytes = arena_alloc(&history->arena, size, align);
    assert_non_null(bytes);
    assert_int_equal((uintptr_t)bytes % align, 0);
    unsigned char filling = (unsigned char)random_u64(random);
    if (size > 0) memset(bytes, filling, size);
    history->live[history->live_count++] = (struct live){bytes, size, filling};
}

static void blocks_keep_their_bytes_through_marks_and_resets(void **state)
{
    (void)state;
    static struct arena_history history;
    struct budget budget = {0};
    struct random random = {1};
    arena_init(&history.arena, &budget);
    for (int step = 0; step < 20000; step++) {
        uint32_t choice = random_below(&random, 100);
        if (choice < 90) {
            allocate(&history, &random);
        } else if (choice < 94 && history.mark_count < MARKS) {
            history.marks[history.mark_count] = arena_mark(&history.arena);
            history.marked_count[history.mark_count++] = history.live_count;
        } else if (choice < 99 && history.mark_count > 0) {
            arena_release(&history.arena, history.marks[--history.mark_count]);
            history.live_count = history.marked_count[history.mark_count];
        } else if (choice == 99) {
            arena_reset(&history.arena);
            history.live_count = 0;
            history.mark_count = 0;
        }
        if (step % 50 == 0) check_live(&history);
    }
    check_live(&history);
    arena_done(&history.arena);
    assert_int_equal(budget.used_bytes, 0);
}

static void a_reset_arena_allocates_nothing_the_second_time(void **state)
{
    (void)state;
    struct budget budget = {0};
    struct arena arena;
    arena_init(&arena, &budget);
    size_t used_bytes = 0;
    for (int round = 0; round < 5; round++) {
        struct random random = {7};
        for (int i = 0; i < 1000; i++) {
            assert_non_null(arena_alloc(&arena, random_below(&random, 3000), 8));
        }
        if (round == 1) used_bytes = budget.used_bytes;
        if (round > 1) assert_int_equal(budget.used_bytes, used_bytes);
        arena_reset(&arena);
    }
    arena_done(&arena);
    assert_int_equal(budget.used_bytes, 0);
}

static void cleared_arrays_are_cleared_after_a_reset_too(void **state)
{
    (void)state;
    struct arena arena = {0};
    for (size_t count = 0; count < 300; count++) {
        unsigned char *dirty = arena_alloc(&arena, 4000, 1);
        assert_non_null(dirty);
        memset(dirty, 0xff, 4000);
        arena_reset(&arena);
        uint64_t *words = arena_array(&arena, uint64_t, count);
        assert_non_null(words);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(words[i], 0);
        }
        arena_reset(&arena);
    }
    arena_done(&arena);
}

static void sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    struct arena arena = {0};
    assert_null(arena_calloc(&arena, SIZE_MAX / 4, 8, 8));
    assert_null(arena_alloc(&arena, SIZE_MAX, 8));
    assert_null(arena_alloc(&arena, SIZE_MAX - 8, 16));
    assert_non_null(arena_alloc(&arena, 1, 1));
    assert_null(arena_alloc(&arena, SIZE_MAX - 8, 16));
    arena_done(&arena);
}

static void large_blocks_are_aligned_as_any(void **state)
{
    (void)state;
    for (size_t align = 1; align <= 4096; align *= 2) {
        for (size_t size = 4000; size < 3000000; size += size / 3 + 1) {
            struct budget budget = {.limit_bytes = 8 << 20};
            struct arena arena;
            arena_init(&arena, &budget);
            unsigned char *bytes = arena_alloc(&arena, size, align);
            assert_non_null(bytes);
            assert_int_equal((uintptr_t)bytes % align, 0);
            memset(bytes, 1, size);
            arena_done(&arena);
            assert_int_equal(budget.used_bytes, 0);
        }
    }
}

static void a_failed_allocation_leaves_the_arena_usable(void **state)
{
    (void)state;
    struct budget budget = {.limit_bytes = 20000};
    struct arena arena;
    arena_init(&arena, &budget);
    char *kept = arena_copy_string(&arena, TEXT_LITERAL("kept"));
    assert_non_null(kept);
    assert_null(arena_alloc(&arena, 100000, 8));
    assert_non_null(arena_alloc(&arena, 100, 8));
    assert_string_equal(kept, "kept");
    arena_done(&arena);
    assert_int_equal(budget.used_bytes, 0);
}

static void strings_are_copied_with_an_end(void **state)
{
    (void)state;
    struct arena arena = {0};
    char *empty = arena_copy_string(&arena, (struct text){NULL, 0});
    char *whole = arena_copy_string(&arena, (struct text){"a\0b", 3});
    assert_string_equal(empty, "");
    assert_memory_equal(whole, "a\0b", 4);
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_keep_their_bytes_through_marks_and_resets),
        cmocka_unit_test(a_reset_arena_allocates_nothing_the_second_time),
        cmocka_unit_test(cleared_arrays_are_cleared_after_a_reset_too),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(large_blocks_are_aligned_as_any),
        cmocka_unit_test(a_failed_allocation_leaves_the_arena_usable),
        cmocka_unit_test(strings_are_copied_with_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
