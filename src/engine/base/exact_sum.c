/* SPDX-License-Identifier: Apache-2.0 */
/* exact_sum.c - a fixed-point number wide enough for every double.
 *
 * This is Kulisch's long accumulator (Kulisch and Miranker, "The Arithmetic of the Digital
 * Computer", SIAM Review 28(1), 1986). Doubles are multiples of 2^-1074 below 2^1024. A two's
 * complement integer of 2176 bits in units of 2^-1074 therefore holds any sum of 2^60 of them, and
 * integer addition has no order. The carry of an addition seldom goes further than one limb.
 *
 * Encoding: a byte of specials, the number of low zero bytes left out (16 bits, little-endian), and
 * the rest in the fewest bytes of two's complement, little-endian. Zero and specials are the first
 * byte alone.
 */
#include "engine/base/exact_sum.h"

#include "engine/base/arena.h"
#include "engine/base/assert.h"

enum {
    LIMB_BITS = 64,
    WINDOW_BIT = 1000, /* Where 2^-74 stands in units of 2^-1074. */
    WIDE_BYTES = EXACT_SUM_LIMBS * 8,
    WINDOW_BYTES = 16,
    MANTISSA_BITS = 53,
    ROOM_BIT = 1074 + 1024 + 60, /* The sum of 2^60 doubles is below. */
    HEADER_BYTES = 3
};

_Static_assert(WINDOW_BIT - 1074 == EXACT_SUM_WINDOW_EXPONENT - 1075, "one unit, two names");
_Static_assert(EXACT_SUM_WINDOW_SHIFTS + MANTISSA_BITS <= 127, "a term fits the window");
_Static_assert(ROOM_BIT < EXACT_SUM_LIMBS * LIMB_BITS, "any sum fits");

enum special { SPECIAL_NAN = 1, SPECIAL_PLUS = 2, SPECIAL_MINUS = 4 };

struct exact_sum_wide {
    uint64_t limbs[EXACT_SUM_LIMBS]; /* Two's complement, lowest first. */
    uint64_t specials;               /* Which of them came. */
};

/* Adds (or subtracts) magnitude * 2^bit, modulo the width. */
static void wide_add(struct exact_sum_wide *wide, uint128 magnitude, uint32_t bit, bool negative)
{
    uint32_t shift = bit % LIMB_BITS;
    uint64_t parts[3] = {(uint64_t)magnitude, (uint64_t)(magnitude >> 64), 0};
    if (shift != 0) {
        parts[2] = parts[1] >> (LIMB_BITS - shift);
        parts[1] = parts[1] << shift | parts[0] >> (LIMB_BITS - shift);
        parts[0] <<= shift;
    }
    uint64_t carry = 0;
    uint32_t first = bit / LIMB_BITS;
    for (uint32_t limb = first; limb < EXACT_SUM_LIMBS; limb++) {
        uint64_t part = limb - first < 3 ? parts[limb - first] : 0;
        if (limb - first >= 3 && carry == 0) break;
        uint64_t old = wide->limbs[limb];
        if (negative) {
            wide->limbs[limb] = old - part - carry;
            carry = old < part || (old == part && carry != 0);
        } else {
            uint128 total = (uint128)old + part + carry;
            wide->limbs[limb] = (uint64_t)total;
            carry = (uint64_t)(total >> 64);
        }
    }
}

static void wide_add_window(struct exact_sum_wide *wide, int128 window)
{
    bool negative = window < 0;
    wide_add(wide, negative ? 0 - (uint128)window : (uint128)window, WINDOW_BIT, negative);
}

static struct exact_sum_wide total_of(const struct exact_sum *sum)
{
    struct exact_sum_wide total = {0};
    if (sum->wide != NULL) total = *sum->wide;
    wide_add_window(&total, exact_sum_window(sum));
    return total;
}

