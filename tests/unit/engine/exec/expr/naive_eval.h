/* SPDX-License-Identifier: Apache-2.0 */
/* naive_eval.h - expressions one value at a time, as plainly as they can be written.
 *
 * The model that test_eval.c compares the kernels with. It shares with them only the readers and
 * printers of base/. Texts it makes live in an arena of the test.
 */
#ifndef UNIT_NAIVE_EVAL_H
#define UNIT_NAIVE_EVAL_H

#include <math.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/calendar.h"
#include "engine/base/int128.h"
#include "engine/base/number.h"
#include "engine/data/column.h"
#include "engine/exec/expr/sentiment.h"
#include "engine/plan/expr.h"

enum { NAIVE_ARGS_MAX = 16 };

struct naive_cell {
    bool is_null;
    bool truth;
    int64_t integer;
    double number;
    struct text text;
    const struct column *lists; /* Of a list: where it stands. */
    struct list list;
};

struct naive {
    const struct batch *batch;
    const struct value *scalars;
    struct arena *arena;
    bool failed; /* An error was due. */
};

static const struct naive_cell cell_null = {.is_null = true};

static struct naive_cell cell_bool(bool truth)
{
    return (struct naive_cell){.truth = truth};
}

static struct naive_cell cell_int(int64_t integer)
{
    return (struct naive_cell){.integer = integer};
}

static struct naive_cell cell_double(double number)
{
    return (struct naive_cell){.number = number == 0.0 ? 0.0 : number};
}

static struct naive_cell cell_text(struct text text)
{
    return (struct naive_cell){.text = text};
}

static struct naive_cell cell_at(const struct column *column, uint32_t row)
{
    if (column_is_null(column, row) || column->type.kind == TYPE_NULL) return cell_null;
    switch ((enum type_kind)column->type.kind) {
    case TYPE_BOOL:
        return cell_bool(column->bools[row] != 0);
    case TYPE_DOUBLE:
        return (struct naive_cell){.number = column->doubles[row]};
    case TYPE_TEXT:
        return cell_text(column->texts[row]);
    case TYPE_LIST_TEXT:
    case TYPE_LIST_INT:
        return (struct naive_cell){.lists = column, .list = column->lists[row]};
    default:
        return cell_int(column->ints[row]);
    }
}

static struct naive_cell cell_of_value(const struct value *value, struct type type)
{
    if (value->is_null || type.kind == TYPE_NULL) return cell_null;
    if (type.kind == TYPE_BOOL) return cell_bool(value->truth);
    if (type.kind == TYPE_DOUBLE) return (struct naive_cell){.number = value->number};
    if (type.kind == TYPE_TEXT) return cell_text(value->text);
    return cell_int(value->integer);
}

static int cell_compare(struct type type, struct naive_cell a, struct naive_cell b)
{
    switch ((enum type_kind)type.kind) {
    case TYPE_BOOL:
        return a.truth - b.truth;
    case TYPE_DOUBLE:
        if (isnan(a.number) || isnan(b.number)) return !!isnan(a.number) - !!isnan(b.number);
        return a.number < b.number ? -1 : a.number > b.number;
    case TYPE_TEXT: {
        for (uint32_t i = 0; i < a.text.size && i < b.text.size; i++) {
            int difference = (unsigned char)a.text.bytes[i] - (unsigned char)b.text.bytes[i];
            if (difference != 0) return difference;
        }
        return a.text.size < b.text.size ? -1 : a.text.size > b.text.size;
    }
    case TYPE_LIST_TEXT:
    case TYPE_LIST_INT: {
        for (uint32_t i = 0; i < a.list.count && i < b.list.count; i++) {
            int order = cell_compare(type_element(type), cell_at(a.lists->child, a.list.first + i),
                                     cell_at(b.lists->child, b.list.first + i));
            if (order != 0) return order;
        }
        return a.list.count < b.list.count ? -1 : a.list.count > b.list.count;
    }
    default:
        return a.integer < b.integer ? -1 : a.integer > b.integer;
    }
}

