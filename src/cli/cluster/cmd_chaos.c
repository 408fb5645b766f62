/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_chaos.c - `millrace chaos`: kills nodes on purpose, and measures their recovery.
 *
 * One loop: draws victims periodically, kills or pauses them with the cluster's driver, and asks
 * the monitors until each has a new incarnation. With --verify a child submits a job meanwhile and
 * compares its answer with one that is computed here.
 *
 * It reports a kill to the monitors beforehand, for the timeline of jobs; they don't act on it. It
 * resumes all paused nodes before it ends, also after a failure or a signal.
 */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cluster_commands.h"
#include "cli/cluster/chaos.h"
#include "cli/cluster/cluster_file.h"
#include "cli/cluster/cluster_program.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "engine/file/clock.h"
#include "cluster/supervise/spawn.h"
#include "cluster/supervise/driver.h"
#include "cluster/node/exposure.h"
#include "cluster/config/gateway_url.h"
#include "cluster/supervise/operator.h"

enum {
    CHAOS_CONFIG,
    CHAOS_KILL,
    CHAOS_COUNT,
    CHAOS_ALL,
    CHAOS_EXCEPT,
    CHAOS_EVERY,
    CHAOS_FOR,
    CHAOS_SEED,
    CHAOS_STOP,
    CHAOS_STOP_FOR,
    CHAOS_VERIFY,
    CHAOS_OPTIONS
};

enum {
    VIEW_MS = 1500,
    KILLED_MS = 300,
    STEP_MS = 100,
    BACK_MS = 120000, /* A node that is not back by then counts as lost. */
    FIRST_VIEW_MS = 20000,
    VERIFY_EVERY_MS = 2000,
    FIRST_MS = 500,      /* Time for the job to begin. */
    KILLS_MAX = 1 << 14, /* For the statistics of recovery times. */
    CHILD_STOP_MS = 10000
};

static const struct option_spec chaos_options[CHAOS_OPTIONS] = {
    [CHAOS_CONFIG] = CLUSTER_FILE_OPTION_SPEC,
    [CHAOS_KILL] = {"kill", "NAMES", "these nodes, separated by commas; patterns such as 'w*' too",
                    false, 0},
    [CHAOS_COUNT] = {"count", "N", "so many at a time, drawn from those above or from all", false,
                     0},
    [CHAOS_ALL] = {"all", NULL, "all nodes at once, but the broker and one monitor", false, 0},
    [CHAOS_EXCEPT] = {"except", "NAMES", "never these", false, 0},
    [CHAOS_EVERY] = {"every", "S", "again every so many seconds, until Ctrl-C", false, 0},
    [CHAOS_FOR] = {"for", "S", "for so many seconds", false, 0},
    [CHAOS_SEED] = {"seed", "X", "the same seed draws the same nodes; default: a new one", false,
                    0},
    [CHAOS_STOP] = {"stop", NULL, "stop them as SIGSTOP does, instead of killing", false, 0},
    [CHAOS_STOP_FOR] = {"stop-for", "S",
                        "and let them continue after so many seconds; default: "
                        "longer than the monitors' failure_timeout",
                        false, 0},
    [CHAOS_VERIFY] = {"verify", NULL, "meanwhile answer ANALYSIS over DATA_DIR, and compare", false,
                      0},
};

static const struct command_spec chaos_spec = {
    .name = "chaos",
    .arguments = "-c FILE --kill NAMES|--count N|--all [--verify ANALYSIS DATA_DIR]",
    .summary = SUMMARY_CHAOS,
    .about =
        "Kills as kill -9 does, through the driver that the cluster file names, and reports when\n"
        "the monitors have restarted each node. The broker and the last living monitor are only\n"
        "killed when --kill names them. With --verify a job runs meanwhile (one kill every 2\n"
        "seconds by default), and its answer must be that of `run`; the timeline is in\n"
        "`millrace jobs ID`. Exit code: 0 all nodes are back and the answer is right; 1 not, or a\n"
        "named node was never killed; 3 no monitor answers.",
    .examples = "  millrace chaos -c cluster.ini --kill w2\n"
                "  millrace chaos -c cluster.ini --count 2 --except 'g*' --every 5 --for 60\n"
                "  millrace chaos -c cluster.ini --all\n"
                "  millrace chaos -c cluster.ini --count 1 --seed 7 --verify movies data/movies\n",
    .options = chaos_options,
    .option_count = CHAOS_OPTIONS,
    .argument_max = 2,
};

