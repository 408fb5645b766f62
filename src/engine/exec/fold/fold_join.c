/* SPDX-License-Identifier: Apache-2.0 */
/* fold_join.c - a join of two inputs that both are complete: a hash table is built of the right
 * one, and the left one probes it.
 *
 * Beyond memory it is a hybrid of hash joins. If the table fits, the left side is read from its
 * file, past the table. Else it is a Grace hash join (Kitsuregawa, Tanaka, Moto-oka: Application of
 * hash to data base machine and its architecture, 1983), recursive: both sides are partitioned by
 * the hash of their keys until the right half of a part fits. The answer has the order of the left
 * side, which partitioning destroys; so left rows carry their place, each part gives a run in the
 * order of places, and the runs are merged. A right half that no hash divides (one key, or none) is
 * joined block by block, as a nested loop: the left half passes by each block; runs of later blocks
 * come later, and so do their partners.
 */
#include "engine/base/hash.h"
#include "engine/exec/fold/fold_pairs.h"
#include "engine/exec/fold/fold_parts.h"
#include "engine/data/key_hash.h"
#include "engine/exec/fold/row_store.h"
#include "engine/exec/fold/spill_merge.h"

enum {
    SLICE_ROWS = 1024,
    PAIR_BYTES = 2 * sizeof(uint32_t),
    RIGHT_ROW_BYTES = 96, /* Of the hash table, beside the row. */
    DEPTH_MAX = 12
};

struct join_shard {
    struct fold_shard shard;
    struct row_store stores[2]; /* Left and right. */
    struct batch left;          /* Finished in memory: both sides, */
    struct batch right;
    struct buf pairs[2]; /* and row numbers of each, pair by pair; ROW_NONE: no partner. */
};

struct join_part {
    struct spill_rows left; /* With the place as last column. */
    struct spill_rows right;
    uint32_t depth; /* How often it was cut; DEPTH_MAX: that would not help. */
};

/* One finish by way of files. */
struct join {
    struct fold_shard *shard;
    struct spill_runs runs;
    uint32_t *key_columns;            /* 0, 1, 2... */
    struct schema left_placed;        /* Left columns, the place. */
    struct schema output;             /* Left columns, right columns, */
    struct schema output_placed;      /* and the place. */
    ARRAY_OF(struct join_part) parts; /* That wait. */
};

/* A right side in memory, or a block of it. */
struct join_block {
    struct batch_builder builder;
    struct arena arena;
    struct join_table table;
};

static status join_init(struct fold_shard *shard, struct error *err)
{
    (void)err; /* The stores allocate when the first batch is added. */
    struct join_shard *join = (struct join_shard *)shard;
    struct spill_place *place = &shard->spill.state;
    for (uint32_t i = 0; i < 2; i++) {
        join->stores[i] =
            (struct row_store){.schema = i == 0 ? shard->fold->input : shard->fold->right,
                               .budget = shard->budget,
                               .place = place};
        join->pairs[i].budget = shard->budget;
    }
    return STATUS_OK;
}

static void pairs_done(struct join_shard *join)
{
    buf_done(&join->pairs[0]);
    buf_done(&join->pairs[1]);
}

static void join_done(struct fold_shard *shard)
{
    struct join_shard *join = (struct join_shard *)shard;
    row_store_done(&join->stores[0]);
    row_store_done(&join->stores[1]);
    pairs_done(join);
}

static status join_apply(struct fold_shard *shard, struct batch_identity identity,
                         struct buf *bytes, uint64_t *out_rows, struct error *err)
{
    struct join_shard *join = (struct join_shard *)shard;
    TRY(row_store_add(&join->stores[identity.input == 1], identity, bytes, out_rows, err));
    return fold_must_spill(shard, 0) ? fold_spill_state(shard, err) : STATUS_OK;
}

static size_t join_held(const struct fold_shard *shard)
{
    const struct join_shard *join = (const struct join_shard *)shard;
    return join->stores[0].held_bytes + join->stores[1].held_bytes;
}

