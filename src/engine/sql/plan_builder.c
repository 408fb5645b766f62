/* SPDX-License-Identifier: Apache-2.0 */
/* plan_builder.c - keeps columns, operators and schemas of growing pipelines consistent.
 *
 * Streams are values: an operator is appended by copying the operator list, so that two uses of a
 * WITH query can continue from the same place without seeing each other. Lists are short.
 */
#include "engine/sql/plan_builder.h"

#include <stdio.h>

#include "engine/base/assert.h"
#include "engine/sql/bind_expr.h"

enum { NAME_SIZE_MAX = 80, NAME_PRINTED_MAX = 4096 };

/* ---- projections ---- */

status projection_init(struct planner *planner, struct projection *projection, uint32_t capacity,
                       struct error *err)
{
    *projection = (struct projection){
        .exprs = arena_array(planner->arena, const struct expr *, capacity + 1),
        .placed = arena_array(planner->arena, const struct expr *, capacity + 1),
        .columns = arena_array(planner->arena, uint32_t, capacity + 1),
        .capacity = capacity + 1,
    };
    if (projection->exprs == NULL || projection->placed == NULL || projection->columns == NULL) {
        return binder_memory(err);
    }
    return STATUS_OK;
}

void projection_add(struct projection *projection, const struct expr *expr, uint32_t column)
{
    ASSERT(projection->count < projection->capacity);
    projection->exprs[projection->count] = expr;
    projection->columns[projection->count++] = column;
}

status projection_add_column(struct planner *planner, struct projection *projection,
                             uint32_t column, struct error *err)
{
    const struct expr *expr =
        expr_column(planner->arena, column, planner->catalog->columns.items[column].type);
    if (expr == NULL) return binder_memory(err);
    projection_add(projection, expr, column);
    return STATUS_OK;
}

status projection_add_once(struct planner *planner, struct projection *projection, uint32_t column,
                           struct error *err)
{
    if (projection_has(projection, column)) return STATUS_OK;
    return projection_add_column(planner, projection, column, err);
}

status projection_add_position(struct planner *planner, struct projection *projection,
                               uint32_t position, struct column_place place, struct error *err)
{
    const struct expr *placed = expr_column(planner->arena, position, place.type);
    if (placed == NULL) return binder_memory(err);
    projection->placed[projection->count] = placed;
    projection_add(projection, placed, place.column);
    return STATUS_OK;
}

bool projection_has(const struct projection *projection, uint32_t column)
{
    for (uint32_t i = 0; i < projection->count; i++) {
        if (projection->columns[i] == column) return true;
    }
    return false;
}

uint32_t projection_position(const struct projection *projection, uint32_t column)
{
    for (uint32_t i = 0; i < projection->count; i++) {
        if (projection->columns[i] == column) return i;
    }
    ASSERT(false);
    return 0;
}

/* ---- expressions: from column numbers to places ---- */

static status place_expr(struct planner *planner, const struct stream *stream,
                         const struct expr *expr, const struct expr **out_expr, struct error *err)
{
    *out_expr = expr;
    if (expr->kind == EXPR_COLUMN) {
        for (uint32_t i = 0; i < stream->column_count; i++) {
            if (stream->columns[i] == expr->column) {
                *out_expr = expr_column(planner->arena, i, expr->type);
                return *out_expr == NULL ? binder_memory(err) : STATUS_OK;
            }
        }
        ASSERT(false); /* Lowering asked for too few columns. */
    }
    if (expr->kind == EXPR_SCALAR) {
        struct expr *placed = arena_new(planner->arena, struct expr);
        if (placed == NULL) return binder_memory(err);
        *placed = *expr;
        TRY(planner_scalar_fold(planner, expr->fold, &placed->fold, err));
        *out_expr = placed;
        return STATUS_OK;
    }
    if (expr->kind != EXPR_CALL) return STATUS_OK;
    const struct expr **args =
        arena_array(planner->arena, const struct expr *, expr->arg_count + 1);
    if (args == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < expr->arg_count; i++) {
        TRY(place_expr(planner, stream, expr->args[i], &args[i], err));
    }
    *out_expr = expr_call(planner->arena, expr->function, expr->type, args, expr->arg_count);
    return *out_expr == NULL ? binder_memory(err) : STATUS_OK;
}

