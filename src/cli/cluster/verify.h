/* SPDX-License-Identifier: Apache-2.0 */
/* verify.h - compares the answers of two runs: every row of every query, and the audit.
 *
 *     verify_open -> verify_rows* -> verify_compare -> verify_close
 *
 * It keeps only hashes of the rows as CSV, so that answers of any length can be compared. The cut
 * into batches does not matter.
 *
 * Threads: one owner.
 */
#ifndef CLI_CLUSTER_VERIFY_H
#define CLI_CLUSTER_VERIFY_H

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/data/column.h"
#include "engine/local/audit.h"
#include "engine/plan/plan.h"

struct verify_query;

struct verify {
    const struct plan *plan;
    struct verify_query *queries; /* By the plan's queries; NULL: not open. */
};

/* The plan is borrowed; memory from the arena. */
MUST_USE status verify_open(struct verify *verify, const struct plan *plan, struct arena *arena,
                            struct error *err);
/* Rows of a query in order; queries in any. */
MUST_USE status verify_rows(struct verify *verify, uint32_t query, const struct batch *batch,
                            struct error *err);

struct verify_side {
    struct verify *rows;
    const struct audit *audit;
};
/* STATUS_INTERNAL names the first difference. Histories may differ. */
MUST_USE status verify_compare(struct verify_side cluster, struct verify_side local,
                               struct error *err);
/* Accepts a zeroed one. */
void verify_close(struct verify *verify);

#endif
