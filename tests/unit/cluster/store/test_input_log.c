/* SPDX-License-Identifier: Apache-2.0 */
/* test_input_log.c - a log gives back what was appended, up to the first damage and not beyond.
 *
 * Method: a small log is cut at every byte, gets every bit flipped, and has records moved; the
 * replay must give exactly the records before the damage, and appending must go on from there. A
 * model in memory (the payloads in order) says what is expected. Writes are made to fail by a limit
 * on the size of files, at every size; allocations one after the other.
 */
#include "unit/test.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/base/memory.h"
#include "engine/base/random.h"
#include "engine/file/file.h"
#include "engine/file/clock.h"
#include "cluster/store/input_log.h"
#include "cluster/store/input_log_record.h"

static char folder[64];
static struct arena arena;

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/millrace-test-XXXXXX"); /* Fits. */
    arena = (struct arena){0};
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

static int tear_down(void **state)
{
    (void)state;
    arena_done(&arena);
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *in_folder(const char *name)
{
    const char *path = file_path(folder, text_of(name), &arena);
    assert_non_null(path);
    return path;
}

static struct text read_file(const char *name)
{
    struct text bytes;
    struct error err;
    assert_int_equal(file_read_whole(in_folder(name), 1 << 20, &arena, &bytes, &err), STATUS_OK);
    return bytes;
}

static void write_file(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* ---- who listens ---- */

struct heard {
    struct log_replay replay;
    struct input_log *files;
    struct buf text; /* "job:payload;" for each record. */
    struct buf notices;
    const char *remove_at; /* The payload at which its job is removed. */
    const char *fail_at;
};

static status hear_record(struct log_replay *replay, const char *job, struct buf *bytes,
                          struct error *err)
{
    struct heard *heard = (struct heard *)replay;
    assert_int_equal((uintptr_t)bytes->bytes % 8, 0);
    struct text payload = {(const char *)bytes->bytes, (uint32_t)bytes->size};
    buf_format(&heard->text, "%s:", job);
    buf_put_text(&heard->text, payload);
    buf_put_string(&heard->text, ";");
    if (heard->text.failed) return error_memory(err);
    if (heard->remove_at != NULL && text_equal(payload, text_of(heard->remove_at))) {
        return input_log_remove(heard->files, job, err);
    }
    if (heard->fail_at != NULL && text_equal(payload, text_of(heard->fail_at))) {
        return error_set(err, STATUS_CORRUPT, "not understood");
    }
    return STATUS_OK;
}

static void hear_notice(struct log_replay *replay, const struct input_log_notice *notice)
{
    struct heard *heard = (struct heard *)replay;
    static const char *const kinds[] = {"cut", "removed", "junk"};
    assert_true(notice->reason[0] != '\0');
    buf_format(&heard->notices, "%s %s %llu;", kinds[notice->kind], notice->name,
               (unsigned long long)notice->lost_bytes);
}

static struct heard heard_new(void)
{
    return (struct heard){.replay = {.record = hear_record, .notice = hear_notice}};
}

static void heard_done(struct heard *heard)
{
    buf_done(&heard->text);
    buf_done(&heard->notices);
}

static const char *string_of(struct buf *buf)
{
    buf_put_u8(buf, 0);
    assert_false(buf->failed);
    return (const char *)buf->bytes;
}

static struct input_log *open_files(struct heard *heard, struct input_log_report *out_report)
{
    struct input_log *files = NULL;
    struct error err;
    assert_int_equal(input_log_open(folder, (struct input_log_options){0}, &files, &err),
                     STATUS_OK);
    heard->files = files;
    assert_int_equal(input_log_replay(files, &heard->replay, out_report, &err), STATUS_OK);
    return files;
}

static void append(struct input_log *files, const char *job, const char *payload)
{
    struct error err;
    assert_int_equal(input_log_append(files, job, text_of(payload), 0, &err), STATUS_OK);
}

/* Opens, compares what is heard with what is expected, closes. */
static struct input_log_report expect_logs(const char *records, const char *notices)
{
    struct heard heard = heard_new();
    struct input_log_report report;
    input_log_close(open_files(&heard, &report));
    assert_string_equal(string_of(&heard.text), records);
    if (notices != NULL) assert_string_equal(string_of(&heard.notices), notices);
    heard_done(&heard);
    return report;
}

/* ---- a small log ---- */

/* Payloads that need all kinds of padding, none and the largest among them. */
static const char *const payloads[] = {"a", "bcdefghi", "jklmnopqrstuvw", "xyz", "0123456"};
enum { PAYLOADS = sizeof payloads / sizeof payloads[0] };

static void write_small_log(void)
{
    struct heard heard = heard_new();
    struct input_log_report report;
    struct input_log *files = open_files(&heard, &report);
    for (int i = 0; i < PAYLOADS; i++) {
        append(files, "job", payloads[i]);
    }
    input_log_close(files);
    heard_done(&heard);
}

/* How many whole records stand before `position`. */
static int records_before(uint64_t position)
{
    uint64_t end = 0;
    for (int i = 0; i < PAYLOADS; i++) {
        end += input_log_record_size((uint32_t)strlen(payloads[i]));
        if (end > position) return i;
    }
    return PAYLOADS;
}

/* The log holds the first `count` records; then another is appended and found again. */
static void expect_prefix(int count)
{
    char expected[200] = "";
    size_t size = 0;
    for (int i = 0; i < count; i++) {
        size += (size_t)snprintf(expected + size, sizeof expected - size, "job:%s;", payloads[i]);
    }
    struct heard heard = heard_new();
    struct input_log_report report;
    struct input_log *files = open_files(&heard, &report);
    assert_string_equal(string_of(&heard.text), expected);
    assert_int_equal(report.record_count, count);
    assert_int_equal(report.job_count, count > 0);
    assert_int_equal(file_exists(in_folder("jobs/job")), count > 0);
    append(files, "job", "more");
    input_log_close(files);
    heard_done(&heard);

    (void)snprintf(expected + size, sizeof expected - size, "job:more;"); /* Fits. */
    (void)expect_logs(expected, "");
}

static void the_log_is_given_back_in_order_for_every_job(void **state)
{
    (void)state;
    struct heard heard = heard_new();
    struct input_log_report report;
    struct input_log *files = open_files(&heard, &report);
    append(files, "b", "1");
    append(files, "a", "2");
    append(files, "b", "3");
    append(files, "a.long-NAME_0", "4");
    assert_int_equal(read_file("jobs/b/log").size, 48);
    assert_false(file_exists(in_folder("jobs/c")));
    int64_t age_ms = clock_wall_ms() - input_log_begun_ms(files, "b");
    assert_true(age_ms >= -1000 && age_ms < 60000); /* File systems count coarsely. */
    assert_int_equal(input_log_begun_ms(files, "c"), 0);
    assert_int_equal(input_log_begun_ms(files, ".."), 0);
    input_log_close(files);
    heard_done(&heard);

    report = expect_logs("a:2;a.long-NAME_0:4;b:1;b:3;", "");
    assert_int_equal(report.job_count, 3);
    assert_int_equal(report.record_count, 4);
    assert_int_equal(report.payload_bytes, 4);
}

static void every_truncation_leaves_the_records_before_it(void **state)
{
    (void)state;
    write_small_log();
    struct text whole = read_file("jobs/job/log");
    for (uint32_t size = 0; size <= whole.size; size++) {
        (void)mkdir(in_folder("jobs/job"), 0777); /* May be there. */
        write_file("jobs/job/log", whole.bytes, size);
        expect_prefix(records_before(size));
    }
}

static void every_flipped_bit_leaves_the_records_before_it(void **state)
{
    (void)state;
    write_small_log();
    struct text whole = read_file("jobs/job/log");
    char *bytes = arena_copy_string(&arena, whole);
    for (uint32_t bit = 0; bit < whole.size * 8; bit++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
        (void)mkdir(in_folder("jobs/job"), 0777); /* May be there. */
        write_file("jobs/job/log", bytes, whole.size);
        expect_prefix(records_before(bit / 8));
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
    }
}

static void a_record_that_stands_elsewhere_is_noticed(void **state)
{
    (void)state;
    struct heard heard = heard_new();
    struct input_log_report report;
    struct input_log *files = open_files(&heard, &report);
    append(files, "job", "first..1");
    append(files, "job", "second.2");
    input_log_close(files);
    heard_done(&heard);
    struct text whole = read_file("jobs/job/log");
    char bytes[72];
    assert_int_equal(whole.size, 48);
    memcpy(bytes, whole.bytes, 24);
    memcpy(bytes + 24, whole.bytes, 24); /* The first, twice. */
    write_file("jobs/job/log", bytes, 48);
    (void)expect_logs("job:first..1;", "cut job 24;");
    memcpy(bytes, whole.bytes + 24, 24); /* The second, at the beginning. */
    write_file("jobs/job/log", bytes, 24);
    struct input_log_report gone = expect_logs("", "removed job 24;");
    assert_int_equal(gone.removed_count, 1);
    assert_int_equal(gone.lost_bytes, 24);
}

static void what_is_not_ours_is_left_alone(void **state)
{
    (void)state;
    write_small_log();
    write_file("jobs/file", "x", 1);
    assert_int_equal(mkdir(in_folder("jobs/colon:"), 0777), 0);
    assert_int_equal(mkdir(in_folder("jobs/with space"), 0777), 0);
    assert_int_equal(mkdir(in_folder("jobs/empty"), 0777), 0);
    assert_int_equal(mkdir(in_folder("jobs/backup"), 0777), 0);
    write_file("jobs/backup/precious", "x", 1);
    assert_int_equal(mkdir(in_folder("jobs/odd"), 0777), 0);
    assert_int_equal(mkdir(in_folder("jobs/odd/log"), 0777), 0);
    struct input_log_report report = expect_logs(
        "job:a;job:bcdefghi;job:jklmnopqrstuvw;job:xyz;job:0123456;",
        "junk backup 0;junk colon: 0;removed empty 0;junk file 0;junk odd 0;junk with space 0;");
    assert_int_equal(report.junk_count, 5);
    assert_int_equal(report.removed_count, 1);
    assert_true(file_exists(in_folder("jobs/backup/precious")));
    assert_true(file_exists(in_folder("jobs/file")));
    assert_false(file_exists(in_folder("jobs/empty")));
}

static void the_listener_may_remove_the_job_or_refuse(void **state)
{
    (void)state;
    write_small_log();
    struct heard heard = heard_new();
    struct input_log_report report;
    struct input_log *files = NULL;
    struct error err;

    heard.fail_at = "xyz";
    assert_int_equal(input_log_open(folder, (struct input_log_options){0}, &files, &err),
                     STATUS_OK);
    assert_int_equal(input_log_replay(files, &heard.replay, &report, &err), STATUS_CORRUPT);
    assert_string_equal(err.text, "not understood");
    input_log_close(files);
    assert_true(file_exists(in_folder("jobs/job/log")));
    heard_done(&heard);

    heard = heard_new();
    heard.remove_at = "bcdefghi";
    files = open_files(&heard, &report);
    assert_string_equal(string_of(&heard.text), "job:a;job:bcdefghi;");
    assert_int_equal(report.job_count, 0);
    assert_false(file_exists(in_folder("jobs/job")));
    append(files, "job", "anew");
    input_log_close(files);
    heard_done(&heard);
    (void)expect_logs("job:anew;", "");
}

static void removing_takes_the_folder_with_all_in_it(void **state)
{
    (void)state;
    struct heard heard = heard_new();
    struct input_log_report report;
    struct input_log *files = open_files(&heard, &report);
    struct error err;
    append(files, "a", "1");
    append(files, "b", "2");
    write_file("outside", "x", 1);
    write_file("jobs/a/other", "x", 1);
    assert_int_equal(mkdir(in_folder("jobs/a/deep"), 0777), 0);
    write_file("jobs/a/deep/file", "x", 1);
    assert_int_equal(symlink(in_folder("outside"), in_folder("jobs/a/link")), 0);
    assert_int_equal(symlink(folder, in_folder("jobs/a/link-to-folder")), 0);
    assert_int_equal(input_log_remove(files, "a", &err), STATUS_OK);
    assert_false(file_exists(in_folder("jobs/a")));
    assert_true(file_exists(in_folder("outside")));
    assert_int_equal(input_log_remove(files, "a", &err), STATUS_OK);
    assert_int_equal(input_log_remove(files, "never", &err), STATUS_OK);
    append(files, "a", "3");
    append(files, "b", "4");
    input_log_close(files);
    heard_done(&heard);
    (void)expect_logs("a:3;b:2;b:4;", "");
}

static void names_that_lead_elsewhere_are_refused(void **state)
{
    (void)state;
    struct heard heard = heard_new();
    struct input_log_report report;
    struct input_log *files = open_files(&heard, &report);
    struct error err;
    char longest[66];
    memset(longest, 'a', 65);
    longest[65] = '\0';
    const char *const names[] = {"", ".", "..", "a/b", "../a", "a b", "\xc3\xa4", longest};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(input_log_append(files, names[i], text_of("x"), 0, &err), STATUS_INTERNAL);
        assert_int_equal(input_log_remove(files, names[i], &err), STATUS_INTERNAL);
    }
    append(files, longest + 1, "x");
    input_log_close(files);
    heard_done(&heard);
}

static void the_quota_is_exact_and_leaves_the_log_as_it_was(void **state)
{
    (void)state;
    struct heard heard = heard_new();
    struct input_log_report report;
    struct input_log *files = open_files(&heard, &report);
    struct error err;
    assert_int_equal(input_log_append(files, "a", text_of("12345678"), 23, &err), STATUS_LIMIT);
    assert_non_null(strstr(err.text, "job a"));
    assert_false(file_exists(in_folder("jobs/a")));
    assert_int_equal(input_log_append(files, "a", text_of("12345678"), 24, &err), STATUS_OK);
    assert_int_equal(input_log_append(files, "a", text_of("x"), 47, &err), STATUS_LIMIT);
    assert_int_equal(input_log_append(files, "a", text_of("y"), 48, &err), STATUS_OK);
    input_log_close(files);
    heard_done(&heard);
    (void)expect_logs("a:12345678;a:y;", "");

    struct input_log_options options = {.record_limit = 7};
    assert_int_equal(input_log_open(folder, options, &files, &err), STATUS_OK);
    heard = heard_new(); /* The first record is now larger than any can be. */
    assert_int_equal(input_log_replay(files, &heard.replay, &report, &err), STATUS_OK);
    assert_int_equal(report.removed_count, 1);
    assert_int_equal(input_log_append(files, "a", text_of("12345678"), 0, &err), STATUS_LIMIT);
    append(files, "a", "1234567");
    input_log_close(files);
    heard_done(&heard);
}

static void a_write_that_fails_half_way_leaves_the_log_as_it_was(void **state)
{
    (void)state;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, SIG_IGN); /* Cannot fail for this number. */
    for (rlim_t size = 0; size < 64; size++) {
        struct heard heard = heard_new();
        struct input_log_report report;
        struct input_log *files = open_files(&heard, &report);
        struct error err;
        struct rlimit limit = {.rlim_cur = size, .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        status first = input_log_append(files, "a", text_of("first"), 0, &err);
        status second = input_log_append(files, "a", text_of("longer than eight"), 0, &err);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(first, size < 24 ? STATUS_IO : STATUS_OK);
        assert_int_equal(second, STATUS_IO);
        assert_non_null(strstr(err.text, in_folder("jobs/a/log")));
        append(files, "a", "third");
        assert_int_equal(read_file("jobs/a/log").size, size < 24 ? 24 : 48);
        input_log_close(files);
        heard_done(&heard);

        (void)expect_logs(size < 24 ? "a:third;" : "a:first;a:third;", "");
        heard = heard_new();
        files = open_files(&heard, &report);
        assert_int_equal(input_log_remove(files, "a", &err), STATUS_OK);
        input_log_close(files);
        heard_done(&heard);
    }
}

static void a_log_that_was_taken_away_does_not_begin_anew(void **state)
{
    (void)state;
    struct input_log *files = NULL;
    struct heard heard = heard_new();
    struct input_log_report report;
    struct error err;
    struct input_log_options options = {.descriptor_limit = 1};
    assert_int_equal(input_log_open(folder, options, &files, &err), STATUS_OK);
    assert_int_equal(input_log_replay(files, &heard.replay, &report, &err), STATUS_OK);
    append(files, "a", "1");
    append(files, "b", "2"); /* Closes the other. */
    assert_int_equal(unlink(in_folder("jobs/a/log")), 0);
    assert_int_equal(input_log_append(files, "a", text_of("3"), 0, &err), STATUS_IO);
    assert_non_null(strstr(err.text, in_folder("jobs/a/log")));
    append(files, "b", "4");
    input_log_close(files);
    heard_done(&heard);
    (void)expect_logs("b:2;b:4;", "removed a 0;");
}

static uint32_t count_descriptors(void)
{
    struct file_entry *entries = NULL;
    uint32_t count = 0;
    struct error err;
    assert_int_equal(file_list("/proc/self/fd", &arena, &entries, &count, &err), STATUS_OK);
    return count;
}

static void many_jobs_need_few_descriptors(void **state)
{
    (void)state;
    enum { JOBS = 40, ROUNDS = 20, LIMIT = 3 };
    uint32_t before = count_descriptors();
    struct input_log *files = NULL;
    struct heard heard = heard_new();
    struct buf expected[JOBS] = {{0}};
    struct input_log_report report;
    struct error err;
    struct random random = {7};
    struct input_log_options options = {.descriptor_limit = LIMIT};
    assert_int_equal(input_log_open(folder, options, &files, &err), STATUS_OK);
    assert_int_equal(input_log_replay(files, &heard.replay, &report, &err), STATUS_OK);
    for (uint32_t i = 0; i < JOBS * ROUNDS; i++) {
        char job[20];
        char payload[20];
        uint32_t number = random_below(&random, JOBS);
        (void)snprintf(job, sizeof job, "job%02u", number); /* Fits. */
        if (random_below(&random, 10) == 0) {
            assert_int_equal(input_log_remove(files, job, &err), STATUS_OK);
            buf_reset(&expected[number]);
            continue;
        }
        (void)snprintf(payload, sizeof payload, "%u", i); /* Fits. */
        append(files, job, payload);
        buf_format(&expected[number], "%s:%s;", job, payload);
        assert_true(count_descriptors() <= before + LIMIT);
    }
    input_log_close(files);
    heard_done(&heard);
    assert_int_equal(count_descriptors(), before);

    struct buf all = {0};
    for (int i = 0; i < JOBS; i++) {
        buf_put(&all, expected[i].bytes, expected[i].size);
        buf_done(&expected[i]);
    }
    (void)expect_logs(string_of(&all), "");
    buf_done(&all);
}

static void folders_that_cannot_be_used_are_named(void **state)
{
    (void)state;
    struct input_log *files = NULL;
    struct error err;
    assert_int_equal(input_log_open(in_folder("no"), (struct input_log_options){0}, &files, &err),
                     STATUS_IO);
    assert_non_null(strstr(err.text, in_folder("no/jobs")));
    char longest[5000];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(input_log_open(longest, (struct input_log_options){0}, &files, &err),
                     STATUS_IO);
    input_log_close(NULL);
}

static void memory_that_runs_out_is_an_error_and_loses_nothing(void **state)
{
    (void)state;
    write_small_log();
    struct error err;
    bool refused = true;
    for (size_t count = 0; refused; count++) {
        struct input_log *files = NULL;
        struct input_log_report report;
        struct heard heard = heard_new();
        memory_fail_after(count);
        status result = input_log_open(folder, (struct input_log_options){0}, &files, &err);
        if (result == STATUS_OK) {
            result = input_log_replay(files, &heard.replay, &report, &err);
        }
        if (result == STATUS_OK) result = input_log_append(files, "b", text_of("x"), 0, &err);
        refused = memory_was_refused();
        memory_fail_never();
        assert_int_equal(result, refused ? STATUS_MEMORY : STATUS_OK);
        input_log_close(files);
        heard_done(&heard);
    }
    (void)expect_logs("b:x;job:a;job:bcdefghi;job:jklmnopqrstuvw;job:xyz;job:0123456;", "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_log_is_given_back_in_order_for_every_job),
        TEST(every_truncation_leaves_the_records_before_it),
        TEST(every_flipped_bit_leaves_the_records_before_it),
        TEST(a_record_that_stands_elsewhere_is_noticed),
        TEST(what_is_not_ours_is_left_alone),
        TEST(the_listener_may_remove_the_job_or_refuse),
        TEST(removing_takes_the_folder_with_all_in_it),
        TEST(names_that_lead_elsewhere_are_refused),
        TEST(the_quota_is_exact_and_leaves_the_log_as_it_was),
        TEST(a_write_that_fails_half_way_leaves_the_log_as_it_was),
        TEST(a_log_that_was_taken_away_does_not_begin_anew),
        TEST(many_jobs_need_few_descriptors),
        TEST(folders_that_cannot_be_used_are_named),
        TEST(memory_that_runs_out_is_an_error_and_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
