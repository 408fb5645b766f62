/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_stop.c - `millrace stop`: stops nodes, so that no monitor restarts them.
 *
 * With monitors, their leader stops a node, since it must not treat it as dead. Without, only `up`
 * restarts nodes, and the process on this host gets SIGTERM. So does a monitor without a majority:
 * it has no leader, and no other monitor would restart it.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "cli/cluster_commands.h"
#include "cli/cluster/chaos.h"
#include "cli/cluster/cluster_file.h"
#include "cli/cluster/cluster_program.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "engine/file/clock.h"
#include "cluster/store/folder_lock.h"
#include "cluster/supervise/spawn.h"
#include "cluster/config/cluster_nodes.h"
#include "cluster/supervise/driver.h"
#include "cluster/supervise/operator.h"

enum { STOP_CONFIG, STOP_OPTIONS };
enum {
    DEADLINE_MS = 30000,
    LEADER_MS = 5000, /* How long to wait for a leader before a monitor of this host is stopped. */
    STEP_MS = 50,
    VIEW_MS = 2000,
    UNHEARD_VIEWS = 2, /* In a row: no monitor is left. */
    SILENT_HEARTBEATS = 3
};

static const struct option_spec stop_options[STOP_OPTIONS] = {
    [STOP_CONFIG] = CLUSTER_FILE_OPTION_SPEC,
};

static const struct command_spec stop_spec = {
    .name = "stop",
    .arguments = "-c FILE NODE...",
    .summary = SUMMARY_STOP,
    .about =
        "NODE is a name, or a pattern such as 'w*'. A node finishes what it has in flight. Jobs\n"
        "that need it wait until it is back, at most node_timeout. The monitors don't start it\n"
        "again; start it by hand. Without monitors only nodes on this host can be stopped. Exit\n"
        "code: 1 it did not stop in time, 3 no monitor answers.",
    .examples = "  millrace stop -c cluster.ini w2\n"
                "  millrace worker -c cluster.ini -n w2     # restarts it\n",
    .options = stop_options,
    .option_count = STOP_OPTIONS,
    .argument_min = 1,
    .argument_max = OPTIONS_ARGUMENT_MAX,
};

struct stop {
    struct cluster_config config;
    struct cluster_nodes nodes;
    struct operator_link *link;
    struct driver *driver;
    bool is_kept_up; /* `up` runs on this host and restarts nodes. */
};

static void say_how_to_start(const struct stop *stop, const struct cluster_node *node)
{
    const struct cluster_config *config = &stop->config;
    if (config->monitor_count > 0 && config->driver == CONFIG_DRIVER_DOCKER) {
        terminal_say("restart it with: docker start %s-%s\n", config->name, node->name);
    } else if (config->monitor_count > 0 && config->driver == CONFIG_DRIVER_COMMAND) {
        terminal_say("restart it with the cluster file's start_command\n");
    } else if (node->role == NODE_BROKER) {
        terminal_say("restart it with: millrace broker -c %s &\n", config->path);
    } else {
        terminal_say("restart it with: millrace %s -c %s -n %s &\n", node_role_names[node->role],
                     config->path, node->name);
    }
}

/* ---- without monitors ---- */

static status wait_for_end(const char *name, const char *folder, struct error *err)
{
    pid_t holder = 0;
    uint64_t begin_ms = clock_ms();
    while (folder_lock_look(folder, &holder) != FOLDER_FREE) {
        if (atomic_load(interrupt_flag())) return error_set(err, STATUS_CANCELLED, "interrupted");
        if (clock_ms() - begin_ms >= DEADLINE_MS) {
            return error_set(err, STATUS_IO, "%s was told to stop, and still runs as process %ld",
                             name, (long)holder);
        }
        (void)poll(NULL, 0, STEP_MS); /* A signal ends it earlier. */
    }
    return STATUS_OK;
}

static status stop_here(struct stop *stop, const struct cluster_node *node, struct arena *arena,
                        struct error *err)
{
    const char *folder = cluster_node_folder(&stop->config, node->name, arena);
    pid_t holder;
    if (folder == NULL) return error_memory(err);
    if (folder_lock_look(folder, &holder) == FOLDER_FREE) {
        return error_set(err, STATUS_IO, "%s does not run on this host", node->name);
    }
    TRY(driver_do(stop->driver, DRIVER_STOP, node->name, err));
    if (stop->is_kept_up) {
        terminal_say("%s was told to stop; `millrace up` will restart it: only in a cluster with "
                     "[monitors] does a node stay stopped\n",
                     node->name);
        return STATUS_OK;
    }
    TRY(wait_for_end(node->name, folder, err));
    terminal_say("%s has stopped\n", node->name);
    say_how_to_start(stop, node);
    return STATUS_OK;
}

/* ---- with monitors ---- */

/* The leader has told the node to stop; the node finishes its work in flight, and sends heartbeats
 * until it ends. When the last monitor has stopped, no view comes: that is silence too. */
