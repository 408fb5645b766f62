/* cmd_node.c - `millrace gateway` and `millrace worker`: one node of a cluster, in this process.
 *
 * Its folder, log and work are node/'s business; here is what a person at a terminal meets: names
 * that are wrong, and the line that says that it is ready, which `millrace up` waits for too.
 */
#include <poll.h>
#include <string.h>

#include "cli/analysis.h"
#include "cli/cluster_file.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "io/file.h"
#include "io/folder_lock.h"
#include "node/worker_node.h"

enum { NODE_CONFIG, NODE_NAME, NODE_BROKER, NODE_LOG_LEVEL, NODE_OPTIONS };

static const struct option_spec node_options_given[NODE_OPTIONS] = {
    [NODE_CONFIG] = CLUSTER_FILE_OPTION_SPEC,
    [NODE_NAME] = {"name", "NAME", "which of the nodes in the file to be", false, 'n'},
    [NODE_BROKER] = {"broker", "URI", "amqp://user:password@host:port, instead of the file's",
                     false, 0},
    [NODE_LOG_LEVEL] = LOG_LEVEL_OPTION_SPEC,
};

#define NODE_ABOUT                                                                                 \
    "Runs until SIGTERM or Ctrl-C: then what is in hand is finished, and the exit code is 0; a\n"  \
    "second signal ends it at once. It may be killed at any time. The file is described in\n"      \
    "docs/OPERATING.md. The node keeps its files in data_dir/NAME, among them log and pid.\n"      \
    "MILLRACE_CRASH in the environment arms crash points, for tests."

static const struct command_spec gateway_spec = {
    .name = "gateway",
    .arguments = "-c FILE -n NAME",
    .summary = "be one gateway of a cluster: clients talk to it",
    .about = NODE_ABOUT,
    .examples = "  millrace gateway -c cluster.ini -n g1\n",
    .options = node_options_given,
    .option_count = NODE_OPTIONS,
};

static const struct command_spec worker_spec = {
    .name = "worker",
    .arguments = "-c FILE -n NAME",
    .summary = "be one worker of a cluster: it computes",
    .about = NODE_ABOUT,
    .examples = "  millrace worker -c cluster.ini -n w2\n",
    .options = node_options_given,
    .option_count = NODE_OPTIONS,
};

/* Somebody of the node's name may be just about to end. */
enum { FOLDER_WAIT_MS = 1000, FOLDER_STEP_MS = 50 };

enum node_kind { KIND_GATEWAY, KIND_WORKER };

struct node {
    enum node_kind kind;
    struct arena arena;
    struct options options;
    struct cluster_config config;
    struct node_options node_options;
};

/* --- Which node. --- */

static uint32_t names_of(const struct cluster_config *config, enum node_kind kind,
                         const char *names[CONFIG_WORKERS_MAX])
{
    uint32_t count = kind == KIND_GATEWAY ? config->gateway_count : config->worker_count;
    for (uint32_t i = 0; i < count; i++) {
        names[i] = kind == KIND_GATEWAY ? config->gateways[i].name : config->workers[i].name;
    }
    return count;
}

static bool has_name(const struct cluster_config *config, enum node_kind kind, const char *name)
{
    const char *names[CONFIG_WORKERS_MAX];
    uint32_t count = names_of(config, kind, names);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) return true;
    }
    return false;
}

static status check_name(const struct node *node, const char *name, struct error *err)
{
    static const char *const kinds[] = {[KIND_GATEWAY] = "gateway", [KIND_WORKER] = "worker"};
    const struct cluster_config *config = &node->config;
    enum node_kind other = node->kind == KIND_GATEWAY ? KIND_WORKER : KIND_GATEWAY;
    const char *names[CONFIG_WORKERS_MAX];
    char suggestion[128];
    if (name == NULL) {
        return error_set(err, STATUS_USAGE, "%s needs the name of a node: -n %s", kinds[node->kind],
                         node->kind == KIND_GATEWAY ? "g1" : "w1");
    }
    if (has_name(config, node->kind, name)) return STATUS_OK;
    if (has_name(config, other, name)) {
        return error_set(err, STATUS_USAGE, "%s is a %s: millrace %s -c %s -n %s", name,
                         kinds[other], kinds[other], config->path, name);
    }
    options_suggest(name, names, names_of(config, node->kind, names), suggestion,
                    sizeof suggestion);
    return error_set(err, STATUS_USAGE, "%s has no %s `%.100s`%s", config->path, kinds[node->kind],
                     name, suggestion);
}

/* Those that a client may name. One that does not compile keeps nobody from the others. */
static status list_analyses(struct node *node, struct error *err)
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

/* --- Its life. --- */

static void on_ready(void *context)
{
    const struct node *node = context;
    const struct cluster_config *config = &node->config;
    const char *name = node->node_options.name;
    for (uint32_t i = 0; node->kind == KIND_GATEWAY && i < config->gateway_count; i++) {
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
    const struct node *node = context;
    int size = (int)strcspn(text, "\n"); /* `up` passes on lines. */
    terminal_say("%s: %.*s\n", node->node_options.name, size, text);
}

/* The node itself waits longer, and silently: that is for folders whose owner is not known. */
static status wait_for_folder(struct node *node, struct error *err)
{
    const char *name = node->node_options.name;
    const char *folder = file_path(node->config.data_dir, text_of(name), &node->arena);
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

static status run_node(struct node *node, struct error *err)
{
    status result = wait_for_folder(node, err);
    if (result == STATUS_OK) {
        result = node->kind == KIND_GATEWAY ? gateway_node_run(&node->node_options, err)
                                            : worker_node_run(&node->node_options, err);
    }
    return result == STATUS_OK ? STATUS_OK : error_prefix(err, "%s", node->node_options.name);
}

static status read_options(struct node *node, const char *command, struct error *err)
{
    const struct options *options = &node->options;
    const char *file = options_value(options, NODE_CONFIG);
    const char *level = options_value(options, NODE_LOG_LEVEL);
    node->node_options = (struct node_options){
        .config = &node->config,
        .name = options_value(options, NODE_NAME),
        .broker = options_value(options, NODE_BROKER),
        .stop = interrupt_flag(),
        .ready = on_ready,
        .trouble = on_trouble,
        .context = node,
    };
    TRY(cluster_file_read(command, file, &node->arena, &node->config, err));
    TRY(check_name(node, node->node_options.name, err));
    TRY(cluster_file_level(&node->config, level, &node->node_options.level, err));
    return node->kind == KIND_GATEWAY ? list_analyses(node, err) : STATUS_OK;
}

static int node_main(const struct command_spec *spec, enum node_kind kind, int argc,
                     char *const *argv)
{
    struct node node = {.kind = kind};
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
    return node_main(&gateway_spec, KIND_GATEWAY, argc, argv);
}

static int worker_main(int argc, char *const *argv)
{
    return node_main(&worker_spec, KIND_WORKER, argc, argv);
}

const struct command command_gateway = {.spec = &gateway_spec, .run = gateway_main};
const struct command command_worker = {.spec = &worker_spec, .run = worker_main};
