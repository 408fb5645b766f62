/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor_link.h - a node exits with its supervisor.
 *
 * A node that `up` or a monitor of its cluster started runs in its own session. So that none
 * outlives `up`, however that ends, each checks once a second whether a process holds the lock of
 * `up`'s folder. If none does, twice in a row, the node stops. A folder that cannot be checked
 * means nothing.
 *
 * Threads: one owner.
 */
#ifndef CLUSTER_NODE_SUPERVISOR_LINK_H
#define CLUSTER_NODE_SUPERVISOR_LINK_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SUPERVISOR_LINK_LOOK_MS = 1000,
    SUPERVISOR_LINK_STOP_MS = 2000, /* To finish work in flight once the link is lost. */
    SUPERVISOR_LINK_KILL_MS =
        SUPERVISOR_LINK_STOP_MS + 5000 /* A node that has not ended by then hangs. */
};

struct supervisor_link {
    const char *folder; /* NULL: no supervisor. */
    uint64_t look_ms;   /* Time of the next check. */
    bool was_free;      /* At the last check. */
    bool is_lost;       /* The supervisor has ended. Never becomes false again. */
    uint64_t lost_ms;   /* When that was noticed. */
};

/* Checks once a second; whether the link is lost. */
bool supervisor_link_look(struct supervisor_link *supervisor_link, uint64_t now_ms);
/* Whether it has been lost for so long that the process is to be killed. */
bool supervisor_link_is_overdue(const struct supervisor_link *supervisor_link, uint64_t now_ms);

#endif
