/* SPDX-License-Identifier: Apache-2.0 */
/* group_records.c - records in blocks, found by slots, or by a window over narrow keys.
 *
 * Keys that are integers of narrow ranges need neither hash nor comparison: once that shows, a
 * window (key_window.h) takes the slots' place (group_slots.h). When a later key would make it too
 * large, the slots come back, for good. The records are the same either way.
 */
#include "engine/exec/fold/group_records.h"

#include "engine/base/assert.h"
#include "engine/base/packed_text.h"
#include "engine/data/key_hash.h"

enum {
    LINE_BYTES = 64,
    /* The first blocks come one by one; then so much at a time, in large pages. */
    LONE_BLOCKS = 64,
    SLAB_BYTES = 4 << 20,
    /* A table of so many slots is no longer in the first-level cache: the slots of all rows are
     * prefetched together, then the records these name. */
    FAR_SLOTS = 1 << 13,
    READ_AHEAD = 48, /* Records are prefetched so many rows before they are read. */
    /* A window is considered after so many rows, and whenever the slots have doubled. It may have
     * the larger of so many places and so many for each group: the first fit the nearest cache, the
     * second take about as much memory as records do. */
    WINDOW_ROWS = 8192,
    WINDOW_PLACES = 4096,
    WINDOW_PLACES_PER_GROUP = 32,
    WINDOW_SLACK = 8, /* It is wider than the keys so far, by one part in so many. */
};

static size_t key_size(uint8_t kind)
{
    return kind == TYPE_TEXT ? sizeof(struct packed_text) : sizeof(int64_t);
}

/* A record that is about as large as a line of the cache should not lie in two of them. */
static size_t record_size(size_t size)
{
    return size > LINE_BYTES / 2 && size < LINE_BYTES ? LINE_BYTES : size;
}

/* [hash,] a byte per key that is 1 for NULL (padded to 8), keys, states */
static bool lay_out(struct group_records *records, struct group_layout layout,
                    size_t *out_state_offset)
{
    records->keys = arena_array(&records->arena, struct key_place, layout.key_count + 1);
    if (records->keys == NULL) return false;
    records->key_count = layout.key_count;
    records->are_words = layout.key_count > 0 && layout.key_count <= KEY_WINDOW_KEYS;
    for (uint32_t i = 0; i < layout.key_count; i++) {
        if (!key_window_takes(layout.schema.fields[i].type)) records->are_words = false;
    }
    records->null_offset = records->are_words ? 0 : sizeof(uint64_t);
    size_t size = records->null_offset + (layout.key_count + 7) / 8 * 8;
    for (uint32_t i = 0; i < layout.key_count; i++) {
        records->keys[i] = (struct key_place){size, layout.schema.fields[i].type.kind};
        size += key_size(records->keys[i].kind);
    }
    *out_state_offset = size;
    records->record_size = record_size(size + layout.state_size);
    return true;
}

bool group_records_init(struct group_records *records, struct group_layout layout,
                        struct budget *budget, size_t *out_state_offset)
{
    *records = (struct group_records){.budget = budget};
    arena_init(&records->arena, budget);
    arena_init(&records->texts, budget);
    records->hashes = arena_array(&records->arena, uint64_t, GROUP_SLICE_ROWS);
    return group_slots_init(&records->slots, 0, budget) && records->hashes != NULL &&
           lay_out(records, layout, out_state_offset);
}

static size_t block_bytes(const struct group_records *records)
{
    return GROUP_BLOCK_RECORDS * records->record_size;
}

/* How many blocks are allocated together with the one of this number. */
static size_t slab_blocks(const struct group_records *records, size_t block)
{
    if (block < LONE_BLOCKS) return 1;
    return (SLAB_BYTES + block_bytes(records) - 1) / block_bytes(records);
}

static size_t slab_bytes(const struct group_records *records, size_t block)
{
    return slab_blocks(records, block) * block_bytes(records);
}

