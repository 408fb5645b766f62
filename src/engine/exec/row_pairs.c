/* SPDX-License-Identifier: Apache-2.0 */
/* row_pairs.c - column by column. */
#include "engine/exec/row_pairs.h"

status row_pairs_new(struct op_run *op, struct row_pairs **out_pairs, struct error *err)
{
    /* Not cleared: only what is counted is read. */
    struct row_pairs *pairs =
        arena_alloc(&op->run->batch_arena, sizeof *pairs, alignof(struct row_pairs));
    if (pairs == NULL) return error_memory(err);
    pairs->count = 0;
    *out_pairs = pairs;
    return STATUS_OK;
}

static bool is_set(const atomic_bool *flag)
{
    return flag != NULL && atomic_load(flag);
}

static bool gather(struct column *out, const struct batch *from, const uint32_t *rows,
                   uint32_t count, struct arena *arena)
{
    for (uint32_t i = 0; i < from->column_count; i++) {
        if (!column_gather(&out[i], &from->columns[i], rows, count, arena)) return false;
    }
    return true;
}

static bool number(struct column *out, const struct row_pairs *pairs, struct arena *arena)
{
    if (!column_init(out, TYPE(INT), pairs->count, arena)) return false;
    for (uint32_t i = 0; i < pairs->count; i++) {
        out->ints[i] = pairs->others[i];
    }
    return true;
}

status row_pairs_push(struct op_run *op, const struct batch *batch, const struct batch *others,
                      struct row_pairs *pairs, struct error *err)
{
    if (pairs->count == 0) return STATUS_OK;
    const struct finished *finished = op->run->finished;
    if (is_set(finished->stopped) || is_set(finished->cancelled)) {
        return error_set(err, STATUS_CANCELLED, "interrupted");
    }
    struct arena *arena = &op->run->batch_arena;
    struct arena_mark mark = arena_mark(arena);
    uint32_t first_count = batch->column_count;
    uint32_t other_count = others == NULL ? 1 : others->column_count;
    struct column *columns = arena_array(arena, struct column, first_count + other_count);
    if (columns == NULL || !gather(columns, batch, pairs->rows, pairs->count, arena) ||
        !(others == NULL
              ? number(columns + first_count, pairs, arena)
              : gather(columns + first_count, others, pairs->others, pairs->count, arena))) {
        return error_memory(err);
    }
    struct batch joined = {
        .row_count = pairs->count, .column_count = first_count + other_count, .columns = columns};
    pairs->count = 0;
    TRY(op_push_next(op, &joined, (struct selection){NULL, joined.row_count}, err));
    arena_release(arena, mark);
    return STATUS_OK;
}
