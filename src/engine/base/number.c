/* SPDX-License-Identifier: Apache-2.0 */
/* number.c - numbers from text, text from numbers, and quotients rounded once.
 *
 * Doubles are read by the cheapest way that is exact: both operands exact in doubles (Clinger, "How
 * to Read Floating Point Numbers Accurately", PLDI 1990), else a quotient or product of integers
 * rounded once, else the C library, which gets the digits without a point so that no locale can
 * matter, and at most DIGITS_MAX of them so that any text fits.
 *
 * Doubles are printed in the fewest digits that read back (the problem of Steele and White, "How to
 * Print Floating-Point Numbers Accurately", PLDI 1990), by trying 15, 16, 17 digits rather than by
 * a table-driven algorithm such as Grisu or Ryu, since most values of tables have few digits: a
 * text of up to 15 digits survives the way through a double, so if any such text reads back, the 15
 * nearest digits without their final zeros are it.
 */
#include "engine/base/number.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/base/assert.h"

enum {
    /* A double, or the middle between two, has at most 768 significant digits. */
    DIGITS_MAX = 800,
    WORD_DIGITS = 19, /* As many digits as always fit 64 bits. */
    EXPONENT_LIMIT = 100000,
    MANTISSA_BITS = 53,
    EXPONENT_BIAS = 1023,
    SHORTEST_MAX = 17
};

#define MANTISSA_LIMIT ((uint64_t)1 << MANTISSA_BITS)

const uint64_t number_powers[NUMBER_POWERS] = {
    1u,
    10u,
    100u,
    1000u,
    10000u,
    100000u,
    1000000u,
    10000000u,
    100000000u,
    1000000000u,
    10000000000u,
    100000000000u,
    1000000000000u,
    10000000000000u,
    100000000000000u,
    1000000000000000u,
    10000000000000000u,
    100000000000000000u,
    1000000000000000000u,
    10000000000000000000u,
};

const double number_double_powers[23] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Cuts a sign off the text; true: it was a minus. */
static bool take_sign(struct text *text)
{
    if (text->size == 0 || (text->bytes[0] != '-' && text->bytes[0] != '+')) return false;
    bool negative = text->bytes[0] == '-';
    text->bytes++;
    text->size--;
    return negative;
}

