/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_tell.c - the leader's view of the nodes and the events: to gateways, monitors and
 * operators, and taken over from the leader.
 *
 * Each datagram of a view is of use alone, so a lost one is made good by the next round. Events are
 * numbered: a gateway names the last one it has in its heartbeats, a monitor in its answer.
 */
#include <string.h>

#include "cluster/role/monitor/monitor_state.h"

enum {
    EVENT_DATAGRAMS = 1, /* To one receiver at a time: of two the second could arrive alone. */
    EVENTS_SHOWN = 16    /* To operators. */
};

/* ---- views ---- */

static void view_head(const struct monitor *monitor, uint64_t now_ms, struct view *out)
{
    *out = (struct view){
        .term = election_leader(&monitor->election, now_ms),
        .node_total = monitor->config.node_count,
    };
    if (out->term.number == 0) return;
    const struct target *leader = &monitor->targets[monitor->monitors[out->term.holder]];
    memcpy(out->leader, leader->name, sizeof out->leader);
}

static void view_page(const struct monitor *monitor, uint32_t first, struct view *out)
{
    out->node_count = 0;
    for (uint32_t i = first; i < monitor->config.node_count; i++) {
        if (out->node_count == DATAGRAM_NODES_MAX) return;
        target_describe(&monitor->targets[i], &out->nodes[out->node_count++]);
    }
}

/* Begins a datagram to a receiver of one kind. */
typedef struct datagram *(*write_function)(struct monitor_turn *turn, void *receiver,
                                           enum datagram_kind kind);

static struct datagram *write_node(struct monitor_turn *turn, void *receiver,
                                   enum datagram_kind kind)
{
    return monitor_write_node(turn, receiver, kind);
}

static struct datagram *write_peer(struct monitor_turn *turn, void *receiver,
                                   enum datagram_kind kind)
{
    return monitor_write_peer(turn, receiver, kind);
}

static struct datagram *write_operator(struct monitor_turn *turn, void *receiver,
                                       enum datagram_kind kind)
{
    return monitor_write_operator(turn, receiver, kind);
}

static void send_view(struct monitor_turn *turn, write_function write, void *receiver)
{
    const struct monitor *monitor = turn->monitor;
    for (uint32_t first = 0; first < monitor->config.node_count; first += DATAGRAM_NODES_MAX) {
        struct datagram *datagram = write(turn, receiver, DATAGRAM_VIEW);
        if (datagram == NULL) return;
        view_head(monitor, turn->now_ms, &datagram->view);
        view_page(monitor, first, &datagram->view);
    }
}

static void send_events(struct monitor_turn *turn, write_function write, void *receiver,
                        struct event_place after, uint32_t datagrams)
{
    for (uint32_t i = 0; i < datagrams; i++) {
        struct event_list list;
        cluster_history_list(&turn->monitor->history, after, turn->now_ms, &list);
        if (list.event_count == 0) return;
        struct datagram *datagram = write(turn, receiver, DATAGRAM_EVENTS);
        if (datagram == NULL) return;
        datagram->events = list;
        after = list.events[list.event_count - 1].place;
    }
}

static void tell_all(struct monitor_turn *turn)
{
    struct monitor *monitor = turn->monitor;
    for (uint32_t i = 0; i < monitor->config.node_count; i++) {
        struct target *target = &monitor->targets[i];
        bool is_monitor = target->position != NO_POSITION;
        if (i == monitor->self || (!is_monitor && target->role != NODE_GATEWAY)) continue;
        if (!is_monitor && target->silent_ms > monitor->config.failure_timeout_ms) continue;
        write_function write = is_monitor ? write_peer : write_node;
        send_view(turn, write, target);
        send_events(turn, write, target, target->known, EVENT_DATAGRAMS);
    }
}

void tell_tick(struct monitor_turn *turn)
{
    struct monitor *monitor = turn->monitor;
    if (!election_leads(&monitor->election, turn->now_ms)) return;
    /* While it hears objections, a new leader speaks more often: each may get lost. */
    bool is_hurried = monitor->has_news || turn->now_ms < monitor->settled_ms;
    uint64_t pause_ms = is_hurried ? VIEW_PAUSE_MS : VIEW_PERIOD_MS;
    if (turn->now_ms - monitor->view_ms < pause_ms) return;
    monitor->view_ms = turn->now_ms;
    monitor->has_news = false;
    tell_all(turn);
}

void tell_operator(struct monitor_turn *turn, struct operator_entry *entry)
{
    struct event_place after = cluster_history_before(&turn->monitor->history, EVENTS_SHOWN);
    send_view(turn, write_operator, entry);
    send_events(turn, write_operator, entry, after, EVENTS_SHOWN / DATAGRAM_EVENTS_MAX);
}

/* ---- from other monitors ---- */

/* A stop that the leader does not know of is reported to it: else a node that was stopped on
 * purpose would be restarted by the next leader. */
