/* SPDX-License-Identifier: Apache-2.0 */
/* bind_select.c - SELECT and its clauses.
 *
 * A SELECT becomes a chain, innermost first:
 *
 *     from -> filter -> aggregate -> having -> rank -> project -> distinct -> sort
 *
 * All clauses are bound over FROM before any of the chain above it is made: only then all
 * aggregates are known. bind_from.c binds FROM and pushes filters down into it; bind_group.c makes
 * the grouping.
 */
#include "engine/sql/bind_select.h"

#include "engine/base/array.h"
#include "engine/sql/bind_from.h"
#include "engine/sql/bind_group.h"
#include "engine/sql/diagnostic.h"

struct select_state {
    const struct ast_select *ast;
    struct scope scope;
    struct relation *relation;
    struct aggregation aggregation;
    const struct expr **group; /* As bound over FROM. */
    uint32_t *group_columns;   /* Their numbers after grouping. */
    uint32_t group_count;
    bool grouped;
    ARRAY_OF(const struct expr *) items; /* The select list, stars expanded. */
    ARRAY_OF(struct text) names;         /* Of the items. */
    ARRAY_OF(uint32_t) offsets;          /* Where in the SQL each item stands. */
    struct scope_alias *aliases;
    uint32_t alias_count;
};

/* What people call a value that has no alias: its column, or how it is written in the query. */
static struct text expr_name(const struct binder *binder, const struct ast_expr *ast)
{
    if (ast->kind == AST_COLUMN) return ast->name;
    return (struct text){binder->source->text.bytes + ast->offset, ast->size};
}

static struct text item_name(const struct binder *binder, const struct ast_item *item)
{
    return item->alias.size > 0 ? item->alias : expr_name(binder, item->expr);
}

static status item_add(struct binder *binder, struct select_state *state, const struct expr *expr,
                       struct text name, uint32_t offset, struct error *err)
{
    const struct expr **new_item = array_add_in(&state->items, binder->arena);
    struct text *new_name = array_add_in(&state->names, binder->arena);
    uint32_t *new_offset = array_add_in(&state->offsets, binder->arena);
    if (new_item == NULL || new_name == NULL || new_offset == NULL) return binder_memory(err);
    *new_item = expr;
    *new_name = name;
    *new_offset = offset;
    return STATUS_OK;
}

static status star_add(struct binder *binder, struct select_state *state,
                       const struct ast_expr *star, struct error *err)
{
    uint32_t before = state->items.count;
    for (uint32_t i = 0; i < state->scope.count; i++) {
        const struct scope_column *column = &state->scope.items[i];
        if (star->qualifier.size > 0 &&
            !text_equal_ignoring_case(star->qualifier, column->qualifier)) {
            continue;
        }
        const struct expr *expr = expr_column(binder->arena, column->column,
                                              binder->catalog->columns.items[column->column].type);
        if (expr == NULL) return binder_memory(err);
        TRY(item_add(binder, state, expr, column->name, star->offset, err));
    }
    if (state->items.count == before) {
        return sql_error(err, binder->source, star->offset, "`*` finds no columns here");
    }
    return STATUS_OK;
}

static struct expr_scope clause_scope(struct select_state *state, const char *clause)
{
    return (struct expr_scope){
        .columns = &state->scope,
        .aliases = state->aliases,
        .alias_count = state->alias_count,
        .aggregation = &state->aggregation,
        .clause = clause,
    };
}

static status bind_items(struct binder *binder, struct select_state *state, struct error *err)
{
    struct expr_scope scope = clause_scope(state, "SELECT");
    scope.alias_count = 0;
    state->aliases = arena_array(binder->arena, struct scope_alias, state->ast->item_count);
    if (state->aliases == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < state->ast->item_count; i++) {
        const struct ast_item *item = &state->ast->items[i];
        if (item->expr->kind == AST_STAR) {
            TRY(star_add(binder, state, item->expr, err));
            continue;
        }
        const struct expr *expr;
        TRY(bind_expr(binder, &scope, item->expr, &expr, err));
        if (expr->type.kind == TYPE_NULL) {
            TRY(bind_convert(binder, item->expr, TYPE(TEXT), &expr, err));
        }
        TRY(item_add(binder, state, expr, item_name(binder, item), item->expr->offset, err));
        if (item->alias.size > 0) {
            state->aliases[state->alias_count++] = (struct scope_alias){item->alias, expr};
        }
    }
    return STATUS_OK;
}

