/* SPDX-License-Identifier: Apache-2.0 */
/* function_sentiment.c - polarity(text) and sentiment(text [, band]). */
#include "engine/exec/expr/kernels.h"
#include "engine/exec/expr/sentiment.h"

static const struct sentiment_model *model_of(const struct frame *frame)
{
    const struct sentiment_model *model = frame->context->sentiment;
    return model != NULL ? model : &sentiment_builtin;
}

status sentiment_polarity_run(struct eval *eval, const struct frame *frame, struct column *out,
                              struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    const struct text *texts = operands[0].column.texts;
    const struct sentiment_model *model = model_of(frame);
    struct sentiment_scratch scratch = {0};
    EACH_ROW(frame->selection, row, if (is_null_at(out->nulls, row)) continue;
             out->doubles[row] = sentiment_polarity(
                 sentiment_score(model, &scratch, texts[row & operands[0].mask])););
    return STATUS_OK;
}

status sentiment_label_run(struct eval *eval, const struct frame *frame, struct column *out,
                           struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    const struct text *texts = operands[0].column.texts;
    const struct sentiment_model *model = model_of(frame);
    struct sentiment_scratch scratch = {0};
    bool has_band = eval->arg_count == 2;
    EACH_ROW(
        frame->selection, row, if (is_null_at(out->nulls, row)) continue;
        const double band = has_band ? operands[1].column.doubles[row & operands[1].mask] : -1.0;
        out->texts[row] = sentiment_label(
            sentiment_polarity(sentiment_score(model, &scratch, texts[row & operands[0].mask])),
            band););
    return STATUS_OK;
}
