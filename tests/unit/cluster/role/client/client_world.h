/* SPDX-License-Identifier: Apache-2.0 */
/* client_world.h - gateways and a cluster as a client meets them, in one struct, with faults.
 *
 *     world_init -> world_start -> world_run* -> world_done
 *
 * Requests arrive after a while, are carried out on what stands for the cluster, and are answered
 * after another while; faults come from the seed. All that the client promises is checked as it
 * happens: what it asks for, in which order answers are handed out, how much is in flight.
 */
#ifndef UNIT_ROLE_CLIENT_WORLD_H
#define UNIT_ROLE_CLIENT_WORLD_H

#include "unit/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/base/random.h"
#include "cluster/role/client/client.h"

enum {
    WORLD_SCANS = 4, /* 0, 1 and 3 in the first phase, 2 in the second; 3 has no chunks. */
    WORLD_QUERIES = 3,
    WORLD_CHUNKS_MAX = 64,
    WORLD_PENDING_MAX = 256,
    WORLD_WORKERS = 2,
    WORLD_GATEWAYS = 3,
    WORLD_TICK_MS = 20,
    WORLD_DELAY_MAX_MS = 15, /* Of a request or a reply on its way. */
    WORLD_WAIT_MS = 3000,
    WORLD_PUT_LIMIT = 3,
    WORLD_WINDOW = 6
};

/* Per thousand, but for the last ones. */
struct world_faults {
    uint32_t refused;     /* Requests that never arrive: failed. */
    uint32_t broken;      /* Carried out, but the answer is "failed". */
    uint32_t silent;      /* Carried out, but there is no answer. */
    uint32_t unavailable; /* 503. */
    uint32_t doubled;     /* Answered twice. */
    uint32_t dropped;     /* Chunks that are accepted and then lost. */
    uint32_t garbled;     /* Views and pages that can't be read. */
    uint32_t lost_jobs;   /* How often the cluster forgets all. */
    uint32_t closings;    /* How often the second phase closes again. */
    uint32_t slot_waits;  /* 429s before the job is accepted. */
};

enum pending_kind { PENDING_ARRIVAL, PENDING_REPLY, PENDING_CHUNK };

struct pending {
    enum pending_kind kind;
    uint64_t due_ms;
    uint64_t id;
    uint64_t arrived_ms;
    struct api_request request;
    struct scan_sent sent[WORLD_SCANS];
    struct buf body;
    bool failed;
    struct api_reply reply;
    struct client_chunk chunk;
    bool is_used;
};

struct client_world {
    struct random random;
    struct world_faults faults;
    uint64_t now_ms;
    uint64_t next_tick_ms;
    struct plan plan;
    struct table tables[3];
    struct scan scans[WORLD_SCANS];
    struct plan_query queries[WORLD_QUERIES];
    struct job_request request;
    struct manifest_query request_query;
    struct client_config config;
    struct client *client;
    struct effects effects;
    struct pending pending[WORLD_PENDING_MAX];

    /* The files. */
    uint64_t chunk_count[WORLD_SCANS];
    uint64_t salt; /* Another one: the files have changed. */
    bool read_fails;

    /* The cluster. */
    bool has_job;
    bool applied[WORLD_SCANS][WORLD_CHUNKS_MAX];
    bool ended[WORLD_SCANS];
    uint64_t sent[WORLD_SCANS];
    uint64_t batch_count[WORLD_QUERIES];
    uint64_t closed_until_ms;
    bool has_failed;
    uint32_t refusal;       /* Not 0: PUT job is answered with this. */
    uint32_t chunk_refusal; /* The same for chunks. */
    bool is_dead;           /* No gateway answers. */
    uint64_t extra_batches; /* Totals lie by this, from the second page on. */
    enum job_state forced_state;
    bool has_forced_state;

