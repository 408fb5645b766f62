/* SPDX-License-Identifier: Apache-2.0 */
/* bind_expr.c - names, literals, operators: one function per kind of expression.
 *
 * Types meet by type_common; a text literal or parameter takes the type of what it meets, so that
 * release_date >= '2000-01-01' compares dates. All other conversions between text and the rest must
 * be written by the user: a silent one would hide a mistake.
 */
#include "engine/sql/bind_expr.h"

#include "engine/base/number.h"
#include "engine/sql/constant.h"
#include "engine/sql/diagnostic.h"

status binder_new_column(struct binder *binder, struct text name, struct type type,
                         uint32_t *out_column, struct error *err)
{
    struct catalog *catalog = binder->catalog;
    struct relation_column *column = array_add_in(&catalog->columns, binder->arena);
    if (column == NULL) return binder_memory(err);
    *column = (struct relation_column){.name = name, .type = type};
    *out_column = catalog->columns.count - 1;
    return STATUS_OK;
}

static status make_constant(struct binder *binder, struct value value, struct type type,
                            const struct expr **out_expr, struct error *err)
{
    *out_expr = expr_constant(binder->arena, value, type);
    return *out_expr == NULL ? binder_memory(err) : STATUS_OK;
}

status bind_make_call(struct binder *binder, enum function_id function, struct type type,
                      const struct expr *const *args, uint32_t arg_count,
                      const struct expr **out_expr, struct error *err)
{
    *out_expr = expr_call(binder->arena, function, type, args, arg_count);
    return *out_expr == NULL ? binder_memory(err) : STATUS_OK;
}

static bool is_text_constant(const struct expr *expr)
{
    return expr->kind == EXPR_CONSTANT && expr->type.kind == TYPE_TEXT;
}

/* ---- conversion ---- */

static bool cast_is_known(struct type from, struct type to)
{
    if (type_is_list(from) || type_is_list(to)) return to.kind == TYPE_TEXT;
    if (from.kind == TYPE_TEXT || to.kind == TYPE_TEXT) return true;
    if (type_is_number(from) && type_is_number(to)) return true;
    bool from_moment = from.kind == TYPE_DATE || from.kind == TYPE_TIMESTAMP;
    bool to_moment = to.kind == TYPE_DATE || to.kind == TYPE_TIMESTAMP;
    if (from_moment || to_moment) return from_moment && to_moment;
    return (from.kind == TYPE_BOOL && to.kind == TYPE_INT) ||
           (from.kind == TYPE_INT && to.kind == TYPE_BOOL);
}

status bind_convert(struct binder *binder, const struct ast_expr *ast, struct type type,
                    const struct expr **in_out_expr, struct error *err)
{
    const struct expr *expr = *in_out_expr;
    if (type_equal(expr->type, type)) return STATUS_OK;
    char from_name[TYPE_NAME_SIZE];
    char to_name[TYPE_NAME_SIZE];
    type_name(expr->type, from_name);
    type_name(type, to_name);
    if (expr->kind == EXPR_CONSTANT) {
        struct value value = expr->constant;
        if (expr->type.kind == TYPE_NULL)
            return make_constant(binder, value, type, in_out_expr, err);
        if (constant_convert(&value, expr->type, type)) {
            return make_constant(binder, value, type, in_out_expr, err);
        }
        if (expr->type.kind == TYPE_TEXT) {
            return sql_error(err, binder->source, ast->offset, "cannot read '%.*s' as %s",
                             expr->constant.text.size > 60 ? 60 : (int)expr->constant.text.size,
                             expr->constant.text.bytes, to_name);
        }
    }
    if (!cast_is_known(expr->type, type)) {
        return sql_error(err, binder->source, ast->offset, "a value of type %s cannot become %s",
                         from_name, to_name);
    }
    return bind_make_call(binder, FUNCTION_CAST, type, &expr, 1, in_out_expr, err);
}

