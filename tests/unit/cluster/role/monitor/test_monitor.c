/* SPDX-License-Identifier: Apache-2.0 */
/* test_monitor.c - what is dead or hung comes back, what was stopped stays, and nothing else is
 * touched.
 *
 * Method: a small world (monitor_world.h) of real monitors and real beaters with a driver that
 * works, fails or hangs, and a recorder that plays back old heartbeats. Each test says what it does
 * to the world, and looks at what the driver was asked and what the gateways were told.
 */
#include "unit/cluster/role/monitor/monitor_world.h"

#include "engine/base/memory.h"

static struct monitor_world world;

static int setup(void **state)
{
    (void)state;
    world_init(&world, "m1 m2 m3 g1 w1 w2");
    world_run(&world, 4 * LEASE);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_done(&world);
    return 0;
}

static uint32_t all_drives(void)
{
    uint32_t drives = 0;
    for (uint32_t i = 0; i < world.count; i++) {
        drives += world.things[i].drives;
    }
    return drives;
}

static void run_until_driven(const struct thing *thing, uint32_t drives)
{
    for (uint32_t i = 0; i < 2000 && thing->drives < drives; i++) {
        world_tick(&world);
    }
    assert_int_equal(thing->drives, drives);
}

static void healthy_cluster_is_left_alone(void **state)
{
    (void)state;
    world_run(&world, 60000);
    assert_string_equal(world_leader(&world)->name, "m3");
    assert_int_equal(all_drives(), 0);
    for (uint32_t i = 0; i < world.count; i++) {
        assert_int_equal(world_state(&world, world.things[i].name), HEALTH_UP);
    }
    assert_int_equal(world_happened(&world, HAPPENED_ELECTED, "m3"), 1);
    assert_int_equal(world.timeline_count, 1);
}

static void silent_node_is_restarted_once_by_the_leader(void **state)
{
    (void)state;
    struct thing *w1 = world_thing(&world, "w1");
    uint64_t dead = w1->heartbeat_sender.incarnation;
    w1->replayed = 7;
    thing_kill(&world, w1);
    world_run(&world, FAILURE_TIMEOUT - HEARTBEAT_PERIOD);
    assert_int_equal(all_drives(), 0);
    world_run(&world, 2 * HEARTBEAT_PERIOD);
    assert_int_equal(w1->drives, 1);
    assert_int_equal(w1->drive, DRIVE_RESTART);
    assert_int_equal(w1->drive_incarnation, dead);
    assert_int_equal(w1->drive_term.number, 1);
    assert_int_equal(w1->drive_term.holder, 2);
    world_run(&world, 30000);
    assert_int_equal(all_drives(), 1);
    assert_int_equal(world_state(&world, "w1"), HEALTH_UP);
    assert_int_equal(world_monitored(&world, world_leader(&world), "w1").restarts, 1);
    assert_int_equal(world_happened(&world, HAPPENED_SUSPECTED, "w1"), 1);
    assert_int_equal(world_happened(&world, HAPPENED_RESTARTING, "w1"), 1);
    assert_int_equal(world_happened(&world, HAPPENED_REPLAYED, "w1"), 1);
    assert_int_equal(world_happened(&world, HAPPENED_RESUMED, "w1"), 1);
    const struct cluster_event *last = &world.timeline[world.timeline_count - 1];
    assert_int_equal(last->kind, HAPPENED_RESUMED);
    assert_in_range(last->number, FAILURE_TIMEOUT, FAILURE_TIMEOUT + 4 * HEARTBEAT_PERIOD);
}

static void all_nodes_dead_at_once_come_back(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < world.count; i++) {
        if (i != 2) thing_kill(&world, &world.things[i]);
    }
    world_run(&world, 20000);
    for (uint32_t i = 0; i < world.count; i++) {
        assert_int_equal(world_state(&world, world.things[i].name), HEALTH_UP);
    }
}

static void hung_node_is_ordered_to_end_and_restarted(void **state)
{
    (void)state;
    struct thing *w1 = world_thing(&world, "w1");
    w1->is_stuck = true;
    w1->behaviour = DRIVER_HANGS;
    world_run(&world, STALL_TIMEOUT - HEARTBEAT_PERIOD);
    assert_int_equal(w1->drives, 0);
    world_run(&world, 4 * HEARTBEAT_PERIOD);
    assert_int_equal(w1->drives, 1);
    assert_false(w1->runs); /* The order reached it, although the driver did not. */
    assert_int_equal(world_happened(&world, HAPPENED_HUNG, "w1"), 1);
    w1->behaviour = DRIVER_WORKS;
    world_run(&world, 10000);
    assert_int_equal(world_state(&world, "w1"), HEALTH_UP);
    assert_int_equal(w1->drives, 1);
}

