/* SPDX-License-Identifier: Apache-2.0 */
/* key_hash.h - one hash per row over some columns: what groups, joins and shards are found by.
 *
 * Part of the protocol: the shard of a key must be the same on every machine.
 */
#ifndef ENGINE_DATA_KEY_HASH_H
#define ENGINE_DATA_KEY_HASH_H

#include "engine/base/hash.h"
#include "engine/data/column.h"

#define KEY_HASH_NULL 0x9ae16a3b2f90404fu /* In the place of a value. */

/* out[i] for the i-th selected row. Equal keys have equal hashes, NULLs too. */
void key_hash(const struct batch *batch, const uint32_t *columns, uint32_t column_count,
              struct selection selection, uint64_t *out);

/* The same for one row, whose keys are integers of any kind, with a byte each that is 1 for NULL.
 */
static inline uint64_t key_hash_words(const int64_t *words, const unsigned char *nulls,
                                      uint32_t count)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < count; i++) {
        hash = hash_combine(hash, nulls[i] != 0 ? KEY_HASH_NULL : (uint64_t)words[i]);
    }
    return hash;
}

/* Whether the keys in two rows are equal, NULL being equal to NULL. */
bool key_equal(const struct batch *a, const uint32_t *columns_a, uint32_t row_a,
               const struct batch *b, const uint32_t *columns_b, uint32_t row_b, uint32_t count);

/* Whether some key column is NULL in this row. */
bool key_has_null(const struct batch *batch, const uint32_t *columns, uint32_t count, uint32_t row);

#endif
