/* SPDX-License-Identifier: Apache-2.0 */
/* gateway.c - events in: where each of them goes.
 *
 * Time and effects of a step are fields of struct gateway, so the functions below need no further
 * argument.
 */
#include "cluster/role/gateway/gateway.h"

#include "engine/base/assert.h"
#include "cluster/role/gateway/gateway_parts.h"

static const char *const kind_names[GATEWAY_API_KINDS] = {
    [API_PUT_JOB] = "put_job",     [API_PUT_CHUNK] = "put_chunk",   [API_PUT_END] = "put_end",
    [API_GET_JOB] = "get_job",     [API_GET_RESULT] = "get_result", [API_DELETE_JOB] = "delete_job",
    [API_LIST_JOBS] = "list_jobs", [API_NODES] = "nodes",           [API_HEALTH] = "health",
    [API_METRICS] = "metrics",     [API_TIMELINE] = "timeline",
};

/* ---- health and metrics ---- */

static void put_metrics(const struct gateway *gateway, struct buf *body)
{
    buf_put_string(body, "# TYPE millrace_gateway_requests_total counter\n");
    for (uint32_t i = 0; i < GATEWAY_API_KINDS; i++) {
        buf_format(body, "millrace_gateway_requests_total{kind=\"%s\"} %llu\n", kind_names[i],
                   (unsigned long long)gateway->request_totals[i]);
    }
    const struct {
        const char *name;
        const char *type;
        uint64_t value;
    } lines[] = {
        {"chunks_total", "counter", gateway->chunk_total},
        {"bytes_total", "counter", gateway->byte_total},
        {"jobs", "gauge", gateway->job_count},
        {"requests_waiting", "gauge", gateway->request_count},
        {"connected", "gauge", gateway->connected},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        buf_format(body, "# TYPE millrace_gateway_%s %s\nmillrace_gateway_%s %llu\n", lines[i].name,
                   lines[i].type, lines[i].name, (unsigned long long)lines[i].value);
    }
}

static void reply_page(struct gateway *gateway, uint64_t id, enum api_kind kind)
{
    struct effect *effect = effects_add(gateway->effects, EFFECT_REPLY);
    effect->reply.request_id = id;
    effect->reply.api.status = 200;
    effect->reply.api.content_type = "application/json";
    if (kind == API_HEALTH) {
        buf_put_string(&effect->reply.api.body, "{\"status\":\"ok\"}\n");
    } else {
        put_metrics(gateway, &effect->reply.api.body);
        effect->reply.api.content_type = "text/plain; version=0.0.4";
    }
    if (effect->reply.api.body.failed) gateway->effects->failed = true;
}

/* ---- requests ---- */

/* In constant time: it must not show how much of a guessed token is right. */
static bool token_is_right(const struct gateway *gateway, struct text given)
{
    struct text token = gateway->config.token;
    if (token.size == 0) return true;
    if (given.size != token.size) return false;
    unsigned char difference = 0;
    for (uint32_t i = 0; i < given.size; i++) {
        difference |= (unsigned char)(given.bytes[i] ^ token.bytes[i]);
    }
    return difference == 0;
}

static void take_request(struct gateway *gateway, const struct event_request *event)
{
    const struct api_request *api = event->api;
    uint64_t id = event->id;
    ASSERT((uint32_t)api->kind < GATEWAY_API_KINDS);
    gateway->request_totals[api->kind]++;
    if (!token_is_right(gateway, api->token)) {
        gateway_reply_refusal(gateway, id, 401, 0, "this needs the cluster's token");
        return;
    }
    if (gateway->stopping) {
        gateway_reply_refusal(gateway, id, 503, 0, "the gateway is stopping");
        return;
    }
    bool is_list = api->kind == API_LIST_JOBS || api->kind == API_NODES;
    if (!is_list && api->kind != API_METRICS && !gateway->connected) {
        gateway_reply_refusal(gateway, id, 503, 0, "the gateway has no connection to the broker");
        return;
    }
    bool needs_broker = !is_list && api->kind != API_METRICS && api->kind != API_DELETE_JOB;
    if (needs_broker && gateway->blocked) {
        gateway_reply_refusal(gateway, id, 503, GATEWAY_RETRY_MS,
                              "the broker takes no messages: its memory or its disk is full");
        return;
    }
    if (api->kind == API_METRICS || api->kind == API_HEALTH) {
        reply_page(gateway, id, api->kind);
        return;
    }
    if (!is_list && !manifest_name_valid(api->job)) {
        gateway_reply_refusal(gateway, id, 400, 0, "a job's id is 1 to 64 of [A-Za-z0-9._-]");
        return;
    }
    if (gateway->request_count >= gateway->config.request_limit) {
        gateway_reply_refusal(gateway, id, 503, GATEWAY_RETRY_MS,
                              "the gateway has too many requests in flight");
        return;
    }
    struct gateway_request *request = gateway_request_add(gateway, id, api);
    if (request == NULL) {
        gateway_reply_refusal(gateway, id, 503, 0, "the gateway is out of memory");
    } else if (is_list || api->kind == API_TIMELINE) {
        gateway_list_begin(gateway, request);
    } else if (api->kind == API_PUT_JOB) {
        gateway_accept_begin(gateway, request, api);
    } else {
        gateway_dispatch_begin(gateway, request, api);
    }
}

