/* SPDX-License-Identifier: Apache-2.0 */
/* join_table.h - the hash table of a join: the rows of its build side, and where each key's are.
 *
 * Built once, then probed (the two halves of a hash join): by maps, against a broadcast build side;
 * by a fold, against the right half of a partitioned join.
 *
 * Memory: the given arena; the rows are borrowed. Threads: read-only once built; any number of
 * threads may probe it.
 */
#ifndef ENGINE_EXEC_FOLD_JOIN_TABLE_H
#define ENGINE_EXEC_FOLD_JOIN_TABLE_H

#include "engine/base/error.h"
#include "engine/data/column.h"

struct duplicate_set;

/* Most rows of a large table have no partner in a small one, and a few bits say so before anything
 * is looked up. Where the key is one number from a narrow range it is a bitmap, which is exact and
 * needs no hash. Else it is a Bloom filter (Bloom: Space/time trade-offs in hash coding with
 * allowable errors, 1970) of two bits per key, both in one 64-bit word, so that a key costs one
 * access to memory: a blocked one (Putze, Sanders, Singler: Cache-, hash- and space-efficient Bloom
 * filters, 2007) with a word as block. */
struct key_filter {
    const uint64_t *bits;
    uint64_t last;  /* The number of the last bit. */
    int64_t lowest; /* Of a bitmap: the value of bit 0. */
    bool is_bitmap; /* A bit is exactly one key; else several keys may share their bits. */
};

struct join_slot {
    uint64_t tag;  /* hash's upper half << 32 | row + 1; 0: free */
    uint64_t hash; /* With `has_words` no other key has it: keys need not be compared. */
};

struct join_table {
    struct batch rows; /* Borrowed. */
    uint32_t key_count;
    const uint32_t *key_columns;   /* 0, 1, 2... */
    const struct join_slot *slots; /* NULL: there is only the filter. */
    size_t slot_count;
    bool has_words;       /* The key is one number, or one text of at most seven bytes. */
    const uint32_t *next; /* The next row with the same key, ROW_NONE: no more. */
    struct key_filter filter;
    /* By set of columns: for each row the first one that has the same values in them; NULL when no
     * two rows have. */
    const uint32_t *const *duplicates;
};

/* Room for the rows of one probe and what was found for them. */
enum { JOIN_PROBE_ROWS = 2048 };
struct join_probe {
    uint64_t hashes[JOIN_PROBE_ROWS];
    uint32_t rows[JOIN_PROBE_ROWS];
    uint32_t found[JOIN_PROBE_ROWS];
    uint32_t count;
};

/* Rows with a NULL key are left out of the hash table: they match nothing. */
MUST_USE status join_table_build(struct join_table *table, struct batch rows, uint32_t key_count,
                                 struct arena *arena, struct error *err);

/* Only a Bloom filter, of rows with one number each. A probe gives rows that may have a partner,
 * and does not say which; which they are depends on the numbers alone, so that every worker's maps
 * let the same rows through. */
MUST_USE status join_table_build_bloom(struct join_table *table, struct batch rows,
                                       struct arena *arena, struct error *err);

/* Fills `duplicates` of a table that was built. */
MUST_USE status join_table_find_duplicates(struct join_table *table,
                                           const struct duplicate_set *sets, uint32_t set_count,
                                           struct arena *arena, struct error *err);

/* The first row whose key equals that of `row`, or ROW_NONE; table->next has the others. The hash
 * is key_hash's. */
uint32_t join_table_find(const struct join_table *table, uint64_t hash, const struct batch *batch,
                         const uint32_t *columns, uint32_t row);

/* The same for up to JOIN_PROBE_ROWS rows: those that have a partner, with the first one. */
void join_table_probe(const struct join_table *table, const struct batch *batch,
                      const uint32_t *columns, struct selection selection, struct join_probe *out);
/* Only asks the filter: the rows that may have a partner, without it. */
void join_table_filter(const struct join_table *table, const struct batch *batch,
                       const uint32_t *columns, struct selection selection, struct join_probe *out);
/* The same as join_table_probe, and those without a partner too, with ROW_NONE. */
void join_table_probe_all(const struct join_table *table, const struct batch *batch,
                          const uint32_t *columns, struct selection selection,
                          struct join_probe *out);

#endif
