/* monitor_detection.c - each node's life, as its beats tell it.
 *
 *                       beats                  silent or stuck for too long
 *     UNKNOWN ─────────────────▶ STARTING, UP ──────────────────────────────▶ SUSPECTED
 *        │                         ▲    ▲                                         │
 *        │ never heard             │    │ another incarnation beats, or this      │ we lead
 *        │ and we lead             │    │ one does and was not killed             │
 *        └────────────────────────────▶ RESTARTING ◀──────────────────────────────┘
 *                                  │         │ five attempts in vain
 *                                  └────── BROKEN
 *
 *     any ─── says so itself, or an operator wants it ───▶ STOPPED ─── another incarnation beats
 * ───▶
 *
 * Time is counted in ticks: a monitor that was stopped itself counts one tick for all of it. The
 * times of attempts are by the clock, since waiting too short there does no harm.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/assert.h"
#include "cluster/role/monitor/monitor_state.h"

#define TO(state) (1u << (state))
static const unsigned moves[WATCH_STATES] = {
    [WATCH_UNKNOWN] = TO(WATCH_STARTING) | TO(WATCH_UP) | TO(WATCH_RESTARTING) | TO(WATCH_STOPPED),
    [WATCH_STARTING] = TO(WATCH_UP) | TO(WATCH_SUSPECTED) | TO(WATCH_STOPPED),
    [WATCH_UP] = TO(WATCH_STARTING) | TO(WATCH_SUSPECTED) | TO(WATCH_STOPPED),
    [WATCH_SUSPECTED] = TO(WATCH_STARTING) | TO(WATCH_UP) | TO(WATCH_RESTARTING) |
                        TO(WATCH_BROKEN) | TO(WATCH_STOPPED),
    [WATCH_RESTARTING] = TO(WATCH_STARTING) | TO(WATCH_UP) | TO(WATCH_BROKEN) | TO(WATCH_STOPPED),
    [WATCH_BROKEN] = TO(WATCH_STARTING) | TO(WATCH_UP) | TO(WATCH_STOPPED),
    [WATCH_STOPPED] = TO(WATCH_STARTING) | TO(WATCH_UP),
};

static void watch_move(struct monitor_turn *turn, struct watch *watch, enum watch_state to)
{
    if (watch->state == to) return;
    ASSERT((moves[watch->state] & TO(to)) != 0);
    watch->state = to;
    watch->life_ms = 0;
    turn->monitor->has_news = true;
}

static bool is_alive(const struct watch *watch)
{
    return watch->state == WATCH_STARTING || watch->state == WATCH_UP;
}

static bool is_being_started(const struct watch *watch)
{
    return watch->state == WATCH_RESTARTING || watch->state == WATCH_BROKEN;
}

static bool is_stuck(const struct monitor_turn *turn, const struct watch *watch)
{
    return watch->stuck_ms > turn->monitor->config.hang_timeout_ms;
}

static bool is_stopping(const struct beat *beat)
{
    return beat->state == BEAT_STOPPING || beat->state == BEAT_STOPPED;
}

static void watch_lose(struct watch *watch, uint64_t lost_ms)
{
    if (watch->is_lost) return;
    watch->is_lost = true;
    watch->lost_ms = lost_ms;
    watch->lost = watch->incarnation;
}

/* ---- orders ---- */

static void order(struct monitor_turn *turn, struct watch *watch, enum order_kind kind,
                  uint64_t incarnation)
{
    if (!election_leads(&turn->monitor->election, turn->now_ms)) return;
    struct datagram *datagram = monitor_write_node(turn, watch, DATAGRAM_ORDER);
    if (datagram == NULL) return;
    datagram->order = (struct order){
        .term = turn->monitor->election.own, .kind = kind, .incarnation = incarnation};
}

/* What drivers say ends up within the quotes of a log line. */
static void problem_set(struct watch *watch, const char *text)
{
    (void)snprintf(watch->problem, sizeof watch->problem, "%.*s", DATAGRAM_TEXT_SIZE - 1,
                   text); /* May be cut. */
    for (char *byte = watch->problem; *byte != '\0'; byte++) {
        if ((unsigned char)*byte < ' ' || *byte == 0x7f) *byte = ' ';
        if (*byte == '"') *byte = '\'';
    }
}

static void tell_broken(struct monitor_turn *turn, struct watch *watch)
{
    watch_move(turn, watch, WATCH_BROKEN);
    if (watch->broken_told) return;
    watch->broken_told = true;
    tell_event(turn, HAPPENED_BROKEN, watch, watch->attempts, watch->problem);
}

