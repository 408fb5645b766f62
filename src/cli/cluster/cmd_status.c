/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_status.c - `millrace status`: the nodes, jobs and queues of a cluster.
 *
 * Every gateway is asked how it is; the first that answers tells about nodes and jobs.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cluster/cluster_program.h"
#include "cli/cluster_commands.h"
#include "cli/cluster/gateways.h"
#include "cli/grid.h"
#include "cli/interrupt.h"
#include "cli/cluster/listing.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "engine/data/print_text.h"
#include "cluster/wire/manifest.h"

enum { SHOW_GATEWAY, SHOW_CA, SHOW_WATCH, SHOW_JSON, SHOW_OPTIONS };
enum { WATCH_MS = 1000, WATCH_STEP_MS = 50 };
enum { PROGRESS_JOBS = 16 }; /* More jobs than this are listed without it. */

static const struct option_spec status_options[SHOW_OPTIONS] = {
    [SHOW_GATEWAY] = GATEWAYS_OPTION_SPEC,
    [SHOW_CA] = GATEWAYS_CA_OPTION_SPEC,
    [SHOW_WATCH] = {"watch", NULL, "again every second, until Ctrl-C", false, 0},
    [SHOW_JSON] = {"json", NULL, "for programs; with --watch a line each time", false, 0},
};

static const struct command_spec status_spec = {
    .name = "status",
    .arguments = "-g URL[,URL]",
    .summary = SUMMARY_STATUS,
    .about =
        "With monitors, `state` is what their leader (*) says: up, starting, suspected,\n"
        "restarting, broken (it can't be kept alive) or stopped (on purpose); `starts` is how\n"
        "often it was started anew, and `incarnation` changes with each start. Without monitors,\n"
        "`state` is whether a node answers. Exit code: 0 some gateway answered, 3 none could be "
        "reached.",
    .examples = "  millrace status -g 127.0.0.1:7101,127.0.0.1:7102\n"
                "  millrace status -g 127.0.0.1:7101 --watch\n",
    .options = status_options,
    .option_count = SHOW_OPTIONS,
};

struct gateway_health {
    const char *url;
    struct error problem; /* code STATUS_OK: it is healthy. */
};

struct report {
    struct gateway_health *health; /* By the gateways that were given. */
    uint32_t health_count;
    struct buf nodes_json;
    struct buf jobs_json;
    struct node_list nodes;
    struct job_list jobs;
    const struct job_view **views; /* By job; NULL: not asked for. */
};

static struct text text_of_buf(const struct buf *buf)
{
    struct text text = {(const char *)buf->bytes, (uint32_t)buf->size};
    while (text.size > 0 && text.bytes[text.size - 1] == '\n') {
        text.size--;
    }
    return text;
}

/* --- Asking. --- */

static status ask_health(const struct gateways *gateways, struct arena *arena,
                         struct report *report, struct error *err)
{
    report->health = arena_array(arena, struct gateway_health, gateways->count);
    if (report->health == NULL) return error_memory(err);
    report->health_count = gateways->count;
    for (uint32_t i = 0; i < gateways->count; i++) {
        struct gateways one = *gateways;
        one.urls = &gateways->urls[i];
        one.count = 1;
        struct gateway_health *health = &report->health[i];
        struct buf body = {0};
        health->url = gateways->urls[i];
        status result = gateways_try(&one, "GET", "/healthz", &body, &health->problem);
        health->problem.code = result;
        buf_done(&body);
    }
    return STATUS_OK;
}

static status ask(const struct gateways *gateways, struct arena *arena, struct report *report,
                  struct error *err)
{
    TRY(ask_health(gateways, arena, report, err));
    TRY(gateways_call(gateways, "GET", "/v1/nodes", &report->nodes_json, err));
    TRY(gateways_call(gateways, "GET", "/v1/jobs", &report->jobs_json, err));
    TRY(node_list_decode(text_of_buf(&report->nodes_json), arena, &report->nodes, err));
    return job_list_decode(text_of_buf(&report->jobs_json), arena, &report->jobs, err);
}

/* How far each job is. Where some worker is silent every such question takes its time: then what
 * the list says is enough. */
static status ask_progress(const struct gateways *gateways, struct arena *arena,
                           struct report *report, struct error *err)
{
    const struct job_list *jobs = &report->jobs;
    if (jobs->silent.size > 0 || jobs->job_count == 0 || jobs->job_count > PROGRESS_JOBS) {
        return STATUS_OK;
    }
    report->views = arena_array(arena, const struct job_view *, jobs->job_count);
    if (report->views == NULL) return error_memory(err);
    for (uint32_t i = 0; i < jobs->job_count; i++) {
        char target[sizeof "/v1/jobs/" + MANIFEST_NAME_MAX];
        struct job_view *view = arena_new(arena, struct job_view);
        struct buf body = {0};
        struct error ignored; /* It may have ended just now. */
        if (view == NULL) return error_memory(err);
        (void)snprintf(target, sizeof target, "/v1/jobs/%.*s", TEXT_ARGS(jobs->jobs[i].job));
        if (gateways_try(gateways, "GET", target, &body, &ignored) == STATUS_OK &&
            job_view_decode(text_of_buf(&body), arena, view, &ignored) == STATUS_OK) {
            report->views[i] = view;
        }
        buf_done(&body);
    }
    return STATUS_OK;
}

