/* event.h - what happens to a role, and what it wants done.
 *
 * A role is a function: step(state, event) -> effects. It reads no clock, opens nothing, starts
 * nothing: the time is in the event, chance comes from a seed given at creation, and what is to be
 * done is said in effects, in order. worker_node.c and its like in node/ carry them out in the real
 * world, sim/ in a simulated one; both hand back what came of it as events.
 *
 * An effect that is not carried out because the process died is as if the role had died before it:
 * so order matters. A message is logged before it is acknowledged, a chunk's outputs are confirmed
 * before the chunk is acknowledged.
 *
 * Whoever drives a worker notes what is in flight (message_item) while a delivery or record is
 * stepped and while a task is mapped, so that after a crash it is known what may have caused it.
 *
 * Memory: bytes in events and effects are owned by whoever holds the struct; taking them over is
 * moving the buf and leaving an empty one.
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
#include "cluster/wire/datagram.h"

enum { ROLE_NAME_SIZE = 65 }; /* Terminated; of jobs, nodes and queries. */

/* ---- events of gateways and workers ---- */

enum event_kind {
    EVENT_RECORD,    /* At start: one record of a job's log, in order; `bytes`. */
    EVENT_INTENT,    /* At start: `item` was in flight when the process ended; `count` starts. */
    EVENT_STARTED,   /* All records and notes have been given. */
    EVENT_CONNECTED, /* To the broker. */
    EVENT_DISCONNECTED,
    EVENT_BLOCKED,    /* The broker takes nothing for now (`blocked`), or does again. */
    EVENT_DELIVERY,   /* `bytes` of `delivery`; from_work: from work queue `work`. */
    EVENT_CONFIRMED,  /* `token` */
    EVENT_RETURNED,   /* `token`: there is no such queue. */
    EVENT_MAPPED,     /* `task` is done. */
    EVENT_LOG_FAILED, /* `job`'s log can't be written: `error`. */
    EVENT_REQUEST,    /* Gateway: `request` number `request_id`; its body may lie in `bytes`, which
                         may then be taken. */
    EVENT_GONE,       /* Gateway: whoever made `request_id` does not wait any more. */
    EVENT_VIEW,       /* Gateway: the monitors' leader says how some nodes are: `view`. */
    EVENT_HAPPENED,   /* Gateway: the monitors' leader says what happened: `happened`. */
    EVENT_MEASURED,   /* Gateway: how long the queues are; `bytes` are struct queue_depth. */
    EVENT_TICK,       /* Some time has passed. */
    EVENT_STOP        /* Finish what is in flight, then EFFECT_EXIT. */
};

/* How many messages wait in a queue of the broker. */
struct queue_depth {
    char name[ROLE_NAME_SIZE + 8]; /* inbox.NODE or work.K */
    uint64_t messages;
    uint32_t consumers;
};

struct map_task;

struct event {
    enum event_kind kind;
    uint64_t now_ms; /* Never goes back; says nothing about the time of day. */
    uint64_t delivery;
    bool from_work;
    uint32_t work;
    uint64_t token;
    uint64_t request_id;
    bool blocked;
    uint64_t item; /* message_item of what was in flight. */
    uint32_t count;
    uint64_t age_ms; /* Of a job's log, with its first record; 0: not known. */
    struct buf bytes;
    struct map_task *task;
    const struct api_request *request; /* Borrowed for the step, as are these two: */
    const struct view *view;
    const struct event_list *happened;
    const char *job;
    const struct error *error;
};

/* ---- events of the client ---- */

enum client_event_kind {
    CLIENT_STARTED,
    CLIENT_REPLY, /* To `request_id`: `reply`, or `failed`: the gateway was not reachable. */
    CLIENT_CHUNK, /* `chunk` was read, or `error`. */
    CLIENT_TICK,
    CLIENT_CANCEL, /* The user wants no more. */
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

struct client_event {
    enum client_event_kind kind;
    uint64_t now_ms;
    uint64_t request_id;
    bool failed;
    struct api_reply *reply;    /* Its body may be moved away. */
    struct client_chunk *chunk; /* Its body may be moved away. */
    const struct error *error;
};

/* ---- effects ---- */

enum effect_kind {
    EFFECT_SEND,       /* `bytes` to inbox `to`, or work queue `work`; `token` != 0: tell me. */
    EFFECT_REVOKE,     /* `token`: don't publish it again. */
    EFFECT_ACK,        /* `delivery` */
    EFFECT_WORK,       /* `yes`: take from the work queues from now on, or don't. */
    EFFECT_LOG,        /* Append `bytes` to the log of job `to`. */
    EFFECT_LOG_REMOVE, /* Remove job `to`'s folder. */
    EFFECT_MAP,        /* `task` */
    EFFECT_REPLY,      /* Gateway: answer `request_id` with `reply`. */
    EFFECT_REQUEST,    /* Client: `request` to gateway number `gateway`, as `request_id`. */
    EFFECT_READ,       /* Client: chunk `number` of scan `scan`; comes as CLIENT_CHUNK. */
    EFFECT_JOURNAL,    /* Client: remember `bytes`. */
    EFFECT_RESULT,     /* Client: `bytes`, batch `number` of query `query` of `count`, in order. */
    EFFECT_AUDIT,      /* Client: `bytes`: worker `number`'s part of the audit, of `count`. */
    EFFECT_PROGRESS,   /* Client: `progress` */
    EFFECT_DONE,       /* Client: the job has ended; `error.code` STATUS_OK: well. */
    EFFECT_MEASURE,    /* Gateway: ask the broker for the length of all queues. */
    EFFECT_SAY,        /* For the log: `bytes` is a line of key=value, at `level`. */
    EFFECT_EXIT        /* Nothing is in flight any more. */
};

enum say_level { SAY_ERROR, SAY_WARN, SAY_INFO, SAY_DEBUG };

struct client_progress {
    uint64_t sent_chunks;    /* Of all scans, each counted once. */
    uint64_t applied_chunks; /* By all who need them. */
    uint64_t resent_chunks;
    uint32_t phase; /* 1.. */
    uint32_t phase_count;
    char state[32]; /* As the gateway names it. */
};

struct effect {
    enum effect_kind kind;
    char to[ROLE_NAME_SIZE]; /* Empty: a work queue. */
    uint32_t work;
    uint64_t token;
    uint64_t delivery;
    uint64_t request_id;
    uint32_t gateway;
    uint32_t scan;
    uint32_t query;
    uint64_t number;
    uint64_t count;
    bool yes;
    enum say_level level;
    struct map_task *task;
    struct buf bytes;
    struct api_request request; /* Texts live as long as the list, but the body is `bytes`. */
    struct api_reply reply;     /* The body is `bytes`. */
    struct client_progress progress;
    struct error *error; /* In the list's arena. */
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
 * one is added; never NULL: when memory is out it is one that nobody will see. */
struct effect *effects_add(struct effects *effects, enum effect_kind kind);
/* A line for the log; the format is key=value words. */
void effects_say(struct effects *effects, enum say_level level, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* Frees what was not moved away; keeps the memory of the list. */
void effects_reset(struct effects *effects);
void effects_done(struct effects *effects);

#endif
