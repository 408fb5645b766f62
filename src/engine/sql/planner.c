/* SPDX-License-Identifier: Apache-2.0 */
/* planner.c - lowers relations to streams, and streams to pipelines and folds.
 *
 * A stream is a pipeline under construction: a source, the operators so far, and which column
 * number stands where in its batches. Relations without state only append to the stream of their
 * input. A relation with state ends the stream in a fold, and a new stream begins there.
 *
 * Joins are hash joins. Which side is built: the one that is estimated smaller, from file sizes and
 * what happens to the rows on the way. A preserved side of a LEFT JOIN can't be built for a map;
 * when it is the small one, the other side's scan sends only its matching rows to a fold that
 * joins.
 *
 * A condition that compares with a scalar sub-query over the same table would force a second scan.
 * When its rows are going to be built anyway, it waits: rows are collected first and the condition
 * is applied to what was collected, when the scalar is known.
 */
#include "engine/sql/planner.h"

#include "engine/base/assert.h"
#include "engine/sql/bind_expr.h"
#include "engine/sql/plan_builder.h"
#include "engine/sql/plan_share.h"
#include "engine/sql/plan_simplify.h"

enum { TOP_LIMIT_ROWS = 100000 };

static const double UNKNOWN_TABLE_BYTES = 1e9;
static const double ROW_BYTES = 50;
static const double EQUALITY_SHARE = 0.1;
static const double CONDITION_SHARE = 0.3;
static const double GROUPS_SHARE = 0.1;
static const double LIST_LENGTH = 5;
static const double PARTITIONS = 100;
/* How much smaller the preserved side must be to turn a LEFT JOIN around. */
static const double LEFT_JOIN_TURN = 4;

static status lower(struct planner *planner, struct relation *relation, const bool *needed,
                    struct stream *out_stream, struct error *err);

/* ---- small helpers ---- */

static status needed_copy(struct planner *planner, const bool *needed, bool **out_copy,
                          struct error *err)
{
    bool *copy = arena_array(planner->arena, bool, planner->catalog->columns.count + 1);
    if (copy == NULL) return binder_memory(err);
    if (needed != NULL) memcpy(copy, needed, planner->catalog->columns.count);
    *out_copy = copy;
    return STATUS_OK;
}

static void need_visit(const struct expr *expr, void *context)
{
    if (expr->kind == EXPR_COLUMN) ((bool *)context)[expr->column] = true;
}

static void need_expr(bool *needed, const struct expr *expr)
{
    expr_visit(expr, need_visit, needed);
}

/* The relation's columns that are needed, in order. */
static status needed_list(struct planner *planner, const struct relation *relation,
                          const bool *needed, uint32_t **out_list, uint32_t *out_count,
                          struct error *err)
{
    uint32_t *list = arena_array(planner->arena, uint32_t, relation->column_count + 1);
    if (list == NULL) return binder_memory(err);
    uint32_t count = 0;
    for (uint32_t i = 0; i < relation->column_count; i++) {
        if (needed[relation->columns[i]]) list[count++] = relation->columns[i];
    }
    *out_list = list;
    *out_count = count;
    return STATUS_OK;
}

static void has_scalar_visit(const struct expr *expr, void *context)
{
    if (expr->kind == EXPR_SCALAR) *(bool *)context = true;
}

static bool has_scalar(const struct expr *expr)
{
    bool found = false;
    expr_visit(expr, has_scalar_visit, &found);
    return found;
}

static double condition_share(const struct expr *expr)
{
    if (expr->kind != EXPR_CALL) return CONDITION_SHARE;
    switch (expr->function) {
    case FUNCTION_EQUAL:
    case FUNCTION_IN:
    case FUNCTION_LIST_CONTAINS:
    case FUNCTION_CONTAINS:
    case FUNCTION_LIKE:
    case FUNCTION_ILIKE:
    case FUNCTION_REGEXP_MATCHES:
        return EQUALITY_SHARE;
    case FUNCTION_IS_NOT_NULL:
    case FUNCTION_NOT:
    case FUNCTION_NOT_EQUAL:
        return 1;
    default:
        return CONDITION_SHARE;
    }
}

