/* SPDX-License-Identifier: Apache-2.0 */
/* sim_client.c - a client as a process: reads chunks, sends requests, keeps a journal and the
 * answers, and may be killed at any effect.
 *
 * Answers are checked as they arrive: each batch once and in order, parts of the audit likewise. A
 * client that is killed begins its output anew, as a process does.
 */
#include "cluster/sim/jobs/sim_client.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/base/assert.h"
#include "cluster/sim/jobs/cluster.h"

enum { TICK_MS = 50, READ_MS = 3, INCARNATION_BITS = 16, SCAN_BITS = 8, NUMBER_BITS = 40 };

static void restart_timer(void *context, uint64_t incarnation);

/* ---- reading ---- */

static const struct scenario_table *table_of(const struct sim_client *client, uint32_t scan)
{
    const struct plan *plan = client->scenario->plan;
    ASSERT(scan < plan->scan_count);
    return &client->scenario->tables[plan->scans[scan].table];
}

static void step(struct sim_client *client, struct client_event *event);

/* A read that is under way: incarnation, scan and number in one. */
static uint64_t read_pack(const struct sim_client *client, uint32_t scan, uint64_t number)
{
    uint64_t incarnation = client->incarnation & (((uint64_t)1 << INCARNATION_BITS) - 1);
    ASSERT(scan < 1u << SCAN_BITS && number < (uint64_t)1 << NUMBER_BITS);
    return incarnation << (SCAN_BITS + NUMBER_BITS) | (uint64_t)scan << NUMBER_BITS | number;
}

static void read_timer(void *context, uint64_t packed)
{
    struct sim_client *client = context;
    uint32_t scan = (uint32_t)(packed >> NUMBER_BITS) & ((1u << SCAN_BITS) - 1);
    uint64_t number = packed & (((uint64_t)1 << NUMBER_BITS) - 1);
    if (!client->is_up || read_pack(client, scan, number) != packed) return;
    const struct scenario_table *table = table_of(client, scan);
    struct client_chunk chunk = {
        .scan = scan, .number = number, .is_last = number + 1 >= table->chunk_count};
    if (number >= table->chunk_count) {
        chunk.is_none = true;
    } else {
        buf_put(&chunk.body, table->chunks[number].body.bytes, table->chunks[number].body.size);
        chunk.checksum = table->chunks[number].checksum;
    }
    struct client_event event = {.kind = CLIENT_READ, .read = {.chunk = &chunk}};
    step(client, &event);
    buf_done(&chunk.body);
}

/* ---- effects ---- */

/* The place of a chunk among all of the job. */
static unsigned char *chunk_mark(struct sim_client *client, uint32_t scan, uint64_t number)
{
    uint64_t at = number;
    uint32_t scan_count = client->scenario->plan->scan_count;
    if (scan >= scan_count) at = UINT64_MAX;
    for (uint32_t i = 0; i < scan && scan < scan_count; i++) {
        at += table_of(client, i)->chunk_count;
    }
    if (at < client->scenario->chunk_count) return &client->seen[at];
    world_fail(&client->cluster->world, "client %u sends a chunk that there is not",
               client->number);
    return NULL;
}

/* The profiles have a budget for chunks sent again. Chunks of an adversary that has taken the name
 * of a job that is over do not count: the manifest tells them apart. */
void sim_client_sent(struct cluster *cluster, const struct message *message)
{
    for (uint32_t i = 0; i < cluster->settings.client_count; i++) {
        struct sim_client *client = &cluster->clients[i];
        if (!text_equal(text_of(client->job), message->job)) continue;
        if (message->manifest != client->manifest) continue;
        unsigned char *mark = chunk_mark(client, message->chunk.scan, message->chunk.number);
        if (mark == NULL) continue;
        client->put_count++;
        if (*mark != 0) client->again_count++;
        *mark = 1;
    }
}

static void make_request(struct sim_client *client, const struct effect_request *effect)
{
    struct cluster *cluster = client->cluster;
    struct api_request request = effect->api;
    request.body = (struct text){(const char *)effect->body.bytes, (uint32_t)effect->body.size};
    if (request.kind == API_DELETE_JOB) client->is_leaving = true;
    uint32_t gateway = effect->gateway;
    if (cluster->settings.spread) {
        gateway = world_below(&cluster->world, cluster->settings.gateway_count);
    }
    if (gateway >= cluster->settings.gateway_count) {
        world_fail(&cluster->world, "client %u asks gateway %u", client->number, gateway);
        return;
    }
    sim_http_request(&cluster->http, client->number, gateway, effect->id, &request);
}

