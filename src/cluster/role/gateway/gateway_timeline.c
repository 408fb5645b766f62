/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_timeline.c - the events of a job in order, from its workers and from the monitors.
 *
 * Workers report milestones as ages. A job was submitted when the first worker stored it, and a
 * phase began when the first one applied a chunk of it; it is complete when the last one is. A
 * worker that was restarted remembers less, and the others make up for it. Events of the cluster
 * are shown from the job's submission until a little after its end.
 */
#include "cluster/role/gateway/gateway_parts.h"

enum {
    MARGIN_AFTER_MS = 3000, /* An event so soon after a job's end may have begun before it. */
    /* If no worker remembers the submission, all were restarted: the cause may be so much older. */
    MARGIN_BEFORE_MS = 60000,
    TIMELINE_MAX = CLUSTER_HISTORY_SIZE + 4096
};

static const char *const milestone_names[MILESTONE_KINDS] = {
    [MILESTONE_STORED] = "submitted",    [MILESTONE_PHASE] = "phase",
    [MILESTONE_REPLAYED] = "replayed",   [MILESTONE_COMPLETE] = "complete",
    [MILESTONE_FAILED] = "failed",       [MILESTONE_DONE] = "done",
    [MILESTONE_CANCELLED] = "cancelled", [MILESTONE_REFUSED] = "refused",
    [MILESTONE_EXPIRED] = "expired",
};

/* A timeline under construction; `events` has room for all. */
struct line {
    struct timeline_event *events;
    uint32_t count;
    uint64_t oldest_ms; /* Age of the oldest milestone. */
    bool has_beginning; /* It is when the job was submitted. */
    bool has_ended;     /* Removed by some worker, */
    uint64_t ended_ms;  /* so long ago at least. */
};

/* The event of a milestone: one for the job, or of a replay one for each worker. */
static struct timeline_event *line_find(struct line *line, const struct milestone *milestone,
                                        struct text node)
{
    bool is_own = milestone->kind == MILESTONE_REPLAYED;
    struct text what = text_of(milestone_names[milestone->kind]);
    for (uint32_t i = 0; i < line->count; i++) {
        struct timeline_event *event = &line->events[i];
        if (!text_equal(event->what, what) || event->number != milestone->number) continue;
        if (!is_own || text_equal(event->node, node)) return event;
    }
    return NULL;
}

static void line_add(struct line *line, const struct milestone *milestone, struct text node)
{
    bool is_end = milestone->kind >= MILESTONE_DONE;
    if (is_end && (!line->has_ended || milestone->age_ms < line->ended_ms)) {
        line->has_ended = true;
        line->ended_ms = milestone->age_ms;
    }
    if (milestone->age_ms > line->oldest_ms) line->oldest_ms = milestone->age_ms;
    if (milestone->kind == MILESTONE_STORED) line->has_beginning = true;
    bool names_node = milestone->kind == MILESTONE_REPLAYED || milestone->kind == MILESTONE_FAILED;
    struct timeline_event *event = line_find(line, milestone, node);
    if (event == NULL) {
        line->events[line->count++] = (struct timeline_event){
            .ms_ago = milestone->age_ms,
            .what = text_of(milestone_names[milestone->kind]),
            .node = names_node ? node : (struct text){"", 0},
            .number = milestone->number,
        };
    } else if (milestone->kind == MILESTONE_COMPLETE) {
        if (milestone->age_ms < event->ms_ago) event->ms_ago = milestone->age_ms;
    } else if (milestone->age_ms > event->ms_ago) {
        event->ms_ago = milestone->age_ms;
        if (names_node) event->node = node;
    }
}

/* A job is complete when all of its workers are. */
static void drop_early_completion(struct line *line, uint32_t holders, uint32_t complete)
{
    if (complete == 0 || complete == holders) return;
    for (uint32_t i = 0; i < line->count; i++) {
        if (!text_equal(line->events[i].what, text_of(milestone_names[MILESTONE_COMPLETE]))) {
            continue;
        }
        line->events[i] = line->events[--line->count];
        return;
    }
}

