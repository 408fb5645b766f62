/* SPDX-License-Identifier: Apache-2.0 */
/* group_records.h - from the keys of rows to the records of their groups.
 *
 * A group is a record of fixed size: NULL flags, keys (of a long text, where its copy is), and room
 * for states, which belong to the caller; and the hash, unless the keys are a few integers: then it
 * is computed again as quickly as it is read. Records never move; they are numbered in the
 * order in which their first rows came.
 *
 *     init -> (find | add)* [-> order] -> (reset -> (find | add)* [-> order])* -> done
 *
 * Memory: owned, charged to the budget. Threads: one owner.
 * Failure: out of memory, after which only a reset or the end may follow.
 */
#ifndef ENGINE_EXEC_FOLD_GROUP_RECORDS_H
#define ENGINE_EXEC_FOLD_GROUP_RECORDS_H

#include "engine/base/arena.h"
#include "engine/data/column.h"
#include "engine/data/schema.h"
#include "engine/exec/fold/group_slots.h"
#include "engine/data/key_hash.h"
#include "engine/exec/fold/key_window.h"

enum {
    GROUP_BLOCK_RECORDS = 1024,
    /* Rows looked for at a time: enough to wait for their records together, and so few that these
     * are in the nearest cache until each aggregate has been there. */
    GROUP_SLICE_ROWS = 128,
};

struct key_place {
    size_t offset; /* In the record. */
    uint8_t kind;
};

struct group_records {
    struct budget *budget;
    uint32_t key_count;
    struct key_place *keys;
    bool are_words;     /* One to KEY_WINDOW_KEYS keys, integers of any kind. */
    size_t null_offset; /* Of a byte for each key that is 1 for NULL; padded to 8. */
    size_t record_size;
    struct group_slots slots; /* None beside a window, */
    bool in_order;            /* unless they are in order: then the first `count` are that order. */
    unsigned char **blocks;
    size_t block_capacity;
    size_t block_count;
    uint32_t count;           /* Of groups. */
    struct key_window window; /* Has places when it is in use. */
    bool window_gone;         /* There was one, and will be no more. */
    bool window_due;          /* To be considered. */
    uint32_t rows_seen;       /* By which it is first considered. */
    uint64_t *hashes;         /* GROUP_SLICE_ROWS of them. */
    struct arena arena;       /* Lives as long as the object. */
    struct arena texts;       /* Lives as long as the groups. */
};

/* The first key_count fields are the keys. `*`out_state_offset` is where the states begin. */
struct group_layout {
    struct schema schema;
    uint32_t key_count;
    size_t state_size;
};

MUST_USE bool group_records_init(struct group_records *records, struct group_layout layout,
                                 struct budget *budget, size_t *out_state_offset);
/* Accepts what init has left behind when it failed. */
void group_records_done(struct group_records *records);
/* Forgets all groups, keeps the memory. */
void group_records_reset(struct group_records *records);

/* The records of up to GROUP_SLICE_ROWS rows; new ones have zeroed states. */
MUST_USE bool group_records_find(struct group_records *records, const struct batch *batch,
                                 const uint32_t *key_columns, struct selection selection,
                                 unsigned char **out_records);
/* A record without a search: for the one group there is without keys. */
MUST_USE bool group_records_add(struct group_records *records, unsigned char **out_record);

/* Puts the groups in an order that depends on their keys only: that of their hashes, then of the
 * keys. No more can be found or added until a reset. */
MUST_USE bool group_records_order(struct group_records *records);

/* How much adding so many groups may take at most, but for texts, and how much ordering takes. */
size_t group_records_need(const struct group_records *records, uint32_t more);
size_t group_records_order_need(const struct group_records *records);

/* Reads keys into the first columns, which have room for `count` rows. */
MUST_USE bool group_records_read(const struct group_records *records, unsigned char *const *from,
                                 uint32_t count, struct column *columns, struct arena *arena);
/* An order of keys, NULLs last. */
int group_records_compare(const struct group_records *records, const unsigned char *a,
                          const unsigned char *b);
/* Equal doubles are one key: both zeros, all NaNs. Not for texts. */
int64_t group_key_word(const struct column *column, uint32_t row);

static inline unsigned char *group_record(const struct group_records *records, uint32_t group)
{
    return records->blocks[group / GROUP_BLOCK_RECORDS] +
           group % GROUP_BLOCK_RECORDS * records->record_size;
}

/* By its place: in their order once they are put in order, until then as they came. */
static inline unsigned char *group_record_at(const struct group_records *records, uint32_t place)
{
    if (records->in_order) place = group_slot_group(records->slots.items[place]);
    return group_record(records, place);
}

/* Of a record whose keys are words: these stand one after the other behind the bytes for NULL. */
static inline const int64_t *group_record_words(const unsigned char *record)
{
    return (const int64_t *)(const void *)(record + sizeof(uint64_t));
}

static inline uint64_t group_record_hash(const struct group_records *records,
                                         const unsigned char *record)
{
    uint64_t hash;
    if (records->are_words) {
        return key_hash_words(group_record_words(record), record, records->key_count);
    }
    memcpy(&hash, record, sizeof hash);
    return hash;
}

#endif
