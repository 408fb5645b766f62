/* SPDX-License-Identifier: Apache-2.0 */
/* test_table_files.c - however a table is cut, its chunks hold the same records in the same order.
 *
 * Method: files with everything that makes cutting hard, read in chunks of every size from one byte
 * to the whole file, in pieces of any size, by one thread and by three that are slowed down at
 * random and have to guess where their chunks begin. Each chunk must hold the records that start in
 * its stretch of the file, as the byte-by-byte grammar of csv_model.h finds them. Errors are made
 * with real files and compared with their messages.
 */
#include "unit/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/base/random.h"
#include "engine/data/csv_scan.h"
#include "engine/file/file.h"
#include "engine/local/chunk_reader.h"
#include "unit/engine/data/csv_model.h"
#include "unit/engine/data/csv_whole.h"

enum { THREADS = 3, NO_LIMIT = 1 << 28, MODEL_MAX = 1 << 16 };

static char folder[64];
static struct arena arena;
static struct error err;

static const struct field fields[] = {{{"id", 2}, {.kind = TYPE_INT}, true},
                                      {{"name", 4}, {.kind = TYPE_TEXT}, false}};
static const struct text patterns[] = {{"t/*.csv", 7}, {"t*.csv", 6}};
static const struct table table = {
    .name = {"things", 6},
    .schema = {fields, 2},
    .patterns = patterns,
    .pattern_count = 2,
};

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/test_table_files.XXXXXX");
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static void empty_folder(const char *path)
{
    struct file_entry *entries;
    uint32_t count;
    assert_int_equal(file_list(path, &arena, &entries, &count, &err), STATUS_OK);
    for (uint32_t i = 0; i < count; i++) {
        const char *inner = file_path(path, entries[i].name, &arena);
        if (entries[i].is_folder) {
            struct file_entry *files;
            uint32_t file_count;
            assert_int_equal(file_list(inner, &arena, &files, &file_count, &err), STATUS_OK);
            for (uint32_t j = 0; j < file_count; j++) {
                (void)unlink(file_path(inner, files[j].name, &arena));
            }
            (void)rmdir(inner);
        } else {
            (void)unlink(inner);
        }
    }
}

static int remove_folder(void **state)
{
    (void)state;
    arena_reset(&arena);
    empty_folder(folder);
    arena_done(&arena);
    return rmdir(folder);
}

static const char *path_of(const char *name)
{
    return file_path(folder, text_of(name), &arena);
}