static struct naive_cell naive_run(struct naive *naive, const struct expr *expr, uint32_t row);

/* --- Logic and choice. --- */

static struct naive_cell naive_chain(struct naive *naive, const struct expr *expr, uint32_t row,
                                     bool decisive)
{
    bool unknown = false;
    for (uint32_t i = 0; i < expr->arg_count; i++) {
        struct naive_cell cell = naive_run(naive, expr->args[i], row);
        if (cell.is_null) {
            unknown = true;
        } else if (cell.truth == decisive) {
            return cell_bool(decisive);
        }
    }
    return unknown ? cell_null : cell_bool(!decisive);
}

static struct naive_cell naive_case(struct naive *naive, const struct expr *expr, uint32_t row)
{
    uint32_t i = 0;
    for (; i + 1 < expr->arg_count; i += 2) {
        struct naive_cell when = naive_run(naive, expr->args[i], row);
        if (!when.is_null && when.truth) return naive_run(naive, expr->args[i + 1], row);
    }
    return i < expr->arg_count ? naive_run(naive, expr->args[i], row) : cell_null;
}

static struct naive_cell naive_extreme(const struct expr *expr, const struct naive_cell *args)
{
    struct naive_cell best = cell_null;
    int sign = expr->function == FUNCTION_LEAST ? 1 : -1;
    for (uint32_t i = 0; i < expr->arg_count; i++) {
        if (args[i].is_null) continue;
        if (best.is_null || cell_compare(expr->type, args[i], best) * sign < 0) best = args[i];
    }
    return best;
}

static struct naive_cell naive_in(const struct expr *expr, const struct naive_cell *args)
{
    bool unknown = args[0].is_null;
    for (uint32_t i = 1; i < expr->arg_count; i++) {
        if (args[0].is_null || args[i].is_null) {
            unknown = true;
        } else if (cell_compare(expr->args[0]->type, args[0], args[i]) == 0) {
            return cell_bool(true);
        }
    }
    return unknown ? cell_null : cell_bool(false);
}

/* --- Numbers. --- */

/* Wraps around: clang's runtime has no checked multiplication of this width. */
static int128 naive_multiply(int128 a, int128 b)
{
    return (int128)((uint128)a * (uint128)b);
}

static struct naive_cell naive_fit(struct naive *naive, int128 value, struct type type)
{
    int128 limit = type.kind == TYPE_INT ? (int128)INT64_MAX : (int128)999999999999999999;
    int128 least = type.kind == TYPE_INT ? (int128)INT64_MIN : -limit;
    if (value < least || value > limit) {
        naive->failed = true;
        return cell_null;
    }
    return cell_int((int64_t)value);
}

static struct naive_cell naive_arithmetic(struct naive *naive, const struct expr *expr,
                                          const struct naive_cell *args)
{
    bool is_double = expr->args[0]->type.kind == TYPE_DOUBLE;
    double x = args[0].number;
    double y = expr->arg_count > 1 ? args[1].number : 0.0;
    int128 i = args[0].integer;
    int128 j = expr->arg_count > 1 ? args[1].integer : 0;
    switch (expr->function) {
    case FUNCTION_ADD:
        return is_double ? cell_double(x + y) : naive_fit(naive, i + j, expr->type);
    case FUNCTION_SUBTRACT:
        return is_double ? cell_double(x - y) : naive_fit(naive, i - j, expr->type);
    case FUNCTION_MULTIPLY:
        return is_double ? cell_double(x * y) : naive_fit(naive, naive_multiply(i, j), expr->type);
    case FUNCTION_DIVIDE:
        return y == 0.0 ? cell_null : cell_double(x / y);
    case FUNCTION_INTEGER_DIVIDE:
        return j == 0 ? cell_null : naive_fit(naive, i / j, expr->type);
    case FUNCTION_MODULO:
        if (is_double) return y == 0.0 ? cell_null : cell_double(fmod(x, y));
        return j == 0 ? cell_null : naive_fit(naive, i % j, expr->type);
    case FUNCTION_NEGATE:
        return is_double ? cell_double(-x) : naive_fit(naive, -i, expr->type);
    case FUNCTION_ABS:
        return is_double ? cell_double(fabs(x)) : naive_fit(naive, i < 0 ? -i : i, expr->type);
    case FUNCTION_FLOOR:
        return cell_double(floor(x));
    case FUNCTION_CEIL:
        return cell_double(ceil(x));
    case FUNCTION_SQRT:
        return x < 0.0 ? cell_null : cell_double(sqrt(x));
    default: { /* FUNCTION_ROUND, with few digits. */
        double power = j < 0 ? pow(10.0, (double)-j) : pow(10.0, (double)j);
        double rounded = j < 0 ? round(x / power) * power : round(x * power) / power;
        return cell_double(isfinite(rounded) ? rounded : x);
    }
    }
}