/* Replaces what equals a group key by the key's column; anything else over FROM is an error. */
static status regroup(struct binder *binder, const struct select_state *state,
                      const struct expr *expr, uint32_t offset, const struct expr **out_expr,
                      struct error *err)
{
    for (uint32_t i = 0; i < state->group_count; i++) {
        if (expr_equal(expr, state->group[i])) {
            *out_expr = expr_column(binder->arena, state->group_columns[i], expr->type);
            return *out_expr == NULL ? binder_memory(err) : STATUS_OK;
        }
    }
    *out_expr = expr;
    if (expr->kind == EXPR_COLUMN) {
        for (uint32_t i = 0; i < state->aggregation.count; i++) {
            if (state->aggregation.items[i].column == expr->column) return STATUS_OK;
        }
        struct text name = binder->catalog->columns.items[expr->column].name;
        return sql_error(err, binder->source, offset,
                         "`%.*s` is neither in GROUP BY nor inside an aggregate", TEXT_ARGS(name));
    }
    if (expr->kind != EXPR_CALL) return STATUS_OK;
    const struct expr **args = arena_array(binder->arena, const struct expr *, expr->arg_count + 1);
    if (args == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < expr->arg_count; i++) {
        TRY(regroup(binder, state, expr->args[i], offset, &args[i], err));
    }
    *out_expr = expr_call(binder->arena, expr->function, expr->type, args, expr->arg_count);
    return *out_expr == NULL ? binder_memory(err) : STATUS_OK;
}

static status after_grouping(struct binder *binder, const struct select_state *state,
                             uint32_t offset, const struct expr **in_out_expr, struct error *err)
{
    if (!state->grouped) return STATUS_OK;
    return regroup(binder, state, *in_out_expr, offset, in_out_expr, err);
}

static status bind_group_keys(struct binder *binder, struct select_state *state, struct error *err)
{
    const struct ast_select *ast = state->ast;
    state->group = arena_array(binder->arena, const struct expr *, ast->group_count + 1);
    state->group_columns = arena_array(binder->arena, uint32_t, ast->group_count + 1);
    if (state->group == NULL || state->group_columns == NULL) return binder_memory(err);
    struct expr_scope scope = clause_scope(state, "GROUP BY");
    scope.aggregation = NULL;
    for (uint32_t i = 0; i < ast->group_count; i++) {
        const struct ast_expr *key = ast->group[i];
        const struct expr *expr;
        if (key->kind == AST_INT) {
            int64_t position = 0;
            for (uint32_t j = 0; j < key->name.size && position < 1000000; j++) {
                position = position * 10 + (key->name.bytes[j] - '0');
            }
            if (position < 1 || position > (int64_t)state->items.count) {
                return sql_error(err, binder->source, key->offset,
                                 "there is no item %lld in the select list", (long long)position);
            }
            expr = state->items.items[position - 1];
        } else {
            TRY(bind_expr(binder, &scope, key, &expr, err));
        }
        if (type_is_list(expr->type)) {
            return sql_error(err, binder->source, key->offset, "lists cannot be group keys");
        }
        for (uint32_t j = 0; j < state->aggregation.count; j++) {
            if (expr->kind == EXPR_COLUMN && expr->column == state->aggregation.items[j].column) {
                return sql_error(err, binder->source, key->offset,
                                 "GROUP BY cannot use an aggregate");
            }
        }
        if (expr->type.kind == TYPE_NULL) TRY(bind_convert(binder, key, TYPE(TEXT), &expr, err));
        state->group[state->group_count] = expr;
        struct text name = {binder->source->text.bytes + key->offset, key->size};
        if (expr->kind == EXPR_COLUMN) name = binder->catalog->columns.items[expr->column].name;
        TRY(binder_new_column(binder, name, expr->type, &state->group_columns[state->group_count],
                              err));
        state->group_count++;
    }
    return STATUS_OK;
}

/* Comes after all clauses are bound: only then all aggregates are known. */
static status make_grouping(struct binder *binder, struct select_state *state, struct error *err)
{
    struct group group = {
        .input = state->relation,
        .keys = state->group,
        .key_columns = state->group_columns,
        .key_count = state->group_count,
        .aggregation = &state->aggregation,
    };
    return bind_group(binder, &group, &state->relation, err);
}

