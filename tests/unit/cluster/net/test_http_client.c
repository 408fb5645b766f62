/* SPDX-License-Identifier: Apache-2.0 */
/* test_http_client.c - a call ends in one way only, and the client says in which.
 *
 * Method: calls that are held, cancelled, too large, or can't be made at all; and every allocation
 * of client and server made to fail once.
 */
#include "unit/cluster/net/http_world.h"

static struct http_done call_base(struct http_client *client, const char *base, uint32_t timeout_ms)
{
    struct http_done done;
    struct error err;
    struct http_call what = {
        .base = base,
        .method = TEXT_LITERAL("GET"),
        .target = TEXT_LITERAL("/hold"),
        .timeout_ms = timeout_ms,
    };
    assert_int_equal(http_client_start(client, 7, &what, &err), STATUS_OK);
    finish(client, &done);
    assert_int_equal(done.id, 7);
    return done;
}

static void calls_that_can_not_succeed_say_why(void **state)
{
    (void)state;
    struct http_world world;
    char base[64];
    world_open(&world, NULL);
    (void)snprintf(base, sizeof base, "http://127.0.0.1:%u", http_server_port(world.server));
    struct http_done done = call_base(world.client, base, scaled_ms(50));
    assert_true(done.failed);
    assert_int_equal(done.error.code, STATUS_IO);
    assert_non_null(strstr(done.error.text, "timed out"));
    static const char *const hopeless[] = {
        "http://127.0.0.1:1", "ftp://127.0.0.1", "file:///etc", "http://no.such.host.invalid", "",
        "http://[::"};
    for (size_t i = 0; i < sizeof hopeless / sizeof hopeless[0]; i++) {
        done = call_base(world.client, hopeless[i], scaled_ms(2000));
        assert_true(done.failed);
        assert_int_equal(done.error.code, STATUS_IO);
        assert_true(done.error.text[0] != '\0');
    }
    world_close(&world);
}

static void an_answer_over_the_limit_is_a_failure(void **state)
{
    (void)state;
    struct http_world world;
    struct error err;
    world_open(&world, NULL);
    http_client_close(world.client);
    struct http_client_options options = client_options();
    options.body_limit = 1000;
    assert_int_equal(http_client_open(&options, &world.client, &err), STATUS_OK);
    struct buf body = make_bytes(1001);
    struct http_done done = call(&world, "PUT", "/echo", buf_text(&body));
    assert_true(done.failed);
    assert_int_equal(done.error.code, STATUS_LIMIT);
    body.size = 1000;
    expect_status(&world, "PUT", "/echo", buf_text(&body), 200);
    buf_done(&body);
    world_close(&world);
}

static void a_poll_ends_with_time(void **state)
{
    (void)state;
    struct http_world world;
    struct http_done done;
    struct error err;
    bool any = true;
    world_open(&world, NULL);
    uint64_t begin_ms = clock_ms();
    assert_int_equal(http_client_poll(world.client, 30, &done, &any, &err), STATUS_OK);
    assert_false(any);
    assert_true(clock_ms() - begin_ms >= 25);
    world_close(&world);
}

static void calls_over_the_limit_are_not_started(void **state)
{
    (void)state;
    struct http_client_options options = client_options();
    struct http_client *client = NULL;
    struct error err;
    struct http_call what = {.base = "http://127.0.0.1:1", .method = TEXT_LITERAL("GET")};
    options.call_limit = 2;
    assert_int_equal(http_client_open(&options, &client, &err), STATUS_OK);
    assert_int_equal(http_client_start(client, 1, &what, &err), STATUS_OK);
    assert_int_equal(http_client_start(client, 2, &what, &err), STATUS_OK);
    assert_int_equal(http_client_start(client, 3, &what, &err), STATUS_LIMIT);
    http_client_close(client);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct http_world world;
    struct error err;
    world_open(&world, NULL);
    struct http_server_options options = server_options(&world);
    for (size_t allowed = 0;; allowed++) {
        struct http_server *server = NULL;
        struct http_client *client = NULL;
        struct http_client_options for_client = client_options();
        memory_fail_after(allowed);
        status served = http_server_open(&options, &world.listener, &server, &err);
        status called = http_client_open(&for_client, &client, &err);
        memory_fail_never();
        http_server_close(server);
        http_client_close(client);
        if (!memory_was_refused()) break;
        assert_true(served == STATUS_MEMORY || called == STATUS_MEMORY);
    }
    bool refused = true;
    for (size_t allowed = 0; refused; allowed++) {
        struct http_done done;
        char base[64];
        (void)snprintf(base, sizeof base, "http://127.0.0.1:%u", http_server_port(world.server));
        struct http_call what = {
            .base = base,
            .method = TEXT_LITERAL("PUT"),
            .target = TEXT_LITERAL("/echo"),
            .body = TEXT_LITERAL("some bytes"),
            .timeout_ms = scaled_ms(LONG_MS),
        };
        memory_fail_after(allowed);
        bool started = http_client_start(world.client, 1, &what, &err) == STATUS_OK;
        if (started) finish(world.client, &done);
        memory_fail_never();
        refused = memory_was_refused();
        if (!started) continue;
        assert_true(done.failed || done.status == 503 || done.status == 200);
        buf_done(&done.body);
    }
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_can_not_succeed_say_why),
        cmocka_unit_test(an_answer_over_the_limit_is_a_failure),
        cmocka_unit_test(a_poll_ends_with_time),
        cmocka_unit_test(calls_over_the_limit_are_not_started),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
