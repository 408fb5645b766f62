/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_words.h - short numbers, sixteen at a time: from bytes to values without a branch per row.
 *
 * Eight digits become a number by three multiplications within one register, as in simdjson
 * (Langdale, Lemire: Parsing gigabytes of JSON per second, 2019). A word is the text of a number of
 * up to eight bytes: each byte without the bits of '0', the last one uppermost, zeros below the
 * first. Digits are then 0 to 9, and every other byte is more.
 *
 * Numbers are short and of varying length, which makes any branch on their look a bad guess. So a
 * whole block is read as if it were good; what makes it bad adds up on the side and is looked at
 * once. NEON reads two words in the registers where one would be; elsewhere a word is a register.
 * Both give the same results, and a block that is not good leaves nothing but garbage.
 */
#ifndef ENGINE_EXEC_SCAN_CHUNK_WORDS_H
#define ENGINE_EXEC_SCAN_CHUNK_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

enum { WORDS_COUNT = 16, WORD_BYTES = 8 };

#define WORD_ZEROS 0x3030303030303030u
#define WORD_POINT ((uint64_t)('.' ^ '0'))
#define WORD_ONES  0x0101010101010101u
#define WORD_HIGHS 0x8080808080808080u
#define WORD_LAST  0x8000000000000000u /* The high bit of the last byte. */

struct words {
    uint64_t at[WORDS_COUNT];
};

/* A point in the same place of all words. */
struct words_point {
    uint64_t expected; /* Taken out by an exclusive-or, which must leave nothing there: */
    uint64_t nine;     /* 9 in that byte; with it, more than a digit. */
    uint64_t after;    /* All ones in the bytes behind the point. */
};

/* With so many (1 to 7) digits behind it. */
static inline struct words_point words_point_at(uint32_t decimals)
{
    uint32_t place = 8 * (WORD_BYTES - 1 - decimals); /* In bits. */
    return (struct words_point){
        .expected = WORD_POINT << place,
        .nine = (uint64_t)9 << place,
        .after = UINT64_MAX << place << 8,
    };
}

/* Has its high bits clear if no byte with its addition is more than 9. */
ALWAYS_INLINE uint64_t word_excess(uint64_t word, uint64_t addition)
{
    /* Carries only come from bytes that have the bit already. */
    return word | (word + (0x7676767676767676u + addition));
}

/* Of a word of digits. */
ALWAYS_INLINE uint64_t word_value(uint64_t word)
{
    word = word * 10 + (word >> 8); /* Pairs, in every other byte. */
    uint64_t outer = (word & 0x000000ff000000ffu) * 0x000f424000000064u;
    uint64_t inner = ((word >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u;
    return (outer + inner) >> 32;
}

/* The values of words of digits, with the point or without; false: some are not. */
ALWAYS_INLINE bool words_read_point(const struct words *words, struct words_point point,
                                    bool has_point, uint64_t *out)
{
#if defined(__aarch64__)
    const uint8x16_t expected = vreinterpretq_u8_u64(vdupq_n_u64(point.expected));
    const uint8x16_t nine = vreinterpretq_u8_u64(vdupq_n_u64(point.nine));
    const uint8x16_t after = vreinterpretq_u8_u64(vdupq_n_u64(point.after));
    const uint8x16_t tens = vreinterpretq_u8_u16(vdupq_n_u16(0x010a));
    const uint16x8_t hundreds = vreinterpretq_u16_u32(vdupq_n_u32(0x00010064));
    const uint32x4_t thousands = vreinterpretq_u32_u64(vdupq_n_u64(0x0000000100002710));
    uint8x16_t most = vdupq_n_u8(0);
    for (uint32_t i = 0; i < WORDS_COUNT; i += 2) {
        uint8x16_t word = vreinterpretq_u8_u64(vld1q_u64(words->at + i));
        if (has_point) word = veorq_u8(word, expected);
        most = vmaxq_u8(most, has_point ? vqaddq_u8(word, nine) : word);
        if (has_point) {
            uint64x2_t moved = vshlq_n_u64(vreinterpretq_u64_u8(word), 8);
            word = vbslq_u8(after, word, vreinterpretq_u8_u64(moved));
        }
        uint16x8_t pairs = vpaddlq_u8(vmulq_u8(word, tens));
        uint32x4_t fours = vpaddlq_u16(vmulq_u16(pairs, hundreds));
        vst1q_u64(out + i, vpaddlq_u32(vmulq_u32(fours, thousands)));
    }
    return vmaxvq_u8(most) <= 9;
#else
    uint64_t excess = 0;
    for (uint32_t i = 0; i < WORDS_COUNT; i++) {
        uint64_t word = words->at[i];
        if (has_point) word ^= point.expected;
        excess |= word_excess(word, has_point ? point.nine : 0);
        if (has_point) word = (word & point.after) | (word << 8 & ~point.after);
        out[i] = word_value(word);
    }
    return (excess & WORD_HIGHS) == 0;
#endif
}

/* The same where every word may have a point at a place of its own, or none. Writes how many digits
 * are behind it. A point as last byte is not good: it might be the only one. */
ALWAYS_INLINE bool words_read_points(const struct words *words, uint64_t *out,
                                     uint8_t *out_decimals)
{
    uint64_t excess = 0;
    for (uint32_t i = 0; i < WORDS_COUNT; i++) {
        uint64_t word = words->at[i];
        uint64_t difference = word ^ WORD_ONES * WORD_POINT;
        uint64_t points = (difference - WORD_ONES) & ~difference & WORD_HIGHS;
        /* The first point, or none: what is before it moves up over it. */
        uint64_t before = ((points & -points) >> 7) - 1;
        uint64_t after = ~before << 8;
        uint32_t move = points != 0 ? 8 : 0;
        word = (word & before) << move | (word & after);
        excess |= word_excess(word, 0) | (points & WORD_LAST);
        out[i] = word_value(word);
        /* As if the last byte were one, where there is none. */
        uint32_t place = (uint32_t)__builtin_ctzll(points | WORD_LAST);
        out_decimals[i] = (uint8_t)((63 - place) / 8);
    }
    return (excess & WORD_HIGHS) == 0;
}

#endif
