/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.c - what kernels have in common: operands, nulls, errors, and running the nodes below.
 *
 * A tree is run from its root. A node asks for the values of its arguments, and calls nothing by
 * name: which kernel computes a node was decided when the eval was created (eval.c).
 */
#include "engine/exec/expr/kernel.h"

#include <string.h>

#include "engine/base/assert.h"

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

static status repeat(const struct value *value, struct type type, const struct frame *frame,
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
    status result = eval->kernel->run(eval, frame, out, err);
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
    if (value != NULL) return repeat(value, eval->expr->type, frame, out, err);
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
    return eval->kernel->run(eval, frame, out, err);
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

status eval_filter_in_frame(struct eval *eval, const struct frame *frame, uint32_t *out_rows,
                            uint32_t *out_count, struct error *err)
{
    const struct value *value = eval_constant(eval, frame->context);
    if (value != NULL) {
        bool kept = eval->expr->type.kind == TYPE_BOOL && !value->is_null && value->truth;
        *out_count = kept ? keep_all(frame->selection, out_rows) : 0;
        return STATUS_OK;
    }
    const struct kernel *kernel = eval->kernel;
    if (kernel != NULL && kernel->filter != NULL &&
        (kernel->can_filter == NULL || kernel->can_filter(eval, frame->context))) {
        return kernel->filter(eval, frame, out_rows, out_count, err);
    }
    struct column column;
    TRY(eval_in_frame(eval, frame, &column, err));
    *out_count = keep_true(&column, frame->selection, out_rows);
    return STATUS_OK;
}
