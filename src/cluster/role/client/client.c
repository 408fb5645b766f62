/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - the job as its client sees it: submitted, followed until it is done, deleted.
 *
 * The view that a gateway gives of the job drives everything. One request for it is always in
 * flight, which also renews the lease of the job. A job that no worker knows is submitted again:
 * the chunks count as sent, and the workers request those that they lack.
 */
#include "cluster/role/client/client.h"

#include <inttypes.h>
#include <stdio.h>

#include "engine/base/assert.h"
#include "cluster/role/client/client_state.h"

enum {
    SLOTS_AHEAD = 2,     /* Chunks in memory that are not in flight. */
    CONTROL_CALLS = 4,   /* Requests in flight beside chunks and ends. */
    VIEW_PERIOD_MS = 20, /* Between two questions for the view, at least. */
    LEAVE_MS = 3000,
    LEAVE_WELL_MS = 10000,
    DELETE_TRIES = 4, /* Without an answer in flight; then the leases clean up. */
    DEFAULT_SLOT_WAIT_MS = 1000
};

/* ---- stages ---- */

static void client_move(struct client *client, enum client_stage to)
{
    static const bool allowed[STAGES][STAGES] = {
        [STAGE_NEW] = {[STAGE_ASKING] = true, [STAGE_ENDED] = true},
        [STAGE_ASKING] = {[STAGE_WORKING] = true, [STAGE_LEAVING] = true, [STAGE_ENDED] = true},
        [STAGE_WORKING] = {[STAGE_ASKING] = true, [STAGE_LEAVING] = true, [STAGE_ENDED] = true},
        [STAGE_LEAVING] = {[STAGE_ENDED] = true},
    };
    ASSERT(allowed[client->stage][to]);
    client->stage = to;
}

static void progress_tell(struct client *client, struct effects *effects)
{
    struct client_progress now = {
        .resent_chunks = client->resent_count,
        .phase = client->phase,
        .phase_count = client->phase_count,
    };
    for (uint32_t i = 0; i < client->config.plan->scan_count; i++) {
        now.sent_chunks += client->scans[i].accepted_count;
        now.applied_chunks += client->scans[i].applied;
    }
    if (client->has_state) {
        (void)snprintf(now.state, sizeof now.state, "%s",
                       job_state_names[client->job_state]); /* Fits. */
    }
    const struct client_progress *told = &client->told;
    bool is_same = now.sent_chunks == told->sent_chunks &&
                   now.applied_chunks == told->applied_chunks &&
                   now.resent_chunks == told->resent_chunks && now.phase == told->phase &&
                   now.phase_count == told->phase_count && strcmp(now.state, told->state) == 0;
    if (is_same) return;
    client->told = now;
    effects_add(effects, EFFECT_PROGRESS)->progress = now;
}

void client_end(struct client *client, const struct error *outcome, struct effects *effects)
{
    progress_tell(client, effects);
    client_move(client, STAGE_ENDED);
    struct error *copy = arena_new(&effects->arena, struct error);
    if (copy == NULL) {
        effects->failed = true;
        return;
    }
    *copy = *outcome;
    effects_add(effects, EFFECT_DONE)->outcome = copy;
}

void client_leave(struct client *client, const struct error *outcome)
{
    if (client->stage == STAGE_LEAVING) return; /* The first reason counts. */
    client_move(client, STAGE_LEAVING);
    client->outcome = *outcome;
    client->leaving_since_ms = client->now_ms;
    client_pause_end(client, PAUSE_JOB);
    for (uint32_t i = 0; i < client->call_capacity; i++) {
        client->calls[i].id = 0;
    }
}

void client_ask_again(struct client *client, struct effects *effects)
{
    if (client->stage != STAGE_WORKING) return;
    effects_say(effects, SAY_WARN, "job=%.*s lost=\"the cluster does not know it; asking again\"",
                TEXT_ARGS(client->config.job));
    client_move(client, STAGE_ASKING);
    client_call_forget(client, API_GET_JOB);
    client_call_forget(client, API_GET_RESULT);
    client_pause_longer(client, PAUSE_JOB, 0);
}

