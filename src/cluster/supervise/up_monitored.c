/* SPDX-License-Identifier: Apache-2.0 */
/* up_monitored.c - starts, waits, stops. A node runs if a process holds the lock of its folder. */
#include "cluster/supervise/up_monitored.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/types.h>

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "cluster/net/address.h"
#include "engine/file/clock.h"
#include "engine/file/file.h"
#include "engine/file/file_tree.h"
#include "cluster/store/folder_lock.h"
#include "cluster/supervise/spawn.h"
#include "cluster/config/cluster_key.h"
#include "cluster/config/cluster_nodes.h"
#include "cluster/supervise/driver.h"
#include "cluster/config/gateway_url.h"
#include "cluster/supervise/log_tail.h"

enum {
    LOOK_MS = 50,
    ASK_PERIOD_MS = 100,
    ASK_MS = 1000,
    LIST_MS = 5000,  /* Longer than a gateway waits for workers that don't answer. */
    STOP_MS = 10000, /* For each role. */
    ALONE_MS = 2000, /* Without any monitor, until `up` restarts them. */
    LINE_SIZE = 1024
};

struct monitored_node {
    const struct cluster_node *node;
    const char *folder;
    const char *url; /* Of a gateway. */
    bool is_healthy; /* A gateway that has answered. */
    bool has_failed; /* The last incarnation whose end is known. */
    pid_t told;      /* The process that was told to stop; 0: none. */
};

struct monitored_up {
    const struct up_monitored_options *options;
    struct cluster_config config; /* As given, but with driver = process. */
    struct arena arena;
    struct driver *driver;
    struct cluster_nodes nodes;
    struct monitored_node *items;
    bool is_ready;
    uint64_t begin_ms;
    uint64_t ask_ms;        /* When to ask gateways again. */
    uint64_t monitor_ms;    /* When a monitor last ran. */
    bool told_alone;        /* It has reported that all monitors were stopped. */
    struct error problem;   /* Why the cluster is not ready yet. */
    struct error first_end; /* A node that ended before the cluster was ready. STATUS_OK: none. */
};

static bool is_to_stop(const struct monitored_up *up)
{
    return atomic_load(up->options->up->stop);
}

static void say(const struct monitored_up *up, const char *format, ...) PRINTF_LIKE(2, 3);
static void say(const struct monitored_up *up, const char *format, ...)
{
    char line[LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments); /* Cut at the limit. */
    va_end(arguments);
    up->options->up->say(up->options->up->context, line);
}

/* ---- stopping ---- */

static unsigned role_bit(enum node_role role)
{
    return 1u << role;
}

/* Tells nodes that run to stop, each process once; returns how many run. */
static uint32_t ask_to_stop(struct monitored_up *up, unsigned roles)
{
    uint32_t running = 0;
    for (uint32_t i = 0; i < up->nodes.count; i++) {
        struct monitored_node *item = &up->items[i];
        struct error err;
        pid_t holder;
        if ((roles & role_bit(item->node->role)) == 0) continue;
        if (!folder_lock_holder(item->folder, &holder)) continue;
        running++;
        if (holder == item->told) continue;
        item->told = holder;
        if (driver_do(up->driver, DRIVER_STOP, item->node->name, &err) != STATUS_OK) {
            say(up, "%.900s", err.text);
        }
    }
    return running;
}

static void kill_rest(struct monitored_up *up, unsigned roles)
{
    for (uint32_t i = 0; i < up->nodes.count; i++) {
        const struct monitored_node *item = &up->items[i];
        struct error err;
        pid_t holder;
        if ((roles & role_bit(item->node->role)) == 0) continue;
        if (!folder_lock_holder(item->folder, &holder)) continue;
        say(up, "%s did not stop within %d s; killing it", item->node->name, STOP_MS / 1000);
        if (driver_do(up->driver, DRIVER_KILL, item->node->name, &err) != STATUS_OK) {
            say(up, "%.900s", err.text);
        }
    }
}

