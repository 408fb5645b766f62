/* SPDX-License-Identifier: Apache-2.0 */
/* heartbeat_sender.c - an order is obeyed if it passes three checks, in this order: it is not
 * replayed, its term is not older than any seen, it is meant for this incarnation.
 *
 * The term is a fencing token (Raft §5.1: a request with a stale term is rejected): a leader whose
 * lease ended without its noticing cannot stop a node that has heard of a newer one.
 */
#include "cluster/role/monitor/heartbeat_sender.h"

#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/fault_injection.h"
#include "engine/base/random.h"

static void term_see(struct heartbeat_sender *sender, struct term term)
{
    if (term_compare(term, sender->seen) > 0) sender->seen = term;
}

static bool monitor_find(const struct heartbeat_sender *sender, const char *name, uint32_t *out)
{
    for (uint32_t i = 0; i < sender->monitor_count; i++) {
        if (strcmp(sender->monitors[i], name) != 0) continue;
        *out = i;
        return true;
    }
    return false;
}

static struct datagram datagram_to(const struct heartbeat_sender *sender, uint32_t monitor,
                                   enum datagram_kind kind)
{
    struct datagram datagram = {.kind = kind};
    memcpy(datagram.from, sender->name, sizeof datagram.from);
    memcpy(datagram.to, sender->monitors[monitor], sizeof datagram.to);
    return datagram;
}

static uint64_t number_draw(struct heartbeat_sender *sender)
{
    struct random random = {.state = sender->random};
    uint64_t number = random_u64(&random);
    sender->random = random.state;
    return number;
}

static enum replay_guard_answer replay_guard_check(struct heartbeat_sender *sender,
                                                   uint32_t monitor,
                                                   const struct datagram *datagram, uint64_t now_ms,
                                                   struct datagram *reply)
{
    struct replay_guard *guard = &sender->guards[monitor];
    bool is_idle = replay_guard_idle_ms(guard, now_ms) > REPLAY_GUARD_NONCE_MS;
    enum replay_guard_answer answer =
        replay_guard_take(guard, datagram, is_idle, now_ms, number_draw(sender));
    if (answer == REPLAY_CHALLENGE) {
        *reply = datagram_to(sender, monitor, DATAGRAM_CHALLENGE);
        reply->challenge = replay_guard_challenge(guard, datagram);
        replay_guard_stamp(&sender->senders[monitor], sender->incarnation, reply);
    }
    return answer;
}

static enum heartbeat_sender_answer hear_order(struct heartbeat_sender *sender,
                                               const struct order *order)
{
    bool is_late = term_compare(order->term, sender->seen) < 0;
    if (is_late && !IS_PLANTED(sender->mutation, HEARTBEAT_SENDER_NO_TERM))
        return HEARTBEAT_SENDER_NOTHING;
    term_see(sender, order->term);
    bool is_ours = order->incarnation == sender->incarnation;
    if (!is_ours && !IS_PLANTED(sender->mutation, HEARTBEAT_SENDER_NO_INCARNATION))
        return HEARTBEAT_SENDER_NOTHING;
    return order->kind == ORDER_KILL ? HEARTBEAT_SENDER_KILL : HEARTBEAT_SENDER_STOP;
}

static enum heartbeat_sender_answer hear_view(struct heartbeat_sender *sender,
                                              const struct view *view)
{
    if (term_compare(view->term, sender->seen) < 0) return HEARTBEAT_SENDER_NOTHING;
    term_see(sender, view->term);
    return HEARTBEAT_SENDER_VIEW;
}

static enum heartbeat_sender_answer hear_events(struct heartbeat_sender *sender,
                                                const struct event_list *events)
{
    if (events->event_count == 0) return HEARTBEAT_SENDER_NOTHING;
    struct event_place last = events->events[events->event_count - 1].place;
    if (event_place_compare(last, sender->events) <= 0) return HEARTBEAT_SENDER_NOTHING;
    sender->events = last;
    return HEARTBEAT_SENDER_EVENTS;
}

void heartbeat_sender_make(struct heartbeat_sender *sender, uint32_t monitor,
                           const struct heartbeat *heartbeat, struct datagram *out)
{
    ASSERT(monitor < sender->monitor_count);
    *out = datagram_to(sender, monitor, DATAGRAM_HEARTBEAT);
    out->heartbeat = *heartbeat;
    out->heartbeat.seen = sender->seen;
    out->heartbeat.events = sender->events;
    replay_guard_stamp(&sender->senders[monitor], sender->incarnation, out);
}

enum heartbeat_sender_answer heartbeat_sender_hear(struct heartbeat_sender *sender,
                                                   const struct datagram *datagram, uint64_t now_ms,
                                                   uint32_t *out_monitor, struct datagram *reply)
{
    uint32_t monitor;
    if (strcmp(datagram->to, sender->name) != 0) return HEARTBEAT_SENDER_NOTHING;
    if (!monitor_find(sender, datagram->from, &monitor)) return HEARTBEAT_SENDER_NOTHING;
    *out_monitor = monitor;

    if (datagram->kind == DATAGRAM_CHALLENGE) {
        bool counts = replay_guard_challenged(&sender->senders[monitor], sender->incarnation,
                                              &datagram->challenge);
        return counts ? HEARTBEAT_SENDER_AGAIN : HEARTBEAT_SENDER_NOTHING;
    }
    if (datagram->kind != DATAGRAM_ORDER && datagram->kind != DATAGRAM_VIEW &&
        datagram->kind != DATAGRAM_EVENTS)
        return HEARTBEAT_SENDER_NOTHING;

    enum replay_guard_answer answer = replay_guard_check(sender, monitor, datagram, now_ms, reply);
    if (answer == REPLAY_CHALLENGE) return HEARTBEAT_SENDER_CHALLENGE;
    if (answer != REPLAY_TAKE) return HEARTBEAT_SENDER_NOTHING;
    if (datagram->kind == DATAGRAM_ORDER) return hear_order(sender, &datagram->order);
    if (datagram->kind == DATAGRAM_VIEW) return hear_view(sender, &datagram->view);
    return hear_events(sender, &datagram->events);
}
