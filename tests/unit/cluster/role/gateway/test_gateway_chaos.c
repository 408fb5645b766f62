/* SPDX-License-Identifier: Apache-2.0 */
/* test_gateway_chaos.c - every request is answered exactly once, whatever happens in any order, and
 * no allocation is one that may not fail.
 *
 * Method: requests, messages with numbers current and of before, confirms, returns, lost
 * connections and clients that go away, all by chance from a seed. At the end time alone has to
 * bring the answers that are still owed. Then a job's story, with every allocation failing once.
 */
#include "unit/cluster/role/gateway/gateway_world.h"

#include "engine/base/random.h"

enum { CHAOS_STEPS = 300, CHAOS_IDS = CHAOS_STEPS + 1 };

struct gateway_chaos {
    struct gateway_world world;
    struct random random;
    bool answered[CHAOS_IDS];
    bool gone[CHAOS_IDS];
    uint64_t numbers[16]; /* Of the latest messages that want an answer. */
    uint64_t tokens[16];
    uint32_t next_number;
    uint32_t next_token;
};

static void chaos_look(struct gateway_chaos *chaos)
{
    struct gateway_world *world = &chaos->world;
    for (uint32_t i = 0; i < world->effects.count; i++) {
        const struct effect *effect = &world->effects.items[i];
        struct message message;
        if (effect->kind == EFFECT_REPLY) {
            assert_in_range(effect->reply.request_id, 1, CHAOS_IDS - 1);
            assert_false(chaos->answered[effect->reply.request_id]);
            assert_false(chaos->gone[effect->reply.request_id]);
            assert_int_not_equal(effect->reply.api.status, 0);
            chaos->answered[effect->reply.request_id] = true;
        }
        if (effect->kind != EFFECT_SEND) continue;
        if (effect->send.token != 0) chaos->tokens[chaos->next_token++ % 16] = effect->send.token;
        assert_true(world_decode(world, &effect->send, &message));
        uint64_t number = 0;
        if (message.kind == MESSAGE_SYNC) number = message.sync.request;
        if (message.kind == MESSAGE_MANIFEST) number = message.store.request;
        if (message.kind == MESSAGE_FETCH) number = message.fetch.request;
        if (number != 0) chaos->numbers[chaos->next_number++ % 16] = number;
    }
    arena_reset(&world->arena);
}

static void chaos_ask(struct gateway_chaos *chaos)
{
    struct gateway_world *world = &chaos->world;
    struct job_request job = world_job();
    const struct text queries[] = {TEXT_LITERAL("totals"), TEXT_LITERAL(".audit"),
                                   TEXT_LITERAL("none")};
    uint32_t kind = random_below(&chaos->random, API_METRICS + 1);
    uint32_t number = random_below(&chaos->random, 12);
    if (kind == API_PUT_JOB) {
        world_put(world, &job, random_below(&chaos->random, 6) == 0 ? "j2" : "j1");
    } else if (kind == API_PUT_CHUNK) {
        world_put_chunk(world, random_below(&chaos->random, 2), number);
    } else {
        struct api_request request = world_request((enum api_kind)kind);
        if (random_below(&chaos->random, 4) == 0) request.job = TEXT_LITERAL("j2");
        if (random_below(&chaos->random, 4) == 0) request.has_owner = false;
        if (random_below(&chaos->random, 8) == 0) request.owner++;
        request.scan = random_below(&chaos->random, 3);
        request.number = number;
        request.query = queries[random_below(&chaos->random, 3)];
        request.wait_ms = random_below(&chaos->random, 500);
        world_ask(world, &request);
    }
}

static void chaos_deliver(struct gateway_chaos *chaos)
{
    static const enum message_kind kinds[] = {MESSAGE_STORED,   MESSAGE_STATUS, MESSAGE_STATUS,
                                              MESSAGE_MANIFEST, MESSAGE_RESULT, MESSAGE_END};
    struct gateway_world *world = &chaos->world;
    uint32_t worker = random_below(&chaos->random, WORKERS);
    struct message message = world_message(world, kinds[random_below(&chaos->random, 6)], worker);
    uint64_t number = chaos->numbers[random_below(&chaos->random, 16)];
    const struct result_batch batch = {0, TEXT_LITERAL("rows")};
    uint32_t copies[64];
    if (random_below(&chaos->random, 8) == 0) message.job = TEXT_LITERAL("j2");
    if (message.kind == MESSAGE_STORED) {
        message.stored = (struct message_stored){
            .request = number, .outcome = random_below(&chaos->random, STORED_REFUSED + 1)};
    } else if (message.kind == MESSAGE_STATUS) {
        message.status =
            world_status_of(world, number, 1 + random_below(&chaos->random, KINDS - 1), copies);
        if (random_below(&chaos->random, 5) == 0) message.status.state = WORKER_JOB_COMPLETE;
    } else if (message.kind == MESSAGE_MANIFEST) {
        message.store.bytes = world->layout->bytes;
    } else if (message.kind == MESSAGE_RESULT) {
        message.result = (struct message_result){.request = number,
                                                 .ready = random_below(&chaos->random, 2) == 0,
                                                 .total = 1,
                                                 .batches = &batch,
                                                 .batch_count = random_below(&chaos->random, 2)};
    }
    world_deliver(world, &message);
}

