/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c - the rules of rules.h, from messages, logs and replies.
 *
 * Chunks are told apart by manifest, scan and number. The same chunk may be delivered twice (sent
 * again, or a connection lost): then either delivery may be acknowledged while the other stands.
 */
#include "cluster/sim/jobs/rules.h"

#include <stdio.h>

#include "engine/base/hash.h"
#include "cluster/sim/jobs/cluster.h"
#include "cluster/wire/manifest.h"

_Static_assert((int)RULE_WORKERS == (int)CLUSTER_WORKERS_MAX, "a place for every worker");

enum {
    SETTLED_MS = 15000, /* After the last fault, until messages under way have arrived. */
    FAREWELL_MS = 900,  /* Sooner than a refused client tries again. */
    LEASES = 3, /* Until a job that has ended is gone; a worker may have received it once more. */
    FAST_MS = 10,
    SAY_SIZE = 256,
    FREE_LIMIT_MS = 20000 /* Some tries of every client that waits. */
};

struct rule_chunk {
    uint64_t id;  /* Delivery, task or token. */
    uint64_t job; /* Its name, as a hash. */
    uint64_t manifest;
    uint64_t number;
    uint32_t scan;
    uint64_t step; /* In which it was added. */
};

/* ---- lists of chunks ---- */

static struct rule_chunk *list_items(const struct buf *list, size_t *out_count)
{
    *out_count = list->size / sizeof(struct rule_chunk);
    return (struct rule_chunk *)(void *)list->bytes;
}

static void list_add(struct sim_node *node, struct buf *list, struct rule_chunk *chunk)
{
    chunk->step = node->in_flight.step;
    buf_put(list, chunk, sizeof *chunk);
    if (list->failed) world_fail(&node->cluster->world, "out of memory");
}

/* False: there is none of that id. */
static bool list_take(struct buf *list, uint64_t id, struct rule_chunk *out)
{
    size_t count;
    struct rule_chunk *items = list_items(list, &count);
    for (size_t i = 0; i < count; i++) {
        if (items[i].id != id) continue;
        *out = items[i];
        items[i] = items[count - 1];
        list->size -= sizeof *items;
        return true;
    }
    return false;
}

static void list_drop_job(struct buf *list, uint64_t job)
{
    size_t count;
    struct rule_chunk *items = list_items(list, &count);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (items[i].job != job) items[kept++] = items[i];
    }
    list->size = kept * sizeof *items;
}

static uint64_t job_hash(struct text name)
{
    return hash_bytes(name.bytes, name.size);
}

/* NULL: that chunk is not among them. */
static const struct rule_chunk *list_find(const struct buf *list, const struct rule_chunk *chunk)
{
    size_t count;
    const struct rule_chunk *items = list_items(list, &count);
    for (size_t i = count; i > 0; i--) {
        const struct rule_chunk *item = &items[i - 1];
        if (item->manifest == chunk->manifest && item->scan == chunk->scan &&
            item->number == chunk->number) {
            return item;
        }
    }
    return NULL;
}

void rules_in_flight_done(struct rule_in_flight *in_flight)
{
    buf_done(&in_flight->deliveries);
    buf_done(&in_flight->tasks);
    buf_done(&in_flight->tokens);
    *in_flight = (struct rule_in_flight){0};
}

/* ---- in flight ---- */

static void take_delivery(struct sim_node *node, const struct bus_delivery *delivery)
{
    struct cluster *cluster = node->cluster;
    struct text bytes = {(const char *)delivery->bytes.bytes, (uint32_t)delivery->bytes.size};
    struct message message;
    struct error err;
    arena_reset(&cluster->scratch);
    if (message_decode(bytes, &cluster->scratch, &message, &err) != STATUS_OK) return;
    if (message.kind != MESSAGE_CHUNK) return;
    struct rule_chunk chunk = {.id = delivery->id,
                               .job = job_hash(message.job),
                               .manifest = message.manifest,
                               .scan = message.chunk.scan,
                               .number = message.chunk.number};
    list_add(node, &node->in_flight.deliveries, &chunk);
}

