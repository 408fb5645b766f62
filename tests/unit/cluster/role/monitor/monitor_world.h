/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_world.h - monitors, nodes that heartbeat, a driver and a network: for tests.
 *
 * Real monitors and real beaters. A node is a flag and a heartbeat sender; a monitor is a node with
 * a struct monitor beside it. Time goes in ticks; a datagram arrives in the tick after it was sent.
 * What nodes send is recorded, and can be played back.
 */
#ifndef UNIT_ROLE_MONITOR_WORLD_H
#define UNIT_ROLE_MONITOR_WORLD_H

#include "unit/test.h"

#include <stdio.h>
#include <string.h>

#include "cluster/role/monitor/heartbeat_sender.h"
#include "cluster/role/monitor/monitor.h"

enum {
    HEARTBEAT_PERIOD = 250,
    FAILURE_TIMEOUT = 1000,
    STALL_TIMEOUT = 3000,
    START_TIMEOUT = 2000,
    LEASE = 800,
    DRIVE_TIME = 100,
    NODES_MAX = 16,
    MAIL_MAX = 4096,
    TAPE_MAX = 4096,
    TIMELINE_MAX = 1024,
    OPERATOR = 200 /* As an address. */
};

enum driver_behaviour { DRIVER_WORKS, DRIVER_FAILS, DRIVER_HANGS };

struct monitor_place { /* As monitor addresses have it: which of a node's two sockets. */
    uint8_t node;
    bool is_main;
};

struct mail {
    struct monitor_place from;
    struct monitor_place to;
    struct datagram datagram;
};

struct thing {
    char name[DATAGRAM_NAME_SIZE];
    enum node_role role;
    bool runs;
    bool is_stuck;
    bool is_deaf; /* What is sent by it and to it is lost. */
    bool dies_at_start;
    enum heartbeat_state state;
    struct heartbeat_sender heartbeat_sender;
    uint64_t progress;
    uint64_t replayed;
    uint32_t lease_ms; /* Of its cluster file; 0: as all have it. */
    struct monitor *monitor;
    bool is_paused; /* Its monitor. */
    /* The driver's side. */
    enum driver_behaviour behaviour;
    uint64_t driven_at_ms[NODES_MAX]; /* By the monitor that wants it; 0: nothing is to be done. */
    enum drive_kind drive;            /* Of the last, as are these: */
    uint64_t drive_incarnation;
    struct term drive_term;
    uint64_t drive_ms;
    uint32_t drives;
};

struct monitor_world {
    uint64_t now_ms;
    uint64_t wall_ms; /* The next incarnation. */
    struct thing things[NODES_MAX];
    uint32_t count;
    uint32_t monitor_count;
    enum monitor_mutation mutation;
    struct mail mails[MAIL_MAX];
    uint32_t mail_count;
    struct mail tape[TAPE_MAX];
    uint32_t tape_count;
    struct cluster_event timeline[TIMELINE_MAX]; /* As the gateways hear it. */
    uint32_t timeline_count;
    struct view operator_views[64];
    uint32_t operator_view_count;
    uint32_t operator_event_count;
    struct replay_sender operator_sender[NODES_MAX];
    uint32_t differs_said_count; /* Lines about another cluster file. */
    struct monitor_effects effects;
};

static inline struct thing *world_thing(struct monitor_world *world, const char *name)
{
    for (uint32_t i = 0; i < world->count; i++) {
        if (strcmp(world->things[i].name, name) == 0) return &world->things[i];
    }
    fail_msg("no node %s", name);
    return NULL;
}

static inline void world_post(struct monitor_world *world, struct monitor_place from,
                              struct monitor_place to, const struct datagram *datagram)
{
    assert_true(world->mail_count < MAIL_MAX);
    struct mail *mail = &world->mails[world->mail_count++];
    *mail = (struct mail){.from = from, .to = to, .datagram = *datagram};
    if (datagram->kind == DATAGRAM_HEARTBEAT && world->tape_count < TAPE_MAX)
        world->tape[world->tape_count++] = *mail;
}

/* ---- nodes ---- */

