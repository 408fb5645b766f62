/* SPDX-License-Identifier: Apache-2.0 */
/* function.c - the table of functions, operators and aggregates.
 *
 * Functions stand in the order of their names' first mention; signatures of one name follow each
 * other, the more special first. Operators have a grammar of their own: the table only has their
 * costs, and those of functions that only the planner makes.
 */
#include "engine/plan/function.h"

#include "engine/base/assert.h"

/* In the order of struct function, from `id` on: id, arguments, least count, variadic, result,
 * cost, can fail, constants from the second argument on. */
static const struct function functions[] = {
    {"abs", FUNCTION_ABS, "n", 1, false, '1', 1, true, false},
    {"round", FUNCTION_ROUND, "di", 1, false, 'd', 4, false, false},
    {"floor", FUNCTION_FLOOR, "d", 1, false, 'd', 1, false, false},
    {"ceil", FUNCTION_CEIL, "d", 1, false, 'd', 1, false, false},
    {"ceiling", FUNCTION_CEIL, "d", 1, false, 'd', 1, false, false},
    {"sqrt", FUNCTION_SQRT, "d", 1, false, 'd', 3, false, false},
    {"coalesce", FUNCTION_COALESCE, "=", 1, true, '=', 2, false, false},
    {"nullif", FUNCTION_NULLIF, "==", 2, false, '=', 2, false, false},
    {"least", FUNCTION_LEAST, "=", 1, true, '=', 4, false, false},
    {"greatest", FUNCTION_GREATEST, "=", 1, true, '=', 4, false, false},
    {"lower", FUNCTION_LOWER, "t", 1, false, 't', 20, false, false},
    {"lcase", FUNCTION_LOWER, "t", 1, false, 't', 20, false, false},
    {"upper", FUNCTION_UPPER, "t", 1, false, 't', 20, false, false},
    {"ucase", FUNCTION_UPPER, "t", 1, false, 't', 20, false, false},
    {"trim", FUNCTION_TRIM, "t", 1, false, 't', 5, false, false},
    {"length", FUNCTION_LENGTH, "t", 1, false, 'i', 10, false, false},
    {"length", FUNCTION_LIST_LENGTH, "l", 1, false, 'i', 1, false, false},
    {"len", FUNCTION_LENGTH, "t", 1, false, 'i', 10, false, false},
    {"len", FUNCTION_LIST_LENGTH, "l", 1, false, 'i', 1, false, false},
    {"char_length", FUNCTION_LENGTH, "t", 1, false, 'i', 10, false, false},
    {"character_length", FUNCTION_LENGTH, "t", 1, false, 'i', 10, false, false},
    {"substring", FUNCTION_SUBSTRING, "tii", 2, false, 't', 12, false, false},
    {"substr", FUNCTION_SUBSTRING, "tii", 2, false, 't', 12, false, false},
    {"contains", FUNCTION_CONTAINS, "tt", 2, false, 'b', 20, false, false},
    {"contains", FUNCTION_LIST_CONTAINS, "Lt", 2, false, 'b', 10, false, false},
    {"contains", FUNCTION_LIST_CONTAINS, "li", 2, false, 'b', 4, false, false},
    {"starts_with", FUNCTION_STARTS_WITH, "tt", 2, false, 'b', 3, false, false},
    {"prefix", FUNCTION_STARTS_WITH, "tt", 2, false, 'b', 3, false, false},
    {"ends_with", FUNCTION_ENDS_WITH, "tt", 2, false, 'b', 3, false, false},
    {"suffix", FUNCTION_ENDS_WITH, "tt", 2, false, 'b', 3, false, false},
    {"replace", FUNCTION_REPLACE, "ttt", 3, false, 't', 40, false, false},
    {"split_part", FUNCTION_SPLIT_PART, "tti", 3, false, 't', 15, false, false},
    {"regexp_matches", FUNCTION_REGEXP_MATCHES, "ttt", 2, false, 'b', 80, true, true},
    {"regexp_extract", FUNCTION_REGEXP_EXTRACT, "tti", 2, false, 't', 120, true, true},
    {"year", FUNCTION_YEAR, "m", 1, false, 'i', 1, false, false},
    {"month", FUNCTION_MONTH, "m", 1, false, 'i', 1, false, false},
    {"day", FUNCTION_DAY, "m", 1, false, 'i', 1, false, false},
    {"dayofmonth", FUNCTION_DAY, "m", 1, false, 'i', 1, false, false},
    {"hour", FUNCTION_HOUR, "p", 1, false, 'i', 1, false, false},
    {"minute", FUNCTION_MINUTE, "p", 1, false, 'i', 1, false, false},
    {"second", FUNCTION_SECOND, "p", 1, false, 'i', 1, false, false},
    {"time_of_day", FUNCTION_TIME_OF_DAY, "p", 1, false, 't', 10, false, false},
    {"strftime", FUNCTION_STRFTIME, "mt", 2, false, 't', 30, false, true},
    {"list_length", FUNCTION_LIST_LENGTH, "l", 1, false, 'i', 1, false, false},
    {"array_length", FUNCTION_LIST_LENGTH, "l", 1, false, 'i', 1, false, false},
    {"list_contains", FUNCTION_LIST_CONTAINS, "Lt", 2, false, 'b', 10, false, false},
    {"list_contains", FUNCTION_LIST_CONTAINS, "li", 2, false, 'b', 4, false, false},
    {"list_has", FUNCTION_LIST_CONTAINS, "Lt", 2, false, 'b', 10, false, false},
    {"list_has", FUNCTION_LIST_CONTAINS, "li", 2, false, 'b', 4, false, false},
    {"array_contains", FUNCTION_LIST_CONTAINS, "Lt", 2, false, 'b', 10, false, false},
    {"array_contains", FUNCTION_LIST_CONTAINS, "li", 2, false, 'b', 4, false, false},
    {"list_element", FUNCTION_LIST_ELEMENT, "Li", 2, false, 't', 3, false, false},
    {"list_element", FUNCTION_LIST_ELEMENT, "li", 2, false, 'i', 3, false, false},
    {"list_extract", FUNCTION_LIST_ELEMENT, "Li", 2, false, 't', 3, false, false},
    {"list_extract", FUNCTION_LIST_ELEMENT, "li", 2, false, 'i', 3, false, false},
    {"pluck", FUNCTION_PLUCK, "tt", 2, false, 'L', 150, false, true},
    {"polarity", FUNCTION_POLARITY, "t", 1, false, 'd', 200, false, false},
    {"sentiment", FUNCTION_SENTIMENT, "td", 1, false, 't', 200, false, false},
};

