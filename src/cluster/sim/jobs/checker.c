/* SPDX-License-Identifier: Apache-2.0 */
/* checker.c - whether the promises were kept at the end; rules.c checks those of every moment. */
#include "cluster/sim/jobs/cluster.h"

#include <stdio.h>

/* ---- a client ---- */

static bool same_bytes(const struct buf *a, const struct buf *b)
{
    return a->size == b->size && (a->size == 0 || memcmp(a->bytes, b->bytes, a->size) == 0);
}

/* Where two texts first differ: the line, for people. */
static void first_difference(const struct buf *expected, const struct buf *got, char *out,
                             size_t size)
{
    size_t line = 0;
    size_t at = 0;
    for (; at < expected->size && at < got->size && expected->bytes[at] == got->bytes[at]; at++) {
        if (expected->bytes[at] == '\n') line = at + 1;
    }
    const unsigned char *end =
        line < expected->size ? memchr(expected->bytes + line, '\n', expected->size - line) : NULL;
    size_t wanted = end == NULL ? expected->size - line : (size_t)(end - expected->bytes) - line;
    end = line < got->size ? memchr(got->bytes + line, '\n', got->size - line) : NULL;
    size_t had = end == NULL ? got->size - line : (size_t)(end - got->bytes) - line;
    (void)snprintf(out, size, "expected `%.*s`, got `%.*s`", wanted < 100 ? (int)wanted : 100,
                   wanted > 0 ? (const char *)expected->bytes + line : "",
                   had < 100 ? (int)had : 100,
                   had > 0 ? (const char *)got->bytes + line : ""); /* May be cut. */
}

static void check_answer(struct cluster *cluster, const struct sim_client *client)
{
    const struct scenario *scenario = client->scenario;
    char difference[300];
    for (uint32_t i = 0; i < scenario->plan->query_count; i++) {
        const struct sim_answer *answer = &client->answers[i];
        if (answer->next != answer->total) {
            world_fail(&cluster->world, "client %u (%s): %llu of %llu batches of an answer came",
                       client->number, scenario->name, (unsigned long long)answer->next,
                       (unsigned long long)answer->total);
        } else if (!same_bytes(&scenario->answers[i], &answer->rows)) {
            first_difference(&scenario->answers[i], &answer->rows, difference, sizeof difference);
            world_fail(&cluster->world, "client %u (%s): the answer to %.*s is wrong: %s",
                       client->number, scenario->name, TEXT_ARGS(scenario->plan->queries[i].name),
                       difference);
        }
    }
}

/* A message of its job was altered. */
static bool was_altered(const struct cluster *cluster, const struct sim_client *client)
{
    return client->number == 0 && cluster->alteration_count > 0;
}

/* False: the counts do not reconcile; the client sees that too, and its job has failed. */
static bool check_audit(struct cluster *cluster, const struct sim_client *client)
{
    bool balance = true;
    const struct scenario *scenario = client->scenario;
    struct arena arena = {0};
    struct buf audit = {0};
    struct error err;
    char difference[300];
    if (scenario_check_counters(scenario, &client->counters, &arena, &audit, &err) != STATUS_OK) {
        balance = false;
        if (!was_altered(cluster, client)) {
            world_fail(&cluster->world, "client %u (%s): %s", client->number, scenario->name,
                       err.text);
        }
    } else if (!same_bytes(&scenario->audit, &audit)) {
        first_difference(&scenario->audit, &audit, difference, sizeof difference);
        world_fail(&cluster->world, "client %u (%s): the audit is wrong: %s", client->number,
                   scenario->name, difference);
    }
    buf_done(&audit);
    arena_done(&arena);
    return balance;
}

/* Errors that a client may end with: its query, a full disk, an operator or an alteration causes
 * them. */
static bool may_fail(const struct cluster *cluster, const struct sim_client *client)
{
    status code = client->outcome.code;
    bool finds_full_disk = client->number == 0 && cluster->settings.has_full_disk;
    if (finds_full_disk && (code == STATUS_IO || code == STATUS_LIMIT)) return true;
    if (client->number == 0 && cluster->settings.has_cancel && code == STATUS_CANCELLED)
        return true;
    if (client->name_is_taken && (code == STATUS_USAGE || code == STATUS_CANCELLED)) return true;
    if (was_altered(cluster, client))
        return true; /* With any code: the alteration decides where it is noticed. */
    return client->scenario->is_poisoned && code == STATUS_INTERNAL;
}

