/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - where answers go: stdout, or a file per query in a folder.
 *
 *     output_open -> (output_rows* -> output_query_end?)* -> output_finish | output_discard
 *         -> output_close
 *
 * In a folder everything is written under temporary names; output_finish brings it to the disk and
 * renames it into place, so an answer that is there is whole and its counts reconcile. On stdout,
 * rows of one query after the other are printed as they come; output_finish writes what is left.
 *
 * Memory: a table holds its rows; all other formats hold a buffer's worth.
 * Threads: one at a time.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/data/print_table.h"
#include "engine/file/output_file.h"
#include "engine/local/audit.h"
#include "engine/plan/plan.h"

enum output_format { OUTPUT_TABLE, OUTPUT_CSV, OUTPUT_JSON, OUTPUT_NDJSON, OUTPUT_FORMATS };

/* By their place in the enum, as --format takes them. */
extern const char *const output_format_names[OUTPUT_FORMATS];

struct output_options {
    enum output_format format;
    const char *directory; /* NULL: stdout. */
    const struct plan *plan;
    struct print_table_options table;
    const atomic_bool *cancelled;
    /* Called before bytes go to stdout, so that a progress line can make room; may be NULL. */
    void (*before_write)(void *context);
    void *context;
};

struct output {
    struct output_options options;
    struct arena arena;
    struct buf pending;       /* Printed, not yet written. */
    struct print_table table; /* Of the query at hand, when the format is OUTPUT_TABLE. */
    int64_t query;            /* The query at hand; -1 before the first. */
    bool ended;               /* It has had its last row. */
    uint64_t query_rows;
    struct output_file *files; /* One per query, then audit.json. */
    uint32_t file_count;       /* Those that were begun. */
    bool made_directory;
    bool started;         /* Bytes of an answer have gone to stdout. */
    struct error failure; /* The first failure to write; code STATUS_OK: none. */
};

/* After a failure only output_close may follow. */
MUST_USE status output_open(struct output *output, const struct output_options *options,
                            struct error *err);
/* Queries come in ascending order. */
MUST_USE status output_rows(struct output *output, uint32_t query, const struct batch *batch,
                            struct error *err);
/* All rows of a query have come: what is printed for people and pipes goes out now. */
MUST_USE status output_query_end(struct output *output, uint32_t query, struct error *err);
MUST_USE status output_finish(struct output *output, const struct audit *audit, struct error *err);
/* Throws away what is not in place, and the folder if it was made for this. */
void output_discard(struct output *output);
void output_close(struct output *output);

/* All that is in the buffer to stdout; `cancelled` may be NULL. */
MUST_USE status output_to_stdout(const struct buf *bytes, const atomic_bool *cancelled,
                                 struct error *err);

#endif
