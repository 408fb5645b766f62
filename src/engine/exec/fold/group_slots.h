/* SPDX-License-Identifier: Apache-2.0 */
/* group_slots.h - groups of any keys, found by the hash of these: open addressing.
 *
 * A slot holds the upper half of a hash beside a group's number, so that a search looks at a record
 * only when it is almost certainly the right one. Those bits also say where a search begins, so
 * that slots grow without reading the records; and groups are ordered by them in the end, for which
 * the slots themselves are sorted. The owner compares keys, and grows the slots when half are full.
 *
 * Memory: owned, charged to the budget. Threads: one owner.
 */
#ifndef ENGINE_EXEC_FOLD_GROUP_SLOTS_H
#define ENGINE_EXEC_FOLD_GROUP_SLOTS_H

#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/memory.h"

struct group_slots {
    uint64_t *items; /* hash's upper half << 32 | group + 1; 0: free. */
    size_t count;    /* A power of two; 0: there are none. */
};

static inline uint64_t group_slot(uint64_t hash, uint32_t group)
{
    return (hash >> 32 << 32) | (group + 1);
}

/* Of a slot that is not free. */
static inline uint32_t group_slot_group(uint64_t slot)
{
    return (uint32_t)slot - 1;
}

/* Whether one that is not free may be of this hash. */
static inline bool group_slot_fits(uint64_t slot, uint64_t hash)
{
    return slot >> 32 == hash >> 32;
}

/* Where a search for a hash begins, or for the hash that a slot was made of. With twice the slots
 * that is the same place, or the same in the other half. All hashes of a shard, or of a part of one
 * in a file, begin with the same bits: the product spreads the others over all slots, should there
 * be more of these than such hashes. */
static inline size_t group_slots_home(const struct group_slots *slots, uint64_t hash)
{
    const uint32_t spread = 0x9e3779b1; /* Odd, and no fraction of a power of two. */
    return (hash >> 32) * spread & (slots->count - 1);
}

static inline size_t group_slots_next(const struct group_slots *slots, size_t place)
{
    return (place + 1) & (slots->count - 1);
}

/* All free, and enough for so many groups. False: out of memory, and there are none. */
MUST_USE bool group_slots_init(struct group_slots *slots, size_t group_count,
                               struct budget *budget);
/* Accepts none. */
void group_slots_done(struct group_slots *slots, struct budget *budget);
void group_slots_clear(struct group_slots *slots);

/* Into the first free slot of its search. */
void group_slots_put(struct group_slots *slots, uint64_t slot);
/* False: out of memory, and nothing has changed. */
MUST_USE bool group_slots_grow(struct group_slots *slots, struct budget *budget);
/* How much it takes at most to have enough for so many groups; from none, that is an init. */
size_t group_slots_need(const struct group_slots *slots, size_t group_count);

/* Those that are taken, of which it gives the number, come first and in ascending order of their
 * upper halves. After that they can only be cleared. */
size_t group_slots_sort(struct group_slots *slots);

#endif