static void stop_roles(struct monitored_up *up, unsigned roles)
{
    uint64_t deadline_ms = clock_ms() + STOP_MS;
    while (ask_to_stop(up, roles) > 0) {
        if (clock_ms() >= deadline_ms) {
            kill_rest(up, roles);
            return;
        }
        spawn_wait(NULL, 0, LOOK_MS);
        driver_sweep(up->driver);
    }
}

/* Monitors first, so that they restart nothing; the broker last, so that nodes can finish their
 * messages in flight. */
static void stop_all(struct monitored_up *up)
{
    if (up->driver == NULL || up->items == NULL) return;
    stop_roles(up, role_bit(NODE_MONITOR));
    stop_roles(up, role_bit(NODE_GATEWAY) | role_bit(NODE_WORKER));
    stop_roles(up, role_bit(NODE_BROKER));
    driver_sweep(up->driver);
}

/* ---- starting ---- */

static struct monitored_node *item_of(struct monitored_up *up, const char *name)
{
    const struct cluster_node *node = cluster_nodes_find(&up->nodes, name);
    return &up->items[node - up->nodes.items];
}

static void on_ended(void *context, const char *name, const struct spawn_end *end)
{
    struct monitored_up *up = context;
    struct monitored_node *item = item_of(up, name);
    bool was_asked = item->told != 0;
    bool has_failed = end->signal == 0 && end->code != 0;
    bool is_planned = end->signal == 0 && end->code == 0;
    char how[SPAWN_END_SIZE];
    char words[ERROR_TEXT_SIZE / 2];
    item->has_failed = !is_planned;
    spawn_end_tell(*end, how);
    if (was_asked) return;
    if (!up->is_ready && has_failed && up->first_end.code == STATUS_OK) {
        log_tail(item->folder, words, sizeof words);
        error_write(&up->first_end, STATUS_IO, "%s %s while the cluster was starting%s", name, how,
                    words);
        return;
    }
    say(up, "%s %s%s", name, how, is_planned ? "" : "; the monitors will restart it");
}

static status list_nodes(struct monitored_up *up, struct error *err)
{
    const struct cluster_config *config = &up->config;
    TRY(cluster_nodes_list(config, &up->arena, &up->nodes, err));
    struct monitored_node *items = arena_array(&up->arena, struct monitored_node, up->nodes.count);
    if (items == NULL) return error_memory(err);
    for (uint32_t i = 0; i < up->nodes.count; i++) {
        const struct cluster_node *node = &up->nodes.items[i];
        items[i].node = node;
        items[i].folder = cluster_node_folder(config, node->name, &up->arena);
        if (items[i].folder == NULL) return error_memory(err);
        if (node->role != NODE_GATEWAY) continue;
        items[i].url = gateway_url(config, node->host, node->port, &up->arena);
        if (items[i].url == NULL) return error_memory(err);
    }
    up->items = items;
    return STATUS_OK;
}

/* Before any node is stopped: a file with nodes of other hosts is a mistake here. */
static status check_hosts(const struct monitored_up *up, struct error *err)
{
    for (uint32_t i = 0; i < up->nodes.count; i++) {
        const struct cluster_node *node = up->items[i].node;
        if (node->role == NODE_BROKER) continue; /* Its host is a name for others. */
        if (address_check(node->host, 0, err) != STATUS_OK) {
            return error_prefix(err, "%s: %s %s", up->config.path, node_role_names[node->role],
                                node->name);
        }
    }
    return STATUS_OK;
}

static void stop_leftovers(struct monitored_up *up)
{
    for (uint32_t i = 0; i < up->nodes.count; i++) {
        pid_t holder;
        if (!folder_lock_holder(up->items[i].folder, &holder)) continue;
        say(up, "%s still runs, as process %ld; stopping it", up->items[i].node->name,
            (long)holder);
    }
    stop_all(up);
    for (uint32_t i = 0; i < up->nodes.count; i++) {
        up->items[i].told = 0;
    }
}

