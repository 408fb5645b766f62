/* SPDX-License-Identifier: Apache-2.0 */
/* monitors_checker.c - invariants of every step, with state apart from that of the roles.
 *
 * The checker sees every datagram and the time of the world. It counts a heartbeat as heard where a
 * monitor *must* accept it: it is genuine, the node's latest so far, and carries the monitor's
 * nonce (cluster/role/replay_guard.h). Where the monitor may but need not accept it, the checker
 * demands nothing.
 */
#include "cluster/sim/monitors/monitors_cluster.h"

/* Clocks are read once a tick. */
enum { ROUNDING_MS = 2 * MONITOR_TICK_MS, PPM = 1000000 };

static uint64_t local_since(const struct monitors_process *process, uint64_t from_ms)
{
    uint64_t passed_ms = process->cluster->world.now_ms - from_ms;
    return passed_ms * (uint64_t)(PPM + process->rate_ppm) / PPM;
}

static struct monitors_sight *sight_of(struct monitors_process *monitor, uint32_t node)
{
    struct monitors_sight *sight = &monitor->cluster->sights[monitors_position(monitor)][node];
    if (sight->monitor_run != monitor->run) {
        *sight = (struct monitors_sight){.monitor_run = monitor->run};
    }
    return sight;
}

/* ---- heartbeats ---- */

/* Whether a monitor must accept it. */
static bool is_taken(struct monitors_process *monitor, const struct monitors_sight *sight,
                     const struct monitors_packet *packet, const struct datagram *datagram)
{
    uint32_t half_ms = monitor->cluster->settings.failure_timeout_ms / 2;
    bool is_known = sight->heard_ms != 0 && sight->node_run == packet->sender_run;
    if (datagram->nonce == 0) return false;
    /* A nonce that was not used for long is void. */
    bool is_in_use =
        is_known && local_since(monitor, sight->heard_ms) + ROUNDING_MS < REPLAY_GUARD_NONCE_MS;
    if (is_in_use && datagram->nonce == sight->nonce) return datagram->sequence > sight->sequence;
    if (datagram->nonce != sight->fresh_nonce) return false;
    if (local_since(monitor, sight->fresh_ms) + ROUNDING_MS > REPLAY_GUARD_NONCE_MS) return false;
    if (is_known) return datagram->sequence > sight->sequence;
    if (sight->heard_ms == 0 || datagram->incarnation > sight->incarnation) return true;
    return local_since(monitor, sight->heard_ms) > half_ms + ROUNDING_MS;
}

static void note_heartbeat(struct monitors_process *monitor, const struct monitors_packet *packet,
                           const struct datagram *datagram)
{
    struct monitors_sight *sight = sight_of(monitor, packet->sender);
    uint64_t now_ms = monitor->cluster->world.now_ms;
    if (packet->sender_run != sight->stopped_run) sight->knows_stopped = false;
    if (!is_taken(monitor, sight, packet, datagram)) return;
    if (sight->heard_ms == 0 || sight->node_run != packet->sender_run ||
        sight->progress != datagram->heartbeat.progress) {
        sight->progress_ms = now_ms;
    }
    sight->nonce = datagram->nonce;
    sight->node_run = packet->sender_run;
    sight->incarnation = datagram->incarnation;
    sight->sequence = datagram->sequence;
    sight->heard_ms = now_ms;
    sight->progress = datagram->heartbeat.progress;
    if (datagram->heartbeat.state >= HEARTBEAT_STOPPING) {
        sight->knows_stopped = true;
        sight->stopped_run = packet->sender_run;
    }
}

bool monitors_stop_may_stand(const struct monitors_process *process,
                             struct monitors_process *leader)
{
    return process->stopped_run != 0 &&
           sight_of(leader, process->index)->node_run <= process->stopped_run;
}

/* Another monitor says that a node is not stopped: a monitor that hears it may believe it. */
static void note_view(struct monitors_process *monitor, const struct view *view)
{
    const struct monitors_cluster *cluster = monitor->cluster;
    for (uint32_t i = 0; i < view->node_count; i++) {
        uint32_t node = monitors_process_named(cluster, view->nodes[i].name);
        if (node < cluster->process_count && view->nodes[i].state != HEALTH_STOPPED) {
            sight_of(monitor, node)->knows_stopped = false;
        }
    }
}