/* ---- schemas ---- */

static struct text column_name(const struct planner *planner, uint32_t column)
{
    return planner->catalog->columns.items[column].name;
}

/* What a column that has no number is called: the expression itself, cut when it is long. */
static struct text expr_name(struct planner *planner, const struct schema *input,
                             const struct expr *expr)
{
    if (expr->kind == EXPR_COLUMN) return input->fields[expr->column].name;
    struct buf printed = {.limit = NAME_PRINTED_MAX};
    /* All of it at once, so that what fails below is too long and not out of memory. */
    if (!buf_reserve(&printed, NAME_PRINTED_MAX)) planner->names_failed = true;
    expr_print(expr, input, &printed);
    bool is_long = printed.failed || printed.size > NAME_SIZE_MAX;
    if (is_long) {
        printed.failed = false;
        if (printed.size > NAME_SIZE_MAX) {
            printed.size = NAME_SIZE_MAX;
            /* Not within a character. */
            while (printed.size > 0 && (printed.bytes[printed.size] & 0xc0) == 0x80) {
                printed.size--;
            }
        }
        buf_put_string(&printed, "...");
    }
    struct text whole = {(const char *)printed.bytes, (uint32_t)printed.size};
    const char *copy = arena_copy_string(planner->arena, whole);
    buf_done(&printed);
    if (copy == NULL) planner->names_failed = true;
    return copy == NULL ? TEXT_LITERAL("...") : (struct text){copy, whole.size};
}

/* Types come from the place where the batch's columns are made: the last operator or the source. */
struct schema stream_schema(const struct planner *planner, const struct stream *stream)
{
    if (stream->op_count > 0) return stream->ops[stream->op_count - 1].output;
    if (stream->source_kind == SOURCE_SCAN) return planner->catalog->tables[stream->source].schema;
    return planner->folds.items[stream->source].output;
}

/* ---- operators ---- */

status stream_append(struct planner *planner, struct stream *stream, struct op op,
                     struct error *err)
{
    struct op *ops = arena_array(planner->arena, struct op, stream->op_count + 1);
    if (ops == NULL) return binder_memory(err);
    if (stream->op_count > 0) memcpy(ops, stream->ops, stream->op_count * sizeof *ops);
    ops[stream->op_count++] = op;
    stream->ops = ops;
    return STATUS_OK;
}

/* Cheap conditions first; one that can fail is not overtaken and does not overtake. */
static void order_conditions(const struct expr **conditions, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const struct expr *condition = conditions[i];
        if (expr_can_fail(condition)) continue;
        uint32_t place = i;
        while (place > 0 && !expr_can_fail(conditions[place - 1]) &&
               expr_cost(conditions[place - 1]) > expr_cost(condition)) {
            conditions[place] = conditions[place - 1];
            place--;
        }
        conditions[place] = condition;
    }
}

status stream_filter(struct planner *planner, struct stream *stream, const struct expr *condition,
                     struct error *err)
{
    const struct expr *placed;
    TRY(place_expr(planner, stream, condition, &placed, err));
    struct op op = {.kind = OP_FILTER, .output = stream_schema(planner, stream)};
    uint32_t known = 0;
    if (stream->op_count > 0 && stream->ops[stream->op_count - 1].kind == OP_FILTER) {
        op = stream->ops[--stream->op_count];
        known = op.expr_count;
    }
    const struct expr **exprs = arena_array(planner->arena, const struct expr *, known + 1);
    if (exprs == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < known; i++) {
        exprs[i] = op.exprs[i];
    }
    exprs[known] = placed;
    order_conditions(exprs, known + 1);
    op.exprs = exprs;
    op.expr_count = known + 1;
    return stream_append(planner, stream, op, err);
}

