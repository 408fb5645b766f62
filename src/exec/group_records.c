/* group_records.c - open addressing over records in blocks.
 *
 * A slot holds 32 bits of the hash beside the group's number, so that a probe looks at a record
 * only when it is almost certainly the right one. The table doubles at half full; growing reads the
 * hashes from the records.
 */
#include "exec/group_records.h"

#include "base/assert.h"
#include "exec/key_hash.h"

enum {
    FIRST_SLOTS = 256,
    /* The first blocks come one by one; then so many at a time, which is enough memory in one piece
     * for the system to give it in large pages. */
    SLAB_BLOCKS = 64,
    /* A table of so many slots is no longer in the nearest cache: the slots of all rows are asked
     * for together, then the records these name. */
    FAR_SLOTS = 1 << 13,
    SLOTS_AHEAD = 24, /* When growing. */
    WORD_KEYS = 4,    /* So many keys that are words are compared without a question for each. */
};

static size_t key_size(uint8_t kind)
{
    return kind == TYPE_TEXT ? sizeof(struct text) : sizeof(int64_t);
}

/* hash, a byte per key that is 1 for NULL (padded to 8), keys, states */
static bool lay_out(struct group_records *records, struct group_layout layout,
                    size_t *out_state_offset)
{
    records->keys = arena_array(&records->arena, struct key_place, layout.key_count + 1);
    if (records->keys == NULL) return false;
    records->key_count = layout.key_count;
    size_t size = sizeof(uint64_t) + (layout.key_count + 7) / 8 * 8;
    for (uint32_t i = 0; i < layout.key_count; i++) {
        records->keys[i] = (struct key_place){size, layout.schema.fields[i].type.kind};
        size += key_size(records->keys[i].kind);
    }
    *out_state_offset = size;
    records->record_size = size + layout.state_size;
    return true;
}

bool group_records_init(struct group_records *records, struct group_layout layout,
                        struct budget *budget, size_t *out_state_offset)
{
    *records = (struct group_records){.budget = budget};
    arena_init(&records->arena, budget);
    arena_init(&records->texts, budget);
    records->hashes = arena_array(&records->arena, uint64_t, GROUP_SLICE_ROWS);
    records->slots = memory_alloc(budget, FIRST_SLOTS * sizeof *records->slots);
    if (records->slots == NULL) return false;
    records->slot_count = FIRST_SLOTS;
    memset(records->slots, 0, FIRST_SLOTS * sizeof *records->slots);
    return records->hashes != NULL && lay_out(records, layout, out_state_offset);
}

/* How many blocks are allocated together with the one of this number. */
static size_t slab_blocks(size_t block)
{
    return block < SLAB_BLOCKS ? 1 : SLAB_BLOCKS;
}

static size_t slab_bytes(const struct group_records *records, size_t block)
{
    return slab_blocks(block) * GROUP_BLOCK_RECORDS * records->record_size;
}

void group_records_done(struct group_records *records)
{
    struct budget *budget = records->budget;
    for (size_t i = 0; i < records->block_count; i += slab_blocks(i)) {
        memory_free(budget, records->blocks[i], slab_bytes(records, i));
    }
    memory_free(budget, records->blocks, records->block_capacity * sizeof *records->blocks);
    memory_free(budget, records->slots, records->slot_count * sizeof *records->slots);
    arena_done(&records->arena);
    arena_done(&records->texts);
}

void group_records_reset(struct group_records *records)
{
    memset(records->slots, 0, records->slot_count * sizeof *records->slots);
    records->count = 0;
    arena_reset(&records->texts);
}

/* ---- making room ---- */

static bool slab_add(struct group_records *records)
{
    size_t first = records->block_count;
    size_t count = slab_blocks(first);
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
        records->blocks[records->block_count++] =
            slab + i * GROUP_BLOCK_RECORDS * records->record_size;
    }
    return true;
}

bool group_records_add(struct group_records *records, unsigned char **out_record)
{
    if (records->count == UINT32_MAX - 1) return false;
    if (records->count == records->block_count * GROUP_BLOCK_RECORDS && !slab_add(records)) {
        return false;
    }
    unsigned char *record = group_record(records, records->count++);
    memset(record, 0, records->record_size);
    *out_record = record;
    return true;
}

