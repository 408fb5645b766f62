/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.h - the exchange between pipelines and fold shards (Graefe, "Encapsulation of
 * Parallelism in the Volcano Query Processing System", SIGMOD 1990), with a count at both ends.
 *
 * Threads: exchange_deliver may be called from any; a shard is applied to by one at a time, under
 * its lock. The sent ends belong to the producers, who add them up when they are done.
 */
#ifndef ENGINE_LOCAL_EXCHANGE_H
#define ENGINE_LOCAL_EXCHANGE_H

#include <pthread.h>

#include "engine/base/array.h"
#include "engine/exec/fold/fold.h"
#include "engine/exec/pipeline.h"
#include "engine/local/job.h"

/* Rows of one unordered query, handed out in source order while the job is still running. */
struct stream_out {
    const struct job_events *events;
    uint32_t query;
    uint64_t next_number;
    struct arena arena;
    ARRAY_OF(struct stored_batch) pending; /* Came before their turn. */
};

/* A fold while the plan is carried out. */
struct fold_run {
    const struct fold *fold;
    uint32_t shard_count;
    struct fold_shard **shards;
    pthread_mutex_t *locks;         /* One per shard. */
    struct exchange_count *applied; /* By input * shard_count + shard; under the shard's lock. */
    struct stream_out *stream;      /* NULL: the fold stores the rows until the end. */
    uint32_t uses_left;             /* Pipelines that still will read it; results count too. */
    bool finished;
};

/* A batch on its way to one shard. */
struct exchange_batch {
    const struct pipeline *pipeline;
    uint32_t shard;
    struct batch_identity identity;
    struct buf bytes; /* Borrowed; moved to the fold, if that keeps them. */
};

struct exchanges {
    struct fold_run *folds;
    uint32_t fold_count;
    struct budget *budget;
    struct exchange_fault *fault; /* Borrowed; NULL: none. */
};

/* What a test does to batches between their two counts, where FAULT_INJECTION is on: a network can
 * lose, double, alter or reorder them, the way through memory cannot. */
struct exchange_fault {
    /* In place of exchange_apply; `sent` counts the batch already. */
    status (*carry)(struct exchange_fault *fault, struct exchanges *exchanges,
                    struct exchange_batch *batch, uint64_t row_count, struct exchange_count *sent,
                    struct error *err);
    /* Applies the batches that were held back. */
    status (*release)(struct exchange_fault *fault, struct exchanges *exchanges, struct error *err);
};

/* Counts the bytes of one shard's output at the producer's end, `sent`, and applies them. */
MUST_USE status exchange_deliver(struct exchanges *exchanges, const struct pipeline *pipeline,
                                 uint32_t shard, struct batch_identity identity,
                                 struct pipeline_output *output, struct exchange_count *sent,
                                 struct error *err);
/* The receiving end: counts the batch and applies it to its shard. */
MUST_USE status exchange_apply(struct exchanges *exchanges, struct exchange_batch *batch,
                               struct error *err);

/* Called when all producers of a fold are done, before it is finished. */
MUST_USE status exchange_release(struct exchanges *exchanges, struct error *err);

#endif
