/* SPDX-License-Identifier: Apache-2.0 */
/* column.h - values of one type, one per row; and batches: columns of equal length.
 *
 * A column is a view: its maker says which arena the arrays live in. Values are processed a batch
 * at a time (Boncz, Zukowski and Nes, "MonetDB/X100: Hyper-Pipelining Query Execution", CIDR 2005).
 * Rows of a batch keep their places while it passes through expressions and filters; a selection
 * vector (ascending row numbers) tells which rows are left, no value is moved.
 */
#ifndef ENGINE_DATA_COLUMN_H
#define ENGINE_DATA_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/text.h"
#include "engine/data/type.h"

/* Elements first .. first+count-1 of the list column's child. */
struct list {
    uint32_t first;
    uint32_t count;
};

struct column {
    struct type type;
    uint8_t *nulls; /* 1: NULL. The array itself is NULL when no row is. */
    union {
        void *data;
        uint8_t *bools;
        int64_t *ints; /* INT, DECIMAL, DATE, TIMESTAMP */
        double *doubles;
        struct text *texts;
        struct list *lists;
    };
    struct column *child; /* Elements of lists: TEXT or INT, never NULL. */
};

struct batch {
    uint32_t row_count;
    uint32_t column_count;
    struct column *columns;
};

/* Rows of a batch that are still meant: ascending; rows == NULL means 0 .. count-1. */
struct selection {
    const uint32_t *rows;
    uint32_t count;
};

static inline uint32_t selection_row(struct selection selection, uint32_t i)
{
    return selection.rows == NULL ? i : selection.rows[i];
}

static inline bool column_is_null(const struct column *column, uint32_t row)
{
    return column->nulls != NULL && column->nulls[row] != 0;
}

/* Arrays for `row_count` rows, not cleared, without a nulls array. False: out of memory. */
MUST_USE bool column_init(struct column *column, struct type type, uint32_t row_count,
                          struct arena *arena);
/* Gives the column a cleared nulls array for `row_count` rows if it has none. */
MUST_USE bool column_need_nulls(struct column *column, uint32_t row_count, struct arena *arena);

/* Order of two values of one type: NULLs last, text by bytes, lists by elements. */
int column_compare(const struct column *a, uint32_t row_a, const struct column *b, uint32_t row_b);
/* The same hash for equal values, NULL included, on every machine. */
uint64_t column_hash(const struct column *column, uint32_t row);

/* out->[i] = in->[rows[i]] for i < count; a row of ROW_NONE gives NULL. Texts and list children are
 * borrowed from `in`. False: out of memory. */
#define ROW_NONE UINT32_MAX
MUST_USE bool column_gather(struct column *out, const struct column *in, const uint32_t *rows,
                            uint32_t count, struct arena *arena);

/* Rows first .. first+count-1 of a batch, as a view. `columns` has room for batch->column_count. */
struct batch batch_slice(const struct batch *batch, uint32_t first, uint32_t count,
                         struct column *columns);

#endif
