/* SPDX-License-Identifier: Apache-2.0 */
/* relation.h - a query as the binder understands it: a tree of relations over numbered columns.
 *
 * Every column that exists anywhere in a job's queries has a number of its own (its place in
 * catalog.columns); an expression's EXPR_COLUMN carries that number until the planner turns it into
 * a place in a batch. An EXPR_SCALAR carries the number of the sub-query in catalog.scalars until
 * the planner knows the fold.
 *
 * Memory: the plan's arena.
 */
#ifndef ENGINE_SQL_RELATION_H
#define ENGINE_SQL_RELATION_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/array.h"
#include "engine/plan/plan.h"

struct relation_column {
    struct text name;
    struct type type;
};

struct relation_key {
    const struct expr *left;
    const struct expr *right;
};

struct relation_sort {
    uint32_t column; /* Column number. */
    bool descending;
    bool nulls_first;
};

struct relation_aggregate {
    enum aggregate_kind kind;
    const struct expr *input; /* NULL for count(*). */
    const struct expr *by;
    bool distinct;   /* As written: of each value of `input` once. No relation has such a one. */
    uint32_t column; /* The number its result has. */
};

enum relation_kind {
    RELATION_SCAN,
    RELATION_ONE_ROW, /* SELECT without FROM. */
    RELATION_FILTER,
    RELATION_PROJECT,
    RELATION_JOIN,
    RELATION_UNNEST,
    RELATION_AGGREGATE,
    RELATION_RANK,
    RELATION_SORT, /* With no keys: LIMIT in source order. */
    RELATION_UNION,
    RELATION_SHARED /* A use of a shared_query. */
};

struct relation {
    enum relation_kind kind;
    struct relation *input;
    struct relation *right; /* RELATION_JOIN */
    /* What comes out, in order. For PROJECT, AGGREGATE keys, UNION, SCAN and a use of a WITH query
     * these numbers are new; the others pass their input's on. */
    uint32_t *columns;
    uint32_t column_count;
    uint32_t table; /* SCAN: in the catalog. */
    const struct expr **
        exprs; /* FILTER: predicates. PROJECT: one per column. AGGREGATE: keys. UNNEST: the list. */
    uint32_t expr_count;
    struct relation_aggregate *aggregates;
    uint32_t aggregate_count;
    struct relation_key *keys; /* JOIN */
    uint32_t key_count;
    bool left_outer;
    uint32_t *partition; /* RANK: column numbers. */
    uint32_t partition_count;
    struct relation_sort *sort; /* RANK, SORT */
    uint32_t sort_count;
    uint64_t limit; /* RANK: per partition. UINT64_MAX: none. */
    uint64_t offset;
    struct relation **inputs; /* UNION */
    uint32_t input_count;
    struct shared_query *shared;
};

/* A WITH query, or what is aggregated in two ways: bound once, planned once, used by any number of
 * RELATION_SHARED. */
struct shared_query {
    struct text name;
    struct relation *relation;
    bool order_is_free; /* No use of it sees the order of its rows. */
    void *planned;      /* The planner's. */
};

struct catalog_parameter {
    struct text name;
    struct value value;
    struct type type;
};

struct catalog {
    struct arena *arena;
    struct table *tables;
    bool sizes_known;         /* table_bytes says something. */
    uint64_t broadcast_limit; /* A larger side is not copied; 0: any is. */
    uint64_t *table_bytes; /* Size of each table's files, for choosing what to build; 0: unknown. */
    uint32_t table_count;
    ARRAY_OF(struct relation_column) columns;
    ARRAY_OF(struct relation *) scalars;
};

/* A query ready to be planned. */
struct bound_query {
    struct text name;
    struct relation *relation;
    const struct text *names; /* The user's names for the first visible_count columns. */
    uint32_t visible_count;   /* What follows are columns needed only for ordering. */
    bool ordered;             /* False: rows come in source order. */
};

#endif
