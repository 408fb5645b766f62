/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_node.c - three kinds of thread meet at one mailbox: the receiver, which checks seals; one
 * thread for each call of the driver; and the owner, which steps the role.
 *
 * An unknown sender may flood the socket: a datagram without a valid seal never passes the
 * receiver, and the number of datagrams in the mailbox is bounded.
 */
#include "cluster/supervise/monitor_node.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/memory.h"
#include "engine/file/clock.h"
#include "cluster/net/datagram_socket.h"
#include "cluster/store/folder_lock.h"
#include "cluster/net/peer_addresses.h"
#include "cluster/supervise/spawn.h"
#include "cluster/config/cluster_key.h"
#include "cluster/config/cluster_nodes.h"
#include "cluster/supervise/driver.h"
#include "cluster/supervise/log_tail.h"
#include "cluster/node/node_core.h"
#include "cluster/role/monitor/monitor.h"

enum {
    RECEIVE_MS = 200,
    WAITING_MAX = 10000,
    SWEEP_MS = 100,
    TELL_MS = 10000, /* Between two log lines about refused datagrams. */
    STOP_MS = 5000,  /* For calls of the driver that are running when the monitor stops. */
    NAP_MS = 10
};

_Static_assert((int)MONITOR_ADDRESS_BYTES == (int)SOCKET_ADDRESS_BYTES, "they are the same");

/* In the mailbox: a datagram, or the result of a drive. */
struct monitor_input {
    struct datagram *datagram; /* Owned; NULL: a drive. */
    struct monitor_address source;
    uint32_t node;
    struct error *error; /* Owned; NULL: it succeeded. */
};

struct monitor_process {
    struct node_core core;
    struct arena arena;
    struct datagram_key key;
    struct cluster_nodes nodes;
    struct monitor *monitor;
    struct monitor_effects effects;
    struct peer_addresses *peers; /* Of monitors, */
    uint32_t *peer_numbers;       /* by index of the node. */
    struct driver *driver;
    struct datagram_socket *socket;
    struct buf out;        /* The datagram to send. */
    struct mailbox *notes; /* Of struct monitor_input. */
    pthread_t receiver;
    bool has_receiver;
    atomic_bool closing;
    atomic_uint waiting_count; /* Datagrams in the mailbox. */
    atomic_uint drive_count;   /* Threads that wait for the driver. */
    atomic_ulong dropped_count;
    atomic_ulong refused_count;
    uint64_t next_tick_ms;
    uint64_t next_sweep_ms;
    uint64_t next_tell_ms;
    bool exited;
};

/* ---- receiving ---- */

static void take_datagram(struct monitor_process *process, struct text bytes,
                          const struct socket_address *from)
{
    struct error ignored;
    struct monitor_input note = {.source = {.size = from->size}};
    if (atomic_load(&process->waiting_count) >= WAITING_MAX) {
        atomic_fetch_add(&process->dropped_count, 1);
        return;
    }
    note.datagram = memory_alloc(NULL, sizeof *note.datagram);
    if (note.datagram == NULL) return; /* Lost, as any datagram may be. */
    if (datagram_decode(bytes, &process->key, note.datagram, &ignored) != STATUS_OK) {
        atomic_fetch_add(&process->refused_count, 1);
        memory_free(NULL, note.datagram, sizeof *note.datagram);
        return;
    }
    memcpy(note.source.bytes, from->bytes, sizeof note.source.bytes);
    atomic_fetch_add(&process->waiting_count, 1);
    mailbox_post(process->notes, &note);
}

static void *receiver_run(void *argument)
{
    struct monitor_process *process = argument;
    char bytes[DATAGRAM_BYTES_MAX + 1]; /* One more, so that a longer datagram is noticed. */
    struct socket_address from;
    while (!atomic_load(&process->closing)) {
        size_t size =
            datagram_socket_receive(process->socket, RECEIVE_MS, bytes, sizeof bytes, &from);
        if (size > 0) take_datagram(process, (struct text){bytes, (uint32_t)size}, &from);
    }
    return NULL;
}

static void note_done(struct monitor_process *process, struct monitor_input *note)
{
    if (note->datagram != NULL) atomic_fetch_sub(&process->waiting_count, 1);
    memory_free(NULL, note->datagram, sizeof *note->datagram);
    memory_free(NULL, note->error, sizeof *note->error);
}

/* ---- driving ---- */

struct drive {
    struct monitor_process *process;
    uint32_t node;
    enum drive_kind kind;
};

