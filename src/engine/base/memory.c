/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - malloc behind a budget, and behind a switch that lets a test make it fail. */
#include "engine/base/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "engine/base/assert.h"

enum {
    LARGE_PAGE_BYTES = 2 << 20,
    LINE_BYTES = 64,
    KEPT_BLOCK_BYTES = 8 << 20, /* Larger ones are the system's at once. */
    KEPT_BYTES = 128 << 20
};

static atomic_size_t allowed_count = SIZE_MAX; /* SIZE_MAX: the switch is off. */
static atomic_bool refused;

static bool switch_refuses(void)
{
    if (!FAULT_INJECTION) return false;
    if (atomic_load_explicit(&allowed_count, memory_order_relaxed) == SIZE_MAX) return false;
    size_t left = atomic_load(&allowed_count);
    while (left != 0) {
        if (atomic_compare_exchange_weak(&allowed_count, &left, left - 1)) return false;
    }
    atomic_store(&refused, true);
    return true;
}

static void budget_give(struct budget *budget, const struct budget *end, size_t size_bytes)
{
    for (; budget != end; budget = budget->parent) {
        size_t before = atomic_fetch_sub(&budget->used_bytes, size_bytes);
        ASSERT(before >= size_bytes);
    }
}

static bool budget_take(struct budget *first, size_t size_bytes)
{
    for (struct budget *budget = first; budget != NULL; budget = budget->parent) {
        size_t used = atomic_fetch_add(&budget->used_bytes, size_bytes) + size_bytes;
        if (budget->limit_bytes != 0 && used > budget->limit_bytes) {
            budget_give(first, budget->parent, size_bytes);
            return false;
        }
        size_t peak = atomic_load(&budget->peak_bytes);
        while (used > peak && !atomic_compare_exchange_weak(&budget->peak_bytes, &peak, used)) {}
    }
    return true;
}

size_t budget_limit(const struct budget *budget)
{
    size_t limit = 0;
    for (; budget != NULL; budget = budget->parent) {
        if (budget->limit_bytes != 0 && (limit == 0 || budget->limit_bytes < limit)) {
            limit = budget->limit_bytes;
        }
    }
    return limit;
}

size_t budget_room(const struct budget *budget)
{
    size_t room = SIZE_MAX;
    for (; budget != NULL; budget = budget->parent) {
        if (budget->limit_bytes == 0) continue;
        size_t used = atomic_load(&budget->used_bytes);
        size_t left = used < budget->limit_bytes ? budget->limit_bytes - used : 0;
        if (left < room) room = left;
    }
    return room;
}

void budget_start(struct budget *budget, size_t taken_bytes)
{
    ASSERT(atomic_load(&budget->used_bytes) == 0);
    size_t most = budget->limit_bytes / 4;
    if (budget->limit_bytes != 0 && taken_bytes > most) taken_bytes = most;
    atomic_store(&budget->used_bytes, taken_bytes);
    atomic_store(&budget->peak_bytes, taken_bytes);
}

size_t memory_of_process(void)
{
    /* Not getrusage: its peak is inherited from the parent process, if that had more. */
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL) return 0;
    int found = fscanf(file, "%*u %lu", &pages);
    (void)fclose(file); /* Nothing was written. */
    long page_bytes = sysconf(_SC_PAGESIZE);
    return found == 1 && page_bytes > 0 ? pages * (size_t)page_bytes : 0;
}

/* Hash tables of many megabytes are read all over the place, and with small pages most reads would
 * also have to find out where the page is. It is advice: nothing depends on it. */
static void advise_large_pages(void *block, size_t size_bytes)
{
    size_t whole_bytes = size_bytes / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES;
    (void)madvise(block, whole_bytes, MADV_HUGEPAGE);
}

/* What has room for a large page begins with one. */
static void *alloc_aligned(struct budget *budget, size_t size_bytes)
{
    bool is_large = size_bytes >= LARGE_PAGE_BYTES;
    void *block;
    if (switch_refuses() || !budget_take(budget, size_bytes)) return NULL;
    if (posix_memalign(&block, is_large ? LARGE_PAGE_BYTES : LINE_BYTES, size_bytes) != 0) {
        budget_give(budget, NULL, size_bytes);
        return NULL;
    }
    if (is_large) advise_large_pages(block, size_bytes);
    return block;
}

void *memory_alloc(struct budget *budget, size_t size_bytes)
{
    if (size_bytes >= LARGE_PAGE_BYTES) return alloc_aligned(budget, size_bytes);
    return memory_resize(budget, NULL, 0, size_bytes);
}

void *memory_alloc_line(struct budget *budget, size_t size_bytes)
{
    ASSERT(size_bytes > 0);
    return alloc_aligned(budget, size_bytes);
}

