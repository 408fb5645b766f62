/* test_sim.c - the simulator does the same for the same seed, and sees what is planted.
 *
 * Method: a few seeds of every profile, run twice and compared by the hash over all that happened;
 * some mistakes planted into the workers, which a few seeds must find. The many seeds are run by
 * `millrace sim`. Time and chance: the world's actions come in order, whatever the order in which
 * they were asked for.
 */
#include "unit/test.h"

#include "engine/base/random.h"
#include "cluster/sim/jobs/scenario.h"
#include "cluster/sim/jobs/sim.h"
#include "cluster/sim/jobs/sim_disk.h"
#include "cluster/sim/world.h"

static struct scenarios *scenarios;

static int set_up(void **state)
{
    (void)state;
    struct error err;
    return scenarios_create(&scenarios, &err) == STATUS_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    scenarios_destroy(scenarios);
    return 0;
}

static struct sim_report run(uint64_t seed, enum sim_profile profile, enum worker_mutation mutation)
{
    struct sim_options options = {
        .seed = seed, .profile = profile, .mutation = mutation, .trace_fd = -1};
    struct sim_report report = {0};
    struct error err;
    assert_int_equal(sim_run_seed(scenarios, &options, &report, &err), STATUS_OK);
    return report;
}

static void the_same_seed_is_the_same_run(void **state)
{
    (void)state;
    uint64_t last = 0;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct sim_report first = run(seed, SIM_MIXED, WORKER_AS_IT_SHOULD);
        struct sim_report second = run(seed, SIM_MIXED, WORKER_AS_IT_SHOULD);
        assert_string_equal(first.reason, "");
        assert_true(first.ok);
        assert_int_equal(first.history, second.history);
        assert_int_equal(first.step_count, second.step_count);
        assert_int_not_equal(first.history, last);
        last = first.history;
    }
}

static void every_profile_keeps_its_promises(void **state)
{
    (void)state;
    for (uint32_t profile = 0; profile < SIM_PROFILES; profile++) {
        for (uint64_t seed = 1; seed <= 4; seed++) {
            struct sim_report report = run(seed, (enum sim_profile)profile, WORKER_AS_IT_SHOULD);
            assert_string_equal(report.reason, "");
            assert_true(report.ok);
        }
    }
}

static void planted_mistakes_are_found(void **state)
{
    (void)state;
    static const enum worker_mutation mutations[] = {WORKER_APPLIES_TWICE, WORKER_COUNTS_WRONG};
    for (size_t i = 0; i < sizeof mutations / sizeof mutations[0]; i++) {
        uint64_t seed = 1;
        while (seed <= 20 && run(seed, SIM_MIXED, mutations[i]).ok) {
            seed++;
        }
        assert_true(seed <= 20);
    }
}

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

static void actions_of_one_moment_come_as_they_were_asked_for(void **state)
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

static void a_note_counts_the_crashes_with_its_item_in_flight(void **state)
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
        cmocka_unit_test(the_same_seed_is_the_same_run),
        cmocka_unit_test(every_profile_keeps_its_promises),
        cmocka_unit_test(planted_mistakes_are_found),
        cmocka_unit_test(actions_come_in_the_order_of_their_times),
        cmocka_unit_test(actions_of_one_moment_come_as_they_were_asked_for),
        cmocka_unit_test(a_torn_log_keeps_all_but_its_end),
        cmocka_unit_test(a_note_counts_the_crashes_with_its_item_in_flight),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