    /* What the client did. */
    uint32_t puts[WORLD_SCANS][WORLD_CHUNKS_MAX];
    uint32_t accepted[WORLD_SCANS][WORLD_CHUNKS_MAX];
    uint32_t journaled[WORLD_SCANS][WORLD_CHUNKS_MAX];
    struct client_sent_chunk journal[WORLD_SCANS * WORLD_CHUNKS_MAX];
    uint64_t journal_count;
    uint32_t ends[WORLD_SCANS];
    uint64_t results[WORLD_QUERIES];
    uint64_t audit;
    uint32_t job_puts;
    uint32_t deletes;
    uint32_t views;
    uint32_t reading;
    uint32_t flying;
    struct client_progress progress;
    bool is_done;
    struct error outcome;
};

static const char world_key[] = "00112233445566778899aabbccddeeff";

static inline bool world_chance(struct client_world *world, uint32_t per_thousand)
{
    return random_below(&world->random, 1000) < per_thousand;
}

static inline uint64_t world_delay(struct client_world *world)
{
    return 1 + random_below(&world->random, WORLD_DELAY_MAX_MS);
}

static inline struct pending *world_add(struct client_world *world, enum pending_kind kind)
{
    for (uint32_t i = 0; i < WORLD_PENDING_MAX; i++) {
        struct pending *pending = &world->pending[i];
        if (pending->is_used) continue;
        *pending = (struct pending){
            .kind = kind, .due_ms = world->now_ms + world_delay(world), .is_used = true};
        return pending;
    }
    fail_msg("too much is in flight");
    return NULL;
}

static inline void world_body(const struct client_world *world, uint32_t scan, uint64_t number,
                              struct buf *out)
{
    buf_format(out, "chunk %llu of scan %u, %llu", (unsigned long long)number, scan,
               (unsigned long long)world->salt);
}

static inline uint64_t world_checksum(const struct client_world *world, uint32_t scan,
                                      uint64_t number)
{
    struct buf body = {0};
    world_body(world, scan, number, &body);
    uint64_t checksum = hash_bytes(body.bytes, body.size);
    buf_done(&body);
    return checksum;
}

/* ---- the cluster ---- */

static inline bool world_scan_complete(const struct client_world *world, uint32_t scan)
{
    for (uint64_t i = 0; i < world->chunk_count[scan]; i++) {
        if (!world->applied[scan][i]) return false;
    }
    return world->ended[scan];
}

static inline bool world_scan_open(const struct client_world *world, uint32_t scan)
{
    if (world->scans[scan].phase == 0) return true;
    if (world->now_ms < world->closed_until_ms) return false;
    for (uint32_t i = 0; i < WORLD_SCANS; i++) {
        if (world->scans[i].phase == 0 && !world_scan_complete(world, i)) return false;
    }
    return true;
}

static inline bool world_all_complete(const struct client_world *world)
{
    for (uint32_t i = 0; i < WORLD_SCANS; i++) {
        if (!world_scan_complete(world, i)) return false;
    }
    return true;
}

static inline uint64_t world_contiguous(const struct client_world *world, uint32_t scan)
{
    uint64_t number = 0;
    while (number < world->chunk_count[scan] && world->applied[scan][number]) {
        number++;
    }
    return number;
}

static inline void world_lose_job(struct client_world *world)
{
    world->has_job = false;
    memset(world->applied, 0, sizeof world->applied);
    memset(world->ended, 0, sizeof world->ended);
    memset(world->sent, 0, sizeof world->sent);
}

static inline void world_fail(struct api_reply *reply, uint32_t http, status code, const char *text)
{
    struct error err;
    error_write(&err, code, "%s", text);
    api_reply_error(reply, http, &err);
}