void group_records_done(struct group_records *records)
{
    struct budget *budget = records->budget;
    for (size_t i = 0; i < records->block_count; i += slab_blocks(records, i)) {
        memory_free(budget, records->blocks[i], slab_bytes(records, i));
    }
    memory_free(budget, records->blocks, records->block_capacity * sizeof *records->blocks);
    group_slots_done(&records->slots, budget);
    key_window_done(&records->window, budget);
    arena_done(&records->arena);
    arena_done(&records->texts);
}

static uint32_t *window_entry(const struct key_window *window, const unsigned char *record)
{
    return &window->groups[key_window_place(window, group_record_words(record), record)];
}

void group_records_reset(struct group_records *records)
{
    struct key_window *window = &records->window;
    /* Of few groups only the entries are cleared. */
    bool are_few = records->count < window->place_count / WINDOW_PLACES_PER_GROUP;
    for (uint32_t group = 0; group < records->count && are_few; group++) {
        *window_entry(window, group_record(records, group)) = 0;
    }
    if (window->place_count > 0 && !are_few) {
        memset(window->groups, 0, window->place_count * sizeof *window->groups);
    }
    if (window->place_count > 0) {
        group_slots_done(&records->slots, records->budget);
    } else {
        group_slots_clear(&records->slots);
    }
    records->in_order = false;
    records->count = 0;
    arena_reset(&records->texts);
}

/* ---- making room ---- */

static bool slab_add(struct group_records *records)
{
    size_t first = records->block_count;
    size_t count = slab_blocks(records, first);
    if (first + count > records->block_capacity) {
        size_t grown = records->block_capacity == 0 ? 16 : records->block_capacity * 2;
        if (grown < first + count) grown = first + count;
        unsigned char **blocks =
            memory_resize(records->budget, records->blocks,
                          records->block_capacity * sizeof *blocks, grown * sizeof *blocks);
        if (blocks == NULL) return false;
        records->blocks = blocks;
        records->block_capacity = grown;
    }
    unsigned char *slab = memory_alloc_line(records->budget, slab_bytes(records, first));
    if (slab == NULL) return false;
    for (size_t i = 0; i < count; i++) {
        records->blocks[records->block_count++] = slab + i * block_bytes(records);
    }
    return true;
}

bool group_records_add(struct group_records *records, unsigned char **out_record)
{
    ASSERT(!records->in_order);
    if (records->count == UINT32_MAX - 1) return false;
    if (records->count == records->block_count * GROUP_BLOCK_RECORDS && !slab_add(records)) {
        return false;
    }
    unsigned char *record = group_record(records, records->count++);
    memset(record, 0, records->record_size);
    *out_record = record;
    return true;
}

/* Slots for all groups, with room for so many more; there were none. */
static bool slots_make(struct group_records *records, uint32_t more)
{
    ASSERT(records->slots.count == 0);
    size_t group_count = (size_t)records->count + more;
    if (!group_slots_init(&records->slots, group_count, records->budget)) return false;
    for (uint32_t group = 0; group < records->count; group++) {
        uint64_t hash = group_record_hash(records, group_record(records, group));
        group_slots_put(&records->slots, group_slot(hash, group));
    }
    return true;
}

static bool takes_window(const struct group_records *records)
{
    return records->are_words && !records->window_gone;
}

static size_t window_limit(size_t group_count)
{
    size_t limit = group_count * WINDOW_PLACES_PER_GROUP;
    if (limit < WINDOW_PLACES) limit = WINDOW_PLACES;
    return limit < KEY_WINDOW_LIMIT ? limit : KEY_WINDOW_LIMIT;
}

size_t group_records_need(const struct group_records *records, uint32_t more)
{
    size_t group_count = (size_t)records->count + more;
    size_t block_count = group_count / GROUP_BLOCK_RECORDS + 1;
    size_t need = 0;
    for (size_t block = records->block_count; block < block_count;
         block += slab_blocks(records, block)) {
        need += slab_bytes(records, block);
    }
    need += group_slots_need(&records->slots, group_count);
    if (takes_window(records)) need += window_limit(group_count) * sizeof *records->window.groups;
    return need;
}

/* ---- from slots to a window, and back ---- */

