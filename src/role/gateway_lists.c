/* gateway_lists.c - all jobs and all nodes: asked of every worker, since no gateway knows them all.
 *
 * Who has not answered when the time of a round is over is told as silent; a list is never refused
 * because somebody is missing: that is when people want to see it.
 */
#include "role/gateway_parts.h"

#include <stdio.h>

void gateway_list_begin(struct gateway *gateway, struct gateway_request *request)
{
    uint32_t worker_count = gateway->config.worker_count;
    request->wait = WAIT_LIST;
    request->number = gateway_next_number(gateway);
    request->deadline_ms = gateway->now_ms + gateway->config.sync_deadline_ms;
    request->listed = arena_array(&request->arena, struct gateway_listed, worker_count);
    if (request->listed == NULL || !gateway->connected) {
        gateway_list_reply(gateway, request);
        return;
    }
    struct message message = {.kind = MESSAGE_LIST,
                              .job = TEXT_LITERAL(MESSAGE_NO_JOB),
                              .from = gateway->config.name,
                              .list = {.request = request->number}};
    for (uint32_t i = 0; i < worker_count; i++) {
        gateway_send(gateway, gateway->config.workers[i].name, &message, 0);
    }
}

void gateway_list_take_jobs(struct gateway *gateway, const struct message *message)
{
    const struct message_jobs *jobs = &message->jobs;
    struct gateway_request *request = gateway_request_by_number(gateway, WAIT_LIST, jobs->request);
    uint32_t worker = gateway_worker_named(gateway, message->from);
    if (request == NULL || worker == gateway->config.worker_count) return;
    struct gateway_listed *listed = &request->listed[worker];
    struct listed_job *copies =
        arena_array(&request->arena, struct listed_job, jobs->job_count + 1);
    if (listed->answered || copies == NULL) return;
    *listed = (struct gateway_listed){.answered = true,
                                      .uptime_ms = jobs->uptime_ms,
                                      .maps = jobs->maps,
                                      .folds = jobs->folds,
                                      .jobs = copies,
                                      .job_count = jobs->job_count};
    for (uint32_t i = 0; i < jobs->job_count; i++) {
        copies[i] = jobs->jobs[i];
        const char *name = arena_copy_string(&request->arena, jobs->jobs[i].job);
        copies[i].job = name == NULL ? TEXT_LITERAL("?") : text_of(name);
    }
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        if (!request->listed[i].answered) return;
    }
    gateway_list_reply(gateway, request);
}

/* ---- jobs ---- */

static enum job_state merge_state(enum job_state state, enum worker_job_state more)
{
    if (state == JOB_FAILED || more == WORKER_JOB_FAILED) return JOB_FAILED;
    if (state == JOB_RUNNING || more == WORKER_JOB_RUNNING) return JOB_RUNNING;
    return JOB_DONE;
}

static void merge_job(struct job_entry *entries, uint32_t *count, const struct listed_job *job)
{
    uint32_t i = 0;
    while (i < *count && !text_equal(entries[i].job, job->job)) {
        i++;
    }
    struct job_entry *entry = &entries[i];
    if (i == *count) {
        *entry = (struct job_entry){.job = job->job, .state = JOB_DONE};
        (*count)++;
    }
    entry->state = merge_state(entry->state, job->state);
    if (job->age_ms > entry->age_ms) entry->age_ms = job->age_ms;
    if (job->lease_ms > entry->lease_ms) entry->lease_ms = job->lease_ms;
    entry->applied += job->applied;
    entry->worker_count++;
}

static struct text silent_workers(struct gateway *gateway, const struct gateway_listed *listed)
{
    struct buf names = {.limit = 4096};
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        if (listed != NULL && listed[i].answered) continue;
        buf_format(&names, "%s%.*s", names.size > 0 ? ", " : "",
                   TEXT_ARGS(gateway->config.workers[i].name));
    }
    struct text text = {(const char *)names.bytes, (uint32_t)names.size};
    const char *copy = text.size == 0 ? "" : arena_copy_string(&gateway->scratch, text);
    buf_done(&names);
    return copy == NULL ? (struct text){"", 0} : text_of(copy);
}

static void put_jobs(struct gateway *gateway, const struct gateway_request *request,
                     struct buf *body)
{
    const struct gateway_listed *listed = request->listed;
    uint32_t total = 0;
    for (uint32_t i = 0; listed != NULL && i < gateway->config.worker_count; i++) {
        total += listed[i].job_count;
    }
    struct job_entry *entries = arena_array(&gateway->scratch, struct job_entry, total + 1);
    struct job_list list = {.jobs = entries, .silent = silent_workers(gateway, listed)};
    if (entries == NULL) {
        gateway->effects->failed = true;
        return;
    }
    for (uint32_t i = 0; listed != NULL && i < gateway->config.worker_count; i++) {
        for (uint32_t j = 0; j < listed[i].job_count; j++) {
            merge_job(entries, &list.job_count, &listed[i].jobs[j]);
        }
    }
    job_list_encode(&list, body);
}

/* ---- nodes ---- */

static void put_nodes(struct gateway *gateway, const struct gateway_request *request,
                      struct buf *body)
{
    const struct gateway_config *config = &gateway->config;
    struct node_entry *entries =
        arena_array(&gateway->scratch, struct node_entry, config->worker_count + 2);
    if (entries == NULL) {
        gateway->effects->failed = true;
        return;
    }
    entries[0] = (struct node_entry){
        .name = config->name, .role = NODE_GATEWAY, .answers = true, .heard = true};
    for (uint32_t i = 0; i < config->worker_count; i++) {
        const struct gateway_heard *heard = &gateway->heard[i];
        struct gateway_listed none = {0};
        const struct gateway_listed *listed = request->listed != NULL ? &request->listed[i] : &none;
        entries[i + 1] = (struct node_entry){
            .name = config->workers[i].name,
            .role = NODE_WORKER,
            .answers = listed->answered,
            .heard = heard->ever,
            .answered_ms_ago = heard->ever ? gateway->now_ms - heard->at_ms : 0,
            .maps = config->workers[i].maps,
            .folds = config->workers[i].folds,
            .uptime_ms = listed->uptime_ms,
            .job_count = listed->job_count,
        };
    }
    struct node_list list = {.gateway = config->name,
                             .connected = gateway->connected,
                             .nodes = entries,
                             .node_count = config->worker_count + 1};
    node_list_encode(&list, body);
}

void gateway_list_reply(struct gateway *gateway, struct gateway_request *request)
{
    struct buf body = {0};
    if (request->kind == API_LIST_JOBS) {
        put_jobs(gateway, request, &body);
    } else {
        put_nodes(gateway, request, &body);
    }
    if (body.failed) gateway->effects->failed = true;
    gateway_request_reply(gateway, request, 200, "application/json", &body);
}
