/* SPDX-License-Identifier: Apache-2.0 */
/* test_gateway.c - what a gateway answers to requests: jobs accepted, chunks and ends handed on,
 * jobs deleted.
 *
 * Method: events by hand, effects looked at one by one (gateway_world.h). Every mix of answers that
 * workers can give to a manifest is tried against the rule written down once more; then each rule
 * on its own.
 */
#include "unit/cluster/role/gateway/gateway_world.h"

/* ---- before anything else ---- */

static void every_request_needs_the_token(void **state)
{
    (void)state;
    struct gateway_world world;
    struct gateway_config config = world_config();
    config.token = TEXT_LITERAL("secret");
    world_open_with(&world, &config);
    const char *wrong[] = {"", "secreT", "Secret", "secret1", "secre", "Bearer secret"};
    for (enum api_kind kind = API_PUT_JOB; kind <= API_METRICS; kind++) {
        struct api_request request = world_request(kind);
        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
            request.token = text_of(wrong[i]);
            assert_int_equal(world_answer(&world, world_ask(&world, &request)), 401);
            assert_int_equal(world.effects.count, 1);
        }
        request.token = TEXT_LITERAL("secret");
        assert_int_not_equal(world_answer(&world, world_ask(&world, &request)), 401);
    }
    world_close(&world);
}

static void without_a_broker_whatever_needs_it_is_refused(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world_accept(&world);
    world_bus(&world, BUS_DISCONNECTED);
    for (enum api_kind kind = API_PUT_JOB; kind <= API_METRICS; kind++) {
        struct api_request request = world_request(kind);
        bool is_local = kind == API_LIST_JOBS || kind == API_NODES || kind == API_METRICS;
        assert_int_equal(world_answer(&world, world_ask(&world, &request)), is_local ? 200 : 503);
        assert_int_equal(world.effects.count, 1);
    }
    world_bus(&world, BUS_CONNECTED);
    struct api_request request = world_request(API_HEALTH);
    uint64_t id = world_ask(&world, &request);
    assert_int_equal(world_answer(&world, id), 200);
    assert_true(world_says(&world, id, "\"ok\""));
    world_close(&world);
}

static void more_requests_than_can_wait_are_refused(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world_accept(&world);
    uint64_t first = 0;
    for (uint32_t i = 0; i < REQUESTS; i++) {
        uint64_t id = world_put_chunk(&world, world.early, i);
        assert_int_equal(world_answer(&world, id), 0);
        if (i == 0) first = world_find(&world, EFFECT_SEND)->send.token;
    }
    uint64_t id = world_put_chunk(&world, world.early, REQUESTS);
    assert_int_equal(world_answer(&world, id), 503);
    assert_true(world_reply(&world, id)->api.retry_after_ms > 0);
    assert_int_equal(world_sent_count(&world, MESSAGE_CHUNK), 0);
    world_settle(&world, BUS_CONFIRMED, first);
    assert_int_equal(world_answer(&world, world_put_chunk(&world, world.early, REQUESTS)), 0);
    world_close(&world);
}

/* ---- PUT of a job ---- */

enum { SILENT = STORED_REFUSED + 1, OUTCOMES };

static bool any(const uint32_t *outcomes, uint32_t outcome)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        if (outcomes[i] == outcome) return true;
    }
    return false;
}

/* The rule once more. 0: those that are full are to be ordered. */
static uint32_t expected_answer(const uint32_t *outcomes)
{
    if (any(outcomes, STORED_DIFFERS) || any(outcomes, STORED_CANCELLED)) return 409;
    if (any(outcomes, STORED_REFUSED)) return 400;
    if (any(outcomes, SILENT)) return 503;
    if (any(outcomes, STORED_FULL)) return any(outcomes, STORED_HELD) ? 0 : 429;
    return any(outcomes, STORED_NEW) ? 201 : 200;
}

static void check_taken_back(struct gateway_world *world, const uint32_t *outcomes, bool expected)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        struct message message;
        bool removed =
            world_sent(world, world_workers[i].name.bytes, MESSAGE_REMOVE, &message) != NULL;
        assert_int_equal(removed, expected && outcomes[i] == STORED_NEW);
        if (!removed) continue;
        assert_int_equal(message.remove.reason, REMOVE_REFUSED);
        assert_true(message.manifest == world->layout->hash);
    }
}

static void check_ordered(struct gateway_world *world, const uint32_t *outcomes, uint64_t id,
                          uint64_t number)
{
    struct message message;
    for (uint32_t i = 0; i < WORKERS; i++) {
        const char *name = world_workers[i].name.bytes;
        bool ordered = world_sent(world, name, MESSAGE_MANIFEST, &message) != NULL;
        assert_int_equal(ordered, outcomes[i] == STORED_FULL);
        if (ordered) assert_true(message.store.order);
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        if (outcomes[i] != STORED_FULL) continue;
        assert_int_equal(world_answer(world, id), 0);
        world_stored(world, number, i, STORED_FULL); /* The first answer, doubled on its way. */
        assert_int_equal(world_answer(world, id), 0);
        world_stored(world, number, i, STORED_NEW);
    }
    assert_int_equal(world_answer(world, id), 201);
}

