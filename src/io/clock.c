/* clock.c - the system's clocks as seconds. */
#include "io/clock.h"

#include <time.h>

static double read_clock(clockid_t clock)
{
    struct timespec time = {0};
    (void)clock_gettime(clock, &time); /* Cannot fail: both clocks are required by POSIX. */
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

double clock_seconds(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

double clock_cpu_seconds(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t clock_ms(void)
{
    struct timespec time = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &time); /* As above. */
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

int64_t clock_wall_ms(void)
{
    struct timespec time = {0};
    (void)clock_gettime(CLOCK_REALTIME, &time); /* As above. */
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}
