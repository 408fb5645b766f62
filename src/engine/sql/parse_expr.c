/* SPDX-License-Identifier: Apache-2.0 */
/* parse_expr.c - expressions, and the types that casts name.
 *
 * One table of operators and a loop that climbs it stand for what would otherwise be a function per
 * level of precedence, each a frame of the stack for every parenthesis.
 */
#include "engine/sql/parse.h"

/* --- types --- */

static status parse_small_number(struct parser *p, uint8_t *out)
{
    if (!at(p, TOKEN_INT)) return parse_expected_after(p, "a number");
    struct text digits = p->token.value;
    if (digits.size > 2) {
        return fail(p, p->token.offset, "a DECIMAL has at most %d digits", DECIMAL_PRECISION_MAX);
    }
    unsigned value = 0;
    for (uint32_t i = 0; i < digits.size; i++) {
        value = value * 10 + (unsigned)(digits.bytes[i] - '0');
    }
    advance(p);
    *out = (uint8_t)value;
    return STATUS_OK;
}

/* (p [, s]) behind DECIMAL. */
static status parse_decimal_arguments(struct parser *p, struct type *type)
{
    uint32_t offset = p->token.offset;
    TRY(parse_small_number(p, &type->precision));
    type->scale = 0;
    if (type->precision < 1 || type->precision > DECIMAL_PRECISION_MAX) {
        return fail(p, offset, "a DECIMAL has 1 to %d digits", DECIMAL_PRECISION_MAX);
    }
    if (accept(p, TOKEN_COMMA)) {
        offset = p->token.offset;
        TRY(parse_small_number(p, &type->scale));
        if (type->scale > type->precision) {
            return fail(p, offset, "a DECIMAL(%u) has 0 to %u digits behind the point",
                        (unsigned)type->precision, (unsigned)type->precision);
        }
    }
    return parse_expect(p, TOKEN_CLOSE, "`)` after the digits of DECIMAL");
}

status parse_type(struct parser *p, struct type *out)
{
    static const struct text names[] = {
        TEXT_INIT("BOOL"), TEXT_INIT("INT"),  TEXT_INIT("DECIMAL"),   TEXT_INIT("DOUBLE"),
        TEXT_INIT("TEXT"), TEXT_INIT("DATE"), TEXT_INIT("TIMESTAMP"),
    };
    struct token name = p->token;
    struct type type;
    if (!at_name(p, KEYWORD_COLUMN)) return parse_expected_after(p, "a type");
    if (!type_by_name(name.value, &type)) {
        char shown[64];
        char suggestion[SQL_SUGGESTION_SIZE];
        (void)sql_suggest(suggestion, sizeof suggestion, name.value, names,
                          sizeof names / sizeof names[0]);
        return fail(p, name.offset, "no type %s%s", parse_describe(p, &name, shown), suggestion);
    }
    advance(p);
    if (at(p, TOKEN_OPEN)) {
        if (type.kind != TYPE_DECIMAL) {
            return fail(p, p->token.offset, "only DECIMAL takes digits: leave the parentheses out");
        }
        advance(p);
        TRY(parse_decimal_arguments(p, &type));
    }
    if (at(p, TOKEN_OPEN_BRACKET) && p->next.kind == TOKEN_CLOSE_BRACKET) {
        if (type.kind != TYPE_TEXT && type.kind != TYPE_INT) {
            return fail(p, name.offset, "lists are of TEXT or INT only");
        }
        type = type.kind == TYPE_TEXT ? TYPE(LIST_TEXT) : TYPE(LIST_INT);
        advance(p);
        advance(p);
    }
    *out = type;
    return STATUS_OK;
}

/* --- expressions --- */

status parse_nested_expr(struct parser *p, struct ast_expr **out)
{
    TRY(parse_open_level(p));
    TRY(parse_expr(p, out));
    p->depth--;
    return STATUS_OK;
}

status parse_expr_list(struct parser *p, struct parse_list *list)
{
    do {
        struct ast_expr *expr;
        TRY(parse_expr(p, &expr));
        TRY(parse_list_add_expr(p, list, expr));
    } while (accept(p, TOKEN_COMMA));
    return STATUS_OK;
}

/* DATE '...', TIMESTAMP '...' */
static bool at_typed_literal(const struct parser *p)
{
    return (at_keyword(p, KEYWORD_DATE) || at_keyword(p, KEYWORD_TIMESTAMP)) &&
           p->next.kind == TOKEN_TEXT;
}

