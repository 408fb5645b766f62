/* SPDX-License-Identifier: Apache-2.0 */
/* bind_expr.h - expressions: names to column numbers, operators and calls to typed nodes. */
#ifndef ENGINE_SQL_BIND_EXPR_H
#define ENGINE_SQL_BIND_EXPR_H

#include "engine/base/array.h"
#include "engine/base/error.h"
#include "engine/sql/ast.h"
#include "engine/sql/binder.h"
#include "engine/sql/diagnostic.h"
#include "engine/sql/relation.h"

/* Of names that are offered for a misspelled one; further ones are not looked at. */
enum { BINDER_NAMES_LIMIT = 256, BINDER_SUGGESTION_SIZE = 128 };

/* A column that can be named: `qualifier` is the table's alias. */
struct scope_column {
    struct text qualifier;
    struct text name;
    uint32_t column;
};

struct scope {
    struct scope_column *items;
    uint32_t count;
    uint32_t capacity;
};

struct with_entry {
    struct text name;
    const struct text *column_names;
    struct shared_query *query;
};

struct binder {
    struct catalog *catalog;
    struct arena *arena;
    const struct sql_source *source;
    const struct parameter_list *parameters;
    ARRAY_OF(struct with_entry) withs; /* Visible WITH names, the innermost last. */
    uint32_t nesting;                  /* Of sub-queries; 0: the query whose rows the user sees. */
};

/* Aggregates found so far in one SELECT. */
struct aggregation {
    struct relation_aggregate *items;
    uint32_t count;
    uint32_t capacity;
    const struct expr *distinct; /* What the DISTINCT ones are of; NULL: there is none. */
    struct text distinct_name;
};

struct scope_alias {
    struct text name;
    const struct expr *expr;
};

/* What an expression may refer to, by the clause it stands in. */
struct expr_scope {
    const struct scope *columns;
    const struct scope_alias *aliases; /* Names of the select list; NULL where they don't count. */
    uint32_t alias_count;
    bool aliases_first;              /* ORDER BY: an alias hides a column of the same name. */
    struct aggregation *aggregation; /* NULL: aggregates are not allowed here. */
    const char *clause;              /* For messages: "WHERE". */
};

MUST_USE status bind_expr(struct binder *binder, const struct expr_scope *scope,
                          const struct ast_expr *ast, const struct expr **out_expr,
                          struct error *err);
/* The same, and it must be a BOOL. */
MUST_USE status bind_condition(struct binder *binder, const struct expr_scope *scope,
                               const struct ast_expr *ast, const struct expr **out_expr,
                               struct error *err);
/* Converts to `type`, with a cast where needed; `ast` is where an error points. */
MUST_USE status bind_convert(struct binder *binder, const struct ast_expr *ast, struct type type,
                             const struct expr **in_out_expr, struct error *err);
/* Binds all of ast's arguments. */
MUST_USE status bind_args(struct binder *binder, const struct expr_scope *scope,
                          const struct ast_expr *ast, const struct expr ***out_args,
                          struct error *err);
/* Gives all of args one type; `asts` is where errors point, or NULL: then it is `ast`. */
MUST_USE status bind_unify(struct binder *binder, const struct ast_expr *ast,
                           const struct expr **args, const struct ast_expr *const *asts,
                           uint32_t count, struct type *out_type, struct error *err);
/* A node that calls `function`; the arguments have their types already. */
MUST_USE status bind_make_call(struct binder *binder, enum function_id function, struct type type,
                               const struct expr *const *args, uint32_t arg_count,
                               const struct expr **out_expr, struct error *err);
/* name(...), in bind_call.c. */
MUST_USE status bind_call(struct binder *binder, const struct expr_scope *scope,
                          const struct ast_expr *ast, const struct expr **out_expr,
                          struct error *err);
/* A constant that is a whole number >= 0, as LIMIT wants; a parameter will do. */
MUST_USE status bind_count(struct binder *binder, const struct ast_expr *ast, const char *clause,
                           uint64_t *out_count, struct error *err);

MUST_USE static inline status binder_memory(struct error *err)
{
    return error_set(err, STATUS_MEMORY, "out of memory while planning");
}
MUST_USE static inline status binder_fail(const struct binder *binder, const struct ast_expr *ast,
                                          struct error *err, const char *text)
{
    return sql_error(err, binder->source, ast->offset, "%s", text);
}
/* A new column number. */
MUST_USE status binder_new_column(struct binder *binder, struct text name, struct type type,
                                  uint32_t *out_column, struct error *err);

/* Bound by binder.c: a query in the place of a value. */
MUST_USE status bind_subquery(struct binder *binder, const struct ast_query *query,
                              struct bound_query *out_query, struct error *err);

#endif
