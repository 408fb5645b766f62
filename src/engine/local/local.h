/* SPDX-License-Identifier: Apache-2.0 */
/* local.h - carries a plan out in this process, on several threads.
 *
 *     local_run_create -> local_run_execute -> local_run_result* -> local_run_destroy
 *
 * Phase by phase: threads take chunks, run every pipeline that starts at the chunk's scan, and hand
 * each encoded batch to the fold shard it is meant for. When a phase's scans are read, its folds
 * are finished in the order of their dependencies. The maps and folds are those that a cluster
 * runs; only the way between them is short.
 *
 * Both ends of every exchange are counted by themselves: see audit.h.
 */
#ifndef ENGINE_LOCAL_LOCAL_H
#define ENGINE_LOCAL_LOCAL_H

#include "engine/base/error.h"
#include "engine/exec/fold/fold.h"
#include "engine/local/audit.h"
#include "engine/local/job.h"
#include "engine/local/table_files.h"
#include "engine/plan/plan.h"

struct exchange_fault;
struct local_run;
struct spill_store;

struct local_options {
    const struct plan *plan;
    struct table_files *files; /* By table. */
    const struct job_events *events;
    const atomic_bool *cancelled;
    uint32_t thread_count;
    uint32_t shard_count; /* Of folds that have a key; 0: the default. */
    uint32_t field_limit;
    const struct sentiment_model *sentiment; /* NULL: the one in the program. */
    struct budget *budget;
    struct spill_store *store;    /* Where folds spill when the budget is short; NULL: nowhere. */
    struct exchange_fault *fault; /* For tests (exchange.h); NULL: none. */
};

MUST_USE status local_run_create(const struct local_options *options, struct local_run **out_run,
                                 struct error *err);
/* Fails also when the counts do not reconcile. */
MUST_USE status local_run_execute(struct local_run *run, struct error *err);
/* The rows of a query's answer; not for the query that was streamed. */
MUST_USE status local_run_result(struct local_run *run, uint32_t query, struct fold_sink *sink,
                                 struct error *err);
/* Fills in tables, stages and exchanges as far as the run came; memory from the arena. */
MUST_USE status local_run_audit(struct local_run *run, struct arena *arena, struct audit *out_audit,
                                struct error *err);
void local_run_destroy(struct local_run *run);

/* job_run with events, shard_count and fault from `extra`, the rest from the job. */
MUST_USE status job_run_with(struct job *job, const struct local_options *extra, struct error *err);

#endif