/* The view now; true: there is something new in it. */
static inline bool world_view(struct client_world *world, uint64_t seen, struct buf *out)
{
    struct view_scan scans[WORLD_SCANS];
    struct view_query queries[WORLD_QUERIES];
    struct view_rerequest rerequests[WORLD_SCANS];
    static uint64_t numbers[WORLD_SCANS][WORLD_CHUNKS_MAX];
    bool all = world_all_complete(world);
    struct job_view view = {
        .job = world->config.job,
        .state = all ? JOB_DONE : JOB_RUNNING,
        .phase = world_scan_open(world, 2) ? 2 : 1,
        .phase_count = 2,
        .scans = scans,
        .scan_count = WORLD_SCANS,
        .queries = queries,
        .query_count = WORLD_QUERIES,
        .rerequests = rerequests,
        .worker_count = WORLD_WORKERS,
        .workers_answering = WORLD_WORKERS,
    };
    for (uint32_t i = 0; i < WORLD_SCANS; i++) {
        uint64_t contiguous = world_contiguous(world, i);
        scans[i] = (struct view_scan){
            .scan = i,
            .table = world->tables[world->scans[i].table].name,
            .phase = world->scans[i].phase + 1,
            .open = world_scan_open(world, i),
            .ended = world->ended[i],
            .sent = world->sent[i],
            .contiguous = contiguous,
            .limit = contiguous + WORLD_WINDOW,
        };
        struct view_rerequest *rerequest = &rerequests[view.rerequest_count];
        *rerequest = (struct view_rerequest){.worker = TEXT_LITERAL("w1")};
        rerequest->rerequest =
            (struct rerequest){.scan = i, .attempt = world->now_ms / 1500, .numbers = numbers[i]};
        for (uint64_t j = 0; j < world->chunk_count[i]; j++) {
            if (world->applied[i][j]) scans[i].applied++;
            if (world->applied[i][j] || (j >= world->sent[i] && !world->ended[i])) continue;
            numbers[i][rerequest->rerequest.number_count++] = j;
        }
        if (rerequest->rerequest.number_count > 0) view.rerequest_count++;
    }
    for (uint32_t i = 0; i < WORLD_QUERIES; i++) {
        queries[i] = (struct view_query){.name = world->queries[i].name, .done = all};
    }
    if (world->has_failed) {
        view.state = JOB_FAILED;
        view.failure = STATUS_OVERFLOW;
        view.text = TEXT_LITERAL("w2: a sum is too large");
    }
    if (world->has_forced_state) view.state = world->forced_state;
    job_view_encode(&view, out);
    assert_false(out->failed);
    uint64_t hash = hash_bytes(out->bytes, out->size);
    return hash != seen || view.rerequest_count > 0 || view.state >= JOB_DONE;
}

static inline void world_put_job(struct client_world *world, struct pending *pending)
{
    struct arena arena = {0};
    struct job_request decoded;
    struct error err;
    struct text body = {(const char *)pending->body.bytes, (uint32_t)pending->body.size};
    assert_int_equal(job_request_decode(body, &arena, &decoded, &err), STATUS_OK);
    arena_done(&arena);
    world->job_puts++;
    if (world->refusal != 0) {
        world_fail(&pending->reply, world->refusal, STATUS_SQL, "line 1: no such column");
    } else if (world->faults.slot_waits > 0) {
        world->faults.slot_waits--;
        world_fail(&pending->reply, 429, STATUS_LIMIT, "all slots are taken");
        pending->reply.retry_after_ms = 1000;
    } else {
        pending->reply.status = world->has_job ? 200 : 201;
        world->has_job = true;
    }
}

static inline void world_put_chunk(struct client_world *world, struct pending *pending)
{
    uint32_t scan = pending->request.scan;
    uint64_t number = pending->request.number;
    if (world->chunk_refusal != 0) {
        world_fail(&pending->reply, world->chunk_refusal, STATUS_LIMIT, "too large");
    } else if (!world_scan_open(world, scan)) {
        world_fail(&pending->reply, 409, STATUS_INPUT, "closed");
    } else if (number >= world_contiguous(world, scan) + WORLD_WINDOW) {
        world_fail(&pending->reply, 429, STATUS_LIMIT, "beyond the window");
    } else {
        pending->reply.status = 204;
        world->accepted[scan][number]++;
        if (!world_chance(world, world->faults.dropped)) world->applied[scan][number] = true;
    }
}

