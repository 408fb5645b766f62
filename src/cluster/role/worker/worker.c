/* worker.c - events, slots and leases.
 *
 * What changes a job is logged before it is acknowledged; acknowledged is what is logged, what was
 * known already, and what does not concern us. A message that can't be read is acknowledged too: it
 * would never become better.
 */
#include "cluster/role/worker/worker.h"

#include <stdio.h>

#include "engine/base/assert.h"
#include "cluster/role/worker/worker_state.h"

enum { TOMBSTONE_MS = 5000 };

/* ---- small parts ---- */

void worker_alive(const struct worker *worker)
{
    if (worker->config.alive != NULL) worker->config.alive(worker->config.alive_context);
}

struct worker_job *worker_find(struct worker *worker, struct text id)
{
    for (uint32_t i = 0; i < worker->job_count; i++) {
        if (text_equal(text_of(worker->jobs[i]->id), id)) return worker->jobs[i];
    }
    return NULL;
}

struct message worker_message(const struct worker *worker, enum message_kind kind,
                              const struct worker_job *job)
{
    struct message message = {.kind = kind, .from = text_of(worker->name)};
    if (job != NULL) {
        message.job = text_of(job->id);
        message.manifest = job->map.layout->hash;
    }
    return message;
}

void worker_send(struct worker *worker, struct effects *effects, struct text to,
                 const struct message *message)
{
    (void)worker;
    struct effect *effect = effects_add(effects, EFFECT_SEND);
    (void)snprintf(effect->send.to, sizeof effect->send.to, "%.*s", TEXT_ARGS(to));
    message_encode(message, &effect->send.bytes);
    if (effect->send.bytes.failed) effects->failed = true;
}

static void log_message(const char *job, struct buf *bytes, struct effects *effects)
{
    struct effect *effect = effects_add(effects, EFFECT_LOG);
    (void)snprintf(effect->log.job, sizeof effect->log.job, "%s", job);
    effect->log.bytes = *bytes;
    *bytes = (struct buf){0};
}

/* ---- jobs come and go ---- */

static bool add_job(struct worker *worker, struct worker_job *job)
{
    if (worker->job_count == worker->job_capacity) {
        uint32_t grown = worker->job_capacity == 0 ? 8 : worker->job_capacity * 2;
        struct worker_job **jobs = memory_resize(
            NULL, worker->jobs, worker->job_capacity * sizeof *jobs, grown * sizeof *jobs);
        if (jobs == NULL) return false;
        worker->jobs = jobs;
        worker->job_capacity = grown;
    }
    worker->jobs[worker->job_count++] = job;
    return true;
}

static struct tombstone *tombstone_add(struct worker *worker, struct text id, uint64_t hash)
{
    struct tombstone *tombstone = &worker->tombstones[worker->next_tombstone++ % WORKER_TOMBSTONES];
    *tombstone = (struct tombstone){.hash = hash, .until_ms = worker->now_ms + TOMBSTONE_MS};
    (void)snprintf(tombstone->id, sizeof tombstone->id, "%.*s", TEXT_ARGS(id));
    return tombstone;
}

static struct tombstone *remove_job(struct worker *worker, struct worker_job *job,
                                    enum milestone_kind reason, struct effects *effects)
{
    static const char *const reasons[MILESTONE_KINDS] = {
        [MILESTONE_DONE] = "done",
        [MILESTONE_CANCELLED] = "cancelled",
        [MILESTONE_REFUSED] = "refused",
        [MILESTONE_EXPIRED] = "expired",
    };
    struct tombstone *tombstone = tombstone_add(worker, text_of(job->id), job->map.layout->hash);
    effects_say(effects, SAY_INFO, "event=job-removed job=%s reason=%s", job->id, reasons[reason]);
    worker_history_end(job, reason);
    struct effect *effect = effects_add(effects, EFFECT_LOG_REMOVE);
    (void)snprintf(effect->removed_job, sizeof effect->removed_job, "%s", job->id);
    for (uint32_t i = 0; i < worker->job_count; i++) {
        if (worker->jobs[i] != job) continue;
        worker->jobs[i] = worker->jobs[--worker->job_count];
        break;
    }
    worker_job_end(job);
    return tombstone;
}

/* NULL: no such job has ended here lately. */
static const struct tombstone *tombstone_find(const struct worker *worker, struct text id,
                                              uint64_t hash)
{
    for (uint32_t i = 0; i < WORKER_TOMBSTONES; i++) {
        const struct tombstone *tombstone = &worker->tombstones[i];
        if (tombstone->hash == hash && tombstone->until_ms > worker->now_ms &&
            text_equal(text_of(tombstone->id), id)) {
            return tombstone;
        }
    }
    return NULL;
}

