/* SPDX-License-Identifier: Apache-2.0 */
/* group_slots.c - linear probing (Knuth, The Art of Computer Programming 3, 6.4): the next slot is
 * mostly in the same line of the cache. */
#include "engine/exec/fold/group_slots.h"

#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/radix_sort.h"

enum {
    FIRST_SLOTS = 256,
    /* Up to so many they grow fourfold, then twofold: sparse slots are searched quickly, but of
     * many megabytes at most half should be empty. */
    QUICK_SLOTS = 1 << 18,
};

static size_t slots_for(size_t group_count)
{
    size_t slot_count = FIRST_SLOTS;
    while (slot_count < group_count * 2) {
        slot_count *= 2;
    }
    return slot_count;
}

static size_t slots_after(size_t slot_count)
{
    return slot_count * (slot_count <= QUICK_SLOTS ? 4 : 2);
}

bool group_slots_init(struct group_slots *slots, size_t group_count, struct budget *budget)
{
    size_t slot_count = slots_for(group_count);
    *slots = (struct group_slots){0};
    slots->items = memory_alloc_zeroed(budget, slot_count * sizeof *slots->items);
    if (slots->items == NULL) return false;
    slots->count = slot_count;
    return true;
}

void group_slots_done(struct group_slots *slots, struct budget *budget)
{
    memory_free_zeroed(budget, slots->items, slots->count * sizeof *slots->items);
    *slots = (struct group_slots){0};
}

void group_slots_clear(struct group_slots *slots)
{
    memset(slots->items, 0, slots->count * sizeof *slots->items);
}

void group_slots_put(struct group_slots *slots, uint64_t slot)
{
    size_t place = group_slots_home(slots, slot);
    while (slots->items[place] != 0) {
        place = group_slots_next(slots, place);
    }
    slots->items[place] = slot;
}

/* In place: each is taken out and put where it belongs now. Beginning behind a free slot, that is
 * in the new part, or where it was, or between there and its home: so no search for another goes
 * past a place that is yet to become free. */
bool group_slots_grow(struct group_slots *slots, struct budget *budget)
{
    struct group_slots grown = {.count = slots_after(slots->count)};
    grown.items = memory_grow_zeroed(budget, slots->items, slots->count * sizeof *slots->items,
                                     grown.count * sizeof *grown.items);
    if (grown.items == NULL) return false;
    size_t first = 0;
    while (grown.items[first] != 0) {
        first++;
    }
    for (size_t i = 1; i < slots->count; i++) {
        size_t place = (first + i) & (slots->count - 1);
        uint64_t slot = grown.items[place];
        if (slot == 0) continue;
        grown.items[place] = 0;
        group_slots_put(&grown, slot);
    }
    *slots = grown;
    return true;
}

size_t group_slots_need(const struct group_slots *slots, size_t group_count)
{
    size_t slot_count = slots->count > 0 ? slots->count : slots_for(group_count);
    while (slot_count < group_count * 2) {
        slot_count = slots_after(slot_count);
    }
    if (slot_count == slots->count) return 0;
    return memory_grow_need(slots->count * sizeof *slots->items, slot_count * sizeof *slots->items);
}

/* Brings those that are taken to the front. */
static size_t close_up(uint64_t *items, size_t slot_count)
{
    size_t count = 0;
    for (size_t i = 0; i < slot_count; i++) {
        uint64_t slot = items[i];
        items[count] = slot;
        count += slot != 0;
    }
    return count;
}

size_t group_slots_sort(struct group_slots *slots)
{
    size_t count = close_up(slots->items, slots->count);
    ASSERT(count <= slots->count / 2);
    radix_sort_upper(slots->items, slots->items + count, count);
    return count;
}
