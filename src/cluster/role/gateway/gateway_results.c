/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_results.c - GET result: a page of batches, fetched from the worker that has them.
 *
 * A page begins at any batch, so a download resumes at any gateway. The audit is read in the same
 * way: its batches are the parts of the workers, one each.
 */
#include "cluster/role/gateway/gateway_parts.h"

static void fetch(struct gateway *gateway, struct gateway_request *request,
                  const struct gateway_job *job, uint32_t worker, uint32_t query, uint64_t from)
{
    if (!gateway_request_take_tokens(gateway, request, 1)) return;
    uint64_t limit_bytes = gateway->config.max_message / 2;
    if (limit_bytes > GATEWAY_PAGE_BYTES) limit_bytes = GATEWAY_PAGE_BYTES;
    request->wait = WAIT_RESULT;
    request->number = gateway_next_number(gateway);
    struct message message =
        gateway_message(gateway, MESSAGE_FETCH, text_of(job->id), job->layout->hash);
    message.fetch = (struct message_fetch){
        .request = request->number, .query = query, .from = from, .limit_bytes = limit_bytes};
    gateway_send(gateway, job->layout->manifest.workers[worker].name, &message,
                 request->first_token);
}

void gateway_result_begin(struct gateway *gateway, struct gateway_request *request,
                          const struct api_request *api, const struct gateway_job *job)
{
    const struct plan *plan = job->layout->plan;
    if (text_equal(api->query, TEXT_LITERAL(".audit"))) {
        uint32_t worker_count = job->layout->manifest.worker_count;
        if (api->number >= worker_count) {
            gateway_request_refuse(gateway, request, 404, STATUS_USAGE,
                                   "the audit has %u parts, one of each worker", worker_count);
            return;
        }
        *gateway_get_result_of(request) = (struct gateway_get_result){
            .is_audit = true, .part = api->number, .part_count = worker_count};
        fetch(gateway, request, job, (uint32_t)api->number, plan->query_count, 0);
        return;
    }
    uint32_t query = 0;
    while (query < plan->query_count && !text_equal(plan->queries[query].name, api->query))
        query++;
    if (query == plan->query_count) {
        gateway_request_refuse(gateway, request, 404, STATUS_USAGE, "job %s has no query %.*s",
                               job->id, TEXT_ARGS(api->query));
        return;
    }
    uint32_t owner = job_layout_owner(job->layout, plan->queries[query].result_fold, 0);
    fetch(gateway, request, job, owner, query, api->number);
}

void gateway_result_take(struct gateway *gateway, const struct message *message)
{
    const struct message_result *result = &message->result;
    struct gateway_request *request =
        gateway_request_by_number(gateway, WAIT_RESULT, result->request);
    if (request == NULL || !text_equal(text_of(request->job_id), message->job)) return;
    const struct gateway_get_result *asked = gateway_get_result_of(request);
    if (!result->ready || (asked->is_audit && result->batch_count == 0)) {
        gateway_request_refuse(gateway, request, 409, STATUS_LIMIT, "the result is not there yet");
        return;
    }
    struct result_page page = {result->total, result->batches, result->batch_count};
    struct result_batch part;
    if (asked->is_audit) {
        /* To the client the parts of all workers are one result. */
        part = (struct result_batch){asked->part, result->batches[0].bytes};
        page = (struct result_page){asked->part_count, &part, 1};
    }
    struct buf body = {0};
    result_page_encode(&page, &body);
    gateway_request_reply(gateway, request, 200, "application/octet-stream", &body);
}