/* ---- relations without state ---- */

static status lower_scan(struct planner *planner, const struct relation *relation,
                         struct stream *out_stream, struct error *err)
{
    uint64_t bytes = planner->catalog->table_bytes[relation->table];
    *out_stream = (struct stream){
        .source_kind = SOURCE_SCAN,
        .source = relation->table,
        .columns = relation->columns,
        .column_count = relation->column_count,
        .rows = (planner->catalog->sizes_known ? (double)bytes : UNKNOWN_TABLE_BYTES) / ROW_BYTES,
    };
    (void)err; /* Every lowering has the same signature. */
    return STATUS_OK;
}

/* Waiting conditions become ordinary ones: the scan will run after their scalars are known. */
static status stream_settle(struct planner *planner, struct stream *stream, struct error *err)
{
    for (uint32_t i = 0; i < stream->late_count; i++) {
        TRY(stream_filter(planner, stream, stream->late[i], err));
    }
    stream->late_count = 0;
    return STATUS_OK;
}

static status lower_filter(struct planner *planner, struct relation *relation, const bool *needed,
                           struct stream *out_stream, struct error *err)
{
    bool *below = NULL;
    TRY(needed_copy(planner, needed, &below, err));
    for (uint32_t i = 0; i < relation->expr_count; i++) {
        need_expr(below, relation->exprs[i]);
    }
    TRY(lower(planner, relation->input, below, out_stream, err));
    for (uint32_t i = 0; i < relation->expr_count; i++) {
        const struct expr *condition = relation->exprs[i];
        out_stream->rows *= condition_share(condition);
        bool waits = has_scalar(condition) && !expr_can_fail(condition) &&
                     out_stream->source_kind == SOURCE_SCAN;
        if (waits) {
            TRY(stream_wait(planner, out_stream, condition, err));
        } else {
            TRY(stream_settle(planner, out_stream, err));
            TRY(stream_filter(planner, out_stream, condition, err));
        }
    }
    return STATUS_OK;
}

static status lower_project(struct planner *planner, struct relation *relation, const bool *needed,
                            struct stream *out_stream, struct error *err)
{
    bool *below = NULL;
    TRY(needed_copy(planner, NULL, &below, err));
    struct projection projection;
    TRY(projection_init(planner, &projection, relation->expr_count, err));
    for (uint32_t i = 0; i < relation->expr_count; i++) {
        if (!needed[relation->columns[i]]) continue;
        need_expr(below, relation->exprs[i]);
        projection_add(&projection, relation->exprs[i], relation->columns[i]);
    }
    TRY(lower(planner, relation->input, below, out_stream, err));
    TRY(stream_settle(planner, out_stream, err));
    return stream_project(planner, out_stream, &projection, err);
}

static status lower_unnest(struct planner *planner, struct relation *relation, const bool *needed,
                           struct stream *out_stream, struct error *err)
{
    bool *below = NULL;
    uint32_t *kept = NULL;
    uint32_t kept_count = 0;
    TRY(needed_copy(planner, needed, &below, err));
    need_expr(below, relation->exprs[0]);
    TRY(lower(planner, relation->input, below, out_stream, err));
    TRY(stream_settle(planner, out_stream, err));
    TRY(needed_list(planner, relation->input, needed, &kept, &kept_count, err));
    /* The list itself is the last column before its elements. */
    struct projection projection;
    TRY(projection_init(planner, &projection, kept_count + 1, err));
    for (uint32_t i = 0; i < kept_count; i++) {
        TRY(projection_add_column(planner, &projection, kept[i], err));
    }
    projection_add(&projection, relation->exprs[0], COLUMN_NONE);
    TRY(stream_project(planner, out_stream, &projection, err));
    out_stream->rows *= LIST_LENGTH;
    return stream_unnest(planner, out_stream, relation->columns[relation->column_count - 1], err);
}

