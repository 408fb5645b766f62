/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_world.h - a gateway without a world: events by hand, effects looked at one by one.
 *
 * Three workers: w1 and w2 map and fold, w3 only maps. The job has an aggregate query and a join
 * with a build side, so that it has a phase that opens late. Effects are those of the last step.
 */
#ifndef UNIT_ROLE_GATEWAY_WORLD_H
#define UNIT_ROLE_GATEWAY_WORLD_H

#include "unit/test.h"

#include <stdio.h>

#include "engine/base/hash.h"
#include "cluster/role/gateway/gateway.h"
#include "cluster/role/job_layout.h"

enum {
    WORKERS = 3,
    PERIOD_MS = 100,
    ROUND_DEADLINE_MS = 300,
    REPLY_DEADLINE_MS = 2000,
    CLIENT_TIMEOUT_MS = 10000,
    WINDOW = 8,
    JOBS = 3,
    REQUESTS = 6,
    MAX_MESSAGE = 64 << 10,
    OWNER = 77
};

static const struct manifest_worker world_workers[WORKERS] = {
    {TEXT_INIT("w1"), true, true},
    {TEXT_INIT("w2"), true, true},
    {TEXT_INIT("w3"), true, false},
};

#define WORLD_TABLES                                                                               \
    "CREATE TABLE sales (id INT NOT NULL, store INT NOT NULL, amount INT) FROM 'sales.csv';\n"     \
    "CREATE TABLE stores (store INT NOT NULL, name TEXT NOT NULL) FROM 'stores.csv';\n"
#define WORLD_TOTALS "SELECT store, sum(amount) AS total FROM sales GROUP BY store"
#define WORLD_NAMES                                                                                \
    "SELECT name, sum(amount) AS total FROM sales JOIN stores ON sales.store = stores.store "      \
    "GROUP BY name"

static const struct manifest_query world_queries[] = {
    {TEXT_INIT("totals"), TEXT_INIT(WORLD_TOTALS)},
    {TEXT_INIT("names"), TEXT_INIT(WORLD_NAMES)},
};

static const struct gateway_analysis world_analyses[] = {
    {TEXT_INIT("shops"), TEXT_INIT(WORLD_TABLES), world_queries, 2},
};

static const struct manifest_file world_files[] = {
    {TEXT_INIT("sales.csv"), 1000000},
    {TEXT_INIT("stores.csv"), 100},
};

static const struct manifest_table world_tables[] = {
    {TEXT_INIT("sales"), &world_files[0], 1},
    {TEXT_INIT("stores"), &world_files[1], 1},
};

struct gateway_world {
    struct gateway *gateway;
    struct effects effects;
    struct arena arena; /* Of messages looked at, until the end. */
    uint64_t now_ms;
    uint64_t last_id;
    uint64_t last_delivery;
    struct job_layout *layout; /* Once the job was put. */
    uint32_t early, late;      /* Scans: of the build side, and the one that needs it. */
    uint64_t fail_after;       /* Of the next step only; UINT64_MAX: nothing fails. */
    bool refused;              /* It came to that. */
};

static inline struct gateway_config world_config(void)
{
    return (struct gateway_config){
        .name = TEXT_LITERAL("g1"),
        .workers = world_workers,
        .worker_count = WORKERS,
        .analyses = world_analyses,
        .analysis_count = 1,
        .work_queue_count = 4,
        .shard_count = 8,
        .window = WINDOW,
        .broadcast_limit = 1 << 20,
        .memory_limit = 1 << 30,
        .log_limit = 1 << 30,
        .max_message = MAX_MESSAGE,
        .sync_period_ms = PERIOD_MS,
        .sync_deadline_ms = ROUND_DEADLINE_MS,
        .reply_deadline_ms = REPLY_DEADLINE_MS,
        .client_timeout_ms = CLIENT_TIMEOUT_MS,
        .job_limit = JOBS,
        .request_limit = REQUESTS,
        .seed = 5,
    };
}

/* ---- steps ---- */

static inline void world_step(struct gateway_world *world, struct event *event)
{
    effects_reset(&world->effects);
    event->now_ms = world->now_ms;
    if (world->fail_after != UINT64_MAX) memory_fail_after(world->fail_after);
    gateway_step(world->gateway, event, &world->effects);
    if (world->fail_after != UINT64_MAX) {
        world->refused = memory_was_refused();
        memory_fail_never();
        world->fail_after = UINT64_MAX;
    }
    event_done(event);
}

