/* eval.c - compiles expressions to trees of kernels, runs them, filters with them.
 *
 * Constants are folded here, when the eval is created: whatever depends on no column is computed
 * once, on one row. An error of such a computation is not reported then, as there may be no row
 * that needs it; the node is left as it is and fails when a row comes.
 *
 * Recursion follows the depth of the expression, which the parser and the plan decoder bound and
 * eval_create checks.
 */
#include "engine/exec/expr/eval.h"

#include <string.h>

#include "engine/base/assert.h"
#include "engine/exec/expr/kernel.h"
#include "engine/exec/expr/regexp.h"

enum { DEPTH_LIMIT = 2000 };

struct kernel {
    kernel_run *run;
    kernel_prepare *prepare;
};

static const struct kernel kernels[FUNCTION_COUNT] = {
    [FUNCTION_AND] = {logic_and, NULL},
    [FUNCTION_OR] = {logic_or, NULL},
    [FUNCTION_NOT] = {logic_not, NULL},
    [FUNCTION_IS_NULL] = {logic_is_null, NULL},
    [FUNCTION_IS_NOT_NULL] = {logic_is_not_null, NULL},
    [FUNCTION_EQUAL] = {compare_run, compare_prepare},
    [FUNCTION_NOT_EQUAL] = {compare_run, compare_prepare},
    [FUNCTION_LESS] = {compare_run, compare_prepare},
    [FUNCTION_LESS_EQUAL] = {compare_run, compare_prepare},
    [FUNCTION_GREATER] = {compare_run, compare_prepare},
    [FUNCTION_GREATER_EQUAL] = {compare_run, compare_prepare},
    [FUNCTION_IN] = {compare_in, compare_in_prepare},
    [FUNCTION_ADD] = {number_arithmetic, NULL},
    [FUNCTION_SUBTRACT] = {number_arithmetic, NULL},
    [FUNCTION_MULTIPLY] = {number_arithmetic, NULL},
    [FUNCTION_DIVIDE] = {number_divide, NULL},
    [FUNCTION_INTEGER_DIVIDE] = {number_integer_divide, NULL},
    [FUNCTION_MODULO] = {number_modulo, NULL},
    [FUNCTION_NEGATE] = {number_negate, NULL},
    [FUNCTION_ABS] = {number_abs, NULL},
    [FUNCTION_ROUND] = {number_round, NULL},
    [FUNCTION_FLOOR] = {number_unary, NULL},
    [FUNCTION_CEIL] = {number_unary, NULL},
    [FUNCTION_SQRT] = {number_unary, NULL},
    [FUNCTION_CASE] = {choice_case, NULL},
    [FUNCTION_COALESCE] = {choice_coalesce, NULL},
    [FUNCTION_NULLIF] = {choice_nullif, NULL},
    [FUNCTION_LEAST] = {choice_extreme, NULL},
    [FUNCTION_GREATEST] = {choice_extreme, NULL},
    [FUNCTION_CAST] = {cast_run, NULL},
    [FUNCTION_CONCAT] = {text_concat, NULL},
    [FUNCTION_LOWER] = {text_case, NULL},
    [FUNCTION_UPPER] = {text_case, NULL},
    [FUNCTION_TRIM] = {text_trim, NULL},
    [FUNCTION_LENGTH] = {text_length, NULL},
    [FUNCTION_SUBSTRING] = {text_substring, NULL},
    [FUNCTION_CONTAINS] = {text_search, NULL},
    [FUNCTION_STARTS_WITH] = {text_search, NULL},
    [FUNCTION_ENDS_WITH] = {text_search, NULL},
    [FUNCTION_REPLACE] = {text_replace, NULL},
    [FUNCTION_SPLIT_PART] = {text_split_part, NULL},
    [FUNCTION_LIKE] = {like_run, like_prepare},
    [FUNCTION_ILIKE] = {like_run, like_prepare},
    [FUNCTION_REGEXP_MATCHES] = {pattern_matches, pattern_prepare},
    [FUNCTION_REGEXP_EXTRACT] = {pattern_extract, pattern_prepare},
    [FUNCTION_YEAR] = {calendar_part, NULL},
    [FUNCTION_MONTH] = {calendar_part, NULL},
    [FUNCTION_DAY] = {calendar_part, NULL},
    [FUNCTION_HOUR] = {calendar_part, NULL},
    [FUNCTION_MINUTE] = {calendar_part, NULL},
    [FUNCTION_SECOND] = {calendar_part, NULL},
    [FUNCTION_TIME_OF_DAY] = {calendar_time_of_day, NULL},
    [FUNCTION_STRFTIME] = {calendar_strftime, calendar_strftime_prepare},
    [FUNCTION_STRFTIME_KEY] = {calendar_strftime_key, calendar_strftime_prepare},
    [FUNCTION_KEY_HASH] = {hash_run, NULL},
    [FUNCTION_LIST_LENGTH] = {list_length, NULL},
    [FUNCTION_LIST_CONTAINS] = {list_contains, NULL},
    [FUNCTION_LIST_ELEMENT] = {list_element, NULL},
    [FUNCTION_PLUCK] = {list_pluck, list_pluck_prepare},
    [FUNCTION_POLARITY] = {sentiment_polarity_run, NULL},
    [FUNCTION_SENTIMENT] = {sentiment_label_run, NULL},
};