static void keep_journal(struct sim_client *client, const struct buf *journal)
{
    struct buf_reader reader = {.bytes = journal->bytes, .size = journal->size};
    while (buf_left(&reader) >= CLIENT_JOURNAL_RECORD) {
        struct client_sent_chunk chunk = {0};
        chunk.scan = (uint32_t)buf_get_u64(&reader);
        chunk.number = buf_get_u64(&reader);
        chunk.checksum = buf_get_u64(&reader);
        buf_put(&client->journal, &chunk, sizeof chunk);
    }
    if (buf_left(&reader) != 0) {
        world_fail(&client->cluster->world, "a record of the journal is cut");
    }
}

static void keep_rows(struct sim_client *client, const struct effect_result *result)
{
    struct world *world = &client->cluster->world;
    if (result->query >= client->scenario->plan->query_count) {
        world_fail(world, "client %u: an answer to a question not asked", client->number);
        return;
    }
    struct sim_answer *answer = &client->answers[result->query];
    if (result->number != answer->next || (answer->next > 0 && result->count != answer->total)) {
        world_fail(world, "client %u: batch %llu of %llu came where %llu of %llu was due",
                   client->number, (unsigned long long)result->number,
                   (unsigned long long)result->count, (unsigned long long)answer->next,
                   (unsigned long long)answer->total);
        return;
    }
    answer->next++;
    answer->total = result->count;
    exchange_count_add_answer(&client->counters.taken[result->query], result->number,
                              &result->bytes);
    struct arena arena = {0};
    struct error err;
    if (scenario_put_rows(client->scenario, result->query, &result->bytes, &arena, &answer->rows,
                          &err) != STATUS_OK) {
        world_fail(world, "client %u: rows can't be read: %s", client->number, err.text);
    }
    arena_done(&arena);
}

static void keep_audit(struct sim_client *client, const struct effect_audit *audit)
{
    struct world *world = &client->cluster->world;
    struct text bytes = {(const char *)audit->bytes.bytes, (uint32_t)audit->bytes.size};
    struct error err;
    if (audit->number != client->audit_next++) {
        world_fail(world, "client %u: part %llu of the audit came out of order", client->number,
                   (unsigned long long)audit->number);
    } else if (counters_add(&client->counters, client->scenario->plan, bytes, &err) != STATUS_OK) {
        world_fail(world, "client %u: audit can't be read: %s", client->number, err.text);
    }
}

static void end_process(struct sim_client *client)
{
    client->is_up = false;
    client->incarnation++;
    client_destroy(client->role);
    client->role = NULL;
    sim_http_sender_died(&client->cluster->http, client->number);
}

static void finish(struct sim_client *client, const struct error *outcome)
{
    struct world *world = &client->cluster->world;
    if (client->is_reused && outcome->code == STATUS_USAGE) {
        /* A node still has the earlier job of this name; its lease will end it. */
        world_trace(world, "client %u: is refused: %s", client->number, outcome->text);
        end_process(client);
        world_after(world, world_between(world, 5, 150), restart_timer, client,
                    client->incarnation);
        return;
    }
    client->has_ended = true;
    client->outcome = *outcome;
    client->ended_ms = world->now_ms;
    world_trace(world, "client %u: has ended: %s", client->number,
                client->outcome.code == STATUS_OK ? "well" : client->outcome.text);
    end_process(client);
    checker_client(client->cluster, client);
}

static void carry_out(struct sim_client *client, struct effect *effect)
{
    struct world *world = &client->cluster->world;
    switch (effect->kind) {
    case EFFECT_REQUEST:
        make_request(client, &effect->request);
        break;
    case EFFECT_READ:
        world_after(world, world_between(world, 0, READ_MS), read_timer, client,
                    read_pack(client, effect->read.scan, effect->read.number));
        break;
    case EFFECT_JOURNAL:
        keep_journal(client, &effect->journal);
        break;
    case EFFECT_RESULT:
        keep_rows(client, &effect->result);
        break;
    case EFFECT_AUDIT:
        keep_audit(client, &effect->audit);
        break;
    case EFFECT_PROGRESS:
        world_trace(world, "client %u: %s sent %llu applied %llu", client->number,
                    effect->progress.state, (unsigned long long)effect->progress.sent_chunks,
                    (unsigned long long)effect->progress.applied_chunks);
        break;
    case EFFECT_DONE:
        finish(client, effect->outcome);
        break;
    case EFFECT_SAY:
        world_trace(world, "client %u: says %.*s", client->number, (int)effect->say.line.size,
                    (const char *)effect->say.line.bytes);
        break;
    default:
        world_fail(world, "client %u: effect %d is none of a client's", client->number,
                   (int)effect->kind);
    }
}

