/* SPDX-License-Identifier: Apache-2.0 */
/* op_filter.c - rows where all conditions hold.
 *
 * Only the selection (a selection vector, as in MonetDB/X100) becomes shorter; values stay in
 * place, so that a condition costs nothing for the columns that it does not read. Between two
 * conditions rows may also be left out for a join behind the filter (early_filter.h).
 */
#include "engine/exec/early_filter.h"
#include "engine/exec/op.h"

struct filter_run {
    struct op_run op;
    struct early_filter *early; /* NULL: none. */
};

static bool is_first(const struct op_run *op)
{
    return op->op == op->run->pipeline->ops;
}

static status filter_init(struct op_run *op, struct error *err)
{
    if (!is_first(op)) return STATUS_OK;
    struct filter_run *filter = (struct filter_run *)op;
    return early_filter_create(op->run->pipeline, &op->run->arena, &filter->early, err);
}

/* Leaves out rows that the join behind filter and projection would leave out. */
static status filter_early(struct filter_run *filter, const struct batch *batch,
                           struct selection *in_out_selection, struct error *err)
{
    struct pipeline_run *run = filter->op.run;
    struct op_run *project = run->ops[EARLY_FILTER_PROJECT];
    const struct op *probe = run->ops[EARLY_FILTER_PROBE]->op;
    struct selection selection = *in_out_selection;
    struct batch projected = {
        .row_count = batch->row_count,
        .column_count = project->op->expr_count,
        .columns = arena_array(&run->batch_arena, struct column, project->op->expr_count + 1)};
    struct join_probe *found =
        arena_alloc(&run->batch_arena, sizeof *found, alignof(struct join_probe));
    if (projected.columns == NULL || found == NULL) return error_memory(err);
    for (uint32_t i = 0; i < probe->key_count; i++) {
        uint32_t key = probe->key_columns[i];
        TRY(op_eval(project, key, batch, selection, &projected.columns[key], err));
    }
    join_table_filter(&run->finished->sides[probe->side], &projected, probe->key_columns, selection,
                      found);
    early_filter_note(filter->early, selection.count, found->count);
    *in_out_selection = (struct selection){found->rows, found->count};
    return STATUS_OK;
}

static status filter_push(struct op_run *op, const struct batch *batch, struct selection selection,
                          struct error *err)
{
    struct filter_run *filter = (struct filter_run *)op;
    struct pipeline_run *run = op->run;
    const bool *known = is_first(op) ? run->known : NULL;
    uint32_t *rows = arena_alloc(&run->batch_arena, (size_t)selection.count * sizeof *rows + 4,
                                 alignof(uint32_t));
    if (rows == NULL) return error_memory(err);
    struct eval_context context = op_eval_context(run);
    for (uint32_t i = 0; i < op->op->expr_count && selection.count > 0; i++) {
        uint32_t count;
        if (known != NULL && known[i]) continue;
        if (early_filter_is_due(filter->early, i, known)) {
            TRY(filter_early(filter, batch, &selection, err));
        }
        TRY(late_columns_run(&op->late[i], run->materializer, selection, err));
        TRY(eval_filter(op->evals[i], batch, selection, &context, rows, &count, err));
        selection = (struct selection){rows, count};
    }
    return op_push_next(op, batch, selection, err);
}

const struct op_class op_filter = {
    .run_bytes = sizeof(struct filter_run),
    .keeps_rows = true,
    .init = filter_init,
    .push = filter_push,
};
