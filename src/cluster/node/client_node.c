/* SPDX-License-Identifier: Apache-2.0 */
/* client_node.c - carries out the decisions of role/client: reads chunks, calls gateways, returns
 * rows.
 *
 * It assembles the audit from the counters of all workers and checks it like that of one process:
 * without a balanced audit there is no answer.
 */
#include "cluster/node/client_node.h"

#include <stdio.h>

#include "engine/base/arena.h"
#include "engine/exec/fold/fold.h"
#include "engine/file/clock.h"
#include "cluster/net/http_client.h"
#include "cluster/node/chunk_source.h"
#include "cluster/node/client_journal.h"
#include "engine/local/table_files.h"
#include "cluster/role/client/client.h"
#include "cluster/role/job_layout.h"
#include "engine/sql/compile.h"
#include "cluster/wire/api.h"
#include "engine/data/batch_codec.h"

enum {
    PUT_LIMIT = 8,
    WAIT_MS = 20000,
    REQUEST_TIMEOUT_MS = 30000,
    RETRY_FIRST_MS = 100,
    RETRY_MAX_MS = 3000,
    TICK_MS = 50,
    CONNECT_TIMEOUT_MS = 3000,
    REPLY_LIMIT = 512 << 20,
    SHARD_COUNT = 8, /* As in one process. */
    CALLS_MAX = 64
};

/* A request in flight. */
struct node_call {
    uint64_t id; /* 0: free. */
    struct arena arena;
    struct buf body;
};

struct client_node {
    struct client_node_options options;
    const struct plan *plan;
    struct client *client;
    struct http_client *http;
    struct chunk_source *source;
    struct effects effects;
    struct node_call calls[CALLS_MAX];
    struct client_chunk reads[CALLS_MAX]; /* Read, and not yet passed to the role. */
    struct error read_errors;
    uint32_t read_count;
    bool read_failed;
    struct arena arena;
    struct arena batch_arena;
    struct counters counters;
    bool *query_done;
    uint64_t sent_bytes;
    uint64_t total_bytes;
    bool done;
    bool told_cancel;
    struct error end; /* How it ended. */
};

/* ---- the job request ---- */

static status make_request(struct client_node *node, struct job_request *out, struct error *err)
{
    const struct compile_input *source = job_source(node->options.job);
    const struct job_options *options = job_options_of(node->options.job);
    const struct table_files *files = job_files(node->options.job);
    struct arena *arena = &node->arena;
    struct manifest_query *queries =
        arena_array(arena, struct manifest_query, source->query_count + 1);
    struct manifest_setting *settings =
        arena_array(arena, struct manifest_setting, source->setting_count + 1);
    struct manifest_table *tables =
        arena_array(arena, struct manifest_table, node->plan->table_count + 1);
    if (queries == NULL || settings == NULL || tables == NULL) return error_memory(err);
    for (uint32_t i = 0; i < source->query_count; i++) {
        queries[i] = (struct manifest_query){source->queries[i].name, source->queries[i].sql};
    }
    for (uint32_t i = 0; i < source->setting_count; i++) {
        settings[i] =
            (struct manifest_setting){source->settings[i].name, source->settings[i].value};
    }
    for (uint32_t i = 0; i < node->plan->table_count; i++) {
        struct manifest_file *list =
            arena_array(arena, struct manifest_file, files[i].file_count + 1);
        if (list == NULL) return error_memory(err);
        for (uint32_t j = 0; j < files[i].file_count; j++) {
            list[j] = (struct manifest_file){files[i].files[j].name, files[i].files[j].size};
        }
        tables[i] = (struct manifest_table){
            .name = node->plan->tables[i].name, .files = list, .file_count = files[i].file_count};
    }
    for (uint32_t i = 0; i < node->plan->scan_count; i++) {
        node->total_bytes += files[node->plan->scans[i].table].byte_count;
    }
    const struct sentiment_model *sentiment = job_sentiment(node->options.job);
    char *build = arena_alloc(arena, JOB_LAYOUT_BUILD_SIZE, 1);
    if (build == NULL) return error_memory(err);
    *out = (struct job_request){
        .build = sentiment == NULL ? text_of(job_layout_build)
                                   : job_layout_build_naming(sentiment, build),
        .tables_sql = source->tables_sql,
        .queries = queries,
        .query_count = source->query_count,
        .settings = settings,
        .setting_count = source->setting_count,
        .tables = tables,
        .table_count = node->plan->table_count,
        .chunk_bytes = options->chunk_bytes,
        .field_limit = options->field_limit,
        .broadcast_limit = options->broadcast_limit,
    };
    return STATUS_OK;
}

