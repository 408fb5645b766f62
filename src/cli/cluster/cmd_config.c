/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_config.c - `millrace config`: lists the keys of a cluster file, or checks one. */
#include "cli/cluster_commands.h"
#include "cli/cluster/cluster_file.h"
#include "cli/cluster/cluster_program.h"
#include "cli/output.h"
#include "cluster/config/config_keys.h"

enum { CONFIG_FILE, CONFIG_OPTIONS };

static const struct option_spec config_options[CONFIG_OPTIONS] = {
    [CONFIG_FILE] = CLUSTER_FILE_OPTION_SPEC,
};

static const struct command_spec config_spec = {
    .name = "config",
    .arguments = "[-c FILE]",
    .summary = SUMMARY_CONFIG,
    .about =
        "With -c, reads the file and the environment as a node does, and counts the nodes. Exit\n"
        "code: 0 the file is right, 1 it is not; the message names the line. Without -c, prints\n"
        "every key with its default and the values that it takes.",
    .examples = "  millrace config -c cluster.ini\n"
                "  millrace config | grep timeout\n",
    .options = config_options,
    .option_count = CONFIG_OPTIONS,
};

static status run(const struct options *options, struct arena *arena, struct error *err)
{
    const char *path = options_value(options, CONFIG_FILE);
    struct buf text = {0};
    if (path == NULL) {
        config_keys_put(&text);
    } else {
        struct cluster_config config;
        TRY(cluster_file_read("config", path, arena, &config, err));
        buf_format(&text, "%s: gateways %u, workers %u, monitors %u\n", path, config.gateway_count,
                   config.worker_count, config.monitor_count);
    }
    status result = output_to_stdout(&text, NULL, err);
    buf_done(&text);
    return result;
}

static int config_main(int argc, char *const *argv)
{
    return command_simple(&config_spec, run, argc, argv);
}

const struct command command_config = {.spec = &config_spec, .run = config_main};