static void step(struct sim_client *client, struct client_event *event)
{
    struct world *world = &client->cluster->world;
    struct effects *effects = &client->effects;
    event->now_ms = world->now_ms;
    client_step(client->role, event, effects);
    if (effects->failed) world_fail(world, "client %u: out of memory", client->number);
    bool must_crash = false;
    for (uint32_t i = 0; i < effects->count && client->is_up && !must_crash; i++) {
        must_crash = client->crash_after > 0 && --client->crash_after == 0;
        world_mark(world, effects->items[i].kind, CLUSTER_NODES_MAX + client->number);
        if (!must_crash) carry_out(client, &effects->items[i]);
    }
    effects_reset(effects);
    if (must_crash) sim_client_kill(client, SIM_KILL_AND_RESUME);
}

/* ---- events ---- */

void sim_client_reply(struct sim_client *client, uint64_t request_id, struct api_reply *reply)
{
    if (!client->is_up) return;
    struct client_event event = {.kind = CLIENT_REPLY,
                                 .reply = {.request_id = request_id, .reply = reply}};
    step(client, &event);
}

static void tick_timer(void *context, uint64_t incarnation)
{
    struct sim_client *client = context;
    if (client->incarnation != incarnation || !client->is_up) return;
    struct client_event event = {.kind = CLIENT_TICK};
    step(client, &event);
    world_after(&client->cluster->world, TICK_MS, tick_timer, client, incarnation);
}

/* ---- incarnation ---- */

void sim_client_init(struct cluster *cluster, struct sim_client *client, uint32_t number,
                     const struct scenario *scenario)
{
    *client = (struct sim_client){.cluster = cluster, .number = number, .scenario = scenario};
    ASSERT(scenario->plan->query_count <= SIM_CLIENT_QUERIES_MAX);
    client->seen = memory_alloc(NULL, scenario->chunk_count + 1);
    if (client->seen == NULL) {
        world_fail(&cluster->world, "out of memory");
        return;
    }
    memset(client->seen, 0, scenario->chunk_count + 1);
}

static void forget_answers(struct sim_client *client)
{
    for (uint32_t i = 0; i < SIM_CLIENT_QUERIES_MAX; i++) {
        buf_done(&client->answers[i].rows);
        client->answers[i] = (struct sim_answer){0};
    }
    client->audit_next = 0;
    arena_reset(&client->arena);
}

/* Another job, of the name that `job` has. */
static void new_job(struct sim_client *client)
{
    struct world *world = &client->cluster->world;
    client->submission++;
    client->is_accepted = client->is_leaving = false;
    client->manifest = 0;
    client->cluster->report.job_count++;
    (void)snprintf(client->owner_key, sizeof client->owner_key, "%016llx%016llx",
                   (unsigned long long)random_u64(&world->random),
                   (unsigned long long)random_u64(&world->random)); /* Fits exactly. */
    buf_reset(&client->journal);
    memset(client->seen, 0, client->scenario->chunk_count + 1);
}

static void new_submission(struct sim_client *client)
{
    (void)snprintf(client->job, sizeof client->job, "job-%u-%u", client->number,
                   client->submission + 1); /* Fits. */
    client->name_is_taken = false;
    new_job(client);
}

/* Whatever is on its way for the old job finds another one of its name. */
static void reuse_name(struct sim_client *client)
{
    struct cluster *cluster = client->cluster;
    struct world *world = &cluster->world;
    struct api_request request = {.kind = API_DELETE_JOB,
                                  .job = text_of(client->job),
                                  .has_owner = true,
                                  .owner_key = text_of(client->owner_key)};
    sim_http_request(&cluster->http, SIM_HTTP_OBSERVER,
                     world_below(world, cluster->settings.gateway_count), 0, &request);
    uint64_t old_count = client->scenario->chunk_count;
    client->scenario =
        &cluster->scenarios->items[world_below(world, cluster->scenarios->healthy_count)];
    client->is_reused = true;
    memory_free(NULL, client->seen, old_count + 1);
    client->seen = memory_alloc(NULL, client->scenario->chunk_count + 1);
    if (client->seen == NULL) {
        world_fail(world, "out of memory");
        client->scenario = &cluster->scenarios->items[0];
        return;
    }
    new_job(client);
}

static int compare_sent(const void *a, const void *b)
{
    const struct client_sent_chunk *left = a;
    const struct client_sent_chunk *right = b;
    if (left->scan != right->scan) return left->scan < right->scan ? -1 : 1;
    return (left->number > right->number) - (left->number < right->number);
}

