/* SPDX-License-Identifier: Apache-2.0 */
/* output_buffer.h - encoded messages that are kept until they are requested: in memory, or in a
 * file when memory is short.
 *
 * Memory: owned, charged to the budget. Threads: one owner.
 */
#ifndef CLUSTER_ROLE_WORKER_OUTPUT_BUFFER_H
#define CLUSTER_ROLE_WORKER_OUTPUT_BUFFER_H

#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/exec/fold/spill.h"

struct output_buffer_item {
    struct buf bytes;           /* Empty when the message is in the file, or is empty itself. */
    struct spill_extent extent; /* Size 0: not in the file. */
};

struct output_buffer {
    struct budget *budget;
    struct spill_store *store; /* NULL: memory only. */
    struct spill_file *file;   /* NULL until needed. */
    struct output_buffer_item *items;
    uint32_t count;
    uint32_t capacity;
};

/* Appends a message; the bytes are moved or written. */
MUST_USE status output_buffer_put(struct output_buffer *output_buffer, struct buf *bytes,
                                  struct error *err);
size_t output_buffer_size(const struct output_buffer *output_buffer, uint64_t number);
/* Appends the message to `out`. */
MUST_USE status output_buffer_get(const struct output_buffer *output_buffer, uint64_t number,
                                  struct buf *out, struct error *err);
/* The buffer is empty then, and may be used again. */
void output_buffer_clear(struct output_buffer *output_buffer);

#endif
