/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_node.c - carries out the decisions of role/gateway: HTTP on one side, the bus on the
 * other.
 *
 * The server's thread parses requests and posts them to the mailbox; it answers a request that
 * can't be parsed at once, so that the role never sees it.
 */
#include <stdio.h>

#include "engine/file/file.h"
#include "cluster/net/http_server.h"
#include "cluster/node/exposure.h"
#include "engine/local/job.h"
#include "cluster/node/node_core.h"
#include "engine/local/sentiment_file.h"
#include "cluster/role/gateway/gateway.h"
#include "engine/sql/compile.h"
#include "cluster/wire/api.h"

enum {
    HEADER_LIMIT = 64 << 10,
    IDLE_S = 120,
    BODIES_PER_WINDOW = 4, /* Bodies held at once, in windows of chunks. */
    SHARD_COUNT = 8,       /* As in one process, since the audit shows it. */
    SYNC_DEADLINE_MS = 2000,
    REPLY_DEADLINE_MS = 10000,
    JOB_LIMIT = 1024,
    STOP_MS = 10000
};

enum { HEADER_OWNER, HEADER_CHECKSUM, HEADER_TOKEN };

struct gateway_node {
    struct http_listener listener; /* First: the server sees only this. */
    struct node_core core;
    struct gateway *gateway;
    struct http_server *server;
    struct job **analyses; /* Open as long as their texts are used. */
    uint32_t analysis_count;
};

/* Static, since bodies may be in flight when a server is closed. */
static struct budget bodies;

/* A request on its way to the role. */
struct waiting_request {
    struct http_request http;
    struct arena arena;
    struct api_request api;
};

static void waiting_request_done(struct waiting_request *waiting)
{
    http_request_done(&waiting->http);
    arena_done(&waiting->arena);
    memory_free(NULL, waiting, sizeof *waiting);
}

static void reply(struct gateway_node *node, uint64_t id, struct api_reply *api)
{
    struct http_reply http = {.status = api->status,
                              .retry_after_ms = api->retry_after_ms,
                              .content_type = api->content_type,
                              .body = buf_take(&api->body)};
    http_server_reply(node->server, id, &http);
}

static void refuse(struct gateway_node *node, uint64_t id, uint32_t http_status,
                   const struct error *err)
{
    struct api_reply api = {0};
    api_reply_error(&api, http_status, err);
    reply(node, id, &api);
}

static void on_request(struct http_listener *listener, struct http_request *request)
{
    struct gateway_node *node = (struct gateway_node *)listener;
    struct error err;
    uint32_t http_status = 0;
    struct waiting_request *waiting = memory_alloc(NULL, sizeof *waiting);
    if (waiting == NULL) {
        error_write(&err, STATUS_MEMORY, "out of memory");
        refuse(node, request->id, 0, &err);
        http_request_done(request);
        return;
    }
    *waiting = (struct waiting_request){.http = *request};
    struct api_http http = {
        .method = waiting->http.method,
        .path = waiting->http.path,
        .query = waiting->http.query,
        .owner = waiting->http.headers[HEADER_OWNER],
        .checksum = waiting->http.headers[HEADER_CHECKSUM],
        .token = waiting->http.headers[HEADER_TOKEN],
        .body = {(const char *)waiting->http.body.bytes, (uint32_t)waiting->http.body.size},
    };
    if (api_request_parse(&http, &waiting->arena, &waiting->api, &http_status, &err) != STATUS_OK) {
        refuse(node, waiting->http.id, http_status, &err);
        waiting_request_done(waiting);
        return;
    }
    struct event event = {
        .kind = EVENT_REQUEST,
        .request = {.id = waiting->http.id, .api = &waiting->api, .body = waiting->http.body}};
    waiting->http.body = (struct buf){0};
    mailbox_post(node->core.mailbox, &event);
}

static void on_gone(struct http_listener *listener, uint64_t id)
{
    struct gateway_node *node = (struct gateway_node *)listener;
    struct event event = {.kind = EVENT_GONE, .gone_id = id};
    mailbox_post(node->core.mailbox, &event);
}

static struct waiting_request *waiting_of(const struct event *event)
{
    if (event->kind != EVENT_REQUEST) return NULL;
    return (struct waiting_request *)((char *)(uintptr_t)event->request.api -
                                      offsetof(struct waiting_request, api));
}

static void gateway_event_done(struct event *event)
{
    struct waiting_request *waiting = waiting_of(event);
    if (waiting != NULL) waiting_request_done(waiting);
    node_core_event_done(event);
}

static void step(void *context, struct event *event)
{
    struct gateway_node *node = context;
    struct effects *effects = &node->core.effects;
    if (event->kind == EVENT_STOP) http_server_stop_taking(node->server);
    gateway_step(node->gateway, event, effects);
    gateway_event_done(event);
    for (uint32_t i = 0; i < effects->count; i++) {
        struct effect *effect = &effects->items[i];
        if (node_core_carry(&node->core, effect) || effect->kind != EFFECT_REPLY) continue;
        reply(node, effect->reply.request_id, &effect->reply.api);
    }
    effects_reset(effects);
}