/* ---- joins ---- */

/* Keys first, then the needed columns that are not keys themselves. */
static status keys_first(struct planner *planner, struct stream *stream,
                         const struct expr *const *keys, uint32_t key_count, const bool *needed,
                         struct error *err)
{
    struct projection projection;
    TRY(projection_init(planner, &projection, key_count + stream->column_count, err));
    for (uint32_t i = 0; i < key_count; i++) {
        bool plain = keys[i]->kind == EXPR_COLUMN;
        projection_add(&projection, keys[i], plain ? keys[i]->column : COLUMN_NONE);
    }
    for (uint32_t i = 0; i < stream->column_count; i++) {
        uint32_t column = stream->columns[i];
        if (column == COLUMN_NONE || !needed[column]) continue;
        if (projection_has(&projection, column)) continue;
        TRY(projection_add_column(planner, &projection, column, err));
    }
    return stream_project(planner, stream, &projection, err);
}

/* Ends `stream` as a build side: keys first, then the needed columns that are not keys themselves.
 */
static status plan_build_side(struct planner *planner, struct stream *stream,
                              const struct expr *const *keys, uint32_t key_count,
                              const bool *needed, struct side *out_side, struct error *err)
{
    if (stream->late_count > 0) {
        /* Collect what the waiting conditions and the rest need, then filter that. */
        bool *kept = NULL;
        TRY(needed_copy(planner, needed, &kept, err));
        for (uint32_t i = 0; i < stream->late_count; i++) {
            need_expr(kept, stream->late[i]);
        }
        for (uint32_t i = 0; i < key_count; i++) {
            need_expr(kept, keys[i]);
        }
        uint32_t late_count = stream->late_count;
        stream->late_count = 0;
        TRY(stream_narrow(planner, stream, kept, err));
        TRY(stream_collect(planner, stream, "collect, until a sub-query's value is known", err));
        stream->late_count = late_count;
        TRY(stream_settle(planner, stream, err));
    }
    TRY(keys_first(planner, stream, keys, key_count, needed, err));
    TRY(stream_collect(planner, stream, "build side", err));
    struct fold *fold = &planner->folds.items[stream->source];
    fold->is_build_side = true;
    fold->side_keys = key_count;
    *out_side = (struct side){
        .fold = stream->source,
        .columns = stream->columns,
        .column_count = stream->column_count,
    };
    return STATUS_OK;
}

/* Makes the stream's batches end in the key columns, after all needed ones. */
static status project_keys(struct planner *planner, struct stream *stream,
                           const struct expr *const *keys, uint32_t key_count, const bool *needed,
                           uint32_t **out_positions, struct error *err)
{
    uint32_t *positions = arena_array(planner->arena, uint32_t, key_count + 1);
    struct projection projection;
    if (positions == NULL) return binder_memory(err);
    TRY(projection_init(planner, &projection, key_count + stream->column_count, err));
    for (uint32_t i = 0; i < stream->column_count; i++) {
        uint32_t column = stream->columns[i];
        if (column == COLUMN_NONE || !needed[column]) continue;
        TRY(projection_add_column(planner, &projection, column, err));
    }
    for (uint32_t i = 0; i < key_count; i++) {
        if (keys[i]->kind == EXPR_COLUMN && projection_has(&projection, keys[i]->column)) {
            positions[i] = projection_position(&projection, keys[i]->column);
        } else {
            positions[i] = projection.count;
            projection_add(&projection, keys[i], COLUMN_NONE);
        }
    }
    *out_positions = positions;
    return stream_project(planner, stream, &projection, err);
}

struct join_sides {
    struct stream left;
    struct stream right;
    const struct expr **left_keys;
    const struct expr **right_keys;
    uint32_t key_count;
};