void monitors_check_heard(struct monitors_process *monitor, const struct monitors_packet *packet,
                          const struct datagram *datagram)
{
    if (packet->origin != MONITORS_GENUINE || packet->sender == UINT32_MAX) return;
    if (datagram->kind == DATAGRAM_HEARTBEAT) note_heartbeat(monitor, packet, datagram);
    if (datagram->kind == DATAGRAM_VIEW) note_view(monitor, &datagram->view);
}

/* ---- leaders ---- */

static void note_stops(struct monitors_process *monitor)
{
    struct monitors_cluster *cluster = monitor->cluster;
    for (uint32_t i = 0; i < cluster->process_count; i++) {
        const struct monitors_process *node = &cluster->processes[i];
        if (node->is_up || !(node->was_stopped || node->stop_was_asked)) continue;
        struct monitored monitored;
        monitor_targets(monitor->monitor, i, &monitored);
        if (monitored.state != HEALTH_STOPPED) continue;
        struct monitors_sight *sight = sight_of(monitor, i);
        sight->knows_stopped = true;
        sight->stopped_run = node->run;
    }
}

void monitors_check_stepped(struct monitors_process *monitor)
{
    struct monitors_cluster *cluster = monitor->cluster;
    if (cluster->has_stops) note_stops(monitor);
    if (!monitors_is_leading(monitor)) return;
    for (uint32_t i = 0; i < cluster->settings.monitor_count; i++) {
        struct monitors_process *other = monitors_monitor(cluster, i);
        if (other == monitor || !monitors_is_leading(other)) continue;
        struct term term = monitor_election(monitor->monitor)->own;
        struct term other_term = monitor_election(other->monitor)->own;
        world_fail(&cluster->world, "two leaders: %s in term %llu and %s in term %llu",
                   monitor->name, (unsigned long long)term.number, other->name,
                   (unsigned long long)other_term.number);
    }
}

/* ---- orders and commands to drivers ---- */

static void check_office(struct monitors_process *monitor, struct term term, const char *what)
{
    const struct election *election = monitor_election(monitor->monitor);
    if (monitors_is_leading(monitor) && term.holder == monitors_position(monitor) &&
        term_compare(term, election->own) == 0) {
        return;
    }
    world_fail(&monitor->cluster->world, "%s %s in term %llu, and is not its leader", monitor->name,
               what, (unsigned long long)term.number);
}

/* No node is restarted that was heard in time and made progress. */
static void check_cause(struct monitors_process *monitor, uint32_t node, const char *what)
{
    struct monitors_cluster *cluster = monitor->cluster;
    const struct monitors_settings *settings = &cluster->settings;
    const struct monitors_sight *sight = sight_of(monitor, node);
    /* A late heartbeat of an earlier incarnation is no reason to wait. */
    if (sight->heard_ms == 0 || sight->node_run != cluster->processes[node].run) return;
    uint64_t silent_ms = local_since(monitor, sight->heard_ms);
    uint64_t still_ms = local_since(monitor, sight->progress_ms);
    if (silent_ms + ROUNDING_MS > settings->failure_timeout_ms) return;
    if (still_ms + ROUNDING_MS > settings->stall_timeout_ms) return;
    world_fail(&cluster->world,
               "%s %s %s, which was heard %llu ms ago and made progress %llu ms ago", monitor->name,
               what, cluster->processes[node].name, (unsigned long long)silent_ms,
               (unsigned long long)still_ms);
}

/* Whether a monitor knows that it was stopped on purpose, and could have told the leader by now. */
static bool is_known_stopped(struct monitors_process *monitor, uint32_t node)
{
    struct monitors_cluster *cluster = monitor->cluster;
    const struct monitors_settings *settings = &cluster->settings;
    if (sight_of(monitor, node)->knows_stopped) return true;
    /* Only a leader is told by others. */
    if (!monitors_is_leading(monitor)) return false;
    uint64_t patient_ms = (uint64_t)settings->lease_ms + settings->failure_timeout_ms;
    if (!cluster->faults_are_over || cluster->world.now_ms < cluster->heal_ms + patient_ms) {
        return false;
    }
    for (uint32_t i = 0; i < settings->monitor_count; i++) {
        struct monitors_process *other = monitors_monitor(cluster, i);
        if (!other->is_up || other->is_hung || other->state >= HEARTBEAT_STOPPING) continue;
        const struct monitors_sight *sight = sight_of(other, node);
        if (sight->knows_stopped && sight->stopped_run == cluster->processes[node].run) {
            return true;
        }
    }
    return false;
}

