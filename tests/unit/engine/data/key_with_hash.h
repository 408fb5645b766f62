/* SPDX-License-Identifier: Apache-2.0 */
/* key_with_hash.h - keys made to have the hashes that a test wants. */
#ifndef UNIT_EXEC_KEY_WITH_HASH_H
#define UNIT_EXEC_KEY_WITH_HASH_H

#include <stdint.h>

/* The number that, as the only key, has this hash: the steps of hash_u64, taken back. */
static inline int64_t key_with_hash(uint64_t hash)
{
    const uint64_t factor = 0xd6e8feb86659fd93u;
    uint64_t inverse = factor;
    for (int i = 0; i < 6; i++) {
        inverse *= 2 - factor * inverse;
    }
    for (int i = 0; i < 2; i++) {
        hash ^= hash >> 32;
        hash *= inverse;
    }
    return (int64_t)(hash ^ hash >> 32);
}

#endif
