/* audit.h - the account that comes with every answer.
 *
 * Tables: what was read, and what was dropped, by column and reason, with the first place. Stages:
 * rows in and out. Edges: batches counted and summed where they were made and, independently, where
 * they were applied. The books balance when both ends of every edge agree.
 *
 * Memory: all arrays live in the job. Read-only for callers.
 */
#ifndef ENGINE_LOCAL_AUDIT_H
#define ENGINE_LOCAL_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/plan/plan.h"
#include "engine/plan/counters.h"

struct table_files;

/* Records dropped, or values taken as NULL, for one column and reason. */
struct book_line {
    struct text column; /* Empty: the record as a whole. */
    const char *reason; /* "empty", "not an INT", "wrong number of fields" */
    uint64_t count;
    struct text first_file; /* Relative to the data folder. */
    uint64_t first_line;    /* 1-based line at which the record starts. */
};

struct book_table {
    struct text name;
    uint64_t file_count;
    uint64_t byte_count;
    uint64_t record_count;
    uint64_t kept_count; /* record_count less all that was dropped. */
    const struct book_line *dropped;
    uint32_t dropped_count;
    const struct book_line *nulled;
    uint32_t nulled_count;
};

struct book_stage {
    struct text query;
    const char *kind;  /* "map" or "fold" */
    const char *label; /* "scan ratings, join with #3, aggregate by id" */
    uint32_t id;       /* As EXPLAIN numbers it. */
    uint64_t rows_in;
    uint64_t rows_out;
    uint64_t malformed; /* Lists that did not parse and counted as empty. */
};

struct book_edge {
    struct text query;
    uint32_t from_stage;
    uint32_t to_stage;
    struct book_end sent;
    struct book_end applied;
    bool balanced;
};

struct books {
    bool balanced;
    const struct book_table *tables;
    uint32_t table_count;
    const struct book_stage *stages;
    uint32_t stage_count;
    const struct book_edge *edges;
    uint32_t edge_count;
    /* History: the only part that may differ between two runs. */
    double elapsed_seconds;
    double cpu_seconds;
    uint64_t peak_memory_bytes; /* As counted by the budget. */
    uint64_t spilled_bytes;     /* Written to temporary files. */
    uint32_t thread_count;
    uint64_t bytes_read;
};

/* What books are made from. */
struct books_source {
    const struct plan *plan;
    const struct account *account;   /* Of the whole job. */
    const struct table_files *files; /* By table. */
    uint32_t *const *chunk_lines;    /* By table: the LF count of every chunk. */
    const uint32_t *shard_counts;    /* By fold. */
};

/* Both ends of the edges that feed a fold agree, and they are all that the sources had. */
MUST_USE status books_check_fold(const struct books_source *source, const struct fold *fold,
                                 struct error *err);
/* All of them, and every record is accounted for: only then there are answers. STATUS_INTERNAL
 * otherwise. */
MUST_USE status books_check(const struct books_source *source, struct error *err);
/* Fills in tables, stages and edges, as far as the account goes; memory from the arena. */
MUST_USE status books_make(const struct books_source *source, struct arena *arena,
                           struct books *out_books, struct error *err);

#endif
