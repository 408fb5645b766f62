/* SPDX-License-Identifier: Apache-2.0 */
/* plan_simplify.c - conditions on years, and keys that are texts.
 *
 * Pipelines are walked in the order in which they were made, so each one after those it reads. A
 * key that was put back together for the next pipeline may be a key there again, and is taken apart
 * again.
 */
#include "engine/sql/plan_simplify.h"

#include "engine/base/calendar.h"
#include "engine/sql/bind_expr.h"

/* ---- conditions on years ---- */

static bool is_call(const struct expr *expr, enum function_id function)
{
    return expr->kind == EXPR_CALL && expr->function == function;
}

/* What an operator becomes when its sides change places. */
static enum function_id turned(enum function_id function)
{
    switch (function) {
    case FUNCTION_LESS:
        return FUNCTION_GREATER;
    case FUNCTION_LESS_EQUAL:
        return FUNCTION_GREATER_EQUAL;
    case FUNCTION_GREATER:
        return FUNCTION_LESS;
    case FUNCTION_GREATER_EQUAL:
        return FUNCTION_LESS_EQUAL;
    default:
        return function;
    }
}

/* function(x, the first moment of the year). */
static const struct expr *year_bound(struct arena *arena, enum function_id function,
                                     const struct expr *x, int64_t year)
{
    int64_t date = date_pack((uint32_t)year, 1, 1);
    bool is_date = x->type.kind == TYPE_DATE;
    struct value value = {.integer = is_date ? date : timestamp_of_date(date)};
    const struct expr *args[2] = {x, expr_constant(arena, value, x->type)};
    if (args[1] == NULL) return NULL;
    return expr_call(arena, function, TYPE(BOOL), args, 2);
}

struct year_test {
    enum function_id function;
    const struct expr *x;
    int64_t year;
};

/* Whether it is year(x) against a constant whose year and next year there are. */
static bool find_year_test(const struct expr *expr, struct year_test *out)
{
    if (expr->kind != EXPR_CALL || expr->arg_count != 2) return false;
    bool is_turned = expr->args[0]->kind == EXPR_CONSTANT;
    const struct expr *call = expr->args[is_turned];
    const struct expr *constant = expr->args[!is_turned];
    if (!is_call(call, FUNCTION_YEAR) || constant->kind != EXPR_CONSTANT ||
        constant->type.kind != TYPE_INT || constant->constant.is_null) {
        return false;
    }
    *out = (struct year_test){.function = is_turned ? turned(expr->function) : expr->function,
                              .x = call->args[0],
                              .year = constant->constant.integer};
    return out->year >= 1 && out->year < CALENDAR_YEAR_MAX;
}

/* Appends what the condition comes to: one or two. False: no memory. */
static bool add_condition(struct arena *arena, const struct expr *expr, const struct expr **out,
                          uint32_t *in_out_count)
{
    struct year_test test;
    const struct expr **next = out + *in_out_count;
    *in_out_count += 1;
    *next = expr;
    if (!find_year_test(expr, &test)) return true;
    switch (test.function) {
    case FUNCTION_LESS:
    case FUNCTION_GREATER_EQUAL:
        *next = year_bound(arena, test.function, test.x, test.year);
        return *next != NULL;
    case FUNCTION_LESS_EQUAL:
        *next = year_bound(arena, FUNCTION_LESS, test.x, test.year + 1);
        return *next != NULL;
    case FUNCTION_GREATER:
        *next = year_bound(arena, FUNCTION_GREATER_EQUAL, test.x, test.year + 1);
        return *next != NULL;
    case FUNCTION_EQUAL:
        if (test.x->kind != EXPR_COLUMN) return true; /* It would be computed twice. */
        next[0] = year_bound(arena, FUNCTION_GREATER_EQUAL, test.x, test.year);
        next[1] = year_bound(arena, FUNCTION_LESS, test.x, test.year + 1);
        *in_out_count += 1;
        return next[0] != NULL && next[1] != NULL;
    default:
        return true;
    }
}

static status simplify_filters(struct planner *planner, struct pipeline *pipeline,
                               struct error *err)
{
    struct op *ops = arena_array(planner->arena, struct op, pipeline->op_count + 1);
    if (ops == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < pipeline->op_count; i++) {
        const struct op *op = &pipeline->ops[i];
        ops[i] = *op;
        if (op->kind != OP_FILTER) continue;
        const struct expr **exprs =
            arena_array(planner->arena, const struct expr *, 2 * op->expr_count + 1);
        if (exprs == NULL) return binder_memory(err);
        ops[i].exprs = exprs;
        ops[i].expr_count = 0;
        for (uint32_t j = 0; j < op->expr_count; j++) {
            if (!add_condition(planner->arena, op->exprs[j], exprs, &ops[i].expr_count)) {
                return binder_memory(err);
            }
        }
    }
    pipeline->ops = ops;
    return STATUS_OK;
}

