/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_node.h - carries out the decisions of role/monitor: UDP on one side, drivers on the
 * other.
 *
 * Each call of the driver has its own thread, so that one that hangs delays neither received
 * datagrams nor other restarts. broker_node runs the private broker as a node: it starts RabbitMQ,
 * probes it with AMQP handshakes (which are its progress), sends heartbeats, and ends when RabbitMQ
 * does.
 */
#ifndef CLUSTER_SUPERVISE_MONITOR_NODE_H
#define CLUSTER_SUPERVISE_MONITOR_NODE_H

#include "cluster/node/worker_node.h"

/* Both run until told to stop, as worker_node_run does. */
MUST_USE status monitor_node_run(const struct node_options *options, struct error *err);
MUST_USE status broker_node_run(const struct node_options *options, struct error *err);

#endif
