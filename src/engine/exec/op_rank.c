/* SPDX-License-Identifier: Apache-2.0 */
/* op_rank.c - of one numbered batch, only the best rows of each partition cross the exchange; the
 * best of all are among them, and the fold behind it finds these (fold_rank.c).
 */
#include "engine/exec/fold/ranker.h"
#include "engine/exec/op.h"

struct rank_run {
    struct op_run op;
    struct ranker *ranker;
};

static status rank_init(struct op_run *op, struct error *err)
{
    struct rank_run *rank = (struct rank_run *)op;
    return ranker_create(op->op->ranking, op->op->output, op->run->budget, &rank->ranker, err);
}

static status rank_push(struct op_run *op, const struct batch *batch, struct selection selection,
                        struct error *err)
{
    return ranker_add(((struct rank_run *)op)->ranker, batch, selection, err);
}

static status rank_flush(struct op_run *op, struct error *err)
{
    struct ranker *ranker = ((struct rank_run *)op)->ranker;
    struct batch best;
    TRY(ranker_finish(ranker, &best, err));
    TRY(pipeline_append(op->run, &best, (struct selection){NULL, best.row_count}, 0, err));
    ranker_reset(ranker);
    return STATUS_OK;
}

static void rank_reset(struct op_run *op)
{
    ranker_reset(((struct rank_run *)op)->ranker);
}

static void rank_done(struct op_run *op)
{
    ranker_destroy(((struct rank_run *)op)->ranker);
}

const struct op_class op_rank = {
    .run_bytes = sizeof(struct rank_run),
    .init = rank_init,
    .push = rank_push,
    .flush = rank_flush,
    .reset = rank_reset,
    .done = rank_done,
};
