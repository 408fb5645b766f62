/* SPDX-License-Identifier: Apache-2.0 */
/* parser.c - statements: CREATE TABLE, PARAMETER, and the one query that may follow them.
 *
 * A script is read to its end or not at all: names that are there twice and a statement behind the
 * query are refused here, where the place is still known. How parsing works stands in parse.h.
 */
#include "engine/sql/parser.h"

#include "engine/sql/parse.h"

struct statements {
    struct parse_list parameters;
    struct parse_list tables;
    struct ast_query *query;
};

static status parse_table_column(struct parser *p, struct parse_list *columns)
{
    struct ast_column *column = parse_list_add(p, columns, sizeof *column);
    if (column == NULL) return fail_memory(p);
    column->offset = p->token.offset;
    TRY(parse_name(p, KEYWORD_RESERVED, "a column name", &column->name));
    TRY(parse_type(p, &column->type));
    if (accept_keyword(p, KEYWORD_NOT)) {
        TRY(parse_expect_keyword(p, KEYWORD_NULL));
        column->not_null = true;
    }
    return STATUS_OK;
}

/* Behind CREATE TABLE: name (columns) FROM 'glob' [OR 'glob' ...] */
static status parse_table(struct parser *p, struct ast_table *table)
{
    struct parse_list columns = {0};
    struct parse_list patterns = {0};
    table->offset = p->token.offset;
    TRY(parse_name(p, KEYWORD_COLUMN, "a table name", &table->name));
    if (at_keyword(p, KEYWORD_AS)) {
        return fail(
            p, p->token.offset,
            "CREATE TABLE … AS is not supported; write WITH name AS (SELECT …) in the query");
    }
    TRY(parse_expect(p, TOKEN_OPEN, "`(` and columns after the table's name"));
    do {
        TRY(parse_table_column(p, &columns));
    } while (accept(p, TOKEN_COMMA));
    TRY(parse_expect(p, TOKEN_CLOSE, "NOT NULL, `,` or `)` after the column"));
    if (!accept_keyword(p, KEYWORD_FROM))
        return parse_expected(p, "FROM 'file.csv' after the columns");
    do {
        if (!at(p, TOKEN_TEXT)) return parse_expected_after(p, "a file name in '…'");
        struct text *pattern = parse_list_add(p, &patterns, sizeof *pattern);
        if (pattern == NULL) return fail_memory(p);
        TRY(parse_take_value(p, pattern));
    } while (accept_keyword(p, KEYWORD_OR));
    table->columns = columns.items;
    table->column_count = columns.count;
    table->patterns = patterns.items;
    table->pattern_count = patterns.count;
    return STATUS_OK;
}

static status parse_create(struct parser *p, struct statements *statements)
{
    uint32_t start = p->token.offset;
    advance(p);
    if (!at_keyword(p, KEYWORD_TABLE)) {
        if (!at(p, TOKEN_NAME) && !at_keyword(p, KEYWORD_OR))
            return parse_expected_after(p, "TABLE");
        return fail(p, start,
                    "only CREATE TABLE name (…) FROM 'file.csv' is supported; "
                    "for a view, write WITH name AS (SELECT …) in the query");
    }
    advance(p);
    struct ast_table table = {0};
    TRY(parse_table(p, &table));
    const struct ast_table *known = statements->tables.items;
    for (uint32_t i = 0; i < statements->tables.count; i++) {
        if (!text_equal_ignoring_case(known[i].name, table.name)) continue;
        return fail(p, table.offset, "table `%.*s` is already there", TEXT_ARGS(table.name));
    }
    if (statements->tables.count == SQL_STATEMENTS_MAX) {
        return fail(p, table.offset, "too many tables in one file (at most %d)",
                    SQL_STATEMENTS_MAX);
    }
    struct ast_table *slot = parse_list_add(p, &statements->tables, sizeof *slot);
    if (slot == NULL) return fail_memory(p);
    *slot = table;
    return STATUS_OK;
}

