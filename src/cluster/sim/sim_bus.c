/* SPDX-License-Identifier: Apache-2.0 */
/* sim_bus.c - timers between a node's delivery tracking and the broker.
 *
 * Each direction has one timer at a time: it carries a few messages and sets itself again while
 * there are more. A timer names the incarnation of the bus that set it, so that messages which a
 * dead process had under way are lost with it.
 */
#include "cluster/sim/sim_bus.h"

#include <stdio.h>

#include "engine/base/assert.h"

enum { BURST = 4, CONNECT_MIN_MS = 1, CONNECT_MAX_MS = 150, CONNECT_AGAIN_MS = 500 };

static const char cluster_name[] = "sim";

static void take_timer(void *context, uint64_t incarnation);

static void name_of(const struct bus_address *address, char out[BROKER_QUEUE_NAME_SIZE])
{
    broker_queue_name(cluster_name, address, out);
}

static void inbox_name(const struct sim_net *net, uint32_t node, char out[BROKER_QUEUE_NAME_SIZE])
{
    struct bus_address address = {.kind = BUS_INBOX, .node = text_of(net->names[node])};
    name_of(&address, out);
}

static void work_name(uint32_t work, char out[BROKER_QUEUE_NAME_SIZE])
{
    struct bus_address address = {.kind = BUS_WORK, .work = work};
    name_of(&address, out);
}

static uint64_t latency(struct sim_net *net)
{
    uint32_t limit = net->latency_ms;
    if (world_chance(net->world, net->hiccup_per_mille)) limit = net->hiccup_ms;
    return world_between(net->world, 0, limit);
}

/* ---- the broker ---- */

status sim_net_init(struct sim_net *net, struct error *err)
{
    return broker_memory_create(&net->broker, err);
}

void sim_net_done(struct sim_net *net)
{
    broker_memory_destroy(net->broker);
    net->broker = NULL;
}

static bool side_has_action(const struct sim_bus *bus, enum sim_side side)
{
    uint64_t connection = bus->connections[side];
    return connection != 0 && broker_memory_has_action(bus->net->broker, connection);
}

static void bus_look(struct sim_bus *bus)
{
    if (bus->will_take) return;
    if (!side_has_action(bus, SIM_PUBLISHER) && !side_has_action(bus, SIM_CONSUMER)) return;
    bus->will_take = true;
    world_after(bus->net->world, latency(bus->net), take_timer, bus, bus->incarnation);
}

/* The broker has changed: every bus checks whether it has an action to take. */
static void net_look(struct sim_net *net)
{
    for (uint32_t i = 0; i < net->node_count; i++) {
        if (net->buses[i] != NULL && net->buses[i]->is_open) bus_look(net->buses[i]);
    }
}

void sim_net_kill_broker(struct sim_net *net)
{
    broker_memory_kill(net->broker);
    for (uint32_t i = 0; i < net->node_count; i++) {
        if (net->buses[i] != NULL && net->buses[i]->is_open) sim_bus_lose(net->buses[i], 0);
    }
}

void sim_net_start_broker(struct sim_net *net)
{
    broker_memory_start(net->broker);
}

void sim_net_hurt_queue(struct sim_net *net, uint32_t queue, enum sim_queue_fault fault)
{
    char name[BROKER_QUEUE_NAME_SIZE];
    if (queue < net->node_count) {
        inbox_name(net, queue, name);
    } else {
        work_name(queue - net->node_count, name);
    }
    if (fault == SIM_QUEUE_PURGED) {
        broker_memory_purge(net->broker, name);
    } else {
        broker_memory_delete(net->broker, name);
    }
    net_look(net);
}

uint64_t sim_net_message_count(const struct sim_net *net)
{
    return broker_memory_count(net->broker, NULL);
}

/* ---- connecting ---- */

static void tell(struct sim_bus *bus, enum bus_event_kind kind)
{
    struct bus_event event = {.kind = kind};
    bus->event(bus->context, &event);
}

static void declare_all(struct sim_bus *bus)
{
    char name[BROKER_QUEUE_NAME_SIZE];
    for (uint32_t i = 0; i < bus->net->node_count; i++) {
        inbox_name(bus->net, i, name);
        broker_memory_declare(bus->net->broker, name, true, false);
    }
    for (uint32_t i = 0; i < bus->net->work_count; i++) {
        work_name(i, name);
        broker_memory_declare(bus->net->broker, name, false, false);
    }
}