static inline void world_put_end(struct client_world *world, struct pending *pending)
{
    uint32_t scan = pending->request.scan;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < world->chunk_count[scan]; i++) {
        sum += batch_hash(i, world_checksum(world, scan, i));
    }
    assert_int_equal(pending->request.end_count, world->chunk_count[scan]);
    assert_int_equal(pending->request.end_sum, sum);
    pending->reply.status = 204;
    world->ends[scan]++;
    if (!world_chance(world, world->faults.dropped)) world->ended[scan] = true;
}

static inline uint32_t world_query_of(const struct client_world *world, struct text name)
{
    uint32_t query = 0;
    while (query < WORLD_QUERIES && !text_equal(world->queries[query].name, name)) {
        query++;
    }
    return query;
}

static inline void world_get_result(struct client_world *world, struct pending *pending)
{
    uint32_t query = world_query_of(world, pending->request.query);
    uint64_t from = pending->request.number;
    bool is_audit = query == WORLD_QUERIES;
    if (is_audit) assert_true(text_equal(pending->request.query, TEXT_LITERAL(API_AUDIT)));
    if (!world_all_complete(world)) {
        world_fail(&pending->reply, 409, STATUS_INPUT, "not ready");
        return;
    }
    struct result_batch batches[3] = {{0}};
    char texts[3][64];
    uint64_t total = is_audit ? WORLD_WORKERS : world->batch_count[query];
    if (from > 0) total += world->extra_batches;
    struct result_page page = {.total = total, .batches = batches};
    uint32_t most = is_audit ? 1 : 1 + random_below(&world->random, 3);
    for (uint64_t i = from; i < total && page.batch_count < most; i++) {
        int size = snprintf(texts[page.batch_count], sizeof texts[0], "%u:%llu", query,
                            (unsigned long long)i);
        batches[page.batch_count] =
            (struct result_batch){i, {texts[page.batch_count], (uint32_t)size}};
        page.batch_count++;
    }
    pending->reply.status = 200;
    result_page_encode(&page, &pending->reply.body);
}

/* Whether it is answered now. */
static inline bool world_get_job(struct client_world *world, struct pending *pending)
{
    for (uint32_t i = 0; i < pending->request.sent_count; i++) {
        const struct scan_sent *sent = &pending->sent[i];
        for (uint64_t j = 0; j < sent->count; j++) {
            assert_true(world->accepted[sent->scan][j] > 0);
        }
        world->sent[sent->scan] = sent->count;
    }
    pending->reply.status = 200;
    buf_reset(&pending->reply.body);
    bool is_new = world_view(world, pending->request.seen, &pending->reply.body);
    return is_new || world->now_ms >= pending->arrived_ms + pending->request.wait_ms;
}

/* Carries the request out; false: it waits. */
static inline bool world_serve(struct client_world *world, struct pending *pending)
{
    const struct api_request *request = &pending->request;
    if (request->kind == API_PUT_JOB) {
        world_put_job(world, pending);
    } else if (request->kind == API_DELETE_JOB) {
        world_lose_job(world);
        world->deletes++;
        pending->reply.status = 204;
    } else if (!world->has_job) {
        world_fail(&pending->reply, 404, STATUS_INPUT, "no such job");
    } else if (request->kind == API_PUT_CHUNK) {
        world_put_chunk(world, pending);
    } else if (request->kind == API_PUT_END) {
        world_put_end(world, pending);
    } else if (request->kind == API_GET_RESULT) {
        world_get_result(world, pending);
    } else {
        return world_get_job(world, pending);
    }
    return true;
}

/* ---- what the client wants done ---- */

