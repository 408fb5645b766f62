/* SPDX-License-Identifier: Apache-2.0 */
/* test_heartbeat_sender.c - a node ends only by an order current, of no older term, for its own
 * incarnation.
 *
 * Method: one heartbeat sender, and a monitor's side of the links made by hand.
 */
#include "unit/test.h"

#include <stdio.h>
#include <string.h>

#include "cluster/role/monitor/heartbeat_sender.h"

enum { SELF = 5000, MONITOR = 9000 };

static struct heartbeat_sender heartbeat_sender;
static struct replay_sender sender; /* The monitor's. */
static uint64_t now_ms;
static struct datagram reply;
static uint32_t monitor;

static void name_set(char *out, const char *name)
{
    snprintf(out, DATAGRAM_NAME_SIZE, "%s", name);
}

static void begin(enum heartbeat_sender_mutation mutation)
{
    heartbeat_sender = (struct heartbeat_sender){
        .incarnation = SELF, .mutation = mutation, .monitor_count = 2, .random = 1};
    name_set(heartbeat_sender.name, "w1");
    name_set(heartbeat_sender.monitors[0], "m1");
    name_set(heartbeat_sender.monitors[1], "m2");
    sender = (struct replay_sender){0};
    now_ms = 1;
}

static struct datagram made(enum datagram_kind kind)
{
    struct datagram datagram = {.kind = kind};
    name_set(datagram.from, "m2");
    name_set(datagram.to, "w1");
    replay_guard_stamp(&sender, MONITOR, &datagram);
    return datagram;
}

static enum heartbeat_sender_answer hear(const struct datagram *datagram)
{
    return heartbeat_sender_hear(&heartbeat_sender, datagram, now_ms, &monitor, &reply);
}

/* Something that the node can't place is challenged; from then on the monitor has its number. */
static void introduce(void)
{
    struct datagram datagram = made(DATAGRAM_VIEW);
    assert_int_equal(hear(&datagram), HEARTBEAT_SENDER_CHALLENGE);
    assert_int_equal(monitor, 1);
    assert_int_equal(reply.kind, DATAGRAM_CHALLENGE);
    assert_string_equal(reply.from, "w1");
    assert_string_equal(reply.to, "m2");
    assert_true(replay_guard_challenged(&sender, MONITOR, &reply.challenge));
}

static enum heartbeat_sender_answer order(enum order_kind kind, uint64_t term, uint64_t incarnation)
{
    struct datagram datagram = made(DATAGRAM_ORDER);
    datagram.order = (struct order){
        .term = {.number = term, .holder = 1}, .kind = kind, .incarnation = incarnation};
    return hear(&datagram);
}

static void heartbeats_carry_what_the_node_has_seen(void **state)
{
    (void)state;
    begin(HEARTBEAT_SENDER_SOUND);
    introduce();
    assert_int_equal(order(ORDER_STOP, 7, SELF + 1), HEARTBEAT_SENDER_NOTHING);
    struct heartbeat heartbeat = {.role = NODE_WORKER, .state = HEARTBEAT_UP, .progress = 3};
    struct datagram first;
    struct datagram second;
    heartbeat_sender_make(&heartbeat_sender, 0, &heartbeat, &first);
    heartbeat_sender_make(&heartbeat_sender, 0, &heartbeat, &second);
    assert_int_equal(first.kind, DATAGRAM_HEARTBEAT);
    assert_string_equal(first.from, "w1");
    assert_string_equal(first.to, "m1");
    assert_int_equal(first.incarnation, SELF);
    assert_int_equal(first.heartbeat.progress, 3);
    assert_int_equal(first.heartbeat.seen.number, 7);
    assert_int_equal(second.sequence, first.sequence + 1);
}

static void challenge_is_answered_by_a_heartbeat_that_brings_its_number(void **state)
{
    (void)state;
    begin(HEARTBEAT_SENDER_SOUND);
    struct heartbeat heartbeat = {.role = NODE_WORKER};
    struct datagram sent;
    heartbeat_sender_make(&heartbeat_sender, 1, &heartbeat, &sent);
    struct datagram challenge = made(DATAGRAM_CHALLENGE);
    challenge.challenge =
        (struct challenge){.incarnation = SELF, .sequence = sent.sequence, .nonce = 42};
    assert_int_equal(hear(&challenge), HEARTBEAT_SENDER_AGAIN);
    assert_int_equal(monitor, 1);
    heartbeat_sender_make(&heartbeat_sender, 1, &heartbeat, &sent);
    assert_int_equal(sent.nonce, 42);
    assert_int_equal(hear(&challenge), HEARTBEAT_SENDER_NOTHING);
    heartbeat_sender_make(&heartbeat_sender, 0, &heartbeat, &sent);
    assert_int_equal(sent.nonce, 0);
}

static void orders_of_the_latest_term_for_this_incarnation_are_obeyed(void **state)
{
    (void)state;
    begin(HEARTBEAT_SENDER_SOUND);
    introduce();
    assert_int_equal(order(ORDER_STOP, 3, SELF), HEARTBEAT_SENDER_STOP);
    assert_int_equal(order(ORDER_KILL, 3, SELF), HEARTBEAT_SENDER_KILL);
    assert_int_equal(order(ORDER_KILL, 4, SELF), HEARTBEAT_SENDER_KILL);
    assert_int_equal(order(ORDER_KILL, 3, SELF), HEARTBEAT_SENDER_NOTHING);
    assert_int_equal(order(ORDER_KILL, 4, SELF - 1), HEARTBEAT_SENDER_NOTHING);
    assert_int_equal(order(ORDER_KILL, 4, SELF + 1), HEARTBEAT_SENDER_NOTHING);
}

