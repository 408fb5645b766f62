/* SPDX-License-Identifier: Apache-2.0 */
/* up.h - a whole cluster on this host: starts its processes, and restarts those that end.
 *
 * It starts the private broker first, if the file asks for one; then gateways and workers, each as
 * a process that could also be started by hand. The cluster is ready when every worker is connected
 * to the broker and every gateway answers.
 *
 * With monitors in the file, these supervise the nodes: see up_monitored.h. Without, a process that
 * ends is restarted after a back-off. Before the cluster is ready for the first time, a node that
 * ends within a second five times in a row fails `up`; later no node does, since the others have
 * jobs in flight. To stop, it sends SIGTERM to nodes, and SIGKILL after a deadline; the broker
 * stops last. No child outlives this process, however it ends.
 *
 * Threads: everything happens on the caller's thread, which must live as long as the cluster,
 * except the broker, which has its own thread.
 */
#ifndef CLUSTER_SUPERVISE_UP_H
#define CLUSTER_SUPERVISE_UP_H

#include <stdatomic.h>

#include "engine/base/error.h"
#include "cluster/config/cluster_config.h"

struct up_options {
    const struct cluster_config *config;
    const char *program;     /* This program, which nodes run too. */
    const char *log_level;   /* Of the nodes; NULL: the configuration's. */
    const atomic_bool *stop; /* Set by a signal. */
    void *context;
    void (*ready)(void *context); /* Called once. */
    /* A line for people, without its end; from any thread. */
    void (*say)(void *context, const char *line);
};

/* Runs until `stop` is set: STATUS_OK. STATUS_IO: the cluster cannot start. */
MUST_USE status up_run(const struct up_options *options, struct error *err);

#endif