/* ---- keys that are texts ---- */

/* What has one text per value, and the other way round. DOUBLE has two zeros. */
static bool is_written_one_to_one(struct type type)
{
    return type.kind == TYPE_INT || type.kind == TYPE_DECIMAL || type.kind == TYPE_DATE ||
           type.kind == TYPE_TIMESTAMP || type.kind == TYPE_BOOL;
}

/* The value behind a text; NULL: the expression is no such text. */
static status value_behind(struct planner *planner, const struct expr *expr,
                           const struct expr **out_value, struct error *err)
{
    int64_t mask;
    int64_t fill;
    *out_value = NULL;
    if (is_call(expr, FUNCTION_CAST) && expr->type.kind == TYPE_TEXT &&
        is_written_one_to_one(expr->args[0]->type)) {
        *out_value = expr->args[0];
    }
    if (is_call(expr, FUNCTION_STRFTIME) &&
        date_format_fields(expr->args[1]->constant.text, &mask, &fill)) {
        *out_value = expr_call(planner->arena, FUNCTION_STRFTIME_KEY, expr->args[0]->type,
                               expr->args, expr->arg_count);
        if (*out_value == NULL) return binder_memory(err);
    }
    return STATUS_OK;
}

/* The text again, of the value in a column. */
static status text_of_column(struct planner *planner, const struct expr *text, uint32_t column,
                             const struct expr **out_text, struct error *err)
{
    const struct expr **args =
        arena_array(planner->arena, const struct expr *, text->arg_count + 1);
    struct expr *copy = arena_new(planner->arena, struct expr);
    if (args == NULL || copy == NULL) return binder_memory(err);
    memcpy(args, text->args, text->arg_count * sizeof *args);
    args[0] = expr_column(planner->arena, column, text->args[0]->type);
    if (args[0] == NULL) return binder_memory(err);
    *copy = *text;
    copy->args = args;
    *out_text = copy;
    return STATUS_OK;
}

static const struct expr *with_texts(struct arena *arena, const struct expr *expr,
                                     const struct expr *const *texts)
{
    if (expr->kind == EXPR_COLUMN && texts[expr->column] != NULL) return texts[expr->column];
    if (expr->kind != EXPR_CALL) return expr;
    const struct expr **args = arena_array(arena, const struct expr *, expr->arg_count + 1);
    struct expr *copy = arena_new(arena, struct expr);
    if (args == NULL || copy == NULL) return NULL;
    for (uint32_t i = 0; i < expr->arg_count; i++) {
        args[i] = with_texts(arena, expr->args[i], texts);
        if (args[i] == NULL) return NULL;
    }
    *copy = *expr;
    copy->args = args;
    return copy;
}

/* Lets a pipeline that knew the fold's texts make them itself: in its first projection, or in one
 * that is put in front. */
static status read_texts(struct planner *planner, struct pipeline *pipeline,
                         const struct expr *const *texts, struct schema now, struct error *err)
{
    bool projects = pipeline->op_count > 0 && pipeline->ops[0].kind == OP_PROJECT;
    struct schema before = pipeline->input;
    uint32_t count = projects ? pipeline->ops[0].expr_count : before.count;
    struct op *ops = arena_array(planner->arena, struct op, pipeline->op_count + 1);
    const struct expr **exprs = arena_array(planner->arena, const struct expr *, count + 1);
    if (ops == NULL || exprs == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        const struct expr *expr = projects ? pipeline->ops[0].exprs[i]
                                           : expr_column(planner->arena, i, before.fields[i].type);
        exprs[i] = expr == NULL ? NULL : with_texts(planner->arena, expr, texts);
        if (exprs[i] == NULL) return binder_memory(err);
    }
    ops[0] = (struct op){.kind = OP_PROJECT,
                         .output = projects ? pipeline->ops[0].output : before,
                         .exprs = exprs,
                         .expr_count = count};
    for (uint32_t i = projects; i < pipeline->op_count; i++) {
        ops[i + !projects] = pipeline->ops[i];
    }
    pipeline->op_count += !projects;
    pipeline->ops = ops;
    pipeline->input = now;
    return STATUS_OK;
}

/* Whether the column is nothing but this key. */
static bool is_only_key(const struct grouping *grouping, uint32_t key)
{
    uint32_t column = grouping->key_columns[key];
    for (uint32_t i = 0; i < grouping->key_count; i++) {
        if (i != key && grouping->key_columns[i] == column) return false;
    }
    for (uint32_t i = 0; i < grouping->aggregate_count; i++) {
        const struct aggregate *aggregate = &grouping->aggregates[i];
        bool has_by = aggregate->kind == AGGREGATE_ARG_MIN || aggregate->kind == AGGREGATE_ARG_MAX;
        if (has_by && aggregate->by_column == column) return false;
        if (aggregate->kind == AGGREGATE_COUNT_ROWS) continue;
        if (aggregate->input_column == column) return false;
    }
    return true;
}

