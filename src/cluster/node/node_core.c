/* SPDX-License-Identifier: Apache-2.0 */
/* node_core.c - the bus and the mailbox, with crash points around sending and acknowledging. */
#include "cluster/node/node_core.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cluster/node/crash_point.h"
#include "engine/base/hash.h"
#include "engine/base/memory.h"
#include "cluster/bus/bus_amqp.h"
#include "engine/file/clock.h"
#include "engine/file/file.h"
#include "cluster/store/secret_file.h"
#include "cluster/node/service_notify.h"
#include "cluster/config/cluster_nodes.h"
#include "cluster/wire/message.h"

enum {
    LOCK_WAIT_MS = 5000, /* Our predecessor may be just about to end. */
    CLOSE_MS = 5000,
    INBOX_PREFETCH = 256,
    CONFIRM_WINDOW = 256,
    BUS_DEADLINE_MS = 10000,
    VIEWS_MAX = 64,      /* In the mailbox; newer ones are dropped, as monitors send them again. */
    QUESTION_MS = 15000, /* Longer than any role waits for an answer. */
    BROKER_LOOK_MS = 100,
    URI_LIMIT = 1024
};

static void tell_trouble(const struct node_core *core, const char *what, const char *why)
{
    char text[512];
    if (core->options.trouble == NULL) return;
    (void)snprintf(text, sizeof text, "%s (%s); trying again", what, why); /* Cut at the end. */
    core->options.trouble(core->options.context, text);
}

static void heard(struct bus_listener *listener, struct bus_event *bus_event)
{
    struct node_core *core = (struct node_core *)listener;
    switch (bus_event->kind) {
    case BUS_CONNECTED:
        node_log_say(core->log, SAY_INFO, "event=connected");
        break;
    case BUS_DISCONNECTED:
        node_log_say(core->log, SAY_WARN, "event=disconnected reason=\"%s\"", bus_event->reason);
        tell_trouble(core, "no broker", bus_event->reason);
        break;
    case BUS_RETURNED:
        node_log_say(core->log, SAY_WARN, "event=returned reason=no-queue");
        break;
    case BUS_BLOCKED:
        node_log_say(core->log, SAY_WARN, "event=broker-blocked");
        tell_trouble(core, "the broker takes no messages", "its memory or its disk is full");
        break;
    case BUS_UNBLOCKED:
        node_log_say(core->log, SAY_INFO, "event=broker-unblocked");
        break;
    case BUS_DELIVERY:
    case BUS_CONFIRMED:
    case BUS_MEASURED:
        break;
    }
    struct event event = {.kind = EVENT_BUS, .bus = *bus_event};
    mailbox_post(core->mailbox, &event);
}

/* ---- messages of monitors, on the heartbeat thread ---- */

static void on_stop(void *context)
{
    struct node_core *core = context;
    atomic_store(&core->ordered_stop, true);
}

static void *copy_of(const void *bytes, size_t size)
{
    void *copy = memory_alloc(NULL, size);
    if (copy != NULL) memcpy(copy, bytes, size);
    return copy;
}

/* Views are dropped while the main loop is late: the next one replaces them. Without memory they
 * are lost, as a datagram may be. */
static void on_view(void *context, const struct view *view)
{
    struct node_core *core = context;
    if (atomic_load(&core->view_count) >= VIEWS_MAX) return;
    struct event event = {.kind = EVENT_VIEW, .view = copy_of(view, sizeof *view)};
    if (event.view == NULL) return;
    atomic_fetch_add(&core->view_count, 1);
    mailbox_post(core->mailbox, &event);
}

/* Not dropped: they are few, and sent only once. */
static void on_events(void *context, const struct event_list *events)
{
    struct node_core *core = context;
    struct event event = {.kind = EVENT_HAPPENED, .happened = copy_of(events, sizeof *events)};
    if (event.happened != NULL) mailbox_post(core->mailbox, &event);
}

