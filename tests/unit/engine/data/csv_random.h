/* SPDX-License-Identifier: Apache-2.0 */
/* csv_random.h - CSV made to be difficult: every short string, hostile mixes of bytes, and tables
 * with some records that are none. For unit tests.
 */
#ifndef UNIT_DATA_CSV_RANDOM_H
#define UNIT_DATA_CSV_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/random.h"

static const char alphabet[] = {'a', ',', '"', '\n', '\r'};

enum { ALPHABET_SIZE = sizeof alphabet };

/* The next string of this length in alphabetical order; false after the last. */
static inline bool string_next(unsigned *digits, char *string, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        digits[i] = (digits[i] + 1) % ALPHABET_SIZE;
        string[i] = alphabet[digits[i]];
        if (digits[i] != 0) return true;
    }
    return false;
}

/* Bytes of one character: each mix makes other mistakes likely. */
static inline char random_byte(struct random *random, unsigned mix)
{
    static const char *const mixes[] = {
        "aaaaaaaaaaaaaaa,,\"\n\r", /* Some of everything. */
        "\"\"\"\"\"\"a,\n\r",      /* Mostly quotes. */
        ",,,,,\n\n\r",             /* Mostly separators. */
        "aaaaaaaaaaaaaaa,,,\n\r",  /* No quotes at all. */
        "\n\n\n\r\ra",
    };
    if (mix >= sizeof mixes / sizeof mixes[0]) return (char)random_u64(random);
    return mixes[mix][random_below(random, (uint32_t)strlen(mixes[mix]))];
}

enum { MIX_COUNT = 6 };

static inline void fill_random(struct random *random, char *bytes, size_t size)
{
    unsigned mix = random_below(random, MIX_COUNT);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = random_byte(random, mix);
    }
}

/* Well-formed rows of `columns` fields, now and then one with another number, at most `size`. */
static inline size_t fill_records(struct random *random, char *bytes, size_t size, uint32_t columns)
{
    static const char *const fields[] = {
        "",     "1",      "2.5",    "1260759144", "\"a\"", "\"b,\"\"c\n\"",
        "\"\"", "x\"y\"", "\"u\"v", "\"\"\"\"",   "\r"};
    /* A third of the files have no quotes, a third is regular, a third has it all. */
    static const uint32_t kinds[] = {4, 7, 11};
    uint32_t kind = kinds[random_below(random, 3)];
    bool broken = random_below(random, 2) == 0;
    size_t used = 0;
    while (size - used > (size_t)(columns + 2) * 20) {
        uint32_t count = columns;
        if (broken && random_below(random, 50) == 0) count = 1 + random_below(random, columns + 2);
        for (uint32_t i = 0; i < count; i++) {
            const char *field = fields[random_below(random, kind)];
            memcpy(bytes + used, field, strlen(field));
            used += strlen(field);
            bytes[used++] = i + 1 < count ? ',' : '\n';
        }
    }
    if (used > 0 && random_below(random, 2) == 0) used--; /* The last one without its LF. */
    return used;
}

#endif
