/* fold_spill.c - when a shard goes on in a file, and how its rows come out of it.
 *
 * Nobody spills before three quarters of the limit are used. Then large states go first; small ones
 * wait until seven eighths are, since many small pieces are slow to read back. What is left free is
 * what maps, and the spilling itself, need in between.
 */
#include "engine/base/assert.h"
#include "engine/exec/fold/fold_parts.h"
#include "engine/exec/fold/spill_cut.h"

enum {
    RETURN_SHARE = 8, /* When so much of the limit was freed, the system gets it back. */
    ASKED_SHARE = 16, /* Who holds less than this part of the limit is not asked for it. */
    LEAST_BYTES = 16 << 10,
    LEAST_GROUPS = 512, /* Records of groups come by the block: few of them give nothing back. */
    PIECE_BYTES_MIN = 4 << 10,
    PIECE_BYTES_MAX = 64 << 10,
    PIECE_EXTRA_BYTES = 4 << 10, /* What a piece takes however small it is, */
    COLUMN_EXTRA_BYTES = 600     /* and each of its columns. */
};

void fold_spill_init(struct fold_shard *shard, struct spill_store *store)
{
    struct fold_spill *spill = &shard->spill;
    size_t limit = budget_limit(shard->budget);
    size_t piece = limit / 2048;
    if (piece < PIECE_BYTES_MIN) piece = PIECE_BYTES_MIN;
    if (piece > PIECE_BYTES_MAX) piece = PIECE_BYTES_MAX;
    /* A piece in flight takes up to three times its size: as bytes, as values, grown too far. */
    const struct fold *fold = shard->fold;
    size_t columns = (size_t)fold->input.count + fold->right.count;
    size_t in_flight = limit / 8 / (3 * piece + PIECE_EXTRA_BYTES + columns * COLUMN_EXTRA_BYTES);
    if (in_flight < 2) in_flight = 2;
    *spill = (struct fold_spill){
        .store = limit == 0 ? NULL : store,
        .limit_bytes = limit,
        .least_bytes = limit / 1024 > LEAST_BYTES ? limit / 1024 : LEAST_BYTES,
        .part_count = (uint32_t)(in_flight < SPILL_PARTS ? in_flight : SPILL_PARTS),
        .fan = (uint32_t)(in_flight < SPILL_FAN ? in_flight : SPILL_FAN),
        .state = {.store = store, .budget = shard->budget, .piece_bytes = piece},
        .rows = {.store = store, .budget = shard->budget, .piece_bytes = piece},
        .runs = {.budget = shard->budget},
    };
    spill->result.place = &spill->rows;
}

/* What only mattered until the shard was finished. */
static void drop_state(struct fold_spill *spill)
{
    fold_groups_done(&spill->ranges);
    spill_runs_done(&spill->runs);
    spill_place_done(&spill->state);
}

void fold_spill_done(struct fold_shard *shard)
{
    drop_state(&shard->spill);
    spill_rows_done(&shard->spill.result);
    spill_place_done(&shard->spill.rows);
}

/* ---- when ---- */

size_t fold_held(const struct fold_shard *shard)
{
    if (shard->groups == NULL && shard->ranker == NULL) {
        return shard->kept[0].held_bytes + shard->kept[1].held_bytes;
    }
    size_t used = atomic_load(&shard->held.used_bytes);
    return used > shard->held_empty ? used - shard->held_empty : 0;
}

static bool is_worth_it(const struct fold_shard *shard, size_t least_bytes)
{
    size_t held = fold_held(shard);
    if (held < least_bytes) return false;
    return shard->groups == NULL || group_table_count(shard->groups) >= LEAST_GROUPS ||
           held >= 16 * least_bytes;
}

bool fold_must_spill(const struct fold_shard *shard, size_t need_bytes)
{
    const struct fold_spill *spill = &shard->spill;
    if (spill->store == NULL) return false;
    size_t room = budget_room(shard->budget);
    size_t limit = spill->limit_bytes;
    if (room >= limit / 4 && room - limit / 4 >= need_bytes) return false;
    bool urgent = room < limit / 8 || room - limit / 8 < need_bytes;
    size_t least = urgent ? spill->least_bytes : limit / 128;
    return is_worth_it(shard, least > spill->least_bytes ? least : spill->least_bytes);
}

bool fold_room_is_short(const struct budget *budget)
{
    size_t limit = budget_limit(budget);
    return limit != 0 && budget_room(budget) < limit / 4;
}

size_t fold_shard_spillable(const struct fold_shard *shard)
{
    const struct fold_spill *spill = &shard->spill;
    size_t least = spill->limit_bytes / ASKED_SHARE;
    if (spill->store == NULL || spill->finished) return 0;
    return is_worth_it(shard, least > spill->least_bytes ? least : spill->least_bytes)
               ? fold_held(shard)
               : 0;
}

