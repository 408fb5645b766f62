/* SPDX-License-Identifier: Apache-2.0 */
/* test_replay_guard.c - what is current is taken, what was recorded is not.
 *
 * Method: both sides of a link with a recorder between them that keeps everything and plays it back
 * whenever it likes. By chosen cases, and by random schedules of sends, losses, replays and new
 * starts of either side: nothing is ever taken twice, or after its sender has been replaced.
 */
#include "unit/test.h"

#include "engine/base/random.h"
#include "cluster/role/replay_guard.h"

enum { TAPE_MAX = 256 };

struct sender_and_guard {
    struct replay_guard link;
    struct replay_sender sender;
    uint64_t incarnation;
    uint64_t now_ms;
    struct random random;
    bool older_is_welcome;
};

static struct datagram made(struct sender_and_guard *pair)
{
    struct datagram datagram = {.kind = DATAGRAM_HEARTBEAT};
    replay_guard_stamp(&pair->sender, pair->incarnation, &datagram);
    return datagram;
}

static enum replay_guard_answer taken(struct sender_and_guard *pair,
                                      const struct datagram *datagram)
{
    return replay_guard_take(&pair->link, datagram, pair->older_is_welcome, pair->now_ms,
                             random_u64(&pair->random));
}

/* Sends until something is taken; how many it took. */
static uint32_t meet(struct sender_and_guard *pair)
{
    for (uint32_t sent = 1; sent < 10; sent++) {
        struct datagram datagram = made(pair);
        enum replay_guard_answer answer = taken(pair, &datagram);
        if (answer == REPLAY_TAKE) return sent;
        if (answer == REPLAY_CHALLENGE) {
            struct challenge challenge = replay_guard_challenge(&pair->link, &datagram);
            assert_true(replay_guard_challenged(&pair->sender, pair->incarnation, &challenge));
        }
        pair->now_ms += 10;
    }
    return 0;
}

static struct sender_and_guard pair_met(void)
{
    struct sender_and_guard pair = {.incarnation = 1000, .now_ms = 1};
    assert_int_equal(meet(&pair), 2);
    return pair;
}

static void first_contact_is_challenged_and_then_taken(void **state)
{
    (void)state;
    struct sender_and_guard pair = pair_met();
    for (uint32_t i = 0; i < 100; i++) {
        pair.now_ms += 200;
        assert_int_equal(meet(&pair), 1);
    }
}

static void nothing_is_taken_twice_and_what_was_overtaken_is_told_apart(void **state)
{
    (void)state;
    struct sender_and_guard pair = pair_met();
    struct datagram first = made(&pair);
    struct datagram second = made(&pair);
    assert_int_equal(taken(&pair, &second), REPLAY_TAKE);
    assert_int_equal(taken(&pair, &second), REPLAY_IGNORE);
    assert_int_equal(taken(&pair, &first), REPLAY_LATE);
    assert_int_equal(taken(&pair, &first), REPLAY_IGNORE);
}

/* Every order of arrival: each is taken once, and as late exactly if a later one was before it. */
static void each_of_five_is_taken_once_in_every_order(void **state)
{
    (void)state;
    enum { COUNT = 5, ORDERS = 5 * 5 * 5 * 5 * 5 };
    for (uint32_t number = 0; number < ORDERS; number++) {
        struct sender_and_guard pair = pair_met();
        struct datagram sent[COUNT];
        bool was_taken[COUNT] = {false};
        uint32_t highest = 0;
        for (uint32_t i = 0; i < COUNT; i++) {
            sent[i] = made(&pair);
        }
        for (uint32_t i = 0, rest = number; i < COUNT; i++, rest /= COUNT) {
            uint32_t chosen = rest % COUNT;
            enum replay_guard_answer expected = was_taken[chosen]      ? REPLAY_IGNORE
                                                : chosen + 1 < highest ? REPLAY_LATE
                                                                       : REPLAY_TAKE;
            assert_int_equal(taken(&pair, &sent[chosen]), expected);
            was_taken[chosen] = true;
            if (chosen + 1 > highest) highest = chosen + 1;
        }
    }
}

static void what_was_overtaken_long_ago_is_not_taken(void **state)
{
    (void)state;
    for (uint32_t between = REPLAY_WINDOW - 2; between <= REPLAY_WINDOW + 1; between++) {
        struct sender_and_guard pair = pair_met();
        struct datagram first = made(&pair);
        for (uint32_t i = 0; i < between; i++) {
            (void)made(&pair); /* Lost. */
        }
        struct datagram last = made(&pair);
        assert_int_equal(taken(&pair, &last), REPLAY_TAKE);
        assert_int_equal(taken(&pair, &first),
                         between < REPLAY_WINDOW ? REPLAY_LATE : REPLAY_IGNORE);
    }
}

static void newer_start_is_taken_at_once_and_an_older_one_when_it_is_welcome(void **state)
{
    (void)state;
    struct sender_and_guard pair = pair_met();
    pair.incarnation = 2000;
    pair.sender = (struct replay_sender){0};
    assert_int_equal(meet(&pair), 2);
    pair.incarnation = 1500;
    pair.sender = (struct replay_sender){0};
    assert_int_equal(meet(&pair), 0);
    pair.older_is_welcome = true;
    assert_in_range(meet(&pair), 2, 3);
    assert_int_equal(pair.link.incarnation, 1500);
}

static void number_that_was_not_in_use_for_long_is_not_enough(void **state)
{
    (void)state;
    struct sender_and_guard pair = pair_met();
    struct datagram held_back = made(&pair);
    pair.now_ms += REPLAY_GUARD_NONCE_MS + 11;
    assert_int_equal(taken(&pair, &held_back), REPLAY_CHALLENGE);
    pair.now_ms += REPLAY_CHALLENGE_PAUSE_MS;
    assert_int_equal(meet(&pair), 2);
}

