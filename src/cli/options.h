/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - command lines: what a command takes, what was given, and its help text.
 *
 * Options are --name VALUE or --name=VALUE and may stand anywhere; those that have a letter may be
 * written -l VALUE as well. After -- everything is an argument. What a command does not know is
 * refused with the name that was probably meant.
 *
 * Memory: results live in the arena and point into argv.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/error.h"

enum { OPTIONS_ARGUMENT_MAX = 64 };

struct option_spec {
    const char *name;  /* Without the dashes. */
    const char *value; /* What the help text calls its value; NULL: it takes none. */
    const char *help;
    bool repeated; /* May be given more than once. */
    char letter;   /* The short form; 0: none. */
};

struct command_spec {
    const char *name;
    const char *arguments; /* "ANALYSIS DATA_DIR"; optional ones in brackets. */
    const char *summary;   /* One line, for the list of commands. */
    const char *about;     /* What else a user must know. */
    const char *examples;
    const struct option_spec *options;
    uint32_t option_count;
    uint32_t argument_min;
    uint32_t argument_max;
};

struct option_given {
    uint32_t option;
    const char *value; /* "" when it takes none. */
};

struct options {
    const char *arguments[OPTIONS_ARGUMENT_MAX];
    uint32_t argument_count;
    struct option_given *given; /* In the order of the command line. */
    uint32_t given_count;
    bool help; /* --help was among them; nothing else was checked then. */
};

/* argv[0] is the first word after the command's name. STATUS_USAGE when it cannot be meant. */
MUST_USE status options_parse(const struct command_spec *command, int argc, char *const *argv,
                              struct arena *arena, struct options *out_options, struct error *err);
/* The option's value, or NULL when it was not given; of a repeated one, the last. */
const char *options_value(const struct options *options, uint32_t option);
/* Whether argv asks for errors as JSON: looked at before, and even if, parsing fails. */
bool options_want_json(int argc, char *const *argv);
void options_help(const struct command_spec *command, struct buf *out);

/* "; did you mean `x`?" or nothing. */
void options_suggest(const char *wanted, const char *const *names, uint32_t count, char *out,
                     size_t out_size);

struct option_range {
    uint64_t low;
    uint64_t high;
};

/* A whole number within the range. `option` is its name, for the message. */
MUST_USE status option_count(const char *option, const char *value, struct option_range range,
                             uint64_t *out_count, struct error *err);
/* Bytes: 512, 512k, 64MiB, 1.5GB. k, M, G, T alone and with iB are powers of 1024, with B of 1000.
 */
MUST_USE status option_size(const char *option, const char *value, struct option_range range,
                            uint64_t *out_bytes, struct error *err);
/* A number above zero. */
MUST_USE status option_positive(const char *option, const char *value, double *out_number,
                                struct error *err);
/* The place of `value` among `names`. */
MUST_USE status option_choice(const char *option, const char *value, const char *const *names,
                              uint32_t name_count, uint32_t *out_choice, struct error *err);

#endif
