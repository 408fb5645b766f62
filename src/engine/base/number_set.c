/* SPDX-License-Identifier: Apache-2.0 */
/* number_set.c - a growing bitmap that remembers how far it is full. */
#include "engine/base/number_set.h"

#include <string.h>

enum { WORD_BITS = 64, WORDS_FIRST = 4 };

void number_set_done(struct number_set *set)
{
    memory_free(set->budget, set->words, set->word_count * sizeof *set->words);
    *set = (struct number_set){.budget = set->budget};
}

bool number_set_has(const struct number_set *set, uint64_t number)
{
    if (number < set->contiguous) return true;
    uint64_t word = number / WORD_BITS;
    return word < set->word_count && (set->words[word] >> (number % WORD_BITS) & 1) != 0;
}

uint64_t number_set_missing(const struct number_set *set, uint64_t from)
{
    if (from < set->contiguous) from = set->contiguous;
    uint64_t word = from / WORD_BITS;
    if (word >= set->word_count) return from;
    uint64_t free_bits = ~set->words[word] & ~(uint64_t)0 << (from % WORD_BITS);
    while (free_bits == 0) {
        if (++word == set->word_count) return word * WORD_BITS;
        free_bits = ~set->words[word];
    }
    return word * WORD_BITS + (uint64_t)__builtin_ctzll(free_bits);
}

bool number_set_add(struct number_set *set, uint64_t number)
{
    if (number_set_has(set, number)) return true;
    uint64_t word = number / WORD_BITS;
    if (word >= set->word_count) {
        uint64_t grown = set->word_count == 0 ? WORDS_FIRST : set->word_count * 2;
        if (grown <= word) grown = word + 1;
        uint64_t *words = memory_resize(set->budget, set->words, set->word_count * sizeof *words,
                                        grown * sizeof *words);
        if (words == NULL) return false;
        memset(words + set->word_count, 0, (grown - set->word_count) * sizeof *words);
        set->words = words;
        set->word_count = grown;
    }
    set->words[word] |= (uint64_t)1 << (number % WORD_BITS);
    set->count++;
    if (number == set->contiguous) set->contiguous = number_set_missing(set, number);
    return true;
}
