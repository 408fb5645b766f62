/* SPDX-License-Identifier: Apache-2.0 */
/* test_bus.c - every bus keeps the promises of bus.h: in memory, and over a real RabbitMQ.
 *
 * Method: the same tests run in both worlds, so that what the simulator finds with the one holds
 * for the other; the buses over RabbitMQ have threads of their own and reach it through a proxy
 * that can be cut and held. Then what only the real one can do: hang, refuse, keep messages on
 * disk. Then again over TLS. Without rabbitmq-server its tests are skipped.
 */
#include <sys/stat.h>

#include "cluster/net/address.h"
#include "unit/cluster/bus/bus_faults.h"
#include "unit/cluster/bus/bus_tls.h"
#include "unit/cluster/bus/bus_world.h"

static struct bus_world world_memory;
static struct bus_world world_real;
static struct bus_world world_tls;

static void one_queue_keeps_its_order_and_confirms_each_token_once(void **state)
{
    struct bus_world *world = begin(state);
    struct bus_node *a = world_open(world, "a");
    struct bus_node *b = world_open(world, "b");
    b->acknowledges = true;
    enum { COUNT = 500 };
    for (uint64_t i = 0; i < COUNT; i++) {
        node_send(a, "b", i, i % 5 == 0 ? 0 : i);
    }
    world_wait(world, b, &b->delivery_count, COUNT);
    world_wait(world, a, &a->confirmed_count, COUNT - COUNT / 5);
    world_settle(world);
    assert_int_equal(node_count(b, &b->delivery_count), COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        struct node_delivery delivery = node_delivery(b, i);
        assert_int_equal(delivery.number, i);
        assert_false(delivery.from_work);
        assert_int_equal(a->confirmed[i], i % 5 != 0);
    }
    assert_int_equal(a->returned_count, 0);
    assert_int_equal(b->disconnected_count, 0);
}

static void a_message_waits_for_a_node_that_is_not_up(void **state)
{
    struct bus_world *world = begin(state);
    struct bus_node *a = world_open(world, "a");
    for (uint64_t i = 0; i < 10; i++) {
        node_send(a, "c", i, i + 1);
    }
    world_wait(world, a, &a->confirmed_count, 10);
    struct bus_node *c = world_open(world, "c");
    world_wait(world, c, &c->delivery_count, 10);
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(node_delivery(c, i).number, i);
    }
}

static void work_is_shared_and_each_message_taken_once(void **state)
{
    struct bus_world *world = begin(state);
    world->limits.work_prefetch = 4;
    struct bus_node *a = world_open(world, "a");
    struct bus_node *workers[2] = {world_open(world, "b"), world_open(world, "c")};
    for (int i = 0; i < 2; i++) {
        workers[i]->acknowledges = true;
        bus_work(workers[i]->bus, true);
        world_wait(world, workers[i], &workers[i]->connected_count, 1);
    }
    world_settle(world);
    enum { COUNT = 300 };
    for (uint64_t i = 0; i < COUNT; i++) {
        node_send_work(a, i % WORLD_WORK, i, 0);
    }
    double until = clock_seconds() + scaled_ms(10000) / 1000.0;
    while (node_count(workers[0], &workers[0]->delivery_count) +
               node_count(workers[1], &workers[1]->delivery_count) <
           COUNT) {
        assert_true(world_step(world) && clock_seconds() < until);
    }
    world_settle(world);
    bool seen[COUNT] = {false};
    for (int w = 0; w < 2; w++) {
        uint32_t count = node_count(workers[w], &workers[w]->delivery_count);
        assert_true(count > 0 && count < COUNT);
        for (uint32_t i = 0; i < count; i++) {
            struct node_delivery delivery = node_delivery(workers[w], i);
            assert_true(delivery.from_work);
            assert_int_equal(delivery.work, delivery.number % WORLD_WORK);
            assert_false(seen[delivery.number]);
            seen[delivery.number] = true;
        }
    }
    assert_int_equal(a->delivery_count, 0);
}

static void who_does_not_work_takes_none_and_may_begin_and_end(void **state)
{
    struct bus_world *world = begin(state);
    world->limits.work_prefetch = 1;
    struct bus_node *a = world_open(world, "a");
    struct bus_node *b = world_open(world, "b");
    for (uint64_t i = 0; i < 20; i++) {
        node_send_work(a, 0, i, i + 1);
    }
    world_wait(world, a, &a->confirmed_count, 20);
    world_wait(world, b, &b->connected_count, 1);
    world_settle(world);
    assert_int_equal(node_count(b, &b->delivery_count), 0);
    bus_work(b->bus, true);
    world_wait(world, b, &b->delivery_count, 1);
    bus_work(b->bus, false);
    world_settle(world);
    bus_acknowledge(b->bus, node_delivery(b, 0).id);
    world_settle(world);
    assert_int_equal(node_count(b, &b->delivery_count), 1);
    b->acknowledges = true;
    bus_work(b->bus, true);
    world_wait(world, b, &b->delivery_count, 20);
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(node_delivery(b, i).number, i);
    }
}

