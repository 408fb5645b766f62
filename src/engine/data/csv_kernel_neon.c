/* SPDX-License-Identifier: Apache-2.0 */
/* csv_kernel_neon.c - the CSV kernels for arm64.
 *
 * NEON has no instruction that gathers one bit per byte: each byte keeps the bit of its place in a
 * group of eight, and pairwise additions bring the groups together. Carry-less multiplication is
 * not on every arm64, and not needed: a shift is free in an exclusive-or, so six of these will do.
 */
#include "engine/data/csv_kernel.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include "engine/base/error.h"

#define KERNEL_TARGET

struct neon_block {
    uint8x16_t part[4];
};

ALWAYS_INLINE struct neon_block block_load(const char *bytes)
{
    const uint8_t *from = (const uint8_t *)bytes;
    return (struct neon_block){
        {vld1q_u8(from), vld1q_u8(from + 16), vld1q_u8(from + 32), vld1q_u8(from + 48)}};
}

/* The parts' bytes are all ones or zero. */
ALWAYS_INLINE uint64_t block_mask(struct neon_block block)
{
    const uint8x16_t place = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t low = vpaddq_u8(vandq_u8(block.part[0], place), vandq_u8(block.part[1], place));
    uint8x16_t high = vpaddq_u8(vandq_u8(block.part[2], place), vandq_u8(block.part[3], place));
    uint8x16_t both = vpaddq_u8(low, high);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(both, both)), 0);
}

ALWAYS_INLINE struct neon_block block_equal(struct neon_block block, char byte)
{
    uint8x16_t wanted = vdupq_n_u8((uint8_t)byte);
    return (struct neon_block){{vceqq_u8(block.part[0], wanted), vceqq_u8(block.part[1], wanted),
                                vceqq_u8(block.part[2], wanted), vceqq_u8(block.part[3], wanted)}};
}

ALWAYS_INLINE uint64_t block_separators(struct neon_block block)
{
    struct neon_block commas = block_equal(block, ',');
    struct neon_block lines = block_equal(block, '\n');
    return block_mask((struct neon_block){
        {vorrq_u8(commas.part[0], lines.part[0]), vorrq_u8(commas.part[1], lines.part[1]),
         vorrq_u8(commas.part[2], lines.part[2]), vorrq_u8(commas.part[3], lines.part[3])}});
}

ALWAYS_INLINE uint64_t block_lines(struct neon_block block)
{
    return block_mask(block_equal(block, '\n'));
}

ALWAYS_INLINE uint64_t block_quotes(struct neon_block block)
{
    return block_mask(block_equal(block, '"'));
}

struct neon_counts {
    uint8x16_t lines;
    uint8x16_t quotes;
};

ALWAYS_INLINE void counts_add(struct neon_counts *counts, struct neon_block block)
{
    struct neon_block lines = block_equal(block, '\n');
    struct neon_block quotes = block_equal(block, '"');
    /* All ones is minus one. */
    counts->lines = vsubq_u8(counts->lines, vaddq_u8(vaddq_u8(lines.part[0], lines.part[1]),
                                                     vaddq_u8(lines.part[2], lines.part[3])));
    counts->quotes = vorrq_u8(counts->quotes, vorrq_u8(vorrq_u8(quotes.part[0], quotes.part[1]),
                                                       vorrq_u8(quotes.part[2], quotes.part[3])));
}

ALWAYS_INLINE uint64_t counts_lines(struct neon_counts counts)
{
    return vaddlvq_u8(counts.lines);
}

ALWAYS_INLINE bool counts_have_quotes(struct neon_counts counts)
{
    return vmaxvq_u8(counts.quotes) != 0;
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

/* The instructions are defined for an empty mask, the compiler's functions for them are not. */
ALWAYS_INLINE uint64_t mask_lowest(uint64_t mask)
{
    uint64_t lowest;
    __asm__("rbit %0, %1\n\tclz %0, %0" : "=r"(lowest) : "r"(mask));
    return lowest;
}

#define KERNEL_BLOCK  struct neon_block
#define KERNEL_COUNTS struct neon_counts
#include "engine/data/csv_kernel_body.h"

KERNEL_DEFINE(neon);

#endif
