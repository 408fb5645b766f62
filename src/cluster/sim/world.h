/* SPDX-License-Identifier: Apache-2.0 */
/* world.h - simulated time and chance: every event of a run, in an order that a seed determines.
 *
 *     world_init -> world_after* -> world_run -> world_report -> world_done
 *
 * A discrete-event simulation: one action at a time, the earliest first, those of one moment in the
 * order in which they were scheduled. All chance comes from one sequence of random numbers, and
 * nothing reads a real clock; so the same seed is the same run, and a failure can be replayed.
 * `history`, a hash over all events, tells two runs apart.
 *
 * Failure: sticky. The first world_fail says what is wrong with the run; nothing happens after it.
 */
#ifndef CLUSTER_SIM_WORLD_H
#define CLUSTER_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/array.h"
#include "engine/base/error.h"
#include "engine/base/random.h"

/* `number` is the one that world_after was given: mostly the incarnation of the process that set
 * the timer, so that a timer of a dead process does nothing. */
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
    ARRAY_OF(struct world_timer) timers; /* A heap by time and serial. */
    uint64_t next_serial;
    uint64_t step_count;
    uint64_t history;
    int trace_fd; /* -1: no trace. */
    bool failed;
    char reason[WORLD_REASON_SIZE];
};

/* The outcome of a run; each kind of world fills the counts that it has. */
struct sim_report {
    bool ok;
    char reason[WORLD_REASON_SIZE]; /* One line; empty if ok. */
    uint64_t history;               /* Equal for equal runs. */
    uint64_t simulated_ms;
    uint64_t step_count;
    uint64_t message_count; /* Of a bus, or datagrams. */
    uint64_t crash_count;
    uint64_t fault_count;
    /* Jobs: */
    uint64_t job_count;
    uint64_t chunk_count;
    uint64_t resent_count; /* Chunks sent again, for any reason. */
    uint64_t repair_count; /* Messages that request what is missing. */
    /* Monitors: */
    uint64_t restart_count; /* Commands to drivers. */
    uint64_t settle_ms;     /* From the last fault until all nodes were up. */
};

void world_init(struct world *world, uint64_t seed, int trace_fd);
void world_done(struct world *world);

void world_after(struct world *world, uint64_t delay_ms, world_action action, void *context,
                 uint64_t number);
/* Carries out the next action; false: there is none, or the run has failed. */
bool world_step(struct world *world);
/* Steps until *is_over. More than `step_limit` steps fail the run: it does not terminate. */
void world_run(struct world *world, const bool *is_over, uint64_t step_limit);
/* Fills the part of the report that every world has. */
void world_report(const struct world *world, struct sim_report *out);

uint32_t world_below(struct world *world, uint32_t bound);
/* low..high, both included. */
uint32_t world_between(struct world *world, uint32_t low, uint32_t high);
bool world_chance(struct world *world, uint32_t per_mille);
/* An index, each with the chance of its weight; `count`: all weights are 0. */
uint32_t world_draw(struct world *world, const uint32_t *weights, uint32_t count);

/* A line of the trace. */
void world_trace(struct world *world, const char *format, ...) PRINTF_LIKE(2, 3);
static inline bool world_is_traced(const struct world *world)
{
    return world->trace_fd >= 0;
}
/* Adds to the history, traced or not. */
void world_mark(struct world *world, uint64_t what, uint64_t number);

void world_fail(struct world *world, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
