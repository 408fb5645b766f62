/* gateway_sync.c - rounds: every worker is asked what it has of a job, and the answers are kept.
 *
 * A job has at most one round under way. It is over when all have answered or when its time is;
 * then all who came before it began can be told. Owners' rounds come at a steady pace however often
 * they ask, readers' rounds when there are readers; one round serves all who wait.
 *
 * An owner's round also brings a worker that has lost the job back into it: whoever says that he
 * does not know it gets the manifest again. Only when everybody says so the job is gone: then it
 * was deleted, or its time was over, and only its client may begin it anew.
 */
#include "cluster/role/gateway/gateway_parts.h"

#include "engine/base/assert.h"
#include "engine/base/hash.h"

enum { PACE_PARTS = 16 }; /* Of the period: how soon a round can follow another. */

struct waiting {
    bool owner;
    bool reader;   /* Also one who seeks the job, */
    bool newcomer; /* and one of these that has not seen a whole round. */
};

static struct waiting who_waits(const struct gateway *gateway, const struct gateway_job *job)
{
    struct waiting waiting = {0};
    for (uint32_t i = 0; i < gateway->request_count; i++) {
        const struct gateway_request *request = gateway->requests[i];
        if (request->job != job) continue;
        if (request->wait == WAIT_VIEW && request->is_owner) {
            waiting.owner = true;
        } else if (request->wait == WAIT_VIEW || request->wait == WAIT_JOB) {
            waiting.reader = true;
            /* No round is under way: one that is not over was given up. */
            if (request->round == 0 || request->round > job->over_number) waiting.newcomer = true;
        }
    }
    return waiting;
}

static void send_sync(struct gateway *gateway, struct gateway_job *job)
{
    struct scan_sent *sent = NULL;
    uint32_t sent_count = 0;
    if (job->round.renew) {
        uint32_t scan_count = job->layout->plan->scan_count;
        sent = arena_array(&gateway->scratch, struct scan_sent, scan_count + 1);
        if (sent == NULL) {
            gateway->effects->failed = true;
            return;
        }
        for (uint32_t i = 0; i < scan_count; i++) {
            sent[sent_count++] = (struct scan_sent){.scan = i, .count = job->sent[i]};
        }
    }
    struct message message = {
        .kind = MESSAGE_SYNC,
        .job = text_of(job->id),
        .manifest = job->layout != NULL ? job->layout->hash : 0,
        .from = gateway->config.name,
        .sync = {.request = job->round.number,
                 .renew = job->round.renew,
                 .needs_manifest = job->layout == NULL,
                 .sent = sent,
                 .sent_count = sent_count},
    };
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        gateway_send(gateway, gateway->config.workers[i].name, &message, 0);
    }
}

static void begin_round(struct gateway *gateway, struct gateway_job *job, bool renew)
{
    job->round = (struct gateway_round){
        .active = true,
        .renew = renew,
        .number = gateway_next_number(gateway),
        .started_ms = gateway->now_ms,
    };
    if (renew) {
        job->renewed = true;
        job->renewed_ms = gateway->now_ms;
    } else if (job->layout == NULL) {
        job->sought = true;
        job->sought_ms = gateway->now_ms;
    }
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        job->peers[i].answered = false;
    }
    for (uint32_t i = 0; i < gateway->request_count; i++) {
        struct gateway_request *request = gateway->requests[i];
        bool waits = request->wait == WAIT_VIEW || request->wait == WAIT_JOB;
        if (request->job == job && waits && request->round == 0) {
            request->round = job->round.number;
        }
    }
    send_sync(gateway, job);
}

void gateway_sync_consider(struct gateway *gateway, struct gateway_job *job)
{
    if (!gateway->connected || job->round.active || job->removals > 0) return;
    struct waiting waiting = who_waits(gateway, job);
    uint32_t period_ms = gateway->config.sync_period_ms;
    if (job->layout == NULL) {
        bool due = !job->sought || gateway->now_ms - job->sought_ms >= period_ms;
        if (waiting.newcomer || (waiting.reader && due)) begin_round(gateway, job, false);
    } else if (waiting.owner) {
        bool due = !job->renewed || gateway->now_ms - job->renewed_ms >= job->pace_ms;
        if (due) begin_round(gateway, job, true);
    } else if (waiting.newcomer || job->wants_round) {
        begin_round(gateway, job, false);
    }
}