static inline void world_event(struct gateway_world *world, enum event_kind kind)
{
    struct event event = {.kind = kind};
    world_step(world, &event);
}

static inline void world_bus(struct gateway_world *world, enum bus_event_kind kind)
{
    struct event event = {.kind = EVENT_BUS, .bus = {.kind = kind}};
    world_step(world, &event);
}

static inline void world_tick(struct gateway_world *world, uint64_t later_ms)
{
    world->now_ms += later_ms;
    world_event(world, EVENT_TICK);
}

static inline void world_settle(struct gateway_world *world, enum bus_event_kind kind,
                                uint64_t token)
{
    struct event event = {.kind = EVENT_BUS, .bus = {.kind = kind, .token = token}};
    world_step(world, &event);
}

static inline void world_gone(struct gateway_world *world, uint64_t id)
{
    struct event event = {.kind = EVENT_GONE, .gone_id = id};
    world_step(world, &event);
}

/* Gives the request's id. */
static inline uint64_t world_ask(struct gateway_world *world, const struct api_request *request)
{
    struct event event = {.kind = EVENT_REQUEST,
                          .request = {.id = ++world->last_id, .api = request}};
    world_step(world, &event);
    return world->last_id;
}

static inline void world_open_with(struct gateway_world *world, const struct gateway_config *config)
{
    struct error err;
    *world = (struct gateway_world){.now_ms = 1000, .fail_after = UINT64_MAX};
    arena_init(&world->arena, NULL);
    assert_int_equal(gateway_create(config, &world->gateway, &err), STATUS_OK);
    world_event(world, EVENT_STARTED);
    world_bus(world, BUS_CONNECTED);
}

static inline void world_open(struct gateway_world *world)
{
    struct gateway_config config = world_config();
    world_open_with(world, &config);
}

static inline void world_close(struct gateway_world *world)
{
    gateway_destroy(world->gateway);
    effects_done(&world->effects);
    job_layout_release(world->layout);
    arena_done(&world->arena);
}

/* ---- what came out ---- */

static inline const struct effect *world_find(const struct gateway_world *world,
                                              enum effect_kind kind)
{
    for (uint32_t i = 0; i < world->effects.count; i++) {
        if (world->effects.items[i].kind == kind) return &world->effects.items[i];
    }
    return NULL;
}

static inline uint32_t world_count(const struct gateway_world *world, enum effect_kind kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < world->effects.count; i++) {
        count += world->effects.items[i].kind == kind;
    }
    return count;
}

static inline const struct effect_reply *world_reply(const struct gateway_world *world, uint64_t id)
{
    const struct effect_reply *found = NULL;
    for (uint32_t i = 0; i < world->effects.count; i++) {
        const struct effect *effect = &world->effects.items[i];
        if (effect->kind != EFFECT_REPLY || effect->reply.request_id != id) continue;
        assert_null(found);
        found = &effect->reply;
    }
    return found;
}

/* 0: not answered in this step. */
static inline uint32_t world_answer(const struct gateway_world *world, uint64_t id)
{
    const struct effect_reply *reply = world_reply(world, id);
    return reply == NULL ? 0 : reply->api.status;
}

static inline bool world_says(const struct gateway_world *world, uint64_t id, const char *words)
{
    const struct effect_reply *reply = world_reply(world, id);
    return reply != NULL &&
           memmem(reply->api.body.bytes, reply->api.body.size, words, strlen(words)) != NULL;
}

static inline bool world_decode(struct gateway_world *world, const struct effect_send *send,
                                struct message *out)
{
    struct error err;
    struct text bytes = {(const char *)send->bytes.bytes, (uint32_t)send->bytes.size};
    return message_decode(bytes, &world->arena, out, &err) == STATUS_OK;
}

/* The message of a kind to a node (NULL: to a work queue) among the effects. */
static inline const struct effect_send *world_sent(struct gateway_world *world, const char *to,
                                                   enum message_kind kind, struct message *out)
{
    for (uint32_t i = 0; i < world->effects.count; i++) {
        const struct effect *effect = &world->effects.items[i];
        if (effect->kind != EFFECT_SEND || strcmp(effect->send.to, to == NULL ? "" : to) != 0)
            continue;
        assert_true(world_decode(world, &effect->send, out));
        if (out->kind == kind) return &effect->send;
    }
    return NULL;
}

