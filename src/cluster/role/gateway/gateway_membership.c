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

static struct gateway_member *monitored_find(struct gateway_membership *membership,
                                             const char *name)
{
    for (uint32_t i = 0; i < membership->node_count; i++) {
        if (strcmp(membership->nodes[i].node.name, name) == 0) return &membership->nodes[i];
    }
    return NULL;
}

/* NULL: there are too many, or memory is out; then this one is not shown. */
static struct gateway_member *monitored_add(struct gateway_membership *membership)
{
    if (membership->node_count == membership->node_capacity) {
        uint32_t grown = membership->node_capacity == 0 ? 16 : membership->node_capacity * 2;
        if (grown > GATEWAY_MEMBERS_MAX) return NULL;
        struct gateway_member *nodes =
            memory_resize(NULL, membership->nodes, membership->node_capacity * sizeof *nodes,
                          grown * sizeof *nodes);
        if (nodes == NULL) return NULL;
        membership->nodes = nodes;
        membership->node_capacity = grown;
    }
    return &membership->nodes[membership->node_count++];
}

void gateway_membership_take_view(struct gateway *gateway, const struct view *view)
{
    struct gateway_membership *membership = &gateway->membership;
    if (view->term.number == 0) return;
    if (membership->ever && term_compare(view->term, membership->term) < 0) return;
    membership->ever = true;
    membership->at_ms = gateway->now_ms;
    membership->term = view->term;
    memcpy(membership->leader, view->leader, sizeof membership->leader);
    for (uint32_t i = 0; i < view->node_count; i++) {
        struct gateway_member *monitored = monitored_find(membership, view->nodes[i].name);
        if (monitored == NULL) monitored = monitored_add(membership);
        if (monitored == NULL) continue;
        *monitored = (struct gateway_member){.node = view->nodes[i], .at_ms = gateway->now_ms};
    }
}

bool gateway_membership_is_fresh(const struct gateway *gateway)
{
    const struct gateway_membership *membership = &gateway->membership;
    return membership->ever && gateway->now_ms - membership->at_ms < GATEWAY_MEMBERSHIP_FRESH_MS;
}

/* ---- what happened ---- */

static void happened_take(struct gateway *gateway, const struct cluster_event *event)
{
    struct gateway_membership *membership = &gateway->membership;
    uint32_t place = membership->event_count;
    while (place > 0) {
        int order = event_place_compare(membership->events[place - 1].event.place, event->place);
        if (order == 0) return;
        if (order < 0) break;
        place--;
    }
    if (membership->event_count == GATEWAY_EVENTS_MAX) {
        if (place == 0) return; /* It is older than all that are kept. */
        place--;
        memmove(&membership->events[0], &membership->events[1],
                (GATEWAY_EVENTS_MAX - 1) * sizeof membership->events[0]);
        membership->event_count--;
    }
    memmove(&membership->events[place + 1], &membership->events[place],
            (membership->event_count - place) * sizeof membership->events[0]);
    /* What is said to be older than this clock happened before it began. */
    uint64_t age_ms = event->age_ms < gateway->now_ms ? event->age_ms : gateway->now_ms;
    membership->events[place] =
        (struct gateway_happened){.event = *event, .at_ms = gateway->now_ms - age_ms};
    membership->event_count++;
    ASSERT(membership->event_count <= GATEWAY_EVENTS_MAX);
}

void gateway_membership_take_events(struct gateway *gateway, const struct event_list *list)
{
    struct gateway_membership *membership = &gateway->membership;
    if (membership->events == NULL) {
        membership->events = memory_alloc(NULL, GATEWAY_EVENTS_MAX * sizeof *membership->events);
    }
    for (uint32_t i = 0; membership->events != NULL && i < list->event_count; i++) {
        happened_take(gateway, &list->events[i]);
    }
}

void gateway_membership_done(struct gateway *gateway)
{
    struct gateway_membership *membership = &gateway->membership;
    memory_free(NULL, membership->nodes, membership->node_capacity * sizeof *membership->nodes);
    if (membership->events != NULL) {
        memory_free(NULL, membership->events, GATEWAY_EVENTS_MAX * sizeof *membership->events);
    }
    buf_done(&membership->queues);
}
