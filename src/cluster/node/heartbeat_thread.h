/* heartbeat_thread.h - tells the monitors that this node lives, from a thread of its own.
 *
 *     heartbeat_open -> (heartbeat_progress | heartbeat_state | ...)* -> heartbeat_close
 *
 * The thread beats every period, whatever the main loop does; the main loop says that it turns by
 * heartbeat_progress. So a monitor can tell a dead node (no beats) from a hung one (no progress).
 * The same thread hears orders: to stop (options.stop is called), or to end at once (SIGKILL to
 * ourselves: our main loop hangs). It looks at the leash too, for a main loop that hangs and that
 * no monitor is left to end.
 *
 * A cluster without monitors has no heartbeat: open gives NULL, which all functions accept.
 * Threads: the functions may be called from any; callbacks come from the heartbeat's thread.
 */
#ifndef CLUSTER_NODE_HEARTBEAT_THREAD_H
#define CLUSTER_NODE_HEARTBEAT_THREAD_H

#include "engine/base/error.h"
#include "cluster/config/cluster_config.h"
#include "cluster/node/supervisor_link.h"
#include "cluster/node/node_log.h"
#include "cluster/wire/datagram.h"

struct heartbeat;

struct heartbeat_options {
    const struct cluster_config *config;
    const char *name;
    enum node_role role;
    uint64_t incarnation;
    struct node_log *log; /* May be NULL. */
    struct leash leash;   /* Its folder is borrowed until the end. */
    void *context;
    void (*stop)(void *context);                                    /* An order to stop; once. */
    void (*view)(void *context, const struct view *view);           /* May be NULL. */
    void (*events)(void *context, const struct event_list *events); /* May be NULL. */
};

/* Where to bind a socket that talks to the monitors: on loopback when all of them are, by addresses
 * of one family; NULL: on all addresses. Never waits, so names are not looked up. */
const char *heartbeat_host(const struct cluster_config *config);

/* Reads the cluster's key; starts to beat at once, in state BEAT_STARTING. */
MUST_USE status heartbeat_open(const struct heartbeat_options *options, struct heartbeat **out,
                               struct error *err);
void heartbeat_progress(struct heartbeat *heartbeat);
void heartbeat_state(struct heartbeat *heartbeat, enum beat_state state);
void heartbeat_jobs(struct heartbeat *heartbeat, uint32_t job_count);
void heartbeat_replayed(struct heartbeat *heartbeat, uint64_t record_count);

enum heartbeat_end {
    HEARTBEAT_PLANNED, /* Says farewell, several times, so that nobody starts us again. */
    HEARTBEAT_FAILED   /* Without a word, as a crash: a monitor will start us. */
};
/* The last callback has returned before this does. */
void heartbeat_close(struct heartbeat *heartbeat, enum heartbeat_end end);

#endif
