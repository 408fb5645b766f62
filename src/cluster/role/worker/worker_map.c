/* worker_map.c - what was taken from the work queues and is not done yet.
 *
 * A chunk is acknowledged when the broker has confirmed all that it gave: until then a crash gives
 * it to somebody else, who makes the same bytes. A marker is passed on when all that was taken
 * before it is done: so whoever gets it back knows that nothing older is underway here.
 */
#include "cluster/role/worker/worker_state.h"

#include <stdio.h>

/* ---- the list ---- */

void hand_done(struct in_hand *hand)
{
    map_task_destroy(hand->task);
    map_job_release(hand->job);
    buf_done(&hand->marker);
}

static struct in_hand *hand_add(struct worker *worker, struct effects *effects)
{
    if (worker->hand_count == worker->hand_capacity) {
        uint32_t grown = worker->hand_capacity == 0 ? 16 : worker->hand_capacity * 2;
        struct in_hand *hands = memory_resize(
            NULL, worker->hands, worker->hand_capacity * sizeof *hands, grown * sizeof *hands);
        if (hands == NULL) {
            effects->failed = true;
            return NULL;
        }
        worker->hands = hands;
        worker->hand_capacity = grown;
    }
    struct in_hand *hand = &worker->hands[worker->hand_count++];
    *hand = (struct in_hand){.id = ++worker->next_id};
    return hand;
}

static struct in_hand *hand_find(struct worker *worker, uint64_t id)
{
    for (uint32_t i = 0; i < worker->hand_count; i++) {
        if (worker->hands[i].id == id) return &worker->hands[i];
    }
    return NULL;
}

static void acknowledge(uint64_t delivery, struct effects *effects)
{
    effects_add(effects, EFFECT_ACK)->delivery = delivery;
}

static uint64_t token_for(struct worker *worker, uint64_t hand, struct effects *effects)
{
    if (worker->token_count == worker->token_capacity) {
        uint32_t grown = worker->token_capacity == 0 ? 64 : worker->token_capacity * 2;
        struct token *tokens = memory_resize(
            NULL, worker->tokens, worker->token_capacity * sizeof *tokens, grown * sizeof *tokens);
        if (tokens == NULL) {
            effects->failed = true;
            return 0;
        }
        worker->tokens = tokens;
        worker->token_capacity = grown;
    }
    uint64_t token = ++worker->next_id;
    worker->tokens[worker->token_count++] = (struct token){.token = token, .hand = hand};
    return token;
}

static void forward_marker(struct worker *worker, struct in_hand *hand, struct effects *effects)
{
    struct effect *effect = effects_add(effects, EFFECT_SEND);
    (void)snprintf(effect->to, sizeof effect->to, "%s", hand->asker);
    effect->bytes = hand->marker;
    hand->marker = (struct buf){0};
    hand->started = true;
    hand->mapped = true;
    hand->unconfirmed = 1;
    effect->token = token_for(worker, hand->id, effects);
}

/* Acknowledges what is done, passes on the markers whose turn it is, and exits when asked to. */
static void settle(struct worker *worker, struct effects *effects)
{
    bool chunk_before = false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < worker->hand_count; i++) {
        struct in_hand *hand = &worker->hands[i];
        if (hand->kind == HAND_MARKER && !hand->started && !chunk_before) {
            forward_marker(worker, hand, effects);
        }
        bool is_done = hand->mapped && hand->unconfirmed == 0;
        if (is_done) {
            acknowledge(hand->delivery, effects);
            hand_done(hand);
            continue;
        }
        chunk_before = chunk_before || hand->kind == HAND_CHUNK;
        worker->hands[kept++] = *hand;
    }
    worker->hand_count = kept;
}

/* Only of a chunk that should have been dropped. */
static bool must_wait(const struct worker *worker, const struct in_hand *hand)
{
    return worker->config.mutation == WORKER_HOLDS_CHUNK && !atomic_load(&hand->job->ended) &&
           !worker_job_can_map((const struct worker_job *)hand->job, hand->scan);
}

