/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_jobs.c - the table of jobs, and the jobs that have ended.
 *
 * The table is a cache: any job in it can be learnt again from the workers. So a job is forgotten
 * when it was not asked for lately, and the least recently asked for makes room for a new one.
 */
#include "cluster/role/gateway/gateway_parts.h"

#include "engine/base/assert.h"

/* ---- jobs that have ended ---- */

/* A ring of the last GATEWAY_ENDED_MAX, each valid for client_timeout: enough for a reader that
 * follows a job, without growing with their number. */
static struct gateway_ended *find_ended(struct gateway *gateway, struct text id)
{
    for (uint32_t i = 0; i < GATEWAY_ENDED_MAX; i++) {
        struct gateway_ended *entry = &gateway->ended[i];
        if (entry->id[0] == '\0' || !text_equal(text_of(entry->id), id)) continue;
        if (gateway->now_ms - entry->at_ms < gateway->config.client_timeout_ms) return entry;
    }
    return NULL;
}

static void ended_remove(struct gateway *gateway, struct text id)
{
    struct gateway_ended *entry = find_ended(gateway, id);
    if (entry != NULL) *entry = (struct gateway_ended){0};
}

void gateway_ended_add(struct gateway *gateway, struct text id, enum job_state state)
{
    ended_remove(gateway, id);
    struct gateway_ended *entry = &gateway->ended[gateway->next_ended];
    gateway->next_ended = (gateway->next_ended + 1) % GATEWAY_ENDED_MAX;
    *entry = (struct gateway_ended){.state = state, .at_ms = gateway->now_ms};
    memcpy(entry->id, id.bytes, id.size);
}

bool gateway_ended_state(struct gateway *gateway, struct text id, enum job_state *out_state)
{
    const struct gateway_ended *entry = find_ended(gateway, id);
    if (entry != NULL) *out_state = entry->state;
    return entry != NULL;
}

/* ---- the table of jobs ---- */

struct gateway_job *gateway_job_find(struct gateway *gateway, struct text id)
{
    for (uint32_t i = 0; i < gateway->job_count; i++) {
        if (text_equal(text_of(gateway->jobs[i]->id), id)) return gateway->jobs[i];
    }
    return NULL;
}

bool gateway_job_is_waited_for(const struct gateway *gateway, const struct gateway_job *job)
{
    for (uint32_t i = 0; i < gateway->request_count; i++) {
        if (gateway->requests[i]->job == job) return true;
    }
    return false;
}

static void job_free(struct gateway *gateway, struct gateway_job *job)
{
    for (uint32_t i = 0; job->peers != NULL && i < gateway->config.worker_count; i++) {
        buf_done(&job->peers[i].bytes);
        arena_done(&job->peers[i].arena);
    }
    job_layout_release(job->layout);
    buf_done(&job->held[0]);
    buf_done(&job->held[1]);
    arena_done(&job->arena);
    memory_free(NULL, job, sizeof *job);
}

void gateway_job_forget(struct gateway *gateway, struct gateway_job *job)
{
    uint32_t i = 0;
    while (i < gateway->job_count && gateway->jobs[i] != job)
        i++;
    ASSERT(i < gateway->job_count);
    for (uint32_t j = 0; j < gateway->request_count; j++) {
        struct gateway_request *request = gateway->requests[j];
        if (request->job != job) continue;
        ASSERT(gateway_request_removes(request));
        request->job = NULL;
    }
    gateway->jobs[i] = gateway->jobs[--gateway->job_count];
    job_free(gateway, job);
}

/* Least recently used, but never one that a request waits for. */
static bool make_room(struct gateway *gateway)
{
    if (gateway->job_count < gateway->config.job_limit) return true;
    struct gateway_job *oldest = NULL;
    for (uint32_t i = 0; i < gateway->job_count; i++) {
        struct gateway_job *job = gateway->jobs[i];
        if (oldest != NULL && job->asked_ms >= oldest->asked_ms) continue;
        if (!gateway_job_is_waited_for(gateway, job)) oldest = job;
    }
    if (oldest == NULL) return false;
    gateway_job_forget(gateway, oldest);
    return true;
}

