/* SPDX-License-Identifier: Apache-2.0 */
/* expr.h - typed expressions: what is computed from a row.
 *
 * Built by the binder, read-only afterwards and shared by all threads. Every call's arguments have
 * exactly the types its kernel expects: conversions are calls of FUNCTION_CAST put in by the
 * binder.
 *
 * Memory: nodes live in the plan's arena.
 */
#ifndef ENGINE_PLAN_EXPR_H
#define ENGINE_PLAN_EXPR_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/text.h"
#include "engine/data/schema.h"
#include "engine/data/type.h"
#include "engine/plan/function.h"

/* One constant. Lists are never constants. */
struct value {
    bool is_null;
    union {
        bool truth;
        int64_t integer; /* INT, DECIMAL, DATE, TIMESTAMP */
        double number;
        struct text text;
    };
};

enum expr_kind {
    EXPR_COLUMN,   /* Column `column` of the batch (while planning: of the query, see
                    * engine/sql/relation.h).
                    */
    EXPR_CONSTANT, /* `constant` */
    EXPR_SCALAR,   /* The only value of the finished fold `fold`: a scalar sub-query. */
    EXPR_CALL      /* `function` of `args` */
};

struct expr {
    enum expr_kind kind;
    struct type type;
    uint32_t column;
    uint32_t fold;
    struct value constant;
    enum function_id function;
    uint32_t arg_count;
    const struct expr *const *args;
};

/* NULL when the arena is full. */
const struct expr *expr_column(struct arena *arena, uint32_t column, struct type type);
const struct expr *expr_constant(struct arena *arena, struct value value, struct type type);
const struct expr *expr_call(struct arena *arena, enum function_id function, struct type type,
                             const struct expr *const *args, uint32_t arg_count);

/* The same with other numbers: column i becomes columns[i], the scalar of fold i that of folds[i];
 * NULL: these stay. NULL when the arena is full. */
const struct expr *expr_renumber(struct arena *arena, const struct expr *expr,
                                 const uint32_t *columns, const uint32_t *folds);

bool expr_equal(const struct expr *a, const struct expr *b);
/* Whether evaluation can end in an error (overflow, a bad cast): such a predicate keeps its place.
 */
bool expr_can_fail(const struct expr *expr);
/* Whether evaluation counts values that it could not read. */
bool expr_counts(const struct expr *expr);
/* Either: no optimization may change the rows that it is evaluated for. */
bool expr_keeps_its_place(const struct expr *expr);
/* A rough cost per row, for ordering predicates: a comparison of numbers is 1. */
uint32_t expr_cost(const struct expr *expr);
/* How many bytes of this column's texts the expression looks at: it cannot tell longer texts apart,
 * as `column = 'text'` cannot tell those that are longer than the constant. UINT32_MAX: all. */
uint32_t expr_prefix(const struct expr *expr, uint32_t column);
/* Calls visit for every node, parents first. */
void expr_visit(const struct expr *expr, void (*visit)(const struct expr *, void *), void *context);

/* The expression as SQL; columns have the names of `input`, or numbers where that is NULL. */
void expr_print(const struct expr *expr, const struct schema *input, struct buf *out);

#endif
