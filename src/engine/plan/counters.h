/* counters.h - what was counted while a job was carried out, wherever that was.
 *
 * Whoever does a part of a job counts it: records read and dropped, rows in and out of stages, and
 * batches at both ends of every edge. Accounts of parts are added up, in any order, to the account
 * of the job, from which the books are made (engine/local/audit.h). One chunk's account travels
 * with its outputs; what a worker counted travels with the answers.
 *
 * Memory: arrays live in the arena given. An encoded account leaves out all that is zero.
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
struct tally_line {
    uint64_t count;
    uint64_t first_chunk;
    uint64_t first_line; /* Lines before it in its chunk. */
};

/* What was read of a table. */
struct tally {
    uint32_t column_count;
    uint64_t record_count;
    uint64_t kept_count;
    struct tally_line wrong_fields;
    struct tally_line (*dropped)[DROP_REASON_COUNT]; /* By column. */
    struct tally_line *nulled;
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

/* One end of an edge. */
struct book_end {
    uint64_t batch_count;
    uint64_t row_count;
    uint64_t hash_sum; /* Of hashes of (lane, number, checksum): the same in any order. */
};

struct account {
    struct tally *tallies;     /* By table. */
    struct stage_counts *maps; /* By pipeline, */
    struct book_end *sent;     /* as are both ends */
    struct book_end *applied;  /* of the edge behind it. */
    struct fold_counts *folds; /* By fold. */
    struct book_end *given;    /* By query: what a cluster made of its answer, */
    struct book_end *taken;    /* and what its client got. */
};

/* False: the arena is full. */
MUST_USE bool tally_init(struct tally *tally, uint32_t column_count, struct arena *arena);
void tally_reset(struct tally *tally);
void tally_merge(struct tally *tally, const struct tally *more);

MUST_USE bool account_init(struct account *account, const struct plan *plan, struct arena *arena);
/* All counts are zero again. */
void account_reset(struct account *account, const struct plan *plan);
void account_merge(struct account *account, const struct plan *plan, const struct account *more);

void account_encode(const struct account *account, const struct plan *plan, struct buf *out);
/* Adds encoded counts to an account. STATUS_CORRUPT: not an account of this plan; the account is
 * then not to be used any more. */
MUST_USE status account_add(struct account *account, const struct plan *plan, struct text bytes,
                            struct error *err);

static inline void book_end_merge(struct book_end *end, const struct book_end *more)
{
    end->batch_count += more->batch_count;
    end->row_count += more->row_count;
    end->hash_sum += more->hash_sum;
}

/* Whose a batch is: lane (the producer's shard), the shard it is for, its number in the lane. */
struct batch_place {
    uint32_t lane;
    uint32_t shard;
    uint64_t number;
};
/* Counts one batch at one end; the place is part of the sum, so that batches can't be swapped. */
void book_end_add(struct book_end *end, struct batch_place place, uint64_t row_count,
                  struct text bytes);
/* Counts a batch of an answer. */
void book_end_add_answer(struct book_end *end, uint64_t number, const struct buf *bytes);

#endif
