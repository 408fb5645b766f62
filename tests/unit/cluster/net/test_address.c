/* SPDX-License-Identifier: Apache-2.0 */
/* test_address.c - what stands in the way of a server is told before it is started.
 *
 * Method: an address is taken by a socket of the test, and asked for; then those that nobody has.
 * Addresses from both sides of every border of loopback.
 */
#include "unit/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/net/address.h"

static int listen_somewhere(uint16_t *out_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *out_port = ntohs(address.sin_port);
    return fd;
}

static void a_port_that_is_taken_is_told_until_it_is_free(void **state)
{
    (void)state;
    uint16_t port = 0;
    struct error err;
    int fd = listen_somewhere(&port);
    assert_int_equal(address_check("127.0.0.1", port, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "in use by another process"));
    assert_int_equal(address_check("localhost", port, &err), STATUS_IO);
    assert_int_equal(address_check("0.0.0.0", port, &err), STATUS_IO);
    assert_int_equal(address_check("127.0.0.1", 0, &err), STATUS_OK);
    assert_int_equal(close(fd), 0);
    assert_int_equal(address_check("127.0.0.1", port, &err), STATUS_OK);
    assert_int_equal(address_check("127.0.0.1", port, &err), STATUS_OK);
}

static void an_address_of_somebody_else_is_told(void **state)
{
    (void)state;
    struct error err;
    /* For documentation only (RFC 5737, 3). */
    assert_int_equal(address_check("192.0.2.1", 7101, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "no address of this host"));
    assert_int_equal(address_check("no such host", 7101, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "cannot resolve"));
}

static void loopback_is_what_only_this_host_reaches(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        bool is_loopback;
    } cases[] = {
        {"127.0.0.1", true},
        {"127.255.255.254", true},
        {"::1", true},
        {"localhost", true},
        {"::ffff:127.1.2.3", true},
        {"0.0.0.0", false},
        {"::", false},
        {"10.0.0.1", false},
        {"126.0.0.1", false},
        {"128.0.0.1", false},
        {"fe80::1", false},
        {"::2", false},
        {"::ffff:10.0.0.1", false},
    };
    struct error err;
    bool is_loopback = false;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        is_loopback = !cases[i].is_loopback;
        assert_int_equal(address_is_loopback(cases[i].host, &is_loopback, &err), STATUS_OK);
        assert_int_equal(is_loopback, cases[i].is_loopback);
    }
    assert_int_equal(address_is_loopback("no.such.host.invalid", &is_loopback, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "no.such.host.invalid"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_that_is_taken_is_told_until_it_is_free),
        cmocka_unit_test(an_address_of_somebody_else_is_told),
        cmocka_unit_test(loopback_is_what_only_this_host_reaches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
