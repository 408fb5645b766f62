/* SPDX-License-Identifier: Apache-2.0 */
/* bus_faults.h - what can happen to a broker and to the way there. */
#ifndef UNIT_IO_BUS_FAULTS_H
#define UNIT_IO_BUS_FAULTS_H

#include "cluster/bus/rabbit_connection.h"
#include "cluster/bus/rabbit_queue.h"
#include "unit/cluster/bus/bus_world.h"

static void world_lose_connections(struct bus_world *world)
{
    for (uint32_t i = 0; world->memory != NULL && i < WORLD_NODES; i++) {
        if (world->nodes[i] != NULL) bus_memory_lose(world->nodes[i]->bus);
    }
    if (world->memory == NULL) tcp_proxy_cut(world->proxy);
}

/* Nothing reaches the broker, until released. In memory that is so between two waits. */
static void world_hold(struct bus_world *world, bool is_held)
{
    if (world->memory == NULL) tcp_proxy_hold(world->proxy, is_held);
}

static void world_kill_broker(struct bus_world *world)
{
    if (world->memory != NULL) {
        broker_memory_kill(world->memory);
    } else {
        broker_process_kill(world->process);
        tcp_proxy_cut(world->proxy);
    }
}

static void world_start_broker(struct bus_world *world)
{
    if (world->memory != NULL) {
        broker_memory_start(world->memory);
    } else if (broker_process_restart(world->process, &world_error) != STATUS_OK) {
        fail_msg("%s", world_error.text);
    }
}

/* An alarm: the broker is told that it may use next to no memory, or again much. */
static void world_set_alarm(struct bus_world *world, bool is_on)
{
    char command[1024];
    snprintf(command, sizeof command,
             "read amqp dist epmd <%s/ports; HOME=%s/home ERL_EPMD_PORT=$epmd"
             " ERL_EPMD_ADDRESS=127.0.0.1 RABBITMQ_CONF_ENV_FILE=/dev/null"
             " RABBITMQ_NODENAME=millrace@localhost"
             " /usr/lib/rabbitmq/bin/rabbitmqctl -q set_vm_memory_high_watermark %s",
             world->folder, world->folder, is_on ? "0.000001" : "0.4");
    assert_int_equal(system(command), 0);
}

static void world_delete_inbox(struct bus_world *world, const char *node)
{
    if (world->memory != NULL) {
        char name[BROKER_QUEUE_NAME_SIZE];
        struct bus_address address = {.kind = BUS_INBOX, .node = text_of(node)};
        broker_queue_name(world->cluster, &address, name);
        broker_memory_delete(world->memory, name);
    } else {
        const char *uri = broker_process_uri(world->process);
        struct bus_amqp_options options = world_options(world, node, &uri);
        options.nodes = &node;
        options.node_count = 1;
        options.work_count = 0;
        assert_int_equal(bus_amqp_remove_queues(&options, &world_error), STATUS_OK);
    }
}

/* In all queues of this test, with nobody connected. */
static uint64_t world_count(struct bus_world *world)
{
    if (world->memory != NULL) return broker_memory_count(world->memory, NULL);
    uint64_t count = 0;
    bool refused = true;
    struct arena arena = {0};
    struct buf depths = {0};
    struct rabbit_uri where;
    struct rabbit_connection *connection = NULL;
    const char *uri = broker_process_uri(world->process);
    struct bus_amqp_options options = world_options(world, "x", &uri);
    struct rabbit_options how = {.deadline_ms = options.limits.deadline_ms,
                                 .heartbeat_s = options.heartbeat_s,
                                 .name = options.node,
                                 .tls = {options.ca, options.certificate, options.key}};
    assert_int_equal(rabbit_uri_parse(uri, &arena, &where, &world_error), STATUS_OK);
    assert_int_equal(rabbit_connect(&where, &how, &connection, &world_error), STATUS_OK);
    assert_int_equal(rabbit_open_channel(connection, 1, &world_error), STATUS_OK);
    assert_int_equal(
        rabbit_queue_measure_all(&options, connection, 1, &depths, &refused, &world_error),
        STATUS_OK);
    assert_false(refused);
    for (size_t i = 0; i < depths.size / sizeof(struct queue_depth); i++) {
        count += ((const struct queue_depth *)(const void *)depths.bytes)[i].messages;
    }
    rabbit_close(connection);
    buf_done(&depths);
    arena_done(&arena);
    return count;
}

#endif
