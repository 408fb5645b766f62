/* SPDX-License-Identifier: Apache-2.0 */
/* listing.c - cells that are not known are empty; times are for people. */
#include "cli/cluster/listing.h"

#include <string.h>
#include <time.h>

#include "cli/grid.h"
#include "engine/data/print_text.h"

static struct text copy_text(struct buf *text, struct arena *arena)
{
    struct text whole = {(const char *)text->bytes, (uint32_t)text->size};
    const char *copy = text->failed ? NULL : arena_copy_string(arena, whole);
    buf_done(text);
    return text_of(copy != NULL ? copy : "");
}

static struct text seconds_text(uint64_t milliseconds, struct arena *arena)
{
    struct buf text = {0};
    terminal_put_seconds((double)milliseconds / 1000, &text);
    return copy_text(&text, arena);
}

static struct text bytes_text(uint64_t bytes, struct arena *arena)
{
    struct buf text = {0};
    terminal_put_bytes(bytes, &text);
    return copy_text(&text, arena);
}

static struct text duties(const struct node_entry *node)
{
    if (node->maps && node->folds) return TEXT_LITERAL("map, fold");
    if (node->maps) return TEXT_LITERAL("map");
    return node->folds ? TEXT_LITERAL("fold") : TEXT_LITERAL("");
}

/* Its last digits tell one start from the next. */
static struct text short_incarnation(struct text incarnation)
{
    enum { SHOWN = 6 };
    if (incarnation.size <= SHOWN) return incarnation;
    return (struct text){incarnation.bytes + incarnation.size - SHOWN, SHOWN};
}

static struct text role_text(const struct node_list *list, const struct node_entry *node)
{
    bool leads = list->leader.size > 0 && text_equal(list->leader, node->name);
    return leads ? TEXT_LITERAL("monitor *") : text_of(node_role_names[node->role]);
}

static struct text state_text(const struct node_entry *node)
{
    if (node->state.size > 0) return node->state;
    return node->answers ? TEXT_LITERAL("up") : TEXT_LITERAL("NO");
}

static void put_nodes_title(const struct node_list *list, struct buf *title)
{
    buf_put_string(title, "nodes");
    if (!list->monitored) return;
    if (list->leader.size > 0) {
        buf_format(title, ", led by %.*s *, term %llu", TEXT_ARGS(list->leader),
                   (unsigned long long)list->term);
    } else {
        buf_put_string(title, ", no leader of the monitors for ");
        terminal_put_seconds((double)list->monitored_ms_ago / 1000, title);
    }
}

static void put_problems(const struct node_list *list, struct buf *out)
{
    for (uint32_t i = 0; i < list->node_count; i++) {
        const struct node_entry *node = &list->nodes[i];
        if (node->problem.size == 0) continue;
        (void)print_visible(node->name, UINT32_MAX, out); /* Not aligned. */
        buf_put_string(out, ": ");
        (void)print_visible(node->problem, UINT32_MAX, out);
        buf_put_u8(out, '\n');
    }
}

