/* SPDX-License-Identifier: Apache-2.0 */
/* event.h - events that a role is given, and effects that it returns.
 *
 * A role is a function: step(state, event) -> effects. It reads no clock, opens nothing, starts
 * nothing. The time is in the event, randomness comes from a seed given at creation, and the role
 * returns its actions as effects, in order. The drivers in node/ carry them out in the real world,
 * those in sim/ in a simulated one; both return the outcomes as events. So the simulator tests the
 * code that runs in a cluster, as raft's cowsql and TigerBeetle do with theirs.
 *
 * An effect that is not carried out because the process died is as if the role had died before it:
 * so order matters. A message is logged before it is acknowledged, a chunk's outputs are confirmed
 * before the chunk is acknowledged.
 *
 * The driver of a worker records an intent (message_item) while it steps a delivery or record and
 * while it maps a task: after a crash, the intents that are left name the possible causes.
 *
 * Events, client events and effects are tagged unions: a kind, and one member that is valid with
 * it. The comment of a kind names its member; a kind without one has nothing to say but itself.
 *
 * Memory: the holder of an event or effect owns its bytes; a receiver that keeps them moves the buf
 * out and leaves an empty one.
 */
#ifndef CLUSTER_ROLE_EVENT_H
#define CLUSTER_ROLE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "cluster/wire/api.h"
#include "cluster/wire/bus_event.h"
#include "cluster/wire/datagram.h"

enum { ROLE_NAME_SIZE = 65 }; /* Terminated; of jobs, nodes and queries. */

/* ---- events of gateways and workers ---- */

enum event_kind {
    EVENT_RECORD,     /* At start: one `record` of a job's log, in order. */
    EVENT_INTENT,     /* At start: an `intent` that the process had not released when it ended. */
    EVENT_STARTED,    /* All intents and records have been given. */
    EVENT_BUS,        /* `bus`: the connection to the broker, deliveries, confirms. */
    EVENT_MAPPED,     /* `task` is done. */
    EVENT_LOG_FAILED, /* `log_failed` */
    EVENT_REQUEST,    /* Gateway: `request` */
    EVENT_GONE,       /* Gateway: the client of request `gone_id` does not wait any more. */
    EVENT_VIEW,       /* Gateway: the monitors' leader says how some nodes are: `view`. */
    EVENT_HAPPENED,   /* Gateway: the monitors' leader says what happened: `happened`. */
    EVENT_TICK,       /* Some time has passed. */
    EVENT_STOP        /* Finish what is in flight, then EFFECT_EXIT. */
};

struct map_task;

struct event_record {
    const char *job; /* Borrowed for the step. */
    struct buf bytes;
    uint64_t age_ms; /* Of the job's log, with its first record; 0: not known. */
};

struct event_intent {
    uint64_t item; /* message_item of the message that was in flight. */
    uint32_t starts;
};

struct event_log_failed {
    const char *job; /* Its log can't be written. Borrowed for the step, as is: */
    const struct error *error;
};

struct event_request {
    uint64_t id;
    const struct api_request *api; /* Borrowed for the step. */
    struct buf body;               /* What api->body lies in; it may be taken. */
};

struct event {
    enum event_kind kind;
    uint64_t now_ms; /* Never goes back; says nothing about the time of day. */
    union {
        struct event_record record;
        struct event_intent intent;
        struct bus_event bus;
        struct map_task *task;
        struct event_log_failed log_failed;
        struct event_request request;
        uint64_t gone_id;
        const struct view *view; /* Borrowed for the step, as is: */
        const struct event_list *happened;
    };
};

/* Whether it is of the bus and of this kind. */
static inline bool event_is_bus(const struct event *event, enum bus_event_kind kind)
{
    return event->kind == EVENT_BUS && event->bus.kind == kind;
}

/* Frees bytes that the step did not take. */
void event_done(struct event *event);

/* ---- events of the client ---- */

enum client_event_kind {
    CLIENT_STARTED,
    CLIENT_REPLY, /* `reply` */
    CLIENT_READ,  /* `read` */
    CLIENT_TICK,
    CLIENT_CANCEL, /* The user gives up. */
};

/* A chunk of a scan, read from its file. */
struct client_chunk {
    uint32_t scan;
    uint64_t number;
    bool is_last;      /* Of its scan: no chunk follows; also said of a scan without chunks, */
    bool is_none;      /* when this is all there is to say. */
    uint64_t checksum; /* hash_bytes of the body. */
    struct buf body;   /* As in cluster/wire/message.h. */
};

struct client_reply {
    uint64_t request_id;
    struct api_reply *reply;   /* Its body may be moved away. NULL: the request failed, */
    const struct error *error; /* for this reason, if one is known. */
};

struct client_read {
    struct client_chunk *chunk; /* Its body may be moved away. NULL: it can't be read, */
    const struct error *error;  /* for this reason. */
};

