/* SPDX-License-Identifier: Apache-2.0 */
/* test_radix_sort.c - keys ascend, equal keys keep their order, nothing gets lost.
 *
 * Method: items are numbered, so the only right answer is the order by (key, number); qsort with
 * that order is the model. All sizes around the change of algorithm, one large size, and keys that
 * differ in one byte, in some, in all or in none.
 */
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/radix_sort.h"
#include "engine/base/random.h"

static int compare_items(const void *a, const void *b)
{
    const struct radix_item *left = a;
    const struct radix_item *right = b;
    if (left->key != right->key) return left->key < right->key ? -1 : 1;
    return (left->value > right->value) - (left->value < right->value);
}

/* The key may have set bits where the mask has. */
static void check_sort(size_t count, uint64_t mask, struct random *random)
{
    size_t bytes = count * sizeof(struct radix_item);
    struct radix_item *items = memory_alloc(NULL, bytes + 1);
    struct radix_item *scratch = memory_alloc(NULL, bytes + 1);
    struct radix_item *expected = memory_alloc(NULL, bytes + 1);
    assert_true(items != NULL && scratch != NULL && expected != NULL);
    for (size_t i = 0; i < count; i++) {
        items[i] = (struct radix_item){random_u64(random) & mask, i};
        expected[i] = items[i];
    }
    qsort(expected, count, sizeof *expected, compare_items);
    radix_sort(items, scratch, count);
    assert_memory_equal(items, expected, bytes);
    memory_free(NULL, items, bytes + 1);
    memory_free(NULL, scratch, bytes + 1);
    memory_free(NULL, expected, bytes + 1);
}

static int compare_words(const void *a, const void *b)
{
    const uint64_t *left = a;
    const uint64_t *right = b;
    return (*left > *right) - (*left < *right);
}

/* Words whose lower halves are their numbers: by upper halves and stably is by whole words. */
static void check_sort_upper(size_t count, uint64_t mask, struct random *random)
{
    size_t bytes = count * sizeof(uint64_t);
    uint64_t *words = memory_alloc(NULL, bytes + 1);
    uint64_t *scratch = memory_alloc(NULL, bytes + 1);
    uint64_t *expected = memory_alloc(NULL, bytes + 1);
    assert_true(words != NULL && scratch != NULL && expected != NULL);
    for (size_t i = 0; i < count; i++) {
        words[i] = expected[i] = (random_u64(random) & mask) >> 32 << 32 | i;
    }
    qsort(expected, count, sizeof *expected, compare_words);
    radix_sort_upper(words, scratch, count);
    assert_memory_equal(words, expected, bytes);
    memory_free(NULL, words, bytes + 1);
    memory_free(NULL, scratch, bytes + 1);
    memory_free(NULL, expected, bytes + 1);
}

static const uint64_t masks[] = {
    0,
    1,
    0xff,
    0xff00,
    (uint64_t)0xff << 56,
    (uint64_t)1 << 63,
    0x00ff00000000ff00u,
    0x0101010101010101u,
    0xffffffffu,
    UINT64_MAX,
};

static void every_small_size_is_sorted_stably(void **state)
{
    (void)state;
    struct random random = {11};
    for (size_t count = 0; count <= 300; count++) {
        for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
            check_sort(count, masks[i], &random);
            check_sort_upper(count, masks[i], &random);
        }
    }
}

static void a_hundred_thousand_items_are_sorted_stably(void **state)
{
    (void)state;
    struct random random = {12};
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        check_sort(100000, masks[i], &random);
        check_sort_upper(100000, masks[i], &random);
    }
}

static void sorted_and_reversed_keys_are_sorted(void **state)
{
    (void)state;
    struct radix_item items[300];
    struct radix_item scratch[300];
    for (size_t count = 0; count <= 300; count++) {
        for (size_t i = 0; i < count; i++) {
            items[i] = (struct radix_item){(count - i) * 0x0123456789abcdu, i};
        }
        for (int pass = 0; pass < 2; pass++) {
            radix_sort(items, scratch, count);
            for (size_t i = 0; i < count; i++) {
                assert_int_equal(items[i].value, count - 1 - i);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_small_size_is_sorted_stably),
        cmocka_unit_test(a_hundred_thousand_items_are_sorted_stably),
        cmocka_unit_test(sorted_and_reversed_keys_are_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
