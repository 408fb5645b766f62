/* SPDX-License-Identifier: Apache-2.0 */
/* spill_cut.h - rows that lie in a file, as numbered batches of a given size.
 *
 * Memory: one batch; the pieces it is made of are read, and their texts are used where they are.
 * Threads: any number at once.
 */
#ifndef ENGINE_EXEC_FOLD_SPILL_CUT_H
#define ENGINE_EXEC_FOLD_SPILL_CUT_H

#include "engine/base/error.h"
#include "engine/exec/fold/fold.h"
#include "engine/exec/fold/spill_rows.h"

struct spill_window {
    uint64_t first; /* Rows before it are left out. */
    uint64_t count; /* As many are there. */
    uint32_t batch_rows;
};

MUST_USE status spill_cut(const struct spill_rows *rows, struct spill_window window,
                          struct fold_sink *sink, struct error *err);

#endif
