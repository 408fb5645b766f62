/* SPDX-License-Identifier: Apache-2.0 */
/* print_csv.c - a value is printed first and quoted in place when it turns out to need it. */
#include "engine/data/print_csv.h"

#include "engine/base/assert.h"
#include "engine/data/print_value.h"

/* Of all that stands in the buffer from `start` on. */
static bool needs_quotes(const struct buf *out, size_t start)
{
    for (size_t i = start; i < out->size; i++) {
        unsigned char byte = out->bytes[i];
        if (byte == ',' || byte == '"' || byte == '\n' || byte == '\r') return true;
    }
    return out->size == start;
}

/* Quotes all that stands in the buffer from `start` on, from the end backwards. */
static void quote_from(struct buf *out, size_t start)
{
    size_t extra = 2;
    for (size_t i = start; i < out->size; i++) {
        extra += out->bytes[i] == '"';
    }
    if (!buf_reserve(out, extra)) return;
    size_t from = out->size;
    size_t to = out->size + extra;
    out->size = to;
    out->bytes[--to] = '"';
    while (from > start) {
        unsigned char byte = out->bytes[--from];
        out->bytes[--to] = byte;
        if (byte == '"') out->bytes[--to] = '"';
    }
    out->bytes[--to] = '"';
    ASSERT(to == start);
}

static void put_field(const struct column *column, uint32_t row, struct buf *out)
{
    size_t start = out->size;
    print_value(column, row, out);
    if (out->failed) return;
    bool can_need = column->type.kind == TYPE_TEXT || type_is_list(column->type);
    if (can_need && needs_quotes(out, start)) quote_from(out, start);
}

void print_csv_header(const struct schema *schema, struct buf *out)
{
    for (uint32_t i = 0; i < schema->count; i++) {
        if (i > 0) buf_put_u8(out, ',');
        size_t start = out->size;
        buf_put_text(out, schema->fields[i].name);
        if (out->failed) return;
        if (needs_quotes(out, start)) quote_from(out, start);
    }
    buf_put_u8(out, '\n');
}

void print_csv_rows(const struct schema *schema, const struct batch *batch, struct buf *out)
{
    ASSERT(batch->column_count >= schema->count);
    for (uint32_t row = 0; row < batch->row_count && !out->failed; row++) {
        for (uint32_t i = 0; i < schema->count; i++) {
            if (i > 0) buf_put_u8(out, ',');
            const struct column *column = &batch->columns[i];
            if (!column_is_null(column, row) && column->type.kind != TYPE_NULL) {
                put_field(column, row, out);
            }
        }
        buf_put_u8(out, '\n');
    }
}