static void range_widen(struct key_range *range)
{
    if (range->lowest > range->highest) return;
    int64_t slack = (int64_t)(((uint64_t)range->highest - (uint64_t)range->lowest) / WINDOW_SLACK);
    if (__builtin_sub_overflow(range->lowest, slack, &range->lowest)) range->lowest = INT64_MIN;
    if (__builtin_add_overflow(range->highest, slack, &range->highest)) range->highest = INT64_MAX;
}

/* Makes a window of these ranges, in which all groups lie, unless it would be too large: then
 * everything stays as it is. */
static bool window_make(struct group_records *records, const struct key_range *ranges)
{
    uint32_t key_count = records->key_count;
    size_t limit = window_limit(records->count);
    struct key_range wide[KEY_WINDOW_KEYS];
    struct key_window window;
    if (key_window_needs(ranges, key_count) > limit) return true;
    for (uint32_t i = 0; i < key_count; i++) {
        wide[i] = ranges[i];
        range_widen(&wide[i]);
    }
    bool has_slack = key_window_needs(wide, key_count) <= limit;
    if (!key_window_init(&window, has_slack ? wide : ranges, key_count, records->budget)) {
        return false;
    }
    for (uint32_t group = 0; group < records->count; group++) {
        *window_entry(&window, group_record(records, group)) = group + 1;
    }
    group_slots_done(&records->slots, records->budget);
    key_window_done(&records->window, records->budget);
    records->window = window;
    return true;
}

/* The groups there are say whether a window pays. */
static bool window_look(struct group_records *records)
{
    struct key_range ranges[KEY_WINDOW_KEYS];
    records->window_due = false;
    if (records->count == 0 || records->count > KEY_WINDOW_LIMIT) return true;
    for (uint32_t i = 0; i < records->key_count; i++) {
        ranges[i] = KEY_RANGE_NONE;
    }
    for (uint32_t group = 0; group < records->count; group++) {
        const unsigned char *record = group_record(records, group);
        for (uint32_t i = 0; i < records->key_count; i++) {
            if (record[i] == 0) key_range_add(&ranges[i], group_record_words(record)[i]);
        }
    }
    return window_make(records, ranges);
}

/* Some of the rows lie outside: a wider window, or slots from now on. */
static bool window_leave(struct group_records *records, const struct batch *batch,
                         const uint32_t *columns, struct selection selection)
{
    const uint32_t *groups = records->window.groups;
    struct key_range ranges[KEY_WINDOW_KEYS];
    for (uint32_t i = 0; i < records->key_count; i++) {
        ranges[i] = records->window.keys[i].range;
    }
    key_ranges_add(ranges, records->key_count, batch, columns, selection);
    if (!window_make(records, ranges)) return false;
    if (records->window.groups != groups) return true;
    if (!slots_make(records, 1)) return false;
    key_window_done(&records->window, records->budget);
    records->window_gone = true;
    return true;
}

/* ---- keys ---- */

int64_t group_key_word(const struct column *column, uint32_t row)
{
    if (column->type.kind == TYPE_BOOL || column->type.kind == TYPE_NULL) return column->bools[row];
    if (column->type.kind != TYPE_DOUBLE) return column->ints[row];
    double value = column->doubles[row];
    if (value == 0) value = 0.0;
    if (value != value) value = __builtin_nan("");
    int64_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}

/* Where the keys of some rows are. */
struct key_rows {
    const struct batch *batch;
    const uint32_t *columns;
    bool are_words; /* The records' keys are, and none of the rows' is NULL: */
    const int64_t *words[KEY_WINDOW_KEYS];
};

static struct key_rows key_rows_of(const struct group_records *records, const struct batch *batch,
                                   const uint32_t *columns)
{
    struct key_rows keys = {.batch = batch, .columns = columns};
    keys.are_words = records->are_words;
    for (uint32_t i = 0; keys.are_words && i < records->key_count; i++) {
        keys.are_words = batch->columns[columns[i]].nulls == NULL;
        keys.words[i] = batch->columns[columns[i]].ints;
    }
    return keys;
}