status stream_wait(struct planner *planner, struct stream *stream, const struct expr *condition,
                   struct error *err)
{
    const struct expr **late =
        arena_array(planner->arena, const struct expr *, stream->late_count + 1);
    if (late == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < stream->late_count; i++) {
        late[i] = stream->late[i];
    }
    late[stream->late_count++] = condition;
    stream->late = late;
    return STATUS_OK;
}

/* Whether columns of tables have already been chosen from: what a pipeline's first projection names
 * is what a scan reads. */
static bool is_projected(const struct stream *stream)
{
    if (stream->source_kind == SOURCE_FOLD) return true;
    for (uint32_t i = 0; i < stream->op_count; i++) {
        if (stream->ops[i].kind == OP_PROJECT) return true;
    }
    return false;
}

/* Whether a projection leaves all columns where they are, under their names. */
static bool changes_nothing(const struct op *op, const struct schema *input)
{
    if (op->expr_count != input->count) return false;
    for (uint32_t i = 0; i < op->expr_count; i++) {
        if (op->exprs[i]->kind != EXPR_COLUMN || op->exprs[i]->column != i) return false;
        if (!text_equal(op->output.fields[i].name, input->fields[i].name)) return false;
    }
    return true;
}

/* Whether a projection only picks columns, no computed one of `before` twice. */
static bool picks_columns(const struct op *op, const struct op *before)
{
    for (uint32_t i = 0; i < op->expr_count; i++) {
        if (op->exprs[i]->kind != EXPR_COLUMN) return false;
        bool is_computed = before->exprs[op->exprs[i]->column]->kind != EXPR_COLUMN;
        for (uint32_t j = 0; is_computed && j < i; j++) {
            if (op->exprs[j]->column == op->exprs[i]->column) return false;
        }
    }
    return true;
}

/* Appends a projection, or makes it one with the projection before it, or leaves it out. */
static status project_append(struct planner *planner, struct stream *stream, struct op op,
                             const struct expr **exprs, struct error *err)
{
    struct schema input = stream_schema(planner, stream);
    if (is_projected(stream) && changes_nothing(&op, &input)) return STATUS_OK;
    const struct op *before = stream->op_count == 0 ? NULL : &stream->ops[stream->op_count - 1];
    if (before != NULL && before->kind == OP_PROJECT && picks_columns(&op, before)) {
        for (uint32_t i = 0; i < op.expr_count; i++) {
            exprs[i] = before->exprs[exprs[i]->column];
        }
        stream->op_count--;
    }
    return stream_append(planner, stream, op, err);
}

status stream_project(struct planner *planner, struct stream *stream,
                      const struct projection *projection, struct error *err)
{
    const struct expr **exprs =
        arena_array(planner->arena, const struct expr *, projection->count + 1);
    struct field *fields = arena_array(planner->arena, struct field, projection->count + 1);
    struct schema input = stream_schema(planner, stream);
    if (exprs == NULL || fields == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < projection->count; i++) {
        uint32_t column = projection->columns[i];
        if (projection->placed[i] != NULL) {
            exprs[i] = projection->placed[i];
        } else {
            TRY(place_expr(planner, stream, projection->exprs[i], &exprs[i], err));
        }
        fields[i].name = column == COLUMN_NONE ? expr_name(planner, &input, exprs[i])
                                               : column_name(planner, column);
        fields[i].type = exprs[i]->type;
    }
    struct op op = {.kind = OP_PROJECT,
                    .output = {.fields = fields, .count = projection->count},
                    .exprs = exprs,
                    .expr_count = projection->count};
    TRY(project_append(planner, stream, op, exprs, err));
    stream->columns = projection->columns;
    stream->column_count = projection->count;
    return STATUS_OK;
}

status stream_narrow(struct planner *planner, struct stream *stream, const bool *needed,
                     struct error *err)
{
    struct projection projection;
    TRY(projection_init(planner, &projection, stream->column_count, err));
    for (uint32_t i = 0; i < stream->column_count; i++) {
        uint32_t column = stream->columns[i];
        if (column == COLUMN_NONE || !needed[column]) continue;
        TRY(projection_add_once(planner, &projection, column, err));
    }
    return stream_project(planner, stream, &projection, err);
}

