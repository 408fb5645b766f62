/* SPDX-License-Identifier: Apache-2.0 */
/* job.h - one run of an analysis in this process.
 *
 *     job_open -> (job_plan, job_query...)* -> job_run -> job_audit -> job_close
 *
 * job_open reads the SQL, plans, finds the data files and checks their headers, so that whatever is
 * wrong with the question or the folder is told before work begins. With data_dir NULL nothing is
 * looked for and only the plan can be had (EXPLAIN).
 *
 * Threads: the job belongs to the caller's thread; job_run starts and ends its own. Events are
 * called one at a time, from any of these threads.
 */
#ifndef ENGINE_LOCAL_JOB_H
#define ENGINE_LOCAL_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/data/column.h"
#include "engine/local/audit.h"
#include "engine/plan/plan.h"

struct arena;
struct compile_input;
struct job;
struct sentiment_model;
struct table_files;

struct job_setting {
    struct text name;
    struct text value;
};

struct job_options {
    const char *analysis_dir;   /* Folder with tables.sql and a file per query. */
    const char *data_dir;       /* NULL: plan only. */
    const struct text *queries; /* Names; count 0: all of the analysis, in order of their names. */
    uint32_t query_count;
    const struct job_setting *settings; /* --set name=value */
    uint32_t setting_count;
    uint32_t thread_count;        /* 0: one per core. */
    uint64_t memory_limit;        /* Bytes; 0: 80 % of RAM. */
    uint64_t memory_taken;        /* So much of it the process had before the job. */
    const char *temp_dir;         /* For what memory cannot hold; NULL: $TMPDIR or /var/tmp. */
    uint32_t chunk_bytes;         /* 0: the default, which is larger for large data. */
    uint64_t broadcast_limit;     /* Of joins, in bytes; 0: the default. */
    uint32_t field_limit;         /* Largest field in bytes; 0: 64 MiB. */
    const char *sentiment_model;  /* A file; NULL: the model in the program. */
    const atomic_bool *cancelled; /* Looked at between chunks; may be NULL. */
};

enum { JOB_STREAM_NONE = -1, JOB_THREADS_MAX = 256 };

struct job_events {
    void *context;
    /* Rows of a query's answer, in order; columns as in plan->queries[query].schema. */
    status (*rows)(void *context, uint32_t query, const struct batch *batch, struct error *err);
    /* Called now and then, at most some ten times a second; may be NULL. */
    void (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    /* The one query whose rows may be handed out before the audit is balanced, if it is not
     * ordered; JOB_STREAM_NONE: none. All others come afterwards, query by query. */
    int32_t stream_query;
};

MUST_USE status job_open(const struct job_options *options, struct job **out_job,
                         struct error *err);
const struct plan *job_plan(const struct job *job);
uint32_t job_chunk_bytes(const struct job *job);
/* The texts that were planned; and the files by the plan's tables, NULL without data. */
const struct compile_input *job_source(const struct job *job);
struct table_files *job_files(struct job *job);
/* As given, with defaults filled in. */
const struct job_options *job_options_of(const struct job *job);
/* NULL: the model in the program. */
const struct sentiment_model *job_sentiment(const struct job *job);
/* For what lives as long as the job. */
struct arena *job_arena(struct job *job);
/* Fails when the counts do not reconcile; then no rows were given but streamed ones. */
MUST_USE status job_run(struct job *job, const struct job_events *events, struct error *err);
/* Valid after job_run, also after a failed one as far as it came. */
const struct audit *job_audit(const struct job *job);
void job_close(struct job *job);

#endif
