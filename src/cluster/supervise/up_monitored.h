/* up_monitored.h - `up` for a cluster with monitors; for up.c only.
 *
 * Monitors see to it that nodes live, so here they are only started, once, and found again by the
 * locks of their folders when they are to stop: by then somebody else may have started them. All
 * are on a supervisor link (supervisor link.h), so that nothing outlives this process. Only when no
 * monitor is left are they started from here.
 */
#ifndef CLUSTER_SUPERVISE_UP_MONITORED_H
#define CLUSTER_SUPERVISE_UP_MONITORED_H

#include "cluster/node/client_node.h"
#include "cluster/supervise/up.h"

struct up_monitored_options {
    const struct up_options *up;
    const struct gateway_call *call; /* How gateways are reached; what is asked is filled in. */
    /* Whether the addresses of the file can be used; after what was left behind has ended. */
    status (*check_addresses)(const struct cluster_config *config, struct error *err);
};

/* The data folder is ours. Runs until it is told to stop, and returns when no node is left. */
MUST_USE status up_monitored_run(const struct up_monitored_options *options, struct error *err);

#endif
