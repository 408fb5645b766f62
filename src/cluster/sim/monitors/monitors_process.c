/* SPDX-License-Identifier: Apache-2.0 */
/* monitors_process.c - a simulated process: it sends heartbeats, ticks, pauses, hangs and ends.
 *
 * A process has two threads: the heartbeat's and the main loop's. A paused process runs neither;
 * one that hangs runs no main loop. Datagrams that arrive meanwhile wait in its socket, as far as
 * there is room. When it resumes, it reads them before or after it notices that time has passed;
 * the seed decides, since a real scheduler may do either.
 */
#include "cluster/sim/monitors/monitors_cluster.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/assert.h"

enum {
    PPM = 1000000,
    FAREWELLS = 3,
    FAREWELL_PAUSE_MS = 20,
    FINISH_MS = 800,            /* A node has something in flight when it is told to stop. */
    TICK_LATE_MS = 15,          /* At most. */
    YEARS_MS = 50 * 365 * 86400 /* Times 1000: the time of day. */
};

static void heart_timer(void *context, uint64_t run);
static void tick_timer(void *context, uint64_t run);

uint32_t monitors_process_named(const struct monitors_cluster *cluster, const char *name)
{
    uint32_t i = 0;
    while (i < cluster->process_count && strcmp(cluster->processes[i].name, name) != 0) {
        i++;
    }
    return i;
}

/* ---- clocks ---- */

uint64_t monitors_process_now(const struct monitors_process *process)
{
    uint64_t passed_ms = process->cluster->world.now_ms - process->clock_from_ms;
    return process->clock_base_ms + passed_ms * (uint64_t)(PPM + process->rate_ppm) / PPM;
}

bool monitors_is_leading(const struct monitors_process *process)
{
    return process->is_up && process->monitor != NULL &&
           election_leads(monitor_election(process->monitor), monitors_process_now(process));
}

/* `local_ms` of the process's clock in time of the world, rounded up. */
static uint64_t world_ms(const struct monitors_process *process, uint64_t local_ms)
{
    uint64_t rate = (uint64_t)(PPM + process->rate_ppm);
    return (local_ms * PPM + rate - 1) / rate;
}

/* A host that reboots counts from an arbitrary number. */
static void clock_restart(struct monitors_process *process)
{
    struct world *world = &process->cluster->world;
    process->clock_from_ms = world->now_ms;
    process->clock_base_ms = 1;
    if (world_chance(world, 500)) {
        process->clock_base_ms = (uint64_t)world_between(world, 1, UINT32_MAX - 1) << 8;
    }
}

static uint64_t wall_now(const struct monitors_process *process)
{
    return (uint64_t)(process->wall_ms + (int64_t)process->cluster->world.now_ms);
}

/* ---- sending ---- */

struct monitor_address monitors_process_address(const struct monitors_process *process,
                                                enum monitors_door door)
{
    return monitors_address(door, process->index, door == MONITORS_DOOR_HEART ? process->port : 0);
}

static void heartbeat_to(struct monitors_process *process, uint32_t monitor)
{
    struct monitors_cluster *cluster = process->cluster;
    struct heartbeat heartbeat = {
        .role = process->role,
        .state = process->state,
        .progress = process->progress,
        .uptime_ms = cluster->world.now_ms - process->started_ms,
        .replayed = 10,
        .resident_bytes = 1 << 20,
    };
    struct datagram datagram;
    heartbeat_sender_make(&process->heartbeat_sender, monitor, &heartbeat, &datagram);
    monitors_send(cluster, process, monitors_process_address(process, MONITORS_DOOR_HEART),
                  monitors_process_address(monitors_monitor(cluster, monitor), MONITORS_DOOR_MAIN),
                  &datagram);
}

