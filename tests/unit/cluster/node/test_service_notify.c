/* SPDX-License-Identifier: Apache-2.0 */
/* test_service_notify.c - a supervisor hears when a node is ready and when it stops; without one
 * nothing happens.
 *
 * Method: a socket of our own plays the supervisor, in a folder and in the abstract name space.
 */
#include "cluster/node/service_notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "unit/test.h"

static int supervisor_open(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = strlen(name);
    assert_true(size < sizeof address.sun_path);
    memcpy(address.sun_path, name, size);
    if (name[0] == '@') address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    socklen_t address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, address_size), 0);
    assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
    return fd;
}

static void expect(int fd, const char *text)
{
    char bytes[64] = {0};
    ssize_t size = recv(fd, bytes, sizeof bytes - 1, 0);
    assert_int_equal(size, strlen(text));
    assert_string_equal(bytes, text);
}

static void hears_both(const char *name)
{
    int fd = supervisor_open(name);
    assert_true(service_notify(SERVICE_READY));
    assert_true(service_notify(SERVICE_STOPPING));
    expect(fd, "READY=1");
    expect(fd, "STOPPING=1");
    assert_int_equal(close(fd), 0);
}

static void a_supervisor_hears_of_ready_and_stopping(void **state)
{
    (void)state;
    char folder[] = "/tmp/millrace-test-XXXXXX";
    char path[64];
    assert_non_null(mkdtemp(folder));
    assert_true(snprintf(path, sizeof path, "%s/notify", folder) < (int)sizeof path);
    hears_both(path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void a_name_outside_the_file_system_works_too(void **state)
{
    (void)state;
    char name[64];
    assert_true(snprintf(name, sizeof name, "@millrace-test-%ld", (long)getpid()) <
                (int)sizeof name);
    hears_both(name);
}

static void without_a_supervisor_nothing_happens(void **state)
{
    (void)state;
    char long_name[256];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[0] = '/';
    long_name[sizeof long_name - 1] = '\0';
    const char *const names[] = {"", "relative", "/nowhere/at/all", long_name};
    assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
    assert_false(service_notify(SERVICE_READY));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(setenv("NOTIFY_SOCKET", names[i], 1), 0);
        assert_false(service_notify(SERVICE_READY));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_supervisor_hears_of_ready_and_stopping),
        cmocka_unit_test(a_name_outside_the_file_system_works_too),
        cmocka_unit_test(without_a_supervisor_nothing_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