status parse_literal(struct parser *p, struct ast_expr **out)
{
    struct ast_expr form = {.kind = AST_COLUMN, .offset = p->token.offset};
    *out = NULL;
    if (at(p, TOKEN_INT)) form.kind = AST_INT;
    if (at(p, TOKEN_NUMBER)) form.kind = AST_NUMBER;
    if (at(p, TOKEN_TEXT)) form.kind = AST_TEXT;
    if (at(p, TOKEN_PARAMETER)) form.kind = AST_PARAMETER;
    if (at_keyword(p, KEYWORD_NULL)) form.kind = AST_NULL;
    if (at_keyword(p, KEYWORD_TRUE) || at_keyword(p, KEYWORD_FALSE)) form.kind = AST_BOOL;
    if (at_typed_literal(p)) form.kind = AST_TYPED;
    if (form.kind == AST_COLUMN) return STATUS_OK;

    form.truth = at_keyword(p, KEYWORD_TRUE);
    if (form.kind == AST_TYPED) TRY(parse_type(p, &form.type));
    if (form.kind == AST_NULL || form.kind == AST_BOOL) {
        advance(p);
    } else {
        TRY(parse_take_value(p, &form.name));
    }
    return parse_add_expr(p, &form, out);
}

/* OVER ([PARTITION BY ...] [ORDER BY ...]) */
static status parse_window(struct parser *p, struct ast_window **out)
{
    struct ast_window *window = arena_new(p->arena, struct ast_window);
    if (window == NULL) return fail_memory(p);
    if (at_name(p, KEYWORD_COLUMN)) {
        return fail(p, p->token.offset,
                    "named windows are not supported; write OVER (PARTITION BY … ORDER BY …)");
    }
    TRY(parse_expect(p, TOKEN_OPEN, "`(` after OVER"));
    TRY(parse_open_level(p));
    if (accept_keyword(p, KEYWORD_PARTITION)) {
        struct parse_list partition = {0};
        TRY(parse_expect_keyword(p, KEYWORD_BY));
        TRY(parse_expr_list(p, &partition));
        window->partition = partition.items;
        window->partition_count = partition.count;
    }
    if (accept_keyword(p, KEYWORD_ORDER)) {
        TRY(parse_order_list(p, &window->order, &window->order_count));
    }
    if (at_keyword(p, KEYWORD_ROWS) || at_keyword(p, KEYWORD_RANGE) ||
        at_keyword(p, KEYWORD_GROUPS)) {
        return fail(p, p->token.offset,
                    "window frames are not supported; leave out what follows ORDER BY");
    }
    TRY(parse_expect(p, TOKEN_CLOSE, "PARTITION BY, ORDER BY or `)` in OVER"));
    p->depth--;
    *out = window;
    return STATUS_OK;
}

/* What stands between a call's parentheses, and the closing one. */
static status parse_arguments(struct parser *p, struct ast_expr *call)
{
    struct parse_list args = {0};
    if (at(p, TOKEN_STAR)) {
        if (!text_equal_ignoring_case(call->name, TEXT_LITERAL("count"))) {
            return fail(p, p->token.offset, "only count takes `*`; name a column");
        }
        struct ast_expr *star;
        advance(p);
        TRY(parse_add_expr(p, &(struct ast_expr){.kind = AST_STAR, .offset = p->previous.offset},
                           &star));
        TRY(parse_list_add_expr(p, &args, star));
    } else if (!at(p, TOKEN_CLOSE)) {
        TRY(parse_open_level(p));
        call->distinct = accept_keyword(p, KEYWORD_DISTINCT);
        TRY(parse_expr_list(p, &args));
        p->depth--;
    }
    if (at_keyword(p, KEYWORD_ORDER)) {
        return fail(p, p->token.offset,
                    "ORDER BY in a call is not supported; use arg_min or arg_max, or a sub-query");
    }
    call->args = args.items;
    call->arg_count = args.count;
    return parse_expect(p, TOKEN_CLOSE, "`,` or `)` in the call");
}

