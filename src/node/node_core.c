/* node_core.c - the bus and the mailbox, and the crash points around what goes over the bus. */
#include "node/node_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/crash_point.h"
#include "base/hash.h"
#include "io/bus_amqp.h"
#include "io/clock.h"
#include "io/file.h"
#include "wire/message.h"

enum {
    LOCK_WAIT_MS = 5000, /* Somebody of our name may be just about to end. */
    CLOSE_MS = 5000,
    INBOX_PREFETCH = 256,
    CONFIRM_WINDOW = 256,
    BUS_DEADLINE_MS = 10000,
    QUESTION_MS = 15000 /* Longer than anybody waits for an answer. */
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
    struct event event = {.token = bus_event->token, .delivery = bus_event->delivery};
    switch (bus_event->kind) {
    case BUS_CONNECTED:
        event.kind = EVENT_CONNECTED;
        node_log_say(core->log, SAY_INFO, "event=connected");
        break;
    case BUS_DISCONNECTED:
        event.kind = EVENT_DISCONNECTED;
        node_log_say(core->log, SAY_WARN, "event=disconnected reason=\"%s\"", bus_event->text);
        tell_trouble(core, "no broker", bus_event->text);
        break;
    case BUS_DELIVERY:
        event.kind = EVENT_DELIVERY;
        event.from_work = bus_event->queue == BUS_WORK;
        event.work = bus_event->work;
        event.bytes = bus_event->bytes;
        bus_event->bytes = (struct buf){0};
        break;
    case BUS_CONFIRMED:
        event.kind = EVENT_CONFIRMED;
        break;
    case BUS_RETURNED:
        event.kind = EVENT_RETURNED;
        node_log_say(core->log, SAY_WARN, "event=returned reason=no-queue");
        break;
    case BUS_BLOCKED:
        node_log_say(core->log, SAY_WARN, "event=broker-blocked");
        tell_trouble(core, "the broker takes no messages", "its memory or its disk is full");
        event.kind = EVENT_BLOCKED;
        event.blocked = true;
        break;
    case BUS_UNBLOCKED:
        node_log_say(core->log, SAY_INFO, "event=broker-unblocked");
        event.kind = EVENT_BLOCKED;
        break;
    }
    mailbox_post(core->mailbox, &event);
}

static uint64_t random_word(void)
{
    uint64_t word = 0;
    /* Where there is no randomness, the time does: nothing secret comes of it. */
    if (getrandom(&word, sizeof word, GRND_NONBLOCK) != sizeof word) word = clock_ms();
    return hash_combine(word, (uint64_t)clock_wall_ms());
}

status node_core_open(struct node_core *core, const struct node_options *options, const char *role,
                      struct error *err)
{
    *core = (struct node_core){.listener = {.event = heard}, .options = *options};
    struct crash_owner owner = {.node = options->name, .role = role};
    TRY(crash_points_arm(getenv("MILLRACE_CRASH"), owner, err));
    core->folder = file_path(options->config->data_dir, text_of(options->name), &core->arena);
    if (core->folder == NULL) return error_memory(err);
    TRY(folder_lock_open(core->folder, LOCK_WAIT_MS, &core->lock, err));
    TRY(node_log_open(core->folder, options->name, options->level, &core->log, err));
    core->incarnation = random_word();
    node_log_say(core->log, SAY_INFO, "event=started role=%s incarnation=%016llx", role,
                 (unsigned long long)core->incarnation);
    return mailbox_create(sizeof(struct event), &core->mailbox, err);
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
    bool has_broker = core->options.broker != NULL;
    if (!has_broker && config->broker_count == 0) {
        return error_set(err, STATUS_USAGE,
                         "%s says `broker = start`: give --broker URI, or let `millrace up` start "
                         "this node",
                         config->path);
    }
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
        .queues = config->queues == CONFIG_QUEUES_QUORUM ? BUS_AMQP_QUORUM : BUS_AMQP_TRANSIENT,
        .seed = core->incarnation,
    };
    return bus_amqp_open(&options, &core->listener, &core->bus, err);
}