void worker_start_maps(struct worker *worker, struct effects *effects)
{
    uint32_t running = 0;
    bool alone = false;
    for (uint32_t i = 0; i < worker->hand_count; i++) {
        const struct in_hand *hand = &worker->hands[i];
        if (hand->kind != HAND_CHUNK || !hand->started || hand->mapped) continue;
        running++;
        alone = alone || hand->alone;
    }
    for (uint32_t i = 0; i < worker->hand_count && !alone && !worker->stopping; i++) {
        struct in_hand *hand = &worker->hands[i];
        if (hand->task == NULL || hand->started || running >= worker->config.map_limit) continue;
        if (hand->alone && running > 0) break;
        if (must_wait(worker, hand)) continue;
        effects_add(effects, EFFECT_MAP)->task = hand->task;
        hand->task = NULL;
        hand->started = true;
        running++;
        alone = hand->alone;
    }
    settle(worker, effects);
    if (!worker->stopping || worker->exited) return;
    /* What was not begun goes back to its queue when the connection ends. */
    for (uint32_t i = 0; i < worker->hand_count; i++) {
        if (worker->hands[i].started) return;
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
    effects_add(effects, EFFECT_WORK)->yes = false;
}

static void take_marker(struct worker *worker, const struct message *message, uint64_t delivery,
                        struct effects *effects)
{
    struct in_hand *hand = hand_add(worker, effects);
    if (hand == NULL) return;
    hand->kind = HAND_MARKER;
    hand->delivery = delivery;
    (void)snprintf(hand->asker, sizeof hand->asker, "%.*s", TEXT_ARGS(message->from));
    struct message forwarded = *message;
    forwarded.from = text_of(worker->name);
    forwarded.marker.returned = true;
    message_encode(&forwarded, &hand->marker);
    if (hand->marker.failed) effects->failed = true;
}

static uint32_t starts_with(const struct worker *worker, uint64_t item)
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
    const struct shape *shape = job->map.shape;
    uint32_t table = shape->plan->scans[chunk->scan].table;
    const struct manifest_table *files = shape_files(shape, table);
    struct chunk_body body = {0};
    struct error err;
    struct text name = shape->plan->tables[table].name;
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
        /* Somebody else may know it; but a job that is no more must not keep us from others. */
        bool is_new = worker->paused_for != message->manifest &&
                      !worker_has_buried(worker, message->job, message->manifest);
        worker->paused_for = message->manifest;
        if (is_new) pause_work(worker, effects);
        return false;
    }
    bool fits =
        message->manifest == job->map.shape->hash && chunk->scan < job->map.shape->plan->scan_count;
    if (!fits || job->failed) return false;
    if (starts_with(worker, item) >= WORKER_POISON_STARTS) {
        fail_poison(worker, job, chunk, effects);
        return false;
    }
    if (worker_job_can_map(job, chunk->scan)) return true;
    if (worker->config.mutation == WORKER_HOLDS_CHUNK) return true;
    effects_say(effects, SAY_DEBUG, "event=chunk-dropped job=%s scan=%u number=%llu reason=no-copy",
                job->id, chunk->scan, (unsigned long long)chunk->number);
    pause_work(worker, effects);
    return false;
}

/* The same chunk once more: sent again, or delivered again on a new connection. One answer does for
 * both; the later delivery stands for the chunk from now on. */
static bool is_in_hand(struct worker *worker, const struct worker_job *job,
                       const struct message_chunk *chunk, uint64_t delivery,
                       struct effects *effects)
{
    for (uint32_t i = 0; i < worker->hand_count; i++) {
        struct in_hand *hand = &worker->hands[i];
        if (hand->kind != HAND_CHUNK || hand->job != &job->map || hand->scan != chunk->scan ||
            hand->number != chunk->number) {
            continue;
        }
        acknowledge(hand->delivery, effects);
        hand->delivery = delivery;
        return true;
    }
    return false;
}

