/* fold.c - the five kinds of fold, over the parts they share with maps.
 *
 * Aggregates merge at once: what they keep is as large as their answer. Rankings keep candidates.
 * The others keep the batches as they came and put them in order when all are there. What does not
 * fit into memory is the business of fold_spill.c.
 */
#include "engine/exec/fold/fold.h"

#include <inttypes.h>

#include "engine/base/assert.h"
#include "engine/base/radix_sort.h"
#include "engine/exec/fold/fold_parts.h"
#include "engine/exec/fold/row_sort.h"
#include "engine/data/batch_codec.h"

enum { PAIR_BYTES = 2 * sizeof(uint32_t), RIGHT_ROW_BYTES = 96 };

uint32_t fold_shard_count(const struct fold *fold, uint32_t wanted)
{
    bool by_key = fold->kind == FOLD_AGGREGATE && fold->key_count > 0;
    return by_key || fold->partitioned ? wanted : 1;
}

uint32_t fold_shard_of(uint64_t hash, uint32_t shard_count)
{
    /* The upper half: the lower bits choose the slot in the shard's own table. */
    return (uint32_t)((hash >> 32) * shard_count >> 32);
}

status fold_state_reset(struct fold_shard *shard, struct error *err)
{
    const struct fold *fold = shard->fold;
    group_table_destroy(shard->groups);
    ranker_destroy(shard->ranker);
    shard->groups = NULL;
    shard->ranker = NULL;
    if (fold->kind == FOLD_AGGREGATE) {
        TRY(group_table_create(fold->grouping, &shard->held, &shard->groups, err));
    } else if (fold->kind == FOLD_RANK) {
        TRY(ranker_create(fold->ranking, fold->output, &shard->held, &shard->ranker, err));
    }
    shard->held_empty = atomic_load(&shard->held.used_bytes);
    return STATUS_OK;
}

status fold_shard_create(const struct fold *fold, struct budget *budget, struct spill_store *store,
                         struct fold_shard **out_shard, struct error *err)
{
    struct fold_shard *shard = memory_alloc(budget, sizeof *shard);
    if (shard == NULL) return error_memory(err);
    struct spill_place *place = &shard->spill.state;
    *shard = (struct fold_shard){
        .fold = fold,
        .budget = budget,
        .held = {.parent = budget},
        .kept = {{.schema = fold->input, .budget = budget, .place = place},
                 {.schema = fold->right, .budget = budget, .place = place}},
        .pairs = {{.budget = budget}, {.budget = budget}},
    };
    fold_spill_init(shard, store);
    uint64_t row_limit;
    if (fold->kind == FOLD_COLLECT &&
        !__builtin_add_overflow(fold->limit, fold->offset, &row_limit)) {
        shard->kept[0].row_limit = row_limit > 0 ? row_limit : 1; /* 0 would mean all. */
    }
    arena_init(&shard->arena, budget);
    arena_init(&shard->scratch, budget);
    status result = fold_state_reset(shard, err);
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
    group_table_destroy(shard->groups);
    ranker_destroy(shard->ranker);
    row_store_done(&shard->kept[0]);
    row_store_done(&shard->kept[1]);
    buf_done(&shard->pairs[0]);
    buf_done(&shard->pairs[1]);
    fold_spill_done(shard);
    arena_done(&shard->arena);
    arena_done(&shard->scratch);
    memory_free(shard->budget, shard, sizeof *shard);
}

/* What is merged at once. */
static status merge_batch(struct fold_shard *shard, const struct buf *bytes, uint64_t *out_rows,
                          struct error *err)
{
    const struct fold *fold = shard->fold;
    struct batch batch;
    arena_reset(&shard->scratch);
    TRY(batch_decode(bytes->bytes, bytes->size, fold->input, &shard->scratch, &batch, err));
    *out_rows = batch.row_count;
    if (fold->kind == FOLD_AGGREGATE) {
        return fold_groups_merge(shard, &shard->spill.ranges, &batch, bytes->size, err);
    }
    if (fold_must_spill(shard, ranker_need(shard->ranker) + 2 * bytes->size)) {
        TRY(fold_spill_state(shard, err));
    }
    return ranker_add(shard->ranker, &batch, (struct selection){NULL, batch.row_count}, err);
}

status fold_shard_apply(struct fold_shard *shard, struct batch_identity identity, struct buf *bytes,
                        uint64_t *out_rows, struct error *err)
{
    const struct fold *fold = shard->fold;
    uint64_t rows = 0;
    if (fold->kind == FOLD_AGGREGATE || fold->kind == FOLD_RANK) {
        TRY(merge_batch(shard, bytes, &rows, err));
    } else {
        bool right = fold->kind == FOLD_JOIN && identity.input == 1;
        TRY(row_store_add(&shard->kept[right], identity, bytes, &rows, err));
        if (fold_must_spill(shard, 0)) TRY(fold_spill_state(shard, err));
    }
    shard->counts.rows_in += rows;
    *out_rows = rows;
    return STATUS_OK;
}