static void write_bytes(const char *name, const char *bytes, size_t size)
{
    FILE *file = fopen(path_of(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void write_file(const char *name, const char *content)
{
    write_bytes(name, content, strlen(content));
}

static void open_files(struct table_files *files, uint32_t chunk_bytes)
{
    bool is_cut_later = chunk_bytes % 2 == 0;
    status result =
        table_files_open(&table, folder, chunk_bytes + (is_cut_later ? 5 : 0), &arena, files, &err);
    if (result == STATUS_OK && is_cut_later) table_files_cut(files, chunk_bytes);
    if (result != STATUS_OK) fail_msg("%s", err.text);
}

/* Chunks as they were read, by number. */
struct read_chunk {
    char *bytes;
    size_t size;
    uint64_t offset;
    uint32_t file;
};

struct reader_crew {
    struct table_files *files;
    struct read_chunk *chunks;
    atomic_uint_fast64_t next;
    atomic_bool stopped;
    uint32_t record_limit;
    bool is_slow;
    atomic_uint_fast64_t again_count;
    atomic_int results[STATUS_INTERNAL + 1]; /* How many reads ended so. */
};

/* Chunks that were read once more since the tests began. */
static uint64_t wrong_guesses;

/* An index that was begun while the piece was read ends as one that is made afterwards. */
static void check_begun_index(const struct chunk *piece)
{
    struct error own;
    struct csv_index whole = {0};
    struct csv_input input = {piece->bytes, piece->size, piece->file_columns};
    status expected = csv_index_build(&whole, input, &own);
    if (csv_index_finish(piece->index, input, &own) != expected) abort();
    if (expected == STATUS_OK) {
        /* Rows that share entries have one more behind the last. */
        size_t shared = whole.row_count > 0 && whole.stride == whole.column_count;
        size_t count = (size_t)whole.row_count * whole.stride + shared;
        if (piece->index->row_count != whole.row_count || piece->index->stride != whole.stride ||
            (count > 0 &&
             memcmp(piece->index->positions, whole.positions, count * sizeof(uint32_t)) != 0)) {
            abort();
        }
    }
    csv_index_done(&whole);
}

static status read_pieces(struct chunk_reader *reader, struct read_chunk *out, struct error *own)
{
    out->size = 0;
    for (;;) {
        struct chunk piece;
        bool more;
        TRY(chunk_reader_next(reader, &piece, &more, own));
        if (!more) return STATUS_OK;
        check_begun_index(&piece);
        if (out->size == 0) out->offset = piece.offset;
        if (piece.size == 0 || piece.offset != out->offset + out->size) abort();
        out->bytes = realloc(out->bytes, out->size + piece.size);
        if (out->bytes == NULL) abort();
        memcpy(out->bytes + out->size, piece.bytes, piece.size);
        out->size += piece.size;
    }
}

static status read_chunk(struct reader_crew *crew, struct chunk_reader *reader, uint64_t number,
                         struct read_chunk *out, struct error *own)
{
    *out = (struct read_chunk){0};
    status result = chunk_reader_begin(reader, crew->files, number, crew->record_limit, own);
    for (bool again = true;;) {
        struct error end_error;
        if (result == STATUS_OK) result = read_pieces(reader, out, own);
        out->file = chunk_reader_file(reader);
        status ended = chunk_reader_end(reader, &crew->stopped, &again, &end_error);
        if (ended != STATUS_OK) return ended;
        if (!again) return result;
        atomic_fetch_add(&crew->again_count, 1);
        result = STATUS_OK;
    }
}

static void *read_all(void *argument)
{
    struct reader_crew *crew = argument;
    struct random random = {(uint64_t)(uintptr_t)&random};
    struct error own;
    struct chunk_reader *reader = NULL;
    if (chunk_reader_create(NULL, &reader, &own) != STATUS_OK) abort();
    for (;;) {
        uint64_t number = atomic_fetch_add(&crew->next, 1);
        if (number >= crew->files->chunk_count) break;
        /* Seldom: beside other processes it is long until it is our turn again. */
        if (crew->is_slow && random_below(&random, 64) == 0) sched_yield();
        chunk_reader_set_piece(reader, 1 + random_below(&random, crew->files->chunk_bytes + 1));
        struct read_chunk chunk;
        status result = read_chunk(crew, reader, number, &chunk, &own);
        atomic_fetch_add(&crew->results[result], 1);
        if (result != STATUS_OK) {
            free(chunk.bytes);
            atomic_store(&crew->stopped, true);
            table_files_stop(crew->files);
            break;
        }
        crew->chunks[number] = chunk;
    }
    chunk_reader_destroy(reader);
    return NULL;
}

static struct read_chunk *read_with(struct table_files *files, int thread_count)
{
    struct reader_crew crew = {
        .files = files, .record_limit = NO_LIMIT, .is_slow = thread_count > 1};
    crew.chunks = calloc(files->chunk_count + 1, sizeof *crew.chunks);
    assert_non_null(crew.chunks);
    pthread_t threads[THREADS];
    for (int i = 1; i < thread_count; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, &crew), 0);
    }
    (void)read_all(&crew);
    for (int i = 1; i < thread_count; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&crew.results[STATUS_OK]), files->chunk_count);
    /* Who reads alone has nothing to guess. */
    if (thread_count == 1) assert_int_equal(atomic_load(&crew.again_count), 0);
    wrong_guesses += atomic_load(&crew.again_count);
    return crew.chunks;
}

