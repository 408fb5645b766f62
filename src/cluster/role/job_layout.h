/* job_layout.h - a job as every node sees it: manifest, plan, and who owns what.
 *
 * Made from the bytes of a manifest, by planning its SQL; read-only afterwards. Two nodes with
 * equal bytes have equal shapes, or one of them refuses (another build, another plan).
 *
 * Memory: owned, counted: shape_keep and shape_release; the last release frees it.
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
extern const char *const shape_build;

/* The same, and which model of sentiment() it uses unless that is the program's own (NULL, or a
 * copy of it): all that a manifest's bytes don't tell. It may lie in `out`. */
struct sentiment_model;
enum { SHAPE_BUILD_SIZE = 128 };
struct text shape_build_with(const struct sentiment_model *sentiment, char out[SHAPE_BUILD_SIZE]);
/* The same with the model even if it is the own: for clients that mean a certain one. */
struct text shape_build_naming(const struct sentiment_model *sentiment, char out[SHAPE_BUILD_SIZE]);

struct shape {
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
    const bool *copied; /* By fold: a side table or scalar, which every worker gets a copy of. */
    const uint32_t *shard_counts; /* By fold. */
    struct arena arena;
    atomic_uint_fast32_t uses;
};

/* Fills in `plan` (the fingerprint) of a manifest that is complete otherwise: plans its SQL.
 * STATUS_SQL, STATUS_USAGE: the question is wrong; the text is for the user. */
MUST_USE status shape_fingerprint(struct manifest *manifest, struct error *err);

/* Bytes are copied; the model is borrowed, NULL: the program's. STATUS_CORRUPT: not a manifest;
 * STATUS_USAGE: of another build, model or plan. */
MUST_USE status shape_create(struct text bytes, const struct sentiment_model *sentiment,
                             struct shape **out, struct error *err);
struct shape *shape_keep(struct shape *shape);
void shape_release(struct shape *shape);

/* How many shards a fold has, and the number of the worker that owns one. */
uint32_t shape_shard_count(const struct shape *shape, uint32_t fold);
uint32_t shape_owner(const struct shape *shape, uint32_t fold, uint32_t shard);
/* The worker who adds up what was counted while a scan was mapped. */
uint32_t shape_keeper(const struct shape *shape, uint32_t scan);
/* Whether a stream has messages for a worker. */
bool shape_feeds(const struct shape *shape, enum stream_source kind, uint32_t source,
                 uint32_t worker);
/* The number of the worker with this name, or worker_count. */
uint32_t shape_worker(const struct shape *shape, struct text name);
/* The files of one of the plan's tables; NULL: the manifest has none. */
const struct manifest_table *shape_files(const struct shape *shape, uint32_t table);
/* No scan of these files has as many chunks: a client that says otherwise is wrong. */
uint64_t shape_chunk_limit(const struct shape *shape, uint32_t scan);
/* The work queue of a chunk. */
uint32_t shape_work_queue(const struct shape *shape, uint64_t number, uint32_t queue_count);

#endif