/* --- Texts. --- */

/* The byte offsets where characters begin, and the size at the end; returns how many characters. */
static uint32_t naive_characters(struct text text, uint32_t offsets[])
{
    uint32_t count = 0;
    for (uint32_t at = 0; at < text.size;) {
        offsets[count++] = at;
        unsigned char lead = (unsigned char)text.bytes[at];
        uint32_t more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
        uint32_t code = lead & (more == 3 ? 7u : more == 2 ? 15u : more == 1 ? 31u : 127u);
        bool good = more > 0 && lead < 0xf8 && more < text.size - at;
        for (uint32_t i = 1; good && i <= more; i++) {
            unsigned char next = (unsigned char)text.bytes[at + i];
            good = next >> 6 == 2;
            code = code << 6 | (next & 63u);
        }
        static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
        good = good && code >= least[more] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
        at += good ? more + 1 : 1;
    }
    offsets[count] = text.size;
    return count;
}

enum { NAIVE_TEXT_MAX = 600 };

static struct naive_cell naive_substring(struct text text, int64_t from, int64_t count)
{
    uint32_t offsets[NAIVE_TEXT_MAX];
    int64_t length = naive_characters(text, offsets);
    if (from == 0 && count < 0) return cell_text(TEXT_LITERAL(""));
    /* Positions from 1, also where there is no text; the end is not part of it. */
    int64_t exchange = from < 0 ? length + from + 1 : from;
    int64_t first = count < 0 ? exchange + count : exchange;
    int64_t end = count < 0 ? exchange : exchange + count;
    if (first < 1) first = 1;
    if (end > length + 1) end = length + 1;
    if (first >= end) return cell_text(TEXT_LITERAL(""));
    uint32_t start = offsets[first - 1];
    return cell_text((struct text){text.bytes + start, offsets[end - 1] - start});
}

static bool naive_at(struct text text, uint32_t at, struct text needle)
{
    for (uint32_t i = 0; i < needle.size; i++) {
        if (at + i >= text.size || text.bytes[at + i] != needle.bytes[i]) return false;
    }
    return true;
}

static bool naive_contains(struct text text, struct text needle)
{
    for (uint32_t at = 0; at + needle.size <= text.size; at++) {
        if (naive_at(text, at, needle)) return true;
    }
    return false;
}

static struct naive_cell naive_replace(struct naive *naive, struct text text, struct text needle,
                                       struct text by)
{
    char *out = arena_alloc(naive->arena, (size_t)text.size * (by.size + 1u) + 1, 1);
    uint32_t size = 0;
    for (uint32_t at = 0; at < text.size;) {
        if (needle.size > 0 && naive_at(text, at, needle)) {
            for (uint32_t i = 0; i < by.size; i++) {
                out[size++] = by.bytes[i];
            }
            at += needle.size;
        } else {
            out[size++] = text.bytes[at++];
        }
    }
    return cell_text((struct text){out, size});
}