/* name(...) [OVER (...)] */
static status parse_call(struct parser *p, struct ast_expr **out)
{
    struct ast_expr call = {.kind = AST_CALL, .offset = p->token.offset};
    if (at_keyword(p, KEYWORD_UNNEST)) {
        return fail(p, call.offset, "UNNEST stands in FROM; write FROM t, UNNEST(t.list) AS name");
    }
    TRY(parse_take_value(p, &call.name));
    TRY(parse_expect(p, TOKEN_OPEN, "`(`"));
    TRY(parse_arguments(p, &call));
    if (at_keyword(p, KEYWORD_FILTER) && p->next.kind == TOKEN_OPEN) {
        return fail(p, p->token.offset,
                    "FILTER is not supported; aggregate CASE WHEN condition THEN x END");
    }
    if (accept_keyword(p, KEYWORD_OVER)) TRY(parse_window(p, &call.window));
    return parse_add_expr(p, &call, out);
}

/* EXTRACT(year FROM x), as if it were year(x). */
static status parse_extract(struct parser *p, struct ast_expr **out)
{
    struct ast_expr call = {.kind = AST_CALL, .offset = p->token.offset};
    struct ast_expr *arg;
    advance(p);
    TRY(parse_expect(p, TOKEN_OPEN, "`(`"));
    TRY(parse_name(p, KEYWORD_COLUMN, "a part of a date, like year,", &call.name));
    TRY(parse_expect_keyword(p, KEYWORD_FROM));
    TRY(parse_nested_expr(p, &arg));
    TRY(parse_expect(p, TOKEN_CLOSE, "`)` after EXTRACT's value"));
    return parse_add_operation(p, call, ARGS(arg), out);
}

static status parse_cast(struct parser *p, struct ast_expr **out)
{
    struct ast_expr cast = {.kind = AST_CAST, .offset = p->token.offset};
    struct ast_expr *arg;
    advance(p);
    TRY(parse_expect(p, TOKEN_OPEN, "`(`"));
    TRY(parse_nested_expr(p, &arg));
    if (!accept_keyword(p, KEYWORD_AS)) return parse_expected(p, "AS and a type in CAST");
    TRY(parse_type(p, &cast.type));
    TRY(parse_expect(p, TOKEN_CLOSE, "`)` after CAST's type"));
    return parse_add_operation(p, cast, ARGS(arg), out);
}

static status parse_case(struct parser *p, struct ast_expr **out)
{
    struct ast_expr form = {.kind = AST_CASE, .offset = p->token.offset};
    struct parse_list args = {0};
    struct ast_expr *part;
    advance(p);
    if (!at_keyword(p, KEYWORD_WHEN)) TRY(parse_nested_expr(p, &form.operand));
    if (!at_keyword(p, KEYWORD_WHEN)) return parse_expected(p, "WHEN in CASE");
    while (accept_keyword(p, KEYWORD_WHEN)) {
        TRY(parse_nested_expr(p, &part));
        TRY(parse_list_add_expr(p, &args, part));
        if (!accept_keyword(p, KEYWORD_THEN))
            return parse_expected(p, "THEN after WHEN's condition");
        TRY(parse_nested_expr(p, &part));
        TRY(parse_list_add_expr(p, &args, part));
    }
    form.has_else = accept_keyword(p, KEYWORD_ELSE);
    if (form.has_else) {
        TRY(parse_nested_expr(p, &part));
        TRY(parse_list_add_expr(p, &args, part));
    }
    if (!accept_keyword(p, KEYWORD_END)) {
        return parse_expected(p, form.has_else ? "END of CASE" : "WHEN, ELSE or END of CASE");
    }
    form.args = args.items;
    form.arg_count = args.count;
    return parse_add_expr(p, &form, out);
}

/* [qualifier.]name */
static status parse_column(struct parser *p, struct ast_expr **out)
{
    struct ast_expr column = {.kind = AST_COLUMN, .offset = p->token.offset};
    TRY(parse_take_value(p, &column.name));
    if (accept(p, TOKEN_DOT)) {
        column.qualifier = column.name;
        if (at(p, TOKEN_STAR)) {
            return fail(p, p->token.offset, "`*` stands alone in a select list, or in count(*)");
        }
        TRY(parse_label(p, "a column name", &column.name));
        if (at(p, TOKEN_DOT)) {
            return fail(p, p->token.offset, "a name has at most one qualifier: write table.column");
        }
    }
    return parse_add_expr(p, &column, out);
}

