/* SPDX-License-Identifier: Apache-2.0 */
/* packed_text.h - a text in two words: a short one is there itself, of a long one where it is.
 *
 * The layout is that of the strings of Umbra (Neumann and Freitag, "Umbra: A Disk-Based System with
 * In-Memory Performance", CIDR 2020). Most keys are short. Such a key is compared without going to
 * where its bytes are, which for one of millions of groups is a wait for memory.
 *
 *     short   size (4 bytes), up to 12 bytes of the text, zeros
 *     long    size (4 bytes), its first 4 bytes, where all of them are
 *
 * Memory: the bytes of a long text are borrowed; those of a short one are lent for as long as the
 * packed text stays where it is.
 */
#ifndef ENGINE_BASE_PACKED_TEXT_H
#define ENGINE_BASE_PACKED_TEXT_H

#include "engine/base/text.h"

enum { PACKED_TEXT_SHORT = 12, PACKED_TEXT_HEAD = 4 };

struct packed_text {
    uint64_t words[2];
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first byte is the lowest");
_Static_assert(sizeof(char *) == sizeof(uint64_t), "an address is a word");

static inline uint32_t packed_text_load(const char *bytes)
{
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static inline struct packed_text packed_text_of(struct text text)
{
    const char *bytes = text.bytes;
    uint32_t size = text.size;
    if (size > PACKED_TEXT_SHORT) {
        return (struct packed_text){
            {(uint64_t)packed_text_load(bytes) << 32 | size, (uint64_t)(uintptr_t)bytes}};
    }
    /* Loads that overlap: the same bytes come to the same place. */
    uint64_t first = 0; /* Eight bytes, */
    uint64_t last = 0;  /* and four. */
    if (size >= 8) {
        memcpy(&first, bytes, sizeof first);
        last = (uint64_t)packed_text_load(bytes + size - 4) >> 8 * (PACKED_TEXT_SHORT - size);
    } else if (size >= 4) {
        first = packed_text_load(bytes) | (uint64_t)packed_text_load(bytes + size - 4)
                                              << 8 * (size - 4);
    } else if (size > 0) {
        first = (uint64_t)(unsigned char)bytes[0] |
                (uint64_t)(unsigned char)bytes[size / 2] << 8 * (size / 2) |
                (uint64_t)(unsigned char)bytes[size - 1] << 8 * (size - 1);
    }
    return (struct packed_text){{first << 32 | size, first >> 32 | last << 32}};
}

static inline uint32_t packed_text_size(const struct packed_text *packed)
{
    return (uint32_t)packed->words[0];
}

static inline struct text packed_text_get(const struct packed_text *packed)
{
    uint32_t size = packed_text_size(packed);
    const char *bytes = (const char *)packed + sizeof size;
    if (size > PACKED_TEXT_SHORT) bytes = (const char *)(uintptr_t)packed->words[1];
    return (struct text){bytes, size};
}

static inline bool packed_text_equal(const struct packed_text *a, const struct packed_text *b)
{
    if (a->words[0] != b->words[0]) return false;
    if (a->words[1] == b->words[1]) return true;
    uint32_t size = packed_text_size(a);
    return size > PACKED_TEXT_SHORT &&
           text_bytes_equal(packed_text_get(a).bytes + PACKED_TEXT_HEAD,
                            packed_text_get(b).bytes + PACKED_TEXT_HEAD, size - PACKED_TEXT_HEAD);
}

#endif