static status start_role(struct monitored_up *up, enum node_role role, struct error *err)
{
    for (uint32_t i = 0; i < up->nodes.count && !is_to_stop(up); i++) {
        if (up->items[i].node->role != role) continue;
        TRY(driver_do(up->driver, DRIVER_START, up->items[i].node->name, err));
    }
    return STATUS_OK;
}

static status check_ends(struct monitored_up *up, struct error *err)
{
    driver_sweep(up->driver);
    if (up->first_end.code == STATUS_OK) return STATUS_OK;
    *err = up->first_end;
    return err->code;
}

/* The broker writes its URI once it answers. */
static status wait_for_broker(struct monitored_up *up, const char *uri_path, struct error *err)
{
    while (!file_exists(uri_path)) {
        if (is_to_stop(up)) return STATUS_OK;
        TRY(check_ends(up, err));
        spawn_wait(NULL, 0, LOOK_MS);
    }
    return STATUS_OK;
}

static status start_broker(struct monitored_up *up, struct error *err)
{
    if (!up->config.starts_broker) return STATUS_OK;
    const char *path = file_path(up->config.data_dir, TEXT_LITERAL("broker/uri"), &up->arena);
    if (path == NULL) return error_memory(err);
    TRY(file_tree_remove(path, err)); /* Of an earlier broker. */
    TRY(start_role(up, NODE_BROKER, err));
    return wait_for_broker(up, path, err);
}

/* Monitors last: they would restart nodes that are still starting. */
static status start_all(struct monitored_up *up, struct error *err)
{
    TRY(start_broker(up, err));
    TRY(start_role(up, NODE_GATEWAY, err));
    TRY(start_role(up, NODE_WORKER, err));
    return start_role(up, NODE_MONITOR, err);
}

/* ---- being ready ---- */

static status ask(struct monitored_up *up, const char *url, struct gateway_call call,
                  struct buf *body)
{
    call.token = up->options->call->token;
    call.ca = up->options->call->ca;
    call.any_name = up->options->call->any_name;
    call.method = "GET";
    call.gateways = &url;
    call.gateway_count = 1;
    return gateway_call(&call, body, &up->problem);
}

static bool gateways_are_healthy(struct monitored_up *up)
{
    for (uint32_t i = 0; i < up->nodes.count; i++) {
        struct monitored_node *item = &up->items[i];
        if (item->url == NULL || item->is_healthy) continue;
        struct gateway_call call = {.target = "/healthz", .timeout_ms = ASK_MS};
        struct buf body = {0};
        item->is_healthy = ask(up, item->url, call, &body) == STATUS_OK;
        buf_done(&body);
        if (item->is_healthy) continue;
        up->problem.code = error_prefix(&up->problem, "%s", item->node->name);
        return false;
    }
    return true;
}

static bool answers(const struct node_list *list, const char *name)
{
    for (uint32_t i = 0; i < list->node_count; i++) {
        if (text_equal(list->nodes[i].name, text_of(name))) return list->nodes[i].answers;
    }
    return false;
}

static bool workers_answer(struct monitored_up *up)
{
    struct gateway_call call = {.target = "/v1/nodes", .timeout_ms = LIST_MS};
    struct arena arena = {0};
    struct buf body = {0};
    struct node_list list;
    const struct monitored_node *gateway = NULL;
    for (uint32_t i = 0; i < up->nodes.count && gateway == NULL; i++) {
        if (up->items[i].url != NULL) gateway = &up->items[i];
    }
    status result = ask(up, gateway->url, call, &body);
    struct text json = {(const char *)body.bytes, (uint32_t)body.size};
    if (result == STATUS_OK) result = node_list_decode(json, &arena, &list, &up->problem);
    bool all = result == STATUS_OK;
    for (uint32_t i = 0; i < up->nodes.count && all; i++) {
        const struct cluster_node *node = up->items[i].node;
        if (node->role != NODE_WORKER || answers(&list, node->name)) continue;
        error_write(&up->problem, STATUS_IO, "the worker %s does not answer", node->name);
        all = false;
    }
    buf_done(&body);
    arena_done(&arena);
    return all;
}

