/* SPDX-License-Identifier: Apache-2.0 */
/* datagram_seal.h - the code at a datagram's end, made anew as docs/reference/wire.md says. */
#ifndef UNIT_WIRE_DATAGRAM_SEAL_H
#define UNIT_WIRE_DATAGRAM_SEAL_H

#include <sodium.h>

#include "engine/base/assert.h"
#include "engine/base/buf.h"
#include "cluster/wire/datagram.h"

enum { DATAGRAM_SEAL_BYTES = 16 };

/* Puts the MAC behind the bytes, as a holder of the key could. */
static inline void datagram_seal(struct buf *bytes, const struct datagram_key *key)
{
    static const unsigned char purpose[] = "millrace-udp-v1.";
    unsigned char seal[DATAGRAM_SEAL_BYTES];
    crypto_generichash_blake2b_state state;
    ASSERT(crypto_generichash_blake2b_init_salt_personal(&state, key->bytes, sizeof key->bytes,
                                                         sizeof seal, NULL, purpose) == 0);
    ASSERT(crypto_generichash_blake2b_update(&state, bytes->bytes, bytes->size) == 0);
    ASSERT(crypto_generichash_blake2b_final(&state, seal, sizeof seal) == 0);
    buf_put(bytes, seal, sizeof seal);
    ASSERT(!bytes->failed);
}

#endif
