/* SPDX-License-Identifier: Apache-2.0 */
/* sim_node.c - a gateway or a worker as a process: events queue up, one is stepped at a time, its
 * effects are carried out in order, and a crash may come between any two of them.
 *
 * A map is computed when its simulated time is over. Items in flight have intent records, as
 * event.h asks.
 */
#include "cluster/sim/jobs/sim_node.h"

#include <stdio.h>

#include "engine/base/assert.h"
#include "cluster/sim/jobs/cluster.h"
#include "cluster/sim/jobs/sim_alter.h"
#include "engine/sql/compile.h"
#include "cluster/wire/message.h"

_Static_assert((int)SIM_DISK_NAME_SIZE == (int)ROLE_NAME_SIZE, "names of jobs are copied");

enum {
    TICK_MS = 100,
    STOP_LIMIT_MS = 60000,
    FIRST_EVENTS = 64,
    SUSPICION_MAX = 3,
    MAX_MESSAGE = 1 << 20,
    LOG_LIMIT = 64 << 20
};

static void crash_now(struct sim_node *node);
static void turn_soon(struct sim_node *node);

/* ---- events that wait ---- */

static void waiting_event_done(struct event *event)
{
    if (event->kind == EVENT_MAPPED) map_task_destroy(event->task);
    event_done(event);
}

static bool events_reserve(struct sim_node *node)
{
    if (node->event_count < node->event_capacity) return true;
    uint32_t capacity = node->event_capacity == 0 ? FIRST_EVENTS : node->event_capacity * 2;
    struct event *events = memory_alloc(NULL, capacity * sizeof *events);
    if (events == NULL) return false;
    for (uint32_t i = 0; i < node->event_count; i++) {
        events[i] = node->events[(node->event_first + i) % node->event_capacity];
    }
    memory_free(NULL, node->events, node->event_capacity * sizeof *events);
    node->events = events;
    node->event_first = 0;
    node->event_capacity = capacity;
    return true;
}

void sim_node_push(struct sim_node *node, struct event *event)
{
    if (!node->is_up || !events_reserve(node)) {
        waiting_event_done(event);
        if (node->is_up) world_fail(&node->cluster->world, "out of memory");
        return;
    }
    uint32_t place = (node->event_first + node->event_count++) % node->event_capacity;
    node->events[place] = *event;
    turn_soon(node);
}

static bool events_take(struct sim_node *node, struct event *out)
{
    if (node->event_count == 0) return false;
    *out = node->events[node->event_first];
    node->event_first = (node->event_first + 1) % node->event_capacity;
    node->event_count--;
    return true;
}

static bool events_have_tick(const struct sim_node *node)
{
    for (uint32_t i = 0; i < node->event_count; i++) {
        uint32_t place = (node->event_first + i) % node->event_capacity;
        if (node->events[place].kind == EVENT_TICK) return true;
    }
    return false;
}

static void bus_event(void *context, struct bus_event *event)
{
    struct event pushed = {.kind = EVENT_BUS, .bus = *event};
    sim_node_push(context, &pushed);
}

/* ---- maps ---- */

static void map_timer(void *context, uint64_t number)
{
    struct sim_node *node = context;
    struct world *world = &node->cluster->world;
    uint32_t i = 0;
    while (i < node->running.count && node->running.items[i].number != number) {
        i++;
    }
    if (i == node->running.count) return;
    if (node->paused_until_ms > world->now_ms) {
        world_after(world, node->paused_until_ms - world->now_ms, map_timer, node, number);
        return;
    }
    struct map_task *task = node->running.items[i].task;
    node->running.items[i] = node->running.items[--node->running.count];
    mapper_run(node->mapper, task);
    sim_disk_release(&node->disk, task->item);
    struct event event = {.kind = EVENT_MAPPED, .task = task};
    sim_node_push(node, &event);
}

static bool is_poison(const struct map_task *task)
{
    return task->body.size > 0 && memmem(task->body.bytes, task->body.size, SCENARIO_POISON,
                                         sizeof SCENARIO_POISON - 1) != NULL;
}

