/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_send.c - effects out: lines for the log, datagrams, the election's messages, events. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/array.h"
#include "engine/base/assert.h"
#include "cluster/role/monitor/monitor_state.h"

struct target *monitor_find(struct monitor *monitor, const char *name)
{
    for (uint32_t i = 0; i < monitor->config.node_count; i++) {
        if (strcmp(monitor->targets[i].name, name) == 0) return &monitor->targets[i];
    }
    return NULL;
}

/* ---- effects ---- */

struct monitor_effect *monitor_effect_add(struct monitor_turn *turn, enum monitor_effect_kind kind)
{
    struct monitor_effects *effects = turn->effects;
    struct monitor_effect *effect = effects->failed ? NULL : array_add(effects, NULL);
    if (effect == NULL) {
        effects->failed = true;
        effect = &effects->unseen;
    }
    *effect = (struct monitor_effect){.kind = kind};
    return effect;
}

void monitor_effects_reset(struct monitor_effects *effects)
{
    effects->count = 0;
}

void monitor_effects_done(struct monitor_effects *effects)
{
    array_done(effects, NULL);
}

void monitor_say(struct monitor_turn *turn, enum say_level level, const char *format, ...)
{
    struct monitor_effect *effect = monitor_effect_add(turn, MONITOR_SAY);
    effect->level = level;
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(effect->line, sizeof effect->line, format, arguments);
    va_end(arguments);
    ASSERT(size >= 0);
}

/* ---- writing ---- */

static struct datagram *datagram_begin(struct monitor_turn *turn, struct monitor_effect *effect,
                                       const char *to, enum datagram_kind kind)
{
    effect->datagram.kind = kind;
    memcpy(effect->datagram.from, turn->monitor->name, sizeof effect->datagram.from);
    memcpy(effect->datagram.to, to, sizeof effect->datagram.to);
    return &effect->datagram;
}

static struct datagram *write_to(struct monitor_turn *turn, const struct monitor_address *address,
                                 const char *to, struct replay_sender *sender,
                                 enum datagram_kind kind)
{
    if (address->size == 0) return NULL;
    struct monitor_effect *effect = monitor_effect_add(turn, MONITOR_SEND);
    effect->address = *address;
    struct datagram *datagram = datagram_begin(turn, effect, to, kind);
    replay_guard_stamp(sender, turn->monitor->config.incarnation, datagram);
    return datagram;
}

struct datagram *monitor_write_node(struct monitor_turn *turn, struct target *target,
                                    enum datagram_kind kind)
{
    return write_to(turn, &target->address, target->name, &target->to_node, kind);
}

struct datagram *monitor_write_operator(struct monitor_turn *turn, struct operator_entry *entry,
                                        enum datagram_kind kind)
{
    return write_to(turn, &entry->address, entry->name, &entry->sender, kind);
}

struct datagram *monitor_write_peer(struct monitor_turn *turn, struct target *target,
                                    enum datagram_kind kind)
{
    ASSERT(target->position != NO_POSITION);
    struct monitor_effect *effect = monitor_effect_add(turn, MONITOR_SEND_TO_MONITOR);
    effect->node = target->node;
    struct datagram *datagram = datagram_begin(turn, effect, target->name, kind);
    replay_guard_stamp(&target->to_peer, turn->monitor->config.incarnation, datagram);
    return datagram;
}

enum replay_guard_answer monitor_check_replay(struct monitor_turn *turn, struct replay_guard *guard,
                                              const struct monitor_event *event,
                                              bool older_is_welcome)
{
    struct monitor *monitor = turn->monitor;
    const struct datagram *datagram = event->datagram;
    enum replay_guard_answer answer = replay_guard_take(guard, datagram, older_is_welcome,
                                                        turn->now_ms, random_u64(&monitor->random));
    if (answer == REPLAY_CHALLENGE) {
        struct monitor_effect *effect = monitor_effect_add(turn, MONITOR_SEND);
        effect->address = event->source;
        struct datagram *reply = datagram_begin(turn, effect, datagram->from, DATAGRAM_CHALLENGE);
        reply->incarnation = monitor->config.incarnation;
        reply->challenge = replay_guard_challenge(guard, datagram);
    }
    return answer;
}

/* ---- the election ---- */

static void election_send_one(struct monitor_turn *turn, uint32_t position,
                              const struct election_message *message)
{
    struct monitor *monitor = turn->monitor;
    struct target *target = &monitor->targets[monitor->monitors[position]];
    struct datagram *datagram = monitor_write_peer(turn, target, DATAGRAM_ELECTION);
    datagram->election = *message;
    datagram->election.cluster = monitor->cluster;
    if (message->kind == ELECTION_PEER)
        datagram->election.heard_ago =
            election_heard_ago(&monitor->election, position, turn->now_ms);
}

void monitor_send_election(struct monitor_turn *turn, const struct election_outs *outs)
{
    const struct election_config *config = &turn->monitor->election.config;
    for (uint32_t i = 0; i < outs->count; i++) {
        const struct election_out *out = &outs->items[i];
        uint32_t first = out->to == ELECTION_TO_ALL ? 0 : out->to;
        uint32_t end = out->to == ELECTION_TO_ALL ? config->count : out->to + 1;
        for (uint32_t position = first; position < end; position++) {
            if (position != config->self) election_send_one(turn, position, &out->message);
        }
    }
}

void monitor_see_term(struct monitor_turn *turn, struct term term)
{
    struct election_outs outs = {0};
    election_see_term(&turn->monitor->election, term, turn->now_ms, &outs);
    monitor_send_election(turn, &outs);
}

bool monitor_acts(const struct monitor *monitor, uint64_t now_ms)
{
    return election_leads(&monitor->election, now_ms) && now_ms >= monitor->settled_ms;
}

/* ---- events ---- */

static enum say_level level_of(enum cluster_event_kind kind)
{
    switch (kind) {
    case HAPPENED_BROKEN:
        return SAY_ERROR;
    case HAPPENED_SUSPECTED:
    case HAPPENED_HUNG:
    case HAPPENED_RESTARTING:
    case HAPPENED_FAILED:
        return SAY_WARN;
    default:
        return SAY_INFO;
    }
}

void monitor_record(struct monitor_turn *turn, enum cluster_event_kind kind,
                    const struct target *target, uint64_t number, const char *text)
{
    struct monitor *monitor = turn->monitor;
    if (!election_leads(&monitor->election, turn->now_ms)) return;
    struct cluster_event event = {
        .place = {.term = event_term(monitor->election.own), .sequence = ++monitor->event_sequence},
        .kind = kind,
        .incarnation = target->incarnation,
        .number = number,
    };
    memcpy(event.node, target->name, sizeof event.node);
    memcpy(event.text, text, strnlen(text, sizeof event.text - 1));
    cluster_history_add(&monitor->history, &event, turn->now_ms);
    monitor->has_news = true;
    monitor_say(
        turn, level_of(kind),
        "event=%s target=%s incarnation=%" PRIu64 " term=%" PRIu64 " number=%" PRIu64 "%s%.128s%s",
        cluster_event_names[kind], target->name, target->incarnation, monitor->election.own.number,
        number, text[0] == '\0' ? "" : " text=\"", text, text[0] == '\0' ? "" : "\"");
}
