/* SPDX-License-Identifier: Apache-2.0 */
/* up.c - a loop that polls every child a few times a second. Their standard error comes through
 * pipes: lines are passed on, and a line reports that a node is ready.
 */
#include "cluster/supervise/up.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "cluster/net/address.h"
#include "engine/file/clock.h"
#include "engine/file/file.h"
#include "cluster/store/folder_lock.h"
#include "cluster/supervise/spawn.h"
#include "cluster/supervise/backoff.h"
#include "cluster/supervise/broker_supervisor.h"
#include "cluster/node/client_node.h"
#include "cluster/node/exposure.h"
#include "cluster/config/gateway_url.h"
#include "cluster/supervise/later_environment.h"
#include "cluster/supervise/log_tail.h"
#include "cluster/supervise/up_monitored.h"

enum {
    LOOK_MS = 50,
    LOCK_WAIT_MS = 200,
    SHORT_UPTIME_MS = 1000,
    SHORT_RUNS_MAX = 5,
    STOP_MS = 10000,
    HEALTH_PERIOD_MS = 100,
    HEALTH_TIMEOUT_MS = 1000,
    LINE_SIZE = 1024,
    FREE_MB_MIN =
        200, /* Less is worth a warning; see write_files in cluster/supervise/broker_process.c. */
    ARGUMENTS_MAX = 10
};

/* A node's process. */
struct up_child {
    const char *name;
    const char *role;
    char *url; /* Of a gateway; NULL: a worker. */
    struct spawn process;
    bool runs;
    bool is_ready; /* It has reported so; a gateway has also answered. */
    uint64_t start_ms;
    struct backoff backoff;
    uint32_t short_runs;  /* In a row. */
    char line[LINE_SIZE]; /* Of its standard error, not complete yet. */
    size_t line_size;
};

struct up {
    struct up_options options;
    struct arena arena;
    struct folder_lock *lock;
    struct broker_supervisor *broker; /* NULL: the cluster uses another broker. */
    struct up_child *children;
    struct spawn **processes; /* Theirs, for spawn_wait. */
    uint32_t child_count;
    const char *const *later_environment; /* Of restarted nodes. */
    bool is_ready;
    uint64_t begin_ms;
    uint64_t health_ms;         /* When to ask gateways again. */
    struct gateway_call health; /* The health check of gateways. */
    struct error last_problem;
};

static bool is_to_stop(const struct up *up)
{
    return atomic_load(up->options.stop);
}

static void say(struct up *up, const char *format, ...) PRINTF_LIKE(2, 3);
static void say(struct up *up, const char *format, ...)
{
    char line[LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments); /* Cut at the limit. */
    va_end(arguments);
    up->options.say(up->options.context, line);
}

/* ---- before anything is started ---- */

/* A full disk makes jobs wait without an error, so it is reported at the start. */
static void warn_of_little_space(struct up *up)
{
    const struct cluster_config *config = up->options.config;
    uint64_t free_mb = file_free_bytes(config->data_dir) / 1000000;
    if (free_mb >= FREE_MB_MIN) return;
    say(up, "warning: %.700s has only %llu MB free%s", config->data_dir,
        (unsigned long long)free_mb,
        config->starts_broker ? "; with less than 50 MB the broker takes no messages, and jobs wait"
                              : "; workers need it for the input of their jobs");
}

/* Suggests that this cluster runs already only if a process holds the lock. */
static status lock_data_dir(struct up *up, struct error *err)
{
    const char *data_dir = up->options.config->data_dir;
    struct error problem;
    pid_t holder;
    /* Nodes with a supervisor link check the lock by taking it for a moment. */
    uint32_t wait_ms = up->options.config->monitor_count > 0 ? LOCK_WAIT_MS : 0;
    if (folder_lock_open(data_dir, wait_ms, &up->lock, &problem) == STATUS_OK) return STATUS_OK;
    bool is_held = folder_lock_holder(data_dir, &holder);
    return error_set(err, problem.code, "%.1500s%s", problem.text,
                     is_held ? "; does this cluster run already?" : "");
}

static status check_addresses(const struct cluster_config *config, struct error *err)
{
    for (uint32_t i = 0; i < config->gateway_count; i++) {
        const struct config_endpoint *gateway = &config->gateways[i];
        if (address_check(gateway->host, gateway->port, err) != STATUS_OK) {
            return error_prefix(err, "%s: gateway %s", config->path, gateway->name);
        }
    }
    for (uint32_t i = 0; i < config->worker_count; i++) {
        const struct config_worker *worker = &config->workers[i];
        if (address_check(worker->host, 0, err) != STATUS_OK) {
            return error_prefix(err, "%s: worker %s", config->path, worker->name);
        }
    }
    return STATUS_OK;
}

