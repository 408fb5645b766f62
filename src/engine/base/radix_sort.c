/* SPDX-License-Identifier: Apache-2.0 */
/* radix_sort.c - least significant byte first; bytes in which all keys agree cost nothing.
 *
 * The classic least-significant-digit radix sort (Knuth, The Art of Computer Programming 3, 5.2.5),
 * stable by construction. All histograms are made in one pass. For few items an insertion sort is
 * quicker than touching the histograms.
 *
 * An item is one or two words, of which the first has the key in its bytes from `first_byte` on.
 * Both are constants wherever the functions here are called, and these are inlined for them.
 */
#include "engine/base/radix_sort.h"

#include <string.h>

#include "engine/base/error.h"

enum { BYTES = 8, BUCKETS = 256, INSERTION_LIMIT = 48 };

ALWAYS_INLINE void move_item(uint64_t *to, const uint64_t *from, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        to[i] = from[i];
    }
}

ALWAYS_INLINE void insertion_sort(uint64_t *items, size_t count, size_t width, size_t first_byte)
{
    for (size_t i = 1; i < count; i++) {
        uint64_t item[2];
        size_t place = i;
        move_item(item, &items[i * width], width);
        uint64_t key = item[0] >> (8 * first_byte);
        while (place > 0 && items[(place - 1) * width] >> (8 * first_byte) > key) {
            move_item(&items[place * width], &items[(place - 1) * width], width);
            place--;
        }
        move_item(&items[place * width], item, width);
    }
}

ALWAYS_INLINE void sort(uint64_t *items, uint64_t *scratch, size_t count, size_t width,
                        size_t first_byte)
{
    if (count <= INSERTION_LIMIT) {
        insertion_sort(items, count, width, first_byte);
        return;
    }
    size_t starts[BYTES][BUCKETS] = {{0}};
    for (size_t i = 0; i < count; i++) {
        for (size_t byte = first_byte; byte < BYTES; byte++) {
            starts[byte][(items[i * width] >> (8 * byte)) & 255]++;
        }
    }
    uint64_t *from = items;
    uint64_t *to = scratch;
    for (size_t byte = first_byte; byte < BYTES; byte++) {
        size_t *start = starts[byte];
        if (start[(from[0] >> (8 * byte)) & 255] == count) continue;
        size_t sum = 0;
        for (size_t bucket = 0; bucket < BUCKETS; bucket++) {
            size_t size = start[bucket];
            start[bucket] = sum;
            sum += size;
        }
        for (size_t i = 0; i < count; i++) {
            size_t place = start[(from[i * width] >> (8 * byte)) & 255]++;
            move_item(&to[place * width], &from[i * width], width);
        }
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != items) memcpy(items, from, count * width * sizeof *items);
}

void radix_sort(struct radix_item *items, struct radix_item *scratch, size_t count)
{
    sort(&items->key, &scratch->key, count, sizeof *items / sizeof(uint64_t), 0);
}

void radix_sort_upper(uint64_t *words, uint64_t *scratch, size_t count)
{
    sort(words, scratch, count, 1, sizeof(uint32_t));
}