/* A node, and its disturbances. */
struct victim {
    uint32_t kills;
    bool is_named;   /* --kill has its name, not a pattern. */
    bool was_spared; /* It was drawn, and not disturbed. */
    bool is_awaited; /* Disturbed, and not back yet. */
    struct chaos_death death;
    uint64_t at_ms; /* When it was disturbed. */
    bool is_paused;
    uint64_t resume_ms;
    struct monitored seen; /* In the monitors' last view; incarnation 0: never. */
};

struct chaos_run {
    struct cluster_config config;
    struct cluster_nodes nodes;
    struct chaos_pool pool;
    struct victim *victims; /* By node. */
    uint32_t *chosen;       /* Those of this round. */
    struct random random;
    struct driver *driver;
    struct operator_link *link;
    uint64_t asked_ms; /* When the last view was requested. */
    bool pauses;
    uint64_t pause_ms;
    uint64_t every_ms; /* 0: once. */
    uint64_t for_ms;   /* 0: without end. */
    uint64_t begin_ms;
    uint64_t next_ms; /* When to disturb again. */
    uint32_t rounds;
    uint64_t *times_ms; /* How long each took to come back. */
    uint32_t time_count;
    uint32_t failures; /* Of the driver. */
    bool verifies;
    struct spawn child;
    bool is_equal;
};

/* ---- output ---- */

static void say(const char *format, ...) PRINTF_LIKE(1, 2);
static void say(const char *format, ...)
{
    char line[512];
    char stamped[600];
    int64_t wall_ms = clock_wall_ms();
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm parts = {0};
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments); /* Cut at the limit. */
    va_end(arguments);
    (void)localtime_r(&seconds, &parts);
    int size = snprintf(stamped, sizeof stamped, "%02d:%02d:%02d.%d %s\n", parts.tm_hour,
                        parts.tm_min, parts.tm_sec, (int)(wall_ms % 1000 / 100), line);
    struct buf out = {0};
    if (size > 0) buf_put(&out, stamped, strlen(stamped));
    (void)command_print(&out); /* A reader that is gone does not change what happens. */
    buf_done(&out);
}

/* ---- options ---- */

static status read_seconds(const struct options *options, uint32_t option, uint64_t *out_ms,
                           struct error *err)
{
    const char *value = options_value(options, option);
    double seconds;
    if (value == NULL) return STATUS_OK;
    TRY(option_positive(chaos_options[option].name, value, &seconds, err));
    if (seconds > 1e6) {
        return error_set(err, STATUS_USAGE, "--%s: at most 1000000 seconds",
                         chaos_options[option].name);
    }
    *out_ms = (uint64_t)(seconds * 1000) + 1;
    return STATUS_OK;
}

static status read_wish(const struct options *options, struct chaos_wish *out, struct error *err)
{
    const char *count = options_value(options, CHAOS_COUNT);
    bool is_all = options_value(options, CHAOS_ALL) != NULL;
    uint64_t number = 0;
    *out = (struct chaos_wish){.kill = options_value(options, CHAOS_KILL),
                               .except = options_value(options, CHAOS_EXCEPT)};
    if (count != NULL) {
        TRY(option_count("count", count, (struct option_range){1, 1000}, &number, err));
    }
    out->count = (uint32_t)number;
    if (is_all && (count != NULL || out->kill != NULL)) {
        return error_set(err, STATUS_USAGE, "--all goes with neither --kill nor --count");
    }
    if (is_all || count != NULL || out->kill != NULL) return STATUS_OK;
    if (options_value(options, CHAOS_VERIFY) == NULL) {
        return error_set(err, STATUS_USAGE, "chaos needs --kill NAMES, --count N or --all");
    }
    out->count = 1;
    return STATUS_OK;
}

