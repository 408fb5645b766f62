/* SPDX-License-Identifier: Apache-2.0 */
/* op_unnest.c - a row per element of a list; rows with an empty list or NULL give none.
 *
 * An element is named by its place in the list column's child, so UNNEST is a join of rows with
 * elements whose pairs are known, and gathers as joins do.
 */
#include "engine/exec/row_pairs.h"

static status unnest_push(struct op_run *op, const struct batch *batch, struct selection selection,
                          struct error *err)
{
    struct column lists;
    struct row_pairs *pairs;
    TRY(row_pairs_new(op, &pairs, err));
    TRY(op_eval(op, 0, batch, selection, &lists, err));
    struct batch elements = {.column_count = 1, .columns = lists.child};
    for (uint32_t i = 0; i < selection.count; i++) {
        uint32_t row = selection_row(selection, i);
        if (column_is_null(&lists, row)) continue;
        struct list list = lists.lists[row];
        for (uint32_t j = 0; j < list.count; j++) {
            pairs->rows[pairs->count] = row;
            pairs->others[pairs->count++] = list.first + j;
            if (pairs->count == PIPELINE_ROWS) {
                TRY(row_pairs_push(op, batch, &elements, pairs, err));
            }
        }
    }
    return row_pairs_push(op, batch, &elements, pairs, err);
}

const struct op_class op_unnest = {.run_bytes = sizeof(struct op_run), .push = unnest_push};
