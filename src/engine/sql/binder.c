/* SPDX-License-Identifier: Apache-2.0 */
/* binder.c - queries: WITH, UNION ALL, and what a query shows to those around it.
 *
 * A query may carry hidden columns that only its order needs. A query that reads it as a table, a
 * part of a union or a value sees the visible ones alone.
 */
#include "engine/sql/binder.h"

#include "engine/base/assert.h"
#include "engine/sql/bind_expr.h"
#include "engine/sql/bind_from.h"
#include "engine/sql/bind_select.h"
#include "engine/sql/diagnostic.h"

static status bind_body(struct binder *binder, const struct ast_query *query,
                        struct bound_query *out_query, struct error *err);

/* A relation of just the visible columns: what stands in FROM, in a union, in a WITH. */
static status trim_hidden(struct binder *binder, struct bound_query *query, struct error *err)
{
    struct relation *relation = query->relation;
    if (relation->column_count == query->visible_count) return STATUS_OK;
    struct relation *project = binder_new_relation(binder, RELATION_PROJECT, relation);
    const struct expr **exprs =
        arena_array(binder->arena, const struct expr *, query->visible_count + 1);
    if (project == NULL || exprs == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < query->visible_count; i++) {
        exprs[i] = expr_column(binder->arena, relation->columns[i],
                               binder->catalog->columns.items[relation->columns[i]].type);
        if (exprs[i] == NULL) return binder_memory(err);
    }
    project->exprs = exprs;
    project->expr_count = query->visible_count;
    project->column_count = query->visible_count;
    query->relation = project;
    return STATUS_OK;
}

static status union_types(struct binder *binder, const struct ast_query *query,
                          struct bound_query *parts, struct error *err)
{
    for (uint32_t i = 1; i < query->body_count; i++) {
        uint32_t offset = query->bodies[i].select != NULL ? query->bodies[i].select->offset
                                                          : query->bodies[i].query->offset;
        if (parts[i].visible_count != parts[0].visible_count) {
            return sql_error(err, binder->source, offset,
                             "UNION ALL: %u columns here, %u in the first query",
                             parts[i].visible_count, parts[0].visible_count);
        }
        for (uint32_t j = 0; j < parts[0].visible_count; j++) {
            struct type a = binder->catalog->columns.items[parts[0].relation->columns[j]].type;
            struct type b = binder->catalog->columns.items[parts[i].relation->columns[j]].type;
            if (!type_equal(a, b)) {
                char names[2][TYPE_NAME_SIZE];
                return sql_error(err, binder->source, offset,
                                 "UNION ALL: column %u is %s here and %s in the first query; "
                                 "convert with CAST",
                                 j + 1, type_name(b, names[0]), type_name(a, names[1]));
            }
        }
    }
    return STATUS_OK;
}

static status bind_union(struct binder *binder, const struct ast_query *query,
                         struct bound_query *out_query, struct error *err)
{
    struct bound_query *parts = arena_array(binder->arena, struct bound_query, query->body_count);
    struct relation **inputs = arena_array(binder->arena, struct relation *, query->body_count);
    if (parts == NULL || inputs == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < query->body_count; i++) {
        const struct ast_body *body = &query->bodies[i];
        static const struct ast_query bare = {0};
        if (body->select != NULL) {
            TRY(bind_select(binder, &bare, body->select, &parts[i], err));
        } else {
            TRY(bind_body(binder, body->query, &parts[i], err));
        }
        TRY(trim_hidden(binder, &parts[i], err));
        inputs[i] = parts[i].relation;
    }
    TRY(union_types(binder, query, parts, err));
    struct relation *relation = binder_new_relation(binder, RELATION_UNION, NULL);
    uint32_t *columns = arena_array(binder->arena, uint32_t, parts[0].visible_count + 1);
    if (relation == NULL || columns == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < parts[0].visible_count; i++) {
        TRY(binder_new_column(binder, parts[0].names[i],
                              binder->catalog->columns.items[inputs[0]->columns[i]].type,
                              &columns[i], err));
    }
    relation->inputs = inputs;
    relation->input_count = query->body_count;
    relation->columns = columns;
    relation->column_count = parts[0].visible_count;

