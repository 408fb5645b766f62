/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_file.c - reads the file with the environment of this process. */
#include "cli/cluster/cluster_file.h"

#include <unistd.h>

status cluster_file_read(const char *command, const char *value, struct arena *arena,
                         struct cluster_config *out, struct error *err)
{
    if (value == NULL || value[0] == '\0') {
        return error_set(err, STATUS_USAGE, "%s needs a cluster file: -c cluster.ini", command);
    }
    return cluster_config_read(value, (const char *const *)environ, arena, out, err);
}

status cluster_file_level(const struct cluster_config *config, const char *value,
                          enum say_level *out, struct error *err)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    uint32_t choice = (uint32_t)config->log_level;
    if (value != NULL) TRY(option_choice("log-level", value, names, 4, &choice, err));
    *out = (enum say_level)choice;
    return STATUS_OK;
}

_Static_assert((int)CONFIG_LOG_ERROR == (int)SAY_ERROR, "levels are the same numbers");
_Static_assert((int)CONFIG_LOG_DEBUG == (int)SAY_DEBUG, "levels are the same numbers");
