/* function_sentiment.c - polarity(text) and sentiment(text [, band]). */
#include "exec/kernel.h"
#include "exec/sentiment.h"

status sentiment_polarity_run(struct eval *eval, const struct frame *frame, struct column *out,
                              struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    const struct text *texts = operands[0].column.texts;
    EACH_ROW(frame->selection, row, if (is_null_at(out->nulls, row)) continue;
             out->doubles[row] = double_normal(sentiment_polarity(texts[row & operands[0].mask])););
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
    bool has_band = eval->arg_count == 2;
    EACH_ROW(frame->selection, row, if (is_null_at(out->nulls, row)) continue;
             const double band =
                 has_band ? operands[1].column.doubles[row & operands[1].mask] : -1.0;
             out->texts[row] =
                 sentiment_label(sentiment_polarity(texts[row & operands[0].mask]), band););
    return STATUS_OK;
}
