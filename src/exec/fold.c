/* fold.c - the five kinds of fold, over the parts they share with maps.
 *
 * Aggregates merge at once: what they keep is as large as their answer. Rankings keep candidates.
 * The others keep the batches as they came and put them in order when all are there.
 */
#include "exec/fold.h"

#include "base/assert.h"
#include "exec/group_table.h"
#include "exec/kept_rows.h"
#include "exec/key_hash.h"
#include "exec/ranker.h"
#include "exec/row_sort.h"
#include "wire/batch_codec.h"

enum { EMIT_ROWS = 8192 }; /* So that a batch of wide rows is still a message a broker takes. */

struct fold_shard {
    const struct fold *fold;
    struct budget *budget;
    struct group_table *groups;  /* FOLD_AGGREGATE */
    struct ranker *ranker;       /* FOLD_RANK */
    struct kept_rows kept[2];    /* Others; the second is FOLD_JOIN's right side. */
    struct arena arena;          /* Of the finished state. */
    struct arena scratch;        /* Of one apply. */
    struct batch rows;           /* Finished: what is emitted, */
    const uint32_t *order;       /* in this order (NULL: as it stands), */
    struct batch right;          /* FOLD_JOIN: with these rows beside, */
    const uint32_t *right_order; /* ROW_NONE: with NULLs. */
    uint32_t first;              /* The part of the order that is emitted. */
    uint32_t count;
    struct side_table side;
    struct fold_counts counts;
};

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

status fold_shard_create(const struct fold *fold, struct budget *budget,
                         struct fold_shard **out_shard, struct error *err)
{
    struct fold_shard *shard = memory_alloc(budget, sizeof *shard);
    if (shard == NULL) return error_memory(err);
    *shard = (struct fold_shard){
        .fold = fold,
        .budget = budget,
        .kept = {{.schema = fold->input, .budget = budget},
                 {.schema = fold->right, .budget = budget}},
    };
    uint64_t row_limit;
    if (fold->kind == FOLD_COLLECT &&
        !__builtin_add_overflow(fold->limit, fold->offset, &row_limit)) {
        shard->kept[0].row_limit = row_limit > 0 ? row_limit : 1; /* 0 would mean all. */
    }
    arena_init(&shard->arena, budget);
    arena_init(&shard->scratch, budget);
    status result = STATUS_OK;
    if (fold->kind == FOLD_AGGREGATE) {
        result = group_table_create(fold->grouping, budget, &shard->groups, err);
    } else if (fold->kind == FOLD_RANK) {
        result = ranker_create(fold->ranking, fold->output, budget, &shard->ranker, err);
    }
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
    kept_rows_done(&shard->kept[0]);
    kept_rows_done(&shard->kept[1]);
    arena_done(&shard->arena);
    arena_done(&shard->scratch);
    memory_free(shard->budget, shard, sizeof *shard);
}

