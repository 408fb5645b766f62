/* SPDX-License-Identifier: Apache-2.0 */
/* result_page.c - consecutive batches of a result as one run of bytes with a checksum.
 *
 *     u8 version, u64 total, u64 number of the first batch (0: there is none),
 *     u32 count, as many aligned texts, checksum
 *
 * Batches are consecutive, so only the number of the first is written.
 */
#include "cluster/wire/api.h"

#include "engine/base/assert.h"
#include "engine/data/codec.h"

enum { VERSION = 1, HEAD_BYTES = 64, BATCH_BYTES = 4, PADDING_MAX = 7 };

void result_page_encode(const struct result_page *page, struct buf *out)
{
    uint64_t first = page->batch_count > 0 ? page->batches[0].number : 0;
    size_t size = HEAD_BYTES;
    for (uint32_t i = 0; i < page->batch_count; i++) {
        ASSERT(page->batches[i].number == first + i);
        size += BATCH_BYTES + PADDING_MAX + (size_t)page->batches[i].bytes.size;
    }
    ASSERT(page->batch_count <= page->total);
    ASSERT(first <= page->total - page->batch_count);
    /* A limit may be met exactly: then there is no room for more than is needed. */
    if (out->limit == 0 && !buf_reserve(out, size)) return;
    struct codec_writer writer = codec_begin(out);
    codec_put_u8(&writer, VERSION);
    codec_put_u64(&writer, page->total);
    codec_put_u64(&writer, first);
    codec_put_u32(&writer, page->batch_count);
    for (uint32_t i = 0; i < page->batch_count; i++) {
        codec_put_aligned(&writer, page->batches[i].bytes);
    }
    codec_seal(&writer);
}

status result_page_decode(struct text bytes, struct arena *arena, struct result_page *out,
                          struct error *err)
{
    struct result_page page = {0};
    struct codec_reader reader = codec_open_sealed(bytes, arena);
    ASSERT((uintptr_t)bytes.bytes % 8 == 0);
    if (codec_get_u8(&reader) != VERSION) codec_fail(&reader, "it has another version");
    page.total = codec_get_u64(&reader);
    uint64_t first = codec_get_u64(&reader);
    struct result_batch *batches =
        CODEC_ARRAY(&reader, struct result_batch, BATCH_BYTES, UINT32_MAX, &page.batch_count);
    if (page.batch_count > page.total || first > page.total - page.batch_count ||
        (page.batch_count == 0 && first != 0)) {
        codec_fail(&reader, "its numbers don't fit together");
        page.batch_count = 0;
    }
    for (uint32_t i = 0; i < page.batch_count; i++) {
        batches[i].number = first + i;
        batches[i].bytes = codec_get_aligned(&reader);
    }
    TRY(codec_finish(&reader, "a page of results", err));
    page.batches = batches;
    *out = page;
    return STATUS_OK;
}
