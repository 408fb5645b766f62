/* cluster_clean.h - removes what a stopped cluster has left behind: jobs of nodes, the private
 * broker's folder, queues of a broker that is somebody else's. Logs stay.
 */
#ifndef CLUSTER_SUPERVISE_CLUSTER_CLEAN_H
#define CLUSTER_SUPERVISE_CLUSTER_CLEAN_H

#include "engine/base/error.h"
#include "cluster/config/cluster_config.h"

struct clean_options {
    const struct cluster_config *config;
    const char *broker; /* One whose queues are to go, instead of the configuration's; or NULL. */
};

/* STATUS_USAGE: some node still runs, and nothing was removed. */
MUST_USE status cluster_clean(const struct clean_options *options, struct error *err);

#endif