static inline void world_on_request(struct client_world *world, struct effect_request *effect)
{
    struct pending *pending = world_add(world, PENDING_ARRIVAL);
    const struct api_request *request = &effect->api;
    pending->id = effect->id;
    pending->request = *request;
    pending->body = effect->body;
    effect->body = (struct buf){0};
    assert_true(effect->gateway < WORLD_GATEWAYS);
    assert_true(text_equal(request->job, world->config.job));
    assert_true(request->has_owner);
    assert_true(request->owner == hash_bytes(world_key, sizeof world_key - 1));
    assert_true(request->sent_count <= WORLD_SCANS);
    if (request->sent_count > 0) {
        memcpy(pending->sent, request->sent, sizeof *pending->sent * request->sent_count);
    }
    if (request->kind == API_GET_JOB) world->views++;
    if (request->kind != API_PUT_CHUNK) return;
    assert_true(request->number < world->chunk_count[request->scan]);
    assert_true(request->has_checksum);
    assert_true(request->checksum == hash_bytes(pending->body.bytes, pending->body.size));
    if (world->salt == 0) {
        assert_true(request->checksum == world_checksum(world, request->scan, request->number));
    }
    world->puts[request->scan][request->number]++;
    world->flying++;
    assert_true(world->flying <= WORLD_PUT_LIMIT || world->faults.silent > 0);
}

static inline void world_on_read(struct client_world *world, const struct effect_read *effect)
{
    struct pending *pending = world_add(world, PENDING_CHUNK);
    uint64_t count = world->chunk_count[effect->scan];
    world->reading++;
    assert_true(world->reading <= WORLD_PUT_LIMIT + 2);
    assert_true(effect->number < count || effect->number == 0);
    pending->chunk = (struct client_chunk){
        .scan = effect->scan,
        .number = effect->number,
        .is_last = effect->number + 1 >= count,
        .is_none = count == 0,
    };
    if (count == 0) return;
    world_body(world, effect->scan, effect->number, &pending->chunk.body);
    pending->chunk.checksum = world_checksum(world, effect->scan, effect->number);
}

static inline void world_on_journal(struct client_world *world, const struct buf *journal)
{
    struct buf_reader reader = {.bytes = journal->bytes, .size = journal->size};
    assert_int_equal(reader.size, CLIENT_JOURNAL_RECORD);
    struct client_sent_chunk chunk = {.scan = (uint32_t)buf_get_u64(&reader)};
    chunk.number = buf_get_u64(&reader);
    chunk.checksum = buf_get_u64(&reader);
    assert_true(chunk.scan < WORLD_SCANS && chunk.number < world->chunk_count[chunk.scan]);
    assert_int_equal(++world->journaled[chunk.scan][chunk.number], 1);
    world->journal[world->journal_count++] = chunk;
}

static inline void world_on_result(struct client_world *world, const struct effect_result *effect)
{
    char expected[64];
    uint32_t query = effect->query;
    bool is_audit = query == WORLD_QUERIES;
    uint64_t *next = is_audit ? &world->audit : &world->results[query];
    for (uint32_t i = 0; is_audit && i < query; i++) {
        assert_int_equal(world->results[i], world->batch_count[i]);
    }
    int size = snprintf(expected, sizeof expected, "%u:%llu", query, (unsigned long long)*next);
    assert_int_equal(effect->number, *next);
    assert_int_equal(effect->count, is_audit ? WORLD_WORKERS : world->batch_count[query]);
    assert_int_equal(effect->bytes.size, size);
    assert_memory_equal(effect->bytes.bytes, expected, (size_t)size);
    ++*next;
}

static inline void world_carry_out(struct client_world *world)
{
    assert_false(world->effects.failed);
    for (uint32_t i = 0; i < world->effects.count; i++) {
        struct effect *effect = &world->effects.items[i];
        assert_false(world->is_done); /* Nothing comes after the end. */
        switch (effect->kind) {
        case EFFECT_REQUEST:
            world_on_request(world, &effect->request);
            break;
        case EFFECT_READ:
            world_on_read(world, &effect->read);
            break;
        case EFFECT_JOURNAL:
            world_on_journal(world, &effect->journal);
            break;
        case EFFECT_RESULT:
            world_on_result(world, &effect->result);
            break;
        case EFFECT_AUDIT:
            world_on_result(world, &(struct effect_result){.query = WORLD_QUERIES,
                                                           .number = effect->audit.number,
                                                           .count = effect->audit.count,
                                                           .bytes = effect->audit.bytes});
            break;
        case EFFECT_PROGRESS:
            assert_memory_not_equal(&effect->progress, &world->progress, sizeof world->progress);
            world->progress = effect->progress;
            break;
        case EFFECT_DONE:
            world->is_done = true;
            world->outcome = *effect->outcome;
            break;
        case EFFECT_SAY:
            break;
        default:
            fail_msg("effect %d is not a client's", (int)effect->kind);
        }
    }
    effects_reset(&world->effects);
}

