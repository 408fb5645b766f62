/* SPDX-License-Identifier: Apache-2.0 */
/* test_join_table.c - a key finds all its rows, in their order, and NULL finds none.
 *
 * Method: random rows of every type that can be a key; each row of another batch looks for its
 * partners, and the model looks at every row. Without keys, every row is a partner.
 * Duplicates are looked for among all rows, for sets of columns with and without the keys.
 */
#include "unit/test.h"

#include <stdio.h>

#include "engine/data/key_hash.h"
#include "engine/exec/fold/join_table.h"
#include "unit/engine/data/random_rows.h"
#include "unit/engine/exec/fold/naive_order.h"

enum { COLUMNS = 7 };

static bool is_partner(const struct batch *probe, const uint32_t *columns, uint32_t row,
                       const struct batch *side, uint32_t other, uint32_t key_count)
{
    for (uint32_t i = 0; i < key_count; i++) {
        const struct column *a = &probe->columns[columns[i]];
        const struct column *b = &side->columns[i];
        if (column_is_null(a, row) || column_is_null(b, other)) return false;
        if (naive_value_order(a, row, b, other) != 0) return false;
    }
    return true;
}

static uint32_t check_probe(const struct join_table *table, const struct batch *probe,
                            const uint32_t *columns)
{
    uint32_t pair_count = 0;
    for (uint32_t row = 0; row < probe->row_count; row++) {
        uint64_t hash;
        key_hash(probe, columns, table->key_count, (struct selection){&row, 1}, &hash);
        uint32_t found = join_table_find(table, hash, probe, columns, row);
        for (uint32_t other = 0; other < table->rows.row_count; other++) {
            if (!is_partner(probe, columns, row, &table->rows, other, table->key_count)) continue;
            assert_int_equal(found, other);
            found = table->next[found];
            pair_count++;
        }
        assert_int_equal(found, ROW_NONE);
    }
    return pair_count;
}

/* The build side's keys are its first columns; the probe has them in the same order, elsewhere. */
static void check_table(struct random *random, const uint32_t *types, uint32_t key_count,
                        uint32_t side_rows, uint32_t domain)
{
    struct arena arena = {0};
    struct field side_fields[COLUMNS + 1];
    struct field probe_fields[COLUMNS + 1];
    uint32_t columns[COLUMNS];
    for (uint32_t i = 0; i < key_count; i++) {
        side_fields[i] = random_rows_fields[types[i]];
        columns[i] = key_count - i;
        probe_fields[columns[i]] = side_fields[i];
    }
    side_fields[key_count] = random_rows_fields[4];
    probe_fields[0] = random_rows_fields[7];
    struct random_rows rows = {
        .random = random, .arena = &arena, .domain = domain, .null_percent = 10};
    struct batch side =
        random_rows_batch(&rows, (struct schema){side_fields, key_count + 1}, side_rows);
    struct batch probe = random_rows_batch(&rows, (struct schema){probe_fields, key_count + 1}, 60);
    struct join_table table;
    struct error err;
    assert_int_equal(join_table_build(&table, side, key_count, &arena, &err), STATUS_OK);
    uint32_t pair_count = check_probe(&table, &probe, columns);
    if (key_count == 0) assert_int_equal(pair_count, 60 * side_rows);
    arena_done(&arena);
}

static void every_key_type_finds_its_rows_in_order(void **state)
{
    (void)state;
    struct random random = {1};
    for (uint32_t type = 0; type < COLUMNS; type++) {
        for (uint32_t side_rows = 0; side_rows < 130; side_rows += 1 + side_rows / 3) {
            check_table(&random, &type, 1, side_rows, 0);
            check_table(&random, &type, 1, side_rows, 60);
        }
    }
}

static void several_keys_must_all_be_equal(void **state)
{
    (void)state;
    struct random random = {2};
    for (uint32_t round = 0; round < 200; round++) {
        uint32_t types[3];
        for (uint32_t i = 0; i < 3; i++) {
            types[i] = random_below(&random, COLUMNS);
        }
        check_table(&random, types, 2 + round % 2, random_below(&random, 400), 0);
    }
}