static void carry_out(struct monitors_process *process)
{
    struct monitors_cluster *cluster = process->cluster;
    struct monitor_effects *effects = &cluster->effects;
    if (effects->failed) world_fail(&cluster->world, "out of memory");
    for (uint32_t i = 0; i < effects->count; i++) {
        const struct monitor_effect *effect = &effects->items[i];
        monitors_check_effect(process, effect);
        switch (effect->kind) {
        case MONITOR_SEND_TO_MONITOR:
            monitors_send(
                cluster, process, monitors_process_address(process, MONITORS_DOOR_MAIN),
                monitors_process_address(&cluster->processes[effect->node], MONITORS_DOOR_MAIN),
                &effect->datagram);
            break;
        case MONITOR_SEND:
            monitors_send(cluster, process, monitors_process_address(process, MONITORS_DOOR_MAIN),
                          effect->address, &effect->datagram);
            break;
        case MONITOR_DRIVE:
            monitors_drive(process, effect);
            break;
        case MONITOR_SAY:
            if (world_is_traced(&cluster->world)) {
                world_trace(&cluster->world, "%s: %s", process->name, effect->line);
            }
            break;
        case MONITOR_EXIT:
            process->state = HEARTBEAT_STOPPED;
            process->farewell_count = FAREWELLS;
            break;
        }
    }
}

static void step(struct monitors_process *process, struct monitor_event *event)
{
    event->now_ms = monitors_process_now(process);
    monitor_effects_reset(&process->cluster->effects);
    monitor_step(process->monitor, event, &process->cluster->effects);
    monitors_check_stepped(process);
    carry_out(process);
}

/* ---- the two threads ---- */

static void heart_timer(void *context, uint64_t run)
{
    struct monitors_process *process = context;
    struct monitors_cluster *cluster = process->cluster;
    if (!process->is_up || process->run != run) return;
    if (process->is_paused) {
        process->heartbeat_is_due = true;
        return;
    }
    if (!process->is_hung && process->state == HEARTBEAT_STARTING &&
        cluster->world.now_ms >= process->ready_ms) {
        process->state = HEARTBEAT_UP;
    }
    if (!process->is_hung && !monitors_is_monitor(process)) process->progress++;
    for (uint32_t i = 0; i < cluster->settings.monitor_count; i++) {
        heartbeat_to(process, i);
    }
    uint64_t pause_ms = world_ms(process, cluster->settings.heartbeat_period_ms);
    if (process->state == HEARTBEAT_STOPPED) {
        if (process->farewell_count-- == 0) {
            monitors_process_kill(process);
            return;
        }
        pause_ms = FAREWELL_PAUSE_MS;
    }
    world_after(&cluster->world, pause_ms, heart_timer, process, run);
}

static void tick_timer(void *context, uint64_t run)
{
    struct monitors_process *process = context;
    struct world *world = &process->cluster->world;
    if (!process->is_up || process->run != run || process->monitor == NULL) return;
    if (process->is_paused || process->is_hung) {
        process->tick_is_due = true;
        return;
    }
    if (process->state == HEARTBEAT_STOPPED) return;
    process->progress++;
    step(process, &(struct monitor_event){.kind = MONITOR_TICK});
    world_after(world, MONITOR_TICK_MS + world_below(world, TICK_LATE_MS + 1), tick_timer, process,
                run);
}

/* ---- receiving ---- */

static void hear_as_monitor(struct monitors_process *process, const struct monitors_packet *packet,
                            const struct datagram *datagram)
{
    struct monitor_event event = {
        .kind = MONITOR_HEARD, .datagram = datagram, .source = packet->from};
    if (process->state == HEARTBEAT_STOPPED) return;
    monitors_check_heard(process, packet, datagram);
    if (packet->origin != MONITORS_REPLAYED) {
        step(process, &event);
        return;
    }
    struct monitors_opinion before;
    monitors_opinion_take(process, &before);
    step(process, &event);
    monitors_opinion_compare(process, &before, datagram);
}

static void hear_as_node(struct monitors_process *process, const struct monitors_packet *packet,
                         const struct datagram *datagram)
{
    struct monitors_cluster *cluster = process->cluster;
    struct datagram reply;
    uint32_t monitor = 0;
    enum heartbeat_sender_answer answer = heartbeat_sender_hear(
        &process->heartbeat_sender, datagram, monitors_process_now(process), &monitor, &reply);
    monitors_check_answer(process, packet, datagram, answer);
    switch (answer) {
    case HEARTBEAT_SENDER_AGAIN:
        heartbeat_to(process, monitor);
        break;
    case HEARTBEAT_SENDER_CHALLENGE:
        monitors_send(
            cluster, process, monitors_process_address(process, MONITORS_DOOR_HEART),
            monitors_process_address(monitors_monitor(cluster, monitor), MONITORS_DOOR_MAIN),
            &reply);
        break;
    case HEARTBEAT_SENDER_STOP:
        if (!process->is_hung) monitors_process_stop(process);
        break;
    case HEARTBEAT_SENDER_KILL:
        monitors_process_kill(process);
        break;
    case HEARTBEAT_SENDER_NOTHING:
    case HEARTBEAT_SENDER_VIEW:
    case HEARTBEAT_SENDER_EVENTS:
        break;
    }
}