/* ---- requests ---- */

static struct node_call *call_find(struct client_node *node, uint64_t id)
{
    for (uint32_t i = 0; i < CALLS_MAX; i++) {
        if (node->calls[i].id == id) return &node->calls[i];
    }
    return NULL;
}

static void call_done(struct node_call *call)
{
    buf_done(&call->body);
    arena_done(&call->arena);
    *call = (struct node_call){0};
}

static status call_start(struct client_node *node, struct effect_request *effect, struct error *err)
{
    struct node_call *call = call_find(node, 0);
    if (call == NULL) return error_set(err, STATUS_LIMIT, "too many requests at once");
    call->id = effect->id;
    call->body = effect->body;
    effect->body = (struct buf){0};
    struct api_request request = effect->api;
    request.body = (struct text){(const char *)call->body.bytes, (uint32_t)call->body.size};
    struct api_line line;
    TRY(api_request_format(&request, &call->arena, &line, err));
    struct http_call http = {
        .base = node->options.gateways[effect->gateway],
        .method = line.method,
        .target = line.target,
        .headers = line.headers,
        .header_count = line.header_count,
        .body = line.body,
        .timeout_ms = REQUEST_TIMEOUT_MS + request.wait_ms,
    };
    return http_client_start(node->http, call->id, &http, err);
}

static void step(struct client_node *node, struct client_event *event)
{
    event->now_ms = clock_ms();
    client_step(node->client, event, &node->effects);
}

static void give_failure(struct client_node *node, uint64_t id, struct error *err)
{
    struct client_event event = {.kind = CLIENT_REPLY, .reply = {.request_id = id, .error = err}};
    struct node_call *call = call_find(node, id);
    if (call != NULL) call_done(call);
    step(node, &event);
}

static void give_reply(struct client_node *node, struct http_done *done)
{
    struct api_reply reply = {
        .status = done->status, .retry_after_ms = done->retry_after_ms, .body = done->body};
    done->body = (struct buf){0};
    struct client_event event = {.kind = CLIENT_REPLY,
                                 .reply = {.request_id = done->id, .reply = &reply}};
    struct node_call *call = call_find(node, done->id);
    if (call != NULL) call_done(call);
    step(node, &event);
    buf_done(&reply.body);
}

/* ---- effects ---- */

static status give_rows(struct client_node *node, const struct effect_result *result,
                        struct error *err)
{
    struct schema schema = node->plan->queries[result->query].schema;
    struct batch batch;
    exchange_count_add_answer(&node->counters.taken[result->query], result->number, &result->bytes);
    arena_reset(&node->batch_arena);
    TRY(batch_decode(result->bytes.bytes, result->bytes.size, schema, &node->batch_arena, &batch,
                     err));
    TRY(node->options.rows(node->options.context, result->query, &batch, err));
    if (result->number + 1 < result->count) return STATUS_OK;
    node->query_done[result->query] = true;
    return node->options.query_done(node->options.context, result->query, err);
}

static status add_audit(struct client_node *node, const struct effect_audit *audit,
                        struct error *err)
{
    struct text bytes = {(const char *)audit->bytes.bytes, (uint32_t)audit->bytes.size};
    return counters_add(&node->counters, node->plan, bytes, err);
}

