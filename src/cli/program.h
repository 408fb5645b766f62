/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - a program made of commands: finds the command and hands over. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include <stdint.h>

#include "cli/command.h"

/* A command of another program, which ours lists and starts as if it were its own. */
struct foreign_command {
    const char *name;
    const char *summary;
};

struct program {
    const char *name;
    const char *title; /* What it is for, in one line. */
    const struct command *const *commands;
    uint32_t command_count;
    const char *foreign_title; /* Stands above their list. */
    const struct foreign_command *foreign;
    uint32_t foreign_count;
    /* argv[1] is the command, argv[0] may be replaced; ends with NULL. Returns, with an exit code,
     * only when the other program could not be started. */
    int (*run_foreign)(char **argv);
    const char *notes; /* Examples and environment, after the lists. */
};

/* The whole of main(): gives the exit code. */
int program_main(const struct program *program, int argc, char **argv);

#endif
