/* SPDX-License-Identifier: Apache-2.0 */
/* test_file.c - files are read exactly, and patterns name what they seem to.
 *
 * Method: a folder made for each test, with real files. Patterns are compared, for all short
 * patterns and names over a small alphabet, with a matcher that follows the definition by
 * recursion.
 */
#include "unit/test.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/file/clock.h"
#include "engine/file/file.h"

static char folder[64];
static struct arena arena;
static struct error err;

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/test_file.XXXXXX");
    return mkdtemp(folder) == NULL ? -1 : 0;
}

/* The tests make no folder deeper than one. */
static int remove_folder(void **state)
{
    (void)state;
    arena_reset(&arena);
    struct file_entry *entries;
    uint32_t count;
    if (file_list(folder, &arena, &entries, &count, &err) != STATUS_OK) return -1;
    for (uint32_t i = 0; i < count; i++) {
        const char *path = file_path(folder, entries[i].name, &arena);
        if (entries[i].is_folder) {
            struct file_entry *inner;
            uint32_t inner_count;
            if (file_list(path, &arena, &inner, &inner_count, &err) != STATUS_OK) return -1;
            for (uint32_t j = 0; j < inner_count; j++) {
                (void)unlink(file_path(path, inner[j].name, &arena));
            }
            (void)rmdir(path);
        } else {
            (void)unlink(path);
        }
    }
    arena_done(&arena);
    return rmdir(folder);
}

static const char *path_of(const char *name)
{
    return file_path(folder, text_of(name), &arena);
}

static void write_file(const char *name, const char *content)
{
    FILE *file = fopen(path_of(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, strlen(content), file), strlen(content));
    assert_int_equal(fclose(file), 0);
}

static void every_part_of_a_file_can_be_read(void **state)
{
    (void)state;
    write_file("a", "0123456789");
    int fd = -1;
    struct file_info info;
    assert_int_equal(file_open(path_of("a"), &fd, &info, &err), STATUS_OK);
    assert_int_equal(info.size, 10);
    assert_true(info.modified_ns > 0);
    assert_true(info.inode > 0);
    for (uint64_t offset = 0; offset <= 10; offset++) {
        for (size_t size = 0; size <= 12; size++) {
            char bytes[13] = "............";
            struct file_part part = {fd, "a", offset, size};
            status expected = offset + size <= 10 || size == 0 ? STATUS_OK : STATUS_IO;
            assert_int_equal(file_read(part, bytes, &err), expected);
            if (expected == STATUS_OK) {
                assert_memory_equal(bytes, &"0123456789"[offset], size);
            } else {
                assert_non_null(strstr(err.text, "a: changed while it was read"));
            }
        }
    }
    file_close(fd);
    file_close(-1);
}

static void a_whole_file_is_read_up_to_the_limit(void **state)
{
    (void)state;
    write_file("a", "0123456789");
    write_file("empty", "");
    struct text text;
    assert_int_equal(file_read_whole(path_of("a"), 10, &arena, &text, &err), STATUS_OK);
    assert_true(text_equal(text, TEXT_LITERAL("0123456789")));
    assert_int_equal(text.bytes[text.size], 0);
    assert_int_equal(file_read_whole(path_of("empty"), 0, &arena, &text, &err), STATUS_OK);
    assert_int_equal(text.size, 0);
    assert_int_equal(file_read_whole(path_of("a"), 9, &arena, &text, &err), STATUS_LIMIT);
    assert_non_null(strstr(err.text, "has 10 bytes; the limit is 9"));
}

static void what_is_no_file_is_refused_by_name(void **state)
{
    (void)state;
    int fd = -1;
    assert_int_equal(file_open(path_of("none"), &fd, NULL, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "/none: No such file or directory"));
    assert_int_equal(file_open(folder, &fd, NULL, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "is a folder"));
    /* A pipe that nobody writes to must not make us wait. */
    assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
    assert_int_equal(file_open(path_of("pipe"), &fd, NULL, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "not a regular file"));
    assert_int_equal(fd, -1);

    struct file_entry *entries;
    uint32_t count;
    assert_int_equal(file_list(path_of("none"), &arena, &entries, &count, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "/none: No such file or directory"));
}

static void a_folder_is_listed_in_order_of_bytes(void **state)
{
    (void)state;
    const char *names[] = {"b", "a", "B", "a.b", "ab", ".hidden", "\xc3\xa4"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        write_file(names[i], "");
    }
    assert_int_equal(mkdir(path_of("Z"), 0700), 0);
    struct file_entry *entries;
    uint32_t count;
    assert_int_equal(file_list(folder, &arena, &entries, &count, &err), STATUS_OK);
    const char *expected[] = {".hidden", "B", "Z", "a", "a.b", "ab", "b", "\xc3\xa4"};
    assert_int_equal(count, sizeof expected / sizeof expected[0]);
    for (uint32_t i = 0; i < count; i++) {
        assert_string_equal(entries[i].name.bytes, expected[i]);
        assert_int_equal(entries[i].is_folder, strcmp(expected[i], "Z") == 0);
    }
}

