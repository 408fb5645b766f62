/* SPDX-License-Identifier: Apache-2.0 */
/* bind_group.c - what grouping is made of.
 *
 * Without DISTINCT it is one aggregation. With count(DISTINCT x) it is two, for which nothing below
 * has to know what DISTINCT is: rows by (keys, x) become one each, and these by (keys) are counted.
 *
 *     input -> aggregate by keys, x -> aggregate by keys
 *
 * A plain count, min or max beside it takes the same way: counts of parts are added, the least of
 * the least is the least. A plain sum or avg does not: a part of a sum may not fit its type
 * although the whole does, and a part that is rounded makes the whole inexact. Then plain and
 * DISTINCT aggregates are computed apart, and of the two rows per group, in which the other's
 * columns are NULL, one is made:
 *
 *     input -> aggregate by keys ---------------------------> union -> max of each column by keys
 *          \-> aggregate by keys, x -> aggregate by keys -/
 *
 * It is no join because a join does not find NULL, which is a key like others here.
 */
#include "engine/sql/bind_group.h"

#include "engine/base/assert.h"
#include "engine/sql/bind_from.h"

/* Expressions and the column numbers they are given. */
struct column_list {
    const struct expr **exprs;
    uint32_t *columns;
    uint32_t count;
};

static status list_init(struct binder *binder, struct column_list *list, uint32_t capacity,
                        struct error *err)
{
    *list = (struct column_list){
        .exprs = arena_array(binder->arena, const struct expr *, (size_t)capacity + 1),
        .columns = arena_array(binder->arena, uint32_t, (size_t)capacity + 1),
    };
    return list->exprs == NULL || list->columns == NULL ? binder_memory(err) : STATUS_OK;
}

static void list_add(struct column_list *list, const struct expr *expr, uint32_t column)
{
    list->exprs[list->count] = expr;
    list->columns[list->count++] = column;
}

static status column_expr(struct binder *binder, uint32_t column, const struct expr **out_expr,
                          struct error *err)
{
    *out_expr = expr_column(binder->arena, column, binder->catalog->columns.items[column].type);
    return *out_expr == NULL ? binder_memory(err) : STATUS_OK;
}

/* A new number for what has the name and type of `column`. */
static status column_duplicate(struct binder *binder, uint32_t column, uint32_t *out_duplicate,
                               struct error *err)
{
    struct relation_column known = binder->catalog->columns.items[column];
    return binder_new_column(binder, known.name, known.type, out_duplicate, err);
}

static status list_add_column(struct binder *binder, struct column_list *list, uint32_t from,
                              uint32_t column, struct error *err)
{
    const struct expr *expr;
    TRY(column_expr(binder, from, &expr, err));
    list_add(list, expr, column);
    return STATUS_OK;
}

static status project(struct binder *binder, struct relation *input, const struct column_list *list,
                      struct relation **out_relation, struct error *err)
{
    struct relation *relation = binder_new_relation(binder, RELATION_PROJECT, input);
    if (relation == NULL) return binder_memory(err);
    relation->exprs = list->exprs;
    relation->expr_count = list->count;
    relation->columns = list->columns;
    relation->column_count = list->count;
    *out_relation = relation;
    return STATUS_OK;
}

/* `aggregates` has room for as many as the SELECT has. */
struct fold_parts {
    struct column_list keys;
    struct relation_aggregate *aggregates;
    uint32_t aggregate_count;
};

static status parts_init(struct binder *binder, const struct group *group, struct fold_parts *parts,
                         struct error *err)
{
    *parts = (struct fold_parts){.aggregates = arena_array(binder->arena, struct relation_aggregate,
                                                           (size_t)group->aggregation->count + 1)};
    if (parts->aggregates == NULL) return binder_memory(err);
    return list_init(binder, &parts->keys, group->key_count + 1, err);
}

static void parts_add(struct fold_parts *parts, struct relation_aggregate aggregate)
{
    aggregate.distinct = false;
    parts->aggregates[parts->aggregate_count++] = aggregate;
}

