/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_node.c - `millrace gateway`, `worker`, `monitor`, `broker`, and `node` for any of them: one
 * node of a cluster, in this process.
 *
 * node/ has its folder, log and work; here are the checks of names, and the line that says that the
 * node is ready, which `millrace up` waits for too.
 */
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>

#include "cli/analysis.h"
#include "cli/cluster_commands.h"
#include "cli/cluster/cluster_file.h"
#include "cli/cluster/cluster_program.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "engine/file/file.h"
#include "cluster/store/folder_lock.h"
#include "cluster/node/service_notify.h"
#include "cluster/config/cluster_nodes.h"
#include "cluster/supervise/monitor_node.h"
#include "cluster/node/worker_node.h"

enum {
    OPTION_CONFIG,
    OPTION_NAME,
    OPTION_LOG_LEVEL,
    OPTION_EXIT_WITH_SUPERVISOR,
    OPTION_BROKER,
    OPTIONS
};

/* Monitors and brokers use no broker: they take all but the last. */
static const struct option_spec node_options_given[OPTIONS] = {
    [OPTION_CONFIG] = CLUSTER_FILE_OPTION_SPEC,
    [OPTION_NAME] = {"name", "NAME", "the name of the node in the file", false, 'n'},
    [OPTION_LOG_LEVEL] = LOG_LEVEL_OPTION_SPEC,
    [OPTION_EXIT_WITH_SUPERVISOR] = {"exit-with-supervisor", "DIR",
                                     "end when no process holds DIR/lock any more, as `up` does",
                                     false, 0},
    [OPTION_BROKER] = {"broker", "URI", "amqp://user:password@host:port, instead of the file's",
                       false, 0},
};

#define NODE_ABOUT                                                                                 \
    "Runs until SIGTERM or Ctrl-C: then it finishes what is in flight and exits with code 0; a\n"  \
    "second signal ends it at once. It may be killed at any time. The file is described in\n"      \
    "docs/reference/cluster-file.md. The node keeps its files in data_dir/NAME, among them log\n"  \
    "and pid."

static const struct command_spec gateway_spec = {
    .name = "gateway",
    .arguments = "-c FILE -n NAME",
    .summary = SUMMARY_GATEWAY,
    .about = NODE_ABOUT,
    .examples = "  millrace gateway -c cluster.ini -n g1\n",
    .options = node_options_given,
    .option_count = OPTIONS,
};

static const struct command_spec worker_spec = {
    .name = "worker",
    .arguments = "-c FILE -n NAME",
    .summary = SUMMARY_WORKER,
    .about = NODE_ABOUT,
    .examples = "  millrace worker -c cluster.ini -n w2\n",
    .options = node_options_given,
    .option_count = OPTIONS,
};

static const struct command_spec monitor_spec = {
    .name = "monitor",
    .arguments = "-c FILE -n NAME",
    .summary = SUMMARY_MONITOR,
    .about =
        "Receives heartbeats from every node of the cluster. The monitors elect a leader among\n"
        "themselves; it restarts dead and hung nodes through the driver that the file "
        "names.\n\n" NODE_ABOUT,
    .examples = "  millrace monitor -c cluster.ini -n m1\n",
    .options = node_options_given,
    .option_count = OPTION_BROKER,
};

static const struct command_spec broker_spec = {
    .name = "broker",
    .arguments = "-c FILE",
    .summary = SUMMARY_BROKER,
    .about =
        "Starts RabbitMQ in data_dir/broker, with `broker = start` in the file, and ends when\n"
        "it does. Other nodes find it by data_dir/broker/uri. The node keeps its own files in\n"
        "data_dir/broker/supervisor.",
    .examples = "  millrace broker -c cluster.ini\n",
    .options = node_options_given,
    .option_count = OPTION_BROKER,
};

static const struct command_spec node_spec = {
    .name = "node",
    .arguments = "-c FILE -n NAME",
    .summary = SUMMARY_NODE,
    .about =
        "The file says whether NAME is a gateway, a worker or a monitor: one command line for\n"
        "all, for supervisors such as systemd. NAME may be `broker`, with `broker = "
        "start`.\n\n" NODE_ABOUT,
    .examples = "  millrace node -c cluster.ini -n w2\n",
    .options = node_options_given,
    .option_count = OPTIONS,
};

/* The node's predecessor may be just about to end. */
enum { FOLDER_WAIT_MS = 1000, FOLDER_STEP_MS = 50 };

struct node_command {
    enum node_role role; /* NODE_ROLES: not known yet. */
    struct arena arena;
    struct options options;
    struct cluster_config config;
    struct cluster_nodes nodes;
    struct node_options node_options;
};

