/* SPDX-License-Identifier: Apache-2.0 */
/* heartbeat_sender.h - a node's side of heartbeats: what it sends to every monitor, and which
 * orders it obeys.
 *
 * Pure: I/O and threads are in cluster/node/heartbeat_thread.c. A node sends a heartbeat to each
 * monitor every period, with that monitor's nonce, and remembers the highest term it has seen. It
 * obeys an order of that term or a higher one that names its own incarnation; nothing else can make
 * it end. Orders have to pass cluster/role/replay_guard.h too: one that was held back on its way
 * may be about a failure that is long over.
 */
#ifndef CLUSTER_ROLE_MONITOR_HEARTBEAT_SENDER_H
#define CLUSTER_ROLE_MONITOR_HEARTBEAT_SENDER_H

#include "cluster/role/replay_guard.h"
#include "cluster/wire/datagram.h"

enum { HEARTBEAT_SENDER_MONITORS_MAX = 16 };

enum heartbeat_sender_mutation {
    HEARTBEAT_SENDER_SOUND,
    HEARTBEAT_SENDER_NO_TERM,        /* Obeys orders of any term. */
    HEARTBEAT_SENDER_NO_INCARNATION, /* Obeys orders for any incarnation. */
    HEARTBEAT_SENDER_MUTATIONS
};

/* Made by hand: name, incarnation, monitors, random; the rest zeroed. */
struct heartbeat_sender {
    char name[DATAGRAM_NAME_SIZE];
    uint64_t incarnation;
    enum heartbeat_sender_mutation mutation;
    uint32_t monitor_count;
    char monitors[HEARTBEAT_SENDER_MONITORS_MAX][DATAGRAM_NAME_SIZE];
    struct replay_sender senders[HEARTBEAT_SENDER_MONITORS_MAX];
    struct replay_guard guards[HEARTBEAT_SENDER_MONITORS_MAX]; /* Of datagrams from monitors. */
    struct term seen;
    struct event_place events; /* The last event known. */
    uint64_t random;           /* State of a generator whose seed cannot be guessed. */
};

enum heartbeat_sender_answer {
    HEARTBEAT_SENDER_NOTHING,   /* Not for this node, or old. */
    HEARTBEAT_SENDER_AGAIN,     /* A challenge: send that monitor a heartbeat at once. */
    HEARTBEAT_SENDER_CHALLENGE, /* It may be old: send `reply` to that monitor. */
    HEARTBEAT_SENDER_STOP,
    HEARTBEAT_SENDER_KILL,
    HEARTBEAT_SENDER_VIEW,  /* `datagram.view` is current. */
    HEARTBEAT_SENDER_EVENTS /* `datagram.events` is, too; the first of them may be known already. */
};

/* The heartbeat for one monitor: a copy of `heartbeat` with `seen` and `events` filled in. */
void heartbeat_sender_make(struct heartbeat_sender *sender, uint32_t monitor,
                           const struct heartbeat *heartbeat, struct datagram *out);
/* What to do about a datagram; `out_monitor` is its sender. */
enum heartbeat_sender_answer heartbeat_sender_hear(struct heartbeat_sender *sender,
                                                   const struct datagram *datagram, uint64_t now_ms,
                                                   uint32_t *out_monitor, struct datagram *reply);

#endif