static status parse_subquery(struct parser *p, uint32_t start, const struct ast_expr *first,
                             struct ast_expr **out)
{
    struct ast_expr form = {.kind = AST_SUBQUERY, .offset = start};
    TRY(parse_nested_query(p, first, &form.query));
    return parse_add_expr(p, &form, out);
}

static status parse_parenthesised(struct parser *p, struct ast_expr **out)
{
    uint32_t start = p->token.offset;
    advance(p);
    if (at_query(p)) return parse_subquery(p, start, NULL, out);
    TRY(parse_nested_expr(p, out));
    /* ((SELECT ...) UNION ALL ...): what looked like a value was the first part of a query. */
    bool continued = at_keyword(p, KEYWORD_UNION) || at_keyword(p, KEYWORD_ORDER) ||
                     at_keyword(p, KEYWORD_LIMIT) || at_keyword(p, KEYWORD_OFFSET);
    if ((*out)->kind == AST_SUBQUERY && continued) return parse_subquery(p, start, *out, out);
    return parse_expect(p, TOKEN_CLOSE, "an operator or `)`");
}

/* Words that begin something of their own when the right token follows; *out is NULL otherwise. */
static status parse_special(struct parser *p, struct ast_expr **out)
{
    *out = NULL;
    enum token_kind next = p->next.kind;
    uint32_t offset = p->token.offset;
    if (at_keyword(p, KEYWORD_CASE)) return parse_case(p, out);
    if (at_keyword(p, KEYWORD_INTERVAL) && (next == TOKEN_TEXT || next == TOKEN_INT)) {
        return fail(p, offset, "INTERVAL is not supported; compare with DATE '…' or year(x)");
    }
    if (next != TOKEN_OPEN) return STATUS_OK;
    if (at_keyword(p, KEYWORD_CAST)) return parse_cast(p, out);
    if (at_keyword(p, KEYWORD_EXTRACT)) return parse_extract(p, out);
    if (at_keyword(p, KEYWORD_LEFT) || at_keyword(p, KEYWORD_RIGHT)) return parse_call(p, out);
    if (at_keyword(p, KEYWORD_TRY_CAST)) {
        return fail(p, offset, "TRY_CAST is not supported; write CAST(x AS type)");
    }
    if (at_keyword(p, KEYWORD_EXISTS)) {
        return fail(p, offset, "EXISTS is not supported; write JOIN (SELECT DISTINCT …) AS s ON …");
    }
    return STATUS_OK;
}

static status parse_primary(struct parser *p, struct ast_expr **out)
{
    TRY(parse_literal(p, out));
    if (*out != NULL) return STATUS_OK;
    TRY(parse_special(p, out));
    if (*out != NULL) return STATUS_OK;
    if (at(p, TOKEN_OPEN)) return parse_parenthesised(p, out);
    if (at(p, TOKEN_STAR)) {
        return fail(p, p->token.offset, "`*` stands alone in a select list, or in count(*)");
    }
    if (!at_name(p, KEYWORD_COLUMN)) return parse_expected_after(p, "an expression");
    return p->next.kind == TOKEN_OPEN ? parse_call(p, out) : parse_column(p, out);
}

static status parse_postfix(struct parser *p, struct ast_expr **out)
{
    uint32_t start = p->token.offset;
    struct ast_expr *left;
    TRY(parse_primary(p, &left));
    for (;;) {
        struct ast_expr *index = NULL;
        struct ast_expr form = {.kind = AST_CAST, .offset = start};
        if (accept(p, TOKEN_CAST)) {
            TRY(parse_type(p, &form.type));
        } else if (accept(p, TOKEN_OPEN_BRACKET)) {
            form.kind = AST_INDEX;
            TRY(parse_nested_expr(p, &index));
            TRY(parse_expect(p, TOKEN_CLOSE_BRACKET, "`]` after the index"));
        } else {
            *out = left;
            return STATUS_OK;
        }
        TRY(parse_add_operation(p, form, ARGS(left, index), &left));
    }
}

static status parse_unary(struct parser *p, struct ast_expr **out)
{
    if (!at(p, TOKEN_MINUS) && !at(p, TOKEN_PLUS)) return parse_postfix(p, out);
    struct ast_expr form = {.kind = AST_UNARY, .offset = p->token.offset};
    struct ast_expr *arg;
    form.op = at(p, TOKEN_MINUS) ? AST_OP_NEGATE : AST_OP_PLUS;
    advance(p);
    TRY(parse_open_level(p));
    TRY(parse_unary(p, &arg));
    p->depth--;
    return parse_add_operation(p, form, ARGS(arg), out);
}

