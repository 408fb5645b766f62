/* SPDX-License-Identifier: Apache-2.0 */
/* sim_adversary.c - one misdeed after the other, drawn by chance. */
#include "cluster/sim/jobs/sim_adversary.h"

#include <stdio.h>

#include "engine/base/hash.h"
#include "cluster/sim/jobs/cluster.h"

enum {
    GAP_MS = 600,
    OWN_MS = 10000,
    AFTER_MS = 60000,
    REQUEST_MS = 10000, /* A request may take so long, from being sent to its answer. */
    SCANS = 4,
    SENT_MAX = 3
};

enum misdeed {
    CHUNK_OF_OTHERS,
    END_OF_OTHERS,
    VIEW_OF_OTHERS,
    RESULT_OF_OTHERS,
    DELETE_OF_OTHERS,
    JOB_OF_OTHERS, /* The same name, another question or owner. */
    READS,         /* Without a key, which is allowed, */
    OF_OTHERS = READS,
    OWN_JOB, /* and all of this to its own. */
    OWN_CHUNK,
    OWN_END,
    OWN_VIEW,
    OWN_RESULT,
    OWN_DELETE,
    MISDEEDS
};

static const char own_job[] = "job-of-an-adversary";

/* What a request attempted, to judge the answer. */
struct attempt {
    enum misdeed misdeed;
    uint32_t client;
    uint32_t submission;
};

static uint64_t attempt_pack(struct attempt attempt)
{
    return (uint64_t)attempt.misdeed | (uint64_t)attempt.client << 8 |
           (uint64_t)attempt.submission << 32;
}

static struct attempt attempt_unpack(uint64_t packed)
{
    return (struct attempt){.misdeed = (enum misdeed)(packed & 255),
                            .client = (uint32_t)(packed >> 8) & 255,
                            .submission = (uint32_t)(packed >> 32)};
}

/* ---- requests ---- */

/* Small, near the ends of ranges, or anything. */
static uint64_t any_number(struct world *world)
{
    switch (world_below(world, 4)) {
    case 0:
        return world_below(world, 8);
    case 1:
        return world_below(world, 2000);
    case 2:
        return API_NUMBER_MAX - world_below(world, 2);
    default:
        return random_u64(&world->random) >> 12;
    }
}

static void any_chunk(struct cluster *cluster, struct api_request *request)
{
    struct world *world = &cluster->world;
    const struct scenarios *scenarios = cluster->scenarios;
    const struct scenario *scenario =
        &scenarios->items[world_below(world, scenarios->healthy_count)];
    const struct scenario_table *table =
        &scenario->tables[world_below(world, scenario->plan->table_count)];
    request->scan = world_below(world, SCANS);
    request->number = any_number(world);
    request->has_checksum = world_chance(world, 900);
    if (table->chunk_count > 0) {
        const struct buf *body =
            &table->chunks[world_below(world, (uint32_t)table->chunk_count)].body;
        request->body = (struct text){(const char *)body->bytes, (uint32_t)body->size};
    }
    if (world_chance(world, 200)) request->body.size /= 2;
    request->checksum = hash_bytes(request->body.bytes, request->body.size);
    if (world_chance(world, 100)) request->checksum++;
}

static void any_end(struct world *world, struct api_request *request)
{
    request->scan = world_below(world, SCANS);
    request->end_count = any_number(world);
    request->end_sum = random_u64(&world->random);
}

static void any_sent(struct world *world, struct scan_sent sent[SENT_MAX],
                     struct api_request *request)
{
    for (uint32_t i = 0; i < SENT_MAX; i++) {
        sent[i] = (struct scan_sent){.scan = i, .count = any_number(world)};
    }
    request->sent = sent;
    request->sent_count = SENT_MAX;
    request->has_seen = world_chance(world, 500);
    request->seen = random_u64(&world->random);
    request->wait_ms = world_below(world, 4) * 1000;
}

static void any_result(struct cluster *cluster, struct api_request *request)
{
    struct world *world = &cluster->world;
    const struct scenario *scenario =
        &cluster->scenarios->items[world_below(world, cluster->scenarios->healthy_count)];
    request->query = scenario->plan->queries[0].name;
    if (world_chance(world, 300)) request->query = TEXT_LITERAL(API_AUDIT);
    request->number = any_number(world);
}

/* Asks for a job of that name. */
static bool any_job(struct cluster *cluster, struct buf *body, struct api_request *request)
{
    const struct scenarios *scenarios = cluster->scenarios;
    struct error err;
    uint32_t chosen = world_below(&cluster->world, scenarios->healthy_count);
    if (job_request_encode(&scenarios->items[chosen].request, body, &err) != STATUS_OK) {
        world_fail(&cluster->world, "the adversary's job can't be written: %s", err.text);
        return false;
    }
    request->body = (struct text){(const char *)body->bytes, (uint32_t)body->size};
    return true;
}

static const enum api_kind kinds[MISDEEDS] = {
    [CHUNK_OF_OTHERS] = API_PUT_CHUNK,
    [END_OF_OTHERS] = API_PUT_END,
    [VIEW_OF_OTHERS] = API_GET_JOB,
    [RESULT_OF_OTHERS] = API_GET_RESULT,
    [DELETE_OF_OTHERS] = API_DELETE_JOB,
    [JOB_OF_OTHERS] = API_PUT_JOB,
    [READS] = API_GET_JOB,
    [OWN_JOB] = API_PUT_JOB,
    [OWN_CHUNK] = API_PUT_CHUNK,
    [OWN_END] = API_PUT_END,
    [OWN_VIEW] = API_GET_JOB,
    [OWN_RESULT] = API_GET_RESULT,
    [OWN_DELETE] = API_DELETE_JOB,
};