static status read_options(struct chaos_run *chaos, const struct options *options,
                           struct arena *arena, struct error *err)
{
    struct chaos_wish wish;
    const char *seed = options_value(options, CHAOS_SEED);
    chaos->verifies = options_value(options, CHAOS_VERIFY) != NULL;
    if (options->argument_count != (chaos->verifies ? 2u : 0u)) {
        return error_set(err, STATUS_USAGE, "%s",
                         chaos->verifies ? "--verify needs an analysis and a folder with its data"
                                         : "an analysis and its data are for --verify");
    }
    chaos->every_ms = chaos->verifies ? VERIFY_EVERY_MS : 0;
    chaos->pauses = options_value(options, CHAOS_STOP) != NULL;
    chaos->pause_ms = (uint64_t)chaos->config.failure_timeout_ms * 2 + 1000;
    TRY(read_wish(options, &wish, err));
    TRY(read_seconds(options, CHAOS_EVERY, &chaos->every_ms, err));
    TRY(read_seconds(options, CHAOS_FOR, &chaos->for_ms, err));
    TRY(read_seconds(options, CHAOS_STOP_FOR, &chaos->pause_ms, err));
    uint64_t number = (uint64_t)clock_wall_ms() % 1000000;
    if (seed != NULL) {
        TRY(option_count("seed", seed, (struct option_range){0, UINT32_MAX}, &number, err));
    }
    chaos->random = (struct random){number};
    TRY(chaos_pool_make(&chaos->nodes, &wish, arena, &chaos->pool, err));
    if (wish.count != 0) say("seed %llu", (unsigned long long)number);
    return STATUS_OK;
}

static status check_cluster(const struct cluster_config *config, struct error *err)
{
    if (config->monitor_count > 0) return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "%s has no [monitors] to restart killed nodes; add some, such as m1 = "
                     "127.0.0.1:7201",
                     config->path);
}

/* ---- state of the nodes ---- */

static void take_view(struct chaos_run *chaos, const struct cluster_view *view)
{
    for (uint32_t i = 0; i < chaos->nodes.count; i++) {
        for (uint32_t j = 0; j < view->node_count; j++) {
            if (strcmp(chaos->nodes.items[i].name, view->nodes[j].name) != 0) continue;
            chaos->victims[i].seen = view->nodes[j];
        }
    }
}

static status look(struct chaos_run *chaos, uint32_t timeout_ms, struct error *err)
{
    struct arena arena = {0};
    struct cluster_view view;
    uint64_t now_ms = clock_ms();
    status result = operator_view(chaos->link, timeout_ms, &arena, &view, err);
    if (result == STATUS_OK) {
        take_view(chaos, &view);
        chaos->asked_ms = now_ms;
    }
    arena_done(&arena);
    return result;
}

/* A paused node that was resumed before the failure timeout keeps its incarnation. */
static bool is_back(const struct chaos_run *chaos, const struct victim *victim)
{
    const struct monitored *seen = &victim->seen;
    if (seen->state != HEALTH_UP || victim->is_paused) return false;
    if (chaos_is_reborn(victim->death, seen, chaos->asked_ms)) return true;
    return seen->incarnation == victim->death.incarnation && victim->resume_ms != 0 &&
           clock_ms() - victim->resume_ms > 1000 && seen->silent_ms < 1000;
}

static void greet(struct chaos_run *chaos)
{
    for (uint32_t i = 0; i < chaos->nodes.count; i++) {
        struct victim *victim = &chaos->victims[i];
        if (!victim->is_awaited || !is_back(chaos, victim)) continue;
        uint64_t took_ms = clock_ms() - victim->at_ms;
        victim->is_awaited = false;
        if (chaos->time_count < KILLS_MAX) chaos->times_ms[chaos->time_count++] = took_ms;
        say("%s is back after %.1f s", chaos->nodes.items[i].name, (double)took_ms / 1000);
    }
}

static uint32_t awaited(const struct chaos_run *chaos)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < chaos->nodes.count; i++) {
        count += chaos->victims[i].is_awaited;
    }
    return count;
}

/* ---- disturbing ---- */

static bool is_last_monitor(const struct chaos_run *chaos, uint32_t node)
{
    if (chaos->nodes.items[node].role != NODE_MONITOR) return false;
    for (uint32_t i = 0; i < chaos->nodes.count; i++) {
        const struct victim *other = &chaos->victims[i];
        bool incarnations = chaos->nodes.items[i].role == NODE_MONITOR && !other->is_awaited &&
                            other->seen.state == HEALTH_UP;
        if (incarnations && i != node) return false;
    }
    return true;
}

