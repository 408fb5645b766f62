/* monitor_history.c - the last events, in a sorted array that forgets its first.
 *
 * A few events a minute need no more. Sorted, because a new leader gathers events from different
 * followers.
 */
#include <inttypes.h>
#include <string.h>

#include "cluster/role/monitor/monitor_state.h"

bool history_add(struct monitor_history *history, const struct cluster_event *event, uint64_t at_ms)
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

void history_list(const struct monitor_history *history, struct event_place place, uint64_t now_ms,
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

struct event_place history_last(const struct monitor_history *history)
{
    if (history->count == 0) return (struct event_place){0};
    return history->items[history->count - 1].event.place;
}

struct event_place history_before_last(const struct monitor_history *history, uint32_t count)
{
    if (history->count <= count) return (struct event_place){0};
    return history->items[history->count - count - 1].event.place;
}

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

void monitor_record(struct monitor_turn *turn, enum cluster_event_kind kind,
                    const struct target *target, uint64_t number, const char *text)
{
    struct monitor *monitor = turn->monitor;
    if (!election_leads(&monitor->election, turn->now_ms)) return;
    struct cluster_event event = {
        .place = {.term = event_term(monitor->election.own), .sequence = ++monitor->event_sequence},
        .kind = kind,
        .incarnation = target->incarnation,
        .number = number,
    };
    memcpy(event.node, target->name, sizeof event.node);
    text_copy(event.text, sizeof event.text, text);
    history_add(&monitor->history, &event, turn->now_ms);
    monitor->has_news = true;
    monitor_say(
        turn, level_of(kind),
        "event=%s target=%s incarnation=%" PRIu64 " term=%" PRIu64 " number=%" PRIu64 "%s%.128s%s",
        cluster_event_names[kind], target->name, target->incarnation, monitor->election.own.number,
        number, text[0] == '\0' ? "" : " text=\"", text, text[0] == '\0' ? "" : "\"");
}
