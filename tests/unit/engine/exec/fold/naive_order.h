/* SPDX-License-Identifier: Apache-2.0 */
/* naive_order.h - the order of rows as it is defined, one value at a time. */
#ifndef UNIT_EXEC_NAIVE_ORDER_H
#define UNIT_EXEC_NAIVE_ORDER_H

#include <stdlib.h>

#include "engine/data/column.h"
#include "engine/plan/plan.h"

/* -1, 0, 1 for two values that are not NULL. */
static inline int naive_value_order(const struct column *a, uint32_t row_a, const struct column *b,
                                    uint32_t row_b)
{
    switch ((enum type_kind)a->type.kind) {
    case TYPE_NULL:
        return 0;
    case TYPE_BOOL:
        return a->bools[row_a] - b->bools[row_b];
    case TYPE_DOUBLE: {
        double left = a->doubles[row_a];
        double right = b->doubles[row_b];
        if (left != left) return right != right ? 0 : 1;
        if (right != right) return -1;
        return left < right ? -1 : left > right;
    }
    case TYPE_TEXT: {
        struct text left = a->texts[row_a];
        struct text right = b->texts[row_b];
        for (uint32_t i = 0; i < left.size && i < right.size; i++) {
            unsigned char letter_a = (unsigned char)left.bytes[i];
            unsigned char letter_b = (unsigned char)right.bytes[i];
            if (letter_a != letter_b) return letter_a < letter_b ? -1 : 1;
        }
        return left.size < right.size ? -1 : left.size > right.size;
    }
    case TYPE_LIST_TEXT:
    case TYPE_LIST_INT: {
        struct list left = a->lists[row_a];
        struct list right = b->lists[row_b];
        for (uint32_t i = 0; i < left.count && i < right.count; i++) {
            int order = naive_value_order(a->child, left.first + i, b->child, right.first + i);
            if (order != 0) return order;
        }
        return left.count < right.count ? -1 : left.count > right.count;
    }
    default:
        return a->ints[row_a] < b->ints[row_b] ? -1 : a->ints[row_a] > b->ints[row_b];
    }
}

static inline int naive_row_order(const struct batch *batch, uint32_t row_a, uint32_t row_b,
                                  const struct sort_key *keys, uint32_t key_count)
{
    for (uint32_t i = 0; i < key_count; i++) {
        const struct column *column = &batch->columns[keys[i].column];
        bool null_a = column_is_null(column, row_a);
        bool null_b = column_is_null(column, row_b);
        if (null_a && null_b) continue;
        if (null_a) return keys[i].nulls_first ? -1 : 1;
        if (null_b) return keys[i].nulls_first ? 1 : -1;
        int order = naive_value_order(column, row_a, column, row_b);
        if (order != 0) return keys[i].descending ? -order : order;
    }
    return 0;
}

struct naive_sort {
    const struct batch *batch;
    const struct sort_key *keys;
    uint32_t key_count;
};

static inline int naive_sort_compare(const void *a, const void *b, void *context)
{
    const struct naive_sort *sort = context;
    uint32_t row_a = *(const uint32_t *)a;
    uint32_t row_b = *(const uint32_t *)b;
    int order = naive_row_order(sort->batch, row_a, row_b, sort->keys, sort->key_count);
    return order != 0 ? order : (row_a > row_b) - (row_a < row_b);
}

/* By the keys, then by row number. */
static inline void naive_sort_rows(struct naive_sort sort, uint32_t *rows, uint32_t count)
{
    if (count > 1) qsort_r(rows, count, sizeof *rows, naive_sort_compare, &sort);
}

#endif
