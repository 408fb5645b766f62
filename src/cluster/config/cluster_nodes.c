/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_nodes.c - the four lists of the cluster file, one after the other. */
#include "cluster/config/cluster_nodes.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/assert.h"

/* cluster_config.c refuses this name for other nodes. */
static const char broker_name[] = "broker";

status cluster_nodes_list(const struct cluster_config *config, struct arena *arena,
                          struct cluster_nodes *out, struct error *err)
{
    uint32_t total = (config->starts_broker ? 1 : 0) + config->gateway_count +
                     config->worker_count + config->monitor_count;
    struct cluster_node *items = arena_array(arena, struct cluster_node, total);
    if (items == NULL) return error_memory(err);
    uint32_t count = 0;
    if (config->starts_broker) {
        items[count++] = (struct cluster_node){
            .name = broker_name,
            .role = NODE_BROKER,
            .host = config->broker_host == NULL ? "127.0.0.1" : config->broker_host};
    }
    for (uint32_t i = 0; i < config->gateway_count; i++) {
        struct config_endpoint gateway = config->gateways[i];
        items[count++] =
            (struct cluster_node){gateway.name, NODE_GATEWAY, gateway.host, gateway.port};
    }
    for (uint32_t i = 0; i < config->worker_count; i++) {
        struct config_worker worker = config->workers[i];
        items[count++] = (struct cluster_node){worker.name, NODE_WORKER, worker.host, 0};
    }
    for (uint32_t i = 0; i < config->monitor_count; i++) {
        struct config_endpoint monitor = config->monitors[i];
        items[count++] =
            (struct cluster_node){monitor.name, NODE_MONITOR, monitor.host, monitor.port};
    }
    ASSERT(count == total);
    *out = (struct cluster_nodes){.items = items, .count = count};
    return STATUS_OK;
}

const struct cluster_node *cluster_nodes_find(const struct cluster_nodes *nodes, const char *name)
{
    for (uint32_t i = 0; i < nodes->count; i++) {
        if (strcmp(nodes->items[i].name, name) == 0) return &nodes->items[i];
    }
    return NULL;
}

const char *cluster_node_folder(const struct cluster_config *config, const char *name,
                                struct arena *arena)
{
    /* RabbitMQ owns the broker's folder and writes its own files there. */
    const char *tail = strcmp(name, broker_name) == 0 ? "/supervisor" : "";
    size_t size = strlen(config->data_dir) + 1 + strlen(name) + strlen(tail) + 1;
    char *path = arena_array(arena, char, size);
    if (path == NULL) return NULL;
    (void)snprintf(path, size, "%s/%s%s", config->data_dir, name, tail); /* Fits. */
    return path;
}