static status aggregate(struct binder *binder, struct relation *input,
                        const struct fold_parts *parts, struct relation **out_relation,
                        struct error *err)
{
    uint32_t key_count = parts->keys.count;
    uint32_t count = key_count + parts->aggregate_count;
    struct relation *relation = binder_new_relation(binder, RELATION_AGGREGATE, input);
    uint32_t *columns = arena_array(binder->arena, uint32_t, (size_t)count + 1);
    if (relation == NULL || columns == NULL) return binder_memory(err);
    memcpy(columns, parts->keys.columns, key_count * sizeof *columns);
    for (uint32_t i = 0; i < parts->aggregate_count; i++) {
        columns[key_count + i] = parts->aggregates[i].column;
    }
    relation->exprs = parts->keys.exprs;
    relation->expr_count = key_count;
    relation->aggregates = parts->aggregates;
    relation->aggregate_count = parts->aggregate_count;
    relation->columns = columns;
    relation->column_count = count;
    *out_relation = relation;
    return STATUS_OK;
}

static status group_at_once(struct binder *binder, const struct group *group,
                            struct relation **out_relation, struct error *err)
{
    struct fold_parts parts;
    TRY(parts_init(binder, group, &parts, err));
    for (uint32_t i = 0; i < group->key_count; i++) {
        list_add(&parts.keys, group->keys[i], group->key_columns[i]);
    }
    for (uint32_t i = 0; i < group->aggregation->count; i++) {
        parts_add(&parts, group->aggregation->items[i]);
    }
    return aggregate(binder, group->input, &parts, out_relation, err);
}

/* ---- in two steps ---- */

/* False: the aggregate of the whole cannot be told from those of its parts. */
static bool merge_of(enum aggregate_kind kind, enum aggregate_kind *out_merge)
{
    switch (kind) {
    case AGGREGATE_COUNT_ROWS:
    case AGGREGATE_COUNT:
        *out_merge = AGGREGATE_SUM;
        return true;
    case AGGREGATE_MIN:
    case AGGREGATE_MAX:
        *out_merge = kind;
        return true;
    case AGGREGATE_SUM:
    case AGGREGATE_AVG:
    case AGGREGATE_ARG_MIN:
    case AGGREGATE_ARG_MAX:
        break;
    }
    return false;
}

/* By keys and the DISTINCT argument; what the next step needs goes to `outer`, over the columns of
 * this one. */
static status first_step(struct binder *binder, const struct group *group, struct fold_parts *outer,
                         struct relation **out_relation, struct error *err)
{
    const struct aggregation *aggregation = group->aggregation;
    struct fold_parts inner;
    uint32_t column;
    const struct expr *distinct;
    TRY(parts_init(binder, group, &inner, err));
    for (uint32_t i = 0; i < group->key_count; i++) {
        TRY(column_duplicate(binder, group->key_columns[i], &column, err));
        list_add(&inner.keys, group->keys[i], column);
        TRY(list_add_column(binder, &outer->keys, column, group->key_columns[i], err));
    }
    TRY(binder_new_column(binder, aggregation->distinct_name, aggregation->distinct->type, &column,
                          err));
    list_add(&inner.keys, aggregation->distinct, column);
    TRY(column_expr(binder, column, &distinct, err));
    for (uint32_t i = 0; i < aggregation->count; i++) {
        struct relation_aggregate part = aggregation->items[i];
        struct relation_aggregate whole = part;
        whole.input = distinct;
        if (!part.distinct) {
            TRY(column_duplicate(binder, part.column, &part.column, err));
            parts_add(&inner, part);
            TRY(column_expr(binder, part.column, &whole.input, err));
            bool merges = merge_of(part.kind, &whole.kind);
            ASSERT(merges);
        }
        parts_add(outer, whole);
    }
    return aggregate(binder, group->input, &inner, out_relation, err);
}

