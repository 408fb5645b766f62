/* SPDX-License-Identifier: Apache-2.0 */
/* broker_memory.h - a model of RabbitMQ in memory: the part of AMQP 0-9-1 that the bus uses.
 *
 * Single-threaded and without a clock, for the simulator. The suite that checks every bus runs
 * against it and against a real RabbitMQ, so that the model cannot drift from the program.
 *
 * Connections publish, consume and acknowledge; the broker answers with actions that the caller
 * takes one by one (broker_memory_take): deliveries, confirms, returns, cancels. The broker does
 * nothing by itself: the caller decides which action comes next, and may lose connections, queues
 * and the whole broker at any moment.
 *
 * Queues: an inbox has a single active consumer (the first one connected; the next takes over when
 * it ends), a work queue gives messages to its consumers in turn, each up to its prefetch.
 * Deliveries without acknowledgement return to the front of their queue, in order, when the
 * connection ends. Publishing to a queue that does not exist is returned, then confirmed.
 *
 * Requests of a connection that has ended are ignored. A broker that runs out of memory dies, as
 * real ones do; see broker_memory_kill.
 */
#ifndef CLUSTER_SIM_BROKER_MEMORY_H
#define CLUSTER_SIM_BROKER_MEMORY_H

#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "cluster/bus/bus.h"

struct broker_memory;

enum { BROKER_QUEUE_NAME_SIZE = 96 };

/* "CLUSTER.inbox.NODE" and "CLUSTER.work.K". */
void broker_queue_name(const char *cluster, const struct bus_address *address,
                       char out[BROKER_QUEUE_NAME_SIZE]);

MUST_USE status broker_memory_create(struct broker_memory **out, struct error *err);
void broker_memory_destroy(struct broker_memory *broker);

/* A new connection's number (never used twice), or 0 while the broker is down. */
uint64_t broker_memory_connect(struct broker_memory *broker);
/* Its unacknowledged deliveries go back; its actions not yet taken are gone. Publishes that were
 * made stay, whether or not their confirms were taken. */
void broker_memory_disconnect(struct broker_memory *broker, uint64_t connection);
bool broker_memory_is_connected(const struct broker_memory *broker, uint64_t connection);

/* Declared queues exist until deleted or until the broker dies (durable ones survive that, with
 * their messages). `single` : a single active consumer. */
void broker_memory_declare(struct broker_memory *broker, const char *queue, bool single,
                           bool durable);
/* Prefetch 0: no limit. A queue that does not exist is answered by BROKER_CANCELLED. */
void broker_memory_consume(struct broker_memory *broker, uint64_t connection, const char *queue,
                           uint32_t prefetch);
/* Stops consuming; deliveries stay with the connection until it acknowledges them. */
void broker_memory_cancel(struct broker_memory *broker, uint64_t connection, const char *queue);
/* `sequence` is confirmed later; bytes are copied. */
void broker_memory_publish(struct broker_memory *broker, uint64_t connection, const char *queue,
                           struct text bytes, uint64_t sequence);
void broker_memory_acknowledge(struct broker_memory *broker, uint64_t connection, uint64_t tag,
                               bool multiple);

enum broker_action_kind {
    BROKER_DELIVERY,  /* `tag`, `queue`, `bytes` (owned by the taker), `redelivered` */
    BROKER_CONFIRM,   /* `sequence` */
    BROKER_RETURN,    /* `sequence`: no such queue; a confirm follows */
    BROKER_CANCELLED, /* `queue` under the consumer is not there. */
};

struct broker_action {
    enum broker_action_kind kind;
    char queue[BROKER_QUEUE_NAME_SIZE];
    uint64_t tag;
    uint64_t sequence;
    bool redelivered;
    struct buf bytes;
};

/* The next action for this connection. `choice` picks among those that are ready (deliveries of
 * several queues, confirms): any number will do, the same number makes the same choice. False: none
 * is ready. */
bool broker_memory_take(struct broker_memory *broker, uint64_t connection, uint64_t choice,
                        struct broker_action *out);
bool broker_memory_has_action(const struct broker_memory *broker, uint64_t connection);

/* Faults. */
void broker_memory_kill(struct broker_memory *broker);  /* All connections end, queues are gone. */
void broker_memory_start(struct broker_memory *broker); /* Connections are possible again. */
bool broker_memory_is_up(const struct broker_memory *broker);
void broker_memory_purge(struct broker_memory *broker, const char *queue);
void broker_memory_delete(struct broker_memory *broker, const char *queue);

/* Messages ready in a queue, and its consumers; zeros if there is no such queue. */
void broker_memory_depth(const struct broker_memory *broker, const char *queue,
                         uint64_t *out_messages, uint32_t *out_consumers);
/* For tests: messages ready and unacknowledged in a queue (NULL: in all). */
uint64_t broker_memory_count(const struct broker_memory *broker, const char *queue);

#endif
