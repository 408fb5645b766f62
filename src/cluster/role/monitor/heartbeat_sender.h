/* heartbeat_sender.h - a node's side of heartbeats: what it sends to every monitor, and which
 * orders it obeys.
 *
 * Pure: io and threads are cluster/node/heartbeat_thread.c's. A node beats to each monitor every
 * period, brings each monitor's nonce, remembers the highest term it has seen, and obeys an order
 * of that term or a higher one that names its own incarnation; nothing else can make it end. Orders
 * have to pass cluster/role/replay_guard.h too: one that was held back on its way may be of a
 * trouble that is long over.
 */
#ifndef CLUSTER_ROLE_MONITOR_HEARTBEAT_SENDER_H
#define CLUSTER_ROLE_MONITOR_HEARTBEAT_SENDER_H

#include "cluster/role/replay_guard.h"
#include "cluster/wire/datagram.h"

enum { BEATER_MONITORS_MAX = 16 };

enum beater_mutation {
    BEATER_SOUND,
    BEATER_NO_TERM,        /* Obeys orders of any term. */
    BEATER_NO_INCARNATION, /* Obeys orders for any incarnation. */
    BEATER_MUTATIONS
};

/* Made by hand: name, incarnation, monitors, random; the rest zeroed. */
struct beater {
    char name[DATAGRAM_NAME_SIZE];
    uint64_t incarnation;
    enum beater_mutation mutation;
    uint32_t monitor_count;
    char monitors[BEATER_MONITORS_MAX][DATAGRAM_NAME_SIZE];
    struct link_sender senders[BEATER_MONITORS_MAX];
    struct link links[BEATER_MONITORS_MAX]; /* What comes from monitors. */
    struct term seen;
    struct event_place events; /* The last event known. */
    uint64_t random;           /* A seed that can't be guessed, moved on. */
};

enum beater_answer {
    BEATER_NOTHING,   /* It was for nobody, or old. */
    BEATER_BEAT,      /* A challenge: beat to monitor `monitor` again, at once. */
    BEATER_CHALLENGE, /* Something that may be old: send `reply` to that monitor. */
    BEATER_STOP,
    BEATER_KILL,
    BEATER_VIEW,  /* `datagram.view` is of now. */
    BEATER_EVENTS /* `datagram.events` is, too; the first of them may be known already. */
};

/* The beat for one monitor; `beat` as the node is, `seen` and `events` are filled in. */
void beater_beat(struct beater *beater, uint32_t monitor, const struct beat *beat,
                 struct datagram *out);
/* What to do about something that came; `out_monitor` is who sent it. */
enum beater_answer beater_hear(struct beater *beater, const struct datagram *datagram,
                               uint64_t now_ms, uint32_t *out_monitor, struct datagram *reply);

#endif
