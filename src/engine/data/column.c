/* SPDX-License-Identifier: Apache-2.0 */
/* column.c - order, hash and gathering of values, whatever their type.
 *
 * These are the row-at-a-time forms, for grouping, sorting and joining; expressions have loops of
 * their own per type (exec/).
 */
#include "engine/data/column.h"

#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/hash.h"

enum { NULL_HASH = 0x6e756c6c };

bool column_init(struct column *column, struct type type, uint32_t row_count, struct arena *arena)
{
    void *data = arena_alloc(arena, (size_t)row_count * type_width(type), alignof(max_align_t));
    if (data == NULL) return false;
    *column = (struct column){.type = type, .data = data};
    return true;
}

bool column_need_nulls(struct column *column, uint32_t row_count, struct arena *arena)
{
    if (column->nulls != NULL) return true;
    column->nulls = arena_array(arena, uint8_t, row_count);
    return column->nulls != NULL;
}

static int compare_ints(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* NaN equals NaN and is greater than everything. */
static int compare_doubles(double a, double b)
{
    if (a != a || b != b) return (a != a) - (b != b);
    return (a > b) - (a < b);
}

static int compare_elements(const struct column *a, uint32_t row_a, const struct column *b,
                            uint32_t row_b)
{
    if (a->type.kind == TYPE_TEXT) return text_compare(a->texts[row_a], b->texts[row_b]);
    return compare_ints(a->ints[row_a], b->ints[row_b]);
}

/* As words in a dictionary: the first differing element decides, then the length. */
static int compare_lists(const struct column *a, uint32_t row_a, const struct column *b,
                         uint32_t row_b)
{
    struct list left = a->lists[row_a];
    struct list right = b->lists[row_b];
    uint32_t common = left.count < right.count ? left.count : right.count;
    for (uint32_t i = 0; i < common; i++) {
        int order = compare_elements(a->child, left.first + i, b->child, right.first + i);
        if (order != 0) return order;
    }
    return (left.count > right.count) - (left.count < right.count);
}

int column_compare(const struct column *a, uint32_t row_a, const struct column *b, uint32_t row_b)
{
    bool null_a = column_is_null(a, row_a);
    bool null_b = column_is_null(b, row_b);
    if (null_a || null_b) return null_a - null_b;
    ASSERT(type_equal(a->type, b->type));
    switch ((enum type_kind)a->type.kind) {
    case TYPE_NULL:
        return 0;
    case TYPE_BOOL:
        return a->bools[row_a] - b->bools[row_b];
    case TYPE_DOUBLE:
        return compare_doubles(a->doubles[row_a], b->doubles[row_b]);
    case TYPE_TEXT:
        return text_compare(a->texts[row_a], b->texts[row_b]);
    case TYPE_LIST_TEXT:
    case TYPE_LIST_INT:
        return compare_lists(a, row_a, b, row_b);
    case TYPE_INT:
    case TYPE_DECIMAL:
    case TYPE_DATE:
    case TYPE_TIMESTAMP:
        break;
    }
    return compare_ints(a->ints[row_a], b->ints[row_b]);
}

static uint64_t hash_double(double value)
{
    uint64_t bits = 0x7ff8000000000000u; /* Every NaN is this one. */
    if (value == value) {
        value += 0.0; /* -0.0 becomes 0.0. */
        memcpy(&bits, &value, sizeof bits);
    }
    return hash_u64(bits);
}

static uint64_t hash_text(struct text text)
{
    return hash_bytes(text.size == 0 ? "" : text.bytes, text.size);
}

static uint64_t hash_list(const struct column *column, uint32_t row)
{
    const struct column *child = column->child;
    struct list list = column->lists[row];
    uint64_t hash = hash_u64(list.count);
    for (uint32_t i = list.first; i < list.first + list.count; i++) {
        uint64_t element = column->type.kind == TYPE_LIST_TEXT ? hash_text(child->texts[i])
                                                               : hash_u64((uint64_t)child->ints[i]);
        hash = hash_combine(hash, element);
    }
    return hash;
}

uint64_t column_hash(const struct column *column, uint32_t row)
{
    if (column->type.kind == TYPE_NULL || column_is_null(column, row)) return hash_u64(NULL_HASH);
    switch ((enum type_kind)column->type.kind) {
    case TYPE_BOOL:
        return hash_u64(column->bools[row]);
    case TYPE_DOUBLE:
        return hash_double(column->doubles[row]);
    case TYPE_TEXT:
        return hash_text(column->texts[row]);
    case TYPE_LIST_TEXT:
    case TYPE_LIST_INT:
        return hash_list(column, row);
    case TYPE_NULL:
    case TYPE_INT:
    case TYPE_DECIMAL:
    case TYPE_DATE:
    case TYPE_TIMESTAMP:
        break;
    }
    return hash_u64((uint64_t)column->ints[row]);
}

static bool has_row_none(const uint32_t *rows, uint32_t count)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        found |= rows[i] == ROW_NONE;
    }
    return found != 0;
}