static void check_outcomes(const uint32_t *outcomes)
{
    struct gateway_world world;
    world_open(&world);
    struct job_request job = world_job();
    uint64_t id = world_put(&world, &job, "j1");
    uint64_t number = world_learn(&world);
    assert_int_equal(world_sent_count(&world, MESSAGE_MANIFEST), WORKERS);
    for (uint32_t i = 0; i < WORKERS; i++) {
        assert_int_equal(world_answer(&world, id), 0);
        if (outcomes[i] == SILENT) continue;
        world_stored(&world, number, i, outcomes[i]);
        bool is_last = i == WORKERS - 1;
        if (!is_last) world_stored(&world, number, i, STORED_HELD); /* Said twice counts once. */
    }
    uint32_t expected = expected_answer(outcomes);
    if (any(outcomes, SILENT)) {
        assert_int_equal(world_answer(&world, id), 0);
        world_tick(&world, REPLY_DEADLINE_MS - 1);
        assert_int_equal(world_answer(&world, id), 0);
        world_tick(&world, 1);
    }
    check_taken_back(&world, outcomes, expected == 409 || expected == 400 || expected == 429);
    if (expected == 0) {
        check_ordered(&world, outcomes, id, number);
    } else {
        assert_int_equal(world_answer(&world, id), expected);
    }
    if (expected == 429) {
        uint32_t retry_ms = world_reply(&world, id)->api.retry_after_ms;
        assert_in_range(retry_ms, 500, 1500);
    }
    if (expected == 400) assert_true(world_says(&world, id, "no room for it"));
    for (uint32_t i = 0; expected == 503 && i < WORKERS; i++) {
        bool is_named = world_says(&world, id, world_workers[i].name.bytes);
        assert_int_equal(is_named, outcomes[i] == SILENT);
    }
    world_close(&world);
}

static void every_mix_of_answers_to_a_manifest_has_its_outcome(void **state)
{
    (void)state;
    for (uint32_t a = 0; a < OUTCOMES; a++) {
        for (uint32_t b = 0; b < OUTCOMES; b++) {
            for (uint32_t c = 0; c < OUTCOMES; c++) {
                const uint32_t outcomes[WORKERS] = {a, b, c};
                check_outcomes(outcomes);
            }
        }
    }
}

static void an_accepted_job_is_open_where_nothing_is_needed(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    struct job_request job = world_job();
    uint64_t id = world_put(&world, &job, "j1");
    uint64_t number = world_learn(&world);
    world_stored(&world, number, 2, STORED_NEW);
    world_stored(&world, number, 0, STORED_NEW);
    world_stored(&world, number, 1, STORED_NEW);
    struct job_view view = world_view(&world, id);
    assert_int_equal(view.state, JOB_ACCEPTED);
    assert_true(view.manifest == world.layout->hash);
    assert_int_equal(view.worker_count, WORKERS);
    assert_int_equal(view.workers_answering, WORKERS);
    assert_int_equal(view.scan_count, world.layout->plan->scan_count);
    assert_true(view.scans[world.early].open);
    assert_false(view.scans[world.late].open);
    assert_int_equal(view.scans[world.early].limit, WINDOW);
    assert_int_equal(view.phase, 1);
    assert_int_equal(view.phase_count, 2);
    world_close(&world);
}

static void a_worker_without_an_inbox_is_silent(void **state)
{
    (void)state;
    struct gateway_world world;
    struct message message;
    world_open(&world);
    struct job_request job = world_job();
    uint64_t id = world_put(&world, &job, "j1");
    uint64_t number = world_learn(&world);
    uint64_t token = world_sent(&world, "w2", MESSAGE_MANIFEST, &message)->token;
    world_stored(&world, number, 0, STORED_NEW);
    world_settle(&world, BUS_RETURNED, token);
    assert_int_equal(world_answer(&world, id), 0);
    world_stored(&world, number, 2, STORED_NEW);
    assert_int_equal(world_answer(&world, id), 503);
    assert_true(world_says(&world, id, "w2"));
    assert_int_equal(world_sent_count(&world, MESSAGE_REMOVE), 0);
    world_close(&world);
}

static void check_wrong_job(struct gateway_world *world, const struct job_request *job,
                            const char *words)
{
    uint64_t id = world_put(world, job, "j1");
    assert_int_equal(world_answer(world, id), 400);
    assert_true(world_says(world, id, words));
    assert_int_equal(world->effects.count, 1);
}

