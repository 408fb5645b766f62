/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - one line on a terminal that says how far the work is: rewritten at most ten times a
 * second, gone at the end.
 *
 * Threads: one at a time.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

struct progress {
    bool enabled; /* Off: all calls do nothing. */
    bool visible;
    uint32_t width;
    double start_seconds;
    double shown_seconds;
    const char *verb;
};

/* Off when stderr is no terminal that can erase a line. */
void progress_start(struct progress *progress, const char *verb);
/* A total of 0 is not known. */
void progress_update(struct progress *progress, uint64_t done_bytes, uint64_t total_bytes);
/* A bar for a share of 0 to 1, and words; with less room, the percentage and words. They are cut to
 * the line. A share below 0 is not known, and not shown. */
void progress_show(struct progress *progress, double share, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* Takes the line away; the next update brings it back. */
void progress_clear(struct progress *progress);

#endif