static status list_children(struct up *up, struct error *err)
{
    const struct cluster_config *config = up->options.config;
    uint32_t count = config->gateway_count + config->worker_count;
    up->children = arena_array(&up->arena, struct up_child, count);
    up->processes = arena_array(&up->arena, struct spawn *, count);
    if (up->children == NULL || up->processes == NULL) return error_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        struct up_child *child = &up->children[i];
        bool is_gateway = i < config->gateway_count;
        if (is_gateway) {
            child->name = config->gateways[i].name;
            child->url =
                gateway_url(config, config->gateways[i].host, config->gateways[i].port, &up->arena);
            if (child->url == NULL) return error_memory(err);
        } else {
            child->name = config->workers[i - config->gateway_count].name;
        }
        child->role = is_gateway ? "gateway" : "worker";
        up->processes[i] = &child->process;
    }
    up->child_count = count;
    return STATUS_OK;
}

/* ---- one child ---- */

/* The child reads the URI of the private broker in the broker's folder: it has a password, and all
 * users can read arguments. */
static status child_start(struct up *up, struct up_child *child, struct error *err)
{
    const char *argv[ARGUMENTS_MAX] = {up->options.program,      child->role, "--config",
                                       up->options.config->path, "--name",    child->name};
    uint32_t count = 6;
    if (up->options.log_level != NULL) {
        argv[count++] = "--log-level";
        argv[count++] = up->options.log_level;
    }
    bool is_first_incarnation = child->start_ms == 0;
    struct spawn_options options = {
        .argv = argv,
        .environment = is_first_incarnation ? NULL : up->later_environment,
        .out = {.target = SPAWN_NULL},
        .err = {.target = SPAWN_PIPE},
        .dies_with_us = true,
    };
    child->start_ms = clock_ms();
    TRY(spawn_start(&child->process, options, err));
    child->runs = true;
    return STATUS_OK;
}

static void child_say_line(struct up *up, struct up_child *child)
{
    child->line[child->line_size] = '\0';
    child->line_size = 0;
    /* See cmd_node.c: "NAME: ready", for a gateway with its URL. */
    size_t name_size = strlen(child->name);
    bool is_ready = strncmp(child->line, child->name, name_size) == 0 &&
                    strncmp(child->line + name_size, ": ready", 7) == 0;
    if (is_ready && child->url == NULL) child->is_ready = true;
    up->options.say(up->options.context, child->line);
}

static void child_listen(struct up *up, struct up_child *child)
{
    char bytes[LINE_SIZE];
    size_t size;
    while ((size = spawn_read(child->process.err_fd, bytes, sizeof bytes)) > 0) {
        for (size_t i = 0; i < size; i++) {
            bool is_full = child->line_size + 1 == sizeof child->line;
            if (bytes[i] == '\n' || is_full) child_say_line(up, child);
            if (bytes[i] != '\n') child->line[child->line_size++] = bytes[i];
        }
    }
}

static status child_ended(struct up *up, struct up_child *child, struct error *err)
{
    char how[SPAWN_END_SIZE];
    char words[ERROR_TEXT_SIZE / 2];
    uint64_t lived_ms = clock_ms() - child->start_ms;
    child_listen(up, child);
    if (child->line_size > 0) child_say_line(up, child);
    spawn_close(&child->process);
    spawn_end_tell(child->process.end, how);
    child->runs = false;
    child->is_ready = false;
    child->short_runs = lived_ms < SHORT_UPTIME_MS ? child->short_runs + 1 : 0;
    if (!up->is_ready && child->short_runs >= SHORT_RUNS_MAX) {
        const char *folder =
            file_path(up->options.config->data_dir, text_of(child->name), &up->arena);
        if (folder == NULL) return error_memory(err);
        log_tail(folder, words, sizeof words);
        return error_set(err, STATUS_IO, "%s %s %d times within a second of its start%s",
                         child->name, how, SHORT_RUNS_MAX, words);
    }
    uint32_t wait_ms = backoff_next(&child->backoff, lived_ms);
    child->start_ms = clock_ms() + wait_ms;
    say(up, "%s %s; restarting it in %.1f s", child->name, how, wait_ms / 1000.0);
    return STATUS_OK;
}

static status child_look(struct up *up, struct up_child *child, struct error *err)
{
    if (child->runs) {
        child_listen(up, child);
        return spawn_poll(&child->process) ? child_ended(up, child, err) : STATUS_OK;
    }
    if (clock_ms() < child->start_ms) return STATUS_OK;
    status result = child_start(up, child, err);
    if (result == STATUS_OK || !up->is_ready) return result;
    /* The system has no room for a process now. */
    uint32_t wait_ms = backoff_next(&child->backoff, 0);
    child->start_ms = clock_ms() + wait_ms;
    say(up, "%s: %.800s; restarting it in %.1f s", child->name, err->text, wait_ms / 1000.0);
    return STATUS_OK;
}

/* ---- being ready ---- */

static void ask_health(struct up *up, struct up_child *child)
{
    struct gateway_call call = up->health;
    call.gateways = (const char *const[]){child->url};
    call.gateway_count = 1;
    struct buf body = {0};
    child->is_ready = gateway_call(&call, &body, &up->last_problem) == STATUS_OK;
    buf_done(&body);
}

