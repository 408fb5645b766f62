/* SPDX-License-Identifier: Apache-2.0 */
/* monitors_calm.c - the promises after the last fault: a leader, every node up, and then no more
 * actions.
 *
 * What only a person can repair is repaired first: monitors restart each other only when they have
 * a leader, so an operator has to provide a majority that works.
 */
#include "cluster/sim/monitors/monitors_cluster.h"

enum { POLL_MS = 50, ASK_BEFORE_END_MS = 3000, BACK_OFF_MAX_MS = 5000 };

struct monitors_process *monitors_leader(struct monitors_cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->settings.monitor_count; i++) {
        struct monitors_process *monitor = monitors_monitor(cluster, i);
        if (monitors_is_leading(monitor)) return monitor;
    }
    return NULL;
}

static bool is_working(const struct monitors_process *process)
{
    return process->is_up && !process->is_hung && !process->is_paused &&
           process->state < HEARTBEAT_STOPPING;
}

/* ---- the operator's repairs ---- */

static void mend_network(struct monitors_cluster *cluster)
{
    struct monitors_net *net = &cluster->net;
    for (uint32_t i = 0; i < cluster->process_count; i++) {
        for (uint32_t k = 0; k < cluster->process_count; k++) {
            net->cut[i][k] = false;
        }
        cluster->driver_is_broken[i] = false;
        monitors_process_resume(&cluster->processes[i]);
    }
    cluster->adversary.holds_orders = false;
    net->lose_per_mille = net->late_per_mille = 0;
}

/* Whether it works, or another monitor may start it. */
static bool is_able(const struct monitors_process *monitor)
{
    bool is_stopping = monitor->is_up && monitor->state >= HEARTBEAT_STOPPING;
    if (monitor->was_stopped || monitor->stop_was_asked || is_stopping) return false;
    return is_working(monitor) || !monitor->is_up;
}

/* The operator who has stopped too many of them starts some again, and so does the host where the
 * last one was killed. False: there was no need. */
static bool mend_monitors(struct monitors_cluster *cluster)
{
    uint32_t able_count = 0;
    bool has_working = false;
    bool has_mended = false;
    for (uint32_t i = 0; i < cluster->settings.monitor_count; i++) {
        const struct monitors_process *monitor = monitors_monitor(cluster, i);
        able_count += is_able(monitor);
        has_working |= is_able(monitor) && is_working(monitor);
    }
    for (uint32_t i = 0; i < cluster->settings.monitor_count; i++) {
        struct monitors_process *monitor = monitors_monitor(cluster, i);
        if (has_working && able_count >= monitors_majority(cluster)) break;
        if (is_able(monitor) && (has_working || monitor->is_up)) continue;
        able_count += !is_able(monitor);
        has_working = true;
        monitor->stop_was_asked = false;
        monitors_process_kill(monitor);
        monitors_process_start(monitor);
        has_mended = true;
    }
    return has_mended;
}

/* ---- settling ---- */

static void note_majority(struct monitors_cluster *cluster)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < cluster->settings.monitor_count; i++) {
        count += is_working(monitors_monitor(cluster, i));
    }
    if (count < monitors_majority(cluster)) {
        cluster->majority_ms = 0;
    } else if (cluster->majority_ms == 0) {
        cluster->majority_ms = cluster->world.now_ms;
    }
}

static void check_leader(struct monitors_cluster *cluster)
{
    const struct monitors_settings *settings = &cluster->settings;
    uint64_t from_ms =
        cluster->majority_ms > cluster->calm_ms ? cluster->majority_ms : cluster->calm_ms;
    uint64_t limit_ms =
        (uint64_t)settings->lease_ms * MONITORS_BOUND_LEASES + MONITORS_BOUND_SLACK_MS;
    if (monitors_leader(cluster) != NULL) cluster->had_leader = true;
    if (cluster->had_leader || cluster->majority_ms == 0) return;
    if (cluster->world.now_ms > from_ms + limit_ms) {
        world_fail(&cluster->world, "no leader %llu ms after a majority could work",
                   (unsigned long long)limit_ms);
    }
}

/* The first process that is neither up nor rightly stopped, or NULL. */
static const struct monitors_process *find_unsettled(struct monitors_cluster *cluster,
                                                     struct monitors_process *leader)
{
    for (uint32_t i = 0; i < cluster->process_count; i++) {
        const struct monitors_process *process = &cluster->processes[i];
        struct monitored monitored;
        monitor_targets(leader->monitor, i, &monitored);
        bool is_up = is_working(process) && monitored.state == HEALTH_UP &&
                     monitored.incarnation == process->incarnation;
        bool is_stopped = !process->is_up && monitored.state == HEALTH_STOPPED &&
                          (process->stop_was_asked || monitors_stop_may_stand(process, leader));
        if (!is_up && !is_stopped) return process;
    }
    return NULL;
}

static uint64_t settle_limit(const struct monitors_settings *settings)
{
    uint64_t start_ms = BACK_OFF_MAX_MS + settings->start_timeout_ms + settings->startup_ms;
    /* Monitors are started, one leads and restarts what it takes for dead or hung; all of it twice,
     * since a command just before the last fault may have been in vain. */
    return 2 * ((uint64_t)settings->lease_ms * MONITORS_BOUND_LEASES +
                settings->failure_timeout_ms) +
           settings->stall_timeout_ms + 3 * start_ms + MONITORS_BOUND_SLACK_MS;
}

static uint64_t acts(const struct monitors_cluster *cluster)
{
    return cluster->report.restart_count + cluster->order_count;
}

