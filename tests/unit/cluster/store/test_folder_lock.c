/* SPDX-License-Identifier: Apache-2.0 */
/* test_folder_lock.c - a folder has one owner, and none once that process is gone.
 *
 * Method: the lock is taken twice in one process (which is as good as two, since each open has a
 * lock of its own) and by children that end well or are killed. What stands in the locked file is
 * replaced by everything that it must not be believed for.
 */
#include "unit/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/base/memory.h"
#include "engine/file/file.h"
#include "cluster/store/folder_lock.h"

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
    static const char *const names[] = {"a/b/lock", "a/b/pid", "a/b", "a"};
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

static void write_file(const char *name, const char *words)
{
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    assert_true(fputs(words, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* A child that waits to be killed. */
static pid_t start_bystander(void)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0) return child;
    for (;;) {
        (void)pause(); /* Until killed. */
    }
}

static void end_bystander(pid_t child)
{
    assert_int_equal(waitpid(child, NULL, WNOHANG), 0); /* Nobody has done anything to it. */
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void assert_nobody_is_signalled(const char *dir)
{
    enum folder_state found = FOLDER_HELD;
    struct error err;
    pid_t holder = 0;
    assert_int_equal(folder_lock_look(dir, &holder), FOLDER_UNKNOWN);
    assert_false(folder_lock_holder(dir, &holder));
    assert_int_equal(folder_lock_signal(dir, SIGKILL, &found, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "is in use by a process that this host does not know"));
}

static void a_holder_that_is_not_known_is_not_taken_for_another(void **state)
{
    (void)state;
    const char *dir = in_folder("a/b");
    struct folder_lock *lock = NULL;
    struct error err;
    struct text own;
    char words[300];
    pid_t bystander = start_bystander();
    assert_int_equal(folder_lock_open(dir, 0, &lock, &err), STATUS_OK);
    assert_int_equal(file_read_whole(in_folder("a/b/lock"), 200, &arena, &own, &err), STATUS_OK);
    const char *rest = strchr(own.bytes, ' ');
    assert_non_null(rest);

    static const char *const silly[] = {
        "",           "\n",    "x\n",     "-5 1 1 a\n", "0 1 1 a\n",  "1 1 1",
        "1 1 1 a\nb", "1 1\n", "1 1 1\n", "1 x 1 a\n",  "1 1 -1 a\n", "99999999999 1 1 a\n"};
    for (size_t i = 0; i < sizeof silly / sizeof silly[0]; i++) {
        write_file("a/b/lock", silly[i]);
        assert_nobody_is_signalled(dir);
    }
    /* A number that was given to another since, and one that nobody has. */
    uint64_t start = strtoull(rest, NULL, 10);
    const char *after = strchr(rest + 1, ' ');
    (void)snprintf(words, sizeof words, "%ld %llu%s", (long)bystander,
                   (unsigned long long)start + 100000, after);
    write_file("a/b/lock", words);
    assert_nobody_is_signalled(dir);
    (void)snprintf(words, sizeof words, "%d%s", 0x3ffffff, rest);
    write_file("a/b/lock", words);
    assert_nobody_is_signalled(dir);
    /* Another boot, and another namespace of processes. */
    (void)snprintf(words, sizeof words, "%s", own.bytes);
    words[strlen(words) - 2] ^= 1;
    write_file("a/b/lock", words);
    assert_nobody_is_signalled(dir);
    (void)snprintf(words, sizeof words, "%ld %llu 7%s", (long)getpid(), (unsigned long long)start,
                   strchr(after + 1, ' '));
    write_file("a/b/lock", words);
    assert_nobody_is_signalled(dir);

    enum folder_state found = FOLDER_FREE;
    write_file("a/b/lock", own.bytes);
    assert_int_equal(folder_lock_signal(dir, 0, &found, &err), STATUS_OK);
    assert_int_equal(found, FOLDER_HELD);
    folder_lock_close(lock);
    write_file("a/b/lock", own.bytes); /* As a killed process leaves it. */
    assert_int_equal(folder_lock_signal(dir, SIGKILL, &found, &err), STATUS_OK);
    assert_int_equal(found, FOLDER_FREE);
    end_bystander(bystander);
}

static void what_a_killed_process_left_says_nothing_about_who_has_it_now(void **state)
{
    (void)state;
    const char *dir = in_folder("a/b");
    struct folder_lock *lock = NULL;
    struct error err;
    char words[32];
    pid_t bystander = start_bystander();
    assert_int_equal(folder_lock_open(dir, 0, &lock, &err), STATUS_OK);
    folder_lock_close(lock);
    (void)snprintf(words, sizeof words, "%ld\n", (long)bystander); /* Fits. */
    write_file("a/b/pid", words);
    int fd = open(in_folder("a/b/lock"), O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0); /* As `flock` of a script does. */
    assert_nobody_is_signalled(dir);
    assert_int_equal(folder_lock_open(dir, 0, &lock, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "is in use by another process"));
    assert_int_equal(close(fd), 0);
    end_bystander(bystander);
}

static void a_folder_that_can_not_be_looked_at_is_not_free(void **state)
{
    (void)state;
    const char *dir = in_folder("a/b");
    struct folder_lock *lock = NULL;
    struct error err;
    struct rlimit limit;
    pid_t holder = 0;
    assert_int_equal(folder_lock_open(dir, 0, &lock, &err), STATUS_OK);
    assert_int_equal(folder_lock_look(dir, &holder), FOLDER_HELD);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    enum folder_state found = folder_lock_look(dir, &holder);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(found, FOLDER_UNKNOWN);
    folder_lock_close(lock);
    assert_int_equal(folder_lock_look(dir, &holder), FOLDER_FREE);
    assert_int_equal(folder_lock_look("/nowhere/at/all", &holder), FOLDER_FREE);
}

static void a_signal_reaches_the_process_that_has_the_folder(void **state)
{
    (void)state;
    const char *dir = in_folder("a/b");
    enum folder_state found = FOLDER_FREE;
    struct folder_lock *lock = NULL;
    struct error err;
    int ready[2];
    int end = 0;
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (folder_lock_open(dir, 0, &lock, &err) != STATUS_OK) _exit(1);
        if (write(ready[1], "x", 1) != 1) _exit(2);
        for (;;) {
            (void)pause(); /* Until killed. */
        }
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(folder_lock_signal(dir, SIGTERM, &found, &err), STATUS_OK);
    assert_int_equal(found, FOLDER_HELD);
    assert_int_equal(waitpid(child, &end, 0), child);
    assert_true(WIFSIGNALED(end) && WTERMSIG(end) == SIGTERM);
    assert_int_equal(folder_lock_signal(dir, SIGTERM, &found, &err), STATUS_OK);
    assert_int_equal(found, FOLDER_FREE);
    assert_int_equal(close(ready[0]), 0);
    assert_int_equal(close(ready[1]), 0);
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
        TEST(a_holder_that_is_not_known_is_not_taken_for_another),
        TEST(what_a_killed_process_left_says_nothing_about_who_has_it_now),
        TEST(a_folder_that_can_not_be_looked_at_is_not_free),
        TEST(a_signal_reaches_the_process_that_has_the_folder),
        TEST(failures_name_the_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
