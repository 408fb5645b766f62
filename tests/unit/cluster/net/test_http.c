/* SPDX-License-Identifier: Apache-2.0 */
/* test_http.c - client and server keep their word to each other, and the server to unknown senders.
 *
 * Method: both in one process, over loopback. What a well-behaved client never does is done through
 * a plain socket.
 */
#include "unit/cluster/net/http_world.h"

#include <signal.h>

/* ---- what a good client does ---- */

static void bodies_of_all_sizes_go_round_with_every_method(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 4095, 4096, 65537, BODY_LIMIT - 1, BODY_LIMIT};
    static const char *const methods[] = {"PUT", "POST", "GET", "DELETE"};
    struct http_world world;
    world_open(&world, NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct buf sent = make_bytes(sizes[i]);
        for (size_t j = 0; j < sizeof methods / sizeof methods[0]; j++) {
            struct http_done done = call(&world, methods[j], "/echo", buf_text(&sent));
            assert_false(done.failed);
            assert_int_equal(done.status, 200);
            assert_string_equal(done.content_type, "text/plain");
            assert_true(text_equal(buf_text(&done.body), buf_text(&sent)));
            assert_int_equal((uintptr_t)done.body.bytes % 8, 0);
            buf_done(&done.body);
        }
        buf_done(&sent);
    }
    expect_status(&world, "HEAD", "/tell", nothing, 200);
    expect_status(&world, "GET", "/nothing", nothing, 204);
    world_close(&world);
}

static void expect_told(struct http_world *world, const char *method, const char *target,
                        struct text body, const char *expected)
{
    struct http_done done = call(world, method, target, body);
    assert_int_equal(done.status, 200);
    buf_put_u8(&done.body, 0);
    assert_string_equal((const char *)done.body.bytes, expected);
    buf_done(&done.body);
}

static void the_listener_sees_method_path_query_and_headers(void **state)
{
    (void)state;
    struct http_world world;
    world_open(&world, NULL);
    expect_told(&world, "GET", "/tell", nothing, "GET|/tell||first|second, third|0");
    expect_told(&world, "DELETE", "/tell/a%20b/../c?x=%20&y=1?2", nothing,
                "DELETE|/tell/a%20b/../c|x=%20&y=1?2|first|second, third|0");
    expect_told(&world, "PUT", "/tell?", text_of("12345"), "PUT|/tell||first|second, third|5");
    expect_status(&world, "GET", "/tell%00/secret", nothing, 400);
    expect_status(&world, "GET", "/tell?%00", nothing, 200);
    world_close(&world);
}

static void retry_after_is_rounded_up_to_seconds(void **state)
{
    (void)state;
    struct http_world world;
    world_open(&world, NULL);
    struct http_done done = call(&world, "GET", "/later", nothing);
    assert_int_equal(done.status, 429);
    assert_int_equal(done.retry_after_ms, 2000);
    assert_string_equal(done.content_type, "application/octet-stream");
    world_close(&world);
}

static void many_calls_are_answered_in_any_order(void **state)
{
    (void)state;
    enum { CALLS = 200, AT_ONCE = 16 };
    struct http_world world;
    char bodies[CALLS][16];
    bool seen[CALLS] = {false};
    struct error err;
    world_open(&world, NULL);
    for (uint32_t i = 0; i < CALLS; i++) {
        (void)snprintf(bodies[i], sizeof bodies[i], "body %u", i);
        start(&world, i, "PUT", "/hold", text_of(bodies[i]));
    }
    for (uint32_t finished = 0; finished < CALLS;) {
        struct http_done done;
        bool any = false;
        assert_int_equal(http_client_poll(world.client, 10, &done, &any, &err), STATUS_OK);
        if (!any) {
            pthread_t thread;
            assert_int_equal(pthread_create(&thread, NULL, reply_in_reverse, &world), 0);
            assert_int_equal(pthread_join(thread, NULL), 0);
            continue;
        }
        assert_false(done.failed);
        assert_false(seen[done.id]);
        seen[done.id] = true;
        assert_true(text_equal(buf_text(&done.body), text_of(bodies[done.id])));
        buf_done(&done.body);
        finished++;
    }
    world_close(&world);
}

