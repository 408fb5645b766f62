/* SPDX-License-Identifier: Apache-2.0 */
/* bind_from.h - FROM: tables, joins, lists and sub-queries as relations, and conditions over them.
 *
 * Used by bind_select.c and binder.c alone, also for the clauses above FROM.
 */
#ifndef ENGINE_SQL_BIND_FROM_H
#define ENGINE_SQL_BIND_FROM_H

#include "engine/base/error.h"
#include "engine/sql/bind_expr.h"
#include "engine/sql/relation.h"

/* Passes its input's columns on until told otherwise; NULL when memory is out. */
struct relation *binder_new_relation(struct binder *binder, enum relation_kind kind,
                                     struct relation *input);
/* Makes all columns of the relation known as alias.name. */
MUST_USE status bind_scope_add_all(struct binder *binder, struct scope *scope, struct text alias,
                                   const struct relation *relation, const struct text *names,
                                   struct error *err);
/* Lets pass only rows that fulfil the condition. */
MUST_USE status bind_filter_add(struct binder *binder, struct relation **in_out_relation,
                                const struct expr *condition, struct error *err);
/* The same, with each part of an AND as deep as its columns allow. */
MUST_USE status bind_conditions_sink(struct binder *binder, struct relation **in_out_relation,
                                     const struct expr *condition, struct error *err);
/* Adds what can be named to the scope. */
MUST_USE status bind_from(struct binder *binder, const struct ast_from *ast, struct scope *scope,
                          struct relation **out_relation, struct error *err);

#endif
