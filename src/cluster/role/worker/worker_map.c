/* SPDX-License-Identifier: Apache-2.0 */
/* worker_map.c - chunks and barriers that were taken from the work queues and are not done yet.
 *
 * A chunk is acknowledged when the broker has confirmed all its outputs: until then, after a crash,
 * the broker gives it to another worker, which makes the same bytes. A barrier is passed on when
 * all that was taken before it is done: the worker that gets it back knows that no older chunk is
 * in flight here. (The idea of barriers on channels: Chandy and Lamport, Distributed snapshots,
 * 1985; here they prove absence, and no snapshot is taken.)
 */
#include "cluster/role/worker/worker_state.h"

#include <stdio.h>

/* ---- the list ---- */

void in_flight_done(struct in_flight *in_flight)
{
    map_task_destroy(in_flight->task);
    map_job_release(in_flight->job);
    buf_done(&in_flight->barrier);
}

static struct in_flight *in_flight_add(struct worker *worker, struct effects *effects)
{
    struct in_flight *in_flight = array_add(&worker->in_flight, NULL);
    if (in_flight == NULL) {
        effects->failed = true;
        return NULL;
    }
    *in_flight = (struct in_flight){.id = ++worker->next_id};
    return in_flight;
}

static struct in_flight *in_flight_find(struct worker *worker, uint64_t id)
{
    for (uint32_t i = 0; i < worker->in_flight.count; i++) {
        if (worker->in_flight.items[i].id == id) return &worker->in_flight.items[i];
    }
    return NULL;
}

static void acknowledge(uint64_t delivery, struct effects *effects)
{
    effects_add(effects, EFFECT_ACK)->delivery = delivery;
}

static uint64_t token_for(struct worker *worker, uint64_t in_flight, struct effects *effects)
{
    struct awaited_confirm *confirm = array_add(&worker->confirms, NULL);
    if (confirm == NULL) {
        effects->failed = true;
        return 0;
    }
    *confirm = (struct awaited_confirm){.token = ++worker->next_id, .in_flight = in_flight};
    return confirm->token;
}

static void forward_barrier(struct worker *worker, struct in_flight *in_flight,
                            struct effects *effects)
{
    struct effect *effect = effects_add(effects, EFFECT_SEND);
    (void)snprintf(effect->send.to, sizeof effect->send.to, "%s", in_flight->asker);
    effect->send.bytes = in_flight->barrier;
    in_flight->barrier = (struct buf){0};
    in_flight->started = true;
    in_flight->mapped = true;
    in_flight->unconfirmed = 1;
    effect->send.token = token_for(worker, in_flight->id, effects);
}

/* Acknowledges what is done, and passes on the barriers whose turn it is. */
static void settle(struct worker *worker, struct effects *effects)
{
    bool chunk_before = false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < worker->in_flight.count; i++) {
        struct in_flight *in_flight = &worker->in_flight.items[i];
        if (in_flight->kind == IN_FLIGHT_BARRIER && !in_flight->started && !chunk_before) {
            forward_barrier(worker, in_flight, effects);
        }
        bool is_done = in_flight->mapped && in_flight->unconfirmed == 0;
        if (is_done) {
            acknowledge(in_flight->delivery, effects);
            in_flight_done(in_flight);
            continue;
        }
        chunk_before = chunk_before || in_flight->kind == IN_FLIGHT_CHUNK;
        worker->in_flight.items[kept++] = *in_flight;
    }
    worker->in_flight.count = kept;
}

/* Only of a chunk that should have been dropped. */
static bool must_wait(const struct worker *worker, const struct in_flight *in_flight)
{
    return IS_PLANTED(worker->config.mutation, WORKER_HOLDS_CHUNK) &&
           !atomic_load(&in_flight->job->ended) &&
           !worker_job_can_map((const struct worker_job *)in_flight->job, in_flight->scan);
}

void worker_start_maps(struct worker *worker, struct effects *effects)
{
    uint32_t running = 0;
    bool alone = false;
    for (uint32_t i = 0; i < worker->in_flight.count; i++) {
        const struct in_flight *in_flight = &worker->in_flight.items[i];
        if (in_flight->kind != IN_FLIGHT_CHUNK || !in_flight->started || in_flight->mapped)
            continue;
        running++;
        alone = alone || in_flight->alone;
    }
    for (uint32_t i = 0; i < worker->in_flight.count && !alone && !worker->stopping; i++) {
        struct in_flight *in_flight = &worker->in_flight.items[i];
        if (in_flight->task == NULL || in_flight->started || running >= worker->config.map_limit)
            continue;
        if (in_flight->alone && running > 0) break;
        if (must_wait(worker, in_flight)) continue;
        effects_add(effects, EFFECT_MAP)->task = in_flight->task;
        in_flight->task = NULL;
        in_flight->started = true;
        running++;
        alone = in_flight->alone;
    }
    settle(worker, effects);
    if (!worker->stopping || worker->exited) return;
    /* What was not begun goes back to its queue when the connection ends. */
    for (uint32_t i = 0; i < worker->in_flight.count; i++) {
        if (worker->in_flight.items[i].started) return;
    }
    worker->exited = true;
    effects_add(effects, EFFECT_EXIT);
}

