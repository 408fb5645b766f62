/* SPDX-License-Identifier: Apache-2.0 */
/* test_gateway_rounds.c - what a gateway asks the workers, and what it makes of their answers.
 *
 * Method: events by hand, effects looked at one by one (gateway_world.h). Which scans are open and
 * how far they are is compared with a naive model, for every mix of workers and for random ones.
 */
#include "unit/cluster/role/gateway/gateway_world.h"

#include "engine/base/random.h"

static void deliver_manifest(struct gateway_world *world, uint32_t worker)
{
    struct message message = world_message(world, MESSAGE_MANIFEST, worker);
    message.store.bytes = world->layout->bytes;
    world_deliver(world, &message);
}

/* ---- jobs that are not known ---- */

static void one_round_serves_all_who_seek_a_job(void **state)
{
    (void)state;
    struct gateway_world world;
    struct message message;
    world_open_late(&world);
    uint64_t get = world_get(&world, 0);
    uint64_t round = world_round(&world);
    assert_non_null(world_sent(&world, "w1", MESSAGE_SYNC, &message));
    assert_true(message.sync.needs_manifest);
    assert_false(message.sync.renew);
    assert_true(message.manifest == 0);
    uint64_t chunk = world_put_chunk(&world, world.early, 3);
    assert_int_equal(world.effects.count, 0);

    struct message_status now = {.request = round, .state = WORKER_JOB_UNKNOWN};
    world_status(&world, 0, &now);
    deliver_manifest(&world, 1);
    const struct effect_send *sent = world_sent(&world, NULL, MESSAGE_CHUNK, &message);
    assert_non_null(sent);
    assert_true(message.chunk.number == 3);
    assert_true(message.manifest == world.layout->hash);
    uint64_t token = sent->token;
    /* Now that the key can be checked the owner's round begins. */
    uint64_t second = world_round(&world);
    assert_true(second > round);
    assert_non_null(world_sent(&world, "w1", MESSAGE_SYNC, &message));
    assert_true(message.sync.renew);
    assert_false(message.sync.needs_manifest);
    assert_true(message.manifest == world.layout->hash);
    deliver_manifest(&world, 2);
    assert_int_equal(world.effects.count, 1);
    world_settle(&world, BUS_CONFIRMED, token);
    assert_int_equal(world_answer(&world, chunk), 204);
    world_status_all(&world, second, WORKER_JOB_RUNNING);
    assert_int_equal(world_view(&world, get).state, JOB_RUNNING);
    world_close(&world);
}

static void a_job_that_nobody_knows_is_not_there(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open_late(&world);
    uint64_t get = world_get(&world, 0);
    uint64_t round = world_round(&world);
    struct message_status now = {.request = round, .state = WORKER_JOB_UNKNOWN};
    world_status(&world, 0, &now);
    world_status(&world, 1, &now);
    /* Comes when two have answered already: the job may have been put in between. */
    uint64_t late = world_put_chunk(&world, world.early, 0);
    world_status(&world, 2, &now);
    assert_int_equal(world_answer(&world, get), 404);
    assert_int_equal(world_answer(&world, late), 0);
    round = world_round(&world);
    assert_true(round != 0);
    world_status_all(&world, round, WORKER_JOB_UNKNOWN);
    assert_int_equal(world_answer(&world, late), 404);
    world_close(&world);
}

static void seeking_goes_on_until_the_deadline(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open_late(&world);
    uint64_t get = world_get(&world, 0);
    uint32_t rounds = 0;
    for (uint32_t ms = 10; ms < REPLY_DEADLINE_MS; ms += 10) {
        world_tick(&world, 10);
        assert_int_equal(world_answer(&world, get), 0);
        uint64_t round = world_round(&world);
        if (round == 0) continue;
        rounds++;
        struct message_status now = {.request = round, .state = WORKER_JOB_UNKNOWN};
        world_status(&world, 1, &now);
        world_status(&world, 1, &now);
    }
    assert_in_range(rounds, 4, 8);
    world_tick(&world, 10);
    assert_int_equal(world_answer(&world, get), 503);
    world_tick(&world, 1000);
    world_tick(&world, 1000);
    assert_int_equal(world_sent_count(&world, MESSAGE_SYNC), 0);
    world_close(&world);
}