static void an_inbox_has_one_reader_and_the_next_takes_over(void **state)
{
    struct bus_world *world = begin(state);
    struct bus_node *a = world_open(world, "a");
    struct bus_node *first = world_open(world, "b");
    world_wait(world, first, &first->connected_count, 1);
    world_settle(world);
    struct bus_node *second = world_open(world, "b");
    world_wait(world, second, &second->connected_count, 1);
    for (uint64_t i = 0; i < 10; i++) {
        node_send(a, "b", i, 0);
    }
    world_wait(world, first, &first->delivery_count, 10);
    world_settle(world);
    assert_int_equal(node_count(second, &second->delivery_count), 0);
    for (uint32_t i = 0; i < 6; i++) {
        bus_acknowledge(first->bus, node_delivery(first, i).id);
    }
    world_close(world, first, scaled_ms(5000));
    world_wait(world, second, &second->delivery_count, 4);
    world_settle(world);
    assert_int_equal(node_count(second, &second->delivery_count), 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(node_delivery(second, i).number, 6 + i);
    }
}

static void what_was_not_acknowledged_comes_again_after_a_lost_connection(void **state)
{
    struct bus_world *world = begin(state);
    struct bus_node *a = world_open(world, "a");
    struct bus_node *b = world_open(world, "b");
    for (uint64_t i = 0; i < 10; i++) {
        node_send(a, "b", i, 0);
    }
    world_wait(world, b, &b->delivery_count, 10);
    for (uint32_t i = 0; i < 5; i++) {
        bus_acknowledge(b->bus, node_delivery(b, i).id);
    }
    world_settle(world);
    world_lose_connections(world);
    world_wait(world, b, &b->disconnected_count, 1);
    assert_true(b->reason[0] != '\0');
    for (uint32_t i = 5; i < 10; i++) {
        bus_acknowledge(b->bus, node_delivery(b, i).id); /* Too late: these are void. */
    }
    world_wait(world, b, &b->connected_count, 2);
    world_wait(world, b, &b->delivery_count, 15);
    world_settle(world);
    assert_int_equal(node_count(b, &b->delivery_count), 15);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(node_delivery(b, 10 + i).number, 5 + i);
        for (uint32_t old = 0; old < 10; old++) {
            assert_int_not_equal(node_delivery(b, 10 + i).id, node_delivery(b, old).id);
        }
    }
}

static void tokens_are_settled_once_however_often_the_connection_is_lost(void **state)
{
    struct bus_world *world = begin(state);
    struct bus_node *a = world_open(world, "a");
    struct bus_node *b = world_open(world, "b");
    b->acknowledges = true;
    enum { COUNT = 1200, CUTS = 3 };
    uint32_t sent = 0;
    for (uint32_t cut = 0; cut <= CUTS; cut++) {
        for (uint32_t i = 0; i < COUNT / (CUTS + 1); i++) {
            node_send(a, "b", sent, sent + 1);
            sent++;
        }
        /* Right in the middle of it. */
        world_wait(world, a, &a->confirmed_count, sent - COUNT / (2 * (CUTS + 1)));
        if (cut < CUTS) world_lose_connections(world);
    }
    world_wait(world, a, &a->confirmed_count, COUNT);
    world_settle(world);
    static bool seen[COUNT];
    memset(seen, 0, sizeof seen);
    for (uint32_t i = 0; i < node_count(b, &b->delivery_count); i++) {
        seen[node_delivery(b, i).number] = true;
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(a->confirmed[i + 1], 1);
        assert_true(seen[i]);
    }
    assert_int_equal(a->returned_count, 0);
    assert_true(a->disconnected_count >= CUTS);
}

static void a_message_to_nobody_is_returned_and_not_confirmed(void **state)
{
    struct bus_world *world = begin(state);
    struct bus_node *a = world_open(world, "a");
    node_send(a, "nobody", 1, 1);
    node_send(a, "nobody", 2, 0);
    node_send(a, "b", 3, 3);
    world_wait(world, a, &a->returned_count, 1);
    world_wait(world, a, &a->confirmed_count, 1);
    world_settle(world);
    assert_int_equal(a->returned_count, 1);
    assert_int_equal(a->returned[1], 1);
    assert_int_equal(a->confirmed_count, 1);
    assert_int_equal(a->confirmed[3], 1);
}