/* Heartbeats and views are too many to be read. */
static void trace_heard(const struct monitors_process *process, enum monitors_door door,
                        const struct monitors_packet *packet, const struct datagram *datagram)
{
    static const char *const elections[ELECTION_KINDS] = {"peer",   "stand", "grant",
                                                          "refuse", "renew", "release"};
    static const char *const kinds[DATAGRAM_KINDS] = {
        [DATAGRAM_HEARTBEAT] = "heartbeat", [DATAGRAM_CHALLENGE] = "challenge",
        [DATAGRAM_ORDER] = "order",         [DATAGRAM_VIEW] = "view",
        [DATAGRAM_EVENTS] = "events",       [DATAGRAM_ASK] = "ask"};
    struct world *world = &process->cluster->world;
    if (!world_is_traced(world)) return;
    if (packet->origin == MONITORS_GENUINE &&
        (datagram->kind == DATAGRAM_HEARTBEAT || datagram->kind == DATAGRAM_VIEW ||
         datagram->kind == DATAGRAM_EVENTS)) {
        return;
    }
    bool is_election = datagram->kind == DATAGRAM_ELECTION;
    struct term term = {0};
    if (is_election) term = datagram->election.term;
    if (datagram->kind == DATAGRAM_ORDER) term = datagram->order.term;
    world_trace(world, "%s%s: hears %s%s of %s %llu/%llu, term %llu", process->name,
                door == MONITORS_DOOR_HEART ? "'s heart" : "",
                packet->origin == MONITORS_REPLAYED ? "a recorded " : "",
                is_election ? elections[datagram->election.kind] : kinds[datagram->kind],
                datagram->from, (unsigned long long)datagram->incarnation,
                (unsigned long long)datagram->sequence, (unsigned long long)term.number);
}

static void hear(struct monitors_process *process, enum monitors_door door, uint32_t index)
{
    struct monitors_cluster *cluster = process->cluster;
    struct monitors_packet packet = cluster->net.packets[index]; /* Answers may move the others. */
    struct datagram datagram;
    struct error err;
    struct text bytes = {(const char *)packet.bytes, packet.size_bytes};
    monitors_packet_free(&cluster->net, index);
    bool is_ours = datagram_decode(bytes, &cluster->key, &datagram, &err) == STATUS_OK;
    if (is_ours != (packet.origin != MONITORS_FORGED)) {
        world_fail(&cluster->world, "%s %s a datagram", process->name,
                   is_ours ? "takes a forged one for" : "does not know");
        return;
    }
    if (!is_ours) return;
    trace_heard(process, door, &packet, &datagram);
    if (packet.origin == MONITORS_GENUINE && packet.receiver_run == process->run) {
        monitors_recording_heard(cluster, packet.record);
    }
    if (door == MONITORS_DOOR_MAIN) {
        hear_as_monitor(process, &packet, &datagram);
    } else {
        hear_as_node(process, &packet, &datagram);
    }
}

static void take_packet(struct monitors_process *process, enum monitors_door door, uint32_t packet)
{
    if (!process->is_paused && !(process->is_hung && door == MONITORS_DOOR_MAIN)) {
        hear(process, door, packet);
    } else if (process->held_count < MONITORS_HELD_MAX) {
        process->held[process->held_count++] = packet;
    } else {
        monitors_packet_free(&process->cluster->net, packet);
    }
}

void monitors_process_receive(void *context, uint32_t index)
{
    struct monitors_cluster *cluster = context;
    const struct monitors_packet *packet = &cluster->net.packets[index];
    enum monitors_door door = (enum monitors_door)packet->to.bytes[0];
    struct monitors_process *process = &cluster->processes[packet->to.bytes[1]];
    struct monitor_address address = monitors_process_address(process, door);
    /* The socket of an earlier incarnation is closed, unless the next one has its port. */
    if (process->is_up && memcmp(address.bytes, packet->to.bytes, sizeof address.bytes) == 0) {
        take_packet(process, door, index);
    } else {
        monitors_packet_free(&cluster->net, index);
    }
}

