/* SPDX-License-Identifier: Apache-2.0 */
/* test_exactness.c - an answer is a function of the data and the question alone.
 *
 * Method: each seed makes tables of all types, with NULLs, dirty records, quoted line ends and
 * several files, and three random queries. Their answers and audit, made by one thread that reads
 * whole files, must come out byte for byte the same for any number of threads and shards, for
 * chunks from a record to the whole file, for batches applied in a shuffled order, and for a query
 * asked alone. A failure prints its seed and the SQL; SEED=n runs that one.
 */
#include "unit/test.h"

#include "engine/base/random.h"
#include "unit/engine/local/engine_case.h"

/* ThreadSanitizer is several times slower than the others. */
#ifdef __SANITIZE_THREAD__
enum { SEEDS = 8, SEEDS_FULL = 60 };
#else
enum { SEEDS = 40, SEEDS_FULL = 1000 };
#endif

enum { QUERIES = 3, VARIANTS = 4, ROWS_MAX = 70 };

static uint32_t below(struct random *random, uint32_t bound)
{
    return random_below(random, bound);
}

static bool one_in(struct random *random, uint32_t count)
{
    return below(random, count) == 0;
}

#define PICK(random, list) (list)[below((random), (uint32_t)(sizeof(list) / sizeof(list)[0]))]

/* ---- data ---- */

static const char tables_sql[] =
    "CREATE TABLE a (id INT NOT NULL, k INT, t TEXT, m DECIMAL(8,2), f DOUBLE, d DATE,\n"
    "    s TIMESTAMP, b BOOL, l TEXT) FROM 'a*.csv';\n"
    "CREATE TABLE b (id INT NOT NULL, k INT, t TEXT NOT NULL, v INT) FROM 'b*.csv';\n";

static void put_texts(struct random *random, struct buf *out)
{
    static const char *const texts[] = {
        "x", "y",     "\"two\nlines\"", "\"a,\"\"b\"\"\"",      "abc",      "ABC", "\"\r\n\n\"",
        " ", "ñandú", "0123456789",     "\"quoted but plain\"", "\"\"\"\"",
    };
    if (!one_in(random, 6)) buf_put_string(out, PICK(random, texts));
}

static void put_number(struct random *random, struct buf *out)
{
    static const char *const numbers[] = {"1e16", "-1e16",  "0.1",    "0.2", "-0.0",
                                          "3",    "1e-300", "2.5e10", "nan", "1e100"};
    if (!one_in(random, 6)) buf_put_string(out, PICK(random, numbers));
}

static void put_list(struct random *random, struct buf *out)
{
    static const char *const names[] = {"Drama", "Comedy", "War", "x"};
    if (one_in(random, 8)) return;
    if (one_in(random, 10)) {
        buf_put_string(out, "broken [");
        return;
    }
    buf_put_string(out, "\"[");
    for (uint32_t left = below(random, 4); left > 0; left--) {
        buf_format(out, "{'id': %u, 'name': '%s'}%s", below(random, 9), PICK(random, names),
                   left > 1 ? ", " : "");
    }
    buf_put_string(out, "]\"");
}

static void put_a(struct random *random, struct buf *out)
{
    if (!one_in(random, 12)) buf_format(out, "%u", below(random, 30));
    buf_put_string(out, ",");
    if (!one_in(random, 6)) buf_format(out, one_in(random, 5) ? "%u.0" : "%u", below(random, 6));
    buf_put_string(out, ",");
    put_texts(random, out);
    buf_put_string(out, ",");
    if (!one_in(random, 6))
        buf_format(out, "%d.%02u", (int)below(random, 9) - 4, below(random, 100));
    buf_put_string(out, ",");
    put_number(random, out);
    buf_put_string(out, ",");
    if (!one_in(random, 6))
        buf_format(out, "202%u-%02u-01", below(random, 3), 1 + below(random, 13));
    buf_put_string(out, ",");
    if (!one_in(random, 6))
        buf_format(out, "2024-01-0%u %02u:00:00", 1 + below(random, 3), below(random, 25));
    buf_put_string(out, ",");
    if (!one_in(random, 6)) buf_put_string(out, one_in(random, 2) ? "true" : "false");
    buf_put_string(out, ",");
    put_list(random, out);
    if (one_in(random, 15)) buf_put_string(out, ",too many");
}

static void put_b(struct random *random, struct buf *out)
{
    if (!one_in(random, 12)) buf_format(out, "%u", below(random, 30));
    buf_put_string(out, ",");
    if (!one_in(random, 6)) buf_format(out, "%u", below(random, 6));
    buf_put_string(out, ",");
    put_texts(random, out);
    buf_put_string(out, ",");
    if (!one_in(random, 6)) buf_format(out, "%d", (int)below(random, 200) - 100);
}

