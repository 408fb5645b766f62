/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - what is to be computed: scans, pipelines (map stages) and folds, for all queries of a
 * job.
 *
 *     scan ──pipeline──▶ fold ──pipeline──▶ fold ──▶ ... ──▶ the fold that is a query's result
 *
 * A scan reads one table once, in one phase, for every pipeline that starts from it. A pipeline is
 * stateless (a map): batches of its source in, for each one batch out, with the same number, to
 * each shard of its target fold. A fold is a pipeline breaker with mergeable state: it applies
 * numbered batches, in any order, and emits rows when all its inputs are complete. A pipeline may
 * use finished folds: as build sides to join with, and as scalars. So a scan whose pipelines need
 * such folds runs in a later phase than the scans below them.
 *
 * A plan is read-only once built and shared by all threads.
 * Memory: everything lives in the arena the planner was given.
 */
#ifndef ENGINE_PLAN_PLAN_H
#define ENGINE_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/text.h"
#include "engine/data/schema.h"
#include "engine/plan/expr.h"

struct sort_key {
    uint32_t column;
    bool descending;
    bool nulls_first;
};

struct aggregate {
    enum aggregate_kind kind;
    struct type input_type; /* Of the value; COUNT_ROWS has none. */
    struct type by_type;    /* ARG_MIN, ARG_MAX: of the second argument. */
    struct type result_type;
    uint32_t input_column; /* In the batch to be aggregated. */
    uint32_t by_column;
    uint32_t state_column; /* Where its partial state begins among a partial batch's columns. */
    uint32_t state_width;  /* How many columns the partial state takes. */
};

/* Grouping of a batch's rows. Used twice: a map aggregates within its batch and sends partial
 * states, a fold merges them. Keys are the first key_count columns of both. */
struct grouping {
    const uint32_t *key_columns; /* In the raw input batch. */
    uint32_t key_count;
    const struct aggregate *aggregates;
    uint32_t aggregate_count;
    struct schema partial; /* Keys, then partial states. */
    struct schema result;  /* Keys, then results. */
};

/* The best `limit` rows of each partition, in the order of `keys` and then of all columns. */
struct ranking {
    const uint32_t *partition_columns;
    uint32_t partition_count;
    const struct sort_key *keys; /* A total order: every column of the input is in it. */
    uint32_t key_count;
    uint64_t limit;
};

enum op_kind {
    OP_FILTER,    /* Keep rows where all `exprs` hold, in this order. */
    OP_PROJECT,   /* Output column i is exprs[i]. */
    OP_UNNEST,    /* Append the elements of list exprs[0] as one column: a row per element. */
    OP_PROBE,     /* Join with build side `side`: see below. */
    OP_AGGREGATE, /* Rows to partial states, within the batch. */
    OP_RANK       /* Only the best rows of each partition, within the batch. */
};

/* What OP_PROBE gives for the partners that it finds. */
enum probe_kind {
    PROBE_JOIN, /* A row for every partner: the input's columns, then all of the build side. */
    PROBE_SEMI, /* The rows that have a partner, as they are. */
    PROBE_ROW,  /* As PROBE_JOIN, but instead of the build side's columns the number of its row, or
                   of the first duplicate of that row: see below. */
    PROBE_FETCH /* key_columns[0] is such a number: the input's columns, then the row's. */
};

/* Rows of a build side with the same values in these columns are duplicates; NULL is like NULL. */
struct duplicate_set {
    const uint32_t *columns;
    uint32_t count;
};

/* Keys are input columns compared with the build side's first key_count columns, NULL matching
 * nothing. */
struct op {
    enum op_kind kind;
    struct schema output;
    const struct expr *const *exprs;
    uint32_t expr_count;
    uint32_t side; /* A fold of kind FOLD_COLLECT. */
    const uint32_t *key_columns;
    uint32_t key_count;
    bool keep_unmatched; /* LEFT JOIN: a row without partner is kept, with NULLs. */
    enum probe_kind probe;
    struct duplicate_set duplicates; /* PROBE_ROW: of the build side; */
    uint32_t duplicate_set;          /* its number among those of the fold. */
    const struct grouping *grouping;
    const struct ranking *ranking;
};

