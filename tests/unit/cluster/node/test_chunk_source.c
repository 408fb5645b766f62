/* SPDX-License-Identifier: Apache-2.0 */
/* test_chunk_source.c - a client's chunks are the files, whole and in order, however they are read.
 *
 * Method: two tables of files with everything that makes cutting hard are read in chunks of every
 * size, scan by scan in order or in an order made from a seed. The bodies must hold the bytes of
 * the files without a gap, with the lines that a plain count gives, and be the same at every
 * reading. Then the files are changed in every way that should be noticed.
 */
#include "unit/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/hash.h"
#include "engine/base/random.h"
#include "engine/file/file.h"
#include "cluster/node/chunk_source.h"
#include "cluster/wire/message.h"

enum { TABLES = 3, SCANS = 4, CHUNKS_MAX = 256 };

static char folder[64];
static struct arena arena;
static struct error err;

static const struct field fields[] = {{{"id", 2}, {.kind = TYPE_INT}, true},
                                      {{"name", 4}, {.kind = TYPE_TEXT}, false}};
static const struct text patterns[TABLES] = {TEXT_INIT("a*.csv"), TEXT_INIT("b.csv"),
                                             TEXT_INIT("empty.csv")};
static struct table tables[TABLES];
/* The first table is read by two scans. */
static struct scan scans[SCANS] = {{.table = 0}, {.table = 1}, {.table = 0}, {.table = 2}};
static const struct plan plan = {
    .tables = tables, .table_count = TABLES, .scans = scans, .scan_count = SCANS};

static const char *const contents[][2] = {
    {"a1.csv", "id,name\n1,one\n2,\"two\nlines\"\n3,\"a \"\"quote\"\"\"\n\n4,four\r\n"},
    {"a2.csv", "name,\"the\nother\",id\nx,y,5\n"},
    {"a3.csv", ""},
    {"a4.csv", "id,name\n6,\"a long one\nthat covers\nmany\npieces\nwhen they are small\"\n7,end"},
    {"b.csv", "id,name\n8,eight\n9,nine\n"},
    {"empty.csv", "id,name\n"},
};
enum { FILES = sizeof contents / sizeof contents[0] };

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

static int make_folder(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/test_chunk_source.XXXXXX");
    for (uint32_t i = 0; i < TABLES; i++) {
        tables[i] = (struct table){.name = patterns[i],
                                   .schema = {fields, 2},
                                   .patterns = &patterns[i],
                                   .pattern_count = 1};
    }
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        (void)unlink(path_of(contents[i][0]));
    }
    arena_done(&arena);
    return rmdir(folder);
}

/* ---- a source over fresh files ---- */

struct fixture {
    struct table_files files[TABLES];
    struct chunk_source *source;
};

static void fixture_open(struct fixture *fixture, uint32_t chunk_bytes)
{
    for (uint32_t i = 0; i < TABLES; i++) {
        status opened =
            table_files_open(&tables[i], folder, chunk_bytes, &arena, &fixture->files[i], &err);
        if (opened != STATUS_OK) fail_msg("%s", err.text);
    }
    struct chunk_source_options options = {
        .plan = &plan, .files = fixture->files, .field_limit = 1 << 20};
    assert_int_equal(chunk_source_create(&options, &fixture->source, &err), STATUS_OK);
}

static void fixture_close(struct fixture *fixture)
{
    chunk_source_destroy(fixture->source);
    for (uint32_t i = 0; i < TABLES; i++) {
        table_files_close(&fixture->files[i]);
    }
}

static void fixture_write_and_open(struct fixture *fixture, uint32_t chunk_bytes)
{
    for (size_t i = 0; i < FILES; i++) {
        write_file(contents[i][0], contents[i][1]);
    }
    fixture_open(fixture, chunk_bytes);
}

