/* SPDX-License-Identifier: Apache-2.0 */
/* test_csv_scan.c - the index, the fields and the header are what the grammar says.
 *
 * Method: every kernel is held against a byte-by-byte model (csv_model.h): over every short string
 * of the bytes that matter, alone and across a block's boundary, and over random strings with
 * hostile mixes of them at every alignment. Inputs are copied to memory of exactly their size, so
 * that an address sanitizer sees reads beyond the end.
 */
#include "unit/test.h"

#include <string.h>

#include "engine/base/random.h"
#include "unit/engine/data/csv_check.h"
#include "unit/engine/data/csv_random.h"

enum {
    EXHAUSTIVE_SIZE = 7,
    BOUNDARY_SIZE = 6, /* Across a boundary, prefixes multiply the cases. */
    SCRATCH_SIZE = 1 << 18,
};

static char scratch[SCRATCH_SIZE];

/* Checks prefix + every string of `size` with every kernel and number of columns. */
static void check_every_string(struct csv_index *index, const char *prefix, size_t size)
{
    size_t prefix_size = strlen(prefix);
    char *bytes = memory_alloc(NULL, prefix_size + size + 1);
    assert_non_null(bytes);
    char *string = bytes + prefix_size + 1;
    unsigned digits[EXHAUSTIVE_SIZE] = {0};
    /* One byte late, to end where the memory ends. */
    memcpy(bytes + 1, prefix, prefix_size);
    memset(string, alphabet[0], size);
    do {
        for (uint32_t columns = 1; columns <= 3; columns++) {
            check_all_kernels(index,
                              (struct csv_input){.bytes = bytes + 1,
                                                 .size = prefix_size + size,
                                                 .column_count = columns},
                              scratch);
        }
    } while (string_next(digits, string, size));
    memory_free(NULL, bytes, prefix_size + size + 1);
}

static void index_is_the_models_for_every_short_string(void **state)
{
    (void)state;
    struct csv_index index = {0};
    for (size_t size = 0; size <= EXHAUSTIVE_SIZE; size++) {
        check_every_string(&index, "", size);
    }
    csv_index_done(&index);
}

static void index_is_the_models_for_every_string_across_a_block_boundary(void **state)
{
    (void)state;
    static const char *const openings[] = {"", "x,", "x,\"", "\"x\"\"", "x\"y"};
    struct csv_index index = {0};
    for (size_t i = 0; i < sizeof openings / sizeof openings[0]; i++) {
        /* Whole lines until three bytes before the boundary. */
        char prefix[CSV_BLOCK_BYTES];
        size_t size = CSV_BLOCK_BYTES - 3;
        size_t opening_size = strlen(openings[i]);
        memset(prefix, 'p', size);
        prefix[size] = '\0';
        prefix[size - opening_size - 1] = '\n';
        memcpy(prefix + size - opening_size, openings[i], opening_size);
        check_every_string(&index, prefix, BOUNDARY_SIZE);
    }
    csv_index_done(&index);
}

/* Copies to the end of memory that begins `alignment` bytes late, and checks. */
static void check_aligned(struct csv_index *index, struct csv_input input, size_t alignment)
{
    char *copy = memory_alloc(NULL, alignment + input.size + 1);
    assert_non_null(copy);
    char *start = copy + alignment + 1;
    memcpy(start, input.bytes, input.size);
    input.bytes = start;
    check_all_kernels(index, input, scratch);
    memory_free(NULL, copy, alignment + input.size + 1);
}

static void index_is_the_models_for_random_bytes_at_every_alignment(void **state)
{
    (void)state;
    struct csv_index index = {0};
    struct random random = {.state = 1};
    static char bytes[300];
    for (int round = 0; round < 6000; round++) {
        size_t size = 1 + random_below(&random, sizeof bytes);
        fill_random(&random, bytes, size);
        struct csv_input input = {
            .bytes = bytes, .size = size, .column_count = 1 + random_below(&random, 4)};
        check_aligned(&index, input, (size_t)round % CSV_BLOCK_BYTES);
    }
    csv_index_done(&index);
}

static void index_is_the_models_for_large_chunks(void **state)
{
    (void)state;
    struct csv_index index = {0};
    struct random random = {.state = 2};
    static char bytes[SCRATCH_SIZE];
    for (int round = 0; round < 60; round++) {
        uint32_t columns = 1 + random_below(&random, 9);
        size_t size = 1000 + random_below(&random, SCRATCH_SIZE - 1000);
        size = fill_records(&random, bytes, size, columns);
        check_aligned(&index,
                      (struct csv_input){.bytes = bytes, .size = size, .column_count = columns},
                      (size_t)round % CSV_BLOCK_BYTES);
        size = 1 + random_below(&random, 20000);
        fill_random(&random, bytes, size);
        check_aligned(&index,
                      (struct csv_input){.bytes = bytes, .size = size, .column_count = columns},
                      (size_t)round % CSV_BLOCK_BYTES);
    }
    csv_index_done(&index);
}

