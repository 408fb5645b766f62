/* monitors_checker.c - what must hold at every step, counted apart from the roles.
 *
 * The checker sees every datagram and every moment of the world. It counts a beat as heard where a
 * monitor *must* take it: it is genuine, the node's last one so far, and brings the monitor's
 * number (cluster/role/replay_guard.h). Where the monitor may but need not take it, nothing is
 * said.
 */
#include "cluster/sim/monitors/monitors_cluster.h"

#include <string.h>

/* Room for what a tick rounds. */
enum { ROUNDING_MS = 2 * MONITOR_TICK_MS, PPM = 1000000 };

static uint64_t local_since(const struct watch_process *process, uint64_t from_ms)
{
    uint64_t passed_ms = process->cluster->world.now_ms - from_ms;
    return passed_ms * (uint64_t)(PPM + process->rate_ppm) / PPM;
}

static struct watch_sight *sight_of(struct watch_process *monitor, uint32_t node)
{
    struct watch_sight *sight = &monitor->cluster->sights[watch_position(monitor)][node];
    if (sight->monitor_life != monitor->life) {
        *sight = (struct watch_sight){.monitor_life = monitor->life};
    }
    return sight;
}

static bool is_leading(const struct watch_process *monitor)
{
    return monitor->is_up && monitor->monitor != NULL &&
           election_leads(monitor_election(monitor->monitor), watch_process_now(monitor));
}

/* ---- beats ---- */

/* Whether a monitor must take it. */
static bool is_taken(struct watch_process *monitor, const struct watch_sight *sight,
                     const struct watch_packet *packet, const struct datagram *datagram)
{
    uint32_t half_ms = monitor->cluster->settings.patience_ms / 2;
    bool is_known = sight->heard_ms != 0 && sight->node_life == packet->sender_life;
    if (datagram->nonce == 0) return false;
    /* A number that was not used for long is void. */
    bool is_in_use =
        is_known && local_since(monitor, sight->heard_ms) + ROUNDING_MS < LINK_NONCE_LIFE_MS;
    if (is_in_use && datagram->nonce == sight->nonce) return datagram->sequence > sight->sequence;
    if (datagram->nonce != sight->fresh_nonce) return false;
    if (local_since(monitor, sight->fresh_ms) + ROUNDING_MS > LINK_NONCE_LIFE_MS) return false;
    if (is_known) return datagram->sequence > sight->sequence;
    if (sight->heard_ms == 0 || datagram->incarnation > sight->incarnation) return true;
    return local_since(monitor, sight->heard_ms) > half_ms + ROUNDING_MS;
}

static void note_beat(struct watch_process *monitor, const struct watch_packet *packet,
                      const struct datagram *datagram)
{
    struct watch_sight *sight = sight_of(monitor, packet->sender);
    uint64_t now_ms = monitor->cluster->world.now_ms;
    if (packet->sender_life != sight->stopped_life) sight->knows_stopped = false;
    if (!is_taken(monitor, sight, packet, datagram)) return;
    if (sight->heard_ms == 0 || sight->node_life != packet->sender_life ||
        sight->progress != datagram->beat.progress) {
        sight->progress_ms = now_ms;
    }
    sight->nonce = datagram->nonce;
    sight->node_life = packet->sender_life;
    sight->incarnation = datagram->incarnation;
    sight->sequence = datagram->sequence;
    sight->heard_ms = now_ms;
    sight->progress = datagram->beat.progress;
    if (datagram->beat.state >= BEAT_STOPPING) {
        sight->knows_stopped = true;
        sight->stopped_life = packet->sender_life;
    }
}

bool watch_stop_may_stand(const struct watch_process *process, struct watch_process *leader)
{
    return process->stopped_life != 0 &&
           sight_of(leader, process->index)->node_life <= process->stopped_life;
}