static void read_chunk(struct client_node *node, const struct effect_read *read)
{
    struct client_chunk *chunk = &node->reads[node->read_count];
    if (node->read_count == CALLS_MAX || node->read_failed) return; /* The role asks for fewer. */
    status result =
        chunk_source_read(node->source, read->scan, read->number, chunk, &node->read_errors);
    if (result != STATUS_OK) {
        node->read_failed = true;
        return;
    }
    node->read_count++;
    node->sent_bytes += chunk->body.size;
}

/* The output of the answer failed: a full disk, a closed pipe. */
static void fail(struct client_node *node, const struct error *err)
{
    if (node->end.code == STATUS_OK) node->end = *err;
    struct client_event event = {.kind = CLIENT_CANCEL};
    if (!node->told_cancel) step(node, &event);
    node->told_cancel = true;
}

static status carry_one(struct client_node *node, struct effect *effect, struct error *err)
{
    switch (effect->kind) {
    case EFFECT_REQUEST:
        if (call_start(node, &effect->request, err) != STATUS_OK) {
            give_failure(node, effect->request.id, err);
        }
        return STATUS_OK;
    case EFFECT_READ:
        read_chunk(node, &effect->read);
        return STATUS_OK;
    case EFFECT_JOURNAL:
        if (node->options.journal == NULL) return STATUS_OK;
        return client_journal_append(node->options.journal, &effect->journal, clock_ms(), err);
    case EFFECT_RESULT:
        return node->end.code != STATUS_OK ? STATUS_OK : give_rows(node, &effect->result, err);
    case EFFECT_AUDIT:
        return add_audit(node, &effect->audit, err);
    case EFFECT_PROGRESS:
        if (node->options.progress == NULL) return STATUS_OK;
        node->options.progress(node->options.context, &effect->progress, node->sent_bytes,
                               node->total_bytes);
        return STATUS_OK;
    case EFFECT_DONE:
        node->done = true;
        if (node->end.code == STATUS_OK && effect->outcome != NULL) node->end = *effect->outcome;
        return STATUS_OK;
    default:
        return STATUS_OK;
    }
}

/* Effects of a step may cause further steps, whose effects are appended. */
static void carry(struct client_node *node)
{
    struct error err;
    for (uint32_t i = 0; i < node->effects.count; i++) {
        /* The list may move while it grows. */
        struct effect effect = effects_take(&node->effects, i);
        if (carry_one(node, &effect, &err) != STATUS_OK) fail(node, &err);
        effect_done(&effect);
    }
    effects_reset(&node->effects);
}

static void give_chunks(struct client_node *node)
{
    while (node->read_count > 0 && !node->done) {
        struct client_chunk chunk = node->reads[0];
        node->read_count--;
        for (uint32_t i = 0; i < node->read_count; i++) {
            node->reads[i] = node->reads[i + 1];
        }
        struct client_event event = {.kind = CLIENT_READ, .read = {.chunk = &chunk}};
        step(node, &event);
        carry(node);
        buf_done(&chunk.body);
    }
    if (node->read_failed && !node->done) {
        node->read_failed = false;
        struct client_event event = {.kind = CLIENT_READ, .read = {.error = &node->read_errors}};
        step(node, &event);
        carry(node);
    }
}

/* ---- the loop ---- */