void gateway_sync_abandon(struct gateway *gateway)
{
    for (uint32_t i = 0; i < gateway->job_count; i++) {
        gateway->jobs[i]->round.active = false;
    }
}

/* ---- the end of a round ---- */

/* Everybody has answered, and nobody has the job. */
static bool nobody_knows(const struct gateway *gateway, const struct gateway_job *job)
{
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        const struct gateway_peer *peer = &job->peers[i];
        if (!peer->answered) return false;
        bool knows = job->layout != NULL ? gateway_peer_knows(job, peer)
                                         : peer->status.state != WORKER_JOB_UNKNOWN;
        if (knows) return false;
    }
    return true;
}

static void send_manifest_again(struct gateway *gateway, struct gateway_job *job)
{
    struct message message = {
        .kind = MESSAGE_MANIFEST,
        .job = text_of(job->id),
        .manifest = job->layout->hash,
        .from = gateway->config.name,
        .store = {.order = true, .bytes = job->layout->bytes},
    };
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        const struct gateway_peer *peer = &job->peers[i];
        if (!peer->answered || peer->status.state != WORKER_JOB_UNKNOWN) continue;
        message.store.request = gateway_next_number(gateway);
        gateway_send(gateway, gateway->config.workers[i].name, &message, 0);
        effects_say(gateway->effects, SAY_INFO, "event=manifest_again job=%s worker=%.*s", job->id,
                    TEXT_ARGS(gateway->config.workers[i].name));
    }
}

/* Those who came while the round was under way may speak of a job made meanwhile: they wait for the
 * next one. */
static void refuse_seekers(struct gateway *gateway, struct gateway_job *job)
{
    for (uint32_t i = 0; i < gateway->request_count;) {
        struct gateway_request *request = gateway->requests[i];
        if (request->job == job && request->wait == WAIT_JOB && request->round != 0) {
            gateway_call_no_job(gateway, request);
        } else {
            i++;
        }
    }
}

static void end_seeking(struct gateway *gateway, struct gateway_job *job)
{
    if (nobody_knows(gateway, job)) refuse_seekers(gateway, job);
    if (gateway_job_is_waited_for(gateway, job)) {
        gateway_sync_consider(gateway, job);
    } else {
        gateway_job_forget(gateway, job);
    }
}

/* While there is news the next round comes soon, since a client waits for it; otherwise ever later,
 * up to the period. */
static void set_pace(struct gateway *gateway, struct gateway_job *job)
{
    uint32_t period_ms = gateway->config.sync_period_ms;
    struct job_view view;
    struct buf bytes = {0};
    if (!gateway_job_view_make(gateway, job, READER_OWNER, &view)) {
        gateway->effects->failed = true;
        return;
    }
    job_view_encode(&view, &bytes);
    uint64_t hash = hash_bytes(bytes.bytes, bytes.size);
    bool is_news = hash != job->pace_hash;
    job->pace_hash = hash;
    job->pace_ms = is_news ? period_ms / PACE_PARTS : job->pace_ms * 2 + 1;
    if (job->pace_ms > period_ms) job->pace_ms = period_ms;
    buf_done(&bytes);
}

static void end_round(struct gateway *gateway, struct gateway_job *job)
{
    job->round.active = false;
    job->over_number = job->round.number;
    if (job->layout == NULL) {
        end_seeking(gateway, job);
        return;
    }
    if (nobody_knows(gateway, job)) {
        gateway_call_job_gone(gateway, job);
        return;
    }
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        struct gateway_peer *peer = &job->peers[i];
        peer->live = peer->answered;
        if (peer->answered && gateway_peer_knows(job, peer)) peer->is_refusing = false;
        if (!peer->answered && !peer->is_silent) peer->silent_since_ms = job->round.started_ms;
        peer->is_silent = !peer->answered;
    }
    job->learnt = true;
    job->learnt_ms = gateway->now_ms;
    job->wants_round = false;
    for (uint32_t i = 0; i < job->layout->plan->scan_count; i++) {
        job->taken[i] = 0;
    }
    if (!gateway_job_note_round(gateway, job)) gateway->effects->failed = true;
    set_pace(gateway, job);
    if (job->round.renew && job->removals == 0) send_manifest_again(gateway, job);
    gateway_call_tell(gateway, job);
    gateway_sync_consider(gateway, job);
}