/* The bytes for NULL are a word too. */
static bool record_matches_words(const unsigned char *record, const struct key_rows *keys,
                                 uint32_t key_count, uint32_t row)
{
    _Static_assert(KEY_WINDOW_KEYS <= sizeof(uint64_t), "a byte for each");
    const int64_t *words = group_record_words(record);
    int64_t difference;
    memcpy(&difference, record, sizeof difference);
    for (uint32_t i = 0; i < key_count; i++) {
        difference |= words[i] ^ keys->words[i][row];
    }
    return difference == 0;
}

static bool record_matches(const struct group_records *records, const unsigned char *record,
                           const struct key_rows *keys, uint32_t row)
{
    uint32_t key_count = records->key_count;
    if (keys->are_words) return record_matches_words(record, keys, key_count, row);
    const unsigned char *nulls = record + records->null_offset;
    for (uint32_t i = 0; i < key_count; i++) {
        const struct column *column = &keys->batch->columns[keys->columns[i]];
        const void *key = record + records->keys[i].offset;
        bool is_null = column_is_null(column, row);
        if (is_null != (nulls[i] != 0)) return false;
        if (is_null) continue;
        if (records->keys[i].kind == TYPE_TEXT) {
            struct packed_text wanted = packed_text_of(column->texts[row]);
            if (!packed_text_equal(key, &wanted)) return false;
        } else {
            int64_t word;
            memcpy(&word, key, sizeof word);
            if (word != group_key_word(column, row)) return false;
        }
    }
    return true;
}

static bool text_keep(struct group_records *records, struct text text, struct packed_text *out)
{
    if (text.size > PACKED_TEXT_SHORT) {
        text.bytes = arena_copy_string(&records->texts, text);
        if (text.bytes == NULL) return false;
    }
    *out = packed_text_of(text);
    return true;
}

/* A group of keys that are words. */
static bool record_add_words(struct group_records *records, const struct key_rows *keys,
                             uint32_t row, unsigned char **out_record)
{
    if (!group_records_add(records, out_record)) return false;
    unsigned char *nulls = *out_record;
    int64_t *words = (int64_t *)(void *)(nulls + sizeof(uint64_t));
    for (uint32_t i = 0; i < records->key_count; i++) {
        const struct column *column = &keys->batch->columns[keys->columns[i]];
        nulls[i] = column_is_null(column, row);
        words[i] = nulls[i] != 0 ? 0 : column->ints[row];
    }
    return true;
}

static bool record_add(struct group_records *records, uint64_t hash, const struct key_rows *keys,
                       uint32_t row, unsigned char **out_record)
{
    if (!group_records_add(records, out_record)) return false;
    unsigned char *record = *out_record;
    unsigned char *nulls = record + records->null_offset;
    memcpy(record, &hash, sizeof hash);
    for (uint32_t i = 0; i < records->key_count; i++) {
        const struct column *column = &keys->batch->columns[keys->columns[i]];
        void *key = record + records->keys[i].offset;
        nulls[i] = column_is_null(column, row);
        if (nulls[i]) continue;
        if (records->keys[i].kind == TYPE_TEXT) {
            if (!text_keep(records, column->texts[row], key)) return false;
        } else {
            int64_t word = group_key_word(column, row);
            memcpy(key, &word, sizeof word);
        }
    }
    return true;
}

/* ---- rows to records ---- */

static unsigned char *find_or_add(struct group_records *records, uint64_t hash,
                                  const struct key_rows *keys, uint32_t row)
{
    struct group_slots *slots = &records->slots;
    size_t place = group_slots_home(slots, hash);
    for (; slots->items[place] != 0; place = group_slots_next(slots, place)) {
        uint64_t slot = slots->items[place];
        if (!group_slot_fits(slot, hash)) continue;
        unsigned char *record = group_record(records, group_slot_group(slot));
        if (record_matches(records, record, keys, row)) return record;
    }
    unsigned char *record;
    bool is_added = records->are_words ? record_add_words(records, keys, row, &record)
                                       : record_add(records, hash, keys, row, &record);
    if (!is_added) return NULL;
    slots->items[place] = group_slot(hash, records->count - 1);
    bool is_full = (size_t)records->count * 2 > slots->count;
    if (is_full && !group_slots_grow(slots, records->budget)) return NULL;
    return record;
}

