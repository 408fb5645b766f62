/* SPDX-License-Identifier: Apache-2.0 */
/* sim_http.c - requests between clients and gateways, each as text on its way.
 *
 * Every request is formatted and parsed again, so that both sides of the HTTP interface run. A
 * request or its reply may be lost, so that the sender hears of a failure or of nothing at all; a
 * gateway that is down refuses, one that dies breaks off the requests that it was answering.
 */
#include "cluster/sim/jobs/sim_http.h"

#include <string.h>

#include "engine/base/memory.h"

static struct sim_call *call_find(const struct sim_http *http, uint64_t id)
{
    struct sim_call *call = http->calls;
    while (call != NULL && call->id != id) {
        call = call->next;
    }
    return call;
}

static void call_unlink(struct sim_http *http, const struct sim_call *call)
{
    struct sim_call **link = &http->calls;
    while (*link != call) {
        link = &(*link)->next;
    }
    *link = call->next;
}

static void call_free(struct sim_call *call)
{
    buf_done(&call->reply.body);
    arena_done(&call->arena);
    memory_free(NULL, call, sizeof *call);
}

static uint64_t way(struct sim_http *http)
{
    return world_between(http->world, 0, http->delay_ms);
}

/* ---- back ---- */

static void back_timer(void *context, uint64_t id)
{
    struct sim_http *http = context;
    struct sim_call *call = call_find(http, id);
    if (call == NULL || call->state != CALL_BACK) return;
    call_unlink(http, call); /* The receiver may end its process, and all calls of it. */
    http->returned(http->context, call);
    call_free(call);
}

static void go_back(struct sim_http *http, struct sim_call *call, bool failed)
{
    call->state = CALL_BACK;
    call->failed = failed;
    world_after(http->world, way(http), back_timer, http, call->id);
}

void sim_http_reply(struct sim_http *http, uint64_t id, struct api_reply *reply)
{
    struct sim_call *call = call_find(http, id);
    if (call == NULL || call->state != CALL_THERE) {
        if (call != NULL) world_fail(http->world, "a request was answered twice");
        buf_done(&reply->body);
        return;
    }
    call->reply = *reply;
    reply->body = (struct buf){0};
    /* The Retry-After header has whole seconds. */
    call->reply.retry_after_ms = (reply->retry_after_ms + 999) / 1000 * 1000;
    http->answered(http->context, call);
    go_back(http, call, call->reply_is_lost);
}

/* ---- there ---- */

static bool header_value(const char *line, const char *name, struct text *out)
{
    size_t size = strlen(name);
    if (strncmp(line, name, size) != 0 || line[size] != ':' || line[size + 1] != ' ') return false;
    *out = text_of(line + size + 2);
    return true;
}

static struct api_http as_server_sees_it(const struct api_line *line)
{
    struct api_http http = {.method = line->method, .path = line->target, .body = line->body};
    for (uint32_t i = 0; i < line->target.size; i++) {
        if (line->target.bytes[i] != '?') continue;
        http.path.size = i;
        http.query = (struct text){line->target.bytes + i + 1, line->target.size - i - 1};
        break;
    }
    for (uint32_t i = 0; i < line->header_count; i++) {
        (void)(header_value(line->headers[i], API_HEADER_OWNER, &http.owner) ||
               header_value(line->headers[i], API_HEADER_CHECKSUM, &http.checksum) ||
               header_value(line->headers[i], API_HEADER_TOKEN, &http.token));
    }
    return http;
}

