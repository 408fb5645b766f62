/* SPDX-License-Identifier: Apache-2.0 */
/* function_list.c - functions of lists, and pluck, which makes them. */
#include "engine/base/assert.h"
#include "engine/data/pyliteral.h"
#include "engine/exec/expr/kernels.h"

status list_length(struct eval *eval, const struct frame *frame, struct column *out,
                   struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    const struct list *lists = operands[0].column.lists;
    EACH_ROW(frame->selection, row, out->ints[row] = lists[row].count;);
    return STATUS_OK;
}

static bool texts_contain(const struct text *elements, struct list list, struct text wanted)
{
    for (uint32_t i = list.first; i < list.first + list.count; i++) {
        if (text_equal(elements[i], wanted)) return true;
    }
    return false;
}

static bool ints_contain(const int64_t *elements, struct list list, int64_t wanted)
{
    bool found = false;
    for (uint32_t i = list.first; i < list.first + list.count; i++) {
        found |= elements[i] == wanted;
    }
    return found;
}

status list_contains(struct eval *eval, const struct frame *frame, struct column *out,
                     struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    const struct column *column = &operands[0].column;
    const struct operand *wanted = &operands[1];
    const uint32_t mask = wanted->mask;
    if (column->type.kind == TYPE_LIST_TEXT) {
        EACH_ROW(frame->selection, row, if (is_null_at(out->nulls, row)) continue;
                 const struct list list = column->lists[row];
                 out->bools[row] =
                     list.count > 0 &&
                     texts_contain(column->child->texts, list, wanted->column.texts[row & mask]););
    } else {
        EACH_ROW(frame->selection, row, if (is_null_at(out->nulls, row)) continue;
                 const struct list list = column->lists[row];
                 out->bools[row] =
                     list.count > 0 &&
                     ints_contain(column->child->ints, list, wanted->column.ints[row & mask]););
    }
    return STATUS_OK;
}

/* Element number `index` of the child, or UINT32_MAX. */
static uint32_t element_of(struct list list, int64_t index)
{
    if (index < 0) index += (int64_t)list.count + 1;
    if (index < 1 || index > list.count) return UINT32_MAX;
    return list.first + (uint32_t)(index - 1);
}

status list_element(struct eval *eval, const struct frame *frame, struct column *out,
                    struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    TRY(kernel_own_nulls(frame, out, err));
    const struct column *column = &operands[0].column;
    for (uint32_t i = 0; i < frame->selection.count; i++) {
        uint32_t row = selection_row(frame->selection, i);
        if (out->nulls[row] != 0) continue;
        int64_t index = operands[1].column.ints[row & operands[1].mask];
        uint32_t element = element_of(column->lists[row], index);
        if (element == UINT32_MAX) {
            out->nulls[row] = 1;
        } else if (out->type.kind == TYPE_TEXT) {
            out->texts[row] = column->child->texts[element];
        } else {
            out->ints[row] = column->child->ints[element];
        }
    }
    return STATUS_OK;
}

status list_pluck_prepare(struct eval *eval, struct arena *stage_arena, struct error *err)
{
    (void)stage_arena; /* The key is used as it stands. */
    if (eval->args[1]->is_constant) return STATUS_OK;
    return error_set(err, STATUS_SQL, "the key of pluck must be a constant");
}

/* A text that does not parse is the empty list, and counted. */
status list_pluck(struct eval *eval, const struct frame *frame, struct column *out,
                  struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    struct arena *arena = frame->context->arena;
    struct pyliteral_sink sink = {.arena = arena};
    struct text key = operands[1].constant.text;
    uint64_t malformed = 0;
    for (uint32_t i = 0; i < frame->selection.count; i++) {
        uint32_t row = selection_row(frame->selection, i);
        if (is_null_at(out->nulls, row)) continue;
        struct text text = operands[0].column.texts[row & operands[0].mask];
        uint32_t first = (uint32_t)sink.count;
        enum pyliteral_result result = pyliteral_pluck(text, key, &sink);
        if (result == PYLITERAL_MEMORY) return kernel_no_memory(err);
        malformed += result == PYLITERAL_MALFORMED;
        if (sink.count > UINT32_MAX) {
            return error_set(err, STATUS_LIMIT, "lists of a batch have more than %u elements",
                             UINT32_MAX);
        }
        out->lists[row] = (struct list){first, (uint32_t)sink.count - first};
    }
    struct column *child = arena_new(arena, struct column);
    if (child == NULL) return kernel_no_memory(err);
    *child = (struct column){.type = TYPE(TEXT), .texts = sink.items};
    out->child = child;
    if (frame->context->malformed != NULL) *frame->context->malformed += malformed;
    return STATUS_OK;
}