/* [-] number, text, TRUE, FALSE, DATE '...', TIMESTAMP '...' */
static status parse_parameter_value(struct parser *p, struct ast_expr **out)
{
    struct ast_expr form = {.kind = AST_UNARY, .op = AST_OP_NEGATE, .offset = p->token.offset};
    struct ast_expr *number;
    if (accept(p, TOKEN_MINUS)) {
        if (!at(p, TOKEN_INT) && !at(p, TOKEN_NUMBER)) return parse_expected_after(p, "a number");
        TRY(parse_literal(p, &number));
        return parse_add_operation(p, form, ARGS(number), out);
    }
    *out = NULL;
    if (!at(p, TOKEN_PARAMETER) && !at_keyword(p, KEYWORD_NULL)) TRY(parse_literal(p, out));
    if (*out != NULL) return STATUS_OK;
    return parse_expected_after(p, "a number, '…', TRUE, FALSE, DATE '…' or TIMESTAMP '…'");
}

/* PARAMETER name = literal */
static status parse_parameter(struct parser *p, struct statements *statements)
{
    struct ast_parameter parameter = {0};
    advance(p);
    parameter.offset = p->token.offset;
    TRY(parse_name(p, KEYWORD_RESERVED, "a name", &parameter.name));
    TRY(parse_expect(p, TOKEN_EQUAL, "`=` and a value after the parameter's name"));
    TRY(parse_parameter_value(p, &parameter.value));
    const struct ast_parameter *known = statements->parameters.items;
    for (uint32_t i = 0; i < statements->parameters.count; i++) {
        if (!text_equal_ignoring_case(known[i].name, parameter.name)) continue;
        return fail(p, parameter.offset, "parameter `%.*s` is already there",
                    TEXT_ARGS(parameter.name));
    }
    if (statements->parameters.count == SQL_STATEMENTS_MAX) {
        return fail(p, parameter.offset, "too many parameters in one file (at most %d)",
                    SQL_STATEMENTS_MAX);
    }
    struct ast_parameter *slot = parse_list_add(p, &statements->parameters, sizeof *slot);
    if (slot == NULL) return fail_memory(p);
    *slot = parameter;
    return STATUS_OK;
}

static status parse_statement(struct parser *p, struct statements *statements)
{
    static const struct text words[] = {TEXT_INIT("SELECT"), TEXT_INIT("WITH"), TEXT_INIT("CREATE"),
                                        TEXT_INIT("PARAMETER")};
    if (statements->query != NULL) {
        return fail(p, p->token.offset, "the query must be the last statement of its file");
    }
    if (at_keyword(p, KEYWORD_CREATE)) {
        TRY(parse_create(p, statements));
    } else if (at_keyword(p, KEYWORD_PARAMETER)) {
        TRY(parse_parameter(p, statements));
    } else if (at_query(p) || at(p, TOKEN_OPEN)) {
        TRY(parse_query(p, NULL, &statements->query));
        if (at(p, TOKEN_SEMICOLON) || at(p, TOKEN_END)) return STATUS_OK;
        return parse_fail_query_end(p, "the end of the query");
    } else {
        TRY(parse_refuse_unsupported(p));
        return parse_expected_near(p, "SELECT, WITH, CREATE TABLE or PARAMETER", words,
                                   sizeof words / sizeof words[0]);
    }
    bool ends = at(p, TOKEN_SEMICOLON) || at(p, TOKEN_END);
    return ends ? STATUS_OK : parse_expected(p, "`;` after the statement");
}

status sql_parse(const struct sql_source *source, struct arena *arena,
                 struct ast_script **out_script, struct error *err)
{
    struct parser parser = {
        .source = source, .arena = arena, .err = err, .alias_offset = UINT32_MAX};
    struct parser *p = &parser;
    struct statements statements = {0};
    if (source->text.size > SQL_SOURCE_BYTES_MAX) {
        return fail(p, 0, "the text is too long: %u bytes (at most %d)",
                    (unsigned)source->text.size, SQL_SOURCE_BYTES_MAX);
    }
    lexer_init(&p->lexer, source->text);
    advance(p);
    advance(p);
    while (!at(p, TOKEN_END)) {
        if (accept(p, TOKEN_SEMICOLON)) continue;
        TRY(parse_statement(p, &statements));
    }
    struct ast_script *script = arena_new(arena, struct ast_script);
    if (script == NULL) return fail_memory(p);
    *script = (struct ast_script){
        .parameters = statements.parameters.items,
        .parameter_count = statements.parameters.count,
        .tables = statements.tables.items,
        .table_count = statements.tables.count,
        .query = statements.query,
    };
    *out_script = script;
    return STATUS_OK;
}
