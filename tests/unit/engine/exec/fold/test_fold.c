/* SPDX-License-Identifier: Apache-2.0 */
/* test_fold.c - a fold's rows are a function of the set of batches, not of their order or cut.
 *
 * Method: rows are cut into numbered batches at random places, spread over inputs and producers,
 * and applied shuffled; this is done several times for each kind of fold. The expected rows come
 * from the definition: all rows, sorted rows, best rows, groups, pairs; the window takes a part of
 * them. Everything is emitted twice.
 */
#include "unit/test.h"

#include "engine/exec/fold/fold.h"
#include "engine/exec/fold/group_table.h"
#include "engine/data/key_hash.h"
#include "unit/engine/exec/fold/make_grouping.h"
#include "engine/data/batch_codec.h"

enum { PARTS_MAX = 64 };

/* ---- batches on their way ---- */

struct fold_part {
    struct batch_identity identity;
    struct buf bytes;
};

struct parts {
    struct fold_part items[PARTS_MAX];
    uint32_t count;
};

static void encode(const struct batch *batch, struct schema schema, struct buf *out)
{
    struct batch_builder builder;
    assert_true(builder_init(&builder, schema, NULL));
    builder_append(&builder, batch, (struct selection){NULL, batch->row_count});
    assert_false(builder.failed);
    batch_encode(&builder, out);
    assert_false(out->failed);
    builder_done(&builder);
}

/* What a map sends of these rows: themselves, or their groups' partial states. */
static void encode_part(const struct fold *fold, const struct batch *piece, struct schema schema,
                        struct buf *out)
{
    if (fold->kind != FOLD_AGGREGATE) {
        encode(piece, schema, out);
        return;
    }
    struct arena arena = {0};
    struct group_table *table;
    struct batch partial;
    struct error err;
    assert_int_equal(group_table_create(fold->grouping, NULL, &table, &err), STATUS_OK);
    assert_int_equal(
        group_table_add(table, piece, (struct selection){NULL, piece->row_count}, &err), STATUS_OK);
    assert_int_equal(
        group_table_read(table, GROUP_PARTIAL, 0, group_table_count(table), &arena, &partial, &err),
        STATUS_OK);
    encode(&partial, schema, out);
    group_table_destroy(table);
    arena_done(&arena);
}

/* Cuts the rows; their order is that of the identities. Some parts are empty. */
static void cut(struct parts *parts, const struct fold *fold, const struct batch *batch,
                uint32_t first_input, struct random *random)
{
    struct schema schema = first_input == 1 && fold->kind == FOLD_JOIN ? fold->right : fold->input;
    struct batch_identity identity = {.input = first_input};
    uint32_t done = 0;
    uint32_t part_count = 1 + random_below(random, 12);
    for (uint32_t i = 0; i < part_count; i++) {
        struct column columns[GROUPED_COLUMNS];
        uint32_t left = batch->row_count - done;
        uint32_t count = i + 1 == part_count ? left : random_below(random, left + 1) / 2;
        struct batch piece = batch_slice(batch, done, count, columns);
        struct fold_part *part = &parts->items[parts->count++];
        *part = (struct fold_part){.identity = identity};
        encode_part(fold, &piece, schema, &part->bytes);
        done += count;
        identity.number += 1 + random_below(random, 300);
        if (random_below(random, 4) == 0) {
            identity.producer += 1 + random_below(random, 300);
            identity.number = random_below(random, 3);
        }
        if (random_below(random, 6) == 0 && fold->kind != FOLD_JOIN) {
            identity.input++;
            identity.producer = random_below(random, 3);
        }
    }
}

/* ---- what comes out ---- */

struct fold_collector {
    struct fold_sink sink;
    struct row_lines lines;
    uint64_t next_number;
    bool refuses;
};

static status collect(struct fold_sink *sink, uint64_t number, const struct batch *batch,
                      struct error *err)
{
    struct fold_collector *collector = (struct fold_collector *)sink;
    if (collector->refuses) return error_set(err, STATUS_CANCELLED, "no more");
    assert_int_equal(number, collector->next_number++);
    assert_true(batch->row_count > 0);
    row_lines_add(&collector->lines, batch, (struct selection){NULL, batch->row_count});
    return STATUS_OK;
}

