/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_lists.c - all jobs and all nodes: asked of every worker, since no gateway knows them all.
 *
 * A worker that has not answered in the time of a round is listed as silent. A list is never
 * refused because a node is missing: that is when people need it.
 */
#include "cluster/role/gateway/gateway_parts.h"

#include <stdio.h>

/* There is nothing left to wait for. */
static bool is_complete(const struct gateway *gateway, struct gateway_request *request)
{
    const struct gateway_membership *membership = &gateway->membership;
    for (uint32_t i = 0; i < gateway->config.worker_count; i++) {
        if (!gateway_list_of(request)->workers[i].answered) return false;
    }
    if (request->kind != API_NODES || !membership->is_measuring) return true;
    return gateway->now_ms - request->arrived_ms >= GATEWAY_MEASURE_MS;
}

/* Measured only for a list of nodes, and once for many that come together. */
static void measure(struct gateway *gateway)
{
    struct gateway_membership *membership = &gateway->membership;
    if (!gateway->config.measures_queues) return;
    uint64_t now_ms = gateway->now_ms;
    bool is_asked =
        membership->is_measuring && now_ms - membership->measuring_ms < GATEWAY_MEASURED_MS;
    bool is_known =
        membership->is_measured && now_ms - membership->measured_ms < GATEWAY_MEASURED_MS;
    if (is_asked || is_known) return;
    membership->is_measuring = true;
    membership->measuring_ms = now_ms;
    effects_add(gateway->effects, EFFECT_MEASURE);
}

void gateway_list_begin(struct gateway *gateway, struct gateway_request *request)
{
    uint32_t worker_count = gateway->config.worker_count;
    request->wait = WAIT_LIST;
    request->number = gateway_next_number(gateway);
    request->deadline_ms = gateway->now_ms + gateway->config.sync_deadline_ms;
    struct gateway_list *list = gateway_list_of(request);
    list->workers = arena_array(&request->arena, struct gateway_listed, worker_count);
    if (list->workers == NULL || !gateway->connected) {
        gateway_list_reply(gateway, request);
        return;
    }
    bool is_one = request->kind == API_TIMELINE;
    struct message message = gateway_message(
        gateway, MESSAGE_LIST, is_one ? text_of(request->job_id) : TEXT_LITERAL(MESSAGE_NO_JOB), 0);
    message.list.request = request->number;
    gateway_send_all(gateway, &message, 0);
    if (request->kind == API_NODES) measure(gateway);
}

/* False: out of memory. */
static bool listed_keep(struct gateway_listed *listed, const struct message_jobs *jobs,
                        struct arena *arena)
{
    struct listed_job *copies = arena_array(arena, struct listed_job, jobs->job_count + 1);
    struct milestone *milestones = arena_array(arena, struct milestone, jobs->milestone_count + 1);
    if (copies == NULL || milestones == NULL) return false;
    *listed = (struct gateway_listed){.answered = true,
                                      .uptime_ms = jobs->uptime_ms,
                                      .jobs = copies,
                                      .job_count = jobs->job_count,
                                      .milestones = milestones,
                                      .milestone_count = jobs->milestone_count};
    for (uint32_t i = 0; i < jobs->job_count; i++) {
        copies[i] = jobs->jobs[i];
        const char *name = arena_copy_string(arena, jobs->jobs[i].job);
        copies[i].job = name == NULL ? TEXT_LITERAL("?") : text_of(name);
    }
    if (jobs->milestone_count > 0) {
        memcpy(milestones, jobs->milestones, jobs->milestone_count * sizeof *milestones);
    }
    return true;
}

void gateway_list_take_jobs(struct gateway *gateway, const struct message *message)
{
    const struct message_jobs *jobs = &message->jobs;
    struct gateway_request *request = gateway_request_by_number(gateway, WAIT_LIST, jobs->request);
    uint32_t worker = gateway_worker_named(gateway, message->from);
    if (request == NULL || worker == gateway->config.worker_count) return;
    struct gateway_listed *listed = &gateway_list_of(request)->workers[worker];
    if (listed->answered || !listed_keep(listed, jobs, &request->arena)) return;
    if (is_complete(gateway, request)) gateway_list_reply(gateway, request);
}

