/* SPDX-License-Identifier: Apache-2.0 */
/* constant.h - constants of the language, and their conversion while binding. */
#ifndef ENGINE_SQL_CONSTANT_H
#define ENGINE_SQL_CONSTANT_H

#include <stdbool.h>

#include "engine/data/type.h"
#include "engine/plan/expr.h"

/* Converts a constant from one type to another as CAST would, where that cannot lose anything but
 * decimals beyond the scale. False: it cannot be read as that type. */
bool constant_convert(struct value *value, struct type from, struct type to);

/* The type two values of different types meet in; false when there is none. */
bool type_common(struct type a, struct type b, struct type *out);

#endif
