/* SPDX-License-Identifier: Apache-2.0 */
/* test_group_table.c - groups and aggregates are those of the rows, in whatever order they came.
 *
 * Method: random rows with keys of every type (NULL, both zeros and NaNs included) and all
 * aggregates; the model works each group out from its rows. The same rows are added shuffled, and
 * in parts that travel as encoded partial states and are merged in shuffled order; lines and their
 * order must be the same each time. One table grows to 200,000 groups. Rows that a table is spared
 * must travel as the same bytes as rows that went through one.
 */
#include "unit/test.h"

#include "engine/exec/fold/group_table.h"
#include "engine/data/key_hash.h"
#include "unit/engine/data/key_with_hash.h"
#include "unit/engine/exec/fold/make_grouping.h"
#include "engine/data/batch_codec.h"

static struct group_table *create(const struct made_grouping *made, struct budget *budget)
{
    struct group_table *table;
    struct error err;
    assert_int_equal(group_table_create(&made->grouping, budget, &table, &err), STATUS_OK);
    return table;
}

static void add(struct group_table *table, const struct batch *batch, const uint32_t *rows,
                uint32_t count)
{
    struct error err;
    for (uint32_t done = 0; done < count; done += 2000) {
        uint32_t left = count - done;
        struct selection part = {rows + done, left < 2000 ? left : 2000};
        assert_int_equal(group_table_add(table, batch, part, &err), STATUS_OK);
    }
}

/* The results in the table's order, read in pieces. */
static void read_results(struct group_table *table, struct row_lines *lines)
{
    struct error err;
    assert_int_equal(group_table_need_one(table, &err), STATUS_OK);
    assert_int_equal(group_table_order(table, &err), STATUS_OK);
    uint32_t count = group_table_count(table);
    for (uint32_t first = 0; first < count; first += 50) {
        struct arena arena = {0};
        struct batch batch;
        uint32_t part = count - first < 50 ? count - first : 50;
        assert_int_equal(group_table_read(table, GROUP_RESULT, first, part, &arena, &batch, &err),
                         STATUS_OK);
        row_lines_add(lines, &batch, (struct selection){NULL, part});
        arena_done(&arena);
    }
}

/* Partial states of some rows, as bytes. */
static void add_partial(const struct made_grouping *made, struct group_table *table,
                        const struct batch *batch, const uint32_t *rows, uint32_t count,
                        struct buf *out)
{
    struct arena arena = {0};
    struct batch partial;
    struct batch_builder builder;
    struct error err;
    add(table, batch, rows, count);
    uint32_t group_count = group_table_count(table);
    assert_int_equal(group_table_read(table, GROUP_PARTIAL, 0, group_count, &arena, &partial, &err),
                     STATUS_OK);
    uint64_t *hashes = random_rows_need(arena_array(&arena, uint64_t, group_count + 1));
    static const uint32_t first_columns[] = {0, 1, 2, 3, 4, 5, 6};
    key_hash(&partial, first_columns, made->grouping.key_count,
             (struct selection){NULL, group_count}, hashes);
    for (uint32_t i = 0; i < group_count; i++) {
        assert_true(group_table_hash(table, i) == hashes[i]);
    }
    assert_true(builder_init(&builder, made->grouping.partial, NULL));
    builder_append(&builder, &partial, (struct selection){NULL, group_count});
    assert_false(builder.failed);
    batch_encode(&builder, out);
    assert_false(out->failed);
    builder_done(&builder);
    arena_done(&arena);
    group_table_reset(table);
}

