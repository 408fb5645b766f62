/* SPDX-License-Identifier: Apache-2.0 */
/* worker_node.h - a worker as a process: threads, files and the broker around
 * cluster/role/worker/worker.h.
 *
 * The caller's thread runs the role; maps run on a pool of threads, the bus on its own two.
 */
#ifndef CLUSTER_NODE_WORKER_NODE_H
#define CLUSTER_NODE_WORKER_NODE_H

#include <stdatomic.h>

#include "engine/base/error.h"
#include "cluster/config/cluster_config.h"
#include "cluster/role/event.h"

/* An analysis that clients may name instead of sending its SQL. */
struct node_analysis {
    const char *name;
    const char *folder;
};

struct node_options {
    const struct cluster_config *config;
    const char *name;
    enum say_level level;
    const char *level_name; /* As given, for nodes that this one starts; may be NULL. */
    const char *broker; /* A URI instead of the configuration's. NULL with `broker = start`: the URI
                           in the broker's folder. */
    const char *supervisor_link;          /* A folder: see supervisor_link.h; may be NULL. */
    const struct node_analysis *analyses; /* Gateways. */
    uint32_t analysis_count;
    const atomic_bool *stop;      /* Set by a signal: finish work in flight, then return. */
    void (*ready)(void *context); /* Connected for the first time; may be NULL. */
    /* The broker can't be used now, and why; may be NULL. From any thread. */
    void (*trouble)(void *context, const char *text);
    void *context;
};

/* Both run until they are told to stop. STATUS_OK: all work in flight was finished. */
MUST_USE status worker_node_run(const struct node_options *options, struct error *err);
MUST_USE status gateway_node_run(const struct node_options *options, struct error *err);

#endif