static void map_begin(struct sim_node *node, struct map_task *task)
{
    struct world *world = &node->cluster->world;
    const struct cluster_settings *settings = &node->cluster->settings;
    sim_disk_hold(&node->disk, task->item);
    if (is_poison(task)) {
        world_trace(world, "%s: maps poison", node->name);
        map_task_destroy(task);
        node->must_crash = true;
        return;
    }
    struct sim_map *map = array_add(&node->running, NULL);
    if (map == NULL) {
        map_task_destroy(task);
        world_fail(world, "out of memory");
        return;
    }
    uint32_t limit = settings->map_ms;
    if (world_chance(world, settings->slow_per_mille)) limit = settings->slow_ms;
    *map = (struct sim_map){task, ++node->next_map};
    world_after(world, world_between(world, 0, limit), map_timer, node, node->next_map);
}

/* ---- effects ---- */

/* Every message sent can be decoded and keeps to the rules; requests for missing messages are
 * counted. */
static void look_at(struct sim_node *node, const struct effect_send *sent)
{
    struct cluster *cluster = node->cluster;
    struct message message;
    struct error err;
    struct text bytes = {(const char *)sent->bytes.bytes, (uint32_t)sent->bytes.size};
    arena_reset(&cluster->scratch);
    if (message_decode(bytes, &cluster->scratch, &message, &err) != STATUS_OK) {
        world_fail(&cluster->world, "%s sends a message that can't be decoded: %s", node->name,
                   err.text);
        return;
    }
    rules_send(node, &message, sent->token);
    sim_echo_keep(node, sent, &message);
    bool is_repair = message.kind == MESSAGE_BARRIER || message.kind == MESSAGE_ASK;
    if (is_repair) cluster->report.repair_count++;
    if (message.kind == MESSAGE_CHUNK) sim_client_sent(cluster, &message);
    world_trace(&cluster->world, "%s: sends %s to %s%s", node->name, message_name(message.kind),
                sent->to[0] == '\0' ? "work" : sent->to, sent->token != 0 ? " and waits" : "");
}

static void send(struct sim_node *node, struct effect_send *sent)
{
    struct bus_address to = {.kind = BUS_INBOX, .node = text_of(sent->to)};
    if (sent->to[0] == '\0') to = (struct bus_address){.kind = BUS_WORK, .work = sent->work};
    look_at(node, sent);
    sim_alter(node->cluster, &sent->bytes);
    sim_bus_send(&node->bus, &to, &sent->bytes, sent->token);
}

static void carry_out(struct sim_node *node, struct effect *effect);

/* The role hears of a failure at once, before anything else happens to the job. */
static void append_log(struct sim_node *node, const struct effect_log *log)
{
    struct text record = {(const char *)log->bytes.bytes, (uint32_t)log->bytes.size};
    struct error err;
    rules_log(node, log->job, record);
    if (sim_disk_append(&node->disk, log->job, record, &err) == STATUS_OK) return;
    world_trace(&node->cluster->world, "%s: no room for %s", node->name, log->job);
    struct effects effects = {0};
    struct event event = {.kind = EVENT_LOG_FAILED,
                          .now_ms = node->cluster->world.now_ms,
                          .log_failed = {log->job, &err}};
    worker_step(node->worker, &event, &effects);
    for (uint32_t i = 0; i < effects.count; i++) {
        if (effects.items[i].kind != EFFECT_LOG) carry_out(node, &effects.items[i]);
    }
    effects_done(&effects);
}

static void end_process(struct sim_node *node);
static void restart_timer(void *context, uint64_t incarnation);

static void node_exit(struct sim_node *node)
{
    struct world *world = &node->cluster->world;
    world_trace(world, "%s: has stopped", node->name);
    sim_bus_close(&node->bus);
    end_process(node);
    sim_disk_crash(&node->disk, world, 0);
    world_after(world, world_between(world, 1, 3000), restart_timer, node, node->incarnation);
}

