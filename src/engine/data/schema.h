/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - names and types of a batch's columns. */
#ifndef ENGINE_DATA_SCHEMA_H
#define ENGINE_DATA_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/text.h"
#include "engine/data/type.h"

struct field {
    struct text name;
    struct type type;
    bool not_null; /* Of a table's column: a record without a readable value is dropped. */
};

struct schema {
    const struct field *fields;
    uint32_t count;
};

#endif
