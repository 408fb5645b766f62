/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_submit.c - `millrace submit`: the answers of an analysis, computed by a cluster.
 *
 * The output is that of `run`: the same options, the same printing, the same audit. The order at
 * the end matters: answers first, then the audit, then the comparison.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/answer.h"
#include "cli/cluster_commands.h"
#include "cli/cluster/answer_order.h"
#include "cli/cluster/cluster_program.h"
#include "cli/cluster/gateways.h"
#include "cli/interrupt.h"
#include "cli/cluster/submission.h"
#include "cli/terminal.h"
#include "cli/cluster/verify.h"
#include "engine/file/clock.h"
#include "cluster/node/client_node.h"
#include "engine/local/table_files.h"

enum {
    SUBMIT_GATEWAY = ANSWER_OPTIONS,
    SUBMIT_CA,
    SUBMIT_JOB,
    SUBMIT_RETRY_FOR,
    SUBMIT_SENTIMENT_MODEL,
    SUBMIT_VERIFY,
    SUBMIT_OPTIONS
};

enum { RETRY_FOR_S = 60, RETRY_FOR_MAX_S = 30 * 24 * 3600 };
/* FAILURE_TIMEOUT_MS: how long no gateway may answer before a message says so. */
enum { FAILURE_TIMEOUT_MS = 2000, PROBE_MS = 1000, PROBE_STEP_MS = 100 };

static const struct option_spec submit_options[SUBMIT_OPTIONS] = {
    ANSWER_OPTION_SPECS,
    [SUBMIT_GATEWAY] = GATEWAYS_OPTION_SPEC,
    [SUBMIT_CA] = GATEWAYS_CA_OPTION_SPEC,
    [SUBMIT_JOB] = {"job", "ID", "resume this job, or begin it under this id", false, 0},
    [SUBMIT_RETRY_FOR] = {"retry-for", "S",
                          "give up when no gateway answers for so many seconds; default: 60", false,
                          0},
    [SUBMIT_SENTIMENT_MODEL] = {"sentiment-model", "FILE",
                                "for sentiment(); refused unless it is the cluster's", false, 0},
    [SUBMIT_VERIFY] = {"verify", NULL, "then answer here as well, and compare every byte", false,
                       0},
};

static const struct command_spec submit_spec = {
    .name = "submit",
    .arguments = "ANALYSIS DATA_DIR -g URL[,URL]",
    .summary = SUMMARY_SUBMIT,
    .about =
        "Sends the files of DATA_DIR through a gateway and prints the answers, as `run` does. Any\n"
        "node of the cluster may be killed meanwhile; gateways are tried in turn. Ctrl-C cancels\n"
        "the job. A client that was killed, or found no gateway, resumes with --job ID; chunks "
        "that\n"
        "were sent are not sent again. Where the cluster needs a token, the environment variable\n"
        "MILLRACE_CLUSTER_TOKEN holds it, and MILLRACE_CLUSTER_CA the file for --ca. Exit code: 0\n"
        "answered, 1 the job failed, 2 wrong usage, 3 no gateway could be reached.",
    .examples = "  millrace submit movies data/movies -g 127.0.0.1:7101,127.0.0.1:7102\n"
                "  millrace submit movies data/movies -g 127.0.0.1:7101 --query q1 --verify\n"
                "  millrace submit coffee data/coffee -g 127.0.0.1:7101 --job monday "
                "--output results\n",
    .options = submit_options,
    .option_count = SUBMIT_OPTIONS,
    .argument_min = 2,
    .argument_max = 2,
};

struct submit {
    struct answer answer;
    struct gateways gateways;
    struct job *job;
    struct submission submission;
    struct answer_order order;
    struct plan shown; /* With queries in the order in which they were done. */
    struct audit audit;
    struct verify received; /* The cluster's answer, for --verify. */
    uint64_t retry_for_ms;
    uint64_t chunk_count; /* Of all scans. */
    double started;
    bool is_verified;
    bool was_taken; /* Some gateway has accepted the job. */
    bool told_slot;
};