/* The small preserved side is collected; the other side's rows are filtered by it where they are
 * scanned, and a fold joins the two. */
static status join_in_fold(struct planner *planner, struct join_sides *sides, const bool *needed,
                           struct stream *out_stream, struct error *err)
{
    struct side side;
    uint32_t *positions = NULL;
    TRY(plan_build_side(planner, &sides->left, sides->left_keys, sides->key_count, needed, &side,
                        err));
    TRY(stream_settle(planner, &sides->right, err));
    TRY(project_keys(planner, &sides->right, sides->right_keys, sides->key_count, needed,
                     &positions, err));
    struct probe probe = {.side = &side,
                          .key_positions = positions,
                          .key_count = sides->key_count,
                          .kind = PROBE_SEMI};
    TRY(stream_probe(planner, &sides->right, &probe, err));
    /* Keys first, as the fold wants them. */
    struct projection projection;
    TRY(projection_init(planner, &projection, sides->key_count + sides->right.column_count, err));
    for (uint32_t i = 0; i < sides->key_count; i++) {
        struct column_place place = {sides->right.columns[positions[i]],
                                     sides->right_keys[i]->type};
        TRY(projection_add_position(planner, &projection, positions[i], place, err));
    }
    for (uint32_t i = 0; i < sides->right.column_count; i++) {
        uint32_t column = sides->right.columns[i];
        if (column == COLUMN_NONE || projection_has(&projection, column)) continue;
        TRY(projection_add_column(planner, &projection, column, err));
    }
    TRY(stream_project(planner, &sides->right, &projection, err));
    double rows = sides->left.rows;
    struct fold_join join = {.key_count = sides->key_count};
    TRY(stream_fold_join(planner, &sides->left, &sides->right, join, out_stream, err));
    out_stream->rows = rows;
    return STATUS_OK;
}

/* A partitioned join: neither side is small enough to be broadcast, so both go to a fold, by the
 * hash of their keys where the order of the result is not seen, else to one shard. The side that
 * would have been built is the second input, so that the rows come in the order they would have
 * had. */
static status join_by_shards(struct planner *planner, struct join_sides *sides, bool build_left,
                             bool inner, const bool *needed, struct stream *out_stream,
                             struct error *err)
{
    struct stream *first = build_left ? &sides->right : &sides->left;
    struct stream *second = build_left ? &sides->left : &sides->right;
    TRY(stream_settle(planner, first, err));
    TRY(stream_settle(planner, second, err));
    TRY(keys_first(planner, first, build_left ? sides->right_keys : sides->left_keys,
                   sides->key_count, needed, err));
    TRY(keys_first(planner, second, build_left ? sides->left_keys : sides->right_keys,
                   sides->key_count, needed, err));
    /* A row of the preserved side is needed without a partner, too. */
    if (inner) {
        TRY(stream_bloom(planner, second, first, sides->key_count, err));
    } else {
        TRY(stream_bloom(planner, first, second, sides->key_count, err));
    }
    struct fold_join join = {.key_count = sides->key_count,
                             .inner = inner,
                             .partitioned = planner->order_is_free && sides->key_count > 0};
    double rows = first->rows > second->rows ? first->rows : second->rows;
    TRY(stream_fold_join(planner, first, second, join, out_stream, err));
    out_stream->rows = rows;
    return STATUS_OK;
}

static bool is_too_large(const struct planner *planner, const struct stream *built)
{
    uint64_t limit = planner->catalog->broadcast_limit;
    return limit != 0 && planner->catalog->sizes_known && built->rows * ROW_BYTES > (double)limit;
}