/* A record that is smaller than a line of the cache may lie in two of them. */
ALWAYS_INLINE void ask_for_record(const struct group_records *records, const unsigned char *record)
{
    __builtin_prefetch(record);
    if (records->record_size < LINE_BYTES) __builtin_prefetch(record + records->record_size - 1);
}

/* All slots before the first record (group prefetching: Chen, Ailamaki, Gibbons, Mowry, 2004):
 * batches are short, and prefetching a few rows ahead would leave their first rows waiting. Inline:
 * a function that only asks has no effect for a compiler. */
ALWAYS_INLINE void ask_ahead(const struct group_records *records, const uint64_t *hashes,
                             uint32_t count)
{
    const struct group_slots *slots = &records->slots;
    for (uint32_t i = 0; i < count; i++) {
        __builtin_prefetch(&slots->items[group_slots_home(slots, hashes[i])]);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t slot = slots->items[group_slots_home(slots, hashes[i])];
        if (slot != 0) ask_for_record(records, group_record(records, group_slot_group(slot)));
    }
}

static bool find_in_slots(struct group_records *records, const struct key_rows *keys,
                          struct selection selection, unsigned char **out_records)
{
    const uint64_t *hashes = records->hashes;
    size_t slot_count = records->slots.count;
    key_hash(keys->batch, keys->columns, records->key_count, selection, records->hashes);
    if (slot_count > FAR_SLOTS) ask_ahead(records, hashes, selection.count);
    for (uint32_t i = 0; i < selection.count; i++) {
        out_records[i] = find_or_add(records, hashes[i], keys, selection_row(selection, i));
        if (out_records[i] == NULL) return false;
    }
    if (records->slots.count != slot_count) records->window_due = takes_window(records);
    return true;
}

/* The records of all rows whose group is there, and which are not. A row without one gets the first
 * record until its own is made: no branch, and all memory is requested before any of it is needed.
 */
static uint32_t window_find(const struct group_records *records, const uint32_t *places,
                            uint32_t count, uint32_t *restrict missed,
                            unsigned char **restrict out_records)
{
    const uint32_t *groups = records->window.groups;
    unsigned char *const *blocks = records->blocks;
    size_t record_size = records->record_size;
    uint32_t missed_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        __builtin_prefetch(&groups[places[i]], 1);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t group = groups[places[i]];
        bool is_there = group != 0;
        missed[missed_count] = i;
        missed_count += !is_there;
        group -= is_there;
        out_records[i] =
            blocks[group / GROUP_BLOCK_RECORDS] + group % GROUP_BLOCK_RECORDS * record_size;
        __builtin_prefetch(out_records[i], 1);
    }
    return missed_count;
}

static bool find_in_window(struct group_records *records, const struct key_rows *keys,
                           struct selection selection, const uint32_t *places,
                           unsigned char **out_records)
{
    uint32_t missed[GROUP_SLICE_ROWS + 1];
    uint32_t missed_count = window_find(records, places, selection.count, missed, out_records);
    for (uint32_t i = 0; i < missed_count; i++) {
        uint32_t *group = &records->window.groups[places[missed[i]]];
        unsigned char **record = &out_records[missed[i]];
        if (*group != 0) { /* It came with a row before. */
            *record = group_record(records, *group - 1);
            continue;
        }
        uint32_t row = selection_row(selection, missed[i]);
        if (!record_add_words(records, keys, row, record)) return false;
        *group = records->count;
    }
    return true;
}

bool group_records_find(struct group_records *records, const struct batch *batch,
                        const uint32_t *key_columns, struct selection selection,
                        unsigned char **out_records)
{
    ASSERT(selection.count <= GROUP_SLICE_ROWS && !records->in_order);
    struct key_window *window = &records->window;
    uint32_t places[GROUP_SLICE_ROWS];
    if (takes_window(records) && records->rows_seen < WINDOW_ROWS) {
        records->rows_seen += selection.count;
        records->window_due = records->rows_seen >= WINDOW_ROWS;
    }
    if (records->window_due && !window_look(records)) return false;
    while (window->place_count > 0 &&
           !key_window_places(window, batch, key_columns, selection, places)) {
        if (!window_leave(records, batch, key_columns, selection)) return false;
    }
    const struct key_rows keys = key_rows_of(records, batch, key_columns);
    return window->place_count > 0 ? find_in_window(records, &keys, selection, places, out_records)
                                   : find_in_slots(records, &keys, selection, out_records);
}

