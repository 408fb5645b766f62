/* kept_rows.h - numbered batches kept as they came, and read back in the order of their numbers.
 *
 * Memory: owns the encoded bytes until they are read, the rows afterwards. Threads: one owner.
 */
#ifndef EXEC_KEPT_ROWS_H
#define EXEC_KEPT_ROWS_H

#include "base/buf.h"
#include "data/batch_builder.h"
#include "exec/fold.h"

struct kept_batch {
    struct batch_identity identity;
    uint64_t row_count;
    struct buf bytes;
};

struct kept_rows {
    struct schema schema;
    struct budget *budget;
    uint64_t row_limit; /* Only so many rows from the start can matter; 0: all. */
    uint64_t row_count; /* Kept so far. */
    struct kept_batch *batches;
    size_t count;
    size_t capacity;
    struct batch_builder builder;
    bool builder_ready;
};

/* Moves the bytes in after a look at them; *out_rows is how many rows they hold. */
MUST_USE status kept_rows_add(struct kept_rows *kept, struct batch_identity identity,
                              struct buf *bytes, uint64_t *out_rows, struct error *err);
/* All rows as one batch, by input, lane and number; the encoded bytes are freed on the way. */
MUST_USE status kept_rows_read(struct kept_rows *kept, struct batch *out_batch, struct error *err);
void kept_rows_done(struct kept_rows *kept);

#endif
