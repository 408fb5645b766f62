/* SPDX-License-Identifier: Apache-2.0 */
/* bus_node.h - a node that writes down everything its bus tells it.
 *
 * Messages begin with a number, and their bytes follow from it, so that every delivery can be
 * checked for being whole.
 */
#ifndef UNIT_IO_BUS_NODE_H
#define UNIT_IO_BUS_NODE_H

#include "unit/test.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "cluster/bus/bus.h"

enum { NODE_EVENTS = 20000, NODE_TOKENS = 5000, NODE_DEPTHS = 16 };

struct node_delivery {
    uint64_t id;
    bool from_work;
    uint32_t work;
    uint64_t number; /* The message begins with it. */
    size_t size;
    bool is_intact;
};

struct bus_node {
    struct bus_listener listener; /* First: the bus gives it back. */
    struct bus *bus;
    pthread_mutex_t lock;
    struct node_delivery deliveries[NODE_EVENTS];
    uint32_t delivery_count;
    uint32_t confirmed[NODE_TOKENS]; /* How often, by token. */
    uint32_t confirmed_count;
    uint32_t returned[NODE_TOKENS];
    uint32_t returned_count;
    uint32_t connected_count;
    uint32_t disconnected_count;
    uint32_t blocked_count;
    uint32_t unblocked_count;
    bool acknowledges; /* In world_wait, everything that came. */
    uint32_t acknowledged_count;
    struct queue_depth depths[NODE_DEPTHS]; /* The last that were told. */
    uint32_t depth_count;
    uint32_t measured_count;
    char reason[256];
};

static unsigned char node_byte(uint64_t number, size_t at)
{
    return (unsigned char)(number * 31 + at * 7);
}

static struct buf node_message(uint64_t number, size_t size)
{
    struct buf bytes = {0};
    buf_put_u64(&bytes, number);
    assert_true(size >= 8 && buf_reserve(&bytes, size - 8));
    for (size_t i = 8; i < size; i++) {
        bytes.bytes[i] = node_byte(number, i);
    }
    bytes.size = size;
    return bytes;
}

static void node_keep_delivery(struct bus_node *node, struct bus_event *event)
{
    const struct buf *bytes = &event->delivery.bytes;
    struct buf_reader reader = {.bytes = bytes->bytes, .size = bytes->size};
    struct node_delivery *delivery = &node->deliveries[node->delivery_count];
    if (node->delivery_count + 1 < NODE_EVENTS) node->delivery_count++;
    *delivery = (struct node_delivery){.id = event->delivery.id,
                                       .from_work = event->delivery.from_work,
                                       .work = event->delivery.work,
                                       .number = buf_get_u64(&reader),
                                       .size = bytes->size};
    delivery->is_intact = !reader.failed && (uintptr_t)bytes->bytes % 8 == 0;
    for (size_t i = 8; i < bytes->size && delivery->is_intact; i++) {
        delivery->is_intact = bytes->bytes[i] == node_byte(delivery->number, i);
    }
}

static void node_keep_depths(struct bus_node *node, const struct bus_event *event)
{
    uint32_t count = (uint32_t)(event->depths.size / sizeof node->depths[0]);
    if (count > NODE_DEPTHS) count = NODE_DEPTHS;
    memcpy(node->depths, event->depths.bytes, count * sizeof node->depths[0]);
    node->depth_count = count;
    node->measured_count++;
}

static void node_event(struct bus_listener *listener, struct bus_event *event)
{
    struct bus_node *node = (struct bus_node *)listener;
    pthread_mutex_lock(&node->lock);
    switch (event->kind) {
    case BUS_CONNECTED:
        node->connected_count++;
        break;
    case BUS_DISCONNECTED:
        node->disconnected_count++;
        memcpy(node->reason, event->reason, sizeof node->reason);
        break;
    case BUS_DELIVERY:
        node_keep_delivery(node, event);
        break;
    case BUS_CONFIRMED:
        if (event->token < NODE_TOKENS) node->confirmed[event->token]++;
        node->confirmed_count++;
        break;
    case BUS_RETURNED:
        if (event->token < NODE_TOKENS) node->returned[event->token]++;
        node->returned_count++;
        break;
    case BUS_BLOCKED:
        node->blocked_count++;
        break;
    case BUS_UNBLOCKED:
        node->unblocked_count++;
        break;
    case BUS_MEASURED:
        node_keep_depths(node, event);
        break;
    }
    pthread_mutex_unlock(&node->lock);
    bus_event_done(event);
}

static void node_send(struct bus_node *node, const char *to, uint64_t number, uint64_t token)
{
    struct bus_address address = {.kind = BUS_INBOX, .node = text_of(to)};
    struct buf bytes = node_message(number, 8 + number % 50);
    bus_send(node->bus, &address, &bytes, token);
    assert_null(bytes.bytes);
}

static void node_send_work(struct bus_node *node, uint32_t work, uint64_t number, uint64_t token)
{
    struct bus_address address = {.kind = BUS_WORK, .work = work};
    struct buf bytes = node_message(number, 8 + number % 50);
    bus_send(node->bus, &address, &bytes, token);
}

/* Never blocks a node's listener for long: one delivery at a time. */
static void node_acknowledge_all(struct bus_node *node)
{
    for (;;) {
        pthread_mutex_lock(&node->lock);
        uint64_t id = 0;
        if (node->acknowledges && node->acknowledged_count < node->delivery_count) {
            id = node->deliveries[node->acknowledged_count++].id;
        }
        pthread_mutex_unlock(&node->lock);
        if (id == 0) return;
        bus_acknowledge(node->bus, id);
    }
}

static uint32_t node_count(struct bus_node *node, const uint32_t *counter)
{
    pthread_mutex_lock(&node->lock);
    uint32_t value = *counter;
    pthread_mutex_unlock(&node->lock);
    return value;
}

static struct node_delivery node_delivery(struct bus_node *node, uint32_t index)
{
    pthread_mutex_lock(&node->lock);
    assert_true(index < node->delivery_count);
    struct node_delivery delivery = node->deliveries[index];
    pthread_mutex_unlock(&node->lock);
    assert_true(delivery.is_intact);
    return delivery;
}

#endif
