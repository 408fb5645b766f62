/* SPDX-License-Identifier: Apache-2.0 */
/* bind_call.c - calls: aggregates, and functions by their signatures.
 *
 * A function's signature is a string of letters (engine/plan/function.h); the first one that takes
 * the arguments is meant. An aggregate becomes a column of its SELECT: the same one written twice
 * is computed once.
 */
#include "engine/sql/bind_expr.h"

#include <stdio.h>

#include "engine/base/calendar.h"
#include "engine/sql/diagnostic.h"

enum { ARGUMENT_LIMIT = 100000 };

/* ---- aggregates ---- */

static struct type aggregate_type(enum aggregate_kind kind, struct type input)
{
    switch (kind) {
    case AGGREGATE_COUNT_ROWS:
    case AGGREGATE_COUNT:
        return TYPE(INT);
    case AGGREGATE_AVG:
        return TYPE(DOUBLE);
    case AGGREGATE_SUM:
        if (input.kind == TYPE_DECIMAL) {
            return (struct type){TYPE_DECIMAL, DECIMAL_PRECISION_MAX, input.scale};
        }
        return input;
    case AGGREGATE_MIN:
    case AGGREGATE_MAX:
    case AGGREGATE_ARG_MIN:
    case AGGREGATE_ARG_MAX:
        break;
    }
    return input;
}

static status aggregate_check(struct binder *binder, const struct ast_expr *ast,
                              struct relation_aggregate *found, struct error *err)
{
    struct type type = found->input == NULL ? TYPE(INT) : found->input->type;
    if (type.kind == TYPE_NULL) type = TYPE(INT);
    bool numeric = found->kind == AGGREGATE_SUM || found->kind == AGGREGATE_AVG;
    if (numeric && !type_is_number(type)) {
        char name[TYPE_NAME_SIZE];
        return sql_error(err, binder->source, ast->args[0]->offset,
                         "%.*s needs numbers, this is %s", TEXT_ARGS(ast->name),
                         type_name(type, name));
    }
    bool lists = type_is_list(type) || (found->by != NULL && type_is_list(found->by->type));
    if (lists && found->kind != AGGREGATE_COUNT) {
        return binder_fail(binder, ast, err, "lists cannot be aggregated; UNNEST them first");
    }
    if (found->input != NULL) TRY(bind_convert(binder, ast->args[0], type, &found->input, err));
    return STATUS_OK;
}

/* DISTINCT in the parentheses. Of the least and the greatest it says nothing; the others must agree
 * on what is distinct, for their rows are grouped by it. */
static status aggregate_distinct(struct binder *binder, const struct ast_expr *ast,
                                 struct aggregation *aggregation, struct relation_aggregate *found,
                                 struct error *err)
{
    found->distinct = found->kind == AGGREGATE_COUNT || found->kind == AGGREGATE_SUM ||
                      found->kind == AGGREGATE_AVG;
    if (!found->distinct) return STATUS_OK;
    if (type_is_list(found->input->type)) {
        return binder_fail(binder, ast->args[0], err, "DISTINCT cannot compare lists");
    }
    if (aggregation->distinct == NULL) {
        const struct ast_expr *arg = ast->args[0];
        aggregation->distinct = found->input;
        aggregation->distinct_name =
            found->input->kind == EXPR_COLUMN
                ? binder->catalog->columns.items[found->input->column].name
                : (struct text){binder->source->text.bytes + arg->offset, arg->size};
    }
    if (!expr_equal(aggregation->distinct, found->input)) {
        return binder_fail(binder, ast->args[0], err,
                           "DISTINCT of different arguments in one SELECT is not supported; write "
                           "a sub-query for each and JOIN them");
    }
    return STATUS_OK;
}

