/* SPDX-License-Identifier: Apache-2.0 */
/* parse_query.c - queries: WITH, SELECT, FROM, UNION ALL, ORDER BY.
 *
 * A query counts the height of its nodes anew and is one step in the height of the node that holds
 * it, so that the bound holds across sub-queries without walking them again.
 */
#include "engine/sql/parse.h"

/* A source and its height, as expr_node is for expressions. */
struct from_node {
    struct ast_from from;
    uint32_t height;
};

static const struct text clause_words[] = {
    TEXT_INIT("FROM"),  TEXT_INIT("WHERE"), TEXT_INIT("GROUP"),   TEXT_INIT("HAVING"),
    TEXT_INIT("ORDER"), TEXT_INIT("LIMIT"), TEXT_INIT("QUALIFY"), TEXT_INIT("OFFSET"),
    TEXT_INIT("UNION"), TEXT_INIT("JOIN"),  TEXT_INIT("INNER"),   TEXT_INIT("LEFT"),
    TEXT_INIT("CROSS"), TEXT_INIT("USING"), TEXT_INIT("AS"),
};
enum { CLAUSE_WORD_COUNT = sizeof clause_words / sizeof clause_words[0] };

status parse_fail_query_end(struct parser *p, const char *what)
{
    TRY(parse_refuse_unsupported(p));
    /* In `FROM movies WEHRE year = 2000` it is the supposed alias that is wrong. */
    bool after_alias = p->previous.offset == p->alias_offset && !p->previous.quoted;
    if (after_alias && p->token.kind != TOKEN_BAD && p->previous.size > 2) {
        char suggestion[SQL_SUGGESTION_SIZE];
        char found[64];
        (void)sql_suggest(suggestion, sizeof suggestion, p->previous.value, clause_words,
                          CLAUSE_WORD_COUNT);
        if (suggestion[0] != '\0') {
            return fail(p, p->previous.offset, "expected %s, found %s%s", what,
                        parse_describe(p, &p->previous, found), suggestion);
        }
    }
    return parse_expected_near(p, what, clause_words, CLAUSE_WORD_COUNT);
}

status parse_nested_query(struct parser *p, const struct ast_expr *first, struct ast_query **out)
{
    TRY(parse_open_level(p));
    TRY(parse_query(p, first, out));
    p->depth--;
    return accept(p, TOKEN_CLOSE) ? STATUS_OK : parse_fail_query_end(p, "`)` after the sub-query");
}

status parse_order_list(struct parser *p, struct ast_order **out, uint32_t *out_count)
{
    struct parse_list list = {0};
    TRY(parse_expect_keyword(p, KEYWORD_BY));
    if (at_keyword(p, KEYWORD_ALL)) {
        return fail(p, p->token.offset, "ORDER BY ALL is not supported; name the columns");
    }
    do {
        struct ast_order order = {0};
        TRY(parse_expr(p, &order.expr));
        order.descending = accept_keyword(p, KEYWORD_DESC);
        if (!order.descending) (void)accept_keyword(p, KEYWORD_ASC); /* The default, said aloud. */
        if (accept_keyword(p, KEYWORD_NULLS)) {
            order.nulls_first = accept_keyword(p, KEYWORD_FIRST);
            if (!order.nulls_first && !accept_keyword(p, KEYWORD_LAST)) {
                return parse_expected_after(p, "FIRST or LAST");
            }
        }
        struct ast_order *slot = parse_list_add(p, &list, sizeof *slot);
        if (slot == NULL) return fail_memory(p);
        *slot = order;
    } while (accept(p, TOKEN_COMMA));
    *out = list.items;
    *out_count = list.count;
    return STATUS_OK;
}

/* --- FROM --- */

static status add_from(struct parser *p, const struct ast_from *form, struct ast_from **out)
{
    struct from_node *node = arena_new(p->arena, struct from_node);
    if (node == NULL) return fail_memory(p);
    node->from = *form;
    node->from.size = p->previous.offset + p->previous.size - form->offset;
    if (form->query != NULL) node->height = p->query_height;
    raise_over(&node->height, form->expr);
    if (form->kind == AST_FROM_JOIN) {
        raise_height(&node->height, ((const struct from_node *)form->left)->height + 1);
        raise_height(&node->height, ((const struct from_node *)form->right)->height + 1);
    }
    TRY(parse_note_height(p, node->height));
    *out = &node->from;
    return STATUS_OK;
}

