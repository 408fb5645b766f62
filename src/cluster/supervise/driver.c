/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c - dispatches to the kind of driver, and keeps the list of children. */
#include "cluster/supervise/driver.h"

#include "engine/base/memory.h"
#include "cluster/supervise/driver_parts.h"
#include "cluster/supervise/later_environment.h"

const char *const *driver_environment(const struct driver *driver)
{
    return driver->options.is_first_incarnation ? NULL : driver->environment;
}

status driver_open(const struct driver_options *options, struct driver **out, struct error *err)
{
    struct driver *driver = memory_alloc(NULL, sizeof *driver);
    if (driver == NULL) return error_memory(err);
    *driver = (struct driver){.options = *options};
    pthread_mutex_init(&driver->mutex, NULL);
    status result = cluster_nodes_list(options->config, &driver->arena, &driver->nodes, err);
    if (result == STATUS_OK) {
        result = later_environment_make(&driver->arena, &driver->environment, err);
    }
    if (result != STATUS_OK) {
        driver_close(driver);
        return result;
    }
    *out = driver;
    return STATUS_OK;
}

status driver_do(struct driver *driver, enum driver_action action, const char *node,
                 struct error *err)
{
    static status (*const kinds[])(const struct driver_call *, struct error *) = {
        [CONFIG_DRIVER_PROCESS] = driver_process_do,
        [CONFIG_DRIVER_DOCKER] = driver_docker_do,
        [CONFIG_DRIVER_COMMAND] = driver_command_do,
    };
    struct arena arena = {0};
    struct driver_call call = {
        .driver = driver,
        .action = action,
        .node = cluster_nodes_find(&driver->nodes, node),
        .arena = &arena,
    };
    const struct cluster_config *config = driver->options.config;
    if (call.node == NULL) {
        return error_set(err, STATUS_USAGE, "%s has no node `%.100s`", config->path, node);
    }
    status result = kinds[config->driver](&call, err);
    arena_done(&arena);
    return result;
}

status driver_restart(struct driver *driver, const char *node, struct error *err)
{
    bool is_command = driver->options.config->driver == CONFIG_DRIVER_COMMAND;
    struct error said;
    status killed = driver_do(driver, DRIVER_KILL, node, err);
    if (killed != STATUS_OK && !(is_command && killed == STATUS_IO)) return killed;
    if (killed != STATUS_OK) said = *err;
    status result = driver_do(driver, DRIVER_START, node, err);
    if (result == STATUS_OK || killed == STATUS_OK) return result;
    struct error last = *err;
    return error_set(err, result, "%.1000s; before that, %.1000s", last.text, said.text);
}

static void child_free(struct driver_child *child)
{
    spawn_close(&child->process);
    memory_free(NULL, child, sizeof *child);
}

void driver_sweep(struct driver *driver)
{
    struct driver_child *ended = NULL;
    pthread_mutex_lock(&driver->mutex);
    struct driver_child **link = &driver->children;
    while (*link != NULL) {
        struct driver_child *child = *link;
        if (!spawn_poll(&child->process)) {
            link = &child->next;
            continue;
        }
        *link = child->next;
        child->next = ended;
        ended = child;
    }
    pthread_mutex_unlock(&driver->mutex);
    while (ended != NULL) {
        struct driver_child *next = ended->next;
        if (driver->options.ended != NULL) {
            driver->options.ended(driver->options.context, ended->name, &ended->process.end);
        }
        child_free(ended);
        ended = next;
    }
}

void driver_close(struct driver *driver)
{
    if (driver == NULL) return;
    while (driver->children != NULL) {
        struct driver_child *next = driver->children->next;
        child_free(driver->children);
        driver->children = next;
    }
    pthread_mutex_destroy(&driver->mutex);
    arena_done(&driver->arena);
    memory_free(NULL, driver, sizeof *driver);
}
