/* SPDX-License-Identifier: Apache-2.0 */
/* text_find.c - a text in a text, sixteen places at a time.
 *
 * Texts in columns are short: a search with a prepared table (Boyer-Moore and its like) would spend
 * more on the table than on the text. Two bytes of the needle are compared at sixteen places at
 * once (the generic SIMD search of Mula). Where the first byte and the next one that differs from
 * it are both right, which is rare, all are compared. Next and different: bytes that are equal tend
 * to come together, as in /a/b/c/, and a short distance lets short texts be searched in this way
 * too.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__)
#include <emmintrin.h>
#endif

enum { BLOCK_BYTES = 16 };

#if defined(__aarch64__)

enum { MASK_STEP = 4 }; /* Bits of a mask per place. */

/* Which of the places begin with `first` and have `second` at the given distance. */
static inline uint64_t match_block(const char *bytes, uint32_t distance, char first, char second)
{
    uint8x16_t begins = vceqq_u8(vld1q_u8((const uint8_t *)bytes), vdupq_n_u8((uint8_t)first));
    uint8x16_t ends =
        vceqq_u8(vld1q_u8((const uint8_t *)bytes + distance), vdupq_n_u8((uint8_t)second));
    uint8x8_t narrow = vshrn_n_u16(vreinterpretq_u16_u8(vandq_u8(begins, ends)), 4);
    return vget_lane_u64(vreinterpret_u64_u8(narrow), 0) & 0x1111111111111111u;
}

#elif defined(__x86_64__)

enum { MASK_STEP = 1 };

static inline uint64_t match_block(const char *bytes, uint32_t distance, char first, char second)
{
    __m128i begins =
        _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)bytes), _mm_set1_epi8(first));
    __m128i ends = _mm_cmpeq_epi8(
        _mm_loadu_si128((const __m128i *)(const void *)(bytes + distance)), _mm_set1_epi8(second));
    return (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_and_si128(begins, ends));
}

#else

enum { MASK_STEP = 1 };

static inline uint64_t match_block(const char *bytes, uint32_t distance, char first, char second)
{
    uint64_t mask = 0;
    for (uint32_t i = 0; i < BLOCK_BYTES; i++) {
        mask |= (uint64_t)(bytes[i] == first && bytes[i + distance] == second) << i;
    }
    return mask;
}

#endif

/* Where the byte stands that is looked for beside the first one. */
static inline uint32_t second_place(struct text needle)
{
    uint32_t place = needle.size > 1 ? 1 : 0;
    while (place + 1 < needle.size && needle.bytes[place] == needle.bytes[0]) {
        place++;
    }
    return place;
}

/* Long ones in steps: with a call in it, the search would save registers for each text. */
static inline bool is_at(const char *bytes, struct text needle)
{
    if (LIKELY(needle.size <= 16)) return text_bytes_equal(bytes, needle.bytes, needle.size);
    uint32_t last = needle.size - 16;
    for (uint32_t done = 0; done < last; done += 16) {
        if (!text_bytes_equal(bytes + done, needle.bytes + done, 16)) return false;
    }
    return text_bytes_equal(bytes + last, needle.bytes + last, 16);
}

static const char *find_by_byte(const char *bytes, const char *end, struct text needle)
{
    for (; bytes < end; bytes++) {
        if (bytes[0] == needle.bytes[0] && is_at(bytes, needle)) return bytes;
    }
    return NULL;
}

const char *text_find(struct text text, struct text needle)
{
    if (needle.size == 0) return text.size == 0 ? "" : text.bytes;
    if (needle.size > text.size) return NULL;
    const uint32_t distance = second_place(needle);
    const char first = needle.bytes[0];
    const char second = needle.bytes[distance];
    const char *end = text.bytes + (text.size - needle.size + 1); /* Of the places. */
    if (text.size < BLOCK_BYTES + distance) return find_by_byte(text.bytes, end, needle);
    /* The last block ends with the text, and may overlap the one before. */
    const char *last = text.bytes + (text.size - distance - BLOCK_BYTES);
    for (const char *block = text.bytes;;) {
        uint64_t mask = match_block(block, distance, first, second);
        for (; mask != 0; mask &= mask - 1) {
            const char *at = block + (uint32_t)__builtin_ctzll(mask) / MASK_STEP;
            if (at >= end) return NULL;
            if (is_at(at, needle)) return at;
        }
        if (end - block <= BLOCK_BYTES) return NULL;
        block = last - block < BLOCK_BYTES ? last : block + BLOCK_BYTES;
    }
}
