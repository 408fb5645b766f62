/* SPDX-License-Identifier: Apache-2.0 */
/* backoff.h - how long to wait before a process that has ended is restarted.
 *
 * Exponential: 0.2 s, doubling to 5 s with each short incarnation; one of ten seconds resets it. No
 * jitter, since the processes of one supervisor do not compete for a common resource.
 */
#ifndef CLUSTER_SUPERVISE_BACKOFF_H
#define CLUSTER_SUPERVISE_BACKOFF_H

#include <stdint.h>

enum { BACKOFF_FIRST_MS = 200, BACKOFF_MAX_MS = 5000, BACKOFF_UPTIME_MS = 10000 };

struct backoff {
    uint32_t wait_ms; /* The last one; 0: none yet. */
};

static inline uint32_t backoff_next(struct backoff *backoff, uint64_t lived_ms)
{
    if (backoff->wait_ms == 0 || lived_ms >= BACKOFF_UPTIME_MS) {
        backoff->wait_ms = BACKOFF_FIRST_MS;
    } else {
        uint32_t twice = 2 * backoff->wait_ms;
        backoff->wait_ms = twice < BACKOFF_MAX_MS ? twice : BACKOFF_MAX_MS;
    }
    return backoff->wait_ms;
}

#endif
