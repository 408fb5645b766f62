/* fold_join.c - a join that is larger than memory.
 *
 * If the right side fits into memory, the left one only passes by. Else both are cut into parts by
 * the hash of their keys, until the right half of a part fits; left rows carry their place. Each
 * part then gives a run in the order of places, and the runs are merged by it. A right half that no
 * hash divides (one key, or none) is taken piece by piece, and the left half passes by each: the
 * runs of later pieces come later, and so do their partners.
 */
#include "engine/base/assert.h"
#include "engine/base/hash.h"
#include "engine/exec/fold/fold_pairs.h"
#include "engine/exec/fold/fold_parts.h"
#include "engine/data/key_hash.h"

enum {
    SLICE_ROWS = 1024,
    RIGHT_ROW_BYTES = 96, /* Of a build side, beside the row. */
    DEPTH_MAX = 12
};

struct join_part {
    struct spill_rows left; /* With the place as last column. */
    struct spill_rows right;
    uint32_t depth; /* How often it was cut; DEPTH_MAX: that would not help. */
};

/* One finish. */
struct join {
    struct fold_shard *shard;
    uint32_t *key_columns;       /* 0, 1, 2... */
    struct schema left_placed;   /* Left columns, the place. */
    struct schema output;        /* Left columns, right columns, */
    struct schema output_placed; /* and the place. */
    struct join_part *parts;     /* That wait. */
    size_t part_count;
    size_t part_capacity;
};

/* A right side in memory, or a piece of it. */
struct join_table {
    struct batch_builder builder;
    struct arena arena;
    struct build_side table;
};

/* ---- incarnation ---- */

