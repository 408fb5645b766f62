/* monitor_history.c - a sorted array that forgets its first. A few events a minute don't need more;
 * sorted, because a new leader gathers what different followers were told.
 */
#include <string.h>

#include "cluster/role/monitor/monitor_state.h"

bool history_add(struct history *history, const struct cluster_event *event, uint64_t at_ms)
{
    uint32_t place = history->count;
    while (place > 0) {
        int order = event_place_compare(event->place, history->items[place - 1].event.place);
        if (order == 0) return false;
        if (order > 0) break;
        place--;
    }
    if (history->count == HISTORY_SIZE) {
        if (place == 0) return false;
        place--;
        memmove(history->items, history->items + 1, sizeof *history->items * place);
    } else {
        memmove(history->items + place + 1, history->items + place,
                sizeof *history->items * (history->count - place));
        history->count++;
    }
    history->items[place] = (struct history_entry){.event = *event, .at_ms = at_ms};
    return true;
}

void history_list(const struct history *history, struct event_place place, uint64_t now_ms,
                  struct event_list *out)
{
    out->event_count = 0;
    for (uint32_t i = 0; i < history->count && out->event_count < DATAGRAM_EVENTS_MAX; i++) {
        const struct history_entry *entry = &history->items[i];
        if (event_place_compare(entry->event.place, place) <= 0) continue;
        struct cluster_event *event = &out->events[out->event_count++];
        *event = entry->event;
        event->age_ms = now_ms - entry->at_ms;
    }
}

struct event_place history_last(const struct history *history)
{
    if (history->count == 0) return (struct event_place){0};
    return history->items[history->count - 1].event.place;
}

struct event_place history_before_last(const struct history *history, uint32_t count)
{
    if (history->count <= count) return (struct event_place){0};
    return history->items[history->count - count - 1].event.place;
}
