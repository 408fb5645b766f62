/* SPDX-License-Identifier: Apache-2.0 */
/* election.c - promises and leases.
 *
 * Safety is in four places: vote_give says until when a vote is given to no other term; votes_end
 * says until when a majority's votes last, counted from when they were requested; expire ends a
 * lease before anything late can prolong it; and the quiet time at the start outlasts forgotten
 * promises. All the rest, who stands when and who yields to whom, only decides how soon there is a
 * leader; it may be wrong for a while, since what it knows about others may be old. That is the
 * division of Paxos and Raft: timing decides progress, never safety (Raft §5.6).
 */
#include "cluster/role/monitor/election.h"

#include "engine/base/assert.h"
#include "engine/base/fault_injection.h"
#include "engine/base/hash.h"

const char *const election_state_names[ELECTION_STATES] = {
    [ELECTION_QUIET] = "quiet",
    [ELECTION_FOLLOWER] = "follower",
    [ELECTION_CANDIDATE] = "candidate",
    [ELECTION_LEADER] = "leader",
};

static const bool moves[ELECTION_STATES][ELECTION_STATES] = {
    [ELECTION_QUIET] = {[ELECTION_FOLLOWER] = true},
    [ELECTION_FOLLOWER] = {[ELECTION_CANDIDATE] = true},
    [ELECTION_CANDIDATE] = {[ELECTION_FOLLOWER] = true, [ELECTION_LEADER] = true},
    [ELECTION_LEADER] = {[ELECTION_FOLLOWER] = true},
};

static void election_move(struct election *election, enum election_state to)
{
    ASSERT(moves[election->state][to]);
    election->state = to;
}

/* ---- facts ---- */

static bool term_is_none(struct term term)
{
    return term.number == 0;
}

static bool term_equal(struct term a, struct term b)
{
    return term_compare(a, b) == 0;
}

static uint32_t lease_part(const struct election *election, uint32_t divisor)
{
    return election->config.lease_ms / divisor;
}

static uint32_t majority(const struct election *election)
{
    return election->config.count / 2 + 1;
}

static bool has_office(const struct election *election)
{
    return election->state == ELECTION_CANDIDATE || election->state == ELECTION_LEADER;
}

static bool promise_runs(const struct election *election, uint64_t now_ms)
{
    return !term_is_none(election->promised) && now_ms < election->promised_ms;
}

static bool peer_is_two_way(const struct election *election, uint32_t peer, uint64_t now_ms)
{
    uint64_t hears_us_ms = election->peers[peer].hears_us_ms;
    return hears_us_ms != 0 && now_ms - hears_us_ms <= election->config.lease_ms;
}

static uint32_t two_way_count(const struct election *election, uint32_t first, uint64_t now_ms)
{
    uint32_t count = 0;
    for (uint32_t i = first; i < election->config.count; i++) {
        if (i != election->config.self && peer_is_two_way(election, i, now_ms)) count++;
    }
    return count;
}

static bool is_eligible(const struct election *election, uint64_t now_ms)
{
    if (election->state == ELECTION_QUIET || election->has_resigned) return false;
    return two_way_count(election, 0, now_ms) + 1 >= majority(election);
}

static bool is_eligible_peer(const struct election *election, uint32_t peer, uint64_t now_ms)
{
    if (peer == election->config.self) return is_eligible(election, now_ms);
    return election->peers[peer].eligible && peer_is_two_way(election, peer, now_ms);
}

static bool higher_is_eligible(const struct election *election, uint32_t than, uint64_t now_ms)
{
    for (uint32_t i = than + 1; i < election->config.count; i++) {
        if (is_eligible_peer(election, i, now_ms)) return true;
    }
    return false;
}

/* ---- sending ---- */

static void say(struct election_outs *out, uint32_t to, struct election_message message)
{
    ASSERT(out->count < ELECTION_OUT_MAX);
    out->items[out->count++] = (struct election_out){.to = to, .message = message};
}

static void peer_say(const struct election *election, uint32_t to, uint64_t now_ms,
                     struct election_outs *out)
{
    say(out, to,
        (struct election_message){
            .kind = ELECTION_PEER,
            .term = election->highest,
            .eligible = is_eligible(election, now_ms),
            .heard_ago =
                to == ELECTION_TO_ALL ? UINT64_MAX : election_heard_ago(election, to, now_ms),
        });
}

static void round_say(const struct election *election, uint32_t to, struct election_outs *out)
{
    say(out, to,
        (struct election_message){
            .kind = election->state == ELECTION_LEADER ? ELECTION_RENEW : ELECTION_STAND,
            .term = election->own,
            .round = election->round,
        });
}

static void refuse(const struct election *election, uint32_t to, struct election_outs *out)
{
    say(out, to, (struct election_message){.kind = ELECTION_REFUSE, .term = election->highest});
}

