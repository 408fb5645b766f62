/* SPDX-License-Identifier: Apache-2.0 */
/* function_logic.c - three-valued logic.
 *
 * AND and OR go from argument to argument with the rows that none has decided yet, so that a later
 * argument is neither computed nor able to fail where an earlier one has given the answer.
 */
#include "engine/exec/expr/kernels.h"

struct logic_chain {
    struct column out;
    uint32_t *rows; /* Those still undecided. */
    bool decisive;  /* The value that decides: false for AND, true for OR. */
};

/* Notes one argument's values; returns how many rows of chain->rows stay undecided. */
static uint32_t chain_note(struct logic_chain *chain, const struct column *column,
                           struct selection selection)
{
    const uint8_t *in = column->bools;
    const uint8_t *in_nulls = column->nulls;
    uint8_t *out = chain->out.bools;
    uint8_t *out_nulls = chain->out.nulls;
    uint32_t *rows = chain->rows;
    const uint8_t decisive = chain->decisive;
    uint32_t count = 0;
    if (in_nulls == NULL && out_nulls == NULL) {
        EACH_ROW(selection, row, out[row] = in[row] != 0; rows[count] = row;
                 count += out[row] != decisive;);
    } else {
        EACH_ROW(selection, row, const bool is_null = is_null_at(in_nulls, row);
                 const bool decided = !is_null && (in[row] != 0) == decisive;
                 out[row] = decided ? decisive : !decisive;
                 out_nulls[row] = !decided && (is_null || out_nulls[row] != 0); rows[count] = row;
                 count += !decided;);
    }
    return count;
}

static status chain_run(struct eval *eval, const struct frame *frame, bool decisive,
                        struct column *out, struct error *err)
{
    struct arena *arena = frame->context->arena;
    uint32_t row_count = frame->batch->row_count;
    struct logic_chain chain = {.decisive = decisive};
    chain.rows = arena_alloc(arena, frame->selection.count * sizeof *chain.rows, alignof(uint32_t));
    if (chain.rows == NULL || !column_init(&chain.out, TYPE(BOOL), row_count, arena)) {
        return kernel_no_memory(err);
    }
    struct frame left = *frame;
    for (uint32_t i = 0; i < eval->arg_count && left.selection.count > 0; i++) {
        struct column column;
        TRY(eval_in_frame(eval->args[i], &left, &column, err));
        if (column.nulls != NULL && !column_need_nulls(&chain.out, row_count, arena)) {
            return kernel_no_memory(err);
        }
        uint32_t undecided = chain_note(&chain, &column, left.selection);
        if (undecided < left.selection.count) {
            left.selection = (struct selection){chain.rows, undecided};
        }
    }
    *out = chain.out;
    return STATUS_OK;
}

status logic_and(struct eval *eval, const struct frame *frame, struct column *out,
                 struct error *err)
{
    return chain_run(eval, frame, false, out, err);
}

/* Each condition sees the rows that those before it left. */
status logic_and_filter(struct eval *eval, const struct frame *frame, uint32_t *out_rows,
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

status logic_or(struct eval *eval, const struct frame *frame, struct column *out, struct error *err)
{
    return chain_run(eval, frame, true, out, err);
}

status logic_not(struct eval *eval, const struct frame *frame, struct column *out,
                 struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    const uint8_t *in = operands[0].column.bools;
    uint32_t mask = operands[0].mask;
    uint8_t *values = out->bools;
    EACH_ROW(frame->selection, row, values[row] = in[row & mask] == 0;);
    return STATUS_OK;
}

static status test_null(struct eval *eval, const struct frame *frame, uint8_t when_null,
                        struct column *out, struct error *err)
{
    struct operand operand;
    TRY(operand_load(eval->args[0], frame, &operand, err));
    if (!column_init(out, TYPE(BOOL), frame->batch->row_count, frame->context->arena)) {
        return kernel_no_memory(err);
    }
    const uint8_t *nulls = operand.column.nulls;
    uint8_t *values = out->bools;
    if (operand.is_null) {
        EACH_ROW(frame->selection, row, values[row] = when_null;);
    } else if (nulls == NULL) {
        EACH_ROW(frame->selection, row, values[row] = !when_null;);
    } else {
        EACH_ROW(frame->selection, row, values[row] = (nulls[row] != 0) == when_null;);
    }
    return STATUS_OK;
}

status logic_is_null(struct eval *eval, const struct frame *frame, struct column *out,
                     struct error *err)
{
    return test_null(eval, frame, 1, out, err);
}

status logic_is_not_null(struct eval *eval, const struct frame *frame, struct column *out,
                         struct error *err)
{
    return test_null(eval, frame, 0, out, err);
}
