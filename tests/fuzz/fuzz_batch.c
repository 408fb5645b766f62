/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_batch.c - any bytes are a batch that an encoder wrote, or are refused.
 *
 * Goal: decoding reads nothing past the bytes, and accepts exactly what encoding the rows that come
 * out gives again.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/data/batch_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct field fields[] = {
    {.type = {.kind = TYPE_INT}},       {.type = {.kind = TYPE_TEXT}},
    {.type = {.kind = TYPE_LIST_TEXT}}, {.type = {.kind = TYPE_LIST_INT}},
    {.type = {.kind = TYPE_BOOL}},      {.type = {TYPE_DECIMAL, 18, 3}},
    {.type = {.kind = TYPE_DOUBLE}},    {.type = {.kind = TYPE_NULL}},
};
static const struct schema schema = {fields, sizeof fields / sizeof fields[0]};

static void check_flags(const struct batch *batch)
{
    for (uint32_t i = 0; i < batch->column_count; i++) {
        const struct column *column = &batch->columns[i];
        for (uint32_t row = 0; row < batch->row_count; row++) {
            ASSERT(column->nulls == NULL || column->nulls[row] <= 1);
            ASSERT(column->type.kind != TYPE_BOOL || column->bools[row] <= 1);
        }
    }
}

static void check_again(const struct batch *batch, const unsigned char *bytes, size_t size)
{
    struct batch_builder builder;
    struct buf again = {0};
    ASSERT(builder_init(&builder, schema, NULL));
    builder_append(&builder, batch, (struct selection){NULL, batch->row_count});
    ASSERT(!builder.failed);
    batch_encode(&builder, &again);
    ASSERT(!again.failed);
    ASSERT(again.size == size);
    ASSERT(memcmp(again.bytes, bytes, size) == 0);
    buf_done(&again);
    builder_done(&builder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    /* A block of its own: aligned as the decoder needs it, and watched at its end. */
    unsigned char *bytes = memory_alloc(NULL, size);
    struct arena arena = {0};
    struct batch batch;
    struct error err = {.text = ""};
    ASSERT(bytes != NULL);
    memcpy(bytes, data, size);
    status code = batch_decode(bytes, size, schema, &arena, &batch, &err);
    ASSERT(code == STATUS_OK || code == STATUS_CORRUPT);
    if (code == STATUS_OK) {
        ASSERT(batch.column_count == schema.count);
        check_flags(&batch);
        check_again(&batch, bytes, size);
    } else {
        ASSERT(err.text[0] != '\0');
    }
    arena_done(&arena);
    memory_free(NULL, bytes, size);
    return 0;
}