/* How tightly operators bind, the loosest first. Up to TIER_PREDICATE they do not chain. */
enum {
    TIER_NONE,
    TIER_IS,
    TIER_COMPARISON,
    TIER_PREDICATE, /* IN, BETWEEN, LIKE */
    TIER_CONCAT,
    TIER_SUM,
    TIER_PRODUCT
};

static const struct binary_operator {
    int tier;
    enum ast_operator op;
} binary_operators[TOKEN_CLOSE_BRACKET + 1] = {
    [TOKEN_EQUAL] = {TIER_COMPARISON, AST_OP_EQUAL},
    [TOKEN_NOT_EQUAL] = {TIER_COMPARISON, AST_OP_NOT_EQUAL},
    [TOKEN_LESS] = {TIER_COMPARISON, AST_OP_LESS},
    [TOKEN_LESS_EQUAL] = {TIER_COMPARISON, AST_OP_LESS_EQUAL},
    [TOKEN_GREATER] = {TIER_COMPARISON, AST_OP_GREATER},
    [TOKEN_GREATER_EQUAL] = {TIER_COMPARISON, AST_OP_GREATER_EQUAL},
    [TOKEN_CONCAT] = {TIER_CONCAT, AST_OP_CONCAT},
    [TOKEN_PLUS] = {TIER_SUM, AST_OP_ADD},
    [TOKEN_MINUS] = {TIER_SUM, AST_OP_SUBTRACT},
    [TOKEN_STAR] = {TIER_PRODUCT, AST_OP_MULTIPLY},
    [TOKEN_SLASH] = {TIER_PRODUCT, AST_OP_DIVIDE},
    [TOKEN_SLASH_SLASH] = {TIER_PRODUCT, AST_OP_INTEGER_DIVIDE},
    [TOKEN_PERCENT] = {TIER_PRODUCT, AST_OP_MODULO},
};

static bool is_predicate(enum keyword keyword)
{
    return keyword == KEYWORD_IN || keyword == KEYWORD_BETWEEN || keyword == KEYWORD_LIKE ||
           keyword == KEYWORD_ILIKE || keyword == KEYWORD_SIMILAR;
}

static int operator_tier(const struct parser *p)
{
    if (at_keyword(p, KEYWORD_IS)) return TIER_IS;
    bool negated = at_keyword(p, KEYWORD_NOT);
    if (is_predicate(negated ? p->next.keyword : p->token.keyword)) return TIER_PREDICATE;
    return binary_operators[p->token.kind].tier;
}

static status parse_operators(struct parser *p, int tier_min, struct ast_expr **out);

static status parse_is(struct parser *p, uint32_t start, struct ast_expr **left)
{
    struct ast_expr form = {.kind = AST_IS_NULL, .offset = start};
    advance(p);
    form.negated = accept_keyword(p, KEYWORD_NOT);
    if (at_keyword(p, KEYWORD_DISTINCT)) {
        return fail(
            p, p->token.offset,
            "IS DISTINCT FROM is not supported; write <> and say with IS NULL what NULLs do");
    }
    if (at_keyword(p, KEYWORD_TRUE) || at_keyword(p, KEYWORD_FALSE)) {
        return fail(p, p->token.offset,
                    "IS TRUE and IS FALSE are not supported; write the condition, or NOT and it");
    }
    if (!accept_keyword(p, KEYWORD_NULL)) return parse_expected_after(p, "NULL");
    return parse_add_operation(p, form, ARGS(*left), left);
}

/* IN (a, b, ...) */
static status parse_in(struct parser *p, struct ast_expr form, struct ast_expr **left)
{
    struct parse_list args = {0};
    TRY(parse_list_add_expr(p, &args, *left));
    TRY(parse_expect(p, TOKEN_OPEN, "`(` after IN"));
    if (at_query(p)) {
        return fail(p, p->token.offset,
                    "IN (SELECT …) is not supported; write JOIN (SELECT DISTINCT …) AS s ON …");
    }
    TRY(parse_open_level(p));
    TRY(parse_expr_list(p, &args));
    p->depth--;
    TRY(parse_expect(p, TOKEN_CLOSE, "`,` or `)` in the list of IN"));
    form.kind = AST_IN;
    form.args = args.items;
    form.arg_count = args.count;
    return parse_add_expr(p, &form, left);
}