/* --- Which node. --- */

static status fail_unknown(struct node_command *node, const char *name, struct error *err)
{
    const char **names = arena_array(&node->arena, const char *, node->nodes.count);
    bool is_any = node->role == NODE_ROLES;
    const char *role = is_any ? "node" : node_role_names[node->role];
    char suggestion[128];
    uint32_t count = 0;
    if (names == NULL) return error_memory(err);
    for (uint32_t i = 0; i < node->nodes.count; i++) {
        const struct cluster_node *other = &node->nodes.items[i];
        if (is_any || other->role == node->role) names[count++] = other->name;
    }
    if (count == 0) {
        return error_set(err, STATUS_USAGE, "%s has no %ss", node->config.path, role);
    }
    options_suggest(name, names, count, suggestion, sizeof suggestion);
    return error_set(err, STATUS_USAGE, "%s has no %s `%.100s`%s", node->config.path, role, name,
                     suggestion);
}

static status check_name(struct node_command *node, const char *command, struct error *err)
{
    static const char *const examples[NODE_ROLES + 1] = {
        [NODE_GATEWAY] = "g1", [NODE_WORKER] = "w1", [NODE_MONITOR] = "m1", [NODE_ROLES] = "w1"};
    const struct cluster_config *config = &node->config;
    const char *name = node->node_options.name;
    if (node->role == NODE_BROKER && name == NULL) name = node_role_names[NODE_BROKER];
    node->node_options.name = name;
    if (node->role == NODE_BROKER && !config->starts_broker) {
        return error_set(
            err, STATUS_USAGE,
            "%s names a broker that runs elsewhere: with `broker = start` there is one "
            "to run here",
            config->path);
    }
    if (name == NULL) {
        return error_set(err, STATUS_USAGE, "%s needs the name of a node: -n %s", command,
                         examples[node->role]);
    }
    const struct cluster_node *found = cluster_nodes_find(&node->nodes, name);
    if (found == NULL) return fail_unknown(node, name, err);
    if (node->role == NODE_ROLES) node->role = found->role;
    if (found->role == node->role) return STATUS_OK;
    const char *role = node_role_names[found->role];
    return error_set(err, STATUS_USAGE, "%s is a %s: millrace %s -c %s -n %s", name, role, role,
                     config->path, name);
}

/* The analyses that a client may name. One that does not compile is left out. */
static status list_analyses(struct node_command *node, struct error *err)
{
    struct analysis *found = NULL;
    uint32_t found_count = 0;
    TRY(analysis_list(&node->arena, &found, &found_count, err));
    struct node_analysis *analyses =
        arena_array(&node->arena, struct node_analysis, (size_t)found_count + 1);
    if (analyses == NULL) return error_memory(err);
    uint32_t count = 0;
    for (uint32_t i = 0; i < found_count; i++) {
        struct job_options options = {.analysis_dir = found[i].folder};
        struct job *job = NULL;
        struct error reason;
        if (job_open(&options, &job, &reason) == STATUS_OK) {
            analyses[count++] = (struct node_analysis){found[i].name, found[i].folder};
        } else {
            terminal_say("%s: the analysis %s is left out: %s\n", node->node_options.name,
                         found[i].name, reason.text);
        }
        job_close(job);
    }
    node->node_options.analyses = analyses;
    node->node_options.analysis_count = count;
    return STATUS_OK;
}

/* --- Running it. --- */

/* Neither a core file nor a process of the same user shows the key in memory. */
static void hide_secrets(const struct cluster_config *config)
{
    if (config->monitor_count == 0 && config->tls_key == NULL) return;
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* It can't fail with these arguments. */
}

static void on_ready(void *context)
{
    const struct node_command *node = context;
    const struct cluster_config *config = &node->config;
    const char *name = node->node_options.name;
    (void)service_notify(SERVICE_READY); /* Most nodes have no service manager. */
    for (uint32_t i = 0; node->role == NODE_GATEWAY && i < config->gateway_count; i++) {
        const struct config_endpoint *self = &config->gateways[i];
        if (strcmp(self->name, name) != 0) continue;
        terminal_say("%s: ready on %s:%u\n", name, self->host, (unsigned)self->port);
        return;
    }
    terminal_say("%s: ready\n", name);
}

/* From any thread. */
static void on_trouble(void *context, const char *text)
{
    const struct node_command *node = context;
    int size = (int)strcspn(text, "\n"); /* `up` reads whole lines. */
    terminal_say("%s: %.*s\n", node->node_options.name, size, text);
}

