/* SPDX-License-Identifier: Apache-2.0 */
/* world.c - a binary heap of timers (Knuth, The Art of Computer Programming 3, 5.2.3), ordered by
 * time, then by serial number: a heap alone is not stable, and runs must be reproducible. */
#include "cluster/sim/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/assert.h"
#include "engine/base/hash.h"

enum { LINE_SIZE = 1024 };

void world_init(struct world *world, uint64_t seed, int trace_fd)
{
    *world = (struct world){
        .random = {.state = hash_u64(seed)}, .trace_fd = trace_fd, .history = hash_u64(seed)};
}

void world_done(struct world *world)
{
    array_done(&world->timers, NULL);
}

static bool comes_before(const struct world_timer *a, const struct world_timer *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->serial < b->serial;
}

void world_after(struct world *world, uint64_t delay_ms, world_action action, void *context,
                 uint64_t number)
{
    if (array_add(&world->timers, NULL) == NULL) {
        world_fail(world, "out of memory");
        return;
    }
    struct world_timer timer = {.at_ms = world->now_ms + delay_ms,
                                .serial = world->next_serial++,
                                .action = action,
                                .context = context,
                                .number = number};
    struct world_timer *timers = world->timers.items;
    uint32_t place = world->timers.count - 1;
    while (place > 0 && comes_before(&timer, &timers[(place - 1) / 2])) {
        timers[place] = timers[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    timers[place] = timer;
}

static struct world_timer heap_take(struct world *world)
{
    struct world_timer *timers = world->timers.items;
    struct world_timer first = timers[0];
    struct world_timer last = timers[--world->timers.count];
    uint32_t place = 0;
    for (;;) {
        uint32_t child = place * 2 + 1;
        if (child >= world->timers.count) break;
        if (child + 1 < world->timers.count && comes_before(&timers[child + 1], &timers[child])) {
            child++;
        }
        if (!comes_before(&timers[child], &last)) break;
        timers[place] = timers[child];
        place = child;
    }
    timers[place] = last;
    return first;
}

bool world_step(struct world *world)
{
    if (world->timers.count == 0 || world->failed) return false;
    struct world_timer timer = heap_take(world);
    ASSERT(timer.at_ms >= world->now_ms);
    world->now_ms = timer.at_ms;
    world->step_count++;
    world->history = hash_combine(world->history, timer.at_ms ^ timer.serial << 32);
    timer.action(timer.context, timer.number);
    return true;
}

void world_run(struct world *world, const bool *is_over, uint64_t step_limit)
{
    while (!*is_over && world_step(world)) {
        if (world->step_count > step_limit) world_fail(world, "it does not come to an end");
    }
}

void world_report(const struct world *world, struct sim_report *out)
{
    out->ok = !world->failed;
    memcpy(out->reason, world->reason, sizeof out->reason);
    out->history = world->history;
    out->simulated_ms = world->now_ms;
    out->step_count = world->step_count;
}

uint32_t world_below(struct world *world, uint32_t bound)
{
    return random_below(&world->random, bound);
}

uint32_t world_between(struct world *world, uint32_t low, uint32_t high)
{
    ASSERT(low <= high);
    return low + random_below(&world->random, high - low + 1);
}

bool world_chance(struct world *world, uint32_t per_mille)
{
    return per_mille > 0 && random_below(&world->random, 1000) < per_mille;
}

uint32_t world_draw(struct world *world, const uint32_t *weights, uint32_t count)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        total += weights[i];
    }
    if (total == 0) return count;
    uint32_t place = world_below(world, total);
    uint32_t drawn = 0;
    while (place >= weights[drawn]) {
        place -= weights[drawn++];
    }
    return drawn;
}

void world_trace(struct world *world, const char *format, ...)
{
    if (world->trace_fd < 0) return;
    char line[LINE_SIZE];
    int head = snprintf(line, sizeof line, "%8llu ", (unsigned long long)world->now_ms);
    va_list arguments;
    va_start(arguments, format);
    int body = vsnprintf(line + head, sizeof line - (size_t)head - 1, format, arguments);
    va_end(arguments);
    if (body < 0) return;
    size_t size = (size_t)head + (size_t)body;
    if (size > sizeof line - 2) size = sizeof line - 2;
    line[size] = '\n';
    ssize_t written = write(world->trace_fd, line, size + 1);
    (void)written; /* A reader that has gone changes nothing. */
}

void world_mark(struct world *world, uint64_t what, uint64_t number)
{
    world->history = hash_combine(hash_combine(world->history, what), number);
}

void world_fail(struct world *world, const char *format, ...)
{
    if (world->failed) return;
    world->failed = true;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(world->reason, sizeof world->reason, format, arguments); /* May be cut. */
    va_end(arguments);
    world_trace(world, "FAILED %s", world->reason);
}
