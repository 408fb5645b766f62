/* SPDX-License-Identifier: Apache-2.0 */
/* test_compile.c - the same texts give the same plan, and what is wrong is said as it always was.
 *
 * Method: plans are compared as EXPLAIN's JSON, made from copies of the texts that stand elsewhere
 * in memory and are gone afterwards. Messages are compared whole. Every allocation is made to fail
 * once.
 */
#include "unit/test.h"

#include <string.h>

#include "engine/sql/compile.h"
#include "engine/sql/explain.h"

#define TABLES                                                                                     \
    "PARAMETER low = 10;\n"                                                                        \
    "CREATE TABLE sales (id INT NOT NULL, store INT NOT NULL, amount INT) FROM 'sales*.csv';\n"    \
    "CREATE TABLE stores (store INT NOT NULL, name TEXT NOT NULL) FROM 'stores.csv';\n"
#define TOTALS "SELECT store, sum(amount) AS total FROM sales WHERE amount > $low GROUP BY store"
#define NAMES                                                                                      \
    "PARAMETER best = 3;\n"                                                                        \
    "SELECT name, sum(amount) AS total FROM sales JOIN stores ON sales.store = stores.store\n"     \
    "WHERE amount > (SELECT avg(amount) FROM sales)\n"                                             \
    "GROUP BY name ORDER BY total DESC LIMIT $best"

#define DISTINCT "SELECT count(DISTINCT id), count(*), min(amount) FROM sales"
#define APART                                                                                      \
    "SELECT name, count(DISTINCT id), sum(amount), count(*) FROM sales\n"                          \
    "JOIN stores ON sales.store = stores.store GROUP BY name"

static const struct compile_query totals = {TEXT_INIT("totals"), TEXT_INIT(TOTALS)};
static const struct compile_query names = {TEXT_INIT("names"), TEXT_INIT(NAMES)};
static const struct compile_query distinct = {TEXT_INIT("distinct"), TEXT_INIT(DISTINCT)};
static const struct compile_query apart = {TEXT_INIT("apart"), TEXT_INIT(APART)};

/* ---- plans as text ---- */

static void explain_input(const struct compile_input *input, struct buf *out)
{
    struct arena arena = {0};
    struct plan *plan = NULL;
    struct error err = {.text = ""};
    status code = compile_queries(input, &arena, &plan, &err);
    if (code != STATUS_OK) print_message("%s\n", err.text);
    assert_int_equal(code, STATUS_OK);
    assert_int_equal(plan->query_count, input->query_count);
    for (uint32_t i = 0; i < input->query_count; i++) {
        assert_true(text_equal(plan->queries[i].name, input->queries[i].name));
    }
    explain_json(plan, out);
    assert_false(out->failed);
    arena_done(&arena);
}

static bool same_plan(const struct compile_input *a, const struct compile_input *b)
{
    struct buf first = {0};
    struct buf second = {0};
    explain_input(a, &first);
    explain_input(b, &second);
    bool same = first.size == second.size && memcmp(first.bytes, second.bytes, first.size) == 0;
    buf_done(&first);
    buf_done(&second);
    return same;
}

static struct text copy_text(struct arena *arena, struct text text)
{
    char *copy = arena_copy_string(arena, text);
    assert_non_null(copy);
    return (struct text){copy, text.size};
}

static void equal_texts_give_equal_plans(void **state)
{
    (void)state;
    const struct compile_query queries[] = {totals, names};
    const struct compile_setting settings[] = {{TEXT_LITERAL("low"), TEXT_LITERAL("20")}};
    struct compile_input input = {.tables_sql = TEXT_LITERAL(TABLES),
                                  .queries = queries,
                                  .query_count = 2,
                                  .settings = settings,
                                  .setting_count = 1};
    struct arena arena = {0};
    struct compile_query other_queries[2];
    struct compile_setting other_setting = {copy_text(&arena, settings[0].name),
                                            copy_text(&arena, settings[0].value)};
    for (uint32_t i = 0; i < 2; i++) {
        other_queries[i] = (struct compile_query){copy_text(&arena, queries[i].name),
                                                  copy_text(&arena, queries[i].sql)};
    }
    struct compile_input other = {.tables_sql = copy_text(&arena, input.tables_sql),
                                  .queries = other_queries,
                                  .query_count = 2,
                                  .settings = &other_setting,
                                  .setting_count = 1};
    for (int round = 0; round < 5; round++) {
        assert_true(same_plan(&input, &other));
    }
    arena_done(&arena);
}

