/* fold_parts.h - a shard from the inside, shared by the fold_*.c alone.
 *
 * A shard that holds much while the job's budget is nearly used up writes its state to a file and
 * goes on with an empty one: that is a spill. One that has spilled, or whose rows don't fit, is
 * finished by way of files; its rows are then in `spill.result`, whatever kind it is:
 *
 *     AGGREGATE  partial states, by ranges of hashes; range by range they are merged
 *     SORT       sorted runs, which are merged
 *     RANK       the same, and the best of each partition stay
 *     COLLECT    the batches as they came; in the order of their numbers they are the rows
 *     JOIN       the batches as they came; read in order against a table of the right side, by hash
 * of the keys if that is too large
 */
#ifndef ENGINE_EXEC_FOLD_FOLD_PARTS_H
#define ENGINE_EXEC_FOLD_FOLD_PARTS_H

#include "engine/exec/fold/fold.h"
#include "engine/exec/fold/group_table.h"
#include "engine/exec/fold/row_store.h"
#include "engine/exec/fold/ranker.h"
#include "engine/exec/fold/spill_merge.h"
#include "engine/exec/fold/spill_rows.h"

enum {
    EMIT_ROWS = 8192, /* So that a batch of wide rows is still a message a broker takes. */
    SPILL_PARTS = 16, /* Into so many parts a state is cut at most. */
    SPILL_FAN = 64
};

/* Partial states by ranges of hashes, of equal width. */
struct group_ranges {
    uint64_t lowest;
    uint64_t width;
    uint32_t count; /* 0: not chosen yet. */
    struct spill_rows items[SPILL_PARTS];
};

struct fold_spill {
    struct spill_store *store; /* Borrowed; NULL: everything stays in memory. */
    size_t limit_bytes;        /* Of the job's budget; 0: none. */
    size_t least_bytes;        /* Less is not worth a spill. */
    uint32_t part_count;       /* How many parts, */
    uint32_t fan;              /* and runs, are in flight at once. */
    struct spill_place state;  /* Until the shard is finished. */
    struct spill_place rows;   /* Of the finished shard. */
    bool spilled;
    bool finished; /* The shard's rows are: */
    struct spill_rows result;
    struct group_ranges ranges; /* FOLD_AGGREGATE */
    struct spill_runs runs;     /* FOLD_SORT, FOLD_RANK, FOLD_JOIN */
};

struct fold_shard {
    const struct fold *fold;
    struct budget *budget;       /* The job's. */
    struct budget held;          /* Part of it: groups and candidates. */
    size_t held_empty;           /* What it counts when there are none. */
    struct group_table *groups;  /* FOLD_AGGREGATE */
    struct ranker *ranker;       /* FOLD_RANK */
    struct row_store kept[2];    /* Others; the second is FOLD_JOIN's right side. */
    struct arena arena;          /* Of the finished state. */
    struct arena scratch;        /* Of one apply. */
    struct batch rows;           /* Finished: what is emitted, */
    const uint32_t *order;       /* in this order (NULL: as it stands), */
    struct batch right;          /* FOLD_JOIN: with these rows beside, */
    const uint32_t *right_order; /* ROW_NONE: with NULLs. */
    struct buf pairs[2];         /* FOLD_JOIN: what both orders lie in. */
    uint64_t first;              /* The part of the order that is emitted. */
    uint64_t count;
    struct build_side side;
    struct fold_counts counts;
    struct fold_spill spill;
};

/* An empty group table or ranker, if the kind of fold has one; what was there is gone. */
MUST_USE status fold_state_reset(struct fold_shard *shard, struct error *err);

/* ---- fold_spill.c: when, and the files ---- */

void fold_spill_init(struct fold_shard *shard, struct spill_store *store);
void fold_spill_done(struct fold_shard *shard);
/* What a spill would give back. */
size_t fold_held(const struct fold_shard *shard);
/* After a spill: what was held before it. */
void fold_spill_freed(const struct fold_shard *shard, size_t held_before);
/* Whether the state should go before `need_bytes` more are taken. */
bool fold_must_spill(const struct fold_shard *shard, size_t need_bytes);
/* Whether the shard can be finished in memory, when that takes `need_bytes` for a while. */
bool fold_fits(const struct fold_shard *shard, size_t need_bytes);
/* Whether so much may be taken while finishing. */
bool fold_has_room(const struct fold_shard *shard, uint64_t need_bytes);
MUST_USE status fold_spill_state(struct fold_shard *shard, struct error *err);
/* Brings the rows of a shard that spilled, or does not fit, into spill.result; */
MUST_USE status fold_spill_finish(struct fold_shard *shard, struct error *err);
/* when they are there, the rest goes. */
void fold_spill_finished(struct fold_shard *shard);
MUST_USE status fold_spill_emit(const struct fold_shard *shard, struct fold_sink *sink,
                                struct error *err);
/* The row of a scalar, as shard->rows. */
MUST_USE status fold_spill_scalar(struct fold_shard *shard, struct error *err);

/* ---- fold_groups.c ---- */

/* Merges partial states into the table, which is spilled to the ranges whenever room is short. */
MUST_USE status fold_groups_merge(struct fold_shard *shard, struct group_ranges *ranges,
                                  const struct batch *partial, size_t byte_count,
                                  struct error *err);
/* Leaves the table as it is when all its groups have one hash. */
MUST_USE status fold_groups_spill(struct fold_shard *shard, struct group_ranges *ranges,
                                  struct error *err);
MUST_USE status fold_groups_finish(struct fold_shard *shard, struct error *err);
void fold_groups_done(struct group_ranges *ranges);

/* ---- fold_runs.c: SORT and RANK ---- */

MUST_USE status fold_sort_spill(struct fold_shard *shard, struct error *err);
MUST_USE status fold_rank_spill(struct fold_shard *shard, struct error *err);
MUST_USE status fold_runs_finish(struct fold_shard *shard, struct error *err);

/* ---- fold_join.c ---- */

/* Of inputs that are spilled, or are now. */
MUST_USE status fold_join_finish_spilled(struct fold_shard *shard, struct error *err);
/* Writes the pairs of shard->rows and a table of the right side to spill.result. */
MUST_USE status fold_join_write(struct fold_shard *shard, const struct build_side *table,
                                struct error *err);

#endif
