/* sim_bus.h - a node's connection to the simulated broker, and what the network does to it.
 *
 *     sim_bus_open -> (sim_bus_send | sim_bus_acknowledge | ...)* -> sim_bus_kill or sim_bus_close
 *
 * The audit are those of the real bus (cluster/bus/bus_tracker.h), the broker is
 * cluster/sim/broker_memory.h. Whatever goes from one to the other takes a time of its own:
 * messages are published in order, but apart from acknowledgements, and what comes back is taken in
 * any order the broker could have.
 *
 * A node has two connections, as the real bus has: one to publish, one to consume. Both begin and
 * end together as far as the node knows; but one may be lost before the other, and the other goes
 * on until the node notices. A connection may be lost so that only one side knows: the broker keeps
 * its half, with its consumers, until it notices. While the broker has an alarm it takes nothing
 * from those who publish, tells them so, and goes on delivering.
 *
 * Events are handed to the owner, who queues them.
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

/* The broker and all who are connected to it. */
struct sim_net {
    struct world *world;
    struct broker_memory *broker;
    struct sim_bus *buses[SIM_BUS_NODES_MAX];
    const char *names[SIM_BUS_NODES_MAX]; /* All nodes: whose inboxes there are. */
    uint32_t node_count;
    uint32_t work_count;
    struct bus_limits limits;
    uint32_t latency_ms;       /* Up to this for whatever goes one way. */
    uint32_t hiccup_per_mille; /* Chance that something takes */
    uint32_t hiccup_ms;        /* up to this instead. */
    uint32_t detection_ms;     /* Until a lost connection is noticed. */
    uint64_t message_count;    /* Published. */
    bool has_alarm;            /* The broker takes nothing for now. */
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
/* Whatever changed at the broker may be of interest to anybody. */
void sim_net_look(struct sim_net *net);
void sim_net_kill_broker(struct sim_net *net);
void sim_net_start_broker(struct sim_net *net);
/* An alarm of memory or disk begins, or is over. */
void sim_net_set_alarm(struct sim_net *net, bool has_alarm);
/* Queues are numbered: inboxes of the nodes, then work queues. */
enum sim_queue_fault { SIM_QUEUE_PURGED, SIM_QUEUE_DELETED };
void sim_net_hurt_queue(struct sim_net *net, uint32_t queue, enum sim_queue_fault fault);
uint64_t sim_net_message_count(const struct sim_net *net);

/* Net, node, context and event are set. Begins to connect. */
MUST_USE status sim_bus_open(struct sim_bus *bus, struct error *err);
/* As when the process is killed: what waits is gone. */
void sim_bus_kill(struct sim_bus *bus);
/* As when it ends by itself: what waits is sent, if there is a connection. */
void sim_bus_close(struct sim_bus *bus);

void sim_bus_send(struct sim_bus *bus, const struct bus_address *to, struct buf *bytes,
                  uint64_t token);
void sim_bus_acknowledge(struct sim_bus *bus, uint64_t delivery);
void sim_bus_revoke(struct sim_bus *bus, uint64_t token);
void sim_bus_work(struct sim_bus *bus, bool wanted);

/* Both connections are lost; the broker notices after `broker_ms`, the node in its own time. */
void sim_bus_lose(struct sim_bus *bus, uint64_t broker_ms);
/* One is lost, and the broker knows; the other goes on until the node notices. */
void sim_bus_lose_side(struct sim_bus *bus, enum sim_side side);

#endif