static void order_is_not_for_the_successor_unless_a_bug_is_planted(void **state)
{
    (void)state;
    for (enum monitor_mutation mutation = 0; mutation < MONITOR_MUTATIONS; mutation++) {
        world_done(&world);
        world_init(&world, "m1 g1 w1");
        thing_kill(&world, &world.things[0]);
        world.mutation = mutation;
        thing_start(&world, &world.things[0]);
        world_run(&world, 4 * LEASE);
        struct thing *w1 = world_thing(&world, "w1");
        w1->is_stuck = true;
        w1->behaviour = DRIVER_HANGS;
        world_run(&world, STALL_TIMEOUT + 4 * HEARTBEAT_PERIOD);
        assert_false(w1->runs);
        /* A person starts it by hand, while the driver is still at work. */
        thing_start(&world, w1);
        world_run(&world, 4 * HEARTBEAT_PERIOD);
        assert_int_equal(w1->runs, mutation == MONITOR_SOUND);
    }
}

static void driver_that_fails_is_asked_less_and_less(void **state)
{
    (void)state;
    struct thing *w1 = world_thing(&world, "w1");
    w1->behaviour = DRIVER_FAILS;
    thing_kill(&world, w1);
    run_until_driven(w1, 1);
    static const uint32_t pauses_ms[] = {200, 400, 800, 1600, 3200, 5000, 5000, 5000};
    for (uint32_t i = 0; i < sizeof pauses_ms / sizeof *pauses_ms; i++) {
        uint64_t before_ms = w1->drive_ms;
        run_until_driven(w1, i + 2);
        assert_in_range(w1->drive_ms - before_ms, pauses_ms[i] + DRIVE_TIME,
                        pauses_ms[i] + DRIVE_TIME + 2 * MONITOR_TICK_MS);
        assert_int_equal(world_state(&world, "w1"), i + 1 < 5 ? HEALTH_RESTARTING : HEALTH_BROKEN);
    }
    struct monitored monitored = world_monitored(&world, world_leader(&world), "w1");
    assert_string_equal(monitored.problem, "the driver is 'out' of order");
    assert_int_equal(world_happened(&world, HAPPENED_BROKEN, "w1"), 1);
    w1->behaviour = DRIVER_WORKS;
    world_run(&world, 20000);
    assert_int_equal(world_state(&world, "w1"), HEALTH_UP);
    assert_int_equal(world_monitored(&world, world_leader(&world), "w1").problem[0], '\0');
}

static void node_that_never_heartbeats_after_its_start_is_broken_in_the_end(void **state)
{
    (void)state;
    struct thing *w1 = world_thing(&world, "w1");
    w1->dies_at_start = true;
    thing_kill(&world, w1);
    run_until_driven(w1, 1);
    static const uint32_t pauses_ms[] = {2000 + 200,   4000 + 400,   8000 + 800,  16000 + 1600,
                                         16000 + 3200, 16000 + 5000, 16000 + 5000};
    for (uint32_t i = 0; i < sizeof pauses_ms / sizeof *pauses_ms; i++) {
        uint64_t before_ms = w1->drive_ms;
        run_until_driven(w1, i + 2);
        assert_in_range(w1->drive_ms - before_ms, pauses_ms[i] + DRIVE_TIME,
                        pauses_ms[i] + DRIVE_TIME + 4 * MONITOR_TICK_MS);
        assert_int_equal(world_state(&world, "w1"), i + 1 < 5 ? HEALTH_RESTARTING : HEALTH_BROKEN);
    }
    struct monitored monitored = world_monitored(&world, world_leader(&world), "w1");
    assert_string_equal(monitored.problem, "it was started, and not heard of for 16000 ms");
}

static void node_that_ends_by_itself_is_not_waited_for(void **state)
{
    (void)state;
    struct thing *w1 = world_thing(&world, "w1");
    struct error error;
    w1->dies_at_start = true;
    thing_kill(&world, w1);
    run_until_driven(w1, 1);
    uint64_t before_ms = w1->drive_ms;
    world_run(&world, 2 * DRIVE_TIME);
    error_write(&error, STATUS_IO, "its port is taken");
    struct monitor_event event = {
        .kind = MONITOR_ENDED, .node = (uint32_t)(w1 - world.things), .error = &error};
    world_monitor_step(&world, (uint32_t)(world_leader(&world) - world.things), event);
    assert_string_equal(world_monitored(&world, world_leader(&world), "w1").problem,
                        "its port is taken");
    run_until_driven(w1, 2);
    assert_true(w1->drive_ms - before_ms < START_TIMEOUT);
}