static size_t slots_for(size_t group_count)
{
    size_t slot_count = FIRST_SLOTS;
    while (slot_count < group_count * 2) {
        slot_count *= 2;
    }
    return slot_count;
}

/* Puts all groups into so many slots. */
static bool slots_make(struct group_records *records, size_t slot_count)
{
    uint64_t *slots = memory_alloc(records->budget, slot_count * sizeof *slots);
    if (slots == NULL) return false;
    memset(slots, 0, slot_count * sizeof *slots);
    for (uint32_t group = 0; group < records->count; group++) {
        uint64_t hash = group_record_hash(group_record(records, group));
        size_t place = hash & (slot_count - 1);
        if (group + SLOTS_AHEAD < records->count) {
            uint64_t later = group_record_hash(group_record(records, group + SLOTS_AHEAD));
            __builtin_prefetch(&slots[later & (slot_count - 1)], 1);
        }
        while (slots[place] != 0) {
            place = (place + 1) & (slot_count - 1);
        }
        slots[place] = (hash >> 32 << 32) | (group + 1);
    }
    memory_free(records->budget, records->slots, records->slot_count * sizeof *slots);
    records->slots = slots;
    records->slot_count = slot_count;
    return true;
}

size_t group_records_need(const struct group_records *records, uint32_t more)
{
    size_t group_count = (size_t)records->count + more;
    size_t block_count = group_count / GROUP_BLOCK_RECORDS + 1;
    size_t need = 0;
    for (size_t block = records->block_count; block < block_count; block += slab_blocks(block)) {
        need += slab_bytes(records, block);
    }
    size_t slot_count = slots_for(group_count);
    if (slot_count > records->slot_count) need += slot_count * sizeof *records->slots;
    return need;
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
    bool are_words; /* There are one to WORD_KEYS, all integers of a kind, and none is NULL: */
    const int64_t *words[WORD_KEYS];
};

static bool is_word(const struct column *column)
{
    switch ((enum type_kind)column->type.kind) {
    case TYPE_INT:
    case TYPE_DECIMAL:
    case TYPE_DATE:
    case TYPE_TIMESTAMP:
        return column->nulls == NULL;
    case TYPE_NULL:
    case TYPE_BOOL:
    case TYPE_DOUBLE:
    case TYPE_TEXT:
    case TYPE_LIST_TEXT:
    case TYPE_LIST_INT:
        break;
    }
    return false;
}

static struct key_rows key_rows_of(const struct group_records *records, const struct batch *batch,
                                   const uint32_t *columns)
{
    struct key_rows keys = {.batch = batch, .columns = columns};
    uint32_t count = records->key_count;
    keys.are_words = count > 0 && count <= WORD_KEYS;
    for (uint32_t i = 0; keys.are_words && i < count; i++) {
        keys.are_words = is_word(&batch->columns[columns[i]]);
        keys.words[i] = batch->columns[columns[i]].ints;
    }
    return keys;
}

/* Keys that are words stand one after the other behind the bytes for NULL, which are a word too. */
static bool record_matches_words(const unsigned char *record, const struct key_rows *keys,
                                 uint32_t key_count, uint32_t row)
{
    _Static_assert(WORD_KEYS <= sizeof(uint64_t), "a byte for each");
    uint64_t difference;
    memcpy(&difference, record + sizeof(uint64_t), sizeof difference);
    for (uint32_t i = 0; i < key_count; i++) {
        uint64_t word;
        memcpy(&word, record + (2 + i) * sizeof(uint64_t), sizeof word);
        difference |= word ^ (uint64_t)keys->words[i][row];
    }
    return difference == 0;
}

static bool record_matches(const struct group_records *records, const unsigned char *record,
                           const struct key_rows *keys, uint32_t row)
{
    uint32_t key_count = records->key_count;
    if (keys->are_words) return record_matches_words(record, keys, key_count, row);
    const unsigned char *nulls = record + sizeof(uint64_t);
    for (uint32_t i = 0; i < key_count; i++) {
        const struct column *column = &keys->batch->columns[keys->columns[i]];
        const void *key = record + records->keys[i].offset;
        bool is_null = column_is_null(column, row);
        if (is_null != (nulls[i] != 0)) return false;
        if (is_null) continue;
        if (records->keys[i].kind == TYPE_TEXT) {
            struct text text;
            memcpy(&text, key, sizeof text);
            if (!text_equal(text, column->texts[row])) return false;
        } else {
            int64_t word;
            memcpy(&word, key, sizeof word);
            if (word != group_key_word(column, row)) return false;
        }
    }
    return true;
}

