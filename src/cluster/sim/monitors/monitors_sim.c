/* monitors_sim.c - one run of simulated monitors: drawn, disturbed, and brought to rest. */
#include "cluster/sim/monitors/monitors_sim.h"

#include <stdio.h>

#include "engine/base/memory.h"
#include "cluster/sim/monitors/monitors_cluster.h"

enum { STEPS_MAX = 3000000 };

const char *const watch_mutation_names[WATCH_SIM_MUTATIONS] = {
    [WATCH_SIM_SOUND] = "none",
    [WATCH_SIM_NO_LEASE] = "no-lease",
    [WATCH_SIM_VOTES_AT_ONCE] = "votes-at-once",
    [WATCH_SIM_NO_TERM] = "no-term",
    [WATCH_SIM_OBEYS_ANY] = "obeys-any",
    [WATCH_SIM_ORDERS_ANY] = "orders-any",
};

static void run(struct watch_cluster *cluster)
{
    struct world *world = &cluster->world;
    for (uint32_t i = 0; i < WATCH_OPERATORS; i++) {
        cluster->operators[i] = (struct watch_operator){.cluster = cluster, .index = i};
    }
    watch_draw(cluster);
    world_trace(world, "%u nodes, %u monitors, beat %u, patience %u, hang %u, lease %u ms",
                cluster->settings.node_count, cluster->settings.monitor_count,
                cluster->settings.beat_period_ms, cluster->settings.patience_ms,
                cluster->settings.hang_timeout_ms, cluster->settings.lease_ms);
    watch_faults_begin(cluster);
    while (!cluster->is_over && world_step(world)) {
        if (world->step_count > STEPS_MAX) world_fail(world, "it does not come to an end");
    }
}

static void make_report(struct watch_cluster *cluster, struct sim_report *out)
{
    struct sim_report *report = &cluster->report;
    report->ok = !cluster->world.failed;
    (void)snprintf(report->reason, sizeof report->reason, "%s",
                   cluster->world.reason); /* Of one size. */
    report->history = cluster->world.history;
    report->simulated_ms = cluster->world.now_ms;
    report->step_count = cluster->world.step_count;
    *out = *report;
}

status watch_run_seed(const struct watch_options *options, struct sim_report *out,
                      struct error *err)
{
    struct watch_cluster *cluster = memory_alloc(NULL, sizeof *cluster);
    if (cluster == NULL) return error_memory(err);
    *cluster = (struct watch_cluster){.options = options};
    world_init(&cluster->world, options->seed, options->trace_fd);
    bool has_memory = watch_net_init(cluster);
    if (has_memory) {
        run(cluster);
        make_report(cluster, out);
    }
    for (uint32_t i = 0; i < cluster->process_count; i++) {
        monitor_destroy(cluster->processes[i].monitor);
    }
    monitor_effects_done(&cluster->effects);
    watch_net_done(cluster);
    world_done(&cluster->world);
    memory_free(NULL, cluster, sizeof *cluster);
    return has_memory ? STATUS_OK : error_memory(err);
}
