/* SPDX-License-Identifier: Apache-2.0 */
/* function_in.c - x IN (a, b, ...).
 *
 * A list of constants becomes a set when the eval is created: numbers sorted, texts in a hash table
 * of open addressing at most half full. A list with anything else is compared element by element.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/exec/expr/kernels.h"

enum { FEW = 8 };

struct set {
    bool has_null;
    uint32_t count;
    int64_t *keys;      /* Ascending, each once. BOOLs are 0 and 1, doubles double_key. */
    struct text *texts; /* By slot; bytes == NULL: free. */
    uint32_t slot_mask;
    uint64_t sizes; /* A bit for each size that a text of the set has; the last for all above. */
};

static int order_of_keys(const void *a, const void *b)
{
    int64_t left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return (left > right) - (left < right);
}

static int64_t key_of(const struct value *value, struct type type)
{
    if (type.kind == TYPE_BOOL) return value->truth;
    if (type.kind == TYPE_DOUBLE) return double_key(value->number);
    return value->integer;
}

static status set_numbers(struct set *set, const struct eval *eval, struct arena *arena,
                          struct error *err)
{
    struct type type = eval->args[0]->expr->type;
    set->keys = arena_array(arena, int64_t, eval->arg_count);
    if (set->keys == NULL) return kernel_no_memory(err);
    uint32_t count = 0;
    for (uint32_t i = 1; i < eval->arg_count; i++) {
        const struct value *value = &eval->args[i]->constant;
        if (!value->is_null) set->keys[count++] = key_of(value, type);
    }
    if (count > 1) qsort(set->keys, count, sizeof set->keys[0], order_of_keys);
    for (uint32_t i = 0; i < count; i++) {
        if (set->count == 0 || set->keys[set->count - 1] != set->keys[i]) {
            set->keys[set->count++] = set->keys[i];
        }
    }
    return STATUS_OK;
}

static uint64_t size_bit(struct text text)
{
    return (uint64_t)1 << (text.size < 63 ? text.size : 63);
}

/* The slot of this text, or the free one where it belongs. */
static struct text *set_slot(const struct set *set, struct text text)
{
    uint64_t slot = hash_bytes(text.size == 0 ? "" : text.bytes, text.size);
    for (;; slot++) {
        struct text *place = &set->texts[slot & set->slot_mask];
        if (place->bytes == NULL || text_equal(*place, text)) return place;
    }
}

static status set_texts(struct set *set, const struct eval *eval, struct arena *arena,
                        struct error *err)
{
    size_t slots = 4;
    while (slots < (size_t)eval->arg_count * 2) {
        slots *= 2;
    }
    set->slot_mask = (uint32_t)(slots - 1);
    set->texts = arena_array(arena, struct text, slots);
    if (set->texts == NULL) return kernel_no_memory(err);
    for (uint32_t i = 1; i < eval->arg_count; i++) {
        const struct value *value = &eval->args[i]->constant;
        if (value->is_null) continue;
        struct text *place = set_slot(set, value->text);
        if (place->bytes != NULL) continue;
        *place = value->text.size == 0 ? TEXT_LITERAL("") : value->text;
        set->sizes |= size_bit(value->text);
        set->count++;
    }
    return STATUS_OK;
}

/* Most texts differ from all of the set by their size: these need not be hashed. */
static inline bool set_has_text(const struct set *set, struct text text)
{
    return (set->sizes & size_bit(text)) != 0 && set_slot(set, text)->bytes != NULL;
}

status compare_in_prepare(struct eval *eval, struct arena *stage_arena, struct error *err)
{
    struct type type = eval->args[0]->expr->type;
    if (type_is_list(type) || type.kind == TYPE_NULL) return STATUS_OK;
    bool has_null = false;
    for (uint32_t i = 1; i < eval->arg_count; i++) {
        if (!eval->args[i]->is_constant) return STATUS_OK;
        has_null |= eval->args[i]->constant.is_null;
    }
    struct set *set = arena_new(stage_arena, struct set);
    if (set == NULL) return kernel_no_memory(err);
    set->has_null = has_null;
    eval->state = set;
    return type.kind == TYPE_TEXT ? set_texts(set, eval, stage_arena, err)
                                  : set_numbers(set, eval, stage_arena, err);
}

