/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - a table per command instead of getopt: the same table gives the help text, the
 * suggestions and the checks, so they cannot disagree.
 */
#include "cli/options.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/int128.h"
#include "engine/base/number.h"
#include "engine/base/text.h"

enum { NAMES_MAX = 64, FRACTION_DIGITS_MAX = 9 };

void options_suggest(const char *wanted, const char *const *names, uint32_t count, char *out,
                     size_t out_size)
{
    struct text candidates[NAMES_MAX];
    uint32_t used = count < NAMES_MAX ? count : NAMES_MAX;
    for (uint32_t i = 0; i < used; i++) {
        candidates[i] = text_of(names[i]);
    }
    const struct text *nearest = text_nearest(text_of(wanted), candidates, used);
    out[0] = '\0';
    if (nearest != NULL) {
        (void)snprintf(out, out_size, "; did you mean `%.*s`?",
                       TEXT_ARGS(*nearest)); /* May be cut. */
    }
}

static status unknown_option(const struct command_spec *command, struct text name,
                             struct error *err)
{
    struct text candidates[NAMES_MAX] = {TEXT_LITERAL("help")};
    uint32_t count = 1;
    for (uint32_t i = 0; i < command->option_count && count < NAMES_MAX; i++) {
        candidates[count++] = text_of(command->options[i].name);
    }
    const struct text *nearest = text_nearest(name, candidates, count);
    if (nearest != NULL) {
        return error_set(err, STATUS_USAGE,
                         "%s has no option `--%.*s`; did you mean `--%.*s`?\n"
                         "`millrace help %s` lists its options",
                         command->name, TEXT_ARGS(name), TEXT_ARGS(*nearest), command->name);
    }
    return error_set(err, STATUS_USAGE,
                     "%s has no option `--%.*s`\n`millrace help %s` lists its options",
                     command->name, TEXT_ARGS(name), command->name);
}

static status find_option(const struct command_spec *command, struct text name,
                          uint32_t *out_option, struct error *err)
{
    for (uint32_t i = 0; i < command->option_count; i++) {
        if (text_equal(name, text_of(command->options[i].name))) {
            *out_option = i;
            return STATUS_OK;
        }
    }
    return unknown_option(command, name, err);
}

static status check_repeated(const struct command_spec *command, const struct options *options,
                             uint32_t option, struct error *err)
{
    const struct option_spec *spec = &command->options[option];
    if (!spec->repeated && options_value(options, option) != NULL) {
        return error_set(err, STATUS_USAGE, "--%s is given twice", spec->name);
    }
    return STATUS_OK;
}

static status find_letter(const struct command_spec *command, const char *word,
                          uint32_t *out_option, struct error *err)
{
    for (uint32_t i = 0; i < command->option_count; i++) {
        if (command->options[i].letter == word[1] && word[2] == '\0') {
            *out_option = i;
            return STATUS_OK;
        }
    }
    return error_set(err, STATUS_USAGE,
                     "%s has no option `%s`; options are written --name\n"
                     "`millrace help %s` lists them",
                     command->name, word, command->name);
}

/* Takes the option at argv[0] and its value; *out_taken says how many words that were. */
static status take_option(const struct command_spec *command, int argc, char *const *argv,
                          struct options *options, int *out_taken, struct error *err)
{
    bool is_long = argv[0][1] == '-';
    const char *equals = is_long ? strchr(argv[0], '=') : NULL;
    uint32_t option = 0;
    if (is_long) {
        const char *word = argv[0] + 2;
        struct text name =
            equals == NULL ? text_of(word) : (struct text){word, (uint32_t)(equals - word)};
        TRY(find_option(command, name, &option, err));
    } else {
        TRY(find_letter(command, argv[0], &option, err));
    }
    TRY(check_repeated(command, options, option, err));

    const struct option_spec *spec = &command->options[option];
    const char *value = "";
    int taken = 1;
    if (spec->value == NULL) {
        if (equals != NULL) return error_set(err, STATUS_USAGE, "--%s takes no value", spec->name);
    } else if (equals != NULL) {
        value = equals + 1;
    } else if (argc < 2 || strncmp(argv[1], "--", 2) == 0) {
        return error_set(err, STATUS_USAGE, "--%s needs a value: --%s %s", spec->name, spec->name,
                         spec->value);
    } else {
        value = argv[1];
        taken = 2;
    }
    options->given[options->given_count++] = (struct option_given){option, value};
    *out_taken = taken;
    return STATUS_OK;
}

