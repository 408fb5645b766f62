/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - events, and which file they concern.
 *
 * A message that changes a job is logged before it is acknowledged (write-ahead). A message that
 * was applied before, or is not for us, is acknowledged without a record. So is one that can't be
 * decoded: a second delivery would bring the same bytes.
 */
#include "cluster/role/worker/worker.h"

#include <stdio.h>

#include "engine/base/assert.h"
#include "cluster/role/worker/worker_state.h"

/* ---- messages of a job ---- */

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
    worker_send(effects, message->from, &reply);
}

static void tell_not_ready(struct worker *worker, const struct message *message,
                           struct effects *effects)
{
    struct message reply = worker_message(worker, MESSAGE_RESULT, NULL);
    reply.job = message->job;
    reply.manifest = message->manifest;
    reply.result.request = message->fetch.request;
    worker_send(effects, message->from, &reply);
}

static void receive(struct worker *worker, const struct message *message, struct buf *bytes,
                    uint64_t item, struct effects *effects)
{
    struct worker_job *job = worker_find(worker, message->job);
    bool is_ours =
        job != NULL && (message->manifest == 0 || message->manifest == job->map.layout->hash);
    switch (message->kind) {
    case MESSAGE_MANIFEST:
        worker_store(worker, message, bytes, effects);
        return;
    case MESSAGE_REMOVE:
        worker_remove(worker, message, effects);
        return;
    case MESSAGE_LIST:
        worker_list(worker, message, effects);
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
    if (worker_starts_of(worker, item) >= WORKER_POISON_STARTS) {
        fail_poison(worker, job, effects);
    } else if (message->kind == MESSAGE_ASK) {
        worker_job_ask(job, message->from, &message->ask, effects);
    } else if (message->kind == MESSAGE_BARRIER) {
        worker_barrier_returned(worker, job, &message->barrier, effects);
    } else {
        worker_apply_and_log(job, message, bytes, effects);
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
                     ? worker_make_job(worker, &message, &job, &err)
                     : error_set(&err, STATUS_CORRUPT, "the log does not begin with a manifest");
        if (result == STATUS_OK) worker_history_begun(job, record->age_ms);
    } else if (result == STATUS_OK &&
               worker_starts_of(worker, message_item(bytes)) >= WORKER_POISON_STARTS) {
        fail_poison(worker, job, effects);
    } else if (result == STATUS_OK && message.manifest == job->map.layout->hash) {
        job->replayed++;
        if (worker_apply(job, &message, effects)) worker_job_advance(job, effects);
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
    for (uint32_t i = 0; i < worker->jobs.count; i++) {
        struct worker_job *job = worker->jobs.items[i];
        for (uint32_t j = 0; j < job->stream_count; j++) {
            stream_forget_barriers(&job->streams[j]);
        }
    }
    /* The broker delivers what was not begun again, to any worker. */
    uint32_t kept = 0;
    for (uint32_t i = 0; i < worker->in_flight.count; i++) {
        if (worker->in_flight.items[i].started) {
            worker->in_flight.items[kept++] = worker->in_flight.items[i];
        } else {
            in_flight_done(&worker->in_flight.items[i]);
        }
    }
    worker->in_flight.count = kept;
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
        for (uint32_t i = 0; i < worker->jobs.count; i++) {
            worker_history_note(worker->jobs.items[i], MILESTONE_REPLAYED,
                                worker->jobs.items[i]->replayed);
            worker_job_advance(worker->jobs.items[i], effects);
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
        worker_leases_pass(worker, effects);
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
    *worker = (struct worker){.config = *config};
    (void)snprintf(worker->name, sizeof worker->name, "%.*s", TEXT_ARGS(config->name));
    worker->config.name = text_of(worker->name);
    *out = worker;
    return STATUS_OK;
}

void worker_destroy(struct worker *worker)
{
    if (worker == NULL) return;
    for (uint32_t i = 0; i < worker->in_flight.count; i++) {
        in_flight_done(&worker->in_flight.items[i]);
    }
    for (uint32_t i = 0; i < worker->jobs.count; i++) {
        worker_job_end(worker->jobs.items[i]);
    }
    array_done(&worker->in_flight, NULL);
    array_done(&worker->confirms, NULL);
    array_done(&worker->jobs, NULL);
    arena_done(&worker->arena);
    memory_free(NULL, worker, sizeof *worker);
}

uint32_t worker_job_count(const struct worker *worker)
{
    return worker->jobs.count;
}
