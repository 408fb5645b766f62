/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.c - events in: where each datagram goes.
 *
 * Every datagram first passes a replay guard (cluster/role/replay_guard.h): a heartbeat the node's
 * guard for heartbeats, a message of another monitor a second one, an operator's request one of a
 * small table. Only challenges are taken as they come: they prove themselves by the number they
 * answer.
 */
#include "cluster/role/monitor/monitor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/hash.h"
#include "engine/base/memory.h"
#include "cluster/role/monitor/monitor_state.h"

/* A monitor is two receivers under one name, its heartbeat and itself. Sequences of what is sent to
 * heartbeats begin here, so that a challenge tells which of the two it is from. */
#define NODE_SEQUENCES ((uint64_t)1 << 63)

/* ---- the election ---- */

/* A change of state has consequences before targets are judged: a new leader waits for objections.
 */
static void note_election(struct monitor_turn *turn)
{
    struct monitor *monitor = turn->monitor;
    enum election_state state = monitor->election.state;
    if (state == monitor->state_said) return;
    monitor->state_said = state;
    monitor->has_news = true;
    monitor_say(turn, SAY_INFO, "event=election state=%s term=%" PRIu64,
                election_state_names[state], monitor->election.highest.number);
    if (state != ELECTION_LEADER) return;

    monitor->settled_ms = turn->now_ms + monitor->config.lease_ms / 4;
    monitor->event_sequence = 0;
    for (uint32_t i = 0; i < monitor->config.node_count; i++) {
        target_take_over(&monitor->targets[i]);
    }
    monitor_record(turn, HAPPENED_ELECTED, &monitor->targets[monitor->self], 0, "");
}

/* ---- hearing ---- */

static void hear_heartbeat(struct monitor_turn *turn, struct target *target,
                           const struct monitor_event *event)
{
    if (event->datagram->heartbeat.role != target->role) return;
    /* Not by `silent_ms`: that begins anew when the leader has heard a node that we do not. */
    bool is_missed = replay_guard_idle_ms(&target->heartbeats, turn->now_ms) >=
                     turn->monitor->config.failure_timeout_ms / 2;
    if (monitor_check_replay(turn, &target->heartbeats, event, is_missed) != REPLAY_TAKE) return;
    target->address = event->source;
    target_heartbeat(turn, target, event->datagram);
}

/* Two cluster files could have two majorities, or two ideas of when a lease ends. */
static bool is_of_our_cluster(struct monitor_turn *turn, struct target *target,
                              const struct datagram *datagram)
{
    const struct monitor *monitor = turn->monitor;
    if (datagram->kind == DATAGRAM_ELECTION)
        target->differs = datagram->election.cluster != monitor->cluster;
    if (!target->differs) return true;
    bool is_due =
        target->differs_said_ms == 0 || turn->now_ms - target->differs_said_ms >= DIFFERS_PAUSE_MS;
    if (is_due) {
        target->differs_said_ms = turn->now_ms;
        monitor_say(turn, SAY_ERROR,
                    "event=cluster-file-differs target=%s reason=\"its monitors, lease, "
                    "failure_timeout or heartbeat_period are not ours: it is not heard\"",
                    target->name);
    }
    return false;
}

static void hear_peer(struct monitor_turn *turn, struct target *target,
                      const struct monitor_event *event)
{
    struct monitor *monitor = turn->monitor;
    const struct datagram *datagram = event->datagram;
    if (target->position == NO_POSITION || target->node == monitor->self) return;
    bool is_missed =
        replay_guard_idle_ms(&target->talk, turn->now_ms) >= monitor->config.failure_timeout_ms / 2;
    enum replay_guard_answer answer = monitor_check_replay(turn, &target->talk, event, is_missed);
    if (answer != REPLAY_TAKE && answer != REPLAY_LATE) return;
    if (!is_of_our_cluster(turn, target, datagram)) return;

    if (datagram->kind == DATAGRAM_VIEW) {
        tell_hear_view(turn, target, &datagram->view, answer);
    } else if (datagram->kind == DATAGRAM_EVENTS) {
        tell_hear_events(turn, target, &datagram->events);
    } else {
        struct election_outs outs = {0};
        election_hear(&monitor->election, target->position, &datagram->election, turn->now_ms,
                      &outs);
        monitor_send_election(turn, &outs);
    }
}

static struct operator_entry *operator_find(struct monitor *monitor, const char *name)
{
    for (uint32_t i = 0; i < OPERATORS_MAX; i++) {
        if (strcmp(monitor->operators[i].name, name) == 0) return &monitor->operators[i];
    }
    return NULL;
}

/* Takes the place that was used the longest ago, never that of an operator who is there: else a
 * replayed request could push it out. NULL: all are taken. */
