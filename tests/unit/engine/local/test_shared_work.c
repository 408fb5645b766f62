/* SPDX-License-Identifier: Apache-2.0 */
/* test_shared_work.c - whatever queries share, and however a plan says it, each has its own answer.
 *
 * Method: queries that have conditions, keys, joins or sub-queries in common are asked alone, in
 * every pair and many at a time; answers must be the same byte for byte, and so must what the maps
 * of a scan counted, as long as the query has a map of its own. Then queries that the planner
 * simplifies are held against others that mean the same and give it nothing to simplify.
 */
#include "unit/test.h"

#include "unit/engine/local/engine_case.h"

static const char tables_sql[] =
    "CREATE TABLE t (id INT NOT NULL, k INT, m DECIMAL(8,2), f DOUBLE, d DATE, s TIMESTAMP,\n"
    "    b BOOL, t TEXT, l TEXT) FROM 't.csv';\n"
    "CREATE TABLE u (k INT NOT NULL, name TEXT NOT NULL) FROM 'u.csv';\n";

#define YEARS "year(s) BETWEEN 2023 AND 2024"
#define WAR   "list_contains(pluck(l, 'name'), 'War')"
#define MONTH "strftime(s, '%Y-%m')"

static const char *const questions[] = {
    "SELECT k, sum(id) AS x FROM t WHERE " YEARS " GROUP BY k",
    "SELECT k, avg(m) AS x, count(*) AS n FROM t WHERE " YEARS " GROUP BY k ORDER BY k",
    "SELECT k, count(*) AS n FROM t WHERE year(s) <= 2024 AND year(s) >= 2023 GROUP BY k\n"
    "HAVING count(*) > 1",
    "SELECT DISTINCT k FROM t WHERE " YEARS,
    "SELECT " MONTH " AS month, sum(id) AS x FROM t GROUP BY month",
    "SELECT " MONTH " AS month, max(f) AS x, arg_max(t, id) AS y FROM t GROUP BY month\n"
    "HAVING " MONTH " > '2023-02'",
    "SELECT u.name, sum(t.id) AS x FROM t JOIN u ON u.k = t.k WHERE t.id > 3 GROUP BY u.name",
    "SELECT u.name, avg(t.f) AS x FROM t JOIN u ON u.k = t.k WHERE t.id > 3 GROUP BY u.name",
    "SELECT id FROM t WHERE id > (SELECT avg(id) FROM t)",
    "SELECT count(*) AS n, avg(id) AS x FROM t",
    "SELECT id, t FROM t WHERE " YEARS " AND " WAR,
    "SELECT id FROM t WHERE " WAR " AND k = 2 AND year(s) >= 2023",
    "SELECT id FROM t WHERE " YEARS " AND " WAR " AND\n"
    "list_contains(pluck(l, 'name'), 'Comedy')",
    /* What can fail keeps its place, and so does what stands before and behind it. */
    "SELECT id FROM t WHERE " WAR " AND id + 1 > 40 AND k = 2",
    "SELECT id FROM t WHERE b AND CAST(CASE WHEN b THEN '1' ELSE 'x' END AS INT) = 1 AND k = 2",
    "SELECT name, count(*) AS n FROM t, UNNEST(pluck(t.l, 'name')) AS x(name) GROUP BY name",
    "SELECT name, max(id) AS x FROM t, UNNEST(pluck(t.l, 'name')) AS x(name) GROUP BY name\n"
    "ORDER BY name",
    "SELECT k, sum(x) AS y FROM (SELECT k, b, sum(id) AS x FROM t WHERE " YEARS
    " GROUP BY k, b) AS v\n"
    "GROUP BY k",
};

enum { QUESTIONS = sizeof questions / sizeof questions[0] };

/* ---- data ---- */

static void put_row(struct buf *out, uint32_t i)
{
    static const char *const names[] = {"War", "Drama", "War'}, {'name': 'Comedy", "Noir"};
    buf_format(out, "%u,", i);
    if (i % 7 != 3) buf_format(out, "%u", i % 4);
    buf_format(out, ",%u.%02u,", i * 37 % 11, i * 13 % 100);
    if (i % 9 != 4) buf_format(out, "%u.5", i * 7 % 13);
    buf_format(out, ",%04u-%02u-%02u,", 2020 + i % 5, 1 + i * 5 % 12, 1 + i * 11 % 28);
    if (i % 6 != 5) {
        buf_format(out, "%04u-%02u-%02u %02u:%02u:%02u", i % 8 == 0 ? 1 + i % 3 : 2022 + i % 4,
                   1 + i % 12, 1 + i * 3 % 28, i * 5 % 24, i % 60, i * 17 % 60);
        if (i % 3 == 0) buf_format(out, ".%03u", i);
    }
    buf_format(out, ",%s,text %u,", i % 5 == 0 ? "" : i % 2 == 0 ? "true" : "false", i % 6);
    if (i % 5 == 2) {
        buf_put_string(out, "broken [\n");
    } else {
        buf_format(out, "\"[{'name': '%s'}]\"\n", names[i % 4]);
    }
}

