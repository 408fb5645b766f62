/* SPDX-License-Identifier: Apache-2.0 */
/* catalog.c - tables and parameters as tables.sql and the queries declare them. */
#include "engine/sql/binder.h"

#include "engine/sql/bind_expr.h"
#include "engine/sql/constant.h"
#include "engine/sql/diagnostic.h"

static status add_table(struct catalog *catalog, const struct sql_source *source,
                        const struct ast_table *ast, struct error *err)
{
    for (uint32_t i = 0; i < catalog->table_count; i++) {
        if (text_equal_ignoring_case(catalog->tables[i].name, ast->name)) {
            return sql_error(err, source, ast->offset, "there is a table `%.*s` already",
                             TEXT_ARGS(ast->name));
        }
    }
    struct field *fields = arena_array(catalog->arena, struct field, ast->column_count);
    if (fields == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < ast->column_count; i++) {
        const struct ast_column *column = &ast->columns[i];
        for (uint32_t j = 0; j < i; j++) {
            if (text_equal_ignoring_case(ast->columns[j].name, column->name)) {
                return sql_error(err, source, column->offset, "column `%.*s` is declared twice",
                                 TEXT_ARGS(column->name));
            }
        }
        if (type_is_list(column->type)) {
            return sql_error(err, source, column->offset,
                             "a CSV column cannot be a list; declare TEXT and use pluck()");
        }
        fields[i] = (struct field){column->name, column->type, column->not_null};
    }
    catalog->tables[catalog->table_count++] = (struct table){
        .name = ast->name,
        .schema = {.fields = fields, .count = ast->column_count},
        .patterns = ast->patterns,
        .pattern_count = ast->pattern_count,
    };
    return STATUS_OK;
}

status catalog_add_tables(struct catalog *catalog, const struct sql_source *source,
                          const struct ast_script *script, struct error *err)
{
    struct table *tables =
        arena_array(catalog->arena, struct table, catalog->table_count + script->table_count + 1);
    uint64_t *bytes =
        arena_array(catalog->arena, uint64_t, catalog->table_count + script->table_count + 1);
    if (tables == NULL || bytes == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < catalog->table_count; i++) {
        tables[i] = catalog->tables[i];
        bytes[i] = catalog->table_bytes[i];
    }
    catalog->tables = tables;
    catalog->table_bytes = bytes;
    for (uint32_t i = 0; i < script->table_count; i++) {
        TRY(add_table(catalog, source, &script->tables[i], err));
    }
    return STATUS_OK;
}

/* A setting is text from the command line; it takes the type of the default it replaces. */
static status apply_setting(struct binder_setting *setting, struct catalog_parameter *parameter,
                            struct error *err)
{
    struct value value = {.text = setting->value};
    setting->used = true;
    struct type type = parameter->type;
    /* A decimal default such as 1.5 must not cut 1.55: the setting brings its own decimals. */
    if (type.kind == TYPE_DECIMAL) {
        const char *point = memchr(setting->value.bytes, '.', setting->value.size);
        size_t decimals =
            point == NULL ? 0 : (size_t)(setting->value.bytes + setting->value.size - point - 1);
        if (decimals > type.scale && decimals <= DECIMAL_PRECISION_MAX) {
            type.scale = (uint8_t)decimals;
        }
    } else if (type.kind == TYPE_INT && memchr(setting->value.bytes, '.', setting->value.size)) {
        const char *point = memchr(setting->value.bytes, '.', setting->value.size);
        size_t decimals = (size_t)(setting->value.bytes + setting->value.size - point - 1);
        if (decimals > 0 && decimals < DECIMAL_PRECISION_MAX) {
            type = (struct type){TYPE_DECIMAL, DECIMAL_PRECISION_MAX, (uint8_t)decimals};
        }
    }
    if (!constant_convert(&value, TYPE(TEXT), type)) {
        char name[TYPE_NAME_SIZE];
        return error_set(err, STATUS_USAGE, "--set %.*s=%.*s: this parameter is %s",
                         TEXT_ARGS(setting->name), TEXT_ARGS(setting->value),
                         type_name(parameter->type, name));
    }
    parameter->value = value;
    parameter->type = type;
    return STATUS_OK;
}

status parameters_add(struct parameter_list *list, struct catalog *catalog,
                      const struct sql_source *source, const struct ast_script *script,
                      struct binder_settings *settings, struct error *err)
{
    const struct parameter_list none = {0};
    struct binder binder = {
        .catalog = catalog, .arena = catalog->arena, .source = source, .parameters = &none};
    const struct scope empty = {0};
    const struct expr_scope scope = {.columns = &empty, .clause = "PARAMETER"};
    for (uint32_t i = 0; i < script->parameter_count; i++) {
        const struct ast_parameter *ast = &script->parameters[i];
        const struct expr *expr;
        TRY(bind_expr(&binder, &scope, ast->value, &expr, err));
        if (expr->kind != EXPR_CONSTANT) {
            return sql_error(err, source, ast->value->offset,
                             "a parameter's default is a constant");
        }
        struct catalog_parameter parameter = {ast->name, expr->constant, expr->type};
        for (uint32_t j = 0; j < settings->count; j++) {
            if (text_equal_ignoring_case(settings->items[j].name, ast->name)) {
                TRY(apply_setting(&settings->items[j], &parameter, err));
            }
        }
        struct catalog_parameter *added = array_add_in(list, catalog->arena);
        if (added == NULL) return binder_memory(err);
        *added = parameter;
    }
    return STATUS_OK;
}
