/* SPDX-License-Identifier: Apache-2.0 */
/* bind_from.c - FROM, joins, and where conditions go.
 *
 * Filters are pushed down: conditions of WHERE and ON go as deep as their columns allow, so that a
 * join meets few rows. A condition that can fail (a cast, say) stays above: it must not see rows
 * that the query would have removed first.
 */
#include "engine/sql/bind_from.h"

#include "engine/sql/diagnostic.h"

struct relation *binder_new_relation(struct binder *binder, enum relation_kind kind,
                                     struct relation *input)
{
    struct relation *relation = arena_new(binder->arena, struct relation);
    if (relation == NULL) return NULL;
    *relation = (struct relation){.kind = kind, .input = input, .limit = UINT64_MAX};
    if (input != NULL) {
        relation->columns = input->columns;
        relation->column_count = input->column_count;
    }
    return relation;
}

static status scope_add(struct binder *binder, struct scope *scope, struct scope_column column,
                        struct error *err)
{
    struct scope_column *added = array_add_in(scope, binder->arena);
    if (added == NULL) return binder_memory(err);
    *added = column;
    return STATUS_OK;
}

/* ---- conditions ---- */

struct column_test {
    const struct relation *relation;
    bool all_inside;
};

static bool relation_has(const struct relation *relation, uint32_t column)
{
    for (uint32_t i = 0; i < relation->column_count; i++) {
        if (relation->columns[i] == column) return true;
    }
    return false;
}

static void test_column(const struct expr *expr, void *context)
{
    struct column_test *test = context;
    if (expr->kind == EXPR_COLUMN && !relation_has(test->relation, expr->column)) {
        test->all_inside = false;
    }
}

static bool covered_by(const struct expr *expr, const struct relation *relation)
{
    struct column_test test = {.relation = relation, .all_inside = true};
    expr_visit(expr, test_column, &test);
    return test.all_inside;
}

static void note_column(const struct expr *expr, void *context)
{
    if (expr->kind == EXPR_COLUMN) *(bool *)context = true;
}

static bool has_columns(const struct expr *expr)
{
    bool found = false;
    expr_visit(expr, note_column, &found);
    return found;
}

status bind_filter_add(struct binder *binder, struct relation **in_out_relation,
                       const struct expr *condition, struct error *err)
{
    struct relation *relation = *in_out_relation;
    if (relation->kind != RELATION_FILTER) {
        relation = binder_new_relation(binder, RELATION_FILTER, relation);
        if (relation == NULL) return binder_memory(err);
        *in_out_relation = relation;
    }
    const struct expr **exprs =
        arena_array(binder->arena, const struct expr *, relation->expr_count + 1);
    if (exprs == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < relation->expr_count; i++) {
        exprs[i] = relation->exprs[i];
    }
    exprs[relation->expr_count++] = condition;
    relation->exprs = exprs;
    return STATUS_OK;
}

/* An equality between the two sides of a join is a key of it. */
static bool key_of(const struct relation *join, const struct expr *condition,
                   struct relation_key *out_key)
{
    if (condition->kind != EXPR_CALL || condition->function != FUNCTION_EQUAL) return false;
    const struct expr *a = condition->args[0];
    const struct expr *b = condition->args[1];
    if (type_is_list(a->type) || !has_columns(a) || !has_columns(b)) return false;
    if (covered_by(a, join->input) && covered_by(b, join->right)) {
        *out_key = (struct relation_key){a, b};
        return true;
    }
    if (covered_by(b, join->input) && covered_by(a, join->right)) {
        *out_key = (struct relation_key){b, a};
        return true;
    }
    return false;
}

static status key_add(struct binder *binder, struct relation *join, struct relation_key key,
                      struct error *err)
{
    struct relation_key *keys =
        arena_array(binder->arena, struct relation_key, join->key_count + 1);
    if (keys == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < join->key_count; i++) {
        keys[i] = join->keys[i];
    }
    keys[join->key_count++] = key;
    join->keys = keys;
    return STATUS_OK;
}

