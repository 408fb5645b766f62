/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_program.h - the commands of millrace-cluster. */
#ifndef CLI_CLUSTER_CLUSTER_PROGRAM_H
#define CLI_CLUSTER_CLUSTER_PROGRAM_H

#include "cli/command.h"

extern const struct command command_submit;
extern const struct command command_up;
extern const struct command command_gateway;
extern const struct command command_worker;
extern const struct command command_monitor;
extern const struct command command_broker;
extern const struct command command_node;
extern const struct command command_health;
extern const struct command command_status;
extern const struct command command_jobs;
extern const struct command command_cancel;
extern const struct command command_clean;
extern const struct command command_stop;
extern const struct command command_chaos;
extern const struct command command_compose;
extern const struct command command_config;
extern const struct command command_key;
extern const struct command command_sim;

#endif
