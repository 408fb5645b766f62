/* SPDX-License-Identifier: Apache-2.0 */
/* join_table.c - open addressing with linear probing (Knuth, The Art of Computer Programming 3,
 * 6.4): neighbouring slots share a line of the cache, and half of the slots are free.
 *
 * A slot names the first row of a key; rows of one key are chained in their order, so that partners
 * come in it. Probing takes many rows at a time: slots and keys that are far away are asked for
 * some rows ahead (Chen, Ailamaki, Gibbons, Mowry: Improving hash join performance through
 * prefetching, 2004).
 */
#include "engine/exec/fold/join_table.h"

#include "engine/base/assert.h"
#include "engine/base/hash.h"
#include "engine/data/key_hash.h"
#include "engine/plan/plan.h"

enum {
    SLICE_ROWS = 2048,
    SLOTS_AHEAD = 24,              /* Prefetched so many rows before they are needed. */
    CHAIN_STEPS_PER_ROW = 4,       /* More, on average, and duplicates are found by hash instead. */
    BLOOM_BITS_PER_ROW = 16,       /* One key in fifty gets through by mistake. */
    BITMAP_RANGE_PER_ROW = 1024,   /* How thinly keys may be spread over their range, */
    BITMAP_RANGE_ALWAYS = 1 << 20, /* a range that is always narrow enough (128 KiB of bits), */
    BITMAP_RANGE_MOST = 1 << 27,   /* and the widest. */
    BLOOM_TRIAL_ROWS = 256,        /* When of the first rows */
    BLOOM_TRIAL_LEFT = 192,        /* so many get through, the others need not ask. */
    PROBE_AHEAD = 8,
    FAR_SLOTS = 1 << 12, /* Fewer lie in the processor's own cache: nothing is prefetched. */
};

/* ---- keys that fit a word ---- */

static bool is_number(const struct column *column)
{
    return column->type.kind == TYPE_INT || column->type.kind == TYPE_DECIMAL ||
           column->type.kind == TYPE_DATE || column->type.kind == TYPE_TIMESTAMP;
}

enum { WORD_TEXT_MAX = 7 };

/* The bytes and, above them, how many there are. */
static uint64_t text_word(struct text text)
{
    uint64_t word = (uint64_t)text.size << 56;
    if (text.size >= 4) {
        uint32_t first, last;
        memcpy(&first, text.bytes, sizeof first);
        memcpy(&last, text.bytes + text.size - sizeof last, sizeof last);
        return word | first | (uint64_t)last << 8 * (text.size - sizeof last);
    }
    for (uint32_t i = 0; i < text.size; i++) {
        word |= (uint64_t)(unsigned char)text.bytes[i] << 8 * i;
    }
    return word;
}

static bool fits_word(const struct column *keys, uint32_t row)
{
    return keys->texts[row].size <= WORD_TEXT_MAX;
}

/* Different words have different hashes, for both steps of hash_u64 can be undone. So the hash
 * stands for the key. A text that is too long, or NULL, gets the hash of a word that no text has.
 */
static uint64_t word_hash(const struct column *keys, uint32_t row)
{
    if (keys->type.kind != TYPE_TEXT) return hash_u64((uint64_t)keys->ints[row]);
    bool has_word = !column_is_null(keys, row) && fits_word(keys, row);
    return hash_u64(has_word ? text_word(keys->texts[row]) : UINT64_MAX);
}

static bool find_words(const struct batch *rows, uint32_t key_count)
{
    if (key_count != 1) return false;
    const struct column *keys = &rows->columns[0];
    if (keys->type.kind != TYPE_TEXT) return is_number(keys);
    for (uint32_t row = 0; row < rows->row_count; row++) {
        if (!column_is_null(keys, row) && !fits_word(keys, row)) return false;
    }
    return true;
}

/* The hashes by which the table knows its keys. */
static void hash_keys(const struct join_table *table, const struct batch *batch,
                      const uint32_t *columns, struct selection selection, uint64_t *out)
{
    if (!table->has_words) {
        key_hash(batch, columns, table->key_count, selection, out);
        return;
    }
    const struct column *keys = &batch->columns[columns[0]];
    for (uint32_t i = 0; i < selection.count; i++) {
        out[i] = word_hash(keys, selection_row(selection, i));
    }
}