/* Whether each chunk of the file is exactly the records that start in its piece. */
static void check_file(const struct table_files *files, uint32_t number,
                       const struct read_chunk *chunks, const char *bytes, char *scratch)
{
    const struct table_file *file = &files->files[number];
    size_t at = (size_t)file->body_offset;
    for (uint64_t piece = 0; piece < file->chunk_count; piece++) {
        const struct read_chunk *chunk = &chunks[file->first_chunk + piece];
        uint64_t piece_end = file->body_offset + (piece + 1) * files->chunk_bytes;
        size_t start = at;
        while (at < piece_end && at < file->size) {
            at = model_record_end(bytes, (size_t)file->size, at, scratch);
        }
        assert_int_equal(chunk->file, number);
        assert_int_equal(chunk->size, at - start);
        if (at > start) {
            assert_int_equal(chunk->offset, start);
            assert_memory_equal(chunk->bytes, bytes + start, at - start);
        }
    }
    assert_int_equal(at, file->size);
}

static void check_table(uint32_t chunk_bytes, int thread_count)
{
    struct table_files files;
    static char scratch[MODEL_MAX];
    open_files(&files, chunk_bytes);
    struct read_chunk *chunks = read_with(&files, thread_count);
    uint64_t chunk_count = 0;
    for (uint32_t i = 0; i < files.file_count; i++) {
        struct text bytes;
        assert_int_equal(file_read_whole(files.files[i].path, MODEL_MAX, &arena, &bytes, &err),
                         STATUS_OK);
        assert_int_equal(files.files[i].first_chunk, chunk_count);
        check_file(&files, i, chunks, bytes.bytes, scratch);
        chunk_count += files.files[i].chunk_count;
    }
    assert_int_equal(files.chunk_count, chunk_count);
    for (uint64_t i = 0; i < files.chunk_count; i++) {
        free(chunks[i].bytes);
    }
    free(chunks);
    table_files_close(&files);
    table_files_close(&files);
}

static const char *const hard_files[] = {
    "",
    "\xef\xbb\xbf",
    "id,name",
    "id,name\n",
    "id,name\r\n",
    "\xef\xbb\xbfid,name\r\n1,a\r\n22,bb\r\n333,ccc\r\n",
    "\xef\xbb\xbf\"id\",\"na\"\"me\",name\n1,,\n",
    "id,name\n1,no final newline",
    "id,name\n\n\n\n1,x\n\n",
    "id,name\n1,\"a\nb\n\nc\"\n2,\"\"\"quoted\"\"\"\n3,\"x\"\"\n\"\"y\"\n4,z\n",
    "name,more,id\n\"a\n\",\"\r\n\",1\r\n\"\",\"\",\"2\"\r\nx\"\ny,z,3\n",
    "id,name\n1,\"a long record\nof\nmany\n\"\"lines\"\"\n\n\n\n\n\"\n2,b\n",
    "id,name\n1,\"never closed\n2,b\n3,c\n",
    "id,name\n1,\"text\" after \"the quote\n2,a\"\"b\"\n3,\"\"\n4,\"\"\"\"\n",
    "id,name\r\n1,\"\r\n\"\r\n\"2\",\"\r\"\r\n",
};

enum { HARD_FILES = sizeof hard_files / sizeof hard_files[0] };

static void every_chunk_size_gives_the_same_records(void **state)
{
    (void)state;
    for (size_t i = 0; i < HARD_FILES; i++) {
        write_file("t.csv", hard_files[i]);
        for (uint32_t chunk_bytes = 1; chunk_bytes <= strlen(hard_files[i]) + 1; chunk_bytes++) {
            check_table(chunk_bytes, 1);
            check_table(chunk_bytes, THREADS);
        }
    }
}

static void chunks_are_numbered_through_all_files(void **state)
{
    (void)state;
    assert_int_equal(mkdir(path_of("t"), 0700), 0);
    for (size_t i = 0; i < HARD_FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "t/%c.csv", (int)('a' + i));
        write_file(name, hard_files[i]);
    }
    for (uint32_t chunk_bytes = 1; chunk_bytes <= 100; chunk_bytes++) {
        check_table(chunk_bytes, 1);
        check_table(chunk_bytes, THREADS);
    }
}