/* Reads the datagrams that waited. The answer to one can end the process. */
static void read_held(struct monitors_process *process)
{
    struct monitors_cluster *cluster = process->cluster;
    uint32_t held[MONITORS_HELD_MAX];
    uint32_t count = process->held_count;
    uint32_t run = process->run;
    for (uint32_t i = 0; i < count; i++) {
        held[i] = process->held[i];
    }
    process->held_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        enum monitors_door door = (enum monitors_door)cluster->net.packets[held[i]].to.bytes[0];
        if (process->is_up && process->run == run) {
            take_packet(process, door, held[i]);
        } else {
            monitors_packet_free(&cluster->net, held[i]);
        }
    }
}

static void resume(struct monitors_process *process)
{
    bool reads_first = world_chance(&process->cluster->world, 500);
    uint32_t run = process->run;
    if (reads_first) read_held(process);
    if (process->tick_is_due && !process->is_hung) {
        process->tick_is_due = false;
        tick_timer(process, run);
    }
    if (process->heartbeat_is_due) {
        process->heartbeat_is_due = false;
        heart_timer(process, run);
    }
    if (!reads_first) read_held(process);
}

/* ---- faults and orders ---- */

void monitors_process_init(struct monitors_cluster *cluster, uint32_t index, enum node_role role,
                           const char *name)
{
    struct monitors_process *process = &cluster->processes[index];
    struct world *world = &cluster->world;
    *process = (struct monitors_process){.cluster = cluster, .index = index, .role = role};
    (void)snprintf(process->name, sizeof process->name, "%s", name); /* Fits. */
    process->rate_ppm =
        (int32_t)world_below(world, 2 * MONITORS_RATE_PPM_MAX + 1) - MONITORS_RATE_PPM_MAX;
    process->wall_ms = (int64_t)YEARS_MS * 1000 + world_below(world, 3600000);
    clock_restart(process);
    cluster->nodes[index] = (struct monitor_node){.name = text_of(process->name), .role = role};
}

static void start_monitor(struct monitors_process *process)
{
    struct monitors_cluster *cluster = process->cluster;
    const struct monitors_settings *settings = &cluster->settings;
    enum monitors_mutation planted = cluster->options->mutation;
    struct monitor_config config = {
        .name = text_of(process->name),
        .nodes = cluster->nodes,
        .node_count = cluster->process_count,
        .heartbeat_period_ms = settings->heartbeat_period_ms,
        .failure_timeout_ms = settings->failure_timeout_ms,
        .stall_timeout_ms = settings->stall_timeout_ms,
        .start_timeout_ms = settings->start_timeout_ms,
        .lease_ms = settings->lease_ms,
        .incarnation = process->incarnation,
        .seed = random_u64(&cluster->world.random),
        .election_mutation = planted == MONITORS_SIM_NO_LEASE        ? ELECTION_NO_LEASE
                             : planted == MONITORS_SIM_VOTES_AT_ONCE ? ELECTION_VOTES_AT_ONCE
                                                                     : ELECTION_SOUND,
        .mutation = planted == MONITORS_SIM_ORDERS_ANY ? MONITOR_NO_INCARNATION : MONITOR_SOUND,
    };
    struct error err;
    uint64_t now_ms = monitors_process_now(process);
    if (monitor_create(&config, now_ms, &process->monitor, &err) != STATUS_OK) {
        world_fail(&cluster->world, "%s does not start: %s", process->name, err.text);
        return;
    }
    world_after(&cluster->world, MONITOR_TICK_MS, tick_timer, process, process->run);
}

static void start_heartbeat_sender(struct monitors_process *process)
{
    struct monitors_cluster *cluster = process->cluster;
    enum monitors_mutation planted = cluster->options->mutation;
    struct heartbeat_sender *heartbeat_sender = &process->heartbeat_sender;
    *heartbeat_sender = (struct heartbeat_sender){
        .incarnation = process->incarnation,
        .mutation = planted == MONITORS_SIM_NO_TERM     ? HEARTBEAT_SENDER_NO_TERM
                    : planted == MONITORS_SIM_OBEYS_ANY ? HEARTBEAT_SENDER_NO_INCARNATION
                                                        : HEARTBEAT_SENDER_SOUND,
        .monitor_count = cluster->settings.monitor_count,
        .random = random_u64(&cluster->world.random),
    };
    (void)snprintf(heartbeat_sender->name, sizeof heartbeat_sender->name, "%s",
                   process->name); /* Of one size. */
    for (uint32_t i = 0; i < heartbeat_sender->monitor_count; i++) {
        (void)snprintf(heartbeat_sender->monitors[i], sizeof heartbeat_sender->monitors[i], "%s",
                       monitors_monitor(cluster, i)->name); /* Of one size. */
    }
}

