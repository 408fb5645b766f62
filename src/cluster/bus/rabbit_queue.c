/* SPDX-License-Identifier: Apache-2.0 */
/* rabbit_queue.c - few queues, with fixed names.
 *
 * Neither auto-delete nor exclusive: a node that was down finds the messages sent meanwhile. An
 * inbox has a single active consumer, so that two processes with one name don't share its messages.
 * RabbitMQ 4 drops a message of a quorum queue after twenty deliveries unless the queue sets a
 * delivery limit: a worker that is killed again and again must not lose its input.
 */
#include "cluster/bus/rabbit_queue.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/hash.h"
#include "cluster/bus/rabbit_connection.h"

enum { ARGUMENTS_MAX = 3, DELIVERY_LIMIT = 1000000000 };

static bool is_quorum(const struct bus_amqp_options *options)
{
    return options->queues == BUS_AMQP_QUORUM;
}

/* All arguments that the broker compares when a queue is declared again. */
static const char *arguments_text(const struct bus_amqp_options *options, enum bus_queue_kind kind)
{
    if (is_quorum(options)) {
        return kind == BUS_INBOX ? "quorum durable single-active-consumer limit-1000000000"
                                 : "quorum durable limit-1000000000";
    }
    return kind == BUS_INBOX ? "classic transient single-active-consumer" : "classic transient";
}

static int format_name(const struct bus_amqp_options *options, const struct bus_address *address,
                       char out[RABBIT_QUEUE_NAME_SIZE])
{
    const char *arguments = arguments_text(options, address->kind);
    uint32_t hash = (uint32_t)hash_bytes(arguments, strlen(arguments));
    if (address->kind == BUS_INBOX) {
        return snprintf(out, RABBIT_QUEUE_NAME_SIZE, "millrace.%s.inbox.%.*s.%08x",
                        options->cluster, TEXT_ARGS(address->node), hash);
    }
    return snprintf(out, RABBIT_QUEUE_NAME_SIZE, "millrace.%s.work.%u.%08x", options->cluster,
                    address->work, hash);
}

void rabbit_queue_name(const struct bus_amqp_options *options, const struct bus_address *address,
                       char out[RABBIT_QUEUE_NAME_SIZE])
{
    int size = format_name(options, address, out);
    ASSERT(size > 0);
}

uint32_t rabbit_queue_count(const struct bus_amqp_options *options)
{
    return options->node_count + options->work_count;
}

struct bus_address rabbit_queue_address(const struct bus_amqp_options *options, uint32_t index)
{
    if (index < options->node_count) {
        return (struct bus_address){.kind = BUS_INBOX, .node = text_of(options->nodes[index])};
    }
    return (struct bus_address){.kind = BUS_WORK, .work = index - options->node_count};
}

status rabbit_queue_check(const struct bus_amqp_options *options, struct error *err)
{
    for (uint32_t i = 0; i < rabbit_queue_count(options); i++) {
        char name[RABBIT_QUEUE_NAME_SIZE];
        struct bus_address address = rabbit_queue_address(options, i);
        if (format_name(options, &address, name) >= RABBIT_QUEUE_NAME_SIZE) {
            return error_set(err, STATUS_USAGE,
                             "the names of the cluster and of the node are too long: a queue's "
                             "name has at most 255 bytes: %s...",
                             name);
        }
    }
    return STATUS_OK;
}

static amqp_table_t make_arguments(const struct bus_amqp_options *options, enum bus_queue_kind kind,
                                   amqp_table_entry_t entries[ARGUMENTS_MAX])
{
    int count = 0;
    if (kind == BUS_INBOX) {
        entries[count++] = (amqp_table_entry_t){
            .key = amqp_cstring_bytes("x-single-active-consumer"),
            .value = {.kind = AMQP_FIELD_KIND_BOOLEAN, .value = {.boolean = 1}}};
    }
    if (is_quorum(options)) {
        entries[count++] =
            (amqp_table_entry_t){.key = amqp_cstring_bytes("x-queue-type"),
                                 .value = {.kind = AMQP_FIELD_KIND_UTF8,
                                           .value = {.bytes = amqp_cstring_bytes("quorum")}}};
        entries[count++] = (amqp_table_entry_t){
            .key = amqp_cstring_bytes("x-delivery-limit"),
            .value = {.kind = AMQP_FIELD_KIND_I32, .value = {.i32 = DELIVERY_LIMIT}}};
    }
    return (amqp_table_t){count, entries};
}

/* NULL: it failed, and rabbit_check says why. */
static const amqp_queue_declare_ok_t *declare(const struct bus_amqp_options *options,
                                              const struct bus_address *address,
                                              struct rabbit_connection *connection,
                                              amqp_channel_t channel)
{
    char name[RABBIT_QUEUE_NAME_SIZE];
    rabbit_queue_name(options, address, name);
    amqp_table_entry_t entries[ARGUMENTS_MAX];
    amqp_table_t arguments = make_arguments(options, address->kind, entries);
    return amqp_queue_declare(rabbit_state(connection), channel, amqp_cstring_bytes(name), 0,
                              is_quorum(options), 0, 0, arguments);
}

/* Whether the broker has closed the channel; confirms that with close-ok. */
static bool is_channel_closed(struct rabbit_connection *connection, amqp_channel_t channel)
{
    amqp_rpc_reply_t reply = amqp_get_rpc_reply(rabbit_state(connection));
    if (reply.reply_type != AMQP_RESPONSE_SERVER_EXCEPTION ||
        reply.reply.id != AMQP_CHANNEL_CLOSE_METHOD) {
        return false;
    }
    amqp_channel_close_ok_t closed = {0};
    return amqp_send_method(rabbit_state(connection), channel, AMQP_CHANNEL_CLOSE_OK_METHOD,
                            &closed) == AMQP_STATUS_OK;
}

status rabbit_queue_measure_all(const struct bus_amqp_options *options,
                                struct rabbit_connection *connection, amqp_channel_t channel,
                                struct buf *out, bool *out_refused, struct error *err)
{
    *out_refused = false;
    for (uint32_t i = 0; i < rabbit_queue_count(options); i++) {
        struct bus_address address = rabbit_queue_address(options, i);
        const amqp_queue_declare_ok_t *ok = declare(options, &address, connection, channel);
        if (ok == NULL) {
            *out_refused = is_channel_closed(connection, channel);
            return *out_refused ? STATUS_OK : rabbit_check(connection, "measuring queues", err);
        }
        struct queue_depth depth = {.messages = ok->message_count, .consumers = ok->consumer_count};
        if (address.kind == BUS_INBOX) {
            (void)snprintf(depth.name, sizeof depth.name, "inbox.%.*s", TEXT_ARGS(address.node));
        } else {
            (void)snprintf(depth.name, sizeof depth.name, "work.%u", address.work);
        }
        buf_put(out, &depth, sizeof depth);
    }
    return STATUS_OK;
}

status rabbit_queue_declare_all(const struct bus_amqp_options *options,
                                struct rabbit_connection *connection, amqp_channel_t channel,
                                struct error *err)
{
    for (uint32_t i = 0; i < rabbit_queue_count(options); i++) {
        char name[RABBIT_QUEUE_NAME_SIZE];
        struct bus_address address = rabbit_queue_address(options, i);
        rabbit_queue_name(options, &address, name);
        (void)declare(options, &address, connection, channel); /* rabbit_check reports it. */
        status result = rabbit_check(connection, "declaring", err);
        if (result != STATUS_OK) return error_prefix(err, "queue %s", name);
    }
    return STATUS_OK;
}