static void client_cancel(struct client *client, struct effects *effects)
{
    struct error err;
    error_write(&err, STATUS_CANCELLED, "cancelled");
    if (client->stage == STAGE_LEAVING) {
        client_end(client, &client->outcome, effects);
    } else if (client->stage == STAGE_NEW) {
        client_end(client, &err, effects);
    } else {
        client_leave(client, &err);
    }
}

/* ---- asking ---- */

static void job_ask(struct client *client, struct effects *effects)
{
    if (client_call_find(client, API_PUT_JOB) != NULL) return;
    if (!client_pause_over(client, PAUSE_JOB)) return;
    struct buf body = {0};
    struct error err;
    if (job_request_encode(client->config.request, &body, &err) != STATUS_OK) {
        buf_done(&body);
        client_end(client, &err, effects);
        return;
    }
    client_call_make(client, API_PUT_JOB, 0, effects)->request.body = body;
}

static void job_accepted(struct client *client)
{
    client_move(client, STAGE_WORKING);
    client->acceptance++;
    client->next_view_ms = 0;
    client->job_state = JOB_ACCEPTED;
    client->has_state = true;
    client->view_hash = 0;
    client_pause_end(client, PAUSE_JOB);
    client_scans_forget(client);
    client_results_forget(client);
}

static void job_replied(struct client *client, const struct api_reply *reply,
                        struct effects *effects)
{
    if (reply == NULL) {
        client_pause_longer(client, PAUSE_JOB, 0);
    } else if (reply->status / 100 == 2) {
        job_accepted(client);
    } else if (reply->status == 429) {
        /* All slots are taken. That is no failure: the back-off starts anew, and never ends it. */
        client->job_state = JOB_WAITING;
        client->has_state = true;
        uint32_t wait_ms = reply->retry_after_ms;
        client_pause_end(client, PAUSE_JOB);
        client_pause_longer(client, PAUSE_JOB, wait_ms != 0 ? wait_ms : DEFAULT_SLOT_WAIT_MS);
    } else {
        struct error err;
        api_reply_error_text(reply, &err);
        client_end(client, &err, effects);
    }
}

/* ---- views ---- */

static void view_ask(struct client *client, struct effects *effects)
{
    if (client_call_find(client, API_GET_JOB) != NULL) return;
    if (client->now_ms < client->next_view_ms || !client_pause_over(client, PAUSE_JOB)) return;
    uint32_t scan_count = client->config.plan->scan_count;
    struct scan_sent *sent = arena_array(&effects->arena, struct scan_sent, scan_count);
    if (sent == NULL) {
        effects->failed = true;
        return;
    }
    for (uint32_t i = 0; i < scan_count; i++) {
        sent[i] = (struct scan_sent){.scan = i, .count = client->scans[i].sent};
    }
    client->next_view_ms = client->now_ms + VIEW_PERIOD_MS;
    struct effect *effect = client_call_make(client, API_GET_JOB, 0, effects);
    effect->request.api.sent = sent;
    effect->request.api.sent_count = scan_count;
    effect->request.api.wait_ms = client->config.wait_ms;
    /* Only we know what has come: an answer may get lost, or another gateway may be asked next. */
    effect->request.api.has_seen = true;
    effect->request.api.seen = client->view_hash;
}

static void job_failed(struct client *client, const struct job_view *view)
{
    struct error err;
    status code = view->failure != STATUS_OK ? view->failure : STATUS_INTERNAL;
    if (view->text.size > 0) {
        error_write(&err, code, "%.*s", TEXT_ARGS(view->text));
    } else {
        error_write(&err, code, "the job failed, and no worker said why");
    }
    client_leave(client, &err);
}

static void view_take(struct client *client, const struct job_view *view, struct effects *effects)
{
    client->job_state = view->state;
    client->phase = view->phase;
    client->phase_count = view->phase_count;
    if (view->state == JOB_FAILED) {
        job_failed(client, view);
    } else if (view->state == JOB_CANCELLED) {
        struct error err;
        error_write(&err, STATUS_CANCELLED, "job %.*s was cancelled",
                    TEXT_ARGS(client->config.job));
        client_end(client, &err, effects);
    } else if (view->state == JOB_EXPIRED) {
        client_ask_again(client, effects);
    } else {
        client_scans_view(client, view);
        client_results_view(client, view);
    }
}

