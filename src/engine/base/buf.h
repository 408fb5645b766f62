/* SPDX-License-Identifier: Apache-2.0 */
/* buf.h - bytes that grow, and a reader that never runs past the end.
 *
 * Both are sticky: append or read freely and check `failed` once. A zeroed buf is valid and empty.
 * Numbers are stored little-endian.
 *
 * Memory: a buf owns its bytes; buf_done frees them. A reader borrows. Threads: one owner.
 */
#ifndef ENGINE_BASE_BUF_H
#define ENGINE_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"

struct buf {
    unsigned char *bytes;
    size_t size;
    size_t capacity;
    size_t limit;          /* 0: none but the budget's. */
    struct budget *budget; /* Borrowed; may be NULL. */
    bool failed;
};

void buf_done(struct buf *buf);
/* The bytes, without limit and budget; the buf is empty then. */
struct buf buf_take(struct buf *buf);
/* Empties; keeps the memory and forgets a failure. */
void buf_reset(struct buf *buf);
/* Room for `size` more bytes at buf->bytes + buf->size, or false (and failed is set). */
MUST_USE bool buf_reserve(struct buf *buf, size_t size);
void buf_put(struct buf *buf, const void *bytes, size_t size);
void buf_put_text(struct buf *buf, struct text text);
void buf_put_string(struct buf *buf, const char *string);
void buf_put_u8(struct buf *buf, uint8_t value);
void buf_put_u32(struct buf *buf, uint32_t value);
void buf_put_u64(struct buf *buf, uint64_t value);
void buf_format(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);

struct buf_reader {
    const unsigned char *bytes;
    size_t size;
    size_t position;
    bool failed;
};

uint8_t buf_get_u8(struct buf_reader *reader);
uint32_t buf_get_u32(struct buf_reader *reader);
uint64_t buf_get_u64(struct buf_reader *reader);
/* Borrowed from the reader's bytes; NULL (and failed) when fewer are left. */
const void *buf_get(struct buf_reader *reader, size_t size);
static inline size_t buf_left(const struct buf_reader *reader)
{
    return reader->size - reader->position;
}

#endif
