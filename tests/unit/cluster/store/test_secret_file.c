/* SPDX-License-Identifier: Apache-2.0 */
/* test_secret_file.c - secrets are read only where nobody else can read them.
 *
 * Method: one file with every mode there is; then files that hold what people confuse. Memory runs
 * out at every allocation.
 */
#include "unit/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/base/memory.h"
#include "cluster/store/secret_file.h"

static char path[] = "/tmp/millrace-test-XXXXXX"; /* In no other run. */

static void write_file(const char *content, mode_t mode)
{
    (void)unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    size_t size = strlen(content);
    assert_int_equal(write(fd, content, size), size);
    assert_int_equal(close(fd), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void only_modes_without_others_are_accepted(void **state)
{
    (void)state;
    for (mode_t mode = 0400; mode <= 0777; mode++) {
        struct arena arena = {0};
        struct text text;
        struct error err;
        if ((mode & 0400) == 0) continue;
        write_file("secret\n", mode);
        status result = secret_file_read(path, 100, &arena, &text, &err);
        if ((mode & 0077) == 0) {
            assert_int_equal(result, STATUS_OK);
            assert_string_equal(text.bytes, "secret\n");
        } else {
            assert_int_equal(result, STATUS_USAGE);
            assert_non_null(strstr(err.text, "chmod 600 /tmp/millrace-test-"));
        }
        arena_done(&arena);
    }
}

static void sizes_are_bounded_and_nothing_is_something(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct text text;
    struct error err;
    write_file("12345", 0600);
    assert_int_equal(secret_file_read(path, 5, &arena, &text, &err), STATUS_OK);
    assert_int_equal(secret_file_read(path, 4, &arena, &text, &err), STATUS_INPUT);
    write_file("", 0600);
    assert_int_equal(secret_file_read(path, 4, &arena, &text, &err), STATUS_OK);
    assert_string_equal(text.bytes, "");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(secret_file_read(path, 4, &arena, &text, &err), STATUS_IO);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(secret_file_read("/tmp", 4, &arena, &text, &err), STATUS_IO);
    arena_done(&arena);
}

static void keys_and_certificates_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *content;
        const char *as_key; /* NULL: it is one. */
        const char *as_certificate;
    } cases[] = {
        {"-----BEGIN PRIVATE KEY-----\nx\n", NULL, "holds no certificate in PEM, but a key"},
        {"-----BEGIN EC PRIVATE KEY-----\nx\n", NULL, "holds no certificate in PEM, but a key"},
        {"text\n-----BEGIN CERTIFICATE-----\n", "holds no private key in PEM, but a certificate",
         NULL},
        {"-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n", NULL, NULL},
        {"-----BEGIN ENCRYPTED PRIVATE KEY-----\n", "needs a password", "but a key"},
        {"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n", "needs a password",
         "but a key"},
        {"", "holds no private key in PEM", "holds no certificate in PEM"},
        {"\x30\x82", "holds no private key in PEM", "holds no certificate in PEM"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena = {0};
        struct text text;
        struct error err;
        write_file(cases[i].content, 0600);
        status result = secret_file_read_key(path, &arena, &text, &err);
        assert_int_equal(result, cases[i].as_key == NULL ? STATUS_OK : STATUS_USAGE);
        if (result != STATUS_OK) assert_non_null(strstr(err.text, cases[i].as_key));
        assert_int_equal(chmod(path, 0644), 0);
        result = secret_file_read_certificates(path, &arena, &text, &err);
        assert_int_equal(result, cases[i].as_certificate == NULL ? STATUS_OK : STATUS_USAGE);
        if (result != STATUS_OK) assert_non_null(strstr(err.text, cases[i].as_certificate));
        assert_int_equal(secret_file_read_key(path, &arena, &text, &err), STATUS_USAGE);
        arena_done(&arena);
    }
}

static void memory_that_runs_out_is_an_error(void **state)
{
    (void)state;
    bool refused = true;
    write_file("-----BEGIN PRIVATE KEY-----\n", 0600);
    for (size_t count = 0; refused; count++) {
        struct arena arena = {0};
        struct text text;
        struct error err;
        memory_fail_after(count);
        status result = secret_file_read_key(path, &arena, &text, &err);
        refused = memory_was_refused();
        memory_fail_never();
        assert_int_equal(result, refused ? STATUS_MEMORY : STATUS_OK);
        arena_done(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_modes_without_others_are_accepted),
        cmocka_unit_test(sizes_are_bounded_and_nothing_is_something),
        cmocka_unit_test(keys_and_certificates_are_told_apart),
        cmocka_unit_test(memory_that_runs_out_is_an_error),
    };
    int fd = mkstemp(path);
    if (fd < 0 || close(fd) != 0) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(path);
    return failed;
}
