/* SPDX-License-Identifier: Apache-2.0 */
/* test_datagram_socket.c - datagrams go both ways between all kinds of sockets, and nobody waits
 * longer than asked.
 *
 * Method: sockets of IPv4, of IPv6 and of both send to each other on the loopback; where an answer
 * goes must be what was looked up. Threads wait while others wake and close.
 */
#include "unit/test.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "engine/file/clock.h"
#include "cluster/net/datagram_socket.h"

enum { LONG_MS = 20000, SHORT_MS = 60, ROUNDS = 200 };

static struct datagram_socket *open_socket(const char *host, uint16_t port)
{
    struct datagram_socket *socket = NULL;
    struct error err = {.text = ""};
    if (datagram_socket_open(host, port, &socket, &err) != STATUS_OK) {
        print_error("%s\n", err.text);
        fail();
    }
    assert_true(datagram_socket_port(socket) != 0);
    return socket;
}

static bool has_ipv6(void)
{
    struct datagram_socket *socket = NULL;
    struct error err;
    bool has = datagram_socket_open("::1", 0, &socket, &err) == STATUS_OK;
    datagram_socket_close(socket);
    return has;
}

static struct socket_address find(const char *host, uint16_t port)
{
    struct socket_address address = {.size = 0};
    struct error err;
    assert_int_equal(socket_address_find(host, port, &address, &err), STATUS_OK);
    return address;
}

static void check_equal(const struct socket_address *a, const struct socket_address *b)
{
    assert_int_equal(a->size, b->size);
    assert_memory_equal(a->bytes, b->bytes, sizeof a->bytes);
}

/* From `a` to `b` at `host`, and back to where it came from. */
static void check_both_ways(struct datagram_socket *a, struct datagram_socket *b, const char *host)
{
    struct socket_address to = find(host, datagram_socket_port(b));
    struct socket_address expected = find(host, datagram_socket_port(a));
    struct socket_address from;
    char bytes[16];
    assert_true(datagram_socket_send(a, &to, "there", 5));
    assert_int_equal(datagram_socket_receive(b, scaled_ms(LONG_MS), bytes, sizeof bytes, &from), 5);
    assert_memory_equal(bytes, "there", 5);
    check_equal(&from, &expected);
    assert_true(datagram_socket_send(b, &from, "back", 4));
    assert_int_equal(datagram_socket_receive(a, scaled_ms(LONG_MS), bytes, sizeof bytes, &from), 4);
    assert_memory_equal(bytes, "back", 4);
    check_equal(&from, &to);
}

static void sockets_of_every_family_reach_each_other(void **state)
{
    (void)state;
    struct datagram_socket *v4 = open_socket("127.0.0.1", 0);
    struct datagram_socket *all = open_socket(NULL, 0);
    struct datagram_socket *other = open_socket(NULL, 0);
    check_both_ways(all, v4, "127.0.0.1");
    check_both_ways(v4, all, "127.0.0.1");
    check_both_ways(all, other, "127.0.0.1");
    if (has_ipv6()) {
        struct datagram_socket *v6 = open_socket("::1", 0);
        struct socket_address to = find("::1", datagram_socket_port(v6));
        check_both_ways(all, v6, "::1");
        check_both_ways(v6, all, "::1");
        check_both_ways(all, other, "::1");
        assert_false(datagram_socket_send(v4, &to, "x", 1));
        datagram_socket_close(v6);
    }
    datagram_socket_close(v4);
    datagram_socket_close(all);
    datagram_socket_close(other);
}

static void a_wait_ends_when_it_should(void **state)
{
    (void)state;
    struct datagram_socket *socket = open_socket("127.0.0.1", 0);
    struct socket_address self = find("127.0.0.1", datagram_socket_port(socket));
    struct socket_address from;
    char bytes[16];
    assert_int_equal(datagram_socket_receive(socket, 0, bytes, sizeof bytes, &from), 0);
    uint64_t begin_ms = clock_ms();
    /* Empty datagrams neither end nor prolong it. */
    assert_true(datagram_socket_send(socket, &self, "", 0));
    assert_int_equal(datagram_socket_receive(socket, SHORT_MS, bytes, sizeof bytes, &from), 0);
    assert_true(clock_ms() - begin_ms >= SHORT_MS - 1);
    assert_true(clock_ms() - begin_ms < scaled_ms(LONG_MS));
    datagram_socket_close(socket);
}

static void what_is_too_long_is_cut(void **state)
{
    (void)state;
    struct datagram_socket *socket = open_socket("127.0.0.1", 0);
    struct socket_address self = find("127.0.0.1", datagram_socket_port(socket));
    struct socket_address from;
    char bytes[4];
    assert_true(datagram_socket_send(socket, &self, "123456", 6));
    assert_true(datagram_socket_send(socket, &self, "7", 1));
    assert_int_equal(datagram_socket_receive(socket, scaled_ms(LONG_MS), bytes, 3, &from), 3);
    assert_memory_equal(bytes, "123", 3);
    assert_int_equal(datagram_socket_receive(socket, scaled_ms(LONG_MS), bytes, 3, &from), 1);
    assert_memory_equal(bytes, "7", 1);
    datagram_socket_close(socket);
}

