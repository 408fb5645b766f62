/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.h - detects dead and hung nodes; the leader among the monitors restarts them.
 *
 * step(event) -> effects, like the other roles, with events of its own: a monitor knows no broker
 * and keeps nothing on disk. It hears heartbeats of every node. A node that is silent for
 * `failure_timeout` is suspected; one that sends heartbeats without progress for `stall_timeout` is
 * treated as hung. Time is counted in ticks, each of at most one tick period, so that a monitor
 * that was stopped for a while reads its datagrams before it suspects a node.
 *
 * The leader (cluster/role/monitor/election.h) tells the driver to kill and restart a dead node,
 * with a back-off per node, one order at a time per node, and none for a newer incarnation than the
 * one found dead. Any other monitor only *starts* monitors that are silent for twice as long, so
 * that a majority forms again. A new leader first sends its view and hears objections for a quarter
 * of a lease: a node that was stopped on purpose is not started by a leader that had not heard of
 * it.
 *
 * All monitors keep the leader's views and events, so that each can continue from there.
 *
 * Order of calls: monitor_create -> monitor_step* -> monitor_destroy.
 */
#ifndef CLUSTER_ROLE_MONITOR_MONITOR_H
#define CLUSTER_ROLE_MONITOR_MONITOR_H

#include "engine/base/error.h"
#include "cluster/role/monitor/election.h"
#include "cluster/role/event.h"
#include "cluster/wire/datagram.h"

enum { MONITOR_TICK_MS = 25, MONITOR_NODES_MAX = 512, MONITOR_ADDRESS_BYTES = 28 };

/* The source of a datagram, as the socket layer writes it; size 0: none. */
struct monitor_address {
    uint8_t bytes[MONITOR_ADDRESS_BYTES];
    uint32_t size;
};

/* All nodes of the cluster file: broker if it is ours, gateways, workers, monitors. */
struct monitor_node {
    struct text name;
    enum node_role role;
};

enum monitor_mutation {
    MONITOR_SOUND,
    MONITOR_NO_INCARNATION, /* Orders are for any incarnation. */
    MONITOR_MUTATIONS
};

struct monitor_config {
    struct text name;
    const struct monitor_node *nodes; /* Borrowed for the call, as the name is. */
    uint32_t node_count;
    uint32_t heartbeat_period_ms;
    uint32_t failure_timeout_ms; /* More than two heartbeat periods. */
    uint32_t stall_timeout_ms;
    uint32_t start_timeout_ms; /* Until a node that was started must send a heartbeat; doubles with
                                  each failed start, up to eight times. */
    uint32_t lease_ms;
    uint64_t incarnation; /* Of this start: the wall clock in ms. */
    uint64_t seed;        /* Of nonces too: not to be guessed. */
    enum election_mutation election_mutation;
    enum monitor_mutation mutation;
};

enum monitor_event_kind {
    MONITOR_TICK,   /* Every MONITOR_TICK_MS. */
    MONITOR_HEARD,  /* `datagram` from `source`; its MAC was right. */
    MONITOR_DRIVEN, /* The driver is done with node `node`: `error` NULL, or why not. */
    MONITOR_ENDED,  /* Node `node`, which the driver had started, is gone: `error` says why. */
    MONITOR_STOP    /* Resign, say farewell, then MONITOR_EXIT. */
};

struct monitor_event {
    enum monitor_event_kind kind;
    uint64_t now_ms;
    const struct datagram *datagram;
    struct monitor_address source;
    uint32_t node;
    const struct error *error;
};

enum drive_kind {
    DRIVE_START,  /* Never kills. */
    DRIVE_RESTART /* Kills the process if there is one, then starts. */
};

enum monitor_effect_kind {
    MONITOR_SEND_TO_MONITOR, /* `datagram` to node `node`, a monitor, at its configured address. */
    MONITOR_SEND,            /* `datagram` to `address`. */
    MONITOR_DRIVE,           /* `drive` node `node`; comes back as MONITOR_DRIVEN. */
    MONITOR_SAY,             /* `line` for the log. */
    MONITOR_EXIT
};

enum { MONITOR_LINE_SIZE = 320 };

struct monitor_effect {
    enum monitor_effect_kind kind;
    uint32_t node; /* Of config.nodes, here as everywhere. */
    struct monitor_address address;
    struct datagram datagram;
    enum drive_kind drive;
    uint64_t incarnation; /* Of MONITOR_DRIVE: the one found dead; 0: none was ever heard. */
    struct term term;     /* Of MONITOR_DRIVE by a leader; number 0: by any monitor. */
    enum say_level level;
    char line[MONITOR_LINE_SIZE];
};

/* In order. Memory that runs out is sticky: `failed`; the process then ends, as if killed. */
struct monitor_effects {
    struct monitor_effect *items; /* engine/base/array.h */
    uint32_t count;
    uint32_t capacity;
    bool failed;
    struct monitor_effect unseen; /* Written to when memory is out. */
};

void monitor_effects_reset(struct monitor_effects *effects);
void monitor_effects_done(struct monitor_effects *effects);

struct monitor;

/* Times are of a clock that never goes back and begins above 0. STATUS_USAGE: config.name is not a
 * monitor of the cluster. */
MUST_USE status monitor_create(const struct monitor_config *config, uint64_t now_ms,
                               struct monitor **out, struct error *err);
void monitor_destroy(struct monitor *monitor);
void monitor_step(struct monitor *monitor, const struct monitor_event *event,
                  struct monitor_effects *effects);

/* The `term` of an event's place. Two monitors may hold terms of one number, one after the other:
 * their events are kept apart, in the order of the terms. */
static inline uint64_t event_term(struct term term)
{
    return term.number * ELECTION_MONITORS_MAX + term.holder;
}
static inline struct term event_term_back(uint64_t value)
{
    return (struct term){.number = value / ELECTION_MONITORS_MAX,
                         .holder = (uint32_t)(value % ELECTION_MONITORS_MAX)};
}

/* For the node beneath, and for checks. */
const struct election *monitor_election(const struct monitor *monitor);
/* What it thinks of a node now. */
void monitor_targets(const struct monitor *monitor, uint32_t node, struct monitored *out);

#endif