static status read_options(struct submit *submit, struct error *err)
{
    const struct options *options = &submit->answer.options;
    const char *gateways = options_value(options, SUBMIT_GATEWAY);
    const char *retry_for = options_value(options, SUBMIT_RETRY_FOR);
    struct option_range range = {0, RETRY_FOR_MAX_S};
    TRY(answer_read(&submit->answer, err));
    TRY(gateways_read("submit", gateways, &submit->answer.arena, &submit->gateways, err));
    gateways_trust(&submit->gateways, options_value(options, SUBMIT_CA));
    uint64_t retry_for_s = RETRY_FOR_S;
    if (retry_for != NULL) TRY(option_count("retry-for", retry_for, range, &retry_for_s, err));
    submit->retry_for_ms = retry_for_s * 1000;
    submit->answer.job_options.sentiment_model = options_value(options, SUBMIT_SENTIMENT_MODEL);
    submit->is_verified = options_value(options, SUBMIT_VERIFY) != NULL;
    return STATUS_OK;
}

/* --- Callbacks of the client. --- */

static status on_rows(void *context, uint32_t query, const struct batch *batch, struct error *err)
{
    struct submit *submit = context;
    if (submit->is_verified) TRY(verify_rows(&submit->received, query, batch, err));
    return answer_order_rows(&submit->order, query, batch, err);
}

static status on_query_done(void *context, uint32_t query, struct error *err)
{
    struct submit *submit = context;
    return answer_order_end(&submit->order, query, err);
}

static void on_progress(void *context, const struct client_progress *progress, uint64_t sent_bytes,
                        uint64_t total_bytes)
{
    struct submit *submit = context;
    struct progress *line = &submit->answer.progress;
    double elapsed = clock_seconds() - submit->started;
    double rate = elapsed > 0 ? (double)sent_bytes / elapsed : 0;
    double share = submit->chunk_count > 0
                       ? (double)progress->applied_chunks / (double)submit->chunk_count
                       : 0;
    (void)total_bytes; /* Chunks are what is counted on the other side too. */
    bool is_waiting = strcmp(progress->state, job_state_names[JOB_WAITING]) == 0;
    if (progress->state[0] != '\0' && !is_waiting) submit->was_taken = true;
    if (is_waiting && !submit->told_slot && !submit->answer.quiet) {
        submit->told_slot = true;
        progress_clear(line);
        terminal_say("waiting for a slot: the cluster has reached max_jobs\n");
    }
    if (progress->phase_count == 0) {
        line->verb = "waiting";
        progress_show(line, -1, is_waiting ? "for a slot" : "for the cluster");
        return;
    }
    line->verb = progress->sent_chunks < submit->chunk_count ? "sending" : "computing";
    progress_show(line, share, "%llu/%llu chunks, applied %llu, phase %u of %u, %.0f MB/s",
                  (unsigned long long)progress->sent_chunks,
                  (unsigned long long)submit->chunk_count,
                  (unsigned long long)progress->applied_chunks, progress->phase,
                  progress->phase_count, rate / 1e6);
}

/* --- The job. --- */

static void count_chunks(struct submit *submit)
{
    const struct plan *plan = job_plan(submit->job);
    const struct table_files *files = job_files(submit->job);
    for (uint32_t i = 0; i < plan->scan_count; i++) {
        submit->chunk_count += files[plan->scans[i].table].chunk_count;
    }
}

static void say_job(const struct submit *submit)
{
    const struct submission *submission = &submit->submission;
    if (submit->answer.quiet) return;
    if (submission->resumed) {
        terminal_say("job %s, resumed after %llu chunks\n", submission->id,
                     (unsigned long long)submission->sent_count);
    } else {
        terminal_say("job %s\n", submission->id);
    }
    if (submission->journal == NULL) {
        terminal_say("this job can't be resumed, since it has no journal: %s\n",
                     submission->journal_failure.text);
    }
}

/* Waits until a gateway answers, and prints a message after a while; --retry-for bounds it. A
 * certificate that cannot be verified ends the wait at once. */