static void a_manifest_that_is_another_is_of_no_use(void **state)
{
    (void)state;
    for (uint32_t wrong = 0; wrong < 3; wrong++) {
        struct gateway_world world;
        world_open_late(&world);
        uint64_t get = world_get(&world, 0);
        struct message message = world_message(&world, MESSAGE_MANIFEST, 0);
        message.store.bytes = world.layout->bytes;
        if (wrong == 0) message.manifest++;
        if (wrong == 1) message.store.bytes.size--;
        if (wrong == 2) message.job = TEXT_LITERAL("j2");
        world_deliver(&world, &message);
        assert_int_equal(world_answer(&world, get), wrong == 2 ? 0 : 503);
        assert_int_equal(world_sent_count(&world, MESSAGE_SYNC), 0);
        world_close(&world);
    }
}

static void only_the_owner_may_ask_for_everything(void **state)
{
    (void)state;
    for (uint32_t known = 0; known < 2; known++) {
        struct gateway_world world;
        if (known == 1) {
            world_open(&world);
            world_accept(&world);
        } else {
            world_open_late(&world);
        }
        const enum api_kind kinds[] = {API_GET_JOB, API_GET_RESULT, API_PUT_END, API_PUT_CHUNK};
        for (uint32_t i = 0; i < 4; i++) {
            struct api_request request = world_request(kinds[i]);
            request.query = TEXT_LITERAL("totals");
            request.has_checksum = true;
            request.checksum = hash_bytes("", 0);
            request.owner++;
            uint64_t id = world_ask(&world, &request);
            if (known == 0 && i == 0) {
                assert_int_equal(world_answer(&world, id), 0);
                deliver_manifest(&world, 0);
            }
            assert_int_equal(world_answer(&world, id), 403);
            request.has_owner = false;
            id = world_ask(&world, &request);
            assert_int_equal(world_answer(&world, id), kinds[i] == API_GET_JOB ? 0 : 403);
        }
        world_close(&world);
    }
}

/* ---- rounds ---- */

static void rounds_come_at_a_steady_pace_while_the_owner_waits(void **state)
{
    (void)state;
    struct gateway_world world;
    struct message message;
    const struct scan_sent sent[] = {{0, 4}, {1, 2}, {9, 9}};
    const struct scan_sent less[] = {{0, 3}, {1, 5}};
    world_open(&world);
    world_accept(&world);
    struct api_request request = world_request(API_GET_JOB);
    request.wait_ms = 60000;
    request.sent = sent;
    request.sent_count = 3;
    uint64_t id = world_ask(&world, &request);
    uint64_t round = world_round(&world);
    assert_true(round != 0);
    world_status_all(&world, round, WORKER_JOB_RUNNING);
    assert_int_equal(world_answer(&world, id), 200);
    request.sent = less;
    request.sent_count = 2;
    id = world_ask(&world, &request);
    assert_int_equal(world.effects.count, 0);
    /* There was news, so that the next round comes soon; but not at once. */
    world_tick(&world, PERIOD_MS / 16 - 1);
    assert_int_equal(world.effects.count, 0);
    world_tick(&world, PERIOD_MS);
    round = world_round(&world);
    assert_non_null(world_sent(&world, "w2", MESSAGE_SYNC, &message));
    assert_true(message.sync.renew);
    assert_int_equal(message.sync.sent_count, world.layout->plan->scan_count);
    assert_true(message.sync.sent[0].count == 4 && message.sync.sent[1].count == 5);
    world_tick(&world, PERIOD_MS);
    assert_int_equal(world.effects.count, 0); /* One at a time. */
    world_gone(&world, id);
    world_status_all(&world, round, WORKER_JOB_RUNNING);
    world_tick(&world, PERIOD_MS);
    assert_int_equal(world.effects.count, 0); /* Nobody waits any more. */
    world_close(&world);
}

