/* SPDX-License-Identifier: Apache-2.0 */
/* worker_slots.c - jobs come and go: stored into a slot, listed, removed, expired.
 *
 * A job that was removed leaves a tombstone for a while. Orders to store it that were sent before
 * the removal may arrive after it; the tombstone tells them from a client that begins the job anew.
 *
 * A lease (Gray and Cheriton, 1989) removes the job of a client that has gone. Every worker counts
 * its own, so that a job needs no worker that decides for the others.
 */
#include "cluster/role/worker/worker_state.h"

#include <stdio.h>

enum { TOMBSTONE_MS = 5000 };

struct worker_job *worker_find(struct worker *worker, struct text id)
{
    for (uint32_t i = 0; i < worker->jobs.count; i++) {
        if (text_equal(text_of(worker->jobs.items[i]->id), id)) return worker->jobs.items[i];
    }
    return NULL;
}

static struct tombstone *tombstone_add(struct worker *worker, struct text id, uint64_t hash)
{
    struct tombstone *tombstone = &worker->tombstones[worker->next_tombstone++ % WORKER_TOMBSTONES];
    *tombstone = (struct tombstone){.hash = hash, .until_ms = worker->now_ms + TOMBSTONE_MS};
    (void)snprintf(tombstone->id, sizeof tombstone->id, "%.*s", TEXT_ARGS(id));
    return tombstone;
}

/* NULL: no such job has ended here lately. */
static const struct tombstone *tombstone_find(const struct worker *worker, struct text id,
                                              uint64_t hash)
{
    for (uint32_t i = 0; i < WORKER_TOMBSTONES; i++) {
        const struct tombstone *tombstone = &worker->tombstones[i];
        if (tombstone->hash == hash && tombstone->until_ms > worker->now_ms &&
            text_equal(text_of(tombstone->id), id)) {
            return tombstone;
        }
    }
    return NULL;
}

bool worker_has_tombstone(const struct worker *worker, struct text id, uint64_t hash)
{
    for (uint32_t i = 0; i < WORKER_TOMBSTONES; i++) {
        const struct tombstone *tombstone = &worker->tombstones[i];
        if (tombstone->hash == hash && text_equal(text_of(tombstone->id), id)) return true;
    }
    return false;
}

static struct tombstone *remove_job(struct worker *worker, struct worker_job *job,
                                    enum milestone_kind reason, struct effects *effects)
{
    static const char *const reasons[MILESTONE_KINDS] = {
        [MILESTONE_DONE] = "done",
        [MILESTONE_CANCELLED] = "cancelled",
        [MILESTONE_REFUSED] = "refused",
        [MILESTONE_EXPIRED] = "expired",
    };
    struct tombstone *tombstone = tombstone_add(worker, text_of(job->id), job->map.layout->hash);
    effects_say(effects, SAY_INFO, "event=job-removed job=%s reason=%s", job->id, reasons[reason]);
    worker_history_end(job, reason);
    struct effect *effect = effects_add(effects, EFFECT_LOG_REMOVE);
    (void)snprintf(effect->removed_job, sizeof effect->removed_job, "%s", job->id);
    for (uint32_t i = 0; i < worker->jobs.count; i++) {
        if (worker->jobs.items[i] != job) continue;
        worker->jobs.items[i] = worker->jobs.items[--worker->jobs.count];
        break;
    }
    worker_job_end(job);
    return tombstone;
}

status worker_make_job(struct worker *worker, const struct message *message,
                       struct worker_job **out, struct error *err)
{
    struct job_layout *layout;
    TRY(job_layout_create(message->store.bytes, worker->config.sentiment, &layout, err));
    status result = STATUS_OK;
    if (layout->hash != message->manifest || !text_equal(layout->manifest.job, message->job)) {
        result = error_set(err, STATUS_CORRUPT, "a manifest is not that of its message");
    }
    if (result == STATUS_OK) result = worker_job_create(worker, layout, out, err);
    job_layout_release(layout);
    if (result != STATUS_OK) return result;
    struct worker_job **slot = array_add(&worker->jobs, NULL);
    if (slot == NULL) {
        worker_job_end(*out);
        return error_memory(err);
    }
    *slot = *out;
    return STATUS_OK;
}