static struct client_chunk read_well(struct fixture *fixture, uint32_t scan, uint64_t number)
{
    struct client_chunk chunk = {0};
    status result = chunk_source_read(fixture->source, scan, number, &chunk, &err);
    if (result != STATUS_OK) fail_msg("%s", err.text);
    assert_int_equal(chunk.scan, scan);
    assert_int_equal(chunk.number, number);
    return chunk;
}

static const char *content_of(struct text name)
{
    for (size_t i = 0; i < FILES; i++) {
        if (text_equal(text_of(contents[i][0]), name)) return contents[i][1];
    }
    fail_msg("no such file");
    return NULL;
}

static uint64_t lines_before(const char *content, uint64_t offset)
{
    uint64_t lines = 0;
    for (uint64_t i = 0; i < offset; i++) {
        lines += content[i] == '\n';
    }
    return lines;
}

/* Where a field of a record without quotes begins. */
static const char *field_of(const char *record, uint32_t column)
{
    for (; column > 0; column--) {
        record = strchr(record, ',') + 1;
    }
    return record;
}

/* What no column of the table is read from has been left out of each record of the file, which here
 * has neither quotes nor other records. Gives how many bytes they had. */
static uint32_t check_narrow_records(const struct table_file *file, const struct chunk_body *body,
                                     const char *records)
{
    const char *narrow = arena_copy_string(&arena, body->bytes);
    const char *at = records;
    assert_non_null(narrow);
    while (*narrow != '\0') {
        for (uint32_t i = 0; i < body->column_count; i++) {
            const char *was = field_of(at, file->column_map[i]);
            const char *is = field_of(narrow, body->column_map[i]);
            size_t size = strcspn(was, ",\n");
            assert_int_equal(strcspn(is, ",\n"), size);
            assert_memory_equal(is, was, size);
        }
        narrow = strchr(narrow, '\n') + 1;
        at = strchr(at, '\n') + 1;
    }
    return (uint32_t)(at - records);
}

/* The records of a body are those of its file, and its line is the one a plain count gives. Gives
 * how many bytes of the file they are. */
static uint32_t check_body(const struct fixture *fixture, const struct client_chunk *chunk,
                           struct chunk_body *out)
{
    struct text encoded = {(const char *)chunk->body.bytes, (uint32_t)chunk->body.size};
    uint32_t table = scans[chunk->scan].table;
    assert_int_equal(chunk_body_decode(encoded, &arena, out, &err), STATUS_OK);
    assert_true(chunk->checksum == hash_bytes(encoded.bytes, encoded.size));
    const struct table_file *file = &fixture->files[table].files[out->file];
    const char *content = content_of(file->name);
    uint32_t size = out->bytes.size;
    assert_int_equal(out->column_count, 2);
    assert_true(out->offset + size <= strlen(content));
    if (size > 0) assert_int_equal(out->first_line, lines_before(content, out->offset) + 1);
    if (out->file_columns < file->column_count) {
        assert_int_equal(out->file_columns, 2);
        size = check_narrow_records(file, out, content + out->offset);
    } else {
        assert_memory_equal(out->bytes.bytes, content + out->offset, size);
        assert_int_equal(out->file_columns, file->column_count);
        assert_int_equal(out->column_map[0], file->column_map[0]);
        assert_int_equal(out->column_map[1], file->column_map[1]);
    }

    uint64_t lines = chunk_source_line_counts(fixture->source)[table][chunk->number];
    assert_int_equal(lines, lines_before(content + out->offset, size));
    return size;
}

/* ---- reading ---- */