static status parse_unnest(struct parser *p, struct ast_from *from)
{
    from->kind = AST_FROM_UNNEST;
    advance(p);
    TRY(parse_expect(p, TOKEN_OPEN, "`(`"));
    TRY(parse_nested_expr(p, &from->expr));
    TRY(parse_expect(p, TOKEN_CLOSE, "`)` after UNNEST's list"));
    TRY(parse_alias(p, &from->alias));
    if (from->alias.size == 0) return parse_expected(p, "a name for what UNNEST yields");
    if (!accept(p, TOKEN_OPEN)) return STATUS_OK;
    TRY(parse_name(p, KEYWORD_RESERVED, "a column name", &from->column_alias));
    return parse_expect(p, TOKEN_CLOSE, "`)` after the one column of UNNEST");
}

static status parse_from_subquery(struct parser *p, struct ast_from *from)
{
    from->kind = AST_FROM_SUBQUERY;
    advance(p);
    if (!at_query(p) && !at(p, TOKEN_OPEN)) {
        if (p->next.kind == TOKEN_OPEN) TRY(parse_refuse_unsupported(p));
        if (!at(p, TOKEN_NAME) || p->token.keyword != KEYWORD_NONE)
            return parse_expected_after(p, "SELECT");
        return fail(p, p->token.offset,
                    "joins in parentheses are not supported; write them one after the other");
    }
    TRY(parse_nested_query(p, NULL, &from->query));
    TRY(parse_alias(p, &from->alias));
    return from->alias.size == 0 ? parse_expected(p, "a name for the sub-query") : STATUS_OK;
}

static status parse_table_name(struct parser *p, struct ast_from *from)
{
    from->kind = AST_FROM_TABLE;
    bool is_call = at(p, TOKEN_NAME) && p->next.kind == TOKEN_OPEN;
    if (is_call) TRY(parse_refuse_unsupported(p));
    if (is_call || at(p, TOKEN_TEXT)) {
        return fail(
            p, p->token.offset,
            "a file is named once, in CREATE TABLE name (…) FROM 'file.csv'; use that name");
    }
    TRY(parse_name(p, KEYWORD_COLUMN, "a table name", &from->name));
    TRY(parse_alias(p, &from->alias));
    if (from->alias.size != 0 && at(p, TOKEN_OPEN)) {
        return fail(p, p->token.offset,
                    "a table's columns are not renamed here; write SELECT column AS name");
    }
    return STATUS_OK;
}

static status parse_source(struct parser *p, struct ast_from **out)
{
    struct ast_from from = {.offset = p->token.offset};
    if (at_keyword(p, KEYWORD_UNNEST) && p->next.kind == TOKEN_OPEN) {
        TRY(parse_unnest(p, &from));
    } else if (at(p, TOKEN_OPEN)) {
        TRY(parse_from_subquery(p, &from));
    } else {
        TRY(parse_table_name(p, &from));
    }
    return add_from(p, &from, out);
}

static struct text source_name(const struct ast_from *from)
{
    return from->alias.size > 0 ? from->alias : from->name;
}

/* USING (a, b), as if it were ON left.a = right.a AND left.b = right.b. */
static status parse_using(struct parser *p, struct ast_from *join)
{
    struct ast_expr form = {.kind = AST_AND, .offset = p->previous.offset};
    struct parse_list args = {0};
    struct ast_expr *equal;
    if (join->left->kind == AST_FROM_JOIN) {
        return fail(p, form.offset,
                    "USING joins two tables only; write ON a.column = b.column for further ones");
    }
    TRY(parse_expect(p, TOKEN_OPEN, "`(` after USING"));
    do {
        struct ast_expr column = {.kind = AST_COLUMN, .offset = p->token.offset};
        struct ast_expr *left;
        struct ast_expr *right;
        TRY(parse_name(p, KEYWORD_RESERVED, "a column name", &column.name));
        column.qualifier = source_name(join->left);
        TRY(parse_add_expr(p, &column, &left));
        column.qualifier = source_name(join->right);
        TRY(parse_add_expr(p, &column, &right));
        struct ast_expr both = {.kind = AST_BINARY, .op = AST_OP_EQUAL, .offset = column.offset};
        TRY(parse_add_operation(p, both, ARGS(left, right), &equal));
        TRY(parse_list_add_expr(p, &args, equal));
    } while (accept(p, TOKEN_COMMA));
    TRY(parse_expect(p, TOKEN_CLOSE, "`,` or `)` in USING"));
    form.args = args.items;
    form.arg_count = args.count;
    join->expr = equal;
    return args.count == 1 ? STATUS_OK : parse_add_expr(p, &form, &join->expr);
}