static void long_random_files_are_cut_alike(void **state)
{
    (void)state;
    static const char alphabet[] = "ab,,\n\n\"\"\r1";
    static char bytes[50000];
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct random random = {seed};
        memcpy(bytes, "id,name\n", 8);
        /* With seldom quotes, records become long; with odd ones, the file's end is quoted. */
        uint32_t letters = seed % 3 == 0 ? 6 : sizeof alphabet - 1;
        for (size_t at = 8; at < sizeof bytes; at++) {
            bytes[at] = alphabet[random_below(&random, letters)];
            if (seed % 3 == 0 && random_below(&random, 5000) == 0) bytes[at] = '"';
        }
        write_bytes("t.csv", bytes, sizeof bytes);
        static const uint32_t sizes[] = {7, 64, 1000, 4096, 5000, 49999, 100000};
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            check_table(sizes[i], THREADS);
        }
    }
}

/* Runs after the others: a test of wrong guesses that never met one would prove nothing. */
static void some_guesses_were_wrong(void **state)
{
    (void)state;
    assert_true(wrong_guesses > 100);
}

static void columns_are_found_by_name_in_each_file(void **state)
{
    (void)state;
    write_file("t1.csv", "id,name\n1,a\n");
    write_file("t2.csv", "x,\"name\",y,id,id,name\r\n1,2,3,4,5,6\r\n");
    write_file("t3.csv", "");
    write_file("t4.csv", "\"a\nb\",id,name\n");
    struct table_files files;
    open_files(&files, 1000);
    assert_int_equal(files.file_count, 4);
    assert_int_equal(files.chunk_count, 2);
    assert_int_equal(files.byte_count, 12 + 23 + 13 + 14);
    assert_true(text_equal(files.files[1].name, TEXT_LITERAL("t2.csv")));
    assert_int_equal(files.files[0].column_count, 2);
    assert_int_equal(files.files[0].column_map[0], 0);
    assert_int_equal(files.files[0].column_map[1], 1);
    assert_int_equal(files.files[1].column_count, 6);
    assert_int_equal(files.files[1].column_map[0], 3);
    assert_int_equal(files.files[1].column_map[1], 1);
    assert_int_equal(files.files[1].header_lines, 1);
    assert_int_equal(files.files[3].header_lines, 2);
    assert_int_equal(files.files[3].column_map[0], 1);
    table_files_close(&files);
}

static void the_first_pattern_that_matches_counts(void **state)
{
    (void)state;
    write_file("t1.csv", "id,name\n");
    assert_int_equal(mkdir(path_of("t"), 0700), 0);
    assert_int_equal(mkdir(path_of("t5.csv"), 0700), 0);
    struct table_files files;
    open_files(&files, 1000);
    assert_int_equal(files.file_count, 1);
    table_files_close(&files);
    write_file("t/x.csv", "id,name\n");
    open_files(&files, 1000);
    assert_int_equal(files.file_count, 1);
    assert_true(text_equal(files.files[0].name, TEXT_LITERAL("t/x.csv")));
    table_files_close(&files);
}

static void check_open_fails(const char *data_dir, status expected, const char *text)
{
    struct table_files files;
    assert_int_equal(table_files_open(&table, data_dir, 1000, &arena, &files, &err), expected);
    if (strstr(err.text, text) == NULL) fail_msg("'%s' is not in '%s'", text, err.text);
}