static void a_wrong_job_is_refused_with_the_reason(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    struct job_request job = world_job();
    job.build = TEXT_LITERAL("9.9");
    check_wrong_job(&world, &job, "9.9");
    check_wrong_job(&world, &job, job_layout_build);

    const struct manifest_query wrong = {TEXT_LITERAL("q"),
                                         TEXT_LITERAL("SELECT nothing FROM sales")};
    job = world_job();
    job.queries = &wrong;
    job.query_count = 1;
    check_wrong_job(&world, &job, "nothing");

    const struct manifest_query unknown = {.name = TEXT_LITERAL("tottals")};
    job =
        (struct job_request){.analysis = TEXT_LITERAL("shop"), .chunk_bytes = 1, .field_limit = 1};
    check_wrong_job(&world, &job, "shops");
    job.analysis = TEXT_LITERAL("shops");
    job.queries = &unknown;
    job.query_count = 1;
    check_wrong_job(&world, &job, "totals");

    struct api_request request = world_request(API_PUT_JOB);
    request.body = TEXT_LITERAL("{]");
    assert_int_equal(world_answer(&world, world_ask(&world, &request)), 400);
    request.has_owner = false;
    assert_int_equal(world_answer(&world, world_ask(&world, &request)), 400);
    request.job = TEXT_LITERAL("../j1");
    assert_int_equal(world_answer(&world, world_ask(&world, &request)), 400);
    world_close(&world);
}

static void an_analysis_is_known_by_its_name(void **state)
{
    (void)state;
    const struct manifest_query chosen = {.name = TEXT_LITERAL("names")};
    for (uint32_t count = 0; count < 2; count++) {
        struct gateway_world world;
        world_open(&world);
        struct job_request job = world_job();
        job.analysis = TEXT_LITERAL("shops");
        job.tables_sql = (struct text){0};
        job.queries = &chosen;
        job.query_count = count;
        world_put(&world, &job, "j1");
        struct message message;
        struct manifest manifest;
        struct error err;
        assert_non_null(world_sent(&world, "w3", MESSAGE_MANIFEST, &message));
        assert_int_equal(manifest_decode(message.store.bytes, &world.arena, &manifest, &err),
                         STATUS_OK);
        assert_int_equal(manifest.query_count, count == 0 ? 2 : 1);
        assert_true(text_equal(manifest.queries[0].sql,
                               count == 0 ? text_of(WORLD_TOTALS) : text_of(WORLD_NAMES)));
        assert_true(text_equal(manifest.tables_sql, text_of(WORLD_TABLES)));
        assert_int_equal(manifest.worker_count, WORKERS);
        assert_true(manifest.owner == OWNER);
        assert_int_equal(manifest.shard_count, 8);
        world_close(&world);
    }
}

static void a_differing_second_put_is_refused(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world_accept(&world);
    struct job_request job = world_job();
    job.query_count = 1;
    assert_int_equal(world_answer(&world, world_put(&world, &job, "j1")), 409);
    assert_int_equal(world.effects.count, 1);

    job = world_job();
    uint64_t id = world_put(&world, &job, "j1");
    uint64_t number = world_learn(&world);
    for (uint32_t i = 0; i < WORKERS; i++) {
        world_stored(&world, number, i, STORED_HELD);
    }
    assert_int_equal(world_answer(&world, id), 200);
    world_close(&world);
}

/* ---- chunks ---- */

static void a_chunk_is_answered_when_the_broker_has_it(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world_accept(&world);
    for (uint64_t number = 0; number < 5; number++) {
        struct message message;
        uint64_t id = world_put_chunk(&world, world.early, number);
        const struct effect_send *sent = world_sent(&world, NULL, MESSAGE_CHUNK, &message);
        assert_non_null(sent);
        assert_int_equal(world_sent_count(&world, MESSAGE_CHUNK), 1);
        assert_int_equal(sent->work, job_layout_work_queue(world.layout, number, 4));
        assert_true(message.manifest == world.layout->hash);
        assert_true(message.chunk.number == number);
        assert_int_equal(message.chunk.scan, world.early);
        assert_true(message.chunk.checksum ==
                    hash_bytes(message.chunk.body.bytes, message.chunk.body.size));
        uint64_t token = sent->token;
        assert_true(token != 0);
        world_settle(&world, BUS_CONFIRMED, token);
        assert_int_equal(world_answer(&world, id), 204);
        assert_int_equal(world.effects.count, 1);
        world_settle(&world, BUS_CONFIRMED, token);
        assert_int_equal(world.effects.count, 0);
    }
    world_close(&world);
}

static void who_sends_and_never_asks_is_held_to_the_window(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world_accept(&world);
    uint64_t id = 0;
    uint32_t rounds = 0;
    for (uint64_t number = 0; number < WINDOW; number++) {
        id = world_put_chunk(&world, world.early, number);
        rounds += world_sent_count(&world, MESSAGE_SYNC) > 0;
        world_settle(&world, BUS_CONFIRMED, world_find(&world, EFFECT_SEND)->send.token);
        assert_int_equal(world_answer(&world, id), 204);
    }
    assert_int_equal(rounds, 1);
    id = world_put_chunk(&world, world.early, WINDOW);
    assert_int_equal(world_answer(&world, id), 429);
    world_close(&world);
}

static void numbers_that_files_of_this_size_can_t_have_are_refused(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world_accept(&world);
    uint64_t limit = job_layout_chunk_limit(world.layout, world.early);
    assert_int_equal(world_answer(&world, world_put_chunk(&world, world.early, limit)), 400);
    struct api_request end = world_request(API_PUT_END);
    end.scan = world.early;
    end.end_count = limit + 1;
    assert_int_equal(world_answer(&world, world_ask(&world, &end)), 400);
    end.end_count = limit;
    assert_int_equal(world_answer(&world, world_ask(&world, &end)), 0);
    world_close(&world);
}

