/* SPDX-License-Identifier: Apache-2.0 */
/* monitors_sim.c - one run of simulated monitors: drawn, under faults, and until it settles. */
#include "cluster/sim/monitors/monitors_sim.h"

#include "engine/base/memory.h"
#include "cluster/sim/monitors/monitors_cluster.h"

enum { STEPS_MAX = 3000000 };

#if FAULT_INJECTION
const char *const monitors_mutation_names[MONITORS_SIM_MUTATIONS] = {
    [MONITORS_SIM_SOUND] = "none",
    [MONITORS_SIM_NO_LEASE] = "no-lease",
    [MONITORS_SIM_VOTES_AT_ONCE] = "votes-at-once",
    [MONITORS_SIM_NO_TERM] = "no-term",
    [MONITORS_SIM_OBEYS_ANY] = "obeys-any",
    [MONITORS_SIM_ORDERS_ANY] = "orders-any",
};
#endif

static void run(struct monitors_cluster *cluster)
{
    struct world *world = &cluster->world;
    for (uint32_t i = 0; i < MONITORS_OPERATORS; i++) {
        cluster->operators[i] = (struct monitors_operator){.cluster = cluster, .index = i};
    }
    monitors_draw(cluster);
    world_trace(
        world,
        "%u nodes, %u monitors, heartbeat %u, failure timeout %u, stall timeout %u, lease %u ms",
        cluster->settings.node_count, cluster->settings.monitor_count,
        cluster->settings.heartbeat_period_ms, cluster->settings.failure_timeout_ms,
        cluster->settings.stall_timeout_ms, cluster->settings.lease_ms);
    monitors_faults_begin(cluster);
    world_run(world, &cluster->is_over, STEPS_MAX);
}

status monitors_run_seed(const struct monitors_options *options, struct sim_report *out,
                         struct error *err)
{
    struct monitors_cluster *cluster = memory_alloc(NULL, sizeof *cluster);
    if (cluster == NULL) return error_memory(err);
    *cluster = (struct monitors_cluster){.options = options};
    world_init(&cluster->world, options->seed, options->trace_fd);
    cluster->net.world = &cluster->world;
    cluster->net.first_free = UINT32_MAX;
    cluster->net.context = cluster;
    cluster->net.receive[MONITORS_DOOR_MAIN] = monitors_process_receive;
    cluster->net.receive[MONITORS_DOOR_HEART] = monitors_process_receive;
    cluster->net.receive[MONITORS_DOOR_OPERATOR] = monitors_operator_receive;
    bool has_memory = monitors_adversary_init(cluster);
    if (has_memory) {
        run(cluster);
        *out = cluster->report;
        world_report(&cluster->world, out);
    }
    for (uint32_t i = 0; i < cluster->process_count; i++) {
        monitor_destroy(cluster->processes[i].monitor);
    }
    monitor_effects_done(&cluster->effects);
    monitors_adversary_done(&cluster->adversary);
    monitors_net_done(&cluster->net);
    world_done(&cluster->world);
    memory_free(NULL, cluster, sizeof *cluster);
    return has_memory ? STATUS_OK : error_memory(err);
}
