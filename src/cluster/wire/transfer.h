/* SPDX-License-Identifier: Apache-2.0 */
/* transfer.h - one list of fields that both writes and reads them, as in xdr(3): the two directions
 * cannot differ.
 *
 *     struct transfer out = {.writer = &writer};
 *     pass_u64(&out, &thing->number);     written, and left as it is
 *     struct transfer in = {.reader = &reader};
 *     pass_u64(&in, &thing->number);      set
 *
 * A writer only reads the fields, so that what it writes may be const behind the pointers. Encoding
 * and failure are those of engine/data/codec.h.
 */
#ifndef CLUSTER_WIRE_TRANSFER_H
#define CLUSTER_WIRE_TRANSFER_H

#include "engine/data/codec.h"

struct transfer {
    struct codec_writer *writer; /* NULL: it reads. */
    struct codec_reader *reader;
};

static inline void pass_u32(const struct transfer *transfer, uint32_t *value)
{
    if (transfer->writer != NULL) {
        codec_put_u32(transfer->writer, *value);
    } else {
        *value = codec_get_u32(transfer->reader);
    }
}

static inline void pass_u64(const struct transfer *transfer, uint64_t *value)
{
    if (transfer->writer != NULL) {
        codec_put_u64(transfer->writer, *value);
    } else {
        *value = codec_get_u64(transfer->reader);
    }
}

static inline void pass_bool(const struct transfer *transfer, bool *value)
{
    if (transfer->writer != NULL) {
        codec_put_bool(transfer->writer, *value);
    } else {
        *value = codec_get_bool(transfer->reader);
    }
}

/* Of an enum, one of `count` choices. */
#define PASS_CHOICE(transfer, field, count)                                                        \
    do {                                                                                           \
        if ((transfer)->writer != NULL) {                                                          \
            codec_put_choice((transfer)->writer, (uint32_t)(field), count);                        \
        } else {                                                                                   \
            (field) = (__typeof__(field))codec_get_choice((transfer)->reader, count);              \
        }                                                                                          \
    } while (0)

static inline void pass_text(const struct transfer *transfer, struct text *text)
{
    if (transfer->writer != NULL) {
        codec_put_text(transfer->writer, *text);
    } else {
        *text = codec_get_text(transfer->reader);
    }
}

static inline void pass_aligned(const struct transfer *transfer, struct text *text)
{
    if (transfer->writer != NULL) {
        codec_put_aligned(transfer->writer, *text);
    } else {
        *text = codec_get_aligned(transfer->reader);
    }
}

static inline void pass_u32s(const struct transfer *transfer, const uint32_t **values,
                             uint32_t *count)
{
    if (transfer->writer != NULL) {
        codec_put_u32s(transfer->writer, *values, *count);
    } else {
        *values = codec_get_u32s(transfer->reader, count);
    }
}

static inline void pass_u64s(const struct transfer *transfer, const uint64_t **values,
                             uint32_t *count)
{
    if (transfer->writer != NULL) {
        codec_put_u64s(transfer->writer, *values, *count);
    } else {
        *values = codec_get_u64s(transfer->reader, count);
    }
}

static inline void put_count(struct codec_writer *writer, uint32_t count, uint32_t limit)
{
    if (count > limit) writer->out->failed = true;
    codec_put_u32(writer, count);
}

/* The count of the array *field, which is allocated when it is read; the items follow, and a writer
 * changes none of them. */
#define PASS_ARRAY(transfer, field, type, encoded_bytes, limit, count)                             \
    ((type *)(uintptr_t)((transfer)->writer == NULL                                                \
                             ? (*(field) = CODEC_ARRAY((transfer)->reader, type, encoded_bytes,    \
                                                       limit, count))                              \
                             : (put_count((transfer)->writer, *(count), limit), *(field))))

#endif