static status join_spill(struct fold_shard *shard, struct error *err)
{
    struct join_shard *join = (struct join_shard *)shard;
    TRY(row_store_spill(&join->stores[0], err));
    return row_store_spill(&join->stores[1], err);
}

/* ---- by way of files ---- */

static status join_open(struct join *join, struct fold_shard *shard, struct error *err)
{
    const struct fold *fold = shard->fold;
    uint32_t left_count = fold->input.count;
    uint32_t both_count = left_count + fold->right.count;
    *join = (struct join){.shard = shard, .runs = {.budget = shard->budget}};
    /* In the shard's arena: the schema of the result stays. Names are of no interest. */
    struct arena *arena = &shard->arena;
    struct field *left = arena_array(arena, struct field, left_count + 1);
    struct field *both = arena_array(arena, struct field, both_count + 1);
    join->key_columns = arena_array(arena, uint32_t, fold->key_count + 1);
    if (left == NULL || both == NULL || join->key_columns == NULL) return error_memory(err);
    for (uint32_t i = 0; i < both_count; i++) {
        both[i].type =
            i < left_count ? fold->input.fields[i].type : fold->right.fields[i - left_count].type;
        if (i < left_count) left[i].type = both[i].type;
    }
    left[left_count].type = TYPE(INT);
    both[both_count].type = TYPE(INT);
    for (uint32_t i = 0; i < fold->key_count; i++) {
        join->key_columns[i] = i;
    }
    join->left_placed = (struct schema){left, left_count + 1};
    join->output = (struct schema){both, both_count};
    join->output_placed = (struct schema){both, both_count + 1};
    return STATUS_OK;
}

static void part_done(struct join_part *part)
{
    spill_rows_done(&part->left);
    spill_rows_done(&part->right);
}

static void join_close(struct join *join)
{
    spill_runs_done(&join->runs);
    for (uint32_t i = 0; i < join->parts.count; i++) {
        part_done(&join->parts.items[i]);
    }
    array_done(&join->parts, join->shard->budget);
}

/* Takes the part. */
static status push_part(struct join *join, struct join_part *part, struct error *err)
{
    struct join_part *added = array_add(&join->parts, join->shard->budget);
    if (added == NULL) return error_memory(err);
    *added = *part;
    *part = (struct join_part){0};
    return STATUS_OK;
}

/* ---- the right side ---- */

static uint64_t row_need(const struct spill_rows *right)
{
    uint64_t row_bytes = right->row_count == 0 ? 0 : right->byte_count / right->row_count + 1;
    return 3 * row_bytes + RIGHT_ROW_BYTES;
}

static bool table_fits(const struct fold_shard *shard, const struct spill_rows *right)
{
    return fold_has_room(shard, row_need(right) * right->row_count);
}

static void block_done(struct join_block *block)
{
    builder_done(&block->builder);
    arena_done(&block->arena);
}

/* Reads until there are about `most_rows`, at least one piece of the file. */
static status block_read(struct join_block *block, const struct fold_shard *shard,
                         struct spill_cursor *cursor, uint64_t most_rows, struct error *err)
{
    struct batch rows;
    *block = (struct join_block){0};
    arena_init(&block->arena, shard->budget);
    if (!builder_init(&block->builder, shard->fold->right, shard->budget)) return error_memory(err);
    do {
        TRY(spill_cursor_next(cursor, err));
        builder_append(&block->builder, &cursor->batch,
                       (struct selection){NULL, cursor->batch.row_count});
    } while (cursor->batch.row_count > 0 && block->builder.row_count < most_rows);
    if (!builder_batch(&block->builder, &rows)) return error_memory(err);
    return join_table_build(&block->table, rows, shard->fold->key_count, &block->arena, err);
}

