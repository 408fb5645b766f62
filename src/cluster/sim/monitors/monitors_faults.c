/* SPDX-License-Identifier: Apache-2.0 */
/* monitors_faults.c - faults of monitors and nodes, drawn from the seed.
 *
 * Sizes and timeouts first; then one fault after the other, and in some runs a script
 * (monitors_script.c): faults that matter only in a certain order, which chance alone would seldom
 * give.
 */
#include "cluster/sim/monitors/monitors_cluster.h"

#include <stdio.h>

enum monitors_fault {
    FAULT_CRASH,
    FAULT_CRASH_MONITORS, /* Several at once. */
    FAULT_POWER,          /* All. */
    FAULT_PAUSE,
    FAULT_HANG,
    FAULT_CUT,  /* One process from all, or two from each other; one way or both. */
    FAULT_FLAP, /* The same, on and off. */
    FAULT_CLOCK,
    FAULT_STOP,
    FAULT_START, /* By hand, of what was stopped. */
    FAULT_REPLAY,
    FAULT_FORGE,
    FAULT_DRIVER,
    FAULT_ASK,
    FAULT_KINDS
};

static const uint32_t weights[FAULT_KINDS] = {
    [FAULT_CRASH] = 20,  [FAULT_CRASH_MONITORS] = 6,
    [FAULT_POWER] = 2,   [FAULT_PAUSE] = 14,
    [FAULT_HANG] = 10,   [FAULT_CUT] = 14,
    [FAULT_FLAP] = 6,    [FAULT_CLOCK] = 6,
    [FAULT_STOP] = 6,    [FAULT_START] = 3,
    [FAULT_REPLAY] = 16, [FAULT_FORGE] = 4,
    [FAULT_DRIVER] = 4,  [FAULT_ASK] = 6,
};

enum { PAUSE_MAX_MS = 10000, CUT_MAX_MS = 8000, JUMP_MAX_MS = 3600000, FLAPS = 8 };

/* ---- drawing a run ---- */

static void draw_times(struct monitors_cluster *cluster)
{
    struct world *world = &cluster->world;
    struct monitors_settings *settings = &cluster->settings;
    settings->heartbeat_period_ms = world_between(world, 150, 400);
    settings->failure_timeout_ms =
        3 * settings->heartbeat_period_ms + world_between(world, 100, 800);
    settings->stall_timeout_ms = settings->failure_timeout_ms + world_between(world, 500, 2500);
    settings->start_timeout_ms = world_between(world, 1000, 4000);
    settings->lease_ms = world_between(world, 600, 2500);
    settings->startup_ms = world_between(world, 10, 2000);
    settings->fault_ms = world_between(world, 2000, 25000);
    settings->fault_gap_ms = world_between(world, 100, 2500);
}

static void draw_habits(struct monitors_cluster *cluster)
{
    struct world *world = &cluster->world;
    struct monitors_settings *settings = &cluster->settings;
    struct monitors_net *net = &cluster->net;
    settings->reuses_ports = world_chance(world, 400);
    settings->drive_ms = world_between(world, 1, 200);
    if (world_chance(world, 300)) settings->drive_slow_per_mille = world_below(world, 500);
    if (world_chance(world, 300)) settings->drive_fail_per_mille = world_below(world, 700);
    if (world_chance(world, 100)) settings->drive_hang_per_mille = world_below(world, 300);
    net->delay_ms = world_between(world, 0, 15);
    if (world_chance(world, 400)) net->lose_per_mille = world_below(world, 200);
    if (world_chance(world, 300)) net->double_per_mille = world_below(world, 200);
    if (world_chance(world, 400)) net->late_per_mille = world_below(world, 150);
    net->late_ms = world_between(world, 50, 4000);
    if (world_chance(world, 400)) settings->script = world_below(world, MONITORS_SCRIPTS);
}

void monitors_draw(struct monitors_cluster *cluster)
{
    static const uint32_t monitor_counts[] = {1, 2, 3, 3, 3, 3, 3, 4, 5, 5};
    struct world *world = &cluster->world;
    struct monitors_settings *settings = &cluster->settings;
    uint32_t first = world_between(world, 3, MONITORS_NODES_MAX);
    uint32_t second = world_between(world, 3, MONITORS_NODES_MAX);
    settings->node_count = first < second ? first : second;
    settings->monitor_count = monitor_counts[world_below(world, 10)];
    settings->script = MONITORS_SCRIPTS;
    draw_times(cluster);
    draw_habits(cluster);
    cluster->process_count = settings->node_count + settings->monitor_count;
    for (uint32_t i = 0; i < cluster->process_count; i++) {
        char name[16];
        bool is_monitor = i >= settings->node_count;
        bool is_gateway = i <= settings->node_count / 3;
        enum node_role role = is_monitor ? NODE_MONITOR : is_gateway ? NODE_GATEWAY : NODE_WORKER;
        (void)snprintf(name, sizeof name, "%c%u", "gwmb"[role],
                       is_monitor ? i - settings->node_count + 1 : i + 1); /* Fits. */
        monitors_process_init(cluster, i, role, name);
    }
}

