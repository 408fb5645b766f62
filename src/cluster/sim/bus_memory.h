/* bus_memory.h - a bus over a broker in memory: one thread, one step at a time.
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
#ifndef CLUSTER_SIM_BUS_MEMORY_H
#define CLUSTER_SIM_BUS_MEMORY_H

#include "engine/base/error.h"
#include "cluster/bus/bus.h"

struct broker_memory;

struct bus_memory_options {
    const char *cluster;
    const char *node;         /* Whose inbox this bus takes from. */
    const char *const *nodes; /* All nodes of the cluster: their inboxes are declared. */
    uint32_t node_count;
    uint32_t work_count;
    struct bus_limits limits; /* The deadline means nothing here. */
    bool durable;
};

MUST_USE status bus_memory_open(struct broker_memory *broker,
                                const struct bus_memory_options *options,
                                struct bus_listener *listener, struct bus **out_bus,
                                struct error *err);

/* One step: connects if it is not connected, or else publishes one message, takes one action of the
 * broker and sends what acknowledgements there are. The choice is that of broker_memory_take.
 * False: there was nothing to do. */
bool bus_memory_pump(struct bus *bus, uint64_t choice);

/* The connection is lost; the next step finds out. */
void bus_memory_lose(struct bus *bus);

/* "CLUSTER.inbox.NODE" and "CLUSTER.work.K", for broker_memory_delete and its like. */
enum { BUS_MEMORY_NAME_SIZE = 96 };
void bus_memory_name(const char *cluster, const struct bus_address *address,
                     char out[BUS_MEMORY_NAME_SIZE]);

#endif
