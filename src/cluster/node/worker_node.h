/* worker_node.h - a worker as a process: threads, files and the broker around
 * cluster/role/worker/worker.h.
 *
 * The caller's thread runs the role; maps run on threads of their own, the bus on its own.
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
    const char *level_name; /* As it was given, for nodes that this one starts; may be NULL. */
    const char *broker; /* A URI instead of the configuration's; NULL with `broker = start`: the one
                           that the broker's supervisor has written down. */
    const char *supervisor_link;          /* A folder: see supervisor link.h; may be NULL. */
    const struct node_analysis *analyses; /* Gateways. */
    uint32_t analysis_count;
    const atomic_bool *stop;      /* Set by a signal: finish what is in flight, then return. */
    void (*ready)(void *context); /* Connected for the first time; may be NULL. */
    /* The broker can't be used for now, and why; may be NULL. From any thread. */
    void (*trouble)(void *context, const char *text);
    void *context;
};

/* Runs until it is told to stop. STATUS_OK: all was finished. */
MUST_USE status worker_node_run(const struct node_options *options, struct error *err);
MUST_USE status gateway_node_run(const struct node_options *options, struct error *err);

#endif
