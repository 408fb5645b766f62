/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_membership.c - health of the nodes and events of the cluster, from the monitors' leader.
 *
 * Pages of a view come one by one and may be lost or overtaken, so each node has its own last
 * state, and a view of an older term is dropped.
 *
 * No decision rests on it: it is for people.
 */
#include "cluster/role/gateway/gateway_parts.h"

/* NULL: there are too many, or memory is out; then this one is not shown. */
static struct gateway_member *member_named(struct gateway_membership *membership, const char *name)
{
    for (uint32_t i = 0; i < membership->nodes.count; i++) {
        struct gateway_member *member = &membership->nodes.items[i];
        if (strcmp(member->node.name, name) == 0) return member;
    }
    if (membership->nodes.count == GATEWAY_MEMBERS_MAX) return NULL;
    return array_add(&membership->nodes, NULL);
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
        struct gateway_member *member = member_named(membership, view->nodes[i].name);
        if (member == NULL) continue;
        *member = (struct gateway_member){.node = view->nodes[i], .at_ms = gateway->now_ms};
    }
}

bool gateway_membership_is_fresh(const struct gateway *gateway)
{
    const struct gateway_membership *membership = &gateway->membership;
    return membership->ever && gateway->now_ms - membership->at_ms < GATEWAY_MEMBERSHIP_FRESH_MS;
}

void gateway_membership_take_events(struct gateway *gateway, const struct event_list *list)
{
    for (uint32_t i = 0; i < list->event_count; i++) {
        const struct cluster_event *event = &list->events[i];
        /* An event older than this clock happened before it began. */
        uint64_t age_ms = event->age_ms < gateway->now_ms ? event->age_ms : gateway->now_ms;
        cluster_history_add(&gateway->membership.history, event, gateway->now_ms - age_ms);
    }
}

void gateway_membership_done(struct gateway *gateway)
{
    array_done(&gateway->membership.nodes, NULL);
    buf_done(&gateway->membership.queues);
}
