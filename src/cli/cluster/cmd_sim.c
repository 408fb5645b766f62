/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_sim.c - `millrace sim`: simulated clusters under faults, one for every seed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cluster_commands.h"
#include "cli/cluster/cluster_program.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "engine/base/fault_injection.h"
#include "engine/data/print_table.h"
#include "engine/file/clock.h"
#include "cluster/sim/jobs/scenario.h"
#include "cluster/sim/jobs/sim.h"
#include "cluster/sim/monitors/monitors_sim.h"
#include "cluster/sim/sim_farm.h"

enum {
    SIM_SEEDS,
    SIM_MONITORS,
    SIM_PROFILE,
    SIM_PROCESSES,
    SIM_TRACE,
    SIM_STOP,
    SIM_QUIET,
    SIM_MUTATION, /* The last: only where mistakes can be planted. */
    SIM_OPTIONS
};

/* Of failures that are printed. */
enum { FAILURES_SHOWN = 20, SEEDS_DEFAULT = 1000 };

static const struct option_spec sim_options_given[SIM_OPTIONS] = {
    [SIM_SEEDS] = {"seeds", "A..B", "which runs; default: 1..1000", false, 0},
    [SIM_MONITORS] = {"monitors", NULL, "monitors and what they watch, instead of jobs", false, 0},
    [SIM_PROFILE] = {"profile", "NAME", "what goes wrong; default: mixed", false, 0},
    [SIM_PROCESSES] = {"processes", "N", "how many at once; default: one per core", false, 0},
    [SIM_TRACE] = {"trace", NULL, "say what happens, in one process", false, 0},
    [SIM_STOP] = {"stop", NULL, "stop at the first failure", false, 0},
    [SIM_QUIET] = {"quiet", NULL, "no progress and no summary; failures only", false, 0},
    [SIM_MUTATION] = {"mutation", "NAME", "plant a mistake, to be found", false, 0},
};

#if FAULT_INJECTION
#define MUTATIONS(names) "\nMutations: " names
#define MUTATION_EXAMPLE "  millrace sim --profile slow-maps --mutation sends-one-barrier\n"
#else
#define MUTATIONS(names) ""
#define MUTATION_EXAMPLE ""
#endif

static const struct command_spec sim_spec = {
    .name = "sim",
    .arguments = "[--seeds A..B]",
    .summary = SUMMARY_SIM,
    .about =
        "Each seed is a cluster of its own size, with clients that ask small questions while\n"
        "processes, disks, connections and the broker fail. The roles, messages and folds are\n"
        "those of a real cluster. Every answer must be exact, every client must end, nothing\n"
        "may be left behind. The same seed is the same run.\n\n"
        "Profiles: mixed (all kinds of faults); calm, slow-maps, full-queues (none, and no chunk\n"
        "may be sent twice); worker-death, gateway-death, broker-death, pause, lost-disk (one\n"
        "kind, with a budget of chunks sent again)." //
    MUTATIONS("applies-twice, counts-wrong, forgets-end, ignores-sent, uses-half-copy,\n"
              "holds-chunk, has-no-lease, never-doubles, sends-one-barrier.") //
    "\n\n"
    "With --monitors, each seed is some monitors and nodes that crash, hang, pause and\n"
    "lose each other, with clocks of their own, drivers that fail, and recorded and forged\n"
    "datagrams. There are never two leaders, no node obeys an order that is not for it, no\n"
    "healthy node is restarted, and soon after the last fault all nodes are back." //
    MUTATIONS("no-lease, votes-at-once, no-term, obeys-any, orders-any."),
    .examples = "  millrace sim --seeds 1..2000\n"
                "  millrace sim --seeds 17 --trace\n" MUTATION_EXAMPLE
                "  millrace sim --monitors --seeds 1..2000\n",
    .options = sim_options_given,
    .option_count = FAULT_INJECTION ? SIM_OPTIONS : SIM_MUTATION,
};

struct totals {
    const struct sim_farm_options *farm;
    struct scenarios *scenarios;
    bool simulates_monitors;
    enum sim_profile profile;
    uint32_t mutation; /* enum worker_mutation or enum monitors_mutation; 0: none. */
    struct progress progress;
    bool stops; /* At the first failure. */
    uint64_t seed_count;
    uint64_t ran_count;
    uint64_t failed_count;
    struct sim_report sum;
};