static void what_cannot_be_sent_is_lost(void **state)
{
    (void)state;
    struct datagram_socket *socket = open_socket("127.0.0.1", 0);
    struct socket_address nowhere = {.size = 0};
    struct socket_address too_long = {.size = SOCKET_ADDRESS_BYTES + 1};
    struct socket_address noise = {.bytes = {1, 2, 3}, .size = 3};
    struct socket_address nobody = find("127.0.0.1", 1);
    struct socket_address from;
    char bytes[4];
    assert_false(datagram_socket_send(socket, &nowhere, "x", 1));
    assert_false(datagram_socket_send(socket, &too_long, "x", 1));
    assert_false(datagram_socket_send(socket, &noise, "x", 1));
    assert_true(datagram_socket_send(socket, &nobody, "x", 1));
    assert_int_equal(datagram_socket_receive(socket, SHORT_MS, bytes, sizeof bytes, &from), 0);
    datagram_socket_close(socket);
}

static void a_socket_that_cannot_be_is_an_error(void **state)
{
    (void)state;
    struct datagram_socket *socket = open_socket("127.0.0.1", 0);
    struct datagram_socket *second = NULL;
    struct error err = {.text = ""};
    uint16_t port = datagram_socket_port(socket);
    assert_int_equal(datagram_socket_open("127.0.0.1", port, &second, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "in use"));
    assert_int_equal(datagram_socket_open("192.0.2.1", 0, &second, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "no address of this host"));
    assert_int_equal(datagram_socket_open("..", 0, &second, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "cannot resolve"));
    assert_null(second);
    datagram_socket_close(socket);
    datagram_socket_close(NULL);
}

static void *receive_long(void *context)
{
    struct socket_address from;
    char bytes[4];
    size_t size = datagram_socket_receive(context, scaled_ms(LONG_MS), bytes, sizeof bytes, &from);
    return size == 0 ? NULL : context;
}

static void *receive_shortly_after(void *context)
{
    struct timespec moment = {.tv_nsec = 200000};
    (void)nanosleep(&moment, NULL); /* So that close finds it waiting, or about to. */
    return receive_long(context);
}

static void who_waits_can_be_woken(void **state)
{
    (void)state;
    struct datagram_socket *socket = open_socket("127.0.0.1", 0);
    struct socket_address from;
    char bytes[4];
    uint64_t begin_ms = clock_ms();
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t thread;
        void *got = socket;
        assert_int_equal(pthread_create(&thread, NULL,
                                        i % 2 == 0 ? receive_long : receive_shortly_after, socket),
                         0);
        datagram_socket_wake(socket);
        assert_int_equal(pthread_join(thread, &got), 0);
        assert_null(got);
    }
    /* A wake is used up, however often it was said. */
    datagram_socket_wake(socket);
    datagram_socket_wake(socket);
    assert_int_equal(
        datagram_socket_receive(socket, scaled_ms(LONG_MS), bytes, sizeof bytes, &from), 0);
    assert_true(clock_ms() - begin_ms < scaled_ms(LONG_MS));
    begin_ms = clock_ms();
    assert_int_equal(datagram_socket_receive(socket, SHORT_MS, bytes, sizeof bytes, &from), 0);
    assert_true(clock_ms() - begin_ms >= SHORT_MS - 1);
    datagram_socket_close(socket);
}

struct waiter {
    struct datagram_socket *socket;
    atomic_bool has_begun;
};

static void *begin_to_receive(void *context)
{
    struct waiter *waiter = context;
    struct datagram_socket *socket = waiter->socket;
    atomic_store(&waiter->has_begun, true);
    return receive_long(socket);
}

static void closing_ends_a_wait(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        struct datagram_socket *socket = open_socket("127.0.0.1", 0);
        uint64_t begin_ms = clock_ms();
        pthread_t thread;
        void *got = socket;
        struct waiter waiter = {.socket = socket};
        assert_int_equal(pthread_create(&thread, NULL, begin_to_receive, &waiter), 0);
        while (!atomic_load(&waiter.has_begun)) {
            (void)sched_yield(); /* Cannot fail. */
        }
        (void)poll(NULL, 0, (int)scaled_ms(20)); /* Now it waits. */
        datagram_socket_close(socket);
        assert_int_equal(pthread_join(thread, &got), 0);
        assert_null(got);
        assert_true(clock_ms() - begin_ms < scaled_ms(LONG_MS));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sockets_of_every_family_reach_each_other),
        cmocka_unit_test(a_wait_ends_when_it_should),
        cmocka_unit_test(what_is_too_long_is_cut),
        cmocka_unit_test(what_cannot_be_sent_is_lost),
        cmocka_unit_test(a_socket_that_cannot_be_is_an_error),
        cmocka_unit_test(who_waits_can_be_woken),
        cmocka_unit_test(closing_ends_a_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
