/* SPDX-License-Identifier: Apache-2.0 */
/* rabbit_bus.c - rounds with back-off, events, and wake-ups between threads. */
#include "cluster/bus/rabbit_bus.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/assert.h"
#include "engine/file/clock.h"

enum {
    DELAY_MS = 100, /* Before the second attempt; it doubles from there. */
    DELAY_LIMIT_MS = 5000,
    LASTING_MS = 5000, /* A round that was open for so long resets the back-off. */
    STEP_MS = 500      /* No wait is longer, so that a lost wake-up only costs time. */
};

uint64_t rabbit_bus_now_ms(void)
{
    return (uint64_t)(clock_seconds() * 1000);
}

struct rabbit_options rabbit_bus_connection_options(const struct rabbit_bus *bus)
{
    return (struct rabbit_options){.deadline_ms = bus->options.limits.deadline_ms,
                                   .heartbeat_s = bus->options.heartbeat_s,
                                   .name = bus->options.node,
                                   .tls = {.ca = bus->options.ca,
                                           .certificate = bus->options.certificate,
                                           .key = bus->options.key}};
}

void rabbit_bus_wake(struct rabbit_bus *bus, enum rabbit_side_kind side)
{
    struct rabbit_side *other = &bus->sides[side];
    if (atomic_exchange(&other->is_awake, true)) return;
    uint64_t one = 1;
    ssize_t written = write(other->wake_fd, &one, sizeof one);
    ASSERT(written == (ssize_t)sizeof one || errno == EAGAIN);
}

void rabbit_bus_woken(struct rabbit_bus *bus, enum rabbit_side_kind side)
{
    struct rabbit_side *self = &bus->sides[side];
    if (!atomic_load(&self->is_awake)) return;
    uint64_t count;
    /* Nothing to read: the waking thread is about to write, and this runs again then. */
    if (read(self->wake_fd, &count, sizeof count) != (ssize_t)sizeof count) return;
    atomic_store(&self->is_awake, false);
}

void rabbit_bus_end_process(void)
{
    static const char line[] = "bus: out of memory for messages in flight: killing this process\n";
    ssize_t written = write(STDERR_FILENO, line, sizeof line - 1);
    (void)written; /* Where standard error does not take it, no other place is left. */
    (void)raise(SIGKILL);
}

/* ---- events ---- */

void rabbit_bus_tell(struct rabbit_bus *bus, struct bus_event *event)
{
    pthread_mutex_lock(&bus->listening);
    bus->listener->event(bus->listener, event);
    pthread_mutex_unlock(&bus->listening);
}

void rabbit_bus_deliver(struct rabbit_bus *bus, struct rabbit_input *input)
{
    struct bus_event event = {.kind = BUS_DELIVERY, .delivery = {0}};
    if (input->consumer[0] == 'w') {
        event.delivery.from_work = true;
        event.delivery.work = (uint32_t)strtoul(input->consumer + 1, NULL, 10);
    }
    pthread_mutex_lock(&bus->listening);
    pthread_mutex_lock(&bus->lock);
    bool is_wanted = bus->is_told && !bus->is_broken && !bus->is_stopping;
    if (is_wanted) event.delivery.id = inbox_deliver(bus->inbox, input->channel, input->number);
    if (inbox_failed(bus->inbox)) rabbit_bus_end_process();
    pthread_mutex_unlock(&bus->lock);
    if (is_wanted) {
        event.delivery.bytes = input->bytes;
        bus->listener->event(bus->listener, &event);
    } else {
        buf_done(&input->bytes);
    }
    pthread_mutex_unlock(&bus->listening);
}

/* ---- rounds ---- */

/* The caller holds the lock. */
static bool is_drained(const struct rabbit_bus *bus)
{
    if (!bus->is_stopping) return false;
    return outbox_waiting(bus->outbox) + outbox_unconfirmed(bus->outbox) == 0 ||
           rabbit_bus_now_ms() >= bus->stop_by_ms;
}

/* The caller holds the lock. Waits for a change of the state, at most until `until_ms`. */
static void wait_changed(struct rabbit_bus *bus, uint64_t until_ms)
{
    uint64_t now_ms = rabbit_bus_now_ms();
    uint64_t wait_ms = until_ms > now_ms ? until_ms - now_ms : 1;
    if (wait_ms > STEP_MS) wait_ms = STEP_MS;
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until); /* Cannot fail: POSIX requires it. */
    uint64_t ns = (uint64_t)until.tv_nsec + wait_ms * 1000000;
    until.tv_sec += (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    (void)pthread_cond_timedwait(&bus->changed, &bus->lock, &until); /* The caller looks. */
}

