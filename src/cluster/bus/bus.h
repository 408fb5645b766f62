/* bus.h - messages between nodes: what a broker does for us, and no more.
 *
 * Every node has an inbox; K work queues are shared by all who map. A message sent to an inbox
 * reaches the node of that name, one put on a work queue reaches one of those who work on it. Sent
 * messages are confirmed by the broker, taken ones are acknowledged by us; what is not acknowledged
 * when a connection ends is delivered again, to anybody. Messages may be lost with the broker,
 * doubled, and overtaken: whoever needs more than that numbers what he sends.
 *
 *     open -> (send | acknowledge | revoke | work | measure)* -> close
 *
 * The bus connects by itself, again and again. What was sent and not yet confirmed when a
 * connection is lost is published again on the next one.
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
    uint32_t expires_ms; /* Whoever has not taken it by then need not; 0: never. */
};

struct bus_listener {
    void (*event)(struct bus_listener *listener, struct bus_event *event);
};

struct bus_limits {
    uint32_t inbox_prefetch;
    uint32_t work_prefetch;        /* Of each work queue. */
    uint32_t confirm_window;       /* Messages published and not confirmed. */
    uint64_t confirm_window_bytes; /* At least one message is always let through. */
    uint32_t deadline_ms;          /* Of every wait for the broker; then the connection is lost. */
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

/* `token` 0: nobody waits for the confirmation. */
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
/* Whether to take from the work queues; a node begins with no. Those who never map never say yes.
 */
static inline void bus_work(struct bus *bus, bool wanted)
{
    bus->class->work(bus, wanted);
}
/* Asks how long all queues are: BUS_MEASURED tells, unless the connection is lost before. Whoever
 * asks again before that gets one answer; the broker is asked once a second at most. */
static inline void bus_measure(struct bus *bus)
{
    bus->class->measure(bus);
}
/* Sends what waits, acknowledges, closes; gives up after the deadline. NULL is fine. */
static inline void bus_close(struct bus *bus, uint32_t deadline_ms)
{
    if (bus != NULL) bus->class->close(bus, deadline_ms);
}

#endif
