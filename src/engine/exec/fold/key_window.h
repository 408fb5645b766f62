/* SPDX-License-Identifier: Apache-2.0 */
/* key_window.h - groups of narrow integer keys, found by place instead of by hash.
 *
 * A window is an array with a place for every combination of values that its keys can have: each
 * lies within a range, or is NULL. A row's group is one access away, without hash or comparison.
 * This is a perfect hash by array index. The owner decides whether the ranges are narrow enough to
 * be worth it, and makes another window when a key lies outside.
 *
 * Memory: owned, charged to the budget. Threads: one owner.
 */
#ifndef ENGINE_EXEC_FOLD_KEY_WINDOW_H
#define ENGINE_EXEC_FOLD_KEY_WINDOW_H

#include "engine/base/memory.h"
#include "engine/data/column.h"

enum {
    KEY_WINDOW_KEYS = 4,
    KEY_WINDOW_LIMIT = 1 << 20, /* No window has more places. */
};

/* The values of a key, NULL aside: none when the lowest is above the highest. */
struct key_range {
    int64_t lowest;
    int64_t highest;
};

#define KEY_RANGE_NONE ((struct key_range){INT64_MAX, INT64_MIN})

static inline void key_range_add(struct key_range *range, int64_t value)
{
    if (value < range->lowest) range->lowest = value;
    if (value > range->highest) range->highest = value;
}

struct window_key {
    struct key_range range;
    uint64_t width;  /* How many values that are, */
    uint32_t stride; /* and how far apart their places. NULL comes before the lowest. */
};

struct key_window {
    uint32_t *groups; /* By place: the number of a group + 1; 0: none. */
    size_t place_count;
    uint32_t key_count;
    struct window_key keys[KEY_WINDOW_KEYS];
};

/* Whether values of a type can be such keys. */
bool key_window_takes(struct type type);
/* How many places a window of these ranges has; more than the limit: any number above it. */
size_t key_window_needs(const struct key_range *ranges, uint32_t key_count);

/* A window of no groups, which must be empty memory or done. False: out of memory. */
MUST_USE bool key_window_init(struct key_window *window, const struct key_range *ranges,
                              uint32_t key_count, struct budget *budget);
void key_window_done(struct key_window *window, struct budget *budget);

/* The places of up to 2^32-1 rows; false when some key lies outside, and the places mean nothing.
 */
MUST_USE bool key_window_places(const struct key_window *window, const struct batch *batch,
                                const uint32_t *columns, struct selection selection,
                                uint32_t *out_places);
/* The place of one row: its keys, which lie inside, and a byte for each that is 1 for NULL. */
uint32_t key_window_place(const struct key_window *window, const int64_t *words,
                          const unsigned char *nulls);
/* Adds the rows' values to the ranges of their keys. */
void key_ranges_add(struct key_range *ranges, uint32_t key_count, const struct batch *batch,
                    const uint32_t *columns, struct selection selection);

#endif