void listing_nodes(const struct node_list *list, struct terminal terminal, struct arena *arena,
                   struct buf *out)
{
    static const struct field fields[] = {
        GRID_FIELD("node", TEXT),  GRID_FIELD("role", TEXT),        GRID_FIELD("does", TEXT),
        GRID_FIELD("state", TEXT), GRID_FIELD("silent", TEXT),      GRID_FIELD("up", TEXT),
        GRID_FIELD("starts", INT), GRID_FIELD("incarnation", TEXT), GRID_FIELD("memory", TEXT),
        GRID_FIELD("jobs", INT),
    };
    struct grid grid;
    struct text none = TEXT_LITERAL("");
    grid_init(&grid, fields, sizeof fields / sizeof fields[0], list->node_count, arena);
    for (uint32_t i = 0; i < list->node_count; i++) {
        const struct node_entry *node = &list->nodes[i];
        bool is_heard = node->heard || node->answers;
        bool is_silent = is_heard && node->answered_ms_ago >= 1000 && !node->answers;
        grid_text(&grid, 0, node->name);
        grid_text(&grid, 1, role_text(list, node));
        grid_text(&grid, 2, duties(node));
        grid_text(&grid, 3, state_text(node));
        grid_text(&grid, 4, is_silent ? seconds_text(node->answered_ms_ago, arena) : none);
        bool is_up = node->answers || text_equal(node->state, TEXT_LITERAL("up"));
        grid_text(&grid, 5,
                  is_up && node->uptime_ms > 0 ? seconds_text(node->uptime_ms, arena) : none);
        grid_count(&grid, 6, node->restarts);
        grid_text(&grid, 7, short_incarnation(node->incarnation));
        grid_text(&grid, 8,
                  node->resident_bytes > 0 ? bytes_text(node->resident_bytes, arena) : none);
        grid_count(&grid, 9, node->job_count);
        grid_row(&grid);
    }
    struct buf title = {0};
    put_nodes_title(list, &title);
    const char *words =
        arena_copy_string(arena, (struct text){(const char *)title.bytes, (uint32_t)title.size});
    grid_draw(&grid, words != NULL && !title.failed ? words : "nodes", terminal, out);
    buf_done(&title);
    put_problems(list, out);
}

/* Work queues, and inboxes that are not empty or lack their consumer. */
static bool queue_is_shown(const struct queue_entry *queue)
{
    bool is_inbox = queue->name.size > 6 && memcmp(queue->name.bytes, "inbox.", 6) == 0;
    return !is_inbox || queue->messages > 0 || queue->consumers != 1;
}

void listing_queues(const struct node_list *list, struct terminal terminal, struct arena *arena,
                    struct buf *out)
{
    static const struct field fields[] = {
        GRID_FIELD("queue", TEXT),
        GRID_FIELD("waiting", INT),
        GRID_FIELD("readers", INT),
    };
    if (list->queue_count == 0) return;
    uint32_t hidden = 0;
    struct grid grid;
    grid_init(&grid, fields, sizeof fields / sizeof fields[0], list->queue_count, arena);
    for (uint32_t i = 0; i < list->queue_count; i++) {
        const struct queue_entry *queue = &list->queues[i];
        if (!queue_is_shown(queue)) {
            hidden++;
            continue;
        }
        grid_text(&grid, 0, queue->name);
        grid_count(&grid, 1, queue->messages);
        grid_count(&grid, 2, queue->consumers);
        grid_row(&grid);
    }
    grid_draw(&grid, "queues", terminal, out);
    if (hidden > 0) buf_format(out, "%u more inboxes are empty, with one reader each\n", hidden);
}

static void put_silent(struct text silent, struct buf *out)
{
    if (silent.size == 0) return;
    buf_put_string(out, "no answer from ");
    (void)print_visible(silent, UINT32_MAX, out); /* Not aligned. */
    buf_put_u8(out, '\n');
}

/* "2 of 3" */
static struct text phase_text(const struct job_view *view, struct arena *arena)
{
    struct buf text = {0};
    if (view != NULL && view->phase_count > 0) {
        buf_format(&text, "%u of %u", view->phase, view->phase_count);
    }
    return copy_text(&text, arena);
}

/* Chunks that all workers have applied, of those that were sent. */
static struct text chunks_text(const struct job_view *view, struct arena *arena)
{
    struct buf text = {0};
    uint64_t applied = 0;
    uint64_t sent = 0;
    for (uint32_t i = 0; view != NULL && i < view->scan_count; i++) {
        applied += view->scans[i].applied;
        sent += view->scans[i].sent > view->scans[i].applied ? view->scans[i].sent
                                                             : view->scans[i].applied;
    }
    if (view != NULL && view->scan_count > 0) {
        buf_format(&text, "%llu of %llu", (unsigned long long)applied, (unsigned long long)sent);
    }
    return copy_text(&text, arena);
}

