/* SPDX-License-Identifier: Apache-2.0 */
/* late_column.h - which columns of a source an expression needs, and how much of them.
 *
 * Late materialization (Abadi, Myers, DeWitt, Madden: Materialization strategies in a
 * column-oriented DBMS, 2007): a source's batches come without the values of their TEXT columns
 * (chunk_scan.h). Before an expression is evaluated, the rows it is evaluated for are asked for,
 * each time; rows that are there already cost nothing.
 *
 * Memory: lists live in the arena they are made in. Threads: one owner.
 */
#ifndef ENGINE_EXEC_SCAN_LATE_COLUMN_H
#define ENGINE_EXEC_SCAN_LATE_COLUMN_H

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/data/column.h"
#include "engine/plan/expr.h"

/* Fills columns of the source's batches when they are first needed. */
struct materializer {
    /* `prefix`: see expr_prefix. */
    status (*load)(struct materializer *materializer, uint32_t column, struct selection selection,
                   uint32_t prefix, struct error *err);
};

struct late_column {
    uint32_t column;
    uint32_t prefix;
};

struct late_columns {
    struct late_column *items;
    uint32_t count;
};

/* The columns that the expression reads, of `column_count`. */
MUST_USE status late_columns_of(const struct expr *expr, uint32_t column_count, struct arena *arena,
                                struct late_columns *out, struct error *err);
/* Does nothing when the materializer is NULL: all columns are there. */
MUST_USE status late_columns_run(const struct late_columns *columns,
                                 struct materializer *materializer, struct selection selection,
                                 struct error *err);

#endif