/* ---- taking ---- */

static void pause_work(struct worker *worker, struct effects *effects)
{
    worker->paused_until_ms = worker->now_ms + worker->config.pause_ms;
    if (!worker->working) return;
    worker->working = false;
    effects_add(effects, EFFECT_WORK)->takes_work = false;
}

static void take_barrier(struct worker *worker, const struct message *message, uint64_t delivery,
                         struct effects *effects)
{
    struct in_flight *in_flight = in_flight_add(worker, effects);
    if (in_flight == NULL) return;
    in_flight->kind = IN_FLIGHT_BARRIER;
    in_flight->delivery = delivery;
    (void)snprintf(in_flight->asker, sizeof in_flight->asker, "%.*s", TEXT_ARGS(message->from));
    struct message forwarded = *message;
    forwarded.from = text_of(worker->name);
    forwarded.barrier.returned = true;
    message_encode(&forwarded, &in_flight->barrier);
    if (in_flight->barrier.failed) effects->failed = true;
}

uint32_t worker_starts_of(const struct worker *worker, uint64_t item)
{
    for (uint32_t i = 0; i < worker->suspect_count; i++) {
        if (worker->suspects[i].item == item) return worker->suspects[i].starts;
    }
    return 0;
}

/* The chunk has ended this process again and again. */
static void fail_poison(struct worker *worker, struct worker_job *job,
                        const struct message_chunk *chunk, struct effects *effects)
{
    const struct job_layout *layout = job->map.layout;
    uint32_t table = layout->plan->scans[chunk->scan].table;
    const struct manifest_table *files = job_layout_files(layout, table);
    struct chunk_body body = {0};
    struct error err;
    struct text name = layout->plan->tables[table].name;
    bool is_read = chunk_body_decode(chunk->body, &worker->arena, &body, &err) == STATUS_OK;
    if (is_read && files != NULL && body.file < files->file_count) {
        name = files->files[body.file].name;
    }
    (void)error_set(&err, STATUS_INTERNAL,
                    "%.*s:%llu: the records that begin here ended worker %s %d times while it was "
                    "mapping them; leave them out, or report this",
                    TEXT_ARGS(name), (unsigned long long)body.first_line, worker->name,
                    WORKER_POISON_STARTS);
    worker_job_fail(job, &err, effects);
}

/* Whether a chunk can be mapped; if not, it is dropped, and repair brings it back if it matters. */
static bool accepts_chunk(struct worker *worker, struct worker_job *job,
                          const struct message *message, uint64_t item, struct effects *effects)
{
    const struct message_chunk *chunk = &message->chunk;
    if (job == NULL) {
        /* Another worker may know it; but a job that has ended must not keep us from others. */
        bool is_new = worker->paused_for != message->manifest &&
                      !worker_has_tombstone(worker, message->job, message->manifest);
        worker->paused_for = message->manifest;
        if (is_new) pause_work(worker, effects);
        return false;
    }
    bool fits = message->manifest == job->map.layout->hash &&
                chunk->scan < job->map.layout->plan->scan_count;
    if (!fits || job->failed) return false;
    if (worker_starts_of(worker, item) >= WORKER_POISON_STARTS) {
        fail_poison(worker, job, chunk, effects);
        return false;
    }
    if (worker_job_can_map(job, chunk->scan)) return true;
    if (IS_PLANTED(worker->config.mutation, WORKER_HOLDS_CHUNK)) return true;
    effects_say(effects, SAY_DEBUG, "event=chunk-dropped job=%s scan=%u number=%llu reason=no-copy",
                job->id, chunk->scan, (unsigned long long)chunk->number);
    pause_work(worker, effects);
    return false;
}

/* The same chunk once more: sent again, or delivered again on a new connection. One answer does for
 * both; the later delivery stands for the chunk from now on. */
static bool is_in_flight(struct worker *worker, const struct worker_job *job,
                         const struct message_chunk *chunk, uint64_t delivery,
                         struct effects *effects)
{
    for (uint32_t i = 0; i < worker->in_flight.count; i++) {
        struct in_flight *in_flight = &worker->in_flight.items[i];
        if (in_flight->kind != IN_FLIGHT_CHUNK || in_flight->job != &job->map ||
            in_flight->scan != chunk->scan || in_flight->number != chunk->number) {
            continue;
        }
        acknowledge(in_flight->delivery, effects);
        in_flight->delivery = delivery;
        return true;
    }
    return false;
}