/* Name, arguments and DISTINCT of an aggregate as it is written. */
static status aggregate_read(struct binder *binder, const struct expr_scope *scope,
                             const struct ast_expr *ast, struct relation_aggregate *found,
                             struct error *err)
{
    uint32_t wanted = found->kind == AGGREGATE_ARG_MIN || found->kind == AGGREGATE_ARG_MAX ? 2 : 1;
    bool star = ast->arg_count == 1 && ast->args[0]->kind == AST_STAR;
    if (found->kind == AGGREGATE_COUNT && (star || ast->arg_count == 0)) {
        found->kind = AGGREGATE_COUNT_ROWS;
        return STATUS_OK;
    }
    if (ast->arg_count != wanted || star) {
        return sql_error(err, binder->source, ast->offset, "%.*s takes %s", TEXT_ARGS(ast->name),
                         wanted == 2 ? "two arguments" : "one argument");
    }
    struct expr_scope inner = *scope;
    inner.aggregation = NULL;
    inner.clause = "an aggregate";
    inner.alias_count = 0;
    TRY(bind_expr(binder, &inner, ast->args[0], &found->input, err));
    if (wanted == 2) TRY(bind_expr(binder, &inner, ast->args[1], &found->by, err));
    TRY(aggregate_check(binder, ast, found, err));
    if (!ast->distinct) return STATUS_OK;
    return aggregate_distinct(binder, ast, scope->aggregation, found, err);
}

static bool same_argument(const struct expr *a, const struct expr *b)
{
    return a == NULL || b == NULL ? a == b : expr_equal(a, b);
}

static status bind_aggregate(struct binder *binder, const struct expr_scope *scope,
                             const struct ast_expr *ast, enum aggregate_kind kind,
                             const struct expr **out_expr, struct error *err)
{
    struct aggregation *aggregation = scope->aggregation;
    if (aggregation == NULL) {
        return sql_error(err, binder->source, ast->offset, "%.*s cannot stand in %s%s",
                         TEXT_ARGS(ast->name), scope->clause,
                         strcmp(scope->clause, "WHERE") == 0 ? "; use HAVING" : "");
    }
    struct relation_aggregate found = {.kind = kind};
    TRY(aggregate_read(binder, scope, ast, &found, err));
    for (uint32_t i = 0; i < aggregation->count; i++) {
        const struct relation_aggregate *known = &aggregation->items[i];
        if (known->kind == found.kind && known->distinct == found.distinct &&
            same_argument(known->input, found.input) && same_argument(known->by, found.by)) {
            *out_expr = expr_column(binder->arena, known->column,
                                    binder->catalog->columns.items[known->column].type);
            return *out_expr == NULL ? binder_memory(err) : STATUS_OK;
        }
    }
    struct type type =
        aggregate_type(found.kind, found.input == NULL ? TYPE(INT) : found.input->type);
    struct text name = {binder->source->text.bytes + ast->offset, ast->size};
    TRY(binder_new_column(binder, name, type, &found.column, err));
    struct relation_aggregate *added = array_add_in(aggregation, binder->arena);
    if (added == NULL) return binder_memory(err);
    *added = found;
    *out_expr = expr_column(binder->arena, found.column, type);
    return *out_expr == NULL ? binder_memory(err) : STATUS_OK;
}

/* ---- functions ---- */

static char letter_at(const struct function *function, uint32_t index)
{
    size_t count = strlen(function->arguments);
    if (count == 0) return '\0';
    if (index >= count) return function->variadic ? function->arguments[count - 1] : '\0';
    return function->arguments[index];
}

static bool letter_accepts(char letter, const struct expr *arg)
{
    enum type_kind kind = (enum type_kind)arg->type.kind;
    if (kind == TYPE_NULL) return letter != '\0';
    switch (letter) {
    case 'b':
        return kind == TYPE_BOOL;
    case 'i':
        return kind == TYPE_INT;
    case 'd':
    case 'n':
        return type_is_number(arg->type);
    case 't':
        return kind == TYPE_TEXT;
    case 'm':
        return kind == TYPE_DATE || kind == TYPE_TIMESTAMP;
    case 'p':
        return kind == TYPE_TIMESTAMP;
    case 'l':
        return type_is_list(arg->type);
    case 'L':
        return kind == TYPE_LIST_TEXT;
    case 'a':
    case '=':
        return true;
    default:
        return false;
    }
}