static void a_queue_that_is_gone_is_there_again_after_a_return(void **state)
{
    struct bus_world *world = begin(state);
    struct bus_node *a = world_open(world, "a");
    node_send(a, "b", 1, 1);
    world_wait(world, a, &a->confirmed_count, 1);
    world_settle(world);
    world_delete_inbox(world, "b");
    node_send(a, "b", 2, 2);
    world_wait(world, a, &a->returned_count, 1);
    assert_int_equal(a->returned[2], 1);
    node_send(a, "b", 3, 3);
    world_wait(world, a, &a->confirmed_count, 2);
    world_settle(world);
    assert_int_equal(a->confirmed[2], 0);
    assert_int_equal(a->confirmed[3], 1);
    assert_int_equal(a->connected_count, 1);
    struct bus_node *b = world_open(world, "b");
    world_wait(world, b, &b->delivery_count, 1);
    assert_int_equal(node_delivery(b, 0).number, 3);
}

static void a_queue_deleted_under_its_reader_is_read_again(void **state)
{
    struct bus_world *world = begin(state);
    struct bus_node *a = world_open(world, "a");
    struct bus_node *b = world_open(world, "b");
    b->acknowledges = true;
    node_send(a, "b", 1, 1);
    world_wait(world, b, &b->delivery_count, 1);
    world_delete_inbox(world, "b");
    world_wait(world, b, &b->disconnected_count, 1);
    world_wait(world, b, &b->connected_count, 2);
    node_send(a, "b", 2, 2);
    world_wait(world, b, &b->delivery_count, 2);
    assert_int_equal(node_count(a, &a->disconnected_count), 0);
    assert_int_equal(node_delivery(b, 1).number, 2);
}

static void a_revoked_message_is_not_published(void **state)
{
    struct bus_world *world = begin(state);
    world_hold(world, true);
    struct bus_node *a = world_open(world, "a");
    for (uint64_t i = 1; i <= 3; i++) {
        node_send(a, "b", i, i);
    }
    bus_revoke(a->bus, 2);
    bus_revoke(a->bus, 77);
    world_hold(world, false);
    world_wait(world, a, &a->confirmed_count, 2);
    struct bus_node *b = world_open(world, "b");
    world_wait(world, b, &b->delivery_count, 2);
    world_settle(world);
    assert_int_equal(node_count(b, &b->delivery_count), 2);
    assert_int_equal(node_delivery(b, 0).number, 1);
    assert_int_equal(node_delivery(b, 1).number, 3);
    assert_int_equal(a->confirmed[2], 0);
}

static void no_more_is_delivered_than_the_prefetch(void **state)
{
    struct bus_world *world = begin(state);
    world->limits.inbox_prefetch = 3;
    world->limits.work_prefetch = 2;
    struct bus_node *a = world_open(world, "a");
    struct bus_node *b = world_open(world, "b");
    bus_work(b->bus, true);
    for (uint64_t i = 0; i < 10; i++) {
        node_send(a, "b", i, 0);
        for (uint32_t work = 0; work < WORLD_WORK; work++) {
            node_send_work(a, work, 100 + i, 0);
        }
    }
    enum { FIRST = 3 + 2 * WORLD_WORK };
    world_wait(world, b, &b->delivery_count, FIRST);
    world_settle(world);
    assert_int_equal(node_count(b, &b->delivery_count), FIRST);
    uint32_t counts[1 + WORLD_WORK] = {0};
    for (uint32_t i = 0; i < FIRST; i++) {
        struct node_delivery delivery = node_delivery(b, i);
        counts[delivery.from_work ? 1 + delivery.work : 0]++;
    }
    assert_int_equal(counts[0], 3);
    for (uint32_t work = 0; work < WORLD_WORK; work++) {
        assert_int_equal(counts[1 + work], 2);
    }
    /* For each one acknowledged comes one, from the same queue. */
    for (uint32_t i = 0; i < 5; i++) {
        struct node_delivery done = node_delivery(b, i);
        bus_acknowledge(b->bus, done.id);
        world_wait(world, b, &b->delivery_count, FIRST + i + 1);
        world_settle(world);
        assert_int_equal(node_count(b, &b->delivery_count), FIRST + i + 1);
        struct node_delivery next = node_delivery(b, FIRST + i);
        assert_int_equal(next.from_work, done.from_work);
        assert_int_equal(next.work, done.work);
    }
}