static bool model_matches(const char *pattern, const char *name)
{
    if (*pattern == '\0') return *name == '\0';
    if (*pattern == '*') {
        return model_matches(pattern + 1, name) ||
               (*name != '\0' && model_matches(pattern, name + 1));
    }
    return *name != '\0' && (*pattern == '?' || *pattern == *name) &&
           model_matches(pattern + 1, name + 1);
}

/* The number in base `base` as digits of the alphabet; false when it has none left. */
static bool spell(uint32_t number, const char *alphabet, char *out)
{
    uint32_t base = (uint32_t)strlen(alphabet) + 1;
    size_t size = 0;
    for (; number > 0; number /= base) {
        if (number % base == 0) return false;
        out[size++] = alphabet[number % base - 1];
    }
    out[size] = '\0';
    return true;
}

static void short_patterns_match_as_defined(void **state)
{
    (void)state;
    uint32_t compared = 0;
    for (uint32_t i = 0; i < 7776; i++) {
        char pattern[16];
        if (!spell(i, "a.*?b", pattern)) continue;
        for (uint32_t j = 0; j < 256; j++) {
            char name[16];
            if (!spell(j, "a.b", name)) continue;
            bool hidden = name[0] == '.' && pattern[0] != '.';
            bool expected = !hidden && model_matches(pattern, name);
            assert_int_equal(file_name_matches(text_of(pattern), text_of(name)), expected);
            compared++;
        }
    }
    assert_true(compared > 100000);
}

static void check_glob(const char *base, const char *pattern, const char *expected)
{
    struct text *names;
    uint32_t count;
    char joined[256] = "";
    assert_int_equal(file_glob(base, text_of(pattern), &arena, &names, &count, &err), STATUS_OK);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(strlen(names[i].bytes), names[i].size);
        strncat(joined, names[i].bytes, sizeof joined - strlen(joined) - 1);
        strncat(joined, " ", sizeof joined - strlen(joined) - 1);
    }
    assert_string_equal(joined, expected);
}

static void a_glob_finds_files_in_order(void **state)
{
    (void)state;
    assert_int_equal(mkdir(path_of("part"), 0700), 0);
    assert_int_equal(mkdir(path_of("folder.csv"), 0700), 0);
    write_file("x2.csv", "");
    write_file("x10.csv", "");
    write_file("y.txt", "");
    write_file(".x.csv", "");
    write_file("part/b.csv", "");
    write_file("part/a.csv", "");
    assert_int_equal(symlink("y.txt", path_of("link.csv")), 0);

    check_glob(folder, "*.csv", "link.csv x10.csv x2.csv ");
    check_glob(folder, "x?.csv", "x2.csv ");
    check_glob(folder, ".*.csv", ".x.csv ");
    check_glob(folder, "y.txt", "y.txt ");
    check_glob(folder, "folder.csv", "");
    check_glob(folder, "part", "");
    check_glob(folder, "none", "");
    check_glob(folder, "none/*", "");
    check_glob(folder, "y.txt/*", "");
    check_glob(folder, "y.txt/a", "");
    check_glob(folder, "part/*", "part/a.csv part/b.csv ");
    check_glob(folder, "part/a.csv", "part/a.csv ");
    check_glob(folder, "*/a.csv", "");

    char absolute[128];
    char expected[128];
    snprintf(absolute, sizeof absolute, "%s/y*", folder);
    snprintf(expected, sizeof expected, "%s/y.txt ", folder);
    check_glob("/nowhere", absolute, expected);
}

static void the_soft_limit_of_descriptors_is_raised(void **state)
{
    (void)state;
    write_file("a", "x");
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    enum { FILES = 80, SOFT = 40 };
    if (before.rlim_max < FILES) skip();
    struct rlimit small = {.rlim_cur = SOFT, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
    int fds[FILES];
    for (int i = 0; i < FILES; i++) {
        assert_int_equal(file_open(path_of("a"), &fds[i], NULL, &err), STATUS_OK);
    }
    for (int i = 0; i < FILES; i++) {
        file_close(fds[i]);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void clocks_go_forward(void **state)
{
    (void)state;
    double start = clock_seconds();
    double cpu_start = clock_cpu_seconds();
    while (clock_cpu_seconds() - cpu_start < 0.002) {}
    assert_true(clock_seconds() - start >= 0.001);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(every_part_of_a_file_can_be_read),
        IN_FOLDER(a_whole_file_is_read_up_to_the_limit),
        IN_FOLDER(what_is_no_file_is_refused_by_name),
        IN_FOLDER(a_folder_is_listed_in_order_of_bytes),
        cmocka_unit_test(short_patterns_match_as_defined),
        IN_FOLDER(a_glob_finds_files_in_order),
        IN_FOLDER(the_soft_limit_of_descriptors_is_raised),
        cmocka_unit_test(clocks_go_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
