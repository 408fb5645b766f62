/* SPDX-License-Identifier: Apache-2.0 */
/* constant.c - the few conversions a constant needs before anything runs.
 *
 * The rules of CAST live in exec/ for whole columns; what is here is the part without which an
 * expression could not be typed: literals and parameters taking the type of what they meet.
 */
#include "engine/sql/constant.h"

#include <math.h>

#include "engine/base/calendar.h"
#include "engine/base/number.h"

static int64_t power_of_ten(uint8_t exponent)
{
    int64_t power = 1;
    for (uint8_t i = 0; i < exponent; i++) {
        power *= 10;
    }
    return power;
}

static bool decimal_fits(int64_t value, uint8_t precision)
{
    int64_t bound = power_of_ten(precision);
    return value > -bound && value < bound;
}

/* Also rounds, half away from zero, when the scale shrinks. */
static bool decimal_rescale(int64_t *value, uint8_t from, struct type to)
{
    int64_t result = *value;
    if (to.scale >= from) {
        if (__builtin_mul_overflow(result, power_of_ten((uint8_t)(to.scale - from)), &result)) {
            return false;
        }
    } else {
        int64_t divisor = power_of_ten((uint8_t)(from - to.scale));
        int64_t rest = result % divisor;
        result /= divisor;
        if (rest >= divisor - rest) result++;
        if (-rest >= divisor + rest) result--;
    }
    if (!decimal_fits(result, to.precision)) return false;
    *value = result;
    return true;
}

static bool bool_parse(struct text text, bool *out)
{
    static const char *const names[2][5] = {{"false", "f", "no", "n", "0"},
                                            {"true", "t", "yes", "y", "1"}};
    for (int truth = 0; truth < 2; truth++) {
        for (int i = 0; i < 5; i++) {
            if (!text_equal_ignoring_case(text, text_of(names[truth][i]))) continue;
            *out = truth == 1;
            return true;
        }
    }
    return false;
}

static struct text trimmed(struct text text)
{
    const char *spaces = " \t\n\v\f\r";
    while (text.size > 0 && text.bytes[0] != '\0' && strchr(spaces, text.bytes[0]) != NULL) {
        text.bytes++;
        text.size--;
    }
    while (text.size > 0 && text.bytes[text.size - 1] != '\0' &&
           strchr(spaces, text.bytes[text.size - 1]) != NULL) {
        text.size--;
    }
    return text;
}

/* Reads what CAST of a column reads. */
static bool text_to(struct value *value, struct type to)
{
    if (to.kind == TYPE_TEXT) return true;
    struct text text = trimmed(value->text);
    switch ((enum type_kind)to.kind) {
    case TYPE_INT:
        return int_parse(text, &value->integer);
    case TYPE_DECIMAL:
        return decimal_parse(text, to.precision, to.scale, &value->integer);
    case TYPE_DOUBLE:
        return double_parse(text, &value->number);
    case TYPE_DATE:
        if (date_parse(text, &value->integer)) return true;
        if (!timestamp_parse(text, &value->integer)) return false;
        value->integer = timestamp_date(value->integer);
        return true;
    case TYPE_TIMESTAMP:
        if (timestamp_parse(text, &value->integer)) return true;
        if (!date_parse(text, &value->integer)) return false;
        value->integer = timestamp_of_date(value->integer);
        return true;
    case TYPE_BOOL:
        return bool_parse(text, &value->truth);
    case TYPE_TEXT:
    case TYPE_NULL:
    case TYPE_LIST_TEXT:
    case TYPE_LIST_INT:
        break;
    }
    return false;
}

bool constant_convert(struct value *value, struct type from, struct type to)
{
    if (value->is_null || type_equal(from, to)) return true;
    if (from.kind == TYPE_TEXT) return text_to(value, to);
    if (from.kind == TYPE_INT && to.kind == TYPE_DECIMAL) {
        return decimal_rescale(&value->integer, 0, to);
    }
    if (from.kind == TYPE_INT && to.kind == TYPE_DOUBLE) {
        value->number = (double)value->integer;
        return true;
    }
    if (from.kind == TYPE_DECIMAL && to.kind == TYPE_DECIMAL) {
        return decimal_rescale(&value->integer, from.scale, to);
    }
    if (from.kind == TYPE_DECIMAL && to.kind == TYPE_DOUBLE) {
        value->number = decimal_to_double(value->integer, from.scale);
        return true;
    }
    if (from.kind == TYPE_DATE && to.kind == TYPE_TIMESTAMP) {
        value->integer = timestamp_of_date(value->integer);
        return true;
    }
    return false;
}

bool type_common(struct type a, struct type b, struct type *out)
{
    if (a.kind == TYPE_NULL || type_equal(a, b)) {
        *out = b;
        /* Of two DECIMALs of one scale, the wider. */
        if (a.kind == TYPE_DECIMAL && a.precision > b.precision) *out = a;
        return true;
    }
    if (b.kind == TYPE_NULL) {
        *out = a;
        return true;
    }
    if (type_is_number(a) && type_is_number(b)) {
        if (a.kind == TYPE_DOUBLE || b.kind == TYPE_DOUBLE) {
            *out = TYPE(DOUBLE);
        } else {
            uint8_t scale = a.kind == TYPE_DECIMAL ? a.scale : 0;
            if (b.kind == TYPE_DECIMAL && b.scale > scale) scale = b.scale;
            *out = (struct type){TYPE_DECIMAL, DECIMAL_PRECISION_MAX, scale};
        }
        return true;
    }
    bool a_is_moment = a.kind == TYPE_DATE || a.kind == TYPE_TIMESTAMP;
    bool b_is_moment = b.kind == TYPE_DATE || b.kind == TYPE_TIMESTAMP;
    if (a_is_moment && b_is_moment) {
        *out = TYPE(TIMESTAMP);
        return true;
    }
    return false;
}
