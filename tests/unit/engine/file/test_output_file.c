/* SPDX-License-Identifier: Apache-2.0 */
/* test_output_file.c - a file is either as it was or whole, whenever its making ends.
 *
 * Method: a file is written over an old one and given up after every step of the call order; what
 * the folder holds is compared with what it must hold then. Writes are made to fail through
 * /dev/full, a pipe without a reader, a full pipe and a limit on the size of files.
 */
#include "unit/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/file/file.h"
#include "engine/file/output_file.h"

static char folder[64];
static struct arena arena;

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/millrace-test-XXXXXX"); /* Fits. */
    arena = (struct arena){0};
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static const char *in_folder(const char *name)
{
    const char *path = file_path(folder, text_of(name), &arena);
    assert_non_null(path);
    return path;
}

static uint32_t list(struct file_entry **out_entries)
{
    uint32_t count = 0;
    struct error err;
    assert_int_equal(file_list(folder, &arena, out_entries, &count, &err), STATUS_OK);
    return count;
}

static int tear_down(void **state)
{
    (void)state;
    struct file_entry *entries = NULL;
    uint32_t count = list(&entries);
    for (uint32_t i = 0; i < count; i++) {
        (void)remove(in_folder(entries[i].name.bytes)); /* What stays makes the next line fail. */
    }
    int result = rmdir(folder);
    arena_done(&arena);
    return result;
}

static void expect_content(const char *path, const char *expected)
{
    struct text content;
    struct error err;
    assert_int_equal(file_read_whole(path, 1000, &arena, &content, &err), STATUS_OK);
    assert_string_equal(content.bytes, expected);
}

