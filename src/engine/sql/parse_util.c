/* SPDX-License-Identifier: Apache-2.0 */
/* parse_util.c - what all parts of the grammar need: messages, tokens, nodes.
 *
 * A message says what was expected, what stands there instead and what to write; what other
 * databases accept and we don't is refused by name, because "unexpected" would teach nothing.
 */
#include "engine/sql/parse.h"

#include <stdio.h>

#include "engine/sql/parser.h"

/* --- failures --- */

const char *parse_describe(const struct parser *p, const struct token *token, char out[64])
{
    enum { SHOWN_BYTES = 40 };
    if (token->kind == TOKEN_END) return "the end of the text";
    const char *bytes = p->source->text.bytes + token->offset;
    uint32_t size = token->size > SHOWN_BYTES ? SHOWN_BYTES : token->size;
    while (size < token->size && size > 0 && ((unsigned char)bytes[size] & 0xc0) == 0x80) {
        size--; /* Not in the middle of a character. */
    }
    (void)snprintf(out, 64, "`%.*s%s`", (int)size, bytes,
                   size < token->size ? "…" : ""); /* Fits. */
    return out;
}

status parse_expected_near(struct parser *p, const char *what, const struct text *words,
                           size_t word_count)
{
    const struct token *token = &p->token;
    char found[64];
    char suggestion[SQL_SUGGESTION_SIZE] = "";
    if (token->kind == TOKEN_BAD) {
        if (token->problem != NULL) return fail(p, token->offset, "%s", token->problem);
        return fail(p, token->offset, "unexpected character %s", parse_describe(p, token, found));
    }
    if (token->kind == TOKEN_NAME && token->keyword == KEYWORD_NONE) {
        (void)sql_suggest(suggestion, sizeof suggestion, token->value, words, word_count);
    }
    return fail(p, token->offset, "expected %s, found %s%s", what, parse_describe(p, token, found),
                suggestion);
}

status parse_expected(struct parser *p, const char *what)
{
    return parse_expected_near(p, what, NULL, 0);
}

status parse_expected_after(struct parser *p, const char *what)
{
    char before[64];
    char text[192];
    const char *shown = p->previous.keyword == KEYWORD_NONE
                            ? parse_describe(p, &p->previous, before)
                            : keyword_name(p->previous.keyword);
    (void)snprintf(text, sizeof text, "%s after %s", what, shown); /* A cut one is still true. */
    return parse_expected(p, text);
}

static const struct {
    enum keyword keyword;
    const char *name;
    const char *advice;
} refusals[] = {
    {KEYWORD_INTERSECT, "INTERSECT", "write SELECT DISTINCT with a JOIN on all columns"},
    {KEYWORD_EXCEPT, "EXCEPT", "write LEFT JOIN … WHERE the other side's column IS NULL"},
    {KEYWORD_RIGHT, "RIGHT JOIN", "swap the tables and write LEFT JOIN"},
    {KEYWORD_FULL, "FULL JOIN",
     "write LEFT JOIN, and add the other side's unmatched rows with UNION ALL"},
    {KEYWORD_NATURAL, "NATURAL JOIN", "write JOIN … USING (column)"},
    {KEYWORD_SEMI, "SEMI JOIN", "write JOIN with a sub-query that is SELECT DISTINCT"},
    {KEYWORD_ANTI, "ANTI JOIN", "write LEFT JOIN … WHERE the other side's column IS NULL"},
    {KEYWORD_ASOF, "ASOF JOIN", "write JOIN … ON with equalities"},
    {KEYWORD_WINDOW, "WINDOW",
     "write the window where it is used: OVER (PARTITION BY … ORDER BY …)"},
    {KEYWORD_FETCH, "FETCH", "write LIMIT"},
    {KEYWORD_TABLESAMPLE, "TABLESAMPLE", "write WHERE with a condition on a column"},
    {KEYWORD_LATERAL, "LATERAL", "write JOIN … ON; for lists, UNNEST(list) AS name"},
    {KEYWORD_VALUES, "VALUES", "write SELECT … UNION ALL SELECT …"},
    {KEYWORD_INSERT, "INSERT",
     "data stays in its files: write CREATE TABLE name (…) FROM 'file.csv'"},
    {KEYWORD_UPDATE, "UPDATE", "data stays in its files: compute the new value in a SELECT"},
    {KEYWORD_DELETE, "DELETE", "data stays in its files: leave rows out with WHERE"},
    {KEYWORD_DROP, "DROP",
     "a table lives only as long as its file of SQL: leave its CREATE TABLE out"},
    {KEYWORD_ALTER, "ALTER", "change the table's CREATE TABLE"},
    {KEYWORD_EXPLAIN, "EXPLAIN", "use the command `millrace explain`"},
};

