/* fold_groups.c - an aggregate that is larger than memory.
 *
 * Groups come out in the order of their hashes. So partial states are written by ranges of hashes,
 * and at the end each range is merged by itself, the lowest first. One that is too large is cut
 * into ranges again; its groups have fewer hashes than those before, so there is an end to it.
 */
#include "engine/base/assert.h"
#include "engine/exec/fold/fold_parts.h"

enum { SLICE_ROWS = 256, MERGE_ROWS = 2048 };

void fold_groups_done(struct group_ranges *ranges)
{
    for (uint32_t i = 0; i < ranges->count; i++) {
        spill_rows_done(&ranges->items[i]);
    }
    ranges->count = 0;
}

/* ---- cutting into ranges ---- */

/* False: all groups have one hash. */
static bool ranges_choose(struct group_ranges *ranges, struct fold_shard *shard)
{
    uint64_t lowest = UINT64_MAX;
    uint64_t highest = 0;
    for (uint32_t i = 0; i < group_table_count(shard->groups); i++) {
        uint64_t hash = group_table_hash(shard->groups, i);
        if (hash < lowest) lowest = hash;
        if (hash > highest) highest = hash;
    }
    if (lowest >= highest) return false;
    uint32_t count = shard->spill.part_count;
    *ranges = (struct group_ranges){
        .lowest = lowest, .width = (highest - lowest) / count + 1, .count = count};
    for (uint32_t i = 0; i < count; i++) {
        ranges->items[i] = (struct spill_rows){.place = &shard->spill.state,
                                               .schema = shard->fold->grouping->partial};
    }
    return true;
}

/* Hashes that came later may lie outside: they belong to the first and the last range. */
static uint32_t range_of(const struct group_ranges *ranges, uint64_t hash)
{
    if (hash < ranges->lowest) return 0;
    uint64_t place = (hash - ranges->lowest) / ranges->width;
    return place < ranges->count ? (uint32_t)place : ranges->count - 1;
}

static status write_slice(const struct fold_shard *shard, const struct group_ranges *ranges,
                          uint32_t first, uint32_t count, struct spill_writer *writers,
                          struct arena *arena, struct error *err)
{
    struct batch batch;
    uint32_t rows[SLICE_ROWS];
    uint8_t places[SLICE_ROWS];
    TRY(group_table_read(shard->groups, GROUP_PARTIAL, first, count, arena, &batch, err));
    for (uint32_t i = 0; i < count; i++) {
        places[i] = (uint8_t)range_of(ranges, group_table_hash(shard->groups, first + i));
    }
    for (uint32_t place = 0; place < ranges->count; place++) {
        uint32_t chosen = 0;
        for (uint32_t i = 0; i < count; i++) {
            rows[chosen] = i;
            chosen += places[i] == place;
        }
        TRY(spill_writer_append(&writers[place], &batch, (struct selection){rows, chosen}, err));
    }
    return STATUS_OK;
}

static status write_groups(const struct fold_shard *shard, const struct group_ranges *ranges,
                           struct spill_writer *writers, struct error *err)
{
    struct arena arena;
    arena_init(&arena, shard->budget);
    uint32_t group_count = group_table_count(shard->groups);
    status result = STATUS_OK;
    for (uint32_t first = 0; first < group_count && result == STATUS_OK; first += SLICE_ROWS) {
        uint32_t count = group_count - first;
        if (count > SLICE_ROWS) count = SLICE_ROWS;
        result = write_slice(shard, ranges, first, count, writers, &arena, err);
        arena_reset(&arena);
    }
    arena_done(&arena);
    for (uint32_t i = 0; i < ranges->count && result == STATUS_OK; i++) {
        result = spill_writer_flush(&writers[i], err);
    }
    return result;
}

status fold_groups_spill(struct fold_shard *shard, struct group_ranges *ranges, struct error *err)
{
    if (ranges->count == 0 && !ranges_choose(ranges, shard)) return STATUS_OK;
    shard->spill.spilled = true;
    size_t held = fold_held(shard);
    struct spill_writer writers[SPILL_PARTS] = {{0}};
    status result = STATUS_OK;
    for (uint32_t i = 0; i < ranges->count && result == STATUS_OK; i++) {
        result = spill_writer_open(&writers[i], &ranges->items[i], err);
    }
    if (result == STATUS_OK) result = write_groups(shard, ranges, writers, err);
    for (uint32_t i = 0; i < ranges->count; i++) {
        spill_writer_done(&writers[i]);
    }
    TRY(result);
    TRY(fold_state_reset(shard, err));
    fold_spill_freed(shard, held);
    return STATUS_OK;
}

/* ---- merging ---- */

