/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c - the one place that includes xxHash. */
#include "engine/base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t hash_bytes(const void *bytes, size_t size)
{
    return XXH3_64bits(bytes, size);
}