/* ---- one fault ---- */

static struct monitors_process *any_process(struct monitors_cluster *cluster)
{
    struct world *world = &cluster->world;
    struct monitors_process *leader = monitors_leader(cluster);
    if (leader != NULL && world_chance(world, 200)) return leader;
    return &cluster->processes[world_below(world, cluster->process_count)];
}

/* The supervisor on its host restarts it. */
static void start_timer(void *context, uint64_t run)
{
    struct monitors_process *process = context;
    if (!process->is_up && process->run == run) monitors_process_start(process);
}

static void crash(struct monitors_process *process)
{
    struct world *world = &process->cluster->world;
    monitors_process_kill(process);
    if (world_chance(world, 300)) {
        world_after(world, world_between(world, 1, 300), start_timer, process, process->run);
    }
}

static void crash_monitors(struct monitors_cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->settings.monitor_count; i++) {
        if (world_chance(&cluster->world, 600)) crash(monitors_monitor(cluster, i));
    }
}

static void crash_all(struct monitors_cluster *cluster)
{
    struct world *world = &cluster->world;
    for (uint32_t i = 0; i < cluster->process_count; i++) {
        monitors_process_kill(&cluster->processes[i]);
    }
    struct monitors_process *first =
        monitors_monitor(cluster, world_below(world, cluster->settings.monitor_count));
    world_after(world, world_between(world, 1, 2000), start_timer, first, first->run);
}

static void resume_timer(void *context, uint64_t run)
{
    struct monitors_process *process = context;
    if (process->run == run) monitors_process_resume(process);
}

static void unhang_timer(void *context, uint64_t run)
{
    struct monitors_process *process = context;
    if (process->run == run && !process->cluster->faults_are_over) monitors_process_unhang(process);
}

static void hang(struct monitors_process *process)
{
    struct monitors_cluster *cluster = process->cluster;
    struct world *world = &cluster->world;
    monitors_process_hang(process);
    if (world_chance(world, 500)) {
        world_after(world, world_between(world, 100, 2 * cluster->settings.stall_timeout_ms),
                    unhang_timer, process, process->run);
    }
}

static void set_cut(struct monitors_cluster *cluster, uint64_t number, bool is_cut)
{
    uint32_t from = (uint32_t)(number & 0xff);
    uint32_t to = (uint32_t)(number >> 8 & 0xff);
    uint32_t ways = (uint32_t)(number >> 16 & 3);
    if (world_is_traced(&cluster->world)) {
        world_trace(&cluster->world, "net: %s %s %s, ways %u", cluster->processes[from].name,
                    is_cut ? "is cut from" : "reaches again",
                    to < cluster->process_count ? cluster->processes[to].name : "all", ways);
    }
    for (uint32_t i = 0; i < cluster->process_count; i++) {
        if (i == from || (to < cluster->process_count && i != to)) continue;
        if (ways & 1) cluster->net.cut[from][i] = is_cut;
        if (ways & 2) cluster->net.cut[i][from] = is_cut;
    }
}

static void mend_timer(void *context, uint64_t number)
{
    set_cut(context, number, false);
}

static uint64_t draw_cut(struct monitors_cluster *cluster)
{
    struct world *world = &cluster->world;
    uint32_t from = any_process(cluster)->index;
    uint32_t to = world_chance(world, 400) ? 0xff : any_process(cluster)->index;
    return from | (uint64_t)to << 8 | (uint64_t)world_between(world, 1, 3) << 16;
}

static void cut(struct monitors_cluster *cluster)
{
    struct world *world = &cluster->world;
    uint64_t number = draw_cut(cluster);
    set_cut(cluster, number, true);
    world_after(world, world_between(world, 100, CUT_MAX_MS), mend_timer, cluster, number);
}

/* The bits above the cut count the flaps that are left. */
static void flap_timer(void *context, uint64_t number)
{
    struct monitors_cluster *cluster = context;
    uint64_t left = number >> 24;
    if (cluster->faults_are_over) return;
    set_cut(cluster, number, left % 2 == 1);
    if (left == 0) return;
    world_after(&cluster->world, world_between(&cluster->world, 50, 1500), flap_timer, cluster,
                (number & 0xffffff) | (left - 1) << 24);
}

