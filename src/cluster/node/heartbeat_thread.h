/* heartbeat_thread.h - tells the monitors that this node lives, from a thread of its own.
 *
 *     heartbeat_thread_open -> (heartbeat_thread_progress | heartbeat_thread_state | ...)* ->
 * heartbeat_thread_close
 *
 * The thread heartbeats every period, whatever the main loop does; the main loop says that it turns
 * by heartbeat_thread_progress. So a monitor can tell a dead node (no heartbeats) from a hung one
 * (no progress). The same thread hears orders: to stop (options.stop is called), or to end at once
 * (SIGKILL to ourselves: our main loop hangs). It looks at the supervisor link too, for a main loop
 * that hangs and that no monitor is left to end.
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

struct heartbeat_thread;

struct heartbeat_thread_options {
    const struct cluster_config *config;
    const char *name;
    enum node_role role;
    uint64_t incarnation;
    struct node_log *log;                   /* May be NULL. */
    struct supervisor_link supervisor_link; /* Its folder is borrowed until the end. */
    void *context;
    void (*stop)(void *context);                                    /* An order to stop; once. */
    void (*view)(void *context, const struct view *view);           /* May be NULL. */
    void (*events)(void *context, const struct event_list *events); /* May be NULL. */
};

/* Where to bind a socket that talks to the monitors: on loopback when all of them are, by addresses
 * of one family; NULL: on all addresses. Never waits, so names are not looked up. */
const char *heartbeat_thread_host(const struct cluster_config *config);

/* Reads the cluster's key; starts to heartbeat at once, in state BEAT_STARTING. */
MUST_USE status heartbeat_thread_open(const struct heartbeat_thread_options *options,
                                      struct heartbeat_thread **out, struct error *err);
void heartbeat_thread_progress(struct heartbeat_thread *heartbeat_thread);
void heartbeat_thread_state(struct heartbeat_thread *heartbeat_thread, enum heartbeat_state state);
void heartbeat_thread_jobs(struct heartbeat_thread *heartbeat_thread, uint32_t job_count);
void heartbeat_thread_replayed(struct heartbeat_thread *heartbeat_thread, uint64_t record_count);

enum heartbeat_thread_end {
    HEARTBEAT_THREAD_PLANNED, /* Says farewell, several times, so that nobody starts us again. */
    HEARTBEAT_THREAD_FAILED   /* Without a word, as a crash: a monitor will start us. */
};
/* The last callback has returned before this does. */
void heartbeat_thread_close(struct heartbeat_thread *heartbeat_thread,
                            enum heartbeat_thread_end end);

#endif
