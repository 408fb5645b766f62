/* replay_guard.c - a datagram is current when it follows the last one that was taken, on a link in
 * use, or brings a number that was made a moment ago.
 *
 * Two numbers are kept: the one in use and a fresh one. A challenge never touches the one in use,
 * so whoever replays recordings can make us send challenges, but can't part us from the true
 * sender.
 */
#include "cluster/role/replay_guard.h"

#include "engine/base/assert.h"

uint64_t replay_guard_idle_ms(const struct replay_guard *link, uint64_t now_ms)
{
    return link->nonce == 0 ? UINT64_MAX : now_ms - link->taken_ms;
}

static bool nonce_is_fresh(const struct replay_guard *link, uint64_t now_ms)
{
    return link->fresh_nonce != 0 && now_ms - link->fresh_ms <= REPLAY_GUARD_NONCE_MS;
}

/* Whether it comes after everything that was taken. */
static bool datagram_is_next(const struct replay_guard *link, const struct datagram *datagram)
{
    if (datagram->incarnation != link->incarnation)
        return datagram->incarnation > link->incarnation;
    return datagram->sequence > link->sequence;
}

/* One that was overtaken, and was not taken before. */
static bool replay_guard_admits_late(struct replay_guard *link, const struct datagram *datagram,
                                     uint64_t now_ms)
{
    if (replay_guard_idle_ms(link, now_ms) > REPLAY_GUARD_NONCE_MS) return false;
    if (datagram->incarnation != link->incarnation || datagram->nonce != link->nonce) return false;
    if (datagram->sequence >= link->sequence) return false;
    uint64_t distance = link->sequence - datagram->sequence;
    if (distance > REPLAY_WINDOW) return false;
    uint64_t bit = (uint64_t)1 << (distance - 1);
    bool was_taken = (link->before & bit) != 0;
    link->before |= bit;
    return !was_taken;
}

/* Which were taken, seen from one that is `distance` later than the last. */
static uint64_t window_move(uint64_t before, uint64_t distance)
{
    if (distance > REPLAY_WINDOW) return 0;
    uint64_t moved = distance < REPLAY_WINDOW ? before << distance : 0;
    return moved | (uint64_t)1 << (distance - 1);
}

static void replay_guard_advance(struct replay_guard *link, const struct datagram *datagram,
                                 uint64_t now_ms)
{
    bool is_later = link->nonce != 0 && datagram->incarnation == link->incarnation &&
                    datagram->sequence > link->sequence;
    link->before = is_later ? window_move(link->before, datagram->sequence - link->sequence) : 0;
    link->incarnation = datagram->incarnation;
    link->sequence = datagram->sequence;
    link->taken_ms = now_ms;
    link->nonce = datagram->nonce;
    if (link->fresh_nonce == datagram->nonce) link->fresh_nonce = 0;
}

static enum replay_guard_answer replay_guard_ask(struct replay_guard *link, uint64_t now_ms,
                                                 uint64_t random)
{
    bool was_asked = link->fresh_nonce != 0;
    if (was_asked && now_ms - link->asked_ms < REPLAY_CHALLENGE_PAUSE_MS) return REPLAY_IGNORE;
    if (!nonce_is_fresh(link, now_ms)) {
        link->fresh_nonce = random == 0 ? 1 : random;
        link->fresh_ms = now_ms;
    }
    link->asked_ms = now_ms;
    return REPLAY_CHALLENGE;
}

enum replay_guard_answer replay_guard_take(struct replay_guard *link,
                                           const struct datagram *datagram, bool older_is_welcome,
                                           uint64_t now_ms, uint64_t random)
{
    bool is_next = link->nonce == 0 || datagram_is_next(link, datagram);
    if (!is_next && replay_guard_admits_late(link, datagram, now_ms)) return REPLAY_LATE;
    if (!is_next && !older_is_welcome) return REPLAY_IGNORE;

    bool is_proved = nonce_is_fresh(link, now_ms) && datagram->nonce == link->fresh_nonce;
    bool goes_on = is_next && replay_guard_idle_ms(link, now_ms) <= REPLAY_GUARD_NONCE_MS &&
                   datagram->nonce == link->nonce && datagram->incarnation == link->incarnation;
    if (is_proved || goes_on) {
        replay_guard_advance(link, datagram, now_ms);
        return REPLAY_TAKE;
    }
    return replay_guard_ask(link, now_ms, random);
}

struct challenge replay_guard_challenge(const struct replay_guard *link,
                                        const struct datagram *datagram)
{
    ASSERT(link->fresh_nonce != 0);
    return (struct challenge){
        .incarnation = datagram->incarnation,
        .sequence = datagram->sequence,
        .nonce = link->fresh_nonce,
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
