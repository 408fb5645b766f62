/* SPDX-License-Identifier: Apache-2.0 */
/* function_choice.c - CASE, COALESCE, NULLIF, LEAST, GREATEST: each row takes its value from one of
 * several columns.
 *
 * Each argument is computed only for the rows that need it, and its values are copied to their
 * places at once, so that any number of arguments needs one result and two arrays of row numbers.
 */
#include <string.h>

#include "engine/base/assert.h"
#include "engine/exec/expr/kernels.h"

struct choice {
    const struct frame *frame;
    struct column out;
    uint32_t child_count; /* Elements of a list result's own child. */
    bool owns_child;
};

static status choice_start(struct choice *choice, struct type type, const struct frame *frame,
                           struct error *err)
{
    *choice = (struct choice){.frame = frame};
    if (!column_init(&choice->out, type, frame->batch->row_count, frame->context->arena)) {
        return kernel_no_memory(err);
    }
    return STATUS_OK;
}

static status choice_need_nulls(struct choice *choice, struct error *err)
{
    const struct frame *frame = choice->frame;
    if (!column_need_nulls(&choice->out, frame->batch->row_count, frame->context->arena)) {
        return kernel_no_memory(err);
    }
    return STATUS_OK;
}

static status choice_put_null(struct choice *choice, struct selection rows, struct error *err)
{
    if (rows.count == 0) return STATUS_OK;
    TRY(choice_need_nulls(choice, err));
    unsigned char *data = choice->out.data;
    uint8_t *nulls = choice->out.nulls;
    size_t width = type_width(choice->out.type);
    EACH_ROW(rows, row, nulls[row] = 1; memset(data + row * width, 0, width););
    return STATUS_OK;
}

/* Elements the lists of these rows have together, of those rows only that are not NULL. */
static uint64_t count_elements(const struct column *column, struct selection rows)
{
    uint64_t total = 0;
    EACH_ROW(rows, row, if (!column_is_null(column, row)) total += column->lists[row].count;);
    return total;
}

/* Room for `more` elements after the result's present ones. */
static status grow_child(struct choice *choice, uint64_t more, struct error *err)
{
    uint64_t total = choice->child_count + more;
    if (total > UINT32_MAX) {
        return error_set(err, STATUS_LIMIT, "lists of a batch have more than %u elements",
                         UINT32_MAX);
    }
    struct arena *arena = choice->frame->context->arena;
    struct column *child = arena_new(arena, struct column);
    struct type element = type_element(choice->out.type);
    if (child == NULL || !column_init(child, element, (uint32_t)total, arena)) {
        return kernel_no_memory(err);
    }
    if (choice->child_count > 0) {
        memcpy(child->data, choice->out.child->data, choice->child_count * type_width(element));
    }
    choice->out.child = child;
    return STATUS_OK;
}

static void append_lists(struct choice *choice, const struct column *column, struct selection rows)
{
    struct column *child = choice->out.child;
    size_t width = type_width(child->type);
    for (uint32_t i = 0; i < rows.count; i++) {
        uint32_t row = selection_row(rows, i);
        struct list list = {0};
        if (!column_is_null(column, row)) list = column->lists[row];
        if (list.count > 0) {
            memcpy((unsigned char *)child->data + choice->child_count * width,
                   (const unsigned char *)column->child->data + list.first * width,
                   list.count * width);
        }
        choice->out.lists[row] = (struct list){choice->child_count, list.count};
        choice->child_count += list.count;
    }
}

/* The first argument's elements are borrowed as they are; if others follow, all are copied. */
static status put_lists(struct choice *choice, const struct column *column, struct selection rows,
                        struct error *err)
{
    if (!choice->owns_child && (choice->out.child == NULL || choice->out.child == column->child)) {
        choice->out.child = column->child;
        struct list *lists = choice->out.lists;
        EACH_ROW(
            rows, row,
            lists[row] = column_is_null(column, row) ? (struct list){0} : column->lists[row];
            if (lists[row].first + lists[row].count > choice->child_count) {
                choice->child_count = lists[row].first + lists[row].count;
            });
        return STATUS_OK;
    }
    TRY(grow_child(choice, count_elements(column, rows), err));
    choice->owns_child = true;
    append_lists(choice, column, rows);
    return STATUS_OK;
}

#define COPY(field) EACH_ROW(rows, row, choice->out.field[row] = column->field[row];)

static status choice_put(struct choice *choice, const struct column *column, struct selection rows,
                         struct error *err)
{
    if (rows.count == 0) return STATUS_OK;
    if (column->type.kind == TYPE_NULL) return choice_put_null(choice, rows, err);
    ASSERT(type_equal(column->type, choice->out.type));
    if (column->nulls != NULL) TRY(choice_need_nulls(choice, err));
    if (choice->out.nulls != NULL) {
        uint8_t *nulls = choice->out.nulls;
        EACH_ROW(rows, row, nulls[row] = column_is_null(column, row););
    }
    switch (type_width(column->type)) {
    case 1:
        COPY(bools);
        return STATUS_OK;
    case sizeof(struct text):
        COPY(texts);
        return STATUS_OK;
    default:
        if (type_is_list(column->type)) return put_lists(choice, column, rows, err);
        COPY(ints);
        return STATUS_OK;
    }
}

static uint32_t *rows_alloc(const struct frame *frame)
{
    return arena_alloc(frame->context->arena, frame->selection.count * sizeof(uint32_t),
                       alignof(uint32_t));
}

