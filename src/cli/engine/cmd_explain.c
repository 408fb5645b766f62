/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_explain.c - `millrace explain`: the plan, without reading data. */
#include "cli/analysis.h"
#include "cli/engine/engine_commands.h"
#include "cli/interrupt.h"
#include "engine/sql/explain.h"

enum {
    EXPLAIN_QUERY,
    EXPLAIN_SET,
    EXPLAIN_BROADCAST_LIMIT,
    EXPLAIN_DOT,
    EXPLAIN_JSON,
    EXPLAIN_OPTIONS
};

static const struct option_spec explain_options[EXPLAIN_OPTIONS] = {
    [EXPLAIN_QUERY] = {"query", "q1,q3", "only these queries; default: all of the analysis", true,
                       0},
    [EXPLAIN_SET] = {"set", "NAME=VALUE", "a parameter of the analysis; may be repeated", true, 0},
    [EXPLAIN_BROADCAST_LIMIT] = {"broadcast-limit", "SIZE", "as of run and submit; default: 256MiB",
                                 false, 0},
    [EXPLAIN_DOT] = {"dot", NULL, "for graphviz", false, 0},
    [EXPLAIN_JSON] = {"json", NULL, "for programs", false, 0},
};

static const struct command_spec explain_spec = {
    .name = "explain",
    .arguments = "ANALYSIS [DATA_DIR]",
    .summary = "show how an analysis would be computed",
    .about =
        "A scan reads a table once in a phase, for all pipelines below it. A pipeline works on\n"
        "each chunk by itself: it filters, joins with build sides, aggregates what it has, and\n"
        "sends the columns shown after the arrow to a fold. A fold merges what it is sent, and is\n"
        "the input of another pipeline, a build side for joins of a later phase, or a result.\n"
        "No data is read; with DATA_DIR, the sizes of its files decide which side of a join\n"
        "becomes the build side, as in a run.",
    .examples = "  millrace explain movies\n"
                "  millrace explain movies --query q3 --dot | dot -Tsvg > q3.svg\n",
    .options = explain_options,
    .option_count = EXPLAIN_OPTIONS,
    .argument_min = 1,
    .argument_max = 2,
};

static status open_job(const struct options *options, struct arena *arena, struct job **out_job,
                       struct error *err)
{
    struct job_options job = {.cancelled = interrupt_flag()};
    if (options_value(options, EXPLAIN_DOT) != NULL &&
        options_value(options, EXPLAIN_JSON) != NULL) {
        return error_set(err, STATUS_USAGE, "--dot and --json exclude each other");
    }
    TRY(command_queries(options, EXPLAIN_QUERY, arena, &job, err));
    TRY(command_settings(options, EXPLAIN_SET, arena, &job, err));
    TRY(analysis_find(options->arguments[0], arena, &job.analysis_dir, err));
    if (options->argument_count > 1) job.data_dir = options->arguments[1];
    const char *side = options_value(options, EXPLAIN_BROADCAST_LIMIT);
    if (side != NULL) {
        struct option_range any = {1, INT64_MAX};
        TRY(option_size("broadcast-limit", side, any, &job.broadcast_limit, err));
    }
    return job_open(&job, out_job, err);
}

static int explain_main(int argc, char *const *argv)
{
    struct arena arena = {0};
    struct options options = {0};
    struct job *job = NULL;
    struct error err = {.code = STATUS_OK};
    int code = COMMAND_ANSWERED;
    status result = options_parse(&explain_spec, argc, argv, &arena, &options, &err);
    if (result == STATUS_OK && options.help) {
        code = command_help(&explain_spec);
        arena_done(&arena);
        return code;
    }
    if (result == STATUS_OK) result = open_job(&options, &arena, &job, &err);
    if (result != STATUS_OK) {
        code = command_fail(&err, options_want_json(argc, argv));
    } else {
        struct buf text = {0};
        if (options_value(&options, EXPLAIN_DOT) != NULL) {
            explain_dot(job_plan(job), &text);
        } else if (options_value(&options, EXPLAIN_JSON) != NULL) {
            explain_json(job_plan(job), &text);
        } else {
            explain_text(job_plan(job), &text);
        }
        code = command_print(&text);
        buf_done(&text);
    }
    job_close(job);
    arena_done(&arena);
    return code;
}

const struct command command_explain = {.spec = &explain_spec, .run = explain_main};
