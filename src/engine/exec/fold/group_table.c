/* SPDX-License-Identifier: Apache-2.0 */
/* group_table.c - records of groups (group_records.h) and the states of aggregates in them.
 *
 * Rows go in slices: first the records of all rows of a slice are found, then one aggregate after
 * the other updates its states in them, in a loop of its own.
 */
#include "engine/exec/fold/group_table.h"

#include <stdlib.h>

#include "engine/base/assert.h"
#include "engine/exec/fold/aggregate_state.h"
#include "engine/exec/fold/group_records.h"

enum {
    /* When of the first rows so few share their key with another, there are some fifty thousand
     * keys or more: as many as a chunk has rows, and looking for the others' is in vain. */
    TRIAL_ROWS = 512,
    TRIAL_SHARED = 3,
};

struct group_table {
    const struct grouping *grouping;
    struct budget *budget;
    struct group_records groups;
    size_t *state_offsets;
    uint32_t *state_owners;  /* Whose state it is that an aggregate has: its own, or another's. */
    uint32_t *merge_keys;    /* 0, 1, 2...: keys are the first columns of a partial batch. */
    uint32_t tried_rows;     /* Up to TRIAL_ROWS, */
    bool passes;             /* and whether it takes no more. */
    struct arena arena;      /* Lives as long as the table. */
    struct arena scratch;    /* Of one slice of rows. */
    unsigned char **records; /* GROUP_SLICE_ROWS of them. */
};

static bool lay_out_states(struct group_table *table)
{
    const struct grouping *grouping = table->grouping;
    table->state_offsets = arena_array(&table->arena, size_t, grouping->aggregate_count + 1);
    table->state_owners = arena_array(&table->arena, uint32_t, grouping->aggregate_count + 1);
    table->merge_keys = arena_array(&table->arena, uint32_t, grouping->key_count + 1);
    table->records = arena_array(&table->arena, unsigned char *, GROUP_SLICE_ROWS);
    if (table->state_offsets == NULL || table->state_owners == NULL || table->merge_keys == NULL ||
        table->records == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < grouping->key_count; i++) {
        table->merge_keys[i] = i;
    }
    size_t size = 0;
    for (uint32_t i = 0; i < grouping->aggregate_count; i++) {
        table->state_owners[i] =
            aggregate_state_owner(grouping->aggregates, grouping->aggregate_count, i);
        if (table->state_owners[i] != i) continue;
        table->state_offsets[i] = size;
        size += aggregate_state_size(&grouping->aggregates[i]);
    }
    struct group_layout layout = {grouping->partial, grouping->key_count, size};
    size_t first;
    if (!group_records_init(&table->groups, layout, table->budget, &first)) return false;
    for (uint32_t i = 0; i < grouping->aggregate_count; i++) {
        table->state_offsets[i] += first;
    }
    for (uint32_t i = 0; i < grouping->aggregate_count; i++) {
        table->state_offsets[i] = table->state_offsets[table->state_owners[i]];
    }
    return true;
}

status group_table_create(const struct grouping *grouping, struct budget *budget,
                          struct group_table **out_table, struct error *err)
{
    struct group_table *table = memory_alloc(budget, sizeof *table);
    if (table == NULL) return error_memory(err);
    *table = (struct group_table){.grouping = grouping, .budget = budget};
    arena_init(&table->arena, budget);
    arena_init(&table->scratch, budget);
    if (!lay_out_states(table)) {
        group_table_destroy(table);
        return error_memory(err);
    }
    *out_table = table;
    return STATUS_OK;
}

void group_table_destroy(struct group_table *table)
{
    if (table == NULL) return;
    struct budget *budget = table->budget;
    group_records_done(&table->groups);
    arena_done(&table->arena);
    arena_done(&table->scratch);
    memory_free(budget, table, sizeof *table);
}

void group_table_reset(struct group_table *table)
{
    group_records_reset(&table->groups);
    arena_reset(&table->scratch);
    table->tried_rows = 0;
    table->passes = false;
}

static struct state_list states_of(struct group_table *table, uint32_t aggregate)
{
    return (struct state_list){
        .aggregate = &table->grouping->aggregates[aggregate],
        .records = table->records,
        .offset = table->state_offsets[aggregate],
        .arena = &table->groups.texts,
        .scratch = &table->scratch,
    };
}