static void a_worker_that_can_t_store_a_running_job_ends_it(void **state)
{
    (void)state;
    struct gateway_world world;
    struct message message;
    world_open(&world);
    world_accept(&world);
    world_get(&world, 0);
    uint64_t round = world_round(&world);
    struct message_status now = {.request = round, .state = WORKER_JOB_RUNNING};
    world_status(&world, 0, &now);
    world_status(&world, 1, &now);
    now.state = WORKER_JOB_UNKNOWN;
    world_status(&world, 2, &now);
    assert_non_null(world_sent(&world, "w3", MESSAGE_MANIFEST, &message));
    world_stored(&world, message.store.request, 2, STORED_REFUSED);
    uint64_t id = world_get(&world, 0);
    if (world_round(&world) == 0) world_tick(&world, PERIOD_MS);
    now.request = world_round(&world);
    world_status(&world, 2, &now);
    now.state = WORKER_JOB_RUNNING;
    world_status(&world, 0, &now);
    world_status(&world, 1, &now);
    struct job_view view = world_view(&world, id);
    assert_int_equal(view.state, JOB_FAILED);
    assert_non_null(memmem(view.text.bytes, view.text.size, "w3 can't take part", 18));
    world_close(&world);
}

static void a_blocked_broker_is_told(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world_accept(&world);
    world_bus(&world, BUS_BLOCKED);
    struct api_request request = world_request(API_HEALTH);
    uint64_t id = world_ask(&world, &request);
    assert_int_equal(world_answer(&world, id), 503);
    assert_true(world_says(&world, id, "takes no messages"));
    world_bus(&world, BUS_UNBLOCKED);
    assert_int_equal(world_answer(&world, world_ask(&world, &request)), 200);
    world_close(&world);
}

static void a_chunk_nobody_waits_for_is_not_published_again(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world_accept(&world);

    uint64_t id = world_put_chunk(&world, world.early, 0);
    uint64_t token = world_find(&world, EFFECT_SEND)->send.token;
    world_gone(&world, id);
    assert_int_equal(world.effects.count, 1);
    assert_true(world_revokes(&world, token));

    id = world_put_chunk(&world, world.early, 0);
    token = world_find(&world, EFFECT_SEND)->send.token;
    world_tick(&world, REPLY_DEADLINE_MS);
    assert_int_equal(world_answer(&world, id), 503);
    assert_true(world_revokes(&world, token));

    id = world_put_chunk(&world, world.early, 0);
    token = world_find(&world, EFFECT_SEND)->send.token;
    world_settle(&world, BUS_RETURNED, token);
    assert_int_equal(world_answer(&world, id), 503);

    id = world_put_chunk(&world, world.early, 0);
    token = world_find(&world, EFFECT_SEND)->send.token;
    world_bus(&world, BUS_DISCONNECTED);
    assert_int_equal(world_answer(&world, id), 503);
    assert_true(world_revokes(&world, token));
    world_settle(&world, BUS_CONFIRMED, token);
    assert_int_equal(world.effects.count, 0);
    world_close(&world);
}

static void check_chunk(struct gateway_world *world, const struct api_request *request,
                        uint32_t expected)
{
    assert_int_equal(world_answer(world, world_ask(world, request)), expected);
    assert_int_equal(world->effects.count, 1);
}

static void a_chunk_that_is_not_sound_is_refused(void **state)
{
    (void)state;
    struct gateway_world world;
    struct buf body = {0};
    struct api_request sound, request;
    world_open(&world);
    world_accept(&world);
    world_chunk(&world, world.early, 3, &body, &sound);

    request = sound;
    request.has_checksum = false;
    check_chunk(&world, &request, 400);
    request = sound;
    request.checksum++;
    check_chunk(&world, &request, 400);
    request = sound;
    request.number = (uint64_t)1 << 40;
    check_chunk(&world, &request, 400);
    request = sound;
    request.scan = world.layout->plan->scan_count;
    check_chunk(&world, &request, 404);
    request = sound;
    request.has_owner = false;
    check_chunk(&world, &request, 403);
    request = sound;
    request.owner++;
    check_chunk(&world, &request, 403);
    /* A chunk of the other table has another number of columns. */
    request = sound;
    request.scan = world.late;
    check_chunk(&world, &request, 400);

    /* One of a file that the table does not have. */
    static const uint32_t map[] = {0, 1};
    struct chunk_body chunk = {.file = 1,
                               .first_line = 1,
                               .file_columns = 2,
                               .column_map = map,
                               .column_count = 2,
                               .bytes = TEXT_LITERAL("1,2\n")};
    buf_reset(&body);
    chunk_body_encode(&chunk, &body);
    request = sound;
    request.body = (struct text){(const char *)body.bytes, (uint32_t)body.size};
    request.checksum = hash_bytes(body.bytes, body.size);
    check_chunk(&world, &request, 400);
    /* Every truncation of a sound body. */
    world_chunk(&world, world.early, 3, &body, &sound);
    for (uint32_t size = 0; size < 16; size++) {
        request = sound;
        request.body.size = size;
        request.checksum = hash_bytes(body.bytes, size);
        check_chunk(&world, &request, 400);
    }
    buf_reset(&body);
    while (body.size + 4096 <= MAX_MESSAGE) {
        buf_put_u8(&body, 0);
    }
    request = sound;
    request.body = (struct text){(const char *)body.bytes, (uint32_t)body.size};
    request.checksum = hash_bytes(body.bytes, body.size);
    check_chunk(&world, &request, 413);
    buf_done(&body);
    world_close(&world);
}

