/* SPDX-License-Identifier: Apache-2.0 */
/* test_gen.c - generated data is the same everywhere, has its size, and is broken only as meant.
 *
 * Method: tiny data sets are written into a temporary folder. Their bytes are hashed and compared
 * with values that were noted once, so that any change of bytes, on any machine, is noticed. A
 * naive CSV reader of a few lines checks that no file ends inside quotes. Failures are provoked: a
 * file size limit stands for a full disk, every allocation is refused once, a flag cancels.
 */
#include "unit/test.h"

#include <ftw.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/buf.h"
#include "engine/base/hash.h"
#include "engine/base/memory.h"
#include "gen/gen.h"
#include "gen/gen_dirt.h"
#include "gen/gen_put.h"
#include "gen/gen_run.h"
#include "gen/gen_writer.h"

enum { PATHS_MAX = 128, PATH_SIZE = 256 };

static const char *const analyses[] = {"movies", "coffee", "memes"};

static char root[64];
static char paths[PATHS_MAX][PATH_SIZE];
static size_t path_count;

static int remove_entry(const char *path, const struct stat *entry, int kind, struct FTW *walk)
{
    (void)entry, (void)kind, (void)walk;
    return remove(path);
}

static int collect_file(const char *path, const struct stat *entry, int kind, struct FTW *walk)
{
    (void)entry, (void)walk;
    if (kind != FTW_F) return 0;
    assert_true(path_count < PATHS_MAX);
    assert_true(strlen(path) < PATH_SIZE);
    strcpy(paths[path_count++], path);
    return 0;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* All files below the folder, by name, in `paths`. */
static void list_files(const char *folder)
{
    path_count = 0;
    if (access(folder, F_OK) != 0) return;
    assert_int_equal(nftw(folder, collect_file, 8, FTW_PHYS), 0);
    qsort(paths, path_count, PATH_SIZE, compare_paths);
}

static void make_root(void)
{
    strcpy(root, "/tmp/millrace-test-gen-XXXXXX");
    assert_non_null(mkdtemp(root));
}

static void remove_root(void)
{
    assert_int_equal(nftw(root, remove_entry, 8, FTW_PHYS | FTW_DEPTH), 0);
}

static struct buf read_whole(const char *path)
{
    struct buf content = {0};
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char block[65536];
    size_t size;
    while ((size = fread(block, 1, sizeof block, file)) > 0) {
        buf_put(&content, block, size);
    }
    assert_int_equal(fclose(file), 0);
    assert_false(content.failed);
    return content;
}

static struct gen_options options_for(const char *analysis, double scale, uint64_t seed)
{
    return (struct gen_options){
        .analysis = analysis, .directory = root, .scale = scale, .seed = seed};
}

static struct gen_report write_ok(struct gen_options options)
{
    struct gen_report report = {0};
    struct error err = {0};
    if (gen_write(&options, &report, &err) != STATUS_OK) fail_msg("%s", err.text);
    return report;
}

static uint64_t hash_files(void)
{
    uint64_t hash = 0;
    list_files(root);
    for (size_t i = 0; i < path_count; i++) {
        const char *name = paths[i] + strlen(root);
        struct buf content = read_whole(paths[i]);
        hash = hash_combine(hash, hash_bytes(name, strlen(name)));
        hash = hash_combine(hash, hash_bytes(content.bytes, content.size));
        buf_done(&content);
    }
    return hash;
}

static uint64_t hash_of(const char *analysis, double scale, uint64_t seed)
{
    make_root();
    (void)write_ok(options_for(analysis, scale, seed));
    uint64_t hash = hash_files();
    remove_root();
    return hash;
}

static void the_same_seed_gives_the_same_bytes_and_another_seed_others(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        uint64_t hash = hash_of(analyses[i], 0.003, 11);
        assert_int_equal(hash_of(analyses[i], 0.003, 11), hash);
        assert_int_not_equal(hash_of(analyses[i], 0.003, 12), hash);
    }
}