/* ---- building ---- */

static void insert(const struct join_table *table, struct join_slot *slots, uint32_t *next,
                   uint64_t hash, uint32_t row)
{
    size_t mask = table->slot_count - 1;
    for (size_t place = hash & mask;; place = (place + 1) & mask) {
        uint64_t tag = slots[place].tag;
        if (tag == 0) {
            slots[place].tag = (hash >> 32 << 32) | (row + 1);
            slots[place].hash = hash;
            return;
        }
        uint32_t other = (uint32_t)tag - 1;
        if (tag >> 32 == hash >> 32 &&
            key_equal(&table->rows, table->key_columns, row, &table->rows, table->key_columns,
                      other, table->key_count)) {
            next[row] = other;
            slots[place].tag = (hash >> 32 << 32) | (row + 1);
            return;
        }
    }
}

/* ---- the filter ---- */

/* Whether the only key is a number from a range that is narrow for so many rows. */
static bool find_range(const struct batch *rows, uint32_t key_count, int64_t *out_lowest,
                       uint64_t *out_last)
{
    const struct column *keys = &rows->columns[0];
    if (key_count != 1 || !is_number(keys)) return false;
    int64_t lowest = INT64_MAX;
    int64_t highest = INT64_MIN;
    for (uint32_t row = 0; row < rows->row_count; row++) {
        if (column_is_null(keys, row)) continue;
        if (keys->ints[row] < lowest) lowest = keys->ints[row];
        if (keys->ints[row] > highest) highest = keys->ints[row];
    }
    if (lowest > highest) return false;
    *out_lowest = lowest;
    *out_last = (uint64_t)highest - (uint64_t)lowest;
    uint64_t most = (uint64_t)rows->row_count * BITMAP_RANGE_PER_ROW;
    if (most < BITMAP_RANGE_ALWAYS) most = BITMAP_RANGE_ALWAYS;
    if (most > BITMAP_RANGE_MOST) most = BITMAP_RANGE_MOST;
    return *out_last < most;
}

static void bit_set(uint64_t *bits, uint64_t number)
{
    bits[number / 64] |= (uint64_t)1 << number % 64;
}

static uint64_t bit_get(const uint64_t *bits, uint64_t number)
{
    return bits[number / 64] >> number % 64 & 1;
}

/* A key's two bits in one word. The hash's upper half chooses the word and the first bit, since its
 * lower half chooses the slot. */
static uint64_t bloom_place(const struct key_filter *filter, uint64_t hash)
{
    return hash >> 32 & filter->last;
}

static uint64_t other_bit(uint64_t hash)
{
    return hash >> 24 & 63;
}

static void bloom_set(const struct key_filter *filter, uint64_t *bits, uint64_t hash)
{
    uint64_t place = bloom_place(filter, hash);
    bits[place / 64] |= (uint64_t)1 << place % 64 | (uint64_t)1 << other_bit(hash);
}

static uint64_t bloom_get(const struct key_filter *filter, uint64_t hash)
{
    uint64_t place = bloom_place(filter, hash);
    uint64_t word = filter->bits[place / 64];
    return word >> place % 64 & word >> other_bit(hash) & 1;
}

static uint64_t *filter_make(struct join_table *table, struct arena *arena)
{
    struct key_filter *filter = &table->filter;
    if (!filter->is_bitmap) {
        uint64_t bit_count = 4096;
        while (bit_count < (uint64_t)table->rows.row_count * BLOOM_BITS_PER_ROW) {
            bit_count *= 2;
        }
        if (bit_count > (uint64_t)1 << 32) bit_count = (uint64_t)1 << 32;
        filter->last = bit_count - 1;
    }
    uint64_t *bits = arena_array(arena, uint64_t, filter->last / 64 + 1);
    filter->bits = bits;
    return bits;
}

static void filter_put(const struct join_table *table, uint64_t *bits, uint64_t hash, uint32_t row)
{
    const struct key_filter *filter = &table->filter;
    if (filter->is_bitmap) {
        bit_set(bits, (uint64_t)table->rows.columns[0].ints[row] - (uint64_t)filter->lowest);
    } else {
        bloom_set(filter, bits, hash);
    }
}