static void without_keys_every_row_is_a_partner(void **state)
{
    (void)state;
    struct random random = {3};
    for (uint32_t side_rows = 0; side_rows < 50; side_rows++) {
        check_table(&random, NULL, 0, side_rows, 0);
    }
}

static bool are_duplicates(const struct batch *rows, const struct duplicate_set *set, uint32_t a,
                           uint32_t b)
{
    struct sort_key keys[COLUMNS];
    for (uint32_t i = 0; i < set->count; i++) {
        keys[i] = (struct sort_key){.column = set->columns[i]};
    }
    return naive_row_order(rows, a, b, keys, set->count) == 0;
}

static void check_duplicates(const struct join_table *table, const struct duplicate_set *set,
                             const uint32_t *duplicates)
{
    bool any = false;
    for (uint32_t row = 0; row < table->rows.row_count; row++) {
        if (key_has_null(&table->rows, table->key_columns, table->key_count, row)) continue;
        uint32_t first = 0;
        while (!are_duplicates(&table->rows, set, first, row)) {
            first++;
        }
        assert_int_equal(duplicates == NULL ? row : duplicates[row], first);
        any = any || first != row;
    }
    if (any) assert_non_null(duplicates);
}

/* All types but lists; keys that are unique or not. */
static void duplicates_are_the_first_rows_with_the_same_values(void **state)
{
    (void)state;
    enum { SETS = 4 };
    struct random random = {5};
    uint32_t own_count = 0;
    for (uint32_t round = 0; round < 300; round++) {
        struct arena arena = {0};
        struct random_rows rows = {.random = &random,
                                   .arena = &arena,
                                   .domain = round % 3 == 0 ? 100000 : 0,
                                   .null_percent = round % 2 == 0 ? 0 : 10};
        struct field fields[COLUMNS];
        uint32_t columns[SETS][COLUMNS];
        struct duplicate_set sets[SETS];
        for (uint32_t i = 0; i < COLUMNS; i++) {
            fields[i] = random_rows_fields[(i + round) % COLUMNS];
        }
        for (uint32_t i = 0; i < SETS; i++) {
            sets[i] = (struct duplicate_set){.columns = columns[i]};
            uint32_t mask = random_below(&random, 1 << COLUMNS);
            for (uint32_t j = COLUMNS; j-- > 0;) {
                if ((mask >> j & 1) != 0) columns[i][sets[i].count++] = j;
            }
        }
        struct batch side = random_rows_batch(&rows, (struct schema){fields, COLUMNS},
                                              random_below(&random, round % 10 == 0 ? 5000 : 40));
        struct join_table table;
        struct error err;
        assert_int_equal(join_table_build(&table, side, round % 3, &arena, &err), STATUS_OK);
        assert_int_equal(join_table_find_duplicates(&table, sets, SETS, &arena, &err), STATUS_OK);
        for (uint32_t i = 0; i < SETS; i++) {
            check_duplicates(&table, &sets[i], table.duplicates[i]);
            own_count += table.duplicates[i] == NULL;
        }
        arena_done(&arena);
    }
    assert_true(own_count > 50);
}

static void large_tables_find_their_rows(void **state)
{
    (void)state;
    struct random random = {4};
    for (uint32_t type = 1; type < COLUMNS; type++) {
        check_table(&random, &type, 1, 20000, 9000);
    }
}