void monitors_process_start(struct monitors_process *process)
{
    struct monitors_cluster *cluster = process->cluster;
    struct world *world = &cluster->world;
    ASSERT(!process->is_up);
    if (world_chance(world, 200)) clock_restart(process);
    process->is_up = true;
    process->is_paused = process->is_hung = process->was_stopped = false;
    process->run++;
    process->port = cluster->settings.reuses_ports ? 1 : process->run;
    process->incarnation = wall_now(process);
    process->started_ms = world->now_ms;
    process->state = HEARTBEAT_STARTING;
    process->progress = 0;
    process->tick_is_due = process->heartbeat_is_due = false;
    process->seen = (struct term){0};
    process->told = (struct event_place){0};
    process->ready_ms = world->now_ms;
    if (!monitors_is_monitor(process))
        process->ready_ms += world_below(world, cluster->settings.startup_ms);
    world_trace(world, "%s: starts, incarnation %llu", process->name,
                (unsigned long long)process->incarnation);
    start_heartbeat_sender(process);
    if (monitors_is_monitor(process)) start_monitor(process);
    world_after(world, world_below(world, 30), heart_timer, process, process->run);
}

void monitors_process_kill(struct monitors_process *process)
{
    struct monitors_cluster *cluster = process->cluster;
    if (!process->is_up) return;
    world_trace(&cluster->world, "%s: ends", process->name);
    cluster->report.crash_count++;
    process->is_up = false;
    process->was_stopped = process->state >= HEARTBEAT_STOPPING;
    if (process->was_stopped) process->stopped_run = process->run;
    cluster->has_stops |= process->was_stopped;
    monitor_destroy(process->monitor);
    process->monitor = NULL;
    for (uint32_t i = 0; i < process->held_count; i++) {
        monitors_packet_free(&cluster->net, process->held[i]);
    }
    process->held_count = 0;
}

void monitors_process_pause(struct monitors_process *process)
{
    if (!process->is_up) return;
    world_trace(&process->cluster->world, "%s: is paused", process->name);
    process->is_paused = true;
}

void monitors_process_resume(struct monitors_process *process)
{
    if (!process->is_up || !process->is_paused) return;
    world_trace(&process->cluster->world, "%s: resumes", process->name);
    process->is_paused = false;
    resume(process);
}

void monitors_process_hang(struct monitors_process *process)
{
    if (!process->is_up) return;
    world_trace(&process->cluster->world, "%s: hangs", process->name);
    process->is_hung = true;
}

void monitors_process_unhang(struct monitors_process *process)
{
    if (!process->is_up || !process->is_hung) return;
    world_trace(&process->cluster->world, "%s: does not hang any more", process->name);
    process->is_hung = false;
    if (!process->is_paused) resume(process);
}

static void finish_timer(void *context, uint64_t run)
{
    struct monitors_process *process = context;
    if (!process->is_up || process->run != run) return;
    process->state = HEARTBEAT_STOPPED;
    process->farewell_count = FAREWELLS;
}

void monitors_process_stop(struct monitors_process *process)
{
    struct world *world = &process->cluster->world;
    if (!process->is_up || process->is_hung || process->is_paused) return;
    if (process->state >= HEARTBEAT_STOPPING) return;
    world_trace(world, "%s: is told to stop", process->name);
    process->state = HEARTBEAT_STOPPING;
    if (process->monitor != NULL) {
        step(process, &(struct monitor_event){.kind = MONITOR_STOP});
    } else {
        world_after(world, world_between(world, 1, FINISH_MS), finish_timer, process, process->run);
    }
}

void monitors_process_driven(struct monitors_process *process, uint32_t node,
                             const struct error *error)
{
    struct monitor_event event = {.kind = MONITOR_DRIVEN, .node = node, .error = error};
    if (process->state == HEARTBEAT_STOPPED) return;
    step(process, &event);
}
