/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_accept.c - PUT of a job: accepted when every worker has stored its manifest.
 *
 * This is one round, not two-phase commit: a worker that stored the job may begin at once. A job
 * that a worker refuses is taken back where it is new. If a worker is silent nothing is taken back:
 * the client will ask again, and if it does not, the job's lease ends at each worker.
 *
 * A job that any worker holds was accepted before, so none may refuse it: those that are full are
 * ordered to store it.
 */
#include "cluster/role/gateway/gateway_parts.h"

#include <stdio.h>

#include "engine/base/assert.h"

/* Defaults. */
enum { CHUNK_BYTES = 512 << 10, FIELD_BYTES_MAX = 64 << 20 };

enum { WAIT_FOR_SLOT_MS = 500, WAIT_FOR_SLOT_JITTER_MS = 1000, NAMES_SIZE = 1024 };

/* ---- the manifest ---- */

static void names_append(char *names, struct text name)
{
    size_t used = strlen(names);
    if (used >= NAMES_SIZE - 1) return;
    int size =
        snprintf(names + used, NAMES_SIZE - used, "%s%.*s", used == 0 ? "" : ", ", TEXT_ARGS(name));
    if (size < 0) names[used] = '\0';
}

static const struct gateway_analysis *find_analysis(const struct gateway *gateway, struct text name,
                                                    struct error *err)
{
    char names[NAMES_SIZE] = "";
    for (uint32_t i = 0; i < gateway->config.analysis_count; i++) {
        const struct gateway_analysis *analysis = &gateway->config.analyses[i];
        if (text_equal(analysis->name, name)) return analysis;
        names_append(names, analysis->name);
    }
    error_write(err, STATUS_USAGE, "no analysis %.*s here (there are: %s)", TEXT_ARGS(name), names);
    return NULL;
}

static bool has_query(const struct manifest_query *queries, uint32_t count, struct text name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (text_equal(queries[i].name, name)) return true;
    }
    return false;
}

/* Queries that are only named are those of the analysis, in its order, as with `millrace run`. */
static status take_analysis(struct gateway *gateway, struct job_request *asked, struct error *err)
{
    const struct gateway_analysis *analysis = find_analysis(gateway, asked->analysis, err);
    if (analysis == NULL) return STATUS_USAGE;
    for (uint32_t i = 0; i < asked->query_count; i++) {
        struct text name = asked->queries[i].name;
        if (asked->queries[i].sql.size > 0 || asked->tables_sql.size > 0) {
            return error_set(err, STATUS_USAGE, "give SQL, or the name of an analysis, not both");
        }
        if (!has_query(analysis->queries, analysis->query_count, name)) {
            char names[NAMES_SIZE] = "";
            for (uint32_t j = 0; j < analysis->query_count; j++) {
                names_append(names, analysis->queries[j].name);
            }
            return error_set(err, STATUS_USAGE, "no query %.*s in %.*s (there are: %s)",
                             TEXT_ARGS(name), TEXT_ARGS(analysis->name), names);
        }
    }
    struct manifest_query *queries =
        arena_array(&gateway->scratch, struct manifest_query, analysis->query_count + 1);
    if (queries == NULL) return error_memory(err);
    uint32_t count = 0;
    for (uint32_t i = 0; i < analysis->query_count; i++) {
        bool is_wanted = asked->query_count == 0 ||
                         has_query(asked->queries, asked->query_count, analysis->queries[i].name);
        if (is_wanted) queries[count++] = analysis->queries[i];
    }
    asked->tables_sql = analysis->tables_sql;
    asked->queries = queries;
    asked->query_count = count;
    return STATUS_OK;
}

/* A client that names no model of sentiment() gets the cluster's. */
static status check_build(const struct gateway *gateway, struct text asked, struct error *err)
{
    char own[JOB_LAYOUT_BUILD_SIZE];
    struct text named = job_layout_build_naming(gateway->config.sentiment, own);
    uint32_t base = (uint32_t)strlen(job_layout_build);
    bool is_same = text_equal(asked, text_of(job_layout_build)) || text_equal(asked, named);
    if (asked.size == 0 || is_same) return STATUS_OK;
    if (asked.size > base && memcmp(asked.bytes, job_layout_build, base) == 0 &&
        asked.bytes[base] == '+') {
        return error_set(err, STATUS_USAGE,
                         "the cluster has another model of sentiment() than the client asks for: "
                         "leave --sentiment-model out, or name the file as sentiment_model in the "
                         "cluster file of all nodes");
    }
    return error_set(err, STATUS_USAGE,
                     "the client is build %.*s and the cluster is build %s: let both be the same",
                     TEXT_ARGS(asked), job_layout_build);
}

