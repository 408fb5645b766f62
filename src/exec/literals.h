/* literals.h - whether a text contains one of a few literals, found without a regular expression.
 *
 * Up to eight literals of ASCII bytes, with or without regard to letter case. Read-only once made.
 */
#ifndef EXEC_LITERALS_H
#define EXEC_LITERALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

enum { LITERALS_MAX = 8, LITERALS_BYTES_MAX = 512, LITERALS_PROBES = 3 };

struct literals {
    uint8_t count;
    bool any_case;
    bool has_exotic_case; /* s or k, whose case variants U+017F and U+212A are not ASCII. */
    struct text items[LITERALS_MAX]; /* In `bytes`; lower-case when any_case. */
    char bytes[LITERALS_BYTES_MAX];
    /* Bit j of entry b: literal j may have byte b at this place. By whole byte, and by halves: the
     * conjunction of both halves' entries is what a vector can look up. */
    uint8_t probes[LITERALS_PROBES][256];
    uint8_t low_halves[LITERALS_PROBES][16];
    uint8_t high_halves[LITERALS_PROBES][16];
};

/* False when the pattern is anything but plain literals with | between. */
bool literals_parse(struct literals *out, struct text pattern, bool any_case);

/* Whether one of them is in the text. *out_is_ascii tells, when none is, whether the text is. */
bool literals_search(const struct literals *literals, struct text text, bool *out_is_ascii);
/* The same by bytes alone: what the vector versions must agree with. */
bool literals_search_plain(const struct literals *literals, struct text text, bool *out_is_ascii);

#endif
