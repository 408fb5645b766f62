/* SPDX-License-Identifier: Apache-2.0 */
/* lexer.h - SQL text to tokens, one at a time.
 *
 *     lexer_init -> lexer_next* until TOKEN_END, which is then repeated
 *
 * What cannot be a token is a TOKEN_BAD that says why: it fits nowhere, so that the parser, which
 * expected something else, reports it in the order of the text. A lexer and its tokens are plain
 * values: copying them remembers a place.
 *
 * Memory: tokens are slices of the borrowed text.
 */
#ifndef ENGINE_SQL_LEXER_H
#define ENGINE_SQL_LEXER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/text.h"

/* How far a keyword may also be a name. Quoted, after a dot and where only a name can stand, every
 * one may (but FROM not after AS and a dot, where it rather ends a forgotten name). */
enum keyword_use {
    KEYWORD_FREE,     /* A name anywhere. */
    KEYWORD_COLUMN,   /* A column or table, but an alias only after AS. */
    KEYWORD_RESERVED, /* Not without quotes. */
};

/* In alphabetical order, for the binary search. */
#define KEYWORDS(X)                                                                                \
    X(ALL, RESERVED)                                                                               \
    X(ALTER, FREE)                                                                                 \
    X(AND, RESERVED)                                                                               \
    X(ANTI, COLUMN)                                                                                \
    X(AS, RESERVED)                                                                                \
    X(ASC, FREE)                                                                                   \
    X(ASOF, COLUMN)                                                                                \
    X(BETWEEN, RESERVED)                                                                           \
    X(BY, FREE)                                                                                    \
    X(CASE, RESERVED)                                                                              \
    X(CAST, FREE)                                                                                  \
    X(COLLATE, COLUMN)                                                                             \
    X(CREATE, FREE)                                                                                \
    X(CROSS, RESERVED)                                                                             \
    X(CUBE, FREE)                                                                                  \
    X(DATE, FREE)                                                                                  \
    X(DELETE, FREE)                                                                                \
    X(DESC, FREE)                                                                                  \
    X(DISTINCT, RESERVED)                                                                          \
    X(DROP, FREE)                                                                                  \
    X(ELSE, RESERVED)                                                                              \
    X(END, RESERVED)                                                                               \
    X(ESCAPE, COLUMN)                                                                              \
    X(EXCEPT, RESERVED)                                                                            \
    X(EXISTS, FREE)                                                                                \
    X(EXPLAIN, FREE)                                                                               \
    X(EXTRACT, FREE)                                                                               \
    X(FALSE, RESERVED)                                                                             \
    X(FETCH, COLUMN)                                                                               \
    X(FILTER, COLUMN)                                                                              \
    X(FIRST, FREE)                                                                                 \
    X(FROM, RESERVED)                                                                              \
    X(FULL, RESERVED)                                                                              \
    X(GROUP, RESERVED)                                                                             \
    X(GROUPING, FREE)                                                                              \
    X(GROUPS, FREE)                                                                                \
    X(HAVING, RESERVED)                                                                            \
    X(ILIKE, RESERVED)                                                                             \
    X(IN, RESERVED)                                                                                \
    X(INNER, RESERVED)                                                                             \
    X(INSERT, FREE)                                                                                \
    X(INTERSECT, RESERVED)                                                                         \
    X(INTERVAL, FREE)                                                                              \
    X(IS, RESERVED)                                                                                \
    X(JOIN, RESERVED)                                                                              \
    X(LAST, FREE)                                                                                  \
    X(LATERAL, FREE)                                                                               \
    X(LEFT, RESERVED)                                                                              \
    X(LIKE, RESERVED)                                                                              \
    X(LIMIT, RESERVED)                                                                             \
    X(NATURAL, RESERVED)                                                                           \
    X(NOT, RESERVED)                                                                               \
    X(NULL, RESERVED)                                                                              \
    X(NULLS, FREE)                                                                                 \
    X(OFFSET, RESERVED)                                                                            \
    X(ON, RESERVED)                                                                                \
    X(OR, RESERVED)                                                                                \
    X(ORDER, RESERVED)                                                                             \
    X(OUTER, FREE)                                                                                 \
    X(OVER, COLUMN)                                                                                \
    X(PARAMETER, FREE)                                                                             \
    X(PARTITION, FREE)                                                                             \
    X(QUALIFY, RESERVED)                                                                           \
    X(RANGE, FREE)                                                                                 \
    X(RECURSIVE, FREE)                                                                             \
    X(RIGHT, RESERVED)                                                                             \
    X(ROLLUP, FREE)                                                                                \
    X(ROWS, FREE)                                                                                  \
    X(SELECT, RESERVED)                                                                            \
    X(SEMI, COLUMN)                                                                                \
    X(SETS, FREE)                                                                                  \
    X(SIMILAR, COLUMN)                                                                             \
    X(TABLE, FREE)                                                                                 \
    X(TABLESAMPLE, COLUMN)                                                                         \
    X(THEN, RESERVED)                                                                              \
    X(TIMESTAMP, FREE)                                                                             \
    X(TRUE, RESERVED)                                                                              \
    X(TRY_CAST, FREE)                                                                              \
    X(UNION, RESERVED)                                                                             \
    X(UNNEST, FREE)                                                                                \
    X(UPDATE, FREE)                                                                                \
    X(USING, RESERVED)                                                                             \
    X(VALUES, FREE)                                                                                \
    X(WHEN, RESERVED)                                                                              \
    X(WHERE, RESERVED)                                                                             \
    X(WINDOW, COLUMN)                                                                              \
    X(WITH, RESERVED)

