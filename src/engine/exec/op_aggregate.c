/* SPDX-License-Identifier: Apache-2.0 */
/* op_aggregate.c - rows become partial states, within one numbered batch, so that little crosses
 * the exchange; the fold behind it merges them (fold_aggregate.c).
 */
#include "engine/exec/fold/group_table.h"
#include "engine/exec/op.h"

struct aggregate_run {
    struct op_run op;
    struct group_table *groups;
};

static status aggregate_init(struct op_run *op, struct error *err)
{
    struct aggregate_run *aggregate = (struct aggregate_run *)op;
    return group_table_create(op->op->grouping, op->run->budget, &aggregate->groups, err);
}

/* Rows that hardly share keys don't wait for others of theirs: the fold brings them together. */
static status aggregate_push(struct op_run *op, const struct batch *batch,
                             struct selection selection, struct error *err)
{
    struct group_table *groups = ((struct aggregate_run *)op)->groups;
    struct pipeline_run *run = op->run;
    struct selection rest;
    struct batch lifted;
    TRY(group_table_add_loosely(groups, batch, selection, &run->batch_arena, &rest, err));
    if (rest.count == 0) return STATUS_OK;
    TRY(group_table_lift(groups, batch, rest, &run->batch_arena, &lifted, err));
    return pipeline_append(run, &lifted, rest, op->op->grouping->key_count, err);
}

static status aggregate_flush(struct op_run *op, struct error *err)
{
    struct group_table *groups = ((struct aggregate_run *)op)->groups;
    struct arena *arena = &op->run->batch_arena;
    uint32_t group_count = group_table_count(groups);
    for (uint32_t first = 0; first < group_count; first += PIPELINE_ROWS) {
        uint32_t count = group_count - first;
        if (count > PIPELINE_ROWS) count = PIPELINE_ROWS;
        struct batch partial;
        uint64_t hashes[PIPELINE_ROWS];
        TRY(group_table_read(groups, GROUP_PARTIAL, first, count, arena, &partial, err));
        for (uint32_t i = 0; op->run->shard_count > 1 && i < count; i++) {
            hashes[i] = group_table_hash(groups, first + i);
        }
        struct selection all = {NULL, count};
        TRY(pipeline_append_hashed(op->run, &partial, all, hashes, err));
        arena_reset(arena);
    }
    group_table_reset(groups);
    return STATUS_OK;
}

static void aggregate_reset(struct op_run *op)
{
    group_table_reset(((struct aggregate_run *)op)->groups);
}

static void aggregate_done(struct op_run *op)
{
    group_table_destroy(((struct aggregate_run *)op)->groups);
}

const struct op_class op_aggregate = {
    .run_bytes = sizeof(struct aggregate_run),
    .init = aggregate_init,
    .push = aggregate_push,
    .flush = aggregate_flush,
    .reset = aggregate_reset,
    .done = aggregate_done,
};
