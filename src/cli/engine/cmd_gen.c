/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_gen.c - `millrace gen`: realistic data for a built-in analysis. */
#include "cli/engine/engine_commands.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "engine/data/print_table.h"
#include "gen/gen.h"
#include "engine/file/clock.h"

enum { GEN_SCALE, GEN_SEED, GEN_QUIET, GEN_OPTIONS };

static const struct option_spec gen_options_given[GEN_OPTIONS] = {
    [GEN_SCALE] = {"scale", "X", "size: 1 (default) is like the real data, 0.01 a hundredth", false,
                   0},
    [GEN_SEED] = {"seed", "N", "other data for another number; default: 1", false, 0},
    [GEN_QUIET] = {"quiet", NULL, "no progress and no summary; errors only", false, 0},
};

static const struct command_spec gen_spec = {
    .name = "gen",
    .arguments = "ANALYSIS DIR",
    .summary = "write realistic data for an analysis: movies, coffee or memes",
    .about =
        "The same seed and scale give the same bytes on every machine. DIR is made if it is not\n"
        "there; files of the same names in it are replaced.",
    .examples = "  millrace gen movies /tmp/movies --scale 0.1\n"
                "  millrace gen coffee /tmp/coffee --scale 0.01 --seed 7\n",
    .options = gen_options_given,
    .option_count = GEN_OPTIONS,
    .argument_min = 2,
    .argument_max = 2,
};

static void on_progress(void *context, uint64_t done_bytes, uint64_t expected_bytes)
{
    progress_update(context, done_bytes, expected_bytes);
}

static status read_options(const struct options *options, struct gen_options *gen,
                           struct error *err)
{
    const char *scale = options_value(options, GEN_SCALE);
    const char *seed = options_value(options, GEN_SEED);
    struct option_range any = {0, UINT64_MAX};
    gen->analysis = options->arguments[0];
    gen->directory = options->arguments[1];
    gen->scale = 1;
    gen->seed = 1;
    if (scale != NULL) TRY(option_positive("scale", scale, &gen->scale, err));
    if (seed != NULL) TRY(option_count("seed", seed, any, &gen->seed, err));
    gen->cancelled = interrupt_flag();
    return STATUS_OK;
}

static void say_summary(const struct gen_report *report, const char *directory, double seconds)
{
    struct buf text = {0};
    print_count(report->file_count, &text);
    buf_put_string(&text, report->file_count == 1 ? " file, " : " files, ");
    terminal_put_bytes(report->byte_count, &text);
    buf_put_string(&text, ", ");
    print_count(report->record_count, &text);
    buf_put_string(&text, " records, ");
    terminal_put_seconds(seconds, &text);
    double rate = seconds > 0 ? (double)report->byte_count / seconds / 1e6 : 0;
    buf_format(&text, ", %.0f MB/s", rate);
    terminal_say("wrote %s: %.*s\n", directory, (int)text.size, (const char *)text.bytes);
    buf_done(&text);
}

static status generate(const struct options *options, struct error *err)
{
    struct gen_options gen = {0};
    struct gen_report report = {0};
    struct progress progress = {0};
    bool quiet = options_value(options, GEN_QUIET) != NULL;
    TRY(read_options(options, &gen, err));
    gen.progress = on_progress;
    gen.context = &progress;
    if (!quiet) progress_start(&progress, "writing");
    double start = clock_seconds();
    status result = gen_write(&gen, &report, err);
    progress_clear(&progress);
    if (result == STATUS_CANCELLED) return error_set(err, STATUS_CANCELLED, "interrupted");
    if (result == STATUS_OK && !quiet) say_summary(&report, gen.directory, clock_seconds() - start);
    return result;
}

static int gen_main(int argc, char *const *argv)
{
    struct arena arena = {0};
    struct options options = {0};
    struct error err = {.code = STATUS_OK};
    int code = COMMAND_ANSWERED;
    status result = options_parse(&gen_spec, argc, argv, &arena, &options, &err);
    if (result == STATUS_OK && options.help) {
        code = command_help(&gen_spec);
    } else {
        if (result == STATUS_OK) result = generate(&options, &err);
        if (result != STATUS_OK) code = command_fail(&err, options_want_json(argc, argv));
    }
    arena_done(&arena);
    return code;
}

const struct command command_gen = {.spec = &gen_spec, .run = gen_main};
