/* SPDX-License-Identifier: Apache-2.0 */
/* test_cluster_key.c - a key is used only if nobody else can know it, and made only once.
 *
 * Method: in a folder of the test's own a key is made and read; then every mode, every length,
 * every digit and every kind of file that it should not have is tried. Threads make one at the same
 * time. Owners are tried where the test may change them, which is as root.
 */
#include "unit/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/file/file.h"
#include "cluster/config/cluster_key.h"

enum { THREADS = 8, HEX_DIGITS = 64, ADVERSARY = 12345 };

static const char digits[] = "00112233445566778899aabbccddeeffFFEEDDCCBBAA99887766554433221100\n";

struct key_folder {
    char folder[256];
    char path[300];
    char other[300];
};

static void place_open(struct key_folder *place)
{
    const char *base = getenv("TMPDIR");
    (void)snprintf(place->folder, sizeof place->folder, "%s/millrace-test-XXXXXX",
                   base == NULL ? "/tmp" : base);
    assert_non_null(mkdtemp(place->folder));
    (void)snprintf(place->path, sizeof place->path, "%s/key", place->folder);
    (void)snprintf(place->other, sizeof place->other, "%s/other", place->folder);
}

static void place_close(const struct key_folder *place)
{
    (void)unlink(place->path);
    (void)unlink(place->other);
    assert_int_equal(rmdir(place->folder), 0); /* Nothing else was left behind. */
}

static void write_key(const char *path, const char *bytes, size_t size)
{
    (void)unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    assert_int_equal(close(fd), 0);
}

static bool is_read(const char *path)
{
    struct datagram_key key;
    struct error err = {.text = ""};
    status code = cluster_key_read(path, &key, &err);
    if (code == STATUS_OK) return true;
    assert_int_equal(code, STATUS_USAGE);
    assert_non_null(strstr(err.text, path));
    assert_null(strstr(err.text, "00112233")); /* What it holds is never told. */
    return false;
}

static void a_key_is_made_once_and_read(void **state)
{
    (void)state;
    struct key_folder place;
    struct datagram_key first = {{0}};
    struct datagram_key second = {{0}};
    struct error err;
    struct stat info;
    bool made = false;
    place_open(&place);
    assert_false(is_read(place.path));
    mode_t mask = umask(0);
    assert_int_equal(cluster_key_make(place.path, &made, &err), STATUS_OK);
    (void)umask(mask);
    assert_true(made);
    assert_int_equal(stat(place.path, &info), 0);
    assert_int_equal(info.st_mode, S_IFREG | 0600);
    assert_int_equal(info.st_size, HEX_DIGITS + 1);
    assert_int_equal(cluster_key_read(place.path, &first, &err), STATUS_OK);
    assert_int_equal(cluster_key_make(place.path, &made, &err), STATUS_OK);
    assert_false(made);
    assert_int_equal(cluster_key_read(place.path, &second, &err), STATUS_OK);
    assert_memory_equal(&first, &second, sizeof first);

    assert_int_equal(unlink(place.path), 0);
    assert_int_equal(cluster_key_make(place.path, &made, &err), STATUS_OK);
    assert_true(made);
    assert_int_equal(cluster_key_read(place.path, &second, &err), STATUS_OK);
    assert_memory_not_equal(&first, &second, sizeof first);
    place_close(&place);
}

static void folders_above_it_are_made(void **state)
{
    (void)state;
    struct key_folder place;
    struct error err;
    char path[320];
    bool made = false;
    place_open(&place);
    (void)snprintf(path, sizeof path, "%s/a/b/key", place.folder);
    assert_int_equal(cluster_key_make(path, &made, &err), STATUS_OK);
    assert_true(made);
    assert_true(is_read(path));
    assert_int_equal(unlink(path), 0);
    (void)snprintf(path, sizeof path, "%s/a/b", place.folder);
    assert_int_equal(rmdir(path), 0);
    (void)snprintf(path, sizeof path, "%s/a", place.folder);
    assert_int_equal(rmdir(path), 0);
    write_key(place.path, digits, HEX_DIGITS);
    (void)snprintf(path, sizeof path, "%s/key/key", place.folder);
    assert_int_equal(cluster_key_make(path, &made, &err), STATUS_USAGE);
    place_close(&place);
}