void node_core_event_done(struct event *event)
{
    if (event->kind == EVENT_VIEW) {
        memory_free(NULL, (void *)(uintptr_t)event->view, sizeof *event->view);
    } else if (event->kind == EVENT_HAPPENED) {
        memory_free(NULL, (void *)(uintptr_t)event->happened, sizeof *event->happened);
    }
    event_done(event);
}

/* ---- starting ---- */

static uint64_t random_word(void)
{
    uint64_t word = 0;
    /* Without random bytes the time is enough: no secret depends on it. */
    if (getrandom(&word, sizeof word, GRND_NONBLOCK) != sizeof word) word = clock_ms();
    return hash_combine(word, (uint64_t)clock_wall_ms());
}

static status start_heartbeats(struct node_core *core, enum node_role role, struct error *err)
{
    bool is_gateway = role == NODE_GATEWAY;
    struct heartbeat_thread_options options = {
        .config = core->options.config,
        .name = core->options.name,
        .role = role,
        .incarnation = core->incarnation,
        .log = core->log,
        .supervisor_link = core->supervisor_link,
        .context = core,
        .stop = on_stop,
        .view = is_gateway ? on_view : NULL,
        .events = is_gateway ? on_events : NULL,
    };
    return heartbeat_thread_open(&options, &core->heartbeat_thread, err);
}

status node_core_open(struct node_core *core, const struct node_options *options,
                      enum node_role role, struct error *err)
{
    *core = (struct node_core){.listener = {.event = heard},
                               .options = *options,
                               .supervisor_link = {.folder = options->supervisor_link}};
    memory_keep_freed();
    struct crash_owner owner = {.node = options->name, .role = node_role_names[role]};
    TRY(crash_points_arm(getenv("MILLRACE_CRASH"), owner, err));
    core->folder = cluster_node_folder(options->config, options->name, &core->arena);
    if (core->folder == NULL) return error_memory(err);
    TRY(folder_lock_open(core->folder, LOCK_WAIT_MS, &core->lock, err));
    TRY(node_log_open(core->folder, options->name, options->level, &core->log, err));
    core->seed = random_word();
    core->incarnation = (uint64_t)clock_wall_ms();
    node_log_say(core->log, SAY_INFO, "event=started role=%s incarnation=%llu",
                 node_role_names[role], (unsigned long long)core->incarnation);
    TRY(mailbox_create(sizeof(struct event), &core->mailbox, err));
    return start_heartbeats(core, role, err);
}

/* A private broker writes its URI to a file; it may still be starting. */
static status find_broker(struct node_core *core, struct error *err)
{
    const struct cluster_config *config = core->options.config;
    const char *path = file_path(config->data_dir, TEXT_LITERAL("broker/uri"), &core->arena);
    struct text uri;
    bool is_told = false;
    if (path == NULL) return error_memory(err);
    while (!file_exists(path)) {
        if (config->monitor_count == 0) {
            return error_set(
                err, STATUS_USAGE,
                "%s says `broker = start`, and no broker runs: give --broker URI, run `millrace "
                "broker`, or let `millrace up` start all nodes",
                config->path);
        }
        if (!is_told) tell_trouble(core, "no broker", "it was not started yet");
        is_told = true;
        if (node_core_is_to_stop(core)) {
            return error_set(err, STATUS_CANCELLED, "stopped while there was no broker");
        }
        heartbeat_thread_progress(core->heartbeat_thread);
        (void)poll(NULL, 0, BROKER_LOOK_MS); /* A signal ends it earlier. */
    }
    TRY(secret_file_read(path, URI_LIMIT, &core->arena, &uri, err));
    core->options.broker = uri.bytes;
    return STATUS_OK;
}