static status take_argument(const struct command_spec *command, const char *word,
                            struct options *options, struct error *err)
{
    if (options->argument_count >= command->argument_max) {
        return error_set(err, STATUS_USAGE,
                         "unexpected argument `%s`\nusage: millrace %s %s [options]", word,
                         command->name, command->arguments);
    }
    options->arguments[options->argument_count++] = word;
    return STATUS_OK;
}

static status check_arguments(const struct command_spec *command, const struct options *options,
                              struct error *err)
{
    if (options->argument_count >= command->argument_min) return STATUS_OK;
    const char *missing = command->arguments;
    for (uint32_t i = 0; i < options->argument_count; i++) {
        missing += strcspn(missing, " ");
        missing += strspn(missing, " ");
    }
    return error_set(err, STATUS_USAGE,
                     "%s needs %.*s\nusage: millrace %s %s [options]\n`millrace help %s` says more",
                     command->name, (int)strcspn(missing, " "), missing, command->name,
                     command->arguments, command->name);
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

status options_parse(const struct command_spec *command, int argc, char *const *argv,
                     struct arena *arena, struct options *out_options, struct error *err)
{
    ASSERT(command->argument_max <= OPTIONS_ARGUMENT_MAX);
    struct options options = {.given = arena_array(arena, struct option_given, (size_t)argc + 1)};
    if (options.given == NULL) return error_memory(err);
    bool only_arguments = false;
    for (int i = 0; i < argc && !only_arguments; i++) {
        if (strcmp(argv[i], "--") == 0) break;
        options.help = options.help || is_help(argv[i]);
    }
    for (int i = 0; i < argc && !options.help;) {
        if (only_arguments || argv[i][0] != '-' || argv[i][1] == '\0') {
            TRY(take_argument(command, argv[i++], &options, err));
        } else if (strcmp(argv[i], "--") == 0) {
            only_arguments = true;
            i++;
        } else {
            int taken = 0;
            TRY(take_option(command, argc - i, argv + i, &options, &taken, err));
            i += taken;
        }
    }
    if (!options.help) TRY(check_arguments(command, &options, err));
    *out_options = options;
    return STATUS_OK;
}

const char *options_value(const struct options *options, uint32_t option)
{
    const char *value = NULL;
    for (uint32_t i = 0; i < options->given_count; i++) {
        if (options->given[i].option == option) value = options->given[i].value;
    }
    return value;
}

bool options_want_json(int argc, char *const *argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--json") == 0 || strcmp(argv[i], "--format=json") == 0) return true;
        if (strcmp(argv[i], "--format") == 0 && i + 1 < argc && strcmp(argv[i + 1], "json") == 0) {
            return true;
        }
    }
    return false;
}

void options_help(const struct command_spec *command, struct buf *out)
{
    buf_format(out, "millrace %s - %s\n\n", command->name, command->summary);
    buf_format(out, "usage: millrace %s %s [options]\n\n%s\n", command->name, command->arguments,
               command->about);
    buf_put_string(out, "\noptions:\n");
    for (uint32_t i = 0; i < command->option_count; i++) {
        const struct option_spec *spec = &command->options[i];
        char left[64];
        char letter[8] = "";
        if (spec->letter != '\0') (void)snprintf(letter, sizeof letter, "-%c, ", spec->letter);
        (void)snprintf(left, sizeof left, "%s--%s%s%s", letter, spec->name,
                       spec->value != NULL ? " " : "",
                       spec->value != NULL ? spec->value : ""); /* Our own names: they fit. */
        buf_format(out, "  %-32s %s\n", left, spec->help);
    }
    buf_format(out, "  %-32s %s\n", "--help", "this text");
    buf_format(out, "\nexample:\n%s", command->examples);
}

/* --- Values. --- */

static status bad_value(struct error *err, const char *option, const char *value,
                        const char *expected)
{
    return error_set(err, STATUS_USAGE, "--%s: `%.100s` is not %s", option, value, expected);
}