void node_core_take(struct node_core *core, struct event *out_event)
{
    uint64_t now_ms = clock_ms();
    bool is_stop = core->options.stop != NULL && atomic_load(core->options.stop);
    if (is_stop && !core->told_stop) {
        core->told_stop = true;
        node_log_say(core->log, SAY_INFO, "event=stopping");
        *out_event = (struct event){.kind = EVENT_STOP, .now_ms = now_ms};
        return;
    }
    uint32_t wait_ms = core->next_tick_ms > now_ms ? (uint32_t)(core->next_tick_ms - now_ms) : 0;
    if (wait_ms == 0 || !mailbox_take(core->mailbox, wait_ms, out_event)) {
        *out_event = (struct event){.kind = EVENT_TICK};
        core->next_tick_ms = clock_ms() + NODE_TICK_MS;
    }
    out_event->now_ms = clock_ms();
    if (out_event->kind == EVENT_CONFIRMED) CRASH_POINT("before-confirm");
    if (out_event->kind != EVENT_CONNECTED || core->told_ready) return;
    core->told_ready = true;
    if (core->options.ready != NULL) core->options.ready(core->options.context);
}

/* The byte after the version is the kind of message. */
static enum message_kind sent_kind(const struct effect *effect)
{
    return effect->bytes.size > 1 ? (enum message_kind)effect->bytes.bytes[1] : MESSAGE_KINDS;
}

static bool is_question(const struct effect *effect)
{
    switch (sent_kind(effect)) {
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

static void carry_send(struct node_core *core, struct effect *effect)
{
    enum message_kind kind = sent_kind(effect);
    bool is_emission = kind == MESSAGE_LANE_END;
    bool is_result = kind == MESSAGE_RESULT;
    if (is_emission) CRASH_POINT("before-emit");
    if (is_result) CRASH_POINT("before-result");
    CRASH_POINT("before-publish");
    /* Questions and answers that nobody waits for any more only fill the inbox of who is away. */
    struct bus_address to = {.expires_ms = is_question(effect) ? QUESTION_MS : 0,
                             .kind = effect->to[0] == '\0' ? BUS_WORK : BUS_INBOX,
                             .node = text_of(effect->to),
                             .work = effect->work};
    bus_send(core->bus, &to, &effect->bytes, effect->token);
    CRASH_POINT("after-publish");
    if (is_emission) CRASH_POINT("after-emit");
    if (is_result) CRASH_POINT("after-result");
}

bool node_core_carry(struct node_core *core, struct effect *effect)
{
    switch (effect->kind) {
    case EFFECT_SEND:
        carry_send(core, effect);
        return true;
    case EFFECT_REVOKE:
        bus_revoke(core->bus, effect->token);
        return true;
    case EFFECT_ACK:
        CRASH_POINT("before-acknowledge");
        bus_acknowledge(core->bus, effect->delivery);
        CRASH_POINT("after-acknowledge");
        return true;
    case EFFECT_WORK:
        bus_work(core->bus, effect->yes);
        return true;
    case EFFECT_SAY:
        node_log_say(core->log, effect->level, "%.*s", (int)effect->bytes.size,
                     (const char *)effect->bytes.bytes);
        return true;
    default:
        return false;
    }
}

void node_core_close(struct node_core *core)
{
    bus_close(core->bus, CLOSE_MS);
    struct event event;
    while (core->mailbox != NULL && mailbox_take(core->mailbox, 0, &event)) {
        buf_done(&event.bytes);
    }
    node_log_say(core->log, SAY_INFO, "event=stopped");
    mailbox_destroy(core->mailbox);
    node_log_close(core->log);
    folder_lock_close(core->lock);
    arena_done(&core->arena);
}
