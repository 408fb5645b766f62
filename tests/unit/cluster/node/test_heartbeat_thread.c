/* SPDX-License-Identifier: Apache-2.0 */
/* test_heartbeat_thread.c - a node heartbeats whatever its main loop does, and obeys monitors that
 * prove themselves.
 *
 * Method: the test plays the monitors, with sockets on the loopback and the cluster's key, and
 * waits for what must come; nothing depends on how fast that is. A node that is ordered to die is a
 * process of its own.
 */
#include "unit/test.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "engine/base/arena.h"
#include "engine/file/file.h"
#include "cluster/node/heartbeat_thread.h"
#include "unit/cluster/node/fake_monitor.h"

enum { INCARNATION = 4711, SOME_HEARTBEATS = 10, GARBAGE = 200 };

/* What the heartbeat's thread has called. */
struct calls {
    atomic_int stops;
    atomic_int views;
    atomic_int events;
    atomic_uint_least64_t term;
};

static void on_stop(void *context)
{
    atomic_fetch_add(&((struct calls *)context)->stops, 1);
}

static void on_view(void *context, const struct view *view)
{
    struct calls *calls = context;
    atomic_store(&calls->term, view->term.number);
    atomic_fetch_add(&calls->views, 1);
}

static void on_events(void *context, const struct event_list *events)
{
    assert_int_equal(events->event_count, 1);
    atomic_fetch_add(&((struct calls *)context)->events, 1);
}

static struct heartbeat_thread *open_heartbeat(const struct fake_cluster *cluster,
                                               struct calls *calls, struct node_log *log)
{
    struct heartbeat_thread_options options = {
        .config = &cluster->config,
        .name = "w1",
        .role = NODE_WORKER,
        .incarnation = INCARNATION,
        .log = log,
        .context = calls,
        .stop = on_stop,
        .view = on_view,
        .events = on_events,
    };
    struct heartbeat_thread *heartbeat_thread = NULL;
    struct error err = {.text = ""};
    if (heartbeat_thread_open(&options, &heartbeat_thread, &err) != STATUS_OK) {
        print_error("%s\n", err.text);
        fail();
    }
    assert_non_null(heartbeat_thread);
    return heartbeat_thread;
}

/* The next heartbeat; challenges are answered, as a monitor's sender does. */
static struct heartbeat next_heartbeat(struct fake_monitor *monitor, struct datagram *out)
{
    for (;;) {
        assert_true(fake_monitor_receive(monitor, scaled_ms(FAKE_LONG_MS), out));
        assert_string_equal(out->from, "w1");
        assert_int_equal(out->incarnation, INCARNATION);
        if (out->kind == DATAGRAM_HEARTBEAT) return out->heartbeat;
        assert_int_equal(out->kind, DATAGRAM_CHALLENGE);
        (void)replay_guard_challenged(&monitor->sender, FAKE_INCARNATION, &out->challenge);
    }
}

/* Sends again and again, also after challenges, until it has been heard. */
static void send_until(struct fake_monitor *monitor, struct datagram *datagram, atomic_int *counter,
                       int expected)
{
    while (atomic_load(counter) < expected) {
        struct datagram came;
        (void)next_heartbeat(monitor, &came);
        fake_monitor_send(monitor, datagram);
    }
    assert_int_equal(atomic_load(counter), expected);
}

static void heartbeats_tell_what_the_node_says(void **state)
{
    (void)state;
    struct fake_cluster cluster;
    struct calls calls = {0};
    struct datagram datagram;
    fake_cluster_open(&cluster, 2);
    struct heartbeat_thread *heartbeat_thread = open_heartbeat(&cluster, &calls, NULL);
    for (int i = 0; i < 2; i++) {
        struct heartbeat heartbeat = next_heartbeat(&cluster.monitors[i], &datagram);
        assert_int_equal(datagram.sequence, 1);
        assert_int_equal(datagram.nonce, 0);
        assert_int_equal(heartbeat.role, NODE_WORKER);
        assert_int_equal(heartbeat.state, HEARTBEAT_STARTING);
        assert_int_equal(heartbeat.progress, 0);
        assert_true(heartbeat.resident_bytes > 0);
        assert_int_equal(heartbeat.seen.number, 0);
    }
    heartbeat_thread_progress(heartbeat_thread);
    heartbeat_thread_progress(heartbeat_thread);
    heartbeat_thread_jobs(heartbeat_thread, 5);
    heartbeat_thread_replayed(heartbeat_thread, 1234567890123);
    heartbeat_thread_state(heartbeat_thread, HEARTBEAT_UP);
    for (int i = 0; i < 2; i++) {
        struct heartbeat heartbeat;
        uint64_t sequence = 1;
        do {
            heartbeat = next_heartbeat(&cluster.monitors[i], &datagram);
            assert_int_equal(datagram.sequence, ++sequence);
        } while (heartbeat.state != HEARTBEAT_UP);
        assert_int_equal(heartbeat.progress, 2);
        assert_int_equal(heartbeat.job_count, 5);
        assert_int_equal(heartbeat.replayed, 1234567890123);
    }
    heartbeat_thread_close(heartbeat_thread, HEARTBEAT_THREAD_FAILED);
    fake_cluster_close(&cluster);
}

