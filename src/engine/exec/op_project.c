/* SPDX-License-Identifier: Apache-2.0 */
/* op_project.c - new columns computed from those of the batch; rows keep their places. */
#include "engine/exec/op.h"

static status project_push(struct op_run *op, const struct batch *batch, struct selection selection,
                           struct error *err)
{
    uint32_t count = op->op->expr_count;
    struct column *columns = arena_array(&op->run->batch_arena, struct column, count + 1);
    if (columns == NULL) return error_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        TRY(op_eval(op, i, batch, selection, &columns[i], err));
    }
    struct batch projected = {
        .row_count = batch->row_count, .column_count = count, .columns = columns};
    return op_push_next(op, &projected, selection, err);
}

const struct op_class op_project = {.run_bytes = sizeof(struct op_run), .push = project_push};