/* The right side is read whole, and the left one passes by. */
static status join_whole(struct join *join, const struct spill_rows *left,
                         const struct spill_rows *right, struct spill_rows *out, struct error *err)
{
    struct join_block block;
    struct spill_cursor cursor;
    spill_cursor_open(&cursor, right);
    status result = block_read(&block, join->shard, &cursor, UINT64_MAX, err);
    spill_cursor_done(&cursor);
    if (result == STATUS_OK) {
        struct fold_passing passing = {.kind = PASS_WHOLE, .table = &block.table, .out = out};
        result = fold_pairs_write(join->shard, &passing, left, err);
    }
    block_done(&block);
    return result;
}

/* ---- parts ---- */

/* The run of pairs that `passing` makes. */
static status add_run(struct join *join, struct fold_passing passing, const struct spill_rows *left,
                      struct error *err)
{
    struct spill_rows run = fold_spill_rows(join->shard, join->output_placed);
    passing.out = &run;
    status result = fold_pairs_write(join->shard, &passing, left, err);
    if (result == STATUS_OK && run.row_count > 0) {
        result = spill_runs_add(&join->runs, &run, err);
    }
    spill_rows_done(&run);
    return result;
}

/* One block of the right half after the other; in an outer join a last pass is for the left rows
 * that found no partner in any. */
static status join_blocks(struct join *join, const struct join_part *part, uint64_t *matched,
                          struct error *err)
{
    struct fold_shard *shard = join->shard;
    struct spill_cursor cursor;
    status result = STATUS_OK;
    spill_cursor_open(&cursor, &part->right);
    while (result == STATUS_OK && cursor.next_extent < part->right.extents.count) {
        struct join_block block;
        uint64_t most_rows = budget_room(shard->budget) / 4 / row_need(&part->right);
        result = block_read(&block, shard, &cursor, most_rows, err);
        if (result == STATUS_OK) {
            result = add_run(join,
                             (struct fold_passing){
                                 .kind = PASS_BLOCK, .table = &block.table, .matched = matched},
                             &part->left, err);
        }
        bool is_last = cursor.next_extent == part->right.extents.count;
        if (result == STATUS_OK && is_last && !shard->fold->inner) {
            result = add_run(
                join,
                (struct fold_passing){.kind = PASS_REST, .table = &block.table, .matched = matched},
                &part->left, err);
        }
        block_done(&block);
    }
    spill_cursor_done(&cursor);
    return result;
}

static status join_undivided(struct join *join, const struct join_part *part, struct error *err)
{
    struct arena arena;
    arena_init(&arena, join->shard->budget);
    uint64_t *matched = arena_array(&arena, uint64_t, (size_t)(part->left.row_count / 64 + 1));
    status result = matched == NULL ? error_memory(err) : join_blocks(join, part, matched, err);
    arena_done(&arena);
    return result;
}

/* ---- cutting ---- */

/* Where the rows of one side go. */
struct division {
    const struct join *join;
    struct spill_rows *targets; /* part_count of them. */
    uint32_t depth;
    bool is_left;
    uint64_t next_place;
};

/* A left row that comes for the first time is given its place. */
static status add_places(struct division *division, const struct batch *in, struct arena *arena,
                         struct batch *out, struct error *err)
{
    uint32_t count = in->column_count;
    struct column *columns = arena_array(arena, struct column, count + 2);
    if (columns == NULL || !column_init(&columns[count], TYPE(INT), in->row_count + 1, arena)) {
        return error_memory(err);
    }
    for (uint32_t i = 0; i < count; i++) {
        columns[i] = in->columns[i];
    }
    for (uint32_t i = 0; i < in->row_count; i++) {
        columns[count].ints[i] = (int64_t)division->next_place++;
    }
    *out =
        (struct batch){.row_count = in->row_count, .column_count = count + 1, .columns = columns};
    return STATUS_OK;
}

