/* row_sort.c - radix by the first key's leading 64 bits, comparison where these are equal.
 *
 * Most orders are decided by the first eight bytes of the first key; only runs that agree on them
 * are compared value by value.
 */
#include "exec/row_sort.h"

#include <stdlib.h>

#include "base/radix_sort.h"

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

struct compare_context {
    const struct batch *batch;
    const struct sort_key *keys;
    uint32_t key_count;
};

static int compare_items(const void *a, const void *b, void *context)
{
    const struct compare_context *compare = context;
    uint32_t row_a = (uint32_t)((const struct radix_item *)a)->value;
    uint32_t row_b = (uint32_t)((const struct radix_item *)b)->value;
    int order = row_compare(compare->batch, row_a, compare->batch, row_b, compare->keys,
                            compare->key_count);
    /* Equal rows keep their order, whatever qsort does. */
    return order != 0 ? order : (row_a > row_b) - (row_a < row_b);
}

bool row_sort(const struct batch *batch, const struct sort_key *keys, uint32_t key_count,
              uint32_t *rows, uint32_t count, struct arena *arena)
{
    if (count < 2 || key_count == 0) return true;
    struct arena_mark mark = arena_mark(arena);
    struct radix_item *items =
        arena_alloc(arena, sizeof *items * count * 2, alignof(struct radix_item));
    if (items == NULL) return false;
    const struct column *first = &batch->columns[keys[0].column];
    for (uint32_t i = 0; i < count; i++) {
        items[i] = (struct radix_item){key_prefix(first, rows[i], &keys[0]), rows[i]};
    }
    radix_sort(items, items + count, count);
    struct compare_context context = {batch, keys, key_count};
    for (uint32_t start = 0, end; start < count; start = end) {
        end = start + 1;
        while (end < count && items[end].key == items[start].key) {
            end++;
        }
        if (end - start > 1) {
            qsort_r(items + start, end - start, sizeof *items, compare_items, &context);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = (uint32_t)items[i].value;
    }
    arena_release(arena, mark);
    return true;
}
