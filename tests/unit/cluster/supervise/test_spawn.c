/* SPDX-License-Identifier: Apache-2.0 */
/* test_spawn.c - children start with what they were given and nothing else, and always end.
 *
 * Method: small shell scripts say through a pipe or a file what they see: descriptors, signals,
 * folder, environment, process group. Others refuse to stop, or leave children of their own.
 */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/file/clock.h"
#include "cluster/supervise/spawn.h"

enum { LONG_MS = 20000 };

/* All that comes out of a pipe until its end. */
static const char *read_all(int fd)
{
    static char text[4096];
    size_t size = 0;
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&wait, 1, (int)scaled_ms(LONG_MS)), 1);
        ssize_t count = read(fd, text + size, sizeof text - 1 - size);
        assert_true(count >= 0);
        if (count == 0) break;
        size += (size_t)count;
    }
    text[size] = '\0';
    return text;
}

/* Up to the first line's end. */
static void read_line(int fd, char *out, size_t limit)
{
    size_t size = 0;
    while (size == 0 || out[size - 1] != '\n') {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&wait, 1, (int)scaled_ms(LONG_MS)), 1);
        assert_true(size + 1 < limit);
        assert_int_equal(read(fd, out + size, 1), 1);
        size++;
    }
    out[size - 1] = '\0';
}

static void wait_for_end(struct spawn *child)
{
    double deadline = clock_seconds() + scaled_ms(LONG_MS) / 1000.0;
    while (!spawn_poll(child)) {
        assert_true(clock_seconds() < deadline);
        (void)poll(NULL, 0, 2); /* Looks again soon. */
    }
}

static struct spawn start_shell(const char *script, struct spawn_options options)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    struct spawn child;
    struct error err;
    options.argv = argv;
    assert_int_equal(spawn_start(&child, options, &err), STATUS_OK);
    return child;
}

static const struct spawn_options piped = {.out = {SPAWN_PIPE, NULL}, .err = {SPAWN_NULL, NULL}};

static void expect_output(const char *script, struct spawn_options options, const char *expected)
{
    struct spawn child = start_shell(script, options);
    assert_string_equal(read_all(child.out_fd), expected);
    wait_for_end(&child);
    spawn_close(&child);
}

static void the_end_is_told_without_waiting(void **state)
{
    (void)state;
    struct spawn child = start_shell("exit 7", piped);
    wait_for_end(&child);
    assert_int_equal(child.end.code, 7);
    assert_int_equal(child.end.signal, 0);
    assert_true(spawn_poll(&child));
    spawn_signal(&child, SIGKILL); /* Nobody is hit. */
    spawn_stop(&child, scaled_ms(1000));
    spawn_close(&child);

    child = start_shell("kill -9 $$", piped);
    wait_for_end(&child);
    assert_int_equal(child.end.code, -1);
    assert_int_equal(child.end.signal, SIGKILL);
    spawn_close(&child);

    child = start_shell("exec sleep 100", piped);
    assert_false(spawn_poll(&child));
    spawn_signal(&child, SIGUSR1);
    wait_for_end(&child);
    assert_int_equal(child.end.signal, SIGUSR1);
    spawn_close(&child);
    spawn_close(&(struct spawn){0});
}

static void a_program_that_cannot_be_started_is_named(void **state)
{
    (void)state;
    static const char *const missing[] = {"no-such-program", NULL};
    static const char *const folder[] = {"/", NULL};
    static const char *const good[] = {"true", NULL};
    struct spawn child;
    struct error err;
    assert_int_equal(spawn_start(&child, (struct spawn_options){.argv = missing}, &err), STATUS_IO);
    assert_string_equal(err.text, "cannot start no-such-program: No such file or directory");
    assert_int_equal(spawn_start(&child, (struct spawn_options){.argv = folder}, &err), STATUS_IO);
    assert_int_equal(
        spawn_start(&child, (struct spawn_options){.argv = good, .folder = "/no/where"}, &err),
        STATUS_IO);
    struct spawn_options options = {.argv = good, .out = {SPAWN_FILE, "/no/where/log"}};
    assert_int_equal(spawn_start(&child, options, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "/no/where/log"));
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* None is left. */
    assert_int_equal(errno, ECHILD);
}

