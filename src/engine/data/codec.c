/* SPDX-License-Identifier: Apache-2.0 */
/* codec.c - every step checks first what is left, and reads nothing more after a failure. */
#include "engine/data/codec.h"

#include "engine/base/assert.h"
#include "engine/base/hash.h"

enum { SEAL_BYTES = 8 };

struct codec_writer codec_begin(struct buf *out)
{
    return (struct codec_writer){.out = out, .start = out->size};
}

void codec_put_u8(struct codec_writer *writer, uint8_t value)
{
    buf_put_u8(writer->out, value);
}

void codec_put_u32(struct codec_writer *writer, uint32_t value)
{
    buf_put_u32(writer->out, value);
}

void codec_put_u64(struct codec_writer *writer, uint64_t value)
{
    buf_put_u64(writer->out, value);
}

void codec_put_bool(struct codec_writer *writer, bool value)
{
    buf_put_u8(writer->out, value ? 1 : 0);
}

void codec_put_choice(struct codec_writer *writer, uint32_t value, uint32_t count)
{
    ASSERT(count <= UINT8_MAX);
    ASSERT(value < count);
    buf_put_u8(writer->out, (uint8_t)value);
}

void codec_put_text(struct codec_writer *writer, struct text text)
{
    buf_put_u32(writer->out, text.size);
    buf_put_text(writer->out, text);
}

void codec_put_padding(struct codec_writer *writer)
{
    static const unsigned char zeros[CODEC_ALIGNMENT] = {0};
    buf_put(writer->out, zeros, codec_padding(writer->out->size - writer->start));
}

void codec_put_aligned(struct codec_writer *writer, struct text text)
{
    buf_put_u32(writer->out, text.size);
    codec_put_padding(writer);
    buf_put_text(writer->out, text);
}

void codec_put_u32s(struct codec_writer *writer, const uint32_t *values, uint32_t count)
{
    buf_put_u32(writer->out, count);
    for (uint32_t i = 0; i < count; i++) {
        buf_put_u32(writer->out, values[i]);
    }
}

void codec_put_u64s(struct codec_writer *writer, const uint64_t *values, uint32_t count)
{
    buf_put_u32(writer->out, count);
    for (uint32_t i = 0; i < count; i++) {
        buf_put_u64(writer->out, values[i]);
    }
}

void codec_seal(struct codec_writer *writer)
{
    struct buf *out = writer->out;
    if (out->failed) return;
    size_t size = out->size - writer->start;
    if (size > UINT32_MAX - SEAL_BYTES) {
        out->failed = true;
        return;
    }
    buf_put_u64(out, hash_bytes(out->bytes + writer->start, size));
}

struct codec_reader codec_open(struct text bytes, struct arena *arena)
{
    return (struct codec_reader){
        .in = {.bytes = (const unsigned char *)bytes.bytes, .size = bytes.size},
        .arena = arena,
    };
}

struct codec_reader codec_open_sealed(struct text bytes, struct arena *arena)
{
    struct codec_reader reader = codec_open(bytes, arena);
    if (bytes.size < SEAL_BYTES) {
        reader.in.failed = true;
        return reader;
    }
    size_t size = bytes.size - SEAL_BYTES;
    struct buf_reader seal = {.bytes = reader.in.bytes + size, .size = SEAL_BYTES};
    reader.in.size = size;
    if (buf_get_u64(&seal) != hash_bytes(bytes.bytes, size)) {
        codec_fail(&reader, "its checksum differs");
    }
    return reader;
}

void codec_fail(struct codec_reader *reader, const char *problem)
{
    if (!reader->in.failed) reader->problem = problem;
    reader->in.failed = true;
}

uint8_t codec_get_u8(struct codec_reader *reader)
{
    return buf_get_u8(&reader->in);
}

uint32_t codec_get_u32(struct codec_reader *reader)
{
    return buf_get_u32(&reader->in);
}

uint64_t codec_get_u64(struct codec_reader *reader)
{
    return buf_get_u64(&reader->in);
}

bool codec_get_bool(struct codec_reader *reader)
{
    uint8_t value = buf_get_u8(&reader->in);
    if (value > 1) codec_fail(reader, "a truth value is neither true nor false");
    return value == 1;
}

uint32_t codec_get_choice(struct codec_reader *reader, uint32_t count)
{
    uint8_t value = buf_get_u8(&reader->in);
    if (value < count) return value;
    codec_fail(reader, "a choice is none of those there are");
    return 0;
}

static struct text get_bytes(struct codec_reader *reader, uint32_t size)
{
    const char *bytes = buf_get(&reader->in, size);
    if (bytes == NULL) return (struct text){0};
    return (struct text){bytes, size};
}

struct text codec_get_text(struct codec_reader *reader)
{
    return get_bytes(reader, buf_get_u32(&reader->in));
}

struct text codec_get_aligned(struct codec_reader *reader)
{
    uint32_t size = buf_get_u32(&reader->in);
    size_t padding_bytes = codec_padding(reader->in.position);
    const unsigned char *padding = buf_get(&reader->in, padding_bytes);
    for (size_t i = 0; padding != NULL && i < padding_bytes; i++) {
        if (padding[i] != 0) codec_fail(reader, "padding is not zero");
    }
    return get_bytes(reader, size);
}

void *codec_get_array(struct codec_reader *reader, struct codec_shape shape, uint32_t *out_count)
{
    uint32_t count = buf_get_u32(&reader->in);
    *out_count = 0;
    if (count > shape.limit || count > buf_left(&reader->in) / shape.encoded_bytes) {
        codec_fail(reader, "more items are announced than there can be");
        return NULL;
    }
    if (count == 0) return NULL;
    void *items = arena_calloc(reader->arena, count, shape.item_bytes, shape.align);
    if (items == NULL) {
        reader->memory_failed = true;
        reader->in.failed = true;
        return NULL;
    }
    *out_count = count;
    return items;
}

const uint32_t *codec_get_u32s(struct codec_reader *reader, uint32_t *out_count)
{
    uint32_t *values = CODEC_ARRAY(reader, uint32_t, 4, UINT32_MAX, out_count);
    for (uint32_t i = 0; i < *out_count; i++) {
        values[i] = buf_get_u32(&reader->in);
    }
    return values;
}

const uint64_t *codec_get_u64s(struct codec_reader *reader, uint32_t *out_count)
{
    uint64_t *values = CODEC_ARRAY(reader, uint64_t, 8, UINT32_MAX, out_count);
    for (uint32_t i = 0; i < *out_count; i++) {
        values[i] = buf_get_u64(&reader->in);
    }
    return values;
}

status codec_finish(const struct codec_reader *reader, const char *what, struct error *err)
{
    if (reader->memory_failed) return error_memory(err);
    const char *problem = reader->problem;
    if (!reader->in.failed) {
        if (buf_left(&reader->in) == 0) return STATUS_OK;
        problem = "something follows it";
    }
    return error_set(err, STATUS_CORRUPT, "%s is damaged: %s", what,
                     problem != NULL ? problem : "it is too short");
}
