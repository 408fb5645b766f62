/* exchange.h - the way from pipelines to fold shards, with a count at both ends.
 *
 * Threads: exchange_deliver may be called from any; a shard is applied to by one at a time, under
 * its lock. The sent ends belong to the producers, who add them up when they are done.
 */
#ifndef ENGINE_LOCAL_EXCHANGE_H
#define ENGINE_LOCAL_EXCHANGE_H

#include <pthread.h>

#include "engine/base/random.h"
#include "engine/exec/fold/fold.h"
#include "engine/exec/pipeline.h"
#include "engine/local/audit.h"
#include "engine/local/local.h"

/* Rows of one unordered query, handed out in source order while the job is still running. */
struct stream_out {
    const struct job_events *events;
    uint32_t query;
    uint64_t next_number;
    struct arena arena;
    struct stored_batch *pending; /* Came before their turn. */
    size_t pending_count;
    size_t pending_capacity;
};

/* A fold while the plan is carried out. */
struct fold_run {
    const struct fold *fold;
    uint32_t shard_count;
    struct fold_shard **shards;
    pthread_mutex_t *locks;         /* One per shard. */
    struct exchange_count *applied; /* By input * shard_count + shard; under the shard's lock. */
    struct stream_out *stream;      /* NULL: rows are kept until the end. */
    uint32_t uses_left;             /* Pipelines that still will read it; results count too. */
    bool finished;
};

struct waiting_batch {
    const struct pipeline *pipeline;
    uint32_t shard;
    struct batch_identity identity;
    struct buf bytes;
};

/* Only for tests that shuffle: everything waits here. */
struct waiting_room {
    pthread_mutex_t lock;
    struct waiting_batch *batches;
    size_t count;
    size_t capacity;
};

struct exchanges {
    struct fold_run *folds;
    struct budget *budget;
    const struct local_options *options;
    struct waiting_room waiting;
};

/* Takes the bytes of one shard's output and applies them; `sent` is the producer's end. */
MUST_USE status exchange_deliver(struct exchanges *exchanges, const struct pipeline *pipeline,
                                 uint32_t shard, struct batch_identity identity,
                                 struct pipeline_output *output, struct exchange_count *sent,
                                 struct error *err);
/* Applies what waits, in the order the seed gives. */
MUST_USE status exchange_release(struct exchanges *exchanges, struct error *err);

#endif
