/* late_column.c - each column that is named, once. */
#include "engine/exec/scan/late_column.h"

static void note_column(const struct expr *expr, void *context)
{
    struct column_loads *loads = context;
    if (expr->kind != EXPR_COLUMN) return;
    for (uint32_t i = 0; i < loads->count; i++) {
        if (loads->items[i].column == expr->column) return;
    }
    loads->items[loads->count++] = (struct column_load){.column = expr->column};
}

status column_loads_of(const struct expr *expr, uint32_t column_count, struct arena *arena,
                       struct column_loads *out, struct error *err)
{
    *out = (struct column_loads){.items = arena_array(arena, struct column_load, column_count + 1)};
    if (out->items == NULL) return error_memory(err);
    expr_visit(expr, note_column, out);
    for (uint32_t i = 0; i < out->count; i++) {
        out->items[i].reach = expr_reach(expr, out->items[i].column);
    }
    return STATUS_OK;
}

status column_loads_run(const struct column_loads *loads, struct column_loader *loader,
                        struct selection selection, struct error *err)
{
    for (uint32_t i = 0; loader != NULL && i < loads->count; i++) {
        TRY(loader->load(loader, loads->items[i].column, selection, loads->items[i].reach, err));
    }
    return STATUS_OK;
}
