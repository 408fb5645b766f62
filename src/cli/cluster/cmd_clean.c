/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_clean.c - `millrace clean`: removes the files and queues of a stopped cluster. */
#include "cli/cluster_commands.h"
#include "cli/cluster/cluster_file.h"
#include "cli/cluster/cluster_program.h"
#include "cli/terminal.h"
#include "cluster/supervise/cluster_clean.h"

enum { CLEAN_CONFIG, CLEAN_BROKER, CLEAN_OPTIONS };

static const struct option_spec clean_options_given[CLEAN_OPTIONS] = {
    [CLEAN_CONFIG] = CLUSTER_FILE_OPTION_SPEC,
    [CLEAN_BROKER] = {"broker", "URI", "whose queues are to go, instead of the file's", false, 0},
};

static const struct command_spec clean_spec = {
    .name = "clean",
    .arguments = "-c FILE",
    .summary = SUMMARY_CLEAN,
    .about =
        "Removes jobs that nodes have on their disks, the folder of a private broker, and the\n"
        "cluster's queues on a broker that the file names. Logs stay. Refused while any node\n"
        "on this host runs. A cluster can be started again without it: workers remove the jobs\n"
        "of clients that are gone.",
    .examples = "  millrace clean -c cluster.ini\n",
    .options = clean_options_given,
    .option_count = CLEAN_OPTIONS,
};

static status run(const struct options *options, struct arena *arena, struct error *err)
{
    struct cluster_config config;
    TRY(cluster_file_read("clean", options_value(options, CLEAN_CONFIG), arena, &config, err));
    struct clean_options clean = {
        .config = &config,
        .broker = options_value(options, CLEAN_BROKER),
    };
    TRY(cluster_clean(&clean, err));
    terminal_say("cleaned %s\n", config.data_dir);
    return STATUS_OK;
}

static int clean_main(int argc, char *const *argv)
{
    return command_simple(&clean_spec, run, argc, argv);
}

const struct command command_clean = {.spec = &clean_spec, .run = clean_main};
