/* SPDX-License-Identifier: Apache-2.0 */
/* bus_event.h - what the broker's side tells a node; roles take it in this form too.
 *
 * A broker's client (cluster/bus), the simulated one (cluster/sim) and the roles share no room but
 * this one, so the type stands here: an event is made once, at the connection, and handed through.
 *
 * Memory: bytes are owned by the struct; a receiver that keeps them moves the buf out.
 */
#ifndef CLUSTER_WIRE_BUS_EVENT_H
#define CLUSTER_WIRE_BUS_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/buf.h"

enum bus_event_kind {
    BUS_CONNECTED,    /* Both ways are open and all queues are there. */
    BUS_DISCONNECTED, /* `reason`. Earlier deliveries can't be acknowledged any more. Also told of
                       * an attempt that failed for a new reason: several in a row. */
    BUS_DELIVERY,     /* `delivery` */
    BUS_CONFIRMED,    /* The broker has the message with `token`. */
    BUS_RETURNED,     /* No such queue: the message with `token` is gone. */
    BUS_BLOCKED,      /* The broker has an alarm and takes no messages for now. */
    BUS_UNBLOCKED,
    BUS_MEASURED /* `depths`: struct queue_depth, one of each queue. */
};

/* How long a queue is. */
struct queue_depth {
    char name[80];     /* inbox.NODE or work.K */
    uint64_t messages; /* That wait; not those in flight to a consumer. */
    uint32_t consumers;
};

struct bus_delivery {
    uint64_t id;    /* To acknowledge it by; never 0, never used twice. */
    bool from_work; /* From work queue `work`; else from the node's inbox. */
    uint32_t work;
    struct buf bytes; /* 8-byte aligned. */
};

struct bus_event {
    enum bus_event_kind kind;
    union {
        char reason[256];
        struct bus_delivery delivery;
        uint64_t token;
        struct buf depths;
    };
};

/* Frees bytes that were not moved out. */
static inline void bus_event_done(struct bus_event *event)
{
    if (event->kind == BUS_DELIVERY) buf_done(&event->delivery.bytes);
    if (event->kind == BUS_MEASURED) buf_done(&event->depths);
}

#endif
