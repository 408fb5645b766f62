/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_run.c - `millrace run`: the answers of an analysis, computed in this process.
 *
 * Order matters at the end: answers first, then the audit, then the picture; so that whatever goes
 * wrong with the later ones, the earlier ones are out.
 */
#include <string.h>

#include "cli/answer.h"
#include "cli/engine/engine_commands.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "cli/engine/image_download.h"
#include "engine/file/file.h"

enum {
    RUN_THREADS = ANSWER_OPTIONS,
    RUN_MEMORY_LIMIT,
    RUN_TEMP_DIR,
    RUN_SENTIMENT_MODEL,
    RUN_FETCH_IMAGE,
    RUN_OPTIONS
};

enum { URL_MAX = 8192 };

static const struct option_spec run_options[RUN_OPTIONS] = {
    ANSWER_OPTION_SPECS,
    [RUN_THREADS] = {"threads", "N", "default: one per core", false, 0},
    [RUN_MEMORY_LIMIT] = {"memory-limit", "SIZE", "such as 512MiB; default: 80 % of RAM", false, 0},
    [RUN_TEMP_DIR] = {"temp-dir", "FOLDER",
                      "for what memory cannot hold; default: $TMPDIR or /var/tmp", false, 0},
    [RUN_SENTIMENT_MODEL] = {"sentiment-model", "FILE",
                             "for sentiment() and polarity(); default: the one in the program",
                             false, 0},
    [RUN_FETCH_IMAGE] = {"fetch-image", "FILE", "downloads what the answer's first `url` names",
                         false, 0},
};

static const struct command_spec run_spec = {
    .name = "run",
    .arguments = "ANALYSIS DATA_DIR",
    .summary = "answer the questions of an analysis, here in this process",
    .about =
        "ANALYSIS is a name under analyses/ or a folder with tables.sql and a file per query.\n"
        "DATA_DIR holds the CSV files that tables.sql names. Answers go to stdout, all else to\n"
        "stderr. Exit code: 0 answered, 1 the job failed, 2 wrong usage. A SIZE is bytes or like\n"
        "512k, 64MiB, 1.5GB: k, M, G, T and KiB, MiB... count in 1024, kB, MB... in 1000.",
    .examples = "  millrace run movies data/movies\n"
                "  millrace run movies data/movies --query q1,q3 --format csv > answers.csv\n"
                "  millrace run coffee data/coffee --output results --audit full\n",
    .options = run_options,
    .option_count = RUN_OPTIONS,
    .argument_min = 2,
    .argument_max = 2,
};

struct run {
    struct answer answer;
    struct job *job;
    const char *image_path; /* NULL: none wanted. */
    uint32_t image_query;   /* The last query that has a column url, */
    int32_t image_column;   /* which one that is (-1: none has), */
    struct buf image_url;   /* and its value in the first row. */
    bool image_has_row;
};

static status read_options(struct run *run, struct error *err)
{
    const struct options *options = &run->answer.options;
    struct job_options *job = &run->answer.job_options;
    const char *threads = options_value(options, RUN_THREADS);
    const char *memory = options_value(options, RUN_MEMORY_LIMIT);
    TRY(answer_read(&run->answer, err));
    if (threads != NULL) {
        struct option_range range = {1, JOB_THREADS_MAX};
        uint64_t count = 0;
        TRY(option_count("threads", threads, range, &count, err));
        job->thread_count = (uint32_t)count;
    }
    if (memory != NULL) {
        struct option_range range = {1, INT64_MAX};
        TRY(option_size("memory-limit", memory, range, &job->memory_limit, err));
    }
    job->memory_taken = memory_of_process();
    job->temp_dir = options_value(options, RUN_TEMP_DIR);
    if (job->temp_dir != NULL && !file_is_folder(job->temp_dir)) {
        return error_set(err, STATUS_USAGE, "--temp-dir: there is no folder %.500s", job->temp_dir);
    }
    job->sentiment_model = options_value(options, RUN_SENTIMENT_MODEL);
    run->image_path = options_value(options, RUN_FETCH_IMAGE);
    if (run->image_path != NULL && run->image_path[0] == '\0') {
        return error_set(err, STATUS_USAGE, "--fetch-image needs the name of a file");
    }
    return STATUS_OK;
}

/* --- The picture. --- */

static void image_find_column(struct run *run)
{
    const struct plan *plan = job_plan(run->job);
    run->image_column = -1;
    for (uint32_t query = 0; query < plan->query_count; query++) {
        const struct schema *schema = &plan->queries[query].schema;
        for (uint32_t i = 0; i < schema->count; i++) {
            bool is_url = text_equal(schema->fields[i].name, TEXT_LITERAL("url"));
            if (is_url && schema->fields[i].type.kind == TYPE_TEXT) {
                run->image_query = query;
                run->image_column = (int32_t)i;
            }
        }
    }
}

