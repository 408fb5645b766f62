/* sim_bus.h - a node's connection to the simulated broker, and what the network does to it.
 *
 *     sim_bus_open -> (sim_bus_send | sim_bus_acknowledge | ...)* -> sim_bus_kill or sim_bus_close
 *
 * The books are those of the real bus (io/bus_books.h), the broker is io/broker_memory.h. Whatever
 * goes from one to the other takes a time of its own: messages are published in order, but apart
 * from acknowledgements, and what comes back is taken in any order the broker could have.
 *
 * A connection may be lost so that only one side knows: the broker keeps its half, with its
 * consumers, until it notices. Events are handed to the owner, who queues them.
 *
 * Memory: embedded in its node; it must not move while the world has timers for it.
 */
#ifndef SIM_SIM_BUS_H
#define SIM_SIM_BUS_H

#include "io/broker_memory.h"
#include "io/bus.h"
#include "io/bus_books.h"
#include "sim/world.h"

enum { SIM_BUS_NODES_MAX = 8 };

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
};

struct sim_bus {
    struct sim_net *net;
    uint32_t node;
    uint64_t life; /* Of timers: another one for every opening and closing. */
    bool is_open;
    void *context;
    void (*event)(void *context, struct bus_event *event); /* Moves the bytes. */
    struct outbox *outbox;
    struct inbox *inbox;
    uint64_t connection; /* 0: none, as far as the node knows. */
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

/* The connection is lost; the broker notices after `broker_ms`, the node in its own time. */
void sim_bus_lose(struct sim_bus *bus, uint64_t broker_ms);

#endif