/* ---- votes ---- */

/* A promise: until it ends, this vote is given to no other term. */
static void vote_give(struct election *election, struct term term, uint64_t now_ms)
{
    ASSERT(!promise_runs(election, now_ms) || term_equal(election->promised, term));
    election->promised = term;
    election->promised_ms = now_ms + election->config.lease_ms;
}

static void vote_send(struct election *election, uint32_t to,
                      const struct election_message *request, uint64_t now_ms,
                      struct election_outs *out)
{
    vote_give(election, request->term, now_ms);
    say(out, to,
        (struct election_message){
            .kind = ELECTION_GRANT, .term = request->term, .round = request->round});
}

/* A request that its own RELEASE has overtaken. A lease later it is from a holder that has
 * restarted and forgotten the term: then it counts. */
static bool term_was_released(const struct election *election, struct term term, uint64_t now_ms)
{
    const struct election_peer *peer = &election->peers[term.holder];
    return !term_is_none(peer->released) && term_compare(term, peer->released) <= 0 &&
           now_ms - peer->released_ms <= election->config.lease_ms;
}

/* Raft §5.2 with leases: no vote while a promise runs, none for an older term, none while there is
 * a leader; and Bully's rule on top. */
static bool vote_is_due(const struct election *election, struct term candidate, uint64_t now_ms)
{
    if (election->state == ELECTION_QUIET) return false;
    if (term_was_released(election, candidate, now_ms)) return false;
    if (promise_runs(election, now_ms)) return term_equal(election->promised, candidate);
    if (term_compare(candidate, election->highest) < 0) return false;
    if (!term_is_none(election_leader(election, now_ms))) return false;
    return !higher_is_eligible(election, candidate.holder, now_ms);
}

/* When the votes of a majority end, by the times at which they were requested; 0: there is none. */
static uint64_t votes_end(const struct election *election)
{
    uint64_t latest[ELECTION_MONITORS_MAX]; /* Latest first. */
    uint32_t count = 0;
    for (uint32_t i = 0; i < election->config.count; i++) {
        if (!election->peers[i].granted) continue;
        uint32_t place = count++;
        for (; place > 0 && latest[place - 1] < election->peers[i].granted_ms; place--) {
            latest[place] = latest[place - 1];
        }
        latest[place] = election->peers[i].granted_ms;
    }
    if (count < majority(election)) return 0;
    return latest[majority(election) - 1] + election->config.lease_ms -
           lease_part(election, ELECTION_MARGIN);
}

/* Asks all for their vote once more, and ourselves first. */
static void round_begin(struct election *election, uint64_t now_ms, struct election_outs *out)
{
    ASSERT(has_office(election));
    election->round++;
    election->round_ms[election->round % ELECTION_ROUNDS] = now_ms;
    election->next_round_ms =
        now_ms + lease_part(election, election->state == ELECTION_LEADER ? 4 : 8);

    vote_give(election, election->own, now_ms);
    struct election_peer *self = &election->peers[election->config.self];
    self->granted = true;
    self->granted_ms = now_ms;
    round_say(election, ELECTION_TO_ALL, out);
}

static void votes_count(struct election *election, uint64_t now_ms, struct election_outs *out)
{
    uint64_t end_ms = votes_end(election);
    if (end_ms <= now_ms) return;
    bool has_won = election->state == ELECTION_CANDIDATE;
    if (has_won) {
        election_move(election, ELECTION_LEADER);
        round_begin(election, now_ms, out); /* Tells all. */
    }
    election->lease_end_ms = end_ms;
}

/* ---- candidacy and office ---- */

static void stand(struct election *election, uint64_t now_ms, struct election_outs *out)
{
    election_move(election, ELECTION_CANDIDATE);
    election->own = (struct term){
        .number = election->highest.number + 1,
        .holder = election->config.self,
    };
    election->highest = election->own;
    election->stand_ms = 0;
    election->give_up_ms = now_ms + lease_part(election, 2);
    for (uint32_t i = 0; i < election->config.count; i++) {
        election->peers[i].granted = false;
    }
    round_begin(election, now_ms, out);
    votes_count(election, now_ms, out);
}

/* We never act under this term again: the voters that promised it are free. */
static void give_up(struct election *election, struct election_outs *out)
{
    ASSERT(has_office(election));
    say(out, ELECTION_TO_ALL,
        (struct election_message){.kind = ELECTION_RELEASE, .term = election->own});
    if (term_equal(election->promised, election->own)) election->promised = (struct term){0};
    election->own = (struct term){0};
    election_move(election, ELECTION_FOLLOWER);
}

/* Bully's order without its message storm: the highest stands first, and a random part keeps two
 * from standing at once (Raft §5.2, randomized timeouts). */