/* Another monitor says that somebody is not stopped: whoever hears it may believe it. */
static void note_view(struct watch_process *monitor, const struct view *view)
{
    struct watch_cluster *cluster = monitor->cluster;
    for (uint32_t i = 0; i < view->node_count; i++) {
        for (uint32_t node = 0; node < cluster->process_count; node++) {
            if (strcmp(view->nodes[i].name, cluster->processes[node].name) == 0 &&
                view->nodes[i].state != WATCH_STOPPED) {
                sight_of(monitor, node)->knows_stopped = false;
            }
        }
    }
}

void watch_check_heard(struct watch_process *monitor, const struct watch_packet *packet,
                       const struct datagram *datagram)
{
    if (packet->origin != WATCH_GENUINE || packet->sender == UINT32_MAX) return;
    if (datagram->kind == DATAGRAM_BEAT) note_beat(monitor, packet, datagram);
    if (datagram->kind == DATAGRAM_VIEW) note_view(monitor, &datagram->view);
}

/* ---- leaders ---- */

static void note_stops(struct watch_process *monitor)
{
    struct watch_cluster *cluster = monitor->cluster;
    for (uint32_t i = 0; i < cluster->process_count; i++) {
        const struct watch_process *node = &cluster->processes[i];
        if (node->is_up || !(node->was_stopped || node->stop_was_asked)) continue;
        struct watched watched;
        monitor_watched(monitor->monitor, i, &watched);
        if (watched.state != WATCH_STOPPED) continue;
        struct watch_sight *sight = sight_of(monitor, i);
        sight->knows_stopped = true;
        sight->stopped_life = node->life;
    }
}

void watch_check_stepped(struct watch_process *monitor)
{
    struct watch_cluster *cluster = monitor->cluster;
    if (cluster->has_stops) note_stops(monitor);
    if (!is_leading(monitor)) return;
    for (uint32_t i = 0; i < cluster->settings.monitor_count; i++) {
        struct watch_process *other = watch_monitor(cluster, i);
        if (other == monitor || !is_leading(other)) continue;
        struct term term = monitor_election(monitor->monitor)->own;
        struct term other_term = monitor_election(other->monitor)->own;
        world_fail(&cluster->world, "two leaders: %s in term %llu and %s in term %llu",
                   monitor->name, (unsigned long long)term.number, other->name,
                   (unsigned long long)other_term.number);
    }
}

/* ---- orders and drives ---- */

static void check_office(struct watch_process *monitor, struct term term, const char *what)
{
    const struct election *election = monitor_election(monitor->monitor);
    if (is_leading(monitor) && term.holder == watch_position(monitor) &&
        term_compare(term, election->own) == 0) {
        return;
    }
    world_fail(&monitor->cluster->world, "%s %s in term %llu, and is not its leader", monitor->name,
               what, (unsigned long long)term.number);
}

/* Nobody is touched who was heard in time and got on. */
static void check_cause(struct watch_process *monitor, uint32_t node, const char *what)
{
    struct watch_cluster *cluster = monitor->cluster;
    const struct watch_settings *settings = &cluster->settings;
    const struct watch_sight *sight = sight_of(monitor, node);
    /* What comes late from one that has died since is no reason to wait. */
    if (sight->heard_ms == 0 || sight->node_life != cluster->processes[node].life) return;
    uint64_t silent_ms = local_since(monitor, sight->heard_ms);
    uint64_t still_ms = local_since(monitor, sight->progress_ms);
    if (silent_ms + ROUNDING_MS > settings->patience_ms) return;
    if (still_ms + ROUNDING_MS > settings->hang_timeout_ms) return;
    world_fail(&cluster->world, "%s %s %s, which was heard %llu ms ago and got on %llu ms ago",
               monitor->name, what, cluster->processes[node].name, (unsigned long long)silent_ms,
               (unsigned long long)still_ms);
}

