/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_key.c - `millrace key`: the secret of a cluster. */
#include "cli/cluster_commands.h"
#include "cli/cluster/cluster_file.h"
#include "cli/cluster/cluster_program.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cluster/config/cluster_key.h"

enum { KEY_CONFIG, KEY_OPTIONS };

static const struct option_spec key_options[KEY_OPTIONS] = {
    [KEY_CONFIG] = CLUSTER_FILE_OPTION_SPEC,
};

static const struct command_spec key_spec = {
    .name = "key",
    .arguments = "-c FILE",
    .summary = SUMMARY_KEY,
    .about =
        "Prints the path of the key file; an existing key is kept. Only its owner may read it.\n"
        "`millrace up` makes it by itself; where nodes run on several hosts, copy it to each of\n"
        "them, as secretly as a password.",
    .examples = "  millrace key -c cluster.ini\n",
    .options = key_options,
    .option_count = KEY_OPTIONS,
};

static status run(const struct options *options, struct arena *arena, struct error *err)
{
    struct cluster_config config;
    bool is_new = false;
    TRY(cluster_file_read("key", options_value(options, KEY_CONFIG), arena, &config, err));
    TRY(cluster_key_make(config.key_file, &is_new, err));
    terminal_say(is_new ? "made a new key\n" : "there is a key already; it stays\n");
    struct buf line = {0};
    buf_format(&line, "%s\n", config.key_file);
    status result = output_to_stdout(&line, NULL, err);
    buf_done(&line);
    return result;
}

static int key_main(int argc, char *const *argv)
{
    return command_simple(&key_spec, run, argc, argv);
}

const struct command command_key = {.spec = &key_spec, .run = key_main};
