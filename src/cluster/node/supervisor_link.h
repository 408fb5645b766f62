/* supervisor_link.h - ends a node when whoever it was started for is gone.
 *
 * A node started by `up`, or by a monitor of its cluster, runs detached; so that nothing is left
 * behind however `up` ends, it looks once a second whether somebody still holds the lock of `up`'s
 * folder. Nobody does, twice in a row: the node is to end, soon. That the folder could not be
 * looked at says nothing.
 *
 * Threads: one owner.
 */
#ifndef CLUSTER_NODE_SUPERVISOR_LINK_H
#define CLUSTER_NODE_SUPERVISOR_LINK_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SUPERVISOR_LINK_LOOK_MS = 1000,
    SUPERVISOR_LINK_STOP_MS = 2000, /* How long things may take once it is lost. */
    SUPERVISOR_LINK_KILL_MS =
        SUPERVISOR_LINK_STOP_MS + 5000 /* Whoever has not ended by then hangs. */
};

struct supervisor_link {
    const char *folder; /* NULL: there is none. */
    uint64_t look_ms;   /* When to look again. */
    bool was_free;      /* When it was last looked at. */
    bool is_lost;       /* For good, */
    uint64_t lost_ms;   /* since then. */
};

/* Looks if it is time to; whether it is lost. */
bool supervisor_link_look(struct supervisor_link *supervisor_link, uint64_t now_ms);
/* Whether it has been lost for so long that the process is to be killed. */
bool supervisor_link_is_overdue(const struct supervisor_link *supervisor_link, uint64_t now_ms);

#endif
