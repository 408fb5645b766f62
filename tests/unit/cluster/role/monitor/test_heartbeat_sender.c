/* test_heartbeat_sender.c - a node ends only by an order of now, of no older term, for its own
 * incarnation.
 *
 * Method: one beater, and a monitor's side of the links made by hand.
 */
#include "unit/test.h"

#include <stdio.h>
#include <string.h>

#include "cluster/role/monitor/heartbeat_sender.h"

enum { SELF = 5000, MONITOR = 9000 };

static struct beater beater;
static struct link_sender sender; /* The monitor's. */
static uint64_t now_ms;
static struct datagram reply;
static uint32_t monitor;

static void name_set(char *out, const char *name)
{
    snprintf(out, DATAGRAM_NAME_SIZE, "%s", name);
}

static void begin(enum beater_mutation mutation)
{
    beater =
        (struct beater){.incarnation = SELF, .mutation = mutation, .monitor_count = 2, .random = 1};
    name_set(beater.name, "w1");
    name_set(beater.monitors[0], "m1");
    name_set(beater.monitors[1], "m2");
    sender = (struct link_sender){0};
    now_ms = 1;
}

static struct datagram made(enum datagram_kind kind)
{
    struct datagram datagram = {.kind = kind};
    name_set(datagram.from, "m2");
    name_set(datagram.to, "w1");
    link_stamp(&sender, MONITOR, &datagram);
    return datagram;
}

static enum beater_answer hear(const struct datagram *datagram)
{
    return beater_hear(&beater, datagram, now_ms, &monitor, &reply);
}

/* Something that the node can't place is challenged; from then on the monitor has its number. */
static void introduce(void)
{
    struct datagram datagram = made(DATAGRAM_VIEW);
    assert_int_equal(hear(&datagram), BEATER_CHALLENGE);
    assert_int_equal(monitor, 1);
    assert_int_equal(reply.kind, DATAGRAM_CHALLENGE);
    assert_string_equal(reply.from, "w1");
    assert_string_equal(reply.to, "m2");
    assert_true(link_challenged(&sender, MONITOR, &reply.challenge));
}

static enum beater_answer order(enum order_kind kind, uint64_t term, uint64_t incarnation)
{
    struct datagram datagram = made(DATAGRAM_ORDER);
    datagram.order = (struct order){
        .term = {.number = term, .holder = 1}, .kind = kind, .incarnation = incarnation};
    return hear(&datagram);
}

static void beats_carry_what_the_node_has_seen(void **state)
{
    (void)state;
    begin(BEATER_SOUND);
    introduce();
    assert_int_equal(order(ORDER_STOP, 7, SELF + 1), BEATER_NOTHING);
    struct beat beat = {.role = NODE_WORKER, .state = BEAT_UP, .progress = 3};
    struct datagram first;
    struct datagram second;
    beater_beat(&beater, 0, &beat, &first);
    beater_beat(&beater, 0, &beat, &second);
    assert_int_equal(first.kind, DATAGRAM_BEAT);
    assert_string_equal(first.from, "w1");
    assert_string_equal(first.to, "m1");
    assert_int_equal(first.incarnation, SELF);
    assert_int_equal(first.beat.progress, 3);
    assert_int_equal(first.beat.seen.number, 7);
    assert_int_equal(second.sequence, first.sequence + 1);
}

static void challenge_is_answered_by_a_beat_that_brings_its_number(void **state)
{
    (void)state;
    begin(BEATER_SOUND);
    struct beat beat = {.role = NODE_WORKER};
    struct datagram sent;
    beater_beat(&beater, 1, &beat, &sent);
    struct datagram challenge = made(DATAGRAM_CHALLENGE);
    challenge.challenge =
        (struct challenge){.incarnation = SELF, .sequence = sent.sequence, .nonce = 42};
    assert_int_equal(hear(&challenge), BEATER_BEAT);
    assert_int_equal(monitor, 1);
    beater_beat(&beater, 1, &beat, &sent);
    assert_int_equal(sent.nonce, 42);
    assert_int_equal(hear(&challenge), BEATER_NOTHING);
    beater_beat(&beater, 0, &beat, &sent);
    assert_int_equal(sent.nonce, 0);
}

static void orders_of_the_latest_term_for_this_incarnation_are_obeyed(void **state)
{
    (void)state;
    begin(BEATER_SOUND);
    introduce();
    assert_int_equal(order(ORDER_STOP, 3, SELF), BEATER_STOP);
    assert_int_equal(order(ORDER_KILL, 3, SELF), BEATER_KILL);
    assert_int_equal(order(ORDER_KILL, 4, SELF), BEATER_KILL);
    assert_int_equal(order(ORDER_KILL, 3, SELF), BEATER_NOTHING);
    assert_int_equal(order(ORDER_KILL, 4, SELF - 1), BEATER_NOTHING);
    assert_int_equal(order(ORDER_KILL, 4, SELF + 1), BEATER_NOTHING);
}