/* ---- ends ---- */

static uint64_t put_end(struct gateway_world *world, uint64_t count, uint64_t sum)
{
    struct api_request request = world_request(API_PUT_END);
    request.scan = world->early;
    request.end_count = count;
    request.end_sum = sum;
    return world_ask(world, &request);
}

static void an_end_is_answered_when_all_workers_will_hear_it(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world_accept(&world);
    uint64_t id = put_end(&world, 4, 99);
    uint64_t tokens[WORKERS];
    for (uint32_t i = 0; i < WORKERS; i++) {
        struct message message;
        const struct effect_send *sent =
            world_sent(&world, world_workers[i].name.bytes, MESSAGE_END, &message);
        assert_non_null(sent);
        assert_int_equal(message.end.scan, world.early);
        assert_true(message.end.count == 4 && message.end.sum == 99);
        tokens[i] = sent->token;
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        assert_int_equal(world_answer(&world, id), 0);
        world_settle(&world, BUS_CONFIRMED, tokens[i]);
        if (i == 0) world_settle(&world, BUS_CONFIRMED, tokens[i]);
    }
    assert_int_equal(world_answer(&world, id), 204);

    assert_int_equal(world_answer(&world, put_end(&world, 5, 99)), 409);
    assert_int_equal(world_answer(&world, put_end(&world, 4, 98)), 409);
    id = put_end(&world, 4, 99);
    struct message message;
    tokens[0] = world_sent(&world, "w1", MESSAGE_END, &message)->token;
    tokens[1] = world_sent(&world, "w2", MESSAGE_END, &message)->token;
    tokens[2] = world_sent(&world, "w3", MESSAGE_END, &message)->token;
    world_settle(&world, BUS_CONFIRMED, tokens[0]);
    world_settle(&world, BUS_RETURNED, tokens[2]);
    assert_int_equal(world_answer(&world, id), 503);
    assert_true(world_revokes(&world, tokens[1]));
    assert_false(world_revokes(&world, tokens[0]));
    id = put_end(&world, 4, 99);
    world_bus(&world, BUS_DISCONNECTED);
    assert_int_equal(world_answer(&world, id), 503);
    assert_int_equal(world_count(&world, EFFECT_REVOKE), WORKERS);
    world_close(&world);
}

/* ---- the end of a job ---- */

static void confirm_removes(struct gateway_world *world, enum remove_reason reason,
                            uint64_t manifest)
{
    uint64_t tokens[WORKERS];
    struct message message;
    for (uint32_t i = 0; i < WORKERS; i++) {
        const struct effect_send *sent =
            world_sent(world, world_workers[i].name.bytes, MESSAGE_REMOVE, &message);
        assert_non_null(sent);
        assert_int_equal(message.remove.reason, reason);
        assert_true(message.manifest == manifest);
        tokens[i] = sent->token;
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        assert_null(world_find(world, EFFECT_REPLY));
        world_settle(world, BUS_CONFIRMED, tokens[i]);
    }
}

static void a_cancelled_job_is_remembered_for_its_readers(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world_accept(&world);
    uint64_t waiting = world_get(&world, 5000);
    struct api_request request = world_request(API_DELETE_JOB);
    request.owner++;
    assert_int_equal(world_answer(&world, world_ask(&world, &request)), 403);
    request.has_owner = false; /* An operator. */
    uint64_t first = world_ask(&world, &request);
    /* While it is being deleted no round begins: it would send the manifest again. */
    world_tick(&world, PERIOD_MS);
    assert_int_equal(world.effects.count, 0);
    uint64_t id = world_ask(&world, &request);
    confirm_removes(&world, REMOVE_CANCELLED, world.layout->hash);
    assert_int_equal(world_answer(&world, id), 204);
    assert_int_equal(world_answer(&world, first), 0);
    assert_int_equal(world_view(&world, waiting).state, JOB_CANCELLED);

    request = world_request(API_GET_JOB);
    request.has_owner = false;
    id = world_ask(&world, &request);
    assert_int_equal(world_view(&world, id).state, JOB_CANCELLED);
    /* Its owner may have asked for it again elsewhere: the workers are asked first. */
    id = world_get(&world, 0);
    assert_int_equal(world_answer(&world, id), 0);
    world_status_all(&world, world_round(&world), WORKER_JOB_UNKNOWN);
    assert_int_equal(world_view(&world, id).state, JOB_CANCELLED);
    world_tick(&world, CLIENT_TIMEOUT_MS);
    id = world_get(&world, 0);
    assert_int_equal(world_answer(&world, id), 0);
    assert_true(world_round(&world) != 0);
    world_close(&world);
}

