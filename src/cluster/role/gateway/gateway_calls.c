/* gateway_calls.c - what is asked of a job that exists, or might: chunks, ends, progress, results,
 * the end of it.
 *
 * A request for a job that is not known here waits until the workers have said what they know, and
 * then begins as if it had come just now. What needs the broker's word waits for it, and takes back
 * what is not published yet when nobody waits any more: a chunk must not appear long after its
 * client has given up and sent it elsewhere.
 */
#include "cluster/role/gateway/gateway_parts.h"

#include "engine/base/assert.h"

static const char JSON[] = "application/json";

/* ---- views ---- */

/* A view as it is sent; one is made for all who get the same. */
struct view_page {
    bool made;
    bool urgent; /* Somebody wants chunks, or the job has ended: no reason to wait. */
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

static void reply_ended(struct gateway *gateway, struct gateway_request *request,
                        enum job_state state)
{
    struct job_view view = {.job = text_of(request->job_id), .state = state};
    struct buf body = {0};
    job_view_encode(&view, &body);
    gateway_request_reply(gateway, request, 200, JSON, &body);
}

/* What is known now, without asking anybody. */
static void reply_view(struct gateway *gateway, struct gateway_request *request)
{
    struct gateway_job *job = request->job;
    struct view_page page = {0};
    page_make(gateway, job, request->is_owner ? READER_OWNER : READER_ANYBODY, &page);
    if (request->is_owner) {
        job->told = true;
        job->told_hash = page.hash;
    }
    reply_page(gateway, request, &page);
    buf_done(&page.body);
}

static bool wait_is_over(const struct gateway *gateway, const struct gateway_request *request)
{
    return gateway->now_ms - request->arrived_ms >= request->wait_ms;
}

void gateway_call_tell(struct gateway *gateway, struct gateway_job *job)
{
    struct view_page for_owner = {0};
    struct view_page for_anybody = {0};
    for (uint32_t i = 0; i < gateway->request_count;) {
        struct gateway_request *request = gateway->requests[i];
        bool is_its = request->job == job && request->wait == WAIT_VIEW && request->round != 0;
        if (is_its && !request->is_owner) {
            page_make(gateway, job, READER_ANYBODY, &for_anybody);
            reply_page(gateway, request, &for_anybody);
            continue;
        }
        if (is_its) {
            page_make(gateway, job, READER_OWNER, &for_owner);
            bool is_news = request->has_seen ? request->seen != for_owner.hash
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
    buf_done(&for_anybody.body);
}

static void get_job(struct gateway_request *request, const struct api_request *api,
                    struct gateway_job *job)
{
    for (uint32_t i = 0; request->is_owner && i < api->sent_count; i++) {
        const struct scan_sent *sent = &api->sent[i];
        if (sent->scan >= job->layout->plan->scan_count) continue;
        /* What was sent stays sent: an answer of an older request that comes late changes nothing.
         */
        if (sent->count > job->sent[sent->scan]) job->sent[sent->scan] = sent->count;
    }
    request->has_seen = api->has_seen;
    request->seen = api->seen;
    request->wait = WAIT_VIEW;
    request->job = job;
    request->round = 0;
}

/* ---- chunks and ends ---- */

/* What can be said of a chunk without knowing its job. */
static bool chunk_is_sound(struct gateway *gateway, struct gateway_request *request,
                           const struct api_request *api)
{
    uint64_t max_message = gateway->config.max_message;
    if (!api->has_checksum || api->checksum != hash_bytes(api->body.bytes, api->body.size)) {
        gateway_request_refuse(gateway, request, 400, STATUS_INPUT,
                               api->has_checksum ? "the chunk is not what its checksum says"
                                                 : "a chunk needs its checksum in " //
                                   API_HEADER_CHECKSUM);
        return false;
    }
    if (api->number >> GATEWAY_NUMBER_BITS != 0) {
        gateway_request_refuse(gateway, request, 400, STATUS_INPUT,
                               "a chunk's number must be less than 2^%d", GATEWAY_NUMBER_BITS);
        return false;
    }
    if ((uint64_t)api->body.size + GATEWAY_HEADROOM_BYTES > max_message) {
        gateway_request_refuse(gateway, request, 413, STATUS_LIMIT,
                               "a chunk of %u bytes does not fit a message of at most %llu: send "
                               "smaller ones",
                               api->body.size, (unsigned long long)max_message);
        return false;
    }
    return true;
}

static status check_body(struct gateway *gateway, const struct api_request *api,
                         const struct gateway_job *job, struct error *err)
{
    const struct plan *plan = job->layout->plan;
    const struct table *table = &plan->tables[plan->scans[api->scan].table];
    struct chunk_body body;
    TRY(chunk_body_decode(api->body, &gateway->scratch, &body, err));
    const struct manifest_table *files =
        job_layout_files(job->layout, plan->scans[api->scan].table);
    uint32_t file_count = files != NULL ? files->file_count : 0;
    uint64_t limit = job_layout_chunk_limit(job->layout, api->scan);
    if (api->number >= limit) {
        return error_set(err, STATUS_INPUT,
                         "chunk %llu of scan %u: files of these sizes have fewer than %llu",
                         (unsigned long long)api->number, api->scan, (unsigned long long)limit);
    }
    if (body.file >= file_count) {
        return error_set(err, STATUS_INPUT, "the chunk is of file %u, and table %.*s has %u",
                         body.file, TEXT_ARGS(table->name), file_count);
    }
    if (body.column_count != table->schema.count) {
        return error_set(err, STATUS_INPUT, "the chunk has %u columns, and table %.*s has %u",
                         body.column_count, TEXT_ARGS(table->name), table->schema.count);
    }
    return STATUS_OK;
}

/* Only what is known for sure and not long ago is a reason to refuse: a gateway that does not know
 * takes the chunk. */
static bool chunk_is_admitted(struct gateway *gateway, struct gateway_request *request,
                              const struct api_request *api, struct gateway_job *job)
{
    uint64_t limit;
    if (!gateway_job_is_fresh(gateway, job)) {
        /* Who sends much and never asks is looked after by us. */
        if (job->taken[api->scan] * 2 >= gateway->config.window) job->wants_round = true;
        if (job->taken[api->scan] < gateway->config.window) return true;
        gateway_request_refuse_later(gateway, request, 429, GATEWAY_RETRY_MS,
                                     "nobody has asked for the job lately: GET it first");
        return false;
    }
    if (!gateway_job_scan_open(gateway, job, api->scan)) {
        gateway_request_refuse(gateway, request, 409, STATUS_LIMIT,
                               "scan %u is not open now: its phase has not begun", api->scan);
        return false;
    }
    if (gateway_job_scan_limit(gateway, job, api->scan, &limit) && api->number >= limit) {
        gateway_request_refuse_later(gateway, request, 429, GATEWAY_RETRY_MS,
                                     "the workers have not come so far yet");
        return false;
    }
    return true;
}

static void put_chunk(struct gateway *gateway, struct gateway_request *request,
                      const struct api_request *api, struct gateway_job *job)
{
    struct error err;
    if (check_body(gateway, api, job, &err) != STATUS_OK) {
        gateway_request_refuse_error(gateway, request, 400, &err);
        return;
    }
    if (!chunk_is_admitted(gateway, request, api, job)) return;
    if (!gateway_request_take_tokens(gateway, request, 1)) return;
    job->taken[api->scan]++;
    request->wait = WAIT_CONFIRM;
    request->bytes = api->body.size;
    struct message message = {
        .kind = MESSAGE_CHUNK,
        .job = text_of(job->id),
        .manifest = job->layout->hash,
        .from = gateway->config.name,
        .chunk = {.scan = api->scan,
                  .number = api->number,
                  .checksum = api->checksum,
                  .body = api->body},
    };
    struct effect *effect = effects_add(gateway->effects, EFFECT_SEND);
    effect->work =
        job_layout_work_queue(job->layout, api->number, gateway->config.work_queue_count);
    effect->token = request->first_token;
    struct buf *bytes = gateway->event_bytes;
    if (bytes->size > 0 && (const char *)bytes->bytes == api->body.bytes) {
        effect->bytes = buf_take(bytes);
        message_encode_behind(&message, &effect->bytes);
    } else {
        message_encode(&message, &effect->bytes); /* It had to wait for its job. */
    }
    if (effect->bytes.failed) gateway->effects->failed = true;
}

/* One message to every worker, each with a token. */
static bool send_to_all(struct gateway *gateway, struct gateway_request *request,
                        const struct message *message)
{
    const struct gateway_config *config = &gateway->config;
    if (!gateway_request_take_tokens(gateway, request, config->worker_count)) return false;
    for (uint32_t i = 0; i < config->worker_count; i++) {
        gateway_send(gateway, config->workers[i].name, message, request->first_token + i);
    }
    request->wait = WAIT_CONFIRM;
    return true;
}

static void put_end(struct gateway *gateway, struct gateway_request *request,
                    const struct api_request *api, struct gateway_job *job)
{
    struct gateway_end *end = &job->ends[api->scan];
    uint64_t limit = job_layout_chunk_limit(job->layout, api->scan);
    if (api->end_count > limit) {
        gateway_request_refuse(gateway, request, 400, STATUS_INPUT,
                               "scan %u ends with %llu chunks: files of these sizes have at most "
                               "%llu",
                               api->scan, (unsigned long long)api->end_count,
                               (unsigned long long)limit);
        return;
    }
    if (end->known && (end->count != api->end_count || end->sum != api->end_sum)) {
        gateway_request_refuse(gateway, request, 409, STATUS_INPUT,
                               "scan %u has ended already, and otherwise: with %llu chunks",
                               api->scan, (unsigned long long)end->count);
        return;
    }
    struct message message = {
        .kind = MESSAGE_END,
        .job = text_of(job->id),
        .manifest = job->layout->hash,
        .from = gateway->config.name,
        .end = {.scan = api->scan, .count = api->end_count, .sum = api->end_sum},
    };
    if (!send_to_all(gateway, request, &message)) return;
    *end = (struct gateway_end){true, api->end_count, api->end_sum};
}

/* ---- results ---- */

static void fetch(struct gateway *gateway, struct gateway_request *request,
                  const struct gateway_job *job, uint32_t worker, uint32_t query, uint64_t from)
{
    if (!gateway_request_take_tokens(gateway, request, 1)) return;
    uint64_t limit_bytes = gateway->config.max_message / 2;
    if (limit_bytes > GATEWAY_PAGE_BYTES) limit_bytes = GATEWAY_PAGE_BYTES;
    request->wait = WAIT_RESULT;
    request->number = gateway_next_number(gateway);
    struct message message = {
        .kind = MESSAGE_FETCH,
        .job = text_of(job->id),
        .manifest = job->layout->hash,
        .from = gateway->config.name,
        .fetch = {.request = request->number,
                  .query = query,
                  .from = from,
                  .limit_bytes = limit_bytes},
    };
    gateway_send(gateway, job->layout->manifest.workers[worker].name, &message,
                 request->first_token);
}

static void get_result(struct gateway *gateway, struct gateway_request *request,
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
        request->audit = true;
        request->first = api->number;
        request->total = worker_count;
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

void gateway_call_take_result(struct gateway *gateway, const struct message *message)
{
    const struct message_result *result = &message->result;
    struct gateway_request *request =
        gateway_request_by_number(gateway, WAIT_RESULT, result->request);
    if (request == NULL || !text_equal(text_of(request->job_id), message->job)) return;
    if (!result->ready || (request->audit && result->batch_count == 0)) {
        gateway_request_refuse(gateway, request, 409, STATUS_LIMIT, "the result is not there yet");
        return;
    }
    struct result_page page = {result->total, result->batches, result->batch_count};
    struct result_batch part;
    if (request->audit) {
        /* To the client the parts of all workers are one result. */
        part = (struct result_batch){request->first, result->batches[0].bytes};
        page = (struct result_page){request->total, &part, 1};
    }
    struct buf body = {0};
    result_page_encode(&page, &body);
    gateway_request_reply(gateway, request, 200, "application/octet-stream", &body);
}

/* ---- the end of a job ---- */

/* By its owner, or by somebody who shows no key: an operator. */
static void delete_job(struct gateway *gateway, struct gateway_request *request,
                       const struct api_request *api, struct gateway_job *job)
{
    bool is_known = job != NULL && job->layout != NULL;
    request->was_done = is_known && gateway_job_state_of(gateway, job) == JOB_DONE;
    request->cancels = !request->was_done;
    struct message message = {
        .kind = MESSAGE_REMOVE,
        .job = text_of(request->job_id),
        .manifest = is_known ? job->layout->hash : 0,
        .from = gateway->config.name,
        /* An owner who did not hear the answer, and asks for the job again, must get it. */
        .remove = {request->was_done || api->has_owner ? REMOVE_DONE : REMOVE_CANCELLED},
    };
    if (!send_to_all(gateway, request, &message)) return;
    if (job == NULL) return;
    /* Until this is over nobody is asked for the job: whoever has deleted it already would get the
     * manifest again. */
    request->job = job;
    request->removes = true;
    job->removals++;
    job->round.active = false;
}

void gateway_call_no_job(struct gateway *gateway, struct gateway_request *request)
{
    enum job_state state;
    bool is_owner = request->is_owner || request->api.has_owner;
    if (request->kind == API_DELETE_JOB) {
        /* Its client has only not heard the first answer. */
        gateway_request_reply_empty(gateway, request, 204);
        return;
    }
    bool has_ended = request->kind == API_GET_JOB &&
                     gateway_ended_state(gateway, text_of(request->job_id), &state);
    /* The owner of a job that has expired may begin it anew. */
    if (has_ended && (state == JOB_CANCELLED || !is_owner)) {
        reply_ended(gateway, request, state);
    } else {
        gateway_request_refuse(gateway, request, 404, STATUS_USAGE, "there is no job %s",
                               request->job_id);
    }
}

/* All who wait for a job that is no more. */
static void answer_waiting(struct gateway *gateway, struct gateway_job *job,
                           const struct gateway_request *removal)
{
    for (uint32_t i = 0; i < gateway->request_count;) {
        struct gateway_request *request = gateway->requests[i];
        if (request->job != job || request->removes) {
            i++;
        } else if (removal != NULL && removal->was_done && request->wait == WAIT_VIEW) {
            reply_view(gateway, request);
        } else {
            gateway_call_no_job(gateway, request);
        }
    }
}

static void finish_delete(struct gateway *gateway, struct gateway_request *request)
{
    struct gateway_job *job = request->job;
    if (request->cancels) {
        gateway_ended_add(gateway, text_of(request->job_id), JOB_CANCELLED);
    }
    if (job != NULL) {
        answer_waiting(gateway, job, request);
        gateway_job_forget(gateway, job);
    }
    gateway_request_reply_empty(gateway, request, 204);
}

void gateway_call_job_gone(struct gateway *gateway, struct gateway_job *job)
{
    gateway_job_note_expired(gateway, job);
    for (uint32_t i = 0; i < gateway->request_count;) {
        struct gateway_request *request = gateway->requests[i];
        /* Its result will not come either. */
        if (request->wait == WAIT_RESULT && strcmp(request->job_id, job->id) == 0) {
            gateway_call_no_job(gateway, request);
        } else {
            i++;
        }
    }
    answer_waiting(gateway, job, NULL);
    gateway_job_forget(gateway, job);
}

void gateway_call_confirmed(struct gateway *gateway, struct gateway_request *request)
{
    ASSERT(request->wait == WAIT_CONFIRM);
    if (request->kind == API_DELETE_JOB) {
        finish_delete(gateway, request);
        return;
    }
    if (request->kind == API_PUT_CHUNK) {
        gateway->chunk_total++;
        gateway->byte_total += request->bytes;
    }
    gateway_request_reply_empty(gateway, request, 204);
}

/* ---- the way in ---- */

static void begin_known(struct gateway *gateway, struct gateway_request *request,
                        const struct api_request *api, struct gateway_job *job)
{
    const struct layout *layout = job->layout;
    if (api->has_owner && api->owner != layout->manifest.owner) {
        gateway_request_refuse(gateway, request, 403, STATUS_USAGE,
                               "job %s belongs to another client", job->id);
        return;
    }
    request->is_owner = api->has_owner;
    if (api->kind == API_DELETE_JOB) {
        delete_job(gateway, request, api, job);
    } else if (api->kind == API_GET_JOB) {
        get_job(request, api, job);
    } else if (job->removals > 0) {
        gateway_request_refuse(gateway, request, 404, STATUS_USAGE, "job %s is being deleted",
                               job->id);
    } else if (api->kind == API_GET_RESULT) {
        get_result(gateway, request, api, job);
    } else if (api->scan >= layout->plan->scan_count) {
        gateway_request_refuse(gateway, request, 404, STATUS_USAGE, "job %s has no scan %u",
                               job->id, api->scan);
    } else if (api->kind == API_PUT_CHUNK) {
        put_chunk(gateway, request, api, job);
    } else {
        put_end(gateway, request, api, job);
    }
}

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
    gateway_sync_consider(gateway, job);
}

void gateway_call_begin(struct gateway *gateway, struct gateway_request *request,
                        const struct api_request *api)
{
    struct gateway_job *job = gateway_job_find(gateway, api->job);
    enum job_state ended;
    bool is_anothers = job != NULL && job->layout != NULL && api->has_owner &&
                       api->owner != job->layout->manifest.owner;
    if (is_anothers && gateway_job_forget_old(gateway, job)) job = NULL;
    bool is_known = job != NULL && job->layout != NULL;
    if (job != NULL && !is_anothers) job->asked_ms = gateway->now_ms;
    if (api->kind == API_DELETE_JOB && !api->has_owner) {
        delete_job(gateway, request, api, job);
        return;
    }
    if (api->kind != API_GET_JOB && !api->has_owner) {
        gateway_request_refuse(gateway, request, 403, STATUS_USAGE,
                               "this needs the job's owner key in " API_HEADER_OWNER);
        return;
    }
    if (api->kind == API_PUT_CHUNK && !chunk_is_sound(gateway, request, api)) return;
    if (is_known) {
        begin_known(gateway, request, api, job);
        gateway_sync_consider(gateway, job);
    } else if (api->kind == API_GET_JOB && !api->has_owner &&
               gateway_ended_state(gateway, api->job, &ended)) {
        /* Its owner may have asked for it again, at another gateway: for him the workers know. */
        reply_ended(gateway, request, ended);
    } else {
        seek(gateway, request, api, job);
    }
}

void gateway_call_resume(struct gateway *gateway, struct gateway_job *job)
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
    case WAIT_VIEW:
    case WAIT_NOTHING:
        return;
    }
}

void gateway_call_tick(struct gateway *gateway)
{
    for (uint32_t i = 0; i < gateway->request_count;) {
        struct gateway_request *request = gateway->requests[i];
        uint64_t id = request->id;
        if (request->wait == WAIT_VIEW) {
            bool round_is_over = request->round != 0 && request->round <= request->job->over_number;
            if (round_is_over && wait_is_over(gateway, request)) reply_view(gateway, request);
        } else if (gateway->now_ms >= request->deadline_ms) {
            deadline_passed(gateway, request);
        }
        if (i < gateway->request_count && gateway->requests[i]->id == id) i++;
    }
}

void gateway_call_stop(struct gateway *gateway)
{
    for (uint32_t i = 0; i < gateway->request_count;) {
        struct gateway_request *request = gateway->requests[i];
        if (request->wait == WAIT_CONFIRM) {
            i++;
        } else if (request->wait == WAIT_VIEW) {
            reply_view(gateway, request);
        } else {
            gateway_request_refuse(gateway, request, 503, STATUS_IO, "the gateway is stopping");
        }
    }
}
