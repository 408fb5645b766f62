/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_rounds.c - rounds: every worker is asked what it has of a job (SYNC), and the answers
 * (STATUS) are kept.
 *
 * A job has at most one round under way. It is over when all workers have answered or when its time
 * is; then all requests that came before it began can be answered. An owner's rounds come at a
 * steady pace however often it asks, readers' rounds when there are readers; one round serves all.
 *
 * An owner's round renews the job's lease at each worker (Gray and Cheriton 1989). It also repairs:
 * a worker that does not know the job gets the manifest again. Only when every worker says so the
 * job is gone: it was deleted or its lease ran out, and only its client may begin it anew.
 */
#include "cluster/role/gateway/gateway_parts.h"

#include "engine/base/assert.h"
#include "engine/base/hash.h"

enum { PACE_PARTS = 16 }; /* Of the period: how soon a round can follow another. */

struct waiting {
    bool owner;
    bool reader;   /* Also a request that seeks the job, */
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
            /* No round is under way: one that is not over was abandoned. */
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
    struct message message = gateway_message(gateway, MESSAGE_SYNC, text_of(job->id),
                                             job->layout != NULL ? job->layout->hash : 0);
    message.sync = (struct message_sync){.request = job->round.number,
                                         .renew = job->round.renew,
                                         .needs_manifest = job->layout == NULL,
                                         .sent = sent,
                                         .sent_count = sent_count};
    gateway_send_all(gateway, &message, 0);
}

/* Requests that wait and have no round yet are served by this one: what they ask for may have
 * changed during an earlier one. */
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

/* Owners are served at the job's pace. Seekers and readers start a round at once, since no later
 * one would serve them better. */
void gateway_round_consider(struct gateway *gateway, struct gateway_job *job)
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
    } else if (waiting.newcomer || job->needs_round) {
        begin_round(gateway, job, false);
    }
}

void gateway_rounds_abandon(struct gateway *gateway)
{
    for (uint32_t i = 0; i < gateway->job_count; i++) {
        gateway->jobs[i]->round.active = false;
    }
}

/* ---- the end of a round ---- */

/* Every worker has answered, and none has the job. */
static bool no_worker_knows(const struct gateway *gateway, const struct gateway_job *job)
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

/* A worker that lost its disk comes back into the job; as an order, since it was accepted before.
 */
static void send_manifest_again(struct gateway *gateway, struct gateway_job *job)
{
    struct message message =
        gateway_message(gateway, MESSAGE_MANIFEST, text_of(job->id), job->layout->hash);
    message.store = (struct message_manifest){.order = true, .bytes = job->layout->bytes};
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        const struct gateway_peer *peer = &job->peers[i];
        if (!peer->answered || peer->status.state != WORKER_JOB_UNKNOWN) continue;
        message.store.request = gateway_next_number(gateway);
        gateway_send(gateway, gateway->config.workers[i].name, &message, 0);
        effects_say(gateway->effects, SAY_INFO, "event=manifest-again job=%s worker=%.*s", job->id,
                    TEXT_ARGS(gateway->config.workers[i].name));
    }
}

/* Counts for how many rounds each re-request stands; gateway_view.c says why. */
static void note_rerequests(const struct gateway *gateway, struct gateway_job *job)
{
    uint32_t scan_count = job->layout->plan->scan_count;
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        const struct gateway_peer *peer = &job->peers[i];
        struct gateway_rerequest *rerequested = job->rerequested + (size_t)i * scan_count;
        bool tells = peer->live && gateway_peer_knows(job, peer);
        for (uint32_t scan = 0; scan < scan_count; scan++) {
            const struct rerequest *found = NULL;
            for (uint32_t j = 0; tells && j < peer->status.rerequest_count; j++) {
                if (peer->status.rerequests[j].scan == scan) found = &peer->status.rerequests[j];
            }
            uint64_t attempt = found != NULL ? found->attempt : 0;
            bool is_same = found != NULL && rerequested[scan].attempt == attempt;
            rerequested[scan].rounds = is_same ? rerequested[scan].rounds + 1 : found != NULL;
            rerequested[scan].attempt = attempt;
        }
    }
}

