/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker.c - what was removed stays so, what is damaged or on its way is no harm.
 *
 * Method: one worker of a job of several is told by hand what gateways and the others would say, at
 * chosen times; what it has and what it asks for is looked at. How a worker does among others, and
 * under faults, is what the simulation tries.
 */
#include "unit/cluster/role/worker/worker_world.h"

#include "cluster/role/worker/mapper.h"

enum { LEASE_MS = 60000, REPAIR_MS = 1000, TOMBSTONE_CHECK_MS = 5000, QUEUES = 2 };

static void world_open(struct worker_world *world)
{
    struct error err;
    struct worker_config config = {
        .maps = true,
        .folds = true,
        .work_queue_count = QUEUES,
        .max_jobs = 100,
        .map_limit = 2,
        .client_timeout_ms = LEASE_MS,
        .tick_ms = 100,
        .repair_delay_ms = REPAIR_MS,
        .repair_delay_max_ms = 8 * REPAIR_MS,
        .emit_window = 16,
        .max_message = 64 << 20,
    };
    struct manifest manifest = shop_manifest_of(SHOP_TOTALS);
    manifest.chunk_bytes = 1 << 16; /* So that the files have some. */
    *world = (struct worker_world){.now_ms = 1000, .layout = shop_layout(manifest)};
    /* The one that gets what the others' shards emit. */
    const struct plan *plan = world->layout->plan;
    uint32_t owner = job_layout_owner(world->layout, plan->queries[0].result_fold, 0);
    config.name = world->layout->manifest.workers[owner].name;
    assert_int_equal(worker_create(&config, &world->worker, &err), STATUS_OK);
    happen(world, EVENT_STARTED);
    connect_bus(world);
}

static void deliver(struct worker_world *world, struct message message)
{
    struct event event = {.kind = EVENT_BUS, .bus = {.kind = BUS_DELIVERY, .delivery = {.id = 1}}};
    message.job = world->layout->manifest.job;
    message.manifest = world->layout->hash;
    message.from = TEXT_LITERAL("g1");
    message_encode(&message, &event.bus.delivery.bytes);
    step(world, &event);
}

enum store_way { STORE_ASKED, STORE_ORDERED };

static void store(struct worker_world *world, enum store_way way)
{
    deliver(world, (struct message){
                       .kind = MESSAGE_MANIFEST,
                       .store = {.order = way == STORE_ORDERED, .bytes = world->layout->bytes}});
}

static void remove_it(struct worker_world *world, enum remove_reason reason)
{
    deliver(world, (struct message){.kind = MESSAGE_REMOVE, .remove = {reason}});
}

/* ---- removal ---- */

/* A gateway that hears of a job from some workers and not from one orders that one to take it back.
 * If the job was deleted by way of another gateway meanwhile, the order is older than that, whether
 * the worker still had the job then or had lost it. */
static void an_order_does_not_bring_back_what_was_removed_before_it_came(void **state)
{
    (void)state;
    for (int had_it = 0; had_it < 2; had_it++) {
        for (int reason = REMOVE_DONE; reason <= REMOVE_REFUSED; reason++) {
            struct worker_world world;
            world_open(&world);
            if (had_it) store(&world, STORE_ASKED);
            assert_int_equal(worker_job_count(world.worker), had_it);
            remove_it(&world, (enum remove_reason)reason);
            assert_int_equal(worker_job_count(world.worker), 0);
            world.now_ms += TOMBSTONE_CHECK_MS - 1;
            store(&world, STORE_ORDERED);
            assert_int_equal(worker_job_count(world.worker), 0);
            world.now_ms += 1;
            store(&world, STORE_ORDERED); /* Nothing on its way is that old. */
            assert_int_equal(worker_job_count(world.worker), 1);
            world_close(&world);
        }
    }
}

static void a_client_may_begin_a_removed_job_anew_unless_it_was_cancelled(void **state)
{
    (void)state;
    for (int had_it = 0; had_it < 2; had_it++) {
        for (int reason = REMOVE_DONE; reason <= REMOVE_REFUSED; reason++) {
            struct worker_world world;
            world_open(&world);
            if (had_it) store(&world, STORE_ASKED);
            remove_it(&world, (enum remove_reason)reason);
            store(&world, STORE_ASKED);
            assert_int_equal(worker_job_count(world.worker), reason != REMOVE_CANCELLED);
            world_close(&world);
        }
    }
}

