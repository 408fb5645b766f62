/* SPDX-License-Identifier: Apache-2.0 */
/* worker_node.c - carries out the decisions of role/worker.
 *
 * An intent record names the item while it is applied or mapped: if the item crashes the process,
 * the next incarnation finds it there and counts it as a poison message.
 */
#include "cluster/node/worker_node.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/assert.h"
#include "cluster/node/crash_point.h"
#include "engine/file/clock.h"
#include "cluster/store/input_log.h"
#include "cluster/store/intent_record.h"
#include "cluster/node/node_core.h"
#include "engine/local/sentiment_file.h"
#include "engine/local/spill_folder.h"
#include "cluster/role/worker/mapper.h"
#include "cluster/role/worker/worker.h"
#include "cluster/wire/message.h"

enum {
    MAP_THREADS_MAX = 64,
    REPAIR_DELAY_MS = 1000,
    REPAIR_DELAY_MAX_MS = 30000,
    PAUSE_MS = 1000,
    EMIT_WINDOW = 16,
    SWEEP_MS = 1000,
    STOP_MS = 8000, /* Then work in flight is left to other workers; `up` waits for 10 s. */
    JOIN_S = 1      /* For a map that is running even then. */
};

struct worker_node {
    struct node_core core;
    struct worker *worker;
    struct spill_folder spill; /* In the worker's own folder. */
    struct input_log *logs;
    struct intent_record *intents;
    struct mailbox *tasks; /* Of struct map_task pointers. */
    pthread_t threads[MAP_THREADS_MAX];
    uint32_t thread_count;
    struct log_replay replay;
    uint64_t replayed_count; /* Records, so far. */
};

/* ---- map threads ---- */

static void *map_thread(void *argument)
{
    struct worker_node *node = argument;
    struct mapper *mapper;
    struct error err;
    struct map_task *task;
    ASSERT(mapper_create(&mapper, &err) == STATUS_OK); /* Else the process ends, as if killed. */
    for (;;) {
        if (!mailbox_take(node->tasks, SWEEP_MS, &task)) {
            mapper_sweep(mapper);
            continue;
        }
        if (task == NULL) break;
        bool recorded = intent_record_hold(node->intents, task->item);
        mapper_run(mapper, task);
        if (recorded) intent_record_release(node->intents, task->item);
        struct event event = {.kind = EVENT_MAPPED, .task = task};
        mailbox_post(node->core.mailbox, &event);
        mapper_sweep(mapper);
    }
    mapper_destroy(mapper);
    return NULL;
}

static status start_threads(struct worker_node *node, struct error *err)
{
    uint32_t wanted = node->core.options.config->worker_threads;
    if (wanted > MAP_THREADS_MAX) wanted = MAP_THREADS_MAX;
    TRY(mailbox_create(sizeof(struct map_task *), &node->tasks, err));
    while (node->thread_count < wanted &&
           pthread_create(&node->threads[node->thread_count], NULL, map_thread, node) == 0) {
        node->thread_count++;
    }
    if (node->thread_count > 0) return STATUS_OK;
    return error_set(err, STATUS_IO, "cannot start a thread for maps");
}

static void stop_threads(struct worker_node *node)
{
    struct map_task *none = NULL;
    for (uint32_t i = 0; i < node->thread_count; i++) {
        mailbox_post(node->tasks, &none);
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until); /* What pthread_timedjoin_np counts by. */
    until.tv_sec += JOIN_S;
    for (uint32_t i = 0; i < node->thread_count; i++) {
        if (pthread_timedjoin_np(node->threads[i], NULL, &until) == 0) continue;
        /* Another worker maps the chunk, which was not acknowledged. The thread still uses memory
         * that destructors would free, so they do not run. */
        node_log_say(node->core.log, SAY_WARN, "event=left-behind reason=\"a map takes too long\"");
        _exit(0);
    }
    mailbox_destroy(node->tasks);
}

/* ---- effects ---- */