static void put_data(struct engine_case *engine)
{
    struct buf rows = {0};
    buf_put_string(&rows, "id,k,m,f,d,s,b,t,l\n");
    for (uint32_t i = 0; i < 300; i++) {
        put_row(&rows, i);
    }
    buf_put_string(&rows, "300,1,1.00,1,9999-12-31,9999-12-31 23:59:59.999999,true,last,[]\n"
                          "301,1,1.00,1,0001-01-01,0001-01-01 00:00:00,true,first,[]\n"
                          "302,1,1.00,1,2024-02-29,2024-02-29 12:00:00,false,leap,[]\n");
    engine_open(engine);
    engine_write_string(engine->analysis, "tables.sql", tables_sql);
    engine_write(engine->data, "t.csv", engine_text(&rows));
    engine_write_string(engine->data, "u.csv", "k,name\n0,zero\n1,one\n2,two\n2,zwei\n5,five\n");
    buf_done(&rows);
}

static void put_query(const struct engine_case *engine, const char *name, const char *sql)
{
    char file[32];
    (void)snprintf(file, sizeof file, "%s.sql", name); /* Names are short. */
    engine_write_string(engine->analysis, file, sql);
}

/* ---- asking ---- */

static void ask(const struct engine_case *engine, const struct text *names, uint32_t count,
                struct engine_result *out)
{
    struct engine_options options = {
        .queries = names, .query_count = count, .chunk_bytes = 4000, .shard_count = 3};
    engine_run(engine, &options, out);
    if (out->code != STATUS_OK) print_message("%s\n", out->err.text);
    assert_int_equal(out->code, STATUS_OK);
    assert_true(out->balanced);
}

static void check_same(const struct buf *expected, const struct buf *found, struct text name)
{
    if (!text_equal(engine_text(expected), engine_text(found))) {
        print_message("query %.*s\nexpected:\n%.*s\nfound:\n%.*s\n", TEXT_ARGS(name),
                      TEXT_ARGS(engine_text(expected)), TEXT_ARGS(engine_text(found)));
        fail();
    }
}

/* What the maps over a scan counted that only this query has. */
static uint32_t own_lines(const struct engine_result *result, struct text name, struct buf *out)
{
    struct text audit = engine_text(&result->audit);
    char prefix[32];
    uint32_t found = 0;
    size_t prefix_size = (size_t)snprintf(prefix, sizeof prefix, "%.*s map ", TEXT_ARGS(name));
    for (uint32_t start = 0; start < audit.size;) {
        const char *line = audit.bytes + start;
        const char *end = memchr(line, '\n', audit.size - start);
        size_t size = end == NULL ? audit.size - start : (size_t)(end - line) + 1;
        start += (uint32_t)size;
        if (size < prefix_size || memcmp(line, prefix, prefix_size) != 0) continue;
        const char *counts = memmem(line, size, ": malformed", strlen(": malformed"));
        if (counts == NULL || memmem(line, size, " scan ", strlen(" scan ")) == NULL) continue;
        buf_put(out, counts, size - (size_t)(counts - line));
        found++;
    }
    return found;
}

static void check_counts(const struct engine_result *alone, const struct engine_result *together,
                         struct text name)
{
    struct buf expected = {0};
    struct buf found = {0};
    uint32_t expected_count = own_lines(alone, name, &expected);
    uint32_t found_count = own_lines(together, name, &found);
    /* Fewer if it shares some. */
    assert_true(found_count <= expected_count);
    if (found_count == expected_count) check_same(&expected, &found, name);
    buf_done(&expected);
    buf_done(&found);
}

static void every_query_has_its_own_answer_in_any_company(void **state)
{
    (void)state;
    struct engine_case engine;
    struct engine_result alone[QUESTIONS];
    struct engine_result together;
    char spelled[QUESTIONS][8];
    struct text names[QUESTIONS];
    put_data(&engine);
    for (uint32_t i = 0; i < QUESTIONS; i++) {
        (void)snprintf(spelled[i], sizeof spelled[i], "q%02u", i); /* Always fits. */
        names[i] = text_of(spelled[i]);
        put_query(&engine, spelled[i], questions[i]);
        ask(&engine, &names[i], 1, &alone[i]);
    }
    for (uint32_t i = 0; i < QUESTIONS; i++) {
        for (uint32_t j = i + 1; j < QUESTIONS; j++) {
            struct text pair[2] = {names[i], names[j]};
            ask(&engine, pair, 2, &together);
            check_same(&alone[i].rows[0], &together.rows[0], names[i]);
            check_same(&alone[j].rows[0], &together.rows[1], names[j]);
            check_counts(&alone[i], &together, names[i]);
            check_counts(&alone[j], &together, names[j]);
            engine_done(&together);
        }
    }
    /* As many as the engine takes at a time. */
    for (uint32_t first = 0; first + ENGINE_QUERY_LIMIT <= QUESTIONS; first++) {
        ask(&engine, names + first, ENGINE_QUERY_LIMIT, &together);
        for (uint32_t i = 0; i < ENGINE_QUERY_LIMIT; i++) {
            check_same(&alone[first + i].rows[0], &together.rows[i], names[first + i]);
            check_counts(&alone[first + i], &together, names[first + i]);
        }
        engine_done(&together);
    }
    for (uint32_t i = 0; i < QUESTIONS; i++) {
        engine_done(&alone[i]);
    }
    engine_close(&engine);
}