static void acknowledgements_in_any_order_leave_nothing_behind(void **state)
{
    struct bus_world *world = begin(state);
    struct bus_node *a = world_open(world, "a");
    struct bus_node *b = world_open(world, "b");
    bus_work(b->bus, true);
    enum { COUNT = 100 };
    for (uint64_t i = 0; i < COUNT; i++) {
        if (i % 2 == 0) {
            node_send(a, "b", i, 0);
        } else {
            node_send_work(a, 1, i, 0);
        }
    }
    for (uint32_t done = 0; done < COUNT;) {
        world_wait(world, b, &b->delivery_count, done + 1);
        uint32_t count = node_count(b, &b->delivery_count);
        for (uint32_t i = 0; i < count - done; i++) {
            bus_acknowledge(b->bus, node_delivery(b, count - 1 - i).id);
        }
        done = count;
    }
    world_close(world, b, scaled_ms(5000));
    world_close(world, a, scaled_ms(5000));
    assert_int_equal(world_count(world), 0);
}

static void closing_sends_what_waits(void **state)
{
    struct bus_world *world = begin(state);
    struct bus_node *a = world_open(world, "a");
    enum { COUNT = 300 };
    for (uint64_t i = 0; i < COUNT; i++) {
        node_send(a, "b", i, i + 1);
    }
    world_close(world, a, scaled_ms(10000));
    assert_int_equal(world_count(world), COUNT);
    struct bus_node *b = world_open(world, "b");
    world_wait(world, b, &b->delivery_count, 1);
    assert_int_equal(node_delivery(b, 0).number, 0);
}

static void large_messages_arrive_whole(void **state)
{
    struct bus_world *world = begin(state);
    world->limits.confirm_window_bytes = 3 << 20;
    struct bus_node *a = world_open(world, "a");
    struct bus_node *b = world_open(world, "b");
    b->acknowledges = true;
    static const size_t sizes[] = {8,      4096,   65535,  65536,  65537,   131064,
                                   131072, 131073, 262144, 999999, 1 << 20, 5 << 20};
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            struct bus_address to = {.kind = BUS_INBOX, .node = text_of("b")};
            struct buf bytes = node_message(i, sizes[i]);
            bus_send(a->bus, &to, &bytes, i + 1);
        }
    }
    world_wait(world, b, &b->delivery_count, 2 * COUNT);
    world_wait(world, a, &a->confirmed_count, 2 * COUNT);
    for (uint32_t i = 0; i < 2 * COUNT; i++) {
        struct node_delivery delivery = node_delivery(b, i);
        assert_int_equal(delivery.number, i % COUNT);
        assert_int_equal(delivery.size, sizes[i % COUNT]);
    }
}

/* Without the broker nothing is told but that it is gone; with it back, all that was not confirmed
 * is there, and only that: the queues were in its memory. */
static void a_killed_broker_loses_what_it_had_and_gets_the_rest(void **state)
{
    struct bus_world *world = begin(state);
    struct bus_node *a = world_open(world, "a");
    struct bus_node *b = world_open(world, "b");
    for (uint64_t i = 1; i <= 5; i++) {
        node_send(a, "b", i, i);
        node_send(a, "c", i, 10 + i);
    }
    world_wait(world, b, &b->delivery_count, 5);
    world_wait(world, a, &a->confirmed_count, 10);
    world_kill_broker(world);
    world_wait(world, a, &a->disconnected_count, 1);
    world_wait(world, b, &b->disconnected_count, 1);
    for (uint64_t i = 6; i <= 9; i++) {
        node_send(a, "b", i, i);
    }
    bus_revoke(a->bus, 8);
    for (uint32_t i = 0; i < 5; i++) {
        bus_acknowledge(b->bus, node_delivery(b, i).id);
    }
    assert_int_equal(node_count(a, &a->confirmed_count), 10);
    world_start_broker(world);
    world_wait(world, a, &a->connected_count, 2);
    world_wait(world, b, &b->delivery_count, 8);
    world_wait(world, a, &a->confirmed_count, 13);
    world_settle(world);
    assert_int_equal(node_count(b, &b->delivery_count), 8);
    assert_int_equal(node_delivery(b, 5).number, 6);
    assert_int_equal(node_delivery(b, 6).number, 7);
    assert_int_equal(node_delivery(b, 7).number, 9);
    for (uint64_t i = 1; i <= 9; i++) {
        assert_int_equal(a->confirmed[i], i != 8);
    }
    struct bus_node *c = world_open(world, "c");
    world_wait(world, c, &c->connected_count, 1);
    world_settle(world);
    assert_int_equal(node_count(c, &c->delivery_count), 0);
}

