/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_dispatch.c - from a request to its job, and from what workers say to those who wait.
 *
 * A request for a job that is not known here waits until the workers have said what they know, and
 * then begins as if it had just arrived. Here alone the two sides meet: the files of one subject
 * each know neither how a job became known nor what the end of a round means for the others.
 */
#include "cluster/role/gateway/gateway_parts.h"

#include "engine/base/assert.h"

/* ---- requests ---- */

static void begin_known(struct gateway *gateway, struct gateway_request *request,
                        const struct api_request *api, struct gateway_job *job)
{
    const struct job_layout *layout = job->layout;
    if (api->has_owner && api->owner != layout->manifest.owner) {
        gateway_request_refuse(gateway, request, 403, STATUS_USAGE,
                               "job %s belongs to another client", job->id);
        return;
    }
    request->is_owner = api->has_owner;
    if (api->kind == API_DELETE_JOB) {
        gateway_removal_begin(gateway, request, api, job);
    } else if (api->kind == API_GET_JOB) {
        gateway_progress_begin(request, api, job);
    } else if (job->removals > 0) {
        gateway_request_refuse(gateway, request, 404, STATUS_USAGE, "job %s is being deleted",
                               job->id);
    } else if (api->kind == API_GET_RESULT) {
        gateway_result_begin(gateway, request, api, job);
    } else if (api->scan >= layout->plan->scan_count) {
        gateway_request_refuse(gateway, request, 404, STATUS_USAGE, "job %s has no scan %u",
                               job->id, api->scan);
    } else if (api->kind == API_PUT_CHUNK) {
        gateway_chunk_put(gateway, request, api, job);
    } else {
        gateway_end_put(gateway, request, api, job);
    }
}

/* Asks the workers for the job's manifest; the request waits. */
static void seek(struct gateway *gateway, struct gateway_request *request,
                 const struct api_request *api, struct gateway_job *job)
{
    if (!gateway_request_hold(gateway, request, api)) return;
    if (job == NULL) job = gateway_job_add(gateway, api->job);
    if (job == NULL) {
        gateway_request_refuse_later(gateway, request, 503, GATEWAY_RETRY_MS,
                                     "the gateway has too many jobs in flight");
        return;
    }
    request->wait = WAIT_JOB;
    request->job = job;
    gateway_round_consider(gateway, job);
}

void gateway_dispatch_begin(struct gateway *gateway, struct gateway_request *request,
                            const struct api_request *api)
{
    struct gateway_job *job = gateway_job_find(gateway, api->job);
    enum job_state ended;
    bool is_anothers = job != NULL && job->layout != NULL && api->has_owner &&
                       api->owner != job->layout->manifest.owner;
    if (is_anothers && gateway_job_forget_old(gateway, job)) job = NULL;
    if (job != NULL && !is_anothers) job->asked_ms = gateway->now_ms;
    if (api->kind == API_DELETE_JOB && !api->has_owner) {
        gateway_removal_begin(gateway, request, api, job);
        return;
    }
    if (api->kind != API_GET_JOB && !api->has_owner) {
        gateway_request_refuse(gateway, request, 403, STATUS_USAGE,
                               "this needs the job's owner key in " API_HEADER_OWNER);
        return;
    }
    if (api->kind == API_PUT_CHUNK && !gateway_chunk_check(gateway, request, api)) return;
    if (job != NULL && job->layout != NULL) {
        begin_known(gateway, request, api, job);
        gateway_round_consider(gateway, job);
    } else if (api->kind == API_GET_JOB && !api->has_owner &&
               gateway_ended_state(gateway, api->job, &ended)) {
        /* Its owner may have put it again, at another gateway: for an owner the workers know. */
        gateway_progress_reply_ended(gateway, request, ended);
    } else {
        seek(gateway, request, api, job);
    }
}

void gateway_dispatch_job_known(struct gateway *gateway, struct gateway_job *job)
{
    for (uint32_t i = 0; i < gateway->request_count;) {
        struct gateway_request *request = gateway->requests[i];
        uint64_t id = request->id;
        if (request->job == job && request->wait == WAIT_JOB) {
            request->wait = WAIT_NOTHING;
            request->job = NULL;
            request->deadline_ms = gateway->now_ms + gateway->config.reply_deadline_ms;
            begin_known(gateway, request, &request->api, job);
        }
        /* It may be answered by now. */
        if (i < gateway->request_count && gateway->requests[i]->id == id) i++;
    }
    gateway_round_consider(gateway, job);
}

void gateway_dispatch_confirmed(struct gateway *gateway, struct gateway_request *request)
{
    ASSERT(request->wait == WAIT_CONFIRM);
    if (request->kind == API_DELETE_JOB) {
        gateway_removal_confirmed(gateway, request);
    } else if (request->kind == API_PUT_CHUNK) {
        gateway_chunk_confirmed(gateway, request);
    } else {
        gateway_request_reply_empty(gateway, request, 204);
    }
}

/* ---- what workers say ---- */

/* No worker has the job. Requests that came while the round was under way may speak of a job made
 * meanwhile: they wait for the next one. */
