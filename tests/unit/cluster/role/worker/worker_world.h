/* SPDX-License-Identifier: Apache-2.0 */
/* worker_world.h - one worker, the layout of its job, and the effects of the last step. */
#ifndef UNIT_ROLE_WORKER_WORLD_H
#define UNIT_ROLE_WORKER_WORLD_H

#include "unit/cluster/role/shop_job.h"

#include "cluster/role/worker/worker.h"

struct worker_world {
    struct worker *worker;
    struct effects effects;
    struct arena arena; /* Of decoded messages. */
    struct job_layout *layout;
    uint64_t now_ms;
    uint32_t alive_count;
};

static inline void step(struct worker_world *world, struct event *event)
{
    effects_reset(&world->effects);
    event->now_ms = world->now_ms;
    worker_step(world->worker, event, &world->effects);
    assert_false(world->effects.failed);
    event_done(event);
}

static inline void happen(struct worker_world *world, enum event_kind kind)
{
    struct event event = {.kind = kind};
    step(world, &event);
}

static inline void connect_bus(struct worker_world *world)
{
    struct event event = {.kind = EVENT_BUS, .bus = {.kind = BUS_CONNECTED}};
    step(world, &event);
}

static inline void world_close(struct worker_world *world)
{
    worker_destroy(world->worker);
    effects_done(&world->effects);
    job_layout_release(world->layout);
    arena_done(&world->arena);
}

#endif
