/* SPDX-License-Identifier: Apache-2.0 */
/* expr.c - making, comparing and printing expressions.
 *
 * Recursion follows the depth of the expression, which the parser and the plan decoder bound.
 */
#include "engine/plan/expr.h"

#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/calendar.h"
#include "engine/base/number.h"

const struct expr *expr_column(struct arena *arena, uint32_t column, struct type type)
{
    struct expr *expr = arena_new(arena, struct expr);
    if (expr == NULL) return NULL;
    *expr = (struct expr){.kind = EXPR_COLUMN, .type = type, .column = column};
    return expr;
}

const struct expr *expr_constant(struct arena *arena, struct value value, struct type type)
{
    struct expr *expr = arena_new(arena, struct expr);
    if (expr == NULL) return NULL;
    *expr = (struct expr){.kind = EXPR_CONSTANT, .type = type, .constant = value};
    return expr;
}

const struct expr *expr_call(struct arena *arena, enum function_id function, struct type type,
                             const struct expr *const *args, uint32_t arg_count)
{
    struct expr *expr = arena_new(arena, struct expr);
    const struct expr **copy = arena_array(arena, const struct expr *, arg_count);
    if (expr == NULL || copy == NULL) return NULL;
    if (arg_count > 0) memcpy(copy, args, arg_count * sizeof *copy);
    *expr = (struct expr){
        .kind = EXPR_CALL,
        .type = type,
        .function = function,
        .arg_count = arg_count,
        .args = copy,
    };
    return expr;
}

const struct expr *expr_renumber(struct arena *arena, const struct expr *expr,
                                 const uint32_t *columns, const uint32_t *folds)
{
    struct expr *copy;
    switch (expr->kind) {
    case EXPR_CONSTANT:
        return expr;
    case EXPR_COLUMN:
        if (columns == NULL) return expr;
        return expr_column(arena, columns[expr->column], expr->type);
    case EXPR_SCALAR:
        if (folds == NULL) return expr;
        copy = arena_new(arena, struct expr);
        if (copy == NULL) return NULL;
        *copy = *expr;
        copy->fold = folds[expr->fold];
        return copy;
    case EXPR_CALL:
        break;
    }
    const struct expr **args = arena_array(arena, const struct expr *, expr->arg_count + 1);
    copy = arena_new(arena, struct expr);
    if (args == NULL || copy == NULL) return NULL;
    for (uint32_t i = 0; i < expr->arg_count; i++) {
        args[i] = expr_renumber(arena, expr->args[i], columns, folds);
        if (args[i] == NULL) return NULL;
    }
    *copy = *expr;
    copy->args = args;
    return copy;
}

/* --- Comparing. --- */

static bool value_equal(const struct value *a, const struct value *b, struct type type)
{
    if (a->is_null || b->is_null) return a->is_null == b->is_null;
    switch ((enum type_kind)type.kind) {
    case TYPE_NULL:
        return true;
    case TYPE_BOOL:
        return a->truth == b->truth;
    case TYPE_DOUBLE:
        /* Bit by bit: 0.0 and -0.0 are equal, and what comes of them need not be. */
        return memcmp(&a->number, &b->number, sizeof a->number) == 0;
    case TYPE_TEXT:
        return text_equal(a->text, b->text);
    default:
        return a->integer == b->integer;
    }
}

bool expr_equal(const struct expr *a, const struct expr *b)
{
    if (a == b) return true;
    if (a->kind != b->kind || !type_equal(a->type, b->type)) return false;
    switch (a->kind) {
    case EXPR_COLUMN:
        return a->column == b->column;
    case EXPR_CONSTANT:
        return value_equal(&a->constant, &b->constant, a->type);
    case EXPR_SCALAR:
        return a->fold == b->fold;
    case EXPR_CALL:
        break;
    }
    /* A cast to fewer digits can fail where one to more cannot. */
    if (a->function != b->function || a->arg_count != b->arg_count ||
        a->type.precision != b->type.precision) {
        return false;
    }
    for (uint32_t i = 0; i < a->arg_count; i++) {
        if (!expr_equal(a->args[i], b->args[i])) return false;
    }
    return true;
}

/* --- Failing and costing. --- */

static bool cast_can_fail(struct type from, struct type to)
{
    if (from.kind == TYPE_NULL || to.kind == TYPE_TEXT || to.kind == TYPE_DOUBLE ||
        to.kind == TYPE_BOOL) {
        return from.kind == TYPE_TEXT && to.kind != TYPE_TEXT;
    }
    switch ((enum type_kind)from.kind) {
    case TYPE_TEXT:
    case TYPE_DOUBLE:
        return true;
    case TYPE_INT:
        return to.kind == TYPE_DECIMAL;
    case TYPE_DECIMAL:
        return to.kind == TYPE_DECIMAL &&
               (to.precision - to.scale < from.precision - from.scale ||
                (to.scale < from.scale && to.precision - to.scale == from.precision - from.scale));
    case TYPE_BOOL:
        return to.kind == TYPE_DECIMAL && to.precision == to.scale;
    default:
        return false;
    }
}

