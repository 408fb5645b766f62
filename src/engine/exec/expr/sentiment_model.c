/* SPDX-License-Identifier: Apache-2.0 */
/* sentiment_model.c - checking a model file, once, so that the kernel need not.
 *
 * Any table of slots gives some score, so nothing here protects the kernel's memory but the count
 * of buckets. The rest is for people: a damaged or half-copied file shall be refused, not answer.
 */
#include "engine/exec/expr/sentiment_model.h"

#include <stdbool.h>
#include <string.h>

#include "engine/base/buf.h"

uint64_t sentiment_checksum(struct text file)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < file.size; i++) {
        bool is_own = i >= SENTIMENT_CHECKSUM_OFFSET && i < SENTIMENT_HEADER_BYTES;
        if (!is_own) hash = (hash ^ (unsigned char)file.bytes[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static status check_slots(const struct sentiment_model *model, uint32_t used, struct error *err)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < model->bucket_count; i++) {
        uint64_t bucket =
            sentiment_bucket_load(model->buckets + (size_t)i * SENTIMENT_BUCKET_BYTES);
        uint32_t fingerprints[SENTIMENT_BUCKET_SLOTS];
        bool is_right = true;
        for (uint32_t j = 0; j < SENTIMENT_BUCKET_SLOTS; j++) {
            uint32_t slot = (bucket >> (16 * j)) & 0xffff;
            fingerprints[j] = slot >> SENTIMENT_FINGERPRINT_SHIFT;
            if (slot == 0) continue;
            found++;
            is_right = is_right && fingerprints[j] != 0 && (slot & SENTIMENT_LEVEL_MAX) != 0;
            for (uint32_t k = 0; k < j; k++) {
                is_right = is_right && fingerprints[k] != 0 && fingerprints[k] != fingerprints[j];
            }
        }
        if (!is_right) {
            return error_set(err, STATUS_INPUT, "the sentiment model's bucket %u is not one", i);
        }
    }
    if (found == used) return STATUS_OK;
    return error_set(err, STATUS_INPUT,
                     "the sentiment model has %u slots in use and says that it has %u", found,
                     used);
}

status sentiment_model_read(struct text file, struct sentiment_model *out, struct error *err)
{
    struct buf_reader reader = {.bytes = (const unsigned char *)file.bytes, .size = file.size};
    const void *magic = buf_get(&reader, sizeof SENTIMENT_MAGIC - 1);
    if (magic == NULL || memcmp(magic, SENTIMENT_MAGIC, sizeof SENTIMENT_MAGIC - 1) != 0) {
        return error_set(err, STATUS_INPUT,
                         "this is not a sentiment model: it does not begin with `%s`",
                         SENTIMENT_MAGIC);
    }
    uint32_t version = buf_get_u32(&reader);
    uint32_t bucket_count = buf_get_u32(&reader);
    uint32_t used = buf_get_u32(&reader);
    uint32_t zero = buf_get_u32(&reader);
    uint64_t checksum = buf_get_u64(&reader);
    if (!reader.failed && version != SENTIMENT_VERSION) {
        return error_set(err, STATUS_INPUT,
                         "the sentiment model is of version %u, and this program reads version %d",
                         version, SENTIMENT_VERSION);
    }
    if (reader.failed || zero != 0 || bucket_count == 0 || bucket_count > SENTIMENT_BUCKETS_MAX ||
        buf_left(&reader) != (size_t)bucket_count * SENTIMENT_BUCKET_BYTES) {
        return error_set(err, STATUS_INPUT,
                         "the sentiment model has %u bytes, which is not what its header says: it "
                         "is cut off or damaged",
                         file.size);
    }
    if (sentiment_checksum(file) != checksum) {
        return error_set(err, STATUS_INPUT,
                         "the sentiment model is damaged: its checksum is wrong");
    }
    struct sentiment_model model = {reader.bytes + reader.position, bucket_count, checksum};
    TRY(check_slots(&model, used, err));
    *out = model;
    return STATUS_OK;
}