static void what_is_missing_is_told_with_what_is_there(void **state)
{
    (void)state;
    check_open_fails("/tmp/no/such/folder", STATUS_IO,
                     "data folder: /tmp/no/such/folder: No such file or directory");
    check_open_fails(folder, STATUS_INPUT, "; found: nothing");
    write_file("b.csv", "");
    write_file("a\n.csv", "");
    write_file(".hidden", "");
    assert_int_equal(mkdir(path_of("sub"), 0700), 0);
    char expected[256];
    snprintf(expected, sizeof expected,
             "table things needs t/*.csv or t*.csv in %s; found: a\\n.csv, b.csv, sub/", folder);
    check_open_fails(folder, STATUS_INPUT, expected);
    assert_int_equal(strlen(err.text), strlen(expected));

    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "c%02d.csv", i);
        write_file(name, "");
    }
    check_open_fails(folder, STATUS_INPUT, "c08.csv, c09.csv and 11 more");

    write_file("t.csv", "Id,nmae,other\n1,2,3\n");
    check_open_fails(folder, STATUS_INPUT,
                     "t.csv has no column id (did you mean Id?), which table things needs; its "
                     "columns are: Id, nmae, other");
    write_file("t.csv", "id,zzz\n1,2,3\n");
    check_open_fails(folder, STATUS_INPUT, "t.csv has no column name, which");
    write_file("t.csv", "id,\"name\n1,2,3\n");
    check_open_fails(folder, STATUS_INPUT, "t.csv: csv: the header has an unclosed quote");
}

static void a_header_ends_within_a_mebibyte(void **state)
{
    (void)state;
    static char bytes[(1 << 20) + 10];
    static const size_t sizes[] = {100,         (16 << 10) - 1, 16 << 10, (16 << 10) + 1,
                                   (128 << 10), (1 << 20) - 1,  1 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        memset(bytes, 'x', sizeof bytes);
        memcpy(bytes, "\xef\xbb\xbf\"id\",name,", 13);
        bytes[sizes[i] - 1] = '\n';
        write_bytes("t.csv", bytes, sizeof bytes);
        struct table_files files;
        open_files(&files, 1000);
        assert_int_equal(files.files[0].body_offset, sizes[i]);
        table_files_close(&files);
    }
    bytes[(1 << 20) - 1] = 'x';
    write_bytes("t.csv", bytes, sizeof bytes);
    check_open_fails(folder, STATUS_INPUT, "t.csv: its header is longer than 1048576 bytes");
}

/* Reads all chunks in order, with little memory; returns the first failure. */
static status read_until_failure(uint32_t chunk_bytes, uint32_t record_limit)
{
    struct budget budget = {.limit_bytes = 500000};
    struct table_files files;
    open_files(&files, chunk_bytes);
    struct chunk_reader *reader = NULL;
    assert_int_equal(chunk_reader_create(&budget, &reader, &err), STATUS_OK);
    status result = STATUS_OK;
    struct reader_crew crew = {.files = &files, .record_limit = record_limit};
    for (uint64_t number = 0; number < files.chunk_count && result == STATUS_OK; number++) {
        struct read_chunk chunk;
        result = read_chunk(&crew, reader, number, &chunk, &err);
        free(chunk.bytes);
    }
    chunk_reader_destroy(reader);
    table_files_close(&files);
    return result;
}

static void a_record_beyond_the_limit_is_placed_for_every_chunk_size(void **state)
{
    (void)state;
    const char *content = "id,name\n1,a\n2,\"b\nb\"\n3,0123456789\n4,\"12\n34\n\n56\"\n5,x\n";
    write_file("t.csv", content);
    for (uint32_t chunk_bytes = 1; chunk_bytes <= strlen(content); chunk_bytes++) {
        assert_int_equal(read_until_failure(chunk_bytes, 14), STATUS_OK);
        assert_int_equal(read_until_failure(chunk_bytes, 13), STATUS_LIMIT);
        assert_string_equal(err.text, "t.csv:6: the record that begins here is longer than 13 "
                                      "bytes; is a quote unclosed?");
        assert_int_equal(read_until_failure(chunk_bytes, 12), STATUS_LIMIT);
        assert_non_null(strstr(err.text, "t.csv:5: "));
        assert_int_equal(read_until_failure(chunk_bytes, 7), STATUS_LIMIT);
        assert_non_null(strstr(err.text, "t.csv:3: "));
    }
}