static status lower_join(struct planner *planner, struct relation *relation, const bool *needed,
                         struct stream *out_stream, struct error *err)
{
    struct join_sides sides = {
        .left_keys = arena_array(planner->arena, const struct expr *, relation->key_count + 1),
        .right_keys = arena_array(planner->arena, const struct expr *, relation->key_count + 1),
        .key_count = relation->key_count,
    };
    bool *below = NULL;
    if (sides.left_keys == NULL || sides.right_keys == NULL) return binder_memory(err);
    TRY(needed_copy(planner, needed, &below, err));
    for (uint32_t i = 0; i < relation->key_count; i++) {
        sides.left_keys[i] = relation->keys[i].left;
        sides.right_keys[i] = relation->keys[i].right;
        need_expr(below, relation->keys[i].left);
        need_expr(below, relation->keys[i].right);
    }
    TRY(lower(planner, relation->input, below, &sides.left, err));
    TRY(lower(planner, relation->right, below, &sides.right, err));
    bool turns = relation->left_outer && sides.left.rows * LEFT_JOIN_TURN < sides.right.rows;
    if (turns && !is_too_large(planner, &sides.left)) {
        return join_in_fold(planner, &sides, needed, out_stream, err);
    }
    bool build_left = !relation->left_outer && sides.left.rows < sides.right.rows;
    struct stream *built = build_left ? &sides.left : &sides.right;
    if (is_too_large(planner, built)) {
        return join_by_shards(planner, &sides, build_left, !relation->left_outer, needed,
                              out_stream, err);
    }
    struct stream *probing = build_left ? &sides.right : &sides.left;
    struct side side;
    uint32_t *positions = NULL;
    TRY(plan_build_side(planner, built, build_left ? sides.left_keys : sides.right_keys,
                        sides.key_count, needed, &side, err));
    TRY(stream_settle(planner, probing, err));
    TRY(project_keys(planner, probing, build_left ? sides.right_keys : sides.left_keys,
                     sides.key_count, needed, &positions, err));
    struct probe probe = {.side = &side,
                          .key_positions = positions,
                          .key_count = sides.key_count,
                          .keep_unmatched = relation->left_outer};
    TRY(stream_probe(planner, probing, &probe, err));
    *out_stream = *probing;
    return STATUS_OK;
}

/* ---- relations with state ---- */

static status lower_aggregate(struct planner *planner, struct relation *relation,
                              struct stream *out_stream, struct error *err)
{
    bool *below = NULL;
    TRY(needed_copy(planner, NULL, &below, err));
    struct projection projection;
    TRY(projection_init(planner, &projection, relation->expr_count + 2 * relation->aggregate_count,
                        err));
    for (uint32_t i = 0; i < relation->expr_count; i++) {
        need_expr(below, relation->exprs[i]);
        projection_add(&projection, relation->exprs[i], relation->columns[i]);
    }
    for (uint32_t i = 0; i < relation->aggregate_count; i++) {
        const struct relation_aggregate *aggregate = &relation->aggregates[i];
        if (aggregate->input != NULL) {
            need_expr(below, aggregate->input);
            projection_add(&projection, aggregate->input, COLUMN_NONE);
        }
        if (aggregate->by != NULL) {
            need_expr(below, aggregate->by);
            projection_add(&projection, aggregate->by, COLUMN_NONE);
        }
    }
    TRY(lower(planner, relation->input, below, out_stream, err));
    TRY(stream_settle(planner, out_stream, err));
    double rows = out_stream->rows;
    TRY(stream_project(planner, out_stream, &projection, err));
    TRY(stream_aggregate(planner, out_stream, relation, err));
    out_stream->rows = relation->expr_count == 0 ? 1 : rows * GROUPS_SHARE;
    return STATUS_OK;
}

