/* SPDX-License-Identifier: Apache-2.0 */
/* print_json.c - numbers are taken from print_value, so that no format can differ from another. */
#include "engine/data/print_json.h"

#include <math.h>

#include "engine/base/assert.h"
#include "engine/data/print_text.h"
#include "engine/data/print_value.h"

static void put_quoted(const struct column *column, uint32_t row, struct buf *out)
{
    buf_put_u8(out, '"');
    print_value(column, row, out);
    buf_put_u8(out, '"');
}

static void put_list(const struct column *column, uint32_t row, struct buf *out)
{
    struct list list = column->lists[row];
    buf_put_u8(out, '[');
    for (uint32_t i = 0; i < list.count; i++) {
        if (i > 0) buf_put_u8(out, ',');
        if (column->type.kind == TYPE_LIST_TEXT) {
            print_json_string(column->child->texts[list.first + i], out);
        } else {
            print_value(column->child, list.first + i, out);
        }
    }
    buf_put_u8(out, ']');
}

static void put_value(const struct column *column, uint32_t row, struct buf *out)
{
    if (column_is_null(column, row)) {
        buf_put_string(out, "null");
        return;
    }
    switch ((enum type_kind)column->type.kind) {
    case TYPE_NULL:
        buf_put_string(out, "null");
        return;
    case TYPE_TEXT:
        print_json_string(column->texts[row], out);
        return;
    case TYPE_LIST_TEXT:
    case TYPE_LIST_INT:
        put_list(column, row, out);
        return;
    case TYPE_DATE:
    case TYPE_TIMESTAMP:
        put_quoted(column, row, out);
        return;
    case TYPE_DOUBLE:
        if (!isfinite(column->doubles[row])) {
            put_quoted(column, row, out);
            return;
        }
        break;
    case TYPE_BOOL:
    case TYPE_INT:
    case TYPE_DECIMAL:
        break;
    }
    print_value(column, row, out);
}

void print_json_columns(const struct schema *schema, struct buf *out)
{
    buf_put_u8(out, '[');
    for (uint32_t i = 0; i < schema->count; i++) {
        char type[TYPE_NAME_SIZE];
        if (i > 0) buf_put_u8(out, ',');
        buf_put_string(out, "{\"name\":");
        print_json_string(schema->fields[i].name, out);
        buf_format(out, ",\"type\":\"%s\"}", type_name(schema->fields[i].type, type));
    }
    buf_put_u8(out, ']');
}

void print_json_rows(const struct schema *schema, const struct batch *batch, uint64_t rows_before,
                     struct buf *out)
{
    ASSERT(batch->column_count >= schema->count);
    for (uint32_t row = 0; row < batch->row_count && !out->failed; row++) {
        buf_put_string(out, rows_before + row > 0 ? ",\n[" : "\n[");
        for (uint32_t i = 0; i < schema->count; i++) {
            if (i > 0) buf_put_u8(out, ',');
            put_value(&batch->columns[i], row, out);
        }
        buf_put_u8(out, ']');
    }
}

void print_ndjson_rows(struct text query, const struct schema *schema, const struct batch *batch,
                       struct buf *out)
{
    ASSERT(batch->column_count >= schema->count);
    for (uint32_t row = 0; row < batch->row_count && !out->failed; row++) {
        buf_put_string(out, "{\"query\":");
        print_json_string(query, out);
        for (uint32_t i = 0; i < schema->count; i++) {
            buf_put_u8(out, ',');
            print_json_string(schema->fields[i].name, out);
            buf_put_u8(out, ':');
            put_value(&batch->columns[i], row, out);
        }
        buf_put_string(out, "}\n");
    }
}
