/* SPDX-License-Identifier: Apache-2.0 */
/* function_hash.c - the hash of a join's keys as a value: it chooses shards and Bloom filter bits.
 */
#include <string.h>

#include "engine/exec/expr/kernels.h"
#include "engine/data/key_hash.h"

static status load_keys(struct eval *eval, const struct frame *frame, struct column *keys,
                        uint32_t *places, struct error *err)
{
    for (uint32_t i = 0; i < eval->arg_count; i++) {
        TRY(eval_in_frame(eval->args[i], frame, &keys[i], err));
        places[i] = i;
    }
    return STATUS_OK;
}

static status note_nulls(const struct frame *frame, const struct column *key, struct column *out,
                         struct error *err)
{
    if (key->nulls == NULL) return STATUS_OK;
    if (!column_need_nulls(out, frame->batch->row_count, frame->context->arena)) {
        return kernel_no_memory(err);
    }
    uint8_t *nulls = out->nulls;
    EACH_ROW(frame->selection, row, nulls[row] |= key->nulls[row];);
    return STATUS_OK;
}

status hash_run(struct eval *eval, const struct frame *frame, struct column *out, struct error *err)
{
    struct arena *arena = frame->context->arena;
    struct column *keys = arena_array(arena, struct column, eval->arg_count);
    uint32_t *places = arena_array(arena, uint32_t, eval->arg_count);
    uint64_t *hashes =
        arena_alloc(arena, (size_t)frame->selection.count * sizeof *hashes, alignof(uint64_t));
    if (keys == NULL || places == NULL || hashes == NULL ||
        !column_init(out, TYPE(INT), frame->batch->row_count, arena)) {
        return kernel_no_memory(err);
    }
    TRY(load_keys(eval, frame, keys, places, err));
    struct batch batch = {
        .row_count = frame->batch->row_count, .column_count = eval->arg_count, .columns = keys};
    key_hash(&batch, places, eval->arg_count, frame->selection, hashes);
    for (uint32_t i = 0; i < frame->selection.count; i++) {
        out->ints[selection_row(frame->selection, i)] = (int64_t)hashes[i];
    }
    for (uint32_t i = 0; i < eval->arg_count; i++) {
        TRY(note_nulls(frame, &keys[i], out, err));
    }
    return STATUS_OK;
}
