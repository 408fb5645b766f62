/* SPDX-License-Identifier: Apache-2.0 */
/* test_temp_file.c - what is written to a temporary file comes back, and nothing is left behind.
 *
 * Method: files in a folder of the test's own, and a limit on the size of files in place of a full
 * disk.
 */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/file/temp_file.h"
#include "unit/test.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/millrace-temp-XXXXXX");
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder); /* Fails when something is left in it. */
}

static int count_entries(void)
{
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    int count = 0;
    while (readdir(entries) != NULL) {
        count++;
    }
    closedir(entries);
    return count - 2;
}

static void what_was_written_comes_back_and_no_name_is_ever_there(void **state)
{
    (void)state;
    struct error err;
    struct temp_file file;
    assert_int_equal(temp_file_open(folder, &file, &err), STATUS_OK);
    assert_int_equal(count_entries(), 0);
    assert_int_equal(temp_file_append(&file, "millrace", 8, &err), STATUS_OK);
    assert_int_equal(temp_file_append(&file, "wheel", 5, &err), STATUS_OK);
    assert_int_equal(file.size, 13);
    char bytes[7] = "";
    assert_int_equal(temp_file_read(&file, 4, bytes, 6, &err), STATUS_OK);
    assert_string_equal(bytes, "racewh");
    assert_int_equal(count_entries(), 0);
    temp_file_close(&file);
}

static void reading_past_the_end_is_an_error(void **state)
{
    (void)state;
    struct error err;
    struct temp_file file;
    char bytes[8];
    assert_int_equal(temp_file_open(folder, &file, &err), STATUS_OK);
    assert_int_equal(temp_file_append(&file, "abc", 3, &err), STATUS_OK);
    assert_int_equal(temp_file_read(&file, 1, bytes, 3, &err), STATUS_IO);
    assert_non_null(strstr(err.text, folder));
    temp_file_close(&file);
}

static void a_folder_that_is_not_there_is_named(void **state)
{
    (void)state;
    struct error err;
    struct temp_file file;
    assert_int_equal(temp_file_open("/nowhere/at/all", &file, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "/nowhere/at/all"));
    assert_non_null(strstr(err.text, "--temp-dir"));
}

static void a_file_that_may_not_grow_says_what_helps(void **state)
{
    (void)state;
    struct error err;
    struct temp_file file;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    struct rlimit small = {.rlim_cur = 4096, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(temp_file_open(folder, &file, &err), STATUS_OK);
    char bytes[4096] = {0};
    assert_int_equal(temp_file_append(&file, bytes, 4000, &err), STATUS_OK);
    status result = temp_file_append(&file, bytes, 4096, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(result, STATUS_IO);
    assert_non_null(strstr(err.text, "free some space"));
    temp_file_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_written_comes_back_and_no_name_is_ever_there,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(reading_past_the_end_is_an_error, make_folder,
                                        remove_folder),
        cmocka_unit_test(a_folder_that_is_not_there_is_named),
        cmocka_unit_test_setup_teardown(a_file_that_may_not_grow_says_what_helps, make_folder,
                                        remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