static void merge_parts(const struct made_grouping *made, const struct batch *batch,
                        struct random *random, struct row_lines *lines)
{
    enum { PARTS = 7 };
    struct arena arena = {0};
    struct buf parts[PARTS] = {{0}};
    struct error err;
    struct group_table *map = create(made, NULL);
    struct group_table *fold = create(made, NULL);
    uint32_t *rows = random_rows_shuffle(random, batch->row_count, &arena);
    for (uint32_t i = 0; i < PARTS; i++) {
        uint32_t first = (uint32_t)((uint64_t)batch->row_count * i * i / (PARTS * PARTS));
        uint32_t end = (uint32_t)((uint64_t)batch->row_count * (i + 1) * (i + 1) / (PARTS * PARTS));
        add_partial(made, map, batch, rows + first, end - first, &parts[i]);
    }
    uint32_t *order = random_rows_shuffle(random, PARTS, &arena);
    for (uint32_t i = 0; i < PARTS; i++) {
        struct buf *part = &parts[order[i]];
        struct batch partial;
        assert_int_equal(
            batch_decode(part->bytes, part->size, made->grouping.partial, &arena, &partial, &err),
            STATUS_OK);
        assert_int_equal(group_table_merge(fold, &partial, &err), STATUS_OK);
        buf_done(part);
    }
    read_results(fold, lines);
    group_table_destroy(map);
    group_table_destroy(fold);
    arena_done(&arena);
}

static void check_grouping(struct random *random, uint32_t key_mask, uint32_t row_count,
                           uint32_t domain)
{
    struct arena arena = {0};
    struct budget budget = {0};
    struct random_rows rows = {
        .random = random, .arena = &arena, .domain = domain, .null_percent = 10};
    struct batch batch = grouped_rows(&rows, row_count);
    struct made_grouping made;
    grouped_keys(&made, key_mask);
    grouped_every_aggregate(&made);
    struct row_lines expected = {.arena = &arena};
    struct row_lines direct = {.arena = &arena};
    naive_groups(&made, &batch, &expected);
    struct group_table *table = create(&made, &budget);
    add(table, &batch, random_rows_shuffle(random, row_count, &arena), row_count);
    read_results(table, &direct);
    for (int round = 0; round < 3; round++) {
        struct row_lines again = {.arena = &arena};
        if (round == 0) {
            group_table_reset(table);
            add(table, &batch, random_rows_shuffle(random, row_count, &arena), row_count);
            read_results(table, &again);
        } else {
            merge_parts(&made, &batch, random, &again);
        }
        assert_true(row_lines_equal(&again, &direct));
    }
    row_lines_sort(&expected);
    row_lines_sort(&direct);
    assert_true(row_lines_equal(&direct, &expected));
    group_table_destroy(table);
    assert_int_equal(budget.used_bytes, 0);
    arena_done(&arena);
}

static void every_key_and_aggregate_agrees_with_the_model(void **state)
{
    (void)state;
    struct random random = {1};
    for (uint32_t mask = 0; mask < 128; mask++) {
        check_grouping(&random, mask, random_below(&random, 80), 0);
    }
    for (uint32_t row_count = 0; row_count < 12; row_count++) {
        check_grouping(&random, 0, row_count, 0);
        check_grouping(&random, 1 << 3, row_count, 0);
    }
}

static void large_groups_and_many_groups_agree_with_the_model(void **state)
{
    (void)state;
    struct random random = {2};
    check_grouping(&random, 0, 5000, 50);
    check_grouping(&random, 1 << 0, 5000, 50);
    check_grouping(&random, 1 << 3, 5000, 1000);
    check_grouping(&random, 1 << 4, 5000, 3000);
    check_grouping(&random, 1 << 1 | 1 << 4, 5000, 100);
}