static void check_drive(struct monitors_process *monitor, const struct monitor_effect *effect)
{
    struct monitors_cluster *cluster = monitor->cluster;
    const struct monitors_process *target = &cluster->processes[effect->node];
    world_trace(&cluster->world, "%s: %s %s, found dead %llu, term %llu", monitor->name,
                effect->drive == DRIVE_START ? "starts" : "restarts", target->name,
                (unsigned long long)effect->incarnation, (unsigned long long)effect->term.number);
    if (effect->term.number != 0) {
        check_office(monitor, effect->term, "drives");
    } else if (effect->drive != DRIVE_START || !monitors_is_monitor(target)) {
        world_fail(&cluster->world, "%s drives %s without a term", monitor->name, target->name);
    }
    check_cause(monitor, effect->node, "drives");
    if (is_known_stopped(monitor, effect->node)) {
        world_fail(&cluster->world, "%s starts %s, which is known to be stopped on purpose",
                   monitor->name, target->name);
    }
}

static void check_order(struct monitors_process *monitor, const struct datagram *datagram)
{
    struct monitors_cluster *cluster = monitor->cluster;
    const struct order *order = &datagram->order;
    uint32_t node = monitors_process_named(cluster, datagram->to);
    world_trace(&cluster->world, "%s: orders %s %llu to %s, term %llu", monitor->name, datagram->to,
                (unsigned long long)order->incarnation, order->kind == ORDER_KILL ? "die" : "stop",
                (unsigned long long)order->term.number);
    check_office(monitor, order->term, "orders");
    if (node == cluster->process_count) {
        world_fail(&cluster->world, "%s orders a node that is not of this cluster", monitor->name);
        return;
    }
    if (order->kind == ORDER_KILL) check_cause(monitor, node, "orders to die:");
    struct monitors_order *place = &cluster->orders[cluster->order_count++ % MONITORS_ORDERS_MAX];
    *place = (struct monitors_order){
        .term = order->term, .kind = order->kind, .node = node, .incarnation = order->incarnation};
}

static void note_challenge(struct monitors_process *monitor, const struct monitor_effect *effect)
{
    struct monitors_cluster *cluster = monitor->cluster;
    uint32_t node = monitors_process_named(cluster, effect->datagram.to);
    /* Monitors challenge each other at their main sockets too; those are not about heartbeats. */
    if (node == cluster->process_count || effect->kind != MONITOR_SEND) return;
    if (effect->address.bytes[0] != MONITORS_DOOR_HEART) return;
    struct monitors_sight *sight = sight_of(monitor, node);
    if (sight->fresh_nonce == effect->datagram.challenge.nonce) return;
    sight->fresh_nonce = effect->datagram.challenge.nonce;
    sight->fresh_ms = cluster->world.now_ms;
}

void monitors_check_effect(struct monitors_process *monitor, const struct monitor_effect *effect)
{
    if (effect->kind == MONITOR_DRIVE) check_drive(monitor, effect);
    if (effect->kind != MONITOR_SEND && effect->kind != MONITOR_SEND_TO_MONITOR) return;
    if (effect->datagram.kind == DATAGRAM_ORDER) check_order(monitor, &effect->datagram);
    if (effect->datagram.kind == DATAGRAM_CHALLENGE) note_challenge(monitor, effect);
}

/* ---- nodes that obey ---- */

static void check_obeyed(struct monitors_process *process, const struct order *order)
{
    struct monitors_cluster *cluster = process->cluster;
    struct world *world = &cluster->world;
    if (order->incarnation != process->incarnation) {
        world_fail(world, "%s obeys an order for another incarnation", process->name);
    }
    if (term_compare(order->term, process->seen) < 0) {
        world_fail(world, "%s obeys an order of term %llu, and has seen %llu", process->name,
                   (unsigned long long)order->term.number,
                   (unsigned long long)process->seen.number);
    }
    uint64_t count = cluster->order_count < MONITORS_ORDERS_MAX ? cluster->order_count
                                                                : (uint64_t)MONITORS_ORDERS_MAX;
    for (uint64_t i = 0; i < count; i++) {
        const struct monitors_order *given = &cluster->orders[i];
        if (given->node == process->index && given->kind == order->kind &&
            given->incarnation == process->incarnation &&
            term_compare(given->term, order->term) == 0) {
            process->seen = order->term;
            return;
        }
    }
    world_fail(world, "%s obeys an order that no leader gave to this incarnation", process->name);
}

