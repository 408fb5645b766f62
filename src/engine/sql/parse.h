/* SPDX-License-Identifier: Apache-2.0 */
/* parse.h - the parser while it reads, shared by parser.c and the parse_*.c alone.
 *
 * Recursive descent, with precedence climbing for operators (Richards 1979; Pratt, "Top Down
 * Operator Precedence", POPL 1973). Two bounds keep the stack safe, here and in the functions that
 * walk the tree: `depth` counts what is open while we descend, and every node knows its height,
 * because a chain like 1 + 1 + 1 is built by a loop but grows as high as it is long. AND and OR are
 * lists instead.
 *
 * The current token decides almost everywhere, with one more token where a keyword may be a name;
 * only `name.*` needs a third, and there the place is remembered and returned to.
 *
 * Names that stand in every line of the grammar are short and stay inside: they are static.
 */
#ifndef ENGINE_SQL_PARSE_H
#define ENGINE_SQL_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/array.h"
#include "engine/base/error.h"
#include "engine/sql/ast.h"
#include "engine/sql/diagnostic.h"
#include "engine/sql/lexer.h"

struct parser {
    const struct sql_source *source;
    struct arena *arena;
    struct error *err;
    struct lexer lexer;
    struct token previous;
    struct token token;
    struct token next;
    uint32_t depth;
    uint32_t highest;      /* Of the nodes of the query that is open. */
    uint32_t query_height; /* Of the query that was closed last. */
    uint32_t alias_offset; /* Of the last alias without AS: perhaps a misspelled keyword. */
};

/* Every expression of a tree is one of these: the height is the parser's secret. */
struct expr_node {
    struct ast_expr expr;
    uint32_t height;
};

struct parse_list {
    void *items;
    uint32_t count;
    uint32_t capacity;
};

/* --- failures --- */

#define fail(p, offset, ...) sql_error((p)->err, (p)->source, (offset), __VA_ARGS__)

static inline status fail_memory(struct parser *p)
{
    return error_set(p->err, STATUS_MEMORY, "not enough memory to read the SQL of %s",
                     p->source->name == NULL ? "the query" : p->source->name);
}

/* The token as it is written, for a message. */
const char *parse_describe(const struct parser *p, const struct token *token, char out[64]);
/* "expected WHAT, found ...", with a suggestion when the word there is near one of `words`. */
MUST_USE status parse_expected_near(struct parser *p, const char *what, const struct text *words,
                                    size_t word_count);
MUST_USE status parse_expected(struct parser *p, const char *what);
/* "expected WHAT after <the token before>, found ..." */
MUST_USE status parse_expected_after(struct parser *p, const char *what);
/* Fails when the current token begins something that other databases know and we don't. */
MUST_USE status parse_refuse_unsupported(struct parser *p);
/* The current token should have ended a query, and does not. */
MUST_USE status parse_fail_query_end(struct parser *p, const char *what);

/* --- tokens --- */

static inline void advance(struct parser *p)
{
    p->previous = p->token;
    p->token = p->next;
    p->next = lexer_next(&p->lexer);
}

static inline bool at(const struct parser *p, enum token_kind kind)
{
    return p->token.kind == kind;
}

static inline bool at_keyword(const struct parser *p, enum keyword keyword)
{
    return p->token.keyword == keyword;
}

static inline bool at_query(const struct parser *p)
{
    return at_keyword(p, KEYWORD_SELECT) || at_keyword(p, KEYWORD_WITH);
}

static inline bool accept(struct parser *p, enum token_kind kind)
{
    if (!at(p, kind)) return false;
    advance(p);
    return true;
}

static inline bool accept_keyword(struct parser *p, enum keyword keyword)
{
    if (!at_keyword(p, keyword)) return false;
    advance(p);
    return true;
}

/* Whether the token can be a name where keywords up to `use` may. */
static inline bool at_name(const struct parser *p, enum keyword_use use)
{
    return at(p, TOKEN_NAME) && keyword_use(p->token.keyword) <= use;
}

MUST_USE status parse_expect(struct parser *p, enum token_kind kind, const char *what);
MUST_USE status parse_expect_keyword(struct parser *p, enum keyword keyword);
/* Takes the token's value, with doubled quotes undone. */
MUST_USE status parse_take_value(struct parser *p, struct text *out);
MUST_USE status parse_name(struct parser *p, enum keyword_use use, const char *what,
                           struct text *out);
/* A name where only a name can stand, so that every keyword may be one; but FROM there is more
 * likely to follow a name that was forgotten. */
MUST_USE status parse_label(struct parser *p, const char *what, struct text *out);
/* [AS] name; *out stays empty when there is none. */
MUST_USE status parse_alias(struct parser *p, struct text *out);

/* --- nodes --- */

static inline void raise_height(uint32_t *height, uint32_t other)
{
    if (other > *height) *height = other;
}

static inline void raise_over(uint32_t *height, const struct ast_expr *child)
{
    if (child != NULL) raise_height(height, ((const struct expr_node *)child)->height + 1);
}

/* Room for one more item, zeroed; NULL when memory is out. */
void *parse_list_add(struct parser *p, struct parse_list *list, size_t item_bytes);
MUST_USE status parse_list_add_expr(struct parser *p, struct parse_list *list,
                                    struct ast_expr *expr);
/* Opens a level behind the token just taken; closed by `p->depth--`. */
MUST_USE status parse_open_level(struct parser *p);
MUST_USE status parse_note_height(struct parser *p, uint32_t height);
/* Makes a node of the form, which ends before the current token. */
MUST_USE status parse_add_expr(struct parser *p, const struct ast_expr *form,
                               struct ast_expr **out);
/* The same with up to three arguments; those that are NULL are not there. */
MUST_USE status parse_add_operation(struct parser *p, struct ast_expr form,
                                    struct ast_expr *const args[3], struct ast_expr **out);
#define ARGS(...) ((struct ast_expr *const[3]){__VA_ARGS__})

/* --- grammar --- */

MUST_USE status parse_type(struct parser *p, struct type *out);
/* A literal or parameter, if the token is one; *out is NULL otherwise. */
MUST_USE status parse_literal(struct parser *p, struct ast_expr **out);
MUST_USE status parse_expr(struct parser *p, struct ast_expr **out);
MUST_USE status parse_nested_expr(struct parser *p, struct ast_expr **out);
/* One expression or more, separated by commas. */
MUST_USE status parse_expr_list(struct parser *p, struct parse_list *list);
/* BY ..., behind ORDER. */
MUST_USE status parse_order_list(struct parser *p, struct ast_order **out, uint32_t *out_count);
/* The whole query, or what follows its first body: `first` is then a sub-query already parsed. */
MUST_USE status parse_query(struct parser *p, const struct ast_expr *first, struct ast_query **out);
/* A query and its closing parenthesis; `first` as in parse_query. */
MUST_USE status parse_nested_query(struct parser *p, const struct ast_expr *first,
                                   struct ast_query **out);

#endif
