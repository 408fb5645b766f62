/* SPDX-License-Identifier: Apache-2.0 */
/* sim_node.h - a gateway or a worker as a process: its role, its bus, its disk.
 *
 *     sim_node_init -> (sim_node_start -> crash or stop)* -> sim_node_done
 *
 * Events queue up, one is stepped at a time, its effects are carried out in order; a crash may come
 * between any two of them. A node that crashed or stopped restarts by itself.
 */
#ifndef CLUSTER_SIM_JOBS_SIM_NODE_H
#define CLUSTER_SIM_JOBS_SIM_NODE_H

#include "engine/base/array.h"
#include "cluster/role/gateway/gateway.h"
#include "cluster/role/worker/mapper.h"
#include "cluster/role/worker/worker.h"
#include "cluster/sim/jobs/rules.h"
#include "cluster/sim/sim_bus.h"
#include "cluster/sim/sim_disk.h"

struct cluster;

enum { SIM_NODE_NAME_SIZE = 16 };

enum sim_node_kind { SIM_GATEWAY, SIM_WORKER };

/* A map that is under way. */
struct sim_map {
    struct map_task *task;
    uint64_t number;
};

struct sim_node {
    struct cluster *cluster;
    enum sim_node_kind kind;
    uint32_t number; /* Among all nodes. */
    char name[SIM_NODE_NAME_SIZE];
    bool maps;
    bool folds;
    bool is_up;
    bool is_stopping;
    uint64_t incarnation;
    uint64_t paused_until_ms;
    uint64_t down_until_ms;
    uint32_t crash_after; /* So many effects; 0: no such plan. */
    bool will_turn;
    bool in_turn;
    bool must_crash; /* As soon as its turn is over. */
    struct gateway *gateway;
    struct worker *worker;
    struct mapper *mapper;
    struct sim_bus bus;
    struct sim_disk disk;
    struct effects effects;
    struct rule_in_flight in_flight;
    struct event *events; /* A ring. */
    uint32_t event_first;
    uint32_t event_count;
    uint32_t event_capacity;
    ARRAY_OF(struct sim_map) running; /* Maps. */
    uint64_t next_map;
};

void sim_node_init(struct cluster *cluster, struct sim_node *node, uint32_t number);
void sim_node_done(struct sim_node *node);
void sim_node_start(struct sim_node *node);
enum sim_crash { SIM_CRASH, SIM_CRASH_AND_LOSE_DISK };
/* Starts again after `down_ms`. */
void sim_node_crash(struct sim_node *node, enum sim_crash how, uint64_t down_ms);
bool sim_node_may_crash(const struct sim_node *node);
/* Takes the event over. */
void sim_node_push(struct sim_node *node, struct event *event);
void sim_node_stop(struct sim_node *node);
void sim_node_pause(struct sim_node *node, uint64_t pause_ms);

#endif
