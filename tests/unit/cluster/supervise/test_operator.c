/* SPDX-License-Identifier: Apache-2.0 */
/* test_operator.c - an operator gets the leader's view, whatever is lost on the way.
 *
 * Method: a thread plays three monitors on the loopback, which challenge as
 * cluster/role/replay_guard.h says, lose some datagrams, and lead or not as the test wants.
 */
#include "unit/test.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "engine/base/random.h"
#include "cluster/supervise/operator.h"
#include "unit/cluster/node/fake_monitor.h"

enum { NODES = 11, NO_LEADER = FAKE_MONITORS_MAX, STOPS_NEEDED = 3 };

/* What the monitors do. */
struct play {
    struct fake_cluster cluster;
    uint32_t leader; /* NO_LEADER: none. */
    bool loses;      /* Every third datagram that it would send, by chance. */
    bool never_stops;
    bool leader_is_mute;
    pthread_t thread;
    atomic_bool is_over;
    struct random random;
    atomic_int stops; /* Heard by the leader. */
    atomic_int kills;
};

static void answer(struct play *play, struct fake_monitor *monitor, struct datagram *datagram)
{
    if (play->loses && random_below(&play->random, 3) == 0) return;
    fake_monitor_send(monitor, datagram);
}

static void answer_view(struct play *play, uint32_t self)
{
    struct fake_monitor *monitor = &play->cluster.monitors[self];
    bool leads = play->leader == self;
    bool is_stopped = atomic_load(&play->stops) >= STOPS_NEEDED && !play->never_stops;
    for (uint32_t first = 0; first < NODES; first += DATAGRAM_NODES_MAX) {
        struct datagram page = {.kind = DATAGRAM_VIEW};
        page.view.node_total = NODES;
        if (play->leader != NO_LEADER) {
            page.view.term = (struct term){5, play->leader};
            (void)snprintf(page.view.leader, DATAGRAM_NAME_SIZE, "m%u", play->leader + 1);
        }
        for (uint32_t i = first; i < NODES && i < first + DATAGRAM_NODES_MAX; i++) {
            struct monitored *node = &page.view.nodes[page.view.node_count++];
            (void)snprintf(node->name, sizeof node->name, "w%u", i);
            node->state = i == 7 && is_stopped ? HEALTH_STOPPED : HEALTH_UP;
            node->restarts = leads ? 1000 : self; /* Tells who said it. */
            node->incarnation = i + 1;
        }
        answer(play, monitor, &page);
    }
}

static void take_ask(struct play *play, uint32_t self, const struct datagram *datagram)
{
    struct fake_monitor *monitor = &play->cluster.monitors[self];
    assert_int_equal(datagram->kind, DATAGRAM_ASK);
    assert_memory_equal(datagram->from, "operator-", 9);
    if (self == play->leader && play->leader_is_mute) return;
    switch (
        replay_guard_take(&monitor->link, datagram, true, clock_ms(), random_u64(&play->random))) {
    case REPLAY_LATE:
    case REPLAY_IGNORE:
        return;
    case REPLAY_CHALLENGE: {
        struct datagram challenge = {.kind = DATAGRAM_CHALLENGE};
        challenge.challenge = replay_guard_challenge(&monitor->link, datagram);
        answer(play, monitor, &challenge);
        return;
    }
    case REPLAY_TAKE:
        break;
    }
    if (datagram->ask.kind == ASK_VIEW) answer_view(play, self);
    if (self != play->leader) return;
    if (datagram->ask.kind == ASK_STOP) atomic_fetch_add(&play->stops, 1);
    if (datagram->ask.kind == ASK_KILLED) atomic_fetch_add(&play->kills, 1);
}

static void *play_run(void *context)
{
    struct play *play = context;
    while (!atomic_load(&play->is_over)) {
        for (uint32_t i = 0; i < FAKE_MONITORS_MAX; i++) {
            struct datagram datagram;
            if (fake_monitor_receive(&play->cluster.monitors[i], 1, &datagram)) {
                take_ask(play, i, &datagram);
            }
        }
    }
    return NULL;
}

