/* SPDX-License-Identifier: Apache-2.0 */
/* late_column.c - each column that an expression names, once. */
#include "engine/exec/scan/late_column.h"

static void note_column(const struct expr *expr, void *context)
{
    struct late_columns *columns = context;
    if (expr->kind != EXPR_COLUMN) return;
    for (uint32_t i = 0; i < columns->count; i++) {
        if (columns->items[i].column == expr->column) return;
    }
    columns->items[columns->count++] = (struct late_column){.column = expr->column};
}

status late_columns_of(const struct expr *expr, uint32_t column_count, struct arena *arena,
                       struct late_columns *out, struct error *err)
{
    *out = (struct late_columns){.items = arena_array(arena, struct late_column, column_count + 1)};
    if (out->items == NULL) return error_memory(err);
    expr_visit(expr, note_column, out);
    for (uint32_t i = 0; i < out->count; i++) {
        out->items[i].prefix = expr_prefix(expr, out->items[i].column);
    }
    return STATUS_OK;
}

status late_columns_run(const struct late_columns *columns, struct materializer *materializer,
                        struct selection selection, struct error *err)
{
    for (uint32_t i = 0; materializer != NULL && i < columns->count; i++) {
        TRY(materializer->load(materializer, columns->items[i].column, selection,
                               columns->items[i].prefix, err));
    }
    return STATUS_OK;
}
