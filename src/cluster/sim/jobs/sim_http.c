/* sim_http.c - requests between clients and gateways, each as text on its way.
 *
 * Every request is formatted and parsed again, so that both sides of the HTTP interface are
 * exercised. A request or its reply may be lost, so that the client hears of a failure or of
 * nothing at all; a gateway that is down refuses, one that dies breaks off what it was answering.
 */
#include "cluster/sim/jobs/sim_http.h"

#include <stdio.h>
#include "cluster/sim/jobs/cluster.h"

enum call_state {
    CALL_GOING,
    CALL_THERE, /* The gateway has it. */
    CALL_BACK
};

struct sim_call {
    struct sim_call *next;
    uint64_t id;
    uint32_t client; /* Or an observer's, or the unknown sender's. */
    uint32_t gateway;
    uint64_t request_id;
    enum call_state state;
    bool failed; /* The client hears only that. */
    bool reply_is_lost;
    struct arena arena;
    struct api_line line;
    struct api_request request;
    struct api_reply reply;
};

static struct sim_call *call_find(struct cluster *cluster, uint64_t id)
{
    struct sim_call *call = cluster->calls;
    while (call != NULL && call->id != id) {
        call = call->next;
    }
    return call;
}

static void call_free(struct cluster *cluster, struct sim_call *call)
{
    struct sim_call **link = &cluster->calls;
    while (*link != call) {
        link = &(*link)->next;
    }
    *link = call->next;
    buf_done(&call->reply.body);
    arena_done(&call->arena);
    memory_free(NULL, call, sizeof *call);
}

static uint64_t way(struct cluster *cluster)
{
    return world_between(&cluster->world, 0, cluster->settings.http_ms);
}

/* ---- back ---- */

static void observer_reply(struct cluster *cluster, const struct sim_call *call)
{
    uint32_t code = call->reply.status;
    bool is_fine = call->failed || code == 200 || code == 204 || code == 404 || code == 503;
    /* Who deletes his job and asks for another one of the name may be overtaken by it. */
    if (code == 403 && call->request.has_owner) is_fine = true;
    if (!is_fine) world_fail(&cluster->world, "an observer was answered with %u", code);
}

static void back_timer(void *context, uint64_t id)
{
    struct cluster *cluster = context;
    struct sim_call *call = call_find(cluster, id);
    if (call == NULL || call->state != CALL_BACK) return;
    struct api_reply reply = call->reply;
    uint32_t client = call->client;
    uint64_t request_id = call->request_id;
    enum api_kind kind = call->request.kind;
    bool failed = call->failed;
    call->reply.body = (struct buf){0};
    if (client == SIM_HTTP_OBSERVER) observer_reply(cluster, call);
    call_free(cluster, call);
    if (client < CLUSTER_CLIENTS_MAX) {
        if (!failed) rules_heard(&cluster->clients[client], kind, reply.status);
        sim_client_reply(&cluster->clients[client], request_id, failed ? NULL : &reply);
    }
    buf_done(&reply.body);
}

static void go_back(struct cluster *cluster, struct sim_call *call, bool failed)
{
    call->state = CALL_BACK;
    call->failed = failed;
    world_after(&cluster->world, way(cluster), back_timer, cluster, call->id);
}

