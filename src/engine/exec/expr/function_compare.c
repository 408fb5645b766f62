/* SPDX-License-Identifier: Apache-2.0 */
/* function_compare.c - comparisons and IN.
 *
 * A number compared with a constant is always a question whether it lies in one interval, which one
 * unsigned comparison answers: so six operators are one loop. Doubles take part as integers of the
 * same order (kernel.h). Two columns need only "less" and "equal": the rest is swapping and
 * negating.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/calendar.h"
#include "engine/exec/expr/kernels.h"

/* Numbers from low to low + span, or all others. */
struct interval {
    uint64_t low;
    uint64_t span;
    bool outside;
    bool empty;
};

static bool is_integer(struct type type)
{
    return type.kind == TYPE_INT || type.kind == TYPE_DECIMAL || type.kind == TYPE_DATE ||
           type.kind == TYPE_TIMESTAMP;
}

static struct interval interval_between(int64_t low, int64_t high)
{
    return (struct interval){.low = (uint64_t)low, .span = (uint64_t)high - (uint64_t)low};
}

static struct interval interval_of(enum function_id function, int64_t constant)
{
    struct interval none = {.empty = true};
    switch (function) {
    case FUNCTION_LESS:
        return constant == INT64_MIN ? none : interval_between(INT64_MIN, constant - 1);
    case FUNCTION_LESS_EQUAL:
        return interval_between(INT64_MIN, constant);
    case FUNCTION_GREATER:
        return constant == INT64_MAX ? none : interval_between(constant + 1, INT64_MAX);
    case FUNCTION_GREATER_EQUAL:
        return interval_between(constant, INT64_MAX);
    case FUNCTION_NOT_EQUAL:
        return (struct interval){.low = (uint64_t)constant, .outside = true};
    default:
        ASSERT(function == FUNCTION_EQUAL);
        return interval_between(constant, constant);
    }
}

static inline bool interval_has(struct interval interval, int64_t value)
{
    return ((uint64_t)value - interval.low <= interval.span) != interval.outside;
}

static enum function_id swapped(enum function_id function)
{
    switch (function) {
    case FUNCTION_LESS:
        return FUNCTION_GREATER;
    case FUNCTION_LESS_EQUAL:
        return FUNCTION_GREATER_EQUAL;
    case FUNCTION_GREATER:
        return FUNCTION_LESS;
    case FUNCTION_GREATER_EQUAL:
        return FUNCTION_LESS_EQUAL;
    default:
        return function;
    }
}

/* --- Loops: a column and a constant. --- */

static void mark_interval(struct selection selection, const struct column *column,
                          struct interval interval, uint8_t *out)
{
    if (interval.empty) {
        EACH_ROW(selection, row, out[row] = 0;);
    } else if (column->type.kind == TYPE_DOUBLE) {
        const double *values = column->doubles;
        EACH_ROW(selection, row, out[row] = interval_has(interval, double_key(values[row])););
    } else {
        const int64_t *values = column->ints;
        EACH_ROW(selection, row, out[row] = interval_has(interval, values[row]););
    }
}

/* Written without a branch: whether a row stays cannot be predicted. */
#define KEEP(condition)                                                                            \
    do {                                                                                           \
        if (nulls == NULL) {                                                                       \
            EACH_ROW(selection, row, out_rows[count] = row; count += (condition););                \
        } else {                                                                                   \
            EACH_ROW(selection, row, out_rows[count] = row;                                        \
                     count += (condition) & (nulls[row] == 0););                                   \
        }                                                                                          \
    } while (0)

static uint32_t keep_interval(struct selection selection, const struct column *column,
                              struct interval interval, uint32_t *out_rows)
{
    const uint8_t *nulls = column->nulls;
    uint32_t count = 0;
    if (interval.empty) return 0;
    if (column->type.kind == TYPE_DOUBLE) {
        const double *values = column->doubles;
        KEEP(interval_has(interval, double_key(values[row])));
    } else {
        const int64_t *values = column->ints;
        KEEP(interval_has(interval, values[row]));
    }
    return count;
}