/* Of no rows a sum is NULL, but a count is 0. With keys there is no group of no rows. */
static status counts_of_nothing(struct binder *binder, const struct group *group,
                                struct fold_parts *outer, struct column_list *list,
                                struct error *err)
{
    struct value zero = {.integer = 0};
    TRY(list_init(binder, list, outer->aggregate_count, err));
    for (uint32_t i = 0; i < outer->aggregate_count; i++) {
        const struct relation_aggregate *written = &group->aggregation->items[i];
        const struct expr *args[2];
        TRY(column_duplicate(binder, written->column, &outer->aggregates[i].column, err));
        TRY(column_expr(binder, outer->aggregates[i].column, &args[0], err));
        if (outer->aggregates[i].kind == AGGREGATE_SUM && !written->distinct) {
            args[1] = expr_constant(binder->arena, zero, TYPE(INT));
            if (args[1] == NULL) return binder_memory(err);
            TRY(bind_make_call(binder, FUNCTION_COALESCE, TYPE(INT), args, 2, &args[0], err));
        }
        list_add(list, args[0], written->column);
    }
    return STATUS_OK;
}

static status group_in_steps(struct binder *binder, const struct group *group,
                             struct relation **out_relation, struct error *err)
{
    struct fold_parts outer;
    struct column_list list;
    struct relation *inner;
    bool sums_counts = false;
    TRY(parts_init(binder, group, &outer, err));
    TRY(first_step(binder, group, &outer, &inner, err));
    for (uint32_t i = 0; i < outer.aggregate_count; i++) {
        const struct relation_aggregate *written = &group->aggregation->items[i];
        if (!written->distinct && outer.aggregates[i].kind == AGGREGATE_SUM) sums_counts = true;
    }
    if (group->key_count > 0 || !sums_counts) {
        return aggregate(binder, inner, &outer, out_relation, err);
    }
    TRY(counts_of_nothing(binder, group, &outer, &list, err));
    TRY(aggregate(binder, inner, &outer, &inner, err));
    return project(binder, inner, &list, out_relation, err);
}

/* ---- apart ---- */

static void mark_column(const struct expr *expr, void *context)
{
    if (expr->kind == EXPR_COLUMN) ((bool *)context)[expr->column] = true;
}

/* The input's columns that the grouping reads, made once for both ways. */
static status share_input(struct binder *binder, const struct group *group,
                          struct shared_query **out_shared, struct error *err)
{
    const struct aggregation *aggregation = group->aggregation;
    struct shared_query *shared = arena_new(binder->arena, struct shared_query);
    bool *used = arena_array(binder->arena, bool, (size_t)binder->catalog->columns.count + 1);
    struct column_list list;
    if (shared == NULL || used == NULL) return binder_memory(err);
    TRY(list_init(binder, &list, group->input->column_count, err));
    for (uint32_t i = 0; i < group->key_count; i++) {
        expr_visit(group->keys[i], mark_column, used);
    }
    for (uint32_t i = 0; i < aggregation->count; i++) {
        const struct relation_aggregate *item = &aggregation->items[i];
        if (item->input != NULL) expr_visit(item->input, mark_column, used);
        if (item->by != NULL) expr_visit(item->by, mark_column, used);
    }
    for (uint32_t i = 0; i < group->input->column_count; i++) {
        uint32_t column = group->input->columns[i];
        if (used[column]) TRY(list_add_column(binder, &list, column, column, err));
    }
    *shared = (struct shared_query){.order_is_free = true};
    TRY(project(binder, group->input, &list, &shared->relation, err));
    *out_shared = shared;
    return STATUS_OK;
}

/* One of the two ways: a row per group of the keys and all aggregates, those of the other way NULL.
 * The columns keep their numbers below: the ways meet in a union, which has its own. */