status bind_unify(struct binder *binder, const struct ast_expr *ast, const struct expr **args,
                  const struct ast_expr *const *asts, uint32_t count, struct type *out_type,
                  struct error *err)
{
    struct type common = TYPE(NULL);
    bool any_fixed = false;
    for (uint32_t i = 0; i < count; i++) {
        if (is_text_constant(args[i])) continue;
        any_fixed = any_fixed || args[i]->type.kind != TYPE_NULL;
        if (!type_common(common, args[i]->type, &common)) {
            char names[2][TYPE_NAME_SIZE];
            return sql_error(err, binder->source, (asts != NULL ? asts[i] : ast)->offset,
                             "%s and %s don't go together; convert one with CAST(... AS ...)",
                             type_name(common, names[0]), type_name(args[i]->type, names[1]));
        }
    }
    if (!any_fixed) common = TYPE(TEXT);
    for (uint32_t i = 0; i < count; i++) {
        TRY(bind_convert(binder, asts != NULL ? asts[i] : ast, common, &args[i], err));
    }
    *out_type = common;
    return STATUS_OK;
}

/* ---- names ---- */

static status column_unknown(struct binder *binder, const struct expr_scope *scope,
                             const struct ast_expr *ast, struct error *err)
{
    struct text names[BINDER_NAMES_LIMIT];
    uint32_t count = 0;
    bool qualifier_known = false;
    for (uint32_t i = 0; i < scope->columns->count && count < BINDER_NAMES_LIMIT; i++) {
        const struct scope_column *item = &scope->columns->items[i];
        if (ast->qualifier.size > 0 && !text_equal_ignoring_case(item->qualifier, ast->qualifier)) {
            continue;
        }
        qualifier_known = true;
        names[count++] = item->name;
    }
    char hint[BINDER_SUGGESTION_SIZE];
    if (ast->qualifier.size > 0 && !qualifier_known) {
        for (uint32_t i = 0; i < scope->columns->count && count < BINDER_NAMES_LIMIT; i++) {
            names[count++] = scope->columns->items[i].qualifier;
        }
        return sql_error(err, binder->source, ast->offset, "no table `%.*s` here%s",
                         TEXT_ARGS(ast->qualifier),
                         sql_suggest(hint, sizeof hint, ast->qualifier, names, count));
    }
    for (uint32_t i = 0; i < scope->alias_count && count < BINDER_NAMES_LIMIT; i++) {
        names[count++] = scope->aliases[i].name;
    }
    struct text where = ast->qualifier;
    if (where.size == 0 && scope->columns->count > 0) {
        /* With one table in sight its name helps; with several it would mislead. */
        where = scope->columns->items[0].qualifier;
        for (uint32_t i = 0; i < scope->columns->count; i++) {
            if (!text_equal(scope->columns->items[i].qualifier, where)) where.size = 0;
        }
    }
    sql_suggest(hint, sizeof hint, ast->name, names, count);
    if (where.size > 0) {
        return sql_error(err, binder->source, ast->offset, "no column `%.*s` in %.*s%s",
                         TEXT_ARGS(ast->name), TEXT_ARGS(where), hint);
    }
    return sql_error(err, binder->source, ast->offset, "no column `%.*s`%s", TEXT_ARGS(ast->name),
                     hint);
}

static const struct expr *find_alias(const struct expr_scope *scope, const struct ast_expr *ast)
{
    if (ast->qualifier.size > 0) return NULL;
    for (uint32_t i = 0; i < scope->alias_count; i++) {
        if (text_equal_ignoring_case(scope->aliases[i].name, ast->name)) {
            return scope->aliases[i].expr;
        }
    }
    return NULL;
}

static status bind_column(struct binder *binder, const struct expr_scope *scope,
                          const struct ast_expr *ast, const struct expr **out_expr,
                          struct error *err)
{
    const struct expr *alias = find_alias(scope, ast);
    if (alias != NULL && scope->aliases_first) {
        *out_expr = alias;
        return STATUS_OK;
    }
    const struct scope_column *found = NULL;
    for (uint32_t i = 0; i < scope->columns->count; i++) {
        const struct scope_column *item = &scope->columns->items[i];
        if (!text_equal_ignoring_case(item->name, ast->name)) continue;
        if (ast->qualifier.size > 0 && !text_equal_ignoring_case(item->qualifier, ast->qualifier)) {
            continue;
        }
        if (found != NULL) {
            return sql_error(err, binder->source, ast->offset,
                             "`%.*s` is in %.*s and in %.*s; write %.*s.%.*s", TEXT_ARGS(ast->name),
                             TEXT_ARGS(found->qualifier), TEXT_ARGS(item->qualifier),
                             TEXT_ARGS(found->qualifier), TEXT_ARGS(ast->name));
        }
        found = item;
    }
    if (found == NULL && alias != NULL) {
        *out_expr = alias;
        return STATUS_OK;
    }
    if (found == NULL) return column_unknown(binder, scope, ast, err);
    *out_expr = expr_column(binder->arena, found->column,
                            binder->catalog->columns.items[found->column].type);
    return *out_expr == NULL ? binder_memory(err) : STATUS_OK;
}