static void connections_are_used_again(void **state)
{
    (void)state;
    struct http_world world;
    struct http_server_options options = server_options(&world);
    options.address_limit = 1; /* A second connection would be closed. */
    world_open(&world, &options);
    for (int i = 0; i < 20; i++) {
        expect_status(&world, "PUT", "/echo", text_of("again"), 200);
    }
    world_close(&world);
}

static void requests_may_follow_each_other_without_waiting(void **state)
{
    (void)state;
    struct http_world world;
    char text[4096];
    world_open(&world, NULL);
    int fd = raw_open(&world);
    raw_say(fd, "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nfirst"
                "PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                "3\r\nsec\r\n3\r\nond\r\n0\r\n\r\n"
                "GET /tell?third HTTP/1.1\r\nHost: x\r\n\r\n"
                "GET /tell?last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_true(raw_read(fd, NULL, text, sizeof text));
    const char *first = strstr(text, "first");
    assert_non_null(first);
    const char *second = strstr(first, "second");
    assert_non_null(second);
    const char *third = strstr(second, "third");
    assert_non_null(third);
    assert_non_null(strstr(third, "last"));
    close(fd);
    world_close(&world);
}

/* ---- limits ---- */

static void a_body_over_the_limit_is_refused(void **state)
{
    (void)state;
    struct http_world world;
    world_open(&world, NULL);
    struct buf large = make_bytes(3 * BODY_LIMIT);
    for (int i = 0; i < 20; i++) {
        struct text body = {(const char *)large.bytes,
                            i % 2 == 0 ? 3 * BODY_LIMIT : BODY_LIMIT + 1};
        expect_status(&world, "PUT", "/echo", body, 413);
    }
    buf_done(&large);
    assert_int_equal(counted(&world, &world.request_count), 0);
    expect_status(&world, "GET", "/tell", nothing, 200);
    world_close(&world);
}

static void a_body_that_is_announced_too_large_is_refused_before_it_comes(void **state)
{
    (void)state;
    struct http_world world;
    char text[4096];
    world_open(&world, NULL);
    int fd = raw_open(&world);
    raw_say(fd, "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n");
    assert_true(raw_read(fd, NULL, text, sizeof text));
    assert_true(starts_with(text_of(text), "HTTP/1.1 413 "));
    assert_non_null(strstr(text, "Content-Type: application/json"));
    close(fd);
    fd = raw_open(&world);
    raw_say(fd, "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n");
    assert_true(raw_read(fd, NULL, text, sizeof text));
    assert_true(starts_with(text_of(text), "HTTP/1.1 4"));
    close(fd);
    world_close(&world);
}

/* Sends chunks of 64 KiB; false when the server closes before the end. */
static bool send_chunks(int fd, uint32_t count)
{
    static char chunk[7 + 65536 + 2];
    memset(chunk, 'x', sizeof chunk);
    memcpy(chunk, "10000\r\n", 7);
    memcpy(chunk + 7 + 65536, "\r\n", 2);
    raw_say(fd, "PUT /tell HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (uint32_t i = 0; i < count; i++) {
        if (!raw_send(fd, chunk, sizeof chunk)) return false;
    }
    return raw_send(fd, "0\r\n\r\n", 5);
}

static void a_body_in_chunks_has_the_same_limit(void **state)
{
    (void)state;
    struct http_world world;
    char text[4096];
    world_open(&world, NULL);
    int fd = raw_open(&world);
    assert_true(send_chunks(fd, 16));
    assert_true(raw_read(fd, "|1048576", text, sizeof text));
    assert_true(send_chunks(fd, 17));
    assert_true(raw_read(fd, "}}", text, sizeof text));
    assert_true(starts_with(text_of(text), "HTTP/1.1 413 "));
    assert_false(send_chunks(fd, 10000));
    close(fd);
    wait_until_bodies_take(&world, 0);
    world_close(&world);
}

static void bodies_together_have_a_limit_too(void **state)
{
    (void)state;
    struct http_world world;
    struct http_server_options options = server_options(&world);
    world_open(&world, &options);
    atomic_store(&world.bodies.used_bytes, BUDGET - 1000);
    struct buf body = make_bytes(600);
    expect_status(&world, "PUT", "/echo", buf_text(&body), 200);
    start(&world, 1000, "PUT", "/hold", buf_text(&body));
    wait_until_held(&world, 1);
    struct http_done done = call(&world, "PUT", "/echo", buf_text(&body));
    assert_int_equal(done.status, 503);
    assert_int_equal(done.retry_after_ms, 1000);
    buf_done(&done.body);
    expect_status(&world, "PUT", "/tell", text_of("small"), 200);
    (void)reply_in_reverse(&world);
    finish(world.client, &done);
    assert_int_equal(done.id, 1000);
    assert_int_equal(done.status, 200);
    buf_done(&done.body);
    wait_until_bodies_take(&world, BUDGET - 1000);
    expect_status(&world, "PUT", "/echo", buf_text(&body), 200);
    buf_done(&body);
    atomic_fetch_sub(&world.bodies.used_bytes, BUDGET - 1000);
    world_close(&world);
}

/* Whether they end, or would go on for ever. */
static void headers_that_are_too_large_are_refused(void **state)
{
    (void)state;
    enum { ENDLESS = 1 << 20 };
    struct http_world world;
    char text[4096];
    static char junk[ENDLESS];
    memset(junk, 'j', sizeof junk);
    world_open(&world, NULL);
    static const size_t sizes[] = {HEADER_LIMIT, 4 * HEADER_LIMIT, ENDLESS};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int fd = raw_open(&world);
        raw_say(fd, "GET /tell HTTP/1.1\r\nHost: x\r\nX-One: ");
        (void)raw_send(fd, junk, sizes[i]); /* May be refused half way, and so may be the end. */
        (void)raw_send(fd, "\r\n\r\n", 4);
        assert_true(raw_read(fd, NULL, text, sizeof text));
        assert_true(starts_with(text_of(text), "HTTP/1.1 431 "));
        close(fd);
    }
    int fd = raw_open(&world);
    raw_say(fd, "GET /tell HTTP/1.1\r\nHost: x\r\n");
    bool open = true;
    for (int i = 0; i < ENDLESS / 11 && open; i++) {
        open = raw_send(fd, "X-Junk: y\r\n", 11);
    }
    assert_true(raw_read(fd, NULL, text, sizeof text));
    assert_true(starts_with(text_of(text), "HTTP/1.1 431 "));
    close(fd);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        fd = raw_open(&world);
        raw_say(fd, "GET /");
        (void)raw_send(fd, junk, sizes[i]);
        (void)raw_send(fd, " HTTP/1.1\r\nHost: x\r\n\r\n", 22);
        assert_true(raw_read(fd, NULL, text, sizeof text));
        assert_true(starts_with(text_of(text), "HTTP/1.1 414 ") ||
                    starts_with(text_of(text), "HTTP/1.1 431 "));
        close(fd);
    }
    assert_int_equal(counted(&world, &world.request_count), 0);
    world_close(&world);
}

