/* bus_amqp.h - the bus over RabbitMQ.
 *
 *     bus_amqp_open -> (bus_send | bus_acknowledge | bus_revoke | bus_work)* -> bus_close
 *
 * Opening does not wait for the broker: BUS_CONNECTED is told when there is one. Two connections,
 * each with a thread of its own: one publishes, one consumes and acknowledges, since a broker with
 * an alarm stops reading from those who publish. When either is lost, both are built anew, at the
 * next broker of the list, after a delay that grows. BUS_DISCONNECTED is told when a connection is
 * lost, and also of an attempt to connect that failed for another reason than the one before.
 * BUS_UNBLOCKED is not told of a connection that is lost while blocked.
 *
 * Queues: every node's inbox and all work queues, declared by every node after every connect and
 * whenever a message was returned, so that a message to a node that is not up yet waits for it.
 * Their names end in a hash of their arguments: another kind of queue has another name.
 *
 * Closing may take longer than its deadline, by limits.deadline_ms and a second, when a connection
 * is just being made or ended.
 *
 * Failure: everything but wrong options is told as an event and tried again. When memory runs out
 * the process ends as if it had been killed.
 */
#ifndef CLUSTER_BUS_BUS_AMQP_H
#define CLUSTER_BUS_BUS_AMQP_H

#include "engine/base/error.h"
#include "cluster/bus/bus.h"

enum bus_amqp_queues {
    BUS_AMQP_TRANSIENT, /* In the memory of one broker. */
    BUS_AMQP_QUORUM     /* On the disks of a majority of brokers. */
};

struct bus_amqp_options {
    const char *cluster;
    const char *node;         /* Whose inbox this bus takes from. */
    const char *const *nodes; /* All nodes of the cluster, this one included. */
    uint32_t node_count;
    const char *const *brokers; /* amqp://user:password@host:port/vhost, or amqps */
    uint32_t broker_count;
    uint32_t work_count;
    struct bus_limits limits;
    uint32_t heartbeat_s; /* 0: 5. */
    const char *ca;       /* PEM files for amqps: who vouches for brokers (NULL: those whom the */
    const char *certificate; /* system trusts); who we are, if they want to know, */
    const char *key;         /* and its key. */
    enum bus_amqp_queues queues;
    uint64_t seed; /* Of the jitter of delays. */
};

/* Options are copied. The node must be one of the nodes. */
MUST_USE status bus_amqp_open(const struct bus_amqp_options *options, struct bus_listener *listener,
                              struct bus **out_bus, struct error *err);

/* Whether something there speaks AMQP: false also for an address that is none. */
bool bus_amqp_probe(const char *broker, uint32_t timeout_ms);

/* Both use the first broker that can be reached; limits.deadline_ms bounds every step. */

/* Deletes all queues of the cluster, of both kinds; those that are not there are fine. */
MUST_USE status bus_amqp_remove_queues(const struct bus_amqp_options *options, struct error *err);
/* How many messages are ready, in all queues together. Queues that are not there have none. */
MUST_USE status bus_amqp_count(const struct bus_amqp_options *options, uint64_t *out_messages,
                               struct error *err);

#endif
