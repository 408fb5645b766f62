/* SPDX-License-Identifier: Apache-2.0 */
/* monitors_script.c - faults that matter only in a certain order.
 *
 * A script is a sequence of stages; each is tried again every few milliseconds until its condition
 * holds. The script ends early when that takes too long.
 */
#include "cluster/sim/monitors/monitors_cluster.h"

#include <string.h>

enum { POLL_MS = 20, SCRIPT_LIMIT_MS = 25000 };

struct script {
    const char *name;
    /* True: on to the next stage. */
    bool (*stages[6])(struct monitors_cluster *cluster);
};

static void isolate(struct monitors_cluster *cluster, uint32_t index, bool is_cut)
{
    for (uint32_t i = 0; i < cluster->process_count; i++) {
        if (i == index) continue;
        cluster->net.cut[i][index] = cluster->net.cut[index][i] = is_cut;
    }
}

static void pause_stage(struct monitors_cluster *cluster, uint32_t ms)
{
    cluster->script_wait_ms = cluster->world.now_ms + ms;
}

static bool wait_for_leader(struct monitors_cluster *cluster)
{
    struct monitors_process *leader = monitors_leader(cluster);
    if (leader == NULL || cluster->settings.monitor_count < 2) return false;
    cluster->script_leader = leader->index;
    cluster->script_run = leader->run;
    return true;
}

static bool heal(struct monitors_cluster *cluster)
{
    isolate(cluster, cluster->script_leader, false);
    return true;
}

/* ---- voters that die and come back at once have forgotten what they promised ---- */

static bool make_forget(struct monitors_cluster *cluster)
{
    struct world *world = &cluster->world;
    isolate(cluster, cluster->script_leader, true);
    for (uint32_t i = 0; i < cluster->settings.monitor_count; i++) {
        struct monitors_process *monitor = monitors_monitor(cluster, i);
        if (monitor->index == cluster->script_leader) continue;
        monitors_process_kill(monitor);
        monitors_process_start(monitor);
    }
    pause_stage(cluster, world_between(world, 1, 3) * cluster->settings.lease_ms);
    return true;
}

/* ---- a leader that is cut off, and one that is paused ---- */

static bool cut_leader(struct monitors_cluster *cluster)
{
    isolate(cluster, cluster->script_leader, true);
    pause_stage(cluster, world_between(&cluster->world, 1, 4) * cluster->settings.lease_ms);
    return true;
}

static bool pause_leader(struct monitors_cluster *cluster)
{
    monitors_process_pause(&cluster->processes[cluster->script_leader]);
    pause_stage(cluster, world_between(&cluster->world, 1, 4) * cluster->settings.lease_ms);
    return true;
}

static bool resume_leader(struct monitors_cluster *cluster)
{
    monitors_process_resume(&cluster->processes[cluster->script_leader]);
    return true;
}

/* ---- an order that was held back, and comes when there is another leader ---- */

/* A gateway, since those see terms; its driver is of no use. */
static bool hang_and_hold(struct monitors_cluster *cluster)
{
    struct monitors_process *node = &cluster->processes[0];
    if (!node->is_up || node->state != HEARTBEAT_UP) return false;
    cluster->driver_is_broken[0] = true;
    cluster->adversary.holds_orders = true;
    cluster->script_orders = cluster->order_count;
    monitors_process_hang(node);
    return true;
}

static bool unhang_when_ordered(struct monitors_cluster *cluster)
{
    if (cluster->order_count == cluster->script_orders) return false;
    monitors_process_unhang(&cluster->processes[0]);
    struct monitors_process *leader = &cluster->processes[cluster->script_leader];
    cluster->script_term = cluster->orders[(cluster->order_count - 1) % MONITORS_ORDERS_MAX].term;
    cluster->adversary.holds_orders = false;
    monitors_process_kill(leader);
    return true;
}

static bool wait_for_view(struct monitors_cluster *cluster)
{
    return term_compare(cluster->processes[0].seen, cluster->script_term) > 0;
}

static bool replay_all(struct monitors_cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->adversary.record_count; i++) {
        monitors_replay(cluster, i);
    }
    cluster->net.cut[cluster->script_leader][0] = false;
    cluster->driver_is_broken[0] = false;
    return true;
}

/* ---- an order, and the next incarnation of its receiver ---- */

static bool hang_one(struct monitors_cluster *cluster)
{
    struct monitors_process *node = &cluster->processes[0];
    if (!node->is_up || node->state != HEARTBEAT_UP) return false;
    cluster->script_run = node->run;
    monitors_process_hang(node);
    return true;
}

static bool wait_for_next_run(struct monitors_cluster *cluster)
{
    const struct monitors_process *node = &cluster->processes[0];
    if (!node->is_up || node->run == cluster->script_run) return false;
    pause_stage(cluster, world_between(&cluster->world, 1, 2000));
    return true;
}

/* ---- an order to stop, and a next incarnation whose clock went back, at the same address ---- */

static bool ask_and_hold(struct monitors_cluster *cluster)
{
    struct monitors_process *node = &cluster->processes[0];
    if (!node->is_up || node->state != HEARTBEAT_UP) return false;
    struct ask ask = {.kind = ASK_STOP};
    memcpy(ask.node, node->name, sizeof ask.node);
    cluster->adversary.holds_orders = true;
    cluster->settings.reuses_ports = true;
    cluster->script_orders = cluster->order_count;
    node->stop_was_asked = cluster->has_stops = true;
    monitors_operator_ask(&cluster->operators[1], &ask);
    return true;
}

static bool swap_when_ordered(struct monitors_cluster *cluster)
{
    struct monitors_process *node = &cluster->processes[0];
    if (cluster->order_count == cluster->script_orders) return false;
    node->wall_ms -= 3600000;
    monitors_process_kill(node);
    monitors_process_start(node);
    cluster->net.cut[cluster->script_leader][0] = false;
    cluster->adversary.holds_orders = false;
    return true;
}

static const struct script scripts[MONITORS_SCRIPTS] = {
    {"voters forget", {wait_for_leader, make_forget, heal}},
    {"the leader is cut off", {wait_for_leader, cut_leader, heal}},
    {"the leader is paused", {wait_for_leader, pause_leader, resume_leader}},
    {"an order held back",
     {wait_for_leader, hang_and_hold, unhang_when_ordered, wait_for_view, replay_all}},
    {"an order recorded", {wait_for_leader, hang_one, wait_for_next_run, replay_all}},
    {"an order for the dead", {wait_for_leader, ask_and_hold, swap_when_ordered}},
};

static void script_timer(void *context, uint64_t stage)
{
    struct monitors_cluster *cluster = context;
    struct world *world = &cluster->world;
    const struct script *script = &scripts[cluster->settings.script];
    if (stage == sizeof script->stages / sizeof script->stages[0] ||
        script->stages[stage] == NULL || world->now_ms > SCRIPT_LIMIT_MS) {
        cluster->script_is_on = false;
        return;
    }
    if (world->now_ms >= cluster->script_wait_ms && script->stages[stage](cluster)) {
        world_trace(world, "script: %s, stage %u", script->name, (unsigned)stage + 1);
        stage++;
    }
    world_after(world, POLL_MS, script_timer, cluster, stage);
}

void monitors_script_begin(struct monitors_cluster *cluster)
{
    if (cluster->settings.script >= MONITORS_SCRIPTS) return;
    cluster->script_is_on = true;
    world_after(&cluster->world, 1, script_timer, cluster, 0);
}