/* Appends places to the stream's columns; the operator's output schema follows. */
static status extend(struct planner *planner, struct stream *stream, struct op *op,
                     const uint32_t *more, const struct field *more_fields, uint32_t more_count,
                     struct error *err)
{
    struct schema before = stream_schema(planner, stream);
    uint32_t count = stream->column_count + more_count;
    ASSERT(before.count == stream->column_count);
    uint32_t *columns = arena_array(planner->arena, uint32_t, count + 1);
    struct field *fields = arena_array(planner->arena, struct field, count + 1);
    if (columns == NULL || fields == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        bool old = i < stream->column_count;
        columns[i] = old ? stream->columns[i] : more[i - stream->column_count];
        fields[i] = old ? before.fields[i] : more_fields[i - stream->column_count];
    }
    op->output = (struct schema){.fields = fields, .count = count};
    TRY(stream_append(planner, stream, *op, err));
    stream->columns = columns;
    stream->column_count = count;
    return STATUS_OK;
}

status stream_unnest(struct planner *planner, struct stream *stream, uint32_t column,
                     struct error *err)
{
    uint32_t list = stream->column_count - 1;
    struct type type = stream_schema(planner, stream).fields[list].type;
    const struct expr **exprs = arena_array(planner->arena, const struct expr *, 1);
    if (exprs == NULL) return binder_memory(err);
    exprs[0] = expr_column(planner->arena, list, type);
    if (exprs[0] == NULL) return binder_memory(err);
    struct field field = {.name = column_name(planner, column), .type = type_element(type)};
    struct op op = {.kind = OP_UNNEST, .exprs = exprs, .expr_count = 1};
    return extend(planner, stream, &op, &column, &field, 1, err);
}

status stream_probe(struct planner *planner, struct stream *stream, const struct probe *probe,
                    struct error *err)
{
    struct op op = {
        .kind = OP_PROBE,
        .side = probe->side->fold,
        .key_columns = probe->key_positions,
        .key_count = probe->key_count,
        .keep_unmatched = probe->keep_unmatched,
        .probe = probe->kind,
    };
    struct schema side = planner->folds.items[probe->side->fold].output;
    uint32_t more = probe->kind == PROBE_SEMI ? 0 : probe->side->column_count;
    return extend(planner, stream, &op, probe->side->columns, side.fields, more, err);
}

/* ---- folds ---- */

static status pipeline_add(struct planner *planner, const struct stream *stream, uint32_t target,
                           uint32_t target_input, struct error *err)
{
    struct stream bare = *stream;
    bare.op_count = 0;
    struct pipeline *pipeline = array_add_in(&planner->pipelines, planner->arena);
    if (pipeline == NULL) return binder_memory(err);
    *pipeline = (struct pipeline){
        .id = planner->pipelines.count - 1,
        .query = planner->query,
        .source_kind = stream->source_kind,
        .source = stream->source,
        .ops = stream->ops,
        .op_count = stream->op_count,
        .input = stream_schema(planner, &bare),
        .output = stream_schema(planner, stream),
        .target = target,
        .target_input = target_input,
    };
    return STATUS_OK;
}

static status fold_add(struct planner *planner, struct fold fold, uint32_t *out_fold,
                       struct error *err)
{
    struct fold *added = array_add_in(&planner->folds, planner->arena);
    if (added == NULL) return binder_memory(err);
    fold.id = planner->folds.count - 1;
    fold.query = planner->query;
    if (fold.limit == 0) fold.limit = UINT64_MAX;
    *added = fold;
    *out_fold = fold.id;
    return STATUS_OK;
}

status stream_end(struct planner *planner, struct stream *stream, struct fold fold,
                  const uint32_t *columns, uint32_t column_count, struct error *err)
{
    ASSERT(stream->late_count == 0);
    uint32_t id = 0;
    fold.input = stream_schema(planner, stream);
    fold.input_count = 1;
    TRY(fold_add(planner, fold, &id, err));
    TRY(pipeline_add(planner, stream, id, 0, err));
    *stream = (struct stream){
        .source_kind = SOURCE_FOLD,
        .source = id,
        .columns = columns,
        .column_count = column_count,
        .late = stream->late,
        .rows = stream->rows,
    };
    return STATUS_OK;
}

