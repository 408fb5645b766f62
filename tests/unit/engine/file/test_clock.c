/* SPDX-License-Identifier: Apache-2.0 */
/* test_clock.c - clocks go forward, and say the same in seconds and in milliseconds.
 *
 * Method: what is read twice is compared with what was read between, and with the system's time. A
 * machine that was suspended is a child whose boot was another, as the kernel has it tell.
 */
#include "unit/test.h"

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/file/clock.h"

static void milliseconds_are_those_of_the_seconds(void **state)
{
    (void)state;
    for (int round = 0; round < 1000; round++) {
        double before = clock_seconds();
        uint64_t between_ms = clock_ms();
        double after = clock_seconds();
        assert_true(before <= after);
        assert_true(between_ms + 1 >= (uint64_t)(before * 1000));
        assert_true(between_ms <= (uint64_t)(after * 1000) + 1);
    }
}

static void waiting_takes_the_time_it_takes(void **state)
{
    (void)state;
    const struct timespec wait = {.tv_nsec = 20 * 1000000};
    double cpu_before = clock_cpu_seconds();
    uint64_t before_ms = clock_ms();
    assert_int_equal(clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL), 0);
    uint64_t waited_ms = clock_ms() - before_ms;
    assert_true(waited_ms >= 19);
    /* Waiting is no work. */
    assert_true(clock_cpu_seconds() >= cpu_before);
    assert_true(clock_cpu_seconds() - cpu_before <= (double)(waited_ms + 1) / 1000);
}

static void the_wall_clock_counts_from_1970(void **state)
{
    (void)state;
    time_t before = time(NULL);
    int64_t between_ms = clock_wall_ms();
    time_t after = time(NULL);
    /* time() may be a tick behind. */
    assert_true(between_ms / 1000 >= before);
    assert_true(between_ms / 1000 <= after + 1);
}

/* Only root may. */
static bool sleep_as_machine(int seconds)
{
    char line[64];
    int size = snprintf(line, sizeof line, "boottime %d 0\n", seconds);
    if (unshare(CLONE_NEWTIME) != 0) return false;
    int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    bool is_done = write(fd, line, (size_t)size) == size;
    return close(fd) == 0 && is_done;
}

static void time_passes_while_a_machine_is_suspended(void **state)
{
    (void)state;
    enum { AWOKEN = 0, STUCK = 1, NOT_ALLOWED = 2, SUSPENDED_S = 1000 };
    uint64_t before_ms = clock_ms();
    pid_t pid = fork();
    if (pid == 0) {
        if (!sleep_as_machine(SUSPENDED_S)) _exit(NOT_ALLOWED);
        pid_t inner = fork(); /* Those who are born from now on are in it. */
        if (inner == 0) _exit(clock_ms() - before_ms >= SUSPENDED_S * 1000 ? AWOKEN : STUCK);
        int word = 0;
        _exit(waitpid(inner, &word, 0) == inner && WIFEXITED(word) ? WEXITSTATUS(word) : STUCK);
    }
    int word = 0;
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &word, 0), pid);
    assert_true(WIFEXITED(word));
    if (WEXITSTATUS(word) == NOT_ALLOWED) skip();
    assert_int_equal(WEXITSTATUS(word), AWOKEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(milliseconds_are_those_of_the_seconds),
        cmocka_unit_test(waiting_takes_the_time_it_takes),
        cmocka_unit_test(time_passes_while_a_machine_is_suspended),
        cmocka_unit_test(the_wall_clock_counts_from_1970),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
