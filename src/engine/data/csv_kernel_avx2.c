/* SPDX-License-Identifier: Apache-2.0 */
/* csv_kernel_avx2.c - the CSV kernels for x86-64 with AVX2.
 *
 * The functions carry their instruction sets as an attribute, so that the rest of the program runs
 * on any x86-64; csv_kernel.c asks the CPU before it hands them out.
 */
#include "engine/data/csv_kernel.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "engine/base/error.h"

#define KERNEL_TARGET __attribute__((target("avx2,bmi,popcnt,pclmul")))

struct avx2_block {
    __m256i low;
    __m256i high;
};

KERNEL_TARGET ALWAYS_INLINE struct avx2_block block_load(const char *bytes)
{
    return (struct avx2_block){_mm256_loadu_si256((const __m256i *)(const void *)bytes),
                               _mm256_loadu_si256((const __m256i *)(const void *)(bytes + 32))};
}

/* The bytes are all ones or zero. */
KERNEL_TARGET ALWAYS_INLINE uint64_t block_mask(struct avx2_block block)
{
    uint32_t low = (uint32_t)_mm256_movemask_epi8(block.low);
    uint32_t high = (uint32_t)_mm256_movemask_epi8(block.high);
    return low | (uint64_t)high << 32;
}

KERNEL_TARGET ALWAYS_INLINE struct avx2_block block_equal(struct avx2_block block, char byte)
{
    __m256i wanted = _mm256_set1_epi8(byte);
    return (struct avx2_block){_mm256_cmpeq_epi8(block.low, wanted),
                               _mm256_cmpeq_epi8(block.high, wanted)};
}

KERNEL_TARGET ALWAYS_INLINE uint64_t block_separators(struct avx2_block block)
{
    struct avx2_block commas = block_equal(block, ',');
    struct avx2_block lines = block_equal(block, '\n');
    return block_mask((struct avx2_block){_mm256_or_si256(commas.low, lines.low),
                                          _mm256_or_si256(commas.high, lines.high)});
}

KERNEL_TARGET ALWAYS_INLINE uint64_t block_lines(struct avx2_block block)
{
    return block_mask(block_equal(block, '\n'));
}

KERNEL_TARGET ALWAYS_INLINE uint64_t block_quotes(struct avx2_block block)
{
    return block_mask(block_equal(block, '"'));
}

struct avx2_counts {
    __m256i lines;
    __m256i quotes;
};

KERNEL_TARGET ALWAYS_INLINE void counts_add(struct avx2_counts *counts, struct avx2_block block)
{
    struct avx2_block lines = block_equal(block, '\n');
    struct avx2_block quotes = block_equal(block, '"');
    /* All ones is minus one. */
    counts->lines = _mm256_sub_epi8(counts->lines, _mm256_add_epi8(lines.low, lines.high));
    counts->quotes = _mm256_or_si256(counts->quotes, _mm256_or_si256(quotes.low, quotes.high));
}

KERNEL_TARGET ALWAYS_INLINE uint64_t counts_lines(struct avx2_counts counts)
{
    __m256i sums = _mm256_sad_epu8(counts.lines, _mm256_setzero_si256());
    return (uint64_t)_mm256_extract_epi64(sums, 0) + (uint64_t)_mm256_extract_epi64(sums, 1) +
           (uint64_t)_mm256_extract_epi64(sums, 2) + (uint64_t)_mm256_extract_epi64(sums, 3);
}

KERNEL_TARGET ALWAYS_INLINE bool counts_have_quotes(struct avx2_counts counts)
{
    return _mm256_movemask_epi8(counts.quotes) != 0;
}

/* Carry-less multiplication by all ones adds up (without carries) the mask at every shift. */
KERNEL_TARGET ALWAYS_INLINE uint64_t mask_prefix_xor(uint64_t mask)
{
    __m128i product =
        _mm_clmulepi64_si128(_mm_set_epi64x(0, (long long)mask), _mm_set1_epi8((char)0xff), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

/* Defined for an empty mask, unlike C's. */
KERNEL_TARGET ALWAYS_INLINE uint64_t mask_lowest(uint64_t mask)
{
    return _tzcnt_u64(mask);
}

#define KERNEL_BLOCK  struct avx2_block
#define KERNEL_COUNTS struct avx2_counts
#include "engine/data/csv_kernel_body.h"

KERNEL_DEFINE(avx2);

#endif
