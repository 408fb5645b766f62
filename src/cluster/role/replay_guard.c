/* SPDX-License-Identifier: Apache-2.0 */
/* replay_guard.c - a datagram is current if it follows the last one taken while the nonce is in
 * use, or brings a nonce that was made a moment ago.
 *
 * Two nonces are kept: the one in use and a fresh one. A challenge never touches the one in use, so
 * a replayed datagram can make us send a challenge, but cannot cut off the true sender.
 */
#include "cluster/role/replay_guard.h"

#include "engine/base/assert.h"

uint64_t replay_guard_idle_ms(const struct replay_guard *guard, uint64_t now_ms)
{
    return guard->nonce == 0 ? UINT64_MAX : now_ms - guard->taken_ms;
}

static bool nonce_is_fresh(const struct replay_guard *guard, uint64_t now_ms)
{
    return guard->fresh_nonce != 0 && now_ms - guard->fresh_ms <= REPLAY_GUARD_NONCE_MS;
}

/* Whether it comes after all that were taken. */
static bool datagram_is_next(const struct replay_guard *guard, const struct datagram *datagram)
{
    if (datagram->incarnation != guard->incarnation)
        return datagram->incarnation > guard->incarnation;
    return datagram->sequence > guard->sequence;
}

/* A datagram that was overtaken, and was not taken before. */
static bool replay_guard_admits_late(struct replay_guard *guard, const struct datagram *datagram,
                                     uint64_t now_ms)
{
    if (replay_guard_idle_ms(guard, now_ms) > REPLAY_GUARD_NONCE_MS) return false;
    if (datagram->incarnation != guard->incarnation || datagram->nonce != guard->nonce)
        return false;
    if (datagram->sequence >= guard->sequence) return false;
    uint64_t distance = guard->sequence - datagram->sequence;
    if (distance > REPLAY_WINDOW) return false;
    uint64_t bit = (uint64_t)1 << (distance - 1);
    bool was_taken = (guard->before & bit) != 0;
    guard->before |= bit;
    return !was_taken;
}

/* Which were taken, seen from one that is `distance` later than the last. */
static uint64_t window_move(uint64_t before, uint64_t distance)
{
    if (distance > REPLAY_WINDOW) return 0;
    uint64_t moved = distance < REPLAY_WINDOW ? before << distance : 0;
    return moved | (uint64_t)1 << (distance - 1);
}

static void replay_guard_advance(struct replay_guard *guard, const struct datagram *datagram,
                                 uint64_t now_ms)
{
    bool is_later = guard->nonce != 0 && datagram->incarnation == guard->incarnation &&
                    datagram->sequence > guard->sequence;
    guard->before = is_later ? window_move(guard->before, datagram->sequence - guard->sequence) : 0;
    guard->incarnation = datagram->incarnation;
    guard->sequence = datagram->sequence;
    guard->taken_ms = now_ms;
    guard->nonce = datagram->nonce;
    if (guard->fresh_nonce == datagram->nonce) guard->fresh_nonce = 0;
}

static enum replay_guard_answer replay_guard_ask(struct replay_guard *guard, uint64_t now_ms,
                                                 uint64_t random)
{
    bool was_asked = guard->fresh_nonce != 0;
    if (was_asked && now_ms - guard->asked_ms < REPLAY_CHALLENGE_PAUSE_MS) return REPLAY_IGNORE;
    if (!nonce_is_fresh(guard, now_ms)) {
        guard->fresh_nonce = random == 0 ? 1 : random;
        guard->fresh_ms = now_ms;
    }
    guard->asked_ms = now_ms;
    return REPLAY_CHALLENGE;
}

enum replay_guard_answer replay_guard_take(struct replay_guard *guard,
                                           const struct datagram *datagram, bool older_is_welcome,
                                           uint64_t now_ms, uint64_t random)
{
    bool is_next = guard->nonce == 0 || datagram_is_next(guard, datagram);
    if (!is_next && replay_guard_admits_late(guard, datagram, now_ms)) return REPLAY_LATE;
    if (!is_next && !older_is_welcome) return REPLAY_IGNORE;

    bool is_proved = nonce_is_fresh(guard, now_ms) && datagram->nonce == guard->fresh_nonce;
    bool continues = is_next && replay_guard_idle_ms(guard, now_ms) <= REPLAY_GUARD_NONCE_MS &&
                     datagram->nonce == guard->nonce && datagram->incarnation == guard->incarnation;
    if (is_proved || continues) {
        replay_guard_advance(guard, datagram, now_ms);
        return REPLAY_TAKE;
    }
    return replay_guard_ask(guard, now_ms, random);
}

struct challenge replay_guard_challenge(const struct replay_guard *guard,
                                        const struct datagram *datagram)
{
    ASSERT(guard->fresh_nonce != 0);
    return (struct challenge){
        .incarnation = datagram->incarnation,
        .sequence = datagram->sequence,
        .nonce = guard->fresh_nonce,
    };
}

void replay_guard_stamp(struct replay_sender *sender, uint64_t incarnation,
                        struct datagram *datagram)
{
    datagram->incarnation = incarnation;
    datagram->sequence = ++sender->sequence;
    datagram->nonce = sender->nonce;
}

bool replay_guard_challenged(struct replay_sender *sender, uint64_t incarnation,
                             const struct challenge *challenge)
{
    if (challenge->incarnation != incarnation || challenge->nonce == 0) return false;
    if (challenge->sequence > sender->sequence) return false;
    if (challenge->sequence <= sender->challenged) return false;
    sender->challenged = challenge->sequence;
    sender->nonce = challenge->nonce;
    return true;
}
