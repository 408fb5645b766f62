/* SPDX-License-Identifier: Apache-2.0 */
/* number.h - reading and printing numbers, exactly.
 *
 * Readers take the whole text or nothing: no white space, no locale, no silent loss. On failure
 * they return false and leave *out alone. Printers write at most NUMBER_TEXT_SIZE bytes, do not
 * terminate them and return how many they wrote.
 *
 * The readers start inline with eight digits at a time, as almost every field of a file is short;
 * whatever is longer or unusual goes to the *_slow functions, which decide alone what is valid.
 */
#ifndef ENGINE_BASE_NUMBER_H
#define ENGINE_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/int128.h"
#include "engine/base/text.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "digits are read in words, lowest first");

enum {
    NUMBER_TEXT_SIZE = 32,
    DECIMAL_PRECISION_MAX = 18,
    NUMBER_WORD_BYTES = 8,
    NUMBER_POWERS = 20 /* 10^0 to 10^19: those that fit 64 bits. */
};

extern const uint64_t number_powers[NUMBER_POWERS];
extern const double
    number_double_powers[23]; /* 10^0 to 10^22: those that a double holds exactly. */

bool int_parse_slow(struct text text, int64_t *out);
bool decimal_parse_slow(struct text text, uint8_t precision, uint8_t scale, int64_t *out);
bool double_parse_slow(struct text text, double *out);

/* 1 to 8 bytes as a word, the first byte lowest, zeros above. Reads nothing else. */
ALWAYS_INLINE uint64_t number_load(const char *bytes, uint32_t size)
{
    if (size >= 4) {
        uint32_t first, last;
        memcpy(&first, bytes, sizeof first);
        memcpy(&last, bytes + size - 4, sizeof last);
        return first | (uint64_t)last << (8 * (size - 4));
    }
    uint64_t first = (unsigned char)bytes[0];
    uint64_t middle = (unsigned char)bytes[size / 2];
    uint64_t last = (unsigned char)bytes[size - 1];
    return first | middle << (8 * (size / 2)) | last << (8 * (size - 1));
}

