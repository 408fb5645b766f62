/* SPDX-License-Identifier: Apache-2.0 */
/* function_cast.c - CAST(x AS type).
 *
 * From TEXT surrounding spaces are left out and the rest must be read whole. DECIMAL to INT rounds
 * half away from zero, DOUBLE to INT half to even, as DuckDB does; what does not fit is an error.
 */
#include <math.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/calendar.h"
#include "engine/base/number.h"
#include "engine/exec/expr/kernels.h"

enum { SHOWN_BYTES = 60 };

struct cast {
    struct eval *eval;
    const struct frame *frame;
    const struct operand *in;
    struct column *out;
    struct error *err;
};

/* Statements for every selected row that is not NULL; `at` is where its operand stands. */
#define EACH_VALUE(cast, row, at, ...)                                                             \
    do {                                                                                           \
        const uint8_t *each_nulls = (cast)->out->nulls;                                            \
        const uint32_t each_mask = (cast)->in->mask;                                               \
        for (uint32_t each = 0; each < (cast)->frame->selection.count; each++) {                   \
            const uint32_t row = selection_row((cast)->frame->selection, each);                    \
            const uint32_t at = row & each_mask;                                                   \
            if (is_null_at(each_nulls, row)) continue;                                             \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    } while (0)

static status cast_unreadable(const struct cast *cast, struct text value)
{
    char sql[KERNEL_SQL_SIZE];
    char name[TYPE_NAME_SIZE];
    bool cut = value.size > SHOWN_BYTES;
    struct text shown = {value.bytes, cut ? SHOWN_BYTES : value.size};
    return error_set(cast->err, STATUS_INPUT, "cannot read '%.*s%s' as %s in `%s`",
                     TEXT_ARGS(shown), cut ? "..." : "", type_name(cast->out->type, name),
                     kernel_sql(cast->eval, sql));
}

/* --- From TEXT. --- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct text trimmed(struct text text)
{
    while (text.size > 0 && is_space(text.bytes[0])) {
        text.bytes++;
        text.size--;
    }
    while (text.size > 0 && is_space(text.bytes[text.size - 1])) {
        text.size--;
    }
    return text;
}

static bool bool_parse(struct text text, uint8_t *out)
{
    static const struct {
        const char *name;
        uint8_t value;
    } names[] = {{"true", 1},  {"t", 1}, {"yes", 1}, {"y", 1}, {"1", 1},
                 {"false", 0}, {"f", 0}, {"no", 0},  {"n", 0}, {"0", 0}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (text_equal_ignoring_case(text, text_of(names[i].name))) {
            *out = names[i].value;
            return true;
        }
    }
    return false;
}

/* A day alone is its midnight. */
static bool moment_parse(struct text text, int64_t *out)
{
    int64_t date;
    if (!date_parse(text, &date)) return timestamp_parse(text, out);
    *out = timestamp_of_date(date);
    return true;
}

static bool day_parse(struct text text, int64_t *out)
{
    int64_t timestamp;
    if (date_parse(text, out)) return true;
    if (!timestamp_parse(text, &timestamp)) return false;
    *out = timestamp_date(timestamp);
    return true;
}

#define READ(parse)                                                                                \
    EACH_VALUE(                                                                                    \
        cast, row, at, const struct text text = trimmed(cast->in->column.texts[at]);               \
        if (UNLIKELY(!(parse))) { return cast_unreadable(cast, cast->in->column.texts[at]); })

static status cast_from_text(struct cast *cast)
{
    struct column *out = cast->out;
    switch ((enum type_kind)out->type.kind) {
    case TYPE_BOOL:
        READ(bool_parse(text, &out->bools[row]));
        return STATUS_OK;
    case TYPE_INT:
        READ(int_parse(text, &out->ints[row]));
        return STATUS_OK;
    case TYPE_DECIMAL:
        READ(decimal_parse(text, out->type.precision, out->type.scale, &out->ints[row]));
        return STATUS_OK;
    case TYPE_DOUBLE:
        READ(double_parse(text, &out->doubles[row]));
        return STATUS_OK;
    case TYPE_DATE:
        READ(day_parse(text, &out->ints[row]));
        return STATUS_OK;
    case TYPE_TIMESTAMP:
        READ(moment_parse(text, &out->ints[row]));
        return STATUS_OK;
    case TYPE_NULL:
    case TYPE_TEXT:
    case TYPE_LIST_TEXT:
    case TYPE_LIST_INT:
        break;
    }
    return error_set(cast->err, STATUS_INTERNAL, "no such cast");
}

/* --- To TEXT. --- */

_Static_assert((int)TIMESTAMP_TEXT_SIZE <= (int)NUMBER_TEXT_SIZE, "one size holds any value");

static size_t scalar_print(char *out, const struct column *column, uint32_t at)
{
    switch ((enum type_kind)column->type.kind) {
    case TYPE_BOOL:
        memcpy(out, column->bools[at] ? "true" : "false", 5);
        return column->bools[at] ? 4 : 5;
    case TYPE_DECIMAL:
        return decimal_print(out, column->ints[at], column->type.scale);
    case TYPE_DOUBLE:
        return double_print(out, column->doubles[at]);
    case TYPE_DATE:
        return date_print(out, column->ints[at]);
    case TYPE_TIMESTAMP:
        return timestamp_print(out, column->ints[at]);
    default:
        ASSERT(column->type.kind == TYPE_INT);
        return int_print(out, column->ints[at]);
    }
}

/* [a, b] at `out`; with out == NULL only the size (an upper bound, for numbers). */
static size_t list_print(char *out, const struct column *column, uint32_t at)
{
    struct list list = column->lists[at];
    const struct column *child = column->child;
    size_t size = 0;
    if (out != NULL) out[0] = '[';
    size++;
    for (uint32_t i = 0; i < list.count; i++) {
        if (i > 0) {
            if (out != NULL) memcpy(out + size, ", ", 2);
            size += 2;
        }
        uint32_t element = list.first + i;
        if (child->type.kind != TYPE_TEXT) {
            size += out == NULL ? NUMBER_TEXT_SIZE : int_print(out + size, child->ints[element]);
            continue;
        }
        struct text text = child->texts[element];
        if (out != NULL && text.size > 0) memcpy(out + size, text.bytes, text.size);
        size += text.size;
    }
    if (out != NULL) out[size] = ']';
    return size + 1;
}

static status cast_to_text(struct cast *cast)
{
    struct text_writer writer = {.arena = cast->frame->context->arena};
    const struct column *in = &cast->in->column;
    bool is_list = type_is_list(in->type);
    EACH_VALUE(cast, row, at, size_t size = is_list ? list_print(NULL, in, at) : NUMBER_TEXT_SIZE;
               if (size > UINT32_MAX) return error_set(cast->err, STATUS_LIMIT,
                                                       "a text would be longer than 4 GiB");
               if (!text_writer_reserve(&writer, size)) return kernel_no_memory(cast->err);
               size = is_list ? list_print(writer.next, in, at) : scalar_print(writer.next, in, at);
               cast->out->texts[row] = text_writer_take(&writer, size););
    return STATUS_OK;
}

/* --- Among numbers. --- */

static bool decimal_fits(int64_t value, struct type type)
{
    int64_t limit = (int64_t)number_powers[type.precision];
    return value > -limit && value < limit;
}

/* value / 10^digits, rounded half away from zero. */
static int64_t shift_down(int64_t value, uint32_t digits)
{
    uint64_t power = number_powers[digits];
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    uint64_t quotient = magnitude / power;
    if (power > 1 && magnitude % power >= power / 2) quotient++;
    return value < 0 ? (int64_t)(0 - quotient) : (int64_t)quotient;
}

static uint32_t scale_of(struct type type)
{
    return type.kind == TYPE_DECIMAL ? type.scale : 0;
}

/* From one scale to another. */
static status cast_rescale(struct cast *cast)
{
    struct type from = cast->in->column.type;
    struct type to = cast->out->type;
    const int64_t *in = cast->in->column.ints;
    int64_t *out = cast->out->ints;
    uint32_t up = scale_of(to) > scale_of(from) ? scale_of(to) - scale_of(from) : 0;
    uint32_t down = scale_of(from) > scale_of(to) ? scale_of(from) - scale_of(to) : 0;
    int64_t factor = (int64_t)number_powers[up];
    EACH_VALUE(
        cast, row, at, int64_t value = shift_down(in[at], down);
        if (UNLIKELY(__builtin_mul_overflow(value, factor, &value) ||
                     (to.kind == TYPE_DECIMAL && !decimal_fits(value, to)))) {
            return kernel_overflow(cast->eval, cast->err);
        } out[row] = value;);
    return STATUS_OK;
}

static status cast_to_double(struct cast *cast)
{
    const struct column *in = &cast->in->column;
    const uint32_t mask = cast->in->mask;
    double *out = cast->out->doubles;
    if (in->type.kind == TYPE_INT) {
        EACH_ROW(cast->frame->selection, row, out[row] = (double)in->ints[row & mask];);
    } else {
        uint8_t scale = in->type.scale;
        EACH_VALUE(cast, row, at, out[row] = decimal_to_double(in->ints[at], scale););
    }
    return STATUS_OK;
}

static status cast_double_to_int(struct cast *cast)
{
    const double *in = cast->in->column.doubles;
    const double limit = 9223372036854775808.0;
    EACH_VALUE(
        cast, row, at, const double value = nearbyint(in[at]);
        /* Also false for NaN. */
        if (UNLIKELY(!(value >= -limit && value < limit))) {
            return kernel_overflow(cast->eval, cast->err);
        } cast->out->ints[row] = (int64_t)value;);
    return STATUS_OK;
}

static status cast_double_to_decimal(struct cast *cast)
{
    const double *in = cast->in->column.doubles;
    struct type to = cast->out->type;
    double power = number_double_powers[to.scale];
    double limit = number_double_powers[to.precision];
    EACH_VALUE(
        cast, row, at, const double value = round(in[at] * power);
        if (UNLIKELY(!(value > -limit && value < limit))) {
            return kernel_overflow(cast->eval, cast->err);
        } cast->out->ints[row] = (int64_t)value;);
    return STATUS_OK;
}

/* --- Everything else. --- */

static status cast_to_bool(struct cast *cast)
{
    const struct column *in = &cast->in->column;
    if (in->type.kind == TYPE_DOUBLE) {
        EACH_VALUE(cast, row, at, cast->out->bools[row] = in->doubles[at] != 0.0;);
    } else {
        EACH_VALUE(cast, row, at, cast->out->bools[row] = in->ints[at] != 0;);
    }
    return STATUS_OK;
}

static status cast_from_bool(struct cast *cast)
{
    const uint8_t *in = cast->in->column.bools;
    struct column *out = cast->out;
    if (out->type.kind == TYPE_DOUBLE) {
        EACH_VALUE(cast, row, at, out->doubles[row] = in[at] != 0 ? 1.0 : 0.0;);
        return STATUS_OK;
    }
    int64_t one = out->type.kind == TYPE_DECIMAL ? (int64_t)number_powers[out->type.scale] : 1;
    if (out->type.kind == TYPE_DECIMAL && !decimal_fits(one, out->type)) {
        EACH_VALUE(cast, row, at, if (in[at] != 0) return kernel_overflow(cast->eval, cast->err););
    }
    EACH_VALUE(cast, row, at, out->ints[row] = in[at] != 0 ? one : 0;);
    return STATUS_OK;
}

static status cast_calendar(struct cast *cast)
{
    const int64_t *in = cast->in->column.ints;
    if (cast->out->type.kind == TYPE_DATE) {
        EACH_VALUE(cast, row, at, cast->out->ints[row] = timestamp_date(in[at]););
    } else {
        EACH_VALUE(cast, row, at, cast->out->ints[row] = timestamp_of_date(in[at]););
    }
    return STATUS_OK;
}

static status cast_values(struct cast *cast)
{
    struct type from = cast->in->column.type;
    struct type to = cast->out->type;
    if (from.kind == TYPE_TEXT) return cast_from_text(cast);
    if (to.kind == TYPE_TEXT) return cast_to_text(cast);
    if (from.kind == TYPE_BOOL && type_is_number(to)) return cast_from_bool(cast);
    if (to.kind == TYPE_BOOL && type_is_number(from)) return cast_to_bool(cast);
    if (type_is_number(from) && type_is_number(to)) {
        if (to.kind == TYPE_DOUBLE) return cast_to_double(cast);
        if (from.kind != TYPE_DOUBLE) return cast_rescale(cast);
        return to.kind == TYPE_INT ? cast_double_to_int(cast) : cast_double_to_decimal(cast);
    }
    if ((from.kind == TYPE_DATE && to.kind == TYPE_TIMESTAMP) ||
        (from.kind == TYPE_TIMESTAMP && to.kind == TYPE_DATE)) {
        return cast_calendar(cast);
    }
    char from_name[TYPE_NAME_SIZE];
    char to_name[TYPE_NAME_SIZE];
    return error_set(cast->err, STATUS_INTERNAL, "no cast from %s to %s",
                     type_name(from, from_name), type_name(to, to_name));
}

/* The same type, and for DECIMAL no less room. */
static bool is_unchanged(struct type from, struct type to)
{
    return type_equal(from, to) && (to.kind != TYPE_DECIMAL || to.precision >= from.precision);
}

status cast_run(struct eval *eval, const struct frame *frame, struct column *out, struct error *err)
{
    struct type to = eval->expr->type;
    struct operand operands[OPERANDS_MAX];
    if (is_unchanged(eval->args[0]->expr->type, to)) {
        TRY(eval_in_frame(eval->args[0], frame, out, err));
        out->type = to;
        return STATUS_OK;
    }
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    struct cast cast = {eval, frame, &operands[0], out, err};
    return cast_values(&cast);
}
