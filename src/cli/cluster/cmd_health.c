/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_health.c - `millrace health`: whether a node on this host runs, for health checks of
 * containers.
 *
 * Monitors never use it: only heartbeats count.
 */
#include <stdlib.h>

#include "cli/cluster_commands.h"
#include "cli/cluster/cluster_file.h"
#include "cli/cluster/cluster_program.h"
#include "cli/terminal.h"
#include "cluster/store/folder_lock.h"
#include "cluster/node/client_node.h"
#include "cluster/config/cluster_nodes.h"
#include "cluster/node/exposure.h"
#include "cluster/config/gateway_url.h"

enum { HEALTH_CONFIG, HEALTH_NAME, HEALTH_OPTIONS };
enum { HEALTH_TIMEOUT_MS = 3000 };

static const struct option_spec health_options[HEALTH_OPTIONS] = {
    [HEALTH_CONFIG] = {"config", "FILE", "the cluster file; default: $MILLRACE_CONFIG", false, 'c'},
    [HEALTH_NAME] = {"name", "NAME", "which node; default: $MILLRACE_NODE", false, 'n'},
};

static const struct command_spec health_spec = {
    .name = "health",
    .arguments = "[-c FILE] [-n NAME]",
    .summary = SUMMARY_HEALTH,
    .about = "Exit code 0: the node runs, and a gateway has a broker too; 1: it does not. For the\n"
             "health checks of containers. Monitors rely on heartbeats instead.",
    .examples = "  millrace health -c cluster.ini -n g1\n",
    .options = health_options,
    .option_count = HEALTH_OPTIONS,
};

static status ask_gateway(const struct cluster_config *config, const struct cluster_node *node,
                          struct arena *arena, struct error *err)
{
    const char *url = gateway_url(config, node->host, node->port, arena);
    if (url == NULL) return error_memory(err);
    struct gateway_call call = {
        .gateways = (const char *const[]){url},
        .gateway_count = 1,
        .method = "GET",
        .target = "/healthz",
        .timeout_ms = HEALTH_TIMEOUT_MS,
    };
    struct buf body = {0};
    TRY(exposure_call(config, arena, &call, err));
    status result = gateway_call(&call, &body, err);
    buf_done(&body);
    return result;
}

static status run(const struct options *options, struct arena *arena, struct error *err)
{
    struct cluster_config config;
    struct cluster_nodes nodes;
    const char *file = options_value(options, HEALTH_CONFIG);
    const char *name = options_value(options, HEALTH_NAME);
    if (file == NULL) file = getenv("MILLRACE_CONFIG");
    if (name == NULL) name = getenv("MILLRACE_NODE");
    TRY(cluster_file_read("health", file, arena, &config, err));
    TRY(cluster_nodes_list(&config, arena, &nodes, err));
    if (name == NULL) {
        return error_set(err, STATUS_USAGE, "health needs the name of a node: -n w1");
    }
    const struct cluster_node *node = cluster_nodes_find(&nodes, name);
    if (node == NULL) {
        return error_set(err, STATUS_USAGE, "%s has no node `%.100s`", config.path, name);
    }
    const char *folder = cluster_node_folder(&config, name, arena);
    pid_t holder;
    if (folder == NULL) return error_memory(err);
    if (!folder_lock_holder(folder, &holder)) {
        return error_set(err, STATUS_IO, "%s does not run on this host", name);
    }
    return node->role == NODE_GATEWAY ? ask_gateway(&config, node, arena, err) : STATUS_OK;
}

static int health_main(int argc, char *const *argv)
{
    return command_simple(&health_spec, run, argc, argv);
}

const struct command command_health = {.spec = &health_spec, .run = health_main};
