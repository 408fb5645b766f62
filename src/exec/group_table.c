/* group_table.c - open addressing over records in blocks.
 *
 * A slot holds 32 bits of the hash beside the group's number, so that a probe looks at a record
 * only when it is almost certainly the right one. The table doubles at half full; growing reads the
 * hashes from the records.
 */
#include "exec/group_table.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/radix_sort.h"
#include "exec/aggregate_state.h"
#include "exec/key_hash.h"

enum {
    FIRST_SLOTS = 256,
    BLOCK_RECORDS = 1024,
    /* The first blocks come one by one; then so many at a time, which is enough memory in one piece
     * for the system to give it in large pages. */
    SLAB_BLOCKS = 64,
    SLICE_ROWS = 2048, /* Rows handled at a time: their record pointers stay in the cache. */
    /* A table of so many slots is no longer in the nearest cache: the slots of so many rows are
     * asked for together, then the records these name. */
    FAR_SLOTS = 1 << 13,
    ROWS_AHEAD = 128,
    SLOTS_AHEAD = 24, /* When growing. */
    /* When of the first rows so few share their key with another, there are some fifty thousand
     * keys or more: as many as a chunk has rows, and looking for the others' is in vain. */
    TRIAL_ROWS = 512,
    TRIAL_SHARED = 3,
    WORD_KEYS = 4, /* So many keys that are words are compared without a question for each. */
};

struct key_place {
    size_t offset; /* In the record. */
    uint8_t kind;
};

struct group_table {
    const struct grouping *grouping;
    struct budget *budget;
    uint64_t *slots; /* hash's upper half << 32 | group + 1; 0: free */
    size_t slot_count;
    unsigned char **blocks;
    size_t block_capacity;
    size_t block_count;
    uint32_t group_count;
    size_t record_size;
    struct key_place *keys;
    size_t *state_offsets;
    uint32_t *merge_keys; /* 0, 1, 2...: keys are the first columns of a partial batch. */
    uint32_t *order;
    size_t order_capacity;
    uint32_t tried_rows;     /* Up to TRIAL_ROWS, */
    bool passes;             /* and whether it takes no more. */
    bool ordered;            /* `order` is that of all groups: none came since group_table_order. */
    struct arena arena;      /* Of the table's life. */
    struct arena text_arena; /* Of the groups' life. */
    struct arena scratch;    /* Of one slice of rows. */
    uint64_t *hashes;        /* SLICE_ROWS each. */
    unsigned char **records;
};

static size_t key_size(uint8_t kind)
{
    return kind == TYPE_TEXT ? sizeof(struct text) : sizeof(int64_t);
}

/* hash, a byte per key that is 1 for NULL (padded to 8), keys, states */
static bool lay_out_record(struct group_table *table)
{
    const struct grouping *grouping = table->grouping;
    table->keys = arena_array(&table->arena, struct key_place, grouping->key_count + 1);
    table->state_offsets = arena_array(&table->arena, size_t, grouping->aggregate_count + 1);
    table->merge_keys = arena_array(&table->arena, uint32_t, grouping->key_count + 1);
    if (table->keys == NULL || table->state_offsets == NULL || table->merge_keys == NULL) {
        return false;
    }
    size_t size = sizeof(uint64_t) + (grouping->key_count + 7) / 8 * 8;
    for (uint32_t i = 0; i < grouping->key_count; i++) {
        table->keys[i] = (struct key_place){size, grouping->partial.fields[i].type.kind};
        table->merge_keys[i] = i;
        size += key_size(table->keys[i].kind);
    }
    for (uint32_t i = 0; i < grouping->aggregate_count; i++) {
        table->state_offsets[i] = size;
        size += aggregate_state_size(&grouping->aggregates[i]);
    }
    table->record_size = size;
    return true;
}