bool exact_sum_fits_window(const struct exact_sum *sum, uint64_t *out_low, uint64_t *out_high)
{
    *out_low = sum->window_low;
    *out_high = sum->window_high;
    if (LIKELY(sum->wide == NULL)) return true;
    if (sum->wide->specials != 0) return false;
    /* What was too much at some time may have become less: cut the window out and see whether it
     * was all. */
    struct exact_sum_wide total = total_of(sum);
    struct exact_sum_wide window = {0};
    uint32_t limb = WINDOW_BIT / 64;
    uint32_t shift = WINDOW_BIT % 64;
    for (uint32_t half = 0; half < 2; half++) {
        uint64_t bits = total.limbs[limb + half] >> shift;
        if (shift > 0) bits |= total.limbs[limb + half + 1] << (64 - shift);
        *(half == 0 ? out_low : out_high) = bits;
    }
    wide_add_window(&window, (int128)((uint128)*out_high << 64 | *out_low));
    return memcmp(&window, &total, sizeof total) == 0;
}

static bool ensure_wide(struct exact_sum *sum, struct arena *arena)
{
    if (sum->wide == NULL) sum->wide = arena_new(arena, struct exact_sum_wide);
    return sum->wide != NULL;
}

/* Adds to the window; when that overflows, the window moves to the accumulator first. */
static bool add_to_window(struct exact_sum *sum, int128 term, struct arena *arena)
{
    int128 window;
    if (__builtin_add_overflow(exact_sum_window(sum), term, &window)) {
        if (!ensure_wide(sum, arena)) return false;
        wide_add_window(sum->wide, exact_sum_window(sum));
        window = term;
    }
    exact_sum_set_window(sum, window);
    return true;
}

static bool add_special(struct exact_sum *sum, enum special special, struct arena *arena)
{
    if (!ensure_wide(sum, arena)) return false;
    sum->wide->specials |= special;
    return true;
}

bool exact_sum_add_slow(struct exact_sum *sum, double value, struct arena *arena)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bool negative = bits >> 63 != 0;
    uint32_t exponent = (uint32_t)(bits >> 52 & 0x7ff);
    uint64_t mantissa = bits & 0xfffffffffffffu;
    if (exponent == 0x7ff) {
        enum special infinity = negative ? SPECIAL_MINUS : SPECIAL_PLUS;
        return add_special(sum, mantissa != 0 ? SPECIAL_NAN : infinity, arena);
    }
    uint32_t bit = 0;
    if (exponent != 0) {
        mantissa |= (uint64_t)1 << 52;
        bit = exponent - 1;
    }
    if (mantissa == 0) return true;
    /* Without their final zero bits, small round numbers are in the window too. */
    uint32_t zeros = (uint32_t)__builtin_ctzll(mantissa);
    mantissa >>= zeros;
    bit += zeros;
    uint32_t width = 64 - (uint32_t)__builtin_clzll(mantissa);
    if (bit >= WINDOW_BIT && bit - WINDOW_BIT + width <= 127) {
        int128 term = (int128)((uint128)mantissa << (bit - WINDOW_BIT));
        return add_to_window(sum, negative ? -term : term, arena);
    }
    if (!ensure_wide(sum, arena)) return false;
    wide_add(sum->wide, mantissa, bit, negative);
    return true;
}

bool exact_sum_merge(struct exact_sum *into, const struct exact_sum *from, struct arena *arena)
{
    if (from->wide != NULL && !ensure_wide(into, arena)) return false;
    if (!add_to_window(into, exact_sum_window(from), arena)) return false;
    if (from->wide != NULL) {
        uint64_t carry = 0;
        for (uint32_t limb = 0; limb < EXACT_SUM_LIMBS; limb++) {
            uint128 total = (uint128)into->wide->limbs[limb] + from->wide->limbs[limb] + carry;
            into->wide->limbs[limb] = (uint64_t)total;
            carry = (uint64_t)(total >> 64);
        }
        into->wide->specials |= from->wide->specials;
    }
    return true;
}