static status read_seeds(const char *value, uint64_t *out_first, uint64_t *out_last,
                         struct error *err)
{
    const char *dots = value != NULL ? strstr(value, "..") : NULL;
    struct option_range any = {0, INT64_MAX};
    *out_first = 1;
    *out_last = SEEDS_DEFAULT;
    if (value == NULL) return STATUS_OK;
    char first[32];
    size_t size = dots != NULL ? (size_t)(dots - value) : strlen(value);
    if (size >= sizeof first) size = sizeof first - 1;
    memcpy(first, value, size);
    first[size] = '\0';
    TRY(option_count("seeds", first, any, out_first, err));
    *out_last = *out_first;
    if (dots != NULL) TRY(option_count("seeds", dots + 2, any, out_last, err));
    if (*out_last >= *out_first) return STATUS_OK;
    return error_set(err, STATUS_USAGE, "--seeds: `%.100s` ends before it begins", value);
}

/* Of the mistakes that can be planted; NULL: none can. */
static const char *const *mutation_names(const struct totals *totals)
{
#if FAULT_INJECTION
    return totals->simulates_monitors ? monitors_mutation_names : sim_mutation_names;
#else
    (void)totals; /* Both worlds are alike. */
    return NULL;
#endif
}

static status read_mutation(const char *name, struct totals *totals, struct error *err)
{
    uint32_t count = totals->simulates_monitors ? MONITORS_SIM_MUTATIONS : SIM_MUTATIONS;
    if (name == NULL) return STATUS_OK;
    return option_choice("mutation", name, mutation_names(totals), count, &totals->mutation, err);
}

static status read_options(const struct options *options, struct sim_farm_options *farm,
                           struct totals *totals, struct error *err)
{
    const char *profile = options_value(options, SIM_PROFILE);
    const char *processes = options_value(options, SIM_PROCESSES);
    struct option_range range = {1, SIM_FARM_PROCESSES_MAX};
    uint32_t choice = 0;
    TRY(read_seeds(options_value(options, SIM_SEEDS), &farm->first_seed, &farm->last_seed, err));
    if (profile != NULL) {
        if (totals->simulates_monitors) {
            return error_set(err, STATUS_USAGE, "--profile: there are none with --monitors");
        }
        TRY(option_choice("profile", profile, sim_profile_names, SIM_PROFILES, &choice, err));
        totals->profile = (enum sim_profile)choice;
    }
    TRY(read_mutation(options_value(options, SIM_MUTATION), totals, err));
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t count = cores < 1 ? 1 : (uint64_t)cores;
    if (processes != NULL) TRY(option_count("processes", processes, range, &count, err));
    farm->process_count = (uint32_t)(count < range.high ? count : range.high);
    farm->cancelled = interrupt_flag();
    return STATUS_OK;
}

static void say_failure(const struct totals *totals, uint64_t seed, const struct sim_report *report)
{
    struct buf text = {0};
    buf_format(&text, "seed %" PRIu64 ": %s\n  millrace sim%s --seeds %" PRIu64, seed,
               report->reason, totals->simulates_monitors ? " --monitors" : "", seed);
    if (totals->profile != SIM_MIXED) {
        buf_format(&text, " --profile %s", sim_profile_names[totals->profile]);
    }
    if (totals->mutation != 0) {
        buf_format(&text, " --mutation %s", mutation_names(totals)[totals->mutation]);
    }
    buf_put_string(&text, " --trace\n");
    int code = command_print(&text);
    (void)code; /* A closed stdout does not change the result. */
    buf_done(&text);
}

static bool on_ran(void *context, uint64_t seed, const struct sim_report *report)
{
    struct totals *totals = context;
    totals->ran_count++;
    totals->sum.job_count += report->job_count;
    totals->sum.chunk_count += report->chunk_count;
    totals->sum.resent_count += report->resent_count;
    totals->sum.crash_count += report->crash_count;
    totals->sum.message_count += report->message_count;
    totals->sum.restart_count += report->restart_count;
    if (report->settle_ms > totals->sum.settle_ms) totals->sum.settle_ms = report->settle_ms;
    totals->sum.simulated_ms += report->simulated_ms;
    if (!report->ok && totals->failed_count++ < FAILURES_SHOWN) {
        progress_clear(&totals->progress);
        say_failure(totals, seed, report);
    }
    progress_show(&totals->progress, (double)totals->ran_count / (double)totals->seed_count,
                  "%" PRIu64 " of %" PRIu64 " seeds, %" PRIu64 " failed", totals->ran_count,
                  totals->seed_count, totals->failed_count);
    return report->ok || !totals->stops;
}

