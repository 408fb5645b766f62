/* SPDX-License-Identifier: Apache-2.0 */
/* rank_gate.h - rejects rows that are not among the best k of those seen, by one number of each.
 *
 * The number is a prefix of the first sort key (row_sort.h): it never orders two rows the other way
 * round than their keys. The gate knows the k-th smallest prefix offered so far; a row with a
 * larger one is not among the best, and rows that share it are let in.
 *
 * Memory: owned, charged to the budget, all of it from the start. Threads: one owner.
 */
#ifndef ENGINE_EXEC_FOLD_RANK_GATE_H
#define ENGINE_EXEC_FOLD_RANK_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/memory.h"

enum {
    RANK_GATE_LIMIT = 1 << 14, /* A gate for more rows is not worth its memory. */
    RANK_GATE_ROWS = 2048      /* At most so many are offered at once. */
};

struct rank_gate {
    struct budget *budget;
    uint32_t limit;
    uint64_t highest; /* Prefix that still gets in. */
    uint64_t *held;   /* The smallest prefixes that were let in, at least `limit` of them if so many
                         were offered, in no order. */
    uint32_t held_count;
    uint32_t next_look; /* With so many held, `highest` is computed again. */
    uint64_t *scratch;
};

/* The limit is at least 1. False: out of memory. */
MUST_USE bool rank_gate_init(struct rank_gate *gate, uint32_t limit, struct budget *budget);
void rank_gate_done(struct rank_gate *gate);
void rank_gate_reset(struct rank_gate *gate);

/* Of the rows with these prefixes leaves those that get in, in their order; returns how many. Both
 * arrays are written. */
uint32_t rank_gate_pass(struct rank_gate *gate, uint64_t *prefixes, uint32_t *rows, uint32_t count);
/* The same for rows that were let in before, some of which it would reject now. */
uint32_t rank_gate_left(const struct rank_gate *gate, uint64_t *prefixes, uint32_t *rows,
                        uint32_t count);

#endif
