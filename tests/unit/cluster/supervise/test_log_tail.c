/* SPDX-License-Identifier: Apache-2.0 */
/* test_log_tail.c - the end of a log is whole lines, and never more than there is room for.
 *
 * Method: logs of every length around the limit, of lines of a known length.
 */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/file/file_tree.h"
#include "cluster/supervise/log_tail.h"

enum { LINE = 10, LINES_MAX = 130, SHOWN_MAX = 1000 };

static char folder[64];
static char path[80];

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/millrace-test-XXXXXX"); /* Fits. */
    if (mkdtemp(folder) == NULL) return -1;
    (void)snprintf(path, sizeof path, "%s/log", folder);
    return 0;
}

static int tear_down(void **state)
{
    struct error err;
    (void)state;
    return file_tree_remove(folder, &err) == STATUS_OK ? 0 : -1;
}

/* Lines are their number in nine digits and an end; the last may lack that. */
static void write_log(uint32_t lines, const char *last)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (uint32_t i = 0; i < lines; i++) {
        assert_int_equal(fprintf(file, "%09u\n", i), LINE);
    }
    assert_true(fputs(last, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void only_whole_lines_are_shown(void **state)
{
    (void)state;
    char out[2048];
    char expected[2048];
    for (uint32_t lines = 1; lines <= LINES_MAX; lines++) {
        write_log(lines, "");
        log_tail(folder, out, sizeof out);
        /* Of a longer log, the first line within reach may have been cut. */
        uint32_t first = lines * LINE > SHOWN_MAX ? lines - SHOWN_MAX / LINE + 1 : 0;
        int size = snprintf(expected, sizeof expected, "\n%s ends with\n", path);
        for (uint32_t i = first; i < lines; i++) {
            size += snprintf(expected + size, sizeof expected - (size_t)size, "%09u\n", i);
        }
        expected[size - 1] = '\0';
        assert_string_equal(out, expected);
    }
}

static void a_last_line_without_an_end_is_shown_too(void **state)
{
    (void)state;
    char out[2048];
    write_log(1, "half");
    log_tail(folder, out, sizeof out);
    assert_non_null(strstr(out, "000000000\nhalf"));
}

static void a_log_that_is_empty_or_missing_is_nothing(void **state)
{
    (void)state;
    char out[64] = "x";
    log_tail(folder, out, sizeof out);
    assert_string_equal(out, "");
    write_log(0, "");
    log_tail(folder, out, sizeof out);
    assert_string_equal(out, "");
    log_tail("/nowhere", out, sizeof out);
    assert_string_equal(out, "");
}

static void what_there_is_no_room_for_is_cut(void **state)
{
    (void)state;
    char whole[2048];
    write_log(LINES_MAX, "");
    log_tail(folder, whole, sizeof whole);
    for (size_t size = 1; size < sizeof whole; size++) {
        char *out = malloc(size); /* So that writing behind it is noticed. */
        assert_non_null(out);
        log_tail(folder, out, size);
        size_t length = strlen(whole) < size ? strlen(whole) : size - 1;
        assert_int_equal(strlen(out), length);
        assert_memory_equal(out, whole, length);
        free(out);
    }
}

static void the_reason_is_that_of_the_last_failure(void **state)
{
    (void)state;
    char out[64] = "x";
    log_reason(folder, out, sizeof out);
    assert_string_equal(out, "");
    write_log(3, "event=started\n");
    log_reason(folder, out, sizeof out);
    assert_string_equal(out, "");
    write_log(3, "level=error event=failed reason=\"first\"\n"
                 "level=error event=failed reason=\"a \"quoted\" word\"\nevent=stopped\n");
    log_reason(folder, out, sizeof out);
    assert_string_equal(out, "a \"quoted\" word");
    for (size_t size = 1; size < sizeof "a \"quoted\" word"; size++) {
        log_reason(folder, out, size);
        assert_int_equal(strlen(out), size - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_whole_lines_are_shown, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_last_line_without_an_end_is_shown_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_log_that_is_empty_or_missing_is_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_there_is_no_room_for_is_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_reason_is_that_of_the_last_failure, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