/* Literals with | between are searched without steps to count. */
static bool is_plain_pattern(const struct expr *pattern)
{
    if (pattern->kind != EXPR_CONSTANT || pattern->constant.is_null) return false;
    struct text text = pattern->constant.text;
    for (uint32_t i = 0; i < text.size; i++) {
        char c = text.bytes[i];
        bool is_letter = ((unsigned char)c | 0x20) >= 'a' && ((unsigned char)c | 0x20) <= 'z';
        if (!is_letter && !(c >= '0' && c <= '9') && c != ' ' && c != '|') return false;
    }
    return true;
}

static bool call_can_fail(const struct expr *expr)
{
    switch (expr->function) {
    case FUNCTION_CAST:
        return cast_can_fail(expr->args[0]->type, expr->type);
    case FUNCTION_REGEXP_MATCHES:
    case FUNCTION_REGEXP_EXTRACT:
        return expr->arg_count < 2 || !is_plain_pattern(expr->args[1]);
    case FUNCTION_NEGATE:
    case FUNCTION_ABS:
        return expr->type.kind == TYPE_INT;
    case FUNCTION_ADD:
    case FUNCTION_SUBTRACT:
    case FUNCTION_MULTIPLY:
        return expr->type.kind != TYPE_DOUBLE;
    default: {
        const struct function *function = function_by_id(expr->function);
        return function == NULL || function->can_fail;
    }
    }
}

bool expr_can_fail(const struct expr *expr)
{
    if (expr->kind != EXPR_CALL) return false;
    if (call_can_fail(expr)) return true;
    for (uint32_t i = 0; i < expr->arg_count; i++) {
        if (expr_can_fail(expr->args[i])) return true;
    }
    return false;
}

static void find_pluck(const struct expr *expr, void *context)
{
    if (expr->kind == EXPR_CALL && expr->function == FUNCTION_PLUCK) *(bool *)context = true;
}

bool expr_counts(const struct expr *expr)
{
    bool found = false;
    expr_visit(expr, find_pluck, &found);
    return found;
}

bool expr_keeps_its_place(const struct expr *expr)
{
    return expr_counts(expr) || expr_can_fail(expr);
}

enum { COST_MAX = 1000000, TEXT_FACTOR = 3 };

uint32_t expr_cost(const struct expr *expr)
{
    if (expr->kind != EXPR_CALL) return 0;
    const struct function *function = function_by_id(expr->function);
    uint32_t cost = function == NULL ? 1 : function->cost;
    /* Comparing texts or lists goes through memory elsewhere. */
    bool compares = expr->function >= FUNCTION_EQUAL && expr->function <= FUNCTION_IN;
    if (compares && type_width(expr->args[0]->type) != sizeof(int64_t)) cost *= TEXT_FACTOR;
    if (expr->function == FUNCTION_CAST &&
        (expr->type.kind == TYPE_TEXT || expr->args[0]->type.kind == TYPE_TEXT)) {
        cost *= TEXT_FACTOR;
    }
    for (uint32_t i = 0; i < expr->arg_count && cost < COST_MAX; i++) {
        cost += expr_cost(expr->args[i]);
    }
    return cost < COST_MAX ? cost : COST_MAX;
}

/* Whether the column is, or is not, one of some constants; or NULL. */
static bool is_recognition(const struct expr *expr, uint32_t column)
{
    switch (expr->function) {
    case FUNCTION_EQUAL:
    case FUNCTION_NOT_EQUAL:
    case FUNCTION_IN:
    case FUNCTION_IS_NULL:
    case FUNCTION_IS_NOT_NULL:
        break;
    default:
        return false;
    }
    for (uint32_t i = 1; i < expr->arg_count; i++) {
        if (expr->args[i]->kind != EXPR_CONSTANT) return false;
    }
    return expr->args[0]->kind == EXPR_COLUMN && expr->args[0]->column == column &&
           expr->args[0]->type.kind == TYPE_TEXT;
}

uint32_t expr_prefix(const struct expr *expr, uint32_t column)
{
    uint32_t prefix = 0;
    if (expr->kind == EXPR_COLUMN && expr->column == column) return UINT32_MAX;
    if (expr->kind != EXPR_CALL) return 0;
    bool is_recognised = is_recognition(expr, column);
    for (uint32_t i = is_recognised ? 1 : 0; i < expr->arg_count; i++) {
        const struct expr *arg = expr->args[i];
        uint32_t more = is_recognised && !arg->constant.is_null ? arg->constant.text.size
                                                                : expr_prefix(arg, column);
        if (more > prefix) prefix = more;
    }
    return prefix;
}

