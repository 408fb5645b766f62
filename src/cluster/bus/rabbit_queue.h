/* SPDX-License-Identifier: Apache-2.0 */
/* rabbit_queue.h - the queues of a cluster: their names and arguments, and declaring them. */
#ifndef CLUSTER_BUS_RABBIT_QUEUE_H
#define CLUSTER_BUS_RABBIT_QUEUE_H

#include <stdint.h>

#include <amqp.h>

#include "engine/base/error.h"
#include "cluster/bus/bus_amqp.h"

struct rabbit_connection;

enum { RABBIT_QUEUE_NAME_SIZE = 256 }; /* Terminated: the protocol allows 255 bytes. */

/* "millrace.CLUSTER.inbox.NODE.HASH" or "millrace.CLUSTER.work.K.HASH"; the hash is of the queue's
 * arguments. Cut if it is too long: see rabbit_queue_check. */
void rabbit_queue_name(const struct bus_amqp_options *options, const struct bus_address *address,
                       char out[RABBIT_QUEUE_NAME_SIZE]);

/* Whether all names fit. */
MUST_USE status rabbit_queue_check(const struct bus_amqp_options *options, struct error *err);

/* All inboxes first, then the work queues: `index` < rabbit_queue_count(). */
uint32_t rabbit_queue_count(const struct bus_amqp_options *options);
struct bus_address rabbit_queue_address(const struct bus_amqp_options *options, uint32_t index);

/* On a channel that is open. */
MUST_USE status rabbit_queue_declare_all(const struct bus_amqp_options *options,
                                         struct rabbit_connection *connection,
                                         amqp_channel_t channel, struct error *err);
/* Declares them once more, since declare-ok carries the depth: appends a struct queue_depth of
 * each. *out_refused: the broker has closed the channel instead; the connection is still usable. */
MUST_USE status rabbit_queue_measure_all(const struct bus_amqp_options *options,
                                         struct rabbit_connection *connection,
                                         amqp_channel_t channel, struct buf *out, bool *out_refused,
                                         struct error *err);

#endif
