/* SPDX-License-Identifier: Apache-2.0 */
/* test_memory_use.c - memory is that of the answer, not of the way to it.
 *
 * Goal: orders of rows that make every row better than the last, and values that need wide sums,
 * must not be kept. Method: each query runs under a memory limit that is a fraction of what keeping
 * everything would take, and answers.
 */
#include "unit/test.h"

#include "unit/engine/local/engine_case.h"

enum { ROWS = 60000 };

static void data_write(const struct engine_case *engine)
{
    struct buf csv = {0};
    buf_put_string(&csv, "id,k,t,v\n");
    for (uint32_t i = 0; i < ROWS; i++) {
        buf_format(&csv, "%u,%u,some text that rises with its number %08u,%u.5e300\n", i, i % 500,
                   i, i % 7);
    }
    assert_false(csv.failed);
    engine_write(engine->data, "t.csv", engine_text(&csv));
    buf_done(&csv);
    engine_write_string(engine->analysis, "tables.sql",
                        "CREATE TABLE t (id INT NOT NULL, k INT NOT NULL, t TEXT NOT NULL, "
                        "v DOUBLE NOT NULL) FROM 't.csv';");
}

static void answers_within(const char *sql, uint64_t memory_limit)
{
    struct engine_case engine;
    struct engine_result result;
    engine_open(&engine);
    data_write(&engine);
    engine_write_string(engine.analysis, "q.sql", sql);
    struct engine_options options = {
        .threads = 1, .chunk_bytes = 16 << 10, .memory_limit = memory_limit};
    engine_run(&engine, &options, &result);
    if (result.code != STATUS_OK) print_message("%s: %s\n", sql, result.err.text);
    assert_int_equal(result.code, STATUS_OK);
    engine_done(&result);
    engine_close(&engine);
}

static void the_best_rows_are_kept_and_no_others(void **state)
{
    (void)state;
    answers_within("SELECT id, t FROM t ORDER BY id DESC LIMIT 1000", 3 << 20);
    answers_within(
        "SELECT id, t FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY id DESC) "
        "<= 1",
        4 << 20);
}

static void a_text_that_keeps_rising_is_kept_once(void **state)
{
    (void)state;
    answers_within("SELECT k, max(t), arg_max(t, id) FROM t GROUP BY k", 3 << 20);
}

static void sums_too_wide_for_a_window_are_kept_once_per_group(void **state)
{
    (void)state;
    answers_within("SELECT k, sum(v) FROM t GROUP BY k", 5 << 20);
}

static void rows_beyond_a_limit_are_forgotten(void **state)
{
    (void)state;
    answers_within("SELECT id, t FROM t LIMIT 0", 2 << 20);
    answers_within("SELECT id, t FROM t LIMIT 5 OFFSET 20", 2 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_rows_are_kept_and_no_others),
        cmocka_unit_test(a_text_that_keeps_rising_is_kept_once),
        cmocka_unit_test(sums_too_wide_for_a_window_are_kept_once_per_group),
        cmocka_unit_test(rows_beyond_a_limit_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
