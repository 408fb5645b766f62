/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker_history.c - a worker tells what became of a job, also after it has ended.
 *
 * Method: a job is stored, fed and ended in every way there is; after each step its milestones are
 * asked for. A restart is a new worker that reads the same records. Where a step is long, calls of
 * `alive` are counted.
 */
#include "unit/cluster/role/worker/worker_world.h"

#include <stdio.h>

enum { REMEMBERED = 32, LEASE_MS = 5000 };

static void count_alive(void *context)
{
    struct worker_world *world = context;
    world->alive_count++;
}

static void start(struct worker_world *world)
{
    struct error err;
    struct worker_config config = {
        .name = TEXT_LITERAL("w1"),
        .maps = true,
        .folds = true,
        .work_queue_count = 2,
        .max_jobs = 100,
        .map_limit = 2,
        .client_timeout_ms = LEASE_MS,
        .tick_ms = LEASE_MS,
        .repair_delay_ms = 100,
        .repair_delay_max_ms = 1000,
        .emit_window = 16,
        .max_message = 64 << 20,
        .alive = count_alive,
        .alive_context = world,
    };
    assert_int_equal(worker_create(&config, &world->worker, &err), STATUS_OK);
}

static void world_open(struct worker_world *world)
{
    *world =
        (struct worker_world){.now_ms = 1000, .layout = shop_layout(shop_manifest_of(SHOP_NAMES))};
    start(world);
    happen(world, EVENT_STARTED);
    connect_bus(world);
}

static struct message message_of(const struct worker_world *world, enum message_kind kind)
{
    return (struct message){.kind = kind,
                            .job = world->layout->manifest.job,
                            .manifest = world->layout->hash,
                            .from = TEXT_LITERAL("g1")};
}

static void deliver(struct worker_world *world, const struct message *message)
{
    struct event event = {.kind = EVENT_BUS, .bus = {.kind = BUS_DELIVERY, .delivery = {.id = 1}}};
    message_encode(message, &event.bus.delivery.bytes);
    step(world, &event);
}

static struct message manifest_message(const struct worker_world *world)
{
    struct message message = message_of(world, MESSAGE_MANIFEST);
    message.store.bytes = world->layout->bytes;
    return message;
}

static void store(struct worker_world *world)
{
    struct message message = manifest_message(world);
    deliver(world, &message);
}

/* Chunk `number` of a scan has nothing for w1 but that it was mapped. */
static struct message output_message(const struct worker_world *world, uint32_t scan,
                                     uint64_t number)
{
    struct message message = message_of(world, MESSAGE_OUTPUT);
    message.output =
        (struct message_output){.source_kind = STREAM_SCAN, .source = scan, .number = number};
    return message;
}

static void put_output(struct worker_world *world, uint32_t scan, uint64_t number)
{
    struct message message = output_message(world, scan, number);
    deliver(world, &message);
}

static struct message_jobs ask(struct worker_world *world, struct text job)
{
    struct message message = message_of(world, MESSAGE_LIST);
    message.job = job;
    message.manifest = 0;
    message.list.request = 9;
    deliver(world, &message);
    struct error err;
    const struct effect *effect = &world->effects.items[0];
    struct text bytes = {(const char *)effect->send.bytes.bytes, (uint32_t)effect->send.bytes.size};
    char *copy = arena_alloc(&world->arena, bytes.size, 8);
    memcpy(copy, bytes.bytes, bytes.size);
    bytes.bytes = copy;
    assert_int_equal(message_decode(bytes, &world->arena, &message, &err), STATUS_OK);
    assert_int_equal(message.kind, MESSAGE_JOBS);
    assert_int_equal(message.jobs.request, 9);
    return message.jobs;
}

static void assert_milestone(const struct message_jobs *jobs, uint32_t place,
                             struct milestone expected)
{
    assert_true(place < jobs->milestone_count);
    assert_int_equal(jobs->milestones[place].kind, expected.kind);
    assert_int_equal(jobs->milestones[place].age_ms, expected.age_ms);
    assert_int_equal(jobs->milestones[place].number, expected.number);
}

static uint32_t scan_of_phase(const struct worker_world *world, uint32_t phase)
{
    const struct plan *plan = world->layout->plan;
    for (uint32_t i = 0; i < plan->scan_count; i++) {
        if (plan->scans[i].phase == phase) return i;
    }
    fail();
    return 0;
}