/* Settled: for a while all nodes are up and no monitor acts; late timeouts and promises from before
 * are over then.
 */
static void look_for_rest(struct monitors_cluster *cluster, struct monitors_process *leader)
{
    const struct monitors_settings *settings = &cluster->settings;
    uint64_t now_ms = cluster->world.now_ms;
    uint64_t limit_ms = settle_limit(settings);
    const struct monitors_process *unsettled = NULL;
    if (leader != NULL) unsettled = find_unsettled(cluster, leader);
    if (leader == NULL || unsettled != NULL) {
        cluster->well_ms = 0;
        if (now_ms > cluster->calm_ms + limit_ms) {
            world_fail(&cluster->world, "%s is not settled %llu ms after the last fault",
                       unsettled != NULL ? unsettled->name : "the election",
                       (unsigned long long)limit_ms);
        }
        return;
    }
    struct term term = monitor_election(leader->monitor)->own;
    if (cluster->well_ms == 0 || acts(cluster) != cluster->settled_acts ||
        term_compare(term, cluster->settled_term) != 0) {
        cluster->well_ms = now_ms;
        cluster->settled_term = term;
        cluster->settled_acts = acts(cluster);
    } else if (now_ms > cluster->well_ms + settings->failure_timeout_ms + settings->lease_ms) {
        cluster->settled_ms = now_ms;
        cluster->report.settle_ms = cluster->well_ms - cluster->calm_ms;
        world_trace(&cluster->world, "all is well");
    }
}

static void check_rest(struct monitors_cluster *cluster, struct monitors_process *leader)
{
    struct world *world = &cluster->world;
    if (leader == NULL) {
        world_fail(world, "the leader is gone, and nothing happened");
    } else if (term_compare(monitor_election(leader->monitor)->own, cluster->settled_term) != 0) {
        world_fail(world, "%s became leader, and nothing happened", leader->name);
    } else if (acts(cluster) != cluster->settled_acts) {
        world_fail(world, "%s acts, and nothing happened", leader->name);
    } else if (find_unsettled(cluster, leader) != NULL) {
        world_fail(world, "%s is not well, and nothing happened",
                   find_unsettled(cluster, leader)->name);
    }
}

/* An operator is answered by every monitor, with all nodes. */
static void check_answers(struct monitors_cluster *cluster)
{
    const struct monitors_operator *operator_ = &cluster->operators[0];
    uint32_t all = (1u << cluster->process_count) - 1;
    for (uint32_t i = 0; i < cluster->settings.monitor_count; i++) {
        const struct monitors_process *monitor = monitors_monitor(cluster, i);
        if (!is_working(monitor)) continue;
        if (operator_->seen_mask[i] != all || !operator_->seen_leader[i]) {
            world_fail(&cluster->world, "%s does not tell an operator all nodes and the leader",
                       monitor->name);
        }
    }
}

/* Gateways know who leads, and the same events. Those that a gateway has from another incarnation
 * of the leader are left out: when all monitors restarted, numbers of events are used again. */
static void check_gateways(struct monitors_cluster *cluster, const struct monitors_process *leader)
{
    const struct monitors_process *first = NULL;
    for (uint32_t i = 0; i < cluster->settings.node_count; i++) {
        const struct monitors_process *node = &cluster->processes[i];
        if (node->role != NODE_GATEWAY || !node->is_up) continue;
        if (term_compare(node->seen, cluster->settled_term) != 0) {
            world_fail(&cluster->world, "%s does not know who leads", node->name);
        }
        if (node->told_by != leader->index || node->told_run != leader->run) continue;
        if (first == NULL) first = node;
        if (event_place_compare(node->told, first->told) != 0) {
            world_fail(&cluster->world, "%s and %s are told different things", first->name,
                       node->name);
        }
    }
}

static void calm_timer(void *context, uint64_t number)
{
    struct monitors_cluster *cluster = context;
    uint64_t now_ms = cluster->world.now_ms;
    /* Requests of operators and commands to drivers from the time of faults may act late. */
    if (cluster->settled_ms == 0 && mend_monitors(cluster)) cluster->calm_ms = 0;
    if (cluster->calm_ms == 0 && monitors_drives_are_done(cluster)) cluster->calm_ms = now_ms;
    note_majority(cluster);
    if (cluster->calm_ms != 0) {
        struct monitors_process *leader = monitors_leader(cluster);
        check_leader(cluster);
        if (cluster->settled_ms == 0) {
            look_for_rest(cluster, leader);
        } else {
            check_rest(cluster, leader);
        }
    }
    if (cluster->settled_ms != 0) {
        uint64_t end_ms = cluster->settled_ms + MONITORS_QUIET_MS;
        if (number == 0 && now_ms + ASK_BEFORE_END_MS > end_ms) {
            monitors_operator_ask(&cluster->operators[0], &(struct ask){.kind = ASK_VIEW});
            number = 1;
        }
        if (now_ms >= end_ms) {
            check_answers(cluster);
            check_gateways(cluster, monitors_leader(cluster));
            cluster->is_over = true;
        }
    }
    world_after(&cluster->world, POLL_MS, calm_timer, cluster, number);
}

void monitors_calm_begin(struct monitors_cluster *cluster)
{
    world_trace(&cluster->world, "no more faults");
    cluster->faults_are_over = true;
    cluster->heal_ms = cluster->world.now_ms;
    for (uint32_t i = 0; i < MONITORS_OPERATORS; i++) {
        cluster->operators[i].tries_left = 0;
    }
    mend_network(cluster);
    calm_timer(cluster, 0);
}
