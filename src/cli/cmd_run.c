/* cmd_run.c - `millrace run`: the answers of an analysis, computed in this process.
 *
 * Order matters at the end: answers first, then the books, then the picture; so that whatever goes
 * wrong with the later ones, the earlier ones are out.
 */
#include <string.h>
#include <unistd.h>

#include "cli/analysis.h"
#include "cli/audit.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "io/fetch.h"

enum {
    RUN_QUERY,
    RUN_SET,
    RUN_FORMAT,
    RUN_OUTPUT,
    RUN_AUDIT,
    RUN_ROWS,
    RUN_THREADS,
    RUN_MEMORY_LIMIT,
    RUN_CHUNK_SIZE,
    RUN_FIELD_LIMIT,
    RUN_FETCH_IMAGE,
    RUN_QUIET,
    RUN_OPTIONS
};

enum {
    TERMINAL_ROWS = 40,       /* Of a table on a terminal, */
    TERMINAL_TEXT_WIDTH = 16, /* where texts are cut to make lines fit, down to this. */
    PLAIN_TEXT_WIDTH = 40,
    URL_MAX = 8192
};

#define GIB ((uint64_t)1 << 30)

static const struct option_spec run_options[RUN_OPTIONS] = {
    [RUN_QUERY] = {"query", "q1,q3", "only these queries; default: all of the analysis", true},
    [RUN_SET] = {"set", "NAME=VALUE", "a parameter of the analysis; may be repeated", true},
    [RUN_FORMAT] = {"format", "FORMAT", "table (default), csv, json or ndjson", false},
    [RUN_OUTPUT] = {"output", "DIR",
                    "a file per query in DIR (csv unless --format), and audit.json", false},
    [RUN_AUDIT] = {"audit", "full", "the whole books: drops, stages, edges, to stderr", false},
    [RUN_ROWS] = {"rows", "N|all", "rows of a table; default: all, on a terminal 40", false},
    [RUN_THREADS] = {"threads", "N", "default: one per core", false},
    [RUN_MEMORY_LIMIT] = {"memory-limit", "SIZE", "such as 512MiB; default: 80 % of RAM", false},
    [RUN_CHUNK_SIZE] = {"chunk-size", "SIZE",
                        "bytes of a file worked on at a time; default: 512KiB", false},
    [RUN_FIELD_LIMIT] = {"field-limit", "SIZE",
                         "largest field of a file, at most 1GiB; default: 64MiB", false},
    [RUN_FETCH_IMAGE] = {"fetch-image", "FILE", "downloads what the answer's first `url` names",
                         false},
    [RUN_QUIET] = {"quiet", NULL, "no progress, and no books but those of --audit full", false},
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
    struct arena arena;
    struct options options;
    struct job_options job_options;
    struct output_options output_options;
    struct output output;
    struct job *job;
    struct progress progress;
    const char *image_path; /* NULL: none wanted. */
    uint32_t image_query;   /* The last query that has a column url, */
    int32_t image_column;   /* which one that is (-1: none has), */
    struct buf image_url;   /* and its value in the first row. */
    bool image_has_row;
    bool full_audit;
    bool quiet;
};

/* --- What was asked for. --- */

static status read_sizes(struct run *run, struct error *err)
{
    const struct options *options = &run->options;
    struct job_options *job = &run->job_options;
    const char *threads = options_value(options, RUN_THREADS);
    const char *memory = options_value(options, RUN_MEMORY_LIMIT);
    const char *chunk = options_value(options, RUN_CHUNK_SIZE);
    const char *field = options_value(options, RUN_FIELD_LIMIT);
    uint64_t value = 0;
    if (threads != NULL) {
        struct option_range range = {1, JOB_THREADS_MAX};
        TRY(option_count("threads", threads, range, &value, err));
        job->thread_count = (uint32_t)value;
    }
    if (memory != NULL) {
        struct option_range range = {1, INT64_MAX};
        TRY(option_size("memory-limit", memory, range, &job->memory_limit, err));
    }
    if (chunk != NULL) {
        TRY(option_size("chunk-size", chunk, (struct option_range){1, GIB}, &value, err));
        job->chunk_bytes = (uint32_t)value;
    }
    if (field != NULL) {
        TRY(option_size("field-limit", field, (struct option_range){1, GIB}, &value, err));
        job->field_limit = (uint32_t)value;
    }
    return STATUS_OK;
}

