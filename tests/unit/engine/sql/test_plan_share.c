/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan_share.c - which folds are one, which are not, and how keys and years are simplified.
 *
 * Method: two queries are planned together, and the folds and pipelines over tables of the whole
 * plan are counted, as against those of the two planned alone. What became of expressions is looked
 * up in EXPLAIN's text. Every allocation is made to fail once. That answers stay what they are is
 * the business of unit/engine/local/test_shared_work.c.
 */
#include "unit/test.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/memory.h"
#include "engine/sql/compile.h"
#include "engine/sql/explain.h"

#define TABLES                                                                                     \
    "CREATE TABLE sales (id INT NOT NULL, store INT, amount INT, price DOUBLE, at TIMESTAMP,\n"    \
    "    day DATE, note TEXT) FROM 'sales.csv';\n"                                                 \
    "CREATE TABLE stores (store INT NOT NULL, name TEXT NOT NULL, town TEXT) FROM 'stores.csv';\n"

struct counts {
    uint32_t folds;
    uint32_t scan_pipelines;
};

static void plan_two(const char *first, const char *second, struct arena *arena,
                     struct plan **out_plan)
{
    const struct compile_query queries[] = {
        {TEXT_LITERAL("a"), text_of(first)},
        {TEXT_LITERAL("b"), second == NULL ? (struct text){0} : text_of(second)}};
    struct compile_input input = {.tables_sql = TEXT_LITERAL(TABLES),
                                  .queries = queries,
                                  .query_count = second == NULL ? 1 : 2};
    struct error err = {.text = ""};
    status code = compile_queries(&input, arena, out_plan, &err);
    if (code != STATUS_OK) print_message("%s\n", err.text);
    assert_int_equal(code, STATUS_OK);
}

/* Numbers, places and schemas fit together. */
static void check_plan(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        assert_int_equal(plan->folds[i].id, i);
        assert_true(plan->folds[i].queries.size > 0);
    }
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &plan->pipelines[i];
        assert_int_equal(pipeline->id, i);
        assert_true(pipeline->target < plan->fold_count);
        const struct fold *target = &plan->folds[pipeline->target];
        const struct schema *wanted = target->kind == FOLD_JOIN && pipeline->target_input == 1
                                          ? &target->right
                                          : &target->input;
        assert_int_equal(pipeline->output.count, wanted->count);
        for (uint32_t j = 0; j < wanted->count; j++) {
            assert_true(type_equal(pipeline->output.fields[j].type, wanted->fields[j].type));
        }
        if (pipeline->op_count > 0) {
            const struct op *last = &pipeline->ops[pipeline->op_count - 1];
            assert_int_equal(last->output.count, pipeline->output.count);
        }
        if (pipeline->source_kind != SOURCE_FOLD) continue;
        assert_true(pipeline->source < pipeline->target);
        assert_int_equal(pipeline->input.count, plan->folds[pipeline->source].output.count);
        bool reads_all = pipeline->op_count == 0;
        if (reads_all) assert_int_equal(pipeline->output.count, pipeline->input.count);
    }
    for (uint32_t i = 0; i < plan->query_count; i++) {
        assert_true(plan->queries[i].result_fold < plan->fold_count);
    }
}

/* What a probe asks of a build side, the build side knows. */
static void check_duplicates(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        for (uint32_t j = 0; j < plan->pipelines[i].op_count; j++) {
            const struct op *op = &plan->pipelines[i].ops[j];
            if (op->kind != OP_PROBE || op->probe != PROBE_ROW) continue;
            const struct fold *side = &plan->folds[op->side];
            assert_true(op->duplicate_set < side->duplicate_set_count);
            const struct duplicate_set *set = &side->duplicate_sets[op->duplicate_set];
            assert_int_equal(set->count, op->duplicates.count);
            for (uint32_t k = 0; k < set->count; k++) {
                assert_int_equal(set->columns[k], op->duplicates.columns[k]);
                assert_true(set->columns[k] < side->output.count);
            }
        }
    }
}

static struct counts count(const char *first, const char *second)
{
    struct arena arena = {0};
    struct plan *plan = NULL;
    plan_two(first, second, &arena, &plan);
    check_plan(plan);
    check_duplicates(plan);
    struct counts counts = {.folds = plan->fold_count};
    for (uint32_t i = 0; i < plan->scan_count; i++) {
        counts.scan_pipelines += plan->scans[i].pipeline_count;
    }
    arena_done(&arena);
    return counts;
}

struct plan_pair {
    const char *first;
    const char *second;
    uint32_t shared_folds; /* So many fewer than alone. */
    uint32_t shared_scans;
};

#define BY_STORE " FROM sales WHERE amount > 3 GROUP BY store"
#define JOINED   " FROM sales JOIN stores ON sales.store = stores.store "