static void a_very_long_record_is_given_up_early(void **state)
{
    (void)state;
    static char bytes[1 << 20];
    memset(bytes, 'x', sizeof bytes);
    memcpy(bytes, "id,name\n1,2\n3,\"", 15);
    write_bytes("t.csv", bytes, sizeof bytes);
    for (uint32_t chunk_bytes = 4; chunk_bytes < 1000; chunk_bytes *= 7) {
        assert_int_equal(read_until_failure(chunk_bytes, 100000), STATUS_LIMIT);
        assert_non_null(strstr(err.text, "t.csv:3: "));
        assert_int_equal(read_until_failure(chunk_bytes, 1 << 20), STATUS_MEMORY);
    }
}

static void an_unclosed_quote_is_told_with_its_line(void **state)
{
    (void)state;
    write_file("t.csv", "id,name\n1,\"a\nb\"\n2,\"open\n3,c\n");
    struct table_files files;
    open_files(&files, 7);
    struct chunk_reader *reader = NULL;
    struct chunk_scan *scan = NULL;
    const bool used[] = {true, true};
    assert_int_equal(chunk_reader_create(NULL, &reader, &err), STATUS_OK);
    assert_int_equal(chunk_scan_create(&table, used, 1000, NULL, &scan, &err), STATUS_OK);
    status result = STATUS_OK;
    for (uint64_t number = 0; number < files.chunk_count && result == STATUS_OK; number++) {
        struct chunk chunk;
        bool more;
        assert_int_equal(chunk_reader_begin(reader, &files, number, NO_LIMIT, &err), STATUS_OK);
        assert_int_equal(chunk_reader_next(reader, &chunk, &more, &err), STATUS_OK);
        if (more) result = chunk_scan_begin(scan, &chunk, &err);
        if (result == STATUS_OK) {
            bool again;
            assert_int_equal(chunk_reader_end(reader, NULL, &again, &err), STATUS_OK);
            continue;
        }
        uint64_t offset = chunk.offset + chunk_scan_error_offset(scan);
        uint32_t file = chunk_reader_file(reader);
        assert_int_equal(table_files_unclosed(&files, file, offset, &err), STATUS_INPUT);
    }
    assert_int_equal(result, STATUS_INPUT);
    assert_string_equal(err.text, "t.csv:4: a quoted field begins here and is never closed");
    chunk_scan_destroy(scan);
    chunk_reader_destroy(reader);
    table_files_close(&files);
}

static void lines_are_counted_from_one(void **state)
{
    (void)state;
    static char bytes[200000];
    struct random random = {5};
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = random_below(&random, 10) == 0 ? '\n' : 'x';
    }
    memcpy(bytes, "id,name\n", 8);
    write_bytes("t.csv", bytes, sizeof bytes);
    struct table_files files;
    open_files(&files, 1000);
    uint64_t expected = 1;
    for (uint64_t offset = 0; offset < sizeof bytes; offset++) {
        uint64_t line = 0;
        if (offset % 9973 == 0 || offset < 50) {
            assert_int_equal(table_files_line(&files, 0, offset, &line, &err), STATUS_OK);
            assert_int_equal(line, expected);
        }
        expected += bytes[offset] == '\n';
    }
    table_files_close(&files);
}

static void a_file_that_shrinks_fails_its_reader_and_frees_the_others(void **state)
{
    (void)state;
    char bytes[20000];
    memset(bytes, '\n', sizeof bytes);
    memcpy(bytes, "id,name\n", 8);
    for (int round = 0; round < 20; round++) {
        write_bytes("t.csv", bytes, sizeof bytes);
        struct table_files files;
        open_files(&files, 100);
        assert_int_equal(truncate(path_of("t.csv"), 12000), 0);
        struct reader_crew crew = {.files = &files, .record_limit = NO_LIMIT, .is_slow = true};
        crew.chunks = calloc(files.chunk_count, sizeof *crew.chunks);
        assert_non_null(crew.chunks);
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, read_all, &crew), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        }
        assert_true(atomic_load(&crew.results[STATUS_IO]) >= 1);
        for (uint64_t i = 0; i < files.chunk_count; i++) {
            free(crew.chunks[i].bytes);
        }
        free(crew.chunks);
        table_files_close(&files);
    }
}

