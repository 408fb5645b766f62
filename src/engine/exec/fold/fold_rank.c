/* SPDX-License-Identifier: Apache-2.0 */
/* fold_rank.c - the best rows of each partition, by partition, then in their order.
 *
 * Candidates are held by a ranker. Beyond memory its best rows are written as a run: the best of
 * all are among the best of the runs, so a merge by partition and keys finds them.
 */
#include "engine/data/batch_codec.h"
#include "engine/exec/fold/fold_parts.h"
#include "engine/exec/fold/ranker.h"
#include "engine/exec/fold/spill_merge.h"

struct rank_shard {
    struct fold_shard shard;
    struct fold_held held;
    struct ranker *ranker; /* NULL: the rows are in a file. */
    struct spill_runs runs;
    struct batch rows; /* Finished in memory. */
};

/* An empty ranker; the candidates are gone. */
static status renew(struct rank_shard *rank, struct error *err)
{
    const struct fold *fold = rank->shard.fold;
    ranker_destroy(rank->ranker);
    rank->ranker = NULL;
    TRY(ranker_create(fold->ranking, fold->output, &rank->held.budget, &rank->ranker, err));
    rank->held.empty_bytes = atomic_load(&rank->held.budget.used_bytes);
    return STATUS_OK;
}

static status rank_init(struct fold_shard *shard, struct error *err)
{
    struct rank_shard *rank = (struct rank_shard *)shard;
    rank->held.budget.parent = shard->budget;
    rank->runs.budget = shard->budget;
    return renew(rank, err);
}

static void rank_done(struct fold_shard *shard)
{
    struct rank_shard *rank = (struct rank_shard *)shard;
    ranker_destroy(rank->ranker);
    rank->ranker = NULL;
    spill_runs_done(&rank->runs);
}

static status rank_apply(struct fold_shard *shard, struct batch_identity identity,
                         struct buf *bytes, uint64_t *out_rows, struct error *err)
{
    struct rank_shard *rank = (struct rank_shard *)shard;
    (void)identity; /* Ties are broken by value, never by arrival. */
    struct batch batch;
    arena_reset(&shard->scratch);
    TRY(batch_decode(bytes->bytes, bytes->size, shard->fold->input, &shard->scratch, &batch, err));
    *out_rows = batch.row_count;
    if (fold_must_spill(shard, ranker_need(rank->ranker) + 2 * bytes->size)) {
        TRY(fold_spill_state(shard, err));
    }
    return ranker_add(rank->ranker, &batch, (struct selection){NULL, batch.row_count}, err);
}

static size_t rank_held(const struct fold_shard *shard)
{
    return fold_held_bytes(&((const struct rank_shard *)shard)->held);
}

static status rank_spill(struct fold_shard *shard, struct error *err)
{
    struct rank_shard *rank = (struct rank_shard *)shard;
    struct batch best;
    TRY(ranker_finish(rank->ranker, &best, err));
    TRY(fold_run_write(shard, &rank->runs, shard->fold->output, &best,
                       (struct selection){NULL, best.row_count}, err));
    return renew(rank, err);
}

static size_t rank_finish_need(const struct fold_shard *shard)
{
    return ranker_need(((const struct rank_shard *)shard)->ranker);
}

static status rank_finish(struct fold_shard *shard, struct error *err)
{
    struct rank_shard *rank = (struct rank_shard *)shard;
    TRY(ranker_finish(rank->ranker, &rank->rows, err));
    fold_finished(shard, rank->rows.row_count);
    return STATUS_OK;
}

static status rank_finish_spilled(struct fold_shard *shard, struct error *err)
{
    struct rank_shard *rank = (struct rank_shard *)shard;
    const struct ranking *ranking = shard->fold->ranking;
    TRY(rank_spill(shard, err));
    ranker_destroy(rank->ranker);
    rank->ranker = NULL;
    uint32_t key_count = ranking->partition_count + ranking->key_count;
    struct sort_key *keys = arena_array(&shard->arena, struct sort_key, key_count + 1);
    if (keys == NULL) return error_memory(err);
    for (uint32_t i = 0; i < key_count; i++) {
        keys[i] = i < ranking->partition_count
                      ? (struct sort_key){.column = ranking->partition_columns[i]}
                      : ranking->keys[i - ranking->partition_count];
    }
    shard->spill.result.schema = shard->fold->output;
    TRY(fold_runs_merge(shard, &rank->runs, keys, key_count, ranking, err));
    fold_spill_finished(shard);
    return STATUS_OK;
}

static status rank_read(const struct fold_shard *shard, uint32_t first, uint32_t count,
                        struct arena *arena, struct batch *out_batch, struct error *err)
{
    const struct rank_shard *rank = (const struct rank_shard *)shard;
    return fold_read_slice(&rank->rows, first, count, arena, out_batch, err);
}

const struct fold_class fold_rank = {
    .shard_bytes = sizeof(struct rank_shard),
    .init = rank_init,
    .done = rank_done,
    .apply = rank_apply,
    .held = rank_held,
    .spill = rank_spill,
    .finish_need = rank_finish_need,
    .finish = rank_finish,
    .finish_spilled = rank_finish_spilled,
    .read = rank_read,
};