static void another_setting_or_order_is_another_plan(void **state)
{
    (void)state;
    const struct compile_query queries[] = {totals, names};
    const struct compile_query reversed[] = {names, totals};
    const struct compile_setting same[] = {{TEXT_LITERAL("low"), TEXT_LITERAL("10")}};
    const struct compile_setting low[] = {{TEXT_LITERAL("low"), TEXT_LITERAL("11")}};
    const struct compile_setting best[] = {{TEXT_LITERAL("best"), TEXT_LITERAL("4")}};
    struct compile_input input = {
        .tables_sql = TEXT_LITERAL(TABLES), .queries = queries, .query_count = 2};
    struct compile_input other = input;
    other.queries = reversed;
    assert_false(same_plan(&input, &other));
    other = input;
    other.query_count = 1;
    assert_false(same_plan(&input, &other));
    other = input;
    other.setting_count = 1;
    other.settings = low;
    assert_false(same_plan(&input, &other));
    other.settings = best;
    assert_false(same_plan(&input, &other));
    /* What a parameter is anyway changes nothing. */
    other.settings = same;
    assert_true(same_plan(&input, &other));
}

/* ---- sizes ---- */

struct sizes {
    uint64_t sales_bytes;
    uint64_t stores_bytes;
    uint32_t asked_count;
    bool fails;
};

static status measure(void *context, const struct table *table, uint64_t *out_bytes,
                      struct error *err)
{
    struct sizes *sizes = context;
    if (sizes->fails) return error_set(err, STATUS_IO, "the disk is gone");
    sizes->asked_count++;
    bool is_sales = text_equal(table->name, TEXT_LITERAL("sales"));
    *out_bytes = is_sales ? sizes->sales_bytes : sizes->stores_bytes;
    return STATUS_OK;
}

static void every_table_is_measured_once_and_sizes_decide(void **state)
{
    (void)state;
    struct sizes sizes = {.sales_bytes = 1000000, .stores_bytes = 10};
    struct sizes turned = {.sales_bytes = 10, .stores_bytes = 1000000};
    struct compile_input input = {.tables_sql = TEXT_LITERAL(TABLES),
                                  .queries = &names,
                                  .query_count = 1,
                                  .measure = measure,
                                  .context = &sizes};
    struct compile_input other = input;
    other.context = &turned;
    /* The smaller one is the build side. */
    assert_false(same_plan(&input, &other));
    assert_int_equal(sizes.asked_count, 2);
    assert_int_equal(turned.asked_count, 2);
    turned = sizes;
    assert_true(same_plan(&input, &other));
    struct arena arena = {0};
    struct plan *plan = NULL;
    struct error err;
    sizes.fails = true;
    assert_int_equal(compile_queries(&input, &arena, &plan, &err), STATUS_IO);
    assert_string_equal(err.text, "the disk is gone");
    assert_null(plan);
    arena_done(&arena);
}

/* ---- DISTINCT ---- */

static const struct plan *compile_one(struct arena *arena, struct compile_query query,
                                      uint64_t broadcast_limit)
{
    struct sizes sizes = {.sales_bytes = 1000000, .stores_bytes = 1000000};
    struct compile_input input = {.tables_sql = TEXT_LITERAL(TABLES),
                                  .queries = &query,
                                  .query_count = 1,
                                  .measure = measure,
                                  .context = &sizes,
                                  .broadcast_limit = broadcast_limit};
    struct plan *plan = NULL;
    struct error err = {.text = ""};
    status code = compile_queries(&input, arena, &plan, &err);
    if (code != STATUS_OK) print_message("%s\n", err.text);
    assert_int_equal(code, STATUS_OK);
    return plan;
}

static void assert_aggregates(const struct fold *fold, uint32_t key_count,
                              const enum aggregate_kind *kinds, uint32_t count)
{
    assert_int_equal(fold->kind, FOLD_AGGREGATE);
    assert_int_equal(fold->key_count, key_count);
    assert_int_equal(fold->grouping->aggregate_count, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(fold->grouping->aggregates[i].kind, kinds[i]);
    }
}

static void distinct_values_are_grouped_by_first_and_then_counted(void **state)
{
    (void)state;
    const enum aggregate_kind parts[] = {AGGREGATE_COUNT_ROWS, AGGREGATE_MIN};
    const enum aggregate_kind whole[] = {AGGREGATE_COUNT, AGGREGATE_SUM, AGGREGATE_MIN};
    struct arena arena = {0};
    const struct plan *plan = compile_one(&arena, distinct, 0);
    assert_int_equal(plan->fold_count, 3);
    assert_aggregates(&plan->folds[0], 1, parts, 2);
    assert_aggregates(&plan->folds[1], 0, whole, 3);
    assert_int_equal(plan->folds[2].kind, FOLD_COLLECT);
    arena_done(&arena);
}