static void tell_monitors(struct chaos_run *chaos, const char *name)
{
    struct ask ask = {.kind = ASK_KILLED};
    struct error ignored; /* Only the timeline shows it. */
    (void)snprintf(ask.node, sizeof ask.node, "%s", name);
    (void)!operator_ask(chaos->link, &ask, KILLED_MS, &ignored);
}

/* Whether it may be disturbed now; if not, prints why. */
static bool is_fair_game(struct chaos_run *chaos, uint32_t index)
{
    struct victim *victim = &chaos->victims[index];
    bool is_last = !victim->is_named && is_last_monitor(chaos, index);
    const char *why = victim->is_awaited                     ? "not back yet"
                      : victim->seen.state == HEALTH_STOPPED ? "stopped on purpose"
                      : is_last                              ? "the last monitor that lives"
                                                             : NULL;
    if (why == NULL) return true;
    victim->was_spared = true;
    say("%s is %s: spared", chaos->nodes.items[index].name, why);
    return false;
}

static void disturb(struct chaos_run *chaos, uint32_t index)
{
    const struct cluster_node *node = &chaos->nodes.items[index];
    struct victim *victim = &chaos->victims[index];
    struct error err;
    enum driver_action action = chaos->pauses ? DRIVER_PAUSE : DRIVER_KILL;
    say("%s %s (%s)", chaos->pauses ? "stop" : "kill", node->name, node_role_names[node->role]);
    uint64_t now_ms = clock_ms();
    if (driver_do(chaos->driver, action, node->name, &err) != STATUS_OK) {
        say("%s: %s", node->name, err.text);
        chaos->failures++;
        victim->is_awaited = false;
        return;
    }
    victim->kills++;
    victim->death = (struct chaos_death){victim->seen.incarnation, clock_ms()};
    victim->at_ms = now_ms;
    victim->is_paused = chaos->pauses;
    victim->resume_ms = chaos->pauses ? now_ms + chaos->pause_ms : 0;
}

/* A monitor may have replaced the process meanwhile: then there is nothing to resume. */
static void resume(struct chaos_run *chaos, bool is_end)
{
    for (uint32_t i = 0; i < chaos->nodes.count; i++) {
        struct victim *victim = &chaos->victims[i];
        struct error ignored;
        if (!victim->is_paused || (!is_end && clock_ms() < victim->resume_ms)) continue;
        victim->is_paused = false;
        victim->resume_ms = clock_ms();
        (void)!driver_do(chaos->driver, DRIVER_RESUME, chaos->nodes.items[i].name, &ignored);
        say("%s is resumed", chaos->nodes.items[i].name);
    }
}

static bool is_to_disturb(struct chaos_run *chaos)
{
    uint64_t now_ms = clock_ms();
    if (chaos->rounds > 0 && chaos->every_ms == 0) return false;
    if (chaos->for_ms != 0 && now_ms - chaos->begin_ms >= chaos->for_ms) return false;
    return !(chaos->verifies && spawn_poll(&chaos->child)) && now_ms >= chaos->next_ms;
}

/* Reports all victims to the monitors before the first kill, since each report takes a while. */
static void disturb_some(struct chaos_run *chaos)
{
    struct chaos_pool *pool = &chaos->pool;
    uint32_t count = 0;
    chaos_draw(pool, &chaos->random);
    for (uint32_t i = 0; i < pool->at_a_time && !atomic_load(interrupt_flag()); i++) {
        uint32_t index = pool->nodes[i];
        if (!is_fair_game(chaos, index)) continue;
        chaos->victims[index].is_awaited = true;
        chaos->chosen[count++] = index;
        tell_monitors(chaos, chaos->nodes.items[index].name);
    }
    struct error ignored; /* Then the last view is used. */
    if (count > 0) (void)!look(chaos, VIEW_MS, &ignored);
    for (uint32_t i = 0; i < count; i++) {
        disturb(chaos, chaos->chosen[i]);
    }
    chaos->rounds++;
    chaos->next_ms = clock_ms() + chaos->every_ms;
}

/* ---- the job ---- */

