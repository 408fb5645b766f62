/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.h - a map stage at work: batches in, encoded batches out.
 *
 *     pipeline_run_create -> (pipeline_run_push* -> pipeline_run_flush)* -> pipeline_run_destroy
 *
 * What is pushed between two flushes is one numbered batch of the source (a chunk, or a batch that
 * a fold emitted), in as many pieces as convenient; or it is discarded. Flushing gives exactly one
 * encoded batch per shard of the target, also when nothing is left. The bytes depend on the rows
 * pushed only.
 *
 * Memory: owned, charged to the budget; nothing is allocated per batch in steady state.
 * Threads: one owner. The plan, scalars and build sides are shared and read-only.
 */
#ifndef ENGINE_EXEC_PIPELINE_H
#define ENGINE_EXEC_PIPELINE_H

#include <stdatomic.h>

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/data/column.h"
#include "engine/exec/scan/late_column.h"
#include "engine/exec/fold/join_table.h"
#include "engine/plan/plan.h"

struct pipeline_run;

enum { PIPELINE_ROWS = 2048 }; /* At most so many rows in one push. */

/* Finished folds that a pipeline may use, by fold id. */
struct finished {
    const struct value *scalars;
    const struct join_table *sides;          /* Of build sides. */
    const struct sentiment_model *sentiment; /* Borrowed; NULL: the one in the program. */
    /* Checked where few rows become many; either may be NULL. */
    const atomic_bool *stopped;   /* Another thread has failed. */
    const atomic_bool *cancelled; /* The user has cancelled. */
};

struct pipeline_counts {
    uint64_t rows_in;
    uint64_t rows_out;
    uint64_t malformed;
};

/* What the pipelines of a scan have in common while a batch goes through them. The caller that
 * pushes increments the stamp before each batch, and resets the arena when the last pipeline has
 * seen it. */
struct pipeline_common {
    struct arena arena;
    uint64_t stamp;
};

MUST_USE status pipeline_run_create(const struct pipeline *pipeline,
                                    const struct finished *finished, uint32_t shard_count,
                                    struct budget *budget, struct pipeline_run **out_run,
                                    struct error *err);
void pipeline_run_destroy(struct pipeline_run *run);

/* Expressions that several of them compute, from batches of one source, are from now on computed
 * once. `common` is borrowed and must outlive them, as the arena must. */
MUST_USE status pipeline_runs_share(struct pipeline_run *const *runs, uint32_t count,
                                    struct pipeline_common *common, struct arena *arena,
                                    struct error *err);

/* `materializer` is NULL when all columns are there. */
MUST_USE status pipeline_run_push(struct pipeline_run *run, const struct batch *batch,
                                  struct selection selection, struct materializer *materializer,
                                  struct error *err);

const struct pipeline *pipeline_run_plan(const struct pipeline_run *run);
/* By condition of the first operator, which is a FILTER: the caller that pushes has applied it
 * already. Written before the first push; all false at first. */
bool *pipeline_run_known(struct pipeline_run *run);
/* The same as pipeline_run_push when `row_count` rows were there before the known conditions. */
MUST_USE status pipeline_run_push_left(struct pipeline_run *run, const struct batch *batch,
                                       struct selection left, uint32_t row_count,
                                       struct materializer *materializer, struct error *err);
/* Adds what known conditions counted. */
void pipeline_run_count_malformed(struct pipeline_run *run, uint64_t more);

/* The encoded batch of one shard. */
struct pipeline_output {
    struct buf bytes; /* Given empty; the receiver may move it away. */
    uint64_t row_count;
};
MUST_USE status pipeline_run_flush(struct pipeline_run *run, struct pipeline_output *outputs,
                                   struct error *err);

/* As if nothing had been pushed since the last flush. Also after a failure. */
void pipeline_run_discard(struct pipeline_run *run);

const struct pipeline_counts *pipeline_run_counts(const struct pipeline_run *run);

#endif
