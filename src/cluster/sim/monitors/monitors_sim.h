/* SPDX-License-Identifier: Apache-2.0 */
/* monitors_sim.h - simulated monitors and the nodes they monitor, under faults drawn from a seed.
 *
 * Monitors (cluster/role/monitor/monitor.h), heartbeats (cluster/role/monitor/heartbeat_sender.h)
 * and datagrams (cluster/wire/datagram.h) are those of the real program; clocks, network, processes
 * and drivers are simulated. Every process has a clock of its own, which runs a little fast or
 * slow. Checked at every step:
 *
 * - there are never two leaders at one moment, and only the leader orders and drives;
 * - a node obeys only the leader of a term that ordered its very incarnation, and no order of an
 *   older term than one it has seen;
 * - no node is restarted whose heartbeats came in time and showed progress;
 * - replayed and forged datagrams change nothing;
 * - a node that was stopped on purpose is not started by a monitor that knows it.
 *
 * And when faults are over: a leader soon, every node up soon, and then no more actions. The bounds
 * are in monitors_cluster.h. The same seed is the same run.
 *
 * Threads: one run at a time per process.
 */
#ifndef CLUSTER_SIM_MONITORS_MONITORS_SIM_H
#define CLUSTER_SIM_MONITORS_MONITORS_SIM_H

#include "engine/base/error.h"
#include "engine/base/fault_injection.h"
#include "cluster/sim/world.h"

/* Bugs planted into monitors and nodes. */
enum monitors_mutation {
    MONITORS_SIM_SOUND,
    MONITORS_SIM_NO_LEASE,
    MONITORS_SIM_VOTES_AT_ONCE,
    MONITORS_SIM_NO_TERM,
    MONITORS_SIM_OBEYS_ANY,  /* A node obeys orders for other incarnations. */
    MONITORS_SIM_ORDERS_ANY, /* A monitor's orders are for whatever incarnation there is. */
    MONITORS_SIM_MUTATIONS
};
#if FAULT_INJECTION
extern const char *const monitors_mutation_names[MONITORS_SIM_MUTATIONS];
#endif

struct monitors_options {
    uint64_t seed;
    enum monitors_mutation mutation;
    int trace_fd; /* -1: none. */
};

/* Fails only when the run can't begin, for want of memory; the report says what is wrong with it.
 */
MUST_USE status monitors_run_seed(const struct monitors_options *options, struct sim_report *out,
                                  struct error *err);

#endif
