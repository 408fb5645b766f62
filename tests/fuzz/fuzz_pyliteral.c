/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_pyliteral.c - plucking from any bytes stays inside them, and its answer can be written
 * again.
 *
 * Strings that were found are written as a list of dictionaries, which must give the same strings.
 */
#include <stddef.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/assert.h"
#include "engine/base/buf.h"
#include "engine/data/pyliteral.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_entry(struct buf *out, struct text string)
{
    buf_put_string(out, "{'name': '");
    for (uint32_t i = 0; i < string.size; i++) {
        unsigned char byte = (unsigned char)string.bytes[i];
        if (byte < 0x20 || byte == '\'' || byte == '\\') {
            buf_format(out, "\\x%02x", byte);
        } else {
            buf_put_u8(out, byte);
        }
    }
    buf_put_string(out, "'}, ");
}

static void check_again(const struct pyliteral_sink *found)
{
    struct buf text = {0};
    buf_put_string(&text, "[");
    for (size_t i = 0; i < found->count; i++) {
        write_entry(&text, found->items[i]);
    }
    buf_put_string(&text, "]");
    ASSERT(!text.failed);
    struct pyliteral_sink again = {.arena = found->arena};
    struct text literal = {(const char *)text.bytes, (uint32_t)text.size};
    ASSERT(pyliteral_pluck(literal, TEXT_LITERAL("name"), &again) == PYLITERAL_OK);
    ASSERT(again.count == found->count);
    for (size_t i = 0; i < found->count; i++) {
        ASSERT(text_equal(again.items[i], found->items[i]));
    }
    buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 1 << 20) return 0;
    struct arena arena;
    arena_init(&arena, NULL);
    struct pyliteral_sink sink = {.arena = &arena};
    struct text literal = {(const char *)data, (uint32_t)size};
    if (pyliteral_pluck(literal, TEXT_LITERAL("name"), &sink) == PYLITERAL_OK) {
        check_again(&sink);
    } else {
        ASSERT(sink.count == 0);
    }
    arena_done(&arena);
    return 0;
}
