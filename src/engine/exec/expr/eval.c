/* SPDX-License-Identifier: Apache-2.0 */
/* eval.c - compiles expressions to trees of kernels.
 *
 * Constants are folded here, when the eval is created: whatever depends on no column is computed
 * once, on one row. An error of such a computation is not reported then, as there may be no row
 * that needs it; the node is left as it is and fails when a row comes.
 *
 * Recursion follows the depth of the expression, which the parser and the plan decoder bound and
 * eval_create checks.
 */
#include "engine/exec/expr/eval.h"

#include "engine/base/assert.h"
#include "engine/exec/expr/kernels.h"
#include "engine/exec/expr/regexp.h"

enum { DEPTH_LIMIT = 2000 };

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
    if (eval->kernel->needs_context) return;
    const struct batch one_row = {.row_count = 1};
    struct eval_context context = {.arena = stage_arena};
    struct frame frame = {&one_row, {.count = 1}, &context};
    struct column column;
    struct error ignored; /* It is reported when a row needs the value. */
    if (eval->kernel->run(eval, &frame, &column, &ignored) != STATUS_OK) return;
    eval->constant = value_at(&column, 0);
    eval->is_constant = true;
}

static status create_node(const struct expr *expr, const struct schema *input, struct arena *arena,
                          uint32_t depth, struct eval **out, struct error *err);

static status create_call(struct eval *eval, struct arena *arena, uint32_t depth, struct error *err)
{
    const struct expr *expr = eval->expr;
    ASSERT(expr->function > FUNCTION_NONE && expr->function < FUNCTION_COUNT);
    eval->kernel = &kernels[expr->function];
    eval->args = arena_array(arena, struct eval *, expr->arg_count);
    if (eval->args == NULL) return kernel_no_memory(err);
    for (uint32_t i = 0; i < expr->arg_count; i++) {
        /* Counted before it is made, so that a failure finds it in the tree and frees it. */
        eval->arg_count = i + 1;
        TRY(create_node(expr->args[i], eval->input, arena, depth + 1, &eval->args[i], err));
    }
    if (eval->kernel->prepare != NULL) TRY(eval->kernel->prepare(eval, arena, err));
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