status stream_one_row(struct planner *planner, struct stream *out_stream, struct error *err)
{
    struct grouping *grouping = arena_new(planner->arena, struct grouping);
    if (grouping == NULL) return binder_memory(err);
    struct fold fold = {.kind = FOLD_AGGREGATE, .grouping = grouping, .label = "one row"};
    *out_stream = (struct stream){.source_kind = SOURCE_FOLD, .rows = 1};
    return fold_add(planner, fold, &out_stream->source, err);
}

status stream_collect(struct planner *planner, struct stream *stream, const char *label,
                      struct error *err)
{
    struct fold fold = {
        .kind = FOLD_COLLECT, .output = stream_schema(planner, stream), .label = label};
    return stream_end(planner, stream, fold, stream->columns, stream->column_count, err);
}

const char *label_of(struct planner *planner, const char *prefix, const struct field *fields,
                     uint32_t count)
{
    struct buf text = {.limit = NAME_PRINTED_MAX};
    if (!buf_reserve(&text, NAME_PRINTED_MAX)) planner->names_failed = true; /* As above. */
    buf_put_string(&text, prefix);
    for (uint32_t i = 0; i < count; i++) {
        buf_put_string(&text, i == 0 ? " by " : ", ");
        buf_put_text(&text, fields[i].name);
    }
    /* A label that does not fit is cut to its prefix: it is for people. */
    struct text whole = {(const char *)text.bytes, (uint32_t)text.size};
    const char *label = text.failed ? prefix : arena_copy_string(planner->arena, whole);
    buf_done(&text);
    if (label == NULL) planner->names_failed = true;
    return label == NULL ? prefix : label;
}

/* Columns a partial state takes: see engine/exec/fold/aggregate_state.c, which fills them. */
static uint32_t state_fields(const struct aggregate *aggregate, struct text name,
                             struct field *fields)
{
    struct field integer = {.name = name, .type = TYPE(INT)};
    bool exact = aggregate->input_type.kind == TYPE_DOUBLE;
    switch (aggregate->kind) {
    case AGGREGATE_COUNT_ROWS:
    case AGGREGATE_COUNT:
        fields[0] = integer;
        return 1;
    case AGGREGATE_SUM:
    case AGGREGATE_AVG:
        /* The count of values, then the sum: 128 bits in two halves. One of doubles that is more
         * than these can hold has its bytes instead. */
        fields[0] = fields[1] = fields[2] = integer;
        fields[3] = (struct field){.name = name, .type = TYPE(TEXT)};
        return exact ? 4 : 3;
    case AGGREGATE_MIN:
    case AGGREGATE_MAX:
        fields[0] = (struct field){.name = name, .type = aggregate->input_type};
        return 1;
    case AGGREGATE_ARG_MIN:
    case AGGREGATE_ARG_MAX:
        fields[0] = (struct field){.name = name, .type = aggregate->input_type};
        fields[1] = (struct field){.name = name, .type = aggregate->by_type};
        return 2;
    }
    return 0;
}

enum { STATE_WIDTH_MAX = 4 };

