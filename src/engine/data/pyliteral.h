/* SPDX-License-Identifier: Apache-2.0 */
/* pyliteral.h - the strings under one key in a list of dictionaries written as Python literals.
 *
 * A text parses if it is a list display, white space around it allowed, of
 *
 *   - strings: '...', "...", '''...''', perhaps with a prefix r or u, with every escape but \N{};
 *   - numbers as Python writes them, with at most one sign; None, True, False;
 *   - lists, tuples, dictionaries of such, and values in parentheses, at most 64 levels deep.
 *
 * Nothing else does: no bytes, f-strings, adjacent strings, sets, calls, arithmetic, comments or
 * continued lines. As in Python, a newline in an ordinary string is an error, a key must be
 * hashable, the last of equal keys counts, and the newlines of a triple-quoted string become \n.
 *
 * Bytes from 0x80 pass through strings untouched, whatever they encode; \x, \u, \U and octal
 * escapes become UTF-8, a lone surrogate the three bytes it would have.
 *
 * Memory: strings without escapes are borrowed from the literal, decoded ones and the array of
 * strings are in the sink's arena.
 */
#ifndef ENGINE_DATA_PYLITERAL_H
#define ENGINE_DATA_PYLITERAL_H

#include <stddef.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

struct arena;

enum { PYLITERAL_DEPTH_MAX = 64 };

enum pyliteral_result {
    PYLITERAL_OK = 0,
    PYLITERAL_MALFORMED, /* Does not parse; nothing was appended. */
    PYLITERAL_MEMORY     /* The arena is full; nothing was appended. */
};

/* Set the arena, then append any number of times; to start anew (and after an arena_reset), zero
 * the rest. */
struct pyliteral_sink {
    struct arena *arena; /* Borrowed. */
    struct text *items;
    uint32_t count;
    uint32_t capacity;
};

/* Appends, in order, the string that each dictionary of the list has under the key; entries that
 * are not dictionaries, or have no string there, give nothing. */
MUST_USE enum pyliteral_result pyliteral_pluck(struct text literal, struct text key,
                                               struct pyliteral_sink *sink);

#endif