status join_table_build(struct join_table *table, struct batch rows, uint32_t key_count,
                        struct arena *arena, struct error *err)
{
    size_t slot_count = 64;
    while (slot_count < (size_t)rows.row_count * 2) {
        slot_count *= 2;
    }
    uint32_t *columns = arena_array(arena, uint32_t, key_count + 1);
    struct join_slot *slots = arena_array(arena, struct join_slot, slot_count);
    uint32_t *next = arena_array(arena, uint32_t, (size_t)rows.row_count + 1);
    if (columns == NULL || slots == NULL || next == NULL) return error_memory(err);
    for (uint32_t i = 0; i < key_count; i++) {
        columns[i] = i;
    }
    *table = (struct join_table){.rows = rows,
                                 .key_count = key_count,
                                 .key_columns = columns,
                                 .slots = slots,
                                 .slot_count = slot_count,
                                 .has_words = find_words(&rows, key_count),
                                 .next = next};
    struct key_filter *filter = &table->filter;
    filter->is_bitmap = find_range(&rows, key_count, &filter->lowest, &filter->last);
    uint64_t *bits = filter_make(table, arena);
    if (bits == NULL) return error_memory(err);
    /* From the last row to the first, so that every chain ascends. */
    uint32_t slice[SLICE_ROWS];
    uint64_t hashes[SLICE_ROWS];
    for (uint32_t end = rows.row_count; end > 0;) {
        uint32_t count = end < SLICE_ROWS ? end : SLICE_ROWS;
        for (uint32_t i = 0; i < count; i++) {
            slice[i] = end - 1 - i;
        }
        hash_keys(table, &table->rows, columns, (struct selection){slice, count}, hashes);
        for (uint32_t i = 0; i < count; i++) {
            if (i + SLOTS_AHEAD < count) {
                __builtin_prefetch(&slots[hashes[i + SLOTS_AHEAD] & (slot_count - 1)], 1);
            }
            next[slice[i]] = ROW_NONE;
            if (key_has_null(&table->rows, columns, key_count, slice[i])) continue;
            insert(table, slots, next, hashes[i], slice[i]);
            filter_put(table, bits, hashes[i], slice[i]);
        }
        end -= count;
    }
    return STATUS_OK;
}

status join_table_build_bloom(struct join_table *table, struct batch rows, struct arena *arena,
                              struct error *err)
{
    uint32_t *columns = arena_array(arena, uint32_t, 1);
    if (columns == NULL) return error_memory(err);
    *table = (struct join_table){
        .rows = rows, .key_count = 1, .key_columns = columns, .has_words = true};
    uint64_t *bits = filter_make(table, arena);
    if (bits == NULL) return error_memory(err);
    const struct column *keys = &rows.columns[0];
    ASSERT(is_number(keys));
    for (uint32_t row = 0; row < rows.row_count; row++) {
        if (!column_is_null(keys, row)) bloom_set(&table->filter, bits, word_hash(keys, row));
    }
    return STATUS_OK;
}

/* ---- duplicates ---- */

static bool has_column(const struct duplicate_set *set, uint32_t column)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->columns[i] == column) return true;
    }
    return false;
}

static bool has_join_key(const struct join_table *table, const struct duplicate_set *set)
{
    for (uint32_t i = 0; i < table->key_count; i++) {
        if (!has_column(set, i)) return false;
    }
    return table->key_count > 0;
}

/* Duplicates share their join key if the set has all its columns: then they stand in one chain.
 * False: so many rows share keys that slots are better. */
static bool match_in_chains(const struct join_table *table, const struct duplicate_set *set,
                            uint32_t *out_duplicates, bool *out_found)
{
    uint32_t row_count = table->rows.row_count;
    uint64_t steps_left = (uint64_t)row_count * CHAIN_STEPS_PER_ROW;
    for (uint32_t row = 0; row < row_count; row++) {
        out_duplicates[row] = row;
    }
    for (uint32_t row = 0; row < row_count; row++) {
        if (out_duplicates[row] != row) continue;
        for (uint32_t other = table->next[row]; other != ROW_NONE; other = table->next[other]) {
            if (steps_left-- == 0) return false;
            if (out_duplicates[other] != other ||
                !key_equal(&table->rows, set->columns, row, &table->rows, set->columns, other,
                           set->count)) {
                continue;
            }
            out_duplicates[other] = row;
            *out_found = true;
        }
    }
    return true;
}