status node_core_connect(struct node_core *core, uint32_t work_prefetch, struct error *err)
{
    const struct cluster_config *config = core->options.config;
    uint32_t count = config->gateway_count + config->worker_count;
    const char **nodes = arena_array(&core->arena, const char *, count + 1);
    if (nodes == NULL) return error_memory(err);
    for (uint32_t i = 0; i < config->gateway_count; i++) {
        nodes[i] = config->gateways[i].name;
    }
    for (uint32_t i = 0; i < config->worker_count; i++) {
        nodes[config->gateway_count + i] = config->workers[i].name;
    }
    if (core->options.broker == NULL && config->broker_count == 0) TRY(find_broker(core, err));
    bool has_broker = core->options.broker != NULL;
    struct bus_amqp_options options = {
        .cluster = config->name,
        .node = core->options.name,
        .nodes = nodes,
        .node_count = count,
        .brokers = has_broker ? &core->options.broker : config->brokers,
        .broker_count = has_broker ? 1 : config->broker_count,
        .work_count = config->work_queues,
        .limits = {.inbox_prefetch = INBOX_PREFETCH,
                   .work_prefetch = work_prefetch,
                   .confirm_window = CONFIRM_WINDOW,
                   .confirm_window_bytes = (uint64_t)64 << 20,
                   .deadline_ms = BUS_DEADLINE_MS},
        .ca = config->broker_ca,
        .certificate = config->broker_certificate,
        .key = config->broker_key,
        .queues = config->queues == CONFIG_QUEUES_QUORUM ? BUS_AMQP_QUORUM : BUS_AMQP_TRANSIENT,
        .seed = core->seed,
    };
    return bus_amqp_open(&options, &core->listener, &core->bus, err);
}

bool node_core_is_to_stop(struct node_core *core)
{
    bool by_signal = core->options.stop != NULL && atomic_load(core->options.stop);
    bool is_free = supervisor_link_look(&core->supervisor_link, clock_ms());
    return by_signal || is_free || atomic_load(&core->ordered_stop);
}

uint32_t node_core_deadline(const struct node_core *core, uint32_t usual_ms)
{
    return core->supervisor_link.is_lost && usual_ms > SUPERVISOR_LINK_STOP_MS
               ? SUPERVISOR_LINK_STOP_MS
               : usual_ms;
}

static const char *why_stopped(const struct node_core *core)
{
    if (core->supervisor_link.is_lost) return "supervisor-gone";
    return atomic_load(&core->ordered_stop) ? "ordered" : "signal";
}

void node_core_tell_stop(struct node_core *core)
{
    core->told_stop = true;
    heartbeat_thread_state(core->heartbeat_thread, HEARTBEAT_STOPPING);
    node_log_say(core->log, SAY_INFO, "event=stopping reason=%s", why_stopped(core));
    (void)service_notify(SERVICE_STOPPING); /* Most nodes have no service manager. */
}

/* The next event, or a tick when none comes in time. */
static void take(struct node_core *core, struct event *out_event)
{
    uint64_t now_ms = clock_ms();
    heartbeat_thread_progress(core->heartbeat_thread);
    if (!core->told_stop && node_core_is_to_stop(core)) {
        node_core_tell_stop(core);
        *out_event = (struct event){.kind = EVENT_STOP, .now_ms = now_ms};
        return;
    }
    uint32_t wait_ms = core->next_tick_ms > now_ms ? (uint32_t)(core->next_tick_ms - now_ms) : 0;
    if (wait_ms == 0 || !mailbox_take(core->mailbox, wait_ms, out_event)) {
        *out_event = (struct event){.kind = EVENT_TICK};
        core->next_tick_ms = clock_ms() + NODE_TICK_MS;
    }
    out_event->now_ms = clock_ms();
    if (out_event->kind == EVENT_VIEW) atomic_fetch_sub(&core->view_count, 1);
    if (event_is_bus(out_event, BUS_CONFIRMED)) CRASH_POINT("before-confirm");
    if (!event_is_bus(out_event, BUS_CONNECTED) || core->told_ready) return;
    core->told_ready = true;
    if (!core->told_stop) heartbeat_thread_state(core->heartbeat_thread, HEARTBEAT_UP);
    if (core->options.ready != NULL) core->options.ready(core->options.context);
}

