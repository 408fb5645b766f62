/* SPDX-License-Identifier: Apache-2.0 */
/* early_filter.h - rows that a join will leave out are left out before expensive conditions.
 *
 * Where a pipeline filters, projects and then joins, most rows may have no partner. The filter of
 * the join's hash table (struct key_filter) knows most of these by their keys, so expensive
 * conditions need not be evaluated for them: a filter that is passed sideways, from the join to the
 * scan below it. Whether that pays shows from the rows so far. The answer is the same: no
 * expression that can fail, or that counts values it could not read, loses a row.
 *
 * Memory: the given arena. Threads: one owner, that of the pipeline.
 */
#ifndef ENGINE_EXEC_EARLY_FILTER_H
#define ENGINE_EXEC_EARLY_FILTER_H

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/plan/plan.h"

struct early_filter;

/* The first operators of such a pipeline. */
enum { EARLY_FILTER_CONDITIONS, EARLY_FILTER_PROJECT, EARLY_FILTER_PROBE };

/* *out_filter is NULL for a pipeline with other operators, or whose projection can fail. */
MUST_USE status early_filter_create(const struct pipeline *pipeline, struct arena *arena,
                                    struct early_filter **out_filter, struct error *err);

/* Whether rows are to be filtered before this condition is evaluated; `known`: the conditions that
 * are not evaluated. Accepts NULL. */
bool early_filter_is_due(struct early_filter *filter, uint32_t condition, const bool *known);
/* So many rows were asked for, and so many got through. */
void early_filter_note(struct early_filter *filter, uint32_t asked_count, uint32_t left_count);

#endif