/* Answers all lists that are complete. */
static void reply_complete(struct gateway *gateway)
{
    for (uint32_t i = 0; i < gateway->request_count;) {
        struct gateway_request *request = gateway->requests[i];
        if (request->wait == WAIT_LIST && is_complete(gateway, request)) {
            gateway_list_reply(gateway, request);
        } else {
            i++;
        }
    }
}

void gateway_list_take_measured(struct gateway *gateway, struct buf *depths)
{
    struct gateway_membership *membership = &gateway->membership;
    buf_done(&membership->queues);
    membership->queues = *depths;
    *depths = (struct buf){0};
    membership->is_measured = true;
    membership->measured_ms = gateway->now_ms;
    membership->is_measuring = false;
    reply_complete(gateway);
}

void gateway_list_tick(struct gateway *gateway)
{
    if (gateway->membership.is_measuring) reply_complete(gateway);
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

/* Names of the workers that did not answer, for people; in the scratch arena. */
static struct text names_silent(struct gateway *gateway, const struct gateway_listed *listed)
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

static void put_jobs(struct gateway *gateway, const struct gateway_listed *listed, struct buf *body)
{
    uint32_t total = 0;
    for (uint32_t i = 0; listed != NULL && i < gateway->config.worker_count; i++) {
        total += listed[i].job_count;
    }
    struct job_entry *entries = arena_array(&gateway->scratch, struct job_entry, total + 1);
    struct job_list list = {.jobs = entries, .silent = names_silent(gateway, listed)};
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

/* What a worker itself has answered. */
static void add_answer(const struct gateway *gateway, const struct gateway_listed *workers,
                       uint32_t worker, struct node_entry *entry)
{
    const struct gateway_heard *heard = &gateway->heard[worker];
    struct gateway_listed none = {0};
    const struct gateway_listed *listed = workers != NULL ? &workers[worker] : &none;
    entry->answers = listed->answered;
    entry->heard = heard->ever;
    entry->answered_ms_ago = heard->ever ? gateway->now_ms - heard->at_ms : 0;
    entry->maps = gateway->config.workers[worker].maps;
    entry->folds = gateway->config.workers[worker].folds;
    if (!listed->answered) return;
    entry->uptime_ms = listed->uptime_ms;
    entry->job_count = listed->job_count;
}

/* Without monitors a node's state is whether it answers. */
static void set_state(struct node_entry *entry)
{
    enum health state = entry->answers ? HEALTH_UP
                        : entry->heard ? HEALTH_SUSPECTED
                                       : HEALTH_UNKNOWN;
    entry->state = text_of(health_names[state]);
}

static void add_monitored(struct gateway *gateway, const struct gateway_member *monitored,
                          struct node_entry *entry)
{
    const struct monitored *node = &monitored->node;
    uint64_t since_ms = gateway->now_ms - monitored->at_ms;
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%013llu", (unsigned long long)node->incarnation);
    const char *incarnation =
        node->incarnation != 0 ? arena_copy_string(&gateway->scratch, text_of(digits)) : "";
    *entry = (struct node_entry){
        .name = text_of(node->name),
        .role = node->role,
        .answers = node->state == HEALTH_UP,
        .heard = node->incarnation != 0,
        .answered_ms_ago = node->incarnation != 0 ? node->silent_ms + since_ms : 0,
        .uptime_ms = node->uptime_ms + (node->uptime_ms > 0 ? since_ms : 0),
        .job_count = node->job_count,
        .state = text_of(health_names[node->state]),
        .incarnation = text_of(incarnation != NULL ? incarnation : ""),
        .restarts = node->restarts,
        .silent_ms = node->silent_ms + since_ms,
        .resident_bytes = node->resident_bytes,
        .problem = text_of(node->problem),
    };
}

static struct node_entry *entry_named(struct node_list *list, struct node_entry *entries,
                                      struct text name, enum node_role role)
{
    for (uint32_t i = 0; i < list->node_count; i++) {
        if (text_equal(entries[i].name, name)) return &entries[i];
    }
    struct node_entry *entry = &entries[list->node_count++];
    *entry = (struct node_entry){.name = name, .role = role};
    return entry;
}

/* By role, then w2 before w10. */
static bool entry_precedes(const struct node_entry *a, const struct node_entry *b)
{
    if (a->role != b->role) return a->role < b->role;
    if (a->name.size != b->name.size) return a->name.size < b->name.size;
    return memcmp(a->name.bytes, b->name.bytes, a->name.size) < 0;
}

static void sort_entries(struct node_entry *entries, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct node_entry entry = entries[i];
        uint32_t place = i;
        while (place > 0 && entry_precedes(&entry, &entries[place - 1])) {
            entries[place] = entries[place - 1];
            place--;
        }
        entries[place] = entry;
    }
}

/* The nodes of the monitors' view, and those of this gateway's configuration. */
static void collect_nodes(struct gateway *gateway, const struct gateway_listed *workers,
                          struct node_list *list, struct node_entry *entries)
{
    const struct gateway_config *config = &gateway->config;
    bool is_fresh = gateway_membership_is_fresh(gateway);
    for (uint32_t i = 0; i < gateway->membership.nodes.count; i++) {
        add_monitored(gateway, &gateway->membership.nodes.items[i], &entries[list->node_count]);
        if (!is_fresh) set_state(&entries[list->node_count]);
        list->node_count++;
    }
    sort_entries(entries, list->node_count);
    struct node_entry *self = entry_named(list, entries, config->name, NODE_GATEWAY);
    self->answers = true;
    self->heard = true;
    self->answered_ms_ago = 0;
    self->uptime_ms = gateway->now_ms - gateway->begun_ms;
    if (!is_fresh) set_state(self);
    for (uint32_t i = 0; i < config->worker_count; i++) {
        struct node_entry *entry = entry_named(list, entries, config->workers[i].name, NODE_WORKER);
        add_answer(gateway, workers, i, entry);
        if (!is_fresh || entry->state.size == 0) set_state(entry);
    }
}

static void add_queues(struct gateway *gateway, struct node_list *list)
{
    const struct gateway_membership *membership = &gateway->membership;
    const struct queue_depth *depths =
        (const struct queue_depth *)(const void *)membership->queues.bytes;
    uint32_t count = (uint32_t)(membership->queues.size / sizeof *depths);
    struct queue_entry *entries = arena_array(&gateway->scratch, struct queue_entry, count + 1);
    if (entries == NULL || !gateway->connected) return;
    for (uint32_t i = 0; i < count; i++) {
        entries[i] = (struct queue_entry){.name = text_of(depths[i].name),
                                          .messages = depths[i].messages,
                                          .consumers = depths[i].consumers};
    }
    list->queues = entries;
    list->queue_count = count;
}

static void put_nodes(struct gateway *gateway, const struct gateway_listed *workers,
                      struct buf *body)
{
    const struct gateway_membership *membership = &gateway->membership;
    struct node_entry *entries =
        arena_array(&gateway->scratch, struct node_entry,
                    (size_t)gateway->config.worker_count + membership->nodes.count + 2);
    if (entries == NULL) {
        gateway->effects->failed = true;
        return;
    }
    bool is_fresh = gateway_membership_is_fresh(gateway);
    struct node_list list = {
        .gateway = gateway->config.name,
        .connected = gateway->connected,
        .nodes = entries,
        .leader = is_fresh ? text_of(membership->leader) : (struct text){"", 0},
        .term = membership->term.number,
        .monitored = membership->ever,
        .monitored_ms_ago = membership->ever ? gateway->now_ms - membership->at_ms : 0,
    };
    collect_nodes(gateway, workers, &list, entries);
    add_queues(gateway, &list);
    node_list_encode(&list, body);
}

void gateway_list_reply(struct gateway *gateway, struct gateway_request *request)
{
    const struct gateway_listed *workers = gateway_list_of(request)->workers;
    struct buf body = {0};
    if (request->kind == API_TIMELINE) {
        gateway_timeline_reply(gateway, request, names_silent(gateway, workers));
        return;
    }
    if (request->kind == API_LIST_JOBS) {
        put_jobs(gateway, workers, &body);
    } else {
        put_nodes(gateway, workers, &body);
    }
    if (body.failed) gateway->effects->failed = true;
    gateway_request_reply(gateway, request, 200, "application/json", &body);
}
