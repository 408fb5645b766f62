/* monitors_cluster.h - all that a run of simulated monitors is made of; for the files of watch_*.c
 * only.
 *
 * Among the processes nodes come first, then monitors, as in the monitors' list.
 */
#ifndef CLUSTER_SIM_MONITORS_MONITORS_CLUSTER_H
#define CLUSTER_SIM_MONITORS_MONITORS_CLUSTER_H

#include "cluster/sim/monitors/monitors_checker.h"
#include "cluster/sim/monitors/monitors_net.h"
#include "cluster/sim/monitors/monitors_process.h"
#include "cluster/sim/monitors/monitors_sim.h"
#include "cluster/sim/world.h"

enum {
    WATCH_DRIVES_MAX = 64,
    WATCH_ORDERS_MAX = 256, /* Remembered, the last ones. */
    WATCH_OPERATORS = 2,
    WATCH_SCRIPTS = 6
};

/* When faults are over: a majority of working monitors has a leader within so many leases, and the
 * slack; settle_limit in watch_calm.c says when every node has to be up; then it stays quiet. */
enum { WATCH_BOUND_LEASES = 6, WATCH_BOUND_SLACK_MS = 1000, WATCH_QUIET_MS = 30000 };

struct watch_drive {
    bool is_used;
    uint32_t monitor;
    uint32_t monitor_life;
    uint32_t node;
    enum drive_kind kind;
    bool has_killed;
    bool fails;
    bool is_old;         /* From the time of faults. */
    const char *trouble; /* NULL: it went well. */
};

struct watch_operator {
    struct watch_cluster *cluster;
    uint32_t index;
    uint64_t incarnation;
    struct link_sender senders[WATCH_MONITORS_MAX];
    struct ask ask;
    uint32_t tries_left;
    uint32_t seen_mask[WATCH_MONITORS_MAX]; /* Nodes in the views of each monitor. */
    bool seen_leader[WATCH_MONITORS_MAX];   /* Each named one. */
};

struct watch_settings {
    uint32_t node_count;
    uint32_t monitor_count;
    uint32_t beat_period_ms;
    uint32_t patience_ms;
    uint32_t hang_timeout_ms;
    uint32_t start_timeout_ms;
    uint32_t lease_ms;
    uint32_t startup_ms; /* At most, until a node is up. */
    uint32_t fault_ms;
    uint32_t fault_gap_ms;
    bool reuses_ports;
    uint32_t script;   /* WATCH_SCRIPTS: none. */
    uint32_t drive_ms; /* Mostly. */
    uint32_t drive_slow_per_mille;
    uint32_t drive_fail_per_mille;
    uint32_t drive_hang_per_mille;
};

struct watch_cluster {
    const struct watch_options *options;
    struct world world;
    struct watch_settings settings;
    struct watch_net net;
    struct monitor_node nodes[WATCH_PROCESSES_MAX]; /* As the monitors know them. */
    struct watch_process processes[WATCH_PROCESSES_MAX];
    uint32_t process_count;
    struct watch_drive drives[WATCH_DRIVES_MAX];
    bool driver_is_broken[WATCH_PROCESSES_MAX]; /* For this node. */
    struct watch_operator operators[WATCH_OPERATORS];
    struct monitor_effects effects;
    /* The checker's. */
    struct watch_sight sights[WATCH_MONITORS_MAX][WATCH_PROCESSES_MAX];
    struct watch_order orders[WATCH_ORDERS_MAX];
    uint64_t order_count;
    bool has_stops;
    /* The script's. */
    bool script_is_on;
    uint64_t script_wait_ms;
    uint32_t script_leader; /* A process, */
    uint32_t script_life;   /* and which life of whom it is about. */
    uint64_t script_orders;
    struct term script_term;
    /* Phases. */
    bool faults_are_over;
    uint64_t heal_ms;
    uint64_t calm_ms;     /* When the last effect of a fault was over. */
    uint64_t majority_ms; /* Since when enough monitors work; 0: they don't. */
    bool had_leader;      /* Since then. */
    uint64_t well_ms;     /* Since when nothing is wrong; 0: something is. */
    uint64_t settled_ms;  /* 0: not yet. */
    struct term settled_term;
    uint64_t settled_acts; /* Drives and orders until then. */
    bool is_over;
    struct sim_report report;
};

static inline struct watch_process *watch_monitor(struct watch_cluster *cluster, uint32_t position)
{
    return &cluster->processes[cluster->settings.node_count + position];
}
static inline uint32_t watch_position(const struct watch_process *process)
{
    return process->index - process->cluster->settings.node_count;
}
static inline uint32_t watch_majority(const struct watch_cluster *cluster)
{
    return cluster->settings.monitor_count / 2 + 1;
}

/* watch_driver.c */
void watch_drive(struct watch_process *monitor, const struct monitor_effect *effect);
/* Those from the time of faults. */
bool watch_drives_are_done(const struct watch_cluster *cluster);

/* watch_operator.c */
void watch_operator_ask(struct watch_operator *operator_, const struct ask *ask);
void watch_operator_hear(struct watch_operator *operator_, const struct datagram *datagram);

/* watch_faults.c */
void watch_draw(struct watch_cluster *cluster);
void watch_faults_begin(struct watch_cluster *cluster);

/* watch_script.c */
void watch_script_begin(struct watch_cluster *cluster);

/* watch_calm.c */
struct watch_process *watch_leader(struct watch_cluster *cluster); /* NULL: none. */
/* Faults are over: from now on it has to come to rest. */
void watch_calm_begin(struct watch_cluster *cluster);

#endif
