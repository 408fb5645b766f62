/* SPDX-License-Identifier: Apache-2.0 */
/* sim_bus.h - a node's connection to the simulated broker, and what the network does to it.
 *
 *     sim_bus_open -> (sim_bus_send | sim_bus_acknowledge | ...)* -> sim_bus_kill or sim_bus_close
 *
 * Delivery tracking is that of the real bus (cluster/bus/bus_tracker.h), the broker is
 * cluster/sim/broker_memory.h. Each step between the two takes a time of its own: messages are
 * published in order, but independently of acknowledgements; deliveries and confirms arrive in any
 * order that AMQP allows.
 *
 * A node has two connections, as the real bus has: one to publish, one to consume. The node sees
 * both begin and end together; but one may be lost before the other, which then works until the
 * node notices. A connection may be lost so that only one side knows: the broker keeps its half,
 * with its consumers, until it notices. While the broker has a resource alarm it blocks publishers,
 * tells them so, and continues to deliver.
 *
 * Events go to the owner, which queues them.
 *
 * Memory: embedded in its node; it must not move while the world has timers for it.
 */
#ifndef CLUSTER_SIM_SIM_BUS_H
#define CLUSTER_SIM_SIM_BUS_H

#include "cluster/sim/broker_memory.h"
#include "cluster/bus/bus.h"
#include "cluster/bus/bus_tracker.h"
#include "cluster/sim/world.h"

enum { SIM_BUS_NODES_MAX = 8 };

enum sim_side { SIM_PUBLISHER, SIM_CONSUMER, SIM_SIDES };

struct sim_bus;

/* The broker and the buses connected to it. */
struct sim_net {
    struct world *world;
    struct broker_memory *broker;
    struct sim_bus *buses[SIM_BUS_NODES_MAX];
    const char *names[SIM_BUS_NODES_MAX]; /* All nodes: whose inboxes there are. */
    uint32_t node_count;
    uint32_t work_count;
    struct bus_limits limits;
    uint32_t latency_ms;       /* One way, at most. */
    uint32_t hiccup_per_mille; /* Chance that a step takes */
    uint32_t hiccup_ms;        /* up to this instead. */
    uint32_t detection_ms;     /* Until a lost connection is noticed. */
    uint64_t message_count;    /* Published. */
    bool has_alarm;            /* The broker blocks publishers. */
};

struct sim_bus {
    struct sim_net *net;
    uint32_t node;
    uint64_t incarnation; /* Of timers: another one for every opening and closing. */
    bool is_open;
    void *context;
    void (*event)(void *context, struct bus_event *event); /* Moves the bytes. */
    struct outbox *outbox;
    struct inbox *inbox;
    bool is_connected;               /* As far as the node knows. */
    uint64_t connections[SIM_SIDES]; /* 0: none, or one through which nothing goes any more. */
    bool is_blocked;                 /* Was told of the alarm. */
    bool wants_work;
    bool is_working;
    bool will_publish; /* A timer for it is running. */
    bool will_acknowledge;
    bool will_take;
};

MUST_USE status sim_net_init(struct sim_net *net, struct error *err);
void sim_net_done(struct sim_net *net);
void sim_net_kill_broker(struct sim_net *net);
void sim_net_start_broker(struct sim_net *net);
/* A resource alarm (memory or disk) begins, or is over. */
void sim_net_set_alarm(struct sim_net *net, bool has_alarm);
/* Queues are numbered: inboxes of the nodes, then work queues. */
enum sim_queue_fault { SIM_QUEUE_PURGED, SIM_QUEUE_DELETED };
void sim_net_hurt_queue(struct sim_net *net, uint32_t queue, enum sim_queue_fault fault);
uint64_t sim_net_message_count(const struct sim_net *net);

/* Net, node, context and event are set. Begins to connect. */
MUST_USE status sim_bus_open(struct sim_bus *bus, struct error *err);
/* As when the process is killed: messages that wait are lost. */
void sim_bus_kill(struct sim_bus *bus);
/* As when the process exits: messages that wait are sent, if there is a connection. */
void sim_bus_close(struct sim_bus *bus);

void sim_bus_send(struct sim_bus *bus, const struct bus_address *to, struct buf *bytes,
                  uint64_t token);
void sim_bus_acknowledge(struct sim_bus *bus, uint64_t delivery);
void sim_bus_revoke(struct sim_bus *bus, uint64_t token);
void sim_bus_work(struct sim_bus *bus, bool wanted);

/* Both connections are lost; the broker notices after `broker_ms`, the node in its own time. */
void sim_bus_lose(struct sim_bus *bus, uint64_t broker_ms);
/* One is lost, and the broker knows; the other works until the node notices. */
void sim_bus_lose_side(struct sim_bus *bus, enum sim_side side);

#endif
