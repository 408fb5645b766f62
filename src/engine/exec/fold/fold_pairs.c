/* SPDX-License-Identifier: Apache-2.0 */
/* fold_pairs.c - the left side passes by a table; pairs are gathered by the thousand and written.
 */
#include "engine/exec/fold/fold_pairs.h"

#include "engine/data/key_hash.h"

enum { PAIRS = 1024, SLICE_ROWS = 1024 };

struct pair_writer {
    const struct fold *fold;
    const struct fold_passing *passing;
    struct spill_writer writer;
    struct arena arena;
    uint64_t row; /* So many rows of the left side came before this batch. */
    uint32_t count;
    uint32_t lefts[PAIRS];
    uint32_t rights[PAIRS];
};

static status pairs_flush(struct pair_writer *pairs, const struct batch *left, struct error *err)
{
    if (pairs->count == 0) return STATUS_OK;
    const struct batch *right = &pairs->passing->table->rows;
    uint32_t left_count = pairs->fold->input.count;
    uint32_t both_count = left_count + right->column_count;
    uint32_t column_count = left->column_count + right->column_count;
    struct arena *arena = &pairs->arena;
    struct column *columns = arena_array(arena, struct column, column_count + 1);
    if (columns == NULL) return error_memory(err);
    TRY(fold_gather(columns, left->columns, left_count, pairs->lefts, pairs->count, arena, err));
    TRY(fold_gather(columns + left_count, right->columns, right->column_count, pairs->rights,
                    pairs->count, arena, err));
    TRY(fold_gather(columns + both_count, left->columns + left_count, column_count - both_count,
                    pairs->lefts, pairs->count, arena, err));
    struct batch batch = {
        .row_count = pairs->count, .column_count = column_count, .columns = columns};
    TRY(spill_writer_append(&pairs->writer, &batch, (struct selection){NULL, pairs->count}, err));
    pairs->count = 0;
    arena_reset(arena);
    return STATUS_OK;
}

static status pairs_add(struct pair_writer *pairs, const struct batch *left, uint32_t row,
                        uint32_t found, struct error *err)
{
    if (pairs->count == PAIRS) TRY(pairs_flush(pairs, left, err));
    pairs->lefts[pairs->count] = row;
    pairs->rights[pairs->count++] = found;
    return STATUS_OK;
}

static status find_partners(struct pair_writer *pairs, const struct batch *left, uint32_t row,
                            uint64_t hash, struct error *err)
{
    const struct join_table *table = pairs->passing->table;
    uint32_t found = join_table_find(table, hash, left, table->key_columns, row);
    if (pairs->passing->kind == PASS_BLOCK) {
        uint64_t number = pairs->row + row;
        if (found != ROW_NONE) {
            pairs->passing->matched[number / 64] |= (uint64_t)1 << number % 64;
        }
    } else if (found == ROW_NONE && !pairs->fold->inner) {
        return pairs_add(pairs, left, row, ROW_NONE, err);
    }
    for (; found != ROW_NONE; found = table->next[found]) {
        TRY(pairs_add(pairs, left, row, found, err));
    }
    return STATUS_OK;
}

static status pass_partners(struct pair_writer *pairs, const struct batch *left, struct error *err)
{
    const struct join_table *table = pairs->passing->table;
    uint32_t rows[SLICE_ROWS];
    uint64_t hashes[SLICE_ROWS];
    for (uint32_t first = 0; first < left->row_count; first += SLICE_ROWS) {
        uint32_t count = left->row_count - first;
        if (count > SLICE_ROWS) count = SLICE_ROWS;
        for (uint32_t i = 0; i < count; i++) {
            rows[i] = first + i;
        }
        key_hash(left, table->key_columns, table->key_count, (struct selection){rows, count},
                 hashes);
        for (uint32_t i = 0; i < count; i++) {
            TRY(find_partners(pairs, left, first + i, hashes[i], err));
        }
    }
    return STATUS_OK;
}

static status pass_rest(struct pair_writer *pairs, const struct batch *left, struct error *err)
{
    for (uint32_t row = 0; row < left->row_count; row++) {
        uint64_t number = pairs->row + row;
        if ((pairs->passing->matched[number / 64] >> number % 64 & 1) != 0) continue;
        TRY(pairs_add(pairs, left, row, ROW_NONE, err));
    }
    return STATUS_OK;
}

static status pass_batch(struct pair_writer *pairs, const struct batch *left, struct error *err)
{
    if (pairs->passing->kind == PASS_REST) {
        TRY(pass_rest(pairs, left, err));
    } else {
        TRY(pass_partners(pairs, left, err));
    }
    pairs->row += left->row_count;
    return pairs_flush(pairs, left, err);
}

static status pass_rows(struct pair_writer *pairs, const struct spill_rows *left, struct error *err)
{
    struct spill_cursor cursor;
    spill_cursor_open(&cursor, left);
    status result;
    do {
        result = spill_cursor_next(&cursor, err);
        if (result == STATUS_OK) result = pass_batch(pairs, &cursor.batch, err);
    } while (result == STATUS_OK && cursor.batch.row_count > 0);
    spill_cursor_done(&cursor);
    return result;
}

/* One of the two left sides is given. */
static status pass(struct fold_shard *shard, const struct fold_passing *passing,
                   const struct spill_rows *left, const struct batch *left_batch, struct error *err)
{
    struct pair_writer pairs = {.fold = shard->fold, .passing = passing};
    arena_init(&pairs.arena, shard->budget);
    status result = spill_writer_open(&pairs.writer, passing->out, err);
    if (result == STATUS_OK) {
        result = left != NULL ? pass_rows(&pairs, left, err) : pass_batch(&pairs, left_batch, err);
    }
    if (result == STATUS_OK) result = spill_writer_flush(&pairs.writer, err);
    spill_writer_done(&pairs.writer);
    arena_done(&pairs.arena);
    return result;
}

status fold_pairs_write(struct fold_shard *shard, const struct fold_passing *passing,
                        const struct spill_rows *left, struct error *err)
{
    return pass(shard, passing, left, NULL, err);
}

status fold_pairs_write_batch(struct fold_shard *shard, const struct fold_passing *passing,
                              const struct batch *left, struct error *err)
{
    return pass(shard, passing, NULL, left, err);
}
