/* SPDX-License-Identifier: Apache-2.0 */
/* datagram.h - the datagrams between nodes, monitors and operators, over UDP.
 *
 *     node -> monitor                  HEARTBEAT     state and progress of the node
 *     receiver -> sender               CHALLENGE     a nonce that proves a datagram to be recent
 *     monitor -> monitor               ELECTION      see cluster/role/monitor/election.h
 *     leader -> node                   ORDER         stop, or end at once
 *     leader -> gateways and monitors  VIEW, EVENTS  health of the nodes; what happened to them
 *     operator -> monitor              ASK           a view and events, or a node to be stopped
 *
 * Every datagram begins with its sender and receiver and ends with a message authentication code
 * (MAC) that only holders of the cluster's key can compute. A recorded one does no harm either: its
 * sender's incarnation and sequence and the receiver's `nonce` show that it is old;
 * cluster/role/replay_guard.h decides.
 *
 * A datagram is at most DATAGRAM_BYTES_MAX bytes, so that it fits one packet of every usual network
 * and is never fragmented (IPv6 guarantees 1,280: RFC 8200, 5). Longer lists are several datagrams,
 * each of use alone.
 *
 * Memory: a decoded datagram is a value: names are copied into it. Failure: STATUS_CORRUPT for
 * bytes that no encoder wrote, or whose MAC was computed with another key.
 */
#ifndef CLUSTER_WIRE_DATAGRAM_H
#define CLUSTER_WIRE_DATAGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "cluster/wire/api.h"

enum {
    DATAGRAM_BYTES_MAX = 1200,
    DATAGRAM_KEY_BYTES = 32,
    DATAGRAM_NAME_SIZE = 65,  /* Terminated. */
    DATAGRAM_TEXT_SIZE = 129, /* Terminated. */
    DATAGRAM_NODES_MAX = 4,   /* Of one VIEW. */
    DATAGRAM_EVENTS_MAX = 4   /* Of one EVENTS. */
};

/* Never printed, never logged. */
struct datagram_key {
    uint8_t bytes[DATAGRAM_KEY_BYTES];
};

enum datagram_kind {
    DATAGRAM_HEARTBEAT = 1,
    DATAGRAM_CHALLENGE,
    DATAGRAM_ELECTION,
    DATAGRAM_ORDER,
    DATAGRAM_VIEW,
    DATAGRAM_EVENTS,
    DATAGRAM_ASK,
    DATAGRAM_KINDS
};

/* A term of office, ordered by number, then by holder. Number 0: none yet. */
struct term {
    uint64_t number;
    uint32_t holder; /* Position of the monitor in the cluster file. */
};

/* An event's place among all: events of a later term come later. */
struct event_place {
    uint64_t term;
    uint32_t sequence; /* 1.. within the term; 0: before all of it. */
};

enum heartbeat_state {
    HEARTBEAT_STARTING, /* Replays its log, connects. */
    HEARTBEAT_UP,
    HEARTBEAT_STOPPING, /* It was asked to. */
    HEARTBEAT_STOPPED,  /* Its last heartbeat. */
    HEARTBEAT_STATES
};

struct heartbeat {
    enum node_role role;
    enum heartbeat_state state;
    struct term seen;  /* The highest term it has had an order or a view of. */
    uint64_t progress; /* Changes while its main loop turns or replays a log. */
    uint64_t uptime_ms;
    uint64_t replayed;       /* Records replayed at this start. */
    uint64_t resident_bytes; /* Of memory. */
    uint32_t job_count;
    struct event_place events; /* Gateways and monitors: the last event they know. */
};

/* Answers the datagram `incarnation`, `sequence` of the one it is sent to. */
struct challenge {
    uint64_t incarnation;
    uint64_t sequence;
    uint64_t nonce; /* To be in every datagram sent to us from now on. */
};

enum election_kind {
    ELECTION_PEER,    /* I am here; `eligible`: and have two-way links with a majority. */
    ELECTION_STAND,   /* I stand for `term`: vote for me (Raft's RequestVote). */
    ELECTION_GRANT,   /* You have my vote for `term`, as of `round`. */
    ELECTION_REFUSE,  /* I know of `term`, or have promised otherwise. */
    ELECTION_RENEW,   /* I hold `term`: renew your vote; `round` (Raft's empty AppendEntries). */
    ELECTION_RELEASE, /* I give up `term`. */
    ELECTION_KINDS
};

struct election_message {
    enum election_kind kind;
    struct term term;
    uint64_t round;     /* Of STAND and RENEW, returned in GRANT. */
    bool eligible;      /* PEER */
    uint64_t heard_ago; /* PEER: ms since I last accepted a message of yours; UINT64_MAX: never. */
    uint64_t cluster;   /* Hash of the monitors' names in order, lease, failure_timeout and
                           heartbeat_period. With another cluster file votes count nothing. */
};