/* The words in front of a joined source, if there are any. */
static status parse_join_words(struct parser *p, struct ast_from *join, bool *out_joins,
                               bool *out_conditional)
{
    *out_joins = *out_conditional = false;
    if (accept(p, TOKEN_COMMA)) {
        *out_joins = true;
        return STATUS_OK;
    }
    bool cross = accept_keyword(p, KEYWORD_CROSS);
    join->left_outer = !cross && accept_keyword(p, KEYWORD_LEFT);
    bool inner = !cross && !join->left_outer && accept_keyword(p, KEYWORD_INNER);
    if (join->left_outer) (void)accept_keyword(p, KEYWORD_OUTER); /* Means nothing more. */
    if (cross || join->left_outer || inner) {
        if (!at_keyword(p, KEYWORD_JOIN)) TRY(parse_refuse_unsupported(p));
        TRY(parse_expect_keyword(p, KEYWORD_JOIN));
        *out_joins = true;
    } else {
        *out_joins = accept_keyword(p, KEYWORD_JOIN);
    }
    *out_conditional = *out_joins && !cross;
    return STATUS_OK;
}

/* Sources are joined from left to right. A comma binds no less tightly than JOIN here, which makes
 * no difference to the rows and leaves UNNEST what stands left of it. */
static status parse_from(struct parser *p, struct ast_from **out)
{
    uint32_t start = p->token.offset;
    struct ast_from *left;
    TRY(parse_source(p, &left));
    for (;;) {
        struct ast_from join = {.kind = AST_FROM_JOIN, .offset = start, .left = left};
        bool joins;
        bool conditional;
        TRY(parse_join_words(p, &join, &joins, &conditional));
        if (!joins) break;
        TRY(parse_source(p, &join.right));
        if (conditional && accept_keyword(p, KEYWORD_ON)) {
            TRY(parse_expr(p, &join.expr));
        } else if (conditional && accept_keyword(p, KEYWORD_USING)) {
            TRY(parse_using(p, &join));
        } else if (conditional) {
            return parse_fail_query_end(p, "ON or USING after the joined table");
        }
        TRY(add_from(p, &join, &left));
    }
    *out = left;
    return STATUS_OK;
}

/* --- queries --- */

/* *, name.*, or an expression with a name */
static status parse_item(struct parser *p, struct ast_item *item)
{
    struct ast_expr star = {.kind = AST_STAR, .offset = p->token.offset};
    if (accept(p, TOKEN_STAR)) return parse_add_expr(p, &star, &item->expr);
    if (at_name(p, KEYWORD_COLUMN) && p->next.kind == TOKEN_DOT) {
        struct parser start = *p;
        TRY(parse_take_value(p, &star.qualifier));
        advance(p);
        if (accept(p, TOKEN_STAR)) return parse_add_expr(p, &star, &item->expr);
        *p = start;
    }
    TRY(parse_expr(p, &item->expr));
    return parse_alias(p, &item->alias);
}

static status parse_items(struct parser *p, struct ast_select *select)
{
    struct parse_list items = {0};
    if (accept_keyword(p, KEYWORD_DISTINCT)) {
        select->distinct = true;
        if (at_keyword(p, KEYWORD_ON)) {
            return fail(p, p->token.offset,
                        "DISTINCT ON is not supported; write QUALIFY row_number() OVER "
                        "(PARTITION BY … ORDER BY …) = 1");
        }
    } else {
        (void)accept_keyword(p, KEYWORD_ALL); /* The default, said aloud. */
    }
    do {
        struct ast_item *item = parse_list_add(p, &items, sizeof *item);
        if (item == NULL) return fail_memory(p);
        TRY(parse_item(p, item));
    } while (accept(p, TOKEN_COMMA));
    select->items = items.items;
    select->item_count = items.count;
    return STATUS_OK;
}

static status parse_group(struct parser *p, struct ast_select *select)
{
    struct parse_list group = {0};
    TRY(parse_expect_keyword(p, KEYWORD_BY));
    uint32_t offset = p->token.offset;
    if (at_keyword(p, KEYWORD_ALL)) {
        return fail(p, offset, "GROUP BY ALL is not supported; name the columns");
    }
    bool several = (at_keyword(p, KEYWORD_GROUPING) && p->next.keyword == KEYWORD_SETS) ||
                   ((at_keyword(p, KEYWORD_CUBE) || at_keyword(p, KEYWORD_ROLLUP)) &&
                    p->next.kind == TOKEN_OPEN);
    if (several) {
        return fail(p, offset, "%s is not supported; write a query for each grouping and UNION ALL",
                    at_keyword(p, KEYWORD_GROUPING) ? "GROUPING SETS"
                                                    : keyword_name(p->token.keyword));
    }
    TRY(parse_expr_list(p, &group));
    select->group = group.items;
    select->group_count = group.count;
    return STATUS_OK;
}