/* All chunks of a scan in order: nothing is missing and nothing is there twice. */
static void check_scan(struct fixture *fixture, uint32_t scan)
{
    const struct table_files *files = &fixture->files[scans[scan].table];
    uint64_t total = 0;
    uint64_t expected = 0;
    uint32_t file = 0;
    uint64_t end = 0;
    for (uint32_t i = 0; i < files->file_count; i++) {
        expected += files->files[i].size - files->files[i].body_offset;
    }
    for (uint64_t number = 0; number < files->chunk_count; number++) {
        struct client_chunk chunk = read_well(fixture, scan, number);
        struct chunk_body body;
        assert_false(chunk.is_none);
        assert_int_equal(chunk.is_last, number + 1 == files->chunk_count);
        uint32_t size = check_body(fixture, &chunk, &body);
        if (number == 0 || body.file != file) end = files->files[body.file].body_offset;
        file = body.file;
        if (size > 0) {
            assert_int_equal(body.offset, end);
            end += size;
        }
        total += size;
        buf_done(&chunk.body);
    }
    assert_int_equal(total, expected);
    struct client_chunk none = read_well(fixture, scan, files->chunk_count);
    assert_true(none.is_none && none.is_last);
    assert_int_equal(none.body.size, 0);
    buf_done(&none.body);
}

static void chunks_of_every_size_are_the_files(void **state)
{
    (void)state;
    for (uint32_t chunk_bytes = 1; chunk_bytes < 120; chunk_bytes++) {
        struct fixture fixture;
        fixture_write_and_open(&fixture, chunk_bytes);
        for (uint32_t scan = 0; scan < SCANS; scan++) {
            check_scan(&fixture, scan);
        }
        fixture_close(&fixture);
        arena_reset(&arena);
    }
}

static void chunks_are_the_same_in_any_order(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct random random = {seed};
        struct fixture fixture;
        uint64_t checksums[TABLES][CHUNKS_MAX] = {{0}};
        fixture_write_and_open(&fixture, 1 + random_below(&random, 40));
        for (uint32_t i = 0; i < 200; i++) {
            uint32_t scan = random_below(&random, SCANS - 1);
            uint32_t table = scans[scan].table;
            uint32_t count = (uint32_t)fixture.files[table].chunk_count;
            assert_true(count <= CHUNKS_MAX);
            uint64_t number = random_below(&random, count);
            struct client_chunk chunk = read_well(&fixture, scan, number);
            struct chunk_body body;
            (void)check_body(&fixture, &chunk, &body);
            if (checksums[table][number] == 0) checksums[table][number] = chunk.checksum;
            assert_true(checksums[table][number] == chunk.checksum);
            buf_done(&chunk.body);
        }
        fixture_close(&fixture);
        arena_reset(&arena);
    }
}

/* The columns of each chunk of table b, and what the checksums add up to. */
static uint64_t read_columns(struct fixture *fixture, uint32_t *columns, uint32_t *out_count)
{
    uint64_t sum = 0;
    uint64_t count = fixture->files[1].chunk_count;
    assert_true(count <= CHUNKS_MAX);
    for (uint64_t number = 0; number < count; number++) {
        struct client_chunk chunk = read_well(fixture, 1, number);
        struct text encoded = {(const char *)chunk.body.bytes, (uint32_t)chunk.body.size};
        struct chunk_body body;
        assert_int_equal(chunk_body_decode(encoded, &arena, &body, &err), STATUS_OK);
        bool has_other = body.bytes.size > 0 && memchr(body.bytes.bytes, 'x', body.bytes.size);
        assert_true(has_other == (body.file_columns == 3) || body.bytes.size == 0);
        columns[number] = body.file_columns;
        sum += batch_hash(number, chunk.checksum);
        buf_done(&chunk.body);
    }
    *out_count = (uint32_t)count;
    return sum;
}

