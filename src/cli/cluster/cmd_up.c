/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_up.c - `millrace up`: a whole cluster on this host, until Ctrl-C. */
#include <limits.h>
#include <unistd.h>

#include "cli/cluster_commands.h"
#include "cli/cluster/cluster_file.h"
#include "cli/cluster/cluster_program.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "cluster/supervise/up.h"

enum { UP_CONFIG, UP_LOG_LEVEL, UP_OPTIONS };

static const struct option_spec up_options_given[UP_OPTIONS] = {
    [UP_CONFIG] = CLUSTER_FILE_OPTION_SPEC,
    [UP_LOG_LEVEL] = LOG_LEVEL_OPTION_SPEC,
};

static const struct command_spec up_spec = {
    .name = "up",
    .arguments = "-c FILE",
    .summary = SUMMARY_UP,
    .about =
        "Starts the broker (when the file says `broker = start`), gateways, workers and monitors,\n"
        "and prints `ready` on stdout when jobs are accepted. Dead nodes are restarted, by the\n"
        "monitors if there are any. Ctrl-C or SIGTERM ends all of it cleanly; a second one at\n"
        "once. The file is described in docs/reference/cluster-file.md; its smallest form:\n\n"
        "  [cluster]\n"
        "  broker = start\n"
        "  [gateways]\n"
        "  g1 = 127.0.0.1:7101\n"
        "  [workers]\n"
        "  count = 3",
    .examples = "  millrace up -c cluster.ini\n",
    .options = up_options_given,
    .option_count = UP_OPTIONS,
};

static void on_ready(void *context)
{
    (void)context;
    struct buf line = {0};
    buf_put_string(&line, "ready\n");
    /* A reader that is gone does not matter to the cluster; the failure has been told. */
    (void)command_print(&line);
    buf_done(&line);
}

static void on_say(void *context, const char *line)
{
    (void)context;
    terminal_say("%s\n", line);
}

static status run(const struct options *options, struct arena *arena, struct error *err)
{
    struct cluster_config config;
    enum say_level level;
    char program[PATH_MAX];
    const char *level_name = options_value(options, UP_LOG_LEVEL);
    TRY(cluster_file_read("up", options_value(options, UP_CONFIG), arena, &config, err));
    TRY(cluster_file_level(&config, level_name, &level, err));
    ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
    if (size <= 0) {
        return error_set(err, STATUS_IO, "cannot find this program in /proc/self/exe");
    }
    program[size] = '\0';
    struct up_options up = {
        .config = &config,
        .program = program,
        .log_level = level_name,
        .stop = interrupt_flag(),
        .ready = on_ready,
        .say = on_say,
    };
    return up_run(&up, err);
}

static int up_main(int argc, char *const *argv)
{
    return command_simple(&up_spec, run, argc, argv);
}

const struct command command_up = {.spec = &up_spec, .run = up_main};