static double naive_polarity(struct text text)
{
    struct sentiment_scratch scratch = {0};
    return sentiment_polarity(sentiment_score(&sentiment_builtin, &scratch, text));
}

static struct naive_cell naive_split(struct text text, struct text separator, int64_t index)
{
    struct text parts[NAIVE_TEXT_MAX];
    uint32_t offsets[NAIVE_TEXT_MAX];
    int64_t count = 0;
    if (text.size == 0) return cell_text(TEXT_LITERAL(""));
    if (separator.size == 0) {
        count = naive_characters(text, offsets);
        for (int64_t i = 0; i < count; i++) {
            parts[i] = (struct text){text.bytes + offsets[i], offsets[i + 1] - offsets[i]};
        }
    } else {
        uint32_t start = 0;
        for (uint32_t at = 0; at < text.size;) {
            if (naive_at(text, at, separator)) {
                parts[count++] = (struct text){text.bytes + start, at - start};
                at = start = at + separator.size;
            } else {
                at++;
            }
        }
        parts[count++] = (struct text){text.bytes + start, text.size - start};
    }
    if (index < 0) index = count + index + 1;
    return cell_text(index < 1 || index > count ? TEXT_LITERAL("") : parts[index - 1]);
}

static char naive_lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

/* By recursion over characters; the texts are short. */
static bool naive_like(struct text text, const uint32_t *offsets, uint32_t left,
                       struct text pattern, bool any_case)
{
    if (pattern.size == 0) return left == 0;
    struct text rest = {pattern.bytes + 1, pattern.size - 1};
    if (pattern.bytes[0] == '%') {
        for (uint32_t skip = 0; skip <= left; skip++) {
            if (naive_like(text, offsets + skip, left - skip, rest, any_case)) return true;
        }
        return false;
    }
    if (left == 0) return false;
    if (pattern.bytes[0] == '_') return naive_like(text, offsets + 1, left - 1, rest, any_case);
    uint32_t size = offsets[1] - offsets[0];
    for (uint32_t i = 0; i < size; i++) {
        char a = text.bytes[offsets[0] + i];
        if (i >= pattern.size) return false;
        char b = pattern.bytes[i];
        if (a != b && !(any_case && naive_lower(a) == naive_lower(b))) return false;
    }
    rest = (struct text){pattern.bytes + size, pattern.size - size};
    return naive_like(text, offsets + 1, left - 1, rest, any_case);
}

static struct naive_cell naive_case_change(struct naive *naive, struct text text, bool to_lower)
{
    char *out = arena_alloc(naive->arena, text.size + 1u, 1);
    for (uint32_t i = 0; i < text.size; i++) {
        char c = text.bytes[i];
        if (to_lower && c >= 'A' && c <= 'Z') c = (char)(c + 32);
        if (!to_lower && c >= 'a' && c <= 'z') c = (char)(c - 32);
        out[i] = c;
    }
    return cell_text((struct text){out, text.size});
}

static struct naive_cell naive_concat(struct naive *naive, const struct expr *expr,
                                      const struct naive_cell *args)
{
    size_t size = 0;
    for (uint32_t i = 0; i < expr->arg_count; i++) {
        size += args[i].text.size;
    }
    char *out = arena_alloc(naive->arena, size + 1, 1);
    size = 0;
    for (uint32_t i = 0; i < expr->arg_count; i++) {
        for (uint32_t j = 0; j < args[i].text.size; j++) {
            out[size++] = args[i].text.bytes[j];
        }
    }
    return cell_text((struct text){out, (uint32_t)size});
}

static struct text naive_trim(struct text text, const char *spaces)
{
    while (text.size > 0 && strchr(spaces, text.bytes[0]) != NULL) {
        text.bytes++;
        text.size--;
    }
    while (text.size > 0 && strchr(spaces, text.bytes[text.size - 1]) != NULL) {
        text.size--;
    }
    return text;
}

