/* SPDX-License-Identifier: Apache-2.0 */
/* number_model.h - the rules for reading numbers once more, written to be obvious and slow.
 *
 * Shared by the unit test and the fuzzer of engine/base/number.h.
 */
#ifndef UNIT_NUMBER_MODEL_H
#define UNIT_NUMBER_MODEL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/int128.h"
#include "engine/base/text.h"

enum { MODEL_TEXT_MAX = 4000 };

struct model_number {
    bool negative;
    const char *whole;
    const char *decimals;
    size_t whole_count;
    size_t decimal_count;
    bool point;
    bool has_exponent;
};

static inline size_t model_count_digits(struct text text, size_t at)
{
    size_t count = 0;
    while (at + count < text.size && text.bytes[at + count] >= '0' &&
           text.bytes[at + count] <= '9') {
        count++;
    }
    return count;
}

/* [+-] digits* [. digits*] [e [+-] digits+], one mantissa digit at least; at most MODEL_TEXT_MAX
 * bytes. */
static inline bool model_split(struct text text, struct model_number *out)
{
    size_t at = 0;
    *out = (struct model_number){0};
    if (at < text.size && (text.bytes[at] == '+' || text.bytes[at] == '-')) {
        out->negative = text.bytes[at++] == '-';
    }
    out->whole = text.bytes + at;
    out->whole_count = model_count_digits(text, at);
    at += out->whole_count;
    if (at < text.size && text.bytes[at] == '.') {
        out->point = true;
        at++;
        out->decimals = text.bytes + at;
        out->decimal_count = model_count_digits(text, at);
        at += out->decimal_count;
    }
    if (out->whole_count + out->decimal_count == 0) return false;
    if (at < text.size && (text.bytes[at] == 'e' || text.bytes[at] == 'E')) {
        out->has_exponent = true;
        at++;
        if (at < text.size && (text.bytes[at] == '+' || text.bytes[at] == '-')) at++;
        size_t digits = model_count_digits(text, at);
        if (digits == 0) return false;
        at += digits;
    }
    return at == text.size;
}

/* Multiplies by ten and adds, but stays at a value that is too large for anything. */
static inline uint128 model_append(uint128 value, char digit)
{
    const uint128 huge = (uint128)1 << 100;
    if (value >= huge) return huge;
    uint32_t ones = (unsigned char)digit - (uint32_t)'0';
    return value * 10 + ones;
}

static inline bool model_int(struct text text, int64_t *out)
{
    struct model_number number;
    if (!model_split(text, &number) || number.has_exponent || number.whole_count == 0) return false;
    uint128 value = 0;
    for (size_t i = 0; i < number.whole_count; i++) {
        value = model_append(value, number.whole[i]);
    }
    for (size_t i = 0; i < number.decimal_count; i++) {
        if (number.decimals[i] != '0') return false;
    }
    if (value > (uint128)INT64_MAX + number.negative) return false;
    *out = number.negative ? (int64_t) - (int128)value : (int64_t)value;
    return true;
}

static inline bool model_decimal(struct text text, uint8_t precision, uint8_t scale, int64_t *out)
{
    struct model_number number;
    if (!model_split(text, &number) || number.has_exponent) return false;
    uint128 value = 0;
    uint128 limit = 1;
    for (uint8_t i = 0; i < precision; i++) {
        limit *= 10;
    }
    for (size_t i = 0; i < number.whole_count; i++) {
        value = model_append(value, number.whole[i]);
    }
    for (size_t i = 0; i < scale; i++) {
        value = model_append(value, i < number.decimal_count ? number.decimals[i] : '0');
    }
    if (number.decimal_count > scale && number.decimals[scale] >= '5') value++;
    if (value >= limit) return false;
    *out = number.negative ? -(int64_t)value : (int64_t)value;
    return true;
}

static inline bool model_double(struct text text, double *out)
{
    struct model_number number;
    char copy[MODEL_TEXT_MAX + 1];
    if (!model_split(text, &number)) return false;
    memcpy(copy, text.bytes, text.size);
    copy[text.size] = '\0';
    double value = strtod(copy, NULL);
    if (isinf(value)) return false;
    *out = value == 0.0 ? 0.0 : value;
    return true;
}

#endif