static void view_replied(struct client *client, const struct client_call *call,
                         const struct api_reply *reply, struct effects *effects)
{
    struct error err;
    struct job_view view;
    if (reply == NULL || reply->status == 429) {
        client_pause_longer(client, PAUSE_JOB, reply != NULL ? reply->retry_after_ms : 0);
        return;
    }
    if (reply->status == 404) {
        client_ask_again(client, effects);
        return;
    }
    if (reply->status != 200) {
        api_reply_error_text(reply, &err);
        client_end(client, &err, effects);
        return;
    }
    uint32_t size = reply->body.size < UINT32_MAX ? (uint32_t)reply->body.size : UINT32_MAX;
    struct text json = {(const char *)reply->body.bytes, size};
    if (job_view_decode(json, &client->scratch, &view, &err) != STATUS_OK) {
        client_gateway_failed(client, call, &err, effects);
        client_pause_longer(client, PAUSE_JOB, 0);
        return;
    }
    client_pause_end(client, PAUSE_JOB);
    client->view_hash = hash_bytes(json.bytes, json.size);
    view_take(client, &view, effects);
}

/* ---- leaving ---- */

static void job_delete(struct client *client, struct effects *effects)
{
    if (client_call_find(client, API_DELETE_JOB) != NULL) return;
    if (!client_pause_over(client, PAUSE_JOB)) return;
    client->delete_count++;
    (void)client_call_make(client, API_DELETE_JOB, 0, effects); /* Nothing to add. */
}

static void delete_replied(struct client *client, const struct api_reply *reply,
                           struct effects *effects)
{
    /* With an answer in flight there is time to clean up; a lease does it in the end. */
    uint64_t since_ms = client->now_ms - client->leaving_since_ms;
    bool is_given_up = client->outcome.code == STATUS_OK ? since_ms >= client->config.retry_for_ms
                                                         : client->delete_count >= DELETE_TRIES;
    if (reply == NULL && !is_given_up) {
        client_pause_longer(client, PAUSE_JOB, 0);
    } else {
        client_end(client, &client->outcome, effects);
    }
}

/* ---- steps ---- */

/* `reply` NULL: the request has failed, and this was counted against its gateway. */
static void call_replied(struct client *client, const struct client_call *call,
                         const struct api_reply *reply, struct effects *effects)
{
    switch (call->kind) {
    case API_PUT_JOB:
        job_replied(client, reply, effects);
        return;
    case API_PUT_CHUNK:
        client_chunk_replied(client, call, reply, effects);
        return;
    case API_PUT_END:
        client_end_replied(client, call, reply, effects);
        return;
    case API_GET_JOB:
        view_replied(client, call, reply, effects);
        return;
    case API_GET_RESULT:
        client_result_replied(client, call, reply, effects);
        return;
    case API_DELETE_JOB:
        delete_replied(client, reply, effects);
        return;
    default:
        ASSERT(false);
    }
}

static void client_replied(struct client *client, const struct client_reply *event,
                           struct effects *effects)
{
    struct client_call call;
    if (!client_call_take(client, event->request_id, &call)) return; /* Late, or a second one. */
    const struct api_reply *reply = event->reply;
    bool is_useful = reply != NULL && reply->status >= 200 && reply->status < 500;
    if (is_useful) {
        client_gateway_answered(client);
        call_replied(client, &call, reply, effects);
        return;
    }
    struct error err;
    if (reply != NULL) {
        api_reply_error_text(reply, &err);
    } else if (event->error != NULL) {
        err = *event->error;
    } else {
        error_write(&err, STATUS_IO, "gateway %u could not be reached", call.gateway + 1);
    }
    client_gateway_failed(client, &call, &err, effects);
    call_replied(client, &call, NULL, effects);
}

static void calls_expire(struct client *client, struct effects *effects)
{
    uint64_t id;
    struct client_call call;
    struct error err;
    while (client->stage != STAGE_ENDED && client_call_overdue(client, &id)) {
        bool taken = client_call_take(client, id, &call);
        ASSERT(taken);
        error_write(&err, STATUS_IO, "gateway %u did not answer in time", call.gateway + 1);
        client_gateway_failed(client, &call, &err, effects);
        call_replied(client, &call, NULL, effects);
    }
}