status parse_refuse_unsupported(struct parser *p)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        if (p->token.keyword != refusals[i].keyword) continue;
        return fail(p, p->token.offset, "%s is not supported; %s", refusals[i].name,
                    refusals[i].advice);
    }
    return STATUS_OK;
}

/* --- tokens --- */

status parse_expect(struct parser *p, enum token_kind kind, const char *what)
{
    return accept(p, kind) ? STATUS_OK : parse_expected(p, what);
}

status parse_expect_keyword(struct parser *p, enum keyword keyword)
{
    return accept_keyword(p, keyword) ? STATUS_OK : parse_expected_after(p, keyword_name(keyword));
}

status parse_take_value(struct parser *p, struct text *out)
{
    struct text value = p->token.value;
    if (p->token.doubled) {
        char quote = at(p, TOKEN_TEXT) ? '\'' : '"';
        char *bytes = arena_alloc(p->arena, value.size, 1);
        if (bytes == NULL) return fail_memory(p);
        uint32_t size = 0;
        for (uint32_t i = 0; i < value.size; i++) {
            bytes[size++] = value.bytes[i];
            if (value.bytes[i] == quote) i++;
        }
        value = (struct text){bytes, size};
    }
    advance(p);
    *out = value;
    return STATUS_OK;
}

status parse_name(struct parser *p, enum keyword_use use, const char *what, struct text *out)
{
    if (!at_name(p, use)) return parse_expected_after(p, what);
    return parse_take_value(p, out);
}

status parse_label(struct parser *p, const char *what, struct text *out)
{
    if (at_keyword(p, KEYWORD_FROM)) return parse_expected_after(p, what);
    return parse_name(p, KEYWORD_RESERVED, what, out);
}

status parse_alias(struct parser *p, struct text *out)
{
    if (accept_keyword(p, KEYWORD_AS)) return parse_label(p, "a name", out);
    if (!at_name(p, KEYWORD_FREE)) return STATUS_OK;
    p->alias_offset = p->token.offset;
    return parse_take_value(p, out);
}

/* --- nodes --- */

void *parse_list_add(struct parser *p, struct parse_list *list, size_t item_bytes)
{
    if (list->count == list->capacity &&
        !array_grow_in(p->arena, &list->items, &list->capacity, item_bytes)) {
        return NULL;
    }
    return (char *)list->items + list->count++ * item_bytes;
}

status parse_list_add_expr(struct parser *p, struct parse_list *list, struct ast_expr *expr)
{
    struct ast_expr **slot = parse_list_add(p, list, sizeof(struct ast_expr *));
    if (slot == NULL) return fail_memory(p);
    *slot = expr;
    return STATUS_OK;
}

static status fail_depth(struct parser *p)
{
    return fail(p, p->previous.offset, "nested too deeply (at most %d levels)", SQL_DEPTH_MAX);
}

status parse_open_level(struct parser *p)
{
    return ++p->depth > SQL_DEPTH_MAX ? fail_depth(p) : STATUS_OK;
}

status parse_note_height(struct parser *p, uint32_t height)
{
    raise_height(&p->highest, height);
    return height > SQL_DEPTH_MAX ? fail_depth(p) : STATUS_OK;
}

status parse_add_expr(struct parser *p, const struct ast_expr *form, struct ast_expr **out)
{
    struct expr_node *node = arena_new(p->arena, struct expr_node);
    if (node == NULL) return fail_memory(p);
    node->expr = *form;
    node->expr.size = p->previous.offset + p->previous.size - form->offset;
    if (form->query != NULL) node->height = p->query_height;
    for (uint32_t i = 0; i < form->arg_count; i++) {
        raise_over(&node->height, form->args[i]);
    }
    raise_over(&node->height, form->operand);
    for (uint32_t i = 0; form->window != NULL && i < form->window->partition_count; i++) {
        raise_over(&node->height, form->window->partition[i]);
    }
    for (uint32_t i = 0; form->window != NULL && i < form->window->order_count; i++) {
        raise_over(&node->height, form->window->order[i].expr);
    }
    TRY(parse_note_height(p, node->height));
    *out = &node->expr;
    return STATUS_OK;
}

status parse_add_operation(struct parser *p, struct ast_expr form, struct ast_expr *const args[3],
                           struct ast_expr **out)
{
    form.args = arena_array(p->arena, struct ast_expr *, 3);
    if (form.args == NULL) return fail_memory(p);
    for (; form.arg_count < 3 && args[form.arg_count] != NULL; form.arg_count++) {
        form.args[form.arg_count] = args[form.arg_count];
    }
    return parse_add_expr(p, &form, out);
}