static void node_that_starts_slowly_is_given_the_time_in_the_end(void **state)
{
    (void)state;
    struct thing *w1 = world_thing(&world, "w1");
    thing_kill(&world, w1);
    run_until_driven(w1, 1);
    for (uint64_t end_ms = world.now_ms + 20000; world.now_ms < end_ms;) {
        w1->is_deaf = world.now_ms < w1->drive_ms + 3 * START_TIMEOUT;
        world_tick(&world);
    }
    assert_int_equal(world_state(&world, "w1"), HEALTH_UP);
    assert_int_equal(w1->drives, 3);
}

static void node_that_dies_again_and_again_is_broken_and_one_that_lives_begins_anew(void **state)
{
    (void)state;
    struct thing *w1 = world_thing(&world, "w1");
    for (uint32_t i = 0; i < 6; i++) {
        thing_kill(&world, w1);
        world_run(&world, 9000);
    }
    /* A node that dies at once is broken until it stays up, and not suspected in between. */
    uint32_t deaths = 0;
    for (uint64_t end_ms = world.now_ms + 30000; world.now_ms < end_ms;) {
        world_tick(&world);
        enum health seen = world_state(&world, "w1");
        assert_true(seen != HEALTH_SUSPECTED && seen != HEALTH_RESTARTING);
        if (seen != HEALTH_UP || !w1->runs) continue;
        thing_kill(&world, w1);
        deaths++;
    }
    assert_true(deaths > 3);
    world_run(&world, 9000);
    assert_int_equal(world_happened(&world, HAPPENED_BROKEN, "w1"), 1);
    assert_true(w1->runs);
    world_run(&world, 12000);
    thing_kill(&world, w1);
    world_run(&world, 3000);
    assert_true(w1->runs);
    assert_int_equal(world_happened(&world, HAPPENED_BROKEN, "w1"), 1);
}

static void driver_that_never_returns_delays_nobody_else(void **state)
{
    (void)state;
    struct thing *w1 = world_thing(&world, "w1");
    w1->behaviour = DRIVER_HANGS;
    thing_kill(&world, w1);
    world_run(&world, 10000);
    thing_kill(&world, world_thing(&world, "w2"));
    world_run(&world, 3000);
    assert_int_equal(world_state(&world, "w2"), HEALTH_UP);
    assert_int_equal(world_state(&world, "w1"), HEALTH_RESTARTING);
    assert_int_equal(w1->drives, 1);
}

static void node_never_heard_of_is_started_and_killed_only_if_that_fails(void **state)
{
    (void)state;
    world_done(&world);
    world_init(&world, "m1 g1 w1 w2");
    struct thing *w1 = world_thing(&world, "w1");
    struct thing *w2 = world_thing(&world, "w2");
    thing_kill(&world, w1);
    w2->is_deaf = true; /* It runs, and can't be heard. */
    run_until_driven(w1, 1);
    run_until_driven(w2, 1);
    assert_int_equal(w1->drive, DRIVE_START);
    assert_int_equal(w1->drive_incarnation, 0);
    assert_int_equal(w2->drive, DRIVE_START);
    run_until_driven(w2, 2);
    assert_int_equal(w2->drive, DRIVE_RESTART);
    world_run(&world, 1000);
    assert_int_equal(w1->drives, 1);
    assert_int_equal(world_state(&world, "w1"), HEALTH_UP);
}

static void planned_stop_is_respected_until_the_node_is_started_by_hand(void **state)
{
    (void)state;
    struct thing *w1 = world_thing(&world, "w1");
    w1->state = HEARTBEAT_STOPPING;
    world_run(&world, 2 * HEARTBEAT_PERIOD);
    thing_kill(&world, w1);
    world_run(&world, 20000);
    assert_int_equal(all_drives(), 0);
    assert_int_equal(world_state(&world, "w1"), HEALTH_STOPPED);
    assert_int_equal(world_happened(&world, HAPPENED_STOPPED, "w1"), 1);
    thing_start(&world, w1);
    world_run(&world, 2000);
    assert_int_equal(world_state(&world, "w1"), HEALTH_UP);
    thing_kill(&world, w1);
    world_run(&world, 3000);
    assert_int_equal(w1->drives, 1);
    assert_true(w1->runs);
}