void checker_client(struct cluster *cluster, const struct sim_client *client)
{
    if (client->outcome.code != STATUS_OK) {
        if (may_fail(cluster, client)) return;
        world_fail(&cluster->world, "client %u (%s) failed: %s: %s", client->number,
                   client->scenario->name, status_name(client->outcome.code), client->outcome.text);
        return;
    }
    if (client->scenario->is_poisoned) {
        world_fail(&cluster->world, "client %u has an answer to a poisoned question",
                   client->number);
        return;
    }
    if (check_audit(cluster, client)) check_answer(cluster, client);
}

/* ---- what is left ---- */

bool checker_is_clean(const struct cluster *cluster, char *out, size_t size)
{
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        const struct sim_node *node = &cluster->nodes[i];
        uint32_t jobs = sim_disk_job_count(&node->disk);
        if (jobs == 0 && node->is_up) continue;
        if (out != NULL) {
            (void)snprintf(out, size, jobs > 0 ? "%s has %u jobs left" : "%s is not up", node->name,
                           jobs); /* Fits. */
        }
        return false;
    }
    uint64_t messages = sim_net_message_count(&cluster->net);
    if (messages > 0 && out != NULL) {
        (void)snprintf(out, size, "%llu messages are left in queues",
                       (unsigned long long)messages); /* Fits. */
    }
    return messages == 0;
}

/* ---- proportion ---- */

/* The budget of a profile: chunks sent again in percent of all, simulated seconds until all clients
 * have ended, and requests for missing messages per second. Without a fault no chunk is sent again,
 * however slow the maps and however full the queues are. */
static const struct proportion {
    uint32_t resent_percent;
    uint32_t seconds;
    uint32_t repairs_per_second;
} proportions[SIM_PROFILES] = {
    [SIM_MIXED] = {UINT32_MAX, UINT32_MAX, UINT32_MAX},
    [SIM_CALM] = {0, 60, 10},
    [SIM_SLOW_MAPS] = {0, 1200, 25},
    [SIM_FULL_QUEUES] = {0, 1200, 20},
    [SIM_WORKER_DEATH] = {10, 60, 20},  /* Its log and the queues have all but what was torn. */
    [SIM_GATEWAY_DEATH] = {40, 60, 20}, /* Chunks under way through it, two times. */
    /* Chunks on the queues or in flight, at each of two deaths: a window of every scan. A job of
       some 30 chunks fits into one; so the second death can take those sent again after the first.
     */
    [SIM_BROKER_DEATH] = {200, 60, 20},
    /* Chunks delivered to a paused worker: of three workers two may have most of a job. */
    [SIM_PAUSE] = {100, 90, 20},
    [SIM_LOST_DISK] = {200, 60, 20}, /* All, for each of two disks. */
};

void checker_proportion(struct cluster *cluster)
{
    const struct proportion *promise = &proportions[cluster->options->profile];
    const struct sim_report *report = &cluster->report;
    if (promise->resent_percent == UINT32_MAX) return;
    /* A few are free: a percentage of very few chunks says nothing. */
    uint64_t free_count = promise->resent_percent > 0 ? 4 : 0;
    uint64_t limit = report->chunk_count * promise->resent_percent / 100 + free_count;
    if (report->resent_count > limit) {
        world_fail(&cluster->world, "%llu of %llu chunks were sent again, at most %llu should be",
                   (unsigned long long)report->resent_count,
                   (unsigned long long)report->chunk_count, (unsigned long long)limit);
    }
    uint64_t rate = report->repair_count * 1000 / (cluster->world.now_ms + 1);
    if (rate > promise->repairs_per_second) {
        world_fail(&cluster->world,
                   "%llu messages a second ask for what is missing, at most %u should",
                   (unsigned long long)rate, promise->repairs_per_second);
    }
    for (uint32_t i = 0; i < cluster->settings.client_count; i++) {
        if (cluster->clients[i].ended_ms > (uint64_t)promise->seconds * 1000) {
            world_fail(&cluster->world, "client %u ended after %llu s, more than %u", i,
                       (unsigned long long)cluster->clients[i].ended_ms / 1000, promise->seconds);
        }
    }
}