static void arrive_timer(void *context, uint64_t id)
{
    struct sim_http *http = context;
    struct sim_call *call = call_find(http, id);
    if (call == NULL || call->state != CALL_GOING) return;
    struct api_http seen = as_server_sees_it(&call->line);
    struct error err;
    uint32_t code = 0;
    call->state = CALL_THERE;
    if (api_request_parse(&seen, &call->arena, &call->request, &code, &err) != STATUS_OK) {
        if (call->sender == SIM_HTTP_ADVERSARY) {
            go_back(http, call, true); /* The server refuses it; the role does not see it. */
            return;
        }
        world_fail(http->world, "%.*s %.*s is not understood: %s", TEXT_ARGS(call->line.method),
                   TEXT_ARGS(call->line.target), err.text);
        return;
    }
    struct event event = {.kind = EVENT_REQUEST, .request = {.id = id}};
    if (!http->deliver(http->context, call->gateway, &event)) go_back(http, call, true);
}

const struct api_request *sim_http_arrived(const struct sim_http *http, uint64_t id)
{
    const struct sim_call *call = call_find(http, id);
    return call != NULL && call->state == CALL_THERE ? &call->request : NULL;
}

/* ---- going ---- */

/* The body is copied: the sender's memory may be gone when the gateway parses it. */
static bool call_format(struct sim_call *call, const struct api_request *request, struct error *err)
{
    if (api_request_format(request, &call->arena, &call->line, err) != STATUS_OK) return false;
    struct text body = call->line.body;
    char *copy = arena_alloc(&call->arena, (size_t)body.size + 1, 8);
    if (copy == NULL) {
        error_write(err, STATUS_MEMORY, "out of memory");
        return false;
    }
    if (body.size > 0) memcpy(copy, body.bytes, body.size);
    call->line.body.bytes = copy;
    return true;
}

/* The sender notices the loss (the connection breaks) or not (no reply comes). */
static void lose_some(struct sim_http *http, struct sim_call *call)
{
    struct world *world = http->world;
    if (!world_chance(world, http->loss_per_mille)) {
        world_after(world, way(http), arrive_timer, http, call->id);
        return;
    }
    switch (world_below(world, 4)) {
    case 0: /* Only the client's own timeout ends it. */
        break;
    case 1:
        go_back(http, call, true);
        break;
    default:
        call->reply_is_lost = true;
        world_after(world, way(http), arrive_timer, http, call->id);
        break;
    }
}

void sim_http_request(struct sim_http *http, uint32_t sender, uint32_t gateway, uint64_t request_id,
                      const struct api_request *request)
{
    struct error err;
    struct sim_call *call = memory_alloc(NULL, sizeof *call);
    if (call == NULL) {
        world_fail(http->world, "out of memory");
        return;
    }
    *call = (struct sim_call){.next = http->calls,
                              .id = ++http->next_call,
                              .sender = sender,
                              .gateway = gateway,
                              .request_id = request_id};
    http->calls = call;
    if (!call_format(call, request, &err)) {
        world_fail(http->world, "a request can't be written: %s", err.text);
        return;
    }
    lose_some(http, call);
}

/* ---- ends ---- */

void sim_http_gateway_died(struct sim_http *http, uint32_t gateway)
{
    for (struct sim_call *call = http->calls; call != NULL; call = call->next) {
        if (call->gateway != gateway) continue;
        if (call->state == CALL_THERE) {
            go_back(http, call, true);
        } else if (call->state == CALL_BACK && world_chance(http->world, 500)) {
            call->failed = true; /* The reply had not left yet. */
        }
    }
}

void sim_http_sender_died(struct sim_http *http, uint32_t sender)
{
    struct sim_call *call = http->calls;
    while (call != NULL) {
        struct sim_call *next = call->next;
        if (call->sender == sender) {
            if (call->state == CALL_THERE) {
                struct event event = {.kind = EVENT_GONE, .gone_id = call->id};
                (void)http->deliver(http->context, call->gateway,
                                    &event); /* It is up: it has it. */
            }
            call_unlink(http, call);
            call_free(call);
        }
        call = next;
    }
}

void sim_http_done(struct sim_http *http)
{
    while (http->calls != NULL) {
        struct sim_call *call = http->calls;
        call_unlink(http, call);
        call_free(call);
    }
}