static void the_owner_hears_only_news(void **state)
{
    (void)state;
    struct gateway_world world;
    const uint64_t numbers[] = {3};
    const struct rerequest rerequest = {
        .scan = 0, .attempt = 7, .numbers = numbers, .number_count = 1};
    world_open(&world);
    world_accept(&world);
    uint64_t id = world_get(&world, 1000);
    world_status_all(&world, world_round(&world), WORKER_JOB_RUNNING);
    assert_int_equal(world_answer(&world, id), 200);

    id = world_get(&world, 1000);
    for (uint32_t i = 0; i < 9; i++) {
        world_tick(&world, PERIOD_MS);
        uint64_t round = world_round(&world);
        assert_true(round != 0);
        world_status_all(&world, round, WORKER_JOB_RUNNING);
        assert_int_equal(world_answer(&world, id), 0);
    }
    world_tick(&world, PERIOD_MS); /* The wait is over. */
    assert_int_equal(world_answer(&world, id), 200);

    for (uint32_t i = 0; i < 5; i++) { /* Wants are told again and again, without a wait, */
        bool is_told = i >= 2;         /* once they are sure. */
        id = world_get(&world, is_told ? 1000 : 0);
        uint64_t round = world_round(&world);
        if (round == 0) {
            world_tick(&world, PERIOD_MS);
            round = world_round(&world);
        }
        struct message_status now = {.request = round, .state = WORKER_JOB_RUNNING};
        world_status(&world, 0, &now);
        world_status(&world, 1, &now);
        now.rerequests = &rerequest;
        now.rerequest_count = 1;
        world_status(&world, 2, &now);
        struct job_view view = world_view(&world, id);
        assert_int_equal(view.rerequest_count, is_told ? 1 : 0);
        if (!is_told) continue;
        assert_true(text_equal(view.rerequests[0].worker, TEXT_LITERAL("w3")));
        assert_true(view.rerequests[0].rerequest.attempt == 7 &&
                    view.rerequests[0].rerequest.numbers[0] == 3);
    }
    for (uint32_t i = 0; i < 2; i++) { /* So is the end. */
        id = world_get(&world, 1000);
        world_tick(&world, PERIOD_MS);
        world_status_all(&world, world_round(&world), WORKER_JOB_COMPLETE);
        assert_int_equal(world_view(&world, id).state, JOB_DONE);
    }
    world_close(&world);
}

/* A chunk in flight at a worker in this round or the one before may be on its way. */
static void what_may_be_on_its_way_is_not_wanted(void **state)
{
    (void)state;
    const uint64_t number = 3;
    const bool held[] = {false, true, true, false, false, true, false, false};
    const bool told[] = {false, false, false, false, true, false, false, true};
    struct rerequest rerequest = {.attempt = 7, .numbers = &number, .number_count = 1};
    struct chunk_held in_flight = {.number = number};
    struct gateway_world world;
    world_open(&world);
    world_accept(&world);
    for (uint32_t i = 0; i < sizeof held / sizeof held[0]; i++) {
        uint64_t id = world_get(&world, 0);
        if (world_round(&world) == 0) world_tick(&world, PERIOD_MS);
        struct message_status now = {.request = world_round(&world), .state = WORKER_JOB_RUNNING};
        world_status(&world, 0, &now);
        now.held = &in_flight;
        now.held_count = held[i] ? 1 : 0;
        world_status(&world, 1, &now);
        now.held_count = 0;
        now.rerequests = &rerequest;
        now.rerequest_count = 1;
        world_status(&world, 2, &now);
        assert_int_equal(world_view(&world, id).rerequest_count, told[i] ? 1 : 0);
    }
    world_close(&world);
}