bool worker_has_tombstone(const struct worker *worker, struct text id, uint64_t hash)
{
    for (uint32_t i = 0; i < WORKER_TOMBSTONES; i++) {
        const struct tombstone *tombstone = &worker->tombstones[i];
        if (tombstone->hash == hash && text_equal(text_of(tombstone->id), id)) return true;
    }
    return false;
}

static status make_job(struct worker *worker, const struct message *message,
                       struct worker_job **out, struct error *err)
{
    struct job_layout *layout;
    TRY(job_layout_create(message->store.bytes, worker->config.sentiment, &layout, err));
    status result = STATUS_OK;
    if (layout->hash != message->manifest || !text_equal(layout->manifest.job, message->job)) {
        result = error_set(err, STATUS_CORRUPT, "a manifest is not that of its message");
    }
    if (result == STATUS_OK) result = worker_job_create(worker, layout, out, err);
    job_layout_release(layout);
    if (result == STATUS_OK && !add_job(worker, *out)) {
        worker_job_end(*out);
        result = error_memory(err);
    }
    return result;
}

static void store(struct worker *worker, const struct message *message, struct buf *bytes,
                  struct effects *effects)
{
    struct worker_job *job = worker_find(worker, message->job);
    const struct tombstone *tombstone = tombstone_find(worker, message->job, message->manifest);
    struct message reply = worker_message(worker, MESSAGE_STORED, NULL);
    struct error err = {0};
    reply.job = message->job;
    reply.manifest = message->manifest;
    reply.stored.request = message->store.request;
    if (job != NULL) {
        bool is_same = job->map.layout->hash == message->manifest;
        reply.stored.outcome = is_same ? STORED_HELD : STORED_DIFFERS;
    } else if (message->store.order && tombstone != NULL) {
        return; /* It has just ended: the order is older than that. */
    } else if (tombstone != NULL && tombstone->cancelled) {
        /* Its client has only heard that it is not there any more. */
        reply.stored.outcome = STORED_CANCELLED;
    } else if (worker->job_count >= worker->config.max_jobs && !message->store.order) {
        reply.stored.outcome = STORED_FULL;
    } else if (make_job(worker, message, &job, &err) != STATUS_OK) {
        reply.stored.outcome = STORED_REFUSED;
        reply.stored.text = text_of(err.text);
    } else {
        reply.stored.outcome = STORED_NEW;
        job->logged = true;
        effects_say(effects, SAY_INFO, "event=job-stored job=%s", job->id);
        worker_history_note(job, MILESTONE_STORED, 0);
        worker_send(worker, effects, message->from, &reply);
        log_message(job->id, bytes, effects);
        worker_job_advance(job, effects); /* A query over no table is complete at once. */
        return;
    }
    worker_send(worker, effects, message->from, &reply);
}

/* ---- messages of a job ---- */

/* Applies what changes a job; tells whether it was new. */
static bool apply(struct worker_job *job, const struct message *message, struct effects *effects)
{
    switch (message->kind) {
    case MESSAGE_OUTPUT:
        return worker_job_output(job, &message->output, effects);
    case MESSAGE_END:
        return worker_job_end_of_scan(job, &message->end, effects);
    case MESSAGE_PRODUCER_END:
        return worker_job_end_of_producer(job, &message->producer_end, effects);
    default:
        return false;
    }
}

static void apply_and_log(struct worker_job *job, const struct message *message, struct buf *bytes,
                          struct effects *effects)
{
    if (!apply(job, message, effects)) return;
    log_message(job->id, bytes, effects);
    worker_job_advance(job, effects);
}

void worker_receive(struct worker *worker, struct worker_job *job, struct buf *bytes,
                    struct effects *effects)
{
    struct text text = {(const char *)bytes->bytes, (uint32_t)bytes->size};
    struct message message;
    struct error err;
    if (message_decode(text, &worker->arena, &message, &err) != STATUS_OK) {
        worker_job_fail(job, &err, effects);
        return;
    }
    apply_and_log(job, &message, bytes, effects);
}

static bool is_poison(const struct worker *worker, uint64_t item)
{
    for (uint32_t i = 0; i < worker->suspect_count; i++) {
        if (worker->suspects[i].item == item) {
            return worker->suspects[i].starts >= WORKER_POISON_STARTS;
        }
    }
    return false;
}

static void fail_poison(struct worker *worker, struct worker_job *job, struct effects *effects)
{
    struct error err;
    (void)error_set(&err, STATUS_INTERNAL,
                    "a message ended worker %s %d times while it was applied; please report this",
                    worker->name, WORKER_POISON_STARTS);
    worker_job_fail(job, &err, effects);
}