void gateway_sync_tick(struct gateway *gateway)
{
    for (uint32_t i = gateway->job_count; i > 0; i--) {
        /* Backwards: the end of a round may forget the job, and the last takes its place. */
        struct gateway_job *job = gateway->jobs[i - 1];
        uint64_t age_ms = gateway->now_ms - job->round.started_ms;
        if (job->round.active && age_ms >= gateway->config.sync_deadline_ms) {
            end_round(gateway, job);
        } else {
            gateway_sync_consider(gateway, job);
        }
    }
}

/* ---- what workers say ---- */

/* The message was decoded into the scratch arena: both arenas change places, so that nothing is
 * copied. */
static void keep_status(struct gateway *gateway, struct gateway_peer *peer,
                        const struct message *message, struct event *event)
{
    peer->heard = true;
    peer->from_status = true;
    peer->request = message->status.request;
    peer->manifest = message->manifest;
    peer->status = message->status;
    buf_done(&peer->bytes);
    peer->bytes = event->bytes;
    event->bytes = (struct buf){0};
    struct arena arena = peer->arena;
    peer->arena = gateway->scratch;
    gateway->scratch = arena;
    arena_reset(&gateway->scratch);
}

void gateway_sync_take_status(struct gateway *gateway, const struct message *message,
                              struct event *event)
{
    uint64_t number = message->status.request;
    uint32_t worker = gateway_worker_named(gateway, message->from);
    struct gateway_job *job = gateway_job_find(gateway, message->job);
    if (worker == gateway->config.worker_count || job == NULL) return;
    if (number < gateway->first_number || number >= gateway->next_number) return;
    struct gateway_peer *peer = &job->peers[worker];
    if (peer->heard && number < peer->request) return;
    keep_status(gateway, peer, message, event);
    if (!job->round.active || number != job->round.number || peer->answered) return;
    peer->answered = true;
    job->round.answered_count++;
    if (job->round.answered_count == gateway->config.worker_count) end_round(gateway, job);
}

static void refuse_all_seekers(struct gateway *gateway, struct gateway_job *job,
                               const struct error *err)
{
    for (uint32_t i = 0; i < gateway->request_count;) {
        struct gateway_request *request = gateway->requests[i];
        if (request->job == job && request->wait == WAIT_JOB) {
            gateway_request_refuse_error(gateway, request, 503, err);
        } else {
            i++;
        }
    }
    effects_say(gateway->effects, SAY_WARN, "event=manifest_unusable job=%s error=\"%s\"", job->id,
                err->text);
    if (!gateway_job_is_waited_for(gateway, job)) gateway_job_forget(gateway, job);
}

void gateway_sync_take_manifest(struct gateway *gateway, const struct message *message)
{
    struct gateway_job *job = gateway_job_find(gateway, message->job);
    if (job == NULL || job->layout != NULL) return;
    struct error err;
    struct layout *layout = NULL;
    status result =
        job_layout_create(message->store.bytes, gateway->config.sentiment, &layout, &err);
    if (result == STATUS_OK &&
        (layout->hash != message->manifest || !text_equal(layout->manifest.job, message->job))) {
        job_layout_release(layout);
        result = error_set(&err, STATUS_CORRUPT, "the manifest that came is of another job");
    }
    if (result == STATUS_OK) result = gateway_job_learn(gateway, job, layout, &err);
    if (result != STATUS_OK) {
        refuse_all_seekers(gateway, job, &err);
        return;
    }
    /* The round that looked for it is of no more use: answers to it still count as news. */
    job->round.active = false;
    gateway_call_resume(gateway, job);
    gateway_sync_consider(gateway, job);
}