static void a_phase_begins_with_the_first_chunk_of_it(void **state)
{
    (void)state;
    struct worker_world world;
    world_open(&world);
    struct text id = world.layout->manifest.job;
    assert_int_equal(ask(&world, id).milestone_count, 0);
    store(&world);
    world.now_ms += 10;
    store(&world); /* It is there already. */
    uint32_t late = scan_of_phase(&world, 1);
    for (uint64_t number = 0; number < 3; number++) {
        put_output(&world, late, number);
        world.now_ms += 10;
    }
    struct message_jobs jobs = ask(&world, id);
    assert_int_equal(jobs.milestone_count, 2);
    assert_milestone(&jobs, 0, (struct milestone){MILESTONE_STORED, 40, 0});
    assert_milestone(&jobs, 1, (struct milestone){MILESTONE_PHASE, 30, 2});
    assert_int_equal(jobs.job_count, 1);
    assert_int_equal(ask(&world, TEXT_LITERAL("-")).milestone_count, 0);
    world_close(&world);
}

static void a_job_that_has_ended_is_remembered(void **state)
{
    (void)state;
    static const enum milestone_kind kinds[] = {[REMOVE_DONE] = MILESTONE_DONE,
                                                [REMOVE_CANCELLED] = MILESTONE_CANCELLED,
                                                [REMOVE_REFUSED] = MILESTONE_REFUSED};
    for (int reason = REMOVE_DONE; reason <= REMOVE_REFUSED + 1; reason++) {
        struct worker_world world;
        world_open(&world);
        store(&world);
        world.now_ms += LEASE_MS;
        enum milestone_kind kind = MILESTONE_EXPIRED;
        if (reason <= REMOVE_REFUSED) {
            struct message message = message_of(&world, MESSAGE_REMOVE);
            message.remove.reason = (enum remove_reason)reason;
            deliver(&world, &message);
            kind = kinds[reason];
        } else {
            happen(&world, EVENT_TICK);
        }
        world.now_ms += 5;
        struct message_jobs jobs = ask(&world, world.layout->manifest.job);
        assert_int_equal(jobs.job_count, 0);
        assert_int_equal(jobs.milestone_count, 2);
        assert_milestone(&jobs, 0, (struct milestone){MILESTONE_STORED, LEASE_MS + 5, 0});
        assert_milestone(&jobs, 1, (struct milestone){kind, 5, 0});
        world_close(&world);
    }
}

static void a_failure_is_a_milestone(void **state)
{
    (void)state;
    struct worker_world world;
    struct error err;
    world_open(&world);
    store(&world);
    (void)error_set(&err, STATUS_IO, "the disk is full");
    struct event event = {.kind = EVENT_LOG_FAILED, .log_failed = {"job-1", &err}};
    step(&world, &event);
    step(&world, &event);
    struct message_jobs jobs = ask(&world, world.layout->manifest.job);
    assert_int_equal(jobs.milestone_count, 2);
    assert_milestone(&jobs, 1, (struct milestone){MILESTONE_FAILED, 0, 0});
    world_close(&world);
}

static void read_record(struct worker_world *world, const struct message *message, uint64_t age_ms)
{
    struct event event = {.kind = EVENT_RECORD, .record = {.job = "job-1", .age_ms = age_ms}};
    message_encode(message, &event.record.bytes);
    step(world, &event);
}

static void a_restart_tells_what_was_read_back_and_not_when_it_was_new(void **state)
{
    (void)state;
    struct worker_world world;
    world_open(&world);
    worker_destroy(world.worker);
    start(&world);
    uint32_t early = scan_of_phase(&world, 0);
    struct message records[] = {manifest_message(&world), output_message(&world, early, 0),
                                output_message(&world, early, 1)};
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        read_record(&world, &records[i], 0);
    }
    happen(&world, EVENT_STARTED);
    connect_bus(&world);
    world.now_ms += 10;
    put_output(&world, early, 2); /* Its phase had begun before. */
    put_output(&world, scan_of_phase(&world, 1), 0);
    struct message_jobs jobs = ask(&world, world.layout->manifest.job);
    assert_int_equal(jobs.milestone_count, 2);
    assert_milestone(&jobs, 0, (struct milestone){MILESTONE_REPLAYED, 10, 2});
    assert_milestone(&jobs, 1, (struct milestone){MILESTONE_PHASE, 0, 2});
    world_close(&world);
}