/* It could not be started, or it was and nothing was heard. */
static void start_failed(struct monitor_turn *turn, struct watch *watch, const char *text)
{
    watch->start_failed = true;
    watch->is_awaited = false;
    watch->retry_ms = turn->now_ms + watch->backoff_ms;
    problem_set(watch, text);
    tell_event(turn, HAPPENED_FAILED, watch, watch->attempts, watch->problem);
    if (watch->attempts >= VAIN_STARTS) tell_broken(turn, watch);
}

static void tell_suspicion(struct monitor_turn *turn, struct watch *watch)
{
    if (watch->suspicion_told || watch->incarnation == 0) return;
    if (!election_leads(&turn->monitor->election, turn->now_ms)) return;
    watch->suspicion_told = true;
    tell_event(turn, watch->is_hung ? HAPPENED_HUNG : HAPPENED_SUSPECTED, watch, watch->lost_ms,
               "");
}

/* `term` number 0: not as leader. */
static void drive(struct monitor_turn *turn, struct watch *watch, enum drive_kind kind,
                  struct term term)
{
    ASSERT(!watch->is_driven);
    ASSERT(!watch->is_awaited);
    ASSERT(watch->node != turn->monitor->self);
    watch_lose(watch, watch->silent_ms);
    tell_suspicion(turn, watch);
    if (watch->attempts >= VAIN_STARTS) {
        tell_broken(turn, watch);
    } else {
        watch_move(turn, watch, WATCH_RESTARTING);
    }

    uint32_t doubled_ms = watch->backoff_ms * 2;
    watch->backoff_ms = watch->backoff_ms == 0         ? BACKOFF_FIRST_MS
                        : doubled_ms < BACKOFF_LAST_MS ? doubled_ms
                                                       : BACKOFF_LAST_MS;
    watch->retry_ms = turn->now_ms + watch->backoff_ms;
    watch->attempts++;
    watch->is_driven = true;
    if (watch->is_hung) {
        watch->condemned = watch->incarnation;
        order(turn, watch, ORDER_KILL, watch->condemned);
    }

    struct monitor_effect *effect = monitor_effect_add(turn, MONITOR_DRIVE);
    effect->node = watch->node;
    effect->drive = kind;
    effect->incarnation = watch->incarnation;
    effect->term = term;
    if (term.number == 0)
        monitor_say(turn, SAY_INFO, "event=start-monitor target=%s attempt=%" PRIu32, watch->name,
                    watch->attempts);
    tell_event(turn, HAPPENED_RESTARTING, watch, watch->attempts, "");
}

/* ---- beats ---- */

static void stop_accept(struct monitor_turn *turn, struct watch *watch, uint64_t incarnation)
{
    watch->stopped = incarnation;
    watch->condemned = 0;
    watch->is_lost = false;
    watch->is_hung = false;
    watch_move(turn, watch, WATCH_STOPPED);
}

static void revive(struct monitor_turn *turn, struct watch *watch)
{
    if (turn->monitor->config.mutation != MONITOR_NO_INCARNATION) watch->condemned = 0;
    watch->is_awaited = false;
    watch->is_hung = false;
    watch->suspicion_told = false;
    watch->start_failed = false;
    bool is_up = watch->beat.state == BEAT_UP;
    watch_move(turn, watch, is_up ? WATCH_UP : WATCH_STARTING);
    if (!is_up || !watch->is_lost) return;
    if (watch->lost != watch->incarnation && watch->beat.replayed > 0)
        tell_event(turn, HAPPENED_REPLAYED, watch, watch->beat.replayed, "");
    tell_event(turn, HAPPENED_RESUMED, watch, watch->lost_ms, "");
    watch->is_lost = false;
}

/* What the last beat means; `is_new`: it is the first of its incarnation. */
static void beat_judge(struct monitor_turn *turn, struct watch *watch, bool is_new)
{
    bool is_any = turn->monitor->config.mutation == MONITOR_NO_INCARNATION;
    bool is_meant = watch->incarnation == watch->condemned && is_stuck(turn, watch);
    if (watch->condemned != 0 && (is_meant || is_any))
        order(turn, watch, ORDER_KILL, watch->incarnation);
    bool is_replaced = is_being_started(watch) && (watch->is_driven || watch->is_awaited);
    /* It is about to be killed, or the beat was on its way when it was. */
    if (is_replaced && !is_new) return;

    if (watch->state == WATCH_STOPPED) {
        bool is_wanted = watch->incarnation != watch->stopped && !is_stopping(&watch->beat);
        if (is_wanted && !watch->stops_next) {
            revive(turn, watch);
            return;
        }
        if (watch->incarnation != watch->stopped) watch->stops_next = false;
        watch->stopped = watch->incarnation;
        /* One that hangs can't do what it is told. */
        if (is_stuck(turn, watch)) {
            order(turn, watch, ORDER_KILL, watch->stopped);
        } else if (!is_stopping(&watch->beat)) {
            order(turn, watch, ORDER_STOP, watch->stopped);
        }
        return;
    }
    if (is_stopping(&watch->beat)) {
        stop_accept(turn, watch, watch->incarnation);
        tell_event(turn, HAPPENED_STOPPED, watch, 0, "");
        return;
    }
    if (watch->is_hung && is_stuck(turn, watch)) return;
    revive(turn, watch);
}