static status look_for_gateway(struct submit *submit, struct error *err)
{
    const struct gateways *gateways = &submit->gateways;
    uint64_t failure_timeout_ms =
        submit->retry_for_ms < FAILURE_TIMEOUT_MS ? submit->retry_for_ms : FAILURE_TIMEOUT_MS;
    struct gateway_call call = {
        .gateways = gateways->urls,
        .gateway_count = gateways->count,
        .token = gateways->token,
        .ca = gateways->ca,
        .method = "GET",
        .target = "/healthz",
        .timeout_ms = PROBE_MS,
    };
    uint64_t start_ms = clock_ms();
    uint64_t spent_ms = 0;
    struct error reason;
    while (!atomic_load(interrupt_flag())) {
        struct buf body = {0};
        status result = gateway_call(&call, &body, &reason);
        buf_done(&body);
        if (result == STATUS_USAGE) return error_set(err, result, "%s", reason.text);
        if (result != STATUS_IO) return STATUS_OK;
        spent_ms = clock_ms() - start_ms;
        if (spent_ms >= failure_timeout_ms) break;
        (void)poll(NULL, 0, PROBE_STEP_MS); /* A signal ends it earlier. */
    }
    submit->retry_for_ms -= spent_ms < submit->retry_for_ms ? spent_ms : submit->retry_for_ms;
    if (submit->retry_for_ms == 0 || atomic_load(interrupt_flag())) return STATUS_OK;
    struct buf list = {0};
    for (uint32_t i = 0; i < gateways->count; i++) {
        buf_format(&list, "%s%s", i > 0 ? ", " : "", gateways->urls[i]);
    }
    struct text tried = {(const char *)list.bytes, (uint32_t)list.size};
    if (!list.failed) {
        terminal_say("no gateway answers yet (%.500s); trying %.*s for %llu s more\n", reason.text,
                     TEXT_ARGS(tried), (unsigned long long)(submit->retry_for_ms + 999) / 1000);
    }
    buf_done(&list);
    return STATUS_OK;
}

/* Only a job with a journal can be resumed. */
static void advise(const struct submit *submit, struct error *err)
{
    size_t used = strlen(err->text);
    (void)snprintf(err->text + used, sizeof err->text - used, "; resume it with --job %s",
                   submit->submission.id); /* May be cut. */
}

static status run_client(struct submit *submit, struct error *err)
{
    status result = submit->answer.quiet ? STATUS_OK : look_for_gateway(submit, err);
    struct client_node_options options = {
        .job = submit->job,
        .gateways = submit->gateways.urls,
        .gateway_count = submit->gateways.count,
        .id = submit->submission.id,
        .owner_key = submit->submission.owner_key,
        .token = submit->gateways.token,
        .ca = submit->gateways.ca,
        .journal = submit->submission.journal,
        .sent = submit->submission.sent,
        .sent_count = submit->submission.sent_count,
        .retry_for_ms = submit->retry_for_ms,
        .cancelled = interrupt_flag(),
        .context = submit,
        .rows = on_rows,
        .query_done = on_query_done,
        .progress = on_progress,
    };
    submit->started = clock_seconds();
    if (result == STATUS_OK) {
        if (!submit->answer.quiet) progress_start(&submit->answer.progress, "sending");
        result = client_node_run(&options, &submit->audit, err);
        progress_clear(&submit->answer.progress);
    }
    struct submission_outcome outcome = {.result = result, .was_taken = submit->was_taken};
    bool may_go_on = submission_end(&submit->submission, outcome);
    if (result == STATUS_UNREACHABLE && may_go_on) advise(submit, err);
    return result;
}

/* A terminal shows each answer as soon as it is complete; a pipe or file gets them in order. */
static status open_output(struct submit *submit, const struct plan *plan, struct error *err)
{
    struct answer *answer = &submit->answer;
    bool is_monitored = answer->output_options.format == OUTPUT_TABLE &&
                        answer->output_options.directory == NULL &&
                        terminal_of(STDOUT_FILENO).is_terminal;
    struct plan_query *shown = NULL;
    if (is_monitored) {
        shown = arena_array(&answer->arena, struct plan_query, (size_t)plan->query_count + 1);
        if (shown == NULL) return error_memory(err);
        submit->shown = *plan;
        submit->shown.queries = shown;
    }
    TRY(answer_open(answer, is_monitored ? &submit->shown : plan, err));
    return answer_order_open(&submit->order, &answer->output, plan, shown, &answer->arena, err);
}

