/* SPDX-License-Identifier: Apache-2.0 */
/* faults.c - the faults of a run, drawn from its seed.
 *
 * First the size of the cluster and its latencies are drawn, then one fault after the other until
 * their time is over; from then on every node that is down restarts and no fault follows. A crash
 * is mostly planned some effects ahead, so that it falls between two effects of one step.
 */
#include "cluster/sim/jobs/cluster.h"

enum job_fault {
    FAULT_WORKER,    /* A worker crashes. */
    FAULT_GATEWAY,   /* A gateway does. */
    FAULT_DISK,      /* A worker crashes and loses its disk. */
    FAULT_BROKER,    /* The broker dies, and all queues with it. */
    FAULT_DROP,      /* A connection to the broker is lost. */
    FAULT_HALF_DROP, /* The same, and the broker does not notice for a while. */
    FAULT_PURGE,     /* A queue loses what it holds. */
    FAULT_DELETE,    /* A queue is deleted. */
    FAULT_PAUSE,     /* A node is paused (SIGSTOP). */
    FAULT_STOP,      /* A node is asked to end. */
    FAULT_CLIENT,    /* A client is killed and comes back. */
    FAULT_ALL,       /* Power failure: all nodes and the broker. */
    FAULT_SIDE,      /* One of a node's two connections is lost. */
    FAULT_ALARM,     /* The broker takes nothing for a while. */
    FAULT_LONG,      /* A node is down for longer than every timeout. */
    FAULT_KINDS
};

_Static_assert((int)FAULT_KINDS <=
                   (int)(sizeof((struct cluster_settings *)0)->fault_weights / sizeof(uint32_t)),
               "every kind has a weight");

enum {
    PAUSE_MAX_MS = 25000, /* Longer than every deadline of the roles. */
    SHORT_PAUSE_MAX_MS = 5000,
    RUSH_MS = 4000,  /* Without a fault. */
    REUSE_MS = 4000, /* Until a name is used again, */
    REUSES_MAX = 6,  /* so often at most. */
    READ_MS = 700,   /* Between two questions of a reader. */
    DOWN_MAX_MS = 4000,
    LONG_MIN_MS = 9000, /* More than the longest wait of a worker before it asks again. */
    LONG_MAX_MS = 35000,
    ALARM_MAX_MS = 20000,
    LEASE_MS = 15000,
    FAULTS_MAX = 60
};

/* ---- drawing a run ---- */

static void draw_size(struct cluster *cluster)
{
    struct world *world = &cluster->world;
    struct cluster_settings *settings = &cluster->settings;
    settings->gateway_count = world_between(world, 1, CLUSTER_GATEWAYS_MAX);
    settings->worker_count = world_between(world, 1, CLUSTER_WORKERS_MAX);
    settings->work_count = world_between(world, 1, 3);
    settings->client_count = world_between(world, 1, CLUSTER_CLIENTS_MAX);
    settings->max_jobs = world_between(world, 1, 2);
    settings->map_limit = world_between(world, 1, 4);
    settings->window = world_between(world, 4, 40);
    settings->emit_window = world_between(world, 1, 16);
    settings->put_limit = world_between(world, 1, 6);
    settings->map_ms = world_between(world, 0, 30);
    settings->turn_ms = world_below(world, 3);
    cluster->http.delay_ms = world_between(world, 1, 20);
    settings->client_timeout_ms = LEASE_MS;
    settings->client_start_ms = 3000;
    settings->spread = world_chance(world, 300);
    settings->has_observers = world_chance(world, 300);
    settings->end_limit_ms = 400000;
    struct sim_net *net = &cluster->net;
    net->work_count = settings->work_count;
    net->latency_ms = world_between(world, 0, 6);
    net->detection_ms = world_between(world, 0, 1500);
    net->limits = (struct bus_limits){.inbox_prefetch = world_between(world, 1, 64),
                                      .work_prefetch = world_between(world, 1, 8),
                                      .confirm_window = world_between(world, 1, 64),
                                      .confirm_window_bytes = 1 << 20,
                                      .deadline_ms = 5000};
}