/* The caller holds the lock; both sides are idle. */
static void plan_round(struct rabbit_bus *bus)
{
    uint64_t now_ms = rabbit_bus_now_ms();
    bus->not_before_ms = now_ms;
    if (bus->round > 0) {
        if (bus->opened_ms != 0 && now_ms - bus->opened_ms >= LASTING_MS) bus->failures = 0;
        uint32_t delay = bus->failures < 6 ? (uint32_t)DELAY_MS << bus->failures : DELAY_LIMIT_MS;
        if (delay > DELAY_LIMIT_MS) delay = DELAY_LIMIT_MS;
        bus->not_before_ms += delay / 2 + random_below(&bus->random, delay / 2 + 1);
        bus->failures++;
    }
    outbox_reconnect(bus->outbox);
    inbox_reconnect(bus->inbox);
    bus->round++;
    bus->opened_ms = 0;
    bus->is_broken = false;
    for (int side = 0; side < RABBIT_SIDES; side++) {
        bus->sides[side].is_idle = false;
        bus->sides[side].is_ready = false;
    }
    pthread_cond_broadcast(&bus->changed);
}

bool rabbit_bus_begin(struct rabbit_bus *bus, enum rabbit_side_kind side,
                      const struct rabbit_uri **out_uri)
{
    pthread_mutex_lock(&bus->lock);
    uint64_t round = bus->round;
    bus->sides[side].is_idle = true;
    if (bus->sides[RABBIT_PUBLISHER].is_idle && bus->sides[RABBIT_CONSUMER].is_idle) {
        plan_round(bus);
    }
    while (bus->round == round && !is_drained(bus)) {
        wait_changed(bus, UINT64_MAX);
    }
    while (rabbit_bus_now_ms() < bus->not_before_ms && !is_drained(bus)) {
        wait_changed(bus, bus->not_before_ms);
    }
    *out_uri = &bus->uris[(bus->round - 1) % bus->options.broker_count];
    bool go_on = !is_drained(bus);
    pthread_mutex_unlock(&bus->lock);
    return go_on;
}

void rabbit_bus_ready(struct rabbit_bus *bus, enum rabbit_side_kind side)
{
    pthread_mutex_lock(&bus->listening);
    pthread_mutex_lock(&bus->lock);
    bus->sides[side].is_ready = true;
    bool is_open = bus->sides[RABBIT_PUBLISHER].is_ready && bus->sides[RABBIT_CONSUMER].is_ready &&
                   !bus->is_broken;
    if (is_open) bus->opened_ms = rabbit_bus_now_ms();
    pthread_mutex_unlock(&bus->lock);
    if (is_open) {
        bus->is_told = true;
        bus->reason[0] = '\0';
        struct bus_event event = {.kind = BUS_CONNECTED};
        bus->listener->event(bus->listener, &event);
    }
    pthread_mutex_unlock(&bus->listening);
    if (!is_open) return;
    rabbit_bus_wake(bus, RABBIT_PUBLISHER);
    rabbit_bus_wake(bus, RABBIT_CONSUMER);
}

void rabbit_bus_break(struct rabbit_bus *bus, const char *reason)
{
    pthread_mutex_lock(&bus->listening);
    pthread_mutex_lock(&bus->lock);
    bool is_first = !bus->is_broken;
    bus->is_broken = true;
    pthread_mutex_unlock(&bus->lock);
    struct bus_event event = {.kind = BUS_DISCONNECTED};
    snprintf(event.reason, sizeof event.reason, "%s", reason);
    if (is_first && (bus->is_told || strcmp(event.reason, bus->reason) != 0)) {
        memcpy(bus->reason, event.reason, sizeof bus->reason);
        bus->is_told = false;
        bus->listener->event(bus->listener, &event);
    }
    pthread_mutex_unlock(&bus->listening);
    rabbit_bus_wake(bus, RABBIT_PUBLISHER);
    rabbit_bus_wake(bus, RABBIT_CONSUMER);
}

enum rabbit_bus_phase rabbit_bus_phase(struct rabbit_bus *bus)
{
    pthread_mutex_lock(&bus->lock);
    enum rabbit_bus_phase phase = RABBIT_BUS_WAITS;
    if (bus->is_broken) {
        phase = RABBIT_BUS_BROKEN;
    } else if (is_drained(bus)) {
        phase = RABBIT_BUS_DRAINED;
    } else if (bus->opened_ms != 0) {
        phase = RABBIT_BUS_OPEN;
    }
    pthread_mutex_unlock(&bus->lock);
    return phase;
}
