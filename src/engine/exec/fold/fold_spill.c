/* SPDX-License-Identifier: Apache-2.0 */
/* fold_spill.c - when a shard continues in a file, and how its rows come out of it.
 *
 * No shard spills before three quarters of the limit are used. Then large states are written first;
 * small ones wait until seven eighths are used, since many small pieces are slow to read back. The
 * room that stays free is what maps, and the spilling itself, need in between.
 */
#include "engine/base/assert.h"
#include "engine/exec/fold/fold_parts.h"
#include "engine/exec/fold/spill_cut.h"
#include "engine/exec/fold/spill_merge.h"

enum {
    RETURN_SHARE = 8, /* When so much of the limit was freed, the system gets it back. */
    ASKED_SHARE = 16, /* A shard that holds less than this part of the limit is not asked for it. */
    SPARSE_TIMES = 16, /* A sparse state must hold so many times more to be worth a spill. */
    LEAST_BYTES = 16 << 10,
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
    };
    spill->result.place = &spill->rows;
}

void fold_spill_done(struct fold_shard *shard)
{
    spill_place_done(&shard->spill.state);
    spill_rows_done(&shard->spill.result);
    spill_place_done(&shard->spill.rows);
}

/* ---- when ---- */

static bool is_worth_it(const struct fold_shard *shard, size_t least_bytes)
{
    const struct fold_class *class = shard->class;
    size_t held = class->held(shard);
    if (held < least_bytes) return false;
    return class->is_sparse == NULL || !class->is_sparse(shard) ||
           held >= SPARSE_TIMES * least_bytes;
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
               ? shard->class->held(shard)
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
    /* Finished rows stay until all readers have them: half of the limit is for the next folds. */
    if (room >= limit / 2 && room - limit / 4 >= need_bytes) return true;
    return shard->class->held(shard) < spill->least_bytes;
}

bool fold_has_room(const struct fold_shard *shard, uint64_t need_bytes)
{
    const struct fold_spill *spill = &shard->spill;
    if (spill->store == NULL || need_bytes <= 4 * spill->least_bytes) return true;
    size_t room = budget_room(shard->budget);
    size_t reserve = spill->limit_bytes / 4;
    return room >= reserve && room - reserve >= need_bytes;
}

status fold_spill_state(struct fold_shard *shard, struct error *err)
{
    size_t held = shard->class->held(shard);
    TRY(shard->class->spill(shard, err));
    size_t left = shard->class->held(shard);
    memory_return(held > left ? held - left : 0, shard->spill.limit_bytes / RETURN_SHARE);
    return STATUS_OK;
}

/* ---- runs ---- */

struct spill_rows fold_spill_rows(struct fold_shard *shard, struct schema schema)
{
    return (struct spill_rows){.place = &shard->spill.state, .schema = schema};
}

status fold_run_write(struct fold_shard *shard, struct spill_runs *runs, struct schema schema,
                      const struct batch *batch, struct selection selection, struct error *err)
{
    struct spill_rows run = fold_spill_rows(shard, schema);
    struct spill_writer writer;
    status result = spill_writer_open(&writer, &run, err);
    if (result == STATUS_OK) result = spill_writer_append(&writer, batch, selection, err);
    if (result == STATUS_OK) result = spill_writer_flush(&writer, err);
    spill_writer_done(&writer);
    if (result == STATUS_OK && run.row_count > 0) result = spill_runs_add(runs, &run, err);
    spill_rows_done(&run);
    return result;
}

status fold_runs_merge(struct fold_shard *shard, struct spill_runs *runs,
                       const struct sort_key *keys, uint32_t key_count, const struct ranking *cut,
                       struct error *err)
{
    const struct fold *fold = shard->fold;
    struct spill_merge merge = {
        .keys = keys, .key_count = key_count, .cut = cut, .fan = shard->spill.fan};
    if (__builtin_add_overflow(fold->offset, fold->limit, &merge.row_limit)) {
        merge.row_limit = UINT64_MAX;
    }
    return spill_merge(&merge, runs, &shard->spill.result, err);
}

/* ---- finished ---- */

void fold_spill_finished(struct fold_shard *shard)
{
    struct fold_spill *spill = &shard->spill;
    size_t held = shard->class->held(shard);
    spill->finished = true;
    shard->class->done(shard);
    spill_place_done(&spill->state);
    memory_return(held, spill->limit_bytes / RETURN_SHARE);
    fold_finished(shard, spill->result.row_count);
}

status fold_spill_emit(const struct fold_shard *shard, struct fold_sink *sink, struct error *err)
{
    ASSERT(shard->spill.finished);
    struct spill_window window = {
        .first = shard->first, .count = shard->count, .batch_rows = EMIT_ROWS};
    return spill_cut(&shard->spill.result, window, sink, err);
}