/* Rows of ROW_NONE are turned to null and given an empty value, so that nothing is left undefined.
 */
static void gather_with_none(struct column *out, const struct column *in, const uint32_t *rows,
                             uint32_t count)
{
    size_t width = type_width(in->type);
    for (uint32_t i = 0; i < count; i++) {
        unsigned char *place = (unsigned char *)out->data + i * width;
        if (rows[i] == ROW_NONE) {
            memset(place, 0, width);
            out->nulls[i] = 1;
        } else {
            memcpy(place, (const unsigned char *)in->data + rows[i] * width, width);
            out->nulls[i] = in->nulls == NULL ? 0 : in->nulls[rows[i]];
        }
    }
}

#define GATHER(field)                                                                              \
    for (uint32_t i = 0; i < count; i++) {                                                         \
        out->field[i] = in->field[rows[i]];                                                        \
    }

static void gather_values(struct column *out, const struct column *in, const uint32_t *rows,
                          uint32_t count)
{
    switch ((enum type_kind)in->type.kind) {
    case TYPE_NULL:
    case TYPE_BOOL:
        GATHER(bools)
        return;
    case TYPE_TEXT:
        GATHER(texts)
        return;
    case TYPE_LIST_TEXT:
    case TYPE_LIST_INT:
        GATHER(lists)
        return;
    case TYPE_DOUBLE:
        GATHER(doubles)
        return;
    case TYPE_INT:
    case TYPE_DECIMAL:
    case TYPE_DATE:
    case TYPE_TIMESTAMP:
        break;
    }
    GATHER(ints)
}

bool column_gather(struct column *out, const struct column *in, const uint32_t *rows,
                   uint32_t count, struct arena *arena)
{
    struct column made;
    if (!column_init(&made, in->type, count, arena)) return false;
    made.child = in->child;
    bool with_none = has_row_none(rows, count);
    if (with_none || in->nulls != NULL) {
        made.nulls = arena_alloc(arena, count, 1);
        if (made.nulls == NULL) return false;
    }
    if (with_none) {
        gather_with_none(&made, in, rows, count);
    } else {
        gather_values(&made, in, rows, count);
        if (in->nulls != NULL) {
            for (uint32_t i = 0; i < count; i++) {
                made.nulls[i] = in->nulls[rows[i]];
            }
        }
    }
    *out = made;
    return true;
}

struct batch batch_slice(const struct batch *batch, uint32_t first, uint32_t count,
                         struct column *columns)
{
    ASSERT(first <= batch->row_count && count <= batch->row_count - first);
    for (uint32_t i = 0; i < batch->column_count; i++) {
        columns[i] = batch->columns[i];
        size_t width = type_width(columns[i].type);
        if (columns[i].data != NULL) columns[i].data = (char *)columns[i].data + first * width;
        if (columns[i].nulls != NULL) columns[i].nulls += first;
    }
    return (struct batch){
        .row_count = count, .column_count = batch->column_count, .columns = columns};
}