static status make_manifest(struct gateway *gateway, const struct api_request *api,
                            struct manifest *out, struct error *err)
{
    const struct gateway_config *config = &gateway->config;
    struct job_request asked;
    TRY(job_request_decode(api->body, &gateway->scratch, &asked, err));
    char *own = arena_alloc(&gateway->scratch, JOB_LAYOUT_BUILD_SIZE, 1);
    if (own == NULL) return error_memory(err);
    TRY(check_build(gateway, asked.build, err));
    if (asked.analysis.size > 0) TRY(take_analysis(gateway, &asked, err));
    if ((uint64_t)asked.chunk_bytes + GATEWAY_HEADROOM_BYTES > config->max_message) {
        return error_set(err, STATUS_USAGE,
                         "chunks of %u bytes don't fit messages of at most %llu: give a smaller "
                         "--chunk-size, or raise max_message in the cluster file",
                         asked.chunk_bytes, (unsigned long long)config->max_message);
    }
    uint64_t broadcast_limit = asked.broadcast_limit;
    if (broadcast_limit == 0) broadcast_limit = config->broadcast_limit;
    if (config->broadcast_limit != 0 && broadcast_limit > config->broadcast_limit) {
        return error_set(err, STATUS_USAGE,
                         "build sides may have %llu bytes in this cluster, and the client planned "
                         "with %llu: submit with --broadcast-limit %llu",
                         (unsigned long long)config->broadcast_limit,
                         (unsigned long long)broadcast_limit,
                         (unsigned long long)config->broadcast_limit);
    }
    *out = (struct manifest){
        .job = api->job,
        .build = job_layout_build_with(config->sentiment, own),
        .owner = api->owner,
        .tables_sql = asked.tables_sql,
        .queries = asked.queries,
        .query_count = asked.query_count,
        .settings = asked.settings,
        .setting_count = asked.setting_count,
        .tables = asked.tables,
        .table_count = asked.table_count,
        .workers = config->workers,
        .worker_count = config->worker_count,
        .shard_count = config->shard_count,
        .chunk_bytes = asked.chunk_bytes != 0 ? asked.chunk_bytes : CHUNK_BYTES,
        .field_limit = asked.field_limit != 0 ? asked.field_limit : FIELD_BYTES_MAX,
        .broadcast_limit = broadcast_limit,
        .memory_limit = config->memory_limit,
        .log_limit = config->log_limit,
    };
    return job_layout_fingerprint(out, err);
}

static struct text manifest_text(const struct gateway_put_job *put)
{
    return (struct text){(const char *)put->manifest.bytes, (uint32_t)put->manifest.size};
}

static bool write_manifest(struct gateway *gateway, struct gateway_request *request,
                           const struct api_request *api)
{
    struct error err;
    struct manifest manifest;
    status result = make_manifest(gateway, api, &manifest, &err);
    if (result != STATUS_OK) {
        gateway_request_refuse_error(gateway, request, result == STATUS_MEMORY ? 503 : 400, &err);
        return false;
    }
    struct gateway_put_job *put = gateway_put_job_of(request);
    manifest_encode(&manifest, &put->manifest);
    if (put->manifest.failed) {
        gateway_request_refuse(gateway, request, 400, STATUS_INPUT,
                               "the job has a name or a text that is not allowed");
        return false;
    }
    if (put->manifest.size + GATEWAY_HEADROOM_BYTES > gateway->config.max_message) {
        gateway_request_refuse(gateway, request, 413, STATUS_LIMIT,
                               "the job's SQL and list of files are too long: %zu bytes",
                               put->manifest.size);
        return false;
    }
    put->hash = manifest_hash(manifest_text(put));
    return true;
}

/* ---- the workers ---- */

static struct message message_store(const struct gateway *gateway, struct gateway_request *request)
{
    const struct gateway_put_job *put = gateway_put_job_of(request);
    struct message message =
        gateway_message(gateway, MESSAGE_MANIFEST, text_of(request->job_id), put->hash);
    message.store.request = request->number;
    message.store.bytes = manifest_text(put);
    return message;
}

static void refuse_taken(struct gateway *gateway, struct gateway_request *request)
{
    gateway_request_refuse(gateway, request, 409, STATUS_USAGE, "there is another job %s already",
                           request->job_id);
}

void gateway_accept_begin(struct gateway *gateway, struct gateway_request *request,
                          const struct api_request *api)
{
    if (!api->has_owner) {
        gateway_request_refuse(gateway, request, 400, STATUS_INPUT,
                               "a job needs an owner key in " API_HEADER_OWNER);
        return;
    }
    if (!write_manifest(gateway, request, api)) return;
    struct gateway_put_job *put = gateway_put_job_of(request);
    struct gateway_job *job = gateway_job_find(gateway, api->job);
    bool differs = job != NULL && job->layout != NULL && job->layout->hash != put->hash;
    if (differs && !gateway_job_forget_old(gateway, job)) {
        refuse_taken(gateway, request);
        return;
    }
    put->stored = arena_array(&request->arena, struct gateway_stored, gateway->config.worker_count);
    if (put->stored == NULL) {
        gateway_request_refuse(gateway, request, 503, STATUS_MEMORY,
                               "the gateway is out of memory");
        return;
    }
    request->number = gateway_next_number(gateway);
    struct message message = message_store(gateway, request);
    gateway_request_send_all(gateway, request, &message, WAIT_STORED);
}

