/* SPDX-License-Identifier: Apache-2.0 */
/* test_text.c - order, equality and the guess behind "did you mean".
 *
 * Method: all texts up to a length over a small alphabet are compared pair by pair with a loop over
 * bytes. The guess is compared with the definition of the edit distance, computed from the front
 * with a full table.
 */
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/packed_text.h"
#include "engine/base/random.h"
#include "engine/base/text.h"

enum { TEXTS = 1 + 4 + 16 + 64, NAME_MAX_SIZE = 70 };

/* Every text of up to three of these bytes. */
static const char alphabet[] = {'\0', 'a', 'A', '\xff'};

struct small {
    char bytes[4];
    struct text text;
};

static void small_texts(struct small *out)
{
    uint32_t count = 0;
    for (uint32_t size = 0; size <= 3; size++) {
        for (uint32_t code = 0; code < 1u << 2 * size; code++) {
            struct small *small = &out[count++];
            for (uint32_t i = 0; i < size; i++) {
                small->bytes[i] = alphabet[code >> 2 * i & 3];
            }
            small->text = (struct text){size == 0 ? NULL : small->bytes, size};
        }
    }
    assert_int_equal(count, TEXTS);
}

static int naive_compare(struct text a, struct text b)
{
    for (uint32_t i = 0;; i++) {
        if (i == a.size || i == b.size) return (i < a.size) - (i < b.size);
        int difference = (unsigned char)a.bytes[i] - (unsigned char)b.bytes[i];
        if (difference != 0) return difference;
    }
}

static char naive_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static void all_small_texts_are_ordered_by_bytes(void **state)
{
    (void)state;
    static struct small texts[TEXTS];
    small_texts(texts);
    for (uint32_t i = 0; i < TEXTS; i++) {
        for (uint32_t j = 0; j < TEXTS; j++) {
            struct text a = texts[i].text;
            struct text b = texts[j].text;
            int order = text_compare(a, b);
            int expected = naive_compare(a, b);
            assert_int_equal(order < 0, expected < 0);
            assert_int_equal(order > 0, expected > 0);
            assert_int_equal(text_equal(a, b), i == j);
            bool same = a.size == b.size;
            for (uint32_t k = 0; same && k < a.size; k++) {
                same = naive_lower(a.bytes[k]) == naive_lower(b.bytes[k]);
            }
            assert_int_equal(text_equal_ignoring_case(a, b), same);
        }
    }
}

static void only_ascii_letters_have_a_case(void **state)
{
    (void)state;
    for (int a = 0; a < 256; a++) {
        for (int b = 0; b < 256; b++) {
            char left = (char)a;
            char right = (char)b;
            assert_int_equal(
                text_equal_ignoring_case((struct text){&left, 1}, (struct text){&right, 1}),
                naive_lower(left) == naive_lower(right));
        }
    }
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t naive_distance(struct text a, struct text b)
{
    static uint32_t table[NAME_MAX_SIZE + 1][NAME_MAX_SIZE + 1];
    for (uint32_t i = 0; i <= a.size; i++) {
        for (uint32_t j = 0; j <= b.size; j++) {
            if (i == 0 || j == 0) {
                table[i][j] = i + j;
                continue;
            }
            bool differs = naive_lower(a.bytes[i - 1]) != naive_lower(b.bytes[j - 1]);
            table[i][j] =
                least(table[i - 1][j - 1] + differs, least(table[i - 1][j], table[i][j - 1]) + 1);
        }
    }
    return table[a.size][b.size];
}

/* The first of the nearest, if at most a third of the letters and one more are wrong. */
static const struct text *naive_nearest(struct text wanted, const struct text *candidates,
                                        size_t count)
{
    const struct text *nearest = NULL;
    uint32_t best = least(wanted.size / 3 + 1, wanted.size - 1);
    if (wanted.size == 0 || wanted.size > 64) return NULL;
    for (size_t i = count; i-- > 0;) {
        if (candidates[i].size == 0 || candidates[i].size > 64) continue;
        uint32_t distance = naive_distance(wanted, candidates[i]);
        if (distance > best) continue;
        best = distance;
        nearest = &candidates[i];
    }
    return nearest;
}

static struct text random_name(struct random *random, char *bytes, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        bytes[i] = "abAc_"[random_below(random, 5)];
    }
    return (struct text){bytes, size};
}

static void the_nearest_name_is_the_first_with_the_least_edit_distance(void **state)
{
    (void)state;
    struct random random = {3};
    uint32_t found_count = 0;
    for (int round = 0; round < 30000; round++) {
        char bytes[6][NAME_MAX_SIZE];
        struct text names[6];
        uint32_t longest = round % 50 == 0 ? NAME_MAX_SIZE : 9;
        for (uint32_t i = 0; i < 6; i++) {
            names[i] = random_name(&random, bytes[i], random_below(&random, longest));
        }
        const struct text *expected = naive_nearest(names[0], names + 1, 5);
        assert_ptr_equal(text_nearest(names[0], names + 1, 5), expected);
        found_count += expected != NULL;
    }
    assert_in_range(found_count, 3000, 27000);
}