/* ---- QUALIFY ---- */

struct qualify {
    const struct expr **partition;
    uint32_t partition_count;
    const struct expr **order;
    const struct ast_order *order_ast;
    uint32_t order_count;
    uint64_t limit;
};

static status qualify_refuse(struct binder *binder, uint32_t offset, struct error *err)
{
    return sql_error(err, binder->source, offset,
                     "QUALIFY takes row_number() OVER (PARTITION BY ... ORDER BY ...) <= k");
}

static status bind_qualify(struct binder *binder, struct select_state *state,
                           struct qualify *out_qualify, struct error *err)
{
    const struct ast_expr *ast = state->ast->qualify;
    if (ast->kind != AST_BINARY || ast->args[0]->kind != AST_CALL || ast->args[0]->window == NULL ||
        !text_equal_ignoring_case(ast->args[0]->name, TEXT_LITERAL("row_number")) ||
        ast->args[0]->arg_count != 0) {
        return qualify_refuse(binder, ast->offset, err);
    }
    uint64_t limit;
    TRY(bind_count(binder, ast->args[1], "QUALIFY", &limit, err));
    if (ast->op == AST_OP_LESS) {
        limit = limit == 0 ? 0 : limit - 1;
    } else if (!(ast->op == AST_OP_LESS_EQUAL || (ast->op == AST_OP_EQUAL && limit == 1))) {
        return qualify_refuse(binder, ast->offset, err);
    }
    const struct ast_window *window = ast->args[0]->window;
    *out_qualify = (struct qualify){
        .partition = arena_array(binder->arena, const struct expr *, window->partition_count + 1),
        .order = arena_array(binder->arena, const struct expr *, window->order_count + 1),
        .partition_count = window->partition_count,
        .order_ast = window->order,
        .order_count = window->order_count,
        .limit = limit,
    };
    if (out_qualify->partition == NULL || out_qualify->order == NULL) return binder_memory(err);
    struct expr_scope scope = clause_scope(state, "QUALIFY");
    for (uint32_t i = 0; i < window->partition_count; i++) {
        TRY(bind_expr(binder, &scope, window->partition[i], &out_qualify->partition[i], err));
    }
    for (uint32_t i = 0; i < window->order_count; i++) {
        TRY(bind_expr(binder, &scope, window->order[i].expr, &out_qualify->order[i], err));
    }
    return STATUS_OK;
}

/* The number of the column that holds `expr`, appending a projection of all columns and it when
 * there is none. */
static status column_for(struct binder *binder, struct relation **in_out_relation,
                         const struct expr *expr, struct text name, uint32_t *out_column,
                         struct error *err)
{
    struct relation *relation = *in_out_relation;
    if (expr->kind == EXPR_COLUMN) {
        *out_column = expr->column;
        return STATUS_OK;
    }
    struct relation *project = binder_new_relation(binder, RELATION_PROJECT, relation);
    uint32_t count = relation->column_count;
    const struct expr **exprs = arena_array(binder->arena, const struct expr *, count + 1);
    uint32_t *columns = arena_array(binder->arena, uint32_t, count + 1);
    if (project == NULL || exprs == NULL || columns == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        columns[i] = relation->columns[i];
        exprs[i] =
            expr_column(binder->arena, columns[i], binder->catalog->columns.items[columns[i]].type);
        if (exprs[i] == NULL) return binder_memory(err);
    }
    exprs[count] = expr;
    TRY(binder_new_column(binder, name, expr->type, &columns[count], err));
    project->exprs = exprs;
    project->expr_count = count + 1;
    project->columns = columns;
    project->column_count = count + 1;
    *out_column = columns[count];
    *in_out_relation = project;
    return STATUS_OK;
}

