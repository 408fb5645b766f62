/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - the words before a command's own: help, --version, and the command's name. */
#include "cli/program.h"

#include <string.h>

#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "engine/base/assert.h"

enum { NAMES_MAX = 64 };

static void put_overview(const struct program *program, struct buf *out)
{
    buf_format(out, "%s - %s\n\nusage: %s COMMAND [arguments] [options]\n\ncommands:\n",
               program->name, program->title, program->name);
    for (uint32_t i = 0; i < program->command_count; i++) {
        const struct command_spec *spec = program->commands[i]->spec;
        buf_format(out, "  %-10s %s\n", spec->name, spec->summary);
    }
    if (program->foreign_count > 0) buf_format(out, "\n%s\n", program->foreign_title);
    for (uint32_t i = 0; i < program->foreign_count; i++) {
        buf_format(out, "  %-10s %s\n", program->foreign[i].name, program->foreign[i].summary);
    }
    buf_format(out,
               "\n`%s help COMMAND` describes a command; `%s --version` prints the version.\n\n%s",
               program->name, program->name, program->notes);
}

static int show_overview(const struct program *program)
{
    struct buf text = {0};
    put_overview(program, &text);
    int code = command_print(&text);
    buf_done(&text);
    return code;
}

static int show_version(const struct program *program)
{
    struct buf text = {0};
    buf_format(&text, "%s " MILLRACE_VERSION "\n", program->name);
    int code = command_print(&text);
    buf_done(&text);
    return code;
}

static const struct command *find_command(const struct program *program, const char *name)
{
    for (uint32_t i = 0; i < program->command_count; i++) {
        if (strcmp(program->commands[i]->spec->name, name) == 0) return program->commands[i];
    }
    return NULL;
}

static bool is_foreign(const struct program *program, const char *name)
{
    for (uint32_t i = 0; i < program->foreign_count; i++) {
        if (strcmp(program->foreign[i].name, name) == 0) return true;
    }
    return false;
}

static int unknown_command(const struct program *program, const char *name, bool as_json)
{
    const char *names[NAMES_MAX] = {"help"};
    uint32_t count = 1;
    ASSERT(program->command_count + program->foreign_count < NAMES_MAX);
    for (uint32_t i = 0; i < program->command_count; i++) {
        names[count++] = program->commands[i]->spec->name;
    }
    for (uint32_t i = 0; i < program->foreign_count; i++) {
        names[count++] = program->foreign[i].name;
    }
    char suggestion[64];
    struct error err;
    options_suggest(name, names, count, suggestion, sizeof suggestion);
    (void)!error_set(&err, STATUS_USAGE, "there is no %s `%.100s`%s\n`%s help` lists the commands",
                     name[0] == '-' ? "option" : "command", name, suggestion, program->name);
    return command_fail(&err, as_json);
}

static bool is_help(const char *word)
{
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int run_help(const struct program *program, int argc, char **argv)
{
    if (argc == 0 || is_help(argv[0])) return show_overview(program);
    const struct command *command = find_command(program, argv[0]);
    if (command != NULL) return command_help(command->spec);
    if (!is_foreign(program, argv[0])) return unknown_command(program, argv[0], false);
    char help[] = "--help";
    char *words[] = {NULL, argv[0], help, NULL};
    return program->run_foreign(words);
}

int program_main(const struct program *program, int argc, char **argv)
{
    interrupt_install();
    if (argc < 2) {
        struct buf text = {0};
        put_overview(program, &text);
        terminal_say_raw(&text);
        buf_done(&text);
        return COMMAND_WRONG_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "help") == 0) return run_help(program, argc - 2, argv + 2);
    if (is_help(word)) return show_overview(program);
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) return show_version(program);
    const struct command *command = find_command(program, word);
    if (command != NULL) return command->run(argc - 2, argv + 2);
    if (is_foreign(program, word)) return program->run_foreign(argv);
    return unknown_command(program, word, options_want_json(argc - 2, argv + 2));
}
