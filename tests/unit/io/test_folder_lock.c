/* test_folder_lock.c - a folder has one owner, and none once that process is gone.
 *
 * Method: the lock is taken twice in one process (which is as good as two, since each open has a
 * lock of its own) and by children that end well or are killed.
 */
#include "unit/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/folder_lock.h"

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

static int tear_down(void **state)
{
    (void)state;
    static const char *const names[] = {"a/b/lock", "a/b/pid", "a/b/.pid.part", "a/b", "a"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)remove(in_folder(names[i])); /* What stays makes the next line fail. */
    }
    int result = rmdir(folder);
    arena_done(&arena);
    return result;
}

static void the_folder_is_made_and_has_one_owner(void **state)
{
    (void)state;
    const char *dir = in_folder("a/b");
    struct folder_lock *lock = NULL;
    struct folder_lock *other = NULL;
    struct error err;
    struct text pid;
    char expected[200];
    pid_t holder = 0;
    assert_false(folder_lock_holder(dir, &holder));
    assert_int_equal(folder_lock_open(dir, 0, &lock, &err), STATUS_OK);
    (void)snprintf(expected, sizeof expected, "%ld\n", (long)getpid()); /* Fits. */
    assert_int_equal(file_read_whole(in_folder("a/b/pid"), 100, &arena, &pid, &err), STATUS_OK);
    assert_string_equal(pid.bytes, expected);
    assert_true(folder_lock_holder(dir, &holder));
    assert_int_equal(holder, getpid());

    assert_int_equal(folder_lock_open(dir, 20, &other, &err), STATUS_IO);
    (void)snprintf(expected, sizeof expected, "%s is in use by process %ld", dir, (long)getpid());
    assert_string_equal(err.text, expected);
    assert_int_equal(unlink(in_folder("a/b/pid")), 0);
    assert_int_equal(folder_lock_open(dir, 0, &other, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "is in use by another process"));

    folder_lock_close(lock);
    assert_false(file_exists(in_folder("a/b/pid")));
    assert_false(folder_lock_holder(dir, &holder));
    assert_int_equal(folder_lock_open(dir, 0, &lock, &err), STATUS_OK);
    folder_lock_close(lock);
    folder_lock_close(NULL);
}

static void a_killed_process_leaves_the_folder_free(void **state)
{
    (void)state;
    const char *dir = in_folder("a/b");
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    struct folder_lock *lock = NULL;
    struct error err;
    if (child == 0) {
        if (folder_lock_open(dir, 0, &lock, &err) != STATUS_OK) _exit(1);
        if (write(ready[1], "x", 1) != 1) _exit(2);
        for (;;) {
            (void)pause(); /* Until killed. */
        }
    }
    char byte;
    pid_t holder = 0;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_true(folder_lock_holder(dir, &holder));
    assert_int_equal(holder, child);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(folder_lock_open(dir, 5000, &lock, &err), STATUS_OK); /* Waits for it. */
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(folder_lock_holder(dir, &holder));
    assert_int_equal(holder, getpid());
    folder_lock_close(lock);
    assert_int_equal(close(ready[0]), 0);
    assert_int_equal(close(ready[1]), 0);
}

static void a_stale_or_silly_pid_is_not_believed(void **state)
{
    (void)state;
    const char *dir = in_folder("a/b");
    struct folder_lock *lock = NULL;
    struct folder_lock *other = NULL;
    struct error err;
    pid_t holder = 0;
    static const char *const texts[] = {"", "\n", "x\n", "-5\n", "0\n", "12", "99999999999999\n"};
    assert_int_equal(folder_lock_open(dir, 0, &lock, &err), STATUS_OK);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        FILE *file = fopen(in_folder("a/b/pid"), "w");
        assert_non_null(file);
        assert_true(fputs(texts[i], file) >= 0);
        assert_int_equal(fclose(file), 0);
        assert_false(folder_lock_holder(dir, &holder));
        assert_int_equal(folder_lock_open(dir, 0, &other, &err), STATUS_IO);
        assert_non_null(strstr(err.text, "another process"));
    }
    folder_lock_close(lock);
    FILE *file = fopen(in_folder("a/b/pid"), "w"); /* As a killed process leaves it. */
    assert_non_null(file);
    assert_true(fputs("1\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_false(folder_lock_holder(dir, &holder));
}

static void failures_name_the_folder(void **state)
{
    (void)state;
    struct folder_lock *lock = NULL;
    struct error err;
    char longest[5000];
    pid_t holder = 0;
    assert_int_equal(folder_lock_open("/dev/null/x", 0, &lock, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "/dev/null"));
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(folder_lock_open(longest, 0, &lock, &err), STATUS_IO);
    assert_false(folder_lock_holder(longest, &holder));
    const char *dir = in_folder("a/b");
    memory_fail_after(0);
    status result = folder_lock_open(dir, 0, &lock, &err);
    memory_fail_never();
    assert_int_equal(result, STATUS_MEMORY);
    assert_false(folder_lock_holder(dir, &holder)); /* It was let go. */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_folder_is_made_and_has_one_owner),
        TEST(a_killed_process_leaves_the_folder_free),
        TEST(a_stale_or_silly_pid_is_not_believed),
        TEST(failures_name_the_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