static void client_give_up(struct client *client, struct effects *effects)
{
    /* Nobody wants to wait for a cluster that can't even be told to forget the job. */
    bool is_late = client->stage == STAGE_LEAVING &&
                   client->now_ms - client->leaving_since_ms >=
                       (client->outcome.code == STATUS_OK ? LEAVE_WELL_MS : LEAVE_MS);
    if (is_late) {
        client_end(client, &client->outcome, effects);
        return;
    }
    uint64_t since_ms = client->now_ms - client->failing_since_ms;
    bool is_hopeless = client->is_failing && since_ms >= client->config.retry_for_ms &&
                       (client->stage == STAGE_ASKING || client->stage == STAGE_WORKING);
    if (!is_hopeless) return;
    struct error err;
    error_write(&err, STATUS_UNREACHABLE,
                "the cluster could not be used for %" PRIu64 " s: %.1000s", since_ms / 1000 + 1,
                client->last_error.text);
    client_end(client, &err, effects);
}

static void client_drive(struct client *client, struct effects *effects)
{
    if (client->stage == STAGE_WORKING) {
        client_scans_drive(client, effects);
        client_results_drive(client, effects);
        view_ask(client, effects);
    }
    if (client->stage == STAGE_WORKING && client_results_complete(client)) {
        struct error well = {.code = STATUS_OK};
        client_leave(client, &well);
    }
    if (client->stage == STAGE_ASKING) job_ask(client, effects);
    if (client->stage == STAGE_LEAVING) job_delete(client, effects);
}

void client_step(struct client *client, struct client_event *event, struct effects *effects)
{
    if (client->stage == STAGE_ENDED) return;
    arena_reset(&client->scratch);
    if (event->now_ms > client->now_ms) client->now_ms = event->now_ms;
    switch (event->kind) {
    case CLIENT_STARTED:
        if (client->stage == STAGE_NEW) client_move(client, STAGE_ASKING);
        break;
    case CLIENT_REPLY:
        client_replied(client, &event->reply, effects);
        break;
    case CLIENT_READ:
        client_chunk_read(client, &event->read);
        break;
    case CLIENT_TICK:
        break;
    case CLIENT_CANCEL:
        client_cancel(client, effects);
        break;
    }
    calls_expire(client, effects);
    client_give_up(client, effects);
    if (client->stage == STAGE_ENDED) return;
    client_drive(client, effects);
    if (client->stage != STAGE_ENDED) progress_tell(client, effects);
}

/* ---- incarnation ---- */

status client_create(const struct client_config *config, struct client **out, struct error *err)
{
    ASSERT(config->gateway_count > 0);
    ASSERT(config->put_limit > 0);
    ASSERT(config->wait_ms <= API_WAIT_MAX_S * 1000);
    const struct plan *plan = config->plan;
    if (plan->scan_count > API_SENT_MAX) {
        return error_set(err, STATUS_LIMIT,
                         "the queries read files %u times; a cluster can do %d: ask for fewer "
                         "queries at once",
                         plan->scan_count, API_SENT_MAX);
    }
    struct client *client = memory_alloc(NULL, sizeof *client);
    if (client == NULL) return error_memory(err);
    *client = (struct client){
        .config = *config,
        .random = {config->seed},
        .slot_count = config->put_limit + SLOTS_AHEAD,
        .call_capacity = config->put_limit + plan->scan_count + CONTROL_CALLS,
    };
    client->gateway = random_below(&client->random, config->gateway_count);
    struct arena *arena = &client->arena;
    client->scans = arena_array(arena, struct client_scan, plan->scan_count + 1);
    client->slots = arena_array(arena, struct chunk_slot, client->slot_count);
    client->calls = arena_array(arena, struct client_call, client->call_capacity);
    client->queries = arena_array(arena, struct client_query, plan->query_count + 1);
    if (client->scans == NULL || client->slots == NULL || client->calls == NULL ||
        client->queries == NULL) {
        client_destroy(client);
        return error_memory(err);
    }
    *out = client;
    return STATUS_OK;
}

void client_destroy(struct client *client)
{
    if (client == NULL) return;
    client_scans_done(client);
    arena_done(&client->scratch);
    arena_done(&client->arena);
    memory_free(NULL, client, sizeof *client);
}