/* ---- finishing ---- */

static status finish_sort(struct fold_shard *shard, struct error *err)
{
    uint32_t count = shard->rows.row_count;
    uint32_t *order = arena_array(&shard->arena, uint32_t, (size_t)count + 1);
    if (order == NULL) return error_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        order[i] = i;
    }
    const struct ranking *ranking = shard->fold->ranking;
    if (!row_sort(&shard->rows, ranking->keys, ranking->key_count, order, count, &shard->scratch)) {
        return error_memory(err);
    }
    shard->order = order;
    return STATUS_OK;
}

/* False when they don't find room. */
static bool add_pairs(struct fold_shard *shard, const struct build_side *table,
                      const struct build_probe *probe)
{
    struct buf *lefts = &shard->pairs[0];
    struct buf *rights = &shard->pairs[1];
    for (uint32_t i = 0; i < probe->count; i++) {
        uint32_t found = probe->found[i];
        do {
            buf_put(lefts, &probe->rows[i], sizeof probe->rows[i]);
            buf_put(rights, &found, sizeof found);
            if (found != ROW_NONE) found = table->next[found];
        } while (found != ROW_NONE);
        if (lefts->failed || rights->failed || lefts->size / sizeof found >= ROW_NONE) return false;
        if (i % 256 == 0 && !fold_has_room(shard, 2 * lefts->size)) return false;
    }
    return true;
}

/* All pairs of rows, by the left one; false when they don't find room. */
static bool find_pairs(struct fold_shard *shard, const struct build_side *table)
{
    struct build_probe probe;
    uint32_t rows[BUILD_PROBE_ROWS];
    uint32_t count;
    for (uint32_t first = 0; first < shard->rows.row_count; first += count) {
        count = shard->rows.row_count - first;
        if (count > BUILD_PROBE_ROWS) count = BUILD_PROBE_ROWS;
        for (uint32_t i = 0; i < count; i++) {
            rows[i] = first + i;
        }
        struct selection selection = {rows, count};
        if (shard->fold->inner) {
            build_side_probe(table, &shard->rows, table->key_columns, selection, &probe);
        } else {
            build_side_probe_all(table, &shard->rows, table->key_columns, selection, &probe);
        }
        if (!add_pairs(shard, table, &probe)) return false;
    }
    return true;
}

/* Rows of the left side in their order, each with its partners in theirs. */
static status finish_join(struct fold_shard *shard, struct error *err)
{
    struct build_side table;
    TRY(row_store_read(&shard->kept[1], &shard->right, err));
    TRY(build_side_build(&table, shard->right, shard->fold->key_count, &shard->scratch, err));
    if (find_pairs(shard, &table)) {
        shard->order = (const uint32_t *)(const void *)shard->pairs[0].bytes;
        shard->right_order = (const uint32_t *)(const void *)shard->pairs[1].bytes;
        shard->count = shard->pairs[0].size / sizeof(uint32_t);
        return STATUS_OK;
    }
    buf_done(&shard->pairs[0]);
    buf_done(&shard->pairs[1]);
    if (shard->spill.store == NULL) return error_memory(err);
    TRY(fold_join_write(shard, &table, err));
    fold_spill_finished(shard);
    return STATUS_OK;
}

static void count_output(struct fold_shard *shard)
{
    shard->counts.rows_out = shard->count;
    shard->counts.batches_out = (shard->count + EMIT_ROWS - 1) / EMIT_ROWS;
}

static void apply_window(struct fold_shard *shard)
{
    const struct fold *fold = shard->fold;
    uint64_t total = shard->count;
    uint64_t first = fold->offset < total ? fold->offset : total;
    uint64_t left = total - first;
    shard->first = first;
    shard->count = fold->limit < left ? fold->limit : left;
    count_output(shard);
}

/* What finishing in memory takes for a while, about. */
static size_t finish_need(const struct fold_shard *shard)
{
    const struct row_store *left = &shard->kept[0];
    const struct row_store *right = &shard->kept[1];
    switch (shard->fold->kind) {
    case FOLD_AGGREGATE:
        return group_table_order_need(shard->groups);
    case FOLD_RANK:
        return ranker_need(shard->ranker);
    case FOLD_COLLECT:
        break;
    case FOLD_SORT:
        return 3 * left->byte_count +
               left->row_count * (sizeof(uint32_t) + 2 * sizeof(struct radix_item));
    case FOLD_JOIN:
        return 3 * (left->byte_count + right->byte_count) + left->row_count * PAIR_BYTES * 2 +
               right->row_count * RIGHT_ROW_BYTES;
    }
    return 3 * left->byte_count;
}

