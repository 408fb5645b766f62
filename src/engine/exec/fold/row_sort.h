/* SPDX-License-Identifier: Apache-2.0 */
/* row_sort.h - the order of a batch's rows by sort keys. */
#ifndef ENGINE_EXEC_FOLD_ROW_SORT_H
#define ENGINE_EXEC_FOLD_ROW_SORT_H

#include "engine/base/error.h"
#include "engine/data/column.h"
#include "engine/plan/plan.h"

/* Order of two rows by the keys; 0 only when all key columns are equal. */
int row_compare(const struct batch *a, uint32_t row_a, const struct batch *b, uint32_t row_b,
                const struct sort_key *keys, uint32_t key_count);

/* By selected row, a number for one key: rows with different numbers stand in their order, those
 * with the same one may stand in any. */
void row_prefixes(const struct batch *batch, const struct sort_key *key, struct selection selection,
                  uint64_t *out);

/* Sorts `rows` (row numbers of the batch). Scratch memory comes from the arena. False: out of
 * memory. */
MUST_USE bool row_sort(const struct batch *batch, const struct sort_key *keys, uint32_t key_count,
                       uint32_t *rows, uint32_t count, struct arena *arena);

#endif
