/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_nodes.h - all nodes of a cluster file in one list: the private broker if there is one,
 * gateways, workers, monitors, in the order of the file. It is the same in all processes.
 */
#ifndef CLUSTER_CONFIG_CLUSTER_NODES_H
#define CLUSTER_CONFIG_CLUSTER_NODES_H

#include "engine/base/arena.h"
#include "cluster/config/cluster_config.h"
#include "cluster/wire/api.h"

struct cluster_node {
    const char *name;
    enum node_role role;
    const char *host;
    uint16_t port; /* 0: it does not listen. */
};

struct cluster_nodes {
    const struct cluster_node *items;
    uint32_t count;
};

MUST_USE status cluster_nodes_list(const struct cluster_config *config, struct arena *arena,
                                   struct cluster_nodes *out, struct error *err);
const struct cluster_node *cluster_nodes_find(const struct cluster_nodes *nodes, const char *name);
/* The folder of a node's pid, lock and log: data_dir/NAME; of the broker
 * data_dir/broker/supervisor. Lives in the arena; NULL: it is full. */
const char *cluster_node_folder(const struct cluster_config *config, const char *name,
                                struct arena *arena);

#endif
