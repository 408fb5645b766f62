/* SPDX-License-Identifier: Apache-2.0 */
/* rabbit_consumer.c - the thread that consumes and acknowledges.
 *
 * Two channels, because prefetch counts by channel and consumer: work in flight never blocks the
 * inbox. A consumer that the broker cancels (its queue is gone) ends the round: the next one
 * declares all queues again.
 *
 * Queues are measured here, since a broker with an alarm still reads this connection, but not the
 * publisher's.
 */
#include <stdio.h>

#include "cluster/bus/rabbit_bus.h"
#include "cluster/bus/rabbit_queue.h"

enum {
    INBOX_CHANNEL = 1,
    WORK_CHANNEL = 2,
    MEASURE_PERIOD_MS = 1000,
    INPUTS_AT_ONCE = 64,
    PREFETCH_MAX = 65535
};

struct rabbit_consumer {
    struct rabbit_bus *bus;
    struct rabbit_connection *connection;
    bool has_inbox;
    bool is_working;
    uint64_t measured_ms;
};

static status set_prefetch(struct rabbit_consumer *consumer, amqp_channel_t channel,
                           uint32_t prefetch, struct error *err)
{
    TRY(rabbit_open_channel(consumer->connection, channel, err));
    if (prefetch == 0) prefetch = 1;
    if (prefetch > PREFETCH_MAX) prefetch = PREFETCH_MAX;
    (void)amqp_basic_qos(rabbit_state(consumer->connection), channel, 0, (uint16_t)prefetch,
                         0); /* rabbit_check reports it. */
    return rabbit_check(consumer->connection, "setting the prefetch", err);
}

static status connect_consumer(struct rabbit_consumer *consumer, const struct rabbit_uri *uri,
                               struct error *err)
{
    const struct bus_limits *limits = &consumer->bus->options.limits;
    struct rabbit_options options = rabbit_bus_connection_options(consumer->bus);
    TRY(rabbit_connect(uri, &options, &consumer->connection, err));
    TRY(set_prefetch(consumer, INBOX_CHANNEL, limits->inbox_prefetch, err));
    return set_prefetch(consumer, WORK_CHANNEL, limits->work_prefetch, err);
}

static status consume(struct rabbit_consumer *consumer, const struct bus_address *address,
                      struct error *err)
{
    char name[RABBIT_QUEUE_NAME_SIZE];
    char tag[RABBIT_CONSUMER_SIZE] = "i";
    rabbit_queue_name(&consumer->bus->options, address, name);
    if (address->kind == BUS_WORK) snprintf(tag, sizeof tag, "w%u", address->work);
    /* When a queue is deleted and declared again at once, the broker would move the consumer to the
     * new one, and then lose its deliveries. With this argument it cancels the consumer instead. */
    amqp_table_entry_t entry = {
        .key = amqp_cstring_bytes("x-cancel-on-ha-failover"),
        .value = {.kind = AMQP_FIELD_KIND_BOOLEAN, .value = {.boolean = 1}}};
    /* Quorum queues refuse the argument. */
    bool is_quorum = consumer->bus->options.queues == BUS_AMQP_QUORUM;
    amqp_table_t arguments = {is_quorum ? 0 : 1, &entry};
    (void)amqp_basic_consume(rabbit_state(consumer->connection),
                             address->kind == BUS_INBOX ? INBOX_CHANNEL : WORK_CHANNEL,
                             amqp_cstring_bytes(name), amqp_cstring_bytes(tag), 0, 0, 0,
                             arguments); /* rabbit_check reports it. */
    status result = rabbit_check(consumer->connection, "consuming", err);
    if (result != STATUS_OK) return error_prefix(err, "queue %s", name);
    return STATUS_OK;
}

static status cancel_work(struct rabbit_consumer *consumer, uint32_t work, struct error *err)
{
    char tag[RABBIT_CONSUMER_SIZE];
    snprintf(tag, sizeof tag, "w%u", work);
    (void)amqp_basic_cancel(rabbit_state(consumer->connection), WORK_CHANNEL,
                            amqp_cstring_bytes(tag)); /* rabbit_check reports it. */
    return rabbit_check(consumer->connection, "cancelling a consumer", err);
}

/* Consumes from the work queues if the owner asked for it (bus_work). */
static status follow_owner(struct rabbit_consumer *consumer, struct error *err)
{
    struct rabbit_bus *bus = consumer->bus;
    if (!consumer->has_inbox) {
        struct bus_address inbox = {.kind = BUS_INBOX, .node = text_of(bus->options.node)};
        TRY(consume(consumer, &inbox, err));
        consumer->has_inbox = true;
    }
    pthread_mutex_lock(&bus->lock);
    bool wants_work = bus->wants_work;
    pthread_mutex_unlock(&bus->lock);
    if (wants_work == consumer->is_working) return STATUS_OK;
    for (uint32_t i = 0; i < bus->options.work_count; i++) {
        struct bus_address work = {.kind = BUS_WORK, .work = i};
        TRY(wants_work ? consume(consumer, &work, err) : cancel_work(consumer, i, err));
    }
    consumer->is_working = wants_work;
    return STATUS_OK;
}

