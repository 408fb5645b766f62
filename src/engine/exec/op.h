/* SPDX-License-Identifier: Apache-2.0 */
/* op.h - a pipeline from the inside: the contract between pipeline.c and its operators.
 *
 * Each kind of operator is one file, op_KIND.c, behind one struct op_class. A new kind takes an
 * enum constant (plan.h), its file, a declaration at the end of this header and a line in the table
 * of pipeline.c. pipeline.c and the operators are one module in several files, and call each other.
 *
 * Operators push: each is given a batch and the rows of it that are still meant, and hands what it
 * makes of them to the next with op_push_next, at once and as often as it likes. The last one
 * is the pipeline's output. Dispatch is per batch; the loops over rows are inside the operators.
 *
 *     init -> (push* -> flush | reset)* -> done
 *
 * Between two flushes one numbered batch of the source is pushed, in pieces. What an operator holds
 * back until the flush is a function of the rows pushed since the last one. After a failure of
 * push or flush, `reset` follows before anything else; after one of init, only `done`.
 *
 * Memory: a kind's struct begins with struct op_run and lives, zeroed, in the run's arena. What is
 * made for one push lives in batch_arena, which the run resets behind it. What `done` must free is
 * charged to the run's budget. Batches are borrowed for the call.
 * Threads: one owner, that of the run. The plan and what is finished are shared and read-only.
 */
#ifndef ENGINE_EXEC_OP_H
#define ENGINE_EXEC_OP_H

#include "engine/data/batch_builder.h"
#include "engine/exec/expr/eval.h"
#include "engine/exec/pipeline.h"

struct op_run {
    const struct op_class *class;
    const struct op *op;
    struct pipeline_run *run; /* Borrowed. */
    struct op_run *next;
    struct eval **evals;       /* Of the operator's expressions. */
    struct late_columns *late; /* By expression, while the source's columns are in sight. */
};

/* Functions that may be NULL do nothing then. */
struct op_class {
    size_t run_bytes; /* Of the kind's struct. */
    bool keeps_rows;  /* What is behind it still sees the batch that it was given. */
    status (*init)(struct op_run *op, struct error *err); /* May be NULL; evals are there. */
    status (*push)(struct op_run *op, const struct batch *batch, struct selection selection,
                   struct error *err);
    /* May be NULL. Sends what was held back to the output: such an operator is the last one. */
    status (*flush)(struct op_run *op, struct error *err);
    void (*reset)(struct op_run *op); /* May be NULL. Forgets what was pushed since the flush. */
    void (*done)(struct op_run *op);  /* May be NULL. Accepts one that is half built. */
};

struct pipeline_run {
    const struct pipeline *pipeline;
    const struct finished *finished;
    struct budget *budget;
    struct op_run **ops; /* One more than the pipeline has: the output. */
    bool *known; /* By condition of the first operator: it holds for all rows that are pushed. */
    struct pipeline_common *common; /* NULL: shares with no other. */
    uint32_t shard_count;
    struct batch_builder *builders; /* One per shard. */
    uint32_t builder_count;         /* Initialised so far. */
    struct arena arena;             /* Of the whole run. */
    struct arena batch_arena;       /* Of one push. */
    struct materializer *materializer;
    uint64_t stamp; /* How many batches were pushed. */
    struct pipeline_counts counts;
    struct pipeline_counts flushed; /* As they were at the last flush. */
};

static inline status op_push_next(struct op_run *op, const struct batch *batch,
                                  struct selection selection, struct error *err)
{
    return selection.count == 0 ? STATUS_OK
                                : op->next->class->push(op->next, batch, selection, err);
}

struct eval_context op_eval_context(struct pipeline_run *run);
/* Computes one of the operator's expressions; late columns are loaded for the selected rows. */
MUST_USE status op_eval(struct op_run *op, uint32_t expr, const struct batch *batch,
                        struct selection selection, struct column *out_column, struct error *err);

/* Rows for the output, to the shards that the hash of their first `key_count` columns chooses. */
MUST_USE status pipeline_append(struct pipeline_run *run, const struct batch *batch,
                                struct selection selection, uint32_t key_count, struct error *err);
/* The same where the hashes are known, by position in the selection. */
MUST_USE status pipeline_append_hashed(struct pipeline_run *run, const struct batch *batch,
                                       struct selection selection, const uint64_t *hashes,
                                       struct error *err);

extern const struct op_class op_filter;
extern const struct op_class op_project;
extern const struct op_class op_unnest;
extern const struct op_class op_probe;
extern const struct op_class op_aggregate;
extern const struct op_class op_rank;

#endif
