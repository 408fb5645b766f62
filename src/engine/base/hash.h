/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - the hash and the checksum of everything: XXH3 (Collet, xxHash), with fixed seeds.
 *
 * Values are part of the exactly-once protocol (which shard a key goes to, what a batch's checksum
 * is), so they are the same on every machine and never change silently.
 */
#ifndef ENGINE_BASE_HASH_H
#define ENGINE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* 64 bits over any bytes. */
uint64_t hash_bytes(const void *bytes, size_t size);

/* Mixes one 64-bit value; cheap, for numbers. */
static inline uint64_t hash_u64(uint64_t value)
{
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93u;
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93u;
    value ^= value >> 32;
    return value;
}

/* Order matters: combine(a, b) differs from combine(b, a). */
static inline uint64_t hash_combine(uint64_t hash, uint64_t next)
{
    return hash_u64(hash * 0x9e3779b97f4a7c15u + next);
}

#endif
