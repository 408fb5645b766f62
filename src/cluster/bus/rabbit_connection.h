/* SPDX-License-Identifier: Apache-2.0 */
/* rabbit_connection.h - one AMQP connection to RabbitMQ that never waits without a bound.
 *
 *     rabbit_connect -> rabbit_open_channel* -> (rabbit_wait -> rabbit_read* -> rabbit_write*)* ->
 *     rabbit_close (a clean AMQP close) or rabbit_drop
 *
 * Callers may call librabbitmq with rabbit_state(); rabbit_check then returns the result. AMQP
 * heartbeats are sent and checked only inside rabbit_read: call it several times per period.
 *
 * After a failure only rabbit_drop may follow. Threads: one owner.
 */
#ifndef CLUSTER_BUS_RABBIT_CONNECTION_H
#define CLUSTER_BUS_RABBIT_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include <amqp.h>

#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "cluster/bus/rabbit_tls.h"

struct arena;

/* Where a broker is. Texts live in the arena. */
struct rabbit_uri {
    const char *user;
    const char *password;
    const char *host;
    const char *vhost;
    int port;
    bool is_tls; /* amqps */
};

MUST_USE status rabbit_uri_parse(const char *uri, struct arena *arena, struct rabbit_uri *out,
                                 struct error *err);

struct rabbit_options {
    uint32_t deadline_ms; /* Of connecting, of every call, and of unacknowledged TCP segments. */
    uint32_t heartbeat_s;
    const char *name;      /* Of the connection, in the broker's tools. */
    struct rabbit_tls tls; /* For amqps; borrowed until it is connected. */
};

struct rabbit_connection;

MUST_USE status rabbit_connect(const struct rabbit_uri *uri, const struct rabbit_options *options,
                               struct rabbit_connection **out, struct error *err);
/* Within about a second. Both accept NULL. */
void rabbit_close(struct rabbit_connection *connection);
void rabbit_drop(struct rabbit_connection *connection);

amqp_connection_state_t rabbit_state(const struct rabbit_connection *connection);
/* The result of the last call with rabbit_state; `what` names it in the error. */
MUST_USE status rabbit_check(struct rabbit_connection *connection, const char *what,
                             struct error *err);
/* Channels are 1 and 2. */
MUST_USE status rabbit_open_channel(struct rabbit_connection *connection, amqp_channel_t channel,
                                    struct error *err);
/* TCP_USER_TIMEOUT (RFC 5482); longer while the broker has an alarm. */
void rabbit_set_timeout(struct rabbit_connection *connection, uint32_t failure_timeout_ms);

enum rabbit_input_kind {
    RABBIT_NOTHING,
    RABBIT_DELIVERY, /* `channel`, `consumer`, `number` is its tag, `bytes` */
    RABBIT_RETURN,   /* `number` as given to rabbit_write */
    RABBIT_ACK,      /* `number`, `multiple` */
    RABBIT_NACK,     /* `number`, `multiple` */
    RABBIT_CANCEL,   /* `consumer` */
    RABBIT_BLOCKED,
    RABBIT_UNBLOCKED
};

enum { RABBIT_CONSUMER_SIZE = 32 };

struct rabbit_input {
    enum rabbit_input_kind kind;
    amqp_channel_t channel;
    uint64_t number;
    bool multiple;
    char consumer[RABBIT_CONSUMER_SIZE];
    struct buf bytes; /* Moved to the caller. */
};

/* The next input, without waiting. A closed connection is a failure, with the broker's reason. */
MUST_USE status rabbit_read(struct rabbit_connection *connection, struct rabbit_input *out,
                            struct error *err);

/* A message that is being written; `sent` begins with 0. */
struct rabbit_message {
    const char *queue;
    uint64_t number;
    struct text bytes;
    bool persistent;
    uint32_t expires_ms; /* 0: never. */
    bool begun;
    uint32_t sent;
};

/* Writes a part that fits the socket's buffer, if there is room; publishes on channel 1. Between
 * the parts of one message nothing else may be sent on that channel. *out_wrote false: try again
 * after rabbit_wait. */
MUST_USE status rabbit_write(struct rabbit_connection *connection, struct rabbit_message *message,
                             bool *out_wrote, struct error *err);
bool rabbit_is_written(const struct rabbit_message *message);

/* Waits until there is input, `wake_fd` is readable, or the timeout; if wanted also until there is
 * room to write. */
struct rabbit_wait {
    int wake_fd;
    uint32_t timeout_ms;
    bool room_wanted;
};
void rabbit_wait(struct rabbit_connection *connection, const struct rabbit_wait *wait);

/* Whether a server there answers an AMQP protocol header, or for amqps a TLS handshake. */
bool rabbit_probe(const struct rabbit_uri *uri, uint32_t timeout_ms);

#endif
