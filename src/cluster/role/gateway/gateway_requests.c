/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_requests.c - the requests that wait: found by id, token or number, and answered once.
 *
 * They are few (request_limit), so one array is searched from its start.
 */
#include "cluster/role/gateway/gateway_parts.h"

#include <stdarg.h>
#include <stdio.h>

#include "engine/base/assert.h"

uint64_t gateway_next_number(struct gateway *gateway)
{
    return gateway->next_number++;
}

uint32_t gateway_worker_named(const struct gateway *gateway, struct text name)
{
    uint32_t i = 0;
    while (i < gateway->config.worker_count && !text_equal(gateway->config.workers[i].name, name)) {
        i++;
    }
    return i;
}

void gateway_send(struct gateway *gateway, struct text to, const struct message *message,
                  uint64_t token)
{
    ASSERT(to.size < ROLE_NAME_SIZE);
    struct effect *effect = effects_add(gateway->effects, EFFECT_SEND);
    memcpy(effect->send.to, to.bytes, to.size);
    effect->send.token = token;
    message_encode(message, &effect->send.bytes);
    if (effect->send.bytes.failed) gateway->effects->failed = true;
}

void gateway_send_all(struct gateway *gateway, const struct message *message, uint64_t first_token)
{
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        gateway_send(gateway, gateway->config.workers[i].name, message,
                     first_token == 0 ? 0 : first_token + i);
    }
}

struct message gateway_message(const struct gateway *gateway, enum message_kind kind,
                               struct text job, uint64_t manifest)
{
    return (struct message){
        .kind = kind, .job = job, .manifest = manifest, .from = gateway->config.name};
}

struct gateway_request *gateway_request_add(struct gateway *gateway, uint64_t id,
                                            const struct api_request *api)
{
    ASSERT(gateway->request_count < gateway->config.request_limit);
    ASSERT(api->job.size < ROLE_NAME_SIZE);
    struct gateway_request *request = memory_alloc(NULL, sizeof *request);
    if (request == NULL) return NULL;
    *request = (struct gateway_request){
        .id = id,
        .kind = api->kind,
        .arrived_ms = gateway->now_ms,
        .deadline_ms = gateway->now_ms + gateway->config.reply_deadline_ms,
    };
    if (api->job.size > 0) memcpy(request->job_id, api->job.bytes, api->job.size);
    arena_init(&request->arena, NULL);
    gateway->requests[gateway->request_count++] = request;
    return request;
}

void gateway_request_revoke(struct gateway *gateway, struct gateway_request *request)
{
    for (uint32_t i = 0; i < request->token_count; i++) {
        if (request->confirmed[i]) continue;
        effects_add(gateway->effects, EFFECT_REVOKE)->revoked_token = request->first_token + i;
    }
    request->token_count = 0;
}

static void request_free(struct gateway_request *request)
{
    if (request->kind == API_PUT_JOB) buf_done(&request->of_kind.put_job.manifest);
    arena_done(&request->arena);
    memory_free(NULL, request, sizeof *request);
}

bool gateway_request_removes(const struct gateway_request *request)
{
    return request->kind == API_DELETE_JOB && request->wait == WAIT_CONFIRM && request->job != NULL;
}

void gateway_request_drop(struct gateway *gateway, struct gateway_request *request)
{
    uint32_t i = 0;
    while (i < gateway->request_count && gateway->requests[i] != request)
        i++;
    ASSERT(i < gateway->request_count);
    gateway->request_count--;
    memmove(&gateway->requests[i], &gateway->requests[i + 1],
            (gateway->request_count - i) * sizeof(struct gateway_request *));
    if (gateway_request_removes(request)) {
        ASSERT(request->job->removals > 0);
        request->job->removals--;
    }
    request_free(request);
}

void gateway_requests_destroy(struct gateway *gateway)
{
    for (uint32_t i = 0; i < gateway->request_count; i++) {
        request_free(gateway->requests[i]);
    }
    memory_free(NULL, gateway->requests,
                sizeof(struct gateway_request *) * gateway->config.request_limit);
}

/* ---- what belongs to one kind ---- */

struct gateway_put_job *gateway_put_job_of(struct gateway_request *request)
{
    ASSERT(request->kind == API_PUT_JOB);
    return &request->of_kind.put_job;
}

struct gateway_get_job *gateway_get_job_of(struct gateway_request *request)
{
    ASSERT(request->kind == API_GET_JOB);
    return &request->of_kind.get_job;
}

struct gateway_get_result *gateway_get_result_of(struct gateway_request *request)
{
    ASSERT(request->kind == API_GET_RESULT);
    return &request->of_kind.get_result;
}

struct gateway_put_chunk *gateway_put_chunk_of(struct gateway_request *request)
{
    ASSERT(request->kind == API_PUT_CHUNK);
    return &request->of_kind.put_chunk;
}

struct gateway_delete_job *gateway_delete_job_of(struct gateway_request *request)
{
    ASSERT(request->kind == API_DELETE_JOB);
    return &request->of_kind.delete_job;
}

struct gateway_list *gateway_list_of(struct gateway_request *request)
{
    ASSERT(request->kind == API_LIST_JOBS || request->kind == API_NODES ||
           request->kind == API_TIMELINE);
    return &request->of_kind.list;
}

/* ---- answers ---- */