status group_table_create(const struct grouping *grouping, struct budget *budget,
                          struct group_table **out_table, struct error *err)
{
    struct group_table *table = memory_alloc(budget, sizeof *table);
    if (table == NULL) return error_memory(err);
    *table = (struct group_table){.grouping = grouping, .budget = budget};
    arena_init(&table->arena, budget);
    arena_init(&table->text_arena, budget);
    arena_init(&table->scratch, budget);
    table->hashes = arena_array(&table->arena, uint64_t, SLICE_ROWS);
    table->records = arena_array(&table->arena, unsigned char *, SLICE_ROWS);
    table->slots = memory_alloc(budget, FIRST_SLOTS * sizeof *table->slots);
    if (table->hashes == NULL || table->records == NULL || table->slots == NULL ||
        !lay_out_record(table)) {
        group_table_destroy(table);
        return error_memory(err);
    }
    table->slot_count = FIRST_SLOTS;
    memset(table->slots, 0, FIRST_SLOTS * sizeof *table->slots);
    *out_table = table;
    return STATUS_OK;
}

/* How many blocks are allocated together with the one of this number. */
static size_t slab_blocks(size_t block)
{
    return block < SLAB_BLOCKS ? 1 : SLAB_BLOCKS;
}

static size_t slab_bytes(const struct group_table *table, size_t block)
{
    return slab_blocks(block) * BLOCK_RECORDS * table->record_size;
}

void group_table_destroy(struct group_table *table)
{
    if (table == NULL) return;
    struct budget *budget = table->budget;
    for (size_t i = 0; i < table->block_count; i += slab_blocks(i)) {
        memory_free(budget, table->blocks[i], slab_bytes(table, i));
    }
    memory_free(budget, table->blocks, table->block_capacity * sizeof *table->blocks);
    memory_free(budget, table->slots, table->slot_count * sizeof *table->slots);
    memory_free(budget, table->order, table->order_capacity * sizeof *table->order);
    arena_done(&table->arena);
    arena_done(&table->text_arena);
    arena_done(&table->scratch);
    memory_free(budget, table, sizeof *table);
}

void group_table_reset(struct group_table *table)
{
    memset(table->slots, 0, table->slot_count * sizeof *table->slots);
    table->group_count = 0;
    table->tried_rows = 0;
    table->passes = false;
    table->ordered = false;
    arena_reset(&table->text_arena);
}

static unsigned char *record_at(const struct group_table *table, uint32_t group)
{
    return table->blocks[group / BLOCK_RECORDS] + group % BLOCK_RECORDS * table->record_size;
}

static uint64_t record_hash(const unsigned char *record)
{
    uint64_t hash;
    memcpy(&hash, record, sizeof hash);
    return hash;
}

static bool slab_add(struct group_table *table)
{
    size_t first = table->block_count;
    size_t count = slab_blocks(first);
    if (first + count > table->block_capacity) {
        size_t grown = table->block_capacity == 0 ? 16 : table->block_capacity * 2;
        if (grown < first + count) grown = first + count;
        unsigned char **blocks =
            memory_resize(table->budget, table->blocks, table->block_capacity * sizeof *blocks,
                          grown * sizeof *blocks);
        if (blocks == NULL) return false;
        table->blocks = blocks;
        table->block_capacity = grown;
    }
    unsigned char *slab = memory_alloc_line(table->budget, slab_bytes(table, first));
    if (slab == NULL) return false;
    for (size_t i = 0; i < count; i++) {
        table->blocks[table->block_count++] = slab + i * BLOCK_RECORDS * table->record_size;
    }
    return true;
}

static bool record_add(struct group_table *table, unsigned char **out_record)
{
    if (table->group_count == UINT32_MAX - 1) return false;
    if (table->group_count == table->block_count * BLOCK_RECORDS && !slab_add(table)) return false;
    table->ordered = false;
    unsigned char *record = record_at(table, table->group_count++);
    memset(record, 0, table->record_size);
    *out_record = record;
    return true;
}

