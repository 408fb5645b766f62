/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_removal.c - DELETE of a job, and what is answered about a job that is gone.
 *
 * A job is deleted by its owner, or by a client without an owner key: an operator. It is gone from
 * the workers when the broker has confirmed a REMOVE to each inbox; a REMOVE that gets lost
 * afterwards is made good by the job's lease, which is not renewed any more.
 */
#include "cluster/role/gateway/gateway_parts.h"

void gateway_removal_begin(struct gateway *gateway, struct gateway_request *request,
                           const struct api_request *api, struct gateway_job *job)
{
    bool is_known = job != NULL && job->layout != NULL;
    bool was_done = is_known && gateway_job_state_of(gateway, job) == JOB_DONE;
    struct message message = gateway_message(gateway, MESSAGE_REMOVE, text_of(request->job_id),
                                             is_known ? job->layout->hash : 0);
    /* An owner that missed the answer and puts the job again must get it. */
    message.remove.reason = was_done || api->has_owner ? REMOVE_DONE : REMOVE_CANCELLED;
    gateway_delete_job_of(request)->was_done = was_done;
    if (!gateway_request_send_all(gateway, request, &message, WAIT_CONFIRM)) return;
    if (job == NULL) return;
    /* Until this is over no round begins: it would send the manifest again to a worker that has
     * already deleted the job. */
    request->job = job;
    job->removals++;
    job->round.active = false;
}

void gateway_removal_no_job(struct gateway *gateway, struct gateway_request *request)
{
    enum job_state state;
    bool is_owner = request->is_owner || request->api.has_owner;
    if (request->kind == API_DELETE_JOB) {
        /* Deleted already: the client has not heard the first answer. */
        gateway_request_reply_empty(gateway, request, 204);
        return;
    }
    bool has_ended = request->kind == API_GET_JOB &&
                     gateway_ended_state(gateway, text_of(request->job_id), &state);
    /* The owner of a job that has expired may begin it anew. */
    if (has_ended && (state == JOB_CANCELLED || !is_owner)) {
        gateway_progress_reply_ended(gateway, request, state);
    } else {
        gateway_request_refuse(gateway, request, 404, STATUS_USAGE, "there is no job %s",
                               request->job_id);
    }
}

/* Answers all requests for a job that is gone. A reader of a job that was done sees it done. */
static void answer_waiting(struct gateway *gateway, struct gateway_job *job, bool was_done)
{
    for (uint32_t i = 0; i < gateway->request_count;) {
        struct gateway_request *request = gateway->requests[i];
        if (request->job != job || gateway_request_removes(request)) {
            i++;
        } else if (was_done && request->wait == WAIT_VIEW) {
            gateway_progress_reply(gateway, request);
        } else {
            gateway_removal_no_job(gateway, request);
        }
    }
}

void gateway_removal_confirmed(struct gateway *gateway, struct gateway_request *request)
{
    struct gateway_job *job = request->job;
    bool was_done = gateway_delete_job_of(request)->was_done;
    if (!was_done) gateway_ended_add(gateway, text_of(request->job_id), JOB_CANCELLED);
    if (job != NULL) {
        answer_waiting(gateway, job, was_done);
        gateway_job_forget(gateway, job);
    }
    gateway_request_reply_empty(gateway, request, 204);
}

void gateway_removal_job_gone(struct gateway *gateway, struct gateway_job *job)
{
    gateway_job_note_expired(gateway, job);
    for (uint32_t i = 0; i < gateway->request_count;) {
        struct gateway_request *request = gateway->requests[i];
        /* Its result will not come either. */
        if (request->wait == WAIT_RESULT && strcmp(request->job_id, job->id) == 0) {
            gateway_removal_no_job(gateway, request);
        } else {
            i++;
        }
    }
    answer_waiting(gateway, job, false);
    gateway_job_forget(gateway, job);
}
