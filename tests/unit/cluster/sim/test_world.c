/* SPDX-License-Identifier: Apache-2.0 */
/* test_world.c - simulated time, chance and disks, which both worlds of the simulator stand on.
 *
 * Method: timers are set in random order and must fire in the order of their times; draws are
 * counted; disks are crashed, and the records that are left are read.
 */
#include "unit/test.h"

#include "engine/base/random.h"
#include "cluster/sim/sim_disk.h"
#include "cluster/sim/world.h"

/* ---- the world ---- */

struct seen_order {
    struct world *world;
    uint64_t last_ms;
    uint64_t count;
};

static void note_order(void *context, uint64_t number)
{
    struct seen_order *order = context;
    assert_int_equal(order->world->now_ms, number);
    assert_true(number >= order->last_ms);
    order->last_ms = number;
    order->count++;
}

static void actions_come_in_the_order_of_their_times(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, 7, -1);
    struct seen_order order = {.world = &world};
    struct random random = {3};
    for (uint32_t i = 0; i < 2000; i++) {
        uint64_t delay_ms = random_below(&random, 100);
        world_after(&world, delay_ms, note_order, &order, world.now_ms + delay_ms);
        if (random_below(&random, 3) == 0) assert_true(world_step(&world));
    }
    while (world_step(&world)) {}
    assert_int_equal(order.count, 2000);
    world_done(&world);
}

struct sequence {
    uint64_t next;
};

static void note_sequence(void *context, uint64_t number)
{
    struct sequence *sequence = context;
    assert_int_equal(number, sequence->next++);
}

static void actions_of_one_moment_come_as_they_were_scheduled(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, 7, -1);
    struct sequence sequence = {0};
    for (uint64_t i = 0; i < 500; i++) {
        world_after(&world, 5, note_sequence, &sequence, i);
    }
    while (world_step(&world)) {}
    assert_int_equal(sequence.next, 500);
    world_done(&world);
}

static void weights_are_the_chances_of_a_draw(void **state)
{
    (void)state;
    static const uint32_t weights[] = {0, 1, 3, 0};
    static const uint32_t zeros[] = {0, 0};
    uint32_t drawn[4] = {0};
    struct world world;
    world_init(&world, 7, -1);
    for (uint32_t i = 0; i < 4000; i++) {
        drawn[world_draw(&world, weights, 4)]++;
    }
    assert_int_equal(drawn[0] + drawn[3], 0);
    assert_in_range(drawn[1], 800, 1200);
    assert_int_equal(world_draw(&world, zeros, 2), 2);
    world_done(&world);
}

static void a_run_that_does_not_end_fails(void **state)
{
    (void)state;
    bool is_over = false;
    struct world world;
    struct sim_report report = {.ok = true};
    struct sequence sequence = {0};
    world_init(&world, 7, -1);
    for (uint64_t i = 0; i < 5; i++) {
        world_after(&world, 1, note_sequence, &sequence, i);
    }
    world_run(&world, &is_over, 2);
    world_report(&world, &report);
    assert_false(report.ok);
    assert_string_equal(report.reason, "it does not come to an end");
    assert_int_equal(report.step_count, 3);
    world_done(&world);
}

/* ---- the disk ---- */

static uint32_t count_records(const struct sim_disk *disk, const char *job)
{
    const struct sim_log *log = sim_disk_next(disk, "");
    while (log != NULL && strcmp(log->job, job) != 0) {
        log = sim_disk_next(disk, log->job);
    }
    uint32_t count = 0;
    size_t at = 0;
    struct text record;
    while (log != NULL && sim_log_record(log, &at, &record)) {
        count++;
    }
    return count;
}

static void a_torn_log_keeps_all_but_its_end(void **state)
{
    (void)state;
    for (uint32_t records = 1; records <= 6; records++) {
        struct world world;
        world_init(&world, records, -1);
        struct sim_disk disk = {0};
        for (uint32_t i = 0; i < records; i++) {
            struct text record = {"abcdefghij", i + 1};
            struct error err;
            assert_int_equal(sim_disk_append(&disk, "b", record, &err), STATUS_OK);
            assert_int_equal(sim_disk_append(&disk, "a", record, &err), STATUS_OK);
        }
        assert_int_equal(count_records(&disk, "a"), records);
        sim_disk_crash(&disk, &world, 1000);
        uint32_t left = count_records(&disk, "b");
        assert_true(left < records);
        assert_true(left + 3 >= records);
        sim_disk_done(&disk);
        world_done(&world);
    }
}

static void an_intent_counts_the_crashes_with_its_item_in_flight(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, 1, -1);
    struct sim_disk disk = {0};
    sim_disk_hold(&disk, 5);
    sim_disk_crash(&disk, &world, 0);
    sim_disk_crash(&disk, &world, 0); /* It was not in flight. */
    sim_disk_hold(&disk, 5);
    assert_int_equal(sim_disk_suspicion(&disk), 1);
    sim_disk_crash(&disk, &world, 0);
    sim_disk_hold(&disk, 5);
    assert_int_equal(sim_disk_suspicion(&disk), 2);
    sim_disk_release(&disk, 5);
    sim_disk_hold(&disk, 5);
    assert_int_equal(sim_disk_suspicion(&disk), 0);
    sim_disk_done(&disk);
    world_done(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actions_come_in_the_order_of_their_times),
        cmocka_unit_test(actions_of_one_moment_come_as_they_were_scheduled),
        cmocka_unit_test(weights_are_the_chances_of_a_draw),
        cmocka_unit_test(a_run_that_does_not_end_fails),
        cmocka_unit_test(a_torn_log_keeps_all_but_its_end),
        cmocka_unit_test(an_intent_counts_the_crashes_with_its_item_in_flight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