/* The selection without `taken`, which is a part of it; `out` may be the selection's own array. */
static uint32_t rows_without(struct selection selection, struct selection taken, uint32_t *out)
{
    uint32_t count = 0;
    uint32_t next = 0;
    EACH_ROW(selection, row, if (next < taken.count && taken.rows[next] == row) next++;
             else out[count++] = row;);
    return count;
}

status choice_case(struct eval *eval, const struct frame *frame, struct column *out,
                   struct error *err)
{
    struct choice choice;
    TRY(choice_start(&choice, eval->expr->type, frame, err));
    uint32_t *taken_rows = rows_alloc(frame);
    uint32_t *left_rows = rows_alloc(frame);
    if (taken_rows == NULL || left_rows == NULL) return kernel_no_memory(err);
    struct frame left = *frame;
    uint32_t i = 0;
    for (; i + 1 < eval->arg_count && left.selection.count > 0; i += 2) {
        uint32_t taken_count;
        TRY(eval_filter_in_frame(eval->args[i], &left, taken_rows, &taken_count, err));
        struct frame taken = *frame;
        taken.selection = (struct selection){taken_rows, taken_count};
        struct column column;
        if (taken_count == 0) continue;
        TRY(eval_in_frame(eval->args[i + 1], &taken, &column, err));
        TRY(choice_put(&choice, &column, taken.selection, err));
        uint32_t left_count = rows_without(left.selection, taken.selection, left_rows);
        left.selection = (struct selection){left_rows, left_count};
    }
    if (left.selection.count > 0 && i < eval->arg_count) {
        struct column column;
        TRY(eval_in_frame(eval->args[i], &left, &column, err));
        TRY(choice_put(&choice, &column, left.selection, err));
    } else {
        TRY(choice_put_null(&choice, left.selection, err));
    }
    *out = choice.out;
    return STATUS_OK;
}

status choice_coalesce(struct eval *eval, const struct frame *frame, struct column *out,
                       struct error *err)
{
    struct choice choice;
    TRY(choice_start(&choice, eval->expr->type, frame, err));
    uint32_t *found_rows = rows_alloc(frame);
    uint32_t *left_rows = rows_alloc(frame);
    if (found_rows == NULL || left_rows == NULL) return kernel_no_memory(err);
    struct frame left = *frame;
    for (uint32_t i = 0; i < eval->arg_count && left.selection.count > 0; i++) {
        struct column column;
        TRY(eval_in_frame(eval->args[i], &left, &column, err));
        if (column.type.kind == TYPE_NULL) continue;
        uint32_t found_count = 0;
        uint32_t left_count = 0;
        EACH_ROW(left.selection, row, const bool is_null = column_is_null(&column, row);
                 found_rows[found_count] = row; found_count += !is_null;
                 left_rows[left_count] = row; left_count += is_null;);
        TRY(choice_put(&choice, &column, (struct selection){found_rows, found_count}, err));
        left.selection = (struct selection){left_rows, left_count};
    }
    TRY(choice_put_null(&choice, left.selection, err));
    *out = choice.out;
    return STATUS_OK;
}

status choice_nullif(struct eval *eval, const struct frame *frame, struct column *out,
                     struct error *err)
{
    struct operand operands[2];
    TRY(operand_load(eval->args[0], frame, &operands[0], err));
    TRY(operand_load(eval->args[1], frame, &operands[1], err));
    struct type type = eval->expr->type;
    if (operands[0].is_null) return kernel_all_null(type, frame, out, err);
    struct column made = operands[0].column;
    if (operands[0].mask == 0) TRY(eval_in_frame(eval->args[0], frame, &made, err));
    if (operands[1].is_null) {
        *out = made;
        return STATUS_OK;
    }
    uint8_t *nulls;
    uint8_t *equal = arena_alloc(frame->context->arena, frame->batch->row_count, 1);
    if (equal == NULL) return kernel_no_memory(err);
    TRY(kernel_nulls(frame, operands, 2, &nulls, err));
    compare_equal(frame, &operands[0], &operands[1], nulls, equal);
    TRY(kernel_own_nulls(frame, &made, err));
    EACH_ROW(frame->selection, row,
             if (!is_null_at(nulls, row) && equal[row]) made.nulls[row] = 1;);
    *out = made;
    return STATUS_OK;
}

/* The rows where the column's value is better than what has been chosen. NULLs stand last, so the
 * order alone is enough for the least. */
static uint32_t better_rows(enum function_id function, const struct column *chosen,
                            const struct column *column, struct selection selection, uint32_t *out)
{
    uint32_t count = 0;
    bool least = function == FUNCTION_LEAST;
    EACH_ROW(selection, row, out[count] = row;
             const int order = column_compare(column, row, chosen, row);
             count +=
             least ? order < 0
                   : !column_is_null(column, row) && (order > 0 || column_is_null(chosen, row)););
    return count;
}

status choice_extreme(struct eval *eval, const struct frame *frame, struct column *out,
                      struct error *err)
{
    struct choice choice;
    TRY(choice_start(&choice, eval->expr->type, frame, err));
    uint32_t *rows = rows_alloc(frame);
    if (rows == NULL) return kernel_no_memory(err);
    bool any = false;
    for (uint32_t i = 0; i < eval->arg_count; i++) {
        struct column column;
        TRY(eval_in_frame(eval->args[i], frame, &column, err));
        if (column.type.kind == TYPE_NULL) continue;
        struct selection better = frame->selection;
        if (any) {
            uint32_t count =
                better_rows(eval->expr->function, &choice.out, &column, frame->selection, rows);
            better = (struct selection){rows, count};
        }
        TRY(choice_put(&choice, &column, better, err));
        any = true;
    }
    if (!any) TRY(choice_put_null(&choice, frame->selection, err));
    *out = choice.out;
    return STATUS_OK;
}
