/* SPDX-License-Identifier: Apache-2.0 */
/* bus_memory.h - a bus over a broker in memory, for the suite that checks every bus.
 *
 *     bus_memory_open -> (bus_send ... | bus_memory_pump)* -> bus_close
 *
 * Nothing happens but in bus_memory_pump, which also calls the listener. It does what bus_amqp
 * does: connects, declares all queues, publishes within the window, declares again when a message
 * was returned, connects anew when a queue under it is gone. bus_close pumps until nothing waits,
 * without a clock: it stops when the broker does nothing more.
 *
 * Memory: the broker is borrowed and must live longer. Threads: one.
 */
#ifndef UNIT_BUS_MEMORY_H
#define UNIT_BUS_MEMORY_H

#include <stdio.h>

#include "engine/base/arena.h"
#include "engine/base/assert.h"
#include "cluster/bus/bus.h"
#include "cluster/bus/bus_tracker.h"
#include "cluster/sim/broker_memory.h"

struct bus_memory_options {
    const char *cluster;
    const char *node;         /* Whose inbox this bus takes from. */
    const char *const *nodes; /* All nodes of the cluster: their inboxes are declared. */
    uint32_t node_count;
    uint32_t work_count;
    struct bus_limits limits; /* The deadline means nothing here. */
    bool durable;
};

struct bus_memory {
    struct bus bus;
    struct broker_memory *broker;
    struct bus_memory_options options; /* Texts in the arena. */
    struct bus_listener *listener;
    struct outbox *outbox;
    struct inbox *inbox;
    uint64_t connection; /* 0: none. */
    bool is_working;
    bool wants_work;
    bool wants_measure;
    bool is_closing;
    struct arena arena;
};

static void inbox_name(const struct bus_memory *memory, const char *node,
                       char out[BROKER_QUEUE_NAME_SIZE])
{
    struct bus_address address = {.kind = BUS_INBOX, .node = text_of(node)};
    broker_queue_name(memory->options.cluster, &address, out);
}

static void work_name(const struct bus_memory *memory, uint32_t work,
                      char out[BROKER_QUEUE_NAME_SIZE])
{
    struct bus_address address = {.kind = BUS_WORK, .work = work};
    broker_queue_name(memory->options.cluster, &address, out);
}

static void tell(struct bus_memory *memory, struct bus_event *event)
{
    memory->listener->event(memory->listener, event);
}

static void tell_disconnected(struct bus_memory *memory, const char *text)
{
    struct bus_event event = {.kind = BUS_DISCONNECTED};
    snprintf(event.reason, sizeof event.reason, "%s", text);
    tell(memory, &event);
}

static void tell_settled(struct bus_memory *memory, enum bus_event_kind kind, struct buf *settled)
{
    for (size_t at = 0; at + sizeof(uint64_t) <= settled->size; at += sizeof(uint64_t)) {
        struct bus_event event = {.kind = kind};
        memcpy(&event.token, settled->bytes + at, sizeof event.token);
        tell(memory, &event);
    }
    buf_done(settled);
}

static void declare_all(struct bus_memory *memory)
{
    char name[BROKER_QUEUE_NAME_SIZE];
    for (uint32_t i = 0; i < memory->options.node_count; i++) {
        inbox_name(memory, memory->options.nodes[i], name);
        broker_memory_declare(memory->broker, name, true, memory->options.durable);
    }
    for (uint32_t i = 0; i < memory->options.work_count; i++) {
        work_name(memory, i, name);
        broker_memory_declare(memory->broker, name, false, memory->options.durable);
    }
}

static void follow_work(struct bus_memory *memory)
{
    if (memory->connection == 0 || memory->is_working == memory->wants_work) return;
    memory->is_working = memory->wants_work;
    for (uint32_t i = 0; i < memory->options.work_count; i++) {
        char name[BROKER_QUEUE_NAME_SIZE];
        work_name(memory, i, name);
        if (memory->is_working) {
            broker_memory_consume(memory->broker, memory->connection, name,
                                  memory->options.limits.work_prefetch);
        } else {
            broker_memory_cancel(memory->broker, memory->connection, name);
        }
    }
}

