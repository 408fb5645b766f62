/* datagram.h - what nodes, monitors and operators tell each other over UDP.
 *
 *     node -> monitor        BEAT        I live, and how far I am
 *     monitor -> sender      CHALLENGE   answer with this number, so that I know it is you, now
 *     monitor -> monitor     ELECTION    see cluster/role/monitor/election.h
 *     leader -> node         ORDER       end yourself
 *     leader -> gateways and monitors   VIEW, EVENTS     how the nodes are; what happened
 *     operator -> monitor    ASK         how are the nodes, or: stop this one; the answer is VIEW
 *                                        and EVENTS
 *
 * Every datagram begins with who sends it to whom and ends with a code that only holders of the
 * cluster's key can make. A recorded one does no harm either: its sender's incarnation and sequence
 * and the receiver's `nonce` show that it is old; cluster/role/replay_guard.h decides.
 *
 * A datagram is at most DATAGRAM_BYTES_MAX bytes, so that networks don't take it apart; longer
 * lists are several datagrams, each of use by itself.
 *
 * Memory: a decoded datagram is a value: names are copied into it. Failure: STATUS_CORRUPT for
 * bytes that no encoder wrote, or that were sealed with another key.
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

/* An office: terms are ordered by number, then by who holds it. Number 0: none yet. */
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
    HEARTBEAT_STARTING, /* Reading back its log, connecting. */
    HEARTBEAT_UP,
    HEARTBEAT_STOPPING, /* It was asked to. */
    HEARTBEAT_STOPPED,  /* Its last words. */
    HEARTBEAT_STATES
};

struct heartbeat {
    enum node_role role;
    enum heartbeat_state state;
    struct term seen;  /* The highest term it has had an order or a view of. */
    uint64_t progress; /* Changes as long as its main loop turns, or reads a log back. */
    uint64_t uptime_ms;
    uint64_t replayed;       /* Records read back at this start. */
    uint64_t resident_bytes; /* Of memory. */
    uint32_t job_count;
    struct event_place events; /* Gateways and monitors: the last event they know. */
};

/* Answers the datagram `incarnation`, `sequence` of the one it is sent to. */
struct challenge {
    uint64_t incarnation;
    uint64_t sequence;
    uint64_t nonce; /* To be in everything that is sent to us from now on. */
};

enum election_kind {
    ELECTION_PEER,    /* I am here; `eligible`: and see a majority that sees me. */
    ELECTION_STAND,   /* I want `term`. */
    ELECTION_GRANT,   /* You have my vote for `term`, as of `round`. */
    ELECTION_REFUSE,  /* I know of `term`, or have promised otherwise. */
    ELECTION_RENEW,   /* I have `term`; keep your vote with me; `round`. */
    ELECTION_RELEASE, /* I give up `term`. */
    ELECTION_KINDS
};

struct election_message {
    enum election_kind kind;
    struct term term;
    uint64_t round;     /* Of STAND and RENEW, returned in GRANT. */
    bool eligible;      /* PEER */
    uint64_t heard_ago; /* PEER: ms since I last accepted something of you; UINT64_MAX: never. */
    uint64_t cluster;   /* A hash of the monitors' names in order, lease, the failure timeout and
                           heartbeat_period:   who has others has another cluster file, and its votes
                           count nothing. */
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
    HEALTH_UNKNOWN, /* Not heard of yet. */
    HEALTH_STARTING,
    HEALTH_UP,
    HEALTH_SUSPECTED,  /* Silent, or without progress, for longer than the failure timeout. */
    HEALTH_RESTARTING, /* Its driver is at work, or it is awaited. */
    HEALTH_BROKEN,     /* Was started several times in vain; tried further. */
    HEALTH_STOPPED,    /* On purpose: nobody starts it. */
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
    struct term term; /* Number 0: there is no leader, and a follower says what it sees. */
    char leader[DATAGRAM_NAME_SIZE]; /* Empty: none. */
    uint32_t node_total;             /* Of the cluster: this datagram has some of them. */
    struct monitored nodes[DATAGRAM_NODES_MAX];
    uint32_t node_count;
};

enum cluster_event_kind {
    HAPPENED_ELECTED,    /* `node` is leader. */
    HAPPENED_SUSPECTED,  /* `node` is silent; `number` ms. */
    HAPPENED_HUNG,       /* It heartbeats, and does nothing; `number` ms. */
    HAPPENED_KILLED,     /* By an operator's hand, who says so: chaos. */
    HAPPENED_RESTARTING, /* The driver has been told. */
    HAPPENED_FAILED,     /* It could not be started; `text`. */
    HAPPENED_REPLAYED,   /* It has read back `number` records. */
    HAPPENED_RESUMED,    /* It is up again; `number` ms after the last sign of its predecessor. */
    HAPPENED_STOPPED,    /* On purpose. */
    HAPPENED_BROKEN,     /* It can't be kept alive; `text`. */
    HAPPENED_KINDS
};
extern const char *const cluster_event_names[HAPPENED_KINDS];

struct cluster_event {
    struct event_place place;
    enum cluster_event_kind kind;
    uint64_t age_ms; /* Clocks differ; ages don't. */
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
    ASK_STOP,   /* `node` shall stop, and not be started. Only a leader does it. */
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
/* Checks the seal before anything else, in constant time. */
MUST_USE status datagram_decode(struct text bytes, const struct datagram_key *key,
                                struct datagram *out, struct error *err);

#endif
