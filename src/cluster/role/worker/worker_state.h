/* SPDX-License-Identifier: Apache-2.0 */
/* worker_state.h - a worker while it runs; shared by worker*.c alone.
 *
 * From the lowest to the highest; a file calls those above it in this list, and none below:
 *
 *     worker_send.c     messages and log records
 *     worker_history.c  milestones of jobs, for people
 *     worker_job.c      what a job is here: streams in, folds, copies
 *     worker_repair.c   missing messages, and which node to ask
 *     worker_apply.c    each numbered message once
 *     worker_emit.c     what finished folds send
 *     worker_advance.c  folds finished in turn
 *     worker_slots.c    jobs come and go
 *     worker_map.c      chunks in flight
 *     worker.c          events
 */
#ifndef CLUSTER_ROLE_WORKER_WORKER_STATE_H
#define CLUSTER_ROLE_WORKER_WORKER_STATE_H

#include "engine/base/array.h"
#include "engine/base/fault_injection.h"
#include "engine/base/number_set.h"
#include "engine/exec/fold/fold.h"
#include "cluster/role/worker/mapper.h"
#include "cluster/role/job_layout.h"
#include "cluster/role/worker/output_buffer.h"
#include "cluster/role/worker/worker.h"
#include "engine/plan/counters.h"

enum {
    WORKER_QUEUES_MAX = 16,
    WORKER_ATTEMPTS = 8,         /* Barriers of so many attempts can be on their way. */
    WORKER_REREQUESTS_MAX = 256, /* Chunks of a scan requested again at once. */
    WORKER_TOMBSTONES = 64,
    WORKER_POISON_ALONE = 2,  /* Starts after which an item is taken alone, */
    WORKER_POISON_STARTS = 5, /* and after which it fails its job. */
    WORKER_SUSPECTS = 128,    /* As many as the intent record of a process can hold. */
    WORKER_MILESTONES = 24,   /* Of one job. */
    WORKER_ENDED = 32,        /* Jobs that have ended, and are remembered. */
    WORKER_AHEAD_MAX =
        1 << 20 /* Chunks beyond the first missing one; bounds the set of applied numbers. */
};

/* An attempt to find out which chunks are lost: one barrier through every work queue. */
struct barrier_attempt {
    uint64_t id;    /* 0: none. */
    uint64_t limit; /* Numbers below were sent before the barriers. */
};

/* What one source sends to this worker. */
struct input_stream {
    enum stream_source kind;
    uint32_t source;
    uint32_t producer;
    struct number_set applied;
    uint64_t sum; /* Of batch_hash of the applied numbers. */
    uint64_t number_limit;
    bool ended;
    uint64_t end_count;
    uint64_t end_sum;
    bool complete;
    /* Repair. */
    uint64_t sent;             /* Scans: so many are known to have been sent. */
    uint64_t last_progress_ms; /* Something new came, or was asked for. */
    uint32_t delay_ms;         /* Before asking again; 0: not asked since the last progress. */
    uint64_t asked_to;         /* Folds: numbers below were sent to us or asked for. */
    struct barrier_attempt attempts[WORKER_ATTEMPTS];
    uint32_t next_attempt;
    /* By work queue: a number below this that is not applied is not in that queue any more. */
    uint64_t acknowledged_barriers[WORKER_QUEUES_MAX];
    uint64_t rerequest_attempt;
    uint64_t rerequests[WORKER_REREQUESTS_MAX];
    uint32_t rerequest_count;
};

/* What a finished shard sends, encoded, by number and worker. */
struct emission {
    struct output_buffer
        messages;   /* [number * (worker_count + 1) + slot]: a worker's, or the copy. */
    uint64_t count; /* Of numbers. */
    uint64_t *sums; /* By slot. */
};

enum shard_state { SHARD_OPEN, SHARD_FINISHED, SHARD_EMITTED };

/* A shard of a fold that is ours. */
struct owned_shard {
    uint32_t fold;
    uint32_t shard;
    enum shard_state state;
    struct fold_shard *rows;
    struct emission emission;
    struct output_buffer results; /* Of a result stage: its batches, encoded. */
    bool is_result;
};

/* The copy of a finished fold, for maps. */
struct copy {
    struct fold fold; /* The original, changed to collect its output. */
    struct fold_shard *rows;
    bool ready;
};

/* A milestone, and when it was reached. */
struct reached {
    enum milestone_kind kind;
    uint64_t at_ms;
    uint64_t number;
};