/* ---- maps ---- */

static uint32_t effects_of(const struct worker_world *world, enum effect_kind kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < world->effects.count; i++) {
        count += world->effects.items[i].kind == kind;
    }
    return count;
}

/* As if it had never come: a worker that misses its outputs requests it again. */
static void a_damaged_chunk_is_dropped_and_fails_no_job(void **state)
{
    (void)state;
    struct worker_world world;
    world_open(&world);
    store(&world, STORE_ASKED);
    struct message chunk = {.kind = MESSAGE_CHUNK,
                            .job = world.layout->manifest.job,
                            .manifest = world.layout->hash,
                            .from = TEXT_LITERAL("g1"),
                            .chunk = {.body = TEXT_LITERAL("body")}};
    struct event event = {.kind = EVENT_BUS,
                          .bus = {.kind = BUS_DELIVERY, .delivery = {.id = 7, .from_work = true}}};
    message_encode(&chunk, &event.bus.delivery.bytes);
    step(&world, &event);
    assert_int_equal(effects_of(&world, EFFECT_MAP), 1);
    struct event mapped = {.kind = EVENT_MAPPED};
    for (uint32_t i = 0; i < world.effects.count; i++) {
        if (world.effects.items[i].kind == EFFECT_MAP) mapped.task = world.effects.items[i].task;
    }
    struct mapper *mapper = NULL;
    struct error err;
    assert_int_equal(mapper_create(&mapper, &err), STATUS_OK);
    mapper_run(mapper, mapped.task); /* Its checksum is none. */
    assert_true(mapped.task->is_damaged);
    step(&world, &mapped);
    mapper_destroy(mapper);
    assert_int_equal(effects_of(&world, EFFECT_ACK), 1);
    assert_int_equal(effects_of(&world, EFFECT_SEND), 0); /* Nobody hears of a failure. */
    assert_int_equal(effects_of(&world, EFFECT_LOG), 0);
    assert_int_equal(effects_of(&world, EFFECT_SAY), 1);
    world_close(&world);
}

/* ---- repair ---- */

/* The message that an effect sends, decoded into the world's arena; false: it sends none. */
static bool sent(struct worker_world *world, uint32_t index, struct message *out)
{
    const struct effect *effect = &world->effects.items[index];
    struct error err;
    if (effect->kind != EFFECT_SEND) return false;
    const struct buf *bytes = &effect->send.bytes;
    assert_int_equal(
        message_decode((struct text){(const char *)bytes->bytes, (uint32_t)bytes->size},
                       &world->arena, out, &err),
        STATUS_OK);
    return true;
}

/* How many producers it asks for when its client looks after the job. */
static uint32_t producers_asked_for(struct worker_world *world)
{
    deliver(world, (struct message){.kind = MESSAGE_SYNC, .sync = {.request = 1, .renew = true}});
    uint32_t count = 0;
    for (uint32_t i = 0; i < world->effects.count; i++) {
        struct message message;
        count += sent(world, i, &message) && message.kind == MESSAGE_ASK;
    }
    return count;
}

/* The client says how many chunks of a scan it has sent; gives the attempt of the barriers that the
 * worker sends now, one through each queue, and what the worker requests again. */
static uint64_t look_after(struct worker_world *world, uint32_t scan, uint64_t sent_count,
                           struct rerequest *out_rerequest)
{
    struct scan_sent told = {.scan = scan, .count = sent_count};
    deliver(world, (struct message){.kind = MESSAGE_SYNC,
                                    .sync = {.renew = true, .sent = &told, .sent_count = 1}});
    uint64_t attempt = 0;
    uint32_t queues = 0;
    *out_rerequest = (struct rerequest){0};
    for (uint32_t i = 0; i < world->effects.count; i++) {
        struct message message;
        if (!sent(world, i, &message)) continue;
        if (message.kind == MESSAGE_BARRIER) {
            assert_int_equal(world->effects.items[i].send.work, message.barrier.queue);
            queues |= 1u << message.barrier.queue;
            attempt = message.barrier.attempt;
        }
        if (message.kind == MESSAGE_STATUS && message.status.rerequest_count > 0) {
            *out_rerequest = message.status.rerequests[0];
        }
    }
    assert_int_equal(queues, attempt == 0 ? 0 : (1u << QUEUES) - 1);
    return attempt;
}

