/* SPDX-License-Identifier: Apache-2.0 */
/* fold.h - one shard of a fold stage at work. A fold is a pipeline breaker with mergeable state.
 *
 *     fold_shard_create -> fold_shard_apply* -> fold_shard_finish -> fold_shard_emit* -> destroy
 *
 * A fold is a function of the set of numbered batches applied: order does not matter. Applying the
 * same batch twice is the caller's mistake (exactly once is decided above). After finishing, rows
 * can be emitted any number of times, always the same batches with the same numbers.
 *
 * With a store, a shard spills to files when the budget's limit comes near; batches and numbers are
 * the same as without. A build side must still fit into memory.
 *
 * Memory: owned, charged to the budget. Threads: one owner at a time; after finish, reading
 * (emit, join table, scalar) may happen from several threads.
 */
#ifndef ENGINE_EXEC_FOLD_FOLD_H
#define ENGINE_EXEC_FOLD_FOLD_H

#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/data/column.h"
#include "engine/exec/fold/join_table.h"
#include "engine/plan/plan.h"
#include "engine/plan/counters.h"

struct fold_shard;
struct spill_store;

/* Which batch: the pipeline it came by, the producer in it, its number there. */
struct batch_identity {
    uint32_t input;
    uint32_t producer;
    uint64_t number;
};

/* How many shards a fold has when `wanted` could work at it: folds without a key have one. */
uint32_t fold_shard_count(const struct fold *fold, uint32_t wanted);
/* The shard of a key's hash. */
uint32_t fold_shard_of(uint64_t hash, uint32_t shard_count);

/* The store is borrowed; NULL: everything stays in memory. */
MUST_USE status fold_shard_create(const struct fold *fold, struct budget *budget,
                                  struct spill_store *store, struct fold_shard **out_shard,
                                  struct error *err);
void fold_shard_destroy(struct fold_shard *shard);

/* The bytes are moved into the shard if it keeps them; *bytes is then empty. */
MUST_USE status fold_shard_apply(struct fold_shard *shard, struct batch_identity identity,
                                 struct buf *bytes, uint64_t *out_rows, struct error *err);
MUST_USE status fold_shard_finish(struct fold_shard *shard, struct error *err);

/* A shard spills by itself when a batch is applied to it. One to which none comes for a while may
 * hold memory that others lack: a caller that finds room short asks the largest to spill. */
bool fold_room_is_short(const struct budget *budget);
/* How many bytes a shard that is not finished would give back; 0: too few to ask it. */
size_t fold_shard_spillable(const struct fold_shard *shard);
MUST_USE status fold_shard_spill(struct fold_shard *shard, struct error *err);

struct fold_sink {
    /* `number` counts from 0; the batch is borrowed for the call. */
    status (*accept)(struct fold_sink *sink, uint64_t number, const struct batch *batch,
                     struct error *err);
};
MUST_USE status fold_shard_emit(const struct fold_shard *shard, struct fold_sink *sink,
                                struct error *err);

/* Of a finished fold that is a build side; and of one that is a scalar (no row: NULL). */
const struct join_table *fold_shard_join_table(const struct fold_shard *shard);
MUST_USE status fold_shard_scalar(const struct fold_shard *shard, struct value *out_value,
                                  struct error *err);

const struct fold_counts *fold_shard_counts(const struct fold_shard *shard);

#endif