void rules_event(struct sim_node *node, const struct event *event)
{
    struct rule_chunk ignored;
    struct rule_in_flight *in_flight = &node->in_flight;
    in_flight->has_acknowledged = false;
    in_flight->step++;
    if (event->kind == EVENT_MAPPED) {
        (void)list_take(&in_flight->tasks, event->task->id, &ignored); /* It is one of them. */
    } else if (event_is_bus(event, BUS_DELIVERY)) {
        if (event->bus.delivery.from_work) take_delivery(node, &event->bus.delivery);
    } else if (event_is_bus(event, BUS_DISCONNECTED)) {
        buf_reset(
            &in_flight->deliveries); /* The broker delivers all of them again, to any worker. */
    } else if (event_is_bus(event, BUS_CONFIRMED) || event_is_bus(event, BUS_RETURNED)) {
        (void)list_take(&in_flight->tokens, event->bus.token,
                        &ignored); /* Not all are of chunks. */
    }
}

void rules_map(struct sim_node *node, const struct map_task *task)
{
    struct rule_chunk chunk = {.id = task->id,
                               .job = job_hash(task->job->layout->manifest.job),
                               .manifest = task->job->layout->hash,
                               .scan = task->scan,
                               .number = task->number};
    if (list_find(&node->in_flight.deliveries, &chunk) == NULL) {
        world_fail(&node->cluster->world, "%s maps chunk %llu of scan %u, which it does not have",
                   node->name, (unsigned long long)chunk.number, chunk.scan);
    }
    list_add(node, &node->in_flight.tasks, &chunk);
}

void rules_acknowledge(struct sim_node *node, uint64_t delivery)
{
    struct rule_in_flight *in_flight = &node->in_flight;
    struct rule_chunk chunk;
    in_flight->has_acknowledged = true;
    if (!list_take(&in_flight->deliveries, delivery, &chunk)) return;
    const struct rule_chunk *task = list_find(&in_flight->tasks, &chunk);
    if (task == NULL && list_find(&in_flight->tokens, &chunk) == NULL) return;
    if (list_find(&in_flight->deliveries, &chunk) != NULL) return;
    /* A chunk that is dropped on arrival belongs to no map: the job has failed. */
    bool is_begun = task != NULL && task->step == in_flight->step;
    if (chunk.step == in_flight->step && !is_begun) return;
    world_fail(&node->cluster->world, "%s acknowledges chunk %llu of scan %u while %s", node->name,
               (unsigned long long)chunk.number, chunk.scan,
               task != NULL ? "it is being mapped" : "what it gave is not confirmed");
}

static void send_output(struct sim_node *node, const struct message *message, uint64_t token)
{
    const struct message_output *output = &message->output;
    if (output->source_kind != STREAM_SCAN) return;
    if (token == 0) {
        world_fail(&node->cluster->world, "%s does not wait for what chunk %llu gave", node->name,
                   (unsigned long long)output->number);
        return;
    }
    struct rule_chunk chunk = {.id = token,
                               .job = job_hash(message->job),
                               .manifest = message->manifest,
                               .scan = output->source,
                               .number = output->number};
    list_add(node, &node->in_flight.tokens, &chunk);
}

/* ---- windows and views ---- */

static struct rule_job *job_of(struct cluster *cluster, uint64_t manifest)
{
    struct rules *rules = &cluster->rules;
    for (uint32_t i = 0; i < rules->job_count; i++) {
        if (rules->jobs[i].manifest == manifest) return &rules->jobs[i];
    }
    if (rules->job_count == RULE_JOBS) return NULL;
    struct rule_job *job = &rules->jobs[rules->job_count++];
    *job = (struct rule_job){.manifest = manifest};
    return job;
}

static void send_status(struct sim_node *node, const struct message *message)
{
    const struct message_status *told = &message->status;
    struct rule_job *job = job_of(node->cluster, message->manifest);
    uint32_t worker = node->number - node->cluster->settings.gateway_count;
    if (job == NULL || told->state == WORKER_JOB_UNKNOWN) return;
    if (told->state == WORKER_JOB_COMPLETE) job->complete |= 1u << worker;
    for (uint32_t i = 0; i < told->scan_count; i++) {
        const struct scan_state *state = &told->scans[i];
        if (state->scan >= RULE_SCANS) continue;
        struct rule_scan *scan = &job->scans[state->scan];
        scan->is_told[worker] = true;
        if (state->contiguous > scan->contiguous[worker]) {
            scan->contiguous[worker] = state->contiguous;
        }
    }
}

