/* SPDX-License-Identifier: Apache-2.0 */
/* sentiment_features.h - what of a text the sentiment model looks at: its words and pairs of words.
 *
 *     struct feature_reader reader = feature_reader_of(text);
 *     while ((count = features_next(&reader, features)) > 0) ...
 *
 * A word is a run of ASCII letters, digits and bytes from 0x80; letter case of ASCII is ignored.
 * A word in n't is two: what stands before, if anything, and n't. An apostrophe before one or two
 * word bytes begins a word with them ('s, 've). Tags (from < to the first > within 255 bytes, with
 * no < between) are skipped. White space, quotes, hyphens and slashes separate words; everything
 * else separates them and also ends a pair. ! and ? are features of their own.
 *
 * A feature is a 64-bit hash. The trainer and the kernel share this file, so that they agree; what
 * it does is part of the model's format: another tokeniser needs another version there.
 *
 * Any bytes are a text. The work is linear in its size.
 */
#ifndef ENGINE_EXEC_EXPR_SENTIMENT_FEATURES_H
#define ENGINE_EXEC_EXPR_SENTIMENT_FEATURES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/assert.h"
#include "engine/base/hash.h"
#include "engine/base/text.h"

enum {
    FEATURES_MAX = 4, /* At one step: two words and their pairs with what stands before. */
    FEATURE_TAG_MAX = 256,
};

/* What a byte is: one of these, or a word's, which is there in lower case. */
enum feature_byte {
    FEATURE_BREAK,
    FEATURE_JOIN,
    FEATURE_APOSTROPHE,
    FEATURE_TAG,
    FEATURE_MARK,
    FEATURE_WORD = 0x20, /* This or more. */
};
extern const unsigned char feature_bytes[256];

struct feature_reader {
    const unsigned char *at;
    const unsigned char *end;
    uint64_t previous; /* The word that makes a pair with the next; 0: none. */
};

static inline struct feature_reader feature_reader_of(struct text text)
{
    const unsigned char *bytes = (const unsigned char *)text.bytes;
    return (struct feature_reader){.at = bytes, .end = text.size > 0 ? bytes + text.size : bytes};
}

/* A word is hashed and found in pieces of eight bytes, the last one filled up with zeros: where a
 * word ends is what no processor can guess, so there should be one branch per word and not one per
 * byte. */
#define FEATURE_HASH_START  UINT64_C(0xcbf29ce484222325)
#define FEATURE_EVERY(byte) ((uint64_t)(byte)*UINT64_C(0x0101010101010101))

static inline uint64_t feature_hash_piece(uint64_t hash, uint64_t piece)
{
    hash = (hash ^ piece) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 32);
}

/* The next eight bytes, the first in the lowest bits; zeros behind the end. */
static inline uint64_t feature_load(const unsigned char *at, const unsigned char *end)
{
    uint64_t piece = 0;
    if (LIKELY(end - at >= 8)) {
        for (uint32_t i = 0; i < 8; i++) {
            piece |= (uint64_t)at[i] << (8 * i);
        }
        return piece;
    }
    for (uint32_t i = 0; at + i < end; i++) {
        piece |= (uint64_t)at[i] << (8 * i);
    }
    return piece;
}

/* How many of the bytes, from the first, are a word's; the others become zeros, letters lower-case.
 * Sums stay within their bytes, because the highest bit of each is out of the way. */
static inline uint32_t feature_find_end(uint64_t *in_out_piece)
{
    uint64_t bytes = *in_out_piece;
    uint64_t low = bytes & FEATURE_EVERY(0x7f);
    uint64_t small = low | FEATURE_EVERY(0x20);
    uint64_t letters = (small + FEATURE_EVERY(0x80 - 'a')) &
                       ~(small + FEATURE_EVERY(0x80 - ('z' + 1))) & ~bytes & FEATURE_EVERY(0x80);
    uint64_t digits = (low + FEATURE_EVERY(0x80 - '0')) & ~(low + FEATURE_EVERY(0x80 - ('9' + 1)));
    uint64_t others = ~(letters | digits | bytes) & FEATURE_EVERY(0x80);
    bytes |= letters >> 2; /* 0x20: the bit that tells lower case. */
    if (UNLIKELY(others == 0)) {
        *in_out_piece = bytes;
        return 8;
    }
    *in_out_piece = bytes & (((others & -others) >> 7) - 1);
    return (uint32_t)__builtin_ctzll(others) / 8;
}