static void carry_out(struct sim_node *node, struct effect *effect)
{
    struct cluster *cluster = node->cluster;
    switch (effect->kind) {
    case EFFECT_SEND:
        send(node, &effect->send);
        break;
    case EFFECT_REVOKE:
        sim_bus_revoke(&node->bus, effect->revoked_token);
        break;
    case EFFECT_ACK:
        rules_acknowledge(node, effect->delivery);
        sim_bus_acknowledge(&node->bus, effect->delivery);
        break;
    case EFFECT_WORK:
        sim_bus_work(&node->bus, effect->takes_work);
        break;
    case EFFECT_LOG:
        append_log(node, &effect->log);
        break;
    case EFFECT_LOG_REMOVE:
        world_trace(&cluster->world, "%s: removes %s", node->name, effect->removed_job);
        rules_removed(node, effect->removed_job);
        sim_disk_remove(&node->disk, effect->removed_job);
        break;
    case EFFECT_MAP:
        rules_map(node, effect->task);
        map_begin(node, effect->task);
        effect->task = NULL;
        break;
    case EFFECT_REPLY: {
        struct api_reply reply = effect->reply.api;
        effect->reply.api.body = (struct buf){0};
        sim_http_reply(&cluster->http, effect->reply.request_id, &reply);
        break;
    }
    case EFFECT_SAY:
        world_trace(&cluster->world, "%s: says %.*s", node->name, (int)effect->say.line.size,
                    (const char *)effect->say.line.bytes);
        rules_say(node, (struct text){(const char *)effect->say.line.bytes,
                                      (uint32_t)effect->say.line.size});
        break;
    case EFFECT_EXIT:
        node_exit(node);
        break;
    default:
        world_fail(&cluster->world, "%s: effect %d is none of a node's", node->name,
                   (int)effect->kind);
    }
}

static void carry_out_all(struct sim_node *node)
{
    struct effects *effects = &node->effects;
    if (effects->failed) world_fail(&node->cluster->world, "%s: out of memory", node->name);
    uint32_t i = 0;
    for (; i < effects->count && node->is_up && !node->must_crash; i++) {
        if (node->crash_after > 0 && --node->crash_after == 0 && sim_node_may_crash(node)) {
            node->must_crash = true;
            break;
        }
        world_mark(&node->cluster->world, effects->items[i].kind, node->number);
        carry_out(node, &effects->items[i]);
    }
    for (; i < effects->count; i++) {
        if (effects->items[i].kind == EFFECT_MAP) map_task_destroy(effects->items[i].task);
    }
    effects_reset(effects);
    if (node->must_crash && node->is_up) crash_now(node);
}

/* ---- steps ---- */

static void step_role(struct sim_node *node, struct event *event)
{
    if (node->kind == SIM_GATEWAY) {
        gateway_step(node->gateway, event, &node->effects);
    } else {
        worker_step(node->worker, event, &node->effects);
    }
}

static void step(struct sim_node *node, struct event *event)
{
    struct cluster *cluster = node->cluster;
    event->now_ms = cluster->world.now_ms;
    struct api_request request;
    if (event->kind == EVENT_REQUEST) {
        const struct api_request *arrived = sim_http_arrived(&cluster->http, event->request.id);
        if (arrived == NULL) return;
        request = *arrived;
        buf_put_text(&event->request.body, request.body);
        request.body.bytes = (const char *)event->request.body.bytes;
        event->request.api = &request;
    }
    /* A chunk has an intent record while it is mapped, not while it is accepted: else the record of
     * an earlier incarnation would be released before the map begins. */
    uint64_t item = 0;
    const struct buf *message = NULL;
    if (event->kind == EVENT_RECORD) message = &event->record.bytes;
    if (event_is_bus(event, BUS_DELIVERY) && !event->bus.delivery.from_work) {
        message = &event->bus.delivery.bytes;
    }
    if (message != NULL) {
        item = message_item((struct text){(const char *)message->bytes, (uint32_t)message->size});
        sim_disk_hold(&node->disk, item);
    } else if (event->kind == EVENT_MAPPED) {
        item = event->task->item; /* What it gives for the worker itself is applied in the step. */
        sim_disk_hold(&node->disk, item);
    }
    rules_event(node, event);
    step_role(node, event);
    sim_disk_release(&node->disk, item);
    carry_out_all(node);
}

static void turn_timer(void *context, uint64_t incarnation)
{
    struct sim_node *node = context;
    struct world *world = &node->cluster->world;
    if (node->incarnation != incarnation || !node->is_up) return;
    node->will_turn = false;
    struct event event;
    if (node->paused_until_ms <= world->now_ms && events_take(node, &event)) {
        step(node, &event);
        waiting_event_done(&event);
        if (node->kind == SIM_WORKER && node->is_up) mapper_sweep(node->mapper);
    }
    if (node->is_up) turn_soon(node);
}

static void turn_soon(struct sim_node *node)
{
    struct world *world = &node->cluster->world;
    if (node->will_turn || node->event_count == 0) return;
    node->will_turn = true;
    uint64_t delay = world_between(world, 0, node->cluster->settings.turn_ms);
    if (node->paused_until_ms > world->now_ms) delay += node->paused_until_ms - world->now_ms;
    world_after(world, delay, turn_timer, node, node->incarnation);
}