struct job_history {
    struct reached reached[WORKER_MILESTONES];
    uint32_t count;
    uint64_t phases; /* A bit for each that has begun. */
};

struct ended_job {
    char id[ROLE_NAME_SIZE];
    struct job_history history;
};

struct worker_job {
    struct map_job map; /* First: the mappers see only this. */
    struct worker *worker;
    char id[ROLE_NAME_SIZE];
    uint32_t self; /* Our number in the manifest; worker_count: we only map for it. */
    struct arena arena;
    struct spill_store *store; /* Where folds spill to; NULL: nowhere. */
    struct input_stream *streams;
    uint32_t stream_count;
    struct owned_shard *shards;
    uint32_t shard_count;
    struct copy *copies; /* By fold. */
    struct value *scalars;
    struct join_table *sides;
    struct counters counters;
    bool moved; /* Something became complete: folds may be finished. */
    bool failed;
    struct error error;
    bool complete;
    uint64_t created_ms;
    uint64_t lease_ms;
    uint64_t duplicates;
    uint64_t replayed;
    struct job_history history;
};

enum in_flight_kind { IN_FLIGHT_CHUNK, IN_FLIGHT_BARRIER };

/* Something taken from a work queue and not yet acknowledged. */
struct in_flight {
    enum in_flight_kind kind;
    uint64_t id;
    uint64_t delivery;
    struct map_task *task; /* Not yet started, or NULL. */
    struct map_job *job;   /* Kept; NULL for barriers. */
    uint32_t scan;
    uint64_t number;
    uint64_t item;
    bool started;
    bool alone;
    uint32_t unconfirmed; /* Outputs that the broker has not confirmed. */
    bool mapped;
    struct buf barrier;         /* To be forwarded, */
    char asker[ROLE_NAME_SIZE]; /* to this node. */
};

/* A message whose confirmation is awaited before what it came from is acknowledged. */
struct awaited_confirm {
    uint64_t token;
    uint64_t in_flight; /* Its id. */
};

/* A job that was removed; see worker_slots.c. */
struct tombstone {
    char id[ROLE_NAME_SIZE];
    uint64_t hash;
    uint64_t until_ms;
    bool cancelled; /* A client cancelled it: it is not begun anew. */
};

/* An item that was in flight when the process ended, and how often. */
struct suspect {
    uint64_t item;
    uint32_t starts;
};

struct worker {
    struct worker_config config;
    char name[ROLE_NAME_SIZE];
    ARRAY_OF(struct worker_job *) jobs;
    ARRAY_OF(struct in_flight) in_flight; /* In the order they were taken. */
    ARRAY_OF(struct awaited_confirm) confirms;
    uint64_t next_id;
    uint64_t now_ms;
    uint64_t started_ms;
    uint64_t last_tick_ms;
    uint64_t paused_until_ms;
    uint64_t paused_for; /* The manifest of the unknown job that we last paused for. */
    bool started;
    bool connected;
    bool blocked; /* The broker takes nothing: renewals can't come either. */
    bool working; /* We take from the work queues. */
    bool stopping;
    bool replaying;
    bool exited;
    struct tombstone tombstones[WORKER_TOMBSTONES];
    uint32_t next_tombstone;
    struct ended_job ended[WORKER_ENDED];
    uint32_t next_ended;
    struct suspect suspects[WORKER_SUSPECTS];
    uint32_t suspect_count;
    struct arena arena; /* Of one step. */
};

/* ---- worker_send.c ---- */

/* Tells the driver that the step makes progress: a part of bounded length is done. */
void worker_alive(const struct worker *worker);
/* A message of the worker, about a job or (NULL) none. */
struct message worker_message(const struct worker *worker, enum message_kind kind,
                              const struct worker_job *job);
/* Encodes and sends; no confirmation is awaited. */
void worker_send(struct effects *effects, struct text to, const struct message *message);
/* Moves a message into the log of its job. */
void worker_log(const char *job, struct buf *bytes, struct effects *effects);

/* ---- worker_history.c ---- */

void worker_history_note(struct worker_job *job, enum milestone_kind kind, uint64_t number);
/* The job was read back from a log that was begun so long ago. */
void worker_history_begun(struct worker_job *job, uint64_t age_ms);
/* A chunk of the phase (0..) is applied; only the first of each is worth a note. */
void worker_history_phase(struct worker_job *job, uint32_t phase);
/* The job is about to be removed: its history stays. */
void worker_history_end(struct worker_job *job, enum milestone_kind kind);
/* The milestones of `job`, or (NULL) of one with this id that has ended; in the step's arena. */
void worker_history_tell(struct worker *worker, const struct worker_job *job, struct text id,
                         struct message_jobs *jobs);

