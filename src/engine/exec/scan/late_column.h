/* late_column.h - which columns of a source an expression needs, and how much of them.
 *
 * A source's batches come without the values of their TEXT columns (chunk_scan.h). Whoever computes
 * something from them asks for the rows it looks at, each time: of those that are there nothing is
 * done again.
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
    /* For `reach` see expr_prefix. */
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

/* What the expression reads, of `column_count` columns. */
MUST_USE status late_columns_of(const struct expr *expr, uint32_t column_count, struct arena *arena,
                                struct late_columns *out, struct error *err);
/* Nothing is to be done when the loader is NULL: all columns are there. */
MUST_USE status late_columns_run(const struct late_columns *loads,
                                 struct materializer *materializer, struct selection selection,
                                 struct error *err);

#endif
