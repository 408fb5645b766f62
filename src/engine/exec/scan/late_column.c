/* late_column.c - each column that is named, once. */
#include "engine/exec/scan/late_column.h"

static void note_column(const struct expr *expr, void *context)
{
    struct late_columns *loads = context;
    if (expr->kind != EXPR_COLUMN) return;
    for (uint32_t i = 0; i < loads->count; i++) {
        if (loads->items[i].column == expr->column) return;
    }
    loads->items[loads->count++] = (struct late_column){.column = expr->column};
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

status late_columns_run(const struct late_columns *loads, struct materializer *materializer,
                        struct selection selection, struct error *err)
{
    for (uint32_t i = 0; materializer != NULL && i < loads->count; i++) {
        TRY(materializer->load(materializer, loads->items[i].column, selection,
                               loads->items[i].prefix, err));
    }
    return STATUS_OK;
}