static uint32_t keep_text(struct selection selection, const struct column *column,
                          struct text wanted, bool equal, uint32_t *out_rows)
{
    const uint8_t *nulls = column->nulls;
    const struct text *values = column->texts;
    uint32_t count = 0;
    if (nulls == NULL) {
        EACH_ROW(selection, row, out_rows[count] = row;
                 count += text_equal(values[row], wanted) == equal;);
    } else {
        EACH_ROW(selection, row, if (nulls[row] != 0) continue; out_rows[count] = row;
                 count += text_equal(values[row], wanted) == equal;);
    }
    return count;
}

/* --- Loops: two columns. --- */

struct compared_pair {
    struct selection selection;
    const struct operand *a;
    const struct operand *b;
    const uint8_t *nulls;
    uint8_t *out;
    bool negated;
};

#define PAIR_LOOPS(name, type, field, test)                                                        \
    static void name(const struct compared_pair *pair)                                             \
    {                                                                                              \
        const type *a = pair->a->column.field;                                                     \
        const type *b = pair->b->column.field;                                                     \
        const uint32_t mask_a = pair->a->mask;                                                     \
        const uint32_t mask_b = pair->b->mask;                                                     \
        const bool negated = pair->negated;                                                        \
        uint8_t *out = pair->out;                                                                  \
        if (pair->selection.rows == NULL && mask_a != 0 && mask_b != 0) {                          \
            for (uint32_t row = 0; row < pair->selection.count; row++) {                           \
                const type x = a[row];                                                             \
                const type y = b[row];                                                             \
                out[row] = (test) != negated;                                                      \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (uint32_t i = 0; i < pair->selection.count; i++) {                                     \
            const uint32_t row = selection_row(pair->selection, i);                                \
            const type x = a[row & mask_a];                                                        \
            const type y = b[row & mask_b];                                                        \
            out[row] = (test) != negated;                                                          \
        }                                                                                          \
    }

PAIR_LOOPS(less_int, int64_t, ints, x < y)
PAIR_LOOPS(equal_int, int64_t, ints, x == y)
PAIR_LOOPS(less_double, double, doubles, double_key(x) < double_key(y))
PAIR_LOOPS(equal_double, double, doubles, double_key(x) == double_key(y))
PAIR_LOOPS(less_bool, uint8_t, bools, x < y)
PAIR_LOOPS(equal_bool, uint8_t, bools, x == y)

static void equal_text(const struct compared_pair *pair)
{
    const struct text *a = pair->a->column.texts;
    const struct text *b = pair->b->column.texts;
    EACH_ROW(pair->selection, row, if (is_null_at(pair->nulls, row)) continue;
             pair->out[row] =
                 text_equal(a[row & pair->a->mask], b[row & pair->b->mask]) != pair->negated;);
}

static void less_text(const struct compared_pair *pair)
{
    const struct text *a = pair->a->column.texts;
    const struct text *b = pair->b->column.texts;
    EACH_ROW(pair->selection, row, if (is_null_at(pair->nulls, row)) continue;
             pair->out[row] = (text_compare(a[row & pair->a->mask], b[row & pair->b->mask]) < 0) !=
                              pair->negated;);
}

static void compare_list(const struct compared_pair *pair, bool equal)
{
    EACH_ROW(pair->selection, row, if (is_null_at(pair->nulls, row)) continue;
             const int order = column_compare(&pair->a->column, row, &pair->b->column, row);
             pair->out[row] = (equal ? order == 0 : order < 0) != pair->negated;);
}

static void pair_run(const struct compared_pair *pair, bool equal)
{
    switch ((enum type_kind)pair->a->column.type.kind) {
    case TYPE_NULL:
        return;
    case TYPE_BOOL:
        (equal ? equal_bool : less_bool)(pair);
        return;
    case TYPE_DOUBLE:
        (equal ? equal_double : less_double)(pair);
        return;
    case TYPE_TEXT:
        (equal ? equal_text : less_text)(pair);
        return;
    case TYPE_LIST_TEXT:
    case TYPE_LIST_INT:
        compare_list(pair, equal);
        return;
    case TYPE_INT:
    case TYPE_DECIMAL:
    case TYPE_DATE:
    case TYPE_TIMESTAMP:
        break;
    }
    (equal ? equal_int : less_int)(pair);
}

void compare_equal(const struct frame *frame, const struct operand *a, const struct operand *b,
                   const uint8_t *nulls, uint8_t *out)
{
    struct compared_pair pair = {frame->selection, a, b, nulls, out, false};
    pair_run(&pair, true);
}

static void compare_pair(struct compared_pair *pair, enum function_id function)
{
    bool greater = function == FUNCTION_GREATER || function == FUNCTION_LESS_EQUAL;
    pair->negated = function == FUNCTION_NOT_EQUAL || function == FUNCTION_LESS_EQUAL ||
                    function == FUNCTION_GREATER_EQUAL;
    if (greater) {
        const struct operand *a = pair->a;
        pair->a = pair->b;
        pair->b = a;
    }
    pair_run(pair, function == FUNCTION_EQUAL || function == FUNCTION_NOT_EQUAL);
}

static int64_t operand_key(const struct operand *operand)
{
    return operand->column.type.kind == TYPE_DOUBLE ? double_key(operand->constant.number)
                                                    : operand->constant.integer;
}

status compare_run(struct eval *eval, const struct frame *frame, struct column *out,
                   struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    enum function_id function = eval->expr->function;
    struct compared_pair pair = {frame->selection, &operands[0], &operands[1],
                                 out->nulls,       out->bools,   false};
    if (pair.a->mask == 0 && pair.b->mask != 0) {
        pair.a = &operands[1];
        pair.b = &operands[0];
        function = swapped(function);
    }
    struct type type = pair.a->column.type;
    if (pair.a->mask != 0 && pair.b->mask == 0 && (is_integer(type) || type.kind == TYPE_DOUBLE)) {
        mark_interval(frame->selection, &pair.a->column, interval_of(function, operand_key(pair.b)),
                      out->bools);
    } else {
        compare_pair(&pair, function);
    }
    return STATUS_OK;
}

/* --- The time of day. ---
 *
 * Texts of time_of_day() are in the order of the times. So a comparison with a constant text holds
 * for an interval of times, whose ends are found once; then no text is made for any row.
 */

#define CLOCK_MASK (((int64_t)1 << 37) - 1) /* Of a packed timestamp: hour to microsecond. */
static const int64_t DAY_MICROSECONDS = (int64_t)24 * 60 * 60 * 1000000;

static int64_t clock_pack(int64_t microseconds)
{
    int64_t seconds = microseconds / 1000000;
    return seconds / 3600 << 32 | seconds / 60 % 60 << 26 | seconds % 60 << 20 |
           microseconds % 1000000;
}

/* How many times of a day have a text that is less than `limit`, or not greater. */
static int64_t clock_count(struct text limit, bool or_equal)
{
    int64_t first = 0;
    int64_t end = DAY_MICROSECONDS;
    while (first < end) {
        int64_t middle = first + (end - first) / 2;
        char printed[TIMESTAMP_TEXT_SIZE];
        uint32_t size = (uint32_t)timestamp_print(printed, clock_pack(middle));
        enum { TIME_OFFSET = DATE_TEXT_SIZE + 1 };
        struct text time = {printed + TIME_OFFSET, size - TIME_OFFSET};
        if (text_compare(time, limit) < (or_equal ? 1 : 0)) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first;
}

static struct interval clock_interval(enum function_id function, struct text constant)
{
    int64_t first = 0;
    int64_t end = DAY_MICROSECONDS;
    bool is_equality = function == FUNCTION_EQUAL || function == FUNCTION_NOT_EQUAL;
    if (function == FUNCTION_GREATER) first = clock_count(constant, true);
    if (function == FUNCTION_GREATER_EQUAL || is_equality) first = clock_count(constant, false);
    if (function == FUNCTION_LESS) end = clock_count(constant, false);
    if (function == FUNCTION_LESS_EQUAL || is_equality) end = clock_count(constant, true);
    bool outside = function == FUNCTION_NOT_EQUAL;
    if (first == end && outside) return interval_between(0, CLOCK_MASK);
    if (first == end) return (struct interval){.empty = true};
    struct interval interval = interval_between(clock_pack(first), clock_pack(end - 1));
    interval.outside = outside;
    return interval;
}

status compare_prepare(struct eval *eval, struct arena *stage_arena, struct error *err)
{
    for (uint32_t i = 0; i < 2; i++) {
        const struct eval *clock = eval->args[i];
        const struct eval *constant = eval->args[1 - i];
        if (clock->expr->kind != EXPR_CALL || clock->expr->function != FUNCTION_TIME_OF_DAY ||
            clock->is_constant || !constant->is_constant || constant->constant.is_null) {
            continue;
        }
        struct interval *interval = arena_new(stage_arena, struct interval);
        if (interval == NULL) return kernel_no_memory(err);
        enum function_id function = eval->expr->function;
        *interval = clock_interval(i == 0 ? function : swapped(function), constant->constant.text);
        eval->state = interval;
    }
    return STATUS_OK;
}

static status filter_clock(struct eval *eval, const struct frame *frame, uint32_t *out_rows,
                           uint32_t *out_count, struct error *err)
{
    const struct interval interval = *(const struct interval *)eval->state;
    const struct eval *clock = eval->args[eval->args[0]->is_constant ? 1 : 0];
    struct selection selection = frame->selection;
    struct column column;
    TRY(eval_in_frame(clock->args[0], frame, &column, err));
    const uint8_t *nulls = column.nulls;
    const int64_t *values = column.ints;
    uint32_t count = 0;
    if (!interval.empty) KEEP(interval_has(interval, values[row] & CLOCK_MASK));
    *out_count = count;
    return STATUS_OK;
}

/* --- Filters. --- */

bool compare_can_filter(const struct eval *eval, const struct eval_context *context)
{
    enum function_id function = eval->expr->function;
    if (eval->state != NULL) return true;
    bool left = eval_constant(eval->args[0], context) != NULL;
    bool right = eval_constant(eval->args[1], context) != NULL;
    if (left == right) return false;
    struct type type = eval->args[left ? 1 : 0]->expr->type;
    bool is_text =
        type.kind == TYPE_TEXT && (function == FUNCTION_EQUAL || function == FUNCTION_NOT_EQUAL);
    return is_integer(type) || type.kind == TYPE_DOUBLE || is_text;
}

status compare_filter(struct eval *eval, const struct frame *frame, uint32_t *out_rows,
                      uint32_t *out_count, struct error *err)
{
    if (eval->state != NULL) return filter_clock(eval, frame, out_rows, out_count, err);
    enum function_id function = eval->expr->function;
    uint32_t constant_at = eval_constant(eval->args[0], frame->context) != NULL ? 0 : 1;
    struct operand constant;
    struct column column;
    TRY(operand_load(eval->args[constant_at], frame, &constant, err));
    TRY(eval_in_frame(eval->args[1 - constant_at], frame, &column, err));
    if (constant.is_null) {
        *out_count = 0;
        return STATUS_OK;
    }
    if (constant_at == 0) function = swapped(function);
    if (column.type.kind == TYPE_TEXT) {
        *out_count = keep_text(frame->selection, &column, constant.constant.text,
                               function == FUNCTION_EQUAL, out_rows);
    } else {
        *out_count = keep_interval(frame->selection, &column,
                                   interval_of(function, operand_key(&constant)), out_rows);
    }
    return STATUS_OK;
}
