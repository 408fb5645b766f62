/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.h - all simulated processes of a cluster in one struct: nodes, clients, broker, network.
 *
 * Who calls whom: the world calls timers; a node's or client's timer steps its role and carries out
 * the effects (sim_node.c, sim_client.c); these reach others only through the bus (sim_bus.c), HTTP
 * (sim_http.c) and timers. Faults (faults.c) come from timers too.
 *
 * Processes have incarnations: timers and replies that were under way for an earlier one are void.
 */
#ifndef CLUSTER_SIM_JOBS_CLUSTER_H
#define CLUSTER_SIM_JOBS_CLUSTER_H

#include "cluster/sim/jobs/rules.h"
#include "cluster/sim/jobs/scenario.h"
#include "cluster/sim/jobs/sim.h"
#include "cluster/sim/sim_bus.h"
#include "cluster/sim/jobs/sim_client.h"
#include "cluster/sim/jobs/sim_echo.h"
#include "cluster/sim/jobs/sim_http.h"
#include "cluster/sim/jobs/sim_node.h"
#include "cluster/sim/jobs/sim_adversary.h"
#include "cluster/sim/world.h"

enum {
    CLUSTER_GATEWAYS_MAX = 3,
    CLUSTER_WORKERS_MAX = 4,
    CLUSTER_NODES_MAX = CLUSTER_GATEWAYS_MAX + CLUSTER_WORKERS_MAX,
    CLUSTER_CLIENTS_MAX = 4
};

/* The size and the faults of a run; drawn from the seed as the profile asks. */
struct cluster_settings {
    uint32_t gateway_count;
    uint32_t worker_count;
    uint32_t work_count;
    uint32_t client_count;
    uint32_t max_jobs;
    uint32_t map_limit;
    uint32_t window;
    uint32_t emit_window;
    uint32_t put_limit;
    uint32_t map_ms;            /* A map takes up to this, */
    uint32_t slow_per_mille;    /* and with this chance */
    uint32_t slow_ms;           /* up to that. */
    uint32_t turn_ms;           /* A node handles an event within this. */
    uint32_t http_loss;         /* Per mille: a request or a reply is lost, while faults last. */
    uint32_t torn_per_mille;    /* Logs after a crash. */
    uint32_t client_timeout_ms; /* The lease. */
    uint32_t client_start_ms;   /* They begin within this. */
    uint64_t faults_end_ms;     /* None begin later. */
    uint32_t fault_gap_ms;      /* Up to this between two of them; 0: there are none. */
    uint32_t fault_weights[16]; /* By enum job_fault, in faults.c. */
    uint32_t fault_limit;       /* So many at most. */
    bool spread;                /* Every request goes to another gateway. */
    bool has_poison;            /* The first client's question kills workers. */
    bool has_full_disk;         /* The first client's job finds no room on a worker. */
    bool has_vanishing;         /* The last client never comes back. */
    bool has_cancel;            /* An operator cancels the first client's job. */
    bool has_observers;
    bool has_rush;         /* All begin at once; faults begin later. */
    bool has_reader;       /* A reader keeps polling the job of the client that has gone. */
    bool has_adversary;    /* An adversary asks for jobs of others, */
    bool adversary_works;  /* and has a job of its own. */
    bool has_reuse;        /* The last client submits other jobs under the same name. */
    bool has_altered;      /* Messages of the first client's job are altered. */
    uint64_t end_limit_ms; /* Clients must have ended so long after the last fault. */
};

/* ---- all ---- */

struct cluster {
    struct world world;
    const struct sim_options *options;
    const struct scenarios *scenarios;
    struct cluster_settings settings;
    struct sim_net net;
    struct sim_node nodes[CLUSTER_NODES_MAX]; /* Gateways, then workers. */
    uint32_t node_count;
    struct manifest_worker workers[CLUSTER_WORKERS_MAX];
    struct sim_client clients[CLUSTER_CLIENTS_MAX];
    struct sim_adversary adversary;
    struct sim_echoes echoes;
    struct rules rules;
    struct sim_http http;
    uint64_t next_incarnation;
    uint64_t last_fault_ms;
    uint32_t fault_count;
    bool faults_are_over;
    uint64_t answered_ms; /* When all clients had ended; 0: not yet. */
    bool is_over;
    uint64_t alarm_until_ms;
    uint64_t alarm_count;
    uint32_t alteration_count;
    struct arena scratch; /* Of one look at a message. */
    struct sim_report report;
};

bool cluster_is_answered(const struct cluster *cluster);

/* ---- faults.c ---- */

/* Draws the settings of a run. */
void faults_draw(struct cluster *cluster);
void faults_begin(struct cluster *cluster);

/* ---- checker.c ---- */

/* When a client has ended; fails the world. */
void checker_client(struct cluster *cluster, const struct sim_client *client);
/* No job and no message is left behind; else `out` (may be NULL) names one. */
bool checker_is_clean(const struct cluster *cluster, char *out, size_t size);
/* Checks the budgets of the profile. */
void checker_proportion(struct cluster *cluster);

#endif