static void durable_queues_survive_the_broker(void **state)
{
    struct bus_world *world = begin(state);
    world->queues = BUS_AMQP_QUORUM;
    struct bus_node *a = world_open(world, "a");
    struct bus_node *b = world_open(world, "b");
    for (uint64_t i = 1; i <= 6; i++) {
        node_send(a, i % 2 == 0 ? "b" : "c", i, i);
    }
    world_wait(world, a, &a->confirmed_count, 6);
    world_wait(world, b, &b->delivery_count, 3);
    bus_acknowledge(b->bus, node_delivery(b, 0).id);
    world_settle(world);
    world_kill_broker(world);
    world_wait(world, a, &a->disconnected_count, 1);
    world_start_broker(world);
    struct bus_node *c = world_open(world, "c");
    world_wait(world, c, &c->delivery_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(node_delivery(c, i).number, 1 + 2 * i);
    }
    world_wait(world, b, &b->delivery_count, 5);
    assert_int_equal(node_delivery(b, 4).number, 6);
    assert_int_equal(a->returned_count, 0);
}

/* ---- only over RabbitMQ ---- */

static void a_broker_that_hangs_is_left_after_the_deadline(void **state)
{
    struct bus_world *world = begin(state);
    world->limits.deadline_ms = scaled_ms(1500);
    struct bus_node *a = world_open(world, "a");
    struct bus_node *b = world_open(world, "b");
    b->acknowledges = true;
    world_wait(world, a, &a->connected_count, 1);
    world_wait(world, b, &b->connected_count, 1);
    uint32_t before = node_count(a, &a->disconnected_count);
    world_hold(world, true);
    uint64_t begin_ms = clock_ms();
    enum { COUNT = 40 };
    for (uint64_t i = 0; i < COUNT; i++) {
        struct bus_address to = {.kind = BUS_INBOX, .node = text_of("b")};
        struct buf bytes = node_message(i, 1 << 20);
        bus_send(a->bus, &to, &bytes, i + 1);
    }
    world_wait(world, a, &a->disconnected_count, before + 1);
    assert_in_range(clock_ms() - begin_ms, scaled_ms(1000), scaled_ms(10000));
    world_hold(world, false);
    world_wait(world, a, &a->confirmed_count, COUNT);
    world_settle(world);
    for (uint64_t i = 0; i < COUNT; i++) {
        assert_int_equal(a->confirmed[i + 1], 1);
    }
}

/* Longer than the deadline: a broker that says it is blocked has not gone. */
static void a_blocked_broker_is_waited_for(void **state)
{
    struct bus_world *world = begin(state);
    world->limits.deadline_ms = scaled_ms(2000);
    struct bus_node *a = world_open(world, "a");
    struct bus_node *b = world_open(world, "b");
    b->acknowledges = true;
    world_wait(world, a, &a->connected_count, 1);
    world_set_alarm(world, true);
    enum { COUNT = 20 };
    for (uint64_t i = 0; i < COUNT; i++) {
        struct bus_address to = {.kind = BUS_INBOX, .node = text_of("b")};
        struct buf bytes = node_message(i, 1 << 20);
        bus_send(a->bus, &to, &bytes, i + 1);
    }
    world_wait(world, a, &a->blocked_count, 1);
    for (uint64_t until_ms = clock_ms() + scaled_ms(2500); clock_ms() < until_ms;) {
        assert_true(world_step(world));
    }
    assert_int_equal(node_count(a, &a->disconnected_count), 0);
    assert_true(node_count(a, &a->confirmed_count) < COUNT);
    world_set_alarm(world, false);
    world_wait(world, a, &a->confirmed_count, COUNT);
    world_wait(world, b, &b->delivery_count, COUNT);
    assert_int_equal(node_count(a, &a->disconnected_count), 0);
    assert_int_equal(node_count(a, &a->unblocked_count), 1);
}

static void closing_ends_also_without_a_broker(void **state)
{
    struct bus_world *world = begin(state);
    world->limits.deadline_ms = scaled_ms(1000);
    world_hold(world, true);
    struct bus_node *a = world_open(world, "a");
    node_send(a, "b", 1, 1);
    uint64_t begin_ms = clock_ms();
    world_close(world, a, scaled_ms(300));
    assert_true(clock_ms() - begin_ms < scaled_ms(10000));
    world_hold(world, false);
}