static inline void world_step(struct client_world *world, struct client_event *event)
{
    event->now_ms = world->now_ms;
    client_step(world->client, event, &world->effects);
    world_carry_out(world);
}

static inline void world_send(struct client_world *world, enum client_event_kind kind)
{
    world_step(world, &(struct client_event){.kind = kind});
}

/* ---- time ---- */

static inline void pending_done(struct pending *pending)
{
    buf_done(&pending->body);
    buf_done(&pending->reply.body);
    buf_done(&pending->chunk.body);
    pending->is_used = false;
}

static inline void world_garble(struct client_world *world, struct pending *pending)
{
    struct buf *body = &pending->reply.body;
    if (pending->reply.status != 200 || body->size == 0) return;
    if (world_chance(world, world->faults.garbled)) body->size /= 2;
}

/* A request arrives: it is lost, refused or carried out, and so is the answer. */
static inline void world_arrival(struct client_world *world, struct pending *pending)
{
    const struct world_faults *faults = &world->faults;
    bool is_first = pending->arrived_ms == 0;
    if (is_first) pending->arrived_ms = world->now_ms;
    bool is_refused = world->is_dead || (is_first && world_chance(world, faults->refused));
    if (is_refused) {
        pending->failed = true;
    } else if (is_first && world_chance(world, faults->unavailable)) {
        world_fail(&pending->reply, 503, STATUS_IO, "no broker");
    } else if (!world_serve(world, pending)) {
        pending->due_ms = world->now_ms + 50;
        return;
    }
    if (!is_refused) world_garble(world, pending);
    pending->failed = pending->failed || world_chance(world, faults->broken);
    pending->kind = PENDING_REPLY;
    pending->due_ms = world->now_ms + world_delay(world);
    if (pending->request.kind == API_PUT_CHUNK) world->flying--;
    if (world_chance(world, faults->silent)) pending_done(pending);
}

static inline void world_deliver(struct client_world *world, struct pending *pending)
{
    struct client_event event = {
        .kind = CLIENT_REPLY,
        .reply = {.request_id = pending->id, .reply = pending->failed ? NULL : &pending->reply}};
    uint32_t times = world_chance(world, world->faults.doubled) ? 2 : 1;
    for (uint32_t i = 0; i < times && !world->is_done; i++) {
        world_step(world, &event);
    }
    pending_done(pending);
}

static inline void world_read(struct client_world *world, struct pending *pending)
{
    struct error err;
    struct client_event event = {.kind = CLIENT_READ, .read = {.chunk = &pending->chunk}};
    world->reading--;
    if (world->read_fails) {
        error_write(&err, STATUS_INPUT, "t0.csv changed while it was being read");
        event.read.chunk = NULL;
        event.read.error = &err;
    }
    world_step(world, &event);
    pending_done(pending);
}

static inline void world_chaos(struct client_world *world)
{
    if (world->faults.lost_jobs > 0 && world->has_job && world_chance(world, 10)) {
        world->faults.lost_jobs--;
        world_lose_job(world);
    }
    if (world->faults.closings > 0 && world_scan_open(world, 2) && world_chance(world, 20)) {
        world->faults.closings--;
        world->closed_until_ms = world->now_ms + 700;
    }
}