/* What the specials come to: none, or exactly one of them. */
static uint64_t specials_of(const struct exact_sum *sum)
{
    uint64_t specials = sum->wide == NULL ? 0 : sum->wide->specials;
    if ((specials & SPECIAL_NAN) != 0) return SPECIAL_NAN;
    if (specials == (SPECIAL_PLUS | SPECIAL_MINUS)) return SPECIAL_NAN;
    return specials;
}

static bool wide_is_negative(const struct exact_sum_wide *wide)
{
    return wide->limbs[EXACT_SUM_LIMBS - 1] >> 63 != 0;
}

static void wide_negate(struct exact_sum_wide *wide)
{
    uint64_t carry = 1;
    for (uint32_t limb = 0; limb < EXACT_SUM_LIMBS; limb++) {
        wide->limbs[limb] = ~wide->limbs[limb] + carry;
        carry = carry != 0 && wide->limbs[limb] == 0;
    }
}

/* The bits of the double nearest to a magnitude. */
static uint64_t wide_round(const struct exact_sum_wide *wide)
{
    uint32_t top = EXACT_SUM_LIMBS;
    while (top > 0 && wide->limbs[top - 1] == 0) {
        top--;
    }
    if (top == 0) return 0;
    uint32_t width = top * LIMB_BITS - (uint32_t)__builtin_clzll(wide->limbs[top - 1]);
    /* Up to 53 bits, units of 2^-1074 are the double's own bits: subnormals need no special case.
     */
    if (width <= MANTISSA_BITS) return wide->limbs[0];

    uint32_t surplus = width - MANTISSA_BITS;
    uint32_t half_bit = surplus - 1;
    uint32_t limb = surplus / LIMB_BITS;
    uint32_t shift = surplus % LIMB_BITS;
    uint64_t mantissa = wide->limbs[limb] >> shift;
    if (shift != 0 && limb + 1 < EXACT_SUM_LIMBS) {
        mantissa |= wide->limbs[limb + 1] << (LIMB_BITS - shift);
    }
    bool half = (wide->limbs[half_bit / LIMB_BITS] >> half_bit % LIMB_BITS & 1) != 0;
    bool below =
        (wide->limbs[half_bit / LIMB_BITS] & (((uint64_t)1 << half_bit % LIMB_BITS) - 1)) != 0;
    for (uint32_t low = 0; low < half_bit / LIMB_BITS; low++) {
        below |= wide->limbs[low] != 0;
    }
    if (half && (below || (mantissa & 1) != 0)) mantissa++;
    /* The leading bit of the mantissa adds one to the exponent, and so does a carry out of it. */
    const uint64_t infinity = (uint64_t)0x7ff << 52;
    if (surplus >= 0x7ff) return infinity;
    uint64_t bits = ((uint64_t)surplus << 52) + mantissa;
    return bits < infinity ? bits : infinity;
}

/* The same for a sum that never left the window: a normal double, as neither end of the window is
 * near those of the doubles' exponents. */
static double window_round(int128 window)
{
    bool negative = window < 0;
    uint128 magnitude = negative ? 0 - (uint128)window : (uint128)window;
    uint64_t high = (uint64_t)(magnitude >> 64);
    uint64_t low = (uint64_t)magnitude;
    if (magnitude == 0) return 0.0;
    uint32_t width =
        high != 0 ? 128 - (uint32_t)__builtin_clzll(high) : 64 - (uint32_t)__builtin_clzll(low);
    uint32_t surplus = width > MANTISSA_BITS ? width - MANTISSA_BITS : 0;
    uint64_t mantissa = (uint64_t)(magnitude >> surplus);
    if (surplus > 0) {
        uint128 rest = magnitude & (((uint128)1 << surplus) - 1);
        uint128 half = (uint128)1 << (surplus - 1);
        mantissa += rest > half || (rest == half && (mantissa & 1) != 0);
    }
    /* At most 2^53 times a power of two: exact. */
    uint64_t scale_bits = (uint64_t)(EXACT_SUM_WINDOW_EXPONENT - 52 + surplus) << 52;
    double scale;
    memcpy(&scale, &scale_bits, sizeof scale);
    double value = (double)mantissa * scale;
    return negative ? -value : value;
}

