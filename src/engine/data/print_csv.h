/* SPDX-License-Identifier: Apache-2.0 */
/* print_csv.h - batches as CSV (RFC 4180, lines end with LF).
 *
 * A field is quoted only when it holds a comma, a quote, CR or LF. NULL is an empty field, the
 * empty text is "", so that the two can be told apart.
 */
#ifndef ENGINE_DATA_PRINT_CSV_H
#define ENGINE_DATA_PRINT_CSV_H

#include "engine/base/buf.h"
#include "engine/data/column.h"
#include "engine/data/schema.h"

void print_csv_header(const struct schema *schema, struct buf *out);
/* The batch may have more columns than the schema: they are left out. */
void print_csv_rows(const struct schema *schema, const struct batch *batch, struct buf *out);

#endif
