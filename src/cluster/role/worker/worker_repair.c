/* SPDX-License-Identifier: Apache-2.0 */
/* worker_repair.c - missing messages, and which node to ask for them.
 *
 * A lost message, queue, broker or disk look the same: numbers are missing. A worker looks for them
 * only while a client waits for the job (SYNC). Before it requests chunks again, it sends barriers
 * through all work queues: a chunk that was sent before a barrier and has not come when the barrier
 * is back is in no queue any more. A worker that has the chunk in flight says so in its STATUS, and
 * the gateway subtracts those. Messages of folds are requested from the owner of the shard.
 *
 * Every wait doubles from the stream's last progress (exponential back-off), so that a slow cluster
 * is not made slower.
 */
#include "cluster/role/worker/worker_state.h"

#include <stdio.h>

void stream_forget_barriers(struct input_stream *stream)
{
    for (uint32_t i = 0; i < WORKER_ATTEMPTS; i++) {
        stream->attempts[i] = (struct barrier_attempt){0};
    }
    for (uint32_t i = 0; i < WORKER_QUEUES_MAX; i++) {
        stream->acknowledged_barriers[i] = 0;
    }
}

/* Whether it is time to ask; then the next time is later. */
static bool is_due(const struct worker *worker, struct input_stream *stream)
{
    const struct worker_config *config = &worker->config;
    uint32_t delay_ms = stream->delay_ms == 0 ? config->repair_delay_ms : stream->delay_ms;
    if (worker->now_ms - stream->last_progress_ms < delay_ms) return false;
    uint64_t doubled = (uint64_t)delay_ms * 2;
    if (doubled > config->repair_delay_max_ms) doubled = config->repair_delay_max_ms;
    if (IS_PLANTED(config->mutation, WORKER_NEVER_DOUBLES)) doubled = config->repair_delay_ms;
    stream->delay_ms = (uint32_t)doubled;
    stream->last_progress_ms = worker->now_ms;
    return true;
}

/* ---- chunks ---- */

static uint64_t known_sent(const struct worker *worker, const struct input_stream *stream)
{
    uint64_t sent = IS_PLANTED(worker->config.mutation, WORKER_IGNORES_SENT) ? 0 : stream->sent;
    if (stream->ended && stream->end_count > sent) sent = stream->end_count;
    return sent;
}

static void send_barriers(struct worker *worker, struct worker_job *job,
                          struct input_stream *stream, struct effects *effects)
{
    struct barrier_attempt *attempt = &stream->attempts[stream->next_attempt++ % WORKER_ATTEMPTS];
    *attempt =
        (struct barrier_attempt){.id = hash_combine(worker->config.incarnation, ++worker->next_id),
                                 .limit = known_sent(worker, stream)};
    bool only_one = IS_PLANTED(worker->config.mutation, WORKER_SENDS_ONE_BARRIER);
    uint32_t count = only_one ? 1 : worker->config.work_queue_count;
    for (uint32_t queue = 0; queue < count; queue++) {
        struct message message = worker_message(worker, MESSAGE_BARRIER, job);
        message.barrier = (struct message_barrier){
            .scan = stream->source, .queue = queue, .attempt = attempt->id};
        struct effect *effect = effects_add(effects, EFFECT_SEND);
        effect->send.work = queue;
        message_encode(&message, &effect->send.bytes);
        if (effect->send.bytes.failed) effects->failed = true;
    }
}

static void rerequest_missing(struct worker *worker, struct worker_job *job,
                              struct input_stream *stream, struct effects *effects)
{
    uint32_t queue_count = worker->config.work_queue_count;
    uint64_t highest = 0;
    for (uint32_t i = 0; i < queue_count; i++) {
        if (stream->acknowledged_barriers[i] > highest) highest = stream->acknowledged_barriers[i];
    }
    stream->rerequest_count = 0;
    for (uint64_t number = number_set_missing(&stream->applied, 0);
         number < highest && stream->rerequest_count < WORKER_REREQUESTS_MAX;
         number = number_set_missing(&stream->applied, number + 1)) {
        uint32_t queue = job_layout_work_queue(job->map.layout, number, queue_count);
        if (number < stream->acknowledged_barriers[queue])
            stream->rerequests[stream->rerequest_count++] = number;
    }
    stream->rerequest_attempt = hash_combine(worker->config.incarnation, ++worker->next_id);
    for (uint32_t i = 0; i < WORKER_QUEUES_MAX; i++) {
        stream->acknowledged_barriers[i] = 0;
    }
    if (stream->rerequest_count == 0) return;
    effects_say(effects, SAY_INFO, "event=chunks-rerequested job=%s scan=%u count=%u first=%llu",
                job->id, stream->source, stream->rerequest_count,
                (unsigned long long)stream->rerequests[0]);
}