void worker_store(struct worker *worker, const struct message *message, struct buf *bytes,
                  struct effects *effects)
{
    struct worker_job *job = worker_find(worker, message->job);
    const struct tombstone *tombstone = tombstone_find(worker, message->job, message->manifest);
    struct message reply = worker_message(worker, MESSAGE_STORED, NULL);
    struct error err = {0};
    reply.job = message->job;
    reply.manifest = message->manifest;
    reply.stored.request = message->store.request;
    if (job != NULL) {
        bool is_same = job->map.layout->hash == message->manifest;
        reply.stored.outcome = is_same ? STORED_HELD : STORED_DIFFERS;
    } else if (message->store.order && tombstone != NULL) {
        return; /* It has just ended: the order is older than that. */
    } else if (tombstone != NULL && tombstone->cancelled) {
        /* Its client has only heard that it is not there any more. */
        reply.stored.outcome = STORED_CANCELLED;
    } else if (worker->jobs.count >= worker->config.max_jobs && !message->store.order) {
        reply.stored.outcome = STORED_FULL;
    } else if (worker_make_job(worker, message, &job, &err) != STATUS_OK) {
        reply.stored.outcome = STORED_REFUSED;
        reply.stored.text = text_of(err.text);
    } else {
        reply.stored.outcome = STORED_NEW;
        effects_say(effects, SAY_INFO, "event=job-stored job=%s", job->id);
        worker_history_note(job, MILESTONE_STORED, 0);
        worker_send(effects, message->from, &reply);
        worker_log(job->id, bytes, effects);
        worker_job_advance(job, effects); /* A query over no table is complete at once. */
        return;
    }
    worker_send(effects, message->from, &reply);
}

void worker_remove(struct worker *worker, const struct message *message, struct effects *effects)
{
    static const enum milestone_kind reasons[] = {[REMOVE_DONE] = MILESTONE_DONE,
                                                  [REMOVE_CANCELLED] = MILESTONE_CANCELLED,
                                                  [REMOVE_REFUSED] = MILESTONE_REFUSED};
    struct worker_job *job = worker_find(worker, message->job);
    bool is_meant =
        job != NULL && (message->manifest == 0 || message->manifest == job->map.layout->hash);
    struct tombstone *tombstone = NULL;
    if (is_meant) {
        tombstone = remove_job(worker, job, reasons[message->remove.reason], effects);
    } else if (message->manifest != 0 &&
               tombstone_find(worker, message->job, message->manifest) == NULL) {
        /* We have lost it. A gateway that was told so before the others removed it orders us to
         * take it back, and the order comes after this. */
        tombstone = tombstone_add(worker, message->job, message->manifest);
    }
    if (tombstone != NULL) tombstone->cancelled = message->remove.reason == REMOVE_CANCELLED;
}

void worker_list(struct worker *worker, const struct message *message, struct effects *effects)
{
    struct listed_job *jobs =
        arena_array(&worker->arena, struct listed_job, worker->jobs.count + 1u);
    if (jobs == NULL) return;
    for (uint32_t i = 0; i < worker->jobs.count; i++) {
        const struct worker_job *job = worker->jobs.items[i];
        jobs[i] = (struct listed_job){
            .job = text_of(job->id),
            .state = job->failed     ? WORKER_JOB_FAILED
                     : job->complete ? WORKER_JOB_COMPLETE
                                     : WORKER_JOB_RUNNING,
            .age_ms = worker->now_ms - job->created_ms,
            .lease_ms = job->lease_ms,
        };
        for (uint32_t j = 0; j < job->stream_count; j++) {
            jobs[i].applied += job->streams[j].applied.count;
        }
    }
    struct message reply = worker_message(worker, MESSAGE_JOBS, NULL);
    reply.job = message->job;
    reply.jobs = (struct message_jobs){.request = message->list.request,
                                       .incarnation = worker->config.incarnation,
                                       .uptime_ms = worker->now_ms - worker->started_ms,
                                       .maps = worker->config.maps,
                                       .folds = worker->config.folds,
                                       .jobs = jobs,
                                       .job_count = worker->jobs.count};
    worker_history_tell(worker, worker_find(worker, message->job), message->job, &reply.jobs);
    worker_send(effects, message->from, &reply);
}

/* A tick counts at most one period, and only while connected: a worker that was stopped reads its
 * inbox, where the renewals are, before it believes that a client has gone. */
void worker_leases_pass(struct worker *worker, struct effects *effects)
{
    uint64_t passed = worker->now_ms - worker->last_tick_ms;
    worker->last_tick_ms = worker->now_ms;
    if (passed > worker->config.tick_ms) passed = worker->config.tick_ms;
    if (!worker->connected || worker->blocked) return;
    if (IS_PLANTED(worker->config.mutation, WORKER_HAS_NO_LEASE)) return;
    for (uint32_t i = 0; i < worker->jobs.count;) {
        struct worker_job *job = worker->jobs.items[i];
        if (job->lease_ms > passed) {
            job->lease_ms -= passed;
            i++;
        } else {
            (void)remove_job(worker, job, MILESTONE_EXPIRED,
                             effects); /* Its client may begin it anew. */
        }
    }
}
