/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - the system's clocks as seconds.
 *
 * The steady one (CLOCK_BOOTTIME) advances while a machine is suspended: a lease that expired
 * meanwhile has expired for the others, and a process that wakes has to know it. Waits of the
 * system are by CLOCK_MONOTONIC, which does not, so a moment of this clock is never handed to one
 * of them: what is left of it is.
 */
#include "engine/file/clock.h"

#include <time.h>

static struct timespec read_clock(clockid_t clock)
{
    struct timespec time = {0};
    (void)clock_gettime(clock, &time); /* Cannot fail: all but the next are required by POSIX. */
    return time;
}

static struct timespec read_steady(void)
{
    struct timespec time = {0};
    if (clock_gettime(CLOCK_BOOTTIME, &time) == 0) return time;
    return read_clock(CLOCK_MONOTONIC);
}

static double seconds_of(struct timespec time)
{
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

double clock_seconds(void)
{
    return seconds_of(read_steady());
}

double clock_cpu_seconds(void)
{
    return seconds_of(read_clock(CLOCK_PROCESS_CPUTIME_ID));
}

uint64_t clock_ms(void)
{
    struct timespec time = read_steady();
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

int64_t clock_wall_ms(void)
{
    struct timespec time = read_clock(CLOCK_REALTIME);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}