static status add_states(struct group_table *table, const struct batch *batch,
                         struct selection selection, struct error *err)
{
    for (uint32_t i = 0; i < table->grouping->aggregate_count; i++) {
        if (table->state_owners[i] != i) continue;
        struct state_list states = states_of(table, i);
        if (!aggregate_state_add(&states, batch, selection)) return error_memory(err);
    }
    return STATUS_OK;
}

/* The rows of a slice: a part of the selection, or of the batch itself. */
struct rows_slice {
    struct batch batch;
    struct selection selection;
};

static struct rows_slice slice_at(const struct batch *batch, struct selection selection,
                                  uint32_t first, struct column *columns)
{
    uint32_t count = selection.count - first;
    if (count > GROUP_SLICE_ROWS) count = GROUP_SLICE_ROWS;
    if (selection.rows != NULL) {
        return (struct rows_slice){*batch, {selection.rows + first, count}};
    }
    return (struct rows_slice){batch_slice(batch, first, count, columns), {NULL, count}};
}

status group_table_add(struct group_table *table, const struct batch *batch,
                       struct selection selection, struct error *err)
{
    const uint32_t *keys = table->grouping->key_columns;
    struct column *columns = arena_array(&table->scratch, struct column, batch->column_count + 1);
    if (columns == NULL) return error_memory(err);
    for (uint32_t first = 0; first < selection.count; first += GROUP_SLICE_ROWS) {
        struct rows_slice slice = slice_at(batch, selection, first, columns);
        if (!group_records_find(&table->groups, &slice.batch, keys, slice.selection,
                                table->records)) {
            return error_memory(err);
        }
        TRY(add_states(table, &slice.batch, slice.selection, err));
    }
    arena_reset(&table->scratch);
    return STATUS_OK;
}

/* Adds the first rows and decides what becomes of the others, which it gives. */
static status try_rows(struct group_table *table, const struct batch *batch,
                       struct selection selection, struct arena *arena, struct selection *out_rest,
                       struct error *err)
{
    uint32_t trial = TRIAL_ROWS - table->tried_rows;
    if (trial > selection.count) trial = selection.count;
    TRY(group_table_add(table, batch, (struct selection){selection.rows, trial}, err));
    table->tried_rows += trial;
    table->passes =
        table->tried_rows == TRIAL_ROWS && table->groups.count + TRIAL_SHARED >= TRIAL_ROWS;
    uint32_t count = selection.count - trial;
    uint32_t *rows = arena_array(arena, uint32_t, (size_t)count + 1);
    if (rows == NULL) return error_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = selection_row(selection, trial + i);
    }
    *out_rest = (struct selection){rows, count};
    return STATUS_OK;
}

status group_table_add_loosely(struct group_table *table, const struct batch *batch,
                               struct selection selection, struct arena *arena,
                               struct selection *out_rest, struct error *err)
{
    struct selection rest = selection;
    if (table->tried_rows < TRIAL_ROWS) TRY(try_rows(table, batch, selection, arena, &rest, err));
    if (!table->passes && rest.count > 0) {
        TRY(group_table_add(table, batch, rest, err));
        rest.count = 0;
    }
    *out_rest = rest;
    return STATUS_OK;
}

/* Equal doubles have one form as keys; every other key is as it came. */
static bool lift_key(const struct column *key, const struct batch *batch,
                     struct selection selection, struct column *out, struct arena *arena)
{
    if (key->type.kind != TYPE_DOUBLE) {
        out->data = key->data;
    } else {
        if (!column_init(out, out->type, batch->row_count, arena)) return false;
        for (uint32_t i = 0; i < selection.count; i++) {
            uint32_t row = selection_row(selection, i);
            out->ints[row] = column_is_null(key, row) ? 0 : group_key_word(key, row);
        }
    }
    out->nulls = key->nulls;
    return true;
}

status group_table_lift(const struct group_table *table, const struct batch *batch,
                        struct selection selection, struct arena *arena, struct batch *out_batch,
                        struct error *err)
{
    const struct grouping *grouping = table->grouping;
    struct schema schema = grouping->partial;
    struct column *columns = arena_array(arena, struct column, schema.count + 1);
    if (columns == NULL) return error_memory(err);
    for (uint32_t i = 0; i < schema.count; i++) {
        columns[i].type = schema.fields[i].type;
    }
    for (uint32_t i = 0; i < grouping->key_count; i++) {
        const struct column *key = &batch->columns[grouping->key_columns[i]];
        ASSERT(key->type.kind == columns[i].type.kind);
        if (!lift_key(key, batch, selection, &columns[i], arena)) return error_memory(err);
    }
    for (uint32_t i = 0; i < grouping->aggregate_count; i++) {
        const struct aggregate *aggregate = &grouping->aggregates[i];
        if (!aggregate_state_lift(aggregate, batch, selection, &columns[aggregate->state_column],
                                  arena)) {
            return error_memory(err);
        }
    }
    *out_batch = (struct batch){
        .row_count = batch->row_count, .column_count = schema.count, .columns = columns};
    return STATUS_OK;
}

