/* SPDX-License-Identifier: Apache-2.0 */
/* codec.h - how fields are written and read: what messages, manifests and chunks share.
 *
 *     number         little-endian, 4 or 8 bytes
 *     truth, choice  a byte: 0 or 1; less than the number of choices
 *     text           u32 size, bytes
 *     aligned text   u32 size, zeros up to a multiple of 8 from the first byte of all, bytes
 *     array          u32 count, items
 *     seal           u64 checksum of all before it, at the end
 *
 * Nothing can be written in two ways, so what was read and is written again is the same bytes. For
 * batch codecs and cluster/wire/; other rooms use the modules that are made of it.
 *
 * Writer and reader are sticky: use them freely and check once, the buf's `failed` or codec_finish.
 * After a failure numbers are 0, texts and arrays are empty.
 *
 * Memory: texts are borrowed from the bytes that are read, arrays live in the arena.
 */
#ifndef ENGINE_DATA_CODEC_H
#define ENGINE_DATA_CODEC_H

#include <stdalign.h>

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

enum { CODEC_ALIGNMENT = 8 };

/* From there to the next multiple of it. */
static inline size_t codec_padding(size_t position)
{
    return (CODEC_ALIGNMENT - position % CODEC_ALIGNMENT) % CODEC_ALIGNMENT;
}

struct codec_writer {
    struct buf *out;
    size_t start; /* Where in `out` the first byte of all is. */
};

struct codec_writer codec_begin(struct buf *out);
void codec_put_u8(struct codec_writer *writer, uint8_t value);
void codec_put_u32(struct codec_writer *writer, uint32_t value);
void codec_put_u64(struct codec_writer *writer, uint64_t value);
void codec_put_bool(struct codec_writer *writer, bool value);
/* One of `count` choices. */
void codec_put_choice(struct codec_writer *writer, uint32_t value, uint32_t count);
void codec_put_text(struct codec_writer *writer, struct text text);
void codec_put_aligned(struct codec_writer *writer, struct text text);
/* Zeros up to a multiple of CODEC_ALIGNMENT from the first byte of all. */
void codec_put_padding(struct codec_writer *writer);
void codec_put_u32s(struct codec_writer *writer, const uint32_t *values, uint32_t count);
void codec_put_u64s(struct codec_writer *writer, const uint64_t *values, uint32_t count);
/* Fails also when all together is more than a text can hold. */
void codec_seal(struct codec_writer *writer);

struct codec_reader {
    struct buf_reader in;
    struct arena *arena;
    const char *problem; /* What was found first, a literal; NULL: too few bytes. */
    bool memory_failed;
};

struct codec_reader codec_open(struct text bytes, struct arena *arena);
/* The same for sealed bytes: a checksum that differs is a failure. */
struct codec_reader codec_open_sealed(struct text bytes, struct arena *arena);
/* `problem` completes "... is damaged: ". */
void codec_fail(struct codec_reader *reader, const char *problem);
uint8_t codec_get_u8(struct codec_reader *reader);
uint32_t codec_get_u32(struct codec_reader *reader);
uint64_t codec_get_u64(struct codec_reader *reader);
bool codec_get_bool(struct codec_reader *reader);
uint32_t codec_get_choice(struct codec_reader *reader, uint32_t count);
struct text codec_get_text(struct codec_reader *reader);
struct text codec_get_aligned(struct codec_reader *reader);
const uint32_t *codec_get_u32s(struct codec_reader *reader, uint32_t *out_count);
const uint64_t *codec_get_u64s(struct codec_reader *reader, uint32_t *out_count);

struct codec_shape {
    size_t encoded_bytes; /* An item takes no fewer: so many more can't be in what is left. */
    uint32_t limit;
    size_t item_bytes; /* In memory. */
    size_t align;
};

/* Reads a count and allocates; the items follow. NULL exactly if the count given is 0. */
void *codec_get_array(struct codec_reader *reader, struct codec_shape shape, uint32_t *out_count);
#define CODEC_ARRAY(reader, type, encoded_bytes, limit, out_count)                                 \
    ((type *)codec_get_array(                                                                      \
        (reader), (struct codec_shape){(encoded_bytes), (limit), sizeof(type), alignof(type)},     \
        (out_count)))

/* Whether all went well and nothing is left; `what` was read: "a message". */
MUST_USE status codec_finish(const struct codec_reader *reader, const char *what,
                             struct error *err);

#endif
