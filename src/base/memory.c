/* memory.c - malloc with a budget in front and a switch that makes it fail for tests. */
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/assert.h"

static atomic_size_t allowed_count = SIZE_MAX; /* SIZE_MAX: the switch is off. */
static atomic_bool refused;

static bool switch_refuses(void)
{
    if (atomic_load_explicit(&allowed_count, memory_order_relaxed) == SIZE_MAX) return false;
    size_t left = atomic_load(&allowed_count);
    while (left != 0) {
        if (atomic_compare_exchange_weak(&allowed_count, &left, left - 1)) return false;
    }
    atomic_store(&refused, true);
    return true;
}

static bool budget_take(struct budget *budget, size_t size_bytes)
{
    if (budget == NULL) return true;
    size_t used = atomic_fetch_add(&budget->used_bytes, size_bytes) + size_bytes;
    if (budget->limit_bytes != 0 && used > budget->limit_bytes) {
        atomic_fetch_sub(&budget->used_bytes, size_bytes);
        return false;
    }
    size_t peak = atomic_load(&budget->peak_bytes);
    while (used > peak && !atomic_compare_exchange_weak(&budget->peak_bytes, &peak, used)) {}
    return true;
}

static void budget_give(struct budget *budget, size_t size_bytes)
{
    if (budget == NULL) return;
    size_t before = atomic_fetch_sub(&budget->used_bytes, size_bytes);
    ASSERT(before >= size_bytes);
}

void *memory_alloc(struct budget *budget, size_t size_bytes)
{
    return memory_resize(budget, NULL, 0, size_bytes);
}

void *memory_resize(struct budget *budget, void *block, size_t old_bytes, size_t new_bytes)
{
    ASSERT(new_bytes > 0);
    if (switch_refuses()) return NULL;
    /* The old block counts until it is replaced: while it is copied, both exist. */
    if (!budget_take(budget, new_bytes)) return NULL;
    void *resized = realloc(block, new_bytes);
    if (resized == NULL) {
        budget_give(budget, new_bytes);
        return NULL;
    }
    if (block != NULL) budget_give(budget, old_bytes);
    return resized;
}

void memory_free(struct budget *budget, void *block, size_t size_bytes)
{
    if (block == NULL) return;
    free(block);
    budget_give(budget, size_bytes);
}

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
