/* SPDX-License-Identifier: Apache-2.0 */
/* sentiment_model.h - the table of weights behind sentiment(), and the file that holds it.
 *
 * A feature's hash names a bucket of four slots and a fingerprint of 10 bits; the slot of the
 * bucket that has the fingerprint holds its weight. The trainer fills buckets in order of
 * importance, so that what does not fit is what matters least. A plain table of weights by hash
 * would need four times the size for as few confusions.
 *
 * The file, little-endian:
 *
 *     0   8  "millsent"
 *     8   4  version, 1
 *     12  4  buckets, 1 to 16380
 *     16  4  slots in use
 *     20  4  0
 *     24  8  FNV-1a (64 bits) of all other bytes
 *     32     buckets of 8 bytes: four slots of 16 bits, the first in the lowest bits
 *
 * A slot is fingerprint (10 bits, 1 to 1023) << 6 | negative (1 bit) << 5 | level (5 bits, 1 to
 * 31); its weight is level², with the sign. A free slot is 0; used ones stand first in a bucket,
 * and no fingerprint is there twice.
 *
 * Memory: a model borrows the bytes it was read from. Threads: read-only.
 */
#ifndef ENGINE_EXEC_EXPR_SENTIMENT_MODEL_H
#define ENGINE_EXEC_EXPR_SENTIMENT_MODEL_H

#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

enum {
    SENTIMENT_VERSION = 1,
    SENTIMENT_HEADER_BYTES = 32,
    SENTIMENT_CHECKSUM_OFFSET = 24,
    SENTIMENT_BUCKET_BYTES = 8,
    SENTIMENT_BUCKET_SLOTS = 4,
    SENTIMENT_BUCKETS_MAX = 16380,
    SENTIMENT_FILE_MAX = SENTIMENT_HEADER_BYTES + SENTIMENT_BUCKETS_MAX * SENTIMENT_BUCKET_BYTES,
    SENTIMENT_SLOTS_MAX = 65536,
    SENTIMENT_LEVEL_BITS = 5,
    SENTIMENT_LEVEL_MAX = 31,
    SENTIMENT_NEGATIVE = 32,
    SENTIMENT_FINGERPRINT_SHIFT = 6,
    SENTIMENT_FINGERPRINTS = 1023,
};
_Static_assert(SENTIMENT_BUCKETS_MAX *SENTIMENT_BUCKET_SLOTS <= SENTIMENT_SLOTS_MAX, "they fit");
_Static_assert(SENTIMENT_FILE_MAX == 128 * 1024,
               "the size that docs/reference/sentiment.md promises");

#define SENTIMENT_MAGIC "millsent"

struct sentiment_model {
    const unsigned char *buckets; /* Borrowed. */
    uint32_t bucket_count;
    uint64_t checksum;
};

/* The one that is part of the program. */
extern const struct sentiment_model sentiment_builtin;

static inline uint32_t sentiment_bucket_of(uint64_t feature, uint32_t bucket_count)
{
    return (uint32_t)(((feature >> 32) * bucket_count) >> 32);
}

/* From 1: 0 is a free slot's. */
static inline uint32_t sentiment_fingerprint_of(uint64_t feature)
{
    return (uint32_t)((((feature >> 8) & 0xffff) * SENTIMENT_FINGERPRINTS) >> 16) + 1;
}

static inline int32_t sentiment_weight_of(uint32_t slot)
{
    int32_t level = (int32_t)(slot & SENTIMENT_LEVEL_MAX);
    return (slot & SENTIMENT_NEGATIVE) != 0 ? -(level * level) : level * level;
}

/* A load where the machine is little-endian. */
static inline uint64_t sentiment_bucket_load(const unsigned char *bytes)
{
    uint64_t bucket = 0;
    for (uint32_t i = 0; i < SENTIMENT_BUCKET_BYTES; i++) {
        bucket |= (uint64_t)bytes[i] << (8 * i);
    }
    return bucket;
}

/* Of a whole file; the checksum's own place is left out. */
uint64_t sentiment_checksum(struct text file);

/* STATUS_INPUT, with the reason: it is not a model, of another version, or damaged. */
MUST_USE status sentiment_model_read(struct text file, struct sentiment_model *out,
                                     struct error *err);

#endif
