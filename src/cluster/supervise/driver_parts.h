/* SPDX-License-Identifier: Apache-2.0 */
/* driver_parts.h - state that the kinds of driver share; for driver*.c only.
 *
 * Each kind is one function that applies one action to one node.
 */
#ifndef CLUSTER_SUPERVISE_DRIVER_PARTS_H
#define CLUSTER_SUPERVISE_DRIVER_PARTS_H

#include <pthread.h>

#include "engine/base/arena.h"
#include "cluster/supervise/spawn.h"
#include "cluster/config/cluster_nodes.h"
#include "cluster/supervise/driver.h"

/* A node that was started here, until it is reaped. */
struct driver_child {
    struct driver_child *next;
    struct spawn process;
    const char *name; /* Lives in the driver's arena. */
};

struct driver {
    struct driver_options options;
    struct arena arena; /* Filled by driver_open; only read later. */
    struct cluster_nodes nodes;
    const char *const *environment; /* Of restarted nodes; NULL: ours. */

    pthread_mutex_t mutex; /* Guards the list. */
    struct driver_child *children;
};

struct driver_call {
    struct driver *driver;
    enum driver_action action;
    const struct cluster_node *node;
    struct arena *arena; /* For the call. */
};

MUST_USE status driver_process_do(const struct driver_call *call, struct error *err);
MUST_USE status driver_docker_do(const struct driver_call *call, struct error *err);
MUST_USE status driver_command_do(const struct driver_call *call, struct error *err);

/* Of the node to start; NULL: ours. A restarted node loses its crash points. */
const char *const *driver_environment(const struct driver *driver);

#endif
