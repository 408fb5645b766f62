/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - comparisons of names, and the guess behind "did you mean".
 *
 * The guess is the edit distance (Levenshtein 1966, by the table of Wagner and Fischer 1974) over
 * names of bounded length: names are short and the function runs once per error.
 */
#include "engine/base/text.h"

#include <ctype.h>

enum { NEAREST_NAME_LIMIT = 64 };

static char lower(char c)
{
    return (char)tolower((unsigned char)c);
}

bool text_equal_ignoring_case(struct text a, struct text b)
{
    if (a.size != b.size) return false;
    for (uint32_t i = 0; i < a.size; i++) {
        if (lower(a.bytes[i]) != lower(b.bytes[i])) return false;
    }
    return true;
}

static uint32_t edit_distance(struct text a, struct text b)
{
    uint32_t row[NEAREST_NAME_LIMIT + 1];
    for (uint32_t j = 0; j <= b.size; j++) {
        row[j] = j;
    }
    for (uint32_t i = 1; i <= a.size; i++) {
        uint32_t diagonal = row[0];
        row[0] = i;
        for (uint32_t j = 1; j <= b.size; j++) {
            uint32_t above = row[j];
            uint32_t best = diagonal + (lower(a.bytes[i - 1]) != lower(b.bytes[j - 1]));
            if (above + 1 < best) best = above + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best;
            diagonal = above;
        }
    }
    return row[b.size];
}

const struct text *text_nearest(struct text wanted, const struct text *candidates, size_t count)
{
    if (wanted.size == 0 || wanted.size > NEAREST_NAME_LIMIT) return NULL;
    const struct text *nearest = NULL;
    /* A third of the letters may be wrong, at least one and a half typing errors. */
    uint32_t nearest_distance = wanted.size / 3 + 2;
    for (size_t i = 0; i < count; i++) {
        if (candidates[i].size == 0 || candidates[i].size > NEAREST_NAME_LIMIT) continue;
        uint32_t distance = edit_distance(wanted, candidates[i]);
        if (distance < nearest_distance && distance < wanted.size) {
            nearest_distance = distance;
            nearest = &candidates[i];
        }
    }
    return nearest;
}