status fold_shard_spill(struct fold_shard *shard, struct error *err)
{
    return fold_spill_state(shard, err);
}

bool fold_fits(const struct fold_shard *shard, size_t need_bytes)
{
    const struct fold_spill *spill = &shard->spill;
    if (spill->store == NULL) return true;
    size_t room = budget_room(shard->budget);
    size_t limit = spill->limit_bytes;
    /* Finished rows stay until somebody has read them: half of the limit is for who comes next. */
    if (room >= limit / 2 && room - limit / 4 >= need_bytes) return true;
    return fold_held(shard) < spill->least_bytes;
}

bool fold_has_room(const struct fold_shard *shard, uint64_t need_bytes)
{
    const struct fold_spill *spill = &shard->spill;
    if (spill->store == NULL || need_bytes <= 4 * spill->least_bytes) return true;
    size_t room = budget_room(shard->budget);
    size_t reserve = spill->limit_bytes / 4;
    return room >= reserve && room - reserve >= need_bytes;
}

void fold_spill_freed(const struct fold_shard *shard, size_t held_before)
{
    size_t held = fold_held(shard);
    memory_return(held_before > held ? held_before - held : 0,
                  shard->spill.limit_bytes / RETURN_SHARE);
}

status fold_spill_state(struct fold_shard *shard, struct error *err)
{
    size_t held = fold_held(shard);
    shard->spill.spilled = true;
    switch (shard->fold->kind) {
    case FOLD_AGGREGATE:
        return fold_groups_spill(shard, &shard->spill.ranges, err);
    case FOLD_SORT:
        TRY(fold_sort_spill(shard, err));
        break;
    case FOLD_RANK:
        TRY(fold_rank_spill(shard, err));
        break;
    case FOLD_COLLECT:
    case FOLD_JOIN:
        TRY(row_store_spill(&shard->kept[0], err));
        TRY(row_store_spill(&shard->kept[1], err));
        break;
    }
    fold_spill_freed(shard, held);
    return STATUS_OK;
}

/* ---- finishing ---- */

static status finish_collect(struct fold_shard *shard, struct error *err)
{
    struct fold_spill *spill = &shard->spill;
    TRY(row_store_spill(&shard->kept[0], err));
    spill->result.schema = shard->fold->input;
    /* They lie there already, and stay. */
    spill->rows.written_bytes += spill->state.written_bytes;
    spill->rows.file = spill->state.file;
    spill->state.file = NULL;
    spill->state.written_bytes = 0;
    return row_store_list(&shard->kept[0], &spill->result, err);
}

void fold_spill_finished(struct fold_shard *shard)
{
    shard->spill.spilled = true;
    shard->spill.finished = true;
    shard->count = shard->spill.result.row_count;
    row_store_done(&shard->kept[0]);
    row_store_done(&shard->kept[1]);
    drop_state(&shard->spill);
    fold_spill_freed(shard, 0);
}

status fold_spill_finish(struct fold_shard *shard, struct error *err)
{
    switch (shard->fold->kind) {
    case FOLD_AGGREGATE:
        TRY(fold_groups_finish(shard, err));
        break;
    case FOLD_SORT:
    case FOLD_RANK:
        TRY(fold_runs_finish(shard, err));
        break;
    case FOLD_COLLECT:
        TRY(finish_collect(shard, err));
        break;
    case FOLD_JOIN:
        TRY(fold_join_finish_spilled(shard, err));
        break;
    }
    fold_spill_finished(shard);
    return STATUS_OK;
}

/* ---- emitting ---- */

status fold_spill_emit(const struct fold_shard *shard, struct fold_sink *sink, struct error *err)
{
    ASSERT(shard->spill.finished);
    struct spill_window window = {
        .first = shard->first, .count = shard->count, .batch_rows = EMIT_ROWS};
    return spill_cut(&shard->spill.result, window, sink, err);
}

struct scalar_sink {
    struct fold_sink sink;
    struct row_store *kept;
};

static status accept_scalar(struct fold_sink *sink, uint64_t number, const struct batch *batch,
                            struct error *err)
{
    struct row_store *kept = ((struct scalar_sink *)sink)->kept;
    (void)number, (void)err; /* The builder says later whether it failed. */
    builder_append(&kept->builder, batch, (struct selection){NULL, batch->row_count});
    return STATUS_OK;
}

status fold_spill_scalar(struct fold_shard *shard, struct error *err)
{
    struct row_store *kept = &shard->kept[0];
    ASSERT(shard->count == 1);
    *kept = (struct row_store){.budget = shard->budget, .builder_ready = true};
    if (!builder_init(&kept->builder, shard->fold->input, shard->budget)) return error_memory(err);
    struct scalar_sink scalar = {.sink = {accept_scalar}, .kept = kept};
    TRY(fold_spill_emit(shard, &scalar.sink, err));
    return builder_batch(&kept->builder, &shard->rows) ? STATUS_OK : error_memory(err);
}
