/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_view.c - state and progress of a job, computed from what each worker last said.
 *
 * A view is computed anew whenever it is needed: there is no second state that could disagree with
 * the first. A worker concerned that has said nothing counts as having applied nothing.
 */
#include "cluster/role/gateway/gateway_parts.h"

#include <stdio.h>

#include "engine/base/assert.h"

/* NULL: nothing is known of it, or it does not know the job. */
static const struct gateway_peer *peer_of(const struct gateway *gateway,
                                          const struct gateway_job *job, uint32_t worker)
{
    uint32_t number = job->peer_of[worker];
    if (number == gateway->config.worker_count) return NULL;
    const struct gateway_peer *peer = &job->peers[number];
    return gateway_peer_knows(job, peer) ? peer : NULL;
}

static bool has_copies(const struct gateway_job *job, const struct gateway_peer *peer,
                       uint32_t scan)
{
    uint32_t fold_count = job->layout->plan->fold_count;
    for (uint32_t fold = 0; fold < fold_count; fold++) {
        if (!job->layout->needs[(size_t)scan * fold_count + fold]) continue;
        uint32_t i = 0;
        while (i < peer->status.copy_count && peer->status.copies[i] != fold)
            i++;
        if (i == peer->status.copy_count) return false;
    }
    return true;
}

/* Every live worker must have the job, and every live mapper also the build sides: a chunk that
 * reaches another worker is dropped and has to be sent again. */
bool gateway_job_scan_open(const struct gateway *gateway, const struct gateway_job *job,
                           uint32_t scan)
{
    bool has_mapper = false;
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        const struct gateway_peer *peer = &job->peers[i];
        if (!peer->live) continue;
        if (!gateway_peer_knows(job, peer)) return false;
        if (!gateway->config.workers[i].maps) continue;
        if (!has_copies(job, peer, scan)) return false;
        has_mapper = true;
    }
    return has_mapper;
}

struct scan_progress {
    bool known; /* All workers concerned have answered. */
    bool ended;
    uint64_t applied;
    uint64_t contiguous;
};

static struct scan_state peer_scan(const struct gateway_peer *peer, uint32_t scan)
{
    for (uint32_t i = 0; peer != NULL && i < peer->status.scan_count; i++) {
        if (peer->status.scans[i].scan == scan) return peer->status.scans[i];
    }
    return (struct scan_state){.scan = scan};
}

/* The minimum over the workers concerned. */
static struct scan_progress scan_progress_of(const struct gateway *gateway,
                                             const struct gateway_job *job, uint32_t scan)
{
    struct scan_progress progress = {.known = true, .ended = true};
    bool first = true;
    uint32_t worker_count = job->layout->manifest.worker_count;
    for (uint32_t i = 0; i < worker_count; i++) {
        if (!job->concerned[(size_t)scan * worker_count + i]) continue;
        const struct gateway_peer *peer = peer_of(gateway, job, i);
        struct scan_state state = peer_scan(peer, scan);
        if (peer == NULL || !peer->from_status) progress.known = false;
        if (!state.ended) progress.ended = false;
        if (first || state.applied < progress.applied) progress.applied = state.applied;
        if (first || state.contiguous < progress.contiguous) progress.contiguous = state.contiguous;
        first = false;
    }
    return progress;
}

/* Flow control: a client may be `window` chunks ahead of the slowest worker concerned, which bounds
 * queues and retained outputs. */
static uint64_t limit_of(const struct gateway *gateway, const struct scan_progress *progress)
{
    uint64_t limit;
    if (__builtin_add_overflow(progress->contiguous, gateway->config.window, &limit)) {
        return UINT64_MAX;
    }
    return limit;
}

bool gateway_job_scan_limit(const struct gateway *gateway, const struct gateway_job *job,
                            uint32_t scan, uint64_t *out_limit)
{
    struct scan_progress progress = scan_progress_of(gateway, job, scan);
    if (!progress.known) return false;
    *out_limit = limit_of(gateway, &progress);
    return true;
}