static void emit(const struct fold_shard *shard, struct row_lines *lines)
{
    struct fold_collector collector = {.sink = {collect}, .lines = {.arena = lines->arena}};
    struct error err;
    assert_int_equal(fold_shard_emit(shard, &collector.sink, &err), STATUS_OK);
    *lines = collector.lines;
}

static struct fold_shard *fold_rows(const struct fold *fold, const struct batch *left,
                                    const struct batch *right, struct budget *budget,
                                    struct random *random)
{
    static struct parts parts;
    struct arena arena = {0};
    struct fold_shard *shard;
    struct error err;
    uint64_t row_count = 0;
    parts.count = 0;
    cut(&parts, fold, left, 0, random);
    if (right != NULL) cut(&parts, fold, right, 1, random);
    assert_int_equal(fold_shard_create(fold, budget, NULL, &shard, &err), STATUS_OK);
    uint32_t *order = random_rows_shuffle(random, parts.count, &arena);
    for (uint32_t i = 0; i < parts.count; i++) {
        struct fold_part *part = &parts.items[order[i]];
        uint64_t rows = UINT64_MAX;
        /* What the shard keeps must be counted in its budget. */
        struct buf moved = {.budget = budget};
        buf_put(&moved, part->bytes.bytes, part->bytes.size);
        assert_int_equal(fold_shard_apply(shard, part->identity, &moved, &rows, &err), STATUS_OK);
        buf_done(&moved);
        buf_done(&part->bytes);
        row_count += rows;
    }
    assert_int_equal(fold_shard_finish(shard, &err), STATUS_OK);
    assert_int_equal(fold_shard_counts(shard)->rows_in, row_count);
    arena_done(&arena);
    return shard;
}

/* `expected` is what the fold gives in order; for groups in any order, but always the same. */
static void check_fold(const struct fold *fold, const struct batch *left, const struct batch *right,
                       const struct row_lines *expected, struct random *random)
{
    struct row_lines first = {.arena = expected->arena};
    for (int round = 0; round < 3; round++) {
        struct budget budget = {0};
        struct row_lines seen = {.arena = expected->arena};
        struct row_lines again = {.arena = expected->arena};
        struct fold_shard *shard = fold_rows(fold, left, right, &budget, random);
        emit(shard, &seen);
        emit(shard, &again);
        assert_true(row_lines_equal(&seen, &again));
        assert_int_equal(fold_shard_counts(shard)->rows_out, seen.count);
        struct fold_collector refusing = {.sink = {collect}, .refuses = true};
        struct error err;
        assert_int_equal(fold_shard_emit(shard, &refusing.sink, &err),
                         seen.count > 0 ? STATUS_CANCELLED : STATUS_OK);
        fold_shard_destroy(shard);
        assert_int_equal(budget.used_bytes, 0);
        if (round == 0) first = seen;
        assert_true(row_lines_equal(&seen, &first));
    }
    struct row_lines sorted = *expected;
    if (fold->kind == FOLD_AGGREGATE) {
        row_lines_sort(&first);
        row_lines_sort(&sorted);
    }
    assert_true(row_lines_equal(&first, &sorted));
}

static void take_window(struct row_lines *lines, uint64_t offset, uint64_t limit)
{
    uint64_t first = offset < lines->count ? offset : lines->count;
    uint64_t left = lines->count - first;
    if (lines->items != NULL) lines->items += first;
    lines->count = (uint32_t)(limit < left ? limit : left);
}

/* Calls check_fold with every kind of window. */
static void check_windows(struct fold fold, const struct batch *left, const struct batch *right,
                          const struct row_lines *all, struct random *random)
{
    const uint64_t ends[] = {0, 1, 3, all->count, all->count + 1, UINT64_MAX};
    for (uint32_t i = 0; i < 36; i++) {
        struct row_lines expected = *all;
        fold.offset = ends[i / 6];
        fold.limit = ends[i % 6];
        take_window(&expected, fold.offset, fold.limit);
        check_fold(&fold, left, right, &expected, random);
    }
}

/* ---- the kinds ---- */

