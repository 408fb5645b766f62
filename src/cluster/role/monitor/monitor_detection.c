/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_detection.c - failure detection: the health of each node, from its heartbeats.
 *
 *     UNKNOWN      -> STARTING, UP   the first heartbeat
 *     STARTING, UP -> SUSPECTED      silent for failure_timeout, or no progress for stall_timeout
 *     SUSPECTED    -> STARTING, UP   a heartbeat in time, before it was killed
 *     SUSPECTED    -> RESTARTING     we lead; also from UNKNOWN, when it was never heard
 *     RESTARTING   -> STARTING, UP   another incarnation heartbeats
 *     RESTARTING   -> BROKEN         five failed starts; still tried again, and told to people
 *     any          -> STOPPED        says so itself, or an operator orders it
 *     STOPPED      -> STARTING, UP   another incarnation heartbeats
 *
 * A detector with a timeout is wrong at times: it suspects a node that is only slow, and takes the
 * suspicion back when a heartbeat arrives. In the terms of Chandra and Toueg (1996) it is
 * eventually perfect at best, and no more is needed: a wrong suspicion costs a restart, never an
 * answer.
 *
 * Time is counted in ticks: a monitor that was stopped itself counts one tick for all of it. The
 * times of attempts are by the clock, since waiting too short there does no harm.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/fault_injection.h"
#include "cluster/role/monitor/monitor_state.h"

#define TO(state) (1u << (state))
static const unsigned moves[HEALTH_STATES] = {
    [HEALTH_UNKNOWN] =
        TO(HEALTH_STARTING) | TO(HEALTH_UP) | TO(HEALTH_RESTARTING) | TO(HEALTH_STOPPED),
    [HEALTH_STARTING] = TO(HEALTH_UP) | TO(HEALTH_SUSPECTED) | TO(HEALTH_STOPPED),
    [HEALTH_UP] = TO(HEALTH_STARTING) | TO(HEALTH_SUSPECTED) | TO(HEALTH_STOPPED),
    [HEALTH_SUSPECTED] = TO(HEALTH_STARTING) | TO(HEALTH_UP) | TO(HEALTH_RESTARTING) |
                         TO(HEALTH_BROKEN) | TO(HEALTH_STOPPED),
    [HEALTH_RESTARTING] =
        TO(HEALTH_STARTING) | TO(HEALTH_UP) | TO(HEALTH_BROKEN) | TO(HEALTH_STOPPED),
    [HEALTH_BROKEN] = TO(HEALTH_STARTING) | TO(HEALTH_UP) | TO(HEALTH_STOPPED),
    [HEALTH_STOPPED] = TO(HEALTH_STARTING) | TO(HEALTH_UP),
};

static void target_move(struct monitor_turn *turn, struct target *target, enum health to)
{
    if (target->state == to) return;
    ASSERT((moves[target->state] & TO(to)) != 0);
    target->state = to;
    target->uptime_ms = 0;
    turn->monitor->has_news = true;
}

static bool is_alive(const struct target *target)
{
    return target->state == HEALTH_STARTING || target->state == HEALTH_UP;
}

static bool is_being_started(const struct target *target)
{
    return target->state == HEALTH_RESTARTING || target->state == HEALTH_BROKEN;
}

static bool is_stuck(const struct monitor_turn *turn, const struct target *target)
{
    return target->stuck_ms > turn->monitor->config.stall_timeout_ms;
}

static bool is_stopping(const struct heartbeat *heartbeat)
{
    return heartbeat->state == HEARTBEAT_STOPPING || heartbeat->state == HEARTBEAT_STOPPED;
}

static void target_lose(struct target *target, uint64_t lost_ms)
{
    if (target->is_lost) return;
    target->is_lost = true;
    target->lost_ms = lost_ms;
    target->lost = target->incarnation;
}

/* ---- orders ---- */

/* Only a leader orders, and the order names its term and one incarnation: an older leader's order,
 * or one for a process that is gone, is void. */