void expr_visit(const struct expr *expr, void (*visit)(const struct expr *, void *), void *context)
{
    visit(expr, context);
    if (expr->kind != EXPR_CALL) return;
    for (uint32_t i = 0; i < expr->arg_count; i++) {
        expr_visit(expr->args[i], visit, context);
    }
}

/* --- Printing. --- */

static void put_quoted(struct text text, char quote, struct buf *out)
{
    buf_put_u8(out, (uint8_t)quote);
    for (uint32_t i = 0; i < text.size; i++) {
        if (text.bytes[i] == quote) buf_put_u8(out, (uint8_t)quote);
        buf_put_u8(out, (uint8_t)text.bytes[i]);
    }
    buf_put_u8(out, (uint8_t)quote);
}

_Static_assert((int)TIMESTAMP_TEXT_SIZE <= (int)NUMBER_TEXT_SIZE, "one size holds any value");

static void value_print(const struct value *value, struct type type, struct buf *out)
{
    char text[NUMBER_TEXT_SIZE];
    size_t size = 0;
    if (value->is_null || type.kind == TYPE_NULL) {
        buf_put_string(out, "NULL");
        return;
    }
    switch ((enum type_kind)type.kind) {
    case TYPE_BOOL:
        buf_put_string(out, value->truth ? "TRUE" : "FALSE");
        return;
    case TYPE_TEXT:
        put_quoted(value->text, '\'', out);
        return;
    case TYPE_DOUBLE:
        size = double_print(text, value->number);
        break;
    case TYPE_DECIMAL:
        size = decimal_print(text, value->integer, type.scale);
        break;
    case TYPE_DATE:
        size = date_print(text, value->integer);
        break;
    case TYPE_TIMESTAMP:
        size = timestamp_print(text, value->integer);
        break;
    default:
        size = int_print(text, value->integer);
        break;
    }
    if (type.kind == TYPE_DATE || type.kind == TYPE_TIMESTAMP) {
        buf_put_string(out, type.kind == TYPE_DATE ? "DATE " : "TIMESTAMP ");
        put_quoted((struct text){text, (uint32_t)size}, '\'', out);
    } else {
        buf_put(out, text, size);
    }
}

/* How tightly an expression holds together, as the parser sees it. */
enum binding {
    BINDING_OR,
    BINDING_AND,
    BINDING_NOT,
    BINDING_COMPARE,
    BINDING_CONCAT,
    BINDING_ADD,
    BINDING_MULTIPLY,
    BINDING_NEGATE,
    BINDING_WHOLE
};

static enum binding call_binding(const struct expr *expr)
{
    switch (expr->function) {
    case FUNCTION_OR:
        return BINDING_OR;
    case FUNCTION_AND:
        return BINDING_AND;
    case FUNCTION_NOT:
        return BINDING_NOT;
    case FUNCTION_IS_NULL:
    case FUNCTION_IS_NOT_NULL:
    case FUNCTION_EQUAL:
    case FUNCTION_NOT_EQUAL:
    case FUNCTION_LESS:
    case FUNCTION_LESS_EQUAL:
    case FUNCTION_GREATER:
    case FUNCTION_GREATER_EQUAL:
    case FUNCTION_IN:
    case FUNCTION_LIKE:
    case FUNCTION_ILIKE:
        return BINDING_COMPARE;
    case FUNCTION_CONCAT:
        return BINDING_CONCAT;
    case FUNCTION_ADD:
    case FUNCTION_SUBTRACT:
        return BINDING_ADD;
    case FUNCTION_MULTIPLY:
    case FUNCTION_DIVIDE:
    case FUNCTION_INTEGER_DIVIDE:
    case FUNCTION_MODULO:
        return BINDING_MULTIPLY;
    case FUNCTION_NEGATE:
        return BINDING_NEGATE;
    default:
        return BINDING_WHOLE;
    }
}

static enum binding binding_of(const struct expr *expr)
{
    if (expr->kind == EXPR_CALL) return call_binding(expr);
    /* -1 is a minus and a number. */
    bool is_negative = expr->kind == EXPR_CONSTANT && !expr->constant.is_null &&
                       ((expr->type.kind == TYPE_DOUBLE && expr->constant.number < 0.0) ||
                        ((expr->type.kind == TYPE_INT || expr->type.kind == TYPE_DECIMAL) &&
                         expr->constant.integer < 0));
    return is_negative ? BINDING_NEGATE : BINDING_WHOLE;
}

struct printer {
    const struct schema *input;
    struct buf *out;
};

static void print_expr(const struct printer *printer, const struct expr *expr, enum binding least);

