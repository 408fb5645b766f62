/* radix_sort.c - least significant byte first; bytes in which all keys agree cost nothing.
 *
 * All histograms are made in one pass. For few items an insertion sort is quicker than touching the
 * histograms.
 */
#include "base/radix_sort.h"

#include <string.h>

enum { BYTES = 8, BUCKETS = 256, INSERTION_LIMIT = 48 };

static void insertion_sort(struct radix_item *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct radix_item item = items[i];
        size_t place = i;
        while (place > 0 && items[place - 1].key > item.key) {
            items[place] = items[place - 1];
            place--;
        }
        items[place] = item;
    }
}

void radix_sort(struct radix_item *items, struct radix_item *scratch, size_t count)
{
    if (count <= INSERTION_LIMIT) {
        insertion_sort(items, count);
        return;
    }
    size_t starts[BYTES][BUCKETS] = {{0}};
    for (size_t i = 0; i < count; i++) {
        for (size_t byte = 0; byte < BYTES; byte++) {
            starts[byte][(items[i].key >> (8 * byte)) & 255]++;
        }
    }
    struct radix_item *from = items;
    struct radix_item *to = scratch;
    for (size_t byte = 0; byte < BYTES; byte++) {
        size_t *start = starts[byte];
        if (start[(from[0].key >> (8 * byte)) & 255] == count) continue;
        size_t sum = 0;
        for (size_t bucket = 0; bucket < BUCKETS; bucket++) {
            size_t size = start[bucket];
            start[bucket] = sum;
            sum += size;
        }
        for (size_t i = 0; i < count; i++) {
            to[start[(from[i].key >> (8 * byte)) & 255]++] = from[i];
        }
        struct radix_item *swap = from;
        from = to;
        to = swap;
    }
    if (from != items) memcpy(items, from, count * sizeof *items);
}