void worker_barrier_returned(struct worker *worker, struct worker_job *job,
                             const struct message_barrier *barrier, struct effects *effects)
{
    struct input_stream *stream = worker_job_stream(job, STREAM_SCAN, barrier->scan, 0);
    uint32_t queue_count = worker->config.work_queue_count;
    if (stream == NULL || stream->complete || barrier->queue >= queue_count) return;
    uint64_t limit = 0;
    for (uint32_t i = 0; i < WORKER_ATTEMPTS; i++) {
        if (stream->attempts[i].id == barrier->attempt) limit = stream->attempts[i].limit;
    }
    if (limit == 0) return; /* Of an attempt that was given up. */
    bool for_all = IS_PLANTED(worker->config.mutation, WORKER_SENDS_ONE_BARRIER);
    for (uint32_t i = 0; i < queue_count; i++) {
        bool counts = i == barrier->queue || for_all;
        if (counts && stream->acknowledged_barriers[i] < limit)
            stream->acknowledged_barriers[i] = limit;
    }
    for (uint32_t i = 0; i < queue_count; i++) {
        if (stream->acknowledged_barriers[i] == 0) return;
    }
    rerequest_missing(worker, job, stream, effects);
}

/* ---- what folds emitted ---- */

static void send_ask(struct worker_job *job, const struct input_stream *stream,
                     const uint64_t *numbers, uint32_t count, struct effects *effects)
{
    const struct job_layout *layout = job->map.layout;
    uint32_t owner = job_layout_owner(layout, stream->source, stream->producer);
    if (owner == job->self) return; /* It comes when it is ready. */
    struct message message = worker_message(job->worker, MESSAGE_ASK, job);
    message.ask = (struct message_ask){.kind = stream->kind,
                                       .fold = stream->source,
                                       .shard = stream->producer,
                                       .numbers = numbers,
                                       .number_count = count};
    worker_send(effects, layout->manifest.workers[owner].name, &message);
}

void worker_ask_on(struct worker_job *job, struct input_stream *stream, struct effects *effects)
{
    uint64_t window = job->worker->config.emit_window;
    if (stream->kind == STREAM_SCAN || !stream->ended || stream->complete) return;
    if (stream->asked_to >= stream->end_count) return;
    if (stream->applied.count + window / 2 < stream->asked_to) return;
    uint64_t *numbers = arena_array(&job->worker->arena, uint64_t, window + 1);
    if (numbers == NULL) return; /* Then the next repair asks. */
    uint32_t count = 0;
    while (count < window && stream->asked_to < stream->end_count) {
        numbers[count++] = stream->asked_to++;
    }
    send_ask(job, stream, numbers, count, effects);
}

static void ask_missing(struct worker_job *job, struct input_stream *stream,
                        struct effects *effects)
{
    uint64_t window = job->worker->config.emit_window;
    uint64_t *numbers = arena_array(&job->worker->arena, uint64_t, window + 1);
    if (numbers == NULL) return; /* Next time. */
    uint64_t limit = stream->ended ? stream->end_count : window;
    uint32_t count = 0;
    for (uint64_t number = number_set_missing(&stream->applied, 0);
         number < limit && count < window;
         number = number_set_missing(&stream->applied, number + 1)) {
        numbers[count++] = number;
    }
    send_ask(job, stream, numbers, count, effects);
}

/* While chunks of a scan that a fold rests on are missing here, the owner of the fold hardly has
 * all of them: its output is not missing yet. */
static bool may_be_ready(struct worker_job *job, const struct input_stream *stream)
{
    const struct job_layout *layout = job->map.layout;
    uint32_t scan_count = layout->plan->scan_count;
    for (uint32_t scan = 0; scan < scan_count; scan++) {
        if (!layout->rests_on[(size_t)stream->source * scan_count + scan]) continue;
        const struct input_stream *own = worker_job_stream(job, STREAM_SCAN, scan, 0);
        if (own != NULL && !own->complete) return false;
    }
    return true;
}

/* Whether something should be here that is not. */
static bool is_missed(const struct worker *worker, struct worker_job *job,
                      const struct input_stream *stream)
{
    if (stream->kind != STREAM_SCAN) return stream->ended || may_be_ready(job, stream);
    return number_set_missing(&stream->applied, 0) < known_sent(worker, stream);
}

static void repair(struct worker *worker, struct worker_job *job, struct effects *effects)
{
    for (uint32_t i = 0; i < job->stream_count; i++) {
        struct input_stream *stream = &job->streams[i];
        if (stream->complete) continue;
        if (!is_missed(worker, job, stream)) {
            /* The wait begins when there is something to wait for, however old the job is by then:
             * what is on its way for the first time is not asked for. */
            stream->last_progress_ms = worker->now_ms;
        } else if (is_due(worker, stream)) {
            if (stream->kind == STREAM_SCAN) {
                send_barriers(worker, job, stream, effects);
            } else {
                ask_missing(job, stream, effects);
            }
        }
    }
}