bool int_parse_slow(struct text text, int64_t *out)
{
    bool negative = take_sign(&text);
    uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    uint64_t value = 0;
    uint32_t at = 0;
    for (; at < text.size && is_digit(text.bytes[at]); at++) {
        uint64_t digit = (uint64_t)(text.bytes[at] - '0');
        if (value > (limit - digit) / 10) return false;
        value = value * 10 + digit;
    }
    if (at == 0) return false;
    if (at < text.size) {
        if (text.bytes[at] != '.') return false;
        for (at++; at < text.size; at++) {
            if (text.bytes[at] != '0') return false;
        }
    }
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

bool decimal_parse_slow(struct text text, uint8_t precision, uint8_t scale, int64_t *out)
{
    ASSERT(precision <= DECIMAL_PRECISION_MAX);
    ASSERT(scale <= precision);
    bool negative = take_sign(&text);
    bool point = false;
    bool round_up = false;
    uint32_t digits = 0;
    uint32_t decimals = 0;
    uint64_t value = 0;
    for (uint32_t at = 0; at < text.size; at++) {
        char byte = text.bytes[at];
        if (byte == '.' && !point) {
            point = true;
            continue;
        }
        if (!is_digit(byte)) return false;
        digits++;
        if (point && decimals >= scale) {
            if (decimals == scale) round_up = byte >= '5';
            decimals = scale + 1u;
            continue;
        }
        decimals += point;
        value = value * 10 + (uint64_t)(byte - '0');
        if (value >= number_powers[DECIMAL_PRECISION_MAX]) return false;
    }
    if (digits == 0) return false;
    value += round_up;
    /* No overflow: value <= 10^18 - 1 + 1, and what is multiplied is below 10^(18 - missing). */
    uint32_t missing = decimals < scale ? scale - decimals : 0;
    if (value >= number_powers[precision - missing]) return false;
    value *= number_powers[missing];
    *out = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

/* 2^exponent, for what is neither subnormal nor infinite. */
static double power_of_two(int exponent)
{
    uint64_t bits = (uint64_t)(exponent + EXPONENT_BIAS) << (MANTISSA_BITS - 1);
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

static int leading_zeros(uint128 value)
{
    uint64_t high = (uint64_t)(value >> 64);
    return high != 0 ? __builtin_clzll(high) : 64 + __builtin_clzll((uint64_t)value);
}

/* value * 2^exponent to nearest even; `inexact`: a little more than that, below the last bit. The
 * result must be a normal double; an inexact value must have more than 54 bits. */
static double round_scaled(uint128 value, int exponent, bool inexact)
{
    if (value == 0) return 0.0;
    int surplus = 128 - leading_zeros(value) - MANTISSA_BITS;
    if (surplus > 0) {
        uint128 half = (uint128)1 << (surplus - 1);
        uint128 rest = value & (half * 2 - 1);
        value >>= surplus;
        exponent += surplus;
        if (rest > half || (rest == half && (inexact || (value & 1) != 0))) value++;
    }
    return (double)(uint64_t)value * power_of_two(exponent);
}

/* Digit by digit, in base two: for denominators of more than 64 bits, which are rare. */
static double divide_wide(uint128 numerator, uint128 denominator)
{
    enum { STEPS = MANTISSA_BITS + 3 };
    int numerator_shift = leading_zeros(numerator);
    int denominator_shift = leading_zeros(denominator);
    numerator <<= numerator_shift;
    denominator <<= denominator_shift;
    uint64_t quotient = 0;
    bool carry = false;
    for (int step = 0; step < STEPS; step++) {
        quotient <<= 1;
        if (carry || numerator >= denominator) {
            numerator -= denominator;
            quotient |= 1;
        }
        carry = numerator >> 127 != 0;
        numerator <<= 1;
    }
    bool inexact = carry || numerator != 0;
    return round_scaled(quotient, denominator_shift - numerator_shift - (STEPS - 1), inexact);
}

static double divide(uint128 numerator, uint128 denominator)
{
    ASSERT(denominator != 0);
    if (numerator == 0) return 0.0;
    if (numerator <= MANTISSA_LIMIT && denominator <= MANTISSA_LIMIT) {
        return (double)(uint64_t)numerator / (double)(uint64_t)denominator;
    }
    if (numerator >> 64 != 0 || denominator >> 64 != 0) {
        return divide_wide(numerator, denominator);
    }
    int shift = leading_zeros(numerator);
    numerator <<= shift;
    uint128 quotient = numerator / denominator;
    return round_scaled(quotient, -shift, quotient * denominator != numerator);
}

static double divide_signed(int128 numerator, uint128 denominator)
{
    if (numerator < 0) return -divide(0 - (uint128)numerator, denominator);
    return divide((uint128)numerator, denominator);
}

double decimal_ratio(int128 sum, uint64_t count, uint8_t scale)
{
    ASSERT(scale < NUMBER_POWERS);
    return divide_signed(sum, (uint128)count * number_powers[scale]);
}

double decimal_to_double(int64_t value, uint8_t scale)
{
    ASSERT(scale < NUMBER_POWERS);
    if (value >= -(int64_t)MANTISSA_LIMIT && value <= (int64_t)MANTISSA_LIMIT) {
        return (double)value / number_double_powers[scale];
    }
    return divide_signed(value, number_powers[scale]);
}

/* A positive number as text, taken apart: its significant digits without leading zeros stand at
 * [first, end), perhaps with a point among them; it is these digits, as an integer, * 10^exponent.
 */
struct mantissa {
    const char *first;
    const char *end;
    uint64_t value; /* Of the first WORD_DIGITS digits. */
    uint64_t digit_count;
    int64_t exponent;
};

static bool read_mantissa(struct text *text, struct mantissa *out)
{
    struct mantissa mantissa = {0};
    bool point = false;
    bool any = false;
    uint32_t at = 0;
    for (; at < text->size; at++) {
        char byte = text->bytes[at];
        if (byte == '.' && !point) {
            point = true;
            continue;
        }
        if (!is_digit(byte)) break;
        any = true;
        mantissa.exponent -= point;
        if (mantissa.digit_count == 0) {
            if (byte == '0') continue;
            mantissa.first = text->bytes + at;
        }
        if (mantissa.digit_count < WORD_DIGITS) {
            mantissa.value = mantissa.value * 10 + (uint64_t)(byte - '0');
        }
        mantissa.digit_count++;
    }
    if (!any) return false;
    mantissa.end = text->bytes + at;
    text->bytes += at;
    text->size -= at;
    *out = mantissa;
    return true;
}

/* What follows the mantissa: nothing, or an exponent, which is added. */
static bool read_exponent(struct text text, int64_t *exponent)
{
    if (text.size == 0) return true;
    if (text.bytes[0] != 'e' && text.bytes[0] != 'E') return false;
    text.bytes++;
    text.size--;
    bool negative = take_sign(&text);
    if (text.size == 0) return false;
    int64_t value = 0;
    for (uint32_t at = 0; at < text.size; at++) {
        if (!is_digit(text.bytes[at])) return false;
        /* Larger than any size of a text, so that no count of digits can make up for it. */
        if (value < (int64_t)1 << 40) value = value * 10 + (text.bytes[at] - '0');
    }
    *exponent += negative ? -value : value;
    return true;
}

static double read_with_library(const struct mantissa *mantissa)
{
    char digits[DIGITS_MAX + 32];
    size_t count = 0;
    bool more = false;
    int64_t exponent = mantissa->exponent;
    for (const char *at = mantissa->first; at < mantissa->end; at++) {
        if (*at == '.') continue;
        if (count < DIGITS_MAX) {
            digits[count++] = *at;
        } else {
            more |= *at != '0';
            exponent++;
        }
    }
    /* Which side of a middle the number is on is all that the rest can say. */
    if (more) {
        digits[count++] = '1';
        exponent--;
    }
    if (exponent > EXPONENT_LIMIT) exponent = EXPONENT_LIMIT;
    if (exponent < -EXPONENT_LIMIT) exponent = -EXPONENT_LIMIT;
    (void)snprintf(digits + count, sizeof digits - count, "e%d", (int)exponent);
    return strtod(digits, NULL);
}

static double mantissa_to_double(const struct mantissa *mantissa)
{
    int64_t exponent = mantissa->exponent;
    if (mantissa->digit_count == 0) return 0.0;
    if (mantissa->digit_count <= WORD_DIGITS) {
        uint64_t value = mantissa->value;
        if (value <= MANTISSA_LIMIT && exponent >= -22 && exponent <= 22) {
            return exponent < 0 ? (double)value / number_double_powers[-exponent]
                                : (double)value * number_double_powers[exponent];
        }
        if (exponent <= 0 && exponent > -NUMBER_POWERS) {
            return divide(value, number_powers[-exponent]);
        }
        if (exponent > 0 && exponent < NUMBER_POWERS) {
            return round_scaled((uint128)value * number_powers[exponent], 0, false);
        }
    }
    return read_with_library(mantissa);
}

bool double_parse_slow(struct text text, double *out)
{
    bool negative = take_sign(&text);
    struct mantissa mantissa;
    if (!read_mantissa(&text, &mantissa)) return false;
    if (!read_exponent(text, &mantissa.exponent)) return false;
    double value = mantissa_to_double(&mantissa);
    if (__builtin_isinf(value)) return false;
    *out = negative && value != 0.0 ? -value : value;
    return true;
}

/* Writes the digits of a value so that they end just before `end`; returns where they begin. */
static char *put_digits_before(char *end, uint64_t value)
{
    do {
        *--end = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    return end;
}

static uint64_t magnitude_of(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

size_t int_print(char *out, int64_t value)
{
    char digits[NUMBER_TEXT_SIZE];
    char *first = put_digits_before(digits + sizeof digits, magnitude_of(value));
    if (value < 0) *--first = '-';
    size_t size = (size_t)(digits + sizeof digits - first);
    memcpy(out, first, size);
    return size;
}

size_t decimal_print(char *out, int64_t value, uint8_t scale)
{
    ASSERT(scale < NUMBER_POWERS);
    if (scale == 0) return int_print(out, value);
    uint64_t magnitude = magnitude_of(value);
    char text[NUMBER_TEXT_SIZE];
    char *end = text + sizeof text;
    char *point = end - scale - 1;
    char *first = put_digits_before(end, magnitude % number_powers[scale]);
    while (first > point + 1) {
        *--first = '0';
    }
    *point = '.';
    first = put_digits_before(point, magnitude / number_powers[scale]);
    if (value < 0) *--first = '-';
    size_t size = (size_t)(end - first);
    memcpy(out, first, size);
    return size;
}

/* 0.DIGITS * 10^point */
struct shortest {
    char digits[SHORTEST_MAX + 1];
    uint32_t count;
    int point;
};

static void shortest_strip(struct shortest *shortest)
{
    while (shortest->count > 1 && shortest->digits[shortest->count - 1] == '0') {
        shortest->count--;
    }
}

static struct shortest shortest_of_integer(uint64_t value, int decimals)
{
    struct shortest shortest = {0};
    char digits[NUMBER_TEXT_SIZE];
    char *first = put_digits_before(digits + sizeof digits, value);
    shortest.count = (uint32_t)(digits + sizeof digits - first);
    ASSERT(shortest.count <= SHORTEST_MAX);
    memcpy(shortest.digits, first, shortest.count);
    shortest.point = (int)shortest.count - decimals;
    shortest_strip(&shortest);
    return shortest;
}

/* Integers below 2^53, and numbers of ordinary size that 15 digits can say. */
static bool shortest_of_ordinary(double value, struct shortest *out)
{
    if (value < 0x1p53 && value >= 1.0 && value == (double)(uint64_t)value) {
        *out = shortest_of_integer((uint64_t)value, 0);
        return true;
    }
    if (value < 1e-7 || value >= 1e15) return false;
    int decimals = 0;
    while (decimals < 22 && value * number_double_powers[decimals] < 1e14) {
        decimals++;
    }
    /* If 15 digits read back, the product is within 0.2 of them: see DBL_DIG. */
    double scaled = value * number_double_powers[decimals] + 0.5;
    if (scaled >= 1e15) return false;
    uint64_t digits = (uint64_t)scaled;
    if ((double)digits / number_double_powers[decimals] != value) return false;
    *out = shortest_of_integer(digits, decimals);
    return true;
}

static bool shortest_reads_back(const struct shortest *shortest, double value)
{
    struct mantissa mantissa = {
        .first = shortest->digits,
        .end = shortest->digits + shortest->count,
        .digit_count = shortest->count,
        .exponent = shortest->point - (int)shortest->count,
    };
    for (uint32_t at = 0; at < shortest->count; at++) {
        mantissa.value = mantissa.value * 10 + (uint64_t)(shortest->digits[at] - '0');
    }
    return mantissa_to_double(&mantissa) == value;
}

/* The nearest text of `count` digits. */
static struct shortest shortest_nearest(double value, uint32_t count)
{
    char text[SHORTEST_MAX + 24];
    (void)snprintf(text, sizeof text, "%.*e", (int)count - 1, value);
    struct shortest shortest = {0};
    const char *at = text;
    for (; *at != 'e'; at++) {
        if (is_digit(*at)) shortest.digits[shortest.count++] = *at; /* Not the locale's point. */
    }
    shortest.point = (int)strtol(at + 1, NULL, 10) + 1;
    return shortest;
}

static void shortest_increment(struct shortest *shortest)
{
    uint32_t at = shortest->count;
    while (at > 0 && shortest->digits[at - 1] == '9') {
        shortest->digits[--at] = '0';
    }
    if (at > 0) {
        shortest->digits[at - 1]++;
    } else {
        shortest->digits[0] = '1';
        shortest->point++;
    }
}

static struct shortest shortest_of(double value)
{
    struct shortest shortest;
    if (shortest_of_ordinary(value, &shortest)) return shortest;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    /* The gap below a power of two is half the gap above it, so that the nearest text may lie
     * outside, on the lower side, when the next one above still reads back. */
    bool power = (bits & (MANTISSA_LIMIT / 2 - 1)) == 0;
    /* Subnormals have fewer bits, and the promise about 15 digits does not hold. */
    uint32_t count = value < 0x1p-1022 ? 1 : 15;
    for (; count < SHORTEST_MAX; count++) {
        shortest = shortest_nearest(value, count);
        if (shortest_reads_back(&shortest, value)) break;
        if (!power) continue;
        shortest_increment(&shortest);
        if (shortest_reads_back(&shortest, value)) break;
    }
    if (count == SHORTEST_MAX) shortest = shortest_nearest(value, count);
    shortest_strip(&shortest);
    return shortest;
}

/* `count` bytes from *digits, which may be fewer: then zeros. */
static char *put_padded(char *out, const struct shortest *shortest, uint32_t from, uint32_t count)
{
    for (uint32_t at = from; at < from + count; at++) {
        *out++ = at < shortest->count ? shortest->digits[at] : '0';
    }
    return out;
}

static char *put_exponent(char *out, int exponent)
{
    *out++ = 'e';
    *out++ = exponent < 0 ? '-' : '+';
    uint64_t magnitude = magnitude_of(exponent);
    if (magnitude < 10) *out++ = '0';
    return out + int_print(out, (int64_t)magnitude);
}

static char *put_shortest(char *out, const struct shortest *shortest)
{
    int point = shortest->point;
    uint32_t count = shortest->count;
    if (point <= -4 || point > 16) {
        *out++ = shortest->digits[0];
        if (count > 1) *out++ = '.';
        out = put_padded(out, shortest, 1, count - 1);
        return put_exponent(out, point - 1);
    }
    if (point <= 0) {
        *out++ = '0';
        *out++ = '.';
        for (int zero = point; zero < 0; zero++) {
            *out++ = '0';
        }
        return put_padded(out, shortest, 0, count);
    }
    uint32_t whole = (uint32_t)point;
    out = put_padded(out, shortest, 0, whole);
    *out++ = '.';
    return put_padded(out, shortest, whole, count > whole ? count - whole : 1);
}

static size_t print_word(char *out, const char *word)
{
    size_t size = strlen(word);
    memcpy(out, word, size);
    return size;
}

size_t double_print(char *out, double value)
{
    if (__builtin_isnan(value)) return print_word(out, "nan");
    bool negative = __builtin_signbit(value) != 0;
    if (__builtin_isinf(value)) return print_word(out, negative ? "-inf" : "inf");
    if (value == 0.0) return print_word(out, negative ? "-0.0" : "0.0");
    char *end = out;
    if (negative) *end++ = '-';
    struct shortest shortest = shortest_of(negative ? -value : value);
    end = put_shortest(end, &shortest);
    return (size_t)(end - out);
}
