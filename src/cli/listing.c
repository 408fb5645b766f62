/* listing.c - cells that are not known are empty; times are for people. */
#include "cli/listing.h"

#include "cli/grid.h"
#include "data/print_text.h"

static struct text seconds_text(uint64_t milliseconds, struct arena *arena)
{
    struct buf text = {0};
    terminal_put_seconds((double)milliseconds / 1000, &text);
    struct text whole = {(const char *)text.bytes, (uint32_t)text.size};
    const char *copy = text.failed ? NULL : arena_copy_string(arena, whole);
    buf_done(&text);
    return text_of(copy != NULL ? copy : "");
}

static struct text duties(const struct node_entry *node)
{
    if (node->maps && node->folds) return TEXT_LITERAL("map, fold");
    if (node->maps) return TEXT_LITERAL("map");
    return node->folds ? TEXT_LITERAL("fold") : TEXT_LITERAL("");
}

void listing_nodes(const struct node_list *list, struct terminal terminal, struct arena *arena,
                   struct buf *out)
{
    static const struct field fields[] = {
        GRID_FIELD("node", TEXT),    GRID_FIELD("role", TEXT), GRID_FIELD("does", TEXT),
        GRID_FIELD("answers", TEXT), GRID_FIELD("last", TEXT), GRID_FIELD("up", TEXT),
        GRID_FIELD("jobs", INT),
    };
    struct grid grid;
    grid_init(&grid, fields, sizeof fields / sizeof fields[0], list->node_count, arena);
    for (uint32_t i = 0; i < list->node_count; i++) {
        const struct node_entry *node = &list->nodes[i];
        bool is_heard = node->heard || node->answers;
        struct text none = TEXT_LITERAL("");
        grid_text(&grid, 0, node->name);
        grid_text(&grid, 1, text_of(node_role_names[node->role]));
        grid_text(&grid, 2, duties(node));
        grid_text(&grid, 3, node->answers ? TEXT_LITERAL("yes") : TEXT_LITERAL("NO"));
        grid_text(&grid, 4, is_heard ? seconds_text(node->answered_ms_ago, arena) : none);
        grid_text(&grid, 5, node->uptime_ms > 0 ? seconds_text(node->uptime_ms, arena) : none);
        grid_count(&grid, 6, node->job_count);
        grid_row(&grid);
    }
    grid_draw(&grid, "nodes", terminal, out);
}

static void put_silent(struct text silent, struct buf *out)
{
    if (silent.size == 0) return;
    buf_put_string(out, "no answer from ");
    (void)print_visible(silent, UINT32_MAX, out); /* Not aligned. */
    buf_put_u8(out, '\n');
}

void listing_jobs(const struct job_list *list, struct terminal terminal, struct arena *arena,
                  struct buf *out)
{
    static const struct field fields[] = {
        GRID_FIELD("job", TEXT),    GRID_FIELD("state", TEXT),  GRID_FIELD("age", TEXT),
        GRID_FIELD("applied", INT), GRID_FIELD("workers", INT), GRID_FIELD("lease", TEXT),
    };
    if (list->job_count == 0) {
        buf_put_string(out, "no jobs\n");
        put_silent(list->silent, out);
        return;
    }
    struct grid grid;
    grid_init(&grid, fields, sizeof fields / sizeof fields[0], list->job_count, arena);
    for (uint32_t i = 0; i < list->job_count; i++) {
        const struct job_entry *job = &list->jobs[i];
        struct text none = TEXT_LITERAL("");
        grid_text(&grid, 0, job->job);
        grid_text(&grid, 1, text_of(job_state_names[job->state]));
        grid_text(&grid, 2, job->age_ms > 0 ? seconds_text(job->age_ms, arena) : none);
        grid_count(&grid, 3, job->applied);
        grid_count(&grid, 4, job->worker_count);
        grid_text(&grid, 5, job->lease_ms > 0 ? seconds_text(job->lease_ms, arena) : none);
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