static inline void thing_start(struct monitor_world *world, struct thing *thing)
{
    thing->runs = !thing->dies_at_start;
    thing->is_stuck = false;
    thing->state = HEARTBEAT_UP;
    thing->heartbeat_sender = (struct heartbeat_sender){
        .incarnation = ++world->wall_ms,
        .monitor_count = world->monitor_count,
        .random = world->wall_ms,
    };
    memcpy(thing->heartbeat_sender.name, thing->name, sizeof thing->name);
    for (uint32_t i = 0; i < world->monitor_count; i++) {
        memcpy(thing->heartbeat_sender.monitors[i], world->things[i].name, sizeof thing->name);
    }
    if (thing->role != NODE_MONITOR || !thing->runs) return;

    struct monitor_node nodes[NODES_MAX];
    for (uint32_t i = 0; i < world->count; i++) {
        nodes[i] = (struct monitor_node){.name = text_of(world->things[i].name),
                                         .role = world->things[i].role};
    }
    const struct monitor_config config = {
        .name = text_of(thing->name),
        .nodes = nodes,
        .node_count = world->count,
        .heartbeat_period_ms = HEARTBEAT_PERIOD,
        .failure_timeout_ms = FAILURE_TIMEOUT,
        .stall_timeout_ms = STALL_TIMEOUT,
        .start_timeout_ms = START_TIMEOUT,
        .lease_ms = thing->lease_ms != 0 ? thing->lease_ms : LEASE,
        .incarnation = thing->heartbeat_sender.incarnation,
        .seed = world->wall_ms,
        .mutation = world->mutation,
    };
    struct error err;
    assert_int_equal(monitor_create(&config, world->now_ms, &thing->monitor, &err), STATUS_OK);
}

/* Its orders to the driver die with a monitor. */
static inline void thing_kill(struct monitor_world *world, struct thing *thing)
{
    for (uint32_t i = 0; i < world->count; i++) {
        world->things[i].driven_at_ms[thing - world->things] = 0;
    }
    thing->runs = false;
    monitor_destroy(thing->monitor);
    thing->monitor = NULL;
}

static inline void thing_heartbeat_to(struct monitor_world *world, struct thing *thing,
                                      uint32_t monitor)
{
    uint8_t self = (uint8_t)(thing - world->things);
    struct heartbeat heartbeat = {
        .role = thing->role,
        .state = thing->state,
        .progress = thing->progress,
        .replayed = thing->replayed,
    };
    struct datagram datagram;
    heartbeat_sender_make(&thing->heartbeat_sender, monitor, &heartbeat, &datagram);
    struct monitor_place to = {.node = (uint8_t)monitor, .is_main = true};
    if (!thing->is_deaf) world_post(world, (struct monitor_place){.node = self}, to, &datagram);
}

static inline void thing_heartbeat(struct monitor_world *world, struct thing *thing)
{
    if (!thing->is_stuck) thing->progress++;
    for (uint32_t i = 0; i < world->monitor_count; i++) {
        thing_heartbeat_to(world, thing, i);
    }
}

static inline void timeline_add(struct monitor_world *world, const struct event_list *events)
{
    for (uint32_t i = 0; i < events->event_count; i++) {
        const struct cluster_event *event = &events->events[i];
        if (world->timeline_count > 0) {
            struct event_place last = world->timeline[world->timeline_count - 1].place;
            if (event_place_compare(event->place, last) <= 0) continue;
        }
        if (world->timeline_count < TIMELINE_MAX) world->timeline[world->timeline_count++] = *event;
    }
}

static inline void thing_hear(struct monitor_world *world, struct thing *thing,
                              const struct mail *mail)
{
    uint32_t monitor;
    struct datagram reply;
    switch (heartbeat_sender_hear(&thing->heartbeat_sender, &mail->datagram, world->now_ms,
                                  &monitor, &reply)) {
    case HEARTBEAT_SENDER_AGAIN:
        thing_heartbeat_to(world, thing, monitor);
        break;
    case HEARTBEAT_SENDER_CHALLENGE:
        world_post(world, mail->to, mail->from, &reply);
        break;
    case HEARTBEAT_SENDER_STOP:
        thing->state = HEARTBEAT_STOPPED;
        thing_heartbeat(world, thing);
        thing_kill(world, thing);
        break;
    case HEARTBEAT_SENDER_KILL:
        thing_kill(world, thing);
        break;
    case HEARTBEAT_SENDER_EVENTS:
        timeline_add(world, &mail->datagram.events);
        break;
    case HEARTBEAT_SENDER_VIEW:
    case HEARTBEAT_SENDER_NOTHING:
        break;
    }
}

/* ---- monitors ---- */

