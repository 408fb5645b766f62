/* SPDX-License-Identifier: Apache-2.0 */
/* test_node_log.c - one event is one line, whatever is in it and however many threads tell.
 *
 * Method: lines are written into a folder of the test's own and read back, byte for byte but for
 * the time.
 */
#include "unit/test.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/buf.h"
#include "cluster/node/node_log.h"

enum { THREADS = 4, LINES = 500, LINE_LIMIT = 4096 };

struct log_place {
    char folder[256];
    char path[300];
};

static void place_open(struct log_place *place)
{
    const char *base = getenv("TMPDIR");
    (void)snprintf(place->folder, sizeof place->folder, "%s/millrace-test-XXXXXX",
                   base == NULL ? "/tmp" : base);
    assert_non_null(mkdtemp(place->folder));
    (void)snprintf(place->path, sizeof place->path, "%s/log", place->folder);
}

static void place_close(const struct log_place *place)
{
    assert_int_equal(unlink(place->path), 0);
    assert_int_equal(rmdir(place->folder), 0);
}

static struct node_log *open_log(const struct log_place *place, enum say_level level)
{
    struct node_log *log = NULL;
    struct error err;
    assert_int_equal(node_log_open(place->folder, "w1", level, &log, &err), STATUS_OK);
    return log;
}

static void read_all(const struct log_place *place, struct buf *out)
{
    char bytes[4096];
    FILE *file = fopen(place->path, "rb");
    assert_non_null(file);
    for (size_t size = 1; size > 0;) {
        size = fread(bytes, 1, sizeof bytes, file);
        buf_put(out, bytes, size);
    }
    assert_int_equal(fclose(file), 0);
    assert_false(out->failed);
}

/* Behind "2026-11-15T07:31:04.120Z ", if it is a time. */
static const char *behind_time(const char *line)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd.dddZ ";
    for (size_t i = 0; i < sizeof form - 1; i++) {
        bool is_right = form[i] == 'd' ? isdigit((unsigned char)line[i]) != 0 : line[i] == form[i];
        assert_true(is_right);
    }
    return line + sizeof form - 1;
}

/* The whole log, without times. */
static void check_log(const struct log_place *place, const char *expected)
{
    struct buf read = {0};
    struct buf lines = {0};
    read_all(place, &read);
    buf_put_u8(&read, 0);
    for (char *line = (char *)read.bytes; *line != '\0';) {
        char *end = strchr(line, '\n');
        assert_non_null(end);
        *end = '\0';
        buf_format(&lines, "%s\n", behind_time(line));
        line = end + 1;
    }
    buf_put_u8(&lines, 0);
    assert_false(lines.failed);
    assert_string_equal((const char *)lines.bytes, expected);
    buf_done(&read);
    buf_done(&lines);
}

static void an_event_is_a_line_with_level_and_node(void **state)
{
    (void)state;
    struct log_place place;
    place_open(&place);
    struct node_log *log = open_log(&place, SAY_DEBUG);
    node_log_say(log, SAY_ERROR, "event=%s job=%s", "job-failed", "j1");
    node_log_say(log, SAY_WARN, "event=reconnected");
    node_log_say(log, SAY_INFO, "event=started build=%d", 7);
    node_log_say(log, SAY_DEBUG, "%s", "");
    node_log_close(log);
    check_log(&place, "level=error node=w1 event=job-failed job=j1\n"
                      "level=warn node=w1 event=reconnected\n"
                      "level=info node=w1 event=started build=7\n"
                      "level=debug node=w1 \n");
    place_close(&place);
}

static void lines_above_the_level_are_left_out(void **state)
{
    (void)state;
    static const enum say_level levels[] = {SAY_ERROR, SAY_WARN, SAY_INFO, SAY_DEBUG};
    static const char *const names[] = {"error", "warn", "info", "debug"};
    for (size_t i = 0; i < 4; i++) {
        struct log_place place;
        struct buf expected = {0};
        place_open(&place);
        struct node_log *log = open_log(&place, levels[i]);
        for (size_t j = 0; j < 4; j++) {
            node_log_say(log, levels[j], "event=e");
            if (j <= i) buf_format(&expected, "level=%s node=w1 event=e\n", names[j]);
        }
        node_log_close(log);
        buf_put_u8(&expected, 0);
        check_log(&place, (const char *)expected.bytes);
        buf_done(&expected);
        place_close(&place);
    }
}