enum order_kind {
    ORDER_STOP, /* Finish what is in flight and end, as with SIGTERM. */
    ORDER_KILL, /* End at once: the main loop hangs. */
    ORDER_KINDS
};

struct order {
    struct term term;
    enum order_kind kind;
    uint64_t incarnation; /* Of the node it is meant for; void for any other. */
};

enum health {
    HEALTH_UNKNOWN, /* Not heard yet. */
    HEALTH_STARTING,
    HEALTH_UP,
    HEALTH_SUSPECTED,  /* Silent for failure_timeout, or without progress for stall_timeout. */
    HEALTH_RESTARTING, /* Its driver is at work, or its first heartbeat is awaited. */
    HEALTH_BROKEN,     /* Several starts failed; further ones are tried. */
    HEALTH_STOPPED,    /* On purpose: it is not restarted. */
    HEALTH_STATES
};
extern const char *const health_names[HEALTH_STATES];

/* A node, as the leader sees it. */
struct monitored {
    char name[DATAGRAM_NAME_SIZE];
    enum node_role role;
    enum health state;
    uint64_t incarnation; /* 0: never heard. */
    uint64_t uptime_ms;
    uint64_t silent_ms; /* Since its last heartbeat. */
    uint32_t restarts;  /* By monitors, as far as this leader knows. */
    uint64_t resident_bytes;
    uint32_t job_count;
    char problem[DATAGRAM_TEXT_SIZE]; /* Why it could not be started lately; may be empty. */
};

struct view {
    struct term term; /* Number 0: there is no leader, and this is a follower's view. */
    char leader[DATAGRAM_NAME_SIZE]; /* Empty: none. */
    uint32_t node_total;             /* Of the cluster: this datagram has some of them. */
    struct monitored nodes[DATAGRAM_NODES_MAX];
    uint32_t node_count;
};

enum cluster_event_kind {
    HAPPENED_ELECTED,    /* `node` is leader. */
    HAPPENED_SUSPECTED,  /* `node` is silent; `number` ms. */
    HAPPENED_HUNG,       /* It sends heartbeats without progress; `number` ms. */
    HAPPENED_KILLED,     /* An operator says that it kills the node: chaos. */
    HAPPENED_RESTARTING, /* The driver has been told. */
    HAPPENED_FAILED,     /* It could not be started; `text`. */
    HAPPENED_REPLAYED,   /* It has replayed `number` records. */
    HAPPENED_RESUMED,    /* It is up again; `number` ms after the last sign of its predecessor. */
    HAPPENED_STOPPED,    /* On purpose. */
    HAPPENED_BROKEN,     /* It cannot be kept alive; `text`. */
    HAPPENED_KINDS
};
extern const char *const cluster_event_names[HAPPENED_KINDS];

struct cluster_event {
    struct event_place place;
    enum cluster_event_kind kind;
    uint64_t age_ms; /* An age, since clocks of two hosts differ. */
    char node[DATAGRAM_NAME_SIZE];
    uint64_t incarnation;
    uint64_t number;
    char text[DATAGRAM_TEXT_SIZE];
};

struct event_list {
    struct cluster_event events[DATAGRAM_EVENTS_MAX]; /* In order. */
    uint32_t event_count;
};

enum ask_kind {
    ASK_VIEW,   /* All nodes. */
    ASK_STOP,   /* Stop `node`, and do not restart it. Only a leader does it. */
    ASK_KILLED, /* `node` is about to be killed by an operator: for the timeline. */
    ASK_KINDS
};

struct ask {
    enum ask_kind kind;
    char node[DATAGRAM_NAME_SIZE];
};

struct datagram {
    enum datagram_kind kind;
    char from[DATAGRAM_NAME_SIZE];
    char to[DATAGRAM_NAME_SIZE];
    uint64_t incarnation; /* Of the sender: later starts have higher ones, if its clock allows. */
    uint64_t sequence;    /* Of the sender's datagrams to this receiver, 1.. */
    uint64_t nonce;       /* The receiver's last challenge to the sender; 0: none yet. */
    union {
        struct heartbeat heartbeat;
        struct challenge challenge;
        struct election_message election;
        struct order order;
        struct view view;
        struct event_list events;
        struct ask ask;
    };
};

/* Compares by number, then by holder: <0, 0, >0. */
int term_compare(struct term a, struct term b);
int event_place_compare(struct event_place a, struct event_place b);

/* Appends to `out`, which is emptied first; at most DATAGRAM_BYTES_MAX. Names and texts must be
 * terminated within their arrays; names must be names, but a view's leader and an ask's node, which
 * may be empty; events must be in order. Control bytes of texts become blanks. */
void datagram_encode(const struct datagram *datagram, const struct datagram_key *key,
                     struct buf *out);
/* Checks the MAC before anything else, in constant time. */
MUST_USE status datagram_decode(struct text bytes, const struct datagram_key *key,
                                struct datagram *out, struct error *err);

#endif