static uint32_t count_folds(const struct plan *plan, enum fold_kind kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        if (plan->folds[i].kind == kind) count++;
    }
    return count;
}

static void what_is_aggregated_in_two_ways_is_made_once(void **state)
{
    (void)state;
    struct arena arena = {0};
    const struct plan *plan = compile_one(&arena, apart, 0);
    uint32_t side_count = 0;
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        if (plan->folds[i].is_build_side) side_count++;
    }
    assert_int_equal(plan->scan_count, 2);
    assert_int_equal(side_count, 1);
    /* One of them is by way of the build side's rows, and needs no second one by key. */
    assert_int_equal(count_folds(plan, FOLD_AGGREGATE), 4);
    /* A join of two large tables is made once too, and by shards. */
    plan = compile_one(&arena, apart, 1);
    assert_int_equal(plan->scan_count, 2);
    assert_int_equal(count_folds(plan, FOLD_JOIN), 1);
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        if (plan->folds[i].kind == FOLD_JOIN) assert_true(plan->folds[i].partitioned);
    }
    arena_done(&arena);
}

/* ---- sieves ---- */

/* Whose keys the Bloom filter has, 0: there is none; and whether what it is for waits for it. */
static uint32_t count_bloom(const struct plan *plan, struct text *out_of)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &plan->pipelines[i];
        if (!plan->folds[pipeline->target].is_bloom) continue;
        count++;
        assert_true(plan->folds[pipeline->target].is_build_side);
        *out_of = plan->tables[plan->scans[pipeline->source].table].name;
    }
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &plan->pipelines[i];
        for (uint32_t j = 0; j < pipeline->op_count; j++) {
            const struct op *op = &pipeline->ops[j];
            if (op->kind != OP_PROBE || !plan->folds[op->side].is_bloom) continue;
            assert_int_equal(op->probe, PROBE_SEMI);
            assert_int_equal(pipeline->phase, plan->folds[op->side].phase + 1);
            assert_int_equal(plan->folds[pipeline->target].kind, FOLD_JOIN);
        }
    }
    return count;
}

static void the_larger_side_of_a_join_by_shards_is_filtered_if_that_is_worth_it(void **state)
{
    (void)state;
    static const struct {
        struct text sql;
        uint64_t limit;
        struct text bloom_of; /* Empty: no Bloom filter. */
    } cases[] = {
        /* A third of the stores is less than half of the sales. */
        {TEXT_INIT("SELECT count(*) FROM sales a JOIN stores b ON a.store = b.store "
                   "WHERE name > 'm'"),
         100000, TEXT_INIT("stores")},
        {TEXT_INIT("SELECT count(*) FROM stores b JOIN sales a ON a.store = b.store "
                   "WHERE amount > 5"),
         100000, TEXT_INIT("sales")},
        {TEXT_INIT("SELECT amount FROM sales a JOIN stores b ON a.store = b.store AND "
                   "a.amount = length(b.name) WHERE name > 'm'"),
         100000, TEXT_INIT("stores")},
        /* All of them are not. */
        {TEXT_INIT("SELECT count(*) FROM sales a JOIN stores b ON a.store = b.store"), 100000,
         TEXT_INIT("")},
        /* Not even the hashes are to be copied. */
        {TEXT_INIT("SELECT count(*) FROM sales a JOIN stores b ON a.store = b.store "
                   "WHERE name > 'm'"),
         40000, TEXT_INIT("")},
        /* The build side itself is. */
        {TEXT_INIT("SELECT count(*) FROM sales a JOIN stores b ON a.store = b.store "
                   "WHERE name > 'm'"),
         400000, TEXT_INIT("")},
        /* Of the side whose rows are all kept nothing is left out, of the other one it is. */
        {TEXT_INIT("SELECT count(*) FROM sales a LEFT JOIN (SELECT * FROM stores "
                   "WHERE name > 'm') b ON a.store = b.store"),
         100000, TEXT_INIT("")},
        {TEXT_INIT("SELECT count(*) FROM (SELECT * FROM sales WHERE amount > 5) a "
                   "LEFT JOIN stores b ON a.store = b.store"),
         100000, TEXT_INIT("sales")},
        /* One reading would become two. */
        {TEXT_INIT("SELECT count(*) FROM sales a JOIN sales b ON a.id = b.store "
                   "WHERE a.amount > 5"),
         100000, TEXT_INIT("")},
        {TEXT_INIT("SELECT count(*) FROM sales a JOIN (SELECT id, store, count(*) AS n FROM sales "
                   "GROUP BY id, store) b ON a.id = b.store"),
         20000, TEXT_INIT("")},
        {TEXT_INIT("SELECT count(*) FROM stores b JOIN sales a ON a.store = b.store "
                   "WHERE amount > (SELECT count(*) FROM stores)"),
         100000, TEXT_INIT("")},
        {TEXT_INIT("SELECT count(*) FROM sales a, stores b WHERE name > 'm'"), 100000,
         TEXT_INIT("")},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena = {0};
        struct text found = {0};
        struct compile_query query = {TEXT_LITERAL("sifted"), cases[i].sql};
        const struct plan *plan = compile_one(&arena, query, cases[i].limit);
        uint32_t count = count_bloom(plan, &found);
        if (!text_equal(found, cases[i].bloom_of)) print_message("case %zu\n", i);
        assert_true(text_equal(found, cases[i].bloom_of));
        assert_int_equal(count, found.size > 0);
        assert_int_equal(plan->phase_count > 1, found.size > 0 || cases[i].limit == 400000 ||
                                                    strstr(cases[i].sql.bytes, "(SELECT count"));
        arena_done(&arena);
    }
}

