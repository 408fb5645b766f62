/* SPDX-License-Identifier: Apache-2.0 */
/* fold_pairs.h - rows of the left side, each with its partners in a table of the right one, as
 * rows.
 *
 * Memory: charged to the shard's budget. Threads: one owner.
 */
#ifndef ENGINE_EXEC_FOLD_FOLD_PAIRS_H
#define ENGINE_EXEC_FOLD_FOLD_PAIRS_H

#include "engine/exec/fold/fold_parts.h"

enum fold_pass {
    PASS_WHOLE, /* The table is the whole right side: a row without a partner there has none. */
    PASS_BLOCK, /* The table is a block of it: rows that have a partner are noted in `matched`. */
    PASS_REST   /* The rows that are not in `matched`, with NULLs. */
};

struct fold_passing {
    enum fold_pass kind;
    const struct join_table *table;
    uint64_t *matched; /* A bit per row of the left side; not for PASS_WHOLE. */
    struct spill_rows *out;
};

/* Left rows have their columns, and maybe others behind them: these are the last in `out` too. */
MUST_USE status fold_pairs_write(struct fold_shard *shard, const struct fold_passing *passing,
                                 const struct spill_rows *left, struct error *err);
/* The same for a left side that is in memory. */
MUST_USE status fold_pairs_write_batch(struct fold_shard *shard, const struct fold_passing *passing,
                                       const struct batch *left, struct error *err);

#endif
