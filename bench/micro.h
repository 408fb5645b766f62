/* SPDX-License-Identifier: Apache-2.0 */
/* micro.h - what the micro-benchmarks share: the frame of a case, and data made from a seed.
 *
 * A case is prepared once, run many times and finished:
 *
 *     prepare -> run* -> finish
 *
 * Every run does the same work on the same data and returns the same checksum, so that a compiler
 * cannot leave the work out and the frame sees when two runs differ.
 *
 * Memory: what prepare makes lives in the case's arena; what needs a call to be freed is freed by
 * finish. Failure: says what failed and ends the program; there is nothing to recover for.
 * Threads: one.
 */
#ifndef BENCH_MICRO_H
#define BENCH_MICRO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/data/batch_builder.h"
#include "engine/data/column.h"
#include "engine/exec/scan/chunk_scan.h"
#include "engine/plan/plan.h"

struct micro_case;

/* A case at work. */
struct micro {
    const struct micro_case *which;
    struct arena arena;
    void *state;         /* The case's own, made by prepare. */
    uint64_t row_count;  /* Rows that one run goes through, */
    uint64_t byte_count; /* and the bytes of them that it has to look at. */
};

struct micro_case {
    const char *name; /* layer/work/variant */
    void (*prepare)(struct micro *micro);
    uint64_t (*run)(struct micro *micro);
    void (*finish)(struct micro *micro); /* NULL: the arena is all there is to release. */
    const void *detail;                  /* What tells this case from its siblings. */
    bool large;                          /* Only when asked for: needs gigabytes. */
};

/* A detail in a table of cases. */
#define MICRO_DETAIL(type, ...) (&(const struct type){__VA_ARGS__})

struct micro_suite {
    const struct micro_case *cases;
    uint32_t count;
};

extern const struct micro_suite micro_scan;
extern const struct micro_suite micro_filter;
extern const struct micro_suite micro_join;
extern const struct micro_suite micro_aggregate;
extern const struct micro_suite micro_sort;
extern const struct micro_suite micro_wire;

/* What a failure ends with. */
void micro_require(status code, const struct error *err);
void *micro_need(void *block); /* The block, unless it is NULL. */

enum {
    MICRO_FILE_BYTES = 32 << 20,   /* More than the caches near a core. */
    MICRO_CHUNK_BYTES = 512 << 10, /* As the engine cuts files. */
    MICRO_SLICE_ROWS = 2048,       /* As the engine passes batches on. */
};

/* Files in the manner of those that the analyses read. */
enum micro_file {
    MICRO_RATINGS,      /* Short numbers, no quotes. */
    MICRO_TRANSACTIONS, /* A long identifier, decimals, timestamps, an empty column. */
    MICRO_USERS,        /* Dates. */
    MICRO_COMMENTS, /* Long texts, most of them in quotes, some with quotes and lines in them. */
    MICRO_FILES
};

/* A file in memory, cut into chunks of whole records. */
struct micro_data {
    struct chunk *chunks; /* Without column maps. */
    uint32_t chunk_count;
    size_t size;
};

/* Of about `size` bytes. */
struct micro_data micro_data_make(enum micro_file file, size_t size, struct arena *arena);
/* Where the file has the column of that name. */
uint32_t micro_file_column(enum micro_file file, struct text name);
uint32_t micro_file_columns(enum micro_file file);

/* The plan of one question. There are the tables ratings, transactions, users and comments, and
 * keyed_int and keyed_text with the columns k and amount. */
const struct plan *micro_compile(const char *sql, struct arena *arena);

/* The rows of a table as batches in memory, each of `rows_each` rows. */
struct micro_rows {
    enum micro_file file;
    const struct table *table;
    uint32_t rows_each;
    uint32_t batch_count;
    struct batch_builder *builders; /* Own the values. */
    struct batch *batches;          /* Views of them. */
};

void micro_rows_make(struct micro_rows *rows, struct arena *arena);
void micro_rows_done(struct micro_rows *rows);
/* Of one column in all batches, as values: texts by their bytes. */
uint64_t micro_rows_bytes(const struct micro_rows *rows, uint32_t column);

/* Keys that are numbers spread over a wide range, or short identifiers: different ones for
 * different `ids`. Texts are copies of their own for every row. */
struct column micro_keys(struct type type, const uint32_t *ids, uint32_t count,
                         struct arena *arena);
/* `count` numbers below `bound`, each about equally often and, if there is room, each at least
 * once. */
uint32_t *micro_ids(uint32_t count, uint32_t bound, struct arena *arena);
uint64_t micro_column_bytes(const struct column *column, uint32_t row_count);

#endif