status fold_shard_apply(struct fold_shard *shard, struct batch_identity identity, struct buf *bytes,
                        uint64_t *out_rows, struct error *err)
{
    const struct fold *fold = shard->fold;
    uint64_t rows = 0;
    if (fold->kind == FOLD_AGGREGATE || fold->kind == FOLD_RANK) {
        struct batch batch;
        arena_reset(&shard->scratch);
        TRY(batch_decode(bytes->bytes, bytes->size, fold->input, &shard->scratch, &batch, err));
        rows = batch.row_count;
        if (fold->kind == FOLD_AGGREGATE) {
            TRY(group_table_merge(shard->groups, &batch, err));
        } else {
            TRY(ranker_add(shard->ranker, &batch, (struct selection){NULL, batch.row_count}, err));
        }
    } else {
        bool right = fold->kind == FOLD_JOIN && identity.input == 1;
        TRY(kept_rows_add(&shard->kept[right], identity, bytes, &rows, err));
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

/* Rows of the left side in their order, each with its partners in theirs. */
static status finish_join(struct fold_shard *shard, struct error *err)
{
    uint32_t key_count = shard->fold->key_count;
    struct side_table table;
    TRY(kept_rows_read(&shard->kept[1], &shard->right, err));
    TRY(side_table_build(&table, shard->right, key_count, &shard->arena, err));
    struct buf lefts = {.budget = shard->budget};
    struct buf rights = {.budget = shard->budget};
    for (uint32_t row = 0; row < shard->rows.row_count; row++) {
        uint64_t hash;
        key_hash(&shard->rows, table.key_columns, key_count, (struct selection){&row, 1}, &hash);
        uint32_t found = side_table_find(&table, hash, &shard->rows, table.key_columns, row);
        if (found == ROW_NONE && shard->fold->inner) continue;
        do {
            buf_put(&lefts, &row, sizeof row);
            buf_put(&rights, &found, sizeof found);
            if (found != ROW_NONE) found = table.next[found];
        } while (found != ROW_NONE);
    }
    size_t count = lefts.size / sizeof(uint32_t);
    uint32_t *order = arena_array(&shard->arena, uint32_t, count + 1);
    uint32_t *right_order = arena_array(&shard->arena, uint32_t, count + 1);
    bool fits =
        !lefts.failed && !rights.failed && order != NULL && right_order != NULL && count < ROW_NONE;
    if (fits && count > 0) {
        memcpy(order, lefts.bytes, lefts.size);
        memcpy(right_order, rights.bytes, rights.size);
    }
    buf_done(&lefts);
    buf_done(&rights);
    if (!fits) return error_memory(err);
    shard->order = order;
    shard->right_order = right_order;
    shard->count = (uint32_t)count;
    return STATUS_OK;
}

static void count_output(struct fold_shard *shard)
{
    shard->counts.rows_out = shard->count;
    shard->counts.batches_out = ((uint64_t)shard->count + EMIT_ROWS - 1) / EMIT_ROWS;
}

static void apply_window(struct fold_shard *shard)
{
    const struct fold *fold = shard->fold;
    uint64_t total = shard->count;
    uint64_t first = fold->offset < total ? fold->offset : total;
    uint64_t left = total - first;
    shard->first = (uint32_t)first;
    shard->count = (uint32_t)(fold->limit < left ? fold->limit : left);
    count_output(shard);
}

status fold_shard_finish(struct fold_shard *shard, struct error *err)
{
    const struct fold *fold = shard->fold;
    arena_reset(&shard->scratch);
    if (fold->kind == FOLD_AGGREGATE) {
        TRY(group_table_need_one(shard->groups, err));
        TRY(group_table_order(shard->groups, err));
        shard->count = group_table_count(shard->groups);
        count_output(shard);
        return STATUS_OK;
    }
    if (fold->kind == FOLD_RANK) {
        TRY(ranker_finish(shard->ranker, &shard->rows, err));
    } else {
        TRY(kept_rows_read(&shard->kept[0], &shard->rows, err));
    }
    shard->count = shard->rows.row_count;
    if (fold->kind == FOLD_SORT) TRY(finish_sort(shard, err));
    if (fold->kind == FOLD_JOIN) TRY(finish_join(shard, err));
    apply_window(shard);
    arena_done(&shard->scratch);
    if (!fold->is_side) return STATUS_OK;
    ASSERT(fold->kind == FOLD_COLLECT && shard->first == 0);
    return side_table_build(&shard->side, shard->rows, fold->side_keys, &shard->arena, err);
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
    struct arena arena;
    arena_init(&arena, shard->budget);
    status result = STATUS_OK;
    uint64_t number = 0;
    for (uint32_t done = 0; done < shard->count && result == STATUS_OK; number++) {
        uint32_t count = shard->count - done;
        if (count > EMIT_ROWS) count = EMIT_ROWS;
        struct batch batch;
        result = emit_part(shard, shard->first + done, count, &arena, &batch, err);
        if (result == STATUS_OK) result = sink->accept(sink, number, &batch, err);
        done += count;
        arena_reset(&arena);
    }
    arena_done(&arena);
    return result;
}

const struct side_table *fold_shard_side(const struct fold_shard *shard)
{
    ASSERT(shard->fold->is_side);
    return &shard->side;
}

status fold_shard_scalar(const struct fold_shard *shard, struct value *out_value, struct error *err)
{
    ASSERT(shard->fold->is_scalar);
    if (shard->count > 1) {
        return error_set(err, STATUS_INPUT,
                         "a sub-query used as a value gave %u rows; it may give one at most",
                         shard->count);
    }
    *out_value = (struct value){.is_null = true};
    if (shard->count == 0 || column_is_null(&shard->rows.columns[0], shard->first)) {
        return STATUS_OK;
    }
    const struct column *column = &shard->rows.columns[0];
    *out_value = (struct value){0};
    if (column->type.kind == TYPE_BOOL) {
        out_value->truth = column->bools[shard->first] != 0;
    } else if (column->type.kind == TYPE_TEXT) {
        out_value->text = column->texts[shard->first];
    } else if (column->type.kind == TYPE_DOUBLE) {
        out_value->number = column->doubles[shard->first];
    } else {
        out_value->integer = column->ints[shard->first];
    }
    return STATUS_OK;
}

const struct fold_counts *fold_shard_counts(const struct fold_shard *shard)
{
    return &shard->counts;
}
