/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_chunks.c - PUT chunk and PUT end: checked, admitted, published, confirmed.
 *
 * A chunk goes to a work queue and is answered when the broker has confirmed it. A request that is
 * refused or whose client is gone revokes its unpublished messages: a chunk must not appear long
 * after its client has given up and sent it elsewhere.
 */
#include "cluster/role/gateway/gateway_parts.h"

bool gateway_chunk_check(struct gateway *gateway, struct gateway_request *request,
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

/* Only fresh knowledge is a reason to refuse: a gateway that does not know takes the chunk. */
static bool chunk_is_admitted(struct gateway *gateway, struct gateway_request *request,
                              const struct api_request *api, struct gateway_job *job)
{
    uint64_t limit;
    if (!gateway_job_is_fresh(gateway, job)) {
        /* A client that sends much and never asks gets a round of ours. */
        if (job->taken[api->scan] * 2 >= gateway->config.window) job->needs_round = true;
        if (job->taken[api->scan] < gateway->config.window) return true;
        gateway_request_refuse_later(gateway, request, 429, GATEWAY_RETRY_MS,
                                     "no client has asked for the job lately: GET it first");
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

/* The body is not copied on its way: the message is written behind the bytes that HTTP received. */
void gateway_chunk_put(struct gateway *gateway, struct gateway_request *request,
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
    gateway_put_chunk_of(request)->size_bytes = api->body.size;
    struct message message =
        gateway_message(gateway, MESSAGE_CHUNK, text_of(job->id), job->layout->hash);
    message.chunk = (struct message_chunk){
        .scan = api->scan, .number = api->number, .checksum = api->checksum, .body = api->body};
    struct effect *effect = effects_add(gateway->effects, EFFECT_SEND);
    effect->send.work =
        job_layout_work_queue(job->layout, api->number, gateway->config.work_queue_count);
    effect->send.token = request->first_token;
    struct buf *body = gateway->request_body;
    if (body != NULL && body->size > 0 && (const char *)body->bytes == api->body.bytes) {
        effect->send.bytes = buf_take(body);
        message_encode_behind(&message, &effect->send.bytes);
    } else {
        message_encode(&message, &effect->send.bytes); /* It had to wait for its job. */
    }
    if (effect->send.bytes.failed) gateway->effects->failed = true;
}

void gateway_chunk_confirmed(struct gateway *gateway, struct gateway_request *request)
{
    gateway->chunk_total++;
    gateway->byte_total += gateway_put_chunk_of(request)->size_bytes;
    gateway_request_reply_empty(gateway, request, 204);
}

/* An END is idempotent; a second one that differs is refused, since the files have changed. */
void gateway_end_put(struct gateway *gateway, struct gateway_request *request,
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
    struct message message =
        gateway_message(gateway, MESSAGE_END, text_of(job->id), job->layout->hash);
    message.end =
        (struct message_end){.scan = api->scan, .count = api->end_count, .sum = api->end_sum};
    if (!gateway_request_send_all(gateway, request, &message, WAIT_CONFIRM)) return;
    *end = (struct gateway_end){true, api->end_count, api->end_sum};
}
