/* SPDX-License-Identifier: Apache-2.0 */
/* monitors_process.h - a simulated process: a node or a monitor, up or down.
 *
 * Every incarnation has a number (`run`), which timers carry, so that timers of a dead process do
 * nothing. The `incarnation` of datagrams is another thing: it comes from the host's time of day,
 * which may jump back, as in a real process.
 */
#ifndef CLUSTER_SIM_MONITORS_MONITORS_PROCESS_H
#define CLUSTER_SIM_MONITORS_MONITORS_PROCESS_H

#include "cluster/role/monitor/heartbeat_sender.h"
#include "cluster/sim/monitors/monitors_net.h"

struct monitors_cluster;

enum {
    MONITORS_HELD_MAX = 64,       /* Datagrams that wait in a socket. */
    MONITORS_RATE_PPM_MAX = 50000 /* Of clocks: an eighth of a lease allows for more. */
};

struct monitors_process {
    struct monitors_cluster *cluster;
    uint32_t index;
    char name[DATAGRAM_NAME_SIZE];
    enum node_role role;
    /* The host. */
    int32_t rate_ppm;
    uint64_t clock_base_ms; /* What its clock said at */
    uint64_t clock_from_ms; /* this moment. */
    int64_t wall_ms;        /* Its time of day, less the time that has passed. */
    /* This incarnation. */
    bool is_up;
    bool is_paused;
    bool is_hung;
    bool was_stopped;     /* On purpose, and has ended. */
    bool stop_was_asked;  /* By an operator, in any incarnation. */
    uint32_t stopped_run; /* The last one that was stopped; 0: none was. */
    uint32_t run;
    uint32_t port;
    uint64_t incarnation;
    uint64_t started_ms; /* World time. */
    uint64_t ready_ms;   /* From then on it is up. */
    enum heartbeat_state state;
    uint64_t progress;
    uint32_t farewell_count; /* To be said. */
    bool tick_is_due;        /* It was due while the process was paused. */
    bool heartbeat_is_due;
    struct heartbeat_sender heartbeat_sender;
    struct monitor *monitor;          /* NULL: it is none, or down. */
    uint32_t held[MONITORS_HELD_MAX]; /* Packets. */
    uint32_t held_count;
    struct term seen;        /* The checker's: the last term, */
    struct event_place told; /* the last event, */
    uint32_t told_by;        /* by whom, */
    uint32_t told_run;       /* in which incarnation. */
};

void monitors_process_init(struct monitors_cluster *cluster, uint32_t index, enum node_role role,
                           const char *name);
/* Its number; process_count: there is none. */
uint32_t monitors_process_named(const struct monitors_cluster *cluster, const char *name);
uint64_t monitors_process_now(const struct monitors_process *process);
bool monitors_is_leading(const struct monitors_process *process);
void monitors_process_start(struct monitors_process *process);
void monitors_process_kill(struct monitors_process *process);
void monitors_process_pause(struct monitors_process *process);
void monitors_process_resume(struct monitors_process *process);
void monitors_process_hang(struct monitors_process *process);
void monitors_process_unhang(struct monitors_process *process);
/* As SIGTERM does. */
void monitors_process_stop(struct monitors_process *process);
/* A receiver of the network; the context is the cluster. */
void monitors_process_receive(void *context, uint32_t packet);
struct monitor_address monitors_process_address(const struct monitors_process *process,
                                                enum monitors_door door);
void monitors_process_driven(struct monitors_process *process, uint32_t node,
                             const struct error *error);

static inline bool monitors_is_monitor(const struct monitors_process *process)
{
    return process->role == NODE_MONITOR;
}

#endif