void listing_jobs(const struct job_list *list, const struct job_view *const *views,
                  struct terminal terminal, struct arena *arena, struct buf *out)
{
    static const struct field fields[] = {
        GRID_FIELD("job", TEXT),    GRID_FIELD("state", TEXT),  GRID_FIELD("age", TEXT),
        GRID_FIELD("applied", INT), GRID_FIELD("workers", INT), GRID_FIELD("lease", TEXT),
        GRID_FIELD("phase", TEXT),  GRID_FIELD("chunks", TEXT),
    };
    if (list->job_count == 0) {
        buf_put_string(out, "no jobs\n");
        put_silent(list->silent, out);
        return;
    }
    struct grid grid;
    uint32_t field_count = sizeof fields / sizeof fields[0] - (views == NULL ? 2 : 0);
    grid_init(&grid, fields, field_count, list->job_count, arena);
    for (uint32_t i = 0; i < list->job_count; i++) {
        const struct job_entry *job = &list->jobs[i];
        struct text none = TEXT_LITERAL("");
        grid_text(&grid, 0, job->job);
        grid_text(&grid, 1, text_of(job_state_names[job->state]));
        grid_text(&grid, 2, job->age_ms > 0 ? seconds_text(job->age_ms, arena) : none);
        grid_count(&grid, 3, job->applied);
        grid_count(&grid, 4, job->worker_count);
        grid_text(&grid, 5, job->lease_ms > 0 ? seconds_text(job->lease_ms, arena) : none);
        if (views != NULL) {
            grid_text(&grid, 6, phase_text(views[i], arena));
            grid_text(&grid, 7, chunks_text(views[i], arena));
        }
        grid_row(&grid);
    }
    grid_draw(&grid, "jobs", terminal, out);
    put_silent(list->silent, out);
}

static void put_scans(const struct job_view *view, struct terminal terminal, struct arena *arena,
                      struct buf *out)
{
    static const struct field fields[] = {
        GRID_FIELD("scan", INT),   GRID_FIELD("table", TEXT), GRID_FIELD("phase", INT),
        GRID_FIELD("open", TEXT),  GRID_FIELD("sent", INT),   GRID_FIELD("applied", INT),
        GRID_FIELD("ended", TEXT),
    };
    struct grid grid;
    grid_init(&grid, fields, sizeof fields / sizeof fields[0], view->scan_count, arena);
    for (uint32_t i = 0; i < view->scan_count; i++) {
        const struct view_scan *scan = &view->scans[i];
        grid_count(&grid, 0, scan->scan);
        grid_text(&grid, 1, scan->table);
        grid_count(&grid, 2, scan->phase);
        grid_text(&grid, 3, scan->open ? TEXT_LITERAL("yes") : TEXT_LITERAL("no"));
        grid_count(&grid, 4, scan->sent);
        grid_count(&grid, 5, scan->applied);
        grid_text(&grid, 6, scan->ended ? TEXT_LITERAL("yes") : TEXT_LITERAL("no"));
        grid_row(&grid);
    }
    grid_draw(&grid, "chunks", terminal, out);
}

static void put_queries(const struct job_view *view, struct terminal terminal, struct arena *arena,
                        struct buf *out)
{
    static const struct field fields[] = {
        GRID_FIELD("query", TEXT),
        GRID_FIELD("done", TEXT),
    };
    struct grid grid;
    grid_init(&grid, fields, sizeof fields / sizeof fields[0], view->query_count, arena);
    for (uint32_t i = 0; i < view->query_count; i++) {
        grid_text(&grid, 0, view->queries[i].name);
        grid_text(&grid, 1, view->queries[i].done ? TEXT_LITERAL("yes") : TEXT_LITERAL("no"));
        grid_row(&grid);
    }
    grid_draw(&grid, "queries", terminal, out);
}