static void a_change_of_state_is_told_at_once(void **state)
{
    (void)state;
    struct fake_cluster cluster;
    struct calls calls = {0};
    struct datagram datagram;
    fake_cluster_open(&cluster, 1);
    cluster.config.heartbeat_period_ms =
        10 * scaled_ms(FAKE_LONG_MS); /* The test does not wait for a period. */
    struct heartbeat_thread *heartbeat_thread = open_heartbeat(&cluster, &calls, NULL);
    assert_int_equal(next_heartbeat(&cluster.monitors[0], &datagram).state, HEARTBEAT_STARTING);
    heartbeat_thread_state(heartbeat_thread, HEARTBEAT_UP);
    assert_int_equal(next_heartbeat(&cluster.monitors[0], &datagram).state, HEARTBEAT_UP);
    heartbeat_thread_state(heartbeat_thread, HEARTBEAT_STOPPING);
    assert_int_equal(next_heartbeat(&cluster.monitors[0], &datagram).state, HEARTBEAT_STOPPING);
    heartbeat_thread_close(heartbeat_thread, HEARTBEAT_THREAD_FAILED);
    fake_cluster_close(&cluster);
}

static void a_challenge_is_answered_at_once(void **state)
{
    (void)state;
    struct fake_cluster cluster;
    struct calls calls = {0};
    struct datagram datagram;
    fake_cluster_open(&cluster, 1);
    cluster.config.heartbeat_period_ms = 10 * scaled_ms(FAKE_LONG_MS);
    struct heartbeat_thread *heartbeat_thread = open_heartbeat(&cluster, &calls, NULL);
    for (uint64_t nonce = 1; nonce < 20; nonce++) {
        (void)next_heartbeat(&cluster.monitors[0], &datagram);
        assert_int_equal(datagram.nonce, nonce - 1);
        fake_monitor_challenge(&cluster.monitors[0], &datagram, nonce);
    }
    heartbeat_thread_close(heartbeat_thread, HEARTBEAT_THREAD_FAILED);
    fake_cluster_close(&cluster);
}

static void heartbeats_go_on_by_themselves(void **state)
{
    (void)state;
    struct fake_cluster cluster;
    struct calls calls = {0};
    struct datagram datagram;
    fake_cluster_open(&cluster, 1);
    struct heartbeat_thread *heartbeat_thread = open_heartbeat(&cluster, &calls, NULL);
    uint64_t begin_ms = clock_ms();
    uint64_t uptime_ms = 0;
    for (int i = 0; i < SOME_HEARTBEATS; i++) {
        struct heartbeat heartbeat = next_heartbeat(&cluster.monitors[0], &datagram);
        assert_true(heartbeat.uptime_ms >= uptime_ms);
        uptime_ms = heartbeat.uptime_ms;
    }
    /* Not more often than asked for, but for the first. */
    assert_true(clock_ms() - begin_ms >=
                (SOME_HEARTBEATS - 2) * cluster.config.heartbeat_period_ms);
    heartbeat_thread_close(heartbeat_thread, HEARTBEAT_THREAD_FAILED);
    fake_cluster_close(&cluster);
}