static void all_who_wait_hear_the_same_news(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world_accept(&world);
    uint64_t first = world_get(&world, 1000);
    uint64_t round = world_round(&world);
    uint64_t late = world_get(&world, 1000);
    world_status_all(&world, round, WORKER_JOB_RUNNING);
    assert_int_equal(world_answer(&world, first), 200);
    assert_int_equal(world_answer(&world, late), 0);
    uint64_t other = world_get(&world, 1000);
    world_tick(&world, PERIOD_MS);
    world_status_all(&world, world_round(&world), WORKER_JOB_COMPLETE);
    assert_int_equal(world_answer(&world, late), 200);
    assert_int_equal(world_answer(&world, other), 200);
    world_close(&world);
}

static void a_reader_neither_renews_nor_collects(void **state)
{
    (void)state;
    struct gateway_world world;
    struct message message;
    const uint64_t numbers[] = {3};
    const struct rerequest rerequest = {.numbers = numbers, .number_count = 1};
    world_open(&world);
    world_accept(&world);
    struct api_request request = world_request(API_GET_JOB);
    request.has_owner = false;
    request.wait_ms = 60000;
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t id = world_ask(&world, &request);
        uint64_t round = world_round(&world);
        assert_non_null(world_sent(&world, "w1", MESSAGE_SYNC, &message));
        assert_false(message.sync.renew);
        assert_int_equal(message.sync.sent_count, 0);
        for (uint32_t j = 0; j < WORKERS; j++) {
            struct message_status now = {.request = round,
                                         .state = j == 0 ? WORKER_JOB_UNKNOWN : WORKER_JOB_RUNNING,
                                         .rerequests = &rerequest,
                                         .rerequest_count = j == 0 ? 0 : 1};
            assert_int_equal(world_answer(&world, id), 0);
            world_status(&world, j, &now);
        }
        assert_int_equal(world_view(&world, id).rerequest_count, 0);
        assert_int_equal(world_sent_count(&world, MESSAGE_MANIFEST), 0);
    }
    world_close(&world);
}

static void a_worker_that_does_not_answer_in_time_is_not_live(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world_accept(&world);
    uint64_t id = world_get(&world, 0);
    struct message_status now = {.request = world_round(&world), .state = WORKER_JOB_RUNNING};
    world_status(&world, 0, &now);
    world_status(&world, 2, &now);
    world_tick(&world, ROUND_DEADLINE_MS - 1);
    assert_int_equal(world_answer(&world, id), 0);
    world_tick(&world, 1);
    struct job_view view = world_view(&world, id);
    assert_int_equal(view.workers_answering, 2);
    assert_true(text_equal(view.silent, TEXT_LITERAL("w2")));
    world_close(&world);
}

static uint64_t applied_after(struct gateway_world *world, uint64_t first, uint64_t second)
{
    const uint64_t requests[] = {first, second};
    for (uint64_t i = 0; i < 2; i++) {
        struct scan_state scan = {.scan = world->early, .relevant = true, .applied = i + 1};
        struct message_status now = {
            .request = requests[i], .state = WORKER_JOB_RUNNING, .scans = &scan, .scan_count = 1};
        world_status(world, 0, &now);
        world_status(world, 1, &now);
    }
    world_event(world, EVENT_STOP);
    assert_non_null(world_find(world, EFFECT_REPLY));
    return world_view(world, world_find(world, EFFECT_REPLY)->reply.request_id)
        .scans[world->early]
        .applied;
}

static void late_answers_count_unless_there_are_later_ones(void **state)
{
    (void)state;
    for (uint32_t which = 0; which < 3; which++) {
        struct gateway_world world;
        world_open(&world);
        world_accept(&world);
        uint64_t id = world_get(&world, 60000);
        uint64_t first = world_round(&world);
        world_tick(&world, ROUND_DEADLINE_MS);
        assert_int_equal(world_answer(&world, id), 200);
        world_get(&world, 60000);
        uint64_t second = world_round(&world);
        assert_true(second > first);
        if (which == 0) assert_int_equal(applied_after(&world, first, second), 2);
        if (which == 1) assert_int_equal(applied_after(&world, second, first), 1);
        /* One that was never asked: said to an earlier incarnation. */
        if (which == 2) assert_int_equal(applied_after(&world, first, second + 1), 1);
        world_close(&world);
    }
}