static status send_acks(struct rabbit_consumer *consumer, struct error *err)
{
    struct rabbit_bus *bus = consumer->bus;
    for (;;) {
        struct inbox_ack ack;
        pthread_mutex_lock(&bus->lock);
        bool found = inbox_next_ack(bus->inbox, &ack);
        pthread_mutex_unlock(&bus->lock);
        if (!found) return STATUS_OK;
        int code = amqp_basic_ack(rabbit_state(consumer->connection), (amqp_channel_t)ack.channel,
                                  ack.tag, ack.multiple);
        if (code != AMQP_STATUS_OK) {
            return error_set(err, STATUS_IO, "acknowledging: %s", amqp_error_string2(code));
        }
    }
}

/* Deliveries on a channel that was closed can't be acknowledged any more: if there are any, the
 * round is over. The next bus_measure asks again. */
static status open_again(struct rabbit_consumer *consumer, struct error *err)
{
    if (consumer->is_working) {
        return error_set(err, STATUS_IO,
                         "the broker closed a channel that asked for the depth of queues");
    }
    return set_prefetch(consumer, WORK_CHANNEL, consumer->bus->options.limits.work_prefetch, err);
}

static status measure(struct rabbit_consumer *consumer, struct error *err)
{
    struct rabbit_bus *bus = consumer->bus;
    struct bus_event event = {.kind = BUS_MEASURED};
    bool is_refused = false;
    uint64_t now_ms = rabbit_bus_now_ms();
    if (now_ms - consumer->measured_ms < MEASURE_PERIOD_MS) return STATUS_OK;
    pthread_mutex_lock(&bus->lock);
    bool is_wanted = bus->wants_measure;
    bus->wants_measure = false;
    pthread_mutex_unlock(&bus->lock);
    if (!is_wanted) return STATUS_OK;
    consumer->measured_ms = now_ms;
    status result = rabbit_queue_measure_all(&bus->options, consumer->connection, WORK_CHANNEL,
                                             &event.depths, &is_refused, err);
    if (result == STATUS_OK && !is_refused && !event.depths.failed) {
        rabbit_bus_tell(bus, &event);
        return STATUS_OK;
    }
    buf_done(&event.depths);
    return is_refused ? open_again(consumer, err) : result;
}

/* *out_has_more: there may be more to read. */
static status hear_some(struct rabbit_consumer *consumer, bool *out_has_more, struct error *err)
{
    *out_has_more = false;
    for (int i = 0; i < INPUTS_AT_ONCE; i++) {
        struct rabbit_input input;
        TRY(rabbit_read(consumer->connection, &input, err));
        if (input.kind == RABBIT_NOTHING) return STATUS_OK;
        if (input.kind == RABBIT_CANCEL) {
            return error_set(err, STATUS_IO, "a queue was deleted (consumer %s)", input.consumer);
        }
        if (input.kind == RABBIT_DELIVERY) rabbit_bus_deliver(consumer->bus, &input);
        /* The publisher handles the others, such as RABBIT_BLOCKED. */
    }
    *out_has_more = true;
    return STATUS_OK;
}

/* Returns when the round is over. STATUS_OK: the bus is closing, or the other side has broken the
 * round. */
static status work(struct rabbit_consumer *consumer, struct error *err)
{
    struct rabbit_bus *bus = consumer->bus;
    uint32_t heartbeat_ms = bus->options.heartbeat_s * 1000 / 4;
    for (;;) {
        bool has_more;
        rabbit_bus_woken(bus, RABBIT_CONSUMER);
        TRY(hear_some(consumer, &has_more, err));
        enum rabbit_bus_phase phase = rabbit_bus_phase(bus);
        if (phase == RABBIT_BUS_BROKEN) return STATUS_OK;
        if (phase == RABBIT_BUS_OPEN) TRY(follow_owner(consumer, err));
        TRY(send_acks(consumer, err));
        if (phase == RABBIT_BUS_OPEN) TRY(measure(consumer, err));
        if (phase == RABBIT_BUS_DRAINED) return STATUS_OK;
        struct rabbit_wait wait = {.wake_fd = bus->sides[RABBIT_CONSUMER].wake_fd,
                                   .timeout_ms = has_more ? 0 : heartbeat_ms};
        rabbit_wait(consumer->connection, &wait);
    }
}

void *rabbit_consumer_run(void *argument)
{
    struct rabbit_bus *bus = argument;
    const struct rabbit_uri *uri;
    while (rabbit_bus_begin(bus, RABBIT_CONSUMER, &uri)) {
        struct rabbit_consumer consumer = {.bus = bus};
        struct error err;
        status result = connect_consumer(&consumer, uri, &err);
        if (result == STATUS_OK) {
            rabbit_bus_ready(bus, RABBIT_CONSUMER);
            result = work(&consumer, &err);
        }
        if (result != STATUS_OK) {
            rabbit_drop(consumer.connection);
            rabbit_bus_break(bus, err.text);
        } else {
            rabbit_close(consumer.connection);
        }
    }
    return NULL;
}