/* Reads decimal digits; false when there are none or they exceed 64 bits. */
static bool read_digits(const char **at, uint64_t *out)
{
    const char *next = *at;
    uint64_t value = 0;
    if (*next < '0' || *next > '9') return false;
    for (; *next >= '0' && *next <= '9'; next++) {
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*next - '0'), &value)) {
            return false;
        }
    }
    *at = next;
    *out = value;
    return true;
}

status option_count(const char *option, const char *value, struct option_range range,
                    uint64_t *out_count, struct error *err)
{
    const char *at = value;
    uint64_t count = 0;
    if (!read_digits(&at, &count) || *at != '\0' || count < range.low || count > range.high) {
        char expected[80];
        (void)snprintf(expected, sizeof expected, "a whole number from %llu to %llu",
                       (unsigned long long)range.low, (unsigned long long)range.high); /* Fits. */
        return bad_value(err, option, value, expected);
    }
    *out_count = count;
    return STATUS_OK;
}

/* 0 when the suffix is none of ours. */
static uint64_t size_unit(const char *suffix)
{
    static const char letters[] = "kmgt";
    if (suffix[0] == '\0' || ((suffix[0] | 0x20) == 'b' && suffix[1] == '\0')) return 1;
    const char *letter = strchr(letters, suffix[0] | 0x20);
    if (letter == NULL) return 0;
    struct text rest = text_of(suffix + 1);
    bool binary = rest.size == 0 || text_equal_ignoring_case(rest, TEXT_LITERAL("iB"));
    if (!binary && !text_equal_ignoring_case(rest, TEXT_LITERAL("B"))) return 0;
    uint64_t unit = 1;
    for (const char *i = letters; i <= letter; i++) {
        unit *= binary ? 1024 : 1000;
    }
    return unit;
}

static bool read_size(const char *value, uint64_t *out_bytes)
{
    uint64_t whole = 0;
    uint64_t fraction = 0;
    uint64_t fraction_unit = 1;
    const char *at = value;
    if (!read_digits(&at, &whole)) return false;
    if (*at == '.') {
        const char *start = ++at;
        if (!read_digits(&at, &fraction) || at - start > FRACTION_DIGITS_MAX) return false;
        fraction_unit = number_powers[at - start];
    }
    while (*at == ' ') {
        at++;
    }
    uint64_t unit = size_unit(at);
    if (unit == 0) return false;
    uint128 bytes = (uint128)whole * unit + (uint128)fraction * unit / fraction_unit;
    if (bytes > UINT64_MAX) return false;
    *out_bytes = (uint64_t)bytes;
    return true;
}

status option_size(const char *option, const char *value, struct option_range range,
                   uint64_t *out_bytes, struct error *err)
{
    uint64_t bytes = 0;
    if (!read_size(value, &bytes)) {
        return bad_value(err, option, value, "a size; write it like 64MiB, 1.5GB, 512k or 65536");
    }
    if (bytes < range.low || bytes > range.high) {
        return error_set(err, STATUS_USAGE, "--%s: %s is outside of %llu to %llu bytes", option,
                         value, (unsigned long long)range.low, (unsigned long long)range.high);
    }
    *out_bytes = bytes;
    return STATUS_OK;
}

status option_positive(const char *option, const char *value, double *out_number, struct error *err)
{
    double number = 0;
    if (!double_parse(text_of(value), &number) || !(number > 0)) {
        return bad_value(err, option, value, "a number above 0");
    }
    *out_number = number;
    return STATUS_OK;
}

status option_choice(const char *option, const char *value, const char *const *names,
                     uint32_t name_count, uint32_t *out_choice, struct error *err)
{
    char all[128] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < name_count; i++) {
        if (strcmp(value, names[i]) == 0) {
            *out_choice = i;
            return STATUS_OK;
        }
        int written = snprintf(all + used, sizeof all - used, "%s%s", i > 0 ? ", " : "", names[i]);
        if (written > 0 && (size_t)written < sizeof all - used) used += (size_t)written;
    }
    char suggestion[64];
    options_suggest(value, names, name_count, suggestion, sizeof suggestion);
    return error_set(err, STATUS_USAGE, "--%s: `%.100s` is none of %s%s", option, value, all,
                     suggestion);
}