static void a_table_grows_to_many_groups_and_keeps_them_all(void **state)
{
    (void)state;
    enum { GROUPS = 200000, PIECE = 2000 };
    struct arena arena = {0};
    struct budget budget = {0};
    struct made_grouping made;
    grouped_keys(&made, 1 << 1);
    grouped_aggregate(&made, AGGREGATE_COUNT_ROWS, 0, 0);
    grouped_aggregate(&made, AGGREGATE_SUM, GROUPED_INT, 0);
    struct random random = {3};
    struct random_rows rows = {.random = &random, .arena = &arena};
    struct batch batch = grouped_rows(&rows, PIECE);
    batch.columns[1].nulls = NULL;
    batch.columns[GROUPED_INT].nulls = NULL;
    struct group_table *table = create(&made, &budget);
    uint32_t *order = random_rows_shuffle(&random, GROUPS, &arena);
    struct error err;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t first = 0; first < GROUPS; first += PIECE) {
            for (uint32_t i = 0; i < PIECE; i++) {
                uint32_t key = pass == 0 ? first + i : order[first + i];
                batch.columns[1].ints[i] = (int64_t)key * 1000003;
                batch.columns[GROUPED_INT].ints[i] = (int64_t)key + pass;
            }
            assert_int_equal(group_table_add(table, &batch, (struct selection){NULL, PIECE}, &err),
                             STATUS_OK);
        }
        assert_int_equal(group_table_count(table), GROUPS);
    }
    struct batch result;
    assert_int_equal(group_table_order(table, &err), STATUS_OK);
    assert_int_equal(group_table_read(table, GROUP_RESULT, 0, GROUPS, &arena, &result, &err),
                     STATUS_OK);
    bool *seen = random_rows_need(arena_array(&arena, bool, GROUPS));
    for (uint32_t i = 0; i < GROUPS; i++) {
        int64_t key = result.columns[0].ints[i] / 1000003;
        assert_in_range(key, 0, GROUPS - 1);
        assert_false(seen[key]);
        seen[key] = true;
        assert_int_equal(result.columns[1].ints[i], 2);
        assert_int_equal(result.columns[2].ints[i], 2 * key + 1);
    }
    group_table_destroy(table);
    assert_int_equal(budget.used_bytes, 0);
    arena_done(&arena);
}

/* What a map does: rows that the table does not take are lifted. Gives the number of these. */
static uint32_t add_loosely(struct group_table *map, struct group_table *fold,
                            const struct batch *batch, struct selection piece, struct arena *arena)
{
    struct selection rest;
    struct batch lifted;
    struct batch merged;
    struct error err;
    assert_int_equal(group_table_add_loosely(map, batch, piece, arena, &rest, &err), STATUS_OK);
    assert_true(rest.count <= piece.count);
    for (uint32_t i = 0; i < rest.count; i++) {
        uint32_t taken = piece.count - rest.count;
        assert_int_equal(selection_row(rest, i), selection_row(piece, taken + i));
    }
    assert_int_equal(group_table_lift(map, batch, rest, arena, &lifted, &err), STATUS_OK);
    struct batch_builder builder;
    struct schema schema = {.count = lifted.column_count};
    struct field *fields =
        random_rows_need(arena_array(arena, struct field, lifted.column_count + 1));
    for (uint32_t i = 0; i < lifted.column_count; i++) {
        fields[i].type = lifted.columns[i].type;
    }
    schema.fields = fields;
    assert_true(builder_init(&builder, schema, NULL));
    builder_append(&builder, &lifted, rest);
    assert_true(builder_batch(&builder, &merged));
    assert_int_equal(group_table_merge(fold, &merged, &err), STATUS_OK);
    builder_done(&builder);
    return rest.count;
}

