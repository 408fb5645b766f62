/* heartbeat_sender.h - a node's side of heartbeats: what it sends to every monitor, and which
 * orders it obeys.
 *
 * Pure: io and threads are cluster/node/heartbeat_thread.c's. A node heartbeats to each monitor
 * every period, brings each monitor's nonce, remembers the highest term it has seen, and obeys an
 * order of that term or a higher one that names its own incarnation; nothing else can make it end.
 * Orders have to pass cluster/role/replay_guard.h too: one that was held back on its way may be of
 * a trouble that is long over.
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
    struct replay_guard links[HEARTBEAT_SENDER_MONITORS_MAX]; /* What comes from monitors. */
    struct term seen;
    struct event_place events; /* The last event known. */
    uint64_t random;           /* A seed that can't be guessed, moved on. */
};

enum heartbeat_sender_answer {
    HEARTBEAT_SENDER_NOTHING,   /* It was for nobody, or old. */
    HEARTBEAT_SENDER_AGAIN,     /* A challenge: heartbeat to monitor `monitor` again, at once. */
    HEARTBEAT_SENDER_CHALLENGE, /* Something that may be old: send `reply` to that monitor. */
    HEARTBEAT_SENDER_STOP,
    HEARTBEAT_SENDER_KILL,
    HEARTBEAT_SENDER_VIEW,  /* `datagram.view` is current. */
    HEARTBEAT_SENDER_EVENTS /* `datagram.events` is, too; the first of them may be known already. */
};

/* The heartbeat for one monitor; `heartbeat` as the node is, `seen` and `events` are filled in. */
void heartbeat_sender_make(struct heartbeat_sender *heartbeat_sender, uint32_t monitor,
                           const struct heartbeat *heartbeat, struct datagram *out);
/* What to do about something that came; `out_monitor` is who sent it. */
enum heartbeat_sender_answer heartbeat_sender_hear(struct heartbeat_sender *heartbeat_sender,
                                                   const struct datagram *datagram, uint64_t now_ms,
                                                   uint32_t *out_monitor, struct datagram *reply);

#endif