static const struct function operators[] = {
    {"AND", FUNCTION_AND, "b", 2, true, 'b', 1, false, false},
    {"OR", FUNCTION_OR, "b", 2, true, 'b', 1, false, false},
    {"NOT", FUNCTION_NOT, "b", 1, false, 'b', 1, false, false},
    {"IS NULL", FUNCTION_IS_NULL, "a", 1, false, 'b', 1, false, false},
    {"IS NOT NULL", FUNCTION_IS_NOT_NULL, "a", 1, false, 'b', 1, false, false},
    {"=", FUNCTION_EQUAL, "==", 2, false, 'b', 1, false, false},
    {"<>", FUNCTION_NOT_EQUAL, "==", 2, false, 'b', 1, false, false},
    {"<", FUNCTION_LESS, "==", 2, false, 'b', 1, false, false},
    {"<=", FUNCTION_LESS_EQUAL, "==", 2, false, 'b', 1, false, false},
    {">", FUNCTION_GREATER, "==", 2, false, 'b', 1, false, false},
    {">=", FUNCTION_GREATER_EQUAL, "==", 2, false, 'b', 1, false, false},
    {"IN", FUNCTION_IN, "=", 2, true, 'b', 3, false, false},
    {"+", FUNCTION_ADD, "==", 2, false, '=', 1, true, false},
    {"-", FUNCTION_SUBTRACT, "==", 2, false, '=', 1, true, false},
    {"*", FUNCTION_MULTIPLY, "nn", 2, false, '=', 1, true, false},
    {"/", FUNCTION_DIVIDE, "dd", 2, false, 'd', 2, false, false},
    {"//", FUNCTION_INTEGER_DIVIDE, "ii", 2, false, 'i', 4, true, false},
    {"%", FUNCTION_MODULO, "==", 2, false, '=', 4, false, false},
    {"-", FUNCTION_NEGATE, "n", 1, false, '1', 1, true, false},
    {"CASE", FUNCTION_CASE, "a", 2, true, '=', 2, false, false},
    {"CAST", FUNCTION_CAST, "a", 1, false, '1', 5, true, false},
    {"||", FUNCTION_CONCAT, "t", 2, true, 't', 15, false, false},
    {"LIKE", FUNCTION_LIKE, "tt", 2, false, 'b', 20, false, false},
    {"key_hash", FUNCTION_KEY_HASH, "a", 1, true, 'i', 10, false, false},
    {"strftime_key", FUNCTION_STRFTIME_KEY, "mt", 2, false, '1', 1, false, true},
    {"ILIKE", FUNCTION_ILIKE, "tt", 2, false, 'b', 60, false, false},
};