static void drive_done(struct monitor_process *process, uint32_t node, const struct error *problem)
{
    struct monitor_input note = {.node = node};
    if (problem != NULL) {
        note.error = memory_alloc(NULL, sizeof *note.error);
        ASSERT(note.error != NULL); /* Otherwise the process ends, as if killed. */
        *note.error = *problem;
    }
    mailbox_post(process->notes, &note);
}

static void *drive_run(void *argument)
{
    struct drive drive = *(struct drive *)argument;
    struct monitor_process *process = drive.process;
    const char *name = process->nodes.items[drive.node].name;
    struct error err;
    memory_free(NULL, argument, sizeof drive);
    status result = drive.kind == DRIVE_RESTART
                        ? driver_restart(process->driver, name, &err)
                        : driver_do(process->driver, DRIVER_START, name, &err);
    drive_done(process, drive.node, result == STATUS_OK ? NULL : &err);
    atomic_fetch_sub(&process->drive_count, 1); /* From here on the process may be closed. */
    return NULL;
}

static status start_drive(struct monitor_process *process, const struct monitor_effect *effect,
                          struct error *err)
{
    struct drive *drive = memory_alloc(NULL, sizeof *drive);
    if (drive == NULL) return error_memory(err);
    *drive = (struct drive){.process = process, .node = effect->node, .kind = effect->drive};
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    atomic_fetch_add(&process->drive_count, 1);
    int problem = pthread_create(&thread, &attributes, drive_run, drive);
    pthread_attr_destroy(&attributes);
    if (problem == 0) return STATUS_OK;
    atomic_fetch_sub(&process->drive_count, 1);
    memory_free(NULL, drive, sizeof *drive);
    return error_set(err, STATUS_IO, "cannot start a thread: %s", strerror(problem));
}

/* ---- effects ---- */

static void carry_drive(struct monitor_process *process, const struct monitor_effect *effect)
{
    struct error err;
    const char *name = process->nodes.items[effect->node].name;
    node_log_say(process->core.log, SAY_INFO,
                 "event=drive action=%s target=%s incarnation=%llu term=%llu holder=%u",
                 effect->drive == DRIVE_RESTART ? "restart" : "start", name,
                 (unsigned long long)effect->incarnation, (unsigned long long)effect->term.number,
                 effect->term.holder);
    if (start_drive(process, effect, &err) != STATUS_OK) {
        drive_done(process, effect->node, &err);
    }
}

static void carry_send(struct monitor_process *process, const struct monitor_effect *effect,
                       const struct socket_address *to)
{
    datagram_encode(&effect->datagram, &process->key, &process->out);
    if (process->out.failed) return; /* Lost, as any datagram may be. */
    /* A lost datagram is sent again by the protocol. */
    (void)datagram_socket_send(process->socket, to, process->out.bytes, process->out.size);
}

static void carry_order(const struct monitor_process *process, const struct datagram *datagram)
{
    const struct order *order = &datagram->order;
    node_log_say(process->core.log, SAY_INFO,
                 "event=order kind=%s target=%s incarnation=%llu term=%llu holder=%u",
                 order->kind == ORDER_KILL ? "kill" : "stop", datagram->to,
                 (unsigned long long)order->incarnation, (unsigned long long)order->term.number,
                 order->term.holder);
}

static void carry(struct monitor_process *process)
{
    struct monitor_effects *effects = &process->effects;
    for (uint32_t i = 0; i < effects->count; i++) {
        const struct monitor_effect *effect = &effects->items[i];
        struct socket_address to = {.size = effect->address.size};
        switch (effect->kind) {
        case MONITOR_SEND_TO_MONITOR:
            if (peer_addresses_find(process->peers, process->peer_numbers[effect->node], &to)) {
                carry_send(process, effect, &to);
            }
            break;
        case MONITOR_SEND:
            if (effect->datagram.kind == DATAGRAM_ORDER) carry_order(process, &effect->datagram);
            memcpy(to.bytes, effect->address.bytes, sizeof to.bytes);
            carry_send(process, effect, &to);
            break;
        case MONITOR_DRIVE:
            carry_drive(process, effect);
            break;
        case MONITOR_SAY:
            node_log_say(process->core.log, effect->level, "%s", effect->line);
            break;
        case MONITOR_EXIT:
            process->exited = true;
            break;
        }
    }
    monitor_effects_reset(effects);
}

static void step(struct monitor_process *process, struct monitor_event *event)
{
    event->now_ms = clock_ms();
    monitor_step(process->monitor, event, &process->effects);
    carry(process);
}

/* ---- the loop ---- */