static void make_old(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("old", file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void the_old_file_stays_until_the_new_one_is_published(void **state)
{
    (void)state;
    enum { STEPS = 5 };
    const char *path = in_folder("answer.csv");
    for (int steps = 0; steps <= STEPS; steps++) {
        struct output_file file = {0};
        struct file_entry *entries = NULL;
        struct error err;
        make_old(path);
        if (steps > 0) assert_int_equal(output_file_create(&file, path, &arena, &err), STATUS_OK);
        if (steps > 1) assert_int_equal(output_file_write(&file, "n", 1, NULL, &err), STATUS_OK);
        if (steps > 2) assert_int_equal(output_file_write(&file, "ew", 2, NULL, &err), STATUS_OK);
        if (steps > 3) assert_int_equal(output_file_seal(&file, &err), STATUS_OK);
        if (steps > 0) {
            expect_content(path, "old");
            assert_int_equal(list(&entries), 2);
            assert_int_equal(entries[0].name.bytes[0], '.'); /* Nobody takes it for an answer. */
        }
        if (steps > 4) assert_int_equal(output_file_publish(&file, &err), STATUS_OK);
        output_file_discard(&file);
        assert_int_equal(list(&entries), 1);
        expect_content(path, steps == STEPS ? "new" : "old");
    }
}

static void what_an_earlier_process_left_is_no_obstacle(void **state)
{
    (void)state;
    const char *path = in_folder("answer.csv");
    const char *precious = in_folder("precious");
    char name[64];
    struct output_file file;
    struct error err;
    (void)snprintf(name, sizeof name, ".answer.csv.%ld.part", (long)getpid()); /* Fits. */
    make_old(precious);
    assert_int_equal(symlink(precious, in_folder(name)), 0);
    assert_int_equal(output_file_create(&file, path, &arena, &err), STATUS_OK);
    assert_int_equal(output_file_write(&file, "new", 3, NULL, &err), STATUS_OK);
    assert_int_equal(output_file_seal(&file, &err), STATUS_OK);
    assert_int_equal(output_file_publish(&file, &err), STATUS_OK);
    expect_content(path, "new");
    expect_content(precious, "old");
}

static void failures_name_the_file(void **state)
{
    (void)state;
    struct output_file file;
    struct error err;
    const char *nowhere = in_folder("no/where");
    assert_int_equal(output_file_create(&file, nowhere, &arena, &err), STATUS_IO);
    assert_non_null(strstr(err.text, nowhere));
    output_file_discard(&file);

    const char *path = in_folder("answer.csv");
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit limit = {.rlim_cur = 10, .rlim_max = before.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN); /* Cannot fail for this number. */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    char bytes[100] = {0};
    assert_int_equal(output_file_create(&file, path, &arena, &err), STATUS_OK);
    status result = output_file_write(&file, bytes, sizeof bytes, NULL, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(result, STATUS_IO);
    assert_non_null(strstr(err.text, path));
    output_file_discard(&file);
    struct file_entry *entries = NULL;
    assert_int_equal(list(&entries), 0);
}

static void writing_tells_a_full_device_from_a_reader_that_is_gone(void **state)
{
    (void)state;
    struct error err;
    int full = open("/dev/full", O_WRONLY);
    assert_true(full >= 0);
    assert_int_equal(file_write(full, "to stdout", "x", 1, NULL, &err), STATUS_IO);
    assert_string_equal(err.text, "cannot write to stdout: No space left on device");
    assert_int_equal(close(full), 0);

    int ends[2];
    assert_int_equal(pipe(ends), 0);
    (void)signal(SIGPIPE, SIG_IGN); /* Cannot fail for this number. */
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(file_write(ends[1], "to stdout", "x", 1, NULL, &err), STATUS_CANCELLED);
    assert_int_equal(close(ends[1]), 0);
}

static void a_full_pipe_is_waited_for_until_somebody_asks_to_stop(void **state)
{
    (void)state;
    static const char bytes[1 << 20];
    struct error err;
    int ends[2];
    atomic_bool cancelled = true;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(file_write(ends[1], "to stdout", bytes, sizeof bytes, &cancelled, &err),
                     STATUS_CANCELLED);
    assert_string_equal(err.text, "interrupted");
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
}

static void folders_are_made_once_and_removed_when_empty(void **state)
{
    (void)state;
    struct error err;
    bool made = false;
    const char *path = in_folder("results");
    assert_false(file_exists(path));
    assert_int_equal(file_make_folder(path, &made, &err), STATUS_OK);
    assert_true(made && file_exists(path) && file_is_folder(path));
    assert_int_equal(file_make_folder(path, &made, &err), STATUS_OK);
    assert_false(made);
    file_sync_folder(path);
    file_remove_folder(path);
    assert_false(file_exists(path));

    make_old(path);
    assert_false(file_is_folder(path));
    assert_int_equal(file_make_folder(path, &made, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "Not a directory"));
    assert_int_equal(file_make_folder(in_folder("no/where"), &made, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "No such file"));
    file_sync_folder(in_folder("no"));
}

static void a_whole_file_is_replaced_at_once(void **state)
{
    (void)state;
    struct error err;
    struct stat info;
    const char *path = in_folder("results");
    make_old(path);
    assert_int_equal(output_file_replace(path, OUTPUT_PRIVATE, TEXT_LITERAL("new"), &err),
                     STATUS_OK);
    expect_content(path, "new");
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(
        output_file_replace(in_folder("no/file"), OUTPUT_PUBLIC, TEXT_LITERAL("new"), &err),
        STATUS_IO);
    assert_non_null(strstr(err.text, "no/file"));
}

static void folders_are_made_on_the_way_to_a_path(void **state)
{
    (void)state;
    struct error err;
    char path[5000];
    assert_int_equal(file_make_parents(in_folder("results/a//b"), &err), STATUS_OK);
    assert_true(file_is_folder(in_folder("results/a")));
    assert_false(file_exists(in_folder("results/a/b")));
    assert_int_equal(file_make_folders(in_folder("results/a/b/"), &err), STATUS_OK);
    assert_int_equal(file_make_folders(in_folder("results/a/b"), &err), STATUS_OK);
    assert_true(file_is_folder(in_folder("results/a/b")));
    file_remove_folder(in_folder("results/a/b"));
    file_remove_folder(in_folder("results/a"));
    file_remove_folder(in_folder("results"));

    make_old(in_folder("results"));
    assert_int_equal(file_make_folders(in_folder("results/a"), &err), STATUS_IO);
    assert_non_null(strstr(err.text, "Not a directory"));
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_int_equal(file_make_parents(path, &err), STATUS_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_old_file_stays_until_the_new_one_is_published, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_an_earlier_process_left_is_no_obstacle, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(failures_name_the_file, set_up, tear_down),
        cmocka_unit_test(writing_tells_a_full_device_from_a_reader_that_is_gone),
        cmocka_unit_test(a_full_pipe_is_waited_for_until_somebody_asks_to_stop),
        cmocka_unit_test_setup_teardown(a_whole_file_is_replaced_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(folders_are_made_on_the_way_to_a_path, set_up, tear_down),
        cmocka_unit_test_setup_teardown(folders_are_made_once_and_removed_when_empty, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