static struct naive_cell naive_text(struct naive *naive, const struct expr *expr,
                                    const struct naive_cell *args)
{
    struct text text = args[0].text;
    struct text other = expr->arg_count > 1 ? args[1].text : (struct text){0};
    uint32_t offsets[NAIVE_TEXT_MAX];
    switch (expr->function) {
    case FUNCTION_CONCAT:
        return naive_concat(naive, expr, args);
    case FUNCTION_LOWER:
    case FUNCTION_UPPER:
        return naive_case_change(naive, text, expr->function == FUNCTION_LOWER);
    case FUNCTION_TRIM:
        return cell_text(naive_trim(text, " "));
    case FUNCTION_LENGTH:
        return cell_int(naive_characters(text, offsets));
    case FUNCTION_SUBSTRING:
        return naive_substring(text, args[1].integer,
                               expr->arg_count > 2 ? args[2].integer : 1000000);
    case FUNCTION_CONTAINS:
        return cell_bool(naive_contains(text, other));
    case FUNCTION_STARTS_WITH:
        return cell_bool(naive_at(text, 0, other));
    case FUNCTION_ENDS_WITH:
        return cell_bool(other.size <= text.size && naive_at(text, text.size - other.size, other));
    case FUNCTION_REPLACE:
        return naive_replace(naive, text, other, args[2].text);
    case FUNCTION_SPLIT_PART:
        return naive_split(text, other, args[2].integer);
    case FUNCTION_POLARITY:
        return cell_double(naive_polarity(text));
    case FUNCTION_SENTIMENT:
        return cell_text(
            sentiment_label(naive_polarity(text), expr->arg_count > 1 ? args[1].number : -1.0));
    default:
        return cell_bool(naive_like(text, offsets, naive_characters(text, offsets), other,
                                    expr->function == FUNCTION_ILIKE));
    }
}

/* --- Dates and lists. --- */

static struct naive_cell naive_calendar(struct naive *naive, const struct expr *expr,
                                        const struct naive_cell *args)
{
    int64_t moment = args[0].integer;
    if (expr->args[0]->type.kind == TYPE_DATE) moment = timestamp_of_date(moment);
    int64_t date = timestamp_date(moment);
    switch (expr->function) {
    case FUNCTION_YEAR:
        return cell_int(calendar_year(date));
    case FUNCTION_MONTH:
        return cell_int(calendar_month(date));
    case FUNCTION_DAY:
        return cell_int(calendar_day(date));
    case FUNCTION_HOUR:
        return cell_int(timestamp_hour(moment));
    case FUNCTION_MINUTE:
        return cell_int(timestamp_minute(moment));
    case FUNCTION_SECOND:
        return cell_int(timestamp_second(moment));
    default: {
        char *out = arena_alloc(naive->arena, 100, 1);
        return cell_text((struct text){out, (uint32_t)date_format(out, 100, args[1].text, moment)});
    }
    }
}

static struct naive_cell naive_list(const struct expr *expr, const struct naive_cell *args)
{
    struct list list = args[0].list;
    const struct column *child = args[0].lists->child;
    if (expr->function == FUNCTION_LIST_LENGTH) return cell_int(list.count);
    if (expr->function == FUNCTION_LIST_ELEMENT) {
        for (uint32_t i = 0; i < list.count; i++) {
            if ((int64_t)i + 1 == args[1].integer || (int64_t)i - list.count == args[1].integer) {
                return cell_at(child, list.first + i);
            }
        }
        return cell_null;
    }
    for (uint32_t i = 0; i < list.count; i++) {
        if (cell_compare(child->type, cell_at(child, list.first + i), args[1]) == 0) {
            return cell_bool(true);
        }
    }
    return cell_bool(false);
}

/* --- Casts. --- */

static int128 naive_rescale(int128 value, uint32_t from, uint32_t to)
{
    for (; from < to; from++) {
        value = naive_multiply(value, 10);
    }
    int128 power = 1;
    for (; from > to; from--) {
        power = naive_multiply(power, 10);
    }
    if (power == 1) return value;
    return value < 0 ? -((-value + power / 2) / power) : (value + power / 2) / power;
}

