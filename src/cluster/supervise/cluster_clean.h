/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_clean.h - removes the files and queues of a stopped cluster: jobs of nodes, the folder of
 * the private broker, queues on a shared broker. Logs stay.
 */
#ifndef CLUSTER_SUPERVISE_CLUSTER_CLEAN_H
#define CLUSTER_SUPERVISE_CLUSTER_CLEAN_H

#include "engine/base/error.h"
#include "cluster/config/cluster_config.h"

struct clean_options {
    const struct cluster_config *config;
    const char *broker; /* Whose queues to delete, instead of the cluster file's; or NULL. */
};

/* STATUS_USAGE: a node still runs, and nothing was removed. */
MUST_USE status cluster_clean(const struct clean_options *options, struct error *err);

#endif