static void what_the_broker_refuses_is_told_once(void **state)
{
    struct bus_world *world = begin(state);
    struct bus_node *node = calloc(1, sizeof *node);
    assert_non_null(node);
    node->listener.event = node_event;
    pthread_mutex_init(&node->lock, NULL);
    char uri[64];
    snprintf(uri, sizeof uri, "amqp://millrace:wrong@127.0.0.1:%u", world->proxy->port);
    const char *uris = uri;
    struct bus_amqp_options options = world_options(world, "a", &uris);
    assert_int_equal(bus_amqp_open(&options, &node->listener, &node->bus, &world_error), STATUS_OK);
    world_wait(world, node, &node->disconnected_count, 1);
    assert_non_null(strstr(node->reason, "ACCESS_REFUSED"));
    assert_null(strstr(node->reason, "wrong"));
    for (int i = 0; i < 3; i++) {
        world_settle(world);
    }
    assert_int_equal(node_count(node, &node->disconnected_count), 1);
    bus_close(node->bus, 0);
    free(node);
}

/* The first two brokers of the list are none. */
static void the_next_broker_of_the_list_is_tried(void **state)
{
    struct bus_world *world = begin(state);
    struct bus_node *node = calloc(1, sizeof *node);
    assert_non_null(node);
    node->listener.event = node_event;
    pthread_mutex_init(&node->lock, NULL);
    const char *const uris[] = {"amqp://127.0.0.1:1", "amqp://guest:guest@127.0.0.1:2/",
                                broker_process_uri(world->process)};
    struct bus_amqp_options options = world_options(world, "a", uris);
    options.broker_count = 3;
    assert_int_equal(bus_amqp_open(&options, &node->listener, &node->bus, &world_error), STATUS_OK);
    world_wait(world, node, &node->connected_count, 1);
    bus_close(node->bus, scaled_ms(1000));
    assert_int_equal(bus_amqp_remove_queues(&options, &world_error), STATUS_OK);
    free(node);
}

static void only_a_broker_answers_a_probe(void **state)
{
    struct bus_world *world = begin(state);
    assert_true(bus_amqp_probe(broker_process_uri(world->process), scaled_ms(WORLD_PROBE_MS)));
    assert_false(bus_amqp_probe("amqp://127.0.0.1:1", scaled_ms(WORLD_PROBE_MS)));
    assert_false(bus_amqp_probe("http://127.0.0.1:1", scaled_ms(WORLD_PROBE_MS)));
    world_hold(world, true);
    assert_false(bus_amqp_probe(world->uri, scaled_ms(100)));
    world_hold(world, false);
    assert_true(bus_amqp_probe(world->uri, scaled_ms(WORLD_PROBE_MS)));
}