static status grouping_build(struct planner *planner, const struct stream *stream,
                             const struct relation *relation, struct grouping **out_grouping,
                             struct error *err)
{
    struct schema input = stream_schema(planner, stream);
    uint32_t key_count = relation->expr_count;
    uint32_t count = relation->aggregate_count;
    struct grouping *grouping = arena_new(planner->arena, struct grouping);
    struct aggregate *aggregates = arena_array(planner->arena, struct aggregate, count + 1);
    uint32_t *keys = arena_array(planner->arena, uint32_t, key_count + 1);
    struct field *partial =
        arena_array(planner->arena, struct field, key_count + STATE_WIDTH_MAX * (count + 1));
    struct field *result = arena_array(planner->arena, struct field, key_count + count + 1);
    if (grouping == NULL || aggregates == NULL || keys == NULL || partial == NULL ||
        result == NULL) {
        return binder_memory(err);
    }
    for (uint32_t i = 0; i < key_count; i++) {
        keys[i] = i;
        partial[i] = result[i] = input.fields[i];
    }
    uint32_t next_input = key_count;
    uint32_t next_state = key_count;
    for (uint32_t i = 0; i < count; i++) {
        const struct relation_aggregate *wanted = &relation->aggregates[i];
        struct relation_column column = planner->catalog->columns.items[wanted->column];
        aggregates[i] = (struct aggregate){
            .kind = wanted->kind, .result_type = column.type, .state_column = next_state};
        if (wanted->input != NULL) {
            aggregates[i].input_type = wanted->input->type;
            aggregates[i].input_column = next_input++;
        }
        if (wanted->by != NULL) {
            aggregates[i].by_type = wanted->by->type;
            aggregates[i].by_column = next_input++;
        }
        aggregates[i].state_width = state_fields(&aggregates[i], column.name, partial + next_state);
        next_state += aggregates[i].state_width;
        result[key_count + i] = (struct field){.name = column.name, .type = column.type};
    }
    *grouping = (struct grouping){
        .key_columns = keys,
        .key_count = key_count,
        .aggregates = aggregates,
        .aggregate_count = count,
        .partial = {.fields = partial, .count = next_state},
        .result = {.fields = result, .count = key_count + count},
    };
    *out_grouping = grouping;
    return STATUS_OK;
}

status stream_aggregate(struct planner *planner, struct stream *stream,
                        const struct relation *relation, struct error *err)
{
    struct grouping *grouping = NULL;
    bool done = false;
    TRY(grouping_build(planner, stream, relation, &grouping, err));
    TRY(stream_aggregate_by_row(planner, stream, relation, grouping, &done, err));
    if (done) return STATUS_OK;
    struct op op = {.kind = OP_AGGREGATE, .output = grouping->partial, .grouping = grouping};
    TRY(stream_append(planner, stream, op, err));
    struct fold fold = {
        .kind = FOLD_AGGREGATE,
        .output = grouping->result,
        .key_count = grouping->key_count,
        .grouping = grouping,
        .label = label_of(planner, grouping->aggregate_count == 0 ? "distinct" : "aggregate",
                          grouping->result.fields, grouping->key_count),
    };
    return stream_end(planner, stream, fold, relation->columns, relation->column_count, err);
}

static uint32_t place_of(const struct stream *stream, uint32_t column)
{
    for (uint32_t i = 0; i < stream->column_count; i++) {
        if (stream->columns[i] == column) return i;
    }
    ASSERT(false);
    return 0;
}

/* The relation's keys, then every other column ascending: a total order, so that ties never depend
 * on arrival. Lists come last of all. */
static status ranking_build(struct planner *planner, const struct stream *stream,
                            const struct relation *relation, struct ranking **out_ranking,
                            struct error *err)
{
    uint32_t count = stream->column_count;
    struct ranking *ranking = arena_new(planner->arena, struct ranking);
    uint32_t *partition = arena_array(planner->arena, uint32_t, relation->partition_count + 1);
    struct sort_key *keys = arena_array(planner->arena, struct sort_key, count + 1);
    bool *taken = arena_array(planner->arena, bool, count + 1);
    if (ranking == NULL || partition == NULL || keys == NULL || taken == NULL) {
        return binder_memory(err);
    }
    for (uint32_t i = 0; i < relation->partition_count; i++) {
        partition[i] = place_of(stream, relation->partition[i]);
        taken[partition[i]] = true;
    }
    uint32_t key_count = 0;
    for (uint32_t i = 0; i < relation->sort_count; i++) {
        uint32_t place = place_of(stream, relation->sort[i].column);
        if (taken[place]) continue;
        taken[place] = true;
        keys[key_count++] =
            (struct sort_key){place, relation->sort[i].descending, relation->sort[i].nulls_first};
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!taken[i]) keys[key_count++] = (struct sort_key){.column = i};
    }
    *ranking = (struct ranking){
        .partition_columns = partition,
        .partition_count = relation->partition_count,
        .keys = keys,
        .key_count = key_count,
        .limit = relation->limit,
    };
    *out_ranking = ranking;
    return STATUS_OK;
}

