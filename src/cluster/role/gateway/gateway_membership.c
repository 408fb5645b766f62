/* gateway_membership.c - how the nodes are and what happened to them, as the monitors' leader
 * tells.
 *
 * Pages of a view come one by one and may be lost or overtaken, so each node has its own last word,
 * and what an older term says is not heard. Events come in any order and again: they are kept in
 * the order of their places, the latest GATEWAY_EVENTS_MAX of them.
 *
 * Nothing is decided by what stands here: it is for people.
 */
#include "cluster/role/gateway/gateway_parts.h"

#include "engine/base/assert.h"
#include "engine/base/memory.h"

static struct gateway_watched *watched_find(struct gateway_watch *watch, const char *name)
{
    for (uint32_t i = 0; i < watch->node_count; i++) {
        if (strcmp(watch->nodes[i].node.name, name) == 0) return &watch->nodes[i];
    }
    return NULL;
}

/* NULL: there are too many, or memory is out; then this one is not shown. */
static struct gateway_watched *watched_add(struct gateway_watch *watch)
{
    if (watch->node_count == watch->node_capacity) {
        uint32_t grown = watch->node_capacity == 0 ? 16 : watch->node_capacity * 2;
        if (grown > GATEWAY_WATCHED_MAX) return NULL;
        struct gateway_watched *nodes = memory_resize(
            NULL, watch->nodes, watch->node_capacity * sizeof *nodes, grown * sizeof *nodes);
        if (nodes == NULL) return NULL;
        watch->nodes = nodes;
        watch->node_capacity = grown;
    }
    return &watch->nodes[watch->node_count++];
}

void gateway_watch_take_view(struct gateway *gateway, const struct view *view)
{
    struct gateway_watch *watch = &gateway->watch;
    if (view->term.number == 0) return;
    if (watch->ever && term_compare(view->term, watch->term) < 0) return;
    watch->ever = true;
    watch->at_ms = gateway->now_ms;
    watch->term = view->term;
    memcpy(watch->leader, view->leader, sizeof watch->leader);
    for (uint32_t i = 0; i < view->node_count; i++) {
        struct gateway_watched *watched = watched_find(watch, view->nodes[i].name);
        if (watched == NULL) watched = watched_add(watch);
        if (watched == NULL) continue;
        *watched = (struct gateway_watched){.node = view->nodes[i], .at_ms = gateway->now_ms};
    }
}

bool gateway_watch_is_fresh(const struct gateway *gateway)
{
    const struct gateway_watch *watch = &gateway->watch;
    return watch->ever && gateway->now_ms - watch->at_ms < GATEWAY_WATCH_FRESH_MS;
}

/* ---- what happened ---- */

static void happened_take(struct gateway *gateway, const struct cluster_event *event)
{
    struct gateway_watch *watch = &gateway->watch;
    uint32_t place = watch->event_count;
    while (place > 0) {
        int order = event_place_compare(watch->events[place - 1].event.place, event->place);
        if (order == 0) return;
        if (order < 0) break;
        place--;
    }
    if (watch->event_count == GATEWAY_EVENTS_MAX) {
        if (place == 0) return; /* It is older than all that are kept. */
        place--;
        memmove(&watch->events[0], &watch->events[1],
                (GATEWAY_EVENTS_MAX - 1) * sizeof watch->events[0]);
        watch->event_count--;
    }
    memmove(&watch->events[place + 1], &watch->events[place],
            (watch->event_count - place) * sizeof watch->events[0]);
    /* What is said to be older than this clock happened before it began. */
    uint64_t age_ms = event->age_ms < gateway->now_ms ? event->age_ms : gateway->now_ms;
    watch->events[place] =
        (struct gateway_happened){.event = *event, .at_ms = gateway->now_ms - age_ms};
    watch->event_count++;
    ASSERT(watch->event_count <= GATEWAY_EVENTS_MAX);
}

void gateway_watch_take_events(struct gateway *gateway, const struct event_list *list)
{
    struct gateway_watch *watch = &gateway->watch;
    if (watch->events == NULL) {
        watch->events = memory_alloc(NULL, GATEWAY_EVENTS_MAX * sizeof *watch->events);
    }
    for (uint32_t i = 0; watch->events != NULL && i < list->event_count; i++) {
        happened_take(gateway, &list->events[i]);
    }
}

void gateway_watch_done(struct gateway *gateway)
{
    struct gateway_watch *watch = &gateway->watch;
    memory_free(NULL, watch->nodes, watch->node_capacity * sizeof *watch->nodes);
    if (watch->events != NULL) {
        memory_free(NULL, watch->events, GATEWAY_EVENTS_MAX * sizeof *watch->events);
    }
    buf_done(&watch->queues);
}
