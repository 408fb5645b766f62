/* SPDX-License-Identifier: Apache-2.0 */
/* batch_builder.h - rows gathered from many batches into one that owns its values.
 *
 *     builder_init -> (builder_append* -> builder_batch -> builder_reset)* -> builder_done
 *
 * Appending is sticky: append freely, builder_batch fails once when memory ran out.
 *
 * Memory: values, texts and list elements are copied into the builder. The batch it gives is a view
 * that is valid until the next append, reset or done. Threads: one owner.
 */
#ifndef ENGINE_DATA_BATCH_BUILDER_H
#define ENGINE_DATA_BATCH_BUILDER_H

#include "engine/base/buf.h"
#include "engine/data/column.h"
#include "engine/data/schema.h"

struct builder_column {
    struct buf values;   /* Texts and lists: end offsets (uint32_t) into bytes or elements. */
    struct buf nulls;    /* Filled only once a NULL was seen. */
    struct buf bytes;    /* Of texts, or of a list's texts. */
    struct buf elements; /* Of lists: int64_t, or end offsets into bytes. */
};

struct batch_builder {
    struct schema schema;
    struct builder_column *columns;
    uint32_t row_count;
    struct arena arena; /* For the columns and for views. */
    struct arena_mark mark;
    bool failed;    /* Some append did not succeed: memory, or */
    bool too_large; /* more rows, text or elements than a batch can number. */
};

MUST_USE bool builder_init(struct batch_builder *builder, struct schema schema,
                           struct budget *budget);
void builder_done(struct batch_builder *builder);
void builder_reset(struct batch_builder *builder);
/* Appends the selected rows; the batch has at least the schema's columns. */
void builder_append(struct batch_builder *builder, const struct batch *batch,
                    struct selection selection);
/* False: some append, or the view itself, ran out of memory. */
MUST_USE bool builder_batch(struct batch_builder *builder, struct batch *out_batch);

#endif