static void order(struct monitor_turn *turn, struct target *target, enum order_kind kind,
                  uint64_t incarnation)
{
    if (!election_leads(&turn->monitor->election, turn->now_ms)) return;
    struct datagram *datagram = monitor_write_node(turn, target, DATAGRAM_ORDER);
    if (datagram == NULL) return;
    datagram->order = (struct order){
        .term = turn->monitor->election.own, .kind = kind, .incarnation = incarnation};
}

/* A driver's message ends up within the quotes of a log line. */
static void problem_set(struct target *target, const char *text)
{
    (void)snprintf(target->problem, sizeof target->problem, "%.*s", DATAGRAM_TEXT_SIZE - 1,
                   text); /* May be cut. */
    for (char *byte = target->problem; *byte != '\0'; byte++) {
        if ((unsigned char)*byte < ' ' || *byte == 0x7f) *byte = ' ';
        if (*byte == '"') *byte = '\'';
    }
}

static void tell_broken(struct monitor_turn *turn, struct target *target)
{
    target_move(turn, target, HEALTH_BROKEN);
    if (target->broken_told) return;
    target->broken_told = true;
    monitor_record(turn, HAPPENED_BROKEN, target, target->attempts, target->problem);
}

/* It could not be started, or it was started and sent no heartbeat. */
static void start_failed(struct monitor_turn *turn, struct target *target, const char *text)
{
    target->start_failed = true;
    target->is_awaited = false;
    target->retry_ms = turn->now_ms + target->backoff_ms;
    problem_set(target, text);
    monitor_record(turn, HAPPENED_FAILED, target, target->attempts, target->problem);
    if (target->attempts >= VAIN_STARTS) tell_broken(turn, target);
}

static void tell_suspicion(struct monitor_turn *turn, struct target *target)
{
    if (target->suspicion_told || target->incarnation == 0) return;
    if (!election_leads(&turn->monitor->election, turn->now_ms)) return;
    target->suspicion_told = true;
    monitor_record(turn, target->is_hung ? HAPPENED_HUNG : HAPPENED_SUSPECTED, target,
                   target->lost_ms, "");
}

/* Exponential back-off per node: one that dies at each start does not keep the driver busy. `term`
 * number 0: not as leader. */
static void drive(struct monitor_turn *turn, struct target *target, enum drive_kind kind,
                  struct term term)
{
    ASSERT(!target->is_driven);
    ASSERT(!target->is_awaited);
    ASSERT(target->node != turn->monitor->self);
    target_lose(target, target->silent_ms);
    tell_suspicion(turn, target);
    if (target->attempts >= VAIN_STARTS) {
        tell_broken(turn, target);
    } else {
        target_move(turn, target, HEALTH_RESTARTING);
    }

    uint32_t doubled_ms = target->backoff_ms * 2;
    target->backoff_ms = target->backoff_ms == 0        ? BACKOFF_FIRST_MS
                         : doubled_ms < BACKOFF_LAST_MS ? doubled_ms
                                                        : BACKOFF_LAST_MS;
    target->retry_ms = turn->now_ms + target->backoff_ms;
    target->attempts++;
    target->is_driven = true;
    if (target->is_hung) {
        target->condemned = target->incarnation;
        order(turn, target, ORDER_KILL, target->condemned);
    }

    struct monitor_effect *effect = monitor_effect_add(turn, MONITOR_DRIVE);
    effect->node = target->node;
    effect->drive = kind;
    effect->incarnation = target->incarnation;
    effect->term = term;
    if (term.number == 0)
        monitor_say(turn, SAY_INFO, "event=start-monitor target=%s attempt=%" PRIu32, target->name,
                    target->attempts);
    monitor_record(turn, HAPPENED_RESTARTING, target, target->attempts, "");
}

/* ---- heartbeats ---- */