/* --- Errors. --- */

status kernel_no_memory(struct error *err)
{
    return error_set(err, STATUS_MEMORY, "no memory left for the values of an expression");
}

const char *kernel_sql(const struct eval *eval, char out[KERNEL_SQL_SIZE])
{
    struct buf sql = {.limit = 1 << 16};
    expr_print(eval->expr, eval->input, &sql);
    size_t size = sql.size < KERNEL_SQL_SIZE - 1 ? sql.size : KERNEL_SQL_SIZE - 1;
    if (size > 0) memcpy(out, sql.bytes, size);
    out[size] = '\0';
    if (size < sql.size) memcpy(out + KERNEL_SQL_SIZE - 4, "...", 4);
    buf_done(&sql);
    return out;
}

status kernel_overflow(const struct eval *eval, struct error *err)
{
    char sql[KERNEL_SQL_SIZE];
    char name[TYPE_NAME_SIZE];
    return error_set(err, STATUS_OVERFLOW, "%s overflow in `%s`", type_name(eval->expr->type, name),
                     kernel_sql(eval, sql));
}

/* --- Operands and results. --- */

const struct value *eval_constant(const struct eval *eval, const struct eval_context *context)
{
    if (eval->is_constant) return &eval->constant;
    if (eval->expr->kind != EXPR_SCALAR) return NULL;
    ASSERT(context->scalars != NULL);
    return &context->scalars[eval->expr->fold];
}

status kernel_all_null(struct type type, const struct frame *frame, struct column *out,
                       struct error *err)
{
    struct arena *arena = frame->context->arena;
    uint32_t row_count = frame->batch->row_count;
    void *data = arena_calloc(arena, row_count, type_width(type), alignof(max_align_t));
    uint8_t *nulls = arena_alloc(arena, row_count, 1);
    if (data == NULL || nulls == NULL) return kernel_no_memory(err);
    memset(nulls, 1, row_count);
    *out = (struct column){.type = type, .data = data, .nulls = nulls};
    return STATUS_OK;
}

#define REPEAT(field, value) EACH_ROW(frame->selection, row, made.field[row] = (value);)

status kernel_repeat(const struct value *value, struct type type, const struct frame *frame,
                     struct column *out, struct error *err)
{
    if (value->is_null || type.kind == TYPE_NULL) return kernel_all_null(type, frame, out, err);
    ASSERT(!type_is_list(type));
    struct column made;
    if (!column_init(&made, type, frame->batch->row_count, frame->context->arena)) {
        return kernel_no_memory(err);
    }
    if (type.kind == TYPE_BOOL) {
        REPEAT(bools, value->truth);
    } else if (type.kind == TYPE_DOUBLE) {
        REPEAT(doubles, value->number);
    } else if (type.kind == TYPE_TEXT) {
        REPEAT(texts, value->text);
    } else {
        REPEAT(ints, value->integer);
    }
    *out = made;
    return STATUS_OK;
}