static void image_note_url(struct run *run, uint32_t query, const struct batch *batch)
{
    bool is_first = run->image_path != NULL && run->image_column >= 0 && !run->image_has_row &&
                    query == run->image_query && batch->row_count > 0;
    if (!is_first) return;
    run->image_has_row = true;
    const struct column *column = &batch->columns[run->image_column];
    if (!column_is_null(column, 0)) buf_put_text(&run->image_url, column->texts[0]);
}

static void image_fetch(struct run *run)
{
    const struct plan *plan = job_plan(run->job);
    struct error err;
    struct image_report report;
    if (run->image_column < 0) {
        terminal_say("no image fetched: no query has a column `url`\n");
        return;
    }
    struct text name = plan->queries[run->image_query].name;
    struct buf *url = &run->image_url;
    if (!run->image_has_row || url->size == 0) {
        terminal_say("no image fetched: %.*s has no %s\n", TEXT_ARGS(name),
                     run->image_has_row ? "url in its first row" : "rows");
        return;
    }
    bool has_zero = memchr(url->bytes, '\0', url->size) != NULL;
    buf_put_u8(url, '\0');
    if (url->failed || has_zero || url->size > URL_MAX) {
        terminal_say("no image fetched: the url of %.*s is not usable\n", TEXT_ARGS(name));
        return;
    }
    const char *string = (const char *)url->bytes;
    if (image_download(string, run->image_path, interrupt_flag(), &report, &err) != STATUS_OK) {
        terminal_say("no image fetched from %s: %s\n", string, err.text);
        return;
    }
    struct buf size = {0};
    terminal_put_bytes(report.byte_count, &size);
    terminal_say("fetched %s from %s (%.*s%s%s)\n", run->image_path, string, (int)size.size,
                 (const char *)size.bytes, report.content_type[0] != '\0' ? ", " : "",
                 report.content_type);
    buf_done(&size);
}

/* --- The job. --- */

static status on_rows(void *context, uint32_t query, const struct batch *batch, struct error *err)
{
    struct run *run = context;
    image_note_url(run, query, batch);
    status result = output_rows(&run->answer.output, query, batch, err);
    if (result != STATUS_OK) interrupt_request(); /* Nobody takes the rest: the job may stop. */
    return result;
}

static void on_progress(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    struct run *run = context;
    progress_update(&run->answer.progress, done_bytes, total_bytes);
}

static int32_t stream_query(const struct run *run)
{
    const struct plan *plan = job_plan(run->job);
    const struct output_options *output = &run->answer.output_options;
    bool can_stream = output->directory == NULL &&
                      (output->format == OUTPUT_CSV || output->format == OUTPUT_NDJSON);
    return can_stream && plan->query_count > 0 && !plan->queries[0].ordered ? 0 : JOB_STREAM_NONE;
}

static status run_job(struct run *run, struct error *err)
{
    struct answer *answer = &run->answer;
    TRY(job_open(&answer->job_options, &run->job, err));
    image_find_column(run);
    TRY(answer_open(answer, job_plan(run->job), err));

    struct job_events events = {
        .context = run,
        .rows = on_rows,
        .progress = on_progress,
        .stream_query = stream_query(run),
    };
    if (!answer->quiet) progress_start(&answer->progress, "reading");
    status result = job_run(run->job, &events, err);
    progress_clear(&answer->progress);
    if (result == STATUS_OK) {
        result = output_finish(&answer->output, job_audit(run->job), err);
    }
    return result == STATUS_OK ? STATUS_OK : answer_explain(answer, err);
}

static void run_done(struct run *run)
{
    answer_close(&run->answer);
    job_close(run->job);
    buf_done(&run->image_url);
}

static int run_main(int argc, char *const *argv)
{
    struct run run = {.image_column = -1};
    struct answer *answer = &run.answer;
    struct error err = {.code = STATUS_OK};
    bool as_json = options_want_json(argc, argv);
    status result = options_parse(&run_spec, argc, argv, &answer->arena, &answer->options, &err);
    if (result == STATUS_OK && answer->options.help) {
        run_done(&run);
        return command_help(&run_spec);
    }
    if (result == STATUS_OK) result = read_options(&run, &err);
    if (result == STATUS_OK) {
        result = run_job(&run, &err);
        if (result != STATUS_OK) output_discard(&answer->output);
    }
    int code = COMMAND_ANSWERED;
    if (result != STATUS_OK) {
        code = command_fail(&err, as_json && !answer->output.started);
    } else {
        answer_show_audit(answer, job_audit(run.job));
        if (run.image_path != NULL) image_fetch(&run);
    }
    run_done(&run);
    return code;
}

const struct command command_run = {.spec = &run_spec, .run = run_main};
