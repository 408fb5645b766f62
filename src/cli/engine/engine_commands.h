/* SPDX-License-Identifier: Apache-2.0 */
/* engine_commands.h - the commands of millrace. */
#ifndef CLI_ENGINE_ENGINE_COMMANDS_H
#define CLI_ENGINE_ENGINE_COMMANDS_H

#include "cli/command.h"

extern const struct command command_run;
extern const struct command command_explain;
extern const struct command command_gen;

#endif