/* ---- out again ---- */

bool group_records_read(const struct group_records *records, unsigned char *const *from,
                        uint32_t count, struct column *columns, struct arena *arena)
{
    for (uint32_t i = 0; i < records->key_count; i++) {
        struct column *column = &columns[i];
        for (uint32_t j = 0; j < count; j++) {
            if (i == 0 && j + READ_AHEAD < count) ask_for_record(records, from[j + READ_AHEAD]);
            const unsigned char *key = from[j] + records->keys[i].offset;
            if (from[j][records->null_offset + i] != 0) {
                if (!column_need_nulls(column, count, arena)) return false;
                column->nulls[j] = 1;
            }
            if (column->type.kind == TYPE_TEXT) {
                column->texts[j] = packed_text_get((const void *)key);
            } else if (column->type.kind == TYPE_BOOL || column->type.kind == TYPE_NULL) {
                column->bools[j] = key[0];
            } else {
                memcpy(&column->ints[j], key, sizeof column->ints[j]);
            }
        }
    }
    return true;
}

int group_records_compare(const struct group_records *records, const unsigned char *a,
                          const unsigned char *b)
{
    for (uint32_t i = 0; i < records->key_count; i++) {
        int nulls = (int)a[records->null_offset + i] - (int)b[records->null_offset + i];
        if (nulls != 0) return nulls;
        const unsigned char *key_a = a + records->keys[i].offset;
        const unsigned char *key_b = b + records->keys[i].offset;
        int order;
        if (records->keys[i].kind == TYPE_TEXT) {
            order = text_compare(packed_text_get((const void *)key_a),
                                 packed_text_get((const void *)key_b));
        } else {
            int64_t words[2];
            memcpy(&words[0], key_a, sizeof words[0]);
            memcpy(&words[1], key_b, sizeof words[1]);
            order = (words[0] > words[1]) - (words[0] < words[1]);
        }
        if (order != 0) return order;
    }
    return 0;
}

/* ---- in order ---- */

size_t group_records_order_need(const struct group_records *records)
{
    if (records->window.place_count == 0) return 0;
    return group_slots_need(&records->slots, records->count);
}

/* By whole hashes, then by keys. */
static int slot_compare(const struct group_records *records, uint64_t a, uint64_t b)
{
    const unsigned char *record_a = group_record(records, group_slot_group(a));
    const unsigned char *record_b = group_record(records, group_slot_group(b));
    uint64_t hash_a = group_record_hash(records, record_a);
    uint64_t hash_b = group_record_hash(records, record_b);
    if (hash_a != hash_b) return hash_a < hash_b ? -1 : 1;
    return group_records_compare(records, record_a, record_b);
}

/* Some groups whose hashes have one upper half: these are rare, and so few that a plain insertion
 * puts the rest of the hashes and the keys in order. */
static void order_equals(const struct group_records *records, uint64_t *slots, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        uint64_t slot = slots[i];
        size_t place = i;
        while (place > 0 && slot_compare(records, slots[place - 1], slot) > 0) {
            slots[place] = slots[place - 1];
            place--;
        }
        slots[place] = slot;
    }
}

bool group_records_order(struct group_records *records)
{
    if (records->in_order || records->key_count == 0) return true;
    bool by_window = records->window.place_count > 0;
    if (by_window && !slots_make(records, 0)) return false;
    size_t count = group_slots_sort(&records->slots);
    uint64_t *slots = records->slots.items;
    ASSERT(count == records->count);
    for (size_t first = 0, end; first < count; first = end) {
        end = first + 1;
        while (end < count && slots[end] >> 32 == slots[first] >> 32) {
            end++;
        }
        order_equals(records, slots + first, end - first);
    }
    records->in_order = true;
    return true;
}
