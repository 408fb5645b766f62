/* SPDX-License-Identifier: Apache-2.0 */
/* compile.c - parse, bind, plan: what happens to a query before any data is read. */
#include "engine/sql/compile.h"

#include <stdio.h>

#include "engine/base/array.h"
#include "engine/sql/binder.h"
#include "engine/sql/diagnostic.h"
#include "engine/sql/parser.h"
#include "engine/sql/planner.h"

enum { NAMES_LIMIT = 256 };

struct query_source {
    struct sql_source source;
    struct ast_script *script;
};

static status memory_full(struct error *err)
{
    return error_set(err, STATUS_MEMORY, "out of memory while planning");
}

static status check_settings(const struct binder_settings *settings,
                             const struct parameter_list *known, struct error *err)
{
    for (uint32_t i = 0; i < settings->count; i++) {
        if (settings->items[i].used) continue;
        struct text names[NAMES_LIMIT];
        uint32_t count = 0;
        for (uint32_t j = 0; j < known->count && count < NAMES_LIMIT; j++) {
            names[count++] = known->items[j].name;
        }
        char hint[SQL_SUGGESTION_SIZE];
        return error_set(err, STATUS_USAGE,
                         "--set %.*s: the chosen queries have no such parameter%s",
                         TEXT_ARGS(settings->items[i].name),
                         sql_suggest(hint, sizeof hint, settings->items[i].name, names, count));
    }
    return STATUS_OK;
}

static status parse_query(const struct compile_query *query, struct arena *arena,
                          struct query_source *out, struct error *err)
{
    char name[512];
    int size = snprintf(name, sizeof name, "%.*s.sql", TEXT_ARGS(query->name));
    if (size < 0 || (size_t)size >= sizeof name) {
        return error_set(err, STATUS_USAGE, "a query's name is too long: %.*s",
                         TEXT_ARGS(query->name));
    }
    out->source =
        (struct sql_source){.name = arena_copy_string(arena, text_of(name)), .text = query->sql};
    if (out->source.name == NULL) return memory_full(err);
    TRY(sql_parse(&out->source, arena, &out->script, err));
    if (out->script->query == NULL) {
        return error_set(err, STATUS_SQL, "%s: there is no query in this file", name);
    }
    if (out->script->table_count > 0) {
        return sql_error(err, &out->source, out->script->tables[0].offset,
                         "tables are declared in tables.sql");
    }
    return STATUS_OK;
}

static status parameters_append(struct parameter_list *list, const struct parameter_list *more,
                                struct arena *arena, struct error *err)
{
    for (uint32_t i = 0; i < more->count; i++) {
        struct catalog_parameter *added = array_add_in(list, arena);
        if (added == NULL) return memory_full(err);
        *added = more->items[i];
    }
    return STATUS_OK;
}

static status bind_queries(const struct compile_input *input, struct catalog *catalog,
                           struct query_source *sources, const struct parameter_list *shared,
                           struct binder_settings *settings, struct bound_query *out_queries,
                           struct error *err)
{
    struct arena *arena = catalog->arena;
    struct parameter_list all = {0};
    for (uint32_t i = 0; i < input->query_count; i++) {
        /* Each query sees the parameters of tables.sql and its own. */
        struct parameter_list *own = arena_new(arena, struct parameter_list);
        if (own == NULL) return memory_full(err);
        TRY(parameters_append(own, shared, arena, err));
        TRY(parameters_add(own, catalog, &sources[i].source, sources[i].script, settings, err));
        struct binder_input query = {.name = input->queries[i].name,
                                     .source = &sources[i].source,
                                     .query = sources[i].script->query,
                                     .parameters = own};
        TRY(bind_query(catalog, &query, &out_queries[i], err));
        TRY(parameters_append(&all, own, arena, err));
    }
    return check_settings(settings, &all, err);
}

status compile_queries(const struct compile_input *input, struct arena *arena,
                       struct plan **out_plan, struct error *err)
{
    struct catalog catalog = {.arena = arena,
                              .sizes_known = input->measure != NULL,
                              .broadcast_limit = input->broadcast_limit};
    struct sql_source *tables_source = arena_new(arena, struct sql_source);
    struct query_source *sources = arena_array(arena, struct query_source, input->query_count + 1);
    struct bound_query *bound = arena_array(arena, struct bound_query, input->query_count + 1);
    struct binder_settings settings = {
        .items = arena_array(arena, struct binder_setting, input->setting_count + 1),
        .count = input->setting_count,
    };
    if (tables_source == NULL || sources == NULL || bound == NULL || settings.items == NULL) {
        return memory_full(err);
    }
    for (uint32_t i = 0; i < input->setting_count; i++) {
        settings.items[i] = (struct binder_setting){.name = input->settings[i].name,
                                                    .value = input->settings[i].value};
    }
    struct ast_script *tables;
    *tables_source = (struct sql_source){.name = "tables.sql", .text = input->tables_sql};
    TRY(sql_parse(tables_source, arena, &tables, err));
    if (tables->query != NULL) {
        return sql_error(err, tables_source, tables->query->offset,
                         "tables.sql declares tables and parameters; queries have their own files");
    }
    struct parameter_list shared = {0};
    TRY(catalog_add_tables(&catalog, tables_source, tables, err));
    TRY(parameters_add(&shared, &catalog, tables_source, tables, &settings, err));
    for (uint32_t i = 0; input->measure != NULL && i < catalog.table_count; i++) {
        TRY(input->measure(input->context, &catalog.tables[i], &catalog.table_bytes[i], err));
    }
    for (uint32_t i = 0; i < input->query_count; i++) {
        TRY(parse_query(&input->queries[i], arena, &sources[i], err));
    }
    TRY(bind_queries(input, &catalog, sources, &shared, &settings, bound, err));
    return plan_build(&catalog, bound, input->query_count, out_plan, err);
}
