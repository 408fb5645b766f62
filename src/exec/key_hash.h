/* key_hash.h - one hash per row over some columns: what groups, joins and shards go by.
 *
 * Part of the protocol: the shard of a key must be the same on every machine.
 */
#ifndef EXEC_KEY_HASH_H
#define EXEC_KEY_HASH_H

#include "data/column.h"

/* out[i] for the i-th selected row. Equal keys have equal hashes, NULLs too. */
void key_hash(const struct batch *batch, const uint32_t *columns, uint32_t column_count,
              struct selection selection, uint64_t *out);

/* Whether the keys in two rows are equal, NULL being equal to NULL. */
bool key_equal(const struct batch *a, const uint32_t *columns_a, uint32_t row_a,
               const struct batch *b, const uint32_t *columns_b, uint32_t row_b, uint32_t count);

/* Whether some key column is NULL in this row. */
bool key_has_null(const struct batch *batch, const uint32_t *columns, uint32_t count, uint32_t row);

#endif