static void turn_choose(struct election *election, uint64_t now_ms)
{
    uint32_t step_ms = lease_part(election, 8);
    uint32_t higher = two_way_count(election, election->config.self + 1, now_ms);
    uint32_t jitter_ms = random_below(&election->random, step_ms + 1);
    election->stand_ms = now_ms + (uint64_t)step_ms * higher + jitter_ms;
}

static void follower_tick(struct election *election, uint64_t now_ms, struct election_outs *out)
{
    bool may_stand = term_is_none(election_leader(election, now_ms)) &&
                     !promise_runs(election, now_ms) && is_eligible(election, now_ms);
    if (!may_stand) {
        election->stand_ms = 0;
    } else if (election->stand_ms == 0) {
        turn_choose(election, now_ms);
    } else if (now_ms >= election->stand_ms) {
        if (higher_is_eligible(election, election->config.self, now_ms)) {
            turn_choose(election, now_ms);
        } else {
            stand(election, now_ms, out);
        }
    }
}

/* Ends what has run out, before anything else is looked at: a late vote must not revive a lease. */
static void expire(struct election *election, uint64_t now_ms, struct election_outs *out)
{
    switch (election->state) {
    case ELECTION_QUIET:
        if (now_ms - election->started_ms >= election->config.lease_ms)
            election_move(election, ELECTION_FOLLOWER);
        break;
    case ELECTION_CANDIDATE:
        if (now_ms >= election->give_up_ms) give_up(election, out);
        break;
    case ELECTION_LEADER:
        if (!election_leads(election, now_ms)) give_up(election, out);
        break;
    case ELECTION_FOLLOWER:
    case ELECTION_STATES:
        break;
    }
}

/* ---- hearing ---- */

static void hear_peer(struct election *election, uint32_t from,
                      const struct election_message *message, uint64_t now_ms)
{
    struct election_peer *peer = &election->peers[from];
    peer->eligible = message->eligible;
    /* Longer ago than our clock reaches: it heard an earlier incarnation of ours. */
    peer->hears_us_ms = message->heard_ago < now_ms ? now_ms - message->heard_ago : 0;
}

static void hear_stand(struct election *election, uint32_t from,
                       const struct election_message *message, uint64_t now_ms,
                       struct election_outs *out)
{
    if (election->state == ELECTION_CANDIDATE && from > election->config.self)
        give_up(election, out);
    if (vote_is_due(election, message->term, now_ms)) {
        vote_send(election, from, message, now_ms, out);
    } else {
        refuse(election, from, out);
    }
}

static void hear_grant(struct election *election, uint32_t from,
                       const struct election_message *message, uint64_t now_ms,
                       struct election_outs *out)
{
    if (!has_office(election) || !term_equal(message->term, election->own)) return;
    if (message->round > election->round) return;
    if (election->round - message->round >= ELECTION_ROUNDS) return;

    struct election_peer *peer = &election->peers[from];
    uint64_t asked_ms = election->round_ms[message->round % ELECTION_ROUNDS];
    if (!peer->granted || asked_ms > peer->granted_ms) peer->granted_ms = asked_ms;
    peer->granted = true;
    votes_count(election, now_ms, out);
}

static void hear_refuse(struct election *election, const struct election_message *message,
                        struct election_outs *out)
{
    if (election->state != ELECTION_CANDIDATE) return;
    if (term_compare(message->term, election->own) > 0) give_up(election, out);
}

/* The sender leads. A term lower than one we have heard of is no objection: that one was only stood
 * for. Two leaders cannot be, and a leader that was paused finds its own lease ended first. */
static void hear_renew(struct election *election, uint32_t from,
                       const struct election_message *message, uint64_t now_ms,
                       struct election_outs *out)
{
    if (term_was_released(election, message->term, now_ms)) return;
    bool is_higher = term_compare(message->term, election->own) > 0;
    if (election->state == ELECTION_CANDIDATE || (has_office(election) && is_higher))
        give_up(election, out);

    struct term leader = election_leader(election, now_ms);
    if (!term_is_none(leader) && term_compare(leader, message->term) > 0) {
        refuse(election, from, out);
        return;
    }
    election->leader = message->term;
    election->leader_ms = now_ms + election->config.lease_ms;
    if (election->state == ELECTION_QUIET) return;
    if (promise_runs(election, now_ms) && !term_equal(election->promised, message->term)) {
        refuse(election, from, out);
        return;
    }
    vote_send(election, from, message, now_ms, out);
}

static void hear_release(struct election *election, const struct election_message *message,
                         uint64_t now_ms)
{
    struct election_peer *peer = &election->peers[message->term.holder];
    peer->released = message->term;
    peer->released_ms = now_ms;
    if (term_equal(election->promised, message->term)) election->promised = (struct term){0};
    if (term_equal(election->leader, message->term)) election->leader = (struct term){0};
}