/* The next thing that happens. */
static inline void world_advance(struct client_world *world)
{
    struct pending *next = NULL;
    for (uint32_t i = 0; i < WORLD_PENDING_MAX; i++) {
        struct pending *pending = &world->pending[i];
        if (pending->is_used && (next == NULL || pending->due_ms < next->due_ms)) next = pending;
    }
    if (next == NULL || next->due_ms > world->next_tick_ms) {
        world->now_ms = world->next_tick_ms;
        world->next_tick_ms += WORLD_TICK_MS;
        world_chaos(world);
        world_send(world, CLIENT_TICK);
        return;
    }
    if (next->due_ms > world->now_ms) world->now_ms = next->due_ms;
    switch (next->kind) {
    case PENDING_ARRIVAL:
        world_arrival(world, next);
        return;
    case PENDING_REPLY:
        world_deliver(world, next);
        return;
    case PENDING_CHUNK:
        world_read(world, next);
        return;
    }
}

static inline void world_run(struct client_world *world, uint64_t until_ms)
{
    while (!world->is_done && world->now_ms < until_ms) {
        world_advance(world);
    }
}

/* ---- incarnation ---- */

static inline void world_init(struct client_world *world, uint64_t seed, struct world_faults faults)
{
    static const struct text query_names[WORLD_QUERIES] = {TEXT_INIT("q1"), TEXT_INIT("q2"),
                                                           TEXT_INIT("q3")};
    static const struct text table_names[3] = {TEXT_INIT("t0"), TEXT_INIT("t1"), TEXT_INIT("t2")};
    *world = (struct client_world){.random = {seed}, .faults = faults, .now_ms = 1000};
    world->next_tick_ms = world->now_ms;
    for (uint32_t i = 0; i < 3; i++) {
        world->tables[i].name = table_names[i];
    }
    for (uint32_t i = 0; i < WORLD_SCANS; i++) {
        world->scans[i] = (struct scan){.id = i, .table = i == 2 ? 0 : i % 3, .phase = i == 2};
        world->chunk_count[i] = 1 + random_below(&world->random, 30);
    }
    world->scans[3].table = 2;
    world->chunk_count[2] = world->chunk_count[0];
    world->chunk_count[3] = 0;
    for (uint32_t i = 0; i < WORLD_QUERIES; i++) {
        world->queries[i].name = query_names[i];
        world->batch_count[i] = random_below(&world->random, 8);
    }
    world->plan = (struct plan){
        .tables = world->tables,
        .table_count = 3,
        .scans = world->scans,
        .scan_count = WORLD_SCANS,
        .queries = world->queries,
        .query_count = WORLD_QUERIES,
        .phase_count = 2,
    };
    world->request_query = (struct manifest_query){TEXT_LITERAL("q1"), TEXT_LITERAL("SELECT 1")};
    world->request = (struct job_request){
        .build = TEXT_LITERAL("1"), .queries = &world->request_query, .query_count = 1};
    world->config = (struct client_config){
        .job = TEXT_LITERAL("job-1"),
        .owner_key = TEXT_LITERAL(world_key),
        .request = &world->request,
        .plan = &world->plan,
        .gateway_count = WORLD_GATEWAYS,
        .put_limit = WORLD_PUT_LIMIT,
        .wait_ms = WORLD_WAIT_MS,
        .request_timeout_ms = 500,
        .retry_first_ms = 50,
        .retry_max_ms = 1000,
        .retry_for_ms = 20000,
        .seed = seed,
    };
}

static inline void world_start(struct client_world *world)
{
    struct error err;
    assert_int_equal(client_create(&world->config, &world->client, &err), STATUS_OK);
    world_send(world, CLIENT_STARTED);
}

/* The client is killed; the cluster continues. */
static inline void world_kill(struct client_world *world)
{
    for (uint32_t i = 0; i < WORLD_PENDING_MAX; i++) {
        if (world->pending[i].is_used) pending_done(&world->pending[i]);
    }
    client_destroy(world->client);
    world->client = NULL;
    world->reading = 0;
    world->flying = 0;
    world->progress = (struct client_progress){0};
}

static inline void world_done(struct client_world *world)
{
    world_kill(world);
    effects_done(&world->effects);
}

#endif