static const struct gateway_peer *failed_peer(const struct gateway *gateway,
                                              const struct gateway_job *job, uint32_t *out_worker)
{
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        const struct gateway_peer *peer = &job->peers[i];
        if (gateway_peer_knows(job, peer) && peer->status.state == WORKER_JOB_FAILED) {
            *out_worker = i;
            return peer;
        }
    }
    return NULL;
}

/* The first worker that was told to store the job and can't, or worker_count. */
static uint32_t refusing_worker(const struct gateway *gateway, const struct gateway_job *job)
{
    uint32_t i = 0;
    while (i < gateway->config.worker_count && !job->peers[i].is_refusing) {
        i++;
    }
    return i;
}

/* The first worker of the job that was silent for node_timeout, or worker_count. */
static uint32_t lost_worker(const struct gateway *gateway, const struct gateway_job *job)
{
    uint64_t limit_ms = gateway->config.node_timeout_ms;
    uint32_t worker_count = job->layout->manifest.worker_count;
    for (uint32_t i = 0; limit_ms != 0 && i < worker_count; i++) {
        uint32_t number = job->peer_of[i];
        if (number == gateway->config.worker_count) continue;
        const struct gateway_peer *peer = &job->peers[number];
        if (peer->is_silent && gateway->now_ms - peer->silent_since_ms >= limit_ms) return i;
    }
    return worker_count;
}

/* One failed worker fails the job; it is done when every worker is. */
enum job_state gateway_job_state_of(const struct gateway *gateway, const struct gateway_job *job)
{
    if (job->layout == NULL) return JOB_WAITING;
    uint32_t worker;
    if (failed_peer(gateway, job, &worker) != NULL) return JOB_FAILED;
    if (lost_worker(gateway, job) < job->layout->manifest.worker_count) return JOB_FAILED;
    if (refusing_worker(gateway, job) < gateway->config.worker_count) return JOB_FAILED;
    for (uint32_t i = 0; i < job->layout->manifest.worker_count; i++) {
        const struct gateway_peer *peer = peer_of(gateway, job, i);
        if (peer == NULL || peer->status.state != WORKER_JOB_COMPLETE) return JOB_RUNNING;
    }
    return JOB_DONE;
}

/* ---- the view ---- */

/* All chunks that exist are applied without a gap; before END is known, all that were sent. */
static bool scan_complete(const struct gateway_job *job, uint32_t scan,
                          const struct scan_progress *progress)
{
    const struct gateway_end *end = &job->ends[scan];
    uint64_t count = end->known ? end->count : job->sent[scan];
    return progress->ended && progress->contiguous == progress->applied &&
           progress->contiguous >= count;
}

static bool view_scans(const struct gateway *gateway, const struct gateway_job *job,
                       struct arena *arena, struct job_view *view)
{
    const struct plan *plan = job->layout->plan;
    struct view_scan *scans = arena_array(arena, struct view_scan, plan->scan_count + 1);
    if (scans == NULL) return false;
    view->phase_count = plan->phase_count;
    view->phase = plan->phase_count;
    for (uint32_t i = 0; i < plan->scan_count; i++) {
        const struct scan *scan = &plan->scans[i];
        struct scan_progress progress = scan_progress_of(gateway, job, i);
        scans[i] = (struct view_scan){
            .scan = i,
            .table = plan->tables[scan->table].name,
            .phase = scan->phase + 1,
            .open = gateway_job_scan_open(gateway, job, i),
            .ended = progress.ended,
            .sent = job->sent[i],
            .applied = progress.applied,
            .contiguous = progress.contiguous,
            .limit = limit_of(gateway, &progress),
        };
        if (view->state != JOB_DONE && !scan_complete(job, i, &progress) &&
            scan->phase + 1 < view->phase) {
            view->phase = scan->phase + 1;
        }
    }
    view->scans = scans;
    view->scan_count = plan->scan_count;
    return true;
}

