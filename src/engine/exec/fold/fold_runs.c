/* fold_runs.c - sorting and ranking more than memory holds: sorted runs, then a merge of them.
 *
 * Rows that compare as equal are equal, for every column is among the keys; so it is not seen which
 * run they were in.
 */
#include "engine/base/radix_sort.h"
#include "engine/exec/fold/fold_parts.h"
#include "engine/exec/fold/row_sort.h"

enum { RUN_SHARE = 32 }; /* Less than this part of the limit makes no run: it waits unsorted. */

static struct schema run_schema(const struct fold *fold)
{
    return fold->kind == FOLD_RANK ? fold->output : fold->input;
}

/* The rows are in order. */
static status write_run(struct fold_shard *shard, const struct batch *batch,
                        struct selection selection, struct error *err)
{
    struct spill_rows run = {.place = &shard->spill.state, .schema = run_schema(shard->fold)};
    struct spill_writer writer;
    status result = spill_writer_open(&writer, &run, err);
    if (result == STATUS_OK) result = spill_writer_append(&writer, batch, selection, err);
    if (result == STATUS_OK) result = spill_writer_flush(&writer, err);
    spill_writer_done(&writer);
    if (result == STATUS_OK && run.row_count > 0) {
        result = spill_runs_add(&shard->spill.runs, &run, err);
    }
    spill_rows_done(&run);
    return result;
}

/* How many encoded bytes can be sorted in half of the room there is. */
static size_t run_bytes(const struct fold_shard *shard)
{
    const struct row_store *kept = &shard->kept[0];
    uint64_t row_bytes = kept->byte_count / kept->row_count + 1;
    uint64_t more_bytes = sizeof(uint32_t) + 2 * sizeof(struct radix_item);
    for (uint32_t i = 0; i < kept->schema.count; i++) {
        uint8_t kind = kept->schema.fields[i].type.kind;
        if (kind == TYPE_TEXT || kind == TYPE_LIST_TEXT) more_bytes += sizeof(struct text);
    }
    uint64_t rows = budget_room(shard->budget) / 2 / (3 * row_bytes + more_bytes);
    return (size_t)(rows * row_bytes);
}

static status sort_run(struct fold_shard *shard, struct error *err)
{
    const struct ranking *ranking = shard->fold->ranking;
    struct batch batch;
    TRY(row_store_take(&shard->kept[0], run_bytes(shard), &batch, err));
    arena_reset(&shard->scratch);
    uint32_t *rows = arena_array(&shard->scratch, uint32_t, (size_t)batch.row_count + 1);
    if (rows == NULL) return error_memory(err);
    for (uint32_t i = 0; i < batch.row_count; i++) {
        rows[i] = i;
    }
    if (!row_sort(&batch, ranking->keys, ranking->key_count, rows, batch.row_count,
                  &shard->scratch)) {
        return error_memory(err);
    }
    return write_run(shard, &batch, (struct selection){rows, batch.row_count}, err);
}

static status sort_runs(struct fold_shard *shard, struct error *err)
{
    status result = STATUS_OK;
    while (shard->kept[0].count > 0 && result == STATUS_OK) {
        result = sort_run(shard, err);
    }
    row_store_trim(&shard->kept[0]);
    arena_done(&shard->scratch);
    return result;
}

status fold_sort_spill(struct fold_shard *shard, struct error *err)
{
    struct row_store *kept = &shard->kept[0];
    if (kept->held_bytes < shard->spill.limit_bytes / RUN_SHARE) return row_store_spill(kept, err);
    return sort_runs(shard, err);
}

status fold_rank_spill(struct fold_shard *shard, struct error *err)
{
    struct batch best;
    TRY(ranker_finish(shard->ranker, &best, err));
    TRY(write_run(shard, &best, (struct selection){NULL, best.row_count}, err));
    return fold_state_reset(shard, err);
}

status fold_runs_finish(struct fold_shard *shard, struct error *err)
{
    const struct fold *fold = shard->fold;
    const struct ranking *ranking = fold->ranking;
    struct fold_spill *spill = &shard->spill;
    bool ranks = fold->kind == FOLD_RANK;
    if (ranks) {
        TRY(fold_rank_spill(shard, err));
        ranker_destroy(shard->ranker);
        shard->ranker = NULL;
    } else {
        TRY(sort_runs(shard, err));
    }
    uint32_t partition_count = ranks ? ranking->partition_count : 0;
    uint32_t key_count = partition_count + ranking->key_count;
    struct sort_key *keys = arena_array(&shard->arena, struct sort_key, key_count + 1);
    if (keys == NULL) return error_memory(err);
    for (uint32_t i = 0; i < key_count; i++) {
        keys[i] = i < partition_count ? (struct sort_key){.column = ranking->partition_columns[i]}
                                      : ranking->keys[i - partition_count];
    }
    struct spill_merge merge = {.keys = keys,
                                .key_count = key_count,
                                .cut = ranks ? ranking : NULL,
                                .row_limit = UINT64_MAX,
                                .fan = spill->fan};
    if (__builtin_add_overflow(fold->offset, fold->limit, &merge.row_limit)) {
        merge.row_limit = UINT64_MAX;
    }
    spill->result.schema = run_schema(fold);
    return spill_merge(&merge, &spill->runs, &spill->result, err);
}
