/* SPDX-License-Identifier: Apache-2.0 */
/* compile.h - an analysis' SQL to one plan, in one call.
 *
 * The plan is a function of the input: the same texts, settings and sizes give the same plan on
 * every node. Nothing is read from files.
 *
 * Memory: the plan lives in the arena, and borrows the texts.
 */
#ifndef ENGINE_SQL_COMPILE_H
#define ENGINE_SQL_COMPILE_H

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/plan/plan.h"

struct compile_query {
    struct text name; /* "q1"; messages speak of q1.sql. */
    struct text sql;
};

struct compile_setting {
    struct text name;
    struct text value;
};

struct compile_input {
    struct text tables_sql;
    const struct compile_query *queries; /* Answers come in this order. */
    uint32_t query_count;
    const struct compile_setting *settings;
    uint32_t setting_count;
    /* The size of a declared table's files, for choosing what a join builds; 0: unknown. NULL: all
     * are unknown. */
    status (*measure)(void *context, const struct table *table, uint64_t *out_bytes,
                      struct error *err);
    void *context;
    /* Estimated bytes of a build side up to which it is broadcast; a join with a larger one is
     * partitioned; 0: no join is. */
    uint64_t broadcast_limit;
};

/* What one process and a cluster use unless they are told otherwise; the plan, and so the audit,
 * depend on it. */
#define COMPILE_BROADCAST_LIMIT ((uint64_t)256 << 20)

MUST_USE status compile_queries(const struct compile_input *input, struct arena *arena,
                                struct plan **out_plan, struct error *err);

#endif
