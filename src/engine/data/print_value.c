/* SPDX-License-Identifier: Apache-2.0 */
/* print_value.c - one switch over types; numbers are printed into the buffer's own room. */
#include "engine/data/print_value.h"

#include "engine/base/assert.h"
#include "engine/base/calendar.h"
#include "engine/base/number.h"

static void put_number(const struct column *column, uint32_t row, struct buf *out)
{
    if (!buf_reserve(out, NUMBER_TEXT_SIZE)) return;
    char *at = (char *)out->bytes + out->size;
    switch ((enum type_kind)column->type.kind) {
    case TYPE_INT:
        out->size += int_print(at, column->ints[row]);
        return;
    case TYPE_DECIMAL:
        out->size += decimal_print(at, column->ints[row], column->type.scale);
        return;
    case TYPE_DOUBLE:
        out->size += double_print(at, column->doubles[row]);
        return;
    case TYPE_DATE:
        out->size += date_print(at, column->ints[row]);
        return;
    case TYPE_TIMESTAMP:
        out->size += timestamp_print(at, column->ints[row]);
        return;
    default:
        ASSERT(false);
    }
}

static void put_list(const struct column *column, uint32_t row, struct buf *out)
{
    struct list list = column->lists[row];
    buf_put_u8(out, '[');
    for (uint32_t i = 0; i < list.count; i++) {
        if (i > 0) buf_put_string(out, ", ");
        if (column->type.kind == TYPE_LIST_TEXT) {
            buf_put_text(out, column->child->texts[list.first + i]);
        } else {
            put_number(column->child, list.first + i, out);
        }
    }
    buf_put_u8(out, ']');
}

void print_value(const struct column *column, uint32_t row, struct buf *out)
{
    ASSERT(!column_is_null(column, row));
    switch ((enum type_kind)column->type.kind) {
    case TYPE_NULL:
        return;
    case TYPE_BOOL:
        buf_put_string(out, column->bools[row] != 0 ? "true" : "false");
        return;
    case TYPE_TEXT:
        buf_put_text(out, column->texts[row]);
        return;
    case TYPE_LIST_TEXT:
    case TYPE_LIST_INT:
        put_list(column, row, out);
        return;
    case TYPE_INT:
    case TYPE_DECIMAL:
    case TYPE_DOUBLE:
    case TYPE_DATE:
    case TYPE_TIMESTAMP:
        break;
    }
    put_number(column, row, out);
}
