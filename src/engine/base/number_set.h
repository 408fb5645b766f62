/* SPDX-License-Identifier: Apache-2.0 */
/* number_set.h - which of the numbers 0, 1, 2... are in: dense sets, one bit each.
 *
 * Memory: owned, charged to the budget; as much as the highest number asks for, so that a caller
 * checks numbers from outside against a limit first. A zeroed set (with its budget) is empty.
 */
#ifndef ENGINE_BASE_NUMBER_SET_H
#define ENGINE_BASE_NUMBER_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/memory.h"

struct number_set {
    uint64_t *words;
    uint64_t word_count;
    uint64_t count;      /* How many are in. */
    uint64_t contiguous; /* All numbers below this one are in, and it is not. */
    struct budget *budget;
};

void number_set_done(struct number_set *set);
bool number_set_has(const struct number_set *set, uint64_t number);
/* Adding twice is adding once. False: memory is out. */
MUST_USE bool number_set_add(struct number_set *set, uint64_t number);
/* The lowest number from `from` on that is not in. */
uint64_t number_set_missing(const struct number_set *set, uint64_t from);

#endif