/* Depth is bounded by the number of tables in FROM, which the parser bounds. */
static status condition_sink(struct binder *binder, struct relation **in_out_relation,
                             const struct expr *condition, struct error *err)
{
    struct relation *relation = *in_out_relation;
    struct relation_key key;
    /* A key may fail: it is computed behind all that was put below the join. */
    if (relation->kind == RELATION_JOIN && !relation->left_outer &&
        key_of(relation, condition, &key)) {
        return key_add(binder, relation, key, err);
    }
    if (expr_can_fail(condition)) return bind_filter_add(binder, in_out_relation, condition, err);
    switch (relation->kind) {
    case RELATION_FILTER:
        if (relation->input->kind == RELATION_JOIN || relation->input->kind == RELATION_UNNEST) {
            bool fallible = false;
            for (uint32_t i = 0; i < relation->expr_count; i++) {
                fallible = fallible || expr_can_fail(relation->exprs[i]);
            }
            if (!fallible && covered_by(condition, relation->input)) {
                return condition_sink(binder, &relation->input, condition, err);
            }
        }
        break;
    case RELATION_JOIN:
        if (covered_by(condition, relation->input)) {
            return condition_sink(binder, &relation->input, condition, err);
        }
        if (!relation->left_outer && covered_by(condition, relation->right)) {
            return condition_sink(binder, &relation->right, condition, err);
        }
        break;
    case RELATION_UNNEST:
        if (covered_by(condition, relation->input)) {
            return condition_sink(binder, &relation->input, condition, err);
        }
        break;
    default:
        break;
    }
    return bind_filter_add(binder, in_out_relation, condition, err);
}

status bind_conditions_sink(struct binder *binder, struct relation **in_out_relation,
                            const struct expr *condition, struct error *err)
{
    if (condition->kind != EXPR_CALL || condition->function != FUNCTION_AND) {
        return condition_sink(binder, in_out_relation, condition, err);
    }
    for (uint32_t i = 0; i < condition->arg_count; i++) {
        TRY(bind_conditions_sink(binder, in_out_relation, condition->args[i], err));
    }
    return STATUS_OK;
}

/* ---- sources ---- */

static status table_unknown(struct binder *binder, const struct ast_from *ast, struct error *err)
{
    struct text names[BINDER_NAMES_LIMIT];
    uint32_t count = 0;
    for (uint32_t i = 0; i < binder->withs.count && count < BINDER_NAMES_LIMIT; i++) {
        names[count++] = binder->withs.items[i].name;
    }
    for (uint32_t i = 0; i < binder->catalog->table_count && count < BINDER_NAMES_LIMIT; i++) {
        names[count++] = binder->catalog->tables[i].name;
    }
    char hint[BINDER_SUGGESTION_SIZE];
    return sql_error(err, binder->source, ast->offset, "no table `%.*s`%s", TEXT_ARGS(ast->name),
                     sql_suggest(hint, sizeof hint, ast->name, names, count));
}

/* New column numbers for `count` columns named by `names`, put in scope under `alias`. */
static status name_columns(struct binder *binder, struct relation *relation,
                           const struct text *names, const struct type *types, uint32_t count,
                           struct error *err)
{
    relation->columns = arena_array(binder->arena, uint32_t, count + 1);
    if (relation->columns == NULL) return binder_memory(err);
    relation->column_count = count;
    for (uint32_t i = 0; i < count; i++) {
        TRY(binder_new_column(binder, names[i], types[i], &relation->columns[i], err));
    }
    return STATUS_OK;
}

status bind_scope_add_all(struct binder *binder, struct scope *scope, struct text alias,
                          const struct relation *relation, const struct text *names,
                          struct error *err)
{
    for (uint32_t i = 0; i < relation->column_count; i++) {
        struct scope_column column = {alias, names[i], relation->columns[i]};
        TRY(scope_add(binder, scope, column, err));
    }
    return STATUS_OK;
}