/* Rows that hardly share keys, after a start in which they do or don't. */
static void groups_added_loosely_are_the_same_once_merged(void **state)
{
    (void)state;
    enum { ROWS = 3000, PIECE = 500 };
    struct random random = {5};
    for (uint32_t domain = 10, sliced = 0; domain <= 10000000; domain *= 10, sliced ^= 1) {
        struct arena arena = {0};
        struct random_rows rows = {.random = &random, .arena = &arena, .domain = domain};
        struct batch batch = grouped_rows(&rows, ROWS);
        struct made_grouping made;
        /* One key: as many groups as the domain has values; two: its square. */
        grouped_keys(&made, domain <= 1000 ? 1 << 1 : 1 << 1 | 1 << 4);
        grouped_every_aggregate(&made);
        struct row_lines expected = {.arena = &arena};
        struct row_lines merged = {.arena = &arena};
        naive_groups(&made, &batch, &expected);
        struct group_table *map = create(&made, NULL);
        struct group_table *fold = create(&made, NULL);
        uint32_t *order = random_rows_shuffle(&random, ROWS, &arena);
        uint32_t lifted_count = 0;
        for (uint32_t first = 0; first < ROWS; first += PIECE) {
            struct column columns[GROUPED_COLUMNS];
            struct batch slice = batch_slice(&batch, first, PIECE, columns);
            struct selection listed = {order + first, PIECE};
            struct selection all = {NULL, PIECE};
            lifted_count += sliced == 1 ? add_loosely(map, fold, &slice, all, &arena)
                                        : add_loosely(map, fold, &batch, listed, &arena);
        }
        if (domain <= 1000) assert_int_equal(lifted_count, 0);
        if (domain == 10000000) assert_int_equal(lifted_count, ROWS - 512);
        struct batch partial;
        struct error err;
        uint32_t count = group_table_count(map);
        assert_int_equal(group_table_read(map, GROUP_PARTIAL, 0, count, &arena, &partial, &err),
                         STATUS_OK);
        assert_int_equal(group_table_merge(fold, &partial, &err), STATUS_OK);
        read_results(fold, &merged);
        row_lines_sort(&expected);
        row_lines_sort(&merged);
        assert_true(row_lines_equal(&merged, &expected));
        group_table_destroy(map);
        group_table_destroy(fold);
        arena_done(&arena);
    }
}

/* By bytes: a message must not tell which way a row took. */
static void a_lifted_row_is_the_partial_state_of_that_row_alone(void **state)
{
    (void)state;
    enum { ROWS = 300 };
    struct random random = {6};
    struct field fields[GROUPED_COLUMNS];
    for (uint32_t i = 0; i < GROUPED_COLUMNS; i++) {
        fields[i] = random_rows_fields[i % GROUPED_TYPES];
    }
    for (uint32_t round = 0; round < 60; round++) {
        struct arena arena = {0};
        struct random_rows rows = {.random = &random,
                                   .arena = &arena,
                                   .domain = round % 3 == 0 ? 0 : 60,
                                   .null_percent = round % 2 == 0 ? 0 : 20};
        struct batch batch =
            random_rows_batch(&rows, (struct schema){fields, GROUPED_COLUMNS}, ROWS);
        struct made_grouping made;
        grouped_keys(&made, random_below(&random, 128));
        grouped_every_aggregate(&made);
        struct group_table *table = create(&made, NULL);
        uint32_t *order = random_rows_shuffle(&random, ROWS, &arena);
        struct selection chosen = {round % 4 == 0 ? NULL : order, 1 + random_below(&random, ROWS)};
        struct batch_builder builders[2];
        struct buf bytes[2] = {{0}};
        struct batch partial;
        struct error err;
        assert_true(builder_init(&builders[0], made.grouping.partial, NULL));
        assert_true(builder_init(&builders[1], made.grouping.partial, NULL));
        assert_int_equal(group_table_lift(table, &batch, chosen, &arena, &partial, &err),
                         STATUS_OK);
        builder_append(&builders[0], &partial, chosen);
        for (uint32_t i = 0; i < chosen.count; i++) {
            uint32_t row = selection_row(chosen, i);
            add(table, &batch, &row, 1);
            assert_int_equal(group_table_read(table, GROUP_PARTIAL, 0, 1, &arena, &partial, &err),
                             STATUS_OK);
            builder_append(&builders[1], &partial, (struct selection){NULL, 1});
            group_table_reset(table);
        }
        for (uint32_t i = 0; i < 2; i++) {
            batch_encode(&builders[i], &bytes[i]);
            assert_false(builders[i].failed || bytes[i].failed);
            builder_done(&builders[i]);
        }
        assert_int_equal(bytes[0].size, bytes[1].size);
        assert_memory_equal(bytes[0].bytes, bytes[1].bytes, bytes[0].size);
        buf_done(&bytes[0]);
        buf_done(&bytes[1]);
        group_table_destroy(table);
        arena_done(&arena);
    }
}