static status run(struct client_node *node, struct error *err)
{
    struct client_event started = {.kind = CLIENT_STARTED};
    step(node, &started);
    carry(node);
    uint64_t next_tick_ms = clock_ms() + TICK_MS;
    while (!node->done) {
        give_chunks(node);
        if (node->done) break;
        struct http_done done;
        bool any = false;
        TRY(http_client_poll(node->http, TICK_MS, &done, &any, err));
        if (any && done.failed) {
            give_failure(node, done.id, &done.error);
            buf_done(&done.body);
        } else if (any) {
            give_reply(node, &done);
        }
        carry(node);
        bool is_cancel = node->options.cancelled != NULL && atomic_load(node->options.cancelled);
        if (is_cancel && !node->told_cancel) {
            struct client_event event = {.kind = CLIENT_CANCEL};
            node->told_cancel = true;
            step(node, &event);
            carry(node);
        }
        if (clock_ms() >= next_tick_ms) {
            struct client_event event = {.kind = CLIENT_TICK};
            next_tick_ms = clock_ms() + TICK_MS;
            step(node, &event);
            carry(node);
            if (node->options.journal != NULL) {
                TRY(client_journal_tick(node->options.journal, clock_ms(), err));
            }
        }
        if (node->effects.failed) return error_memory(err);
    }
    if (node->end.code == STATUS_OK) return STATUS_OK;
    *err = node->end;
    return err->code;
}

static status check_audit(struct client_node *node, struct audit *out_audit, struct error *err)
{
    uint32_t *shard_counts = arena_array(&node->arena, uint32_t, node->plan->fold_count + 1);
    if (shard_counts == NULL) return error_memory(err);
    for (uint32_t i = 0; i < node->plan->fold_count; i++) {
        shard_counts[i] = fold_shard_count(&node->plan->folds[i], SHARD_COUNT);
    }
    struct audit_source source = {
        .plan = node->plan,
        .counters = &node->counters,
        .files = job_files(node->options.job),
        .chunk_lines = chunk_source_line_counts(node->source),
        .shard_counts = shard_counts,
    };
    TRY(audit_make(&source, job_arena(node->options.job), out_audit, err));
    TRY(audit_check(&source, err));
    out_audit->balanced = true;
    out_audit->bytes_read = node->sent_bytes;
    return STATUS_OK;
}

static status open_node(struct client_node *node, struct job_request *request, struct error *err)
{
    const struct client_node_options *options = &node->options;
    struct chunk_source_options source = {
        .plan = node->plan,
        .files = job_files(options->job),
        .field_limit = job_options_of(options->job)->field_limit,
    };
    struct http_client_options http = {
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .timeout_margin_ms = TICK_MS,
        .connections_per_host = PUT_LIMIT + 4,
        .call_limit = CALLS_MAX,
        .body_limit = REPLY_LIMIT,
        .user_agent = "millrace/" MILLRACE_VERSION,
        .ca = options->ca,
    };
    node->query_done = arena_array(&node->arena, bool, node->plan->query_count + 1);
    if (node->query_done == NULL || !counters_init(&node->counters, node->plan, &node->arena)) {
        return error_memory(err);
    }
    TRY(make_request(node, request, err));
    TRY(chunk_source_create(&source, &node->source, err));
    TRY(http_client_open(&http, &node->http, err));
    struct client_config config = {
        .job = text_of(options->id),
        .owner_key = text_of(options->owner_key),
        .token = options->token == NULL ? (struct text){"", 0} : text_of(options->token),
        .request = request,
        .plan = node->plan,
        .gateway_count = options->gateway_count,
        .put_limit = PUT_LIMIT,
        .wait_ms = WAIT_MS,
        .request_timeout_ms = REQUEST_TIMEOUT_MS,
        .retry_first_ms = RETRY_FIRST_MS,
        .retry_max_ms = RETRY_MAX_MS,
        .retry_for_ms = options->retry_for_ms,
        .sent = options->sent,
        .sent_count = options->sent_count,
        .seed = hash_bytes(options->id, text_of(options->id).size) ^ clock_ms(),
    };
    return client_create(&config, &node->client, err);
}