static void malformed_requests_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *sent;
        const char *answer; /* Empty: what is not HTTP at all is just closed. */
    } wrong[] = {
        {"\x16\x03\x01\x02\r\n\r\n", ""},
        {"GET\r\n\r\n", ""},
        {"GET /tell HTTP/9.9\r\nHost: x\r\n\r\n", "505"},
        {"GET /tell HTTP/1.1\r\n\r\n", "400"},
        {"GET /tell HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n", "400"},
        {"PUT /tell HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "400"},
        {"PUT /tell HTTP/1.1\r\nHost: x\r\nContent-Length: 1x\r\n\r\ny", "400"},
        {"PUT /tell HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nyy",
         "400"},
        {"PUT /tell HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
         "400"},
        {"PUT /tell HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", "400"},
        {"PUT /tell HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n", "400"},
    };
    struct http_world world;
    world_open(&world, NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[4096];
        char answer[32] = "";
        int fd = raw_open(&world);
        raw_say(fd, wrong[i].sent);
        assert_true(raw_read(fd, NULL, text, sizeof text));
        if (wrong[i].answer[0] != '\0') {
            (void)snprintf(answer, sizeof answer, "HTTP/1.1 %s ", wrong[i].answer);
        }
        text[strlen(answer)] = '\0';
        assert_string_equal(text, answer);
        close(fd);
    }
    assert_int_equal(counted(&world, &world.request_count), 0);
    expect_status(&world, "GET", "/tell", nothing, 200);
    world_close(&world);
}

