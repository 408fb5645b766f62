/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_jobs.c - `millrace jobs` and `millrace cancel`: the jobs of a cluster. */
#include <stdio.h>
#include <unistd.h>

#include "cli/cluster/cluster_program.h"
#include "cli/cluster_commands.h"
#include "cli/cluster/gateways.h"
#include "cli/cluster/listing.h"
#include "cli/output.h"
#include "cli/cluster/submission.h"
#include "cli/terminal.h"
#include "engine/file/clock.h"
#include "cluster/wire/manifest.h"

enum { JOBS_GATEWAY, JOBS_CA, JOBS_JSON, JOBS_OPTIONS };
enum { CANCEL_GATEWAY, CANCEL_CA, CANCEL_OPTIONS };

static const struct option_spec jobs_options[JOBS_OPTIONS] = {
    [JOBS_GATEWAY] = GATEWAYS_OPTION_SPEC,
    [JOBS_CA] = GATEWAYS_CA_OPTION_SPEC,
    [JOBS_JSON] = {"json", NULL, "for programs", false, 0},
};

static const struct command_spec jobs_spec = {
    .name = "jobs",
    .arguments = "[ID] -g URL[,URL]",
    .summary = SUMMARY_JOBS,
    .about =
        "With an ID, also shows the job's timeline: its own events, and those of the cluster\n"
        "meanwhile; also of a job that has ended, while its workers remember it. A job exists\n"
        "from its acceptance until its client has the answer. A job whose client is gone is\n"
        "removed when its lease ends. Exit code: 3 no gateway could be reached.",
    .examples = "  millrace jobs -g 127.0.0.1:7101\n"
                "  millrace jobs monday -g 127.0.0.1:7101 --json\n",
    .options = jobs_options,
    .option_count = JOBS_OPTIONS,
    .argument_max = 1,
};

static const struct option_spec cancel_options[CANCEL_OPTIONS] = {
    [CANCEL_GATEWAY] = GATEWAYS_OPTION_SPEC,
    [CANCEL_CA] = GATEWAYS_CA_OPTION_SPEC,
};

static const struct command_spec cancel_spec = {
    .name = "cancel",
    .arguments = "ID -g URL[,URL]",
    .summary = SUMMARY_CANCEL,
    .about = "Its client is told that the job was cancelled. The client journal on this host is\n"
             "removed too, also when the cluster does not know the job any more. Exit code: 3 no\n"
             "gateway could be reached.",
    .examples = "  millrace cancel monday -g 127.0.0.1:7101\n",
    .options = cancel_options,
    .option_count = CANCEL_OPTIONS,
    .argument_min = 1,
    .argument_max = 1,
};

enum { TARGET_SIZE = sizeof "/v1/jobs//timeline" + MANIFEST_NAME_MAX };

static status job_target(const char *id, char out[TARGET_SIZE], struct error *err)
{
    if (!manifest_name_valid(text_of(id))) {
        return error_set(err, STATUS_USAGE,
                         "`%.100s` is no job's id: those are 1 to %d of A-Z a-z 0-9 . _ -", id,
                         MANIFEST_NAME_MAX);
    }
    (void)snprintf(out, TARGET_SIZE, "/v1/jobs/%s", id); /* Fits: it is a name. */
    return STATUS_OK;
}

static struct text text_of_buf(const struct buf *buf)
{
    return (struct text){(const char *)buf->bytes, (uint32_t)buf->size};
}

/* --- jobs --- */

static status show_jobs(const struct options *options, const struct buf *body, struct arena *arena,
                        struct buf *out, struct error *err)
{
    struct terminal terminal = terminal_of(STDOUT_FILENO);
    if (options_value(options, JOBS_JSON) != NULL) {
        buf_put(out, body->bytes, body->size);
        if (body->size == 0 || body->bytes[body->size - 1] != '\n') buf_put_u8(out, '\n');
        return STATUS_OK;
    }
    struct job_list list;
    TRY(job_list_decode(text_of_buf(body), arena, &list, err));
    listing_jobs(&list, NULL, terminal, arena, out);
    return STATUS_OK;
}

/* The view's members, and one more. */
static void put_job_json(const char *id, struct text view, struct text timeline, struct buf *out)
{
    while (view.size > 0 && view.bytes[view.size - 1] != '}') {
        view.size--;
    }
    if (view.size > 2) {
        buf_put_text(out, (struct text){view.bytes, view.size - 1});
    } else {
        buf_format(out, "{\"job\":\"%s\"", id);
    }
    if (timeline.size > 0) {
        buf_put_string(out, ",\"timeline\":");
        buf_put_text(out, timeline);
        while (out->size > 0 && out->bytes[out->size - 1] == '\n') {
            out->size--;
        }
    }
    buf_put_string(out, "}\n");
}