static struct naive_cell naive_parse(struct naive *naive, struct text text, struct type to)
{
    struct naive_cell cell = {0};
    bool good = false;
    text = naive_trim(text, " \t\n\v\f\r");
    if (to.kind == TYPE_INT) good = int_parse(text, &cell.integer);
    if (to.kind == TYPE_DECIMAL) {
        good = decimal_parse(text, to.precision, to.scale, &cell.integer);
    }
    if (to.kind == TYPE_DOUBLE) good = double_parse(text, &cell.number);
    if (to.kind == TYPE_DATE) good = date_parse(text, &cell.integer);
    if (to.kind == TYPE_TIMESTAMP) good = timestamp_parse(text, &cell.integer);
    if (to.kind == TYPE_BOOL) {
        cell.truth = text.size > 0 && strchr("tTyY1", text.bytes[0]) != NULL;
        good = text.size > 0;
    }
    naive->failed |= !good;
    return cell;
}

static size_t naive_print(char *out, struct naive_cell cell, struct type type)
{
    switch ((enum type_kind)type.kind) {
    case TYPE_BOOL:
        strcpy(out, cell.truth ? "true" : "false");
        return strlen(out);
    case TYPE_INT:
        return int_print(out, cell.integer);
    case TYPE_DECIMAL:
        return decimal_print(out, cell.integer, type.scale);
    case TYPE_DOUBLE:
        return double_print(out, cell.number);
    case TYPE_DATE:
        return date_print(out, cell.integer);
    case TYPE_TIMESTAMP:
        return timestamp_print(out, cell.integer);
    case TYPE_TEXT:
        if (cell.text.size > 0) memcpy(out, cell.text.bytes, cell.text.size);
        return cell.text.size;
    default: {
        size_t size = 0;
        out[size++] = '[';
        for (uint32_t i = 0; i < cell.list.count; i++) {
            if (i > 0) out[size++] = ',';
            if (i > 0) out[size++] = ' ';
            size += naive_print(out + size, cell_at(cell.lists->child, cell.list.first + i),
                                type_element(type));
        }
        out[size++] = ']';
        return size;
    }
    }
}

static struct naive_cell naive_number_cast(struct naive *naive, struct naive_cell cell,
                                           struct type from, struct type to)
{
    uint32_t from_scale = from.kind == TYPE_DECIMAL ? from.scale : 0;
    uint32_t to_scale = to.kind == TYPE_DECIMAL ? to.scale : 0;
    if (to.kind == TYPE_DOUBLE) {
        return cell_double(from.kind == TYPE_DECIMAL ? decimal_to_double(cell.integer, from.scale)
                                                     : (double)cell.integer);
    }
    int128 value;
    if (from.kind != TYPE_DOUBLE) {
        value = naive_rescale(cell.integer, from_scale, to_scale);
    } else {
        double scaled =
            to.kind == TYPE_INT ? nearbyint(cell.number) : round(cell.number * pow(10.0, to_scale));
        if (!(fabs(scaled) < 1e19)) {
            naive->failed = true;
            return cell_null;
        }
        value = (int128)scaled;
    }
    if (to.kind == TYPE_DECIMAL) {
        int128 limit = naive_rescale(1, 0, to.precision);
        naive->failed |= value >= limit || value <= -limit;
    }
    return naive_fit(naive, value, to);
}