/* Only its holder stands for, renews or releases a term. */
static bool message_is_sane(const struct election *election, uint32_t from,
                            const struct election_message *message)
{
    if (from >= election->config.count || from == election->config.self) return false;
    switch (message->kind) {
    case ELECTION_STAND:
    case ELECTION_RENEW:
    case ELECTION_RELEASE:
        return message->term.holder == from && !term_is_none(message->term);
    case ELECTION_PEER:
    case ELECTION_GRANT:
    case ELECTION_REFUSE:
        return true;
    case ELECTION_KINDS:
        break;
    }
    return false;
}

static void highest_raise(struct election *election, struct term term)
{
    if (term_compare(term, election->highest) > 0) election->highest = term;
}

/* ---- from outside ---- */

void election_init(struct election *election, const struct election_config *config, uint64_t now_ms)
{
    ASSERT(config->count >= 1);
    ASSERT(config->count <= ELECTION_MONITORS_MAX);
    ASSERT(config->self < config->count);
    ASSERT(config->lease_ms >= ELECTION_MARGIN);
    ASSERT(now_ms > 0);
    *election = (struct election){
        .config = *config,
        .state = IS_PLANTED(config->mutation, ELECTION_VOTES_AT_ONCE) ? ELECTION_FOLLOWER
                                                                      : ELECTION_QUIET,
        .started_ms = now_ms,
        .random = {.state = hash_combine(config->seed, config->self)},
    };
}

void election_tick(struct election *election, uint64_t now_ms, struct election_outs *out)
{
    expire(election, now_ms, out);
    if (election->state == ELECTION_FOLLOWER) {
        follower_tick(election, now_ms, out);
    } else if (has_office(election) && now_ms >= election->next_round_ms) {
        round_begin(election, now_ms, out);
        votes_count(election, now_ms, out);
    }

    /* After the round: a monitor that was away hears of the leader before it finds itself eligible.
     */
    bool eligible = is_eligible(election, now_ms);
    if (now_ms >= election->next_peer_ms || eligible != election->said_eligible) {
        peer_say(election, ELECTION_TO_ALL, now_ms, out);
        election->next_peer_ms = now_ms + lease_part(election, 4);
        election->said_eligible = eligible;
    }
}

void election_hear(struct election *election, uint32_t from, const struct election_message *message,
                   uint64_t now_ms, struct election_outs *out)
{
    if (!message_is_sane(election, from, message)) return;
    expire(election, now_ms, out);
    election->peers[from].heard_ms = now_ms;
    highest_raise(election, message->term);
    switch (message->kind) {
    case ELECTION_PEER:
        hear_peer(election, from, message, now_ms);
        break;
    case ELECTION_STAND:
        hear_stand(election, from, message, now_ms, out);
        break;
    case ELECTION_GRANT:
        hear_grant(election, from, message, now_ms, out);
        break;
    case ELECTION_REFUSE:
        hear_refuse(election, message, out);
        break;
    case ELECTION_RENEW:
        hear_renew(election, from, message, now_ms, out);
        break;
    case ELECTION_RELEASE:
        hear_release(election, message, now_ms);
        break;
    case ELECTION_KINDS:
        break;
    }
}

void election_see_term(struct election *election, struct term term, uint64_t now_ms,
                       struct election_outs *out)
{
    expire(election, now_ms, out);
    highest_raise(election, term);
    if (has_office(election) && term_compare(term, election->own) > 0) give_up(election, out);
}

void election_repeat(const struct election *election, uint32_t peer, uint64_t now_ms,
                     struct election_outs *out)
{
    if (has_office(election)) round_say(election, peer, out);
    peer_say(election, peer, now_ms, out);
}

void election_resign(struct election *election, uint64_t now_ms, struct election_outs *out)
{
    election->has_resigned = true;
    if (has_office(election)) give_up(election, out);
    peer_say(election, ELECTION_TO_ALL, now_ms, out);
}

bool election_leads(const struct election *election, uint64_t now_ms)
{
    if (election->state != ELECTION_LEADER) return false;
    return now_ms < election->lease_end_ms ||
           IS_PLANTED(election->config.mutation, ELECTION_NO_LEASE);
}

struct term election_leader(const struct election *election, uint64_t now_ms)
{
    if (election_leads(election, now_ms)) return election->own;
    if (now_ms < election->leader_ms) return election->leader;
    return (struct term){0};
}

uint64_t election_heard_ago(const struct election *election, uint32_t peer, uint64_t now_ms)
{
    uint64_t heard_ms = election->peers[peer].heard_ms;
    return heard_ms == 0 ? UINT64_MAX : now_ms - heard_ms;
}