/* Slots as those of the table, but without words. True: some row has a duplicate before it. */
static bool match_duplicates(const struct batch *rows, const struct duplicate_set *set,
                             uint64_t *slots, size_t slot_count, uint32_t *out_duplicates)
{
    uint32_t slice[SLICE_ROWS];
    uint64_t hashes[SLICE_ROWS];
    bool found = false;
    for (uint32_t first = 0; first < rows->row_count; first += SLICE_ROWS) {
        uint32_t count =
            rows->row_count - first < SLICE_ROWS ? rows->row_count - first : SLICE_ROWS;
        for (uint32_t i = 0; i < count; i++) {
            slice[i] = first + i;
        }
        key_hash(rows, set->columns, set->count, (struct selection){slice, count}, hashes);
        for (uint32_t i = 0; i < count; i++) {
            if (i + SLOTS_AHEAD < count) {
                __builtin_prefetch(&slots[hashes[i + SLOTS_AHEAD] & (slot_count - 1)], 1);
            }
            size_t place = hashes[i] & (slot_count - 1);
            uint64_t tag = hashes[i] >> 32 << 32;
            while (slots[place] != 0 &&
                   (slots[place] >> 32 << 32 != tag ||
                    !key_equal(rows, set->columns, slice[i], rows, set->columns,
                               (uint32_t)slots[place] - 1, set->count))) {
                place = (place + 1) & (slot_count - 1);
            }
            found = found || slots[place] != 0;
            if (slots[place] == 0) slots[place] = tag | (slice[i] + 1);
            out_duplicates[slice[i]] = (uint32_t)slots[place] - 1;
        }
    }
    return found;
}

static status find_duplicates(const struct join_table *table, const struct duplicate_set *set,
                              struct arena *arena, const uint32_t **out_duplicates,
                              struct error *err)
{
    struct arena_mark mark = arena_mark(arena);
    uint32_t *duplicates = arena_array(arena, uint32_t, (size_t)table->rows.row_count + 1);
    if (duplicates == NULL) return error_memory(err);
    bool found = false;
    if (!has_join_key(table, set) || !match_in_chains(table, set, duplicates, &found)) {
        struct arena scratch;
        arena_init(&scratch, arena->budget);
        uint64_t *slots = arena_array(&scratch, uint64_t, table->slot_count);
        status result = slots == NULL ? error_memory(err) : STATUS_OK;
        if (result == STATUS_OK) {
            found = match_duplicates(&table->rows, set, slots, table->slot_count, duplicates);
        }
        arena_done(&scratch);
        TRY(result);
    }
    if (found) {
        *out_duplicates = duplicates;
    } else {
        arena_release(arena, mark);
    }
    return STATUS_OK;
}

status join_table_find_duplicates(struct join_table *table, const struct duplicate_set *sets,
                                  uint32_t set_count, struct arena *arena, struct error *err)
{
    const uint32_t **duplicates = arena_array(arena, const uint32_t *, (size_t)set_count + 1);
    if (duplicates == NULL) return error_memory(err);
    for (uint32_t i = 0; i < set_count; i++) {
        TRY(find_duplicates(table, &sets[i], arena, &duplicates[i], err));
    }
    table->duplicates = duplicates;
    return STATUS_OK;
}

/* ---- finding ---- */

static uint32_t find_hash(const struct join_table *table, uint64_t hash)
{
    size_t mask = table->slot_count - 1;
    for (size_t place = hash & mask; table->slots[place].tag != 0; place = (place + 1) & mask) {
        if (table->slots[place].hash == hash) return (uint32_t)table->slots[place].tag - 1;
    }
    return ROW_NONE;
}