/* A PUT or DELETE is finished without an answer: other clients may depend on it. */
static void take_gone(struct gateway *gateway, uint64_t id)
{
    struct gateway_request *request = gateway_request_by_id(gateway, id);
    if (request == NULL) return;
    if (request->kind == API_PUT_JOB || request->kind == API_PUT_END ||
        request->kind == API_DELETE_JOB) {
        request->gone = true;
        return;
    }
    gateway_request_revoke(gateway, request);
    gateway_request_drop(gateway, request);
}

/* ---- the broker ---- */

/* The broker has confirmed a message, or returned it because its queue does not exist. */
static void take_settled(struct gateway *gateway, const struct bus_event *event)
{
    struct gateway_request *request = gateway_request_by_token(gateway, event->token);
    if (request == NULL) return;
    uint32_t index = (uint32_t)(event->token - request->first_token);
    if (request->confirmed[index]) return;
    request->confirmed[index] = true;
    request->settled++;
    if (event->kind == BUS_CONFIRMED) {
        bool all = request->settled == request->token_count;
        if (request->wait == WAIT_CONFIRM && all) gateway_dispatch_confirmed(gateway, request);
    } else if (request->wait == WAIT_STORED) {
        gateway_accept_returned(gateway, request, index);
    } else {
        gateway_request_refuse(gateway, request, 503, STATUS_IO,
                               "a worker or the work queue has no queue at the broker");
    }
}

static void take_stored(struct gateway *gateway, const struct message *message)
{
    struct gateway_job *job = gateway_accept_take_stored(gateway, message);
    if (job != NULL) gateway_dispatch_job_known(gateway, job);
}

static void take_delivery(struct gateway *gateway, struct bus_delivery *delivery)
{
    struct error err;
    struct message message;
    struct text bytes = {(const char *)delivery->bytes.bytes, (uint32_t)delivery->bytes.size};
    status result = STATUS_CORRUPT;
    if (delivery->bytes.size <= UINT32_MAX) {
        result = message_decode(bytes, &gateway->scratch, &message, &err);
    } else {
        error_write(&err, STATUS_CORRUPT, "a message of more than 4 GiB");
    }
    if (result != STATUS_OK) {
        effects_say(gateway->effects, SAY_WARN, "event=message-dropped error=\"%s\"", err.text);
    } else {
        uint32_t worker = gateway_worker_named(gateway, message.from);
        if (worker < gateway->config.worker_count) {
            gateway->heard[worker] = (struct gateway_heard){true, gateway->now_ms};
        }
        switch (message.kind) {
        case MESSAGE_STATUS:
            gateway_dispatch_take_status(gateway, &message, &delivery->bytes);
            break;
        case MESSAGE_MANIFEST:
            gateway_dispatch_take_manifest(gateway, &message);
            break;
        case MESSAGE_STORED:
            take_stored(gateway, &message);
            break;
        case MESSAGE_RESULT:
            gateway_result_take(gateway, &message);
            break;
        case MESSAGE_JOBS:
            gateway_list_take_jobs(gateway, &message);
            break;
        default:
            effects_say(gateway->effects, SAY_WARN, "event=message-unexpected kind=%s from=%.*s",
                        message_name(message.kind), TEXT_ARGS(message.from));
        }
    }
    effects_add(gateway->effects, EFFECT_ACK)->delivery = delivery->id;
}

static void refuse_all(struct gateway *gateway, const char *text)
{
    while (gateway->request_count > 0) {
        gateway_request_refuse(gateway, gateway->requests[0], 503, STATUS_IO, "%s", text);
    }
}

static void take_disconnected(struct gateway *gateway)
{
    gateway->connected = false;
    gateway_rounds_abandon(gateway);
    refuse_all(gateway, "the connection to the broker was lost");
}

static void take_bus(struct gateway *gateway, struct bus_event *event)
{
    switch (event->kind) {
    case BUS_CONNECTED:
        gateway->connected = true;
        gateway->blocked = false;
        break;
    case BUS_DISCONNECTED:
        take_disconnected(gateway);
        break;
    case BUS_BLOCKED:
    case BUS_UNBLOCKED:
        gateway->blocked = event->kind == BUS_BLOCKED;
        break;
    case BUS_DELIVERY:
        take_delivery(gateway, &event->delivery);
        break;
    case BUS_CONFIRMED:
    case BUS_RETURNED:
        take_settled(gateway, event);
        break;
    case BUS_MEASURED:
        gateway_list_take_measured(gateway, &event->depths);
        break;
    }
}