static struct naive_cell naive_cast(struct naive *naive, struct naive_cell cell, struct type from,
                                    struct type to)
{
    if (type_equal(from, to) && from.precision <= to.precision) return cell;
    if (from.kind == TYPE_TEXT) return naive_parse(naive, cell.text, to);
    if (to.kind == TYPE_TEXT) {
        char *out = arena_alloc(naive->arena, 4096, 1);
        return cell_text((struct text){out, (uint32_t)naive_print(out, cell, from)});
    }
    if (from.kind == TYPE_BOOL) {
        if (to.kind == TYPE_DOUBLE) return cell_double(cell.truth);
        return naive_number_cast(naive, cell_int(cell.truth), TYPE(INT), to);
    }
    if (to.kind == TYPE_BOOL) {
        return cell_bool(from.kind == TYPE_DOUBLE ? cell.number != 0.0 : cell.integer != 0);
    }
    if (from.kind == TYPE_DATE) return cell_int(timestamp_of_date(cell.integer));
    if (from.kind == TYPE_TIMESTAMP) return cell_int(timestamp_date(cell.integer));
    return naive_number_cast(naive, cell, from, to);
}

/* --- All of it. --- */

static struct naive_cell naive_strict(struct naive *naive, const struct expr *expr,
                                      const struct naive_cell *args)
{
    struct type type = expr->args[0]->type;
    enum function_id function = expr->function;
    if (function == FUNCTION_NOT) return cell_bool(!args[0].truth);
    if (function == FUNCTION_CAST) return naive_cast(naive, args[0], type, expr->type);
    if (function >= FUNCTION_EQUAL && function <= FUNCTION_GREATER_EQUAL) {
        int order = cell_compare(type, args[0], args[1]);
        bool results[] = {order == 0, order != 0, order<0, order <= 0, order> 0, order >= 0};
        return cell_bool(results[function - FUNCTION_EQUAL]);
    }
    if (function >= FUNCTION_ADD && function <= FUNCTION_SQRT) {
        return naive_arithmetic(naive, expr, args);
    }
    if (function >= FUNCTION_YEAR && function <= FUNCTION_STRFTIME) {
        return naive_calendar(naive, expr, args);
    }
    if (function >= FUNCTION_LIST_LENGTH && function <= FUNCTION_LIST_ELEMENT) {
        return naive_list(expr, args);
    }
    return naive_text(naive, expr, args);
}

static struct naive_cell naive_call(struct naive *naive, const struct expr *expr, uint32_t row)
{
    if (expr->function == FUNCTION_AND) return naive_chain(naive, expr, row, false);
    if (expr->function == FUNCTION_OR) return naive_chain(naive, expr, row, true);
    if (expr->function == FUNCTION_CASE) return naive_case(naive, expr, row);
    struct naive_cell args[NAIVE_ARGS_MAX] = {{0}};
    bool any_null = false;
    for (uint32_t i = 0; i < expr->arg_count; i++) {
        args[i] = naive_run(naive, expr->args[i], row);
        if (expr->function == FUNCTION_COALESCE && !args[i].is_null) return args[i];
        any_null |= args[i].is_null;
    }
    switch (expr->function) {
    case FUNCTION_COALESCE:
        return cell_null;
    case FUNCTION_IS_NULL:
        return cell_bool(args[0].is_null);
    case FUNCTION_IS_NOT_NULL:
        return cell_bool(!args[0].is_null);
    case FUNCTION_IN:
        return naive_in(expr, args);
    case FUNCTION_LEAST:
    case FUNCTION_GREATEST:
        return naive_extreme(expr, args);
    case FUNCTION_NULLIF:
        if (!any_null && cell_compare(expr->type, args[0], args[1]) == 0) return cell_null;
        return args[0];
    default:
        return any_null ? cell_null : naive_strict(naive, expr, args);
    }
}

static struct naive_cell naive_run(struct naive *naive, const struct expr *expr, uint32_t row)
{
    switch (expr->kind) {
    case EXPR_COLUMN:
        return cell_at(&naive->batch->columns[expr->column], row);
    case EXPR_CONSTANT:
        return cell_of_value(&expr->constant, expr->type);
    case EXPR_SCALAR:
        return cell_of_value(&naive->scalars[expr->fold], expr->type);
    case EXPR_CALL:
        break;
    }
    return naive_call(naive, expr, row);
}

#endif