static status divide_slice(const struct division *division, const struct batch *batch,
                           uint32_t first, uint32_t count, struct spill_writer *writers,
                           struct error *err)
{
    const struct join *join = division->join;
    const struct fold *fold = join->shard->fold;
    uint32_t part_count = join->shard->spill.part_count;
    uint32_t rows[SLICE_ROWS];
    uint64_t hashes[SLICE_ROWS];
    uint8_t places[SLICE_ROWS];
    bool nulls_matter = division->is_left && !fold->inner;
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = first + i;
    }
    key_hash(batch, join->key_columns, fold->key_count, (struct selection){rows, count}, hashes);
    for (uint32_t i = 0; i < count; i++) {
        /* Hashed anew at every depth: rows of one part agree in the hash before. */
        places[i] = (uint8_t)(hash_combine(hashes[i], division->depth) % part_count);
        bool has_null = key_has_null(batch, join->key_columns, fold->key_count, first + i);
        if (has_null && !nulls_matter) places[i] = UINT8_MAX; /* It has no partner. */
    }
    for (uint32_t place = 0; place < part_count; place++) {
        uint32_t chosen = 0;
        for (uint32_t i = 0; i < count; i++) {
            rows[chosen] = first + i;
            chosen += places[i] == place;
        }
        TRY(spill_writer_append(&writers[place], batch, (struct selection){rows, chosen}, err));
    }
    return STATUS_OK;
}

static status divide_rows(struct division *division, const struct spill_rows *from,
                          struct spill_writer *writers, struct error *err)
{
    struct spill_cursor cursor;
    spill_cursor_open(&cursor, from);
    status result;
    for (;;) {
        struct batch batch;
        result = spill_cursor_next(&cursor, err);
        if (result != STATUS_OK || cursor.batch.row_count == 0) break;
        batch = cursor.batch;
        if (from->schema.count < division->targets[0].schema.count) {
            result = add_places(division, &cursor.batch, &cursor.arena, &batch, err);
        }
        for (uint32_t first = 0; first < batch.row_count && result == STATUS_OK;
             first += SLICE_ROWS) {
            uint32_t count = batch.row_count - first;
            if (count > SLICE_ROWS) count = SLICE_ROWS;
            result = divide_slice(division, &batch, first, count, writers, err);
        }
        if (result != STATUS_OK) break;
    }
    spill_cursor_done(&cursor);
    return result;
}

static status divide(struct division *division, const struct spill_rows *from, struct error *err)
{
    uint32_t part_count = division->join->shard->spill.part_count;
    struct spill_writer writers[SPILL_PARTS] = {{0}};
    status result = STATUS_OK;
    for (uint32_t i = 0; i < part_count && result == STATUS_OK; i++) {
        result = spill_writer_open(&writers[i], &division->targets[i], err);
    }
    if (result == STATUS_OK) result = divide_rows(division, from, writers, err);
    for (uint32_t i = 0; i < part_count; i++) {
        if (result == STATUS_OK) result = spill_writer_flush(&writers[i], err);
        spill_writer_done(&writers[i]);
    }
    return result;
}

static status push_parts(struct join *join, struct spill_rows *lefts, struct spill_rows *rights,
                         const struct join_part *whole, struct error *err)
{
    for (uint32_t i = 0; i < join->shard->spill.part_count; i++) {
        bool is_all = rights[i].row_count == whole->right.row_count;
        struct join_part part = {
            .left = lefts[i], .right = rights[i], .depth = is_all ? DEPTH_MAX : whole->depth + 1};
        lefts[i] = fold_spill_rows(join->shard, join->left_placed);
        rights[i] = fold_spill_rows(join->shard, join->shard->fold->right);
        status result = push_part(join, &part, err);
        part_done(&part);
        TRY(result);
    }
    return STATUS_OK;
}

