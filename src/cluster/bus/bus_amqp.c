/* SPDX-License-Identifier: Apache-2.0 */
/* bus_amqp.c - the owner's side of the bus: options, trackers, and the two threads.
 *
 * Sending and acknowledging write to the trackers and wake a thread, which does the rest.
 */
#include "cluster/bus/bus_amqp.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "cluster/bus/rabbit_bus.h"
#include "cluster/bus/rabbit_connection.h"
#include "cluster/bus/rabbit_queue.h"

enum { HEARTBEAT_S = 5, DEADLINE_MS = 15000 };

/* ---- options ---- */

static const char *const *copy_strings(struct arena *arena, const char *const *strings,
                                       uint32_t count)
{
    const char **copies = arena_array(arena, const char *, count + 1u);
    for (uint32_t i = 0; copies != NULL && i < count; i++) {
        copies[i] = arena_copy_string(arena, text_of(strings[i]));
        if (copies[i] == NULL) return NULL;
    }
    return copies;
}

/* NULL stays NULL. */
static status copy_path(struct arena *arena, const char **path, struct error *err)
{
    if (*path == NULL) return STATUS_OK;
    *path = arena_copy_string(arena, text_of(*path));
    return *path == NULL ? error_memory(err) : STATUS_OK;
}

static status copy_options(const struct bus_amqp_options *options, struct arena *arena,
                           struct bus_amqp_options *out, struct error *err)
{
    *out = *options;
    out->cluster = arena_copy_string(arena, text_of(options->cluster));
    out->node = options->node == NULL ? "" : arena_copy_string(arena, text_of(options->node));
    out->nodes = copy_strings(arena, options->nodes, options->node_count);
    if (out->cluster == NULL || out->node == NULL || out->nodes == NULL) return error_memory(err);
    TRY(copy_path(arena, &out->ca, err));
    TRY(copy_path(arena, &out->certificate, err));
    TRY(copy_path(arena, &out->key, err));
    if (out->heartbeat_s == 0) out->heartbeat_s = HEARTBEAT_S;
    if (out->limits.deadline_ms == 0) out->limits.deadline_ms = DEADLINE_MS;
    return rabbit_queue_check(out, err);
}

static status parse_brokers(const struct bus_amqp_options *options, struct arena *arena,
                            struct rabbit_uri **out, struct error *err)
{
    if (options->broker_count == 0) {
        return error_set(err, STATUS_USAGE, "no broker is given: amqp://user:password@host:port");
    }
    struct rabbit_uri *uris = arena_array(arena, struct rabbit_uri, options->broker_count);
    if (uris == NULL) return error_memory(err);
    for (uint32_t i = 0; i < options->broker_count; i++) {
        TRY(rabbit_uri_parse(options->brokers[i], arena, &uris[i], err));
        if (!uris[i].is_tls) continue;
        struct rabbit_tls tls = {options->ca, options->certificate, options->key};
        TRY(rabbit_tls_check(&tls, err));
    }
    *out = uris;
    return STATUS_OK;
}

/* ---- the bus ---- */

static void amqp_send(struct bus *base, const struct bus_address *to, struct buf *bytes,
                      uint64_t token)
{
    struct rabbit_bus *bus = (struct rabbit_bus *)base;
    pthread_mutex_lock(&bus->lock);
    outbox_add(bus->outbox, to, bytes, token);
    if (outbox_failed(bus->outbox)) rabbit_bus_end_process();
    pthread_mutex_unlock(&bus->lock);
    rabbit_bus_wake(bus, RABBIT_PUBLISHER);
}

static void amqp_acknowledge(struct bus *base, uint64_t delivery)
{
    struct rabbit_bus *bus = (struct rabbit_bus *)base;
    pthread_mutex_lock(&bus->lock);
    inbox_acknowledge(bus->inbox, delivery);
    pthread_mutex_unlock(&bus->lock);
    rabbit_bus_wake(bus, RABBIT_CONSUMER);
}

