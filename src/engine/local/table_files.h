/* SPDX-License-Identifier: Apache-2.0 */
/* table_files.h - the files of one table, and what is a chunk of them.
 *
 *     table_files_open -> chunk_reader.h (by any number of threads) -> table_files_close
 *
 * The body of a file, which is what follows its header, is laid out in stretches of chunk_bytes.
 * Chunk k holds the records that start in stretch k: a record's tail in the next one belongs to it,
 * and when a record covers whole stretches, their chunks are empty. So the cut depends on the bytes
 * and chunk_bytes alone. Chunks are numbered through all files of the table, which are in the order
 * of their names.
 *
 * Memory: everything lives in the arena given at opening. Threads: table_files_stop,
 * table_files_line and what is built on it from any; the rest from one.
 */
#ifndef ENGINE_LOCAL_TABLE_FILES_H
#define ENGINE_LOCAL_TABLE_FILES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "engine/plan/plan.h"

struct arena;

/* Larger chunks would make the positions within them overflow. */
#define TABLE_FILES_CHUNK_LIMIT_BYTES ((uint32_t)1 << 30)

struct table_file {
    struct text name; /* Relative to the data folder. */
    uint64_t size;
    uint64_t body_offset;
    int fd;
    uint32_t column_count;
    const uint32_t *column_map; /* Table column -> column in this file; NULL in an empty file. */
    uint64_t chunk_count;
    uint64_t first_chunk; /* Number of its first chunk within the table. */
    uint64_t header_lines;
    int64_t modified_ns;
    uint64_t inode;
    const char *path;

    /* Guarded by the table's mutex. */
    uint64_t known_chunk;    /* The first record that is not in a chunk before this one */
    uint64_t next_record;    /* begins here in the file. */
    uint64_t poisoned_chunk; /* This and later ones wait in vain: its reader failed. */
};

struct table_files {
    struct table_file *files;
    uint32_t file_count;
    uint32_t chunk_bytes;
    uint64_t byte_count;
    uint64_t chunk_count;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool stopped;
    bool is_open;
};

/* Finds the files (the first pattern that matches anything counts), opens them and reads their
 * headers. A file of no bytes is an empty part of the table. On failure there is nothing to close,
 * and to close a zeroed one does nothing. The struct must not move while it is open. */
MUST_USE status table_files_open(const struct table *table, const char *data_dir,
                                 uint32_t chunk_bytes, struct arena *arena, struct table_files *out,
                                 struct error *err);
void table_files_close(struct table_files *files);
/* Into other chunks than table_files_open did, before any is read. */
void table_files_cut(struct table_files *files, uint32_t chunk_bytes);

/* How long a record may be: it may hold several large fields, but not any number of them. 0: fields
 * have no limit. */
uint32_t table_files_record_limit(uint32_t field_limit);

/* Before every further reading of the table, from its first chunk on; no thread may be reading. */
void table_files_rewind(struct table_files *files);

/* Ends all waits of readers, now and later, with STATUS_CANCELLED. */
void table_files_stop(struct table_files *files);

/* The 1-based line of a byte, found by reading the file up to there: for messages only. */
MUST_USE status table_files_line(struct table_files *files, uint32_t file, uint64_t byte_offset,
                                 uint64_t *out_line, struct error *err);
/* Puts "FILE:LINE: " before the error's text and returns its code. */
MUST_USE status table_files_place(struct table_files *files, uint32_t file, uint64_t byte_offset,
                                  struct error *err);
/* Makes the error that a quoted field, which begins at this byte, is never closed. */
MUST_USE status table_files_unclosed(struct table_files *files, uint32_t file, uint64_t byte_offset,
                                     struct error *err);

#endif
