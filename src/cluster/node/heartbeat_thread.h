/* SPDX-License-Identifier: Apache-2.0 */
/* heartbeat_thread.h - sends heartbeats to the monitors, from its own thread.
 *
 *     heartbeat_thread_open -> (heartbeat_thread_progress | heartbeat_thread_state | ...)* ->
 *     heartbeat_thread_close
 *
 * The thread sends a heartbeat every period, whatever the main loop does; the main loop reports its
 * progress by heartbeat_thread_progress. So a monitor can tell a dead node (no heartbeats) from a
 * hung one (no progress). The same thread receives orders: to stop (it calls options.stop), or to
 * kill this process, whose main loop hangs. It also checks the supervisor link, for a main loop
 * that hangs when no monitor is left to kill it.
 *
 * A cluster without monitors has no heartbeats: open gives NULL, which all functions accept.
 * Threads: any may call the functions; callbacks come from the heartbeat thread.
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

/* Where to bind a socket for datagrams to the monitors: on loopback if all of them are, with
 * addresses of one family; NULL: on all addresses. Never waits, so it resolves no names. */
const char *heartbeat_thread_host(const struct cluster_config *config);

/* Reads the cluster's key; sends heartbeats from now on, in state HEARTBEAT_STARTING. */
MUST_USE status heartbeat_thread_open(const struct heartbeat_thread_options *options,
                                      struct heartbeat_thread **out, struct error *err);
void heartbeat_thread_progress(struct heartbeat_thread *heartbeat_thread);
void heartbeat_thread_state(struct heartbeat_thread *heartbeat_thread, enum heartbeat_state state);
void heartbeat_thread_jobs(struct heartbeat_thread *heartbeat_thread, uint32_t job_count);
void heartbeat_thread_replayed(struct heartbeat_thread *heartbeat_thread, uint64_t record_count);

enum heartbeat_thread_end {
    HEARTBEAT_THREAD_PLANNED, /* Reports the stop, several times, so that no monitor restarts us. */
    HEARTBEAT_THREAD_FAILED   /* Reports nothing, as a crash: a monitor will restart us. */
};
/* No callback runs when it returns. */
void heartbeat_thread_close(struct heartbeat_thread *heartbeat_thread,
                            enum heartbeat_thread_end end);

#endif