static void amqp_revoke(struct bus *base, uint64_t token)
{
    struct rabbit_bus *bus = (struct rabbit_bus *)base;
    pthread_mutex_lock(&bus->lock);
    outbox_revoke(bus->outbox, token);
    pthread_mutex_unlock(&bus->lock);
}

static void amqp_work(struct bus *base, bool wanted)
{
    struct rabbit_bus *bus = (struct rabbit_bus *)base;
    pthread_mutex_lock(&bus->lock);
    bus->wants_work = wanted;
    pthread_mutex_unlock(&bus->lock);
    rabbit_bus_wake(bus, RABBIT_CONSUMER);
}

static void amqp_measure(struct bus *base)
{
    struct rabbit_bus *bus = (struct rabbit_bus *)base;
    pthread_mutex_lock(&bus->lock);
    bus->wants_measure = true;
    pthread_mutex_unlock(&bus->lock);
    rabbit_bus_wake(bus, RABBIT_CONSUMER);
}

static void free_all(struct rabbit_bus *bus)
{
    for (int side = 0; side < RABBIT_SIDES; side++) {
        if (bus->sides[side].wake_fd >= 0) (void)close(bus->sides[side].wake_fd);
    }
    outbox_destroy(bus->outbox);
    inbox_destroy(bus->inbox);
    pthread_cond_destroy(&bus->changed);
    pthread_mutex_destroy(&bus->lock);
    pthread_mutex_destroy(&bus->listening);
    arena_done(&bus->arena);
    memory_free(NULL, bus, sizeof *bus);
}

static void amqp_close(struct bus *base, uint32_t deadline_ms)
{
    struct rabbit_bus *bus = (struct rabbit_bus *)base;
    pthread_mutex_lock(&bus->lock);
    bus->is_stopping = true;
    bus->stop_by_ms = rabbit_bus_now_ms() + deadline_ms;
    pthread_cond_broadcast(&bus->changed);
    pthread_mutex_unlock(&bus->lock);
    rabbit_bus_wake(bus, RABBIT_PUBLISHER);
    rabbit_bus_wake(bus, RABBIT_CONSUMER);
    for (int side = 0; side < RABBIT_SIDES; side++) {
        if (bus->sides[side].is_started) (void)pthread_join(bus->sides[side].thread, NULL);
    }
    free_all(bus);
}

static const struct bus_class amqp_class = {
    .send = amqp_send,
    .acknowledge = amqp_acknowledge,
    .revoke = amqp_revoke,
    .work = amqp_work,
    .measure = amqp_measure,
    .close = amqp_close,
};

/* Waits use the monotonic clock, which no operator can set. */
static void init_locks(struct rabbit_bus *bus)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&bus->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&bus->lock, NULL);
    pthread_mutex_init(&bus->listening, NULL);
}

static status start_threads(struct rabbit_bus *bus, struct error *err)
{
    void *(*const runs[RABBIT_SIDES])(void *) = {rabbit_publisher_run, rabbit_consumer_run};
    /* Other threads handle signals. */
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failure = 0;
    for (int side = 0; side < RABBIT_SIDES && failure == 0; side++) {
        failure = pthread_create(&bus->sides[side].thread, NULL, runs[side], bus);
        bus->sides[side].is_started = failure == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure == 0) return STATUS_OK;
    return error_set(err, STATUS_IO, "cannot start a thread: %s", strerror(failure));
}

/* Otherwise its inbox would not be declared. */
static status check_node(const struct bus_amqp_options *options, struct error *err)
{
    for (uint32_t i = 0; i < options->node_count; i++) {
        if (strcmp(options->nodes[i], options->node) == 0) return STATUS_OK;
    }
    return error_set(err, STATUS_USAGE, "node %s is not one of the cluster's nodes", options->node);
}

static status prepare(struct rabbit_bus *bus, const struct bus_amqp_options *options,
                      struct error *err)
{
    TRY(copy_options(options, &bus->arena, &bus->options, err));
    TRY(check_node(&bus->options, err));
    TRY(parse_brokers(options, &bus->arena, &bus->uris, err));
    TRY(outbox_create(&bus->options.limits, &bus->outbox, err));
    TRY(inbox_create(&bus->inbox, err));
    for (int side = 0; side < RABBIT_SIDES; side++) {
        bus->sides[side].wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (bus->sides[side].wake_fd < 0) {
            return error_set(err, STATUS_IO, "cannot make an eventfd: %s", strerror(errno));
        }
    }
    return STATUS_OK;
}