static void operand_set(struct operand *out, const struct value *value, struct type type)
{
    *out = (struct operand){.column = {.type = type}, .is_null = value->is_null};
    if (type.kind == TYPE_BOOL) {
        out->constant.truth = !value->is_null && value->truth;
    } else if (type.kind == TYPE_DOUBLE) {
        out->constant.number = value->is_null ? 0.0 : value->number;
    } else if (type.kind == TYPE_TEXT) {
        out->constant.text = value->is_null ? (struct text){0} : value->text;
    } else {
        out->constant.integer = value->is_null ? 0 : value->integer;
    }
    out->column.data = &out->constant;
}

status operand_load(struct eval *arg, const struct frame *frame, struct operand *out,
                    struct error *err)
{
    const struct value *value = eval_constant(arg, frame->context);
    if (value != NULL) {
        operand_set(out, value, arg->expr->type);
    } else {
        *out = (struct operand){.mask = UINT32_MAX};
        TRY(eval_in_frame(arg, frame, &out->column, err));
    }
    if (arg->expr->type.kind == TYPE_NULL) out->is_null = true;
    return STATUS_OK;
}

status kernel_nulls(const struct frame *frame, const struct operand *operands, uint32_t count,
                    uint8_t **out, struct error *err)
{
    uint8_t *nulls = NULL;
    bool owned = false;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *more = operands[i].mask == 0 ? NULL : operands[i].column.nulls;
        if (more == NULL || more == nulls) continue;
        if (nulls == NULL) {
            nulls = operands[i].column.nulls;
            continue;
        }
        const uint8_t *before = nulls;
        if (!owned) {
            nulls = arena_alloc(frame->context->arena, frame->batch->row_count, 1);
            if (nulls == NULL) return kernel_no_memory(err);
            owned = true;
        }
        uint8_t *both = nulls;
        EACH_ROW(frame->selection, row, both[row] = before[row] | more[row];);
    }
    *out = nulls;
    return STATUS_OK;
}

status kernel_own_nulls(const struct frame *frame, struct column *out, struct error *err)
{
    const uint8_t *before = out->nulls;
    uint8_t *nulls = arena_array(frame->context->arena, uint8_t, frame->batch->row_count);
    if (nulls == NULL) return kernel_no_memory(err);
    if (before != NULL) EACH_ROW(frame->selection, row, nulls[row] = before[row];);
    out->nulls = nulls;
    return STATUS_OK;
}

status kernel_start(struct eval *eval, const struct frame *frame,
                    struct operand operands[OPERANDS_MAX], struct column *out, bool *out_finished,
                    struct error *err)
{
    ASSERT(eval->arg_count <= OPERANDS_MAX);
    *out_finished = false;
    for (uint32_t i = 0; i < eval->arg_count; i++) {
        TRY(operand_load(eval->args[i], frame, &operands[i], err));
        *out_finished |= operands[i].is_null;
    }
    if (*out_finished) return kernel_all_null(eval->expr->type, frame, out, err);
    if (!column_init(out, eval->expr->type, frame->batch->row_count, frame->context->arena)) {
        return kernel_no_memory(err);
    }
    return kernel_nulls(frame, operands, eval->arg_count, &out->nulls, err);
}

/* --- Creation. --- */

static bool all_constant(const struct eval *eval)
{
    for (uint32_t i = 0; i < eval->arg_count; i++) {
        if (!eval->args[i]->is_constant) return false;
    }
    return true;
}

static struct value value_at(const struct column *column, uint32_t row)
{
    struct value value = {.is_null = column->type.kind == TYPE_NULL || column_is_null(column, row)};
    if (value.is_null) return value;
    switch ((enum type_kind)column->type.kind) {
    case TYPE_BOOL:
        value.truth = column->bools[row] != 0;
        break;
    case TYPE_DOUBLE:
        value.number = column->doubles[row];
        break;
    case TYPE_TEXT:
        value.text = column->texts[row];
        break;
    default:
        value.integer = column->ints[row];
        break;
    }
    return value;
}

