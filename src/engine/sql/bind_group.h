/* SPDX-License-Identifier: Apache-2.0 */
/* bind_group.h - GROUP BY and aggregates, DISTINCT ones too, as relations; used by bind_select.c
 * alone.
 */
#ifndef ENGINE_SQL_BIND_GROUP_H
#define ENGINE_SQL_BIND_GROUP_H

#include "engine/base/error.h"
#include "engine/sql/bind_expr.h"
#include "engine/sql/relation.h"

struct group {
    struct relation *input;
    const struct expr **keys;    /* Over the input. */
    const uint32_t *key_columns; /* The numbers they have in the result. */
    uint32_t key_count;
    const struct aggregation *aggregation;
};

/* The result's columns are the keys, then the aggregates under their numbers. */
MUST_USE status bind_group(struct binder *binder, const struct group *group,
                           struct relation **out_relation, struct error *err);

#endif
