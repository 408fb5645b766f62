/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c - a chain of blocks that double in size.
 *
 * Region-based allocation (Hanson, "Fast Allocation and Deallocation of Memory Based on Object
 * Lifetimes", Software: Practice and Experience 20(1), 1990): an allocation is an addition, and
 * freeing is one reset for all. Doubling keeps the number of blocks logarithmic; a large request
 * gets a block of its own size.
 */
#include "engine/base/arena.h"

#include "engine/base/assert.h"

enum { FIRST_BLOCK_BYTES = 4096, LARGEST_GROWN_BLOCK_BYTES = 1 << 20 };

struct arena_block {
    struct arena_block *older;
    size_t size_bytes; /* With this header. */
};

void arena_init(struct arena *arena, struct budget *budget)
{
    *arena = (struct arena){.budget = budget};
}

static void start_block(struct arena *arena, struct arena_block *block)
{
    block->older = arena->current;
    arena->current = block;
    arena->next = (unsigned char *)block + sizeof *block;
    arena->end = (unsigned char *)block + block->size_bytes;
}

static struct arena_block *take_spare(struct arena *arena, size_t needed_bytes)
{
    for (struct arena_block **link = &arena->spare; *link != NULL; link = &(*link)->older) {
        if ((*link)->size_bytes >= needed_bytes) {
            struct arena_block *block = *link;
            *link = block->older;
            return block;
        }
    }
    return NULL;
}

void *arena_alloc_slow(struct arena *arena, size_t size_bytes, size_t align)
{
    ASSERT(align != 0 && (align & (align - 1)) == 0);
    size_t needed_bytes;
    if (__builtin_add_overflow(size_bytes, sizeof(struct arena_block) + align, &needed_bytes)) {
        return NULL;
    }
    struct arena_block *block = take_spare(arena, needed_bytes);
    if (block == NULL) {
        /* One spare goes for each block that comes: requests that grow and grow do not leave a
         * trail of blocks that are all too small. */
        struct arena_block *outgrown = arena->spare;
        if (outgrown != NULL) {
            arena->spare = outgrown->older;
            memory_free(arena->budget, outgrown, outgrown->size_bytes);
        }
        size_t grown_bytes = FIRST_BLOCK_BYTES;
        if (arena->current != NULL) grown_bytes = arena->current->size_bytes * 2;
        if (grown_bytes > LARGEST_GROWN_BLOCK_BYTES) grown_bytes = LARGEST_GROWN_BLOCK_BYTES;
        if (grown_bytes < needed_bytes) grown_bytes = needed_bytes;
        block = memory_alloc(arena->budget, grown_bytes);
        if (block == NULL) return NULL;
        block->size_bytes = grown_bytes;
    }
    start_block(arena, block);
    return arena_alloc(arena, size_bytes, align);
}

void *arena_calloc(struct arena *arena, size_t count, size_t size_bytes, size_t align)
{
    size_t total_bytes;
    if (__builtin_mul_overflow(count, size_bytes, &total_bytes)) return NULL;
    void *block = arena_alloc(arena, total_bytes, align);
    if (block != NULL) memset(block, 0, total_bytes);
    return block;
}

struct arena_mark arena_mark(const struct arena *arena)
{
    return (struct arena_mark){arena->current, arena->next, arena->end};
}

void arena_release(struct arena *arena, struct arena_mark mark)
{
    while (arena->current != mark.current) {
        struct arena_block *block = arena->current;
        ASSERT(block != NULL);
        arena->current = block->older;
        block->older = arena->spare;
        arena->spare = block;
    }
    arena->next = mark.next;
    arena->end = mark.end;
}

void arena_reset(struct arena *arena)
{
    arena_release(arena, (struct arena_mark){0});
}

static void free_chain(struct arena *arena, struct arena_block *block)
{
    while (block != NULL) {
        struct arena_block *older = block->older;
        memory_free(arena->budget, block, block->size_bytes);
        block = older;
    }
}

void arena_done(struct arena *arena)
{
    free_chain(arena, arena->current);
    free_chain(arena, arena->spare);
    *arena = (struct arena){.budget = arena->budget};
}

char *arena_copy_string(struct arena *arena, struct text text)
{
    char *copy = arena_alloc(arena, (size_t)text.size + 1, 1);
    if (copy == NULL) return NULL;
    if (text.size > 0) memcpy(copy, text.bytes, text.size);
    copy[text.size] = '\0';
    return copy;
}
