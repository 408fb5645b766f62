/* SPDX-License-Identifier: Apache-2.0 */
/* output_buffer.c - a message that comes while memory is short goes to the file; those that came
 * before stay where they are.
 */
#include "cluster/role/worker/output_buffer.h"

#include "engine/base/array.h"
#include "engine/base/assert.h"

/* A quarter of the limit is left to folds: they can't work without memory, kept messages can. */
enum { SHORT_FRACTION = 4 };

static bool memory_is_short(const struct output_buffer *output_buffer)
{
    return output_buffer->store != NULL && budget_room(output_buffer->budget) <
                                               budget_limit(output_buffer->budget) / SHORT_FRACTION;
}

status output_buffer_put(struct output_buffer *output_buffer, struct buf *bytes, struct error *err)
{
    if (!array_reserve(output_buffer, NULL, (size_t)output_buffer->count + 1)) {
        return error_memory(err);
    }
    struct output_buffer_item item = {.bytes = {.budget = output_buffer->budget}};
    if (bytes->size > 0 && memory_is_short(output_buffer)) {
        if (output_buffer->file == NULL)
            TRY(output_buffer->store->open(output_buffer->store, &output_buffer->file, err));
        TRY(spill_write(output_buffer->file, bytes->bytes, bytes->size, 0, &item.extent, err));
        buf_done(bytes);
    } else {
        item.bytes = *bytes;
    }
    *bytes = (struct buf){.budget = output_buffer->budget};
    output_buffer->items[output_buffer->count++] = item;
    return STATUS_OK;
}

size_t output_buffer_size(const struct output_buffer *output_buffer, uint64_t number)
{
    ASSERT(number < output_buffer->count);
    const struct output_buffer_item *item = &output_buffer->items[number];
    return item->extent.size > 0 ? item->extent.size : item->bytes.size;
}

status output_buffer_get(const struct output_buffer *output_buffer, uint64_t number,
                         struct buf *out, struct error *err)
{
    ASSERT(number < output_buffer->count);
    const struct output_buffer_item *item = &output_buffer->items[number];
    if (item->extent.size == 0) {
        buf_put(out, item->bytes.bytes, item->bytes.size);
        return out->failed ? error_memory(err) : STATUS_OK;
    }
    struct buf read = {.budget = out->budget};
    status result = spill_read(output_buffer->file, item->extent, &read, err);
    if (result == STATUS_OK) buf_put(out, read.bytes, read.size);
    if (result == STATUS_OK && out->failed) result = error_memory(err);
    buf_done(&read);
    return result;
}

void output_buffer_clear(struct output_buffer *output_buffer)
{
    for (uint32_t i = 0; i < output_buffer->count; i++) {
        buf_done(&output_buffer->items[i].bytes);
    }
    array_done(output_buffer, NULL);
    spill_close(output_buffer->file);
    *output_buffer =
        (struct output_buffer){.budget = output_buffer->budget, .store = output_buffer->store};
}
