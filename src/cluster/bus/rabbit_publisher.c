/* SPDX-License-Identifier: Apache-2.0 */
/* rabbit_publisher.c - the thread that publishes: it writes parts of messages and reads confirms.
 *
 * It never computes and waits only in poll(), so that AMQP heartbeats go out. Progress is a
 * confirm, a return, or a part that the kernel took; without any for the deadline the thread drops
 * the connection, and publishes all unconfirmed messages again on the next. A broker that reports
 * an alarm gets ten times as long.
 */
#include <string.h>

#include "cluster/bus/rabbit_bus.h"
#include "cluster/bus/rabbit_queue.h"

enum {
    PUBLISH_CHANNEL = 1,
    DECLARE_CHANNEL = 2,
    PARTS_AT_ONCE = 16,
    DECLARE_AGAIN_MS = 100, /* One missing queue makes many returns. */
    BLOCKED_FACTOR = 10
};

struct publisher {
    struct rabbit_bus *bus;
    struct rabbit_connection *connection;
    struct rabbit_message message; /* Being written, if has_message. The outbox owns its bytes. */
    char queue[RABBIT_QUEUE_NAME_SIZE];
    bool has_message;
    bool is_blocked;
    bool is_patient; /* The kernel may hold our bytes for longer than the deadline. */
    uint64_t progress_ms;
    uint64_t declared_ms;
};

static status connect_publisher(struct publisher *publisher, const struct rabbit_uri *uri,
                                struct error *err)
{
    struct rabbit_options options = rabbit_bus_connection_options(publisher->bus);
    TRY(rabbit_connect(uri, &options, &publisher->connection, err));
    TRY(rabbit_open_channel(publisher->connection, PUBLISH_CHANNEL, err));
    TRY(rabbit_open_channel(publisher->connection, DECLARE_CHANNEL, err));
    (void)amqp_confirm_select(rabbit_state(publisher->connection),
                              PUBLISH_CHANNEL); /* rabbit_check reports it. */
    TRY(rabbit_check(publisher->connection, "asking for confirms", err));
    TRY(rabbit_queue_declare_all(&publisher->bus->options, publisher->connection, DECLARE_CHANNEL,
                                 err));
    publisher->progress_ms = rabbit_bus_now_ms();
    publisher->declared_ms = publisher->progress_ms;
    return STATUS_OK;
}

static void tell_settled(struct rabbit_bus *bus, enum bus_event_kind kind, struct buf *settled)
{
    for (size_t at = 0; at + sizeof(uint64_t) <= settled->size; at += sizeof(uint64_t)) {
        struct bus_event event = {.kind = kind};
        memcpy(&event.token, settled->bytes + at, sizeof event.token);
        rabbit_bus_tell(bus, &event);
    }
    buf_done(settled);
}

/* Declares the queues first, so that a message that is sent again finds them. */
static status hear_return(struct publisher *publisher, uint64_t sequence, struct error *err)
{
    struct rabbit_bus *bus = publisher->bus;
    uint64_t now_ms = rabbit_bus_now_ms();
    if (now_ms - publisher->declared_ms >= DECLARE_AGAIN_MS) {
        TRY(rabbit_queue_declare_all(&bus->options, publisher->connection, DECLARE_CHANNEL, err));
        publisher->declared_ms = rabbit_bus_now_ms();
    }
    struct buf settled = {0};
    pthread_mutex_lock(&bus->lock);
    (void)outbox_return(bus->outbox, sequence, &settled); /* `settled` says it. */
    pthread_mutex_unlock(&bus->lock);
    tell_settled(bus, BUS_RETURNED, &settled);
    return STATUS_OK;
}

static void set_patient(struct publisher *publisher, bool is_patient)
{
    if (publisher->is_patient == is_patient) return;
    publisher->is_patient = is_patient;
    uint32_t deadline_ms = publisher->bus->options.limits.deadline_ms;
    rabbit_set_timeout(publisher->connection,
                       is_patient ? deadline_ms * BLOCKED_FACTOR : deadline_ms);
}

/* The longer timeout ends with the first confirm after the alarm, not with the alarm: until the
 * broker has read, TCP_USER_TIMEOUT counts from when it stopped reading. */
static void hear_blocked(struct publisher *publisher, bool is_blocked)
{
    if (publisher->is_blocked == is_blocked) return;
    publisher->is_blocked = is_blocked;
    if (is_blocked) set_patient(publisher, true);
    struct bus_event event = {.kind = is_blocked ? BUS_BLOCKED : BUS_UNBLOCKED};
    rabbit_bus_tell(publisher->bus, &event);
}

static status hear(struct publisher *publisher, const struct rabbit_input *input, struct error *err)
{
    struct rabbit_bus *bus = publisher->bus;
    struct buf settled = {0};
    publisher->progress_ms = rabbit_bus_now_ms();
    switch (input->kind) {
    case RABBIT_ACK:
        if (!publisher->is_blocked) set_patient(publisher, false);
        pthread_mutex_lock(&bus->lock);
        outbox_confirm(bus->outbox, input->number, input->multiple, &settled);
        pthread_mutex_unlock(&bus->lock);
        tell_settled(bus, BUS_CONFIRMED, &settled);
        return STATUS_OK;
    case RABBIT_NACK:
        pthread_mutex_lock(&bus->lock);
        outbox_refuse(bus->outbox, input->number, input->multiple);
        pthread_mutex_unlock(&bus->lock);
        /* A channel that found a quorum queue without a leader refuses for ever, although a new
         * leader is elected soon: only a new channel finds that one. */
        return error_set(err, STATUS_IO, "the broker refused a message");
    case RABBIT_RETURN:
        return hear_return(publisher, input->number, err);
    case RABBIT_BLOCKED:
    case RABBIT_UNBLOCKED:
        hear_blocked(publisher, input->kind == RABBIT_BLOCKED);
        return STATUS_OK;
    case RABBIT_NOTHING:
    case RABBIT_DELIVERY:
    case RABBIT_CANCEL:
    default:
        return error_set(err, STATUS_IO, "the broker sent a method that was not expected");
    }
}

