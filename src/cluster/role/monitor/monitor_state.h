/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_state.h - the memory of a monitor, and its files from the lowest to the highest:
 *
 *     monitor_send.c       effects out: the log, datagrams, the election's messages, events
 *     monitor_detection.c  failure detection: the health of each node, its restarts
 *     monitor_tell.c       views and events to gateways, monitors and operators, and from the
 * leader monitor.c            events in
 *
 * A file calls only what stands before it. Only these include this header.
 */
#ifndef CLUSTER_ROLE_MONITOR_MONITOR_STATE_H
#define CLUSTER_ROLE_MONITOR_MONITOR_STATE_H

#include "engine/base/random.h"
#include "cluster/role/monitor/election.h"
#include "cluster/role/cluster_history.h"
#include "cluster/role/replay_guard.h"
#include "cluster/role/monitor/monitor.h"

enum {
    OPERATORS_MAX = 64,
    BACKOFF_FIRST_MS = 200,
    BACKOFF_LAST_MS = 5000,
    UPTIME_ENOUGH_MS = 10000, /* A node that is up for so long has no failed starts any more. */
    VAIN_STARTS = 5,          /* After so many failed starts it is broken. */
    AWAIT_DOUBLINGS = 3,      /* Of start_timeout, one for each failed start. */
    OPERATOR_IDLE_MS = 5000,  /* After that its place may be given to another. */
    DIFFERS_PAUSE_MS = 60000, /* Between two lines about one monitor's cluster file. */
    VIEW_PERIOD_MS = 500,
    VIEW_PAUSE_MS = 50 /* Between two, however much changes. */
};
#define NO_POSITION UINT32_MAX

struct target {
    char name[DATAGRAM_NAME_SIZE];
    enum node_role role;
    uint32_t node;     /* Of the cluster's nodes; */
    uint32_t position; /* of a monitor, among the monitors, else NO_POSITION. */
    enum health state;

    /* A monitor's heartbeats and its election have sequences of their own, since they come from two
     * threads and sockets; so have the datagrams that we send to either. */
    struct replay_guard heartbeats;
    struct replay_guard talk;
    struct replay_sender to_node;
    struct replay_sender to_peer;
    struct monitor_address address; /* Where its heartbeats come from. */

    uint64_t incarnation;       /* 0: never heard. */
    struct heartbeat heartbeat; /* The last one. */
    uint64_t silent_ms;         /* Since then, or since the beginning; in ticks, */
    uint64_t stuck_ms;          /* since it last had progress, */
    uint64_t uptime_ms;         /* and since it is up. */

    bool is_hung;        /* Suspected because it makes no progress. */
    bool is_lost;        /* From the last sign of it until it is up again: */
    uint64_t lost_ms;    /* for so long; */
    uint64_t lost;       /* this incarnation. */
    bool suspicion_told; /* The history has the suspicion. */
    uint64_t stopped;    /* The incarnation that was stopped on purpose, when one was. */

    uint64_t
        condemned;   /* The incarnation that is ordered to end itself while it is hung; 0: none. */
    bool is_driven;  /* The driver is at work. */
    bool is_awaited; /* It was started and has not been heard since, */
    uint64_t awaited_ms; /* for so long. */
    bool start_failed;   /* A process may hold its place: kill it next time. */
    bool stops_next;     /* To be stopped at its first heartbeat: the driver was faster. */
    bool broken_told;
    uint32_t attempts;   /* To start it since it last lived long enough. */
    uint32_t backoff_ms; /* After the next attempt; 0: BACKOFF_FIRST_MS. */
    uint64_t retry_ms;   /* No attempt before. */
    uint32_t restarts;
    char problem[DATAGRAM_TEXT_SIZE];

    struct event_place known;   /* The last event it has. */
    struct event_place offered; /* The last event of ours that it was sent as a new leader. */

    /* Of a monitor: */
    bool differs;             /* Its cluster file is another: it is not heard. */
    uint64_t differs_said_ms; /* 0: that was not said yet. */
};

struct operator_entry {
    char name[DATAGRAM_NAME_SIZE]; /* Empty: free. */
    struct replay_guard guard;
    struct replay_sender sender;
    struct monitor_address address; /* Size 0: it has not answered a challenge yet. */
    bool wants_view;
    uint64_t used_ms;
};