static status from_scan(struct binder *binder, uint32_t table, struct text alias,
                        struct scope *scope, struct relation **out_relation, struct error *err)
{
    const struct table *found = &binder->catalog->tables[table];
    uint32_t count = found->schema.count;
    struct relation *relation = binder_new_relation(binder, RELATION_SCAN, NULL);
    struct text *names = arena_array(binder->arena, struct text, count + 1);
    struct type *types = arena_array(binder->arena, struct type, count + 1);
    if (relation == NULL || names == NULL || types == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        names[i] = found->schema.fields[i].name;
        types[i] = found->schema.fields[i].type;
    }
    relation->table = table;
    TRY(name_columns(binder, relation, names, types, count, err));
    TRY(bind_scope_add_all(binder, scope, alias, relation, names, err));
    *out_relation = relation;
    return STATUS_OK;
}

static status from_with(struct binder *binder, const struct with_entry *with, struct text alias,
                        struct scope *scope, struct relation **out_relation, struct error *err)
{
    const struct relation *origin = with->query->relation;
    uint32_t count = origin->column_count;
    struct relation *relation = binder_new_relation(binder, RELATION_SHARED, NULL);
    struct type *types = arena_array(binder->arena, struct type, count + 1);
    if (relation == NULL || types == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        types[i] = binder->catalog->columns.items[origin->columns[i]].type;
    }
    relation->shared = with->query;
    TRY(name_columns(binder, relation, with->column_names, types, count, err));
    TRY(bind_scope_add_all(binder, scope, alias, relation, with->column_names, err));
    *out_relation = relation;
    return STATUS_OK;
}

static status from_table(struct binder *binder, const struct ast_from *ast, struct scope *scope,
                         struct relation **out_relation, struct error *err)
{
    struct text alias = ast->alias.size > 0 ? ast->alias : ast->name;
    for (uint32_t i = binder->withs.count; i > 0; i--) {
        if (text_equal_ignoring_case(binder->withs.items[i - 1].name, ast->name)) {
            return from_with(binder, &binder->withs.items[i - 1], alias, scope, out_relation, err);
        }
    }
    for (uint32_t i = 0; i < binder->catalog->table_count; i++) {
        if (text_equal_ignoring_case(binder->catalog->tables[i].name, ast->name)) {
            return from_scan(binder, i, alias, scope, out_relation, err);
        }
    }
    return table_unknown(binder, ast, err);
}

static status from_unnest(struct binder *binder, const struct ast_from *ast, struct relation *input,
                          struct scope *scope, struct relation **out_relation, struct error *err)
{
    struct expr_scope inner = {.columns = scope, .clause = "UNNEST"};
    const struct expr *list;
    TRY(bind_expr(binder, &inner, ast->expr, &list, err));
    if (!type_is_list(list->type)) {
        return sql_error(err, binder->source, ast->expr->offset, "UNNEST takes a list");
    }
    struct relation *relation = binder_new_relation(binder, RELATION_UNNEST, input);
    const struct expr **exprs = arena_array(binder->arena, const struct expr *, 1);
    if (relation == NULL || exprs == NULL) return binder_memory(err);
    exprs[0] = list;
    relation->exprs = exprs;
    relation->expr_count = 1;
    relation->columns = arena_array(binder->arena, uint32_t, input->column_count + 1);
    if (relation->columns == NULL) return binder_memory(err);
    memcpy(relation->columns, input->columns, input->column_count * sizeof *relation->columns);
    struct text alias = ast->alias.size > 0 ? ast->alias : TEXT_LITERAL("unnest");
    struct text name = ast->column_alias.size > 0 ? ast->column_alias : alias;
    uint32_t column;
    TRY(binder_new_column(binder, name, type_element(list->type), &column, err));
    relation->columns[input->column_count] = column;
    relation->column_count = input->column_count + 1;
    *out_relation = relation;
    return scope_add(binder, scope, (struct scope_column){alias, name, column}, err);
}

/* ---- joins ---- */

