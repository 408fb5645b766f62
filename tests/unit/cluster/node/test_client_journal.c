/* SPDX-License-Identifier: Apache-2.0 */
/* test_client_journal.c - a journal gives back what was written, however it was cut short.
 *
 * Method: a journal with a full header and some records is cut at every byte, and every byte of it
 * is changed. The header must come back whole or be refused; of the records, exactly those before
 * the damage must come back, and what is appended afterwards must follow them.
 */
#include "unit/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/file/file.h"
#include "cluster/node/client_journal.h"

enum { RECORDS = 5, RECORD_BYTES = 32, BYTES_MAX = 4096 };

static char root[64];
static const char *folder;
static struct arena arena;
static struct error err;

static const struct text queries[] = {TEXT_INIT("q1"), TEXT_INIT("q10")};
static const struct client_journal_setting settings[] = {{TEXT_INIT("year"), TEXT_INIT("2010")}};
static const struct text gateways[] = {TEXT_INIT("http://a:1"), TEXT_INIT("http://b:2")};
static const struct source_file files[] = {
    {0, TEXT_INIT("movies.csv"), 12345, 1700000000123456789, 42},
    {1, TEXT_INIT("r/ratings-1.csv"), 0, -5, UINT64_MAX},
};
static const struct client_journal_header header = {
    .job = TEXT_INIT("job-1"),
    .owner_key = TEXT_INIT("00112233445566778899aabbccddeeff"),
    .build = TEXT_INIT("0.1.0"),
    .analysis = TEXT_INIT("movies"),
    .data_dir = TEXT_INIT("data/movies"),
    .queries = queries,
    .query_count = 2,
    .settings = settings,
    .setting_count = 1,
    .gateways = gateways,
    .gateway_count = 2,
    .chunk_bytes = 524288,
    .field_limit = 1 << 20,
    .broadcast_limit = 5,
    .files = files,
    .file_count = 2,
};

static int make_folder(void **state)
{
    (void)state;
    (void)snprintf(root, sizeof root, "/tmp/test_journal.XXXXXX");
    if (mkdtemp(root) == NULL) return -1;
    if (setenv("MILLRACE_STATE_DIR", root, 1) != 0) return -1;
    return client_journal_folder(&arena, &folder, &err) == STATUS_OK ? 0 : -1;
}

static void remove_all(const char *path)
{
    struct file_entry *entries;
    uint32_t count;
    assert_int_equal(file_list(path, &arena, &entries, &count, &err), STATUS_OK);
    for (uint32_t i = 0; i < count; i++) {
        (void)unlink(file_path(path, entries[i].name, &arena));
    }
    (void)rmdir(path);
}

static int remove_folder(void **state)
{
    (void)state;
    remove_all(folder);
    arena_done(&arena);
    return rmdir(root);
}

static const char *client_journal_path(void)
{
    return file_path(folder, header.job, &arena);
}

/* Records come in the order of the numbers backwards, to be sorted; scan and number tell which. */
static struct client_sent_chunk chunk_of(uint64_t i)
{
    return (struct client_sent_chunk){
        .scan = (uint32_t)(i % 2), .number = 1000 - i, .checksum = i * 0x123456789abcdefu};
}

static status append(struct client_journal *journal, uint64_t i, uint64_t now_ms)
{
    struct client_sent_chunk chunk = chunk_of(i);
    struct buf record = {0};
    buf_put_u64(&record, chunk.scan);
    buf_put_u64(&record, chunk.number);
    buf_put_u64(&record, chunk.checksum);
    status result = client_journal_append(journal, &record, now_ms, &err);
    buf_done(&record);
    return result;
}

static void write_journal(uint64_t record_count)
{
    struct client_journal *journal = NULL;
    (void)unlink(client_journal_path());
    assert_int_equal(client_journal_create(folder, &header, &journal, &err), STATUS_OK);
    for (uint64_t i = 0; i < record_count; i++) {
        assert_int_equal(append(journal, i, 0), STATUS_OK);
    }
    client_journal_close(journal);
}

