/* clock.h - what time it is, for measuring only: no result depends on it. */
#ifndef IO_CLOCK_H
#define IO_CLOCK_H

/* Since some moment that stays the same while the machine is up; never goes back. */
double clock_seconds(void);
/* Of all threads of this process, user and system. */
double clock_cpu_seconds(void);

#endif