static const char *gateways_text(const struct cluster_config *config, struct arena *arena)
{
    struct buf list = {0};
    for (uint32_t i = 0; i < config->gateway_count; i++) {
        const char *url =
            gateway_url(config, config->gateways[i].host, config->gateways[i].port, arena);
        buf_format(&list, "%s%s", i > 0 ? "," : "", url != NULL ? url : "");
    }
    struct text text = {(const char *)list.bytes, (uint32_t)list.size};
    const char *copy = list.failed ? NULL : arena_copy_string(arena, text);
    buf_done(&list);
    return copy;
}

/* The child gets the token in the environment, as clients do. */
static status start_job(struct chaos_run *chaos, const struct options *options, const char *program,
                        struct arena *arena, struct error *err)
{
    struct text token;
    const char *gateways = gateways_text(&chaos->config, arena);
    if (gateways == NULL) return error_memory(err);
    TRY(exposure_token(&chaos->config, arena, &token, err));
    const char *word = arena_copy_string(arena, token);
    if (word == NULL) return error_memory(err);
    if (token.size > 0 && setenv("MILLRACE_CLUSTER_TOKEN", word, 1) != 0) return error_memory(err);
    const char *const argv[] = {program,
                                "submit",
                                options->arguments[0],
                                options->arguments[1],
                                "-g",
                                gateways,
                                "--verify",
                                "--format",
                                "csv",
                                "--retry-for",
                                "120",
                                NULL};
    struct spawn_options child = {.argv = argv,
                                  .out = {.target = SPAWN_NULL},
                                  .err = {.target = SPAWN_INHERIT},
                                  .dies_with_us = true};
    return spawn_start(&chaos->child, child, err);
}

/* ---- the loop ---- */

static bool is_over(struct chaos_run *chaos)
{
    if (atomic_load(interrupt_flag())) return true;
    bool is_last = chaos->rounds > 0 && chaos->every_ms == 0;
    bool is_late = chaos->for_ms != 0 && clock_ms() - chaos->begin_ms >= chaos->for_ms;
    if (chaos->verifies) return spawn_poll(&chaos->child);
    return is_last || is_late;
}

static void watch_once(struct chaos_run *chaos)
{
    struct error ignored; /* The monitor that should answer may be the one that was killed. */
    driver_sweep(chaos->driver);
    resume(chaos, false);
    if (look(chaos, VIEW_MS, &ignored) == STATUS_OK) greet(chaos);
    (void)poll(NULL, 0, STEP_MS); /* A signal ends it earlier. */
}

static void await_all(struct chaos_run *chaos)
{
    uint64_t begin_ms = clock_ms();
    while (awaited(chaos) > 0 && !interrupt_by_signal() && clock_ms() - begin_ms < BACK_MS) {
        watch_once(chaos);
    }
    for (uint32_t i = 0; i < chaos->nodes.count; i++) {
        if (!chaos->victims[i].is_awaited) continue;
        const struct monitored *seen = &chaos->victims[i].seen;
        say("%s is not back: %s%s%s", chaos->nodes.items[i].name, health_names[seen->state],
            seen->problem[0] != '\0' ? ", " : "", seen->problem);
    }
}

static void put_verdict(struct chaos_run *chaos, struct buf *out)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < chaos->nodes.count; i++) {
        total += chaos->victims[i].kills;
    }
    buf_format(out, "%s: %u", chaos->pauses ? "stops" : "kills", total);
    const char *before = " (";
    for (uint32_t i = 0; i < chaos->nodes.count; i++) {
        if (chaos->victims[i].kills == 0) continue;
        buf_format(out, "%s%s %u", before, chaos->nodes.items[i].name, chaos->victims[i].kills);
        before = ", ";
    }
    buf_put_string(out, total > 0 ? ")\n" : "\n");
    if (chaos->time_count > 0) {
        struct chaos_times times = chaos_times_of(chaos->times_ms, chaos->time_count);
        buf_format(out, "back after: median %.1f s, 99 %% %.1f s, longest %.1f s\n",
                   (double)times.median_ms / 1000, (double)times.late_ms / 1000,
                   (double)times.longest_ms / 1000);
    }
    if (total == 0) buf_put_string(out, "no node was disturbed\n");
    if (awaited(chaos) > 0) buf_format(out, "not back: %u\n", awaited(chaos));
    if (chaos->verifies) {
        buf_format(out, "answers equal: %s\n", chaos->is_equal ? "yes" : "NO");
    }
}