static void an_expired_job_is_told_to_readers_and_may_be_begun_anew(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world_accept(&world);
    world_get(&world, 0);
    world_status_all(&world, world_round(&world), WORKER_JOB_RUNNING);
    world_tick(&world, CLIENT_TIMEOUT_MS);
    struct api_request request = world_request(API_GET_JOB);
    request.has_owner = false;
    uint64_t id = world_ask(&world, &request);
    assert_int_equal(world_view(&world, id).state, JOB_EXPIRED);
    id = world_get(&world, 0);
    world_status_all(&world, world_round(&world), WORKER_JOB_UNKNOWN);
    assert_int_equal(world_answer(&world, id), 404);
    world_accept(&world);
    id = world_get(&world, 0);
    if (world_round(&world) == 0) world_tick(&world, PERIOD_MS);
    world_status_all(&world, world_round(&world), WORKER_JOB_RUNNING);
    assert_int_equal(world_view(&world, id).state, JOB_RUNNING);
    world_close(&world);
}

static void deleting_twice_is_deleting_once(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world_accept(&world);
    world_get(&world, 0);
    world_status_all(&world, world_round(&world), WORKER_JOB_COMPLETE);
    struct api_request request = world_request(API_DELETE_JOB);
    uint64_t id = world_ask(&world, &request);
    confirm_removes(&world, REMOVE_DONE, world.layout->hash);
    assert_int_equal(world_answer(&world, id), 204);
    id = world_ask(&world, &request);
    assert_int_equal(world_sent_count(&world, MESSAGE_REMOVE), 0); /* Is it his? */
    world_status_all(&world, world_round(&world), WORKER_JOB_UNKNOWN);
    assert_int_equal(world_answer(&world, id), 204);
    /* It was not cancelled: it is simply not there. */
    assert_int_equal(world_answer(&world, world_get(&world, 0)), 0);
    world_status_all(&world, world_round(&world), WORKER_JOB_UNKNOWN);
    assert_non_null(world_find(&world, EFFECT_REPLY));
    assert_int_equal(world_find(&world, EFFECT_REPLY)->reply.api.status, 404);
    world_close(&world);
}

/* A worker sends the job's manifest, as one does that has it. */
static void tell_manifest(struct gateway_world *world)
{
    struct message message = world_message(world, MESSAGE_MANIFEST, 0);
    message.store.bytes = world->layout->bytes;
    world_deliver(world, &message);
}

static void a_key_is_looked_at_before_a_job_is_deleted_that_is_not_known(void **state)
{
    (void)state;
    for (uint32_t is_owner = 0; is_owner < 2; is_owner++) {
        struct gateway_world world;
        world_open(&world);
        world_accept(&world);
        world_tick(&world, CLIENT_TIMEOUT_MS); /* And is forgotten here. */
        struct api_request request = world_request(API_DELETE_JOB);
        if (!is_owner) request.owner++;
        uint64_t id = world_ask(&world, &request);
        assert_int_equal(world_answer(&world, id), 0);
        assert_int_equal(world_sent_count(&world, MESSAGE_REMOVE), 0);
        assert_true(world_round(&world) != 0);
        tell_manifest(&world);
        if (is_owner) {
            confirm_removes(&world, REMOVE_DONE, world.layout->hash);
            assert_int_equal(world_answer(&world, id), 204);
        } else {
            assert_int_equal(world_answer(&world, id), 403);
            assert_int_equal(world_sent_count(&world, MESSAGE_REMOVE), 0);
        }
        world_close(&world);
    }
}

static void a_name_is_free_again_when_nothing_is_heard_of_its_job(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world_accept(&world);
    struct job_request job = world_job();
    job.query_count = 1;
    struct api_request request = world_request(API_GET_JOB);
    request.owner++;
    assert_int_equal(world_answer(&world, world_put(&world, &job, "j1")), 409);
    assert_int_equal(world_answer(&world, world_ask(&world, &request)), 403);
    /* Who is refused is no sign of incarnation: the workers are asked. */
    for (uint32_t i = 0; i < 2; i++) {
        world_tick(&world, ROUND_DEADLINE_MS);
        uint64_t id = world_ask(&world, &request);
        assert_int_equal(world_answer(&world, id), i == 0 ? 403 : 0);
    }
    assert_true(world_round(&world) != 0);
    tell_manifest(&world);
    assert_int_equal(world_find(&world, EFFECT_REPLY)->reply.api.status,
                     403); /* They still have it. */
    world_tick(&world, 2 * ROUND_DEADLINE_MS);
    uint64_t id = world_put(&world, &job, "j1");
    assert_int_equal(world_answer(&world, id), 0);
    assert_int_equal(world_sent_count(&world, MESSAGE_MANIFEST), WORKERS);
    world_close(&world);
}