    struct relation_sort *sort =
        arena_array(binder->arena, struct relation_sort, query->order_count + 1);
    struct scope scope = {0};
    if (sort == NULL) return binder_memory(err);
    TRY(bind_scope_add_all(binder, &scope, (struct text){0}, relation, parts[0].names, err));
    for (uint32_t i = 0; i < query->order_count; i++) {
        const struct ast_expr *ast = query->order[i].expr;
        struct expr_scope order_scope = {.columns = &scope, .clause = "ORDER BY"};
        const struct expr *expr = NULL;
        uint64_t position = 0;
        if (ast->kind == AST_INT) {
            TRY(bind_count(binder, ast, "ORDER BY", &position, err));
        } else {
            TRY(bind_expr(binder, &order_scope, ast, &expr, err));
        }
        if (expr != NULL && expr->kind == EXPR_COLUMN) {
            sort[i].column = expr->column;
        } else if (position >= 1 && position <= relation->column_count) {
            sort[i].column = columns[position - 1];
        } else {
            return sql_error(err, binder->source, ast->offset,
                             "ORDER BY of a UNION ALL takes columns of the first query");
        }
        sort[i].descending = query->order[i].descending;
        sort[i].nulls_first = query->order[i].nulls_first;
    }
    if (query->order_count > 0 || query->limit != NULL || query->limit_offset != NULL) {
        TRY(bind_make_sort(binder, query, &relation, sort, query->order_count, err));
    }
    *out_query = (struct bound_query){
        .relation = relation,
        .names = parts[0].names,
        .visible_count = parts[0].visible_count,
        .ordered = query->order_count > 0,
    };
    return STATUS_OK;
}

static status bind_with(struct binder *binder, const struct ast_with *ast, struct error *err)
{
    struct bound_query query;
    TRY(bind_subquery(binder, ast->query, &query, err));
    struct shared_query *shared = arena_new(binder->arena, struct shared_query);
    struct with_entry *with = array_add_in(&binder->withs, binder->arena);
    if (shared == NULL || with == NULL) return binder_memory(err);
    *shared = (struct shared_query){.name = ast->name, .relation = query.relation};
    *with = (struct with_entry){ast->name, query.names, shared};
    return STATUS_OK;
}

static status bind_body(struct binder *binder, const struct ast_query *query,
                        struct bound_query *out_query, struct error *err)
{
    uint32_t outer_withs = binder->withs.count;
    for (uint32_t i = 0; i < query->with_count; i++) {
        TRY(bind_with(binder, &query->withs[i], err));
    }
    ASSERT(query->body_count > 0);
    if (query->body_count == 1 && query->bodies[0].select != NULL) {
        TRY(bind_select(binder, query, query->bodies[0].select, out_query, err));
    } else {
        /* Also one query in parentheses with an ORDER BY or LIMIT behind it. */
        TRY(bind_union(binder, query, out_query, err));
    }
    binder->withs.count = outer_withs;
    return STATUS_OK;
}

status bind_subquery(struct binder *binder, const struct ast_query *query,
                     struct bound_query *out_query, struct error *err)
{
    binder->nesting++;
    status result = bind_body(binder, query, out_query, err);
    binder->nesting--;
    TRY(result);
    return trim_hidden(binder, out_query, err);
}

status bind_query(struct catalog *catalog, const struct binder_input *input,
                  struct bound_query *out_query, struct error *err)
{
    struct binder binder = {
        .catalog = catalog,
        .arena = catalog->arena,
        .source = input->source,
        .parameters = input->parameters,
    };
    TRY(bind_body(&binder, input->query, out_query, err));
    out_query->name = input->name;
    return STATUS_OK;
}