static status bind_parameter(struct binder *binder, const struct ast_expr *ast,
                             const struct expr **out_expr, struct error *err)
{
    struct text names[BINDER_NAMES_LIMIT];
    uint32_t count = 0;
    /* From the end: a query's own parameter hides one of tables.sql. */
    for (uint32_t i = binder->parameters->count; i > 0; i--) {
        const struct catalog_parameter *parameter = &binder->parameters->items[i - 1];
        if (text_equal_ignoring_case(parameter->name, ast->name)) {
            return make_constant(binder, parameter->value, parameter->type, out_expr, err);
        }
        if (count < BINDER_NAMES_LIMIT) names[count++] = parameter->name;
    }
    char hint[BINDER_SUGGESTION_SIZE];
    return sql_error(err, binder->source, ast->offset,
                     "no parameter `$%.*s`%s; declare it with PARAMETER %.*s = ...",
                     TEXT_ARGS(ast->name), sql_suggest(hint, sizeof hint, ast->name, names, count),
                     TEXT_ARGS(ast->name));
}

/* ---- literals ---- */

static status bind_number(struct binder *binder, const struct ast_expr *ast,
                          const struct expr **out_expr, struct error *err)
{
    struct value value = {0};
    struct text digits = ast->name;
    if (ast->kind == AST_INT) {
        if (!int_parse(digits, &value.integer)) {
            return binder_fail(binder, ast, err, "this number does not fit INT (64 bits)");
        }
        return make_constant(binder, value, TYPE(INT), out_expr, err);
    }
    const char *point = memchr(digits.bytes, '.', digits.size);
    bool has_exponent = memchr(digits.bytes, 'e', digits.size) != NULL ||
                        memchr(digits.bytes, 'E', digits.size) != NULL;
    if (point != NULL && !has_exponent && digits.size <= DECIMAL_PRECISION_MAX) {
        uint8_t scale = (uint8_t)(digits.bytes + digits.size - point - 1);
        struct type type = {TYPE_DECIMAL, DECIMAL_PRECISION_MAX, scale};
        if (decimal_parse(digits, type.precision, scale, &value.integer)) {
            return make_constant(binder, value, type, out_expr, err);
        }
    }
    if (!double_parse(digits, &value.number)) {
        return binder_fail(binder, ast, err, "this number does not fit DOUBLE");
    }
    return make_constant(binder, value, TYPE(DOUBLE), out_expr, err);
}

static status bind_typed(struct binder *binder, const struct ast_expr *ast,
                         const struct expr **out_expr, struct error *err)
{
    struct value value = {.text = ast->name};
    TRY(make_constant(binder, value, TYPE(TEXT), out_expr, err));
    return bind_convert(binder, ast, ast->type, out_expr, err);
}

/* ---- operators ---- */

status bind_args(struct binder *binder, const struct expr_scope *scope, const struct ast_expr *ast,
                 const struct expr ***out_args, struct error *err)
{
    const struct expr **args = arena_array(binder->arena, const struct expr *, ast->arg_count + 1);
    if (args == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < ast->arg_count; i++) {
        TRY(bind_expr(binder, scope, ast->args[i], &args[i], err));
    }
    *out_args = args;
    return STATUS_OK;
}

static status bind_logic(struct binder *binder, const struct expr_scope *scope,
                         const struct ast_expr *ast, const struct expr **out_expr,
                         struct error *err)
{
    const struct expr **args = arena_array(binder->arena, const struct expr *, ast->arg_count);
    if (args == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < ast->arg_count; i++) {
        TRY(bind_condition(binder, scope, ast->args[i], &args[i], err));
    }
    enum function_id function = ast->kind == AST_AND  ? FUNCTION_AND
                                : ast->kind == AST_OR ? FUNCTION_OR
                                                      : FUNCTION_NOT;
    return bind_make_call(binder, function, TYPE(BOOL), args, ast->arg_count, out_expr, err);
}