static status make_ranking(struct binder *binder, struct select_state *state,
                           const struct qualify *qualify, struct error *err)
{
    uint32_t offset = state->ast->qualify->offset;
    const struct ast_window *window = state->ast->qualify->args[0]->window;
    uint32_t *partition = arena_array(binder->arena, uint32_t, qualify->partition_count + 1);
    struct relation_sort *sort =
        arena_array(binder->arena, struct relation_sort, qualify->order_count + 1);
    if (partition == NULL || sort == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < qualify->partition_count; i++) {
        const struct expr *expr = qualify->partition[i];
        struct text name = expr_name(binder, window->partition[i]);
        TRY(after_grouping(binder, state, offset, &expr, err));
        TRY(column_for(binder, &state->relation, expr, name, &partition[i], err));
    }
    for (uint32_t i = 0; i < qualify->order_count; i++) {
        const struct expr *expr = qualify->order[i];
        struct text name = expr_name(binder, window->order[i].expr);
        TRY(after_grouping(binder, state, offset, &expr, err));
        sort[i].descending = qualify->order_ast[i].descending;
        sort[i].nulls_first = qualify->order_ast[i].nulls_first;
        TRY(column_for(binder, &state->relation, expr, name, &sort[i].column, err));
    }
    struct relation *rank = binder_new_relation(binder, RELATION_RANK, state->relation);
    if (rank == NULL) return binder_memory(err);
    rank->partition = partition;
    rank->partition_count = qualify->partition_count;
    rank->sort = sort;
    rank->sort_count = qualify->order_count;
    rank->limit = qualify->limit;
    state->relation = rank;
    return STATUS_OK;
}

/* ---- the select list, DISTINCT, ORDER BY ---- */

static status make_projection(struct binder *binder, struct select_state *state, struct error *err)
{
    struct relation *project = binder_new_relation(binder, RELATION_PROJECT, state->relation);
    uint32_t *columns = arena_array(binder->arena, uint32_t, state->items.count + 1);
    if (project == NULL || columns == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < state->items.count; i++) {
        TRY(binder_new_column(binder, state->names.items[i], state->items.items[i]->type,
                              &columns[i], err));
    }
    project->exprs = state->items.items;
    project->expr_count = state->items.count;
    project->columns = columns;
    project->column_count = state->items.count;
    state->relation = project;
    return STATUS_OK;
}

static status make_distinct(struct binder *binder, struct select_state *state, uint32_t offset,
                            struct error *err)
{
    struct relation *project = state->relation;
    struct relation *distinct = binder_new_relation(binder, RELATION_AGGREGATE, project);
    uint32_t count = project->column_count;
    const struct expr **exprs = arena_array(binder->arena, const struct expr *, count + 1);
    uint32_t *columns = arena_array(binder->arena, uint32_t, count + 1);
    if (distinct == NULL || exprs == NULL || columns == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        struct relation_column column = binder->catalog->columns.items[project->columns[i]];
        if (type_is_list(column.type)) {
            return sql_error(err, binder->source, offset, "DISTINCT cannot compare lists");
        }
        exprs[i] = expr_column(binder->arena, project->columns[i], column.type);
        if (exprs[i] == NULL) return binder_memory(err);
        TRY(binder_new_column(binder, column.name, column.type, &columns[i], err));
    }
    distinct->exprs = exprs;
    distinct->expr_count = count;
    distinct->columns = columns;
    distinct->column_count = count;
    state->relation = distinct;
    return STATUS_OK;
}

/* The item that is `expr`; items.count: there is none. */
static uint32_t item_find(const struct select_state *state, const struct expr *expr)
{
    uint32_t item = 0;
    while (item < state->items.count && !expr_equal(state->items.items[item], expr)) {
        item++;
    }
    return item;
}

/* Where an ORDER BY item is among the select list; appended as a hidden item when it is not. */
static status order_item(struct binder *binder, struct select_state *state,
                         const struct ast_order *order, uint32_t *out_item, struct error *err)
{
    const struct ast_expr *ast = order->expr;
    if (ast->kind == AST_INT) {
        uint64_t position;
        TRY(bind_count(binder, ast, "ORDER BY", &position, err));
        if (position < 1 || position > state->items.count) {
            return sql_error(err, binder->source, ast->offset,
                             "there is no item %llu in the select list",
                             (unsigned long long)position);
        }
        *out_item = (uint32_t)position - 1;
        return STATUS_OK;
    }
    struct expr_scope scope = clause_scope(state, "ORDER BY");
    scope.aliases_first = true;
    const struct expr *expr;
    TRY(bind_expr(binder, &scope, ast, &expr, err));
    *out_item = item_find(state, expr);
    if (*out_item < state->items.count) return STATUS_OK;
    if (state->ast->distinct) {
        return sql_error(err, binder->source, ast->offset,
                         "with DISTINCT, ORDER BY can only use what is selected");
    }
    return item_add(binder, state, expr, expr_name(binder, ast), ast->offset, err);
}

