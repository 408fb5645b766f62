/* SPDX-License-Identifier: Apache-2.0 */
/* sim.c - one run: sets the cluster up, runs it to its end, and checks the promises. */
#include "cluster/sim/jobs/sim.h"

#include <stdio.h>

#include "engine/base/memory.h"
#include "cluster/sim/jobs/cluster.h"

enum {
    CHECK_MS = 250,
    OBSERVE_MS = 2000,
    RUSH_MS = 1000,         /* Until all nodes are there. */
    CLEAN_LIMIT_MS = 60000, /* After all clients have ended, until no job is left: two leases. */
    STEPS_MAX = 2000000
};

const char *const sim_profile_names[SIM_PROFILES] = {
    [SIM_MIXED] = "mixed",
    [SIM_CALM] = "calm",
    [SIM_SLOW_MAPS] = "slow-maps",
    [SIM_FULL_QUEUES] = "full-queues",
    [SIM_WORKER_DEATH] = "worker-death",
    [SIM_GATEWAY_DEATH] = "gateway-death",
    [SIM_BROKER_DEATH] = "broker-death",
    [SIM_PAUSE] = "pause",
    [SIM_LOST_DISK] = "lost-disk",
};

#if FAULT_INJECTION
const char *const sim_mutation_names[SIM_MUTATIONS] = {
    [WORKER_AS_IT_SHOULD] = "none",           [WORKER_APPLIES_TWICE] = "applies-twice",
    [WORKER_COUNTS_WRONG] = "counts-wrong",   [WORKER_FORGETS_END] = "forgets-end",
    [WORKER_IGNORES_SENT] = "ignores-sent",   [WORKER_USES_HALF_COPY] = "uses-half-copy",
    [WORKER_HOLDS_CHUNK] = "holds-chunk",     [WORKER_HAS_NO_LEASE] = "has-no-lease",
    [WORKER_NEVER_DOUBLES] = "never-doubles", [WORKER_SENDS_ONE_BARRIER] = "sends-one-barrier",
};
#endif

/* ---- what HTTP brings ---- */

static bool deliver_to_gateway(void *context, uint32_t gateway, struct event *event)
{
    struct cluster *cluster = context;
    struct sim_node *node = &cluster->nodes[gateway];
    bool is_up = node->is_up;
    sim_node_push(node, event);
    return is_up;
}

static void gateway_answered(void *context, const struct sim_call *call)
{
    struct cluster *cluster = context;
    world_trace(&cluster->world, "http: %s answers %.*s %.*s with %u",
                cluster->nodes[call->gateway].name, TEXT_ARGS(call->line.method),
                TEXT_ARGS(call->line.target), call->reply.status);
    rules_reply(cluster, call->sender, &call->request, &call->reply);
    if (call->sender == SIM_HTTP_ADVERSARY) {
        sim_adversary_reply(&cluster->adversary, call->request_id, &call->request,
                            call->reply.status);
    }
}

static void check_observer(struct cluster *cluster, const struct sim_call *call)
{
    uint32_t code = call->reply.status;
    bool is_fine = call->failed || code == 200 || code == 204 || code == 404 || code == 503;
    /* A client that deletes its job and submits another one of the name may be overtaken by it. */
    if (code == 403 && call->request.has_owner) is_fine = true;
    if (!is_fine) world_fail(&cluster->world, "an observer was answered with %u", code);
}

static void call_returned(void *context, struct sim_call *call)
{
    struct cluster *cluster = context;
    if (call->sender == SIM_HTTP_OBSERVER) check_observer(cluster, call);
    if (call->sender >= CLUSTER_CLIENTS_MAX) return;
    struct sim_client *client = &cluster->clients[call->sender];
    if (!call->failed) rules_heard(client, call->request.kind, call->reply.status);
    sim_client_reply(client, call->request_id, call->failed ? NULL : &call->reply);
}

/* ---- setting up ---- */

static void start_node_timer(void *context, uint64_t number)
{
    struct cluster *cluster = context;
    if (!cluster->nodes[number].is_up) sim_node_start(&cluster->nodes[number]);
}

static void start_client_timer(void *context, uint64_t number)
{
    struct cluster *cluster = context;
    if (!cluster->clients[number].has_begun) sim_client_start(&cluster->clients[number]);
}

static void set_up_nodes(struct cluster *cluster)
{
    const struct cluster_settings *settings = &cluster->settings;
    cluster->node_count = settings->gateway_count + settings->worker_count;
    cluster->net.node_count = cluster->node_count;
    cluster->http.loss_per_mille = settings->http_loss;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        sim_node_init(cluster, &cluster->nodes[i], i);
        world_after(&cluster->world, world_below(&cluster->world, 100), start_node_timer, cluster,
                    i);
    }
    for (uint32_t i = 0; i < settings->worker_count; i++) {
        struct sim_node *node = &cluster->nodes[settings->gateway_count + i];
        cluster->workers[i].name = text_of(node->name);
        node->maps = cluster->workers[i].maps;
        node->folds = cluster->workers[i].folds;
    }
}

static void set_up_clients(struct cluster *cluster)
{
    const struct cluster_settings *settings = &cluster->settings;
    const struct scenarios *scenarios = cluster->scenarios;
    struct world *world = &cluster->world;
    for (uint32_t i = 0; i < settings->client_count; i++) {
        uint32_t chosen = world_below(world, scenarios->healthy_count);
        if (i == 0 && settings->has_poison) chosen = scenarios->count - 1;
        sim_client_init(cluster, &cluster->clients[i], i, &scenarios->items[chosen]);
        uint64_t first_ms = settings->has_rush ? RUSH_MS : 0;
        world_after(world, first_ms + world_between(world, 0, settings->client_start_ms),
                    start_client_timer, cluster, i);
    }
    if (settings->has_full_disk) {
        uint32_t worker = world_below(world, settings->worker_count);
        struct sim_disk *disk = &cluster->nodes[settings->gateway_count + worker].disk;
        disk->full_code = world_chance(world, 500) ? STATUS_LIMIT : STATUS_IO;
        (void)snprintf(disk->full_for, sizeof disk->full_for, "job-0-1"); /* Fits. */
    }
}