static void play_begin(struct play *play)
{
    fake_cluster_open(&play->cluster, FAKE_MONITORS_MAX);
    assert_int_equal(pthread_create(&play->thread, NULL, play_run, play), 0);
}

static void play_end(struct play *play)
{
    atomic_store(&play->is_over, true);
    assert_int_equal(pthread_join(play->thread, NULL), 0);
    fake_cluster_close(&play->cluster);
}

static struct operator_link *open_link(const struct play *play)
{
    struct operator_link *link = NULL;
    struct error err;
    assert_int_equal(operator_open(&play->cluster.config, &link, &err), STATUS_OK);
    return link;
}

static void check_view(const struct cluster_view *view)
{
    assert_int_equal(view->node_count, NODES);
    for (uint32_t i = 0; i < NODES; i++) {
        uint32_t found = 0;
        for (uint32_t j = 0; j < NODES; j++) {
            if (view->nodes[j].incarnation != i + 1) continue;
            char name[16];
            (void)snprintf(name, sizeof name, "w%u", i);
            assert_string_equal(view->nodes[j].name, name);
            found++;
        }
        assert_int_equal(found, 1);
    }
}

static void the_leaders_view_is_given(void **state)
{
    (void)state;
    for (int loses = 0; loses < 2; loses++) {
        for (uint32_t leader = 0; leader < FAKE_MONITORS_MAX; leader++) {
            struct play play = {.leader = leader, .loses = loses == 1};
            struct arena arena = {0};
            struct cluster_view view;
            struct error err;
            play_begin(&play);
            struct operator_link *link = open_link(&play);
            for (int i = 0; i < 3; i++) {
                assert_int_equal(operator_view(link, scaled_ms(FAKE_LONG_MS), &arena, &view, &err),
                                 STATUS_OK);
                check_view(&view);
                assert_int_equal(view.term.number, 5);
                assert_int_equal(view.leader[1], '1' + (int)leader);
                /* Loss may let others be complete first, but not within the grace. */
                if (loses == 0) assert_int_equal(view.nodes[0].restarts, 1000);
            }
            operator_close(link);
            arena_done(&arena);
            play_end(&play);
        }
    }
}

static void without_a_leader_any_view_will_do(void **state)
{
    (void)state;
    struct play play = {.leader = NO_LEADER};
    struct arena arena = {0};
    struct cluster_view view;
    struct error err;
    play_begin(&play);
    struct operator_link *link = open_link(&play);
    assert_int_equal(operator_view(link, scaled_ms(FAKE_LONG_MS), &arena, &view, &err), STATUS_OK);
    check_view(&view);
    assert_int_equal(view.term.number, 0);
    assert_string_equal(view.leader, "");
    struct ask ask = {.kind = ASK_STOP, .node = "w7"};
    assert_int_equal(operator_ask(link, &ask, scaled_ms(400), &err), STATUS_UNREACHABLE);
    assert_non_null(strstr(err.text, "no leader"));
    operator_close(link);
    arena_done(&arena);
    play_end(&play);
}

static void a_leader_that_is_silent_is_not_waited_for_long(void **state)
{
    (void)state;
    struct play play = {.leader = 2, .leader_is_mute = true};
    struct arena arena = {0};
    struct cluster_view view;
    struct error err;
    play_begin(&play);
    struct operator_link *link = open_link(&play);
    uint64_t begin_ms = clock_ms();
    assert_int_equal(operator_view(link, scaled_ms(FAKE_LONG_MS), &arena, &view, &err), STATUS_OK);
    assert_true(clock_ms() - begin_ms < scaled_ms(FAKE_LONG_MS) / 2);
    check_view(&view);
    assert_string_equal(view.leader, "m3");
    operator_close(link);
    arena_done(&arena);
    play_end(&play);
}