/* The ends of a narrow range, what lies beside them, and the ends of all numbers. */
static void the_first_and_last_key_of_a_range_are_in_the_bitmap(void **state)
{
    (void)state;
    int64_t keys[] = {-5, 3, 900};
    int64_t asked[] = {-6, -5, -4, 3, 899, 900, 901, INT64_MIN, INT64_MAX};
    bool expected[] = {false, true, false, true, false, true, false, false, false};
    enum { COUNT = sizeof asked / sizeof asked[0] };
    struct arena arena = {0};
    struct error err;
    struct column built = {.type = TYPE(INT), .ints = keys};
    struct column probing = {.type = TYPE(INT), .ints = asked};
    struct batch rows = {.row_count = 3, .column_count = 1, .columns = &built};
    struct batch batch = {.row_count = COUNT, .column_count = 1, .columns = &probing};
    struct join_table table;
    assert_int_equal(join_table_build(&table, rows, 1, &arena, &err), STATUS_OK);
    assert_true(table.filter.is_bitmap);
    static struct join_probe probe;
    uint32_t column = 0;
    join_table_probe(&table, &batch, &column, (struct selection){NULL, COUNT}, &probe);
    uint32_t found = 0;
    for (uint32_t row = 0; row < COUNT; row++) {
        if (!expected[row]) continue;
        assert_true(found < probe.count);
        assert_int_equal(probe.rows[found], row);
        assert_int_equal(keys[probe.found[found]], asked[row]);
        found++;
    }
    assert_int_equal(found, probe.count);
    /* The bitmap alone knows. */
    join_table_filter(&table, &batch, &column, (struct selection){NULL, COUNT}, &probe);
    assert_int_equal(probe.count, found);
    for (uint32_t i = 0; i < found; i++) {
        assert_true(expected[probe.rows[i]]);
    }
    arena_done(&arena);
}

/* Texts, so that the filter is a Bloom filter. Of the first rows so many have a partner; of the
 * others all, or none. */
static void check_filtered(const struct join_table *table, uint32_t row_count, uint32_t partners,
                           bool others_have)
{
    enum { TRIAL = 256, LENGTH = 16 };
    static struct join_probe probe;
    static char bytes[JOIN_PROBE_ROWS][LENGTH];
    static struct text asked[JOIN_PROBE_ROWS];
    uint32_t side_count = table->rows.row_count;
    for (uint32_t row = 0; row < row_count; row++) {
        bool has = row < TRIAL ? row < partners : others_have;
        int size = snprintf(bytes[row], LENGTH, "%s%u", has ? "key" : "none", row % side_count);
        asked[row] = (struct text){bytes[row], (uint32_t)size};
    }
    struct column column = {.type = TYPE(TEXT), .texts = asked};
    struct batch batch = {.row_count = row_count, .column_count = 1, .columns = &column};
    uint32_t key = 0;
    join_table_probe(table, &batch, &key, (struct selection){NULL, row_count}, &probe);
    uint32_t found = 0;
    for (uint32_t row = 0; row < row_count; row++) {
        if (bytes[row][0] != 'k') continue;
        assert_true(found < probe.count);
        assert_int_equal(probe.rows[found], row);
        assert_int_equal(probe.found[found], row % side_count);
        found++;
    }
    assert_int_equal(found, probe.count);
    join_table_filter(table, &batch, &key, (struct selection){NULL, row_count}, &probe);
    assert_true(probe.count <= found + row_count / 20 + 5);
    for (uint32_t row = 0, next = 0; row < row_count; row++) {
        bool passes = next < probe.count && probe.rows[next] == row;
        next += passes;
        assert_true(passes || bytes[row][0] != 'k');
    }
}

static void rows_find_their_partners_whether_they_are_filtered_or_not(void **state)
{
    (void)state;
    enum { SIDE_ROWS = 5000, LENGTH = 16 };
    static char bytes[SIDE_ROWS][LENGTH];
    static struct text keys[SIDE_ROWS];
    for (uint32_t row = 0; row < SIDE_ROWS; row++) {
        int size = snprintf(bytes[row], LENGTH, "key%u", row);
        keys[row] = (struct text){bytes[row], (uint32_t)size};
    }
    struct arena arena = {0};
    struct error err;
    struct column built = {.type = TYPE(TEXT), .texts = keys};
    struct batch rows = {.row_count = SIDE_ROWS, .column_count = 1, .columns = &built};
    struct join_table table;
    assert_int_equal(join_table_build(&table, rows, 1, &arena, &err), STATUS_OK);
    assert_false(table.filter.is_bitmap);
    static const uint32_t row_counts[] = {0, 1, 191, 192, 255, 256, 257, 300, JOIN_PROBE_ROWS};
    for (size_t i = 0; i < sizeof row_counts / sizeof row_counts[0]; i++) {
        for (uint32_t partners = 0; partners <= 256; partners += 8) {
            check_filtered(&table, row_counts[i], partners, false);
            check_filtered(&table, row_counts[i], partners, true);
        }
    }
    arena_done(&arena);
}

