/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_clean.c - checks all locks before it removes anything. It holds the lock of data_dir
 * meanwhile, so that no `up` starts; a single node that is started in between loses no more than in
 * a crash.
 */
#include "cluster/supervise/cluster_clean.h"

#include "engine/base/arena.h"
#include "engine/base/text.h"
#include "cluster/bus/bus_amqp.h"
#include "engine/file/file.h"
#include "engine/file/file_tree.h"
#include "cluster/store/folder_lock.h"
#include "cluster/config/cluster_nodes.h"

enum { DEADLINE_MS = 5000 };

struct clean {
    struct clean_options options;
    struct arena arena;
    const char **nodes; /* Those that have queues: gateways, then workers. */
    uint32_t node_count;
};

static status list_nodes(struct clean *clean, struct error *err)
{
    const struct cluster_config *config = clean->options.config;
    uint32_t count = config->gateway_count + config->worker_count;
    clean->nodes = arena_array(&clean->arena, const char *, count);
    if (clean->nodes == NULL) return error_memory(err);
    for (uint32_t i = 0; i < config->gateway_count; i++) {
        clean->nodes[clean->node_count++] = config->gateways[i].name;
    }
    for (uint32_t i = 0; i < config->worker_count; i++) {
        clean->nodes[clean->node_count++] = config->workers[i].name;
    }
    return STATUS_OK;
}

/* All roles: a monitor that still runs would restart the nodes. */
static status check_stopped(struct clean *clean, struct error *err)
{
    const struct cluster_config *config = clean->options.config;
    struct cluster_nodes nodes;
    TRY(cluster_nodes_list(config, &clean->arena, &nodes, err));
    for (uint32_t i = 0; i < nodes.count; i++) {
        const char *name = nodes.items[i].name;
        const char *folder = cluster_node_folder(config, name, &clean->arena);
        pid_t pid = 0;
        if (folder == NULL) return error_memory(err);
        switch (folder_lock_look(folder, &pid)) {
        case FOLDER_FREE:
            continue;
        case FOLDER_HELD:
            return error_set(err, STATUS_USAGE,
                             "node %s still runs, as process %ld: stop it first, and the others",
                             name, (long)pid);
        case FOLDER_UNKNOWN:
            return error_set(err, STATUS_USAGE,
                             "node %s may still run: %s/lock is held by an unknown process; stop "
                             "it first",
                             name, folder);
        }
    }
    return STATUS_OK;
}

static status remove_in(struct clean *clean, const char *folder, const char *name,
                        struct error *err)
{
    const char *path = file_path(folder, text_of(name), &clean->arena);
    if (path == NULL) return error_memory(err);
    return file_tree_remove(path, err);
}

static status remove_files(struct clean *clean, struct error *err)
{
    static const char *const leftovers[] = {"jobs", "intent", "pid"};
    const char *data_dir = clean->options.config->data_dir;
    for (uint32_t i = 0; i < clean->node_count; i++) {
        const char *folder = file_path(data_dir, text_of(clean->nodes[i]), &clean->arena);
        if (folder == NULL) return error_memory(err);
        for (size_t j = 0; j < sizeof leftovers / sizeof leftovers[0]; j++) {
            TRY(remove_in(clean, folder, leftovers[j], err));
        }
    }
    return remove_in(clean, data_dir, "broker", err);
}

static status remove_queues(struct clean *clean, struct error *err)
{
    const struct cluster_config *config = clean->options.config;
    bool is_given = clean->options.broker != NULL;
    if (!is_given && config->broker_count == 0) return STATUS_OK; /* They went with their broker. */
    struct bus_amqp_options options = {
        .cluster = config->name,
        .node = clean->nodes[0],
        .nodes = clean->nodes,
        .node_count = clean->node_count,
        .brokers = is_given ? &clean->options.broker : config->brokers,
        .broker_count = is_given ? 1 : config->broker_count,
        .work_count = config->work_queues,
        .limits = {.inbox_prefetch = 1,
                   .work_prefetch = 1,
                   .confirm_window = 1,
                   .confirm_window_bytes = 1,
                   .deadline_ms = DEADLINE_MS},
        .ca = config->broker_ca,
        .certificate = config->broker_certificate,
        .key = config->broker_key,
        .queues = config->queues == CONFIG_QUEUES_QUORUM ? BUS_AMQP_QUORUM : BUS_AMQP_TRANSIENT,
    };
    return bus_amqp_remove_queues(&options, err);
}

static status run(struct clean *clean, struct error *err)
{
    TRY(list_nodes(clean, err));
    TRY(check_stopped(clean, err));
    TRY(remove_files(clean, err));
    return remove_queues(clean, err);
}

status cluster_clean(const struct clean_options *options, struct error *err)
{
    struct clean clean = {.options = *options};
    struct folder_lock *lock = NULL;
    const char *data_dir = options->config->data_dir;
    pid_t pid = 0;
    if (folder_lock_holder(data_dir, &pid)) {
        return error_set(err, STATUS_USAGE,
                         "the cluster still runs: `up` is process %ld; stop it first", (long)pid);
    }
    /* Without the folder there may still be queues. */
    if (file_is_folder(data_dir)) TRY(folder_lock_open(data_dir, 0, &lock, err));
    status result = run(&clean, err);
    folder_lock_close(lock);
    arena_done(&clean.arena);
    return result;
}
