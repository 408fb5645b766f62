/* SPDX-License-Identifier: Apache-2.0 */
/* millrace_cluster.c - the program of the cluster's commands; people start it by typing `millrace`.
 */
#include "cli/cluster/cluster_program.h"
#include "cli/program.h"

static const struct command *const commands[] = {
    &command_up,      &command_submit, &command_status, &command_jobs,    &command_cancel,
    &command_stop,    &command_chaos,  &command_clean,  &command_gateway, &command_worker,
    &command_monitor, &command_broker, &command_node,   &command_health,  &command_compose,
    &command_config,  &command_key,    &command_sim,
};

int main(int argc, char **argv)
{
    static const struct program program = {
        .name = "millrace-cluster",
        .title = "the cluster of millrace; `millrace COMMAND` starts it too",
        .commands = commands,
        .command_count = sizeof commands / sizeof commands[0],
        .notes = "example:\n"
                 "  millrace-cluster up -c cluster.ini &\n"
                 "  millrace-cluster submit movies /tmp/movies -g 127.0.0.1:7101\n",
    };
    return program_main(&program, argc, argv);
}