static void write_table(const struct engine_case *engine, struct random *random, char table)
{
    uint32_t file_count = 1 + below(random, 3);
    uint32_t most = one_in(random, 4) ? 3 : ROWS_MAX;
    for (uint32_t file = 0; file < file_count; file++) {
        char name[16];
        struct buf text = {0};
        const char *line_end = one_in(random, 3) ? "\r\n" : "\n";
        buf_put_string(&text, table == 'a' ? "id,k,t,m,f,d,s,b,l" : "id,k,t,v");
        for (uint32_t left = below(random, most + 1); left > 0; left--) {
            buf_put_string(&text, line_end);
            table == 'a' ? put_a(random, &text) : put_b(random, &text);
        }
        if (!one_in(random, 3)) buf_put_string(&text, line_end);
        (void)snprintf(name, sizeof name, "%c%u.csv", table, file);
        engine_write(engine->data, name, engine_text(&text));
        buf_done(&text);
    }
}

/* ---- questions ---- */

static const char *const values[] = {
    "a.id",
    "a.k",
    "a.t",
    "a.m",
    "a.f",
    "a.d",
    "a.s",
    "a.b",
    "a.k * 2 - a.id",
    "a.m * 3",
    "a.k / a.id",
    "upper(a.t)",
    "year(a.d)",
    "a.t || '!'",
    "CASE WHEN a.b THEN a.k ELSE a.id END",
    "COALESCE(a.k, -1)",
    "a.k % 3",
    "length(a.t)",
    "strftime(a.s, '%H')",
    "len(pluck(a.l, 'name'))",
};
static const char *const conditions[] = {
    "a.k > 2",
    "a.t IS NOT NULL",
    "a.b",
    "a.k IN (1, 3, NULL)",
    "a.t LIKE '%a%'",
    "a.m BETWEEN -2 AND 3.5",
    "a.d >= '2021-01-01'",
    "NOT a.b OR a.k = 1",
    "list_contains(pluck(a.l, 'name'), 'War')",
    "regexp_matches(a.t, '[a-m]+', 'i')",
    "a.f < 1",
    "a.id <> 7",
    "hour(a.s) < 12",
};
static const char *const aggregates[] = {
    "count(*)",          "count(a.k)",      "sum(a.k)", "sum(a.m)",          "sum(a.f)",
    "avg(a.k)",          "avg(a.m)",        "avg(a.f)", "min(a.t)",          "max(a.d)",
    "min(a.f)",          "max(a.m)",        "min(a.b)", "arg_min(a.t, a.k)", "arg_max(a.id, a.f)",
    "arg_max(a.m, a.t)", "sum(a.k * a.id)", "max(a.s)", "arg_min(a.s, a.m)", "sum(length(a.t))",
};
static const char *const keys[] = {
    "a.k", "a.t", "a.b", "a.d", "a.m", "a.f", "a.k % 2", "lower(a.t)", "month(a.s)", "a.id",
};
static const char *const directions[] = {"", " DESC", " NULLS FIRST", " DESC NULLS FIRST"};

static void put_where(struct random *random, struct buf *sql)
{
    for (uint32_t i = 0, count = below(random, 3); i < count; i++) {
        buf_format(sql, "%s(%s)", i == 0 ? " WHERE " : " AND ", PICK(random, conditions));
    }
}

/* `count` values with the names c1, c2, ... */
static uint32_t put_values(struct random *random, struct buf *sql)
{
    uint32_t count = 1 + below(random, 4);
    for (uint32_t i = 1; i <= count; i++) {
        buf_format(sql, "%s%s AS c%u", i == 1 ? "" : ", ", PICK(random, values), i);
    }
    return count;
}

static void put_order(struct random *random, struct buf *sql, uint32_t columns)
{
    if (!one_in(random, 3)) {
        buf_format(sql, " ORDER BY c%u%s", 1 + below(random, columns), PICK(random, directions));
        if (one_in(random, 2))
            buf_format(sql, ", %u%s", 1 + below(random, columns), PICK(random, directions));
    }
    if (one_in(random, 2)) buf_format(sql, " LIMIT %u", below(random, 12));
    if (one_in(random, 4)) buf_format(sql, " OFFSET %u", below(random, 9));
}