static status lower_rank(struct planner *planner, struct relation *relation, const bool *needed,
                         struct stream *out_stream, struct error *err)
{
    bool *below = NULL;
    TRY(needed_copy(planner, needed, &below, err));
    for (uint32_t i = 0; i < relation->partition_count; i++) {
        below[relation->partition[i]] = true;
    }
    for (uint32_t i = 0; i < relation->sort_count; i++) {
        below[relation->sort[i].column] = true;
    }
    TRY(lower(planner, relation->input, below, out_stream, err));
    TRY(stream_settle(planner, out_stream, err));
    struct projection projection;
    TRY(projection_init(planner, &projection,
                        relation->partition_count + relation->sort_count + relation->column_count,
                        err));
    for (uint32_t i = 0; i < relation->partition_count; i++) {
        TRY(projection_add_once(planner, &projection, relation->partition[i], err));
    }
    for (uint32_t i = 0; i < relation->sort_count; i++) {
        TRY(projection_add_once(planner, &projection, relation->sort[i].column, err));
    }
    for (uint32_t i = 0; i < relation->column_count; i++) {
        if (!needed[relation->columns[i]]) continue;
        TRY(projection_add_once(planner, &projection, relation->columns[i], err));
    }
    TRY(stream_project(planner, out_stream, &projection, err));
    double rows = out_stream->rows;
    TRY(stream_rank(planner, out_stream, relation, err));
    double best = (double)relation->limit * PARTITIONS;
    out_stream->rows = rows < best ? rows : best;
    return STATUS_OK;
}

static status lower_sort(struct planner *planner, struct relation *relation, const bool *needed,
                         struct stream *out_stream, struct error *err)
{
    bool *below = NULL;
    TRY(needed_copy(planner, needed, &below, err));
    for (uint32_t i = 0; i < relation->sort_count; i++) {
        below[relation->sort[i].column] = true;
    }
    TRY(lower(planner, relation->input, below, out_stream, err));
    TRY(stream_settle(planner, out_stream, err));
    struct projection projection;
    TRY(projection_init(planner, &projection, relation->column_count + relation->sort_count, err));
    for (uint32_t i = 0; i < relation->column_count; i++) {
        if (!needed[relation->columns[i]]) continue;
        TRY(projection_add_once(planner, &projection, relation->columns[i], err));
    }
    for (uint32_t i = 0; i < relation->sort_count; i++) {
        TRY(projection_add_once(planner, &projection, relation->sort[i].column, err));
    }
    TRY(stream_project(planner, out_stream, &projection, err));
    double rows = out_stream->rows;
    uint64_t top = 0;
    bool small =
        !__builtin_add_overflow(relation->limit, relation->offset, &top) && top <= TOP_LIMIT_ROWS;
    if (relation->sort_count == 0) {
        TRY(stream_collect(planner, out_stream, "collect in source order", err));
    } else if (small) {
        struct relation ranked = *relation;
        ranked.limit = top;
        TRY(stream_rank(planner, out_stream, &ranked, err));
    } else {
        TRY(stream_sort(planner, out_stream, relation, err));
    }
    struct fold *fold = &planner->folds.items[out_stream->source];
    fold->limit = relation->limit;
    fold->offset = relation->offset;
    if (relation->sort_count == 0 && small) {
        planner->pipelines.items[planner->pipelines.count - 1].row_limit = top > 0 ? top : 1;
    }
    out_stream->rows = rows < (double)relation->limit ? rows : (double)relation->limit;
    return STATUS_OK;
}

static status lower_union(struct planner *planner, struct relation *relation,
                          struct stream *out_stream, struct error *err)
{
    struct stream *streams = arena_array(planner->arena, struct stream, relation->input_count);
    if (streams == NULL) return binder_memory(err);
    double rows = 0;
    for (uint32_t i = 0; i < relation->input_count; i++) {
        struct relation *input = relation->inputs[i];
        bool *all = NULL;
        TRY(needed_copy(planner, NULL, &all, err));
        struct projection projection;
        TRY(projection_init(planner, &projection, input->column_count, err));
        for (uint32_t j = 0; j < input->column_count; j++) {
            all[input->columns[j]] = true;
            TRY(projection_add_column(planner, &projection, input->columns[j], err));
        }
        TRY(lower(planner, input, all, &streams[i], err));
        TRY(stream_settle(planner, &streams[i], err));
        TRY(stream_project(planner, &streams[i], &projection, err));
        rows += streams[i].rows;
    }
    TRY(stream_union(planner, streams, relation->input_count, relation->columns, out_stream, err));
    out_stream->rows = rows;
    return STATUS_OK;
}