static void clients_over_the_connection_limit_wait_their_turn(void **state)
{
    (void)state;
    enum { LIMIT = 4, CLIENTS = 50 };
    struct http_world world;
    struct http_server_options options = server_options(&world);
    options.connection_limit = LIMIT;
    world_open(&world, &options);
    int sockets[CLIENTS];
    char text[4096];
    for (int i = 0; i < CLIENTS; i++) {
        sockets[i] = raw_open(&world);
        raw_say(sockets[i], "GET /tell HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    wait_for(&world, &world.request_count, LIMIT);
    usleep(scaled_ms(20) * 1000);
    assert_int_equal(counted(&world, &world.request_count), LIMIT);
    for (int i = 0; i < CLIENTS; i++) {
        assert_true(raw_read(sockets[i], "|0", text, sizeof text));
        close(sockets[i]);
    }
    world_close(&world);
}

/* ---- nobody waits for the sweep ---- */

enum { ROUNDS = 40 };

static void a_reply_from_another_thread_is_sent_at_once(void **state)
{
    (void)state;
    struct http_world world;
    struct http_done done;
    struct http_server_options options = server_options(&world);
    options.sweep_ms = SWEEP_NEVER_MS;
    world_open(&world, &options);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        start(&world, i, "PUT", "/hold", text_of("body"));
        wait_until_held(&world, 1);
        usleep(1000); /* The server's thread goes to sleep. */
        (void)reply_in_reverse(&world);
        finish(world.client, &done);
        assert_int_equal(done.status, 200);
        assert_true(text_equal(buf_text(&done.body), text_of("body")));
        buf_done(&done.body);
    }
    world_close(&world);
}

static void a_client_that_leaves_makes_room_at_once(void **state)
{
    (void)state;
    struct http_world world;
    struct http_server_options options = server_options(&world);
    char text[4096];
    options.connection_limit = 1;
    options.sweep_ms = SWEEP_NEVER_MS;
    world_open(&world, &options);
    int fd = raw_open(&world);
    raw_say(fd, "GET /tell HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(raw_read(fd, "|0", text, sizeof text));
    for (uint32_t i = 0; i < ROUNDS; i++) {
        int next = raw_open(&world);
        raw_say(next, "GET /tell HTTP/1.1\r\nHost: x\r\n\r\n");
        usleep(1000); /* The server's thread goes to sleep. */
        close(fd);
        assert_true(raw_read(next, "|0", text, sizeof text));
        fd = next;
    }
    close(fd);
    world_close(&world);
}

/* ---- slow and vanishing clients ---- */

static void clients_that_drip_or_fall_silent_are_dropped(void **state)
{
    (void)state;
    enum { CASES = 4 };
    static const char *const begin[CASES] = {
        "",
        "GET /t",
        "GET /tell HTTP/1.1\r\nX-One: ",
        "PUT /tell HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
    };
    struct http_world world;
    struct http_server_options options = server_options(&world);
    options.idle_timeout_s = scaled_ms(1000) / 1000;
    options.deadline_ms = scaled_ms(400);
    world_open(&world, &options);
    int sockets[CASES];
    uint64_t closed_ms[CASES] = {0};
    int left = CASES;
    uint64_t begun_ms = clock_ms();
    for (int i = 0; i < CASES; i++) {
        sockets[i] = raw_open(&world);
        raw_say(sockets[i], begin[i]);
    }
    while (left > 0 && clock_ms() - begun_ms < scaled_ms(5000)) {
        usleep(20000);
        for (int i = 0; i < CASES; i++) {
            char byte;
            if (closed_ms[i] > 0) continue;
            if (i > 0) (void)raw_send(sockets[i], "a", 1);
            ssize_t got = recv(sockets[i], &byte, 1, MSG_DONTWAIT);
            if (got > 0 || (got < 0 && errno == EAGAIN)) continue;
            closed_ms[i] = clock_ms() - begun_ms;
            left--;
        }
    }
    assert_int_equal(left, 0);
    /* A tenth of a second is for clocks that tick. */
    uint64_t idle_ms = options.idle_timeout_s * 1000;
    assert_true(closed_ms[0] + 100 >= idle_ms);
    assert_true(closed_ms[1] + 100 >= idle_ms + options.deadline_ms);
    for (int i = 2; i < CASES; i++) {
        assert_true(closed_ms[i] + 50 >= options.deadline_ms && closed_ms[i] < closed_ms[1]);
    }
    for (int i = 0; i < CASES; i++) {
        close(sockets[i]);
    }
    wait_until_bodies_take(&world, 0);
    assert_int_equal(counted(&world, &world.request_count), 0);
    world_close(&world);
}

static void a_client_that_does_not_read_its_reply_is_dropped(void **state)
{
    (void)state;
    struct http_world world;
    struct http_server_options options = server_options(&world);
    options.deadline_ms = scaled_ms(300);
    options.body_limit = 16 << 20;
    world_open(&world, &options);
    int fd = raw_open(&world);
    struct buf body = make_bytes(16 << 20);
    raw_say(fd, "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 16777216\r\n\r\n");
    assert_true(raw_send(fd, (const char *)body.bytes, body.size));
    buf_done(&body);
    wait_for(&world, &world.request_count, 1);
    wait_until_bodies_take(&world, 0);
    close(fd);
    world_close(&world);
}

static void the_listener_is_told_when_a_waiting_client_is_gone(void **state)
{
    (void)state;
    struct http_world world;
    world_open(&world, NULL);
    for (uint32_t i = 0; i < 8; i++) {
        int fd = raw_open(&world);
        raw_say(fd, "PUT /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody");
        wait_for(&world, &world.held_count, i + 1);
        if (i % 2 == 0) {
            struct linger reset = {.l_onoff = 1};
            assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
        }
        close(fd);
        wait_for(&world, &world.gone_count, i + 1);
        assert_int_equal(world.gone[i], world.held[i].id);
    }
    (void)reply_in_reverse(&world); /* Nobody hears it. */
    expect_status(&world, "GET", "/tell", nothing, 200);
    assert_int_equal(counted(&world, &world.gone_count), 8);
    world_close(&world);
}

/* Replies and hang-ups meet in every order; each request ends exactly once. */
static void replies_may_cross_with_clients_that_leave(void **state)
{
    (void)state;
    struct http_world world;
    world_open(&world, NULL);
    for (uint32_t i = 0; i < 60; i++) {
        int fd = raw_open(&world);
        raw_say(fd, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
        wait_for(&world, &world.held_count, 1);
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, reply_in_reverse, &world), 0);
        usleep(i % 6 * 20);
        close(fd);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    expect_status(&world, "GET", "/tell", nothing, 200);
    world_close(&world);
}

static void a_reply_of_many_bytes_to_a_client_that_left_is_no_signal(void **state)
{
    (void)state;
    struct http_world world;
    world_open(&world, NULL);
    assert_true(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    int fd = raw_open(&world);
    raw_say(fd, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_for(&world, &world.held_count, 1);
    struct http_reply reply = {.status = 200, .body = make_bytes(8 << 20)};
    close(fd);
    http_server_reply(world.server, world.held[0].id, &reply);
    usleep(20000);
    expect_status(&world, "GET", "/tell", nothing, 200);
    world_close(&world);
}

/* ---- the end ---- */

static void after_stop_taking_only_requests_in_flight_are_served(void **state)
{
    (void)state;
    struct http_world world;
    world_open(&world, NULL);
    char text[4096];
    int fd = raw_open(&world);
    raw_say(fd, "PUT /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nhand");
    wait_for(&world, &world.held_count, 1);
    http_server_stop_taking(world.server);
    struct http_done done = call(&world, "PUT", "/echo", text_of("new"));
    assert_int_equal(done.status, 503);
    assert_int_equal(done.retry_after_ms, 1000);
    buf_done(&done.body);
    (void)reply_in_reverse(&world);
    assert_true(raw_read(fd, NULL, text, sizeof text));
    assert_non_null(strstr(text, "\r\n\r\nhand"));
    assert_non_null(strstr(text, "Connection: close"));
    close(fd);
    world_close(&world);
}

static void close_turns_away_who_waits(void **state)
{
    (void)state;
    struct http_world world;
    world_open(&world, NULL);
    enum { CLIENTS = 10 };
    int sockets[CLIENTS];
    char text[4096];
    for (int i = 0; i < CLIENTS; i++) {
        sockets[i] = raw_open(&world);
        raw_say(sockets[i], "PUT /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody");
    }
    int idle = raw_open(&world);
    int half = raw_open(&world);
    raw_say(half, "PUT /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbo");
    wait_for(&world, &world.held_count, CLIENTS);
    uint64_t begin_ms = clock_ms();
    http_server_close(world.server);
    world.server = NULL;
    assert_true(clock_ms() - begin_ms < scaled_ms(3000));
    for (int i = 0; i < CLIENTS; i++) {
        assert_true(raw_read(sockets[i], NULL, text, sizeof text));
        assert_true(starts_with(text_of(text), "HTTP/1.1 503 "));
        close(sockets[i]);
    }
    assert_true(raw_is_closed_within(idle, scaled_ms(1000)));
    assert_true(raw_is_closed_within(half, scaled_ms(1000)));
    close(idle);
    close(half);
    assert_int_equal(world.gone_count, 0);
    world_close(&world);
}

/* The library ends the process if it is stopped while somebody waits. */
static void close_turns_away_who_ends_a_request_just_then(void **state)
{
    (void)state;
    enum { CLOSINGS = 20, LATE = 16, HALF = 5 };
    for (int round = 0; round < CLOSINGS; round++) {
        struct http_world world;
        int fds[LATE];
        world_open(&world, NULL);
        int waiting = raw_open(&world);
        raw_say(waiting, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
        wait_for(&world, &world.held_count, 1);
        for (int i = 0; i < LATE; i++) {
            fds[i] = raw_open(&world);
            raw_say(fds[i], "PUT /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n01234");
        }
        uint64_t end_ms = clock_ms() + scaled_ms(LONG_MS);
        while (atomic_load(&world.bodies.used_bytes) < (size_t)LATE * 2 * HALF) {
            assert_true(clock_ms() < end_ms);
            usleep(1000);
        }
        for (int i = 0; i < LATE; i++) {
            raw_say(fds[i], "56789");
        }
        world_close(&world);
        for (int i = 0; i < LATE; i++) {
            close(fds[i]);
        }
        close(waiting);
    }
}

static void a_server_says_why_it_can_not_listen(void **state)
{
    (void)state;
    struct http_world world;
    struct error err;
    struct http_server *second = NULL;
    world_open(&world, NULL);
    struct http_server_options options = server_options(&world);
    options.port = http_server_port(world.server);
    assert_int_equal(http_server_open(&options, &world.listener, &second, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "in use"));
    options.address = "192.0.2.1"; /* Set aside for examples: nobody's. */
    assert_int_equal(http_server_open(&options, &world.listener, &second, &err), STATUS_IO);
    assert_null(second);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_of_all_sizes_go_round_with_every_method),
        cmocka_unit_test(the_listener_sees_method_path_query_and_headers),
        cmocka_unit_test(retry_after_is_rounded_up_to_seconds),
        cmocka_unit_test(many_calls_are_answered_in_any_order),
        cmocka_unit_test(connections_are_used_again),
        cmocka_unit_test(requests_may_follow_each_other_without_waiting),
        cmocka_unit_test(a_body_over_the_limit_is_refused),
        cmocka_unit_test(a_body_that_is_announced_too_large_is_refused_before_it_comes),
        cmocka_unit_test(a_body_in_chunks_has_the_same_limit),
        cmocka_unit_test(bodies_together_have_a_limit_too),
        cmocka_unit_test(headers_that_are_too_large_are_refused),
        cmocka_unit_test(malformed_requests_are_refused),
        cmocka_unit_test(clients_over_the_connection_limit_wait_their_turn),
        cmocka_unit_test(a_reply_from_another_thread_is_sent_at_once),
        cmocka_unit_test(a_client_that_leaves_makes_room_at_once),
        cmocka_unit_test(clients_that_drip_or_fall_silent_are_dropped),
        cmocka_unit_test(a_client_that_does_not_read_its_reply_is_dropped),
        cmocka_unit_test(the_listener_is_told_when_a_waiting_client_is_gone),
        cmocka_unit_test(replies_may_cross_with_clients_that_leave),
        cmocka_unit_test(a_reply_of_many_bytes_to_a_client_that_left_is_no_signal),
        cmocka_unit_test(after_stop_taking_only_requests_in_flight_are_served),
        cmocka_unit_test(close_turns_away_who_waits),
        cmocka_unit_test(close_turns_away_who_ends_a_request_just_then),
        cmocka_unit_test(a_server_says_why_it_can_not_listen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