static void keys_of_one_hash_are_kept_apart_and_in_order(void **state)
{
    (void)state;
    /* The number that a NULL is hashed as, so that it and NULL meet in one slot. */
    static const int64_t duplicate = (int64_t)0x9ae16a3b2f90404fu;
    struct random random = {7};
    struct arena arena = {0};
    struct random_rows rows = {.random = &random, .arena = &arena};
    struct batch batch = grouped_rows(&rows, 4);
    uint64_t hashes[4];
    uint8_t nulls[] = {0, 1, 0, 1};
    struct made_grouping made;
    grouped_keys(&made, 1 << 1);
    grouped_aggregate(&made, AGGREGATE_COUNT_ROWS, 0, 0);
    batch.columns[1].nulls = nulls;
    batch.columns[1].ints[0] = batch.columns[1].ints[2] = duplicate;
    key_hash(&batch, made.keys, 1, (struct selection){NULL, 4}, hashes);
    assert_true(hashes[0] == hashes[1]);
    struct row_lines first = {.arena = &arena};
    for (uint32_t round = 0; round < 20; round++) {
        struct row_lines seen = {.arena = &arena};
        struct group_table *table = create(&made, NULL);
        add(table, &batch, random_rows_shuffle(&random, 4, &arena), 4);
        assert_int_equal(group_table_count(table), 2);
        read_results(table, &seen);
        if (round == 0) first = seen;
        assert_true(row_lines_equal(&seen, &first));
        group_table_destroy(table);
    }
    arena_done(&arena);
}

static void groups_are_ordered_by_whole_hashes(void **state)
{
    (void)state;
    enum { ROWS = 900 };
    struct random random = {8};
    struct arena arena = {0};
    struct random_rows rows = {.random = &random, .arena = &arena};
    struct batch batch = grouped_rows(&rows, ROWS);
    struct made_grouping made;
    struct error err;
    grouped_keys(&made, 1 << 1);
    grouped_aggregate(&made, AGGREGATE_COUNT_ROWS, 0, 0);
    batch.columns[1].nulls = NULL;
    for (uint32_t i = 0; i < ROWS; i++) {
        /* A third has one upper half, a third has pairs of them. */
        uint64_t hash = random_u64(&random);
        if (i % 3 == 0) hash = hash >> 32 | (uint64_t)0x87654321 << 32;
        if (i % 3 == 1) hash = (hash & 0xffffffff) | (uint64_t)(i / 6) << 40;
        batch.columns[1].ints[i] = key_with_hash(hash);
    }
    struct group_table *table = create(&made, NULL);
    add(table, &batch, random_rows_shuffle(&random, ROWS, &arena), ROWS);
    assert_int_equal(group_table_order(table, &err), STATUS_OK);
    assert_int_equal(group_table_count(table), ROWS);
    uint32_t near_count = 0;
    for (uint32_t i = 1; i < ROWS; i++) {
        uint64_t before = group_table_hash(table, i - 1);
        assert_true(before < group_table_hash(table, i));
        near_count += before >> 32 == group_table_hash(table, i) >> 32;
    }
    assert_true(near_count >= ROWS / 3 - 1 + ROWS / 6);
    group_table_destroy(table);
    arena_done(&arena);
}