status bus_amqp_open(const struct bus_amqp_options *options, struct bus_listener *listener,
                     struct bus **out_bus, struct error *err)
{
    struct rabbit_bus *bus = memory_alloc(NULL, sizeof *bus);
    if (bus == NULL) return error_memory(err);
    *bus = (struct rabbit_bus){.bus = {.class = &amqp_class},
                               .listener = listener,
                               .sides = {{.wake_fd = -1}, {.wake_fd = -1}},
                               .random = {options->seed}};
    arena_init(&bus->arena, NULL);
    init_locks(bus);
    status result = prepare(bus, options, err);
    if (result != STATUS_OK) {
        free_all(bus);
        return result;
    }
    result = start_threads(bus, err);
    if (result != STATUS_OK) {
        amqp_close(&bus->bus, 0);
        return result;
    }
    *out_bus = &bus->bus;
    return STATUS_OK;
}

/* ---- without a bus ---- */

bool bus_amqp_probe(const char *broker, uint32_t timeout_ms)
{
    struct arena arena;
    struct rabbit_uri uri;
    struct error err;
    arena_init(&arena, NULL);
    bool found =
        rabbit_uri_parse(broker, &arena, &uri, &err) == STATUS_OK && rabbit_probe(&uri, timeout_ms);
    arena_done(&arena);
    return found;
}

/* The first broker that can be reached, with channel 1 open. */
static status connect_any(const struct bus_amqp_options *options, const struct rabbit_uri *uris,
                          struct rabbit_connection **out, struct error *err)
{
    struct rabbit_options wanted = {.deadline_ms = options->limits.deadline_ms,
                                    .heartbeat_s = options->heartbeat_s,
                                    .name = options->node,
                                    .tls = {options->ca, options->certificate, options->key}};
    status result = STATUS_OK;
    for (uint32_t i = 0; i < options->broker_count; i++) {
        result = rabbit_connect(&uris[i], &wanted, out, err);
        if (result == STATUS_OK) break;
    }
    if (result == STATUS_OK) {
        result = rabbit_open_channel(*out, 1, err);
        if (result != STATUS_OK) rabbit_drop(*out);
    }
    return result;
}

static status remove_queues(const struct bus_amqp_options *options,
                            struct rabbit_connection *connection, struct error *err)
{
    static const enum bus_amqp_queues kinds[] = {BUS_AMQP_TRANSIENT, BUS_AMQP_QUORUM};
    struct bus_amqp_options both = *options;
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
        both.queues = kinds[kind];
        for (uint32_t i = 0; i < rabbit_queue_count(&both); i++) {
            char name[RABBIT_QUEUE_NAME_SIZE];
            struct bus_address address = rabbit_queue_address(&both, i);
            rabbit_queue_name(&both, &address, name);
            (void)amqp_queue_delete(rabbit_state(connection), 1, amqp_cstring_bytes(name), 0,
                                    0); /* rabbit_check reports it. */
            TRY(rabbit_check(connection, "deleting a queue", err));
        }
    }
    return STATUS_OK;
}

status bus_amqp_remove_queues(const struct bus_amqp_options *options, struct error *err)
{
    struct arena arena;
    arena_init(&arena, NULL);
    struct bus_amqp_options copy;
    struct rabbit_uri *uris = NULL;
    struct rabbit_connection *connection = NULL;
    status result = copy_options(options, &arena, &copy, err);
    if (result == STATUS_OK) result = parse_brokers(options, &arena, &uris, err);
    if (result == STATUS_OK) result = connect_any(&copy, uris, &connection, err);
    if (result == STATUS_OK) {
        result = remove_queues(&copy, connection, err);
        rabbit_close(connection);
    }
    arena_done(&arena);
    return result;
}
