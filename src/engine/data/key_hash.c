/* SPDX-License-Identifier: Apache-2.0 */
/* key_hash.c - a loop per column, so that the type is looked at once. */
#include "engine/data/key_hash.h"

static void mix_words(const struct column *column, struct selection selection, uint64_t *out)
{
    if (column->nulls == NULL && selection.rows == NULL) {
        for (uint32_t i = 0; i < selection.count; i++) {
            out[i] = hash_combine(out[i], (uint64_t)column->ints[i]);
        }
        return;
    }
    for (uint32_t i = 0; i < selection.count; i++) {
        uint32_t row = selection_row(selection, i);
        uint64_t value = column_is_null(column, row) ? KEY_HASH_NULL : (uint64_t)column->ints[row];
        out[i] = hash_combine(out[i], value);
    }
}

static void mix_texts(const struct column *column, struct selection selection, uint64_t *out)
{
    for (uint32_t i = 0; i < selection.count; i++) {
        uint32_t row = selection_row(selection, i);
        uint64_t value = KEY_HASH_NULL;
        if (!column_is_null(column, row)) {
            struct text text = column->texts[row];
            value = hash_bytes(text.size == 0 ? "" : text.bytes, text.size);
        }
        out[i] = hash_combine(out[i], value);
    }
}

static void mix_others(const struct column *column, struct selection selection, uint64_t *out)
{
    for (uint32_t i = 0; i < selection.count; i++) {
        out[i] = hash_combine(out[i], column_hash(column, selection_row(selection, i)));
    }
}

void key_hash(const struct batch *batch, const uint32_t *columns, uint32_t column_count,
              struct selection selection, uint64_t *out)
{
    for (uint32_t i = 0; i < selection.count; i++) {
        out[i] = 0;
    }
    for (uint32_t i = 0; i < column_count; i++) {
        const struct column *column = &batch->columns[columns[i]];
        switch ((enum type_kind)column->type.kind) {
        case TYPE_INT:
        case TYPE_DECIMAL:
        case TYPE_DATE:
        case TYPE_TIMESTAMP:
            mix_words(column, selection, out);
            break;
        case TYPE_TEXT:
            mix_texts(column, selection, out);
            break;
        case TYPE_NULL:
        case TYPE_BOOL:
        case TYPE_DOUBLE:
        case TYPE_LIST_TEXT:
        case TYPE_LIST_INT:
            mix_others(column, selection, out);
            break;
        }
    }
}

/* Asked for every candidate of a probe: the two common kinds are decided here. */
static bool value_equal(const struct column *a, uint32_t row_a, const struct column *b,
                        uint32_t row_b)
{
    if (a->nulls == NULL && b->nulls == NULL) {
        if (a->type.kind == TYPE_TEXT) return text_equal(a->texts[row_a], b->texts[row_b]);
        if (a->type.kind == TYPE_INT) return a->ints[row_a] == b->ints[row_b];
    }
    return column_compare(a, row_a, b, row_b) == 0;
}

bool key_equal(const struct batch *a, const uint32_t *columns_a, uint32_t row_a,
               const struct batch *b, const uint32_t *columns_b, uint32_t row_b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!value_equal(&a->columns[columns_a[i]], row_a, &b->columns[columns_b[i]], row_b)) {
            return false;
        }
    }
    return true;
}

bool key_has_null(const struct batch *batch, const uint32_t *columns, uint32_t count, uint32_t row)
{
    for (uint32_t i = 0; i < count; i++) {
        if (column_is_null(&batch->columns[columns[i]], row)) return true;
    }
    return false;
}
