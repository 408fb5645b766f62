/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - what all commands share. */
#include "cli/command.h"

#include <string.h>
#include <unistd.h>

#include "engine/base/text.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "engine/data/print_text.h"

int command_fail(const struct error *err, bool as_json)
{
    if (terminal_of(STDERR_FILENO).color) {
        struct buf prefix = {0};
        buf_put_string(&prefix, "\033[1;31mmillrace:\033[0m ");
        terminal_say_raw(&prefix);
        buf_done(&prefix);
        terminal_say("%s\n", err->text);
    } else {
        terminal_say("millrace: %s\n", err->text);
    }
    if (as_json) {
        struct buf object = {0};
        struct error ignored;
        buf_format(&object, "{\"error\":{\"code\":\"%s\",\"message\":", status_name(err->code));
        print_json_string(text_of(err->text), &object);
        buf_put_string(&object, "}}\n");
        /* It was said on stderr already; an stdout that cannot be written to changes nothing. */
        status written = output_to_stdout(&object, NULL, &ignored);
        (void)written;
        buf_done(&object);
    }
    if (err->code == STATUS_USAGE) return COMMAND_WRONG_USAGE;
    return err->code == STATUS_UNREACHABLE ? COMMAND_UNREACHABLE : COMMAND_FAILED;
}

int command_print(const struct buf *text)
{
    struct error err;
    if (output_to_stdout(text, interrupt_flag(), &err) != STATUS_OK) {
        return command_fail(&err, false);
    }
    return COMMAND_ANSWERED;
}

int command_help(const struct command_spec *spec)
{
    struct buf text = {0};
    options_help(spec, &text);
    int code = command_print(&text);
    buf_done(&text);
    return code;
}

int command_simple(const struct command_spec *spec, command_body run, int argc, char *const *argv)
{
    struct arena arena = {0};
    struct options options;
    struct error err;
    int code = COMMAND_ANSWERED;
    status result = options_parse(spec, argc, argv, &arena, &options, &err);
    if (result == STATUS_OK && options.help) {
        code = command_help(spec);
    } else {
        if (result == STATUS_OK) result = run(&options, &arena, &err);
        if (result != STATUS_OK) code = command_fail(&err, options_want_json(argc, argv));
    }
    arena_done(&arena);
    return code;
}

static uint32_t count_commas(const char *value)
{
    uint32_t count = 0;
    for (const char *at = strchr(value, ','); at != NULL; at = strchr(at + 1, ',')) {
        count++;
    }
    return count;
}

status command_queries(const struct options *options, uint32_t option, struct arena *arena,
                       struct job_options *job, struct error *err)
{
    uint32_t capacity = 0;
    for (uint32_t i = 0; i < options->given_count; i++) {
        if (options->given[i].option == option) {
            capacity += 1 + count_commas(options->given[i].value);
        }
    }
    if (capacity == 0) return STATUS_OK;
    struct text *names = arena_array(arena, struct text, capacity);
    if (names == NULL) return error_memory(err);
    uint32_t count = 0;
    for (uint32_t i = 0; i < options->given_count; i++) {
        if (options->given[i].option != option) continue;
        for (const char *at = options->given[i].value; at != NULL;) {
            struct text name = {at, (uint32_t)strcspn(at, ",")};
            at = at[name.size] == ',' ? at + name.size + 1 : NULL;
            if (name.size == 0) {
                return error_set(err, STATUS_USAGE,
                                 "--query: a name is missing in `%.200s`; write --query q1,q3",
                                 options->given[i].value);
            }
            for (uint32_t j = 0; j < count; j++) {
                if (text_equal(names[j], name)) {
                    return error_set(err, STATUS_USAGE, "--query: `%.*s` is named twice",
                                     TEXT_ARGS(name));
                }
            }
            names[count++] = name;
        }
    }
    job->queries = names;
    job->query_count = count;
    return STATUS_OK;
}

status command_settings(const struct options *options, uint32_t option, struct arena *arena,
                        struct job_options *job, struct error *err)
{
    struct job_setting *settings =
        arena_array(arena, struct job_setting, (size_t)options->given_count + 1);
    if (settings == NULL) return error_memory(err);
    uint32_t count = 0;
    for (uint32_t i = 0; i < options->given_count; i++) {
        if (options->given[i].option != option) continue;
        const char *value = options->given[i].value;
        const char *equals = strchr(value, '=');
        if (equals == NULL || equals == value) {
            return error_set(err, STATUS_USAGE,
                             "--set: `%.200s` is not name=value; write --set year=2010", value);
        }
        struct job_setting setting = {
            .name = {value, (uint32_t)(equals - value)},
            .value = text_of(equals + 1),
        };
        for (uint32_t j = 0; j < count; j++) {
            if (text_equal(settings[j].name, setting.name)) {
                return error_set(err, STATUS_USAGE, "--set: `%.*s` is set twice",
                                 TEXT_ARGS(setting.name));
            }
        }
        settings[count++] = setting;
    }
    job->settings = settings;
    job->setting_count = count;
    return STATUS_OK;
}
