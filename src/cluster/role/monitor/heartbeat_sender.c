/* heartbeat_sender.c - which orders are obeyed is decided by three questions, in this order: is it
 * current, is its term not older than any seen, is it meant for this incarnation.
 */
#include "cluster/role/monitor/heartbeat_sender.h"

#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/random.h"

static void term_see(struct heartbeat_sender *heartbeat_sender, struct term term)
{
    if (term_compare(term, heartbeat_sender->seen) > 0) heartbeat_sender->seen = term;
}

static bool monitor_find(const struct heartbeat_sender *heartbeat_sender, const char *name,
                         uint32_t *out)
{
    for (uint32_t i = 0; i < heartbeat_sender->monitor_count; i++) {
        if (strcmp(heartbeat_sender->monitors[i], name) != 0) continue;
        *out = i;
        return true;
    }
    return false;
}

static struct datagram datagram_to(const struct heartbeat_sender *heartbeat_sender,
                                   uint32_t monitor, enum datagram_kind kind)
{
    struct datagram datagram = {.kind = kind};
    memcpy(datagram.from, heartbeat_sender->name, sizeof datagram.from);
    memcpy(datagram.to, heartbeat_sender->monitors[monitor], sizeof datagram.to);
    return datagram;
}

static uint64_t number_draw(struct heartbeat_sender *heartbeat_sender)
{
    struct random random = {.state = heartbeat_sender->random};
    uint64_t number = random_u64(&random);
    heartbeat_sender->random = random.state;
    return number;
}

static enum replay_guard_answer replay_guard_check(struct heartbeat_sender *heartbeat_sender,
                                                   uint32_t monitor,
                                                   const struct datagram *datagram, uint64_t now_ms,
                                                   struct datagram *reply)
{
    struct replay_guard *link = &heartbeat_sender->links[monitor];
    bool is_idle = replay_guard_idle_ms(link, now_ms) > REPLAY_GUARD_NONCE_MS;
    enum replay_guard_answer answer =
        replay_guard_take(link, datagram, is_idle, now_ms, number_draw(heartbeat_sender));
    if (answer == REPLAY_CHALLENGE) {
        *reply = datagram_to(heartbeat_sender, monitor, DATAGRAM_CHALLENGE);
        reply->challenge = replay_guard_challenge(link, datagram);
        replay_guard_stamp(&heartbeat_sender->senders[monitor], heartbeat_sender->incarnation,
                           reply);
    }
    return answer;
}

static enum heartbeat_sender_answer hear_order(struct heartbeat_sender *heartbeat_sender,
                                               const struct order *order)
{
    bool is_late = term_compare(order->term, heartbeat_sender->seen) < 0;
    if (is_late && heartbeat_sender->mutation != HEARTBEAT_SENDER_NO_TERM)
        return HEARTBEAT_SENDER_NOTHING;
    term_see(heartbeat_sender, order->term);
    bool is_ours = order->incarnation == heartbeat_sender->incarnation;
    if (!is_ours && heartbeat_sender->mutation != HEARTBEAT_SENDER_NO_INCARNATION)
        return HEARTBEAT_SENDER_NOTHING;
    return order->kind == ORDER_KILL ? HEARTBEAT_SENDER_KILL : HEARTBEAT_SENDER_STOP;
}

static enum heartbeat_sender_answer hear_view(struct heartbeat_sender *heartbeat_sender,
                                              const struct view *view)
{
    if (term_compare(view->term, heartbeat_sender->seen) < 0) return HEARTBEAT_SENDER_NOTHING;
    term_see(heartbeat_sender, view->term);
    return HEARTBEAT_SENDER_VIEW;
}

static enum heartbeat_sender_answer hear_events(struct heartbeat_sender *heartbeat_sender,
                                                const struct event_list *events)
{
    if (events->event_count == 0) return HEARTBEAT_SENDER_NOTHING;
    struct event_place last = events->events[events->event_count - 1].place;
    if (event_place_compare(last, heartbeat_sender->events) <= 0) return HEARTBEAT_SENDER_NOTHING;
    heartbeat_sender->events = last;
    return HEARTBEAT_SENDER_EVENTS;
}

void heartbeat_sender_make(struct heartbeat_sender *heartbeat_sender, uint32_t monitor,
                           const struct heartbeat *heartbeat, struct datagram *out)
{
    ASSERT(monitor < heartbeat_sender->monitor_count);
    *out = datagram_to(heartbeat_sender, monitor, DATAGRAM_HEARTBEAT);
    out->heartbeat = *heartbeat;
    out->heartbeat.seen = heartbeat_sender->seen;
    out->heartbeat.events = heartbeat_sender->events;
    replay_guard_stamp(&heartbeat_sender->senders[monitor], heartbeat_sender->incarnation, out);
}

enum heartbeat_sender_answer heartbeat_sender_hear(struct heartbeat_sender *heartbeat_sender,
                                                   const struct datagram *datagram, uint64_t now_ms,
                                                   uint32_t *out_monitor, struct datagram *reply)
{
    uint32_t monitor;
    if (strcmp(datagram->to, heartbeat_sender->name) != 0) return HEARTBEAT_SENDER_NOTHING;
    if (!monitor_find(heartbeat_sender, datagram->from, &monitor)) return HEARTBEAT_SENDER_NOTHING;
    *out_monitor = monitor;

    if (datagram->kind == DATAGRAM_CHALLENGE) {
        bool counts = replay_guard_challenged(&heartbeat_sender->senders[monitor],
                                              heartbeat_sender->incarnation, &datagram->challenge);
        return counts ? HEARTBEAT_SENDER_AGAIN : HEARTBEAT_SENDER_NOTHING;
    }
    if (datagram->kind != DATAGRAM_ORDER && datagram->kind != DATAGRAM_VIEW &&
        datagram->kind != DATAGRAM_EVENTS)
        return HEARTBEAT_SENDER_NOTHING;

    enum replay_guard_answer answer =
        replay_guard_check(heartbeat_sender, monitor, datagram, now_ms, reply);
    if (answer == REPLAY_CHALLENGE) return HEARTBEAT_SENDER_CHALLENGE;
    if (answer != REPLAY_TAKE) return HEARTBEAT_SENDER_NOTHING;
    if (datagram->kind == DATAGRAM_ORDER) return hear_order(heartbeat_sender, &datagram->order);
    if (datagram->kind == DATAGRAM_VIEW) return hear_view(heartbeat_sender, &datagram->view);
    return hear_events(heartbeat_sender, &datagram->events);
}
