/* SPDX-License-Identifier: Apache-2.0 */
/* election.h - the leader among the monitors: Bully's rule on Raft's ground.
 *
 * docs/explanation/election.md argues why there are never two leaders, and why there is soon one.
 * The sources: the highest monitor that can lead does (Garcia-Molina 1982, the Bully algorithm); it
 * has the votes of a majority for a term (Raft, Ongaro and Ousterhout 2014, §5.1 and §5.2); a vote
 * is a lease (Gray and Cheriton 1989; Ongaro's thesis §6.4.1).
 *
 *     QUIET     -> FOLLOWER   a lease has passed since the start
 *     FOLLOWER  -> CANDIDATE  no leader, eligible, no higher one is, and its turn has come
 *     CANDIDATE -> LEADER     votes of a majority
 *     CANDIDATE -> FOLLOWER   refused, out of time, or a higher term
 *     LEADER    -> FOLLOWER   the lease has ended, a higher term, or told to stop
 *
 * - A vote is a promise: for one lease from its giving it is given to no other term. The leader's
 *   RENEW prolongs it, again for a lease. A monitor that has just started gives none for one lease:
 *   it may have promised before, and unlike Raft's servers it keeps nothing on disk.
 * - A leader counts its lease from when it *sent* the round that a majority answered, and stops
 *   acting ELECTION_MARGIN of it earlier: so it ends before those promises do.
 * - Terms rise. A term is a number and its holder, ordered by number first, like a ballot of Paxos
 *   (Lamport 1998). A candidate takes the highest number it has heard of plus one, and a voter
 *   refuses a term lower than one it has heard of.
 * - A link is two-way when the other monitor says that it has heard us lately. A monitor is
 *   eligible when it has two-way links with a majority, itself included. Only an eligible one
 *   stands (the purpose of Raft's pre-vote, thesis §9.6), and a voter refuses a candidate while it
 *   has a two-way link with a higher one that is eligible: so the highest eligible one wins.
 * - A leader keeps office when a higher monitor returns. Bully's would not.
 *
 * Every change of state goes through one table, in election.c. Time is told with each call and is
 * the monitor's own: it never goes back, and says nothing about others' clocks.
 *
 * Messages that are handed in have passed cluster/role/replay_guard.h: they are not recordings.
 */
#ifndef CLUSTER_ROLE_MONITOR_ELECTION_H
#define CLUSTER_ROLE_MONITOR_ELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/random.h"
#include "cluster/wire/datagram.h"

enum {
    ELECTION_MONITORS_MAX = 16,
    ELECTION_MARGIN = 8, /* An eighth of the lease. */
    ELECTION_ROUNDS = 8  /* Answers to older ones don't count. */
};

enum election_state {
    ELECTION_QUIET,
    ELECTION_FOLLOWER,
    ELECTION_CANDIDATE,
    ELECTION_LEADER,
    ELECTION_STATES
};
extern const char *const election_state_names[ELECTION_STATES];

/* Bugs planted for the simulator, which has to find them. */
enum election_mutation {
    ELECTION_SOUND,
    ELECTION_NO_LEASE,      /* A leader acts for ever. */
    ELECTION_VOTES_AT_ONCE, /* Right after its start. */
    ELECTION_MUTATIONS
};

struct election_config {
    uint32_t self;  /* Position in the cluster file: the higher wins. */
    uint32_t count; /* Of monitors, 1..ELECTION_MONITORS_MAX. */
    uint32_t lease_ms;
    uint64_t seed;
    enum election_mutation mutation;
};

struct election_peer {
    uint64_t heard_ms;    /* When something of it was last accepted; 0: never. */
    uint64_t hears_us_ms; /* The last moment of which we know that it had heard us; 0: none. */
    bool eligible;        /* As it says. */
    struct term released; /* The last that it gave up, */
    uint64_t released_ms; /* and when: a request for it may still be on its way. */
    bool granted;         /* It votes for our term. */
    uint64_t granted_ms;  /* When we sent the round that it answered last. */
};

/* Read it freely; only election.c writes. */
struct election {
    struct election_config config;
    enum election_state state;
    uint64_t started_ms;
    struct term highest;  /* Heard of or made. */
    struct term promised; /* The term our vote is given to; number 0: none. */
    uint64_t promised_ms; /* Until then it is given to no other. */
    struct term leader;   /* The last term whose holder said that it leads; number 0: none. */
    uint64_t leader_ms;   /* Until then we take it for the leader. */
    struct term own;      /* Of our candidacy or office; number 0: neither. */
    uint64_t round;       /* Of our last STAND or RENEW, */
    uint64_t round_ms[ELECTION_ROUNDS]; /* and when the last ones were sent, by round modulo. */
    uint64_t next_round_ms;
    uint64_t stand_ms;     /* When we may stand; 0: no time was chosen. */
    uint64_t give_up_ms;   /* When a candidate gives up. */
    uint64_t lease_end_ms; /* Of a leader: until then it acts. */
    uint64_t next_peer_ms; /* When to say PEER to all, */
    bool said_eligible;    /* or earlier, when this has changed. */
    bool has_resigned;     /* For good: it is about to end. */
    struct random random;
    struct election_peer peers[ELECTION_MONITORS_MAX];
};

struct election_out {
    uint32_t to; /* Position of a peer, or ELECTION_TO_ALL: all others. */
    struct election_message message;
};
enum { ELECTION_OUT_MAX = 4 };
#define ELECTION_TO_ALL UINT32_MAX
/* PEER messages say for each receiver when it was last heard: the caller, sending to all, fills
 * `heard_ago` with election_heard_ago for each. */
struct election_outs {
    struct election_out items[ELECTION_OUT_MAX];
    uint32_t count;
};

/* Times are of a clock that begins above 0. Messages are appended to `out`. */
void election_init(struct election *election, const struct election_config *config,
                   uint64_t now_ms);
/* At least every eighth of a lease. */
void election_tick(struct election *election, uint64_t now_ms, struct election_outs *out);
void election_hear(struct election *election, uint32_t from, const struct election_message *message,
                   uint64_t now_ms, struct election_outs *out);
/* A node has seen this term: a leader of a lower one has lost office. */
void election_see_term(struct election *election, struct term term, uint64_t now_ms,
                       struct election_outs *out);
/* `peer` could not take what we sent it last: says it again. */
void election_repeat(const struct election *election, uint32_t peer, uint64_t now_ms,
                     struct election_outs *out);
/* Gives up office or candidacy for good, so that the others need not wait. */
void election_resign(struct election *election, uint64_t now_ms, struct election_outs *out);
/* Whether we may act at this moment. */
bool election_leads(const struct election *election, uint64_t now_ms);
/* The term we take for the leader's, perhaps our own; number 0: none. */
struct term election_leader(const struct election *election, uint64_t now_ms);
uint64_t election_heard_ago(const struct election *election, uint32_t peer, uint64_t now_ms);

#endif
