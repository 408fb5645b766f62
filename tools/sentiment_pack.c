/* SPDX-License-Identifier: Apache-2.0 */
/* sentiment_pack.c - the features that matter most get the slots.
 *
 * A feature matters as much as it moves scores: its weight times the root of how often it occurs.
 * Levels are square roots of weights, because most weights are small and must not all become equal.
 */
#include "sentiment_pack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/exec/expr/sentiment_model.h"

/* One feature in so many may be heavier than the highest level says. */
enum { CLIPPED_ONE_IN = 10000 };

struct candidate {
    double importance;
    double size; /* Of the weight. */
    uint32_t feature;
};

/* Both orders are total, so that every qsort gives the same. */
static int compare_importance(const void *a, const void *b)
{
    const struct candidate *left = a;
    const struct candidate *right = b;
    if (left->importance != right->importance) return left->importance > right->importance ? -1 : 1;
    return (left->feature > right->feature) - (left->feature < right->feature);
}

static int compare_size(const void *a, const void *b)
{
    const struct candidate *left = a;
    const struct candidate *right = b;
    if (left->size != right->size) return left->size > right->size ? -1 : 1;
    return (left->feature > right->feature) - (left->feature < right->feature);
}

static status make_candidates(struct corpus *corpus, const double *weights, struct candidate **out,
                              struct error *err)
{
    struct candidate *candidates =
        arena_array(&corpus->arena, struct candidate, corpus->hash_count);
    double *counts = arena_array(&corpus->arena, double, corpus->hash_count);
    if (candidates == NULL || counts == NULL) return error_memory(err);
    for (uint32_t i = 0; i < corpus->example_count; i++) {
        const struct example *example = &corpus->examples[i];
        if (example->label == LABEL_NEUTRAL) continue;
        for (uint32_t j = 0; j < example->count; j++) {
            counts[corpus->features[example->first + j]] += 1.0;
        }
    }
    for (uint32_t i = 0; i < corpus->hash_count; i++) {
        double size = weights[i] < 0.0 ? -weights[i] : weights[i];
        candidates[i] = (struct candidate){size * sqrt(counts[i]), size, i};
    }
    *out = candidates;
    return STATUS_OK;
}

/* Puts a slot into the feature's bucket; false: that is full, or has the fingerprint already. */
static bool place(uint16_t *slots, uint32_t bucket_count, uint64_t hash, uint32_t sign_and_level)
{
    uint16_t *bucket =
        slots + (size_t)sentiment_bucket_of(hash, bucket_count) * SENTIMENT_BUCKET_SLOTS;
    uint32_t fingerprint = sentiment_fingerprint_of(hash);
    for (uint32_t i = 0; i < SENTIMENT_BUCKET_SLOTS; i++) {
        if (bucket[i] >> SENTIMENT_FINGERPRINT_SHIFT == fingerprint) return false;
        if (bucket[i] != 0) continue;
        bucket[i] = (uint16_t)(fingerprint << SENTIMENT_FINGERPRINT_SHIFT | sign_and_level);
        return true;
    }
    return false;
}

struct weight_table {
    uint16_t *slots;
    uint32_t slot_count;
    uint32_t used;
};

static status fill_table(struct corpus *corpus, const double *weights, uint32_t bucket_count,
                         struct weight_table *out, struct error *err)
{
    struct candidate *candidates;
    struct weight_table table = {.slot_count = bucket_count * SENTIMENT_BUCKET_SLOTS};
    table.slots = arena_array(&corpus->arena, uint16_t, table.slot_count);
    if (table.slots == NULL) return error_memory(err);
    TRY(make_candidates(corpus, weights, &candidates, err));
    qsort(candidates, corpus->hash_count, sizeof *candidates, compare_size);
    uint32_t clipped = table.slot_count / CLIPPED_ONE_IN;
    if (clipped >= corpus->hash_count) clipped = corpus->hash_count - 1;
    double heaviest = candidates[clipped].size;
    qsort(candidates, corpus->hash_count, sizeof *candidates, compare_importance);
    for (uint32_t i = 0; i < corpus->hash_count && table.used < table.slot_count; i++) {
        uint32_t feature = candidates[i].feature;
        double share = candidates[i].size < heaviest ? candidates[i].size / heaviest : 1.0;
        uint32_t level = (uint32_t)(sqrt(share) * SENTIMENT_LEVEL_MAX + 0.5);
        if (level == 0) continue;
        uint32_t sign = weights[feature] < 0.0 ? SENTIMENT_NEGATIVE : 0;
        table.used += place(table.slots, bucket_count, corpus->hashes[feature], sign | level);
    }
    *out = table;
    return STATUS_OK;
}

status pack_model(struct corpus *corpus, const double *weights, uint32_t bucket_count,
                  struct buf *out, struct error *err)
{
    struct weight_table table;
    TRY(fill_table(corpus, weights, bucket_count, &table, err));
    buf_put(out, SENTIMENT_MAGIC, sizeof SENTIMENT_MAGIC - 1);
    buf_put_u32(out, SENTIMENT_VERSION);
    buf_put_u32(out, bucket_count);
    buf_put_u32(out, table.used);
    buf_put_u32(out, 0);
    buf_put_u64(out, 0);
    for (uint32_t i = 0; i < table.slot_count; i += 2) {
        buf_put_u32(out, table.slots[i] | (uint32_t)table.slots[i + 1] << 16);
    }
    if (out->failed) return error_memory(err);
    uint64_t checksum =
        sentiment_checksum((struct text){(const char *)out->bytes, (uint32_t)out->size});
    for (uint32_t i = 0; i < 8; i++) {
        out->bytes[SENTIMENT_CHECKSUM_OFFSET + i] = (unsigned char)(checksum >> (8 * i));
    }
    return STATUS_OK;
}