/* Several clients submit at the same moment for the only slot; faults begin later. */
static void draw_rush(struct cluster *cluster)
{
    struct cluster_settings *settings = &cluster->settings;
    settings->has_rush = true;
    settings->client_start_ms = 3;
    settings->client_count = world_between(&cluster->world, 2, CLUSTER_CLIENTS_MAX);
    settings->max_jobs = 1;
    settings->http_loss = 0;
    cluster->net.hiccup_per_mille = 0;
}

static void draw_mixed(struct cluster *cluster)
{
    struct world *world = &cluster->world;
    struct cluster_settings *settings = &cluster->settings;
    settings->slow_per_mille = world_chance(world, 300) ? world_between(world, 1, 100) : 0;
    settings->slow_ms = 12000;
    settings->http_loss = world_chance(world, 500) ? world_between(world, 1, 150) : 0;
    settings->torn_per_mille = world_chance(world, 500) ? 300 : 0;
    settings->fault_gap_ms = world_between(world, 200, 8000);
    settings->faults_end_ms = world_between(world, 2000, 45000);
    settings->fault_limit = FAULTS_MAX;
    for (uint32_t i = 0; i < FAULT_KINDS; i++) {
        settings->fault_weights[i] = world_chance(world, 500) ? world_between(world, 1, 10) : 0;
    }
    if (world_chance(world, 500)) {
        settings->fault_weights[FAULT_LONG] = settings->fault_weights[FAULT_ALARM] = 0;
    }
    settings->has_poison = world_chance(world, 60);
    settings->has_full_disk = world_chance(world, 40);
    settings->has_vanishing = world_chance(world, 200);
    settings->has_cancel = world_chance(world, 50);
    settings->has_reader = world_chance(world, 500);
    settings->has_adversary = world_chance(world, 250);
    settings->adversary_works = world_chance(world, 500);
    settings->has_altered = !settings->has_poison && world_chance(world, 120);
    bool is_special = settings->has_poison || settings->has_full_disk || settings->has_cancel ||
                      settings->has_altered;
    bool last_is_free = !settings->has_vanishing && (!is_special || settings->client_count > 1);
    settings->has_reuse = last_is_free && world_chance(world, 150);
    if (world_chance(world, 300)) {
        cluster->net.hiccup_per_mille = world_between(world, 1, 30);
        cluster->net.hiccup_ms = 4000;
    }
    if (settings->has_reuse) {
        /* Many messages are under way, and for long. */
        cluster->net.latency_ms = world_between(world, 0, 60);
        cluster->net.hiccup_per_mille = world_between(world, 20, 150);
        cluster->net.hiccup_ms = 3000;
    } else if (world_chance(world, 150)) {
        draw_rush(cluster);
    }
}

/* One kind of fault, a few times, in a cluster that can bear it. */
static void draw_single(struct cluster *cluster, enum job_fault kind)
{
    struct world *world = &cluster->world;
    struct cluster_settings *settings = &cluster->settings;
    settings->client_count = 1;
    settings->client_start_ms = 300;
    settings->client_timeout_ms = 40000; /* Longer than every pause. */
    settings->worker_count = world_between(world, 2, CLUSTER_WORKERS_MAX);
    settings->map_ms = world_between(world, 50, 400);
    settings->fault_gap_ms = 2000;
    settings->faults_end_ms = 6000;
    settings->fault_limit = 2;
    settings->fault_weights[kind] = 1;
}

static void draw_profile(struct cluster *cluster)
{
    struct cluster_settings *settings = &cluster->settings;
    switch (cluster->options->profile) {
    case SIM_MIXED:
        draw_mixed(cluster);
        break;
    case SIM_CALM:
        settings->has_adversary = world_chance(&cluster->world, 500);
        break;
    case SIM_SLOW_MAPS:
        settings->slow_per_mille = 100;
        settings->slow_ms = 15000;
        settings->end_limit_ms = 1800000;
        break;
    case SIM_FULL_QUEUES:
        cluster->net.limits.inbox_prefetch = 1;
        cluster->net.limits.work_prefetch = 1;
        cluster->net.limits.confirm_window = 1;
        cluster->net.latency_ms = 60;
        settings->map_ms = 2500;
        settings->window = 40;
        settings->put_limit = 8;
        settings->map_limit = 1;
        settings->work_count = cluster->net.work_count = 3;
        settings->end_limit_ms = 1800000;
        break;
    case SIM_WORKER_DEATH:
        draw_single(cluster, FAULT_WORKER);
        break;
    case SIM_GATEWAY_DEATH:
        draw_single(cluster, FAULT_GATEWAY);
        break;
    case SIM_BROKER_DEATH:
        draw_single(cluster, FAULT_BROKER);
        break;
    case SIM_PAUSE:
        draw_single(cluster, FAULT_PAUSE);
        settings->client_timeout_ms = LEASE_MS; /* Shorter than pauses of workers. */
        break;
    case SIM_LOST_DISK:
        draw_single(cluster, FAULT_DISK);
        break;
    default:
        break;
    }
}

