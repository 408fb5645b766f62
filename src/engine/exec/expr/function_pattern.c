/* SPDX-License-Identifier: Apache-2.0 */
/* function_pattern.c - regexp_matches and regexp_extract: patterns are compiled once per eval. */
#include "engine/base/assert.h"
#include "engine/exec/expr/kernels.h"
#include "engine/exec/expr/regexp.h"

struct pattern_state {
    uint32_t group;
};

static status prepare_group(struct eval *eval, struct arena *stage_arena, struct error *err)
{
    struct pattern_state *pattern = arena_new(stage_arena, struct pattern_state);
    if (pattern == NULL) return kernel_no_memory(err);
    eval->state = pattern;
    if (eval->arg_count < 3) return STATUS_OK;
    int64_t group = eval->args[2]->constant.integer;
    uint32_t count = regexp_group_count(eval->regexp);
    if (group < 0 || group > count) {
        return error_set(err, STATUS_SQL,
                         "regexp_extract: there is no group %lld; the expression has %u",
                         (long long)group, count);
    }
    pattern->group = (uint32_t)group;
    return STATUS_OK;
}

status pattern_prepare(struct eval *eval, struct arena *stage_arena, struct error *err)
{
    for (uint32_t i = 1; i < eval->arg_count; i++) {
        if (!eval->args[i]->is_constant) {
            return error_set(err, STATUS_SQL, "a regular expression must be a constant");
        }
        /* The result is NULL whatever the value. */
        if (eval->args[i]->constant.is_null) return STATUS_OK;
    }
    bool extracts = eval->expr->function == FUNCTION_REGEXP_EXTRACT;
    struct text options = {0};
    if (!extracts && eval->arg_count > 2) options = eval->args[2]->constant.text;
    TRY(regexp_create(eval->args[1]->constant.text, options, &eval->regexp, err));
    return extracts ? prepare_group(eval, stage_arena, err) : STATUS_OK;
}

status pattern_matches(struct eval *eval, const struct frame *frame, struct column *out,
                       struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    const struct text *texts = operands[0].column.texts;
    for (uint32_t i = 0; i < frame->selection.count; i++) {
        uint32_t row = selection_row(frame->selection, i);
        if (is_null_at(out->nulls, row)) continue;
        bool found = false;
        TRY(regexp_matches(eval->regexp, texts[row & operands[0].mask], &found, err));
        out->bools[row] = found;
    }
    return STATUS_OK;
}

status pattern_extract(struct eval *eval, const struct frame *frame, struct column *out,
                       struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    const struct pattern_state *pattern = eval->state;
    const struct text *texts = operands[0].column.texts;
    for (uint32_t i = 0; i < frame->selection.count; i++) {
        uint32_t row = selection_row(frame->selection, i);
        if (is_null_at(out->nulls, row)) continue;
        TRY(regexp_extract(eval->regexp, texts[row & operands[0].mask], pattern->group,
                           &out->texts[row], err));
    }
    return STATUS_OK;
}
