/* SPDX-License-Identifier: Apache-2.0 */
/* op_probe.c - the probing half of a hash join: each row looks up its partners in the hash table of
 * a finished fold (join_table.h).
 *
 * PROBE_ROW and PROBE_FETCH are late materialization across an exchange: a row number is sent
 * instead of the build side's columns, and aggregation by it needs no comparison of texts; the
 * columns are fetched behind the fold, for the few rows that are left.
 */
#include "engine/base/assert.h"
#include "engine/exec/row_pairs.h"

static status push_found(struct op_run *op, const struct batch *batch,
                         const struct join_table *side, struct row_pairs *pairs, struct error *err)
{
    if (op->op->probe != PROBE_ROW) return row_pairs_push(op, batch, &side->rows, pairs, err);
    ASSERT(!op->op->keep_unmatched); /* No row, no number. */
    const uint32_t *duplicates = side->duplicates[op->op->duplicate_set];
    for (uint32_t i = 0; duplicates != NULL && i < pairs->count; i++) {
        pairs->others[i] = duplicates[pairs->others[i]];
    }
    return row_pairs_push(op, batch, NULL, pairs, err);
}

/* Each row with the row of the build side whose number it has. */
static status fetch_push(struct op_run *op, const struct batch *batch, struct selection selection,
                         struct error *err)
{
    const struct join_table *side = &op->run->finished->sides[op->op->side];
    const struct column *numbers = &batch->columns[op->op->key_columns[0]];
    struct row_pairs *pairs;
    TRY(row_pairs_new(op, &pairs, err));
    pairs->count = selection.count;
    for (uint32_t i = 0; i < selection.count; i++) {
        uint32_t row = selection_row(selection, i);
        uint64_t number = (uint64_t)numbers->ints[row];
        /* From a message: a worker with another build side would not get here, a broken one might.
         */
        if (column_is_null(numbers, row) || number >= side->rows.row_count) {
            return error_set(err, STATUS_INTERNAL, "a row of a build side that has none of it");
        }
        pairs->rows[i] = row;
        pairs->others[i] = (uint32_t)number;
    }
    return row_pairs_push(op, batch, &side->rows, pairs, err);
}

static status probe_push(struct op_run *op, const struct batch *batch, struct selection selection,
                         struct error *err)
{
    const struct op *plan = op->op;
    const struct join_table *side = &op->run->finished->sides[plan->side];
    if (plan->probe == PROBE_FETCH) return fetch_push(op, batch, selection, err);
    struct join_probe *probe =
        arena_alloc(&op->run->batch_arena, sizeof *probe, alignof(struct join_probe));
    if (probe == NULL) return error_memory(err);
    if (plan->keep_unmatched) {
        join_table_probe_all(side, batch, plan->key_columns, selection, probe);
    } else {
        join_table_probe(side, batch, plan->key_columns, selection, probe);
    }
    /* Rows that have a partner, each once: the selection shrinks and nothing is gathered. */
    if (plan->probe == PROBE_SEMI) {
        return op_push_next(op, batch, (struct selection){probe->rows, probe->count}, err);
    }
    struct row_pairs *pairs;
    TRY(row_pairs_new(op, &pairs, err));
    for (uint32_t i = 0; i < probe->count; i++) {
        uint32_t found = probe->found[i];
        do {
            pairs->rows[pairs->count] = probe->rows[i];
            pairs->others[pairs->count++] = found;
            if (pairs->count == PIPELINE_ROWS) TRY(push_found(op, batch, side, pairs, err));
            if (found != ROW_NONE) found = side->next[found];
        } while (found != ROW_NONE);
    }
    return push_found(op, batch, side, pairs, err);
}

const struct op_class op_probe = {.run_bytes = sizeof(struct op_run), .push = probe_push};
