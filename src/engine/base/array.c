/* array.c - a heap block is resized in place where the allocator can; an arena cannot, so that an
 * array there leaves its old copy behind: at most as much again as the last one. */
#include "engine/base/array.h"

#include <string.h>

enum { FIRST_IN_HEAP = 16, FIRST_IN_ARENA = 4 };

bool array_grow(struct budget *budget, void **items, size_t *capacity, size_t item_bytes,
                size_t wanted)
{
    size_t grown = *capacity == 0 ? FIRST_IN_HEAP : *capacity * 2;
    if (grown < wanted) grown = wanted;
    size_t grown_bytes;
    if (__builtin_mul_overflow(grown, item_bytes, &grown_bytes)) return false;
    void *resized = memory_resize(budget, *items, *capacity * item_bytes, grown_bytes);
    if (resized == NULL) return false;
    *items = resized;
    *capacity = grown;
    return true;
}

bool array_grow_in(struct arena *arena, void **items, size_t *capacity, size_t item_bytes)
{
    size_t grown = *capacity == 0 ? FIRST_IN_ARENA : *capacity * 2;
    void *copy = arena_calloc(arena, grown, item_bytes, alignof(max_align_t));
    if (copy == NULL) return false;
    if (*capacity > 0) memcpy(copy, *items, *capacity * item_bytes);
    *items = copy;
    *capacity = grown;
    return true;
}

void array_free(struct budget *budget, void **items, size_t *count, size_t *capacity,
                size_t item_bytes)
{
    memory_free(budget, *items, *capacity * item_bytes);
    *items = NULL;
    *count = *capacity = 0;
}