/* Whether somebody knows that it was stopped on purpose, who could have said so by now. */
static bool is_known_stopped(struct watch_process *monitor, uint32_t node)
{
    struct watch_cluster *cluster = monitor->cluster;
    const struct watch_settings *settings = &cluster->settings;
    if (sight_of(monitor, node)->knows_stopped) return true;
    /* Only a leader is told by others. */
    if (!is_leading(monitor)) return false;
    uint64_t patient_ms = (uint64_t)settings->lease_ms + settings->patience_ms;
    if (!cluster->faults_are_over || cluster->world.now_ms < cluster->heal_ms + patient_ms) {
        return false;
    }
    for (uint32_t i = 0; i < settings->monitor_count; i++) {
        struct watch_process *other = watch_monitor(cluster, i);
        if (!other->is_up || other->is_hung || other->state >= BEAT_STOPPING) continue;
        const struct watch_sight *sight = sight_of(other, node);
        if (sight->knows_stopped && sight->stopped_life == cluster->processes[node].life) {
            return true;
        }
    }
    return false;
}

static void check_drive(struct watch_process *monitor, const struct monitor_effect *effect)
{
    struct watch_cluster *cluster = monitor->cluster;
    const struct watch_process *target = &cluster->processes[effect->node];
    world_trace(&cluster->world, "%s: %s %s, found dead %llu, term %llu", monitor->name,
                effect->drive == DRIVE_START ? "starts" : "restarts", target->name,
                (unsigned long long)effect->incarnation, (unsigned long long)effect->term.number);
    if (effect->term.number != 0) {
        check_office(monitor, effect->term, "drives");
    } else if (effect->drive != DRIVE_START || !watch_is_monitor(target)) {
        world_fail(&cluster->world, "%s drives %s without a term", monitor->name, target->name);
    }
    check_cause(monitor, effect->node, "drives");
    if (is_known_stopped(monitor, effect->node)) {
        world_fail(&cluster->world, "%s starts %s, which is known to be stopped on purpose",
                   monitor->name, target->name);
    }
}

static uint32_t process_named(const struct watch_cluster *cluster, const char *name)
{
    uint32_t i = 0;
    while (i < cluster->process_count && strcmp(cluster->processes[i].name, name) != 0) {
        i++;
    }
    return i;
}

static void check_order(struct watch_process *monitor, const struct datagram *datagram)
{
    struct watch_cluster *cluster = monitor->cluster;
    const struct order *order = &datagram->order;
    uint32_t node = process_named(cluster, datagram->to);
    world_trace(&cluster->world, "%s: orders %s %llu to %s, term %llu", monitor->name, datagram->to,
                (unsigned long long)order->incarnation, order->kind == ORDER_KILL ? "die" : "stop",
                (unsigned long long)order->term.number);
    check_office(monitor, order->term, "orders");
    if (node == cluster->process_count) {
        world_fail(&cluster->world, "%s orders somebody who is none of us", monitor->name);
        return;
    }
    if (order->kind == ORDER_KILL) check_cause(monitor, node, "orders to die:");
    struct watch_order *place = &cluster->orders[cluster->order_count++ % WATCH_ORDERS_MAX];
    *place = (struct watch_order){
        .term = order->term, .kind = order->kind, .node = node, .incarnation = order->incarnation};
}

static void note_challenge(struct watch_process *monitor, const struct monitor_effect *effect)
{
    struct watch_cluster *cluster = monitor->cluster;
    uint32_t node = process_named(cluster, effect->datagram.to);
    /* A monitor has another one with every other's main socket, which is not about beats. */
    if (node == cluster->process_count || effect->kind != MONITOR_SEND) return;
    if (effect->address.bytes[0] != WATCH_DOOR_HEART) return;
    struct watch_sight *sight = sight_of(monitor, node);
    if (sight->fresh_nonce == effect->datagram.challenge.nonce) return;
    sight->fresh_nonce = effect->datagram.challenge.nonce;
    sight->fresh_ms = cluster->world.now_ms;
}