static uint32_t find_key(const struct join_table *table, uint64_t hash, const struct batch *batch,
                         const uint32_t *columns, uint32_t row)
{
    size_t mask = table->slot_count - 1;
    for (size_t place = hash & mask; table->slots[place].tag != 0; place = (place + 1) & mask) {
        uint64_t tag = table->slots[place].tag;
        if (tag >> 32 != hash >> 32) continue;
        uint32_t found = (uint32_t)tag - 1;
        if (!key_equal(batch, columns, row, &table->rows, table->key_columns, found,
                       table->key_count)) {
            continue;
        }
        /* Checked last: a NULL is almost never there. */
        return key_has_null(batch, columns, table->key_count, row) ? ROW_NONE : found;
    }
    return ROW_NONE;
}

uint32_t join_table_find(const struct join_table *table, uint64_t hash, const struct batch *batch,
                         const uint32_t *columns, uint32_t row)
{
    if (!table->has_words) return find_key(table, hash, batch, columns, row);
    const struct column *keys = &batch->columns[columns[0]];
    return column_is_null(keys, row) ? ROW_NONE : find_hash(table, word_hash(keys, row));
}

/* ---- many rows at once ---- */

/* Writes the selected rows whose key is in the bitmap; NULLs are not. */
static uint32_t keep_in_bitmap(const struct join_table *table, const struct column *keys,
                               struct selection selection, uint32_t *out_rows)
{
    const struct key_filter filter = table->filter;
    uint32_t count = 0;
    for (uint32_t i = 0; i < selection.count; i++) {
        uint32_t row = selection_row(selection, i);
        uint64_t place = (uint64_t)keys->ints[row] - (uint64_t)filter.lowest;
        bool inside = place <= filter.last;
        out_rows[count] = row;
        count += (uint32_t)(bit_get(filter.bits, inside ? place : 0) & inside);
    }
    if (keys->nulls == NULL) return count;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = out_rows[i];
        out_rows[kept] = row;
        kept += keys->nulls[row] == 0;
    }
    return kept;
}

/* Moves those of the rows from `first` to `end` that are in the Bloom filter to place `count` and
 * behind; returns how many there are then. */
static uint32_t keep_in_bloom(const struct join_table *table, struct join_probe *probe,
                              uint32_t first, uint32_t end, uint32_t count)
{
    const struct key_filter filter = table->filter;
    for (uint32_t i = first; i < end; i++) {
        uint64_t hash = probe->hashes[i];
        probe->rows[count] = probe->rows[i];
        probe->hashes[count] = hash;
        count += (uint32_t)bloom_get(&filter, hash);
    }
    return count;
}

static void drop_nulls(const struct column *keys, struct join_probe *probe)
{
    if (keys->nulls == NULL) return;
    uint32_t count = 0;
    for (uint32_t i = 0; i < probe->count; i++) {
        probe->rows[count] = probe->rows[i];
        count += keys->nulls[probe->rows[i]] == 0;
    }
    probe->count = count;
}

/* A Bloom filter that nearly all rows get through costs as much as it could spare. */
static uint32_t keep_if_selective(const struct join_table *table, struct join_probe *probe)
{
    uint32_t trial = probe->count < BLOOM_TRIAL_ROWS ? probe->count : BLOOM_TRIAL_ROWS;
    uint32_t count = keep_in_bloom(table, probe, 0, trial, 0);
    if (count < BLOOM_TRIAL_LEFT) return keep_in_bloom(table, probe, trial, probe->count, count);
    uint32_t rest = probe->count - trial;
    memmove(probe->rows + count, probe->rows + trial, rest * sizeof *probe->rows);
    memmove(probe->hashes + count, probe->hashes + trial, rest * sizeof *probe->hashes);
    return count + rest;
}

/* The row that a hash's first slot names, if it is not another hash's. */
static uint32_t first_candidate(const struct join_table *table, uint64_t hash)
{
    uint64_t tag = table->slots[hash & (table->slot_count - 1)].tag;
    return tag != 0 && tag >> 32 == hash >> 32 ? (uint32_t)tag - 1 : ROW_NONE;
}

/* A large table is not in the cache: keys are prefetched some rows ahead, their bytes a little
 * later, so that the accesses overlap. */
