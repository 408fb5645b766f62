/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_plan.c - any text is a query that can be planned, or an error that says something.
 *
 * Goal: binding and planning end and keep to their bounds whatever the parser lets through, and
 * what they make fits together: numbers are in range, operators can be made, all drawings of the
 * plan come out.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/assert.h"
#include "engine/exec/pipeline.h"
#include "engine/sql/binder.h"
#include "engine/sql/explain.h"
#include "engine/sql/parser.h"
#include "engine/sql/planner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { QUERY_BYTES_MAX = 20000 };

static const char tables[] =
    "PARAMETER first_year = 2024;"
    "PARAMETER last_year = 2025;"
    "CREATE TABLE transactions (transaction_id TEXT NOT NULL, store_id INT NOT NULL,"
    " final_amount DECIMAL(18,3) NOT NULL, created_at TIMESTAMP NOT NULL, user_id INT)"
    " FROM 't.csv';"
    "CREATE TABLE transaction_items (item_id INT NOT NULL, quantity INT NOT NULL,"
    " subtotal DECIMAL(18,3) NOT NULL, created_at TIMESTAMP NOT NULL) FROM 'i.csv';"
    "CREATE TABLE users (user_id INT NOT NULL, birthdate DATE NOT NULL) FROM 'u.csv';"
    "CREATE TABLE stores (store_id INT NOT NULL, store_name TEXT NOT NULL) FROM 's.csv';"
    "CREATE TABLE menu_items (item_id INT NOT NULL, item_name TEXT NOT NULL) FROM 'n.csv';"
    "CREATE TABLE posts (id TEXT NOT NULL, score INT NOT NULL, url TEXT) FROM 'p.csv';"
    "CREATE TABLE comments (permalink TEXT NOT NULL, body TEXT, sentiment DOUBLE) FROM 'c.csv';"
    "CREATE TABLE movies (id INT NOT NULL, title TEXT NOT NULL, genres TEXT NOT NULL,"
    " release_date DATE NOT NULL, overview TEXT NOT NULL, production_countries TEXT NOT NULL,"
    " spoken_languages TEXT NOT NULL, budget INT NOT NULL, revenue INT NOT NULL,"
    " original_language TEXT) FROM 'm.csv';"
    "CREATE TABLE credits (id INT NOT NULL, \"cast\" TEXT NOT NULL) FROM 'k.csv';"
    "CREATE TABLE ratings (movieId INT NOT NULL, rating DECIMAL(6,3) NOT NULL) FROM 'r.csv';"
    "CREATE TABLE flags (flag BOOL, number DOUBLE, text TEXT, day DATE) FROM 'f.csv';";

static status plan_text(const struct sql_source *source, struct arena *arena,
                        struct plan **out_plan, struct error *err)
{
    struct sql_source tables_source = {.text = TEXT_LITERAL(tables), .name = "tables.sql"};
    struct catalog catalog = {.arena = arena};
    struct binder_settings settings = {0};
    struct parameter_list parameters = {0};
    struct ast_script *tables_script;
    struct ast_script *script;
    struct bound_query bound = {0};
    TRY(sql_parse(source, arena, &script, err));
    if (script->query == NULL || script->table_count > 0) {
        return error_set(err, STATUS_SQL, "not a query");
    }
    TRY(sql_parse(&tables_source, arena, &tables_script, err));
    TRY(catalog_add_tables(&catalog, &tables_source, tables_script, err));
    TRY(parameters_add(&parameters, &catalog, &tables_source, tables_script, &settings, err));
    TRY(parameters_add(&parameters, &catalog, source, script, &settings, err));
    struct binder_input input = {.name = TEXT_LITERAL("fuzz"),
                                 .source = source,
                                 .query = script->query,
                                 .parameters = &parameters};
    TRY(bind_query(&catalog, &input, &bound, err));
    return plan_build(&catalog, &bound, 1, out_plan, err);
}

static void check_pipeline(const struct plan *plan, const struct pipeline *pipeline)
{
    const struct finished finished = {0};
    struct pipeline_run *run = NULL;
    struct error err = {.text = ""};
    bool scans = pipeline->source_kind == SOURCE_SCAN;
    ASSERT(pipeline->source < (scans ? plan->scan_count : plan->fold_count));
    ASSERT(pipeline->target < plan->fold_count);
    ASSERT(pipeline->target_input < plan->folds[pipeline->target].input_count);
    for (uint32_t i = 0; i < pipeline->op_count; i++) {
        const struct op *op = &pipeline->ops[i];
        if (op->kind == OP_PROBE) ASSERT(plan->folds[op->side].is_build_side);
    }
    /* A pattern that is no regular expression is found here. */
    status code = pipeline_run_create(pipeline, &finished, 1, NULL, &run, &err);
    ASSERT(code == STATUS_OK || code == STATUS_SQL);
    if (code != STATUS_OK) ASSERT(err.text[0] != '\0');
    pipeline_run_destroy(run);
}

static void check_plan(const struct plan *plan)
{
    static void (*const drawings[])(const struct plan *,
                                    struct buf *) = {explain_text, explain_json, explain_dot};
    ASSERT(plan->query_count == 1);
    ASSERT(plan->queries[0].result_fold < plan->fold_count);
    ASSERT(plan->queries[0].schema.count <= plan->folds[plan->queries[0].result_fold].output.count);
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        check_pipeline(plan, &plan->pipelines[i]);
    }
    for (size_t i = 0; i < sizeof drawings / sizeof drawings[0]; i++) {
        struct buf drawn = {0};
        drawings[i](plan, &drawn);
        ASSERT(!drawn.failed);
        ASSERT(drawn.size > 0);
        buf_done(&drawn);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > QUERY_BYTES_MAX) return 0;
    struct sql_source source = {.text = {(const char *)data, (uint32_t)size}, .name = "fuzz.sql"};
    struct arena arena = {0};
    struct plan *plan = NULL;
    struct error err = {.text = ""};
    status code = plan_text(&source, &arena, &plan, &err);
    if (code == STATUS_OK) {
        check_plan(plan);
    } else {
        size_t length = strnlen(err.text, sizeof err.text);
        ASSERT(code == STATUS_SQL || code == STATUS_OVERFLOW || code == STATUS_LIMIT);
        ASSERT(length > 0 && length < sizeof err.text);
    }
    arena_done(&arena);
    return 0;
}