/* A job that has ended has no view, but may have a timeline; an older gateway knows none. */
static status show_job(const struct options *options, const struct gateways *gateways,
                       struct arena *arena, struct buf *out, struct error *err)
{
    char target[TARGET_SIZE];
    const char *id = options->arguments[0];
    struct buf view_json = {0};
    struct buf timeline_json = {0};
    struct job_view view = {0};
    struct timeline timeline = {0};
    struct error ignored;
    TRY(job_target(id, target, err));
    status has_view = gateways_call(gateways, "GET", target, &view_json, err);
    (void)snprintf(target, sizeof target, "/v1/jobs/%s/timeline", id); /* Fits: it is a name. */
    status has_timeline = STATUS_UNREACHABLE;
    if (has_view == STATUS_OK || has_view == STATUS_USAGE) {
        has_timeline = gateways_call(gateways, "GET", target, &timeline_json, &ignored);
    }
    status result = has_view != STATUS_OK && has_timeline != STATUS_OK ? has_view : STATUS_OK;
    if (result == STATUS_OK && has_view == STATUS_OK) {
        result = job_view_decode(text_of_buf(&view_json), arena, &view, err);
    }
    if (result == STATUS_OK && has_timeline == STATUS_OK) {
        result = timeline_decode(text_of_buf(&timeline_json), arena, &timeline, err);
    }
    if (result == STATUS_OK && options_value(options, JOBS_JSON) != NULL) {
        struct text none = {"", 0};
        put_job_json(id, has_view == STATUS_OK ? text_of_buf(&view_json) : none,
                     has_timeline == STATUS_OK ? text_of_buf(&timeline_json) : none, out);
    } else if (result == STATUS_OK) {
        struct terminal terminal = terminal_of(STDOUT_FILENO);
        if (has_view == STATUS_OK) listing_view(&view, terminal, arena, out);
        if (has_timeline == STATUS_OK) {
            listing_timeline(&timeline, clock_wall_ms(), terminal, arena, out);
        }
    }
    buf_done(&view_json);
    buf_done(&timeline_json);
    return result;
}

static status run_jobs(const struct options *options, struct arena *arena, struct error *err)
{
    struct gateways gateways;
    struct buf body = {0};
    struct buf out = {0};
    const char *urls = options_value(options, JOBS_GATEWAY);
    TRY(gateways_read("jobs", urls, arena, &gateways, err));
    gateways_trust(&gateways, options_value(options, JOBS_CA));
    status result;
    if (options->argument_count > 0) {
        result = show_job(options, &gateways, arena, &out, err);
    } else {
        result = gateways_call(&gateways, "GET", "/v1/jobs", &body, err);
        if (result == STATUS_OK) result = show_jobs(options, &body, arena, &out, err);
    }
    if (result == STATUS_OK) result = output_to_stdout(&out, NULL, err);
    buf_done(&out);
    buf_done(&body);
    return result;
}

static int jobs_main(int argc, char *const *argv)
{
    return command_simple(&jobs_spec, run_jobs, argc, argv);
}

/* --- cancel --- */

/* The complete list of jobs of all workers does not have this one. */
static bool is_unknown(const struct gateways *gateways, const char *id, struct arena *arena)
{
    struct job_list list = {0};
    struct buf body = {0};
    struct error ignored;
    bool is_listed = true;
    if (gateways_call(gateways, "GET", "/v1/jobs", &body, &ignored) == STATUS_OK &&
        job_list_decode(text_of_buf(&body), arena, &list, &ignored) == STATUS_OK) {
        is_listed = list.silent.size > 0;
    }
    for (uint32_t i = 0; i < list.job_count && !is_listed; i++) {
        is_listed = text_equal(list.jobs[i].job, text_of(id));
    }
    buf_done(&body);
    return !is_listed;
}

/* The journal of a job that is gone is of no use, and would block its id. */
static status forget_job(const char *id, bool is_known, const struct error *refusal,
                         struct arena *arena, struct error *err)
{
    bool was_removed = false;
    struct error problem;
    if (submission_forget(id, arena, &was_removed, &problem) != STATUS_OK) {
        terminal_say("the journal of job %s stays: %s\n", id, problem.text);
    }
    if (is_known) {
        terminal_say("cancelled %s\n", id);
    } else if (was_removed) {
        terminal_say("the cluster has no job %s; its journal is removed\n", id);
    } else {
        *err = *refusal;
        return err->code;
    }
    return STATUS_OK;
}

static status run_cancel(const struct options *options, struct arena *arena, struct error *err)
{
    struct gateways gateways;
    char target[TARGET_SIZE];
    struct buf body = {0};
    const char *urls = options_value(options, CANCEL_GATEWAY);
    TRY(gateways_read("cancel", urls, arena, &gateways, err));
    gateways_trust(&gateways, options_value(options, CANCEL_CA));
    TRY(job_target(options->arguments[0], target, err));
    /* Removing an unknown job succeeds, so a mistyped id is looked up first. */
    status result = gateways_call(&gateways, "GET", target, &body, err);
    buf_done(&body);
    body = (struct buf){0};
    if (result == STATUS_OK) result = gateways_call(&gateways, "DELETE", target, &body, err);
    buf_done(&body);
    const char *id = options->arguments[0];
    bool is_known = result == STATUS_OK;
    if (!is_known && (result != STATUS_USAGE || !is_unknown(&gateways, id, arena))) return result;
    struct error refusal = *err;
    return forget_job(id, is_known, &refusal, arena, err);
}

static int cancel_main(int argc, char *const *argv)
{
    return command_simple(&cancel_spec, run_cancel, argc, argv);
}

const struct command command_jobs = {.spec = &jobs_spec, .run = jobs_main};
const struct command command_cancel = {.spec = &cancel_spec, .run = cancel_main};