static size_t load(unsigned char *bytes)
{
    struct text whole;
    assert_int_equal(file_read_whole(client_journal_path(), BYTES_MAX, &arena, &whole, &err),
                     STATUS_OK);
    memcpy(bytes, whole.bytes, whole.size);
    return whole.size;
}

static void store(const unsigned char *bytes, size_t size)
{
    FILE *file = fopen(client_journal_path(), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static uint64_t file_size(void)
{
    struct stat info;
    assert_int_equal(stat(client_journal_path(), &info), 0);
    return (uint64_t)info.st_size;
}

static void check_text(struct text a, struct text b)
{
    assert_true(text_equal(a, b));
}

static void check_header(const struct client_journal_header *found)
{
    check_text(found->job, header.job);
    check_text(found->owner_key, header.owner_key);
    check_text(found->build, header.build);
    check_text(found->analysis, header.analysis);
    check_text(found->data_dir, header.data_dir);
    assert_int_equal(found->query_count, 2);
    assert_int_equal(found->setting_count, 1);
    assert_int_equal(found->gateway_count, 2);
    assert_int_equal(found->file_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        check_text(found->queries[i], queries[i]);
        check_text(found->gateways[i], gateways[i]);
        check_text(found->files[i].name, files[i].name);
        assert_int_equal(found->files[i].table, files[i].table);
        assert_true(found->files[i].size == files[i].size);
        assert_true(found->files[i].modified_ns == files[i].modified_ns);
        assert_true(found->files[i].inode == files[i].inode);
    }
    check_text(found->settings[0].name, settings[0].name);
    check_text(found->settings[0].value, settings[0].value);
    assert_int_equal(found->chunk_bytes, header.chunk_bytes);
    assert_int_equal(found->field_limit, header.field_limit);
    assert_int_equal(found->broadcast_limit, header.broadcast_limit);
}

/* The first `count` records, and those with the numbers `more`.., must be there. */
static void check_sent(const struct client_journal_record *record, uint64_t count, uint64_t more)
{
    assert_int_equal(record->sent_count, count + (more > 0));
    for (uint64_t i = 0; i < record->sent_count; i++) {
        const struct client_sent_chunk *sent = &record->sent[i];
        uint64_t number = 1000 - sent->number;
        struct client_sent_chunk expected = chunk_of(number);
        assert_true(number < count || number == more);
        assert_int_equal(sent->scan, expected.scan);
        assert_true(sent->checksum == expected.checksum);
        if (i == 0) continue;
        const struct client_sent_chunk *before = &record->sent[i - 1];
        assert_true(before->scan < sent->scan ||
                    (before->scan == sent->scan && before->number < sent->number));
    }
}

/* Opens what is there, checks it, goes on with one more record and opens that. */
static void check_resume(uint64_t count)
{
    struct client_journal *journal = NULL;
    struct client_journal_record record;
    if (client_journal_open(folder, header.job, &arena, &record, &journal, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    check_header(&record.header);
    check_sent(&record, count, 0);
    assert_int_equal(append(journal, 100, 0), STATUS_OK);
    client_journal_close(journal);
    assert_int_equal(client_journal_open(folder, header.job, &arena, &record, &journal, &err),
                     STATUS_OK);
    check_sent(&record, count, 100);
    client_journal_close(journal);
}

static void check_refused(void)
{
    struct client_journal *journal = NULL;
    struct client_journal_record record;
    assert_int_equal(client_journal_open(folder, header.job, &arena, &record, &journal, &err),
                     STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "is damaged"));
}

static void a_journal_cut_anywhere_keeps_whole_records(void **state)
{
    (void)state;
    unsigned char bytes[BYTES_MAX];
    write_journal(RECORDS);
    size_t size = load(bytes);
    size_t header_size = size - RECORDS * RECORD_BYTES;
    for (size_t cut = 0; cut <= size; cut++) {
        store(bytes, cut);
        if (cut < header_size) {
            check_refused();
        } else {
            check_resume((cut - header_size) / RECORD_BYTES);
        }
    }
}

static void a_journal_damaged_anywhere_keeps_what_stands_before(void **state)
{
    (void)state;
    unsigned char bytes[BYTES_MAX];
    write_journal(RECORDS);
    size_t size = load(bytes);
    size_t header_size = size - RECORDS * RECORD_BYTES;
    for (size_t at = 0; at < size; at++) {
        bytes[at] ^= 0x10;
        store(bytes, size);
        bytes[at] ^= 0x10;
        if (at < header_size) {
            check_refused();
        } else {
            check_resume((at - header_size) / RECORD_BYTES);
        }
    }
}

static void records_that_stand_elsewhere_are_none(void **state)
{
    (void)state;
    unsigned char bytes[BYTES_MAX];
    write_journal(RECORDS);
    size_t size = load(bytes);
    size_t last = size - RECORD_BYTES;
    memcpy(bytes + last, bytes + last - RECORD_BYTES, RECORD_BYTES);
    store(bytes, size);
    check_resume(RECORDS - 1);
}

static void a_record_written_twice_counts_once(void **state)
{
    (void)state;
    struct client_journal *journal = NULL;
    struct client_journal_record record;
    write_journal(RECORDS);
    for (uint64_t i = 0; i < RECORDS; i++) {
        assert_int_equal(client_journal_open(folder, header.job, &arena, &record, &journal, &err),
                         STATUS_OK);
        check_sent(&record, RECORDS, 0);
        assert_int_equal(append(journal, i, 0), STATUS_OK);
        client_journal_close(journal);
    }
}

static void records_are_gathered_but_not_for_long(void **state)
{
    (void)state;
    struct client_journal *journal = NULL;
    (void)unlink(client_journal_path());
    assert_int_equal(client_journal_create(folder, &header, &journal, &err), STATUS_OK);
    uint64_t start = file_size();
    for (uint64_t i = 0; i < 99; i++) {
        assert_int_equal(append(journal, i, 5000), STATUS_OK);
    }
    assert_int_equal(file_size(), start);
    assert_int_equal(append(journal, 99, 5000), STATUS_OK);
    assert_int_equal(file_size(), start + 100 * RECORD_BYTES);
    assert_int_equal(append(journal, 100, 6000), STATUS_OK);
    assert_int_equal(client_journal_tick(journal, 6999, &err), STATUS_OK);
    assert_int_equal(file_size(), start + 100 * RECORD_BYTES);
    assert_int_equal(client_journal_tick(journal, 7000, &err), STATUS_OK);
    assert_int_equal(file_size(), start + 101 * RECORD_BYTES);
    assert_int_equal(append(journal, 101, 8000), STATUS_OK);
    assert_int_equal(append(journal, 102, 9000), STATUS_OK);
    assert_int_equal(file_size(), start + 103 * RECORD_BYTES);
    client_journal_remove(journal);
    assert_false(file_exists(client_journal_path()));
}

static void a_job_has_one_journal_and_one_client(void **state)
{
    (void)state;
    struct client_journal *journal = NULL;
    struct client_journal *other = NULL;
    struct client_journal_record record;
    (void)unlink(client_journal_path());
    assert_int_equal(client_journal_open(folder, header.job, &arena, &record, &other, &err),
                     STATUS_USAGE);
    assert_non_null(strstr(err.text, "job job-1 has no journal"));
    assert_int_equal(client_journal_create(folder, &header, &journal, &err), STATUS_OK);
    struct stat info;
    assert_int_equal(stat(client_journal_path(), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(info.st_nlink, 1);
    assert_int_equal(client_journal_create(folder, &header, &other, &err), STATUS_USAGE);
    assert_non_null(strstr(err.text, "job job-1 has a journal already"));
    assert_int_equal(client_journal_open(folder, header.job, &arena, &record, &other, &err),
                     STATUS_USAGE);
    assert_non_null(strstr(err.text, "another process works on job job-1"));
    client_journal_close(journal);
    assert_int_equal(client_journal_create(folder, &header, &other, &err), STATUS_USAGE);
    assert_int_equal(client_journal_open(folder, header.job, &arena, &record, &other, &err),
                     STATUS_OK);
    client_journal_remove(other);
}

static void names_that_are_paths_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"", ".", "..", ".new-1", "a/b", "../a", "a b"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct client_journal *journal = NULL;
        struct client_journal_record record;
        struct client_journal_header named = header;
        named.job = text_of(names[i]);
        assert_int_equal(client_journal_create(folder, &named, &journal, &err), STATUS_USAGE);
        assert_int_equal(client_journal_open(folder, named.job, &arena, &record, &journal, &err),
                         STATUS_USAGE);
    }
}

static void memory_that_runs_out_is_told_and_leaves_nothing_behind(void **state)
{
    (void)state;
    write_journal(RECORDS);
    bool was_refused = true;
    for (size_t count = 0; was_refused; count++) {
        struct arena own = {0};
        struct client_journal *journal = NULL;
        struct client_journal_record record;
        memory_fail_after(count);
        status result = client_journal_open(folder, header.job, &own, &record, &journal, &err);
        was_refused = memory_was_refused();
        memory_fail_never();
        assert_int_equal(result, was_refused ? STATUS_MEMORY : STATUS_OK);
        if (result == STATUS_OK) client_journal_remove(journal);
        arena_done(&own);
    }
    was_refused = true;
    for (size_t count = 0; was_refused; count++) {
        struct client_journal *journal = NULL;
        memory_fail_after(count);
        status result = client_journal_create(folder, &header, &journal, &err);
        was_refused = memory_was_refused();
        memory_fail_never();
        assert_int_equal(result, was_refused ? STATUS_MEMORY : STATUS_OK);
        assert_int_equal(file_exists(client_journal_path()), result == STATUS_OK);
        if (result == STATUS_OK) client_journal_remove(journal);
    }
}

static void the_folder_is_where_the_environment_says(void **state)
{
    (void)state;
    const char *found = NULL;
    char expected[128];
    char state_home[80];
    (void)snprintf(state_home, sizeof state_home, "%s/state", root);
    assert_int_equal(unsetenv("MILLRACE_STATE_DIR"), 0);
    assert_int_equal(setenv("XDG_STATE_HOME", state_home, 1), 0);
    assert_int_equal(client_journal_folder(&arena, &found, &err), STATUS_OK);
    (void)snprintf(expected, sizeof expected, "%s/millrace/jobs", state_home);
    assert_string_equal(found, expected);
    assert_true(file_is_folder(expected));
    assert_int_equal(unsetenv("XDG_STATE_HOME"), 0);
    assert_int_equal(setenv("HOME", state_home, 1), 0);
    assert_int_equal(client_journal_folder(&arena, &found, &err), STATUS_OK);
    (void)snprintf(expected, sizeof expected, "%s/.local/state/millrace/jobs", state_home);
    assert_string_equal(found, expected);
    assert_int_equal(unsetenv("HOME"), 0);
    assert_int_equal(client_journal_folder(&arena, &found, &err), STATUS_USAGE);
    assert_int_equal(setenv("MILLRACE_STATE_DIR", root, 1), 0);
    static const char *const made[] = {"millrace/jobs",
                                       "millrace",
                                       ".local/state/millrace/jobs",
                                       ".local/state/millrace",
                                       ".local/state",
                                       ".local",
                                       ""};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        (void)snprintf(expected, sizeof expected, "%s/%s", state_home, made[i]);
        assert_int_equal(rmdir(expected), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_journal_cut_anywhere_keeps_whole_records),
        cmocka_unit_test(a_journal_damaged_anywhere_keeps_what_stands_before),
        cmocka_unit_test(records_that_stand_elsewhere_are_none),
        cmocka_unit_test(a_record_written_twice_counts_once),
        cmocka_unit_test(records_are_gathered_but_not_for_long),
        cmocka_unit_test(a_job_has_one_journal_and_one_client),
        cmocka_unit_test(names_that_are_paths_are_refused),
        cmocka_unit_test(memory_that_runs_out_is_told_and_leaves_nothing_behind),
        cmocka_unit_test(the_folder_is_where_the_environment_says),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