/* [NOT] IN, BETWEEN, LIKE, ILIKE */
static status parse_predicate(struct parser *p, uint32_t start, struct ast_expr **left)
{
    struct ast_expr form = {.kind = AST_LIKE, .offset = start};
    struct ast_expr *second;
    struct ast_expr *third = NULL;
    form.negated = accept_keyword(p, KEYWORD_NOT);
    if (at_keyword(p, KEYWORD_SIMILAR)) {
        return fail(p, p->token.offset,
                    "SIMILAR TO is not supported; write regexp_matches(x, '…')");
    }
    advance(p);
    enum keyword keyword = p->previous.keyword;
    if (keyword == KEYWORD_IN) return parse_in(p, form, left);
    TRY(parse_operators(p, TIER_CONCAT, &second));
    if (keyword == KEYWORD_BETWEEN) {
        form.kind = AST_BETWEEN;
        if (!accept_keyword(p, KEYWORD_AND)) return parse_expected(p, "AND in BETWEEN");
        TRY(parse_operators(p, TIER_CONCAT, &third));
    } else {
        form.op = keyword == KEYWORD_LIKE ? AST_OP_LIKE : AST_OP_ILIKE;
        if (at_keyword(p, KEYWORD_ESCAPE)) {
            return fail(
                p, p->token.offset,
                "ESCAPE is not supported; write contains(x, '…') or regexp_matches(x, '…')");
        }
    }
    return parse_add_operation(p, form, ARGS(*left, second, third), left);
}

/* Everything that binds at least as tightly as `tier_min`. */
static status parse_operators(struct parser *p, int tier_min, struct ast_expr **out)
{
    uint32_t start = p->token.offset;
    struct ast_expr *left;
    int last_tier = TIER_NONE;
    TRY(parse_unary(p, &left));
    for (int tier = operator_tier(p); tier >= tier_min; tier = operator_tier(p)) {
        if (tier <= TIER_PREDICATE && tier == last_tier) {
            return fail(p, p->token.offset,
                        "comparisons cannot be chained; write a < b AND b < c, or parentheses");
        }
        last_tier = tier;
        if (tier == TIER_IS) {
            TRY(parse_is(p, start, &left));
        } else if (tier == TIER_PREDICATE) {
            TRY(parse_predicate(p, start, &left));
        } else {
            struct ast_expr form = {.kind = AST_BINARY, .offset = start};
            struct ast_expr *right;
            form.op = binary_operators[p->token.kind].op;
            advance(p);
            TRY(parse_operators(p, tier + 1, &right));
            TRY(parse_add_operation(p, form, ARGS(left, right), &left));
        }
    }
    *out = left;
    return STATUS_OK;
}

static status parse_not(struct parser *p, struct ast_expr **out)
{
    if (!at_keyword(p, KEYWORD_NOT)) return parse_operators(p, TIER_IS, out);
    struct ast_expr form = {.kind = AST_NOT, .offset = p->token.offset};
    struct ast_expr *arg;
    advance(p);
    TRY(parse_open_level(p));
    TRY(parse_not(p, &arg));
    p->depth--;
    return parse_add_operation(p, form, ARGS(arg), out);
}

/* A flat chain of ANDs, or of ORs over such chains. */
static status parse_chain(struct parser *p, enum ast_expr_kind kind, struct ast_expr **out)
{
    enum keyword keyword = kind == AST_OR ? KEYWORD_OR : KEYWORD_AND;
    struct ast_expr form = {.kind = kind, .offset = p->token.offset};
    struct parse_list args = {0};
    struct ast_expr *part;
    do {
        TRY(kind == AST_OR ? parse_chain(p, AST_AND, &part) : parse_not(p, &part));
        if (args.count == 0 && !at_keyword(p, keyword)) {
            *out = part;
            return STATUS_OK;
        }
        TRY(parse_list_add_expr(p, &args, part));
    } while (accept_keyword(p, keyword));
    form.args = args.items;
    form.arg_count = args.count;
    return parse_add_expr(p, &form, out);
}

status parse_expr(struct parser *p, struct ast_expr **out)
{
    return parse_chain(p, AST_OR, out);
}