static bool slots_grow(struct group_table *table)
{
    size_t grown = table->slot_count * 2;
    uint64_t *slots = memory_alloc(table->budget, grown * sizeof *slots);
    if (slots == NULL) return false;
    memset(slots, 0, grown * sizeof *slots);
    for (uint32_t group = 0; group < table->group_count; group++) {
        uint64_t hash = record_hash(record_at(table, group));
        size_t place = hash & (grown - 1);
        if (group + SLOTS_AHEAD < table->group_count) {
            uint64_t later = record_hash(record_at(table, group + SLOTS_AHEAD));
            __builtin_prefetch(&slots[later & (grown - 1)], 1);
        }
        while (slots[place] != 0) {
            place = (place + 1) & (grown - 1);
        }
        slots[place] = (hash >> 32 << 32) | (group + 1);
    }
    memory_free(table->budget, table->slots, table->slot_count * sizeof *slots);
    table->slots = slots;
    table->slot_count = grown;
    return true;
}

static int64_t key_word(const struct column *column, uint32_t row)
{
    if (column->type.kind == TYPE_BOOL || column->type.kind == TYPE_NULL) return column->bools[row];
    if (column->type.kind != TYPE_DOUBLE) return column->ints[row];
    /* Equal doubles are one key: both zeros, all NaNs. */
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

static struct key_rows key_rows_of(const struct group_table *table, const struct batch *batch,
                                   const uint32_t *columns)
{
    struct key_rows keys = {.batch = batch, .columns = columns};
    uint32_t count = table->grouping->key_count;
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

static bool record_matches(const struct group_table *table, const unsigned char *record,
                           const struct key_rows *keys, uint32_t row)
{
    uint32_t key_count = table->grouping->key_count;
    if (keys->are_words) return record_matches_words(record, keys, key_count, row);
    const unsigned char *nulls = record + sizeof(uint64_t);
    for (uint32_t i = 0; i < key_count; i++) {
        const struct column *column = &keys->batch->columns[keys->columns[i]];
        const void *key = record + table->keys[i].offset;
        bool is_null = column_is_null(column, row);
        if (is_null != (nulls[i] != 0)) return false;
        if (is_null) continue;
        if (table->keys[i].kind == TYPE_TEXT) {
            struct text text;
            memcpy(&text, key, sizeof text);
            if (!text_equal(text, column->texts[row])) return false;
        } else {
            int64_t word;
            memcpy(&word, key, sizeof word);
            if (word != key_word(column, row)) return false;
        }
    }
    return true;
}

static bool record_fill(struct group_table *table, unsigned char *record, uint64_t hash,
                        const struct key_rows *keys, uint32_t row)
{
    memcpy(record, &hash, sizeof hash);
    unsigned char *nulls = record + sizeof hash;
    for (uint32_t i = 0; i < table->grouping->key_count; i++) {
        const struct column *column = &keys->batch->columns[keys->columns[i]];
        void *key = record + table->keys[i].offset;
        nulls[i] = column_is_null(column, row);
        if (nulls[i]) continue;
        if (table->keys[i].kind == TYPE_TEXT) {
            struct text text = column->texts[row];
            text.bytes = arena_copy_string(&table->text_arena, text);
            if (text.bytes == NULL) return false;
            memcpy(key, &text, sizeof text);
        } else {
            int64_t word = key_word(column, row);
            memcpy(key, &word, sizeof word);
        }
    }
    return true;
}

static unsigned char *find_or_add(struct group_table *table, uint64_t hash,
                                  const struct key_rows *keys, uint32_t row)
{
    size_t mask = table->slot_count - 1;
    size_t place = hash & mask;
    for (; table->slots[place] != 0; place = (place + 1) & mask) {
        uint64_t slot = table->slots[place];
        if (slot >> 32 != hash >> 32) continue;
        unsigned char *record = record_at(table, (uint32_t)slot - 1);
        if (record_matches(table, record, keys, row)) return record;
    }
    unsigned char *record;
    if (!record_add(table, &record)) return NULL;
    if (!record_fill(table, record, hash, keys, row)) return NULL;
    table->slots[place] = (hash >> 32 << 32) | table->group_count;
    if ((size_t)table->group_count * 2 > table->slot_count && !slots_grow(table)) return NULL;
    return record;
}

/* All slots before the first record: batches are short, and asking a few rows ahead would leave
 * their first rows waiting. Inline: a function that only asks has no effect for a compiler. */
ALWAYS_INLINE void ask_ahead(const struct group_table *table, const uint64_t *hashes,
                             uint32_t count)
{
    size_t mask = table->slot_count - 1;
    for (uint32_t i = 0; i < count; i++) {
        __builtin_prefetch(&table->slots[hashes[i] & mask]);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t slot = table->slots[hashes[i] & mask];
        if (slot != 0) __builtin_prefetch(record_at(table, (uint32_t)slot - 1));
    }
}

/* Finds the records of up to SLICE_ROWS rows. */
static bool find_records(struct group_table *table, const struct batch *batch,
                         const uint32_t *columns, struct selection selection)
{
    const uint64_t *hashes = table->hashes;
    const struct key_rows keys = key_rows_of(table, batch, columns);
    key_hash(batch, columns, table->grouping->key_count, selection, table->hashes);
    for (uint32_t i = 0; i < selection.count; i++) {
        if (i % ROWS_AHEAD == 0 && table->slot_count > FAR_SLOTS) {
            uint32_t left = selection.count - i;
            ask_ahead(table, hashes + i, left < ROWS_AHEAD ? left : ROWS_AHEAD);
        }
        table->records[i] = find_or_add(table, hashes[i], &keys, selection_row(selection, i));
        if (table->records[i] == NULL) return false;
    }
    return true;
}

static struct state_list states_of(struct group_table *table, uint32_t aggregate)
{
    return (struct state_list){
        .aggregate = &table->grouping->aggregates[aggregate],
        .records = table->records,
        .offset = table->state_offsets[aggregate],
        .arena = &table->text_arena,
        .scratch = &table->scratch,
    };
}

static status add_states(struct group_table *table, const struct batch *batch,
                         struct selection selection, struct error *err)
{
    for (uint32_t i = 0; i < table->grouping->aggregate_count; i++) {
        struct state_list states = states_of(table, i);
        if (!aggregate_state_add(&states, batch, selection)) return error_memory(err);
    }
    return STATUS_OK;
}

status group_table_add(struct group_table *table, const struct batch *batch,
                       struct selection selection, struct error *err)
{
    ASSERT(selection.count <= SLICE_ROWS);
    if (!find_records(table, batch, table->grouping->key_columns, selection)) {
        return error_memory(err);
    }
    return add_states(table, batch, selection, err);
}

/* Adds the first rows and decides what becomes of the others, which it gives. */
static status try_rows(struct group_table *table, const struct batch *batch,
                       struct selection selection, struct arena *arena, struct selection *out_rest,
                       struct error *err)
{
    uint32_t trial = TRIAL_ROWS - table->tried_rows;
    if (trial > selection.count) trial = selection.count;
    TRY(group_table_add(table, batch, (struct selection){selection.rows, trial}, err));
    table->tried_rows += trial;
    table->passes =
        table->tried_rows == TRIAL_ROWS && table->group_count + TRIAL_SHARED >= TRIAL_ROWS;
    uint32_t count = selection.count - trial;
    uint32_t *rows = arena_array(arena, uint32_t, (size_t)count + 1);
    if (rows == NULL) return error_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = selection_row(selection, trial + i);
    }
    *out_rest = (struct selection){rows, count};
    return STATUS_OK;
}

status group_table_add_loosely(struct group_table *table, const struct batch *batch,
                               struct selection selection, struct arena *arena,
                               struct selection *out_rest, struct error *err)
{
    ASSERT(selection.count <= SLICE_ROWS);
    struct selection rest = selection;
    if (table->tried_rows < TRIAL_ROWS) TRY(try_rows(table, batch, selection, arena, &rest, err));
    if (!table->passes && rest.count > 0) {
        TRY(group_table_add(table, batch, rest, err));
        rest.count = 0;
    }
    *out_rest = rest;
    return STATUS_OK;
}

/* Equal doubles have one form as keys; every other key is as it came. */
static bool lift_key(const struct column *key, const struct batch *batch,
                     struct selection selection, struct column *out, struct arena *arena)
{
    if (key->type.kind != TYPE_DOUBLE) {
        out->data = key->data;
    } else {
        if (!column_init(out, out->type, batch->row_count, arena)) return false;
        for (uint32_t i = 0; i < selection.count; i++) {
            uint32_t row = selection_row(selection, i);
            out->ints[row] = column_is_null(key, row) ? 0 : key_word(key, row);
        }
    }
    out->nulls = key->nulls;
    return true;
}

status group_table_lift(const struct group_table *table, const struct batch *batch,
                        struct selection selection, struct arena *arena, struct batch *out_batch,
                        struct error *err)
{
    const struct grouping *grouping = table->grouping;
    struct schema schema = grouping->partial;
    struct column *columns = arena_array(arena, struct column, schema.count + 1);
    if (columns == NULL) return error_memory(err);
    for (uint32_t i = 0; i < schema.count; i++) {
        columns[i].type = schema.fields[i].type;
    }
    for (uint32_t i = 0; i < grouping->key_count; i++) {
        const struct column *key = &batch->columns[grouping->key_columns[i]];
        ASSERT(key->type.kind == columns[i].type.kind);
        if (!lift_key(key, batch, selection, &columns[i], arena)) return error_memory(err);
    }
    for (uint32_t i = 0; i < grouping->aggregate_count; i++) {
        const struct aggregate *aggregate = &grouping->aggregates[i];
        if (!aggregate_state_lift(aggregate, batch, selection, &columns[aggregate->state_column],
                                  arena)) {
            return error_memory(err);
        }
    }
    *out_batch = (struct batch){
        .row_count = batch->row_count, .column_count = schema.count, .columns = columns};
    return STATUS_OK;
}

status group_table_merge(struct group_table *table, const struct batch *partial, struct error *err)
{
    uint32_t rows[SLICE_ROWS];
    for (uint32_t first = 0; first < partial->row_count; first += SLICE_ROWS) {
        uint32_t count = partial->row_count - first;
        if (count > SLICE_ROWS) count = SLICE_ROWS;
        for (uint32_t i = 0; i < count; i++) {
            rows[i] = first + i;
        }
        if (!find_records(table, partial, table->merge_keys, (struct selection){rows, count})) {
            return error_memory(err);
        }
        for (uint32_t i = 0; i < table->grouping->aggregate_count; i++) {
            struct state_list states = states_of(table, i);
            if (!aggregate_state_merge(&states, partial, first, count)) return error_memory(err);
        }
        arena_reset(&table->scratch);
    }
    return STATUS_OK;
}

status group_table_need_one(struct group_table *table, struct error *err)
{
    if (table->grouping->key_count > 0 || table->group_count > 0) return STATUS_OK;
    unsigned char *record;
    if (!record_add(table, &record)) return error_memory(err);
    return STATUS_OK;
}

uint32_t group_table_count(const struct group_table *table)
{
    return table->group_count;
}

static unsigned char *record_in_order(const struct group_table *table, uint32_t group)
{
    return record_at(table, table->ordered ? table->order[group] : group);
}

uint64_t group_table_hash(const struct group_table *table, uint32_t group)
{
    return record_hash(record_in_order(table, group));
}

static int compare_records(const struct group_table *table, const unsigned char *a,
                           const unsigned char *b)
{
    for (uint32_t i = 0; i < table->grouping->key_count; i++) {
        int nulls = (int)a[sizeof(uint64_t) + i] - (int)b[sizeof(uint64_t) + i];
        if (nulls != 0) return nulls;
        const unsigned char *key_a = a + table->keys[i].offset;
        const unsigned char *key_b = b + table->keys[i].offset;
        int order;
        if (table->keys[i].kind == TYPE_TEXT) {
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

/* Equal hashes are rare: a plain insertion puts their keys in order. */
static void order_equal_hashes(const struct group_table *table, struct radix_item *items,
                               size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct radix_item item = items[i];
        const unsigned char *record = record_at(table, (uint32_t)item.value);
        size_t place = i;
        while (place > 0 && items[place - 1].key == item.key &&
               compare_records(table, record_at(table, (uint32_t)items[place - 1].value), record) >
                   0) {
            items[place] = items[place - 1];
            place--;
        }
        items[place] = item;
    }
}

status group_table_order(struct group_table *table, struct error *err)
{
    uint32_t count = table->group_count;
    if (count == 0) return STATUS_OK;
    if (table->order_capacity < count) {
        uint32_t *order =
            memory_resize(table->budget, table->order, table->order_capacity * sizeof *order,
                          count * sizeof *order);
        if (order == NULL) return error_memory(err);
        table->order = order;
        table->order_capacity = count;
    }
    size_t scratch_bytes = (size_t)count * 2 * sizeof(struct radix_item);
    struct radix_item *items = memory_alloc(table->budget, scratch_bytes);
    if (items == NULL) return error_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        items[i] = (struct radix_item){record_hash(record_at(table, i)), i};
    }
    radix_sort(items, items + count, count);
    order_equal_hashes(table, items, count);
    for (uint32_t i = 0; i < count; i++) {
        table->order[i] = (uint32_t)items[i].value;
    }
    memory_free(table->budget, items, scratch_bytes);
    table->ordered = true;
    return STATUS_OK;
}

static bool read_keys(const struct group_table *table, unsigned char *const *records,
                      uint32_t count, struct column *columns, struct arena *arena)
{
    for (uint32_t i = 0; i < table->grouping->key_count; i++) {
        struct column *column = &columns[i];
        for (uint32_t j = 0; j < count; j++) {
            const unsigned char *key = records[j] + table->keys[i].offset;
            if (records[j][sizeof(uint64_t) + i] != 0) {
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

status group_table_read(const struct group_table *table, enum group_form form, uint32_t first,
                        uint32_t count, struct arena *arena, struct batch *out_batch,
                        struct error *err)
{
    const struct grouping *grouping = table->grouping;
    struct schema schema = form == GROUP_PARTIAL ? grouping->partial : grouping->result;
    struct column *columns = arena_array(arena, struct column, schema.count + 1);
    unsigned char **records = arena_array(arena, unsigned char *, count + 1);
    if (columns == NULL || records == NULL) return error_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        records[i] = record_in_order(table, first + i);
    }
    for (uint32_t i = 0; i < schema.count; i++) {
        if (!column_init(&columns[i], schema.fields[i].type, count, arena))
            return error_memory(err);
    }
    if (!read_keys(table, records, count, columns, arena)) return error_memory(err);
    for (uint32_t i = 0; i < grouping->aggregate_count; i++) {
        const struct aggregate *aggregate = &grouping->aggregates[i];
        struct state_list states = {
            .aggregate = aggregate, .records = records, .offset = table->state_offsets[i]};
        if (form == GROUP_RESULT) {
            uint32_t column = grouping->key_count + i;
            if (aggregate_state_result(&states, count, &columns[column], arena, err) != STATUS_OK) {
                return error_prefix(err, "%.*s", TEXT_ARGS(schema.fields[column].name));
            }
        } else if (!aggregate_state_partial(&states, count, &columns[aggregate->state_column],
                                            arena)) {
            return error_memory(err);
        }
    }
    *out_batch =
        (struct batch){.row_count = count, .column_count = schema.count, .columns = columns};
    return STATUS_OK;
}

size_t group_table_merge_need(const struct group_table *table, uint32_t row_count)
{
    size_t group_count = (size_t)table->group_count + row_count;
    size_t block_count = group_count / BLOCK_RECORDS + 1;
    size_t need = 0;
    for (size_t block = table->block_count; block < block_count; block += slab_blocks(block)) {
        need += slab_bytes(table, block);
    }
    size_t slot_count = table->slot_count;
    while (slot_count < group_count * 2) {
        slot_count *= 2;
    }
    if (slot_count > table->slot_count) need += slot_count * sizeof *table->slots;
    return need;
}

size_t group_table_order_need(const struct group_table *table)
{
    return (size_t)table->group_count * (sizeof *table->order + 2 * sizeof(struct radix_item));
}