/* So that stretches with quotes and without take turns, at every density of separators. */
static void index_is_the_models_where_quotes_are_rare(void **state)
{
    (void)state;
    static const char *const rare[] = {",\"x,y\n\"\"z\",", "a\"b", "\n\"\"\n", ",\"q\"w\"e,"};
    static const uint32_t densities[] = {1, 2, 4, 5, 6, 8, 10, 14, 20, 60};
    struct csv_index index = {0};
    struct random random = {.state = 3};
    static char bytes[64 * 1024];
    for (int round = 0; round < 60; round++) {
        uint32_t density = densities[round % 10];
        uint32_t rarity = 1000 + random_below(&random, 9000);
        size_t size = 0;
        while (size + 20 < sizeof bytes) {
            if (random_below(&random, rarity) == 0) {
                const char *field = rare[random_below(&random, 4)];
                memcpy(bytes + size, field, strlen(field));
                size += strlen(field);
            } else if (random_below(&random, density) == 0) {
                bytes[size++] = random_below(&random, 3) > 0 ? ',' : '\n';
            } else {
                bytes[size++] = 'a';
            }
        }
        check_aligned(&index, (struct csv_input){.bytes = bytes, .size = size, .column_count = 3},
                      (size_t)round % CSV_BLOCK_BYTES);
    }
    csv_index_done(&index);
}

static void records_with_other_field_counts_are_left_out_and_counted(void **state)
{
    (void)state;
    static const char bytes[] = "1,2\r\n3\r\n4,5\r\n\r\n6,7,8\n\"9\",\"a\nb\"\r\n,\r";
    struct csv_input input = {.bytes = bytes, .size = sizeof bytes - 1, .column_count = 2};
    struct csv_index index = {0};
    static struct error err;
    struct arena arena = {0};
    bool failed = false;
    assert_int_equal(csv_index_build(&index, input, &err), STATUS_OK);
    assert_int_equal(index.record_count, 7);
    assert_int_equal(index.row_count, 4);
    assert_int_equal(index.left_out_count, 3);
    assert_int_equal(index.left_out_offset, 5);
    assert_int_equal(index.line_count, 7);
    static const char *const expected[4][2] = {{"1", "2"}, {"4", "5"}, {"9", "a\nb"}, {"", ""}};
    for (uint32_t row = 0; row < 4; row++) {
        for (uint32_t column = 0; column < 2; column++) {
            struct text value = csv_field_value(&index, bytes, row, column, &arena, &failed);
            assert_true(text_equal(value, text_of(expected[row][column])));
        }
    }
    assert_int_equal(csv_count_lines(bytes, csv_index_row_offset(&index, 2)), 5);
    arena_done(&arena);
    csv_index_done(&index);
}

static void an_unclosed_quote_is_an_error_that_says_where(void **state)
{
    (void)state;
    struct csv_index index = {0};
    static struct error err;
    struct csv_input input = {.bytes = "a,b\nc,\"d\n", .size = 9, .column_count = 2};
    assert_int_equal(csv_index_build(&index, input, &err), STATUS_INPUT);
    assert_non_null(strstr(err.text, "unclosed quote"));
    assert_int_equal(index.unclosed_offset, 6);
    csv_index_done(&index);
}

static void chunks_of_like_size_allocate_once(void **state)
{
    (void)state;
    struct budget budget = {0};
    struct csv_index index = {.budget = &budget};
    static struct error err;
    static char bytes[100000];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = i % 3 == 2 ? '\n' : ',';
    }
    struct csv_input input = {.bytes = bytes, .size = 99999, .column_count = 3};
    /* The second has one record too short, and is repaired. */
    for (int round = 0; round < 4; round++) {
        bytes[0] = round % 2 == 0 ? ',' : 'x';
        if (round >= 2) memory_fail_after(0);
        assert_int_equal(csv_index_build(&index, input, &err), STATUS_OK);
        assert_int_equal(index.row_count, 33333 - round % 2);
    }
    memory_fail_never();
    csv_index_done(&index);
    assert_int_equal(budget.used_bytes, 0);
}