static void stop_accept(struct monitor_turn *turn, struct target *target, uint64_t incarnation)
{
    target->stopped = incarnation;
    target->condemned = 0;
    target->is_lost = false;
    target->is_hung = false;
    target_move(turn, target, HEALTH_STOPPED);
}

static void revive(struct monitor_turn *turn, struct target *target)
{
    if (!IS_PLANTED(turn->monitor->config.mutation, MONITOR_NO_INCARNATION)) target->condemned = 0;
    target->is_awaited = false;
    target->is_hung = false;
    target->suspicion_told = false;
    target->start_failed = false;
    bool is_up = target->heartbeat.state == HEARTBEAT_UP;
    target_move(turn, target, is_up ? HEALTH_UP : HEALTH_STARTING);
    if (!is_up || !target->is_lost) return;
    if (target->lost != target->incarnation && target->heartbeat.replayed > 0)
        monitor_record(turn, HAPPENED_REPLAYED, target, target->heartbeat.replayed, "");
    monitor_record(turn, HAPPENED_RESUMED, target, target->lost_ms, "");
    target->is_lost = false;
}

/* Judges the last heartbeat; `is_new`: it is the first of its incarnation. */
static void heartbeat_judge(struct monitor_turn *turn, struct target *target, bool is_new)
{
    bool is_any = IS_PLANTED(turn->monitor->config.mutation, MONITOR_NO_INCARNATION);
    bool is_meant = target->incarnation == target->condemned && is_stuck(turn, target);
    if (target->condemned != 0 && (is_meant || is_any))
        order(turn, target, ORDER_KILL, target->incarnation);
    bool is_replaced = is_being_started(target) && (target->is_driven || target->is_awaited);
    /* It is about to be killed, or was killed after it sent this heartbeat. */
    if (is_replaced && !is_new) return;

    if (target->state == HEALTH_STOPPED) {
        bool is_wanted = target->incarnation != target->stopped && !is_stopping(&target->heartbeat);
        if (is_wanted && !target->stops_next) {
            revive(turn, target);
            return;
        }
        if (target->incarnation != target->stopped) target->stops_next = false;
        target->stopped = target->incarnation;
        /* A node that hangs cannot stop by itself. */
        if (is_stuck(turn, target)) {
            order(turn, target, ORDER_KILL, target->stopped);
        } else if (!is_stopping(&target->heartbeat)) {
            order(turn, target, ORDER_STOP, target->stopped);
        }
        return;
    }
    if (is_stopping(&target->heartbeat)) {
        stop_accept(turn, target, target->incarnation);
        monitor_record(turn, HAPPENED_STOPPED, target, 0, "");
        return;
    }
    if (target->is_hung && is_stuck(turn, target)) return;
    revive(turn, target);
}

void target_heartbeat(struct monitor_turn *turn, struct target *target,
                      const struct datagram *datagram)
{
    const struct heartbeat *heartbeat = &datagram->heartbeat;
    bool is_new = datagram->incarnation != target->incarnation;
    if (is_new) {
        if (target->incarnation != 0) target_lose(target, target->silent_ms);
        target->incarnation = datagram->incarnation;
        target->uptime_ms = 0;
        target->known = (struct event_place){0};
        target->offered = (struct event_place){0};
    }
    if (is_new || heartbeat->progress != target->heartbeat.progress ||
        heartbeat->state != target->heartbeat.state)
        target->stuck_ms = 0;
    if (event_place_compare(heartbeat->events, target->known) > 0)
        target->known = heartbeat->events;
    target->heartbeat = *heartbeat;
    target->silent_ms = 0;
    monitor_see_term(turn, heartbeat->seen);
    monitor_see_term(turn, event_term_back(heartbeat->events.term));
    heartbeat_judge(turn, target, is_new);
}

/* ---- time ---- */

static bool is_well(const struct monitor_turn *turn, const struct target *target)
{
    return target->incarnation != 0 &&
           target->silent_ms <= turn->monitor->config.failure_timeout_ms && !is_stuck(turn, target);
}

