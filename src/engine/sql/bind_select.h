/* SPDX-License-Identifier: Apache-2.0 */
/* bind_select.h - one SELECT as a chain of relations; used by binder.c alone. */
#ifndef ENGINE_SQL_BIND_SELECT_H
#define ENGINE_SQL_BIND_SELECT_H

#include "engine/base/error.h"
#include "engine/sql/bind_expr.h"
#include "engine/sql/relation.h"

/* One SELECT with the ORDER BY and LIMIT of the query it is the body of. */
MUST_USE status bind_select(struct binder *binder, const struct ast_query *query,
                            const struct ast_select *ast, struct bound_query *out_query,
                            struct error *err);
/* The query's LIMIT and OFFSET, over rows sorted by columns of the relation. */
MUST_USE status bind_make_sort(struct binder *binder, const struct ast_query *query,
                               struct relation **in_out_relation, struct relation_sort *sort,
                               uint32_t sort_count, struct error *err);

#endif