static void step_note(struct monitor_process *process, struct monitor_input *note)
{
    struct monitor_event event = {
        .kind = note->datagram != NULL ? MONITOR_HEARD : MONITOR_DRIVEN,
        .datagram = note->datagram,
        .source = note->source,
        .node = note->node,
        .error = note->error,
    };
    if (event.kind == MONITOR_DRIVEN) {
        const char *name = process->nodes.items[note->node].name;
        bool is_well = note->error == NULL;
        node_log_say(process->core.log, is_well ? SAY_INFO : SAY_WARN,
                     "event=driven target=%s reason=\"%s\"", name,
                     is_well ? "ok" : note->error->text);
    }
    step(process, &event);
    note_done(process, note);
}

static void tell_losses(struct monitor_process *process, uint64_t now_ms)
{
    if (now_ms < process->next_tell_ms) return;
    process->next_tell_ms = now_ms + TELL_MS;
    unsigned long refused = atomic_exchange(&process->refused_count, 0);
    unsigned long dropped = atomic_exchange(&process->dropped_count, 0);
    if (refused == 0 && dropped == 0) return;
    node_log_say(process->core.log, SAY_WARN, "event=datagrams-refused count=%lu dropped=%lu",
                 refused, dropped);
}

static void tick(struct monitor_process *process)
{
    struct monitor_event event = {.kind = MONITOR_TICK};
    step(process, &event);
    uint64_t now_ms = clock_ms();
    process->next_tick_ms = now_ms + MONITOR_TICK_MS;
    tell_losses(process, now_ms);
    if (now_ms < process->next_sweep_ms) return;
    process->next_sweep_ms = now_ms + SWEEP_MS;
    driver_sweep(process->driver);
}

static status run(struct monitor_process *process, struct error *err)
{
    struct node_core *core = &process->core;
    heartbeat_thread_state(core->heartbeat_thread, HEARTBEAT_UP);
    if (core->options.ready != NULL) core->options.ready(core->options.context);
    while (!process->exited) {
        struct monitor_input note;
        uint64_t now_ms = clock_ms();
        uint64_t wait_ms = process->next_tick_ms > now_ms ? process->next_tick_ms - now_ms : 0;
        heartbeat_thread_progress(core->heartbeat_thread);
        if (!core->told_stop && node_core_is_to_stop(core)) {
            node_core_tell_stop(core);
            struct monitor_event event = {.kind = MONITOR_STOP};
            step(process, &event);
        } else if (wait_ms > 0 && mailbox_take(process->notes, (uint32_t)wait_ms, &note)) {
            step_note(process, &note);
        } else {
            tick(process);
        }
        if (process->effects.failed) return error_memory(err);
    }
    return STATUS_OK;
}

/* ---- opening and closing ---- */

static status make_role(struct monitor_process *process, struct error *err)
{
    const struct cluster_config *config = process->core.options.config;
    uint32_t count = process->nodes.count;
    struct monitor_node *nodes = arena_array(&process->arena, struct monitor_node, count);
    struct peer_addresses_entry entries[CONFIG_MONITORS_MAX];
    uint32_t monitor_count = 0;
    process->peer_numbers = arena_array(&process->arena, uint32_t, count);
    if (nodes == NULL || process->peer_numbers == NULL) return error_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        const struct cluster_node *node = &process->nodes.items[i];
        nodes[i] = (struct monitor_node){.name = text_of(node->name), .role = node->role};
        if (node->role != NODE_MONITOR) continue;
        process->peer_numbers[i] = monitor_count;
        entries[monitor_count++] = (struct peer_addresses_entry){node->host, node->port};
    }
    struct monitor_config options = {
        .name = text_of(process->core.options.name),
        .nodes = nodes,
        .node_count = count,
        .heartbeat_period_ms = config->heartbeat_period_ms,
        .failure_timeout_ms = config->failure_timeout_ms,
        .stall_timeout_ms = config->stall_timeout_ms,
        .start_timeout_ms = config->failure_timeout_ms + config->start_timeout_ms,
        .lease_ms = config->lease_ms,
        .incarnation = process->core.incarnation,
        .seed = process->core.seed,
    };
    TRY(monitor_create(&options, clock_ms(), &process->monitor, err));
    return peer_addresses_open(entries, monitor_count, &process->peers, err);
}