static void operator_stops_a_node_through_the_leader_only(void **state)
{
    (void)state;
    struct thing *w1 = world_thing(&world, "w1");
    world_ask(&world, "m1", ASK_STOP, "w1");
    world_run(&world, 2000);
    assert_true(w1->runs);
    world_ask(&world, "m3", ASK_STOP, "w1");
    assert_int_equal(world_state(&world, "w1"), HEALTH_STOPPED);
    world_run(&world, 2000);
    assert_false(w1->runs);
    /* The next leader knows as well, also of a node that was dead already. */
    struct thing *w2 = world_thing(&world, "w2");
    w2->behaviour = DRIVER_FAILS;
    thing_kill(&world, w2);
    world_run(&world, 3000);
    world_ask(&world, "m3", ASK_STOP, "w2");
    w2->behaviour = DRIVER_WORKS;
    uint32_t drives = w2->drives;
    world_run(&world, 1000);
    thing_kill(&world, world_thing(&world, "m3"));
    world_run(&world, 30000);
    assert_non_null(world_leader(&world));
    assert_string_not_equal(world_leader(&world)->name, "m3");
    assert_false(w1->runs);
    assert_false(w2->runs);
    assert_int_equal(w2->drives, drives);
    assert_int_equal(world_happened(&world, HAPPENED_STOPPED, "w1"), 1);
}

static void stop_that_only_one_follower_knows_of_is_heard_by_the_next_leader(void **state)
{
    (void)state;
    struct thing *w1 = world_thing(&world, "w1");
    struct thing *m2 = world_thing(&world, "m2");
    w1->behaviour = DRIVER_FAILS;
    thing_kill(&world, w1);
    world_run(&world, 1500);
    m2->is_deaf = true;
    world_ask(&world, "m3", ASK_STOP, "w1");
    world_run(&world, 200);
    thing_kill(&world, world_thing(&world, "m3"));
    m2->is_deaf = false;
    w1->behaviour = DRIVER_WORKS;
    uint32_t drives = w1->drives;
    assert_int_not_equal(world_monitored(&world, m2, "w1").state, HEALTH_STOPPED);
    world_run(&world, 20000);
    assert_string_equal(world_leader(&world)->name, "m2");
    assert_int_equal(world_state(&world, "w1"), HEALTH_STOPPED);
    assert_int_equal(w1->drives, drives);
}

/* Followers start monitors too, and remember one that the leader has never heard. */
static void stop_of_a_monitor_that_its_leader_never_heard_is_respected_by_all(void **state)
{
    (void)state;
    struct thing *m1 = world_thing(&world, "m1");
    struct thing *m3 = world_thing(&world, "m3");
    m1->behaviour = DRIVER_FAILS;
    thing_kill(&world, m1);
    world_run(&world, 200);
    thing_kill(&world, m3);
    thing_start(&world, m3);
    world_run(&world, 10000);
    assert_string_equal(world_leader(&world)->name, "m3");
    assert_int_equal(world_monitored(&world, m3, "m1").incarnation, 0);
    assert_int_not_equal(world_monitored(&world, world_thing(&world, "m2"), "m1").incarnation, 0);
    world_ask(&world, "m3", ASK_STOP, "m1");
    m1->behaviour = DRIVER_WORKS;
    uint32_t drives = m1->drives;
    world_run(&world, 30000);
    assert_false(m1->runs);
    assert_int_equal(m1->drives, drives);
}

static void stop_during_a_restart_reaches_the_new_incarnation(void **state)
{
    (void)state;
    struct thing *w1 = world_thing(&world, "w1");
    w1->behaviour = DRIVER_HANGS;
    thing_kill(&world, w1);
    world_run(&world, 2000);
    world_ask(&world, "m3", ASK_STOP, "w1");
    w1->behaviour = DRIVER_WORKS;
    world_run(&world, 100);
    assert_true(w1->runs);
    world_run(&world, 3000);
    assert_false(w1->runs);
    assert_int_equal(world_state(&world, "w1"), HEALTH_STOPPED);
}

static void stop_during_a_drive_that_fails_is_not_forgotten(void **state)
{
    (void)state;
    struct thing *w1 = world_thing(&world, "w1");
    w1->behaviour = DRIVER_HANGS;
    thing_kill(&world, w1);
    world_run(&world, 2000);
    world_ask(&world, "m3", ASK_STOP, "w1");
    w1->behaviour = DRIVER_FAILS;
    world_run(&world, 200);
    /* The driver was given up, but what it had begun comes to its end. */
    thing_start(&world, w1);
    world_run(&world, 1500);
    assert_false(w1->runs);
    assert_int_equal(world_state(&world, "w1"), HEALTH_STOPPED);
    /* Later a person wants it up. */
    world_run(&world, START_TIMEOUT);
    thing_start(&world, w1);
    world_run(&world, 2000);
    assert_true(w1->runs);
    assert_int_equal(world_state(&world, "w1"), HEALTH_UP);
}

