/* SPDX-License-Identifier: Apache-2.0 */
/* function_number.c - arithmetic.
 *
 * The loops compute every selected row, those that are NULL too, and only note that something
 * overflowed; that keeps them free of branches. If something did and there are NULLs, the rows that
 * are not NULL are tried again one by one: it may have been an undefined value.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/assert.h"
#include "engine/base/number.h"
#include "engine/exec/expr/kernels.h"

#define DECIMAL_MAX 999999999999999999

struct number_pair {
    struct selection selection;
    const struct operand *a;
    const struct operand *b;
    struct column *out;
};

/* Returns whether a row overflowed. */
typedef bool pair_loop(const struct number_pair *pair);

/* The statements see the operands as x and y, the result's place as out[row], and turn the sign bit
 * of `bad` on when the row overflowed. */
#define PAIR_LOOPS(name, type, field, ...)                                                         \
    static bool name(const struct number_pair *pair)                                               \
    {                                                                                              \
        const type *a = pair->a->column.field;                                                     \
        const type *b = pair->b->column.field;                                                     \
        const uint32_t mask_a = pair->a->mask;                                                     \
        const uint32_t mask_b = pair->b->mask;                                                     \
        const uint32_t count = pair->selection.count;                                              \
        type *out = pair->out->field;                                                              \
        uint64_t bad = 0;                                                                          \
        if (pair->selection.rows != NULL || (mask_a | mask_b) == 0) {                              \
            for (uint32_t i = 0; i < count; i++) {                                                 \
                const uint32_t row = selection_row(pair->selection, i);                            \
                const type x = a[row & mask_a];                                                    \
                const type y = b[row & mask_b];                                                    \
                __VA_ARGS__                                                                        \
            }                                                                                      \
        } else if (mask_b == 0) {                                                                  \
            const type y = b[0];                                                                   \
            for (uint32_t row = 0; row < count; row++) {                                           \
                const type x = a[row];                                                             \
                __VA_ARGS__                                                                        \
            }                                                                                      \
        } else if (mask_a == 0) {                                                                  \
            const type x = a[0];                                                                   \
            for (uint32_t row = 0; row < count; row++) {                                           \
                const type y = b[row];                                                             \
                __VA_ARGS__                                                                        \
            }                                                                                      \
        } else {                                                                                   \
            for (uint32_t row = 0; row < count; row++) {                                           \
                const type x = a[row];                                                             \
                const type y = b[row];                                                             \
                __VA_ARGS__                                                                        \
            }                                                                                      \
        }                                                                                          \
        return bad >> 63 != 0;                                                                     \
    }

#define SIGN_BIT ((uint64_t)1 << 63)

static inline uint64_t bad_if(bool condition)
{
    return condition ? SIGN_BIT : 0;
}

static inline uint64_t decimal_bad(int64_t value)
{
    return bad_if((uint64_t)value + DECIMAL_MAX > 2 * (uint64_t)DECIMAL_MAX);
}

/* A sum's sign differs from both operands' exactly when it overflowed. */
PAIR_LOOPS(add_int, int64_t, ints, const uint64_t r = (uint64_t)x + (uint64_t)y;
           bad |= ((uint64_t)x ^ r) & ((uint64_t)y ^ r); out[row] = (int64_t)r;)
PAIR_LOOPS(subtract_int, int64_t, ints, const uint64_t r = (uint64_t)x - (uint64_t)y;
           bad |= ((uint64_t)x ^ (uint64_t)y) & ((uint64_t)x ^ r); out[row] = (int64_t)r;)
PAIR_LOOPS(multiply_int, int64_t, ints, int64_t r; bad |= bad_if(__builtin_mul_overflow(x, y, &r));
           out[row] = r;)
PAIR_LOOPS(add_decimal, int64_t, ints, const int64_t r = (int64_t)((uint64_t)x + (uint64_t)y);
           bad |= decimal_bad(r); out[row] = r;)
PAIR_LOOPS(subtract_decimal, int64_t, ints, const int64_t r = (int64_t)((uint64_t)x - (uint64_t)y);
           bad |= decimal_bad(r); out[row] = r;)
PAIR_LOOPS(multiply_decimal, int64_t, ints, int64_t r;
           bad |= bad_if(__builtin_mul_overflow(x, y, &r)); bad |= decimal_bad(r); out[row] = r;)