status fold_groups_merge(struct fold_shard *shard, struct group_ranges *ranges,
                         const struct batch *partial, size_t byte_count, struct error *err)
{
    struct column *columns = arena_array(&shard->scratch, struct column, partial->column_count + 1);
    if (columns == NULL) return error_memory(err);
    for (uint32_t first = 0; first < partial->row_count; first += MERGE_ROWS) {
        uint32_t count = partial->row_count - first;
        if (count > MERGE_ROWS) count = MERGE_ROWS;
        size_t text_bytes = byte_count / partial->row_count * count;
        size_t need = group_table_merge_need(shard->groups, count) + text_bytes;
        if (fold_must_spill(shard, need)) {
            TRY(fold_groups_spill(shard, ranges, err));
        }
        struct batch slice = batch_slice(partial, first, count, columns);
        TRY(group_table_merge(shard->groups, &slice, err));
    }
    return STATUS_OK;
}

/* ---- finishing ---- */

static status push_ranges(struct spill_runs *waiting, struct group_ranges *ranges,
                          struct error *err)
{
    for (uint32_t i = ranges->count; i > 0; i--) {
        if (ranges->items[i - 1].row_count == 0) continue;
        TRY(spill_runs_add(waiting, &ranges->items[i - 1], err));
    }
    ranges->count = 0;
    return STATUS_OK;
}

static status merge_range(struct fold_shard *shard, const struct spill_rows *range,
                          struct group_ranges *parts, struct error *err)
{
    struct spill_cursor cursor;
    spill_cursor_open(&cursor, range);
    status result;
    do {
        arena_reset(&shard->scratch);
        result = spill_cursor_next(&cursor, err);
        if (result == STATUS_OK && cursor.batch.row_count > 0) {
            result = fold_groups_merge(shard, parts, &cursor.batch, cursor.bytes.size, err);
        }
    } while (result == STATUS_OK && cursor.batch.row_count > 0);
    spill_cursor_done(&cursor);
    TRY(result);
    size_t need = group_table_order_need(shard->groups);
    if (parts->count > 0 || fold_must_spill(shard, need)) {
        return fold_groups_spill(shard, parts, err);
    }
    return STATUS_OK;
}

static status write_results(struct fold_shard *shard, struct spill_writer *writer,
                            struct error *err)
{
    TRY(group_table_order(shard->groups, err));
    uint32_t group_count = group_table_count(shard->groups);
    for (uint32_t first = 0; first < group_count; first += SLICE_ROWS) {
        uint32_t count = group_count - first;
        if (count > SLICE_ROWS) count = SLICE_ROWS;
        struct batch batch;
        arena_reset(&shard->scratch);
        TRY(group_table_read(shard->groups, GROUP_RESULT, first, count, &shard->scratch, &batch,
                             err));
        TRY(spill_writer_append(writer, &batch, (struct selection){NULL, count}, err));
    }
    return fold_state_reset(shard, err);
}

/* The last range that waits is the lowest. */
static status finish_range(struct fold_shard *shard, struct spill_runs *waiting,
                           struct spill_writer *writer, struct error *err)
{
    struct spill_rows range = waiting->items[--waiting->count];
    struct group_ranges parts = {0};
    status result = merge_range(shard, &range, &parts, err);
    if (result == STATUS_OK && parts.count > 0) {
        result = push_ranges(waiting, &parts, err);
    } else if (result == STATUS_OK) {
        result = write_results(shard, writer, err);
    }
    fold_groups_done(&parts);
    spill_rows_done(&range);
    return result;
}

status fold_groups_finish(struct fold_shard *shard, struct error *err)
{
    struct fold_spill *spill = &shard->spill;
    struct spill_writer writer;
    const struct grouping *grouping = shard->fold->grouping;
    spill->result.schema = grouping->result;
    TRY(fold_groups_spill(shard, &spill->ranges, err));
    status result = spill_writer_open(&writer, &spill->result, err);
    if (result == STATUS_OK && spill->ranges.count == 0) {
        /* One hash, which nothing can divide. */
        result = group_table_need_one(shard->groups, err);
        if (result == STATUS_OK) result = write_results(shard, &writer, err);
    } else if (result == STATUS_OK) {
        result = push_ranges(&spill->runs, &spill->ranges, err);
    }
    while (result == STATUS_OK && spill->runs.count > 0) {
        result = finish_range(shard, &spill->runs, &writer, err);
    }
    if (result == STATUS_OK) result = spill_writer_flush(&writer, err);
    spill_writer_done(&writer);
    TRY(result);
    group_table_destroy(shard->groups);
    shard->groups = NULL;
    return STATUS_OK;
}
