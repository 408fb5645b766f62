/* SPDX-License-Identifier: Apache-2.0 */
/* aggregate_state.h - the state of an aggregate for one group, and the columns it is sent in.
 *
 * A state is a few words in a group's record (group_table.h). All of them are functions of the
 * multiset of values seen: sums are exact and checked for overflow only at the end, the least and
 * greatest are decided by value. So it does not matter in which order batches arrive. A sum of
 * DOUBLEs is a superaccumulator (engine/base/exact_sum.h): it is rounded once, at the end.
 *
 * The partial columns of a state are laid out by engine/sql/plan_builder.c (state_fields):
 * - count: the count.
 * - sum, avg: the count; the sum's low and high half. DOUBLE has a fourth column, with the bytes of
 *   an exact sum that does not fit the halves.
 * - min, max: the value, NULL when there is none.
 * - arg_min, arg_max: the value, and what it was chosen by.
 */
#ifndef ENGINE_EXEC_FOLD_AGGREGATE_STATE_H
#define ENGINE_EXEC_FOLD_AGGREGATE_STATE_H

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/data/column.h"
#include "engine/plan/plan.h"

/* The aggregate whose state this one can share: sum(x), avg(x) and count(x) need the same. */
uint32_t aggregate_state_owner(const struct aggregate *aggregates, uint32_t count, uint32_t index);

/* Bytes in the record; a multiple of 8. A zeroed state is an empty one. */
size_t aggregate_state_size(const struct aggregate *aggregate);

/* The states of one aggregate: of record i at records[i] + offset. */
struct state_list {
    const struct aggregate *aggregate;
    unsigned char *const *records;
    size_t offset;
    struct arena *arena;   /* For texts and wide sums. */
    struct arena *scratch; /* For what merging needs no longer than that. */
};

/* Adds the value of the i-th selected row to the i-th state. False: out of memory. */
MUST_USE bool aggregate_state_add(const struct state_list *states, const struct batch *batch,
                                  struct selection selection);
/* Merges the partial state in row i into the i-th state. False: out of memory or damaged. */
MUST_USE bool aggregate_state_merge(const struct state_list *states, const struct batch *partial);

/* The partial columns of states that have seen one of the selected rows each: what a group of that
 * row alone would give, in the row's place; the places of other rows are left as they are.
 * `columns` have their types, values may be borrowed from the batch. False: out of memory. */
MUST_USE bool aggregate_state_lift(const struct aggregate *aggregate, const struct batch *batch,
                                   struct selection selection, struct column *columns,
                                   struct arena *arena);

/* Fills the aggregate's partial columns, rows 0..count-1, or its result column. `columns` are made
 * by the caller with column_init; nulls arrays are added here where needed. */
MUST_USE bool aggregate_state_partial(const struct state_list *states, uint32_t count,
                                      struct column *columns, struct arena *arena);
MUST_USE status aggregate_state_result(const struct state_list *states, uint32_t count,
                                       struct column *column, struct arena *arena,
                                       struct error *err);

#endif
