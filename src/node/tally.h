/* tally.h - what was read of a table and what was dropped, added up over chunks.
 *
 * Each thread has one per table; they are merged at the end. The first place of a kind is kept as
 * chunk and line within the chunk: only when all chunks are read is it known how many lines stand
 * before it.
 */
#ifndef NODE_TALLY_H
#define NODE_TALLY_H

#include "base/arena.h"
#include "base/error.h"
#include "exec/chunk_scan.h"
#include "node/books.h"
#include "node/table_files.h"
#include "plan/plan.h"

struct tally_line {
    uint64_t count;
    uint64_t first_chunk;
    uint64_t first_line; /* Lines before it in its chunk. */
};

struct tally {
    uint32_t column_count;
    uint64_t record_count;
    uint64_t kept_count;
    struct tally_line wrong_fields;
    struct tally_line (*dropped)[DROP_REASON_COUNT]; /* By column. */
    struct tally_line *nulled;
};

MUST_USE bool tally_init(struct tally *tally, uint32_t column_count, struct arena *arena);
void tally_add(struct tally *tally, uint64_t chunk_number, const struct chunk *chunk,
               const struct chunk_tally *more);
void tally_merge(struct tally *tally, const struct tally *more);

/* As the books show it. `chunk_lines` has the LF count of every chunk of the table. */
MUST_USE bool tally_book(const struct tally *tally, const struct table *table,
                         const struct table_files *files, const uint32_t *chunk_lines,
                         struct arena *arena, struct book_table *out_book);

#endif
