/* SPDX-License-Identifier: Apache-2.0 */
/* test_sim_bus.c - what the simulated network does to a node's two connections.
 *
 * Method: two nodes over one broker, in a world of many seeds. One sends numbered messages to the
 * other while something goes wrong; what each hears is counted, and at the end, whatever happened,
 * every message was confirmed and has come at least once.
 */
#include "unit/test.h"

#include "cluster/sim/sim_bus.h"
#include "cluster/sim/world.h"

enum { MESSAGES = 40, SEEDS = 50, SENDER = 0, RECEIVER = 1, NODES = 2 };

struct stage_node {
    struct sim_bus bus;
    uint32_t connected;
    uint32_t disconnected;
    uint32_t blocked;
    uint32_t unblocked;
    uint32_t confirmed;
    uint32_t delivered; /* All, */
    uint32_t came[MESSAGES];
};

struct stage {
    struct world world;
    struct sim_net net;
    struct stage_node nodes[NODES];
};

static void heard(void *context, struct bus_event *event)
{
    struct stage_node *node = context;
    node->connected += event->kind == BUS_CONNECTED;
    node->disconnected += event->kind == BUS_DISCONNECTED;
    node->blocked += event->kind == BUS_BLOCKED;
    node->unblocked += event->kind == BUS_UNBLOCKED;
    node->confirmed += event->kind == BUS_CONFIRMED;
    if (event->kind != BUS_DELIVERY) return;
    assert_int_equal(event->delivery.bytes.size, 1);
    assert_true(event->delivery.bytes.bytes[0] < MESSAGES);
    node->delivered++;
    node->came[event->delivery.bytes.bytes[0]]++;
    buf_done(&event->delivery.bytes);
    sim_bus_acknowledge(&node->bus, event->delivery.id);
}

static void run_for(struct stage *stage, uint64_t time_ms)
{
    uint64_t end_ms = stage->world.now_ms + time_ms;
    while (stage->world.timers.count > 0 && stage->world.timers.items[0].at_ms <= end_ms) {
        assert_true(world_step(&stage->world));
    }
    stage->world.now_ms = end_ms;
}

static void send_some(struct stage *stage, uint32_t first, uint32_t count)
{
    struct bus_address to = {.kind = BUS_INBOX, .node = TEXT_LITERAL("b")};
    for (uint32_t i = first; i < first + count; i++) {
        struct buf bytes = {0};
        buf_put_u8(&bytes, (uint8_t)i);
        sim_bus_send(&stage->nodes[SENDER].bus, &to, &bytes, i + 1);
    }
}

static void stage_init(struct stage *stage, uint64_t seed)
{
    static const char *const names[NODES] = {"a", "b"};
    struct error err;
    *stage = (struct stage){
        .net = {.node_count = NODES,
                .work_count = 1,
                .limits = {.inbox_prefetch = 3,
                           .work_prefetch = 1,
                           .confirm_window = 4,
                           .confirm_window_bytes = 1000,
                           .deadline_ms = 5000},
                .latency_ms = 3,
                .detection_ms = 1000},
    };
    world_init(&stage->world, seed, -1);
    stage->net.world = &stage->world;
    assert_int_equal(sim_net_init(&stage->net, &err), STATUS_OK);
    for (uint32_t i = 0; i < NODES; i++) {
        struct stage_node *node = &stage->nodes[i];
        node->bus =
            (struct sim_bus){.net = &stage->net, .node = i, .context = node, .event = heard};
        stage->net.buses[i] = &node->bus;
        stage->net.names[i] = names[i];
        assert_int_equal(sim_bus_open(&node->bus, &err), STATUS_OK);
    }
    run_for(stage, 1000);
    assert_int_equal(stage->nodes[SENDER].connected, 1);
    assert_int_equal(stage->nodes[RECEIVER].connected, 1);
}

/* All has come, at least once and no more often than there were reasons. */
static void stage_done(struct stage *stage, uint32_t most)
{
    run_for(stage, 10000);
    assert_false(stage->world.failed);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        assert_in_range(stage->nodes[RECEIVER].came[i], 1, most);
    }
    assert_int_equal(stage->nodes[SENDER].confirmed, MESSAGES);
    assert_int_equal(sim_net_message_count(&stage->net), 0);
    for (uint32_t i = 0; i < NODES; i++) {
        sim_bus_kill(&stage->nodes[i].bus);
    }
    sim_net_done(&stage->net);
    world_done(&stage->world);
}

