/* SPDX-License-Identifier: Apache-2.0 */
/* row_store.h - numbered batches stored as they came, and read back in the order of their numbers.
 *
 * When memory is short they are spilled to a file.
 *
 * Memory: owns the encoded bytes until they are read, the rows afterwards. Texts are not copied for
 * that where they are in memory: then it owns both. Threads: one owner.
 */
#ifndef ENGINE_EXEC_FOLD_ROW_STORE_H
#define ENGINE_EXEC_FOLD_ROW_STORE_H

#include "engine/base/buf.h"
#include "engine/data/batch_builder.h"
#include "engine/exec/fold/fold.h"
#include "engine/exec/fold/spill_rows.h"

struct stored_batch {
    struct batch_identity identity;
    uint64_t row_count;
    struct buf bytes;
    struct spill_extent extent; /* Where the bytes are; no size: in memory. */
};

struct row_store {
    struct schema schema;
    struct budget *budget;
    struct spill_place *place; /* Borrowed. */
    uint64_t row_limit;        /* Only so many rows from the start can matter; 0: all. */
    uint64_t row_count;        /* Stored so far, */
    size_t byte_count;         /* as so many bytes, */
    size_t held_bytes;         /* of which so many are in memory. */
    ARRAY_OF(struct stored_batch) batches;
    struct batch_builder builder;
    bool builder_ready;
    struct arena view; /* Of rows whose texts are in the batches' bytes. */
};

/* Moves the bytes in after a look at them; *out_rows is how many rows they hold. */
MUST_USE status row_store_add(struct row_store *store, struct batch_identity identity,
                              struct buf *bytes, uint64_t *out_rows, struct error *err);
/* Writes what is in memory to the place. */
MUST_USE status row_store_spill(struct row_store *store, struct error *err);
/* All rows as one batch, by input, producer and number. Valid until row_store_done; nothing may be
 * added any more. */
MUST_USE status row_store_read(struct row_store *store, struct batch *out_batch, struct error *err);
/* Removes some of the rows, of about so many bytes, in no order. The batch is valid until the next
 * call. */
MUST_USE status row_store_take(struct row_store *store, size_t byte_count, struct batch *out_batch,
                               struct error *err);
/* Frees what the last row_store_take gave. */
void row_store_trim(struct row_store *store);
/* Appends to `out` where the rows lie, by input, producer and number. All are spilled. */
MUST_USE status row_store_list(struct row_store *store, struct spill_rows *out, struct error *err);
void row_store_done(struct row_store *store);

#endif
