/* SPDX-License-Identifier: Apache-2.0 */
/* bus_amqp.h - the bus over RabbitMQ.
 *
 *     bus_amqp_open -> (bus_send | bus_acknowledge | bus_revoke | bus_work)* -> bus_close
 *
 * Opening does not wait for the broker: BUS_CONNECTED follows when it is connected. There are two
 * connections, each with its own thread: one publishes, one consumes and acknowledges, since a
 * broker with an alarm stops reading from connections that publish (RabbitMQ recommends separate
 * connections for this reason). When either is lost, both are opened anew, at the next broker of
 * the list, after an exponential back-off with jitter. A connection that is lost while blocked
 * gives no BUS_UNBLOCKED.
 *
 * Queues: every node's inbox and all work queues. Every node declares all of them after each
 * connect and when a message is returned, so that a message waits for a node that is not up yet.
 * Names end with a hash of the queue's arguments, since a broker refuses to declare an existing
 * queue with other arguments.
 *
 * Closing may take longer than its deadline, by limits.deadline_ms and a second, when a connection
 * is just being made or ended.
 *
 * Failure: wrong options are errors; everything else is an event, and the bus retries. When memory
 * for its bookkeeping runs out, the process writes a line and kills itself: it has promised to
 * deliver messages that it can no longer track, and the cluster recovers from a crash.
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
    const char *ca;       /* PEM files for amqps: the CA of the brokers (NULL: the system's CAs), */
    const char *certificate; /* the node's certificate, for brokers that ask for one, */
    const char *key;         /* and its key. */
    enum bus_amqp_queues queues;
    uint64_t seed; /* Of the jitter of delays. */
};

/* Options are copied. The node must be one of the nodes. */
MUST_USE status bus_amqp_open(const struct bus_amqp_options *options, struct bus_listener *listener,
                              struct bus **out_bus, struct error *err);

/* Whether a server at this URI speaks AMQP; false also for an invalid URI. */
bool bus_amqp_probe(const char *broker, uint32_t timeout_ms);

/* Deletes all queues of the cluster, of both kinds; missing ones are fine. Uses the first broker
 * that can be reached; limits.deadline_ms bounds every step. */
MUST_USE status bus_amqp_remove_queues(const struct bus_amqp_options *options, struct error *err);

#endif
