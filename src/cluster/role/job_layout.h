/* SPDX-License-Identifier: Apache-2.0 */
/* job_layout.h - a job as every node sees it: manifest, plan, and the owner of each shard.
 *
 * Made from the bytes of a manifest, by planning its SQL; read-only afterwards. Two nodes with
 * equal bytes have equal layouts, or one of them refuses (another build, another plan).
 *
 * Memory: owned, counted: job_layout_keep and job_layout_release; the last release frees it.
 * Threads: reading and counting from any.
 */
#ifndef CLUSTER_ROLE_JOB_LAYOUT_H
#define CLUSTER_ROLE_JOB_LAYOUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/plan/plan.h"
#include "cluster/wire/manifest.h"
#include "cluster/wire/message.h"

/* Which sources this program was built from: nodes of another build refuse the job. */
extern const char *const job_layout_build;

/* The same, and which model of sentiment() it uses unless that is the program's own (NULL, or a
 * copy of it): an answer depends on these two and on the bytes of the manifest, and on no third.
 * It may lie in `out`. */
struct sentiment_model;
enum { JOB_LAYOUT_BUILD_SIZE = 128 };
struct text job_layout_build_with(const struct sentiment_model *sentiment,
                                  char out[JOB_LAYOUT_BUILD_SIZE]);
/* The same, naming the program's own model too: for clients that require a certain one. */
struct text job_layout_build_naming(const struct sentiment_model *sentiment,
                                    char out[JOB_LAYOUT_BUILD_SIZE]);

struct job_layout {
    struct manifest manifest;
    struct text bytes; /* The manifest, encoded. */
    uint64_t hash;     /* Of these bytes. */
    const struct plan *plan;
    const struct sentiment_model *sentiment; /* Borrowed; NULL: the program's. */
    const uint32_t *fold_workers;            /* Numbers of the workers that fold. */
    uint32_t fold_worker_count;
    const bool *needs; /* [scan * fold_count + fold]: the scan's maps use a copy of the fold. */
    const bool *pipeline_needs; /* [pipeline * fold_count + fold]: the same by pipeline. */
    const bool
        *rests_on; /* [fold * scan_count + scan]: the fold can't be complete before the scan. */
    const bool *copied; /* By fold: a build side or scalar, which every worker gets a copy of. */
    const uint32_t *shard_counts; /* By fold. */
    struct arena arena;
    atomic_uint_fast32_t uses;
};

/* Fills in `plan` (the fingerprint) of a manifest that is complete otherwise: plans its SQL.
 * STATUS_SQL, STATUS_USAGE: the question is wrong; the text is for the user. */
MUST_USE status job_layout_fingerprint(struct manifest *manifest, struct error *err);

/* Bytes are copied; the model is borrowed, NULL: the program's. STATUS_CORRUPT: not a manifest;
 * STATUS_USAGE: of another build, model or plan. */
MUST_USE status job_layout_create(struct text bytes, const struct sentiment_model *sentiment,
                                  struct job_layout **out, struct error *err);
struct job_layout *job_layout_keep(struct job_layout *layout);
void job_layout_release(struct job_layout *layout);

/* The number of the worker that owns a shard. */
uint32_t job_layout_owner(const struct job_layout *layout, uint32_t fold, uint32_t shard);
/* The worker that adds up the counters of a scan, which its mappers report. */
uint32_t job_layout_counter_owner(const struct job_layout *layout, uint32_t scan);
/* Whether a stream has messages for a worker. */
bool job_layout_feeds(const struct job_layout *layout, enum stream_source kind, uint32_t source,
                      uint32_t worker);
/* The number of the worker with this name, or worker_count. */
uint32_t job_layout_worker(const struct job_layout *layout, struct text name);
/* The files of one of the plan's tables; NULL: the manifest has none. */
const struct manifest_table *job_layout_files(const struct job_layout *layout, uint32_t table);
/* No scan of these files has as many chunks: a client that says otherwise is wrong. */
uint64_t job_layout_chunk_limit(const struct job_layout *layout, uint32_t scan);
/* The work queue of a chunk. */
uint32_t job_layout_work_queue(const struct job_layout *layout, uint64_t number,
                               uint32_t queue_count);

#endif
