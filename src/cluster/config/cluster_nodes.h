/* cluster_nodes.h - all nodes of a cluster file in one list: broker (if it is ours), gateways,
 * workers, monitors. Their order is that of the file, and the same for everybody.
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
    uint16_t port; /* 0: it has none. */
};

struct cluster_nodes {
    const struct cluster_node *items;
    uint32_t count;
};

MUST_USE status cluster_nodes_list(const struct cluster_config *config, struct arena *arena,
                                   struct cluster_nodes *out, struct error *err);
const struct cluster_node *cluster_nodes_find(const struct cluster_nodes *nodes, const char *name);
/* Where a node keeps its pid, lock and log: data_dir/NAME; of the broker
 * data_dir/broker/supervisor. Lives in the arena; NULL: that is full. */
const char *cluster_node_folder(const struct cluster_config *config, const char *name,
                                struct arena *arena);

#endif