static void the_child_sees_only_what_it_was_given(void **state)
{
    (void)state;
    struct spawn_options options = piped;
    int open_one = open("/dev/null", O_RDONLY); /* As a library might, without O_CLOEXEC. */
    assert_true(open_one > 2);
    expect_output("ls /proc/self/fd | wc -l", options, "4\n"); /* 0, 1, 2 and that of ls. */
    assert_int_equal(close(open_one), 0);
    expect_output("readlink /proc/self/fd/0", options, "/dev/null\n");

    options.folder = "/usr";
    expect_output("pwd", options, "/usr\n");
    static const char *const environment[] = {"PATH=/usr/bin:/bin", "ONE=1", NULL};
    options.environment = environment;
    expect_output("echo \"$ONE $HOME.\"", options, "1 .\n");
}

static void the_child_begins_with_default_signals(void **state)
{
    (void)state;
    sigset_t blocked;
    sigset_t before;
    (void)signal(SIGPIPE, SIG_IGN); /* Cannot fail for this number. */
    assert_int_equal(sigemptyset(&blocked), 0);
    assert_int_equal(sigaddset(&blocked, SIGTERM), 0);
    assert_int_equal(sigprocmask(SIG_BLOCK, &blocked, &before), 0);
    expect_output("grep -E 'Sig(Blk|Ign)' /proc/self/status | tr -d '\\t'", piped,
                  "SigBlk:0000000000000000\nSigIgn:0000000000000000\n");
    assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
    (void)signal(SIGPIPE, SIG_DFL);
}

static void the_child_has_a_group_of_its_own(void **state)
{
    (void)state;
    char line[64];
    struct spawn_options options = piped;
    struct spawn child = start_shell("echo; exec sleep 100", options);
    read_line(child.out_fd, line, sizeof line);
    assert_int_equal(getpgid(child.pid), child.pid);
    assert_int_equal(getsid(child.pid), getsid(0));
    spawn_stop(&child, scaled_ms(LONG_MS));
    spawn_close(&child);

    options.own_session = true;
    child = start_shell("echo; exec sleep 100", options);
    read_line(child.out_fd, line, sizeof line);
    assert_int_equal(getsid(child.pid), child.pid);
    spawn_stop(&child, scaled_ms(LONG_MS));
    assert_int_equal(child.end.signal, SIGTERM);
    spawn_close(&child);
}

static void output_goes_where_it_is_wanted(void **state)
{
    (void)state;
    char path[] = "/tmp/millrace-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    struct spawn_options options = {.out = {SPAWN_FILE, path}, .err = {SPAWN_FILE, path}};
    for (int round = 0; round < 2; round++) { /* The second is appended to the first. */
        struct spawn child = start_shell("echo out; echo err >&2", options);
        assert_int_equal(child.out_fd, -1);
        wait_for_end(&child);
        spawn_close(&child);
    }
    assert_string_equal(read_all(fd), "out\nerr\nout\nerr\n");
    assert_int_equal(close(fd), 0);
    assert_int_equal(unlink(path), 0);

    options = (struct spawn_options){.out = {SPAWN_PIPE, NULL}, .err = {SPAWN_PIPE, NULL}};
    struct spawn child = start_shell("echo out; echo err >&2", options);
    assert_string_equal(read_all(child.out_fd), "out\n");
    assert_string_equal(read_all(child.err_fd), "err\n");
    wait_for_end(&child);
    spawn_close(&child);
}

static void whoever_does_not_stop_is_killed_with_its_children(void **state)
{
    (void)state;
    char line[64];
    struct spawn child =
        start_shell("trap '' TERM; sleep 100 & echo $!; while :; do sleep 0.05; done", piped);
    read_line(child.out_fd, line, sizeof line);
    double begin = clock_seconds();
    spawn_stop(&child, 100);
    assert_true(clock_seconds() - begin >= 0.1);
    assert_true(child.ended);
    assert_int_equal(child.end.signal, SIGKILL);
    assert_string_equal(read_all(child.out_fd), ""); /* Ends only when its children are gone. */
    spawn_close(&child);

    child = start_shell("sleep 100 & echo; exit 3", piped); /* Ended before it is stopped. */
    read_line(child.out_fd, line, sizeof line);
    (void)poll(NULL, 0, 50); /* Most likely; the answer is the same anyway. */
    spawn_stop(&child, scaled_ms(LONG_MS));
    assert_string_equal(read_all(child.out_fd), "");
    spawn_close(&child);

    child = start_shell("trap 'exit 5' TERM; echo; while :; do sleep 0.05; done", piped);
    read_line(child.out_fd, line, sizeof line);
    spawn_signal(&child, SIGSTOP); /* Also one that was stopped ends well. */
    spawn_stop(&child, scaled_ms(LONG_MS));
    assert_int_equal(child.end.code, 5);
    spawn_close(&child);
}