static void an_order_to_stop_is_obeyed_once(void **state)
{
    (void)state;
    struct fake_cluster cluster;
    struct calls calls = {0};
    struct datagram came;
    fake_cluster_open(&cluster, 1);
    struct fake_monitor *monitor = &cluster.monitors[0];
    struct heartbeat_thread *heartbeat_thread = open_heartbeat(&cluster, &calls, NULL);
    struct datagram order = {.kind = DATAGRAM_ORDER};
    order.order = (struct order){{3, 0}, ORDER_STOP, INCARNATION + 1};
    struct datagram kill_another = {.kind = DATAGRAM_ORDER};
    kill_another.order = (struct order){{3, 0}, ORDER_KILL, INCARNATION - 1};
    for (int i = 0; i < SOME_HEARTBEATS; i++) {
        (void)next_heartbeat(monitor, &came);
        fake_monitor_send(monitor, &order);
        fake_monitor_send(monitor, &kill_another);
    }
    assert_int_equal(atomic_load(&calls.stops), 0);
    order.order.incarnation = INCARNATION;
    send_until(monitor, &order, &calls.stops, 1);
    for (int i = 0; i < SOME_HEARTBEATS; i++) {
        (void)next_heartbeat(monitor, &came);
        fake_monitor_send(monitor, &order);
    }
    assert_int_equal(next_heartbeat(monitor, &came).seen.number, 3);
    heartbeat_thread_close(heartbeat_thread, HEARTBEAT_THREAD_FAILED);
    assert_int_equal(atomic_load(&calls.stops), 1);
    fake_cluster_close(&cluster);
}

static void views_and_events_are_passed_on(void **state)
{
    (void)state;
    struct fake_cluster cluster;
    struct calls calls = {0};
    struct datagram came;
    fake_cluster_open(&cluster, 1);
    struct fake_monitor *monitor = &cluster.monitors[0];
    struct heartbeat_thread *heartbeat_thread = open_heartbeat(&cluster, &calls, NULL);
    struct datagram view = {.kind = DATAGRAM_VIEW};
    view.view = (struct view){.term = {9, 0}, .leader = "m1", .node_total = 3};
    while (atomic_load(&calls.views) == 0) {
        (void)next_heartbeat(monitor, &came);
        fake_monitor_send(monitor, &view);
    }
    assert_int_equal(atomic_load(&calls.term), 9);
    struct datagram events = {.kind = DATAGRAM_EVENTS};
    events.events.event_count = 1;
    events.events.events[0] = (struct cluster_event){.place = {9, 4}, .node = "w2"};
    send_until(monitor, &events, &calls.events, 1);
    struct heartbeat heartbeat;
    do {
        heartbeat = next_heartbeat(monitor, &came);
    } while (heartbeat.events.sequence != 4);
    assert_int_equal(heartbeat.events.term, 9);
    heartbeat_thread_close(heartbeat_thread, HEARTBEAT_THREAD_FAILED);
    fake_cluster_close(&cluster);
}

static void run_until_killed(const struct fake_cluster *cluster)
{
    struct calls calls = {0};
    struct heartbeat_thread *heartbeat_thread = open_heartbeat(cluster, &calls, NULL);
    for (;;) {
        (void)pause(); /* A main loop that hangs. */
        heartbeat_thread_progress(heartbeat_thread);
    }
}

static void an_order_to_die_needs_no_main_loop(void **state)
{
    (void)state;
    struct fake_cluster cluster;
    fake_cluster_open(&cluster, 1);
    struct fake_monitor *monitor = &cluster.monitors[0];
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) run_until_killed(&cluster);
    struct datagram order = {.kind = DATAGRAM_ORDER};
    order.order = (struct order){{1, 0}, ORDER_KILL, INCARNATION};
    int result = 0;
    while (waitpid(child, &result, WNOHANG) == 0) {
        struct datagram came;
        if (!fake_monitor_receive(monitor, 50, &came)) continue;
        if (came.kind == DATAGRAM_CHALLENGE) {
            (void)replay_guard_challenged(&monitor->sender, FAKE_INCARNATION, &came.challenge);
        }
        fake_monitor_send(monitor, &order);
    }
    assert_true(WIFSIGNALED(result));
    assert_int_equal(WTERMSIG(result), SIGKILL);
    fake_cluster_close(&cluster);
}

