/* SPDX-License-Identifier: Apache-2.0 */
/* plan_builder.h - streams: pipelines under construction, and the folds that end them.
 *
 * The planner is one module in several files, all of which share this header: planner.c decides
 * what happens and calls the others, and they call back only for planner_scalar_fold.
 * plan_builder.c keeps places of columns, operators, schemas and labels consistent;
 * plan_build_rows.c, plan_bloom.c and plan_phases.c each have one transformation. Every stream_*
 * function that ends a stream in a fold makes the stream begin anew at that fold.
 */
#ifndef ENGINE_SQL_PLAN_BUILDER_H
#define ENGINE_SQL_PLAN_BUILDER_H

#include "engine/base/array.h"
#include "engine/base/error.h"
#include "engine/plan/plan.h"
#include "engine/sql/relation.h"

#define COLUMN_NONE UINT32_MAX /* A place in a batch that no column number stands for. */

struct stream {
    enum source_kind source_kind;
    uint32_t source; /* Table (as long as scans are not made) or fold. */
    const struct op *ops;
    uint32_t op_count;
    const uint32_t *columns; /* Column number by place. */
    uint32_t column_count;
    const struct expr *const *late; /* Conditions that wait for a scalar. */
    uint32_t late_count;
    double rows; /* Estimate. */
};

struct planner {
    struct catalog *catalog;
    struct arena *arena;
    uint32_t query; /* The one that is being planned. */
    ARRAY_OF(struct fold) folds;
    ARRAY_OF(struct pipeline) pipelines;
    uint32_t *scalar_folds; /* By scalar; COLUMN_NONE: not planned yet. */
    bool names_failed;      /* There was no memory for some name: planner_finish tells. */
    bool order_is_free;     /* Whatever comes of what is being lowered, its order is not seen. */
};

/* A build side, as a probe sees it. */
struct side {
    uint32_t fold;
    const uint32_t *columns;
    uint32_t column_count;
};

struct probe {
    const struct side *side;
    const uint32_t *key_positions;
    uint32_t key_count;
    bool keep_unmatched;
    enum probe_kind kind; /* PROBE_JOIN or PROBE_SEMI. */
};

/* What a PROJECT will compute: expressions over column numbers, and the number of each result. */
struct projection {
    const struct expr **exprs;
    const struct expr **placed; /* Already in terms of places; else NULL. */
    uint32_t *columns;
    uint32_t count;
    uint32_t capacity;
};

MUST_USE status projection_init(struct planner *planner, struct projection *projection,
                                uint32_t capacity, struct error *err);
void projection_add(struct projection *projection, const struct expr *expr, uint32_t column);
MUST_USE status projection_add_column(struct planner *planner, struct projection *projection,
                                      uint32_t column, struct error *err);
/* Only if it is not there yet. */
MUST_USE status projection_add_once(struct planner *planner, struct projection *projection,
                                    uint32_t column, struct error *err);
/* The column at a place of the stream, whatever its number. */
struct column_place {
    uint32_t column;
    struct type type;
};
MUST_USE status projection_add_position(struct planner *planner, struct projection *projection,
                                        uint32_t position, struct column_place place,
                                        struct error *err);
bool projection_has(const struct projection *projection, uint32_t column);
uint32_t projection_position(const struct projection *projection, uint32_t column);

MUST_USE status stream_filter(struct planner *planner, struct stream *stream,
                              const struct expr *condition, struct error *err);
MUST_USE status stream_wait(struct planner *planner, struct stream *stream,
                            const struct expr *condition, struct error *err);
MUST_USE status stream_project(struct planner *planner, struct stream *stream,
                               const struct projection *projection, struct error *err);
/* Keeps only needed columns. */
MUST_USE status stream_narrow(struct planner *planner, struct stream *stream, const bool *needed,
                              struct error *err);
/* The last column is a list; `column` will be its elements' number. */
MUST_USE status stream_unnest(struct planner *planner, struct stream *stream, uint32_t column,
                              struct error *err);
MUST_USE status stream_probe(struct planner *planner, struct stream *stream,
                             const struct probe *probe, struct error *err);

MUST_USE status stream_one_row(struct planner *planner, struct stream *out_stream,
                               struct error *err);
MUST_USE status stream_collect(struct planner *planner, struct stream *stream, const char *label,
                               struct error *err);
/* The stream has the keys, then the inputs of the aggregates, in order. */
MUST_USE status stream_aggregate(struct planner *planner, struct stream *stream,
                                 const struct relation *relation, struct error *err);
/* The best relation->limit rows of each of relation's partitions; the stream's columns are all
 * there is to compare. */
MUST_USE status stream_rank(struct planner *planner, struct stream *stream,
                            const struct relation *relation, struct error *err);
MUST_USE status stream_sort(struct planner *planner, struct stream *stream,
                            const struct relation *relation, struct error *err);
MUST_USE status stream_union(struct planner *planner, struct stream *streams, uint32_t count,
                             const uint32_t *columns, struct stream *out_stream, struct error *err);
/* Both streams have their join keys as first columns. */
struct fold_join {
    uint32_t key_count;
    bool inner;
    bool partitioned;
};
MUST_USE status stream_fold_join(struct planner *planner, struct stream *left, struct stream *right,
                                 struct fold_join join, struct stream *out_stream,
                                 struct error *err);

/* In plan_build_rows.c: the same as stream_aggregate, by way of rows of a build side, where that is
 * shorter; *out_done tells. */
MUST_USE status stream_aggregate_by_row(struct planner *planner, struct stream *stream,
                                        const struct relation *relation,
                                        const struct grouping *grouping, bool *out_done,
                                        struct error *err);

/* In plan_bloom.c: of a partitioned join, whose keys are the first columns of both. If that is
 * worth it, rows of the larger side that have no partner in the smaller one are dropped where they
 * are; a few of them may get through. */
MUST_USE status stream_bloom(struct planner *planner, const struct stream *small,
                             struct stream *large, uint32_t key_count, struct error *err);

bool duplicate_set_equal(const struct duplicate_set *a, const struct duplicate_set *b);
/* When all pipelines are known: tells the build sides which duplicates are asked for. */
MUST_USE status planner_number_duplicates(struct planner *planner, struct error *err);

/* What the modules of the builder share. */
struct schema stream_schema(const struct planner *planner, const struct stream *stream);
MUST_USE status stream_append(struct planner *planner, struct stream *stream, struct op op,
                              struct error *err);
/* Ends the stream in the fold, as its only input, and begins a new one there. */
MUST_USE status stream_end(struct planner *planner, struct stream *stream, struct fold fold,
                           const uint32_t *columns, uint32_t column_count, struct error *err);
const char *label_of(struct planner *planner, const char *prefix, const struct field *fields,
                     uint32_t count);

/* In planner.c: the fold that holds a scalar sub-query's value. */
MUST_USE status planner_scalar_fold(struct planner *planner, uint32_t scalar, uint32_t *out_fold,
                                    struct error *err);
/* In plan_phases.c: marks a fold and all that its rows come from, as far as they are planned; */
void planner_mark_folds(const struct planner *planner, uint32_t fold, bool *marked);
/* the folds that operators use. */
void planner_mark_used(const struct op *ops, uint32_t op_count, bool *marked);
/* Makes scans, phases and the read-only plan. */
MUST_USE status planner_finish(struct planner *planner, struct plan_query *queries,
                               uint32_t query_count, struct plan **out_plan, struct error *err);

#endif
