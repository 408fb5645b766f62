/* SPDX-License-Identifier: Apache-2.0 */
/* test_wrong_guess.c - a chunk that was begun in the wrong place leaves no trace.
 *
 * Method: texts within quotes that look like records, and better ones than the records do: every
 * chunk that begins in one is begun wrongly when nobody knows better. What such records would do
 * to answers, audit and errors must not be seen, with any number of threads and size of chunks. */
#include "unit/test.h"

#include "unit/engine/local/engine_case.h"

enum { RECORDS = 60, LINES = 40 };

static const char tables_sql[] =
    "CREATE TABLE t (id INT NOT NULL, note TEXT, amount TEXT) FROM 't.csv';\n";
/* Each of its own kind: groups, rows, the best. The cast fails for what is not a number. */
static const char *const queries[] = {
    "SELECT id % 7 AS k, count(*) AS n, sum(CAST(amount AS INT)) AS s FROM t GROUP BY k;",
    "SELECT id, length(note) AS l, amount FROM t WHERE id > 3;",
    "SELECT id, CAST(amount AS INT) AS a FROM t ORDER BY a DESC, id LIMIT 5;",
};

static void write_files(const struct engine_case *engine, const char *decoy)
{
    struct buf csv = {0};
    buf_put_string(&csv, "id,note,amount\n");
    for (int i = 0; i < RECORDS; i++) {
        buf_format(&csv, "%d,\"from here\n", i);
        for (int line = 0; line < LINES; line++) {
            buf_format(&csv, decoy, line);
        }
        buf_format(&csv, "to here\",%d\n", i * i % 11);
        if (i % 9 == 0) buf_put_string(&csv, "bad,,1\n");
    }
    assert_false(csv.failed);
    engine_write(engine->data, "t.csv", (struct text){(const char *)csv.bytes, (uint32_t)csv.size});
    buf_done(&csv);
    engine_write_string(engine->analysis, "tables.sql", tables_sql);
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        char name[16];
        snprintf(name, sizeof name, "q%zu.sql", i + 1);
        engine_write_string(engine->analysis, name, queries[i]);
    }
}

static void check_same(const struct buf *expected, const struct buf *found)
{
    assert_int_equal(found->size, expected->size);
    assert_memory_equal(found->bytes, expected->bytes, expected->size);
}

static void check_decoy(const char *decoy)
{
    struct engine_case engine;
    struct engine_result expected;
    engine_open(&engine);
    write_files(&engine, decoy);
    engine_run(&engine, &(struct engine_options){.chunk_bytes = 1 << 20}, &expected);
    if (expected.code != STATUS_OK) fail_msg("%s", expected.err.text);
    static const uint32_t sizes[] = {50, 333, 1000, 4000};
    for (uint32_t threads = 2; threads <= 4; threads++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            struct engine_options options = {.threads = threads, .chunk_bytes = sizes[i]};
            struct engine_result found;
            engine_run(&engine, &options, &found);
            if (found.code != STATUS_OK) fail_msg("%s", found.err.text);
            check_same(&expected.audit, &found.audit);
            for (uint32_t query = 0; query < expected.query_count; query++) {
                check_same(&expected.rows[query], &found.rows[query]);
            }
            engine_done(&found);
        }
    }
    engine_done(&expected);
    engine_close(&engine);
}

static void records_within_quotes_are_none(void **state)
{
    (void)state;
    check_decoy("%d,looks well,5\n");
}

static void an_error_in_what_is_no_record_is_none(void **state)
{
    (void)state;
    check_decoy("%d,looks well,not a number\n");
}

static void a_quote_that_opens_in_what_is_no_record_does_not(void **state)
{
    (void)state;
    check_decoy("%d,looks well, \"\"never closed\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_within_quotes_are_none),
        cmocka_unit_test(an_error_in_what_is_no_record_is_none),
        cmocka_unit_test(a_quote_that_opens_in_what_is_no_record_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