/* Were the input of the two ways planned twice, forty levels would never end. */
static void plans_of_nested_distincts_grow_by_a_step_each(void **state)
{
    (void)state;
    uint32_t before = 0;
    for (uint32_t depth = 1; depth <= 40; depth++) {
        struct arena arena = {0};
        struct buf sql = {0};
        for (uint32_t i = 0; i < depth; i++) {
            buf_put_string(&sql, "SELECT count(DISTINCT a) AS a, sum(b) AS b FROM (");
        }
        buf_put_string(&sql, "SELECT id AS a, amount AS b FROM sales");
        for (uint32_t i = 0; i < depth; i++) {
            buf_put_string(&sql, ") AS t");
        }
        assert_false(sql.failed);
        struct compile_query query = {TEXT_LITERAL("nested"),
                                      {(const char *)sql.bytes, (uint32_t)sql.size}};
        const struct plan *plan = compile_one(&arena, query, 0);
        assert_int_equal(plan->scan_count, 1);
        if (depth > 1) assert_int_equal(plan->fold_count, before + 5);
        before = plan->fold_count;
        buf_done(&sql);
        arena_done(&arena);
    }
}

/* ---- what is wrong ---- */

struct wrong_query {
    const char *tables;
    const char *name;
    const char *sql;
    const char *setting; /* NULL: none. */
    const char *value;
    status code;
    const char *text;
};

static const struct wrong_query wrongs[] = {
    {TABLES, "q1", "-- only a remark\n", NULL, NULL, STATUS_SQL,
     "q1.sql: there is no query in this file"},
    {TABLES, "q1", "CREATE TABLE x (a INT) FROM 'x.csv';\nSELECT 1", NULL, NULL, STATUS_SQL,
     "q1.sql:1:14: tables are declared in tables.sql\n"
     "  1 | CREATE TABLE x (a INT) FROM 'x.csv';\n"
     "    |              ^"},
    {"SELECT 1", "q1", "SELECT 1", NULL, NULL, STATUS_SQL,
     "tables.sql:1:1: tables.sql declares tables and parameters; queries have their own files\n"
     "  1 | SELECT 1\n"
     "    | ^"},
    {"CREATE TABLE", "q1", "SELECT 1", NULL, NULL, STATUS_SQL, "tables.sql:1:13: "},
    {TABLES, "best-sellers", "SELECT titel FROM stores", NULL, NULL, STATUS_SQL,
     "best-sellers.sql:1:8: no column `titel` in stores\n"
     "  1 | SELECT titel FROM stores\n"
     "    |        ^"},
    {TABLES, "q1", "SELECT id FROM sales WHERE id > $low", "lwo", "1", STATUS_USAGE,
     "--set lwo: the chosen queries have no such parameter; did you mean `low`?"},
    {TABLES, "q1", "SELECT id FROM sales", "zzzzzz", "1", STATUS_USAGE,
     "--set zzzzzz: the chosen queries have no such parameter"},
    {TABLES, "q1", "SELECT id FROM sales WHERE id > $low", "low", "two", STATUS_USAGE,
     "--set low=two: this parameter is INT"},
    {TABLES, "q1", "SELECT id FROM sales WHERE id > $lowest", NULL, NULL, STATUS_SQL,
     "q1.sql:1:33: no parameter `$lowest`; did you mean `low`?; "
     "declare it with PARAMETER lowest = ..."},
    /* Parameters of one query are no other's. */
    {TABLES, "q1", "SELECT id FROM sales WHERE id > $best", NULL, NULL, STATUS_SQL,
     "q1.sql:1:33: no parameter `$best`"},
};