static void nobody_else_reads_the_password(void **state)
{
    struct bus_world *world = begin(state);
    static const char *const files[] = {"uri", "password", "rabbitmq.conf"};
    struct stat info;
    assert_null(strstr(broker_process_uri(world->process), "guest"));
    assert_int_equal(stat(world->folder, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", world->folder, files[i]);
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(info.st_mode & 0777, 0600);
    }
}

/* RabbitMQ knows only the password that its data were made with. */
static void data_without_their_password_are_refused(void **state)
{
    struct bus_world *world = begin(state);
    char folder[64] = "/tmp/test_bus.XXXXXX";
    char data[80];
    (void)world;
    assert_non_null(mkdtemp(folder));
    snprintf(data, sizeof data, "%s/mnesia", folder);
    assert_int_equal(mkdir(data, 0700), 0);
    struct broker_process_options options = {.folder = folder};
    struct broker_process *broker = NULL;
    assert_int_equal(broker_process_start(&options, &broker, &world_error), STATUS_CORRUPT);
    assert_non_null(strstr(world_error.text, folder));
    (void)nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void a_broker_of_an_ipv6_host_is_found_by_its_address(void **state)
{
    struct bus_world *world = begin(state);
    char folder[64] = "/tmp/test_bus.XXXXXX";
    struct broker_process_options options = {
        .folder = folder, .host = "::1", .deadline_ms = scaled_ms(60000)};
    struct broker_process *broker = NULL;
    (void)world;
    if (address_check("::1", 0, &world_error) != STATUS_OK) skip();
    assert_non_null(mkdtemp(folder));
    if (broker_process_start(&options, &broker, &world_error) != STATUS_OK) {
        fail_msg("%s", world_error.text);
    }
    assert_non_null(strstr(broker_process_uri(broker), "@[::1]:"));
    assert_true(broker_process_answers(broker, scaled_ms(WORLD_PROBE_MS)));
    broker_process_stop(broker, scaled_ms(5000));
    (void)nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void a_second_broker_in_the_same_folder_is_refused(void **state)
{
    struct bus_world *world = begin(state);
    struct broker_process_options options = {.folder = world->folder};
    struct broker_process *second = NULL;
    assert_int_equal(broker_process_start(&options, &second, &world_error), STATUS_IO);
    assert_non_null(strstr(world_error.text, "another broker"));
    assert_true(broker_process_pid(world->process) > 0);
    assert_false(broker_process_has_ended(world->process));
}

/* ---- without any broker ---- */

static void wrong_options_are_errors_that_hide_the_password(void **state)
{
    (void)state;
    struct bus *bus = NULL;
    struct bus_listener listener = {.event = node_event};
    const char *const wrong[] = {"", "http://a:b@c", "amqp://guest:secret@host:port/",
                                 "amqps://guest:secret@host:port/"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct bus_amqp_options options = world_options(&world_memory, "a", &wrong[i]);
        assert_int_equal(bus_amqp_open(&options, &listener, &bus, &world_error), STATUS_USAGE);
        assert_null(strstr(world_error.text, "secret"));
    }
    const char *right = "amqp://host";
    struct bus_amqp_options options = world_options(&world_memory, "a", &right);
    options.broker_count = 0;
    assert_int_equal(bus_amqp_open(&options, &listener, &bus, &world_error), STATUS_USAGE);
    char long_name[300];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    options = world_options(&world_memory, "a", &right);
    options.cluster = long_name;
    assert_int_equal(bus_amqp_open(&options, &listener, &bus, &world_error), STATUS_USAGE);
    assert_null(bus);
}

/* ---- groups ---- */

static int set_up_test(void **state)
{
    struct bus_world *world = *state;
    snprintf(world->cluster, sizeof world->cluster, "t%u", world->cluster_count++);
    world->limits = (struct bus_limits){.inbox_prefetch = 64,
                                        .work_prefetch = 16,
                                        .confirm_window = 64,
                                        .confirm_window_bytes = 64 << 20,
                                        .deadline_ms = scaled_ms(WORLD_DEADLINE_MS)};
    world->queues = BUS_AMQP_TRANSIENT;
    world->random = (struct random){world->cluster_count};
    if (world == &world_memory) {
        return broker_memory_create(&world->memory, &world_error) == STATUS_OK ? 0 : -1;
    }
    return 0;
}

static int tear_down_test(void **state)
{
    struct bus_world *world = *state;
    for (uint32_t i = 0; i < WORLD_NODES; i++) {
        if (world->nodes[i] != NULL) world_close(world, world->nodes[i], 0);
    }
    if (world == &world_memory) {
        broker_memory_destroy(world->memory);
        world->memory = NULL;
    } else if (world->process != NULL) {
        tcp_proxy_hold(world->proxy, false);
    }
    return 0;
}

static struct queue_depth depth_of(struct bus_node *node, const char *name)
{
    struct queue_depth found = {.messages = UINT64_MAX};
    pthread_mutex_lock(&node->lock);
    for (uint32_t i = 0; i < node->depth_count; i++) {
        if (strcmp(node->depths[i].name, name) == 0) found = node->depths[i];
    }
    pthread_mutex_unlock(&node->lock);
    return found;
}

static void every_queue_is_measured(void **state)
{
    struct bus_world *world = begin(state);
    world->limits.work_prefetch = 2;
    struct bus_node *a = world_open(world, "a");
    struct bus_node *b = world_open(world, "b");
    bus_work(b->bus, true);
    world_wait(world, b, &b->connected_count, 1);
    world_settle(world);
    for (uint64_t i = 0; i < 7; i++) {
        node_send(a, "c", i, i + 1); /* Who is not there. */
    }
    for (uint64_t i = 0; i < 5; i++) {
        node_send_work(a, 1, i, i + 8);
    }
    world_wait(world, a, &a->confirmed_count, 12);
    world_wait(world, b, &b->delivery_count, 2);
    world_settle(world);
    bus_measure(a->bus);
    world_wait(world, a, &a->measured_count, 1);
    assert_int_equal(a->depth_count, 3 + WORLD_WORK);
    assert_int_equal(depth_of(a, "inbox.a").messages, 0);
    assert_int_equal(depth_of(a, "inbox.a").consumers, 1);
    assert_int_equal(depth_of(a, "inbox.c").messages, 7);
    assert_int_equal(depth_of(a, "inbox.c").consumers, 0);
    assert_int_equal(depth_of(a, "work.0").messages, 0);
    assert_int_equal(depth_of(a, "work.0").consumers, 1);
    assert_int_equal(depth_of(a, "work.1").messages, 3); /* Two are in flight. */
    assert_int_equal(b->measured_count, 0);
    assert_int_equal(a->disconnected_count, 0);
}

static void many_who_measure_get_one_answer(void **state)
{
    struct bus_world *world = begin(state);
    struct bus_node *a = world_open(world, "a");
    a->acknowledges = true;
    for (int i = 0; i < 50; i++) {
        bus_measure(a->bus); /* Also before there is a connection. */
    }
    world_wait(world, a, &a->measured_count, 1);
    world_settle(world);
    assert_int_equal(node_count(a, &a->measured_count), 1);
    for (uint64_t i = 0; i < 100; i++) { /* Nothing is lost by it. */
        node_send(a, "a", i, i + 1);
        if (i % 10 == 0) bus_measure(a->bus);
    }
    world_wait(world, a, &a->delivery_count, 100);
    world_wait(world, a, &a->confirmed_count, 100);
    world_wait(world, a, &a->measured_count, 2);
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(node_delivery(a, i).number, i);
    }
    assert_int_equal(a->disconnected_count, 0);
}

static int set_up_memory(void **state)
{
    *state = &world_memory;
    return 0;
}

static int set_up_real(void **state)
{
    *state = &world_real;
    world_start_real(&world_real);
    return 0;
}

static int set_up_tls(void **state)
{
    *state = &world_tls;
    world_start_tls(&world_tls, &world_real);
    return 0;
}

static int tear_down_tls(void **state)
{
    (void)state;
    world_stop_tls(&world_tls);
    world_stop_real(&world_real);
    return 0;
}

#define BUS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_test, tear_down_test)
#define BUS_TESTS_BUT_KILLS                                                                        \
    BUS_TEST(one_queue_keeps_its_order_and_confirms_each_token_once),                              \
        BUS_TEST(a_message_waits_for_a_node_that_is_not_up),                                       \
        BUS_TEST(work_is_shared_and_each_message_taken_once),                                      \
        BUS_TEST(who_does_not_work_takes_none_and_may_begin_and_end),                              \
        BUS_TEST(an_inbox_has_one_reader_and_the_next_takes_over),                                 \
        BUS_TEST(what_was_not_acknowledged_comes_again_after_a_lost_connection),                   \
        BUS_TEST(tokens_are_settled_once_however_often_the_connection_is_lost),                    \
        BUS_TEST(a_message_to_nobody_is_returned_and_not_confirmed),                               \
        BUS_TEST(a_queue_that_is_gone_is_there_again_after_a_return),                              \
        BUS_TEST(a_queue_deleted_under_its_reader_is_read_again),                                  \
        BUS_TEST(a_revoked_message_is_not_published),                                              \
        BUS_TEST(no_more_is_delivered_than_the_prefetch),                                          \
        BUS_TEST(acknowledgements_in_any_order_leave_nothing_behind),                              \
        BUS_TEST(closing_sends_what_waits), BUS_TEST(large_messages_arrive_whole),                 \
        BUS_TEST(every_queue_is_measured), BUS_TEST(many_who_measure_get_one_answer)
#define BUS_TESTS                                                                                  \
    BUS_TESTS_BUT_KILLS, BUS_TEST(a_killed_broker_loses_what_it_had_and_gets_the_rest),            \
        BUS_TEST(durable_queues_survive_the_broker)

int main(void)
{
    const struct CMUnitTest in_memory[] = {
        BUS_TESTS,
        cmocka_unit_test(wrong_options_are_errors_that_hide_the_password),
    };
    const struct CMUnitTest over_rabbitmq[] = {
        BUS_TESTS,
        BUS_TEST(a_broker_that_hangs_is_left_after_the_deadline),
        BUS_TEST(a_blocked_broker_is_waited_for),
        BUS_TEST(closing_ends_also_without_a_broker),
        BUS_TEST(what_the_broker_refuses_is_told_once),
        BUS_TEST(the_next_broker_of_the_list_is_tried),
        BUS_TEST(only_a_broker_answers_a_probe),
        BUS_TEST(nobody_else_reads_the_password),
        BUS_TEST(data_without_their_password_are_refused),
        BUS_TEST(a_broker_of_an_ipv6_host_is_found_by_its_address),
        BUS_TEST(a_second_broker_in_the_same_folder_is_refused),
    };
    /* A broker that dies is the same with TLS, and takes long. */
    const struct CMUnitTest over_tls[] = {
        BUS_TESTS_BUT_KILLS,
        BUS_TEST(a_broker_that_hangs_is_left_after_the_deadline),
        BUS_TEST(a_blocked_broker_is_waited_for),
        BUS_TEST(closing_ends_also_without_a_broker),
        BUS_TEST(who_is_not_known_is_not_talked_to),
        BUS_TEST(a_probe_speaks_tls_too),
        BUS_TEST(files_of_no_use_are_told_at_once),
    };
    int failed = cmocka_run_group_tests(in_memory, set_up_memory, NULL);
    failed += cmocka_run_group_tests(over_rabbitmq, set_up_real, NULL);
    return failed + cmocka_run_group_tests(over_tls, set_up_tls, tear_down_tls);
}