struct order_plan {
    struct relation_sort *sort; /* column = item number. */
    uint32_t count;
};

static status bind_order(struct binder *binder, struct select_state *state,
                         const struct ast_query *query, struct order_plan *out_order,
                         struct error *err)
{
    struct relation_sort *sort =
        arena_array(binder->arena, struct relation_sort, query->order_count + 1);
    if (sort == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < query->order_count; i++) {
        const struct ast_order *order = &query->order[i];
        sort[i].descending = order->descending;
        sort[i].nulls_first = order->nulls_first;
        TRY(order_item(binder, state, order, &sort[i].column, err));
    }
    *out_order = (struct order_plan){sort, query->order_count};
    return STATUS_OK;
}

/* Columns that give rows of `relation` their order when the user gives none. Groups come in key
 * order, ranked rows by partition and rank; rows of a table come as they stand in the file (none).
 */
static status natural_order(struct binder *binder, const struct relation *relation,
                            struct relation_sort **out_sort, uint32_t *out_count, struct error *err)
{
    *out_count = 0;
    while (relation->kind == RELATION_FILTER) {
        relation = relation->input;
    }
    if (relation->kind == RELATION_PROJECT) {
        struct relation_sort *inner;
        uint32_t inner_count;
        TRY(natural_order(binder, relation->input, &inner, &inner_count, err));
        *out_sort = inner;
        for (uint32_t i = 0; i < inner_count; i++) {
            for (uint32_t j = 0; j < relation->expr_count; j++) {
                if (relation->exprs[j]->kind == EXPR_COLUMN &&
                    relation->exprs[j]->column == inner[i].column) {
                    inner[*out_count] = inner[i];
                    inner[(*out_count)++].column = relation->columns[j];
                    break;
                }
            }
        }
        /* The keys are not selected: any fixed order will do, and all columns make one. */
        if (inner_count > 0 && *out_count == 0) {
            *out_sort = arena_array(binder->arena, struct relation_sort, 1);
            if (*out_sort == NULL) return binder_memory(err);
            (*out_sort)[0].column = relation->columns[0];
            *out_count = relation->column_count > 0 ? 1 : 0;
        }
        return STATUS_OK;
    }
    if (relation->kind == RELATION_SHARED) {
        TRY(natural_order(binder, relation->shared->relation, out_sort, out_count, err));
        for (uint32_t i = 0; i < *out_count; i++) {
            for (uint32_t j = 0; j < relation->column_count; j++) {
                if (relation->shared->relation->columns[j] == (*out_sort)[i].column) {
                    (*out_sort)[i].column = relation->columns[j];
                    break;
                }
            }
        }
        return STATUS_OK;
    }
    uint32_t count = relation->kind == RELATION_AGGREGATE ? relation->expr_count
                     : relation->kind == RELATION_RANK || relation->kind == RELATION_SORT
                         ? relation->partition_count + relation->sort_count
                         : 0;
    *out_sort = arena_array(binder->arena, struct relation_sort, count + 1);
    if (*out_sort == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        if (relation->kind == RELATION_AGGREGATE) {
            (*out_sort)[i].column = relation->columns[i];
        } else if (i < relation->partition_count) {
            (*out_sort)[i].column = relation->partition[i];
        } else {
            (*out_sort)[i] = relation->sort[i - relation->partition_count];
        }
    }
    *out_count = count;
    return STATUS_OK;
}

status bind_make_sort(struct binder *binder, const struct ast_query *query,
                      struct relation **in_out_relation, struct relation_sort *sort,
                      uint32_t sort_count, struct error *err)
{
    struct relation *relation = binder_new_relation(binder, RELATION_SORT, *in_out_relation);
    if (relation == NULL) return binder_memory(err);
    relation->sort = sort;
    relation->sort_count = sort_count;
    if (query->limit != NULL) TRY(bind_count(binder, query->limit, "LIMIT", &relation->limit, err));
    if (query->limit_offset != NULL) {
        TRY(bind_count(binder, query->limit_offset, "OFFSET", &relation->offset, err));
    }
    *in_out_relation = relation;
    return STATUS_OK;
}