static void tell_unknown(struct worker *worker, const struct message *message,
                         struct effects *effects)
{
    struct message reply = worker_message(worker, MESSAGE_STATUS, NULL);
    reply.job = message->job;
    reply.manifest = message->manifest;
    reply.status = (struct message_status){.request = message->sync.request,
                                           .incarnation = worker->config.incarnation,
                                           .state = WORKER_JOB_UNKNOWN,
                                           .maps = worker->config.maps};
    worker_send(worker, effects, message->from, &reply);
}

static void tell_not_ready(struct worker *worker, const struct message *message,
                           struct effects *effects)
{
    struct message reply = worker_message(worker, MESSAGE_RESULT, NULL);
    reply.job = message->job;
    reply.manifest = message->manifest;
    reply.result.request = message->fetch.request;
    worker_send(worker, effects, message->from, &reply);
}

static void tell_jobs(struct worker *worker, const struct message *message, struct effects *effects)
{
    struct listed_job *jobs =
        arena_array(&worker->arena, struct listed_job, worker->job_count + 1u);
    if (jobs == NULL) return;
    for (uint32_t i = 0; i < worker->job_count; i++) {
        const struct worker_job *job = worker->jobs[i];
        jobs[i] = (struct listed_job){
            .job = text_of(job->id),
            .state = job->failed     ? WORKER_JOB_FAILED
                     : job->complete ? WORKER_JOB_COMPLETE
                                     : WORKER_JOB_RUNNING,
            .age_ms = worker->now_ms - job->created_ms,
            .lease_ms = job->lease_ms,
        };
        for (uint32_t j = 0; j < job->stream_count; j++) {
            jobs[i].applied += job->streams[j].applied.count;
        }
    }
    struct message reply = worker_message(worker, MESSAGE_JOBS, NULL);
    reply.job = message->job;
    reply.jobs = (struct message_jobs){.request = message->list.request,
                                       .incarnation = worker->config.incarnation,
                                       .uptime_ms = worker->now_ms - worker->started_ms,
                                       .maps = worker->config.maps,
                                       .folds = worker->config.folds,
                                       .jobs = jobs,
                                       .job_count = worker->job_count};
    worker_history_tell(worker, message->job, &reply.jobs);
    worker_send(worker, effects, message->from, &reply);
}

static void remove_asked(struct worker *worker, const struct message *message,
                         struct effects *effects)
{
    static const enum milestone_kind reasons[] = {[REMOVE_DONE] = MILESTONE_DONE,
                                                  [REMOVE_CANCELLED] = MILESTONE_CANCELLED,
                                                  [REMOVE_REFUSED] = MILESTONE_REFUSED};
    struct worker_job *job = worker_find(worker, message->job);
    bool is_meant =
        job != NULL && (message->manifest == 0 || message->manifest == job->map.layout->hash);
    struct tombstone *tombstone = NULL;
    if (is_meant) {
        tombstone = remove_job(worker, job, reasons[message->remove.reason], effects);
    } else if (message->manifest != 0 &&
               tombstone_find(worker, message->job, message->manifest) == NULL) {
        /* We have lost it: whoever was told so before the others removed it orders us to take it
         * back, and his order comes after this. */
        tombstone = tombstone_add(worker, message->job, message->manifest);
    }
    if (tombstone != NULL) tombstone->cancelled = message->remove.reason == REMOVE_CANCELLED;
}

static void receive(struct worker *worker, const struct message *message, struct buf *bytes,
                    uint64_t item, struct effects *effects)
{
    struct worker_job *job = worker_find(worker, message->job);
    bool is_ours =
        job != NULL && (message->manifest == 0 || message->manifest == job->map.layout->hash);
    switch (message->kind) {
    case MESSAGE_MANIFEST:
        store(worker, message, bytes, effects);
        return;
    case MESSAGE_REMOVE:
        remove_asked(worker, message, effects);
        return;
    case MESSAGE_LIST:
        tell_jobs(worker, message, effects);
        return;
    case MESSAGE_SYNC:
        if (is_ours) {
            worker_sync(worker, job, message->from, &message->sync, effects);
        } else {
            tell_unknown(worker, message, effects);
        }
        return;
    case MESSAGE_FETCH:
        if (is_ours) {
            worker_job_fetch(job, message->from, &message->fetch, effects);
        } else {
            tell_not_ready(worker, message, effects);
        }
        return;
    default:
        break;
    }
    if (!is_ours) return; /* It ended, or its manifest comes later: what matters is sent again. */
    if (is_poison(worker, item)) {
        fail_poison(worker, job, effects);
    } else if (message->kind == MESSAGE_ASK) {
        worker_job_ask(job, message->from, &message->ask, effects);
    } else if (message->kind == MESSAGE_BARRIER) {
        worker_barrier_returned(worker, job, &message->barrier, effects);
    } else {
        apply_and_log(job, message, bytes, effects);
    }
}