/* A leader omits no event of its own term. Of earlier terms it may know a part only. */
static void check_events(struct monitors_process *process, const struct monitors_packet *packet,
                         const struct event_list *events)
{
    const struct monitors_process *sender = &process->cluster->processes[packet->sender];
    struct event_place first = events->events[0].place;
    struct event_place last = process->told;
    process->told = events->events[events->event_count - 1].place;
    process->told_by = packet->sender;
    process->told_run = packet->sender_run;
    if (!monitors_is_leading(sender) || packet->sender_run != sender->run) return;
    if (first.term != last.term || first.sequence <= last.sequence + 1) return;
    if (first.term != event_term(monitor_election(sender->monitor)->own)) return;
    world_fail(&process->cluster->world, "%s does not tell %s events %u to %u", sender->name,
               process->name, last.sequence + 1, first.sequence - 1);
}

void monitors_check_answer(struct monitors_process *process, const struct monitors_packet *packet,
                           const struct datagram *datagram, enum heartbeat_sender_answer answer)
{
    struct monitors_cluster *cluster = process->cluster;
    if (packet->origin == MONITORS_REPLAYED && answer != HEARTBEAT_SENDER_NOTHING &&
        answer != HEARTBEAT_SENDER_CHALLENGE) {
        world_fail(&cluster->world, "%s takes a recording of kind %d", process->name,
                   (int)datagram->kind);
    }
    if (answer == HEARTBEAT_SENDER_STOP || answer == HEARTBEAT_SENDER_KILL)
        check_obeyed(process, &datagram->order);
    if (answer == HEARTBEAT_SENDER_EVENTS) check_events(process, packet, &datagram->events);
    if (answer == HEARTBEAT_SENDER_VIEW && term_compare(datagram->view.term, process->seen) > 0) {
        process->seen = datagram->view.term;
    }
}

/* ---- recordings ---- */

void monitors_opinion_take(const struct monitors_process *monitor, struct monitors_opinion *out)
{
    for (uint32_t i = 0; i < monitor->cluster->process_count; i++) {
        monitor_targets(monitor->monitor, i, &out->nodes[i]);
    }
    out->election = *monitor_election(monitor->monitor);
}

static bool election_equals(const struct election *a, const struct election *b)
{
    bool is_equal = a->state == b->state && term_compare(a->highest, b->highest) == 0 &&
                    term_compare(a->promised, b->promised) == 0 &&
                    term_compare(a->leader, b->leader) == 0 && a->promised_ms == b->promised_ms &&
                    a->lease_end_ms == b->lease_end_ms;
    for (uint32_t i = 0; i < a->config.count && is_equal; i++) {
        const struct election_peer *x = &a->peers[i];
        const struct election_peer *y = &b->peers[i];
        is_equal = x->heard_ms == y->heard_ms && x->hears_us_ms == y->hears_us_ms &&
                   x->eligible == y->eligible && x->granted == y->granted &&
                   x->granted_ms == y->granted_ms;
    }
    return is_equal;
}

void monitors_opinion_compare(const struct monitors_process *monitor,
                              const struct monitors_opinion *before,
                              const struct datagram *datagram)
{
    struct monitors_cluster *cluster = monitor->cluster;
    for (uint32_t i = 0; i < cluster->process_count; i++) {
        const struct monitored *old = &before->nodes[i];
        struct monitored now;
        monitor_targets(monitor->monitor, i, &now);
        if (now.state != old->state || now.incarnation != old->incarnation ||
            now.restarts != old->restarts || now.silent_ms < old->silent_ms) {
            world_fail(&cluster->world, "a recording of kind %d changes what %s thinks of %s",
                       (int)datagram->kind, monitor->name, cluster->processes[i].name);
        }
    }
    if (!election_equals(&before->election, monitor_election(monitor->monitor))) {
        world_fail(&cluster->world, "a recording of kind %d changes what %s thinks of the election",
                   (int)datagram->kind, monitor->name);
    }
}
