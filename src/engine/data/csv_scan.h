/* SPDX-License-Identifier: Apache-2.0 */
/* csv_scan.h - where the fields of a chunk of CSV are.
 *
 *     struct csv_index index = {.budget = budget};
 *     (csv_index_begin -> csv_index_advance* -> csv_index_finish)* -> csv_index_done
 *
 * csv_index_advance is for a chunk whose end is not known yet, but whose beginning can be scanned.
 * Each beginning forgets the chunk before but keeps its memory, so that chunks of like size
 * allocate nothing. The grammar is csv_split.h's; values are read through csv_field.h.
 *
 * Memory: the index owns its positions and borrows the chunk's bytes during a call only; offsets
 * count from the chunk's first byte. Failure: there are no rows; it may begin again. Threads: one
 * owner.
 */
#ifndef ENGINE_DATA_CSV_SCAN_H
#define ENGINE_DATA_CSV_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/memory.h"
#include "engine/data/csv_kernel.h"
#include "engine/data/csv_split.h"

/* Positions are 32 bits, and the one before offset 0 is a position too. */
#define CSV_CHUNK_LIMIT_BYTES ((size_t)UINT32_MAX - 1)

/* The separators that end the rows of a table, as far as they have been looked at. */
struct csv_row_ends {
    size_t next;      /* Which separator ends the next row. */
    unsigned differs; /* 0: each so far was an LF. */
};

struct csv_index {
    struct budget *budget; /* Borrowed; may be NULL. Set before the first chunk. */

    /* The field in row r and column c is between (not including) the bytes at
     * positions[r * stride + c] and positions[r * stride + c + 1]; the first of all begins after
     * UINT32_MAX, which is to say at 0. Rows share the entry between them while all records are
     * well-formed (stride == column_count), and have one of their own when some were left out
     * (stride == column_count + 1). */
    const uint32_t *positions;
    uint32_t stride;
    uint32_t column_count;
    uint32_t row_count; /* Records with column_count fields. */

    uint64_t record_count;    /* All. */
    uint64_t left_out_count;  /* Those with another number of fields. */
    uint32_t left_out_offset; /* Where the first of these begins. */
    uint32_t unclosed_offset; /* After the error "unclosed quote": where that field begins. */
    uint64_t line_count;      /* LF bytes, in quotes or not. */
    bool has_quotes;          /* There is a quote somewhere. */

    /* Private. */
    uint32_t *flat; /* As the kernel writes it. */
    size_t flat_capacity;
    uint32_t *repaired; /* The well-formed rows of a chunk that has others. */
    size_t repaired_capacity;
    struct csv_scan scan; /* While it is built, */
    size_t scanned;       /* of so many bytes. */
    struct csv_row_ends row_ends;
};

struct csv_input {
    const char *bytes;
    size_t size; /* At most CSV_CHUNK_LIMIT_BYTES. */
    uint32_t column_count;
};

/* The bytes may be elsewhere in memory from call to call. */
void csv_index_begin(struct csv_index *index, uint32_t column_count);
/* `input` is the beginning of the chunk, cut anywhere. Gives the state there. */
MUST_USE status csv_index_advance(struct csv_index *index, struct csv_input input,
                                  enum csv_state *out_state, struct error *err);
/* `input` is all of it: it begins at a record's start and ends at a record's end, after its LF or
 * where the file ends. There, the rest is a record, and a CR as its last byte belongs to the line
 * end. An empty line is a record of one empty field. An input that ends inside quotes is
 * STATUS_INPUT. */
MUST_USE status csv_index_finish(struct csv_index *index, struct csv_input input,
                                 struct error *err);
void csv_index_done(struct csv_index *index);

/* Where the row begins; with csv_count_lines, its line number. */
static inline uint32_t csv_index_row_offset(const struct csv_index *index, uint32_t row)
{
    return index->positions[(size_t)row * index->stride] + 1;
}

#endif