status node_core_run(struct node_core *core, uint32_t usual_ms, node_step *step, void *context,
                     struct error *err)
{
    uint64_t stop_ms = 0;
    while (!core->exited) {
        struct event event;
        take(core, &event);
        if (event.kind == EVENT_STOP) stop_ms = event.now_ms + node_core_deadline(core, usual_ms);
        bool is_late = stop_ms != 0 && event.now_ms >= stop_ms;
        bool is_confirm = event_is_bus(&event, BUS_CONFIRMED);
        step(context, &event);
        if (is_confirm) CRASH_POINT("after-confirm");
        if (core->effects.failed) return error_memory(err);
        if (is_late) break;
    }
    return STATUS_OK;
}

/* The byte after the version is the kind of the message. */
static enum message_kind sent_kind(const struct effect_send *send)
{
    return send->bytes.size > 1 ? (enum message_kind)send->bytes.bytes[1] : MESSAGE_KINDS;
}

static bool is_question(const struct effect_send *send)
{
    switch (sent_kind(send)) {
    case MESSAGE_MANIFEST:
    case MESSAGE_STORED:
    case MESSAGE_SYNC:
    case MESSAGE_STATUS:
    case MESSAGE_ASK:
    case MESSAGE_FETCH:
    case MESSAGE_RESULT:
    case MESSAGE_LIST:
    case MESSAGE_JOBS:
        return true;
    default:
        return false;
    }
}

static void carry_send(struct node_core *core, struct effect_send *send)
{
    enum message_kind kind = sent_kind(send);
    bool is_emission = kind == MESSAGE_PRODUCER_END;
    bool is_result = kind == MESSAGE_RESULT;
    if (is_emission) CRASH_POINT("before-emit");
    if (is_result) CRASH_POINT("before-result");
    CRASH_POINT("before-publish");
    /* Old questions and answers would only fill the inbox of a node that is down. */
    struct bus_address to = {.expires_ms = is_question(send) ? QUESTION_MS : 0,
                             .kind = send->to[0] == '\0' ? BUS_WORK : BUS_INBOX,
                             .node = text_of(send->to),
                             .work = send->work};
    bus_send(core->bus, &to, &send->bytes, send->token);
    CRASH_POINT("after-publish");
    if (is_emission) CRASH_POINT("after-emit");
    if (is_result) CRASH_POINT("after-result");
}

bool node_core_carry(struct node_core *core, struct effect *effect)
{
    switch (effect->kind) {
    case EFFECT_SEND:
        carry_send(core, &effect->send);
        return true;
    case EFFECT_REVOKE:
        bus_revoke(core->bus, effect->revoked_token);
        return true;
    case EFFECT_ACK:
        CRASH_POINT("before-acknowledge");
        bus_acknowledge(core->bus, effect->delivery);
        CRASH_POINT("after-acknowledge");
        return true;
    case EFFECT_WORK:
        bus_work(core->bus, effect->takes_work);
        return true;
    case EFFECT_MEASURE:
        bus_measure(core->bus);
        return true;
    case EFFECT_EXIT:
        core->exited = true;
        return true;
    case EFFECT_SAY:
        node_log_say(core->log, effect->say.level, "%.*s", (int)effect->say.line.size,
                     (const char *)effect->say.line.bytes);
        return true;
    default:
        return false;
    }
}

status node_core_close(struct node_core *core, status result)
{
    bool is_planned = core->log != NULL && node_core_is_to_stop(core);
    if (is_planned && result == STATUS_CANCELLED) result = STATUS_OK;
    bus_close(core->bus, node_core_deadline(core, CLOSE_MS));
    heartbeat_thread_close(core->heartbeat_thread, is_planned && result == STATUS_OK
                                                       ? HEARTBEAT_THREAD_PLANNED
                                                       : HEARTBEAT_THREAD_FAILED);
    struct event event;
    while (core->mailbox != NULL && mailbox_take(core->mailbox, 0, &event)) {
        node_core_event_done(&event);
    }
    node_log_say(core->log, SAY_INFO, "event=stopped");
    mailbox_destroy(core->mailbox);
    node_log_close(core->log);
    folder_lock_close(core->lock);
    effects_done(&core->effects);
    arena_done(&core->arena);
    return result;
}