void watch_beat(struct monitor_turn *turn, struct watch *watch, const struct datagram *datagram)
{
    const struct beat *beat = &datagram->beat;
    bool is_new = datagram->incarnation != watch->incarnation;
    if (is_new) {
        if (watch->incarnation != 0) watch_lose(watch, watch->silent_ms);
        watch->incarnation = datagram->incarnation;
        watch->life_ms = 0;
        watch->known = (struct event_place){0};
        watch->offered = (struct event_place){0};
    }
    if (is_new || beat->progress != watch->beat.progress || beat->state != watch->beat.state)
        watch->stuck_ms = 0;
    if (event_place_compare(beat->events, watch->known) > 0) watch->known = beat->events;
    watch->beat = *beat;
    watch->silent_ms = 0;
    monitor_see_term(turn, beat->seen);
    monitor_see_term(turn, event_term_back(beat->events.term));
    beat_judge(turn, watch, is_new);
}

/* ---- time ---- */

static bool is_well(const struct monitor_turn *turn, const struct watch *watch)
{
    return watch->incarnation != 0 && watch->silent_ms <= turn->monitor->config.patience_ms &&
           !is_stuck(turn, watch);
}

static void suspect(struct monitor_turn *turn, struct watch *watch)
{
    bool is_silent = watch->silent_ms > turn->monitor->config.patience_ms;
    if (!is_alive(watch) || (!is_silent && !is_stuck(turn, watch))) return;
    watch->is_hung = !is_silent;
    watch_lose(watch, is_silent ? watch->silent_ms : watch->stuck_ms);
    watch_move(turn, watch, WATCH_SUSPECTED);
    tell_suspicion(turn, watch);
}

static void await(struct monitor_turn *turn, struct watch *watch)
{
    /* What takes longer to start than we wait would else be killed at it again and again. */
    uint32_t vain = watch->attempts > 0 ? watch->attempts - 1 : 0;
    uint64_t timeout_ms = (uint64_t)turn->monitor->config.start_timeout_ms
                          << (vain < AWAIT_DOUBLINGS ? vain : AWAIT_DOUBLINGS);
    if (!watch->is_awaited || watch->awaited_ms <= timeout_ms) return;
    if (watch->state == WATCH_STOPPED) {
        watch->is_awaited = false;
        watch->stops_next = false;
        return;
    }
    char text[DATAGRAM_TEXT_SIZE];
    snprintf(text, sizeof text, "it was started, and not heard of for %" PRIu64 " ms", timeout_ms);
    start_failed(turn, watch, text);
}

static void act_as_leader(struct monitor_turn *turn, struct watch *watch)
{
    bool is_unheard =
        watch->state == WATCH_UNKNOWN && watch->silent_ms > turn->monitor->config.patience_ms;
    if (!is_unheard && watch->state != WATCH_SUSPECTED && !is_being_started(watch)) return;
    /* Of what was never heard nothing is known that could be killed, unless it is in the way. */
    bool may_be_there = watch->incarnation != 0 || watch->start_failed;
    drive(turn, watch, may_be_there ? DRIVE_RESTART : DRIVE_START, turn->monitor->election.own);
}

/* Without a majority nobody leads, so anybody may start a monitor; the higher ones do it first. */
static void act_as_any(struct monitor_turn *turn, struct watch *watch)
{
    const struct monitor *monitor = turn->monitor;
    if (watch->position == NO_POSITION || is_alive(watch)) return;
    uint32_t higher = monitor->election.config.count - 1 - monitor->election.config.self;
    uint64_t patience_ms = monitor->config.patience_ms;
    if (watch->silent_ms <= 2 * patience_ms + higher * (patience_ms / 2)) return;
    drive(turn, watch, DRIVE_START, (struct term){0});
}

static void count_time(struct watch *watch, uint64_t elapsed_ms)
{
    watch->silent_ms += elapsed_ms;
    watch->stuck_ms += elapsed_ms;
    watch->life_ms += elapsed_ms;
    if (watch->is_lost) watch->lost_ms += elapsed_ms;
    if (watch->is_awaited) watch->awaited_ms += elapsed_ms;
    if (watch->state != WATCH_UP || watch->life_ms < LIFE_ENOUGH_MS) return;
    watch->backoff_ms = 0;
    watch->attempts = 0;
    watch->broken_told = false;
    watch->problem[0] = '\0';
}

