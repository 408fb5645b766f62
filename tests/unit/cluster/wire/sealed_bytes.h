/* SPDX-License-Identifier: Apache-2.0 */
/* sealed_bytes.h - what must hold for any sealed bytes: only what an encoder wrote is accepted.
 *
 * Damage is tried twice: as it is, when the checksum must show it, and with the right checksum
 * behind it, as an attacker would do it: then it is refused all the same, or is what an
 * encoder would have written for what comes out.
 */
#ifndef UNIT_WIRE_SEALED_BYTES_H
#define UNIT_WIRE_SEALED_BYTES_H

#include <stdbool.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/hash.h"
#include "engine/base/random.h"
#include "engine/base/text.h"

enum { SEAL_BYTES = 8 };

/* Decodes, and encodes what came out. */
typedef status sealed_again(struct text bytes, struct buf *out_again, struct error *err);

/* The bytes stand in a block of their own, so that a step past their end is noticed. */
static inline bool sealed_accepted(const unsigned char *bytes, size_t size, sealed_again *again)
{
    unsigned char *block = size > 0 ? memory_alloc(NULL, size) : NULL;
    struct buf out = {0};
    struct error err = {.text = ""};
    assert_true(block != NULL || size == 0);
    if (size > 0) memcpy(block, bytes, size);
    status code = again((struct text){(const char *)block, (uint32_t)size}, &out, &err);
    if (code == STATUS_OK) {
        assert_int_equal(out.size, size);
        assert_memory_equal(out.bytes, bytes, size);
    } else {
        assert_int_equal(code, STATUS_CORRUPT);
        assert_true(err.text[0] != '\0');
    }
    buf_done(&out);
    memory_free(NULL, block, size);
    return code == STATUS_OK;
}

/* The same with the right checksum behind the bytes. */
static inline bool sealed_accepted_resealed(const unsigned char *bytes, size_t size,
                                            sealed_again *again)
{
    struct buf sealed = {0};
    buf_put(&sealed, bytes, size);
    buf_put_u64(&sealed, hash_bytes(bytes, size));
    assert_false(sealed.failed);
    bool accepted = sealed_accepted(sealed.bytes, sealed.size, again);
    buf_done(&sealed);
    return accepted;
}

static inline void sealed_check_sizes(const struct buf *whole, sealed_again *again)
{
    size_t unsealed = whole->size - SEAL_BYTES;
    for (size_t size = 0; size < whole->size; size++) {
        assert_false(sealed_accepted(whole->bytes, size, again));
    }
    for (size_t size = 0; size < unsealed; size++) {
        assert_false(sealed_accepted_resealed(whole->bytes, size, again));
    }
    assert_true(sealed_accepted_resealed(whole->bytes, unsealed, again));
    /* The old seal is as good as any byte that should not be there. */
    for (size_t size = unsealed + 1; size <= whole->size; size++) {
        assert_false(sealed_accepted_resealed(whole->bytes, size, again));
    }
}

static inline void sealed_check_bits(struct buf *whole, sealed_again *again)
{
    for (size_t bit = 0; bit < whole->size * 8; bit++) {
        unsigned char mask = (unsigned char)(1u << bit % 8);
        whole->bytes[bit / 8] ^= mask;
        assert_false(sealed_accepted(whole->bytes, whole->size, again));
        if (bit / 8 < whole->size - SEAL_BYTES) {
            (void)sealed_accepted_resealed(whole->bytes, whole->size - SEAL_BYTES, again);
        }
        whole->bytes[bit / 8] ^= mask;
    }
}

/* Sizes and counts as large as they can be, wherever they are. */
static inline void sealed_check_counts(struct buf *whole, sealed_again *again)
{
    for (size_t at = 0; at + 4 <= whole->size - SEAL_BYTES; at++) {
        static const unsigned char large[][4] = {
            {0xff, 0xff, 0xff, 0xff}, {0xff, 0xff, 0xff, 0x7f}, {0, 0, 0, 0x80}, {0, 0, 0, 0}};
        unsigned char saved[4];
        memcpy(saved, whole->bytes + at, sizeof saved);
        for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
            memcpy(whole->bytes + at, large[i], sizeof saved);
            (void)sealed_accepted_resealed(whole->bytes, whole->size - SEAL_BYTES, again);
        }
        memcpy(whole->bytes + at, saved, sizeof saved);
    }
}

static inline void sealed_check_damage(struct buf *whole, sealed_again *again)
{
    assert_true(sealed_accepted(whole->bytes, whole->size, again));
    sealed_check_sizes(whole, again);
    sealed_check_bits(whole, again);
    sealed_check_counts(whole, again);
}

/* ---- random fields, full of extremes ---- */

static inline uint64_t sealed_random_u64(struct random *random)
{
    static const uint64_t extremes[] = {0, 1, 255, 256, UINT32_MAX, INT64_MAX, UINT64_MAX};
    uint32_t extreme = random_below(random, 8);
    return extreme < 7 ? extremes[extreme] : random_u64(random);
}

static inline uint32_t sealed_random_u32(struct random *random)
{
    return (uint32_t)sealed_random_u64(random);
}

static inline bool sealed_random_bool(struct random *random)
{
    return random_below(random, 2) == 1;
}

static inline struct text sealed_random_text(struct random *random, struct arena *arena)
{
    uint32_t size = random_below(random, 20);
    char *bytes = arena_array(arena, char, (size_t)size + 1);
    assert_non_null(bytes);
    for (uint32_t i = 0; i < size; i++) {
        bytes[i] = (char)random_below(random, 256);
    }
    return (struct text){bytes, size};
}

static inline struct text sealed_random_name(struct random *random, struct arena *arena)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    uint32_t size = sealed_random_bool(random) ? 1 + random_below(random, 64) : 64;
    char *bytes = arena_array(arena, char, size);
    assert_non_null(bytes);
    for (uint32_t i = 0; i < size; i++) {
        bytes[i] = letters[random_below(random, sizeof letters - 1)];
    }
    bytes[0] = letters[random_below(random, 52)];
    return (struct text){bytes, size};
}

#endif
