/* SPDX-License-Identifier: Apache-2.0 */
/* fold_sort.c - all rows in an order.
 *
 * In memory, a sort of row numbers. Beyond memory, an external merge sort (Knuth, The Art of
 * Computer Programming 3, 5.4): what is held is sorted and written as a run, and the runs are
 * merged at the end. Rows that compare as equal are equal, for every column is among the keys; so
 * the answer does not depend on the run that a row was in.
 */
#include "engine/base/radix_sort.h"
#include "engine/exec/fold/fold_parts.h"
#include "engine/exec/fold/row_sort.h"
#include "engine/exec/fold/row_store.h"
#include "engine/exec/fold/spill_merge.h"

enum { RUN_SHARE = 32 }; /* Less than this part of the limit makes no run: it waits unsorted. */

struct sort_shard {
    struct fold_shard shard;
    struct row_store store; /* Not in a run yet. */
    struct spill_runs runs;
    struct batch rows;     /* Finished in memory: the rows, */
    const uint32_t *order; /* and their order. */
};

static status sort_init(struct fold_shard *shard, struct error *err)
{
    (void)err; /* The store allocates when the first batch is added. */
    struct sort_shard *sort = (struct sort_shard *)shard;
    sort->store = (struct row_store){
        .schema = shard->fold->input, .budget = shard->budget, .place = &shard->spill.state};
    sort->runs.budget = shard->budget;
    return STATUS_OK;
}

static void sort_done(struct fold_shard *shard)
{
    struct sort_shard *sort = (struct sort_shard *)shard;
    row_store_done(&sort->store);
    spill_runs_done(&sort->runs);
}

static status sort_apply(struct fold_shard *shard, struct batch_identity identity,
                         struct buf *bytes, uint64_t *out_rows, struct error *err)
{
    struct sort_shard *sort = (struct sort_shard *)shard;
    TRY(row_store_add(&sort->store, identity, bytes, out_rows, err));
    return fold_must_spill(shard, 0) ? fold_spill_state(shard, err) : STATUS_OK;
}

static size_t sort_held(const struct fold_shard *shard)
{
    return ((const struct sort_shard *)shard)->store.held_bytes;
}

/* The order of the rows, in `arena`. */
static status find_order(struct fold_shard *shard, const struct batch *rows, struct arena *arena,
                         uint32_t **out_order, struct error *err)
{
    const struct ranking *ranking = shard->fold->ranking;
    uint32_t *order = arena_array(arena, uint32_t, (size_t)rows->row_count + 1);
    if (order == NULL) return error_memory(err);
    for (uint32_t i = 0; i < rows->row_count; i++) {
        order[i] = i;
    }
    if (!row_sort(rows, ranking->keys, ranking->key_count, order, rows->row_count,
                  &shard->scratch)) {
        return error_memory(err);
    }
    *out_order = order;
    return STATUS_OK;
}

/* ---- runs ---- */

/* How many encoded bytes can be sorted in half of the room there is. */
static size_t run_bytes(const struct sort_shard *sort)
{
    const struct row_store *store = &sort->store;
    uint64_t row_bytes = store->byte_count / store->row_count + 1;
    uint64_t more_bytes = sizeof(uint32_t) + 2 * sizeof(struct radix_item);
    for (uint32_t i = 0; i < store->schema.count; i++) {
        uint8_t kind = store->schema.fields[i].type.kind;
        if (kind == TYPE_TEXT || kind == TYPE_LIST_TEXT) more_bytes += sizeof(struct text);
    }
    uint64_t rows = budget_room(sort->shard.budget) / 2 / (3 * row_bytes + more_bytes);
    return (size_t)(rows * row_bytes);
}

static status write_run(struct sort_shard *sort, struct error *err)
{
    struct fold_shard *shard = &sort->shard;
    struct batch batch;
    uint32_t *order;
    TRY(row_store_take(&sort->store, run_bytes(sort), &batch, err));
    arena_reset(&shard->scratch);
    TRY(find_order(shard, &batch, &shard->scratch, &order, err));
    return fold_run_write(shard, &sort->runs, shard->fold->input, &batch,
                          (struct selection){order, batch.row_count}, err);
}

static status write_runs(struct sort_shard *sort, struct error *err)
{
    status result = STATUS_OK;
    while (sort->store.batches.count > 0 && result == STATUS_OK) {
        result = write_run(sort, err);
    }
    row_store_trim(&sort->store);
    arena_done(&sort->shard.scratch);
    return result;
}

static status sort_spill(struct fold_shard *shard, struct error *err)
{
    struct sort_shard *sort = (struct sort_shard *)shard;
    if (sort->store.held_bytes < shard->spill.limit_bytes / RUN_SHARE) {
        return row_store_spill(&sort->store, err);
    }
    return write_runs(sort, err);
}

/* ---- finishing ---- */

static size_t sort_finish_need(const struct fold_shard *shard)
{
    const struct row_store *store = &((const struct sort_shard *)shard)->store;
    return 3 * store->byte_count +
           store->row_count * (sizeof(uint32_t) + 2 * sizeof(struct radix_item));
}

static status sort_finish(struct fold_shard *shard, struct error *err)
{
    struct sort_shard *sort = (struct sort_shard *)shard;
    uint32_t *order;
    TRY(row_store_read(&sort->store, &sort->rows, err));
    TRY(find_order(shard, &sort->rows, &shard->arena, &order, err));
    sort->order = order;
    fold_finished(shard, sort->rows.row_count);
    return STATUS_OK;
}

static status sort_finish_spilled(struct fold_shard *shard, struct error *err)
{
    struct sort_shard *sort = (struct sort_shard *)shard;
    const struct ranking *ranking = shard->fold->ranking;
    TRY(write_runs(sort, err));
    shard->spill.result.schema = shard->fold->input;
    TRY(fold_runs_merge(shard, &sort->runs, ranking->keys, ranking->key_count, NULL, err));
    fold_spill_finished(shard);
    return STATUS_OK;
}

static status sort_read(const struct fold_shard *shard, uint32_t first, uint32_t count,
                        struct arena *arena, struct batch *out_batch, struct error *err)
{
    const struct sort_shard *sort = (const struct sort_shard *)shard;
    uint32_t column_count = sort->rows.column_count;
    struct column *columns = arena_array(arena, struct column, column_count + 1);
    if (columns == NULL) return error_memory(err);
    TRY(fold_gather(columns, sort->rows.columns, column_count, sort->order + first, count, arena,
                    err));
    *out_batch =
        (struct batch){.row_count = count, .column_count = column_count, .columns = columns};
    return STATUS_OK;
}

const struct fold_class fold_sort = {
    .shard_bytes = sizeof(struct sort_shard),
    .init = sort_init,
    .done = sort_done,
    .apply = sort_apply,
    .held = sort_held,
    .spill = sort_spill,
    .finish_need = sort_finish_need,
    .finish = sort_finish,
    .finish_spilled = sort_finish_spilled,
    .read = sort_read,
};