static bool view_queries(const struct gateway *gateway, const struct gateway_job *job,
                         struct arena *arena, struct job_view *view)
{
    const struct plan *plan = job->layout->plan;
    struct view_query *queries = arena_array(arena, struct view_query, plan->query_count + 1);
    if (queries == NULL) return false;
    for (uint32_t i = 0; i < plan->query_count; i++) {
        queries[i].name = plan->queries[i].name;
        uint32_t owner = job_layout_owner(job->layout, plan->queries[i].result_fold, 0);
        const struct gateway_peer *peer = peer_of(gateway, job, owner);
        for (uint32_t j = 0; peer != NULL && j < peer->status.query_count; j++) {
            if (peer->status.queries[j].query != i) continue;
            queries[i].done = true;
            queries[i].batch_count = peer->status.queries[j].batch_count;
        }
    }
    view->queries = queries;
    view->query_count = plan->query_count;
    return true;
}

static bool is_held(const struct gateway_job *job, uint32_t scan, uint64_t number)
{
    for (uint32_t round = 0; round < 2; round++) {
        const struct buf *list = &job->held[round];
        const struct chunk_held *held = (const struct chunk_held *)(const void *)list->bytes;
        for (size_t i = 0; i < list->size / sizeof *held; i++) {
            if (held[i].scan == scan && held[i].number == number) return true;
        }
    }
    return false;
}

/* A re-request is passed on to the client in the third round that has it. When the first one ended,
 * the chunk was on no queue any more: a mapper had it in flight, had published its output, or it
 * was lost. A mapper that does not hold it in the second round has published its output before; so
 * that is applied before the third round is answered, and no longer re-requested, unless it was
 * lost. */
enum { REREQUEST_ROUNDS = 3 };

static bool add_rerequests(const struct gateway_job *job, const struct rerequest *rerequest,
                           struct text worker, struct arena *arena, struct job_view *view,
                           struct view_rerequest *rerequests)
{
    uint64_t *numbers = arena_array(arena, uint64_t, rerequest->number_count + 1);
    if (numbers == NULL) return false;
    uint32_t count = 0;
    for (uint32_t i = 0; i < rerequest->number_count; i++) {
        if (!is_held(job, rerequest->scan, rerequest->numbers[i]))
            numbers[count++] = rerequest->numbers[i];
    }
    if (count == 0) return true;
    rerequests[view->rerequest_count] =
        (struct view_rerequest){.worker = worker, .rerequest = *rerequest};
    rerequests[view->rerequest_count].rerequest.numbers = numbers;
    rerequests[view->rerequest_count++].rerequest.number_count = count;
    return true;
}

/* Only of live workers: a dead one re-requests anew when it is back. */
static bool view_rerequests(const struct gateway *gateway, const struct gateway_job *job,
                            struct arena *arena, struct job_view *view)
{
    size_t count = 0;
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        const struct gateway_peer *peer = &job->peers[i];
        if (peer->live && gateway_peer_knows(job, peer)) count += peer->status.rerequest_count;
    }
    struct view_rerequest *rerequests = arena_array(arena, struct view_rerequest, count + 1);
    if (rerequests == NULL) return false;
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        const struct gateway_peer *peer = &job->peers[i];
        if (!peer->live || !gateway_peer_knows(job, peer)) continue;
        for (uint32_t j = 0; j < peer->status.rerequest_count; j++) {
            const struct rerequest *rerequest = &peer->status.rerequests[j];
            uint32_t scan_count = job->layout->plan->scan_count;
            if (rerequest->scan >= scan_count) continue;
            const struct gateway_rerequest *rerequested =
                &job->rerequested[(size_t)i * scan_count + rerequest->scan];
            if (rerequested->rounds < REREQUEST_ROUNDS) continue;
            if (!add_rerequests(job, rerequest, gateway->config.workers[i].name, arena, view,
                                rerequests)) {
                return false;
            }
        }
    }
    view->rerequests = rerequests;
    return true;
}

