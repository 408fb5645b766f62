/* SPDX-License-Identifier: Apache-2.0 */
/* print_value.h - one value as plain text: the form all formats agree on.
 *
 * INT plain, DECIMAL with exactly its scale, DOUBLE the shortest that reads back, BOOL true/false,
 * DATE and TIMESTAMP as ISO 8601 writes them, TEXT as it is, lists as [a, b].
 */
#ifndef ENGINE_DATA_PRINT_VALUE_H
#define ENGINE_DATA_PRINT_VALUE_H

#include "engine/base/buf.h"
#include "engine/data/column.h"

/* The value must not be NULL. */
void print_value(const struct column *column, uint32_t row, struct buf *out);

#endif