static void fold_constant(struct eval *eval, struct arena *stage_arena)
{
    if (eval->arg_count == 0 || type_is_list(eval->expr->type) || !all_constant(eval)) return;
    /* Which model is used is only known when rows come. */
    enum function_id function = eval->expr->function;
    if (function == FUNCTION_POLARITY || function == FUNCTION_SENTIMENT) return;
    const struct batch one_row = {.row_count = 1};
    struct eval_context context = {.arena = stage_arena};
    struct frame frame = {&one_row, {.count = 1}, &context};
    struct column column;
    struct error ignored; /* It is reported when a row needs the value. */
    if (eval->run(eval, &frame, &column, &ignored) != STATUS_OK) return;
    eval->constant = value_at(&column, 0);
    eval->is_constant = true;
}

static status create_node(const struct expr *expr, const struct schema *input, struct arena *arena,
                          uint32_t depth, struct eval **out, struct error *err);

static status create_call(struct eval *eval, struct arena *arena, uint32_t depth, struct error *err)
{
    const struct expr *expr = eval->expr;
    ASSERT(expr->function > FUNCTION_NONE && expr->function < FUNCTION_COUNT);
    const struct kernel *kernel = &kernels[expr->function];
    eval->run = kernel->run;
    eval->args = arena_array(arena, struct eval *, expr->arg_count);
    if (eval->args == NULL) return kernel_no_memory(err);
    for (uint32_t i = 0; i < expr->arg_count; i++) {
        /* Counted before it is made, so that a failure finds it in the tree and frees it. */
        eval->arg_count = i + 1;
        TRY(create_node(expr->args[i], eval->input, arena, depth + 1, &eval->args[i], err));
    }
    if (kernel->prepare != NULL) TRY(kernel->prepare(eval, arena, err));
    fold_constant(eval, arena);
    return STATUS_OK;
}

/* *out is set also on failure, to what was made so far. */
static status create_node(const struct expr *expr, const struct schema *input, struct arena *arena,
                          uint32_t depth, struct eval **out, struct error *err)
{
    if (depth > DEPTH_LIMIT) {
        return error_set(err, STATUS_LIMIT, "an expression is nested more than %d levels deep",
                         DEPTH_LIMIT);
    }
    struct eval *eval = arena_new(arena, struct eval);
    if (eval == NULL) return kernel_no_memory(err);
    *out = eval;
    eval->expr = expr;
    eval->input = input;
    if (expr->kind == EXPR_CONSTANT) {
        eval->is_constant = true;
        eval->constant = expr->constant;
        if (expr->type.kind == TYPE_NULL) eval->constant.is_null = true;
        return STATUS_OK;
    }
    if (expr->kind == EXPR_CALL) return create_call(eval, arena, depth, err);
    return STATUS_OK;
}

status eval_create(const struct expr *expr, const struct schema *input, struct arena *stage_arena,
                   struct eval **out, struct error *err)
{
    struct eval *eval = NULL;
    status code = create_node(expr, input, stage_arena, 0, &eval, err);
    if (code != STATUS_OK) {
        eval_destroy(eval);
        return code;
    }
    *out = eval;
    return STATUS_OK;
}

void eval_destroy(struct eval *eval)
{
    if (eval == NULL) return;
    for (uint32_t i = 0; i < eval->arg_count; i++) {
        eval_destroy(eval->args[i]);
    }
    regexp_destroy(eval->regexp);
    eval->regexp = NULL;
}

/* --- Running. --- */

static bool has_values(const struct shared_values *shared, const struct frame *frame)
{
    if (shared->stamp != frame->context->stamp) return false;
    if (shared->has == NULL) return true;
    EACH_ROW(frame->selection, row, if (shared->has[row] == 0) return false;);
    return true;
}

static status run_shared(struct eval *eval, const struct frame *frame, struct column *out,
                         struct error *err)
{
    struct shared_values *shared = eval->shared;
    if (has_values(shared, frame)) {
        *out = shared->column;
        return STATUS_OK;
    }
    uint32_t row_count = frame->batch->row_count;
    bool has_all = frame->selection.count == row_count;
    uint8_t *has = NULL;
    struct eval_context *context = frame->context;
    struct arena *arena = context->arena;
    if (context->shared != NULL) context->arena = context->shared;
    status result = eval->run(eval, frame, out, err);
    if (result == STATUS_OK && !has_all) {
        has = arena_calloc(context->arena, row_count, 1, 1);
        if (has == NULL) result = kernel_no_memory(err);
    }
    context->arena = arena;
    TRY(result);
    if (!has_all) EACH_ROW(frame->selection, row, has[row] = 1;);
    *shared = (struct shared_values){.stamp = frame->context->stamp, .column = *out, .has = has};
    return STATUS_OK;
}