static status merge_slice(struct group_table *table, const struct batch *partial, struct error *err)
{
    struct selection all = {NULL, partial->row_count};
    if (!group_records_find(&table->groups, partial, table->merge_keys, all, table->records)) {
        return error_memory(err);
    }
    for (uint32_t i = 0; i < table->grouping->aggregate_count; i++) {
        if (table->state_owners[i] != i) continue;
        struct state_list states = states_of(table, i);
        if (!aggregate_state_merge(&states, partial)) return error_memory(err);
    }
    return STATUS_OK;
}

status group_table_merge(struct group_table *table, const struct batch *partial, struct error *err)
{
    struct selection all = {NULL, partial->row_count};
    struct column *columns = arena_array(&table->scratch, struct column, partial->column_count + 1);
    if (columns == NULL) return error_memory(err);
    struct arena_mark mark = arena_mark(&table->scratch);
    for (uint32_t first = 0; first < partial->row_count; first += GROUP_SLICE_ROWS) {
        struct rows_slice slice = slice_at(partial, all, first, columns);
        TRY(merge_slice(table, &slice.batch, err));
        arena_release(&table->scratch, mark);
    }
    arena_reset(&table->scratch);
    return STATUS_OK;
}

status group_table_need_one(struct group_table *table, struct error *err)
{
    if (table->grouping->key_count > 0 || table->groups.count > 0) return STATUS_OK;
    unsigned char *record;
    if (!group_records_add(&table->groups, &record)) return error_memory(err);
    return STATUS_OK;
}

uint32_t group_table_count(const struct group_table *table)
{
    return table->groups.count;
}

uint64_t group_table_hash(const struct group_table *table, uint32_t group)
{
    return group_record_hash(&table->groups, group_record_at(&table->groups, group));
}

status group_table_order(struct group_table *table, struct error *err)
{
    return group_records_order(&table->groups) ? STATUS_OK : error_memory(err);
}

status group_table_read(const struct group_table *table, enum group_form form, uint32_t first,
                        uint32_t count, struct arena *arena, struct batch *out_batch,
                        struct error *err)
{
    const struct grouping *grouping = table->grouping;
    struct schema schema = form == GROUP_PARTIAL ? grouping->partial : grouping->result;
    struct column *columns = arena_array(arena, struct column, schema.count + 1);
    unsigned char **records = arena_array(arena, unsigned char *, count + 1);
    if (columns == NULL || records == NULL) return error_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        records[i] = group_record_at(&table->groups, first + i);
    }
    for (uint32_t i = 0; i < schema.count; i++) {
        if (!column_init(&columns[i], schema.fields[i].type, count, arena))
            return error_memory(err);
    }
    if (!group_records_read(&table->groups, records, count, columns, arena)) {
        return error_memory(err);
    }
    for (uint32_t i = 0; i < grouping->aggregate_count; i++) {
        const struct aggregate *aggregate = &grouping->aggregates[i];
        struct state_list states = {
            .aggregate = aggregate, .records = records, .offset = table->state_offsets[i]};
        if (form == GROUP_RESULT) {
            uint32_t column = grouping->key_count + i;
            if (aggregate_state_result(&states, count, &columns[column], arena, err) != STATUS_OK) {
                return error_prefix(err, "%.*s", TEXT_ARGS(schema.fields[column].name));
            }
        } else if (!aggregate_state_partial(&states, count, &columns[aggregate->state_column],
                                            arena)) {
            return error_memory(err);
        }
    }
    *out_batch =
        (struct batch){.row_count = count, .column_count = schema.count, .columns = columns};
    return STATUS_OK;
}

size_t group_table_merge_need(const struct group_table *table, uint32_t row_count)
{
    return group_records_need(&table->groups, row_count);
}

size_t group_table_order_need(const struct group_table *table)
{
    return group_records_order_need(&table->groups);
}