static void add_milestones(const struct gateway *gateway, const struct gateway_listed *workers,
                           struct line *line)
{
    uint32_t holders = 0;
    uint32_t complete = 0;
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        const struct gateway_listed *listed = &workers[i];
        if (listed->milestone_count > 0) holders++;
        for (uint32_t j = 0; j < listed->milestone_count; j++) {
            if (line->count == TIMELINE_MAX) return;
            if (listed->milestones[j].kind == MILESTONE_COMPLETE) complete++;
            line_add(line, &listed->milestones[j], gateway->config.workers[i].name);
        }
    }
    drop_early_completion(line, holders, complete);
}

/* A worker's own report of its replay is better: it is about this job. */
static bool is_told(const struct line *line, const struct cluster_event *event)
{
    if (event->kind != HAPPENED_REPLAYED) return false;
    for (uint32_t i = 0; i < line->count; i++) {
        if (text_equal(line->events[i].what, text_of("replayed")) &&
            text_equal(line->events[i].node, text_of(event->node))) {
            return true;
        }
    }
    return false;
}

static void add_happened(const struct gateway *gateway, struct line *line)
{
    const struct cluster_history *history = &gateway->membership.history;
    uint32_t own_count = line->count;
    for (uint32_t i = 0; i < history->count && line->count < TIMELINE_MAX; i++) {
        const struct cluster_event *event = &history->items[i].event;
        uint64_t age_ms = gateway->now_ms - history->items[i].at_ms;
        uint64_t margin_ms = line->has_beginning ? 0 : MARGIN_BEFORE_MS;
        if (age_ms > line->oldest_ms + margin_ms) continue;
        if (line->has_ended && age_ms + MARGIN_AFTER_MS < line->ended_ms) continue;
        struct line own = {.events = line->events, .count = own_count};
        if (is_told(&own, event)) continue;
        bool is_failure = event->kind == HAPPENED_FAILED; /* Jobs fail too. */
        line->events[line->count++] = (struct timeline_event){
            .ms_ago = age_ms,
            .what = text_of(is_failure ? "not-started" : cluster_event_names[event->kind]),
            .node = text_of(event->node),
            .number = event->number,
            .text = text_of(event->text),
        };
    }
}

/* The oldest first, stable. There are few: insertion sort. */
static void line_sort(struct line *line)
{
    for (uint32_t i = 1; i < line->count; i++) {
        struct timeline_event event = line->events[i];
        uint32_t place = i;
        while (place > 0 && line->events[place - 1].ms_ago < event.ms_ago) {
            line->events[place] = line->events[place - 1];
            place--;
        }
        line->events[place] = event;
    }
}

/* Whether any worker knows the job, and whether all have answered. */
static bool is_known(const struct gateway *gateway, struct gateway_request *request,
                     bool *out_all_answered)
{
    bool known = false;
    *out_all_answered = true;
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        const struct gateway_listed *listed = &gateway_list_of(request)->workers[i];
        if (!listed->answered) *out_all_answered = false;
        if (listed->milestone_count > 0) known = true;
        for (uint32_t j = 0; j < listed->job_count; j++) {
            if (text_equal(listed->jobs[j].job, text_of(request->job_id))) known = true;
        }
    }
    return known;
}

void gateway_timeline_reply(struct gateway *gateway, struct gateway_request *request,
                            struct text silent)
{
    const struct gateway_listed *workers = gateway_list_of(request)->workers;
    bool all_answered = false;
    if (workers == NULL || !is_known(gateway, request, &all_answered)) {
        if (all_answered) {
            gateway_request_refuse(gateway, request, 404, STATUS_USAGE,
                                   "there is no job %s, and none has ended lately",
                                   request->job_id);
        } else {
            gateway_request_refuse(gateway, request, 503, STATUS_IO,
                                   "not all workers have said whether they know job %s",
                                   request->job_id);
        }
        return;
    }
    struct line line = {.events =
                            arena_array(&gateway->scratch, struct timeline_event, TIMELINE_MAX)};
    struct buf body = {0};
    if (line.events == NULL) {
        gateway->effects->failed = true;
    } else {
        add_milestones(gateway, workers, &line);
        add_happened(gateway, &line);
        line_sort(&line);
    }
    struct timeline timeline = {.job = text_of(request->job_id),
                                .events = line.events,
                                .event_count = line.count,
                                .silent = silent};
    timeline_encode(&timeline, &body);
    gateway_request_reply(gateway, request, 200, "application/json", &body);
}
