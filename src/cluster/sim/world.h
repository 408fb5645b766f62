/* world.h - simulated time and chance: whatever happens, happens here, in an order made from a
 * seed.
 *
 *     world_init -> world_after* -> world_step* -> world_done
 *
 * One action at a time, the earliest first, those of one moment in the order in which they were
 * asked for. All chance comes from one sequence of numbers; so the same seed is the same run, and
 * `history`, a hash over all that happened, tells two runs apart.
 *
 * Failure: sticky. The first world_fail says what is wrong with the run; nothing happens after it.
 */
#ifndef CLUSTER_SIM_WORLD_H
#define CLUSTER_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/random.h"

/* `number` is what was given to world_after: mostly the incarnation of the process that asked, so
 * that what a dead one asked for is not done. */
typedef void (*world_action)(void *context, uint64_t number);

struct world_timer {
    uint64_t at_ms;
    uint64_t serial;
    world_action action;
    void *context;
    uint64_t number;
};

enum { WORLD_REASON_SIZE = 512 };

struct world {
    uint64_t now_ms;
    struct random random;
    struct world_timer *timers; /* A heap by time and serial. */
    uint32_t timer_count;
    uint32_t timer_capacity;
    uint64_t next_serial;
    uint64_t step_count;
    uint64_t history;
    int trace_fd; /* -1: nobody reads it. */
    bool failed;
    char reason[WORLD_REASON_SIZE];
};

void world_init(struct world *world, uint64_t seed, int trace_fd);
void world_done(struct world *world);

void world_after(struct world *world, uint64_t delay_ms, world_action action, void *context,
                 uint64_t number);
/* Does the next thing; false: there is none, or the run has failed. */
bool world_step(struct world *world);

uint32_t world_below(struct world *world, uint32_t bound);
/* low..high, both included. */
uint32_t world_between(struct world *world, uint32_t low, uint32_t high);
bool world_chance(struct world *world, uint32_t per_mille);

/* A line of the trace. */
void world_trace(struct world *world, const char *format, ...) PRINTF_LIKE(2, 3);
static inline bool world_is_traced(const struct world *world)
{
    return world->trace_fd >= 0;
}
/* Part of the history, traced or not. */
void world_mark(struct world *world, uint64_t what, uint64_t number);

void world_fail(struct world *world, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