/* ---- the outcome ---- */

static bool is_outcome(const struct gateway_stored *stored, enum stored_outcome outcome)
{
    return stored->answered && stored->outcome == outcome;
}

/* Of at least one worker. */
static bool has_outcome(const struct gateway *gateway, struct gateway_request *request,
                        enum stored_outcome outcome)
{
    const struct gateway_stored *stored = gateway_put_job_of(request)->stored;
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        if (is_outcome(&stored[i], outcome)) return true;
    }
    return false;
}

static void take_back(struct gateway *gateway, struct gateway_request *request)
{
    const struct gateway_put_job *put = gateway_put_job_of(request);
    struct message message =
        gateway_message(gateway, MESSAGE_REMOVE, text_of(request->job_id), put->hash);
    message.remove.reason = REMOVE_REFUSED;
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        if (!is_outcome(&put->stored[i], STORED_NEW)) continue;
        gateway_send(gateway, gateway->config.workers[i].name, &message, 0);
    }
}

static void order_full(struct gateway *gateway, struct gateway_request *request)
{
    struct message message = message_store(gateway, request);
    message.store.order = true;
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        struct gateway_stored *stored = &gateway_put_job_of(request)->stored[i];
        if (!is_outcome(stored, STORED_FULL)) continue;
        *stored = (struct gateway_stored){.ordered = true};
        gateway_send(gateway, gateway->config.workers[i].name, &message, 0);
    }
    request->deadline_ms = gateway->now_ms + gateway->config.reply_deadline_ms;
}

static void refuse_silence(struct gateway *gateway, struct gateway_request *request)
{
    char names[NAMES_SIZE] = "";
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        if (gateway_put_job_of(request)->stored[i].answered) continue;
        names_append(names, gateway->config.workers[i].name);
    }
    gateway_request_refuse(gateway, request, 503, STATUS_IO, "no answer from %s", names);
}

/* Refusals that hold however the silent workers would answer. */
static bool refuse_for_good(struct gateway *gateway, struct gateway_request *request)
{
    bool is_taken = has_outcome(gateway, request, STORED_DIFFERS);
    bool is_cancelled = has_outcome(gateway, request, STORED_CANCELLED);
    if (!is_taken && !is_cancelled && !has_outcome(gateway, request, STORED_REFUSED)) return false;
    take_back(gateway, request);
    if (is_taken) {
        refuse_taken(gateway, request);
    } else if (is_cancelled) {
        gateway_request_refuse(gateway, request, 409, STATUS_CANCELLED, "job %s was cancelled",
                               request->job_id);
    } else {
        gateway_request_refuse(gateway, request, 400, STATUS_USAGE, "%s",
                               gateway_put_job_of(request)->refusal);
    }
    return true;
}

/* A worker that has just stored the job has applied nothing of it. */
static void note_stored(struct gateway *gateway, struct gateway_request *request,
                        struct gateway_job *job)
{
    const struct gateway_put_job *put = gateway_put_job_of(request);
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        struct gateway_peer *peer = &job->peers[i];
        peer->live = true;
        bool is_later = peer->heard && peer->request > request->number;
        bool is_held = put->stored[i].outcome == STORED_HELD && gateway_peer_knows(job, peer);
        if (is_later || is_held) continue;
        peer->heard = true;
        peer->from_status = false;
        peer->request = request->number;
        peer->manifest = put->hash;
        peer->status = (struct message_status){.state = WORKER_JOB_RUNNING};
    }
}

/* NULL: the request was refused. */
static struct gateway_job *learn_stored(struct gateway *gateway, struct gateway_request *request)
{
    struct error err;
    struct job_layout *layout = NULL;
    const struct gateway_put_job *put = gateway_put_job_of(request);
    struct gateway_job *job = gateway_job_find(gateway, text_of(request->job_id));
    if (job == NULL) job = gateway_job_add(gateway, text_of(request->job_id));
    if (job == NULL) {
        gateway_request_refuse_later(gateway, request, 503, GATEWAY_RETRY_MS,
                                     "the gateway has too many jobs in flight");
        return NULL;
    }
    job->asked_ms = gateway->now_ms;
    if (job->layout == NULL) {
        status result =
            job_layout_create(manifest_text(put), gateway->config.sentiment, &layout, &err);
        if (result == STATUS_OK) result = gateway_job_learn(gateway, job, layout, &err);
        if (result != STATUS_OK) {
            gateway_request_refuse_error(gateway, request, 503, &err);
            return NULL;
        }
        job->round.active = false;
    }
    if (job->layout->hash != put->hash) {
        refuse_taken(gateway, request);
        return NULL;
    }
    return job;
}