enum {
    FUNCTIONS_COUNT = sizeof functions / sizeof functions[0],
    OPERATORS_COUNT = sizeof operators / sizeof operators[0]
};

static bool same_name(const struct function *a, const struct function *b)
{
    return strcmp(a->name, b->name) == 0;
}

const struct function *function_find(struct text name, uint32_t *out_count)
{
    for (uint32_t i = 0; i < FUNCTIONS_COUNT; i++) {
        if (!text_equal_ignoring_case(name, text_of(functions[i].name))) continue;
        uint32_t count = 1;
        while (i + count < FUNCTIONS_COUNT && same_name(&functions[i], &functions[i + count])) {
            count++;
        }
        *out_count = count;
        return &functions[i];
    }
    *out_count = 0;
    return NULL;
}

const struct function *function_by_id(enum function_id id)
{
    for (uint32_t i = 0; i < OPERATORS_COUNT; i++) {
        if (operators[i].id == id) return &operators[i];
    }
    for (uint32_t i = 0; i < FUNCTIONS_COUNT; i++) {
        if (functions[i].id == id) return &functions[i];
    }
    return NULL;
}

uint32_t function_names(struct text *out, uint32_t capacity)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < FUNCTIONS_COUNT && count < capacity; i++) {
        if (i > 0 && same_name(&functions[i - 1], &functions[i])) continue;
        out[count++] = text_of(functions[i].name);
    }
    return count;
}

/* count(*) has no name of its own. */
static const char *const aggregate_names[] = {
    [AGGREGATE_COUNT_ROWS] = "count(*)",
    [AGGREGATE_COUNT] = "count",
    [AGGREGATE_SUM] = "sum",
    [AGGREGATE_AVG] = "avg",
    [AGGREGATE_MIN] = "min",
    [AGGREGATE_MAX] = "max",
    [AGGREGATE_ARG_MIN] = "arg_min",
    [AGGREGATE_ARG_MAX] = "arg_max",
};

bool aggregate_find(struct text name, enum aggregate_kind *out)
{
    static const struct {
        const char *name;
        enum aggregate_kind kind;
    } others[] = {
        {"mean", AGGREGATE_AVG},       {"argmin", AGGREGATE_ARG_MIN}, {"min_by", AGGREGATE_ARG_MIN},
        {"argmax", AGGREGATE_ARG_MAX}, {"max_by", AGGREGATE_ARG_MAX},
    };
    for (int kind = AGGREGATE_COUNT; kind <= AGGREGATE_ARG_MAX; kind++) {
        if (text_equal_ignoring_case(name, text_of(aggregate_names[kind]))) {
            *out = (enum aggregate_kind)kind;
            return true;
        }
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (text_equal_ignoring_case(name, text_of(others[i].name))) {
            *out = others[i].kind;
            return true;
        }
    }
    return false;
}

const char *aggregate_name(enum aggregate_kind kind)
{
    ASSERT(kind >= AGGREGATE_COUNT_ROWS && kind <= AGGREGATE_ARG_MAX);
    return aggregate_names[kind];
}