static void typing_errors_are_recognised_and_strangers_are_not(void **state)
{
    (void)state;
    const struct text names[] = {TEXT_LITERAL("title"), TEXT_LITERAL("rating"), TEXT_LITERAL("id")};
    const struct text *found = text_nearest(TEXT_LITERAL("titel"), names, 3);
    assert_ptr_equal(found, &names[0]);
    found = text_nearest(TEXT_LITERAL("RATINGS"), names, 3);
    assert_ptr_equal(found, &names[1]);
    assert_null(text_nearest(TEXT_LITERAL("budget"), names, 3));
    assert_null(text_nearest(TEXT_LITERAL("x"), names, 3));
    assert_null(text_nearest(TEXT_LITERAL("title"), names, 0));
}

/* Few letters, so that there are many near misses; texts that end where their memory does. */
static void a_text_is_found_where_memmem_finds_it(void **state)
{
    (void)state;
    struct random random = {1};
    for (uint32_t round = 0; round < 60000; round++) {
        uint32_t size = random_below(&random, 90);
        uint32_t needle_size = random_below(&random, round % 3 == 0 ? 40 : 5);
        char *bytes = malloc(size + 1);
        char *needle = malloc(needle_size + 1);
        assert_non_null(bytes);
        assert_non_null(needle);
        memset(bytes, 'a', size + 1);
        memset(needle, 'a', needle_size + 1);
        for (uint32_t i = 0; i < size; i++) {
            bytes[i] = (char)('a' + (random_below(&random, 4) == 0));
        }
        for (uint32_t i = 0; i < needle_size; i++) {
            needle[i] = (char)('a' + (random_below(&random, 4) == 0));
        }
        char *exact = realloc(bytes, size == 0 ? 1 : size);
        struct text text = {exact, size};
        const char *found = text_find(text, (struct text){needle, needle_size});
        const char *expected = memmem(exact, size, needle, needle_size);
        if (size > 0) assert_ptr_equal(found, expected);
        if (size == 0) assert_int_equal(found != NULL, expected != NULL);
        free(exact);
        free(needle);
    }
}

static void bytes_of_any_size_are_equal_only_if_all_are(void **state)
{
    (void)state;
    for (uint32_t size = 0; size <= 40; size++) {
        char a[40], b[40];
        memset(a, 'x', sizeof a);
        memset(b, 'x', sizeof b);
        assert_true(text_bytes_equal(a, b, size));
        for (uint32_t i = 0; i < sizeof a; i++) {
            b[i] = 'y';
            assert_int_equal(text_bytes_equal(a, b, size), i >= size);
            b[i] = 'x';
        }
    }
}

/* Each text is alone in its memory: a byte too far would be seen. */
static void a_packed_text_is_that_text_and_equal_only_to_it(void **state)
{
    (void)state;
    for (uint32_t size = 0; size <= 40; size++) {
        char *a = malloc((size_t)size + (size == 0));
        char *b = malloc((size_t)size + (size == 0));
        assert_true(a != NULL && b != NULL);
        for (uint32_t i = 0; i < size; i++) {
            a[i] = b[i] = (char)(200 + i);
        }
        struct packed_text packed = packed_text_of((struct text){size == 0 ? NULL : a, size});
        struct packed_text duplicate = packed_text_of((struct text){b, size});
        assert_int_equal(packed_text_size(&packed), size);
        assert_true(text_equal(packed_text_get(&packed), (struct text){b, size}));
        assert_true(packed_text_equal(&packed, &duplicate));
        for (uint32_t i = 0; i < size; i++) {
            b[i] = 0;
            struct packed_text other = packed_text_of((struct text){b, size});
            struct packed_text shorter = packed_text_of((struct text){a, i});
            assert_false(packed_text_equal(&packed, &other));
            assert_false(packed_text_equal(&packed, &shorter));
            b[i] = a[i];
        }
        if (size <= PACKED_TEXT_SHORT) memset(a, 'x', size);
        assert_true(text_equal(packed_text_get(&packed), (struct text){b, size}));
        free(a);
        free(b);
    }
}

/* A byte of zero is a byte: the room that a short text leaves is zero too. */
static void all_small_texts_stay_different_when_packed(void **state)
{
    (void)state;
    static struct small texts[TEXTS];
    small_texts(texts);
    for (uint32_t i = 0; i < TEXTS; i++) {
        struct packed_text packed = packed_text_of(texts[i].text);
        assert_true(text_equal(packed_text_get(&packed), texts[i].text));
        for (uint32_t j = 0; j < TEXTS; j++) {
            struct packed_text other = packed_text_of(texts[j].text);
            assert_int_equal(packed_text_equal(&packed, &other), i == j);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_small_texts_are_ordered_by_bytes),
        cmocka_unit_test(only_ascii_letters_have_a_case),
        cmocka_unit_test(the_nearest_name_is_the_first_with_the_least_edit_distance),
        cmocka_unit_test(typing_errors_are_recognised_and_strangers_are_not),
        cmocka_unit_test(a_text_is_found_where_memmem_finds_it),
        cmocka_unit_test(bytes_of_any_size_are_equal_only_if_all_are),
        cmocka_unit_test(a_packed_text_is_that_text_and_equal_only_to_it),
        cmocka_unit_test(all_small_texts_stay_different_when_packed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