/* At the end of a round: what is in flight anywhere, and what is re-requested. False: out of
 * memory. */
static bool note_round(const struct gateway *gateway, struct gateway_job *job)
{
    struct buf before = job->held[1];
    job->held[1] = job->held[0];
    job->held[0] = before;
    buf_reset(&job->held[0]);
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        const struct gateway_peer *peer = &job->peers[i];
        if (!peer->live || !gateway_peer_knows(job, peer) || peer->status.held_count == 0) continue;
        buf_put(&job->held[0], peer->status.held,
                peer->status.held_count * sizeof *peer->status.held);
    }
    note_rerequests(gateway, job);
    return !job->held[0].failed;
}

/* While there is news the next round comes soon, since a client waits for it; otherwise the pause
 * doubles, up to the period (exponential back-off). */
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

enum gateway_round_result gateway_round_end(struct gateway *gateway, struct gateway_job *job)
{
    job->round.active = false;
    job->over_number = job->round.number;
    if (no_worker_knows(gateway, job)) return ROUND_NO_JOB;
    if (job->layout == NULL) return ROUND_SEEKING;
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        struct gateway_peer *peer = &job->peers[i];
        peer->live = peer->answered;
        if (peer->answered && gateway_peer_knows(job, peer)) peer->is_refusing = false;
        if (!peer->answered && !peer->is_silent) peer->silent_since_ms = job->round.started_ms;
        peer->is_silent = !peer->answered;
    }
    job->learnt = true;
    job->learnt_ms = gateway->now_ms;
    job->needs_round = false;
    for (uint32_t i = 0; i < job->layout->plan->scan_count; i++) {
        job->taken[i] = 0;
    }
    if (!note_round(gateway, job)) gateway->effects->failed = true;
    set_pace(gateway, job);
    if (job->round.renew && job->removals == 0) send_manifest_again(gateway, job);
    return ROUND_NEWS;
}

bool gateway_round_is_late(const struct gateway *gateway, const struct gateway_job *job)
{
    uint64_t age_ms = gateway->now_ms - job->round.started_ms;
    return job->round.active && age_ms >= gateway->config.sync_deadline_ms;
}

/* ---- what workers say ---- */

/* The message was decoded into the scratch arena: both arenas change places, so nothing is copied.
 */
static void keep_status(struct gateway *gateway, struct gateway_peer *peer,
                        const struct message *message, struct buf *bytes)
{
    peer->heard = true;
    peer->from_status = true;
    peer->request = message->status.request;
    peer->manifest = message->manifest;
    peer->status = message->status;
    buf_done(&peer->bytes);
    peer->bytes = *bytes;
    *bytes = (struct buf){0};
    struct arena arena = peer->arena;
    peer->arena = gateway->scratch;
    gateway->scratch = arena;
    arena_reset(&gateway->scratch);
}

struct gateway_job *gateway_round_take_status(struct gateway *gateway,
                                              const struct message *message, struct buf *bytes)
{
    uint64_t number = message->status.request;
    uint32_t worker = gateway_worker_named(gateway, message->from);
    struct gateway_job *job = gateway_job_find(gateway, message->job);
    if (worker == gateway->config.worker_count || job == NULL) return NULL;
    if (number < gateway->first_number || number >= gateway->next_number) return NULL;
    struct gateway_peer *peer = &job->peers[worker];
    if (peer->heard && number < peer->request) return NULL;
    keep_status(gateway, peer, message, bytes);
    if (!job->round.active || number != job->round.number || peer->answered) return NULL;
    peer->answered = true;
    job->round.answered_count++;
    return job->round.answered_count == gateway->config.worker_count ? job : NULL;
}