static void jump_clock(struct monitors_process *process)
{
    struct world *world = &process->cluster->world;
    int64_t by_ms = world_between(world, 1, JUMP_MAX_MS);
    world_trace(world, "%s: its time of day jumps", process->name);
    process->wall_ms += world_chance(world, 600) ? -by_ms : by_ms;
    if (world_chance(world, 700)) crash(process);
}

static void stop_one(struct monitors_cluster *cluster)
{
    struct world *world = &cluster->world;
    struct monitors_process *process = any_process(cluster);
    if (world_chance(world, 400)) {
        monitors_process_stop(process);
        return;
    }
    struct ask ask = {.kind = world_chance(world, 800) ? ASK_STOP : ASK_KILLED};
    (void)snprintf(ask.node, sizeof ask.node, "%s", process->name); /* Of one size. */
    process->stop_was_asked = cluster->has_stops = true;
    world_trace(world, "an operator asks that %s stops", process->name);
    monitors_operator_ask(&cluster->operators[1], &ask);
}

static void start_stopped(struct monitors_cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->process_count; i++) {
        struct monitors_process *process = &cluster->processes[i];
        if (!process->is_up && process->was_stopped) {
            monitors_process_start(process);
            return;
        }
    }
}

static void replay_some(struct monitors_cluster *cluster)
{
    struct world *world = &cluster->world;
    uint32_t count = world_between(world, 1, 12);
    for (uint32_t i = 0; i < count && cluster->adversary.record_count > 0; i++) {
        monitors_replay(cluster, world_below(world, cluster->adversary.record_count));
    }
}

static void happen(struct monitors_cluster *cluster, enum monitors_fault kind)
{
    struct world *world = &cluster->world;
    struct monitors_process *process = any_process(cluster);
    switch (kind) {
    case FAULT_CRASH:
        crash(process);
        break;
    case FAULT_CRASH_MONITORS:
        crash_monitors(cluster);
        break;
    case FAULT_POWER:
        crash_all(cluster);
        break;
    case FAULT_PAUSE:
        monitors_process_pause(process);
        world_after(world, world_between(world, 100, PAUSE_MAX_MS), resume_timer, process,
                    process->run);
        break;
    case FAULT_HANG:
        hang(process);
        break;
    case FAULT_CUT:
        cut(cluster);
        break;
    case FAULT_FLAP:
        flap_timer(cluster, draw_cut(cluster) | (uint64_t)FLAPS << 24);
        break;
    case FAULT_CLOCK:
        jump_clock(process);
        break;
    case FAULT_STOP:
        stop_one(cluster);
        break;
    case FAULT_START:
        start_stopped(cluster);
        break;
    case FAULT_REPLAY:
        replay_some(cluster);
        break;
    case FAULT_FORGE:
        monitors_forge(cluster);
        break;
    case FAULT_DRIVER:
        cluster->driver_is_broken[process->index] = !cluster->driver_is_broken[process->index];
        break;
    case FAULT_ASK:
        monitors_operator_ask(&cluster->operators[0], &(struct ask){.kind = ASK_VIEW});
        break;
    case FAULT_KINDS:
        break;
    }
}

static void fault_timer(void *context, uint64_t number)
{
    struct monitors_cluster *cluster = context;
    struct world *world = &cluster->world;
    if (world->now_ms >= cluster->settings.fault_ms && !cluster->script_is_on) {
        monitors_calm_begin(cluster);
        return;
    }
    uint32_t kind = world_draw(world, weights, FAULT_KINDS);
    /* Other faults seldom disturb a script: it needs its order. */
    if (!cluster->script_is_on || world_chance(world, 100)) {
        cluster->report.fault_count++;
        happen(cluster, (enum monitors_fault)kind);
    }
    world_after(world, world_between(world, 1, cluster->settings.fault_gap_ms), fault_timer,
                cluster, number);
}

void monitors_faults_begin(struct monitors_cluster *cluster)
{
    struct world *world = &cluster->world;
    for (uint32_t i = 0; i < cluster->process_count; i++) {
        struct monitors_process *process = &cluster->processes[i];
        if (world_chance(world, 900) || i == cluster->settings.node_count) {
            world_after(world, world_between(world, 1, 300), start_timer, process, 0);
        }
    }
    monitors_script_begin(cluster);
    world_after(world, world_between(world, 1, 3000), fault_timer, cluster, 0);
}