static struct gateway_job *accept_finish(struct gateway *gateway, struct gateway_request *request)
{
    struct gateway_job *job = learn_stored(gateway, request);
    if (job == NULL) return NULL;
    note_stored(gateway, request, job);
    job->told = false; /* A client that puts a job again has not seen earlier views. */
    bool is_new = has_outcome(gateway, request, STORED_NEW);
    struct job_view view;
    struct buf body = {0};
    if (gateway_job_view_make(gateway, job, READER_OTHER, &view)) {
        view.state = JOB_ACCEPTED;
        job_view_encode(&view, &body);
    } else {
        gateway->effects->failed = true;
    }
    gateway_request_reply(gateway, request, is_new ? 201 : 200, "application/json", &body);
    return job;
}

/* Returns the job that is now accepted, or NULL. */
static struct gateway_job *decide(struct gateway *gateway, struct gateway_request *request)
{
    const struct gateway_stored *stored = gateway_put_job_of(request)->stored;
    bool is_returned = false;
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        if (!stored[i].answered && !stored[i].returned) return NULL;
        if (stored[i].returned) is_returned = true;
    }
    if (refuse_for_good(gateway, request)) return NULL;
    if (is_returned) {
        refuse_silence(gateway, request);
    } else if (!has_outcome(gateway, request, STORED_FULL)) {
        return accept_finish(gateway, request);
    } else if (has_outcome(gateway, request, STORED_HELD)) {
        order_full(gateway, request);
    } else {
        take_back(gateway, request);
        uint32_t jitter_ms = random_below(&gateway->random, WAIT_FOR_SLOT_JITTER_MS + 1);
        gateway_request_refuse_later(gateway, request, 429, WAIT_FOR_SLOT_MS + jitter_ms,
                                     "the cluster has as many jobs as it takes: wait for a slot");
    }
    return NULL;
}

void gateway_accept_give_up(struct gateway *gateway, struct gateway_request *request)
{
    if (!refuse_for_good(gateway, request)) refuse_silence(gateway, request);
}

void gateway_accept_returned(struct gateway *gateway, struct gateway_request *request,
                             uint32_t worker)
{
    ASSERT(worker < gateway->config.worker_count);
    struct gateway_stored *stored = &gateway_put_job_of(request)->stored[worker];
    if (!stored->answered) stored->returned = true;
    (void)decide(gateway, request); /* Accepts nothing: a worker has no inbox. */
}

/* The answer to an order that no request waits for: a worker that cannot do its part of a running
 * job fails it. */
static void note_refusal(struct gateway *gateway, uint32_t worker, const struct message *message)
{
    struct gateway_job *job = gateway_job_find(gateway, message->job);
    if (job == NULL || job->layout == NULL || job->layout->hash != message->manifest) return;
    struct gateway_peer *peer = &job->peers[worker];
    peer->is_refusing = message->stored.outcome == STORED_REFUSED;
    (void)snprintf(peer->refusal, sizeof peer->refusal, "%.*s",
                   TEXT_ARGS(message->stored.text)); /* Cut at the end. */
}

struct gateway_job *gateway_accept_take_stored(struct gateway *gateway,
                                               const struct message *message)
{
    struct gateway_request *request =
        gateway_request_by_number(gateway, WAIT_STORED, message->stored.request);
    uint32_t worker = gateway_worker_named(gateway, message->from);
    if (worker == gateway->config.worker_count) return NULL;
    if (request == NULL) {
        note_refusal(gateway, worker, message);
        return NULL;
    }
    if (!text_equal(text_of(request->job_id), message->job)) return NULL;
    struct gateway_put_job *put = gateway_put_job_of(request);
    struct gateway_stored *stored = &put->stored[worker];
    enum stored_outcome outcome = message->stored.outcome;
    /* A duplicate, or sent before the order arrived. */
    if (stored->answered || stored->returned) return NULL;
    if (stored->ordered && outcome == STORED_FULL) return NULL;
    stored->answered = true;
    stored->outcome = outcome;
    if (outcome == STORED_REFUSED) {
        int size = snprintf(put->refusal, sizeof put->refusal, "%.*s: %.*s",
                            TEXT_ARGS(message->from), TEXT_ARGS(message->stored.text));
        if (size < 0) put->refusal[0] = '\0';
    }
    return decide(gateway, request);
}
