/* SPDX-License-Identifier: Apache-2.0 */
/* up_monitored.h - `up` for a cluster with monitors; for up.c only.
 *
 * Monitors restart nodes, so `up` starts each node only once. To stop them it finds their processes
 * by the locks of their folders, since a monitor may have restarted them. All nodes exit with their
 * supervisor (supervisor_link.h), so that none outlives this process. Only when no monitor is left
 * does `up` restart the monitors.
 */
#ifndef CLUSTER_SUPERVISE_UP_MONITORED_H
#define CLUSTER_SUPERVISE_UP_MONITORED_H

#include "cluster/node/client_node.h"
#include "cluster/supervise/up.h"

struct up_monitored_options {
    const struct up_options *up;
    const struct gateway_call *call; /* Token and CA for calls of gateways. */
    /* Whether the addresses of the file are free; called when nodes left behind have ended. */
    status (*check_addresses)(const struct cluster_config *config, struct error *err);
};

/* The caller holds the lock of data_dir. Runs until `stop` is set, and returns when no node is
 * left. */
MUST_USE status up_monitored_run(const struct up_monitored_options *options, struct error *err);

#endif