static void a_delete_that_fails_leaves_the_job(void **state)
{
    (void)state;
    struct gateway_world world;
    struct message message;
    world_open(&world);
    world_accept(&world);
    struct api_request request = world_request(API_DELETE_JOB);
    uint64_t id = world_ask(&world, &request);
    uint64_t token = world_sent(&world, "w1", MESSAGE_REMOVE, &message)->token;
    world_settle(&world, BUS_RETURNED, token);
    assert_int_equal(world_answer(&world, id), 503);
    assert_int_equal(world_answer(&world, world_put_chunk(&world, world.early, 0)), 0);
    world_close(&world);
}

/* ---- pages ---- */

/* Worker i holds the first i of these jobs, and the last in a state of its own. */
static void tell_jobs(struct gateway_world *world, uint64_t number, uint32_t worker)
{
    struct listed_job jobs[] = {
        {.job = TEXT_LITERAL("a"), .state = WORKER_JOB_COMPLETE, .age_ms = 10, .lease_ms = 5},
        {.job = TEXT_LITERAL("b"),
         .state = worker == 1 ? WORKER_JOB_RUNNING : WORKER_JOB_COMPLETE,
         .applied = worker},
    };
    struct message message = world_message(world, MESSAGE_JOBS, worker);
    message.jobs = (struct message_jobs){
        .request = number, .uptime_ms = 1000 + worker, .jobs = jobs, .job_count = worker};
    world_deliver(world, &message);
}

static uint64_t ask_list(struct gateway_world *world, enum api_kind kind, uint64_t *out_number)
{
    struct message message;
    struct api_request request = world_request(kind);
    uint64_t id = world_ask(world, &request);
    assert_int_equal(world_sent_count(world, MESSAGE_LIST), WORKERS);
    assert_non_null(world_sent(world, "w1", MESSAGE_LIST, &message));
    *out_number = message.list.request;
    return id;
}

static void lists_are_what_the_workers_tell(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    uint64_t number;
    uint64_t id = ask_list(&world, API_LIST_JOBS, &number);
    for (uint32_t i = 0; i < WORKERS; i++) {
        assert_null(world_reply(&world, id));
        tell_jobs(&world, number, i);
        if (i == 0) tell_jobs(&world, number, i); /* Said twice is said once. */
    }
    assert_int_equal(world_answer(&world, id), 200);
    assert_true(world_says(&world, id, "\"id\":\"a\",\"state\":\"done\""));
    assert_true(world_says(&world, id, "\"id\":\"b\",\"state\":\"done\""));
    assert_false(world_says(&world, id, "\"silent\":\"w"));
    world_close(&world);
}

static void a_list_does_not_wait_for_the_silent(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    uint64_t number;
    uint64_t id = ask_list(&world, API_NODES, &number);
    tell_jobs(&world, number, 1);
    world_tick(&world, ROUND_DEADLINE_MS - 1);
    assert_null(world_reply(&world, id));
    world_tick(&world, 1);
    assert_int_equal(world_answer(&world, id), 200);
    assert_true(world_says(&world, id, "\"name\":\"g1\",\"role\":\"gateway\",\"answers\":true"));
    assert_true(world_says(&world, id, "\"name\":\"w2\",\"role\":\"worker\",\"answers\":true"));
    assert_true(world_says(&world, id, "\"name\":\"w3\",\"role\":\"worker\",\"answers\":false"));
    world_bus(&world, BUS_DISCONNECTED);
    struct api_request request = world_request(API_NODES);
    id = world_ask(&world, &request);
    assert_true(world_says(&world, id, "\"connected\":false"));
    world_close(&world);
}

static void metrics_count_what_this_gateway_did(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world_accept(&world);
    struct api_request request = world_request(API_METRICS);
    uint64_t id;
    world_put_chunk(&world, world.early, 0);
    world_settle(&world, BUS_CONFIRMED, world_find(&world, EFFECT_SEND)->send.token);
    id = world_ask(&world, &request);
    assert_true(world_says(&world, id, "millrace_gateway_requests_total{kind=\"put_job\"} 1\n"));
    assert_true(world_says(&world, id, "millrace_gateway_chunks_total 1\n"));
    assert_true(world_says(&world, id, "millrace_gateway_jobs 1\n"));
    world_close(&world);
}

/* ---- the end of the gateway ---- */

static void stopping_waits_for_chunks_and_answers_the_rest(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world_accept(&world);
    uint64_t get = world_get(&world, 60000);
    uint64_t chunk = world_put_chunk(&world, world.early, 0);
    uint64_t token = world_find(&world, EFFECT_SEND)->send.token;
    world_event(&world, EVENT_STOP);
    assert_int_equal(world_view(&world, get).state, JOB_RUNNING);
    assert_null(world_find(&world, EFFECT_EXIT));
    struct api_request request = world_request(API_HEALTH);
    assert_int_equal(world_answer(&world, world_ask(&world, &request)), 503);
    world_settle(&world, BUS_CONFIRMED, token);
    assert_int_equal(world_answer(&world, chunk), 204);
    assert_int_equal(world_count(&world, EFFECT_EXIT), 1);
    world_event(&world, EVENT_STOP);
    assert_null(world_find(&world, EFFECT_EXIT));
    world_close(&world);
}