static void operator_that_kills_leaves_a_note(void **state)
{
    (void)state;
    world_ask(&world, "m2", ASK_KILLED, "w1");
    world_ask(&world, "m3", ASK_KILLED, "w1");
    world_run(&world, 1000);
    assert_in_range(world_happened(&world, HAPPENED_KILLED, "w1"), 1, 2);
    assert_int_equal(all_drives(), 0);
}

static void views_come_in_pages_from_any_monitor(void **state)
{
    (void)state;
    world_done(&world);
    world_init(&world, "m1 m2 m3 g1 w1 w2 w3 w4 w5 w6");
    world_run(&world, 4 * LEASE);
    static const char *const monitors[] = {"m3", "m1"};
    for (uint32_t i = 0; i < 2; i++) {
        world.operator_view_count = 0;
        world.operator_event_count = 0;
        world_ask(&world, monitors[i], ASK_VIEW, "");
        uint32_t pages = (world.count + DATAGRAM_NODES_MAX - 1) / DATAGRAM_NODES_MAX;
        assert_int_equal(world.operator_view_count, pages);
        assert_int_equal(world.operator_event_count, 1);
        uint32_t node = 0;
        for (uint32_t page = 0; page < pages; page++) {
            const struct view *view = &world.operator_views[page];
            assert_string_equal(view->leader, "m3");
            assert_int_equal(view->term.number, 1);
            assert_int_equal(view->node_total, world.count);
            for (uint32_t j = 0; j < view->node_count; j++) {
                assert_string_equal(view->nodes[j].name, world.things[node].name);
                assert_int_equal(view->nodes[j].state, HEALTH_UP);
                node++;
            }
        }
        assert_int_equal(node, world.count);
    }
    thing_kill(&world, world_thing(&world, "m2"));
    thing_kill(&world, world_thing(&world, "m3"));
    world.things[1].behaviour = world.things[2].behaviour = DRIVER_HANGS;
    world_run(&world, 3 * LEASE);
    world.operator_view_count = 0;
    world_ask(&world, "m1", ASK_VIEW, "");
    assert_true(world.operator_view_count > 0);
    assert_int_equal(world.operator_views[0].term.number, 0);
    assert_string_equal(world.operator_views[0].leader, "");
}

static void unknown_senders_ask(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct datagram datagram = {.kind = DATAGRAM_ASK, .incarnation = 1, .sequence = 1};
        snprintf(datagram.from, sizeof datagram.from, "operator-%u", (unsigned)i + 100);
        snprintf(datagram.to, sizeof datagram.to, "m1");
        world_post(&world, (struct monitor_place){.node = OPERATOR},
                   (struct monitor_place){.node = 0, .is_main = true}, &datagram);
    }
    world_run(&world, 100);
}

static void many_operators_share_a_small_table(void **state)
{
    (void)state;
    /* Many unknown senders ask; the one that asks again after its challenge is answered. */
    unknown_senders_ask(100);
    assert_int_equal(world.operator_view_count, 0);
    world.operator_sender[0] = (struct replay_sender){0};
    world_ask(&world, "m1", ASK_VIEW, "");
    assert_true(world.operator_view_count > 0);
}

static void strangers_do_not_take_the_place_of_an_operator_who_is_there(void **state)
{
    (void)state;
    world_ask(&world, "m1", ASK_VIEW, "");
    uint32_t before = world.operator_view_count;
    assert_true(before > 0);
    unknown_senders_ask(100);
    struct datagram datagram = {.kind = DATAGRAM_ASK, .from = "operator-1", .to = "m1"};
    replay_guard_stamp(&world.operator_sender[0], 1, &datagram);
    world_post(&world, (struct monitor_place){.node = OPERATOR},
               (struct monitor_place){.node = 0, .is_main = true}, &datagram);
    world_run(&world, 100);
    assert_true(world.operator_view_count > before); /* Without another challenge. */
}