static void whoever_outlives_its_supervisor_link_is_ended_without_a_main_loop(void **state)
{
    (void)state;
    struct fake_cluster cluster;
    fake_cluster_open(&cluster, 1);
    struct heartbeat_thread_options options = {
        .config = &cluster.config,
        .name = "w1",
        .supervisor_link = {.folder = "/nowhere",
                            .is_lost = true,
                            .lost_ms = clock_ms() - SUPERVISOR_LINK_KILL_MS},
    };
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct heartbeat_thread *heartbeat_thread = NULL;
        struct error err;
        if (heartbeat_thread_open(&options, &heartbeat_thread, &err) != STATUS_OK) _exit(1);
        (void)poll(NULL, 0, (int)scaled_ms(FAKE_LONG_MS)); /* A main loop that hangs. */
        _exit(2);
    }
    int result = 0;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFSIGNALED(result));
    assert_int_equal(WTERMSIG(result), SIGKILL);
    fake_cluster_close(&cluster);
}

static void monitors_on_loopback_are_talked_to_from_loopback(void **state)
{
    (void)state;
    static const struct {
        const char *hosts[2];
        const char *expected;
    } cases[] = {
        {{"127.0.0.1", "127.0.0.1"}, "127.0.0.1"},
        {{"127.0.0.1", "127.9.8.7"}, "127.0.0.1"},
        {{"::1", "::1"}, "::1"},
        {{"::1", "127.0.0.1"}, NULL},
        {{"127.0.0.1", "192.0.2.1"}, NULL},
        {{"192.0.2.1", "127.0.0.1"}, NULL},
        {{"::1", "2001:db8::1"}, NULL},
        {{"0.0.0.0", "0.0.0.0"}, NULL},
        {{"127.0.0.1", "no-such-host.invalid"}, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct config_endpoint monitors[] = {{"m1", cases[i].hosts[0], 1},
                                                   {"m2", cases[i].hosts[1], 2}};
        struct cluster_config config = {.monitors = monitors, .monitor_count = 2};
        const char *host = heartbeat_thread_host(&config);
        assert_int_equal(host == NULL, cases[i].expected == NULL);
        if (host != NULL) assert_string_equal(host, cases[i].expected);
    }
}

static void strangers_are_counted_and_told_of_once(void **state)
{
    (void)state;
    struct fake_cluster cluster;
    struct calls calls = {0};
    struct datagram came;
    struct error err;
    struct node_log *log = NULL;
    fake_cluster_open(&cluster, 1);
    struct fake_monitor *monitor = &cluster.monitors[0];
    struct fake_monitor adversary;
    assert_int_equal(node_log_open(cluster.folder, "w1", SAY_INFO, &log, &err), STATUS_OK);
    struct heartbeat_thread *heartbeat_thread = open_heartbeat(&cluster, &calls, log);
    (void)next_heartbeat(monitor, &came);
    fake_monitor_open(&adversary, "m1");
    adversary.key.bytes[0] ^= 1;
    memcpy(adversary.peer, monitor->peer, sizeof adversary.peer);
    adversary.peer_address = monitor->peer_address;
    struct datagram order = {.kind = DATAGRAM_ORDER};
    order.order = (struct order){{3, 0}, ORDER_KILL, INCARNATION};
    for (int i = 0; i < GARBAGE; i++) {
        fake_monitor_send(&adversary, &order);
        char noise[2 * DATAGRAM_BYTES_MAX];
        memset(noise, i, sizeof noise);
        assert_true(datagram_socket_send(adversary.socket, &adversary.peer_address, noise,
                                         1 + (size_t)i * 11));
        if (i % 10 == 0) (void)next_heartbeat(monitor, &came); /* We are not disturbed. */
    }
    heartbeat_thread_close(heartbeat_thread, HEARTBEAT_THREAD_FAILED);
    node_log_close(log);
    struct arena arena = {0};
    struct text text;
    assert_int_equal(file_read_whole(cluster.log_path, 1 << 20, &arena, &text, &err), STATUS_OK);
    const char *line = strstr(text.bytes, "event=datagrams-refused count=");
    assert_non_null(line);
    assert_null(strstr(line + 1, "event=")); /* One line, of all that may have been. */
    arena_done(&arena);
    fake_monitor_close(&adversary);
    fake_cluster_close(&cluster);
}

static void a_planned_end_is_told_three_times(void **state)
{
    (void)state;
    struct fake_cluster cluster;
    struct calls calls = {0};
    struct datagram came;
    for (int planned = 0; planned < 2; planned++) {
        fake_cluster_open(&cluster, 2);
        struct heartbeat_thread *heartbeat_thread = open_heartbeat(&cluster, &calls, NULL);
        heartbeat_thread_state(heartbeat_thread, HEARTBEAT_UP);
        for (int i = 0; i < 2; i++) {
            (void)next_heartbeat(&cluster.monitors[i], &came);
        }
        heartbeat_thread_close(heartbeat_thread,
                               planned == 1 ? HEARTBEAT_THREAD_PLANNED : HEARTBEAT_THREAD_FAILED);
        for (int i = 0; i < 2; i++) {
            int farewells = 0;
            while (fake_monitor_receive(&cluster.monitors[i], 50, &came)) {
                if (came.heartbeat.state == HEARTBEAT_STOPPED)
                    farewells++;
                else
                    assert_int_equal(farewells, 0); /* These are its last words. */
            }
            assert_int_equal(farewells, planned == 1 ? 3 : 0);
        }
        fake_cluster_close(&cluster);
    }
}

static void a_name_that_cannot_be_found_delays_nobody(void **state)
{
    (void)state;
    struct fake_cluster cluster;
    struct calls calls = {0};
    struct datagram came;
    fake_cluster_open(&cluster, 3);
    cluster.endpoints[0].host = "no-such-host.invalid";
    cluster.endpoints[2].host = "localhost"; /* May be ::1, where nobody listens. */
    struct heartbeat_thread *heartbeat_thread = open_heartbeat(&cluster, &calls, NULL);
    for (int i = 0; i < SOME_HEARTBEATS; i++) {
        (void)next_heartbeat(&cluster.monitors[1], &came);
    }
    heartbeat_thread_close(heartbeat_thread, HEARTBEAT_THREAD_PLANNED);
    fake_cluster_close(&cluster);
}

static void without_monitors_there_is_nothing_to_do(void **state)
{
    (void)state;
    struct cluster_config config = {.monitor_count = 0};
    struct heartbeat_thread_options options = {.config = &config, .name = "w1"};
    struct calls nobody = {0};
    struct heartbeat_thread *heartbeat_thread = (struct heartbeat_thread *)&nobody;
    struct error err;
    assert_int_equal(heartbeat_thread_open(&options, &heartbeat_thread, &err), STATUS_OK);
    assert_null(heartbeat_thread);
    heartbeat_thread_progress(heartbeat_thread);
    heartbeat_thread_state(heartbeat_thread, HEARTBEAT_UP);
    heartbeat_thread_jobs(heartbeat_thread, 1);
    heartbeat_thread_replayed(heartbeat_thread, 1);
    heartbeat_thread_close(heartbeat_thread, HEARTBEAT_THREAD_PLANNED);
}

static void without_its_key_a_node_does_not_start(void **state)
{
    (void)state;
    struct fake_cluster cluster;
    struct heartbeat_thread *heartbeat_thread = NULL;
    struct error err = {.text = ""};
    fake_cluster_open(&cluster, 1);
    struct heartbeat_thread_options options = {.config = &cluster.config, .name = "w1"};
    cluster.config.key_file = "/nowhere/key";
    assert_int_equal(heartbeat_thread_open(&options, &heartbeat_thread, &err), STATUS_USAGE);
    assert_non_null(strstr(err.text, "/nowhere/key"));
    assert_null(heartbeat_thread);
    fake_cluster_close(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_to_die_needs_no_main_loop), /* Forks: before there are threads. */
        cmocka_unit_test(
            whoever_outlives_its_supervisor_link_is_ended_without_a_main_loop), /* As well. */
        cmocka_unit_test(monitors_on_loopback_are_talked_to_from_loopback),
        cmocka_unit_test(heartbeats_tell_what_the_node_says),
        cmocka_unit_test(a_change_of_state_is_told_at_once),
        cmocka_unit_test(a_challenge_is_answered_at_once),
        cmocka_unit_test(heartbeats_go_on_by_themselves),
        cmocka_unit_test(an_order_to_stop_is_obeyed_once),
        cmocka_unit_test(views_and_events_are_passed_on),
        cmocka_unit_test(strangers_are_counted_and_told_of_once),
        cmocka_unit_test(a_planned_end_is_told_three_times),
        cmocka_unit_test(a_name_that_cannot_be_found_delays_nobody),
        cmocka_unit_test(without_monitors_there_is_nothing_to_do),
        cmocka_unit_test(without_its_key_a_node_does_not_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