static const struct plan_pair pairs[] = {
    /* Aggregates by the same keys. */
    {"SELECT store, sum(amount) AS x" BY_STORE, "SELECT store, max(price) AS y" BY_STORE, 1, 1},
    {"SELECT store, sum(amount) AS x" BY_STORE, "SELECT count(*) AS y, store" BY_STORE, 1, 1},
    {"SELECT store, sum(amount) AS x" BY_STORE, "SELECT DISTINCT store FROM sales WHERE amount > 3",
     1, 1},
    {"SELECT avg(price) AS x FROM sales", "SELECT sum(price) AS x, count(*) AS n FROM sales", 1, 1},
    /* Other rows, other keys, keys in another order. */
    {"SELECT store, sum(amount) AS x" BY_STORE,
     "SELECT store, sum(amount) AS x FROM sales WHERE amount > 4 GROUP BY store", 0, 0},
    {"SELECT store, sum(amount) AS x" BY_STORE,
     "SELECT id, sum(amount) AS x FROM sales WHERE amount > 3 GROUP BY id", 0, 0},
    {"SELECT store, id, sum(amount) AS x FROM sales GROUP BY store, id",
     "SELECT store, id, sum(amount) AS x FROM sales GROUP BY id, store", 0, 0},
    {"SELECT store, count(*) AS x FROM sales GROUP BY store",
     "SELECT store, count(*) AS x FROM stores GROUP BY store", 0, 0},
    /* The order of conditions matters only where one can fail. */
    {"SELECT store, sum(amount) AS x FROM sales WHERE amount > 3 AND id > 4 GROUP BY store",
     "SELECT store, max(id) AS x FROM sales WHERE id > 4 AND amount > 3 GROUP BY store", 1, 1},
    {"SELECT store, sum(id) AS x FROM sales WHERE amount + 1 > 3 AND id + 1 > 4 GROUP BY store",
     "SELECT store, max(id) AS x FROM sales WHERE id + 1 > 4 AND amount + 1 > 3 GROUP BY store", 0,
     0},
    /* Behind a join, whose build side is the same. */
    {"SELECT name, sum(amount) AS x" JOINED "GROUP BY name",
     "SELECT name, avg(price) AS x" JOINED "GROUP BY name", 2, 2},
    {"SELECT name, sum(amount) AS x" JOINED "GROUP BY name",
     "SELECT name, avg(price) AS x FROM sales LEFT JOIN stores ON sales.store = stores.store\n"
     "GROUP BY name",
     1, 1},
    {"SELECT name, sum(amount) AS x" JOINED "GROUP BY name",
     "SELECT town, sum(amount) AS x" JOINED "GROUP BY town", 0, 0},
    /* The same build side, whose rows are told apart by the same columns or not. */
    {"SELECT name, town, sum(amount) AS x" JOINED "GROUP BY name, town",
     "SELECT town, name, avg(price) AS x" JOINED "GROUP BY town, name", 2, 2},
    {"SELECT name, sum(amount) AS x" JOINED "AND note = town GROUP BY name",
     "SELECT name, town, sum(amount) AS x" JOINED "AND note = town GROUP BY name, town", 1, 1},
    /* Sub-queries: the aggregate, and the fold that holds the value. */
    {"SELECT id FROM sales WHERE price > (SELECT avg(price) FROM sales)",
     "SELECT store FROM sales WHERE price > (SELECT avg(price) FROM sales) AND id > 1", 2, 1},
    /* Results are everybody's own. */
    {"SELECT id FROM sales", "SELECT id FROM sales", 0, 0},
    {"SELECT store, sum(amount) AS x" BY_STORE, "SELECT store, sum(amount) AS x" BY_STORE, 1, 1},
    /* One after the other: what reads the same is the same again. */
    {"SELECT n, count(*) AS x FROM (SELECT store, count(*) AS n" BY_STORE ") AS v GROUP BY n",
     "SELECT n, max(store) AS x FROM (SELECT store, count(*) AS n" BY_STORE ") AS v GROUP BY n", 2,
     1},
    /* Texts as keys. */
    {"SELECT strftime(at, '%Y-%m') AS x, count(*) AS n FROM sales GROUP BY x",
     "SELECT strftime(at, '%Y-%m') AS y, sum(id) AS n FROM sales GROUP BY y", 1, 1},
    {"SELECT strftime(at, '%Y-%m') AS x, count(*) AS n FROM sales GROUP BY x",
     "SELECT strftime(at, '%m') AS y, sum(id) AS n FROM sales GROUP BY y", 0, 0},
};

static void folds_that_are_fed_alike_are_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct counts first = count(pairs[i].first, NULL);
        struct counts second = count(pairs[i].second, NULL);
        struct counts both = count(pairs[i].first, pairs[i].second);
        struct counts turned = count(pairs[i].second, pairs[i].first);
        uint32_t folds = first.folds + second.folds - both.folds;
        uint32_t scans = first.scan_pipelines + second.scan_pipelines - both.scan_pipelines;
        if (folds != pairs[i].shared_folds || scans != pairs[i].shared_scans) {
            print_message("%s\n%s\n%u folds and %u pipelines are shared\n", pairs[i].first,
                          pairs[i].second, folds, scans);
            fail();
        }
        assert_int_equal(both.folds, turned.folds);
        assert_int_equal(both.scan_pipelines, turned.scan_pipelines);
    }
}