static void the_bytes_of_a_tiny_data_set_never_change_silently(void **state)
{
    (void)state;
    static const uint64_t expected[] = {0x85a5c8626fe232e3u, 0x4344e771ee8cc5f7u,
                                        0x3357b5c6eb510694u};
    for (size_t i = 0; i < 3; i++) {
        uint64_t hash = hash_of(analyses[i], 0.002, 1);
        if (hash != expected[i]) {
            fail_msg("%s: 0x%016llx", analyses[i], (unsigned long long)hash);
        }
    }
}

static void records_and_bytes_grow_with_the_scale(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        make_root();
        struct gen_report once = write_ok(options_for(analyses[i], 0.01, 5));
        struct gen_report thrice = write_ok(options_for(analyses[i], 0.03, 5));
        assert_int_equal(once.file_count, thrice.file_count);
        assert_in_range(thrice.record_count * 100 / once.record_count, 298, 302);
        assert_in_range(thrice.byte_count * 100 / once.byte_count, 285, 315);
        remove_root();
    }
}

static void the_report_counts_files_and_bytes_as_they_are_on_disk(void **state)
{
    (void)state;
    static const uint64_t file_counts[] = {3, 74, 2};
    for (size_t i = 0; i < 3; i++) {
        make_root();
        struct gen_report report = write_ok(options_for(analyses[i], 0.001, 5));
        uint64_t byte_count = 0;
        list_files(root);
        for (size_t file = 0; file < path_count; file++) {
            struct stat entry;
            assert_int_equal(stat(paths[file], &entry), 0);
            byte_count += (uint64_t)entry.st_size;
        }
        assert_int_equal(path_count, file_counts[i]);
        assert_int_equal(report.file_count, file_counts[i]);
        assert_int_equal(report.byte_count, byte_count);
        remove_root();
    }
}

typedef enum { AT_FIELD_START, IN_BARE, IN_QUOTES, AFTER_QUOTE } csv_state;

struct csv_count {
    uint64_t line_count;
    bool is_open; /* Ended inside quotes. */
};

/* A quote opens at the start of a field only; behind a closing one, text goes on bare. */
static struct csv_count csv_read(const unsigned char *bytes, size_t size)
{
    struct csv_count count = {0};
    csv_state state = AT_FIELD_START;
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = bytes[i];
        if (state == IN_QUOTES) {
            if (byte == '"') state = AFTER_QUOTE;
        } else if (byte == '"' && state != IN_BARE) {
            state = IN_QUOTES;
        } else if (byte == ',' || byte == '\n') {
            state = AT_FIELD_START;
            if (byte == '\n') count.line_count++;
        } else {
            state = IN_BARE;
        }
    }
    if (size > 0 && bytes[size - 1] != '\n') count.line_count++;
    count.is_open = state == IN_QUOTES;
    return count;
}

static void no_file_ends_inside_quotes_and_all_have_records(void **state)
{
    (void)state;
    static const double scales[] = {0.000001, 0.0001, 0.01};
    for (size_t i = 0; i < 9; i++) {
        make_root();
        (void)write_ok(options_for(analyses[i % 3], scales[i / 3], i));
        list_files(root);
        for (size_t file = 0; file < path_count; file++) {
            struct buf content = read_whole(paths[file]);
            struct csv_count count = csv_read(content.bytes, content.size);
            assert_false(count.is_open);
            assert_true(count.line_count >= 1 + 5);
            buf_done(&content);
        }
        remove_root();
    }
}

static void an_existing_file_is_replaced(void **state)
{
    (void)state;
    char path[128];
    make_root();
    (void)snprintf(path, sizeof path, "%s/posts.csv", root);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fputs("what was there before", file) < 0, 0);
    assert_int_equal(fclose(file), 0);
    (void)write_ok(options_for("memes", 0.0001, 1));
    struct buf content = read_whole(path);
    assert_int_equal(memcmp(content.bytes, "\xef\xbb\xbftype,id,", 11), 0);
    buf_done(&content);
    remove_root();
}

