/* SPDX-License-Identifier: Apache-2.0 */
/* test_options.c - command lines mean what they say, and mistakes are named.
 *
 * Method: tables of command lines with what they must give, or the text of the error.
 */
#include "unit/test.h"

#include <string.h>

#include "engine/base/arena.h"
#include "cli/options.h"

enum { QUERY, THREADS, QUIET, OPTION_COUNT };

static const struct option_spec specs[OPTION_COUNT] = {
    [QUERY] = {"query", "q1", "which", true, 0},
    [THREADS] = {"threads", "N", "how many", false, 't'},
    [QUIET] = {"quiet", NULL, "less", false, 0},
};

static const struct command_spec command = {
    .name = "run",
    .arguments = "ANALYSIS DATA_DIR",
    .summary = "answers",
    .about = "about",
    .examples = "  millrace run a b\n",
    .options = specs,
    .option_count = OPTION_COUNT,
    .argument_min = 2,
    .argument_max = 2,
};

/* Cuts a line at its spaces; the words live in the arena. */
static int split(const char *line, struct arena *arena, char **argv)
{
    int argc = 0;
    char *word = strtok(arena_copy_string(arena, text_of(line)), " ");
    while (word != NULL) {
        argv[argc++] = word;
        word = strtok(NULL, " ");
    }
    return argc;
}

static status parse(const char *line, struct arena *arena, struct options *options,
                    struct error *err)
{
    char *argv[16];
    int argc = split(line, arena, argv);
    return options_parse(&command, argc, argv, arena, options, err);
}

static void options_may_stand_anywhere_and_take_either_form(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "movies data --threads 4 --quiet --query q1 --query q2,q3",
        "--threads=4 movies --quiet --query=q1 data --query=q2,q3",
        "--quiet --query q1 --query q2,q3 --threads 4 -- movies data",
        "movies -t 4 data --quiet --query q1 --query q2,q3",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct arena arena = {0};
        struct options options;
        struct error err;
        assert_int_equal(parse(lines[i], &arena, &options, &err), STATUS_OK);
        assert_int_equal(options.argument_count, 2);
        assert_string_equal(options.arguments[0], "movies");
        assert_string_equal(options.arguments[1], "data");
        assert_string_equal(options_value(&options, THREADS), "4");
        assert_string_equal(options_value(&options, QUIET), "");
        assert_string_equal(options_value(&options, QUERY), "q2,q3");
        assert_int_equal(options.given_count, 4);
        arena_done(&arena);
    }
}

static void after_two_dashes_everything_is_an_argument(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct options options;
    struct error err;
    assert_int_equal(parse("-- --quiet --help", &arena, &options, &err), STATUS_OK);
    assert_string_equal(options.arguments[0], "--quiet");
    assert_string_equal(options.arguments[1], "--help");
    assert_null(options_value(&options, QUIET));
    assert_false(options.help);
    arena_done(&arena);
}

static void help_is_found_on_any_command_line(void **state)
{
    (void)state;
    static const char *const lines[] = {"--help", "-h", "a b c d --help", "--nonsense --help"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct arena arena = {0};
        struct options options;
        struct error err;
        assert_int_equal(parse(lines[i], &arena, &options, &err), STATUS_OK);
        assert_true(options.help);
        arena_done(&arena);
    }
}

static void mistakes_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *text;
    } cases[] = {
        {"movies", "run needs DATA_DIR"},
        {"", "run needs ANALYSIS"},
        {"a b c", "unexpected argument `c`"},
        {"a b --thread 4", "did you mean `--threads`?"},
        {"a b --frobnicate", "run has no option `--frobnicate`"},
        {"a b -q", "run has no option `-q`"},
        {"a b -t4", "run has no option `-t4`"},
        {"a b -t", "--threads needs a value"},
        {"a b -t 1 --threads 2", "--threads is given twice"},
        {"a b --threads", "--threads needs a value"},
        {"a b --threads --quiet", "--threads needs a value"},
        {"a b --quiet=yes", "--quiet takes no value"},
        {"a b --threads 1 --threads 2", "--threads is given twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena = {0};
        struct options options = {0};
        struct error err;
        assert_int_equal(parse(cases[i].line, &arena, &options, &err), STATUS_USAGE);
        if (strstr(err.text, cases[i].text) == NULL) fail_msg("%s: %s", cases[i].line, err.text);
        arena_done(&arena);
    }
}