static status submit_job(struct submit *submit, struct error *err)
{
    struct answer *answer = &submit->answer;
    TRY(job_open(&answer->job_options, &submit->job, err));
    answer->job_options.chunk_bytes = job_chunk_bytes(submit->job);
    count_chunks(submit);
    struct submission_options options = {
        .id = options_value(&answer->options, SUBMIT_JOB),
        .job = submit->job,
        .job_options = &answer->job_options,
        .gateways = &submit->gateways,
    };
    const struct plan *plan = job_plan(submit->job);
    TRY(open_output(submit, plan, err));
    if (submit->is_verified) TRY(verify_open(&submit->received, plan, &answer->arena, err));
    TRY(submission_begin(&submit->submission, &options, &answer->arena, err));
    say_job(submit);
    status result = run_client(submit, err);
    if (result == STATUS_OK) result = output_finish(&answer->output, &submit->audit, err);
    return result == STATUS_OK ? STATUS_OK : answer_explain(answer, err);
}

/* --- The comparison. --- */

struct local_answer {
    struct verify rows;
    struct progress progress;
};

static status on_local_rows(void *context, uint32_t query, const struct batch *batch,
                            struct error *err)
{
    struct local_answer *local = context;
    return verify_rows(&local->rows, query, batch, err);
}

static void on_local_progress(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    struct local_answer *local = context;
    progress_update(&local->progress, done_bytes, total_bytes);
}

static status compare_with_run(struct submit *submit, struct local_answer *local, struct job *job,
                               struct error *err)
{
    struct job_events events = {
        .context = local,
        .rows = on_local_rows,
        .progress = on_local_progress,
        .stream_query = JOB_STREAM_NONE,
    };
    TRY(verify_open(&local->rows, job_plan(job), &submit->answer.arena, err));
    if (!submit->answer.quiet) progress_start(&local->progress, "verifying");
    status result = job_run(job, &events, err);
    progress_clear(&local->progress);
    TRY(result);
    struct verify_side from_cluster = {&submit->received, &submit->audit};
    struct verify_side from_run = {&local->rows, job_audit(job)};
    return verify_compare(from_cluster, from_run, err);
}

static status verify_job(struct submit *submit, struct error *err)
{
    struct local_answer local = {0};
    struct job *job = NULL;
    status result = job_open(&submit->answer.job_options, &job, err);
    if (result == STATUS_OK) result = compare_with_run(submit, &local, job, err);
    if (result == STATUS_OK && !submit->answer.quiet) terminal_say("verified: equal to run\n");
    if (result == STATUS_CANCELLED && interrupt_by_signal()) {
        result = error_set(err, STATUS_CANCELLED, "not verified: interrupted");
    }
    verify_close(&local.rows);
    job_close(job);
    return result;
}

/* --- The command. --- */

static void submit_done(struct submit *submit)
{
    verify_close(&submit->received);
    answer_order_close(&submit->order);
    answer_close(&submit->answer);
    job_close(submit->job);
}

static int submit_main(int argc, char *const *argv)
{
    struct submit submit = {0};
    struct answer *answer = &submit.answer;
    struct error err = {.code = STATUS_OK};
    bool as_json = options_want_json(argc, argv);
    status result = options_parse(&submit_spec, argc, argv, &answer->arena, &answer->options, &err);
    if (result == STATUS_OK && answer->options.help) {
        submit_done(&submit);
        return command_help(&submit_spec);
    }
    if (result == STATUS_OK) result = read_options(&submit, &err);
    if (result == STATUS_OK) {
        result = submit_job(&submit, &err);
        if (result != STATUS_OK) output_discard(&answer->output);
    }
    if (result == STATUS_OK) {
        answer_show_audit(answer, &submit.audit);
        if (submit.is_verified) result = verify_job(&submit, &err);
    }
    int code = COMMAND_ANSWERED;
    if (result != STATUS_OK) code = command_fail(&err, as_json && !answer->output.started);
    submit_done(&submit);
    return code;
}

const struct command command_submit = {.spec = &submit_spec, .run = submit_main};