/* Copies that can be changed. */
struct key_change {
    struct op *ops;
    const struct expr **exprs; /* Of the projection before the aggregate. */
    struct field *projected;
    struct grouping *grouping;
    struct field *partial;
    struct field *result;
    const struct expr **texts; /* By column of the result; NULL: as it was. */
    bool any;
};

static struct field *copy_fields(struct arena *arena, struct schema schema)
{
    struct field *fields = arena_array(arena, struct field, schema.count + 1);
    if (fields != NULL) memcpy(fields, schema.fields, schema.count * sizeof *fields);
    return fields;
}

static status change_init(struct planner *planner, const struct pipeline *pipeline,
                          struct key_change *change, struct error *err)
{
    struct arena *arena = planner->arena;
    const struct op *project = &pipeline->ops[pipeline->op_count - 2];
    const struct grouping *grouping = pipeline->ops[pipeline->op_count - 1].grouping;
    *change = (struct key_change){
        .ops = arena_array(arena, struct op, pipeline->op_count),
        .exprs = arena_array(arena, const struct expr *, project->expr_count + 1),
        .projected = copy_fields(arena, project->output),
        .grouping = arena_new(arena, struct grouping),
        .partial = copy_fields(arena, grouping->partial),
        .result = copy_fields(arena, grouping->result),
        .texts = arena_array(arena, const struct expr *, grouping->result.count + 1),
    };
    if (change->ops == NULL || change->exprs == NULL || change->projected == NULL ||
        change->grouping == NULL || change->partial == NULL || change->result == NULL ||
        change->texts == NULL) {
        return binder_memory(err);
    }
    memcpy(change->ops, pipeline->ops, pipeline->op_count * sizeof *change->ops);
    memcpy(change->exprs, project->exprs, project->expr_count * sizeof *change->exprs);
    *change->grouping = *grouping;
    change->grouping->partial.fields = change->partial;
    change->grouping->result.fields = change->result;
    return STATUS_OK;
}

static status change_key(struct planner *planner, struct key_change *change, uint32_t key,
                         struct error *err)
{
    uint32_t column = change->grouping->key_columns[key];
    const struct expr *text = change->exprs[column];
    const struct expr *value = NULL;
    if (!is_only_key(change->grouping, key)) return STATUS_OK;
    TRY(value_behind(planner, text, &value, err));
    if (value == NULL) return STATUS_OK;
    TRY(text_of_column(planner, text, key, &change->texts[key], err));
    change->exprs[column] = value;
    change->projected[column].type = value->type;
    change->partial[key].type = value->type;
    change->result[key].type = value->type;
    change->any = true;
    return STATUS_OK;
}

/* Takes the keys of an aggregate apart. */
static status simplify_keys(struct planner *planner, struct pipeline *pipeline, struct error *err)
{
    uint32_t count = pipeline->op_count;
    if (count < 2 || pipeline->ops[count - 1].kind != OP_AGGREGATE ||
        pipeline->ops[count - 2].kind != OP_PROJECT) {
        return STATUS_OK;
    }
    struct key_change change;
    TRY(change_init(planner, pipeline, &change, err));
    for (uint32_t i = 0; i < change.grouping->key_count; i++) {
        TRY(change_key(planner, &change, i, err));
    }
    if (!change.any) return STATUS_OK;
    change.ops[count - 2].exprs = change.exprs;
    change.ops[count - 2].output.fields = change.projected;
    change.ops[count - 1].grouping = change.grouping;
    change.ops[count - 1].output = change.grouping->partial;
    pipeline->ops = change.ops;
    pipeline->output = change.grouping->partial;
    struct fold *fold = &planner->folds.items[pipeline->target];
    fold->grouping = change.grouping;
    fold->input = change.grouping->partial;
    fold->output = change.grouping->result;
    for (uint32_t i = 0; i < planner->pipelines.count; i++) {
        struct pipeline *reader = &planner->pipelines.items[i];
        if (reader->source_kind != SOURCE_FOLD || reader->source != fold->id) continue;
        TRY(read_texts(planner, reader, change.texts, fold->output, err));
    }
    return STATUS_OK;
}

status planner_simplify(struct planner *planner, struct error *err)
{
    for (uint32_t i = 0; i < planner->pipelines.count; i++) {
        TRY(simplify_filters(planner, &planner->pipelines.items[i], err));
        TRY(simplify_keys(planner, &planner->pipelines.items[i], err));
    }
    return STATUS_OK;
}
