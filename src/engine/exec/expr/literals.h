/* SPDX-License-Identifier: Apache-2.0 */
/* literals.h - whether a text contains one of a few literals, found without a regular expression.
 *
 * Up to eight literals, with or without regard to the case of ASCII letters. Read-only once made.
 */
#ifndef ENGINE_EXEC_EXPR_LITERALS_H
#define ENGINE_EXEC_EXPR_LITERALS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/fault_injection.h"
#include "engine/base/text.h"

enum {
    LITERALS_MAX = 8,
    LITERALS_EXOTIC = 16,      /* At most so many items for what a caseless s or k also means, */
    LITERALS_EXOTIC_BYTES = 5, /* U+017F or U+212A, each with some of what follows. */
    LITERALS_BYTES_MAX = 512,
    LITERALS_PROBES = 4 /* With three, every third text has something that looks like one. */
};

struct literals {
    uint8_t count;
    uint8_t exotic_count; /* Behind the others. */
    bool any_case;
    uint32_t shortest;
    struct text items[LITERALS_MAX + LITERALS_EXOTIC]; /* In `bytes`; lower-case when any_case. */
    char bytes[LITERALS_BYTES_MAX];
    char exotic_bytes[LITERALS_EXOTIC][LITERALS_EXOTIC_BYTES];
    /* Bit j % 8 of entry b: item j may have byte b at this place. By whole byte, by halves (the
     * conjunction of both halves' entries counts), and by the lower five bits, which letters of
     * either case have in common; the latter two are what vectors can look up. */
    uint8_t probes[LITERALS_PROBES][256];
    uint8_t low_halves[LITERALS_PROBES][16];
    uint8_t high_halves[LITERALS_PROBES][16];
    uint8_t folded[LITERALS_PROBES][32];
};

enum literals_answer {
    LITERALS_NONE,
    LITERALS_FOUND,
    LITERALS_UNSURE, /* None, but an s or k that is not ASCII may be part of one. */
};

/* Of any bytes where letter case matters, of ASCII otherwise. False: too many or too long ones, or
 * one that is empty. */
bool literals_make(struct literals *out, const struct text *items, uint32_t count, bool any_case);
/* False when the pattern is anything but plain literals with | between. */
bool literals_parse(struct literals *out, struct text pattern, bool any_case);

/* Whether one of them is in the text. */
enum literals_answer literals_search(const struct literals *literals, struct text text);
#if FAULT_INJECTION
/* For tests: the same byte by byte, with which the vector versions must agree. */
enum literals_answer literals_search_plain(const struct literals *literals, struct text text);
#endif

#endif