double exact_sum_round(const struct exact_sum *sum)
{
    if (LIKELY(sum->wide == NULL)) return window_round(exact_sum_window(sum));
    switch (specials_of(sum)) {
    case SPECIAL_NAN:
        return __builtin_nan("");
    case SPECIAL_PLUS:
        return __builtin_inf();
    case SPECIAL_MINUS:
        return -__builtin_inf();
    default:
        break;
    }
    struct exact_sum_wide total = total_of(sum);
    bool negative = wide_is_negative(&total);
    if (negative) wide_negate(&total);
    uint64_t bits = wide_round(&total) | (uint64_t)negative << 63;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static unsigned char wide_byte(const struct exact_sum_wide *wide, uint32_t index)
{
    return (unsigned char)(wide->limbs[index / 8] >> 8 * (index % 8));
}

_Static_assert(WINDOW_BIT % 8 == 0, "the window stands on a byte of the wide sum");

static unsigned char window_byte(const struct exact_sum *sum, uint32_t index)
{
    uint64_t half = index < 8 ? sum->window_low : sum->window_high;
    return (unsigned char)(half >> (8 * (index % 8)));
}

/* What encoding the wide sum would give, without making it: most sums never leave the window. */
static size_t encode_window(const struct exact_sum *sum, unsigned char *out)
{
    if (sum->window_low == 0 && sum->window_high == 0) return 1;
    uint32_t first = 0;
    while (window_byte(sum, first) == 0) {
        first++;
    }
    unsigned char sign = sum->window_high >> 63 != 0 ? 0xff : 0;
    uint32_t end = WINDOW_BYTES;
    while (end > first + 1 && window_byte(sum, end - 1) == sign &&
           ((window_byte(sum, end - 2) ^ sign) & 0x80) == 0) {
        end--;
    }
    out[1] = (unsigned char)(first + WINDOW_BIT / 8);
    out[2] = (unsigned char)((first + WINDOW_BIT / 8) >> 8);
    for (uint32_t index = first; index < end; index++) {
        out[HEADER_BYTES + index - first] = window_byte(sum, index);
    }
    return HEADER_BYTES + (end - first);
}

/* The other way round; false: it is not certain that these bytes are canonical and fit. */
static bool decode_window(struct exact_sum *sum, const unsigned char *bytes, size_t size)
{
    if (size <= HEADER_BYTES) return false;
    size_t count = size - HEADER_BYTES;
    uint32_t first = (uint32_t)bytes[1] | (uint32_t)bytes[2] << 8;
    if (first < WINDOW_BIT / 8) return false;
    first -= WINDOW_BIT / 8;
    /* One byte less than there is, so that the sign is never in doubt. */
    if (first >= WINDOW_BYTES || count > WINDOW_BYTES - 1 - first) return false;
    const unsigned char *digits = bytes + HEADER_BYTES;
    unsigned char sign = (digits[count - 1] & 0x80) != 0 ? 0xff : 0;
    bool shortest =
        count == 1 || digits[count - 1] != sign || ((digits[count - 2] ^ sign) & 0x80) != 0;
    if (digits[0] == 0 || !shortest) return false;
    uint128 window = sign == 0 ? 0 : ~(uint128)0;
    for (size_t i = count; i > 0; i--) {
        window = window << 8 | digits[i - 1];
    }
    exact_sum_set_window(sum, (int128)(window << (8 * first)));
    return true;
}

size_t exact_sum_encode(const struct exact_sum *sum, unsigned char *out)
{
    out[0] = (unsigned char)specials_of(sum);
    if (out[0] != 0) return 1;
    if (sum->wide == NULL) return encode_window(sum, out);
    struct exact_sum_wide total = total_of(sum);
    uint32_t first = 0;
    while (first < WIDE_BYTES && wide_byte(&total, first) == 0) {
        first++;
    }
    if (first == WIDE_BYTES) return 1;
    unsigned char sign = wide_is_negative(&total) ? 0xff : 0;
    uint32_t end = WIDE_BYTES;
    while (end > first + 1 && wide_byte(&total, end - 1) == sign &&
           ((wide_byte(&total, end - 2) ^ sign) & 0x80) == 0) {
        end--;
    }
    out[1] = (unsigned char)first;
    out[2] = (unsigned char)(first >> 8);
    for (uint32_t index = first; index < end; index++) {
        out[HEADER_BYTES + index - first] = wide_byte(&total, index);
    }
    return HEADER_BYTES + (end - first);
}

/* False unless these are the fewest bytes, and at most what 2^60 doubles can come to. */
static bool decode_wide(struct exact_sum_wide *wide, const unsigned char *bytes, size_t size)
{
    if (size <= HEADER_BYTES) return false;
    uint32_t first = bytes[1] | (uint32_t)bytes[2] << 8;
    size_t count = size - HEADER_BYTES;
    const unsigned char *digits = bytes + HEADER_BYTES;
    if (first >= WIDE_BYTES || count > WIDE_BYTES - first) return false;
    unsigned char last = digits[count - 1];
    unsigned char sign = last >> 7 != 0 ? 0xff : 0;
    if (digits[0] == 0) return false;
    if (count > 1 && last == sign && ((digits[count - 2] ^ sign) & 0x80) == 0) return false;
    *wide = (struct exact_sum_wide){0};
    for (uint32_t index = first; index < WIDE_BYTES; index++) {
        uint64_t byte = index - first < count ? digits[index - first] : sign;
        wide->limbs[index / 8] |= byte << 8 * (index % 8);
    }
    uint64_t top = wide->limbs[EXACT_SUM_LIMBS - 1] ^ (sign != 0 ? UINT64_MAX : 0);
    return top >> (ROOM_BIT + 1 - (EXACT_SUM_LIMBS - 1) * LIMB_BITS) == 0;
}

bool exact_sum_decode(struct exact_sum *sum, const unsigned char *bytes, size_t size,
                      struct arena *arena)
{
    struct exact_sum decoded = {0};
    if (size == 0) return false;
    if (size == 1) {
        if (bytes[0] != 0 && bytes[0] != SPECIAL_NAN && bytes[0] != SPECIAL_PLUS &&
            bytes[0] != SPECIAL_MINUS) {
            return false;
        }
        if (bytes[0] != 0 && !add_special(&decoded, bytes[0], arena)) return false;
        *sum = decoded;
        return true;
    }
    if (bytes[0] == 0 && decode_window(&decoded, bytes, size)) {
        *sum = decoded;
        return true;
    }
    struct exact_sum_wide wide;
    if (bytes[0] != 0 || !decode_wide(&wide, bytes, size)) return false;

    enum { LIMB = WINDOW_BIT / LIMB_BITS, SHIFT = WINDOW_BIT % LIMB_BITS };
    uint128 middle = (uint128)wide.limbs[LIMB + 1] << 64 | wide.limbs[LIMB];
    uint128 upper = (uint128)wide.limbs[LIMB + 2] << 64 | wide.limbs[LIMB + 1];
    decoded.window_low = (uint64_t)(middle >> SHIFT);
    decoded.window_high = (uint64_t)(upper >> SHIFT);
    struct exact_sum_wide windowed = total_of(&decoded);
    if (memcmp(&windowed, &wide, sizeof wide) != 0) {
        decoded = (struct exact_sum){0};
        if (!ensure_wide(&decoded, arena)) return false;
        *decoded.wide = wide;
    }
    *sum = decoded;
    return true;
}
