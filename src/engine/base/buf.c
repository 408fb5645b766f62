/* SPDX-License-Identifier: Apache-2.0 */
/* buf.c - appending doubles the capacity; reading checks what is left before every step. */
#include "engine/base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_CAPACITY = 256 };

void buf_done(struct buf *buf)
{
    memory_free(buf->budget, buf->bytes, buf->capacity);
    *buf = (struct buf){.limit = buf->limit, .budget = buf->budget};
}

struct buf buf_take(struct buf *buf)
{
    struct buf taken = {.bytes = buf->bytes, .size = buf->size, .capacity = buf->capacity};
    memory_leave(buf->budget, buf->capacity);
    *buf = (struct buf){.limit = buf->limit, .budget = buf->budget};
    return taken;
}

void buf_reset(struct buf *buf)
{
    buf->size = 0;
    buf->failed = false;
}

bool buf_reserve(struct buf *buf, size_t size)
{
    if (buf->failed) return false;
    size_t needed;
    if (__builtin_add_overflow(buf->size, size, &needed) ||
        (buf->limit != 0 && needed > buf->limit)) {
        buf->failed = true;
        return false;
    }
    if (needed <= buf->capacity) return true;
    size_t grown = buf->capacity < FIRST_CAPACITY ? FIRST_CAPACITY : buf->capacity * 2;
    if (grown < needed) grown = needed;
    if (buf->limit != 0 && grown > buf->limit) grown = buf->limit;
    unsigned char *bytes = memory_resize(buf->budget, buf->bytes, buf->capacity, grown);
    if (bytes == NULL) {
        buf->failed = true;
        return false;
    }
    buf->bytes = bytes;
    buf->capacity = grown;
    return true;
}

void buf_put(struct buf *buf, const void *bytes, size_t size)
{
    if (size == 0 || !buf_reserve(buf, size)) return;
    memcpy(buf->bytes + buf->size, bytes, size);
    buf->size += size;
}

void buf_put_text(struct buf *buf, struct text text)
{
    buf_put(buf, text.bytes, text.size);
}

void buf_put_string(struct buf *buf, const char *string)
{
    buf_put(buf, string, strlen(string));
}

void buf_put_u8(struct buf *buf, uint8_t value)
{
    buf_put(buf, &value, 1);
}

static void put_little_endian(struct buf *buf, uint64_t value, size_t size)
{
    unsigned char bytes[8];
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (unsigned char)(value >> (8 * i));
    }
    buf_put(buf, bytes, size);
}

void buf_put_u32(struct buf *buf, uint32_t value)
{
    put_little_endian(buf, value, 4);
}

void buf_put_u64(struct buf *buf, uint64_t value)
{
    put_little_endian(buf, value, 8);
}

void buf_format(struct buf *buf, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    va_list again;
    va_copy(again, arguments);
    int needed = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (needed < 0) {
        buf->failed = true;
    } else if (buf_reserve(buf, (size_t)needed + 1)) {
        (void)vsnprintf((char *)buf->bytes + buf->size, (size_t)needed + 1, format,
                        again); /* The size was measured above. */
        buf->size += (size_t)needed;
    }
    va_end(again);
}

const void *buf_get(struct buf_reader *reader, size_t size)
{
    if (reader->failed || size > buf_left(reader)) {
        reader->failed = true;
        return NULL;
    }
    const void *bytes = reader->bytes + reader->position;
    reader->position += size;
    return bytes;
}

static uint64_t get_little_endian(struct buf_reader *reader, size_t size)
{
    const unsigned char *bytes = buf_get(reader, size);
    if (bytes == NULL) return 0;
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) {
        value |= (uint64_t)bytes[i] << (8 * i);
    }
    return value;
}

uint8_t buf_get_u8(struct buf_reader *reader)
{
    return (uint8_t)get_little_endian(reader, 1);
}

uint32_t buf_get_u32(struct buf_reader *reader)
{
    return (uint32_t)get_little_endian(reader, 4);
}

uint64_t buf_get_u64(struct buf_reader *reader)
{
    return get_little_endian(reader, 8);
}
