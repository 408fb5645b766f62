/* SPDX-License-Identifier: Apache-2.0 */
/* fold_parts.h - a shard from the inside: the contract between fold.c and the kinds of fold.
 *
 * Each kind is one file, fold_KIND.c, behind one struct fold_class. A new kind takes an enum
 * constant (plan.h), its file, a declaration at the end of this header and a line in the table of
 * fold.c. Nothing else in this room asks which kind a fold has. fold.c, fold_spill.c and the kinds
 * are one module in several files, and call each other.
 *
 * Order of calls:
 *
 *     init -> (apply | spill)* -> finish | finish_spilled -> read* -> done
 *
 * A shard that holds much while the job's budget is nearly used up writes its state to a file and
 * continues with an empty one: that is a spill. One that has spilled, or that does not fit, is
 * finished by way of files; its rows are then in `spill.result`, whatever kind it is:
 *
 *     AGGREGATE  partial states, by ranges of hashes; range by range they are merged
 *     SORT       sorted runs, which are merged
 *     RANK       the same, and the best of each partition stay
 *     COLLECT    the batches as they came; in the order of their numbers they are the rows
 *     JOIN       the batches as they came; both sides are partitioned by hash of their keys
 *
 * Memory: a kind's struct begins with struct fold_shard and is allocated, zeroed and freed by
 * fold.c. What it holds is charged to the shard's budget, so that `held` can tell it.
 * Threads: one owner until the shard is finished; from then on `read` may be called by several at
 * once, so it allocates from the given arena only.
 * Failure: after any function but `read` has failed, only `done` follows. `done` accepts a shard
 * that is half built, finished, or done already.
 */
#ifndef ENGINE_EXEC_FOLD_FOLD_PARTS_H
#define ENGINE_EXEC_FOLD_FOLD_PARTS_H

#include "engine/exec/fold/fold.h"
#include "engine/exec/fold/spill_rows.h"

struct spill_runs;

enum {
    EMIT_ROWS = 8192, /* So that a batch of wide rows is still a message a broker takes. */
    SPILL_PARTS = 16, /* A state is cut into at most so many parts at once. */
    SPILL_FAN = 64    /* At most so many runs are merged at once. */
};

struct fold_spill {
    struct spill_store *store; /* Borrowed; NULL: everything stays in memory. */
    size_t limit_bytes;        /* Of the job's budget; 0: none. */
    size_t least_bytes;        /* Less is not worth a spill. */
    uint32_t part_count;       /* How many parts, */
    uint32_t fan;              /* and runs, are in flight at once. */
    struct spill_place state;  /* Until the shard is finished. */
    struct spill_place rows;   /* Of the finished shard. */
    bool finished;             /* The shard's rows are: */
    struct spill_rows result;
};

struct fold_shard {
    const struct fold_class *class;
    const struct fold *fold;
    struct budget *budget; /* The job's. */
    struct arena arena;    /* Of the finished state. */
    struct arena scratch;  /* Of one apply, or of finishing. */
    uint64_t first;        /* Finished: the rows that are emitted. */
    uint64_t count;
    struct fold_counts counts;
    struct fold_spill spill;
};

struct fold_class {
    size_t shard_bytes; /* Of the kind's struct. */
    bool shards_by_key; /* Any fold with a key can have several shards. */
    status (*init)(struct fold_shard *shard, struct error *err);
    /* Frees what the kind holds: when the shard is destroyed, and when its rows are in a file. */
    void (*done)(struct fold_shard *shard);

    /* One batch; it may be moved. The kind spills by itself where fold_must_spill says so. */
    status (*apply)(struct fold_shard *shard, struct batch_identity identity, struct buf *bytes,
                    uint64_t *out_rows, struct error *err);
    /* How many bytes a spill would give back. */
    size_t (*held)(const struct fold_shard *shard);
    /* Optional: true when the state is so small that the blocks it lies in are hardly filled. */
    bool (*is_sparse)(const struct fold_shard *shard);
    /* Writes the state to spill.state and continues with an empty one. Called by fold_spill_state.
     * It may leave the state as it is when that can not be divided. */
    status (*spill)(struct fold_shard *shard, struct error *err);

    /* How many bytes `finish` takes for a while, about. */
    size_t (*finish_need)(const struct fold_shard *shard);
    /* Finishes in memory; ends with fold_finished, or with fold_spill_finished where the rows turn
     * out not to fit. */
    status (*finish)(struct fold_shard *shard, struct error *err);
    /* Brings all rows into spill.result; ends with fold_spill_finished. */
    status (*finish_spilled)(struct fold_shard *shard, struct error *err);
    /* Rows first .. first+count-1 of a shard that was finished in memory, borrowed from shard and
     * arena. */
    status (*read)(const struct fold_shard *shard, uint32_t first, uint32_t count,
                   struct arena *arena, struct batch *out_batch, struct error *err);
};

/* ---- fold.c: what kinds share ---- */

/* The shard has so many rows, of which the fold's LIMIT and OFFSET choose those that it emits. */
void fold_finished(struct fold_shard *shard, uint64_t row_count);
/* A `read` of rows that stand in order: a view of them. */
MUST_USE status fold_read_slice(const struct batch *rows, uint32_t first, uint32_t count,
                                struct arena *arena, struct batch *out_batch, struct error *err);
MUST_USE status fold_gather(struct column *out, const struct column *from, uint32_t column_count,
                            const uint32_t *rows, uint32_t row_count, struct arena *arena,
                            struct error *err);
/* What a group table or a ranker holds, beside what it holds when it is empty. */
struct fold_held {
    struct budget budget; /* A part of the job's. */
    size_t empty_bytes;
};
size_t fold_held_bytes(const struct fold_held *held);

/* ---- fold_spill.c: when, and the files ---- */

void fold_spill_init(struct fold_shard *shard, struct spill_store *store);
void fold_spill_done(struct fold_shard *shard);
/* Whether the state should be spilled before `need_bytes` more are taken. */
bool fold_must_spill(const struct fold_shard *shard, size_t need_bytes);
/* Whether the shard can be finished in memory, when that takes `need_bytes` for a while. */
bool fold_fits(const struct fold_shard *shard, size_t need_bytes);
/* Whether so much may be taken while finishing. */
bool fold_has_room(const struct fold_shard *shard, uint64_t need_bytes);
MUST_USE status fold_spill_state(struct fold_shard *shard, struct error *err);
/* The rows are in spill.result: the state is freed. */
void fold_spill_finished(struct fold_shard *shard);
MUST_USE status fold_spill_emit(const struct fold_shard *shard, struct fold_sink *sink,
                                struct error *err);

/* A new list of rows in the file of the state. */
struct spill_rows fold_spill_rows(struct fold_shard *shard, struct schema schema);
/* Writes rows that stand in order as one run. */
MUST_USE status fold_run_write(struct fold_shard *shard, struct spill_runs *runs,
                               struct schema schema, const struct batch *batch,
                               struct selection selection, struct error *err);
/* Merges the runs into spill.result, no more rows than the fold emits; `cut` as in spill_merge. */
MUST_USE status fold_runs_merge(struct fold_shard *shard, struct spill_runs *runs,
                                const struct sort_key *keys, uint32_t key_count,
                                const struct ranking *cut, struct error *err);

/* ---- the kinds ---- */

extern const struct fold_class fold_collect;
extern const struct fold_class fold_aggregate;
extern const struct fold_class fold_sort;
extern const struct fold_class fold_rank;
extern const struct fold_class fold_join;

#endif
