/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - the only door to the allocator, and the budget that bounds a job.
 *
 * Everything above base/ allocates through arenas (arena.h) and buffers (buf.h), which charge the
 * budget they were born with. A budget that is used up makes the allocation fail like any other;
 * the owner of the arena says which query and operator it was.
 *
 * A budget may be part of another: what it holds counts there too. So a part of a job knows what it
 * holds itself, and the job's limit binds them all.
 *
 * Threads: all functions and one budget may be used from any thread.
 */
#ifndef ENGINE_BASE_MEMORY_H
#define ENGINE_BASE_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "engine/base/fault_injection.h"

struct budget {
    size_t limit_bytes; /* 0: none. */
    atomic_size_t used_bytes;
    atomic_size_t peak_bytes;
    struct budget *parent; /* Borrowed; NULL: none. */
};

/* The smallest limit of the budget (may be NULL) and of those it is part of; 0: none. */
size_t budget_limit(const struct budget *budget);
/* How much more fits below that limit; SIZE_MAX: there is none. */
size_t budget_room(const struct budget *budget);

/* Counts what was there before anything was asked of the budget, which is empty, but no more than
 * a quarter of its limit: so that little does not become too little. */
void budget_start(struct budget *budget, size_t taken_bytes);
/* What the process has, as the system counts it; 0: it does not say. */
size_t memory_of_process(void);

/* NULL when the system or the budget (may be NULL) has no more. */
void *memory_alloc(struct budget *budget, size_t size_bytes);
/* The same, beginning where a line of the processor's cache does. */
void *memory_alloc_line(struct budget *budget, size_t size_bytes);
/* Like realloc; the old block stays valid on failure. */
void *memory_resize(struct budget *budget, void *block, size_t old_bytes, size_t new_bytes);
/* Accepts NULL. `size_bytes` is what was asked for. */
void memory_free(struct budget *budget, void *block, size_t size_bytes);
/* A block of zeroes that can grow: what is there keeps its place in it, what is new is zero, and
 * the old block stays valid on failure. Large ones take over the pages of the old one: nothing is
 * copied, and only what is new is taken from the budget. */
void *memory_alloc_zeroed(struct budget *budget, size_t size_bytes);
void *memory_grow_zeroed(struct budget *budget, void *block, size_t old_bytes, size_t new_bytes);
/* How much growing takes of the budget until it is done. */
size_t memory_grow_need(size_t old_bytes, size_t new_bytes);
/* Accepts NULL. */
void memory_free_zeroed(struct budget *budget, void *block, size_t size_bytes);
/* From now on the block does not count in the budget (may be NULL); the caller that frees it names
 * none. */
void memory_leave(struct budget *budget, size_t size_bytes);
/* For a process through which blocks of up to some megabytes pass all the time: freed blocks are
 * kept for reuse, up to a bound. Otherwise the system would map and clear every one of them, page
 * by page. */
void memory_keep_freed(void);
/* The caller has freed so many bytes for good. Whenever these add up to `worth_bytes`, what the
 * allocator still holds of them goes back to the system: that may take milliseconds. */
void memory_return(size_t freed_bytes, size_t worth_bytes);

#if FAULT_INJECTION
/* The allocation after `count` more successful ones fails, and all that follow until
 * memory_fail_never; memory_was_refused tells whether one did. */
void memory_fail_after(size_t count);
void memory_fail_never(void);
bool memory_was_refused(void);
#endif

#endif