/* Some workers only map, some only fold; at least one does each. */
static void draw_roles(struct cluster *cluster)
{
    struct world *world = &cluster->world;
    const struct cluster_settings *settings = &cluster->settings;
    bool all_alike = world_chance(world, 500);
    for (uint32_t i = 0; i < settings->worker_count; i++) {
        struct manifest_worker *worker = &cluster->workers[i];
        uint32_t part = all_alike ? 0 : world_below(world, 3);
        worker->maps = part != 1;
        worker->folds = part != 2;
    }
    cluster->workers[0].maps = true;
    cluster->workers[settings->worker_count - 1].folds = true;
}

void faults_draw(struct cluster *cluster)
{
    draw_size(cluster);
    draw_profile(cluster);
    draw_roles(cluster);
}

/* ---- one after the other ---- */

static struct sim_node *any_gateway(struct cluster *cluster)
{
    return &cluster->nodes[world_below(&cluster->world, cluster->settings.gateway_count)];
}

static struct sim_node *any_worker(struct cluster *cluster)
{
    uint32_t number = world_below(&cluster->world, cluster->settings.worker_count);
    return &cluster->nodes[cluster->settings.gateway_count + number];
}

static struct sim_node *any_node(struct cluster *cluster)
{
    return &cluster->nodes[world_below(&cluster->world, cluster->node_count)];
}

static void crash(struct cluster *cluster, struct sim_node *node)
{
    struct world *world = &cluster->world;
    if (world_chance(world, 700)) {
        node->crash_after = world_between(world, 1, 30);
    } else if (sim_node_may_crash(node)) {
        sim_node_crash(node, SIM_CRASH, world_between(world, 50, DOWN_MAX_MS));
    }
}

static void broker_timer(void *context, uint64_t number)
{
    struct cluster *cluster = context;
    (void)number; /* Starting it twice is starting it once. */
    world_trace(&cluster->world, "the broker starts");
    sim_net_start_broker(&cluster->net);
}

static void kill_broker(struct cluster *cluster)
{
    struct world *world = &cluster->world;
    world_trace(world, "the broker dies");
    sim_net_kill_broker(&cluster->net);
    world_after(world, world_between(world, 10, DOWN_MAX_MS), broker_timer, cluster, 0);
}

static void pause_node(struct cluster *cluster, struct sim_node *node)
{
    struct world *world = &cluster->world;
    uint32_t pause_ms = world_between(world, 500, PAUSE_MAX_MS);
    if (cluster->options->profile == SIM_PAUSE) {
        /* No lease may expire: it is renewed through gateways, so only workers pause for longer. */
        pause_ms = node->kind == SIM_WORKER ? world_between(world, LEASE_MS + 1000, PAUSE_MAX_MS)
                                            : world_between(world, 500, SHORT_PAUSE_MAX_MS);
    }
    sim_node_pause(node, pause_ms);
    /* The broker closes connections without heartbeats. */
    if (pause_ms > 10000 && world_chance(world, 700)) sim_bus_lose(&node->bus, 0);
}

static void alarm_timer(void *context, uint64_t number)
{
    struct cluster *cluster = context;
    if (cluster->alarm_count != number) return; /* Another one has begun since. */
    world_trace(&cluster->world, "the broker takes messages again");
    sim_net_set_alarm(&cluster->net, false);
}