static void an_undisturbed_message_comes_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct stage stage;
        stage_init(&stage, seed);
        send_some(&stage, 0, MESSAGES);
        stage_done(&stage, 1);
    }
}

static void during_an_alarm_nothing_is_taken_and_deliveries_go_on(void **state)
{
    (void)state;
    uint32_t went_on = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct stage stage;
        stage_init(&stage, seed);
        struct stage_node *receiver = &stage.nodes[RECEIVER];
        send_some(&stage, 0, MESSAGES / 2);
        run_for(&stage, 5);
        sim_net_set_alarm(&stage.net, true);
        uint64_t published = stage.net.message_count;
        uint32_t delivered = receiver->delivered;
        send_some(&stage, MESSAGES / 2, MESSAGES / 2);
        run_for(&stage, 5000);
        assert_int_equal(stage.net.message_count, published);
        assert_int_equal(receiver->delivered, published);
        went_on += receiver->delivered > delivered;
        /* Only who publishes is told, and once. */
        assert_int_equal(stage.nodes[SENDER].blocked, 1);
        assert_int_equal(receiver->blocked, 0);
        sim_net_set_alarm(&stage.net, false);
        run_for(&stage, 1000);
        assert_int_equal(stage.nodes[SENDER].unblocked, 1);
        assert_int_equal(stage.nodes[SENDER].disconnected, 0);
        stage_done(&stage, 1);
    }
    assert_true(went_on > 0);
}

static void who_loses_what_it_publishes_by_still_gets_deliveries(void **state)
{
    (void)state;
    uint32_t went_on = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct stage stage;
        stage_init(&stage, seed);
        struct stage_node *receiver = &stage.nodes[RECEIVER];
        send_some(&stage, 0, MESSAGES);
        run_for(&stage, 5);
        sim_bus_lose_side(&receiver->bus, SIM_PUBLISHER);
        uint32_t delivered = receiver->delivered;
        while (receiver->disconnected == 0) {
            assert_true(world_step(&stage.world));
        }
        went_on += receiver->delivered > delivered;
        run_for(&stage, 2000);
        /* Both ways begin anew. */
        assert_int_equal(receiver->disconnected, 1);
        assert_int_equal(receiver->connected, 2);
        stage_done(&stage, 2);
    }
    assert_true(went_on > SEEDS / 2);
}

static void who_loses_what_it_consumes_by_still_publishes(void **state)
{
    (void)state;
    uint32_t went_on = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct stage stage;
        stage_init(&stage, seed);
        struct stage_node *sender = &stage.nodes[SENDER];
        send_some(&stage, 0, MESSAGES);
        run_for(&stage, 5);
        sim_bus_lose_side(&sender->bus, SIM_CONSUMER);
        uint32_t confirmed = sender->confirmed;
        while (sender->disconnected == 0) {
            assert_true(world_step(&stage.world));
        }
        went_on += sender->confirmed > confirmed;
        run_for(&stage, 2000);
        assert_int_equal(sender->connected, 2);
        stage_done(&stage, 2);
    }
    assert_true(went_on > SEEDS / 2);
}

static void faults_one_after_the_other_lose_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct stage stage;
        stage_init(&stage, seed);
        for (uint32_t i = 0; i < MESSAGES; i++) {
            struct sim_bus *bus = &stage.nodes[world_below(&stage.world, NODES)].bus;
            send_some(&stage, i, 1);
            run_for(&stage, world_below(&stage.world, 300));
            switch (world_below(&stage.world, 6)) {
            case 0:
                sim_bus_lose_side(bus, SIM_PUBLISHER);
                break;
            case 1:
                sim_bus_lose_side(bus, SIM_CONSUMER);
                break;
            case 2:
                sim_bus_lose(bus, world_below(&stage.world, 1000));
                break;
            default:
                sim_net_set_alarm(&stage.net, world_chance(&stage.world, 500));
                break;
            }
        }
        sim_net_set_alarm(&stage.net, false);
        stage_done(&stage, UINT32_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_undisturbed_message_comes_once),
        cmocka_unit_test(during_an_alarm_nothing_is_taken_and_deliveries_go_on),
        cmocka_unit_test(who_loses_what_it_publishes_by_still_gets_deliveries),
        cmocka_unit_test(who_loses_what_it_consumes_by_still_publishes),
        cmocka_unit_test(faults_one_after_the_other_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