static void every_refused_allocation_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    static struct error err;
    static char bytes[50000];
    memset(bytes, ',', sizeof bytes);
    bool refused = true;
    for (size_t allowed = 0; refused; allowed++) {
        struct budget budget = {0};
        struct csv_index index = {.budget = &budget};
        memory_fail_after(allowed);
        status result = csv_index_build(
            &index, (struct csv_input){.bytes = bytes, .size = sizeof bytes, .column_count = 2},
            &err);
        refused = memory_was_refused();
        memory_fail_never();
        assert_int_equal(result, refused ? STATUS_MEMORY : STATUS_OK);
        assert_int_equal(index.row_count, 0);
        csv_index_done(&index);
        assert_int_equal(budget.used_bytes, 0);
    }
}

static void unquoting_copies_only_what_has_quotes_inside(void **state)
{
    (void)state;
    static const struct {
        const char *raw;
        const char *value;
        bool copied;
    } cases[] = {
        {"", "", false},
        {"abc", "abc", false},
        {"a\"b\"\"c", "a\"b\"\"c", false},
        {"\"\"", "", false},
        {"\"abc\"", "abc", false},
        {"\"a,\nb\"", "a,\nb", false},
        {"\"\"\"\"", "\"", true},
        {"\"a\"\"b\"", "a\"b", true},
        {"\"\"\"a\"\"\"", "\"a\"", true},
        {"\"a\"b", "ab", true},
        {"\"a\"b\"c\"\"", "ab\"c\"\"", true},
        {"\"\"a", "a", true},
        {"\"a\"\"\"b\"", "a\"b\"", true},
    };
    struct arena arena = {0};
    bool failed = false;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text raw = text_of(cases[i].raw);
        struct text value = csv_field_unquote(raw, &arena, &failed);
        assert_true(text_equal(value, text_of(cases[i].value)));
        bool slice = value.bytes >= raw.bytes && value.bytes <= raw.bytes + raw.size;
        assert_int_equal(slice, !cases[i].copied);
    }
    assert_false(failed);
    arena_done(&arena);

    memory_fail_after(0);
    (void)csv_field_unquote(text_of("\"a\"\"b\""), &arena, &failed); /* Only the flag matters. */
    memory_fail_never();
    assert_true(failed);
    arena_done(&arena);
}

static void header_names_are_unquoted_and_the_body_follows(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        uint32_t count;
        const char *names[3];
        size_t body;
    } cases[] = {
        {"a,b,c\n1,2,3\n", 3, {"a", "b", "c"}, 6},
        {"\xef\xbb\xbf"
         "a,b\r\n1,2\n",
         2,
         {"a", "b"},
         8},
        {"a", 1, {"a"}, 1},
        {"a,", 2, {"a", ""}, 2},
        {"a\r", 1, {"a"}, 2},
        {"\n", 1, {""}, 1},
        {"\"x,\n\"\"y\",\"z\"\r\n", 2, {"x,\n\"y", "z"}, 14},
        {"\"a\"b,c\"d\n", 2, {"ab", "c\"d"}, 9},
    };
    static struct error err;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena = {0};
        struct text *names;
        uint32_t count;
        size_t body;
        assert_int_equal(csv_header_parse(cases[i].bytes, strlen(cases[i].bytes), &arena, &names,
                                          &count, &body, &err),
                         STATUS_OK);
        assert_int_equal(count, cases[i].count);
        assert_int_equal(body, cases[i].body);
        for (uint32_t name = 0; name < count; name++) {
            assert_true(text_equal(names[name], text_of(cases[i].names[name])));
        }
        arena_done(&arena);
    }
}

static void header_of_nothing_or_with_an_open_quote_is_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {"", "\xef\xbb\xbf", "\"", "a,\"b\nc,d\n"};
    static struct error err;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena = {0};
        struct text *names;
        uint32_t count;
        size_t body;
        assert_int_equal(
            csv_header_parse(cases[i], strlen(cases[i]), &arena, &names, &count, &body, &err),
            STATUS_INPUT);
        arena_done(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index_is_the_models_for_every_short_string),
        cmocka_unit_test(index_is_the_models_for_every_string_across_a_block_boundary),
        cmocka_unit_test(index_is_the_models_for_random_bytes_at_every_alignment),
        cmocka_unit_test(index_is_the_models_for_large_chunks),
        cmocka_unit_test(index_is_the_models_where_quotes_are_rare),
        cmocka_unit_test(records_with_other_field_counts_are_left_out_and_counted),
        cmocka_unit_test(an_unclosed_quote_is_an_error_that_says_where),
        cmocka_unit_test(chunks_of_like_size_allocate_once),
        cmocka_unit_test(every_refused_allocation_is_an_error_and_leaks_nothing),
        cmocka_unit_test(unquoting_copies_only_what_has_quotes_inside),
        cmocka_unit_test(header_names_are_unquoted_and_the_body_follows),
        cmocka_unit_test(header_of_nothing_or_with_an_open_quote_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