void listing_view(const struct job_view *view, struct terminal terminal, struct arena *arena,
                  struct buf *out)
{
    buf_format(out, "job %.*s: %s", TEXT_ARGS(view->job), job_state_names[view->state]);
    if (view->phase_count > 0) {
        buf_format(out, ", phase %u of %u", view->phase, view->phase_count);
    }
    buf_format(out, ", %u of %u workers answer\n", view->workers_answering, view->worker_count);
    put_silent(view->silent, out);
    if (view->text.size > 0) {
        (void)print_visible(view->text, UINT32_MAX, out); /* Not aligned. */
        buf_put_u8(out, '\n');
    }
    if (view->scan_count > 0) put_scans(view, terminal, arena, out);
    if (view->query_count > 0) put_queries(view, terminal, arena, out);
}

/* ---- timeline ---- */

static void put_event_detail(const struct timeline_event *event, struct buf *text)
{
    static const struct {
        const char *what;
        const char *words; /* After the number; NULL: seconds, after `before`. */
        const char *before;
    } kinds[] = {
        {"phase", "", ""},
        {"replayed", " records", ""},
        {"suspected", NULL, "silent for "},
        {"hung", NULL, "no progress for "},
        {"resumed", NULL, "after "},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!text_equal(event->what, text_of(kinds[i].what))) continue;
        buf_put_string(text, kinds[i].before);
        if (kinds[i].words == NULL) {
            terminal_put_seconds((double)event->number / 1000, text);
        } else {
            buf_format(text, "%llu%s", (unsigned long long)event->number, kinds[i].words);
        }
    }
    if (event->text.size > 0 && text->size > 0) buf_put_string(text, ", ");
    buf_put_text(text, event->text);
}

static void put_clock(int64_t wall_ms, struct buf *text)
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm parts;
    if (localtime_r(&seconds, &parts) == NULL) return;
    buf_format(text, "%02d:%02d:%02d.%lld", parts.tm_hour, parts.tm_min, parts.tm_sec,
               (long long)(wall_ms % 1000 / 100));
}

void listing_timeline(const struct timeline *timeline, int64_t wall_ms, struct terminal terminal,
                      struct arena *arena, struct buf *out)
{
    static const struct field fields[] = {
        GRID_FIELD("time", TEXT), GRID_FIELD("after", TEXT),  GRID_FIELD("what", TEXT),
        GRID_FIELD("node", TEXT), GRID_FIELD("detail", TEXT),
    };
    struct grid grid;
    uint64_t first_ms = 0; /* How long ago it was submitted, or as far back as is known. */
    for (uint32_t i = timeline->event_count; i > 0; i--) {
        const struct timeline_event *event = &timeline->events[i - 1];
        bool is_first = text_equal(event->what, TEXT_LITERAL("submitted"));
        first_ms = event->ms_ago;
        if (is_first) break;
    }
    grid_init(&grid, fields, sizeof fields / sizeof fields[0], timeline->event_count, arena);
    for (uint32_t i = 0; i < timeline->event_count; i++) {
        const struct timeline_event *event = &timeline->events[i];
        struct buf clock = {0};
        struct buf after = {0};
        struct buf detail = {0};
        put_clock(wall_ms - (int64_t)event->ms_ago, &clock);
        buf_format(&after, "%+.1f s", ((double)first_ms - (double)event->ms_ago) / 1000);
        put_event_detail(event, &detail);
        grid_text(&grid, 0, copy_text(&clock, arena));
        grid_text(&grid, 1, copy_text(&after, arena));
        grid_text(&grid, 2, event->what);
        grid_text(&grid, 3, event->node);
        grid_text(&grid, 4, copy_text(&detail, arena));
        grid_row(&grid);
    }
    grid_draw(&grid, "timeline", terminal, out);
    put_silent(timeline->silent, out);
}