/* It shows its own key, which is not the owner's, or none, where that does not cancel a job: an
 * operator may DELETE without a key. */
static bool shows_key(struct world *world, enum misdeed misdeed)
{
    if (misdeed == READS) return false;
    bool may_go_without = misdeed == CHUNK_OF_OTHERS || misdeed == END_OF_OTHERS ||
                          misdeed == RESULT_OF_OTHERS || misdeed == JOB_OF_OTHERS;
    return !may_go_without || world_chance(world, 700);
}

static void commit(struct sim_adversary *adversary, enum misdeed misdeed, struct attempt attempt,
                   struct text job)
{
    struct cluster *cluster = adversary->cluster;
    struct world *world = &cluster->world;
    struct scan_sent sent[SENT_MAX];
    struct buf body = {0};
    struct api_request request = {.kind = kinds[misdeed], .job = job};
    request.has_owner = shows_key(world, misdeed);
    if (request.has_owner) request.owner_key = text_of(adversary->owner_key);
    bool is_made = true;
    switch (request.kind) {
    case API_PUT_CHUNK:
        any_chunk(cluster, &request);
        break;
    case API_PUT_END:
        any_end(world, &request);
        break;
    case API_GET_JOB:
        any_sent(world, sent, &request);
        break;
    case API_GET_RESULT:
        any_result(cluster, &request);
        break;
    case API_PUT_JOB:
        is_made = any_job(cluster, &body, &request);
        break;
    default:
        break;
    }
    uint32_t gateway = world_below(world, cluster->settings.gateway_count);
    if (is_made) {
        sim_http_request(&cluster->http, SIM_HTTP_ADVERSARY, gateway, attempt_pack(attempt),
                         &request);
    }
    buf_done(&body);
}

/* ---- one after the other ---- */

static void act(struct sim_adversary *adversary)
{
    struct cluster *cluster = adversary->cluster;
    struct world *world = &cluster->world;
    bool has_own = cluster->settings.adversary_works && world->now_ms < adversary->own_until_ms;
    enum misdeed misdeed = (enum misdeed)world_below(world, has_own ? MISDEEDS : OWN_JOB);
    struct attempt attempt = {.misdeed = misdeed};
    if (misdeed >= OWN_JOB) {
        /* Only while it is there can the rest be done to it. */
        if (world_chance(world, 300)) misdeed = attempt.misdeed = OWN_JOB;
        commit(adversary, misdeed, attempt, text_of(own_job));
        return;
    }
    attempt.client = world_below(world, cluster->settings.client_count);
    struct sim_client *client = &cluster->clients[attempt.client];
    if (!client->has_begun) return;
    attempt.submission = client->submission;
    /* A name that no job has may be taken. */
    if (misdeed == JOB_OF_OTHERS && !rules_is_held(cluster, client)) return;
    commit(adversary, misdeed, attempt, text_of(client->job));
}

static void act_timer(void *context, uint64_t number)
{
    struct sim_adversary *adversary = context;
    struct world *world = &adversary->cluster->world;
    if (cluster_is_answered(adversary->cluster) || world->now_ms >= adversary->until_ms) return;
    act(adversary);
    world_after(world, world_between(world, 1, GAP_MS), act_timer, adversary, number);
}

void sim_adversary_begin(struct cluster *cluster)
{
    struct world *world = &cluster->world;
    struct sim_adversary *adversary = &cluster->adversary;
    adversary->cluster = cluster;
    adversary->own_until_ms = world_below(world, OWN_MS);
    adversary->until_ms = cluster->settings.faults_end_ms + AFTER_MS;
    (void)snprintf(adversary->owner_key, sizeof adversary->owner_key, "%016llx%016llx",
                   (unsigned long long)random_u64(&world->random),
                   (unsigned long long)random_u64(&world->random)); /* Fits exactly. */
    world_after(world, world_between(world, 1, GAP_MS), act_timer, adversary, 0);
}

/* ---- answers ---- */

void sim_adversary_reply(struct sim_adversary *adversary, uint64_t packed,
                         const struct api_request *request, uint32_t code)
{
    struct cluster *cluster = adversary->cluster;
    struct world *world = &cluster->world;
    struct attempt attempt = attempt_unpack(packed);
    bool is_sense = code / 100 == 2 || code / 100 == 4 || code == 503;
    if (!is_sense) world_fail(world, "the adversary was answered with %u", code);
    if (attempt.misdeed >= OF_OTHERS || code / 100 != 2) return;
    struct sim_client *client = &cluster->clients[attempt.client];
    /* A job that has gone can be deleted, and seen as cancelled; rules.c checks that workers remove
     * no job whose client waits for it. */
    if (request->kind == API_DELETE_JOB || request->kind == API_GET_JOB) return;
    /* A gateway that has just restarted knows the adversary's job as the one of this name. */
    if (client->name_is_taken && request->kind != API_PUT_JOB) return;
    /* A name that was free for a moment, while the request was under way, could be taken. */
    bool was_free = client->freed_ms > 0 && world->now_ms < client->freed_ms + REQUEST_MS;
    if (was_free && request->kind == API_PUT_JOB) return;
    bool is_same = client->submission == attempt.submission;
    if (!is_same || client->is_leaving || !rules_is_held(cluster, client)) return;
    world_fail(world, "the adversary changed %s: misdeed %d", client->job, (int)attempt.misdeed);
}