static void add_depth(const struct bus_memory *memory, const struct bus_address *address,
                      struct buf *out)
{
    char name[BROKER_QUEUE_NAME_SIZE];
    struct queue_depth depth = {0};
    broker_queue_name(memory->options.cluster, address, name);
    (void)snprintf(depth.name, sizeof depth.name, "%.79s",
                   name + strlen(memory->options.cluster) + 1);
    broker_memory_depth(memory->broker, name, &depth.messages, &depth.consumers);
    buf_put(out, &depth, sizeof depth);
}

static bool measure(struct bus_memory *memory)
{
    if (!memory->wants_measure) return false;
    memory->wants_measure = false;
    declare_all(memory); /* As over AMQP, where declaring again is how one asks. */
    struct bus_event event = {.kind = BUS_MEASURED};
    for (uint32_t i = 0; i < memory->options.node_count; i++) {
        struct bus_address address = {.kind = BUS_INBOX, .node = text_of(memory->options.nodes[i])};
        add_depth(memory, &address, &event.depths);
    }
    for (uint32_t i = 0; i < memory->options.work_count; i++) {
        struct bus_address address = {.kind = BUS_WORK, .work = i};
        add_depth(memory, &address, &event.depths);
    }
    tell(memory, &event);
    return true;
}

static bool connect_again(struct bus_memory *memory)
{
    uint64_t connection = broker_memory_connect(memory->broker);
    if (connection == 0) return false;
    memory->connection = connection;
    memory->is_working = false;
    outbox_reconnect(memory->outbox);
    inbox_reconnect(memory->inbox);
    declare_all(memory);
    char name[BROKER_QUEUE_NAME_SIZE];
    inbox_name(memory, memory->options.node, name);
    struct bus_event event = {.kind = BUS_CONNECTED};
    tell(memory, &event);
    broker_memory_consume(memory->broker, connection, name, memory->options.limits.inbox_prefetch);
    follow_work(memory);
    return true;
}

static bool publish_one(struct bus_memory *memory)
{
    struct outbox_message message;
    uint64_t sequence;
    if (!outbox_next(memory->outbox, &message, &sequence)) return false;
    char name[BROKER_QUEUE_NAME_SIZE];
    broker_queue_name(memory->options.cluster, &message.to, name);
    broker_memory_publish(memory->broker, memory->connection, name, message.bytes, sequence);
    return true;
}

static bool send_acks(struct bus_memory *memory)
{
    struct inbox_ack ack;
    bool any = false;
    while (inbox_next_ack(memory->inbox, &ack)) {
        broker_memory_acknowledge(memory->broker, memory->connection, ack.tag, ack.multiple);
        any = true;
    }
    return any;
}

static void deliver(struct bus_memory *memory, struct broker_action *action)
{
    if (memory->is_closing) {
        buf_done(&action->bytes);
        return;
    }
    struct bus_event event = {.kind = BUS_DELIVERY, .delivery = {.bytes = action->bytes}};
    for (uint32_t i = 0; i < memory->options.work_count; i++) {
        char name[BROKER_QUEUE_NAME_SIZE];
        work_name(memory, i, name);
        if (strcmp(name, action->queue) == 0) {
            event.delivery.from_work = true;
            event.delivery.work = i;
        }
    }
    event.delivery.id = inbox_deliver(memory->inbox, 0, action->tag);
    tell(memory, &event);
}

static bool take_action(struct bus_memory *memory, uint64_t choice)
{
    struct broker_action action;
    if (!broker_memory_take(memory->broker, memory->connection, choice, &action)) return false;
    struct buf settled = {0};
    switch (action.kind) {
    case BROKER_DELIVERY:
        deliver(memory, &action);
        break;
    case BROKER_CONFIRM:
        outbox_confirm(memory->outbox, action.sequence, false, &settled);
        tell_settled(memory, BUS_CONFIRMED, &settled);
        break;
    case BROKER_RETURN:
        if (outbox_return(memory->outbox, action.sequence, &settled)) declare_all(memory);
        tell_settled(memory, BUS_RETURNED, &settled);
        break;
    case BROKER_CANCELLED:
        broker_memory_disconnect(memory->broker, memory->connection);
        memory->connection = 0;
        tell_disconnected(memory, "the queue was deleted");
        break;
    }
    return true;
}

/* One step: connects if it is not connected, or else publishes one message, takes one action of the
 * broker and sends what acknowledgements there are. The choice is that of broker_memory_take.
 * False: there was nothing to do. */
