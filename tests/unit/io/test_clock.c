/* test_clock.c - clocks go forward, and say the same in seconds and in milliseconds.
 *
 * Method: what is read twice is compared with what was read between, and with the system's time.
 */
#include "unit/test.h"

#include <time.h>

#include "io/clock.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(milliseconds_are_those_of_the_seconds),
        cmocka_unit_test(waiting_takes_the_time_it_takes),
        cmocka_unit_test(the_wall_clock_counts_from_1970),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