static inline uint32_t world_sent_count(struct gateway_world *world, enum message_kind kind)
{
    uint32_t count = 0;
    struct message message;
    for (uint32_t i = 0; i < world->effects.count; i++) {
        if (world->effects.items[i].kind != EFFECT_SEND) continue;
        assert_true(world_decode(world, &world->effects.items[i].send, &message));
        count += message.kind == kind;
    }
    return count;
}

static inline bool world_revokes(const struct gateway_world *world, uint64_t token)
{
    for (uint32_t i = 0; i < world->effects.count; i++) {
        const struct effect *effect = &world->effects.items[i];
        if (effect->kind == EFFECT_REVOKE && effect->revoked_token == token) return true;
    }
    return false;
}

/* The view in an answer. */
static inline struct job_view world_view(struct gateway_world *world, uint64_t id)
{
    const struct effect_reply *reply = world_reply(world, id);
    struct error err;
    struct job_view view;
    assert_non_null(reply);
    assert_string_equal(reply->api.content_type, "application/json");
    char *copy = arena_copy_string(&world->arena, (struct text){(const char *)reply->api.body.bytes,
                                                                (uint32_t)reply->api.body.size});
    assert_int_equal(job_view_decode(text_of(copy), &world->arena, &view, &err), STATUS_OK);
    return view;
}

/* ---- what workers say ---- */

static inline void world_deliver(struct gateway_world *world, const struct message *message)
{
    struct event event = {
        .kind = EVENT_BUS,
        .bus = {.kind = BUS_DELIVERY, .delivery = {.id = ++world->last_delivery}}};
    message_encode(message, &event.bus.delivery.bytes);
    assert_false(event.bus.delivery.bytes.failed);
    world_step(world, &event);
    if (world->effects.failed) return;
    assert_int_equal(world_count(world, EFFECT_ACK), 1);
    assert_int_equal(world_find(world, EFFECT_ACK)->delivery, world->last_delivery);
}

static inline struct message world_message(const struct gateway_world *world,
                                           enum message_kind kind, uint32_t worker)
{
    return (struct message){.kind = kind,
                            .job = TEXT_LITERAL("j1"),
                            .manifest = world->layout != NULL ? world->layout->hash : 0,
                            .from = world_workers[worker].name};
}

static inline void world_stored(struct gateway_world *world, uint64_t number, uint32_t worker,
                                enum stored_outcome outcome)
{
    struct message message = world_message(world, MESSAGE_STORED, worker);
    message.stored = (struct message_stored){.request = number, .outcome = outcome};
    if (outcome == STORED_REFUSED) message.stored.text = TEXT_LITERAL("no room for it");
    world_deliver(world, &message);
}

static inline void world_status(struct gateway_world *world, uint32_t worker,
                                const struct message_status *status_now)
{
    struct message message = world_message(world, MESSAGE_STATUS, worker);
    message.status = *status_now;
    world_deliver(world, &message);
}

/* The same from all workers, which are in the given state and have nothing. */
static inline void world_status_all(struct gateway_world *world, uint64_t number,
                                    enum worker_job_state state)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        struct message_status now = {.request = number, .state = state, .maps = true};
        world_status(world, i, &now);
    }
}

/* ---- what clients ask ---- */

static inline struct api_request world_request(enum api_kind kind)
{
    return (struct api_request){
        .kind = kind, .job = TEXT_LITERAL("j1"), .has_owner = true, .owner = OWNER};
}

static inline struct job_request world_job(void)
{
    return (struct job_request){
        .build = text_of(job_layout_build),
        .tables_sql = TEXT_LITERAL(WORLD_TABLES),
        .queries = world_queries,
        .query_count = 2,
        .tables = world_tables,
        .table_count = 2,
        .chunk_bytes = 1,
        .field_limit = 4096,
    };
}

static inline uint64_t world_put(struct gateway_world *world, const struct job_request *job,
                                 const char *id)
{
    struct buf body = {0};
    struct api_request request = world_request(API_PUT_JOB);
    struct error err;
    assert_int_equal(job_request_encode(job, &body, &err), STATUS_OK);
    request.job = text_of(id);
    request.body = (struct text){(const char *)body.bytes, (uint32_t)body.size};
    uint64_t asked = world_ask(world, &request);
    buf_done(&body);
    return asked;
}

