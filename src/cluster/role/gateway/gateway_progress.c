/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_progress.c - GET job: a long poll, answered when there is news or the client's time is
 * over.
 *
 * News is a view whose hash differs from the one that the owner has seen. Readers without the
 * owner's key are answered after each round.
 */
#include "cluster/role/gateway/gateway_parts.h"

static const char JSON[] = "application/json";

/* A view as it is sent; one is made for all who get the same. */
struct view_page {
    bool made;
    bool urgent; /* Chunks are re-requested, or the job has ended: no reason to wait. */
    uint64_t hash;
    struct buf body;
};

static void page_make(struct gateway *gateway, const struct gateway_job *job,
                      enum gateway_reader reader, struct view_page *page)
{
    if (page->made) return;
    struct arena_mark mark = arena_mark(&gateway->scratch);
    struct job_view view;
    if (gateway_job_view_make(gateway, job, reader, &view)) {
        job_view_encode(&view, &page->body);
        page->urgent =
            view.rerequest_count > 0 || view.state == JOB_DONE || view.state == JOB_FAILED;
    } else {
        gateway->effects->failed = true;
    }
    arena_release(&gateway->scratch, mark);
    page->hash = hash_bytes(page->body.bytes, page->body.size);
    page->made = true;
}

static void reply_page(struct gateway *gateway, struct gateway_request *request,
                       const struct view_page *page)
{
    struct buf body = {0};
    buf_put(&body, page->body.bytes, page->body.size);
    gateway_request_reply(gateway, request, 200, JSON, &body);
}

void gateway_progress_reply_ended(struct gateway *gateway, struct gateway_request *request,
                                  enum job_state state)
{
    struct job_view view = {.job = text_of(request->job_id), .state = state};
    struct buf body = {0};
    job_view_encode(&view, &body);
    gateway_request_reply(gateway, request, 200, JSON, &body);
}

void gateway_progress_reply(struct gateway *gateway, struct gateway_request *request)
{
    struct gateway_job *job = request->job;
    struct view_page page = {0};
    page_make(gateway, job, request->is_owner ? READER_OWNER : READER_OTHER, &page);
    if (request->is_owner) {
        job->told = true;
        job->told_hash = page.hash;
    }
    reply_page(gateway, request, &page);
    buf_done(&page.body);
}

static bool wait_is_over(const struct gateway *gateway, struct gateway_request *request)
{
    return gateway->now_ms - request->arrived_ms >= gateway_get_job_of(request)->wait_ms;
}

void gateway_progress_tick(struct gateway *gateway, struct gateway_request *request)
{
    bool round_is_over = request->round != 0 && request->round <= request->job->over_number;
    if (round_is_over && wait_is_over(gateway, request)) gateway_progress_reply(gateway, request);
}

/* Many readers may wait for one job: each of the two views is made and encoded once. */
void gateway_progress_tell(struct gateway *gateway, struct gateway_job *job)
{
    struct view_page for_owner = {0};
    struct view_page for_others = {0};
    for (uint32_t i = 0; i < gateway->request_count;) {
        struct gateway_request *request = gateway->requests[i];
        bool is_its = request->job == job && request->wait == WAIT_VIEW && request->round != 0;
        if (is_its && !request->is_owner) {
            page_make(gateway, job, READER_OTHER, &for_others);
            reply_page(gateway, request, &for_others);
            continue;
        }
        if (is_its) {
            page_make(gateway, job, READER_OWNER, &for_owner);
            const struct gateway_get_job *asked = gateway_get_job_of(request);
            bool is_news = asked->has_seen ? asked->seen != for_owner.hash
                                           : !job->told || job->told_hash != for_owner.hash;
            if (is_news || for_owner.urgent || wait_is_over(gateway, request)) {
                reply_page(gateway, request, &for_owner);
                continue;
            }
        }
        i++;
    }
    /* Afterwards, so that all who waited hear the same news. */
    if (for_owner.made) {
        job->told = true;
        job->told_hash = for_owner.hash;
    }
    buf_done(&for_owner.body);
    buf_done(&for_others.body);
}

void gateway_progress_begin(struct gateway_request *request, const struct api_request *api,
                            struct gateway_job *job)
{
    for (uint32_t i = 0; request->is_owner && i < api->sent_count; i++) {
        const struct scan_sent *sent = &api->sent[i];
        if (sent->scan >= job->layout->plan->scan_count) continue;
        /* What was sent stays sent: an older request that arrives late changes nothing. */
        if (sent->count > job->sent[sent->scan]) job->sent[sent->scan] = sent->count;
    }
    *gateway_get_job_of(request) = (struct gateway_get_job){
        .has_seen = api->has_seen, .seen = api->seen, .wait_ms = api->wait_ms};
    request->wait = WAIT_VIEW;
    request->job = job;
    request->round = 0;
}