static void a_child_may_die_with_us(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t parent = fork();
    assert_true(parent >= 0);
    if (parent == 0) {
        static const char *const argv[] = {"sleep", "100", NULL};
        struct spawn_options options = {.argv = argv, .dies_with_us = true};
        struct spawn child;
        struct error err;
        /* The child keeps the pipe open, so that its end is seen there. */
        if (dup2(ends[1], STDOUT_FILENO) < 0) _exit(1);
        if (spawn_start(&child, options, &err) != STATUS_OK) _exit(2);
        if (write(ends[1], "x", 1) != 1) _exit(3);
        for (;;) {
            (void)pause(); /* Until killed. */
        }
    }
    char byte;
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(kill(parent, SIGKILL), 0);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    assert_string_equal(read_all(ends[0]), "");
    assert_int_equal(close(ends[0]), 0);
}

static void our_own_closed_descriptors_are_no_obstacle(void **state)
{
    (void)state;
    pid_t middle = fork(); /* Closing them here would silence this test. */
    assert_true(middle >= 0);
    if (middle == 0) {
        static const char *const argv[] = {"sh", "-c", "echo out; echo err >&2", NULL};
        struct spawn_options options = {
            .argv = argv, .out = {SPAWN_PIPE, NULL}, .err = {SPAWN_PIPE, NULL}};
        struct spawn child;
        struct error err;
        char text[10] = "";
        (void)close(0); /* They are open. */
        (void)close(1);
        (void)close(2);
        if (spawn_start(&child, options, &err) != STATUS_OK) _exit(1);
        while (!spawn_poll(&child)) {
            (void)poll(NULL, 0, 2); /* Looks again soon. */
        }
        if (read(child.out_fd, text, 4) != 4 || read(child.err_fd, text + 4, 4) != 4) _exit(2);
        _exit(strcmp(text, "out\nerr\n") == 0 ? 0 : 3);
    }
    int word;
    assert_int_equal(waitpid(middle, &word, 0), middle);
    assert_true(WIFEXITED(word));
    assert_int_equal(WEXITSTATUS(word), 0);
}

static void a_pipe_at_its_end_is_not_waited_for_again(void **state)
{
    (void)state;
    struct spawn child = start_shell("echo last words; exec >&-; sleep 1000", piped);
    struct spawn *const children[] = {&child};
    char text[64] = "";
    size_t size = 0;
    double deadline = clock_seconds() + scaled_ms(LONG_MS) / 1000.0;
    while (child.out_fd >= 0) {
        assert_true(clock_seconds() < deadline);
        spawn_wait(children, 1, scaled_ms(2000));
        size += spawn_read(child.out_fd, text + size, sizeof text - 1 - size);
    }
    assert_string_equal(text, "last words\n");
    uint64_t before_ms = clock_ms();
    spawn_wait(children, 1, 100);
    assert_true(clock_ms() - before_ms >= 99);
    spawn_stop(&child, 0);
    spawn_close(&child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_is_told_without_waiting),
        cmocka_unit_test(a_program_that_cannot_be_started_is_named),
        cmocka_unit_test(the_child_sees_only_what_it_was_given),
        cmocka_unit_test(the_child_begins_with_default_signals),
        cmocka_unit_test(the_child_has_a_group_of_its_own),
        cmocka_unit_test(output_goes_where_it_is_wanted),
        cmocka_unit_test(whoever_does_not_stop_is_killed_with_its_children),
        cmocka_unit_test(a_child_may_die_with_us),
        cmocka_unit_test(a_pipe_at_its_end_is_not_waited_for_again),
        cmocka_unit_test(our_own_closed_descriptors_are_no_obstacle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