/* ---- progress ---- */

bool cluster_is_answered(const struct cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->settings.client_count; i++) {
        const struct sim_client *client = &cluster->clients[i];
        if (!client->has_ended && !client->has_gone) return false;
    }
    return true;
}

static void fail_late(struct cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->settings.client_count; i++) {
        const struct sim_client *client = &cluster->clients[i];
        if (client->has_ended || client->has_gone) continue;
        world_fail(&cluster->world, "client %u (%s) has not ended %llu s after the last fault", i,
                   client->scenario->name,
                   (unsigned long long)cluster->settings.end_limit_ms / 1000);
    }
}

static void check_timer(void *context, uint64_t number)
{
    struct cluster *cluster = context;
    uint64_t now_ms = cluster->world.now_ms;
    rules_check(cluster);
    if (cluster->answered_ms == 0 && cluster_is_answered(cluster)) cluster->answered_ms = now_ms;
    if (cluster->answered_ms != 0 && cluster->faults_are_over) {
        char left[100];
        uint64_t since_ms = now_ms - cluster->answered_ms;
        cluster->is_over = checker_is_clean(cluster, left, sizeof left);
        if (!cluster->is_over && since_ms > CLEAN_LIMIT_MS &&
            now_ms > cluster->last_fault_ms + CLEAN_LIMIT_MS) {
            world_fail(&cluster->world, "%llu s after the last client ended, %s",
                       (unsigned long long)since_ms / 1000, left);
        }
    } else if (cluster->faults_are_over &&
               now_ms > cluster->last_fault_ms + cluster->settings.end_limit_ms) {
        fail_late(cluster);
    }
    world_after(&cluster->world, CHECK_MS, check_timer, cluster, number);
}

/* An observer reads jobs of others, which is allowed, and changes nothing. */
static void observe_timer(void *context, uint64_t number)
{
    struct cluster *cluster = context;
    struct world *world = &cluster->world;
    if (cluster_is_answered(cluster)) return;
    const struct sim_client *client =
        &cluster->clients[world_below(world, cluster->settings.client_count)];
    if (client->has_begun) {
        static const enum api_kind kinds[] = {API_GET_JOB, API_GET_JOB, API_LIST_JOBS,
                                              API_NODES,   API_HEALTH,  API_METRICS};
        struct api_request request = {.kind = kinds[world_below(world, 6)],
                                      .job = text_of(client->job)};
        sim_http_request(&cluster->http, SIM_HTTP_OBSERVER,
                         world_below(world, cluster->settings.gateway_count), 0, &request);
    }
    world_after(world, world_between(world, 1, OBSERVE_MS), observe_timer, cluster, number);
}

/* ---- the run ---- */

static void run(struct cluster *cluster)
{
    set_up_nodes(cluster);
    set_up_clients(cluster);
    faults_begin(cluster);
    world_after(&cluster->world, CHECK_MS, check_timer, cluster, 0);
    if (cluster->settings.has_observers) {
        world_after(&cluster->world, OBSERVE_MS, observe_timer, cluster, 0);
    }
    if (cluster->settings.has_adversary) sim_adversary_begin(cluster);
    if (cluster->settings.has_reuse) sim_echo_begin(cluster);
    world_run(&cluster->world, &cluster->is_over, STEPS_MAX);
}

static void make_report(struct cluster *cluster, struct sim_report *out)
{
    struct sim_report *report = &cluster->report;
    for (uint32_t i = 0; i < cluster->settings.client_count; i++) {
        const struct sim_client *client = &cluster->clients[i];
        if (client->scenario == NULL) continue;
        report->chunk_count += client->put_count - client->again_count;
        report->resent_count += client->again_count;
    }
    if (!cluster->world.failed) checker_proportion(cluster);
    world_report(&cluster->world, report);
    report->message_count = cluster->net.message_count;
    report->fault_count = cluster->fault_count;
    *out = *report;
}

static void tear_down(struct cluster *cluster)
{
    for (uint32_t i = 0; i < CLUSTER_CLIENTS_MAX; i++) {
        sim_client_done(&cluster->clients[i]);
    }
    for (uint32_t i = 0; i < CLUSTER_NODES_MAX; i++) {
        sim_node_done(&cluster->nodes[i]);
    }
    sim_http_done(&cluster->http);
    sim_echo_done(cluster);
    arena_done(&cluster->scratch);
    sim_net_done(&cluster->net);
    world_done(&cluster->world);
    memory_free(NULL, cluster, sizeof *cluster);
}

status sim_run_seed(const struct scenarios *scenarios, const struct sim_options *options,
                    struct sim_report *out, struct error *err)
{
    struct cluster *cluster = memory_alloc(NULL, sizeof *cluster);
    if (cluster == NULL) return error_memory(err);
    *cluster = (struct cluster){.options = options, .scenarios = scenarios};
    world_init(&cluster->world, options->seed, options->trace_fd);
    cluster->net.world = &cluster->world;
    cluster->http = (struct sim_http){.world = &cluster->world,
                                      .context = cluster,
                                      .deliver = deliver_to_gateway,
                                      .answered = gateway_answered,
                                      .returned = call_returned};
    status result = sim_net_init(&cluster->net, err);
    if (result == STATUS_OK) {
        faults_draw(cluster);
        run(cluster);
        make_report(cluster, out);
    }
    tear_down(cluster);
    return result;
}
