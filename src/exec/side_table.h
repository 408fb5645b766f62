/* side_table.h - the built side of a join: rows, and a hash table over their first columns.
 *
 * Read-only once built; any number of threads may probe it.
 */
#ifndef EXEC_SIDE_TABLE_H
#define EXEC_SIDE_TABLE_H

#include "base/error.h"
#include "data/column.h"

struct side_table {
    struct batch rows; /* Borrowed. */
    uint32_t key_count;
    const uint32_t *key_columns; /* 0, 1, 2... */
    const uint64_t *slots;       /* hash's upper half << 32 | row + 1; 0: free */
    size_t slot_count;
    const uint32_t *next; /* The next row with the same key, ROW_NONE: no more. */
};

/* Rows with a NULL key are left out of the hash table: they match nothing. */
MUST_USE status side_table_build(struct side_table *table, struct batch rows, uint32_t key_count,
                                 struct arena *arena, struct error *err);

/* The first row whose key equals that of `row`, or ROW_NONE; go on with table->next. */
uint32_t side_table_find(const struct side_table *table, uint64_t hash, const struct batch *batch,
                         const uint32_t *columns, uint32_t row);

#endif