ALWAYS_INLINE void prefetch_keys(const struct join_table *table, const struct join_probe *probe,
                                 uint32_t i)
{
    if (i + 2 * PROBE_AHEAD >= probe->count) return;
    const struct column *keys = &table->rows.columns[0];
    bool is_text = keys->type.kind == TYPE_TEXT;
    uint32_t named = first_candidate(table, probe->hashes[i + 2 * PROBE_AHEAD]);
    if (named != ROW_NONE) {
        __builtin_prefetch(is_text ? (const void *)&keys->texts[named]
                                   : (const void *)&keys->ints[named]);
    }
    named = first_candidate(table, probe->hashes[i + PROBE_AHEAD]);
    if (is_text && named != ROW_NONE) __builtin_prefetch(keys->texts[named].bytes);
}

/* Looks up the probe's rows. */
static void find_all(const struct join_table *table, const struct batch *batch,
                     const uint32_t *columns, struct join_probe *probe)
{
    size_t mask = table->slot_count - 1;
    bool is_far = table->slot_count > FAR_SLOTS;
    for (uint32_t i = 0; i < probe->count; i++) {
        if (is_far && i + 3 * PROBE_AHEAD < probe->count) {
            __builtin_prefetch(&table->slots[probe->hashes[i + 3 * PROBE_AHEAD] & mask]);
        }
        uint64_t hash = probe->hashes[i];
        uint32_t row = probe->rows[i];
        if (table->has_words) {
            bool is_null = column_is_null(&batch->columns[columns[0]], row);
            probe->found[i] = is_null ? ROW_NONE : find_hash(table, hash);
        } else {
            if (is_far) prefetch_keys(table, probe, i);
            probe->found[i] = find_key(table, hash, batch, columns, row);
        }
    }
}

void join_table_probe_all(const struct join_table *table, const struct batch *batch,
                          const uint32_t *columns, struct selection selection,
                          struct join_probe *out)
{
    ASSERT(selection.count <= JOIN_PROBE_ROWS);
    for (uint32_t i = 0; i < selection.count; i++) {
        out->rows[i] = selection_row(selection, i);
    }
    out->count = selection.count;
    hash_keys(table, batch, columns, selection, out->hashes);
    find_all(table, batch, columns, out);
}

void join_table_filter(const struct join_table *table, const struct batch *batch,
                       const uint32_t *columns, struct selection selection, struct join_probe *out)
{
    ASSERT(selection.count <= JOIN_PROBE_ROWS);
    if (table->filter.is_bitmap) {
        out->count = keep_in_bitmap(table, &batch->columns[columns[0]], selection, out->rows);
        return;
    }
    for (uint32_t i = 0; i < selection.count; i++) {
        out->rows[i] = selection_row(selection, i);
    }
    hash_keys(table, batch, columns, selection, out->hashes);
    out->count = keep_in_bloom(table, out, 0, selection.count, 0);
}

void join_table_probe(const struct join_table *table, const struct batch *batch,
                      const uint32_t *columns, struct selection selection, struct join_probe *out)
{
    ASSERT(selection.count <= JOIN_PROBE_ROWS);
    if (table->filter.is_bitmap) {
        out->count = keep_in_bitmap(table, &batch->columns[columns[0]], selection, out->rows);
        hash_keys(table, batch, columns, (struct selection){out->rows, out->count}, out->hashes);
    } else {
        for (uint32_t i = 0; i < selection.count; i++) {
            out->rows[i] = selection_row(selection, i);
        }
        out->count = selection.count;
        hash_keys(table, batch, columns, selection, out->hashes);
        if (table->slots == NULL) {
            out->count = keep_in_bloom(table, out, 0, selection.count, 0);
            drop_nulls(&batch->columns[columns[0]], out);
            return;
        }
        out->count = keep_if_selective(table, out);
    }
    find_all(table, batch, columns, out);
    uint32_t count = 0;
    for (uint32_t i = 0; i < out->count; i++) {
        out->rows[count] = out->rows[i];
        out->found[count] = out->found[i];
        count += out->found[i] != ROW_NONE;
    }
    out->count = count;
}