static void put_grouping(struct random *random, struct buf *sql, const char *from)
{
    uint32_t key_count = below(random, 3);
    uint32_t columns = key_count + 1 + below(random, 3);
    buf_put_string(sql, "SELECT ");
    for (uint32_t i = 1; i <= columns; i++) {
        buf_format(sql, "%s%s AS c%u", i == 1 ? "" : ", ",
                   i <= key_count ? PICK(random, keys) : PICK(random, aggregates), i);
    }
    buf_format(sql, " FROM %s", from);
    put_where(random, sql);
    for (uint32_t i = 1; i <= key_count; i++) {
        buf_format(sql, "%s%u", i == 1 ? " GROUP BY " : ", ", i);
    }
    if (one_in(random, 4)) buf_format(sql, " HAVING count(*) > %u", below(random, 3));
    if (key_count > 0 && one_in(random, 4)) {
        buf_format(sql, " QUALIFY row_number() OVER (PARTITION BY c1 ORDER BY c%u DESC) <= %u",
                   columns, 1 + below(random, 2));
    }
    put_order(random, sql, columns);
}

static void put_rows(struct random *random, struct buf *sql, const char *from, bool distinct)
{
    buf_put_string(sql, distinct ? "SELECT DISTINCT " : "SELECT ");
    uint32_t columns = put_values(random, sql);
    buf_format(sql, " FROM %s", from);
    put_where(random, sql);
    if (!distinct && one_in(random, 5)) {
        buf_format(sql, " QUALIFY row_number() OVER (PARTITION BY a.k ORDER BY c1%s) <= %u",
                   PICK(random, directions), 1 + below(random, 3));
    }
    put_order(random, sql, columns);
}

static const char *const sources[] = {
    "a",
    "a",
    "a JOIN b ON a.k = b.k",
    "a JOIN b ON a.t = b.t AND a.k = b.k",
    "b JOIN a ON b.id = a.id AND b.v > a.k",
    "a LEFT JOIN b ON a.k = b.k AND b.v > 0",
    "a LEFT JOIN b ON a.id = b.id AND a.t = b.t",
    "b LEFT JOIN a ON a.id = b.id",
    "a, UNNEST(pluck(a.l, 'name')) AS g(name)",
    "a JOIN (SELECT k, count(*) AS n, max(v) AS v FROM b GROUP BY k) AS g ON g.k = a.k",
    "a LEFT JOIN (SELECT DISTINCT t FROM b) AS g ON g.t = a.t",
    "(SELECT * FROM a ORDER BY f, id LIMIT 20) AS a",
    "(SELECT * FROM a UNION ALL SELECT * FROM a WHERE a.b) AS a",
    "a JOIN a o ON o.id = a.id JOIN b ON b.k = o.k",
    "a CROSS JOIN (SELECT max(v) AS v FROM b) AS g",
};

static void put_query(struct random *random, struct buf *sql)
{
    const char *source = PICK(random, sources);
    switch (below(random, 8)) {
    case 0:
    case 1:
        put_grouping(random, sql, source);
        break;
    case 2:
        put_rows(random, sql, source, true);
        break;
    case 3:
        buf_put_string(sql, "SELECT a.id, a.k - (SELECT max(k) FROM b) AS x FROM a "
                            "WHERE a.id > (SELECT avg(v) FROM b)");
        break;
    case 4:
        buf_put_string(
            sql, "(SELECT 1 AS n, a.id, a.t FROM a ORDER BY a.m DESC, a.id LIMIT 5) UNION ALL "
                 "SELECT 2, b.id, b.t FROM b UNION ALL SELECT 3, count(*), min(t) FROM a");
        if (one_in(random, 2)) buf_put_string(sql, " ORDER BY 3, 1 LIMIT 30");
        break;
    case 5:
        buf_format(sql,
                   "WITH g AS (SELECT k, t, sum(m) AS m, count(*) AS n FROM a GROUP BY k, t) "
                   "SELECT x.k, x.t, y.n, x.m, (SELECT max(n) FROM g) AS most "
                   "FROM g x LEFT JOIN g y ON x.k = y.k AND y.n > %u",
                   below(random, 3));
        break;
    default:
        put_rows(random, sql, source, false);
        break;
    }
    buf_put_string(sql, "\n");
}

/* ---- comparing ---- */

static uint32_t chunk_size(struct random *random)
{
    switch (below(random, 4)) {
    case 0:
        return 1;
    case 1:
        return 2 + below(random, 60);
    case 2:
        return 64 + below(random, 1000);
    default:
        return 1 << 20;
    }
}

static bool texts_agree(const char *what, const struct buf *expected, const struct buf *found)
{
    if (text_equal(engine_text(expected), engine_text(found))) return true;
    print_message("%s\n--- expected\n%.*s--- found\n%.*s", what, (int)expected->size,
                  (const char *)expected->bytes, (int)found->size, (const char *)found->bytes);
    return false;
}