static void collecting_keeps_the_order_of_the_source(void **state)
{
    (void)state;
    struct random random = {1};
    for (uint32_t row_count = 0; row_count < 60; row_count += 7) {
        struct arena arena = {0};
        struct random_rows rows = {.random = &random, .arena = &arena, .null_percent = 10};
        struct batch batch = random_rows_batch(&rows, random_rows_every, row_count);
        struct row_lines all = {.arena = &arena};
        struct fold fold = {
            .kind = FOLD_COLLECT, .input = random_rows_every, .output = random_rows_every};
        row_lines_add(&all, &batch, (struct selection){NULL, row_count});
        check_windows(fold, &batch, NULL, &all, &random);
        arena_done(&arena);
    }
}

/* Some key, then all columns. */
static uint32_t total_order(struct random *random, struct sort_key *keys)
{
    keys[0] = (struct sort_key){random_below(random, GROUPED_TYPES), random_below(random, 2) == 0,
                                random_below(random, 2) == 0};
    for (uint32_t i = 0; i < GROUPED_TYPES; i++) {
        keys[i + 1] = (struct sort_key){.column = i};
    }
    return GROUPED_TYPES + 1;
}

static void sorting_and_ranking_depend_on_the_rows_only(void **state)
{
    (void)state;
    struct random random = {2};
    for (uint32_t round = 0; round < 12; round++) {
        struct arena arena = {0};
        struct random_rows rows = {
            .random = &random, .arena = &arena, .null_percent = 10, .plain_doubles = true};
        uint32_t row_count = round * 9;
        struct batch batch = random_rows_batch(&rows, random_rows_keys, row_count);
        struct sort_key keys[GROUPED_TYPES + 1];
        struct ranking ranking = {.keys = keys, .limit = round % 4 * 10};
        ranking.key_count = total_order(&random, keys);
        uint32_t *order = random_rows_need(arena_array(&arena, uint32_t, row_count + 1));
        for (uint32_t i = 0; i < row_count; i++) {
            order[i] = i;
        }
        naive_sort_rows((struct naive_sort){&batch, keys, ranking.key_count}, order, row_count);
        struct row_lines all = {.arena = &arena};
        row_lines_add(&all, &batch, (struct selection){order, row_count});
        struct fold fold = {.kind = FOLD_SORT,
                            .input = random_rows_keys,
                            .output = random_rows_keys,
                            .ranking = &ranking};
        check_windows(fold, &batch, NULL, &all, &random);
        take_window(&all, 0, ranking.limit);
        fold.kind = FOLD_RANK;
        check_windows(fold, &batch, NULL, &all, &random);
        arena_done(&arena);
    }
}

static void aggregating_depends_on_the_rows_only(void **state)
{
    (void)state;
    struct random random = {3};
    for (uint32_t mask = 0; mask < 128; mask += 3) {
        struct arena arena = {0};
        struct random_rows rows = {.random = &random, .arena = &arena, .null_percent = 10};
        struct batch batch = grouped_rows(&rows, mask % 7 * 30);
        struct made_grouping made;
        grouped_keys(&made, mask);
        grouped_every_aggregate(&made);
        struct row_lines expected = {.arena = &arena};
        naive_groups(&made, &batch, &expected);
        struct fold fold = {.kind = FOLD_AGGREGATE,
                            .input = made.grouping.partial,
                            .output = made.grouping.result,
                            .key_count = made.grouping.key_count,
                            .grouping = &made.grouping,
                            .limit = UINT64_MAX};
        check_fold(&fold, &batch, NULL, &expected, &random);
        arena_done(&arena);
    }
}

static bool joins(const struct batch *left, uint32_t row, const struct batch *right, uint32_t other,
                  uint32_t key_count)
{
    for (uint32_t i = 0; i < key_count; i++) {
        const struct column *a = &left->columns[i];
        const struct column *b = &right->columns[i];
        if (column_is_null(a, row) || column_is_null(b, other)) return false;
        if (naive_value_order(a, row, b, other) != 0) return false;
    }
    return true;
}

static void expect_pair(struct row_lines *lines, const struct batch *left, uint32_t row,
                        const struct batch *right, uint32_t other)
{
    struct buf line = {0};
    for (uint32_t i = 0; i < left->column_count + right->column_count; i++) {
        if (i > 0) buf_put_string(&line, "|");
        if (i < left->column_count) {
            row_line_value(&line, &left->columns[i], row);
        } else if (other == ROW_NONE) {
            buf_put_string(&line, "NULL");
        } else {
            row_line_value(&line, &right->columns[i - left->column_count], other);
        }
    }
    row_lines_put(lines, naive_line(&line, lines->arena));
    buf_done(&line);
}

