/* SPDX-License-Identifier: Apache-2.0 */
/* test_error.c - a text of any length is cut at the limit and stays a string.
 *
 * Method: texts and prefixes of every length around the limit, against strncpy's idea of cutting.
 */
#include "unit/test.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"

enum { LONG = ERROR_TEXT_SIZE + 100 };

static const char *repeat(char *out, char letter, size_t count)
{
    memset(out, letter, count);
    out[count] = '\0';
    return out;
}

/* Nothing may be written behind the text. */
struct guarded {
    struct error err;
    char guard[16];
};

static void texts_of_every_length_are_cut_at_the_limit(void **state)
{
    (void)state;
    char text[LONG];
    for (size_t size = 0; size < LONG - 1; size += size < 16 || size > 2000 ? 1 : 100) {
        struct guarded guarded = {.guard = "untouched"};
        status code = error_set(&guarded.err, STATUS_INPUT, "%s", repeat(text, 'x', size));
        assert_int_equal(code, STATUS_INPUT);
        assert_int_equal(guarded.err.code, STATUS_INPUT);
        size_t expected = size < ERROR_TEXT_SIZE ? size : ERROR_TEXT_SIZE - 1;
        assert_int_equal(strlen(guarded.err.text), expected);
        assert_memory_equal(guarded.err.text, text, expected);
        assert_string_equal(guarded.guard, "untouched");
    }
}

static void a_prefix_stands_before_as_much_as_fits(void **state)
{
    (void)state;
    char prefix[LONG];
    char text[LONG];
    char whole[2 * LONG + 3];
    for (size_t first = 0; first < LONG - 1; first += first < 4 || first > 2030 ? 1 : 97) {
        for (size_t second = 0; second<ERROR_TEXT_SIZE; second += second> 2030 ? 1 : 113) {
            struct guarded guarded = {.guard = "untouched"};
            (void)error_set(&guarded.err, STATUS_IO, "%s", repeat(text, 't', second));
            status code = error_prefix(&guarded.err, "%s", repeat(prefix, 'p', first));
            assert_int_equal(code, STATUS_IO);
            assert_int_equal(guarded.err.code, STATUS_IO);
            (void)snprintf(whole, sizeof whole, "%s: %s", prefix, text);
            size_t size = strnlen(guarded.err.text, ERROR_TEXT_SIZE);
            assert_true(size < ERROR_TEXT_SIZE);
            assert_memory_equal(guarded.err.text, whole, size);
            /* The separator itself is not cut in two. */
            assert_true(size == strlen(whole) || size >= ERROR_TEXT_SIZE - 4);
            assert_string_equal(guarded.guard, "untouched");
        }
    }
}

static status fail_if(int wanted, struct error *err)
{
    if (wanted != 0) return error_set(err, STATUS_LIMIT, "number %d", wanted);
    return STATUS_OK;
}

static status try_both(int first, int second, struct error *err)
{
    TRY(fail_if(first, err));
    TRY(fail_if(second, err));
    return STATUS_OK;
}

static void try_passes_the_first_failure_up(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        for (int second = 0; second < 3; second += 2) {
            struct error err = {.text = "nothing"};
            status code = try_both(first, second, &err);
            assert_int_equal(code, first != 0 || second != 0 ? STATUS_LIMIT : STATUS_OK);
            const char *expected = second != 0 ? "number 2" : "nothing";
            assert_string_equal(err.text, first != 0 ? "number 1" : expected);
        }
    }
}

static void every_status_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (unsigned i = 0; i < STATUS_NAMES; i++) {
        assert_true(strlen(status_name((status)i)) > 0);
        for (unsigned other = 0; other < i; other++) {
            assert_string_not_equal(status_name((status)i), status_name((status)other));
        }
    }
    assert_string_equal(status_name((status)STATUS_NAMES), "internal");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_every_length_are_cut_at_the_limit),
        cmocka_unit_test(a_prefix_stands_before_as_much_as_fits),
        cmocka_unit_test(try_passes_the_first_failure_up),
        cmocka_unit_test(every_status_has_a_name_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