static bool is_objection(const struct target *target, const struct monitored *monitored)
{
    if (target->state != HEALTH_STOPPED || monitored->state == HEALTH_STOPPED) return false;
    if (monitored->incarnation == target->stopped) return true;
    bool is_alive = monitored->state == HEALTH_UP || monitored->state == HEALTH_STARTING;
    return !is_alive && monitored->incarnation < target->stopped;
}

/* A stop holds whenever it arrives; a wish to run only if it is the latest word. */
static void adopt(struct monitor_turn *turn, struct target *target,
                  const struct monitored *monitored, enum replay_guard_answer answer)
{
    if (monitored->restarts > target->restarts) target->restarts = monitored->restarts;
    if (monitored->state == HEALTH_STOPPED) {
        target_adopt_stop(turn, target, monitored);
    } else if (answer == REPLAY_TAKE) {
        target_adopt_want(turn, target);
    }
}

/* A leader that has just started knows no earlier events: each follower sends its own, a few with
 * each view. What one follower's datagram loses, another one's may bring. */
static void offer_history(struct monitor_turn *turn, struct target *leader, struct term term)
{
    struct event_list list;
    cluster_history_list(&turn->monitor->history, leader->offered, turn->now_ms, &list);
    while (list.event_count > 0 &&
           list.events[list.event_count - 1].place.term >= event_term(term)) {
        list.event_count--; /* Its own. */
    }
    if (list.event_count == 0) return;
    leader->offered = list.events[list.event_count - 1].place;
    monitor_write_peer(turn, leader, DATAGRAM_EVENTS)->events = list;
}

static void hear_leader(struct monitor_turn *turn, struct target *from, const struct view *view,
                        enum replay_guard_answer answer)
{
    struct monitor *monitor = turn->monitor;
    if (term_compare(view->term, monitor->adopted) < 0) return;
    monitor->adopted = view->term;
    monitor_see_term(turn, view->term);
    offer_history(turn, from, view->term);

    struct view objections = {.term = view->term, .node_total = monitor->config.node_count};
    memcpy(objections.leader, from->name, sizeof objections.leader);
    for (uint32_t i = 0; i < view->node_count; i++) {
        const struct monitored *monitored = &view->nodes[i];
        struct target *target = monitor_find(monitor, monitored->name);
        if (target == NULL) continue;
        if (is_objection(target, monitored)) {
            struct monitored *objection = &objections.nodes[objections.node_count++];
            target_describe(target, objection);
            objection->incarnation = target->stopped;
        } else {
            adopt(turn, target, monitored, answer);
        }
    }
    if (objections.node_count == 0) return;
    struct datagram *datagram = monitor_write_peer(turn, from, DATAGRAM_VIEW);
    datagram->view = objections;
}

static void hear_objections(struct monitor_turn *turn, const struct view *view)
{
    for (uint32_t i = 0; i < view->node_count; i++) {
        const struct monitored *monitored = &view->nodes[i];
        struct target *target = monitor_find(turn->monitor, monitored->name);
        if (target == NULL || monitored->state != HEALTH_STOPPED) continue;
        target_adopt_stop(turn, target, monitored);
    }
}

void tell_hear_view(struct monitor_turn *turn, struct target *from, const struct view *view,
                    enum replay_guard_answer answer)
{
    if (view->term.number != 0 && view->term.holder == from->position) {
        hear_leader(turn, from, view, answer);
    } else {
        hear_objections(turn, view);
    }
}

static void suspicion_note(struct monitor *monitor, const struct cluster_event *event)
{
    struct target *target = monitor_find(monitor, event->node);
    if (target == NULL || target->incarnation != event->incarnation) return;
    if (event->kind == HAPPENED_SUSPECTED || event->kind == HAPPENED_HUNG)
        target->suspicion_told = true;
}

void tell_hear_events(struct monitor_turn *turn, struct target *from,
                      const struct event_list *events)
{
    struct monitor *monitor = turn->monitor;
    if (events->event_count == 0) return;
    for (uint32_t i = 0; i < events->event_count; i++) {
        const struct cluster_event *event = &events->events[i];
        if (cluster_history_add(&monitor->history, event, turn->now_ms - event->age_ms))
            suspicion_note(monitor, event);
    }
    struct event_place last = events->events[events->event_count - 1].place;
    if (event_place_compare(last, from->known) > 0) from->known = last;

    /* Tells the leader what need not be sent again. */
    struct term leader = election_leader(&monitor->election, turn->now_ms);
    if (leader.number == 0 || leader.holder != from->position) return;
    struct datagram *datagram = monitor_write_peer(turn, from, DATAGRAM_EVENTS);
    cluster_history_list(&monitor->history, cluster_history_before(&monitor->history, 1),
                         turn->now_ms, &datagram->events);
}