static void when_nobody_answers_that_is_said_in_time(void **state)
{
    (void)state;
    struct play play = {.leader = 0};
    struct arena arena = {0};
    struct cluster_view view;
    struct error err = {.text = ""};
    struct ask stop = {.kind = ASK_STOP, .node = "w7"};
    struct ask killed = {.kind = ASK_KILLED, .node = "w7"};
    fake_cluster_open(&play.cluster, FAKE_MONITORS_MAX); /* And nobody plays. */
    struct operator_link *link = open_link(&play);
    uint64_t begin_ms = clock_ms();
    assert_int_equal(operator_view(link, scaled_ms(200), &arena, &view, &err), STATUS_UNREACHABLE);
    assert_true(clock_ms() - begin_ms >= scaled_ms(200) - 1);
    assert_non_null(strstr(err.text, play.cluster.key_path));
    assert_int_equal(operator_ask(link, &stop, scaled_ms(100), &err), STATUS_UNREACHABLE);
    assert_int_equal(operator_ask(link, &killed, scaled_ms(FAKE_LONG_MS), &err),
                     STATUS_UNREACHABLE);
    assert_true(clock_ms() - begin_ms < scaled_ms(FAKE_LONG_MS));
    operator_close(link);
    arena_done(&arena);
    fake_cluster_close(&play.cluster);
}

static void a_node_is_stopped_when_the_leader_says_so(void **state)
{
    (void)state;
    for (int loses = 0; loses < 2; loses++) {
        struct play play = {.leader = 1, .loses = loses == 1};
        struct error err = {.text = ""};
        play_begin(&play);
        struct operator_link *link = open_link(&play);
        struct ask ask = {.kind = ASK_STOP, .node = "w7"};
        assert_int_equal(operator_ask(link, &ask, scaled_ms(FAKE_LONG_MS), &err), STATUS_OK);
        assert_true(atomic_load(&play.stops) >= STOPS_NEEDED);
        (void)snprintf(ask.node, sizeof ask.node, "w99");
        assert_int_equal(operator_ask(link, &ask, scaled_ms(FAKE_LONG_MS), &err), STATUS_USAGE);
        assert_non_null(strstr(err.text, "w99"));
        operator_close(link);
        play_end(&play);
    }
}

static void a_node_that_does_not_stop_is_told_of(void **state)
{
    (void)state;
    struct play play = {.leader = 1, .never_stops = true};
    struct error err = {.text = ""};
    play_begin(&play);
    struct operator_link *link = open_link(&play);
    struct ask ask = {.kind = ASK_STOP, .node = "w7"};
    assert_int_equal(operator_ask(link, &ask, scaled_ms(1000), &err), STATUS_UNREACHABLE);
    assert_non_null(strstr(err.text, "still up"));
    operator_close(link);
    play_end(&play);
}

static void a_kill_is_told_once(void **state)
{
    (void)state;
    struct play play = {.leader = 2};
    struct error err = {.text = ""};
    play_begin(&play);
    struct operator_link *link = open_link(&play);
    struct ask ask = {.kind = ASK_KILLED, .node = "w7"};
    for (int i = 1; i <= 5; i++) {
        assert_int_equal(operator_ask(link, &ask, scaled_ms(FAKE_LONG_MS), &err), STATUS_OK);
        /* Nobody waits for a kill to be heard of, but heard of it is, and once. */
        uint64_t deadline_ms = clock_ms() + scaled_ms(FAKE_LONG_MS);
        while (atomic_load(&play.kills) < i && clock_ms() < deadline_ms) {
            (void)poll(NULL, 0, 1);
        }
        assert_int_equal(atomic_load(&play.kills), i);
    }
    operator_close(link);
    play_end(&play);
}

static void a_cluster_without_monitors_cannot_be_asked(void **state)
{
    (void)state;
    struct cluster_config config = {.path = "some.ini", .monitor_count = 0};
    struct operator_link *link = NULL;
    struct error err = {.text = ""};
    assert_int_equal(operator_open(&config, &link, &err), STATUS_USAGE);
    assert_non_null(strstr(err.text, "some.ini"));
    operator_close(link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_leaders_view_is_given),
        cmocka_unit_test(without_a_leader_any_view_will_do),
        cmocka_unit_test(a_leader_that_is_silent_is_not_waited_for_long),
        cmocka_unit_test(when_nobody_answers_that_is_said_in_time),
        cmocka_unit_test(a_node_is_stopped_when_the_leader_says_so),
        cmocka_unit_test(a_node_that_does_not_stop_is_told_of),
        cmocka_unit_test(a_kill_is_told_once),
        cmocka_unit_test(a_cluster_without_monitors_cannot_be_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
