/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_client_journal.c - any bytes are a client's journal, or are refused.
 *
 * Goal: reading touches nothing past the bytes, and says of no more of them that they are sound
 * than there are. The first two bytes of the input say where its header ends and its records begin;
 * the mark, sizes and checksums that chance would never find are put in front and between.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/hash.h"
#include "cluster/node/client_journal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define JOURNAL_MARK 0x316c6e6a6172696du

static void put_records(struct buf *out, const uint8_t *data, size_t size)
{
    uint64_t position = 0;
    for (; size >= CLIENT_JOURNAL_RECORD; position++) {
        buf_put(out, data, CLIENT_JOURNAL_RECORD);
        buf_put_u64(out, hash_combine(hash_bytes(data, CLIENT_JOURNAL_RECORD), position));
        data += CLIENT_JOURNAL_RECORD;
        size -= CLIENT_JOURNAL_RECORD;
    }
    buf_put(out, data, size); /* A torn one. */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    size_t header_size = (size_t)data[0] << 8 | data[1];
    data += 2;
    size -= 2;
    if (header_size > size) header_size = size;
    struct buf bytes = {0};
    struct arena arena = {0};
    struct client_journal_record record = {0};
    struct client_journal_extent extent = {0};
    struct error err = {.text = ""};
    buf_put_u64(&bytes, JOURNAL_MARK);
    buf_put_u64(&bytes, header_size);
    buf_put_u64(&bytes, hash_bytes(data, header_size));
    buf_put(&bytes, data, header_size);
    put_records(&bytes, data + header_size, size - header_size);
    ASSERT(!bytes.failed);
    struct text text = {(const char *)bytes.bytes, (uint32_t)bytes.size};
    status code = client_journal_parse(text, &arena, &record, &extent, &err);
    ASSERT(code == STATUS_OK || code == STATUS_CORRUPT);
    if (code == STATUS_OK) {
        ASSERT(extent.byte_count <= bytes.size);
        ASSERT(record.sent_count <= extent.record_count);
        for (uint64_t i = 1; i < record.sent_count; i++) {
            const struct client_sent_chunk *a = &record.sent[i - 1];
            const struct client_sent_chunk *b = &record.sent[i];
            ASSERT(a->scan < b->scan || (a->scan == b->scan && a->number < b->number));
        }
    } else {
        ASSERT(err.text[0] != '\0');
    }
    arena_done(&arena);
    buf_done(&bytes);
    return 0;
}