PAIR_LOOPS(add_double, double, doubles, out[row] = double_normal(x + y);)
PAIR_LOOPS(subtract_double, double, doubles, out[row] = double_normal(x - y);)
PAIR_LOOPS(multiply_double, double, doubles, out[row] = double_normal(x * y);)
PAIR_LOOPS(divide_double, double, doubles, out[row] = double_normal(x / y);)
PAIR_LOOPS(modulo_double, double, doubles, out[row] = double_normal(y == 0.0 ? 0.0 : fmod(x, y));)
/* Division of the least INT by -1 overflows; the hardware may trap on it, and on zero. */
PAIR_LOOPS(divide_int, int64_t, ints, bad |= bad_if(x == INT64_MIN && y == -1);
           out[row] = y == 0    ? 0
                      : y == -1 ? (int64_t)(0 - (uint64_t)x)
                                : x / y;)
PAIR_LOOPS(modulo_int, int64_t, ints, out[row] = y == 0 || y == -1 ? 0 : x % y;)

static status run_checked(struct eval *eval, pair_loop *loop, struct number_pair *pair,
                          struct error *err)
{
    if (LIKELY(!loop(pair))) return STATUS_OK;
    const uint8_t *nulls = pair->out->nulls;
    if (nulls == NULL) return kernel_overflow(eval, err);
    struct number_pair single = *pair;
    for (uint32_t i = 0; i < pair->selection.count; i++) {
        uint32_t row = selection_row(pair->selection, i);
        single.selection = (struct selection){&row, 1};
        if (nulls[row] == 0 && loop(&single)) return kernel_overflow(eval, err);
    }
    return STATUS_OK;
}

static pair_loop *arithmetic_loop(enum function_id function, struct type type)
{
    static pair_loop *const loops[3][3] = {
        {add_int, add_decimal, add_double},
        {subtract_int, subtract_decimal, subtract_double},
        {multiply_int, multiply_decimal, multiply_double},
    };
    ASSERT(type_is_number(type));
    size_t column = type.kind == TYPE_INT ? 0 : type.kind == TYPE_DECIMAL ? 1 : 2;
    return loops[function - FUNCTION_ADD][column];
}

_Static_assert(FUNCTION_SUBTRACT == FUNCTION_ADD + 1 && FUNCTION_MULTIPLY == FUNCTION_ADD + 2,
               "the table of loops is indexed by function");

status number_arithmetic(struct eval *eval, const struct frame *frame, struct column *out,
                         struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    struct number_pair pair = {frame->selection, &operands[0], &operands[1], out};
    return run_checked(eval, arithmetic_loop(eval->expr->function, eval->expr->type), &pair, err);
}

/* --- Division: by zero is NULL. --- */

static status null_where_zero(const struct frame *frame, const struct operand *divisor,
                              struct column *out, struct error *err)
{
    const bool is_double = divisor->column.type.kind == TYPE_DOUBLE;
    const uint32_t mask = divisor->mask;
    bool any = false;
    if (is_double) {
        const double *values = divisor->column.doubles;
        EACH_ROW(frame->selection, row, any |= values[row & mask] == 0.0;);
    } else {
        const int64_t *values = divisor->column.ints;
        EACH_ROW(frame->selection, row, any |= values[row & mask] == 0;);
    }
    if (!any) return STATUS_OK;
    TRY(kernel_own_nulls(frame, out, err));
    uint8_t *nulls = out->nulls;
    if (is_double) {
        const double *values = divisor->column.doubles;
        EACH_ROW(frame->selection, row, nulls[row] |= values[row & mask] == 0.0;);
    } else {
        const int64_t *values = divisor->column.ints;
        EACH_ROW(frame->selection, row, nulls[row] |= values[row & mask] == 0;);
    }
    return STATUS_OK;
}

static status divide(struct eval *eval, const struct frame *frame, pair_loop *loop,
                     struct column *out, struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    TRY(null_where_zero(frame, &operands[1], out, err));
    struct number_pair pair = {frame->selection, &operands[0], &operands[1], out};
    return run_checked(eval, loop, &pair, err);
}

status number_divide(struct eval *eval, const struct frame *frame, struct column *out,
                     struct error *err)
{
    return divide(eval, frame, divide_double, out, err);
}

status number_integer_divide(struct eval *eval, const struct frame *frame, struct column *out,
                             struct error *err)
{
    return divide(eval, frame, divide_int, out, err);
}

status number_modulo(struct eval *eval, const struct frame *frame, struct column *out,
                     struct error *err)
{
    bool is_double = eval->expr->type.kind == TYPE_DOUBLE;
    return divide(eval, frame, is_double ? modulo_double : modulo_int, out, err);
}

/* --- One operand. --- */

/* 0 - x and |x| fail for the same value alone, and only for INT. */
static status refuse_least(struct eval *eval, const struct frame *frame,
                           const struct operand *operand, const uint8_t *nulls, struct error *err)
{
    const int64_t *in = operand->column.ints;
    const uint32_t mask = operand->mask;
    bool bad = false;
    EACH_ROW(frame->selection, row, bad |= in[row & mask] == INT64_MIN && !is_null_at(nulls, row););
    return bad ? kernel_overflow(eval, err) : STATUS_OK;
}