static void joining_keeps_every_left_row_with_all_its_partners(void **state)
{
    (void)state;
    struct random random = {4};
    for (uint32_t round = 0; round < 24; round++) {
        struct arena arena = {0};
        struct random_rows rows = {.random = &random, .arena = &arena, .null_percent = 10};
        struct field left_fields[3] = {random_rows_fields[round % GROUPED_TYPES],
                                       random_rows_fields[1], random_rows_fields[7]};
        struct field right_fields[4] = {left_fields[0], left_fields[1], random_rows_fields[8],
                                        random_rows_fields[4]};
        struct fold fold = {.kind = FOLD_JOIN,
                            .input = {left_fields, 3},
                            .right = {right_fields, 4},
                            .key_count = round % 3,
                            .limit = UINT64_MAX};
        struct batch left = random_rows_batch(&rows, fold.input, random_below(&random, 40));
        struct batch right = random_rows_batch(&rows, fold.right, round % 5 * 10);
        struct row_lines all = {.arena = &arena};
        for (uint32_t row = 0; row < left.row_count; row++) {
            bool matched = false;
            for (uint32_t other = 0; other < right.row_count; other++) {
                if (!joins(&left, row, &right, other, fold.key_count)) continue;
                matched = true;
                expect_pair(&all, &left, row, &right, other);
            }
            if (!matched) expect_pair(&all, &left, row, &right, ROW_NONE);
        }
        check_fold(&fold, &left, &right, &all, &random);
        if (round % 6 == 0) check_windows(fold, &left, &right, &all, &random);
        arena_done(&arena);
    }
}

static void many_rows_are_emitted_in_numbered_batches(void **state)
{
    (void)state;
    enum { ROWS = 150000 };
    struct random random = {5};
    struct arena arena = {0};
    struct schema schema = {&random_rows_fields[1], 1};
    struct random_rows rows = {.random = &random, .arena = &arena, .domain = ROWS};
    struct batch batch = random_rows_batch(&rows, schema, ROWS);
    struct row_lines expected = {.arena = &arena};
    struct fold_collector collector = {.sink = {collect}, .lines = {.arena = &arena}};
    struct fold fold = {
        .kind = FOLD_COLLECT, .input = schema, .output = schema, .offset = 7, .limit = ROWS};
    struct error err;
    row_lines_add(&expected, &batch, (struct selection){NULL, ROWS});
    take_window(&expected, 7, ROWS);
    struct fold_shard *shard = fold_rows(&fold, &batch, NULL, NULL, &random);
    assert_int_equal(fold_shard_emit(shard, &collector.sink, &err), STATUS_OK);
    assert_true(row_lines_equal(&collector.lines, &expected));
    assert_true(collector.next_number > 1);
    fold_shard_destroy(shard);
    arena_done(&arena);
}

/* ---- uses ---- */

static void a_scalar_is_the_only_value_or_null(void **state)
{
    (void)state;
    struct random random = {6};
    for (uint32_t round = 0; round < 200; round++) {
        struct arena arena = {0};
        struct random_rows rows = {.random = &random, .arena = &arena, .null_percent = 20};
        struct schema schema = {&random_rows_fields[round % GROUPED_TYPES], 1};
        struct batch batch = random_rows_batch(&rows, schema, round % 4);
        struct fold fold = {.kind = FOLD_COLLECT,
                            .input = schema,
                            .output = schema,
                            .limit = round % 8 < 4 ? UINT64_MAX : 1,
                            .is_scalar = true};
        struct fold_shard *shard = fold_rows(&fold, &batch, NULL, NULL, &random);
        struct value value;
        struct error err;
        status code = fold_shard_scalar(shard, &value, &err);
        if (batch.row_count > 1 && fold.limit > 1) {
            assert_int_equal(code, STATUS_INPUT);
        } else {
            assert_int_equal(code, STATUS_OK);
            bool is_null = batch.row_count == 0 || column_is_null(&batch.columns[0], 0);
            assert_int_equal(value.is_null, is_null);
            uint8_t truth = schema.fields[0].type.kind == TYPE_BOOL && value.truth;
            struct column column = {.type = schema.fields[0].type, .ints = &value.integer};
            if (column.type.kind == TYPE_TEXT) column.texts = &value.text;
            if (column.type.kind == TYPE_BOOL) column.bools = &truth;
            struct batch one = {.row_count = 1, .column_count = 1, .columns = &column};
            if (!is_null) {
                assert_string_equal(row_line(&one, 0, 1, &arena), row_line(&batch, 0, 1, &arena));
            }
        }
        fold_shard_destroy(shard);
        arena_done(&arena);
    }
}