static void an_unknown_analysis_or_scale_is_refused(void **state)
{
    (void)state;
    struct gen_report report = {.file_count = 77};
    struct error err;
    struct gen_options options = {.analysis = "tea", .directory = "/nowhere", .scale = 1};
    assert_int_equal(gen_write(&options, &report, &err), STATUS_USAGE);
    for (size_t i = 0; i < 3; i++) {
        assert_non_null(strstr(err.text, analyses[i]));
    }

    static const double scales[] = {0, -1, 0.0000001, 1001, (double)INFINITY, (double)NAN};
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        options =
            (struct gen_options){.analysis = "movies", .directory = "/nowhere", .scale = scales[i]};
        assert_int_equal(gen_write(&options, &report, &err), STATUS_USAGE);
    }
    assert_int_equal(report.file_count, 77);
}

static void no_partial_file_is_left(void)
{
    list_files(root);
    for (size_t i = 0; i < path_count; i++) {
        assert_null(strstr(paths[i], ".part"));
    }
}

/* A limit on the size of files refuses writes as a full disk does, in the middle of a file. */
static void a_full_disk_is_an_error_that_names_the_file(void **state)
{
    (void)state;
    static const char *const names[] = {"/credits.csv", "/transaction_items_202307.csv",
                                        "/comments.csv"};
    static const rlim_t limits[] = {200000, 120000, 200000};
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < 3; i++) {
        struct gen_report report;
        struct error err = {0};
        make_root();
        struct gen_options options = options_for(analyses[i], 0.002, 1);
        struct rlimit limit = {.rlim_cur = limits[i], .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        status result = gen_write(&options, &report, &err);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(result, STATUS_IO);
        assert_non_null(strstr(err.text, root));
        assert_non_null(strstr(err.text, names[i]));
        no_partial_file_is_left();
        remove_root();
    }
    (void)signal(SIGXFSZ, handler);
}

static void a_folder_that_cannot_be_made_or_replaced_is_named(void **state)
{
    (void)state;
    struct gen_report report;
    struct error err = {0};
    struct gen_options options = {
        .analysis = "memes", .directory = "/dev/null/data", .scale = 0.0001};
    assert_int_equal(gen_write(&options, &report, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "/dev/null"));

    char path[128];
    make_root();
    (void)snprintf(path, sizeof path, "%s/comments.csv", root);
    assert_int_equal(mkdir(path, 0777), 0);
    options.directory = root;
    assert_int_equal(gen_write(&options, &report, &err), STATUS_IO);
    assert_non_null(strstr(err.text, path));
    no_partial_file_is_left();
    remove_root();
}

struct canceller {
    atomic_bool flag;
    uint64_t call_count;
    uint64_t last_done;
};

static void cancel_at_third_call(void *context, uint64_t done, uint64_t expected)
{
    struct canceller *canceller = context;
    assert_true(done >= canceller->last_done);
    assert_true(expected >= done);
    canceller->last_done = done;
    if (++canceller->call_count == 3) atomic_store(&canceller->flag, true);
}

static void cancelling_stops_within_a_file_and_leaves_nothing_half_done(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct gen_report report;
        struct error err;
        struct canceller canceller = {.call_count = 0};
        make_root();
        struct gen_options options = options_for(analyses[i], 0.05, 1);
        options.progress = cancel_at_third_call;
        options.context = &canceller;
        options.cancelled = &canceller.flag;
        assert_int_equal(gen_write(&options, &report, &err), STATUS_CANCELLED);
        assert_int_equal(canceller.call_count, 3);
        no_partial_file_is_left();
        remove_root();
    }
}

static void every_refused_allocation_is_reported(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        status result = STATUS_MEMORY;
        make_root();
        for (size_t count = 0; result != STATUS_OK; count++) {
            struct gen_report report;
            struct error err;
            struct gen_options options = options_for(analyses[i], 0.0001, 1);
            memory_fail_after(count);
            result = gen_write(&options, &report, &err);
            memory_fail_never();
            assert_true(result == STATUS_OK || result == STATUS_MEMORY);
            assert_true(count < 10);
            no_partial_file_is_left();
        }
        remove_root();
    }
}

