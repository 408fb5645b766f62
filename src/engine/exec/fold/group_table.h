/* SPDX-License-Identifier: Apache-2.0 */
/* group_table.h - groups by key, from one to many millions.
 *
 * Used on both ends of an exchange: a map adds rows and gives partial states, a fold merges these
 * and gives results. A group is a record (group_records.h) that holds its keys and states.
 *
 * Memory: owned by the table, charged to the budget. Threads: one owner.
 * Failure: STATUS_MEMORY, after which the table may only be destroyed or reset.
 */
#ifndef ENGINE_EXEC_FOLD_GROUP_TABLE_H
#define ENGINE_EXEC_FOLD_GROUP_TABLE_H

#include "engine/base/error.h"
#include "engine/data/column.h"
#include "engine/plan/plan.h"

struct group_table;

MUST_USE status group_table_create(const struct grouping *grouping, struct budget *budget,
                                   struct group_table **out_table, struct error *err);
void group_table_destroy(struct group_table *table);
/* Forgets all groups, keeps the memory. */
void group_table_reset(struct group_table *table);

/* Rows of the grouping's raw input. */
MUST_USE status group_table_add(struct group_table *table, const struct batch *batch,
                                struct selection selection, struct error *err);
/* The same as long as it pays: when hardly any of the first rows share their key, a pre-aggregation
 * saves nothing, the table takes no more, and `out_rest` is what it did not take (in the arena, or
 * the selection itself). A function of the rows since the last reset. Not to be mixed with the
 * others. */
MUST_USE status group_table_add_loosely(struct group_table *table, const struct batch *batch,
                                        struct selection selection, struct arena *arena,
                                        struct selection *out_rest, struct error *err);
/* Rows of the grouping's raw input as rows of its partial schema: each a group of its own, in its
 * own place, without going through the table. The fold that merges them brings equal keys together.
 * Borrowed from the batch and the arena; only the selected rows have values. */
MUST_USE status group_table_lift(const struct group_table *table, const struct batch *batch,
                                 struct selection selection, struct arena *arena,
                                 struct batch *out_batch, struct error *err);
/* Rows of the grouping's partial schema. */
MUST_USE status group_table_merge(struct group_table *table, const struct batch *partial,
                                  struct error *err);
/* Without keys there is one group, also when there were no rows: makes sure of it. */
MUST_USE status group_table_need_one(struct group_table *table, struct error *err);

/* How much merging so many rows may take at most, but for texts, and how much ordering takes. */
size_t group_table_merge_need(const struct group_table *table, uint32_t row_count);
size_t group_table_order_need(const struct group_table *table);

uint32_t group_table_count(const struct group_table *table);
uint64_t group_table_hash(const struct group_table *table, uint32_t group);
/* Puts the groups in an order that depends on their keys only (that of their hashes, then of the
 * keys): group i is the i-th, and nothing can be added or merged until a reset. */
MUST_USE status group_table_order(struct group_table *table, struct error *err);

/* Groups first .. first+count-1 as a batch, borrowed from the table and the arena. */
enum group_form { GROUP_PARTIAL, GROUP_RESULT };
MUST_USE status group_table_read(const struct group_table *table, enum group_form form,
                                 uint32_t first, uint32_t count, struct arena *arena,
                                 struct batch *out_batch, struct error *err);

#endif