static void follow_work(struct sim_bus *bus)
{
    uint64_t connection = bus->connections[SIM_CONSUMER];
    if (connection == 0 || bus->is_working == bus->wants_work) return;
    bus->is_working = bus->wants_work;
    for (uint32_t i = 0; i < bus->net->work_count; i++) {
        char name[BROKER_QUEUE_NAME_SIZE];
        work_name(i, name);
        if (bus->is_working) {
            broker_memory_consume(bus->net->broker, connection, name,
                                  bus->net->limits.work_prefetch);
        } else {
            broker_memory_cancel(bus->net->broker, connection, name);
        }
    }
    net_look(bus->net);
}

static void publish_soon(struct sim_bus *bus);

static void connect_timer(void *context, uint64_t incarnation)
{
    struct sim_bus *bus = context;
    if (bus->incarnation != incarnation || bus->is_connected) return;
    struct sim_net *net = bus->net;
    if (!broker_memory_is_up(net->broker)) {
        world_after(net->world, world_between(net->world, CONNECT_MAX_MS, CONNECT_AGAIN_MS),
                    connect_timer, bus, incarnation);
        return;
    }
    for (uint32_t side = 0; side < SIM_SIDES; side++) {
        bus->connections[side] = broker_memory_connect(net->broker);
    }
    bus->is_connected = true;
    bus->is_blocked = false;
    bus->is_working = false;
    outbox_reconnect(bus->outbox);
    inbox_reconnect(bus->inbox);
    declare_all(bus);
    tell(bus, BUS_CONNECTED);
    char name[BROKER_QUEUE_NAME_SIZE];
    inbox_name(net, bus->node, name);
    broker_memory_consume(net->broker, bus->connections[SIM_CONSUMER], name,
                          net->limits.inbox_prefetch);
    follow_work(bus);
    publish_soon(bus);
    net_look(net);
}

static void connect_soon(struct sim_bus *bus)
{
    world_after(bus->net->world, world_between(bus->net->world, CONNECT_MIN_MS, CONNECT_MAX_MS),
                connect_timer, bus, bus->incarnation);
}

/* The broker has noticed: connections have numbers that are never used twice. */
static void forget_timer(void *context, uint64_t connection)
{
    struct sim_net *net = context;
    broker_memory_disconnect(net->broker, connection);
    net_look(net);
}

/* No byte passes any more; the broker notices after `broker_ms`. */
static void cut(struct sim_bus *bus, enum sim_side side, uint64_t broker_ms)
{
    uint64_t connection = bus->connections[side];
    bus->connections[side] = 0;
    if (connection == 0) return;
    if (broker_ms == 0) {
        broker_memory_disconnect(bus->net->broker, connection);
    } else {
        world_after(bus->net->world, broker_ms, forget_timer, bus->net, connection);
    }
}

/* All messages under way are lost. */
static void cut_all(struct sim_bus *bus, uint64_t broker_ms)
{
    bus->incarnation++;
    bus->will_publish = bus->will_acknowledge = bus->will_take = false;
    cut(bus, SIM_PUBLISHER, broker_ms);
    cut(bus, SIM_CONSUMER, broker_ms);
    net_look(bus->net);
}

/* The node has noticed. */
static void lost_timer(void *context, uint64_t incarnation)
{
    struct sim_bus *bus = context;
    if (bus->incarnation != incarnation || !bus->is_connected) return;
    cut_all(bus, 0);
    bus->is_connected = false;
    bus->is_blocked = false;
    tell(bus, BUS_DISCONNECTED);
    connect_soon(bus);
}

static void notice_later(struct sim_bus *bus)
{
    struct sim_net *net = bus->net;
    world_after(net->world, world_between(net->world, 0, net->detection_ms), lost_timer, bus,
                bus->incarnation);
}

void sim_bus_lose(struct sim_bus *bus, uint64_t broker_ms)
{
    bool has_any = bus->connections[SIM_PUBLISHER] != 0 || bus->connections[SIM_CONSUMER] != 0;
    if (!bus->is_open || !has_any) return;
    cut_all(bus, broker_ms);
    notice_later(bus);
}

