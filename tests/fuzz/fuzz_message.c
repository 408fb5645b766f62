/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_message.c - any bytes are a message that an encoder wrote, or are refused.
 *
 * Goal: decoding reads nothing past the bytes, and accepts exactly what encoding what comes out
 * gives again. The input is tried as the fields of a message, without a body and behind one, with
 * the right size and checksum, which would never be found by chance; as a whole message; and as the
 * body of a chunk.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/assert.h"
#include "cluster/wire/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_bytes(struct text part, struct text whole)
{
    ASSERT((uintptr_t)part.bytes % 8 == 0);
    ASSERT(part.bytes >= whole.bytes);
    ASSERT(part.bytes + part.size <= whole.bytes + whole.size);
}

static void check_message(const struct message *message, struct text bytes)
{
    for (uint32_t i = 0; message->kind == MESSAGE_OUTPUT && i < message->output.item_count; i++) {
        check_bytes(message->output.items[i].bytes, bytes);
    }
    for (uint32_t i = 0; message->kind == MESSAGE_RESULT && i < message->result.batch_count; i++) {
        check_bytes(message->result.batches[i].bytes, bytes);
    }
    struct buf again = {0};
    message_encode(message, &again);
    ASSERT(!again.failed);
    ASSERT(again.size == bytes.size);
    ASSERT(memcmp(again.bytes, bytes.bytes, bytes.size) == 0);
    buf_done(&again);
}

static void try_message(struct text bytes)
{
    struct arena arena = {0};
    struct message message;
    struct error err = {.text = ""};
    status code = message_decode(bytes, &arena, &message, &err);
    ASSERT(code == STATUS_OK || code == STATUS_CORRUPT);
    if (code == STATUS_OK) {
        check_message(&message, bytes);
    } else {
        ASSERT(err.text[0] != '\0');
    }
    arena_done(&arena);
}

static void try_chunk_body(struct text bytes)
{
    struct arena arena = {0};
    struct chunk_body body;
    struct error err = {.text = ""};
    status code = chunk_body_decode(bytes, &arena, &body, &err);
    ASSERT(code == STATUS_OK || code == STATUS_CORRUPT);
    if (code == STATUS_OK) {
        struct buf again = {0};
        chunk_body_encode(&body, &again);
        ASSERT(!again.failed);
        ASSERT(again.size == bytes.size);
        ASSERT(memcmp(again.bytes, bytes.bytes, bytes.size) == 0);
        buf_done(&again);
    } else {
        ASSERT(err.text[0] != '\0');
    }
    arena_done(&arena);
}

/* In a block of its own: aligned as the decoder needs it, and watched at its end. */
static void try_fields(const uint8_t *data, size_t size, size_t body_size)
{
    struct buf bytes = {.limit = body_size + size + 12};
    static const uint8_t body[8] = {0}; /* So that it may be one of fewer bytes, and zeros. */
    ASSERT(body_size <= sizeof body);
    buf_put(&bytes, body, body_size);
    buf_put(&bytes, data, size);
    buf_put_u32(&bytes, (uint32_t)size);
    buf_put_u64(&bytes, hash_bytes(bytes.bytes + body_size, bytes.size - body_size));
    ASSERT(!bytes.failed);
    try_message((struct text){(const char *)bytes.bytes, (uint32_t)bytes.size});
    buf_done(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole = {.limit = size + 1};
    buf_put(&whole, data, size);
    ASSERT(!whole.failed);
    try_message((struct text){(const char *)whole.bytes, (uint32_t)whole.size});
    buf_done(&whole);
    try_fields(data, size, 0);
    try_fields(data, size, 8);
    try_chunk_body((struct text){(const char *)data, (uint32_t)size});
    return 0;
}
