/* SPDX-License-Identifier: Apache-2.0 */
/* print_json.h - batches as JSON.
 *
 * INT, DECIMAL and DOUBLE are numbers in the text CSV gives them (nan and inf, which JSON lacks,
 * are strings), DATE and TIMESTAMP strings, lists arrays, NULL null.
 */
#ifndef ENGINE_DATA_PRINT_JSON_H
#define ENGINE_DATA_PRINT_JSON_H

#include "engine/base/buf.h"
#include "engine/data/column.h"
#include "engine/data/schema.h"

/* [{"name":"id","type":"INT"},...] */
void print_json_columns(const struct schema *schema, struct buf *out);
/* [1,"a"],[2,"b"] without the outer brackets. `rows_before` says whether a comma comes first; the
 * batch may have more columns than the schema: they are left out. */
void print_json_rows(const struct schema *schema, const struct batch *batch, uint64_t rows_before,
                     struct buf *out);
/* {"query":"q1","id":1,"title":"a"} and a line end, per row. */
void print_ndjson_rows(struct text query, const struct schema *schema, const struct batch *batch,
                       struct buf *out);

#endif