/* Unless that could be told: a line end must not be lost with its column. */
static void what_no_column_is_read_from_stays_at_home(void **state)
{
    (void)state;
    struct buf content = {0};
    buf_put_string(&content, "id,other,name\n");
    for (int i = 0; i < 60; i++) {
        buf_format(&content, "%d,%s,n\n", 10 + i, i == 20 ? "\"x\nx\"" : "x");
    }
    buf_put_u8(&content, '\0');
    struct fixture fixture;
    fixture_write_and_open(&fixture, 8);
    fixture_close(&fixture);
    write_file("b.csv", (const char *)content.bytes);
    fixture_open(&fixture, 8);
    uint32_t columns[CHUNKS_MAX];
    uint32_t count;
    uint64_t sum = read_columns(&fixture, columns, &count);
    uint32_t first_wide = 0;
    while (first_wide < count && columns[first_wide] == 2) {
        first_wide++;
    }
    assert_true(first_wide > 10 && first_wide < 25);
    for (uint32_t i = first_wide; i < count; i++) {
        /* It is tried again when some more went as they are. */
        assert_int_equal(columns[i], i <= first_wide + 16 ? 3 : 2);
    }
    assert_true(read_columns(&fixture, columns, &count) == sum);
    fixture_close(&fixture);
    /* Another incarnation. */
    fixture_open(&fixture, 8);
    struct client_chunk chunk = read_well(&fixture, 1, count / 2);
    buf_done(&chunk.body);
    assert_true(read_columns(&fixture, columns, &count) == sum);
    fixture_close(&fixture);
    buf_done(&content);
}

static void a_record_beyond_the_limit_is_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    struct client_chunk chunk;
    fixture_write_and_open(&fixture, 8);
    struct chunk_source_options options = {.plan = &plan, .files = fixture.files, .field_limit = 5};
    struct chunk_source *small = NULL;
    assert_int_equal(chunk_source_create(&options, &small, &err), STATUS_OK);
    status result = STATUS_OK;
    for (uint64_t i = 0; result == STATUS_OK && i < fixture.files[0].chunk_count; i++) {
        result = chunk_source_read(small, 0, i, &chunk, &err);
        if (result == STATUS_OK) buf_done(&chunk.body);
    }
    assert_int_equal(result, STATUS_LIMIT);
    assert_non_null(strstr(err.text, "a4.csv:2"));
    chunk_source_destroy(small);
    fixture_close(&fixture);
}

/* ---- files that change ---- */

static void grow(void)
{
    FILE *file = fopen(path_of("b.csv"), "ab");
    assert_non_null(file);
    assert_true(fputs("10,ten\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void touch(void)
{
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(AT_FDCWD, path_of("b.csv"), times, 0), 0);
}

/* The same bytes in another file. */
static void replace(void)
{
    struct stat before;
    assert_int_equal(stat(path_of("b.csv"), &before), 0);
    write_file("b.new", "id,name\n8,eight\n9,nine\n");
    struct timespec times[2] = {before.st_mtim, before.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, path_of("b.new"), times, 0), 0);
    assert_int_equal(rename(path_of("b.new"), path_of("b.csv")), 0);
}

static void delete (void)
{
    assert_int_equal(unlink(path_of("b.csv")), 0);
}

/* Other bytes in the same file at the same time, which only a checksum can tell. */
static void forge(void)
{
    struct stat before;
    assert_int_equal(stat(path_of("b.csv"), &before), 0);
    write_file("b.csv", "id,name\n8,EIGHT\n9,nine\n");
    struct timespec times[2] = {before.st_mtim, before.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, path_of("b.csv"), times, 0), 0);
}

static void check_changed(status result)
{
    if (result != STATUS_INPUT) fail_msg("%d: %s", (int)result, err.text);
    assert_string_equal(err.text, "b.csv changed while it was being read");
}

static void a_file_that_changed_is_not_read_again(void **state)
{
    (void)state;
    static void (*const changes[])(void) = {grow, touch, replace, delete, forge};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct fixture fixture;
        struct client_chunk chunk;
        fixture_write_and_open(&fixture, 8);
        chunk = read_well(&fixture, 1, 0);
        buf_done(&chunk.body);
        changes[i]();
        check_changed(chunk_source_read(fixture.source, 1, 0, &chunk, &err));
        fixture_close(&fixture);
    }
}

