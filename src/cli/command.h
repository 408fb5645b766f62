/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - the commands, and the one way a failure is told. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "cli/options.h"
#include "engine/local/job.h"

/* Exit codes. */
enum {
    COMMAND_ANSWERED = 0,
    COMMAND_FAILED = 1,
    COMMAND_WRONG_USAGE = 2,
    COMMAND_UNREACHABLE = 3 /* No gateway of the cluster. */
};

struct command {
    const struct command_spec *spec;
    /* argv[0] is the first word after the command's name; gives an exit code. */
    int (*run)(int argc, char *const *argv);
};

/* Says what is wrong on stderr, and on stdout as JSON when that was asked for; gives the exit code.
 */
int command_fail(const struct error *err, bool as_json);
/* Writes to stdout; gives the exit code. */
int command_print(const struct buf *text);
int command_help(const struct command_spec *spec);

/* A whole command: parses, shows help, runs, tells a failure; gives the exit code. What `run` gets
 * lives as long as it runs. */
typedef status (*command_body)(const struct options *options, struct arena *arena,
                               struct error *err);
int command_simple(const struct command_spec *spec, command_body run, int argc, char *const *argv);

/* --query a,b and --set name=value, given any number of times, as the job takes them. */
MUST_USE status command_queries(const struct options *options, uint32_t option, struct arena *arena,
                                struct job_options *job, struct error *err);
MUST_USE status command_settings(const struct options *options, uint32_t option,
                                 struct arena *arena, struct job_options *job, struct error *err);

#endif