static void a_build_side_holds_all_rows_under_their_keys(void **state)
{
    (void)state;
    struct random random = {7};
    struct arena arena = {0};
    struct random_rows rows = {.random = &random, .arena = &arena, .null_percent = 10};
    struct batch batch = random_rows_batch(&rows, random_rows_keys, 200);
    for (uint32_t key_count = 0; key_count <= 3; key_count++) {
        struct fold fold = {.kind = FOLD_COLLECT,
                            .input = random_rows_keys,
                            .output = random_rows_keys,
                            .limit = UINT64_MAX,
                            .side_keys = key_count,
                            .is_build_side = true};
        struct fold_shard *shard = fold_rows(&fold, &batch, NULL, NULL, &random);
        const struct join_table *side = fold_shard_join_table(shard);
        struct row_lines expected = {.arena = &arena};
        struct row_lines seen = {.arena = &arena};
        row_lines_add(&expected, &batch, (struct selection){NULL, 200});
        row_lines_add(&seen, &side->rows, (struct selection){NULL, side->rows.row_count});
        assert_true(row_lines_equal(&seen, &expected));
        for (uint32_t row = 0; row < 200; row++) {
            uint64_t hash;
            key_hash(&batch, side->key_columns, key_count, (struct selection){&row, 1}, &hash);
            uint32_t found = join_table_find(side, hash, &batch, side->key_columns, row);
            while (found != ROW_NONE && found != row) {
                found = side->next[found];
            }
            bool with_null = key_has_null(&batch, side->key_columns, key_count, row);
            assert_int_equal(found, with_null ? ROW_NONE : row);
        }
        fold_shard_destroy(shard);
    }
    arena_done(&arena);
}

static void shards_divide_the_hashes_evenly(void **state)
{
    (void)state;
    struct fold keyed = {.kind = FOLD_AGGREGATE, .key_count = 1};
    struct fold keyless = {.kind = FOLD_AGGREGATE};
    struct fold sorted = {.kind = FOLD_SORT};
    struct random random = {8};
    for (uint32_t count = 1; count < 40; count++) {
        uint32_t counts[40] = {0};
        assert_int_equal(fold_shard_count(&keyed, count), count);
        assert_int_equal(fold_shard_count(&keyless, count), 1);
        assert_int_equal(fold_shard_count(&sorted, count), 1);
        assert_int_equal(fold_shard_of(0, count), 0);
        assert_int_equal(fold_shard_of(UINT64_MAX, count), count - 1);
        for (uint32_t i = 0; i < 200 * count; i++) {
            uint32_t shard = fold_shard_of(random_u64(&random), count);
            assert_true(shard < count);
            counts[shard]++;
        }
        for (uint32_t i = 0; i < count; i++) {
            assert_in_range(counts[i], 100, 300);
        }
    }
}

/* ---- failures ---- */

static void damaged_batches_are_refused(void **state)
{
    (void)state;
    struct random random = {9};
    struct arena arena = {0};
    struct random_rows rows = {.random = &random, .arena = &arena};
    struct batch batch = random_rows_batch(&rows, random_rows_keys, 20);
    struct sort_key keys[GROUPED_TYPES + 1];
    struct ranking ranking = {.keys = keys, .limit = 3};
    ranking.key_count = total_order(&random, keys);
    static const enum fold_kind kinds[] = {FOLD_COLLECT, FOLD_SORT, FOLD_RANK, FOLD_JOIN};
    for (uint32_t i = 0; i < 4; i++) {
        struct fold fold = {.kind = kinds[i],
                            .input = random_rows_keys,
                            .right = random_rows_keys,
                            .output = random_rows_keys,
                            .ranking = &ranking,
                            .limit = UINT64_MAX};
        struct fold_shard *shard;
        struct error err;
        struct buf bytes = {0};
        uint64_t row_count;
        encode(&batch, random_rows_keys, &bytes);
        bytes.bytes[0] ^= 1;
        assert_int_equal(fold_shard_create(&fold, NULL, NULL, &shard, &err), STATUS_OK);
        assert_int_equal(
            fold_shard_apply(shard, (struct batch_identity){0}, &bytes, &row_count, &err),
            STATUS_CORRUPT);
        fold_shard_destroy(shard);
        buf_done(&bytes);
    }
    arena_done(&arena);
}