static struct sim_client *client_of(struct cluster *cluster, struct text job)
{
    for (uint32_t i = 0; i < cluster->settings.client_count; i++) {
        if (text_equal(text_of(cluster->clients[i].job), job)) return &cluster->clients[i];
    }
    return NULL;
}

/* Chunks that all have applied lie below what they report, and may still be in flight; all others
 * are bounded by the window. */
static void send_chunk(struct sim_node *node, const struct message *message)
{
    struct cluster *cluster = node->cluster;
    const struct message_chunk *chunk = &message->chunk;
    const struct rule_job *job = job_of(cluster, message->manifest);
    if (job == NULL || chunk->scan >= RULE_SCANS || client_of(cluster, message->job) == NULL) {
        return; /* The adversary respects no window; gateways bound what it may send. */
    }
    const struct rule_scan *scan = &job->scans[chunk->scan];
    uint64_t limit = UINT64_MAX;
    for (uint32_t i = 0; i < RULE_WORKERS; i++) {
        if (!scan->is_told[i]) continue;
        uint64_t own = scan->contiguous[i] + cluster->settings.window;
        if (own < limit) limit = own;
    }
    if (limit == UINT64_MAX) limit = cluster->settings.window; /* No worker has reported yet. */
    if (chunk->number < limit) return;
    world_fail(&cluster->world, "%s sends chunk %llu of scan %u, beyond the window: %llu",
               node->name, (unsigned long long)chunk->number, chunk->scan,
               (unsigned long long)limit);
}

void rules_send(struct sim_node *node, const struct message *message, uint64_t token)
{
    if (node->kind == SIM_GATEWAY) {
        if (message->kind == MESSAGE_CHUNK) send_chunk(node, message);
        return;
    }
    if (message->kind == MESSAGE_OUTPUT) send_output(node, message, token);
    if (message->kind == MESSAGE_STATUS) send_status(node, message);
}

static void reply_view(struct cluster *cluster, const struct api_reply *reply)
{
    static const char done[] = "\"done\"";
    const struct buf *body = &reply->body;
    struct job_view view;
    struct error err;
    if (body->size == 0 || memmem(body->bytes, body->size, done, sizeof done - 1) == NULL) return;
    arena_reset(&cluster->scratch);
    struct text json = {(const char *)body->bytes, (uint32_t)body->size};
    if (job_view_decode(json, &cluster->scratch, &view, &err) != STATUS_OK) {
        world_fail(&cluster->world, "a view can't be read: %s", err.text);
        return;
    }
    const struct rule_job *job = job_of(cluster, view.manifest);
    uint32_t all = (1u << cluster->settings.worker_count) - 1;
    if (view.state != JOB_DONE || job == NULL || job->complete == all) return;
    world_fail(&cluster->world, "%.*s is told as done, and not all workers are complete",
               TEXT_ARGS(view.job));
}

/* ---- slots ---- */

/* The hash of the owner's key in the manifest that a log begins with; 0: there is none. */
static uint64_t owner_in(struct cluster *cluster, struct text record, struct message *out)
{
    struct arena *arena = &cluster->scratch;
    struct manifest manifest;
    struct error err;
    arena_reset(arena);
    if (message_decode(record, arena, out, &err) != STATUS_OK) return 0;
    if (out->kind != MESSAGE_MANIFEST) return 0;
    if (manifest_decode(out->store.bytes, arena, &manifest, &err) != STATUS_OK) return 0;
    return manifest.owner;
}

static uint64_t owner_of(const struct sim_client *client)
{
    return hash_bytes(client->owner_key, strlen(client->owner_key));
}

