/* SPDX-License-Identifier: Apache-2.0 */
/* common_filter.h - conditions that several pipelines of a scan begin with, evaluated once.
 *
 *     common_filter_create -> common_filter_run* -> common_filter_destroy
 *
 * Creating it tells every pipeline which conditions it need not evaluate any more. Running it
 * gives, by pipeline, the rows that are left. What a pipeline sends, whether it fails and what it
 * counts are as if it had evaluated its conditions alone.
 *
 * Memory: the given arena, and what the evals own; the selections are valid until the next run.
 * Threads: one owner, that of the pipelines.
 */
#ifndef ENGINE_EXEC_COMMON_FILTER_H
#define ENGINE_EXEC_COMMON_FILTER_H

#include "engine/base/arena.h"
#include "engine/exec/pipeline.h"

struct common_filter;

struct common_filter_options {
    struct pipeline_run *const *runs; /* Of one scan; borrowed. */
    uint32_t run_count;
    const struct finished *finished;
    struct budget *budget;
};

/* On failure *out_culprit is the number of a pipeline. */
MUST_USE status common_filter_create(const struct common_filter_options *options,
                                     struct arena *arena, struct common_filter **out_filter,
                                     uint32_t *out_culprit, struct error *err);
/* Accepts NULL. */
void common_filter_destroy(struct common_filter *filter);

MUST_USE status common_filter_run(struct common_filter *filter, const struct batch *batch,
                                  struct selection selection, struct materializer *materializer,
                                  uint32_t *out_culprit, struct error *err);
/* What the last run left of its selection for a pipeline. */
struct selection common_filter_left(const struct common_filter *filter, uint32_t run);

#endif