static void deliver(struct worker *worker, struct bus_delivery *delivery, struct effects *effects)
{
    struct text bytes = {(const char *)delivery->bytes.bytes, (uint32_t)delivery->bytes.size};
    struct message message;
    struct error err;
    if (message_decode(bytes, &worker->arena, &message, &err) == STATUS_OK) {
        receive(worker, &message, &delivery->bytes, message_item(bytes), effects);
    } else {
        effects_say(effects, SAY_WARN, "event=message-ignored queue=inbox reason=\"%s\"", err.text);
    }
    effects_add(effects, EFFECT_ACK)->delivery = delivery->id;
}

/* ---- starting ---- */

static void replay(struct worker *worker, struct event_record *record, struct effects *effects)
{
    struct text bytes = {(const char *)record->bytes.bytes, (uint32_t)record->bytes.size};
    struct message message;
    struct error err;
    worker->replaying = true;
    status result = message_decode(bytes, &worker->arena, &message, &err);
    if (result == STATUS_OK && !text_equal(message.job, text_of(record->job))) {
        result = error_set(&err, STATUS_CORRUPT, "a record is of another job");
    }
    struct worker_job *job = worker_find(worker, text_of(record->job));
    if (result == STATUS_OK && job == NULL) {
        result = message.kind == MESSAGE_MANIFEST
                     ? make_job(worker, &message, &job, &err)
                     : error_set(&err, STATUS_CORRUPT, "the log does not begin with a manifest");
        if (result == STATUS_OK) {
            job->logged = true;
            worker_history_begun(job, record->age_ms);
        }
    } else if (result == STATUS_OK && is_poison(worker, message_item(bytes))) {
        fail_poison(worker, job, effects);
    } else if (result == STATUS_OK && message.manifest == job->map.layout->hash) {
        job->replayed++;
        if (apply(job, &message, effects)) worker_job_advance(job, effects);
    }
    if (result == STATUS_OK) return;
    effects_say(effects, SAY_WARN, "event=record-ignored job=%s reason=\"%s\"", record->job,
                err.text);
    if (job != NULL) return;
    /* Nothing in that log can be used. */
    struct effect *effect = effects_add(effects, EFFECT_LOG_REMOVE);
    (void)snprintf(effect->removed_job, sizeof effect->removed_job, "%s", record->job);
}

static void suspect(struct worker *worker, const struct event_intent *intent)
{
    if (worker->suspect_count == WORKER_SUSPECTS) return;
    worker->suspects[worker->suspect_count++] =
        (struct suspect){.item = intent->item, .starts = intent->starts};
}

static void consider_work(struct worker *worker, struct effects *effects)
{
    bool wanted = worker->config.maps && worker->started && worker->connected &&
                  !worker->stopping && worker->now_ms >= worker->paused_until_ms;
    if (wanted == worker->working) return;
    worker->working = wanted;
    effects_add(effects, EFFECT_WORK)->takes_work = wanted;
}

/* ---- time ---- */

static void disconnected(struct worker *worker)
{
    worker->connected = false;
    for (uint32_t i = 0; i < worker->job_count; i++) {
        struct worker_job *job = worker->jobs[i];
        for (uint32_t j = 0; j < job->stream_count; j++) {
            stream_forget_barriers(&job->streams[j]);
        }
    }
    /* What was not begun will be delivered again, to anybody. */
    uint32_t kept = 0;
    for (uint32_t i = 0; i < worker->in_flight_count; i++) {
        if (worker->hands[i].started) {
            worker->hands[kept++] = worker->hands[i];
        } else {
            in_flight_done(&worker->hands[i]);
        }
    }
    worker->in_flight_count = kept;
}

/* A tick counts at most one period, and only while connected: a worker that was stopped reads its
 * inbox, where the renewals are, before it believes that a client has gone. */
static void tick(struct worker *worker, struct effects *effects)
{
    uint64_t passed = worker->now_ms - worker->last_tick_ms;
    worker->last_tick_ms = worker->now_ms;
    if (passed > worker->config.tick_ms) passed = worker->config.tick_ms;
    if (!worker->connected || worker->blocked) return;
    if (IS_PLANTED(worker->config.mutation, WORKER_HAS_NO_LEASE)) return;
    for (uint32_t i = 0; i < worker->job_count;) {
        struct worker_job *job = worker->jobs[i];
        if (job->lease_ms > passed) {
            job->lease_ms -= passed;
            i++;
        } else {
            (void)remove_job(worker, job, MILESTONE_EXPIRED,
                             effects); /* Its client may begin it anew. */
        }
    }
}

