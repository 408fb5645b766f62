/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - the role of a worker: maps chunks, applies each batch once, repairs losses.
 *
 * A worker takes chunks from the work queues and all other messages from its inbox. It logs a
 * message that changes a job before it acknowledges it, so that a restart is a replay. It keeps the
 * messages that its folds emit, and sends them again on request.
 *
 *     worker_create -> EVENT_INTENT* EVENT_RECORD* EVENT_STARTED -> worker_step* -> worker_destroy
 *
 * Pure: see event.h. A fold is a pipeline breaker with mergeable state; it is applied within the
 * step, since that needs no I/O. Maps are effects, because several threads can carry them out.
 */
#ifndef CLUSTER_ROLE_WORKER_WORKER_H
#define CLUSTER_ROLE_WORKER_WORKER_H

#include "cluster/role/event.h"

/* Mistakes that the simulator plants to show that it finds them; in what is installed none has an
 * effect. */
enum worker_mutation {
    WORKER_AS_IT_SHOULD,
    WORKER_APPLIES_TWICE,    /* No look at what was applied already. */
    WORKER_COUNTS_WRONG,     /* The end of a producer it emits is one too low. */
    WORKER_FORGETS_END,      /* Never says how many batches a fold emitted. */
    WORKER_IGNORES_SENT,     /* Misses nothing before END. */
    WORKER_USES_HALF_COPY,   /* Maps with a build side that is not complete. */
    WORKER_HOLDS_CHUNK,      /* Keeps a chunk that lacks a build side instead of dropping it. */
    WORKER_HAS_NO_LEASE,     /* Never deletes a job by itself. */
    WORKER_NEVER_DOUBLES,    /* Asks again and again after the same short delay. */
    WORKER_SENDS_ONE_BARRIER /* Through one work queue only, and takes it for all. */
};

struct spill_store;

struct worker_config {
    struct text name;
    const struct sentiment_model *sentiment; /* Borrowed; NULL: the program's. */
    struct spill_store *store;               /* Borrowed; where folds spill to; NULL: nowhere. */
    bool maps;
    bool folds;
    uint32_t work_queue_count;
    uint32_t max_jobs;
    uint32_t map_limit;           /* Chunks in flight at once: map threads and a little more. */
    uint32_t client_timeout_ms;   /* The lease of a job. */
    uint32_t tick_ms;             /* A tick counts at most this much of a lease. */
    uint32_t repair_delay_ms;     /* First wait for a missing message; doubles, */
    uint32_t repair_delay_max_ms; /* up to this. */
    uint32_t pause_ms;            /* Taking no chunks after one that could not be mapped. */
    uint32_t emit_window;         /* Messages of a stream that are sent unasked, and per ASK. */
    uint64_t max_message;
    uint64_t incarnation; /* Another one at every start. */
    /* Called within long steps, after each part of bounded length: a monitor takes a silent worker
     * for hung. May be NULL; must not call the worker. */
    void (*alive)(void *context);
    void *alive_context;
    enum worker_mutation mutation;
};

struct worker;

MUST_USE status worker_create(const struct worker_config *config, struct worker **out,
                              struct error *err);
void worker_destroy(struct worker *worker);
void worker_step(struct worker *worker, struct event *event, struct effects *effects);
/* Jobs that it holds now. */
uint32_t worker_job_count(const struct worker *worker);

#endif