/* From driver_sweep, on the owner's thread. */
static void on_ended(void *context, const char *node, const struct spawn_end *end)
{
    struct monitor_process *process = context;
    char how[SPAWN_END_SIZE];
    char reason[DATAGRAM_TEXT_SIZE];
    struct error problem;
    spawn_end_tell(*end, how);
    node_log_say(process->core.log, SAY_INFO, "event=child-ended target=%s how=\"%s\"", node, how);
    /* A node that was killed or told to stop says nothing about its next incarnation, nor does one
     * that already has a successor. */
    bool is_failure = end->code != 0 && end->signal != SIGKILL;
    const struct cluster_node *found = cluster_nodes_find(&process->nodes, node);
    struct arena arena = {0};
    const char *folder = cluster_node_folder(process->core.options.config, node, &arena);
    pid_t holder;
    if (is_failure && folder != NULL && folder_lock_look(folder, &holder) == FOLDER_FREE) {
        log_reason(folder, reason, sizeof reason);
        error_write(&problem, STATUS_IO, "%s%s%s", how, reason[0] != '\0' ? ": " : "", reason);
        struct monitor_event event = {
            .kind = MONITOR_ENDED,
            .node = (uint32_t)(found - process->nodes.items),
            .error = &problem,
        };
        step(process, &event);
    }
    arena_done(&arena);
}

static status make_driver(struct monitor_process *process, struct error *err)
{
    char program[PATH_MAX];
    TRY(spawn_self(program, sizeof program, err));
    struct driver_options options = {
        .config = process->core.options.config,
        .program = arena_copy_string(&process->arena, text_of(program)),
        .log_level = process->core.options.level_name,
        .supervisor_link = process->core.options.supervisor_link,
        .context = process,
        .ended = on_ended,
    };
    if (options.program == NULL) return error_memory(err);
    return driver_open(&options, &process->driver, err);
}

static status start(struct monitor_process *process, struct error *err)
{
    const struct cluster_config *config = process->core.options.config;
    const char *name = process->core.options.name;
    TRY(cluster_key_read(config->key_file, &process->key, err));
    TRY(cluster_nodes_list(config, &process->arena, &process->nodes, err));
    const struct cluster_node *self = cluster_nodes_find(&process->nodes, name);
    if (self == NULL || self->role != NODE_MONITOR) {
        return error_set(err, STATUS_USAGE, "%s has no monitor %s", config->path, name);
    }
    TRY(mailbox_create(sizeof(struct monitor_input), &process->notes, err));
    TRY(make_driver(process, err));
    TRY(make_role(process, err));
    TRY(datagram_socket_open(self->host, self->port, &process->socket, err));
    int problem = pthread_create(&process->receiver, NULL, receiver_run, process);
    if (problem != 0) {
        return error_set(err, STATUS_IO, "cannot start a thread: %s", strerror(problem));
    }
    process->has_receiver = true;
    return STATUS_OK;
}

/* Whether all calls of the driver have returned. */
static bool wait_for_drives(struct monitor_process *process)
{
    uint64_t deadline_ms = clock_ms() + node_core_deadline(&process->core, STOP_MS);
    while (atomic_load(&process->drive_count) > 0) {
        if (clock_ms() >= deadline_ms) return false;
        (void)poll(NULL, 0, NAP_MS); /* Detached threads, which can be left behind. */
    }
    return true;
}

static status finish(struct monitor_process *process, status result)
{
    struct monitor_input note;
    bool is_alone = wait_for_drives(process);
    atomic_store(&process->closing, true);
    if (process->has_receiver) pthread_join(process->receiver, NULL);
    datagram_socket_close(process->socket);
    peer_addresses_close(process->peers);
    sodium_memzero(&process->key, sizeof process->key);
    monitor_destroy(process->monitor);
    monitor_effects_done(&process->effects);
    buf_done(&process->out);
    result = node_core_close(&process->core, result);
    if (!is_alone) return result; /* The process is about to end, and those threads with it. */
    while (process->notes != NULL && mailbox_take(process->notes, 0, &note)) {
        note_done(process, &note);
    }
    mailbox_destroy(process->notes);
    driver_close(process->driver);
    arena_done(&process->arena);
    memory_free(NULL, process, sizeof *process);
    return result;
}

status monitor_node_run(const struct node_options *options, struct error *err)
{
    struct monitor_process *process = memory_alloc(NULL, sizeof *process);
    if (process == NULL) return error_memory(err);
    *process = (struct monitor_process){.exited = false};
    status result = node_core_open(&process->core, options, NODE_MONITOR, err);
    if (result == STATUS_OK) result = start(process, err);
    if (result == STATUS_OK) result = run(process, err);
    if (result != STATUS_OK) {
        node_log_say(process->core.log, SAY_ERROR, "event=failed reason=\"%s\"", err->text);
    }
    return finish(process, result);
}