/* The value of the `count` (1 to 8) lowest bytes of the word, if all of them are digits. */
ALWAYS_INLINE bool number_word_digits(uint64_t word, uint32_t count, uint64_t *out)
{
    const uint64_t zeros = 0x3030303030303030u;
    word = word << (8 * (NUMBER_WORD_BYTES - count)) | (zeros >> 8) >> (8 * (count - 1));
    /* A digit has 3 in its upper half, and still has it after 6 is added. */
    uint64_t halves =
        (word & 0xf0f0f0f0f0f0f0f0u) | ((word + 0x0606060606060606u) & 0xf0f0f0f0f0f0f0f0u) >> 4;
    if (halves != 0x3333333333333333u) return false;
    word -= zeros;
    word = word * 10 + (word >> 8); /* Pairs, in every other byte. */
    uint64_t outer = (word & 0x000000ff000000ffu) * 0x000f424000000064u;
    uint64_t inner = ((word >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u;
    *out = (outer + inner) >> 32;
    return true;
}

/* 1 to 8 bytes of digits with at most one point among them; at least one digit. */
ALWAYS_INLINE bool number_read_short(const char *bytes, uint32_t size, uint64_t *out_value,
                                     uint32_t *out_decimals)
{
    uint64_t word = number_load(bytes, size);
    uint64_t difference = word ^ 0x2e2e2e2e2e2e2e2eu;
    uint64_t points = (difference - 0x0101010101010101u) & ~difference & 0x8080808080808080u;
    uint32_t decimals = 0;
    if (points != 0) {
        uint32_t point = (uint32_t)__builtin_ctzll(points) & ~7u; /* In bits. */
        uint64_t below = ((uint64_t)1 << point) - 1;
        word = (word & below) | ((word >> 8) & ~below);
        size--;
        if (size == 0) return false;
        decimals = size - point / 8;
    }
    *out_decimals = decimals;
    return number_word_digits(word, size, out_value);
}

/* [+-]digits[.0*], within 64 bits. */
ALWAYS_INLINE bool int_parse(struct text text, int64_t *out)
{
    if (UNLIKELY(text.size == 0)) return false;
    const char *bytes = text.bytes;
    uint32_t size = text.size;
    bool negative = bytes[0] == '-';
    bytes += negative;
    size -= negative;
    /* Spreadsheets write 17272 as 17272.0 as soon as one row of the column is empty. */
    if (size > 2 && bytes[size - 1] == '0' && bytes[size - 2] == '.') size -= 2;

    uint64_t value, tail;
    if (size - 1u < NUMBER_WORD_BYTES) {
        if (UNLIKELY(!number_word_digits(number_load(bytes, size), size, &value))) {
            return int_parse_slow(text, out);
        }
    } else if (size - 1u < 2u * NUMBER_WORD_BYTES) {
        uint32_t tail_size = size - NUMBER_WORD_BYTES;
        if (!number_word_digits(number_load(bytes, NUMBER_WORD_BYTES), NUMBER_WORD_BYTES, &value) ||
            !number_word_digits(number_load(bytes + NUMBER_WORD_BYTES, tail_size), tail_size,
                                &tail)) {
            return int_parse_slow(text, out);
        }
        value = value * number_powers[tail_size] + tail;
    } else {
        return int_parse_slow(text, out);
    }
    *out = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

/* DECIMAL(precision <= 18, scale <= precision) as an integer of 10^-scale: [+-]digits[.digits] with
 * at least one digit. Surplus decimals are rounded, half away from zero; the result must be less
 * than 10^precision in magnitude. */
ALWAYS_INLINE bool decimal_parse(struct text text, uint8_t precision, uint8_t scale, int64_t *out)
{
    if (UNLIKELY(text.size == 0)) return false;
    bool negative = text.bytes[0] == '-';
    uint32_t size = text.size - negative;
    uint64_t value;
    uint32_t decimals;
    if (size - 1u < NUMBER_WORD_BYTES &&
        number_read_short(text.bytes + negative, size, &value, &decimals) && decimals <= scale) {
        uint32_t missing = scale - decimals;
        if (UNLIKELY(value >= number_powers[precision - missing])) return false;
        value *= number_powers[missing];
        *out = negative ? -(int64_t)value : (int64_t)value;
        return true;
    }
    return decimal_parse_slow(text, precision, scale, out);
}

/* [+-]digits[.digits][e[+-]digits] with at least one digit before the exponent, rounded to nearest
 * even. What is too large for a double is refused, what is too small is 0.0; so is -0. */
ALWAYS_INLINE bool double_parse(struct text text, double *out)
{
    if (UNLIKELY(text.size == 0)) return false;
    bool negative = text.bytes[0] == '-';
    uint32_t size = text.size - negative;
    uint64_t value;
    uint32_t decimals;
    if (size - 1u < NUMBER_WORD_BYTES &&
        number_read_short(text.bytes + negative, size, &value, &decimals)) {
        /* Both operands are exact, so the quotient is rounded once. */
        int64_t signed_value = negative ? -(int64_t)value : (int64_t)value;
        *out = (double)signed_value / number_double_powers[decimals];
        return true;
    }
    return double_parse_slow(text, out);
}

size_t int_print(char *out, int64_t value);
/* With exactly `scale` (at most 19) decimals, and no point when there are none. */
size_t decimal_print(char *out, int64_t value, uint8_t scale);
/* The shortest text that reads back, in the form of Python's repr: 3.0, 1e-05, 1e+16, nan, -inf. */
size_t double_print(char *out, double value);

/* sum / (count * 10^scale), rounded once to nearest even; the count must not be 0, the scale at
 * most 19. */
double decimal_ratio(int128 sum, uint64_t count, uint8_t scale);
/* value / 10^scale, rounded once; the scale at most 19. */
double decimal_to_double(int64_t value, uint8_t scale);

#endif
