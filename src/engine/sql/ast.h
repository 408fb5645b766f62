/* SPDX-License-Identifier: Apache-2.0 */
/* ast.h - SQL as it was written: what the parser hands to the binder.
 *
 * Nothing here is resolved or typed. Every node knows where it stands in the text, so that an error
 * can point at it. Names are slices of the source text (quoted names without their quotes).
 *
 * Memory: nodes live in the arena given to the parser; the source text is borrowed and must outlive
 * them.
 */
#ifndef ENGINE_SQL_AST_H
#define ENGINE_SQL_AST_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/text.h"
#include "engine/data/type.h"

struct ast_query;

enum ast_expr_kind {
    AST_COLUMN, /* [qualifier.]name */
    AST_STAR,   /* * or qualifier.*; only in a select list and in count(*) */
    AST_INT,    /* name = the digits */
    AST_NUMBER, /* name = the digits: 1.5, 2e3 */
    AST_TEXT,   /* name = the value, quotes undone */
    AST_NULL,
    AST_BOOL,      /* truth */
    AST_TYPED,     /* DATE '2000-01-01': type, name = the text */
    AST_PARAMETER, /* $name */
    AST_CALL,      /* name(args) [OVER (...)]; distinct, over */
    AST_UNARY,     /* op args[0] */
    AST_BINARY,    /* args[0] op args[1] */
    AST_AND,       /* two or more args: chains are flat, however long */
    AST_OR,
    AST_NOT,
    AST_IS_NULL,  /* args[0] IS [NOT] NULL; negated */
    AST_IN,       /* args[0] [NOT] IN (args[1..]); negated */
    AST_BETWEEN,  /* args[0] [NOT] BETWEEN args[1] AND args[2]; negated */
    AST_LIKE,     /* args[0] [NOT] LIKE|ILIKE args[1]; negated, op */
    AST_CASE,     /* [operand] WHEN args[0] THEN args[1] ... [ELSE last]; operand, has_else */
    AST_CAST,     /* CAST(args[0] AS type) or args[0]::type */
    AST_SUBQUERY, /* (SELECT ...) as a value: query */
    AST_INDEX     /* args[0][args[1]] */
};

enum ast_operator {
    AST_OP_NONE,
    AST_OP_ADD,
    AST_OP_SUBTRACT,
    AST_OP_MULTIPLY,
    AST_OP_DIVIDE,         /* / */
    AST_OP_INTEGER_DIVIDE, /* // */
    AST_OP_MODULO,
    AST_OP_CONCAT, /* || */
    AST_OP_EQUAL,
    AST_OP_NOT_EQUAL, /* <> and != */
    AST_OP_LESS,
    AST_OP_LESS_EQUAL,
    AST_OP_GREATER,
    AST_OP_GREATER_EQUAL,
    AST_OP_NEGATE,
    AST_OP_PLUS,
    AST_OP_LIKE,
    AST_OP_ILIKE
};

struct ast_order {
    struct ast_expr *expr;
    bool descending;
    bool nulls_first; /* Default: NULLs last in both directions. */
};

struct ast_window {
    struct ast_expr **partition;
    uint32_t partition_count;
    struct ast_order *order;
    uint32_t order_count;
};

struct ast_expr {
    enum ast_expr_kind kind;
    enum ast_operator op;
    uint32_t offset; /* In the source text, where an error's caret goes. */
    uint32_t size;   /* Bytes of source the node covers. */
    struct text qualifier;
    struct text name;
    struct type type;
    bool truth;
    bool negated;
    bool distinct; /* count(DISTINCT x) */
    bool has_else;
    struct ast_expr **args;
    uint32_t arg_count;
    struct ast_expr *operand;  /* CASE x WHEN ... */
    struct ast_window *window; /* OVER (...), or NULL. */
    struct ast_query *query;   /* AST_SUBQUERY */
};

enum ast_from_kind {
    AST_FROM_TABLE,    /* name [alias] */
    AST_FROM_SUBQUERY, /* (query) alias */
    AST_FROM_UNNEST,   /* , UNNEST(expr) alias(column): each row of what stands left of it, per
                          element */
    AST_FROM_JOIN /* left [LEFT] JOIN right ON condition; a comma or CROSS JOIN has no condition */
};

struct ast_from {
    enum ast_from_kind kind;
    uint32_t offset;
    uint32_t size;
    struct text name;
    struct text alias;        /* Empty when there is none. */
    struct text column_alias; /* UNNEST(x) AS alias(column) */
    struct ast_query *query;
    struct ast_expr *expr; /* UNNEST's list, or JOIN's condition (NULL: cross). */
    bool left_outer;
    struct ast_from *left;
    struct ast_from *right;
};

struct ast_item {
    struct ast_expr *expr;
    struct text alias; /* Empty when there is none. */
};

struct ast_select {
    uint32_t offset;
    bool distinct;
    struct ast_item *items;
    uint32_t item_count;
    struct ast_from *from; /* NULL: one row without columns. */
    struct ast_expr *where;
    struct ast_expr **group;
    uint32_t group_count;
    struct ast_expr *having;
    struct ast_expr *qualify;
};

struct ast_with {
    struct text name;
    uint32_t offset;
    struct ast_query *query;
};

/* [WITH ...] body [UNION ALL body ...] [ORDER BY ...] [LIMIT n] [OFFSET m]
 * A body is a SELECT or a query in parentheses. */
struct ast_body {
    struct ast_select *select; /* Or NULL, then `query`. */
    struct ast_query *query;
};

struct ast_query {
    uint32_t offset;
    struct ast_with *withs;
    uint32_t with_count;
    struct ast_body *bodies; /* More than one: UNION ALL, in order. */
    uint32_t body_count;
    struct ast_order *order;
    uint32_t order_count;
    struct ast_expr *limit;
    struct ast_expr *limit_offset;
};

struct ast_column {
    struct text name;
    uint32_t offset;
    struct type type;
    bool not_null;
};

/* CREATE TABLE name (column TYPE [NOT NULL], ...) FROM 'glob' [OR 'glob' ...]; */
struct ast_table {
    struct text name;
    uint32_t offset;
    struct ast_column *columns;
    uint32_t column_count;
    struct text *patterns; /* The first that matches a file is taken. */
    uint32_t pattern_count;
};

/* PARAMETER name = literal; */
struct ast_parameter {
    struct text name;
    uint32_t offset;
    struct ast_expr *value; /* A literal, perhaps typed or negated. */
};

/* One file: any number of parameters and tables, and at most one query (then last). */
struct ast_script {
    struct ast_parameter *parameters;
    uint32_t parameter_count;
    struct ast_table *tables;
    uint32_t table_count;
    struct ast_query *query; /* NULL when the file holds none. */
};

#endif