void sim_bus_lose_side(struct sim_bus *bus, enum sim_side side)
{
    if (!bus->is_open || !bus->is_connected || bus->connections[side] == 0) return;
    cut(bus, side, 0);
    net_look(bus->net);
    notice_later(bus);
}

/* ---- alarms ---- */

static void unblocked_timer(void *context, uint64_t incarnation)
{
    struct sim_bus *bus = context;
    if (bus->incarnation != incarnation || !bus->is_blocked || bus->net->has_alarm) return;
    bus->is_blocked = false;
    tell(bus, BUS_UNBLOCKED);
    publish_soon(bus);
}

void sim_net_set_alarm(struct sim_net *net, bool has_alarm)
{
    net->has_alarm = has_alarm;
    for (uint32_t i = 0; i < net->node_count && !has_alarm; i++) {
        struct sim_bus *bus = net->buses[i];
        if (bus == NULL || !bus->is_open) continue;
        if (bus->is_blocked)
            world_after(net->world, latency(net), unblocked_timer, bus, bus->incarnation);
    }
}

/* ---- out ---- */

static bool publish_some(struct sim_bus *bus, uint32_t limit)
{
    struct outbox_message message;
    uint64_t sequence;
    uint32_t i = 0;
    for (; i < limit && outbox_next(bus->outbox, &message, &sequence); i++) {
        char name[BROKER_QUEUE_NAME_SIZE];
        name_of(&message.to, name);
        broker_memory_publish(bus->net->broker, bus->connections[SIM_PUBLISHER], name,
                              message.bytes, sequence);
        bus->net->message_count++;
    }
    return i > 0;
}

static void publish_timer(void *context, uint64_t incarnation)
{
    struct sim_bus *bus = context;
    if (bus->incarnation != incarnation) return;
    bus->will_publish = false;
    if (bus->connections[SIM_PUBLISHER] == 0) return;
    if (bus->net->has_alarm) {
        /* RabbitMQ tells a connection that it is blocked when it publishes. */
        if (!bus->is_blocked) tell(bus, BUS_BLOCKED);
        bus->is_blocked = true;
        return;
    }
    bool any = publish_some(bus, world_between(bus->net->world, 1, BURST));
    net_look(bus->net);
    if (any) publish_soon(bus); /* Else the window is full: a confirm makes room. */
}

static void publish_soon(struct sim_bus *bus)
{
    if (bus->will_publish || bus->connections[SIM_PUBLISHER] == 0) return;
    if (outbox_waiting(bus->outbox) == 0 || bus->is_blocked) return;
    bus->will_publish = true;
    world_after(bus->net->world, latency(bus->net), publish_timer, bus, bus->incarnation);
}

static void send_acknowledgements(struct sim_bus *bus)
{
    struct inbox_ack ack;
    while (inbox_next_ack(bus->inbox, &ack)) {
        broker_memory_acknowledge(bus->net->broker, bus->connections[SIM_CONSUMER], ack.tag,
                                  ack.multiple);
    }
}

static void acknowledge_timer(void *context, uint64_t incarnation)
{
    struct sim_bus *bus = context;
    if (bus->incarnation != incarnation) return;
    bus->will_acknowledge = false;
    if (bus->connections[SIM_CONSUMER] == 0) return;
    send_acknowledgements(bus);
    net_look(bus->net);
}

/* ---- in ---- */

static void deliver(struct sim_bus *bus, struct broker_action *action)
{
    struct bus_event event = {.kind = BUS_DELIVERY, .delivery = {.bytes = action->bytes}};
    for (uint32_t i = 0; i < bus->net->work_count; i++) {
        char name[BROKER_QUEUE_NAME_SIZE];
        work_name(i, name);
        if (strcmp(name, action->queue) == 0) {
            event.delivery.from_work = true;
            event.delivery.work = i;
        }
    }
    event.delivery.id = inbox_deliver(bus->inbox, 0, action->tag);
    bus->event(bus->context, &event);
}