/* The node itself waits longer, without a message: that is for folders with an unknown holder. */
static status wait_for_folder(struct node_command *node, struct error *err)
{
    const char *name = node->node_options.name;
    const char *folder = cluster_node_folder(&node->config, name, &node->arena);
    pid_t holder;
    if (folder == NULL) return error_memory(err);
    for (int waited_ms = 0; folder_lock_holder(folder, &holder); waited_ms += FOLDER_STEP_MS) {
        if (waited_ms >= FOLDER_WAIT_MS || atomic_load(interrupt_flag())) {
            return error_set(err, STATUS_IO,
                             "%.1000s is in use by process %ld: does %s run already?", folder,
                             (long)holder, name);
        }
        if (waited_ms == 0) {
            terminal_say("%s: waiting for process %ld to leave %s\n", name, (long)holder, folder);
        }
        (void)poll(NULL, 0, FOLDER_STEP_MS); /* A signal ends it earlier. */
    }
    return STATUS_OK;
}

static status run_node(struct node_command *node, struct error *err)
{
    static status (*const runs[NODE_ROLES])(const struct node_options *, struct error *) = {
        [NODE_GATEWAY] = gateway_node_run,
        [NODE_WORKER] = worker_node_run,
        [NODE_MONITOR] = monitor_node_run,
        [NODE_BROKER] = broker_node_run,
    };
    status result = wait_for_folder(node, err);
    if (result == STATUS_OK) result = runs[node->role](&node->node_options, err);
    return result == STATUS_OK ? STATUS_OK : error_prefix(err, "%s", node->node_options.name);
}

static status read_options(struct node_command *node, const char *command, struct error *err)
{
    const struct options *options = &node->options;
    const char *file = options_value(options, OPTION_CONFIG);
    const char *level = options_value(options, OPTION_LOG_LEVEL);
    node->node_options = (struct node_options){
        .config = &node->config,
        .name = options_value(options, OPTION_NAME),
        .level_name = level,
        .supervisor_link = options_value(options, OPTION_EXIT_WITH_SUPERVISOR),
        .stop = interrupt_flag(),
        .ready = on_ready,
        .trouble = on_trouble,
        .context = node,
    };
    TRY(cluster_file_read(command, file, &node->arena, &node->config, err));
    hide_secrets(&node->config);
    TRY(cluster_nodes_list(&node->config, &node->arena, &node->nodes, err));
    TRY(check_name(node, command, err));
    if (node->role == NODE_GATEWAY || node->role == NODE_WORKER) {
        node->node_options.broker = options_value(options, OPTION_BROKER);
    }
    TRY(cluster_file_level(&node->config, level, &node->node_options.level, err));
    return node->role == NODE_GATEWAY ? list_analyses(node, err) : STATUS_OK;
}

static int node_main(const struct command_spec *spec, enum node_role role, int argc,
                     char *const *argv)
{
    struct node_command node = {.role = role};
    struct error err = {.code = STATUS_OK};
    status result = options_parse(spec, argc, argv, &node.arena, &node.options, &err);
    if (result == STATUS_OK && node.options.help) {
        arena_done(&node.arena);
        return command_help(spec);
    }
    if (result == STATUS_OK) result = read_options(&node, spec->name, &err);
    if (result == STATUS_OK) result = run_node(&node, &err);
    int code = result == STATUS_OK ? COMMAND_ANSWERED : command_fail(&err, false);
    arena_done(&node.arena);
    return code;
}

static int gateway_main(int argc, char *const *argv)
{
    return node_main(&gateway_spec, NODE_GATEWAY, argc, argv);
}

static int worker_main(int argc, char *const *argv)
{
    return node_main(&worker_spec, NODE_WORKER, argc, argv);
}

static int monitor_main(int argc, char *const *argv)
{
    return node_main(&monitor_spec, NODE_MONITOR, argc, argv);
}

static int broker_main(int argc, char *const *argv)
{
    return node_main(&broker_spec, NODE_BROKER, argc, argv);
}

static int any_main(int argc, char *const *argv)
{
    return node_main(&node_spec, NODE_ROLES, argc, argv);
}

const struct command command_gateway = {.spec = &gateway_spec, .run = gateway_main};
const struct command command_worker = {.spec = &worker_spec, .run = worker_main};
const struct command command_monitor = {.spec = &monitor_spec, .run = monitor_main};
const struct command command_broker = {.spec = &broker_spec, .run = broker_main};
const struct command command_node = {.spec = &node_spec, .run = any_main};