void rules_log(struct sim_node *node, const char *job, struct text record)
{
    struct cluster *cluster = node->cluster;
    struct message message;
    if (node->in_flight.has_acknowledged) {
        world_fail(&cluster->world, "%s logs what it has acknowledged", node->name);
    }
    const struct sim_log *log = sim_disk_find(&node->disk, job);
    if (log != NULL && log->bytes.size > 0) return;
    uint64_t owner = owner_in(cluster, record, &message);
    if (owner == 0) {
        world_fail(&cluster->world, "%s: the log of %s begins without a manifest", node->name, job);
        return;
    }
    struct sim_client *client = client_of(cluster, text_of(job));
    if (client != NULL && owner == owner_of(client)) {
        client->manifest = message.manifest;
    } else if (client != NULL) {
        client->name_is_taken = true;
    }
    uint32_t count = sim_disk_job_count(&node->disk);
    if (message.store.order || count < cluster->settings.max_jobs) return;
    world_fail(&cluster->world, "%s takes job %s, and has %u jobs of at most %u", node->name, job,
               count, cluster->settings.max_jobs);
}

void rules_removed(struct sim_node *node, const char *job)
{
    struct cluster *cluster = node->cluster;
    uint64_t hash = job_hash(text_of(job));
    list_drop_job(&node->in_flight.tasks, hash);
    list_drop_job(&node->in_flight.tokens, hash);
    for (uint32_t i = 0; i < cluster->settings.client_count; i++) {
        struct sim_client *client = &cluster->clients[i];
        if (strcmp(client->job, job) == 0) client->freed_ms = cluster->world.now_ms;
    }
}

bool rules_is_held(struct cluster *cluster, const struct sim_client *client)
{
    for (uint32_t i = cluster->settings.gateway_count; i < cluster->node_count; i++) {
        const struct sim_log *log = sim_disk_find(&cluster->nodes[i].disk, client->job);
        struct message message;
        struct text record;
        size_t at = 0;
        if (log == NULL || !sim_log_record(log, &at, &record)) continue;
        if (owner_in(cluster, record, &message) == owner_of(client)) return true;
    }
    return false;
}

static bool is_settled(const struct cluster *cluster)
{
    return cluster->faults_are_over && cluster->world.now_ms > cluster->last_fault_ms + SETTLED_MS;
}

/* There was no fault yet, or none for a while, and no inbox is full. */
static bool is_calm(const struct cluster *cluster)
{
    bool was_calm = cluster->fault_count == 0 && cluster->net.hiccup_per_mille == 0 &&
                    cluster->settings.http_loss == 0;
    bool is_fast = cluster->net.latency_ms <= FAST_MS && !cluster->settings.has_poison;
    return is_fast && (was_calm || is_settled(cluster));
}

static void farewell_timer(void *context, uint64_t number)
{
    struct cluster *cluster = context;
    const struct rule_farewell *farewell = &cluster->rules.farewells[number];
    const struct sim_client *client = &cluster->clients[farewell->client];
    if (client->submission != farewell->submission || !is_calm(cluster)) return;
    bool may_ask_again = !farewell->is_deleted || client->is_reused;
    if (may_ask_again && client->incarnation != farewell->incarnation) return;
    if (!rules_is_held(cluster, client)) return;
    world_fail(&cluster->world, "%s was %s, and a worker has it", client->job,
               farewell->is_deleted ? "deleted" : "refused");
}

void rules_reply(struct cluster *cluster, uint32_t number, const struct api_request *request,
                 const struct api_reply *reply)
{
    struct rules *rules = &cluster->rules;
    if (request->kind == API_GET_JOB && reply->status == 200) reply_view(cluster, reply);
    bool is_refused = request->kind == API_PUT_JOB && reply->status == 429;
    bool is_deleted = request->kind == API_DELETE_JOB && reply->status == 204;
    if (!is_refused && !is_deleted) return;
    if (number >= cluster->settings.client_count || !is_calm(cluster)) return;
    const struct sim_client *client = &cluster->clients[number];
    uint32_t place = rules->next_farewell++ % RULE_FAREWELLS;
    rules->farewells[place] =
        (struct rule_farewell){number, client->submission, client->incarnation, is_deleted};
    world_after(&cluster->world, FAREWELL_MS, farewell_timer, cluster, place);
}