static struct type letter_type(char letter, struct type given)
{
    switch (letter) {
    case 'b':
        return TYPE(BOOL);
    case 'i':
        return TYPE(INT);
    case 'd':
        return TYPE(DOUBLE);
    case 't':
        return TYPE(TEXT);
    case 'p':
        return TYPE(TIMESTAMP);
    case 'L':
        return TYPE(LIST_TEXT);
    case 'm':
        return given.kind == TYPE_NULL ? TYPE(TIMESTAMP) : given;
    case 'n':
        return given.kind == TYPE_NULL ? TYPE(INT) : given;
    case 'l':
        return given.kind == TYPE_NULL ? TYPE(LIST_TEXT) : given;
    default:
        return given.kind == TYPE_NULL ? TYPE(TEXT) : given;
    }
}

static bool signature_accepts(const struct function *function, const struct expr *const *args,
                              uint32_t arg_count)
{
    if (arg_count < function->minimum_count) return false;
    for (uint32_t i = 0; i < arg_count; i++) {
        if (!letter_accepts(letter_at(function, i), args[i])) return false;
    }
    return true;
}

static status no_signature(struct binder *binder, const struct ast_expr *ast,
                           const struct expr *const *args, const struct function *known,
                           struct error *err)
{
    char given[256] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < ast->arg_count && used < sizeof given - TYPE_NAME_SIZE - 3; i++) {
        char name[TYPE_NAME_SIZE];
        used += (size_t)snprintf(given + used, sizeof given - used, "%s%s", i == 0 ? "" : ", ",
                                 type_name(args[i]->type, name));
    }
    return sql_error(err, binder->source, ast->offset, "%s cannot take (%s)", known->name, given);
}

static status adapt_args(struct binder *binder, const struct ast_expr *ast,
                         const struct function *function, const struct expr **args,
                         struct type *out_type, struct error *err)
{
    struct type common = TYPE(NULL);
    if (strchr(function->arguments, '=') != NULL) {
        size_t first = (size_t)(strchr(function->arguments, '=') - function->arguments);
        TRY(bind_unify(binder, ast, args + first, (const struct ast_expr *const *)ast->args + first,
                       ast->arg_count - (uint32_t)first, &common, err));
    }
    for (uint32_t i = 0; i < ast->arg_count; i++) {
        char letter = letter_at(function, i);
        if (letter == '=') continue;
        struct type type = letter_type(letter, args[i]->type);
        if (function->id == FUNCTION_LIST_CONTAINS && i == 1) type = type_element(args[0]->type);
        TRY(bind_convert(binder, ast->args[i], type, &args[i], err));
    }
    switch (function->result) {
    case '=':
        *out_type = common;
        break;
    case '1':
        *out_type = args[0]->type;
        break;
    default:
        *out_type = letter_type(function->result, TYPE(NULL));
        break;
    }
    if (function->id == FUNCTION_LIST_ELEMENT) *out_type = type_element(args[0]->type);
    return STATUS_OK;
}

static status check_constants(struct binder *binder, const struct ast_expr *ast,
                              const struct function *function, const struct expr *const *args,
                              struct error *err)
{
    if (!function->constant_from_second) return STATUS_OK;
    for (uint32_t i = 1; i < ast->arg_count; i++) {
        if (args[i]->kind != EXPR_CONSTANT || args[i]->constant.is_null) {
            return sql_error(err, binder->source, ast->args[i]->offset,
                             "%s needs a constant or a parameter here", function->name);
        }
    }
    if (function->id == FUNCTION_STRFTIME && !date_format_check(args[1]->constant.text)) {
        return binder_fail(binder, ast->args[1], err,
                           "strftime knows %Y %m %d %H %M %S %f %y %j and %%");
    }
    return STATUS_OK;
}

