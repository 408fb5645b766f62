/* SPDX-License-Identifier: Apache-2.0 */
/* gen.c - which analysis is meant, how large it gets, and the arithmetic its tables share. */
#include "gen/gen.h"

#include <stddef.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/calendar.h"
#include "engine/base/hash.h"
#include "gen/gen_run.h"

enum { SCALE_UNIT = 1000000 };

static const struct {
    const char *name;
    status (*write)(struct gen_run *run, struct error *err);
    uint64_t full_bytes; /* About; only progress shows it. */
} generators[] = {
    {"movies", gen_movies_write, 920000000},
    {"coffee", gen_coffee_write, 3080000000},
    {"memes", gen_memes_write, 1000000000},
};

uint64_t gen_run_count(const struct gen_run *run, uint64_t full_count, uint64_t least)
{
    uint64_t count = full_count * run->scale_millionths / SCALE_UNIT;
    return count > least ? count : least;
}

struct random gen_run_random(const struct gen_run *run, uint64_t stream)
{
    return (struct random){.state = hash_combine(hash_u64(run->options->seed), stream)};
}

uint32_t gen_skewed(struct random *random, uint32_t count, uint32_t flat_bits)
{
    ASSERT(count > 0);
    if (count <= (UINT32_C(1) << flat_bits)) return random_below(random, count);

    uint32_t last_bits = 32 - (uint32_t)__builtin_clz(count - 1);
    for (;;) {
        uint64_t bits = random_u64(random);
        uint32_t octave =
            flat_bits + (uint32_t)(((bits >> 48) * (last_bits - flat_bits + 1)) >> 16);
        uint32_t low = (uint32_t)bits;
        uint32_t number = low & ((UINT32_C(1) << flat_bits) - 1);
        if (octave > flat_bits) {
            uint32_t first = UINT32_C(1) << (octave - 1);
            number = first | (low & (first - 1));
        }
        if (number < count) return number;
    }
}

struct gen_date gen_date_between(struct random *random, uint32_t first_year, uint32_t last_year)
{
    struct gen_date date = {.year = first_year + random_below(random, last_year - first_year + 1)};
    date.month = 1 + random_below(random, 12);
    date.day = 1 + random_below(random, calendar_days_in_month(date.year, date.month));
    return date;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

struct gen_walk gen_walk_over(uint64_t count)
{
    /* A step near the golden section scatters neighbours (Knuth, TAOCP 3, 6.4); one without a
     * common divisor with the count comes back to the start only after every number. */
    uint64_t step = count * 618 / 1000 + 1;
    while (common_divisor(step, count) != 1) {
        step++;
    }
    return (struct gen_walk){.count = count, .step = step};
}

uint64_t gen_walk_next(struct gen_walk *walk)
{
    uint64_t number = walk->position;
    walk->position = (walk->position + walk->step) % walk->count;
    return number;
}

status gen_write(const struct gen_options *options, struct gen_report *out_report,
                 struct error *err)
{
    ASSERT(options->analysis != NULL);
    ASSERT(options->directory != NULL);
    /* Written so that a NaN is refused too. */
    if (!(options->scale >= 0.000001 && options->scale <= 1000)) {
        return error_set(err, STATUS_USAGE, "gen: the scale must be between 0.000001 and 1000");
    }

    struct gen_run run = {
        .options = options,
        .scale_millionths = (uint64_t)(options->scale * SCALE_UNIT + 0.5),
    };
    for (size_t i = 0; i < sizeof generators / sizeof generators[0]; i++) {
        if (strcmp(generators[i].name, options->analysis) != 0) continue;
        run.expected_bytes = gen_run_count(&run, generators[i].full_bytes, 0);
        TRY(generators[i].write(&run, err));
        *out_report = run.report;
        return STATUS_OK;
    }
    return error_set(err, STATUS_USAGE,
                     "gen: no analysis is called \"%s\"; there are movies, coffee and memes",
                     options->analysis);
}