/* ---- workers that lose the job ---- */

static void who_has_lost_the_job_gets_it_again_unless_all_have(void **state)
{
    (void)state;
    for (uint32_t unknown = 0; unknown < 1u << WORKERS; unknown++) {
        struct gateway_world world;
        struct message message;
        world_open(&world);
        world_accept(&world);
        uint64_t id = world_get(&world, 0);
        uint64_t round = world_round(&world);
        for (uint32_t i = 0; i < WORKERS; i++) {
            bool lost = (unknown >> i & 1) != 0;
            struct message_status now = {.request = round,
                                         .state = lost ? WORKER_JOB_UNKNOWN : WORKER_JOB_RUNNING};
            world_status(&world, i, &now);
        }
        bool all = unknown == (1u << WORKERS) - 1;
        assert_int_equal(world_answer(&world, id), all ? 404 : 200);
        for (uint32_t i = 0; i < WORKERS; i++) {
            const char *name = world_workers[i].name.bytes;
            bool again = world_sent(&world, name, MESSAGE_MANIFEST, &message) != NULL;
            assert_int_equal(again, !all && (unknown >> i & 1) != 0);
            if (!again) continue;
            assert_true(message.store.order);
            assert_true(text_equal(message.store.bytes, world.layout->bytes));
        }
        struct api_request request = world_request(API_METRICS);
        id = world_ask(&world, &request);
        assert_true(world_says(&world, id,
                               all ? "millrace_gateway_jobs 0\n" : "millrace_gateway_jobs 1\n"));
        world_close(&world);
    }
}

static void a_job_of_the_same_name_is_another_job(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world_accept(&world);
    uint64_t id = world_get(&world, 0);
    uint64_t round = world_round(&world);
    for (uint32_t i = 0; i < WORKERS; i++) {
        struct message message = world_message(&world, MESSAGE_STATUS, i);
        message.manifest++;
        message.status = (struct message_status){.request = round, .state = WORKER_JOB_COMPLETE};
        world_deliver(&world, &message);
    }
    assert_int_equal(world_answer(&world, id), 404);
    world_close(&world);
}

/* ---- the view ---- */

static void check_open(const enum worker_kind *kinds)
{
    struct gateway_world world;
    uint32_t copies[64];
    world_open(&world);
    world_accept(&world);
    assert_true(world.layout->plan->fold_count <= 64);
    uint64_t id = world_get(&world, 0);
    uint64_t round = world_round(&world);
    bool early = false;
    bool late = false;
    bool unknown = false;
    bool bare = false;
    bool gone = true;
    for (uint32_t i = 0; i < WORKERS; i++) {
        unknown = unknown || kinds[i] == KIND_UNKNOWN;
        bare = bare || kinds[i] == KIND_BARE;
        gone = gone && kinds[i] == KIND_UNKNOWN;
        early = early || kinds[i] == KIND_BARE || kinds[i] == KIND_READY;
        if (kinds[i] == KIND_SILENT) continue;
        struct message_status now = world_status_of(&world, round, kinds[i], copies);
        world_status(&world, i, &now);
    }
    early = early && !unknown;
    late = early && !bare;
    if (world_answer(&world, id) == 0) world_tick(&world, ROUND_DEADLINE_MS);
    if (gone) {
        assert_int_equal(world_answer(&world, id), 404);
    } else {
        struct job_view view = world_view(&world, id);
        assert_int_equal(view.scans[world.early].open, early);
        assert_int_equal(view.scans[world.late].open, late);
        /* And chunks are taken accordingly. */
        uint32_t expected = early ? 0 : 409;
        assert_int_equal(world_answer(&world, world_put_chunk(&world, world.early, 0)), expected);
        expected = late ? 0 : 409;
        assert_int_equal(world_answer(&world, world_put_chunk(&world, world.late, 0)), expected);
        /* What was known long ago is not known. */
        world.now_ms += 2 * PERIOD_MS + ROUND_DEADLINE_MS + 1;
        assert_int_equal(world_answer(&world, world_put_chunk(&world, world.late, 0)), 0);
    }
    world_close(&world);
}

