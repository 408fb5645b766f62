/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.c - runs of ASCII are passed many bytes at a time, the rest character by character. */
#include "engine/exec/expr/utf8.h"

#include "engine/base/error.h"

uint32_t utf8_step(const char *bytes, uint32_t size)
{
    const unsigned char *b = (const unsigned char *)bytes;
    if (b[0] < 0xc2 || b[0] > 0xf4) return 1;
    uint32_t length = b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
    if (size < length) return 1;
    for (uint32_t i = 1; i < length; i++) {
        if ((b[i] & 0xc0) != 0x80) return 1;
    }
    /* Overlong forms, surrogates and what lies beyond Unicode differ in the second byte. */
    if (b[0] == 0xe0 && b[1] < 0xa0) return 1;
    if (b[0] == 0xed && b[1] > 0x9f) return 1;
    if (b[0] == 0xf0 && b[1] < 0x90) return 1;
    if (b[0] == 0xf4 && b[1] > 0x8f) return 1;
    return length;
}

/* Which of eight bytes are not ASCII: the highest bit of each, the first byte lowest. */
static inline uint64_t high_bits(const char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word & 0x8080808080808080u;
}

/* Where the first byte that is not ASCII stands, from `at` on. */
static inline uint32_t ascii_end(struct text text, uint32_t at)
{
    for (; text.size - at >= 16; at += 16) {
        uint64_t first = high_bits(text.bytes + at);
        uint64_t second = high_bits(text.bytes + at + 8);
        if (LIKELY((first | second) == 0)) continue;
        if (first != 0) return at + (uint32_t)__builtin_ctzll(first) / 8;
        return at + 8 + (uint32_t)__builtin_ctzll(second) / 8;
    }
    if (text.size - at >= 8) {
        uint64_t bits = high_bits(text.bytes + at);
        if (bits != 0) return at + (uint32_t)__builtin_ctzll(bits) / 8;
        at += 8;
    }
    while (at < text.size && (unsigned char)text.bytes[at] < 0x80) {
        at++;
    }
    return at;
}

uint32_t utf8_count(struct text text)
{
    uint32_t count = 0;
    for (uint32_t at = 0; at < text.size; count++) {
        uint32_t end = ascii_end(text, at);
        count += end - at;
        if (end == text.size) return count;
        at = end + utf8_step(text.bytes + end, text.size - end);
    }
    return count;
}

bool utf8_is_valid(struct text text)
{
    for (uint32_t at = 0; at < text.size;) {
        at = ascii_end(text, at);
        if (at == text.size) return true;
        uint32_t step = utf8_step(text.bytes + at, text.size - at);
        if (step == 1) return false;
        at += step;
    }
    return true;
}
