/* SPDX-License-Identifier: Apache-2.0 */
/* binder.h - gives names a meaning and expressions a type.
 *
 *     (catalog_add_tables, parameters_add)* -> (bind_query)* -> plan_build (planner.h)
 *
 * Errors point at the place in the text and suggest the nearest name.
 */
#ifndef ENGINE_SQL_BINDER_H
#define ENGINE_SQL_BINDER_H

#include "engine/base/error.h"
#include "engine/sql/ast.h"
#include "engine/sql/parser.h"
#include "engine/sql/relation.h"

/* A parameter's value as the user gave it (--set). */
struct binder_setting {
    struct text name;
    struct text value;
    bool used; /* Set when some parameter has that name. */
};

struct binder_settings {
    struct binder_setting *items;
    uint32_t count;
};

/* The parameters that a query file sees: those of tables.sql, then its own. */
struct parameter_list {
    struct catalog_parameter *items;
    uint32_t count;
    uint32_t capacity;
};

/* Adds a script's tables to the catalog. */
MUST_USE status catalog_add_tables(struct catalog *catalog, const struct sql_source *source,
                                   const struct ast_script *script, struct error *err);
/* Appends a script's parameters to the list, with values from the settings where given. */
MUST_USE status parameters_add(struct parameter_list *list, struct catalog *catalog,
                               const struct sql_source *source, const struct ast_script *script,
                               struct binder_settings *settings, struct error *err);

struct binder_input {
    struct text name; /* Of the query: "q1". */
    const struct sql_source *source;
    const struct ast_query *query;
    const struct parameter_list *parameters;
};

MUST_USE status bind_query(struct catalog *catalog, const struct binder_input *input,
                           struct bound_query *out_query, struct error *err);

#endif
