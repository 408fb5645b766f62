/* SPDX-License-Identifier: Apache-2.0 */
/* radix_sort.h - orders numbered things by 64-bit keys, stably, in linear time. */
#ifndef ENGINE_BASE_RADIX_SORT_H
#define ENGINE_BASE_RADIX_SORT_H

#include <stddef.h>
#include <stdint.h>

struct radix_item {
    uint64_t key;
    uint64_t value;
};

/* Ascending by key; equal keys keep their order. `scratch` has room for `count` items. */
void radix_sort(struct radix_item *items, struct radix_item *scratch, size_t count);
/* The same for words that have the key in their upper halves. */
void radix_sort_upper(uint64_t *words, uint64_t *scratch, size_t count);

#endif