static status compare(struct binder *binder, const struct ast_expr *ast, enum function_id function,
                      const struct expr *left, const struct expr *right,
                      const struct expr **out_expr, struct error *err)
{
    const struct expr *args[2] = {left, right};
    struct type common;
    const struct ast_expr *const *asts =
        ast->kind == AST_BINARY ? (const struct ast_expr *const *)ast->args : NULL;
    TRY(bind_unify(binder, ast, args, asts, 2, &common, err));
    return bind_make_call(binder, function, TYPE(BOOL), args, 2, out_expr, err);
}

static status negate_if(struct binder *binder, bool negated, const struct expr **in_out_expr,
                        struct error *err)
{
    if (!negated) return STATUS_OK;
    const struct expr *positive = *in_out_expr;
    return bind_make_call(binder, FUNCTION_NOT, TYPE(BOOL), &positive, 1, in_out_expr, err);
}

static status bind_between(struct binder *binder, const struct ast_expr *ast,
                           const struct expr *const *args, const struct expr **out_expr,
                           struct error *err)
{
    const struct expr *bounds[2];
    TRY(compare(binder, ast, FUNCTION_GREATER_EQUAL, args[0], args[1], &bounds[0], err));
    TRY(compare(binder, ast, FUNCTION_LESS_EQUAL, args[0], args[2], &bounds[1], err));
    TRY(bind_make_call(binder, FUNCTION_AND, TYPE(BOOL), bounds, 2, out_expr, err));
    return negate_if(binder, ast->negated, out_expr, err);
}

static status bind_text_match(struct binder *binder, const struct ast_expr *ast,
                              const struct expr **args, const struct expr **out_expr,
                              struct error *err)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (args[i]->type.kind != TYPE_TEXT && args[i]->type.kind != TYPE_NULL) {
            return binder_fail(binder, ast->args[i], err,
                               "LIKE compares texts; convert with CAST(... AS TEXT)");
        }
        TRY(bind_convert(binder, ast->args[i], TYPE(TEXT), &args[i], err));
    }
    enum function_id function = ast->op == AST_OP_ILIKE ? FUNCTION_ILIKE : FUNCTION_LIKE;
    TRY(bind_make_call(binder, function, TYPE(BOOL), args, 2, out_expr, err));
    return negate_if(binder, ast->negated, out_expr, err);
}

static status bind_arithmetic(struct binder *binder, const struct ast_expr *ast,
                              const struct expr **args, const struct expr **out_expr,
                              struct error *err)
{
    static const enum function_id functions[] = {
        [AST_OP_ADD] = FUNCTION_ADD,
        [AST_OP_SUBTRACT] = FUNCTION_SUBTRACT,
        [AST_OP_MULTIPLY] = FUNCTION_MULTIPLY,
        [AST_OP_DIVIDE] = FUNCTION_DIVIDE,
        [AST_OP_INTEGER_DIVIDE] = FUNCTION_INTEGER_DIVIDE,
        [AST_OP_MODULO] = FUNCTION_MODULO,
    };
    for (uint32_t i = 0; i < 2; i++) {
        if (is_text_constant(args[i]) || args[i]->type.kind == TYPE_NULL ||
            type_is_number(args[i]->type)) {
            continue;
        }
        char name[TYPE_NAME_SIZE];
        return sql_error(err, binder->source, ast->args[i]->offset,
                         "arithmetic needs numbers, this is %s", type_name(args[i]->type, name));
    }
    struct type type;
    if (ast->op == AST_OP_DIVIDE) {
        type = TYPE(DOUBLE);
    } else if (ast->op == AST_OP_MULTIPLY && args[0]->type.kind != TYPE_DOUBLE &&
               args[1]->type.kind != TYPE_DOUBLE &&
               (args[0]->type.kind == TYPE_DECIMAL || args[1]->type.kind == TYPE_DECIMAL)) {
        /* Scales add; a factor that is an INT has none. */
        uint32_t scale = 0;
        for (uint32_t i = 0; i < 2; i++) {
            if (args[i]->type.kind == TYPE_DECIMAL) {
                scale += args[i]->type.scale;
            } else {
                struct type whole = {TYPE_DECIMAL, DECIMAL_PRECISION_MAX, 0};
                TRY(bind_convert(binder, ast->args[i], whole, &args[i], err));
            }
        }
        if (scale > DECIMAL_PRECISION_MAX) {
            return binder_fail(binder, ast, err,
                               "the product has more than 18 decimals; convert a factor to DOUBLE");
        }
        type = (struct type){TYPE_DECIMAL, DECIMAL_PRECISION_MAX, (uint8_t)scale};
        return bind_make_call(binder, FUNCTION_MULTIPLY, type, args, 2, out_expr, err);
    } else {
        if (!type_common(is_text_constant(args[0]) ? TYPE(NULL) : args[0]->type,
                         is_text_constant(args[1]) ? TYPE(NULL) : args[1]->type, &type)) {
            return binder_fail(binder, ast, err, "these don't go together");
        }
        if (type.kind == TYPE_NULL) type = TYPE(INT);
        if (ast->op == AST_OP_INTEGER_DIVIDE && type.kind != TYPE_INT) {
            return binder_fail(binder, ast, err, "`//` divides INTs; use `/` or CAST(... AS INT)");
        }
    }
    TRY(bind_convert(binder, ast->args[0], type, &args[0], err));
    TRY(bind_convert(binder, ast->args[1], type, &args[1], err));
    return bind_make_call(binder, functions[ast->op], type, args, 2, out_expr, err);
}

