/* SPDX-License-Identifier: Apache-2.0 */
/* sentiment.c - one pass over the bytes: a word is hashed while it is read, and looked up at once.
 *
 * A bucket is one load, and its four fingerprints are compared together. That a feature counts once
 * is kept by slot, in a bitmap of 8 KiB that stays in the nearest cache; after a short text only
 * the words of it that were used are cleared.
 */
#include "engine/exec/expr/sentiment.h"

#include <string.h>

#include "engine/exec/expr/sentiment_features.h"

/* clang-format off */
const unsigned char feature_bytes[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    1, 4, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 1,
    0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0, 0, 3, 0, 0, 4,
    0, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f,
    0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0, 0, 0, 0, 0,
    1, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f,
    0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0, 0, 0, 0, 0,
    0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x8e, 0x8f,
    0x90, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f,
    0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf,
    0xb0, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xbb, 0xbc, 0xbd, 0xbe, 0xbf,
    0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf,
    0xd0, 0xd1, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xdb, 0xdc, 0xdd, 0xde, 0xdf,
    0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xeb, 0xec, 0xed, 0xee, 0xef,
    0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff,};
/* clang-format on */

#define EVERY_SLOT(value) ((uint64_t)(value)*UINT64_C(0x0001000100010001))

struct feature_sum {
    struct sentiment_score score;
    uint32_t mark_count; /* More than SENTIMENT_MARKS_MAX: not all are there. */
};

/* Without a branch: whether a feature is known, and new, is what no processor can guess. */
static inline void take_feature(struct sentiment_model model, struct sentiment_scratch *scratch,
                                uint64_t feature, struct feature_sum *feature_sum)
{
    uint32_t number = sentiment_bucket_of(feature, model.bucket_count);
    uint64_t bucket =
        sentiment_bucket_load(model.buckets + (size_t)number * SENTIMENT_BUCKET_BYTES);
    uint64_t wanted = EVERY_SLOT(sentiment_fingerprint_of(feature) << SENTIMENT_FINGERPRINT_SHIFT);
    uint64_t different = (bucket ^ wanted) & EVERY_SLOT(0xffc0);
    /* The lowest slot that is zero borrows, and none below it does. */
    uint64_t zeros = (different - EVERY_SLOT(1)) & ~different & EVERY_SLOT(0x8000);
    uint64_t is_known = zeros != 0;
    uint32_t shift = (uint32_t)__builtin_ctzll(zeros | (uint64_t)1 << 63) & 48;
    uint32_t place = number * SENTIMENT_BUCKET_SLOTS + shift / 16;
    uint64_t *seen = &scratch->seen[place / 64];
    int64_t is_new = (int64_t)(is_known & ~(*seen >> (place % 64)));
    *seen |= is_known << (place % 64);
    uint32_t mark = feature_sum->mark_count;
    scratch->marks[mark < SENTIMENT_MARKS_MAX ? mark : SENTIMENT_MARKS_MAX] =
        (uint16_t)(place / 64);
    feature_sum->mark_count += (uint32_t)is_new;
    uint32_t slot = (uint32_t)(bucket >> shift) & 0xffff;
    int64_t level = slot & SENTIMENT_LEVEL_MAX;
    int64_t size = level * level & -is_new;
    int64_t minus = -(int64_t)((slot & SENTIMENT_NEGATIVE) / SENTIMENT_NEGATIVE);
    feature_sum->score.total += (size ^ minus) - minus;
    feature_sum->score.magnitude += size;
}

static void scratch_clear(struct sentiment_scratch *scratch, uint32_t mark_count)
{
    if (mark_count > SENTIMENT_MARKS_MAX) {
        memset(scratch->seen, 0, sizeof scratch->seen);
        return;
    }
    for (uint32_t i = 0; i < mark_count; i++) {
        scratch->seen[scratch->marks[i]] = 0;
    }
}

struct sentiment_score sentiment_score(const struct sentiment_model *model,
                                       struct sentiment_scratch *scratch, struct text text)
{
    struct feature_reader reader = feature_reader_of(text);
    struct sentiment_model own = *model; /* No store can change it. */
    struct feature_sum feature_sum = {0};
    uint64_t features[FEATURES_MAX];
    uint32_t count;
    while ((count = features_next(&reader, features)) > 0) {
        for (uint32_t i = 0; i < count; i++) {
            take_feature(own, scratch, features[i], &feature_sum);
        }
    }
    scratch_clear(scratch, feature_sum.mark_count);
    return feature_sum.score;
}

double sentiment_polarity(struct sentiment_score score)
{
    return score.magnitude == 0 ? 0.0 : (double)score.total / (double)score.magnitude;
}

struct text sentiment_label(double polarity, double band)
{
    double distance = polarity < 0.0 ? -polarity : polarity;
    if (distance <= band) return TEXT_LITERAL("neutral");
    return polarity >= 0.0 ? TEXT_LITERAL("positive") : TEXT_LITERAL("negative");
}
