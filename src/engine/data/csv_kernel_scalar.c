/* SPDX-License-Identifier: Apache-2.0 */
/* csv_kernel_scalar.c - the CSV kernels in portable C: eight bytes at a time in a 64-bit word. */
#include "engine/data/csv_kernel.h"

#include <assert.h>
#include <string.h>

#include "engine/base/error.h"

#define KERNEL_TARGET

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first byte must be the lowest");

enum { BLOCK_WORDS = CSV_BLOCK_BYTES / 8 };

struct scalar_block {
    uint64_t words[BLOCK_WORDS];
};

ALWAYS_INLINE struct scalar_block block_load(const char *bytes)
{
    struct scalar_block block;
    memcpy(block.words, bytes, sizeof block.words);
    return block;
}

/* 1 in every byte of the word that is `byte`, else 0. */
ALWAYS_INLINE uint64_t word_equal(uint64_t word, char byte)
{
    const uint64_t ones = 0x0101010101010101u;
    const uint64_t most = 0x7f7f7f7f7f7f7f7fu;
    uint64_t differs = word ^ ones * (uint8_t)byte;
    return ~(((differs & most) + most) | differs | most) >> 7;
}

/* The bytes of the words are 1 or 0. The multiplication moves that of byte i to bit 56 + i; no two
 * of its partial products meet, so nothing carries. */
ALWAYS_INLINE uint64_t block_mask(struct scalar_block block)
{
    uint64_t mask = 0;
    for (int i = 0; i < BLOCK_WORDS; i++) {
        mask |= (block.words[i] * 0x0102040810204080u >> 56) << (8 * i);
    }
    return mask;
}

ALWAYS_INLINE uint64_t block_separators(struct scalar_block block)
{
    struct scalar_block found;
    for (int i = 0; i < BLOCK_WORDS; i++) {
        found.words[i] = word_equal(block.words[i], ',') | word_equal(block.words[i], '\n');
    }
    return block_mask(found);
}

ALWAYS_INLINE struct scalar_block block_equal(struct scalar_block block, char byte)
{
    struct scalar_block found;
    for (int i = 0; i < BLOCK_WORDS; i++) {
        found.words[i] = word_equal(block.words[i], byte);
    }
    return found;
}

ALWAYS_INLINE uint64_t block_lines(struct scalar_block block)
{
    return block_mask(block_equal(block, '\n'));
}

ALWAYS_INLINE uint64_t block_quotes(struct scalar_block block)
{
    return block_mask(block_equal(block, '"'));
}

struct scalar_counts {
    uint64_t lines;
    uint64_t quotes;
};

ALWAYS_INLINE void counts_add(struct scalar_counts *counts, struct scalar_block block)
{
    uint64_t lines = 0; /* Byte-sized counters: at most 8 each. */
    for (int i = 0; i < BLOCK_WORDS; i++) {
        lines += word_equal(block.words[i], '\n');
        counts->quotes |= word_equal(block.words[i], '"');
    }
    counts->lines += lines * 0x0101010101010101u >> 56;
}

ALWAYS_INLINE uint64_t counts_lines(struct scalar_counts counts)
{
    return counts.lines;
}

ALWAYS_INLINE bool counts_have_quotes(struct scalar_counts counts)
{
    return counts.quotes != 0;
}

ALWAYS_INLINE uint64_t mask_prefix_xor(uint64_t mask)
{
    mask ^= mask << 1;
    mask ^= mask << 2;
    mask ^= mask << 4;
    mask ^= mask << 8;
    mask ^= mask << 16;
    return mask ^ mask << 32;
}

ALWAYS_INLINE uint64_t mask_lowest(uint64_t mask)
{
    return (uint64_t)__builtin_ctzll(mask | (uint64_t)1 << 63);
}

#define KERNEL_BLOCK  struct scalar_block
#define KERNEL_COUNTS struct scalar_counts
#include "engine/data/csv_kernel_body.h"

KERNEL_DEFINE(scalar);
