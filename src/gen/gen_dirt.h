/* SPDX-License-Identifier: Apache-2.0 */
/* gen_dirt.h - breaks a finished record now and then, each time in the next of many ways.
 *
 * Tables compose clean records only; dirt is put in afterwards, by taking the record apart again.
 * So every table gets every kind that makes sense for it, and the fast path pays for one countdown.
 * No kind leaves a quote open, for that would swallow the rest of the file.
 */
#ifndef GEN_GEN_DIRT_H
#define GEN_GEN_DIRT_H

#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/random.h"

enum { GEN_FIELDS_MAX = 32 };

#define GEN_FIELD(index) (UINT32_C(1) << (index))

/* What the columns of a table are: one bit per column. */
struct gen_columns {
    uint32_t required;
    uint32_t numbers;
    uint32_t dates;
    uint32_t texts; /* Where odd bytes go. */
    uint32_t lists;
};

struct gen_dirt {
    const struct gen_columns *columns; /* Borrowed. */
    struct random random;
    uint32_t one_in; /* Records per dirty record, on average. */
    uint32_t countdown;
    uint32_t next_kind;
};

struct gen_dirt gen_dirt_init(const struct gen_columns *columns, struct random random,
                              uint32_t one_in);

/* Rewrites the record of [start, end), line end included, and returns its new end. Uses the room
 * from start + GEN_RECORD_BYTES on. */
char *gen_dirt_break(struct gen_dirt *dirt, char *start, char *end);

ALWAYS_INLINE char *gen_dirt_pass(struct gen_dirt *dirt, char *start, char *end)
{
    if (LIKELY(--dirt->countdown != 0)) return end;
    return gen_dirt_break(dirt, start, end);
}

/* Puts the fields of a record into another order; order[i] is the old place of the new field i.
 * Records with another number of fields stay as they are. Needs the same room. */
char *gen_dirt_reorder(char *start, char *end, const uint8_t *order, uint32_t field_count);

#endif