static status parse_select(struct parser *p, struct ast_select **out)
{
    struct ast_select *select = arena_new(p->arena, struct ast_select);
    if (select == NULL) return fail_memory(p);
    select->offset = p->token.offset;
    advance(p);
    TRY(parse_items(p, select));
    if (accept_keyword(p, KEYWORD_FROM)) TRY(parse_from(p, &select->from));
    if (accept_keyword(p, KEYWORD_WHERE)) TRY(parse_expr(p, &select->where));
    if (accept_keyword(p, KEYWORD_GROUP)) TRY(parse_group(p, select));
    if (accept_keyword(p, KEYWORD_HAVING)) TRY(parse_expr(p, &select->having));
    if (accept_keyword(p, KEYWORD_QUALIFY)) TRY(parse_expr(p, &select->qualify));
    *out = select;
    return STATUS_OK;
}

static status parse_body(struct parser *p, struct parse_list *bodies)
{
    static const struct text words[] = {TEXT_INIT("SELECT")};
    struct ast_body body = {0};
    if (at_keyword(p, KEYWORD_SELECT)) {
        TRY(parse_select(p, &body.select));
    } else if (accept(p, TOKEN_OPEN)) {
        TRY(parse_nested_query(p, NULL, &body.query));
        TRY(parse_note_height(p, p->query_height));
    } else {
        TRY(parse_refuse_unsupported(p));
        return parse_expected_near(p, "SELECT", words, 1);
    }
    struct ast_body *slot = parse_list_add(p, bodies, sizeof *slot);
    if (slot == NULL) return fail_memory(p);
    *slot = body;
    return STATUS_OK;
}

/* name AS (query), ... */
static status parse_withs(struct parser *p, struct ast_query *query)
{
    struct parse_list withs = {0};
    if (at_keyword(p, KEYWORD_RECURSIVE) && p->next.keyword != KEYWORD_AS) {
        return fail(p, p->token.offset,
                    "WITH RECURSIVE is not supported; write a JOIN for each step");
    }
    do {
        struct ast_with *with = parse_list_add(p, &withs, sizeof *with);
        if (with == NULL) return fail_memory(p);
        with->offset = p->token.offset;
        TRY(parse_name(p, KEYWORD_COLUMN, "a name", &with->name));
        TRY(parse_expect_keyword(p, KEYWORD_AS));
        TRY(parse_expect(p, TOKEN_OPEN, "`(` and a query after AS"));
        TRY(parse_nested_query(p, NULL, &with->query));
        TRY(parse_note_height(p, p->query_height));
    } while (accept(p, TOKEN_COMMA));
    query->withs = withs.items;
    query->with_count = withs.count;
    return STATUS_OK;
}

static status parse_unions(struct parser *p, struct parse_list *bodies)
{
    while (at_keyword(p, KEYWORD_UNION)) {
        advance(p);
        if (!accept_keyword(p, KEYWORD_ALL)) {
            return fail(p, p->previous.offset,
                        "UNION without ALL is not supported; write SELECT DISTINCT * FROM "
                        "(… UNION ALL …) AS u");
        }
        TRY(parse_body(p, bodies));
    }
    return STATUS_OK;
}

static status parse_order_and_limit(struct parser *p, struct ast_query *query)
{
    if (accept_keyword(p, KEYWORD_ORDER)) {
        TRY(parse_order_list(p, &query->order, &query->order_count));
    }
    for (;;) {
        if (query->limit == NULL && accept_keyword(p, KEYWORD_LIMIT)) {
            TRY(parse_expr(p, &query->limit));
        } else if (query->limit_offset == NULL && accept_keyword(p, KEYWORD_OFFSET)) {
            TRY(parse_expr(p, &query->limit_offset));
        } else {
            break;
        }
    }
    if (at_keyword(p, KEYWORD_UNION)) {
        return fail(p, p->token.offset,
                    "ORDER BY and LIMIT stand behind the last UNION ALL; put parentheses around a "
                    "query that has its own");
    }
    return STATUS_OK;
}

status parse_query(struct parser *p, const struct ast_expr *first, struct ast_query **out)
{
    struct ast_query *query = arena_new(p->arena, struct ast_query);
    if (query == NULL) return fail_memory(p);
    struct parse_list bodies = {0};
    uint32_t outer_highest = p->highest;
    p->highest = 0;
    query->offset = first != NULL ? first->offset : p->token.offset;
    if (first != NULL) {
        struct ast_body *body = parse_list_add(p, &bodies, sizeof *body);
        if (body == NULL) return fail_memory(p);
        body->query = first->query;
        p->highest = ((const struct expr_node *)first)->height;
    } else {
        if (accept_keyword(p, KEYWORD_WITH)) TRY(parse_withs(p, query));
        TRY(parse_body(p, &bodies));
    }
    TRY(parse_unions(p, &bodies));
    query->bodies = bodies.items;
    query->body_count = bodies.count;
    TRY(parse_order_and_limit(p, query));
    p->query_height = p->highest + 1;
    p->highest = outer_highest;
    *out = query;
    return STATUS_OK;
}