static void take_chunk(struct worker *worker, struct bus_delivery *delivery, struct worker_job *job,
                       const struct message *message, uint64_t item, struct effects *effects)
{
    const struct message_chunk *chunk = &message->chunk;
    struct map_task *task = memory_alloc(NULL, sizeof *task);
    struct in_flight *in_flight = in_flight_add(worker, effects);
    if (task == NULL || in_flight == NULL) {
        memory_free(NULL, task, sizeof *task);
        effects->failed = true;
        return;
    }
    *task = (struct map_task){
        .id = in_flight->id,
        .job = map_job_keep(&job->map),
        .scan = chunk->scan,
        .number = chunk->number,
        .checksum = chunk->checksum,
        .item = item,
        .message = delivery->bytes,
        .body = chunk->body,
    };
    delivery->bytes = (struct buf){0};
    *in_flight = (struct in_flight){
        .kind = IN_FLIGHT_CHUNK,
        .id = in_flight->id,
        .delivery = delivery->id,
        .task = task,
        .job = map_job_keep(&job->map),
        .scan = chunk->scan,
        .number = chunk->number,
        .item = item,
        .alone = worker_starts_of(worker, item) >= WORKER_POISON_ALONE,
    };
}

void worker_take(struct worker *worker, struct bus_delivery *delivery, struct effects *effects)
{
    struct text bytes = {(const char *)delivery->bytes.bytes, (uint32_t)delivery->bytes.size};
    struct message message;
    struct error err;
    if (message_decode(bytes, &worker->arena, &message, &err) != STATUS_OK) {
        effects_say(effects, SAY_WARN, "event=message-ignored queue=work reason=\"%s\"", err.text);
        acknowledge(delivery->id, effects);
        return;
    }
    struct worker_job *job = worker_find(worker, message.job);
    if (message.kind == MESSAGE_BARRIER) {
        take_barrier(worker, &message, delivery->id, effects);
    } else if (message.kind != MESSAGE_CHUNK ||
               !accepts_chunk(worker, job, &message, message_item(bytes), effects)) {
        acknowledge(delivery->id, effects);
    } else if (!is_in_flight(worker, job, &message.chunk, delivery->id, effects)) {
        take_chunk(worker, delivery, job, &message, message_item(bytes), effects);
    }
    worker_start_maps(worker, effects);
}

/* ---- afterwards ---- */

static void send_outputs(struct worker *worker, struct in_flight *in_flight, struct map_task *task,
                         struct effects *effects)
{
    struct worker_job *job = (struct worker_job *)task->job;
    const struct manifest *manifest = &job->map.layout->manifest;
    for (uint32_t i = 0; i < task->output_count && !job->failed; i++) {
        struct buf *bytes = &task->outputs[i];
        if (bytes->size == 0) continue;
        if (bytes->size > worker->config.max_message) {
            struct error err;
            (void)error_set(&err, STATUS_LIMIT,
                            "chunk %llu of scan %u makes a message of %zu bytes, more than "
                            "max_message allows; raise it in the cluster file, or make chunks "
                            "smaller",
                            (unsigned long long)task->number, task->scan, bytes->size);
            worker_job_fail(job, &err, effects);
        } else if (i == job->self) {
            worker_receive(worker, job, bytes, effects);
        } else {
            struct effect *effect = effects_add(effects, EFFECT_SEND);
            (void)snprintf(effect->send.to, sizeof effect->send.to, "%.*s",
                           TEXT_ARGS(manifest->workers[i].name));
            effect->send.bytes = *bytes;
            *bytes = (struct buf){0};
            effect->send.token = token_for(worker, in_flight->id, effects);
            in_flight->unconfirmed++;
        }
    }
}

void worker_mapped(struct worker *worker, struct map_task *task, struct effects *effects)
{
    struct in_flight *in_flight = in_flight_find(worker, task->id);
    if (in_flight != NULL) {
        struct worker_job *job = (struct worker_job *)task->job;
        in_flight->mapped = true;
        bool is_wanted = !atomic_load(&job->map.ended) && !job->failed;
        if (task->is_damaged) {
            effects_say(effects, SAY_WARN,
                        "event=message-ignored queue=work job=%s scan=%u number=%llu reason=\"the "
                        "chunk is not what its checksum says\"",
                        job->id, task->scan, (unsigned long long)task->number);
        } else if (is_wanted && task->result != STATUS_OK) {
            worker_job_fail(job, &task->error, effects);
        } else if (is_wanted) {
            send_outputs(worker, in_flight, task, effects);
        }
    }
    map_task_destroy(task);
    worker_start_maps(worker, effects);
}

void worker_confirmed(struct worker *worker, uint64_t token, struct effects *effects)
{
    for (uint32_t i = 0; i < worker->confirms.count; i++) {
        if (worker->confirms.items[i].token != token) continue;
        struct in_flight *in_flight = in_flight_find(worker, worker->confirms.items[i].in_flight);
        if (in_flight != NULL && in_flight->unconfirmed > 0) in_flight->unconfirmed--;
        worker->confirms.items[i] = worker->confirms.items[--worker->confirms.count];
        break;
    }
    worker_start_maps(worker, effects);
}