/* Keeps the layout of the job just put; gives the number under which workers answer. */
static inline uint64_t world_learn(struct gateway_world *world)
{
    struct error err;
    struct message message;
    assert_non_null(world_sent(world, "w1", MESSAGE_MANIFEST, &message));
    job_layout_release(world->layout);
    world->layout = NULL;
    assert_int_equal(job_layout_create(message.store.bytes, NULL, &world->layout, &err), STATUS_OK);
    assert_true(world->layout->hash == message.manifest);
    const struct plan *plan = world->layout->plan;
    for (uint32_t i = 0; i < plan->scan_count; i++) {
        if (plan->scans[i].phase == 0) world->early = i;
        if (plan->scans[i].phase == 1) world->late = i;
    }
    assert_int_equal(plan->phase_count, 2);
    return message.store.request;
}

/* Job j1, accepted by all. */
static inline void world_accept(struct gateway_world *world)
{
    struct job_request job = world_job();
    uint64_t id = world_put(world, &job, "j1");
    uint64_t number = world_learn(world);
    for (uint32_t i = 0; i < WORKERS; i++) {
        world_stored(world, number, i, STORED_NEW);
    }
    assert_int_equal(world_answer(world, id), 201);
}

/* The number of the round that began in the last step; 0: none did. */
static inline uint64_t world_round(struct gateway_world *world)
{
    struct message first, other;
    if (world_sent(world, "w1", MESSAGE_SYNC, &first) == NULL) return 0;
    assert_int_equal(world_sent_count(world, MESSAGE_SYNC), WORKERS);
    assert_non_null(world_sent(world, "w2", MESSAGE_SYNC, &other));
    assert_true(other.sync.request == first.sync.request);
    assert_non_null(world_sent(world, "w3", MESSAGE_SYNC, &other));
    assert_true(other.sync.request == first.sync.request);
    return first.sync.request;
}

/* The body of a chunk of a scan, sound in every way. */
static inline void world_chunk(struct gateway_world *world, uint32_t scan, uint64_t number,
                               struct buf *body, struct api_request *out)
{
    static const uint32_t map[] = {0, 1, 2};
    const struct plan *plan = world->layout->plan;
    struct chunk_body chunk = {
        .first_line = 2,
        .file_columns = 3,
        .column_map = map,
        .column_count = plan->tables[plan->scans[scan].table].schema.count,
        .bytes = TEXT_LITERAL("1,2,3\n"),
    };
    buf_reset(body);
    chunk_body_encode(&chunk, body);
    assert_false(body->failed);
    *out = world_request(API_PUT_CHUNK);
    out->scan = scan;
    out->number = number;
    out->body = (struct text){(const char *)body->bytes, (uint32_t)body->size};
    out->has_checksum = true;
    out->checksum = hash_bytes(body->bytes, body->size);
}

static inline uint64_t world_put_chunk(struct gateway_world *world, uint32_t scan, uint64_t number)
{
    struct buf body = {0};
    struct api_request request;
    world_chunk(world, scan, number, &body, &request);
    uint64_t id = world_ask(world, &request);
    buf_done(&body);
    return id;
}

static inline uint64_t world_get(struct gateway_world *world, uint32_t wait_ms)
{
    struct api_request request = world_request(API_GET_JOB);
    request.wait_ms = wait_ms;
    return world_ask(world, &request);
}

/* A gateway that does not know the job that another has accepted. */
static inline void world_open_late(struct gateway_world *world)
{
    struct gateway_world other;
    world_open(&other);
    world_accept(&other);
    world_open(world);
    world->layout = job_layout_keep(other.layout);
    world->early = other.early;
    world->late = other.late;
    world_close(&other);
}

/* How a worker may stand to a job; ready: with copies of all build sides. */
enum worker_kind { KIND_SILENT, KIND_UNKNOWN, KIND_BARE, KIND_READY, KINDS };

static inline struct message_status world_status_of(const struct gateway_world *world,
                                                    uint64_t round, enum worker_kind kind,
                                                    uint32_t *copies)
{
    const struct plan *plan = world->layout->plan;
    struct message_status now = {.request = round, .maps = true, .copies = copies};
    now.state = kind == KIND_UNKNOWN ? WORKER_JOB_UNKNOWN : WORKER_JOB_RUNNING;
    for (uint32_t i = 0; kind == KIND_READY && i < plan->fold_count; i++) {
        if (world->layout->copied[i]) copies[now.copy_count++] = i;
    }
    return now;
}

#endif