/* In pieces of any size the same rows get through: all that have a partner, few others. */
static void a_bloom_filter_lets_partners_through_and_few_others(void **state)
{
    (void)state;
    enum { SIDE_ROWS = 3000, ROWS = 20000 };
    static int64_t keys[SIDE_ROWS];
    static uint8_t key_nulls[SIDE_ROWS];
    static int64_t asked[ROWS];
    static uint8_t nulls[ROWS];
    static bool passed[ROWS];
    static struct join_probe probe;
    struct random random = {5};
    for (uint32_t row = 0; row < SIDE_ROWS; row++) {
        keys[row] = row % 7 == 0 ? (int64_t)row : (int64_t)random_u64(&random);
        key_nulls[row] = row % 11 == 5;
    }
    for (uint32_t row = 0; row < ROWS; row++) {
        asked[row] = row % 4 == 0 ? keys[row / 4 % SIDE_ROWS] : (int64_t)random_u64(&random);
        nulls[row] = row % 13 == 1;
    }
    struct arena arena = {0};
    struct error err;
    struct join_table table;
    struct column built = {.type = TYPE(INT), .ints = keys, .nulls = key_nulls};
    struct batch rows = {.row_count = SIDE_ROWS, .column_count = 1, .columns = &built};
    assert_int_equal(join_table_build_bloom(&table, rows, &arena, &err), STATUS_OK);
    for (uint32_t piece = JOIN_PROBE_ROWS; piece > 0; piece /= 5) {
        uint32_t others = 0;
        for (uint32_t first = 0; first < ROWS; first += piece) {
            uint32_t count = ROWS - first < piece ? ROWS - first : piece;
            struct column column = {
                .type = TYPE(INT), .ints = asked + first, .nulls = nulls + first};
            struct batch batch = {.row_count = count, .column_count = 1, .columns = &column};
            uint32_t key = 0;
            join_table_probe(&table, &batch, &key, (struct selection){NULL, count}, &probe);
            uint32_t next = 0;
            for (uint32_t row = first; row < first + count; row++) {
                bool passes = next < probe.count && probe.rows[next] == row - first;
                next += passes;
                bool has = row % 4 == 0 && !key_nulls[row / 4 % SIDE_ROWS] && !nulls[row];
                assert_true(passes || !has);
                assert_false(passes && nulls[row]);
                others += passes && !has;
                if (piece == JOIN_PROBE_ROWS) passed[row] = passes;
                assert_int_equal(passed[row], passes);
            }
            assert_int_equal(next, probe.count);
        }
        assert_true(others < ROWS / 30);
    }
    rows.row_count = 0;
    assert_int_equal(join_table_build_bloom(&table, rows, &arena, &err), STATUS_OK);
    struct column column = {.type = TYPE(INT), .ints = asked};
    struct batch batch = {.row_count = 100, .column_count = 1, .columns = &column};
    uint32_t key = 0;
    join_table_probe(&table, &batch, &key, (struct selection){NULL, 100}, &probe);
    assert_int_equal(probe.count, 0);
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_and_last_key_of_a_range_are_in_the_bitmap),
        cmocka_unit_test(a_bloom_filter_lets_partners_through_and_few_others),
        cmocka_unit_test(rows_find_their_partners_whether_they_are_filtered_or_not),
        cmocka_unit_test(every_key_type_finds_its_rows_in_order),
        cmocka_unit_test(several_keys_must_all_be_equal),
        cmocka_unit_test(without_keys_every_row_is_a_partner),
        cmocka_unit_test(large_tables_find_their_rows),
        cmocka_unit_test(duplicates_are_the_first_rows_with_the_same_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