static bool bus_memory_pump(struct bus *bus, uint64_t choice)
{
    struct bus_memory *memory = (struct bus_memory *)bus;
    if (memory->connection != 0 &&
        !broker_memory_is_connected(memory->broker, memory->connection)) {
        memory->connection = 0;
        tell_disconnected(memory, "the connection to the broker was lost");
        return true;
    }
    if (memory->connection == 0) return connect_again(memory);
    follow_work(memory);
    bool any = measure(memory);
    if (publish_one(memory)) any = true;
    if (take_action(memory, choice)) any = true;
    if (memory->connection != 0 && send_acks(memory)) any = true;
    ASSERT(!outbox_failed(memory->outbox) && !inbox_failed(memory->inbox));
    return any;
}

/* The connection is lost; the next step finds out. */
static void bus_memory_lose(struct bus *bus)
{
    struct bus_memory *memory = (struct bus_memory *)bus;
    broker_memory_disconnect(memory->broker, memory->connection);
}

static void memory_bus_send(struct bus *bus, const struct bus_address *to, struct buf *bytes,
                            uint64_t token)
{
    outbox_add(((struct bus_memory *)bus)->outbox, to, bytes, token);
}

static void memory_bus_acknowledge(struct bus *bus, uint64_t delivery)
{
    inbox_acknowledge(((struct bus_memory *)bus)->inbox, delivery);
}

static void memory_bus_revoke(struct bus *bus, uint64_t token)
{
    outbox_revoke(((struct bus_memory *)bus)->outbox, token);
}

static void memory_bus_work(struct bus *bus, bool wanted)
{
    ((struct bus_memory *)bus)->wants_work = wanted;
}

static void memory_bus_measure(struct bus *bus)
{
    ((struct bus_memory *)bus)->wants_measure = true;
}

static void memory_free_all(struct bus_memory *memory)
{
    outbox_destroy(memory->outbox);
    inbox_destroy(memory->inbox);
    arena_done(&memory->arena);
    memory_free(NULL, memory, sizeof *memory);
}

static void memory_bus_close(struct bus *bus, uint32_t deadline_ms)
{
    (void)deadline_ms; /* There is no clock: nothing more happens, or everything is sent. */
    struct bus_memory *memory = (struct bus_memory *)bus;
    memory->is_closing = true;
    memory->wants_work = false;
    while (outbox_waiting(memory->outbox) + outbox_unconfirmed(memory->outbox) > 0) {
        if (!bus_memory_pump(bus, 0)) break;
    }
    if (memory->connection != 0) (void)send_acks(memory); /* Whether there were any. */
    broker_memory_disconnect(memory->broker, memory->connection);
    memory_free_all(memory);
}

static const struct bus_class memory_bus_class = {
    .send = memory_bus_send,
    .acknowledge = memory_bus_acknowledge,
    .revoke = memory_bus_revoke,
    .work = memory_bus_work,
    .measure = memory_bus_measure,
    .close = memory_bus_close,
};

static bool copy_options(struct bus_memory *memory, const struct bus_memory_options *options)
{
    struct arena *arena = &memory->arena;
    memory->options = *options;
    memory->options.cluster = arena_copy_string(arena, text_of(options->cluster));
    memory->options.node = arena_copy_string(arena, text_of(options->node));
    const char **nodes = arena_array(arena, const char *, options->node_count);
    if (memory->options.cluster == NULL || memory->options.node == NULL || nodes == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < options->node_count; i++) {
        nodes[i] = arena_copy_string(arena, text_of(options->nodes[i]));
        if (nodes[i] == NULL) return false;
    }
    memory->options.nodes = nodes;
    return true;
}

static status bus_memory_open(struct broker_memory *broker,
                              const struct bus_memory_options *options,
                              struct bus_listener *listener, struct bus **out_bus,
                              struct error *err)
{
    struct bus_memory *memory = memory_alloc(NULL, sizeof *memory);
    if (memory == NULL) return error_memory(err);
    *memory = (struct bus_memory){
        .bus = {.class = &memory_bus_class}, .broker = broker, .listener = listener};
    arena_init(&memory->arena, NULL);
    status result = outbox_create(&options->limits, &memory->outbox, err);
    if (result == STATUS_OK) result = inbox_create(&memory->inbox, err);
    if (result == STATUS_OK && !copy_options(memory, options)) result = error_memory(err);
    if (result != STATUS_OK) {
        memory_free_all(memory);
        return result;
    }
    *out_bus = &memory->bus;
    return STATUS_OK;
}

#endif