static void barrier_returns(struct worker_world *world, uint32_t scan, uint32_t queue,
                            uint64_t attempt)
{
    deliver(world,
            (struct message){
                .kind = MESSAGE_BARRIER,
                .barrier = {.scan = scan, .queue = queue, .attempt = attempt, .returned = true}});
}

/* A barrier proves something about its own queue, and only about what was sent before it. The
 * barriers of two attempts come back crosswise here: of one queue the later, of the other only the
 * earlier. What was sent in between through the other may still be in it. */
static void a_chunk_that_may_still_be_in_its_queue_is_not_requested_again(void **state)
{
    (void)state;
    enum { FIRST = 4, LATER = 8 };
    for (uint32_t quick = 0; quick < QUEUES; quick++) {
        struct worker_world world;
        struct rerequest asked;
        uint32_t scans[2];
        world_open(&world);
        store(&world, STORE_ASKED);
        assert_int_equal(shop_scans(world.layout->plan, "sales", scans), 1);
        assert_int_equal(look_after(&world, scans[0], FIRST, &asked), 0);
        world.now_ms += REPAIR_MS;
        uint64_t first = look_after(&world, scans[0], FIRST, &asked);
        world.now_ms += 2 * REPAIR_MS;
        uint64_t second = look_after(&world, scans[0], LATER, &asked);
        assert_true(first != 0 && second != 0 && first != second);
        barrier_returns(&world, scans[0], quick, second);
        (void)look_after(&world, scans[0], LATER, &asked); /* No barrier is due. */
        assert_int_equal(asked.number_count, 0);
        barrier_returns(&world, scans[0], 1 - quick, first);
        (void)look_after(&world, scans[0], LATER, &asked); /* Likewise. */
        uint32_t next = 0;
        for (uint64_t number = 0; number < LATER; number++) {
            bool is_quick = job_layout_work_queue(world.layout, number, QUEUES) == quick;
            if (number >= FIRST && !is_quick) continue;
            assert_true(next < asked.number_count);
            assert_int_equal(asked.numbers[next++], number);
        }
        assert_int_equal(asked.number_count, next);
        assert_true(next < LATER);
        world_close(&world);
    }
}

static void what_others_emit_is_asked_for_only_after_it_had_time_to_come(void **state)
{
    (void)state;
    struct worker_world world;
    world_open(&world);
    store(&world, STORE_ASKED);
    /* However old the job is: */
    for (int i = 0; i < 10; i++) {
        world.now_ms += REPAIR_MS;
        assert_int_equal(producers_asked_for(&world), 0);
    }
    /* when its scans are complete here, the others are about to emit. */
    for (uint32_t scan = 0; scan < world.layout->plan->scan_count; scan++) {
        deliver(&world, (struct message){.kind = MESSAGE_END, .end = {.scan = scan}});
    }
    world.now_ms += REPAIR_MS - 1;
    assert_int_equal(producers_asked_for(&world), 0);
    world.now_ms += 1;
    uint32_t count = producers_asked_for(&world);
    assert_true(count > 0);
    /* The next time is twice as late. */
    world.now_ms += 2 * REPAIR_MS - 1;
    assert_int_equal(producers_asked_for(&world), 0);
    world.now_ms += 1;
    assert_int_equal(producers_asked_for(&world), count);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_does_not_bring_back_what_was_removed_before_it_came),
        cmocka_unit_test(a_client_may_begin_a_removed_job_anew_unless_it_was_cancelled),
        cmocka_unit_test(a_damaged_chunk_is_dropped_and_fails_no_job),
        cmocka_unit_test(a_chunk_that_may_still_be_in_its_queue_is_not_requested_again),
        cmocka_unit_test(what_others_emit_is_asked_for_only_after_it_had_time_to_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