static void a_scan_is_open_when_all_who_answer_are_ready(void **state)
{
    (void)state;
    for (uint32_t mix = 0; mix < KINDS * KINDS * KINDS; mix++) {
        const enum worker_kind kinds[WORKERS] = {mix % KINDS, mix / KINDS % KINDS,
                                                 mix / KINDS / KINDS};
        check_open(kinds);
    }
}

struct model_scan {
    bool known; /* By anybody concerned. */
    struct scan_state least;
};

static void model_apply(struct model_scan *model, const struct scan_state *told)
{
    if (!model->known) model->least = *told;
    model->known = true;
    if (!told->ended) model->least.ended = false;
    if (told->applied < model->least.applied) model->least.applied = told->applied;
    if (told->contiguous < model->least.contiguous) model->least.contiguous = told->contiguous;
}

static void check_progress(uint64_t seed)
{
    struct gateway_world world;
    struct random random = {seed};
    world_open(&world);
    world_accept(&world);
    uint32_t scan_count = world.layout->plan->scan_count;
    struct model_scan model[8] = {0};
    assert_true(scan_count <= 8);
    uint64_t id = world_get(&world, 0);
    uint64_t round = world_round(&world);
    for (uint32_t i = 0; i < WORKERS; i++) {
        struct scan_state scans[8];
        bool forgets = random_below(&random, 8) == 0; /* A scan that is not told of. */
        for (uint32_t j = 0; j < scan_count; j++) {
            uint64_t contiguous = random_below(&random, 20);
            scans[j] = (struct scan_state){.scan = j,
                                           .ended = random_below(&random, 3) > 0,
                                           .contiguous = contiguous,
                                           .applied = contiguous + random_below(&random, 3)};
            struct scan_state none = {.scan = j};
            if (!job_layout_feeds(world.layout, STREAM_SCAN, j, i)) continue;
            model_apply(&model[j], forgets && j == scan_count - 1 ? &none : &scans[j]);
        }
        struct message_status now = {.request = round,
                                     .state = WORKER_JOB_RUNNING,
                                     .scans = scans,
                                     .scan_count = forgets ? scan_count - 1 : scan_count};
        world_status(&world, i, &now);
    }
    struct job_view view = world_view(&world, id);
    for (uint32_t j = 0; j < scan_count; j++) {
        assert_true(view.scans[j].applied == model[j].least.applied);
        assert_true(view.scans[j].contiguous == model[j].least.contiguous);
        assert_true(view.scans[j].limit == model[j].least.contiguous + WINDOW);
        assert_int_equal(view.scans[j].ended, model[j].least.ended);
    }
    uint64_t limit = view.scans[world.early].limit;
    assert_int_equal(world_answer(&world, world_put_chunk(&world, world.early, limit - 1)), 0);
    id = world_put_chunk(&world, world.early, limit);
    assert_int_equal(world_answer(&world, id), 429);
    assert_int_equal(world_reply(&world, id)->api.retry_after_ms, 1000);
    world_close(&world);
}

static void a_scan_is_as_far_as_the_slowest_worker(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        check_progress(seed);
    }
}

/* One round with all but the last worker; what the owner hears of it. */
static struct job_view round_without_the_last(struct gateway_world *world)
{
    uint64_t id = world_get(world, 0);
    if (world_round(world) == 0) world_tick(world, PERIOD_MS);
    struct message_status now = {.request = world_round(world), .state = WORKER_JOB_RUNNING};
    for (uint32_t i = 0; i + 1 < WORKERS; i++) {
        world_status(world, i, &now);
    }
    world_tick(world, ROUND_DEADLINE_MS);
    return world_view(world, id);
}