static status divide_part(struct join *join, const struct join_part *part, struct error *err)
{
    struct spill_rows lefts[SPILL_PARTS];
    struct spill_rows rights[SPILL_PARTS];
    for (uint32_t i = 0; i < SPILL_PARTS; i++) {
        lefts[i] = fold_spill_rows(join->shard, join->left_placed);
        rights[i] = fold_spill_rows(join->shard, join->shard->fold->right);
    }
    struct division left = {.join = join, .targets = lefts, .depth = part->depth, .is_left = true};
    struct division right = {.join = join, .targets = rights, .depth = part->depth};
    status result = divide(&left, &part->left, err);
    if (result == STATUS_OK) result = divide(&right, &part->right, err);
    if (result == STATUS_OK) result = push_parts(join, lefts, rights, part, err);
    for (uint32_t i = 0; i < SPILL_PARTS; i++) {
        spill_rows_done(&lefts[i]);
        spill_rows_done(&rights[i]);
    }
    return result;
}

static status finish_part(struct join *join, const struct join_part *part, struct error *err)
{
    if (part->left.row_count == 0) return STATUS_OK;
    if (part->right.row_count == 0 && join->shard->fold->inner) return STATUS_OK;
    if (table_fits(join->shard, &part->right)) {
        struct spill_rows run = fold_spill_rows(join->shard, join->output_placed);
        status result = join_whole(join, &part->left, &part->right, &run, err);
        if (result == STATUS_OK && run.row_count > 0) {
            result = spill_runs_add(&join->runs, &run, err);
        }
        spill_rows_done(&run);
        return result;
    }
    if (part->depth == DEPTH_MAX) return join_undivided(join, part, err);
    return divide_part(join, part, err);
}

/* ---- finishing ---- */

static status finish_parts(struct join *join, const struct join_part *whole, struct error *err)
{
    TRY(divide_part(join, whole, err));
    while (join->parts.count > 0) {
        struct join_part part = join->parts.items[--join->parts.count];
        status result = finish_part(join, &part, err);
        part_done(&part);
        TRY(result);
    }
    struct sort_key place = {.column = join->output.count};
    return fold_runs_merge(join->shard, &join->runs, &place, 1, NULL, err);
}

static status finish_files(struct join *join, struct join_part *whole, struct error *err)
{
    struct fold_shard *shard = join->shard;
    struct row_store *stores = ((struct join_shard *)shard)->stores;
    TRY(join_spill(shard, err));
    TRY(row_store_list(&stores[0], &whole->left, err));
    TRY(row_store_list(&stores[1], &whole->right, err));
    shard->spill.result.schema = join->output;
    if (table_fits(shard, &whole->right)) {
        return join_whole(join, &whole->left, &whole->right, &shard->spill.result, err);
    }
    return finish_parts(join, whole, err);
}

static status join_finish_spilled(struct fold_shard *shard, struct error *err)
{
    struct join join;
    status result = join_open(&join, shard, err);
    struct join_part whole = {.left = fold_spill_rows(shard, shard->fold->input),
                              .right = fold_spill_rows(shard, shard->fold->right)};
    if (result == STATUS_OK) result = finish_files(&join, &whole, err);
    part_done(&whole);
    join_close(&join);
    TRY(result);
    fold_spill_finished(shard);
    return STATUS_OK;
}

/* Both sides are in memory, and their pairs go to a file. */
static status write_pairs(struct join_shard *join_shard, const struct join_table *table,
                          struct error *err)
{
    struct fold_shard *shard = &join_shard->shard;
    struct join join;
    TRY(join_open(&join, shard, err));
    shard->spill.result.schema = join.output;
    struct fold_passing passing = {.kind = PASS_WHOLE, .table = table, .out = &shard->spill.result};
    TRY(fold_pairs_write_batch(shard, &passing, &join_shard->left, err));
    fold_spill_finished(shard);
    return STATUS_OK;
}

/* ---- in memory ---- */

static size_t join_finish_need(const struct fold_shard *shard)
{
    const struct row_store *stores = ((const struct join_shard *)shard)->stores;
    return 3 * (stores[0].byte_count + stores[1].byte_count) +
           stores[0].row_count * PAIR_BYTES * 2 + stores[1].row_count * RIGHT_ROW_BYTES;
}