static void older_incarnation_that_proves_itself_replaces_a_silent_one(void **state)
{
    (void)state;
    struct thing *w1 = world_thing(&world, "w1");
    uint64_t before = w1->heartbeat_sender.incarnation;
    thing_kill(&world, w1);
    thing_start(&world, w1);
    w1->heartbeat_sender.incarnation = before - 1000000; /* Its clock went back. */
    world_run(&world, 20000);
    assert_int_equal(all_drives(), 0);
    assert_int_equal(world_monitored(&world, world_leader(&world), "w1").incarnation,
                     before - 1000000);
    assert_int_equal(world_happened(&world, HAPPENED_SUSPECTED, "w1"), 0);
}

static void replayed_heartbeats_do_not_make_a_dead_node_live(void **state)
{
    (void)state;
    struct thing *w1 = world_thing(&world, "w1");
    w1->behaviour = DRIVER_HANGS;
    thing_kill(&world, w1);
    world_run(&world, 8000);
    uint32_t count = world.tape_count;
    for (uint32_t i = 0; i < count; i++) {
        struct mail mail = world.tape[i];
        if (world.things[mail.from.node].role != NODE_WORKER) continue;
        for (uint8_t to = 0; to < world.monitor_count; to++) {
            mail.to.node = to;
            world_monitor_hear(&world, to, &mail);
        }
        if (i % 20 == 0) world_tick(&world);
    }
    assert_int_equal(world_state(&world, "w1"), HEALTH_RESTARTING);
    assert_true(world_monitored(&world, world_leader(&world), "w1").silent_ms > 8000);
    assert_int_equal(world_state(&world, "w2"), HEALTH_UP);
    assert_int_equal(all_drives(), 1);
}

static void monitor_that_was_paused_reads_before_it_suspects(void **state)
{
    (void)state;
    world_done(&world);
    world_init(&world, "m1 g1 w1 w2");
    world_run(&world, 4 * LEASE);
    for (uint32_t i = 0; i < 5; i++) {
        struct thing *m1 = world_thing(&world, "m1");
        m1->is_paused = true;
        world_run(&world, 4000);
        m1->is_paused = false;
        /* The worst order: a tick comes before anything is read. */
        world.now_ms += MONITOR_TICK_MS;
        world_monitor_step(&world, 0, (struct monitor_event){.kind = MONITOR_TICK});
        world_run(&world, 3000);
    }
    assert_int_equal(all_drives(), 0);
}

static void last_of_three_monitors_starts_the_others_and_never_kills(void **state)
{
    (void)state;
    for (uint32_t last = 0; last < 3; last++) {
        for (uint32_t i = 0; i < 3; i++) {
            if (i != last) thing_kill(&world, &world.things[i]);
        }
        world_run(&world, 4 * FAILURE_TIMEOUT + LEASE);
        for (uint32_t i = 0; i < 3; i++) {
            assert_true(world.things[i].runs);
        }
        world_run(&world, 20000);
        assert_non_null(world_leader(&world));
        for (uint32_t i = 0; i < world.count; i++) {
            assert_int_equal(world_state(&world, world.things[i].name), HEALTH_UP);
        }
    }
    thing_kill(&world, world_thing(&world, "m2"));
    thing_kill(&world, world_thing(&world, "m3"));
    world_run(&world, 500);
    world.things[1].drive_term.number = world.things[2].drive_term.number = 99;
    world_run(&world, 4 * FAILURE_TIMEOUT);
    for (uint32_t i = 1; i < 3; i++) {
        assert_int_equal(world.things[i].drive, DRIVE_START);
        assert_int_equal(world.things[i].drive_term.number, 0);
    }
}

static void new_leader_goes_on_with_the_history(void **state)
{
    (void)state;
    thing_kill(&world, world_thing(&world, "w1"));
    world_run(&world, 4000);
    uint32_t known = world.timeline_count;
    assert_true(known >= 4);
    struct monitored before = world_monitored(&world, world_leader(&world), "w1");
    struct thing *m3 = world_thing(&world, "m3");
    m3->behaviour = DRIVER_HANGS;
    thing_kill(&world, m3);
    world_run(&world, 5000);
    assert_string_equal(world_leader(&world)->name, "m2");
    assert_int_equal(world_happened(&world, HAPPENED_ELECTED, "m2"), 1);
    assert_int_equal(world.timeline[known].place.sequence, 1);
    assert_int_equal(world_monitored(&world, world_leader(&world), "w1").restarts, before.restarts);
    /* A gateway that knows nothing hears all of it from the new leader. */
    struct thing *g1 = world_thing(&world, "g1");
    uint32_t total = world.timeline_count;
    world.timeline_count = 0;
    thing_kill(&world, g1);
    thing_start(&world, g1);
    world_run(&world, 5000);
    assert_in_range(world.timeline_count, total, total + 2);
    assert_string_equal(world.timeline[0].node, "m3");
}

