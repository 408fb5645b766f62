/* text_find.c - a text in a text, sixteen places at a time.
 *
 * Texts in columns are short, and what prepares a cleverer search takes longer than they last.
 * Where the first and the last byte are both right, which is rare, the bytes between are compared.
 */
#include <string.h>

#include "base/text.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__)
#include <emmintrin.h>
#endif

enum { BLOCK_BYTES = 16 };

#if defined(__aarch64__)

enum { MASK_STEP = 4 }; /* Bits of a mask per place. */

/* Which of the places begin with `first` and have `last` at the given distance. */
static inline uint64_t match_block(const char *bytes, uint32_t distance, char first, char last)
{
    uint8x16_t begins = vceqq_u8(vld1q_u8((const uint8_t *)bytes), vdupq_n_u8((uint8_t)first));
    uint8x16_t ends =
        vceqq_u8(vld1q_u8((const uint8_t *)bytes + distance), vdupq_n_u8((uint8_t)last));
    uint8x8_t narrow = vshrn_n_u16(vreinterpretq_u16_u8(vandq_u8(begins, ends)), 4);
    return vget_lane_u64(vreinterpret_u64_u8(narrow), 0) & 0x1111111111111111u;
}

#elif defined(__x86_64__)

enum { MASK_STEP = 1 };

static inline uint64_t match_block(const char *bytes, uint32_t distance, char first, char last)
{
    __m128i begins =
        _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)bytes), _mm_set1_epi8(first));
    __m128i ends = _mm_cmpeq_epi8(
        _mm_loadu_si128((const __m128i *)(const void *)(bytes + distance)), _mm_set1_epi8(last));
    return (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_and_si128(begins, ends));
}

#else

enum { MASK_STEP = 1 };

static inline uint64_t match_block(const char *bytes, uint32_t distance, char first, char last)
{
    uint64_t mask = 0;
    for (uint32_t i = 0; i < BLOCK_BYTES; i++) {
        mask |= (uint64_t)(bytes[i] == first && bytes[i + distance] == last) << i;
    }
    return mask;
}

#endif

static const char *find_in_block(const char *bytes, struct text needle)
{
    uint32_t distance = needle.size - 1;
    uint64_t mask = match_block(bytes, distance, needle.bytes[0], needle.bytes[distance]);
    for (; mask != 0; mask &= mask - 1) {
        const char *at = bytes + (uint32_t)__builtin_ctzll(mask) / MASK_STEP;
        if (text_bytes_equal(at, needle.bytes, needle.size)) return at;
    }
    return NULL;
}

const char *text_find(struct text text, struct text needle)
{
    if (needle.size == 0) return text.size == 0 ? "" : text.bytes;
    if (needle.size > text.size) return NULL;
    if (needle.size == 1) return memchr(text.bytes, needle.bytes[0], text.size);
    uint32_t place_count = text.size - needle.size + 1;
    if (place_count < BLOCK_BYTES) {
        for (uint32_t at = 0; at < place_count; at++) {
            if (text.bytes[at] == needle.bytes[0] &&
                text_bytes_equal(text.bytes + at, needle.bytes, needle.size)) {
                return text.bytes + at;
            }
        }
        return NULL;
    }
    /* The last block ends with the last place, and may overlap the one before. */
    uint32_t last = place_count - BLOCK_BYTES;
    for (uint32_t at = 0;; at = at + BLOCK_BYTES < last ? at + BLOCK_BYTES : last) {
        const char *found = find_in_block(text.bytes + at, needle);
        if (found != NULL || at == last) return found;
    }
}