static void fresh_number_ages(void **state)
{
    (void)state;
    struct sender_and_guard pair = {.incarnation = 1000, .now_ms = 1};
    struct datagram datagram = made(&pair);
    assert_int_equal(taken(&pair, &datagram), REPLAY_CHALLENGE);
    struct challenge challenge = replay_guard_challenge(&pair.link, &datagram);
    assert_true(replay_guard_challenged(&pair.sender, 1000, &challenge));
    datagram = made(&pair);
    pair.now_ms += REPLAY_GUARD_NONCE_MS + 1;
    assert_int_equal(taken(&pair, &datagram), REPLAY_CHALLENGE);
    assert_int_not_equal(replay_guard_challenge(&pair.link, &datagram).nonce, challenge.nonce);
}

static void challenges_are_rare(void **state)
{
    (void)state;
    struct sender_and_guard pair = {.incarnation = 1000, .now_ms = 1};
    uint32_t challenges = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        struct datagram datagram = made(&pair);
        challenges += taken(&pair, &datagram) == REPLAY_CHALLENGE;
        pair.now_ms++;
    }
    assert_int_equal(challenges, 1000 / REPLAY_CHALLENGE_PAUSE_MS);
}

static void replays_do_not_part_us_from_the_true_sender(void **state)
{
    (void)state;
    struct sender_and_guard pair = pair_met();
    struct datagram old = made(&pair);
    pair.older_is_welcome = true;
    for (uint32_t i = 0; i < 1000; i++) {
        pair.now_ms += 10;
        struct datagram datagram = made(&pair);
        assert_int_equal(taken(&pair, &datagram), REPLAY_TAKE);
        assert_int_not_equal(taken(&pair, &old), REPLAY_TAKE);
    }
}

static void challenge_counts_only_if_it_answers_something_later_than_the_last(void **state)
{
    (void)state;
    struct replay_sender sender = {.sequence = 5};
    struct challenge challenge = {.incarnation = 1, .sequence = 4, .nonce = 77};
    assert_false(replay_guard_challenged(&sender, 2, &challenge));
    assert_true(replay_guard_challenged(&sender, 1, &challenge));
    assert_false(replay_guard_challenged(&sender, 1, &challenge));
    challenge.sequence = 3;
    assert_false(replay_guard_challenged(&sender, 1, &challenge));
    challenge.sequence = 6;
    assert_false(replay_guard_challenged(&sender, 1, &challenge));
    challenge = (struct challenge){.incarnation = 1, .sequence = 5, .nonce = 0};
    assert_false(replay_guard_challenged(&sender, 1, &challenge));
    assert_int_equal(sender.nonce, 77);
}

/* Whether a datagram was the sender's newest when it was taken, and had not been taken before. */
static void random_schedules_take_nothing_twice_and_nothing_of_the_dead(void **state)
{
    (void)state;
    static struct datagram tape[TAPE_MAX];
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct sender_and_guard pair = {
            .incarnation = 1000, .now_ms = 1, .random = {.state = seed}, .older_is_welcome = true};
        uint32_t count = 0;
        uint64_t born_ms = 0; /* Of the sender; what was recorded before is of the dead. */
        uint32_t first = 0;   /* On the tape since then. */
        for (uint32_t i = 0; i < 400; i++) {
            pair.now_ms += random_below(&pair.random, 100);
            uint32_t what = random_below(&pair.random, 20);
            if (what == 0 && pair.now_ms - born_ms > REPLAY_GUARD_NONCE_MS) {
                /* A new start, with any number. Old numbers are forgotten after their incarnation.
                 */
                pair.incarnation = 1 + random_below(&pair.random, 5000);
                pair.sender = (struct replay_sender){0};
                pair.now_ms += REPLAY_GUARD_NONCE_MS + 1;
                born_ms = pair.now_ms;
                first = count;
            } else if (what < 10 && count > 0) {
                uint32_t which = random_below(&pair.random, count);
                struct replay_guard before = pair.link;
                enum replay_guard_answer answer = taken(&pair, &tape[which]);
                if (answer == REPLAY_TAKE) {
                    assert_true(which >= first);
                    assert_true(tape[which].incarnation != before.incarnation ||
                                tape[which].sequence > before.sequence);
                }
            } else if (count < TAPE_MAX) {
                tape[count++] = made(&pair);
                enum replay_guard_answer answer = taken(&pair, &tape[count - 1]);
                if (answer == REPLAY_CHALLENGE) {
                    struct challenge challenge =
                        replay_guard_challenge(&pair.link, &tape[count - 1]);
                    assert_true(
                        replay_guard_challenged(&pair.sender, pair.incarnation, &challenge));
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_contact_is_challenged_and_then_taken),
        cmocka_unit_test(nothing_is_taken_twice_and_what_was_overtaken_is_told_apart),
        cmocka_unit_test(each_of_five_is_taken_once_in_every_order),
        cmocka_unit_test(what_was_overtaken_long_ago_is_not_taken),
        cmocka_unit_test(newer_start_is_taken_at_once_and_an_older_one_when_it_is_welcome),
        cmocka_unit_test(number_that_was_not_in_use_for_long_is_not_enough),
        cmocka_unit_test(fresh_number_ages),
        cmocka_unit_test(challenges_are_rare),
        cmocka_unit_test(replays_do_not_part_us_from_the_true_sender),
        cmocka_unit_test(challenge_counts_only_if_it_answers_something_later_than_the_last),
        cmocka_unit_test(random_schedules_take_nothing_twice_and_nothing_of_the_dead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