/* A heartbeat thread of its own shows that the process lives; its progress counter shows that the
 * main loop turns. Either alone would miss a crash or a hang. */
static void suspect(struct monitor_turn *turn, struct target *target)
{
    bool is_silent = target->silent_ms > turn->monitor->config.failure_timeout_ms;
    if (!is_alive(target) || (!is_silent && !is_stuck(turn, target))) return;
    target->is_hung = !is_silent;
    target_lose(target, is_silent ? target->silent_ms : target->stuck_ms);
    target_move(turn, target, HEALTH_SUSPECTED);
    tell_suspicion(turn, target);
}

static void await(struct monitor_turn *turn, struct target *target)
{
    /* A node that takes longer to start than we wait would else be killed again and again. */
    uint32_t vain = target->attempts > 0 ? target->attempts - 1 : 0;
    uint64_t timeout_ms = (uint64_t)turn->monitor->config.start_timeout_ms
                          << (vain < AWAIT_DOUBLINGS ? vain : AWAIT_DOUBLINGS);
    if (!target->is_awaited || target->awaited_ms <= timeout_ms) return;
    if (target->state == HEALTH_STOPPED) {
        target->is_awaited = false;
        target->stops_next = false;
        return;
    }
    char text[DATAGRAM_TEXT_SIZE];
    snprintf(text, sizeof text, "it was started, and not heard of for %" PRIu64 " ms", timeout_ms);
    start_failed(turn, target, text);
}

static void act_as_leader(struct monitor_turn *turn, struct target *target)
{
    bool is_unheard = target->state == HEALTH_UNKNOWN &&
                      target->silent_ms > turn->monitor->config.failure_timeout_ms;
    if (!is_unheard && target->state != HEALTH_SUSPECTED && !is_being_started(target)) return;
    /* A node that was never heard has nothing to kill, unless a process holds its place. */
    bool may_be_there = target->incarnation != 0 || target->start_failed;
    drive(turn, target, may_be_there ? DRIVE_RESTART : DRIVE_START, turn->monitor->election.own);
}

/* Without a majority there is no leader, so any monitor may start another; higher ones do so first.
 */
static void act_as_any(struct monitor_turn *turn, struct target *target)
{
    const struct monitor *monitor = turn->monitor;
    if (target->position == NO_POSITION || is_alive(target)) return;
    uint32_t higher = monitor->election.config.count - 1 - monitor->election.config.self;
    uint64_t failure_timeout_ms = monitor->config.failure_timeout_ms;
    if (target->silent_ms <= 2 * failure_timeout_ms + higher * (failure_timeout_ms / 2)) return;
    drive(turn, target, DRIVE_START, (struct term){0});
}

/* A node that stays up long enough begins anew with back-off and attempts. */
static void count_time(struct target *target, uint64_t elapsed_ms)
{
    target->silent_ms += elapsed_ms;
    target->stuck_ms += elapsed_ms;
    target->uptime_ms += elapsed_ms;
    if (target->is_lost) target->lost_ms += elapsed_ms;
    if (target->is_awaited) target->awaited_ms += elapsed_ms;
    if (target->state != HEALTH_UP || target->uptime_ms < UPTIME_ENOUGH_MS) return;
    target->backoff_ms = 0;
    target->attempts = 0;
    target->broken_told = false;
    target->problem[0] = '\0';
}

void target_tick(struct monitor_turn *turn, struct target *target, uint64_t elapsed_ms)
{
    const struct monitor *monitor = turn->monitor;
    count_time(target, elapsed_ms);
    if (target->node == monitor->self) return;
    suspect(turn, target);
    await(turn, target);
    if (target->state == HEALTH_STOPPED || target->is_driven || target->is_awaited) return;
    if (turn->now_ms < target->retry_ms) return;
    if (monitor_acts(monitor, turn->now_ms)) {
        act_as_leader(turn, target);
    } else if (!election_leads(&monitor->election, turn->now_ms)) {
        act_as_any(turn, target);
    }
}

