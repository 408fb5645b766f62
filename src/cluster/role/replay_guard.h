/* SPDX-License-Identifier: Apache-2.0 */
/* replay_guard.h - rejects datagrams that are replayed or stale.
 *
 * The MAC of a datagram proves its sender, not its time. So each receiver gives each sender a nonce
 * that has to be in every datagram (CHALLENGE; nonces against replay: Needham and Schroeder 1978),
 * and takes a sender's datagrams once, and only in rising order of (incarnation, sequence).
 * Datagrams sent at one moment may overtake each other: a window of the last REPLAY_WINDOW numbers,
 * as IPsec has it (RFC 4303, 3.4.3), lets a late one in once, as REPLAY_LATE, which is good enough
 * for a fact that holds whenever it arrives. A sender that begins again lower, because it lost its
 * disk or its clock went back, proves itself with a fresh nonce; so it is not locked out for ever.
 *
 * A nonce is valid while it is in use. A sender that was silent for longer than
 * REPLAY_GUARD_NONCE_MS needs a fresh one, since a datagram with the last one may have been held
 * back all that time.
 *
 * Pure: time and random numbers are parameters.
 */
#ifndef CLUSTER_ROLE_REPLAY_GUARD_H
#define CLUSTER_ROLE_REPLAY_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/wire/datagram.h"

enum { REPLAY_GUARD_NONCE_MS = 5000, REPLAY_CHALLENGE_PAUSE_MS = 50, REPLAY_WINDOW = 64 };

/* The receiver's side. Zeroed: nothing was heard yet. */
struct replay_guard {
    uint64_t incarnation; /* Of the sender's last datagram that was taken, */
    uint64_t sequence;    /* its number, */
    uint64_t before;      /* which of those before it were taken: bit 0 is the last of them, */
    uint64_t taken_ms;    /* when that was, */
    uint64_t nonce;       /* and the nonce that it has to bring. 0: none was taken yet. */
    uint64_t fresh_nonce; /* Of the last challenge, not yet brought back. 0: none. */
    uint64_t fresh_ms;    /* When it was made, */
    uint64_t asked_ms;    /* and when the sender was last challenged. */
};

enum replay_guard_answer {
    REPLAY_TAKE,      /* It is current. */
    REPLAY_LATE,      /* It is current, but a later one has overtaken it. */
    REPLAY_CHALLENGE, /* It may be old: send replay_guard_challenge. */
    REPLAY_IGNORE     /* It is old, or may be, and the sender has just been challenged. */
};

/* `older_is_welcome`: the incarnation known is thought to be dead, so one that proves itself may
 * take its place although its number is lower. `random` is a fresh random number. */
enum replay_guard_answer replay_guard_take(struct replay_guard *guard,
                                           const struct datagram *datagram, bool older_is_welcome,
                                           uint64_t now_ms, uint64_t random);
/* Since a datagram was last taken; UINT64_MAX: none ever was. */
uint64_t replay_guard_idle_ms(const struct replay_guard *guard, uint64_t now_ms);
/* The challenge that answers `datagram`, after REPLAY_CHALLENGE. */
struct challenge replay_guard_challenge(const struct replay_guard *guard,
                                        const struct datagram *datagram);

/* The sender's side, one for each receiver. Zeroed: nothing was sent yet. */
struct replay_sender {
    uint64_t sequence;   /* Of the last datagram sent. */
    uint64_t nonce;      /* To bring. */
    uint64_t challenged; /* The sequence that the last challenge taken answers. */
};

/* Fills in incarnation, sequence and nonce. */
void replay_guard_stamp(struct replay_sender *sender, uint64_t incarnation,
                        struct datagram *datagram);
/* A challenge counts when it answers a datagram of this incarnation, later than the last one did.
 */
bool replay_guard_challenged(struct replay_sender *sender, uint64_t incarnation,
                             const struct challenge *challenge);

#endif
