/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h - memory that lives and dies together.
 *
 *     arena_init -> arena_alloc* -> (arena_reset -> arena_alloc*)* -> arena_done
 *
 * A zeroed arena is valid, empty and without budget. After a reset the blocks are kept, so that a
 * batch arena allocates nothing in steady state.
 *
 * Failure: NULL. Threads: one owner at a time.
 */
#ifndef ENGINE_BASE_ARENA_H
#define ENGINE_BASE_ARENA_H

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"

struct arena_block;

struct arena {
    struct budget *budget;       /* Borrowed; may be NULL. */
    struct arena_block *current; /* The block that is being filled. */
    struct arena_block *spare;   /* Kept by a reset, to be used again. */
    unsigned char *next;
    unsigned char *end;
};

void arena_init(struct arena *arena, struct budget *budget);
void arena_reset(struct arena *arena);
void arena_done(struct arena *arena);

/* What is allocated after arena_mark is given back by arena_release, latest mark first. */
struct arena_mark {
    struct arena_block *current;
    unsigned char *next;
    unsigned char *end;
};
struct arena_mark arena_mark(const struct arena *arena);
void arena_release(struct arena *arena, struct arena_mark mark);

void *arena_alloc_slow(struct arena *arena, size_t size_bytes, size_t align);

/* Not cleared. */
static inline void *arena_alloc(struct arena *arena, size_t size_bytes, size_t align)
{
    uintptr_t start = ((uintptr_t)arena->next + align - 1) & ~(uintptr_t)(align - 1);
    if (LIKELY(arena->next != NULL && start <= (uintptr_t)arena->end &&
               size_bytes <= (uintptr_t)arena->end - start)) {
        arena->next = (unsigned char *)start + size_bytes;
        return (void *)start;
    }
    return arena_alloc_slow(arena, size_bytes, align);
}

/* Zeroed; NULL also when count * size does not fit size_t. */
void *arena_calloc(struct arena *arena, size_t count, size_t size_bytes, size_t align);

#define arena_new(arena, type) ((type *)arena_calloc((arena), 1, sizeof(type), alignof(type)))
#define arena_array(arena, type, count)                                                            \
    ((type *)arena_calloc((arena), (count), sizeof(type), alignof(type)))

/* A terminated copy of the bytes. */
char *arena_copy_string(struct arena *arena, struct text text);

#endif