/* --- Showing. --- */

static void put_json(const struct report *report, struct buf *out)
{
    buf_put_string(out, "{\"gateways\":[");
    for (uint32_t i = 0; i < report->health_count; i++) {
        const struct gateway_health *health = &report->health[i];
        bool is_well = health->problem.code == STATUS_OK;
        buf_put_string(out, i > 0 ? ",{\"url\":" : "{\"url\":");
        print_json_string(text_of(health->url), out);
        buf_format(out, ",\"ok\":%s", is_well ? "true" : "false");
        if (!is_well) {
            buf_put_string(out, ",\"problem\":");
            print_json_string(text_of(health->problem.text), out);
        }
        buf_put_u8(out, '}');
    }
    /* What gateways sent was decoded, so it is JSON; it may say more than is known here. */
    buf_put_string(out, "],\"cluster\":");
    buf_put_text(out, text_of_buf(&report->nodes_json));
    buf_put_string(out, ",\"work\":");
    buf_put_text(out, text_of_buf(&report->jobs_json));
    buf_put_string(out, "}\n");
}

static void put_tables(const struct report *report, struct terminal terminal, struct arena *arena,
                       struct buf *out)
{
    static const struct field fields[] = {
        GRID_FIELD("gateway", TEXT),
        GRID_FIELD("health", TEXT),
    };
    struct grid grid;
    grid_init(&grid, fields, sizeof fields / sizeof fields[0], report->health_count, arena);
    for (uint32_t i = 0; i < report->health_count; i++) {
        const struct error *problem = &report->health[i].problem;
        grid_text(&grid, 0, text_of(report->health[i].url));
        grid_text(&grid, 1, text_of(problem->code == STATUS_OK ? "ok" : problem->text));
        grid_row(&grid);
    }
    grid_draw(&grid, "gateways", terminal, out);
    if (!report->nodes.connected) {
        buf_format(out, "%.*s has no connection to the broker\n", TEXT_ARGS(report->nodes.gateway));
    }
    listing_nodes(&report->nodes, terminal, arena, out);
    listing_jobs(&report->jobs, report->views, terminal, arena, out);
    listing_queues(&report->nodes, terminal, arena, out);
}

static status look(const struct options *options, const struct gateways *gateways, struct buf *out,
                   struct error *err)
{
    struct arena arena = {0};
    struct report report = {0};
    bool is_json = options_value(options, SHOW_JSON) != NULL;
    status result = ask(gateways, &arena, &report, err);
    if (result == STATUS_OK && !is_json) result = ask_progress(gateways, &arena, &report, err);
    if (result == STATUS_OK && is_json) {
        put_json(&report, out);
    } else if (result == STATUS_OK) {
        put_tables(&report, terminal_of(STDOUT_FILENO), &arena, out);
    }
    buf_done(&report.nodes_json);
    buf_done(&report.jobs_json);
    arena_done(&arena);
    return result;
}

/* --- The command. --- */

static void pause_until_next(void)
{
    for (int waited = 0; waited < WATCH_MS && !atomic_load(interrupt_flag());
         waited += WATCH_STEP_MS) {
        (void)poll(NULL, 0, WATCH_STEP_MS); /* A signal ends it earlier. */
    }
}

/* With --watch, a cluster that can't be reached is no failure. */
static status watch(const struct options *options, const struct gateways *gateways,
                    struct error *err)
{
    bool is_json = options_value(options, SHOW_JSON) != NULL;
    bool rewrites = terminal_of(STDOUT_FILENO).rewrites && !is_json;
    while (!atomic_load(interrupt_flag())) {
        struct buf out = {0};
        struct error problem;
        if (rewrites) buf_put_string(&out, "\033[H\033[J");
        status result = look(options, gateways, &out, &problem);
        if (result != STATUS_OK && rewrites) {
            (void)print_visible(text_of(problem.text), UINT32_MAX, &out); /* Not aligned. */
            buf_put_u8(&out, '\n');
        } else if (result != STATUS_OK) {
            terminal_say("millrace: %s\n", problem.text);
        }
        if (!rewrites && !is_json && out.size > 0) buf_put_u8(&out, '\n');
        result = output_to_stdout(&out, interrupt_flag(), err);
        buf_done(&out);
        if (result != STATUS_OK) return interrupt_by_signal() ? STATUS_OK : result;
        pause_until_next();
    }
    return STATUS_OK;
}

static status run(const struct options *options, struct arena *arena, struct error *err)
{
    struct gateways gateways;
    const char *urls = options_value(options, SHOW_GATEWAY);
    TRY(gateways_read("status", urls, arena, &gateways, err));
    gateways_trust(&gateways, options_value(options, SHOW_CA));
    if (options_value(options, SHOW_WATCH) != NULL) return watch(options, &gateways, err);
    struct buf out = {0};
    status result = look(options, &gateways, &out, err);
    if (result == STATUS_OK) result = output_to_stdout(&out, NULL, err);
    buf_done(&out);
    return result;
}

static int status_main(int argc, char *const *argv)
{
    return command_simple(&status_spec, run, argc, argv);
}

const struct command command_status = {.spec = &status_spec, .run = status_main};
