/* SPDX-License-Identifier: Apache-2.0 */
/* bus_world.h - a broker with nodes around it, in memory or real, for tests that know no
 * difference.
 *
 * A node writes down every event. In memory nothing happens but while a test waits: world_wait
 * pumps all buses in a random order that a seed decides. Around a real RabbitMQ the buses' threads
 * work by themselves, through a proxy that can be cut and held.
 */
#ifndef UNIT_IO_BUS_WORLD_H
#define UNIT_IO_BUS_WORLD_H

#include "unit/test.h"

#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/random.h"
#include "cluster/sim/broker_memory.h"
#include "cluster/supervise/broker_process.h"
#include "cluster/bus/bus_amqp.h"
#include "engine/file/clock.h"
#include "unit/cluster/bus/bus_memory.h"
#include "unit/cluster/bus/bus_node.h"
#include "unit/cluster/net/tcp_proxy.h"
#include "unit/cluster/net/tls_world.h"

enum {
    WORLD_NODES = 4,
    WORLD_WORK = 2,
    WORLD_WAIT_MS = 20000,
    WORLD_DEADLINE_MS = 5000,
    WORLD_PROBE_MS = 2000
};

static const char *const world_names[] = {"a", "b", "c"};

struct bus_world {
    struct broker_memory *memory; /* NULL: real. */
    struct broker_process *process;
    struct tcp_proxy *proxy;
    char folder[64];
    uint16_t tls_port; /* Of the broker; 0: there is no openssl to make certificates. */
    bool is_tls;
    char uri[128];    /* Of the proxy. */
    char skip[256];   /* Why the tests can't run. */
    char cluster[16]; /* Another for each test. */
    uint32_t cluster_count;
    enum bus_amqp_queues queues;
    struct bus_limits limits;
    struct random random;
    struct bus_node *nodes[WORLD_NODES];
};

static struct error world_error;

/* ---- nodes ---- */

static struct bus_amqp_options world_options(const struct bus_world *world, const char *name,
                                             const char *const *uri)
{
    static char ca[128];
    static char certificate[128];
    static char key[128];
    snprintf(ca, sizeof ca, "%s", tls_path("ca.pem"));
    snprintf(certificate, sizeof certificate, "%s", tls_path("client.pem"));
    snprintf(key, sizeof key, "%s", tls_path("client.key"));
    return (struct bus_amqp_options){.cluster = world->cluster,
                                     .ca = world->is_tls ? ca : NULL,
                                     .certificate = world->is_tls ? certificate : NULL,
                                     .key = world->is_tls ? key : NULL,
                                     .node = name,
                                     .nodes = world_names,
                                     .node_count = 3,
                                     .brokers = uri,
                                     .broker_count = 1,
                                     .work_count = WORLD_WORK,
                                     .limits = world->limits,
                                     .heartbeat_s = scaled_ms(2000) / 1000,
                                     .queues = world->queues,
                                     .seed = 1};
}

static struct bus_node *world_open(struct bus_world *world, const char *name)
{
    struct bus_node *node = calloc(1, sizeof *node);
    assert_non_null(node);
    node->listener.event = node_event;
    pthread_mutex_init(&node->lock, NULL);
    uint32_t slot = 0;
    while (slot < WORLD_NODES && world->nodes[slot] != NULL) {
        slot++;
    }
    assert_true(slot < WORLD_NODES);
    world->nodes[slot] = node;
    if (world->memory != NULL) {
        struct bus_memory_options options = {.cluster = world->cluster,
                                             .node = name,
                                             .nodes = world_names,
                                             .node_count = 3,
                                             .work_count = WORLD_WORK,
                                             .limits = world->limits,
                                             .durable = world->queues == BUS_AMQP_QUORUM};
        assert_int_equal(
            bus_memory_open(world->memory, &options, &node->listener, &node->bus, &world_error),
            STATUS_OK);
    } else {
        const char *uri = world->uri;
        struct bus_amqp_options options = world_options(world, name, &uri);
        assert_int_equal(bus_amqp_open(&options, &node->listener, &node->bus, &world_error),
                         STATUS_OK);
    }
    return node;
}

static void world_close(struct bus_world *world, struct bus_node *node, uint32_t deadline_ms)
{
    for (uint32_t i = 0; i < WORLD_NODES; i++) {
        if (world->nodes[i] == node) world->nodes[i] = NULL;
    }
    bus_close(node->bus, deadline_ms);
    pthread_mutex_destroy(&node->lock);
    free(node);
}

/* ---- waiting ---- */

/* One step of everything; false: nothing happened, in memory. */
static bool world_step(struct bus_world *world)
{
    bool any = world->memory == NULL;
    uint32_t first = random_below(&world->random, WORLD_NODES);
    for (uint32_t i = 0; i < WORLD_NODES; i++) {
        struct bus_node *node = world->nodes[(first + i) % WORLD_NODES];
        if (node == NULL) continue;
        if (world->memory != NULL && bus_memory_pump(node->bus, random_u64(&world->random))) {
            any = true;
        }
        node_acknowledge_all(node);
    }
    if (world->memory == NULL) (void)poll(NULL, 0, 2);
    return any;
}

