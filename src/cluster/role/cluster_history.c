/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_history.c - insertion into a sorted array, from its end: most events are the latest. */
#include "cluster/role/cluster_history.h"

#include <string.h>

bool cluster_history_add(struct cluster_history *history, const struct cluster_event *event,
                         uint64_t at_ms)
{
    uint32_t place = history->count;
    while (place > 0) {
        int order = event_place_compare(event->place, history->items[place - 1].event.place);
        if (order == 0) return false;
        if (order > 0) break;
        place--;
    }
    if (history->count == CLUSTER_HISTORY_SIZE) {
        if (place == 0) return false;
        place--;
        memmove(history->items, history->items + 1, sizeof *history->items * place);
    } else {
        memmove(history->items + place + 1, history->items + place,
                sizeof *history->items * (history->count - place));
        history->count++;
    }
    history->items[place] = (struct cluster_history_entry){.event = *event, .at_ms = at_ms};
    return true;
}

void cluster_history_list(const struct cluster_history *history, struct event_place place,
                          uint64_t now_ms, struct event_list *out)
{
    out->event_count = 0;
    for (uint32_t i = 0; i < history->count && out->event_count < DATAGRAM_EVENTS_MAX; i++) {
        const struct cluster_history_entry *entry = &history->items[i];
        if (event_place_compare(entry->event.place, place) <= 0) continue;
        struct cluster_event *event = &out->events[out->event_count++];
        *event = entry->event;
        event->age_ms = now_ms - entry->at_ms;
    }
}

struct event_place cluster_history_before(const struct cluster_history *history, uint32_t count)
{
    if (history->count <= count) return (struct event_place){0};
    return history->items[history->count - count - 1].event.place;
}
