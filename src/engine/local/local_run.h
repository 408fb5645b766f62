/* SPDX-License-Identifier: Apache-2.0 */
/* local_run.h - the state of a run; local.c, local_scan.c and local_finish.c are one module that
 * shares it.
 *
 * Threads: the plan, the options and the arrays are made before any thread starts. What threads add
 * up they add up for themselves, and merge under `lock` when they are done.
 */
#ifndef ENGINE_LOCAL_LOCAL_RUN_H
#define ENGINE_LOCAL_LOCAL_RUN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/exec/pipeline.h"
#include "engine/local/audit.h"
#include "engine/local/exchange.h"
#include "engine/local/local.h"
#include "engine/plan/counters.h"

struct local_run {
    struct local_options options;
    const struct plan *plan;
    struct arena arena;
    struct fold_run *folds;
    struct exchanges exchanges;
    struct value *scalars;    /* By fold. */
    struct join_table *sides; /* By fold. */
    struct finished finished;
    struct counters counters; /* `applied` is filled in when it is looked at. */
    uint32_t **chunk_lines;   /* By table, then chunk. */
    uint32_t *shard_counts;   /* By fold. */
    struct stream_out stream;
    uint64_t total_bytes;
    atomic_uint_fast64_t done_bytes;
    pthread_mutex_t lock; /* Guards the error, merging, and events. */
    struct error error;
    bool failed;
    atomic_bool stopped;
    double next_progress;
    bool balanced;
};

/* Notes the first failure, and stops all. */
void local_run_fail(struct local_run *run, const struct error *err);
/* Between phases, when no thread runs: the first failure, or that the user interrupted. */
MUST_USE status local_run_status(struct local_run *run, struct error *err);
/* Whether threads shall give up; notices an interrupt. */
bool local_run_stops(struct local_run *run);
/* Says which query failed; when memory is out, also in which stage and what helps. The code is
 * returned for convenience: a thread that hands `err` to local_run_fail has no use for it. */
status local_run_blame(const struct local_run *run, struct text queries, const char *where,
                       struct error *err);
/* The same for memory that ran out elsewhere; `who` begins the message. */
status local_run_memory(const struct local_run *run, const char *who, struct error *err);
const char *local_run_place(const struct local_run *run, const struct pipeline *pipeline);

/* Runs body(argument) on `count` threads, this one included. When the system gives fewer, fewer do
 * the work. */
void local_run_threads(uint32_t count, void *(*body)(void *), void *argument);

/* Calls work(run, item, context) for items 0 .. count - 1, on all threads. */
void local_run_items(struct local_run *run, uint64_t count,
                     void (*work)(struct local_run *run, uint64_t item, void *context),
                     void *context);

/* Reads all that the phase's scans name, through every pipeline that starts there. */
MUST_USE status local_run_scans(struct local_run *run, uint32_t phase, struct error *err);
/* Finishes the folds that are complete after the phase's scans. */
MUST_USE status local_run_finish(struct local_run *run, uint32_t phase, struct error *err);
/* Compares both ends of the exchanges that feed a fold, before its content is used: a doubled batch
 * must not show as a mistake in the user's SQL. */
MUST_USE status local_run_check(struct local_run *run, const struct fold *fold, struct error *err);
/* One use of a fold's rows less; after the last they are given back. */
void local_run_release(struct fold_run *fold_run);

/* Room for what a pipeline makes of one batch, by shard; NULL when memory is out. */
struct pipeline_output *local_outputs_new(struct local_run *run, struct arena *arena);
void local_outputs_done(struct local_run *run, struct pipeline_output *outputs);
/* What one pipeline made of one numbered batch of its source goes to all shards. */
MUST_USE status local_run_flush(struct local_run *run, const struct pipeline *pipeline,
                                struct pipeline_run *pipeline_run, struct batch_identity identity,
                                struct pipeline_output *outputs, struct exchange_count *sent,
                                struct error *err);

#endif