static struct operator_entry *operator_make(struct monitor *monitor, const char *name,
                                            uint64_t now_ms)
{
    struct operator_entry *oldest = NULL;
    for (uint32_t i = 0; i < OPERATORS_MAX; i++) {
        struct operator_entry *entry = &monitor->operators[i];
        bool is_there = entry->address.size > 0 && now_ms - entry->used_ms <= OPERATOR_IDLE_MS;
        if (is_there) continue;
        if (oldest == NULL || entry->used_ms < oldest->used_ms) oldest = entry;
    }
    if (oldest == NULL) return NULL;
    *oldest = (struct operator_entry){.used_ms = now_ms};
    memcpy(oldest->name, name, sizeof oldest->name);
    return oldest;
}

static void hear_ask(struct monitor_turn *turn, const struct monitor_event *event)
{
    struct monitor *monitor = turn->monitor;
    const struct datagram *datagram = event->datagram;
    struct operator_entry *entry = operator_find(monitor, datagram->from);
    if (entry == NULL) entry = operator_make(monitor, datagram->from, turn->now_ms);
    if (entry == NULL) return; /* The operator asks again. */
    if (monitor_check_replay(turn, &entry->guard, event, true) != REPLAY_TAKE) return;
    entry->used_ms = turn->now_ms;
    entry->address = event->source;

    const struct ask *ask = &datagram->ask;
    entry->wants_view = ask->kind == ASK_VIEW;
    if (ask->kind == ASK_VIEW) {
        tell_operator(turn, entry);
        return;
    }
    struct target *target = monitor_find(monitor, ask->node);
    if (target == NULL || !election_leads(&monitor->election, turn->now_ms)) return;
    if (ask->kind == ASK_STOP) target_stop(turn, target);
    if (ask->kind == ASK_KILLED) monitor_record(turn, HAPPENED_KILLED, target, 0, "");
}

/* The receiver did not accept what we sent: it is sent again, now with the number it demands. */
static void hear_challenge(struct monitor_turn *turn, struct target *target,
                           const struct datagram *datagram)
{
    struct monitor *monitor = turn->monitor;
    uint64_t incarnation = monitor->config.incarnation;
    const struct challenge *challenge = &datagram->challenge;
    if (target == NULL) {
        struct operator_entry *entry = operator_find(monitor, datagram->from);
        if (entry == NULL || !replay_guard_challenged(&entry->sender, incarnation, challenge))
            return;
        if (entry->wants_view) tell_operator(turn, entry);
    } else if (replay_guard_challenged(&target->to_node, incarnation, challenge)) {
        monitor->has_news = true;
    } else if (target->position != NO_POSITION &&
               replay_guard_challenged(&target->to_peer, incarnation, challenge)) {
        struct election_outs outs = {0};
        election_repeat(&monitor->election, target->position, turn->now_ms, &outs);
        monitor_send_election(turn, &outs);
        monitor->has_news = true;
    }
}

static void hear(struct monitor_turn *turn, const struct monitor_event *event)
{
    const struct datagram *datagram = event->datagram;
    if (strcmp(datagram->to, turn->monitor->name) != 0) return;
    struct target *target = monitor_find(turn->monitor, datagram->from);
    switch (datagram->kind) {
    case DATAGRAM_HEARTBEAT:
        if (target != NULL) hear_heartbeat(turn, target, event);
        break;
    case DATAGRAM_CHALLENGE:
        hear_challenge(turn, target, datagram);
        break;
    case DATAGRAM_ELECTION:
    case DATAGRAM_VIEW:
    case DATAGRAM_EVENTS:
        if (target != NULL) hear_peer(turn, target, event);
        break;
    case DATAGRAM_ASK:
        if (target == NULL && datagram->from[0] != '\0') hear_ask(turn, event);
        break;
    case DATAGRAM_ORDER:
    case DATAGRAM_KINDS:
        break;
    }
}

/* ---- time ---- */

/* The election first: whether we lead decides what may be done about targets. */
static void tick(struct monitor_turn *turn)
{
    struct monitor *monitor = turn->monitor;
    uint64_t elapsed_ms = turn->now_ms - monitor->tick_ms;
    if (elapsed_ms > MONITOR_TICK_MS) elapsed_ms = MONITOR_TICK_MS;
    monitor->tick_ms = turn->now_ms;

    struct election_outs outs = {0};
    election_tick(&monitor->election, turn->now_ms, &outs);
    monitor_send_election(turn, &outs);
    note_election(turn);
    for (uint32_t i = 0; i < monitor->config.node_count; i++) {
        target_tick(turn, &monitor->targets[i], elapsed_ms);
    }
    tell_tick(turn);
}

static void stop(struct monitor_turn *turn)
{
    struct election_outs outs = {0};
    election_resign(&turn->monitor->election, turn->now_ms, &outs);
    monitor_send_election(turn, &outs);
    note_election(turn);
    monitor_effect_add(turn, MONITOR_EXIT);
}

