/* SPDX-License-Identifier: Apache-2.0 */
/* node_core.h - the common part of gateways and workers as processes: a folder, a log, a bus, and
 * one mailbox for all events.
 *
 *     node_core_open -> node_core_connect -> node_core_run (node_core_carry)* -> node_core_close
 *
 * In a cluster with monitors the node sends heartbeats from node_core_open on. It stops on a
 * signal, on an order of the monitors' leader, or when its supervisor has ended.
 *
 * Threads: one owner; others post events to `mailbox`.
 */
#ifndef CLUSTER_NODE_NODE_CORE_H
#define CLUSTER_NODE_NODE_CORE_H

#include "cluster/bus/bus.h"
#include "cluster/store/folder_lock.h"
#include "cluster/node/mailbox.h"
#include "cluster/node/heartbeat_thread.h"
#include "cluster/node/supervisor_link.h"
#include "cluster/node/node_log.h"
#include "cluster/node/worker_node.h"
#include "cluster/role/event.h"

struct node_core {
    struct bus_listener listener; /* First: the bus sees only this. */
    struct node_options options;
    struct arena arena;
    const char *folder; /* data_dir/NAME */
    struct folder_lock *lock;
    struct node_log *log;
    struct mailbox *mailbox; /* Of struct event. */
    struct bus *bus;
    struct heartbeat_thread *heartbeat_thread; /* NULL: there are no monitors. */
    struct supervisor_link supervisor_link;
    atomic_bool ordered_stop; /* By the monitors' leader. */
    atomic_uint view_count;   /* Of monitors, in the mailbox. */
    uint64_t incarnation;     /* When it was started: the wall clock in ms. */
    uint64_t seed;            /* Random. */
    struct effects effects;   /* Of the current step. */
    uint64_t next_tick_ms;
    bool told_ready;
    bool told_stop;
    bool exited; /* The role has said so. */
};

enum { NODE_TICK_MS = 20 };

/* Locks the folder, opens the log, starts heartbeats; arms crash points from the environment. Posts
 * the monitors' messages to a gateway: EVENT_VIEW, EVENT_HAPPENED. */
MUST_USE status node_core_open(struct node_core *core, const struct node_options *options,
                               enum node_role role, struct error *err);
/* Opens the bus, whose events are posted. Waits for a private broker if need be; STATUS_CANCELLED:
 * told to stop meanwhile. */
MUST_USE status node_core_connect(struct node_core *core, uint32_t work_prefetch,
                                  struct error *err);
/* Gives each event, or a tick when none comes in time, to `step`, until the role exits; no longer
 * than `usual_ms` after the stop has begun (see node_core_deadline). */
typedef void node_step(void *context, struct event *event);
MUST_USE status node_core_run(struct node_core *core, uint32_t usual_ms, node_step *step,
                              void *context, struct error *err);
/* Carries out an effect that all roles have; false: it is another one. */
bool node_core_carry(struct node_core *core, struct effect *effect);
/* Whether it is told to stop. */
bool node_core_is_to_stop(struct node_core *core);
/* The stop begins: reports it to the monitors, the log and the service manager. */
void node_core_tell_stop(struct node_core *core);
/* How long to finish the work in flight when stopping: less if the supervisor has ended. */
uint32_t node_core_deadline(const struct node_core *core, uint32_t usual_ms);
/* Frees what an event owns, but for tasks and requests. */
void node_core_event_done(struct event *event);
/* Sends and acknowledges what waits; `result` is how the node ends, which it reports to the
 * monitors. Returns it, but STATUS_OK for a start that was interrupted by the stop. Accepts a core
 * that failed to open. */
MUST_USE status node_core_close(struct node_core *core, status result);

#endif