status number_negate(struct eval *eval, const struct frame *frame, struct column *out,
                     struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    const uint32_t mask = operands[0].mask;
    if (out->type.kind == TYPE_DOUBLE) {
        const double *in = operands[0].column.doubles;
        EACH_ROW(frame->selection, row, out->doubles[row] = double_normal(-in[row & mask]););
        return STATUS_OK;
    }
    TRY(refuse_least(eval, frame, &operands[0], out->nulls, err));
    const int64_t *in = operands[0].column.ints;
    EACH_ROW(frame->selection, row, out->ints[row] = (int64_t)(0 - (uint64_t)in[row & mask]););
    return STATUS_OK;
}

status number_abs(struct eval *eval, const struct frame *frame, struct column *out,
                  struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    const uint32_t mask = operands[0].mask;
    if (out->type.kind == TYPE_DOUBLE) {
        const double *in = operands[0].column.doubles;
        EACH_ROW(frame->selection, row, out->doubles[row] = double_normal(fabs(in[row & mask])););
        return STATUS_OK;
    }
    TRY(refuse_least(eval, frame, &operands[0], out->nulls, err));
    const int64_t *in = operands[0].column.ints;
    EACH_ROW(frame->selection, row, const uint64_t x = (uint64_t)in[row & mask];
             out->ints[row] = (int64_t)(x >> 63 != 0 ? 0 - x : x););
    return STATUS_OK;
}

static status root(const struct frame *frame, const struct operand *operand, struct column *out,
                   struct error *err)
{
    const double *in = operand->column.doubles;
    const uint32_t mask = operand->mask;
    bool any_negative = false;
    EACH_ROW(frame->selection, row, any_negative |= in[row & mask] < 0.0;
             out->doubles[row] = double_normal(sqrt(in[row & mask])););
    if (!any_negative) return STATUS_OK;
    TRY(kernel_own_nulls(frame, out, err));
    EACH_ROW(frame->selection, row, out->nulls[row] |= in[row & mask] < 0.0;);
    return STATUS_OK;
}

status number_unary(struct eval *eval, const struct frame *frame, struct column *out,
                    struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    const double *in = operands[0].column.doubles;
    const uint32_t mask = operands[0].mask;
    switch (eval->expr->function) {
    case FUNCTION_FLOOR:
        EACH_ROW(frame->selection, row, out->doubles[row] = double_normal(floor(in[row & mask])););
        return STATUS_OK;
    case FUNCTION_CEIL:
        EACH_ROW(frame->selection, row, out->doubles[row] = double_normal(ceil(in[row & mask])););
        return STATUS_OK;
    default:
        return root(frame, &operands[0], out, err);
    }
}

/* --- Rounding. --- */

enum { EXACT_POWERS = 22, POWER_MAX = 308 };

/* 10^exponent. Not by pow(), whose last bit depends on the machine. */
static double power_of_ten(int64_t exponent)
{
    if (exponent <= EXACT_POWERS) return number_double_powers[exponent];
    if (exponent > POWER_MAX) return HUGE_VAL;
    char digits[8];
    (void)snprintf(digits, sizeof digits, "1e%d", (int)exponent); /* Always fits. */
    return strtod(digits, NULL);
}

static double round_to(double value, int64_t digits, double power)
{
    if (digits >= 0) {
        double rounded = round(value * power) / power;
        return isfinite(rounded) ? rounded : value; /* Too many digits: nothing to round. */
    }
    double rounded = round(value / power) * power;
    return isfinite(rounded) ? rounded : isfinite(value) ? 0.0 : value;
}

status number_round(struct eval *eval, const struct frame *frame, struct column *out,
                    struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    const double *in = operands[0].column.doubles;
    const uint32_t mask = operands[0].mask;
    if (eval->arg_count == 1) {
        EACH_ROW(frame->selection, row, out->doubles[row] = double_normal(round(in[row & mask])););
        return STATUS_OK;
    }
    int64_t known_digits = 0;
    double power = 1.0;
    EACH_ROW(
        frame->selection, row, if (is_null_at(out->nulls, row)) continue;
        const int64_t digits = operands[1].column.ints[row & operands[1].mask];
        if (digits != known_digits) {
            known_digits = digits;
            /* Bounded before negation: beyond it is infinity in any case. */
            power = power_of_ten(digits < -POWER_MAX ? POWER_MAX + 1
                                 : digits < 0        ? -digits
                                                     : digits);
        } out->doubles[row] = double_normal(round_to(in[row & mask], digits, power)););
    return STATUS_OK;
}
