/* SPDX-License-Identifier: Apache-2.0 */
/* print_text.h - UTF-8 that may not be UTF-8, on its way to a reader.
 *
 * Text is bytes. Where a format demands characters, each maximal part that is no character becomes
 * U+FFFD (Unicode 3.9, "substitution of maximal subparts"; what Python's errors="replace" does).
 */
#ifndef ENGINE_DATA_PRINT_TEXT_H
#define ENGINE_DATA_PRINT_TEXT_H

#include <stdint.h>

#include "engine/base/buf.h"
#include "engine/base/text.h"

enum { PRINT_REPLACEMENT = 0xFFFD };

/* One character, or one maximal invalid part. */
struct print_character {
    uint32_t code; /* PRINT_REPLACEMENT for an invalid part. */
    uint32_t size; /* Bytes it takes in the text, at least 1. */
    bool is_invalid;
};

/* The character at `offset`, which must lie within the text. */
struct print_character print_character_at(struct text text, size_t offset);

/* Columns a character takes on a terminal: 0, 1 or 2. */
uint32_t print_character_width(uint32_t code);

/* What a terminal can be trusted with: control characters and those that change the direction of
 * writing are spelled out (\n, \x1b, \u202e), invalid parts replaced. Stops before `width_limit`
 * columns are exceeded, and then ends with an ellipsis. Returns the columns written. */
uint32_t print_visible(struct text text, uint32_t width_limit, struct buf *out);

/* The text as a JSON string, quotes included. */
void print_json_string(struct text text, struct buf *out);

#endif
