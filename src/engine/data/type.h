/* SPDX-License-Identifier: Apache-2.0 */
/* type.h - the types a value can have.
 *
 * In memory a BOOL is a byte, TEXT a struct text, a list a struct list (column.h), everything else
 * 64 bits: INT, DECIMAL (scaled by 10^scale), DOUBLE, DATE and TIMESTAMP (packed calendar keys,
 * engine/base/calendar.h).
 */
#ifndef ENGINE_DATA_TYPE_H
#define ENGINE_DATA_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/number.h"
#include "engine/base/text.h"

enum type_kind {
    TYPE_NULL, /* The type of a bare NULL; takes any other type's place. */
    TYPE_BOOL,
    TYPE_INT,
    TYPE_DECIMAL,
    TYPE_DOUBLE,
    TYPE_TEXT,
    TYPE_DATE,
    TYPE_TIMESTAMP,
    TYPE_LIST_TEXT,
    TYPE_LIST_INT
};

enum { TYPE_NAME_SIZE = 24 };

struct type {
    uint8_t kind;      /* enum type_kind */
    uint8_t precision; /* DECIMAL only, 1..18 */
    uint8_t scale;     /* DECIMAL only, 0..precision */
};

#define TYPE(name) ((struct type){.kind = TYPE_##name})

static inline bool type_equal(struct type a, struct type b)
{
    return a.kind == b.kind && (a.kind != TYPE_DECIMAL || a.scale == b.scale);
}

static inline bool type_is_list(struct type type)
{
    return type.kind == TYPE_LIST_TEXT || type.kind == TYPE_LIST_INT;
}

static inline bool type_is_number(struct type type)
{
    return type.kind == TYPE_INT || type.kind == TYPE_DECIMAL || type.kind == TYPE_DOUBLE;
}

/* Type of a list's elements. */
struct type type_element(struct type list);
/* Bytes one value takes in a column's array. */
size_t type_width(struct type type);
/* As SQL writes it: "DECIMAL(18,3)", "TEXT[]". */
const char *type_name(struct type type, char out[TYPE_NAME_SIZE]);
/* The type a SQL name means (also BIGINT, VARCHAR and other usual names), without DECIMAL's
 * arguments; false when there is none. */
bool type_by_name(struct text name, struct type *out);

#endif