void sim_http_reply(struct cluster *cluster, uint64_t id, struct api_reply *reply)
{
    struct sim_call *call = call_find(cluster, id);
    if (call == NULL || call->state != CALL_THERE) {
        if (call != NULL) world_fail(&cluster->world, "a request was answered twice");
        buf_done(&reply->body);
        return;
    }
    call->reply = *reply;
    reply->body = (struct buf){0};
    /* As the header has it: whole seconds. */
    call->reply.retry_after_ms = (reply->retry_after_ms + 999) / 1000 * 1000;
    world_trace(&cluster->world, "http: %s answers %.*s %.*s with %u",
                cluster->nodes[call->gateway].name, TEXT_ARGS(call->line.method),
                TEXT_ARGS(call->line.target), reply->status);
    rules_reply(cluster, call->client, &call->request, &call->reply);
    if (call->client == SIM_HTTP_ADVERSARY) {
        sim_adversary_reply(&cluster->adversary, call->request_id, &call->request, reply->status);
    }
    go_back(cluster, call, call->reply_is_lost);
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
    struct cluster *cluster = context;
    struct sim_call *call = call_find(cluster, id);
    if (call == NULL || call->state != CALL_GOING) return;
    struct sim_node *gateway = &cluster->nodes[call->gateway];
    if (!gateway->is_up) {
        go_back(cluster, call, true);
        return;
    }
    struct api_http http = as_server_sees_it(&call->line);
    struct error err;
    uint32_t code = 0;
    call->state = CALL_THERE;
    if (api_request_parse(&http, &call->arena, &call->request, &code, &err) != STATUS_OK) {
        if (call->client == SIM_HTTP_ADVERSARY) {
            go_back(cluster, call, true); /* The server says so; no gateway hears of it. */
            return;
        }
        world_fail(&cluster->world, "%.*s %.*s is not understood: %s", TEXT_ARGS(call->line.method),
                   TEXT_ARGS(call->line.target), err.text);
        return;
    }
    struct event event = {.kind = EVENT_REQUEST, .request = {.id = id}};
    sim_node_push(gateway, &event);
}

const struct api_request *sim_http_arrived(struct cluster *cluster, uint64_t id)
{
    struct sim_call *call = call_find(cluster, id);
    return call != NULL && call->state == CALL_THERE ? &call->request : NULL;
}

/* ---- going ---- */

/* What the client's own memory holds is gone when it comes to parsing. */
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

/* A request that is lost may be noticed (the connection breaks) or not (nothing comes). */
static void lose_some(struct cluster *cluster, struct sim_call *call)
{
    struct world *world = &cluster->world;
    bool is_lost = cluster_is_faulty(cluster) && world_chance(world, cluster->settings.http_loss);
    if (!is_lost) {
        world_after(world, way(cluster), arrive_timer, cluster, call->id);
        return;
    }
    switch (world_below(world, 4)) {
    case 0: /* Nothing comes of it: only the client's the failure timeout ends it. */
        break;
    case 1:
        go_back(cluster, call, true);
        break;
    default:
        call->reply_is_lost = true;
        world_after(world, way(cluster), arrive_timer, cluster, call->id);
        break;
    }
}

void sim_http_request(struct cluster *cluster, uint32_t client, uint32_t gateway,
                      uint64_t request_id, const struct api_request *request)
{
    struct error err;
    struct sim_call *call = memory_alloc(NULL, sizeof *call);
    if (call == NULL) {
        world_fail(&cluster->world, "out of memory");
        return;
    }
    *call = (struct sim_call){.next = cluster->calls,
                              .id = ++cluster->next_call,
                              .client = client,
                              .gateway = gateway,
                              .request_id = request_id};
    cluster->calls = call;
    if (!call_format(call, request, &err)) {
        world_fail(&cluster->world, "a request can't be written: %s", err.text);
        return;
    }
    lose_some(cluster, call);
}

/* ---- ends ---- */

void sim_http_gateway_died(struct cluster *cluster, uint32_t gateway)
{
    for (struct sim_call *call = cluster->calls; call != NULL; call = call->next) {
        if (call->gateway != gateway) continue;
        if (call->state == CALL_THERE) {
            go_back(cluster, call, true);
        } else if (call->state == CALL_BACK && world_chance(&cluster->world, 500)) {
            call->failed = true; /* It had not left yet. */
        }
    }
}

void sim_http_client_died(struct cluster *cluster, uint32_t client)
{
    struct sim_call *call = cluster->calls;
    while (call != NULL) {
        struct sim_call *next = call->next;
        if (call->client == client) {
            if (call->state == CALL_THERE) {
                struct event event = {.kind = EVENT_GONE, .gone_id = call->id};
                sim_node_push(&cluster->nodes[call->gateway], &event);
            }
            call_free(cluster, call);
        }
        call = next;
    }
}

void sim_http_done(struct cluster *cluster)
{
    while (cluster->calls != NULL) {
        call_free(cluster, cluster->calls);
    }
}
