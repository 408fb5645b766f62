/* SPDX-License-Identifier: Apache-2.0 */
/* test_csv_narrow.c - with fewer columns, what is left is the same.
 *
 * Method: every short string of the bytes that matter, and large random tables with records that
 * are none, lose every set of columns; what can be seen of the others must not change, and what
 * would change it must be refused (csv_narrow_check.h).
 */
#include "unit/test.h"

#include "unit/engine/data/csv_narrow_check.h"
#include "unit/engine/data/csv_random.h"

enum {
    EXHAUSTIVE_SIZE = 7,
    TABLE_BYTES = 1 << 14,
};

/* Of how many it was possible. */
static uint64_t check_every_set(struct csv_index *before, struct csv_index *after,
                                struct csv_input input)
{
    uint64_t count = 0;
    for (uint32_t bits = 0; bits < 1u << input.column_count; bits++) {
        count += check_narrow(before, after, input, bits);
    }
    return count;
}

static void every_short_string_stays_what_it_is(void **state)
{
    (void)state;
    struct csv_index before = {0};
    struct csv_index after = {0};
    uint64_t count = 0;
    for (size_t size = 1; size <= EXHAUSTIVE_SIZE; size++) {
        char *string = memory_alloc(NULL, size); /* Ends where its memory ends. */
        assert_non_null(string);
        unsigned digits[EXHAUSTIVE_SIZE] = {0};
        memset(string, alphabet[0], size);
        do {
            for (uint32_t columns = 1; columns <= 3; columns++) {
                count +=
                    check_every_set(&before, &after, (struct csv_input){string, size, columns});
            }
        } while (string_next(digits, string, size));
        memory_free(NULL, string, size);
    }
    assert_true(count > 1000);
    csv_index_done(&before);
    csv_index_done(&after);
}

static void large_tables_stay_what_they_are(void **state)
{
    (void)state;
    struct csv_index before = {0};
    struct csv_index after = {0};
    struct random random = {.state = 5};
    static char bytes[TABLE_BYTES];
    uint64_t count = 0;
    uint64_t mixed_count = 0;
    for (int round = 0; round < 300; round++) {
        uint32_t columns = 2 + random_below(&random, 4);
        size_t size =
            fill_records(&random, bytes, 500 + random_below(&random, TABLE_BYTES - 500), columns);
        char *exact = memory_alloc(NULL, size);
        assert_non_null(exact);
        memcpy(exact, bytes, size);
        uint64_t possible =
            check_every_set(&before, &after, (struct csv_input){exact, size, columns});
        count += possible;
        if (before.left_out_count > 0) mixed_count += possible;
        memory_free(NULL, exact, size);
    }
    assert_true(count > 300);
    assert_true(mixed_count > 100);
    csv_index_done(&before);
    csv_index_done(&after);
}

/* The list may name a column twice, and names them by the table's order, not the file's. */
static void a_list_becomes_one_of_narrow_columns(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err;
    struct csv_narrow narrow;
    uint32_t list[] = {6, 1, 2, 6, 4};
    assert_int_equal(csv_narrow_init(&narrow, 8, list, 5, &arena, &err), STATUS_OK);
    const uint32_t places[] = {3, 0, 1, 3, 2};
    assert_memory_equal(list, places, sizeof places);
    assert_int_equal(narrow.kept_count, 4);
    assert_int_equal(narrow.span_count, 3);
    assert_int_equal(narrow.spans[0].first, 1);
    assert_int_equal(narrow.spans[0].last, 2);
    assert_int_equal(narrow.spans[2].first, 6);
    arena_done(&arena);
}

static void records_are_appended(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err;
    struct csv_narrow narrow;
    struct csv_index index = {0};
    struct buf out = {0};
    uint32_t list[] = {0, 2};
    static const char records[] = "1,two,3\n"
                                  "\n"
                                  "4,\"five, or so\",\"6\n\"\n"
                                  "seven,8\n"
                                  "9,10,11\n";
    struct csv_input input = {records, sizeof records - 1, 3};
    assert_int_equal(csv_narrow_init(&narrow, 3, list, 2, &arena, &err), STATUS_OK);
    assert_int_equal(csv_index_build(&index, input, &err), STATUS_OK);
    buf_put_string(&out, "before;");
    assert_true(csv_narrow_append(&narrow, &index, input, &out));
    static const char expected[] = "before;"
                                   "1,3\n"
                                   ",,\n"
                                   "4,\"6\n\"\n"
                                   ",,seven,8\n"
                                   "9,11\n";
    assert_int_equal(out.size, sizeof expected - 1);
    assert_memory_equal(out.bytes, expected, out.size);
    buf_done(&out);
    csv_index_done(&index);
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_short_string_stays_what_it_is),
        cmocka_unit_test(large_tables_stay_what_they_are),
        cmocka_unit_test(a_list_becomes_one_of_narrow_columns),
        cmocka_unit_test(records_are_appended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