/* ---- from outside ---- */

void target_driven(struct monitor_turn *turn, struct target *target, const struct error *error)
{
    if (!target->is_driven) return;
    target->is_driven = false;
    if (error != NULL) {
        /* It may have been started all the same; then it is to be stopped. */
        if (target->state != HEALTH_STOPPED) target->stops_next = false;
        target->is_awaited = target->stops_next;
        target->awaited_ms = 0;
        problem_set(target, error->text);
        monitor_say(turn, SAY_WARN, "event=drive-failed target=%s error=\"%s\"", target->name,
                    target->problem);
        if (is_being_started(target)) start_failed(turn, target, error->text);
        /* Meanwhile it got well by itself, and perhaps was not killed. */
        if (is_being_started(target) && is_well(turn, target)) revive(turn, target);
        return;
    }
    target->restarts++;
    turn->monitor->has_news = true;
    target->is_awaited = is_being_started(target) || target->stops_next;
    target->awaited_ms = 0;
}

void target_ended(struct monitor_turn *turn, struct target *target, const struct error *error)
{
    if (target->is_driven || target->state == HEALTH_STOPPED) return;
    problem_set(target, error->text);
    /* There is no heartbeat to wait for any more. */
    if (is_being_started(target) && target->is_awaited) start_failed(turn, target, error->text);
}

void target_stop(struct monitor_turn *turn, struct target *target)
{
    if (target->state == HEALTH_STOPPED) return;
    if (is_being_started(target)) target->stops_next = target->is_driven || target->is_awaited;
    stop_accept(turn, target, target->incarnation);
    order(turn, target, ORDER_STOP, target->stopped);
    monitor_record(turn, HAPPENED_STOPPED, target, 0, "");
}

/* A new leader waits for failure_timeout before it starts a node that it never heard. */
void target_take_over(struct target *target)
{
    if (target->state == HEALTH_UNKNOWN) target->silent_ms = 0;
}

void target_adopt_stop(struct monitor_turn *turn, struct target *target,
                       const struct monitored *monitored)
{
    if (target->state == HEALTH_STOPPED) return;
    uint64_t stopped = monitored->incarnation;
    if (stopped == 0 && !is_alive(target)) {
        stopped = target->incarnation; /* The sender never heard it: it means the last one. */
    }
    bool is_another = target->incarnation != 0 && target->incarnation != stopped;
    if (is_another && (is_alive(target) || target->incarnation > stopped)) return;
    if (is_being_started(target)) target->stops_next = target->is_driven || target->is_awaited;
    stop_accept(turn, target, stopped);
}

void target_adopt_want(struct monitor_turn *turn, struct target *target)
{
    if (target->state != HEALTH_STOPPED) return;
    /* The leader hears it; if we do not, we will notice. */
    target->stops_next = false;
    target->is_awaited = false;
    target->silent_ms = 0;
    target->stuck_ms = 0;
    target_move(turn, target, HEALTH_STARTING);
}

void target_describe(const struct target *target, struct monitored *out)
{
    bool is_told = target->state == HEALTH_STOPPED && target->incarnation == 0;
    /* A node that dies soon after each start is as broken as one that cannot be started. */
    bool is_broken = target->state == HEALTH_SUSPECTED && target->broken_told;
    *out = (struct monitored){
        .role = target->role,
        .state = is_broken ? HEALTH_BROKEN : target->state,
        .incarnation = is_told ? target->stopped : target->incarnation,
        .uptime_ms = target->heartbeat.uptime_ms,
        .silent_ms = target->silent_ms,
        .restarts = target->restarts,
        .resident_bytes = target->heartbeat.resident_bytes,
        .job_count = target->heartbeat.job_count,
    };
    memcpy(out->name, target->name, sizeof out->name);
    memcpy(out->problem, target->problem, sizeof out->problem);
}