static void sums_fail_exactly_where_the_result_does_not_fit(void **state)
{
    (void)state;
    static const int64_t limit = 999999999999999999;
    static const struct {
        uint32_t column;
        int64_t values[8];
        bool fits;
    } cases[] = {
        {GROUPED_INT, {INT64_MAX, 1, -1, 0}, true},
        {GROUPED_INT, {INT64_MAX, 1, 0, 0}, false},
        {GROUPED_INT, {INT64_MIN, 0, 0, 0}, true},
        {GROUPED_INT, {INT64_MIN, -1, 0, 0}, false},
        {GROUPED_INT,
         {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX},
         true},
        {GROUPED_INT, {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MIN, INT64_MIN, INT64_MIN, 3}, true},
        {GROUPED_INT, {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}, false},
        {GROUPED_DECIMAL, {limit, 0, 0, 0}, true},
        {GROUPED_DECIMAL, {limit, 1, 0, 0}, false},
        {GROUPED_DECIMAL, {-limit, 0, 0, 0}, true},
        {GROUPED_DECIMAL, {-limit, -1, 0, 0}, false},
        {GROUPED_DECIMAL, {limit, limit, -limit, 0}, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena = {0};
        struct random random = {5};
        struct random_rows rows = {.random = &random, .arena = &arena};
        struct batch batch = grouped_rows(&rows, 8);
        struct batch result;
        struct made_grouping made;
        struct error err;
        int64_t sum = 0;
        grouped_keys(&made, 0);
        grouped_aggregate(&made, AGGREGATE_SUM, cases[i].column, 0);
        batch.columns[cases[i].column].nulls = NULL;
        for (uint32_t j = 0; j < 8; j++) {
            batch.columns[cases[i].column].ints[j] = cases[i].values[j];
            sum = (int64_t)((uint64_t)sum + (uint64_t)cases[i].values[j]);
        }
        struct group_table *table = create(&made, NULL);
        add(table, &batch, (uint32_t[]){0, 1, 2, 3, 4, 5, 6, 7}, 8);
        status code = group_table_read(table, GROUP_RESULT, 0, 1, &arena, &result, &err);
        assert_int_equal(code, cases[i].fits ? STATUS_OK : STATUS_OVERFLOW);
        if (cases[i].fits) assert_true(result.columns[0].ints[0] == sum);
        group_table_destroy(table);
        arena_done(&arena);
    }
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    struct random random = {6};
    struct arena arena = {0};
    struct random_rows rows = {
        .random = &random, .arena = &arena, .domain = 500, .null_percent = 10};
    struct batch batch = grouped_rows(&rows, 1500);
    struct made_grouping made;
    grouped_keys(&made, 1 << 4);
    grouped_every_aggregate(&made);
    bool refused = true;
    for (size_t allowed = 0; refused; allowed++) {
        struct budget budget = {0};
        struct arena read_arena;
        struct group_table *table = NULL;
        struct batch result;
        struct error err;
        arena_init(&read_arena, &budget);
        memory_fail_after(allowed);
        status code = group_table_create(&made.grouping, &budget, &table, &err);
        if (code == STATUS_OK) {
            code = group_table_add(table, &batch, (struct selection){NULL, 1500}, &err);
        }
        if (code == STATUS_OK) code = group_table_order(table, &err);
        for (int form = 0; form < 2 && code == STATUS_OK; form++) {
            code = group_table_read(table, form == 0 ? GROUP_RESULT : GROUP_PARTIAL, 0,
                                    group_table_count(table), &read_arena, &result, &err);
        }
        refused = memory_was_refused();
        memory_fail_never();
        assert_int_equal(code, refused ? STATUS_MEMORY : STATUS_OK);
        group_table_destroy(table);
        arena_done(&read_arena);
        assert_int_equal(budget.used_bytes, 0);
        assert_true(allowed < 2000);
    }
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_and_aggregate_agrees_with_the_model),
        cmocka_unit_test(large_groups_and_many_groups_agree_with_the_model),
        cmocka_unit_test(a_table_grows_to_many_groups_and_keeps_them_all),
        cmocka_unit_test(groups_added_loosely_are_the_same_once_merged),
        cmocka_unit_test(a_lifted_row_is_the_partial_state_of_that_row_alone),
        cmocka_unit_test(keys_of_one_hash_are_kept_apart_and_in_order),
        cmocka_unit_test(groups_are_ordered_by_whole_hashes),
        cmocka_unit_test(sums_fail_exactly_where_the_result_does_not_fit),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