static void leader_that_was_just_started_hears_what_happened_before(void **state)
{
    (void)state;
    world_done(&world);
    world_init(&world, "m1 m2 g1 w1");
    world_run(&world, 4 * LEASE);
    for (uint32_t i = 0; i < 2; i++) {
        thing_kill(&world, world_thing(&world, "w1"));
        world_run(&world, 12000);
    }
    uint32_t known = world.timeline_count;
    assert_true(known >= 7); /* Elected; suspected, restarting, resumed, twice. */
    struct thing *m2 = world_thing(&world, "m2");
    m2->behaviour = DRIVER_HANGS;
    thing_kill(&world, m2);
    world_run(&world, 2 * LEASE);
    thing_start(&world, m2);
    world_run(&world, 10000);
    assert_string_equal(world_leader(&world)->name, "m2");
    world.operator_event_count = 0;
    world_ask(&world, "m2", ASK_VIEW, "");
    assert_in_range(world.operator_event_count, known + 1, 16);
}

static void monitor_with_another_cluster_file_is_not_heard(void **state)
{
    (void)state;
    struct thing *m2 = world_thing(&world, "m2");
    struct thing *m3 = world_thing(&world, "m3");
    thing_kill(&world, m3);
    m3->lease_ms = 2 * LEASE;
    thing_start(&world, m3);
    world_run(&world, 10000);
    assert_string_equal(world_leader(&world)->name, "m2");
    assert_int_equal(m3->drives, 0); /* It heartbeats. */
    assert_int_equal(world.differs_said_count, 4);
    world_run(&world, 60000);
    assert_int_equal(world.differs_said_count, 8);
    /* It makes no majority, */
    m2->behaviour = DRIVER_HANGS;
    thing_kill(&world, m2);
    for (uint32_t i = 0; i < 10; i++) {
        world_run(&world, LEASE);
        if (i > 2) assert_null(world_leader(&world));
    }
    /* until it has the right one. */
    thing_kill(&world, m3);
    m3->lease_ms = 0;
    thing_start(&world, m3);
    world_run(&world, 10000);
    assert_string_equal(world_leader(&world)->name, "m3");
}

static void monitor_that_is_told_to_stop_is_replaced_and_not_started(void **state)
{
    (void)state;
    struct thing *m3 = world_thing(&world, "m3");
    m3->state = HEARTBEAT_STOPPED;
    thing_heartbeat(&world, m3);
    struct monitor_event event = {.kind = MONITOR_STOP, .now_ms = world.now_ms};
    monitor_step(m3->monitor, &event, &world.effects);
    assert_int_equal(world.effects.items[world.effects.count - 1].kind, MONITOR_EXIT);
    world_carry_out(&world, 2);
    thing_kill(&world, m3);
    world_run(&world, LEASE);
    assert_string_equal(world_leader(&world)->name, "m2");
    world_run(&world, 20000);
    assert_int_equal(m3->drives, 0);
}

static void events_of_all_kinds_of_nonsense_are_ignored(void **state)
{
    (void)state;
    struct random random = {.state = 1};
    static const char *const names[] = {"m1", "m2", "m3", "g1", "w1", "nobody", ""};
    for (uint32_t i = 0; i < 20000; i++) {
        struct mail mail = {.from = {.node = OPERATOR}};
        mail.datagram.kind = (enum datagram_kind)random_below(&random, DATAGRAM_KINDS + 1);
        snprintf(mail.datagram.from, DATAGRAM_NAME_SIZE, "%s", names[random_below(&random, 7)]);
        snprintf(mail.datagram.to, DATAGRAM_NAME_SIZE, "%s", names[random_below(&random, 7)]);
        mail.datagram.incarnation = random_u64(&random);
        mail.datagram.sequence = random_u64(&random);
        mail.datagram.nonce = random_below(&random, 3);
        world_monitor_hear(&world, random_below(&random, 3), &mail);
        world.mail_count = 0;
        if (i % 100 == 0) world.operator_view_count = 0;
    }
    world_run(&world, 10000);
    assert_int_equal(all_drives(), 0);
    assert_string_equal(world_leader(&world)->name, "m3");
}

