/* SPDX-License-Identifier: Apache-2.0 */
/* fold_collect.c - rows in source order: a result, a union, the build side of a join, a scalar.
 *
 * Batches are stored as they came, in whatever order, and read by their numbers when all are there.
 * A build side must fit into memory, since every probe may look at any row of it; the batches it is
 * built from need not.
 */
#include <inttypes.h>

#include "engine/base/assert.h"
#include "engine/exec/fold/fold_parts.h"
#include "engine/exec/fold/row_store.h"

struct collect_shard {
    struct fold_shard shard;
    struct row_store store;
    struct batch rows;       /* Finished in memory, or the row of a scalar. */
    struct join_table table; /* Of a build side. */
};

static status collect_init(struct fold_shard *shard, struct error *err)
{
    (void)err; /* The store allocates when the first batch is added. */
    const struct fold *fold = shard->fold;
    struct row_store *store = &((struct collect_shard *)shard)->store;
    *store = (struct row_store){
        .schema = fold->input, .budget = shard->budget, .place = &shard->spill.state};
    uint64_t row_limit;
    if (!__builtin_add_overflow(fold->limit, fold->offset, &row_limit)) {
        store->row_limit = row_limit > 0 ? row_limit : 1; /* 0 would mean all. */
    }
    return STATUS_OK;
}

static void collect_done(struct fold_shard *shard)
{
    row_store_done(&((struct collect_shard *)shard)->store);
}

static status collect_apply(struct fold_shard *shard, struct batch_identity identity,
                            struct buf *bytes, uint64_t *out_rows, struct error *err)
{
    struct collect_shard *collect = (struct collect_shard *)shard;
    TRY(row_store_add(&collect->store, identity, bytes, out_rows, err));
    return fold_must_spill(shard, 0) ? fold_spill_state(shard, err) : STATUS_OK;
}

static size_t collect_held(const struct fold_shard *shard)
{
    return ((const struct collect_shard *)shard)->store.held_bytes;
}

static status collect_spill(struct fold_shard *shard, struct error *err)
{
    return row_store_spill(&((struct collect_shard *)shard)->store, err);
}

static size_t collect_finish_need(const struct fold_shard *shard)
{
    return 3 * ((const struct collect_shard *)shard)->store.byte_count;
}

static status collect_finish(struct fold_shard *shard, struct error *err)
{
    struct collect_shard *collect = (struct collect_shard *)shard;
    const struct fold *fold = shard->fold;
    TRY(row_store_read(&collect->store, &collect->rows, err));
    fold_finished(shard, collect->rows.row_count);
    if (!fold->is_build_side) return STATUS_OK;
    ASSERT(shard->first == 0);
    if (fold->is_bloom) {
        return join_table_build_bloom(&collect->table, collect->rows, &shard->arena, err);
    }
    TRY(join_table_build(&collect->table, collect->rows, fold->side_keys, &shard->arena, err));
    return join_table_find_duplicates(&collect->table, fold->duplicate_sets,
                                      fold->duplicate_set_count, &shard->arena, err);
}

/* ---- from a file ---- */

struct scalar_sink {
    struct fold_sink sink;
    struct row_store *store;
};

static status accept_scalar(struct fold_sink *sink, uint64_t number, const struct batch *batch,
                            struct error *err)
{
    struct row_store *store = ((struct scalar_sink *)sink)->store;
    (void)number, (void)err; /* The builder says later whether it failed. */
    builder_append(&store->builder, batch, (struct selection){NULL, batch->row_count});
    return STATUS_OK;
}

/* Brings the one row that is emitted back into memory. */
static status read_scalar(struct collect_shard *collect, struct error *err)
{
    struct fold_shard *shard = &collect->shard;
    struct row_store *store = &collect->store;
    *store = (struct row_store){.budget = shard->budget, .builder_ready = true};
    if (!builder_init(&store->builder, shard->fold->input, shard->budget)) return error_memory(err);
    struct scalar_sink scalar = {.sink = {accept_scalar}, .store = store};
    TRY(fold_spill_emit(shard, &scalar.sink, err));
    return builder_batch(&store->builder, &collect->rows) ? STATUS_OK : error_memory(err);
}

static status collect_finish_spilled(struct fold_shard *shard, struct error *err)
{
    struct collect_shard *collect = (struct collect_shard *)shard;
    struct fold_spill *spill = &shard->spill;
    if (shard->fold->is_build_side) {
        TRY(fold_spill_state(shard, err));
        return collect_finish(shard, err);
    }
    TRY(row_store_spill(&collect->store, err));
    spill->result.schema = shard->fold->input;
    /* The rows lie in the state's file already, and stay there. */
    spill->rows.file = spill->state.file;
    spill->state.file = NULL;
    TRY(row_store_list(&collect->store, &spill->result, err));
    fold_spill_finished(shard);
    return shard->fold->is_scalar && shard->count == 1 ? read_scalar(collect, err) : STATUS_OK;
}

/* ---- reading ---- */

static status collect_read(const struct fold_shard *shard, uint32_t first, uint32_t count,
                           struct arena *arena, struct batch *out_batch, struct error *err)
{
    const struct collect_shard *collect = (const struct collect_shard *)shard;
    return fold_read_slice(&collect->rows, first, count, arena, out_batch, err);
}

const struct join_table *fold_shard_join_table(const struct fold_shard *shard)
{
    ASSERT(shard->class == &fold_collect && shard->fold->is_build_side);
    return &((const struct collect_shard *)shard)->table;
}

status fold_shard_scalar(const struct fold_shard *shard, struct value *out_value, struct error *err)
{
    ASSERT(shard->class == &fold_collect && shard->fold->is_scalar);
    if (shard->count > 1) {
        return error_set(err, STATUS_INPUT,
                         "a sub-query used as a value gave %" PRIu64
                         " rows; it may give one at most",
                         shard->count);
    }
    *out_value = (struct value){.is_null = true};
    if (shard->count == 0) return STATUS_OK;
    const struct column *column = &((const struct collect_shard *)shard)->rows.columns[0];
    /* What was read back from a file is that row alone. */
    uint32_t row = shard->spill.finished ? 0 : (uint32_t)shard->first;
    if (column_is_null(column, row)) return STATUS_OK;
    *out_value = (struct value){0};
    if (column->type.kind == TYPE_BOOL) {
        out_value->truth = column->bools[row] != 0;
    } else if (column->type.kind == TYPE_TEXT) {
        out_value->text = column->texts[row];
    } else if (column->type.kind == TYPE_DOUBLE) {
        out_value->number = column->doubles[row];
    } else {
        out_value->integer = column->ints[row];
    }
    return STATUS_OK;
}

const struct fold_class fold_collect = {
    .shard_bytes = sizeof(struct collect_shard),
    .init = collect_init,
    .done = collect_done,
    .apply = collect_apply,
    .held = collect_held,
    .spill = collect_spill,
    .finish_need = collect_finish_need,
    .finish = collect_finish,
    .finish_spilled = collect_finish_spilled,
    .read = collect_read,
};