static status fold_once(const struct fold *fold, const struct buf *batches, struct budget *budget,
                        struct error *err)
{
    struct fold_shard *shard = NULL;
    status code = fold_shard_create(fold, budget, NULL, &shard, err);
    for (uint32_t i = 0; i < 4 && code == STATUS_OK; i++) {
        struct buf bytes = {.budget = budget};
        uint64_t row_count;
        const struct buf *from = &batches[fold->kind == FOLD_JOIN ? i % 2 : 0];
        buf_put(&bytes, from->bytes, from->size);
        code = bytes.failed ? STATUS_MEMORY
                            : fold_shard_apply(shard, (struct batch_identity){i % 2, 0, i}, &bytes,
                                               &row_count, err);
        buf_done(&bytes);
    }
    if (code == STATUS_OK) code = fold_shard_finish(shard, err);
    if (code == STATUS_OK) {
        /* A sink of its own, that needs no memory. */
        struct fold_collector collector = {.sink = {collect}, .refuses = true};
        code = fold_shard_emit(shard, &collector.sink, err);
        if (code == STATUS_CANCELLED) code = STATUS_OK;
    }
    fold_shard_destroy(shard);
    return code;
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    struct random random = {10};
    struct arena arena = {0};
    struct random_rows rows = {.random = &random, .arena = &arena, .null_percent = 10};
    struct batch batch = grouped_rows(&rows, 700);
    struct made_grouping made;
    grouped_keys(&made, 1 << 4 | 1 << 1);
    grouped_every_aggregate(&made);
    struct sort_key keys[GROUPED_TYPES + 1];
    struct ranking ranking = {.keys = keys, .limit = 3};
    ranking.key_count = total_order(&random, keys);
    static const uint32_t duplicates[] = {4, 5};
    const struct duplicate_set duplicate_sets[] = {{duplicates, 1}, {duplicates, 2}};
    for (int kind = FOLD_COLLECT; kind <= FOLD_JOIN; kind++) {
        struct fold fold = {.kind = (enum fold_kind)kind,
                            .input = random_rows_keys,
                            .right = random_rows_keys,
                            .output = random_rows_keys,
                            .key_count = 2,
                            .side_keys = 2,
                            .duplicate_sets = duplicate_sets,
                            .duplicate_set_count = 2,
                            .is_build_side = kind == FOLD_COLLECT,
                            .grouping = &made.grouping,
                            .ranking = &ranking,
                            .limit = UINT64_MAX};
        if (kind == FOLD_AGGREGATE) fold.input = made.grouping.partial;
        struct buf batches[2] = {{0}};
        encode_part(&fold, &batch, fold.input, &batches[0]);
        encode_part(&fold, &batch, fold.input, &batches[1]);
        bool refused = true;
        for (size_t allowed = 0; refused; allowed++) {
            struct budget budget = {0};
            struct error err;
            memory_fail_after(allowed);
            status code = fold_once(&fold, batches, &budget, &err);
            refused = memory_was_refused();
            memory_fail_never();
            assert_int_equal(code, refused ? STATUS_MEMORY : STATUS_OK);
            assert_int_equal(budget.used_bytes, 0);
            assert_true(allowed < 3000);
        }
        buf_done(&batches[0]);
        buf_done(&batches[1]);
    }
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collecting_keeps_the_order_of_the_source),
        cmocka_unit_test(sorting_and_ranking_depend_on_the_rows_only),
        cmocka_unit_test(aggregating_depends_on_the_rows_only),
        cmocka_unit_test(joining_keeps_every_left_row_with_all_its_partners),
        cmocka_unit_test(many_rows_are_emitted_in_numbered_batches),
        cmocka_unit_test(a_scalar_is_the_only_value_or_null),
        cmocka_unit_test(a_build_side_holds_all_rows_under_their_keys),
        cmocka_unit_test(shards_divide_the_hashes_evenly),
        cmocka_unit_test(damaged_batches_are_refused),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