static void chaos_step(struct gateway_chaos *chaos)
{
    struct gateway_world *world = &chaos->world;
    uint64_t token = chaos->tokens[random_below(&chaos->random, 16)];
    uint32_t choice = random_below(&chaos->random, 100);
    world->now_ms += random_below(&chaos->random, 30);
    if (choice < 30) {
        chaos_ask(chaos);
    } else if (choice < 65) {
        chaos_deliver(chaos);
    } else if (choice < 80) {
        world_settle(world, random_below(&chaos->random, 6) == 0 ? BUS_RETURNED : BUS_CONFIRMED,
                     token);
    } else if (choice < 93) {
        world_tick(world, random_below(&chaos->random, 300));
    } else if (choice < 97 && world->last_id > 0) {
        uint64_t id = 1 + random_below(&chaos->random, (uint32_t)world->last_id);
        world_gone(world, id);
        if (!chaos->answered[id]) chaos->gone[id] = true;
    } else {
        world_bus(world, choice == 97 ? BUS_DISCONNECTED : BUS_CONNECTED);
    }
    chaos_look(chaos);
}

static void every_request_is_answered_once_whatever_happens(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct gateway_chaos chaos = {.random = {seed}};
        world_open_late(&chaos.world);
        for (uint32_t i = 0; i < CHAOS_STEPS; i++) {
            chaos_step(&chaos);
        }
        /* Time alone brings the rest: nothing waits for ever. */
        for (uint32_t i = 0; i < 10; i++) {
            world_tick(&chaos.world, REPLY_DEADLINE_MS / 4);
            chaos_look(&chaos);
        }
        for (uint64_t id = 1; id <= chaos.world.last_id; id++) {
            assert_true(chaos.answered[id] || chaos.gone[id]);
        }
        world_close(&chaos.world);
    }
}

/* ---- memory ---- */

enum { STORY_STEPS = 10 };

/* Step `failing` of a job's story meets an allocation that fails after `count` others. Tells
 * whether it came to that. */
static bool story_with_failure(uint32_t failing, uint64_t count)
{
    struct gateway_world world;
    struct job_request job = world_job();
    uint64_t number = 0;
    uint64_t round = 0;
    bool refused = false;
    world_open(&world);
    for (uint32_t step = 0; step < STORY_STEPS && !refused; step++) {
        if (step == failing) world.fail_after = count;
        if (step == 0) {
            world_put(&world, &job, "j1");
        } else if (step <= WORKERS) {
            world_stored(&world, number, step - 1, STORED_NEW);
        } else if (step == WORKERS + 1) {
            world_get(&world, 0);
        } else if (step <= 2 * WORKERS + 1) {
            struct message_status now = {.request = round, .state = WORKER_JOB_COMPLETE};
            world_status(&world, step - WORKERS - 2, &now);
        } else if (step == 2 * WORKERS + 2) {
            world_put_chunk(&world, world.early, 0);
        } else {
            struct api_request request = world_request(API_METRICS);
            world_ask(&world, &request);
        }
        refused = world.refused;
        if (step == 0 && !refused) number = world_learn(&world);
        if (step == WORKERS + 1 && !refused) round = world_round(&world);
    }
    /* Either the process ends, or a client was answered. */
    if (refused && !world.effects.failed) {
        assert_true(world_find(&world, EFFECT_REPLY) != NULL || world_find(&world, EFFECT_SAY));
    }
    world_close(&world);
    return refused;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (uint32_t step = 0; step < STORY_STEPS; step++) {
        for (uint64_t count = 0; story_with_failure(step, count); count++) {}
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_is_answered_once_whatever_happens),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