void monitor_step(struct monitor *monitor, const struct monitor_event *event,
                  struct monitor_effects *effects)
{
    struct monitor_turn turn = {.monitor = monitor, .now_ms = event->now_ms, .effects = effects};
    switch (event->kind) {
    case MONITOR_TICK:
        tick(&turn);
        break;
    case MONITOR_HEARD:
        hear(&turn, event);
        break;
    case MONITOR_DRIVEN:
        ASSERT(event->node < monitor->config.node_count);
        target_driven(&turn, &monitor->targets[event->node], event->error);
        break;
    case MONITOR_ENDED:
        ASSERT(event->node < monitor->config.node_count);
        target_ended(&turn, &monitor->targets[event->node], event->error);
        break;
    case MONITOR_STOP:
        stop(&turn);
        break;
    }
    note_election(&turn);
}

/* ---- creation ---- */

static status name_copy(char *out, struct text name, struct error *err)
{
    if (name.size == 0 || name.size >= DATAGRAM_NAME_SIZE)
        return error_set(err, STATUS_USAGE, "monitor: \"%.*s\" is not the name of a node",
                         TEXT_ARGS(name));
    memcpy(out, name.bytes, name.size);
    return STATUS_OK;
}

static status target_init(struct monitor *monitor, uint32_t node, uint32_t *monitor_count,
                          struct error *err)
{
    struct target *target = &monitor->targets[node];
    const struct monitor_node *config = &monitor->config.nodes[node];
    *target = (struct target){
        .role = config->role,
        .node = node,
        .position = NO_POSITION,
        .to_node = {.sequence = NODE_SEQUENCES, .challenged = NODE_SEQUENCES},
    };
    TRY(name_copy(target->name, config->name, err));
    if (config->role != NODE_MONITOR) return STATUS_OK;
    if (*monitor_count == ELECTION_MONITORS_MAX)
        return error_set(err, STATUS_LIMIT, "monitor: there are more than %d monitors",
                         ELECTION_MONITORS_MAX);
    target->position = *monitor_count;
    monitor->monitors[(*monitor_count)++] = node;
    return STATUS_OK;
}

/* Settings that the safety of the election rests on: all monitors must have the same. */
static uint64_t cluster_hash(const struct monitor *monitor, uint32_t monitor_count)
{
    const struct monitor_config *config = &monitor->config;
    uint64_t hash = hash_combine(monitor_count, config->lease_ms);
    hash = hash_combine(hash, config->failure_timeout_ms);
    hash = hash_combine(hash, config->heartbeat_period_ms);
    for (uint32_t i = 0; i < monitor_count; i++) {
        const char *name = monitor->targets[monitor->monitors[i]].name;
        hash = hash_combine(hash, hash_bytes(name, strlen(name)));
    }
    return hash;
}

static status monitor_init(struct monitor *monitor, uint64_t now_ms, struct error *err)
{
    const struct monitor_config *config = &monitor->config;
    TRY(name_copy(monitor->name, config->name, err));
    uint32_t monitor_count = 0;
    for (uint32_t i = 0; i < config->node_count; i++) {
        TRY(target_init(monitor, i, &monitor_count, err));
    }
    struct target *self = monitor_find(monitor, monitor->name);
    if (self == NULL || self->position == NO_POSITION)
        return error_set(err, STATUS_USAGE, "monitor: %s is not a monitor of this cluster",
                         monitor->name);
    monitor->self = self->node;
    const struct election_config election = {
        .self = self->position,
        .count = monitor_count,
        .lease_ms = config->lease_ms,
        .seed = random_u64(&monitor->random),
        .mutation = config->election_mutation,
    };
    election_init(&monitor->election, &election, now_ms);
    monitor->cluster = cluster_hash(monitor, monitor_count);
    monitor->state_said = monitor->election.state;
    return STATUS_OK;
}

status monitor_create(const struct monitor_config *config, uint64_t now_ms, struct monitor **out,
                      struct error *err)
{
    if (config->node_count > MONITOR_NODES_MAX)
        return error_set(err, STATUS_LIMIT, "monitor: there are more than %d nodes",
                         MONITOR_NODES_MAX);
    struct monitor *monitor = memory_alloc(NULL, sizeof *monitor);
    if (monitor == NULL) return error_memory(err);
    *monitor =
        (struct monitor){.config = *config, .tick_ms = now_ms, .random = {.state = config->seed}};
    monitor->targets = memory_alloc(NULL, sizeof *monitor->targets * config->node_count);
    status result =
        monitor->targets == NULL ? error_memory(err) : monitor_init(monitor, now_ms, err);
    if (result != STATUS_OK) {
        monitor_destroy(monitor);
        return result;
    }
    *out = monitor;
    return STATUS_OK;
}

void monitor_destroy(struct monitor *monitor)
{
    if (monitor == NULL) return;
    memory_free(NULL, monitor->targets, sizeof *monitor->targets * monitor->config.node_count);
    memory_free(NULL, monitor, sizeof *monitor);
}

const struct election *monitor_election(const struct monitor *monitor)
{
    return &monitor->election;
}

void monitor_targets(const struct monitor *monitor, uint32_t node, struct monitored *out)
{
    ASSERT(node < monitor->config.node_count);
    target_describe(&monitor->targets[node], out);
}