static void only_a_whole_key_is_read(void **state)
{
    (void)state;
    struct key_folder place;
    struct error err;
    struct datagram_key key;
    char bytes[2 * HEX_DIGITS];
    place_open(&place);
    write_key(place.path, digits, HEX_DIGITS + 1);
    assert_int_equal(cluster_key_read(place.path, &key, &err), STATUS_OK);
    for (int i = 0; i < DATAGRAM_KEY_BYTES; i++) {
        int digit = i < 16 ? i : 31 - i;
        assert_int_equal(key.bytes[i], digit * 17);
    }
    for (size_t size = 0; size <= sizeof bytes; size++) {
        for (size_t i = 0; i < sizeof bytes; i++) {
            bytes[i] = i < HEX_DIGITS ? digits[i] : '\n';
        }
        write_key(place.path, bytes, size);
        assert_int_equal(is_read(place.path), size == HEX_DIGITS || size == HEX_DIGITS + 1);
    }
    memcpy(bytes, digits, HEX_DIGITS + 1);
    bytes[HEX_DIGITS] = ' ';
    write_key(place.path, bytes, HEX_DIGITS + 1);
    assert_false(is_read(place.path));
    for (size_t i = 0; i < HEX_DIGITS; i++) {
        static const char wrong[] = {'g', 'G', ' ', '\n', '\0', '/', ':', '@', '`', '\x80'};
        for (size_t j = 0; j < sizeof wrong; j++) {
            memcpy(bytes, digits, HEX_DIGITS);
            bytes[i] = wrong[j];
            write_key(place.path, bytes, HEX_DIGITS);
            assert_false(is_read(place.path));
        }
    }
    place_close(&place);
}

static void others_may_not_use_it(void **state)
{
    (void)state;
    struct key_folder place;
    place_open(&place);
    write_key(place.path, digits, HEX_DIGITS);
    for (mode_t mode = 0; mode <= 0777; mode++) {
        if ((mode & S_IRUSR) == 0) continue; /* Only root could read it. */
        assert_int_equal(chmod(place.path, mode), 0);
        assert_int_equal(is_read(place.path), (mode & 077) == 0);
    }
    place_close(&place);
}

static void only_plain_files_are_read(void **state)
{
    (void)state;
    struct key_folder place;
    place_open(&place);
    assert_int_equal(mkdir(place.path, 0700), 0);
    assert_false(is_read(place.path));
    assert_int_equal(rmdir(place.path), 0);
    assert_int_equal(mkfifo(place.path, 0600), 0); /* Nobody writes to it: a read would wait. */
    assert_false(is_read(place.path));
    assert_int_equal(unlink(place.path), 0);
    /* Our own link is fine, one to nowhere is not. */
    assert_int_equal(symlink("other", place.path), 0);
    assert_false(is_read(place.path));
    write_key(place.other, digits, HEX_DIGITS);
    assert_true(is_read(place.path));
    assert_int_equal(chmod(place.other, 0640), 0);
    assert_false(is_read(place.path));
    place_close(&place);
}

static void other_owners_are_refused(void **state)
{
    (void)state;
    if (geteuid() != 0) skip();
    struct key_folder place;
    place_open(&place);
    write_key(place.path, digits, HEX_DIGITS);
    assert_true(is_read(place.path));
    assert_int_equal(chown(place.path, ADVERSARY, ADVERSARY), 0);
    assert_false(is_read(place.path));
    assert_int_equal(unlink(place.path), 0);

    write_key(place.other, digits, HEX_DIGITS);
    assert_int_equal(symlink("other", place.path), 0);
    assert_true(is_read(place.path));
    assert_int_equal(lchown(place.path, ADVERSARY, ADVERSARY), 0);
    assert_false(is_read(place.path));
    place_close(&place);
}

static void *make_one(void *context)
{
    struct error err;
    bool made = false;
    if (cluster_key_make(context, &made, &err) != STATUS_OK) return NULL;
    return made ? context : NULL;
}

static void of_many_makers_one_succeeds(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct key_folder place;
        pthread_t threads[THREADS];
        int made_count = 0;
        place_open(&place);
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, make_one, place.path), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            void *made = NULL;
            assert_int_equal(pthread_join(threads[i], &made), 0);
            made_count += made != NULL;
        }
        assert_int_equal(made_count, 1);
        assert_true(is_read(place.path));
        place_close(&place);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_made_once_and_read), cmocka_unit_test(folders_above_it_are_made),
        cmocka_unit_test(only_a_whole_key_is_read),    cmocka_unit_test(others_may_not_use_it),
        cmocka_unit_test(only_plain_files_are_read),   cmocka_unit_test(other_owners_are_refused),
        cmocka_unit_test(of_many_makers_one_succeeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