static void tick_timer(void *context, uint64_t incarnation)
{
    struct sim_node *node = context;
    if (node->incarnation != incarnation || !node->is_up) return;
    if (!events_have_tick(node)) {
        struct event event = {.kind = EVENT_TICK};
        sim_node_push(node, &event);
    }
    world_after(&node->cluster->world, TICK_MS, tick_timer, node, incarnation);
}

/* ---- incarnation ---- */

void sim_node_init(struct cluster *cluster, struct sim_node *node, uint32_t number)
{
    uint32_t gateways = cluster->settings.gateway_count;
    *node = (struct sim_node){
        .cluster = cluster,
        .kind = number < gateways ? SIM_GATEWAY : SIM_WORKER,
        .number = number,
        .bus = {.net = &cluster->net, .node = number, .context = node, .event = bus_event}};
    if (node->kind == SIM_GATEWAY) {
        (void)snprintf(node->name, sizeof node->name, "g%u", number + 1); /* Fits. */
    } else {
        (void)snprintf(node->name, sizeof node->name, "w%u", number - gateways + 1); /* Fits. */
    }
    cluster->net.buses[number] = &node->bus;
    cluster->net.names[number] = node->name;
}

static status create_gateway(struct sim_node *node, struct error *err)
{
    struct cluster *cluster = node->cluster;
    const struct cluster_settings *settings = &cluster->settings;
    struct gateway_config config = {
        .name = text_of(node->name),
        .workers = cluster->workers,
        .worker_count = settings->worker_count,
        .work_queue_count = settings->work_count,
        .shard_count = 8,
        .window = settings->window,
        .broadcast_limit = COMPILE_BROADCAST_LIMIT,
        .log_limit = LOG_LIMIT,
        .max_message = MAX_MESSAGE,
        .sync_period_ms = 300,
        .sync_deadline_ms = 2000,
        .reply_deadline_ms = 5000,
        .client_timeout_ms = settings->client_timeout_ms,
        .job_limit = 16,
        .request_limit = 64,
        .seed = random_u64(&cluster->world.random),
    };
    return gateway_create(&config, &node->gateway, err);
}

static status create_worker(struct sim_node *node, struct error *err)
{
    struct cluster *cluster = node->cluster;
    const struct cluster_settings *settings = &cluster->settings;
    struct worker_config config = {
        .name = text_of(node->name),
        .maps = node->maps,
        .folds = node->folds,
        .work_queue_count = settings->work_count,
        .max_jobs = settings->max_jobs,
        .map_limit = settings->map_limit,
        .client_timeout_ms = settings->client_timeout_ms,
        .tick_ms = TICK_MS,
        .repair_delay_ms = 1000,
        .repair_delay_max_ms = 8000,
        .pause_ms = 1000,
        .emit_window = settings->emit_window,
        .max_message = MAX_MESSAGE,
        .incarnation = ++cluster->next_incarnation,
        .mutation = cluster->options->mutation,
    };
    TRY(mapper_create(&node->mapper, err));
    return worker_create(&config, &node->worker, err);
}

/* Replays intent records and logs from the disk; a crash may interrupt it. */
static void replay(struct sim_node *node)
{
    for (uint32_t i = 0; i < SIM_DISK_INTENTS && node->is_up; i++) {
        const struct sim_intent *intent = &node->disk.intents[i];
        if (intent->item == 0) continue;
        struct event event = {.kind = EVENT_INTENT, .intent = {intent->item, intent->starts}};
        step(node, &event);
    }
    char job[SIM_DISK_NAME_SIZE] = "";
    const struct sim_log *log;
    while (node->is_up && (log = sim_disk_next(&node->disk, job)) != NULL) {
        (void)snprintf(job, sizeof job, "%s", log->job); /* Of one size. */
        size_t at = 0;
        struct text record;
        while (node->is_up && sim_log_record(log, &at, &record)) {
            struct event event = {.kind = EVENT_RECORD, .record = {.job = job}};
            buf_put_text(&event.record.bytes, record);
            step(node, &event);
            waiting_event_done(&event);
        }
    }
}

