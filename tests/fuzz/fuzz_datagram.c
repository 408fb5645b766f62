/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_datagram.c - any bytes are a datagram that an encoder wrote, or are refused.
 *
 * Goal: decoding reads nothing past the bytes, and accepts exactly what encoding what comes out
 * gives again. The input is tried as it is, which nobody's key fits, and with the right code behind
 * it, as whoever has the key could send it.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/assert.h"
#include "unit/cluster/wire/datagram_seal.h"
#include "cluster/wire/datagram.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct datagram_key key = {"a key that everybody knows......"};

static status try(struct text bytes)
{
    struct datagram datagram;
    struct error err = {.text = ""};
    status code = datagram_decode(bytes, &key, &datagram, &err);
    if (code != STATUS_OK) {
        ASSERT(code == STATUS_CORRUPT);
        ASSERT(err.text[0] != '\0');
        return code;
    }
    struct buf again = {0};
    datagram_encode(&datagram, &key, &again);
    ASSERT(!again.failed);
    ASSERT(again.size == bytes.size);
    ASSERT(memcmp(again.bytes, bytes.bytes, bytes.size) == 0);
    buf_done(&again);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 2 * DATAGRAM_BYTES_MAX) return 0;
    ASSERT(try((struct text){(const char *)data, (uint32_t)size}) == STATUS_CORRUPT);
    struct buf sealed = {.limit = size + DATAGRAM_SEAL_BYTES};
    buf_put(&sealed, data, size);
    datagram_seal(&sealed, &key);
    (void)try((struct text){(const char *)sealed.bytes, (uint32_t)sealed.size});
    buf_done(&sealed);
    return 0;
}