static void carry_log(struct worker_node *node, const struct effect_log *log)
{
    const struct cluster_config *config = node->core.options.config;
    struct text bytes = {(const char *)log->bytes.bytes, (uint32_t)log->bytes.size};
    struct error err;
    CRASH_POINT("before-log");
    status result = input_log_append(node->logs, log->job, bytes, config->log_limit, &err);
    CRASH_POINT("after-log");
    if (result == STATUS_OK) return;
    node_log_say(node->core.log, SAY_ERROR, "event=log-failed job=%s reason=\"%s\"", log->job,
                 err.text);
    /* The role learns of it in this round, before another event of the job. */
    struct effects effects = {0};
    struct event event = {
        .kind = EVENT_LOG_FAILED, .now_ms = clock_ms(), .log_failed = {log->job, &err}};
    worker_step(node->worker, &event, &effects);
    for (uint32_t i = 0; i < effects.count; i++) {
        (void)node_core_carry(&node->core, &effects.items[i]); /* Only EFFECT_SAY. */
    }
    effects_done(&effects);
}

static void carry(struct worker_node *node)
{
    struct effects *effects = &node->core.effects;
    struct error err;
    for (uint32_t i = 0; i < effects->count; i++) {
        struct effect *effect = &effects->items[i];
        if (node_core_carry(&node->core, effect)) continue;
        switch (effect->kind) {
        case EFFECT_LOG:
            carry_log(node, &effect->log);
            break;
        case EFFECT_LOG_REMOVE:
            if (input_log_remove(node->logs, effect->removed_job, &err) != STATUS_OK) {
                node_log_say(node->core.log, SAY_ERROR, "event=remove-failed job=%s reason=\"%s\"",
                             effect->removed_job, err.text);
            }
            break;
        case EFFECT_MAP:
            mailbox_post(node->tasks, &effect->task);
            break;
        default:
            break;
        }
    }
    effects_reset(effects);
}

static void step(void *context, struct event *event)
{
    struct worker_node *node = context;
    uint64_t item = 0;
    if (event_is_bus(event, BUS_DELIVERY) && !event->bus.delivery.from_work) {
        const struct buf *bytes = &event->bus.delivery.bytes;
        item = message_item((struct text){(const char *)bytes->bytes, (uint32_t)bytes->size});
    }
    /* The step applies the part of a mapped chunk that belongs to this worker. */
    if (event->kind == EVENT_MAPPED) item = event->task->item;
    bool recorded = item != 0 && intent_record_hold(node->intents, item);
    worker_step(node->worker, event, &node->core.effects);
    if (recorded) intent_record_release(node->intents, item);
    carry(node);
    event_done(event);
    heartbeat_thread_jobs(node->core.heartbeat_thread, worker_job_count(node->worker));
}

/* ---- starting ---- */

static status replay_record(struct log_replay *replay, const char *job, struct buf *bytes,
                            struct error *err)
{
    struct worker_node *node =
        (struct worker_node *)((char *)replay - offsetof(struct worker_node, replay));
    struct text text = {(const char *)bytes->bytes, (uint32_t)bytes->size};
    uint64_t item = message_item(text);
    struct event event = {
        .kind = EVENT_RECORD, .now_ms = clock_ms(), .record = {.job = job, .bytes = *bytes}};
    bool is_first = bytes->size > 1 && bytes->bytes[1] == MESSAGE_MANIFEST;
    int64_t begun_ms = is_first ? input_log_begun_ms(node->logs, job) : 0;
    int64_t age_ms = clock_wall_ms() - begun_ms;
    if (begun_ms > 0 && age_ms > 0) event.record.age_ms = (uint64_t)age_ms;
    *bytes = (struct buf){0};
    (void)err;
    bool recorded = item != 0 && intent_record_hold(node->intents, item);
    worker_step(node->worker, &event, &node->core.effects);
    if (recorded) intent_record_release(node->intents, item);
    carry(node);
    event_done(&event);
    heartbeat_thread_progress(node->core.heartbeat_thread);
    heartbeat_thread_replayed(node->core.heartbeat_thread, ++node->replayed_count);
    return STATUS_OK;
}

static void replay_notice(struct log_replay *replay, const struct input_log_notice *notice)
{
    struct worker_node *node =
        (struct worker_node *)((char *)replay - offsetof(struct worker_node, replay));
    static const char *const kinds[] = {[INPUT_LOG_NOTICE_CUT] = "log-cut",
                                        [INPUT_LOG_NOTICE_REMOVED] = "log-removed",
                                        [INPUT_LOG_NOTICE_JUNK] = "junk-found"};
    node_log_say(node->core.log, SAY_WARN, "event=%s name=%s kept=%llu lost=%llu reason=\"%s\"",
                 kinds[notice->kind], notice->name, (unsigned long long)notice->kept_bytes,
                 (unsigned long long)notice->lost_bytes, notice->reason);
}

