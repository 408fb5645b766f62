/* monitor_tell.c - how the nodes are and what happened: to those who want to know, and from those
 * who know better.
 *
 * A view's datagrams are of use one by one, so a lost one is made good by the next round. Events
 * are numbered: gateways say in their beats which was their last, monitors answer with their last.
 */
#include <inttypes.h>
#include <string.h>

#include "cluster/role/monitor/monitor_state.h"

enum {
    EVENT_DATAGRAMS = 1, /* To one receiver at a time: of two, the second could arrive alone. */
    EVENTS_SHOWN = 16    /* To operators. */
};

/* ---- events ---- */

static enum say_level level_of(enum cluster_event_kind kind)
{
    switch (kind) {
    case HAPPENED_BROKEN:
        return SAY_ERROR;
    case HAPPENED_SUSPECTED:
    case HAPPENED_HUNG:
    case HAPPENED_RESTARTING:
    case HAPPENED_FAILED:
        return SAY_WARN;
    default:
        return SAY_INFO;
    }
}

static void text_copy(char *out, size_t size, const char *text)
{
    size_t length = strnlen(text, size - 1);
    memcpy(out, text, length);
    out[length] = '\0';
}

void tell_event(struct monitor_turn *turn, enum cluster_event_kind kind, const struct watch *watch,
                uint64_t number, const char *text)
{
    struct monitor *monitor = turn->monitor;
    if (!election_leads(&monitor->election, turn->now_ms)) return;
    struct cluster_event event = {
        .place = {.term = event_term(monitor->election.own), .sequence = ++monitor->event_sequence},
        .kind = kind,
        .incarnation = watch->incarnation,
        .number = number,
    };
    memcpy(event.node, watch->name, sizeof event.node);
    text_copy(event.text, sizeof event.text, text);
    history_add(&monitor->history, &event, turn->now_ms);
    monitor->has_news = true;
    monitor_say(
        turn, level_of(kind),
        "event=%s target=%s incarnation=%" PRIu64 " term=%" PRIu64 " number=%" PRIu64 "%s%.128s%s",
        cluster_event_names[kind], watch->name, watch->incarnation, monitor->election.own.number,
        number, text[0] == '\0' ? "" : " text=\"", text, text[0] == '\0' ? "" : "\"");
}

/* ---- views ---- */

static void view_head(const struct monitor *monitor, uint64_t now_ms, struct view *out)
{
    *out = (struct view){
        .term = election_leader(&monitor->election, now_ms),
        .node_total = monitor->config.node_count,
    };
    if (out->term.number == 0) return;
    const struct watch *leader = &monitor->watches[monitor->monitors[out->term.holder]];
    memcpy(out->leader, leader->name, sizeof out->leader);
}

static void view_page(const struct monitor *monitor, uint32_t first, struct view *out)
{
    out->node_count = 0;
    for (uint32_t i = first; i < monitor->config.node_count; i++) {
        if (out->node_count == DATAGRAM_NODES_MAX) return;
        watch_describe(&monitor->watches[i], &out->nodes[out->node_count++]);
    }
}

/* How a datagram to somebody is begun. */
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
        history_list(&turn->monitor->history, after, turn->now_ms, &list);
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
        struct watch *watch = &monitor->watches[i];
        bool is_monitor = watch->position != NO_POSITION;
        if (i == monitor->self || (!is_monitor && watch->role != NODE_GATEWAY)) continue;
        if (!is_monitor && watch->silent_ms > monitor->config.patience_ms) continue;
        write_function write = is_monitor ? write_peer : write_node;
        send_view(turn, write, watch);
        send_events(turn, write, watch, watch->known, EVENT_DATAGRAMS);
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
    struct event_place after = history_before_last(&turn->monitor->history, EVENTS_SHOWN);
    send_view(turn, write_operator, entry);
    send_events(turn, write_operator, entry, after, EVENTS_SHOWN / DATAGRAM_EVENTS_MAX);
}

/* ---- what other monitors tell ---- */

/* A stop that the leader does not know of is reported to it. */
static bool is_objection(const struct watch *watch, const struct watched *watched)
{
    if (watch->state != WATCH_STOPPED || watched->state == WATCH_STOPPED) return false;
    if (watched->incarnation == watch->stopped) return true;
    bool is_alive = watched->state == WATCH_UP || watched->state == WATCH_STARTING;
    return !is_alive && watched->incarnation < watch->stopped;
}

