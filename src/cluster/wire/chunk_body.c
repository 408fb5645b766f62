/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_body.c - the layout of a chunk's body: version, mark, the fields of the struct in their
 * order, as codec.h writes them.
 *
 * It has no checksum of its own: that is beside the body, in a header over HTTP, in a field of
 * CHUNK.
 */
#include "cluster/wire/message.h"

#include "engine/base/assert.h"
#include "engine/data/codec.h"

enum { VERSION = 1, MARK = 'C' };

/* Scans rely on it. */
static bool map_is_within(const struct chunk_body *body)
{
    for (uint32_t i = 0; i < body->column_count; i++) {
        if (body->column_map[i] >= body->file_columns) return false;
    }
    return true;
}

void chunk_body_encode_head(const struct chunk_body *body, struct buf *out)
{
    ASSERT(map_is_within(body));
    size_t start = out->size;
    struct codec_writer writer = codec_begin(out);
    codec_put_u8(&writer, VERSION);
    codec_put_u8(&writer, MARK);
    codec_put_u32(&writer, body->file);
    codec_put_u64(&writer, body->offset);
    codec_put_u64(&writer, body->first_line);
    codec_put_u32(&writer, body->file_columns);
    codec_put_u32s(&writer, body->column_map, body->column_count);
    codec_put_u32(&writer, body->bytes.size);
    ASSERT(out->failed || out->size - start == chunk_body_head_bytes(body->column_count));
}

void chunk_body_encode(const struct chunk_body *body, struct buf *out)
{
    chunk_body_encode_head(body, out);
    buf_put_text(out, body->bytes);
}

status chunk_body_decode(struct text bytes, struct arena *arena, struct chunk_body *out,
                         struct error *err)
{
    struct codec_reader reader = codec_open(bytes, arena);
    struct chunk_body body = {0};
    if (codec_get_u8(&reader) != VERSION) codec_fail(&reader, "it is of another version");
    if (codec_get_u8(&reader) != MARK) codec_fail(&reader, "it does not begin like one");
    body.file = codec_get_u32(&reader);
    body.offset = codec_get_u64(&reader);
    body.first_line = codec_get_u64(&reader);
    body.file_columns = codec_get_u32(&reader);
    body.column_map = codec_get_u32s(&reader, &body.column_count);
    body.bytes = codec_get_text(&reader);
    if (body.file_columns > CHUNK_COLUMNS_MAX) codec_fail(&reader, "it has too many columns");
    if (!map_is_within(&body)) codec_fail(&reader, "a column is not in the file");
    TRY(codec_finish(&reader, "a chunk", err));
    *out = body;
    return STATUS_OK;
}