static status lower_shared(struct planner *planner, struct relation *relation,
                           struct stream *out_stream, struct error *err)
{
    struct shared_query *shared = relation->shared;
    if (shared->planned == NULL) {
        bool *all = NULL;
        struct stream *stream = arena_new(planner->arena, struct stream);
        if (stream == NULL) return binder_memory(err);
        TRY(needed_copy(planner, NULL, &all, err));
        for (uint32_t i = 0; i < shared->relation->column_count; i++) {
            all[shared->relation->columns[i]] = true;
        }
        TRY(lower(planner, shared->relation, all, stream, err));
        TRY(stream_settle(planner, stream, err));
        shared->planned = stream;
    }
    /* Every use continues from the same place with names of its own. */
    *out_stream = *(const struct stream *)shared->planned;
    uint32_t *columns = arena_array(planner->arena, uint32_t, out_stream->column_count + 1);
    if (columns == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < out_stream->column_count; i++) {
        columns[i] = COLUMN_NONE;
        for (uint32_t j = 0; j < relation->column_count; j++) {
            if (shared->relation->columns[j] == out_stream->columns[i]) {
                columns[i] = relation->columns[j];
            }
        }
    }
    out_stream->columns = columns;
    return STATUS_OK;
}

/* Whether the order of what a relation is given shows in what it gives. */
static bool hides_order(const struct relation *relation)
{
    return relation->kind == RELATION_AGGREGATE || relation->kind == RELATION_RANK ||
           (relation->kind == RELATION_SORT && relation->sort_count > 0);
}

static bool shows_order(const struct relation *relation)
{
    return (relation->kind == RELATION_SHARED && !relation->shared->order_is_free) ||
           (relation->kind == RELATION_SORT && relation->sort_count == 0);
}

static status lower_kind(struct planner *planner, struct relation *relation, const bool *needed,
                         struct stream *out_stream, struct error *err)
{
    switch (relation->kind) {
    case RELATION_SCAN:
        return lower_scan(planner, relation, out_stream, err);
    case RELATION_ONE_ROW:
        return stream_one_row(planner, out_stream, err);
    case RELATION_FILTER:
        return lower_filter(planner, relation, needed, out_stream, err);
    case RELATION_PROJECT:
        return lower_project(planner, relation, needed, out_stream, err);
    case RELATION_JOIN:
        return lower_join(planner, relation, needed, out_stream, err);
    case RELATION_UNNEST:
        return lower_unnest(planner, relation, needed, out_stream, err);
    case RELATION_AGGREGATE:
        return lower_aggregate(planner, relation, out_stream, err);
    case RELATION_RANK:
        return lower_rank(planner, relation, needed, out_stream, err);
    case RELATION_SORT:
        return lower_sort(planner, relation, needed, out_stream, err);
    case RELATION_UNION:
        return lower_union(planner, relation, out_stream, err);
    case RELATION_SHARED:
        break;
    }
    return lower_shared(planner, relation, out_stream, err);
}

/* Depth is bounded by the parser's bound on nesting and tables. */
static status lower(struct planner *planner, struct relation *relation, const bool *needed,
                    struct stream *out_stream, struct error *err)
{
    bool was_free = planner->order_is_free;
    if (hides_order(relation)) planner->order_is_free = true;
    if (shows_order(relation)) planner->order_is_free = false;
    status result = lower_kind(planner, relation, needed, out_stream, err);
    planner->order_is_free = was_free;
    return result;
}