/* FROM and WHERE. */
static status bind_source(struct binder *binder, struct select_state *state, struct error *err)
{
    const struct ast_select *ast = state->ast;
    if (ast->from == NULL) {
        state->relation = binder_new_relation(binder, RELATION_ONE_ROW, NULL);
        if (state->relation == NULL) return binder_memory(err);
    } else {
        TRY(bind_from(binder, ast->from, &state->scope, &state->relation, err));
    }
    if (ast->where == NULL) return STATUS_OK;
    struct expr_scope scope = {.columns = &state->scope, .clause = "WHERE"};
    const struct expr *condition;
    TRY(bind_condition(binder, &scope, ast->where, &condition, err));
    return bind_conditions_sink(binder, &state->relation, condition, err);
}

/* Orders by what the rows come by; keys that are not selected become hidden items. */
static status order_naturally(struct binder *binder, struct select_state *state,
                              struct order_plan *out_order, struct error *err)
{
    struct relation_sort *natural = NULL;
    uint32_t natural_count = 0;
    TRY(natural_order(binder, state->relation, &natural, &natural_count, err));
    for (uint32_t i = 0; i < natural_count; i++) {
        struct relation_column column = binder->catalog->columns.items[natural[i].column];
        const struct expr *key = expr_column(binder->arena, natural[i].column, column.type);
        if (key == NULL) return binder_memory(err);
        natural[i].column = item_find(state, key);
        if (natural[i].column < state->items.count) continue;
        TRY(item_add(binder, state, key, column.name, state->ast->offset, err));
    }
    *out_order = (struct order_plan){natural, natural_count};
    return STATUS_OK;
}

status bind_select(struct binder *binder, const struct ast_query *query,
                   const struct ast_select *ast, struct bound_query *out_query, struct error *err)
{
    struct select_state state = {.ast = ast};
    TRY(bind_source(binder, &state, err));
    TRY(bind_items(binder, &state, err));
    uint32_t visible_count = state.items.count;
    TRY(bind_group_keys(binder, &state, err));
    const struct expr *having = NULL;
    if (ast->having != NULL) {
        struct expr_scope scope = clause_scope(&state, "HAVING");
        TRY(bind_condition(binder, &scope, ast->having, &having, err));
    }
    struct qualify qualify = {0};
    if (ast->qualify != NULL) TRY(bind_qualify(binder, &state, &qualify, err));
    struct order_plan order;
    TRY(bind_order(binder, &state, query, &order, err));

    state.grouped = state.group_count > 0 || state.aggregation.count > 0 || having != NULL;
    if (state.grouped) {
        TRY(make_grouping(binder, &state, err));
        for (uint32_t i = 0; i < state.items.count; i++) {
            TRY(after_grouping(binder, &state, state.offsets.items[i], &state.items.items[i], err));
        }
    }
    if (having != NULL) {
        TRY(after_grouping(binder, &state, ast->having->offset, &having, err));
        TRY(bind_filter_add(binder, &state.relation, having, err));
    }
    if (ast->qualify != NULL) TRY(make_ranking(binder, &state, &qualify, err));

    /* Inside another query rows have no order of their own, unless LIMIT cuts them. */
    bool limited = query->limit != NULL || query->limit_offset != NULL;
    bool order_matters = binder->nesting == 0 || limited;
    if (order.count == 0 && !ast->distinct && order_matters) {
        TRY(order_naturally(binder, &state, &order, err));
    }
    TRY(make_projection(binder, &state, err));
    if (ast->distinct) TRY(make_distinct(binder, &state, ast->offset, err));
    if (order.count == 0 && ast->distinct && order_matters) {
        TRY(natural_order(binder, state.relation, &order.sort, &order.count, err));
    } else {
        for (uint32_t i = 0; i < order.count; i++) {
            order.sort[i].column = state.relation->columns[order.sort[i].column];
        }
    }
    if (order.count > 0 || limited) {
        TRY(bind_make_sort(binder, query, &state.relation, order.sort, order.count, err));
    }
    *out_query = (struct bound_query){
        .relation = state.relation,
        .names = state.names.items,
        .visible_count = visible_count,
        .ordered = order.count > 0,
    };
    return STATUS_OK;
}
