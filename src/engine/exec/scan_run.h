/* SPDX-License-Identifier: Apache-2.0 */
/* scan_run.h - one scan at work: chunks in, and every pipeline that starts there fed with them.
 *
 *     scan_run_create -> (scan_run_chunk -> flush each pipeline)* -> scan_run_destroy
 *
 * Between two chunks each of scan_run_pipeline's runs is flushed once (pipeline.h). Memory: owned,
 * charged to the budget. Threads: one owner; the plan and finished folds are shared.
 */
#ifndef ENGINE_EXEC_SCAN_RUN_H
#define ENGINE_EXEC_SCAN_RUN_H

#include "engine/exec/scan/chunk_scan.h"
#include "engine/exec/pipeline.h"
#include "engine/plan/plan.h"
#include "engine/plan/counters.h"

struct scan_run;

struct scan_run_options {
    const struct plan *plan;
    const struct scan *scan;
    const struct finished *finished;
    const uint32_t *shard_counts; /* By fold. */
    uint32_t field_limit;
    struct budget *budget;
};

#define SCAN_RUN_ITSELF UINT32_MAX

/* On failure *out_culprit is the pipeline's number within the scan, or SCAN_RUN_ITSELF. */
MUST_USE status scan_run_create(const struct scan_run_options *options, struct scan_run **out_run,
                                uint32_t *out_culprit, struct error *err);
/* Accepts NULL. */
void scan_run_destroy(struct scan_run *run);

/* All records of the chunk through all pipelines. A failure of the scan itself is STATUS_INPUT (a
 * quote that is never closed), STATUS_LIMIT (a field too long) at scan_run_error_offset, or memory.
 */
MUST_USE status scan_run_chunk(struct scan_run *run, const struct chunk *chunk,
                               uint32_t *out_culprit, struct error *err);
uint32_t scan_run_error_offset(const struct scan_run *run);

/* The counters of the last chunk. */
const struct chunk_counters *scan_run_counters(const struct scan_run *run);
/* Adds them to those of a table. */
void table_counters_add(struct table_counters *table_counters, uint64_t chunk_number,
                        const struct chunk_counters *more);

struct pipeline_run *scan_run_pipeline(struct scan_run *run, uint32_t index);

#endif