void rules_heard(struct sim_client *client, enum api_kind kind, uint32_t code)
{
    if (kind != API_PUT_JOB) return;
    client->waits_for_slot = code == 429;
    client->is_accepted = client->is_accepted || code / 100 == 2;
}

/* A job is removed only for its client or an operator, or because another job has taken its name.
 */
static bool may_remove(const struct cluster *cluster, const struct sim_client *client,
                       const char *reason)
{
    if (!client->is_accepted || client->has_ended || client->has_gone) return true;
    if (strcmp(reason, "expired") == 0) return cluster->options->profile != SIM_PAUSE;
    if (strcmp(reason, "refused") == 0) return true; /* Some worker has no slot for it. */
    bool by_operator = client->number == 0 && cluster->settings.has_cancel;
    return client->is_leaving || by_operator || client->is_reused || client->name_is_taken;
}

void rules_say(struct sim_node *node, struct text line)
{
    struct cluster *cluster = node->cluster;
    char text[SAY_SIZE];
    char job[SIM_DISK_NAME_SIZE];
    char reason[16];
    (void)snprintf(text, sizeof text, "%.*s", TEXT_ARGS(line)); /* May be cut. */
    if (sscanf(text, "event=job-removed job=%64s reason=%15s", job, reason) != 2) return;
    const struct sim_client *client = client_of(cluster, text_of(job));
    if (client == NULL || may_remove(cluster, client, reason)) return;
    world_fail(&cluster->world, "%s removes %s (%s), and its client waits for it", node->name, job,
               reason);
}

/* Of a client that waits for a slot: the job is being removed again, or will be accepted. */
static bool is_of_waiting(const struct cluster *cluster, const char *job)
{
    for (uint32_t i = 0; i < cluster->settings.client_count; i++) {
        const struct sim_client *client = &cluster->clients[i];
        bool waits = client->waits_for_slot && client->is_up;
        if (waits && strcmp(client->job, job) == 0) return true;
    }
    return false;
}

static bool is_free(const struct cluster *cluster)
{
    bool any_waits = false;
    for (uint32_t i = 0; i < cluster->settings.client_count; i++) {
        const struct sim_client *client = &cluster->clients[i];
        any_waits = any_waits || (client->waits_for_slot && client->is_up);
    }
    if (!any_waits) return false;
    for (uint32_t i = cluster->settings.gateway_count; i < cluster->node_count; i++) {
        const struct sim_log *log = sim_disk_next(&cluster->nodes[i].disk, "");
        for (; log != NULL; log = sim_disk_next(&cluster->nodes[i].disk, log->job)) {
            if (!is_of_waiting(cluster, log->job)) return false;
        }
    }
    return true;
}

/* A job that has ended, well or not, is gone after a while. */
static void check_ended(struct cluster *cluster, const struct sim_client *client)
{
    uint64_t since_ms = client->ended_ms;
    if (since_ms < cluster->last_fault_ms) since_ms = cluster->last_fault_ms;
    uint64_t limit_ms = (uint64_t)LEASES * cluster->settings.client_timeout_ms;
    if (cluster->world.now_ms < since_ms + limit_ms || !rules_is_held(cluster, client)) return;
    world_fail(&cluster->world, "%s is still there %llu s after its client has gone", client->job,
               (unsigned long long)limit_ms / 1000);
}

void rules_check(struct cluster *cluster)
{
    struct rules *rules = &cluster->rules;
    uint64_t now_ms = cluster->world.now_ms;
    if (!cluster->faults_are_over) return;
    for (uint32_t i = 0; i < cluster->settings.client_count; i++) {
        const struct sim_client *client = &cluster->clients[i];
        if (client->has_ended || client->has_gone) check_ended(cluster, client);
    }
    bool was_free = rules->is_free;
    rules->is_free = is_settled(cluster) && is_free(cluster);
    if (!was_free) rules->free_ms = now_ms;
    if (rules->is_free && now_ms - rules->free_ms > FREE_LIMIT_MS) {
        world_fail(&cluster->world, "slots are free, clients wait, and none gets one");
    }
}