static void put_part(uint64_t count, const char *what, struct buf *out)
{
    print_count(count, out);
    buf_put_string(out, what);
}

static void say_summary(const struct totals *totals, double seconds)
{
    struct buf text = {0};
    put_part(totals->ran_count, totals->ran_count == 1 ? " seed, " : " seeds, ", &text);
    if (totals->simulates_monitors) {
        put_part(totals->sum.message_count, " datagrams, ", &text);
        put_part(totals->sum.crash_count, " crashes, ", &text);
        put_part(totals->sum.restart_count, " starts; all was well at most ", &text);
        terminal_put_seconds((double)totals->sum.settle_ms / 1000, &text);
        buf_put_string(&text, " after the last fault; ");
    } else {
        put_part(totals->sum.job_count, " jobs, ", &text);
        put_part(totals->sum.chunk_count, " chunks, of which ", &text);
        put_part(totals->sum.resent_count, " were sent again, ", &text);
        put_part(totals->sum.crash_count, " crashes; ", &text);
    }
    terminal_put_seconds((double)totals->sum.simulated_ms / 1000, &text);
    buf_put_string(&text, " simulated in ");
    terminal_put_seconds(seconds, &text);
    terminal_say("%.*s\n", (int)text.size, (const char *)text.bytes);
    buf_done(&text);
}

static status run_monitors(void *context, uint64_t seed, int trace_fd, struct sim_report *out,
                           struct error *err)
{
    const struct totals *totals = context;
    struct monitors_options options = {
        .seed = seed, .mutation = (enum monitors_mutation)totals->mutation, .trace_fd = trace_fd};
    return monitors_run_seed(&options, out, err);
}

static status run_jobs(void *context, uint64_t seed, int trace_fd, struct sim_report *out,
                       struct error *err)
{
    const struct totals *totals = context;
    struct sim_options options = {.seed = seed,
                                  .mutation = (enum worker_mutation)totals->mutation,
                                  .profile = totals->profile,
                                  .trace_fd = trace_fd};
    return sim_run_seed(totals->scenarios, &options, out, err);
}

/* In this process, one seed after the other, with their traces on stdout. */
static status run_traced(struct totals *totals, struct error *err)
{
    const struct sim_farm_options *farm = totals->farm;
    for (uint64_t seed = farm->first_seed; seed <= farm->last_seed; seed++) {
        struct sim_report report;
        TRY(farm->run(totals, seed, STDOUT_FILENO, &report, err));
        if (!on_ran(totals, seed, &report)) return STATUS_OK;
        if (atomic_load(farm->cancelled)) return error_set(err, STATUS_CANCELLED, "interrupted");
    }
    return STATUS_OK;
}

static status simulate(const struct options *options, struct arena *arena, struct error *err)
{
    (void)arena; /* Nothing is kept. */
    struct sim_farm_options farm = {0};
    struct totals totals = {.farm = &farm,
                            .simulates_monitors = options_value(options, SIM_MONITORS) != NULL,
                            .stops = options_value(options, SIM_STOP) != NULL};
    bool quiet = options_value(options, SIM_QUIET) != NULL;
    bool traced = options_value(options, SIM_TRACE) != NULL;
    TRY(read_options(options, &farm, &totals, err));
    farm.context = &totals;
    farm.ran = on_ran;
    totals.seed_count = farm.last_seed - farm.first_seed + 1;
    farm.run = totals.simulates_monitors ? run_monitors : run_jobs;
    if (!totals.simulates_monitors) TRY(scenarios_create(&totals.scenarios, err));
    if (!quiet && !traced) progress_start(&totals.progress, "simulating");
    double start = clock_seconds();
    status result = traced ? run_traced(&totals, err) : sim_farm_run(&farm, err);
    progress_clear(&totals.progress);
    scenarios_destroy(totals.scenarios);
    if (!quiet) say_summary(&totals, clock_seconds() - start);
    if (result == STATUS_OK && totals.failed_count > 0) {
        return error_set(err, STATUS_INTERNAL, "%" PRIu64 " of %" PRIu64 " seeds failed",
                         totals.failed_count, totals.ran_count);
    }
    return result;
}

static int sim_main(int argc, char *const *argv)
{
    return command_simple(&sim_spec, simulate, argc, argv);
}

const struct command command_sim = {.spec = &sim_spec, .run = sim_main};
