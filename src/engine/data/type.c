/* SPDX-License-Identifier: Apache-2.0 */
/* type.c - names and sizes of types. */
#include "engine/data/type.h"

#include <stdio.h>

#include "engine/base/assert.h"
#include "engine/data/column.h"

struct type type_element(struct type list)
{
    ASSERT(type_is_list(list));
    return list.kind == TYPE_LIST_TEXT ? TYPE(TEXT) : TYPE(INT);
}

size_t type_width(struct type type)
{
    switch ((enum type_kind)type.kind) {
    case TYPE_NULL:
    case TYPE_BOOL:
        return sizeof(uint8_t);
    case TYPE_TEXT:
        return sizeof(struct text);
    case TYPE_LIST_TEXT:
    case TYPE_LIST_INT:
        return sizeof(struct list);
    case TYPE_INT:
    case TYPE_DECIMAL:
    case TYPE_DOUBLE:
    case TYPE_DATE:
    case TYPE_TIMESTAMP:
        break;
    }
    return sizeof(int64_t);
}

const char *type_name(struct type type, char out[TYPE_NAME_SIZE])
{
    static const char *const names[] = {
        [TYPE_NULL] = "NULL",       [TYPE_BOOL] = "BOOL",           [TYPE_INT] = "INT",
        [TYPE_DECIMAL] = "DECIMAL", [TYPE_DOUBLE] = "DOUBLE",       [TYPE_TEXT] = "TEXT",
        [TYPE_DATE] = "DATE",       [TYPE_TIMESTAMP] = "TIMESTAMP", [TYPE_LIST_TEXT] = "TEXT[]",
        [TYPE_LIST_INT] = "INT[]",
    };
    if (type.kind == TYPE_DECIMAL) {
        (void)snprintf(out, TYPE_NAME_SIZE, "DECIMAL(%u,%u)", (unsigned)type.precision,
                       (unsigned)type.scale); /* Always fits. */
    } else {
        (void)snprintf(out, TYPE_NAME_SIZE, "%s", names[type.kind]);
    }
    return out;
}

bool type_by_name(struct text name, struct type *out)
{
    static const struct {
        const char *name;
        uint8_t kind;
    } names[] = {
        {"BOOL", TYPE_BOOL},       {"BOOLEAN", TYPE_BOOL},        {"INT", TYPE_INT},
        {"INTEGER", TYPE_INT},     {"BIGINT", TYPE_INT},          {"DECIMAL", TYPE_DECIMAL},
        {"NUMERIC", TYPE_DECIMAL}, {"DOUBLE", TYPE_DOUBLE},       {"FLOAT8", TYPE_DOUBLE},
        {"TEXT", TYPE_TEXT},       {"VARCHAR", TYPE_TEXT},        {"STRING", TYPE_TEXT},
        {"DATE", TYPE_DATE},       {"TIMESTAMP", TYPE_TIMESTAMP},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (text_equal_ignoring_case(name, text_of(names[i].name))) {
            *out = (struct type){.kind = names[i].kind};
            if (out->kind == TYPE_DECIMAL) *out = (struct type){TYPE_DECIMAL, 18, 3};
            return true;
        }
    }
    return false;
}