void watch_tick(struct monitor_turn *turn, struct watch *watch, uint64_t elapsed_ms)
{
    const struct monitor *monitor = turn->monitor;
    count_time(watch, elapsed_ms);
    if (watch->node == monitor->self) return;
    suspect(turn, watch);
    await(turn, watch);
    if (watch->state == WATCH_STOPPED || watch->is_driven || watch->is_awaited) return;
    if (turn->now_ms < watch->retry_ms) return;
    if (monitor_acts(monitor, turn->now_ms)) {
        act_as_leader(turn, watch);
    } else if (!election_leads(&monitor->election, turn->now_ms)) {
        act_as_any(turn, watch);
    }
}

/* ---- from outside ---- */

void watch_driven(struct monitor_turn *turn, struct watch *watch, const struct error *error)
{
    if (!watch->is_driven) return;
    watch->is_driven = false;
    if (error != NULL) {
        /* It may have been started all the same, and is to be stopped then. */
        if (watch->state != WATCH_STOPPED) watch->stops_next = false;
        watch->is_awaited = watch->stops_next;
        watch->awaited_ms = 0;
        problem_set(watch, error->text);
        monitor_say(turn, SAY_WARN, "event=drive-failed target=%s error=\"%s\"", watch->name,
                    watch->problem);
        if (is_being_started(watch)) start_failed(turn, watch, error->text);
        /* Meanwhile it got well by itself, and perhaps nobody has killed it. */
        if (is_being_started(watch) && is_well(turn, watch)) revive(turn, watch);
        return;
    }
    watch->restarts++;
    turn->monitor->has_news = true;
    watch->is_awaited = is_being_started(watch) || watch->stops_next;
    watch->awaited_ms = 0;
}

void watch_ended(struct monitor_turn *turn, struct watch *watch, const struct error *error)
{
    if (watch->is_driven || watch->state == WATCH_STOPPED) return;
    problem_set(watch, error->text);
    /* Nobody has to wait for a beat of it any more. */
    if (is_being_started(watch) && watch->is_awaited) start_failed(turn, watch, error->text);
}

void watch_stop(struct monitor_turn *turn, struct watch *watch)
{
    if (watch->state == WATCH_STOPPED) return;
    if (is_being_started(watch)) watch->stops_next = watch->is_driven || watch->is_awaited;
    stop_accept(turn, watch, watch->incarnation);
    order(turn, watch, ORDER_STOP, watch->stopped);
    tell_event(turn, HAPPENED_STOPPED, watch, 0, "");
}

void watch_take_over(struct watch *watch)
{
    if (watch->state == WATCH_UNKNOWN) watch->silent_ms = 0;
}

void watch_adopt_stop(struct monitor_turn *turn, struct watch *watch, const struct watched *watched)
{
    if (watch->state == WATCH_STOPPED) return;
    uint64_t stopped = watched->incarnation;
    if (stopped == 0 && !is_alive(watch)) {
        stopped = watch->incarnation; /* He has never heard it: his word is for the last one. */
    }
    bool is_another = watch->incarnation != 0 && watch->incarnation != stopped;
    if (is_another && (is_alive(watch) || watch->incarnation > stopped)) return;
    if (is_being_started(watch)) watch->stops_next = watch->is_driven || watch->is_awaited;
    stop_accept(turn, watch, stopped);
}

void watch_adopt_want(struct monitor_turn *turn, struct watch *watch)
{
    if (watch->state != WATCH_STOPPED) return;
    /* Somebody hears it; if we don't, we will notice. */
    watch->stops_next = false;
    watch->is_awaited = false;
    watch->silent_ms = 0;
    watch->stuck_ms = 0;
    watch_move(turn, watch, WATCH_STARTING);
}

void watch_describe(const struct watch *watch, struct watched *out)
{
    bool is_told = watch->state == WATCH_STOPPED && watch->incarnation == 0;
    /* One that is heard after each start and dies of it is as broken as one that can't be. */
    bool is_broken = watch->state == WATCH_SUSPECTED && watch->broken_told;
    *out = (struct watched){
        .role = watch->role,
        .state = is_broken ? WATCH_BROKEN : watch->state,
        .incarnation = is_told ? watch->stopped : watch->incarnation,
        .uptime_ms = watch->beat.uptime_ms,
        .silent_ms = watch->silent_ms,
        .restarts = watch->restarts,
        .resident_bytes = watch->beat.resident_bytes,
        .job_count = watch->beat.job_count,
    };
    memcpy(out->name, watch->name, sizeof out->name);
    memcpy(out->problem, watch->problem, sizeof out->problem);
}