static void what_fails_alone_fails_in_any_company(void **state)
{
    (void)state;
    static const char *const companions[] = {"SELECT id FROM t WHERE b",
                                             "SELECT id FROM t WHERE b AND k = 2",
                                             "SELECT k, max(id) AS x FROM t WHERE b GROUP BY k"};
    struct engine_case engine;
    put_data(&engine);
    put_query(&engine, "fails",
              "SELECT id FROM t WHERE CAST(CASE WHEN b THEN '1' ELSE 'x' END AS INT) = 1 AND b");
    for (size_t i = 0; i < sizeof companions / sizeof companions[0]; i++) {
        struct engine_result result;
        struct engine_options options = {0};
        put_query(&engine, "other", companions[i]);
        engine_run(&engine, &options, &result);
        assert_int_equal(result.code, STATUS_INPUT);
        assert_non_null(strstr(result.err.text, "query fails: "));
        engine_done(&result);
    }
    engine_close(&engine);
}

/* ---- what is simplified ---- */

static void check_duplicates(const struct engine_case *engine, const char *simple,
                             const char *plain)
{
    struct engine_result results[2];
    const struct text name = TEXT_LITERAL("q");
    put_query(engine, "q", simple);
    ask(engine, &name, 1, &results[0]);
    put_query(engine, "q", plain);
    ask(engine, &name, 1, &results[1]);
    check_same(&results[1].rows[0], &results[0].rows[0], text_of(simple));
    engine_done(&results[0]);
    engine_done(&results[1]);
}

static void conditions_on_years_keep_their_rows(void **state)
{
    (void)state;
    static const char *const operators[] = {"=", "<>", "<", "<=", ">", ">="};
    static const int years[] = {-1, 0, 1, 2, 2023, 2024, 9998, 9999, 10000};
    struct engine_case engine;
    put_data(&engine);
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        for (size_t j = 0; j < sizeof years / sizeof years[0]; j++) {
            for (int variant = 0; variant < 4; variant++) {
                char simple[128];
                char plain[128];
                const char *column = variant % 2 == 0 ? "s" : "d";
                const char *pattern = variant < 2
                                          ? "SELECT id FROM t WHERE year(%s)%s %s %d"
                                          : "SELECT id FROM t WHERE %4$d %3$s year(%1$s)%2$s";
                (void)snprintf(simple, sizeof simple, pattern, column, "", operators[i], years[j]);
                (void)snprintf(plain, sizeof plain, pattern, column, " + 0", operators[i],
                               years[j]);
                check_duplicates(&engine, simple, plain);
            }
        }
    }
    engine_close(&engine);
}

static void keys_that_are_texts_keep_their_groups(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "strftime(s, '%Y')",
        "strftime(s, '%Y-%m')",
        "strftime(s, '%m-%d')",
        "strftime(s, '%H')",
        "strftime(s, '%d.%m.%Y')",
        "strftime(s, '%d')",
        "strftime(s, '%Y-%j')",
        "strftime(s, '%j')",
        "strftime(s, '%y')",
        "strftime(s, '%y%%%Y')",
        "strftime(s, '%M:%S.%f')",
        "strftime(s, 'x')",
        "strftime(s, '%Y%m%d%H%M%S')",
        "strftime(d, '%Y-%m')",
        "strftime(d, '%m-%d %H')",
        "CAST(k AS TEXT)",
        "CAST(m AS TEXT)",
        "CAST(s AS TEXT)",
        "CAST(d AS TEXT)",
        "CAST(b AS TEXT)",
        "CAST(f AS TEXT)",
    };
    struct engine_case engine;
    put_data(&engine);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        static const char *const patterns[] = {
            "SELECT %s%s AS key, count(*) AS n, max(id) AS x FROM t GROUP BY key ORDER BY key",
            "SELECT DISTINCT %s%s AS key FROM t ORDER BY key",
            "SELECT key, count(*) AS n FROM\n"
            "(SELECT %s%s AS key, k FROM t GROUP BY key, k HAVING max(id) > 50) AS v\n"
            "WHERE key <> '2' GROUP BY key ORDER BY n, key",
        };
        for (size_t j = 0; j < sizeof patterns / sizeof patterns[0]; j++) {
            char simple[256];
            char plain[256];
            (void)snprintf(simple, sizeof simple, patterns[j], keys[i], "");
            (void)snprintf(plain, sizeof plain, patterns[j], keys[i], " || ''");
            check_duplicates(&engine, simple, plain);
        }
    }
    engine_close(&engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_query_has_its_own_answer_in_any_company),
        cmocka_unit_test(what_fails_alone_fails_in_any_company),
        cmocka_unit_test(conditions_on_years_keep_their_rows),
        cmocka_unit_test(keys_that_are_texts_keep_their_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
