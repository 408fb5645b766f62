/* SPDX-License-Identifier: Apache-2.0 */
/* bus_tls.h - tests of a bus over TLS: who is trusted, and with which files. */
#ifndef UNIT_IO_BUS_TLS_H
#define UNIT_IO_BUS_TLS_H

#include "unit/cluster/bus/bus_faults.h"
#include "unit/cluster/bus/bus_world.h"

static void expect_refusal(struct bus_world *world, const struct bus_amqp_options *options,
                           const char *words)
{
    struct bus_node *node = calloc(1, sizeof *node);
    assert_non_null(node);
    node->listener.event = node_event;
    pthread_mutex_init(&node->lock, NULL);
    assert_int_equal(bus_amqp_open(options, &node->listener, &node->bus, &world_error), STATUS_OK);
    world_wait(world, node, &node->disconnected_count, 1);
    if (strstr(node->reason, words) == NULL) fail_msg("%s", node->reason);
    assert_int_equal(node->connected_count, 0);
    bus_close(node->bus, 0);
    free(node);
}

static void who_is_not_known_is_not_talked_to(void **state)
{
    struct bus_world *world = begin(state);
    const char *uri = world->uri;
    char adversary[128];
    struct bus_amqp_options options = world_options(world, "a", &uri);
    snprintf(adversary, sizeof adversary, "%s", tls_path("stranger.pem"));
    options.ca = adversary;
    expect_refusal(world, &options, "not signed by the CA");
    options.ca = NULL;
    expect_refusal(world, &options, "not signed by the CA");

    char other_uri[64];
    const char *other = other_uri;
    snprintf(other_uri, sizeof other_uri, "amqps://a:b@127.0.0.2:%u", world->tls_port);
    options = world_options(world, "a", &other);
    expect_refusal(world, &options, "127.0.0.2");

    snprintf(other_uri, sizeof other_uri, "amqps://a:b@localhost:%s",
             strrchr(broker_process_uri(world->process), ':') + 1);
    expect_refusal(world, &options, "amqp only");

    options = world_options(world, "a", &uri);
    options.certificate = options.key = NULL;
    expect_refusal(world, &options, "a client certificate");
    snprintf(other_uri, sizeof other_uri, "amqp://a:b@localhost:%u", world->tls_port);
    options = world_options(world, "a", &other);
    expect_refusal(world, &options, "localhost");
}

static void a_probe_speaks_tls_too(void **state)
{
    struct bus_world *world = begin(state);
    assert_true(bus_amqp_probe(world->uri, scaled_ms(WORLD_PROBE_MS)));
    assert_false(bus_amqp_probe("amqps://127.0.0.1:1", scaled_ms(WORLD_PROBE_MS)));
    world_hold(world, true);
    assert_false(bus_amqp_probe(world->uri, scaled_ms(100)));
    world_hold(world, false);
}

static void files_of_no_use_are_told_at_once(void **state)
{
    struct bus_world *world = begin(state);
    const char *uri = world->uri;
    struct bus_listener listener = {.event = node_event};
    struct bus *bus = NULL;
    struct bus_amqp_options options = world_options(world, "a", &uri);
    options.ca = "/nowhere.pem";
    assert_int_equal(bus_amqp_open(&options, &listener, &bus, &world_error), STATUS_IO);
    assert_non_null(strstr(world_error.text, "/nowhere.pem"));
    options = world_options(world, "a", &uri);
    options.certificate = options.key;
    assert_int_equal(bus_amqp_open(&options, &listener, &bus, &world_error), STATUS_USAGE);
    options = world_options(world, "a", &uri);
    assert_int_equal(chmod(options.key, 0644), 0);
    assert_int_equal(bus_amqp_open(&options, &listener, &bus, &world_error), STATUS_USAGE);
    assert_non_null(strstr(world_error.text, "chmod 600"));
    assert_int_equal(chmod(options.key, 0600), 0);
    assert_null(bus);
}

#endif