static void sizes_are_read_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"1", 1},
        {"65536", 65536},
        {"512k", 512 * 1024},
        {"512K", 512 * 1024},
        {"64MiB", 64 << 20},
        {"64mib", 64 << 20},
        {"64M", 64 << 20},
        {"1.5GB", 1500000000},
        {"1.5GiB", 1610612736},
        {"2 kB", 2000},
        {"7B", 7},
        {"0.5k", 512},
        {"16T", (uint64_t)16 << 40},
        {"18446744073709551615", UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t bytes = 0;
        struct error err;
        struct option_range any = {0, UINT64_MAX};
        assert_int_equal(option_size("size", cases[i].text, any, &bytes, &err), STATUS_OK);
        assert_true(bytes == cases[i].bytes);
    }
    static const char *const bad[] = {
        "",
        "k",
        "-1",
        "+1",
        "1..5k",
        "1.k",
        ".5k",
        "1kk",
        "1kiBx",
        "1 2",
        "0x10",
        "1e3",
        "18446744073709551616",
        "99999999999T",
        "1.0123456789k",
        "nan",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t bytes = 77;
        struct error err;
        struct option_range any = {0, UINT64_MAX};
        if (option_size("size", bad[i], any, &bytes, &err) != STATUS_USAGE) fail_msg("%s", bad[i]);
        assert_true(bytes == 77);
    }
    uint64_t bytes = 0;
    struct error err;
    struct option_range positive = {1, 100};
    assert_int_equal(option_size("size", "0", positive, &bytes, &err), STATUS_USAGE);
    assert_int_equal(option_size("size", "101", positive, &bytes, &err), STATUS_USAGE);
}

static void counts_and_numbers_keep_their_range(void **state)
{
    (void)state;
    uint64_t count = 0;
    double number = 0;
    struct error err;
    struct option_range range = {1, 1024};
    assert_int_equal(option_count("threads", "1024", range, &count, &err), STATUS_OK);
    assert_int_equal(count, 1024);
    static const char *const bad_counts[] = {"", "0", "1025", "-1", "1.0", "1x", " 1", "two"};
    for (size_t i = 0; i < sizeof bad_counts / sizeof bad_counts[0]; i++) {
        assert_int_equal(option_count("threads", bad_counts[i], range, &count, &err), STATUS_USAGE);
    }
    assert_int_equal(option_positive("scale", "0.25", &number, &err), STATUS_OK);
    assert_true(number == 0.25);
    static const char *const bad_numbers[] = {"", "0", "-1", "nan", "inf", "1x", "0.0", "1e999"};
    for (size_t i = 0; i < sizeof bad_numbers / sizeof bad_numbers[0]; i++) {
        assert_int_equal(option_positive("scale", bad_numbers[i], &number, &err), STATUS_USAGE);
    }
}

static void a_choice_that_is_none_is_told_the_nearest(void **state)
{
    (void)state;
    static const char *const names[] = {"table", "csv", "json", "ndjson"};
    uint32_t choice = 9;
    struct error err;
    assert_int_equal(option_choice("format", "ndjson", names, 4, &choice, &err), STATUS_OK);
    assert_int_equal(choice, 3);
    assert_int_equal(option_choice("format", "jsn", names, 4, &choice, &err), STATUS_USAGE);
    assert_string_equal(
        err.text, "--format: `jsn` is none of table, csv, json, ndjson; did you mean `json`?");
}

static void json_is_wanted_also_when_the_rest_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        bool expected;
    } cases[] = {
        {"--format json", true},   {"a --bad --format=json", true},
        {"x --json", true},        {"--format csv", false},
        {"--format", false},       {"-- --format json", false},
        {"--format table", false}, {"json", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena = {0};
        char *argv[16];
        int argc = split(cases[i].line, &arena, argv);
        assert_int_equal(options_want_json(argc, argv), cases[i].expected);
        arena_done(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_may_stand_anywhere_and_take_either_form),
        cmocka_unit_test(after_two_dashes_everything_is_an_argument),
        cmocka_unit_test(help_is_found_on_any_command_line),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(sizes_are_read_exactly),
        cmocka_unit_test(counts_and_numbers_keep_their_range),
        cmocka_unit_test(a_choice_that_is_none_is_told_the_nearest),
        cmocka_unit_test(json_is_wanted_also_when_the_rest_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