static status bind_binary(struct binder *binder, const struct expr_scope *scope,
                          const struct ast_expr *ast, const struct expr **out_expr,
                          struct error *err)
{
    const struct expr **args = NULL;
    TRY(bind_args(binder, scope, ast, &args, err));
    switch (ast->op) {
    case AST_OP_EQUAL:
        return compare(binder, ast, FUNCTION_EQUAL, args[0], args[1], out_expr, err);
    case AST_OP_NOT_EQUAL:
        return compare(binder, ast, FUNCTION_NOT_EQUAL, args[0], args[1], out_expr, err);
    case AST_OP_LESS:
        return compare(binder, ast, FUNCTION_LESS, args[0], args[1], out_expr, err);
    case AST_OP_LESS_EQUAL:
        return compare(binder, ast, FUNCTION_LESS_EQUAL, args[0], args[1], out_expr, err);
    case AST_OP_GREATER:
        return compare(binder, ast, FUNCTION_GREATER, args[0], args[1], out_expr, err);
    case AST_OP_GREATER_EQUAL:
        return compare(binder, ast, FUNCTION_GREATER_EQUAL, args[0], args[1], out_expr, err);
    case AST_OP_CONCAT:
        for (uint32_t i = 0; i < 2; i++) {
            TRY(bind_convert(binder, ast->args[i], TYPE(TEXT), &args[i], err));
        }
        return bind_make_call(binder, FUNCTION_CONCAT, TYPE(TEXT), args, 2, out_expr, err);
    default:
        return bind_arithmetic(binder, ast, args, out_expr, err);
    }
}

static status bind_unary(struct binder *binder, const struct expr_scope *scope,
                         const struct ast_expr *ast, const struct expr **out_expr,
                         struct error *err)
{
    const struct expr *arg;
    /* The smallest INT has no positive counterpart, so that the sign belongs to the literal. */
    if (ast->op == AST_OP_NEGATE && ast->args[0]->kind == AST_INT &&
        text_equal(ast->args[0]->name, TEXT_LITERAL("9223372036854775808"))) {
        return make_constant(binder, (struct value){.integer = INT64_MIN}, TYPE(INT), out_expr,
                             err);
    }
    TRY(bind_expr(binder, scope, ast->args[0], &arg, err));
    if (arg->type.kind == TYPE_NULL) TRY(bind_convert(binder, ast, TYPE(INT), &arg, err));
    if (!type_is_number(arg->type)) return binder_fail(binder, ast, err, "a sign needs a number");
    *out_expr = arg;
    if (ast->op == AST_OP_PLUS) return STATUS_OK;
    /* A parameter may be the smallest INT, which fails when it is computed. */
    bool is_smallest = arg->kind == EXPR_CONSTANT && arg->type.kind == TYPE_INT &&
                       arg->constant.integer == INT64_MIN;
    if (arg->kind == EXPR_CONSTANT && !arg->constant.is_null && !is_smallest) {
        struct value value = arg->constant;
        if (arg->type.kind == TYPE_DOUBLE) {
            value.number = value.number == 0 ? 0 : -value.number;
        } else {
            value.integer = -value.integer;
        }
        return make_constant(binder, value, arg->type, out_expr, err);
    }
    return bind_make_call(binder, FUNCTION_NEGATE, arg->type, &arg, 1, out_expr, err);
}