enum source_kind { SOURCE_SCAN, SOURCE_FOLD };

/* A map stage and the exchange it feeds. */
struct pipeline {
    uint32_t id;
    uint32_t query;      /* The first that asked for it, */
    struct text queries; /* and the names of all, for people: "q1, q3". */
    enum source_kind source_kind;
    uint32_t source; /* Scan or fold. */
    const struct op *ops;
    uint32_t op_count;
    struct schema input;
    struct schema output; /* The columns on the exchange. */
    uint32_t target;      /* Fold. */
    uint32_t target_input;
    uint64_t row_limit; /* LIMIT in source order: no more rows of a batch are needed; 0: all. */
    uint32_t
        shard_keys; /* Rows go to shards by the hash of so many first columns; 0: see target. */
    uint32_t phase;
};

enum fold_kind {
    FOLD_COLLECT,   /* Keep rows in source order: a build side, a scalar, a result, a union. */
    FOLD_AGGREGATE, /* Merge partial states by key; emits in the order of the keys' hashes. */
    FOLD_SORT,      /* All rows, ordered by `ranking->keys`. */
    FOLD_RANK,      /* The best rows of each partition, ordered by partition, then keys. */
    FOLD_JOIN       /* Input 0 [LEFT] JOIN input 1, once both are complete; order of input 0. */
};

struct fold {
    uint32_t id;
    uint32_t query; /* As in struct pipeline. */
    struct text queries;
    enum fold_kind kind;
    struct schema input; /* Of each input's exchange (FOLD_JOIN: of input 0). */
    struct schema right; /* FOLD_JOIN: of input 1. */
    struct schema output;
    uint32_t input_count; /* Pipelines that feed it, numbered 0.. by target_input. */
    uint32_t
        key_count; /* Leading columns that are group keys, which choose the shard, or join keys. */
    bool inner;    /* FOLD_JOIN: rows of input 0 without a partner are left out. */
    bool partitioned; /* FOLD_JOIN: by key hash, where the order of its rows does not matter. */
    const struct grouping *grouping;
    const struct ranking *ranking;
    uint64_t offset;    /* Rows to leave out at the start, */
    uint64_t limit;     /* and how many to emit then; UINT64_MAX: all. */
    uint32_t side_keys; /* FOLD_COLLECT used as build side: its join keys are the first columns. */
    bool is_build_side;
    bool is_bloom; /* Of a build side: only a Bloom filter of its keys is built. */
    const struct duplicate_set *duplicate_sets; /* Of a build side: all that are asked for. */
    uint32_t duplicate_set_count;
    bool is_scalar;    /* At most one row is allowed. */
    uint32_t phase;    /* Complete after this phase. */
    const char *label; /* For people: "aggregate by id, title". */
};

struct scan {
    uint32_t id;
    uint32_t table;
    uint32_t phase;
    const bool *used; /* By table column: some pipeline reads it. */
    const uint32_t *pipelines;
    uint32_t pipeline_count;
};

struct table {
    struct text name;
    struct schema schema; /* Declared columns, not_null included. */
    const struct text *patterns;
    uint32_t pattern_count;
};

struct plan_query {
    struct text name;
    uint32_t result_fold;
    struct schema schema; /* What the user sees: the result fold's first columns. */
    bool ordered;         /* False: rows come in source order and can be streamed. */
};

struct plan {
    struct table *tables; /* Only those some query reads. */
    uint32_t table_count;
    struct scan *scans;
    uint32_t scan_count;
    struct pipeline *pipelines;
    uint32_t pipeline_count;
    struct fold *folds; /* Each after the folds it depends on. */
    uint32_t fold_count;
    struct plan_query *queries;
    uint32_t query_count;
    uint32_t phase_count;
};

#endif