/* The chunks in the journal, in order and each once; the journal itself keeps growing. */
static void read_journal(struct sim_client *client)
{
    struct buf *copy = &client->resumed;
    buf_reset(copy);
    buf_put(copy, client->journal.bytes, client->journal.size);
    struct client_sent_chunk *sent = (struct client_sent_chunk *)(void *)copy->bytes;
    uint64_t count = copy->size / sizeof *sent;
    uint64_t kept = 0;
    if (count > 0) qsort(sent, count, sizeof *sent, compare_sent);
    for (uint64_t i = 0; i < count; i++) {
        if (kept > 0 && compare_sent(&sent[i], &sent[kept - 1]) == 0) continue;
        sent[kept++] = sent[i];
    }
    client->sent = sent;
    client->sent_count = kept;
}

void sim_client_start(struct sim_client *client)
{
    struct cluster *cluster = client->cluster;
    struct world *world = &cluster->world;
    struct error err;
    ASSERT(!client->is_up);
    if (client->submission == 0) new_submission(client);
    client->has_begun = true;
    client->is_up = true;
    client->incarnation++;
    client->crash_after = 0;
    client->waits_for_slot = false;
    forget_answers(client);
    read_journal(client);
    if (!counters_init(&client->counters, client->scenario->plan, &client->arena)) {
        world_fail(world, "out of memory");
        return;
    }
    world_trace(world, "client %u: starts %s (%s), %llu chunks in its journal", client->number,
                client->job, client->scenario->name, (unsigned long long)client->sent_count);
    struct client_config config = {
        .job = text_of(client->job),
        .owner_key = text_of(client->owner_key),
        .request = &client->scenario->request,
        .plan = client->scenario->plan,
        .gateway_count = cluster->settings.spread ? 1 : cluster->settings.gateway_count,
        .put_limit = cluster->settings.put_limit,
        .wait_ms = 3000,
        .request_timeout_ms = 8000,
        .retry_first_ms = 100,
        .retry_max_ms = 3000,
        .retry_for_ms = 1200000,
        .sent = client->sent,
        .sent_count = client->sent_count,
        .seed = random_u64(&world->random),
    };
    if (client_create(&config, &client->role, &err) != STATUS_OK) {
        world_fail(world, "client %u does not start: %s", client->number, err.text);
        return;
    }
    struct client_event event = {.kind = CLIENT_STARTED};
    step(client, &event);
    if (client->is_up) world_after(world, TICK_MS, tick_timer, client, client->incarnation);
}

static void restart_timer(void *context, uint64_t incarnation)
{
    struct sim_client *client = context;
    if (client->incarnation == incarnation && !client->is_up && !client->has_gone)
        sim_client_start(client);
}

void sim_client_kill(struct sim_client *client, enum sim_kill how)
{
    struct world *world = &client->cluster->world;
    if (!client->is_up) return;
    static const char *const words[] = {[SIM_KILL_AND_RESUME] = "comes back",
                                        [SIM_KILL_AND_BEGIN_ANEW] = "begins anew",
                                        [SIM_KILL_AND_REUSE] = "asks for something else",
                                        [SIM_KILL_FOR_EVER] = "is gone for ever"};
    world_trace(world, "client %u: is killed and %s", client->number, words[how]);
    client->cluster->report.crash_count++;
    end_process(client);
    if (how == SIM_KILL_FOR_EVER) {
        client->has_gone = true;
        client->ended_ms = world->now_ms;
        return;
    }
    if (how == SIM_KILL_AND_REUSE) {
        reuse_name(client);
        if (world->failed) return;
        world_after(world, world_between(world, 1, 300), restart_timer, client,
                    client->incarnation);
        return;
    }
    if (how == SIM_KILL_AND_BEGIN_ANEW) {
        new_submission(client);
    } else {
        /* The end of the journal may not have reached the disk. */
        uint64_t count = client->journal.size / sizeof(struct client_sent_chunk);
        uint64_t lost = world_below(world, 4);
        client->journal.size = (count > lost ? count - lost : 0) * sizeof(struct client_sent_chunk);
    }
    world_after(world, world_between(world, 50, 4000), restart_timer, client, client->incarnation);
}

void sim_client_done(struct sim_client *client)
{
    if (client->cluster == NULL) return;
    client_destroy(client->role);
    forget_answers(client);
    arena_done(&client->arena);
    effects_done(&client->effects);
    buf_done(&client->journal);
    buf_done(&client->resumed);
    if (client->seen != NULL) memory_free(NULL, client->seen, client->scenario->chunk_count + 1);
}