static inline void world_carry_out(struct monitor_world *world, uint32_t self)
{
    struct monitor_place from = {.node = (uint8_t)self, .is_main = true};
    assert_false(world->effects.failed);
    for (uint32_t i = 0; i < world->effects.count; i++) {
        const struct monitor_effect *effect = &world->effects.items[i];
        struct thing *target = &world->things[effect->node];
        struct monitor_place to = {.node = (uint8_t)effect->node, .is_main = true};
        switch (effect->kind) {
        case MONITOR_SEND_TO_MONITOR:
            if (!world->things[self].is_deaf) world_post(world, from, to, &effect->datagram);
            break;
        case MONITOR_SEND:
            memcpy(&to, effect->address.bytes, sizeof to);
            if (!world->things[self].is_deaf) world_post(world, from, to, &effect->datagram);
            break;
        case MONITOR_DRIVE:
            assert_int_equal(target->driven_at_ms[self], 0);
            target->driven_at_ms[self] = world->now_ms + DRIVE_TIME;
            target->drive = effect->drive;
            target->drive_incarnation = effect->incarnation;
            target->drive_term = effect->term;
            target->drives++;
            target->drive_ms = world->now_ms;
            break;
        case MONITOR_SAY:
            if (strstr(effect->line, "cluster-file-differs") != NULL) world->differs_said_count++;
            break;
        case MONITOR_EXIT:
            break;
        }
    }
    monitor_effects_reset(&world->effects);
}

static inline void world_monitor_step(struct monitor_world *world, uint32_t self,
                                      struct monitor_event event)
{
    if (world->things[self].monitor == NULL) return;
    event.now_ms = world->now_ms;
    monitor_step(world->things[self].monitor, &event, &world->effects);
    world_carry_out(world, self);
}

static inline void world_monitor_hear(struct monitor_world *world, uint32_t self,
                                      const struct mail *mail)
{
    struct monitor_event event = {.kind = MONITOR_HEARD, .datagram = &mail->datagram};
    event.source.size = sizeof mail->from;
    memcpy(event.source.bytes, &mail->from, sizeof mail->from);
    world_monitor_step(world, self, event);
}

static inline void world_drive(struct monitor_world *world, uint32_t node, uint32_t monitor)
{
    struct thing *thing = &world->things[node];
    uint64_t at_ms = thing->driven_at_ms[monitor];
    if (at_ms == 0 || world->now_ms < at_ms || thing->behaviour == DRIVER_HANGS) return;
    struct error error;
    struct monitor_event event = {.kind = MONITOR_DRIVEN, .node = node};
    if (thing->behaviour == DRIVER_FAILS || (thing->drive == DRIVE_START && thing->runs)) {
        error_write(&error, STATUS_IO, "the driver is \"out\" of\norder");
        event.error = &error;
    } else {
        thing_kill(world, thing);
        thing_start(world, thing);
    }
    thing->driven_at_ms[monitor] = 0;
    world_monitor_step(world, monitor, event);
}

/* ---- the world ---- */

/* "m1 m2 m3 g1 w1 w2": all start at once; monitors come first. */
static inline void world_init(struct monitor_world *world, const char *names)
{
    *world = (struct monitor_world){.now_ms = 1000, .wall_ms = 1700000000000};
    while (*names != '\0') {
        struct thing *thing = &world->things[world->count++];
        size_t size = strcspn(names, " ");
        memcpy(thing->name, names, size);
        thing->role = names[0] == 'm' ? NODE_MONITOR : names[0] == 'g' ? NODE_GATEWAY : NODE_WORKER;
        if (thing->role == NODE_MONITOR) world->monitor_count++;
        names += size + (names[size] == ' ');
    }
    for (uint32_t i = 0; i < world->count; i++) {
        thing_start(world, &world->things[i]);
    }
}

static inline void world_done(struct monitor_world *world)
{
    for (uint32_t i = 0; i < world->count; i++) {
        monitor_destroy(world->things[i].monitor);
    }
    monitor_effects_done(&world->effects);
}

static inline void operator_hear(struct monitor_world *world, const struct mail *mail)
{
    const struct datagram *datagram = &mail->datagram;
    if (datagram->kind == DATAGRAM_CHALLENGE) {
        replay_guard_challenged(&world->operator_sender[mail->from.node], 1, &datagram->challenge);
    } else if (datagram->kind == DATAGRAM_VIEW) {
        assert_true(world->operator_view_count < 64);
        world->operator_views[world->operator_view_count++] = datagram->view;
    } else if (datagram->kind == DATAGRAM_EVENTS) {
        world->operator_event_count += datagram->events.event_count;
    }
}