static status way(struct binder *binder, const struct group *group, struct shared_query *shared,
                  bool distinct, struct relation **out_relation, struct error *err)
{
    const struct aggregation *all = group->aggregation;
    struct aggregation mine = {
        .items = arena_array(binder->arena, struct relation_aggregate, (size_t)all->count + 1),
        .distinct = all->distinct,
        .distinct_name = all->distinct_name,
    };
    struct relation *input = binder_new_relation(binder, RELATION_SHARED, NULL);
    uint32_t *key_columns = arena_array(binder->arena, uint32_t, (size_t)group->key_count + 1);
    struct column_list list;
    if (mine.items == NULL || input == NULL || key_columns == NULL) return binder_memory(err);
    input->shared = shared;
    input->columns = shared->relation->columns;
    input->column_count = shared->relation->column_count;
    TRY(list_init(binder, &list, group->key_count + all->count, err));
    for (uint32_t i = 0; i < group->key_count; i++) {
        TRY(column_duplicate(binder, group->key_columns[i], &key_columns[i], err));
        TRY(list_add_column(binder, &list, key_columns[i], key_columns[i], err));
    }
    for (uint32_t i = 0; i < all->count; i++) {
        struct relation_aggregate item = all->items[i];
        struct type type = binder->catalog->columns.items[item.column].type;
        const struct expr *none =
            expr_constant(binder->arena, (struct value){.is_null = true}, type);
        if (none == NULL) return binder_memory(err);
        TRY(column_duplicate(binder, item.column, &item.column, err));
        if (item.distinct != distinct) {
            list_add(&list, none, item.column);
            continue;
        }
        TRY(list_add_column(binder, &list, item.column, item.column, err));
        mine.items[mine.count++] = item;
    }
    struct group part = {input, group->keys, key_columns, group->key_count, &mine};
    TRY(distinct ? group_in_steps(binder, &part, &input, err)
                 : group_at_once(binder, &part, &input, err));
    return project(binder, input, &list, out_relation, err);
}

static status unite(struct binder *binder, struct relation *first, struct relation *second,
                    struct relation **out_relation, struct error *err)
{
    struct relation *relation = binder_new_relation(binder, RELATION_UNION, NULL);
    struct relation **inputs = arena_array(binder->arena, struct relation *, 2);
    uint32_t *columns = arena_array(binder->arena, uint32_t, (size_t)first->column_count + 1);
    if (relation == NULL || inputs == NULL || columns == NULL) return binder_memory(err);
    inputs[0] = first;
    inputs[1] = second;
    for (uint32_t i = 0; i < first->column_count; i++) {
        TRY(column_duplicate(binder, first->columns[i], &columns[i], err));
    }
    relation->inputs = inputs;
    relation->input_count = 2;
    relation->columns = columns;
    relation->column_count = first->column_count;
    *out_relation = relation;
    return STATUS_OK;
}

static status group_apart(struct binder *binder, const struct group *group,
                          struct relation **out_relation, struct error *err)
{
    struct shared_query *shared;
    struct relation *plain;
    struct relation *distinct;
    struct relation *both;
    struct fold_parts outer;
    TRY(share_input(binder, group, &shared, err));
    TRY(way(binder, group, shared, false, &plain, err));
    TRY(way(binder, group, shared, true, &distinct, err));
    TRY(unite(binder, plain, distinct, &both, err));
    TRY(parts_init(binder, group, &outer, err));
    for (uint32_t i = 0; i < group->key_count; i++) {
        TRY(list_add_column(binder, &outer.keys, both->columns[i], group->key_columns[i], err));
    }
    for (uint32_t i = 0; i < group->aggregation->count; i++) {
        struct relation_aggregate only = {.kind = AGGREGATE_MAX,
                                          .column = group->aggregation->items[i].column};
        TRY(column_expr(binder, both->columns[group->key_count + i], &only.input, err));
        parts_add(&outer, only);
    }
    return aggregate(binder, both, &outer, out_relation, err);
}

status bind_group(struct binder *binder, const struct group *group, struct relation **out_relation,
                  struct error *err)
{
    const struct aggregation *aggregation = group->aggregation;
    if (aggregation->distinct == NULL) return group_at_once(binder, group, out_relation, err);
    for (uint32_t i = 0; i < aggregation->count; i++) {
        enum aggregate_kind merge;
        if (!aggregation->items[i].distinct && !merge_of(aggregation->items[i].kind, &merge)) {
            return group_apart(binder, group, out_relation, err);
        }
    }
    return group_in_steps(binder, group, out_relation, err);
}
