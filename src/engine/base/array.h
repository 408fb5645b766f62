/* SPDX-License-Identifier: Apache-2.0 */
/* array.h - an array that grows as items are added to it.
 *
 *     ARRAY_OF(struct token) tokens;                      zeroed is valid and empty
 *     struct token *token = array_add(&tokens, budget);   NULL: no memory
 *     tokens.items[i], tokens.count
 *     array_done(&tokens, budget);
 *
 * The macros take any struct with the fields of ARRAY_OF: a list that is passed on has a name.
 *
 * The capacity doubles: n additions copy fewer than 2n items in all (Cormen et al., Introduction to
 * Algorithms, "Dynamic tables").
 *
 * An addition may move the items: pointers into the array end with it, indexes stay. The budget
 * (may be NULL) is the same in every call for one array; it is a parameter, not a field, because
 * nearly every owner of an array has it at hand. An array that lives in an arena is added to with
 * array_add_in only, and has no array_done. The macros evaluate `array` more than once.
 *
 * Memory: owned by the array, or by the arena. Threads: one owner.
 */
#ifndef ENGINE_BASE_ARRAY_H
#define ENGINE_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/memory.h"

#define ARRAY_OF(type)                                                                             \
    struct {                                                                                       \
        type *items;                                                                               \
        uint32_t count;                                                                            \
        uint32_t capacity;                                                                         \
    }

/* The new last item, with whatever bytes are there; NULL also for more than UINT32_MAX. */
#define array_add(array, budget)                                                                   \
    (array_reserve(array, budget, (size_t)(array)->count + 1) ? &(array)->items[(array)->count++]  \
                                                              : NULL)

/* The same in an arena. */
#define array_add_in(array, arena)                                                                 \
    ((array)->count < (array)->capacity ||                                                         \
             array_grow_in(arena, (void **)&(array)->items, &(array)->capacity,                    \
                           sizeof *(array)->items)                                                 \
         ? &(array)->items[(array)->count++]                                                       \
         : NULL)

/* Room for `wanted` items in all, or false. */
#define array_reserve(array, budget, wanted)                                                       \
    ((wanted) <= (array)->capacity ||                                                              \
     array_grow(budget, (void **)&(array)->items, &(array)->capacity, sizeof *(array)->items,      \
                wanted))

/* Frees the items, not what they own. The array is empty then and may be used again. */
#define array_done(array, budget)                                                                  \
    array_free(budget, (void **)&(array)->items, &(array)->count, &(array)->capacity,              \
               sizeof *(array)->items)

/* Behind the macros. On failure everything stays as it was. */
MUST_USE bool array_grow(struct budget *budget, void **items, uint32_t *capacity, size_t item_bytes,
                         size_t wanted);
MUST_USE bool array_grow_in(struct arena *arena, void **items, uint32_t *capacity,
                            size_t item_bytes);
void array_free(struct budget *budget, void **items, uint32_t *count, uint32_t *capacity,
                size_t item_bytes);

#endif
