/* side_table.c - slots point at the first row of a key, rows of one key are chained in their order.
 */
#include "exec/side_table.h"

#include "base/assert.h"
#include "exec/key_hash.h"

enum { SLICE_ROWS = 2048 };

static void insert(const struct side_table *table, uint64_t *slots, uint32_t *next, uint64_t hash,
                   uint32_t row)
{
    size_t mask = table->slot_count - 1;
    for (size_t place = hash & mask;; place = (place + 1) & mask) {
        uint64_t slot = slots[place];
        if (slot == 0) {
            slots[place] = (hash >> 32 << 32) | (row + 1);
            return;
        }
        uint32_t other = (uint32_t)slot - 1;
        if (slot >> 32 == hash >> 32 &&
            key_equal(&table->rows, table->key_columns, row, &table->rows, table->key_columns,
                      other, table->key_count)) {
            next[row] = other;
            slots[place] = (hash >> 32 << 32) | (row + 1);
            return;
        }
    }
}

status side_table_build(struct side_table *table, struct batch rows, uint32_t key_count,
                        struct arena *arena, struct error *err)
{
    size_t slot_count = 64;
    while (slot_count < (size_t)rows.row_count * 2) {
        slot_count *= 2;
    }
    uint32_t *columns = arena_array(arena, uint32_t, key_count + 1);
    uint64_t *slots = arena_array(arena, uint64_t, slot_count);
    uint32_t *next = arena_array(arena, uint32_t, (size_t)rows.row_count + 1);
    if (columns == NULL || slots == NULL || next == NULL) return error_memory(err);
    for (uint32_t i = 0; i < key_count; i++) {
        columns[i] = i;
    }
    *table = (struct side_table){.rows = rows,
                                 .key_count = key_count,
                                 .key_columns = columns,
                                 .slots = slots,
                                 .slot_count = slot_count,
                                 .next = next};
    /* From the last row to the first, so that every chain ascends. */
    uint32_t slice[SLICE_ROWS];
    uint64_t hashes[SLICE_ROWS];
    for (uint32_t end = rows.row_count; end > 0;) {
        uint32_t count = end < SLICE_ROWS ? end : SLICE_ROWS;
        for (uint32_t i = 0; i < count; i++) {
            slice[i] = end - 1 - i;
        }
        key_hash(&table->rows, columns, key_count, (struct selection){slice, count}, hashes);
        for (uint32_t i = 0; i < count; i++) {
            next[slice[i]] = ROW_NONE;
            if (key_has_null(&table->rows, columns, key_count, slice[i])) continue;
            insert(table, slots, next, hashes[i], slice[i]);
        }
        end -= count;
    }
    return STATUS_OK;
}

uint32_t side_table_find(const struct side_table *table, uint64_t hash, const struct batch *batch,
                         const uint32_t *columns, uint32_t row)
{
    size_t mask = table->slot_count - 1;
    for (size_t place = hash & mask; table->slots[place] != 0; place = (place + 1) & mask) {
        uint64_t slot = table->slots[place];
        if (slot >> 32 != hash >> 32) continue;
        uint32_t found = (uint32_t)slot - 1;
        if (!key_equal(batch, columns, row, &table->rows, table->key_columns, found,
                       table->key_count)) {
            continue;
        }
        /* Checked last: a NULL is almost never there. */
        return key_has_null(batch, columns, table->key_count, row) ? ROW_NONE : found;
    }
    return ROW_NONE;
}