static status wait_for_silence(struct stop *stop, const struct cluster_node *target,
                               struct error *err)
{
    const char *name = target->name;
    uint32_t unheard = 0;
    uint64_t begin_ms = clock_ms();
    uint64_t silent_ms = (uint64_t)stop->config.heartbeat_period_ms * SILENT_HEARTBEATS;
    while (clock_ms() - begin_ms < DEADLINE_MS && !atomic_load(interrupt_flag())) {
        struct arena arena = {0};
        struct cluster_view view;
        struct error ignored; /* The leader may be the node that stops. */
        bool is_silent = false;
        if (operator_view(stop->link, VIEW_MS, &arena, &view, &ignored) != STATUS_OK) {
            is_silent = target->role == NODE_MONITOR && ++unheard == UNHEARD_VIEWS;
        } else {
            unheard = 0;
            for (uint32_t i = 0; i < view.node_count; i++) {
                const struct monitored *node = &view.nodes[i];
                bool is_it = strcmp(node->name, name) == 0 && node->state == HEALTH_STOPPED;
                if (is_it) is_silent = node->incarnation == 0 || node->silent_ms >= silent_ms;
            }
        }
        arena_done(&arena);
        if (is_silent) return STATUS_OK;
        (void)poll(NULL, 0, STEP_MS); /* A signal ends it earlier. */
    }
    return error_set(err, STATUS_IO, "%s was told to stop, and still runs; see its log", name);
}

/* On a signal the node reports its stop to the monitors, as on an order. */
static status stop_unled(const struct cluster_node *node, const char *folder, struct error *err)
{
    enum folder_state state;
    TRY(folder_lock_signal(folder, SIGTERM, &state, err));
    TRY(wait_for_end(node->name, folder, err));
    terminal_say("%s has stopped; the monitors have no leader\n", node->name);
    return STATUS_OK;
}

static status stop_monitored(struct stop *stop, const struct cluster_node *node,
                             struct arena *arena, struct error *err)
{
    struct ask ask = {.kind = ASK_STOP};
    struct text name = text_of(node->name);
    const char *folder = cluster_node_folder(&stop->config, node->name, arena);
    pid_t holder;
    if (folder == NULL) return error_memory(err);
    bool is_ours = node->role == NODE_MONITOR && folder_lock_holder(folder, &holder);
    memcpy(ask.node, name.bytes, name.size);
    status result = operator_ask(stop->link, &ask, is_ours ? LEADER_MS : DEADLINE_MS, err);
    if (result == STATUS_UNREACHABLE && is_ours) {
        TRY(stop_unled(node, folder, err));
        say_how_to_start(stop, node);
        return STATUS_OK;
    }
    if (result != STATUS_OK) return error_prefix(err, "%s", node->name);
    TRY(wait_for_silence(stop, node, err));
    terminal_say("%s has stopped; the monitors will not restart it\n", node->name);
    say_how_to_start(stop, node);
    return STATUS_OK;
}

static status stop_all(struct stop *stop, const struct options *options, struct arena *arena,
                       struct error *err)
{
    for (uint32_t i = 0; i < stop->nodes.count; i++) {
        const struct cluster_node *node = &stop->nodes.items[i];
        bool is_named = false;
        for (uint32_t j = 0; j < options->argument_count && !is_named; j++) {
            is_named = chaos_is_named(options->arguments[j], node->name);
        }
        if (!is_named) continue;
        if (stop->link != NULL) {
            TRY(stop_monitored(stop, node, arena, err));
        } else {
            TRY(stop_here(stop, node, arena, err));
        }
    }
    return STATUS_OK;
}

static status run(const struct options *options, struct arena *arena, struct error *err)
{
    struct stop stop = {0};
    pid_t holder;
    TRY(cluster_file_read("stop", options_value(options, STOP_CONFIG), arena, &stop.config, err));
    TRY(cluster_nodes_list(&stop.config, arena, &stop.nodes, err));
    for (uint32_t i = 0; i < options->argument_count; i++) {
        TRY(chaos_check_names(&stop.nodes, options->arguments[i], arena, err));
    }
    if (stop.config.monitor_count > 0) {
        TRY(operator_open(&stop.config, &stop.link, err));
    } else {
        char program[4096];
        TRY(spawn_self(program, sizeof program, err));
        struct driver_options driver = {.config = &stop.config, .program = program};
        TRY(driver_open(&driver, &stop.driver, err));
        stop.is_kept_up = folder_lock_holder(stop.config.data_dir, &holder);
    }
    status result = stop_all(&stop, options, arena, err);
    operator_close(stop.link);
    driver_close(stop.driver);
    return result;
}

static int stop_main(int argc, char *const *argv)
{
    return command_simple(&stop_spec, run, argc, argv);
}

const struct command command_stop = {.spec = &stop_spec, .run = stop_main};