static status conclude(struct chaos_run *chaos, struct error *err)
{
    struct buf verdict = {0};
    put_verdict(chaos, &verdict);
    status result = output_to_stdout(&verdict, NULL, err);
    buf_done(&verdict);
    TRY(result);
    if (interrupt_by_signal() && !chaos->verifies) return STATUS_OK;
    if (chaos->verifies && !chaos->is_equal) {
        char end[SPAWN_END_SIZE];
        spawn_end_tell(chaos->child.end, end);
        return error_set(err, STATUS_IO, "the job has no answer to verify: its client %s", end);
    }
    if (awaited(chaos) > 0) {
        return error_set(err, STATUS_IO, "not all nodes are back; see `millrace status`");
    }
    for (uint32_t i = 0; i < chaos->nodes.count; i++) {
        const struct victim *victim = &chaos->victims[i];
        if (!victim->is_named || !victim->was_spared || victim->kills > 0) continue;
        return error_set(err, STATUS_IO, "%s was named, and was not disturbed",
                         chaos->nodes.items[i].name);
    }
    if (chaos->failures > 0) {
        return error_set(err, STATUS_IO, "%u calls of the driver failed", chaos->failures);
    }
    return STATUS_OK;
}

static status disturb_all(struct chaos_run *chaos, struct error *err)
{
    TRY(look(chaos, FIRST_VIEW_MS, err));
    chaos->begin_ms = clock_ms();
    uint64_t first_ms = chaos->every_ms < FIRST_MS ? chaos->every_ms : FIRST_MS;
    chaos->next_ms = chaos->begin_ms + (chaos->verifies ? first_ms : 0);
    while (!is_over(chaos)) {
        if (is_to_disturb(chaos)) disturb_some(chaos);
        watch_once(chaos);
    }
    if (chaos->verifies && !spawn_poll(&chaos->child)) spawn_stop(&chaos->child, CHILD_STOP_MS);
    chaos->is_equal = chaos->verifies && chaos->child.ended && chaos->child.end.code == 0;
    if (interrupt_by_signal()) {
        resume(chaos, true);
    } else {
        await_all(chaos);
    }
    return conclude(chaos, err);
}

static status run(const struct options *options, struct arena *arena, struct error *err)
{
    struct chaos_run *chaos = arena_new(arena, struct chaos_run);
    char program[4096];
    const char *path = options_value(options, CHAOS_CONFIG);
    if (chaos == NULL) return error_memory(err);
    TRY(cluster_file_read("chaos", path, arena, &chaos->config, err));
    TRY(check_cluster(&chaos->config, err));
    TRY(cluster_nodes_list(&chaos->config, arena, &chaos->nodes, err));
    TRY(read_options(chaos, options, arena, err));
    chaos->victims = arena_array(arena, struct victim, chaos->nodes.count);
    chaos->chosen = arena_array(arena, uint32_t, chaos->nodes.count);
    chaos->times_ms = arena_array(arena, uint64_t, KILLS_MAX);
    if (chaos->victims == NULL || chaos->chosen == NULL || chaos->times_ms == NULL) {
        return error_memory(err);
    }
    for (uint32_t i = 0; i < chaos->nodes.count; i++) {
        chaos->victims[i].is_named =
            chaos_is_spelled(options_value(options, CHAOS_KILL), chaos->nodes.items[i].name);
    }
    TRY(spawn_self(program, sizeof program, err));
    struct driver_options driver = {.config = &chaos->config, .program = program};
    TRY(driver_open(&driver, &chaos->driver, err));
    status result = operator_open(&chaos->config, &chaos->link, err);
    if (result == STATUS_OK && chaos->verifies) {
        result = start_job(chaos, options, program, arena, err);
    }
    if (result == STATUS_OK) result = disturb_all(chaos, err);
    if (chaos->child.pid != 0 && !chaos->child.ended) spawn_stop(&chaos->child, CHILD_STOP_MS);
    spawn_close(&chaos->child);
    resume(chaos, true);
    operator_close(chaos->link);
    driver_close(chaos->driver);
    return result;
}

static int chaos_main(int argc, char *const *argv)
{
    return command_simple(&chaos_spec, run, argc, argv);
}

const struct command command_chaos = {.spec = &chaos_spec, .run = chaos_main};