static void log_failed(struct worker *worker, const struct event_log_failed *failed,
                       struct effects *effects)
{
    struct worker_job *job = worker_find(worker, text_of(failed->job));
    if (job != NULL) worker_job_fail(job, failed->error, effects);
}

static void hear(struct worker *worker, struct bus_event *event, struct effects *effects)
{
    switch (event->kind) {
    case BUS_CONNECTED:
        worker->connected = true;
        worker->blocked = false;
        worker->working = false;
        return;
    case BUS_DISCONNECTED:
        disconnected(worker);
        return;
    case BUS_DELIVERY:
        if (event->delivery.from_work) {
            worker_take(worker, &event->delivery, effects);
        } else {
            deliver(worker, &event->delivery, effects);
        }
        return;
    case BUS_CONFIRMED:
    case BUS_RETURNED: /* Gone with its queue: that is repaired like any other loss. */
        worker_confirmed(worker, event->token, effects);
        return;
    case BUS_BLOCKED:
    case BUS_UNBLOCKED:
        worker->blocked = event->kind == BUS_BLOCKED;
        return;
    case BUS_MEASURED:
        ASSERT(false); /* A worker asks for no measurement. */
    }
}

void worker_step(struct worker *worker, struct event *event, struct effects *effects)
{
    worker->now_ms = event->now_ms;
    arena_reset(&worker->arena);
    switch (event->kind) {
    case EVENT_RECORD:
        replay(worker, &event->record, effects);
        return;
    case EVENT_INTENT:
        suspect(worker, &event->intent);
        return;
    case EVENT_STARTED:
        worker->replaying = false;
        worker->started = true;
        worker->started_ms = worker->last_tick_ms = event->now_ms;
        for (uint32_t i = 0; i < worker->job_count; i++) {
            worker_history_note(worker->jobs[i], MILESTONE_REPLAYED, worker->jobs[i]->replayed);
            worker_job_advance(worker->jobs[i], effects);
        }
        break;
    case EVENT_BUS:
        hear(worker, &event->bus, effects);
        break;
    case EVENT_MAPPED:
        worker_mapped(worker, event->task, effects);
        event->task = NULL; /* Moved. */
        break;
    case EVENT_LOG_FAILED:
        log_failed(worker, &event->log_failed, effects);
        break;
    case EVENT_TICK:
        tick(worker, effects);
        break;
    case EVENT_STOP:
        worker->stopping = true;
        worker_start_maps(worker, effects);
        break;
    case EVENT_REQUEST:
    case EVENT_GONE:
    case EVENT_VIEW:
    case EVENT_HAPPENED:
        ASSERT(false);
    }
    consider_work(worker, effects);
}

/* ---- incarnation ---- */

status worker_create(const struct worker_config *config, struct worker **out, struct error *err)
{
    if (config->work_queue_count == 0 || config->work_queue_count > WORKER_QUEUES_MAX) {
        return error_set(err, STATUS_USAGE, "there can be 1 to %d work queues", WORKER_QUEUES_MAX);
    }
    struct worker *worker = memory_alloc(NULL, sizeof *worker);
    if (worker == NULL) return error_memory(err);
    *worker = (struct worker){.config = *config, .random = {config->seed}};
    (void)snprintf(worker->name, sizeof worker->name, "%.*s", TEXT_ARGS(config->name));
    worker->config.name = text_of(worker->name);
    *out = worker;
    return STATUS_OK;
}

void worker_destroy(struct worker *worker)
{
    if (worker == NULL) return;
    for (uint32_t i = 0; i < worker->in_flight_count; i++) {
        in_flight_done(&worker->hands[i]);
    }
    for (uint32_t i = 0; i < worker->job_count; i++) {
        worker_job_end(worker->jobs[i]);
    }
    memory_free(NULL, worker->hands, worker->in_flight_capacity * sizeof *worker->hands);
    memory_free(NULL, worker->tokens, worker->token_capacity * sizeof *worker->tokens);
    memory_free(NULL, worker->jobs, worker->job_capacity * sizeof *worker->jobs);
    arena_done(&worker->arena);
    memory_free(NULL, worker, sizeof *worker);
}

uint32_t worker_job_count(const struct worker *worker)
{
    return worker->job_count;
}
