/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_reader.h - reads chunks of a table's files, piece by piece.
 *
 *     chunk_reader_create -> (begin -> next* -> end)* -> chunk_reader_destroy
 *     chunk_reader_create -> (begin_at -> next* or whole)* -> chunk_reader_destroy
 *
 * Where the first record of a chunk begins depends on the quotes of everything before: it is known
 * when the chunk before has been read to its end. No thread waits for that. A reader that does not
 * know guesses, reads on, and learns at the end whether it was right. If it was not, then what it
 * gave, failures included, is void, and the chunk is read once more. So what becomes of a chunk has
 * to wait for chunk_reader_end, chunk numbers must be taken in ascending order, each once, and the
 * cut is never a matter of luck. Speculative parallel parsing of CSV is due to Mühlbauer et al.,
 * "Instant Loading for Main Memory Databases", VLDB 2013.
 *
 * Memory: a block of a piece and its longest record; charged to the budget. Threads: one owner; any
 * number of readers may read from the same files.
 */
#ifndef ENGINE_LOCAL_CHUNK_READER_H
#define ENGINE_LOCAL_CHUNK_READER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/base/fault_injection.h"
#include "engine/exec/scan/chunk_scan.h"
#include "engine/local/table_files.h"

struct chunk_reader;

MUST_USE status chunk_reader_create(struct budget *budget, struct chunk_reader **out,
                                    struct error *err);
#if FAULT_INJECTION
/* For tests: smaller pieces than those of a scan. */
void chunk_reader_set_piece(struct chunk_reader *reader, size_t piece_bytes);
#endif
/* Accepts NULL. */
void chunk_reader_destroy(struct chunk_reader *reader);

/* The files are borrowed until the end. After a failure of begin or next, end says whether it
 * counts. */
MUST_USE status chunk_reader_begin(struct chunk_reader *reader, struct table_files *files,
                                   uint64_t chunk_number, uint32_t record_limit, struct error *err);
/* Which of the files the chunk is of, where in it its first record begins, and how many bytes of it
 * were read so far. */
uint32_t chunk_reader_file(const struct chunk_reader *reader);
uint64_t chunk_reader_offset(const struct chunk_reader *reader);
uint64_t chunk_reader_bytes(const struct chunk_reader *reader);
/* Some whole records, with an index that is begun, borrowed until the next call. *out_more ==
 * false: there are no more, and nothing else is set. STATUS_LIMIT: a record has more than
 * `record_limit` bytes. */
MUST_USE status chunk_reader_next(struct chunk_reader *reader, struct chunk *out_piece,
                                  bool *out_more, struct error *err);
/* Waits until it is known where the chunk begins. *out_again: elsewhere than was thought; next
 * gives it once more from its beginning. Otherwise the chunk is done with, and the next one's
 * beginning known; unless it was not read to its end, which those who wait are told.
 * STATUS_CANCELLED: it will never be known, because *stopped (may be NULL) was set and
 * table_files_stop called, or the reader of a chunk before failed. */
MUST_USE status chunk_reader_end(struct chunk_reader *reader, const atomic_bool *stopped,
                                 bool *out_again, struct error *err);

/* Instead of begin and end, for a caller that reads all chunks alone and in order. `from` is where
 * the last chunk of the file that was not empty ended; of the first one it means nothing. */
void chunk_reader_begin_at(struct chunk_reader *reader, struct table_files *files,
                           uint64_t chunk_number, uint64_t from, uint32_t record_limit);
/* Instead of next: all of it, without an index, behind `front` bytes that are the caller's. */
MUST_USE status chunk_reader_whole(struct chunk_reader *reader, size_t front,
                                   struct chunk *out_chunk, struct error *err);
/* What whole read, for good: `front` bytes, and then the chunk. Its size is for the caller to set.
 */
struct buf chunk_reader_take(struct chunk_reader *reader);

#endif