/* The dirtiest file there is: every record is broken, thousands of times, in every way. */
static void broken_records_never_leave_a_quote_open(void **state)
{
    (void)state;
    static const char *const records[] = {
        "1,abc,2.5,2001-01-01,[]\n",
        "1,\"a,b\",2.5,2001-01-01,\"[{'name': 'x'}]\"\r\n",
        "1,\"\"\"a\"\"\",,2001-01-01,\"[\"\"]\"\n",
        ",,,,\n",
        "\"\",\"\",\"\",\"\",\"\"\n",
        "x\n",
    };
    static const struct gen_columns columns = {
        .required = GEN_FIELD(0),
        .numbers = GEN_FIELD(2),
        .dates = GEN_FIELD(3),
        .texts = GEN_FIELD(1) | GEN_FIELD(4),
        .lists = GEN_FIELD(4),
    };
    static char memory[2 * GEN_RECORD_BYTES];
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        struct gen_dirt dirt = gen_dirt_init(&columns, (struct random){.state = i}, 100);
        size_t size = strlen(records[i]);
        uint32_t changed_count = 0;
        for (size_t round = 0; round < 3000; round++) {
            memcpy(memory, records[i], size);
            char *end = gen_dirt_break(&dirt, memory, memory + size);
            size_t new_size = (size_t)(end - memory);
            assert_false(csv_read((const unsigned char *)memory, new_size).is_open);
            assert_int_equal(end[-1], '\n');
            changed_count += new_size != size || memcmp(memory, records[i], size) != 0;
        }
        assert_true(changed_count > 2000);
    }
}

static void columns_can_be_put_into_another_order(void **state)
{
    (void)state;
    static const uint8_t order[] = {2, 0, 1};
    static char memory[2 * GEN_RECORD_BYTES];
    char *end = GEN_PUT(memory, "a,\"b,\"\"\",c\r\n");
    end = gen_dirt_reorder(memory, end, order, 3);
    assert_int_equal(end - memory, 12);
    assert_memory_equal(memory, "c,a,\"b,\"\"\"\r\n", 12);
}

/* Every text of up to six letters that matter, escaped and read back. */
static void csv_fields_read_back_as_they_were(void **state)
{
    (void)state;
    static const char letters[] = {'a', ',', '"', '\n', '\r'};
    for (size_t size = 0; size <= 6; size++) {
        size_t text_count = 1;
        for (size_t i = 0; i < size; i++) {
            text_count *= sizeof letters;
        }
        for (size_t number = 0; number < text_count; number++) {
            char raw[6];
            char field[16];
            char back[16];
            size_t rest = number;
            for (size_t i = 0; i < size; i++) {
                raw[i] = letters[rest % sizeof letters];
                rest /= sizeof letters;
            }
            size_t field_size = (size_t)(gen_put_csv(field, raw, size) - field);
            size_t back_size = 0;
            bool is_quoted = field_size > 0 && field[0] == '"';
            for (size_t i = is_quoted; i + is_quoted < field_size; i++) {
                back[back_size++] = field[i];
                if (field[i] == '"') assert_int_equal(field[++i], '"');
            }
            assert_int_equal(is_quoted, field_size != size);
            assert_int_equal(back_size, size);
            if (size > 0) assert_memory_equal(back, raw, size);
        }
    }
}

