/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_file.h - -c FILE, and the nodes that it names. */
#ifndef CLI_CLUSTER_CLUSTER_FILE_H
#define CLI_CLUSTER_CLUSTER_FILE_H

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "cli/options.h"
#include "cluster/config/cluster_config.h"
#include "cluster/role/event.h"

#define CLUSTER_FILE_OPTION_SPEC                                                                   \
    {                                                                                              \
        "config", "FILE", "the cluster file", false, 'c'                                           \
    }
#define LOG_LEVEL_OPTION_SPEC                                                                      \
    {                                                                                              \
        "log-level", "LEVEL", "error, warn, info or debug; default: log_level of FILE", false, 0   \
    }

/* Without a value, an error says that `command` needs it. Memory from the arena. */
MUST_USE status cluster_file_read(const char *command, const char *value, struct arena *arena,
                                  struct cluster_config *out, struct error *err);
/* The file's level when `value` is NULL. */
MUST_USE status cluster_file_level(const struct cluster_config *config, const char *value,
                                   enum say_level *out, struct error *err);

#endif