static inline void world_deliver(struct monitor_world *world)
{
    static struct mail mails[MAIL_MAX];
    uint32_t count = world->mail_count;
    memcpy(mails, world->mails, sizeof *mails * count);
    world->mail_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct mail *mail = &mails[i];
        if (mail->to.node == OPERATOR) {
            operator_hear(world, mail);
            continue;
        }
        struct thing *thing = &world->things[mail->to.node];
        if (!thing->runs || thing->is_deaf) continue;
        if (mail->to.is_main && thing->is_paused) {
            world->mails[world->mail_count++] = *mail;
        } else if (mail->to.is_main) {
            world_monitor_hear(world, mail->to.node, mail);
        } else {
            thing_hear(world, thing, mail);
        }
    }
}

static inline void world_tick(struct monitor_world *world)
{
    world->now_ms += MONITOR_TICK_MS;
    world->wall_ms += MONITOR_TICK_MS;
    world_deliver(world);
    for (uint32_t i = 0; i < world->count; i++) {
        struct thing *thing = &world->things[i];
        for (uint32_t j = 0; j < world->monitor_count; j++) {
            world_drive(world, i, j);
        }
        if (!thing->runs) continue;
        if ((world->now_ms / MONITOR_TICK_MS + i) % (HEARTBEAT_PERIOD / MONITOR_TICK_MS) == 0)
            thing_heartbeat(world, thing);
        if (!thing->is_paused)
            world_monitor_step(world, i, (struct monitor_event){.kind = MONITOR_TICK});
    }
}

static inline void world_run(struct monitor_world *world, uint64_t ms)
{
    for (uint64_t end_ms = world->now_ms + ms; world->now_ms < end_ms;) {
        world_tick(world);
    }
}

/* The monitor that leads, or NULL. */
static inline struct thing *world_leader(struct monitor_world *world)
{
    struct thing *leader = NULL;
    for (uint32_t i = 0; i < world->monitor_count; i++) {
        struct thing *thing = &world->things[i];
        if (thing->monitor == NULL || thing->is_paused) continue;
        if (!election_leads(monitor_election(thing->monitor), world->now_ms)) continue;
        assert_null(leader);
        leader = thing;
    }
    return leader;
}

/* What a monitor thinks of a node. */
static inline struct monitored world_monitored(struct monitor_world *world, struct thing *monitor,
                                               const char *name)
{
    struct monitored monitored;
    uint32_t node = (uint32_t)(world_thing(world, name) - world->things);
    monitor_targets(monitor->monitor, node, &monitored);
    return monitored;
}

static inline enum health world_state(struct monitor_world *world, const char *name)
{
    struct thing *leader = world_leader(world);
    assert_non_null(leader);
    return world_monitored(world, leader, name).state;
}

/* How often something happened to a node, as the gateways know. */
static inline uint32_t world_happened(const struct monitor_world *world,
                                      enum cluster_event_kind kind, const char *name)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < world->timeline_count; i++) {
        const struct cluster_event *event = &world->timeline[i];
        count += event->kind == kind && strcmp(event->node, name) == 0;
    }
    return count;
}

/* An operator asks one monitor, twice, since the first time is challenged. */
static inline void world_ask(struct monitor_world *world, const char *monitor, enum ask_kind kind,
                             const char *node)
{
    uint8_t to = (uint8_t)(world_thing(world, monitor) - world->things);
    for (uint32_t i = 0; i < 2; i++) {
        struct datagram datagram = {.kind = DATAGRAM_ASK, .ask = {.kind = kind}};
        snprintf(datagram.from, sizeof datagram.from, "operator-1");
        snprintf(datagram.to, sizeof datagram.to, "%s", monitor);
        snprintf(datagram.ask.node, sizeof datagram.ask.node, "%s", node);
        replay_guard_stamp(&world->operator_sender[to], 1, &datagram);
        world_post(world, (struct monitor_place){.node = OPERATOR},
                   (struct monitor_place){.node = to, .is_main = true}, &datagram);
        world_run(world, 4 * MONITOR_TICK_MS);
    }
}

#endif