static void on_alive(void *context)
{
    const struct worker_node *node = context;
    heartbeat_thread_progress(node->core.heartbeat_thread);
}

static status make_worker(struct worker_node *node, struct error *err)
{
    const struct cluster_config *config = node->core.options.config;
    const struct config_worker *self = NULL;
    for (uint32_t i = 0; i < config->worker_count; i++) {
        if (text_equal(text_of(config->workers[i].name), text_of(node->core.options.name))) {
            self = &config->workers[i];
        }
    }
    if (self == NULL) {
        return error_set(err, STATUS_USAGE, "%s has no worker %s", config->path,
                         node->core.options.name);
    }
    const struct sentiment_model *sentiment;
    TRY(sentiment_file_read(config->sentiment_model, &node->core.arena, &sentiment, err));
    spill_folder_init(&node->spill, node->core.folder);
    node->spill.alive = on_alive;
    node->spill.alive_context = node;
    struct worker_config options = {
        .name = text_of(self->name),
        .sentiment = sentiment,
        .store = &node->spill.store,
        .maps = self->maps,
        .folds = self->folds,
        .work_queue_count = config->work_queues,
        .max_jobs = config->max_jobs,
        .map_limit = config->worker_threads + 1,
        .client_timeout_ms = config->client_timeout_ms,
        .tick_ms = NODE_TICK_MS,
        .repair_delay_ms = REPAIR_DELAY_MS,
        .repair_delay_max_ms = REPAIR_DELAY_MAX_MS,
        .pause_ms = PAUSE_MS,
        .emit_window = EMIT_WINDOW,
        .max_message = config->max_message,
        .incarnation = node->core.incarnation,
        .alive = on_alive,
        .alive_context = node,
    };
    return worker_create(&options, &node->worker, err);
}

static status start_worker(struct worker_node *node, struct error *err)
{
    struct intent_start intents;
    struct input_log_report report;
    TRY(make_worker(node, err));
    TRY(intent_record_open(node->core.folder, &node->intents, &intents, err));
    TRY(input_log_open(node->core.folder, (struct input_log_options){0}, &node->logs, err));
    TRY(start_threads(node, err));
    for (uint32_t i = 0; i < intents.found_count; i++) {
        struct event event = {.kind = EVENT_INTENT,
                              .now_ms = clock_ms(),
                              .intent = {intents.found[i].item, intents.found[i].starts}};
        node_log_say(node->core.log, SAY_WARN, "event=was-in-flight item=%016llx starts=%u",
                     (unsigned long long)intents.found[i].item, intents.found[i].starts);
        worker_step(node->worker, &event, &node->core.effects);
    }
    node->replay = (struct log_replay){.record = replay_record, .notice = replay_notice};
    TRY(input_log_replay(node->logs, &node->replay, &report, err));
    node_log_say(node->core.log, SAY_INFO, "event=replayed jobs=%llu records=%llu bytes=%llu",
                 (unsigned long long)report.job_count, (unsigned long long)report.record_count,
                 (unsigned long long)report.payload_bytes);
    /* The bus first: effects of EVENT_STARTED may use it. */
    TRY(node_core_connect(&node->core, node->core.options.config->worker_threads + 1, err));
    struct event event = {.kind = EVENT_STARTED, .now_ms = clock_ms()};
    worker_step(node->worker, &event, &node->core.effects);
    carry(node);
    return STATUS_OK;
}

status worker_node_run(const struct node_options *options, struct error *err)
{
    struct worker_node node = {0};
    status result = node_core_open(&node.core, options, NODE_WORKER, err);
    if (result == STATUS_OK) result = start_worker(&node, err);
    if (result == STATUS_OK) result = node_core_run(&node.core, STOP_MS, step, &node, err);
    if (result != STATUS_OK && result != STATUS_CANCELLED) {
        node_log_say(node.core.log, SAY_ERROR, "event=failed reason=\"%s\"", err->text);
    }
    if (node.tasks != NULL) stop_threads(&node);
    /* Results of maps that came too late. */
    struct event event;
    while (node.core.mailbox != NULL && mailbox_take(node.core.mailbox, 0, &event)) {
        if (event.kind == EVENT_MAPPED) map_task_destroy(event.task);
        node_core_event_done(&event);
    }
    worker_destroy(node.worker);
    input_log_close(node.logs);
    intent_record_close(node.intents);
    return node_core_close(&node.core, result);
}