/* Until the counter has that value; then it is for the test to say whether it is right. */
static void world_wait(struct bus_world *world, struct bus_node *node, const uint32_t *counter,
                       uint32_t wanted)
{
    double until = clock_seconds() + scaled_ms(WORLD_WAIT_MS) / 1000.0;
    for (;;) {
        pthread_mutex_lock(&node->lock);
        uint32_t value = *counter;
        pthread_mutex_unlock(&node->lock);
        if (value >= wanted) return;
        if (!world_step(world) || clock_seconds() > until) {
            fail_msg("waited for %u, there are %u; last disconnected: %s", wanted, value,
                     node->reason);
        }
    }
}

/* Long enough for what should not happen. */
static void world_settle(struct bus_world *world)
{
    double until = clock_seconds() + scaled_ms(150) / 1000.0;
    for (int quiet = 0; quiet < 5;) {
        quiet = world_step(world) ? 0 : quiet + 1;
        if (world->memory == NULL && clock_seconds() > until) return;
    }
}

/* ---- beginning and end ---- */

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

/* One that is free now. */
static uint16_t world_port(void)
{
    struct sockaddr_in address = tcp_proxy_address(0);
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    (void)close(fd);
    return ntohs(address.sin_port);
}

/* user:password. */
static void world_counters(const struct bus_world *world, char out[80])
{
    const char *uri = broker_process_uri(world->process);
    const char *begin = strstr(uri, "://") + 3;
    snprintf(out, 80, "%.*s", (int)(strchr(begin, '@') - begin), begin);
}

/* A way to the broker of its own, which can be cut and held. */
static void world_open_way(struct bus_world *world, uint16_t port, const char *scheme,
                           const char *host)
{
    char counters[80];
    world->proxy = calloc(1, sizeof *world->proxy);
    assert_non_null(world->proxy);
    assert_true(tcp_proxy_open(world->proxy, port));
    world_counters(world, counters);
    snprintf(world->uri, sizeof world->uri, "%s://%s@%s:%u", scheme, counters, host,
             world->proxy->port);
}

/* A world without a broker has a reason in `skip`. The broker also speaks TLS, to those who have a
 * certificate. */
static void world_start_real(struct bus_world *world)
{
    char settings[512] = "";
    if (!broker_process_is_installed()) {
        snprintf(world->skip, sizeof world->skip, "RabbitMQ is not installed (rabbitmq-server)");
        return;
    }
    snprintf(world->folder, sizeof world->folder, "/tmp/test_bus.XXXXXX");
    assert_non_null(mkdtemp(world->folder));
    if (tls_world_make()) {
        world->tls_port = world_port();
        snprintf(settings, sizeof settings,
                 "listeners.ssl.1 = 127.0.0.1:%u\n"
                 "ssl_options.cacertfile = %s\n"
                 "ssl_options.certfile = %s\n"
                 "ssl_options.keyfile = %s\n"
                 "ssl_options.verify = verify_peer\n"
                 "ssl_options.fail_if_no_peer_cert = true\n",
                 world->tls_port, tls_path("ca.pem"), tls_path("server.pem"),
                 tls_path("server.key"));
    }
    struct broker_process_options options = {
        .folder = world->folder, .deadline_ms = scaled_ms(60000), .settings = settings};
    if (broker_process_start(&options, &world->process, &world_error) != STATUS_OK) {
        fail_msg("%s", world_error.text);
    }
    const char *port = strrchr(broker_process_uri(world->process), ':') + 1;
    world_open_way(world, (uint16_t)strtoul(port, NULL, 10), "amqp", "127.0.0.1");
}

/* The same broker over TLS. */
static void world_start_tls(struct bus_world *world, const struct bus_world *real)
{
    *world = *real;
    world->proxy = NULL;
    world->is_tls = true;
    if (world->process == NULL) return;
    if (world->tls_port == 0) {
        snprintf(world->skip, sizeof world->skip, "there is no openssl");
        return;
    }
    world_open_way(world, world->tls_port, "amqps", "localhost");
}

static void world_stop_tls(struct bus_world *world)
{
    if (world->proxy != NULL) tcp_proxy_close(world->proxy);
    free(world->proxy);
}

static void world_stop_real(struct bus_world *world)
{
    if (world->proxy != NULL) tcp_proxy_close(world->proxy);
    free(world->proxy);
    broker_process_stop(world->process, scaled_ms(5000));
    if (world->folder[0] != '\0') {
        (void)nftw(world->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    }
    tls_world_remove();
}

static struct bus_world *begin(void **state)
{
    struct bus_world *world = *state;
    if (world->skip[0] != '\0') {
        print_message("skipped: %s\n", world->skip);
        skip();
    }
    return world;
}

#endif
