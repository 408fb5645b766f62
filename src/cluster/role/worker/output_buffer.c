/* output_buffer.c - what comes while memory is short goes to the file; what came before stays where
 * it is.
 */
#include "cluster/role/worker/output_buffer.h"

#include "engine/base/assert.h"
#include "engine/base/memory.h"

/* Below so much of the limit a message is not worth memory any more: folds need the rest. */
enum { SHORT_FRACTION = 4 };

static bool memory_is_short(const struct shelf *shelf)
{
    return shelf->store != NULL &&
           budget_room(shelf->budget) < budget_limit(shelf->budget) / SHORT_FRACTION;
}

static status reserve(struct shelf *shelf, struct error *err)
{
    if (shelf->count < shelf->capacity) return STATUS_OK;
    uint64_t grown = shelf->capacity == 0 ? 16 : shelf->capacity * 2;
    struct shelf_item *items =
        memory_resize(NULL, shelf->items, shelf->capacity * sizeof *items, grown * sizeof *items);
    if (items == NULL) return error_memory(err);
    shelf->items = items;
    shelf->capacity = grown;
    return STATUS_OK;
}

status shelf_put(struct shelf *shelf, struct buf *bytes, struct error *err)
{
    TRY(reserve(shelf, err));
    struct shelf_item item = {.bytes = {.budget = shelf->budget}};
    if (bytes->size > 0 && memory_is_short(shelf)) {
        if (shelf->file == NULL) TRY(shelf->store->open(shelf->store, &shelf->file, err));
        TRY(spill_write(shelf->file, bytes->bytes, bytes->size, 0, &item.extent, err));
        buf_done(bytes);
    } else {
        item.bytes = *bytes;
    }
    *bytes = (struct buf){.budget = shelf->budget};
    shelf->items[shelf->count++] = item;
    return STATUS_OK;
}

size_t shelf_size(const struct shelf *shelf, uint64_t number)
{
    ASSERT(number < shelf->count);
    const struct shelf_item *item = &shelf->items[number];
    return item->extent.size > 0 ? item->extent.size : item->bytes.size;
}

status shelf_get(const struct shelf *shelf, uint64_t number, struct buf *out, struct error *err)
{
    ASSERT(number < shelf->count);
    const struct shelf_item *item = &shelf->items[number];
    if (item->extent.size == 0) {
        buf_put(out, item->bytes.bytes, item->bytes.size);
        return out->failed ? error_memory(err) : STATUS_OK;
    }
    struct buf read = {.budget = out->budget};
    status result = spill_read(shelf->file, item->extent, &read, err);
    if (result == STATUS_OK) buf_put(out, read.bytes, read.size);
    if (result == STATUS_OK && out->failed) result = error_memory(err);
    buf_done(&read);
    return result;
}

void shelf_clear(struct shelf *shelf)
{
    for (uint64_t i = 0; i < shelf->count; i++) {
        buf_done(&shelf->items[i].bytes);
    }
    memory_free(NULL, shelf->items, shelf->capacity * sizeof *shelf->items);
    spill_close(shelf->file);
    *shelf = (struct shelf){.budget = shelf->budget, .store = shelf->store};
}
