/* SPDX-License-Identifier: Apache-2.0 */
/* test_verify.c - two answers are told equal when they are, and only then.
 *
 * Method: the same rows, cut into batches of every size, must be equal; then one value, one row or
 * one number of the audit is changed, at the beginning, in the middle and at the end of an answer
 * of several blocks.
 */
#include "unit/test.h"

#include <string.h>

#include "cli/cluster/verify.h"
#include "unit/cli/cluster/answers.h"

enum { FEW_ROWS = 40, MANY_ROWS = 20000 };

static const struct audit balanced = {.balanced = true, .elapsed_seconds = 1};

/* `changed` is a row that says something else; -1: none. */
static void fill(struct verify *verify, uint32_t query, uint32_t row_count, uint32_t batch_rows,
                 int64_t changed)
{
    struct error err;
    for (uint32_t first = 0; first < row_count; first += batch_rows) {
        struct answer_rows rows;
        uint32_t left = row_count - first;
        uint32_t count = left < batch_rows ? left : batch_rows;
        const struct batch *batch = answer_rows_make(&rows, first, count, "some words");
        if (changed >= first && changed < (int64_t)first + count) {
            rows.words[changed - first] = TEXT_LITERAL("some other");
        }
        assert_int_equal(verify_rows(verify, query, batch, &err), STATUS_OK);
    }
}

static void rows_are_equal_however_they_were_cut(void **state)
{
    (void)state;
    for (uint32_t batch_rows = 1; batch_rows <= FEW_ROWS; batch_rows++) {
        struct arena arena = {0};
        struct verify a;
        struct verify b;
        struct error err;
        struct audit other_history = balanced;
        other_history.elapsed_seconds = 2;
        assert_int_equal(verify_open(&a, &answer_plan, &arena, &err), STATUS_OK);
        assert_int_equal(verify_open(&b, &answer_plan, &arena, &err), STATUS_OK);
        for (uint32_t query = 0; query < ANSWER_QUERIES; query++) {
            fill(&a, query, FEW_ROWS, FEW_ROWS, -1);
            fill(&b, ANSWER_QUERIES - 1 - query, FEW_ROWS, batch_rows, -1);
        }
        struct verify_side cluster = {&a, &balanced};
        struct verify_side local = {&b, &other_history};
        assert_int_equal(verify_compare(cluster, local, &err), STATUS_OK);
        verify_close(&a);
        verify_close(&b);
        arena_done(&arena);
    }
}

static void check_difference(uint32_t rows_a, uint32_t rows_b, int64_t changed, const char *text)
{
    struct arena arena = {0};
    struct verify a;
    struct verify b;
    struct error err;
    assert_int_equal(verify_open(&a, &answer_plan, &arena, &err), STATUS_OK);
    assert_int_equal(verify_open(&b, &answer_plan, &arena, &err), STATUS_OK);
    fill(&a, 1, rows_a, 7, changed);
    fill(&b, 1, rows_b, 64, -1);
    struct verify_side cluster = {&a, &balanced};
    struct verify_side local = {&b, &balanced};
    assert_int_equal(verify_compare(cluster, local, &err), STATUS_INTERNAL);
    if (strstr(err.text, text) == NULL) fail_msg("%s", err.text);
    verify_close(&a);
    verify_close(&b);
    arena_done(&arena);
}

static void any_difference_of_rows_is_found(void **state)
{
    (void)state;
    check_difference(MANY_ROWS, MANY_ROWS, 0, "rows of q2 differ");
    check_difference(MANY_ROWS, MANY_ROWS, MANY_ROWS / 2, "rows of q2 differ");
    check_difference(MANY_ROWS, MANY_ROWS, MANY_ROWS - 1, "rows of q2 differ");
    check_difference(MANY_ROWS, MANY_ROWS - 1, -1, "q2 has 20000 rows from the cluster, 19999");
    check_difference(0, 1, -1, "q2 has 0 rows from the cluster, 1");
    /* The header is not part of it, so the change is where the first row's words are. */
    check_difference(1, 1, 0, "at byte 7");
}

static void a_difference_of_the_audit_is_found(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct verify rows;
    struct error err;
    struct audit_table tables[2] = {{.name = TEXT_LITERAL("t"), .record_count = 7},
                                    {.name = TEXT_LITERAL("t"), .record_count = 8}};
    struct audit a = {.balanced = true, .tables = &tables[0], .table_count = 1};
    struct audit b = {.balanced = true, .tables = &tables[1], .table_count = 1};
    assert_int_equal(verify_open(&rows, &answer_plan, &arena, &err), STATUS_OK);
    struct verify_side cluster = {&rows, &a};
    struct verify_side local = {&rows, &b};
    assert_int_equal(verify_compare(cluster, cluster, &err), STATUS_OK);
    assert_int_equal(verify_compare(cluster, local, &err), STATUS_INTERNAL);
    assert_non_null(strstr(err.text, "\"records\":7"));
    assert_non_null(strstr(err.text, "\"records\":8"));
    verify_close(&rows);
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_equal_however_they_were_cut),
        cmocka_unit_test(any_difference_of_rows_is_found),
        cmocka_unit_test(a_difference_of_the_audit_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
