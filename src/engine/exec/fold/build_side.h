/* build_side.h - the built side of a join: rows, and a hash table over their first columns.
 *
 * Read-only once built; any number of threads may probe it.
 */
#ifndef ENGINE_EXEC_FOLD_BUILD_SIDE_H
#define ENGINE_EXEC_FOLD_BUILD_SIDE_H

#include "engine/base/error.h"
#include "engine/data/column.h"

struct duplicate_set;

/* Most rows of a large table have no partner in a small one. A bit per key says so before anything
 * is looked up: by the key itself where that is one number from a narrow range, and then before it
 * is hashed, else by the hash. */
struct key_filter {
    const uint64_t *bits;
    uint64_t last;  /* The number of the last bit. */
    int64_t lowest; /* By value: that of bit 0. */
    bool by_value;  /* A bit is exactly one key; else several keys may share one. */
};

struct build_slot {
    uint64_t tag;  /* hash's upper half << 32 | row + 1; 0: free */
    uint64_t hash; /* Where `has_words`, no other key has it: none needs to be looked at. */
};

struct build_side {
    struct batch rows; /* Borrowed. */
    uint32_t key_count;
    const uint32_t *key_columns;    /* 0, 1, 2... */
    const struct build_slot *slots; /* NULL: there is only the Bloom filter. */
    size_t slot_count;
    bool has_words;       /* The key is one number, or one text of at most seven bytes. */
    const uint32_t *next; /* The next row with the same key, ROW_NONE: no more. */
    struct key_filter bloom;
    /* By set of columns: for each row the first one that has the same values in them; NULL when it
     * is the row itself for all that can be found. */
    const uint32_t *const *duplicates;
};

/* Room for the rows of one probe and what was found for them. */
enum { BUILD_PROBE_ROWS = 2048 };
struct build_probe {
    uint64_t hashes[BUILD_PROBE_ROWS];
    uint32_t rows[BUILD_PROBE_ROWS];
    uint32_t found[BUILD_PROBE_ROWS];
    uint32_t count;
};

/* Rows with a NULL key are left out of the hash table: they match nothing. */
MUST_USE status build_side_build(struct build_side *table, struct batch rows, uint32_t key_count,
                                 struct arena *arena, struct error *err);

/* Only the Bloom filter, of rows with one number each. A probe gives rows that may have a partner,
 * and does not say which; which they are depends on the numbers alone. */
MUST_USE status build_side_build_filter(struct build_side *table, struct batch rows,
                                        struct arena *arena, struct error *err);

/* Fills `duplicates` of a table that was built. */
MUST_USE status build_side_find_duplicates(struct build_side *table,
                                           const struct duplicate_set *sets, uint32_t set_count,
                                           struct arena *arena, struct error *err);

/* The first row whose key equals that of `row`, or ROW_NONE; go on with table->next. The hash is
 * key_hash's. */
uint32_t build_side_find(const struct build_side *table, uint64_t hash, const struct batch *batch,
                         const uint32_t *columns, uint32_t row);

/* The same for up to SIDE_PROBE_ROWS rows: those that have a partner, with the first one. */
void build_side_probe(const struct build_side *table, const struct batch *batch,
                      const uint32_t *columns, struct selection selection, struct build_probe *out);
/* Only the rows that may have a partner, without it: for less. */
void build_side_filter(const struct build_side *table, const struct batch *batch,
                       const uint32_t *columns, struct selection selection,
                       struct build_probe *out);
/* The same as build_side_probe, and those without a partner too, with ROW_NONE. */
void build_side_probe_all(const struct build_side *table, const struct batch *batch,
                          const uint32_t *columns, struct selection selection,
                          struct build_probe *out);

#endif
