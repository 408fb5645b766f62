/* SPDX-License-Identifier: Apache-2.0 */
/* key_window.c - a loop per key, so that each is a few instructions per row and no branch. */
#include "engine/exec/fold/key_window.h"

#include "engine/base/assert.h"

bool key_window_takes(struct type type)
{
    return type.kind == TYPE_INT || type.kind == TYPE_DECIMAL || type.kind == TYPE_DATE ||
           type.kind == TYPE_TIMESTAMP;
}

static uint64_t range_width(struct key_range range)
{
    if (range.lowest > range.highest) return 0;
    uint64_t distance = (uint64_t)range.highest - (uint64_t)range.lowest;
    return distance < KEY_WINDOW_LIMIT ? distance + 1 : KEY_WINDOW_LIMIT;
}

size_t key_window_needs(const struct key_range *ranges, uint32_t key_count)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < key_count && count <= KEY_WINDOW_LIMIT; i++) {
        count *= range_width(ranges[i]) + 1;
    }
    return count;
}

bool key_window_init(struct key_window *window, const struct key_range *ranges, uint32_t key_count,
                     struct budget *budget)
{
    size_t place_count = key_window_needs(ranges, key_count);
    ASSERT(key_count > 0 && key_count <= KEY_WINDOW_KEYS);
    ASSERT(place_count <= KEY_WINDOW_LIMIT);
    uint32_t *groups = memory_alloc(budget, place_count * sizeof *groups);
    if (groups == NULL) return false;
    memset(groups, 0, place_count * sizeof *groups);
    *window =
        (struct key_window){.groups = groups, .place_count = place_count, .key_count = key_count};
    uint64_t stride = 1;
    for (uint32_t i = 0; i < key_count; i++) {
        uint64_t width = range_width(ranges[i]);
        window->keys[i] = (struct window_key){ranges[i], width, (uint32_t)stride};
        stride *= width + 1;
    }
    return true;
}

void key_window_done(struct key_window *window, struct budget *budget)
{
    memory_free(budget, window->groups, window->place_count * sizeof *window->groups);
    *window = (struct key_window){0};
}

/* One more than the distance of a value from the lowest; any number for one outside, of which
 * `outside` is told. */
ALWAYS_INLINE uint32_t step_of(const struct window_key *key, int64_t value, uint64_t *outside)
{
    uint64_t distance = (uint64_t)value - (uint64_t)key->range.lowest;
    *outside |= distance >= key->width;
    return (uint32_t)distance + 1;
}

static bool add_steps(struct window_key key, const struct column *column,
                      struct selection selection, uint32_t *places)
{
    uint64_t outside = 0;
    if (column->nulls == NULL && selection.rows == NULL) {
        for (uint32_t i = 0; i < selection.count; i++) {
            places[i] += key.stride * step_of(&key, column->ints[i], &outside);
        }
    } else if (column->nulls == NULL) {
        for (uint32_t i = 0; i < selection.count; i++) {
            places[i] += key.stride * step_of(&key, column->ints[selection.rows[i]], &outside);
        }
    } else {
        for (uint32_t i = 0; i < selection.count; i++) {
            uint32_t row = selection_row(selection, i);
            uint64_t beyond = 0;
            uint32_t step = step_of(&key, column->ints[row], &beyond);
            bool is_null = column->nulls[row] != 0;
            places[i] += key.stride * (is_null ? 0 : step);
            outside |= is_null ? 0 : beyond;
        }
    }
    return outside == 0;
}

bool key_window_places(const struct key_window *window, const struct batch *batch,
                       const uint32_t *columns, struct selection selection, uint32_t *out_places)
{
    bool inside = true;
    memset(out_places, 0, selection.count * sizeof *out_places);
    for (uint32_t i = 0; i < window->key_count && inside; i++) {
        inside = add_steps(window->keys[i], &batch->columns[columns[i]], selection, out_places);
    }
    return inside;
}

uint32_t key_window_place(const struct key_window *window, const int64_t *words,
                          const unsigned char *nulls)
{
    uint32_t place = 0;
    for (uint32_t i = 0; i < window->key_count; i++) {
        const struct window_key *key = &window->keys[i];
        uint64_t outside = 0;
        if (nulls[i] != 0) continue;
        place += key->stride * step_of(key, words[i], &outside);
        ASSERT(outside == 0);
    }
    return place;
}

void key_ranges_add(struct key_range *ranges, uint32_t key_count, const struct batch *batch,
                    const uint32_t *columns, struct selection selection)
{
    for (uint32_t i = 0; i < key_count; i++) {
        const struct column *column = &batch->columns[columns[i]];
        for (uint32_t j = 0; j < selection.count; j++) {
            uint32_t row = selection_row(selection, j);
            if (!column_is_null(column, row)) key_range_add(&ranges[i], column->ints[row]);
        }
    }
}
