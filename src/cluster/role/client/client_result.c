/* SPDX-License-Identifier: Apache-2.0 */
/* client_result.c - answers, page by page and query by query, then the workers' audit.
 *
 * A batch has the same number and bytes whenever and wherever it is asked for, so a download
 * resumes at the first missing number, at any gateway, also after the whole job had to be done
 * again. No page is requested before a view says that it is ready.
 */
#include "cluster/role/client/client_state.h"

#include <inttypes.h>

/* The first that can be had now, else the first that is missing. */
static uint32_t query_next(const struct client *client)
{
    uint32_t count = client->config.plan->query_count;
    uint32_t missing = count;
    for (uint32_t query = 0; query < count; query++) {
        if (client->queries[query].is_complete) continue;
        if (client->queries[query].is_ready) return query;
        if (missing == count) missing = query;
    }
    return missing;
}

bool client_results_complete(const struct client *client)
{
    return query_next(client) == client->config.plan->query_count && client->has_audit_total &&
           client->audit_next == client->audit_total;
}

static void leave_internal(struct client *client, const char *what, uint64_t now, uint64_t before)
{
    struct error err;
    error_write(&err, STATUS_INTERNAL,
                "%s: %" PRIu64 " now, %" PRIu64 " before; there is no answer, please report this",
                what, now, before);
    client_leave(client, &err);
}

void client_results_view(struct client *client, const struct job_view *view)
{
    const struct plan *plan = client->config.plan;
    for (uint32_t i = 0; i < view->query_count; i++) {
        const struct view_query *seen = &view->queries[i];
        /* They come in the plan's order; but names are what counts. */
        uint32_t query = i < plan->query_count ? i : 0;
        if (!text_equal(seen->name, plan->queries[query].name)) query = 0;
        while (query < plan->query_count && !text_equal(seen->name, plan->queries[query].name)) {
            query++;
        }
        if (query < plan->query_count) client->queries[query].is_ready = seen->done;
    }
    client->audit_are_ready = view->state == JOB_DONE;
    if (!client->audit_are_ready) return;
    if (client->audit_next > 0 && client->audit_total != view->worker_count) {
        leave_internal(client, "the number of workers has changed", view->worker_count,
                       client->audit_total);
        return;
    }
    client->has_audit_total = true;
    client->audit_total = view->worker_count;
}

void client_results_forget(struct client *client)
{
    for (uint32_t i = 0; i < client->config.plan->query_count; i++) {
        client->queries[i].is_ready = false;
    }
    client->audit_are_ready = false;
}

void client_results_drive(struct client *client, struct effects *effects)
{
    const struct plan *plan = client->config.plan;
    if (client_call_find(client, API_GET_RESULT) != NULL) return;
    if (!client_pause_over(client, PAUSE_RESULTS)) return;
    uint32_t query = query_next(client);
    if (query < plan->query_count) {
        if (!client->queries[query].is_ready) return;
        struct effect *effect = client_call_make(client, API_GET_RESULT, query, effects);
        effect->request.api.query = plan->queries[query].name;
        effect->request.api.number = client->queries[query].next;
    } else if (client->audit_are_ready && client->audit_next < client->audit_total) {
        struct effect *effect = client_call_make(client, API_GET_RESULT, query, effects);
        effect->request.api.query = TEXT_LITERAL(API_AUDIT);
        effect->request.api.number = client->audit_next;
    }
}

/* Until the next view says that it is there. */
static void result_not_ready(struct client *client, uint32_t query)
{
    if (query < client->config.plan->query_count) {
        client->queries[query].is_ready = false;
    } else {
        client->audit_are_ready = false;
    }
}

static void page_take(struct client *client, uint32_t number, const struct result_page *page,
                      struct effects *effects)
{
    struct client_query *query = &client->queries[number];
    if (query->has_total && query->total != page->total) {
        leave_internal(client, "the number of batches of an answer has changed", page->total,
                       query->total);
        return;
    }
    if (page->batch_count > 0 && page->batches[0].number != query->next) {
        leave_internal(client, "a batch of an answer is not the one asked for",
                       page->batches[0].number, query->next);
        return;
    }
    query->has_total = true;
    query->total = page->total;
    for (uint32_t i = 0; i < page->batch_count; i++) {
        struct effect *effect = effects_add(effects, EFFECT_RESULT);
        effect->result.query = number;
        effect->result.number = query->next++;
        effect->result.count = page->total;
        buf_put_text(&effect->result.bytes, page->batches[i].bytes);
        if (effect->result.bytes.failed) effects->failed = true;
    }
    query->is_complete = query->next == query->total;
    if (page->batch_count == 0 && !query->is_complete) result_not_ready(client, number);
}

static void audit_take(struct client *client, const struct result_page *page,
                       struct effects *effects)
{
    if (page->batch_count != 1) {
        result_not_ready(client, client->config.plan->query_count);
        return;
    }
    struct effect *effect = effects_add(effects, EFFECT_AUDIT);
    effect->audit.number = client->audit_next++;
    effect->audit.count = client->audit_total;
    buf_put_text(&effect->audit.bytes, page->batches[0].bytes);
    if (effect->audit.bytes.failed) effects->failed = true;
}

void client_result_replied(struct client *client, const struct client_call *call,
                           const struct api_reply *reply, struct effects *effects)
{
    struct error err;
    struct result_page page;
    if (reply == NULL || reply->status == 429) {
        result_not_ready(client, call->index);
        client_pause_longer(client, PAUSE_RESULTS, reply != NULL ? reply->retry_after_ms : 0);
        return;
    }
    if (reply->status == 404 || reply->status == 409) {
        result_not_ready(client, call->index);
        return;
    }
    if (reply->status != 200) {
        api_reply_error_text(reply, &err);
        client_leave(client, &err);
        return;
    }
    struct text bytes = {(const char *)reply->body.bytes, (uint32_t)reply->body.size};
    if (reply->body.size > UINT32_MAX ||
        result_page_decode(bytes, &client->scratch, &page, &err) != STATUS_OK) {
        if (reply->body.size > UINT32_MAX) error_write(&err, STATUS_CORRUPT, "a page is too large");
        client_gateway_failed(client, call, &err, effects);
        client_pause_longer(client, PAUSE_RESULTS, 0);
        return;
    }
    client_pause_end(client, PAUSE_RESULTS);
    if (call->index < client->config.plan->query_count) {
        page_take(client, call->index, &page, effects);
    } else {
        audit_take(client, &page, effects);
    }
}