/* What other dialects call by a name that is not ours. */
static const char *foreign_name(struct text name)
{
    static const struct {
        const char *name;
        const char *ours;
    } names[] = {
        {"concat", "a || b"},
        {"date_trunc", "strftime(x, '%Y-%m')"},
        {"if", "CASE WHEN ... THEN ... ELSE ... END"},
        {"ifnull", "coalesce(a, b)"},
        {"iif", "CASE WHEN ... THEN ... ELSE ... END"},
        {"instr", "contains(text, part)"},
        {"isnull", "x IS NULL"},
        {"left", "substring(text, 1, count)"},
        {"nvl", "coalesce(a, b)"},
        {"right", "substring(text, -count)"},
        {"to_char", "strftime(x, '%Y-%m-%d')"},
        {"to_date", "CAST(x AS DATE)"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (text_equal_ignoring_case(name, text_of(names[i].name))) return names[i].ours;
    }
    return NULL;
}

static status call_unknown(struct binder *binder, const struct ast_expr *ast, struct error *err)
{
    const char *ours = foreign_name(ast->name);
    if (ours != NULL) {
        return sql_error(err, binder->source, ast->offset, "no function `%.*s`; write %s",
                         TEXT_ARGS(ast->name), ours);
    }
    struct text names[BINDER_NAMES_LIMIT];
    uint32_t count = function_names(names, BINDER_NAMES_LIMIT - 8);
    static const char *const aggregates[] = {"count", "sum",     "avg",     "min",
                                             "max",   "arg_min", "arg_max", "row_number"};
    for (size_t i = 0; i < sizeof aggregates / sizeof aggregates[0]; i++) {
        names[count++] = text_of(aggregates[i]);
    }
    char hint[BINDER_SUGGESTION_SIZE];
    return sql_error(err, binder->source, ast->offset, "no function `%.*s`%s", TEXT_ARGS(ast->name),
                     sql_suggest(hint, sizeof hint, ast->name, names, count));
}

/* round() of INT and DECIMAL stays exact: it is a CAST to fewer decimals. */
static status round_exactly(struct binder *binder, const struct ast_expr *ast,
                            enum function_id function, const struct expr *const *args,
                            bool *out_rounded, const struct expr **out_expr, struct error *err)
{
    *out_rounded = false;
    if (function != FUNCTION_ROUND || ast->arg_count < 1 || ast->arg_count > 2) return STATUS_OK;
    struct type type = args[0]->type;
    if (type.kind != TYPE_INT && type.kind != TYPE_DECIMAL) return STATUS_OK;
    int64_t digits = 0;
    if (ast->arg_count == 2) {
        bool constant = args[1]->kind == EXPR_CONSTANT && args[1]->type.kind == TYPE_INT &&
                        !args[1]->constant.is_null;
        if (!constant || args[1]->constant.integer < 0) return STATUS_OK;
        digits = args[1]->constant.integer;
    }
    *out_rounded = true;
    *out_expr = args[0];
    if (type.kind == TYPE_INT || digits >= type.scale) return STATUS_OK;
    type = (struct type){TYPE_DECIMAL, DECIMAL_PRECISION_MAX, (uint8_t)digits};
    return bind_convert(binder, ast, type, out_expr, err);
}

status bind_call(struct binder *binder, const struct expr_scope *scope, const struct ast_expr *ast,
                 const struct expr **out_expr, struct error *err)
{
    if (ast->window != NULL || text_equal_ignoring_case(ast->name, TEXT_LITERAL("row_number"))) {
        return binder_fail(binder, ast, err,
                           "the only window function is row_number(), in QUALIFY row_number() OVER "
                           "(PARTITION BY ... ORDER BY ...) <= k");
    }
    enum aggregate_kind aggregate;
    if (aggregate_find(ast->name, &aggregate)) {
        return bind_aggregate(binder, scope, ast, aggregate, out_expr, err);
    }
    uint32_t signature_count = 0;
    const struct function *signatures = function_find(ast->name, &signature_count);
    if (signatures == NULL) return call_unknown(binder, ast, err);
    if (ast->distinct) return binder_fail(binder, ast, err, "DISTINCT belongs in an aggregate");
    if (ast->arg_count > ARGUMENT_LIMIT) return binder_fail(binder, ast, err, "too many arguments");
    const struct expr **args = NULL;
    TRY(bind_args(binder, scope, ast, &args, err));
    bool rounded;
    TRY(round_exactly(binder, ast, signatures[0].id, args, &rounded, out_expr, err));
    if (rounded) return STATUS_OK;
    for (uint32_t i = 0; i < signature_count; i++) {
        const struct function *function = &signatures[i];
        if (!signature_accepts(function, args, ast->arg_count)) continue;
        struct type type;
        TRY(adapt_args(binder, ast, function, args, &type, err));
        TRY(check_constants(binder, ast, function, args, err));
        return bind_make_call(binder, function->id, type, args, ast->arg_count, out_expr, err);
    }
    return no_signature(binder, ast, args, &signatures[0], err);
}