/* ---- how it looks ---- */

static void check_text(const char *first, const char *second, const char *wanted)
{
    struct arena arena = {0};
    struct plan *plan = NULL;
    struct buf text = {0};
    plan_two(first, second, &arena, &plan);
    explain_text(plan, &text);
    buf_put_u8(&text, 0);
    if (strstr((const char *)text.bytes, wanted) == NULL) {
        print_message("no %s in\n%s\n", wanted, (const char *)text.bytes);
        fail();
    }
    buf_done(&text);
    arena_done(&arena);
}

static void what_is_shared_names_all_it_is_for(void **state)
{
    (void)state;
    const char *first = "SELECT store, sum(amount) AS x" BY_STORE;
    const char *second = "SELECT store, sum(price) AS y, sum(amount) AS x" BY_STORE;
    check_text(first, second, "pipeline #0 for a, b\n");
    check_text(first, second, "fold #0 for a, b: aggregate sum(amount), sum(price) by store");
    check_text(first, second, "pipeline #1 for a\n");
    check_text(first, second, "project store, sum(price) AS y, sum(amount) AS x");
    check_text(second, first, "fold #0 for a, b: aggregate sum(price), sum(amount) by store");
}

static void years_become_ranges(void **state)
{
    (void)state;
    static const struct {
        const char *condition;
        const char *range;
    } years[] = {
        {"year(at) >= 2024", "filter at >= TIMESTAMP '2024-01-01 00:00:00'\n"},
        {"year(at) > 2024", "filter at >= TIMESTAMP '2025-01-01 00:00:00'\n"},
        {"year(day) <= 2024", "filter day < DATE '2025-01-01'\n"},
        {"2024 > year(day)", "filter day < DATE '2024-01-01'\n"},
        {"year(day) = 7", "filter day >= DATE '0007-01-01' AND day < DATE '0008-01-01'\n"},
        {"year(day) <> 7", "filter year(day) <> 7\n"},
        {"year(day) >= 0", "filter year(day) >= 0\n"},
        {"year(day) <= 9999", "filter year(day) <= 9999\n"},
        {"year(day) > id", "filter year(day) > id\n"},
    };
    for (size_t i = 0; i < sizeof years / sizeof years[0]; i++) {
        char sql[128];
        (void)snprintf(sql, sizeof sql, "SELECT id FROM sales WHERE %s", years[i].condition);
        check_text(sql, NULL, years[i].range);
    }
}

static void texts_are_made_once_per_group(void **state)
{
    (void)state;
    const char *sql =
        "SELECT strftime(at, '%Y-%m') AS month, count(*) AS n FROM sales GROUP BY month";
    check_text(sql, NULL, "project strftime_key(at, '%Y-%m') AS month\n");
    check_text(sql, NULL, "fold #0: (month TIMESTAMP, state of count(*))\n");
    check_text(sql, NULL, "project strftime(month, '%Y-%m') AS month, count(*) AS n\n");
    sql = "SELECT CAST(store AS TEXT) AS s FROM sales GROUP BY s HAVING max(id) > 3";
    check_text(sql, NULL, "fold #0: (s INT, state of max(id))\n");
    check_text(sql, NULL, "project CAST(s AS TEXT) AS s, max(id)\n");
    /* Two zeros have two texts. */
    sql = "SELECT CAST(price AS TEXT) AS s FROM sales GROUP BY s";
    check_text(sql, NULL, "fold #0: (s TEXT)\n");
    sql = "SELECT strftime(at, '%y') AS y FROM sales GROUP BY y";
    check_text(sql, NULL, "fold #0: (y TEXT)\n");
}

/* ---- memory ---- */

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    const struct compile_query queries[] = {
        {TEXT_LITERAL("a"), TEXT_LITERAL("SELECT strftime(at, '%Y') AS y, name, sum(id) AS x" JOINED
                                         "WHERE year(at) = 2024 GROUP BY y, name")},
        {TEXT_LITERAL("b"), TEXT_LITERAL("SELECT strftime(at, '%Y') AS y, name, max(id) AS x" JOINED
                                         "WHERE year(at) = 2024 GROUP BY y, name\n"
                                         "HAVING max(id) > (SELECT avg(id) FROM sales)")}};
    struct compile_input input = {
        .tables_sql = TEXT_LITERAL(TABLES), .queries = queries, .query_count = 2};
    size_t failed = 0;
    for (bool refused = true; refused; failed++) {
        struct arena arena = {0};
        struct plan *plan = NULL;
        struct error err = {.text = ""};
        memory_fail_after(failed);
        status code = compile_queries(&input, &arena, &plan, &err);
        refused = memory_was_refused();
        memory_fail_never();
        arena_done(&arena);
        assert_int_equal(code, refused ? STATUS_MEMORY : STATUS_OK);
    }
    assert_true(failed > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folds_that_are_fed_alike_are_one),
        cmocka_unit_test(what_is_shared_names_all_it_is_for),
        cmocka_unit_test(years_become_ranges),
        cmocka_unit_test(texts_are_made_once_per_group),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
