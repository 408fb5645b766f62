/* SPDX-License-Identifier: Apache-2.0 */
/* millrace.c - the program for one process; it starts millrace-cluster for the cluster's commands.
 *
 * A question about files needs no HTTP, AMQP or TLS library, and linking them took most of the time
 * of a short command. So the cluster is a program of its own, and `millrace up` becomes
 * it, as git becomes its commands: found beside this program, or in its libexec folder.
 */
#include <string.h>
#include <unistd.h>

#include "cli/cluster_commands.h"
#include "cli/engine/engine_commands.h"
#include "cli/program.h"

enum { PROGRAM_PATH_SIZE = 4096 };

#define CLUSTER_PROGRAM "millrace-cluster"

static const struct command *const commands[] = {&command_run, &command_explain, &command_gen};

static const struct foreign_command cluster_commands[] = {
    {"up", SUMMARY_UP},         {"submit", SUMMARY_SUBMIT},   {"status", SUMMARY_STATUS},
    {"jobs", SUMMARY_JOBS},     {"cancel", SUMMARY_CANCEL},   {"stop", SUMMARY_STOP},
    {"chaos", SUMMARY_CHAOS},   {"clean", SUMMARY_CLEAN},     {"gateway", SUMMARY_GATEWAY},
    {"worker", SUMMARY_WORKER}, {"monitor", SUMMARY_MONITOR}, {"broker", SUMMARY_BROKER},
    {"node", SUMMARY_NODE},     {"health", SUMMARY_HEALTH},   {"compose", SUMMARY_COMPOSE},
    {"config", SUMMARY_CONFIG}, {"key", SUMMARY_KEY},         {"sim", SUMMARY_SIM},
};

/* Gives the folder of the running program with its last slash; empty: not known. */
static void own_folder(char out[PROGRAM_PATH_SIZE])
{
    ssize_t size = readlink("/proc/self/exe", out, PROGRAM_PATH_SIZE - sizeof CLUSTER_PROGRAM);
    out[size > 0 ? size : 0] = '\0';
    char *slash = strrchr(out, '/');
    out[slash != NULL ? slash + 1 - out : 0] = '\0';
}

static int run_cluster_program(char **argv)
{
    char path[PROGRAM_PATH_SIZE];
    static char name[] = CLUSTER_PROGRAM;
    argv[0] = name;
    own_folder(path);
    size_t size = strlen(path);
    if (size > 0) {
        memcpy(path + size, CLUSTER_PROGRAM, sizeof CLUSTER_PROGRAM);
        (void)execv(path, argv); /* It returns only where there is no such program. */
    }
    (void)execv(MILLRACE_LIBEXEC_DIR "/" CLUSTER_PROGRAM, argv);
    struct error err;
    (void)!error_set(&err, STATUS_USAGE,
                     "`%s` is a command of " CLUSTER_PROGRAM ", which is not installed\n"
                     "install the package millrace-cluster, or put the program beside this one",
                     argv[1]);
    return command_fail(&err, false);
}

int main(int argc, char **argv)
{
    static const struct program program = {
        .name = "millrace",
        .title = "exact answers to SQL questions over CSV files",
        .commands = commands,
        .command_count = sizeof commands / sizeof commands[0],
        .foreign_title = "commands of a cluster (" CLUSTER_PROGRAM "):",
        .foreign = cluster_commands,
        .foreign_count = sizeof cluster_commands / sizeof cluster_commands[0],
        .run_foreign = run_cluster_program,
        .notes = "example:\n"
                 "  millrace gen movies /tmp/movies --scale 0.1\n"
                 "  millrace run movies /tmp/movies\n"
                 "or, with a cluster:\n"
                 "  millrace up -c cluster.ini &\n"
                 "  millrace submit movies /tmp/movies -g 127.0.0.1:7101\n\n"
                 "environment:\n"
                 "  MILLRACE_ANALYSES       a folder with analyses of your own, found by name\n"
                 "  MILLRACE_CLUSTER_CA     the CA file of a cluster whose gateways speak https\n"
                 "  MILLRACE_CLUSTER_TOKEN  the bearer token of a cluster that has one\n"
                 "  MILLRACE_STATE_DIR      where `submit` keeps journals of its jobs\n"
                 "  NO_COLOR                when set, no colours on terminals\n",
    };
    return program_main(&program, argc, argv);
}