static void the_last_chunk_is_only_given_if_no_file_changed(void **state)
{
    (void)state;
    static void (*const changes[])(void) = {grow, touch, replace, delete};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        for (uint32_t chunk_bytes = 1; chunk_bytes < 40; chunk_bytes++) {
            struct fixture fixture;
            struct client_chunk chunk;
            fixture_write_and_open(&fixture, chunk_bytes);
            uint64_t last = fixture.files[1].chunk_count - 1;
            for (uint64_t number = 0; number < last; number++) {
                chunk = read_well(&fixture, 1, number);
                buf_done(&chunk.body);
            }
            changes[i]();
            check_changed(chunk_source_read(fixture.source, 1, last, &chunk, &err));
            fixture_close(&fixture);
        }
    }
}

static void files_are_those_of_an_earlier_life_or_not(void **state)
{
    (void)state;
    struct fixture fixture;
    struct source_file *earlier = NULL;
    uint32_t count = 0;
    fixture_write_and_open(&fixture, 8);
    assert_int_equal(chunk_source_files(fixture.source, &arena, &earlier, &count, &err), STATUS_OK);
    assert_int_equal(count, FILES);
    assert_true(text_equal(earlier[3].name, TEXT_LITERAL("a4.csv")));
    assert_int_equal(earlier[4].table, 1);
    assert_int_equal(chunk_source_match(fixture.source, earlier, count, &err), STATUS_OK);
    assert_int_equal(chunk_source_match(fixture.source, earlier, count - 1, &err), STATUS_INPUT);
    for (uint32_t i = 0; i < count; i++) {
        struct source_file right = earlier[i];
        earlier[i].size++;
        assert_int_equal(chunk_source_match(fixture.source, earlier, count, &err), STATUS_INPUT);
        earlier[i] = right;
        earlier[i].modified_ns--;
        assert_int_equal(chunk_source_match(fixture.source, earlier, count, &err), STATUS_INPUT);
        assert_non_null(strstr(err.text, "has changed since the job began"));
        earlier[i] = right;
        earlier[i].inode++;
        assert_int_equal(chunk_source_match(fixture.source, earlier, count, &err), STATUS_INPUT);
        earlier[i] = right;
        earlier[i].name = TEXT_LITERAL("other.csv");
        assert_int_equal(chunk_source_match(fixture.source, earlier, count, &err), STATUS_INPUT);
        assert_non_null(strstr(err.text, "instead of other.csv"));
        earlier[i] = right;
    }
    fixture_close(&fixture);
}

static void memory_that_runs_out_is_told(void **state)
{
    (void)state;
    bool was_refused = true;
    for (size_t count = 0; was_refused; count++) {
        struct fixture fixture;
        struct client_chunk chunk;
        struct chunk_source *source = NULL;
        fixture_write_and_open(&fixture, 8);
        struct chunk_source_options options = {.plan = &plan, .files = fixture.files};
        memory_fail_after(count);
        status result = chunk_source_create(&options, &source, &err);
        for (uint64_t i = 0; result == STATUS_OK && i < 3; i++) {
            result = chunk_source_read(source, 0, i / 2, &chunk, &err);
            if (result == STATUS_OK) buf_done(&chunk.body);
        }
        was_refused = memory_was_refused();
        memory_fail_never();
        assert_int_equal(result, was_refused ? STATUS_MEMORY : STATUS_OK);
        chunk_source_destroy(source);
        fixture_close(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_of_every_size_are_the_files),
        cmocka_unit_test(chunks_are_the_same_in_any_order),
        cmocka_unit_test(what_no_column_is_read_from_stays_at_home),
        cmocka_unit_test(a_record_beyond_the_limit_is_refused),
        cmocka_unit_test(a_file_that_changed_is_not_read_again),
        cmocka_unit_test(the_last_chunk_is_only_given_if_no_file_changed),
        cmocka_unit_test(files_are_those_of_an_earlier_life_or_not),
        cmocka_unit_test(memory_that_runs_out_is_told),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