void gateway_request_reply(struct gateway *gateway, struct gateway_request *request,
                           uint32_t status_code, const char *content_type, struct buf *body)
{
    if (body->failed) gateway->effects->failed = true;
    if (request->gone) {
        buf_done(body);
    } else {
        struct effect *effect = effects_add(gateway->effects, EFFECT_REPLY);
        effect->reply = (struct effect_reply){
            .request_id = request->id,
            .api = {.status = status_code, .content_type = content_type, .body = *body}};
        *body = (struct buf){0};
    }
    gateway_request_drop(gateway, request);
}

void gateway_request_reply_empty(struct gateway *gateway, struct gateway_request *request,
                                 uint32_t status_code)
{
    struct buf none = {0};
    gateway_request_reply(gateway, request, status_code, "application/json", &none);
}

static void reply_error(struct gateway *gateway, uint64_t id, uint32_t status_code,
                        uint32_t retry_ms, const struct error *err)
{
    struct api_reply reply = {0};
    api_reply_error(&reply, status_code, err);
    if (reply.body.failed) gateway->effects->failed = true;
    struct effect *effect = effects_add(gateway->effects, EFFECT_REPLY);
    reply.retry_after_ms = retry_ms;
    effect->reply = (struct effect_reply){.request_id = id, .api = reply};
}

void gateway_reply_refusal(struct gateway *gateway, uint64_t id, uint32_t status_code,
                           uint32_t retry_ms, const char *text)
{
    struct error err;
    status code = status_code == 503 ? STATUS_IO : STATUS_USAGE;
    error_write(&err, code, "%s", text);
    reply_error(gateway, id, status_code, retry_ms, &err);
}

/* A refused request leaves no message behind that might still be published. */
static void refuse(struct gateway *gateway, struct gateway_request *request, uint32_t status_code,
                   uint32_t retry_ms, const struct error *err)
{
    gateway_request_revoke(gateway, request);
    if (!request->gone) reply_error(gateway, request->id, status_code, retry_ms, err);
    gateway_request_drop(gateway, request);
}

void gateway_request_refuse_error(struct gateway *gateway, struct gateway_request *request,
                                  uint32_t status_code, const struct error *err)
{
    refuse(gateway, request, status_code, 0, err);
}

void gateway_request_refuse_later(struct gateway *gateway, struct gateway_request *request,
                                  uint32_t status_code, uint32_t retry_ms, const char *text)
{
    struct error err;
    error_write(&err, STATUS_LIMIT, "%s", text);
    refuse(gateway, request, status_code, retry_ms, &err);
}

void gateway_request_refuse(struct gateway *gateway, struct gateway_request *request,
                            uint32_t status_code, status code, const char *format, ...)
{
    struct error err = {.code = code};
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(err.text, sizeof err.text, format, arguments);
    va_end(arguments);
    if (size < 0) err.text[0] = '\0';
    refuse(gateway, request, status_code, 0, &err);
}

/* ---- copies, tokens ---- */

/* Owner key and token are not kept longer than needed. */
bool gateway_request_hold(struct gateway *gateway, struct gateway_request *request,
                          const struct api_request *api)
{
    struct arena *arena = &request->arena;
    struct api_request *held = &request->api;
    *held = *api;
    held->job = text_of(request->job_id);
    held->query.bytes = arena_copy_string(arena, api->query);
    held->owner_key = (struct text){0};
    held->token = (struct text){0};
    struct scan_sent *sent = arena_array(arena, struct scan_sent, api->sent_count + 1);
    char *body = arena_alloc(arena, (size_t)api->body.size + 1, 8);
    if (held->query.bytes == NULL || sent == NULL || body == NULL) {
        gateway_request_refuse(gateway, request, 503, STATUS_MEMORY,
                               "the gateway is out of memory");
        return false;
    }
    if (api->sent_count > 0) memcpy(sent, api->sent, sizeof *sent * api->sent_count);
    if (api->body.size > 0) memcpy(body, api->body.bytes, api->body.size);
    held->sent = sent;
    held->body.bytes = body;
    return true;
}

bool gateway_request_take_tokens(struct gateway *gateway, struct gateway_request *request,
                                 uint32_t count)
{
    request->confirmed = arena_array(&request->arena, bool, count);
    if (request->confirmed == NULL) {
        gateway_request_refuse(gateway, request, 503, STATUS_MEMORY,
                               "the gateway is out of memory");
        return false;
    }
    request->first_token = gateway->next_token;
    request->token_count = count;
    gateway->next_token += count;
    return true;
}

bool gateway_request_send_all(struct gateway *gateway, struct gateway_request *request,
                              const struct message *message, enum gateway_wait wait)
{
    if (!gateway_request_take_tokens(gateway, request, gateway->config.worker_count)) return false;
    gateway_send_all(gateway, message, request->first_token);
    request->wait = wait;
    return true;
}

struct gateway_request *gateway_request_by_id(struct gateway *gateway, uint64_t id)
{
    for (uint32_t i = 0; i < gateway->request_count; i++) {
        if (gateway->requests[i]->id == id) return gateway->requests[i];
    }
    return NULL;
}

struct gateway_request *gateway_request_by_token(struct gateway *gateway, uint64_t token)
{
    for (uint32_t i = 0; i < gateway->request_count; i++) {
        struct gateway_request *request = gateway->requests[i];
        if (token >= request->first_token && token - request->first_token < request->token_count) {
            return request;
        }
    }
    return NULL;
}

struct gateway_request *gateway_request_by_number(struct gateway *gateway, enum gateway_wait wait,
                                                  uint64_t number)
{
    for (uint32_t i = 0; i < gateway->request_count; i++) {
        struct gateway_request *request = gateway->requests[i];
        if (request->wait == wait && request->number == number) return request;
    }
    return NULL;
}