/* ---- the end ---- */

/* Confirmations may still arrive; after GATEWAY_STOP_MS the rest is refused: no wait without a
 * deadline. */
static void consider_exit(struct gateway *gateway)
{
    if (!gateway->stopping || gateway->exited) return;
    bool is_late = gateway->now_ms - gateway->stopping_ms >= GATEWAY_STOP_MS;
    if (gateway->request_count > 0 && !is_late) return;
    refuse_all(gateway, "the gateway is stopping");
    gateway->exited = true;
    effects_add(gateway->effects, EFFECT_EXIT);
}

static void take_stop(struct gateway *gateway)
{
    if (gateway->stopping) return;
    gateway->stopping = true;
    gateway->stopping_ms = gateway->now_ms;
    gateway_dispatch_stop(gateway);
}

void gateway_step(struct gateway *gateway, struct event *event, struct effects *effects)
{
    gateway->now_ms = event->now_ms;
    gateway->effects = effects;
    gateway->request_body = event->kind == EVENT_REQUEST ? &event->request.body : NULL;
    if (!gateway->is_begun) gateway->begun_ms = event->now_ms;
    gateway->is_begun = true;
    arena_reset(&gateway->scratch);
    switch (event->kind) {
    case EVENT_BUS:
        take_bus(gateway, &event->bus);
        break;
    case EVENT_REQUEST:
        take_request(gateway, &event->request);
        break;
    case EVENT_GONE:
        take_gone(gateway, event->gone_id);
        break;
    case EVENT_VIEW:
        gateway_membership_take_view(gateway, event->view);
        break;
    case EVENT_HAPPENED:
        gateway_membership_take_events(gateway, event->happened);
        break;
    case EVENT_TICK:
        gateway_dispatch_tick(gateway);
        gateway_jobs_expire(gateway);
        break;
    case EVENT_STOP:
        take_stop(gateway);
        break;
    case EVENT_RECORD:
    case EVENT_INTENT:
    case EVENT_STARTED:
    case EVENT_MAPPED:
    case EVENT_LOG_FAILED:
        break; /* A gateway has no log and maps nothing. */
    }
    consider_exit(gateway);
    gateway->effects = NULL;
}

/* ---- incarnation ---- */

static status check_config(const struct gateway_config *config, struct error *err)
{
    if (config->worker_count == 0 || config->worker_count > MANIFEST_WORKERS_MAX) {
        return error_set(err, STATUS_USAGE, "a cluster has 1 to %d workers", MANIFEST_WORKERS_MAX);
    }
    if (config->work_queue_count == 0 || config->job_limit == 0 || config->request_limit == 0) {
        return error_set(err, STATUS_USAGE,
                         "a gateway needs work queues, and room for jobs and requests");
    }
    bool valid = manifest_name_valid(config->name);
    for (uint32_t i = 0; i < config->worker_count; i++) {
        valid = valid && manifest_name_valid(config->workers[i].name);
    }
    if (!valid) return error_set(err, STATUS_USAGE, "a node's name is 1 to 64 of [A-Za-z0-9._-]");
    return STATUS_OK;
}

status gateway_create(const struct gateway_config *config, struct gateway **out, struct error *err)
{
    TRY(check_config(config, err));
    struct gateway *gateway = memory_alloc(NULL, sizeof *gateway);
    if (gateway == NULL) return error_memory(err);
    *gateway = (struct gateway){.config = *config, .random = {config->seed}, .next_token = 1};
    /* A random start, so that an answer to an earlier incarnation is not taken for one to this.
     * Half of all numbers are left for counting. */
    gateway->first_number = (random_u64(&gateway->random) >> 1) + 1;
    gateway->next_number = gateway->first_number;
    arena_init(&gateway->scratch, NULL);
    gateway->jobs = memory_alloc(NULL, sizeof(struct gateway_job *) * config->job_limit);
    gateway->requests =
        memory_alloc(NULL, sizeof(struct gateway_request *) * config->request_limit);
    gateway->heard = memory_alloc(NULL, sizeof *gateway->heard * config->worker_count);
    if (gateway->jobs == NULL || gateway->requests == NULL || gateway->heard == NULL) {
        gateway_destroy(gateway);
        return error_memory(err);
    }
    for (uint32_t i = 0; i < config->worker_count; i++) {
        gateway->heard[i] = (struct gateway_heard){0};
    }
    *out = gateway;
    return STATUS_OK;
}

void gateway_destroy(struct gateway *gateway)
{
    if (gateway == NULL) return;
    gateway_requests_destroy(gateway);
    gateway_jobs_destroy(gateway);
    gateway_membership_done(gateway);
    memory_free(NULL, gateway->heard, sizeof *gateway->heard * gateway->config.worker_count);
    arena_done(&gateway->scratch);
    memory_free(NULL, gateway, sizeof *gateway);
}
