/* SPDX-License-Identifier: Apache-2.0 */
/* gen_put.h - appenders: each writes at a cursor and returns the cursor behind what it wrote.
 *
 * No bounds are checked here: the writer promises room for a whole record (gen_writer.h), and the
 * generator, not input, decides how long a record gets. Plain copies and integer digits, no printf:
 * this is what makes the generator as fast as the disk.
 */
#ifndef GEN_GEN_PUT_H
#define GEN_GEN_PUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

extern const char gen_put_decimal_pairs[200]; /* "000102...99" */
extern const char gen_put_hex_pairs[512];     /* "000102...ff" */

ALWAYS_INLINE char *gen_put_bytes(char *at, const char *bytes, size_t size)
{
    memcpy(at, bytes, size);
    return at + size;
}

ALWAYS_INLINE char *gen_put_text(char *at, struct text text)
{
    return gen_put_bytes(at, text.bytes, text.size);
}

#define GEN_PUT(at, literal) gen_put_bytes((at), (literal), sizeof(literal) - 1)

ALWAYS_INLINE char *gen_put_char(char *at, char character)
{
    *at = character;
    return at + 1;
}

/* Exactly two digits; value < 100. */
ALWAYS_INLINE char *gen_put_pair(char *at, uint32_t value)
{
    memcpy(at, gen_put_decimal_pairs + (size_t)value * 2, 2);
    return at + 2;
}

ALWAYS_INLINE char *gen_put_u64(char *at, uint64_t value)
{
    char digits[20];
    char *first = digits + sizeof digits;
    while (value >= 100) {
        first -= 2;
        memcpy(first, gen_put_decimal_pairs + (value % 100) * 2, 2);
        value /= 100;
    }
    if (value >= 10) {
        first -= 2;
        memcpy(first, gen_put_decimal_pairs + value * 2, 2);
    } else {
        *--first = (char)('0' + value);
    }
    return gen_put_bytes(at, first, (size_t)(digits + sizeof digits - first));
}

ALWAYS_INLINE char *gen_put_i64(char *at, int64_t value)
{
    if (value < 0) {
        at = gen_put_char(at, '-');
        return gen_put_u64(at, 0 - (uint64_t)value);
    }
    return gen_put_u64(at, (uint64_t)value);
}

/* `width` digits with leading zeros, at most 9. */
ALWAYS_INLINE char *gen_put_padded(char *at, uint32_t value, uint32_t width)
{
    for (uint32_t place = width; place > 0; place--) {
        at[place - 1] = (char)('0' + value % 10);
        value /= 10;
    }
    return at + width;
}

/* 63500 is "63.5", 8000 is "8.0", 53975 is "53.975". */
ALWAYS_INLINE char *gen_put_thousandths(char *at, uint64_t value)
{
    uint32_t fraction = (uint32_t)(value % 1000);
    at = gen_put_u64(at, value / 1000);
    at = gen_put_char(at, '.');
    at = gen_put_char(at, (char)('0' + fraction / 100));
    fraction %= 100;
    if (fraction == 0) return at;
    if (fraction % 10 == 0) return gen_put_char(at, (char)('0' + fraction / 10));
    return gen_put_pair(at, fraction);
}

struct gen_date {
    uint32_t year;
    uint32_t month;
    uint32_t day;
};

/* YYYY-MM-DD */
ALWAYS_INLINE char *gen_put_date(char *at, struct gen_date date)
{
    at = gen_put_pair(at, date.year / 100);
    at = gen_put_pair(at, date.year % 100);
    at = gen_put_char(at, '-');
    at = gen_put_pair(at, date.month);
    at = gen_put_char(at, '-');
    return gen_put_pair(at, date.day);
}

/* HH:MM:SS */
ALWAYS_INLINE char *gen_put_time(char *at, uint32_t second_of_day)
{
    at = gen_put_pair(at, second_of_day / 3600);
    at = gen_put_char(at, ':');
    at = gen_put_pair(at, second_of_day / 60 % 60);
    at = gen_put_char(at, ':');
    return gen_put_pair(at, second_of_day % 60);
}

/* `width` characters of 0-9a-z, most significant first. */
ALWAYS_INLINE char *gen_put_base36(char *at, uint64_t value, uint32_t width)
{
    for (uint32_t place = width; place > 0; place--) {
        at[place - 1] = "0123456789abcdefghijklmnopqrstuvwxyz"[value % 36];
        value /= 36;
    }
    return at + width;
}

/* The low `bytes` bytes as two hexadecimal digits each, most significant first. */
ALWAYS_INLINE char *gen_put_hex(char *at, uint64_t value, uint32_t bytes)
{
    for (uint32_t place = bytes; place > 0; place--) {
        memcpy(at + (size_t)(place - 1) * 2, gen_put_hex_pairs + (value & 255) * 2, 2);
        value >>= 8;
    }
    return at + (size_t)bytes * 2;
}

enum { GEN_PUT_UUID_BYTES = 36 };

/* A version 4 UUID of 122 of the bits. */
char *gen_put_uuid(char *at, uint64_t high, uint64_t low);

/* One CSV field: quoted only when it must be, with quotes doubled. */
char *gen_put_csv(char *at, const char *bytes, size_t size);

/* A string as Python's repr writes it: double quotes around an apostrophe, escapes for what does
 * not print. `bytes` is UTF-8. */
char *gen_put_python(char *at, const char *bytes, size_t size);

#endif