status stream_rank(struct planner *planner, struct stream *stream, const struct relation *relation,
                   struct error *err)
{
    struct ranking *ranking = NULL;
    TRY(ranking_build(planner, stream, relation, &ranking, err));
    struct schema schema = stream_schema(planner, stream);
    struct op op = {.kind = OP_RANK, .output = schema, .ranking = ranking};
    TRY(stream_append(planner, stream, op, err));
    char prefix[64];
    (void)snprintf(prefix, sizeof prefix, "best %llu",
                   (unsigned long long)ranking->limit); /* Always fits. */
    const char *copied = arena_copy_string(planner->arena, text_of(prefix));
    if (copied == NULL) return binder_memory(err);
    struct fold fold = {
        .kind = FOLD_RANK,
        .output = schema,
        .ranking = ranking,
        .label = ranking->partition_count == 0
                     ? copied
                     : label_of(planner, copied, schema.fields, ranking->partition_count),
    };
    return stream_end(planner, stream, fold, stream->columns, stream->column_count, err);
}

status stream_sort(struct planner *planner, struct stream *stream, const struct relation *relation,
                   struct error *err)
{
    struct ranking *ranking = NULL;
    TRY(ranking_build(planner, stream, relation, &ranking, err));
    struct fold fold = {.kind = FOLD_SORT,
                        .output = stream_schema(planner, stream),
                        .ranking = ranking,
                        .label = "sort"};
    return stream_end(planner, stream, fold, stream->columns, stream->column_count, err);
}

status stream_union(struct planner *planner, struct stream *streams, uint32_t count,
                    const uint32_t *columns, struct stream *out_stream, struct error *err)
{
    struct fold fold = {
        .kind = FOLD_COLLECT,
        .input = stream_schema(planner, &streams[0]),
        .output = stream_schema(planner, &streams[0]),
        .input_count = count,
        .label = "union all",
    };
    *out_stream = (struct stream){
        .source_kind = SOURCE_FOLD, .columns = columns, .column_count = streams[0].column_count};
    TRY(fold_add(planner, fold, &out_stream->source, err));
    for (uint32_t i = 0; i < count; i++) {
        TRY(pipeline_add(planner, &streams[i], out_stream->source, i, err));
    }
    return STATUS_OK;
}

status stream_fold_join(struct planner *planner, struct stream *left, struct stream *right,
                        struct fold_join join, struct stream *out_stream, struct error *err)
{
    struct schema left_schema = stream_schema(planner, left);
    struct schema right_schema = stream_schema(planner, right);
    uint32_t count = left_schema.count + right_schema.count;
    struct field *fields = arena_array(planner->arena, struct field, count + 1);
    uint32_t *columns = arena_array(planner->arena, uint32_t, count + 1);
    if (fields == NULL || columns == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        bool is_left = i < left_schema.count;
        uint32_t place = is_left ? i : i - left_schema.count;
        fields[i] = is_left ? left_schema.fields[place] : right_schema.fields[place];
        columns[i] = is_left ? left->columns[place] : right->columns[place];
    }
    struct fold fold = {
        .kind = FOLD_JOIN,
        .input = left_schema,
        .right = right_schema,
        .output = {.fields = fields, .count = count},
        .input_count = 2,
        .key_count = join.key_count,
        .inner = join.inner,
        .partitioned = join.partitioned,
        .label = label_of(planner, join.inner ? "join" : "left join", left_schema.fields,
                          join.key_count),
    };
    *out_stream = (struct stream){
        .source_kind = SOURCE_FOLD, .columns = columns, .column_count = count, .rows = left->rows};
    TRY(fold_add(planner, fold, &out_stream->source, err));
    TRY(pipeline_add(planner, left, out_stream->source, 0, err));
    TRY(pipeline_add(planner, right, out_stream->source, 1, err));
    for (uint32_t i = planner->pipelines.count - 2;
         join.partitioned && i < planner->pipelines.count; i++) {
        planner->pipelines.items[i].shard_keys = join.key_count;
    }
    return STATUS_OK;
}
