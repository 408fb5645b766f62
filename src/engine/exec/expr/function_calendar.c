/* SPDX-License-Identifier: Apache-2.0 */
/* function_calendar.c - parts of dates and times, and their formatting.
 *
 * DATE and TIMESTAMP are packed fields, so a part is a shift and a mask, NULL rows included.
 */
#include "engine/base/calendar.h"

#include "engine/base/assert.h"
#include "engine/exec/expr/kernels.h"

#define PART(expression)                                                                           \
    EACH_ROW(frame->selection, row, const int64_t value = in[row & mask];                          \
             out->ints[row] = (int64_t)(expression);)

static void time_part(enum function_id function, const struct frame *frame,
                      const struct operand *operand, struct column *out)
{
    const int64_t *in = operand->column.ints;
    const uint32_t mask = operand->mask;
    switch (function) {
    case FUNCTION_HOUR:
        PART(timestamp_hour(value));
        return;
    case FUNCTION_MINUTE:
        PART(timestamp_minute(value));
        return;
    default:
        ASSERT(function == FUNCTION_SECOND);
        PART(timestamp_second(value));
        return;
    }
}

static void date_part(enum function_id function, const struct frame *frame,
                      const struct operand *operand, struct column *out)
{
    const int64_t *in = operand->column.ints;
    const uint32_t mask = operand->mask;
    const uint32_t shift = operand->column.type.kind == TYPE_TIMESTAMP ? 37 : 0;
    switch (function) {
    case FUNCTION_YEAR:
        PART(calendar_year(value >> shift));
        return;
    case FUNCTION_MONTH:
        PART(calendar_month(value >> shift));
        return;
    default:
        ASSERT(function == FUNCTION_DAY);
        PART(calendar_day(value >> shift));
        return;
    }
}

status calendar_part(struct eval *eval, const struct frame *frame, struct column *out,
                     struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    enum function_id function = eval->expr->function;
    if (function == FUNCTION_YEAR || function == FUNCTION_MONTH || function == FUNCTION_DAY) {
        date_part(function, frame, &operands[0], out);
    } else {
        time_part(function, frame, &operands[0], out);
    }
    return STATUS_OK;
}

/* The tail of the printed timestamp, so that fractions look and compare alike everywhere. */
status calendar_time_of_day(struct eval *eval, const struct frame *frame, struct column *out,
                            struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    struct text_writer writer = {.arena = frame->context->arena};
    for (uint32_t i = 0; i < frame->selection.count; i++) {
        uint32_t row = selection_row(frame->selection, i);
        if (is_null_at(out->nulls, row)) continue;
        if (!text_writer_reserve(&writer, TIMESTAMP_TEXT_SIZE)) return kernel_no_memory(err);
        int64_t value = operands[0].column.ints[row & operands[0].mask];
        struct text whole = text_writer_take(&writer, timestamp_print(writer.next, value));
        enum { TIME_OFFSET = DATE_TEXT_SIZE + 1 };
        out->texts[row] = (struct text){whole.bytes + TIME_OFFSET, whole.size - TIME_OFFSET};
    }
    return STATUS_OK;
}

enum { FORMAT_BYTES_MAX = 4096 };

status calendar_strftime_prepare(struct eval *eval, struct arena *stage_arena, struct error *err)
{
    (void)stage_arena; /* The format is used as it stands. */
    const struct eval *format = eval->args[1];
    if (!format->is_constant) {
        return error_set(err, STATUS_SQL, "the format of strftime must be a constant");
    }
    if (format->constant.is_null) return STATUS_OK;
    if (format->constant.text.size > FORMAT_BYTES_MAX) {
        return error_set(err, STATUS_SQL, "the format of strftime is longer than %d bytes",
                         FORMAT_BYTES_MAX);
    }
    if (!date_format_check(format->constant.text)) {
        return error_set(err, STATUS_SQL, "strftime cannot read the format '%.*s'",
                         TEXT_ARGS(format->constant.text));
    }
    return STATUS_OK;
}

/* How many low bits of a TIMESTAMP the format does not show: rows that agree on the rest share
 * their text. Data often comes ordered by time, so that a month is formatted once per batch. */
static uint32_t hidden_bits(struct text format)
{
    uint32_t hidden = 63;
    for (uint32_t i = 0; i + 1 < format.size; i++) {
        if (format.bytes[i] != '%') continue;
        uint32_t bits = 63;
        switch (format.bytes[++i]) {
        case 'Y':
        case 'y':
            bits = 46;
            break;
        case 'm':
            bits = 42;
            break;
        case 'd':
        case 'j':
            bits = 37;
            break;
        case 'H':
            bits = 32;
            break;
        case 'M':
            bits = 26;
            break;
        case 'S':
            bits = 20;
            break;
        case 'f':
            bits = 0;
            break;
        default:
            break;
        }
        if (bits < hidden) hidden = bits;
    }
    return hidden;
}

status calendar_strftime(struct eval *eval, const struct frame *frame, struct column *out,
                         struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    struct text format = eval->args[1]->constant.text;
    size_t capacity = DATE_FORMAT_SIZE(format.size);
    uint32_t hidden = hidden_bits(format);
    bool is_date = operands[0].column.type.kind == TYPE_DATE;
    struct text_writer writer = {.arena = frame->context->arena};
    struct text latest = {0};
    int64_t latest_shown = -1; /* No TIMESTAMP is negative. */
    for (uint32_t i = 0; i < frame->selection.count; i++) {
        uint32_t row = selection_row(frame->selection, i);
        if (is_null_at(out->nulls, row)) continue;
        int64_t value = operands[0].column.ints[row & operands[0].mask];
        if (is_date) value = timestamp_of_date(value);
        if (value >> hidden != latest_shown) {
            if (!text_writer_reserve(&writer, capacity)) return kernel_no_memory(err);
            size_t size = date_format(writer.next, capacity, format, value);
            ASSERT(size <= capacity);
            latest = text_writer_take(&writer, size);
            latest_shown = value >> hidden;
        }
        out->texts[row] = latest;
    }
    return STATUS_OK;
}

status calendar_strftime_key(struct eval *eval, const struct frame *frame, struct column *out,
                             struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    int64_t keep;
    int64_t fill;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    bool is_key = date_format_fields(eval->args[1]->constant.text, &keep, &fill);
    ASSERT(is_key); /* The planner has asked the same. */
    const uint32_t shift = operands[0].column.type.kind == TYPE_DATE ? 37 : 0;
    keep >>= shift;
    fill >>= shift;
    const int64_t *in = operands[0].column.ints;
    const uint32_t mask = operands[0].mask;
    PART((value & keep) | fill);
    return STATUS_OK;
}
