/* SPDX-License-Identifier: Apache-2.0 */
/* counters.h - what is counted while a job runs, in one process or in many.
 *
 * Each part of a job counts its own work: records read and dropped, rows in and out of stages, and
 * batches at both ends of every exchange. The counters of parts are added, in any order, to those
 * of the job, from which the audit is made (engine/local/audit.h). The counters of one chunk are
 * sent with its outputs, those of a worker with the answers.
 *
 * Memory: arrays live in the given arena. Encoded counters leave out all that is zero.
 */
#ifndef ENGINE_PLAN_COUNTERS_H
#define ENGINE_PLAN_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/plan/plan.h"

enum drop_reason { DROP_EMPTY, DROP_UNREADABLE, DROP_REASON_COUNT };

/* Records dropped, or values taken as NULL, for one column and reason. The first place is a chunk
 * and a line within it: only when all chunks are read is it known how many lines stand before. */
struct drop_counter {
    uint64_t count;
    uint64_t first_chunk;
    uint64_t first_line; /* Lines before it in its chunk. */
};

/* What was read of a table. */
struct table_counters {
    uint32_t column_count;
    uint64_t record_count;
    uint64_t kept_count;
    struct drop_counter wrong_fields;
    struct drop_counter (*dropped)[DROP_REASON_COUNT]; /* By column. */
    struct drop_counter *nulled;
};

struct stage_counts {
    uint64_t rows_in;
    uint64_t rows_out;
    uint64_t malformed; /* Lists that did not parse and counted as empty. */
};

struct fold_counts {
    uint64_t rows_in;
    uint64_t rows_out;    /* Known when it is finished, */
    uint64_t batches_out; /* as is how many batches they are emitted in. */
};

/* One end of an exchange. */
struct exchange_count {
    uint64_t batch_count;
    uint64_t row_count;
    uint64_t hash_sum; /* Of hashes of (producer, number, checksum): the same in any order. */
};

struct counters {
    struct table_counters *tables;  /* By table. */
    struct stage_counts *maps;      /* By pipeline, */
    struct exchange_count *sent;    /* as are both ends */
    struct exchange_count *applied; /* of the exchange behind it. */
    struct fold_counts *folds;      /* By fold. */
    struct exchange_count *given;   /* By query: what a cluster made of its answer, */
    struct exchange_count *taken;   /* and what its client got. */
};

/* False: the arena is full. */
MUST_USE bool table_counters_init(struct table_counters *table_counters, uint32_t column_count,
                                  struct arena *arena);
void table_counters_reset(struct table_counters *table_counters);
void table_counters_merge(struct table_counters *table_counters, const struct table_counters *more);

MUST_USE bool counters_init(struct counters *counters, const struct plan *plan,
                            struct arena *arena);
/* All counts are zero again. */
void counters_reset(struct counters *counters, const struct plan *plan);

void counters_encode(const struct counters *counters, const struct plan *plan, struct buf *out);
/* Adds encoded counters. STATUS_CORRUPT: not counters of this plan; `counters` must not be used any
 * more. */
MUST_USE status counters_add(struct counters *counters, const struct plan *plan, struct text bytes,
                             struct error *err);

static inline void exchange_count_merge(struct exchange_count *end,
                                        const struct exchange_count *more)
{
    end->batch_count += more->batch_count;
    end->row_count += more->row_count;
    end->hash_sum += more->hash_sum;
}

/* Where a batch belongs: its producer, the shard it is for, and its number from that producer. */
struct batch_place {
    uint32_t producer;
    uint32_t shard;
    uint64_t number;
};
/* Counts one batch at one end; the place is part of the sum, so that batches can't be swapped. */
void exchange_count_add(struct exchange_count *end, struct batch_place place, uint64_t row_count,
                        struct text bytes);
/* Counts a batch of an answer. */
void exchange_count_add_answer(struct exchange_count *end, uint64_t number,
                               const struct buf *bytes);

#endif