/* ---- telling ---- */

static void add_scan(struct worker_job *job, struct input_stream *stream,
                     struct message_status *report, struct scan_state *scans,
                     struct rerequest *rerequests)
{
    scans[report->scan_count++] = (struct scan_state){
        .scan = stream->source,
        .relevant = true,
        .ended = stream->ended,
        .applied = stream->applied.count,
        .contiguous = stream->applied.contiguous,
    };
    uint64_t *numbers = arena_array(&job->worker->arena, uint64_t, stream->rerequest_count + 1u);
    uint32_t count = 0;
    for (uint32_t i = 0; numbers != NULL && i < stream->rerequest_count; i++) {
        bool is_here = number_set_has(&stream->applied, stream->rerequests[i]);
        if (!is_here) numbers[count++] = stream->rerequests[i];
    }
    if (count == 0) return;
    rerequests[report->rerequest_count++] = (struct rerequest){.scan = stream->source,
                                                               .attempt = stream->rerequest_attempt,
                                                               .numbers = numbers,
                                                               .number_count = count};
}

static void add_held(struct worker *worker, const struct worker_job *job,
                     struct message_status *report)
{
    struct chunk_held *held =
        arena_array(&worker->arena, struct chunk_held, worker->in_flight.count + 1u);
    if (held == NULL) return;
    for (uint32_t i = 0; i < worker->in_flight.count; i++) {
        const struct in_flight *in_flight = &worker->in_flight.items[i];
        if (in_flight->kind != IN_FLIGHT_CHUNK || in_flight->job != &job->map) continue;
        held[report->held_count++] = (struct chunk_held){in_flight->scan, in_flight->number};
    }
    report->held = held;
}

static void fill_status(struct worker *worker, struct worker_job *job,
                        struct message_status *report)
{
    struct arena *arena = &worker->arena;
    const struct plan *plan = job->map.layout->plan;
    struct scan_state *scans = arena_array(arena, struct scan_state, plan->scan_count + 1);
    struct rerequest *rerequests = arena_array(arena, struct rerequest, plan->scan_count + 1);
    uint32_t *copies = arena_array(arena, uint32_t, plan->fold_count + 1);
    struct query_state *queries = arena_array(arena, struct query_state, plan->query_count + 1);
    report->duplicates = job->duplicates;
    report->replayed = job->replayed;
    if (job->failed) {
        report->state = WORKER_JOB_FAILED;
        report->failure = job->error.code;
        report->text = text_of(job->error.text);
        return;
    }
    report->state = job->complete ? WORKER_JOB_COMPLETE : WORKER_JOB_RUNNING;
    if (scans == NULL || rerequests == NULL || copies == NULL || queries == NULL) return;
    for (uint32_t i = 0; i < job->stream_count; i++) {
        if (job->streams[i].kind == STREAM_SCAN) {
            add_scan(job, &job->streams[i], report, scans, rerequests);
        }
    }
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        if (job->copies[i].ready) copies[report->copy_count++] = i;
    }
    for (uint32_t i = 0; i < plan->query_count; i++) {
        const struct owned_shard *owned = worker_job_shard(job, plan->queries[i].result_fold, 0);
        if (owned == NULL || owned->state != SHARD_EMITTED) continue;
        queries[report->query_count++] =
            (struct query_state){.query = i, .batch_count = owned->results.count};
    }
    report->scans = scans;
    report->rerequests = rerequests;
    report->copies = copies;
    report->queries = queries;
    add_held(worker, job, report);
}

void worker_sync(struct worker *worker, struct worker_job *job, struct text from,
                 const struct message_sync *sync, struct effects *effects)
{
    if (sync->renew) {
        job->lease_ms = worker->config.client_timeout_ms;
        for (uint32_t i = 0; i < sync->sent_count; i++) {
            struct input_stream *stream =
                worker_job_stream(job, STREAM_SCAN, sync->sent[i].scan, 0);
            uint64_t sent = sync->sent[i].count;
            if (stream == NULL || sent > stream->number_limit || sent <= stream->sent) continue;
            stream->sent = sent;
        }
        if (!job->failed) repair(worker, job, effects);
    }
    struct message message = worker_message(worker, MESSAGE_STATUS, job);
    message.status = (struct message_status){.request = sync->request,
                                             .incarnation = worker->config.incarnation,
                                             .maps = worker->config.maps};
    fill_status(worker, job, &message.status);
    worker_send(effects, from, &message);
    if (!sync->needs_manifest) return;
    message = worker_message(worker, MESSAGE_MANIFEST, job);
    message.store =
        (struct message_manifest){.request = sync->request, .bytes = job->map.layout->bytes};
    worker_send(effects, from, &message);
}
