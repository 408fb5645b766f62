/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - shared by `run` and `submit`, so that an answer looks the same wherever it was
 * computed.
 */
#include "cli/answer.h"

#include <string.h>
#include <unistd.h>

#include "cli/analysis.h"
#include "cli/audit_report.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"

enum {
    TERMINAL_ROWS = 40,       /* Of a table on a terminal, */
    TERMINAL_TEXT_WIDTH = 16, /* where texts are cut to make lines fit, down to this. */
    PLAIN_TEXT_WIDTH = 40
};

#define GIB ((uint64_t)1 << 30)

/* --- What was asked for. --- */

static status read_sizes(struct answer *answer, struct error *err)
{
    struct job_options *job = &answer->job_options;
    const char *chunk = options_value(&answer->options, ANSWER_CHUNK_SIZE);
    const char *field = options_value(&answer->options, ANSWER_FIELD_LIMIT);
    const char *side = options_value(&answer->options, ANSWER_BROADCAST_LIMIT);
    struct option_range range = {1, GIB};
    uint64_t value = 0;
    if (chunk != NULL) {
        TRY(option_size("chunk-size", chunk, range, &value, err));
        job->chunk_bytes = (uint32_t)value;
    }
    if (field != NULL) {
        TRY(option_size("field-limit", field, range, &value, err));
        job->field_limit = (uint32_t)value;
    }
    if (side != NULL) {
        struct option_range any = {1, INT64_MAX};
        TRY(option_size("broadcast-limit", side, any, &job->broadcast_limit, err));
    }
    return STATUS_OK;
}

static status read_rows(struct answer *answer, struct error *err)
{
    struct terminal terminal = terminal_of(STDOUT_FILENO);
    bool is_shown = terminal.is_terminal && answer->output_options.directory == NULL;
    struct print_table_options *table = &answer->output_options.table;
    *table = (struct print_table_options){
        .line_width = terminal.width,
        .text_width = is_shown ? TERMINAL_TEXT_WIDTH : PLAIN_TEXT_WIDTH,
        .row_limit = is_shown ? TERMINAL_ROWS : PRINT_TABLE_ALL_ROWS,
        .cut_note = "--rows all or --format csv shows all",
        .color = is_shown && terminal.color,
    };
    const char *rows = options_value(&answer->options, ANSWER_ROWS);
    if (rows == NULL) return STATUS_OK;
    if (answer->output_options.format != OUTPUT_TABLE) {
        return error_set(err, STATUS_USAGE, "--rows is for --format table; %s always has all rows",
                         output_format_names[answer->output_options.format]);
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

static status read_output(struct answer *answer, struct error *err)
{
    struct output_options *output = &answer->output_options;
    const char *format = options_value(&answer->options, ANSWER_FORMAT);
    const char *audit = options_value(&answer->options, ANSWER_AUDIT);
    output->directory = options_value(&answer->options, ANSWER_OUTPUT);
    output->format = output->directory != NULL ? OUTPUT_CSV : OUTPUT_TABLE;
    uint32_t choice = 0;
    if (format != NULL) {
        TRY(option_choice("format", format, output_format_names, OUTPUT_FORMATS, &choice, err));
        output->format = (enum output_format)choice;
    }
    if (audit != NULL) {
        static const char *const kinds[] = {"full", "short"};
        TRY(option_choice("audit", audit, kinds, 2, &choice, err));
        answer->full_audit = choice == 0;
    }
    if (output->directory != NULL && output->directory[0] == '\0') {
        return error_set(err, STATUS_USAGE, "--output needs the name of a folder");
    }
    answer->quiet = options_value(&answer->options, ANSWER_QUIET) != NULL;
    return read_rows(answer, err);
}

status answer_read(struct answer *answer, struct error *err)
{
    struct job_options *job = &answer->job_options;
    const struct options *options = &answer->options;
    TRY(read_output(answer, err));
    TRY(read_sizes(answer, err));
    TRY(command_queries(options, ANSWER_QUERY, &answer->arena, job, err));
    TRY(command_settings(options, ANSWER_SET, &answer->arena, job, err));
    TRY(analysis_find(options->arguments[0], &answer->arena, &job->analysis_dir, err));
    job->data_dir = options->arguments[1];
    job->cancelled = interrupt_flag();
    return STATUS_OK;
}

/* --- Where it goes. --- */

static void on_write(void *context)
{
    struct answer *answer = context;
    progress_clear(&answer->progress);
}

status answer_open(struct answer *answer, const struct plan *plan, struct error *err)
{
    struct output_options *options = &answer->output_options;
    options->plan = plan;
    options->cancelled = interrupt_flag();
    options->before_write = on_write;
    options->context = answer;
    return output_open(&answer->output, options, err);
}

status answer_explain(const struct answer *answer, struct error *err)
{
    status result = err->code;
    const struct error *failure = &answer->output.failure;
    if (failure->code != STATUS_OK) {
        *err = *failure;
        result = failure->code;
    }
    if (result == STATUS_CANCELLED && interrupt_by_signal()) {
        result = error_set(err, STATUS_CANCELLED, "interrupted");
    }
    /* What a failed write left behind is incomplete, and the reader knows; it is not wrong. */
    if (answer->output.started && (failure->code == STATUS_OK || interrupt_by_signal())) {
        size_t used = strlen(err->text);
        (void)strncat(err->text, "\nthe rows already printed are void",
                      sizeof err->text - used - 1); /* May be cut. */
    }
    return result;
}

void answer_show_audit(struct answer *answer, const struct audit *audit)
{
    bool is_json = answer->output_options.format == OUTPUT_JSON;
    bool to_stdout = answer->output_options.directory == NULL;
    if (answer->quiet && !answer->full_audit) return;
    if (is_json && to_stdout && !answer->full_audit) return; /* They stand in the answer. */
    struct terminal terminal = terminal_of(STDERR_FILENO);
    struct buf text = {0};
    /* Where both end up on one screen, the audit stand apart from the answers. */
    bool is_below = to_stdout && terminal.is_terminal && terminal_of(STDOUT_FILENO).is_terminal;
    if (is_below) buf_put_u8(&text, '\n');
    if (answer->full_audit) {
        audit_full(audit, terminal, &answer->arena, &text);
    } else {
        audit_short(audit, &text);
    }
    if (!text.failed) terminal_say_raw(&text);
    buf_done(&text);
    if (!to_stdout && !answer->quiet) {
        terminal_say("answers are in %s\n", answer->output_options.directory);
    }
}

void answer_close(struct answer *answer)
{
    output_close(&answer->output);
    arena_done(&answer->arena);
}
