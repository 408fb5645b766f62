/* SPDX-License-Identifier: Apache-2.0 */
/* array.c - a heap block is resized in place where the allocator can; an arena cannot, so that an
 * array there leaves its old copy behind: at most as much again as the last one. */
#include "engine/base/array.h"

#include <string.h>

enum { FIRST_IN_HEAP = 16, FIRST_IN_ARENA = 4 };

/* Twice as many items, or `wanted`; 0: that is more than an array can have. */
static uint32_t grown_capacity(uint32_t capacity, uint32_t first, size_t wanted)
{
    uint64_t grown = capacity == 0 ? first : (uint64_t)capacity * 2;
    if (grown < wanted) grown = wanted;
    if (grown > UINT32_MAX) grown = UINT32_MAX;
    return grown < wanted ? 0 : (uint32_t)grown;
}

bool array_grow(struct budget *budget, void **items, uint32_t *capacity, size_t item_bytes,
                size_t wanted)
{
    uint32_t grown = grown_capacity(*capacity, FIRST_IN_HEAP, wanted);
    size_t grown_bytes;
    if (grown == 0 || __builtin_mul_overflow(grown, item_bytes, &grown_bytes)) return false;
    void *resized = memory_resize(budget, *items, *capacity * item_bytes, grown_bytes);
    if (resized == NULL) return false;
    *items = resized;
    *capacity = grown;
    return true;
}

bool array_grow_in(struct arena *arena, void **items, uint32_t *capacity, size_t item_bytes)
{
    uint32_t grown = grown_capacity(*capacity, FIRST_IN_ARENA, (size_t)*capacity + 1);
    void *copy = grown == 0 ? NULL : arena_calloc(arena, grown, item_bytes, alignof(max_align_t));
    if (copy == NULL) return false;
    if (*capacity > 0) memcpy(copy, *items, *capacity * item_bytes);
    *items = copy;
    *capacity = grown;
    return true;
}

void array_free(struct budget *budget, void **items, uint32_t *count, uint32_t *capacity,
                size_t item_bytes)
{
    memory_free(budget, *items, *capacity * item_bytes);
    *items = NULL;
    *count = *capacity = 0;
}