status eval_in_frame(struct eval *eval, const struct frame *frame, struct column *out,
                     struct error *err)
{
    const struct value *value = eval_constant(eval, frame->context);
    if (value != NULL) return kernel_repeat(value, eval->expr->type, frame, out, err);
    if (eval->expr->kind == EXPR_COLUMN) {
        ASSERT(eval->expr->column < frame->batch->column_count);
        *out = frame->batch->columns[eval->expr->column];
        return STATUS_OK;
    }
    /* Nothing to compute, and nothing that could fail. */
    if (frame->selection.count == 0) {
        struct column made;
        if (!column_init(&made, eval->expr->type, frame->batch->row_count, frame->context->arena)) {
            return kernel_no_memory(err);
        }
        *out = made;
        return STATUS_OK;
    }
    if (eval->shared != NULL && frame->context->stamp != 0) {
        return run_shared(eval, frame, out, err);
    }
    return eval->run(eval, frame, out, err);
}

status eval_run(struct eval *eval, const struct batch *batch, struct selection selection,
                struct eval_context *context, struct column *out, struct error *err)
{
    ASSERT(selection.count <= batch->row_count);
    struct frame frame = {batch, selection, context};
    struct column column;
    TRY(eval_in_frame(eval, &frame, &column, err));
    *out = column;
    return STATUS_OK;
}

static uint32_t keep_true(const struct column *column, struct selection selection,
                          uint32_t *out_rows)
{
    const uint8_t *bools = column->bools;
    const uint8_t *nulls = column->nulls;
    uint32_t count = 0;
    if (column->type.kind == TYPE_NULL) return 0;
    if (nulls == NULL) {
        EACH_ROW(selection, row, out_rows[count] = row; count += bools[row] != 0;);
    } else {
        EACH_ROW(selection, row, out_rows[count] = row;
                 count += (bools[row] != 0) & (nulls[row] == 0););
    }
    return count;
}

static uint32_t keep_all(struct selection selection, uint32_t *out_rows)
{
    uint32_t count = 0;
    EACH_ROW(selection, row, out_rows[count++] = row;);
    return count;
}

static status filter_and(struct eval *eval, const struct frame *frame, uint32_t *out_rows,
                         uint32_t *out_count, struct error *err)
{
    struct frame left = *frame;
    for (uint32_t i = 0; i < eval->arg_count && left.selection.count > 0; i++) {
        uint32_t count;
        TRY(eval_filter_in_frame(eval->args[i], &left, out_rows, &count, err));
        left.selection = (struct selection){out_rows, count};
    }
    *out_count = left.selection.count;
    return STATUS_OK;
}

status eval_filter_in_frame(struct eval *eval, const struct frame *frame, uint32_t *out_rows,
                            uint32_t *out_count, struct error *err)
{
    const struct value *value = eval_constant(eval, frame->context);
    if (value != NULL) {
        bool kept = eval->expr->type.kind == TYPE_BOOL && !value->is_null && value->truth;
        *out_count = kept ? keep_all(frame->selection, out_rows) : 0;
        return STATUS_OK;
    }
    if (eval->expr->kind == EXPR_CALL) {
        if (eval->expr->function == FUNCTION_AND) {
            return filter_and(eval, frame, out_rows, out_count, err);
        }
        if (compare_can_filter(eval, frame->context)) {
            return compare_filter(eval, frame, out_rows, out_count, err);
        }
    }
    struct column column;
    TRY(eval_in_frame(eval, frame, &column, err));
    *out_count = keep_true(&column, frame->selection, out_rows);
    return STATUS_OK;
}

status eval_filter(struct eval *eval, const struct batch *batch, struct selection selection,
                   struct eval_context *context, uint32_t *out_rows, uint32_t *out_count,
                   struct error *err)
{
    ASSERT(selection.count <= batch->row_count);
    struct frame frame = {batch, selection, context};
    uint32_t count = 0;
    if (selection.count > 0) TRY(eval_filter_in_frame(eval, &frame, out_rows, &count, err));
    *out_count = count;
    return STATUS_OK;
}