static void memory_that_runs_out_is_said_and_nothing_else_breaks(void **state)
{
    (void)state;
    struct monitor_node nodes[] = {{TEXT_LITERAL("m1"), NODE_MONITOR}};
    const struct monitor_config config = {.name = TEXT_LITERAL("m1"),
                                          .nodes = nodes,
                                          .node_count = 1,
                                          .failure_timeout_ms = FAILURE_TIMEOUT,
                                          .lease_ms = LEASE};
    struct monitor *monitor = NULL;
    struct error err;
    for (size_t count = 0;; count++) {
        memory_fail_after(count);
        status result = monitor_create(&config, 1, &monitor, &err);
        bool was_refused = memory_was_refused();
        memory_fail_never();
        if (!was_refused) break;
        assert_int_equal(result, STATUS_MEMORY);
    }
    struct monitor_effects effects = {0};
    memory_fail_after(0);
    for (uint64_t now_ms = 1; now_ms < 10000; now_ms += MONITOR_TICK_MS) {
        struct monitor_event event = {.kind = MONITOR_TICK, .now_ms = now_ms};
        monitor_step(monitor, &event, &effects);
    }
    memory_fail_never();
    assert_true(effects.failed);
    assert_int_equal(effects.count, 0);
    monitor_effects_done(&effects);
    monitor_destroy(monitor);
}

static void configurations_without_sense_are_refused(void **state)
{
    (void)state;
    struct monitor_node nodes[] = {{TEXT_LITERAL("m1"), NODE_MONITOR},
                                   {TEXT_LITERAL("w1"), NODE_WORKER}};
    struct monitor_config config = {.nodes = nodes, .node_count = 2, .lease_ms = LEASE};
    static const char *const names[] = {"w1", "m2", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct monitor *monitor = NULL;
        struct error err;
        config.name = text_of(names[i]);
        assert_int_equal(monitor_create(&config, 1, &monitor, &err), STATUS_USAGE);
    }
}

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(healthy_cluster_is_left_alone),
        WORLD_TEST(silent_node_is_restarted_once_by_the_leader),
        WORLD_TEST(all_nodes_dead_at_once_come_back),
        WORLD_TEST(hung_node_is_ordered_to_end_and_restarted),
        WORLD_TEST(order_is_not_for_the_successor_unless_a_bug_is_planted),
        WORLD_TEST(driver_that_fails_is_asked_less_and_less),
        WORLD_TEST(node_that_never_heartbeats_after_its_start_is_broken_in_the_end),
        WORLD_TEST(node_that_starts_slowly_is_given_the_time_in_the_end),
        WORLD_TEST(node_that_ends_by_itself_is_not_waited_for),
        WORLD_TEST(node_that_dies_again_and_again_is_broken_and_one_that_lives_begins_anew),
        WORLD_TEST(driver_that_never_returns_delays_nobody_else),
        WORLD_TEST(node_never_heard_of_is_started_and_killed_only_if_that_fails),
        WORLD_TEST(planned_stop_is_respected_until_the_node_is_started_by_hand),
        WORLD_TEST(operator_stops_a_node_through_the_leader_only),
        WORLD_TEST(stop_that_only_one_follower_knows_of_is_heard_by_the_next_leader),
        WORLD_TEST(stop_of_a_monitor_that_its_leader_never_heard_is_respected_by_all),
        WORLD_TEST(stop_during_a_restart_reaches_the_new_incarnation),
        WORLD_TEST(stop_during_a_drive_that_fails_is_not_forgotten),
        WORLD_TEST(operator_that_kills_leaves_a_note),
        WORLD_TEST(views_come_in_pages_from_any_monitor),
        WORLD_TEST(many_operators_share_a_small_table),
        WORLD_TEST(strangers_do_not_take_the_place_of_an_operator_who_is_there),
        WORLD_TEST(older_incarnation_that_proves_itself_replaces_a_silent_one),
        WORLD_TEST(replayed_heartbeats_do_not_make_a_dead_node_live),
        WORLD_TEST(monitor_that_was_paused_reads_before_it_suspects),
        WORLD_TEST(last_of_three_monitors_starts_the_others_and_never_kills),
        WORLD_TEST(new_leader_goes_on_with_the_history),
        WORLD_TEST(monitor_with_another_cluster_file_is_not_heard),
        WORLD_TEST(leader_that_was_just_started_hears_what_happened_before),
        WORLD_TEST(monitor_that_is_told_to_stop_is_replaced_and_not_started),
        WORLD_TEST(events_of_all_kinds_of_nonsense_are_ignored),
        cmocka_unit_test(memory_that_runs_out_is_said_and_nothing_else_breaks),
        cmocka_unit_test(configurations_without_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