struct gateway_job *gateway_job_add(struct gateway *gateway, struct text id)
{
    ASSERT(id.size < ROLE_NAME_SIZE);
    if (!make_room(gateway)) return NULL;
    struct gateway_job *job = memory_alloc(NULL, sizeof *job);
    if (job == NULL) return NULL;
    *job = (struct gateway_job){.asked_ms = gateway->now_ms};
    memcpy(job->id, id.bytes, id.size);
    arena_init(&job->arena, NULL);
    job->peers = arena_array(&job->arena, struct gateway_peer, gateway->config.worker_count);
    if (job->peers == NULL) {
        job_free(gateway, job);
        return NULL;
    }
    gateway->jobs[gateway->job_count++] = job;
    return job;
}

status gateway_job_learn(struct gateway *gateway, struct gateway_job *job,
                         struct job_layout *layout, struct error *err)
{
    ASSERT(job->layout == NULL);
    const struct gateway_config *config = &gateway->config;
    uint32_t worker_count = layout->manifest.worker_count;
    uint32_t scan_count = layout->plan->scan_count;
    job->peer_of = arena_array(&job->arena, uint32_t, worker_count + 1);
    job->concerned = arena_array(&job->arena, bool, (size_t)scan_count *worker_count + 1);
    job->sent = arena_array(&job->arena, uint64_t, scan_count + 1);
    job->ends = arena_array(&job->arena, struct gateway_end, scan_count + 1);
    job->taken = arena_array(&job->arena, uint64_t, scan_count + 1);
    job->rerequested = arena_array(&job->arena, struct gateway_rerequest,
                                   (size_t)scan_count * config->worker_count + 1);
    if (job->peer_of == NULL || job->concerned == NULL || job->sent == NULL || job->ends == NULL ||
        job->rerequested == NULL || job->taken == NULL) {
        job_layout_release(layout);
        return error_memory(err);
    }
    for (uint32_t i = 0; i < worker_count; i++) {
        uint32_t peer = 0;
        while (peer < config->worker_count &&
               !text_equal(config->workers[peer].name, layout->manifest.workers[i].name)) {
            peer++;
        }
        job->peer_of[i] = peer;
        for (uint32_t scan = 0; scan < scan_count; scan++) {
            job->concerned[(size_t)scan * worker_count + i] =
                job_layout_feeds(layout, STREAM_SCAN, scan, i);
        }
    }
    job->layout = layout;
    ended_remove(gateway, text_of(job->id));
    return STATUS_OK;
}

void gateway_jobs_expire(struct gateway *gateway)
{
    for (uint32_t i = gateway->job_count; i > 0; i--) {
        struct gateway_job *job = gateway->jobs[i - 1];
        bool is_old = gateway->now_ms - job->asked_ms >= gateway->config.client_timeout_ms;
        if (!is_old || gateway_job_is_waited_for(gateway, job)) continue;
        gateway_job_note_expired(gateway, job);
        gateway_job_forget(gateway, job);
    }
}

void gateway_jobs_destroy(struct gateway *gateway)
{
    for (uint32_t i = 0; i < gateway->job_count; i++) {
        job_free(gateway, gateway->jobs[i]);
    }
    memory_free(NULL, gateway->jobs, sizeof(struct gateway_job *) * gateway->config.job_limit);
}

void gateway_job_note_expired(struct gateway *gateway, const struct gateway_job *job)
{
    uint64_t silent_ms = gateway->now_ms - job->renewed_ms;
    bool is_expired = job->renewed && silent_ms >= gateway->config.client_timeout_ms;
    if (is_expired) gateway_ended_add(gateway, text_of(job->id), JOB_EXPIRED);
}

/* ---- what the workers have ---- */

bool gateway_peer_knows(const struct gateway_job *job, const struct gateway_peer *peer)
{
    return peer->heard && peer->status.state != WORKER_JOB_UNKNOWN &&
           peer->manifest == job->layout->hash;
}

/* Two rounds could have been over since: older knowledge is not relied on. */
static bool is_lately(const struct gateway *gateway, uint64_t at_ms)
{
    const struct gateway_config *config = &gateway->config;
    uint64_t age_max = 2 * (uint64_t)config->sync_period_ms + config->sync_deadline_ms;
    return gateway->now_ms - at_ms <= age_max;
}

bool gateway_job_is_fresh(const struct gateway *gateway, const struct gateway_job *job)
{
    return job->learnt && is_lately(gateway, job->learnt_ms);
}

bool gateway_job_forget_old(struct gateway *gateway, struct gateway_job *job)
{
    if (gateway_job_is_waited_for(gateway, job) || is_lately(gateway, job->asked_ms)) return false;
    gateway_job_forget(gateway, job);
    return true;
}