/* False when they don't find room. */
static bool add_pairs(struct join_shard *join, const struct join_table *table,
                      const struct join_probe *probe)
{
    struct buf *lefts = &join->pairs[0];
    struct buf *rights = &join->pairs[1];
    for (uint32_t i = 0; i < probe->count; i++) {
        uint32_t found = probe->found[i];
        do {
            buf_put(lefts, &probe->rows[i], sizeof probe->rows[i]);
            buf_put(rights, &found, sizeof found);
            if (found != ROW_NONE) found = table->next[found];
        } while (found != ROW_NONE);
        if (lefts->failed || rights->failed || lefts->size / sizeof found >= ROW_NONE) return false;
        if (i % 256 == 0 && !fold_has_room(&join->shard, 2 * lefts->size)) return false;
    }
    return true;
}

/* All pairs of rows, by the left one; false when they don't find room. */
static bool find_pairs(struct join_shard *join, const struct join_table *table)
{
    struct join_probe probe;
    uint32_t rows[JOIN_PROBE_ROWS];
    uint32_t count;
    for (uint32_t first = 0; first < join->left.row_count; first += count) {
        count = join->left.row_count - first;
        if (count > JOIN_PROBE_ROWS) count = JOIN_PROBE_ROWS;
        for (uint32_t i = 0; i < count; i++) {
            rows[i] = first + i;
        }
        struct selection selection = {rows, count};
        if (join->shard.fold->inner) {
            join_table_probe(table, &join->left, table->key_columns, selection, &probe);
        } else {
            join_table_probe_all(table, &join->left, table->key_columns, selection, &probe);
        }
        if (!add_pairs(join, table, &probe)) return false;
    }
    return true;
}

/* Rows of the left side in their order, each with its partners in theirs. */
static status join_finish(struct fold_shard *shard, struct error *err)
{
    struct join_shard *join = (struct join_shard *)shard;
    struct join_table table;
    TRY(row_store_read(&join->stores[0], &join->left, err));
    TRY(row_store_read(&join->stores[1], &join->right, err));
    TRY(join_table_build(&table, join->right, shard->fold->key_count, &shard->scratch, err));
    if (find_pairs(join, &table)) {
        fold_finished(shard, join->pairs[0].size / sizeof(uint32_t));
        return STATUS_OK;
    }
    pairs_done(join);
    return shard->spill.store == NULL ? error_memory(err) : write_pairs(join, &table, err);
}

static status join_read(const struct fold_shard *shard, uint32_t first, uint32_t count,
                        struct arena *arena, struct batch *out_batch, struct error *err)
{
    const struct join_shard *join = (const struct join_shard *)shard;
    const uint32_t *lefts = (const uint32_t *)(const void *)join->pairs[0].bytes;
    const uint32_t *rights = (const uint32_t *)(const void *)join->pairs[1].bytes;
    uint32_t left_count = join->left.column_count;
    uint32_t both_count = left_count + join->right.column_count;
    struct column *columns = arena_array(arena, struct column, both_count + 1);
    if (columns == NULL) return error_memory(err);
    TRY(fold_gather(columns, join->left.columns, left_count, lefts + first, count, arena, err));
    TRY(fold_gather(columns + left_count, join->right.columns, join->right.column_count,
                    rights + first, count, arena, err));
    *out_batch = (struct batch){.row_count = count, .column_count = both_count, .columns = columns};
    return STATUS_OK;
}

const struct fold_class fold_join = {
    .shard_bytes = sizeof(struct join_shard),
    .init = join_init,
    .done = join_done,
    .apply = join_apply,
    .held = join_held,
    .spill = join_spill,
    .finish_need = join_finish_need,
    .finish = join_finish,
    .finish_spilled = join_finish_spilled,
    .read = join_read,
};