void watch_check_effect(struct watch_process *monitor, const struct monitor_effect *effect)
{
    if (effect->kind == MONITOR_DRIVE) check_drive(monitor, effect);
    if (effect->kind != MONITOR_SEND && effect->kind != MONITOR_SEND_TO_MONITOR) return;
    if (effect->datagram.kind == DATAGRAM_ORDER) check_order(monitor, &effect->datagram);
    if (effect->datagram.kind == DATAGRAM_CHALLENGE) note_challenge(monitor, effect);
}

/* ---- what nodes do about it ---- */

static void check_obeyed(struct watch_process *process, const struct order *order)
{
    struct watch_cluster *cluster = process->cluster;
    struct world *world = &cluster->world;
    if (order->incarnation != process->incarnation) {
        world_fail(world, "%s obeys an order for another incarnation", process->name);
    }
    if (term_compare(order->term, process->seen) < 0) {
        world_fail(world, "%s obeys an order of term %llu, and has seen %llu", process->name,
                   (unsigned long long)order->term.number,
                   (unsigned long long)process->seen.number);
    }
    uint64_t count =
        cluster->order_count < WATCH_ORDERS_MAX ? cluster->order_count : (uint64_t)WATCH_ORDERS_MAX;
    for (uint64_t i = 0; i < count; i++) {
        const struct watch_order *given = &cluster->orders[i];
        if (given->node == process->index && given->kind == order->kind &&
            given->incarnation == process->incarnation &&
            term_compare(given->term, order->term) == 0) {
            process->seen = order->term;
            return;
        }
    }
    world_fail(world, "%s obeys an order that no leader gave to this incarnation", process->name);
}

/* Of its own term a leader leaves nothing out. What it was told of others' it may have in part. */
static void check_events(struct watch_process *process, const struct watch_packet *packet,
                         const struct event_list *events)
{
    const struct watch_process *sender = &process->cluster->processes[packet->sender];
    struct event_place first = events->events[0].place;
    struct event_place last = process->told;
    process->told = events->events[events->event_count - 1].place;
    process->told_by = packet->sender;
    process->told_life = packet->sender_life;
    if (!is_leading(sender) || packet->sender_life != sender->life) return;
    if (first.term != last.term || first.sequence <= last.sequence + 1) return;
    if (first.term != event_term(monitor_election(sender->monitor)->own)) return;
    world_fail(&process->cluster->world, "%s does not tell %s events %u to %u", sender->name,
               process->name, last.sequence + 1, first.sequence - 1);
}

void watch_check_answer(struct watch_process *process, const struct watch_packet *packet,
                        const struct datagram *datagram, enum beater_answer answer)
{
    struct watch_cluster *cluster = process->cluster;
    if (packet->origin == WATCH_REPLAYED && answer != BEATER_NOTHING &&
        answer != BEATER_CHALLENGE) {
        world_fail(&cluster->world, "%s takes a recording of kind %d", process->name,
                   (int)datagram->kind);
    }
    if (answer == BEATER_STOP || answer == BEATER_KILL) check_obeyed(process, &datagram->order);
    if (answer == BEATER_EVENTS) check_events(process, packet, &datagram->events);
    if (answer == BEATER_VIEW && term_compare(datagram->view.term, process->seen) > 0) {
        process->seen = datagram->view.term;
    }
}

/* ---- recordings ---- */

void watch_opinion_take(const struct watch_process *monitor, struct watch_opinion *out)
{
    for (uint32_t i = 0; i < monitor->cluster->process_count; i++) {
        monitor_watched(monitor->monitor, i, &out->nodes[i]);
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

void watch_opinion_compare(const struct watch_process *monitor, const struct watch_opinion *before,
                           const struct datagram *datagram)
{
    struct watch_cluster *cluster = monitor->cluster;
    for (uint32_t i = 0; i < cluster->process_count; i++) {
        const struct watched *old = &before->nodes[i];
        struct watched now;
        monitor_watched(monitor->monitor, i, &now);
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
