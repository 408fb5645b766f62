/* SPDX-License-Identifier: Apache-2.0 */
/* function.h - the functions and operators of the language: names, signatures, types.
 *
 * Kernels live in exec/ and are chosen by the id; the binder asks function_find by name. What an
 * argument must be is a letter per argument:
 *
 *     b BOOL   i INT   d DOUBLE   t TEXT   n any number   m DATE or TIMESTAMP   p TIMESTAMP
 *     l a list   L TEXT[]   a anything   = the common type of all '=' arguments
 *
 * The last letter repeats when `variadic`.
 */
#ifndef ENGINE_PLAN_FUNCTION_H
#define ENGINE_PLAN_FUNCTION_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/text.h"
#include "engine/data/type.h"

enum function_id {
    FUNCTION_NONE,
    /* Logic: three-valued. AND, OR take two or more. */
    FUNCTION_AND,
    FUNCTION_OR,
    FUNCTION_NOT,
    FUNCTION_IS_NULL,
    FUNCTION_IS_NOT_NULL,
    /* Comparison of two values of one type (DECIMALs of one scale); BOOL. */
    FUNCTION_EQUAL,
    FUNCTION_NOT_EQUAL,
    FUNCTION_LESS,
    FUNCTION_LESS_EQUAL,
    FUNCTION_GREATER,
    FUNCTION_GREATER_EQUAL,
    FUNCTION_IN, /* args[0] among args[1..], all of one type */
    /* Arithmetic: both INT, both DECIMAL (see the binder for scales) or both DOUBLE. */
    FUNCTION_ADD,
    FUNCTION_SUBTRACT,
    FUNCTION_MULTIPLY,
    FUNCTION_DIVIDE,         /* DOUBLE, DOUBLE -> DOUBLE; by zero: NULL */
    FUNCTION_INTEGER_DIVIDE, /* INT, INT -> INT, towards zero; by zero: NULL */
    FUNCTION_MODULO,         /* INT or DOUBLE; sign of the left; by zero: NULL */
    FUNCTION_NEGATE,
    FUNCTION_ABS,
    FUNCTION_ROUND, /* DOUBLE -> DOUBLE, half away from zero; (DOUBLE, INT digits) */
    FUNCTION_FLOOR, /* DOUBLE -> DOUBLE */
    FUNCTION_CEIL,
    FUNCTION_SQRT, /* of a negative: NULL */
    /* Choice. */
    FUNCTION_CASE,     /* when, then, when, then, ..., else: BOOLs and values of one type */
    FUNCTION_COALESCE, /* values of one type */
    FUNCTION_NULLIF,
    FUNCTION_LEAST, /* NULLs ignored */
    FUNCTION_GREATEST,
    FUNCTION_CAST, /* to the node's type; what does not parse is an error */
    /* Text: bytes, and characters (UTF-8 code points) where lengths and positions matter. */
    FUNCTION_CONCAT, /* ||: NULL if any is NULL; two or more TEXT */
    FUNCTION_LOWER,  /* ASCII letters */
    FUNCTION_UPPER,
    FUNCTION_TRIM,      /* spaces, both ends */
    FUNCTION_LENGTH,    /* characters */
    FUNCTION_SUBSTRING, /* (text, from 1 [, count]); negative from counts from the end */
    FUNCTION_CONTAINS,
    FUNCTION_STARTS_WITH,
    FUNCTION_ENDS_WITH,
    FUNCTION_REPLACE,
    FUNCTION_SPLIT_PART, /* (text, separator, index from 1): '' when there is no such part */
    FUNCTION_LIKE,       /* % and _ ; pattern may be any expression */
    FUNCTION_ILIKE,
    FUNCTION_REGEXP_MATCHES, /* (text, constant pattern [, constant options such as 'i']) */
    FUNCTION_REGEXP_EXTRACT, /* (text, constant pattern [, group]): '' without a match */
    /* Calendar. */
    FUNCTION_YEAR, /* of DATE or TIMESTAMP */
    FUNCTION_MONTH,
    FUNCTION_DAY,
    FUNCTION_HOUR, /* of TIMESTAMP */
    FUNCTION_MINUTE,
    FUNCTION_SECOND,
    FUNCTION_TIME_OF_DAY, /* of TIMESTAMP: '06:00:00', with a fraction only if there is one */
    FUNCTION_STRFTIME,    /* (DATE or TIMESTAMP, constant format) */
    /* (DATE or TIMESTAMP, constant format): the same type, with all that the format does not show
     * cleared, so that equal values are equal texts. Made by the planner only. */
    FUNCTION_STRFTIME_KEY,
    /* The hash that chooses shards and Bloom filter bits of joins; NULL if any argument is. Made by
     * the planner only. */
    FUNCTION_KEY_HASH,
    /* Lists. */
    FUNCTION_LIST_LENGTH,
    FUNCTION_LIST_CONTAINS, /* (list, element) */
    FUNCTION_LIST_ELEMENT,  /* (list, index from 1; negative from the end): NULL when outside */
    FUNCTION_PLUCK,         /* (text, constant key) -> TEXT[] */
    /* Sentiment. */
    FUNCTION_POLARITY,  /* TEXT -> DOUBLE */
    FUNCTION_SENTIMENT, /* (TEXT [, DOUBLE band]) -> TEXT */
    FUNCTION_COUNT
};

struct function {
    const char *name;
    enum function_id id;
    const char *arguments; /* Letters, see above. */
    uint8_t minimum_count;
    bool variadic;
    char result;  /* b i d t L as above, '=' the common type, '1' the first's type. */
    uint8_t cost; /* Rough cost per row; a comparison of numbers is 1. */
    bool can_fail;
    bool constant_from_second; /* All arguments but the first must be constants. */
};

/* Matched without regard to letter case; NULL when there is none. The same name may have several
 * signatures: they follow each other, `*`out_count` of them. */
const struct function *function_find(struct text name, uint32_t *out_count);
const struct function *function_by_id(enum function_id id);
/* All names, for suggestions. */
uint32_t function_names(struct text *out, uint32_t capacity);

enum aggregate_kind {
    AGGREGATE_COUNT_ROWS, /* count(*) */
    AGGREGATE_COUNT,
    AGGREGATE_SUM,
    AGGREGATE_AVG,
    AGGREGATE_MIN,
    AGGREGATE_MAX,
    AGGREGATE_ARG_MIN, /* (value, by) */
    AGGREGATE_ARG_MAX
};

/* False when no aggregate has that name; count(*) and count(x) both give AGGREGATE_COUNT. */
bool aggregate_find(struct text name, enum aggregate_kind *out);
const char *aggregate_name(enum aggregate_kind kind);

#endif
