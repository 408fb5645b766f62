/* SPDX-License-Identifier: Apache-2.0 */
/* test_array.c - an array keeps its items wherever it grows, and survives a lack of memory.
 *
 * Method: the same numbers are added to an array in the heap and to one in an arena; afterwards
 * every item is read back. A budget without room stands for an exhausted machine.
 */
#include "unit/test.h"

#include "engine/base/array.h"

enum { ITEMS = 10000 };

static void items_stay_while_the_array_grows(void **state)
{
    (void)state;
    struct budget budget = {0};
    struct arena arena = {0};
    ARRAY_OF(uint32_t) heap = {0};
    ARRAY_OF(uint32_t) local = {0};
    for (uint32_t i = 0; i < ITEMS; i++) {
        uint32_t *in_heap = array_add(&heap, &budget);
        uint32_t *in_arena = array_add_in(&local, &arena);
        assert_non_null(in_heap);
        assert_non_null(in_arena);
        *in_heap = *in_arena = i * 3;
    }
    assert_int_equal(heap.count, ITEMS);
    assert_int_equal(local.count, ITEMS);
    for (uint32_t i = 0; i < ITEMS; i++) {
        assert_int_equal(heap.items[i], i * 3);
        assert_int_equal(local.items[i], i * 3);
    }
    assert_int_equal(budget.used_bytes, heap.capacity * sizeof(uint32_t));
    array_done(&heap, &budget);
    assert_int_equal(budget.used_bytes, 0);
    assert_int_equal(heap.count, 0);
    arena_done(&arena);
}

static void a_refused_addition_leaves_the_array_as_it_was(void **state)
{
    (void)state;
    struct budget budget = {.limit_bytes = 1000};
    ARRAY_OF(uint64_t) array = {0};
    uint64_t *added = NULL;
    while ((added = array_add(&array, &budget)) != NULL) {
        *added = array.count;
    }
    assert_true(array.count > 0 && array.count == array.capacity);
    for (size_t i = 0; i < array.count; i++) {
        assert_int_equal(array.items[i], i + 1);
    }
    size_t too_many = SIZE_MAX / 4;
    assert_false(array_reserve(&array, &budget, too_many));
    array_done(&array, &budget);
    array_done(&array, &budget);
    assert_int_equal(budget.used_bytes, 0);
}

static void room_for_many_is_made_at_once(void **state)
{
    (void)state;
    ARRAY_OF(char) array = {0};
    assert_true(array_reserve(&array, NULL, ITEMS));
    const char *first = array.items;
    for (uint32_t i = 0; i < ITEMS; i++) {
        assert_non_null(array_add(&array, NULL));
    }
    assert_ptr_equal(array.items, first);
    array_done(&array, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_stay_while_the_array_grows),
        cmocka_unit_test(a_refused_addition_leaves_the_array_as_it_was),
        cmocka_unit_test(room_for_many_is_made_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
