/* main.c - finds the command and hands over. */
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"

static const struct command *const commands[] = {
    &command_run,    &command_explain, &command_gen,     &command_up,      &command_submit,
    &command_status, &command_jobs,    &command_cancel,  &command_stop,    &command_chaos,
    &command_clean,  &command_gateway, &command_worker,  &command_monitor, &command_broker,
    &command_node,   &command_health,  &command_compose, &command_config,  &command_key,
    &command_sim,
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void put_overview(struct buf *out)
{
    buf_put_string(out, "millrace - exact answers to SQL questions over CSV files\n\n"
                        "usage: millrace COMMAND [arguments] [options]\n\ncommands:\n");
    for (size_t i = 0; i < COMMANDS; i++) {
        buf_format(out, "  %-10s %s\n", commands[i]->spec->name, commands[i]->spec->summary);
    }
    buf_put_string(out, "\n`millrace help COMMAND` says more; `millrace --version` names the "
                        "version.\n\nexample:\n"
                        "  millrace gen movies /tmp/movies --scale 0.1\n"
                        "  millrace run movies /tmp/movies\n"
                        "or, with a cluster:\n"
                        "  millrace up -c cluster.ini &\n"
                        "  millrace submit movies /tmp/movies -g 127.0.0.1:7101\n\n"
                        "environment:\n"
                        "  MILLRACE_ANALYSES       a folder with analyses of your own, found by "
                        "name\n"
                        "  MILLRACE_CLUSTER_CA     the CA file of a cluster whose gateways speak "
                        "https\n"
                        "  MILLRACE_CLUSTER_TOKEN  bearer token for the cluster\n"
                        "  MILLRACE_STATE_DIR      where `submit` keeps journals of its jobs\n"
                        "  NO_COLOR                when set, no colours on terminals\n");
}

static int show_overview(void)
{
    struct buf text = {0};
    put_overview(&text);
    int code = command_print(&text);
    buf_done(&text);
    return code;
}

static int show_version(void)
{
    struct buf text = {0};
    buf_put_string(&text, "millrace " MILLRACE_VERSION "\n");
    int code = command_print(&text);
    buf_done(&text);
    return code;
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i]->spec->name, name) == 0) return commands[i];
    }
    return NULL;
}

static int unknown_command(const char *name, bool as_json)
{
    const char *names[COMMANDS + 1];
    for (size_t i = 0; i < COMMANDS; i++) {
        names[i] = commands[i]->spec->name;
    }
    names[COMMANDS] = "help";
    char suggestion[64];
    struct error err;
    options_suggest(name, names, COMMANDS + 1, suggestion, sizeof suggestion);
    (void)!error_set(&err, STATUS_USAGE,
                     "there is no %s `%.100s`%s\n`millrace help` lists the commands",
                     name[0] == '-' ? "option" : "command", name, suggestion);
    return command_fail(&err, as_json);
}

static bool is_one_of(const char *word, const char *a, const char *b)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

static int run_help(int argc, char *const *argv)
{
    if (argc == 0 || is_one_of(argv[0], "--help", "-h") || strcmp(argv[0], "help") == 0) {
        return show_overview();
    }
    const struct command *command = find_command(argv[0]);
    return command != NULL ? command_help(command->spec) : unknown_command(argv[0], false);
}

int main(int argc, char **argv)
{
    interrupt_install();
    if (argc < 2) {
        struct buf text = {0};
        put_overview(&text);
        terminal_say_raw(&text);
        buf_done(&text);
        return COMMAND_WRONG_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "help") == 0) return run_help(argc - 2, argv + 2);
    if (is_one_of(word, "--help", "-h")) return show_overview();
    if (is_one_of(word, "--version", "-V")) return show_version();
    const struct command *command = find_command(word);
    if (command == NULL) return unknown_command(word, options_want_json(argc - 2, argv + 2));
    return command->run(argc - 2, argv + 2);
}