/* ---- worker_job.c ---- */

MUST_USE status worker_job_create(struct worker *worker, struct job_layout *layout,
                                  struct worker_job **out, struct error *err);
/* The worker forgets the job; its memory is freed when no map uses it any more. */
void worker_job_end(struct worker_job *job);
void worker_job_fail(struct worker_job *job, const struct error *err, struct effects *effects);
/* The same, naming the fold's query, and what helps when memory is out. */
void worker_job_fail_fold(struct worker_job *job, uint32_t fold, struct error *err,
                          struct effects *effects);
/* NULL: nothing of that source comes here; that shard is not ours. */
struct input_stream *worker_job_stream(struct worker_job *job, enum stream_source kind,
                                       uint32_t source, uint32_t producer);
struct owned_shard *worker_job_shard(struct worker_job *job, uint32_t fold, uint32_t shard);

/* ---- worker_repair.c ---- */

/* Answers a SYNC with STATUS, and begins to repair losses. */
void worker_sync(struct worker *worker, struct worker_job *job, struct text from,
                 const struct message_sync *sync, struct effects *effects);
void worker_barrier_returned(struct worker *worker, struct worker_job *job,
                             const struct message_barrier *barrier, struct effects *effects);
/* After new numbers: asks for the next ones of a stream that is sent in windows. */
void worker_ask_on(struct worker_job *job, struct input_stream *stream, struct effects *effects);
void stream_forget_barriers(struct input_stream *stream);

/* ---- worker_apply.c ---- */

/* Applies a message that changes a job; tells whether it brought something new, which is to be
 * logged. */
bool worker_apply(struct worker_job *job, const struct message *message, struct effects *effects);

/* ---- worker_emit.c ---- */

/* Makes what a finished shard emits, keeps it, and sends it on. */
void worker_job_emit(struct worker_job *job, struct owned_shard *owned, struct effects *effects);
void worker_job_ask(struct worker_job *job, struct text from, const struct message_ask *ask,
                    struct effects *effects);
void worker_job_fetch(struct worker_job *job, struct text from, const struct message_fetch *fetch,
                      struct effects *effects);

/* ---- worker_advance.c ---- */

/* Finishes and emits all that is complete; to be called when something new came in. */
void worker_job_advance(struct worker_job *job, struct effects *effects);
/* Whether a map of this scan can be done here. */
bool worker_job_can_map(const struct worker_job *job, uint32_t scan);
/* Applies a message; a new one is logged (the bytes are moved), and the job advances. */
void worker_apply_and_log(struct worker_job *job, const struct message *message, struct buf *bytes,
                          struct effects *effects);
/* The same for a message that was made here for ourselves. */
void worker_receive(struct worker *worker, struct worker_job *job, struct buf *bytes,
                    struct effects *effects);

/* ---- worker_slots.c ---- */

struct worker_job *worker_find(struct worker *worker, struct text id);
/* Whether the job was here, however long ago, as far as we remember. */
bool worker_has_tombstone(const struct worker *worker, struct text id, uint64_t hash);
/* Makes the job of a MANIFEST and gives it a slot. */
MUST_USE status worker_make_job(struct worker *worker, const struct message *message,
                                struct worker_job **out, struct error *err);
/* Answer MANIFEST (whose bytes are moved into the log), REMOVE and LIST. */
void worker_store(struct worker *worker, const struct message *message, struct buf *bytes,
                  struct effects *effects);
void worker_remove(struct worker *worker, const struct message *message, struct effects *effects);
void worker_list(struct worker *worker, const struct message *message, struct effects *effects);
/* Time passes; jobs whose lease is over are removed. */
void worker_leases_pass(struct worker *worker, struct effects *effects);

/* ---- worker_map.c ---- */

void worker_take(struct worker *worker, struct bus_delivery *delivery, struct effects *effects);
void worker_mapped(struct worker *worker, struct map_task *task, struct effects *effects);
void worker_confirmed(struct worker *worker, uint64_t token, struct effects *effects);
void worker_start_maps(struct worker *worker, struct effects *effects);
/* How often the process started with this item in flight. */
uint32_t worker_starts_of(const struct worker *worker, uint64_t item);
void in_flight_done(struct in_flight *in_flight);

#endif