static void print_separated(const struct printer *printer, const struct expr *expr, uint32_t first,
                            const char *separator, enum binding least)
{
    for (uint32_t i = first; i < expr->arg_count; i++) {
        if (i > first) buf_put_string(printer->out, separator);
        print_expr(printer, expr->args[i], least);
    }
}

/* Left to right; the operand on the right must hold together more tightly. */
static void print_infix(const struct printer *printer, const struct expr *expr, enum binding own)
{
    const struct function *function = function_by_id(expr->function);
    enum binding left = own == BINDING_COMPARE ? own + 1 : own;
    for (uint32_t i = 0; i < expr->arg_count; i++) {
        if (i > 0) {
            buf_put_string(printer->out, " ");
            buf_put_string(printer->out, function->name);
            buf_put_string(printer->out, " ");
        }
        print_expr(printer, expr->args[i], i == 0 ? left : own + 1);
    }
}

static void print_case(const struct printer *printer, const struct expr *expr)
{
    buf_put_string(printer->out, "CASE");
    uint32_t i = 0;
    for (; i + 1 < expr->arg_count; i += 2) {
        buf_put_string(printer->out, " WHEN ");
        print_expr(printer, expr->args[i], BINDING_OR);
        buf_put_string(printer->out, " THEN ");
        print_expr(printer, expr->args[i + 1], BINDING_OR);
    }
    if (i < expr->arg_count) {
        buf_put_string(printer->out, " ELSE ");
        print_expr(printer, expr->args[i], BINDING_OR);
    }
    buf_put_string(printer->out, " END");
}

static void print_call(const struct printer *printer, const struct expr *expr)
{
    struct buf *out = printer->out;
    enum binding own = call_binding(expr);
    const struct function *function = function_by_id(expr->function);
    char name[TYPE_NAME_SIZE];
    switch (expr->function) {
    case FUNCTION_NOT:
        buf_put_string(out, "NOT ");
        print_expr(printer, expr->args[0], BINDING_NOT);
        return;
    case FUNCTION_NEGATE:
        buf_put_string(out, "-");
        print_expr(printer, expr->args[0], BINDING_WHOLE); /* "--" would begin a comment. */
        return;
    case FUNCTION_IS_NULL:
    case FUNCTION_IS_NOT_NULL:
        print_expr(printer, expr->args[0], BINDING_CONCAT);
        buf_format(out, " %s", function->name);
        return;
    case FUNCTION_IN:
        print_expr(printer, expr->args[0], BINDING_CONCAT);
        buf_put_string(out, " IN (");
        print_separated(printer, expr, 1, ", ", BINDING_OR);
        buf_put_string(out, ")");
        return;
    case FUNCTION_CASE:
        print_case(printer, expr);
        return;
    case FUNCTION_CAST:
        buf_put_string(out, "CAST(");
        print_expr(printer, expr->args[0], BINDING_OR);
        buf_format(out, " AS %s)", type_name(expr->type, name));
        return;
    default:
        break;
    }
    if (own != BINDING_WHOLE) {
        print_infix(printer, expr, own);
        return;
    }
    buf_put_string(out, function == NULL ? "?" : function->name);
    buf_put_string(out, "(");
    print_separated(printer, expr, 0, ", ", BINDING_OR);
    buf_put_string(out, ")");
}

/* Names that the lexer would read as one word, in the letter case it keeps. */
static bool is_bare_name(struct text name)
{
    for (uint32_t i = 0; i < name.size; i++) {
        char c = name.bytes[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!is_letter && !(i > 0 && c >= '0' && c <= '9')) return false;
    }
    return name.size > 0;
}

static void print_column(const struct printer *printer, uint32_t column)
{
    if (printer->input == NULL || column >= printer->input->count) {
        buf_format(printer->out, "#%u", column + 1);
        return;
    }
    struct text name = printer->input->fields[column].name;
    if (is_bare_name(name)) {
        buf_put_text(printer->out, name);
    } else {
        put_quoted(name, '"', printer->out);
    }
}

static void print_expr(const struct printer *printer, const struct expr *expr, enum binding least)
{
    bool enclosed = binding_of(expr) < least;
    if (enclosed) buf_put_string(printer->out, "(");
    switch (expr->kind) {
    case EXPR_COLUMN:
        print_column(printer, expr->column);
        break;
    case EXPR_CONSTANT:
        value_print(&expr->constant, expr->type, printer->out);
        break;
    case EXPR_SCALAR:
        buf_format(printer->out, "(fold #%u)", expr->fold);
        break;
    case EXPR_CALL:
        print_call(printer, expr);
        break;
    }
    if (enclosed) buf_put_string(printer->out, ")");
}

void expr_print(const struct expr *expr, const struct schema *input, struct buf *out)
{
    struct printer printer = {input, out};
    print_expr(&printer, expr, BINDING_OR);
}
