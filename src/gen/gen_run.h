/* SPDX-License-Identifier: Apache-2.0 */
/* gen_run.h - one run of the generator: scale, seed and counters, shared by its tables.
 *
 * Whatever decides bytes is integer arithmetic on the seed and on `scale_millionths`, which is
 * where the only floating-point number ends.
 */
#ifndef GEN_GEN_RUN_H
#define GEN_GEN_RUN_H

#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/random.h"
#include "gen/gen.h"
#include "gen/gen_put.h"

struct gen_run {
    const struct gen_options *options; /* Borrowed. */
    uint64_t scale_millionths;
    uint64_t expected_bytes;
    struct gen_report report;
};

/* `full_count` records at scale 1, but never fewer than `least`. */
uint64_t gen_run_count(const struct gen_run *run, uint64_t full_count, uint64_t least);

/* An independent sequence for each stream number, so that a table does not depend on another. */
struct random gen_run_random(const struct gen_run *run, uint64_t stream);

/* One in `odds`. */
ALWAYS_INLINE bool gen_chance(struct random *random, uint32_t odds)
{
    return random_below(random, odds) == 0;
}

/* 0 <= result < count, skewed like Zipf's law: each doubling of the number is as likely as the one
 * before; the first 2^flat_bits numbers are equally likely. */
uint32_t gen_skewed(struct random *random, uint32_t count, uint32_t flat_bits);

struct gen_date gen_date_between(struct random *random, uint32_t first_year, uint32_t last_year);

/* A walk through 0..count-1 in scattered order that meets each number once. */
struct gen_walk {
    uint64_t count;
    uint64_t step;
    uint64_t position;
};
struct gen_walk gen_walk_over(uint64_t count);
uint64_t gen_walk_next(struct gen_walk *walk);

MUST_USE status gen_movies_write(struct gen_run *run, struct error *err);
MUST_USE status gen_coffee_write(struct gen_run *run, struct error *err);
MUST_USE status gen_memes_write(struct gen_run *run, struct error *err);

#endif