static void raise_alarm(struct cluster *cluster)
{
    struct world *world = &cluster->world;
    uint32_t length_ms = world_between(world, 100, ALARM_MAX_MS);
    world_trace(world, "the broker takes no messages for %u ms", length_ms);
    sim_net_set_alarm(&cluster->net, true);
    cluster->alarm_until_ms = world->now_ms + length_ms;
    world_after(world, length_ms, alarm_timer, cluster, ++cluster->alarm_count);
}

static void lose_side(struct cluster *cluster, struct sim_node *node)
{
    enum sim_side side = world_chance(&cluster->world, 500) ? SIM_PUBLISHER : SIM_CONSUMER;
    world_trace(&cluster->world, "%s: loses the connection it %s by", node->name,
                side == SIM_PUBLISHER ? "publishes" : "consumes");
    sim_bus_lose_side(&node->bus, side);
}

static void hurt_queue(struct cluster *cluster, enum sim_queue_fault fault)
{
    uint32_t count = cluster->node_count + cluster->settings.work_count;
    uint32_t queue = world_below(&cluster->world, count);
    world_trace(&cluster->world, "queue %u is %s", queue,
                fault == SIM_QUEUE_PURGED ? "purged" : "deleted");
    sim_net_hurt_queue(&cluster->net, queue, fault);
}

static void kill_client(struct cluster *cluster)
{
    struct world *world = &cluster->world;
    struct sim_client *client =
        &cluster->clients[world_below(world, cluster->settings.client_count)];
    if (world_chance(world, 600)) {
        client->crash_after = world_between(world, 1, 30);
    } else {
        bool anew = world_chance(world, 300);
        sim_client_kill(client, anew ? SIM_KILL_AND_BEGIN_ANEW : SIM_KILL_AND_RESUME);
    }
}

static void fail_power(struct cluster *cluster)
{
    struct world *world = &cluster->world;
    kill_broker(cluster);
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        struct sim_node *node = &cluster->nodes[i];
        uint32_t down_ms = world_between(world, 50, DOWN_MAX_MS);
        if (sim_node_may_crash(node)) sim_node_crash(node, SIM_CRASH, down_ms);
    }
}

static void do_fault(struct cluster *cluster, enum job_fault kind)
{
    struct world *world = &cluster->world;
    struct sim_node *node = any_node(cluster);
    switch (kind) {
    case FAULT_WORKER:
        crash(cluster, any_worker(cluster));
        break;
    case FAULT_GATEWAY:
        crash(cluster, any_gateway(cluster));
        break;
    case FAULT_DISK:
        sim_node_crash(any_worker(cluster), SIM_CRASH_AND_LOSE_DISK,
                       world_between(world, 50, DOWN_MAX_MS));
        break;
    case FAULT_BROKER:
        kill_broker(cluster);
        break;
    case FAULT_DROP:
        world_trace(world, "%s: loses its connection", node->name);
        sim_bus_lose(&node->bus, 0);
        break;
    case FAULT_HALF_DROP:
        world_trace(world, "%s: loses its connection, the broker does not notice", node->name);
        sim_bus_lose(&node->bus, world_between(world, 1, 8000));
        break;
    case FAULT_PURGE:
        hurt_queue(cluster, SIM_QUEUE_PURGED);
        break;
    case FAULT_DELETE:
        hurt_queue(cluster, SIM_QUEUE_DELETED);
        break;
    case FAULT_PAUSE:
        pause_node(cluster, node);
        break;
    case FAULT_STOP:
        sim_node_stop(node);
        break;
    case FAULT_CLIENT:
        kill_client(cluster);
        break;
    case FAULT_ALL:
        fail_power(cluster);
        break;
    case FAULT_SIDE:
        lose_side(cluster, node);
        break;
    case FAULT_ALARM:
        raise_alarm(cluster);
        break;
    case FAULT_LONG:
        if (!sim_node_may_crash(node)) break;
        sim_node_crash(node, SIM_CRASH, world_between(world, LONG_MIN_MS, LONG_MAX_MS));
        break;
    case FAULT_KINDS:
        break;
    }
}

/* A fault lasts until then. */
static void note_fault(struct cluster *cluster, uint64_t until_ms)
{
    if (until_ms > cluster->last_fault_ms) cluster->last_fault_ms = until_ms;
}

