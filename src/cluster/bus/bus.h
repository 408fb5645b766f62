/* SPDX-License-Identifier: Apache-2.0 */
/* bus.h - messages between nodes: the part of a broker that the cluster relies on.
 *
 * Every node has an inbox; all workers that map share K work queues. A message to an inbox reaches
 * the node of that name; a message to a work queue reaches one of its consumers. The broker
 * confirms published messages, and nodes acknowledge deliveries; a delivery that is not
 * acknowledged when a connection ends is delivered again, perhaps to another consumer. Messages may
 * be lost with the broker, duplicated and reordered: roles that need more number their messages.
 *
 *     open -> (send | acknowledge | revoke | work | measure)* -> close
 *
 * The bus connects and reconnects by itself. Messages that were not confirmed when a connection was
 * lost are published again on the next one.
 *
 * Threads: calls come from the owner's thread. Events are given to the listener from threads of the
 * bus, one at a time; the listener must not call the bus and must not block for long.
 * Memory: bytes given to send are moved; bytes of a delivery are moved to the listener.
 */
#ifndef CLUSTER_BUS_BUS_H
#define CLUSTER_BUS_BUS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "cluster/wire/bus_event.h"

enum bus_queue_kind { BUS_INBOX, BUS_WORK };

struct bus_address {
    enum bus_queue_kind kind;
    struct text node;    /* BUS_INBOX: whose. */
    uint32_t work;       /* BUS_WORK: which. */
    uint32_t expires_ms; /* The broker may drop the message afterwards; 0: never. */
};

struct bus_listener {
    void (*event)(struct bus_listener *listener, struct bus_event *event);
};

struct bus_limits {
    uint32_t inbox_prefetch;
    uint32_t work_prefetch;        /* Of each work queue. */
    uint32_t confirm_window;       /* Messages published and not confirmed. */
    uint64_t confirm_window_bytes; /* One message is always allowed, whatever its size. */
    uint32_t deadline_ms;          /* Of every wait for the broker; then it drops the connection. */
};

struct bus;

struct bus_class {
    void (*send)(struct bus *bus, const struct bus_address *to, struct buf *bytes, uint64_t token);
    void (*acknowledge)(struct bus *bus, uint64_t delivery);
    void (*revoke)(struct bus *bus, uint64_t token);
    void (*work)(struct bus *bus, bool wanted);
    void (*measure)(struct bus *bus);
    void (*close)(struct bus *bus, uint32_t deadline_ms);
};

struct bus {
    const struct bus_class *class;
};

/* `token` 0: no BUS_CONFIRMED or BUS_RETURNED follows. */
static inline void bus_send(struct bus *bus, const struct bus_address *to, struct buf *bytes,
                            uint64_t token)
{
    bus->class->send(bus, to, bytes, token);
}
/* Unknown and old deliveries are ignored. */
static inline void bus_acknowledge(struct bus *bus, uint64_t delivery)
{
    bus->class->acknowledge(bus, delivery);
}
/* The message with this token is not published again after a lost connection. */
static inline void bus_revoke(struct bus *bus, uint64_t token)
{
    bus->class->revoke(bus, token);
}
/* Whether to consume from the work queues; a bus begins with no. */
static inline void bus_work(struct bus *bus, bool wanted)
{
    bus->class->work(bus, wanted);
}
/* Asks for the depth of all queues: BUS_MEASURED follows, unless the connection is lost before.
 * Calls before the answer are answered by it; the broker is asked at most once a second. */
static inline void bus_measure(struct bus *bus)
{
    bus->class->measure(bus);
}
/* Sends waiting messages, acknowledges, closes; gives up after the deadline. Accepts NULL. */
static inline void bus_close(struct bus *bus, uint32_t deadline_ms)
{
    if (bus != NULL) bus->class->close(bus, deadline_ms);
}

#endif