static void the_age_of_a_log_is_that_of_its_job(void **state)
{
    (void)state;
    static const uint64_t ages_ms[][2] = {
        {300, 300}, {1000, 1000}, {5000, 1000}}; /* Told, shown. */
    for (size_t i = 0; i < sizeof ages_ms / sizeof ages_ms[0]; i++) {
        struct worker_world world;
        world_open(&world);
        worker_destroy(world.worker);
        start(&world);
        struct message manifest = manifest_message(&world);
        struct message output = output_message(&world, scan_of_phase(&world, 0), 0);
        read_record(&world, &manifest, ages_ms[i][0]);
        read_record(&world, &output, 0);
        happen(&world, EVENT_STARTED);
        connect_bus(&world);
        struct message_jobs jobs = ask(&world, world.layout->manifest.job);
        assert_int_equal(jobs.milestone_count, 2);
        assert_milestone(&jobs, 0, (struct milestone){MILESTONE_STORED, ages_ms[i][1], 0});
        assert_milestone(&jobs, 1, (struct milestone){MILESTONE_REPLAYED, 0, 1});
        assert_int_equal(jobs.jobs[0].age_ms, ages_ms[i][1]);
        world_close(&world);
    }
}

static void so_many_jobs_are_remembered_and_the_latest_of_one_id(void **state)
{
    (void)state;
    struct worker_world world;
    world_open(&world);
    struct text id = world.layout->manifest.job;
    for (int i = 0; i < 3 * REMEMBERED; i++) {
        store(&world);
        world.now_ms += 6000; /* Longer than it is refused for having ended. */
        struct message message = message_of(&world, MESSAGE_REMOVE);
        deliver(&world, &message);
        struct message_jobs jobs = ask(&world, id);
        assert_int_equal(jobs.milestone_count, 2);
        assert_milestone(&jobs, 0, (struct milestone){MILESTONE_STORED, 6000, 0});
    }
    store(&world);
    assert_int_equal(ask(&world, id).milestone_count, 1); /* The one that lives. */
    world_close(&world);
}

static void each_shard_that_is_finished_is_a_sign_of_incarnation(void **state)
{
    (void)state;
    struct worker_world world;
    world_open(&world);
    store(&world);
    const struct plan *plan = world.layout->plan;
    uint32_t owned = 0;
    for (uint32_t fold = 0; fold < plan->fold_count; fold++) {
        for (uint32_t shard = 0; shard < world.layout->shard_counts[fold]; shard++) {
            owned += job_layout_owner(world.layout, fold, shard) == 0;
        }
    }
    assert_true(owned > 0);
    assert_int_equal(world.alive_count, 0);
    /* Nothing comes by any way: whatever needs only that is finished at once. */
    for (uint32_t scan = 0; scan < plan->scan_count; scan++) {
        struct message message = message_of(&world, MESSAGE_END);
        message.end = (struct message_end){.scan = scan};
        deliver(&world, &message);
    }
    for (uint32_t fold = 0; fold < plan->fold_count; fold++) {
        for (uint32_t shard = 0; shard < world.layout->shard_counts[fold]; shard++) {
            for (enum stream_source kind = STREAM_FOLD; kind <= STREAM_COPY; kind++) {
                struct message message = message_of(&world, MESSAGE_PRODUCER_END);
                message.producer_end =
                    (struct message_producer_end){.kind = kind, .fold = fold, .shard = shard};
                deliver(&world, &message);
            }
        }
    }
    assert_true(world.alive_count >= owned);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_phase_begins_with_the_first_chunk_of_it),
        cmocka_unit_test(a_job_that_has_ended_is_remembered),
        cmocka_unit_test(a_failure_is_a_milestone),
        cmocka_unit_test(a_restart_tells_what_was_read_back_and_not_when_it_was_new),
        cmocka_unit_test(the_age_of_a_log_is_that_of_its_job),
        cmocka_unit_test(each_shard_that_is_finished_is_a_sign_of_incarnation),
        cmocka_unit_test(so_many_jobs_are_remembered_and_the_latest_of_one_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