static void tell_settled(struct sim_bus *bus, enum bus_event_kind kind, struct buf *settled)
{
    for (size_t at = 0; at + sizeof(uint64_t) <= settled->size; at += sizeof(uint64_t)) {
        struct bus_event event = {.kind = kind};
        memcpy(&event.token, settled->bytes + at, sizeof event.token);
        bus->event(bus->context, &event);
    }
    buf_done(settled);
}

/* False: there was nothing, or the connection is over. */
static bool take_one(struct sim_bus *bus)
{
    struct broker_action action;
    struct sim_net *net = bus->net;
    bool both = side_has_action(bus, SIM_PUBLISHER) && side_has_action(bus, SIM_CONSUMER);
    enum sim_side side = side_has_action(bus, SIM_CONSUMER) ? SIM_CONSUMER : SIM_PUBLISHER;
    if (both && world_chance(net->world, 500)) side = SIM_PUBLISHER;
    if (!broker_memory_take(net->broker, bus->connections[side], random_u64(&net->world->random),
                            &action)) {
        return false;
    }
    struct buf settled = {0};
    switch (action.kind) {
    case BROKER_DELIVERY:
        deliver(bus, &action);
        return true;
    case BROKER_CONFIRM:
        outbox_confirm(bus->outbox, action.sequence, false, &settled);
        tell_settled(bus, BUS_CONFIRMED, &settled);
        publish_soon(bus);
        return true;
    case BROKER_RETURN:
        if (outbox_return(bus->outbox, action.sequence, &settled)) declare_all(bus);
        tell_settled(bus, BUS_RETURNED, &settled);
        return true;
    case BROKER_CANCELLED:
        break;
    }
    sim_bus_lose(bus, 0);
    return false;
}

static void take_timer(void *context, uint64_t incarnation)
{
    struct sim_bus *bus = context;
    if (bus->incarnation != incarnation) return;
    bus->will_take = false;
    uint32_t count = world_between(bus->net->world, 1, BURST);
    while (count > 0 && take_one(bus)) {
        count--;
    }
    net_look(bus->net);
}

/* ---- incarnation ---- */

status sim_bus_open(struct sim_bus *bus, struct error *err)
{
    ASSERT(!bus->is_open);
    struct outbox *outbox;
    TRY(outbox_create(&bus->net->limits, &outbox, err));
    if (inbox_create(&bus->inbox, err) != STATUS_OK) {
        outbox_destroy(outbox);
        return err->code;
    }
    bus->outbox = outbox;
    bus->incarnation++;
    bus->is_open = true;
    bus->is_connected = bus->is_blocked = false;
    bus->wants_work = bus->is_working = false;
    bus->will_publish = bus->will_acknowledge = bus->will_take = false;
    connect_soon(bus);
    return STATUS_OK;
}

void sim_bus_kill(struct sim_bus *bus)
{
    if (!bus->is_open) return;
    bus->is_open = false;
    bus->is_connected = false;
    cut_all(bus, 0);
    outbox_destroy(bus->outbox);
    inbox_destroy(bus->inbox);
    bus->outbox = NULL;
    bus->inbox = NULL;
}

void sim_bus_close(struct sim_bus *bus)
{
    if (bus->is_open && bus->connections[SIM_PUBLISHER] != 0 && !bus->net->has_alarm) {
        (void)publish_some(bus, UINT32_MAX); /* Messages beyond the window are lost. */
    }
    if (bus->is_open && bus->connections[SIM_CONSUMER] != 0) send_acknowledgements(bus);
    sim_bus_kill(bus);
}

void sim_bus_send(struct sim_bus *bus, const struct bus_address *to, struct buf *bytes,
                  uint64_t token)
{
    outbox_add(bus->outbox, to, bytes, token);
    publish_soon(bus);
}

void sim_bus_acknowledge(struct sim_bus *bus, uint64_t delivery)
{
    inbox_acknowledge(bus->inbox, delivery);
    if (bus->will_acknowledge || bus->connections[SIM_CONSUMER] == 0) return;
    bus->will_acknowledge = true;
    world_after(bus->net->world, latency(bus->net), acknowledge_timer, bus, bus->incarnation);
}

void sim_bus_revoke(struct sim_bus *bus, uint64_t token)
{
    outbox_revoke(bus->outbox, token);
}

void sim_bus_work(struct sim_bus *bus, bool wanted)
{
    bus->wants_work = wanted;
    follow_work(bus);
}