static void *read_second_chunk(void *argument)
{
    struct reader_crew *crew = argument;
    struct error own;
    struct chunk_reader *reader = NULL;
    struct read_chunk chunk;
    if (chunk_reader_create(NULL, &reader, &own) != STATUS_OK) abort();
    status result = read_chunk(crew, reader, 1, &chunk, &own);
    atomic_fetch_add(&crew->results[result], 1);
    free(chunk.bytes);
    chunk_reader_destroy(reader);
    return NULL;
}

static void a_stop_ends_the_wait_for_a_chunk_that_nobody_reads(void **state)
{
    (void)state;
    write_file("t.csv", "id,name\n1,a\n2,b\n");
    struct table_files files;
    open_files(&files, 4);
    struct reader_crew crew = {.files = &files, .record_limit = NO_LIMIT};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_second_chunk, &crew), 0);
    usleep(2000);
    assert_int_equal(atomic_load(&crew.results[STATUS_CANCELLED]), 0);
    atomic_store(&crew.stopped, true);
    table_files_stop(&files);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&crew.results[STATUS_CANCELLED]), 1);
    table_files_close(&files);
}

static void a_failed_reader_ends_the_wait_of_the_next(void **state)
{
    (void)state;
    write_file("t.csv", "id,name\n1,a\n2,b\n");
    struct table_files files;
    open_files(&files, 4);
    struct reader_crew crew = {.files = &files, .record_limit = NO_LIMIT};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_second_chunk, &crew), 0);
    usleep(20000); /* Long enough to be waiting; if not, it fails by itself. */
    assert_int_equal(truncate(path_of("t.csv"), 0), 0);
    struct chunk_reader *reader = NULL;
    struct read_chunk chunk;
    assert_int_equal(chunk_reader_create(NULL, &reader, &err), STATUS_OK);
    assert_int_equal(read_chunk(&crew, reader, 0, &chunk, &err), STATUS_IO);
    free(chunk.bytes);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&crew.results[STATUS_OK]), 0);
    chunk_reader_destroy(reader);
    table_files_close(&files);
}

static void opening_without_memory_fails_and_leaks_nothing(void **state)
{
    (void)state;
    write_file("t1.csv", "id,name\n1,\"a\"\n");
    write_file("t2.csv", "name,\"i\"\"d\",id\n1,2,3\n");
    for (size_t allowed = 0;; allowed++) {
        struct budget budget = {0};
        struct arena small;
        arena_init(&small, &budget);
        struct table_files files = {0};
        memory_fail_after(allowed);
        status result = table_files_open(&table, folder, 100, &small, &files, &err);
        bool refused = memory_was_refused();
        memory_fail_never();
        table_files_close(&files);
        arena_done(&small);
        assert_int_equal(atomic_load(&budget.used_bytes), 0);
        assert_int_equal(result, refused ? STATUS_MEMORY : STATUS_OK);
        if (!refused) break;
    }
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(every_chunk_size_gives_the_same_records),
        IN_FOLDER(chunks_are_numbered_through_all_files),
        IN_FOLDER(long_random_files_are_cut_alike),
        IN_FOLDER(some_guesses_were_wrong),
        IN_FOLDER(columns_are_found_by_name_in_each_file),
        IN_FOLDER(the_first_pattern_that_matches_counts),
        IN_FOLDER(what_is_missing_is_told_with_what_is_there),
        IN_FOLDER(a_header_ends_within_a_mebibyte),
        IN_FOLDER(a_record_beyond_the_limit_is_placed_for_every_chunk_size),
        IN_FOLDER(a_very_long_record_is_given_up_early),
        IN_FOLDER(an_unclosed_quote_is_told_with_its_line),
        IN_FOLDER(lines_are_counted_from_one),
        IN_FOLDER(a_file_that_shrinks_fails_its_reader_and_frees_the_others),
        IN_FOLDER(a_stop_ends_the_wait_for_a_chunk_that_nobody_reads),
        IN_FOLDER(a_failed_reader_ends_the_wait_of_the_next),
        IN_FOLDER(opening_without_memory_fails_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