static void end_faults(struct cluster *cluster)
{
    world_trace(&cluster->world, "no more faults");
    cluster->faults_are_over = true;
    cluster->last_fault_ms = cluster->world.now_ms;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        cluster->nodes[i].crash_after = 0;
        note_fault(cluster, cluster->nodes[i].paused_until_ms);
        note_fault(cluster, cluster->nodes[i].down_until_ms);
    }
    note_fault(cluster, cluster->alarm_until_ms);
    for (uint32_t i = 0; i < cluster->settings.client_count; i++) {
        cluster->clients[i].crash_after = 0;
    }
    cluster->net.hiccup_per_mille = cluster->http.loss_per_mille = 0;
}

static void fault_timer(void *context, uint64_t number)
{
    struct cluster *cluster = context;
    (void)number; /* There is one such timer. */
    const struct cluster_settings *settings = &cluster->settings;
    struct world *world = &cluster->world;
    if (world->now_ms >= settings->faults_end_ms || cluster->fault_count >= settings->fault_limit ||
        cluster_is_answered(cluster)) {
        end_faults(cluster);
        return;
    }
    cluster->fault_count++;
    do_fault(cluster, (enum job_fault)world_draw(world, settings->fault_weights, FAULT_KINDS));
    world_after(world, world_between(world, 1, settings->fault_gap_ms), fault_timer, cluster, 0);
}

/* A reader without the key keeps polling a job whose owner has gone: that must not renew its lease.
 */
static void reader_timer(void *context, uint64_t number)
{
    struct cluster *cluster = context;
    struct world *world = &cluster->world;
    struct api_request request = {.kind = API_GET_JOB,
                                  .job = text_of(cluster->clients[number].job),
                                  .wait_ms = world_below(world, 3) * 1000};
    sim_http_request(&cluster->http, SIM_HTTP_OBSERVER,
                     world_below(world, cluster->settings.gateway_count), 0, &request);
    world_after(world, world_between(world, 1, READ_MS), reader_timer, cluster, number);
}

static void vanish_timer(void *context, uint64_t number)
{
    struct cluster *cluster = context;
    struct sim_client *client = &cluster->clients[number];
    bool is_up = client->is_up;
    sim_client_kill(client, SIM_KILL_FOR_EVER);
    if (is_up && cluster->settings.has_reader) reader_timer(cluster, number);
}

static void reuse_timer(void *context, uint64_t number)
{
    struct cluster *cluster = context;
    struct world *world = &cluster->world;
    struct sim_client *client = &cluster->clients[number];
    if (client->has_ended) return;
    sim_client_kill(client, SIM_KILL_AND_REUSE);
    if (client->submission > REUSES_MAX) return;
    world_after(world, world_between(world, 1, REUSE_MS), reuse_timer, cluster, number);
}

static void cancel_timer(void *context, uint64_t number)
{
    struct cluster *cluster = context;
    const struct sim_client *client = &cluster->clients[number];
    uint32_t gateway = world_below(&cluster->world, cluster->settings.gateway_count);
    if (!client->has_begun) return;
    world_trace(&cluster->world, "an operator cancels %s", client->job);
    struct api_request request = {.kind = API_DELETE_JOB, .job = text_of(client->job)};
    sim_http_request(&cluster->http, SIM_HTTP_OBSERVER, gateway, 0, &request);
}

void faults_begin(struct cluster *cluster)
{
    const struct cluster_settings *settings = &cluster->settings;
    struct world *world = &cluster->world;
    if (settings->fault_gap_ms == 0) {
        end_faults(cluster);
        return;
    }
    uint32_t quiet_ms = settings->has_rush ? RUSH_MS : 0;
    world_after(world, quiet_ms + world_between(world, 1, settings->fault_gap_ms), fault_timer,
                cluster, 0);
    if (settings->has_vanishing && settings->client_count > 1) {
        world_after(world, world_between(world, 1, 15000), vanish_timer, cluster,
                    settings->client_count - 1);
    }
    if (settings->has_reuse) {
        world_after(world, world_between(world, 1, REUSE_MS), reuse_timer, cluster,
                    settings->client_count - 1);
    }
    if (settings->has_cancel) {
        world_after(world, world_between(world, 1, 8000), cancel_timer, cluster, 0);
    }
}