static status look_for_ready(struct up *up, struct error *err)
{
    if (up->is_ready || clock_ms() < up->health_ms) return STATUS_OK;
    up->health_ms = clock_ms() + HEALTH_PERIOD_MS;
    struct up_child *missing = NULL;
    for (uint32_t i = 0; i < up->child_count && missing == NULL; i++) {
        struct up_child *child = &up->children[i];
        if (child->runs && !child->is_ready && child->url != NULL) ask_health(up, child);
        if (!child->is_ready) missing = child;
    }
    if (missing == NULL) {
        up->is_ready = true;
        up->options.ready(up->options.context);
        return STATUS_OK;
    }
    uint32_t limit_ms = up->options.config->ready_timeout_ms;
    if (clock_ms() - up->begin_ms < limit_ms) return STATUS_OK;
    return error_set(err, STATUS_IO, "%s was not ready within %u s%s%.1000s", missing->name,
                     limit_ms / 1000, missing->url != NULL ? ": " : "",
                     missing->url != NULL ? up->last_problem.text : "");
}

/* ---- the cluster ---- */

static status start_broker(struct up *up, struct error *err)
{
    const struct cluster_config *config = up->options.config;
    if (!config->starts_broker) return STATUS_OK;
    struct broker_supervisor_options options = {
        .folder = file_path(config->data_dir, text_of("broker"), &up->arena),
        .deadline_ms = config->ready_timeout_ms / 2,
        .context = up->options.context,
        .say = up->options.say,
    };
    if (options.folder == NULL) return error_memory(err);
    TRY(broker_supervisor_open(&options, &up->broker, err));
    enum broker_state state;
    while ((state = broker_supervisor_state(up->broker, err)) == BROKER_STARTING &&
           !is_to_stop(up)) {
        spawn_wait(NULL, 0, LOOK_MS);
    }
    return state == BROKER_FAILED ? err->code : STATUS_OK;
}

static status supervise(struct up *up, struct error *err)
{
    up->begin_ms = clock_ms();
    while (!is_to_stop(up)) {
        for (uint32_t i = 0; i < up->child_count; i++) {
            TRY(child_look(up, &up->children[i], err));
        }
        TRY(look_for_ready(up, err));
        bool needs_broker = up->broker != NULL && !up->is_ready;
        if (needs_broker && broker_supervisor_state(up->broker, err) == BROKER_FAILED) {
            return error_prefix(err, "the broker can't be restarted");
        }
        spawn_wait(up->processes, up->child_count, LOOK_MS);
    }
    return STATUS_OK;
}

static void stop_children(struct up *up)
{
    uint64_t deadline_ms = clock_ms() + STOP_MS;
    uint32_t left = 0;
    for (uint32_t i = 0; i < up->child_count; i++) {
        if (up->children[i].runs) spawn_signal(&up->children[i].process, SIGTERM);
    }
    do {
        left = 0;
        for (uint32_t i = 0; i < up->child_count; i++) {
            struct up_child *child = &up->children[i];
            if (!child->runs) continue;
            child_listen(up, child);
            if (!spawn_poll(&child->process)) left++;
        }
        if (left > 0) spawn_wait(up->processes, up->child_count, LOOK_MS);
    } while (left > 0 && clock_ms() < deadline_ms);
    for (uint32_t i = 0; i < up->child_count; i++) {
        struct up_child *child = &up->children[i];
        if (!child->runs) continue;
        if (!spawn_poll(&child->process)) {
            say(up, "%s did not stop within %d s; killing it", child->name, STOP_MS / 1000);
        }
        spawn_stop(&child->process, 0);
        child_listen(up, child);
        spawn_close(&child->process);
        child->runs = false;
    }
}

static status run_monitored(struct up *up, struct error *err)
{
    struct up_monitored_options options = {
        .up = &up->options,
        .call = &up->health,
        .check_addresses = check_addresses,
    };
    return up_monitored_run(&options, err);
}

static status run(struct up *up, struct error *err)
{
    TRY(lock_data_dir(up, err));
    warn_of_little_space(up);
    bool is_monitored = up->options.config->monitor_count > 0;
    if (!is_monitored) TRY(check_addresses(up->options.config, err));
    TRY(cluster_config_check_exposure(up->options.config, err));
    TRY(exposure_check_files(up->options.config, err));
    up->health = (struct gateway_call){
        .method = "GET", .target = "/healthz", .timeout_ms = HEALTH_TIMEOUT_MS};
    TRY(exposure_call(up->options.config, &up->arena, &up->health, err));
    if (is_monitored) return run_monitored(up, err);
    TRY(list_children(up, err));
    TRY(later_environment_make(&up->arena, &up->later_environment, err));
    TRY(start_broker(up, err));
    return supervise(up, err);
}

status up_run(const struct up_options *options, struct error *err)
{
    struct up up = {.options = *options};
    status result = run(&up, err);
    stop_children(&up);
    broker_supervisor_close(up.broker);
    folder_lock_close(up.lock);
    arena_done(&up.arena);
    /* A start that was interrupted by the stop is not a failure. */
    return atomic_load(options->stop) && result == STATUS_CANCELLED ? STATUS_OK : result;
}