static void a_worker_that_stays_silent_fails_the_job(void **state)
{
    (void)state;
    struct gateway_world world;
    struct gateway_config config = world_config();
    config.node_timeout_ms = 3 * ROUND_DEADLINE_MS + PERIOD_MS;
    world_open_with(&world, &config);
    world_accept(&world);
    uint64_t started_ms = world.now_ms;
    struct job_view view = round_without_the_last(&world);
    while (world.now_ms - started_ms < config.node_timeout_ms) {
        assert_int_equal(view.state, JOB_RUNNING);
        view = round_without_the_last(&world);
    }
    assert_int_equal(view.state, JOB_FAILED);
    assert_int_equal(view.failure, STATUS_IO);
    assert_non_null(memmem(view.text.bytes, view.text.size, "worker w3", 9));
    world_close(&world);
}

static void a_failed_worker_fails_the_job(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world_accept(&world);
    uint64_t id = world_get(&world, 60000);
    uint64_t round = world_round(&world);
    struct message_status now = {.request = round, .state = WORKER_JOB_COMPLETE};
    world_status(&world, 0, &now);
    world_status(&world, 2, &now);
    now = (struct message_status){.request = round,
                                  .state = WORKER_JOB_FAILED,
                                  .failure = STATUS_OVERFLOW,
                                  .text = TEXT_LITERAL("the sum is too large")};
    world_status(&world, 1, &now);
    struct job_view view = world_view(&world, id);
    assert_int_equal(view.state, JOB_FAILED);
    assert_int_equal(view.failure, STATUS_OVERFLOW);
    assert_true(text_equal(view.text, TEXT_LITERAL("the sum is too large")));
    world_close(&world);
}

/* ---- results ---- */

static void results_come_from_the_owner_of_the_last_fold(void **state)
{
    (void)state;
    struct gateway_world world;
    struct message message;
    struct error err;
    world_open(&world);
    world_accept(&world);
    const struct plan *plan = world.layout->plan;
    for (uint32_t query = 0; query < 2; query++) {
        uint32_t owner = job_layout_owner(world.layout, plan->queries[query].result_fold, 0);
        struct api_request request = world_request(API_GET_RESULT);
        request.query = plan->queries[query].name;
        request.number = 5;
        for (uint32_t ready = 0; ready < 2; ready++) {
            uint64_t id = world_ask(&world, &request);
            const char *name = world_workers[owner].name.bytes;
            assert_non_null(world_sent(&world, name, MESSAGE_FETCH, &message));
            assert_int_equal(world.effects.count, 1);
            assert_int_equal(message.fetch.query, query);
            assert_true(message.fetch.from == 5);
            assert_true(message.fetch.limit_bytes == MAX_MESSAGE / 2);
            uint64_t number = message.fetch.request;
            const struct result_batch batches[] = {{5, TEXT_LITERAL("five")},
                                                   {6, TEXT_LITERAL("six")}};
            message = world_message(&world, MESSAGE_RESULT, owner);
            message.result = (struct message_result){.request = number,
                                                     .ready = ready == 1,
                                                     .total = 9,
                                                     .batches = batches,
                                                     .batch_count = ready == 1 ? 2 : 0};
            world_deliver(&world, &message);
            assert_int_equal(world_answer(&world, id), ready == 1 ? 200 : 409);
            if (ready == 0) continue;
            const struct effect_reply *reply = world_reply(&world, id);
            struct text bytes = {(const char *)reply->api.body.bytes,
                                 (uint32_t)reply->api.body.size};
            struct result_page page;
            assert_string_equal(reply->api.content_type, "application/octet-stream");
            assert_int_equal(result_page_decode(bytes, &world.arena, &page, &err), STATUS_OK);
            assert_true(page.total == 9 && page.batch_count == 2);
            assert_true(text_equal(page.batches[1].bytes, TEXT_LITERAL("six")));
            world_deliver(&world, &message); /* A second time no round waits for it. */
            assert_int_equal(world.effects.count, 1);
        }
    }
    struct api_request request = world_request(API_GET_RESULT);
    request.query = TEXT_LITERAL("total");
    assert_int_equal(world_answer(&world, world_ask(&world, &request)), 404);
    request.query = TEXT_LITERAL("totals");
    uint64_t id = world_ask(&world, &request);
    world_tick(&world, REPLY_DEADLINE_MS);
    assert_int_equal(world_answer(&world, id), 503);
    id = world_ask(&world, &request);
    world_settle(&world, BUS_RETURNED, world_find(&world, EFFECT_SEND)->send.token);
    assert_int_equal(world_answer(&world, id), 503);
    world_close(&world);
}