static status look_for_ready(struct monitored_up *up, struct error *err)
{
    if (up->is_ready || clock_ms() < up->ask_ms) return STATUS_OK;
    up->ask_ms = clock_ms() + ASK_PERIOD_MS;
    if (gateways_are_healthy(up) && workers_answer(up)) {
        up->is_ready = true;
        up->options->up->ready(up->options->up->context);
        return STATUS_OK;
    }
    uint32_t limit_ms = up->options->up->config->ready_timeout_ms;
    if (clock_ms() - up->begin_ms < limit_ms) return STATUS_OK;
    return error_set(err, STATUS_IO, "the cluster was not ready within %u s: %.1000s",
                     limit_ms / 1000, up->problem.text);
}

/* ---- the cluster ---- */

/* A node that stops on request removes its pid file, and so does one that fails, but the end of a
 * child is known. Of monitors that other monitors started, only the pid file tells. */
static bool was_stopped(const struct monitored_node *item)
{
    struct arena arena = {0};
    const char *path = file_path(item->folder, TEXT_LITERAL("pid"), &arena);
    bool is_planned = !item->has_failed && path != NULL && !file_exists(path);
    arena_done(&arena);
    return is_planned;
}

/* Returns how many monitors were not stopped on purpose. */
static uint32_t start_monitors(struct monitored_up *up)
{
    uint32_t count = 0;
    struct error err;
    for (uint32_t i = 0; i < up->nodes.count && !is_to_stop(up); i++) {
        const struct monitored_node *item = &up->items[i];
        if (item->node->role != NODE_MONITOR || was_stopped(item)) continue;
        if (count++ == 0) say(up, "no monitor is left; restarting them");
        if (driver_do(up->driver, DRIVER_START, item->node->name, &err) != STATUS_OK) {
            say(up, "%.900s", err.text);
        }
    }
    return count;
}

static void look_for_monitors(struct monitored_up *up)
{
    bool is_any = false;
    pid_t holder;
    for (uint32_t i = 0; i < up->nodes.count; i++) {
        struct monitored_node *item = &up->items[i];
        if (item->node->role != NODE_MONITOR) continue;
        if (folder_lock_look(item->folder, &holder) == FOLDER_FREE) continue;
        item->has_failed = false;
        is_any = true;
    }
    if (is_any) {
        up->monitor_ms = clock_ms();
        up->told_alone = false;
    }
    if (clock_ms() - up->monitor_ms < ALONE_MS || up->told_alone) return;
    up->told_alone = start_monitors(up) == 0;
    if (up->told_alone) say(up, "all monitors were stopped: nodes that fail are not restarted");
    up->monitor_ms = clock_ms();
}

static status run(struct monitored_up *up, struct error *err)
{
    bool is_new = false;
    TRY(list_nodes(up, err));
    TRY(check_hosts(up, err));
    struct driver_options options = {
        .config = &up->config,
        .program = up->options->up->program,
        .log_level = up->options->up->log_level,
        .supervisor_link = up->config.data_dir,
        .is_first_incarnation = true,
        .context = up,
        .ended = on_ended,
    };
    TRY(driver_open(&options, &up->driver, err));
    stop_leftovers(up);
    TRY(up->options->check_addresses(&up->config, err));
    TRY(cluster_key_make(up->config.key_file, &is_new, err));
    if (is_new) say(up, "made a key for this cluster: %.900s", up->config.key_file);
    TRY(start_all(up, err));
    up->begin_ms = clock_ms();
    up->monitor_ms = up->begin_ms;
    while (!is_to_stop(up)) {
        TRY(check_ends(up, err));
        TRY(look_for_ready(up, err));
        look_for_monitors(up);
        spawn_wait(NULL, 0, LOOK_MS);
    }
    return STATUS_OK;
}

status up_monitored_run(const struct up_monitored_options *options, struct error *err)
{
    struct monitored_up up = {.options = options, .config = *options->up->config};
    up.config.driver = CONFIG_DRIVER_PROCESS;
    status result = run(&up, err);
    stop_all(&up);
    driver_close(up.driver);
    arena_done(&up.arena);
    return result;
}