static void each_planted_bug_obeys_what_it_should_not(void **state)
{
    (void)state;
    begin(HEARTBEAT_SENDER_NO_TERM);
    introduce();
    assert_int_equal(order(ORDER_KILL, 4, SELF + 1), HEARTBEAT_SENDER_NOTHING);
    assert_int_equal(order(ORDER_KILL, 3, SELF), HEARTBEAT_SENDER_KILL);
    begin(HEARTBEAT_SENDER_NO_INCARNATION);
    introduce();
    assert_int_equal(order(ORDER_KILL, 4, SELF + 1), HEARTBEAT_SENDER_KILL);
    assert_int_equal(order(ORDER_KILL, 3, SELF), HEARTBEAT_SENDER_NOTHING);
}

static void recorded_order_is_not_obeyed(void **state)
{
    (void)state;
    begin(HEARTBEAT_SENDER_SOUND);
    introduce();
    struct datagram recorded = made(DATAGRAM_ORDER);
    recorded.order =
        (struct order){.term = {.number = 3, .holder = 1}, .kind = ORDER_KILL, .incarnation = SELF};
    /* It was lost at first; meanwhile the monitor has said other things. */
    struct datagram view = made(DATAGRAM_VIEW);
    assert_int_equal(hear(&view), HEARTBEAT_SENDER_VIEW);
    assert_int_equal(hear(&recorded), HEARTBEAT_SENDER_NOTHING);
    /* Or nothing, for long. */
    now_ms += REPLAY_GUARD_NONCE_MS + 1;
    recorded.sequence += 10;
    assert_int_equal(hear(&recorded), HEARTBEAT_SENDER_CHALLENGE);
}

static void views_of_now_are_taken_once_and_those_of_older_terms_never(void **state)
{
    (void)state;
    begin(HEARTBEAT_SENDER_SOUND);
    introduce();
    struct datagram view = made(DATAGRAM_VIEW);
    view.view.term.number = 5;
    assert_int_equal(hear(&view), HEARTBEAT_SENDER_VIEW);
    assert_int_equal(hear(&view), HEARTBEAT_SENDER_NOTHING);
    assert_int_equal(heartbeat_sender.seen.number, 5);
    view = made(DATAGRAM_VIEW);
    view.view.term.number = 4;
    assert_int_equal(hear(&view), HEARTBEAT_SENDER_NOTHING);
    assert_int_equal(order(ORDER_KILL, 4, SELF), HEARTBEAT_SENDER_NOTHING);
}

static void events_are_news_only_if_the_last_of_them_is(void **state)
{
    (void)state;
    begin(HEARTBEAT_SENDER_SOUND);
    introduce();
    struct datagram events = made(DATAGRAM_EVENTS);
    events.events.event_count = 2;
    events.events.events[0].place = (struct event_place){.term = 1, .sequence = 1};
    events.events.events[1].place = (struct event_place){.term = 1, .sequence = 2};
    struct event_list list = events.events;
    assert_int_equal(hear(&events), HEARTBEAT_SENDER_EVENTS);
    events = made(DATAGRAM_EVENTS);
    events.events = list;
    assert_int_equal(hear(&events), HEARTBEAT_SENDER_NOTHING);
    events = made(DATAGRAM_EVENTS);
    assert_int_equal(hear(&events), HEARTBEAT_SENDER_NOTHING);
    struct datagram sent;
    struct heartbeat heartbeat = {.role = NODE_GATEWAY};
    heartbeat_sender_make(&heartbeat_sender, 0, &heartbeat, &sent);
    assert_int_equal(sent.heartbeat.events.sequence, 2);
}

static void what_is_for_others_or_from_strangers_is_ignored(void **state)
{
    (void)state;
    begin(HEARTBEAT_SENDER_SOUND);
    introduce();
    struct datagram view = made(DATAGRAM_VIEW);
    name_set(view.to, "w2");
    assert_int_equal(hear(&view), HEARTBEAT_SENDER_NOTHING);
    name_set(view.to, "w1");
    name_set(view.from, "m9");
    assert_int_equal(hear(&view), HEARTBEAT_SENDER_NOTHING);
    static const enum datagram_kind others[] = {DATAGRAM_HEARTBEAT, DATAGRAM_ELECTION,
                                                DATAGRAM_ASK};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct datagram other = made(others[i]);
        assert_int_equal(hear(&other), HEARTBEAT_SENDER_NOTHING);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heartbeats_carry_what_the_node_has_seen),
        cmocka_unit_test(challenge_is_answered_by_a_heartbeat_that_brings_its_number),
        cmocka_unit_test(orders_of_the_latest_term_for_this_incarnation_are_obeyed),
        cmocka_unit_test(each_planted_bug_obeys_what_it_should_not),
        cmocka_unit_test(recorded_order_is_not_obeyed),
        cmocka_unit_test(views_of_now_are_taken_once_and_those_of_older_terms_never),
        cmocka_unit_test(events_are_news_only_if_the_last_of_them_is),
        cmocka_unit_test(what_is_for_others_or_from_strangers_is_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
