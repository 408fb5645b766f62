/* row_store.h - numbered batches kept as they came, and read back in the order of their numbers.
 *
 * When memory is short they wait in a file instead.
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

struct kept_batch {
    struct batch_identity identity;
    uint64_t row_count;
    struct buf bytes;
    struct spill_extent extent; /* Where the bytes are; no size: in memory. */
};

struct kept_rows {
    struct schema schema;
    struct budget *budget;
    struct spill_place *place; /* Borrowed. */
    uint64_t row_limit;        /* Only so many rows from the start can matter; 0: all. */
    uint64_t row_count;        /* Kept so far, */
    size_t byte_count;         /* as so many bytes, */
    size_t held_bytes;         /* of which so many are in memory. */
    struct kept_batch *batches;
    size_t count;
    size_t capacity;
    struct batch_builder builder;
    bool builder_ready;
    struct arena view; /* Of rows whose texts are in the batches' bytes. */
};

/* Moves the bytes in after a look at them; *out_rows is how many rows they hold. */
MUST_USE status kept_rows_add(struct kept_rows *kept, struct batch_identity identity,
                              struct buf *bytes, uint64_t *out_rows, struct error *err);
/* Writes what is in memory to the place. */
MUST_USE status kept_rows_spill(struct kept_rows *kept, struct error *err);
/* All rows as one batch, by input, lane and number. Valid until kept_rows_done; nothing may be
 * added any more. */
MUST_USE status kept_rows_read(struct kept_rows *kept, struct batch *out_batch, struct error *err);
/* Some of the rows, of about so many bytes, in no order; they are no longer kept. The batch is
 * valid until the next call. */
MUST_USE status kept_rows_take(struct kept_rows *kept, size_t byte_count, struct batch *out_batch,
                               struct error *err);
/* Frees what the last kept_rows_take gave. */
void kept_rows_trim(struct kept_rows *kept);
/* Appends to `out` where the rows lie, by input, lane and number. All are spilled. */
MUST_USE status kept_rows_list(struct kept_rows *kept, struct spill_rows *out, struct error *err);
void kept_rows_done(struct kept_rows *kept);

#endif