static status read_analyses(struct gateway_node *node, struct gateway_config *config,
                            struct error *err)
{
    const struct node_options *options = &node->core.options;
    struct arena *arena = &node->core.arena;
    struct gateway_analysis *analyses =
        arena_array(arena, struct gateway_analysis, options->analysis_count + 1);
    node->analyses = arena_array(arena, struct job *, options->analysis_count + 1);
    if (analyses == NULL || node->analyses == NULL) return error_memory(err);
    for (uint32_t i = 0; i < options->analysis_count; i++) {
        struct job_options job = {.analysis_dir = options->analyses[i].folder};
        TRY(job_open(&job, &node->analyses[i], err));
        node->analysis_count = i + 1;
        const struct compile_input *source = job_source(node->analyses[i]);
        struct manifest_query *queries =
            arena_array(arena, struct manifest_query, source->query_count + 1);
        if (queries == NULL) return error_memory(err);
        for (uint32_t j = 0; j < source->query_count; j++) {
            queries[j] = (struct manifest_query){source->queries[j].name, source->queries[j].sql};
        }
        analyses[i] = (struct gateway_analysis){.name = text_of(options->analyses[i].name),
                                                .tables_sql = source->tables_sql,
                                                .queries = queries,
                                                .query_count = source->query_count};
    }
    config->analyses = analyses;
    config->analysis_count = options->analysis_count;
    return STATUS_OK;
}

static status make_gateway(struct gateway_node *node, struct error *err)
{
    const struct cluster_config *config = node->core.options.config;
    struct arena *arena = &node->core.arena;
    struct manifest_worker *workers =
        arena_array(arena, struct manifest_worker, config->worker_count + 1);
    if (workers == NULL) return error_memory(err);
    for (uint32_t i = 0; i < config->worker_count; i++) {
        workers[i] = (struct manifest_worker){.name = text_of(config->workers[i].name),
                                              .maps = config->workers[i].maps,
                                              .folds = config->workers[i].folds};
    }
    struct text token;
    TRY(exposure_token(config, arena, &token, err));
    const struct sentiment_model *sentiment;
    TRY(sentiment_file_read(config->sentiment_model, &node->core.arena, &sentiment, err));
    struct gateway_config options = {
        .name = text_of(node->core.options.name),
        .sentiment = sentiment,
        .workers = workers,
        .worker_count = config->worker_count,
        .work_queue_count = config->work_queues,
        .shard_count = SHARD_COUNT,
        .window = config->window,
        .broadcast_limit = config->broadcast_limit,
        .memory_limit = config->memory_limit,
        .log_limit = config->log_limit,
        .max_message = config->max_message,
        .sync_period_ms = config->sync_period_ms,
        .sync_deadline_ms = SYNC_DEADLINE_MS,
        .reply_deadline_ms = REPLY_DEADLINE_MS,
        .node_timeout_ms = config->node_timeout_ms,
        .client_timeout_ms = config->client_timeout_ms,
        .measures_queues = true,
        .job_limit = JOB_LIMIT,
        .request_limit = config->http_connections,
        .token = token,
        .seed = node->core.seed,
    };
    TRY(read_analyses(node, &options, err));
    return gateway_create(&options, &node->gateway, err);
}

static status open_server(struct gateway_node *node, struct error *err)
{
    const struct cluster_config *config = node->core.options.config;
    const struct config_endpoint *self = NULL;
    for (uint32_t i = 0; i < config->gateway_count; i++) {
        if (text_equal(text_of(config->gateways[i].name), text_of(node->core.options.name))) {
            self = &config->gateways[i];
        }
    }
    if (self == NULL) {
        return error_set(err, STATUS_USAGE, "%s has no gateway %s", config->path,
                         node->core.options.name);
    }
    TRY(cluster_config_check_exposure(config, err));
    bodies.limit_bytes =
        (size_t)config->window * BODIES_PER_WINDOW * config->chunk_size + config->http_body_limit;
    struct http_server_options options = {
        .address = self->host,
        .port = self->port,
        .body_limit = config->http_body_limit,
        .body_room = MESSAGE_ROOM_BYTES,
        .bodies = &bodies,
        .header_limit = HEADER_LIMIT,
        .connection_limit = config->http_connections,
        .address_limit = exposure_address_limit(config, self),
        .idle_timeout_s = IDLE_S,
        .deadline_ms = config->http_timeout_ms,
        .certificate = config->tls_certificate,
        .key = config->tls_key,
        .header_names = {[HEADER_OWNER] = API_HEADER_OWNER,
                         [HEADER_CHECKSUM] = API_HEADER_CHECKSUM,
                         [HEADER_TOKEN] = API_HEADER_TOKEN},
    };
    return http_server_open(&options, &node->listener, &node->server, err);
}

status gateway_node_run(const struct node_options *options, struct error *err)
{
    struct gateway_node node = {.listener = {.request = on_request, .gone = on_gone}};
    status result = node_core_open(&node.core, options, NODE_GATEWAY, err);
    if (result == STATUS_OK) result = make_gateway(&node, err);
    if (result == STATUS_OK) result = open_server(&node, err);
    if (result == STATUS_OK) result = node_core_connect(&node.core, 1, err);
    if (result == STATUS_OK) result = node_core_run(&node.core, STOP_MS, step, &node, err);
    if (result != STATUS_OK && result != STATUS_CANCELLED) {
        node_log_say(node.core.log, SAY_ERROR, "event=failed reason=\"%s\"", err->text);
    }
    http_server_close(node.server);
    struct event event;
    while (node.core.mailbox != NULL && mailbox_take(node.core.mailbox, 0, &event)) {
        gateway_event_done(&event);
    }
    gateway_destroy(node.gateway);
    for (uint32_t i = 0; i < node.analysis_count; i++) {
        job_close(node.analyses[i]);
    }
    return node_core_close(&node.core, result);
}