static void each_planted_bug_obeys_what_it_should_not(void **state)
{
    (void)state;
    begin(BEATER_NO_TERM);
    introduce();
    assert_int_equal(order(ORDER_KILL, 4, SELF + 1), BEATER_NOTHING);
    assert_int_equal(order(ORDER_KILL, 3, SELF), BEATER_KILL);
    begin(BEATER_NO_INCARNATION);
    introduce();
    assert_int_equal(order(ORDER_KILL, 4, SELF + 1), BEATER_KILL);
    assert_int_equal(order(ORDER_KILL, 3, SELF), BEATER_NOTHING);
}

static void recorded_order_is_not_obeyed(void **state)
{
    (void)state;
    begin(BEATER_SOUND);
    introduce();
    struct datagram recorded = made(DATAGRAM_ORDER);
    recorded.order =
        (struct order){.term = {.number = 3, .holder = 1}, .kind = ORDER_KILL, .incarnation = SELF};
    /* It was lost at first; meanwhile the monitor has said other things. */
    struct datagram view = made(DATAGRAM_VIEW);
    assert_int_equal(hear(&view), BEATER_VIEW);
    assert_int_equal(hear(&recorded), BEATER_NOTHING);
    /* Or nothing, for long. */
    now_ms += LINK_NONCE_LIFE_MS + 1;
    recorded.sequence += 10;
    assert_int_equal(hear(&recorded), BEATER_CHALLENGE);
}

static void views_of_now_are_taken_once_and_those_of_older_terms_never(void **state)
{
    (void)state;
    begin(BEATER_SOUND);
    introduce();
    struct datagram view = made(DATAGRAM_VIEW);
    view.view.term.number = 5;
    assert_int_equal(hear(&view), BEATER_VIEW);
    assert_int_equal(hear(&view), BEATER_NOTHING);
    assert_int_equal(beater.seen.number, 5);
    view = made(DATAGRAM_VIEW);
    view.view.term.number = 4;
    assert_int_equal(hear(&view), BEATER_NOTHING);
    assert_int_equal(order(ORDER_KILL, 4, SELF), BEATER_NOTHING);
}

static void events_are_news_only_if_the_last_of_them_is(void **state)
{
    (void)state;
    begin(BEATER_SOUND);
    introduce();
    struct datagram events = made(DATAGRAM_EVENTS);
    events.events.event_count = 2;
    events.events.events[0].place = (struct event_place){.term = 1, .sequence = 1};
    events.events.events[1].place = (struct event_place){.term = 1, .sequence = 2};
    struct event_list list = events.events;
    assert_int_equal(hear(&events), BEATER_EVENTS);
    events = made(DATAGRAM_EVENTS);
    events.events = list;
    assert_int_equal(hear(&events), BEATER_NOTHING);
    events = made(DATAGRAM_EVENTS);
    assert_int_equal(hear(&events), BEATER_NOTHING);
    struct datagram sent;
    struct beat beat = {.role = NODE_GATEWAY};
    beater_beat(&beater, 0, &beat, &sent);
    assert_int_equal(sent.beat.events.sequence, 2);
}

static void what_is_for_others_or_from_strangers_is_ignored(void **state)
{
    (void)state;
    begin(BEATER_SOUND);
    introduce();
    struct datagram view = made(DATAGRAM_VIEW);
    name_set(view.to, "w2");
    assert_int_equal(hear(&view), BEATER_NOTHING);
    name_set(view.to, "w1");
    name_set(view.from, "m9");
    assert_int_equal(hear(&view), BEATER_NOTHING);
    static const enum datagram_kind others[] = {DATAGRAM_BEAT, DATAGRAM_ELECTION, DATAGRAM_ASK};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct datagram other = made(others[i]);
        assert_int_equal(hear(&other), BEATER_NOTHING);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beats_carry_what_the_node_has_seen),
        cmocka_unit_test(challenge_is_answered_by_a_beat_that_brings_its_number),
        cmocka_unit_test(orders_of_the_latest_term_for_this_incarnation_are_obeyed),
        cmocka_unit_test(each_planted_bug_obeys_what_it_should_not),
        cmocka_unit_test(recorded_order_is_not_obeyed),
        cmocka_unit_test(views_of_now_are_taken_once_and_those_of_older_terms_never),
        cmocka_unit_test(events_are_news_only_if_the_last_of_them_is),
        cmocka_unit_test(what_is_for_others_or_from_strangers_is_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
