/* SPDX-License-Identifier: Apache-2.0 */
/* csv_kernel.h - the vector code under csv_scan and csv_split, one set of functions per CPU.
 *
 * The best set that this machine can run is chosen at first use. All sets give the same results;
 * the tests hold them against each other.
 *
 * Threads: the functions are pure; csv_kernel_use comes before other threads start.
 */
#ifndef ENGINE_DATA_CSV_KERNEL_H
#define ENGINE_DATA_CSV_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/fault_injection.h"
#include "engine/data/csv_split.h"

/* All that the bytes before a position say about the bytes after it. */
struct csv_cursor {
    uint64_t inside;    /* All ones within quotes, else 0. */
    uint64_t may_quote; /* 1: outside quotes, a quote as next byte opens (or reopens) them. */
};

/* `last` is the byte before the position. */
static inline enum csv_state csv_cursor_state(struct csv_cursor cursor, char last)
{
    if (cursor.inside != 0) return CSV_QUOTED;
    if (cursor.may_quote == 0) return CSV_UNQUOTED;
    if (last == '"') return CSV_QUOTE_SEEN;
    return last == ',' ? CSV_FIELD_START : CSV_RECORD_START;
}

enum {
    CSV_BLOCK_BYTES = 64, /* As many as a mask has bits. */
    /* How far beyond the separators found so far an index function may write: it stores first and
     * counts afterwards. */
    CSV_SCAN_SLACK = CSV_BLOCK_BYTES,
};

/* An index that is being written. */
struct csv_scan {
    uint32_t *positions;
    size_t count; /* Entries of `positions`. */
    struct csv_cursor cursor;
    uint64_t line_count;   /* LF bytes. */
    uint64_t record_count; /* LF bytes that end a record. */
    bool has_quotes;
};

struct csv_range {
    size_t start;
    size_t size;
};

struct csv_kernel {
    const char *name;
    /* Appends the separators (comma, LF) within the range. `positions` has room for range.size +
     * CSV_SCAN_SLACK more. Only the last range of a chunk may be other than whole blocks. */
    void (*index)(struct csv_scan *scan, const char *bytes, struct csv_range range);
    enum csv_state (*advance)(enum csv_state state, const char *bytes, size_t size);
    size_t (*record_end)(enum csv_state *state, const char *bytes, size_t size);
    uint64_t (*count_lines)(const char *bytes, size_t size);
};

/* The one in use. */
const struct csv_kernel *csv_kernel_get(void);

/* Those that this machine can run, best first; the last is always the portable one. */
const struct csv_kernel *const *csv_kernel_list(size_t *out_count);
#if FAULT_INJECTION
/* From now on this one, or with NULL the best again. */
void csv_kernel_use(const struct csv_kernel *kernel);
#endif

extern const struct csv_kernel csv_kernel_scalar;
#if defined(__aarch64__)
extern const struct csv_kernel csv_kernel_neon;
#elif defined(__x86_64__)
extern const struct csv_kernel csv_kernel_avx2;
#endif

#endif