static status hear_all(struct publisher *publisher, struct error *err)
{
    for (;;) {
        struct rabbit_input input;
        TRY(rabbit_read(publisher->connection, &input, err));
        if (input.kind == RABBIT_NOTHING) return STATUS_OK;
        status result = hear(publisher, &input, err);
        buf_done(&input.bytes);
        TRY(result);
    }
}

static bool next_message(struct publisher *publisher)
{
    struct rabbit_bus *bus = publisher->bus;
    struct outbox_message next;
    uint64_t sequence = 0;
    pthread_mutex_lock(&bus->lock);
    bool found = outbox_next(bus->outbox, &next, &sequence);
    if (outbox_failed(bus->outbox)) rabbit_bus_end_process();
    pthread_mutex_unlock(&bus->lock);
    if (!found) return false;
    rabbit_queue_name(&bus->options, &next.to, publisher->queue);
    publisher->message =
        (struct rabbit_message){.queue = publisher->queue,
                                .number = sequence,
                                .bytes = next.bytes,
                                .persistent = bus->options.queues == BUS_AMQP_QUORUM,
                                .expires_ms = next.to.expires_ms};
    return true;
}

/* *out_wants_room: there is more to write, and the socket is full. */
static status write_some(struct publisher *publisher, bool *out_wants_room, bool *out_has_more,
                         struct error *err)
{
    *out_wants_room = false;
    *out_has_more = false;
    for (int part = 0; part < PARTS_AT_ONCE; part++) {
        if (!publisher->has_message) publisher->has_message = next_message(publisher);
        if (!publisher->has_message) return STATUS_OK;
        bool wrote;
        TRY(rabbit_write(publisher->connection, &publisher->message, &wrote, err));
        if (!wrote) {
            *out_wants_room = true;
            return STATUS_OK;
        }
        publisher->progress_ms = rabbit_bus_now_ms();
        if (rabbit_is_written(&publisher->message)) publisher->has_message = false;
    }
    *out_has_more = true;
    return STATUS_OK;
}

static status check_progress(struct publisher *publisher, struct error *err)
{
    struct rabbit_bus *bus = publisher->bus;
    uint64_t now_ms = rabbit_bus_now_ms();
    pthread_mutex_lock(&bus->lock);
    bool is_waiting = outbox_unconfirmed(bus->outbox) > 0;
    pthread_mutex_unlock(&bus->lock);
    if (!is_waiting) publisher->progress_ms = now_ms;
    uint64_t limit_ms = bus->options.limits.deadline_ms;
    if (publisher->is_blocked) limit_ms *= BLOCKED_FACTOR;
    if (now_ms - publisher->progress_ms <= limit_ms) return STATUS_OK;
    return error_set(err, STATUS_IO, "the broker confirmed nothing for %llu ms%s",
                     (unsigned long long)limit_ms, publisher->is_blocked ? "; it is blocked" : "");
}

/* Returns when the round is over. STATUS_OK: the bus is closing, or the other side has broken the
 * round. */
static status work(struct publisher *publisher, struct error *err)
{
    struct rabbit_bus *bus = publisher->bus;
    uint32_t heartbeat_ms = bus->options.heartbeat_s * 1000 / 4;
    for (;;) {
        rabbit_bus_woken(bus, RABBIT_PUBLISHER);
        TRY(hear_all(publisher, err));
        enum rabbit_bus_phase phase = rabbit_bus_phase(bus);
        if (phase == RABBIT_BUS_BROKEN || phase == RABBIT_BUS_DRAINED) return STATUS_OK;
        bool wants_room = false;
        bool has_more = false;
        if (phase == RABBIT_BUS_OPEN && !publisher->is_blocked) {
            TRY(write_some(publisher, &wants_room, &has_more, err));
        }
        TRY(check_progress(publisher, err));
        struct rabbit_wait wait = {.wake_fd = bus->sides[RABBIT_PUBLISHER].wake_fd,
                                   .timeout_ms = has_more ? 0 : heartbeat_ms,
                                   .room_wanted = wants_room};
        rabbit_wait(publisher->connection, &wait);
    }
}

void *rabbit_publisher_run(void *argument)
{
    struct rabbit_bus *bus = argument;
    const struct rabbit_uri *uri;
    while (rabbit_bus_begin(bus, RABBIT_PUBLISHER, &uri)) {
        struct publisher publisher = {.bus = bus};
        struct error err;
        status result = connect_publisher(&publisher, uri, &err);
        if (result == STATUS_OK) {
            rabbit_bus_ready(bus, RABBIT_PUBLISHER);
            result = work(&publisher, &err);
        }
        if (result != STATUS_OK) {
            rabbit_drop(publisher.connection);
            rabbit_bus_break(bus, err.text);
        } else {
            rabbit_close(publisher.connection);
        }
    }
    return NULL;
}