static status join_init(struct join *join, struct fold_shard *shard, struct error *err)
{
    const struct fold *fold = shard->fold;
    uint32_t left_count = fold->input.count;
    uint32_t both_count = left_count + fold->right.count;
    *join = (struct join){.shard = shard};
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

static void join_done(struct join *join)
{
    for (size_t i = 0; i < join->part_count; i++) {
        part_done(&join->parts[i]);
    }
    memory_free(join->shard->budget, join->parts, join->part_capacity * sizeof *join->parts);
}

/* Takes the part. */
static status push_part(struct join *join, struct join_part *part, struct error *err)
{
    if (join->part_count == join->part_capacity) {
        size_t grown = join->part_capacity == 0 ? SPILL_PARTS : join->part_capacity * 2;
        struct join_part *parts =
            memory_resize(join->shard->budget, join->parts, join->part_capacity * sizeof *parts,
                          grown * sizeof *parts);
        if (parts == NULL) return error_memory(err);
        join->parts = parts;
        join->part_capacity = grown;
    }
    join->parts[join->part_count++] = *part;
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

static void table_done(struct join_table *table)
{
    builder_done(&table->builder);
    arena_done(&table->arena);
}

/* Reads on until there are about `most_rows`, at least one piece. */
static status table_read(struct join_table *table, const struct fold_shard *shard,
                         struct spill_cursor *cursor, uint64_t most_rows, struct error *err)
{
    struct batch rows;
    *table = (struct join_table){0};
    arena_init(&table->arena, shard->budget);
    if (!builder_init(&table->builder, shard->fold->right, shard->budget)) return error_memory(err);
    do {
        TRY(spill_cursor_next(cursor, err));
        builder_append(&table->builder, &cursor->batch,
                       (struct selection){NULL, cursor->batch.row_count});
    } while (cursor->batch.row_count > 0 && table->builder.row_count < most_rows);
    if (!builder_batch(&table->builder, &rows)) return error_memory(err);
    return build_side_build(&table->table, rows, shard->fold->key_count, &table->arena, err);
}

/* The right side is read whole, and the left one passes by. */
static status join_whole(struct join *join, const struct spill_rows *left,
                         const struct spill_rows *right, struct spill_rows *out, struct error *err)
{
    struct join_table table;
    struct spill_cursor cursor;
    spill_cursor_open(&cursor, right);
    status result = table_read(&table, join->shard, &cursor, UINT64_MAX, err);
    spill_cursor_done(&cursor);
    if (result == STATUS_OK) {
        struct fold_passing passing = {.kind = PASS_WHOLE, .table = &table.table, .out = out};
        result = fold_pairs_write(join->shard, &passing, left, err);
    }
    table_done(&table);
    return result;
}

/* ---- parts ---- */

static struct spill_rows new_rows(const struct join *join, struct schema schema)
{
    return (struct spill_rows){.place = &join->shard->spill.state, .schema = schema};
}

/* The run of pairs that `passing` makes. */
static status add_run(struct join *join, struct fold_passing passing, const struct spill_rows *left,
                      struct error *err)
{
    struct spill_rows run = new_rows(join, join->output_placed);
    passing.out = &run;
    status result = fold_pairs_write(join->shard, &passing, left, err);
    if (result == STATUS_OK && run.row_count > 0) {
        result = spill_runs_add(&join->shard->spill.runs, &run, err);
    }
    spill_rows_done(&run);
    return result;
}

/* One piece of the right half after the other; a last pass is for those who met nobody. */
static status join_pieces(struct join *join, const struct join_part *part, uint64_t *noted,
                          struct error *err)
{
    struct fold_shard *shard = join->shard;
    struct spill_cursor cursor;
    status result = STATUS_OK;
    spill_cursor_open(&cursor, &part->right);
    while (result == STATUS_OK && cursor.next_extent < part->right.extent_count) {
        struct join_table table;
        uint64_t most_rows = budget_room(shard->budget) / 4 / row_need(&part->right);
        result = table_read(&table, shard, &cursor, most_rows, err);
        if (result == STATUS_OK) {
            result = add_run(
                join,
                (struct fold_passing){.kind = PASS_PIECE, .table = &table.table, .noted = noted},
                &part->left, err);
        }
        bool is_last = cursor.next_extent == part->right.extent_count;
        if (result == STATUS_OK && is_last && !shard->fold->inner) {
            result = add_run(
                join,
                (struct fold_passing){.kind = PASS_REST, .table = &table.table, .noted = noted},
                &part->left, err);
        }
        table_done(&table);
    }
    spill_cursor_done(&cursor);
    return result;
}

static status join_indivisible(struct join *join, const struct join_part *part, struct error *err)
{
    struct arena arena;
    arena_init(&arena, join->shard->budget);
    uint64_t *noted = arena_array(&arena, uint64_t, (size_t)(part->left.row_count / 64 + 1));
    status result = noted == NULL ? error_memory(err) : join_pieces(join, part, noted, err);
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
        /* Another cut at every depth. */
        places[i] = (uint8_t)(hash_combine(hashes[i], division->depth) % part_count);
        bool has_null = key_has_null(batch, join->key_columns, fold->key_count, first + i);
        if (has_null && !nulls_matter) places[i] = UINT8_MAX; /* It meets nobody. */
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
        lefts[i] = new_rows(join, join->left_placed);
        rights[i] = new_rows(join, join->shard->fold->right);
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
        lefts[i] = new_rows(join, join->left_placed);
        rights[i] = new_rows(join, join->shard->fold->right);
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
        struct spill_rows run = new_rows(join, join->output_placed);
        status result = join_whole(join, &part->left, &part->right, &run, err);
        if (result == STATUS_OK && run.row_count > 0) {
            result = spill_runs_add(&join->shard->spill.runs, &run, err);
        }
        spill_rows_done(&run);
        return result;
    }
    if (part->depth == DEPTH_MAX) return join_indivisible(join, part, err);
    return divide_part(join, part, err);
}

/* ---- finishing ---- */

static status finish_parts(struct join *join, const struct join_part *whole, struct error *err)
{
    const struct fold *fold = join->shard->fold;
    struct fold_spill *spill = &join->shard->spill;
    TRY(divide_part(join, whole, err));
    while (join->part_count > 0) {
        struct join_part part = join->parts[--join->part_count];
        status result = finish_part(join, &part, err);
        part_done(&part);
        TRY(result);
    }
    struct sort_key place = {.column = join->output.count};
    struct spill_merge merge = {.keys = &place, .key_count = 1, .fan = spill->fan};
    if (__builtin_add_overflow(fold->offset, fold->limit, &merge.row_limit)) {
        merge.row_limit = UINT64_MAX;
    }
    return spill_merge(&merge, &spill->runs, &spill->result, err);
}

static status finish_join(struct join *join, struct join_part *whole, struct error *err)
{
    struct fold_shard *shard = join->shard;
    for (uint32_t i = 0; i < 2; i++) {
        TRY(row_store_spill(&shard->kept[i], err));
    }
    TRY(row_store_list(&shard->kept[0], &whole->left, err));
    TRY(row_store_list(&shard->kept[1], &whole->right, err));
    shard->spill.result.schema = join->output;
    if (table_fits(shard, &whole->right)) {
        return join_whole(join, &whole->left, &whole->right, &shard->spill.result, err);
    }
    return finish_parts(join, whole, err);
}

status fold_join_finish_spilled(struct fold_shard *shard, struct error *err)
{
    struct join join;
    status result = join_init(&join, shard, err);
    struct join_part whole = {.left = new_rows(&join, shard->fold->input),
                              .right = new_rows(&join, shard->fold->right)};
    if (result == STATUS_OK) result = finish_join(&join, &whole, err);
    part_done(&whole);
    join_done(&join);
    return result;
}

status fold_join_write(struct fold_shard *shard, const struct build_side *table, struct error *err)
{
    struct join join;
    TRY(join_init(&join, shard, err));
    shard->spill.result.schema = join.output;
    struct fold_passing passing = {.kind = PASS_WHOLE, .table = table, .out = &shard->spill.result};
    return fold_pairs_write_batch(shard, &passing, &shard->rows, err);
}
