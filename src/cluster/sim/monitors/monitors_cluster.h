/* SPDX-License-Identifier: Apache-2.0 */
/* monitors_cluster.h - the state of a run of simulated monitors; for the files of this room only.
 *
 * Among the processes nodes come first, then monitors, as in the monitors' list.
 */
#ifndef CLUSTER_SIM_MONITORS_MONITORS_CLUSTER_H
#define CLUSTER_SIM_MONITORS_MONITORS_CLUSTER_H

#include "cluster/sim/monitors/monitors_adversary.h"
#include "cluster/sim/monitors/monitors_checker.h"
#include "cluster/sim/monitors/monitors_net.h"
#include "cluster/sim/monitors/monitors_process.h"
#include "cluster/sim/monitors/monitors_sim.h"
#include "cluster/sim/world.h"

enum {
    MONITORS_DRIVES_MAX = 64,
    MONITORS_ORDERS_MAX = 256, /* Remembered, the last ones. */
    MONITORS_OPERATORS = 2,
    MONITORS_SCRIPTS = 6
};

/* When faults are over: a majority of working monitors has a leader within so many leases, and the
 * slack; settle_limit in monitors_calm.c says when every node has to be up; then it stays quiet. */
enum { MONITORS_BOUND_LEASES = 6, MONITORS_BOUND_SLACK_MS = 1000, MONITORS_QUIET_MS = 30000 };

struct monitors_drive {
    bool is_used;
    uint32_t monitor;
    uint32_t monitor_run;
    uint32_t node;
    enum drive_kind kind;
    bool has_killed;
    bool fails;
    bool is_old;         /* From the time of faults. */
    const char *trouble; /* NULL: it went well. */
};

struct monitors_operator {
    struct monitors_cluster *cluster;
    uint32_t index;
    uint64_t incarnation;
    struct replay_sender senders[MONITORS_MONITORS_MAX];
    struct ask ask;
    uint32_t tries_left;
    uint32_t seen_mask[MONITORS_MONITORS_MAX]; /* Nodes in the views of each monitor. */
    bool seen_leader[MONITORS_MONITORS_MAX];   /* Each named one. */
};

struct monitors_settings {
    uint32_t node_count;
    uint32_t monitor_count;
    uint32_t heartbeat_period_ms;
    uint32_t failure_timeout_ms;
    uint32_t stall_timeout_ms;
    uint32_t start_timeout_ms;
    uint32_t lease_ms;
    uint32_t startup_ms; /* At most, until a node is up. */
    uint32_t fault_ms;
    uint32_t fault_gap_ms;
    bool reuses_ports;
    uint32_t script;   /* MONITORS_SCRIPTS: none. */
    uint32_t drive_ms; /* Mostly. */
    uint32_t drive_slow_per_mille;
    uint32_t drive_fail_per_mille;
    uint32_t drive_hang_per_mille;
};

struct monitors_cluster {
    const struct monitors_options *options;
    struct world world;
    struct monitors_settings settings;
    struct datagram_key key; /* Of all processes; the adversary does not have it. */
    struct monitors_net net;
    struct monitors_adversary adversary;
    struct monitor_node nodes[MONITORS_PROCESSES_MAX]; /* As the monitors know them. */
    struct monitors_process processes[MONITORS_PROCESSES_MAX];
    uint32_t process_count;
    struct monitors_drive drives[MONITORS_DRIVES_MAX];
    bool driver_is_broken[MONITORS_PROCESSES_MAX]; /* For this node. */
    struct monitors_operator operators[MONITORS_OPERATORS];
    struct monitor_effects effects;
    /* The checker's. */
    struct monitors_sight sights[MONITORS_MONITORS_MAX][MONITORS_PROCESSES_MAX];
    struct monitors_order orders[MONITORS_ORDERS_MAX];
    uint64_t order_count;
    bool has_stops;
    /* The script's. */
    bool script_is_on;
    uint64_t script_wait_ms;
    uint32_t script_leader; /* A process, */
    uint32_t script_run;    /* and the incarnation that the script is about. */
    uint64_t script_orders;
    struct term script_term;
    /* Phases. */
    bool faults_are_over;
    uint64_t heal_ms;
    uint64_t calm_ms;     /* When the last driver of the time of faults was done; 0: not yet. */
    uint64_t majority_ms; /* Since when a majority of monitors works; 0: none does. */
    bool had_leader;      /* Since then. */
    uint64_t well_ms;     /* Since when all nodes are up; 0: one is not. */
    uint64_t settled_ms;  /* 0: not yet. */
    struct term settled_term;
    uint64_t settled_acts; /* Drives and orders until then. */
    bool is_over;
    struct sim_report report;
};

static inline struct monitors_process *monitors_monitor(struct monitors_cluster *cluster,
                                                        uint32_t position)
{
    return &cluster->processes[cluster->settings.node_count + position];
}
static inline uint32_t monitors_position(const struct monitors_process *process)
{
    return process->index - process->cluster->settings.node_count;
}
static inline uint32_t monitors_majority(const struct monitors_cluster *cluster)
{
    return cluster->settings.monitor_count / 2 + 1;
}

/* monitors_driver.c */
void monitors_drive(struct monitors_process *monitor, const struct monitor_effect *effect);
/* Those from the time of faults. */
bool monitors_drives_are_done(const struct monitors_cluster *cluster);

/* monitors_operator.c */
void monitors_operator_ask(struct monitors_operator *operator_, const struct ask *ask);
/* A receiver of the network; the context is the cluster. */
void monitors_operator_receive(void *context, uint32_t packet);

/* monitors_faults.c */
void monitors_draw(struct monitors_cluster *cluster);
void monitors_faults_begin(struct monitors_cluster *cluster);

/* monitors_script.c */
void monitors_script_begin(struct monitors_cluster *cluster);

/* monitors_calm.c */
struct monitors_process *monitors_leader(struct monitors_cluster *cluster); /* NULL: none. */
/* Faults are over: the cluster must settle. */
void monitors_calm_begin(struct monitors_cluster *cluster);

#endif