static void the_audit_are_one_part_of_each_worker(void **state)
{
    (void)state;
    struct gateway_world world;
    struct message message;
    struct error err;
    world_open(&world);
    world_accept(&world);
    for (uint32_t worker = 0; worker <= WORKERS; worker++) {
        struct api_request request = world_request(API_GET_RESULT);
        request.query = TEXT_LITERAL(".audit");
        request.number = worker;
        uint64_t id = world_ask(&world, &request);
        if (worker == WORKERS) {
            assert_int_equal(world_answer(&world, id), 404);
            break;
        }
        const char *name = world_workers[worker].name.bytes;
        assert_non_null(world_sent(&world, name, MESSAGE_FETCH, &message));
        assert_int_equal(message.fetch.query, world.layout->plan->query_count);
        uint64_t number = message.fetch.request;
        const struct result_batch part = {0, TEXT_LITERAL("part")};
        message = world_message(&world, MESSAGE_RESULT, worker);
        message.result = (struct message_result){
            .request = number, .ready = true, .total = 1, .batches = &part, .batch_count = 1};
        world_deliver(&world, &message);
        const struct effect_reply *reply = world_reply(&world, id);
        assert_non_null(reply);
        struct text bytes = {(const char *)reply->api.body.bytes, (uint32_t)reply->api.body.size};
        struct result_page page;
        assert_int_equal(result_page_decode(bytes, &world.arena, &page, &err), STATUS_OK);
        assert_true(page.total == WORKERS && page.batch_count == 1);
        assert_true(page.batches[0].number == worker);
    }
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_round_serves_all_who_seek_a_job),
        cmocka_unit_test(a_job_that_nobody_knows_is_not_there),
        cmocka_unit_test(seeking_goes_on_until_the_deadline),
        cmocka_unit_test(a_manifest_that_is_another_is_of_no_use),
        cmocka_unit_test(only_the_owner_may_ask_for_everything),
        cmocka_unit_test(rounds_come_at_a_steady_pace_while_the_owner_waits),
        cmocka_unit_test(the_owner_hears_only_news),
        cmocka_unit_test(all_who_wait_hear_the_same_news),
        cmocka_unit_test(a_reader_neither_renews_nor_collects),
        cmocka_unit_test(a_worker_that_does_not_answer_in_time_is_not_live),
        cmocka_unit_test(late_answers_count_unless_there_are_later_ones),
        cmocka_unit_test(what_may_be_on_its_way_is_not_wanted),
        cmocka_unit_test(who_has_lost_the_job_gets_it_again_unless_all_have),
        cmocka_unit_test(a_job_of_the_same_name_is_another_job),
        cmocka_unit_test(a_scan_is_open_when_all_who_answer_are_ready),
        cmocka_unit_test(a_scan_is_as_far_as_the_slowest_worker),
        cmocka_unit_test(a_worker_that_stays_silent_fails_the_job),
        cmocka_unit_test(a_failed_worker_fails_the_job),
        cmocka_unit_test(results_come_from_the_owner_of_the_last_fold),
        cmocka_unit_test(the_audit_are_one_part_of_each_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