static inline uint32_t feature_put_word(struct feature_reader *reader, uint64_t bytes_hash,
                                        uint64_t *out)
{
    uint64_t word = hash_u64(bytes_hash);
    uint64_t previous = reader->previous;
    out[0] = word;
    reader->previous = word;
    if (previous == 0) return 1;
    out[1] = hash_combine(previous, word);
    return 2;
}

/* The word that begins at `at`, as far as `end`; gives what follows it. */
static inline const unsigned char *feature_hash_word(const unsigned char *at,
                                                     const unsigned char *end, uint64_t *out_hash)
{
    uint64_t hash = FEATURE_HASH_START;
    uint32_t size;
    do {
        uint64_t piece = feature_load(at, end);
        size = feature_find_end(&piece);
        if (UNLIKELY(size == 0)) break; /* It had a multiple of eight bytes. */
        hash = feature_hash_piece(hash, piece);
        at += size;
    } while (size == 8);
    *out_hash = hash;
    return at;
}

static inline bool feature_is_word_at(const struct feature_reader *reader, const unsigned char *at)
{
    return at < reader->end && feature_bytes[*at] >= FEATURE_WORD;
}

/* Whether a word that ends before the apostrophe at `at` is one in n't. */
static inline bool feature_negates(const struct feature_reader *reader, const unsigned char *at)
{
    return (at[-1] | 0x20) == 'n' && reader->end - at >= 2 && (at[1] | 0x20) == 't' &&
           !feature_is_word_at(reader, at + 2);
}

static inline uint32_t feature_read_word(struct feature_reader *reader, uint64_t *out)
{
    uint64_t hash;
    const unsigned char *start = reader->at;
    const unsigned char *at = feature_hash_word(start, reader->end, &hash);
    reader->at = at;
    bool negates = UNLIKELY(at < reader->end && *at == '\'') && feature_negates(reader, at);
    if (LIKELY(!negates)) return feature_put_word(reader, hash, out);
    uint32_t count = 0;
    reader->at = at + 2;
    if (at - start > 1) {
        (void)feature_hash_word(start, at - 1, &hash); /* Its end is known. */
        count = feature_put_word(reader, hash, out);
    }
    hash = feature_hash_piece(FEATURE_HASH_START, 'n' | '\'' << 8 | 't' << 16);
    return count + feature_put_word(reader, hash, out + count);
}

/* At an apostrophe. 0: no word begins there, and it is skipped. */
static inline uint32_t feature_read_ending(struct feature_reader *reader, uint64_t *out)
{
    const unsigned char *at = reader->at + 1;
    uint64_t piece = feature_load(at, reader->end);
    uint32_t size = feature_find_end(&piece);
    reader->at = at;
    if (size == 0 || size > 2) return 0;
    reader->at = at + size;
    return feature_put_word(reader, feature_hash_piece(FEATURE_HASH_START, piece << 8 | '\''), out);
}

static inline void feature_skip_tag(struct feature_reader *reader)
{
    const unsigned char *at = reader->at + 1;
    const unsigned char *end = reader->end;
    if (end - at > FEATURE_TAG_MAX - 1) end = at + (FEATURE_TAG_MAX - 1);
    reader->previous = 0;
    reader->at = at; /* When it is no tag. */
    while (at < end && *at != '>' && *at != '<') {
        at++;
    }
    if (at < end && *at == '>') reader->at = at + 1;
}

/* The features of the next word or sign; 0: the text is at its end. */
static inline uint32_t features_next(struct feature_reader *reader, uint64_t out[FEATURES_MAX])
{
    while (reader->at < reader->end) {
        unsigned char kind = feature_bytes[*reader->at];
        uint32_t count = 0;
        if (kind >= FEATURE_WORD) return feature_read_word(reader, out);
        if (LIKELY(kind == FEATURE_JOIN)) {
            reader->at++;
        } else if (kind == FEATURE_APOSTROPHE) {
            count = feature_read_ending(reader, out);
        } else if (kind == FEATURE_TAG) {
            feature_skip_tag(reader);
        } else {
            reader->previous = 0;
            unsigned char sign = *reader->at++;
            if (kind == FEATURE_MARK) {
                out[0] = hash_u64(feature_hash_piece(FEATURE_HASH_START, sign));
                count = 1;
            }
        }
        if (count > 0) return count;
    }
    return 0;
}

#endif
