/* SPDX-License-Identifier: Apache-2.0 */
/* row_sort.c - radix sort by the leading 64 bits of one key after the other.
 *
 * Most orders are decided by the first eight bytes of the first key. Rows that agree on them are
 * sorted by the next key when these bytes were all of the first; where they were only the start of
 * a text, rows are compared value by value.
 */
#include "engine/exec/fold/row_sort.h"

#include <stdlib.h>

#include "engine/base/radix_sort.h"

int row_compare(const struct batch *a, uint32_t row_a, const struct batch *b, uint32_t row_b,
                const struct sort_key *keys, uint32_t key_count)
{
    for (uint32_t i = 0; i < key_count; i++) {
        const struct column *left = &a->columns[keys[i].column];
        const struct column *right = &b->columns[keys[i].column];
        bool left_null = column_is_null(left, row_a);
        bool right_null = column_is_null(right, row_b);
        if (left_null || right_null) {
            if (left_null && right_null) continue;
            return left_null == keys[i].nulls_first ? -1 : 1;
        }
        int order = column_compare(left, row_a, right, row_b);
        if (order != 0) return keys[i].descending ? -order : order;
    }
    return 0;
}

static uint64_t double_prefix(double value)
{
    /* The bits of doubles order like their values once negative ones are turned around; NaN, made
     * positive, comes after infinity. */
    if (value != value) return UINT64_MAX;
    if (value == 0) value = 0; /* Both zeros are one. */
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static uint64_t text_prefix(struct text text)
{
    uint64_t prefix = 0;
    for (uint32_t i = 0; i < 8; i++) {
        prefix = prefix << 8 | (i < text.size ? (unsigned char)text.bytes[i] : 0);
    }
    return prefix;
}

/* Never orders two values the other way round than row_compare; may call different ones equal. */
static uint64_t key_prefix(const struct column *column, uint32_t row, const struct sort_key *key)
{
    if (column_is_null(column, row)) return key->nulls_first ? 0 : UINT64_MAX;
    uint64_t prefix = 0;
    switch ((enum type_kind)column->type.kind) {
    case TYPE_INT:
    case TYPE_DECIMAL:
    case TYPE_DATE:
    case TYPE_TIMESTAMP:
        prefix = (uint64_t)column->ints[row] ^ (uint64_t)1 << 63;
        break;
    case TYPE_DOUBLE:
        prefix = double_prefix(column->doubles[row]);
        break;
    case TYPE_TEXT:
        prefix = text_prefix(column->texts[row]);
        break;
    case TYPE_BOOL:
        prefix = column->bools[row];
        break;
    case TYPE_NULL:
    case TYPE_LIST_TEXT:
    case TYPE_LIST_INT:
        return 0;
    }
    return key->descending ? ~prefix : prefix;
}

void row_prefixes(const struct batch *batch, const struct sort_key *key, struct selection selection,
                  uint64_t *out)
{
    const struct column *column = &batch->columns[key->column];
    struct type type = column->type;
    bool is_plain = type.kind == TYPE_INT || type.kind == TYPE_DECIMAL || type.kind == TYPE_DATE ||
                    type.kind == TYPE_TIMESTAMP;
    if (is_plain && column->nulls == NULL) {
        uint64_t turn = key->descending ? ~((uint64_t)1 << 63) : (uint64_t)1 << 63;
        for (uint32_t i = 0; i < selection.count; i++) {
            out[i] = (uint64_t)column->ints[selection_row(selection, i)] ^ turn;
        }
        return;
    }
    for (uint32_t i = 0; i < selection.count; i++) {
        out[i] = key_prefix(column, selection_row(selection, i), key);
    }
}

struct sort_context {
    const struct batch *batch;
    const struct sort_key *keys;
    uint32_t key_count;
    struct radix_item *scratch;
};

static int compare_items(const void *a, const void *b, void *context)
{
    const struct sort_context *sort = context;
    uint32_t row_a = (uint32_t)((const struct radix_item *)a)->value;
    uint32_t row_b = (uint32_t)((const struct radix_item *)b)->value;
    int order = row_compare(sort->batch, row_a, sort->batch, row_b, sort->keys, sort->key_count);
    /* Equal rows keep their order, whatever qsort does. */
    return order != 0 ? order : (row_a > row_b) - (row_a < row_b);
}

/* Whether rows with this prefix have the same value. A NULL may share its prefix with a number. */
static bool prefix_is_all(const struct column *column, uint64_t prefix)
{
    bool is_text = column->type.kind == TYPE_TEXT;
    bool may_be_null = column->nulls != NULL && (prefix == 0 || prefix == UINT64_MAX);
    return !is_text && !type_is_list(column->type) && !may_be_null;
}

/* Equal rows stand in the order of their numbers, however they were given. */
static void sort_numbers(struct sort_context *sort, struct radix_item *items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        items[i].key = items[i].value;
    }
    radix_sort(items, sort->scratch, count);
}

/* Depth: the number of keys. */
static void sort_items(struct sort_context *sort, struct radix_item *items, uint32_t count,
                       uint32_t key)
{
    const struct column *column = &sort->batch->columns[sort->keys[key].column];
    for (uint32_t i = 0; i < count; i++) {
        items[i].key = key_prefix(column, (uint32_t)items[i].value, &sort->keys[key]);
    }
    radix_sort(items, sort->scratch, count);
    for (uint32_t start = 0, end; start < count; start = end) {
        uint64_t prefix = items[start].key;
        end = start + 1;
        while (end < count && items[end].key == prefix) {
            end++;
        }
        if (end - start == 1) continue;
        if (!prefix_is_all(column, prefix)) {
            qsort_r(items + start, end - start, sizeof *items, compare_items, sort);
        } else if (key + 1 < sort->key_count) {
            sort_items(sort, items + start, end - start, key + 1);
        } else {
            sort_numbers(sort, items + start, end - start);
        }
    }
}

bool row_sort(const struct batch *batch, const struct sort_key *keys, uint32_t key_count,
              uint32_t *rows, uint32_t count, struct arena *arena)
{
    if (count < 2 || key_count == 0) return true;
    struct arena_mark mark = arena_mark(arena);
    struct radix_item *items =
        arena_alloc(arena, sizeof *items * count * 2, alignof(struct radix_item));
    if (items == NULL) return false;
    for (uint32_t i = 0; i < count; i++) {
        items[i].value = rows[i];
    }
    struct sort_context sort = {batch, keys, key_count, items + count};
    sort_items(&sort, items, count, 0);
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = (uint32_t)items[i].value;
    }
    arena_release(arena, mark);
    return true;
}