void sim_node_start(struct sim_node *node)
{
    struct cluster *cluster = node->cluster;
    struct error err;
    ASSERT(!node->is_up);
    node->incarnation++;
    node->is_up = true;
    node->is_stopping = false;
    node->must_crash = false;
    node->crash_after = 0;
    node->will_turn = false;
    world_trace(&cluster->world, "%s: starts", node->name);
    status result =
        node->kind == SIM_GATEWAY ? create_gateway(node, &err) : create_worker(node, &err);
    if (result == STATUS_OK) result = sim_bus_open(&node->bus, &err);
    if (result != STATUS_OK) {
        world_fail(&cluster->world, "%s: does not start: %s", node->name, err.text);
        return;
    }
    if (node->kind == SIM_WORKER) replay(node);
    struct event started = {.kind = EVENT_STARTED};
    if (node->is_up) step(node, &started);
    if (!node->is_up) return;
    world_after(&cluster->world, world_below(&cluster->world, TICK_MS), tick_timer, node,
                node->incarnation);
}

static void restart_timer(void *context, uint64_t incarnation)
{
    struct sim_node *node = context;
    if (node->incarnation == incarnation && !node->is_up) sim_node_start(node);
}

/* The process loses all its memory. */
static void end_process(struct sim_node *node)
{
    node->is_up = false;
    node->incarnation++;
    sim_bus_kill(&node->bus);
    struct event event;
    while (events_take(node, &event)) {
        waiting_event_done(&event);
    }
    for (uint32_t i = 0; i < node->running.count; i++) {
        map_task_destroy(node->running.items[i].task);
    }
    node->running.count = 0;
    rules_in_flight_done(&node->in_flight);
    gateway_destroy(node->gateway);
    worker_destroy(node->worker);
    mapper_destroy(node->mapper);
    node->gateway = NULL;
    node->worker = NULL;
    node->mapper = NULL;
    node->paused_until_ms = 0;
    if (node->kind == SIM_GATEWAY) sim_http_gateway_died(&node->cluster->http, node->number);
}

void sim_node_crash(struct sim_node *node, enum sim_crash how, uint64_t down_ms)
{
    struct cluster *cluster = node->cluster;
    if (!node->is_up) return;
    world_trace(&cluster->world, "%s: crashes%s", node->name,
                how == SIM_CRASH_AND_LOSE_DISK ? " and loses its disk" : "");
    cluster->report.crash_count++;
    end_process(node);
    sim_disk_crash(&node->disk, &cluster->world, cluster->settings.torn_per_mille);
    if (how == SIM_CRASH_AND_LOSE_DISK) sim_disk_lose(&node->disk);
    node->down_until_ms = cluster->world.now_ms + down_ms;
    world_after(&cluster->world, down_ms, restart_timer, node, node->incarnation);
}

/* An item that is in flight at several crashes can't be told from a poison message, and its job
 * would fail; planned crashes must not cause that by chance. */
bool sim_node_may_crash(const struct sim_node *node)
{
    return sim_disk_suspicion(&node->disk) < SUSPICION_MAX;
}

static void crash_now(struct sim_node *node)
{
    sim_node_crash(node, SIM_CRASH, world_between(&node->cluster->world, 100, 3000));
}

static void stop_limit_timer(void *context, uint64_t incarnation)
{
    struct sim_node *node = context;
    if (node->incarnation != incarnation || !node->is_up || node->paused_until_ms > 0) return;
    world_fail(&node->cluster->world, "%s was told to stop and has not", node->name);
}

void sim_node_stop(struct sim_node *node)
{
    if (!node->is_up || node->is_stopping) return;
    node->is_stopping = true;
    world_trace(&node->cluster->world, "%s: is told to stop", node->name);
    struct event event = {.kind = EVENT_STOP};
    sim_node_push(node, &event);
    world_after(&node->cluster->world, STOP_LIMIT_MS, stop_limit_timer, node, node->incarnation);
}

void sim_node_pause(struct sim_node *node, uint64_t pause_ms)
{
    struct world *world = &node->cluster->world;
    if (!node->is_up) return;
    world_trace(world, "%s: is paused for %llu ms", node->name, (unsigned long long)pause_ms);
    node->paused_until_ms = world->now_ms + pause_ms;
}

void sim_node_done(struct sim_node *node)
{
    if (node->cluster == NULL) return;
    if (node->is_up) end_process(node);
    sim_disk_done(&node->disk);
    effects_done(&node->effects);
    memory_free(NULL, node->events, node->event_capacity * sizeof *node->events);
    array_done(&node->running, NULL);
}