static void line_ends_within_an_event_are_blanks(void **state)
{
    (void)state;
    struct log_place place;
    place_open(&place);
    struct node_log *log = open_log(&place, SAY_INFO);
    node_log_say(log, SAY_INFO, "text=%s", "\nq1.sql:1:2: wrong\r\n  1 | x\n");
    node_log_close(log);
    check_log(&place, "level=info node=w1 text= q1.sql:1:2: wrong    1 | x \n");
    place_close(&place);
}

/* Around the limit every length is tried: the line is cut, and ends as a line does. */
static void long_events_are_cut(void **state)
{
    (void)state;
    struct log_place place;
    place_open(&place);
    struct node_log *log = open_log(&place, SAY_INFO);
    static char text[2 * LINE_LIMIT];
    static const int sizes[] = {100, 2 * LINE_LIMIT - 1};
    memset(text, 'x', sizeof text);
    for (int size = LINE_LIMIT - 80; size <= LINE_LIMIT + 3; size++) {
        node_log_say(log, SAY_INFO, "%.*s", size, text);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        node_log_say(log, SAY_INFO, "%.*s", sizes[i], text);
    }
    node_log_close(log);
    struct buf read = {0};
    read_all(&place, &read);
    size_t longest = 0;
    uint32_t line_count = 0;
    for (size_t start = 0; start < read.size;) {
        unsigned char *line = read.bytes + start;
        unsigned char *end = memchr(line, '\n', read.size - start);
        assert_non_null(end);
        size_t size = (size_t)(end - line) + 1;
        assert_null(memchr(line, '\0', size));
        assert_memory_equal(end - 3, "xxx", 3);
        if (size > longest) longest = size;
        line_count++;
        start += size;
    }
    assert_int_equal(line_count, 86);
    assert_true(longest <= LINE_LIMIT);
    assert_true(longest >= LINE_LIMIT - 2);
    buf_done(&read);
    place_close(&place);
}

static void a_log_is_continued_by_the_next_start(void **state)
{
    (void)state;
    struct log_place place;
    place_open(&place);
    for (int start = 0; start < 3; start++) {
        struct node_log *log = open_log(&place, SAY_INFO);
        node_log_say(log, SAY_INFO, "start=%d", start);
        node_log_close(log);
    }
    check_log(&place, "level=info node=w1 start=0\n"
                      "level=info node=w1 start=1\n"
                      "level=info node=w1 start=2\n");
    place_close(&place);
}

static void *say_lines(void *context)
{
    struct node_log *log = context;
    for (int i = 0; i < LINES; i++) {
        node_log_say(log, SAY_INFO, "event=%d text=%s", i, "abcdefghijklmnopqrstuvwxyz");
    }
    return NULL;
}

static void threads_do_not_mix_their_lines(void **state)
{
    (void)state;
    struct log_place place;
    pthread_t threads[THREADS];
    place_open(&place);
    struct node_log *log = open_log(&place, SAY_INFO);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, say_lines, log), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    node_log_close(log);
    struct buf read = {0};
    uint32_t seen[LINES] = {0};
    read_all(&place, &read);
    buf_put_u8(&read, 0);
    for (char *line = (char *)read.bytes; *line != '\0'; line = strchr(line, '\n') + 1) {
        int number = -1;
        int size = 0;
        const char *text = behind_time(line);
        (void)sscanf(text, "level=info node=w1 event=%d text=abcdefghijklmnopqrstuvwxyz%n", &number,
                     &size);
        assert_in_range(number, 0, LINES - 1);
        assert_int_equal(text[size], '\n');
        seen[number]++;
    }
    for (int i = 0; i < LINES; i++) {
        assert_int_equal(seen[i], THREADS);
    }
    buf_done(&read);
    place_close(&place);
}

static void what_cannot_be_opened_is_an_error(void **state)
{
    (void)state;
    struct node_log *log = NULL;
    struct error err = {.text = ""};
    static char folder[5000];
    assert_int_equal(node_log_open("/nonexistent/folder", "w1", SAY_INFO, &log, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "/nonexistent/folder/log"));
    memset(folder, 'x', sizeof folder - 1);
    assert_int_equal(node_log_open(folder, "w1", SAY_INFO, &log, &err), STATUS_USAGE);
    assert_null(log);
    /* Whoever has no log may speak all the same. */
    node_log_say(NULL, SAY_ERROR, "event=e");
    node_log_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_is_a_line_with_level_and_node),
        cmocka_unit_test(lines_above_the_level_are_left_out),
        cmocka_unit_test(line_ends_within_an_event_are_blanks),
        cmocka_unit_test(long_events_are_cut),
        cmocka_unit_test(a_log_is_continued_by_the_next_start),
        cmocka_unit_test(threads_do_not_mix_their_lines),
        cmocka_unit_test(what_cannot_be_opened_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