static status read_rows(struct run *run, struct error *err)
{
    struct terminal terminal = terminal_of(STDOUT_FILENO);
    bool is_shown = terminal.is_terminal && run->output_options.directory == NULL;
    struct print_table_options *table = &run->output_options.table;
    *table = (struct print_table_options){
        .line_width = terminal.width,
        .text_width = is_shown ? TERMINAL_TEXT_WIDTH : PLAIN_TEXT_WIDTH,
        .row_limit = is_shown ? TERMINAL_ROWS : PRINT_TABLE_ALL_ROWS,
        .cut_note = "--rows all or --format csv shows all",
        .color = is_shown && terminal.color,
    };
    const char *rows = options_value(&run->options, RUN_ROWS);
    if (rows == NULL) return STATUS_OK;
    if (run->output_options.format != OUTPUT_TABLE) {
        return error_set(err, STATUS_USAGE, "--rows is for --format table; %s always has all rows",
                         output_format_names[run->output_options.format]);
    }
    table->row_limit = PRINT_TABLE_ALL_ROWS;
    if (strcmp(rows, "all") == 0) return STATUS_OK;
    struct option_range range = {0, INT64_MAX};
    uint64_t count = 0;
    if (option_count("rows", rows, range, &count, err) != STATUS_OK) {
        return error_set(err, STATUS_USAGE, "--rows: `%.100s` is neither a number nor `all`", rows);
    }
    table->row_limit = count;
    return STATUS_OK;
}

static status read_output(struct run *run, struct error *err)
{
    struct output_options *output = &run->output_options;
    const char *format = options_value(&run->options, RUN_FORMAT);
    const char *audit = options_value(&run->options, RUN_AUDIT);
    output->directory = options_value(&run->options, RUN_OUTPUT);
    output->format = output->directory != NULL ? OUTPUT_CSV : OUTPUT_TABLE;
    uint32_t choice = 0;
    if (format != NULL) {
        TRY(option_choice("format", format, output_format_names, OUTPUT_FORMATS, &choice, err));
        output->format = (enum output_format)choice;
    }
    if (audit != NULL) {
        static const char *const kinds[] = {"full", "short"};
        TRY(option_choice("audit", audit, kinds, 2, &choice, err));
        run->full_audit = choice == 0;
    }
    if (output->directory != NULL && output->directory[0] == '\0') {
        return error_set(err, STATUS_USAGE, "--output needs the name of a folder");
    }
    run->image_path = options_value(&run->options, RUN_FETCH_IMAGE);
    if (run->image_path != NULL && run->image_path[0] == '\0') {
        return error_set(err, STATUS_USAGE, "--fetch-image needs the name of a file");
    }
    run->quiet = options_value(&run->options, RUN_QUIET) != NULL;
    return read_rows(run, err);
}

