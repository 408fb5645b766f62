/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - what time it is: no result depends on it. */
#ifndef ENGINE_FILE_CLOCK_H
#define ENGINE_FILE_CLOCK_H

#include <stdint.h>

/* Since some moment that stays the same while the machine is up; never goes back, and advances
 * while the machine is suspended, as the clocks of other machines do. Not for waits of the system:
 * see clock.c. */
double clock_seconds(void);
uint64_t clock_ms(void);
/* Since 1970. */
int64_t clock_wall_ms(void);
/* Of all threads of this process, user and system. */
double clock_cpu_seconds(void);

#endif