/* when, then, ..., else: conditions become BOOLs, results meet in one type. */
static status bind_case(struct binder *binder, const struct expr_scope *scope,
                        const struct ast_expr *ast, const struct expr **out_expr, struct error *err)
{
    uint32_t pair_count = (ast->arg_count - (ast->has_else ? 1 : 0)) / 2;
    const struct expr **args =
        arena_array(binder->arena, const struct expr *, (size_t)pair_count * 2 + 1);
    const struct expr **results = arena_array(binder->arena, const struct expr *, pair_count + 1);
    const struct ast_expr **asts =
        arena_array(binder->arena, const struct ast_expr *, pair_count + 1);
    if (args == NULL || results == NULL || asts == NULL) return binder_memory(err);
    const struct expr *operand = NULL;
    if (ast->operand != NULL) TRY(bind_expr(binder, scope, ast->operand, &operand, err));
    for (uint32_t i = 0; i < pair_count; i++) {
        if (operand == NULL) {
            TRY(bind_condition(binder, scope, ast->args[2 * i], &args[2 * i], err));
        } else {
            const struct expr *wanted;
            TRY(bind_expr(binder, scope, ast->args[2 * i], &wanted, err));
            TRY(compare(binder, ast->args[2 * i], FUNCTION_EQUAL, operand, wanted, &args[2 * i],
                        err));
        }
        TRY(bind_expr(binder, scope, ast->args[2 * i + 1], &results[i], err));
        asts[i] = ast->args[2 * i + 1];
    }
    asts[pair_count] = ast;
    if (ast->has_else) {
        asts[pair_count] = ast->args[ast->arg_count - 1];
        TRY(bind_expr(binder, scope, asts[pair_count], &results[pair_count], err));
    } else {
        TRY(make_constant(binder, (struct value){.is_null = true}, TYPE(NULL), &results[pair_count],
                          err));
    }
    struct type type;
    TRY(bind_unify(binder, ast, results, asts, pair_count + 1, &type, err));
    for (uint32_t i = 0; i < pair_count; i++) {
        args[2 * i + 1] = results[i];
    }
    args[2 * pair_count] = results[pair_count];
    return bind_make_call(binder, FUNCTION_CASE, type, args, pair_count * 2 + 1, out_expr, err);
}

static status bind_scalar(struct binder *binder, const struct ast_expr *ast,
                          const struct expr **out_expr, struct error *err)
{
    struct bound_query query;
    TRY(bind_subquery(binder, ast->query, &query, err));
    if (query.visible_count != 1) {
        return binder_fail(binder, ast, err, "a sub-query used as a value must have one column");
    }
    struct catalog *catalog = binder->catalog;
    struct relation **relation = array_add_in(&catalog->scalars, binder->arena);
    struct expr *scalar = arena_new(binder->arena, struct expr);
    if (relation == NULL || scalar == NULL) return binder_memory(err);
    *relation = query.relation;
    *scalar = (struct expr){
        .kind = EXPR_SCALAR,
        .fold = catalog->scalars.count - 1,
        .type = catalog->columns.items[query.relation->columns[0]].type,
    };
    *out_expr = scalar;
    return STATUS_OK;
}