static status read_options(struct run *run, struct error *err)
{
    struct job_options *job = &run->job_options;
    TRY(read_output(run, err));
    TRY(read_sizes(run, err));
    TRY(command_queries(&run->options, RUN_QUERY, &run->arena, job, err));
    TRY(command_settings(&run->options, RUN_SET, &run->arena, job, err));
    TRY(analysis_find(run->options.arguments[0], &run->arena, &job->analysis_dir, err));
    job->data_dir = run->options.arguments[1];
    job->cancelled = interrupt_flag();
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
    struct fetch_report report;
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
    if (fetch_file(string, run->image_path, interrupt_flag(), &report, &err) != STATUS_OK) {
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
    status result = output_rows(&run->output, query, batch, err);
    if (result != STATUS_OK) interrupt_request(); /* Nobody takes the rest: the job may stop. */
    return result;
}

static void on_progress(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    struct run *run = context;
    progress_update(&run->progress, done_bytes, total_bytes);
}

static void on_write(void *context)
{
    struct run *run = context;
    progress_clear(&run->progress);
}

static int32_t stream_query(const struct run *run)
{
    const struct plan *plan = job_plan(run->job);
    enum output_format format = run->output_options.format;
    bool can_stream =
        run->output_options.directory == NULL && (format == OUTPUT_CSV || format == OUTPUT_NDJSON);
    return can_stream && plan->query_count > 0 && !plan->queries[0].ordered ? 0 : JOB_STREAM_NONE;
}

/* The cause that the user can do something about comes first. */
static status explain_failure(struct run *run, struct error *err)
{
    status result = err->code;
    const struct error *failure = &run->output.failure;
    if (failure->code != STATUS_OK) {
        *err = *failure;
        result = failure->code;
    }
    if (result == STATUS_CANCELLED && interrupt_by_signal()) {
        result = error_set(err, STATUS_CANCELLED, "interrupted");
    }
    /* What a failed write left behind is incomplete, and the reader knows; it is not wrong. */
    if (run->output.started && (failure->code == STATUS_OK || interrupt_by_signal())) {
        size_t used = strlen(err->text);
        (void)strncat(err->text, "\nthe rows already printed are void",
                      sizeof err->text - used - 1); /* May be cut. */
    }
    return result;
}

static status run_job(struct run *run, struct error *err)
{
    TRY(job_open(&run->job_options, &run->job, err));
    image_find_column(run);
    run->output_options.plan = job_plan(run->job);
    run->output_options.cancelled = interrupt_flag();
    run->output_options.before_write = on_write;
    run->output_options.context = run;
    TRY(output_open(&run->output, &run->output_options, err));

    struct job_events events = {
        .context = run,
        .rows = on_rows,
        .progress = on_progress,
        .stream_query = stream_query(run),
    };
    if (!run->quiet) progress_start(&run->progress, "reading");
    status result = job_run(run->job, &events, err);
    progress_clear(&run->progress);
    if (result == STATUS_OK) {
        result = output_finish(&run->output, job_books(run->job), err);
    }
    return result == STATUS_OK ? STATUS_OK : explain_failure(run, err);
}

static void show_books(struct run *run)
{
    bool is_json = run->output_options.format == OUTPUT_JSON;
    bool to_stdout = run->output_options.directory == NULL;
    if (run->quiet && !run->full_audit) return;
    if (is_json && to_stdout && !run->full_audit) return; /* They stand in the answer. */
    struct terminal terminal = terminal_of(STDERR_FILENO);
    struct buf text = {0};
    /* Where both end up on one screen, the books stand apart from the answers. */
    bool is_below = to_stdout && terminal.is_terminal && terminal_of(STDOUT_FILENO).is_terminal;
    if (is_below) buf_put_u8(&text, '\n');
    if (run->full_audit) {
        audit_full(job_books(run->job), terminal, &run->arena, &text);
    } else {
        audit_short(job_books(run->job), &text);
    }
    if (!text.failed) terminal_say_raw(&text);
    buf_done(&text);
    if (!to_stdout && !run->quiet) {
        terminal_say("answers are in %s\n", run->output_options.directory);
    }
}

static void run_done(struct run *run)
{
    job_close(run->job);
    buf_done(&run->image_url);
    arena_done(&run->arena);
}

static int run_main(int argc, char *const *argv)
{
    struct run run = {.image_column = -1};
    struct error err = {.code = STATUS_OK};
    bool as_json = options_want_json(argc, argv);
    status result = options_parse(&run_spec, argc, argv, &run.arena, &run.options, &err);
    if (result == STATUS_OK && run.options.help) {
        run_done(&run);
        return command_help(&run_spec);
    }
    if (result == STATUS_OK) result = read_options(&run, &err);
    if (result == STATUS_OK) {
        result = run_job(&run, &err);
        if (result != STATUS_OK) output_discard(&run.output);
    }
    int code = COMMAND_ANSWERED;
    if (result != STATUS_OK) {
        code = command_fail(&err, as_json && !run.output.started);
    } else {
        show_books(&run);
        if (run.image_path != NULL) image_fetch(&run);
    }
    output_close(&run.output);
    run_done(&run);
    return code;
}

const struct command command_run = {.spec = &run_spec, .run = run_main};