enum keyword {
    KEYWORD_NONE,
#define X(name, use) KEYWORD_##name,
    KEYWORDS(X)
#undef X
        KEYWORD_COUNT
};

enum token_kind {
    TOKEN_END,
    TOKEN_BAD,
    TOKEN_NAME, /* value = the name; keyword, unless it was quoted. */
    TOKEN_INT,
    TOKEN_NUMBER, /* With a point or an exponent. */
    TOKEN_TEXT,
    TOKEN_PARAMETER, /* $name: value = the name. */
    TOKEN_PLUS,
    TOKEN_MINUS,
    TOKEN_STAR,
    TOKEN_SLASH,
    TOKEN_SLASH_SLASH,
    TOKEN_PERCENT,
    TOKEN_CONCAT,
    TOKEN_EQUAL, /* = and == */
    TOKEN_NOT_EQUAL,
    TOKEN_LESS,
    TOKEN_LESS_EQUAL,
    TOKEN_GREATER,
    TOKEN_GREATER_EQUAL,
    TOKEN_CAST, /* :: */
    TOKEN_DOT,
    TOKEN_COMMA,
    TOKEN_SEMICOLON,
    TOKEN_OPEN,
    TOKEN_CLOSE,
    TOKEN_OPEN_BRACKET,
    TOKEN_CLOSE_BRACKET
};

struct token {
    enum token_kind kind;
    enum keyword keyword;
    uint32_t offset;
    uint32_t size;
    struct text value;   /* Without quotes or `$`. */
    bool doubled;        /* The value holds doubled quotes that mean one. */
    bool quoted;         /* A name in quotes. */
    const char *problem; /* TOKEN_BAD: what is wrong; NULL: a character SQL does not know. */
};

struct lexer {
    struct text source;
    uint32_t position;
    uint32_t last_end; /* Where the last token ended: the end of the text is shown there. */
};

void lexer_init(struct lexer *lexer, struct text source);
struct token lexer_next(struct lexer *lexer);

/* In capitals. */
const char *keyword_name(enum keyword keyword);
enum keyword_use keyword_use(enum keyword keyword);

#endif