static status lower_all(struct planner *planner, struct relation *relation,
                        struct stream *out_stream, struct error *err)
{
    bool *all = NULL;
    TRY(needed_copy(planner, NULL, &all, err));
    for (uint32_t i = 0; i < relation->column_count; i++) {
        all[relation->columns[i]] = true;
    }
    TRY(lower(planner, relation, all, out_stream, err));
    return stream_settle(planner, out_stream, err);
}

status planner_scalar_fold(struct planner *planner, uint32_t scalar, uint32_t *out_fold,
                           struct error *err)
{
    if (planner->scalar_folds[scalar] == COLUMN_NONE) {
        struct relation *relation = planner->catalog->scalars.items[scalar];
        struct stream stream;
        bool was_free = planner->order_is_free;
        planner->order_is_free = false;
        TRY(lower_all(planner, relation, &stream, err));
        planner->order_is_free = was_free;
        struct projection projection;
        TRY(projection_init(planner, &projection, 1, err));
        TRY(projection_add_column(planner, &projection, relation->columns[0], err));
        TRY(stream_project(planner, &stream, &projection, err));
        TRY(stream_collect(planner, &stream, "value of a sub-query", err));
        planner->folds.items[stream.source].is_scalar = true;
        planner->scalar_folds[scalar] = stream.source;
    }
    *out_fold = planner->scalar_folds[scalar];
    return STATUS_OK;
}

static status plan_query(struct planner *planner, const struct bound_query *query,
                         struct plan_query *out_query, struct error *err)
{
    struct relation *relation = query->relation;
    struct stream stream;
    TRY(lower_all(planner, relation, &stream, err));
    /* An ordering fold is the result itself; anything else is collected. */
    bool is_result = stream.source_kind == SOURCE_FOLD && stream.op_count == 0 &&
                     !planner->folds.items[stream.source].is_build_side &&
                     planner->folds.items[stream.source].kind != FOLD_AGGREGATE &&
                     planner->folds.items[stream.source].kind != FOLD_JOIN;
    for (uint32_t i = 0; is_result && i < query->visible_count; i++) {
        is_result = i < stream.column_count && stream.columns[i] == relation->columns[i];
    }
    if (!is_result) {
        struct projection projection;
        TRY(projection_init(planner, &projection, query->visible_count, err));
        for (uint32_t i = 0; i < query->visible_count; i++) {
            TRY(projection_add_column(planner, &projection, relation->columns[i], err));
        }
        TRY(stream_project(planner, &stream, &projection, err));
        TRY(stream_collect(planner, &stream, "collect in source order", err));
    }
    struct field *fields = arena_array(planner->arena, struct field, query->visible_count + 1);
    if (fields == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < query->visible_count; i++) {
        fields[i] =
            (struct field){.name = query->names[i],
                           .type = planner->catalog->columns.items[relation->columns[i]].type};
    }
    *out_query = (struct plan_query){
        .name = query->name,
        .result_fold = stream.source,
        .schema = {.fields = fields, .count = query->visible_count},
        .ordered = query->ordered,
    };
    return STATUS_OK;
}

status plan_build(struct catalog *catalog, const struct bound_query *queries, uint32_t query_count,
                  struct plan **out_plan, struct error *err)
{
    struct planner planner = {
        .catalog = catalog,
        .arena = catalog->arena,
        .scalar_folds = arena_array(catalog->arena, uint32_t, catalog->scalars.count + 1),
    };
    struct plan_query *planned = arena_array(catalog->arena, struct plan_query, query_count + 1);
    if (planner.scalar_folds == NULL || planned == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < catalog->scalars.count; i++) {
        planner.scalar_folds[i] = COLUMN_NONE;
    }
    for (uint32_t i = 0; i < query_count; i++) {
        planner.query = i;
        TRY(plan_query(&planner, &queries[i], &planned[i], err));
    }
    TRY(planner_simplify(&planner, err));
    TRY(planner_share(&planner, planned, query_count, err));
    TRY(planner_number_duplicates(&planner, err));
    return planner_finish(&planner, planned, query_count, out_plan, err);
}