status bind_expr(struct binder *binder, const struct expr_scope *scope, const struct ast_expr *ast,
                 const struct expr **out_expr, struct error *err)
{
    const struct expr **args = NULL;
    struct type type;
    switch (ast->kind) {
    case AST_COLUMN:
        return bind_column(binder, scope, ast, out_expr, err);
    case AST_STAR:
        return binder_fail(binder, ast, err, "`*` stands alone in a select list or in count(*)");
    case AST_INT:
    case AST_NUMBER:
        return bind_number(binder, ast, out_expr, err);
    case AST_TEXT:
        return make_constant(binder, (struct value){.text = ast->name}, TYPE(TEXT), out_expr, err);
    case AST_NULL:
        return make_constant(binder, (struct value){.is_null = true}, TYPE(NULL), out_expr, err);
    case AST_BOOL:
        return make_constant(binder, (struct value){.truth = ast->truth}, TYPE(BOOL), out_expr,
                             err);
    case AST_TYPED:
        return bind_typed(binder, ast, out_expr, err);
    case AST_PARAMETER:
        return bind_parameter(binder, ast, out_expr, err);
    case AST_CALL:
        return bind_call(binder, scope, ast, out_expr, err);
    case AST_UNARY:
        return bind_unary(binder, scope, ast, out_expr, err);
    case AST_BINARY:
        return bind_binary(binder, scope, ast, out_expr, err);
    case AST_AND:
    case AST_OR:
    case AST_NOT:
        return bind_logic(binder, scope, ast, out_expr, err);
    case AST_IS_NULL:
        TRY(bind_args(binder, scope, ast, &args, err));
        return bind_make_call(binder, ast->negated ? FUNCTION_IS_NOT_NULL : FUNCTION_IS_NULL,
                              TYPE(BOOL), args, 1, out_expr, err);
    case AST_IN:
        TRY(bind_args(binder, scope, ast, &args, err));
        TRY(bind_unify(binder, ast, args, (const struct ast_expr *const *)ast->args, ast->arg_count,
                       &type, err));
        TRY(bind_make_call(binder, FUNCTION_IN, TYPE(BOOL), args, ast->arg_count, out_expr, err));
        return negate_if(binder, ast->negated, out_expr, err);
    case AST_BETWEEN:
        TRY(bind_args(binder, scope, ast, &args, err));
        return bind_between(binder, ast, args, out_expr, err);
    case AST_LIKE:
        TRY(bind_args(binder, scope, ast, &args, err));
        return bind_text_match(binder, ast, args, out_expr, err);
    case AST_CASE:
        return bind_case(binder, scope, ast, out_expr, err);
    case AST_CAST:
        TRY(bind_expr(binder, scope, ast->args[0], out_expr, err));
        return bind_convert(binder, ast, ast->type, out_expr, err);
    case AST_SUBQUERY:
        return bind_scalar(binder, ast, out_expr, err);
    case AST_INDEX:
        TRY(bind_args(binder, scope, ast, &args, err));
        if (!type_is_list(args[0]->type))
            return binder_fail(binder, ast, err, "only lists have elements");
        TRY(bind_convert(binder, ast->args[1], TYPE(INT), &args[1], err));
        return bind_make_call(binder, FUNCTION_LIST_ELEMENT, type_element(args[0]->type), args, 2,
                              out_expr, err);
    }
    return binder_fail(binder, ast, err, "this expression is not known");
}

status bind_condition(struct binder *binder, const struct expr_scope *scope,
                      const struct ast_expr *ast, const struct expr **out_expr, struct error *err)
{
    TRY(bind_expr(binder, scope, ast, out_expr, err));
    if ((*out_expr)->type.kind == TYPE_NULL) {
        return bind_convert(binder, ast, TYPE(BOOL), out_expr, err);
    }
    if ((*out_expr)->type.kind != TYPE_BOOL) {
        char name[TYPE_NAME_SIZE];
        return sql_error(err, binder->source, ast->offset,
                         "a condition is true or false, this is %s",
                         type_name((*out_expr)->type, name));
    }
    return STATUS_OK;
}

status bind_count(struct binder *binder, const struct ast_expr *ast, const char *clause,
                  uint64_t *out_count, struct error *err)
{
    const struct scope empty = {0};
    struct expr_scope scope = {.columns = &empty, .clause = clause};
    const struct expr *expr;
    TRY(bind_expr(binder, &scope, ast, &expr, err));
    if (expr->kind != EXPR_CONSTANT || expr->type.kind != TYPE_INT || expr->constant.is_null ||
        expr->constant.integer < 0) {
        return sql_error(err, binder->source, ast->offset,
                         "%s takes a whole number that is not negative", clause);
    }
    *out_count = (uint64_t)expr->constant.integer;
    return STATUS_OK;
}