static void take_chunk(struct worker *worker, struct event *event, struct worker_job *job,
                       const struct message *message, uint64_t item, struct effects *effects)
{
    const struct message_chunk *chunk = &message->chunk;
    struct map_task *task = memory_alloc(NULL, sizeof *task);
    struct in_hand *hand = hand_add(worker, effects);
    if (task == NULL || hand == NULL) {
        memory_free(NULL, task, sizeof *task);
        effects->failed = true;
        return;
    }
    *task = (struct map_task){
        .id = hand->id,
        .job = map_job_keep(&job->map),
        .scan = chunk->scan,
        .number = chunk->number,
        .checksum = chunk->checksum,
        .item = item,
        .message = event->bytes,
        .body = chunk->body,
    };
    event->bytes = (struct buf){0};
    *hand = (struct in_hand){
        .kind = HAND_CHUNK,
        .id = hand->id,
        .delivery = event->delivery,
        .task = task,
        .job = map_job_keep(&job->map),
        .scan = chunk->scan,
        .number = chunk->number,
        .item = item,
        .alone = starts_with(worker, item) >= WORKER_POISON_ALONE,
    };
}

void worker_take(struct worker *worker, struct event *event, struct effects *effects)
{
    struct text bytes = {(const char *)event->bytes.bytes, (uint32_t)event->bytes.size};
    struct message message;
    struct error err;
    if (message_decode(bytes, &worker->arena, &message, &err) != STATUS_OK) {
        effects_say(effects, SAY_WARN, "event=message-ignored queue=work reason=\"%s\"", err.text);
        acknowledge(event->delivery, effects);
        return;
    }
    struct worker_job *job = worker_find(worker, message.job);
    if (message.kind == MESSAGE_MARKER) {
        take_marker(worker, &message, event->delivery, effects);
    } else if (message.kind != MESSAGE_CHUNK ||
               !accepts_chunk(worker, job, &message, message_item(bytes), effects)) {
        acknowledge(event->delivery, effects);
    } else if (!is_in_hand(worker, job, &message.chunk, event->delivery, effects)) {
        take_chunk(worker, event, job, &message, message_item(bytes), effects);
    }
    worker_start_maps(worker, effects);
}

/* ---- afterwards ---- */

static void send_outputs(struct worker *worker, struct in_hand *hand, struct map_task *task,
                         struct effects *effects)
{
    struct worker_job *job = (struct worker_job *)task->job;
    const struct manifest *manifest = &job->map.shape->manifest;
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
            (void)snprintf(effect->to, sizeof effect->to, "%.*s",
                           TEXT_ARGS(manifest->workers[i].name));
            effect->bytes = *bytes;
            *bytes = (struct buf){0};
            effect->token = token_for(worker, hand->id, effects);
            hand->unconfirmed++;
        }
    }
}

void worker_mapped(struct worker *worker, struct event *event, struct effects *effects)
{
    struct map_task *task = event->task;
    struct in_hand *hand = hand_find(worker, task->id);
    event->task = NULL;
    if (hand != NULL) {
        struct worker_job *job = (struct worker_job *)task->job;
        hand->mapped = true;
        bool is_wanted = !atomic_load(&job->map.ended) && !job->failed;
        if (task->is_damaged) {
            effects_say(effects, SAY_WARN,
                        "event=message-ignored queue=work job=%s scan=%u number=%llu reason=\"the "
                        "chunk is not what its checksum says\"",
                        job->id, task->scan, (unsigned long long)task->number);
        } else if (is_wanted && task->result != STATUS_OK) {
            worker_job_fail(job, &task->error, effects);
        } else if (is_wanted) {
            send_outputs(worker, hand, task, effects);
        }
    }
    map_task_destroy(task);
    worker_start_maps(worker, effects);
}

void worker_confirmed(struct worker *worker, uint64_t token, struct effects *effects)
{
    for (uint32_t i = 0; i < worker->token_count; i++) {
        if (worker->tokens[i].token != token) continue;
        struct in_hand *hand = hand_find(worker, worker->tokens[i].hand);
        if (hand != NULL && hand->unconfirmed > 0) hand->unconfirmed--;
        worker->tokens[i] = worker->tokens[--worker->token_count];
        break;
    }
    worker_start_maps(worker, effects);
}
