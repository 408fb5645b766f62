/* SPDX-License-Identifier: Apache-2.0 */
/* election_world.h - some monitors' elections, the network between them, and a check that no two
 * lead: for tests.
 *
 * Time goes in steps of one ms. Each monitor has a clock with an offset and a rate of its own.
 * Messages between two monitors keep their order, as cluster/role/replay_guard.h sees to.
 */
#ifndef UNIT_ROLE_ELECTION_WORLD_H
#define UNIT_ROLE_ELECTION_WORLD_H

#include "unit/test.h"

#include <string.h>

#include "engine/base/random.h"
#include "cluster/role/monitor/election.h"

enum { LEASE = 400, TICK = 10, FLIGHTS_MAX = 4096 };

struct flight {
    uint64_t at_ms;
    uint32_t from;
    uint32_t to;
    struct election_message message;
};

struct host {
    struct election election;
    bool is_dead;
    uint64_t paused_until_ms;
    uint64_t offset_ms;
    int32_t rate; /* Parts in a thousand that its clock is too fast. */
};

struct election_world {
    struct random random;
    uint64_t now_ms;
    uint32_t count;
    enum election_mutation mutation;
    struct host hosts[ELECTION_MONITORS_MAX];
    bool is_cut[ELECTION_MONITORS_MAX][ELECTION_MONITORS_MAX]; /* From, to. */
    uint64_t order_ms[ELECTION_MONITORS_MAX][ELECTION_MONITORS_MAX];
    uint32_t delay_ms; /* Up to so much. */
    uint32_t loss_percent;
    struct flight flights[FLIGHTS_MAX];
    uint32_t flight_count;
    uint32_t overlaps;  /* Moments with two leaders. */
    uint32_t reversals; /* Leaders whose term was not higher than one before. */
    struct term led;    /* The last. */
    bool forgets;       /* A monitor was started again: terms may be forgotten. */
};

static inline uint64_t world_clock(const struct election_world *world, uint32_t i)
{
    const struct host *host = &world->hosts[i];
    return host->offset_ms + world->now_ms + world->now_ms * (uint64_t)(1000 + host->rate) / 1000 -
           world->now_ms;
}

static inline bool host_runs(const struct election_world *world, uint32_t i)
{
    return !world->hosts[i].is_dead && world->now_ms >= world->hosts[i].paused_until_ms;
}

static inline void world_start(struct election_world *world, uint32_t i)
{
    struct host *host = &world->hosts[i];
    const struct election_config config = {
        .self = i,
        .count = world->count,
        .lease_ms = LEASE,
        .seed = random_u64(&world->random),
        .mutation = world->mutation,
    };
    if (world->now_ms > 1) world->forgets = true;
    host->is_dead = false;
    host->paused_until_ms = 0;
    election_init(&host->election, &config, world_clock(world, i));
}

static inline void world_init(struct election_world *world, uint32_t count, uint64_t seed)
{
    *world = (struct election_world){
        .random = {.state = seed}, .now_ms = 1, .count = count, .delay_ms = 3};
    for (uint32_t i = 0; i < count; i++) {
        world->hosts[i].offset_ms = random_below(&world->random, 100000);
        world_start(world, i);
    }
}

static inline void world_post(struct election_world *world, uint32_t from, uint32_t to,
                              const struct election_message *message)
{
    if (from == to || world->is_cut[from][to]) return;
    if (random_below(&world->random, 100) < world->loss_percent) return;
    if (world->flight_count == FLIGHTS_MAX) return;
    uint64_t at_ms = world->now_ms + random_below(&world->random, world->delay_ms + 1);
    if (at_ms < world->order_ms[from][to]) at_ms = world->order_ms[from][to];
    world->order_ms[from][to] = at_ms;
    struct flight *flight = &world->flights[world->flight_count++];
    *flight = (struct flight){.at_ms = at_ms, .from = from, .to = to, .message = *message};
    if (message->kind == ELECTION_PEER)
        flight->message.heard_ago =
            election_heard_ago(&world->hosts[from].election, to, world_clock(world, from));
}

static inline void world_send(struct election_world *world, uint32_t from,
                              const struct election_outs *outs)
{
    for (uint32_t i = 0; i < outs->count; i++) {
        const struct election_out *out = &outs->items[i];
        for (uint32_t to = 0; to < world->count; to++) {
            if (out->to == ELECTION_TO_ALL || out->to == to)
                world_post(world, from, to, &out->message);
        }
    }
}

/* The leader at this moment; UINT32_MAX: none. A paused one does nothing, so it does not lead. */
static inline uint32_t world_leader(const struct election_world *world)
{
    uint32_t leader = UINT32_MAX;
    for (uint32_t i = 0; i < world->count; i++) {
        if (host_runs(world, i) && election_leads(&world->hosts[i].election, world_clock(world, i)))
            leader = i;
    }
    return leader;
}

static inline void world_check(struct election_world *world)
{
    uint32_t leaders = 0;
    for (uint32_t i = 0; i < world->count; i++) {
        const struct election *election = &world->hosts[i].election;
        if (!host_runs(world, i) || !election_leads(election, world_clock(world, i))) continue;
        leaders++;
        if (term_compare(election->own, world->led) == 0) continue;
        bool rises = term_compare(election->own, world->led) > 0;
        if (!rises && !world->forgets) world->reversals++;
        world->led = election->own;
    }
    if (leaders > 1) world->overlaps++;
}

static inline void world_deliver(struct election_world *world)
{
    uint32_t kept = 0;
    uint32_t count = world->flight_count;
    struct flight *due = world->flights;
    for (uint32_t i = 0; i < count; i++) {
        struct flight flight = world->flights[i];
        bool waits =
            flight.at_ms > world->now_ms || world->now_ms < world->hosts[flight.to].paused_until_ms;
        if (waits) {
            due[kept++] = flight;
            continue;
        }
        if (world->hosts[flight.to].is_dead) continue;
        /* What is sent in answer goes behind; it is moved forward afterwards. */
        struct election_outs outs = {0};
        election_hear(&world->hosts[flight.to].election, flight.from, &flight.message,
                      world_clock(world, flight.to), &outs);
        world_send(world, flight.to, &outs);
        world_check(world);
    }
    memmove(world->flights + kept, world->flights + count,
            sizeof *world->flights * (world->flight_count - count));
    world->flight_count = kept + world->flight_count - count;
}

static inline void world_step(struct election_world *world)
{
    world->now_ms++;
    world_deliver(world);
    for (uint32_t i = 0; i < world->count; i++) {
        if (!host_runs(world, i) || (world->now_ms + i) % TICK != 0) continue;
        struct election_outs outs = {0};
        election_tick(&world->hosts[i].election, world_clock(world, i), &outs);
        world_send(world, i, &outs);
    }
    world_check(world);
}

static inline void world_run(struct election_world *world, uint64_t ms)
{
    for (uint64_t end_ms = world->now_ms + ms; world->now_ms < end_ms;) {
        world_step(world);
    }
}

/* How long it takes until there is a leader, at most `limit_ms`. */
static inline uint64_t world_until_led(struct election_world *world, uint64_t limit_ms)
{
    uint64_t start_ms = world->now_ms;
    while (world_leader(world) == UINT32_MAX && world->now_ms - start_ms < limit_ms) {
        world_step(world);
    }
    return world->now_ms - start_ms;
}

#endif
