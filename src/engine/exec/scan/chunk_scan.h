/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_scan.h - a chunk of CSV to checked batches of columns.
 *
 *     create -> (begin -> (next -> materialize*)* -> counters)* -> destroy
 *
 * Every record is checked whichever queries run, so that the audit does not depend on them:
 * - A record with the wrong number of fields is left out.
 * - NOT NULL columns are checked in the order they are declared. The record is dropped under the
 *   first that is empty (`""` as well) or does not read as its type.
 * - In a record that is kept, a nullable column that is empty is NULL. One that does not read as
 *   its type is NULL too, and counted.
 *
 * Memory: a batch and its selection are borrowed from the scan until the next call of next or
 * begin; texts point into the chunk's bytes, or into the scan if a doubled quote had to be undone.
 * Chunks of like size allocate nothing after the first. Threads: one owner; one scan per thread.
 */
#ifndef ENGINE_EXEC_SCAN_CHUNK_SCAN_H
#define ENGINE_EXEC_SCAN_CHUNK_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/fault_injection.h"
#include "engine/base/memory.h"
#include "engine/data/column.h"
#include "engine/plan/plan.h"
#include "engine/plan/counters.h"

enum {
    CHUNK_SCAN_ROWS = 2048,
    /* A chunk is scanned in pieces of about so many bytes: a piece and its index stay in the cache
     * until they have become batches. */
    CHUNK_PIECE_BYTES = 256 << 10,
};

struct csv_index;

/* Whole records of one file: a numbered chunk, or a part of one. */
struct chunk {
    const char *bytes;
    size_t size;
    uint32_t file_columns;      /* Fields a record of this file has. */
    const uint32_t *column_map; /* Table column -> column in the file. */
    uint64_t offset;            /* Of the first byte in the file, for messages. */
    uint64_t lines_before;      /* Of the same numbered chunk. */
    /* Begun and owned by the reader of the chunk; NULL: the scan makes its own. */
    struct csv_index *index;
};

struct drop_count {
    uint64_t count;
    uint64_t first_line; /* Lines before the first such record in its numbered chunk. */
};

struct chunk_counters {
    uint64_t record_count;
    uint64_t kept_count;
    uint64_t line_count; /* LF bytes. */
    struct drop_count wrong_fields;
    struct drop_count (*dropped)[DROP_REASON_COUNT]; /* By table column. */
    struct drop_count *nulled; /* By table column: unreadable values of nullable columns. */
};

struct chunk_scan;

/* The table is borrowed as long as the scan lives; it has no columns of list types. used[c]: some
 * query reads the value of table column c. */
MUST_USE status chunk_scan_create(const struct table *table, const bool *used, uint32_t field_limit,
                                  struct budget *budget, struct chunk_scan **out,
                                  struct error *err);
/* Accepts NULL. */
void chunk_scan_destroy(struct chunk_scan *scan);

#if FAULT_INJECTION
/* For tests: smaller pieces. */
void chunk_scan_set_piece(struct chunk_scan *scan, size_t piece_bytes);
#endif

/* The chunk's bytes are borrowed until the next begin. Here or in next, an unclosed quote is
 * STATUS_INPUT, a field that is used or checked and longer than the limit STATUS_LIMIT; then only
 * begin (another chunk), error_offset and destroy may follow. */
MUST_USE status chunk_scan_begin(struct chunk_scan *scan, const struct chunk *chunk,
                                 struct error *err);
/* After such a failure: where in the chunk the field begins. */
uint32_t chunk_scan_error_offset(const struct chunk_scan *scan);

/* The next batch of at most CHUNK_SCAN_ROWS rows: a column per table column, and as selection the
 * records that are kept, at least one. *out_more == false: there was none, and nothing else is set.
 * TEXT columns have no values before chunk_scan_materialize. */
MUST_USE status chunk_scan_next(struct chunk_scan *scan, struct batch *out_batch,
                                struct selection *out_selection, bool *out_more, struct error *err);

/* Makes the values of a used TEXT column valid for these rows, some of those selected in the
 * current batch; for other types, and for rows that have them already, there is nothing to do. A
 * text of more than `prefix` bytes may come as any other text of more than that: the expression
 * cannot tell them apart (expr_prefix). Read batch.columns[column] again afterwards. */
MUST_USE status chunk_scan_materialize(struct chunk_scan *scan, uint32_t column,
                                       struct selection selection, uint32_t prefix,
                                       struct error *err);

/* Complete when next has said that there is no more; valid until the next begin. */
const struct chunk_counters *chunk_scan_counters(const struct chunk_scan *scan);

#endif