struct monitor {
    struct monitor_config config; /* Its name and nodes are not to be used: they were borrowed. */
    char name[DATAGRAM_NAME_SIZE];
    uint32_t self;
    struct target *targets;                   /* Of config.node_count. */
    uint32_t monitors[ELECTION_MONITORS_MAX]; /* Their nodes, by position. */
    struct election election;
    uint64_t cluster; /* Hash of the settings that all monitors must share: see election_message. */
    enum election_state state_said;
    struct term adopted; /* The latest term whose view we took. */
    uint64_t settled_ms; /* A leader drives nothing before. */
    uint32_t event_sequence;
    struct cluster_history history;
    struct operator_entry operators[OPERATORS_MAX];
    uint64_t tick_ms;
    uint64_t view_ms; /* When the last view was sent; */
    bool has_news;    /* something has changed since. */
    struct random random;
};

/* One step's surroundings, since nearly everything needs all of them. */
struct monitor_turn {
    struct monitor *monitor;
    uint64_t now_ms;
    struct monitor_effects *effects;
};

/* ---- monitor_send.c ---- */

struct monitor_effect *monitor_effect_add(struct monitor_turn *turn, enum monitor_effect_kind kind);
void monitor_say(struct monitor_turn *turn, enum say_level level, const char *format, ...)
    PRINTF_LIKE(3, 4);
struct target *monitor_find(struct monitor *monitor, const char *name);
/* A datagram to the node's heartbeat, stamped; to be filled in. NULL: it is not known where. */
struct datagram *monitor_write_node(struct monitor_turn *turn, struct target *target,
                                    enum datagram_kind kind);
/* The same to another monitor itself. */
struct datagram *monitor_write_peer(struct monitor_turn *turn, struct target *target,
                                    enum datagram_kind kind);
struct datagram *monitor_write_operator(struct monitor_turn *turn, struct operator_entry *entry,
                                        enum datagram_kind kind);
/* Sends a challenge where one is due. */
enum replay_guard_answer monitor_check_replay(struct monitor_turn *turn, struct replay_guard *guard,
                                              const struct monitor_event *event,
                                              bool older_is_welcome);
void monitor_send_election(struct monitor_turn *turn, const struct election_outs *outs);
/* Leads, and has heard objections for long enough to order and drive. */
bool monitor_acts(const struct monitor *monitor, uint64_t now_ms);
void monitor_see_term(struct monitor_turn *turn, struct term term);

/* An event happens: it goes into the history and the log, and from there to all; only while we
 * lead. */
void monitor_record(struct monitor_turn *turn, enum cluster_event_kind kind,
                    const struct target *target, uint64_t number, const char *text);

/* ---- monitor_detection.c ---- */

void target_heartbeat(struct monitor_turn *turn, struct target *target,
                      const struct datagram *datagram);
void target_tick(struct monitor_turn *turn, struct target *target, uint64_t elapsed_ms);
/* The driver is done; `error` NULL: it did what it was told. */
void target_driven(struct monitor_turn *turn, struct target *target, const struct error *error);
/* What the driver had started has ended by itself. */
void target_ended(struct monitor_turn *turn, struct target *target, const struct error *error);
/* By order of an operator. */
void target_stop(struct monitor_turn *turn, struct target *target);
/* We have become leader. */
void target_take_over(struct target *target);
/* Another monitor says that it was stopped on purpose; or that it is to run again. */
void target_adopt_stop(struct monitor_turn *turn, struct target *target,
                       const struct monitored *monitored);
void target_adopt_want(struct monitor_turn *turn, struct target *target);
void target_describe(const struct target *target, struct monitored *out);

/* ---- monitor_tell.c ---- */

void tell_tick(struct monitor_turn *turn);
void tell_operator(struct monitor_turn *turn, struct operator_entry *entry);
/* Of a view that was overtaken (REPLAY_LATE) only stops count. */
void tell_hear_view(struct monitor_turn *turn, struct target *from, const struct view *view,
                    enum replay_guard_answer answer);
void tell_hear_events(struct monitor_turn *turn, struct target *from,
                      const struct event_list *events);

#endif
