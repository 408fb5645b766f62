/* SPDX-License-Identifier: Apache-2.0 */
/* row_pairs.h - an operator's new rows: each is a row of its batch beside a row of another one.
 *
 * Joins and UNNEST make any number of rows from one. At most PIPELINE_ROWS are gathered before they
 * are pushed on, so that no multiplication of rows needs more memory than one batch.
 *
 * Memory: the run's batch_arena. Threads: one owner, that of the run.
 */
#ifndef ENGINE_EXEC_ROW_PAIRS_H
#define ENGINE_EXEC_ROW_PAIRS_H

#include "engine/exec/op.h"

struct row_pairs {
    uint32_t rows[PIPELINE_ROWS];   /* Of the batch, */
    uint32_t others[PIPELINE_ROWS]; /* each with this one; ROW_NONE: with NULLs. */
    uint32_t count;
};

MUST_USE status row_pairs_new(struct op_run *op, struct row_pairs **out_pairs, struct error *err);
/* Gathers both halves, pushes them on and empties the pairs. Without `others`, the second half is
 * their numbers as one INT column. STATUS_CANCELLED: another thread failed, or the user has
 * enough. */
MUST_USE status row_pairs_push(struct op_run *op, const struct batch *batch,
                               const struct batch *others, struct row_pairs *pairs,
                               struct error *err);

#endif
