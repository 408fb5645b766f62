/* SPDX-License-Identifier: Apache-2.0 */
/* grid.h - a small table of ours, drawn by the printer of answers.
 *
 *     grid_init -> (grid_text | grid_count, of every column; grid_row)* -> grid_draw
 *
 * Memory: from the arena; texts are borrowed until it is drawn. Failure: sticky, told by the buf
 * that it is drawn into. Threads: one owner.
 */
#ifndef CLI_GRID_H
#define CLI_GRID_H

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "cli/terminal.h"
#include "engine/data/column.h"
#include "engine/data/schema.h"

/* A batch under construction: TEXT and INT columns, filled row by row. */
struct grid {
    struct schema schema;
    struct batch batch;
    struct arena *arena;
    bool failed;
};

#define GRID_FIELD(title, of)                                                                      \
    {                                                                                              \
        .name = {(title), sizeof(title) - 1}, .type = {.kind = TYPE_##of }                         \
    }

void grid_init(struct grid *grid, const struct field *fields, uint32_t field_count,
               uint32_t row_capacity, struct arena *arena);
void grid_text(struct grid *grid, uint32_t column, struct text value);
void grid_count(struct grid *grid, uint32_t column, uint64_t value);
/* The row has all its values. */
void grid_row(struct grid *grid);
void grid_draw(struct grid *grid, const char *title, struct terminal terminal, struct buf *out);

#endif
