/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_manifest.c - any bytes are a manifest that an encoder wrote, or are refused.
 *
 * Goal: decoding reads nothing past the bytes, and accepts exactly what encoding what comes out
 * gives again. The right checksum is put behind the input, which would never be found by chance.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/hash.h"
#include "cluster/wire/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_manifest(const struct manifest *manifest, const struct buf *bytes)
{
    struct buf again = {0};
    ASSERT(manifest_name_valid(manifest->job));
    for (uint32_t i = 0; i < manifest->worker_count; i++) {
        ASSERT(manifest_name_valid(manifest->workers[i].name));
    }
    manifest_encode(manifest, &again);
    ASSERT(!again.failed);
    ASSERT(again.size == bytes->size);
    ASSERT(memcmp(again.bytes, bytes->bytes, bytes->size) == 0);
    buf_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A block of its own, watched at its end. */
    struct buf sealed = {.limit = size + 8};
    struct arena arena = {0};
    struct manifest manifest;
    struct error err = {.text = ""};
    buf_put(&sealed, data, size);
    buf_put_u64(&sealed, hash_bytes(data, size));
    ASSERT(!sealed.failed);
    struct text bytes = {(const char *)sealed.bytes, (uint32_t)sealed.size};
    status code = manifest_decode(bytes, &arena, &manifest, &err);
    ASSERT(code == STATUS_OK || code == STATUS_CORRUPT);
    if (code == STATUS_OK) {
        check_manifest(&manifest, &sealed);
    } else {
        ASSERT(err.text[0] != '\0');
    }
    arena_done(&arena);
    buf_done(&sealed);
    return 0;
}