static status finish_in_memory(struct fold_shard *shard, struct error *err)
{
    const struct fold *fold = shard->fold;
    if (fold->kind == FOLD_AGGREGATE) {
        TRY(group_table_need_one(shard->groups, err));
        TRY(group_table_order(shard->groups, err));
        shard->count = group_table_count(shard->groups);
        return STATUS_OK;
    }
    if (fold->kind == FOLD_RANK) {
        TRY(ranker_finish(shard->ranker, &shard->rows, err));
    } else {
        TRY(row_store_read(&shard->kept[0], &shard->rows, err));
    }
    shard->count = shard->rows.row_count;
    if (fold->kind == FOLD_SORT) TRY(finish_sort(shard, err));
    if (fold->kind == FOLD_JOIN) TRY(finish_join(shard, err));
    return STATUS_OK;
}

status fold_shard_finish(struct fold_shard *shard, struct error *err)
{
    const struct fold *fold = shard->fold;
    arena_done(&shard->scratch);
    bool fits = !shard->spill.spilled && fold_fits(shard, finish_need(shard));
    /* A build side must be in memory; its batches need not be while it is made. */
    if (fold->is_build_side && !fits) TRY(fold_spill_state(shard, err));
    if (fold->is_build_side || fits) {
        TRY(finish_in_memory(shard, err));
    } else {
        TRY(fold_spill_finish(shard, err));
    }
    arena_done(&shard->scratch);
    if (fold->kind == FOLD_AGGREGATE) {
        count_output(shard);
        return STATUS_OK;
    }
    apply_window(shard);
    if (fold->is_scalar && shard->spill.finished && shard->count == 1) {
        return fold_spill_scalar(shard, err);
    }
    if (!fold->is_build_side) return STATUS_OK;
    ASSERT(fold->kind == FOLD_COLLECT && shard->first == 0);
    if (fold->is_bloom) {
        return build_side_build_filter(&shard->side, shard->rows, &shard->arena, err);
    }
    TRY(build_side_build(&shard->side, shard->rows, fold->side_keys, &shard->arena, err));
    return build_side_find_duplicates(&shard->side, fold->duplicate_sets, fold->duplicate_set_count,
                                      &shard->arena, err);
}

/* ---- emitting ---- */

static status gather(struct column *out, const struct batch *from, const uint32_t *rows,
                     uint32_t count, struct arena *arena, struct error *err)
{
    for (uint32_t i = 0; i < from->column_count; i++) {
        if (!column_gather(&out[i], &from->columns[i], rows, count, arena))
            return error_memory(err);
    }
    return STATUS_OK;
}

static status emit_part(const struct fold_shard *shard, uint32_t first, uint32_t count,
                        struct arena *arena, struct batch *out_batch, struct error *err)
{
    if (shard->groups != NULL) {
        return group_table_read(shard->groups, GROUP_RESULT, first, count, arena, out_batch, err);
    }
    uint32_t left_count = shard->rows.column_count;
    uint32_t right_count = shard->right_order == NULL ? 0 : shard->right.column_count;
    struct column *columns = arena_array(arena, struct column, left_count + right_count + 1);
    if (columns == NULL) return error_memory(err);
    if (shard->order == NULL) {
        *out_batch = batch_slice(&shard->rows, first, count, columns);
        return STATUS_OK;
    }
    TRY(gather(columns, &shard->rows, shard->order + first, count, arena, err));
    if (right_count > 0) {
        TRY(gather(columns + left_count, &shard->right, shard->right_order + first, count, arena,
                   err));
    }
    *out_batch = (struct batch){
        .row_count = count, .column_count = left_count + right_count, .columns = columns};
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
        result = emit_part(shard, first, count, &arena, &batch, err);
        if (result == STATUS_OK) result = sink->accept(sink, number, &batch, err);
        first += count;
        left -= count;
        arena_reset(&arena);
    }
    arena_done(&arena);
    return result;
}

const struct build_side *fold_shard_build_side(const struct fold_shard *shard)
{
    ASSERT(shard->fold->is_build_side);
    return &shard->side;
}

status fold_shard_scalar(const struct fold_shard *shard, struct value *out_value, struct error *err)
{
    ASSERT(shard->fold->is_scalar);
    if (shard->count > 1) {
        return error_set(err, STATUS_INPUT,
                         "a sub-query used as a value gave %" PRIu64
                         " rows; it may give one at most",
                         shard->count);
    }
    *out_value = (struct value){.is_null = true};
    if (shard->count == 0) return STATUS_OK;
    const struct column *column = &shard->rows.columns[0];
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

const struct fold_counts *fold_shard_counts(const struct fold_shard *shard)
{
    return &shard->counts;
}

uint64_t fold_shard_spilled(const struct fold_shard *shard)
{
    return shard->spill.state.written_bytes + shard->spill.rows.written_bytes;
}
