/* SPDX-License-Identifier: Apache-2.0 */
/* random.h - seeded random numbers: the same sequence for the same seed on every machine.
 *
 * splitmix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA
 * 2014): any seed is good, and the state is one word.
 */
#ifndef ENGINE_BASE_RANDOM_H
#define ENGINE_BASE_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_u64(struct random *random)
{
    uint64_t z = (random->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* 0 <= result < bound; bound must not be 0. */
static inline uint32_t random_below(struct random *random, uint32_t bound)
{
    return (uint32_t)(((random_u64(random) >> 32) * bound) >> 32);
}

#endif
