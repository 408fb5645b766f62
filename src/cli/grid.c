/* SPDX-License-Identifier: Apache-2.0 */
/* grid.c - widths, colours and cutting are the business of engine/data/print_table.c. */
#include "cli/grid.h"

#include "engine/data/print_table.h"

enum { PLAIN_TEXT_WIDTH = 40, TERMINAL_TEXT_WIDTH = 20 };

void grid_init(struct grid *grid, const struct field *fields, uint32_t field_count,
               uint32_t row_capacity, struct arena *arena)
{
    *grid = (struct grid){.schema = {fields, field_count}, .arena = arena};
    grid->batch.column_count = field_count;
    grid->batch.columns = arena_array(arena, struct column, field_count);
    grid->failed = grid->batch.columns == NULL;
    for (uint32_t i = 0; i < field_count && !grid->failed; i++) {
        struct column *column = &grid->batch.columns[i];
        column->type = fields[i].type;
        column->data = fields[i].type.kind == TYPE_TEXT
                           ? (void *)arena_array(arena, struct text, (size_t)row_capacity + 1)
                           : (void *)arena_array(arena, int64_t, (size_t)row_capacity + 1);
        grid->failed = column->data == NULL;
    }
}

void grid_text(struct grid *grid, uint32_t column, struct text value)
{
    if (!grid->failed) grid->batch.columns[column].texts[grid->batch.row_count] = value;
}

void grid_count(struct grid *grid, uint32_t column, uint64_t value)
{
    if (!grid->failed) grid->batch.columns[column].ints[grid->batch.row_count] = (int64_t)value;
}

void grid_row(struct grid *grid)
{
    grid->batch.row_count++;
}

void grid_draw(struct grid *grid, const char *title, struct terminal terminal, struct buf *out)
{
    struct print_table_options options = {
        .line_width = terminal.width,
        .text_width = terminal.is_terminal ? TERMINAL_TEXT_WIDTH : PLAIN_TEXT_WIDTH,
        .row_limit = PRINT_TABLE_ALL_ROWS,
        .color = terminal.color,
        .plain = true,
    };
    struct print_table table;
    print_table_init(&table, &grid->schema, options);
    if (!grid->failed) print_table_add(&table, &grid->batch);
    print_table_finish(&table, text_of(title), out);
    print_table_done(&table);
    if (grid->failed) out->failed = true;
}