static bool record_fill(struct group_records *records, unsigned char *record, uint64_t hash,
                        const struct key_rows *keys, uint32_t row)
{
    memcpy(record, &hash, sizeof hash);
    unsigned char *nulls = record + sizeof hash;
    for (uint32_t i = 0; i < records->key_count; i++) {
        const struct column *column = &keys->batch->columns[keys->columns[i]];
        void *key = record + records->keys[i].offset;
        nulls[i] = column_is_null(column, row);
        if (nulls[i]) continue;
        if (records->keys[i].kind == TYPE_TEXT) {
            struct text text = column->texts[row];
            text.bytes = arena_copy_string(&records->texts, text);
            if (text.bytes == NULL) return false;
            memcpy(key, &text, sizeof text);
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
    size_t mask = records->slot_count - 1;
    size_t place = hash & mask;
    for (; records->slots[place] != 0; place = (place + 1) & mask) {
        uint64_t slot = records->slots[place];
        if (slot >> 32 != hash >> 32) continue;
        unsigned char *record = group_record(records, (uint32_t)slot - 1);
        if (record_matches(records, record, keys, row)) return record;
    }
    unsigned char *record;
    if (!group_records_add(records, &record)) return NULL;
    if (!record_fill(records, record, hash, keys, row)) return NULL;
    records->slots[place] = (hash >> 32 << 32) | records->count;
    if ((size_t)records->count * 2 > records->slot_count &&
        !slots_make(records, records->slot_count * 2)) {
        return NULL;
    }
    return record;
}

/* All slots before the first record: batches are short, and asking a few rows ahead would leave
 * their first rows waiting. Inline: a function that only asks has no effect for a compiler. */
ALWAYS_INLINE void ask_ahead(const struct group_records *records, const uint64_t *hashes,
                             uint32_t count)
{
    size_t mask = records->slot_count - 1;
    for (uint32_t i = 0; i < count; i++) {
        __builtin_prefetch(&records->slots[hashes[i] & mask]);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t slot = records->slots[hashes[i] & mask];
        if (slot != 0) __builtin_prefetch(group_record(records, (uint32_t)slot - 1));
    }
}

bool group_records_find(struct group_records *records, const struct batch *batch,
                        const uint32_t *key_columns, struct selection selection,
                        unsigned char **out_records)
{
    ASSERT(selection.count <= GROUP_SLICE_ROWS);
    const uint64_t *hashes = records->hashes;
    const struct key_rows keys = key_rows_of(records, batch, key_columns);
    key_hash(batch, key_columns, records->key_count, selection, records->hashes);
    if (records->slot_count > FAR_SLOTS) ask_ahead(records, hashes, selection.count);
    for (uint32_t i = 0; i < selection.count; i++) {
        out_records[i] = find_or_add(records, hashes[i], &keys, selection_row(selection, i));
        if (out_records[i] == NULL) return false;
    }
    return true;
}

/* ---- out again ---- */

bool group_records_read(const struct group_records *records, unsigned char *const *from,
                        uint32_t count, struct column *columns, struct arena *arena)
{
    for (uint32_t i = 0; i < records->key_count; i++) {
        struct column *column = &columns[i];
        for (uint32_t j = 0; j < count; j++) {
            const unsigned char *key = from[j] + records->keys[i].offset;
            if (from[j][sizeof(uint64_t) + i] != 0) {
                if (!column_need_nulls(column, count, arena)) return false;
                column->nulls[j] = 1;
            }
            if (column->type.kind == TYPE_TEXT) {
                memcpy(&column->texts[j], key, sizeof column->texts[j]);
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
        int nulls = (int)a[sizeof(uint64_t) + i] - (int)b[sizeof(uint64_t) + i];
        if (nulls != 0) return nulls;
        const unsigned char *key_a = a + records->keys[i].offset;
        const unsigned char *key_b = b + records->keys[i].offset;
        int order;
        if (records->keys[i].kind == TYPE_TEXT) {
            struct text texts[2];
            memcpy(&texts[0], key_a, sizeof texts[0]);
            memcpy(&texts[1], key_b, sizeof texts[1]);
            order = text_compare(texts[0], texts[1]);
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
