/* SPDX-License-Identifier: Apache-2.0 */
/* batch_codec.h - a batch as bytes: what a map sends and a fold applies. A map is a stateless
 * pipeline over one batch; a fold is a pipeline breaker with mergeable state.
 *
 * Canonical: equal rows of one schema give equal bytes. The layout is described in the source.
 *
 * Memory: encoding appends to a buf. A decoded batch borrows the bytes (which must be 8-byte
 * aligned) and takes what else it needs from the arena. Failure: bytes that are not what an encoder
 * wrote for this schema give STATUS_CORRUPT.
 */
#ifndef ENGINE_DATA_BATCH_CODEC_H
#define ENGINE_DATA_BATCH_CODEC_H

#include "engine/base/buf.h"
#include "engine/data/batch_builder.h"
#include "engine/data/column.h"
#include "engine/data/schema.h"

/* Appends to `out`; check out->failed. Returns nothing else that can go wrong. */
void batch_encode(const struct batch_builder *rows, struct buf *out);

MUST_USE status batch_decode(const unsigned char *bytes, size_t size, struct schema schema,
                             struct arena *arena, struct batch *out_batch, struct error *err);

#endif
