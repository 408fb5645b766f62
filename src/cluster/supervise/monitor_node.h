/* monitor_node.h - carries out what cluster/role/monitor/monitor.c decides: UDP on one side,
 * drivers on the other.
 *
 * Each thing the driver is asked to do has a thread of its own, so that one that hangs delays
 * neither what is heard nor other restarts. broker_node runs the private broker as a node: it
 * starts RabbitMQ, asks it for an AMQP handshake again and again (which is its progress),
 * heartbeats, and ends when RabbitMQ does.
 */
#ifndef CLUSTER_SUPERVISE_MONITOR_NODE_H
#define CLUSTER_SUPERVISE_MONITOR_NODE_H

#include "cluster/node/worker_node.h"

/* Both run until told to stop, as worker_node_run does. */
MUST_USE status monitor_node_run(const struct node_options *options, struct error *err);
MUST_USE status broker_node_run(const struct node_options *options, struct error *err);

#endif