/* ON of a LEFT JOIN: equalities between the sides, and conditions on the right side alone. */
static status on_left_outer(struct binder *binder, const struct ast_from *ast,
                            struct relation *join, const struct expr *condition, struct error *err)
{
    if (condition->kind == EXPR_CALL && condition->function == FUNCTION_AND) {
        for (uint32_t i = 0; i < condition->arg_count; i++) {
            TRY(on_left_outer(binder, ast, join, condition->args[i], err));
        }
        return STATUS_OK;
    }
    struct relation_key key;
    if (key_of(join, condition, &key)) return key_add(binder, join, key, err);
    if (has_columns(condition) && covered_by(condition, join->right)) {
        return condition_sink(binder, &join->right, condition, err);
    }
    return sql_error(err, binder->source, ast->expr->offset,
                     "ON of a LEFT JOIN takes equalities between the two sides and conditions on "
                     "the right side");
}

static status from_join(struct binder *binder, const struct ast_from *ast, struct scope *scope,
                        struct relation **out_relation, struct error *err)
{
    struct relation *left;
    struct relation *right;
    TRY(bind_from(binder, ast->left, scope, &left, err));
    if (ast->right->kind == AST_FROM_UNNEST) {
        if (ast->left_outer || ast->expr != NULL) {
            return sql_error(err, binder->source, ast->right->offset,
                             "UNNEST takes no ON: write `, UNNEST(...) AS t(column)`");
        }
        return from_unnest(binder, ast->right, left, scope, out_relation, err);
    }
    struct scope right_scope = {0};
    TRY(bind_from(binder, ast->right, &right_scope, &right, err));
    for (uint32_t i = 0; i < right_scope.count; i++) {
        struct scope_column item = right_scope.items[i];
        for (uint32_t j = 0; i == 0 && j < scope->count; j++) {
            if (text_equal_ignoring_case(scope->items[j].qualifier, item.qualifier)) {
                return sql_error(err, binder->source, ast->right->offset,
                                 "`%.*s` is here twice; give one of them an alias",
                                 TEXT_ARGS(item.qualifier));
            }
        }
        TRY(scope_add(binder, scope, item, err));
    }
    struct relation *join = binder_new_relation(binder, RELATION_JOIN, left);
    if (join == NULL) return binder_memory(err);
    join->right = right;
    join->left_outer = ast->left_outer;
    join->columns = arena_array(binder->arena, uint32_t, left->column_count + right->column_count);
    if (join->columns == NULL) return binder_memory(err);
    memcpy(join->columns, left->columns, left->column_count * sizeof *join->columns);
    memcpy(join->columns + left->column_count, right->columns,
           right->column_count * sizeof *join->columns);
    join->column_count = left->column_count + right->column_count;
    *out_relation = join;
    if (ast->expr == NULL) return STATUS_OK;
    struct expr_scope on_scope = {.columns = scope, .clause = "ON"};
    const struct expr *condition;
    TRY(bind_condition(binder, &on_scope, ast->expr, &condition, err));
    if (ast->left_outer) return on_left_outer(binder, ast, join, condition, err);
    return bind_conditions_sink(binder, out_relation, condition, err);
}

status bind_from(struct binder *binder, const struct ast_from *ast, struct scope *scope,
                 struct relation **out_relation, struct error *err)
{
    switch (ast->kind) {
    case AST_FROM_TABLE:
        return from_table(binder, ast, scope, out_relation, err);
    case AST_FROM_SUBQUERY: {
        struct bound_query query;
        TRY(bind_subquery(binder, ast->query, &query, err));
        *out_relation = query.relation;
        return bind_scope_add_all(binder, scope, ast->alias, query.relation, query.names, err);
    }
    case AST_FROM_UNNEST: {
        struct relation *one = binder_new_relation(binder, RELATION_ONE_ROW, NULL);
        if (one == NULL) return binder_memory(err);
        return from_unnest(binder, ast, one, scope, out_relation, err);
    }
    case AST_FROM_JOIN:
        break;
    }
    return from_join(binder, ast, scope, out_relation, err);
}
