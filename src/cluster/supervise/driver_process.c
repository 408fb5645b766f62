/* SPDX-License-Identifier: Apache-2.0 */
/* driver_process.c - nodes as processes of this host.
 *
 * A started node must take the lock of its folder: the lock proves which process is the node, and
 * any monitor finds it there, whichever monitor started it. A node has its own session and does not
 * die with its starter. Nodes of other hosts are not started here.
 */
#include <poll.h>
#include <signal.h>

#include "engine/base/memory.h"
#include "cluster/net/address.h"
#include "engine/file/clock.h"
#include "cluster/store/folder_lock.h"
#include "cluster/supervise/driver_parts.h"
#include "cluster/supervise/log_tail.h"

enum {
    NAP_MS = 10,
    START_MS = 20000, /* A loaded host is slow. */
    KILL_MS = 10000,
    ARGUMENTS_MAX = 12
};

static uint32_t limit_ms(const struct driver_call *call, uint32_t wanted_ms)
{
    uint32_t timeout_ms = call->driver->options.config->driver_timeout_ms;
    return timeout_ms < wanted_ms ? timeout_ms : wanted_ms;
}

static void keep_child(const struct driver_call *call, struct driver_child *child)
{
    struct driver *driver = call->driver;
    pthread_mutex_lock(&driver->mutex);
    child->next = driver->children;
    driver->children = child;
    pthread_mutex_unlock(&driver->mutex);
}

static status spawn_node(const struct driver_call *call, struct spawn *out, struct error *err)
{
    const struct driver_options *options = &call->driver->options;
    const char *argv[ARGUMENTS_MAX] = {options->program, node_role_names[call->node->role],
                                       "--config",       options->config->path,
                                       "--name",         call->node->name};
    uint32_t count = 6;
    if (options->log_level != NULL) {
        argv[count++] = "--log-level";
        argv[count++] = options->log_level;
    }
    if (options->supervisor_link != NULL) {
        argv[count++] = "--exit-with-supervisor";
        argv[count++] = options->supervisor_link;
    }
    struct spawn_options spawned = {
        .argv = argv,
        .environment = driver_environment(call->driver),
        .out = {.target = SPAWN_NULL},
        .err = {.target = SPAWN_INHERIT},
        .own_session = true,
    };
    return spawn_start(out, spawned, err);
}

static status wait_for_lock(const struct driver_call *call, const char *folder,
                            struct spawn *process, struct error *err)
{
    const char *name = call->node->name;
    uint32_t wait_ms = limit_ms(call, START_MS);
    uint64_t deadline_ms = clock_ms() + wait_ms;
    char words[ERROR_TEXT_SIZE / 2];
    for (;;) {
        pid_t holder;
        bool has_ended = spawn_poll(process);
        if (!has_ended && folder_lock_holder(folder, &holder) && holder == process->pid) {
            return STATUS_OK;
        }
        if (has_ended) {
            char how[SPAWN_END_SIZE];
            spawn_end_tell(process->end, how);
            log_reason(folder, words, sizeof words);
            if (words[0] != '\0') {
                return error_set(err, STATUS_IO, "%s %s at its start: %s", name, how, words);
            }
            log_tail(folder, words, sizeof words);
            return error_set(err, STATUS_IO, "%s %s at its start%s", name, how, words);
        }
        if (clock_ms() >= deadline_ms) {
            spawn_stop(process, 0);
            return error_set(err, STATUS_IO, "%s did not take its folder %.1000s within %u ms",
                             name, folder, wait_ms);
        }
        (void)poll(NULL, 0, NAP_MS); /* Locks can't be waited for with a deadline. */
    }
}

/* Except the broker, which listens on loopback or on all addresses: its host is a name for others.
 */
static status check_host(const struct driver_call *call, struct error *err)
{
    const struct cluster_node *node = call->node;
    struct error problem;
    if (node->role == NODE_BROKER) return STATUS_OK;
    if (address_check(node->host, 0, &problem) == STATUS_OK) return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "%s can't be started here: %.1000s; set [monitors] driver = command to start "
                     "nodes of other hosts",
                     node->name, problem.text);
}

static status start(const struct driver_call *call, const char *folder, struct error *err)
{
    pid_t holder;
    TRY(check_host(call, err));
    if (folder_lock_holder(folder, &holder)) {
        return error_set(err, STATUS_IO, "%s runs already, as process %ld", call->node->name,
                         (long)holder);
    }
    struct driver_child *child = memory_alloc(NULL, sizeof *child);
    if (child == NULL) return error_memory(err);
    *child = (struct driver_child){.name = call->node->name};
    status result = spawn_node(call, &child->process, err);
    if (result == STATUS_OK) {
        result = wait_for_lock(call, folder, &child->process, err);
        if (result == STATUS_OK || !child->process.ended) {
            keep_child(call, child); /* One that can't even be killed is reaped later. */
            return result;
        }
        spawn_close(&child->process);
    }
    memory_free(NULL, child, sizeof *child);
    return result;
}

static status signal_holder(const struct driver_call *call, const char *folder, int number,
                            struct error *err)
{
    enum folder_state state;
    bool is_fine = number == SIGKILL || number == SIGTERM;
    if (folder_lock_signal(folder, number, &state, err) != STATUS_OK) {
        return error_prefix(err, "%s", call->node->name);
    }
    if (state != FOLDER_FREE || is_fine) return STATUS_OK;
    return error_set(err, STATUS_IO, "%s does not run on this host", call->node->name);
}

/* Returns when the folder is free, or held by another process. */
static status end_holder(const struct driver_call *call, const char *folder, struct error *err)
{
    uint32_t wait_ms = limit_ms(call, KILL_MS);
    uint64_t deadline_ms = clock_ms() + wait_ms;
    pid_t holder = 0;
    pid_t found = 0;
    enum folder_state state = folder_lock_look(folder, &holder);
    if (state == FOLDER_FREE) return STATUS_OK;
    TRY(signal_holder(call, folder, SIGKILL, err));
    for (;;) {
        state = folder_lock_look(folder, &found);
        if (state == FOLDER_FREE || (state == FOLDER_HELD && found != holder)) return STATUS_OK;
        if (clock_ms() >= deadline_ms) {
            return error_set(err, STATUS_IO, "%s: process %ld does not end within %u ms of SIGKILL",
                             call->node->name, (long)holder, wait_ms);
        }
        (void)poll(NULL, 0, NAP_MS); /* See above. */
    }
}

status driver_process_do(const struct driver_call *call, struct error *err)
{
    const struct cluster_config *config = call->driver->options.config;
    const char *folder = cluster_node_folder(config, call->node->name, call->arena);
    if (folder == NULL) return error_memory(err);
    switch (call->action) {
    case DRIVER_START:
        return start(call, folder, err);
    case DRIVER_KILL:
        return end_holder(call, folder, err);
    case DRIVER_PAUSE:
        return signal_holder(call, folder, SIGSTOP, err);
    case DRIVER_RESUME:
        return signal_holder(call, folder, SIGCONT, err);
    default:
        break;
    }
    enum folder_state state;
    struct error ignored; /* SIGTERM may have ended it already. */
    TRY(signal_holder(call, folder, SIGTERM, err));
    /* A process that is stopped handles SIGTERM only after SIGCONT. */
    (void)!folder_lock_signal(folder, SIGCONT, &state, &ignored);
    return STATUS_OK;
}