static void python_strings_are_written_as_repr_writes_them(void **state)
{
    (void)state;
    static const struct {
        const char *raw;
        const char *written;
    } cases[] = {
        {"", "''"},
        {"Ada", "'Ada'"},
        {"O'Hara", "\"O'Hara\""},
        {"the \"Heron\"", "'the \"Heron\"'"},
        {"\"it's\"", "'\"it\\'s\"'"},
        {"a\\b", "'a\\\\b'"},
        {"a\xc2\xa0z\n", "'a\\xa0z\\n'"},
        {"Ren\xc3\xa9\xe2\x80\x8b", "'Ren\xc3\xa9\\u200b'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char written[64];
        char *end = gen_put_python(written, cases[i].raw, strlen(cases[i].raw));
        *end = '\0';
        assert_string_equal(written, cases[i].written);
    }
}

static void numbers_are_written_as_printf_writes_them(void **state)
{
    (void)state;
    struct random random = {.state = 3};
    for (uint32_t i = 0; i < 20000; i++) {
        uint64_t value = i < 2000 ? i : random_u64(&random) >> random_below(&random, 64);
        char written[32];
        char expected[32];
        *gen_put_u64(written, value) = '\0';
        (void)snprintf(expected, sizeof expected, "%llu", (unsigned long long)value);
        assert_string_equal(written, expected);
        *gen_put_i64(written, (int64_t)value) = '\0';
        (void)snprintf(expected, sizeof expected, "%lld", (long long)value);
        assert_string_equal(written, expected);

        uint32_t thousandths = i * 7;
        *gen_put_thousandths(written, thousandths) = '\0';
        int size =
            snprintf(expected, sizeof expected, "%u.%03u", thousandths / 1000, thousandths % 1000);
        while (expected[size - 1] == '0' && expected[size - 2] != '.') {
            expected[--size] = '\0';
        }
        assert_string_equal(written, expected);
    }
}

static void skewed_numbers_stay_below_their_bound_and_prefer_low_ones(void **state)
{
    (void)state;
    struct random random = {.state = 1};
    for (uint32_t count = 1; count <= 300; count++) {
        for (uint32_t flat_bits = 0; flat_bits <= 9; flat_bits++) {
            for (uint32_t i = 0; i < 20; i++) {
                assert_true(gen_skewed(&random, count, flat_bits) < count);
            }
        }
    }
    uint32_t low_count = 0;
    for (uint32_t i = 0; i < 10000; i++) {
        low_count += gen_skewed(&random, 65536, 4) < 1024;
    }
    assert_in_range(low_count, 5000, 6000); /* 7 octaves of 13. */
}

static void a_walk_meets_every_number_once(void **state)
{
    (void)state;
    for (uint64_t count = 1; count <= 500; count++) {
        bool seen[500] = {false};
        struct gen_walk walk = gen_walk_over(count);
        for (uint64_t i = 0; i < count; i++) {
            uint64_t number = gen_walk_next(&walk);
            assert_true(number < count);
            assert_false(seen[number]);
            seen[number] = true;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_same_bytes_and_another_seed_others),
        cmocka_unit_test(the_bytes_of_a_tiny_data_set_never_change_silently),
        cmocka_unit_test(records_and_bytes_grow_with_the_scale),
        cmocka_unit_test(the_report_counts_files_and_bytes_as_they_are_on_disk),
        cmocka_unit_test(no_file_ends_inside_quotes_and_all_have_records),
        cmocka_unit_test(an_existing_file_is_replaced),
        cmocka_unit_test(an_unknown_analysis_or_scale_is_refused),
        cmocka_unit_test(a_full_disk_is_an_error_that_names_the_file),
        cmocka_unit_test(a_folder_that_cannot_be_made_or_replaced_is_named),
        cmocka_unit_test(cancelling_stops_within_a_file_and_leaves_nothing_half_done),
        cmocka_unit_test(every_refused_allocation_is_reported),
        cmocka_unit_test(broken_records_never_leave_a_quote_open),
        cmocka_unit_test(columns_can_be_put_into_another_order),
        cmocka_unit_test(csv_fields_read_back_as_they_were),
        cmocka_unit_test(python_strings_are_written_as_repr_writes_them),
        cmocka_unit_test(numbers_are_written_as_printf_writes_them),
        cmocka_unit_test(skewed_numbers_stay_below_their_bound_and_prefer_low_ones),
        cmocka_unit_test(a_walk_meets_every_number_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
