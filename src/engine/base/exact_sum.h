/* SPDX-License-Identifier: Apache-2.0 */
/* exact_sum.h - sums of doubles without any rounding until the end.
 *
 * The sum of the same values is the same in any order and however it was cut into partial sums, and
 * so are the bytes of its encoding. Values of everyday size are added to a 128-bit window of units
 * of 2^-74; the first one that does not fit brings a full accumulator of 2176 bits out of the
 * arena, and from then on the sum is that of both. There is room for 2^60 additions.
 *
 * A zeroed struct is the empty sum, which is 0.0. The struct may be copied only if the original is
 * not used any more. Infinities and NaN are remembered and hide the finite values: +inf and -inf
 * together are NaN.
 *
 * Memory: the accumulator lives in the arena of the call that needed it first.
 * Failure: false, out of memory, and the sum is as it was.
 */
#ifndef ENGINE_BASE_EXACT_SUM_H
#define ENGINE_BASE_EXACT_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/int128.h"

struct arena;
struct exact_sum_wide;

enum {
    EXACT_SUM_LIMBS = 34,
    EXACT_SUM_BYTES_MAX = 1 + 2 + EXACT_SUM_LIMBS * 8,
    EXACT_SUM_WINDOW_EXPONENT = 1001, /* The biased exponent of doubles with a unit of 2^-74. */
    EXACT_SUM_WINDOW_SHIFTS = 74      /* That many exponents are in the window. */
};

struct exact_sum {
    uint64_t window_low; /* Two's complement; in halves, to be aligned like any other struct. */
    uint64_t window_high;
    struct exact_sum_wide *wide; /* NULL until needed, for infinities and NaN too; in the arena. */
};

_Static_assert(sizeof(struct exact_sum) <= 24, "groups have many of these");

MUST_USE bool exact_sum_add_slow(struct exact_sum *sum, double value, struct arena *arena);
MUST_USE bool exact_sum_merge(struct exact_sum *into, const struct exact_sum *from,
                              struct arena *arena);
/* To nearest even; beyond the largest double: an infinity. */
double exact_sum_round(const struct exact_sum *sum);

/* Whether the sum fits the window, and then the window. Canonical: it depends on the sum alone. */
bool exact_sum_fits_window(const struct exact_sum *sum, uint64_t *out_low, uint64_t *out_high);
/* Canonical: equal sums have equal bytes. Writes at most EXACT_SUM_BYTES_MAX, returns how many. */
size_t exact_sum_encode(const struct exact_sum *sum, unsigned char *out);
/* Overwrites the sum; false: out of memory, or not what exact_sum_encode writes. */
MUST_USE bool exact_sum_decode(struct exact_sum *sum, const unsigned char *bytes, size_t size,
                               struct arena *arena);

static inline int128 exact_sum_window(const struct exact_sum *sum)
{
    return (int128)((uint128)sum->window_high << 64 | sum->window_low);
}

static inline void exact_sum_set_window(struct exact_sum *sum, int128 window)
{
    sum->window_low = (uint64_t)window;
    sum->window_high = (uint64_t)((uint128)window >> 64);
}

MUST_USE static inline bool exact_sum_add(struct exact_sum *sum, double value, struct arena *arena)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t shift = (uint32_t)(bits >> 52 & 0x7ff) - EXACT_SUM_WINDOW_EXPONENT;
    if (LIKELY(shift < EXACT_SUM_WINDOW_SHIFTS)) {
        uint64_t mantissa = (bits & 0xfffffffffffffu) | 0x10000000000000u;
        int128 term = (int128)((uint128)mantissa << shift);
        if (bits >> 63 != 0) term = -term;
        int128 window;
        if (LIKELY(!__builtin_add_overflow(exact_sum_window(sum), term, &window))) {
            exact_sum_set_window(sum, window);
            return true;
        }
    }
    return exact_sum_add_slow(sum, value, arena);
}

#endif