static void messages_name_file_place_and_remedy(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        const struct wrong_query *wrong = &wrongs[i];
        bool has_setting = wrong->setting != NULL;
        struct compile_query queries[] = {names, {text_of(wrong->name), text_of(wrong->sql)}};
        struct compile_setting setting = {0};
        if (has_setting) {
            setting = (struct compile_setting){text_of(wrong->setting), text_of(wrong->value)};
        }
        struct compile_input input = {.tables_sql = text_of(wrong->tables),
                                      .queries = queries,
                                      .query_count = 2,
                                      .settings = &setting,
                                      .setting_count = has_setting ? 1 : 0};
        struct arena arena = {0};
        struct plan *plan = NULL;
        struct error err = {.text = ""};
        status code = compile_queries(&input, &arena, &plan, &err);
        if (strncmp(err.text, wrong->text, strlen(wrong->text)) != 0) {
            print_message("expected %s\ngot %s\n", wrong->text, err.text);
            fail();
        }
        assert_int_equal(code, wrong->code);
        assert_null(plan);
        arena_done(&arena);
    }
}

static void a_name_that_is_too_long_is_refused(void **state)
{
    (void)state;
    static char name[600];
    memset(name, 'n', sizeof name);
    for (uint32_t size = 500; size <= sizeof name; size++) {
        struct compile_query query = {{name, size}, TEXT_LITERAL(TOTALS)};
        struct compile_input input = {
            .tables_sql = TEXT_LITERAL(TABLES), .queries = &query, .query_count = 1};
        struct arena arena = {0};
        struct plan *plan;
        struct error err = {.text = ""};
        bool fits = size + strlen(".sql") < 512;
        assert_int_equal(compile_queries(&input, &arena, &plan, &err),
                         fits ? STATUS_OK : STATUS_USAGE);
        if (!fits) assert_non_null(strstr(err.text, "a query's name is too long: nnn"));
        arena_done(&arena);
    }
}

static void check_allocations(const struct compile_input *input)
{
    size_t count = 0;
    for (bool refused = true; refused; count++) {
        struct arena arena = {0};
        struct plan *plan = NULL;
        struct error err = {.text = ""};
        memory_fail_after(count);
        status code = compile_queries(input, &arena, &plan, &err);
        refused = memory_was_refused();
        memory_fail_never();
        arena_done(&arena);
        assert_int_equal(code, refused ? STATUS_MEMORY : STATUS_OK);
        assert_int_equal(code == STATUS_OK, plan != NULL);
        if (code != STATUS_OK) assert_true(err.text[0] != '\0');
    }
    assert_true(count > 1);
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    const struct compile_query queries[] = {totals, names, distinct, apart};
    const struct compile_setting setting = {TEXT_LITERAL("low"), TEXT_LITERAL("20")};
    struct sizes sizes = {.sales_bytes = 1000000, .stores_bytes = 200000};
    struct compile_input input = {.tables_sql = TEXT_LITERAL(TABLES),
                                  .queries = queries,
                                  .query_count = 4,
                                  .settings = &setting,
                                  .setting_count = 1};
    check_allocations(&input);
    /* By shards, with a Bloom filter. */
    input.measure = measure;
    input.context = &sizes;
    input.broadcast_limit = 100000;
    check_allocations(&input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_texts_give_equal_plans),
        cmocka_unit_test(another_setting_or_order_is_another_plan),
        cmocka_unit_test(every_table_is_measured_once_and_sizes_decide),
        cmocka_unit_test(distinct_values_are_grouped_by_first_and_then_counted),
        cmocka_unit_test(what_is_aggregated_in_two_ways_is_made_once),
        cmocka_unit_test(the_larger_side_of_a_join_by_shards_is_filtered_if_that_is_worth_it),
        cmocka_unit_test(plans_of_nested_distincts_grow_by_a_step_each),
        cmocka_unit_test(messages_name_file_place_and_remedy),
        cmocka_unit_test(a_name_that_is_too_long_is_refused),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
