/* heartbeat_sender.c - which orders are obeyed is decided by three questions, in this order: is it
 * of now, is its term not older than any seen, is it meant for this incarnation.
 */
#include "cluster/role/monitor/heartbeat_sender.h"

#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/random.h"

static void term_see(struct beater *beater, struct term term)
{
    if (term_compare(term, beater->seen) > 0) beater->seen = term;
}

static bool monitor_find(const struct beater *beater, const char *name, uint32_t *out)
{
    for (uint32_t i = 0; i < beater->monitor_count; i++) {
        if (strcmp(beater->monitors[i], name) != 0) continue;
        *out = i;
        return true;
    }
    return false;
}

static struct datagram datagram_to(const struct beater *beater, uint32_t monitor,
                                   enum datagram_kind kind)
{
    struct datagram datagram = {.kind = kind};
    memcpy(datagram.from, beater->name, sizeof datagram.from);
    memcpy(datagram.to, beater->monitors[monitor], sizeof datagram.to);
    return datagram;
}

static uint64_t number_draw(struct beater *beater)
{
    struct random random = {.state = beater->random};
    uint64_t number = random_u64(&random);
    beater->random = random.state;
    return number;
}

static enum link_answer link_check(struct beater *beater, uint32_t monitor,
                                   const struct datagram *datagram, uint64_t now_ms,
                                   struct datagram *reply)
{
    struct link *link = &beater->links[monitor];
    bool is_idle = link_idle_ms(link, now_ms) > LINK_NONCE_LIFE_MS;
    enum link_answer answer = link_take(link, datagram, is_idle, now_ms, number_draw(beater));
    if (answer == LINK_CHALLENGE) {
        *reply = datagram_to(beater, monitor, DATAGRAM_CHALLENGE);
        reply->challenge = link_challenge(link, datagram);
        link_stamp(&beater->senders[monitor], beater->incarnation, reply);
    }
    return answer;
}

static enum beater_answer hear_order(struct beater *beater, const struct order *order)
{
    bool is_late = term_compare(order->term, beater->seen) < 0;
    if (is_late && beater->mutation != BEATER_NO_TERM) return BEATER_NOTHING;
    term_see(beater, order->term);
    bool is_ours = order->incarnation == beater->incarnation;
    if (!is_ours && beater->mutation != BEATER_NO_INCARNATION) return BEATER_NOTHING;
    return order->kind == ORDER_KILL ? BEATER_KILL : BEATER_STOP;
}

static enum beater_answer hear_view(struct beater *beater, const struct view *view)
{
    if (term_compare(view->term, beater->seen) < 0) return BEATER_NOTHING;
    term_see(beater, view->term);
    return BEATER_VIEW;
}

static enum beater_answer hear_events(struct beater *beater, const struct event_list *events)
{
    if (events->event_count == 0) return BEATER_NOTHING;
    struct event_place last = events->events[events->event_count - 1].place;
    if (event_place_compare(last, beater->events) <= 0) return BEATER_NOTHING;
    beater->events = last;
    return BEATER_EVENTS;
}

void beater_beat(struct beater *beater, uint32_t monitor, const struct beat *beat,
                 struct datagram *out)
{
    ASSERT(monitor < beater->monitor_count);
    *out = datagram_to(beater, monitor, DATAGRAM_BEAT);
    out->beat = *beat;
    out->beat.seen = beater->seen;
    out->beat.events = beater->events;
    link_stamp(&beater->senders[monitor], beater->incarnation, out);
}

enum beater_answer beater_hear(struct beater *beater, const struct datagram *datagram,
                               uint64_t now_ms, uint32_t *out_monitor, struct datagram *reply)
{
    uint32_t monitor;
    if (strcmp(datagram->to, beater->name) != 0) return BEATER_NOTHING;
    if (!monitor_find(beater, datagram->from, &monitor)) return BEATER_NOTHING;
    *out_monitor = monitor;

    if (datagram->kind == DATAGRAM_CHALLENGE) {
        bool counts =
            link_challenged(&beater->senders[monitor], beater->incarnation, &datagram->challenge);
        return counts ? BEATER_BEAT : BEATER_NOTHING;
    }
    if (datagram->kind != DATAGRAM_ORDER && datagram->kind != DATAGRAM_VIEW &&
        datagram->kind != DATAGRAM_EVENTS)
        return BEATER_NOTHING;

    enum link_answer answer = link_check(beater, monitor, datagram, now_ms, reply);
    if (answer == LINK_CHALLENGE) return BEATER_CHALLENGE;
    if (answer != LINK_TAKE) return BEATER_NOTHING;
    if (datagram->kind == DATAGRAM_ORDER) return hear_order(beater, &datagram->order);
    if (datagram->kind == DATAGRAM_VIEW) return hear_view(beater, &datagram->view);
    return hear_events(beater, &datagram->events);
}