static void refuse_seekers(struct gateway *gateway, struct gateway_job *job)
{
    for (uint32_t i = 0; i < gateway->request_count;) {
        struct gateway_request *request = gateway->requests[i];
        if (request->job == job && request->wait == WAIT_JOB && request->round != 0) {
            gateway_removal_no_job(gateway, request);
        } else {
            i++;
        }
    }
}

static void end_round(struct gateway *gateway, struct gateway_job *job)
{
    enum gateway_round_result result = gateway_round_end(gateway, job);
    bool is_known = job->layout != NULL;
    if (is_known && result == ROUND_NO_JOB) {
        gateway_removal_job_gone(gateway, job);
        return;
    }
    if (is_known) {
        gateway_progress_tell(gateway, job);
    } else if (result == ROUND_NO_JOB) {
        refuse_seekers(gateway, job);
    }
    if (is_known || gateway_job_is_waited_for(gateway, job)) {
        gateway_round_consider(gateway, job);
    } else {
        gateway_job_forget(gateway, job);
    }
}

void gateway_dispatch_take_status(struct gateway *gateway, const struct message *message,
                                  struct buf *bytes)
{
    struct gateway_job *job = gateway_round_take_status(gateway, message, bytes);
    if (job != NULL) end_round(gateway, job);
}

static void refuse_all_seekers(struct gateway *gateway, struct gateway_job *job,
                               const struct error *err)
{
    for (uint32_t i = 0; i < gateway->request_count;) {
        struct gateway_request *request = gateway->requests[i];
        if (request->job == job && request->wait == WAIT_JOB) {
            gateway_request_refuse_error(gateway, request, 503, err);
        } else {
            i++;
        }
    }
    effects_say(gateway->effects, SAY_WARN, "event=manifest-unusable job=%s error=\"%s\"", job->id,
                err->text);
    if (!gateway_job_is_waited_for(gateway, job)) gateway_job_forget(gateway, job);
}

void gateway_dispatch_take_manifest(struct gateway *gateway, const struct message *message)
{
    struct gateway_job *job = gateway_job_find(gateway, message->job);
    if (job == NULL || job->layout != NULL) return;
    struct error err;
    struct job_layout *layout = NULL;
    status result =
        job_layout_create(message->store.bytes, gateway->config.sentiment, &layout, &err);
    if (result == STATUS_OK &&
        (layout->hash != message->manifest || !text_equal(layout->manifest.job, message->job))) {
        job_layout_release(layout);
        result = error_set(&err, STATUS_CORRUPT, "the manifest that came is of another job");
    }
    if (result == STATUS_OK) result = gateway_job_learn(gateway, job, layout, &err);
    if (result != STATUS_OK) {
        refuse_all_seekers(gateway, job, &err);
        return;
    }
    /* The round that sought it has found it. Late answers to it still count as news. */
    job->round.active = false;
    gateway_dispatch_job_known(gateway, job);
}

/* ---- time ---- */

static void deadline_passed(struct gateway *gateway, struct gateway_request *request)
{
    switch (request->wait) {
    case WAIT_STORED:
        gateway_accept_give_up(gateway, request);
        return;
    case WAIT_JOB:
        gateway_request_refuse(gateway, request, 503, STATUS_IO,
                               "not all workers have said whether they know job %s",
                               request->job_id);
        return;
    case WAIT_CONFIRM:
        gateway_request_refuse(gateway, request, 503, STATUS_IO,
                               "the broker has not confirmed it in time");
        return;
    case WAIT_RESULT:
        gateway_request_refuse(gateway, request, 503, STATUS_IO,
                               "the worker that has the result does not answer");
        return;
    case WAIT_LIST:
        gateway_list_reply(gateway, request);
        return;
    case WAIT_VIEW: /* Has its own time, said by the client. */
    case WAIT_NOTHING:
        return;
    }
}

void gateway_dispatch_tick(struct gateway *gateway)
{
    gateway_list_tick(gateway);
    for (uint32_t i = 0; i < gateway->request_count;) {
        struct gateway_request *request = gateway->requests[i];
        uint64_t id = request->id;
        if (request->wait == WAIT_VIEW) {
            gateway_progress_tick(gateway, request);
        } else if (gateway->now_ms >= request->deadline_ms) {
            deadline_passed(gateway, request);
        }
        if (i < gateway->request_count && gateway->requests[i]->id == id) i++;
    }
    /* Backwards: the end of a round may forget the job, and the last takes its place. */
    for (uint32_t i = gateway->job_count; i > 0; i--) {
        struct gateway_job *job = gateway->jobs[i - 1];
        if (gateway_round_is_late(gateway, job)) {
            end_round(gateway, job);
        } else {
            gateway_round_consider(gateway, job);
        }
    }
}

void gateway_dispatch_stop(struct gateway *gateway)
{
    for (uint32_t i = 0; i < gateway->request_count;) {
        struct gateway_request *request = gateway->requests[i];
        if (request->wait == WAIT_CONFIRM) {
            i++;
        } else if (request->wait == WAIT_VIEW) {
            gateway_progress_reply(gateway, request);
        } else {
            gateway_request_refuse(gateway, request, 503, STATUS_IO, "the gateway is stopping");
        }
    }
}
