/* SPDX-License-Identifier: Apache-2.0 */
/* audit.h - the report that comes with every answer: what was read, dropped, sent and applied.
 *
 * Tables: what was read, and what was dropped, by column and reason, with the first place. Stages:
 * rows in and out. Exchanges: batches counted and summed where they were made and, independently,
 * where they were applied. The audit is balanced when both ends of every exchange agree.
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
struct audit_line {
    struct text column; /* Empty: the record as a whole. */
    const char *reason; /* "empty", "not an INT", "wrong number of fields" */
    uint64_t count;
    struct text first_file; /* Relative to the data folder. */
    uint64_t first_line;    /* 1-based line at which the record starts. */
};

struct audit_table {
    struct text name;
    uint64_t file_count;
    uint64_t byte_count;
    uint64_t record_count;
    uint64_t kept_count; /* record_count less all that was dropped. */
    const struct audit_line *dropped;
    uint32_t dropped_count;
    const struct audit_line *nulled;
    uint32_t nulled_count;
};

struct audit_stage {
    struct text query;
    const char *kind;  /* "map" or "fold" */
    const char *label; /* "scan ratings, join with #3, aggregate by id" */
    uint32_t id;       /* As EXPLAIN numbers it. */
    uint64_t rows_in;
    uint64_t rows_out;
    uint64_t malformed; /* Lists that did not parse and counted as empty. */
};

struct audit_exchange {
    struct text query;
    uint32_t from_stage;
    uint32_t to_stage;
    struct exchange_count sent;
    struct exchange_count applied;
    bool balanced;
};

struct audit {
    bool balanced;
    const struct audit_table *tables;
    uint32_t table_count;
    const struct audit_stage *stages;
    uint32_t stage_count;
    const struct audit_exchange *exchanges;
    uint32_t exchange_count;
    /* History: the only part that may differ between two runs. */
    double elapsed_seconds;
    double cpu_seconds;
    uint64_t peak_memory_bytes; /* As counted by the budget. */
    uint64_t spilled_bytes;     /* Written to temporary files. */
    uint32_t thread_count;
    uint64_t bytes_read;
};

/* What an audit is made from. */
struct audit_source {
    const struct plan *plan;
    const struct counters *counters; /* Of the whole job. */
    const struct table_files *files; /* By table. */
    uint32_t *const *chunk_lines;    /* By table: the LF count of every chunk. */
    const uint32_t *shard_counts;    /* By fold. */
};

/* Both ends of the exchanges that feed a fold agree, and they are all that the sources had. */
MUST_USE status audit_check_fold(const struct audit_source *source, const struct fold *fold,
                                 struct error *err);
/* All of them, and every record is accounted for: only then there are answers. STATUS_INTERNAL
 * otherwise. */
MUST_USE status audit_check(const struct audit_source *source, struct error *err);
/* Fills in tables, stages and exchanges, as far as the counters go; memory from the arena. */
MUST_USE status audit_make(const struct audit_source *source, struct arena *arena,
                           struct audit *out_audit, struct error *err);

#endif
