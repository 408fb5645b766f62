/* SPDX-License-Identifier: Apache-2.0 */
/* fold.c - what all folds have in common; what a kind does by itself stands in its own file.
 *
 * Dispatch is per batch: the loops over rows are inside the kinds.
 */
#include "engine/exec/fold/fold.h"

#include "engine/exec/fold/fold_parts.h"

static const struct fold_class *const classes[] = {
    [FOLD_COLLECT] = &fold_collect, [FOLD_AGGREGATE] = &fold_aggregate, [FOLD_SORT] = &fold_sort,
    [FOLD_RANK] = &fold_rank,       [FOLD_JOIN] = &fold_join,
};

uint32_t fold_shard_count(const struct fold *fold, uint32_t wanted)
{
    bool by_key = classes[fold->kind]->shards_by_key && fold->key_count > 0;
    return by_key || fold->partitioned ? wanted : 1;
}

uint32_t fold_shard_of(uint64_t hash, uint32_t shard_count)
{
    /* The upper half: the lower bits choose the slot in the shard's own table. */
    return (uint32_t)((hash >> 32) * shard_count >> 32);
}

/* ---- for the kinds ---- */

void fold_finished(struct fold_shard *shard, uint64_t row_count)
{
    const struct fold *fold = shard->fold;
    shard->first = fold->offset < row_count ? fold->offset : row_count;
    uint64_t left = row_count - shard->first;
    shard->count = fold->limit < left ? fold->limit : left;
    shard->counts.rows_out = shard->count;
    shard->counts.batches_out = (shard->count + EMIT_ROWS - 1) / EMIT_ROWS;
}

status fold_read_slice(const struct batch *rows, uint32_t first, uint32_t count,
                       struct arena *arena, struct batch *out_batch, struct error *err)
{
    struct column *columns = arena_array(arena, struct column, rows->column_count + 1);
    if (columns == NULL) return error_memory(err);
    *out_batch = batch_slice(rows, first, count, columns);
    return STATUS_OK;
}

status fold_gather(struct column *out, const struct column *from, uint32_t column_count,
                   const uint32_t *rows, uint32_t row_count, struct arena *arena, struct error *err)
{
    for (uint32_t i = 0; i < column_count; i++) {
        if (!column_gather(&out[i], &from[i], rows, row_count, arena)) return error_memory(err);
    }
    return STATUS_OK;
}

size_t fold_held_bytes(const struct fold_held *held)
{
    size_t used = atomic_load(&held->budget.used_bytes);
    return used > held->empty_bytes ? used - held->empty_bytes : 0;
}

/* ---- the life of a shard ---- */

status fold_shard_create(const struct fold *fold, struct budget *budget, struct spill_store *store,
                         struct fold_shard **out_shard, struct error *err)
{
    const struct fold_class *class = classes[fold->kind];
    struct fold_shard *shard = memory_alloc_zeroed(budget, class->shard_bytes);
    if (shard == NULL) return error_memory(err);
    *shard = (struct fold_shard){.class = class, .fold = fold, .budget = budget};
    arena_init(&shard->arena, budget);
    arena_init(&shard->scratch, budget);
    fold_spill_init(shard, store);
    status result = class->init(shard, err);
    if (result != STATUS_OK) {
        fold_shard_destroy(shard);
        return result;
    }
    *out_shard = shard;
    return STATUS_OK;
}

void fold_shard_destroy(struct fold_shard *shard)
{
    if (shard == NULL) return;
    shard->class->done(shard);
    fold_spill_done(shard);
    arena_done(&shard->arena);
    arena_done(&shard->scratch);
    memory_free_zeroed(shard->budget, shard, shard->class->shard_bytes);
}

status fold_shard_apply(struct fold_shard *shard, struct batch_identity identity, struct buf *bytes,
                        uint64_t *out_rows, struct error *err)
{
    uint64_t rows = 0;
    TRY(shard->class->apply(shard, identity, bytes, &rows, err));
    shard->counts.rows_in += rows;
    *out_rows = rows;
    return STATUS_OK;
}

status fold_shard_finish(struct fold_shard *shard, struct error *err)
{
    const struct fold_class *class = shard->class;
    arena_done(&shard->scratch);
    bool has_spilled = shard->spill.state.file != NULL;
    if (!has_spilled && fold_fits(shard, class->finish_need(shard))) {
        TRY(class->finish(shard, err));
    } else {
        TRY(class->finish_spilled(shard, err));
    }
    arena_done(&shard->scratch);
    return STATUS_OK;
}

status fold_shard_emit(const struct fold_shard *shard, struct fold_sink *sink, struct error *err)
{
    if (shard->spill.finished) return fold_spill_emit(shard, sink, err);
    struct arena arena;
    arena_init(&arena, shard->budget);
    status result = STATUS_OK;
    uint64_t number = 0;
    /* In memory there are fewer rows than a batch can number. */
    uint32_t first = (uint32_t)shard->first;
    uint32_t left = (uint32_t)shard->count;
    for (; left > 0 && result == STATUS_OK; number++) {
        uint32_t count = left < EMIT_ROWS ? left : EMIT_ROWS;
        struct batch batch;
        result = shard->class->read(shard, first, count, &arena, &batch, err);
        if (result == STATUS_OK) result = sink->accept(sink, number, &batch, err);
        first += count;
        left -= count;
        arena_reset(&arena);
    }
    arena_done(&arena);
    return result;
}

const struct fold_counts *fold_shard_counts(const struct fold_shard *shard)
{
    return &shard->counts;
}