static bool view_workers(const struct gateway *gateway, const struct gateway_job *job,
                         struct arena *arena, struct job_view *view)
{
    const struct manifest *manifest = &job->layout->manifest;
    char *silent = arena_alloc(arena, (size_t)manifest->worker_count * (MANIFEST_NAME_MAX + 2), 1);
    if (silent == NULL) return false;
    uint32_t size = 0;
    for (uint32_t i = 0; i < manifest->worker_count; i++) {
        uint32_t number = job->peer_of[i];
        if (number < gateway->config.worker_count && job->peers[number].live) {
            view->workers_answering++;
            continue;
        }
        if (size > 0) {
            memcpy(silent + size, ", ", 2);
            size += 2;
        }
        ASSERT(manifest->workers[i].name.size <= MANIFEST_NAME_MAX);
        memcpy(silent + size, manifest->workers[i].name.bytes, manifest->workers[i].name.size);
        size += manifest->workers[i].name.size;
    }
    view->worker_count = manifest->worker_count;
    view->silent = (struct text){silent, size};
    return true;
}

static bool view_failure(const struct gateway *gateway, const struct gateway_job *job,
                         struct arena *arena, struct job_view *view)
{
    char text[ERROR_TEXT_SIZE]; /* Cut at its end. */
    uint32_t worker;
    const struct gateway_peer *failed = failed_peer(gateway, job, &worker);
    uint32_t lost = lost_worker(gateway, job);
    uint32_t refusing = refusing_worker(gateway, job);
    if (failed != NULL) {
        uint32_t code = failed->status.failure;
        bool is_strange = code == STATUS_OK || code > STATUS_INTERNAL;
        view->failure = is_strange ? STATUS_INTERNAL : (status)code;
        /* A fault of the data or the query is the same at every worker: no need to name one. */
        bool is_nodes = view->failure == STATUS_INTERNAL || view->failure == STATUS_IO ||
                        view->failure == STATUS_MEMORY || view->failure == STATUS_CORRUPT;
        struct text name = is_nodes ? gateway->config.workers[worker].name : (struct text){"", 0};
        (void)snprintf(text, sizeof text, "%.*s%s%.*s", TEXT_ARGS(name), is_nodes ? ": " : "",
                       TEXT_ARGS(failed->status.text));
    } else if (refusing < gateway->config.worker_count) {
        view->failure = STATUS_USAGE;
        (void)snprintf(text, sizeof text, "worker %.*s can't take part: %s",
                       TEXT_ARGS(gateway->config.workers[refusing].name),
                       job->peers[refusing].refusal);
    } else if (lost < job->layout->manifest.worker_count) {
        view->failure = STATUS_IO;
        (void)snprintf(text, sizeof text,
                       "worker %.*s has not answered for %u s: start it again, then submit anew",
                       TEXT_ARGS(job->layout->manifest.workers[lost].name),
                       gateway->config.node_timeout_ms / 1000);
    } else {
        return true;
    }
    const char *copy = arena_copy_string(arena, text_of(text));
    if (copy == NULL) return false;
    view->text = text_of(copy);
    return true;
}

bool gateway_job_view_make(struct gateway *gateway, const struct gateway_job *job,
                           enum gateway_reader reader, struct job_view *out)
{
    ASSERT(job->layout != NULL);
    struct arena *arena = &gateway->scratch;
    *out = (struct job_view){
        .job = text_of(job->id),
        .state = gateway_job_state_of(gateway, job),
        .manifest = job->layout->hash,
    };
    return view_scans(gateway, job, arena, out) && view_queries(gateway, job, arena, out) &&
           (reader == READER_OTHER || view_rerequests(gateway, job, arena, out)) &&
           view_workers(gateway, job, arena, out) && view_failure(gateway, job, arena, out);
}
