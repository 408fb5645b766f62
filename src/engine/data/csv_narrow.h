/* SPDX-License-Identifier: Apache-2.0 */
/* csv_narrow.h - the same records with fewer columns.
 *
 *     csv_narrow_init -> csv_narrow_append*
 *
 * For bytes that are sent: a reader of the narrow records sees the same values in the columns that
 * are kept, as many records on the same lines, and those with a wrong number of fields still have
 * one: they are kept whole, behind more fields than a narrow record has.
 *
 * Memory: the spans are the arena's. Threads: pure functions.
 */
#ifndef ENGINE_DATA_CSV_NARROW_H
#define ENGINE_DATA_CSV_NARROW_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/data/csv_scan.h"

/* Columns that are kept and stand side by side. */
struct csv_span {
    uint32_t first;
    uint32_t last;
};

struct csv_narrow {
    uint32_t column_count; /* Of a record before, */
    uint32_t kept_count;   /* and of a narrow one. */
    const struct csv_span *spans;
    uint32_t span_count;
};

/* Keeps those of `column_count` columns that the list names, in any order. Its numbers become those
 * of the narrow record. */
MUST_USE status csv_narrow_init(struct csv_narrow *narrow, uint32_t column_count, uint32_t *list,
                                uint32_t list_count, struct arena *arena, struct error *err);

/* Appends the records of an input of column_count columns, whose index is built. False, and what
 * was appended is void: that would show. A line end would be lost with the field it is in, or a CR
 * taken for a part of one, or the last record has no LF; or it would not be shorter; or there is no
 * memory, and out->failed is set. */
MUST_USE bool csv_narrow_append(const struct csv_narrow *narrow, const struct csv_index *index,
                                struct csv_input input, struct buf *out);

#endif