void *memory_resize(struct budget *budget, void *block, size_t old_bytes, size_t new_bytes)
{
    ASSERT(new_bytes > 0);
    if (switch_refuses()) return NULL;
    /* The old block counts until it is replaced: while it is copied, both exist. */
    if (!budget_take(budget, new_bytes)) return NULL;
    void *resized = realloc(block, new_bytes);
    if (resized == NULL) {
        budget_give(budget, NULL, new_bytes);
        return NULL;
    }
    if (block != NULL) budget_give(budget, NULL, old_bytes);
    return resized;
}

void memory_free(struct budget *budget, void *block, size_t size_bytes)
{
    if (block == NULL) return;
    free(block);
    budget_give(budget, NULL, size_bytes);
}

/* ---- zeroes that grow ---- */

static bool is_mapped(size_t size_bytes)
{
    return size_bytes >= LARGE_PAGE_BYTES;
}

static size_t whole_pages(size_t size_bytes)
{
    return (size_bytes + LARGE_PAGE_BYTES - 1) / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES;
}

/* Whole large pages; NULL: there is no more. Large pages can be moved only from one such place to
 * another. */
static void *map_pages(size_t size_bytes)
{
    size_t mapped_bytes = size_bytes + LARGE_PAGE_BYTES;
    unsigned char *start =
        mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return NULL;
    size_t before = -(uintptr_t)start % LARGE_PAGE_BYTES;
    /* What is too much: if it can't be given back, it is never touched. */
    if (before > 0) (void)munmap(start, before);
    (void)munmap(start + before + size_bytes, LARGE_PAGE_BYTES - before);
    advise_large_pages(start + before, size_bytes);
    return start + before;
}

void *memory_alloc_zeroed(struct budget *budget, size_t size_bytes)
{
    ASSERT(size_bytes > 0);
    if (switch_refuses() || !budget_take(budget, size_bytes)) return NULL;
    void *block =
        is_mapped(size_bytes) ? map_pages(whole_pages(size_bytes)) : calloc(1, size_bytes);
    if (block == NULL) budget_give(budget, NULL, size_bytes);
    return block;
}

static void *move_pages(void *block, size_t old_bytes, size_t new_bytes)
{
    void *place = map_pages(new_bytes);
    if (place == NULL) return NULL;
    void *moved = mremap(block, old_bytes, new_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    if (moved != MAP_FAILED) return moved;
    (void)munmap(place, new_bytes); /* Nothing was touched there. */
    return NULL;
}

void *memory_grow_zeroed(struct budget *budget, void *block, size_t old_bytes, size_t new_bytes)
{
    ASSERT(new_bytes >= old_bytes);
    if (!is_mapped(old_bytes)) {
        void *grown = memory_alloc_zeroed(budget, new_bytes);
        if (grown == NULL) return NULL;
        memcpy(grown, block, old_bytes);
        memory_free_zeroed(budget, block, old_bytes);
        return grown;
    }
    if (switch_refuses() || !budget_take(budget, new_bytes - old_bytes)) return NULL;
    void *grown = move_pages(block, whole_pages(old_bytes), whole_pages(new_bytes));
    if (grown == NULL) budget_give(budget, NULL, new_bytes - old_bytes);
    return grown;
}

size_t memory_grow_need(size_t old_bytes, size_t new_bytes)
{
    return is_mapped(old_bytes) ? new_bytes - old_bytes : new_bytes;
}

void memory_free_zeroed(struct budget *budget, void *block, size_t size_bytes)
{
    if (!is_mapped(size_bytes)) {
        memory_free(budget, block, size_bytes);
        return;
    }
    if (block == NULL) return;
    /* It fails only where one mapping more, for what is left on both sides, would be too many. */
    (void)munmap(block, whole_pages(size_bytes));
    budget_give(budget, NULL, size_bytes);
}

void memory_leave(struct budget *budget, size_t size_bytes)
{
    budget_give(budget, NULL, size_bytes);
}

void memory_keep_freed(void)
{
#ifdef __GLIBC__
    /* Where they are not known, it is slower. */
    (void)mallopt(M_MMAP_THRESHOLD, KEPT_BLOCK_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
#endif
}

void memory_return(size_t freed_bytes, size_t worth_bytes)
{
    static atomic_size_t freed;
    size_t sum = atomic_fetch_add(&freed, freed_bytes) + freed_bytes;
    /* One of several threads does it. */
    if (sum < worth_bytes || !atomic_compare_exchange_strong(&freed, &sum, 0)) return;
#ifdef __GLIBC__
    (void)malloc_trim(0); /* That nothing was there to return is fine. */
#endif
}

#if FAULT_INJECTION
void memory_fail_after(size_t count)
{
    atomic_store(&refused, false);
    atomic_store(&allowed_count, count);
}

void memory_fail_never(void)
{
    atomic_store(&allowed_count, SIZE_MAX);
}

bool memory_was_refused(void)
{
    return atomic_load(&refused);
}
#endif
