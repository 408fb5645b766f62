/* table_files.h - the files of one table, cut exactly into chunks of whole records.
 *
 *     table_files_open -> chunk_reader_read* (by any number of threads) -> table_files_close
 *
 * The body of a file, which is what follows its header, is laid out in pieces of chunk_bytes. Chunk
 * k holds the records that start in piece k: a record's tail in the next piece belongs to it, and
 * when a record covers whole pieces, their chunks are empty. So the cut depends on the bytes and
 * chunk_bytes alone. Chunks are numbered through all files of the table, which are in the order of
 * their names.
 *
 * Where records start depends on the quotes of everything before. That is never guessed: whoever
 * reads a piece hands the state at its end on to whoever reads the next one, and waits for its own.
 * So chunk numbers must be taken in ascending order, each by somebody, once.
 *
 * Memory: everything lives in the arena given at opening. Threads: chunk_reader_read (each with its
 * own reader), table_files_stop, table_files_line and what is built on it from any; the rest from
 * one.
 */
#ifndef NODE_TABLE_FILES_H
#define NODE_TABLE_FILES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/csv_split.h"
#include "exec/chunk_scan.h"
#include "plan/plan.h"

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
    uint64_t known_piece;    /* The state at the start of this piece */
    enum csv_state state;    /* is this. */
    uint64_t poisoned_piece; /* This and later ones wait in vain: its reader failed. */
};

struct table_files {
    struct table_file *files;
    uint32_t file_count;
    uint32_t chunk_bytes;
    uint64_t byte_count;
    uint64_t chunk_count;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint32_t waiting; /* Readers that wait for a state. */
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

struct chunk_reader; /* One per thread; owns a buffer that grows to the longest chunk. */

MUST_USE status chunk_reader_create(struct budget *budget, struct chunk_reader **out,
                                    struct error *err);
/* From now on chunks may come with an index that is begun, which is to say when nobody has to wait
 * for it. */
void chunk_reader_want_index(struct chunk_reader *reader);
/* Accepts NULL. */
void chunk_reader_destroy(struct chunk_reader *reader);

/* Reads a chunk, which may be empty (size 0), and says which file it is of; it is borrowed from the
 * reader until its next read. Waits until the piece before has been read. STATUS_CANCELLED:
 * *stopped (may be NULL) was set and table_files_stop called, or the reader of a piece before
 * failed. STATUS_LIMIT: a record has more than `record_limit` bytes. */
MUST_USE status chunk_reader_read(struct chunk_reader *reader, struct table_files *files,
                                  uint64_t chunk_number, uint32_t record_limit,
                                  const atomic_bool *stopped, struct chunk *out_chunk,
                                  uint32_t *out_file, struct error *err);
/* The same for whoever reads all chunks alone and in order, with `front` bytes before the chunk
 * that are his. `from` is where the last chunk of the file that was not empty ended; of the first
 * one it means nothing. */
MUST_USE status chunk_reader_read_on(struct chunk_reader *reader, struct table_files *files,
                                     uint64_t chunk_number, uint64_t from, size_t front,
                                     uint32_t record_limit, struct chunk *out_chunk,
                                     uint32_t *out_file, struct error *err);
/* What was read, for good: `front` bytes, and then the chunk. Its size is for the caller to set. */
struct buf chunk_reader_take(struct chunk_reader *reader);

/* Before every further reading of the table, from its first chunk on; nobody may be reading. */
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