static bool results_agree(const struct engine_result *expected, const struct engine_result *found)
{
    bool agree = true;
    if (found->code != STATUS_OK) print_message("%s\n", found->err.text);
    if (found->code != STATUS_OK) return false;
    for (uint32_t i = 0; i < expected->query_count; i++) {
        agree = agree && texts_agree("rows", &expected->rows[i], &found->rows[i]);
    }
    return agree && texts_agree("audit", &expected->audit, &found->audit);
}

static bool variant_agrees(const struct engine_case *engine, struct random *random, uint32_t number,
                           const struct engine_result *expected)
{
    static const uint32_t threads[] = {1, 2, 3, 8};
    static const uint32_t shards[] = {1, 2, 5, 16};
    struct engine_options options = {
        .threads = threads[number % 4],
        .shard_count = shards[below(random, 4)],
        .chunk_bytes = chunk_size(random),
        .shuffle_seed = one_in(random, 3) ? 0 : random_u64(random),
    };
    struct engine_result found;
    engine_run(engine, &options, &found);
    bool agree = results_agree(expected, &found);
    if (!agree) {
        print_message("with %u threads, %u shards, chunks of %u bytes, shuffled by %llu\n",
                      options.threads, options.shard_count, options.chunk_bytes,
                      (unsigned long long)options.shuffle_seed);
    }
    engine_done(&found);
    return agree;
}

/* Joins whose sides are not copied give the same rows, in the same order; with a limit that is not
 * quite as small, those that find no partner are sifted. */
static bool sharded_agrees(const struct engine_case *engine, const struct engine_result *expected,
                           uint64_t broadcast_limit)
{
    struct engine_options options = {
        .threads = 2, .chunk_bytes = 150, .broadcast_limit = broadcast_limit};
    struct engine_result found;
    engine_run(engine, &options, &found);
    bool agree = found.code == STATUS_OK && found.balanced;
    for (uint32_t i = 0; i < expected->query_count && agree; i++) {
        agree = texts_agree("rows of joins by shards", &expected->rows[i], &found.rows[i]);
    }
    engine_done(&found);
    return agree;
}

static bool alone_agrees(const struct engine_case *engine, const struct engine_result *expected)
{
    const struct text name = TEXT_LITERAL("q2");
    struct engine_options options = {
        .threads = 2, .chunk_bytes = 100, .queries = &name, .query_count = 1};
    struct engine_result found;
    engine_run(engine, &options, &found);
    bool agree =
        found.code == STATUS_OK && texts_agree("q2 alone", &expected->rows[1], &found.rows[0]);
    engine_done(&found);
    return agree;
}

static void check_seed(uint64_t seed)
{
    struct random random = {seed * 1000003};
    struct engine_case engine;
    struct engine_result expected;
    struct buf sql[QUERIES] = {{0}};
    engine_open(&engine);
    engine_write_string(engine.analysis, "tables.sql", tables_sql);
    write_table(&engine, &random, 'a');
    write_table(&engine, &random, 'b');
    for (uint32_t i = 0; i < QUERIES; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "q%u.sql", i + 1);
        put_query(&random, &sql[i]);
        engine_write(engine.analysis, name, engine_text(&sql[i]));
    }
    struct engine_options plain = {.threads = 1, .chunk_bytes = 1 << 20, .shard_count = 1};
    engine_run(&engine, &plain, &expected);
    bool agree = expected.code == STATUS_OK && expected.balanced;
    if (!agree) print_message("%s\n", expected.err.text);
    for (uint32_t i = 0; i < VARIANTS && agree; i++) {
        agree = variant_agrees(&engine, &random, (uint32_t)seed + i, &expected);
    }
    agree = agree && alone_agrees(&engine, &expected);
    for (uint64_t limit = 1; limit <= 1024; limit *= 4) {
        agree = agree && sharded_agrees(&engine, &expected, limit);
    }
    if (!agree) {
        print_message("SEED=%llu\n", (unsigned long long)seed);
        for (uint32_t i = 0; i < QUERIES; i++) {
            print_message("q%u: %.*s", i + 1, (int)sql[i].size, (const char *)sql[i].bytes);
        }
    }
    for (uint32_t i = 0; i < QUERIES; i++) {
        buf_done(&sql[i]);
    }
    engine_done(&expected);
    engine_close(&engine);
    assert_true(agree);
}

static void answers_and_audit_do_not_depend_on_threads_chunks_shards_or_order(void **state)
{
    (void)state;
    const char *one = getenv("SEED");
    const char *full = getenv("TEST_FULL");
    uint64_t count = full != NULL && strcmp(full, "1") == 0 ? SEEDS_FULL : SEEDS;
    if (one != NULL) {
        check_seed(strtoull(one, NULL, 10));
        return;
    }
    for (uint64_t seed = 1; seed <= count; seed++) {
        check_seed(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_and_audit_do_not_depend_on_threads_chunks_shards_or_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