struct client_event {
    enum client_event_kind kind;
    uint64_t now_ms;
    union {
        struct client_reply reply;
        struct client_read read;
    };
};

/* ---- effects ---- */

enum effect_kind {
    EFFECT_SEND,       /* `send` */
    EFFECT_REVOKE,     /* The message with `revoked_token` is not published again. */
    EFFECT_ACK,        /* `delivery` is acknowledged. */
    EFFECT_WORK,       /* `takes_work`: consume from the work queues from here on, or do not. */
    EFFECT_LOG,        /* `log` */
    EFFECT_LOG_REMOVE, /* Remove the folder of `removed_job`. */
    EFFECT_MAP,        /* `task` */
    EFFECT_REPLY,      /* Gateway: `reply` */
    EFFECT_REQUEST,    /* Client: `request` */
    EFFECT_READ,       /* Client: `read`; comes back as CLIENT_READ. */
    EFFECT_JOURNAL,    /* Client: append `journal`, a CLIENT_JOURNAL_RECORD. */
    EFFECT_RESULT,     /* Client: `result`, in order. */
    EFFECT_AUDIT,      /* Client: `audit` */
    EFFECT_PROGRESS,   /* Client: `progress` */
    EFFECT_DONE,       /* Client: the job has ended; `outcome`->code STATUS_OK: well. */
    EFFECT_MEASURE,    /* Gateway: ask the broker for the length of all queues. */
    EFFECT_SAY,        /* For the log: `say` */
    EFFECT_EXIT        /* Nothing is in flight any more. */
};

enum say_level { SAY_ERROR, SAY_WARN, SAY_INFO, SAY_DEBUG };

struct client_progress {
    uint64_t sent_chunks;    /* Of all scans, each counted once. */
    uint64_t applied_chunks; /* By all workers that need them. */
    uint64_t resent_chunks;
    uint32_t phase; /* 1.. */
    uint32_t phase_count;
    char state[32]; /* As the gateway names it. */
};

struct effect_send {
    char to[ROLE_NAME_SIZE]; /* Whose inbox; empty: work queue `work`. */
    uint32_t work;
    uint64_t token; /* Not 0: BUS_CONFIRMED or BUS_RETURNED is to follow. */
    struct buf bytes;
};

struct effect_log {
    char job[ROLE_NAME_SIZE];
    struct buf bytes; /* One record. */
};

struct effect_reply {
    uint64_t request_id;
    struct api_reply api;
};

struct effect_request {
    uint64_t id;
    uint32_t gateway;       /* Its number. */
    struct api_request api; /* Texts live as long as the list; api.body is empty: it is */
    struct buf body;
};

struct effect_read {
    uint32_t scan;
    uint64_t number; /* Of the chunk. */
};

struct effect_result {
    uint32_t query;
    uint64_t number; /* Of the batch, */
    uint64_t count;  /* of so many. */
    struct buf bytes;
};

struct effect_audit {
    uint32_t number; /* Of the worker whose part it is, */
    uint32_t count;  /* of so many. */
    struct buf bytes;
};

struct effect_say {
    enum say_level level;
    struct buf line; /* key=value words. */
};

struct effect {
    enum effect_kind kind;
    union {
        struct effect_send send;
        uint64_t revoked_token;
        uint64_t delivery;
        bool takes_work;
        struct effect_log log;
        char removed_job[ROLE_NAME_SIZE];
        struct map_task *task;
        struct effect_reply reply;
        struct effect_request request;
        struct effect_read read;
        struct buf journal;
        struct effect_result result;
        struct effect_audit audit;
        struct client_progress progress;
        const struct error *outcome; /* In the list's arena. */
        struct effect_say say;
    };
};

/* In the order in which they are to be carried out. Memory that runs out is sticky: `failed`; the
 * process then has to end, as if it had been killed. */
struct effects {
    struct effect *items;
    uint32_t count;
    uint32_t capacity;
    struct arena arena; /* Of texts in requests and replies; emptied by effects_reset. */
    bool failed;
    struct effect unseen; /* What effects_add gives when memory is out. */
};

/* A zeroed list is empty. The effect returned is zeroed but for its kind and valid until the next
 * one is added; never NULL: when memory is out it is `unseen`, which is never carried out. */
struct effect *effects_add(struct effects *effects, enum effect_kind kind);
/* A line for the log; the format is key=value words. */
void effects_say(struct effects *effects, enum say_level level, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* Moves an effect out of the list, whose memory moves when a further one is added. */
struct effect effects_take(struct effects *effects, uint32_t index);
void effect_done(struct effect *effect);
/* Frees what was not moved away; keeps the memory of the list. */
void effects_reset(struct effects *effects);
void effects_done(struct effects *effects);

#endif
