/* SPDX-License-Identifier: Apache-2.0 */
/* spill_rows.h - rows that lie in a file: written in their order, and read in it, piece by piece.
 *
 *     spill_writer_open -> spill_writer_append* -> spill_writer_flush -> spill_writer_done
 *     spill_cursor_open -> spill_cursor_next* -> spill_cursor_done
 *
 * A piece is an encoded batch. Memory: lists of pieces are owned by their spill_rows; a writer
 * holds one piece in the making, a cursor one that is read. Both charge the place's budget.
 * Threads: one owner; what is written may be read by several.
 */
#ifndef ENGINE_EXEC_FOLD_SPILL_ROWS_H
#define ENGINE_EXEC_FOLD_SPILL_ROWS_H

#include "engine/base/array.h"
#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/data/batch_builder.h"
#include "engine/exec/fold/spill.h"

/* A file that is opened when something is written to it. */
struct spill_place {
    struct spill_store *store; /* Borrowed. */
    struct budget *budget;     /* Borrowed. */
    size_t piece_bytes;        /* How large a writer lets pieces become, about. */
    struct spill_file *file;   /* NULL: nothing was written. */
};

/* Closes the file; its rows are gone. */
void spill_place_done(struct spill_place *place);
MUST_USE status spill_place_write(struct spill_place *place, const struct buf *bytes,
                                  uint32_t row_count, struct spill_extent *out_extent,
                                  struct error *err);

struct spill_rows {
    struct spill_place *place; /* Borrowed. */
    struct schema schema;
    ARRAY_OF(struct spill_extent) extents;
    uint64_t row_count;
    uint64_t byte_count; /* Encoded. */
};

/* Appends a piece that is in the file. */
MUST_USE status spill_rows_add(struct spill_rows *rows, struct spill_extent extent,
                               struct error *err);
void spill_rows_done(struct spill_rows *rows);

struct spill_writer {
    struct spill_rows *rows; /* Borrowed. */
    struct batch_builder builder;
    struct buf bytes;
};

/* Whatever it returns, spill_writer_done may follow. */
MUST_USE status spill_writer_open(struct spill_writer *writer, struct spill_rows *rows,
                                  struct error *err);
/* The batch has the columns of the rows' schema, and maybe more behind them. */
MUST_USE status spill_writer_append(struct spill_writer *writer, const struct batch *batch,
                                    struct selection selection, struct error *err);
MUST_USE status spill_writer_flush(struct spill_writer *writer, struct error *err);
void spill_writer_done(struct spill_writer *writer);

struct spill_cursor {
    const struct spill_rows *rows; /* Borrowed. */
    size_t next_extent;
    struct buf bytes;
    struct arena arena;
    struct batch batch; /* Borrowed from the cursor until the next call; no rows: the end. */
};

void spill_cursor_open(struct spill_cursor *cursor, const struct spill_rows *rows);
MUST_USE status spill_cursor_next(struct spill_cursor *cursor, struct error *err);
void spill_cursor_done(struct spill_cursor *cursor);

#endif
