/* up.h - a whole cluster on this host: starts its processes, and starts again what dies.
 *
 * The broker first, if there is to be a private one; then gateways and workers, each a process of
 * its own that could as well have been started by hand. Ready is when every worker has its broker
 * and every gateway answers.
 *
 * With monitors in the file, these look after the nodes: see up_watched.h. Without, a process that
 * ends is started again after a back-off. Before the cluster is ready for the first
 * time, one that can't live for a second, five times in a row, fails the whole; later nothing does:
 * the others have work in flight. When told to stop: nodes are asked to, have a deadline, and are
 * then killed; the broker goes last. However this process ends, nothing outlives it.
 *
 * Threads: everything happens on the caller's thread, which must live as long as the cluster, but
 * for the broker, which has one of its own.
 */
#ifndef CLUSTER_SUPERVISE_UP_H
#define CLUSTER_SUPERVISE_UP_H

#include <stdatomic.h>

#include "engine/base/error.h"
#include "cluster/config/cluster_config.h"

struct up_options {
    const struct cluster_config *config;
    const char *program;     /* Ourselves: what nodes are started with. */
    const char *log_level;   /* Of the nodes; NULL: as the configuration says. */
    const atomic_bool *stop; /* Set by a signal. */
    void *context;
    void (*ready)(void *context); /* Called once. */
    /* A line for people, without its end; from any thread. */
    void (*say)(void *context, const char *line);
};

/* Runs until it is told to stop: STATUS_OK. STATUS_IO: something is in the way of the cluster. */
MUST_USE status up_run(const struct up_options *options, struct error *err);

#endif
