/* SPDX-License-Identifier: Apache-2.0 */
/* test_peer_addresses.c - addresses are known at once, names soon, and nobody waits for either.
 *
 * Method: audit of digits, of names that every system knows and of names that none knows are
 * opened, asked and closed again at once, so that closing meets look-ups that are under way.
 */
#include "unit/test.h"

#include <string.h>
#include <time.h>

#include "engine/file/clock.h"
#include "cluster/net/peer_addresses.h"

enum { LONG_MS = 20000, ROUNDS = 50 };

static struct peer_addresses *open_addresses(const struct peer_addresses_entry *entries,
                                             uint32_t count)
{
    struct peer_addresses *addresses = NULL;
    struct error err;
    assert_int_equal(peer_addresses_open(entries, count, &addresses, &err), STATUS_OK);
    return addresses;
}

static void check_address(struct peer_addresses *addresses, uint32_t index, const char *host,
                          uint16_t port)
{
    struct socket_address found;
    struct socket_address expected;
    assert_true(peer_addresses_find(addresses, index, &found));
    assert_true(socket_address_parse(host, port, &expected));
    assert_int_equal(found.size, expected.size);
    assert_memory_equal(found.bytes, expected.bytes, sizeof found.bytes);
}

static void digits_are_known_at_once(void **state)
{
    (void)state;
    const struct peer_addresses_entry entries[] = {
        {"127.0.0.1", 7201}, {"::1", 7202}, {NULL, 0}, {"192.0.2.7", 65535}};
    struct socket_address found;
    struct peer_addresses *addresses = open_addresses(entries, 4);
    check_address(addresses, 0, "127.0.0.1", 7201);
    check_address(addresses, 1, "::1", 7202);
    assert_false(peer_addresses_find(addresses, 2, &found));
    check_address(addresses, 3, "192.0.2.7", 65535);
    peer_addresses_close(addresses);
    peer_addresses_close(open_addresses(NULL, 0));
    peer_addresses_close(NULL);
}

static void a_name_is_known_soon(void **state)
{
    (void)state;
    char name[] = "localhost"; /* Entries are copied: this is overwritten below. */
    struct peer_addresses_entry entries[] = {{"127.0.0.1", 1}, {name, 7201}};
    struct peer_addresses *addresses = open_addresses(entries, 2);
    memset(name, 'x', sizeof name - 1);
    entries[0] = entries[1];
    struct socket_address found;
    uint64_t begin_ms = clock_ms();
    while (!peer_addresses_find(addresses, 1, &found)) {
        struct timespec moment = {.tv_nsec = 1000000};
        (void)nanosleep(&moment, NULL);
        assert_true(clock_ms() - begin_ms < scaled_ms(LONG_MS));
    }
    check_address(addresses, 0, "127.0.0.1", 1);
    peer_addresses_close(addresses);
}

static void closing_waits_for_no_look_up(void **state)
{
    (void)state;
    const struct peer_addresses_entry entries[] = {
        {"localhost", 1}, {"no-such-host.invalid", 1}, {"127.0.0.1", 1}};
    for (int i = 0; i < ROUNDS; i++) {
        struct socket_address found;
        struct peer_addresses *addresses = open_addresses(entries, 3);
        check_address(addresses, 2, "127.0.0.1", 1);
        assert_false(peer_addresses_find(addresses, 1, &found));
        peer_addresses_close(addresses);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits_are_known_at_once),
        cmocka_unit_test(a_name_is_known_soon),
        cmocka_unit_test(closing_waits_for_no_look_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