static void close_node(struct client_node *node)
{
    http_client_close(node->http);
    for (uint32_t i = 0; i < CALLS_MAX; i++) {
        call_done(&node->calls[i]);
    }
    for (uint32_t i = 0; i < node->read_count; i++) {
        buf_done(&node->reads[i].body);
    }
    client_destroy(node->client);
    chunk_source_destroy(node->source);
    effects_done(&node->effects);
    arena_done(&node->batch_arena);
    arena_done(&node->arena);
    memory_free(NULL, node, sizeof *node);
}

status client_node_run(const struct client_node_options *options, struct audit *out_audit,
                       struct error *err)
{
    struct client_node *node = memory_alloc(NULL, sizeof *node);
    if (node == NULL) return error_memory(err);
    *node = (struct client_node){.options = *options, .plan = job_plan(options->job)};
    memory_keep_freed();
    struct job_request request;
    double started = clock_seconds();
    double cpu_started = clock_cpu_seconds();
    status result = open_node(node, &request, err);
    if (result == STATUS_OK) result = run(node, err);
    /* An answer of no rows has no batches. */
    for (uint32_t i = 0; result == STATUS_OK && i < node->plan->query_count; i++) {
        if (!node->query_done[i]) result = options->query_done(options->context, i, err);
    }
    if (result == STATUS_OK) result = check_audit(node, out_audit, err);
    out_audit->elapsed_seconds = clock_seconds() - started;
    out_audit->cpu_seconds = clock_cpu_seconds() - cpu_started;
    close_node(node);
    return result;
}

/* ---- one call ---- */

/* *out_distrusted: it failed because the gateway's certificate cannot be verified. */
static status call_once(const struct gateway_call *call, const char *gateway,
                        struct http_client *http, struct buf *out_body, bool *out_distrusted,
                        struct error *err)
{
    char token[512];
    const char *headers[] = {token};
    struct http_call request = {
        .base = gateway,
        .method = text_of(call->method),
        .target = text_of(call->target),
        .headers = headers,
        .timeout_ms = call->timeout_ms,
    };
    if (call->token != NULL) {
        (void)snprintf(token, sizeof token, API_HEADER_TOKEN ": Bearer %s", call->token);
        request.header_count = 1;
    }
    TRY(http_client_start(http, 1, &request, err));
    for (;;) {
        struct http_done done;
        bool any = false;
        TRY(http_client_poll(http, call->timeout_ms, &done, &any, err));
        if (!any) continue;
        status result = STATUS_OK;
        if (done.failed) {
            *err = done.error;
            *out_distrusted = done.is_distrusted;
            result = err->code = done.is_distrusted ? STATUS_USAGE : done.error.code;
        } else if (done.status >= 300) {
            struct api_reply reply = {.status = done.status, .body = done.body};
            api_reply_error_text(&reply, err);
            result = err->code;
        } else {
            *out_body = done.body;
            done.body = (struct buf){0};
        }
        buf_done(&done.body);
        return result;
    }
}

status gateway_call(const struct gateway_call *call, struct buf *out_body, struct error *err)
{
    struct http_client_options options = {
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .timeout_margin_ms = TICK_MS,
        .connections_per_host = 1,
        .call_limit = 1,
        .body_limit = REPLY_LIMIT,
        .user_agent = "millrace/" MILLRACE_VERSION,
        .ca = call->ca,
        .any_name = call->any_name,
    };
    struct http_client *http;
    TRY(http_client_open(&options, &http, err));
    status result = error_set(err, STATUS_USAGE, "no gateway is given");
    struct error silence = {.code = STATUS_OK}; /* Of a gateway that may answer later. */
    bool is_distrusted = false;
    for (uint32_t i = 0; i < call->gateway_count; i++) {
        is_distrusted = false;
        result = call_once(call, call->gateways[i], http, out_body, &is_distrusted, err);
        if (result == STATUS_IO) silence = *err;
        if (result != STATUS_IO && !is_distrusted) break;
    }
    if (is_distrusted && silence.code != STATUS_OK) {
        *err = silence;
        result = silence.code;
    }
    http_client_close(http);
    return result;
}