static void stopping_does_not_wait_for_ever(void **state)
{
    (void)state;
    struct gateway_world world;
    struct gateway_config config = world_config();
    config.reply_deadline_ms = 60000;
    world_open_with(&world, &config);
    world_accept(&world);
    uint64_t chunk = world_put_chunk(&world, world.early, 0);
    world_event(&world, EVENT_STOP);
    world_tick(&world, 4999);
    assert_null(world_find(&world, EFFECT_EXIT));
    world_tick(&world, 1);
    assert_int_equal(world_answer(&world, chunk), 503);
    assert_non_null(world_find(&world, EFFECT_EXIT));
    world_close(&world);
}

/* ---- bounds ---- */

/* A gateway that does not know a job asks for its manifest. */
static bool knows(struct gateway_world *world, const char *id)
{
    struct message message;
    struct api_request request = world_request(API_GET_JOB);
    request.job = text_of(id);
    uint64_t asked = world_ask(world, &request);
    /* A round for a client that is gone may be under way. */
    for (int i = 0; world_sent(world, "w1", MESSAGE_SYNC, &message) == NULL; i++) {
        assert_true(i < 3);
        world_tick(world, i == 0 ? ROUND_DEADLINE_MS : PERIOD_MS);
    }
    world_gone(world, asked);
    return !message.sync.needs_manifest;
}

static void accept_as(struct gateway_world *world, const char *id)
{
    struct job_request job = world_job();
    uint64_t asked = world_put(world, &job, id);
    uint64_t number = world_learn(world);
    for (uint32_t i = 0; i < WORKERS; i++) {
        struct message message = world_message(world, MESSAGE_STORED, i);
        message.job = text_of(id);
        message.stored = (struct message_stored){.request = number, .outcome = STORED_NEW};
        world_deliver(world, &message);
    }
    assert_int_equal(world_answer(world, asked), 201);
}

static void the_job_longest_not_asked_for_is_forgotten(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    const char *ids[JOBS + 1] = {"a", "b", "c", "d"};
    for (uint32_t i = 0; i < JOBS; i++) {
        world.now_ms += 10;
        accept_as(&world, ids[i]);
    }
    world.now_ms += 10;
    struct api_request request = world_request(API_GET_JOB);
    request.job = TEXT_LITERAL("a");
    uint64_t id = world_ask(&world, &request);
    world_gone(&world, id);
    accept_as(&world, "d");
    assert_true(knows(&world, "a"));
    assert_true(knows(&world, "c"));
    assert_true(knows(&world, "d"));
    world_tick(&world, CLIENT_TIMEOUT_MS);
    assert_false(knows(&world, "c"));
    assert_false(knows(&world, "d"));
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_needs_the_token),
        cmocka_unit_test(without_a_broker_whatever_needs_it_is_refused),
        cmocka_unit_test(more_requests_than_can_wait_are_refused),
        cmocka_unit_test(every_mix_of_answers_to_a_manifest_has_its_outcome),
        cmocka_unit_test(an_accepted_job_is_open_where_nothing_is_needed),
        cmocka_unit_test(a_worker_without_an_inbox_is_silent),
        cmocka_unit_test(a_wrong_job_is_refused_with_the_reason),
        cmocka_unit_test(an_analysis_is_known_by_its_name),
        cmocka_unit_test(a_differing_second_put_is_refused),
        cmocka_unit_test(a_chunk_is_answered_when_the_broker_has_it),
        cmocka_unit_test(who_sends_and_never_asks_is_held_to_the_window),
        cmocka_unit_test(numbers_that_files_of_this_size_can_t_have_are_refused),
        cmocka_unit_test(a_worker_that_can_t_store_a_running_job_ends_it),
        cmocka_unit_test(a_blocked_broker_is_told),
        cmocka_unit_test(a_chunk_nobody_waits_for_is_not_published_again),
        cmocka_unit_test(a_chunk_that_is_not_sound_is_refused),
        cmocka_unit_test(an_end_is_answered_when_all_workers_will_hear_it),
        cmocka_unit_test(a_cancelled_job_is_remembered_for_its_readers),
        cmocka_unit_test(an_expired_job_is_told_to_readers_and_may_be_begun_anew),
        cmocka_unit_test(deleting_twice_is_deleting_once),
        cmocka_unit_test(a_key_is_looked_at_before_a_job_is_deleted_that_is_not_known),
        cmocka_unit_test(a_name_is_free_again_when_nothing_is_heard_of_its_job),
        cmocka_unit_test(a_delete_that_fails_leaves_the_job),
        cmocka_unit_test(lists_are_what_the_workers_tell),
        cmocka_unit_test(a_list_does_not_wait_for_the_silent),
        cmocka_unit_test(metrics_count_what_this_gateway_did),
        cmocka_unit_test(stopping_waits_for_chunks_and_answers_the_rest),
        cmocka_unit_test(stopping_does_not_wait_for_ever),
        cmocka_unit_test(the_job_longest_not_asked_for_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