static inline bool set_has_few(const struct set *set, int64_t key)
{
    bool found = false;
    for (uint32_t i = 0; i < set->count; i++) {
        found |= set->keys[i] == key;
    }
    return found;
}

static inline bool set_has(const struct set *set, int64_t key)
{
    if (set->count <= FEW) return set_has_few(set, key);
    uint32_t first = 0;
    for (uint32_t left = set->count; left > 1;) {
        uint32_t half = left / 2;
        first += set->keys[first + half] <= key ? half : 0;
        left -= half;
    }
    return set->keys[first] == key;
}

static void mark_members(const struct set *set, const struct operand *operand,
                         const struct frame *frame, const uint8_t *nulls, uint8_t *out)
{
    const struct column *column = &operand->column;
    const uint32_t mask = operand->mask;
    switch ((enum type_kind)column->type.kind) {
    case TYPE_TEXT:
        EACH_ROW(frame->selection, row, if (is_null_at(nulls, row)) continue;
                 out[row] = set_has_text(set, column->texts[row & mask]););
        return;
    case TYPE_BOOL:
        EACH_ROW(frame->selection, row,
                 out[row] = set_has_few(set, column->bools[row & mask] != 0););
        return;
    case TYPE_DOUBLE:
        EACH_ROW(frame->selection, row,
                 out[row] = set_has(set, double_key(column->doubles[row & mask])););
        return;
    default:
        EACH_ROW(frame->selection, row, out[row] = set_has(set, column->ints[row & mask]););
        return;
    }
}

/* A row that is in no element, some of which are NULL for it, is neither in nor out. */
static status among_any(struct eval *eval, const struct frame *frame, const struct operand *wanted,
                        struct column *out, struct error *err)
{
    uint32_t row_count = frame->batch->row_count;
    uint8_t *equal = arena_alloc(frame->context->arena, row_count, 1);
    if (equal == NULL) return kernel_no_memory(err);
    uint8_t *found = out->bools;
    uint8_t *unknown = out->nulls;
    EACH_ROW(frame->selection, row, found[row] = 0;);
    for (uint32_t i = 1; i < eval->arg_count; i++) {
        struct operand pair[2] = {*wanted};
        if (wanted->mask == 0) pair[0].column.data = &pair[0].constant;
        TRY(operand_load(eval->args[i], frame, &pair[1], err));
        if (pair[1].is_null) {
            EACH_ROW(frame->selection, row, unknown[row] = 1;);
            continue;
        }
        uint8_t *nulls;
        TRY(kernel_nulls(frame, pair, 2, &nulls, err));
        compare_equal(frame, &pair[0], &pair[1], nulls, equal);
        EACH_ROW(frame->selection, row, const bool is_null = is_null_at(nulls, row);
                 found[row] |= !is_null && equal[row]; unknown[row] |= is_null;);
    }
    EACH_ROW(frame->selection, row, if (found[row]) unknown[row] = 0;);
    return STATUS_OK;
}

status compare_in(struct eval *eval, const struct frame *frame, struct column *out,
                  struct error *err)
{
    const struct set *set = eval->state;
    struct operand operand;
    TRY(operand_load(eval->args[0], frame, &operand, err));
    if (operand.is_null) return kernel_all_null(TYPE(BOOL), frame, out, err);
    struct column made;
    if (!column_init(&made, TYPE(BOOL), frame->batch->row_count, frame->context->arena)) {
        return kernel_no_memory(err);
    }
    TRY(kernel_nulls(frame, &operand, 1, &made.nulls, err));
    if (set == NULL) {
        TRY(kernel_own_nulls(frame, &made, err));
        TRY(among_any(eval, frame, &operand, &made, err));
    } else {
        mark_members(set, &operand, frame, made.nulls, made.bools);
        if (set->has_null) {
            TRY(kernel_own_nulls(frame, &made, err));
            EACH_ROW(frame->selection, row, if (!made.bools[row]) made.nulls[row] = 1;);
        }
    }
    *out = made;
    return STATUS_OK;
}
