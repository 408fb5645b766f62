/* early_filter.h - rows that a join will leave out are left out before conditions that take long.
 *
 * Where a pipeline filters, projects and then joins, most rows may have no partner. The side
 * table's Bloom filter knows most of these by their keys, so that the dearest conditions need not
 * be asked of them. Whether that pays shows from the rows so far. What comes out is the same:
 * nothing that can fail, or that counts what it could not read, loses a row.
 *
 * Memory: the given arena. Threads: one owner, that of the pipeline.
 */
#ifndef ENGINE_EXEC_EARLY_FILTER_H
#define ENGINE_EXEC_EARLY_FILTER_H

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/plan/plan.h"

struct early_filter;

enum {
    EARLY_FILTER_CONDITIONS,
    EARLY_FILTER_PROJECT,
    EARLY_FILTER_PROBE
}; /* The operators it is about. */

/* *out_filter is NULL for a pipeline that begins otherwise, or has nothing to spare. */
MUST_USE status early_filter_create(const struct pipeline *pipeline, struct arena *arena,
                                    struct early_filter **out_filter, struct error *err);

/* Whether rows are to be sifted before the condition is looked at; `known`: the conditions that
 * are not looked at. Accepts NULL. */
bool early_filter_is_due(struct early_filter *early, uint32_t condition, const bool *known);
/* What became of it. */
void early_filter_note(struct early_filter *early, uint32_t asked_count, uint32_t left_count);

#endif
