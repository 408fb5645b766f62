/* output_buffer.h - encoded messages that are kept until somebody asks: in memory, or in a file
 * when that is short.
 *
 * Memory: owned, charged to the budget. Threads: one owner.
 */
#ifndef CLUSTER_ROLE_WORKER_OUTPUT_BUFFER_H
#define CLUSTER_ROLE_WORKER_OUTPUT_BUFFER_H

#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/exec/fold/spill.h"

struct shelf_item {
    struct buf bytes;           /* Empty when the message is in the file, or is empty itself. */
    struct spill_extent extent; /* Size 0: not in the file. */
};

struct shelf {
    struct budget *budget;
    struct spill_store *store; /* NULL: memory only. */
    struct spill_file *file;   /* NULL until needed. */
    struct shelf_item *items;
    uint64_t count;
    uint64_t capacity;
};

/* Puts the next one on the shelf; the bytes are moved or written. */
MUST_USE status shelf_put(struct shelf *shelf, struct buf *bytes, struct error *err);
size_t shelf_size(const struct shelf *shelf, uint64_t number);
/* Adds the message to what is in `out`. */
MUST_USE status shelf_get(const struct shelf *shelf, uint64_t number, struct buf *out,
                          struct error *err);
/* Nothing is on it, and it may be used again. */
void shelf_clear(struct shelf *shelf);

#endif
