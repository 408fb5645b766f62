/* SPDX-License-Identifier: Apache-2.0 */
/* monitors_checker.h - the invariants of every step; monitors_sim.h lists them. */
#ifndef CLUSTER_SIM_MONITORS_MONITORS_CHECKER_H
#define CLUSTER_SIM_MONITORS_MONITORS_CHECKER_H

#include "cluster/sim/monitors/monitors_process.h"

/* What a monitor has heard of a node, as the checker counts it. */
struct monitors_sight {
    uint32_t monitor_run;
    uint64_t fresh_nonce; /* The last challenge, */
    uint64_t fresh_ms;    /* and when it was first made. */
    uint64_t nonce;       /* The last one accepted, of */
    uint32_t node_run;    /* this incarnation. */
    uint64_t incarnation; /* Of that one. */
    uint64_t sequence;
    uint64_t heard_ms; /* When the monitor must have taken a heartbeat; 0: never. */
    uint64_t progress;
    uint64_t progress_ms;
    bool knows_stopped;   /* The node was stopped on purpose, */
    uint32_t stopped_run; /* this incarnation of it. */
};

struct monitors_order {
    struct term term;
    enum order_kind kind;
    uint32_t node;
    uint64_t incarnation;
};

void monitors_check_heard(struct monitors_process *monitor, const struct monitors_packet *packet,
                          const struct datagram *datagram);
void monitors_check_stepped(struct monitors_process *monitor);
/* Whether it was stopped, and the leader has not heard a later incarnation of it: the leader may
 * have learned of the stop from monitors that have died since. */
bool monitors_stop_may_stand(const struct monitors_process *process,
                             struct monitors_process *leader);
void monitors_check_effect(struct monitors_process *monitor, const struct monitor_effect *effect);
void monitors_check_answer(struct monitors_process *process, const struct monitors_packet *packet,
                           const struct datagram *datagram, enum heartbeat_sender_answer answer);
/* The state of a monitor that a recording must not change. */
struct monitors_opinion {
    struct monitored nodes[MONITORS_PROCESSES_MAX];
    struct election election;
};
void monitors_opinion_take(const struct monitors_process *monitor, struct monitors_opinion *out);
void monitors_opinion_compare(const struct monitors_process *monitor,
                              const struct monitors_opinion *before,
                              const struct datagram *datagram);

#endif
