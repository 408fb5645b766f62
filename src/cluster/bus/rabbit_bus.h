/* SPDX-License-Identifier: Apache-2.0 */
/* rabbit_bus.h - state that the two threads of bus_amqp share.
 *
 * A round is one incarnation of both connections: each side connects, reports that it is ready, and
 * works until one of them breaks the round; then both begin the next one.
 *
 *     rabbit_bus_begin -> (rabbit_bus_ready)? -> ... -> rabbit_bus_break? -> rabbit_bus_begin ...
 *
 * Locks: `listening` is held while the listener is called, so that events come one at a time and in
 * the order in which they happened; `lock` guards all else. A thread that needs both takes
 * `listening` first.
 */
#ifndef CLUSTER_BUS_RABBIT_BUS_H
#define CLUSTER_BUS_RABBIT_BUS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/random.h"
#include "cluster/bus/bus_amqp.h"
#include "cluster/bus/bus_tracker.h"
#include "cluster/bus/rabbit_connection.h"

enum rabbit_side_kind { RABBIT_PUBLISHER, RABBIT_CONSUMER, RABBIT_SIDES };

struct rabbit_side {
    pthread_t thread;
    bool is_started;
    int wake_fd;          /* An eventfd. */
    atomic_bool is_awake; /* wake_fd has been written and not read yet. */
    bool is_idle;         /* Has ended its part of the round. */
    bool is_ready;        /* Is connected. */
};

struct rabbit_bus {
    struct bus bus;
    struct bus_amqp_options options; /* Texts in the arena. */
    struct rabbit_uri *uris;
    struct bus_listener *listener;
    struct arena arena;

    pthread_mutex_t listening;
    bool is_told;     /* BUS_CONNECTED, and not BUS_DISCONNECTED since. Guarded by `listening`. */
    char reason[256]; /* The last one that was told. Guarded by `listening`. */

    pthread_mutex_t lock; /* Guards all below. */
    pthread_cond_t changed;
    struct outbox *outbox;
    struct inbox *inbox;
    struct rabbit_side sides[RABBIT_SIDES];
    uint64_t round;
    uint32_t failures;      /* Rounds in a row that did not last. */
    uint64_t not_before_ms; /* When the round's connections are tried. */
    uint64_t opened_ms;     /* 0: not yet in this round. */
    bool is_broken;         /* This round is over. */
    bool wants_work;
    bool wants_measure;
    bool is_stopping;
    uint64_t stop_by_ms;
    struct random random;
};

uint64_t rabbit_bus_now_ms(void);

/* Ends this side's part of a round and waits for the next one; false: the bus is closing and
 * nothing is left to do. *out_uri is where to connect. */
MUST_USE bool rabbit_bus_begin(struct rabbit_bus *bus, enum rabbit_side_kind side,
                               const struct rabbit_uri **out_uri);
void rabbit_bus_ready(struct rabbit_bus *bus, enum rabbit_side_kind side);
/* The round is over, for this reason. Only the first one counts. */
void rabbit_bus_break(struct rabbit_bus *bus, const char *reason);

enum rabbit_bus_phase {
    RABBIT_BUS_WAITS,  /* The other side is not ready. */
    RABBIT_BUS_OPEN,   /* Both are. */
    RABBIT_BUS_BROKEN, /* Drop the connection and begin again. */
    RABBIT_BUS_DRAINED /* The bus is closing and has sent all it could: close the connection. */
};
enum rabbit_bus_phase rabbit_bus_phase(struct rabbit_bus *bus);

/* Called by the owner's thread, and by one side for the other. */
void rabbit_bus_wake(struct rabbit_bus *bus, enum rabbit_side_kind side);
/* Resets the wake; called before a side looks for work, so that no wake is lost. */
void rabbit_bus_woken(struct rabbit_bus *bus, enum rabbit_side_kind side);
/* Out of memory for a tracker: writes a line, and kills this process. */
void rabbit_bus_end_process(void);

void rabbit_bus_tell(struct rabbit_bus *bus, struct bus_event *event);
/* If the round is over or the bus is closing, only frees the bytes. */
void rabbit_bus_deliver(struct rabbit_bus *bus, struct rabbit_input *input);

/* The threads, for pthread_create; the argument is the bus. */
void *rabbit_publisher_run(void *argument);
void *rabbit_consumer_run(void *argument);

struct rabbit_options rabbit_bus_connection_options(const struct rabbit_bus *bus);

#endif