static void adopt(struct monitor_turn *turn, struct watch *watch, const struct watched *watched,
                  enum link_answer answer)
{
    if (watched->restarts > watch->restarts) watch->restarts = watched->restarts;
    if (watched->state == WATCH_STOPPED) {
        watch_adopt_stop(turn, watch, watched);
    } else if (answer == LINK_TAKE) {
        watch_adopt_want(turn, watch);
    }
}

/* A leader that has just been started knows nothing of what was before: it is told by all, a little
 * with each view. What gets lost on the way it may have from another. */
static void offer_history(struct monitor_turn *turn, struct watch *leader, struct term term)
{
    struct event_list list;
    history_list(&turn->monitor->history, leader->offered, turn->now_ms, &list);
    while (list.event_count > 0 &&
           list.events[list.event_count - 1].place.term >= event_term(term)) {
        list.event_count--; /* Its own. */
    }
    if (list.event_count == 0) return;
    leader->offered = list.events[list.event_count - 1].place;
    monitor_write_peer(turn, leader, DATAGRAM_EVENTS)->events = list;
}

static void hear_leader(struct monitor_turn *turn, struct watch *from, const struct view *view,
                        enum link_answer answer)
{
    struct monitor *monitor = turn->monitor;
    if (term_compare(view->term, monitor->adopted) < 0) return;
    monitor->adopted = view->term;
    monitor_see_term(turn, view->term);
    offer_history(turn, from, view->term);

    struct view objections = {.term = view->term, .node_total = monitor->config.node_count};
    memcpy(objections.leader, from->name, sizeof objections.leader);
    for (uint32_t i = 0; i < view->node_count; i++) {
        const struct watched *watched = &view->nodes[i];
        struct watch *watch = monitor_find(monitor, watched->name);
        if (watch == NULL) continue;
        if (is_objection(watch, watched)) {
            struct watched *objection = &objections.nodes[objections.node_count++];
            watch_describe(watch, objection);
            objection->incarnation = watch->stopped;
        } else {
            adopt(turn, watch, watched, answer);
        }
    }
    if (objections.node_count == 0) return;
    struct datagram *datagram = monitor_write_peer(turn, from, DATAGRAM_VIEW);
    datagram->view = objections;
}

static void hear_objections(struct monitor_turn *turn, const struct view *view)
{
    for (uint32_t i = 0; i < view->node_count; i++) {
        const struct watched *watched = &view->nodes[i];
        struct watch *watch = monitor_find(turn->monitor, watched->name);
        if (watch == NULL || watched->state != WATCH_STOPPED) continue;
        watch_adopt_stop(turn, watch, watched);
    }
}

void tell_hear_view(struct monitor_turn *turn, struct watch *from, const struct view *view,
                    enum link_answer answer)
{
    if (view->term.number != 0 && view->term.holder == from->position) {
        hear_leader(turn, from, view, answer);
    } else {
        hear_objections(turn, view);
    }
}

static void suspicion_note(struct monitor *monitor, const struct cluster_event *event)
{
    struct watch *watch = monitor_find(monitor, event->node);
    if (watch == NULL || watch->incarnation != event->incarnation) return;
    if (event->kind == HAPPENED_SUSPECTED || event->kind == HAPPENED_HUNG)
        watch->suspicion_told = true;
}

void tell_hear_events(struct monitor_turn *turn, struct watch *from,
                      const struct event_list *events)
{
    struct monitor *monitor = turn->monitor;
    if (events->event_count == 0) return;
    for (uint32_t i = 0; i < events->event_count; i++) {
        const struct cluster_event *event = &events->events[i];
        if (history_add(&monitor->history, event, turn->now_ms - event->age_ms))
            suspicion_note(monitor, event);
    }
    struct event_place last = events->events[events->event_count - 1].place;
    if (event_place_compare(last, from->known) > 0) from->known = last;

    /* Tells the leader what need not be sent again. */
    struct term leader = election_leader(&monitor->election, turn->now_ms);
    if (leader.number == 0 || leader.holder != from->position) return;
    struct datagram *datagram = monitor_write_peer(turn, from, DATAGRAM_EVENTS);
    history_list(&monitor->history, history_before_last(&monitor->history, 1), turn->now_ms,
                 &datagram->events);
}
