/* SPDX-License-Identifier: Apache-2.0 */
/* spill_merge.h - the merge phase of an external sort: sorted runs of rows become one.
 *
 * Memory: a piece of every run that is read, and one that is written. Threads: one owner.
 */
#ifndef ENGINE_EXEC_FOLD_SPILL_MERGE_H
#define ENGINE_EXEC_FOLD_SPILL_MERGE_H

#include "engine/base/error.h"
#include "engine/exec/fold/spill_rows.h"
#include "engine/plan/plan.h"

/* Runs in an order that shows where rows are equal: those of an earlier run come first. */
struct spill_runs {
    struct spill_rows *items; /* An array of array.h. */
    uint32_t count;
    uint32_t capacity;
    struct budget *budget; /* Borrowed. */
};

/* Takes the rows; *rows is then empty. */
MUST_USE status spill_runs_add(struct spill_runs *runs, struct spill_rows *rows, struct error *err);
void spill_runs_done(struct spill_runs *runs);

struct spill_merge {
    const struct sort_key *keys;
    uint32_t key_count;
    const struct ranking *cut; /* Only the best rows of each partition; NULL: all. */
    uint64_t row_limit;        /* No more are wanted; UINT64_MAX: all. */
    uint32_t fan;              /* So many runs are read at a time. */
};

/* Merges the runs into `out`, which has their columns or the first of them. When there are more
 * runs than the fan, some are merged first, into the place where they lie. */
MUST_USE status spill_merge(const struct spill_merge *merge, struct spill_runs *runs,
                            struct spill_rows *out, struct error *err);

#endif
